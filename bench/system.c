/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A system under test: a switch and the two guests that we play on it.
 *
 * Guests are attached by the library of tests/guest and then handed to its fast driver. Before
 * anything is measured each guest has sent a frame that the other received, so that a learning
 * switch knows both addresses and nothing is flooded.
 *
 * Systems that were given with a process id are stopped and continued by signal; all are
 * continued before this process ends on any path. Ports on an xvswitchd are made with the xvsctl
 * that stands beside this program.
 */
#include "bench/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/mac.h"

#define FIRST_FRAME_NS       UINT64_C(3000000000)
#define FIRST_FRAME_RETRY_NS UINT64_C(10000000)

extern char **environ;

static struct mac mac_of(unsigned int guest)
{
	return (struct mac){{0x02, 0, 0, 0, 0, (uint8_t)(0x0a + guest)}};
}

static int guest_up(struct bench_system *s, unsigned int i, const struct options *o)
{
	struct guest_config c = guest_config_default();
	int err;

	c.npairs = o->pairs;
	c.ring_size = o->ring_size;
	c.huge = o->huge;
	/* no indirect descriptors: each frame is one descriptor */
	c.features &= ~FEATURE(VIRTIO_F_INDIRECT_DESC);
	if (o->pairs > 1)
		c.features |= FEATURE(VIRTIO_NET_F_MQ);
	err = guest_create(&s->guest[i], &c);
	if (err && c.huge) {
		c.huge = false;
		err = guest_create(&s->guest[i], &c);
		if (!err)
			fprintf(stderr,
				"xvs-bench: no huge pages free, guest memory uses small ones\n");
	}
	if (err)
		return err;
	return guest_attach(&s->guest[i], s->target->path[i]);
}

static void *aligned_zalloc(size_t size)
{
	void *p = aligned_alloc(CACHE_LINE, size);

	if (p)
		memset(p, 0, size);
	return p;
}

static int take_rings(struct bench_system *s, unsigned int i)
{
	s->tx[i] = aligned_zalloc(s->npairs * sizeof(struct fast_tx));
	s->rx[i] = aligned_zalloc(s->npairs * sizeof(struct fast_rx));
	if (!s->tx[i] || !s->rx[i])
		return -ENOMEM;
	for (unsigned int q = 0; q < s->npairs; q++) {
		if (fast_tx_init(&s->tx[i][q], &s->guest[i], q))
			return -ENOMEM;
		fast_rx_init(&s->rx[i][q], &s->guest[i], q);
	}
	return 0;
}

void system_set_size(struct bench_system *s, unsigned int size)
{
	for (unsigned int i = 0; i < 2; i++) {
		const struct mac src = mac_of(i), dst = mac_of(1 - i);

		for (unsigned int q = 0; q < s->npairs; q++)
			fast_tx_set_frame(&s->tx[i][q], &dst, &src, size);
	}
}

/* Takes all that has arrived at a guest; number of frames. */
static unsigned int drain(struct bench_system *s, unsigned int guest)
{
	unsigned int n = 0;

	for (unsigned int q = 0; q < s->npairs; q++)
		n += fast_rx_burst(&s->rx[guest][q], FAST_BATCH, false);
	return n;
}

int system_pass_one(struct bench_system *s, unsigned int from)
{
	const uint64_t end = clock_ns() + FIRST_FRAME_NS;
	uint64_t next = 0;

	while (drain(s, 1 - from) == 0) {
		const uint64_t now = clock_ns();

		if (now > end)
			return -ETIMEDOUT;
		if (now >= next) {
			next = now + FIRST_FRAME_RETRY_NS;
			fast_tx_burst(&s->tx[from][0], 1, false);
			fast_tx_kick(&s->tx[from][0]);
			fast_rx_kick(&s->rx[1 - from][0]);
		}
		drain(s, from);
		cpu_relax();
	}
	return 0;
}

int system_attach(struct bench_system *s, const struct target *target, const struct options *o)
{
	int err = 0;

	memset(s, 0, sizeof(*s));
	s->target = target;
	s->npairs = o->pairs;
	s->guest[0].fe.fd = -1;
	s->guest[1].fe.fd = -1;
	s->attached = true;
	for (unsigned int i = 0; i < 2 && !err; i++) {
		err = guest_up(s, i, o);
		if (!err)
			err = take_rings(s, i);
		if (err)
			fprintf(stderr, "xvs-bench: %s: attaching to %s: %s\n", target->name,
				target->path[i], strerror(-err));
	}
	if (err)
		return err;
	system_set_size(s, o->size[0]);
	err = system_pass_one(s, 0);
	if (!err)
		err = system_pass_one(s, 1);
	if (!err)
		err = system_pass_one(s, 0);
	if (err)
		fprintf(stderr, "xvs-bench: %s: frames do not get from guest to guest\n",
			target->name);
	return err;
}

void system_detach(struct bench_system *s)
{
	if (!s->attached)
		return;
	for (unsigned int i = 0; i < 2; i++) {
		if (s->guest[i].fe.fd >= 0)
			guest_stop(&s->guest[i]);
		for (unsigned int q = 0; s->tx[i] && q < s->npairs; q++)
			fast_tx_fini(&s->tx[i][q]);
		free(s->tx[i]);
		free(s->rx[i]);
		guest_destroy(&s->guest[i]);
	}
	s->attached = false;
}

int systems_attach(struct bench_system *s, const struct options *o)
{
	memset(s, 0, o->ntargets * sizeof(*s));
	for (unsigned int i = 0; i < o->ntargets; i++) {
		const int err = system_attach(&s[i], &o->target[i], o);

		if (err) {
			systems_detach(s, o);
			return err;
		}
	}
	return 0;
}

void systems_detach(struct bench_system *s, const struct options *o)
{
	for (unsigned int i = 0; i < o->ntargets; i++)
		system_detach(&s[i]);
}

void systems_turn(const struct bench_system *s, unsigned int n, unsigned int turn)
{
	for (unsigned int i = 0; i < n; i++) {
		if (i != turn && s[i].target->pid)
			kill(s[i].target->pid, SIGSTOP);
	}
	if (s[turn].target->pid)
		kill(s[turn].target->pid, SIGCONT);
}

void systems_resume(const struct bench_system *s, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		if (s[i].target->pid)
			kill(s[i].target->pid, SIGCONT);
	}
}

/* ---- ports on a running xvswitchd ---- */

/* Runs the xvsctl beside this program with the words of argv[1..]; 0 or negative errno. */
static int xvsctl(const char *argv[])
{
	posix_spawn_file_actions_t quiet;
	char self[PATH_MAX] = {0}, path[PATH_MAX + 16];
	char **args;
	int err, status;
	pid_t pid;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return -errno;
	snprintf(path, sizeof(path), "%s/xvsctl", dirname(self));
	argv[0] = path;
	memcpy(&args, &argv, sizeof(args)); /* posix_spawn() does not write to them */
	posix_spawn_file_actions_init(&quiet);
	posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	err = posix_spawn(&pid, path, &quiet, NULL, args, environ);
	posix_spawn_file_actions_destroy(&quiet);
	if (err)
		return -err;
	if (waitpid(pid, &status, 0) < 0)
		return -errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}

static const char *const port_name[2] = {"bench-a", "bench-b"};

int daemon_ports_add(struct options *o)
{
	struct target *t = &o->target[o->ntargets++];
	char queues[16];
	int err = 0;

	strcpy(t->name, "xvswitch");
	snprintf(queues, sizeof(queues), "%u", o->pairs);
	for (unsigned int i = 0; i < 2 && !err; i++) {
		const char *argv[] = {NULL,     "--run-dir",  o->run_dir,   "port",
				      "add",    port_name[i], "vhost-user", t->path[i],
				      "server", "queues",     queues,       NULL};

		if (snprintf(t->path[i], sizeof(t->path[i]), "%s/%s.sock", o->run_dir,
			     port_name[i]) >= (int)sizeof(t->path[i]))
			return -ENAMETOOLONG;
		err = xvsctl(argv);
	}
	if (err)
		daemon_ports_del(o);
	return err;
}

void daemon_ports_del(const struct options *o)
{
	for (unsigned int i = 0; i < 2; i++) {
		const char *argv[] = {NULL,  "--run-dir",  o->run_dir, "port",
				      "del", port_name[i], NULL};

		xvsctl(argv);
	}
}
