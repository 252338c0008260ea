/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A vhost-user port: the device side of one virtio network device. Holds the guest's memory
 * map and its virtqueues. Knows no sockets: the protocol (control/vhost_user) calls this.
 *
 * vhost-user numbers rings from the driver's view: ring 2*i is the guest's receive queue of
 * pair i (our txq i), ring 2*i+1 its transmit queue (our rxq i). `ring` below is that number.
 *
 * A ring runs when it has size, addresses, memory, a kick (descriptor or "polled" marker) and is
 * enabled (vhost-user: "Ring states"). Every setter below brings the topology up to date itself
 * before it returns; after vhost_ring_stop() or vhost_set_mem() no worker touches what was
 * replaced. All functions: control thread.
 */
#ifndef XVS_PORTS_VHOST_H
#define XVS_PORTS_VHOST_H

#include <stdbool.h>
#include <stdint.h>

#include "ports/port.h"
#include "ring/guest_mem.h"
#include "ring/vq.h"

struct vhost_port;

/* Virtio and vhost feature bits this device offers. */
#define VHOST_FEATURES                                                                             \
	(FEATURE(VIRTIO_F_VERSION_1) | FEATURE(VIRTIO_F_IN_ORDER) |                                \
	 FEATURE(VIRTIO_NET_F_MRG_RXBUF) | FEATURE(VIRTIO_F_INDIRECT_DESC) |                       \
	 FEATURE(VIRTIO_F_EVENT_IDX) | FEATURE(VIRTIO_F_ANY_LAYOUT) | FEATURE(VIRTIO_NET_F_MQ) |   \
	 FEATURE(VIRTIO_NET_F_STATUS) | FEATURE(VIRTIO_NET_F_CTRL_VQ) |                            \
	 FEATURE(VIRTIO_NET_F_GUEST_ANNOUNCE) | FEATURE(VHOST_USER_F_PROTOCOL_FEATURES))

/* Ring addresses in the front-end's user address space (VHOST_USER_SET_VRING_ADDR). */
struct vhost_ring_addr {
	uint64_t desc;
	uint64_t avail;
	uint64_t used;
};

/* "VIRTIO_NET_F_MRG_RXBUF", ...; NULL for bits that have no name here. */
const char *vhost_feature_name(unsigned int bit);

/*
 * Creates the port with 1..PORT_QUEUES_MAX queue pairs. `where` (socket path) and `mode`
 * ("server" or "client", static) are only shown. Returns 0, -EINVAL or -ENOMEM.
 */
int vhost_port_create(struct port **out, const char *name, unsigned int nqueues, const char *where,
		      const char *mode);

struct vhost_port *vhost_of(struct port *p);
struct port *vhost_to_port(struct vhost_port *v);

unsigned int vhost_nrings(const struct vhost_port *v); /* 2 * queue pairs */

/* Front-end connected / gone. Gone: stops all rings, forgets memory, features, descriptors. */
void vhost_connected(struct vhost_port *v);
void vhost_reset(struct vhost_port *v);

/*
 * Rings stopped and forgotten (sizes, indices, addresses, kicks, enabling); memory, features, call
 * and error descriptors kept.
 */
void vhost_stop_all(struct vhost_port *v);

/* A reason to show in `port show` while the port is not up ("" for none); copied. */
void vhost_set_reason(struct vhost_port *v, const char *reason);

/*
 * Features the driver acknowledged. 0; -EINVAL for bits that were not offered; -EBUSY when
 * the set would change under a started ring.
 */
int vhost_set_features(struct vhost_port *v, uint64_t features);
uint64_t vhost_get_features(const struct vhost_port *v);

/*
 * Exchanges the memory map; running rings are paused for the exchange and go on with the same
 * indices. A running ring that is not wholly inside the new map stops, and goes on when a later
 * map has it again. On failure the old map stays in use; errors and *why as guest_mem_create().
 */
int vhost_set_mem(struct vhost_port *v, const struct guest_mem_slot *slot, unsigned int n,
		  const char **why);

/*
 * All ring setters: -EINVAL for a ring number out of range or a value outside its range. Size and
 * base: -EBUSY while the ring is started.
 */
int vhost_ring_set_size(struct vhost_port *v, uint32_t ring, uint32_t size);

/*
 * Number of heads that were taken before, as GET_VRING_BASE told it. The start believes the used
 * ring in guest memory more than the front-end where both make sense, see ports/vhost_ring.c.
 */
int vhost_ring_set_base(struct vhost_port *v, uint32_t ring, uint32_t base);

/*
 * -EINVAL: not aligned as virtio 1.2, 2.7 demands; -EFAULT: not wholly inside guest memory. On
 * failure the old addresses stay. A running ring is moved, keeping its indices. Without memory or
 * size the check is made when the ring starts.
 */
int vhost_ring_set_addr(struct vhost_port *v, uint32_t ring, const struct vhost_ring_addr *addr);
int vhost_ring_enable(struct vhost_port *v, uint32_t ring, bool enabled);

/*
 * Descriptors. fd -1 means "none, polled" (bit 8 of the payload). The port takes ownership of fd
 * also on failure. A call or error descriptor must be an eventfd (-EBADF otherwise: a worker
 * must never block in its write) and is made non-blocking.
 *
 * Setting the kick starts the ring: -EFAULT when it has addresses that are not wholly inside
 * guest memory. What is still missing may come later. A call descriptor set while the ring runs is
 * signalled once, so that no wake-up is lost in the exchange.
 */
int vhost_ring_set_kick(struct vhost_port *v, uint32_t ring, int fd);
int vhost_ring_set_call(struct vhost_port *v, uint32_t ring, int fd);
int vhost_ring_set_err(struct vhost_port *v, uint32_t ring, int fd);

/*
 * GET_VRING_BASE: stops the ring; when it returns nothing is in flight and no worker touches
 * the ring. *base = number of heads taken, all of them returned. The kick is forgotten.
 */
int vhost_ring_stop(struct vhost_port *v, uint32_t ring, uint32_t *base);

/*
 * Called about ten times a second, with the time of clock_ns(): looks for rings that broke (fault
 * in the ring, hole in guest memory, call descriptor made blocking or full), stops them, signals
 * their error eventfd once. A new set-up heals them; but after a call descriptor was the fault no
 * ring of the port starts for 1 s, twice as long each time, at most 60 s, also over vhost_reset().
 * What was set up by then starts with the first call after that time. Returns NULL, or what was
 * found in words (the port's, until the next call).
 */
const char *vhost_check_faults(struct vhost_port *v, uint64_t now_ns);

#endif
