/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UMEM accounting against a naive model: after any sequence of takes, gives, hand-overs and
 * closes each chunk is in exactly one place, and the counts agree.
 */
#include <errno.h>
#include <pthread.h>

#include "ports/umem.h"
#include "unit/unit.h"

#define CHUNKS     1024u
#define OWNERS     5u
#define OPERATIONS 1000000u
#define BURST      32u

static uint64_t random_state = 88172645463325252u;

static uint32_t random_below(uint32_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)((random_state >> 16) % n);
}

/* The model: what each owner has, as plain lists. */
struct model {
	struct umem *umem;
	uint16_t owner[OWNERS];
	uint32_t list[OWNERS][CHUNKS];
	uint32_t count[OWNERS];
	uint8_t taken[CHUNKS];
	uint32_t bad; /* chunks handed out twice, or out of range */
};

static void model_take(struct model *m, uint32_t who)
{
	uint32_t chunk[BURST], want = 1 + random_below(BURST);
	uint32_t got = umem_take(m->umem, m->owner[who], chunk, want);

	for (uint32_t i = 0; i < got; i++) {
		if (chunk[i] >= CHUNKS || m->taken[chunk[i]])
			m->bad++;
		else
			m->taken[chunk[i]] = 1;
		m->list[who][m->count[who]++] = chunk[i];
	}
	if (got < want && umem_free_count(m->umem))
		m->bad++;
}

static uint32_t model_pick(struct model *m, uint32_t who)
{
	uint32_t i = random_below(m->count[who]), chunk = m->list[who][i];

	m->list[who][i] = m->list[who][--m->count[who]];
	return chunk;
}

static void model_give(struct model *m, uint32_t who)
{
	uint32_t chunk[BURST], n = 1 + random_below(BURST);

	n = n < m->count[who] ? n : m->count[who];
	for (uint32_t i = 0; i < n; i++) {
		chunk[i] = model_pick(m, who);
		m->taken[chunk[i]] = 0;
	}
	umem_give(m->umem, chunk, n);
}

static void model_pass(struct model *m, uint32_t who)
{
	uint32_t to = random_below(OWNERS), chunk;

	if (!m->count[who])
		return;
	chunk = model_pick(m, who);
	umem_pass(m->umem, chunk, m->owner[to]);
	m->list[to][m->count[to]++] = chunk;
}

static void model_close(struct model *m, uint32_t who)
{
	if (umem_owner_close(m->umem, m->owner[who]) != m->count[who])
		m->bad++;
	for (uint32_t i = 0; i < m->count[who]; i++)
		m->taken[m->list[who][i]] = 0;
	m->count[who] = 0;
	if (umem_owner_open(m->umem, &m->owner[who]))
		m->bad++;
}

static uint32_t model_total(const struct model *m)
{
	uint32_t total = umem_free_count(m->umem);

	for (uint32_t i = 0; i < OWNERS; i++)
		total += m->count[i];
	return total;
}

static void model_step(struct model *m)
{
	const uint32_t who = random_below(OWNERS), what = random_below(1000);

	if (what < 450)
		model_take(m, who);
	else if (what < 850)
		model_give(m, who);
	else if (what < 999)
		model_pass(m, who);
	else
		model_close(m, who);
}

static void random_operations_lose_nothing(void)
{
	static struct model m;

	CU_ASSERT_EQUAL_FATAL(umem_create(&m.umem, CHUNKS), 0);
	for (uint32_t i = 0; i < OWNERS; i++)
		CU_ASSERT_EQUAL(umem_owner_open(m.umem, &m.owner[i]), 0);
	for (uint32_t i = 0; i < OPERATIONS; i++) {
		model_step(&m);
		if (model_total(&m) != CHUNKS)
			m.bad++;
	}
	for (uint32_t i = 0; i < OWNERS; i++)
		CU_ASSERT_EQUAL(umem_owned(m.umem, m.owner[i]), m.count[i]);
	for (uint32_t i = 0; i < OWNERS; i++)
		umem_owner_close(m.umem, m.owner[i]);
	CU_ASSERT_EQUAL(m.bad, 0);
	CU_ASSERT_EQUAL(umem_free_count(m.umem), CHUNKS);
	umem_destroy(m.umem);
}

static void sizes_are_checked(void)
{
	static const uint32_t bad[] = {0, 1, 512, 1000, 1023, 1025, 3000, 2097152, UINT32_MAX};
	struct umem *umem = NULL;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_EQUAL(umem_create(&umem, bad[i]), -EINVAL);
	CU_ASSERT_PTR_NULL(umem);
	umem_destroy(NULL);
}

static void all_chunks_can_be_taken_once(void)
{
	static uint32_t chunk[CHUNKS + 1];
	uint8_t seen[CHUNKS] = {0};
	struct umem *umem;
	uint16_t owner;

	CU_ASSERT_EQUAL_FATAL(umem_create(&umem, CHUNKS), 0);
	CU_ASSERT_EQUAL(umem_size(umem), (size_t)CHUNKS * UMEM_CHUNK);
	CU_ASSERT_EQUAL(umem_owner_open(umem, &owner), 0);
	CU_ASSERT_EQUAL(umem_take(umem, owner, chunk, CHUNKS + 1), CHUNKS);
	for (uint32_t i = 0; i < CHUNKS; i++)
		seen[chunk[i] % CHUNKS]++;
	for (uint32_t i = 0; i < CHUNKS; i++)
		CU_ASSERT_EQUAL(seen[i], 1);
	CU_ASSERT_EQUAL(umem_take(umem, owner, chunk, 1), 0);
	CU_ASSERT_EQUAL(umem_owner_close(umem, owner), CHUNKS);
	umem_destroy(umem);
}

static void owners_are_numbered_without_double(void)
{
	struct umem *umem;
	uint16_t first, owner = 0;
	unsigned int n = 1;

	CU_ASSERT_EQUAL_FATAL(umem_create(&umem, CHUNKS), 0);
	CU_ASSERT_EQUAL(umem_owner_open(umem, &first), 0);
	CU_ASSERT_NOT_EQUAL(first, UMEM_NO_OWNER);
	while (umem_owner_open(umem, &owner) == 0)
		n++;
	CU_ASSERT_EQUAL(n, UMEM_OWNERS_MAX - 1);
	umem_owner_close(umem, first);
	CU_ASSERT_EQUAL(umem_owner_open(umem, &owner), 0);
	CU_ASSERT_EQUAL(owner, first);
	umem_destroy(umem);
}

/* Two threads take and give while a third owner is closed again and again. */
struct churn {
	struct umem *umem;
	uint16_t owner;
};

static void *churn_run(void *arg)
{
	const struct churn *c = arg;
	uint32_t chunk[BURST];

	for (unsigned int i = 0; i < 100000; i++) {
		unsigned int n = umem_take(c->umem, c->owner, chunk, BURST);

		umem_give(c->umem, chunk, n);
	}
	return NULL;
}

static void closing_an_owner_disturbs_no_other(void)
{
	struct churn churn[2] = {{0}};
	uint32_t chunk[BURST], lost = 0;
	pthread_t thread[2];
	struct umem *umem;
	uint16_t owner;

	CU_ASSERT_EQUAL_FATAL(umem_create(&umem, CHUNKS), 0);
	for (int i = 0; i < 2; i++) {
		churn[i].umem = umem;
		CU_ASSERT_EQUAL(umem_owner_open(umem, &churn[i].owner), 0);
		CU_ASSERT_EQUAL_FATAL(pthread_create(&thread[i], NULL, churn_run, &churn[i]), 0);
	}
	for (int i = 0; i < 500; i++) {
		CU_ASSERT_EQUAL(umem_owner_open(umem, &owner), 0);
		lost += umem_take(umem, owner, chunk, BURST) != umem_owner_close(umem, owner);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	CU_ASSERT_EQUAL(lost, 0);
	CU_ASSERT_EQUAL(umem_free_count(umem), CHUNKS);
	umem_destroy(umem);
}

static const struct unit_case cases[] = {
    UNIT_CASE(random_operations_lose_nothing),     UNIT_CASE(sizes_are_checked),
    UNIT_CASE(all_chunks_can_be_taken_once),       UNIT_CASE(owners_are_numbered_without_double),
    UNIT_CASE(closing_an_owner_disturbs_no_other),
};
UNIT_MAIN("umem", cases)
