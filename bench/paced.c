/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Traffic at a given rate, one way: the clock says how many frames are due, and those are sent.
 *
 * Each frame carries the time at which it was due, not the time at which it was written: a frame
 * that had to wait because the ring was full, or because this thread was late, has waited. A
 * switch that stops for a moment cannot hide behind a sender that stops with it.
 *
 * At the end the sender catches up and the receiver waits for what is still in the switch, both
 * for a bounded time; what has not arrived by then is lost.
 */
#include "bench/bench.h"

#include "base/clock.h"
#include "base/cpu.h"

#define TAIL_MS    2u
#define KICK_AFTER 4096u

struct pace {
	struct fast_tx *tx;
	struct fast_rx *rx;
	uint64_t start;
	double rate; /* frames per tick */
	struct histogram *latency;
	struct paced *out;
};

/* Sends what is due by now, a batch at most. */
static unsigned int send_due(struct pace *p, double due)
{
	const double behind = due - (double)p->out->sent;
	const unsigned int n = behind >= FAST_BATCH ? FAST_BATCH : (unsigned int)MAX(behind, 0);
	uint64_t stamp[FAST_BATCH];
	unsigned int sent;

	if (n == 0)
		return 0;
	for (unsigned int i = 0; i < n; i++)
		stamp[i] = p->start + (uint64_t)((double)(p->out->sent + i) / p->rate);
	sent = fast_tx_burst_edit(p->tx, n, FAST_STAMP_AT, sizeof(stamp[0]), stamp);
	p->out->sent += sent;
	return sent;
}

static unsigned int receive(struct pace *p)
{
	uint64_t stamp[FAST_BATCH];
	const unsigned int n = fast_rx_burst_stamps(p->rx, FAST_BATCH, stamp);
	const uint64_t now = n ? clock_ticks() : 0;

	for (unsigned int i = 0; p->latency && i < n; i++)
		histogram_add(p->latency, now > stamp[i] ? now - stamp[i] : 0);
	p->out->received += n;
	return n;
}

/* Until `ticks` have passed and, in the tail, until all has arrived. */
static void run(struct pace *p, uint64_t ticks)
{
	const double all = (double)ticks * p->rate;
	const uint64_t last = ticks + clock_ticks_per_second() / 1000 * TAIL_MS;
	unsigned int idle = 0;
	uint64_t t = 0;

	p->out->offered = all;
	fast_tx_kick(p->tx);
	while (t < ticks || (t < last && (double)p->out->received + 1 < all)) {
		const unsigned int moved = send_due(p, MIN((double)t * p->rate, all)) + receive(p);

		idle = moved ? 0 : idle + 1;
		if (idle && idle % KICK_AFTER == 0)
			fast_tx_kick(p->tx);
		t = clock_ticks() - p->start;
	}
	p->out->ticks = MAX(1, MIN(t, ticks));
}

/* As much as goes, to find the maximum. */
static void run_full(struct pace *p, uint64_t ticks)
{
	uint64_t t = 0;

	fast_tx_kick(p->tx);
	while (t < ticks) {
		p->out->sent += fast_tx_burst(p->tx, FAST_BATCH, false);
		p->out->received += fast_rx_burst(p->rx, FAST_BATCH, false);
		t = clock_ticks() - p->start;
	}
	p->out->offered = (double)p->out->sent;
	p->out->ticks = t;
}

void paced_run(struct bench_system *s, double rate, double ms, struct histogram *latency,
	       struct paced *out)
{
	const uint64_t ticks = (uint64_t)((double)clock_ticks_per_second() / 1000 * ms);
	struct pace p = {
	    .tx = s->tx[0],
	    .rx = s->rx[1],
	    .rate = rate,
	    .latency = latency,
	    .out = out,
	};

	memset(out, 0, sizeof(*out));
	system_drain(s);
	p.start = clock_ticks();
	if (rate > 0)
		run(&p, ticks);
	else
		run_full(&p, ticks);
}
