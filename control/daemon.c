/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Putting the parts together. Runs on the main thread, which becomes the control thread.
 *
 * Order of the start: the run directory is locked before anything is made, so that a second
 * daemon finds out before it can take a port's socket away from the first; signals are taken over
 * before threads exist, because threads inherit the mask; the configuration is applied before
 * the control socket appears, so that a client that can connect sees the finished switch. The
 * stop goes the other way: nobody may ask any more, then ports close, then workers end.
 *
 * The lock is flock(2) on the directory itself: it goes away with the process however that ends,
 * needs no file that could be left behind, and, unlike a connection attempt, also excludes a
 * daemon that is still starting.
 *
 * The control thread keeps off the workers' CPUs if there are others: a worker never sleeps, and
 * the two would share a CPU by turns of milliseconds.
 */
#include "control/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/copy.h"
#include "base/log.h"
#include "control/commands.h"
#include "control/link_watch.h"
#include "control/loop.h"
#include "control/port_admin.h"
#include "control/server.h"
#include "control/workers.h"
#include "ring/guest_mem.h"
#include "switch/vswitch.h"

#define AREA         "daemon"
#define RUN_DIR_MODE 0755
#define CONTROL_MODE 0660
#define WATCH_MS     100
#define TICK_MS      1000

struct daemon {
	const struct options *options;
	int run_dir; /* locked */
	struct cpu_list worker_cpus;
	struct loop *loop;
	struct loop_source *watch_timer;
	struct loop_source *tick_timer;
	struct vswitch *sw;
	struct port_admin *ports;
	struct workers workers;
	struct link_watch *links;
	struct command_target target;
	struct server *server;
};

/* ---- callbacks ---- */

static void on_signal(void *ctx, int signo)
{
	const struct daemon *d = ctx;

	log_info(AREA, "stopping on signal %d (%s)", signo, strsignal(signo));
	loop_stop(d->loop);
}

static void on_watch(void *ctx)
{
	const struct daemon *d = ctx;

	port_admin_watch(d->ports);
}

static void on_tick(void *ctx)
{
	struct daemon *d = ctx;

	vswitch_tick(d->sw);
	workers_sample(&d->workers, d->sw);
	port_admin_link_changed(d->ports, NULL);
}

static void on_link(void *ctx, const char *device)
{
	const struct daemon *d = ctx;

	port_admin_link_changed(d->ports, device);
}

/* ---- process ---- */

/* As many descriptors as allowed: each queue of a guest takes up to three. */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static int lock_run_dir(struct daemon *d, struct refusal *why)
{
	const char *dir = d->options->run_dir;

	if (mkdir(dir, RUN_DIR_MODE) == 0) {
		if (chmod(dir, RUN_DIR_MODE))
			return refuse(why, -errno, "cannot set the mode of %s: %s", dir,
				      strerror(errno));
	} else if (errno != EEXIST) {
		return refuse(why, -errno,
			      "cannot make run directory %s: %s; make it, or choose another with "
			      "--run-dir",
			      dir, strerror(errno));
	}
	d->run_dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->run_dir < 0)
		return refuse(why, -errno, "cannot open run directory %s: %s", dir,
			      strerror(errno));
	if (flock(d->run_dir, LOCK_EX | LOCK_NB))
		return refuse(why, -errno,
			      "another xvswitchd is running here and serves %s/%s: stop it, or "
			      "choose another directory with --run-dir",
			      dir, PROTOCOL_SOCKET);
	return 0;
}

static bool in_list(const struct cpu_list *list, unsigned int cpu)
{
	for (unsigned int i = 0; i < list->count; i++)
		if (list->cpu[i] == cpu)
			return true;
	return false;
}

static int allowed_cpus(struct cpu_list *allowed, struct refusal *why)
{
	const int error = cpu_list_allowed(allowed);

	if (error || allowed->count == 0)
		return refuse(why, -EINVAL, "cannot find out which CPUs may be used");
	return 0;
}

static int choose_worker_cpus(const struct cpu_list *wanted, const struct cpu_list *allowed,
			      struct cpu_list *out, struct refusal *why)
{
	if (wanted->count == 0) {
		out->cpu[0] = allowed->cpu[allowed->count - 1];
		out->count = 1;
		return 0;
	}
	for (unsigned int i = 0; i < wanted->count; i++)
		if (!in_list(allowed, wanted->cpu[i]))
			return refuse(why, -EINVAL,
				      "--worker-cpus: this process may not run on CPU %u; "
				      "\"taskset -cp $$\" shows where it may",
				      wanted->cpu[i]);
	*out = *wanted;
	return 0;
}

int daemon_check(const struct options *options, struct refusal *why)
{
	struct cpu_list allowed, chosen;
	const int error = allowed_cpus(&allowed, why);

	return error ? error : choose_worker_cpus(&options->worker_cpus, &allowed, &chosen, why);
}

/* The last allowed CPU without a worker, or KICKER_NONE. */
static int choose_kicker_cpu(const struct daemon *d, const struct cpu_list *allowed)
{
	if (d->options->kicker_cpu != OPTION_KICKER_AUTO)
		return d->options->kicker_cpu;
	for (unsigned int i = allowed->count; i > 0; i--)
		if (!in_list(&d->worker_cpus, allowed->cpu[i - 1]))
			return (int)allowed->cpu[i - 1];
	return KICKER_NONE;
}

static void keep_off_workers(const struct daemon *d, const struct cpu_list *allowed)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (unsigned int i = 0; i < allowed->count; i++)
		if (!in_list(&d->worker_cpus, allowed->cpu[i]))
			CPU_SET(allowed->cpu[i], &set);
	if (CPU_COUNT(&set) > 0)
		pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

/* ---- start ---- */

static int prepare_process(struct refusal *why)
{
	int error;

	signal(SIGPIPE, SIG_IGN);
	umask(077);
	raise_file_limit();
	clock_init();
	copy_init();
	error = guest_mem_catch_sigbus();
	return error ? refuse(why, error, "cannot catch SIGBUS: %s", strerror(-error)) : 0;
}

static int start_loop(struct daemon *d, struct refusal *why)
{
	static const int stop_signal[] = {SIGTERM, SIGINT, SIGHUP};
	int error = loop_create(&d->loop);

	for (unsigned int i = 0; i < ARRAY_LEN(stop_signal) && !error; i++) {
		struct loop_source *source;

		error = loop_add_signal(d->loop, &source, stop_signal[i], on_signal, d);
	}
	if (!error)
		error = loop_add_timer(d->loop, &d->watch_timer, on_watch, d);
	if (!error)
		error = loop_add_timer(d->loop, &d->tick_timer, on_tick, d);
	return error ? refuse(why, error, "cannot make the event loop: %s", strerror(-error)) : 0;
}

static int start_switch(struct daemon *d, struct refusal *why)
{
	struct port_config ports = {
	    .run_dir = d->options->run_dir,
	    .socket_mode = d->options->socket_mode,
	    .socket_group = d->options->socket_group,
	    .umem_chunks = d->options->umem_chunks,
	};
	struct vswitch_config config = {
	    .pin = true,
	    .fdb_capacity = d->options->fdb_size,
	    .ageing = d->options->ageing,
	};
	struct cpu_list allowed;
	int error = allowed_cpus(&allowed, why);

	if (!error)
		error =
		    choose_worker_cpus(&d->options->worker_cpus, &allowed, &d->worker_cpus, why);
	if (error)
		return error;
	ports.kicker_cpu = choose_kicker_cpu(d, &allowed);
	config.worker_cpus = d->worker_cpus;
	keep_off_workers(d, &allowed);
	error = vswitch_create(&d->sw, &config);
	if (error)
		return refuse(why, error, "cannot start the workers: %s", strerror(-error));
	error = port_admin_create(&d->ports, d->loop, d->sw, &ports);
	return error ? refuse(why, error, "out of memory") : 0;
}

static int run_config_line(void *ctx, const struct command_line *line, struct refusal *why)
{
	struct daemon *d = ctx;
	json_t *result;
	const int error = command_run(&d->target, line, &result, why);

	if (!error)
		json_decref(result);
	return error;
}

static int start_watching(struct daemon *d, struct refusal *why)
{
	const int error = link_watch_create(&d->links, d->loop, on_link, d);

	if (error)
		return refuse(why, error, "cannot watch network devices: %s", strerror(-error));
	workers_sample(&d->workers, d->sw);
	loop_timer_set(d->watch_timer, WATCH_MS, WATCH_MS);
	loop_timer_set(d->tick_timer, TICK_MS, TICK_MS);
	return 0;
}

static int start_server(struct daemon *d, struct refusal *why)
{
	char path[2 * UNIX_PATH_LEN_MAX];
	const struct server_config config = {
	    .loop = d->loop,
	    .path = path,
	    .mode = CONTROL_MODE,
	    .group = UNIX_GROUP_NONE,
	    .handler = command_answer,
	    .ctx = &d->target,
	};
	int error;

	snprintf(path, sizeof(path), "%s/%s", d->options->run_dir, PROTOCOL_SOCKET);
	error = server_create(&d->server, &config, why->text, sizeof(why->text));
	if (error && !why->text[0])
		refuse(why, error, "cannot open %s: %s", path, strerror(-error));
	return error;
}

static int start(struct daemon *d, const struct config *config, struct refusal *why)
{
	int error = prepare_process(why);

	if (!error)
		error = lock_run_dir(d, why);
	if (!error)
		error = start_loop(d, why);
	if (!error)
		error = start_switch(d, why);
	if (error)
		return error;
	d->target = (struct command_target){
	    .sw = d->sw,
	    .ports = d->ports,
	    .workers = &d->workers,
	};
	error = start_watching(d, why);
	if (!error && config)
		error = config_for_each(config, run_config_line, d, why);
	if (!error)
		error = start_server(d, why);
	return error;
}

static void stop(struct daemon *d)
{
	server_destroy(d->server);
	link_watch_destroy(d->links);
	port_admin_destroy(d->ports);
	if (d->sw)
		vswitch_destroy(d->sw);
	if (d->loop)
		loop_destroy(d->loop);
	if (d->run_dir >= 0)
		close(d->run_dir);
}

static void log_ready(const struct daemon *d)
{
	log_info(AREA, "xvswitchd %s ready: %u worker%s, first on CPU %u; control socket %s/%s",
		 XVS_VERSION, d->worker_cpus.count, d->worker_cpus.count == 1 ? "" : "s",
		 d->worker_cpus.cpu[0], d->options->run_dir, PROTOCOL_SOCKET);
}

int daemon_run(const struct options *options, const struct config *config, struct refusal *why)
{
	struct daemon d = {.options = options, .run_dir = -1};
	int error = start(&d, config, why);

	if (!error) {
		log_ready(&d);
		error = loop_run(d.loop);
		if (error)
			refuse(why, error, "the event loop failed: %s", strerror(-error));
	}
	stop(&d);
	return error;
}
