/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The switch: ports, workers, forwarding database, and the topology that ties them together.
 * All functions here are the control thread's; workers are inside.
 */
#ifndef XVS_SWITCH_VSWITCH_H
#define XVS_SWITCH_VSWITCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/counters.h"
#include "base/cpu.h"
#include "ports/port.h"
#include "switch/fdb.h"
#include "switch/topology.h"

struct vswitch;

#define SWITCH_QUEUES_MAX 4096 /* queue pairs of all ports together */

struct vswitch_config {
	struct cpu_list worker_cpus; /* one worker per CPU, 1..WORKERS_MAX */
	bool pin;                    /* false only in tests */
	uint32_t fdb_capacity;       /* 0 = 65536 */
	uint64_t fdb_seed;           /* 0 = random */
	uint32_t ageing;             /* seconds; 0 = FDB_AGEING_DEFAULT */
};

/* Since start, as measured by the worker itself. Ticks: see base/clock.h. */
struct worker_info {
	unsigned int cpu;
	unsigned int nrxq; /* receive queues it polls */
	uint64_t rounds;
	uint64_t polls;      /* queue polls */
	uint64_t busy_polls; /* polls that found frames */
	uint64_t packets;    /* frames taken in */
	uint64_t busy_ticks; /* ticks of rounds that found frames */
	uint64_t ticks;      /* ticks since start */
};

/* Starts the workers with an empty topology. Returns 0 or a negative errno. */
int vswitch_create(struct vswitch **out, const struct vswitch_config *config);

/* Stops the workers and destroys all ports. */
void vswitch_destroy(struct vswitch *sw);

/*
 * Takes the port over, gives it an id, publishes. -EEXIST: name in use; -ENOSPC: PORT_ID_MAX
 * ports or SWITCH_QUEUES_MAX queue pairs reached; -ENOMEM. On failure the port is still the
 * caller's.
 */
int vswitch_add_port(struct vswitch *sw, struct port *port);

/* Takes the port out of the topology, its addresses out of the FDB, and destroys it. */
void vswitch_del_port(struct vswitch *sw, struct port *port);

struct port *vswitch_find_port(const struct vswitch *sw, const char *name); /* or NULL */
struct port *vswitch_port(const struct vswitch *sw, uint16_t id);           /* or NULL */

/* Next port with an id >= *id, in order of ids; NULL at the end. Advances *id behind it. */
struct port *vswitch_next_port(const struct vswitch *sw, uint16_t *id);

/*
 * Builds a topology from the ports' queue states, publishes it, waits until each worker has
 * passed a quiescent point, frees the old one. Usually called through port_republish(). A port
 * that no longer has any queue in the topology loses its learned addresses and its backlog.
 */
void vswitch_publish(struct vswitch *sw);

/* The worker that polls receive queue `queue` of the port, or -1. */
int vswitch_rxq_worker(const struct vswitch *sw, const struct port *port, unsigned int queue);

/* Sum over all workers since the port was added. */
void vswitch_port_counters(const struct vswitch *sw, const struct port *port,
			   struct port_counters *out);
/* Frames waiting in the port's backlogs. */
unsigned int vswitch_port_backlog(const struct vswitch *sw, const struct port *port);

unsigned int vswitch_nworkers(const struct vswitch *sw);
void vswitch_worker_info(const struct vswitch *sw, unsigned int worker, struct worker_info *out);

struct fdb *vswitch_fdb(struct vswitch *sw);
/* The clock that FDB ages are counted in: seconds. */
uint32_t vswitch_now(const struct vswitch *sw);

/* To be called about once a second: ages the FDB. */
void vswitch_tick(struct vswitch *sw);

#endif
