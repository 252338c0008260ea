/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Output queues.
 *
 * The lock is one word, taken with an exchange and only ever tried. Two facts keep a frame from
 * being stranded in the backlog. A worker that appended without the lock tries the lock once more
 * afterwards; a holder that let go looks at the backlog once more afterwards. With a full fence
 * between each one's write and look, at least one of them sees the other (Dekker's argument), and
 * whoever gets the lock then drains. Frames that stay because the receiver is full are retried in
 * later rounds by the worker that left them.
 *
 * Order: frames of one sender reach outq_send() in order, on one worker. Direct puts happen only
 * when the backlog is empty under the lock, and drains take the oldest first, so that a later frame
 * never overtakes an earlier one.
 *
 * Congestion. A receiver that is slower than its senders would keep the backlog full for ever, and
 * each frame would be copied twice and come late. So once a backlog has overflowed the queue is
 * `congested`: as soon as it has drained, frames that do not fit the ring are dropped at once
 * (DROP_RING_FULL) instead of queued, until a batch fits whole. Short bursts are absorbed, standing
 * queues are not built.
 *
 * The backlog is bounded in chunks, not frames, so that jumbo frames cannot take more of the pool
 * than the queue brought along. The count is raised before a frame is appended and lowered after it
 * left, hence never too low: it also says whether anything waits. A holder that sees the count but
 * not yet the frame treats the backlog as not empty and comes back, which keeps the order.
 */
#include "switch/outq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "ring/ptr_ring.h"

struct outq {
	/* set at create */
	struct txq *txq;
	struct frame_pool *pool;
	struct rte_ring *backlog; /* any worker appends, the lock holder takes */
	/* shared, atomic */
	uint32_t lock CACHE_ALIGNED;
	uint32_t waiting; /* chunks in the backlog, or about to be */
	bool congested;   /* set by who overflows, cleared by the lock holder */
};

/* ---- lock ---- */

static bool try_lock(struct outq *oq)
{
	/* acquire: pairs with the release in unlock() */
	return load_relaxed(&oq->lock) == 0 &&
	       __atomic_exchange_n(&oq->lock, 1, __ATOMIC_ACQUIRE) == 0;
}

static void unlock(struct outq *oq)
{
	store_release(&oq->lock, 0u); /* pairs with the acquire in try_lock() */
}

/* ---- backlog ---- */

static bool reserve(struct outq *oq, unsigned int chunks)
{
	if (__atomic_add_fetch(&oq->waiting, chunks, __ATOMIC_RELAXED) <= OUTQ_BACKLOG)
		return true;
	__atomic_sub_fetch(&oq->waiting, chunks, __ATOMIC_RELAXED);
	return false;
}

static void release(struct outq *oq, unsigned int chunks)
{
	__atomic_sub_fetch(&oq->waiting, chunks, __ATOMIC_RELAXED);
}

/* Copies one frame to the backlog, or drops it with a counter. */
static void append_one(struct outq *oq, const struct pkt *p, struct port_counters *c)
{
	const unsigned int chunks = frame_chunks(p->len);

	if (!reserve(oq, chunks)) {
		store_relaxed(&oq->congested, true);
		counter_add(&c->drop[DROP_BACKLOG_FULL], 1);
		return;
	}
	struct frame *f = frame_copy(oq->pool, p);

	if (!f || !ptr_ring_push(oq->backlog, f)) {
		frame_free(oq->pool, f);
		release(oq, chunks);
		counter_add(&c->drop[DROP_NO_FRAME], 1);
		return;
	}
	counter_add(&c->value[CTR_BACKLOGGED], 1);
}

static void append(struct outq *oq, struct pkt *const pkt[], unsigned int n,
		   struct port_counters *c)
{
	for (unsigned int i = 0; i < n; i++)
		append_one(oq, pkt[i], c);
}

static bool backlog_empty(const struct outq *oq)
{
	return load_relaxed(&oq->waiting) == 0;
}

/* Holder: one batch of waiting frames to the receiver. Returns false when it is full. */
static bool drain_batch(struct outq *oq, struct port_counters *c, struct batch *scratch)
{
	struct frame *frame[BATCH_MAX];
	struct pkt *pkt[BATCH_MAX];
	const unsigned int n = ptr_ring_look(oq->backlog, (void **)frame, BATCH_MAX);
	unsigned int done;

	batch_reset(scratch);
	for (unsigned int i = 0; i < n; i++) {
		pkt[i] = &scratch->pkt[i];
		frame_to_pkt(frame[i], pkt[i], scratch);
	}
	done = oq->txq->ops->put(oq->txq, pkt, n, c);
	ptr_ring_remove(oq->backlog, done);
	for (unsigned int i = 0; i < done; i++) {
		release(oq, frame_chunks(frame[i]->len));
		frame_free(oq->pool, frame[i]);
	}
	return done == n;
}

/*
 * Holder: drains what waits. Bounded: senders that append meanwhile cannot keep us here longer than
 * one full backlog. Returns true when it is empty now.
 */
static bool drain(struct outq *oq, struct port_counters *c, struct batch *scratch)
{
	for (unsigned int i = 0; i <= OUTQ_BACKLOG / BATCH_MAX && !backlog_empty(oq); i++)
		if (!drain_batch(oq, c, scratch))
			break;
	return backlog_empty(oq);
}

/* ---- sending ---- */

/* Holder, backlog empty: the case that matters. */
static void put_direct(struct outq *oq, struct pkt *const pkt[], unsigned int n,
		       struct port_counters *c)
{
	const unsigned int done = oq->txq->ops->put(oq->txq, pkt, n, c);

	if (likely(done == n)) {
		if (unlikely(load_relaxed(&oq->congested)))
			store_relaxed(&oq->congested, false);
	} else if (load_relaxed(&oq->congested)) {
		counter_add(&c->drop[DROP_RING_FULL], n - done);
	} else {
		append(oq, pkt + done, n - done, c);
	}
}

bool outq_send(struct outq *oq, bool paused, bool held, struct pkt *const pkt[], unsigned int n,
	       struct port_counters *c, struct batch *scratch)
{
	if (likely(!paused && (held || try_lock(oq)))) {
		if (likely(backlog_empty(oq)) || drain(oq, c, scratch))
			put_direct(oq, pkt, n, c);
		else
			append(oq, pkt, n, c);
		return true;
	}
	append(oq, pkt, n, c);
	if (paused)
		return false;
	fence_full(); /* append before look at the lock; pairs with the fence in outq_end() */
	return try_lock(oq);
}

bool outq_end(struct outq *oq, struct port_counters *c, struct batch *scratch)
{
	bool empty;

	do {
		empty = backlog_empty(oq) || drain(oq, c, scratch);
		oq->txq->ops->flush(oq->txq, c);
		unlock(oq);
		fence_full(); /* unlock before look at the backlog; pairs with the one above */
	} while (unlikely(empty && !backlog_empty(oq) && try_lock(oq)));
	return !backlog_empty(oq);
}

bool outq_retry(struct outq *oq, struct port_counters *c, struct batch *scratch)
{
	if (backlog_empty(oq))
		return false;
	if (!try_lock(oq))
		return true;
	return outq_end(oq, c, scratch);
}

/* ---- control thread ---- */

int outq_create(struct outq **out, struct txq *txq, struct frame_pool *pool)
{
	struct outq *oq = aligned_alloc(CACHE_LINE, sizeof(*oq));
	int err;

	if (!oq)
		return -ENOMEM;
	memset(oq, 0, sizeof(*oq));
	oq->txq = txq;
	oq->pool = pool;
	oq->backlog = ptr_ring_create(OUTQ_BACKLOG, PTR_RING_MP | PTR_RING_SC);
	err = oq->backlog ? frame_pool_reserve(pool, OUTQ_BACKLOG) : -ENOMEM;
	if (err) {
		ptr_ring_destroy(oq->backlog);
		free(oq);
		return err;
	}
	*out = oq;
	return 0;
}

void outq_purge(struct outq *oq, struct port_counters *c)
{
	for (struct frame *f; (f = ptr_ring_pop(oq->backlog)) != NULL;) {
		release(oq, frame_chunks(f->len));
		frame_free(oq->pool, f);
		counter_add(&c->drop[DROP_PORT_DOWN], 1);
	}
	oq->congested = false;
}

void outq_destroy(struct outq *oq)
{
	if (!oq)
		return;
	for (struct frame *f; (f = ptr_ring_pop(oq->backlog)) != NULL;)
		frame_free(oq->pool, f);
	frame_pool_unreserve(oq->pool, OUTQ_BACKLOG);
	ptr_ring_destroy(oq->backlog);
	free(oq);
}

unsigned int outq_backlog(const struct outq *oq)
{
	return load_relaxed(&oq->waiting);
}

unsigned int outq_frames(const struct outq *oq)
{
	return rte_ring_count(oq->backlog);
}
