/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rtnetlink's link notifications, read without waiting.
 *
 * Only the name is passed on: whoever is interested asks the kernel for the state of now, which
 * may be newer than the message. A rename is reported under the new name; the owner of the old
 * one finds out at its periodic look.
 *
 * When the socket's buffer overflows (thousands of devices made at once) the kernel drops
 * messages and reports ENOBUFS: that is passed on as "any device may have changed".
 */
#include "control/link_watch.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdlib.h>

#include "base/log.h"

#define RECEIVE_SIZE 32768

struct link_watch {
	struct mnl_socket *socket;
	struct loop_source *source;
	link_watch_fn *fn;
	void *ctx;
};

static int on_attribute(const struct nlattr *attr, void *ctx)
{
	const char **name = ctx;

	if (mnl_attr_get_type(attr) == IFLA_IFNAME &&
	    mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0)
		*name = mnl_attr_get_str(attr);
	return MNL_CB_OK;
}

static int on_message(const struct nlmsghdr *msg, void *ctx)
{
	struct link_watch *w = ctx;
	const char *name = NULL;

	if (msg->nlmsg_type != RTM_NEWLINK && msg->nlmsg_type != RTM_DELLINK)
		return MNL_CB_OK;
	mnl_attr_parse(msg, sizeof(struct ifinfomsg), on_attribute, &name);
	if (name)
		w->fn(w->ctx, name);
	return MNL_CB_OK;
}

static void on_readable(void *ctx, uint32_t events)
{
	struct link_watch *w = ctx;
	char buf[RECEIVE_SIZE] __attribute__((aligned(NLMSG_ALIGNTO)));

	(void)events;
	for (int i = 0; i < LOOP_BUDGET; i++) {
		const ssize_t n = mnl_socket_recvfrom(w->socket, buf, sizeof(buf));

		if (n < 0 && (errno == ENOBUFS || errno == ENOSPC)) {
			w->fn(w->ctx, NULL);
			continue;
		}
		if (n <= 0)
			return;
		mnl_cb_run(buf, (size_t)n, 0, 0, on_message, w);
	}
}

int link_watch_create(struct link_watch **out, struct loop *loop, link_watch_fn *fn, void *ctx)
{
	struct link_watch *w = calloc(1, sizeof(*w));
	int error;

	if (!w)
		return -ENOMEM;
	w->fn = fn;
	w->ctx = ctx;
	w->socket = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (!w->socket) {
		error = -errno;
		goto no_socket;
	}
	if (mnl_socket_bind(w->socket, RTMGRP_LINK, MNL_SOCKET_AUTOPID) < 0) {
		error = -errno;
		goto no_source;
	}
	error =
	    loop_add_fd(loop, &w->source, mnl_socket_get_fd(w->socket), EPOLLIN, on_readable, w);
	if (error)
		goto no_source;
	*out = w;
	return 0;

no_source:
	mnl_socket_close(w->socket);
no_socket:
	free(w);
	return error;
}

void link_watch_destroy(struct link_watch *w)
{
	if (!w)
		return;
	loop_remove(w->source);
	mnl_socket_close(w->socket);
	free(w);
}
