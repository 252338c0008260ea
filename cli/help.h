/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The manual that xvsctl prints.
 */
#ifndef XVS_CLI_HELP_H
#define XVS_CLI_HELP_H

#include <stdbool.h>

#include "control/protocol.h"

/* Usage, options, and all commands in short. */
void help_overview(void);

/* What the commands that begin with these words do. False: there is none. */
bool help_commands(const char *const word[], unsigned int n);

#endif
