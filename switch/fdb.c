/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Forwarding database.
 *
 * Layout: buckets of one cache line with four entries of two words each. Every key has two
 * candidate buckets from one seeded hash, so that the table fills to its stated capacity (half of
 * its slots) practically without evictions, and a lookup costs one line, rarely two. The seed is
 * random per start: nobody outside can choose addresses that share a bucket.
 *
 *     word 0  key    VLAN and MAC
 *     word 1  value  port, static flag, second of the last sighting
 *
 * Readers take no lock. A value without a port (EMPTY) means "not there". A writer that puts
 * another key into a slot empties the value first and sets it last; a reader checks that the key is
 * still the one it found after it read the value. So an answer is always one that was true for that
 * key at some moment of the lookup.
 *
 * Writers hold the lock. A refresh of the sighting time is the one change made without it, by
 * compare-and-swap: it can only lose against another change, never undo one.
 *
 * When both buckets are full the entry not seen for the longest time is replaced, never a static
 * one.
 *
 * Rejected: rte_hash (needs the EAL's allocator, an order of magnitude more memory traffic per
 * lookup), and per-worker tables (each address would have to be learned by each worker, and floods
 * meanwhile).
 */
#include "switch/fdb.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/atomic.h"

#define WAYS         4u
#define CAPACITY_MIN 64u
#define CAPACITY_MAX (1u << 20)
#define AGE_CHUNK    64u /* buckets swept under one hold of the lock */

struct slot {
	uint64_t key;
	uint64_t value;
};

struct bucket {
	struct slot slot[WAYS];
} CACHE_ALIGNED;

_Static_assert(sizeof(struct bucket) == CACHE_LINE, "a bucket is one cache line");

struct fdb {
	/* set at create */
	struct bucket *bucket;
	uint32_t mask;
	uint32_t capacity;
	uint64_t seed;
	/* shared, atomic */
	uint32_t generation CACHE_ALIGNED;
	uint32_t lock CACHE_ALIGNED;
	uint64_t skipped;
	/* lock holder; read relaxed by others */
	struct fdb_stats stats CACHE_ALIGNED;
};

/* ---- values ---- */

/* The port is stored plus one, so that fresh zero pages are an empty table. */
#define VALUE_STATIC (UINT64_C(1) << 16)
#define EMPTY        UINT64_C(0)

_Static_assert((uint16_t)(PORT_ID_NONE + 1) == 0, "an empty value reads as PORT_ID_NONE");

static uint64_t value_make(uint16_t port, bool is_static, uint32_t seen)
{
	return (uint16_t)(port + 1) | (is_static ? VALUE_STATIC : 0) | (uint64_t)seen << 32;
}

static uint16_t value_port(uint64_t value)
{
	return (uint16_t)((uint16_t)value - 1);
}

static bool value_is_static(uint64_t value)
{
	return value & VALUE_STATIC;
}

static uint32_t value_seen(uint64_t value)
{
	return (uint32_t)(value >> 32);
}

static uint64_t value_refreshed(uint64_t value, uint32_t now)
{
	return (value & UINT32_MAX) | (uint64_t)now << 32;
}

/* ---- finding ---- */

static uint64_t hash(const struct fdb *fdb, uint64_t key)
{
	uint64_t h = (key ^ fdb->seed) * UINT64_C(0x9e3779b97f4a7c15);

	h ^= h >> 32;
	h = (h + fdb->seed) * UINT64_C(0xd6e8feb86659fd93);
	return h ^ h >> 32;
}

static struct bucket *first_bucket(const struct fdb *fdb, uint64_t h)
{
	return &fdb->bucket[(uint32_t)h & fdb->mask];
}

static struct bucket *second_bucket(const struct fdb *fdb, uint64_t h)
{
	return &fdb->bucket[(uint32_t)(h >> 32) & fdb->mask];
}

/* The slot that holds the key with a port, and its value; NULL if there is none. */
static struct slot *bucket_find(struct bucket *b, uint64_t key, uint64_t *value)
{
	for (unsigned int i = 0; i < WAYS; i++) {
		struct slot *s = &b->slot[i];

		/* acquire twice: pairs with the releases in slot_set() */
		if (load_acquire(&s->key) != key)
			continue;
		*value = load_acquire(&s->value);
		if (value_port(*value) != PORT_ID_NONE && load_relaxed(&s->key) == key)
			return s;
	}
	return NULL;
}

static struct slot *find(const struct fdb *fdb, uint64_t key, uint64_t *value)
{
	const uint64_t h = hash(fdb, key);
	struct slot *s = bucket_find(first_bucket(fdb, h), key, value);

	return s ? s : bucket_find(second_bucket(fdb, h), key, value);
}

uint32_t fdb_generation(const struct fdb *fdb)
{
	return load_acquire(&fdb->generation); /* pairs with the release in changed() */
}

uint16_t fdb_lookup(const struct fdb *fdb, uint64_t key)
{
	uint64_t value;

	return find(fdb, key, &value) ? value_port(value) : PORT_ID_NONE;
}

/* ---- changing; all below hold the lock, except where said ---- */

static bool try_lock(struct fdb *fdb)
{
	/* acquire: pairs with the release in unlock() */
	return load_relaxed(&fdb->lock) == 0 &&
	       __atomic_exchange_n(&fdb->lock, 1, __ATOMIC_ACQUIRE) == 0;
}

static void wait_lock(struct fdb *fdb)
{
	while (!try_lock(fdb))
		sched_yield();
}

static void unlock(struct fdb *fdb)
{
	store_release(&fdb->lock, 0u);
}

static void changed(struct fdb *fdb)
{
	store_release(&fdb->generation, fdb->generation + 1);
}

static void slot_set(struct slot *s, uint64_t key, uint64_t value)
{
	store_release(&s->value, EMPTY);
	store_release(&s->key, key);
	store_release(&s->value, value);
}

static void slot_clear(struct fdb *fdb, struct slot *s)
{
	store_release(&s->value, EMPTY);
	store_relaxed(&fdb->stats.entries, fdb->stats.entries - 1);
	changed(fdb);
}

/* The better place for a new entry: an empty slot, else the longest unseen dynamic one. */
static struct slot *better_victim(struct slot *best, struct slot *s)
{
	if (value_is_static(s->value) || (best && value_port(best->value) == PORT_ID_NONE))
		return best;
	if (!best || value_port(s->value) == PORT_ID_NONE)
		return s;
	return value_seen(s->value) < value_seen(best->value) ? s : best;
}

static unsigned int empty_slots(const struct bucket *b)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < WAYS; i++)
		n += value_port(b->slot[i].value) == PORT_ID_NONE;
	return n;
}

/* The emptier of the two buckets comes first: that is what lets the table fill up. */
static struct slot *choose_slot(const struct fdb *fdb, uint64_t key)
{
	const uint64_t h = hash(fdb, key);
	struct bucket *first = first_bucket(fdb, h);
	struct bucket *second = second_bucket(fdb, h);
	const bool swap = empty_slots(second) > empty_slots(first);
	struct bucket *candidate[] = {swap ? second : first, swap ? first : second};
	struct slot *best = NULL;

	for (unsigned int k = 0; k < ARRAY_LEN(candidate); k++)
		for (unsigned int i = 0; i < WAYS; i++)
			best = better_victim(best, &candidate[k]->slot[i]);
	return best;
}

static bool insert(struct fdb *fdb, uint64_t key, uint64_t value)
{
	struct slot *s = choose_slot(fdb, key);

	if (!s)
		return false;
	if (value_port(s->value) == PORT_ID_NONE)
		store_relaxed(&fdb->stats.entries, fdb->stats.entries + 1);
	else
		counter_add(&fdb->stats.evicted, 1);
	slot_set(s, key, value);
	changed(fdb);
	return true;
}

/* Learns or moves. Looks the key up again: another thread may have learned it meanwhile. */
static bool learn_locked(struct fdb *fdb, uint64_t key, uint16_t port, uint32_t now)
{
	uint64_t value;
	struct slot *s = find(fdb, key, &value);

	if (!s) {
		counter_add(&fdb->stats.learned, 1);
		return insert(fdb, key, value_make(port, false, now));
	}
	if (value_is_static(value))
		return value_port(value) == port;
	if (value_port(value) != port)
		counter_add(&fdb->stats.moved, 1);
	store_release(&s->value, value_make(port, false, now));
	changed(fdb);
	return true;
}

/* No lock held. */
bool fdb_learn(struct fdb *fdb, uint64_t key, uint16_t port, uint32_t now)
{
	uint64_t value;
	struct slot *s = find(fdb, key, &value);

	if (s && value_is_static(value))
		return value_port(value) == port;
	if (s && value_port(value) == port) {
		if (value_seen(value) != now)
			__atomic_compare_exchange_n(&s->value, &value, value_refreshed(value, now),
						    false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
		return true;
	}
	if (!try_lock(fdb)) {
		__atomic_fetch_add(&fdb->skipped, 1, __ATOMIC_RELAXED);
		return false;
	}
	const bool known = learn_locked(fdb, key, port, now);

	unlock(fdb);
	return known;
}

/* ---- control thread ---- */

int fdb_add_static(struct fdb *fdb, uint64_t key, uint16_t port)
{
	const uint64_t fresh = value_make(port, true, 0);
	uint64_t value;
	int err = 0;

	wait_lock(fdb);
	struct slot *s = find(fdb, key, &value);

	if (s) {
		store_release(&s->value, fresh);
		changed(fdb);
	} else if (!insert(fdb, key, fresh)) {
		err = -ENOSPC;
	}
	unlock(fdb);
	return err;
}

int fdb_del(struct fdb *fdb, uint64_t key)
{
	uint64_t value;

	wait_lock(fdb);
	struct slot *s = find(fdb, key, &value);

	if (s)
		slot_clear(fdb, s);
	unlock(fdb);
	return s ? 0 : -ENOENT;
}

/* Clears what `match` wants, a few buckets per hold of the lock, so that learning goes on. */
static unsigned int clear_matching(struct fdb *fdb, bool (*match)(uint64_t value, const void *arg),
				   const void *arg)
{
	unsigned int cleared = 0;

	for (uint32_t b = 0; b <= fdb->mask; b += AGE_CHUNK) {
		wait_lock(fdb);
		for (uint32_t i = b; i < b + AGE_CHUNK && i <= fdb->mask; i++) {
			for (unsigned int w = 0; w < WAYS; w++) {
				struct slot *s = &fdb->bucket[i].slot[w];
				const uint64_t value = load_relaxed(&s->value);

				if (value_port(value) != PORT_ID_NONE && match(value, arg)) {
					slot_clear(fdb, s);
					cleared++;
				}
			}
		}
		unlock(fdb);
	}
	return cleared;
}

struct flush_arg {
	uint16_t port;
	bool with_static;
};

static bool match_flush(uint64_t value, const void *arg)
{
	const struct flush_arg *f = arg;

	return (f->port == PORT_ID_NONE || value_port(value) == f->port) &&
	       (f->with_static || !value_is_static(value));
}

unsigned int fdb_flush(struct fdb *fdb, uint16_t port, bool with_static)
{
	const struct flush_arg arg = {port, with_static};

	return clear_matching(fdb, match_flush, &arg);
}

struct age_arg {
	uint32_t now;
	uint32_t ageing;
};

static bool match_aged(uint64_t value, const void *arg)
{
	const struct age_arg *a = arg;

	return !value_is_static(value) && a->now - value_seen(value) > a->ageing;
}

unsigned int fdb_age(struct fdb *fdb, uint32_t now, uint32_t ageing)
{
	const struct age_arg arg = {now, ageing};
	const unsigned int n = clear_matching(fdb, match_aged, &arg);

	wait_lock(fdb);
	counter_add(&fdb->stats.aged, n);
	unlock(fdb);
	return n;
}

void fdb_get_stats(const struct fdb *fdb, struct fdb_stats *out)
{
	const struct fdb_stats *s = &fdb->stats;

	*out = (struct fdb_stats){
	    .learned = load_relaxed(&s->learned),
	    .moved = load_relaxed(&s->moved),
	    .aged = load_relaxed(&s->aged),
	    .evicted = load_relaxed(&s->evicted),
	    .skipped = load_relaxed(&fdb->skipped),
	    .entries = load_relaxed(&s->entries),
	    .capacity = fdb->capacity,
	};
}

void fdb_for_each(const struct fdb *fdb, uint32_t now,
		  bool (*fn)(void *ctx, const struct fdb_entry *e), void *ctx)
{
	for (uint64_t i = 0; i < ((uint64_t)fdb->mask + 1) * WAYS; i++) {
		const struct slot *s = &fdb->bucket[i / WAYS].slot[i % WAYS];
		const uint64_t key = load_acquire(&s->key);
		const uint64_t value = load_acquire(&s->value);

		if (value_port(value) == PORT_ID_NONE || load_relaxed(&s->key) != key)
			continue;
		const struct fdb_entry e = {
		    .mac = mac_from_u64(key & UINT64_C(0xffffffffffff)),
		    .vlan = (uint16_t)(key >> 48),
		    .port = value_port(value),
		    .is_static = value_is_static(value),
		    .age = value_is_static(value) ? 0 : now - value_seen(value),
		};
		if (!fn(ctx, &e))
			return;
	}
}

/* ---- life cycle ---- */

static uint32_t round_up_pow2(uint32_t n)
{
	uint32_t p = CAPACITY_MIN;

	while (p < n)
		p *= 2;
	return p;
}

int fdb_create(struct fdb **out, uint32_t capacity, uint64_t seed)
{
	if (capacity == 0 || capacity > CAPACITY_MAX)
		return -EINVAL;
	struct fdb *fdb = aligned_alloc(CACHE_LINE, sizeof(*fdb));

	if (!fdb)
		return -ENOMEM;
	memset(fdb, 0, sizeof(*fdb));
	fdb->capacity = round_up_pow2(capacity);
	fdb->mask = fdb->capacity * 2 / WAYS - 1;
	fdb->seed = seed;
	fdb->bucket = mmap(NULL, ((size_t)fdb->mask + 1) * sizeof(struct bucket),
			   PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fdb->bucket == MAP_FAILED) {
		free(fdb);
		return -ENOMEM;
	}
	*out = fdb;
	return 0;
}

void fdb_destroy(struct fdb *fdb)
{
	if (!fdb)
		return;
	munmap(fdb->bucket, ((size_t)fdb->mask + 1) * sizeof(struct bucket));
	free(fdb);
}
