/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SIGBUS in mappings of files that somebody else can truncate.
 */
#ifndef XVS_RING_SIGBUS_H
#define XVS_RING_SIGBUS_H

#include <stddef.h>
#include <stdint.h>

/* Installs the process-wide handler; a second call does nothing. Returns 0 or -errno. */
int sigbus_install(void);

/*
 * From now on a hole in [base, base + size) is filled with a zero page of page_size bytes and
 * *flag becomes 1 (relaxed). Returns a handle, or -ENOSPC when the table is full. Control thread.
 */
int sigbus_watch(uint8_t *base, size_t size, size_t page_size, uint32_t *flag);

/* Nobody touches the mapping any more. Control thread. */
void sigbus_unwatch(int handle);

#endif
