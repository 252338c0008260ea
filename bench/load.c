/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * load: latency one way, at 10, 50 and 90 percent of the maximum. Each slice first measures the
 * maximum of that moment, for a few milliseconds, because it changes with the machine's state.
 * Both guests are this thread, so one clock times both ends.
 */
#include "bench/bench.h"

#include "base/clock.h"

#define WARM_UP_MS 2
#define MAXIMUM_MS 5

static void measure(struct bench_system *s, const struct options *o, unsigned int percent,
		    struct slice *out)
{
	struct histogram *latency = latency_slice();
	struct paced p;
	double rate;

	paced_run(s, 0, WARM_UP_MS, NULL, &p);
	paced_run(s, 0, MAXIMUM_MS, NULL, &p);
	rate = (double)p.received / (double)p.ticks * percent / 100;
	if (rate <= 0)
		return;
	paced_run(s, rate, o->slice_ms, latency, &p);
	out->value = (double)p.received / (double)p.ticks * (double)clock_ticks_per_second() / 1e6;
}

int load_run(const struct options *o, json_t *results)
{
	static const struct slice_ops ops = {
	    .measure = measure,
	    .keep = latency_keep,
	    .unit = "percent",
	    .nparams = 3,
	    .param = {10, 50, 90},
	};

	return slices_scenario(o, &ops, latency_report, results);
}
