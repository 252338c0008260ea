/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Guest memory: which guest-physical addresses are where in this process.
 *
 * A map is built by the control thread from file descriptors, is immutable afterwards, and is
 * handed to workers by publication. Translation is total: any address and length may be asked,
 * a range that is not wholly inside one region gives NULL, arithmetic cannot overflow.
 *
 * Two address spaces name the same regions: guest-physical (descriptors) and the front-end's
 * user addresses (ring addresses in VHOST_USER_SET_VRING_ADDR).
 *
 * A front-end can shrink its file later; the first touch of the hole raises SIGBUS. The handler
 * of guest_mem_catch_sigbus() puts a zero page over the hole and marks the map, see
 * guest_mem_has_hole().
 */
#ifndef XVS_RING_GUEST_MEM_H
#define XVS_RING_GUEST_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

#define GUEST_MEM_REGIONS_MAX 512

/* One region as a front-end announces it. All in bytes. */
struct guest_mem_slot {
	uint64_t gpa; /* guest-physical address */
	uint64_t uva; /* address in the front-end's process */
	uint64_t size;
	uint64_t offset; /* of the region in the file */
	int fd;          /* stays the caller's; -1 is refused */
};

/* set at create, then immutable */
struct guest_region {
	uint64_t gpa;
	uint64_t size;
	uint64_t uva;
	uint8_t *host;
	uint8_t *map;     /* start of the mapping: host rounded down to a page */
	size_t map_size;  /* multiple of page_size */
	size_t page_size; /* of the file: 4096, 2 MiB, ... */
	int watch;        /* sigbus_watch() handle */
};

struct guest_mem {
	uint32_t nregions;
	uint32_t hole; /* the SIGBUS handler's, any thread; atomic */
	struct guest_region region[];
};

/* ---- control thread ---- */

/*
 * Maps n slots (1..GUEST_MEM_REGIONS_MAX) read-write and shared, without populating or locking
 * them, excluded from core dumps. On success *out is the map. On failure nothing stays mapped
 * and *why (static text) says what is wrong:
 *   -EINVAL   no slots, size 0, an address range that wraps or overlaps another
 *   -E2BIG    more than GUEST_MEM_REGIONS_MAX slots
 *   -EBADF    slot without a file descriptor
 *   -EINVAL   also: the descriptor is no file on tmpfs (memfd) or hugetlbfs
 *   -ENXIO    file shorter than offset + size
 *   -ENOMEM, -EACCES, ... from mmap(2)
 */
int guest_mem_create(struct guest_mem **out, const struct guest_mem_slot *slot, unsigned int n,
		     const char **why);

/* Unmaps all. No worker may still see the map. NULL is fine. */
void guest_mem_destroy(struct guest_mem *mem);

/* Installs the SIGBUS handler (process-wide, once). Returns 0 or a negative errno. */
int guest_mem_catch_sigbus(void);

/* True once any access through this map hit a hole in its file. */
bool guest_mem_has_hole(const struct guest_mem *mem);

/* Size of the pages that back the region's mapping, in bytes (4096, 2 MiB, ...). */
size_t guest_mem_page_size(const struct guest_mem *mem, unsigned int region);

/* Front-end user address -> host pointer for `len` bytes; NULL when not wholly in one region. */
uint8_t *guest_mem_at_uva(const struct guest_mem *mem, uint64_t uva, uint64_t len);

/* ---- worker ---- */

static inline bool guest_region_holds(const struct guest_region *r, uint64_t gpa, uint64_t len)
{
	const uint64_t off = gpa - r->gpa; /* wraps to a huge value below the region */

	return len <= r->size && off <= r->size - len;
}

/* Slow half of guest_mem_at(): searches all regions, remembers the hit in *hint. */
uint8_t *guest_mem_search(const struct guest_mem *mem, uint64_t gpa, uint64_t len, uint32_t *hint);

/*
 * Guest-physical [gpa, gpa+len) -> host pointer; NULL unless wholly inside one region.
 * *hint is the caller's memory of the last region hit (any value is safe).
 */
static inline uint8_t *guest_mem_at(const struct guest_mem *mem, uint64_t gpa, uint64_t len,
				    uint32_t *hint)
{
	const uint32_t i = *hint;

	if (likely(i < mem->nregions && guest_region_holds(&mem->region[i], gpa, len)))
		return mem->region[i].host + (gpa - mem->region[i].gpa);
	return guest_mem_search(mem, gpa, len, hint);
}

/*
 * The piece of [gpa, gpa+len) that is contiguous here, starting at gpa: sets *host and returns
 * its length in bytes (1..len), or 0 when gpa is outside guest memory or the range wraps.
 * A buffer that crosses into an adjacent region is walked with repeated calls.
 */
uint64_t guest_mem_piece(const struct guest_mem *mem, uint64_t gpa, uint64_t len, uint32_t *hint,
			 uint8_t **host);

#endif
