/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two guests, a worker and a control thread in one process: what front-ends may change while
 * frames flow, they change here, hundreds of times. Guest A sends numbered frames to guest B. At
 * the end each frame has arrived once and in order, or a counter says where it was dropped.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/copy.h"
#include "base/log.h"
#include "control/vhost_user.h"
#include "guest/guest.h"
#include "switch/vswitch.h"
#include "unit.h"

#define A         0
#define B         1
#define RX        0
#define TX        1
#define ROUNDS    400
#define BURST     24
#define SLEEPS    20000
#define FRAME_LEN 64

struct world {
	struct vswitch *sw;
	struct loop *loop;
	struct loop_source *stop;
	pthread_t control;
	int stop_fd;
	struct port *port[2];
	struct vhost_user *vu[2];
	struct guest guest[2];
	char path[2][64];
	uint32_t sent;
	uint32_t received;
	uint32_t next; /* least number that may come now */
};

static char dir[32];

static void stop_event(void *ctx, uint32_t events)
{
	(void)events;
	loop_stop(ctx);
}

static void *control_run(void *arg)
{
	struct world *w = arg;

	CU_ASSERT_EQUAL(loop_run(w->loop), 0);
	return NULL;
}

static void add_port(struct world *w, int i)
{
	char why[UNIX_WHY_SIZE] = "";
	struct vhost_user_config config;

	snprintf(w->path[i], sizeof(w->path[i]), "%s/%c", dir, 'a' + i);
	CU_ASSERT_EQUAL_FATAL(
	    vhost_port_create(&w->port[i], i ? "b" : "a", 1, w->path[i], "server"), 0);
	CU_ASSERT_EQUAL_FATAL(vswitch_add_port(w->sw, w->port[i]), 0);
	config = (struct vhost_user_config){.loop = w->loop,
					    .port = vhost_of(w->port[i]),
					    .path = w->path[i],
					    .socket_mode = 0600,
					    .socket_group = UNIX_GROUP_NONE};
	CU_ASSERT_EQUAL_FATAL(vhost_user_create(&w->vu[i], &config, why, sizeof(why)), 0);
}

static void attach(struct world *w, int i, bool event_idx)
{
	struct guest_config config = guest_config_default();

	config.protocol |= FEATURE(13); /* RESET_DEVICE */
	if (event_idx)
		config.features |= FEATURE(VIRTIO_F_EVENT_IDX);
	config.interrupts = event_idx;
	CU_ASSERT_EQUAL_FATAL(guest_create(&w->guest[i], &config), 0);
	CU_ASSERT_EQUAL_FATAL(guest_attach(&w->guest[i], w->path[i]), 0);
	w->guest[i].fe.reply_ack = true;
	CU_ASSERT_EQUAL(frontend_sync(&w->guest[i].fe), 0);
}

static void world_open(struct world *w, bool event_idx)
{
	struct vswitch_config config = {.worker_cpus = {.count = 1}, .fdb_seed = 1};

	memset(w, 0, sizeof(*w));
	CU_ASSERT_EQUAL_FATAL(vswitch_create(&w->sw, &config), 0);
	CU_ASSERT_EQUAL_FATAL(loop_create(&w->loop), 0);
	w->stop_fd = eventfd(0, EFD_CLOEXEC);
	CU_ASSERT_EQUAL_FATAL(
	    loop_add_fd(w->loop, &w->stop, w->stop_fd, EPOLLIN, stop_event, w->loop), 0);
	for (int i = 0; i < 2; i++)
		add_port(w, i);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&w->control, NULL, control_run, w), 0);
	for (int i = 0; i < 2; i++)
		attach(w, i, event_idx);
}

static void world_close(struct world *w)
{
	CU_ASSERT_EQUAL(write(w->stop_fd, &(uint64_t){1}, 8), 8);
	pthread_join(w->control, NULL);
	for (int i = 0; i < 2; i++) {
		vhost_user_destroy(w->vu[i]);
		vswitch_del_port(w->sw, w->port[i]);
		guest_destroy(&w->guest[i]);
	}
	vswitch_destroy(w->sw);
	loop_destroy(w->loop);
	close(w->stop_fd);
}

/* ---- traffic ---- */

static uint32_t number_of(const uint8_t *frame)
{
	uint32_t n;

	memcpy(&n, frame + 14, sizeof(n));
	return n;
}

static bool send_one(struct world *w)
{
	uint8_t frame[FRAME_LEN] = {2, 0, 0, 0, 0, B, 2, 0, 0, 0, 0, A, 0x88, 0xb5};

	memcpy(frame + 14, &w->sent, sizeof(w->sent));
	memset(frame + 18, (int)w->sent & 0xff, sizeof(frame) - 18);
	if (guest_tx(&w->guest[A], 0, frame, sizeof(frame), (enum guest_tx_how)(w->sent % 3)))
		return false;
	w->sent++;
	return true;
}

static void send_burst(struct world *w)
{
	for (int i = 0; i < BURST && send_one(w); i++)
		;
	guest_tx_flush(&w->guest[A], 0);
}

static void check_frame(struct world *w, const uint8_t *frame, int len)
{
	const uint32_t n = number_of(frame);

	CU_ASSERT_EQUAL(len, FRAME_LEN);
	CU_ASSERT(n >= w->next && n < w->sent);
	for (int i = 18; i < FRAME_LEN; i++)
		if (frame[i] != (uint8_t)n) {
			CU_FAIL("damaged frame");
			break;
		}
	w->next = n + 1;
	w->received++;
}

static unsigned int receive_all(struct world *w)
{
	uint8_t frame[2048];
	unsigned int n = 0;
	int len;

	while ((len = guest_rx(&w->guest[B], 0, frame, sizeof(frame))) > 0) {
		check_frame(w, frame, len);
		n++;
	}
	CU_ASSERT_EQUAL(len, 0);
	return n;
}

static uint32_t dropped(struct world *w)
{
	struct port_counters a, b;

	vswitch_port_counters(w->sw, w->port[A], &a);
	vswitch_port_counters(w->sw, w->port[B], &b);
	return (uint32_t)(counters_rx_dropped(&a) + counters_tx_dropped(&b));
}

/* Waits until every frame is received or counted. */
static void settle(struct world *w)
{
	const uint64_t end = clock_ns() + 5000000000;

	while (w->received + dropped(w) != w->sent && clock_ns() < end) {
		receive_all(w);
		CU_ASSERT_EQUAL(guest_tx_reap(&w->guest[A], 0), 0);
	}
	CU_ASSERT_EQUAL(w->received + dropped(w), w->sent);
}

/* ---- changes ---- */

static void new_memory(struct world *w, int i)
{
	CU_ASSERT_EQUAL(frontend_set_mem(&w->guest[i].fe, &w->guest[i].ram), 0);
}

static void new_memory_a(struct world *w)
{
	new_memory(w, A);
}

static void new_memory_b(struct world *w)
{
	new_memory(w, B);
}

/* Signals go to the newest descriptor only; the number of the old one is reused at once. */
static void new_call(struct world *w)
{
	struct guest_ring *r = &w->guest[B].pair[0].rx;
	const int old = r->call_fd;
	uint64_t value;
	int stray;

	r->call_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	CU_ASSERT_EQUAL(frontend_set_ring_fd(&w->guest[B].fe, VU_SET_VRING_CALL, RX, r->call_fd),
			0);
	CU_ASSERT_EQUAL(read(r->call_fd, &value, 8), 8);
	close(old);
	stray = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	send_burst(w);
	receive_all(w);
	CU_ASSERT_EQUAL(read(stray, &value, 8), -1);
	close(stray);
}

static void restart(struct world *w, int i, uint32_t ring, struct guest_ring *r)
{
	struct frontend *fe = &w->guest[i].fe;
	uint32_t base;

	CU_ASSERT_EQUAL(frontend_get_base(fe, ring, &base), 0);
	CU_ASSERT_EQUAL(base, guest_ring_raw_used_idx(r));
	CU_ASSERT_EQUAL(frontend_start_ring(fe, ring, r, base), 0);
	CU_ASSERT_EQUAL(frontend_set_ring(fe, VU_SET_VRING_ENABLE, ring, 1), 0);
}

static void restart_sender(struct world *w)
{
	restart(w, A, TX, &w->guest[A].pair[0].tx);
}

static void restart_receiver(struct world *w)
{
	restart(w, B, RX, &w->guest[B].pair[0].rx);
}

/* RESET_OWNER and RESET_DEVICE under traffic, then a set-up on the same connection. */
static void reset_sender(struct world *w)
{
	const uint32_t request = w->sent & 1 ? VU_RESET_OWNER : VU_RESET_DEVICE;
	struct frontend *fe = &w->guest[A].fe;
	struct guest_ring *ring[] = {&w->guest[A].pair[0].rx, &w->guest[A].pair[0].tx};

	CU_ASSERT_EQUAL(frontend_set(fe, request, NULL, 0, NULL, 0), 0);
	for (uint32_t i = 0; i < 2; i++) {
		const uint32_t base = guest_ring_raw_used_idx(ring[i]);

		CU_ASSERT_EQUAL(frontend_start_ring(fe, i, ring[i], base), 0);
		CU_ASSERT_EQUAL(frontend_set_ring(fe, VU_SET_VRING_ENABLE, i, 1), 0);
	}
}

static void blink(struct world *w, int i, uint32_t ring)
{
	CU_ASSERT_EQUAL(frontend_set_ring(&w->guest[i].fe, VU_SET_VRING_ENABLE, ring, 0), 0);
	send_burst(w);
	CU_ASSERT_EQUAL(frontend_set_ring(&w->guest[i].fe, VU_SET_VRING_ENABLE, ring, 1), 0);
}

static void disable_sender(struct world *w)
{
	blink(w, A, TX);
}

static void disable_receiver(struct world *w)
{
	blink(w, B, RX);
}

static void run_with(void (*change)(struct world *w), bool event_idx, bool lossless)
{
	struct world w;

	world_open(&w, event_idx);
	for (int i = 0; i < ROUNDS; i++) {
		send_burst(&w);
		change(&w);
		receive_all(&w);
		send_burst(&w);
		receive_all(&w);
		if (i % 16 == 0)
			settle(&w);
	}
	settle(&w);
	CU_ASSERT(w.received > ROUNDS);
	if (lossless)
		CU_ASSERT_EQUAL(dropped(&w), 0);
	world_close(&w);
}

static void memory_of_the_sender(void)
{
	run_with(new_memory_a, false, true);
}

static void memory_of_the_receiver(void)
{
	run_with(new_memory_b, false, true);
}

static void call_descriptor(void)
{
	run_with(new_call, true, true);
}

static void stop_and_start_of_the_sender(void)
{
	run_with(restart_sender, false, true);
}

/* While the receiver is stopped frames are dropped, and counted. */
static void stop_and_start_of_the_receiver(void)
{
	run_with(restart_receiver, true, false);
}

static void reset_of_the_sender(void)
{
	run_with(reset_sender, false, true);
}

static void disabling_the_sender(void)
{
	run_with(disable_sender, true, true);
}

static void disabling_the_receiver(void)
{
	run_with(disable_receiver, false, false);
}

/*
 * Guest B sleeps before each frame, asking for an interrupt while the worker may be publishing: the
 * frame is there, or the interrupt comes.
 */
static void sleep_for_each_frame(bool event_idx)
{
	uint8_t frame[2048];
	struct world w;

	world_open(&w, event_idx);
	for (int i = 0; i < SLEEPS; i++) {
		int len, woken = 1;

		CU_ASSERT_TRUE(send_one(&w));
		guest_tx_flush(&w.guest[A], 0);
		while ((len = guest_rx(&w.guest[B], 0, frame, sizeof(frame))) == 0 && woken)
			woken = guest_ring_sleep(&w.guest[B].pair[0].rx, 5000);
		CU_ASSERT_EQUAL(woken, 1);
		if (len <= 0 || !woken)
			break;
		check_frame(&w, frame, len);
		CU_ASSERT_EQUAL(guest_tx_reap(&w.guest[A], 0), 0);
	}
	CU_ASSERT_EQUAL(w.received, SLEEPS);
	world_close(&w);
}

static void no_interrupt_is_lost_by_flag(void)
{
	sleep_for_each_frame(false);
}

static void no_interrupt_is_lost_by_event_index(void)
{
	sleep_for_each_frame(true);
}

static bool worker_moves(const struct world *w)
{
	const uint64_t end = clock_ns() + 5000000;
	struct worker_info before, now;

	vswitch_worker_info(w->sw, 0, &before);
	do
		vswitch_worker_info(w->sw, 0, &now);
	while (now.rounds < before.rounds + 2 && clock_ns() < end);
	return now.rounds >= before.rounds + 2;
}

/* Brings the counter to its maximum, whatever is in it. */
static void fill(int fd)
{
	for (uint64_t n = UINT64_C(1) << 63; n; n /= 2)
		while (write(fd, &n, sizeof(n)) > 0)
			;
	CU_ASSERT_EQUAL(errno, EAGAIN);
}

/*
 * Guest B's front-end fills its call descriptor and lets writes to it sleep. While the worker
 * sleeps there, guest A asks for a hand-off: it gets its answer. Without the mend control waits for
 * the worker, and nobody is left to wake it.
 */
static void sleeping_worker_is_woken(void)
{
	const uint64_t end = clock_ns() + 2000000000;
	struct world w;
	int call;

	world_open(&w, true);
	call = w.guest[B].pair[0].rx.call_fd;
	fill(call);
	CU_ASSERT_EQUAL(fcntl(call, F_SETFL, fcntl(call, F_GETFL) & ~O_NONBLOCK), 0);
	while (worker_moves(&w) && clock_ns() < end) {
		send_burst(&w);
		receive_all(&w);
	}
	CU_ASSERT_FALSE(worker_moves(&w));
	new_memory(&w, A);
	while (!worker_moves(&w) && clock_ns() < end)
		;
	CU_ASSERT_TRUE(worker_moves(&w));
	world_close(&w);
}

/* The same, but the front-end hides what it did, and nobody asks for a hand-off. */
static void sleeping_worker_is_found(void)
{
	const uint64_t end = clock_ns() + 2000000000;
	struct world w;
	int call, flags;

	world_open(&w, true);
	call = w.guest[B].pair[0].rx.call_fd;
	flags = fcntl(call, F_GETFL);
	fill(call);
	CU_ASSERT_EQUAL(fcntl(call, F_SETFL, flags & ~O_NONBLOCK), 0);
	while ((worker_moves(&w) || worker_moves(&w)) && clock_ns() < end) {
		send_burst(&w);
		receive_all(&w);
	}
	CU_ASSERT_EQUAL(fcntl(call, F_SETFL, flags), 0);
	while (!worker_moves(&w) && clock_ns() < end)
		;
	CU_ASSERT_TRUE(worker_moves(&w));
	world_close(&w);
}

static const struct unit_case cases[] = {
    UNIT_CASE(memory_of_the_sender),
    UNIT_CASE(memory_of_the_receiver),
    UNIT_CASE(call_descriptor),
    UNIT_CASE(stop_and_start_of_the_sender),
    UNIT_CASE(stop_and_start_of_the_receiver),
    UNIT_CASE(reset_of_the_sender),
    UNIT_CASE(disabling_the_sender),
    UNIT_CASE(disabling_the_receiver),
    UNIT_CASE(no_interrupt_is_lost_by_flag),
    UNIT_CASE(no_interrupt_is_lost_by_event_index),
    UNIT_CASE(sleeping_worker_is_woken),
    UNIT_CASE(sleeping_worker_is_found),
};

int main(int argc, char **argv)
{
	int result;

	if (guest_mem_catch_sigbus())
		return 1;
	clock_init();
	copy_init();
	log_set_level(LOG_LEVEL_WARN);
	snprintf(dir, sizeof(dir), "/tmp/xvs-live-XXXXXX");
	if (!mkdtemp(dir))
		return 1;
	result = unit_main("vhost_live", cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
	if (rmdir(dir)) {
		printf("left files behind in %s\n", dir);
		return 1;
	}
	return result;
}
