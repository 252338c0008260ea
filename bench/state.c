/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * state: for scripts that measure by other means. Answers each line on standard input with the
 * state of the machine at that moment: how far the switch's CPU is, and whether it is shared. One
 * process for a whole measurement, because "shared" is judged against the best seen so far.
 */
#include "bench/bench.h"

#include <stdio.h>

int state_run(const struct options *o, json_t *results)
{
	unsigned int distance;
	struct probe *probe;
	char line[16];
	int err;

	(void)results;
	err = probe_create(&probe, o->switch_cpu);
	if (err)
		return err;
	while (!interrupted() && fgets(line, sizeof(line), stdin)) {
		const enum mode mode = probe_mode(probe, &distance);

		printf("%s %u\n", mode_name(mode), distance);
		fflush(stdout);
	}
	probe_destroy(probe);
	return 0;
}
