/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names and sums of counters.
 *
 * The tables come from the same rows as the enums, so that a new counter or drop reason appears
 * everywhere (CLI, JSON) by adding one row in counters.h.
 *
 * Summing reads words that workers write at the same time. Each word is read once and whole
 * (aligned 64-bit); words of one struct may be some frames apart from each other, which settles
 * as soon as traffic rests. No lock: a reader never delays a worker.
 */
#include "base/counters.h"

#include "base/atomic.h"

enum { ROW_tx, ROW_rx };

static const char *const counter_names[CTR_COUNT] = {
#define X(id, name, meaning) [CTR_##id] = name,
    PORT_COUNTERS(X)
#undef X
};

static const struct {
	const char *name;
	int is_rx;
} drop_row[DROP_COUNT] = {
#define X(id, dir, name, meaning) [DROP_##id] = {name, ROW_##dir},
    DROP_REASONS(X)
#undef X
};

const char *counter_name(enum port_counter id)
{
	return counter_names[id];
}

const char *drop_name(enum drop_reason id)
{
	return drop_row[id].name;
}

void counters_sum(struct port_counters *total, const struct port_counters *part)
{
	for (unsigned int i = 0; i < CTR_COUNT; i++)
		total->value[i] += load_relaxed(&part->value[i]);
	for (unsigned int i = 0; i < DROP_COUNT; i++)
		total->drop[i] += load_relaxed(&part->drop[i]);
}

static uint64_t dropped(const struct port_counters *c, int rx)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < DROP_COUNT; i++)
		if (drop_row[i].is_rx == rx)
			sum += load_relaxed(&c->drop[i]);
	return sum;
}

uint64_t counters_rx_dropped(const struct port_counters *c)
{
	return dropped(c, ROW_rx);
}

uint64_t counters_tx_dropped(const struct port_counters *c)
{
	return dropped(c, ROW_tx);
}
