/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vm2vm: packet rate from guest to guest at full overload.
 *
 * Each loop offers a batch on every transmit queue that has room for one and takes a batch from
 * every receive queue that has something. What is received counts; the sender is held back by
 * its full ring. The generator's own cost is measured beside it, only over calls that moved
 * packets: when its busy share is near 100 % the generator is the limit, not the switch.
 */
#include "bench/bench.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/cpu.h"

#define WARM_UP_MS 5u
#define KICK_AFTER 4096u /* loops in which nothing moved: perhaps the device sleeps */

struct load {
	uint64_t received;
	uint64_t tx, tx_ticks; /* frames sent and what the calls cost */
	uint64_t rx, rx_ticks;
	uint64_t ticks;
};

static inline unsigned int send_side(struct bench_system *s, unsigned int guest, struct load *l,
				     bool light)
{
	unsigned int sum = 0;

	for (unsigned int q = 0; q < s->npairs; q++) {
		const uint64_t start = clock_ticks();
		const unsigned int n = fast_tx_burst(&s->tx[guest][q], FAST_BATCH, light);

		if (n)
			l->tx_ticks += clock_ticks() - start;
		sum += n;
	}
	l->tx += sum;
	return sum;
}

static inline unsigned int receive_side(struct bench_system *s, unsigned int guest, struct load *l,
					bool light)
{
	unsigned int sum = 0;

	for (unsigned int q = 0; q < s->npairs; q++) {
		const uint64_t start = clock_ticks();
		const unsigned int n = fast_rx_burst(&s->rx[guest][q], FAST_BATCH, light);

		if (n)
			l->rx_ticks += clock_ticks() - start;
		sum += n;
	}
	l->rx += sum;
	return sum;
}

static void kick_all(struct bench_system *s)
{
	for (unsigned int i = 0; i < 2; i++) {
		for (unsigned int q = 0; q < s->npairs; q++) {
			fast_tx_kick(&s->tx[i][q]);
			fast_rx_kick(&s->rx[i][q]);
		}
	}
}

static inline void run(struct bench_system *s, uint64_t ticks, unsigned int senders, struct load *l,
		       bool light)
{
	const uint64_t start = clock_ticks();
	unsigned int idle = 0;

	memset(l, 0, sizeof(*l));
	kick_all(s);
	do {
		unsigned int moved = 0;

		for (unsigned int i = 0; i < senders; i++) {
			moved += send_side(s, i, l, light);
			moved += receive_side(s, 1 - i, l, light);
		}
		if (moved) {
			idle = 0;
		} else {
			cpu_relax();
			if (++idle % KICK_AFTER == 0)
				kick_all(s);
		}
		l->ticks = clock_ticks() - start;
	} while (l->ticks < ticks);
	l->received = l->rx;
}

static void run_for(struct bench_system *s, const struct options *o, unsigned int ms,
		    struct load *l)
{
	const uint64_t ticks = clock_ticks_per_second() / 1000 * ms;
	const unsigned int senders = o->both_ways ? 2 : 1;

	if (o->light)
		run(s, ticks, senders, l, true);
	else
		run(s, ticks, senders, l, false);
}

static double per(uint64_t a, uint64_t b)
{
	return b ? (double)a / (double)b : 0;
}

static void measure(struct bench_system *s, const struct options *o, struct slice *out)
{
	struct load l;

	run_for(s, o, WARM_UP_MS, &l);
	run_for(s, o, o->slice_ms, &l);
	out->value = per(l.received, l.ticks) * (double)clock_ticks_per_second() / 1e6;
	out->gen_cost = per(l.tx_ticks, l.tx) + per(l.rx_ticks, l.rx);
	out->gen_busy = per(l.tx_ticks + l.rx_ticks, l.ticks);
}

static const struct slice_ops ops = {.measure = measure};

/* A used entry that no correct device writes makes the whole result worthless. */
static int check_bad(const struct bench_system *s, unsigned int n)
{
	uint64_t bad = 0;

	for (unsigned int i = 0; i < n; i++) {
		for (unsigned int g = 0; g < 2; g++) {
			for (unsigned int q = 0; q < s[i].npairs; q++)
				bad += s[i].rx[g][q].bad;
		}
	}
	return bad ? -EPROTO : 0;
}

int vm2vm_run(const struct options *o, json_t *results)
{
	static struct slices slices;
	struct bench_system *s = calloc(o->ntargets, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	err = systems_attach(s, o);
	for (unsigned int i = 0; i < o->nsizes && !err; i++) {
		for (unsigned int k = 0; k < o->ntargets; k++)
			system_set_size(&s[k], o->size[i]);
		err = slices_run(&slices, s, o, &ops);
		if (!err)
			report_rates(o, &slices, o->size[i], results);
	}
	if (!err)
		err = check_bad(s, o->ntargets);
	systems_detach(s, o);
	free(s);
	return err;
}
