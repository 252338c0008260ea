/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon's life: start, run, stop.
 */
#ifndef XVS_CONTROL_DAEMON_H
#define XVS_CONTROL_DAEMON_H

#include "control/config.h"
#include "control/options.h"

/*
 * Runs until a signal asks it to stop. `config` may be NULL. 0 after a clean stop, or a negative
 * errno with the reason.
 */
int daemon_run(const struct options *options, const struct config *config, struct refusal *why);

/* Whether the options suit this machine. Starts nothing. 0 or a negative errno with the reason. */
int daemon_check(const struct options *options, struct refusal *why);

#endif
