/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Set-up of the fast driver (fast.h), and what it does rarely: kicks.
 *
 * The rings of a started guest are taken over where they stand. Transmit buffers and receive
 * buffers keep the places that the guest gave them; all descriptors are filled once here, so
 * that a light driver never has to write one again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mac.h"
#include "guest/fast.h"

#define TEST_TYPE 0x88b5u /* IEEE local experimental */

static void fill_avail(struct vring_avail *avail, uint32_t size, uint16_t from)
{
	for (uint32_t i = 0; i < size; i++)
		store_relaxed(&avail->ring[(from + i) & (size - 1)],
			      (uint16_t)((from + i) & (size - 1)));
}

int fast_tx_init(struct fast_tx *q, struct guest *g, unsigned int pair)
{
	struct guest_ring *r = &g->pair[pair].tx;
	const uint32_t size = r->config.size;

	memset(q, 0, sizeof(*q));
	q->ring = r;
	q->desc = r->desc;
	q->avail = r->avail;
	q->used = r->used;
	q->buffer_gpa = g->pair[pair].tx_base;
	q->buffer = guest_ram_at(&g->ram, q->buffer_gpa, (uint64_t)size * g->tx_stride);
	q->stride = g->tx_stride;
	q->hdr_len = g->hdr_len;
	q->size = (uint16_t)size;
	q->mask = (uint16_t)(size - 1);
	q->free = calloc(size, sizeof(*q->free));
	q->length = calloc(size, sizeof(*q->length));
	if (!q->free || !q->length) {
		fast_tx_fini(q);
		return -ENOMEM;
	}
	q->avail_next = r->avail_next;
	q->used_seen = r->used_seen;
	for (uint32_t i = 0; i < size; i++)
		q->free[i] = (uint16_t)i;
	fill_avail(q->avail, size, q->avail_next);
	return 0;
}

void fast_tx_fini(struct fast_tx *q)
{
	free(q->free);
	free(q->length);
	q->free = NULL;
	q->length = NULL;
}

void fast_rx_init(struct fast_rx *q, struct guest *g, unsigned int pair)
{
	struct guest_ring *r = &g->pair[pair].rx;
	const uint32_t size = r->config.size;

	memset(q, 0, sizeof(*q));
	q->ring = r;
	q->desc = r->desc;
	q->avail = r->avail;
	q->used = r->used;
	q->buffer_gpa = g->pair[pair].rx_base;
	q->buffer = guest_ram_at(&g->ram, q->buffer_gpa, (uint64_t)size * g->rx_stride);
	q->stride = g->rx_stride;
	q->buffer_len = g->config.rx_buffer;
	q->hdr_len = g->hdr_len;
	q->size = (uint16_t)size;
	q->mask = (uint16_t)(size - 1);
	q->avail_next = r->avail_next;
	q->used_seen = r->used_seen;
	q->used_cached = r->used_seen;
}

/*
 * Length of the frames of head i. A period of twelve is 7 small, 4 middle and 1 large: 28:16:4.
 */
static uint32_t imix(uint32_t i)
{
	static const uint16_t length[12] = {64, 570, 64, 64, 570, 64, 64, 570, 64, 1518, 570, 64};

	return length[i % ARRAY_LEN(length)];
}

void fast_tx_set_frame(struct fast_tx *q, const struct mac *dst, const struct mac *src,
		       uint32_t len)
{
	uint8_t *frame = q->frame + q->hdr_len;

	memset(q->frame, 0, sizeof(q->frame));
	memcpy(frame, dst->octet, MAC_LEN);
	memcpy(frame + MAC_LEN, src->octet, MAC_LEN);
	frame[12] = TEST_TYPE >> 8;
	frame[13] = TEST_TYPE & 0xff;
	for (uint32_t i = 14; i < sizeof(q->frame) - q->hdr_len; i++)
		frame[i] = (uint8_t)i;
	for (uint32_t i = 0; i < q->size; i++) {
		const uint32_t bytes = q->hdr_len + (len == FAST_IMIX ? imix(i) : len);

		q->length[i] = (uint16_t)MIN(bytes, FAST_FRAME_MAX);
		memcpy(q->buffer + (size_t)i * q->stride, q->frame, q->length[i]);
		q->desc[i] = (struct vring_desc){
		    .addr = q->buffer_gpa + (uint64_t)i * q->stride,
		    .len = q->length[i],
		};
	}
}

/* 2.7.13.4.1, with flags or event index: "the last entry is new" is all that is asked here. */
static bool kick_wanted(const struct guest_ring *r, uint16_t avail_next)
{
	const uint16_t *event = (const uint16_t *)(const void *)&r->used->ring[r->config.size];

	fence_full(); /* the index must be visible before the device's wish is read */
	if (!r->config.event_idx)
		return !(load_relaxed(&r->used->flags) & VRING_USED_F_NO_NOTIFY);
	return (uint16_t)(avail_next - load_relaxed(event) - 1) < r->config.size;
}

void fast_tx_kick(struct fast_tx *q)
{
	if (!kick_wanted(q->ring, q->avail_next))
		return;
	q->kicks++;
	guest_ring_kick_always(q->ring);
}

void fast_rx_kick(struct fast_rx *q)
{
	if (kick_wanted(q->ring, q->avail_next))
		guest_ring_kick_always(q->ring);
}
