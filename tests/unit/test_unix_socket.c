/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unix sockets by path: what is replaced, what is never touched, lengths, modes.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "control/unix_socket.h"
#include "unit.h"

static char dir[64];
static char why[UNIX_WHY_SIZE];

static const char *in_dir(const char *name)
{
	static char path[2][512];
	static int turn;

	turn = !turn;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s", dir, name);
	return path[turn];
}

static int try_listen(struct unix_listener *l, const char *path, mode_t mode)
{
	why[0] = '\0';
	l->fd = -1;
	return unix_listen(l, path, mode, UNIX_GROUP_NONE, why, sizeof(why));
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	return lstat(path, &st) ? 0 : st.st_mode;
}

static bool can_connect(const char *path)
{
	const int fd = unix_connect(path);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void listens_and_removes(void)
{
	struct unix_listener l;

	CU_ASSERT_EQUAL_FATAL(try_listen(&l, in_dir("a"), 0600), 0);
	CU_ASSERT(can_connect(in_dir("a")));
	CU_ASSERT(fcntl(l.fd, F_GETFD) & FD_CLOEXEC);
	CU_ASSERT(fcntl(l.fd, F_GETFL) & O_NONBLOCK);
	unix_unlisten(&l);
	CU_ASSERT_EQUAL(l.fd, -1);
	CU_ASSERT_EQUAL(mode_of(in_dir("a")), 0);
	unix_unlisten(&l);
}

static void modes_whatever_the_umask(void)
{
	static const mode_t modes[] = {0600, 0660, 0666, 0600, 0777};
	static const mode_t masks[] = {022, 077, 000, 0177, 0777};
	const mode_t before = umask(0);
	struct unix_listener l;

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		for (size_t j = 0; j < sizeof(masks) / sizeof(masks[0]); j++) {
			umask(masks[j]);
			CU_ASSERT_EQUAL_FATAL(try_listen(&l, in_dir("m"), modes[i]), 0);
			CU_ASSERT_EQUAL(mode_of(in_dir("m")), S_IFSOCK | modes[i]);
			CU_ASSERT_EQUAL(umask(before), masks[j]);
			unix_unlisten(&l);
		}
	}
	umask(before);
}

static void group_is_set(void)
{
	struct unix_listener l = {.fd = -1};
	struct stat st;

	if (geteuid() != 0)
		return;
	CU_ASSERT_EQUAL_FATAL(unix_listen(&l, in_dir("g"), 0660, 12345, why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(lstat(in_dir("g"), &st), 0);
	CU_ASSERT(st.st_gid == 12345 && st.st_mode == (S_IFSOCK | 0660));
	unix_unlisten(&l);
}

static void stale_is_replaced_alive_is_not(void)
{
	struct unix_listener first, second, third;

	CU_ASSERT_EQUAL_FATAL(try_listen(&first, in_dir("s"), 0600), 0);
	CU_ASSERT_EQUAL(try_listen(&second, in_dir("s"), 0600), -EADDRINUSE);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "another process is listening"));
	CU_ASSERT(can_connect(in_dir("s")));
	close(first.fd); /* as after a crash: the file stays */
	CU_ASSERT(S_ISSOCK(mode_of(in_dir("s"))));
	CU_ASSERT_FALSE(can_connect(in_dir("s")));
	CU_ASSERT_EQUAL_FATAL(try_listen(&second, in_dir("s"), 0600), 0);
	CU_ASSERT(can_connect(in_dir("s")));
	/* What the first one would remove is not there any more; the second's stays. */
	first.fd = open("/dev/null", O_RDONLY);
	first.ino++;
	unix_unlisten(&first);
	CU_ASSERT(can_connect(in_dir("s")));
	/* Bound but not listening yet counts as alive, and so does another type. */
	unix_unlisten(&second);
	second.fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", in_dir("s"));
	CU_ASSERT_EQUAL(bind(second.fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	CU_ASSERT_EQUAL(try_listen(&third, in_dir("s"), 0600), -EADDRINUSE);
	close(second.fd);
	unlink(in_dir("s"));
}

/* The listener must not see the question whether it is alive. */
static void probe_is_not_noticed(void)
{
	struct unix_listener l, other;

	CU_ASSERT_EQUAL_FATAL(try_listen(&l, in_dir("q"), 0600), 0);
	CU_ASSERT_EQUAL(try_listen(&other, in_dir("q"), 0600), -EADDRINUSE);
	CU_ASSERT_EQUAL(accept(l.fd, NULL, NULL), -1);
	CU_ASSERT_EQUAL(errno, EAGAIN);
	unix_unlisten(&l);
}

static void refuse_other(const char *name, const char *words)
{
	struct unix_listener l;
	const mode_t before = mode_of(in_dir(name));

	CU_ASSERT_EQUAL(try_listen(&l, in_dir(name), 0600), -EEXIST);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, words));
	CU_ASSERT_PTR_NOT_NULL(strstr(why, in_dir(name)));
	CU_ASSERT_EQUAL(mode_of(in_dir(name)), before);
}

static void other_files_are_never_touched(void)
{
	struct unix_listener l;
	int fd = open(in_dir("file"), O_CREAT | O_RDWR, 0644);

	CU_ASSERT_EQUAL(write(fd, "data", 4), 4);
	close(fd);
	CU_ASSERT_EQUAL(mkdir(in_dir("sub"), 0755), 0);
	CU_ASSERT_EQUAL_FATAL(try_listen(&l, in_dir("stale"), 0600), 0);
	close(l.fd);
	CU_ASSERT_EQUAL(symlink("file", in_dir("to_file")), 0);
	CU_ASSERT_EQUAL(symlink("stale", in_dir("to_stale")), 0);
	CU_ASSERT_EQUAL(symlink("nowhere", in_dir("dangling")), 0);
	refuse_other("file", "not a socket");
	refuse_other("sub", "not a socket");
	refuse_other("to_file", "symbolic link");
	refuse_other("to_stale", "symbolic link");
	refuse_other("dangling", "symbolic link");
	CU_ASSERT(S_ISSOCK(mode_of(in_dir("stale"))));
	CU_ASSERT_EQUAL(mode_of(in_dir("nowhere")), 0);
	unlink(in_dir("file"));
	rmdir(in_dir("sub"));
	unlink(in_dir("stale"));
	unlink(in_dir("to_file"));
	unlink(in_dir("to_stale"));
	unlink(in_dir("dangling"));
}

static void replaced_file_is_not_removed(void)
{
	struct unix_listener l;

	CU_ASSERT_EQUAL_FATAL(try_listen(&l, in_dir("r"), 0600), 0);
	unlink(in_dir("r"));
	close(open(in_dir("r"), O_CREAT | O_RDWR, 0644));
	unix_unlisten(&l);
	CU_ASSERT(S_ISREG(mode_of(in_dir("r"))));
	unlink(in_dir("r"));
}

static void long_paths(void)
{
	static const size_t lengths[] = {106, 107, 108, 109, 400};
	char path[512];

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		const size_t len = lengths[i];
		struct unix_listener l;
		const int used = snprintf(path, sizeof(path), "%s/", dir);

		memset(path + used, 'x', len - (size_t)used);
		path[len] = '\0';
		if (len <= 107) {
			CU_ASSERT_EQUAL(try_listen(&l, path, 0600), 0);
			CU_ASSERT_STRING_EQUAL(l.path, path);
			CU_ASSERT(S_ISSOCK(mode_of(path)));
			CU_ASSERT(can_connect(path));
			unix_unlisten(&l);
		} else {
			CU_ASSERT_EQUAL(try_listen(&l, path, 0600), -ENAMETOOLONG);
			CU_ASSERT_PTR_NOT_NULL(strstr(why, "107"));
			path[107] = '\0';
			CU_ASSERT_EQUAL(mode_of(path), 0);
		}
	}
}

static void bad_places(void)
{
	struct unix_listener l;

	CU_ASSERT_EQUAL(try_listen(&l, "relative.sock", 0600), -EINVAL);
	CU_ASSERT_EQUAL(try_listen(&l, "", 0600), -EINVAL);
	CU_ASSERT_EQUAL(try_listen(&l, in_dir("missing/dir/s"), 0600), -ENOENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "/missing/dir does not exist"));
	CU_ASSERT_EQUAL(try_listen(&l, "/proc/self/s", 0600), -ENOENT);
	CU_ASSERT_EQUAL(unix_connect(in_dir("missing")), -ENOENT);
	/* A blank and UTF-8 are just characters. */
	CU_ASSERT_EQUAL(try_listen(&l, in_dir("a b \xc3\xa4"), 0600), 0);
	CU_ASSERT(can_connect(in_dir("a b \xc3\xa4")));
	unix_unlisten(&l);
}

static const struct unit_case cases[] = {
    UNIT_CASE(listens_and_removes),
    UNIT_CASE(modes_whatever_the_umask),
    UNIT_CASE(group_is_set),
    UNIT_CASE(stale_is_replaced_alive_is_not),
    UNIT_CASE(probe_is_not_noticed),
    UNIT_CASE(other_files_are_never_touched),
    UNIT_CASE(replaced_file_is_not_removed),
    UNIT_CASE(long_paths),
    UNIT_CASE(bad_places),
};

int main(int argc, char **argv)
{
	int result;

	snprintf(dir, sizeof(dir), "/tmp/xvs-unix-XXXXXX");
	if (!mkdtemp(dir))
		return 1;
	result = unit_main("unix_socket", cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
	if (rmdir(dir)) {
		printf("left files behind in %s\n", dir);
		return 1;
	}
	return result;
}
