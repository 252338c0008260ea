/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kicker: one thread that makes the system calls which drive AF_XDP sockets in copy mode,
 * because each takes 20-30 us per 32 frames that a worker would not have for its guests.
 */
#ifndef XVS_PORTS_KICKER_H
#define XVS_PORTS_KICKER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

struct kicker;

#define KICKER_KICKS_MAX 4096u /* struct kick in use at a time */

struct kicker_stats {
	uint64_t kicks;  /* system calls made */
	uint64_t sleeps; /* times it went to sleep for lack of work */
	uint64_t errors; /* calls that failed with something that is not transient */
};

enum kick_what {
	KICK_TX = 1, /* send what is in the transmit ring */
	KICK_RX = 2, /* look into the fill ring */
};

/*
 * One per XDP socket, embedded where the socket is. Zero it, set the first group, and use it;
 * everything else belongs to kicker.c.
 */
struct kick {
	/* set while nobody asks; kept until kicker_forget() has returned */
	int fd;
	const uint32_t *tx_producer; /* the transmit ring's indices; NULL: drained when sendto() */
	const uint32_t *tx_consumer; /* reports success */
	/* shared, atomic: KICK_* asked for, and one bit that says "the kicker has it" */
	uint32_t asked CACHE_ALIGNED;
	/* kicker */
	unsigned int stuck; /* passes in a row without progress */
	uint64_t calls;
};

/* Starts the thread, pinned to `cpu` unless that is -1. Returns 0 or a negative errno. */
int kicker_create(struct kicker **out, int cpu);
void kicker_destroy(struct kicker *k); /* NULL is fine; everything must be forgotten */
void kicker_get_stats(const struct kicker *k, struct kicker_stats *out);

/*
 * Worker: asks for the system call that `what` names, after the ring's index was published.
 * Never blocks; a system call only if the kicker sleeps.
 */
void kicker_ask(struct kicker *k, struct kick *kick, enum kick_what what);

/* Control, when nobody asks any more: returns when the kicker has let go of it. */
void kicker_forget(struct kicker *k, struct kick *kick);

/*
 * The same work done by the caller, for when there is no kicker. Returns true when the
 * transmit ring is drained (or asked for only KICK_RX), false when it is worth another try.
 */
bool kick_now(const struct kick *kick, uint32_t what, unsigned int tries, uint64_t *calls,
	      uint64_t *errors);

#endif
