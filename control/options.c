/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Options of the daemon: one table gives getopt_long() its input, the setters and the help text.
 *
 * A setter gets the argument's text and refuses what is not exactly in range, with a reason that
 * names the option: a number that is silently cut or taken for another one shows up days later
 * as strange behaviour. Whether CPUs exist, files can be read and groups make sense together is
 * found out when they are used; nothing here touches anything but the group database.
 */
#include "control/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "control/port_kind.h"
#include "control/protocol.h"
#include "switch/vswitch.h"

#define FDB_SIZE_DEFAULT    65536u
#define FDB_SIZE_MIN        64u
#define FDB_SIZE_MAX        1048576u
#define AGEING_MAX          1000000u
#define UMEM_CHUNKS_DEFAULT 32768u
#define UMEM_CHUNKS_MIN     1024u
#define UMEM_CHUNKS_MAX     1048576u
#define SOCKET_MODE_DEFAULT 0660
#define HELP_COLUMN         26

typedef int setter_fn(struct options *o, const char *text, struct refusal *why);

/* ---- setters ---- */

static int set_number(uint32_t *out, const char *text, uint32_t min, uint32_t max,
		      struct refusal *why)
{
	uint64_t n;

	if (number_parse(text, min, max, &n))
		return refuse(why, -EINVAL, "a number from %u to %u, not \"%s\"", min, max, text);
	*out = (uint32_t)n;
	return 0;
}

static int set_run_dir(struct options *o, const char *text, struct refusal *why)
{
	char cwd[UNIX_PATH_LEN_MAX + 1] = "", socket[2 * UNIX_PATH_LEN_MAX];
	int len;

	if (!*text)
		return refuse(why, -EINVAL, "a directory, not an empty text");
	if (text[0] != '/' && !getcwd(cwd, sizeof(cwd)))
		return refuse(why, -EINVAL,
			      "an absolute path: the current directory's is too long");
	len = snprintf(o->run_dir, sizeof(o->run_dir), "%s%s%s", cwd, *cwd ? "/" : "", text);
	if (len < 0 || (size_t)len >= sizeof(o->run_dir))
		return refuse(why, -EINVAL, "a shorter path: this one has %d characters", len);
	while (len > 1 && o->run_dir[len - 1] == '/')
		o->run_dir[--len] = '\0';
	snprintf(socket, sizeof(socket), "%s/%s", o->run_dir, PROTOCOL_SOCKET);
	return unix_path_check(socket, why->text, sizeof(why->text));
}

static int set_config_file(struct options *o, const char *text, struct refusal *why)
{
	(void)why;
	o->config_file = text;
	return 0;
}

static int set_check_only(struct options *o, const char *text, struct refusal *why)
{
	(void)text;
	(void)why;
	o->check_only = true;
	return 0;
}

static int set_worker_cpus(struct options *o, const char *text, struct refusal *why)
{
	if (cpu_list_parse(text, &o->worker_cpus) || o->worker_cpus.count == 0)
		return refuse(why, -EINVAL, "a list of CPUs like 2,3,10-13, not \"%s\"", text);
	if (o->worker_cpus.count > WORKERS_MAX)
		return refuse(why, -EINVAL, "at most %d CPUs", WORKERS_MAX);
	return 0;
}

static int set_kicker_cpu(struct options *o, const char *text, struct refusal *why)
{
	uint64_t cpu;

	if (strcmp(text, "auto") == 0)
		o->kicker_cpu = OPTION_KICKER_AUTO;
	else if (strcmp(text, "none") == 0)
		o->kicker_cpu = KICKER_NONE;
	else if (number_parse(text, 0, INT16_MAX, &cpu) == 0)
		o->kicker_cpu = (int)cpu;
	else
		return refuse(why, -EINVAL, "the number of a CPU, none or auto, not \"%s\"", text);
	return 0;
}

static int set_socket_mode(struct options *o, const char *text, struct refusal *why)
{
	mode_t mode = 0;

	for (const char *c = text; *c; c++) {
		if (*c < '0' || *c > '7' || mode > 0777)
			mode = 01000;
		else
			mode = mode * 8 + (mode_t)(*c - '0');
	}
	if (!*text || mode > 0777)
		return refuse(why, -EINVAL, "octal permission bits like 0660, not \"%s\"", text);
	o->socket_mode = mode;
	return 0;
}

static int set_socket_group(struct options *o, const char *text, struct refusal *why)
{
	const struct group *group = getgrnam(text);
	uint64_t gid;

	if (group)
		o->socket_group = group->gr_gid;
	else if (number_parse(text, 0, UINT32_MAX - 1, &gid) == 0)
		o->socket_group = (gid_t)gid;
	else
		return refuse(why, -EINVAL, "a group of this machine (getent group), not \"%s\"",
			      text);
	return 0;
}

static int set_fdb_size(struct options *o, const char *text, struct refusal *why)
{
	return set_number(&o->fdb_size, text, FDB_SIZE_MIN, FDB_SIZE_MAX, why);
}

static int set_ageing(struct options *o, const char *text, struct refusal *why)
{
	return set_number(&o->ageing, text, 1, AGEING_MAX, why);
}

static int set_umem_chunks(struct options *o, const char *text, struct refusal *why)
{
	const int error = set_number(&o->umem_chunks, text, UMEM_CHUNKS_MIN, UMEM_CHUNKS_MAX, why);

	if (!error && (o->umem_chunks & (o->umem_chunks - 1)))
		return refuse(why, -EINVAL, "a power of two, not \"%s\"", text);
	return error;
}

static int set_log_level(struct options *o, const char *text, struct refusal *why)
{
	enum log_level level;

	(void)o;
	if (log_level_parse(text, &level))
		return refuse(why, -EINVAL, "error, warn, info or debug, not \"%s\"", text);
	log_set_level(level);
	return 0;
}

/* ---- the table ---- */

/*      long name       letter  argument   setter            help */
#define OPTIONS(X)                                                                                 \
	X("run-dir", 0, "DIR", set_run_dir,                                                        \
	  "directory of the control socket and of relative socket\n"                               \
	  "paths; made if missing [" PROTOCOL_RUN_DIR "]")                                         \
	X("config", 'c', "FILE", set_config_file,                                                  \
	  "commands to carry out at start, written as for xvsctl;\n"                               \
	  "a wrong line stops the start before anything is done")                                  \
	X("check", 't', NULL, set_check_only, "check the options and FILE, then exit")             \
	X("worker-cpus", 0, "LIST", set_worker_cpus,                                               \
	  "CPUs of the workers, for example 2,3,10-13; each is\n"                                  \
	  "used fully, all the time [the last CPU]")                                               \
	X("kicker-cpu", 0, "CPU", set_kicker_cpu,                                                  \
	  "CPU of the thread that makes the AF_XDP system calls;\n"                                \
	  "none: the workers make them; auto: one that no worker\n"                                \
	  "uses, or none if there is no such CPU [auto]")                                          \
	X("socket-mode", 0, "OCTAL", set_socket_mode,                                              \
	  "permissions of the vhost-user sockets, whatever the\n"                                  \
	  "umask [0660]")                                                                          \
	X("socket-group", 0, "GROUP", set_socket_group,                                            \
	  "group of the vhost-user sockets, for example the one\n"                                 \
	  "that QEMU runs in [the daemon's]")                                                      \
	X("fdb-size", 0, "N", set_fdb_size,                                                        \
	  "addresses that can be learned, 64 to 1048576 [65536]")                                  \
	X("ageing", 0, "SECONDS", set_ageing, "until a silent address is forgotten [300]")         \
	X("umem-chunks", 0, "N", set_umem_chunks,                                                  \
	  "buffers of 2 KiB for AF_XDP, a power of two from 1024\n"                                \
	  "to 1048576; reserved with the first af-xdp port [32768]")                               \
	X("log-level", 0, "LEVEL", set_log_level, "error, warn, info or debug [info]")             \
	X("version", 'V', NULL, NULL, "print the version and exit")                                \
	X("help", 'h', NULL, NULL, "print this text and exit")

struct option_row {
	const char *name;
	char letter;
	const char *argument;
	setter_fn *set;
	const char *help;
};

static const struct option_row rows[] = {
#define X(name, letter, argument, set, help) {name, letter, argument, set, help},
    OPTIONS(X)
#undef X
};

#define OPTION_BASE 256 /* getopt value of row 0, above all letters */

static void print_help(void)
{
	puts("xvswitchd: a userspace switch for virtual machines (vhost-user) and network\n"
	     "devices (AF_XDP). Runs in the foreground and logs to standard error; SIGTERM or\n"
	     "SIGINT stops it. Use xvsctl to add ports and to look at them.\n"
	     "\n"
	     "usage: xvswitchd [OPTION]...\n");
	for (unsigned int i = 0; i < ARRAY_LEN(rows); i++) {
		const struct option_row *r = &rows[i];
		char name[64];

		snprintf(name, sizeof(name), "  %c%c%s--%s%s%s", r->letter ? '-' : ' ',
			 r->letter ? r->letter : ' ', r->letter ? ", " : "  ", r->name,
			 r->argument ? " " : "", r->argument ? r->argument : "");
		printf("%-*s ", HELP_COLUMN, name);
		for (const char *c = r->help; *c; c++) {
			putchar(*c);
			if (*c == '\n')
				printf("%*s", HELP_COLUMN + 1, "");
		}
		putchar('\n');
	}
}

static void fill_getopt(struct option *longs, char *shorts)
{
	*shorts++ = ':'; /* a missing argument is reported as ':' */
	for (unsigned int i = 0; i < ARRAY_LEN(rows); i++) {
		longs[i] = (struct option){
		    .name = rows[i].name,
		    .has_arg = rows[i].argument ? required_argument : no_argument,
		    .val = OPTION_BASE + (int)i,
		};
		if (!rows[i].letter)
			continue;
		*shorts++ = rows[i].letter;
		if (rows[i].argument)
			*shorts++ = ':';
	}
	*shorts = '\0';
}

static const struct option_row *row_of(int value)
{
	if (value >= OPTION_BASE)
		return &rows[value - OPTION_BASE];
	for (unsigned int i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].letter && rows[i].letter == value)
			return &rows[i];
	return NULL;
}

/* `reason` may be NULL. */
static enum options_verdict wrong(const char *what, const char *reason)
{
	char text[1024];

	fprintf(stderr, "xvswitchd: %s", text_escape(what, text, sizeof(text)));
	if (reason)
		fprintf(stderr, ": %s", reason);
	fprintf(stderr, "\nxvswitchd --help explains the options\n");
	return OPTIONS_WRONG;
}

static enum options_verdict apply(const struct option_row *row, struct options *out)
{
	struct refusal why, full;

	if (strcmp(row->name, "help") == 0) {
		print_help();
		return OPTIONS_DONE;
	}
	if (strcmp(row->name, "version") == 0) {
		puts("xvswitchd " XVS_VERSION);
		return OPTIONS_DONE;
	}
	if (row->set(out, optarg, &why) == 0)
		return OPTIONS_RUN;
	refuse(&full, 0, "--%s takes %.600s", row->name, why.text);
	return wrong(full.text, NULL);
}

static void set_defaults(struct options *out)
{
	*out = (struct options){
	    .run_dir = PROTOCOL_RUN_DIR,
	    .kicker_cpu = OPTION_KICKER_AUTO,
	    .socket_mode = SOCKET_MODE_DEFAULT,
	    .socket_group = UNIX_GROUP_NONE,
	    .fdb_size = FDB_SIZE_DEFAULT,
	    .ageing = FDB_AGEING_DEFAULT,
	    .umem_chunks = UMEM_CHUNKS_DEFAULT,
	};
}

enum options_verdict options_parse(int argc, char **argv, struct options *out)
{
	struct option longs[ARRAY_LEN(rows) + 1] = {{0}};
	char shorts[2 * ARRAY_LEN(rows) + 2];
	enum options_verdict verdict;
	int value;

	set_defaults(out);
	fill_getopt(longs, shorts);
	opterr = 0;
	optind = 0;
	while ((value = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		const struct option_row *row = row_of(value);

		if (value == ':')
			return wrong(argv[optind - 1], "this option needs a value");
		if (!row)
			return wrong(argv[optind - 1], "there is no such option");
		verdict = apply(row, out);
		if (verdict != OPTIONS_RUN)
			return verdict;
	}
	if (optind < argc)
		return wrong(argv[optind], "not an option: commands are for xvsctl, or go into "
					   "the file of -c");
	if (out->check_only && !out->config_file)
		return wrong("-t", "there is nothing to check without -c FILE");
	return OPTIONS_RUN;
}
