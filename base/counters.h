/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every counter and every drop reason of a port: one row gives enum, name and meaning.
 *
 * "rx" is what the switch received from the port, "tx" what it sent to it. A frame that is
 * received once may be sent many times (flooding). For each port:
 *     frames taken from the port = rx_packets + drops with direction rx
 *     copies meant for the port  = tx_packets + drops with direction tx + frames in its backlog
 *
 * Each worker keeps one struct port_counters per port and is its only writer (counter_add());
 * the control thread sums over the workers with counters_sum().
 */
#ifndef XVS_BASE_COUNTERS_H
#define XVS_BASE_COUNTERS_H

#include <stdint.h>

#include "base/compiler.h"

/*      enum              name in CLI and JSON      meaning */
#define PORT_COUNTERS(X)                                                                           \
	X(RX_PACKETS, "rx_packets", "frames received from the port and accepted")                  \
	X(RX_BYTES, "rx_bytes", "bytes of these frames, without the virtio-net header")            \
	X(TX_PACKETS, "tx_packets", "frames sent to the port")                                     \
	X(TX_BYTES, "tx_bytes", "bytes of these frames, without the virtio-net header")            \
	X(RX_BATCHES, "rx_batches", "polls that found at least one frame")                         \
	X(FLOODED, "flooded", "received frames sent to all ports: group or unknown destination")   \
	X(BACKLOGGED, "backlogged", "frames that waited in the port's backlog before being sent")  \
	X(NOTIFY_SENT, "notify_sent", "guest interrupts (eventfd writes) and AF_XDP wake-ups")     \
	X(NOTIFY_SAVED, "notify_saved", "publications that the guest did not want announced")      \
	X(CSUM_COMPLETED, "csum_completed", "partial checksums of a veth peer completed")

/*      enum              direction  name            meaning */
#define DROP_REASONS(X)                                                                            \
	X(RUNT, rx, "runt", "shorter than an Ethernet header (14 bytes)")                          \
	X(OVERSIZE, rx, "oversize", "longer than the port may send")                               \
	X(BAD_CHAIN, rx, "bad_chain", "malformed descriptor chain in a guest's transmit queue")    \
	X(BAD_SOURCE, rx, "bad_source", "source address is zero or a group address")               \
	X(SAME_PORT, rx, "same_port", "destination is behind the port the frame came from")        \
	X(NO_DESTINATION, rx, "no_destination", "no other port is up")                             \
	X(BAD_BUFFER, tx, "bad_buffer", "malformed receive buffer offered by the guest")           \
	X(RING_FULL, tx, "ring_full", "receiver's ring full while it is congested")                \
	X(BACKLOG_FULL, tx, "backlog_full", "receiver's backlog full")                             \
	X(NO_FRAME, tx, "no_frame", "no free frame to queue or send the copy in")                  \
	X(BUFFER_TOO_SMALL, tx, "buffer_too_small", "receive buffers cannot hold the frame")       \
	X(TX_OVERSIZE, tx, "tx_oversize", "longer than the receiving port takes")                  \
	X(PORT_DOWN, tx, "port_down", "receiver went down with the frame in its backlog")

enum port_counter {
#define X(id, name, meaning) CTR_##id,
	PORT_COUNTERS(X)
#undef X
	    CTR_COUNT
};

enum drop_reason {
#define X(id, dir, name, meaning) DROP_##id,
	DROP_REASONS(X)
#undef X
	    DROP_COUNT
};

/* worker: one writer; readable by all with load_relaxed() */
struct port_counters {
	uint64_t value[CTR_COUNT];
	uint64_t drop[DROP_COUNT];
} CACHE_ALIGNED;

const char *counter_name(enum port_counter id);
const char *drop_name(enum drop_reason id);

/* total += part, word by word; `part` may be written meanwhile by its worker. */
void counters_sum(struct port_counters *total, const struct port_counters *part);

/* Sum of all drops of one direction. */
uint64_t counters_rx_dropped(const struct port_counters *c);
uint64_t counters_tx_dropped(const struct port_counters *c);

#endif
