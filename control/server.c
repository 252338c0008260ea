/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Serving lines to many clients from one thread.
 *
 * A connection is in one of three moods, and its epoll interest says which:
 *     reading   EPOLLIN   no complete line is buffered
 *     turn      EPOLLOUT  complete lines are buffered, but others have their turn first
 *     replying  EPOLLOUT  an answer has not been taken completely; nothing is read or handled
 * so that one client can never have more than one answer and one line's worth of input with us.
 *
 * When full. A line above PROTOCOL_REQUEST_MAX is answered by the handler's "too long" and
 * skipped to its end; the connection goes on. A client that does not read its answer for
 * stall_ms is cut off, and so is one whose answer would bring all waiting answers together above
 * REPLIES_MAX. When all connections are taken, a newcomer replaces the one that was silent
 * longest (clients that connect and say nothing must not lock the operator out); only when all
 * are replying is the newcomer turned away. When descriptors run out, the listening socket rests
 * for a second instead of making the loop spin.
 *
 * A silent client costs its descriptor and one small struct: buffers exist only while they hold
 * something.
 *
 * Rejected: a thread per client (the handlers belong to the control thread); closing after each
 * answer (scripts that poll counters keep their connection).
 */
#include "control/server.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "control/protocol.h"
#include "control/unix_socket.h"

#define AREA          "server"
#define INPUT_FIRST   4096u
#define REPLIES_MAX   (UINT64_C(128) << 20)
#define STALL_MS      10000u
#define ACCEPT_REST   1000u /* ms */
#define ACCEPT_BUDGET 16

struct connection {
	struct server *server;
	struct connection *next;
	struct loop_source *source;
	struct loop_source *stall;
	int fd;
	uint64_t last_line; /* server.lines when it last was connected or said something */
	char *in;           /* in_len of in_size bytes used; NULL while empty */
	size_t in_len;
	size_t in_size;
	bool skipping; /* dropping the rest of a line that was too long */
	char *out;     /* NULL: nothing to send */
	size_t out_len;
	size_t out_pos;
};

struct server {
	struct server_config config;
	struct unix_listener listener;
	struct loop_source *source;
	struct loop_source *rest;
	struct connection *connections;
	unsigned int nconnections;
	uint64_t lines;   /* a clock that ticks with each line and connection */
	uint64_t replies; /* bytes of all answers not yet taken */
};

/* ---- one connection ---- */

static void connection_close(struct connection *c)
{
	struct server *s = c->server;
	struct connection **link = &s->connections;

	while (*link != c)
		link = &(*link)->next;
	*link = c->next;
	s->nconnections--;
	s->replies -= c->out_len;
	loop_remove(c->source);
	loop_remove(c->stall);
	close(c->fd);
	free(c->in);
	free(c->out);
	free(c);
}

static void on_stall(void *ctx)
{
	log_limited(LOG_LEVEL_WARN, AREA, "a client does not read its answer: cut off");
	connection_close(ctx);
}

/* Sends what the socket takes. False: the connection is gone. */
static bool send_reply(struct connection *c)
{
	while (c->out) {
		const ssize_t n = send(c->fd, c->out + c->out_pos, c->out_len - c->out_pos,
				       MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return true;
		if (n < 0)
			return false;
		c->out_pos += (size_t)n;
		loop_timer_stop(c->stall);
		if (c->out_pos < c->out_len)
			continue;
		free(c->out);
		c->server->replies -= c->out_len;
		c->out = NULL;
		c->out_len = 0;
	}
	return true;
}

/* Lets the handler answer the line (NULL: too long). False: close the connection. */
static bool answer_line(struct connection *c, char *line, size_t len)
{
	struct server *s = c->server;

	c->last_line = ++s->lines;
	c->out_pos = 0;
	c->out = s->config.handler(s->config.ctx, line, len, &c->out_len);
	if (!c->out) {
		c->out_len = 0;
		return false;
	}
	s->replies += c->out_len;
	if (s->replies > REPLIES_MAX) {
		log_limited(LOG_LEVEL_WARN, AREA, "too many unread answers: a client is cut off");
		return false;
	}
	return send_reply(c);
}

static void drop_input(struct connection *c, size_t n)
{
	c->in_len -= n;
	memmove(c->in, c->in + n, c->in_len);
	if (c->in_len)
		return;
	free(c->in);
	c->in = NULL;
	c->in_size = 0;
}

static char *line_end(const struct connection *c)
{
	return c->in_len ? memchr(c->in, '\n', c->in_len) : NULL;
}

/* Deals with the buffered line that ends at `end`. False: close the connection. */
static bool take_line(struct connection *c, char *end)
{
	const size_t len = (size_t)(end - c->in);
	bool open = true;

	*end = '\0';
	if (c->skipping)
		c->skipping = false;
	else
		open = answer_line(c, c->in, len);
	drop_input(c, len + 1);
	return open;
}

/* No line end in the buffer and no room for more. False: close the connection. */
static bool overflow(struct connection *c)
{
	const bool first = !c->skipping;

	c->skipping = true;
	drop_input(c, c->in_len);
	return first ? answer_line(c, NULL, 0) : true;
}

static bool grow_input(struct connection *c)
{
	const size_t size = c->in_size ? 2 * c->in_size : INPUT_FIRST;
	char *in;

	if (c->in_len < c->in_size)
		return true;
	in = realloc(c->in, size);
	if (!in)
		return false;
	c->in = in;
	c->in_size = size;
	return true;
}

/* Reads once. Returns 1 for something, 0 for nothing now, -1 for the end of the connection. */
static int read_input(struct connection *c)
{
	ssize_t n;

	if (!grow_input(c))
		return -1;
	n = recv(c->fd, c->in + c->in_len, c->in_size - c->in_len, MSG_DONTWAIT);
	if (n > 0) {
		c->in_len += (size_t)n;
		return 1;
	}
	if (n == 0 || (errno != EAGAIN && errno != EINTR))
		return -1;
	drop_input(c, 0);
	return 0;
}

/* One step: a line if there is one, else a read. As read_input(). */
static int advance(struct connection *c)
{
	char *end = line_end(c);

	if (end)
		return take_line(c, end) ? 1 : -1;
	if (c->in_len == PROTOCOL_REQUEST_MAX)
		return overflow(c) ? 1 : -1;
	return read_input(c);
}

static void on_connection(void *ctx, uint32_t events)
{
	struct connection *c = ctx;
	int result = send_reply(c) ? 1 : -1;

	(void)events; /* errors and hang-up show in recv() and send() */
	for (int i = 0; i < LOOP_BUDGET && result > 0 && !c->out; i++)
		result = advance(c);
	if (result < 0) {
		connection_close(c);
		return;
	}
	if (c->out && !loop_timer_running(c->stall))
		loop_timer_set(c->stall, c->server->config.stall_ms, 0);
	loop_mod_fd(c->source, c->out || line_end(c) ? EPOLLOUT : EPOLLIN);
}

/* ---- the listening socket ---- */

static bool connection_open(struct server *s, int fd)
{
	struct connection *c = calloc(1, sizeof(*c));

	if (!c)
		return false;
	c->server = s;
	c->fd = fd;
	c->last_line = ++s->lines;
	if (loop_add_timer(s->config.loop, &c->stall, on_stall, c))
		goto no_timer;
	if (loop_add_fd(s->config.loop, &c->source, fd, EPOLLIN, on_connection, c))
		goto no_source;
	c->next = s->connections;
	s->connections = c;
	s->nconnections++;
	return true;

no_source:
	loop_remove(c->stall);
no_timer:
	free(c);
	return false;
}

/* Makes room for one more by closing the connection that was silent longest. */
static bool evict(struct server *s)
{
	struct connection *oldest = NULL;

	for (struct connection *c = s->connections; c; c = c->next)
		if (!c->out && (!oldest || c->last_line < oldest->last_line))
			oldest = c;
	if (!oldest)
		return false;
	connection_close(oldest);
	return true;
}

static void on_rested(void *ctx)
{
	struct server *s = ctx;

	loop_mod_fd(s->source, EPOLLIN);
}

static void on_listener(void *ctx, uint32_t events)
{
	struct server *s = ctx;

	(void)events;
	for (int i = 0; i < ACCEPT_BUDGET; i++) {
		const int fd = accept4(s->listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0) {
			if (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR)
				return;
			log_limited(LOG_LEVEL_WARN, AREA, "cannot accept a client: %s",
				    strerror(errno));
			loop_mod_fd(s->source, 0);
			loop_timer_set(s->rest, ACCEPT_REST, 0);
			return;
		}
		if ((s->nconnections == PROTOCOL_CONNECTIONS_MAX && !evict(s)) ||
		    !connection_open(s, fd)) {
			log_limited(LOG_LEVEL_WARN, AREA, "too many clients: one turned away");
			close(fd);
		}
	}
}

/* ---- contract ---- */

int server_create(struct server **out, const struct server_config *config, char *why,
		  size_t why_size)
{
	struct server *s = calloc(1, sizeof(*s));
	int error = -ENOMEM;

	why[0] = '\0';
	if (!s)
		return error;
	s->config = *config;
	if (!s->config.stall_ms)
		s->config.stall_ms = STALL_MS;
	error = unix_listen(&s->listener, config->path, config->mode, config->group, why, why_size);
	if (error)
		goto no_listener;
	error = loop_add_timer(config->loop, &s->rest, on_rested, s);
	if (error)
		goto no_timer;
	error = loop_add_fd(config->loop, &s->source, s->listener.fd, EPOLLIN, on_listener, s);
	if (error)
		goto no_source;
	*out = s;
	return 0;

no_source:
	loop_remove(s->rest);
no_timer:
	unix_unlisten(&s->listener);
no_listener:
	free(s);
	return error;
}

void server_destroy(struct server *s)
{
	if (!s)
		return;
	while (s->connections)
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): does not see the unlinking */
		connection_close(s->connections);
	loop_remove(s->source);
	loop_remove(s->rest);
	unix_unlisten(&s->listener);
	free(s);
}

unsigned int server_connections(const struct server *s)
{
	return s->nconnections;
}
