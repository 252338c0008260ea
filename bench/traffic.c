/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Full overload: the loop in which this thread plays all guests.
 *
 * Each round offers a batch on every transmit queue that has room for one and takes a batch from
 * every receive queue that has something. A sender is held back by its full ring. The generator's
 * own cost is measured beside it, only over calls that moved packets: when its busy share is near
 * 100 % the generator is the limit, not the switch.
 *
 * The kind of traffic is a constant where the loop is inlined, so that each kind has a loop of its
 * own. With TRAFFIC_ADDRESSES guest 0 sends from one of many addresses, and guest 1 to them, in an
 * order that no cache can guess.
 */
#include "bench/bench.h"

#include "base/clock.h"
#include "base/cpu.h"

#define KICK_AFTER 4096u     /* rounds in which nothing moved: perhaps the device sleeps */
#define SCRAMBLE   40503u    /* odd: numbers modulo a power of two come in another order */
#define ADDRESS_OF 0x010002u /* first three octets in memory: 02:00:01 */

/* The i-th address of guest 0, as it stands in memory. */
static uint64_t address(const struct traffic_plan *plan, uint32_t i)
{
	const uint32_t n = plan->first + ((i * SCRAMBLE) & (plan->addresses - 1));

	return ADDRESS_OF | (uint64_t)__builtin_bswap32(n << 8) << 24;
}

static inline unsigned int send_burst(struct fast_tx *q, unsigned int guest,
				      const struct traffic_plan *plan, enum traffic_kind kind)
{
	uint64_t value[FAST_BATCH];

	if (kind != TRAFFIC_ADDRESSES)
		return fast_tx_burst(q, FAST_BATCH, kind == TRAFFIC_LIGHT);
	for (uint32_t i = 0; i < FAST_BATCH; i++)
		value[i] = address(plan, (uint32_t)q->sent + i);
	return fast_tx_burst_edit(q, FAST_BATCH, guest == 0 ? MAC_LEN : 0, MAC_LEN, value);
}

static inline unsigned int send_side(struct bench_system *s, unsigned int guest,
				     const struct traffic_plan *plan, struct traffic *t,
				     enum traffic_kind kind)
{
	unsigned int sum = 0;

	for (unsigned int q = 0; q < s->npairs; q++) {
		const uint64_t start = clock_ticks();
		const unsigned int n = send_burst(&s->tx[guest][q], guest, plan, kind);

		if (n)
			t->tx_ticks += clock_ticks() - start;
		sum += n;
	}
	t->tx += sum;
	return sum;
}

static inline unsigned int receive_side(struct bench_system *s, unsigned int guest,
					struct traffic *t, enum traffic_kind kind)
{
	unsigned int sum = 0;

	for (unsigned int q = 0; q < s->npairs; q++) {
		const uint64_t start = clock_ticks();
		const unsigned int n =
		    fast_rx_burst(&s->rx[guest][q], FAST_BATCH, kind == TRAFFIC_LIGHT);

		if (n)
			t->rx_ticks += clock_ticks() - start;
		sum += n;
	}
	t->rx += sum;
	return sum;
}

static void kick_all(struct bench_system *s, unsigned int active)
{
	for (unsigned int i = 0; i < active; i++) {
		for (unsigned int q = 0; q < s->npairs; q++) {
			fast_tx_kick(&s->tx[i][q]);
			fast_rx_kick(&s->rx[i][q]);
		}
	}
}

/* One round: guest i sends if it is a sender, guest i+1 receives. Frames moved. */
static inline unsigned int round_of(struct bench_system *s, const struct traffic_plan *plan,
				    struct traffic *t, enum traffic_kind kind)
{
	const unsigned int n = MAX(plan->senders, plan->active - 1);
	unsigned int moved = 0;

	for (unsigned int i = 0; i < n; i++) {
		if (i < plan->senders)
			moved += send_side(s, i, plan, t, kind);
		moved += receive_side(s, i + 1 < plan->active ? i + 1 : 0, t, kind);
	}
	return moved;
}

static inline void run(struct bench_system *s, const struct traffic_plan *plan, uint64_t ticks,
		       struct traffic *t, enum traffic_kind kind)
{
	const uint64_t start = clock_ticks();
	unsigned int idle = 0;

	memset(t, 0, sizeof(*t));
	kick_all(s, plan->active);
	do {
		if (round_of(s, plan, t, kind)) {
			idle = 0;
		} else {
			cpu_relax();
			if (++idle % KICK_AFTER == 0)
				kick_all(s, plan->active);
		}
		t->ticks = clock_ticks() - start;
	} while (t->ticks < ticks);
}

void traffic_run(struct bench_system *s, const struct traffic_plan *plan, double ms,
		 struct traffic *out)
{
	const uint64_t ticks = (uint64_t)((double)clock_ticks_per_second() / 1000 * ms);

	if (plan->kind == TRAFFIC_LIGHT)
		run(s, plan, ticks, out, TRAFFIC_LIGHT);
	else if (plan->kind == TRAFFIC_ADDRESSES)
		run(s, plan, ticks, out, TRAFFIC_ADDRESSES);
	else
		run(s, plan, ticks, out, TRAFFIC_REALISTIC);
}

static double per(uint64_t a, uint64_t b)
{
	return b ? (double)a / (double)b : 0;
}

void traffic_result(const struct traffic *t, struct slice *out)
{
	out->value = per(t->rx, t->ticks) * (double)clock_ticks_per_second() / 1e6;
	out->gen_cost = per(t->tx_ticks, t->tx) + per(t->rx_ticks, t->rx);
	out->gen_busy = per(t->tx_ticks + t->rx_ticks, t->ticks);
}
