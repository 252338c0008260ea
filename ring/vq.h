/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Device side of one virtqueue, whatever its layout: the contract between rings and ports.
 *
 * A vq is started with resolved addresses, used by exactly one worker (receive side) or by the
 * holder of the output queue's lock (transmit side), and stopped. It takes guest memory as a
 * parameter of each call because the map may be exchanged between rounds.
 *
 * Receive from the guest (its transmit queue):
 *     n = vq_pop(vq, mem, batch)   frames borrowed from guest memory, at most BATCH_MAX
 *     ...copy them...
 *     vq_complete(vq)              returns all popped heads: used entries written combined,
 *                                  index published once
 * Send to the guest (its receive queue):
 *     n = vq_put(vq, mem, pkt, n)  copies frames into the guest's buffers; nothing visible yet
 *     vq_publish(vq)               used entries and index
 * Either way:
 *     vq_need_notify(vq)           once, after publication
 *
 * Everything in guest memory is copied once, checked, then used. A malformed chain costs its
 * sender that chain; an impossible index breaks the queue (vq->fault), which then refuses all
 * work until it is started again. No guest value leads to an assert or an unbounded loop.
 */
#ifndef XVS_RING_VQ_H
#define XVS_RING_VQ_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "ring/batch.h"
#include "ring/guest_mem.h"
#include "ring/virtio_net.h"

/* Longest chain, in descriptors, indirect ones included; longer chains are malformed. */
#define VQ_CHAIN_MAX 1024

enum vq_fault {
	VQ_FAULT_NONE,
	VQ_FAULT_HEAD,       /* head number beyond the ring */
	VQ_FAULT_AVAIL_JUMP, /* more new entries than the ring has */
};

const char *vq_fault_text(enum vq_fault fault);

struct vq_config {
	uint32_t size; /* entries: power of two, 1..VRING_SIZE_MAX */
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;
	uint16_t base;      /* next avail entry to take, free-running */
	uint16_t used_base; /* next used entry to write, free-running */
	bool event_idx;     /* VIRTIO_F_EVENT_IDX negotiated */
	bool indirect;      /* VIRTIO_F_INDIRECT_DESC negotiated */
	bool mergeable;     /* VIRTIO_NET_F_MRG_RXBUF negotiated */
	uint8_t hdr_len;    /* virtio-net header: 10 or 12 bytes */
};

/* Used entries gathered before they are written to the guest. */
#define VQ_SHADOW 64

/* Counts of one vq since vq_start(); same writer as the queue. */
struct vq_counts {
	uint64_t bad_chains;       /* malformed transmit chains, returned with length 0 */
	uint64_t oversize;         /* well-formed transmit chains above FRAME_MAX */
	uint64_t runts;            /* transmit chains without a whole header, or below FRAME_MIN */
	uint64_t too_small_drops;  /* frames that a complete ring of receive buffers cannot hold */
	uint64_t bad_buffer_drops; /* frames lost to a malformed receive chain */
};

struct vq {
	/* set at start; read by the owner */
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;
	uint32_t size;
	uint16_t mask;
	uint8_t hdr_len;
	bool event_idx;
	bool indirect;
	bool mergeable;
	uint32_t chain_max; /* descriptors of a chain in the ring: min(size, VQ_CHAIN_MAX) */

	/* owner: worker, or holder of the output lock */
	uint16_t next_avail CACHE_ALIGNED; /* next avail entry to take */
	uint16_t avail_seen;               /* last value of avail->idx that was read */
	uint16_t used_next;                /* next used entry to write; published later */
	uint16_t used_published;           /* value of used->idx */
	uint16_t notified_at;              /* used index at the last notification check */
	uint16_t nshadow;                  /* entries in shadow[], not yet written */
	uint32_t hint;                     /* last region hit */
	uint16_t last_head;                /* of the last chain taken by vq_pop() */
	bool notified_once;                /* notified_at is meaningful */
	enum vq_fault fault;               /* relaxed: control looks at it while the owner works */
	struct vq_counts counts;
	struct vring_used_elem shadow[VQ_SHADOW] CACHE_ALIGNED;
};

/* ---- life cycle; control thread, while no worker sees the queue ---- */

/* Starts at the given indices and tells the guest not to kick (the queue is polled). */
void vq_start(struct vq *vq, const struct vq_config *config);

/* ---- owner ---- */

/* Frames the guest has made available and that have not been taken, as last read. */
static inline uint16_t vq_avail_cached(const struct vq *vq)
{
	return (uint16_t)(vq->avail_seen - vq->next_avail);
}

/*
 * Takes up to BATCH_MAX - batch->count frames. Malformed chains, runts and oversized frames are
 * consumed and counted in vq->counts. Returns the number of frames added to the batch; when that
 * is 0, heads may still have been taken, so vq_complete() is due in any case.
 */
unsigned int vq_pop(struct vq *vq, const struct guest_mem *mem, struct batch *batch);

/* Returns all heads taken by vq_pop() with length 0 and publishes. True if any were published. */
bool vq_complete(struct vq *vq);

/*
 * Copies up to n frames into the guest's buffers. Returns how many were dealt with: sent, or
 * dropped because a complete ring of buffers cannot hold them (counts.too_small_drops) or because
 * the guest offered a malformed buffer (counts.bad_buffer_drops).
 * *sent and *bytes grow by what was sent. Less than n means that the ring is full for now.
 */
unsigned int vq_put(struct vq *vq, const struct guest_mem *mem, struct pkt *const pkt[],
		    unsigned int n, uint64_t *sent, uint64_t *bytes);

/* Makes all used entries visible. True if there were any. */
bool vq_publish(struct vq *vq);

/* After a publication: does the driver want an interrupt? (2.7.7.2, 2.7.10) */
bool vq_need_notify(struct vq *vq);

#endif
