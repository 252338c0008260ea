/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tick rate measurement.
 *
 * The counter's rate is not told to user space in a portable way (CPUID leaf 0x15 is empty on
 * many virtual machines), so it is measured once against CLOCK_MONOTONIC. Ten milliseconds give
 * it to about 10 ppm, which is plenty for shares and cycles per packet; nothing that must be
 * exact (rates over a second, ageing) is counted in ticks.
 *
 * Called once by the control thread before others start; read-only afterwards. Rejected:
 * recalibrating later, which would make numbers of one process incomparable.
 */
#include "base/clock.h"

#define CALIBRATION_NS UINT64_C(10000000)

static uint64_t ticks_per_second = UINT64_C(1000000000);

uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

void clock_init(void)
{
	const uint64_t ns0 = clock_ns();
	const uint64_t t0 = clock_ticks();
	uint64_t ns1;

	do
		ns1 = clock_ns();
	while (ns1 - ns0 < CALIBRATION_NS);
	const uint64_t ticks = clock_ticks() - t0;

	ticks_per_second =
	    (uint64_t)((unsigned __int128)ticks * UINT64_C(1000000000) / (ns1 - ns0));
}

uint64_t clock_ticks_per_second(void)
{
	return ticks_per_second;
}
