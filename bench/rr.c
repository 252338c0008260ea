/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rr: one frame in flight. Guest A sends, guest B sends it back when it has it, A sends the next
 * one when that has come. Both guests poll; with --interrupts each asks for an interrupt and
 * sleeps on its call eventfd until it comes, as a guest without a poll-mode driver does.
 *
 * A frame that does not come within 10 ms is counted as lost, and another one is sent. A rate is
 * given as well, a round trip being two packets.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "bench/bench.h"

#define WARM_UP_TRIPS 200u
#define TIME_OUT_MS   10

static unsigned int lost;

/* Waits for a frame by polling. */
static bool wait_polling(struct fast_rx *q)
{
	const uint64_t end = clock_ticks() + clock_ticks_per_second() / 1000 * TIME_OUT_MS;

	while (fast_rx_burst(q, 1, false) == 0) {
		if (clock_ticks() > end)
			return false;
		cpu_relax();
	}
	return true;
}

/*
 * Waits for a frame asleep. The fence of guest_ring_interrupts() is between the wish and the look
 * at the ring, so that either we see the frame or the device sees the wish. Both may happen: then
 * the interrupt is left over and wakes us next time for nothing.
 */
static bool wait_asleep(struct fast_rx *q)
{
	struct pollfd p = {.fd = q->ring->call_fd, .events = POLLIN};
	uint64_t calls;
	bool there;

	guest_ring_interrupts(q->ring, true);
	there = fast_rx_burst(q, 1, false) > 0;
	while (!there && poll(&p, 1, TIME_OUT_MS) == 1 &&
	       read(p.fd, &calls, sizeof(calls)) == sizeof(calls))
		there = fast_rx_burst(q, 1, false) > 0;
	guest_ring_interrupts(q->ring, false);
	return there;
}

/* One frame from guest `from` to the other. False when it did not arrive. */
static bool pass(struct bench_system *s, unsigned int from, bool asleep)
{
	struct fast_tx *tx = s->tx[from];
	struct fast_rx *rx = s->rx[1 - from];

	if (fast_tx_burst(tx, 1, false) == 0)
		return false;
	if (asleep)
		fast_tx_kick(tx);
	if (asleep ? wait_asleep(rx) : wait_polling(rx))
		return true;
	fast_tx_kick(tx);
	return false;
}

static void measure(struct bench_system *s, const struct options *o, unsigned int param,
		    struct slice *out)
{
	const uint64_t hz = clock_ticks_per_second();
	const uint64_t begin = clock_ticks(), end = begin + hz / 1000 * o->slice_ms;
	struct histogram *latency = latency_slice();
	unsigned int warm = WARM_UP_TRIPS;

	(void)param;
	system_drain(s);
	fast_tx_kick(s->tx[0]);
	while (clock_ticks() < end) {
		const uint64_t start = clock_ticks();

		if (!pass(s, 0, o->interrupts) || !pass(s, 1, o->interrupts)) {
			lost++;
			system_drain(s);
		} else if (warm) {
			warm--;
		} else {
			histogram_add(latency, clock_ticks() - start);
		}
	}
	out->value = 2 * (double)latency->n * (double)hz / 1e6 / (double)(clock_ticks() - begin);
}

int rr_run(const struct options *o, json_t *results)
{
	static const struct slice_ops ops = {.measure = measure, .keep = latency_keep};
	const int err = slices_scenario(o, &ops, latency_report, results);

	if (!err && !o->json)
		printf("%u round trips lost\n", lost);
	return err;
}
