/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kicker against a fake socket: a datagram socket pair, where each sendto() of the kicker
 * leaves one empty datagram to count, and whose "transmit ring" is two plain indices.
 *
 * The property: whoever publishes an index and then asks sees a call that was made after the
 * publication, however the requests and the kicker's sleep interleave.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "ports/kicker.h"
#include "unit/unit.h"

#define ROUNDS      20000
#define ASKERS      2
#define DEADLINE_NS UINT64_C(2000000000)

struct fake {
	int peer;
	uint32_t producer, consumer;
	struct kick kick;
};

static void fake_open(struct fake *f)
{
	int pair[2];

	memset(f, 0, sizeof(*f));
	CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair), 0);
	f->kick.fd = pair[0];
	f->peer = pair[1];
}

static void fake_close(struct fake *f)
{
	close(f->kick.fd);
	close(f->peer);
}

/* Waits for one call of the kicker; false when none came. */
static bool fake_called(const struct fake *f)
{
	const uint64_t deadline = clock_ns() + DEADLINE_NS;
	char byte;

	while (recv(f->peer, &byte, 1, 0) != 0) {
		if (clock_ns() > deadline)
			return false;
	}
	return true;
}

static void pause_us(long us)
{
	const struct timespec pause = {.tv_nsec = us * 1000};

	nanosleep(&pause, NULL);
}

/* One asker: after each request at least one call follows, with the kicker asleep or awake. */
static void every_request_is_served(void)
{
	struct kicker_stats stats;
	struct kicker *k;
	struct fake f;
	unsigned int unserved = 0;

	clock_init();
	fake_open(&f);
	CU_ASSERT_EQUAL_FATAL(kicker_create(&k, -1), 0);
	for (int i = 0; i < ROUNDS && !unserved; i++) {
		kicker_ask(k, &f.kick, KICK_TX);
		unserved += !fake_called(&f);
		if (i % 100 == 0)
			pause_us(100 + i % 7);
	}
	kicker_forget(k, &f.kick);
	kicker_get_stats(k, &stats);
	CU_ASSERT_EQUAL(unserved, 0);
	CU_ASSERT_EQUAL(stats.kicks, ROUNDS);
	CU_ASSERT(stats.sleeps > 0);
	CU_ASSERT_EQUAL(stats.errors, 0);
	kicker_destroy(k);
	fake_close(&f);
}

/*
 * A ring whose kernel is a thread: it consumes up to what was published, but only once per call.
 * The asker publishes and asks; at the end everything must have been consumed.
 */
struct ring_kernel {
	struct fake *fake;
	uint32_t stop;
};

static void *ring_kernel_run(void *arg)
{
	struct ring_kernel *kernel = arg;
	char byte;

	while (!load_acquire(&kernel->stop)) {
		if (recv(kernel->fake->peer, &byte, 1, 0) == 0)
			store_release(&kernel->fake->consumer,
				      load_acquire(&kernel->fake->producer));
	}
	return NULL;
}

static void ring_is_drained_after_the_last_request(void)
{
	static struct fake f;
	struct ring_kernel kernel = {.fake = &f};
	unsigned int undrained = 0;
	pthread_t thread;
	struct kicker *k;

	fake_open(&f);
	f.kick.tx_producer = &f.producer;
	f.kick.tx_consumer = &f.consumer;
	CU_ASSERT_EQUAL_FATAL(kicker_create(&k, -1), 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, ring_kernel_run, &kernel), 0);
	for (int i = 0; i < 300 && !undrained; i++) {
		const uint64_t deadline = clock_ns() + DEADLINE_NS;

		for (int j = 0; j < 1 + i % 5; j++) {
			store_release(&f.producer, f.producer + 1);
			kicker_ask(k, &f.kick, KICK_TX);
		}
		while (load_acquire(&f.consumer) != f.producer && clock_ns() < deadline)
			pause_us(10);
		undrained += load_acquire(&f.consumer) != f.producer;
	}
	CU_ASSERT_EQUAL(undrained, 0);
	kicker_forget(k, &f.kick);
	store_release(&kernel.stop, 1);
	pthread_join(thread, NULL);
	kicker_destroy(k);
	fake_close(&f);
}

/* Several askers on several sockets; each socket sees a call after its last request. */
struct asker {
	struct kicker *k;
	struct fake *fake;
	unsigned int unserved;
};

static void *asker_run(void *arg)
{
	struct asker *a = arg;

	for (int i = 0; i < ROUNDS / 4 && !a->unserved; i++) {
		kicker_ask(a->k, &a->fake->kick, i % 2 ? KICK_TX : KICK_RX);
		if (i % 2)
			a->unserved += !fake_called(a->fake);
	}
	return NULL;
}

static void many_askers_lose_nothing(void)
{
	static struct fake fake[ASKERS];
	struct asker asker[ASKERS];
	pthread_t thread[ASKERS];
	struct kicker *k;

	CU_ASSERT_EQUAL_FATAL(kicker_create(&k, -1), 0);
	for (int i = 0; i < ASKERS; i++) {
		fake_open(&fake[i]);
		asker[i] = (struct asker){.k = k, .fake = &fake[i]};
		CU_ASSERT_EQUAL_FATAL(pthread_create(&thread[i], NULL, asker_run, &asker[i]), 0);
	}
	for (int i = 0; i < ASKERS; i++) {
		pthread_join(thread[i], NULL);
		CU_ASSERT_EQUAL(asker[i].unserved, 0);
		kicker_forget(k, &fake[i].kick);
		CU_ASSERT_EQUAL(fake[i].kick.asked, 0);
		fake_close(&fake[i]);
	}
	kicker_destroy(k);
}

/* A socket that can never send: given up after a bounded time, and forgotten. */
static void a_stuck_socket_is_given_up(void)
{
	static struct fake f;
	char fill[256] = {0};
	struct kicker *k;

	fake_open(&f);
	f.producer = 1;
	f.kick.tx_producer = &f.producer;
	f.kick.tx_consumer = &f.consumer;
	while (send(f.kick.fd, fill, sizeof(fill), 0) > 0)
		;
	CU_ASSERT_EQUAL(errno, EAGAIN);
	CU_ASSERT_EQUAL_FATAL(kicker_create(&k, -1), 0);
	kicker_ask(k, &f.kick, KICK_TX);
	kicker_forget(k, &f.kick);
	CU_ASSERT_EQUAL(f.kick.asked, 0);
	kicker_destroy(k);
	fake_close(&f);
}

/* An error that is not transient ends the request at once and is counted. */
static void a_dead_socket_is_counted(void)
{
	struct kicker_stats stats;
	struct kicker *k;
	struct fake f;

	fake_open(&f);
	close(f.peer);
	CU_ASSERT_EQUAL_FATAL(kicker_create(&k, -1), 0);
	kicker_ask(k, &f.kick, KICK_TX);
	kicker_forget(k, &f.kick);
	kicker_get_stats(k, &stats);
	CU_ASSERT_EQUAL(stats.errors, 1);
	kicker_destroy(k);
	close(f.kick.fd);
}

static const struct unit_case cases[] = {
    UNIT_CASE(every_request_is_served),  UNIT_CASE(ring_is_drained_after_the_last_request),
    UNIT_CASE(many_askers_lose_nothing), UNIT_CASE(a_stuck_socket_is_given_up),
    UNIT_CASE(a_dead_socket_is_counted),
};
UNIT_MAIN("kicker", cases)
