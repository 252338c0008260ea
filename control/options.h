/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Command line of xvswitchd.
 */
#ifndef XVS_CONTROL_OPTIONS_H
#define XVS_CONTROL_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cpu.h"
#include "control/unix_socket.h"

#define OPTION_KICKER_AUTO (-2) /* else a CPU or KICKER_NONE */

struct options {
	char run_dir[UNIX_PATH_LEN_MAX + 1]; /* absolute */
	const char *config_file;             /* or NULL */
	bool check_only;
	struct cpu_list worker_cpus; /* empty: the last allowed CPU */
	int kicker_cpu;
	mode_t socket_mode;
	gid_t socket_group; /* or UNIX_GROUP_NONE */
	uint32_t fdb_size;
	uint32_t ageing; /* seconds */
	uint32_t umem_chunks;
};

enum options_verdict {
	OPTIONS_RUN,   /* go on with *out */
	OPTIONS_DONE,  /* help or version was printed: exit 0 */
	OPTIONS_WRONG, /* the reason was printed: exit 2 */
};

/* Reads argv into *out; sets the log level at once. Prints what the verdict says. */
enum options_verdict options_parse(int argc, char **argv, struct options *out);

#endif
