/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The socket of a vhost-user port: who is connected, and who may be next.
 *
 * Server. One front-end at a time. When a second one connects while the first is there, it is
 * accepted and closed, so that its user sees a failure instead of a guest that hangs in its start,
 * and the log names the port. The exception is a first one that has hung up already: a
 * restarted guest can be quicker than the report of its predecessor's end, and takes over.
 *
 * When descriptors run out (EMFILE), the listener is left alone for a moment, since it would be
 * reported ready again at once and for ever.
 *
 * Client. Connecting to a Unix socket either works at once or fails at once, so there is no
 * state in between; after a failure, and after each end of a connection, a timer tries again.
 * Attempts are logged when the reason changes, not each time.
 *
 * Whoever connects gets a fresh session; when it ends the port is reset: rings stopped, memory
 * unmapped, descriptors closed. While it lasts, a timer looks for rings that broke.
 *
 * Control thread. Owns listener, connection, timers; borrows the port.
 */
#include "control/vhost_user.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/vhost_conn.h"

#define AREA               "vhost-user"
#define MESSAGE_TIMEOUT_MS 10000
#define RETRY_MS           1000
#define FAULT_CHECK_MS     100

struct vhost_user {
	/* set at create */
	struct loop *loop;
	struct vhost_port *port;
	enum vhost_user_mode mode;
	unsigned int timeout_ms;
	unsigned int retry_ms;
	char path[UNIX_PATH_LEN_MAX + 1];
	/* changing */
	struct unix_listener listener; /* server */
	struct loop_source *accept;    /* server */
	struct loop_source *retry;     /* client: connect; server: accept again */
	struct loop_source *fault_check;
	struct vhost_conn *conn; /* NULL: nobody is connected */
	int last_error;          /* client: of the last attempt that was logged */
};

static const char *const mode_names[] = {
    [VHOST_USER_SERVER] = "server",
    [VHOST_USER_CLIENT] = "client",
};

const char *vhost_user_mode_name(enum vhost_user_mode mode)
{
	return mode_names[mode];
}

static const char *port_name(const struct vhost_user *vu)
{
	return vhost_to_port(vu->port)->name;
}

/* ---- connection ---- */

static void check_faults(void *ctx)
{
	struct vhost_user *vu = ctx;
	const char *found = vhost_check_faults(vu->port, clock_ns());

	if (found)
		log_limited(LOG_LEVEL_WARN, AREA, "port %s: %s", port_name(vu), found);
}

/* What `port show` says while a client waits for its front-end. */
static void set_waiting_reason(struct vhost_user *vu)
{
	char text[160];

	if (vu->mode != VHOST_USER_CLIENT)
		return;
	snprintf(text, sizeof(text), "no front-end listens on %.90s; trying again each second",
		 vu->path);
	vhost_set_reason(vu->port, text);
}

static void detach(struct vhost_user *vu)
{
	if (!vu->conn)
		return;
	vhost_conn_destroy(vu->conn);
	vu->conn = NULL;
	loop_timer_stop(vu->fault_check);
	vhost_reset(vu->port);
	set_waiting_reason(vu);
	if (vu->mode == VHOST_USER_CLIENT)
		loop_timer_set(vu->retry, vu->retry_ms, 0);
}

static void conn_closed(void *ctx, bool fault, const char *reason)
{
	struct vhost_user *vu = ctx;

	log_limited(fault ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, AREA, "port %s: connection closed: %s",
		    port_name(vu), reason);
	detach(vu);
}

static int attach(struct vhost_user *vu, int fd)
{
	const struct vhost_conn_config config = {.loop = vu->loop,
						 .port = vu->port,
						 .timeout_ms = vu->timeout_ms,
						 .closed = conn_closed,
						 .ctx = vu};
	const int err = vhost_conn_create(&vu->conn, &config, fd);

	if (err)
		return err;
	vhost_connected(vu->port);
	loop_timer_set(vu->fault_check, FAULT_CHECK_MS, FAULT_CHECK_MS);
	log_limited(LOG_LEVEL_INFO, AREA, "port %s: front-end connected", port_name(vu));
	return 0;
}

/* ---- server ---- */

static void admit(struct vhost_user *vu, int fd)
{
	int err;

	if (vu->conn && vhost_conn_is_dead(vu->conn))
		conn_closed(vu, false, "the front-end hung up");
	if (vu->conn) {
		log_limited(LOG_LEVEL_WARN, AREA,
			    "port %s: turned away a second front-end on %s; one is connected",
			    port_name(vu), vu->path);
		close(fd);
		return;
	}
	err = attach(vu, fd);
	if (err)
		log_limited(LOG_LEVEL_ERROR, AREA, "port %s: cannot serve a front-end: %s",
			    port_name(vu), strerror(-err));
}

static void accept_event(void *ctx, uint32_t events)
{
	struct vhost_user *vu = ctx;

	(void)events;
	for (unsigned int i = 0; i < LOOP_BUDGET; i++) {
		const int fd = accept4(vu->listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			admit(vu, fd);
			continue;
		}
		if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
			return;
		log_limited(LOG_LEVEL_ERROR, AREA, "port %s: cannot accept on %s: %s",
			    port_name(vu), vu->path, strerror(errno));
		loop_mod_fd(vu->accept, 0);
		loop_timer_set(vu->retry, vu->retry_ms, 0);
		return;
	}
}

static int server_open(struct vhost_user *vu, const struct vhost_user_config *config, char *why,
		       size_t why_size)
{
	int err = unix_listen(&vu->listener, vu->path, config->socket_mode, config->socket_group,
			      why, why_size);

	if (!err) {
		err =
		    loop_add_fd(vu->loop, &vu->accept, vu->listener.fd, EPOLLIN, accept_event, vu);
		if (err)
			snprintf(why, why_size, "%s: %s", vu->path, strerror(-err));
	}
	return err;
}

/* ---- client ---- */

static void client_connect(struct vhost_user *vu)
{
	const int fd = unix_connect(vu->path);
	const int err = fd < 0 ? fd : attach(vu, fd);

	if (err && err != vu->last_error)
		log_limited(LOG_LEVEL_INFO, AREA,
			    "port %s: cannot connect to %s: %s; trying again each second",
			    port_name(vu), vu->path, strerror(-err));
	vu->last_error = err;
	if (err)
		loop_timer_set(vu->retry, vu->retry_ms, 0);
}

static void retry_event(void *ctx)
{
	struct vhost_user *vu = ctx;

	if (vu->mode == VHOST_USER_CLIENT)
		client_connect(vu);
	else
		loop_mod_fd(vu->accept, EPOLLIN);
}

/* ---- life cycle ---- */

static int vhost_user_open(struct vhost_user *vu, const struct vhost_user_config *config, char *why,
			   size_t why_size)
{
	int err = loop_add_timer(vu->loop, &vu->retry, retry_event, vu);

	if (!err)
		err = loop_add_timer(vu->loop, &vu->fault_check, check_faults, vu);
	if (err) {
		snprintf(why, why_size, "%s: %s", vu->path, strerror(-err));
		return err;
	}
	if (vu->mode == VHOST_USER_SERVER)
		return server_open(vu, config, why, why_size);
	set_waiting_reason(vu);
	client_connect(vu);
	return 0;
}

int vhost_user_create(struct vhost_user **out, const struct vhost_user_config *config, char *why,
		      size_t why_size)
{
	struct vhost_user *vu;
	int err = unix_path_check(config->path, why, why_size);

	if (err)
		return err;
	vu = calloc(1, sizeof(*vu));
	if (!vu) {
		snprintf(why, why_size, "%s: %s", config->path, strerror(ENOMEM));
		return -ENOMEM;
	}
	vu->loop = config->loop;
	vu->port = config->port;
	vu->mode = config->mode;
	vu->timeout_ms =
	    config->message_timeout_ms ? config->message_timeout_ms : MESSAGE_TIMEOUT_MS;
	vu->retry_ms = config->retry_ms ? config->retry_ms : RETRY_MS;
	vu->listener.fd = -1;
	memcpy(vu->path, config->path, strlen(config->path) + 1);
	err = vhost_user_open(vu, config, why, why_size);
	if (err) {
		vhost_user_destroy(vu);
		return err;
	}
	*out = vu;
	return 0;
}

void vhost_user_destroy(struct vhost_user *vu)
{
	if (!vu)
		return;
	detach(vu);
	loop_remove(vu->accept);
	loop_remove(vu->retry);
	loop_remove(vu->fault_check);
	unix_unlisten(&vu->listener);
	free(vu);
}
