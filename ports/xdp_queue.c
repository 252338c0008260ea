/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One XDP socket: four rings shared with the kernel, and where each chunk goes.
 *
 *     receive   fill ring -> kernel -> RX ring -> batch -> fill ring again
 *     send      spare stack -> TX ring -> kernel -> completion ring -> spare stack
 *
 * Receive side (the worker that polls the queue): rxq poll hands out frames where they lie in
 * the UMEM; rxq done puts their chunks back into the fill ring. A chunk that an output took over
 * (PKT_CONSUMED) is replaced by a free one; `missing` counts those that could not be replaced,
 * and every later poll tries again, so that the number of receive chunks stays XDPQ_RX_CHUNKS.
 *
 * Send side (the holder of the output queue's lock): put first takes back all completions, then
 * writes frames: a frame that already lies in a chunk and that the switch gives away is passed
 * by address, with its private header written back over its first bytes (what was judged is
 * what is sent); others are copied into a spare chunk. flush publishes the ring and wakes the
 * kernel if it asks for that: through the kicker, or itself if there is none.
 *
 * `outstanding` counts frames put but not yet completed and never exceeds the size of the
 * completion ring, so that the kernel always has a slot to complete into and never waits for a
 * worker that has nothing more to send.
 *
 * Full: TX ring full -> put returns less, the switch queues or drops. No free chunk -> the frame
 * is dropped as "no_frame". Fill ring empty -> the kernel drops and counts (rx_fill_ring_empty).
 *
 * Without a kicker a flush makes a few calls at most; what they leave is sent by later polls of
 * the same queue (`tx_again`), so that a last frame does not wait for the next one.
 *
 * All chunks of the socket, in whichever ring, carry its number in the UMEM's owner words; that
 * is how xdp_queue_reclaim() frees them after a close without reading any ring.
 */
#include "ports/xdp_queue.h"

#include <errno.h>
#include <linux/if_xdp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <xdp/libxdp.h>
#include <xdp/xsk.h>

#include "base/atomic.h"
#include "ports/csum.h"
#include "ports/kicker.h"

#ifndef SOL_XDP
#define SOL_XDP 283
#endif
/* Linux 6.17: frames per sendto() in copy mode, 32 by default. */
#ifndef XDP_MAX_TX_SKB_BUDGET
#define XDP_MAX_TX_SKB_BUDGET 9
#endif

#define ETH_FRAME_MIN 60u /* without FCS: IEEE 802.3 section 4.2.3.3 */
#define TX_TRIES      4u  /* system calls in one flush without a kicker */
#define TX_SNDBUF     (4 * 1024 * 1024)

_Static_assert(UMEM_OWNERS_MAX <= KICKER_KICKS_MAX, "the kicker has a slot for every socket");

struct xdp_queue {
	struct rxq rxq;
	struct txq txq;
	/* set at create */
	struct umem *umem;
	struct kicker *kicker;
	/* control, while the queue is off */
	uint8_t *base; /* of the UMEM */
	struct xsk_socket *xsk;
	uint16_t owner; /* in the UMEM's books; UMEM_NO_OWNER while closed */
	bool zero_copy;
	bool complete; /* repair partial checksums */
	/* worker that polls */
	struct xsk_ring_cons rx CACHE_ALIGNED;
	struct xsk_ring_prod fill;
	uint32_t missing; /* chunks that the fill ring should have had */
	uint64_t rx_calls;
	uint64_t rx_errors;
	/* holder of the output queue's lock */
	struct xsk_ring_prod tx CACHE_ALIGNED;
	struct xsk_ring_cons completion;
	uint32_t unpublished; /* entries of the TX ring to submit */
	uint32_t outstanding; /* frames put and not completed */
	uint32_t nspare;
	uint64_t tx_calls;
	uint64_t tx_errors;
	uint32_t spare[XDPQ_TX_SPARE];
	/* shared, atomic: flush left frames in the TX ring, poll shall try again */
	uint32_t tx_again CACHE_ALIGNED;
	struct kick kick;
};

/* ---- receive ---- */

static void rx_refill(struct xdp_queue *q, const uint32_t chunk[], unsigned int n)
{
	uint32_t idx;

	if (!n)
		return;
	if (unlikely(!xsk_ring_prod__reserve(&q->fill, n, &idx))) {
		/* Only with more chunks than XDPQ_RX_CHUNKS in this ring; none may be lost. */
		umem_give(q->umem, chunk, n);
		q->missing += n;
		return;
	}
	for (unsigned int i = 0; i < n; i++)
		*xsk_ring_prod__fill_addr(&q->fill, idx + i) = (uint64_t)chunk[i] * UMEM_CHUNK;
	xsk_ring_prod__submit(&q->fill, n);
}

static void rx_replace_missing(struct xdp_queue *q)
{
	uint32_t chunk[BATCH_MAX];
	unsigned int n = umem_take(q->umem, q->owner, chunk, MIN(q->missing, (uint32_t)BATCH_MAX));

	q->missing -= n;
	rx_refill(q, chunk, n);
}

/* Nothing received: see to what nobody else would, and wake a driver that waits for chunks. */
static void rx_idle(struct xdp_queue *q)
{
	if (unlikely(q->missing))
		rx_replace_missing(q);
	if (unlikely(load_relaxed(&q->tx_again)) &&
	    kick_now(&q->kick, KICK_TX, 1, &q->rx_calls, &q->rx_errors))
		store_relaxed(&q->tx_again, 0);
	if (likely(!xsk_ring_prod__needs_wakeup(&q->fill)))
		return;
	if (q->kicker)
		kicker_ask(q->kicker, &q->kick, KICK_RX);
	else
		kick_now(&q->kick, KICK_RX, 1, &q->rx_calls, &q->rx_errors);
}

static void rx_frame(struct xdp_queue *q, const struct xdp_desc *desc, struct batch *batch,
		     struct port_counters *c)
{
	uint8_t *frame = q->base + desc->addr;
	const uint32_t chunk = (uint32_t)(desc->addr / UMEM_CHUNK);
	struct pkt *pkt = &batch->pkt[batch->count];

	if (unlikely(desc->len < FRAME_MIN)) {
		counter_add(&c->drop[DROP_RUNT], 1);
		rx_refill(q, &chunk, 1);
		return;
	}
	if (q->complete && csum_complete(frame, desc->len))
		counter_add(&c->value[CTR_CSUM_COMPLETED], 1);
	pkt_set(pkt, frame, desc->len);
	pkt->umem = chunk;
	batch->count++;
}

static unsigned int xdp_poll(struct rxq *rxq, struct batch *batch, struct port_counters *c)
{
	struct xdp_queue *q = xdp_queue_of(rxq);
	struct xdp_desc desc[BATCH_MAX];
	uint32_t idx = 0, n = xsk_ring_cons__peek(&q->rx, BATCH_MAX, &idx);

	batch_reset(batch);
	if (!n) {
		rx_idle(q);
		return 0;
	}
	for (uint32_t i = 0; i < n; i++) {
		desc[i] = *xsk_ring_cons__rx_desc(&q->rx, idx + i);
		__builtin_prefetch(q->base + desc[i].addr);
	}
	xsk_ring_cons__release(&q->rx, n);
	for (uint32_t i = 0; i < n; i++)
		rx_frame(q, &desc[i], batch, c);
	return batch->count;
}

static void xdp_done(struct rxq *rxq, struct batch *batch, struct port_counters *c)
{
	struct xdp_queue *q = xdp_queue_of(rxq);
	uint32_t chunk[BATCH_MAX];
	unsigned int n = 0;

	(void)c;
	for (unsigned int i = 0; i < batch->count; i++) {
		if (batch->pkt[i].consumed == PKT_CONSUMED)
			q->missing++;
		else
			chunk[n++] = batch->pkt[i].umem;
	}
	rx_refill(q, chunk, n);
	if (q->missing)
		rx_replace_missing(q);
}

/* ---- send ---- */

static void tx_spare_push(struct xdp_queue *q, uint32_t chunk)
{
	if (unlikely(q->nspare == XDPQ_TX_SPARE)) {
		q->nspare -= XDPQ_TX_SPARE / 2;
		umem_give(q->umem, q->spare + q->nspare, XDPQ_TX_SPARE / 2);
	}
	q->spare[q->nspare++] = chunk;
}

/* Takes back all that the kernel has completed. */
static void tx_reap(struct xdp_queue *q)
{
	uint32_t idx, n = xsk_ring_cons__peek(&q->completion, XDPQ_TX_RING, &idx);

	if (!n)
		return;
	for (uint32_t i = 0; i < n; i++)
		tx_spare_push(
		    q, (uint32_t)(*xsk_ring_cons__comp_addr(&q->completion, idx + i) / UMEM_CHUNK));
	xsk_ring_cons__release(&q->completion, n);
	q->outstanding -= n;
}

/* A free chunk for a copy. False when the whole UMEM is in use. */
static bool tx_spare_pop(struct xdp_queue *q, uint32_t *chunk)
{
	if (unlikely(!q->nspare))
		q->nspare = umem_take(q->umem, q->owner, q->spare, XDPQ_TX_SPARE / 2);
	if (unlikely(!q->nspare))
		return false;
	*chunk = q->spare[--q->nspare];
	return true;
}

/* True when the frame lies in one chunk that it may keep, with room for the padding. */
static bool tx_by_address(const struct pkt *pkt, uint64_t offset)
{
	return pkt->consumed == PKT_MAY_CONSUME && pkt->umem != PKT_NO_UMEM && !pkt->nmore &&
	       offset % UMEM_CHUNK + MAX(pkt->len, ETH_FRAME_MIN) <= UMEM_CHUNK;
}

/* Brings the frame into a chunk of ours; its address in the UMEM, or UINT64_MAX: no chunk. */
static uint64_t tx_place(struct xdp_queue *q, struct pkt *pkt)
{
	/* Meaningful only for a frame in the UMEM, as contiguous as pkt_set() made it. */
	uint64_t offset = (uint64_t)((uintptr_t)pkt->body - pkt->hdr_len - (uintptr_t)q->base);
	uint32_t chunk;

	if (tx_by_address(pkt, offset)) {
		umem_pass(q->umem, pkt->umem, q->owner);
		pkt->consumed = PKT_CONSUMED;
		copy_frame(q->base + offset, pkt->hdr, pkt->hdr_len);
		return offset;
	}
	if (!tx_spare_pop(q, &chunk))
		return UINT64_MAX;
	offset = (uint64_t)chunk * UMEM_CHUNK;
	pkt_copy_out(pkt, q->base + offset);
	return offset;
}

/* tx_room() has said that there is a slot. */
static void tx_frame(struct xdp_queue *q, struct pkt *pkt, struct port_counters *c)
{
	uint64_t offset = tx_place(q, pkt);
	struct xdp_desc *desc;
	uint32_t idx = 0;

	if (unlikely(offset == UINT64_MAX)) {
		counter_add(&c->drop[DROP_NO_FRAME], 1);
		return;
	}
	/* Zeros, or an earlier frame's bytes would leave the machine. */
	if (pkt->len < ETH_FRAME_MIN)
		memset(q->base + offset + pkt->len, 0, ETH_FRAME_MIN - pkt->len);
	xsk_ring_prod__reserve(&q->tx, 1, &idx);
	desc = xsk_ring_prod__tx_desc(&q->tx, idx);
	desc->addr = offset;
	desc->len = MAX(pkt->len, ETH_FRAME_MIN);
	desc->options = 0;
	q->unpublished++;
	q->outstanding++;
	counter_add(&c->value[CTR_TX_PACKETS], 1);
	counter_add(&c->value[CTR_TX_BYTES], pkt->len);
}

/*
 * Two limits: the kernel moves the TX ring's consumer index only after a batch, so that a frame may
 * be completed before its slot is free, and the other way round while frames are in flight.
 */
static bool tx_room(struct xdp_queue *q)
{
	return q->outstanding < XDPQ_TX_RING && xsk_prod_nb_free(&q->tx, 1) > 0;
}

static unsigned int xdp_put(struct txq *txq, struct pkt *const pkt[], unsigned int n,
			    struct port_counters *c)
{
	struct xdp_queue *q = container_of(txq, struct xdp_queue, txq);
	unsigned int i;

	tx_reap(q);
	for (i = 0; i < n && tx_room(q); i++)
		tx_frame(q, pkt[i], c);
	return i;
}

static void tx_wake(struct xdp_queue *q)
{
	if (q->kicker)
		kicker_ask(q->kicker, &q->kick, KICK_TX);
	else if (!kick_now(&q->kick, KICK_TX, TX_TRIES, &q->tx_calls, &q->tx_errors))
		store_relaxed(&q->tx_again, 1);
}

static void xdp_flush(struct txq *txq, struct port_counters *c)
{
	struct xdp_queue *q = container_of(txq, struct xdp_queue, txq);

	if (!q->unpublished)
		return;
	xsk_ring_prod__submit(&q->tx, q->unpublished);
	q->unpublished = 0;
	/* The index before the flag: a driver raises the flag and then looks at the index. */
	fence_full();
	if (xsk_ring_prod__needs_wakeup(&q->tx)) {
		counter_add(&c->value[CTR_NOTIFY_SENT], 1);
		tx_wake(q);
	} else {
		counter_add(&c->value[CTR_NOTIFY_SAVED], 1);
	}
}

static const struct rxq_ops xdp_rxq_ops = {.poll = xdp_poll, .done = xdp_done};
static const struct txq_ops xdp_txq_ops = {.put = xdp_put, .flush = xdp_flush};

/* ---- control ---- */

int xdp_queue_create(struct xdp_queue **out, struct port *port, uint16_t index, struct umem *umem,
		     struct kicker *kicker)
{
	struct xdp_queue *q = aligned_alloc(CACHE_LINE, sizeof(*q));

	if (!q)
		return -ENOMEM;
	memset(q, 0, sizeof(*q));
	q->rxq = (struct rxq){.ops = &xdp_rxq_ops, .port = port, .index = index};
	q->txq = (struct txq){
	    .ops = &xdp_txq_ops, .port = port, .index = index, .max_frame = XDPQ_TX_FRAME_MAX};
	q->umem = umem;
	q->base = umem_base(umem);
	q->kicker = kicker;
	*out = q;
	return 0;
}

void xdp_queue_destroy(struct xdp_queue *q)
{
	free(q);
}

struct rxq *xdp_queue_rxq(struct xdp_queue *q)
{
	return &q->rxq;
}

struct txq *xdp_queue_txq(struct xdp_queue *q)
{
	return &q->txq;
}

struct xdp_queue *xdp_queue_of(struct rxq *rxq)
{
	return container_of(rxq, struct xdp_queue, rxq);
}

/* libxdp would write to stderr; all that it says comes back as an error as well. */
static int libxdp_message(enum libxdp_print_level level, const char *fmt, va_list args)
{
	(void)level;
	(void)fmt;
	(void)args;
	return 0;
}

int xdp_queue_register(struct xdp_queue *q, struct xsk_umem **out)
{
	const struct xsk_umem_config config = {
	    .fill_size = XDPQ_FILL_RING,
	    .comp_size = XDPQ_TX_RING,
	    .frame_size = UMEM_CHUNK,
	};

	libxdp_set_print(libxdp_message);
	return xsk_umem__create(out, q->base, umem_size(q->umem), &q->fill, &q->completion,
				&config);
}

/* Hints, all of them: the kernel may be older or the right missing. */
static void set_options(int fd)
{
	const int sndbuf = TX_SNDBUF;
	const uint32_t budget = XDPQ_TX_RING;

	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &sndbuf, sizeof(sndbuf)))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &sndbuf, sizeof(sndbuf));
	setsockopt(fd, SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &budget, sizeof(budget));
}

static bool query_zero_copy(int fd)
{
	struct xdp_options options = {0};
	socklen_t len = sizeof(options);

	return getsockopt(fd, SOL_XDP, XDP_OPTIONS, &options, &len) == 0 &&
	       (options.flags & XDP_OPTIONS_ZEROCOPY);
}

int xdp_queue_open(struct xdp_queue *q, struct xsk_umem *registration, const char *device,
		   uint16_t bind_flags)
{
	const struct xsk_socket_config config = {
	    .rx_size = XDPQ_RX_RING,
	    .tx_size = XDPQ_TX_RING,
	    .libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD,
	    .bind_flags = (uint16_t)(bind_flags | XDP_USE_NEED_WAKEUP),
	};
	int err = umem_owner_open(q->umem, &q->owner);

	if (err)
		return err;
	err = xsk_socket__create_shared(&q->xsk, device, q->rxq.index, registration, &q->rx, &q->tx,
					&q->fill, &q->completion, &config);
	if (err) {
		q->xsk = NULL;
		xdp_queue_reclaim(q);
		return err;
	}
	set_options(xsk_socket__fd(q->xsk));
	q->zero_copy = query_zero_copy(xsk_socket__fd(q->xsk));
	q->missing = 0;
	q->unpublished = 0;
	q->outstanding = 0;
	q->nspare = 0;
	q->tx_again = 0;
	q->kick.fd = xsk_socket__fd(q->xsk);
	q->kick.tx_producer = q->tx.producer;
	q->kick.tx_consumer = q->tx.consumer;
	return 0;
}

int xdp_queue_start(struct xdp_queue *q, bool complete)
{
	uint32_t chunk[XDPQ_RX_CHUNKS];
	unsigned int n = umem_take(q->umem, q->owner, chunk, XDPQ_RX_CHUNKS);

	q->complete = complete;
	rx_refill(q, chunk, n);
	return n == XDPQ_RX_CHUNKS ? 0 : -ENOMEM;
}

void xdp_queue_close(struct xdp_queue *q)
{
	if (!q->xsk)
		return;
	if (q->kicker)
		kicker_forget(q->kicker, &q->kick);
	xsk_socket__delete(q->xsk);
	q->xsk = NULL;
	q->zero_copy = false;
	/* libxdp expects the cached indices of new rings to be zero. */
	memset(&q->rx, 0, sizeof(q->rx));
	memset(&q->fill, 0, sizeof(q->fill));
	memset(&q->tx, 0, sizeof(q->tx));
	memset(&q->completion, 0, sizeof(q->completion));
}

void xdp_queue_reclaim(struct xdp_queue *q)
{
	if (q->owner == UMEM_NO_OWNER)
		return;
	umem_owner_close(q->umem, q->owner);
	q->owner = UMEM_NO_OWNER;
}

void xdp_queue_abandon(struct xdp_queue *q)
{
	q->owner = UMEM_NO_OWNER;
}

int xdp_queue_fd(const struct xdp_queue *q)
{
	return xsk_socket__fd(q->xsk);
}

bool xdp_queue_zero_copy(const struct xdp_queue *q)
{
	return q->zero_copy;
}

/* ---- inspection ---- */

int xdp_queue_statistics(const struct xdp_queue *q, struct xdp_statistics *out)
{
	socklen_t len = sizeof(*out);

	memset(out, 0, sizeof(*out));
	if (!q->xsk)
		return -ENOTCONN;
	return getsockopt(xsk_socket__fd(q->xsk), SOL_XDP, XDP_STATISTICS, out, &len) ? -errno : 0;
}

static uint32_t ring_level(const uint32_t *producer, const uint32_t *consumer)
{
	return load_relaxed(producer) - load_relaxed(consumer);
}

void xdp_queue_levels(const struct xdp_queue *q, struct xdp_levels *out)
{
	memset(out, 0, sizeof(*out));
	if (!q->xsk)
		return;
	out->fill = ring_level(q->fill.producer, q->fill.consumer);
	out->rx = ring_level(q->rx.producer, q->rx.consumer);
	out->tx = ring_level(q->tx.producer, q->tx.consumer);
	out->completion = ring_level(q->completion.producer, q->completion.consumer);
	out->owned = umem_owned(q->umem, q->owner);
}

uint64_t xdp_queue_kicks(const struct xdp_queue *q)
{
	return load_relaxed(&q->rx_calls) + load_relaxed(&q->tx_calls) +
	       load_relaxed(&q->kick.calls);
}
