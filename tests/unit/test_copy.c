/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * copy_frame() against memcpy: every length up to 4200 at every pair of offsets that matters,
 * with canaries around the destination, and against inaccessible pages at both ends.
 */
#include <sys/mman.h>

#include "base/copy.h"
#include "unit/unit.h"

#define LENGTH_MAX 4200u
#define CANARY     0xc5
#define MARGIN     64u

static uint8_t source[LENGTH_MAX + 64];
static uint8_t target[MARGIN + 64 + LENGTH_MAX + MARGIN];

static void fill_source(void)
{
	uint64_t state = UINT64_C(0x9e3779b97f4a7c15);

	for (size_t i = 0; i < sizeof(source); i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		source[i] = (uint8_t)(state >> 56);
	}
}

static bool canary_holds(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i] != CANARY)
			return false;
	}
	return true;
}

/* One copy; false when a byte is wrong inside or was written outside. */
static bool copies(unsigned int to, unsigned int from, size_t n)
{
	uint8_t *dst = target + MARGIN + to;

	memset(dst - MARGIN, CANARY, MARGIN);
	memset(dst + n, CANARY, MARGIN);
	memset(dst, (uint8_t)~source[from], n);
	copy_frame(dst, source + from, n);
	return memcmp(dst, source + from, n) == 0 && canary_holds(dst - MARGIN, MARGIN) &&
	       canary_holds(dst + n, MARGIN);
}

/* All offsets of the source for each offset of the target, lengths `first`, +step, ... */
static unsigned int failures(size_t first, size_t last, size_t step, unsigned int offset_step)
{
	unsigned int wrong = 0;

	for (size_t n = first; n <= last; n += step) {
		for (unsigned int to = 0; to < 64; to += offset_step) {
			for (unsigned int from = 0; from < 64; from += offset_step)
				wrong += !copies(to, from, n);
		}
	}
	return wrong;
}

/* Every length with each offset of the target and, by turns, each of the source. */
static unsigned int failures_all_lengths(void)
{
	unsigned int wrong = 0;

	for (size_t n = 0; n <= LENGTH_MAX; n++) {
		for (unsigned int to = 0; to < 64; to++)
			wrong += !copies(to, (unsigned int)(to * 29 + n) % 64, n);
	}
	return wrong;
}

static void check_all(void)
{
	CU_ASSERT_EQUAL(failures(0, 160, 1, 1), 0);
	CU_ASSERT_EQUAL(failures_all_lengths(), 0);
	CU_ASSERT_EQUAL(failures(1500, 1530, 1, 7), 0);
}

static void portable_routine(void)
{
	fill_source();
	check_all();
}

static void chosen_routine(void)
{
	fill_source();
	copy_init();
	printf("routine: %s ", copy_routine());
	CU_ASSERT_STRING_NOT_EQUAL(copy_routine(), "");
	check_all();
}

/* One page between two that may not be touched. */
static uint8_t *fenced_pages(size_t size)
{
	uint8_t *p = mmap(NULL, size + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CU_ASSERT_FATAL(p != MAP_FAILED);
	CU_ASSERT_EQUAL_FATAL(mprotect(p + 4096, size, PROT_READ | PROT_WRITE), 0);
	return p + 4096;
}

/* Neither reads nor writes a byte outside, at the first and at the last byte of a mapping. */
static void stays_inside(void)
{
	const size_t size = 8192;
	uint8_t *src = fenced_pages(size), *dst = fenced_pages(size);

	for (size_t i = 0; i < size; i++)
		src[i] = (uint8_t)(i * 31);
	for (size_t n = 0; n <= LENGTH_MAX; n++) {
		copy_frame(dst, src, n);
		CU_ASSERT(memcmp(dst, src, n) == 0);
		copy_frame(dst + size - n, src + size - n, n);
		CU_ASSERT(memcmp(dst + size - n, src + size - n, n) == 0);
	}
	munmap(src - 4096, size + 8192);
	munmap(dst - 4096, size + 8192);
}

static const struct unit_case cases[] = {
    UNIT_CASE(portable_routine),
    UNIT_CASE(chosen_routine),
    UNIT_CASE(stays_inside),
};
UNIT_MAIN("copy", cases)
