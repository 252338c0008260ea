/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The topology: an immutable picture of which queues exist and who polls them.
 *
 * The control thread builds a new one for each change and publishes it; workers pick it up at the
 * start of a round and forget it at the end. A slot is an output's place in the arrays; FDB entries
 * name port ids, which are translated by slot_of[].
 */
#ifndef XVS_SWITCH_TOPOLOGY_H
#define XVS_SWITCH_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

#include "ports/port.h"
#include "switch/outq.h"

#define WORKERS_MAX 32
#define SLOT_NONE   UINT16_MAX

/* One transmit queue of an output. */
struct topo_txq {
	struct outq *oq;
	uint16_t index; /* place in the worker's per-queue state: 0..topology.ntxq-1 */
	uint16_t port_id;
	bool paused; /* frames wait, the queue is not touched */
};

/* A port that frames can be sent to. */
struct topo_output {
	uint16_t port_id;
	uint16_t ntxq;
	uint32_t max_frame; /* smallest of its queues */
	const struct topo_txq *txq;
};

/* A receive queue, on the list of the worker that polls it. */
struct topo_rxq {
	struct rxq *rxq;
	const struct rxq_ops *ops;
	uint16_t port_id;
	uint16_t index; /* queue number within the port */
};

struct topo_worker {
	unsigned int nrxq;
	struct topo_rxq *rxq;
};

struct topology {
	uint64_t generation;
	unsigned int noutputs;
	unsigned int ntxq;
	struct topo_output *output;
	struct topo_txq *txq;
	struct topo_worker worker[WORKERS_MAX];
	uint16_t slot_of[PORT_ID_MAX]; /* port id -> slot, or SLOT_NONE */
};

/* What a topology is built from: one attached port. */
struct topo_source {
	struct port *port;
	struct outq *const *outq; /* port->nqueues of them */
	const int8_t *rxq_worker; /* worker of each running receive queue */
};

/* NULL: no memory. */
struct topology *topology_build(const struct topo_source *source, unsigned int nports,
				uint64_t generation);
void topology_destroy(struct topology *t);

/* True when the port has any queue in the topology that would be built from it. */
bool topology_has(const struct port *port);

#endif
