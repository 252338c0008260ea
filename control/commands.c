/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Command handlers, one function per row of the command table, and the request format around
 * them. Runs on the control thread, between two callbacks of the loop, so that a handler sees
 * and leaves the switch at rest; none waits for anything but the workers' next round.
 *
 * A request is copied into words, parsed by the same grammar that xvsctl used, and carried out.
 * What xvsctl checked is checked again: anybody who may open the socket may write anything into
 * it. Errors go back as text for the operator, with what to do.
 *
 * To add a command: a row in COMMANDS (protocol.h) and a function run_<handler>() here; in xvsctl
 * a formatter, if it prints something.
 */
#include "control/commands.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/copy.h"
#include "base/log.h"
#include "control/show.h"

#define AREA "command"

typedef int command_fn(struct command_target *target, const struct command_line *line,
		       json_t **result, struct refusal *why);

/* ---- port, stats, worker ---- */

static int run_port_add(struct command_target *target, const struct command_line *line,
			json_t **result, struct refusal *why)
{
	struct port_request req;
	const int error = port_admin_add(target->ports, line, &req, why);

	if (error)
		return error;
	*result = json_object();
	json_object_set_new(*result, "name", json_string(req.name));
	json_object_set_new(*result, "type", json_string(port_kind_get(req.kind)->word));
	json_object_set_new(*result, "where", show_text(req.where));
	return 0;
}

static int run_port_del(struct command_target *target, const struct command_line *line,
			json_t **result, struct refusal *why)
{
	const int error = port_admin_del(target->ports, command_arg(line, "NAME"), why);

	if (!error)
		*result = json_object();
	return error;
}

/* The optional NAME. 0 with *out, NULL for all ports; or -ENOENT. */
static int find_optional(struct command_target *target, const struct command_line *line,
			 struct port **out, struct refusal *why)
{
	const char *name = command_arg(line, "NAME");

	*out = name ? port_admin_find(target->ports, name, why) : NULL;
	return name && !*out ? -ENOENT : 0;
}

static int run_port_show(struct command_target *target, const struct command_line *line,
			 json_t **result, struct refusal *why)
{
	struct port *port;
	const int error = find_optional(target, line, &port, why);

	if (!error)
		*result = show_ports(target->sw, port, show_port);
	return error;
}

static int run_stats(struct command_target *target, const struct command_line *line,
		     json_t **result, struct refusal *why)
{
	struct port *port;
	const int error = find_optional(target, line, &port, why);

	if (!error)
		*result = show_ports(target->sw, port, show_port_stats);
	return error;
}

static int run_worker_show(struct command_target *target, const struct command_line *line,
			   json_t **result, struct refusal *why)
{
	(void)line;
	(void)why;
	*result = show_workers(target->workers, target->sw, port_admin_kicker(target->ports));
	return 0;
}

/* ---- fdb ---- */

static uint64_t key_of(const struct command_line *line)
{
	struct mac mac = {{0}};

	mac_parse(command_arg(line, "MAC"), &mac); /* the grammar let only good ones pass */
	return fdb_key(mac_to_u64(&mac), 0);
}

static int run_fdb_show(struct command_target *target, const struct command_line *line,
			json_t **result, struct refusal *why)
{
	(void)line;
	(void)why;
	*result = show_fdb(target->sw);
	return 0;
}

static int run_fdb_stats(struct command_target *target, const struct command_line *line,
			 json_t **result, struct refusal *why)
{
	(void)line;
	(void)why;
	*result = show_fdb_stats(target->sw);
	return 0;
}

static int run_fdb_add(struct command_target *target, const struct command_line *line,
		       json_t **result, struct refusal *why)
{
	const struct port *port = port_admin_find(target->ports, command_arg(line, "NAME"), why);
	int error;

	if (!port)
		return -ENOENT;
	error = fdb_add_static(vswitch_fdb(target->sw), key_of(line), port->id);
	if (error == -ENOSPC)
		return refuse(why, error,
			      "the table's place for %s is full of pinned addresses: remove some "
			      "with \"fdb del\", or start xvswitchd with a larger --fdb-size",
			      command_arg(line, "MAC"));
	if (error)
		return refuse(why, error, "cannot add %s: %s", command_arg(line, "MAC"),
			      strerror(-error));
	*result = json_object();
	return 0;
}

static int run_fdb_del(struct command_target *target, const struct command_line *line,
		       json_t **result, struct refusal *why)
{
	const int error = fdb_del(vswitch_fdb(target->sw), key_of(line));

	if (error)
		return refuse(why, error, "%s is not known: \"fdb show\" lists the addresses",
			      command_arg(line, "MAC"));
	*result = json_object();
	return 0;
}

static int run_fdb_flush(struct command_target *target, const struct command_line *line,
			 json_t **result, struct refusal *why)
{
	struct port *port;
	const int error = find_optional(target, line, &port, why);
	unsigned int removed;

	if (error)
		return error;
	removed = fdb_flush(vswitch_fdb(target->sw), port ? port->id : PORT_ID_NONE, false);
	*result = json_object();
	json_object_set_new(*result, "removed", json_integer(removed));
	return 0;
}

/* ---- the rest ---- */

static int run_log_level(struct command_target *target, const struct command_line *line,
			 json_t **result, struct refusal *why)
{
	enum log_level level;

	(void)target;
	if (log_level_parse(command_arg(line, "LEVEL"), &level))
		return refuse(why, -EINVAL, "unknown log level");
	log_set_level(level);
	*result = json_object();
	json_object_set_new(*result, "level", json_string(log_level_name(level)));
	return 0;
}

static int run_version(struct command_target *target, const struct command_line *line,
		       json_t **result, struct refusal *why)
{
	(void)target;
	(void)line;
	(void)why;
	*result = json_object();
	json_object_set_new(*result, "version", json_string(XVS_VERSION));
	json_object_set_new(*result, "protocol", json_integer(PROTOCOL_VERSION));
	json_object_set_new(*result, "pid", json_integer(getpid()));
	json_object_set_new(*result, "copy", json_string(copy_routine()));
	return 0;
}

static int run_help(struct command_target *target, const struct command_line *line, json_t **result,
		    struct refusal *why)
{
	(void)target;
	(void)line;
	(void)result;
	return refuse(why, -EOPNOTSUPP, "xvsctl answers this without the daemon");
}

static command_fn *const handlers[CMD_COUNT] = {
#define X(kind, symbol, word, args, summary, details) [CMD_PORT_ADD_##kind] = run_port_add,
    PORT_KINDS(X)
#undef X
#define X(id, handler, effect, pattern, summary, details) [CMD_##id] = run_##handler,
	COMMANDS(X)
#undef X
};

int command_run(struct command_target *target, const struct command_line *line, json_t **result,
		struct refusal *why)
{
	const struct command *command = line->command;
	int error;

	*result = NULL;
	error = handlers[command->id](target, line, result, why);
	if (!error && !*result)
		error = refuse(why, -ENOMEM, "out of memory");
	return error;
}

/* ---- requests ---- */

/* Words of the request, borrowed from it. 0 or -EINVAL. */
static int request_words(const json_t *root, const char *word[COMMAND_WORDS_MAX], unsigned int *n,
			 struct refusal *why)
{
	const json_t *words = json_object_get(json_object_get(root, "params"), "words");

	if (!json_is_array(words) || json_array_size(words) > COMMAND_WORDS_MAX)
		return refuse(why, -EINVAL, "params.words must be an array of at most %u strings",
			      COMMAND_WORDS_MAX);
	*n = (unsigned int)json_array_size(words);
	for (unsigned int i = 0; i < *n; i++) {
		word[i] = json_string_value(json_array_get(words, i));
		if (!word[i])
			return refuse(why, -EINVAL, "params.words must hold strings only");
	}
	return 0;
}

static int check_envelope(const json_t *root, struct refusal *why)
{
	const json_t *version = json_object_get(root, "xvswitch");
	const char *method = json_string_value(json_object_get(root, "method"));

	if (!json_is_object(root))
		return refuse(why, -EBADMSG, "a request is a JSON object");
	if (!json_is_integer(version) || json_integer_value(version) != PROTOCOL_VERSION)
		return refuse(
		    why, -EPROTO,
		    "this daemon (%s) speaks version %d of the protocol, \"xvswitch\":%d: "
		    "use the xvsctl that was installed with it",
		    XVS_VERSION, PROTOCOL_VERSION, PROTOCOL_VERSION);
	if (!method || strcmp(method, "command") != 0)
		return refuse(why, -EOPNOTSUPP, "unknown method: \"command\" is the only one");
	return 0;
}

static int answer_request(struct command_target *target, const json_t *root, json_t **result,
			  struct refusal *why)
{
	const char *word[COMMAND_WORDS_MAX];
	struct command_line line;
	unsigned int n = 0;
	int error = check_envelope(root, why);

	if (!error)
		error = request_words(root, word, &n, why);
	if (!error)
		error = command_parse(word, n, &line, why);
	if (!error)
		error = command_run(target, &line, result, why);
	return error;
}

static json_t *error_object(int error, const struct refusal *why)
{
	json_t *object = json_object();

	json_object_set_new(object, "code", json_integer(error));
	json_object_set_new(object, "message", show_text(why->text));
	return object;
}

/* The line with its newline, in memory of its own; takes `reply`. */
static char *dump_line(json_t *reply, size_t *len)
{
	char *text = json_dumps(reply, JSON_COMPACT), *line;

	json_decref(reply);
	if (!text)
		return NULL;
	*len = strlen(text) + 1;
	line = realloc(text, *len + 1);
	if (!line) {
		free(text);
		return NULL;
	}
	memcpy(line + *len - 1, "\n", 2);
	return line;
}

/* *root stays the caller's also on failure; NULL then. */
static int parse_request(const char *line, size_t len, json_t **root, struct refusal *why)
{
	json_error_t detail;

	*root = NULL;
	if (!line)
		return refuse(why, -EMSGSIZE, "a request has at most %u bytes",
			      PROTOCOL_REQUEST_MAX);
	*root = json_loadb(line, len, JSON_REJECT_DUPLICATES, &detail);
	if (!*root)
		return refuse(why, -EBADMSG, "not a JSON object: %.100s (column %d)", detail.text,
			      detail.column);
	return 0;
}

char *command_answer(void *ctx, char *line, size_t len, size_t *reply_len)
{
	json_t *root, *id, *reply = json_object(), *result = NULL;
	struct refusal why = {.text = ""};
	int error = parse_request(line, len, &root, &why);

	if (!error)
		error = answer_request(ctx, root, &result, &why);
	id = json_object_get(root, "id");
	json_object_set_new(reply, "xvswitch", json_integer(PROTOCOL_VERSION));
	if (id)
		json_object_set(reply, "id", id);
	else
		json_object_set_new(reply, "id", json_null());
	if (error) {
		json_object_set_new(reply, "error", error_object(error, &why));
		log_debug(AREA, "refused: %s", why.text);
	} else {
		json_object_set_new(reply, "result", result);
	}
	json_decref(root);
	return dump_line(reply, reply_len);
}
