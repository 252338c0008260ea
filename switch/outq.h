/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Output queue: what stands between the workers and one transmit queue of a port.
 *
 * Direct when empty: a worker that gets the try-lock and finds the backlog empty copies frames
 * straight into the receiver's ring. Otherwise (lock taken by another worker, older frames waiting,
 * ring full for the moment, queue paused) frames are copied to the backlog, in order. A full
 * backlog drops with a counter. Nobody ever waits or spins.
 *
 * Hand-off of the transmit queue: whoever holds the lock may touch txq and the backlog's consumer
 * end. A worker takes the lock with its first frame of a round and keeps it until outq_end() at the
 * round's end, which drains, flushes once and lets go.
 */
#ifndef XVS_SWITCH_OUTQ_H
#define XVS_SWITCH_OUTQ_H

#include <stdbool.h>
#include <stdint.h>

#include "base/counters.h"
#include "ports/port.h"
#include "switch/frame_pool.h"

#define OUTQ_BACKLOG 256u /* chunks that may wait in one queue */

struct outq;

/* ---- control thread ---- */

/* Reserves OUTQ_BACKLOG chunks of the pool. Returns 0 or a negative errno. */
int outq_create(struct outq **out, struct txq *txq, struct frame_pool *pool);

/* No worker sees the queue any more. Frees waiting frames. */
void outq_destroy(struct outq *oq);

/* No worker sees the queue any more: frees waiting frames, counts them as DROP_PORT_DOWN. */
void outq_purge(struct outq *oq, struct port_counters *c);

/* Chunks waiting; any thread. */
unsigned int outq_backlog(const struct outq *oq);

/* Frames waiting; any thread. A long frame takes several chunks. */
unsigned int outq_frames(const struct outq *oq);

/* ---- worker ---- */

/*
 * Sends or queues n frames, none longer than txq->max_frame. `paused`: the queue must not be
 * touched, frames only wait. `held`: this worker already holds the lock. Returns true when it does
 * afterwards: then outq_end() is due at the end of the round. `c` are this worker's counters of the
 * receiving port.
 */
bool outq_send(struct outq *oq, bool paused, bool held, struct pkt *const pkt[], unsigned int n,
	       struct port_counters *c, struct batch *scratch);

/*
 * Drains the backlog as far as the receiver takes it, makes everything visible, notifies, lets go
 * of the lock. Returns true when frames are left waiting: call outq_retry() in later rounds.
 */
bool outq_end(struct outq *oq, struct port_counters *c, struct batch *scratch);

/* Tries to drain what waits. Returns as outq_end(). */
bool outq_retry(struct outq *oq, struct port_counters *c, struct batch *scratch);

#endif
