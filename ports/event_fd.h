/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Event descriptors that a front-end sent: eventfds whose counter and O_NONBLOCK flag it shares
 * with us and may change at any time. All functions: control thread, which none of them holds up
 * for more than EVENT_FD_PATIENCE_NS, whatever the front-end does.
 */
#ifndef XVS_PORTS_EVENT_FD_H
#define XVS_PORTS_EVENT_FD_H

#include <stdbool.h>

#define EVENT_FD_PATIENCE_NS 1000000 /* 1 ms */

/* 0 if fd is an eventfd and now is non-blocking, else -EBADF. */
int event_fd_check(int fd);

/*
 * True when a thread may sleep in a write to it: the front-end has taken the non-blocking flag
 * away, or it has filled the counter, and may have given the flag back to hide the sleeper.
 */
bool event_fd_may_sleep(int fd);

/* Adds 1, unless the counter is full. -1 is fine. */
void event_fd_signal(int fd);

/* Wakes a thread that sleeps in a write to it, and makes it non-blocking again. */
void event_fd_unblock(int fd);

#endif
