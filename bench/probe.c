/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * State of the machine between slices: how far the switch's core is, and whether a stranger
 * shares it.
 *
 * Virtual CPUs are moved by the host within milliseconds, and the same code then costs twice as
 * much. So a second thread, pinned to the switch's CPU, plays ping-pong with the generator's
 * thread over one cache line (the median of the round trips, halved, is the distance), and times
 * a loop of independent additions, which gets slower when the sibling hyper-thread is busy
 * (compared with the fastest loop of this run).
 *
 * The thread sleeps between probes. It asks for real-time priority because the switch is polling
 * on that CPU; without the permission it shares the CPU with the switch, and the median and the
 * minimum hide the interruptions. All waits are bounded: a probe that gets no answer says
 * MODE_UNKNOWN.
 */
#include "bench/bench.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/cpu.h"

#define ROUNDS         201u
#define SPIN_TICKS     UINT64_C(50000000) /* about 20 ms: the peer is not there */
#define ADD_LOOPS      4000u
#define ADD_RUNS       5u
#define SHARED_PERCENT 130u /* slower than the best by this: the sibling is busy */

struct probe {
	/* set at create */
	pthread_t thread;
	bool running;

	/* hand-off: the prober sleeps on `go`; the generator waits for `done` */
	sem_t go;
	sem_t done;
	bool stop;

	/* prober writes before `done`, generator reads after it */
	uint64_t add_ticks;

	/* generator */
	uint64_t best_add_ticks;

	/* both, atomic: even = generator's turn */
	uint32_t turn CACHE_ALIGNED;
	uint8_t pad[CACHE_LINE - sizeof(uint32_t)];
};

const char *mode_name(enum mode mode)
{
	static const char *const name[MODES] = {
	    "unknown", "smt", "near-free", "near-shared", "far-free", "far-shared",
	};

	return name[mode];
}

/* False when the turn did not come in time. */
static bool wait_turn(struct probe *p, uint32_t turn)
{
	const uint64_t end = clock_ticks() + SPIN_TICKS;

	while (load_acquire(&p->turn) != turn) {
		if (clock_ticks() > end)
			return false;
	}
	return true;
}

static uint64_t time_additions(void)
{
	uint64_t best = UINT64_MAX;

	for (unsigned int run = 0; run < ADD_RUNS; run++) {
		const uint64_t start = clock_ticks();
		uint64_t a = 0, b = 0, c = 0, d = 0;

		for (unsigned int i = 0; i < ADD_LOOPS; i++) {
			a += i;
			b += i;
			c += i;
			d += i;
			__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
		}
		best = MIN(best, clock_ticks() - start);
	}
	return best;
}

static void *prober(void *arg)
{
	struct probe *p = arg;

	for (;;) {
		while (sem_wait(&p->go) < 0)
			;
		if (p->stop)
			return NULL;
		for (uint32_t i = 0; i < ROUNDS; i++) {
			if (!wait_turn(p, 2 * i + 1))
				break;
			store_release(&p->turn, 2 * i + 2); /* pairs with wait_turn() */
		}
		p->add_ticks = time_additions();
		sem_post(&p->done);
	}
}

int probe_create(struct probe **out, int cpu)
{
	const struct sched_param rt = {.sched_priority = 1};
	struct probe *p = aligned_alloc(CACHE_LINE, sizeof(*p));

	if (!p)
		return -ENOMEM;
	memset(p, 0, sizeof(*p));
	p->best_add_ticks = UINT64_MAX;
	sem_init(&p->go, 0, 0);
	sem_init(&p->done, 0, 0);
	*out = p;
	if (cpu < 0)
		return 0;
	if (pthread_create(&p->thread, NULL, prober, p) != 0) {
		probe_destroy(p);
		return -EAGAIN;
	}
	p->running = true;
	pthread_setschedparam(p->thread, SCHED_FIFO, &rt);
	if (cpu_pin(p->thread, (unsigned int)cpu)) {
		probe_destroy(p);
		return -EINVAL;
	}
	return 0;
}

void probe_destroy(struct probe *p)
{
	if (!p)
		return;
	if (p->running) {
		p->stop = true;
		sem_post(&p->go);
		pthread_join(p->thread, NULL);
	}
	sem_destroy(&p->go);
	sem_destroy(&p->done);
	free(p);
}

/* Generator's half of the ping-pong: ticks per round trip in rtt[]. Number of rounds played. */
static unsigned int ping(struct probe *p, double rtt[ROUNDS])
{
	for (uint32_t i = 0; i < ROUNDS; i++) {
		const uint64_t start = clock_ticks();

		store_release(&p->turn, 2 * i + 1); /* pairs with wait_turn() */
		if (!wait_turn(p, 2 * i + 2))
			return i;
		rtt[i] = (double)(clock_ticks() - start);
	}
	return ROUNDS;
}

static enum mode judge(unsigned int distance, bool shared)
{
	if (distance < SMT_BELOW)
		return MODE_SMT;
	if (distance < NEAR_BELOW)
		return shared ? MODE_NEAR_SHARED : MODE_NEAR;
	return shared ? MODE_FAR_SHARED : MODE_FAR;
}

enum mode probe_mode(struct probe *p, unsigned int *distance)
{
	double rtt[ROUNDS];
	unsigned int n;

	*distance = 0;
	if (!p->running)
		return MODE_UNKNOWN;
	p->turn = 0;
	sem_post(&p->go);
	n = ping(p, rtt);
	while (sem_wait(&p->done) < 0)
		;
	if (n < ROUNDS)
		return MODE_UNKNOWN;
	*distance = (unsigned int)(median_of(rtt, n) / 2);
	p->best_add_ticks = MIN(p->best_add_ticks, p->add_ticks);
	return judge(*distance, p->add_ticks * 100 > p->best_add_ticks * SHARED_PERCENT);
}
