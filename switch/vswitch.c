/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The switch as the control thread sees it.
 *
 * It owns the list of ports, with an output queue (backlog, lock) for each transmit queue, and the
 * published topology. Every change follows one protocol:
 *
 *     1. change queue states (they are control's wish, workers do not read them)
 *     2. build a topology from them, publish it (release)
 *     3. wait until every worker has passed a quiescent point, i.e. finished the round in which it
 *        may have used the old one
 *     4. free the old topology; what is no longer in the new one is control's alone
 *
 * A receive queue stays with the worker it was given to until it stops: a queue that moved within
 * one publication could be polled by its old and new worker at the same time.
 *
 * Counters of a port are summed over the workers. A port id may have been used before; what its
 * predecessors counted is remembered at add time and subtracted. Frames that are purged with a port
 * are counted by the control thread in its own set of counters.
 *
 * Memory: everything per port is allocated here and freed when the port goes. When there is no
 * memory for a topology, an empty one that was made at start is published instead: nothing is
 * forwarded, but step 4 holds and queues may be freed. vswitch_tick() tries again.
 */
#include "switch/vswitch.h"

#include <errno.h>
#include <rte_rcu_qsbr.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/interrupt.h"
#include "switch/frame_pool.h"
#include "switch/outq.h"
#include "switch/topology.h"
#include "switch/worker.h"

#define FDB_CAPACITY_DEFAULT 65536u
#define WORKER_NONE          (-1)
#define ROUND_PATIENCE_NS    UINT64_C(10000000) /* far more than any round takes */

/* A port and what the switch keeps for it. */
struct attachment {
	struct port *port;
	struct outq *outq[PORT_QUEUES_MAX];
	int8_t rxq_worker[PORT_QUEUES_MAX]; /* WORKER_NONE while not in the topology */
	bool in_topology;
	struct port_counters base;   /* counted under this id before the port was added */
	struct port_counters purged; /* counted by the control thread */
};

struct vswitch {
	struct worker_shared shared;
	struct worker *worker[WORKERS_MAX];
	unsigned int nworkers;
	unsigned int rxqs_of[WORKERS_MAX];
	struct attachment *port[PORT_ID_MAX];
	unsigned int nqueues; /* queue pairs of all ports */
	uint16_t next_id;     /* ids are handed out in turn, so that a stale one names nobody */
	uint64_t generation;
	uint32_t ageing;
	struct topology *empty; /* stands in when no topology can be built */
	struct frame_pool *pool;
	uint64_t start_ns;
};

/* ---- publication ---- */

static void update_clock(struct vswitch *sw)
{
	const uint64_t seconds = (clock_ns() - sw->start_ns) / UINT64_C(1000000000);

	store_relaxed(&sw->shared.now, (uint32_t)seconds + 1);
}

static int8_t least_loaded_worker(const struct vswitch *sw)
{
	unsigned int best = 0;

	for (unsigned int w = 1; w < sw->nworkers; w++)
		if (sw->rxqs_of[w] < sw->rxqs_of[best])
			best = w;
	return (int8_t)best;
}

/* Queues that start get a worker. */
static void assign_rxqs(struct vswitch *sw, struct attachment *a)
{
	for (unsigned int i = 0; i < a->port->nqueues; i++) {
		if (a->port->rxq[i]->state != QUEUE_RUNNING || a->rxq_worker[i] != WORKER_NONE)
			continue;
		a->rxq_worker[i] = least_loaded_worker(sw);
		sw->rxqs_of[a->rxq_worker[i]]++;
	}
}

/* Queues that no worker sees any more lose theirs. */
static void unassign_rxqs(struct vswitch *sw, struct attachment *a)
{
	for (unsigned int i = 0; i < a->port->nqueues; i++) {
		if (a->port->rxq[i]->state == QUEUE_RUNNING || a->rxq_worker[i] == WORKER_NONE)
			continue;
		sw->rxqs_of[a->rxq_worker[i]]--;
		a->rxq_worker[i] = WORKER_NONE;
	}
}

/*
 * Waits until no worker can hold a pointer it took before this call. A round never ends by itself
 * when a front-end has made its call descriptor sleep (see ports/event_fd.h), and control, waiting
 * here, could not find out why: so a worker that takes too long is interrupted.
 */
static void wait_for_workers(struct vswitch *sw)
{
	const uint64_t token = rte_rcu_qsbr_start(sw->shared.qsbr);
	uint64_t patience = clock_ns() + ROUND_PATIENCE_NS;

	while (!rte_rcu_qsbr_check(sw->shared.qsbr, token, false)) {
		sched_yield();
		if (clock_ns() < patience)
			continue;
		for (unsigned int w = 0; w < sw->nworkers; w++)
			worker_interrupt(sw->worker[w]);
		patience = clock_ns() + ROUND_PATIENCE_NS;
	}
}

static struct topology *build_topology(struct vswitch *sw)
{
	struct topo_source source[PORT_ID_MAX];
	unsigned int n = 0;

	for (unsigned int id = 0; id < PORT_ID_MAX; id++) {
		struct attachment *a = sw->port[id];

		if (!a)
			continue;
		assign_rxqs(sw, a);
		source[n++] = (struct topo_source){a->port, a->outq, a->rxq_worker};
	}
	return topology_build(source, n, ++sw->generation);
}

/* Transmit queues that are off lose what waits; a port without queues loses its addresses. */
static void settle_port(struct vswitch *sw, struct attachment *a)
{
	const bool now = topology_has(a->port);

	unassign_rxqs(sw, a);
	for (unsigned int i = 0; i < a->port->nqueues; i++)
		if (a->port->txq[i]->state == QUEUE_OFF)
			outq_purge(a->outq[i], &a->purged);
	if (a->in_topology && !now)
		fdb_flush(sw->shared.fdb, a->port->id, false);
	a->in_topology = now;
}

void vswitch_publish(struct vswitch *sw)
{
	struct topology *fresh = build_topology(sw);
	struct topology *old = sw->shared.topology;

	/* release: pairs with the acquire in worker_main() */
	store_release(&sw->shared.topology, fresh ? fresh : sw->empty);
	wait_for_workers(sw);
	if (old != sw->empty)
		topology_destroy(old);
	for (unsigned int id = 0; id < PORT_ID_MAX; id++)
		if (sw->port[id])
			settle_port(sw, sw->port[id]);
}

static void republish(void *ctx)
{
	vswitch_publish(ctx);
}

/* ---- ports ---- */

static void sum_workers(const struct vswitch *sw, uint16_t id, struct port_counters *out)
{
	memset(out, 0, sizeof(*out));
	for (unsigned int w = 0; w < sw->nworkers; w++)
		counters_sum(out, worker_counters(sw->worker[w], id));
}

static void counters_subtract(struct port_counters *c, const struct port_counters *base)
{
	for (unsigned int i = 0; i < CTR_COUNT; i++)
		c->value[i] -= base->value[i];
	for (unsigned int i = 0; i < DROP_COUNT; i++)
		c->drop[i] -= base->drop[i];
}

void vswitch_port_counters(const struct vswitch *sw, const struct port *port,
			   struct port_counters *out)
{
	const struct attachment *a = sw->port[port->id];

	sum_workers(sw, port->id, out);
	counters_subtract(out, &a->base);
	counters_sum(out, &a->purged);
}

unsigned int vswitch_port_backlog(const struct vswitch *sw, const struct port *port)
{
	const struct attachment *a = sw->port[port->id];
	unsigned int n = 0;

	for (unsigned int i = 0; i < port->nqueues; i++)
		n += outq_frames(a->outq[i]);
	return n;
}

static void free_attachment(struct attachment *a, unsigned int nqueues)
{
	for (unsigned int i = 0; i < nqueues; i++)
		outq_destroy(a->outq[i]);
	free(a);
}

static int new_attachment(struct attachment **out, struct vswitch *sw, struct port *port)
{
	struct attachment *a = aligned_alloc(CACHE_LINE, sizeof(*a));

	if (!a)
		return -ENOMEM;
	memset(a, 0, sizeof(*a));
	memset(a->rxq_worker, WORKER_NONE, sizeof(a->rxq_worker));
	a->port = port;
	for (unsigned int i = 0; i < port->nqueues; i++) {
		const int err = outq_create(&a->outq[i], port->txq[i], sw->pool);

		if (err) {
			free_attachment(a, port->nqueues);
			return err;
		}
	}
	*out = a;
	return 0;
}

static uint16_t free_id(struct vswitch *sw)
{
	for (unsigned int i = 0; i < PORT_ID_MAX; i++) {
		const uint16_t id = (uint16_t)((sw->next_id + i) % PORT_ID_MAX);

		if (!sw->port[id]) {
			sw->next_id = (uint16_t)((id + 1) % PORT_ID_MAX);
			return id;
		}
	}
	return PORT_ID_NONE;
}

int vswitch_add_port(struct vswitch *sw, struct port *port)
{
	struct attachment *a;
	int err;

	if (vswitch_find_port(sw, port->name))
		return -EEXIST;
	if (port->nqueues > SWITCH_QUEUES_MAX - sw->nqueues)
		return -ENOSPC;
	const uint16_t id = free_id(sw);

	if (id == PORT_ID_NONE)
		return -ENOSPC;
	err = new_attachment(&a, sw, port);
	if (err)
		return err;
	sum_workers(sw, id, &a->base);
	port->id = id;
	port->republish = republish;
	port->republish_ctx = sw;
	sw->port[id] = a;
	sw->nqueues += port->nqueues;
	vswitch_publish(sw);
	return 0;
}

void vswitch_del_port(struct vswitch *sw, struct port *port)
{
	struct attachment *a = sw->port[port->id];

	for (unsigned int i = 0; i < port->nqueues; i++) {
		port->rxq[i]->state = QUEUE_OFF;
		port->txq[i]->state = QUEUE_OFF;
	}
	vswitch_publish(sw);
	fdb_flush(sw->shared.fdb, port->id, true);
	sw->nqueues -= port->nqueues;
	sw->port[port->id] = NULL;
	free_attachment(a, port->nqueues);
	port->republish = NULL;
	port_destroy(port);
}

struct port *vswitch_port(const struct vswitch *sw, uint16_t id)
{
	return id < PORT_ID_MAX && sw->port[id] ? sw->port[id]->port : NULL;
}

struct port *vswitch_next_port(const struct vswitch *sw, uint16_t *id)
{
	while (*id < PORT_ID_MAX) {
		const struct attachment *a = sw->port[(*id)++];

		if (a)
			return a->port;
	}
	return NULL;
}

struct port *vswitch_find_port(const struct vswitch *sw, const char *name)
{
	uint16_t id = 0;

	for (struct port *p; (p = vswitch_next_port(sw, &id)) != NULL;)
		if (strcmp(p->name, name) == 0)
			return p;
	return NULL;
}

int vswitch_rxq_worker(const struct vswitch *sw, const struct port *port, unsigned int queue)
{
	return queue < port->nqueues ? sw->port[port->id]->rxq_worker[queue] : WORKER_NONE;
}

/* ---- the rest ---- */

unsigned int vswitch_nworkers(const struct vswitch *sw)
{
	return sw->nworkers;
}

void vswitch_worker_info(const struct vswitch *sw, unsigned int worker, struct worker_info *out)
{
	worker_get_info(sw->worker[worker], out);
}

struct fdb *vswitch_fdb(struct vswitch *sw)
{
	return sw->shared.fdb;
}

uint32_t vswitch_now(const struct vswitch *sw)
{
	return load_relaxed(&sw->shared.now);
}

void vswitch_tick(struct vswitch *sw)
{
	update_clock(sw);
	fdb_age(sw->shared.fdb, vswitch_now(sw), sw->ageing);
	if (sw->shared.topology == sw->empty)
		vswitch_publish(sw);
}

static int create_qsbr(struct vswitch *sw)
{
	const size_t size =
	    (rte_rcu_qsbr_get_memsize(WORKERS_MAX) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;

	sw->shared.qsbr = aligned_alloc(CACHE_LINE, size);
	if (!sw->shared.qsbr || rte_rcu_qsbr_init(sw->shared.qsbr, WORKERS_MAX))
		return -ENOMEM;
	return 0;
}

static int create_fdb(struct vswitch *sw, const struct vswitch_config *config)
{
	uint64_t seed = config->fdb_seed;

	if (seed == 0 && getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		return -errno;
	return fdb_create(&sw->shared.fdb,
			  config->fdb_capacity ? config->fdb_capacity : FDB_CAPACITY_DEFAULT, seed);
}

static int start_workers(struct vswitch *sw, const struct vswitch_config *config)
{
	const struct cpu_list *cpus = &config->worker_cpus;

	if (cpus->count == 0 || cpus->count > WORKERS_MAX)
		return -EINVAL;
	int err = interrupt_install();

	while (!err && sw->nworkers < cpus->count) {
		struct worker **w = &sw->worker[sw->nworkers];

		err = worker_create(w, &sw->shared, sw->nworkers, cpus->cpu[sw->nworkers],
				    config->pin);
		if (*w)
			sw->nworkers++;
	}
	return err;
}

int vswitch_create(struct vswitch **out, const struct vswitch_config *config)
{
	struct vswitch *sw = calloc(1, sizeof(*sw));
	int err;

	if (!sw)
		return -ENOMEM;
	sw->ageing = config->ageing ? config->ageing : FDB_AGEING_DEFAULT;
	sw->start_ns = clock_ns();
	update_clock(sw);
	sw->empty = topology_build(NULL, 0, ++sw->generation);
	sw->shared.topology = sw->empty;
	err = sw->empty ? create_qsbr(sw) : -ENOMEM;
	if (!err)
		err = create_fdb(sw, config);
	if (!err)
		err = frame_pool_create(&sw->pool);
	if (!err)
		err = start_workers(sw, config);
	if (err) {
		vswitch_destroy(sw);
		return err;
	}
	*out = sw;
	return 0;
}

void vswitch_destroy(struct vswitch *sw)
{
	uint16_t id = 0;

	if (!sw)
		return;
	for (struct port *p; (p = vswitch_next_port(sw, &id)) != NULL;)
		vswitch_del_port(sw, p);
	store_relaxed(&sw->shared.stop, 1u);
	for (unsigned int w = 0; w < sw->nworkers; w++)
		worker_destroy(sw->worker[w]);
	frame_pool_destroy(sw->pool);
	fdb_destroy(sw->shared.fdb);
	if (sw->shared.topology != sw->empty)
		topology_destroy(sw->shared.topology);
	topology_destroy(sw->empty);
	free(sw->shared.qsbr);
	free(sw);
}
