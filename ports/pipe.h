/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port kind for tests: what a test sends comes out of the switch's receive queues, and what
 * the switch sends can be read by the test. One tester thread per port beside the workers.
 *
 * Frames are separate heap blocks of exactly their length which are freed in rxq done, so that
 * AddressSanitizer sees a read beyond a frame and a pointer kept beyond its round.
 *
 * A queue holds PIPE_RING frames in each direction. What the switch puts becomes readable only
 * when it flushes: a forgotten flush shows as missing frames.
 */
#ifndef XVS_PORTS_PIPE_H
#define XVS_PORTS_PIPE_H

#include <stdbool.h>
#include <stdint.h>

#include "ports/port.h"

#define PIPE_RING           1024u
#define PIPE_ROOM_UNLIMITED UINT32_MAX

/* ---- control thread ---- */

/*
 * 1..PORT_QUEUES_MAX queue pairs, all QUEUE_OFF, max_frame FRAME_MAX (a test may lower
 * p->txq[i]->max_frame while the queue is off). Returns 0, -EINVAL or -ENOMEM.
 */
int pipe_port_create(struct port **out, const char *name, unsigned int nqueues);

/* Sets the state of all queues (receive queues cannot be paused: off then) and republishes. */
void pipe_set_state(struct port *p, enum queue_state state);

/* ---- tester thread ---- */

/* Copies the frame in, to be polled by the switch. False: queue full or no memory. */
bool pipe_send(struct port *p, unsigned int queue, const void *frame, uint32_t len);

/* Takes the oldest frame sent to the queue; its length (cut at `size` bytes), 0 for none. */
uint32_t pipe_receive(struct port *p, unsigned int queue, void *buf, uint32_t size);

/*
 * From now on the queue takes n more frames and is then full, until the next call. A limit at
 * PIPE_RING frames that nobody read is always there. Exact when the switch is not sending.
 */
void pipe_set_room(struct port *p, unsigned int queue, uint32_t n);

#endif
