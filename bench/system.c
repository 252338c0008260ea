/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A system under test: a switch and the guests that we play on it.
 *
 * Guests are attached by the library of tests/guest and then handed to its fast driver. Before
 * anything is measured each guest has sent a frame that the other received, so that a learning
 * switch knows both addresses and nothing is flooded.
 *
 * Systems that were given with a process id are stopped and continued by signal; all are
 * continued before this process ends on any path. Guests beyond the active ones of a scenario only
 * have to be there: their rings and memory are small.
 */
#include "bench/bench.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/mac.h"

#define FIRST_FRAME_NS       UINT64_C(3000000000)
#define FIRST_FRAME_RETRY_NS UINT64_C(10000000)
#define IDLE_RING            64u
#define DRAIN_NS             UINT64_C(50000) /* nothing for so long: the switch is empty */

struct mac system_mac(unsigned int guest)
{
	return (struct mac){{0x02, 0, 0, 0, (uint8_t)(guest >> 8), (uint8_t)(0x0a + guest)}};
}

static struct guest_config config_of(const struct options *o, unsigned int i)
{
	const unsigned int active = o->scenario->active;
	struct guest_config c = guest_config_default();

	c.npairs = o->pairs;
	c.ring_size = active && i >= active ? IDLE_RING : o->ring_size;
	c.huge = o->huge && !(active && i >= active);
	/* no indirect descriptors: each frame is one descriptor */
	c.features &= ~FEATURE(VIRTIO_F_INDIRECT_DESC);
	if (o->pairs > 1)
		c.features |= FEATURE(VIRTIO_NET_F_MQ);
	return c;
}

static int guest_up(struct bench_system *s, unsigned int i, const struct options *o)
{
	struct guest_config c = config_of(o, i);
	int err;

	err = guest_create(&s->guest[i], &c);
	if (err && c.huge) {
		c.huge = false;
		err = guest_create(&s->guest[i], &c);
		if (!err)
			fprintf(stderr,
				"xvs-bench: no huge pages free, guest memory uses small ones\n");
	}
	if (err)
		return err;
	return guest_attach(&s->guest[i], s->target->path[i]);
}

static void *aligned_zalloc(size_t size)
{
	void *p = aligned_alloc(CACHE_LINE, size);

	if (p)
		memset(p, 0, size);
	return p;
}

static int take_rings(struct bench_system *s, unsigned int i)
{
	s->tx[i] = aligned_zalloc(s->npairs * sizeof(struct fast_tx));
	s->rx[i] = aligned_zalloc(s->npairs * sizeof(struct fast_rx));
	if (!s->tx[i] || !s->rx[i])
		return -ENOMEM;
	for (unsigned int q = 0; q < s->npairs; q++) {
		if (fast_tx_init(&s->tx[i][q], &s->guest[i], q))
			return -ENOMEM;
		fast_rx_init(&s->rx[i][q], &s->guest[i], q);
	}
	return 0;
}

void system_set_frame(struct bench_system *s, unsigned int guest, const struct mac *dst,
		      unsigned int size)
{
	const struct mac src = system_mac(guest);

	for (unsigned int q = 0; q < s->npairs; q++)
		fast_tx_set_frame(&s->tx[guest][q], dst, &src, size);
}

void system_set_size(struct bench_system *s, unsigned int size)
{
	for (unsigned int i = 0; i < 2; i++) {
		const struct mac dst = system_mac(1 - i);

		system_set_frame(s, i, &dst, size);
	}
}

/* Takes all that has arrived at a guest; number of frames. */
static unsigned int drain(struct bench_system *s, unsigned int guest)
{
	unsigned int n = 0;

	for (unsigned int q = 0; q < s->npairs; q++)
		n += fast_rx_burst(&s->rx[guest][q], FAST_BATCH, false);
	return n;
}

int system_pass_one(struct bench_system *s, unsigned int from)
{
	const uint64_t end = clock_ns() + FIRST_FRAME_NS;
	uint64_t next = 0;

	while (drain(s, 1 - from) == 0) {
		const uint64_t now = clock_ns();

		if (now > end)
			return -ETIMEDOUT;
		if (now >= next) {
			next = now + FIRST_FRAME_RETRY_NS;
			fast_tx_burst(&s->tx[from][0], 1, false);
			fast_tx_kick(&s->tx[from][0]);
			fast_rx_kick(&s->rx[1 - from][0]);
		}
		drain(s, from);
		cpu_relax();
	}
	return 0;
}

void system_drain(struct bench_system *s)
{
	uint64_t end = clock_ns() + DRAIN_NS;

	while (clock_ns() < end) {
		if (drain(s, 0) + drain(s, 1) > 0)
			end = clock_ns() + DRAIN_NS;
	}
}

static int allocate(struct bench_system *s, const struct target *target, unsigned int npairs)
{
	s->target = target;
	s->npairs = npairs;
	s->guest = calloc(target->nports, sizeof(*s->guest));
	s->tx = calloc(target->nports, sizeof(*s->tx));
	s->rx = calloc(target->nports, sizeof(*s->rx));
	return s->guest && s->tx && s->rx ? 0 : -ENOMEM;
}

/* Lets frames pass between the first two guests. */
static int pass_first(struct bench_system *s, const struct options *o)
{
	static const unsigned int from[] = {0, 1, 0};
	int err = 0;

	if (s->nguests < 2)
		return 0;
	system_set_size(s, o->size[0]);
	for (unsigned int i = 0; i < ARRAY_LEN(from) && !err; i++)
		err = system_pass_one(s, from[i]);
	if (err)
		fprintf(stderr, "xvs-bench: %s: frames do not get from guest to guest\n",
			s->target->name);
	return err;
}

int system_attach(struct bench_system *s, const struct target *target, const struct options *o)
{
	int err;

	memset(s, 0, sizeof(*s));
	s->attached = true;
	err = allocate(s, target, o->pairs);
	for (unsigned int i = 0; i < target->nports && !err; i++) {
		s->guest[i].fe.fd = -1;
		s->nguests = i + 1;
		err = guest_up(s, i, o);
		if (!err)
			err = take_rings(s, i);
		if (err)
			fprintf(stderr, "xvs-bench: %s: attaching to %s: %s\n", target->name,
				target->path[i], strerror(-err));
	}
	return err ? err : pass_first(s, o);
}

void system_detach(struct bench_system *s)
{
	if (!s->attached)
		return;
	for (unsigned int i = 0; i < s->nguests; i++) {
		if (s->guest[i].fe.fd >= 0)
			guest_stop(&s->guest[i]);
		for (unsigned int q = 0; s->tx[i] && q < s->npairs; q++)
			fast_tx_fini(&s->tx[i][q]);
		free(s->tx[i]);
		free(s->rx[i]);
		guest_destroy(&s->guest[i]);
	}
	free(s->guest);
	free(s->tx);
	free(s->rx);
	s->attached = false;
}

int systems_attach(struct bench_system *s, const struct options *o)
{
	memset(s, 0, o->ntargets * sizeof(*s));
	for (unsigned int i = 0; i < o->ntargets; i++) {
		const int err = system_attach(&s[i], &o->target[i], o);

		if (err) {
			systems_detach(s, o);
			return err;
		}
	}
	return 0;
}

void systems_detach(struct bench_system *s, const struct options *o)
{
	for (unsigned int i = 0; i < o->ntargets; i++)
		system_detach(&s[i]);
}

void systems_turn(const struct bench_system *s, unsigned int n, unsigned int turn)
{
	for (unsigned int i = 0; i < n; i++) {
		if (i != turn && s[i].target->pid)
			kill(s[i].target->pid, SIGSTOP);
	}
	if (s[turn].target->pid)
		kill(s[turn].target->pid, SIGCONT);
}

void systems_resume(const struct bench_system *s, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		if (s[i].target->pid)
			kill(s[i].target->pid, SIGCONT);
	}
}

int systems_check(const struct bench_system *s, unsigned int n)
{
	uint64_t bad = 0;

	for (unsigned int i = 0; i < n; i++) {
		for (unsigned int g = 0; g < s[i].nguests; g++) {
			for (unsigned int q = 0; q < s[i].npairs; q++)
				bad += s[i].rx[g][q].bad;
		}
	}
	return bad ? -EPROTO : 0;
}
