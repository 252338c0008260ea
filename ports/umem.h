/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The one UMEM of the switch: an area of equal chunks that all XDP sockets share, the list of
 * free chunks, and for each chunk who has it.
 *
 * An owner is a socket (with its four rings, caches and the batch that was polled from it). A
 * chunk is free or has exactly one owner, whatever the kernel does with it: when the socket is
 * closed, umem_owner_close() frees all it had, without looking into dead rings.
 * umem_free_count() plus umem_owned() of all owners equals umem_chunks() at rest; tests hold
 * the switch to it.
 *
 * The memory is mapped at create and first touched when a socket registers it.
 */
#ifndef XVS_PORTS_UMEM_H
#define XVS_PORTS_UMEM_H

#include <stddef.h>
#include <stdint.h>

#define UMEM_CHUNK      2048u
#define UMEM_OWNERS_MAX 4096u
#define UMEM_NO_OWNER   0u /* owner of free chunks; no socket has this number */

struct umem;

/* ---- control thread ---- */

/* `chunks`: power of two, 1024..1048576. Returns 0, -EINVAL or -ENOMEM. */
int umem_create(struct umem **out, uint32_t chunks);
void umem_destroy(struct umem *umem); /* NULL is fine; no socket may be left */

uint32_t umem_chunks(const struct umem *umem);
uint8_t *umem_base(const struct umem *umem);
size_t umem_size(const struct umem *umem); /* bytes */

/* A number for a new owner, 1..UMEM_OWNERS_MAX-1. Returns 0 or -ENOSPC. */
int umem_owner_open(struct umem *umem, uint16_t *owner);

/* Frees all chunks of the owner, which no thread and no kernel uses any more; returns how many. */
uint32_t umem_owner_close(struct umem *umem, uint16_t owner);

/* ---- any thread ---- */

/* Takes up to n free chunks (numbers, not addresses) for `owner`; returns how many. */
unsigned int umem_take(struct umem *umem, uint16_t owner, uint32_t chunk[], unsigned int n);
/* Gives chunks back. */
void umem_give(struct umem *umem, const uint32_t chunk[], unsigned int n);
/* The chunk, which the caller has, belongs to `owner` from now on. */
void umem_pass(struct umem *umem, uint32_t chunk, uint16_t owner);

/* ---- inspection, exact at rest ---- */

uint32_t umem_free_count(const struct umem *umem);
uint32_t umem_owned(const struct umem *umem, uint16_t owner);

#endif
