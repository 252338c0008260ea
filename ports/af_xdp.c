/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An AF_XDP port: the life of a port whose device comes and goes.
 *
 * The port is attached (xdp_device.c: program, sockets, settings) or detached (nothing at all on
 * any device); while attached its queues run whenever the link does. The packet path is in
 * xdp_queue.c. This file decides when to do which, and tells operators how it is.
 *
 * af_xdp_link_changed() compares what is with what was: a device that vanished is detached from,
 * one of that name that came back is attached to, the queues run while the link does. Whether
 * "our" device is still there is asked of the program's link, because a new device may have got
 * the old one's number between two looks. Another MTU takes the queues out for a moment, since
 * max_frame belongs to the workers while they run.
 *
 * Order: the queues are off and republished (no worker is inside any more) before anything is
 * detached, and attached before they run.
 *
 * Control thread only. A failure to attach again is a reason to show, not an end: the next change
 * of a link, or the periodic look, tries once more, without waiting for a busy queue. Only the
 * attach at create waits, since it is often the successor of a port that was just removed.
 */
#include "ports/af_xdp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ports/netdev.h"
#include "ports/umem.h"
#include "ports/xdp_device.h"
#include "ports/xdp_queue.h"

#define TAG_LEN 4u

static const char *const stat_names[] = {
#define X(id, name, help) name,
    XDP_STATS(X)
#undef X
};

struct af_xdp {
	struct port port;
	/* set at create */
	char device[IFNAMSIZ];
	struct umem *umem;
	struct xdp_device *on; /* what is on the device */
	/* control; while attached */
	struct netdev_info dev;
	bool running; /* the queues are in the topology */
	/* control */
	char reason[160];
};

static struct af_xdp *af_xdp_of(const struct port *p)
{
	return container_of(p->rxq[0]->port, struct af_xdp, port);
}

static struct xdp_queue *queue_of(const struct af_xdp *a, unsigned int i)
{
	return xdp_queue_of(a->port.rxq[i]);
}

static bool attached(const struct af_xdp *a)
{
	return xdp_device_mode(a->on) != NULL;
}

/* `patient`: wait for a queue that is still busy. On failure nothing is left attached. */
static int attach(struct af_xdp *a, bool patient, struct xdp_why *why)
{
	const int err = netdev_get(a->device, &a->dev);

	if (err)
		return xdp_refuse(why, err, "no network device %s: %s", a->device, strerror(-err));
	return xdp_device_attach(a->on, &a->dev, patient, why);
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
	struct xdp_why why = {a->reason, sizeof(a->reason)};
	struct netdev_info now = {0};
	const int err = netdev_get(a->device, &now);

	if (attached(a) && (err || xdp_device_ifindex(a->on) != now.ifindex)) {
		set_running(a, false);
		xdp_device_detach(a->on);
	}
	if (err) {
		snprintf(a->reason, sizeof(a->reason), "device %s is gone; waits for it to return",
			 a->device);
		return;
	}
	if (attached(a) || attach(a, false, &why) == 0)
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
	uint64_t value[XDP_STAT_COUNT] = {0};

	xdp_device_count_current(a->on, value);
	if (value[XDP_STAT_OVERSIZE])
		snprintf(
		    out->warning, sizeof(out->warning),
		    "too long frames were dropped (xdp_oversize): for a veth, run at its other "
		    "end: ethtool -K DEVICE tso off gso off; for a NIC: ethtool -K %s gro off lro "
		    "off",
		    a->device);
	else if (attached(a) && a->dev.rx_queues > a->port.nqueues)
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
	out->mode = attached(a) ? xdp_device_mode(a->on) : "";
	out->nqueues = p->nqueues;
	snprintf(out->where, sizeof(out->where), "%s", a->device);
	snprintf(out->reason, sizeof(out->reason), "%s", a->running ? "" : a->reason);
	af_xdp_warning(a, out);
	for (unsigned int i = 0; i < p->nqueues && attached(a); i++) {
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
	uint64_t value[XDP_STAT_COUNT] = {0};

	xdp_device_count_past(a->on, value);
	xdp_device_count_current(a->on, value);
	for (unsigned int i = 0; i < p->nqueues; i++)
		value[XDP_STAT_KICKS] += xdp_queue_kicks(queue_of(a, i));
	for (unsigned int i = 0; i < XDP_STAT_COUNT; i++)
		emit(ctx, stat_names[i], value[i]);
	for (unsigned int i = 0; i < p->nqueues && attached(a); i++) {
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
	xdp_device_destroy(a->on);
	for (unsigned int i = 0; i < a->port.nqueues && a->port.rxq[i]; i++)
		xdp_queue_destroy(queue_of(a, i));
	free(a);
}

static void af_xdp_destroy(struct port *p)
{
	af_xdp_free(af_xdp_of(p));
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
			struct xdp_why *why)
{
	int err;

	if (!port_name_valid(config->name))
		return xdp_refuse(why, -EINVAL, "bad port name");
	if (!netdev_name_valid(config->device))
		return xdp_refuse(why, -EINVAL,
				  "\"%.32s\" is not a device name (1 to %d characters, no '/')",
				  config->device, IFNAMSIZ - 1);
	if (config->nqueues > PORT_QUEUES_MAX)
		return xdp_refuse(why, -EINVAL, "a port has at most %u queues", PORT_QUEUES_MAX);
	err = netdev_get(config->device, dev);
	if (err)
		return xdp_refuse(why, err, "no network device %s; see 'ip link'", config->device);
	if (dev->loopback)
		return xdp_refuse(
		    why, -EINVAL,
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
	a->umem = config->umem;
	return a;
}

int af_xdp_port_create(struct port **out, const struct af_xdp_config *config, char *text,
		       unsigned int size)
{
	struct xdp_why why = {text, size};
	struct netdev_info dev = {0};
	struct af_xdp *a;
	int err = check_config(config, &dev, &why);

	if (err)
		return err;
	a = af_xdp_alloc(config, &dev);
	if (!a)
		return xdp_refuse(&why, -ENOMEM, "no memory");
	err = create_queues(a, config->kicker);
	if (!err)
		err = xdp_device_create(&a->on, &a->port, a->device, config->mode, a->umem);
	if (err)
		xdp_refuse(&why, err, "no memory");
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
