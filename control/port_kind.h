/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kinds of port as the operator sees them: what a "port add" line asks for, checked, and how to
 * make it. Rows of PORT_KINDS (protocol.h) name the kinds; each has one struct port_kind in a
 * file of its own (kind_*.c). Control thread.
 */
#ifndef XVS_CONTROL_PORT_KIND_H
#define XVS_CONTROL_PORT_KIND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "control/loop.h"
#include "control/protocol.h"
#include "control/unix_socket.h"
#include "control/vhost_user.h"
#include "ports/af_xdp.h"
#include "ports/kicker.h"
#include "ports/port.h"
#include "ports/umem.h"

enum port_kind_id {
#define X(kind, symbol, word, args, summary, details) KIND_##kind,
	PORT_KINDS(X)
#undef X
	    KIND_COUNT
};

#define KICKER_NONE (-1)

/* What ports share. The owner sets `config` and loop; kinds make the rest when first needed. */
struct port_resources {
	struct port_config {
		const char *run_dir;
		mode_t socket_mode; /* of guest sockets */
		gid_t socket_group; /* or UNIX_GROUP_NONE */
		uint32_t umem_chunks;
		int kicker_cpu; /* or KICKER_NONE */
	} config;
	struct loop *loop;
	struct umem *umem;
	struct kicker *kicker;
};

/* Destroys what the kinds have made. No port may be left. */
void port_resources_release(struct port_resources *res);

/* A "port add" line, checked and with defaults filled in. Plain data. */
struct port_request {
	enum port_kind_id kind;
	char name[PORT_NAME_MAX + 1];
	char where[UNIX_PATH_LEN_MAX + 1]; /* socket path in full, or device */
	unsigned int queues;               /* 0: the kind's default */
	enum vhost_user_mode vhost_mode;
	enum xdp_mode xdp_mode;
};

struct port_kind {
	const char *word;
	const char *place; /* what `where` is: "socket", "device" */

	/* Fills in where, queues and what is the kind's own. Has no effects. 0 or -EINVAL. */
	int (*parse)(const struct command_line *line, const char *run_dir, struct port_request *out,
		     struct refusal *why);
	/* Is it the same socket or device? */
	bool (*same_place)(const char *a, const char *b);

	/* Makes the port. 0 or a negative errno with the reason; then nothing is left. */
	int (*create)(struct port_resources *res, const struct port_request *req, struct port **out,
		      struct refusal *why);
	/*
	 * The port is part of the switch now: connects it to its outer side. *handle goes to
	 * close(). May be NULL, as may close().
	 */
	int (*open)(struct port_resources *res, const struct port_request *req, struct port *port,
		    void **handle, struct refusal *why);
	/* Before the port leaves the switch. */
	void (*close)(void *handle);
	/* Once a second, and when a network device of this name has changed. May be NULL. */
	void (*look)(struct port *port);
};

#define X(kind, symbol, word, args, summary, details)                                              \
	extern const struct port_kind port_kind_##symbol;
PORT_KINDS(X)
#undef X

const struct port_kind *port_kind_get(enum port_kind_id id);

/*
 * Turns a parsed "port add" line into a request. Has no effects. 0, or -EINVAL with the reason.
 */
int port_request_parse(const struct command_line *line, const char *run_dir,
		       struct port_request *out, struct refusal *why);

/* 0, or -EEXIST with the reason: the two cannot both exist. */
int port_request_conflict(const struct port_request *wanted, const struct port_request *existing,
			  struct refusal *why);

/* The "queues" argument within 1..PORT_QUEUES_MAX, or `fallback`. 0 or -EINVAL. */
int port_request_queues(const struct command_line *line, unsigned int fallback, unsigned int *out,
			struct refusal *why);

#endif
