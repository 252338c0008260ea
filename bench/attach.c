/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * attach: how long a guest waits for its network. From connect() on the port's socket, over the
 * vhost-user handshake, to the moment when another guest, attached before, has its first frame.
 * The guest's memory is made beforehand. Repeated options.count times; each time the guest
 * leaves properly first.
 */
#include "bench/bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/cpu.h"

#define FIRST_FRAME_NS UINT64_C(2000000000)
#define SEND_AGAIN_NS  UINT64_C(1000000)
#define SETTLE_NS      20000000

static const uint8_t frame[64] = {
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02, 0, 0, 0, 0, 0x0a, 0x88, 0xb5,
};

/* Sends from `a` until `b` has a frame. */
static int first_frame(struct guest *a, struct guest *b)
{
	const uint64_t end = clock_ns() + FIRST_FRAME_NS;
	uint64_t next = 0;
	uint8_t buf[2048];
	int n;

	while ((n = guest_rx(b, 0, buf, sizeof(buf))) == 0) {
		const uint64_t now = clock_ns();

		if (now > end)
			return -ETIMEDOUT;
		if (now >= next) {
			next = now + SEND_AGAIN_NS;
			n = guest_tx(a, 0, frame, sizeof(frame), GUEST_TX_SINGLE);
			if (n)
				return n;
			guest_tx_flush(a, 0);
		}
		cpu_relax();
	}
	return n < 0 ? n : 0;
}

/* One attachment; *ms = time to the first frame. */
static int once(const struct target *t, struct guest *b, const struct guest_config *config,
		double *ms)
{
	const struct timespec settle = {.tv_nsec = SETTLE_NS};
	static struct guest a;
	uint8_t buf[2048];
	uint64_t start;
	int err;

	err = guest_create(&a, config);
	if (err)
		return err;
	start = clock_ns();
	err = guest_attach(&a, t->path[0]);
	if (!err)
		err = first_frame(&a, b);
	*ms = (double)(clock_ns() - start) / 1e6;
	if (!err)
		err = guest_stop(&a);
	guest_destroy(&a);
	nanosleep(&settle, NULL);
	while (guest_rx(b, 0, buf, sizeof(buf)) > 0)
		;
	return err;
}

static void report(const struct options *o, const struct target *t, double *ms, json_t *results)
{
	const double median = median_of(ms, o->count);

	if (!o->json)
		printf("%-12s attach: median %.2f ms, fastest %.2f, slowest %.2f (%u times)\n",
		       t->name, median, ms[0], ms[o->count - 1], o->count);
	json_array_append_new(results,
			      json_pack("{s:s, s:s, s:f, s:f, s:f, s:i}", "system", t->name,
					"scenario", "attach", "median_ms", median, "min_ms", ms[0],
					"max_ms", ms[o->count - 1], "count", (int)o->count));
}

static int one_target(const struct options *o, const struct target *t, double *ms, json_t *results)
{
	struct guest_config config = guest_config_default();
	static struct guest b;
	int err;

	err = guest_create(&b, &config);
	if (err)
		return err;
	err = guest_attach(&b, t->path[1]);
	for (unsigned int i = 0; i < o->count && !err; i++)
		err = interrupted() ? -EINTR : once(t, &b, &config, &ms[i]);
	if (!err)
		report(o, t, ms, results);
	if (b.fe.fd >= 0 && !err)
		err = guest_stop(&b);
	guest_destroy(&b);
	return err;
}

int attach_run(const struct options *o, json_t *results)
{
	double *ms = calloc(o->count, sizeof(*ms));
	int err = ms ? 0 : -ENOMEM;

	for (unsigned int i = 0; i < o->ntargets && !err; i++)
		err = one_target(o, &o->target[i], ms, results);
	free(ms);
	return err;
}
