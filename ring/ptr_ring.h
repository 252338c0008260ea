/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rte_ring of pointers in plain memory: no EAL, no hugepages, no name registry.
 *
 * `mode` are rte_ring's flags: RING_F_SP_ENQ, RING_F_SC_DEQ; 0 is many producers and consumers.
 * Which threads may push and pop follows from it; the owner of a ring states them.
 */
#ifndef XVS_RING_PTR_RING_H
#define XVS_RING_PTR_RING_H

#include <rte_ring.h>
#include <stdbool.h>

/* Holds up to `capacity` (1..2^20) pointers. Memory is touched as it is used. NULL: no memory. */
struct rte_ring *ptr_ring_create(unsigned int capacity, unsigned int mode);
void ptr_ring_destroy(struct rte_ring *ring);

static inline bool ptr_ring_push(struct rte_ring *ring, void *object)
{
	return rte_ring_enqueue(ring, object) == 0;
}

/* The oldest pointer, or NULL. */
static inline void *ptr_ring_pop(struct rte_ring *ring)
{
	void *object;

	return rte_ring_dequeue(ring, &object) == 0 ? object : NULL;
}

#endif
