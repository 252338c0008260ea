/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xvs-bench: plays guests and measures what a switch does with their frames.
 *
 * A scenario is a row in the table below and one file. All run in this thread, pinned to
 * options.cpu; results are rows of a JSON array, printed at the end with --json, and a table for
 * people otherwise. Works with every vhost-user switch that serves two sockets.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/copy.h"
#include "base/cpu.h"
#include "bench/bench.h"

static const struct scenario scenarios[] = {
    {"vm2vm", "packet rate from guest to guest at full overload", vm2vm_run},
    {"rr", "round trip with one frame in flight", rr_run},
    {"attach", "time from connect to the first frame forwarded", attach_run},
};

const struct scenario *scenario_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(scenarios); i++) {
		if (strcmp(scenarios[i].name, name) == 0)
			return &scenarios[i];
	}
	return NULL;
}

void scenario_list(void)
{
	for (size_t i = 0; i < ARRAY_LEN(scenarios); i++)
		printf("  %-8s %s\n", scenarios[i].name, scenarios[i].help);
}

static volatile sig_atomic_t got_signal;

bool interrupted(void)
{
	return got_signal;
}

static void on_signal(int number)
{
	(void)number;
	got_signal = 1;
}

/* Ending by a signal must not leave a stopped switch or added ports behind. */
static void catch_signals(void)
{
	const struct sigaction end = {.sa_handler = on_signal};
	const struct sigaction ignore = {.sa_handler = SIG_IGN};

	sigaction(SIGINT, &end, NULL);
	sigaction(SIGTERM, &end, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
}

static int run(struct options *o)
{
	json_t *results = json_array();
	int err;

	err = o->run_dir ? daemon_ports_add(o) : 0;
	if (err)
		goto out;
	err = o->scenario->run(o, results);
	if (o->run_dir)
		daemon_ports_del(o);
	if (!err && o->json)
		err = report_json(results);
out:
	json_decref(results);
	return err;
}

int main(int argc, char **argv)
{
	static struct options o;
	int err;

	err = options_parse(&o, argc, argv);
	if (err)
		return err == 1 ? 0 : err;
	catch_signals();
	clock_init();
	copy_init();
	err = cpu_pin(pthread_self(), o.cpu);
	if (err) {
		fprintf(stderr, "xvs-bench: CPU %u: %s\n", o.cpu, strerror(-err));
		return 1;
	}
	err = run(&o);
	if (err)
		fprintf(stderr, "xvs-bench: %s: %s\n", o.scenario->name, strerror(-err));
	return err ? 1 : 0;
}
