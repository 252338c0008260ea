/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unix sockets by path.
 *
 * Is a socket file alive? A datagram socket that connects to it answers that without the
 * listener noticing: the kernel says ECONNREFUSED when no socket is behind the file, and
 * EPROTOTYPE when there is one of another type. A stream connection would show up at the other
 * daemon as a front-end that comes and goes, and would not see a socket between its bind() and
 * its listen(). Only ECONNREFUSED permits removal, only of a socket, and only if the file is
 * still the one that was looked at.
 *
 * Permissions: the file is created with mode 0600 at most (the mode of the unbound socket,
 * which bind() copies), then gets its group, then its mode, and only then starts to listen;
 * connect() is refused before. So there is no moment at which somebody else gets in, and the
 * process-wide umask is left alone.
 *
 * Failure leaves no file behind. Control thread, nothing blocks.
 *
 * Rejected: binding under another name and renaming, which needs a name nobody else uses and
 * leaves it behind after a crash; a lock file, which stays as well.
 */
#include "control/unix_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/compiler.h"

#define BACKLOG 16

_Static_assert(sizeof(((struct sockaddr_un *)0)->sun_path) == UNIX_PATH_LEN_MAX + 1,
	       "sun_path holds the longest path and its NUL");

static int fail(int err, char *why, size_t size, const char *path, const char *text)
{
	snprintf(why, size, "%s: %s", path, text);
	return err;
}

static int fail_errno(char *why, size_t size, const char *path, const char *what)
{
	const int err = -errno;

	snprintf(why, size, "%s: cannot %s: %s", path, what, strerror(-err));
	return err;
}

int unix_path_check(const char *path, char *why, size_t size)
{
	if (path[0] != '/')
		return fail(-EINVAL, why, size, path, "the socket path must begin with '/'");
	if (strlen(path) > UNIX_PATH_LEN_MAX) {
		snprintf(why, size,
			 "%.40s...: a socket path may have %d characters, this one has %zu", path,
			 UNIX_PATH_LEN_MAX, strlen(path));
		return -ENAMETOOLONG;
	}
	return 0;
}

static struct sockaddr_un unix_address(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	memcpy(addr.sun_path, path, strlen(path) + 1);
	return addr;
}

static int unix_socket_at(const char *path, int type, bool do_bind)
{
	const struct sockaddr_un addr = unix_address(path);
	const struct sockaddr *sa = (const struct sockaddr *)&addr;
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int err;

	if (fd < 0)
		return -errno;
	if (do_bind)
		err = fchmod(fd, 0600) || bind(fd, sa, sizeof(addr));
	else
		err = connect(fd, sa, sizeof(addr));
	if (err) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

int unix_connect(const char *path)
{
	return unix_socket_at(path, SOCK_STREAM, false);
}

/* See above: a datagram probe that no stream listener notices. */
static bool socket_is_stale(const char *path)
{
	const int fd = unix_socket_at(path, SOCK_DGRAM, false);

	if (fd >= 0)
		close(fd);
	return fd == -ECONNREFUSED;
}

static bool same_file(const struct stat *a, dev_t dev, ino_t ino)
{
	return S_ISSOCK(a->st_mode) && a->st_dev == dev && a->st_ino == ino;
}

/* Removes the file if it is (still) that socket. */
static int remove_socket(const char *path, dev_t dev, ino_t ino)
{
	struct stat st;

	if (lstat(path, &st) || !same_file(&st, dev, ino))
		return -EEXIST;
	return unlink(path) ? -errno : 0;
}

/* Makes the path free, if it is taken by a socket that nobody has open any more. */
static int make_room(const char *path, char *why, size_t size)
{
	struct stat st;

	if (lstat(path, &st))
		return errno == ENOENT ? 0 : fail_errno(why, size, path, "look at it");
	if (!S_ISSOCK(st.st_mode))
		return fail(-EEXIST, why, size, path,
			    S_ISLNK(st.st_mode)
				? "is a symbolic link; name the socket itself"
				: "exists and is not a socket; choose another path");
	if (!socket_is_stale(path))
		return fail(-EADDRINUSE, why, size, path,
			    "another process is listening on it; choose another path or stop it");
	if (remove_socket(path, st.st_dev, st.st_ino))
		return fail_errno(why, size, path, "remove the old socket file");
	return 0;
}

/* Names the directory when that is what is missing. */
static int fail_bind(int err, char *why, size_t size, const char *path)
{
	const int dir_len = (int)(strrchr(path, '/') - path);

	if (err == -ENOENT)
		snprintf(why, size, "%s: directory %.*s does not exist; create it first", path,
			 MAX(dir_len, 1), path);
	else
		snprintf(why, size, "%s: cannot create the socket: %s", path, strerror(-err));
	return err;
}

/* Group before mode: chown() may clear mode bits. Listening comes last. */
static int open_up(const struct unix_listener *l, mode_t mode, gid_t group, char *why, size_t size)
{
	if (group != UNIX_GROUP_NONE &&
	    fchownat(AT_FDCWD, l->path, (uid_t)-1, group, AT_SYMLINK_NOFOLLOW))
		return fail_errno(why, size, l->path, "set the group of the socket");
	if (fchmodat(AT_FDCWD, l->path, mode & 0777, AT_SYMLINK_NOFOLLOW))
		return fail_errno(why, size, l->path, "set the mode of the socket");
	if (listen(l->fd, BACKLOG))
		return fail_errno(why, size, l->path, "listen");
	return 0;
}

int unix_listen(struct unix_listener *out, const char *path, mode_t mode, gid_t group, char *why,
		size_t size)
{
	struct unix_listener l = {.fd = -1};
	struct stat st;
	int err = unix_path_check(path, why, size);

	if (!err)
		err = make_room(path, why, size);
	if (err)
		return err;
	l.fd = unix_socket_at(path, SOCK_STREAM, true);
	if (l.fd < 0)
		return fail_bind(l.fd, why, size, path);
	memcpy(l.path, path, strlen(path) + 1);
	if (lstat(path, &st)) {
		err = fail_errno(why, size, path, "look at the new socket");
		close(l.fd);
		return err;
	}
	l.dev = st.st_dev;
	l.ino = st.st_ino;
	err = open_up(&l, mode, group, why, size);
	if (err) {
		unix_unlisten(&l);
		return err;
	}
	*out = l;
	return 0;
}

void unix_unlisten(struct unix_listener *l)
{
	if (l->fd < 0)
		return;
	remove_socket(l->path, l->dev, l->ino);
	close(l->fd);
	l->fd = -1;
}
