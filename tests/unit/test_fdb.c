/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The forwarding database against a list that does the same thing naively.
 *
 * Random operations over a small set of addresses, so that hits, moves and deletions are frequent,
 * are carried out on both; after each step a lookup of a random address must agree, and at the end
 * the whole contents. The table is large compared with the addresses, so that nothing is evicted;
 * eviction has its own cases with a table that is too small. Different seeds stand for different
 * hash functions; seed 0 makes the hash a plain multiplication of the key.
 */
#include "switch/fdb.h"

#include <errno.h>
#include <pthread.h>

#include "base/atomic.h"
#include "unit/unit.h"

#define MACS  512
#define STEPS 200000

struct model {
	bool known;
	bool is_static;
	uint16_t port;
	uint32_t seen;
};

static uint64_t key_of(unsigned int i)
{
	return fdb_key(UINT64_C(0x020000000000) + i * 7919, (uint16_t)(i % 3));
}

static uint32_t random_next(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*state >> 33);
}

static void model_step(struct fdb *fdb, struct model *m, uint64_t *rnd, uint32_t now)
{
	const unsigned int i = random_next(rnd) % MACS;
	const uint16_t port = (uint16_t)(random_next(rnd) % 8);
	const unsigned int action = random_next(rnd) % 100;

	if (action < 80) {
		const bool stays = m[i].known && m[i].is_static;

		CU_ASSERT_EQUAL(fdb_learn(fdb, key_of(i), port, now), !stays || m[i].port == port);
		if (!stays)
			m[i] = (struct model){true, false, port, now};
	} else if (action < 88) {
		CU_ASSERT_EQUAL(fdb_add_static(fdb, key_of(i), port), 0);
		m[i] = (struct model){true, true, port, 0};
	} else if (action < 99) {
		CU_ASSERT_EQUAL(fdb_del(fdb, key_of(i)), m[i].known ? 0 : -ENOENT);
		m[i].known = false;
	} else {
		const bool all = random_next(rnd) % 2;

		fdb_flush(fdb, port, all);
		for (unsigned int k = 0; k < MACS; k++)
			if (m[k].port == port && (all || !m[k].is_static))
				m[k].known = false;
	}
}

static bool count_entry(void *ctx, const struct fdb_entry *e)
{
	(void)e;
	++*(unsigned int *)ctx;
	return true;
}

static void agrees_with_model(struct fdb *fdb, const struct model *m)
{
	unsigned int known = 0, listed = 0;
	struct fdb_stats stats;

	for (unsigned int i = 0; i < MACS; i++) {
		CU_ASSERT_EQUAL(fdb_lookup(fdb, key_of(i)), m[i].known ? m[i].port : PORT_ID_NONE);
		known += m[i].known;
	}
	fdb_for_each(fdb, 0, count_entry, &listed);
	fdb_get_stats(fdb, &stats);
	CU_ASSERT_EQUAL(listed, known);
	CU_ASSERT_EQUAL(stats.entries, known);
	CU_ASSERT_EQUAL(stats.evicted, 0);
}

static void run_model(uint64_t seed)
{
	struct model m[MACS] = {{0}};
	struct fdb *fdb;
	uint64_t rnd = seed + 1;

	CU_ASSERT_EQUAL_FATAL(fdb_create(&fdb, 8192, seed), 0);
	for (uint32_t step = 0; step < STEPS; step++) {
		const unsigned int i = random_next(&rnd) % MACS;

		model_step(fdb, m, &rnd, step / 1000);
		CU_ASSERT_EQUAL(fdb_lookup(fdb, key_of(i)), m[i].known ? m[i].port : PORT_ID_NONE);
	}
	agrees_with_model(fdb, m);
	fdb_destroy(fdb);
}

static void random_operations_agree_with_a_list(void)
{
	run_model(UINT64_C(0x1234567890abcdef));
	run_model(0);
	run_model(UINT64_MAX);
}

static void ages_dynamic_entries_only(void)
{
	struct fdb *fdb;

	CU_ASSERT_EQUAL_FATAL(fdb_create(&fdb, 64, 1), 0);
	fdb_learn(fdb, 1, 5, 100);
	fdb_learn(fdb, 2, 5, 100);
	fdb_add_static(fdb, 3, 5);
	fdb_learn(fdb, 2, 5, 350); /* refreshed */
	CU_ASSERT_EQUAL(fdb_age(fdb, 400, 300), 0);
	CU_ASSERT_EQUAL(fdb_age(fdb, 401, 300), 1);
	CU_ASSERT_EQUAL(fdb_lookup(fdb, 1), PORT_ID_NONE);
	CU_ASSERT_EQUAL(fdb_lookup(fdb, 2), 5);
	CU_ASSERT_EQUAL(fdb_lookup(fdb, 3), 5);
	CU_ASSERT_EQUAL(fdb_age(fdb, 651, 300), 1);
	CU_ASSERT_EQUAL(fdb_age(fdb, 100000, 300), 0);
	CU_ASSERT_EQUAL(fdb_lookup(fdb, 3), 5);
	fdb_destroy(fdb);
}

static void generation_tells_every_change(void)
{
	struct fdb *fdb;
	uint32_t g;

	CU_ASSERT_EQUAL_FATAL(fdb_create(&fdb, 64, 1), 0);
	g = fdb_generation(fdb);
	fdb_learn(fdb, 1, 5, 1);
	CU_ASSERT_NOT_EQUAL(fdb_generation(fdb), g);
	g = fdb_generation(fdb);
	fdb_learn(fdb, 1, 5, 2); /* a refresh changes no answer */
	CU_ASSERT_EQUAL(fdb_generation(fdb), g);
	fdb_learn(fdb, 1, 6, 2);
	CU_ASSERT_NOT_EQUAL(fdb_generation(fdb), g);
	g = fdb_generation(fdb);
	fdb_del(fdb, 1);
	CU_ASSERT_NOT_EQUAL(fdb_generation(fdb), g);
	fdb_destroy(fdb);
}

static void holds_its_stated_capacity(void)
{
	const uint32_t n = 65536;
	struct fdb_stats stats;
	struct fdb *fdb;
	uint32_t found = 0;

	CU_ASSERT_EQUAL_FATAL(fdb_create(&fdb, n, 42), 0);
	for (uint32_t i = 0; i < n; i++)
		CU_ASSERT(fdb_learn(fdb, fdb_key(UINT64_C(0x020000000000) + i, 0), 1, 1));
	for (uint32_t i = 0; i < n; i++)
		found += fdb_lookup(fdb, fdb_key(UINT64_C(0x020000000000) + i, 0)) == 1;
	fdb_get_stats(fdb, &stats);
	CU_ASSERT_EQUAL(stats.capacity, n);
	CU_ASSERT_EQUAL(found, stats.entries);
	CU_ASSERT(found > n - n / 1000);
	fdb_destroy(fdb);
}

static void full_table_evicts_the_oldest_never_static(void)
{
	struct fdb_stats stats;
	struct fdb *fdb;

	CU_ASSERT_EQUAL_FATAL(fdb_create(&fdb, 64, 7), 0);
	for (unsigned int i = 0; i < 8; i++)
		CU_ASSERT_EQUAL(fdb_add_static(fdb, 1000 + i, 2), 0);
	for (uint32_t i = 0; i < 10000; i++)
		fdb_learn(fdb, 5000 + i, 1, i);
	for (unsigned int i = 0; i < 8; i++)
		CU_ASSERT_EQUAL(fdb_lookup(fdb, 1000 + i), 2);
	CU_ASSERT_EQUAL(fdb_lookup(fdb, 5000 + 9999), 1);
	fdb_get_stats(fdb, &stats);
	CU_ASSERT(stats.entries <= 128);
	CU_ASSERT(stats.evicted > 9000);
	fdb_destroy(fdb);
}

static void only_static_entries_leave_no_room(void)
{
	struct fdb *fdb;
	int err = 0;

	CU_ASSERT_EQUAL_FATAL(fdb_create(&fdb, 64, 7), 0);
	for (unsigned int i = 0; i < 1000 && !err; i++)
		err = fdb_add_static(fdb, i + 1, 2);
	CU_ASSERT_EQUAL(err, -ENOSPC);
	fdb_destroy(fdb);
}

/* ---- concurrent use ---- */

struct churn {
	struct fdb *fdb;
	uint32_t stop;
};

static void *churn_main(void *arg)
{
	struct churn *c = arg;

	for (uint32_t i = 0; !load_relaxed(&c->stop); i++) {
		fdb_learn(c->fdb, 100 + i % 200, (uint16_t)(i % 200), i);
		fdb_del(c->fdb, 100 + (i * 7) % 200);
	}
	return NULL;
}

/* Key 100+k is only ever learned on port k: any other answer is a torn read. */
static void lookups_during_changes_never_mix_entries(void)
{
	struct churn c = {.stop = 0};
	pthread_t thread;
	unsigned int wrong = 0;

	CU_ASSERT_EQUAL_FATAL(fdb_create(&c.fdb, 64, 3), 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, churn_main, &c), 0);
	for (uint32_t i = 0; i < 2000000; i++) {
		const uint16_t port = fdb_lookup(c.fdb, 100 + i % 200);

		wrong += port != PORT_ID_NONE && port != i % 200;
	}
	store_relaxed(&c.stop, 1u);
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(wrong, 0);
	fdb_destroy(c.fdb);
}

static const struct unit_case cases[] = {
    UNIT_CASE(random_operations_agree_with_a_list),
    UNIT_CASE(ages_dynamic_entries_only),
    UNIT_CASE(generation_tells_every_change),
    UNIT_CASE(holds_its_stated_capacity),
    UNIT_CASE(full_table_evicts_the_oldest_never_static),
    UNIT_CASE(only_static_entries_leave_no_room),
    UNIT_CASE(lookups_during_changes_never_mix_entries),
};
UNIT_MAIN("fdb", cases)
