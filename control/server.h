/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A server of lines on a Unix socket: each line a client sends is given to a handler, whose
 * answer is sent back. Knows nothing about what the lines mean.
 *
 * Control thread; everything happens in callbacks of the loop and nothing waits for a client.
 */
#ifndef XVS_CONTROL_SERVER_H
#define XVS_CONTROL_SERVER_H

#include <stddef.h>
#include <sys/types.h>

#include "control/loop.h"

struct server;

/*
 * Answers one line (terminated, without its newline; NULL: the client's line was longer than
 * PROTOCOL_REQUEST_MAX). Returns the answer as malloc()ed text of *reply_len bytes that ends in a
 * newline, or NULL to close the connection. May change the line.
 */
typedef char *server_handler_fn(void *ctx, char *line, size_t len, size_t *reply_len);

struct server_config {
	struct loop *loop;
	const char *path; /* absolute */
	mode_t mode;      /* permission bits of the socket file */
	gid_t group;      /* or UNIX_GROUP_NONE */
	server_handler_fn *handler;
	void *ctx;
	unsigned int stall_ms; /* a reader that takes nothing for so long is cut off; 0 = 10000 */
};

/* Errors as unix_listen(), with the reason in why (UNIX_WHY_SIZE bytes); -ENOMEM. */
int server_create(struct server **out, const struct server_config *config, char *why,
		  size_t why_size);

/* Closes all connections and removes the socket file. NULL is fine. */
void server_destroy(struct server *s);

/* Open connections. */
unsigned int server_connections(const struct server *s);

#endif
