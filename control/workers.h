/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How busy the workers are: since start, and over the last second. Control thread.
 */
#ifndef XVS_CONTROL_WORKERS_H
#define XVS_CONTROL_WORKERS_H

#include "switch/vswitch.h"

struct workers {
	struct worker_sample {
		struct worker_info last;   /* at the last call of workers_sample() */
		struct worker_info second; /* what was done between the last two calls */
	} sample[WORKERS_MAX];
};

/* What an amount of work comes to. */
struct worker_load {
	double busy_share;        /* of the time, 0..1 */
	double cycles_per_packet; /* ticks; 0 without packets */
	double packets_per_poll;  /* of polls that found frames; 0 without */
	double packets_per_second;
};

/* To be called once a second. */
void workers_sample(struct workers *w, const struct vswitch *sw);

struct worker_load worker_load(const struct worker_info *info);

#endif
