/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A batch: up to 32 frames on their way through a worker, borrowed, never owned.
 *
 * A receive queue fills it (rxq poll), the switch decides, output queues copy out of it, and
 * the receive queue takes its buffers back (rxq done). All of it happens within one round of
 * one worker: no pointer in here survives the round.
 *
 * The first PKT_HDR bytes of each frame are a private copy, made once. Whatever is judged
 * (addresses, VLAN, type) is read from it, and it is what receivers get: a guest that rewrites
 * its buffer meanwhile changes only bytes that nobody has looked at.
 */
#ifndef XVS_RING_BATCH_H
#define XVS_RING_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/copy.h"

#define BATCH_MAX 32 /* frames in a batch */
#define PKT_HDR   32 /* bytes of the private copy */
/* Segments behind the first of all frames of a batch; a longer chain ends the batch early. */
#define BATCH_SEGS 1536

#define ETH_HDR_LEN 14u
#define FRAME_MIN   ETH_HDR_LEN
/* Largest frame, in bytes: 65535 of IP behind an Ethernet header with one VLAN tag. */
#define FRAME_MAX (65535u + 18u)

#define PKT_NO_UMEM UINT32_MAX

/*
 * Values of pkt.consumed. The chunk of a frame that lies in the UMEM may be handed on by address
 * instead of being copied, but only to one output; the switch knows the number of outputs and
 * grants it, an AF_XDP output that uses the grant says so, and rxq done leaves that chunk alone.
 */
#define PKT_KEEP        0u /* set by pkt_set(): outputs must copy */
#define PKT_CONSUMED    1u /* set by the output: the chunk is its now */
#define PKT_MAY_CONSUME 2u /* set by the switch: this frame goes to one output, once */

struct pkt_seg {
	const uint8_t *base;
	uint32_t len;
};

/* One frame: hdr[0..hdr_len), then body[0..body_len), then more[0..nmore). One cache line. */
struct pkt {
	uint8_t hdr[PKT_HDR];
	const uint8_t *body;
	const struct pkt_seg *more;
	uint32_t len;      /* bytes of the whole frame, without virtio-net header */
	uint32_t body_len; /* bytes at body */
	uint32_t umem;     /* UMEM chunk that holds the frame, or PKT_NO_UMEM */
	uint16_t nmore;
	uint8_t hdr_len;  /* min(len, PKT_HDR) */
	uint8_t consumed; /* PKT_KEEP, PKT_MAY_CONSUME or PKT_CONSUMED */
} CACHE_ALIGNED;

_Static_assert(sizeof(struct pkt) == CACHE_LINE, "a pkt is one cache line");

struct batch {
	unsigned int count; /* frames in pkt[] */
	unsigned int nsegs; /* used entries of seg[] */
	struct pkt pkt[BATCH_MAX];
	struct pkt_seg seg[BATCH_SEGS];
};

static inline void batch_reset(struct batch *b)
{
	b->count = 0;
	b->nsegs = 0;
}

/* Makes *p the frame of `len` contiguous bytes at `frame`, with the private header copied. */
static inline void pkt_set(struct pkt *p, const uint8_t *frame, uint32_t len)
{
	if (likely(len >= PKT_HDR)) {
		copy_16(p->hdr, frame);
		copy_16(p->hdr + 16, frame + 16);
		p->hdr_len = PKT_HDR;
	} else {
		copy_frame(p->hdr, frame, len);
		p->hdr_len = (uint8_t)len;
	}
	p->body = frame + p->hdr_len;
	p->body_len = len - p->hdr_len;
	p->len = len;
	p->more = NULL;
	p->nmore = 0;
	p->umem = PKT_NO_UMEM;
	p->consumed = PKT_KEEP;
}

/* Copies the whole frame (p->len bytes) to the contiguous area `dst`. */
static inline void pkt_copy_out(const struct pkt *p, uint8_t *dst)
{
	if (likely(p->hdr_len == PKT_HDR)) {
		copy_16(dst, p->hdr);
		copy_16(dst + 16, p->hdr + 16);
	} else {
		copy_frame(dst, p->hdr, p->hdr_len);
	}
	dst += p->hdr_len;
	copy_frame(dst, p->body, p->body_len);
	dst += p->body_len;
	for (unsigned int i = 0; i < p->nmore; i++) {
		copy_frame(dst, p->more[i].base, p->more[i].len);
		dst += p->more[i].len;
	}
}

/* Position inside a frame, for output in pieces (receive buffers smaller than the frame). */
struct pkt_cursor {
	const struct pkt *pkt;
	unsigned int piece;  /* 0 = hdr, 1 = body, 2.. = more[piece - 2] */
	uint32_t piece_done; /* bytes of that piece already taken */
};

static inline void pkt_cursor_init(struct pkt_cursor *c, const struct pkt *p)
{
	c->pkt = p;
	c->piece = 0;
	c->piece_done = 0;
}

/* Copies the next up to `len` bytes to dst; returns how many (less only at the frame's end). */
uint32_t pkt_cursor_copy(struct pkt_cursor *c, uint8_t *dst, uint32_t len);

#endif
