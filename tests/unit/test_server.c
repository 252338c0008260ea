/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command server against clients that behave in all the ways they should not: pieces of
 * lines, lines without end, many connections, readers that do not read. The handler answers with
 * the length of the line. Server and clients share one thread: a loop round between two steps.
 */
#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "control/protocol.h"
#include "control/server.h"
#include "control/unix_socket.h"
#include "unit/unit.h"

#define STALL_MS 50u

struct fixture {
	char dir[32];
	char path[64];
	struct loop *loop;
	struct server *server;
	size_t reply_size; /* of the handler's answers; 0: "LENGTH\n" */
	unsigned int handled;
};

static char *answer(void *ctx, char *line, size_t len, size_t *reply_len)
{
	struct fixture *f = ctx;
	char *reply = malloc(f->reply_size ? f->reply_size : 32);

	f->handled++;
	if (!reply || (line && strcmp(line, "die") == 0)) {
		free(reply);
		return NULL;
	}
	if (f->reply_size) {
		memset(reply, 'r', f->reply_size);
		reply[f->reply_size - 1] = '\n';
		*reply_len = f->reply_size;
	} else if (line) {
		*reply_len = (size_t)snprintf(reply, 32, "%zu\n", len);
	} else {
		*reply_len = (size_t)snprintf(reply, 32, "long\n");
	}
	return reply;
}

static void begin(struct fixture *f)
{
	struct server_config config = {
	    .mode = 0600,
	    .group = UNIX_GROUP_NONE,
	    .handler = answer,
	    .ctx = f,
	    .stall_ms = STALL_MS,
	};
	char why[UNIX_WHY_SIZE];

	*f = (struct fixture){.dir = "/tmp/xvs-server-XXXXXX"};
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/control.sock", f->dir);
	CU_ASSERT_EQUAL_FATAL(loop_create(&f->loop), 0);
	config.loop = f->loop;
	config.path = f->path;
	CU_ASSERT_EQUAL_FATAL(server_create(&f->server, &config, why, sizeof(why)), 0);
}

static void end(struct fixture *f)
{
	server_destroy(f->server);
	loop_destroy(f->loop);
	CU_ASSERT_NOT_EQUAL(access(f->path, F_OK), 0);
	CU_ASSERT_EQUAL(rmdir(f->dir), 0);
}

/* Rounds until nothing happens any more. */
static void settle(struct fixture *f)
{
	for (int i = 0; i < 10000; i++)
		if (loop_run_once(f->loop, 0) <= 0)
			return;
	CU_FAIL("the loop spins");
}

static int client(struct fixture *f)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	CU_ASSERT_FATAL(fd >= 0);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", f->path);
	CU_ASSERT_EQUAL_FATAL(connect(fd, (const struct sockaddr *)&addr, sizeof(addr)), 0);
	settle(f);
	return fd;
}

/* Sends everything, letting the server read. */
static bool say(struct fixture *f, int fd, const char *data, size_t len)
{
	while (len > 0) {
		const ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

		if (n < 0 && errno != EAGAIN)
			return false;
		if (n > 0) {
			data += n;
			len -= (size_t)n;
		}
		settle(f);
	}
	return true;
}

static void say_text(struct fixture *f, int fd, const char *text)
{
	CU_ASSERT_TRUE(say(f, fd, text, strlen(text)));
}

/* What has arrived, as text; "EOF" when the server has closed. */
static const char *hear(int fd)
{
	static char text[4096];
	const ssize_t n = recv(fd, text, sizeof(text) - 1, 0);

	if (n == 0 || (n < 0 && errno != EAGAIN))
		return "EOF";
	text[n > 0 ? n : 0] = '\0';
	return text;
}

static void answers_lines(void)
{
	struct fixture f;
	int fd;

	begin(&f);
	fd = client(&f);
	say_text(&f, fd, "hello\n");
	CU_ASSERT_STRING_EQUAL(hear(fd), "5\n");
	say_text(&f, fd, "\na\nbb\n");
	CU_ASSERT_STRING_EQUAL(hear(fd), "0\n1\n2\n");
	close(fd);
	settle(&f);
	CU_ASSERT_EQUAL(server_connections(f.server), 0);
	end(&f);
}

static void waits_for_half_lines(void)
{
	struct fixture f;
	int slow, fast;

	begin(&f);
	slow = client(&f);
	fast = client(&f);
	for (const char *c = "in pieces"; *c; c++) {
		CU_ASSERT_TRUE(say(&f, slow, c, 1));
		CU_ASSERT_STRING_EQUAL(hear(slow), "");
		say_text(&f, fast, "quick\n");
		CU_ASSERT_STRING_EQUAL(hear(fast), "5\n");
	}
	say_text(&f, slow, "\nnext");
	CU_ASSERT_STRING_EQUAL(hear(slow), "9\n");
	close(slow); /* in the middle of a line */
	settle(&f);
	CU_ASSERT_EQUAL(server_connections(f.server), 1);
	close(fast);
	end(&f);
}

static void answers_before_the_end(void)
{
	struct fixture f;
	int fd;

	begin(&f);
	fd = client(&f);
	CU_ASSERT_EQUAL(send(fd, "one\ntwo\n", 8, MSG_NOSIGNAL), 8);
	shutdown(fd, SHUT_WR);
	settle(&f);
	CU_ASSERT_STRING_EQUAL(hear(fd), "3\n3\n");
	CU_ASSERT_STRING_EQUAL(hear(fd), "EOF");
	CU_ASSERT_EQUAL(server_connections(f.server), 0);
	close(fd);
	end(&f);
}

static void longest_line_passes(void)
{
	const size_t len = PROTOCOL_REQUEST_MAX;
	char *line = malloc(len + 1);
	struct fixture f;
	int fd;

	CU_ASSERT_PTR_NOT_NULL_FATAL(line);
	memset(line, 'x', len + 1);
	begin(&f);
	fd = client(&f);
	line[len - 1] = '\n';
	CU_ASSERT_TRUE(say(&f, fd, line, len));
	CU_ASSERT_STRING_EQUAL(hear(fd), "65535\n");
	line[len - 1] = 'x';
	line[len] = '\n';
	CU_ASSERT_TRUE(say(&f, fd, line, len + 1));
	CU_ASSERT_STRING_EQUAL(hear(fd), "long\n");
	say_text(&f, fd, "short\n");
	CU_ASSERT_STRING_EQUAL(hear(fd), "5\n");
	close(fd);
	end(&f);
	free(line);
}

static void huge_lines_are_skipped(void)
{
	const size_t len = 1 << 20;
	char *line = malloc(len);
	struct fixture f;
	int huge, other;

	CU_ASSERT_PTR_NOT_NULL_FATAL(line);
	memset(line, 'x', len);
	begin(&f);
	huge = client(&f);
	other = client(&f);
	CU_ASSERT_TRUE(say(&f, huge, line, len));
	CU_ASSERT_STRING_EQUAL(hear(huge), "long\n");
	say_text(&f, other, "other\n");
	CU_ASSERT_STRING_EQUAL(hear(other), "5\n");
	say_text(&f, huge, "the end of it\nnew\n");
	CU_ASSERT_STRING_EQUAL(hear(huge), "3\n");
	CU_ASSERT_EQUAL(f.handled, 3);
	close(huge);
	close(other);
	end(&f);
	free(line);
}

static void handler_can_close(void)
{
	struct fixture f;
	int fd;

	begin(&f);
	fd = client(&f);
	say_text(&f, fd, "die\nmore\n");
	CU_ASSERT_STRING_EQUAL(hear(fd), "EOF");
	CU_ASSERT_EQUAL(server_connections(f.server), 0);
	CU_ASSERT_EQUAL(f.handled, 1);
	close(fd);
	end(&f);
}

static void silent_clients_make_room(void)
{
	enum { CLIENTS = 200 };
	struct fixture f;
	int fd[CLIENTS], last;

	begin(&f);
	for (int i = 0; i < CLIENTS; i++)
		fd[i] = client(&f);
	CU_ASSERT_EQUAL(server_connections(f.server), PROTOCOL_CONNECTIONS_MAX);
	CU_ASSERT_STRING_EQUAL(hear(fd[0]), "EOF");
	CU_ASSERT_STRING_EQUAL(hear(fd[CLIENTS - 1]), "");
	last = client(&f);
	say_text(&f, last, "operator\n");
	CU_ASSERT_STRING_EQUAL(hear(last), "8\n");
	close(last);
	for (int i = 0; i < CLIENTS; i++)
		close(fd[i]);
	settle(&f);
	CU_ASSERT_EQUAL(server_connections(f.server), 0);
	end(&f);
}

/* One that talks is not the one that is closed. */
static void talkers_stay(void)
{
	struct fixture f;
	int talker, fd[2 * PROTOCOL_CONNECTIONS_MAX];

	begin(&f);
	talker = client(&f);
	for (unsigned int i = 0; i < ARRAY_LEN(fd); i++) {
		fd[i] = client(&f);
		say_text(&f, talker, "x\n");
		CU_ASSERT_STRING_EQUAL(hear(talker), "1\n");
	}
	close(talker);
	for (unsigned int i = 0; i < ARRAY_LEN(fd); i++)
		close(fd[i]);
	end(&f);
}

/* An answer that is not taken holds back further lines, and in the end costs the connection. */
static void slow_reader_is_cut_off(void)
{
	struct fixture f;
	int fd, other;

	begin(&f);
	fd = client(&f);
	other = client(&f);
	f.reply_size = 4 << 20;
	say_text(&f, fd, "big\nbig\nbig\n");
	CU_ASSERT_EQUAL(f.handled, 1);
	f.reply_size = 0;
	say_text(&f, other, "other\n");
	CU_ASSERT_STRING_EQUAL(hear(other), "5\n");
	for (int i = 0; i < 100 && server_connections(f.server) == 2; i++)
		loop_run_once(f.loop, (int)STALL_MS);
	CU_ASSERT_EQUAL(server_connections(f.server), 1);
	CU_ASSERT_EQUAL(f.handled, 2);
	close(fd);
	close(other);
	end(&f);
}

/* A slow reader that does read gets everything. */
static void big_answers_arrive(void)
{
	struct fixture f;
	size_t got = 0;
	int fd;

	begin(&f);
	fd = client(&f);
	f.reply_size = 4 << 20;
	say_text(&f, fd, "big\nbig\n");
	for (int i = 0; i < 100000 && got < 2 * f.reply_size; i++) {
		static char buf[65536];
		const ssize_t n = recv(fd, buf, sizeof(buf), 0);

		CU_ASSERT_FATAL(n > 0 || (n < 0 && errno == EAGAIN));
		got += n > 0 ? (size_t)n : 0;
		loop_run_once(f.loop, 0);
	}
	CU_ASSERT_EQUAL(got, 2 * f.reply_size);
	say_text(&f, fd, "");
	CU_ASSERT_EQUAL(f.handled, 2);
	close(fd);
	end(&f);
}

/* Lines without end from one client do not keep others from being heard. */
static void chatter_leaves_others_their_turn(void)
{
	static char chatter[200000];
	struct fixture f;
	int fd, other, rounds = 0;

	begin(&f);
	memset(chatter, '\n', sizeof(chatter));
	fd = client(&f);
	other = client(&f);
	CU_ASSERT_TRUE(send(fd, chatter, 50000, MSG_NOSIGNAL) > 1000);
	CU_ASSERT_EQUAL(send(other, "hi\n", 3, MSG_NOSIGNAL), 3);
	while (*hear(other) == '\0' && rounds < 10) {
		loop_run_once(f.loop, 0);
		rounds++;
	}
	CU_ASSERT_TRUE(rounds < 10);
	close(fd);
	close(other);
	end(&f);
}

static const struct unit_case cases[] = {
    UNIT_CASE(answers_lines),
    UNIT_CASE(waits_for_half_lines),
    UNIT_CASE(answers_before_the_end),
    UNIT_CASE(longest_line_passes),
    UNIT_CASE(huge_lines_are_skipped),
    UNIT_CASE(handler_can_close),
    UNIT_CASE(silent_clients_make_room),
    UNIT_CASE(talkers_stay),
    UNIT_CASE(slow_reader_is_cut_off),
    UNIT_CASE(big_answers_arrive),
    UNIT_CASE(chatter_leaves_others_their_turn),
};
UNIT_MAIN("server", cases)
