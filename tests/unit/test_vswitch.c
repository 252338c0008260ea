/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The switch as a whole, with pipe ports instead of guests: learning, flooding, ageing of what is
 * behind a port that goes, limits, counters, hand-off of queues under traffic.
 *
 * One or two workers run (not pinned); the test is the control thread and the tester of all ports.
 * Waiting is bounded by a deadline, never by a fixed sleep, and no assertion depends on time.
 */
#include "switch/vswitch.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "ports/pipe.h"
#include "unit/unit.h"

#define DEADLINE_NS UINT64_C(10000000000)
#define NPORTS      3

struct fixture {
	struct vswitch *sw;
	struct port *port[NPORTS];
};

static void setup_workers(struct fixture *f, unsigned int workers, unsigned int nqueues)
{
	struct vswitch_config config = {.fdb_capacity = 1024, .fdb_seed = 1};
	static const char *const name[NPORTS] = {"a", "b", "c"};

	config.worker_cpus.count = workers;
	for (unsigned int i = 0; i < workers; i++)
		config.worker_cpus.cpu[i] = i;
	clock_init();
	CU_ASSERT_EQUAL_FATAL(vswitch_create(&f->sw, &config), 0);
	for (unsigned int i = 0; i < NPORTS; i++) {
		CU_ASSERT_EQUAL_FATAL(pipe_port_create(&f->port[i], name[i], nqueues), 0);
		CU_ASSERT_EQUAL_FATAL(vswitch_add_port(f->sw, f->port[i]), 0);
		pipe_set_state(f->port[i], QUEUE_RUNNING);
	}
}

static void setup(struct fixture *f)
{
	setup_workers(f, 1, 1);
}

static void teardown(struct fixture *f)
{
	vswitch_destroy(f->sw);
}

/* dst and src are the last octet of 02:00:00:00:00:xx; 0xff means broadcast. */
static void make_frame(uint8_t *frame, uint8_t dst, uint8_t src, uint32_t number)
{
	const uint8_t head[14] = {2, 0, 0, 0, 0, dst, 2, 0, 0, 0, 0, src, 0x88, 0xb5};

	memset(frame, 0xa5, 64);
	memcpy(frame, head, sizeof(head));
	if (dst == 0xff)
		memset(frame, 0xff, 6);
	memcpy(frame + 14, &number, sizeof(number));
}

static void send_frame(struct port *p, uint8_t dst, uint8_t src, uint32_t number)
{
	uint8_t frame[64];

	make_frame(frame, dst, src, number);
	CU_ASSERT(pipe_send(p, 0, frame, sizeof(frame)));
}

/* Waits for the next frame; 0 when none comes until the deadline. */
static uint32_t receive(struct port *p, uint8_t *buf, uint32_t size)
{
	const uint64_t end = clock_ns() + DEADLINE_NS;
	uint32_t len;

	while ((len = pipe_receive(p, 0, buf, size)) == 0 && clock_ns() < end)
		;
	return len;
}

static uint32_t receive_number(struct port *p)
{
	uint8_t buf[2048];
	uint32_t number = 0;

	CU_ASSERT_EQUAL_FATAL(receive(p, buf, sizeof(buf)), 64);
	memcpy(&number, buf + 14, sizeof(number));
	return number;
}

static bool nothing(struct port *p)
{
	uint8_t buf[2048];

	return pipe_receive(p, 0, buf, sizeof(buf)) == 0;
}

/* Returns when the switch has dealt with all frames sent so far: `rx` of them from that port. */
static struct port_counters settled(struct fixture *f, struct port *p, uint64_t rx)
{
	const uint64_t end = clock_ns() + DEADLINE_NS;
	struct port_counters c;

	do
		vswitch_port_counters(f->sw, p, &c);
	while (c.value[CTR_RX_PACKETS] + counters_rx_dropped(&c) < rx && clock_ns() < end);
	vswitch_publish(f->sw); /* the round that counted them has ended */
	vswitch_port_counters(f->sw, p, &c);
	return c;
}

static void learns_and_forwards(void)
{
	struct fixture f;
	struct port_counters c;

	setup(&f);
	send_frame(f.port[0], 0x0b, 0x0a, 1); /* unknown: to b and c */
	CU_ASSERT_EQUAL(receive_number(f.port[1]), 1);
	CU_ASSERT_EQUAL(receive_number(f.port[2]), 1);
	send_frame(f.port[1], 0x0a, 0x0b, 2); /* known: to a only */
	CU_ASSERT_EQUAL(receive_number(f.port[0]), 2);
	send_frame(f.port[0], 0x0b, 0x0a, 3);
	CU_ASSERT_EQUAL(receive_number(f.port[1]), 3);
	send_frame(f.port[0], 0xff, 0x0a, 4); /* broadcast: to b and c, not back */
	CU_ASSERT_EQUAL(receive_number(f.port[1]), 4);
	CU_ASSERT_EQUAL(receive_number(f.port[2]), 4);
	c = settled(&f, f.port[0], 3);
	CU_ASSERT(nothing(f.port[0]) && nothing(f.port[1]) && nothing(f.port[2]));
	CU_ASSERT_EQUAL(c.value[CTR_RX_PACKETS], 3);
	CU_ASSERT_EQUAL(c.value[CTR_RX_BYTES], 3 * 64);
	CU_ASSERT_EQUAL(c.value[CTR_TX_PACKETS], 1);
	CU_ASSERT_EQUAL(c.value[CTR_FLOODED], 2);
	teardown(&f);
}

static void never_back_to_the_source(void)
{
	struct fixture f;
	struct port_counters c;

	setup(&f);
	send_frame(f.port[0], 0x0b, 0x0a, 1);
	send_frame(f.port[0], 0x0a, 0x0c, 2); /* to an address behind the same port */
	c = settled(&f, f.port[0], 2);
	CU_ASSERT_EQUAL(c.drop[DROP_SAME_PORT], 1);
	CU_ASSERT(nothing(f.port[0]));
	teardown(&f);
}

static void group_and_zero_sources_are_dropped(void)
{
	static const uint8_t bad[3][6] = {
	    {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, {0x01, 0x00, 0x5e, 0x00, 0x00, 0x01}, {0}};
	struct fixture f;
	struct port_counters c;
	struct fdb_stats stats;
	uint8_t frame[64];

	setup(&f);
	for (unsigned int i = 0; i < ARRAY_LEN(bad); i++) {
		make_frame(frame, 0x0b, 0x0a, i);
		memcpy(frame + 6, bad[i], 6);
		CU_ASSERT(pipe_send(f.port[0], 0, frame, sizeof(frame)));
	}
	c = settled(&f, f.port[0], 3);
	CU_ASSERT_EQUAL(c.drop[DROP_BAD_SOURCE], 3);
	CU_ASSERT(nothing(f.port[1]));
	fdb_get_stats(vswitch_fdb(f.sw), &stats);
	CU_ASSERT_EQUAL(stats.entries, 0);
	teardown(&f);
}

static void addresses_leave_with_their_port(void)
{
	struct fixture f;
	struct fdb_stats stats;

	setup(&f);
	send_frame(f.port[0], 0x0b, 0x0a, 1);
	receive_number(f.port[1]);
	receive_number(f.port[2]);
	pipe_set_state(f.port[0], QUEUE_OFF);
	fdb_get_stats(vswitch_fdb(f.sw), &stats);
	CU_ASSERT_EQUAL(stats.entries, 0);
	send_frame(f.port[1], 0x0a, 0x0b, 2); /* now unknown: flooded to c only */
	CU_ASSERT_EQUAL(receive_number(f.port[2]), 2);
	CU_ASSERT(nothing(f.port[0]));
	vswitch_del_port(f.sw, f.port[2]);
	send_frame(f.port[1], 0x0a, 0x0b, 3);
	CU_ASSERT_EQUAL(settled(&f, f.port[1], 2).drop[DROP_NO_DESTINATION], 1);
	teardown(&f);
}

static void long_frames_stop_at_the_port_that_cannot_take_them(void)
{
	static uint8_t frame[9018];
	struct fixture f;
	struct port_counters c;

	setup(&f);
	pipe_set_state(f.port[1], QUEUE_OFF);
	f.port[1]->txq[0]->max_frame = 1518;
	pipe_set_state(f.port[1], QUEUE_RUNNING);
	make_frame(frame, 0xff, 0x0a, 7);
	CU_ASSERT(pipe_send(f.port[0], 0, frame, sizeof(frame)));
	CU_ASSERT_EQUAL(receive(f.port[2], frame, sizeof(frame)), sizeof(frame));
	settled(&f, f.port[0], 1);
	vswitch_port_counters(f.sw, f.port[1], &c);
	CU_ASSERT_EQUAL(c.drop[DROP_TX_OVERSIZE], 1);
	CU_ASSERT(nothing(f.port[1]));
	teardown(&f);
}

static void paused_port_loses_nothing(void)
{
	struct fixture f;
	struct port_counters c;

	setup(&f);
	send_frame(f.port[1], 0xff, 0x0b, 1);
	receive_number(f.port[0]);
	receive_number(f.port[2]);
	pipe_set_state(f.port[1], QUEUE_PAUSED);
	for (uint32_t i = 1; i <= 100; i++)
		send_frame(f.port[0], 0x0b, 0x0a, i);
	settled(&f, f.port[0], 100);
	CU_ASSERT(nothing(f.port[1]));
	CU_ASSERT_EQUAL(vswitch_port_backlog(f.sw, f.port[1]), 100);
	pipe_set_state(f.port[1], QUEUE_RUNNING);
	for (uint32_t i = 1; i <= 100; i++)
		CU_ASSERT_EQUAL(receive_number(f.port[1]), i);
	vswitch_port_counters(f.sw, f.port[1], &c);
	CU_ASSERT_EQUAL(counters_tx_dropped(&c), 0);
	teardown(&f);
}

static void stopped_receiver_hurts_only_itself(void)
{
	struct fixture f;
	struct port_counters c;
	const uint32_t n = 1000;

	setup(&f);
	send_frame(f.port[1], 0xff, 0x0b, 1);
	send_frame(f.port[2], 0xff, 0x0c, 1);
	receive_number(f.port[0]);
	receive_number(f.port[0]);
	receive_number(f.port[2]);
	receive_number(f.port[1]);
	pipe_set_room(f.port[1], 0, 0);
	for (uint32_t i = 1; i <= n; i++) {
		send_frame(f.port[0], 0x0b, 0x0a, i);
		send_frame(f.port[0], 0x0c, 0x0a, i);
		CU_ASSERT_EQUAL(receive_number(f.port[2]), i);
	}
	settled(&f, f.port[0], 2 * n);
	vswitch_port_counters(f.sw, f.port[1], &c);
	/* Each frame for b is sent, dropped with a reason, or still waiting. */
	CU_ASSERT_EQUAL(c.value[CTR_TX_PACKETS] - 1 + counters_tx_dropped(&c) +
			    vswitch_port_backlog(f.sw, f.port[1]),
			n);
	pipe_set_room(f.port[1], 0, PIPE_ROOM_UNLIMITED);
	CU_ASSERT_EQUAL(receive_number(f.port[1]), 1); /* the oldest first */
	teardown(&f);
}

static void queues_come_and_go_under_traffic(void)
{
	struct fixture f;
	uint8_t buf[2048];
	uint32_t sent = 0, got = 0, last = 0;

	setup_workers(&f, 2, 2);
	send_frame(f.port[1], 0xff, 0x0b, 1);
	receive_number(f.port[0]);
	receive_number(f.port[2]);
	for (unsigned int round = 0; round < 300; round++) {
		for (unsigned int i = 0; i < 16; i++) {
			make_frame(buf, 0x0b, 0x0a, sent + 1);
			sent += pipe_send(f.port[0], 0, buf, 64);
		}
		if (round % 3 == 0)
			pipe_set_state(f.port[1], QUEUE_PAUSED);
		if (round % 3 == 1)
			pipe_set_state(f.port[1], QUEUE_RUNNING);
		if (round % 10 == 9) {
			pipe_set_state(f.port[2], QUEUE_OFF);
			pipe_set_state(f.port[2], QUEUE_RUNNING);
		}
		while (pipe_receive(f.port[1], 0, buf, sizeof(buf))) {
			uint32_t number;

			memcpy(&number, buf + 14, sizeof(number));
			CU_ASSERT(number > last);
			last = number;
			got++;
		}
	}
	pipe_set_state(f.port[1], QUEUE_RUNNING);
	const struct port_counters c = settled(&f, f.port[0], sent);
	struct port_counters b;

	vswitch_port_counters(f.sw, f.port[1], &b);
	CU_ASSERT_EQUAL(c.value[CTR_RX_PACKETS], sent);
	CU_ASSERT_EQUAL(b.value[CTR_TX_PACKETS] + counters_tx_dropped(&b) +
			    vswitch_port_backlog(f.sw, f.port[1]),
			sent);
	CU_ASSERT(got > 0);
	teardown(&f);
}

static void names_are_unique_and_counters_start_at_zero(void)
{
	struct fixture f;
	struct port *twin;
	struct port_counters c;

	setup(&f);
	CU_ASSERT_EQUAL_FATAL(pipe_port_create(&twin, "a", 1), 0);
	CU_ASSERT_EQUAL(vswitch_add_port(f.sw, twin), -EEXIST);
	send_frame(f.port[0], 0xff, 0x0a, 1);
	settled(&f, f.port[0], 1);
	vswitch_del_port(f.sw, f.port[0]);
	/* Ids are handed out in turn; go once around so that a's id is used again. */
	CU_ASSERT_EQUAL(vswitch_add_port(f.sw, twin), 0);
	for (unsigned int i = 0; i < PORT_ID_MAX; i++) {
		struct port *p;

		vswitch_port_counters(f.sw, twin, &c);
		CU_ASSERT_EQUAL(c.value[CTR_RX_PACKETS], 0);
		vswitch_del_port(f.sw, twin);
		CU_ASSERT_EQUAL_FATAL(pipe_port_create(&p, "a", 1), 0);
		CU_ASSERT_EQUAL_FATAL(vswitch_add_port(f.sw, p), 0);
		twin = p;
	}
	teardown(&f);
}

static void ages_what_is_silent(void)
{
	struct vswitch_config config = {.fdb_capacity = 64, .fdb_seed = 1, .ageing = 1};
	struct fdb_stats stats;
	struct vswitch *sw;
	const uint64_t end = clock_ns() + DEADLINE_NS;

	config.worker_cpus.count = 1;
	CU_ASSERT_EQUAL_FATAL(vswitch_create(&sw, &config), 0);
	fdb_learn(vswitch_fdb(sw), 1, 1, vswitch_now(sw));
	do {
		vswitch_tick(sw);
		fdb_get_stats(vswitch_fdb(sw), &stats);
	} while (stats.entries && clock_ns() < end);
	CU_ASSERT_EQUAL(stats.entries, 0);
	CU_ASSERT_EQUAL(stats.aged, 1);
	vswitch_destroy(sw);
}

static const struct unit_case cases[] = {
    UNIT_CASE(learns_and_forwards),
    UNIT_CASE(never_back_to_the_source),
    UNIT_CASE(group_and_zero_sources_are_dropped),
    UNIT_CASE(addresses_leave_with_their_port),
    UNIT_CASE(long_frames_stop_at_the_port_that_cannot_take_them),
    UNIT_CASE(paused_port_loses_nothing),
    UNIT_CASE(stopped_receiver_hurts_only_itself),
    UNIT_CASE(queues_come_and_go_under_traffic),
    UNIT_CASE(names_are_unique_and_counters_start_at_zero),
    UNIT_CASE(ages_what_is_silent),
};
UNIT_MAIN("vswitch", cases)
