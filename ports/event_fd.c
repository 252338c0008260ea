/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Event descriptors that a front-end sent.
 *
 * Only eventfds are accepted, since a write to anything else may sleep, or do things. An eventfd
 * sleeps only when its counter is full (write) or zero (read) and O_NONBLOCK is not set. The
 * front-end can bring about both, between any two of our calls. So the control thread reads and
 * writes under an alarm that interrupts it: a signal is then lost, which hurts nobody but the
 * front-end. Without the alarm one hostile guest could stop the control thread for ever.
 *
 * Workers write directly (ports/vhost_queue.c): they find out about a sleeping one in other ways.
 *
 * How a descriptor is known to be an eventfd: by its name in /proc, which the kernel makes and no
 * other file has. Rejected: trying a read or write on it.
 */
#include "ports/event_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/interrupt.h"

/* How often a counter is emptied, each of which may wake one sleeper. */
#define DRAIN_ROUNDS 16

static bool is_eventfd(int fd)
{
	static const char want[] = "anon_inode:[eventfd]";
	char path[40], target[sizeof(want)];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, target, sizeof(target));
	return n == (ssize_t)sizeof(want) - 1 && memcmp(target, want, (size_t)n) == 0;
}

static int set_nonblocking(int fd)
{
	const int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) ? -errno : 0;
}

int event_fd_check(int fd)
{
	return is_eventfd(fd) && !set_nonblocking(fd) ? 0 : -EBADF;
}

/* Nobody writes 2^64 - 2 signals one by one. */
static bool is_full(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};

	return poll(&p, 1, 0) != 1 || !(p.revents & POLLOUT);
}

bool event_fd_may_sleep(int fd)
{
	return !(fcntl(fd, F_GETFL) & O_NONBLOCK) || is_full(fd);
}

/* An alarm for calls that the front-end may have made blocking. False: none to be had. */
static bool guard(timer_t *alarm)
{
	return !interrupt_install() && !interrupt_alarm_start(alarm, EVENT_FD_PATIENCE_NS);
}

void event_fd_signal(int fd)
{
	const uint64_t one = 1;
	timer_t alarm;

	if (fd < 0 || !guard(&alarm))
		return;
	/* EAGAIN: the counter is full, so a signal is pending anyway. EINTR: see above. */
	if (write(fd, &one, sizeof(one)) < 0)
		errno = 0;
	interrupt_alarm_stop(alarm);
}

void event_fd_unblock(int fd)
{
	uint64_t value;
	timer_t alarm;

	if (!guard(&alarm))
		return;
	for (int i = 0; i < DRAIN_ROUNDS && !set_nonblocking(fd); i++)
		if (read(fd, &value, sizeof(value)) < 0)
			break;
	interrupt_alarm_stop(alarm);
}
