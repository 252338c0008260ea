/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The chunks of the UMEM and who has them.
 *
 * Free chunks are in one ring (many producers, many consumers) of 32-bit chunk numbers. Threads
 * meet there once per batch, not per frame: chunks that a socket receives into go back to its
 * own fill ring, and senders keep a small stack of their own.
 *
 * owner[] has one word per chunk, written by the thread that has the chunk: when it takes it
 * from the ring, gives it back, or hands it to another socket's transmit ring. So there is one
 * writer at a time, and the ring or the order within a worker passes the right on. It costs a
 * store per chunk taken or passed and nothing for frames that circulate. In exchange the
 * accounting does not depend on what the kernel had in its rings when a socket was closed or a
 * device vanished: umem_owner_close() scans the words (64 KiB for the default size) and frees
 * what belongs to the dead socket. Reading the rings' remains instead was rejected: entries that
 * the kernel has taken but not yet returned are in none of them.
 *
 * Full cannot happen (the ring holds all chunks). Empty: umem_take() returns less than asked
 * for; the receive side retries at its next poll, the transmit side drops and counts.
 *
 * Not used: rte_mempool (needs the EAL), a lock-free stack (ABA), a free list per socket (32
 * ports would each have to be given the worst case).
 */
#include <errno.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "ports/umem.h"

#define UMEM_CHUNKS_MIN 1024u
#define UMEM_CHUNKS_MAX 1048576u

struct umem {
	/* set at create */
	uint8_t *base;
	uint32_t chunks;
	struct rte_ring *free;
	/* shared, atomic: one word per chunk, see above */
	uint16_t *owner;
	/* control */
	uint8_t owner_used[UMEM_OWNERS_MAX];
};

static struct rte_ring *free_ring_create(uint32_t chunks)
{
	/* One slot of an rte_ring always stays empty. */
	unsigned int count = chunks * 2;
	ssize_t size = rte_ring_get_memsize_elem(sizeof(uint32_t), count);
	struct rte_ring *ring;

	if (size < 0)
		return NULL;
	ring = aligned_alloc(CACHE_LINE, (size_t)size);
	if (ring && rte_ring_init(ring, "umem", count, RING_F_MP_RTS_ENQ | RING_F_MC_RTS_DEQ)) {
		free(ring);
		return NULL;
	}
	return ring;
}

static void free_ring_fill(struct umem *u)
{
	for (uint32_t i = 0; i < u->chunks; i++)
		rte_ring_enqueue_elem(u->free, &i, sizeof(i));
}

int umem_create(struct umem **out, uint32_t chunks)
{
	struct umem *u;
	void *base;

	if (chunks < UMEM_CHUNKS_MIN || chunks > UMEM_CHUNKS_MAX || (chunks & (chunks - 1)))
		return -EINVAL;
	u = calloc(1, sizeof(*u));
	if (!u)
		return -ENOMEM;
	u->chunks = chunks;
	u->free = free_ring_create(chunks);
	u->owner = calloc(chunks, sizeof(*u->owner));
	base = mmap(NULL, umem_size(u), PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!u->free || !u->owner || base == MAP_FAILED)
		goto fail;
	u->base = base;
	/* A child would copy pages that the kernel has pinned for us. */
	madvise(base, umem_size(u), MADV_DONTFORK);
	free_ring_fill(u);
	*out = u;
	return 0;
fail:
	if (base != MAP_FAILED)
		munmap(base, umem_size(u));
	free(u->owner);
	free(u->free);
	free(u);
	return -ENOMEM;
}

void umem_destroy(struct umem *umem)
{
	if (!umem)
		return;
	munmap(umem->base, umem_size(umem));
	free(umem->owner);
	free(umem->free);
	free(umem);
}

uint32_t umem_chunks(const struct umem *umem)
{
	return umem->chunks;
}

uint8_t *umem_base(const struct umem *umem)
{
	return umem->base;
}

size_t umem_size(const struct umem *umem)
{
	return (size_t)umem->chunks * UMEM_CHUNK;
}

int umem_owner_open(struct umem *umem, uint16_t *owner)
{
	for (uint16_t i = UMEM_NO_OWNER + 1; i < UMEM_OWNERS_MAX; i++) {
		if (!umem->owner_used[i]) {
			umem->owner_used[i] = 1;
			*owner = i;
			return 0;
		}
	}
	return -ENOSPC;
}

uint32_t umem_owner_close(struct umem *umem, uint16_t owner)
{
	uint32_t n = 0;

	/* Words of other owners may change meanwhile, but never to or from this one. */
	for (uint32_t i = 0; i < umem->chunks; i++) {
		if (load_relaxed(&umem->owner[i]) != owner)
			continue;
		umem_give(umem, &i, 1);
		n++;
	}
	umem->owner_used[owner] = 0;
	return n;
}

unsigned int umem_take(struct umem *umem, uint16_t owner, uint32_t chunk[], unsigned int n)
{
	unsigned int got = rte_ring_dequeue_burst_elem(umem->free, chunk, sizeof(*chunk), n, NULL);

	/* Relaxed: the ring has handed the chunk, and with it its word, to this thread. */
	for (unsigned int i = 0; i < got; i++)
		store_relaxed(&umem->owner[chunk[i]], owner);
	return got;
}

void umem_give(struct umem *umem, const uint32_t chunk[], unsigned int n)
{
	/* Before the chunk is in the ring: behind it the word is the next owner's. */
	for (unsigned int i = 0; i < n; i++)
		store_relaxed(&umem->owner[chunk[i]], (uint16_t)UMEM_NO_OWNER);
	rte_ring_enqueue_bulk_elem(umem->free, chunk, sizeof(*chunk), n, NULL);
}

void umem_pass(struct umem *umem, uint32_t chunk, uint16_t owner)
{
	store_relaxed(&umem->owner[chunk], owner);
}

uint32_t umem_free_count(const struct umem *umem)
{
	return rte_ring_count(umem->free);
}

uint32_t umem_owned(const struct umem *umem, uint16_t owner)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < umem->chunks; i++)
		n += load_relaxed(&umem->owner[i]) == owner;
	return n;
}
