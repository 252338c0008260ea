/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gap: for how long forwarding between two guests stops while other ports come and go.
 *
 * A second thread takes a third port through its life, again and again: nothing (to have a
 * comparison), port add, attach of a guest, detach, port del. This thread forwards at full load
 * meanwhile and looks for the longest time without a frame, by step.
 *
 * Only time in which this thread was looking counts: a round of the loop that took longer than
 * LOOK_MAX_US was an interruption of ours and is left out. On a machine with two CPUs the second
 * thread, xvsctl and the daemon's control thread share this CPU, so that part of what happens is
 * not seen; the worker holds nothing over a round, so that what it waits for is seen at its next
 * frame. With three CPUs or more nothing is missed.
 */
#include "bench/bench.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpu.h"

#define LOOK_MAX_US 10
#define SETTLE_NS   5000000
#define WARM_UP_MS  20
#define KICK_AFTER  4096u

#define STEPS(X)                                                                                   \
	X(NOTHING, "nothing", nothing)                                                             \
	X(ADD, "port add", port_add)                                                               \
	X(ATTACH, "attach", attach)                                                                \
	X(DETACH, "detach", detach)                                                                \
	X(DEL, "port del", port_del)

enum step {
#define X(name, text, fn) STEP_##name,
	STEPS(X)
#undef X
	    STEP_COUNT
};

struct changer {
	/* set at create */
	const struct target *target;
	unsigned int count;
	double *longest[STEP_COUNT]; /* us; `count` each; main thread */

	/* changer */
	struct guest guest;
	char path[128];
	int err;

	/* shared, atomic: step + round * STEP_COUNT, then UINT32_MAX */
	uint32_t now;
};

static int nothing(struct changer *c)
{
	(void)c;
	return 0;
}

static int port_add(struct changer *c)
{
	const char *const words[] = {"port",  "add",    "bench-gap", "vhost-user",
				     c->path, "server", NULL};

	return daemon_ctl(c->target, words, NULL);
}

static int attach(struct changer *c)
{
	const struct guest_config config = guest_config_default();
	const int err = guest_create(&c->guest, &config);

	return err ? err : guest_attach(&c->guest, c->path);
}

static int detach(struct changer *c)
{
	const int err = guest_stop(&c->guest);

	guest_destroy(&c->guest);
	return err;
}

static int port_del(struct changer *c)
{
	const char *const words[] = {"port", "del", "bench-gap", NULL};

	return daemon_ctl(c->target, words, NULL);
}

static const struct {
	const char *text;
	int (*run)(struct changer *c);
} steps[STEP_COUNT] = {
#define X(name, text, fn) {text, fn},
    STEPS(X)
#undef X
};

static void *operate(void *arg)
{
	const struct timespec settle = {.tv_nsec = SETTLE_NS};
	struct changer *c = arg;

	for (uint32_t i = 0; i < c->count * STEP_COUNT && !c->err && !interrupted(); i++) {
		store_release(&c->now, i); /* pairs with watch() */
		c->err = steps[i % STEP_COUNT].run(c);
		nanosleep(&settle, NULL);
	}
	store_release(&c->now, UINT32_MAX);
	return NULL;
}

/* Any CPU but the switch's and, where there are enough, the generator's. */
static int start(pthread_t *thread, struct changer *c, const struct options *o)
{
	const long n = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t set;

	if (pthread_create(thread, NULL, operate, c) != 0)
		return -EAGAIN;
	CPU_ZERO(&set);
	for (unsigned int i = 0; i < (unsigned int)n; i++) {
		if ((int)i != o->switch_cpu && i != o->cpu)
			CPU_SET(i, &set);
	}
	if (CPU_COUNT(&set) > 0)
		pthread_setaffinity_np(*thread, sizeof(set), &set);
	return 0;
}

/* Forwards until the changer has ended; longest silence by step and repetition. */
static void watch(struct bench_system *s, struct changer *c)
{
	const double hz = (double)clock_ticks_per_second();
	const uint64_t look_max = (uint64_t)(hz / 1e6 * LOOK_MAX_US);
	uint64_t last = clock_ticks(), silent = 0;
	unsigned int idle = 0;
	uint32_t now;

	while ((now = load_acquire(&c->now)) != UINT32_MAX) {
		double *longest = &c->longest[now % STEP_COUNT][now / STEP_COUNT];
		unsigned int n;
		uint64_t t;

		fast_tx_burst(s->tx[0], FAST_BATCH, true);
		n = fast_rx_burst(s->rx[1], FAST_BATCH, true);
		t = clock_ticks();
		silent += t - last <= look_max ? t - last : 0;
		last = t;
		*longest = MAX(*longest, (double)silent * 1e6 / hz);
		idle = n ? 0 : idle + 1;
		if (n)
			silent = 0;
		else if (idle % KICK_AFTER == 0)
			fast_tx_kick(s->tx[0]);
	}
}

static void report(const struct options *o, struct changer *c, json_t *results)
{
	if (!o->json)
		printf("%-12s %-10s %10s %10s %10s %6s\n", "system", "meanwhile", "median us",
		       "90 % us", "longest us", "times");
	for (unsigned int i = 0; i < STEP_COUNT; i++) {
		const double median = median_of(c->longest[i], c->count);
		const double p90 = quantile_of(c->longest[i], c->count, 0.9);
		const double longest = c->longest[i][c->count - 1];

		if (!o->json)
			printf("%-12s %-10s %10.1f %10.1f %10.1f %6u\n", c->target->name,
			       steps[i].text, median, p90, longest, c->count);
		json_array_append_new(results,
				      json_pack("{s:s, s:s, s:s, s:f, s:f, s:f, s:i}", "system",
						c->target->name, "scenario", "gap", "step",
						steps[i].text, "median_us", median, "p90_us", p90,
						"longest_us", longest, "count", (int)c->count));
	}
}

static int run(struct bench_system *s, const struct options *o, struct changer *c)
{
	const struct traffic_plan plan = {.kind = TRAFFIC_LIGHT, .senders = 1, .active = 2};
	struct traffic t;
	pthread_t thread;
	int err;

	traffic_run(s, &plan, WARM_UP_MS, &t);
	err = start(&thread, c, o);
	if (err)
		return err;
	watch(s, c);
	pthread_join(thread, NULL);
	return interrupted() ? -EINTR : c->err;
}

static int with_system(const struct options *o, struct changer *c, json_t *results)
{
	static struct bench_system s;
	int err;

	err = system_attach(&s, c->target, o);
	if (!err)
		err = run(&s, o, c);
	if (!err)
		report(o, c, results);
	system_detach(&s);
	return err;
}

int gap_run(const struct options *o, json_t *results)
{
	static struct changer c;
	int err = 0;

	c.target = &o->target[0];
	c.count = o->count;
	if (!c.target->run_dir[0]) {
		fprintf(stderr, "xvs-bench: gap needs --run-dir or an xvswitchd of its own\n");
		return -EINVAL;
	}
	snprintf(c.path, sizeof(c.path), "%s/gap.sock", c.target->run_dir);
	for (unsigned int i = 0; i < STEP_COUNT; i++) {
		c.longest[i] = calloc(c.count, sizeof(double));
		if (!c.longest[i])
			err = -ENOMEM;
	}
	if (!err)
		err = with_system(o, &c, results);
	for (unsigned int i = 0; i < STEP_COUNT; i++)
		free(c.longest[i]);
	return err;
}
