/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers as text for people, on standard output.
 */
#ifndef XVS_CLI_FORMAT_H
#define XVS_CLI_FORMAT_H

#include <jansson.h>

#include "control/protocol.h"

/* Prints the result of a command; nothing if the command has nothing to say. */
void format_result(enum command_id id, const json_t *result);

#endif
