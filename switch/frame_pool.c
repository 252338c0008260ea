/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pool behind the backlogs.
 *
 * Free chunks sit in one rte_ring (any worker takes and gives). Chunks come in slabs of anonymous
 * memory; pages are touched when a backlog first needs them. Slabs are kept until
 * the pool goes: a port that was removed leaves its share to those that follow.
 *
 * When the free list is empty frame_copy() fails and the caller drops with a counter. Since each
 * output queue adds as many chunks as its backlog may hold, that only happens for frames in the
 * hands of workers at that moment. Rejected: one allocation per frame, which would need a lock and
 * a system call in a worker.
 */
#include "switch/frame_pool.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "ring/ptr_ring.h"
#include "switch/outq.h"
#include "switch/vswitch.h"

/* All queues that the switch may have, with full backlogs. */
#define POOL_CHUNKS_MAX (SWITCH_QUEUES_MAX * OUTQ_BACKLOG)

struct slab {
	struct slab *next;
	void *memory;
	size_t size;
};

struct frame_pool {
	struct rte_ring *free; /* any worker */
	struct slab *slabs;    /* control */
	unsigned int chunks;   /* control: in all slabs */
	unsigned int reserved; /* control: sum of what users may hold */
};

int frame_pool_create(struct frame_pool **out)
{
	struct frame_pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return -ENOMEM;
	pool->free = ptr_ring_create(POOL_CHUNKS_MAX, PTR_RING_MP | PTR_RING_MC);
	if (!pool->free) {
		free(pool);
		return -ENOMEM;
	}
	*out = pool;
	return 0;
}

void frame_pool_destroy(struct frame_pool *pool)
{
	if (!pool)
		return;
	while (pool->slabs) {
		struct slab *s = pool->slabs;

		pool->slabs = s->next;
		munmap(s->memory, s->size);
		free(s);
	}
	ptr_ring_destroy(pool->free);
	free(pool);
}

static int add_slab(struct frame_pool *pool, unsigned int chunks)
{
	struct slab *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->size = (size_t)chunks * sizeof(struct frame);
	s->memory = mmap(NULL, s->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s->memory == MAP_FAILED) {
		free(s);
		return -ENOMEM;
	}
	s->next = pool->slabs;
	pool->slabs = s;
	pool->chunks += chunks;
	for (unsigned int i = 0; i < chunks; i++)
		ptr_ring_push(pool->free, (struct frame *)s->memory + i);
	return 0;
}

int frame_pool_reserve(struct frame_pool *pool, unsigned int chunks)
{
	const unsigned int want = pool->reserved + chunks;

	if (want > POOL_CHUNKS_MAX)
		return -ENOSPC;
	if (want > pool->chunks) {
		const int err = add_slab(pool, want - pool->chunks);

		if (err)
			return err;
	}
	pool->reserved = want;
	return 0;
}

void frame_pool_unreserve(struct frame_pool *pool, unsigned int chunks)
{
	pool->reserved -= chunks;
}

void frame_free(struct frame_pool *pool, struct frame *f)
{
	while (f) {
		struct frame *next = f->next;

		ptr_ring_push(pool->free, f);
		f = next;
	}
}

struct frame *frame_copy(struct frame_pool *pool, const struct pkt *p)
{
	struct frame *first = NULL;
	struct frame **tail = &first;
	struct pkt_cursor cursor;
	uint32_t left = p->len;

	pkt_cursor_init(&cursor, p);
	while (left) {
		struct frame *f = ptr_ring_pop(pool->free);

		if (!f) {
			frame_free(pool, first);
			return NULL;
		}
		f->next = NULL;
		f->len = p->len;
		f->chunk_len = pkt_cursor_copy(&cursor, f->data, MIN(left, FRAME_CHUNK_DATA));
		left -= f->chunk_len;
		*tail = f;
		tail = &f->next;
	}
	return first;
}

void frame_to_pkt(const struct frame *f, struct pkt *p, struct batch *batch)
{
	pkt_set(p, f->data, f->chunk_len);
	p->len = f->len;
	p->more = &batch->seg[batch->nsegs];
	for (f = f->next; f; f = f->next) {
		batch->seg[batch->nsegs++] = (struct pkt_seg){f->data, f->chunk_len};
		p->nmore++;
	}
}

unsigned int frame_pool_free_count(const struct frame_pool *pool)
{
	return rte_ring_count(pool->free);
}

unsigned int frame_pool_chunks(const struct frame_pool *pool)
{
	return pool->chunks;
}
