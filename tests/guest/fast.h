/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The driver of guest.h made fast: what a poll-mode driver in a guest would do, for load
 * generation. One thread plays several guests, so each packet may cost only 60-75 ticks for
 * sender and receiver together; otherwise the guests are the limit, not the switch.
 *
 * Behaves as a realistic driver: descriptors and available entries are rewritten for each
 * packet, header and frame are written (its first line at least), used entries are read, the
 * received header and first payload line are read, buffers go back in the order of their
 * return. FAST_LIGHT leaves out what a cheaper driver could leave out: it does not rewrite
 * descriptors, nor touch payload, and trusts that the device returns in order.
 *
 * Indices are cached: the peer's index is read only when the cached value is used up, and
 * whether the device wants a kick is looked at only when the ring is full or fast_tx_kick() is
 * called, because both lines are the device's.
 *
 * A sender may put a value of its own into each frame (fast_tx_burst_edit(): addresses, time
 * stamps), and a receiver may collect what stands where time stamps stand.
 *
 * Everything on the hot path is inline with a constant `light`, so that the compiler makes two
 * versions of each loop. No fault checks beyond those that keep this process safe.
 */
#ifndef XVS_TESTS_GUEST_FAST_H
#define XVS_TESTS_GUEST_FAST_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/copy.h"
#include "base/mac.h"
#include "guest/guest.h"

#define FAST_BATCH     32u
#define FAST_FRAME_MAX 1536u
#define FAST_WRITTEN   80u /* of each transmit buffer per frame: 12 + 64, rounded up */

enum fast_kind { FAST_REALISTIC, FAST_LIGHT };

/* Transmit queue. */
struct fast_tx {
	/* set at create */
	struct vring_desc *desc;
	struct vring_avail *avail;
	const struct vring_used *used;
	uint8_t *buffer; /* of descriptor 0 */
	uint64_t buffer_gpa;
	uint32_t stride;
	uint32_t hdr_len;
	uint16_t size;
	uint16_t mask;
	uint16_t *free;   /* ring of free heads, `size` entries */
	uint16_t *length; /* per head: bytes of its frames, header included */
	struct guest_ring *ring;

	/* driver */
	uint16_t avail_next CACHE_ALIGNED;
	uint16_t used_seen; /* used entries taken */
	uint64_t sent;      /* frames made available */
	uint64_t kicks;
	uint8_t frame[FAST_FRAME_MAX] CACHE_ALIGNED; /* template behind an empty header */
};

/* Receive queue. */
struct fast_rx {
	/* set at create */
	struct vring_desc *desc;
	struct vring_avail *avail;
	const struct vring_used *used;
	const uint8_t *buffer;
	uint64_t buffer_gpa;
	uint32_t stride;
	uint32_t buffer_len;
	uint32_t hdr_len;
	uint16_t size;
	uint16_t mask;
	struct guest_ring *ring;

	/* driver */
	uint16_t avail_next CACHE_ALIGNED;
	uint16_t used_seen;
	uint16_t used_cached; /* last value of used->idx that was read */
	uint64_t received;    /* frames; continued buffers of merged ones count as well */
	uint64_t bytes;       /* without headers */
	uint64_t bad;         /* used entries that no correct device writes */
	uint64_t touched;     /* sum over payload that was read, so that the reads stay */
};

/* Take over the rings of a started guest: from now on its rings belong to these. 0 or -ENOMEM. */
int fast_tx_init(struct fast_tx *q, struct guest *g, unsigned int pair);
void fast_tx_fini(struct fast_tx *q);
void fast_rx_init(struct fast_rx *q, struct guest *g, unsigned int pair);

/*
 * Frames of `len` bytes (14..FAST_FRAME_MAX - header), from `src` to `dst`, type 0x88b5. With
 * FAST_IMIX as length: 28 of 64, 16 of 570 and 4 of 1518 bytes, well mixed.
 */
#define FAST_IMIX         0u
#define FAST_IMIX_AVERAGE 354u
void fast_tx_set_frame(struct fast_tx *q, const struct mac *dst, const struct mac *src,
		       uint32_t len);

/* Writes the kick eventfd if the device wants it; a fence is included. */
void fast_tx_kick(struct fast_tx *q);
void fast_rx_kick(struct fast_rx *q);

/* A line that is about to be written: brings it here in a writable state at once. */
static inline void fast_prefetch_write(const void *p)
{
#if defined(__x86_64__)
	__asm__ volatile("prefetchw (%0)" : : "r"(p));
#else
	__builtin_prefetch(p, 1);
#endif
}

/* Takes what the device has returned; heads go back to the free ring in that order. */
static inline void fast_tx_reap(struct fast_tx *q, bool light)
{
	const uint16_t now = load_acquire(&q->used->idx); /* pairs with the device's release */
	const uint16_t n = (uint16_t)(now - q->used_seen);

	if (n > q->size)
		return;
	if (!light) {
		for (uint16_t i = 0; i < n; i++) {
			const uint16_t slot = (uint16_t)(q->used_seen + i) & q->mask;

			q->free[slot] = (uint16_t)(q->used->ring[slot].id & q->mask);
		}
	}
	q->used_seen = now;
}

static inline void fast_tx_write(struct fast_tx *q, uint16_t head, bool light)
{
	uint8_t *buf = q->buffer + (size_t)head * q->stride;

	if (light)
		return;
	/* header and the start of the frame: FAST_WRITTEN bytes of the template */
	for (unsigned int i = 0; i < FAST_WRITTEN; i += 16)
		copy_16(buf + i, q->frame + i);
	q->desc[head] = (struct vring_desc){
	    .addr = q->buffer_gpa + (uint64_t)head * q->stride,
	    .len = q->length[head],
	};
}

/* Room in the ring as far as is known without looking. */
static inline uint16_t fast_tx_room(const struct fast_tx *q)
{
	return (uint16_t)(q->size - (uint16_t)(q->avail_next - q->used_seen));
}

/* What a sender changes in each frame: the first `len` bytes of value[i] at byte `at` of it. */
struct fast_edit {
	uint32_t at; /* + len <= FAST_WRITTEN - header */
	uint32_t len;
	const uint64_t *value;
};

#define FAST_STAMP_AT 44u /* of a frame: in the second line of its buffer, which is read anyway */

/* `edit` NULL: frames as they are; never with `light`. */
static inline unsigned int fast_tx_offer(struct fast_tx *q, unsigned int n, bool light,
					 const struct fast_edit *edit)
{
	if (fast_tx_room(q) < n) {
		fast_tx_reap(q, light);
		if (fast_tx_room(q) < n)
			return 0;
	}
	for (unsigned int i = 0; !light && i < n; i++) {
		const uint16_t head = q->free[(q->avail_next + i) & q->mask];

		fast_prefetch_write(q->buffer + (size_t)head * q->stride);
		fast_prefetch_write(q->buffer + (size_t)head * q->stride + CACHE_LINE);
	}
	for (unsigned int i = 0; i < n; i++) {
		const uint16_t slot = (uint16_t)(q->avail_next + i) & q->mask;
		const uint16_t head = light ? slot : q->free[slot];

		fast_tx_write(q, head, light);
		if (edit)
			memcpy(q->buffer + (size_t)head * q->stride + q->hdr_len + edit->at,
			       &edit->value[i], edit->len);
		if (!light)
			store_relaxed(&q->avail->ring[slot], head);
	}
	q->avail_next = (uint16_t)(q->avail_next + n);
	store_release(&q->avail->idx, q->avail_next); /* pairs with the device's acquire */
	q->sent += n;
	return n;
}

/* Makes n frames available and returns n, or 0 when there is no room for all of them. */
static inline unsigned int fast_tx_burst(struct fast_tx *q, unsigned int n, bool light)
{
	return fast_tx_offer(q, n, light, NULL);
}

/* The same with `len` bytes of value[i] at byte `at` of the i-th frame. */
static inline unsigned int fast_tx_burst_edit(struct fast_tx *q, unsigned int n, uint32_t at,
					      uint32_t len, const uint64_t *value)
{
	const struct fast_edit edit = {.at = at, .len = len, .value = value};

	return fast_tx_offer(q, n, false, &edit);
}

/* Reads what a receiver cannot do without, and posts the buffer again. Its time stamp. */
static inline uint64_t fast_rx_one(struct fast_rx *q, const struct vring_used_elem *e, bool light)
{
	const uint16_t id = (uint16_t)(e->id & q->mask);
	const uint8_t *buf = q->buffer + (size_t)id * q->stride;

	q->bad += e->id >= q->size || e->len < q->hdr_len || e->len > q->buffer_len;
	q->bytes += e->len - q->hdr_len;
	uint64_t word[3] = {0};

	if (!light) {
		memcpy(word, buf, 8);                                  /* header */
		memcpy(word + 1, buf + q->hdr_len, 8);                 /* destination, source */
		memcpy(word + 2, buf + q->hdr_len + FAST_STAMP_AT, 8); /* the second line */
		q->touched += word[0] + word[1] + word[2];
		q->desc[id] = (struct vring_desc){
		    .addr = q->buffer_gpa + (uint64_t)id * q->stride,
		    .len = q->buffer_len,
		    .flags = VRING_DESC_F_WRITE,
		};
		store_relaxed(&q->avail->ring[q->avail_next & q->mask], id);
	}
	q->avail_next++;
	return word[2];
}

/* stamps NULL: not wanted. */
static inline unsigned int fast_rx_take(struct fast_rx *q, unsigned int n, bool light,
					uint64_t *stamps)
{
	uint16_t there = (uint16_t)(q->used_cached - q->used_seen);

	if (there == 0) {
		q->used_cached = load_acquire(&q->used->idx); /* pairs with the device's release */
		there = (uint16_t)(q->used_cached - q->used_seen);
		if (there == 0)
			return 0;
	}
	n = MIN(n, (unsigned int)there);
	for (unsigned int i = 0; !light && i < n; i++) {
		const struct vring_used_elem *e = &q->used->ring[(q->used_seen + i) & q->mask];
		const uint8_t *buf = q->buffer + (size_t)(e->id & q->mask) * q->stride;

		__builtin_prefetch(buf);
		__builtin_prefetch(buf + CACHE_LINE);
	}
	for (unsigned int i = 0; i < n; i++) {
		const uint64_t stamp =
		    fast_rx_one(q, &q->used->ring[(q->used_seen + i) & q->mask], light);

		if (stamps)
			stamps[i] = stamp;
	}
	q->used_seen = (uint16_t)(q->used_seen + n);
	store_release(&q->avail->idx, q->avail_next); /* pairs with the device's acquire */
	q->received += n;
	return n;
}

/* Takes up to n used buffers and posts them again; returns how many. */
static inline unsigned int fast_rx_burst(struct fast_rx *q, unsigned int n, bool light)
{
	return fast_rx_take(q, n, light, NULL);
}

/* The same, with the eight bytes at FAST_STAMP_AT of each frame. */
static inline unsigned int fast_rx_burst_stamps(struct fast_rx *q, unsigned int n, uint64_t *stamps)
{
	return fast_rx_take(q, n, false, stamps);
}

#endif
