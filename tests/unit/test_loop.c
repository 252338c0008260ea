/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The event loop: removal from within callbacks, order and periods of timers, signals.
 */
#include <errno.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "control/loop.h"
#include "unit.h"

#define NFD 4

struct fixture {
	struct loop *loop;
	struct loop_source *source[NFD];
	int fd[NFD];
	unsigned int calls[NFD];
	unsigned int timer_calls;
	int order[8];
	int norder;
	int signo;
};

struct item {
	struct fixture *f;
	int index;
};

static struct item item[NFD];

static void fixture_open(struct fixture *f, loop_fd_fn *fn)
{
	memset(f, 0, sizeof(*f));
	CU_ASSERT_EQUAL_FATAL(loop_create(&f->loop), 0);
	for (int i = 0; i < NFD; i++) {
		item[i] = (struct item){f, i};
		f->fd[i] = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);
		CU_ASSERT_EQUAL_FATAL(
		    loop_add_fd(f->loop, &f->source[i], f->fd[i], EPOLLIN, fn, &item[i]), 0);
	}
}

static void fixture_close(struct fixture *f)
{
	loop_destroy(f->loop);
	for (int i = 0; i < NFD; i++)
		close(f->fd[i]);
}

static void count_only(void *ctx, uint32_t events)
{
	struct item *it = ctx;

	CU_ASSERT(events & EPOLLIN);
	it->f->calls[it->index]++;
}

static void remove_all(void *ctx, uint32_t events)
{
	struct item *it = ctx;

	count_only(ctx, events);
	for (int i = 0; i < NFD; i++) {
		loop_remove(it->f->source[i]);
		it->f->source[i] = NULL;
	}
}

static void level_triggered(void)
{
	struct fixture f;

	fixture_open(&f, count_only);
	CU_ASSERT_EQUAL(loop_run_once(f.loop, 0), NFD);
	CU_ASSERT_EQUAL(loop_run_once(f.loop, 0), NFD);
	CU_ASSERT_EQUAL(loop_mod_fd(f.source[1], 0), 0);
	loop_remove(f.source[2]);
	CU_ASSERT_EQUAL(loop_run_once(f.loop, 0), NFD - 2);
	CU_ASSERT_EQUAL(loop_mod_fd(f.source[1], EPOLLIN), 0);
	CU_ASSERT_EQUAL(loop_run_once(f.loop, 0), NFD - 1);
	CU_ASSERT(f.calls[0] == 4 && f.calls[1] == 3 && f.calls[2] == 2 && f.calls[3] == 4);
	fixture_close(&f);
}

/* One callback removes itself and all others, whose events are pending in the same round. */
static void removed_while_pending(void)
{
	struct fixture f;

	fixture_open(&f, remove_all);
	CU_ASSERT_EQUAL(loop_run_once(f.loop, 0), 1);
	CU_ASSERT_EQUAL(f.calls[0] + f.calls[1] + f.calls[2] + f.calls[3], 1);
	CU_ASSERT_EQUAL(loop_run_once(f.loop, 0), 0);
	fixture_close(&f);
}

static void bad_descriptors(void)
{
	struct loop_source *s = NULL;
	struct fixture f;
	FILE *file = tmpfile();

	fixture_open(&f, count_only);
	CU_ASSERT_EQUAL(loop_add_fd(f.loop, &s, fileno(file), EPOLLIN, count_only, &item[0]),
			-EPERM);
	CU_ASSERT_EQUAL(loop_add_fd(f.loop, &s, -1, EPOLLIN, count_only, &item[0]), -EBADF);
	/* The second source of one descriptor is refused and does not disturb the first. */
	CU_ASSERT_EQUAL(loop_add_fd(f.loop, &s, f.fd[0], EPOLLIN, count_only, &item[0]), -EEXIST);
	CU_ASSERT_PTR_NULL(s);
	CU_ASSERT_EQUAL(loop_run_once(f.loop, 0), NFD);
	loop_remove(NULL);
	fclose(file);
	fixture_close(&f);
}

static void note_timer(void *ctx)
{
	struct item *it = ctx;

	if (it->f->norder < 8)
		it->f->order[it->f->norder++] = it->index;
}

static void timers_fire_in_order(void)
{
	struct loop_source *t[3];
	struct fixture f;

	fixture_open(&f, remove_all);
	loop_run_once(f.loop, 0);
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(loop_add_timer(f.loop, &t[i], note_timer, &item[i]), 0);
		CU_ASSERT_FALSE(loop_timer_running(t[i]));
	}
	loop_timer_set(t[0], 20, 0);
	loop_timer_set(t[1], 1, 0);
	loop_timer_set(t[2], 10, 0);
	CU_ASSERT(loop_timer_running(t[0]));
	while (f.norder < 3)
		loop_run_once(f.loop, 1000);
	CU_ASSERT(f.order[0] == 1 && f.order[1] == 2 && f.order[2] == 0);
	CU_ASSERT_FALSE(loop_timer_running(t[0]));
	/* Set again, set once more, stopped: only what was set last counts. */
	loop_timer_set(t[1], 1, 0);
	loop_timer_set(t[1], 5, 0);
	loop_timer_set(t[2], 1, 0);
	loop_timer_stop(t[2]);
	while (f.norder < 4)
		loop_run_once(f.loop, 1000);
	CU_ASSERT_EQUAL(f.order[3], 1);
	CU_ASSERT_EQUAL(loop_run_once(f.loop, 20), 0);
	fixture_close(&f);
}

static void stop_on_third(void *ctx)
{
	struct fixture *f = ctx;

	if (++f->timer_calls == 3)
		loop_stop(f->loop);
}

static void periodic_timer_and_run(void)
{
	const uint64_t start = clock_ns();
	struct loop_source *t;
	struct fixture f;

	fixture_open(&f, remove_all);
	loop_run_once(f.loop, 0);
	CU_ASSERT_EQUAL(loop_add_timer(f.loop, &t, stop_on_third, &f), 0);
	loop_timer_set(t, 5, 5);
	CU_ASSERT_EQUAL(loop_run(f.loop), 0);
	CU_ASSERT_EQUAL(f.timer_calls, 3);
	CU_ASSERT(clock_ns() - start >= 15000000);
	loop_timer_stop(t);
	loop_stop(f.loop); /* before the run: ends it at once */
	CU_ASSERT_EQUAL(loop_run(f.loop), 0);
	fixture_close(&f);
}

static void remove_itself(void *ctx)
{
	struct fixture *f = ctx;

	f->timer_calls++;
	loop_remove(f->source[0]);
	f->source[0] = NULL;
}

static void timer_removes_itself(void)
{
	struct fixture f;

	fixture_open(&f, remove_all);
	loop_run_once(f.loop, 0);
	CU_ASSERT_EQUAL(loop_add_timer(f.loop, &f.source[0], remove_itself, &f), 0);
	loop_timer_set(f.source[0], 0, 1);
	while (!f.timer_calls)
		loop_run_once(f.loop, 100);
	CU_ASSERT_EQUAL(loop_run_once(f.loop, 10), 0);
	CU_ASSERT_EQUAL(f.timer_calls, 1);
	fixture_close(&f);
}

static void note_signal(void *ctx, int signo)
{
	struct fixture *f = ctx;

	f->signo = signo;
}

static void signals(void)
{
	struct loop_source *s;
	struct fixture f;

	fixture_open(&f, remove_all);
	loop_run_once(f.loop, 0);
	CU_ASSERT_EQUAL(loop_add_signal(f.loop, &s, SIGUSR1, note_signal, &f), 0);
	CU_ASSERT_EQUAL(loop_run_once(f.loop, 0), 0);
	raise(SIGUSR1);
	CU_ASSERT_EQUAL(loop_run_once(f.loop, 1000), 1);
	CU_ASSERT_EQUAL(f.signo, SIGUSR1);
	loop_remove(s);
	fixture_close(&f);
}

static const struct unit_case cases[] = {
    UNIT_CASE(level_triggered),
    UNIT_CASE(removed_while_pending),
    UNIT_CASE(bad_descriptors),
    UNIT_CASE(timers_fire_in_order),
    UNIT_CASE(periodic_timer_and_run),
    UNIT_CASE(timer_removes_itself),
    UNIT_CASE(signals),
};
UNIT_MAIN("loop", cases)
