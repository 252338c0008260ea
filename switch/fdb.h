/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Forwarding database: (VLAN, MAC) -> port number.
 *
 * Fixed memory, seeded hash, buckets of a cache line; a full bucket replaces its oldest dynamic
 * entry. Stores port numbers, not ports. Bridges that do not look at VLANs use vlan 0.
 *
 * Threads: any number of workers look up without a lock. Changes are made under one lock: a
 * worker only tries it and skips learning when it is taken (the next frame will learn), the
 * control thread waits for it. `generation` changes whenever a lookup might give another answer
 * than before, so that callers may cache answers against it.
 */
#ifndef XVS_SWITCH_FDB_H
#define XVS_SWITCH_FDB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mac.h"
#include "ports/port.h"

struct fdb;

#define FDB_AGEING_DEFAULT 300u /* seconds */

struct fdb_entry {
	struct mac mac;
	uint16_t vlan;
	uint16_t port;
	bool is_static;
	uint32_t age; /* seconds since a frame from it was last seen; 0 for static */
};

struct fdb_stats {
	uint64_t learned;
	uint64_t moved;
	uint64_t aged;
	uint64_t evicted; /* replaced because its bucket was full */
	uint64_t skipped; /* not learned because another thread held the lock */
	uint32_t entries;
	uint32_t capacity;
};

/*
 * `capacity`: entries, rounded up to a power of two, 64..1048576. `seed` keys the hash: random in
 * the daemon, fixed in tests. Returns 0, -EINVAL or -ENOMEM.
 */
int fdb_create(struct fdb **out, uint32_t capacity, uint64_t seed);
void fdb_destroy(struct fdb *fdb);

/* ---- worker ---- */

/* (vlan, mac) as one number: what lookups and learning take. */
static inline uint64_t fdb_key(uint64_t mac, uint16_t vlan)
{
	return mac | (uint64_t)vlan << 48;
}

/* Changes when an answer may have changed. Acquire: pairs with the release of the change. */
uint32_t fdb_generation(const struct fdb *fdb);

/* The port behind the key, or PORT_ID_NONE. */
uint16_t fdb_lookup(const struct fdb *fdb, uint64_t key);

/*
 * The key was seen as a source on `port` at time `now` (seconds, any origin, monotonic).
 * Learns, moves or refreshes it; static entries stay as they are. Group and zero addresses are
 * the caller's to keep out. Returns true when the key is now known on that port.
 */
bool fdb_learn(struct fdb *fdb, uint64_t key, uint16_t port, uint32_t now);

/* ---- control thread ---- */

/* Adds or replaces a static entry. 0, or -ENOSPC when its bucket holds only static entries. */
int fdb_add_static(struct fdb *fdb, uint64_t key, uint16_t port);
/* 0 or -ENOENT. */
int fdb_del(struct fdb *fdb, uint64_t key);
/* Removes dynamic entries of `port` (PORT_ID_NONE: of all ports), with `with_static` all. */
unsigned int fdb_flush(struct fdb *fdb, uint16_t port, bool with_static);
/* Removes dynamic entries not seen for more than `ageing` seconds; returns how many. */
unsigned int fdb_age(struct fdb *fdb, uint32_t now, uint32_t ageing);

void fdb_get_stats(const struct fdb *fdb, struct fdb_stats *out);

/* Calls fn for each entry (a consistent copy each); stops early when fn returns false. */
void fdb_for_each(const struct fdb *fdb, uint32_t now,
		  bool (*fn)(void *ctx, const struct fdb_entry *e), void *ctx);

#endif
