/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vm2vm: packet rate between the first two guests at full overload, one way or both ways. Guests
 * beyond these two are attached and silent: that is scenario `ports`, which runs the same on
 * systems with different numbers of ports.
 */
#include "bench/bench.h"

#define WARM_UP_MS 5

static void measure(struct bench_system *s, const struct options *o, unsigned int param,
		    struct slice *out)
{
	const struct traffic_plan plan = {
	    .kind = o->light ? TRAFFIC_LIGHT : TRAFFIC_REALISTIC,
	    .senders = o->both_ways ? 2 : 1,
	    .active = 2,
	};
	struct traffic t;

	(void)param;
	traffic_run(s, &plan, WARM_UP_MS, &t);
	traffic_run(s, &plan, o->slice_ms, &t);
	traffic_result(&t, out);
}

int vm2vm_run(const struct options *o, json_t *results)
{
	static const struct slice_ops ops = {.measure = measure};

	return slices_scenario(o, &ops, report_rates, results);
}
