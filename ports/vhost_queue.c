/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queues of a vhost-user port as workers use them.
 *
 * Thread: whoever has the queue, a worker for receive queues, the holder of the output lock for
 * transmit queues (ports/port.h). Everything that is read here (memory map, call descriptor, vq) is
 * exchanged by control only while the queue is out of the topology, so that nothing is checked
 * twice and nothing is locked.
 *
 * The virtqueue does the work (ring/vq.h); this file adds the memory map, counters and the
 * interrupt. A virtqueue counts what it refuses for itself; the differences are folded into the
 * port's counters by the thread that polled or put, which is their one writer.
 *
 * Full: put() returns less than asked, the switch keeps or drops and counts. The interrupt is an
 * eventfd write that does not block (ports/event_fd.h says what a hostile front-end can still do).
 */
#include <unistd.h>

#include "base/atomic.h"
#include "ports/vhost_internal.h"

static void ring_signal(int fd)
{
	const uint64_t one = 1;

	/* EAGAIN: the counter is at its maximum, so a signal is pending anyway. */
	if (fd >= 0 && write(fd, &one, sizeof(one)) < 0)
		return;
}

/* After a publication. */
static void ring_notify(struct vhost_ring *r, struct port_counters *c)
{
	if (!vq_need_notify(&r->vq) || r->call_fd < 0) {
		counter_add(&c->value[CTR_NOTIFY_SAVED], 1);
		return;
	}
	ring_signal(r->call_fd);
	counter_add(&c->value[CTR_NOTIFY_SENT], 1);
}

static void fold(uint64_t *counter, uint64_t now, uint64_t *before)
{
	if (now != *before)
		counter_add(counter, now - *before);
	*before = now;
}

static void rx_fold(struct vhost_ring *r, struct port_counters *c)
{
	const struct vq_counts *now = &r->vq.counts;

	fold(&c->drop[DROP_BAD_CHAIN], now->bad_chains, &r->folded.bad_chains);
	fold(&c->drop[DROP_OVERSIZE], now->oversize, &r->folded.oversize);
	fold(&c->drop[DROP_RUNT], now->runts, &r->folded.runts);
}

static void tx_fold(struct vhost_ring *r, struct port_counters *c)
{
	const struct vq_counts *now = &r->vq.counts;

	fold(&c->drop[DROP_BUFFER_TOO_SMALL], now->too_small_drops, &r->folded.too_small_drops);
	fold(&c->drop[DROP_BAD_BUFFER], now->bad_buffer_drops, &r->folded.bad_buffer_drops);
}

static void vhost_done(struct rxq *q, struct batch *batch, struct port_counters *c)
{
	struct vhost_ring *r = container_of(q, struct vhost_ring, rxq);

	(void)batch;
	if (vq_complete(&r->vq))
		ring_notify(r, c);
}

static unsigned int vhost_poll(struct rxq *q, struct batch *batch, struct port_counters *c)
{
	struct vhost_ring *r = container_of(q, struct vhost_ring, rxq);
	const uint16_t before = r->vq.next_avail;
	const unsigned int n = vq_pop(&r->vq, r->mem, batch);

	/* The common case: every head taken was a frame. */
	if (likely((uint16_t)(r->vq.next_avail - before) == n))
		return n;
	rx_fold(r, c);
	/* Only bad ones: the switch has nothing to do and will not call done. */
	if (n == 0)
		vhost_done(q, batch, c);
	return n;
}

static unsigned int vhost_put(struct txq *q, struct pkt *const pkt[], unsigned int n,
			      struct port_counters *c)
{
	struct vhost_ring *r = container_of(q, struct vhost_ring, txq);
	uint64_t sent = 0, bytes = 0;
	const unsigned int dealt = vq_put(&r->vq, r->mem, pkt, n, &sent, &bytes);

	counter_add(&c->value[CTR_TX_PACKETS], sent);
	counter_add(&c->value[CTR_TX_BYTES], bytes);
	if (unlikely(dealt != sent))
		tx_fold(r, c);
	return dealt;
}

static void vhost_flush(struct txq *q, struct port_counters *c)
{
	struct vhost_ring *r = container_of(q, struct vhost_ring, txq);

	if (vq_publish(&r->vq))
		ring_notify(r, c);
}

const struct rxq_ops vhost_rxq_ops = {.poll = vhost_poll, .done = vhost_done};
const struct txq_ops vhost_txq_ops = {.put = vhost_put, .flush = vhost_flush};
