/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nic: between a guest and a network device through AF_XDP, on veth pairs in a namespace of our
 * own, so that nothing of the machine's network is touched.
 *
 *     guest -- xvswitchd -- xvs0 ==== xvs1     direction to-nic: guest sends, xvs1 counts
 *                                              direction to-guest: bare sender on xvs1
 *             bare sender -- xvs2 ==== xvs3    direction bare: what the kernel allows at best
 *
 * The stack behind xvs1 and xvs3 drops the frames: nobody wants their type. In copy mode the
 * system call does the kernel's work, in the daemon's kicker thread. Where there are only two CPUs,
 * that thread shares this one's CPU, so the guest sleeps while its ring is full (not with
 * --kicker-cpu none); the bare sender, too, has this CPU. to-guest sends and receives in this
 * thread, which also does the kernel's work of receiving: it is no measure of the switch alone.
 *
 * The namespace is entered before the daemon is started, which so inherits it, and vanishes with
 * the last process in it.
 */
#include <errno.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "bench/bare.h"
#include "bench/bench.h"

#define PAIRS      2u
#define WARM_UP_MS 5
#define REST_NS    100000 /* the guest's ring holds more than goes out in this time */

enum direction { BARE, TO_NIC, TO_GUEST };
static const char *const direction_name[] = {"bare", "to-nic", "to-guest"};

static bool kicker_here;    /* the kicker thread may need this CPU */
static struct bare *bare;   /* on xvs2 */
static struct bare *source; /* on xvs1 */

/* ---- devices ---- */

extern char **environ;

static int ip(const char *const argv[])
{
	char **args;
	int err, status;
	pid_t pid;

	memcpy(&args, &argv, sizeof(args)); /* posix_spawnp() does not write to them */
	err = posix_spawnp(&pid, "ip", NULL, NULL, args, environ);
	if (err)
		return -err;
	if (waitpid(pid, &status, 0) < 0)
		return -errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}

static int up(const char *device)
{
	const char *const argv[] = {"ip",  "link", "set",         device, "up",
				    "arp", "off",  "addrgenmode", "none", NULL};

	return ip(argv);
}

int nic_prepare(const struct options *o)
{
	char name[2][8];
	const char *const argv[] = {"ip",   "link", "add",  name[0], "type",
				    "veth", "peer", "name", name[1], NULL};
	int err = 0;

	if (o->ntargets || o->run_dir) {
		fprintf(stderr, "xvs-bench: nic only measures an xvswitchd of its own\n");
		return -EINVAL;
	}
	if (unshare(CLONE_NEWNET))
		return -errno;
	for (unsigned int i = 0; i < PAIRS && !err; i++) {
		snprintf(name[0], sizeof(name[0]), "xvs%u", 2 * i);
		snprintf(name[1], sizeof(name[1]), "xvs%u", 2 * i + 1);
		err = ip(argv);
		if (!err)
			err = up(name[0]);
		if (!err)
			err = up(name[1]);
	}
	return err;
}

/* Frames that a device of this namespace has received. */
static uint64_t received(const char *device)
{
	const size_t len = strlen(device);
	FILE *f = fopen("/proc/thread-self/net/dev", "re");
	unsigned long long bytes, packets, found = 0;
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		const char *text = line + strspn(line, " ");

		if (strncmp(text, device, len) == 0 && text[len] == ':' &&
		    sscanf(text + len + 1, "%llu %llu", &bytes, &packets) == 2)
			found = packets;
	}
	if (f)
		fclose(f);
	return found;
}

/* ---- the three directions: frames moved until `end` ---- */

static uint64_t run_bare(struct bench_system *s, uint64_t end)
{
	const uint64_t before = received("xvs3");

	(void)s;
	while (clock_ticks() < end)
		bare_send(bare);
	return received("xvs3") - before;
}

static uint64_t run_to_nic(struct bench_system *s, uint64_t end)
{
	const struct timespec rest = {.tv_nsec = REST_NS};
	const uint64_t before = received("xvs1");

	while (clock_ticks() < end) {
		while (fast_tx_burst(s->tx[0], FAST_BATCH, false))
			;
		fast_tx_kick(s->tx[0]);
		if (kicker_here)
			nanosleep(&rest, NULL);
	}
	return received("xvs1") - before;
}

static uint64_t run_to_guest(struct bench_system *s, uint64_t end)
{
	const uint64_t before = s->rx[0]->received;

	while (clock_ticks() < end) {
		bare_send(source);
		while (fast_rx_burst(s->rx[0], FAST_BATCH, false))
			;
	}
	return s->rx[0]->received - before;
}

static void measure(struct bench_system *s, const struct options *o, unsigned int direction,
		    struct slice *out)
{
	static uint64_t (*const run[])(struct bench_system *, uint64_t) = {
	    [BARE] = run_bare, [TO_NIC] = run_to_nic, [TO_GUEST] = run_to_guest};
	const uint64_t hz = clock_ticks_per_second();
	uint64_t start, n;

	fast_rx_kick(s->rx[0]);
	run[direction](s, clock_ticks() + hz / 1000 * WARM_UP_MS);
	start = clock_ticks();
	n = run[direction](s, start + hz / 1000 * o->slice_ms);
	out->value = (double)n * (double)hz / 1e6 / (double)(clock_ticks() - start);
}

/* ---- frame of the scenario ---- */

static void report(const struct options *o, const struct slices *s, const struct slice_ops *ops,
		   unsigned int size, json_t *results)
{
	report_rates(o, s, ops, size, results);
	for (enum mode mode = 0; mode < MODES && !o->json; mode++) {
		const double best = slices_summary(s, 0, BARE, mode).value;

		if (best > 0)
			printf("to-nic, %s: %.0f %% of bare\n", mode_name(mode),
			       100 * slices_summary(s, 0, TO_NIC, mode).value / best);
	}
}

/* Frames for nobody: the switch sends what comes from the guest to the device. */
static void outwards(struct bench_system *s, unsigned int size)
{
	const struct mac outside = {{0x02, 0, 0, 0, 0xff, 1}};

	system_set_frame(s, 0, &outside, size);
}

static const struct slice_ops ops = {
    .measure = measure,
    .set_size = outwards,
    .unit = "direction",
    .nparams = 3,
    .param = {BARE, TO_NIC, TO_GUEST},
    .param_name = direction_name,
};

int nic_run(const struct options *o, json_t *results)
{
	static const char *const words[] = {"port", "add", "bench-nic", "af-xdp", "xvs0", NULL};
	const struct mac outside = {{0x02, 0, 0, 0, 0xff, 1}}, guest = system_mac(0);
	const unsigned int size = o->size[0] ? o->size[0] : FAST_IMIX_AVERAGE;
	int err;

	kicker_here = strcmp(o->kicker_cpu, "none") != 0;
	err = daemon_ctl(&o->target[0], words, NULL);
	if (!err)
		err = bare_create(&bare, "xvs2", &outside, &guest, size);
	if (!err)
		err = bare_create(&source, "xvs1", &guest, &outside, size);
	if (!err)
		err = slices_scenario(o, &ops, report, results);
	bare_destroy(source);
	bare_destroy(bare);
	return err;
}
