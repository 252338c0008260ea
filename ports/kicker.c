/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kicker thread.
 *
 * Workers push a struct kick into a ring (many producers, one consumer) and go on; the kicker
 * takes it out and calls sendto() until the socket's transmit ring is empty.
 *
 * A kick is in the ring at most once. Its word `asked` is 0 when nobody wants anything;
 * otherwise it is in the ring or in the kicker's hands:
 *     worker   old = fetch_or(asked, what); if old was 0 it pushes the kick
 *     kicker   what = exchange(asked, BUSY); works; then asked: BUSY -> 0, or, when somebody has
 *              added bits meanwhile, takes those and works again
 * All of these are read-modify-writes on one word and so have one order: a worker whose bits
 * come before the exchange is served by the call that follows (the exchange acquires what the
 * fetch_or released, which is the ring index published before it); one whose bits come after it
 * is seen at the end. No request is lost, and asked == 0 means that the kicker holds nothing:
 * that is what kicker_forget() waits for.
 *
 * Sleep. After SPIN_US without work the kicker sets `sleeping`, fences, looks into the ring once
 * more, and reads its eventfd. A worker pushes, fences, and looks at `sleeping`. With a full
 * fence between store and load on both sides at least one of them sees the other (the worker the
 * flag, or the kicker the entry).
 *
 * Errors. EAGAIN (the kernel's budget per call, or the socket's send buffer), EBUSY and ENOBUFS
 * (the device's queue) mean "again": up to TRIES calls per pass, then the others get their turn.
 * After STUCK passes without any progress it gives up until the next request. Anything else
 * (ENETDOWN, ENXIO: the device is down or gone) is counted and given up at once; control sees
 * the reason by other means. So nothing here is unbounded.
 *
 * The ring has a slot for every socket that there can be, and a socket is in it once: it is
 * never full.
 */
#include "ports/kicker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "ring/ptr_ring.h"

#define KICK_BUSY      4u   /* bit of `asked`: the kicker is working on it */
#define SPIN_US        20u  /* spinning longer takes the CPU from a guest */
#define TRIES          64u  /* system calls in one pass */
#define STUCK          500u /* passes without progress, about 20 us each */
#define STUCK_PAUSE_NS 20000

struct kicker {
	/* set at create */
	struct rte_ring *ring;
	int eventfd;
	pthread_t thread;
	uint64_t spin_ticks;
	/* shared, atomic */
	uint32_t sleeping CACHE_ALIGNED;
	uint32_t stop;
	/* kicker */
	struct kicker_stats stats CACHE_ALIGNED;
};

static bool transient(int err)
{
	return err == EAGAIN || err == EBUSY || err == ENOBUFS || err == EINTR;
}

/* Acquire: a racing look only costs a call more or less. */
static bool tx_drained(const struct kick *kick)
{
	return kick->tx_producer &&
	       load_acquire(kick->tx_producer) == load_acquire(kick->tx_consumer);
}

bool kick_now(const struct kick *kick, uint32_t what, unsigned int tries, uint64_t *calls,
	      uint64_t *errors)
{
	if (what & KICK_RX) {
		counter_add(calls, 1);
		recvfrom(kick->fd, NULL, 0, MSG_DONTWAIT, NULL, NULL);
	}
	if (!(what & KICK_TX))
		return true;
	for (unsigned int i = 0; i < tries && !tx_drained(kick); i++) {
		counter_add(calls, 1);
		if (sendto(kick->fd, NULL, 0, MSG_DONTWAIT, NULL, 0) >= 0) {
			if (!kick->tx_producer)
				return true;
		} else if (!transient(errno)) {
			counter_add(errors, 1);
			return true;
		}
	}
	return tx_drained(kick);
}

/* ---- worker ---- */

static void kicker_wake(struct kicker *k)
{
	/* Pairs with the fence in kicker_sleep(). */
	fence_full();
	if (load_relaxed(&k->sleeping) && __atomic_exchange_n(&k->sleeping, 0, __ATOMIC_RELAXED))
		eventfd_write(k->eventfd, 1);
}

void kicker_ask(struct kicker *k, struct kick *kick, enum kick_what what)
{
	/* Release: the published index; pairs with the acquire in kicker_serve(). */
	if (__atomic_fetch_or(&kick->asked, (uint32_t)what, __ATOMIC_ACQ_REL))
		return;
	ptr_ring_push(k->ring, kick);
	kicker_wake(k);
}

/* ---- kicker ---- */

/* After a pass that did not drain the ring: true when it should be tried again. */
static bool kicker_retry(struct kick *kick, uint32_t consumed_before)
{
	const struct timespec pause = {.tv_nsec = STUCK_PAUSE_NS};

	if (kick->tx_consumer && load_relaxed(kick->tx_consumer) != consumed_before) {
		kick->stuck = 0;
		return true;
	}
	nanosleep(&pause, NULL);
	return ++kick->stuck < STUCK;
}

static void kicker_serve(struct kicker *k, struct kick *kick)
{
	uint32_t consumed = kick->tx_consumer ? load_relaxed(kick->tx_consumer) : 0;
	/* Acquire: pairs with the release in kicker_ask(). */
	uint32_t what = __atomic_exchange_n(&kick->asked, KICK_BUSY, __ATOMIC_ACQ_REL);
	uint64_t calls = 0;
	bool drained = kick_now(kick, what, TRIES, &calls, &k->stats.errors);
	uint32_t old = KICK_BUSY;

	counter_add(&k->stats.kicks, calls);
	counter_add(&kick->calls, calls);
	if (drained)
		kick->stuck = 0;
	else if (kicker_retry(kick, consumed))
		__atomic_fetch_or(&kick->asked, (uint32_t)KICK_TX, __ATOMIC_RELAXED);
	/* Release: pairs with the acquire in kicker_forget(); the kick is not touched after this.
	 */
	if (__atomic_compare_exchange_n(&kick->asked, &old, 0, false, __ATOMIC_ACQ_REL,
					__ATOMIC_RELAXED))
		return;
	/* Bits were added. There is room: this entry has just left the ring, or the call is ours.
	 */
	while (!ptr_ring_push(k->ring, kick))
		sched_yield();
}

/* Sleeps until there is work; returns some that came just before, if any. */
static struct kick *kicker_sleep(struct kicker *k)
{
	struct kick *kick;
	eventfd_t value;

	store_relaxed(&k->sleeping, 1u);
	/* Pairs with the fence in kicker_wake(). */
	fence_full();
	kick = ptr_ring_pop(k->ring);
	if (!kick && !load_relaxed(&k->stop)) {
		counter_add(&k->stats.sleeps, 1);
		eventfd_read(k->eventfd, &value);
	}
	store_relaxed(&k->sleeping, 0u);
	return kick;
}

static void *kicker_run(void *arg)
{
	struct kicker *k = arg;
	uint64_t idle_since = clock_ticks();

	pthread_setname_np(pthread_self(), "xvs-kicker");
	while (!load_acquire(&k->stop)) {
		struct kick *kick = ptr_ring_pop(k->ring);
		const bool idle = !kick && clock_ticks() - idle_since > k->spin_ticks;

		if (idle)
			kick = kicker_sleep(k);
		if (kick)
			kicker_serve(k, kick);
		if (kick || idle)
			idle_since = clock_ticks();
		else
			cpu_relax();
	}
	return NULL;
}

/* ---- control ---- */

/* The thread starts with all signals blocked: they are the control thread's. */
static int kicker_start(struct kicker *k)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&k->thread, NULL, kicker_run, k);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

static void kicker_free(struct kicker *k)
{
	if (k->eventfd >= 0)
		close(k->eventfd);
	ptr_ring_destroy(k->ring);
	free(k);
}

int kicker_create(struct kicker **out, int cpu)
{
	struct kicker *k = aligned_alloc(CACHE_LINE, sizeof(*k));
	int err;

	if (!k)
		return -ENOMEM;
	*k = (struct kicker){.spin_ticks = clock_ticks_per_second() * SPIN_US / 1000000};
	k->ring = ptr_ring_create(KICKER_KICKS_MAX, PTR_RING_MP | PTR_RING_SC);
	k->eventfd = eventfd(0, EFD_CLOEXEC);
	err = !k->ring ? -ENOMEM : k->eventfd < 0 ? -errno : kicker_start(k);
	if (err) {
		kicker_free(k);
		return err;
	}
	if (cpu >= 0)
		err = cpu_pin(k->thread, (unsigned int)cpu);
	if (err) {
		kicker_destroy(k);
		return err;
	}
	*out = k;
	return 0;
}

void kicker_destroy(struct kicker *k)
{
	if (!k)
		return;
	store_release(&k->stop, 1);
	eventfd_write(k->eventfd, 1);
	pthread_join(k->thread, NULL);
	kicker_free(k);
}

void kicker_get_stats(const struct kicker *k, struct kicker_stats *out)
{
	out->kicks = load_relaxed(&k->stats.kicks);
	out->sleeps = load_relaxed(&k->stats.sleeps);
	out->errors = load_relaxed(&k->stats.errors);
}

void kicker_forget(struct kicker *k, struct kick *kick)
{
	const struct timespec pause = {.tv_nsec = 50000};

	(void)k;
	/* Acquire: pairs with the release at the end of kicker_serve(). Bounded by STUCK passes. */
	while (load_acquire(&kick->asked))
		nanosleep(&pause, NULL);
}
