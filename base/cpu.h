/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CPU lists and pinning.
 */
#ifndef XVS_BASE_CPU_H
#define XVS_BASE_CPU_H

#include <pthread.h>

#define CPU_LIST_MAX 128

struct cpu_list {
	unsigned int count;
	unsigned int cpu[CPU_LIST_MAX];
};

/*
 * Parses "2,3,10-13" (ascending order not required, no duplicates).
 * Returns 0, -EINVAL for bad text or a duplicate, -ERANGE above CPU_LIST_MAX entries.
 */
int cpu_list_parse(const char *text, struct cpu_list *out);

/* The CPUs this process may run on, ascending. Returns 0 or a negative errno. */
int cpu_list_allowed(struct cpu_list *out);

/* Pins `thread` to one CPU. Returns 0 or a negative errno (-EINVAL: no such CPU). */
int cpu_pin(pthread_t thread, unsigned int cpu);

static inline void cpu_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

#endif
