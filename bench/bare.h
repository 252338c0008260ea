/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A bare AF_XDP sender: what the kernel allows at best, as a reference for AF_XDP ports, and as a
 * source of frames. One thread.
 */
#ifndef XVS_BENCH_BARE_H
#define XVS_BENCH_BARE_H

#include <stdint.h>

#include "base/mac.h"

struct bare;

/* On queue 0 of a device, copy mode, frames of `size` bytes. 0 or negative errno. */
int bare_create(struct bare **out, const char *device, const struct mac *dst, const struct mac *src,
		unsigned int size);
void bare_destroy(struct bare *b);

/* Offers a batch if there is room, has the kernel send, takes back what is done: frames sent. */
unsigned int bare_send(struct bare *b);

#endif
