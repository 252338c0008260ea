/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Guest memory of the driver-side library.
 *
 * Each region is a memfd of its own, as with QEMU's memory-backend-memfd, mapped shared between
 * two inaccessible pages: sanitizers do not see an access that leaves the region but stays
 * inside a mapping, the guard pages do. The device side gets either the descriptors (over a
 * socket) or, in one process, a view of the very same mapping: then the guards watch the device
 * as well.
 *
 * Reads and writes by address go piece by piece, because a buffer may legally cross into an
 * adjacent region that is mapped somewhere else.
 */
#include <errno.h>
#include <linux/memfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "guest/guest.h"

#define SMALL_PAGE 4096u
#define HUGE_PAGE  0x200000u

/* An inaccessible reservation with `size` bytes in its middle, aligned to `page`. */
static uint8_t *reserve(uint64_t size, size_t page)
{
	uint8_t *p = mmap(NULL, size + 3 * page, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	const uintptr_t start = (uintptr_t)p;
	uintptr_t inner;

	if (p == MAP_FAILED)
		return NULL;
	inner = (start + 2 * page - 1) & ~(uintptr_t)(page - 1);
	munmap(p, inner - page - start);
	munmap(p + (inner + size + page - start), start + size + 3 * page - (inner + size + page));
	return p + (inner - start);
}

static int region_create(struct guest_ram_region *r, bool huge)
{
	const size_t page = huge ? HUGE_PAGE : SMALL_PAGE;

	r->host = NULL;
	r->fd = memfd_create("guest-ram", MFD_CLOEXEC | (huge ? MFD_HUGETLB | MFD_HUGE_2MB : 0));
	if (r->fd < 0 || ftruncate(r->fd, (off_t)(r->offset + r->size)) < 0)
		return -errno;
	r->host = reserve(r->size, page);
	if (!r->host)
		return -ENOMEM;
	if (mmap(r->host, r->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, r->fd,
		 (off_t)r->offset) == MAP_FAILED)
		return -errno;
	return 0;
}

static void region_destroy(struct guest_ram_region *r, size_t page)
{
	if (r->host)
		munmap(r->host - page, r->size + 2 * page);
	if (r->fd >= 0)
		close(r->fd);
}

int guest_ram_create(struct guest_ram *ram, const struct guest_ram_region *spec, unsigned int n,
		     unsigned int flags)
{
	int err;

	memset(ram, 0, sizeof(*ram));
	if (n > GUEST_RAM_MAX)
		return -E2BIG;
	ram->flags = flags;
	for (unsigned int i = 0; i < n; i++) {
		ram->region[i] = spec[i];
		ram->n = i + 1;
		err = region_create(&ram->region[i], flags & GUEST_RAM_HUGE);
		if (err) {
			guest_ram_destroy(ram);
			return err;
		}
	}
	return 0;
}

void guest_ram_destroy(struct guest_ram *ram)
{
	for (unsigned int i = 0; i < ram->n; i++)
		region_destroy(&ram->region[i],
			       ram->flags & GUEST_RAM_HUGE ? HUGE_PAGE : SMALL_PAGE);
	ram->n = 0;
}

int guest_ram_create_h0(struct guest_ram *ram, bool adjacent)
{
	static const struct guest_ram_region h0[] = {
	    {.gpa = 0, .size = H0_SIZE, .uva = 0x7f0000000000},
	    {.gpa = H0_HIGH, .size = H0_SIZE, .uva = 0x7f1000000000},
	    {.gpa = H0_SIZE, .size = H0_SIZE, .uva = 0x7f2000000000},
	};

	return guest_ram_create(ram, h0, adjacent ? 3 : 2, 0);
}

/* Region that holds gpa, or NULL. */
static const struct guest_ram_region *region_of(const struct guest_ram *ram, uint64_t gpa)
{
	for (unsigned int i = 0; i < ram->n; i++) {
		const struct guest_ram_region *r = &ram->region[i];

		if (gpa >= r->gpa && gpa - r->gpa < r->size)
			return r;
	}
	return NULL;
}

void *guest_ram_at(const struct guest_ram *ram, uint64_t gpa, uint64_t len)
{
	const struct guest_ram_region *r = region_of(ram, gpa);

	if (!r || len > r->size - (gpa - r->gpa))
		return NULL;
	return r->host + (gpa - r->gpa);
}

uint64_t guest_ram_uva(const struct guest_ram *ram, uint64_t gpa)
{
	const struct guest_ram_region *r = region_of(ram, gpa);

	return r ? r->uva + (gpa - r->gpa) : 0;
}

/* Bytes of [gpa, gpa+len) in one region, with their place in *host; 0 outside. */
static size_t piece(const struct guest_ram *ram, uint64_t gpa, size_t len, uint8_t **host)
{
	const struct guest_ram_region *r = region_of(ram, gpa);

	if (!r)
		return 0;
	*host = r->host + (gpa - r->gpa);
	return MIN(len, r->size - (gpa - r->gpa));
}

int guest_ram_write(const struct guest_ram *ram, uint64_t gpa, const void *src, size_t len)
{
	const uint8_t *from = src;
	uint8_t *host;

	while (len) {
		const size_t n = piece(ram, gpa, len, &host);

		if (!n)
			return -EFAULT;
		memcpy(host, from, n);
		from += n;
		gpa += n;
		len -= n;
	}
	return 0;
}

int guest_ram_read(const struct guest_ram *ram, uint64_t gpa, void *dst, size_t len)
{
	uint8_t *to = dst;
	uint8_t *host;

	while (len) {
		const size_t n = piece(ram, gpa, len, &host);

		if (!n)
			return -EFAULT;
		memcpy(to, host, n);
		to += n;
		gpa += n;
		len -= n;
	}
	return 0;
}

int guest_ram_write_desc(const struct guest_ram *ram, uint64_t table, unsigned int i, uint64_t addr,
			 uint32_t len, uint16_t flags, uint16_t next)
{
	const struct vring_desc d = {.addr = addr, .len = len, .flags = flags, .next = next};

	return guest_ram_write(ram, table + i * sizeof(d), &d, sizeof(d));
}

int guest_ram_view(const struct guest_ram *ram, struct guest_mem **out)
{
	struct guest_mem *mem = calloc(1, sizeof(*mem) + ram->n * sizeof(mem->region[0]));

	if (!mem)
		return -ENOMEM;
	mem->nregions = ram->n;
	for (unsigned int i = 0; i < ram->n; i++) {
		mem->region[i] = (struct guest_region){
		    .gpa = ram->region[i].gpa,
		    .size = ram->region[i].size,
		    .uva = ram->region[i].uva,
		    .host = ram->region[i].host,
		    .watch = -1,
		};
	}
	*out = mem;
	return 0;
}
