/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A network device as an AF_XDP port uses it: what is on it (program, sockets, settings) and what
 * the kernel counted there. For ports/af_xdp.c, which decides when to attach and detach, and
 * ports/xdp_device.c only. All functions: control thread, with the port's queues off while
 * attaching and detaching.
 *
 *     create -> { attach -> detach }* -> destroy
 */
#ifndef XVS_PORTS_XDP_DEVICE_H
#define XVS_PORTS_XDP_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "ports/af_xdp.h"
#include "ports/netdev.h"

struct xdp_device;

/*      enum           name                      help */
#define XDP_STATS(X)                                                                               \
	X(RX_DROPPED, "xdp_rx_dropped", "received frames that the kernel could not deliver")       \
	X(RX_INVALID, "xdp_rx_invalid_descs", "bad entries in a fill ring")                        \
	X(TX_INVALID, "xdp_tx_invalid_descs", "bad entries in a TX ring")                          \
	X(RX_FULL, "xdp_rx_ring_full", "received frames dropped: RX ring full")                    \
	X(FILL_EMPTY, "xdp_fill_ring_empty", "received frames dropped: no chunk in the fill ring") \
	X(TX_EMPTY, "xdp_tx_ring_empty", "times the kernel found a TX ring empty")                 \
	X(OVERSIZE, "xdp_oversize", "received frames dropped: they do not fit a chunk")            \
	X(PASSED, "xdp_passed", "frames of queues without a socket, left to the kernel")           \
	X(KICKS, "xdp_kicks", "system calls made to drive the sockets")

enum xdp_stat {
#define X(id, name, help) XDP_STAT_##id,
	XDP_STATS(X)
#undef X
	    XDP_STAT_COUNT
};

/* Where the text of a refusal goes. */
struct xdp_why {
	char *text;
	unsigned int size;
};

/* Says why and what to do; returns err. */
int xdp_refuse(struct xdp_why *why, int err, const char *fmt, ...) PRINTF_LIKE(3, 4);

/*
 * For the queues of `port`, which are created before the first attach and outlive the device.
 * `name`: of a device, copied. 0 or -ENOMEM.
 */
int xdp_device_create(struct xdp_device **out, const struct port *port, const char *name,
		      enum xdp_mode wanted, struct umem *umem);

/* Detaches. The port's queues still exist. NULL is fine. */
void xdp_device_destroy(struct xdp_device *d);

/*
 * Puts program, sockets and settings on the device, which netdev_get() has just described, in the
 * best mode that works. `patient`: wait for a queue that is still busy. On failure nothing is left;
 * errors as af_xdp_port_create().
 */
int xdp_device_attach(struct xdp_device *d, const struct netdev_info *dev, bool patient,
		      struct xdp_why *why);

/* Takes all of it back. While detached: does nothing. */
void xdp_device_detach(struct xdp_device *d);

/* ---- inspection ---- */

/* "zero-copy", "native", "generic"; NULL while detached. */
const char *xdp_device_mode(const struct xdp_device *d);

/* Of the device attached to; 0 when it was deleted or the program taken away by force. */
int xdp_device_ifindex(const struct xdp_device *d);

/* Adds what was counted since the attach; before it, all attachments together. */
void xdp_device_count_current(const struct xdp_device *d, uint64_t value[XDP_STAT_COUNT]);
void xdp_device_count_past(const struct xdp_device *d, uint64_t value[XDP_STAT_COUNT]);

#endif
