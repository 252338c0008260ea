/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Taking turns: slices of all systems interleaved (A B C A B C ...), each between two probes.
 *
 * Only the system whose turn it is runs (the others are stopped by signal), so that what is
 * compared ran within the same second on the same machine state. A slice whose two probes
 * disagree on the state is dropped and counted. Everything is bounded by options.seconds.
 */
#include "bench/bench.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

static void one(struct slices *out, struct bench_system *s, unsigned int turn,
		const struct options *o, struct probe *probe, const struct slice_ops *ops)
{
	struct slice slice = {.system = turn};
	unsigned int before, after;
	enum mode mode;

	slice.mode = probe_mode(probe, &before);
	ops->measure(&s[turn], o, &slice);
	mode = probe_mode(probe, &after);
	slice.distance = (before + after) / 2.0;
	if (mode != slice.mode || out->n == SLICES_MAX) {
		out->dropped++;
		return;
	}
	out->slice[out->n++] = slice;
	if (ops->keep)
		ops->keep(&slice);
}

static void progress(const struct options *o, const struct slices *s, uint64_t spent,
		     uint64_t total)
{
	if (!isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r%s: %3u %%, %u slices, %u dropped ", o->scenario->name,
		(unsigned int)MIN(100, spent * 100 / total), s->n, s->dropped);
	if (spent >= total)
		fprintf(stderr, "\n");
}

int slices_run(struct slices *out, struct bench_system *s, const struct options *o,
	       const struct slice_ops *ops)
{
	const uint64_t total = (uint64_t)(o->seconds * 1e9) * o->ntargets;
	const uint64_t start = clock_ns();
	struct probe *probe;
	int err;

	out->n = 0;
	out->dropped = 0;
	err = probe_create(&probe, o->switch_cpu);
	if (err)
		return err;
	do {
		for (unsigned int i = 0; i < o->ntargets && !interrupted(); i++) {
			systems_turn(s, o->ntargets, i);
			one(out, s, i, o, probe, ops);
		}
		progress(o, out, clock_ns() - start, total);
	} while (clock_ns() - start < total && !interrupted());
	systems_resume(s, o->ntargets);
	probe_destroy(probe);
	if (interrupted())
		return -EINTR;
	return out->n ? 0 : -EAGAIN;
}
