/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CPU lists as operators write them, the CPUs of this process, and pinning.
 */
#include <errno.h>
#include <sched.h>

#include "base/cpu.h"
#include "unit/unit.h"

static void list_is(const char *text, unsigned int count, unsigned int first, unsigned int last)
{
	struct cpu_list list = {0};

	CU_ASSERT_EQUAL_FATAL(cpu_list_parse(text, &list), 0);
	CU_ASSERT_EQUAL_FATAL(list.count, count);
	CU_ASSERT_EQUAL(list.cpu[0], first);
	CU_ASSERT_EQUAL(list.cpu[count - 1], last);
}

static void parses_lists_and_ranges(void)
{
	list_is("0", 1, 0, 0);
	list_is("7,3", 2, 7, 3);
	list_is("2,3,10-13", 6, 2, 13);
	list_is("4-4", 1, 4, 4);
	list_is("0-127", 128, 0, 127);
}

static void refuses_bad_text(void)
{
	static const char *const bad[] = {
	    "",
	    ",",
	    "1,",
	    ",1",
	    "1,,2",
	    "a",
	    "1-",
	    "-1",
	    "3-1",
	    "1 ",
	    " 1",
	    "1;2",
	    "1,1",
	    "1-3,2",
	    "0x1",
	    "1.5",
	    "1-2-3",
	    "+1",
	    "99999999999999999999",
	};
	struct cpu_list list;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (cpu_list_parse(bad[i], &list) != -EINVAL)
			printf("accepted: \"%s\"\n", bad[i]);
		CU_ASSERT_EQUAL(cpu_list_parse(bad[i], &list), -EINVAL);
	}
}

static void refuses_too_many(void)
{
	struct cpu_list list;

	CU_ASSERT_EQUAL(cpu_list_parse("0-128", &list), -ERANGE);
}

static void allowed_matches_the_kernel(void)
{
	struct cpu_list list;
	cpu_set_t set;

	CU_ASSERT_EQUAL_FATAL(cpu_list_allowed(&list), 0);
	CU_ASSERT_EQUAL_FATAL(sched_getaffinity(0, sizeof(set), &set), 0);
	CU_ASSERT_EQUAL(list.count, (unsigned int)CPU_COUNT(&set));
	for (unsigned int i = 0; i < list.count; i++) {
		CU_ASSERT(CPU_ISSET(list.cpu[i], &set));
		CU_ASSERT(i == 0 || list.cpu[i - 1] < list.cpu[i]);
	}
}

static void pins(void)
{
	struct cpu_list list;
	cpu_set_t set;

	CU_ASSERT_EQUAL_FATAL(cpu_list_allowed(&list), 0);
	CU_ASSERT_EQUAL(cpu_pin(pthread_self(), list.cpu[list.count - 1]), 0);
	CU_ASSERT_EQUAL(sched_getaffinity(0, sizeof(set), &set), 0);
	CU_ASSERT_EQUAL(CPU_COUNT(&set), 1);
	CU_ASSERT(CPU_ISSET(list.cpu[list.count - 1], &set));
	CU_ASSERT_EQUAL(cpu_pin(pthread_self(), 1023), -EINVAL);
	CU_ASSERT(cpu_pin(pthread_self(), 1000000) < 0);
}

static const struct unit_case cases[] = {
    UNIT_CASE(parses_lists_and_ranges),
    UNIT_CASE(refuses_bad_text),
    UNIT_CASE(refuses_too_many),
    UNIT_CASE(allowed_matches_the_kernel),
    UNIT_CASE(pins),
};
UNIT_MAIN("cpu", cases)
