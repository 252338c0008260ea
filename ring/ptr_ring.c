/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Life cycle of rings of pointers.
 *
 * rte_ring works on any aligned memory; taking it from anonymous mmap() means that a large ring
 * that is hardly used costs address space only (64 ports' free lists and backlogs would otherwise
 * be megabytes that a small host misses). RING_F_EXACT_SZ keeps capacities as asked for.
 *
 * Control thread creates and destroys; pushing and popping is inline in the header.
 */
#include "ring/ptr_ring.h"

#include <sys/mman.h>

#define CAPACITY_MAX (1u << 20)

static size_t mapping_size(unsigned int slots)
{
	return (size_t)rte_ring_get_memsize(rte_align32pow2(slots));
}

struct rte_ring *ptr_ring_create(unsigned int capacity, unsigned int mode)
{
	if (capacity == 0 || capacity > CAPACITY_MAX)
		return NULL;
	struct rte_ring *ring = mmap(NULL, mapping_size(capacity + 1), PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (ring == MAP_FAILED)
		return NULL;
	if (rte_ring_init(ring, "xvs", capacity, mode | RING_F_EXACT_SZ)) {
		munmap(ring, mapping_size(capacity + 1));
		return NULL;
	}
	return ring;
}

void ptr_ring_destroy(struct rte_ring *ring)
{
	if (ring)
		munmap(ring, mapping_size(rte_ring_get_capacity(ring) + 1));
}
