/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The round: what a worker does for ever.
 *
 *     for each receive queue of mine
 *         rx      borrow up to 32 frames; their headers are private copies from here on
 *         judge   learn the source, look the destination up, put the frame on lists by output
 *         send    per output: one copy into its ring (or its backlog)
 *         done    give the source its buffers back
 *     flush every output that was touched; retry backlogs; pass the quiescent point
 *
 * The thread owns everything in struct worker. It never allocates, locks or waits while it runs;
 * what it must remember per output or queue of a topology lies in arrays that are as large as the
 * largest topology may be, and are touched only as far as the current one is. When a new topology
 * appears, everything that refers to the old one is forgotten first (worker_adopt()).
 *
 * Judging is done once per batch for what the frames have in common: the last source and the last
 * destination of each receive queue are remembered together with the FDB's generation, so that a
 * steady flow does not touch the table at all, except once per second to stay young.
 *
 * Order of frames from one source queue to one destination: lists are filled in order of arrival,
 * flooded copies included, and each list goes to one transmit queue.
 */
#include "switch/worker.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/interrupt.h"

/* Frames of the current batch that go to one output. */
struct out_list {
	unsigned int n;
	struct pkt *pkt[BATCH_MAX];
};

/* What a receive queue's last frames told; valid for one generation of the FDB. */
struct flow_cache {
	uint64_t source;
	uint64_t destination;
	uint32_t generation;
	uint32_t seen; /* second in which `source` was last refreshed */
	uint16_t slot; /* of `destination`, SLOT_NONE if unknown */
};

/* No key has the VLAN 0xffff, so this matches no frame. */
#define NO_KEY UINT64_MAX

#define TXQ_MAX SWITCH_QUEUES_MAX

/*
 * A queue that was empty this many times in a row is idle. Idle queues take turns: at least
 * IDLE_POLLS_MIN of them, or a sixth of all queues, are polled in a round, so that many attached
 * guests that say nothing cost those that do little, and none waits for more than six rounds.
 */
#define IDLE_AFTER     64u
#define IDLE_POLLS_MIN 16u
#define IDLE_ROUNDS    6u

enum { TXQ_HELD = 1, TXQ_PENDING = 2 };

/* Counters of the worker itself; it is the only writer. */
struct worker_stats {
	uint64_t rounds;
	uint64_t polls;
	uint64_t busy_polls;
	uint64_t packets;
	uint64_t busy_ticks;
	uint64_t start_ticks;
	uint32_t nrxq;
};

struct worker {
	/* set at create */
	struct worker_shared *shared;
	pthread_t thread;
	unsigned int id;
	unsigned int cpu;

	/* worker */
	struct batch batch CACHE_ALIGNED;
	struct batch scratch; /* for draining backlogs */
	uint64_t topology_generation;
	unsigned int nlisted;  /* outputs with frames in this batch */
	unsigned int nheld;    /* transmit queues whose lock is ours in this round */
	unsigned int npending; /* transmit queues that we left frames waiting in */
	unsigned int nactive;  /* receive queues that are polled in every round */
	unsigned int cursor;   /* the last idle one that was polled */
	uint16_t listed[PORT_ID_MAX];
	uint16_t held[TXQ_MAX];
	uint16_t pending[TXQ_MAX];
	uint8_t txq_state[TXQ_MAX];
	uint16_t active[TXQ_MAX];     /* places in the list of receive queues */
	uint8_t empty_polls[TXQ_MAX]; /* of an active queue, in a row */
	bool is_active[TXQ_MAX];
	struct out_list list[PORT_ID_MAX];
	struct flow_cache cache[TXQ_MAX];

	/* worker writes, control reads, relaxed */
	struct worker_stats stats CACHE_ALIGNED;
	struct port_counters counters[PORT_ID_MAX];
};

/* ---- judge ---- */

static inline uint64_t load_be48(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap64(v) >> 16;
}

/* The octets 6..13 hold the source address and two more: within every frame's 14 bytes. */
static inline uint64_t pkt_source(const struct pkt *p)
{
	return load_be48(p->hdr + MAC_LEN);
}

static inline uint64_t pkt_destination(const struct pkt *p)
{
	return load_be48(p->hdr);
}

static inline bool is_group(uint64_t mac)
{
	return mac >> 40 & 1;
}

static void list_add(struct worker *w, uint16_t slot, struct pkt *p)
{
	struct out_list *l = &w->list[slot];

	if (l->n == 0)
		w->listed[w->nlisted++] = slot;
	l->pkt[l->n++] = p;
}

/* Puts the frame on the list of one output, unless it is too long for it. */
static inline void judge_output(struct worker *w, const struct topology *t, uint16_t slot,
				struct pkt *p)
{
	const struct topo_output *out = &t->output[slot];

	if (unlikely(p->len > out->max_frame))
		counter_add(&w->counters[out->port_id].drop[DROP_TX_OVERSIZE], 1);
	else
		list_add(w, slot, p);
}

/* To all outputs but the one the frame came from. Returns false if there is none. */
static bool judge_flood(struct worker *w, const struct topology *t, uint16_t from, struct pkt *p)
{
	unsigned int copies = 0;

	p->consumed = PKT_KEEP;
	for (uint16_t slot = 0; slot < t->noutputs; slot++) {
		if (slot == from)
			continue;
		judge_output(w, t, slot, p);
		copies++;
	}
	return copies > 0;
}

/* Refreshes or learns the source; afterwards the cache holds it. */
static void judge_source(struct worker *w, struct flow_cache *c, uint64_t source, uint16_t port_id)
{
	const uint32_t now = load_relaxed(&w->shared->now);

	if (fdb_learn(w->shared->fdb, source, port_id, now)) {
		c->source = source;
		c->seen = now;
	}
}

static void judge_destination(struct worker *w, const struct topology *t, struct flow_cache *c,
			      uint64_t destination)
{
	const uint16_t port = fdb_lookup(w->shared->fdb, destination);

	c->destination = destination;
	c->slot = port < PORT_ID_MAX ? t->slot_of[port] : SLOT_NONE;
}

struct verdicts {
	uint64_t bytes;
	unsigned int accepted;
	unsigned int flooded;
};

/* One frame: on which lists? `from` is the source's own slot, or SLOT_NONE. */
static inline void judge_frame(struct worker *w, const struct topology *t, struct flow_cache *c,
			       const struct topo_rxq *q, struct pkt *p, struct verdicts *v)
{
	const uint64_t source = pkt_source(p);
	const uint64_t destination = pkt_destination(p);
	const uint16_t from = t->slot_of[q->port_id];
	struct port_counters *counters = &w->counters[q->port_id];

	if (unlikely(source != c->source)) {
		if (is_group(source) || source == 0) {
			counter_add(&counters->drop[DROP_BAD_SOURCE], 1);
			return;
		}
		judge_source(w, c, source, q->port_id);
	}
	if (unlikely(destination != c->destination))
		judge_destination(w, t, c, destination);

	if (unlikely(is_group(destination) || c->slot == SLOT_NONE)) {
		if (!judge_flood(w, t, from, p)) {
			counter_add(&counters->drop[DROP_NO_DESTINATION], 1);
			return;
		}
		v->flooded++;
	} else if (unlikely(c->slot == from)) {
		counter_add(&counters->drop[DROP_SAME_PORT], 1);
		return;
	} else {
		p->consumed = PKT_MAY_CONSUME;
		judge_output(w, t, c->slot, p);
	}
	v->accepted++;
	v->bytes += p->len;
}

static void judge(struct worker *w, const struct topology *t, struct flow_cache *c,
		  const struct topo_rxq *q)
{
	struct port_counters *counters = &w->counters[q->port_id];
	const uint32_t generation = fdb_generation(w->shared->fdb);
	struct verdicts v = {0};

	if (c->generation != generation || c->seen != load_relaxed(&w->shared->now)) {
		c->source = NO_KEY;
		c->destination = NO_KEY;
		c->generation = generation;
	}
	for (unsigned int i = 0; i < w->batch.count; i++)
		judge_frame(w, t, c, q, &w->batch.pkt[i], &v);
	counter_add(&counters->value[CTR_RX_PACKETS], v.accepted);
	counter_add(&counters->value[CTR_RX_BYTES], v.bytes);
	counter_add(&counters->value[CTR_RX_BATCHES], 1);
	if (v.flooded)
		counter_add(&counters->value[CTR_FLOODED], v.flooded);
}

/* ---- send ---- */

/* Frames of one source queue always take the same transmit queue, which keeps their order. */
static const struct topo_txq *choose_txq(const struct topo_output *out, const struct topo_rxq *from)
{
	return &out->txq[out->ntxq == 1 ? 0 : from->index % out->ntxq];
}

static void send_lists(struct worker *w, const struct topology *t, const struct topo_rxq *from)
{
	for (unsigned int i = 0; i < w->nlisted; i++) {
		struct out_list *l = &w->list[w->listed[i]];
		const struct topo_txq *q = choose_txq(&t->output[w->listed[i]], from);
		const bool held = w->txq_state[q->index] & TXQ_HELD;

		if (outq_send(q->oq, q->paused, held, l->pkt, l->n, &w->counters[q->port_id],
			      &w->scratch) &&
		    !held) {
			w->txq_state[q->index] |= TXQ_HELD;
			w->held[w->nheld++] = q->index;
		}
		l->n = 0;
	}
	w->nlisted = 0;
}

static void remember_pending(struct worker *w, uint16_t index)
{
	if (w->txq_state[index] & TXQ_PENDING)
		return;
	w->txq_state[index] |= TXQ_PENDING;
	w->pending[w->npending++] = index;
}

static void flush_held(struct worker *w, const struct topology *t)
{
	for (unsigned int i = 0; i < w->nheld; i++) {
		const struct topo_txq *q = &t->txq[w->held[i]];

		w->txq_state[q->index] &= (uint8_t)~TXQ_HELD;
		if (outq_end(q->oq, &w->counters[q->port_id], &w->scratch))
			remember_pending(w, q->index);
	}
	w->nheld = 0;
}

static void retry_pending(struct worker *w, const struct topology *t)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < w->npending; i++) {
		const struct topo_txq *q = &t->txq[w->pending[i]];

		if (outq_retry(q->oq, &w->counters[q->port_id], &w->scratch))
			w->pending[kept++] = q->index;
		else
			w->txq_state[q->index] &= (uint8_t)~TXQ_PENDING;
	}
	w->npending = kept;
}

/* ---- round ---- */

/* A new topology: forget the old one's indexes; look once at every backlog that is left. */
static void worker_adopt(struct worker *w, const struct topology *t)
{
	memset(w->txq_state, 0, t->ntxq);
	w->npending = 0;
	for (uint16_t i = 0; i < t->ntxq; i++)
		if (!t->txq[i].paused && outq_backlog(t->txq[i].oq))
			remember_pending(w, i);
	memset(w->is_active, 0, t->worker[w->id].nrxq);
	w->nactive = 0;
	w->cursor = 0;
	for (unsigned int i = 0; i < t->worker[w->id].nrxq; i++)
		w->cache[i] = (struct flow_cache){.source = NO_KEY, .destination = NO_KEY};
	w->topology_generation = t->generation;
	store_relaxed(&w->stats.nrxq, t->worker[w->id].nrxq);
}

static unsigned int poll_rxq(struct worker *w, const struct topology *t, unsigned int i)
{
	const struct topo_rxq *q = &t->worker[w->id].rxq[i];
	struct port_counters *counters = &w->counters[q->port_id];

	batch_reset(&w->batch);
	const unsigned int n = q->ops->poll(q->rxq, &w->batch, counters);

	if (n == 0)
		return 0;
	judge(w, t, &w->cache[i], q);
	send_lists(w, t, q);
	q->ops->done(q->rxq, &w->batch, counters);
	counter_add(&w->stats.busy_polls, 1);
	return n;
}

static unsigned int poll_active(struct worker *w, const struct topology *t)
{
	unsigned int n = 0;

	for (unsigned int k = 0; k < w->nactive;) {
		const uint16_t i = w->active[k];
		const unsigned int got = poll_rxq(w, t, i);

		n += got;
		w->empty_polls[i] = got ? 0 : (uint8_t)(w->empty_polls[i] + 1);
		if (unlikely(w->empty_polls[i] == IDLE_AFTER)) {
			w->is_active[i] = false;
			w->active[k] = w->active[--w->nactive];
		} else {
			k++;
		}
	}
	counter_add(&w->stats.polls, w->nactive);
	return n;
}

/* The next few idle queues; those that have frames become active. */
static unsigned int poll_idle(struct worker *w, const struct topology *t)
{
	const unsigned int nrxq = t->worker[w->id].nrxq;
	const unsigned int turns = MIN(nrxq, MAX(IDLE_POLLS_MIN, nrxq / IDLE_ROUNDS));
	unsigned int n = 0;

	for (unsigned int k = 0; k < turns; k++) {
		const unsigned int i = w->cursor;

		w->cursor = i + 1 == nrxq ? 0 : i + 1;
		if (w->is_active[i])
			continue;
		const unsigned int got = poll_rxq(w, t, i);

		if (got) {
			w->is_active[i] = true;
			w->empty_polls[i] = 0;
			w->active[w->nactive++] = (uint16_t)i;
			n += got;
		}
	}
	return n;
}

static unsigned int worker_round(struct worker *w, const struct topology *t)
{
	const unsigned int n = poll_active(w, t) + poll_idle(w, t);

	flush_held(w, t);
	if (unlikely(w->npending))
		retry_pending(w, t);
	return n;
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct worker_shared *s = w->shared;
	uint64_t before = clock_ticks();

	store_relaxed(&w->stats.start_ticks, before);
	rte_rcu_qsbr_thread_online(s->qsbr, w->id);
	while (!load_relaxed(&s->stop)) {
		/* acquire: pairs with the release in vswitch_publish() */
		const struct topology *t = load_acquire(&s->topology);

		if (unlikely(t->generation != w->topology_generation))
			worker_adopt(w, t);
		const unsigned int n = worker_round(w, t);
		const uint64_t now = clock_ticks();

		if (n) {
			counter_add(&w->stats.packets, n);
			counter_add(&w->stats.busy_ticks, now - before);
		} else {
			/* Leaves the guests' index lines alone for a moment. */
			cpu_relax();
		}
		before = now;
		counter_add(&w->stats.rounds, 1);
		rte_rcu_qsbr_quiescent(s->qsbr, w->id);
	}
	rte_rcu_qsbr_thread_offline(s->qsbr, w->id);
	return NULL;
}

/* ---- control thread ---- */

int worker_create(struct worker **out, struct worker_shared *shared, unsigned int id,
		  unsigned int cpu, bool pin)
{
	struct worker *w =
	    mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char name[16];
	int err;

	if (w == MAP_FAILED)
		return -ENOMEM;
	w->shared = shared;
	w->id = id;
	w->cpu = cpu;
	err = rte_rcu_qsbr_thread_register(shared->qsbr, id) ? -EINVAL : 0;
	if (!err)
		err = -pthread_create(&w->thread, NULL, worker_main, w);
	if (err) {
		munmap(w, sizeof(*w));
		return err;
	}
	snprintf(name, sizeof(name), "worker-%u", id);
	pthread_setname_np(w->thread, name);
	*out = w;
	return pin ? cpu_pin(w->thread, cpu) : 0;
}

void worker_destroy(struct worker *w)
{
	if (!w)
		return;
	pthread_join(w->thread, NULL);
	rte_rcu_qsbr_thread_unregister(w->shared->qsbr, w->id);
	munmap(w, sizeof(*w));
}

void worker_interrupt(struct worker *w)
{
	interrupt_thread(w->thread);
}

void worker_get_info(const struct worker *w, struct worker_info *out)
{
	const struct worker_stats *s = &w->stats;

	*out = (struct worker_info){
	    .cpu = w->cpu,
	    .nrxq = load_relaxed(&s->nrxq),
	    .rounds = load_relaxed(&s->rounds),
	    .polls = load_relaxed(&s->polls),
	    .busy_polls = load_relaxed(&s->busy_polls),
	    .packets = load_relaxed(&s->packets),
	    .busy_ticks = load_relaxed(&s->busy_ticks),
	    .ticks = clock_ticks() - load_relaxed(&s->start_ticks),
	};
}

const struct port_counters *worker_counters(const struct worker *w, uint16_t port_id)
{
	return &w->counters[port_id];
}
