/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Taking turns: slices of all series interleaved (A B C A B C ...), each between two probes.
 *
 * Only the system whose turn it is runs (the others are stopped by signal), so that what is
 * compared ran within the same second on the same machine state. A slice whose two probes
 * disagree on the state is dropped and counted. Everything is bounded by options.seconds.
 */
#include "bench/bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"

static void one(struct slices *out, struct bench_system *s, struct slice slice,
		const struct options *o, struct probe *probe, const struct slice_ops *ops)
{
	unsigned int before, after;
	enum mode mode;

	slice.mode = probe_mode(probe, &before);
	ops->measure(&s[slice.system], o, ops->param[slice.param], &slice);
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

static void round_of_all(struct slices *out, struct bench_system *s, const struct options *o,
			 struct probe *probe, const struct slice_ops *ops)
{
	for (unsigned int p = 0; p < MAX(1, ops->nparams); p++) {
		for (unsigned int i = 0; i < o->ntargets && !interrupted(); i++) {
			const struct slice slice = {.system = i, .param = p};

			systems_turn(s, o->ntargets, i);
			one(out, s, slice, o, probe, ops);
		}
	}
}

int slices_run(struct slices *out, struct bench_system *s, const struct options *o,
	       const struct slice_ops *ops)
{
	const uint64_t total = (uint64_t)(o->seconds * 1e9) * o->ntargets * MAX(1, ops->nparams);
	const uint64_t start = clock_ns();
	struct probe *probe;
	int err;

	out->n = 0;
	out->dropped = 0;
	err = probe_create(&probe, o->switch_cpu);
	if (err)
		return err;
	do {
		round_of_all(out, s, o, probe, ops);
		progress(o, out, clock_ns() - start, total);
	} while (clock_ns() - start < total && !interrupted());
	systems_resume(s, o->ntargets);
	probe_destroy(probe);
	if (interrupted())
		return -EINTR;
	return out->n ? 0 : -EAGAIN;
}

int slices_scenario(const struct options *o, const struct slice_ops *ops, slices_report *report,
		    json_t *results)
{
	static struct slices slices;
	struct bench_system *s = calloc(o->ntargets, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	err = systems_attach(s, o);
	for (unsigned int i = 0; i < o->nsizes && !err; i++) {
		for (unsigned int k = 0; k < o->ntargets; k++)
			(ops->set_size ? ops->set_size : system_set_size)(&s[k], o->size[i]);
		err = slices_run(&slices, s, o, ops);
		if (!err)
			report(o, &slices, ops, o->size[i], results);
	}
	if (!err)
		err = systems_check(s, o->ntargets);
	systems_detach(s, o);
	free(s);
	return err;
}
