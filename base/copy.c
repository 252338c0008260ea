/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Long copies (64 bytes and more), one routine per instruction set, chosen at start.
 *
 * Each routine copies whole vectors from the front and finishes with vectors that end on the last
 * byte and may overlap what was already copied: no byte loop, no alignment prologue. That is
 * allowed because source and destination never overlap each other.
 *
 * The pointer copy_long is set once by copy_init(), before workers exist, and starts out with
 * the portable routine so that unit tests need no set-up. Rejected: memcpy (see copy.h) and
 * non-temporal stores, which never won since the receiver reads the frame soon.
 */
#include "base/copy.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

static void copy_long_16(uint8_t *dst, const uint8_t *src, size_t n)
{
	uint8_t *const last = dst + n - 64;
	const uint8_t *const src_last = src + n - 64;

	for (; dst < last; dst += 64, src += 64) {
		copy_16(dst, src);
		copy_16(dst + 16, src + 16);
		copy_16(dst + 32, src + 32);
		copy_16(dst + 48, src + 48);
	}
	copy_16(last, src_last);
	copy_16(last + 16, src_last + 16);
	copy_16(last + 32, src_last + 32);
	copy_16(last + 48, src_last + 48);
}

void (*copy_long)(uint8_t *dst, const uint8_t *src, size_t n) = copy_long_16;

#if defined(__x86_64__)
__attribute__((target("avx2"))) static inline void copy_32_avx2(uint8_t *dst, const uint8_t *src)
{
	_mm256_storeu_si256((__m256i_u *)(void *)dst,
			    _mm256_loadu_si256((const __m256i_u *)(const void *)src));
}

__attribute__((target("avx2"))) static void copy_long_avx2(uint8_t *dst, const uint8_t *src,
							   size_t n)
{
	uint8_t *const end = dst + n;
	const uint8_t *const src_end = src + n;

	for (; n >= 128; n -= 128, dst += 128, src += 128) {
		copy_32_avx2(dst, src);
		copy_32_avx2(dst + 32, src + 32);
		copy_32_avx2(dst + 64, src + 64);
		copy_32_avx2(dst + 96, src + 96);
	}
	if (n >= 64) {
		copy_32_avx2(dst, src);
		copy_32_avx2(dst + 32, src + 32);
	}
	copy_32_avx2(end - 64, src_end - 64);
	copy_32_avx2(end - 32, src_end - 32);
}
#endif

struct routine {
	const char *name;
	void (*copy)(uint8_t *dst, const uint8_t *src, size_t n);
};

static const struct routine portable = {"16-byte vectors", copy_long_16};
#if defined(__x86_64__)
static const struct routine avx2 = {"avx2", copy_long_avx2};
#endif

static const struct routine *chosen = &portable;

void copy_init(void)
{
#if defined(__x86_64__)
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx2"))
		chosen = &avx2;
#endif
	copy_long = chosen->copy;
}

const char *copy_routine(void)
{
	return chosen->name;
}
