/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xvswitchds to measure: ports on a running one, or daemons of our own.
 *
 * The programs are those that stand beside this one. An own daemon gets the worker's CPU of the
 * options, a run directory in /tmp, and as many ports as the scenario says; a scenario that
 * compares numbers of ports gets a daemon for each, and they take turns like any other systems.
 * Own daemons die with us whatever happens (PR_SET_PDEATHSIG); in order, they are ended by
 * SIGTERM, and their directory is emptied and removed.
 */
#include "bench/bench.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORDS_MAX   16
#define START_TRIES 500
#define START_WAIT  10000000 /* ns between tries */
#define END_TRIES   500

extern char **environ;

/* Path of a program that stands beside this one. */
static int beside(char path[PATH_MAX], const char *program)
{
	char self[PATH_MAX] = {0};

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return -errno;
	return snprintf(path, PATH_MAX, "%s/%s", dirname(self), program) < PATH_MAX ? 0
										    : -ENAMETOOLONG;
}

static void pause_ns(long ns)
{
	const struct timespec t = {.tv_nsec = ns};

	nanosleep(&t, NULL);
}

/* Runs a program with its output to `out`; its process id or negative errno. */
static pid_t start_ctl(const char *path, const char *const argv[], int out)
{
	posix_spawn_file_actions_t actions;
	char **args;
	pid_t pid;
	int err;

	memcpy(&args, &argv, sizeof(args)); /* posix_spawn() does not write to them */
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	err = posix_spawn(&pid, path, &actions, NULL, args, environ);
	posix_spawn_file_actions_destroy(&actions);
	return err ? -err : pid;
}

static int exit_of(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}

/* The JSON that comes out of `fd`, whose other end a process has. */
static json_t *read_json(int fd)
{
	json_error_t why;

	return json_loadfd(fd, JSON_DECODE_ANY, &why);
}

int daemon_ctl(const struct target *t, const char *const words[], json_t **answer)
{
	const char *argv[WORDS_MAX] = {NULL, "--run-dir", t->run_dir, "-j"};
	char path[PATH_MAX];
	int pipe_fd[2], err;
	json_t *got;
	pid_t pid;

	err = beside(path, "xvsctl");
	if (err)
		return err;
	argv[0] = path;
	for (unsigned int i = 0; words[i] && i + 5 < WORDS_MAX; i++)
		argv[i + 4] = words[i];
	if (pipe2(pipe_fd, O_CLOEXEC) < 0)
		return -errno;
	pid = start_ctl(path, argv, pipe_fd[1]);
	close(pipe_fd[1]);
	got = pid > 0 ? read_json(pipe_fd[0]) : NULL;
	close(pipe_fd[0]);
	err = pid > 0 ? exit_of(pid) : pid;
	if (!err && answer && !got)
		err = -EBADMSG;
	if (!err && answer)
		*answer = got;
	else
		json_decref(got);
	return err;
}

/* ---- ports ---- */

static int add_port(struct target *t, unsigned int i, unsigned int pairs)
{
	char name[32], queues[16];
	const char *const words[] = {"port",   "add",    name,   "vhost-user", t->path[i],
				     "server", "queues", queues, NULL};

	snprintf(name, sizeof(name), "bench-%u", i);
	snprintf(queues, sizeof(queues), "%u", pairs);
	if (snprintf(t->path[i], sizeof(t->path[i]), "%s/%s.sock", t->run_dir, name) >=
	    (int)sizeof(t->path[i]))
		return -ENAMETOOLONG;
	return daemon_ctl(t, words, NULL);
}

static void del_ports(const struct target *t)
{
	for (unsigned int i = 0; i < t->nports; i++) {
		char name[32];
		const char *const words[] = {"port", "del", name, NULL};

		snprintf(name, sizeof(name), "bench-%u", i);
		daemon_ctl(t, words, NULL);
	}
}

static int add_ports(struct target *t, unsigned int n, unsigned int pairs)
{
	int err = 0;

	for (t->nports = 0; t->nports < n && !err && !interrupted(); t->nports++)
		err = add_port(t, t->nports, pairs);
	return err;
}

/* ---- own daemons ---- */

static pid_t start_daemon(const struct options *o, const struct target *t)
{
	char path[PATH_MAX], cpu[16];
	const char *argv[WORDS_MAX] = {path,         "--run-dir",   t->run_dir, "--worker-cpus",
				       cpu,          "--log-level", "error",    "--kicker-cpu",
				       o->kicker_cpu};
	char *args[WORDS_MAX];
	pid_t pid;
	int err;

	err = beside(path, "xvswitchd");
	if (err)
		return err;
	snprintf(cpu, sizeof(cpu), "%d", MAX(o->switch_cpu, 0));
	if (o->scenario->fdb_size) {
		argv[9] = "--fdb-size";
		argv[10] = o->scenario->fdb_size;
	}
	memcpy(args, argv, sizeof(args)); /* execv() does not write to them */
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execv(path, args);
		_exit(127);
	}
	return pid < 0 ? -errno : pid;
}

static bool ended(pid_t pid)
{
	return waitpid(pid, NULL, WNOHANG) == pid;
}

static int wait_ready(struct target *t)
{
	char path[sizeof(t->run_dir) + 16];

	snprintf(path, sizeof(path), "%s/control.sock", t->run_dir);
	for (unsigned int i = 0; i < START_TRIES && !interrupted(); i++) {
		if (access(path, F_OK) == 0)
			return 0;
		if (ended(t->pid)) {
			t->pid = 0;
			return -ECHILD;
		}
		pause_ns(START_WAIT);
	}
	return -ETIMEDOUT;
}

static void end_daemon(struct target *t)
{
	if (t->pid <= 0)
		return;
	kill(t->pid, SIGTERM);
	kill(t->pid, SIGCONT);
	for (unsigned int i = 0; i < END_TRIES; i++) {
		if (ended(t->pid))
			return;
		pause_ns(START_WAIT);
	}
	kill(t->pid, SIGKILL);
	waitpid(t->pid, NULL, 0);
}

static void remove_dir(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *e;

	while (dir && (e = readdir(dir)))
		unlinkat(dirfd(dir), e->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(path);
}

static int start_own(struct options *o, unsigned int nports)
{
	struct target *t = &o->target[o->ntargets++];
	int err;

	strcpy(t->name, "xvswitch");
	strcpy(t->run_dir, "/tmp/xvs-bench-XXXXXX");
	if (!mkdtemp(t->run_dir)) {
		t->run_dir[0] = 0;
		return -errno;
	}
	t->ours = true;
	t->pid = start_daemon(o, t);
	if (t->pid < 0)
		return (int)t->pid;
	err = wait_ready(t);
	return err ? err : add_ports(t, nports, o->pairs);
}

static int use_running(struct options *o, unsigned int nports)
{
	struct target *t = &o->target[o->ntargets++];

	strcpy(t->name, "xvswitch");
	if (snprintf(t->run_dir, sizeof(t->run_dir), "%s", o->run_dir) >= (int)sizeof(t->run_dir))
		return -ENAMETOOLONG;
	return add_ports(t, nports, o->pairs);
}

int daemons_start(struct options *o)
{
	const unsigned int *ports = o->scenario->ports;
	int err = 0;

	if (o->run_dir)
		err = use_running(o, o->guests ? o->guests : ports[0]);
	else if (!o->ntargets && o->guests)
		err = start_own(o, o->guests);
	else if (!o->ntargets)
		for (unsigned int i = 0; i < PARAMS_MAX && ports[i] && !err; i++)
			err = start_own(o, ports[i]);
	if (!err && interrupted())
		err = -EINTR;
	if (err)
		fprintf(stderr, "xvs-bench: making ports on xvswitchd: %s\n", strerror(-err));
	return err;
}

void daemons_end(struct options *o)
{
	for (unsigned int i = 0; i < o->ntargets; i++) {
		struct target *t = &o->target[i];

		if (t->ours) {
			end_daemon(t);
			remove_dir(t->run_dir);
		} else if (t->run_dir[0]) {
			del_ports(t);
		}
	}
}
