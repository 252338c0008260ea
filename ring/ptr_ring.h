/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rte_ring of pointers in plain memory: no EAL, no hugepages, no name registry.
 *
 * Which threads may push and pop follows from the mode; the owner of a ring states them. Rings
 * with several threads at one end use rte_ring's relaxed tail: in its default mode a thread that
 * is preempted between claiming and filling a slot makes all others spin until it runs again, and
 * threads that outnumber the CPUs can spend their time doing only that.
 */
#ifndef XVS_RING_PTR_RING_H
#define XVS_RING_PTR_RING_H

#include <rte_ring.h>
#include <stdbool.h>

/* One of SP, MP (producers: single, multiple) with one of SC, MC (consumers). */
#define PTR_RING_SP RING_F_SP_ENQ
#define PTR_RING_SC RING_F_SC_DEQ
#define PTR_RING_MP RING_F_MP_RTS_ENQ
#define PTR_RING_MC RING_F_MC_RTS_DEQ

/* Holds up to `capacity` (1..2^20) pointers. Memory is touched as it is used. NULL: no memory. */
struct rte_ring *ptr_ring_create(unsigned int capacity, unsigned int mode);
void ptr_ring_destroy(struct rte_ring *ring);

/*
 * ThreadSanitizer cannot follow the order that a ring gives, since rte_ring writes its tail as one
 * 64-bit word and reads it as two halves. So it is told: what was written to an object before its
 * push is visible after its pop.
 */
#ifdef __SANITIZE_THREAD__
void __tsan_acquire(void *address);
void __tsan_release(void *address);
#define ptr_ring_hand_over(object) __tsan_release(object)
#define ptr_ring_take_over(object) __tsan_acquire(object)
#else
#define ptr_ring_hand_over(object) ((void)(object))
#define ptr_ring_take_over(object) ((void)(object))
#endif

static inline bool ptr_ring_push(struct rte_ring *ring, void *object)
{
	ptr_ring_hand_over(object);
	return rte_ring_enqueue(ring, object) == 0;
}

/* The oldest pointer, or NULL. */
static inline void *ptr_ring_pop(struct rte_ring *ring)
{
	void *object;

	if (rte_ring_dequeue(ring, &object))
		return NULL;
	ptr_ring_take_over(object);
	return object;
}

/*
 * PTR_RING_SC only: looks at up to n of the oldest pointers without removing them. Always to be
 * followed by ptr_ring_remove() with how many of them are done with.
 */
static inline unsigned int ptr_ring_look(struct rte_ring *ring, void **object, unsigned int n)
{
	n = rte_ring_dequeue_burst_start(ring, object, n, NULL);
	for (unsigned int i = 0; i < n; i++)
		ptr_ring_take_over(object[i]);
	return n;
}

static inline void ptr_ring_remove(struct rte_ring *ring, unsigned int n)
{
	rte_ring_dequeue_finish(ring, n);
}

#endif
