/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control thread's event loop: descriptors, timers and signals, one callback at a time.
 *
 * Rules for callbacks:
 *   - They never block. A peer that sends a lot gets LOOP_BUDGET messages per callback; the loop
 *     is level-triggered and comes back for the rest after everybody else had a turn.
 *   - They may remove and add any source, also their own, also one whose event is still pending
 *     in the same round: it is not called any more.
 *   - They may free what belongs to a source as soon as loop_remove() has returned.
 *
 * Single-threaded: all functions belong to the thread that runs the loop.
 */
#ifndef XVS_CONTROL_LOOP_H
#define XVS_CONTROL_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

/* Messages a callback may handle before it has to return. */
#define LOOP_BUDGET 16

struct loop;
struct loop_source; /* a descriptor, timer or signal that is watched */

/* `events`: EPOLLIN, EPOLLOUT, EPOLLHUP, ... as epoll reports them. */
typedef void loop_fd_fn(void *ctx, uint32_t events);
typedef void loop_timer_fn(void *ctx);
typedef void loop_signal_fn(void *ctx, int signo);

/* 0 or a negative errno. */
int loop_create(struct loop **out);

/* Frees the loop and all sources still in it; their descriptors stay the callers'. */
void loop_destroy(struct loop *loop);

/* Runs until loop_stop(). Returns 0, or a negative errno when waiting itself fails. */
int loop_run(struct loop *loop);

/*
 * One round: waits up to timeout_ms (-1: until something happens), then calls what is due.
 * Returns how many callbacks were called, or a negative errno. For tests and tools.
 */
int loop_run_once(struct loop *loop, int timeout_ms);

/* Makes loop_run() return after the callbacks of this round; before it runs: at once. */
void loop_stop(struct loop *loop);

/*
 * Watches fd for `events`. The descriptor stays the caller's, who removes the source before
 * closing it. 0 or a negative errno (-EPERM: not pollable, for example a regular file).
 */
int loop_add_fd(struct loop *loop, struct loop_source **out, int fd, uint32_t events,
		loop_fd_fn *fn, void *ctx);

/* Changes the events of a descriptor; 0 watches only for errors and hang-up. */
int loop_mod_fd(struct loop_source *source, uint32_t events);

/* A timer, not yet running: loop_timer_set() starts it. 0 or -ENOMEM. */
int loop_add_timer(struct loop *loop, struct loop_source **out, loop_timer_fn *fn, void *ctx);

/*
 * (Re)starts a timer: due in first_ms, then each period_ms (0: once). A one-shot timer that
 * fired stays there, stopped, to be set again. Cannot fail.
 */
void loop_timer_set(struct loop_source *timer, uint64_t first_ms, uint64_t period_ms);
void loop_timer_stop(struct loop_source *timer);
bool loop_timer_running(const struct loop_source *timer);

/*
 * Takes over a signal: blocks it in the calling thread and calls fn from the loop instead. Call
 * before other threads start, so that they inherit the blocked mask. 0 or a negative errno.
 */
int loop_add_signal(struct loop *loop, struct loop_source **out, int signo, loop_signal_fn *fn,
		    void *ctx);

/* Forgets the source; NULL is fine. A signal stays blocked. */
void loop_remove(struct loop_source *source);

#endif
