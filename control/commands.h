/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Carrying out commands, and answering requests of the control socket. Control thread.
 */
#ifndef XVS_CONTROL_COMMANDS_H
#define XVS_CONTROL_COMMANDS_H

#include <jansson.h>

#include "control/port_admin.h"
#include "control/protocol.h"
#include "control/workers.h"

/* What commands work on. */
struct command_target {
	struct vswitch *sw;
	struct port_admin *ports;
	const struct workers *workers;
};

/* Carries the command out. 0 with *result, or a negative errno with the reason. */
int command_run(struct command_target *target, const struct command_line *line, json_t **result,
		struct refusal *why);

/*
 * Answers a request line (protocol.h). ctx: struct command_target. The type is
 * server_handler_fn.
 */
char *command_answer(void *ctx, char *line, size_t len, size_t *reply_len);

#endif
