/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Time. Workers count in ticks of the CPU's constant counter; everybody else in nanoseconds
 * of CLOCK_MONOTONIC. clock_ticks_per_second() is measured once, by clock_init().
 */
#ifndef XVS_BASE_CLOCK_H
#define XVS_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

/* Measures the tick rate (takes about 10 ms). Call once, before threads start. */
void clock_init(void);

/* Ticks per second, as measured by clock_init(). */
uint64_t clock_ticks_per_second(void);

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t clock_ns(void);

/* Free-running counter, constant rate, cheap (no system call). */
static inline uint64_t clock_ticks(void)
{
#if defined(__x86_64__)
	return __rdtsc();
#elif defined(__aarch64__)
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#else
	return clock_ns();
#endif
}

#endif
