/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Interrupting system calls by a signal.
 *
 * The handler is installed without SA_RESTART and does nothing: delivery alone ends a sleeping
 * call. A thread that does not sleep loses a microsecond. SIGUSR1, because its default action is
 * the end of the process: nobody sends it to a daemon that has not asked for it.
 *
 * The alarm is a POSIX timer that signals the thread which made it (SIGEV_THREAD_ID), periodically:
 * a single shot could come before the call it is meant for.
 *
 * Rejected: setting O_NONBLOCK before each call, which the other owner can undo in between; a
 * thread of its own for such calls, of which a hostile peer could make as many as it likes.
 */
#include "base/interrupt.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

/* The C library of Debian 12 has the field, but not yet its name. */
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static void on_interrupt(int sig)
{
	(void)sig;
}

int interrupt_install(void)
{
	struct sigaction sa = {.sa_handler = on_interrupt};

	sigemptyset(&sa.sa_mask);
	return sigaction(SIGUSR1, &sa, NULL) ? -errno : 0;
}

void interrupt_thread(pthread_t thread)
{
	pthread_kill(thread, SIGUSR1);
}

int interrupt_alarm_start(timer_t *alarm, long ns)
{
	const struct itimerspec period = {.it_interval.tv_nsec = ns, .it_value.tv_nsec = ns};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
	timer_t timer;

	event.sigev_notify_thread_id = gettid();
	if (timer_create(CLOCK_MONOTONIC, &event, &timer))
		return -errno;
	if (timer_settime(timer, 0, &period, NULL)) {
		const int err = -errno;

		timer_delete(timer);
		return err;
	}
	*alarm = timer;
	return 0;
}

void interrupt_alarm_stop(timer_t alarm)
{
	timer_delete(alarm);
}
