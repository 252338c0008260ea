/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Latencies by the million: log-linear histograms of ticks, 256 buckets per power of two.
 *
 * The slice that is being measured has one of its own, so that it can be thrown away when the
 * machine's state changed; kept slices are added to the histogram of their series and mode, which
 * is made when it is needed first. Quantiles are the lower edge of the bucket in which they fall.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "bench/bench.h"

#define TICKS_MAX ((UINT64_C(1) << 40) - 1)

static struct histogram slice_latency;
static struct histogram *kept[SYSTEMS_MAX][PARAMS_MAX][MODES];

/* 0..511 as they are, then 256 steps for each doubling. */
static unsigned int bucket_of(uint64_t ticks)
{
	const uint64_t t = MIN(ticks, TICKS_MAX);
	const unsigned int shift = t < 512 ? 0 : 55 - (unsigned int)__builtin_clzll(t);

	return (shift << 8) + (unsigned int)(t >> shift);
}

static double ticks_of(unsigned int bucket)
{
	const unsigned int shift = bucket < 512 ? 0 : (bucket >> 8) - 1;

	return (double)((uint64_t)(bucket - (shift << 8)) << shift);
}

void histogram_reset(struct histogram *h)
{
	memset(h, 0, sizeof(*h));
}

void histogram_add(struct histogram *h, uint64_t ticks)
{
	h->bucket[bucket_of(ticks)]++;
	h->n++;
}

void histogram_merge(struct histogram *into, const struct histogram *h)
{
	for (unsigned int i = 0; i < HISTOGRAM_BUCKETS; i++)
		into->bucket[i] += h->bucket[i];
	into->n += h->n;
}

double histogram_us(const struct histogram *h, double quantile)
{
	const uint64_t wanted = (uint64_t)(quantile * (double)h->n);
	uint64_t sum = 0;

	for (unsigned int i = 0; i < HISTOGRAM_BUCKETS; i++) {
		sum += h->bucket[i];
		if (sum > wanted)
			return ticks_of(i) * 1e6 / (double)clock_ticks_per_second();
	}
	return 0;
}

struct histogram *latency_slice(void)
{
	histogram_reset(&slice_latency);
	return &slice_latency;
}

void latency_keep(const struct slice *slice)
{
	struct histogram **h = &kept[slice->system][slice->param][slice->mode];

	if (!*h)
		*h = calloc(1, sizeof(**h));
	if (*h)
		histogram_merge(*h, &slice_latency);
}

static void print_head(const struct options *o, const struct slice_ops *ops)
{
	if (!o->json)
		printf("%-12s %5s %9s %-11s %8s %8s %8s %8s %9s\n", "system", "size",
		       ops->unit ? ops->unit : "", "mode", "Mpps", "p50 us", "p99 us", "p99.9 us",
		       "samples");
}

/* One series in one mode; `first` is the median of the first system. */
static void report_one(const struct options *o, const struct slices *s, const struct slice_ops *ops,
		       unsigned int size, json_t *results, const struct slice *which, double first)
{
	const struct histogram *h = kept[which->system][which->param][which->mode];
	const struct summary sum = slices_summary(s, which->system, which->param, which->mode);
	const double p50 = histogram_us(h, 0.5), p99 = histogram_us(h, 0.99),
		     p999 = histogram_us(h, 0.999);
	const double wide = histogram_us(h, 0.9) - histogram_us(h, 0.1);
	const double hz = (double)clock_ticks_per_second();
	json_t *row;

	if (!o->json)
		printf("%-12s %5s %9s %-11s %8.3f %8.2f %8.2f %8.2f %9llu\n",
		       o->target[which->system].name, size_name(size),
		       param_text(ops, which->param), mode_name(which->mode), sum.value, p50, p99,
		       p999, (unsigned long long)h->n);
	row = row_start(o, ops, which->system, which->param, size, which->mode);
	json_object_update_new(row, json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I}", "mpps",
					      sum.value, "cycles_per_packet",
					      sum.value > 0 ? hz / 1e6 / sum.value : 0, "ratio",
					      first > 0 ? p50 / first : 0, "spread",
					      p50 > 0 ? wide / 2 / p50 : 0, "p50_us", p50, "p99_us",
					      p99, "p999_us", p999, "samples", (json_int_t)h->n));
	json_array_append_new(results, row);
}

static void forget(void)
{
	for (unsigned int i = 0; i < SYSTEMS_MAX; i++) {
		for (unsigned int p = 0; p < PARAMS_MAX; p++) {
			for (unsigned int m = 0; m < MODES; m++) {
				free(kept[i][p][m]);
				kept[i][p][m] = NULL;
			}
		}
	}
}

void latency_report(const struct options *o, const struct slices *s, const struct slice_ops *ops,
		    unsigned int size, json_t *results)
{
	const unsigned int nparams = MAX(1, ops->nparams);

	print_head(o, ops);
	for (enum mode mode = 0; mode < MODES; mode++) {
		for (unsigned int p = 0; p < nparams; p++) {
			const struct histogram *h = kept[0][p][mode];
			const double first = h ? histogram_us(h, 0.5) : 0;

			for (unsigned int i = 0; i < o->ntargets; i++) {
				const struct slice which = {.system = i, .param = p, .mode = mode};

				if (kept[i][p][mode])
					report_one(o, s, ops, size, results, &which, first);
			}
		}
	}
	forget();
}
