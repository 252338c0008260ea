/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an AF_XDP port puts on its device: the XDP program, one XDP socket per queue, a
 * registration of the memory, promiscuous mode, settings changed. All of it or nothing at all.
 *
 *     attach   look for a foreign program -> for each mode that may be tried: load and attach the
 *              program, register the memory, open the sockets -> settings -> fill rings -> let
 *              the program see the sockets. Any failure takes back all of it.
 *     detach   program off -> sockets closed (the kicker forgets them) -> registration closed ->
 *              chunks reclaimed -> settings back
 *
 * Control thread only; the queues are off meanwhile, so that no worker is inside.
 *
 * One area of memory for the whole switch, registered once per port. The kernel could share
 * one registration between devices, but then all sockets must use the same copy mode, each new
 * one needs an older one that is still bound, and libxdp keeps the first one's descriptor, and
 * with it that device's queue, until the last is gone. Chunks are offsets into the same area in
 * either case, so frames pass from device to device by address all the same. Price: the locked
 * memory counts once per port against RLIMIT_MEMLOCK (unless CAP_IPC_LOCK is there).
 *
 * Zero-copy: the kernel takes the device's queue down some time after the last descriptor was
 * closed, and until then the device may write into chunks. So before they are reclaimed,
 * wait_released() waits until the queue can be bound anew. Should it never be, the chunks stay
 * out of use for good rather than be written to by two.
 *
 * What cannot be put back after a crash: the VLAN offload setting. All else ends with our
 * descriptors.
 */
#include "ports/xdp_device.h"

#include <errno.h>
#include <linux/if_xdp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <xdp/xsk.h>

#include "base/clock.h"
#include "bpf/xdp_prog.h"
#include "ports/umem.h"
#include "ports/xdp_queue.h"

#define BUSY_WAIT_NS  UINT64_C(1000000000) /* the kernel frees a closed socket's queue later */
#define BUSY_PAUSE_NS 10000000

struct xdp_attempt {
	enum xdp_mode mode;
	const char *name;
	enum xdp_attach attach;
	uint16_t bind_flags;
};

/* The modes, best first: the order in which "auto" tries them. */
static const struct xdp_attempt attempts[] = {
    {XDP_MODE_ZERO_COPY, "zero-copy", XDP_ATTACH_NATIVE, XDP_ZEROCOPY},
    {XDP_MODE_NATIVE, "native", XDP_ATTACH_NATIVE, XDP_COPY},
    {XDP_MODE_GENERIC, "generic", XDP_ATTACH_GENERIC, XDP_COPY},
};

struct xdp_device {
	/* set at create */
	char name[IFNAMSIZ];
	enum xdp_mode wanted;
	struct umem *umem;
	const struct port *port; /* whose queues get the sockets */
	/* while attached */
	const struct xdp_attempt *active; /* NULL: detached */
	struct xdp_prog *prog;
	struct xsk_umem *registration;
	int promisc;
	uint32_t vlan_offloads; /* to be switched on again */
	/* always */
	uint64_t past[XDP_STAT_COUNT]; /* of sockets and programs that are gone */
};

int xdp_refuse(struct xdp_why *why, int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(why->text, why->size, fmt, args);
	va_end(args);
	return err;
}

int xdp_mode_parse(const char *word, enum xdp_mode *out)
{
	if (strcmp(word, "auto") == 0) {
		*out = XDP_MODE_AUTO;
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(attempts); i++) {
		if (strcmp(word, attempts[i].name) == 0) {
			*out = attempts[i].mode;
			return 0;
		}
	}
	return -EINVAL;
}

static struct xdp_queue *queue_of(const struct xdp_device *d, unsigned int i)
{
	return xdp_queue_of(d->port->rxq[i]);
}

static void pause_ns(long ns)
{
	const struct timespec pause = {.tv_nsec = ns};

	nanosleep(&pause, NULL);
}

/* ---- statistics ---- */

static void add_socket_stats(const struct xdp_queue *q, uint64_t value[XDP_STAT_COUNT])
{
	struct xdp_statistics s;

	if (xdp_queue_statistics(q, &s))
		return;
	value[XDP_STAT_RX_DROPPED] += s.rx_dropped;
	value[XDP_STAT_RX_INVALID] += s.rx_invalid_descs;
	value[XDP_STAT_TX_INVALID] += s.tx_invalid_descs;
	value[XDP_STAT_RX_FULL] += s.rx_ring_full;
	value[XDP_STAT_FILL_EMPTY] += s.rx_fill_ring_empty_descs;
	value[XDP_STAT_TX_EMPTY] += s.tx_ring_empty_descs;
}

void xdp_device_count_current(const struct xdp_device *d, uint64_t value[XDP_STAT_COUNT])
{
	uint64_t counted[XDP_REDIRECT_COUNTERS];

	if (!d->active)
		return;
	xdp_prog_counters(d->prog, counted);
	value[XDP_STAT_OVERSIZE] += counted[XDP_REDIRECT_OVERSIZE];
	value[XDP_STAT_PASSED] += counted[XDP_REDIRECT_PASSED];
	for (unsigned int i = 0; i < d->port->nqueues; i++)
		add_socket_stats(queue_of(d, i), value);
}

void xdp_device_count_past(const struct xdp_device *d, uint64_t value[XDP_STAT_COUNT])
{
	for (unsigned int i = 0; i < XDP_STAT_COUNT; i++)
		value[i] += d->past[i];
}

/* ---- detach ---- */

/*
 * True when the device's queue can be bound again, so that the kernel and the driver are done
 * with the socket that was closed; also when there is no such device any more.
 */
static bool queue_released(const char *device, uint32_t queue)
{
	static const struct xsk_socket_config config = {
	    .rx_size = 64,
	    .tx_size = 64,
	    .libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD,
	    .bind_flags = XDP_COPY,
	};
	static const struct xsk_umem_config umem_config = {
	    .fill_size = 64, .comp_size = 64, .frame_size = UMEM_CHUNK};
	const size_t size = (size_t)64 * UMEM_CHUNK;
	struct xsk_ring_prod fill, tx;
	struct xsk_ring_cons completion, rx;
	struct xsk_umem *umem = NULL;
	struct xsk_socket *xsk = NULL;
	void *area = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int err = area == MAP_FAILED
		      ? -EBUSY
		      : xsk_umem__create(&umem, area, size, &fill, &completion, &umem_config);

	if (!err) {
		err = xsk_socket__create_shared(&xsk, device, queue, umem, &rx, &tx, &fill,
						&completion, &config);
		if (!err)
			xsk_socket__delete(xsk);
		xsk_umem__delete(umem);
	} else {
		err = -EBUSY; /* could not be found out */
	}
	if (area != MAP_FAILED)
		munmap(area, size);
	return err != -EBUSY;
}

static bool wait_released(const struct xdp_device *d)
{
	const uint64_t deadline = clock_ns() + BUSY_WAIT_NS;

	for (unsigned int i = 0; i < d->port->nqueues; i++) {
		while (!queue_released(d->name, i)) {
			if (clock_ns() > deadline)
				return false;
			pause_ns(BUSY_PAUSE_NS);
		}
	}
	return true;
}

/* Closes all sockets and their registration, and frees the chunks. */
static void close_sockets(struct xdp_device *d)
{
	bool zero_copy = false, released;

	for (unsigned int i = 0; i < d->port->nqueues; i++) {
		zero_copy |= xdp_queue_zero_copy(queue_of(d, i));
		xdp_queue_close(queue_of(d, i));
	}
	if (d->registration)
		xsk_umem__delete(d->registration);
	d->registration = NULL;
	released = !zero_copy || wait_released(d);
	for (unsigned int i = 0; i < d->port->nqueues; i++) {
		if (released)
			xdp_queue_reclaim(queue_of(d, i));
		else
			xdp_queue_abandon(queue_of(d, i));
	}
}

/* From any state of attaching. */
static void take_back(struct xdp_device *d)
{
	xdp_device_count_current(d, d->past);
	xdp_prog_destroy(d->prog);
	d->prog = NULL;
	close_sockets(d);
	if (d->promisc >= 0)
		close(d->promisc);
	d->promisc = -1;
	netdev_vlan_offload_restore(d->name, d->vlan_offloads);
	d->vlan_offloads = 0;
	d->active = NULL;
}

/* ---- attach ---- */

static int check_foreign_program(const struct xdp_device *d, const struct netdev_info *dev,
				 struct xdp_why *why)
{
	const char *mode;
	uint32_t id;

	if (xdp_prog_attached(dev->ifindex, &id, &mode) != 1)
		return 0;
	return xdp_refuse(why, -EBUSY,
			  "%s already has XDP program %u in %s mode; remove it first "
			  "(ip link set dev %s xdp%s off)",
			  d->name, id, mode, d->name,
			  strcmp(mode, "generic") == 0 ? "generic" : "");
}

static int check_queues(const struct xdp_device *d, const struct netdev_info *dev,
			struct xdp_why *why)
{
	if (d->port->nqueues <= dev->queues)
		return 0;
	return xdp_refuse(
	    why, -EINVAL, "%s has %u queue%s, %u asked for; ask for less or see 'ethtool -L %s'",
	    d->name, dev->queues, dev->queues == 1 ? "" : "s", d->port->nqueues, d->name);
}

static int attach_program(struct xdp_device *d, const struct netdev_info *dev,
			  const struct xdp_attempt *at, struct xdp_why *why)
{
	int err = xdp_prog_load(&d->prog, XDPQ_RX_FRAME_MAX);

	if (err == -EPERM)
		return xdp_refuse(
		    why, err,
		    "loading the XDP program is not permitted: CAP_BPF and CAP_NET_ADMIN "
		    "are needed");
	if (err)
		return xdp_refuse(why, err, "loading the XDP program failed: %s", strerror(-err));
	err = xdp_prog_attach(d->prog, dev->ifindex, at->attach);
	if (!err)
		return 0;
	if (err == -EBUSY || err == -EEXIST)
		return xdp_refuse(why, -EBUSY, "another XDP program is attached to %s", d->name);
	if (err == -EPERM)
		return xdp_refuse(
		    why, err,
		    "attaching an XDP program to %s is not permitted: CAP_NET_ADMIN is "
		    "needed",
		    d->name);
	return xdp_refuse(why, -EOPNOTSUPP,
			  "the driver of %s does not take an XDP program (%s mode): %s", d->name,
			  at->attach == XDP_ATTACH_NATIVE ? "native" : "generic", strerror(-err));
}

/* Without CAP_IPC_LOCK the registered memory counts against this limit. */
static void raise_memlock(void)
{
	struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};

	if (setrlimit(RLIMIT_MEMLOCK, &limit) == 0 || getrlimit(RLIMIT_MEMLOCK, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_MEMLOCK, &limit);
}

static int refuse_registration(const struct xdp_device *d, int err, struct xdp_why *why)
{
	struct rlimit limit = {0};

	if (err == -EPERM)
		return xdp_refuse(why, err,
				  "opening an XDP socket is not permitted: CAP_NET_RAW is needed");
	if (err != -ENOBUFS)
		return xdp_refuse(why, err, "registering memory for XDP sockets failed: %s",
				  strerror(-err));
	getrlimit(RLIMIT_MEMLOCK, &limit);
	return xdp_refuse(
	    why, -ENOMEM,
	    "the locked-memory limit is %llu KiB, each AF_XDP port needs %zu KiB; raise it "
	    "(LimitMEMLOCK=infinity, ulimit -l) or grant CAP_IPC_LOCK",
	    (unsigned long long)limit.rlim_cur / 1024, umem_size(d->umem) / 1024);
}

static int refuse_bind(const struct xdp_device *d, const struct xdp_attempt *at, unsigned int queue,
		       int err, struct xdp_why *why)
{
	if (err == -EBUSY)
		return xdp_refuse(why, err, "queue %u of %s is in use by another XDP socket", queue,
				  d->name);
	if (err == -EPERM)
		return xdp_refuse(why, err,
				  "binding an XDP socket is not permitted: CAP_NET_RAW is needed");
	if (err == -EOPNOTSUPP || err == -EINVAL)
		return xdp_refuse(why, -EOPNOTSUPP, "%s does not support mode %s (queue %u: %s)",
				  d->name, at->name, queue, strerror(-err));
	return xdp_refuse(why, err, "binding an XDP socket to queue %u of %s failed: %s", queue,
			  d->name, strerror(-err));
}

static int open_sockets(struct xdp_device *d, const struct xdp_attempt *at, struct xdp_why *why)
{
	int err = xdp_queue_register(queue_of(d, 0), &d->registration);

	if (err) {
		d->registration = NULL;
		return refuse_registration(d, err, why);
	}
	for (unsigned int i = 0; i < d->port->nqueues; i++) {
		err = xdp_queue_open(queue_of(d, i), d->registration, d->name, at->bind_flags);
		if (err) {
			close_sockets(d);
			return refuse_bind(d, at, i, err, why);
		}
	}
	return 0;
}

/* The kernel frees the queues of a port that was just removed a little later: try again. */
static int open_sockets_patiently(struct xdp_device *d, const struct xdp_attempt *at, bool patient,
				  struct xdp_why *why)
{
	const uint64_t deadline = clock_ns() + BUSY_WAIT_NS;

	for (;;) {
		int err = open_sockets(d, at, why);

		if (err != -EBUSY || !patient || clock_ns() > deadline)
			return err;
		pause_ns(BUSY_PAUSE_NS);
	}
}

/* Another mode would fail for the same reason. */
static bool is_hopeless(int err)
{
	return err == -EBUSY || err == -EPERM || err == -ENOMEM || err == -ENODEV;
}

static int attach_best_mode(struct xdp_device *d, const struct netdev_info *dev, bool patient,
			    struct xdp_why *why)
{
	int err = -EOPNOTSUPP;

	for (size_t i = 0; i < ARRAY_LEN(attempts); i++) {
		const struct xdp_attempt *at = &attempts[i];

		if (d->wanted != XDP_MODE_AUTO && d->wanted != at->mode)
			continue;
		err = attach_program(d, dev, at, why);
		if (!err)
			err = open_sockets_patiently(d, at, patient, why);
		if (!err) {
			d->active = at;
			return 0;
		}
		xdp_prog_destroy(d->prog);
		d->prog = NULL;
		if (is_hopeless(err))
			break;
	}
	return err;
}

/* Chunks into the fill rings, then the sockets into the program's map: frames flow. */
static int start_queues(struct xdp_device *d, const struct netdev_info *dev, struct xdp_why *why)
{
	for (unsigned int i = 0; i < d->port->nqueues; i++) {
		struct xdp_queue *q = queue_of(d, i);
		int err = xdp_queue_start(q, dev->software);

		if (err)
			return xdp_refuse(why, err,
					  "the packet memory is used up by the other AF_XDP ports "
					  "(%u of %u chunks left, %u per queue needed)",
					  umem_free_count(d->umem), umem_chunks(d->umem),
					  XDPQ_RX_CHUNKS);
		err = xdp_prog_set_socket(d->prog, i, xdp_queue_fd(q));
		if (err)
			return xdp_refuse(why, err,
					  "directing queue %u of %s to its socket failed: %s", i,
					  d->name, strerror(-err));
	}
	return 0;
}

static int set_up_device(struct xdp_device *d, const struct netdev_info *dev, struct xdp_why *why)
{
	d->promisc = netdev_promisc_open(dev->ifindex);
	if (d->promisc < 0) {
		int err = d->promisc;

		return xdp_refuse(why, err, "promiscuous mode of %s: %s", d->name, strerror(-err));
	}
	d->vlan_offloads = netdev_vlan_offload_off(d->name);
	return 0;
}

int xdp_device_attach(struct xdp_device *d, const struct netdev_info *dev, bool patient,
		      struct xdp_why *why)
{
	int err = check_queues(d, dev, why);

	if (!err)
		err = check_foreign_program(d, dev, why);
	if (!err)
		err = attach_best_mode(d, dev, patient, why);
	if (err)
		return err;
	err = set_up_device(d, dev, why);
	if (!err)
		err = start_queues(d, dev, why);
	if (err)
		take_back(d);
	return err;
}

void xdp_device_detach(struct xdp_device *d)
{
	if (d->active)
		take_back(d);
}

/* ---- life cycle and inspection ---- */

int xdp_device_create(struct xdp_device **out, const struct port *port, const char *name,
		      enum xdp_mode wanted, struct umem *umem)
{
	struct xdp_device *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	raise_memlock();
	strncpy(d->name, name, IFNAMSIZ - 1);
	d->wanted = wanted;
	d->umem = umem;
	d->port = port;
	d->promisc = -1;
	*out = d;
	return 0;
}

void xdp_device_destroy(struct xdp_device *d)
{
	if (!d)
		return;
	xdp_device_detach(d);
	free(d);
}

const char *xdp_device_mode(const struct xdp_device *d)
{
	return d->active ? d->active->name : NULL;
}

int xdp_device_ifindex(const struct xdp_device *d)
{
	return d->active ? xdp_prog_ifindex(d->prog) : 0;
}
