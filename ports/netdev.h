/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an AF_XDP port wants to know of a network device, and the few settings it changes.
 * Works on the network namespace of the calling thread. All functions: control thread.
 */
#ifndef XVS_PORTS_NETDEV_H
#define XVS_PORTS_NETDEV_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

struct netdev_info {
	int ifindex;
	unsigned int mtu; /* bytes of payload behind the Ethernet header */
	bool up;          /* switched on by the administrator */
	bool running;     /* has a carrier */
	bool loopback;    /* carries what the host says to itself */
	/* The kernel leaves frames of such a device unfinished: partial checksums. */
	bool software;
	bool veth;              /* one end of a pair; the other may be in another namespace */
	unsigned int queues;    /* that can both receive and send, at least 1 */
	unsigned int rx_queues; /* that receive, at least 1 */
};

/* 1..15 characters, no '/', no blank, not "." or "..": what the kernel takes as a name. */
bool netdev_name_valid(const char *name);

/* Returns 0, -ENODEV, or another negative errno. */
int netdev_get(const char *name, struct netdev_info *out);

/*
 * Promiscuous mode as a membership of a socket: returns its descriptor or a negative errno.
 * The kernel counts memberships and ends this one when the descriptor is closed.
 */
int netdev_promisc_open(int ifindex);

/*
 * Switches off what moves VLAN tags from the frame into a descriptor, where an XDP socket
 * neither sees nor can set them. Returns the offloads that were on, for
 * netdev_vlan_offload_restore(); 0 when there was nothing to do or it is not possible.
 */
uint32_t netdev_vlan_offload_off(const char *name);
void netdev_vlan_offload_restore(const char *name, uint32_t offloads);

#endif
