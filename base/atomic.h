/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The only way this project touches memory that another thread or a guest writes.
 *
 * Plain objects with explicit order at the access, instead of _Atomic types, because most of
 * the shared words live in guest memory whose layout the virtio specification fixes. Every use
 * names its partner in a comment.
 */
#ifndef XVS_BASE_ATOMIC_H
#define XVS_BASE_ATOMIC_H

#include <stdint.h>

#define load_relaxed(p)     __atomic_load_n((p), __ATOMIC_RELAXED)
#define load_acquire(p)     __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define fence_full()        __atomic_thread_fence(__ATOMIC_SEQ_CST)

/*
 * Counter with one writing thread: a plain add for the writer, readable at any time by
 * others. No locked instruction.
 */
static inline void counter_add(uint64_t *counter, uint64_t n)
{
	store_relaxed(counter, load_relaxed(counter) + n);
}

#endif
