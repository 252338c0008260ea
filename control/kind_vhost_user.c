/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * "port add NAME vhost-user ...": from words to a port with its socket.
 *
 * Two objects make such a port: the device (ports/vhost.h, known to the switch) and the socket
 * with its protocol (vhost_user.h). The socket comes last and goes first, because a front-end
 * may connect as soon as it exists and everything it asks for needs a port in the switch.
 *
 * Two paths are the same socket when their directories are the same directory (by device and
 * inode, which sees through symbolic links and bind mounts) and their last names are equal.
 * Comparing text only would let a second port steal the first one's socket; resolving the whole
 * path fails for client sockets that do not exist yet. The last name itself is never followed:
 * unix_listen() refuses a symbolic link there.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "control/port_kind.h"

/* Directory of an absolute path, into out[UNIX_PATH_LEN_MAX + 1]; returns the last name. */
static const char *split_path(const char *path, char *out)
{
	const char *slash = strrchr(path, '/');

	snprintf(out, UNIX_PATH_LEN_MAX + 1, "%.*s", slash == path ? 1 : (int)(slash - path), path);
	return slash + 1;
}

static bool same_socket(const char *a, const char *b)
{
	char dir_a[UNIX_PATH_LEN_MAX + 1], dir_b[UNIX_PATH_LEN_MAX + 1];
	const char *last_a = split_path(a, dir_a), *last_b = split_path(b, dir_b);
	struct stat stat_a, stat_b;

	if (strcmp(last_a, last_b) != 0)
		return false;
	if (strcmp(dir_a, dir_b) == 0)
		return true;
	return stat(dir_a, &stat_a) == 0 && stat(dir_b, &stat_b) == 0 &&
	       stat_a.st_dev == stat_b.st_dev && stat_a.st_ino == stat_b.st_ino;
}

/* The path in full. */
static int parse_path(const char *path, const char *run_dir, struct port_request *out,
		      struct refusal *why)
{
	const char *base = path[0] == '/' ? "" : run_dir, *slash = path[0] == '/' ? "" : "/";
	const int len = snprintf(out->where, sizeof(out->where), "%s%s%s", base, slash, path);
	const char *last = strrchr(path, '/');

	last = last ? last + 1 : path;
	if (len < 0 || (size_t)len >= sizeof(out->where))
		return refuse(
		    why, -EINVAL,
		    "socket path %s%s%.150s... has %d characters; the kernel takes at most "
		    "%d: use a shorter directory, or a symbolic link to it",
		    base, slash, path, len, UNIX_PATH_LEN_MAX);
	if (!*last || strcmp(last, ".") == 0 || strcmp(last, "..") == 0)
		return refuse(why, -EINVAL, "socket path %s names a directory: add a file name",
			      out->where);
	return 0;
}

static int parse(const struct command_line *line, const char *run_dir, struct port_request *out,
		 struct refusal *why)
{
	const char *mode = command_arg(line, "server|client");
	char control[sizeof(out->where)];
	int error;

	out->vhost_mode =
	    mode && strcmp(mode, "client") == 0 ? VHOST_USER_CLIENT : VHOST_USER_SERVER;
	error = parse_path(command_arg(line, "PATH"), run_dir, out, why);
	if (error)
		return error;
	snprintf(control, sizeof(control), "%s/%s", run_dir, PROTOCOL_SOCKET);
	if (same_socket(out->where, control))
		return refuse(why, -EINVAL, "socket path %s is the daemon's own control socket",
			      out->where);
	return port_request_queues(line, 1, &out->queues, why);
}

static int create(struct port_resources *res, const struct port_request *req, struct port **out,
		  struct refusal *why)
{
	const int error = vhost_port_create(out, req->name, req->queues, req->where,
					    vhost_user_mode_name(req->vhost_mode));

	(void)res;
	return error ? refuse(why, error, "cannot create the port: %s", strerror(-error)) : 0;
}

static int open_socket(struct port_resources *res, const struct port_request *req,
		       struct port *port, void **handle, struct refusal *why)
{
	const struct vhost_user_config config = {
	    .loop = res->loop,
	    .port = vhost_of(port),
	    .path = req->where,
	    .mode = req->vhost_mode,
	    .socket_mode = res->config.socket_mode,
	    .socket_group = res->config.socket_group,
	};
	struct vhost_user *vu;
	int error;

	why->text[0] = '\0';
	error = vhost_user_create(&vu, &config, why->text, sizeof(why->text));
	if (error && !why->text[0])
		refuse(why, error, "cannot open socket %s: %s", req->where, strerror(-error));
	if (!error)
		*handle = vu;
	return error;
}

static void close_socket(void *handle)
{
	vhost_user_destroy(handle);
}

const struct port_kind port_kind_vhost_user = {
    .word = "vhost-user",
    .place = "socket",
    .parse = parse,
    .same_place = same_socket,
    .create = create,
    .open = open_socket,
    .close = close_socket,
};
