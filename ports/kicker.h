/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kicker: one thread that makes the system calls which drive AF_XDP sockets in copy mode,
 * because each takes 20-30 us per 32 frames that a worker would not have for its guests.
 */
#ifndef XVS_PORTS_KICKER_H
#define XVS_PORTS_KICKER_H

#include <stdint.h>

struct kicker;

struct kicker_stats {
	uint64_t kicks;  /* system calls made */
	uint64_t sleeps; /* times it went to sleep for lack of work */
	uint64_t errors; /* calls that failed with something that is not transient */
};

/* Starts the thread, pinned to `cpu` unless that is -1. Returns 0 or a negative errno. */
int kicker_create(struct kicker **out, int cpu);
void kicker_destroy(struct kicker *k);
void kicker_get_stats(const struct kicker *k, struct kicker_stats *out);

/*
 * Worker: asks for a wake-up of the XDP socket `fd`. Never blocks; a system call only if the
 * kicker sleeps. The socket stays open until kicker_forget(fd) has returned.
 */
void kicker_ask(struct kicker *k, int fd);

/* Control: returns when the kicker will not use fd any more. */
void kicker_forget(struct kicker *k, int fd);

#endif
