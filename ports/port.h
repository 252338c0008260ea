/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a port is to the switch: a name, receive queues and transmit queues.
 *
 * Life cycle (control thread): a kind's create function (vhost_port_create(), ...) returns a
 * struct port; vswitch_add_port() gives it an id and makes it part of the topology; queues then
 * come and go as their `state` says; vswitch_del_port() takes it out; port_destroy() frees it.
 *
 * Hand-off of a queue. Queues are created with the port and live as long as it does. `state` is
 * control's wish. A worker touches a queue only while a published topology contains it, so:
 *     to start  set the queue up, set state, port_republish(); afterwards it is the workers'
 *     to stop   set state, port_republish(); when that returns, every worker has finished its
 *               round without the queue, and indices and memory are control's again
 * port_republish() calls what the switch installed (vswitch_publish()); in a unit test it may
 * be anything.
 *
 * Adding a kind: one file with a struct port_type, rxq_ops and txq_ops, and one row in the
 * table of kinds in control/.
 */
#ifndef XVS_PORTS_PORT_H
#define XVS_PORTS_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/counters.h"
#include "ring/batch.h"

#define PORT_NAME_MAX   31
#define PORT_ID_MAX     1024 /* ports of one switch; ids are 0..PORT_ID_MAX-1 */
#define PORT_ID_NONE    UINT16_MAX
#define PORT_QUEUES_MAX 64 /* queue pairs of one port */

struct port;
struct rxq;
struct txq;

enum queue_state {
	QUEUE_OFF,     /* not in the topology */
	QUEUE_PAUSED,  /* transmit only: frames for it wait in the backlog, it is not touched */
	QUEUE_RUNNING, /* in the topology */
};

/* ---- receive: polled by exactly one worker ---- */

struct rxq_ops {
	/*
	 * Adds frames to the (empty) batch, at most BATCH_MAX; returns how many. Counts
	 * RX drops it makes itself (bad chains, runts, ...) in *c. CTR_RX_PACKETS and CTR_RX_BYTES
	 * are the switch's.
	 */
	unsigned int (*poll)(struct rxq *q, struct batch *batch, struct port_counters *c);
	/* All frames of the batch have been copied out: give the buffers back, notify. */
	void (*done)(struct rxq *q, struct batch *batch, struct port_counters *c);
};

struct rxq {
	const struct rxq_ops *ops; /* set at create */
	struct port *port;         /* set at create */
	uint16_t index;            /* queue number within the port; set at create */
	enum queue_state state;    /* control */
};

/* ---- transmit: used by the holder of the output queue's lock ---- */

struct txq_ops {
	/*
	 * Copies up to n frames out. Returns how many were dealt with: sent (CTR_TX_PACKETS,
	 * CTR_TX_BYTES counted here) or dropped with a reason counted in *c. Less than n means
	 * full for now. Frames longer than txq.max_frame never get here.
	 */
	unsigned int (*put)(struct txq *q, struct pkt *const pkt[], unsigned int n,
			    struct port_counters *c);
	/* Makes what was put visible and notifies at most once. Once per touched queue and round.
	 */
	void (*flush)(struct txq *q, struct port_counters *c);
};

struct txq {
	const struct txq_ops *ops; /* set at create */
	struct port *port;         /* set at create */
	uint16_t index;            /* queue number within the port; set at create */
	uint32_t max_frame;        /* bytes, 60..FRAME_MAX; set while QUEUE_OFF */
	enum queue_state state;    /* control */
};

/* ---- the port; control thread only ---- */

enum port_state { PORT_DOWN, PORT_UP };

/* What `port show` wants to know; a kind fills in what it has. Strings: static or the port's. */
#define PORT_INFO_FEATURES 64
struct port_info {
	enum port_state state;
	char reason[160];  /* why not up, and what to do; empty when up */
	char warning[200]; /* a trap that costs speed or traffic; empty when none */
	const char *mode;  /* af-xdp: "zero-copy", "native", "generic"; vhost-user: "server"... */
	char where[128];   /* socket path or device */
	const char *feature[PORT_INFO_FEATURES]; /* negotiated features by name */
	unsigned int nfeatures;
	unsigned int nqueues;              /* queue pairs configured */
	uint32_t rx_ring[PORT_QUEUES_MAX]; /* ring sizes, 0 = not set up; rx as in rxq */
	uint32_t tx_ring[PORT_QUEUES_MAX];
};

/* Kind-specific statistics beside the common counters: name -> value. */
typedef void port_stat_fn(void *ctx, const char *name, uint64_t value);

struct port_type {
	const char *name; /* word of the command line: "vhost-user", "af-xdp" */
	void (*info)(const struct port *p, struct port_info *out);
	void (*stats)(const struct port *p, port_stat_fn *emit, void *ctx); /* may be NULL */
	/* The port was taken out of the topology: release everything, free p. */
	void (*destroy)(struct port *p);
};

struct port {
	/* set at create */
	char name[PORT_NAME_MAX + 1];
	const struct port_type *type;
	unsigned int nqueues; /* queue pairs: rxq[] and txq[] have this many entries */
	struct rxq *rxq[PORT_QUEUES_MAX];
	struct txq *txq[PORT_QUEUES_MAX];
	/* set by vswitch_add_port() */
	uint16_t id;
	void (*republish)(void *ctx);
	void *republish_ctx;
};

/* True for 1..PORT_NAME_MAX characters of [A-Za-z0-9._-], not starting with '.' or '-'. */
bool port_name_valid(const char *name);

/*
 * The queues' states have changed: brings the topology up to date and returns when no worker
 * uses the old one. Before the port is part of a switch it does nothing.
 */
void port_republish(struct port *p);

static inline void port_destroy(struct port *p)
{
	if (p)
		p->type->destroy(p);
}

#endif
