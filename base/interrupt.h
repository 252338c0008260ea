/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Getting a thread out of a system call in which somebody else made it sleep.
 *
 * A descriptor that a front-end sent is one open file with two owners: it can change O_NONBLOCK
 * and the contents at any time, also between our check and our call. So a call on it that must not
 * sleep for ever is made interruptible instead: a signal whose handler does nothing ends it with
 * EINTR.
 */
#ifndef XVS_BASE_INTERRUPT_H
#define XVS_BASE_INTERRUPT_H

#include <pthread.h>
#include <time.h>

/*
 * Installs the handler (process-wide, any number of times). Needed before the others. Returns 0 or
 * a negative errno. Threads that are to be interrupted must not block SIGUSR1.
 */
int interrupt_install(void);

/* The system call in which the thread sleeps, if any, returns EINTR. */
void interrupt_thread(pthread_t thread);

/*
 * Interrupts the calling thread every `ns` (1..999999999) from now on, so that one signal that
 * comes just before the call does not matter. Returns 0 or a negative errno.
 */
int interrupt_alarm_start(timer_t *alarm, long ns);
void interrupt_alarm_stop(timer_t alarm);

#endif
