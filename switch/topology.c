/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Building topologies.
 *
 * A topology is rebuilt from the ports' queue states for every change, however small: the cost is
 * linear in the number of queues (microseconds for hundreds), and there is one way for a queue to
 * come, go or pause instead of one per event. Changes are rare; lookups by workers are not.
 *
 * Only queues in the state RUNNING (and transmit queues that are PAUSED) appear. A port without a
 * transmit queue in it is no output: nothing is flooded to it, and addresses behind it count as
 * unknown.
 *
 * Control thread. The result is immutable; vswitch_publish() frees the old one when no worker can
 * see it any more.
 */
#include "switch/topology.h"

#include <stdlib.h>

static unsigned int count_rxq(const struct port *p)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < p->nqueues; i++)
		n += p->rxq[i]->state == QUEUE_RUNNING;
	return n;
}

static unsigned int count_txq(const struct port *p)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < p->nqueues; i++)
		n += p->txq[i]->state != QUEUE_OFF;
	return n;
}

bool topology_has(const struct port *port)
{
	return count_rxq(port) || count_txq(port);
}

static void add_output(struct topology *t, const struct topo_source *s)
{
	const struct port *p = s->port;
	struct topo_output *out = &t->output[t->noutputs];

	if (count_txq(p) == 0)
		return;
	t->slot_of[p->id] = (uint16_t)t->noutputs++;
	*out = (struct topo_output){
	    .port_id = p->id,
	    .max_frame = FRAME_MAX,
	    .txq = &t->txq[t->ntxq],
	};
	for (unsigned int i = 0; i < p->nqueues; i++) {
		const struct txq *q = p->txq[i];

		if (q->state == QUEUE_OFF)
			continue;
		t->txq[t->ntxq] = (struct topo_txq){
		    .oq = s->outq[i],
		    .index = (uint16_t)t->ntxq,
		    .port_id = p->id,
		    .paused = q->state == QUEUE_PAUSED,
		};
		t->ntxq++;
		out->ntxq++;
		out->max_frame = MIN(out->max_frame, q->max_frame);
	}
}

static void add_inputs(struct topology *t, const struct topo_source *s)
{
	const struct port *p = s->port;

	for (unsigned int i = 0; i < p->nqueues; i++) {
		struct rxq *q = p->rxq[i];

		if (q->state != QUEUE_RUNNING)
			continue;
		struct topo_worker *w = &t->worker[s->rxq_worker[i]];

		w->rxq[w->nrxq++] = (struct topo_rxq){
		    .rxq = q,
		    .ops = q->ops,
		    .port_id = p->id,
		    .index = q->index,
		};
	}
}

/* Room for everything that is counted, in one place per array. */
static bool allocate(struct topology *t, const struct topo_source *source, unsigned int nports)
{
	unsigned int rx_of[ARRAY_LEN(t->worker)] = {0};
	unsigned int ntxq = 0;

	for (unsigned int k = 0; k < nports; k++) {
		const struct port *p = source[k].port;

		ntxq += count_txq(p);
		for (unsigned int i = 0; i < p->nqueues; i++)
			if (p->rxq[i]->state == QUEUE_RUNNING)
				rx_of[source[k].rxq_worker[i]]++;
	}
	t->output = calloc(nports + 1, sizeof(*t->output));
	t->txq = calloc(ntxq + 1, sizeof(*t->txq));
	if (!t->output || !t->txq)
		return false;
	for (unsigned int w = 0; w < ARRAY_LEN(t->worker); w++) {
		t->worker[w].rxq = calloc(rx_of[w] + 1, sizeof(struct topo_rxq));
		if (!t->worker[w].rxq)
			return false;
	}
	return true;
}

struct topology *topology_build(const struct topo_source *source, unsigned int nports,
				uint64_t generation)
{
	struct topology *t = calloc(1, sizeof(*t));

	if (!t || !allocate(t, source, nports)) {
		topology_destroy(t);
		return NULL;
	}
	t->generation = generation;
	for (unsigned int i = 0; i < PORT_ID_MAX; i++)
		t->slot_of[i] = SLOT_NONE;
	for (unsigned int k = 0; k < nports; k++) {
		add_output(t, &source[k]);
		add_inputs(t, &source[k]);
	}
	return t;
}

void topology_destroy(struct topology *t)
{
	if (!t)
		return;
	for (unsigned int w = 0; w < ARRAY_LEN(t->worker); w++)
		free(t->worker[w].rxq);
	free(t->output);
	free(t->txq);
	free(t);
}
