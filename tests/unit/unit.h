/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a unit test's main file needs around CUnit: a table of named cases and a main().
 *
 *	static void parses_good_text(void) { CU_ASSERT_EQUAL(...); }
 *
 *	static const struct unit_case cases[] = {
 *		UNIT_CASE(parses_good_text),
 *	};
 *	UNIT_MAIN("mac", cases)
 *
 * `test_mac` runs all cases, `test_mac NAME...` only those named, `test_mac -l` lists them.
 * Exit status: 0 all passed, 1 something failed, 2 no such case, 77 skipped (unit_skip()).
 */
#ifndef XVS_TESTS_UNIT_H
#define XVS_TESTS_UNIT_H

#include <CUnit/Basic.h>
#include <CUnit/CUnit.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct unit_case {
	const char *name;
	void (*run)(void);
};

#define UNIT_CASE(function)                                                                        \
	{                                                                                          \
		.name = #function, .run = (function)                                               \
	}

#define UNIT_MAIN(suite, cases)                                                                    \
	int main(int argc, char **argv)                                                            \
	{                                                                                          \
		return unit_main(suite, cases, sizeof(cases) / sizeof((cases)[0]), argc, argv);    \
	}

/* This machine cannot run the test: says why and ends it as skipped. */
static inline _Noreturn void unit_skip(const char *reason)
{
	printf("skipped: %s\n", reason);
	exit(77);
}

static inline bool unit_selected(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], name) == 0)
			return true;
	}
	return argc < 2;
}

static inline int unit_list(const struct unit_case *cases, size_t n)
{
	for (size_t i = 0; i < n; i++)
		puts(cases[i].name);
	return 0;
}

static inline int unit_main(const char *suite, const struct unit_case *cases, size_t n, int argc,
			    char **argv)
{
	unsigned int selected = 0;
	CU_pSuite s;
	bool failed;

	if (argc == 2 && strcmp(argv[1], "-l") == 0)
		return unit_list(cases, n);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (CU_initialize_registry() != CUE_SUCCESS)
		return 1;
	s = CU_add_suite(suite, NULL, NULL);
	for (size_t i = 0; s && i < n; i++) {
		if (!unit_selected(cases[i].name, argc, argv))
			continue;
		if (!CU_add_test(s, cases[i].name, cases[i].run))
			return 1;
		selected++;
	}
	if (selected == 0) {
		fprintf(stderr, "no such case; %s -l lists them\n", argv[0]);
		return 2;
	}
	CU_basic_set_mode(CU_BRM_VERBOSE);
	failed = CU_basic_run_tests() != CUE_SUCCESS || CU_get_number_of_failures() > 0;
	CU_cleanup_registry();
	return failed ? 1 : 0;
}

#endif
