/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One XDP socket as a pair of switch queues. The port (af_xdp.c) creates its queues once;
 * xdp_device.c opens and closes their sockets as the device comes and goes.
 *
 *     create -> { open -> start -> [workers] -> close -> (registration gone) -> reclaim }* ->
 * destroy
 */
#ifndef XVS_PORTS_XDP_QUEUE_H
#define XVS_PORTS_XDP_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "ports/port.h"
#include "ports/umem.h"

struct kicker;
struct xdp_queue;
struct xdp_statistics;
struct xsk_umem;

/*
 * Sizes, in entries. All chunks that a queue can hold at a time:
 *     XDPQ_RX_CHUNKS    in fill ring, RX ring and the batch of the moment; always
 *   + XDPQ_TX_RING      in TX ring, in flight, in the completion ring; while it sends
 *   + XDPQ_TX_SPARE     kept at hand for the next frames to send
 *   = 960 <= 1024, so that 32 queues fit in the default UMEM of 32768 chunks (64 MiB).
 * The fill ring is twice the RX ring (a driver in zero-copy mode moves many entries at once into
 * its own ring); the chunks are those of a full RX ring and four batches on their way back.
 */
#define XDPQ_RX_RING   512u
#define XDPQ_FILL_RING 1024u
#define XDPQ_RX_CHUNKS 640u
#define XDPQ_TX_RING   256u
#define XDPQ_TX_SPARE  64u

/* Largest frame that the kernel puts into a chunk: it keeps 256 bytes in front of it. */
#define XDPQ_RX_FRAME_MAX (UMEM_CHUNK - 256u)
#define XDPQ_TX_FRAME_MAX UMEM_CHUNK

_Static_assert(XDPQ_RX_CHUNKS + XDPQ_TX_RING + XDPQ_TX_SPARE <= 1024, "32 queues in 32768 chunks");
_Static_assert(XDPQ_RX_CHUNKS <= XDPQ_FILL_RING, "the fill ring takes all of them");

/* ---- control thread ---- */

/* Queue `index` of the port, without a socket. `kicker` may be NULL. 0 or -ENOMEM. */
int xdp_queue_create(struct xdp_queue **out, struct port *port, uint16_t index, struct umem *umem,
		     struct kicker *kicker);
void xdp_queue_destroy(struct xdp_queue *q);

struct rxq *xdp_queue_rxq(struct xdp_queue *q);
struct txq *xdp_queue_txq(struct xdp_queue *q);
struct xdp_queue *xdp_queue_of(struct rxq *rxq);

/* Registers the UMEM's memory with the kernel, using the rings of this, the port's first queue. */
int xdp_queue_register(struct xdp_queue *q, struct xsk_umem **out);

/*
 * Opens and binds the socket. `bind_flags`: XDP_COPY or XDP_ZEROCOPY. Returns 0, -EBUSY (queue
 * in use by a socket), -EOPNOTSUPP, -EINVAL (no such queue), ... On failure nothing is left.
 */
int xdp_queue_open(struct xdp_queue *q, struct xsk_umem *registration, const char *device,
		   uint16_t bind_flags);

/* Gives the kernel chunks to receive into. `complete`: repair partial checksums. 0 or -ENOMEM. */
int xdp_queue_start(struct xdp_queue *q, bool complete);

/*
 * Closes the socket; no worker uses the queue. The kernel may use the chunks until the
 * registration is deleted too; then xdp_queue_reclaim() frees all that the queue had. Should the
 * device never be done with them, xdp_queue_abandon() leaves them out of use for good.
 */
void xdp_queue_close(struct xdp_queue *q);
void xdp_queue_reclaim(struct xdp_queue *q);
void xdp_queue_abandon(struct xdp_queue *q);

int xdp_queue_fd(const struct xdp_queue *q);
bool xdp_queue_zero_copy(const struct xdp_queue *q);

/* ---- inspection ---- */

struct xdp_levels {
	uint32_t fill, rx, tx, completion; /* entries in the rings right now */
	uint32_t owned;                    /* chunks */
};

/* The kernel's counters of the socket. Returns 0 or a negative errno. */
int xdp_queue_statistics(const struct xdp_queue *q, struct xdp_statistics *out);
void xdp_queue_levels(const struct xdp_queue *q, struct xdp_levels *out);
uint64_t xdp_queue_kicks(const struct xdp_queue *q); /* system calls made for the socket */

#endif
