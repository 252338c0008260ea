/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vhost-user, device side: one object joins a socket and a port. It owns the socket, serves one
 * front-end at a time, and calls the port (ports/vhost.h) for what the front-end asks for.
 *
 * Server: listens on the path. A second front-end while one is active is turned away with a log
 * line. Client: connects, and tries again about once a second for ever, without waiting.
 *
 * Everything happens in callbacks of the loop: the protocol, time limits, and the regular look
 * at broken rings (vhost_check_faults()). Control thread.
 */
#ifndef XVS_CONTROL_VHOST_USER_H
#define XVS_CONTROL_VHOST_USER_H

#include <stddef.h>
#include <sys/types.h>

#include "control/loop.h"
#include "control/unix_socket.h"
#include "ports/vhost.h"

struct vhost_user;

enum vhost_user_mode { VHOST_USER_SERVER, VHOST_USER_CLIENT };

/* "server" or "client", static: what vhost_port_create() wants as `mode`. */
const char *vhost_user_mode_name(enum vhost_user_mode mode);

struct vhost_user_config {
	struct loop *loop;
	struct vhost_port *port; /* outlives the vhost_user */
	const char *path;        /* absolute; copied */
	enum vhost_user_mode mode;
	mode_t socket_mode; /* server: permission bits of the socket file, exact */
	gid_t socket_group; /* server: its group, or UNIX_GROUP_NONE */
	/* for tests; 0 = the default in brackets */
	unsigned int message_timeout_ms; /* to complete a message that has begun [10000] */
	unsigned int retry_ms;           /* client: between attempts [1000] */
};

/*
 * Opens the socket and goes to work. On failure nothing is left behind and `why`
 * (UNIX_WHY_SIZE bytes) says what is wrong: errors as unix_listen(), or -ENOMEM. A client
 * whose front-end is not there yet is not a failure.
 */
int vhost_user_create(struct vhost_user **out, const struct vhost_user_config *config, char *why,
		      size_t why_size);

/*
 * Disconnects, resets the port (all rings stopped, memory unmapped) and removes the socket file.
 * Call before vswitch_del_port(). NULL is fine.
 */
void vhost_user_destroy(struct vhost_user *vu);

#endif
