/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An AF_XDP port: a network device, the XDP program on it, and one XDP socket per queue.
 *
 * Control thread only; the packet path is in xdp_queue.c. The port is attached (program, sockets,
 * promiscuous membership, settings changed) or detached (nothing at all on any device).
 *
 *     attach   look for a foreign program -> for each mode that may be tried: load and attach the
 *              program, register the memory, open the sockets -> settings -> fill rings -> let
 *              the program see the sockets. Any failure takes back all of it.
 *     detach   queues off, republish (no worker is inside any more) -> kicker forgets -> program
 *              off -> sockets closed -> registration closed -> chunks reclaimed -> settings back
 *
 * af_xdp_link_changed() compares what is with what was: a device that vanished is detached from,
 * one of that name that came back is attached to, the queues run while the link does. Whether
 * "our" device is still there is asked of the program's link, because a new device may have got
 * the old one's number between two looks.
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
 * out of use rather than be written to by two.
 *
 * What cannot be put back after a crash: the VLAN offload setting. All else ends with our
 * descriptors.
 */
#include "ports/af_xdp.h"

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
#include "ports/kicker.h"
#include "ports/netdev.h"
#include "ports/umem.h"
#include "ports/xdp_queue.h"

#define BUSY_WAIT_NS  UINT64_C(1000000000) /* the kernel frees a closed socket's queue later */
#define BUSY_PAUSE_NS 10000000
#define TAG_LEN       4u

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
#define X(id, name, help) STAT_##id,
	XDP_STATS(X)
#undef X
	    STAT_COUNT
};

static const char *const stat_names[] = {
#define X(id, name, help) name,
    XDP_STATS(X)
#undef X
};

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

struct af_xdp {
	struct port port;
	/* set at create */
	char device[IFNAMSIZ];
	enum xdp_mode wanted;
	struct umem *umem;
	/* control; while attached */
	const struct xdp_attempt *active; /* NULL: detached */
	struct netdev_info dev;
	struct xdp_prog *prog;
	struct xsk_umem *registration;
	int promisc;
	uint32_t vlan_offloads; /* to be switched on again */
	bool running;           /* the queues are in the topology */
	/* control */
	char reason[160];
	uint64_t past[STAT_COUNT]; /* of sockets and programs that are gone */
};

/* Where the text of a refusal goes. */
struct why {
	char *text;
	unsigned int size;
};

static int refuse(struct why *why, int err, const char *fmt, ...) PRINTF_LIKE(3, 4);

static int refuse(struct why *why, int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(why->text, why->size, fmt, args);
	va_end(args);
	return err;
}

static struct af_xdp *af_xdp_of(const struct port *p)
{
	return container_of(p->rxq[0]->port, struct af_xdp, port);
}

static struct xdp_queue *queue_of(const struct af_xdp *a, unsigned int i)
{
	return xdp_queue_of(a->port.rxq[i]);
}

static void pause_ns(long ns)
{
	const struct timespec pause = {.tv_nsec = ns};

	nanosleep(&pause, NULL);
}

/* ---- statistics ---- */

static void add_socket_stats(const struct xdp_queue *q, uint64_t value[STAT_COUNT])
{
	struct xdp_statistics s;

	if (xdp_queue_statistics(q, &s))
		return;
	value[STAT_RX_DROPPED] += s.rx_dropped;
	value[STAT_RX_INVALID] += s.rx_invalid_descs;
	value[STAT_TX_INVALID] += s.tx_invalid_descs;
	value[STAT_RX_FULL] += s.rx_ring_full;
	value[STAT_FILL_EMPTY] += s.rx_fill_ring_empty_descs;
	value[STAT_TX_EMPTY] += s.tx_ring_empty_descs;
}

/* What the attached device's program and sockets have counted so far. */
static void add_current_stats(const struct af_xdp *a, uint64_t value[STAT_COUNT])
{
	uint64_t counted[XDP_REDIRECT_COUNTERS];

	if (!a->active)
		return;
	xdp_prog_counters(a->prog, counted);
	value[STAT_OVERSIZE] += counted[XDP_REDIRECT_OVERSIZE];
	value[STAT_PASSED] += counted[XDP_REDIRECT_PASSED];
	for (unsigned int i = 0; i < a->port.nqueues; i++)
		add_socket_stats(queue_of(a, i), value);
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

static bool wait_released(const struct af_xdp *a)
{
	const uint64_t deadline = clock_ns() + BUSY_WAIT_NS;

	for (unsigned int i = 0; i < a->port.nqueues; i++) {
		while (!queue_released(a->device, i)) {
			if (clock_ns() > deadline)
				return false;
			pause_ns(BUSY_PAUSE_NS);
		}
	}
	return true;
}

/* Closes all sockets and their registration, and frees the chunks. */
static void close_sockets(struct af_xdp *a)
{
	bool zero_copy = false;

	for (unsigned int i = 0; i < a->port.nqueues; i++) {
		zero_copy |= xdp_queue_zero_copy(queue_of(a, i));
		xdp_queue_close(queue_of(a, i));
	}
	if (a->registration)
		xsk_umem__delete(a->registration);
	a->registration = NULL;
	if (zero_copy && !wait_released(a))
		return;
	for (unsigned int i = 0; i < a->port.nqueues; i++)
		xdp_queue_reclaim(queue_of(a, i));
}

/* From any state of attaching; the queues are off and no worker is inside. */
static void detach(struct af_xdp *a)
{
	add_current_stats(a, a->past);
	xdp_prog_destroy(a->prog);
	a->prog = NULL;
	close_sockets(a);
	if (a->promisc >= 0)
		close(a->promisc);
	a->promisc = -1;
	netdev_vlan_offload_restore(a->device, a->vlan_offloads);
	a->vlan_offloads = 0;
	a->active = NULL;
}

/* ---- attach ---- */

static int check_foreign_program(const struct af_xdp *a, struct why *why)
{
	const char *mode;
	uint32_t id;

	if (xdp_prog_attached(a->dev.ifindex, &id, &mode) != 1)
		return 0;
	return refuse(why, -EBUSY,
		      "%s already has XDP program %u in %s mode; remove it first "
		      "(ip link set dev %s xdp%s off)",
		      a->device, id, mode, a->device,
		      strcmp(mode, "generic") == 0 ? "generic" : "");
}

static int check_queues(const struct af_xdp *a, struct why *why)
{
	if (a->port.nqueues <= a->dev.queues)
		return 0;
	return refuse(
	    why, -EINVAL, "%s has %u queue%s, %u asked for; ask for less or see 'ethtool -L %s'",
	    a->device, a->dev.queues, a->dev.queues == 1 ? "" : "s", a->port.nqueues, a->device);
}

static int attach_program(struct af_xdp *a, const struct xdp_attempt *at, struct why *why)
{
	int err = xdp_prog_load(&a->prog, XDPQ_RX_FRAME_MAX);

	if (err == -EPERM)
		return refuse(why, err,
			      "loading the XDP program is not permitted: CAP_BPF and CAP_NET_ADMIN "
			      "are needed");
	if (err)
		return refuse(why, err, "loading the XDP program failed: %s", strerror(-err));
	err = xdp_prog_attach(a->prog, a->dev.ifindex, at->attach);
	if (!err)
		return 0;
	if (err == -EBUSY || err == -EEXIST)
		return refuse(why, -EBUSY, "another XDP program is attached to %s", a->device);
	if (err == -EPERM)
		return refuse(why, err,
			      "attaching an XDP program to %s is not permitted: CAP_NET_ADMIN is "
			      "needed",
			      a->device);
	return refuse(why, -EOPNOTSUPP,
		      "the driver of %s does not take an XDP program (%s mode): %s", a->device,
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

static int refuse_registration(const struct af_xdp *a, int err, struct why *why)
{
	struct rlimit limit = {0};

	if (err == -EPERM)
		return refuse(why, err,
			      "opening an XDP socket is not permitted: CAP_NET_RAW is needed");
	if (err != -ENOBUFS)
		return refuse(why, err, "registering memory for XDP sockets failed: %s",
			      strerror(-err));
	getrlimit(RLIMIT_MEMLOCK, &limit);
	return refuse(
	    why, -ENOMEM,
	    "the locked-memory limit is %llu KiB, each AF_XDP port needs %zu KiB; raise it "
	    "(LimitMEMLOCK=infinity, ulimit -l) or grant CAP_IPC_LOCK",
	    (unsigned long long)limit.rlim_cur / 1024, umem_size(a->umem) / 1024);
}

static int refuse_bind(const struct af_xdp *a, const struct xdp_attempt *at, unsigned int queue,
		       int err, struct why *why)
{
	if (err == -EBUSY)
		return refuse(why, err, "queue %u of %s is in use by another XDP socket", queue,
			      a->device);
	if (err == -EPERM)
		return refuse(why, err,
			      "binding an XDP socket is not permitted: CAP_NET_RAW is needed");
	if (err == -EOPNOTSUPP || err == -EINVAL)
		return refuse(why, -EOPNOTSUPP, "%s does not support mode %s (queue %u: %s)",
			      a->device, at->name, queue, strerror(-err));
	return refuse(why, err, "binding an XDP socket to queue %u of %s failed: %s", queue,
		      a->device, strerror(-err));
}

static int open_sockets(struct af_xdp *a, const struct xdp_attempt *at, struct why *why)
{
	int err = xdp_queue_register(queue_of(a, 0), &a->registration);

	if (err) {
		a->registration = NULL;
		return refuse_registration(a, err, why);
	}
	for (unsigned int i = 0; i < a->port.nqueues; i++) {
		err = xdp_queue_open(queue_of(a, i), a->registration, a->device, at->bind_flags);
		if (err) {
			close_sockets(a);
			return refuse_bind(a, at, i, err, why);
		}
	}
	return 0;
}

/* The kernel frees the queues of a port that was just removed a little later: try again. */
static int open_sockets_patiently(struct af_xdp *a, const struct xdp_attempt *at, bool patient,
				  struct why *why)
{
	const uint64_t deadline = clock_ns() + BUSY_WAIT_NS;

	for (;;) {
		int err = open_sockets(a, at, why);

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

static int attach_best_mode(struct af_xdp *a, bool patient, struct why *why)
{
	int err = -EOPNOTSUPP;

	for (size_t i = 0; i < ARRAY_LEN(attempts); i++) {
		const struct xdp_attempt *at = &attempts[i];

		if (a->wanted != XDP_MODE_AUTO && a->wanted != at->mode)
			continue;
		err = attach_program(a, at, why);
		if (!err)
			err = open_sockets_patiently(a, at, patient, why);
		if (!err) {
			a->active = at;
			return 0;
		}
		xdp_prog_destroy(a->prog);
		a->prog = NULL;
		if (is_hopeless(err))
			break;
	}
	return err;
}

/* Chunks into the fill rings, then the sockets into the program's map: frames flow. */
static int start_queues(struct af_xdp *a, struct why *why)
{
	for (unsigned int i = 0; i < a->port.nqueues; i++) {
		struct xdp_queue *q = queue_of(a, i);
		int err = xdp_queue_start(q, a->dev.software);

		if (err)
			return refuse(why, err,
				      "the packet memory is used up by the other AF_XDP ports "
				      "(%u of %u chunks left, %u per queue needed)",
				      umem_free_count(a->umem), umem_chunks(a->umem),
				      XDPQ_RX_CHUNKS);
		err = xdp_prog_set_socket(a->prog, i, xdp_queue_fd(q));
		if (err)
			return refuse(why, err, "directing queue %u of %s to its socket failed: %s",
				      i, a->device, strerror(-err));
	}
	return 0;
}

static int set_up_device(struct af_xdp *a, struct why *why)
{
	a->promisc = netdev_promisc_open(a->dev.ifindex);
	if (a->promisc < 0) {
		int err = a->promisc;

		return refuse(why, err, "promiscuous mode of %s: %s", a->device, strerror(-err));
	}
	a->vlan_offloads = netdev_vlan_offload_off(a->device);
	return 0;
}

/* `patient`: wait for a queue that is still busy. On failure nothing is left attached. */
static int attach(struct af_xdp *a, bool patient, struct why *why)
{
	int err = netdev_get(a->device, &a->dev);

	if (err)
		return refuse(why, err, "no network device %s: %s", a->device, strerror(-err));
	err = check_queues(a, why);
	if (!err)
		err = check_foreign_program(a, why);
	if (!err)
		err = attach_best_mode(a, patient, why);
	if (err)
		return err;
	err = set_up_device(a, why);
	if (!err)
		err = start_queues(a, why);
	if (err)
		detach(a);
	return err;
}

/* ---- link ---- */

/* Takes the queues from the workers, or gives them with what the device now allows. */
static void set_running(struct af_xdp *a, bool running)
{
	const uint32_t wire = a->dev.mtu + ETH_HDR_LEN + TAG_LEN;

	if (!running && !a->running)
		return;
	a->running = running;
	for (unsigned int i = 0; i < a->port.nqueues; i++) {
		a->port.rxq[i]->state = running ? QUEUE_RUNNING : QUEUE_OFF;
		a->port.txq[i]->state = running ? QUEUE_RUNNING : QUEUE_OFF;
		if (running)
			a->port.txq[i]->max_frame = MAX(MIN(wire, XDPQ_TX_FRAME_MAX), 60u);
	}
	port_republish(&a->port);
}

/* Brings the queues in line with the attached device's link and MTU. */
static void follow_link(struct af_xdp *a, const struct netdev_info *now)
{
	const bool up = now->up && now->running;

	if (a->running && (!up || now->mtu != a->dev.mtu))
		set_running(a, false);
	a->dev = *now;
	a->reason[0] = '\0';
	if (!now->up)
		snprintf(a->reason, sizeof(a->reason), "%s is down; ip link set dev %s up",
			 a->device, a->device);
	else if (!now->running)
		snprintf(a->reason, sizeof(a->reason), "%s has no carrier; see its other end",
			 a->device);
	if (up && !a->running)
		set_running(a, true);
}

void af_xdp_link_changed(struct port *p)
{
	struct af_xdp *a = af_xdp_of(p);
	struct why why = {a->reason, sizeof(a->reason)};
	struct netdev_info now = {0};
	const int err = netdev_get(a->device, &now);

	if (a->active && (err || xdp_prog_ifindex(a->prog) != now.ifindex)) {
		set_running(a, false);
		detach(a);
	}
	if (err) {
		snprintf(a->reason, sizeof(a->reason), "device %s is gone; waits for it to return",
			 a->device);
		return;
	}
	if (a->active || attach(a, false, &why) == 0)
		follow_link(a, &now);
}

/* ---- the port ---- */

/*
 * Segmentation offload at the other end of a veth pair, often in a namespace that we cannot enter:
 * native mode makes the kernel switch it off, generic mode does not, and TCP is slow to the point
 * of standing still. (That end's VLAN offload loses tags without a trace, so that there is nothing
 * to warn of here; control/ says it once.)
 */
static void af_xdp_warning(const struct af_xdp *a, struct port_info *out)
{
	uint64_t value[STAT_COUNT] = {0};

	add_current_stats(a, value);
	if (value[STAT_OVERSIZE])
		snprintf(
		    out->warning, sizeof(out->warning),
		    "too long frames were dropped (xdp_oversize): for a veth, run at its other "
		    "end: ethtool -K DEVICE tso off gso off; for a NIC: ethtool -K %s gro off lro "
		    "off",
		    a->device);
	else if (a->active && a->dev.rx_queues > a->port.nqueues)
		snprintf(out->warning, sizeof(out->warning),
			 "%u of %u receive queues of %s are served; frames on the others go to the "
			 "host (xdp_passed)",
			 a->port.nqueues, a->dev.rx_queues, a->device);
}

static void af_xdp_info(const struct port *p, struct port_info *out)
{
	const struct af_xdp *a = af_xdp_of(p);

	memset(out, 0, sizeof(*out));
	out->state = a->running ? PORT_UP : PORT_DOWN;
	out->mode = a->active ? a->active->name : "";
	out->nqueues = p->nqueues;
	snprintf(out->where, sizeof(out->where), "%s", a->device);
	snprintf(out->reason, sizeof(out->reason), "%s", a->running ? "" : a->reason);
	af_xdp_warning(a, out);
	for (unsigned int i = 0; i < p->nqueues && a->active; i++) {
		out->rx_ring[i] = XDPQ_RX_RING;
		out->tx_ring[i] = XDPQ_TX_RING;
	}
}

static void emit_level(port_stat_fn *emit, void *ctx, unsigned int queue, const char *what,
		       uint32_t value)
{
	char name[40];

	snprintf(name, sizeof(name), "xdp_q%u_%s", queue, what);
	emit(ctx, name, value);
}

static void af_xdp_stats(const struct port *p, port_stat_fn *emit, void *ctx)
{
	const struct af_xdp *a = af_xdp_of(p);
	uint64_t value[STAT_COUNT];

	memcpy(value, a->past, sizeof(value));
	add_current_stats(a, value);
	for (unsigned int i = 0; i < p->nqueues; i++)
		value[STAT_KICKS] += xdp_queue_kicks(queue_of(a, i));
	for (unsigned int i = 0; i < STAT_COUNT; i++)
		emit(ctx, stat_names[i], value[i]);
	for (unsigned int i = 0; i < p->nqueues && a->active; i++) {
		struct xdp_levels levels;

		xdp_queue_levels(queue_of(a, i), &levels);
		emit_level(emit, ctx, i, "fill", levels.fill);
		emit_level(emit, ctx, i, "rx", levels.rx);
		emit_level(emit, ctx, i, "tx", levels.tx);
		emit_level(emit, ctx, i, "completion", levels.completion);
		emit_level(emit, ctx, i, "chunks", levels.owned);
	}
	emit(ctx, "umem_free", umem_free_count(a->umem));
}

static void af_xdp_free(struct af_xdp *a)
{
	for (unsigned int i = 0; i < a->port.nqueues && a->port.rxq[i]; i++)
		xdp_queue_destroy(queue_of(a, i));
	free(a);
}

static void af_xdp_destroy(struct port *p)
{
	struct af_xdp *a = af_xdp_of(p);

	detach(a);
	af_xdp_free(a);
}

static const struct port_type af_xdp_type = {
    .name = "af-xdp",
    .info = af_xdp_info,
    .stats = af_xdp_stats,
    .destroy = af_xdp_destroy,
};

static int create_queues(struct af_xdp *a, struct kicker *kicker)
{
	for (unsigned int i = 0; i < a->port.nqueues; i++) {
		struct xdp_queue *q;
		int err = xdp_queue_create(&q, &a->port, (uint16_t)i, a->umem, kicker);

		if (err)
			return err;
		a->port.rxq[i] = xdp_queue_rxq(q);
		a->port.txq[i] = xdp_queue_txq(q);
	}
	return 0;
}

/* What can be said about the configuration without touching the device. */
static int check_config(const struct af_xdp_config *config, struct netdev_info *dev,
			struct why *why)
{
	int err;

	if (!port_name_valid(config->name))
		return refuse(why, -EINVAL, "bad port name");
	if (!netdev_name_valid(config->device))
		return refuse(why, -EINVAL,
			      "\"%.32s\" is not a device name (1 to %d characters, no '/')",
			      config->device, IFNAMSIZ - 1);
	if (config->nqueues > PORT_QUEUES_MAX)
		return refuse(why, -EINVAL, "a port has at most %u queues", PORT_QUEUES_MAX);
	err = netdev_get(config->device, dev);
	if (err)
		return refuse(why, err, "no network device %s; see 'ip link'", config->device);
	if (dev->loopback)
		return refuse(why, -EINVAL,
			      "%s is the host's own loopback device, not a network; see 'ip link'",
			      config->device);
	return 0;
}

static struct af_xdp *af_xdp_alloc(const struct af_xdp_config *config,
				   const struct netdev_info *dev)
{
	struct af_xdp *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	strncpy(a->port.name, config->name, PORT_NAME_MAX);
	strncpy(a->device, config->device, IFNAMSIZ - 1);
	a->port.type = &af_xdp_type;
	a->port.id = PORT_ID_NONE;
	a->port.nqueues = config->nqueues ? config->nqueues : MIN(dev->queues, PORT_QUEUES_MAX);
	a->wanted = config->mode;
	a->umem = config->umem;
	a->promisc = -1;
	return a;
}

int af_xdp_port_create(struct port **out, const struct af_xdp_config *config, char *text,
		       unsigned int size)
{
	struct why why = {text, size};
	struct netdev_info dev = {0};
	struct af_xdp *a;
	int err = check_config(config, &dev, &why);

	if (err)
		return err;
	raise_memlock();
	a = af_xdp_alloc(config, &dev);
	if (!a)
		return refuse(&why, -ENOMEM, "no memory");
	err = create_queues(a, config->kicker);
	if (err)
		refuse(&why, err, "no memory");
	else
		err = attach(a, true, &why);
	if (err) {
		af_xdp_free(a);
		return err;
	}
	follow_link(a, &a->dev);
	*out = &a->port;
	return 0;
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
