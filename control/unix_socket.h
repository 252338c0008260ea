/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unix stream sockets by path: listening without stealing or destroying anything, connecting
 * without waiting. Control thread. On failure `why` gets a sentence for the operator, naming
 * the path and what to do.
 */
#ifndef XVS_CONTROL_UNIX_SOCKET_H
#define XVS_CONTROL_UNIX_SOCKET_H

#include <stddef.h>
#include <sys/types.h>

/* Longest path, in characters: sun_path with its NUL is 108 bytes. */
#define UNIX_PATH_LEN_MAX 107

/* Space that every `why` fits into. */
#define UNIX_WHY_SIZE 320

#define UNIX_GROUP_NONE ((gid_t)-1)

/* A listening socket and the identity of its file, to remove only what is still ours. */
struct unix_listener {
	int fd; /* -1: not listening */
	dev_t dev;
	ino_t ino;
	char path[UNIX_PATH_LEN_MAX + 1];
};

/*
 * Listens (non-blocking, close-on-exec) on the absolute `path`. The file appears with exactly
 * `mode` (permission bits, whatever the umask) and `group` (UNIX_GROUP_NONE: as created), and
 * nobody can connect before both are set.
 *
 * A socket file whose owner is gone is replaced. Never removed: anything alive, anything that is
 * not a socket, symbolic links.
 *   -EINVAL        not an absolute path
 *   -ENAMETOOLONG  more than UNIX_PATH_LEN_MAX characters
 *   -EADDRINUSE    somebody is listening there
 *   -EEXIST        there is something else
 *   -ENOENT, ...   from bind(2), chown(2), chmod(2)
 */
int unix_listen(struct unix_listener *out, const char *path, mode_t mode, gid_t group, char *why,
		size_t why_size);

/* Closes, and removes the file if it is still the one that unix_listen() made. */
void unix_unlisten(struct unix_listener *l);

/*
 * Starts a connection (non-blocking, close-on-exec). Returns the descriptor, or a negative errno:
 * -ENOENT and -ECONNREFUSED when nobody listens yet, -EAGAIN when the listener's queue is full.
 */
int unix_connect(const char *path);

/* 0, or -EINVAL / -ENAMETOOLONG with *why set: may `path` be used at all? Touches no file. */
int unix_path_check(const char *path, char *why, size_t why_size);

#endif
