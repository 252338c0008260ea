/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/*
 * What the XDP program and its loader agree on.
 */
#ifndef XVS_BPF_XDP_REDIRECT_H
#define XVS_BPF_XDP_REDIRECT_H

#define XDP_REDIRECT_QUEUES 64 /* sockets the map can hold; queue number is the key */

enum xdp_redirect_counter {
	XDP_REDIRECT_PASSED,   /* frames given to the kernel's stack: no socket on that queue */
	XDP_REDIRECT_OVERSIZE, /* frames dropped because they do not fit a chunk */
	XDP_REDIRECT_COUNTERS
};

#endif
