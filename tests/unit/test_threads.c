/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Workers, control thread and guests in one process, for the thread sanitizer above all.
 *
 * The test's main thread is the control thread: it runs the loop with real vhost-user sockets and a
 * switch with two workers. Two guest threads connect to them as front-ends, exchange numbered
 * frames, and do to the control thread what guests do: new memory tables while frames flow, new
 * call descriptors, stopped and restarted queues, disconnect and reconnect. What is asserted is
 * what a switch must hold under all of that: numbers never go back, contents are intact, and every
 * frame that a guest handed over is accounted for.
 */
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "control/loop.h"
#include "control/vhost_user.h"
#include "guest/guest.h"
#include "ports/vhost.h"
#include "switch/vswitch.h"
#include "unit/unit.h"

#define GUESTS           2
#define FRAME_LEN        200u
#define ROUNDS           60u
#define FRAMES_PER_ROUND 64u
#define DEADLINE_NS      UINT64_C(40000000000)

struct player {
	unsigned int id;
	char path[64];
	pthread_t thread;
	struct guest guest;
	uint32_t sent;
	uint32_t received;
	uint32_t last;     /* highest number received */
	uint32_t disorder; /* numbers that went back, or damaged frames */
	int err;
};

struct bench {
	struct loop *loop;
	struct vswitch *sw;
	struct port *port[GUESTS];
	struct vhost_user *vu[GUESTS];
	struct loop_source *tick;
	struct player player[GUESTS];
	uint32_t done; /* players that finished */
};

/* ---- guests ---- */

static void make_frame(uint8_t *frame, unsigned int from, uint32_t number)
{
	const uint8_t head[14] = {2,    0,   0, 0, 0, (uint8_t)(0x0b - from),
				  2,    0,   0, 0, 0, (uint8_t)(0x0a + from),
				  0x88, 0xb5};

	memcpy(frame, head, sizeof(head));
	memcpy(frame + 14, &number, sizeof(number));
	for (uint32_t i = 18; i < FRAME_LEN; i++)
		frame[i] = (uint8_t)(number * 7 + i);
}

static void check_frame(struct player *p, const uint8_t *frame, int len)
{
	uint8_t expected[FRAME_LEN];
	uint32_t number;

	memcpy(&number, frame + 14, sizeof(number));
	make_frame(expected, 1 - p->id, number);
	if (len != (int)FRAME_LEN || memcmp(frame, expected, FRAME_LEN) || number <= p->last)
		p->disorder++;
	p->last = number;
	p->received++;
}

static void take_frames(struct player *p)
{
	uint8_t frame[2048];
	int len;

	while ((len = guest_rx(&p->guest, 0, frame, sizeof(frame))) > 0)
		check_frame(p, frame, len);
	if (len < 0)
		p->err = len;
}

static void send_frames(struct player *p)
{
	static const enum guest_tx_how how[] = {GUEST_TX_SINGLE, GUEST_TX_SPLIT, GUEST_TX_INDIRECT};
	uint8_t frame[FRAME_LEN];

	for (unsigned int i = 0; i < FRAMES_PER_ROUND; i++) {
		make_frame(frame, p->id, p->sent + 1);
		if (guest_tx(&p->guest, 0, frame, FRAME_LEN, how[i % ARRAY_LEN(how)]) == 0)
			p->sent++;
	}
	guest_tx_flush(&p->guest, 0);
}

/* Until the device has taken everything that was sent. */
static void settle(struct player *p)
{
	const struct guest_ring *tx = &p->guest.pair[0].tx;
	const uint64_t end = clock_ns() + DEADLINE_NS;

	while (guest_ring_raw_used_idx(tx) != tx->avail_published && clock_ns() < end)
		take_frames(p);
	if (guest_tx_reap(&p->guest, 0))
		p->err = -EPROTO;
}

/* What a front-end may do at any time, in turn. */
static int disturb(struct player *p, unsigned int round)
{
	struct frontend *fe = &p->guest.fe;
	int fd, err;

	switch (round % 5) {
	case 0:
		return frontend_set_mem(fe, &p->guest.ram);
	case 1:
		fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		err = frontend_set_ring_fd(fe, VU_SET_VRING_CALL, round % 2, fd);
		close(fd);
		return err;
	case 2:
		err = frontend_set_ring(fe, VU_SET_VRING_ENABLE, 1, 0);
		return err ? err : frontend_set_ring(fe, VU_SET_VRING_ENABLE, 1, 1);
	case 3:
		settle(p);
		guest_destroy(&p->guest);
		return 1;
	default:
		return 0;
	}
}

static int attach(struct player *p)
{
	struct guest_config config = guest_config_default();
	int err;

	config.two_regions = true;
	err = guest_create(&p->guest, &config);
	if (err)
		return err;
	p->guest.fe.timeout_ms = 20000;
	return guest_attach(&p->guest, p->path);
}

static void *player_main(void *arg)
{
	struct player *p = arg;

	p->err = attach(p);
	for (unsigned int round = 0; round < ROUNDS && p->err == 0; round++) {
		send_frames(p);
		take_frames(p);
		const int effect = disturb(p, round + p->id);

		if (effect > 0)
			p->err = attach(p);
		else if (effect < 0)
			p->err = effect;
	}
	if (p->err == 0)
		settle(p);
	guest_destroy(&p->guest);
	return NULL;
}

struct start_arg {
	struct bench *bench;
	struct player *player;
};

static void *player_thread(void *arg)
{
	struct start_arg *start = arg;

	player_main(start->player);
	__atomic_add_fetch(&start->bench->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* ---- control thread ---- */

static void on_tick(void *ctx)
{
	struct bench *b = ctx;
	struct port_counters c;

	vswitch_tick(b->sw);
	for (unsigned int i = 0; i < GUESTS; i++) {
		vhost_check_faults(vhost_of(b->port[i]), clock_ns());
		vswitch_port_counters(b->sw, b->port[i], &c);
	}
}

static void add_guest_port(struct bench *b, unsigned int i)
{
	struct player *p = &b->player[i];
	char name[8], why[UNIX_WHY_SIZE];

	p->id = i;
	snprintf(p->path, sizeof(p->path), "/tmp/xvs-threads-%d-%u.sock", (int)getpid(), i);
	snprintf(name, sizeof(name), "g%u", i);
	CU_ASSERT_EQUAL_FATAL(vhost_port_create(&b->port[i], name, 1, p->path, "server"), 0);
	CU_ASSERT_EQUAL_FATAL(vswitch_add_port(b->sw, b->port[i]), 0);
	const struct vhost_user_config config = {
	    .loop = b->loop,
	    .port = vhost_of(b->port[i]),
	    .path = p->path,
	    .mode = VHOST_USER_SERVER,
	    .socket_mode = 0600,
	    .socket_group = UNIX_GROUP_NONE,
	};
	CU_ASSERT_EQUAL_FATAL(vhost_user_create(&b->vu[i], &config, why, sizeof(why)), 0);
}

static void check_accounts(struct bench *b)
{
	for (unsigned int i = 0; i < GUESTS; i++) {
		const struct player *from = &b->player[i];
		const struct player *to = &b->player[1 - i];
		struct port_counters c;

		CU_ASSERT_EQUAL(from->err, 0);
		CU_ASSERT_EQUAL(to->disorder, 0);
		CU_ASSERT(to->received > 0 && to->received <= from->sent);
		vswitch_port_counters(b->sw, b->port[i], &c);
		CU_ASSERT_EQUAL(c.value[CTR_RX_PACKETS] + counters_rx_dropped(&c), from->sent);
		printf("guest %u: %u sent, %llu accepted, %u received by the other\n", i,
		       from->sent, (unsigned long long)c.value[CTR_RX_PACKETS], to->received);
	}
}

static void workers_control_and_guests(void)
{
	static struct bench b;
	struct start_arg start[GUESTS];
	const struct vswitch_config config = {
	    .worker_cpus = {.count = 2, .cpu = {0, 1}},
	    .fdb_capacity = 1024,
	};
	const uint64_t end = clock_ns() + 2 * DEADLINE_NS;

	clock_init();
	CU_ASSERT_EQUAL_FATAL(loop_create(&b.loop), 0);
	CU_ASSERT_EQUAL_FATAL(vswitch_create(&b.sw, &config), 0);
	for (unsigned int i = 0; i < GUESTS; i++)
		add_guest_port(&b, i);
	CU_ASSERT_EQUAL_FATAL(loop_add_timer(b.loop, &b.tick, on_tick, &b), 0);
	loop_timer_set(b.tick, 10, 10);
	for (unsigned int i = 0; i < GUESTS; i++) {
		start[i] = (struct start_arg){&b, &b.player[i]};
		CU_ASSERT_EQUAL_FATAL(
		    pthread_create(&b.player[i].thread, NULL, player_thread, &start[i]), 0);
	}
	while (load_acquire(&b.done) < GUESTS && clock_ns() < end)
		loop_run_once(b.loop, 10);
	CU_ASSERT_EQUAL_FATAL(load_acquire(&b.done), GUESTS);
	for (unsigned int i = 0; i < GUESTS; i++)
		pthread_join(b.player[i].thread, NULL);
	check_accounts(&b);
	for (unsigned int i = 0; i < GUESTS; i++)
		vhost_user_destroy(b.vu[i]);
	vswitch_destroy(b.sw);
	loop_destroy(b.loop);
}

static const struct unit_case cases[] = {
    UNIT_CASE(workers_control_and_guests),
};
UNIT_MAIN("threads", cases)
