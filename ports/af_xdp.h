/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An AF_XDP port: one XDP socket per queue of a network device that keeps its kernel driver.
 * All sockets of the switch share the memory of one UMEM (umem.h), so that a frame goes from
 * device to device by address. Functions: control thread.
 *
 * Frames: up to XDPQ_RX_FRAME_MAX (1792) bytes are received, longer ones dropped and counted
 * (xdp_oversize); up to the device's MTU plus Ethernet header and one VLAN tag, at most 2048, are
 * sent; shorter ones than 60 bytes are padded with zeros.
 *
 * The device is used in the network namespace of the calling thread.
 */
#ifndef XVS_PORTS_AF_XDP_H
#define XVS_PORTS_AF_XDP_H

#include <stdbool.h>
#include <stdint.h>

#include "ports/port.h"

struct umem;
struct kicker;

enum xdp_mode { XDP_MODE_AUTO, XDP_MODE_ZERO_COPY, XDP_MODE_NATIVE, XDP_MODE_GENERIC };

struct af_xdp_config {
	const char *name;     /* port name */
	const char *device;   /* 1..15 characters */
	unsigned int nqueues; /* 1..PORT_QUEUES_MAX; 0 = all channels of the device */
	enum xdp_mode mode;
	struct umem *umem;     /* shared, outlives the port */
	struct kicker *kicker; /* NULL: the worker makes the system calls itself */
};

/*
 * Attaches program and sockets. On failure nothing is left attached and `why` (size bytes) says
 * what is wrong and what to do. Returns 0 or a negative errno: -EINVAL (name, queue count above
 * the device's channels), -ENODEV, -EBUSY (another XDP program or socket), -EOPNOTSUPP (forced
 * mode), -EPERM (capability missing), -ENOMEM (memory lock limit, UMEM frames used up).
 */
int af_xdp_port_create(struct port **out, const struct af_xdp_config *config, char *why,
		       unsigned int size);

/*
 * The kernel reported a change of a device (netlink), or a periodic look. Detaches from a
 * deleted device, re-attaches when a device of that name is back, follows the link state.
 */
void af_xdp_link_changed(struct port *p);

/* "auto", "zero-copy", "native", "generic" -> mode; 0 or -EINVAL. */
int xdp_mode_parse(const char *word, enum xdp_mode *out);

#endif
