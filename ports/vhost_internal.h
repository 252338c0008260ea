/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a vhost-user port is made of. For these files only; everybody else uses ports/vhost.h.
 *
 *     ports/vhost.c        control: the front-end's wishes, states, exchange of memory, life
 *     ports/vhost_ring.c   control: where a ring lies and starts
 *     ports/vhost_fault.c  control: broken rings
 *     ports/vhost_info.c   control: what is shown
 *     ports/vhost_queue.c  workers: the queues' operations
 */
#ifndef XVS_PORTS_VHOST_INTERNAL_H
#define XVS_PORTS_VHOST_INTERNAL_H

#include "ports/vhost.h"

enum ring_enable {
	ENABLE_DEFAULT, /* as the protocol feature bit says */
	ENABLE_OFF,
	ENABLE_ON,
};

struct vhost_ring {
	/* owner: who has the queue, see port.h */
	struct vq vq;
	struct vq_counts folded; /* already in the port's counters */
	/* control, while the queue is OFF or PAUSED; read by the queue's owner */
	union {
		struct rxq rxq; /* odd rings: the guest transmits */
		struct txq txq; /* even rings: the guest receives */
	};
	const struct guest_mem *mem;
	int call_fd;
	bool to_guest;
	/* control */
	bool live;
	bool kicked;
	bool addressed;
	enum ring_enable enable;
	uint32_t size;
	uint16_t base;
	int kick_fd;
	int err_fd;
	struct vhost_ring_addr addr;
	const char *trouble; /* why it does not run although it was kicked; static, or NULL */
} CACHE_ALIGNED;

struct vhost_port {
	/* set at create */
	struct port port;
	const char *mode;
	char where[128];
	/* control */
	struct guest_mem *mem;
	uint64_t features;
	bool connected;
	const char *mem_trouble; /* why the last memory table was refused; static, or NULL */
	char reason[160];
	char found[160]; /* of the last vhost_check_faults() */
	/* control: no ring starts, see ports/vhost_fault.c; outlives the connection */
	bool refusing;
	uint64_t refuse_ns; /* the last one's length, 0: never */
	uint64_t refuse_until_ns;
	struct vhost_ring ring[];
};

/* ---- ports/vhost.c ---- */

/* Gives all rings the state they deserve, and tells the workers if that changed anything. */
void vhost_rings_update(struct vhost_port *v);

/* Takes the ring away from the workers; it needs a new kick to start again. */
void vhost_ring_halt(struct vhost_port *v, struct vhost_ring *r);

/* ---- ports/vhost_ring.c: no worker has the ring ---- */

/* Errors as vhost_ring_set_addr(). */
int vhost_ring_check_addr(const struct vhost_port *v, const struct vhost_ring *r,
			  const struct vhost_ring_addr *addr);

/*
 * Starts the ring if all that it needs is there and the port is not refused. -EFAULT: it is not
 * inside guest memory.
 */
int vhost_ring_try_start(struct vhost_port *v, struct vhost_ring *r);

/* A paused, live ring in a new place: same indices, other pointers. 0 or -EFAULT. */
int vhost_ring_move(struct vhost_port *v, struct vhost_ring *r);

/* ---- operations of the queues, for workers: ports/vhost_queue.c ---- */

extern const struct rxq_ops vhost_rxq_ops;
extern const struct txq_ops vhost_txq_ops;

/* ---- port_type.info: ports/vhost_info.c ---- */

void vhost_info(const struct port *p, struct port_info *out);

static inline bool vhost_ring_running(const struct vhost_ring *r)
{
	return (r->to_guest ? r->txq.state : r->rxq.state) == QUEUE_RUNNING;
}

static inline bool vhost_any_live(const struct vhost_port *v)
{
	for (unsigned int i = 0; i < vhost_nrings(v); i++)
		if (v->ring[i].live)
			return true;
	return false;
}

#endif
