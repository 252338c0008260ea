/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Output queues: direct when empty, backlog when not, bounded, in order, nothing stranded.
 *
 * The receiver is a transmit queue made of a counter of free places and a log of what arrived. The
 * concurrent case has several senders on one queue, as workers of a switch would be, and checks
 * per sender that numbers arrive in order and that sent = arrived + dropped.
 */
#include "switch/outq.h"

#include <pthread.h>
#include <string.h>

#include "base/atomic.h"
#include "base/cpu.h"
#include "unit/unit.h"

#define SENDERS    3
#define PER_SENDER 100000u

struct sink {
	struct txq q;
	uint32_t room; /* frames it still takes */
	uint64_t arrived;
	uint64_t disorder;
	uint64_t flushes;
	uint32_t last[SENDERS];
};

static uint32_t pkt_number(const struct pkt *p)
{
	uint32_t n;

	memcpy(&n, p->hdr + 16, sizeof(n));
	return n;
}

static unsigned int sink_put(struct txq *q, struct pkt *const pkt[], unsigned int n,
			     struct port_counters *c)
{
	struct sink *s = container_of(q, struct sink, q);
	unsigned int i;

	for (i = 0; i < n && s->room; i++) {
		const uint8_t sender = pkt[i]->hdr[15];
		const uint32_t number = pkt_number(pkt[i]);

		s->disorder += number <= s->last[sender];
		s->last[sender] = number;
		s->arrived++;
		if (s->room != UINT32_MAX)
			s->room--;
		counter_add(&c->value[CTR_TX_PACKETS], 1);
	}
	return i;
}

static void sink_flush(struct txq *q, struct port_counters *c)
{
	struct sink *s = container_of(q, struct sink, q);

	(void)c;
	s->flushes++;
}

static const struct txq_ops sink_ops = {.put = sink_put, .flush = sink_flush};

struct fixture {
	struct frame_pool *pool;
	struct outq *oq;
	struct sink sink;
	struct port_counters c;
	struct batch scratch;
	uint8_t frame[128];
	struct pkt pkt[BATCH_MAX];
	struct pkt *list[BATCH_MAX];
	uint32_t next;
};

static void setup(struct fixture *f, uint32_t room)
{
	memset(f, 0, sizeof(*f));
	f->sink.q.ops = &sink_ops;
	f->sink.room = room;
	f->next = 1;
	CU_ASSERT_EQUAL_FATAL(frame_pool_create(&f->pool), 0);
	CU_ASSERT_EQUAL_FATAL(outq_create(&f->oq, &f->sink.q, f->pool), 0);
}

static void teardown(struct fixture *f)
{
	outq_destroy(f->oq);
	CU_ASSERT_EQUAL(frame_pool_free_count(f->pool), frame_pool_chunks(f->pool));
	frame_pool_destroy(f->pool);
}

static void make_pkt(struct pkt *p, uint8_t *frame, uint32_t len, uint8_t sender, uint32_t number)
{
	frame[15] = sender;
	memcpy(frame + 16, &number, sizeof(number));
	pkt_set(p, frame, len);
}

static bool send_n(struct fixture *f, bool paused, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		make_pkt(&f->pkt[i], f->frame, sizeof(f->frame), 0, f->next++);
		f->list[i] = &f->pkt[i];
	}
	return outq_send(f->oq, paused, false, f->list, n, &f->c, &f->scratch);
}

static void direct_when_empty(void)
{
	struct fixture f;

	setup(&f, UINT32_MAX);
	CU_ASSERT(send_n(&f, false, 32));
	CU_ASSERT_EQUAL(f.sink.arrived, 32);
	CU_ASSERT_EQUAL(f.sink.flushes, 0);
	CU_ASSERT_FALSE(outq_end(f.oq, &f.c, &f.scratch));
	CU_ASSERT_EQUAL(f.sink.flushes, 1);
	CU_ASSERT_EQUAL(f.c.value[CTR_BACKLOGGED], 0);
	teardown(&f);
}

static void waits_in_order_while_full(void)
{
	struct fixture f;

	setup(&f, 10);
	CU_ASSERT(send_n(&f, false, 32));
	CU_ASSERT(outq_end(f.oq, &f.c, &f.scratch));
	CU_ASSERT_EQUAL(f.sink.arrived, 10);
	CU_ASSERT_EQUAL(outq_backlog(f.oq), 22);
	/* Younger frames queue up behind, although there is room again. */
	f.sink.room = 5;
	CU_ASSERT(send_n(&f, false, 4));
	CU_ASSERT(outq_end(f.oq, &f.c, &f.scratch));
	f.sink.room = UINT32_MAX;
	CU_ASSERT_FALSE(outq_retry(f.oq, &f.c, &f.scratch));
	CU_ASSERT_EQUAL(f.sink.arrived, 36);
	CU_ASSERT_EQUAL(f.sink.disorder, 0);
	CU_ASSERT_EQUAL(f.c.value[CTR_BACKLOGGED], 26);
	teardown(&f);
}

static void paused_queue_is_not_touched(void)
{
	struct fixture f;

	setup(&f, UINT32_MAX);
	CU_ASSERT_FALSE(send_n(&f, true, 8));
	CU_ASSERT_EQUAL(f.sink.arrived, 0);
	CU_ASSERT_EQUAL(outq_backlog(f.oq), 8);
	CU_ASSERT_FALSE(outq_retry(f.oq, &f.c, &f.scratch));
	CU_ASSERT_EQUAL(f.sink.arrived, 8);
	CU_ASSERT_EQUAL(f.sink.flushes, 1);
	teardown(&f);
}

static void long_frames_are_counted_once(void)
{
	static uint8_t big[9000];
	struct fixture f;

	setup(&f, 0);
	for (unsigned int i = 0; i < 3; i++) {
		make_pkt(&f.pkt[i], big, sizeof(big), 0, i);
		f.list[i] = &f.pkt[i];
	}
	CU_ASSERT_FALSE(outq_send(f.oq, true, false, f.list, 3, &f.c, &f.scratch));
	CU_ASSERT_EQUAL(outq_frames(f.oq), 3);
	CU_ASSERT_EQUAL(outq_backlog(f.oq), 3 * frame_chunks(sizeof(big)));
	teardown(&f);
}

static void full_backlog_drops_and_counts(void)
{
	struct fixture f;
	unsigned int sent = 0;

	setup(&f, 0);
	for (; sent < 2 * OUTQ_BACKLOG; sent += 32) {
		CU_ASSERT(send_n(&f, false, 32));
		outq_end(f.oq, &f.c, &f.scratch);
	}
	CU_ASSERT_EQUAL(outq_backlog(f.oq), OUTQ_BACKLOG);
	CU_ASSERT_EQUAL(f.c.drop[DROP_BACKLOG_FULL], sent - OUTQ_BACKLOG);
	/* Congested: once drained, what does not fit is dropped at once instead of queued. */
	f.sink.room = OUTQ_BACKLOG;
	CU_ASSERT_FALSE(outq_retry(f.oq, &f.c, &f.scratch));
	CU_ASSERT(send_n(&f, false, 32));
	CU_ASSERT_FALSE(outq_end(f.oq, &f.c, &f.scratch));
	CU_ASSERT_EQUAL(f.c.drop[DROP_RING_FULL], 32);
	/* A batch that fits ends the congestion. */
	f.sink.room = 40;
	CU_ASSERT(send_n(&f, false, 32));
	outq_end(f.oq, &f.c, &f.scratch);
	CU_ASSERT(send_n(&f, false, 32));
	CU_ASSERT(outq_end(f.oq, &f.c, &f.scratch));
	CU_ASSERT_EQUAL(f.c.drop[DROP_RING_FULL], 32);
	CU_ASSERT_EQUAL(outq_backlog(f.oq), 24);
	outq_purge(f.oq, &f.c);
	CU_ASSERT_EQUAL(f.c.drop[DROP_PORT_DOWN], 24);
	teardown(&f);
}

static void jumbo_frames_survive_the_backlog(void)
{
	static uint8_t big[FRAME_MAX];
	const uint32_t lens[] = {14, 31, 32, 33, 2031, 2032, 2033, 2064, 9018, FRAME_MAX};
	struct frame_pool *pool;
	static struct batch scratch;

	for (uint32_t i = 0; i < sizeof(big); i++)
		big[i] = (uint8_t)(i * 31 + i / 251);
	CU_ASSERT_EQUAL_FATAL(frame_pool_create(&pool), 0);
	CU_ASSERT_EQUAL_FATAL(frame_pool_reserve(pool, 64), 0);
	for (unsigned int i = 0; i < ARRAY_LEN(lens); i++) {
		static uint8_t out[FRAME_MAX];
		struct pkt p, q;

		pkt_set(&p, big, lens[i]);
		struct frame *f = frame_copy(pool, &p);

		CU_ASSERT_PTR_NOT_NULL_FATAL(f);
		batch_reset(&scratch);
		frame_to_pkt(f, &q, &scratch);
		CU_ASSERT_EQUAL(q.len, lens[i]);
		memset(out, 0, sizeof(out));
		pkt_copy_out(&q, out);
		CU_ASSERT_EQUAL(memcmp(out, big, lens[i]), 0);
		frame_free(pool, f);
	}
	CU_ASSERT_EQUAL(frame_pool_free_count(pool), frame_pool_chunks(pool));
	frame_pool_destroy(pool);
}

/* ---- several senders ---- */

struct sender {
	struct fixture *f;
	uint8_t id;
	uint32_t sent;
	struct port_counters c;
	struct batch scratch;
	pthread_t thread;
};

/* One round of a worker: a few frames, then let go; sometimes twice in a round. */
static void sender_round(struct sender *s, uint32_t *number, bool *pending)
{
	uint8_t frame[8][64] = {{0}};
	struct pkt pkt[8], *list[8];
	const unsigned int n = 1 + *number % 8;

	for (unsigned int i = 0; i < n; i++) {
		make_pkt(&pkt[i], frame[i], 64, s->id, (*number)++);
		list[i] = &pkt[i];
	}
	if (outq_send(s->f->oq, false, false, list, n, &s->c, &s->scratch))
		*pending |= outq_end(s->f->oq, &s->c, &s->scratch);
	if (*pending)
		*pending = outq_retry(s->f->oq, &s->c, &s->scratch);
}

static void *sender_main(void *arg)
{
	struct sender *s = arg;
	bool pending = false;

	uint32_t number = 1;

	while (number <= PER_SENDER)
		sender_round(s, &number, &pending);
	s->sent = number - 1;
	return NULL;
}

static void senders_share_a_queue(void)
{
	static struct fixture f;
	static struct sender sender[SENDERS];
	uint64_t sent = 0, dropped = 0, queued = 0;

	setup(&f, UINT32_MAX);
	for (uint8_t i = 0; i < SENDERS; i++) {
		sender[i] = (struct sender){.f = &f, .id = i};
		CU_ASSERT_EQUAL_FATAL(
		    pthread_create(&sender[i].thread, NULL, sender_main, &sender[i]), 0);
	}
	for (unsigned int i = 0; i < SENDERS; i++) {
		pthread_join(sender[i].thread, NULL);
		sent += sender[i].sent;
		for (unsigned int d = 0; d < DROP_COUNT; d++)
			dropped += sender[i].c.drop[d];
		queued += sender[i].c.value[CTR_BACKLOGGED];
	}
	/* The receiver was never full: whatever was appended has been drained by somebody. */
	CU_ASSERT_EQUAL(outq_backlog(f.oq), 0);
	CU_ASSERT_EQUAL(f.sink.disorder, 0);
	CU_ASSERT_EQUAL(f.sink.arrived + dropped, sent);
	printf("%llu arrived, %llu dropped, %llu through the backlog\n",
	       (unsigned long long)f.sink.arrived, (unsigned long long)dropped,
	       (unsigned long long)queued);
	teardown(&f);
}

static const struct unit_case cases[] = {
    UNIT_CASE(direct_when_empty),
    UNIT_CASE(waits_in_order_while_full),
    UNIT_CASE(paused_queue_is_not_touched),
    UNIT_CASE(long_frames_are_counted_once),
    UNIT_CASE(full_backlog_drops_and_counts),
    UNIT_CASE(jumbo_frames_survive_the_backlog),
    UNIT_CASE(senders_share_a_queue),
};
UNIT_MAIN("outq", cases)
