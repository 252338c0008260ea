/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small compiler helpers used everywhere. No code, no state.
 */
#ifndef XVS_BASE_COMPILER_H
#define XVS_BASE_COMPILER_H

#include <stddef.h>

#define CACHE_LINE 64

#define CACHE_ALIGNED          __attribute__((aligned(CACHE_LINE)))
#define likely(x)              __builtin_expect(!!(x), 1)
#define unlikely(x)            __builtin_expect(!!(x), 0)
#define ARRAY_LEN(a)           (sizeof(a) / sizeof((a)[0]))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))

/* DPDK's headers have one of their own, which they leave out when it is already there. */
#undef container_of
#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/*
 * Fetches a line to be written. For baseline x86-64 __builtin_prefetch(p, 1) is an ordinary
 * prefetch that leaves the line shared, and the store pays for it a second time; CPUs without
 * PREFETCHW take it for a no-op.
 */
static inline __attribute__((always_inline)) void prefetch_write(const void *p)
{
#if defined(__x86_64__)
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)p));
#else
	__builtin_prefetch(p, 1);
#endif
}

#endif
