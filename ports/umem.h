/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The one UMEM of the switch: an area of equal chunks that all XDP sockets share, and the list
 * of free chunks. The memory is mapped at create but not touched, and registered with the
 * kernel with the first socket.
 *
 * A chunk is always in exactly one place: the free list, a queue's private cache, a fill, RX, TX
 * or completion ring, or a batch. umem_free_count() plus what the queues report equals
 * umem_chunks() at rest; tests hold the switch to it.
 */
#ifndef XVS_PORTS_UMEM_H
#define XVS_PORTS_UMEM_H

#include <stdint.h>

#define UMEM_CHUNK 2048u

struct umem;

/* `chunks`: power of two, 1024..1048576. Returns 0, -EINVAL or -ENOMEM. Control thread. */
int umem_create(struct umem **out, uint32_t chunks);
void umem_destroy(struct umem *umem); /* NULL is fine; no socket may be left */

uint32_t umem_chunks(const struct umem *umem);
uint8_t *umem_base(const struct umem *umem);

/* Worker: takes up to n free chunks (numbers, not addresses); returns how many. Any thread. */
unsigned int umem_take(struct umem *umem, uint32_t chunk[], unsigned int n);
/* Gives chunks back. Any thread. */
void umem_give(struct umem *umem, const uint32_t chunk[], unsigned int n);
/* Free chunks right now. */
uint32_t umem_free_count(const struct umem *umem);

#endif
