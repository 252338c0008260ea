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
    {"vm2vm", vm2vm_run, "packet rate from guest to guest at full overload", .ports = {2}},
    {"ndr", ndr_run, "highest rate without loss, one way", .ports = {2}},
    {"flood", flood_run, "broadcasts from one guest to all others", .ports = {2, 3, 5, 9}},
    {"fdb", fdb_run, "cost of 1, 1024, 65536 addresses; learning rate", .ports = {2},
     .fdb_size = "262144"},
    {"ports", vm2vm_run, "vm2vm with 2, 64 and 256 attached guests", .ports = {2, 64, 256},
     .active = 2},
    {"nic", nic_run, "between a guest and AF_XDP on veth, against a bare sender", .ports = {1},
     .prepare = nic_prepare},
    {"rr", rr_run, "round trip with one frame in flight", .ports = {2}},
    {"load", load_run, "latency at 10, 50, 90 % of the maximum, one way", .ports = {2}},
    {"gap", gap_run, "forwarding gap while ports come and go", .ports = {2}},
    {"attach", attach_run, "time from connect to the first frame forwarded", .ports = {2}},
    {"state", state_run, "state of the machine, a line for each line read", .ports = {0}},
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

static int pin(unsigned int cpu)
{
	const int err = cpu_pin(pthread_self(), cpu);

	if (err)
		fprintf(stderr, "xvs-bench: CPU %u: %s\n", cpu, strerror(-err));
	return err;
}

static int run(struct options *o)
{
	json_t *results = json_array();
	int err;

	err = o->scenario->prepare ? o->scenario->prepare(o) : 0;
	if (!err)
		err = daemons_start(
		    o); /* before this thread is pinned: they inherit where it may run */
	if (!err)
		err = pin(o->cpu);
	if (!err)
		err = o->scenario->run(o, results);
	daemons_end(o);
	if (!err && o->json)
		err = report_json(results);
	if (!err && o->plot)
		err = plot_write(o->plot, results);
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
	err = run(&o);
	if (err)
		fprintf(stderr, "xvs-bench: %s: %s\n", o.scenario->name, strerror(-err));
	return err ? 1 : 0;
}
