/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A worker: one pinned thread that polls its receive queues and forwards.
 *
 * Only vswitch.c uses this.
 */
#ifndef XVS_SWITCH_WORKER_H
#define XVS_SWITCH_WORKER_H

#include <rte_rcu_qsbr.h>

#include "base/counters.h"
#include "switch/fdb.h"
#include "switch/topology.h"
#include "switch/vswitch.h"

struct worker;

/* Set at create of the switch, before workers start; then read by all of them. */
struct worker_shared {
	struct topology *topology; /* release by control, acquire by workers */
	struct rte_rcu_qsbr *qsbr;
	struct fdb *fdb;
	uint32_t now;  /* seconds, for ageing; control writes, workers read, relaxed */
	uint32_t stop; /* control sets it once, relaxed */
};

/* Starts the thread. `pin`: to that CPU. Returns 0 or a negative errno. */
int worker_create(struct worker **out, struct worker_shared *shared, unsigned int id,
		  unsigned int cpu, bool pin);

/* shared->stop is set: waits for the thread and frees it. */
void worker_destroy(struct worker *w);

/* If it sleeps in a system call, that returns EINTR. Any time, control thread. */
void worker_interrupt(struct worker *w);

/* Any time, control thread. */
void worker_get_info(const struct worker *w, struct worker_info *out);
const struct port_counters *worker_counters(const struct worker *w, uint16_t port_id);

#endif
