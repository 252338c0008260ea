/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vhost-user port: guest memory, virtqueues, and who may touch them when.
 *
 * Control changes a ring only while no worker has it. Each setter therefore works in three
 * steps: take the ring out (queue state OFF, or PAUSED for the guest's receive queues so that
 * frames wait in the backlog), port_republish(), which returns when every worker has finished its
 * round without it; change; set the state that the ring deserves now (vhost_rings_update()) and
 * republish again. The same holds for what a worker reads besides the queue: the memory map and the
 * call descriptor. Nothing is locked and no worker ever waits.
 *
 * A ring is `live` once it was started: vq holds its indices. It runs (QUEUE_RUNNING) while it is
 * live and enabled. Disabling keeps it live, so that nothing is lost and no kick is needed to go
 * on: rings are polled, kicks are never read.
 *
 * Elsewhere: where a ring lies and starts (vhost_ring.c), what workers do with its queue
 * (vhost_queue.c), what is done about broken ones (vhost_fault.c), what operators are told
 * (vhost_info.c).
 *
 * Rejected: reading kicks to know when a ring is started, which a poller does not need; a copy of
 * the memory map per ring, which would have to be exchanged ring by ring.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ports/event_fd.h"
#include "ports/vhost_internal.h"

/* ---- control: states ---- */

unsigned int vhost_nrings(const struct vhost_port *v)
{
	return 2 * v->port.nqueues;
}

static struct vhost_ring *ring_of(struct vhost_port *v, uint32_t ring)
{
	return ring < vhost_nrings(v) ? &v->ring[ring] : NULL;
}

static bool ring_enabled(const struct vhost_port *v, const struct vhost_ring *r)
{
	if (r->enable == ENABLE_DEFAULT)
		return !(v->features & FEATURE(VHOST_USER_F_PROTOCOL_FEATURES));
	return r->enable == ENABLE_ON;
}

static bool ring_set_state(struct vhost_ring *r, enum queue_state state)
{
	enum queue_state *now = r->to_guest ? &r->txq.state : &r->rxq.state;

	if (*now == state)
		return false;
	*now = state;
	return true;
}

void vhost_rings_update(struct vhost_port *v)
{
	bool changed = false;

	for (unsigned int i = 0; i < vhost_nrings(v); i++) {
		struct vhost_ring *r = &v->ring[i];
		const bool run = r->live && ring_enabled(v, r);

		changed |= ring_set_state(r, run ? QUEUE_RUNNING : QUEUE_OFF);
	}
	if (changed)
		port_republish(&v->port);
}

static bool ring_set_paused(struct vhost_ring *r)
{
	return vhost_ring_running(r) && ring_set_state(r, r->to_guest ? QUEUE_PAUSED : QUEUE_OFF);
}

/* When these return no worker touches the ring(s); vhost_rings_update() lets them go on. */
static void ring_pause(struct vhost_port *v, struct vhost_ring *r)
{
	if (ring_set_paused(r))
		port_republish(&v->port);
}

static void rings_pause(struct vhost_port *v)
{
	bool changed = false;

	for (unsigned int i = 0; i < vhost_nrings(v); i++)
		changed |= ring_set_paused(&v->ring[i]);
	if (changed)
		port_republish(&v->port);
}

/* Ends a live ring that no worker has any more; remembers where to go on. */
static void ring_retire(struct vhost_ring *r)
{
	r->base = r->vq.next_avail;
	r->live = false;
}

/* ---- control: descriptors ---- */

static void fd_drop(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* 0, or -EBADF; then fd is closed. */
static int fd_accept_eventfd(int fd)
{
	const int err = fd < 0 ? 0 : event_fd_check(fd);

	if (err)
		close(fd);
	return err;
}

/* ---- control: the front-end's wishes ---- */

/* Back to what a ring is before anybody set it up. Out of all workers' hands. */
static void ring_forget(struct vhost_ring *r)
{
	r->live = false;
	r->kicked = false;
	r->addressed = false;
	r->enable = ENABLE_DEFAULT;
	r->size = 0;
	r->base = 0;
	r->trouble = NULL;
	fd_drop(&r->kick_fd);
}

void vhost_stop_all(struct vhost_port *v)
{
	for (unsigned int i = 0; i < vhost_nrings(v); i++)
		v->ring[i].live = false;
	vhost_rings_update(v);
	for (unsigned int i = 0; i < vhost_nrings(v); i++)
		ring_forget(&v->ring[i]);
}

void vhost_connected(struct vhost_port *v)
{
	v->connected = true;
	v->reason[0] = '\0';
}

void vhost_reset(struct vhost_port *v)
{
	vhost_stop_all(v);
	for (unsigned int i = 0; i < vhost_nrings(v); i++) {
		fd_drop(&v->ring[i].call_fd);
		fd_drop(&v->ring[i].err_fd);
		v->ring[i].mem = NULL;
	}
	guest_mem_destroy(v->mem);
	v->mem = NULL;
	v->mem_trouble = NULL;
	v->features = 0;
	v->connected = false;
}

void vhost_set_reason(struct vhost_port *v, const char *reason)
{
	snprintf(v->reason, sizeof(v->reason), "%s", reason);
}

uint64_t vhost_get_features(const struct vhost_port *v)
{
	return v->features;
}

int vhost_set_features(struct vhost_port *v, uint64_t features)
{
	if (features & ~VHOST_FEATURES)
		return -EINVAL;
	if (features == v->features)
		return 0;
	if (vhost_any_live(v))
		return -EBUSY;
	v->features = features;
	vhost_rings_update(v);
	return 0;
}

/* All rings are paused and the map is new. */
static void rings_move(struct vhost_port *v)
{
	for (unsigned int i = 0; i < vhost_nrings(v); i++) {
		struct vhost_ring *r = &v->ring[i];

		if (r->live && vhost_ring_move(v, r)) {
			ring_retire(r);
			r->trouble = "the new memory table is without it";
		} else {
			vhost_ring_try_start(v, r);
		}
	}
}

int vhost_set_mem(struct vhost_port *v, const struct guest_mem_slot *slot, unsigned int n,
		  const char **why)
{
	struct guest_mem *old = v->mem, *mem;
	const int err = guest_mem_create(&mem, slot, n, why);

	v->mem_trouble = err ? *why : NULL;
	if (err)
		return err;
	rings_pause(v);
	v->mem = mem;
	rings_move(v);
	vhost_rings_update(v);
	guest_mem_destroy(old);
	return 0;
}

int vhost_ring_set_size(struct vhost_port *v, uint32_t ring, uint32_t size)
{
	struct vhost_ring *r = ring_of(v, ring);

	if (!r || size == 0 || size > VRING_SIZE_MAX || (size & (size - 1)))
		return -EINVAL;
	if (r->live)
		return size == r->size ? 0 : -EBUSY;
	r->size = size;
	return 0;
}

int vhost_ring_set_base(struct vhost_port *v, uint32_t ring, uint32_t base)
{
	struct vhost_ring *r = ring_of(v, ring);

	if (!r || base > UINT16_MAX)
		return -EINVAL;
	if (r->live)
		return -EBUSY;
	r->base = (uint16_t)base;
	return 0;
}

int vhost_ring_set_addr(struct vhost_port *v, uint32_t ring, const struct vhost_ring_addr *addr)
{
	struct vhost_ring *r = ring_of(v, ring);
	const int err = r ? vhost_ring_check_addr(v, r, addr) : -EINVAL;

	if (err)
		return err;
	ring_pause(v, r);
	r->addr = *addr;
	r->addressed = true;
	if (r->live)
		vhost_ring_move(v, r);
	else
		vhost_ring_try_start(v, r);
	vhost_rings_update(v);
	return 0;
}

int vhost_ring_enable(struct vhost_port *v, uint32_t ring, bool enabled)
{
	struct vhost_ring *r = ring_of(v, ring);

	if (!r)
		return -EINVAL;
	r->enable = enabled ? ENABLE_ON : ENABLE_OFF;
	vhost_rings_update(v);
	return 0;
}

int vhost_ring_set_kick(struct vhost_port *v, uint32_t ring, int fd)
{
	struct vhost_ring *r = ring_of(v, ring);
	int err;

	if (!r) {
		fd_drop(&fd);
		return -EINVAL;
	}
	fd_drop(&r->kick_fd);
	r->kick_fd = fd;
	r->kicked = true;
	r->trouble = NULL;
	err = vhost_ring_try_start(v, r);
	vhost_rings_update(v);
	return err;
}

int vhost_ring_set_call(struct vhost_port *v, uint32_t ring, int fd)
{
	struct vhost_ring *r = ring_of(v, ring);
	int err;

	if (!r) {
		fd_drop(&fd);
		return -EINVAL;
	}
	err = fd_accept_eventfd(fd);
	if (err)
		return err;
	ring_pause(v, r);
	fd_drop(&r->call_fd);
	r->call_fd = fd;
	if (r->live)
		event_fd_signal(fd);
	vhost_rings_update(v);
	return 0;
}

int vhost_ring_set_err(struct vhost_port *v, uint32_t ring, int fd)
{
	struct vhost_ring *r = ring_of(v, ring);
	int err;

	if (!r) {
		fd_drop(&fd);
		return -EINVAL;
	}
	err = fd_accept_eventfd(fd);
	if (err)
		return err;
	fd_drop(&r->err_fd);
	r->err_fd = fd;
	return 0;
}

void vhost_ring_halt(struct vhost_port *v, struct vhost_ring *r)
{
	if (r->live) {
		if (ring_set_state(r, QUEUE_OFF))
			port_republish(&v->port);
		ring_retire(r);
	}
	r->kicked = false;
	fd_drop(&r->kick_fd);
}

int vhost_ring_stop(struct vhost_port *v, uint32_t ring, uint32_t *base)
{
	struct vhost_ring *r = ring_of(v, ring);

	if (!r)
		return -EINVAL;
	vhost_ring_halt(v, r);
	r->trouble = NULL;
	*base = r->base;
	return 0;
}

static void vhost_destroy(struct port *p)
{
	struct vhost_port *v = vhost_of(p);

	vhost_reset(v);
	free(v);
}

static const struct port_type vhost_type = {
    .name = "vhost-user",
    .info = vhost_info,
    .destroy = vhost_destroy,
};

struct vhost_port *vhost_of(struct port *p)
{
	return container_of(p, struct vhost_port, port);
}

struct port *vhost_to_port(struct vhost_port *v)
{
	return &v->port;
}

static void ring_init(struct vhost_port *v, unsigned int i)
{
	const uint16_t queue = (uint16_t)(i / 2);
	struct vhost_ring *r = &v->ring[i];

	r->kick_fd = r->call_fd = r->err_fd = -1;
	r->to_guest = i % 2 == 0;
	if (r->to_guest) {
		r->txq = (struct txq){.ops = &vhost_txq_ops,
				      .port = &v->port,
				      .index = queue,
				      .max_frame = FRAME_MAX};
		v->port.txq[queue] = &r->txq;
	} else {
		r->rxq = (struct rxq){.ops = &vhost_rxq_ops, .port = &v->port, .index = queue};
		v->port.rxq[queue] = &r->rxq;
	}
}

int vhost_port_create(struct port **out, const char *name, unsigned int nqueues, const char *where,
		      const char *mode)
{
	const size_t size =
	    sizeof(struct vhost_port) + (size_t)2 * nqueues * sizeof(struct vhost_ring);
	struct vhost_port *v;

	if (!port_name_valid(name) || nqueues == 0 || nqueues > PORT_QUEUES_MAX)
		return -EINVAL;
	v = aligned_alloc(CACHE_LINE, (size + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
	if (!v)
		return -ENOMEM;
	memset(v, 0, size);
	snprintf(v->port.name, sizeof(v->port.name), "%s", name);
	snprintf(v->where, sizeof(v->where), "%s", where);
	v->mode = mode;
	v->port.type = &vhost_type;
	v->port.nqueues = nqueues;
	v->port.id = PORT_ID_NONE;
	for (unsigned int i = 0; i < 2 * nqueues; i++)
		ring_init(v, i);
	*out = &v->port;
	return 0;
}
