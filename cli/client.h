/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One request to the daemon and its answer.
 */
#ifndef XVS_CLI_CLIENT_H
#define XVS_CLI_CLIENT_H

#include <jansson.h>

#include "control/protocol.h"

/*
 * Sends the words as a command and waits for the answer, at most 10 seconds for each piece of
 * it. 0 with *result, or a negative errno with the reason: the daemon's own, or why it cannot be
 * reached.
 */
int client_command(const char *run_dir, const char *const word[], unsigned int n, json_t **result,
		   struct refusal *why);

#endif
