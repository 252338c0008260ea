/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One connection to a vhost-user front-end: bytes and descriptors in, messages to the session,
 * answers out. Never blocks, however slowly or oddly the other side writes and reads.
 */
#ifndef XVS_CONTROL_VHOST_CONN_H
#define XVS_CONTROL_VHOST_CONN_H

#include <stdbool.h>

#include "control/loop.h"
#include "ports/vhost.h"

struct vhost_conn;

/*
 * The connection is over and does nothing more; the owner calls vhost_conn_destroy(), which it
 * may do from within. `fault`: the front-end broke a rule, it did not just hang up. `reason` is
 * valid during the call.
 */
typedef void vhost_conn_closed_fn(void *ctx, bool fault, const char *reason);

struct vhost_conn_config {
	struct loop *loop;
	struct vhost_port *port;
	unsigned int timeout_ms; /* to complete a message, or to take an answer */
	vhost_conn_closed_fn *closed;
	void *ctx;
};

/* Takes the connected, non-blocking socket `fd` over, also on failure. 0 or a negative errno. */
int vhost_conn_create(struct vhost_conn **out, const struct vhost_conn_config *config, int fd);

/* Closes everything, without calling `closed`. NULL is fine. */
void vhost_conn_destroy(struct vhost_conn *c);

/* The front-end hung up, even if the loop has not told us yet. */
bool vhost_conn_is_dead(const struct vhost_conn *c);

#endif
