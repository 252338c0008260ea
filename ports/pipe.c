/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The test kind of port: two rings of heap-allocated frames per queue pair.
 *
 * Each ring has one producer and one consumer. `head` is written by the producer with release
 * when frames are complete, `tail` by the consumer with release when the slots may be reused;
 * both only grow, a slot is index modulo PIPE_RING.
 *
 *     to_switch    tester sends, the worker that polls the queue consumes
 *     from_switch  the holder of the output queue's lock puts, the tester receives
 *
 * put() works on a private copy of the head which flush() publishes, as with a real ring.
 * Polled frames stay in their slots until done(), which frees them: within the round they are
 * borrowed by the batch.
 *
 * When from_switch is full (PIPE_RING frames, or the room the tester granted) put() returns
 * less than asked for, and the switch does what it does with a full guest.
 *
 * Workers call malloc() and free() here, against the rule for workers; that is what lets
 * AddressSanitizer watch the borders of each frame, and this kind exists for tests only. A
 * fixed slot array was rejected for that reason.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "ports/pipe.h"

struct pipe_frame {
	uint32_t len;
	uint8_t data[];
};

struct pipe_ring {
	/* producer */
	uint64_t head CACHE_ALIGNED; /* published with release */
	uint64_t next;               /* head of what was put but not flushed */
	/* consumer */
	uint64_t tail CACHE_ALIGNED; /* published with release */
	uint64_t taken;              /* to_switch: end of what was polled but not done */
	/* tester */
	uint64_t limit CACHE_ALIGNED; /* from_switch: `next` may not pass it */
	/* a slot belongs to whoever the two indices say */
	struct pipe_frame *slot[PIPE_RING] CACHE_ALIGNED;
};

struct pipe_queue {
	struct rxq rxq;
	struct txq txq;
	struct pipe_ring to_switch;
	struct pipe_ring from_switch;
};

static struct pipe_queue *pipe_queue(const struct port *p, unsigned int i)
{
	return container_of(p->rxq[i], struct pipe_queue, rxq);
}

/* ---- worker ---- */

static void pipe_done(struct rxq *rxq, struct batch *batch, struct port_counters *c)
{
	struct pipe_ring *r = &container_of(rxq, struct pipe_queue, rxq)->to_switch;
	uint64_t tail = r->tail;

	(void)batch;
	(void)c;
	for (; tail != r->taken; tail++)
		free(r->slot[tail % PIPE_RING]);
	store_release(&r->tail, tail); /* pairs with the acquire in pipe_send() */
}

static unsigned int pipe_poll(struct rxq *rxq, struct batch *batch, struct port_counters *c)
{
	struct pipe_ring *r = &container_of(rxq, struct pipe_queue, rxq)->to_switch;
	uint64_t head = load_acquire(&r->head); /* pairs with the release in pipe_send() */

	batch_reset(batch);
	while (r->taken != head && batch->count < BATCH_MAX) {
		struct pipe_frame *f = r->slot[r->taken++ % PIPE_RING];

		if (f->len < FRAME_MIN)
			counter_add(&c->drop[DROP_RUNT], 1);
		else
			pkt_set(&batch->pkt[batch->count++], f->data, f->len);
	}
	if (!batch->count) /* nothing for the switch, which then does not call done */
		pipe_done(rxq, batch, c);
	return batch->count;
}

static bool pipe_put_one(struct pipe_ring *r, const struct pkt *pkt, struct port_counters *c)
{
	struct pipe_frame *f;

	/* Acquire: pairs with the release in pipe_receive(); the slot is free to be written. */
	if (r->next - load_acquire(&r->tail) == PIPE_RING || r->next >= load_relaxed(&r->limit))
		return false;
	f = malloc(sizeof(*f) + pkt->len);
	if (!f) {
		counter_add(&c->drop[DROP_NO_FRAME], 1);
		return true;
	}
	f->len = pkt->len;
	pkt_copy_out(pkt, f->data);
	r->slot[r->next % PIPE_RING] = f;
	store_relaxed(&r->next, r->next + 1);
	counter_add(&c->value[CTR_TX_PACKETS], 1);
	counter_add(&c->value[CTR_TX_BYTES], pkt->len);
	return true;
}

static unsigned int pipe_put(struct txq *txq, struct pkt *const pkt[], unsigned int n,
			     struct port_counters *c)
{
	struct pipe_ring *r = &container_of(txq, struct pipe_queue, txq)->from_switch;
	unsigned int i = 0;

	while (i < n && pipe_put_one(r, pkt[i], c))
		i++;
	return i;
}

static void pipe_flush(struct txq *txq, struct port_counters *c)
{
	struct pipe_ring *r = &container_of(txq, struct pipe_queue, txq)->from_switch;

	(void)c;
	store_release(&r->head, r->next); /* pairs with the acquire in pipe_receive() */
}

static const struct rxq_ops pipe_rxq_ops = {.poll = pipe_poll, .done = pipe_done};
static const struct txq_ops pipe_txq_ops = {.put = pipe_put, .flush = pipe_flush};

/* ---- tester ---- */

bool pipe_send(struct port *p, unsigned int queue, const void *frame, uint32_t len)
{
	struct pipe_ring *r = &pipe_queue(p, queue)->to_switch;
	struct pipe_frame *f;

	/* Acquire: pairs with the release in pipe_done(). */
	if (r->head - load_acquire(&r->tail) == PIPE_RING)
		return false;
	f = malloc(sizeof(*f) + len);
	if (!f)
		return false;
	f->len = len;
	memcpy(f->data, frame, len);
	r->slot[r->head % PIPE_RING] = f;
	store_release(&r->head, r->head + 1); /* pairs with the acquire in pipe_poll() */
	return true;
}

uint32_t pipe_receive(struct port *p, unsigned int queue, void *buf, uint32_t size)
{
	struct pipe_ring *r = &pipe_queue(p, queue)->from_switch;
	struct pipe_frame *f;
	uint32_t len;

	if (load_acquire(&r->head) == r->tail) /* pairs with the release in pipe_flush() */
		return 0;
	f = r->slot[r->tail % PIPE_RING];
	len = MIN(f->len, size);
	memcpy(buf, f->data, len);
	free(f);
	store_release(&r->tail, r->tail + 1); /* pairs with the acquire in pipe_put_one() */
	return len;
}

void pipe_set_room(struct port *p, unsigned int queue, uint32_t n)
{
	struct pipe_ring *r = &pipe_queue(p, queue)->from_switch;

	/* Relaxed: a threshold, no data hangs on it. */
	store_relaxed(&r->limit,
		      n == PIPE_ROOM_UNLIMITED ? UINT64_MAX : load_relaxed(&r->next) + n);
}

/* ---- control ---- */

static void pipe_info(const struct port *p, struct port_info *out)
{
	memset(out, 0, sizeof(*out));
	out->state = PORT_DOWN;
	out->mode = "test";
	out->nqueues = p->nqueues;
	for (unsigned int i = 0; i < p->nqueues; i++) {
		if (p->txq[i]->state == QUEUE_RUNNING)
			out->state = PORT_UP;
		out->rx_ring[i] = PIPE_RING;
		out->tx_ring[i] = PIPE_RING;
	}
	if (out->state == PORT_DOWN)
		snprintf(out->reason, sizeof(out->reason), "no queue is running");
}

static void ring_drop_all(struct pipe_ring *r)
{
	for (uint64_t i = r->tail; i != MAX(r->head, r->next); i++)
		free(r->slot[i % PIPE_RING]);
}

static void pipe_destroy(struct port *p)
{
	for (unsigned int i = 0; i < p->nqueues && p->rxq[i]; i++) {
		struct pipe_queue *q = pipe_queue(p, i);

		ring_drop_all(&q->to_switch);
		ring_drop_all(&q->from_switch);
		free(q);
	}
	free(p);
}

static const struct port_type pipe_type = {
    .name = "pipe",
    .info = pipe_info,
    .destroy = pipe_destroy,
};

static int pipe_queue_add(struct port *p, uint16_t index)
{
	struct pipe_queue *q = aligned_alloc(CACHE_LINE, sizeof(*q));

	if (!q)
		return -ENOMEM;
	memset(q, 0, sizeof(*q));
	q->from_switch.limit = UINT64_MAX;
	q->rxq = (struct rxq){.ops = &pipe_rxq_ops, .port = p, .index = index};
	q->txq =
	    (struct txq){.ops = &pipe_txq_ops, .port = p, .index = index, .max_frame = FRAME_MAX};
	p->rxq[index] = &q->rxq;
	p->txq[index] = &q->txq;
	return 0;
}

int pipe_port_create(struct port **out, const char *name, unsigned int nqueues)
{
	struct port *p;

	if (!port_name_valid(name) || !nqueues || nqueues > PORT_QUEUES_MAX)
		return -EINVAL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	memcpy(p->name, name, strlen(name) + 1);
	p->type = &pipe_type;
	p->id = PORT_ID_NONE;
	p->nqueues = nqueues;
	for (unsigned int i = 0; i < nqueues; i++) {
		if (pipe_queue_add(p, (uint16_t)i)) {
			pipe_destroy(p);
			return -ENOMEM;
		}
	}
	*out = p;
	return 0;
}

void pipe_set_state(struct port *p, enum queue_state state)
{
	for (unsigned int i = 0; i < p->nqueues; i++) {
		p->rxq[i]->state = state == QUEUE_RUNNING ? QUEUE_RUNNING : QUEUE_OFF;
		p->txq[i]->state = state;
	}
	port_republish(p);
}
