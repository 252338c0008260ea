/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Results: medians per system and machine state, as a table for people and rows for machines.
 *
 * Rates are only compared within one state. "ratio" is the packet rate of the first system
 * divided by this one's in the same state. "spread" is half the distance between the 10th and
 * the 90th percentile, relative to the median. "cycles" is the switch's time per packet if it
 * was busy all the time: ticks per second over packets per second.
 */
#include "bench/bench.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

/* Fewer slices than this in a state say nothing. */
#define SLICES_MIN 3u

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double quantile_of(const double *sorted, unsigned int n, double q)
{
	const unsigned int i = (unsigned int)(q * n);

	return n ? sorted[i < n ? i : n - 1] : 0;
}

double median_of(double *v, unsigned int n)
{
	qsort(v, n, sizeof(*v), compare);
	return quantile_of(v, n, 0.5);
}

/* Median over the slices like `which` (system, param, mode) of the double at `offset` in them. */
static double median_field(const struct slices *s, const struct slice *which, size_t offset,
			   double *sorted, unsigned int *n)
{
	*n = 0;
	for (unsigned int i = 0; i < s->n; i++) {
		const struct slice *one = &s->slice[i];

		if (one->system == which->system && one->param == which->param &&
		    one->mode == which->mode)
			memcpy(&sorted[(*n)++], (const char *)one + offset, sizeof(double));
	}
	return median_of(sorted, *n);
}

struct summary slices_summary(const struct slices *s, unsigned int system, unsigned int param,
			      enum mode mode)
{
	const struct slice which = {.system = system, .param = param, .mode = mode};
	static double sorted[SLICES_MAX];
	struct summary sum = {0};
	unsigned int n;

	sum.gen_cost = median_field(s, &which, offsetof(struct slice, gen_cost), sorted, &n);
	sum.gen_busy = median_field(s, &which, offsetof(struct slice, gen_busy), sorted, &n);
	sum.distance = median_field(s, &which, offsetof(struct slice, distance), sorted, &n);
	sum.value = median_field(s, &which, offsetof(struct slice, value), sorted, &n);
	sum.n = n;
	if (sum.value > 0)
		sum.spread =
		    (quantile_of(sorted, n, 0.9) - quantile_of(sorted, n, 0.1)) / 2 / sum.value;
	return sum;
}

const char *size_name(unsigned int size)
{
	static char text[16];

	if (size == FAST_IMIX)
		return "imix";
	snprintf(text, sizeof(text), "%u", size);
	return text;
}

json_t *size_json(unsigned int size)
{
	return size == FAST_IMIX ? json_string("imix") : json_integer(size);
}

const char *generator_name(const struct options *o)
{
	return o->light ? "xvs-bench-light" : "xvs-bench";
}

static double cycles(double mpps)
{
	return mpps > 0 ? (double)clock_ticks_per_second() / 1e6 / mpps : 0;
}

const char *param_text(const struct slice_ops *ops, unsigned int param)
{
	static char text[16];

	if (!ops->unit)
		return "";
	if (ops->param_name)
		return ops->param_name[ops->param[param]];
	snprintf(text, sizeof(text), "%u", ops->param[param]);
	return text;
}

json_t *row_start(const struct options *o, const struct slice_ops *ops, unsigned int system,
		  unsigned int param, unsigned int size, enum mode mode)
{
	const struct target *t = &o->target[system];
	json_t *row =
	    json_pack("{s:s, s:s, s:o, s:s, s:s, s:s, s:i}", "system", t->name, "scenario",
		      o->scenario->name, "size", size_json(size), "ring", "split", "generator",
		      generator_name(o), "mode", mode_name(mode), "ports", (int)t->nports);

	if (ops->unit)
		json_object_set_new(row, ops->unit,
				    ops->param_name ? json_string(param_text(ops, param))
						    : json_integer(ops->param[param]));
	return row;
}

static void print_row(const struct options *o, const struct slice_ops *ops, unsigned int size,
		      const struct slice *which, const struct summary *sum, double ratio)
{
	const struct target *t = &o->target[which->system];

	if (o->json)
		return;
	printf("%-12s %5u %5s %9s %-11s %8.2f %7.0f %6.2f %6.0f%% %8.0f %5.0f%% %6.0f %6u\n",
	       t->name, t->nports, size_name(size), param_text(ops, which->param),
	       mode_name(which->mode), sum->value, cycles(sum->value), ratio, sum->spread * 100,
	       sum->gen_cost, sum->gen_busy * 100, sum->distance, sum->n);
}

static json_t *row(const struct options *o, const struct slice_ops *ops, unsigned int size,
		   const struct slice *which, const struct summary *sum, double ratio)
{
	json_t *r = row_start(o, ops, which->system, which->param, size, which->mode);

	json_object_update_new(r, json_pack("{s:b, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:i}",
					    "both_ways", o->both_ways, "pairs", (int)o->pairs,
					    "mpps", sum->value, "cycles_per_packet",
					    cycles(sum->value), "ratio", ratio, "spread",
					    sum->spread, "generator_cycles_per_packet",
					    sum->gen_cost, "generator_busy", sum->gen_busy,
					    "core_distance", sum->distance, "slices", (int)sum->n));
	return r;
}

static void print_head(const struct options *o, const struct slice_ops *ops)
{
	if (o->json)
		return;
	printf("%-12s %5s %5s %9s %-11s %8s %7s %6s %7s %8s %6s %6s %6s\n", "system", "ports",
	       "size", ops->unit ? ops->unit : "", "mode", "Mpps", "cycles", "ratio", "spread",
	       "gen.cost", "busy", "dist.", "slices");
}

/* One mode and parameter: all systems against the first. */
static void report_mode(const struct options *o, const struct slices *s,
			const struct slice_ops *ops, unsigned int size, const struct slice *like,
			json_t *results)
{
	struct slice which = *like;
	double first = 0;

	for (which.system = 0; which.system < o->ntargets; which.system++) {
		const struct summary sum = slices_summary(s, which.system, which.param, which.mode);
		double ratio;

		if (sum.n < SLICES_MIN)
			continue;
		if (which.system == 0)
			first = sum.value;
		ratio = sum.value > 0 ? first / sum.value : 0;
		print_row(o, ops, size, &which, &sum, ratio);
		json_array_append_new(results, row(o, ops, size, &which, &sum, ratio));
	}
}

void report_rates(const struct options *o, const struct slices *s, const struct slice_ops *ops,
		  unsigned int size, json_t *results)
{
	print_head(o, ops);
	for (enum mode mode = 0; mode < MODES; mode++) {
		for (unsigned int p = 0; p < MAX(1, ops->nparams); p++) {
			const struct slice like = {.param = p, .mode = mode};

			report_mode(o, s, ops, size, &like, results);
		}
	}
	if (!o->json)
		printf("%u slices, %u dropped because the machine's state changed\n\n", s->n,
		       s->dropped);
}

int report_json(json_t *results)
{
	json_t *all = json_pack("{s:O}", "results", results);
	int err = 0;

	if (!all || json_dumpf(all, stdout, JSON_INDENT(1)) < 0)
		err = -EIO;
	else
		printf("\n");
	json_decref(all);
	return err;
}
