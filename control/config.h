/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Configuration file: command lines as xvsctl takes them, one per line. '#' at the beginning of
 * a word starts a comment. Words with blanks in them stand between double or single quotes.
 * Only commands that change the switch may appear.
 *
 * Reasons of refusal begin with "FILE:LINE: ". Control thread.
 */
#ifndef XVS_CONTROL_CONFIG_H
#define XVS_CONTROL_CONFIG_H

#include "control/protocol.h"

#define CONFIG_FILE_MAX (1u << 20) /* bytes */

struct config;

/*
 * Reads the whole file and checks the form of each line. 0 or a negative errno with the reason;
 * -EINVAL for a wrong line.
 */
int config_load(struct config **out, const char *file, struct refusal *why);
void config_destroy(struct config *config); /* NULL is fine */

/* Commands in the file. */
unsigned int config_count(const struct config *config);

/*
 * Calls fn for each command in order, until one fails: returns its error, with the place put
 * before its reason.
 */
int config_for_each(const struct config *config,
		    int (*fn)(void *ctx, const struct command_line *line, struct refusal *why),
		    void *ctx, struct refusal *why);

/*
 * Checks, without any effect, that the commands can be carried out one after the other from an
 * empty switch: names, numbers, duplicates, references to ports.
 */
int config_check(const struct config *config, const char *run_dir, struct refusal *why);

#endif
