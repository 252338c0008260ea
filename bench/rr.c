/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rr: one frame in flight. Guest A sends, guest B sends it back when it has it, A sends the next
 * one when that has come; both guests poll. What a round trip costs is recorded one by one, and
 * quantiles are taken over all slices of a system in the same state.
 *
 * A frame that does not come within 10 ms is sent again and counted as lost.
 */
#include "bench/bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/cpu.h"

#define SAMPLES_MAX   2000000u
#define WARM_UP_TRIPS 200u

/* Round trips in microseconds, per system and state. */
struct samples {
	unsigned int n;
	double *us;
};

static struct samples samples[SYSTEMS_MAX][MODES];
static double *trip; /* of the slice being measured */
static unsigned int ntrips;
static unsigned int lost;

/* One frame from guest `from` to the other. False when it did not arrive. */
static bool pass(struct bench_system *s, unsigned int from, uint64_t limit)
{
	const uint64_t end = clock_ticks() + limit;

	if (fast_tx_burst(&s->tx[from][0], 1, false) == 0)
		return false;
	while (fast_rx_burst(&s->rx[1 - from][0], 1, false) == 0) {
		if (clock_ticks() > end) {
			fast_tx_kick(&s->tx[from][0]);
			return false;
		}
		cpu_relax();
	}
	return true;
}

/* Frames of an earlier slice, or answers that came too late. */
static void drain(struct bench_system *s)
{
	while (fast_rx_burst(&s->rx[0][0], FAST_BATCH, false) +
	       fast_rx_burst(&s->rx[1][0], FAST_BATCH, false))
		;
}

static void measure(struct bench_system *s, const struct options *o, struct slice *out)
{
	const uint64_t hz = clock_ticks_per_second();
	const uint64_t end = clock_ticks() + hz / 1000 * o->slice_ms;
	unsigned int warm = WARM_UP_TRIPS;

	ntrips = 0;
	drain(s);
	fast_tx_kick(&s->tx[0][0]);
	while (clock_ticks() < end && ntrips < SAMPLES_MAX) {
		const uint64_t start = clock_ticks();

		if (!pass(s, 0, hz / 100) || !pass(s, 1, hz / 100)) {
			lost++;
			drain(s);
		} else if (warm) {
			warm--;
		} else {
			trip[ntrips++] = (double)(clock_ticks() - start) * 1e6 / (double)hz;
		}
	}
	out->value = ntrips;
	out->gen_cost = 0;
}

/* Samples count only when the state of the machine is known for sure. */
static void keep(const struct slice *slice)
{
	struct samples *t = &samples[slice->system][slice->mode];
	const unsigned int n = MIN(ntrips, SAMPLES_MAX - t->n);

	if (!t->us)
		t->us = malloc(SAMPLES_MAX * sizeof(*t->us));
	if (!t->us)
		return;
	memcpy(t->us + t->n, trip, n * sizeof(*trip));
	t->n += n;
}

static const struct slice_ops ops = {.measure = measure, .keep = keep};

static void report(const struct options *o, unsigned int system, enum mode mode, json_t *results)
{
	struct samples *t = &samples[system][mode];
	double p50, p99, p999;

	if (t->n == 0)
		return;
	p50 = median_of(t->us, t->n);
	p99 = quantile_of(t->us, t->n, 0.99);
	p999 = quantile_of(t->us, t->n, 0.999);
	if (!o->json)
		printf("%-12s %5s %-11s %8.2f %8.2f %8.2f %9u\n", o->target[system].name,
		       size_name(o->size[0]), mode_name(mode), p50, p99, p999, t->n);
	json_array_append_new(results,
			      json_pack("{s:s, s:s, s:o, s:s, s:s, s:s, s:f, s:f, s:f, s:i}",
					"system", o->target[system].name, "scenario", "rr", "size",
					size_json(o->size[0]), "ring", "split", "generator",
					generator_name(o), "mode", mode_name(mode), "p50_us", p50,
					"p99_us", p99, "p999_us", p999, "trips", (int)t->n));
	free(t->us);
	t->us = NULL;
	t->n = 0;
}

static void report_all(const struct options *o, json_t *results)
{
	if (!o->json)
		printf("%-12s %5s %-11s %8s %8s %8s %9s\n", "system", "size", "mode", "p50 us",
		       "p99 us", "p99.9 us", "trips");
	for (enum mode mode = 0; mode < MODES; mode++) {
		for (unsigned int i = 0; i < o->ntargets; i++)
			report(o, i, mode, results);
	}
	if (!o->json)
		printf("%u round trips lost\n", lost);
}

int rr_run(const struct options *o, json_t *results)
{
	static struct slices slices;
	struct bench_system *s = calloc(o->ntargets, sizeof(*s));
	int err = -ENOMEM;

	trip = malloc(SAMPLES_MAX * sizeof(*trip));
	if (s && trip)
		err = systems_attach(s, o);
	if (!err) {
		err = slices_run(&slices, s, o, &ops);
		if (!err)
			report_all(o, results);
		systems_detach(s, o);
	}
	free(trip);
	free(s);
	return err;
}
