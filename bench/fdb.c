/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fdb: what addresses cost. Guest 0 has 1, 1024 or 65536 of them: it sends from each of them in
 * turn, guest 1 sends to each of them, in a scrambled order. What more addresses cost is the
 * difference of "cycles" within one mode; the generator does the same work for all.
 *
 * Then learning: every frame from guest 0 has an address never seen before, so that the rate is
 * the rate of learning; on an xvswitchd of ours its counter tells whether all were learned.
 */
#include <errno.h>
#include <stdio.h>

#include "bench/bench.h"

#define WARM_UP_MS     5
#define TEACH_ROUND_MS 1
#define TEACH_ROUNDS   1000u
#define ALL_NEW        0x1000000u /* forgotten for long when the first of them comes again */

static uint64_t forwarded[SYSTEMS_MAX]; /* frames with a new address, also in dropped slices */

/* Guest 0 sends from each of its addresses, so that all are known. */
static void teach(struct bench_system *s, const struct traffic_plan *both)
{
	struct traffic_plan plan = *both;
	uint64_t sent = 0;
	struct traffic t;

	plan.senders = 1;
	for (unsigned int i = 0; i < TEACH_ROUNDS && sent < 2 * plan.addresses; i++) {
		traffic_run(s, &plan, TEACH_ROUND_MS, &t);
		sent += t.tx;
	}
}

static void measure(struct bench_system *s, const struct options *o, unsigned int param,
		    struct slice *out)
{
	const struct traffic_plan plan = {
	    .kind = TRAFFIC_ADDRESSES, .senders = 2, .active = 2, .addresses = param};
	struct traffic t;

	teach(s, &plan);
	traffic_run(s, &plan, WARM_UP_MS, &t);
	traffic_run(s, &plan, o->slice_ms, &t);
	traffic_result(&t, out);
}

static void measure_new(struct bench_system *s, const struct options *o, unsigned int param,
			struct slice *out)
{
	const struct traffic_plan plan = {
	    .kind = TRAFFIC_ADDRESSES, .senders = 1, .active = 2, .addresses = param};
	struct traffic t;

	traffic_run(s, &plan, o->slice_ms, &t);
	traffic_result(&t, out);
	forwarded[out->system] += t.rx;
}

static const struct slice_ops ops = {
    .measure = measure, .unit = "addresses", .nparams = 3, .param = {1, 1024, 65536}};

static const struct slice_ops new_ops = {
    .measure = measure_new, .unit = "addresses", .nparams = 1, .param = {ALL_NEW}};

static json_int_t learned(const struct target *t)
{
	static const char *const words[] = {"fdb", "stats", NULL};
	json_t *answer = NULL;
	json_int_t n = -1;

	if (!t->run_dir[0] || daemon_ctl(t, words, &answer))
		return -1;
	n = json_integer_value(json_object_get(answer, "learned"));
	json_decref(answer);
	return n;
}

/* How many of the addresses that were forwarded have also been learned. */
static void report_learned(const struct options *o, const json_int_t before[], json_t *results)
{
	for (unsigned int i = 0; i < o->ntargets; i++) {
		const json_int_t n = learned(&o->target[i]) - before[i];

		if (before[i] < 0)
			continue;
		if (!o->json)
			printf("%s: %lld addresses learned, %llu frames with a new address\n",
			       o->target[i].name, (long long)n, (unsigned long long)forwarded[i]);
		json_array_append_new(results,
				      json_pack("{s:s, s:s, s:I, s:I}", "system", o->target[i].name,
						"scenario", "fdb-learned", "learned", n, "frames",
						(json_int_t)forwarded[i]));
	}
}

int fdb_run(const struct options *o, json_t *results)
{
	json_int_t before[SYSTEMS_MAX];
	int err;

	err = slices_scenario(o, &ops, report_rates, results);
	if (err)
		return err;
	for (unsigned int i = 0; i < o->ntargets; i++)
		before[i] = learned(&o->target[i]);
	err = slices_scenario(o, &new_ops, report_rates, results);
	if (!err)
		report_learned(o, before, results);
	return err;
}
