/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flood: broadcasts from one guest to all others. The rate is that of copies received, all
 * receivers together; so "cycles" is what one copy costs the switch. How many receivers there are
 * follows from the ports of each system.
 */
#include "bench/bench.h"

#define WARM_UP_MS 5

static void broadcast(struct bench_system *s, unsigned int size)
{
	const struct mac everybody = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};

	system_set_frame(s, 0, &everybody, size);
}

static void measure(struct bench_system *s, const struct options *o, unsigned int param,
		    struct slice *out)
{
	const struct traffic_plan plan = {
	    .kind = o->light ? TRAFFIC_LIGHT : TRAFFIC_REALISTIC,
	    .senders = 1,
	    .active = s->nguests,
	};
	struct traffic t;

	(void)param;
	traffic_run(s, &plan, WARM_UP_MS, &t);
	traffic_run(s, &plan, o->slice_ms, &t);
	traffic_result(&t, out);
}

int flood_run(const struct options *o, json_t *results)
{
	static const struct slice_ops ops = {.measure = measure, .set_size = broadcast};

	return slices_scenario(o, &ops, report_rates, results);
}
