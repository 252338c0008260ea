/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vring_need_event() against a naive model over all 65536 positions of the index.
 *
 * Model: the index moves from `old` to `now` one step at a time; the other side asked to be told
 * when the entry numbered `event` is passed, that is when the index becomes event + 1.
 */
#include "ring/virtio_net.h"
#include "unit/unit.h"

static bool model(uint16_t event, uint16_t now, uint16_t old)
{
	for (uint16_t i = old; i != now; i++) {
		if (i == event)
			return true;
	}
	return false;
}

/* All indices `old`, a batch of `n`, and events around both ends of it. */
static unsigned int disagreements(unsigned int n)
{
	unsigned int wrong = 0;

	for (uint32_t old = 0; old < 65536; old++) {
		const uint16_t from = (uint16_t)old, now = (uint16_t)(old + n);

		for (int near = -3; near <= 3; near++) {
			const uint16_t at_old = (uint16_t)(from + near);
			const uint16_t at_now = (uint16_t)(now + near);

			wrong += !!vring_need_event(at_old, now, from) != model(at_old, now, from);
			wrong += !!vring_need_event(at_now, now, from) != model(at_now, now, from);
		}
	}
	return wrong;
}

static void all_indices_several_batch_sizes(void)
{
	static const unsigned int batch[] = {0, 1, 2, 3, 31, 32, 33, 255, 256};

	for (size_t i = 0; i < sizeof(batch) / sizeof(batch[0]); i++)
		CU_ASSERT_EQUAL(disagreements(batch[i]), 0);
}

/* All 65536 events for a few indices, with batches up to the largest ring. */
static void all_events_large_batches(void)
{
	static const uint16_t olds[] = {0, 1, 32767, 32768, 65530, 65535};
	static const unsigned int batch[] = {0, 1, 32, 1000, 32767, 32768, 65535};
	unsigned int wrong = 0;

	for (size_t i = 0; i < sizeof(olds) / sizeof(olds[0]); i++) {
		for (size_t k = 0; k < sizeof(batch) / sizeof(batch[0]); k++) {
			const uint16_t old = olds[i], now = (uint16_t)(old + batch[k]);

			for (uint32_t event = 0; event < 65536; event++) {
				/* inside [old, now), counted from old */
				const bool inside = (uint16_t)(event - old) < batch[k];

				wrong += !!vring_need_event((uint16_t)event, now, old) != inside;
			}
		}
	}
	CU_ASSERT_EQUAL(wrong, 0);
}

static void nothing_new_needs_no_event(void)
{
	for (uint32_t event = 0; event < 65536; event++)
		CU_ASSERT_FALSE(vring_need_event((uint16_t)event, 77, 77));
}

static const struct unit_case cases[] = {
    UNIT_CASE(all_indices_several_batch_sizes),
    UNIT_CASE(all_events_large_batches),
    UNIT_CASE(nothing_new_needs_no_event),
};
UNIT_MAIN("event_idx", cases)
