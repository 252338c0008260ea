/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Command line of xvs-bench: a table of options; each row has its parser, a few lines long, and
 * its help text, so that an option is added in one place.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"

/* Decimal number in [low, high] that fills the whole text. */
static bool number(const char *text, unsigned int low, unsigned int high, unsigned int *out)
{
	char *end;
	const unsigned long n = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || n < low || n > high)
		return false;
	*out = (unsigned int)n;
	return true;
}

static bool opt_size(struct options *o, const char *text)
{
	char copy[256], *save = NULL;

	if (strlen(text) >= sizeof(copy))
		return false;
	strcpy(copy, text);
	o->nsizes = 0;
	for (char *t = strtok_r(copy, ",", &save); t; t = strtok_r(NULL, ",", &save)) {
		unsigned int *size = &o->size[o->nsizes];

		if (o->nsizes++ == SIZES_MAX)
			return false;
		if (strcmp(t, "imix") == 0)
			*size = FAST_IMIX;
		else if (!number(t, 60, FAST_FRAME_MAX - 12, size))
			return false;
	}
	return o->nsizes > 0;
}

static bool opt_seconds(struct options *o, const char *text)
{
	char *end;

	o->seconds = strtod(text, &end);
	return end != text && !*end && o->seconds > 0 && o->seconds <= 3600;
}

static bool opt_slice(struct options *o, const char *text)
{
	return number(text, 1, 1000, &o->slice_ms);
}

static bool opt_pairs(struct options *o, const char *text)
{
	return number(text, 1, GUEST_PAIRS_MAX, &o->pairs);
}

static bool opt_ring(struct options *o, const char *text)
{
	return number(text, 64, VRING_SIZE_MAX, &o->ring_size) &&
	       (o->ring_size & (o->ring_size - 1)) == 0;
}

static bool opt_count(struct options *o, const char *text)
{
	return number(text, 1, 100000, &o->count);
}

static bool opt_cpu(struct options *o, const char *text)
{
	return number(text, 0, 4095, &o->cpu);
}

static bool opt_switch_cpu(struct options *o, const char *text)
{
	unsigned int n;

	if (strcmp(text, "none") == 0) {
		o->switch_cpu = -1;
		return true;
	}
	if (!number(text, 0, 4095, &n))
		return false;
	o->switch_cpu = (int)n;
	return true;
}

static bool opt_both_ways(struct options *o, const char *text)
{
	(void)text;
	o->both_ways = true;
	return true;
}

static bool opt_light(struct options *o, const char *text)
{
	(void)text;
	o->light = true;
	return true;
}

static bool opt_interrupts(struct options *o, const char *text)
{
	(void)text;
	o->interrupts = true;
	return true;
}

static bool opt_guests(struct options *o, const char *text)
{
	return number(text, 2, PORTS_MAX, &o->guests);
}

static bool opt_kicker_cpu(struct options *o, const char *text)
{
	o->kicker_cpu = text;
	return true;
}

static bool opt_plot(struct options *o, const char *text)
{
	o->plot = text;
	return true;
}

static bool opt_no_huge(struct options *o, const char *text)
{
	(void)text;
	o->huge = false;
	return true;
}

static bool opt_json(struct options *o, const char *text)
{
	(void)text;
	o->json = true;
	return true;
}

static bool opt_run_dir(struct options *o, const char *text)
{
	o->run_dir = text;
	return true;
}

static bool copy_text(char *out, size_t size, const char *from, size_t len)
{
	if (len == 0 || len >= size)
		return false;
	memcpy(out, from, len);
	out[len] = 0;
	return true;
}

/* "A,B[,C...][,PID]": a last word that is a number is no socket. */
static bool parse_sockets(struct target *t, const char *text)
{
	unsigned int pid = 0;

	while (text) {
		const char *comma = strchr(text, ',');
		const size_t len = comma ? (size_t)(comma - text) : strlen(text);

		if (!comma && t->nports >= 2 && number(text, 2, 0x7fffffff, &pid))
			break;
		if (t->nports == PORTS_MAX ||
		    !copy_text(t->path[t->nports], sizeof(t->path[0]), text, len))
			return false;
		t->nports++;
		text = comma ? comma + 1 : NULL;
	}
	t->pid = (pid_t)pid;
	return t->nports >= 2;
}

static bool opt_sockets(struct options *o, const char *text)
{
	struct target *t = &o->target[o->ntargets];

	if (o->ntargets == SYSTEMS_MAX)
		return false;
	o->ntargets++;
	strcpy(t->name, "switch");
	return parse_sockets(t, text);
}

static bool opt_system(struct options *o, const char *text)
{
	struct target *t = &o->target[o->ntargets];
	const char *eq = strchr(text, '=');

	if (!eq || o->ntargets == SYSTEMS_MAX)
		return false;
	o->ntargets++;
	return copy_text(t->name, sizeof(t->name), text, (size_t)(eq - text)) &&
	       parse_sockets(t, eq + 1);
}

static const struct row {
	const char *name;
	const char *argument; /* NULL: takes none */
	bool (*parse)(struct options *o, const char *text);
	const char *help;
} rows[] = {
    {"size", "N[,N...]", opt_size, "frame sizes without FCS, or imix (64)"},
    {"seconds", "S", opt_seconds, "time per system, size and case (3)"},
    {"slice", "MS", opt_slice, "length of a slice (50)"},
    {"both-ways", NULL, opt_both_ways, "traffic in both directions"},
    {"pairs", "N", opt_pairs, "queue pairs of each guest (1)"},
    {"ring", "N", opt_ring, "ring size (1024)"},
    {"light", NULL, opt_light, "guests that leave out all they can"},
    {"interrupts", NULL, opt_interrupts, "rr: guests sleep until they are interrupted"},
    {"guests", "N", opt_guests, "guests on ports made here (by scenario)"},
    {"count", "N", opt_count, "repetitions of attach and gap (20)"},
    {"run-dir", "DIR", opt_run_dir, "add ports to the running xvswitchd of this directory"},
    {"sockets", "A,B[,C..][,PID]", opt_sockets, "vhost-user sockets of a running switch"},
    {"system", "NAME=A,B[..][,PID]", opt_system, "the same, named; repeat it to compare"},
    {"cpu", "N", opt_cpu, "CPU of the generator (0)"},
    {"switch-cpu", "N|none", opt_switch_cpu, "CPU of the switch, for the probes (1)"},
    {"kicker-cpu", "N|none", opt_kicker_cpu, "nic: as for xvswitchd (auto)"},
    {"no-huge", NULL, opt_no_huge, "guest memory without huge pages"},
    {"json", NULL, opt_json, "results as JSON on stdout"},
    {"plot", "FILE.svg", opt_plot, "draw rate against frame size"},
};

static void usage(void)
{
	printf("usage: xvs-bench SCENARIO [options]\n\nscenarios:\n");
	scenario_list();
	printf("\noptions (default):\n");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		printf("  --%s %-*s %s\n", rows[i].name, (int)(24 - strlen(rows[i].name)),
		       rows[i].argument ? rows[i].argument : "", rows[i].help);
	printf(
	    "\n--run-dir, --sockets or --system say what to measure; without them an xvswitchd is\n"
	    "started. PID names the switch's process, which is then stopped while another one is\n"
	    "measured.\n");
}

static int complain(const char *what, const char *detail)
{
	fprintf(stderr, "xvs-bench: %s%s (xvs-bench --help lists scenarios and options)\n", what,
		detail);
	return 2;
}

static void set_defaults(struct options *o)
{
	o->size[0] = 64;
	o->nsizes = 1;
	o->seconds = 3;
	o->slice_ms = 50;
	o->pairs = 1;
	o->ring_size = 1024;
	o->count = 20;
	o->switch_cpu = 1;
	o->kicker_cpu = "auto";
	o->huge = true;
}

static int parse_options(struct options *o, int argc, char **argv)
{
	struct option table[ARRAY_LEN(rows) + 1] = {{0}};
	int i, c;

	for (i = 0; i < (int)ARRAY_LEN(rows); i++) {
		table[i].name = rows[i].name;
		table[i].has_arg = rows[i].argument ? required_argument : no_argument;
	}
	while ((c = getopt_long(argc, argv, "", table, &i)) != -1) {
		if (c != 0)
			return complain("see above", "");
		if (!rows[i].parse(o, optarg))
			return complain("bad value for --", rows[i].name);
	}
	return optind < argc ? complain("one argument too many: ", argv[optind]) : 0;
}

int options_parse(struct options *o, int argc, char **argv)
{
	int err;

	set_defaults(o);
	if (argc < 2)
		return complain("no scenario", "");
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
		usage();
		return 1;
	}
	o->scenario = scenario_find(argv[1]);
	if (!o->scenario)
		return complain("no such scenario: ", argv[1]);
	err = parse_options(o, argc - 1, argv + 1);
	if (!err && o->ntargets && o->run_dir)
		err = complain("--run-dir excludes --sockets and --system", "");
	return err;
}
