/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A vhost-user connection as a state machine over a non-blocking socket.
 *
 * Reading: first the 12 bytes of the header, then as many bytes as it announces, whenever they
 * come. Reading exactly what belongs to a message keeps its descriptors apart from the next
 * one's. Descriptors are kept in `fds` until the message is complete; whatever the session leaves
 * there is closed, on every path. The kernel closes those that do not fit into the
 * control buffer and says so (MSG_CTRUNC), which ends the connection.
 *
 * Writing: an answer goes out at once if the socket takes it, else into a buffer of OUT_MAX
 * bytes that EPOLLOUT empties. A front-end that asks and asks without reading fills it and is cut
 * off.
 *
 * Time: a message that has begun must be complete within the limit, and so must a waiting answer
 * be taken. An idle connection costs nothing and may stay for ever.
 *
 * A callback handles at most LOOP_BUDGET messages. Control thread.
 *
 * The `closed` callback may destroy the connection, so that nothing is touched after it: each
 * step returns false once the connection is over.
 *
 * Rejected: reading into a large buffer and cutting messages out of it, which saves system calls
 * that happen a hundred times in a guest's life, and mixes up descriptors.
 */
#include "control/vhost_conn.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/vhost_session.h"

#define OUT_MAX 1024 /* bytes of answers that wait for the front-end */

struct vhost_conn {
	struct vhost_conn_config config;
	struct vhost_session session;
	int fd;
	struct loop_source *source;
	struct loop_source *timer;
	/* the message that is being received */
	struct vu_msg in;
	size_t have; /* bytes of it */
	struct vu_fds fds;
	/* answers that the socket did not take yet */
	uint8_t out[OUT_MAX];
	size_t out_len;
};

static void fds_close(struct vu_fds *fds)
{
	while (fds->count)
		close(fds->fd[--fds->count]);
}

/* Always false, for `return conn_over(...)`. `fault`: the front-end broke a rule. */
static bool conn_end(struct vhost_conn *c, bool fault, const char *reason)
{
	loop_remove(c->source);
	c->source = NULL;
	loop_timer_stop(c->timer);
	fds_close(&c->fds);
	c->config.closed(c->config.ctx, fault, reason);
	return false;
}

static bool conn_over(struct vhost_conn *c, const char *reason)
{
	return conn_end(c, true, reason);
}

static bool conn_hung_up(struct vhost_conn *c)
{
	if (c->have)
		return conn_over(c, "the front-end hung up in the middle of a message");
	return conn_end(c, false, "the front-end hung up");
}

/* ---- writing ---- */

static bool conn_flush(struct vhost_conn *c)
{
	const ssize_t n = send(c->fd, c->out, c->out_len, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return conn_over(c, "the front-end does not take answers any more");
	if (n > 0) {
		c->out_len -= (size_t)n;
		memmove(c->out, c->out + n, c->out_len);
	}
	loop_mod_fd(c->source, c->out_len ? EPOLLIN | EPOLLOUT : EPOLLIN);
	return true;
}

static bool conn_send(struct vhost_conn *c, const struct vu_msg *answer)
{
	const size_t size = sizeof(answer->header) + answer->header.size;

	if (size > OUT_MAX - c->out_len)
		return conn_over(c, "the front-end does not read its answers");
	memcpy(c->out + c->out_len, answer, size);
	c->out_len += size;
	return c->out_len > size || conn_flush(c);
}

/* ---- reading ---- */

/* Takes over the descriptors of one recvmsg(). False if there are more than a message may have. */
static bool fds_collect(struct vu_fds *fds, struct msghdr *msg)
{
	bool fits = !(msg->msg_flags & MSG_CTRUNC);

	for (struct cmsghdr *h = CMSG_FIRSTHDR(msg); h; h = CMSG_NXTHDR(msg, h)) {
		const size_t n = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(h) + i * sizeof(fd), sizeof(fd));
			if (fds->count < VU_FDS_MAX) {
				fds->fd[fds->count++] = fd;
			} else {
				close(fd);
				fits = false;
			}
		}
	}
	return fits;
}

static ssize_t conn_receive(struct vhost_conn *c, size_t want, bool *fds_fit)
{
	union {
		char bytes[CMSG_SPACE(VU_FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {.iov_base = (uint8_t *)&c->in + c->have, .iov_len = want - c->have};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.bytes,
			     .msg_controllen = sizeof(control.bytes)};
	const ssize_t n = recvmsg(c->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	*fds_fit = n < 0 || fds_collect(&c->fds, &msg);
	return n;
}

enum fill { FILL_OVER, FILL_WAIT, FILL_COMPLETE };

/* Bytes that the message has, as far as is known: the header first. */
static size_t conn_want(const struct vhost_conn *c)
{
	const size_t header = sizeof(c->in.header);

	return c->have < header ? header : header + c->in.header.size;
}

static bool conn_check_header(struct vhost_conn *c)
{
	char text[160];
	const char *why;

	if (vu_header_check(&c->in.header, &why) == 0)
		return true;
	snprintf(text, sizeof(text), "%s (request %u, %u bytes): %s",
		 vu_request_name(c->in.header.request), c->in.header.request, c->in.header.size,
		 why);
	return conn_over(c, text);
}

/* Reads until the message is complete, or nothing more is there. */
static enum fill conn_fill(struct vhost_conn *c)
{
	while (c->have < conn_want(c)) {
		bool fds_fit;
		const ssize_t n = conn_receive(c, conn_want(c), &fds_fit);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return FILL_WAIT;
		if (n < 0) {
			conn_over(c, strerror(errno));
			return FILL_OVER;
		}
		if (n == 0) {
			conn_hung_up(c);
			return FILL_OVER;
		}
		if (!fds_fit) {
			conn_over(c, "more file descriptors than a message may have");
			return FILL_OVER;
		}
		c->have += (size_t)n;
		if (c->have == sizeof(c->in.header) && !conn_check_header(c))
			return FILL_OVER;
	}
	return FILL_COMPLETE;
}

static bool conn_handle(struct vhost_conn *c)
{
	struct vu_msg answer;
	const enum session_result result =
	    vhost_session_handle(&c->session, &c->in, &c->fds, &answer);

	fds_close(&c->fds);
	c->have = 0;
	loop_timer_stop(c->timer);
	if (result == SESSION_REFUSED)
		return conn_over(c, c->session.why);
	return result == SESSION_DONE || conn_send(c, &answer);
}

static bool conn_read(struct vhost_conn *c)
{
	for (unsigned int i = 0; i < LOOP_BUDGET; i++) {
		const enum fill fill = conn_fill(c);

		if (fill == FILL_WAIT)
			return true;
		if (fill == FILL_OVER || !conn_handle(c))
			return false;
	}
	return true;
}

/* ---- events ---- */

static void conn_event(void *ctx, uint32_t events)
{
	struct vhost_conn *c = ctx;

	if ((events & EPOLLOUT) && c->out_len && !conn_flush(c))
		return;
	if ((events & ~(uint32_t)EPOLLOUT) && !conn_read(c))
		return;
	if (!c->have && !c->out_len)
		loop_timer_stop(c->timer);
	else if (!loop_timer_running(c->timer))
		loop_timer_set(c->timer, c->config.timeout_ms, 0);
}

static void conn_timeout(void *ctx)
{
	struct vhost_conn *c = ctx;

	conn_over(c, c->have ? "the rest of a message did not come in time"
			     : "the front-end did not take an answer in time");
}

int vhost_conn_create(struct vhost_conn **out, const struct vhost_conn_config *config, int fd)
{
	struct vhost_conn *c = calloc(1, sizeof(*c));
	int err = -ENOMEM;

	if (!c) {
		close(fd);
		return err;
	}
	c->config = *config;
	c->fd = fd;
	vhost_session_init(&c->session, config->port);
	err = loop_add_timer(config->loop, &c->timer, conn_timeout, c);
	if (!err)
		err = loop_add_fd(config->loop, &c->source, fd, EPOLLIN, conn_event, c);
	if (err) {
		vhost_conn_destroy(c);
		return err;
	}
	*out = c;
	return 0;
}

void vhost_conn_destroy(struct vhost_conn *c)
{
	if (!c)
		return;
	loop_remove(c->source);
	loop_remove(c->timer);
	fds_close(&c->fds);
	close(c->fd);
	free(c);
}

bool vhost_conn_is_dead(const struct vhost_conn *c)
{
	struct pollfd p = {.fd = c->fd};

	return poll(&p, 1, 0) == 1 && (p.revents & (POLLHUP | POLLERR));
}
