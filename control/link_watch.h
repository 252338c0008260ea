/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tells when a network device appears, disappears or changes its link state, from the kernel's
 * notifications (rtnetlink). Control thread, in callbacks of the loop.
 */
#ifndef XVS_CONTROL_LINK_WATCH_H
#define XVS_CONTROL_LINK_WATCH_H

#include "control/loop.h"

struct link_watch;

/* `device`: its name, or NULL when notifications were lost and any may have changed. */
typedef void link_watch_fn(void *ctx, const char *device);

/* 0 or a negative errno. */
int link_watch_create(struct link_watch **out, struct loop *loop, link_watch_fn *fn, void *ctx);
void link_watch_destroy(struct link_watch *w); /* NULL is fine */

#endif
