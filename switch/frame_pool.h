/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames that had to wait: private copies for the backlogs of output queues.
 *
 * A frame is a chain of chunks. The pool grows with the number of output queues, so that each can
 * fill its backlog without taking memory away from another. Any worker takes and gives; the control
 * thread grows the pool.
 */
#ifndef XVS_SWITCH_FRAME_POOL_H
#define XVS_SWITCH_FRAME_POOL_H

#include <stdint.h>

#include "ring/batch.h"

#define FRAME_CHUNK_SIZE 2048u
#define FRAME_CHUNK_DATA (FRAME_CHUNK_SIZE - 16u)
#define FRAME_CHUNKS_MAX ((FRAME_MAX + FRAME_CHUNK_DATA - 1) / FRAME_CHUNK_DATA)

struct frame {
	struct frame *next; /* further chunk of the same frame */
	uint32_t len;       /* of the whole frame; in the first chunk */
	uint32_t chunk_len; /* bytes in data[] */
	uint8_t data[FRAME_CHUNK_DATA];
};
_Static_assert(sizeof(struct frame) == FRAME_CHUNK_SIZE, "a frame chunk has its stated size");

struct frame_pool;

int frame_pool_create(struct frame_pool **out);
void frame_pool_destroy(struct frame_pool *pool);

/*
 * A new user that may hold up to `chunks` at a time: the pool grows if what former users left is
 * not enough. Returns 0, -ENOMEM, or -ENOSPC at its largest size.
 */
int frame_pool_reserve(struct frame_pool *pool, unsigned int chunks);

/* That user is gone and has given everything back. */
void frame_pool_unreserve(struct frame_pool *pool, unsigned int chunks);

/* Chunks that a frame of `len` bytes takes. */
static inline unsigned int frame_chunks(uint32_t len)
{
	return (len + FRAME_CHUNK_DATA - 1) / FRAME_CHUNK_DATA;
}

/* Worker: a private copy of the frame, or NULL when the pool is used up. */
struct frame *frame_copy(struct frame_pool *pool, const struct pkt *p);

/* Gives all chunks of the frame back. */
void frame_free(struct frame_pool *pool, struct frame *f);

/* Makes *p the frame; further chunks become segments of `batch`. */
void frame_to_pkt(const struct frame *f, struct pkt *p, struct batch *batch);

/* Chunks not in use, and chunks in all; equal at rest. */
unsigned int frame_pool_free_count(const struct frame_pool *pool);
unsigned int frame_pool_chunks(const struct frame_pool *pool);

#endif
