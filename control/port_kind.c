/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of kinds, and what is the same for all of them when a "port add" line is read.
 *
 * A request is made from a line without touching anything, so that a whole configuration file
 * can be checked before the first port exists, and `xvswitchd -t` needs no privileges. Whether
 * two requests can both exist is a question to the pair, asked each time anew: a socket's
 * directory may become a symbolic link after the first port was added, so that an identity
 * computed once would be worth nothing later.
 */
#include "control/port_kind.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct port_kind *const kinds[KIND_COUNT] = {
#define X(kind, symbol, word, args, summary, details) [KIND_##kind] = &port_kind_##symbol,
    PORT_KINDS(X)
#undef X
};

static const enum command_id kind_command[KIND_COUNT] = {
#define X(kind, symbol, word, args, summary, details) [KIND_##kind] = CMD_PORT_ADD_##kind,
    PORT_KINDS(X)
#undef X
};

const struct port_kind *port_kind_get(enum port_kind_id id)
{
	return kinds[id];
}

void port_resources_release(struct port_resources *res)
{
	kicker_destroy(res->kicker);
	res->kicker = NULL;
	umem_destroy(res->umem);
	res->umem = NULL;
}

static int kind_of_command(enum command_id id, enum port_kind_id *out)
{
	for (unsigned int i = 0; i < KIND_COUNT; i++) {
		if (kind_command[i] == id) {
			*out = (enum port_kind_id)i;
			return 0;
		}
	}
	return -EINVAL;
}

int port_request_queues(const struct command_line *line, unsigned int fallback, unsigned int *out,
			struct refusal *why)
{
	const uint64_t n = command_number(line, "queues", fallback);

	if (command_arg(line, "queues") && (n < 1 || n > PORT_QUEUES_MAX))
		return refuse(why, -EINVAL, "queues %s: a port has 1 to %u queue pairs",
			      command_arg(line, "queues"), PORT_QUEUES_MAX);
	*out = (unsigned int)n;
	return 0;
}

int port_request_parse(const struct command_line *line, const char *run_dir,
		       struct port_request *out, struct refusal *why)
{
	struct port_request req = {.queues = 0};
	const char *name = command_arg(line, "NAME");
	int error;

	if (kind_of_command(line->command->id, &req.kind))
		return refuse(why, -EINVAL, "not a \"port add\" command");
	if (!name || !port_name_valid(name))
		return refuse(
		    why, -EINVAL,
		    "port name \"%.100s\": use 1 to %u letters, digits, '.', '_' and '-', "
		    "not beginning with '.' or '-'",
		    name ? name : "", PORT_NAME_MAX);
	snprintf(req.name, sizeof(req.name), "%s", name);
	error = kinds[req.kind]->parse(line, run_dir, &req, why);
	if (error)
		return error;
	*out = req;
	return 0;
}

int port_request_conflict(const struct port_request *wanted, const struct port_request *existing,
			  struct refusal *why)
{
	const struct port_kind *kind = kinds[wanted->kind];

	if (strcmp(wanted->name, existing->name) == 0)
		return refuse(why, -EEXIST,
			      "port \"%s\" exists already: choose another name, or remove it with "
			      "\"port del %s\"",
			      wanted->name, wanted->name);
	if (kind->place != kinds[existing->kind]->place ||
	    !kind->same_place(wanted->where, existing->where))
		return 0;
	return refuse(why, -EEXIST, "%s %s is in use by port \"%s\"", kind->place, wanted->where,
		      existing->name);
}
