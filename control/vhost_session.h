/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One vhost-user session: what complete messages mean. No I/O: takes a message with its
 * descriptors, calls the port, gives the answer. Control thread.
 */
#ifndef XVS_CONTROL_VHOST_SESSION_H
#define XVS_CONTROL_VHOST_SESSION_H

#include <stdint.h>

#include "control/vhost_user_msg.h"
#include "ports/vhost.h"

struct vhost_session {
	struct vhost_port *port;
	uint64_t protocol_features; /* negotiated */
	char why[240];              /* of the last refusal, names the request */
};

enum session_result {
	SESSION_DONE,   /* nothing to send */
	SESSION_ANSWER, /* *answer is to be sent; also for a refusal that can be told */
	SESSION_REFUSED /* cannot be told: the connection has to go; s->why says why */
};

void vhost_session_init(struct vhost_session *s, struct vhost_port *port);

/*
 * Handles a message whose header passed vu_header_check() and whose payload is complete.
 * Descriptors that the port takes are removed from *fds; the rest stays the caller's.
 */
enum session_result vhost_session_handle(struct vhost_session *s, const struct vu_msg *m,
					 struct vu_fds *fds, struct vu_msg *answer);

#endif
