/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copying frame bytes.
 *
 * glibc's memcpy falls into `rep movsb` above about 2 KiB, which is several times slower when
 * source and destination are not mutually aligned; the 12-byte virtio-net header makes that
 * the normal case. copy_frame() moves short lengths inline with overlapping 16-byte loads and
 * leaves long ones to a routine chosen once, by copy_init(), for the CPU at hand.
 *
 * Source and destination must not overlap. Thread-safe after copy_init().
 */
#ifndef XVS_BASE_COPY_H
#define XVS_BASE_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

/* Chooses the long-copy routine. Without it a portable one is used. */
void copy_init(void);

/* Name of the routine in use, for `version` and the benchmark. */
const char *copy_routine(void);

/* Long copies, n >= 64. Set by copy_init(). */
extern void (*copy_long)(uint8_t *dst, const uint8_t *src, size_t n);

typedef long long copy_v16 __attribute__((vector_size(16), aligned(1), may_alias));

static inline void copy_16(uint8_t *dst, const uint8_t *src)
{
	*(copy_v16 *)(void *)dst = *(const copy_v16 *)(const void *)src;
}

static inline void copy_under_16(uint8_t *dst, const uint8_t *src, size_t n)
{
	if (n >= 8) {
		memcpy(dst, src, 8);
		memcpy(dst + n - 8, src + n - 8, 8);
	} else if (n >= 4) {
		memcpy(dst, src, 4);
		memcpy(dst + n - 4, src + n - 4, 4);
	} else if (n) {
		dst[0] = src[0];
		dst[n / 2] = src[n / 2];
		dst[n - 1] = src[n - 1];
	}
}

static inline void copy_frame(uint8_t *dst, const uint8_t *src, size_t n)
{
	if (n > 64) {
		copy_long(dst, src, n);
	} else if (n > 32) {
		copy_16(dst, src);
		copy_16(dst + 16, src + 16);
		copy_16(dst + n - 32, src + n - 32);
		copy_16(dst + n - 16, src + n - 16);
	} else if (n >= 16) {
		copy_16(dst, src);
		copy_16(dst + n - 16, src + n - 16);
	} else {
		copy_under_16(dst, src, n);
	}
}

#endif
