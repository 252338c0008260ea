/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The event loop: one epoll instance, a sorted list of timers, signals through signalfd.
 *
 * One round of loop_run_once():
 *     wait for events, at most until the first timer is due
 *     call the sources of up to EVENTS_MAX events
 *     call the timers that are due
 *     free the sources that were removed meanwhile
 *
 * Removing is safe everywhere because it only takes a source out of its list and of epoll, and
 * marks it dead; an event of the same round that still points to it finds the mark. The memory
 * goes when the round is over, when nothing can point to it any more.
 *
 * Timers are a list sorted by due time, not descriptors: there is about one per port, they are
 * set far more often than they fire, and no file descriptor is spent. Insertion is linear, which
 * for a thousand ports still is a microsecond. timerfd was rejected for its descriptors and its
 * ways to fail.
 *
 * Nothing here can be full. Starvation is prevented by the callbacks' budget (LOOP_BUDGET) and
 * by level-triggered events: what a callback leaves behind is reported again next round.
 */
#include "control/loop.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"

#define EVENTS_MAX 64
#define NS_PER_MS  UINT64_C(1000000)

enum source_kind { SOURCE_FD, SOURCE_TIMER, SOURCE_SIGNAL };

struct loop_source {
	struct loop *loop;
	enum source_kind kind;
	bool dead;
	union {
		loop_fd_fn *fd;
		loop_timer_fn *timer;
		loop_signal_fn *signal;
	} fn;
	void *ctx;
	int fd; /* the caller's, or our signalfd; -1 for timers */
	/* timers */
	bool running;
	uint64_t due_ns;
	uint64_t period_ns;
	TAILQ_ENTRY(loop_source) due_link;
	/* in loop->sources, or in loop->graveyard when dead */
	LIST_ENTRY(loop_source) link;
};

LIST_HEAD(source_list, loop_source);
TAILQ_HEAD(due_list, loop_source);

struct loop {
	int epoll_fd;
	bool stop;
	bool in_round;
	struct source_list sources;
	struct source_list graveyard;
	struct due_list timers; /* running ones, first due first */
};

int loop_create(struct loop **out)
{
	struct loop *loop = calloc(1, sizeof(*loop));

	if (!loop)
		return -ENOMEM;
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd < 0) {
		const int err = -errno;

		free(loop);
		return err;
	}
	LIST_INIT(&loop->sources);
	LIST_INIT(&loop->graveyard);
	TAILQ_INIT(&loop->timers);
	*out = loop;
	return 0;
}

static void bury(struct loop *loop)
{
	struct loop_source *s;

	while ((s = LIST_FIRST(&loop->graveyard))) {
		LIST_REMOVE(s, link);
		free(s);
	}
}

void loop_destroy(struct loop *loop)
{
	if (!loop)
		return;
	while (!LIST_EMPTY(&loop->sources))
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): does not see LIST_REMOVE() */
		loop_remove(LIST_FIRST(&loop->sources));
	bury(loop);
	close(loop->epoll_fd);
	free(loop);
}

static struct loop_source *source_new(struct loop *loop, enum source_kind kind, int fd, void *ctx)
{
	struct loop_source *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->loop = loop;
	s->kind = kind;
	s->fd = fd;
	s->ctx = ctx;
	LIST_INSERT_HEAD(&loop->sources, s, link);
	return s;
}

static int source_watch(struct loop_source *s, uint32_t events, int op)
{
	struct epoll_event ev = {.events = events, .data.ptr = s};

	return epoll_ctl(s->loop->epoll_fd, op, s->fd, &ev) ? -errno : 0;
}

void loop_remove(struct loop_source *s)
{
	if (!s || s->dead)
		return;
	loop_timer_stop(s);
	if (s->fd >= 0)
		epoll_ctl(s->loop->epoll_fd, EPOLL_CTL_DEL, s->fd, NULL);
	if (s->kind == SOURCE_SIGNAL)
		close(s->fd);
	s->dead = true;
	LIST_REMOVE(s, link);
	LIST_INSERT_HEAD(&s->loop->graveyard, s, link);
	if (!s->loop->in_round)
		bury(s->loop);
}

int loop_add_fd(struct loop *loop, struct loop_source **out, int fd, uint32_t events,
		loop_fd_fn *fn, void *ctx)
{
	struct loop_source *s = source_new(loop, SOURCE_FD, fd, ctx);
	int err;

	if (!s)
		return -ENOMEM;
	s->fn.fd = fn;
	err = source_watch(s, events, EPOLL_CTL_ADD);
	if (err) {
		s->fd = -1; /* not ours in epoll: it may be there for another source */
		loop_remove(s);
		return err;
	}
	*out = s;
	return 0;
}

int loop_mod_fd(struct loop_source *s, uint32_t events)
{
	return source_watch(s, events, EPOLL_CTL_MOD);
}

int loop_add_timer(struct loop *loop, struct loop_source **out, loop_timer_fn *fn, void *ctx)
{
	struct loop_source *s = source_new(loop, SOURCE_TIMER, -1, ctx);

	if (!s)
		return -ENOMEM;
	s->fn.timer = fn;
	*out = s;
	return 0;
}

static void timer_insert(struct loop_source *s)
{
	struct due_list *timers = &s->loop->timers;
	struct loop_source *after;

	/* From the end: a new timer is usually due later than the others. */
	TAILQ_FOREACH_REVERSE(after, timers, due_list, due_link)
	{
		if (after->due_ns <= s->due_ns)
			break;
	}
	if (after)
		TAILQ_INSERT_AFTER(timers, after, s, due_link);
	else
		TAILQ_INSERT_HEAD(timers, s, due_link);
	s->running = true;
}

void loop_timer_stop(struct loop_source *s)
{
	if (!s->running)
		return;
	TAILQ_REMOVE(&s->loop->timers, s, due_link);
	s->running = false;
}

void loop_timer_set(struct loop_source *s, uint64_t first_ms, uint64_t period_ms)
{
	loop_timer_stop(s);
	s->due_ns = clock_ns() + first_ms * NS_PER_MS;
	s->period_ns = period_ms * NS_PER_MS;
	timer_insert(s);
}

bool loop_timer_running(const struct loop_source *s)
{
	return s->running;
}

int loop_add_signal(struct loop *loop, struct loop_source **out, int signo, loop_signal_fn *fn,
		    void *ctx)
{
	struct loop_source *s;
	sigset_t set;
	int fd, err;

	sigemptyset(&set);
	if (sigaddset(&set, signo))
		return -errno;
	err = -pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (err)
		return err;
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	s = source_new(loop, SOURCE_SIGNAL, fd, ctx);
	if (!s) {
		close(fd);
		return -ENOMEM;
	}
	s->fn.signal = fn;
	err = source_watch(s, EPOLLIN, EPOLL_CTL_ADD);
	if (err) {
		loop_remove(s);
		return err;
	}
	*out = s;
	return 0;
}

static void call_signal(struct loop_source *s)
{
	struct signalfd_siginfo info;

	if (read(s->fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		s->fn.signal(s->ctx, (int)info.ssi_signo);
}

static int run_events(const struct epoll_event *events, int n)
{
	int called = 0;

	for (int i = 0; i < n; i++) {
		struct loop_source *s = events[i].data.ptr;

		if (s->dead)
			continue;
		if (s->kind == SOURCE_SIGNAL)
			call_signal(s);
		else
			s->fn.fd(s->ctx, events[i].events);
		called++;
	}
	return called;
}

/* Calls what is due at `now`; timers set by these callbacks are due later. */
static int run_timers(struct loop *loop, uint64_t now)
{
	struct loop_source *s;
	int called = 0;

	while ((s = TAILQ_FIRST(&loop->timers)) && s->due_ns <= now) {
		loop_timer_stop(s);
		if (s->period_ns) {
			/* After a long pause the missed calls become one. */
			s->due_ns = MAX(s->due_ns + s->period_ns, now + 1);
			timer_insert(s);
		}
		s->fn.timer(s->ctx);
		called++;
	}
	return called;
}

/* The shorter of timeout_ms (-1: for ever) and the time to the first timer, rounded up. */
static int wait_ms(const struct loop *loop, int timeout_ms)
{
	const struct loop_source *s = TAILQ_FIRST(&loop->timers);
	uint64_t now, left;

	if (!s)
		return timeout_ms;
	now = clock_ns();
	left = s->due_ns > now ? (s->due_ns - now + NS_PER_MS - 1) / NS_PER_MS : 0;
	if (timeout_ms >= 0 && left > (uint64_t)timeout_ms)
		return timeout_ms;
	return (int)MIN(left, UINT64_C(3600000));
}

int loop_run_once(struct loop *loop, int timeout_ms)
{
	struct epoll_event events[EVENTS_MAX];
	int n = epoll_wait(loop->epoll_fd, events, EVENTS_MAX, wait_ms(loop, timeout_ms));
	int called;

	if (n < 0) {
		if (errno != EINTR)
			return -errno;
		n = 0;
	}
	loop->in_round = true;
	called = run_events(events, n);
	called += run_timers(loop, clock_ns());
	loop->in_round = false;
	bury(loop);
	return called;
}

int loop_run(struct loop *loop)
{
	int called = 0;

	while (!loop->stop && called >= 0)
		called = loop_run_once(loop, -1);
	loop->stop = false;
	return MIN(called, 0);
}

void loop_stop(struct loop *loop)
{
	loop->stop = true;
}
