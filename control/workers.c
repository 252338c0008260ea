/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Worker load from the workers' own totals.
 *
 * Workers only count upwards; rates are differences that the control thread forms once a second.
 * The time base is the worker's own tick count, so that a late timer does not change a share.
 * Numbers of one worker are read one after the other while it works: a share may come out a
 * little above 1 and is cut there.
 */
#include "control/workers.h"

#include "base/clock.h"

static struct worker_info difference(const struct worker_info *now, const struct worker_info *then)
{
	return (struct worker_info){
	    .cpu = now->cpu,
	    .nrxq = now->nrxq,
	    .rounds = now->rounds - then->rounds,
	    .polls = now->polls - then->polls,
	    .busy_polls = now->busy_polls - then->busy_polls,
	    .packets = now->packets - then->packets,
	    .busy_ticks = now->busy_ticks - then->busy_ticks,
	    .ticks = now->ticks - then->ticks,
	};
}

void workers_sample(struct workers *w, const struct vswitch *sw)
{
	for (unsigned int i = 0; i < vswitch_nworkers(sw); i++) {
		struct worker_sample *s = &w->sample[i];
		struct worker_info now;

		vswitch_worker_info(sw, i, &now);
		s->second = difference(&now, &s->last);
		s->last = now;
	}
}

static double ratio(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0.0;
}

struct worker_load worker_load(const struct worker_info *info)
{
	const double share = ratio(info->busy_ticks, info->ticks);

	return (struct worker_load){
	    .busy_share = MIN(share, 1.0),
	    .cycles_per_packet = ratio(info->busy_ticks, info->packets),
	    .packets_per_poll = ratio(info->packets, info->busy_polls),
	    .packets_per_second =
		ratio(info->packets, info->ticks) * (double)clock_ticks_per_second(),
	};
}
