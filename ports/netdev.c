/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Network devices through the old ioctl interface.
 *
 * Control thread; each call opens a socket and closes it, so that it works in whatever network
 * namespace the thread is in, and there is no state. The calls are rare (a port is added, a
 * link changes, once a second), so that netlink's batching is not worth its code.
 *
 * Devices without the ethtool calls (many software devices) answer EOPNOTSUPP; they count as
 * having one queue, and one offload setting: none.
 */
#include "ports/netdev.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/compiler.h"

#define VLAN_OFFLOADS ((uint32_t)ETH_FLAG_TXVLAN | (uint32_t)ETH_FLAG_RXVLAN)

/* Drivers of devices whose frames come from this machine and may be unfinished. */
static const char *const software_drivers[] = {"veth", "tun", "bridge", "macvlan", "virtio_net"};

bool netdev_name_valid(const char *name)
{
	size_t n = strlen(name);

	return n > 0 && n < IFNAMSIZ && !strpbrk(name, "/ \t\n:") && strcmp(name, ".") != 0 &&
	       strcmp(name, "..") != 0;
}

static int open_control(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

static int device_ioctl(int fd, unsigned long request, const char *name, struct ifreq *ifr)
{
	strncpy(ifr->ifr_name, name, IFNAMSIZ - 1);
	ifr->ifr_name[IFNAMSIZ - 1] = '\0';
	return ioctl(fd, request, ifr) < 0 ? -errno : 0;
}

static int ethtool_ioctl(int fd, const char *name, void *command)
{
	struct ifreq ifr = {.ifr_data = command};

	return device_ioctl(fd, SIOCETHTOOL, name, &ifr);
}

static void get_driver(int fd, const char *name, struct netdev_info *out)
{
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};

	if (ethtool_ioctl(fd, name, &info))
		return;
	out->veth = strncmp(info.driver, "veth", sizeof(info.driver)) == 0;
	for (size_t i = 0; i < ARRAY_LEN(software_drivers); i++) {
		if (!strncmp(info.driver, software_drivers[i], sizeof(info.driver)))
			out->software = true;
	}
}

static void get_queues(int fd, const char *name, struct netdev_info *out)
{
	struct ethtool_channels ch = {.cmd = ETHTOOL_GCHANNELS};
	unsigned int tx;

	out->queues = 1;
	out->rx_queues = 1;
	if (ethtool_ioctl(fd, name, &ch))
		return;
	out->rx_queues = MAX(ch.combined_count + ch.rx_count, 1u);
	tx = MAX(ch.combined_count + ch.tx_count, 1u);
	out->queues = MIN(out->rx_queues, tx);
}

static int get_all(int fd, const char *name, struct netdev_info *out)
{
	struct ifreq ifr = {0};
	int err = device_ioctl(fd, SIOCGIFINDEX, name, &ifr);

	if (err)
		return err;
	out->ifindex = ifr.ifr_ifindex;
	err = device_ioctl(fd, SIOCGIFMTU, name, &ifr);
	if (err)
		return err;
	out->mtu = (unsigned int)ifr.ifr_mtu;
	err = device_ioctl(fd, SIOCGIFFLAGS, name, &ifr);
	if (err)
		return err;
	out->up = ifr.ifr_flags & IFF_UP;
	out->running = ifr.ifr_flags & IFF_RUNNING;
	out->loopback = ifr.ifr_flags & IFF_LOOPBACK;
	get_driver(fd, name, out);
	get_queues(fd, name, out);
	return 0;
}

int netdev_get(const char *name, struct netdev_info *out)
{
	struct netdev_info info = {0};
	int fd = open_control(), err;

	if (fd < 0)
		return fd;
	err = get_all(fd, name, &info);
	close(fd);
	if (!err)
		*out = info;
	return err;
}

int netdev_promisc_open(int ifindex)
{
	struct packet_mreq mr = {.mr_ifindex = ifindex, .mr_type = PACKET_MR_PROMISC};
	/* Protocol 0: the socket receives nothing. */
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &mr, sizeof(mr)) == 0)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

uint32_t netdev_vlan_offload_off(const char *name)
{
	struct ethtool_value value = {.cmd = ETHTOOL_GFLAGS};
	uint32_t before = 0;
	int fd = open_control();

	if (fd < 0)
		return 0;
	if (ethtool_ioctl(fd, name, &value) == 0 && (value.data & VLAN_OFFLOADS)) {
		before = value.data & VLAN_OFFLOADS;
		value.cmd = ETHTOOL_SFLAGS;
		value.data &= ~VLAN_OFFLOADS;
		if (ethtool_ioctl(fd, name, &value))
			before = 0;
	}
	close(fd);
	return before;
}

void netdev_vlan_offload_restore(const char *name, uint32_t offloads)
{
	struct ethtool_value value = {.cmd = ETHTOOL_GFLAGS};
	int fd = offloads ? open_control() : -1;

	if (fd < 0)
		return;
	if (ethtool_ioctl(fd, name, &value) == 0) {
		value.cmd = ETHTOOL_SFLAGS;
		value.data |= offloads;
		ethtool_ioctl(fd, name, &value);
	}
	close(fd);
}
