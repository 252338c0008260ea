/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wire side of xvsctl: a blocking socket with time limits, one line out, one line back.
 *
 * The answer's length is not known beforehand (a forwarding table may have a million entries),
 * so that it is read into a buffer that doubles, up to ANSWER_MAX: a thing that answers without
 * end is not the daemon.
 *
 * Reasons name the socket and say what to do, because most operators see this program's errors
 * before its output.
 */
#include "cli/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define TIMEOUT_SECONDS 10
#define ANSWER_FIRST    65536u
#define ANSWER_MAX      (UINT64_C(1) << 30)

/* ---- connecting ---- */

static int refuse_connection(struct refusal *why, int error, const char *path)
{
	switch (error) {
	case -ENOENT:
	case -ECONNREFUSED:
		return refuse(why, error,
			      "no daemon answers at %s: start xvswitchd, or give its run directory "
			      "with --run-dir",
			      path);
	case -EACCES:
	case -EPERM:
		return refuse(why, error,
			      "no permission for %s: run as root, or as a member of the socket's "
			      "group (ls -l shows it)",
			      path);
	case -EAGAIN:
		return refuse(why, error,
			      "the daemon at %s does not accept connections; it may be stuck: see "
			      "its log",
			      path);
	default:
		return refuse(why, error, "cannot connect to %s: %s", path, strerror(-error));
	}
}

static int connect_to(const char *run_dir, struct refusal *why)
{
	const struct timeval limit = {.tv_sec = TIMEOUT_SECONDS};
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	const int len =
	    snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s", run_dir, PROTOCOL_SOCKET);
	int fd, error;

	if (len < 0 || (size_t)len >= sizeof(addr.sun_path))
		return refuse(why, -ENAMETOOLONG, "run directory %.100s...: the path is too long",
			      run_dir);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return refuse(why, -errno, "cannot make a socket: %s", strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0)
		return fd;
	error = -errno;
	close(fd);
	return refuse_connection(why, error, addr.sun_path);
}

/* ---- the two lines ---- */

static char *make_request(const char *const word[], unsigned int n)
{
	json_t *words = json_array(), *root = json_object(), *params = json_object();
	char *text;

	for (unsigned int i = 0; i < n; i++)
		json_array_append_new(words, json_string(word[i]));
	json_object_set_new(params, "words", words);
	json_object_set_new(root, "xvswitch", json_integer(PROTOCOL_VERSION));
	json_object_set_new(root, "id", json_integer(1));
	json_object_set_new(root, "method", json_string("command"));
	json_object_set_new(root, "params", params);
	text = json_array_size(words) == n ? json_dumps(root, JSON_COMPACT) : NULL;
	json_decref(root);
	return text;
}

static int send_all(int fd, const char *data, size_t len, struct refusal *why)
{
	while (len > 0) {
		const ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return refuse(why, -errno, "the daemon closed the connection: %s",
				      strerror(errno));
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

static int send_request(int fd, const char *const word[], unsigned int n, struct refusal *why)
{
	char *text = make_request(word, n);
	int error;

	if (!text)
		return refuse(why, -EILSEQ, "the command is not UTF-8 text");
	if (strlen(text) + 1 > PROTOCOL_REQUEST_MAX)
		error = refuse(why, -EMSGSIZE, "the command is too long");
	else
		error = send_all(fd, text, strlen(text), why);
	if (!error)
		error = send_all(fd, "\n", 1, why);
	free(text);
	return error;
}

static int refuse_receive(struct refusal *why, ssize_t n)
{
	if (n == 0)
		return refuse(why, -ECONNRESET,
			      "the daemon closed the connection without an "
			      "answer: see its log");
	if (errno == EAGAIN)
		return refuse(why, -ETIMEDOUT,
			      "the daemon has not answered for %d seconds; it may be stuck: see "
			      "its log",
			      TIMEOUT_SECONDS);
	return refuse(why, -errno, "the connection to the daemon broke: %s", strerror(errno));
}

/* Reads up to the newline. Returns malloc()ed text of *len bytes, or NULL with the reason. */
static char *receive_line(int fd, size_t *len, struct refusal *why)
{
	size_t size = 0, used = 0;
	char *text = NULL;

	for (;;) {
		ssize_t n;

		if (used == size) {
			char *grown;

			size = size ? 2 * size : ANSWER_FIRST;
			grown = size <= ANSWER_MAX ? realloc(text, size) : NULL;
			if (!grown) {
				refuse(why, -ENOMEM, "the answer is too long");
				break;
			}
			text = grown;
		}
		n = recv(fd, text + used, size - used, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			refuse_receive(why, n);
			break;
		}
		used += (size_t)n;
		if (text[used - 1] == '\n') {
			*len = used;
			return text;
		}
	}
	free(text);
	return NULL;
}

static int take_answer(const char *text, size_t len, json_t **result, struct refusal *why)
{
	json_t *root = json_loadb(text, len, 0, NULL);
	const json_t *failed = json_object_get(root, "error");
	const char *message = json_string_value(json_object_get(failed, "message"));
	const json_int_t code = json_integer_value(json_object_get(failed, "code"));
	int error = 0;

	*result = json_incref(json_object_get(root, "result"));
	if (failed)
		error = refuse(why, code < 0 && code > INT16_MIN ? (int)code : -EIO, "%s",
			       message ? message : "the daemon gave no reason");
	else if (!*result)
		error = refuse(why, -EPROTO, "the answer is not that of an xvswitchd");
	if (error) {
		json_decref(*result);
		*result = NULL;
	}
	json_decref(root);
	return error;
}

int client_command(const char *run_dir, const char *const word[], unsigned int n, json_t **result,
		   struct refusal *why)
{
	const int fd = connect_to(run_dir, why);
	char *text = NULL;
	size_t len;
	int error;

	if (fd < 0)
		return fd;
	error = send_request(fd, word, n, why);
	if (!error) {
		text = receive_line(fd, &len, why);
		error = text ? take_answer(text, len, result, why) : -EIO;
	}
	free(text);
	close(fd);
	return error;
}
