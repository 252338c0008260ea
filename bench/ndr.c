/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ndr: the highest rate at which nothing is lost, one way, by binary search between nothing and
 * the maximum. A whole search is one slice, because the answer depends on the machine's state:
 * first the maximum, then STEPS trials of TRIAL_MS each. A trial passes when every frame that was
 * due has been sent and has arrived. One trial that fails for a reason of its own (this thread was
 * not running for a moment) sends the search too low; the median over the slices forgives that.
 */
#include "bench/bench.h"

#include "base/clock.h"

#define TRIAL_MS   4
#define STEPS      8u
#define WARM_UP_MS 2

static bool nothing_lost(const struct paced *p)
{
	return (double)p->received + 1 >= p->offered;
}

static void measure(struct bench_system *s, const struct options *o, unsigned int param,
		    struct slice *out)
{
	struct paced p;
	double low = 0, high;

	(void)o;
	(void)param;
	paced_run(s, 0, WARM_UP_MS, NULL, &p);
	paced_run(s, 0, TRIAL_MS, NULL, &p);
	high = (double)p.received / (double)p.ticks * 1.1; /* the maximum itself may pass */
	for (unsigned int i = 0; i < STEPS && high > 0; i++) {
		const double rate = (low + high) / 2;

		paced_run(s, rate, TRIAL_MS, NULL, &p);
		if (nothing_lost(&p))
			low = rate;
		else
			high = rate;
	}
	out->value = low * (double)clock_ticks_per_second() / 1e6;
}

int ndr_run(const struct options *o, json_t *results)
{
	static const struct slice_ops ops = {.measure = measure};

	return slices_scenario(o, &ops, report_rates, results);
}
