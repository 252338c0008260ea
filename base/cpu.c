/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CPU lists as operators write them ("2,3,10-13") and pinning of threads.
 *
 * Parsing is strict: a list that is not wholly understood is refused, because a worker that
 * runs on a CPU that nobody meant is harder to find than a start that fails. Whether a CPU
 * exists is left to the kernel, which says so in cpu_pin(). Control thread only.
 *
 * Rejected: libnuma's parser, which accepts what it does not understand as "all".
 */
#include "base/cpu.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/compiler.h"

static bool parse_number(const char **text, unsigned int *out)
{
	char *end;

	if (**text < '0' || **text > '9')
		return false;
	errno = 0;
	const unsigned long value = strtoul(*text, &end, 10);

	if (errno || value >= CPU_SETSIZE)
		return false;
	*text = end;
	*out = (unsigned int)value;
	return true;
}

static bool contains(const struct cpu_list *list, unsigned int cpu)
{
	for (unsigned int i = 0; i < list->count; i++)
		if (list->cpu[i] == cpu)
			return true;
	return false;
}

static int append(struct cpu_list *list, unsigned int cpu)
{
	if (contains(list, cpu))
		return -EINVAL;
	if (list->count == CPU_LIST_MAX)
		return -ERANGE;
	list->cpu[list->count++] = cpu;
	return 0;
}

static int append_range(struct cpu_list *list, const char **text)
{
	unsigned int first, last;

	if (!parse_number(text, &first))
		return -EINVAL;
	last = first;
	if (**text == '-') {
		(*text)++;
		if (!parse_number(text, &last) || last < first)
			return -EINVAL;
	}
	for (unsigned int cpu = first; cpu <= last; cpu++) {
		const int err = append(list, cpu);

		if (err)
			return err;
	}
	return 0;
}

int cpu_list_parse(const char *text, struct cpu_list *out)
{
	struct cpu_list list = {0};

	for (;;) {
		const int err = append_range(&list, &text);

		if (err)
			return err;
		if (*text == '\0')
			break;
		if (*text++ != ',')
			return -EINVAL;
	}
	*out = list;
	return 0;
}

int cpu_list_allowed(struct cpu_list *out)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return -errno;
	out->count = 0;
	for (unsigned int cpu = 0; cpu < CPU_SETSIZE && out->count < CPU_LIST_MAX; cpu++)
		if (CPU_ISSET(cpu, &set))
			out->cpu[out->count++] = cpu;
	return 0;
}

int cpu_pin(pthread_t thread, unsigned int cpu)
{
	cpu_set_t set;

	if (cpu >= CPU_SETSIZE)
		return -EINVAL;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return -pthread_setaffinity_np(thread, sizeof(set), &set);
}
