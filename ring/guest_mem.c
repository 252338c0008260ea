/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Guest memory maps.
 *
 * The control thread builds a map from what the front-end announced (vhost-user: memory regions
 * description), checking every number before it is used: no range may wrap, ranges must not overlap
 * in either address space, and the file must be as long as the region says. Files are mapped shared
 * at their own page size; nothing is populated or locked, since an overcommitted guest must stay
 * that way, and guest memory is kept out of core dumps.
 *
 * Only files that are memory are mapped: memfd, tmpfs, hugetlbfs. A page of any other file comes
 * from a file system that can take its time, and on FUSE that is a program of the front-end's
 * choice: the worker that touches the page would wait for it, and all ports with the worker. The
 * question is put to the kernel's memory files alone (F_GET_SEALS), because already fstat() on such
 * a descriptor may wait.
 *
 * Workers only translate. The order of regions is the front-end's; QEMU sends the large ones where
 * a linear search finds them soon, and each virtqueue remembers its last hit, so that the search is
 * rare. With hundreds of regions (memory hot-plug) a sorted array would pay; measured when offered.
 *
 * A region is not merged with an adjacent one even if both come from one file, because they may be
 * removed separately; guest_mem_piece() walks across the border instead.
 */
#include "ring/guest_mem.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/atomic.h"
#include "ring/sigbus.h"

static bool range_wraps(uint64_t start, uint64_t size)
{
	return size > UINT64_MAX - start;
}

static bool ranges_overlap(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size)
{
	return a < b + b_size && b < a + a_size;
}

static int check_slot(const struct guest_mem_slot *s, const char **why)
{
	if (s->size == 0) {
		*why = "memory region of size 0";
		return -EINVAL;
	}
	if (range_wraps(s->gpa, s->size) || range_wraps(s->uva, s->size) ||
	    range_wraps(s->offset, s->size) || s->offset + s->size > INT64_MAX) {
		*why = "memory region wraps around the end of its address space";
		return -EINVAL;
	}
	if (s->fd < 0) {
		*why = "memory region without a file descriptor (guest memory must be shared: "
		       "share=on)";
		return -EBADF;
	}
	return 0;
}

static int check_slots(const struct guest_mem_slot *slot, unsigned int n, const char **why)
{
	if (n > GUEST_MEM_REGIONS_MAX) {
		*why = "too many memory regions";
		return -E2BIG;
	}
	if (n == 0) {
		*why = "no memory regions";
		return -EINVAL;
	}
	for (unsigned int i = 0; i < n; i++) {
		const int err = check_slot(&slot[i], why);

		if (err)
			return err;
		for (unsigned int k = 0; k < i; k++) {
			if (ranges_overlap(slot[i].gpa, slot[i].size, slot[k].gpa, slot[k].size) ||
			    ranges_overlap(slot[i].uva, slot[i].size, slot[k].uva, slot[k].size)) {
				*why = "memory regions overlap";
				return -EINVAL;
			}
		}
	}
	return 0;
}

static size_t file_page_size(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) == 0 && fs.f_type == HUGETLBFS_MAGIC)
		return (size_t)fs.f_bsize;
	return (size_t)sysconf(_SC_PAGESIZE);
}

static int check_file(const struct guest_mem_slot *s, const char **why)
{
	struct stat st;

	/* Fails for all but regular files on tmpfs (and so memfds) and hugetlbfs. */
	if (fcntl(s->fd, F_GET_SEALS) < 0) {
		*why = "memory region's descriptor is not a file in memory (memfd, tmpfs or "
		       "hugetlbfs)";
		return -EINVAL;
	}
	if (fstat(s->fd, &st))
		return -errno;
	if ((uint64_t)st.st_size < s->offset + s->size) {
		*why = "memory region's file is shorter than the region";
		return -ENXIO;
	}
	return 0;
}

/* Maps one region at its file's page size; a huge-page file wants offset and length aligned. */
static int map_region(struct guest_region *r, const struct guest_mem_slot *s, uint32_t *hole,
		      const char **why)
{
	int err = check_file(s, why);

	if (err)
		return err;
	const size_t page = file_page_size(s->fd);
	const uint64_t before = s->offset % page;
	const size_t len = (size_t)((before + s->size + page - 1) / page * page);
	uint8_t *map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, s->fd,
			    (off_t)(s->offset - before));

	if (map == MAP_FAILED) {
		err = -errno;
		*why = "cannot map a memory region (read-only, sealed, or no memory)";
		return err;
	}
	const int watch = sigbus_watch(map, len, page, hole);

	if (watch < 0) {
		*why = "too many memory regions in all";
		munmap(map, len);
		return watch;
	}
	madvise(map, len, MADV_DONTDUMP);
	*r = (struct guest_region){
	    .gpa = s->gpa,
	    .size = s->size,
	    .uva = s->uva,
	    .host = map + before,
	    .map = map,
	    .map_size = len,
	    .page_size = page,
	    .watch = watch,
	};
	return 0;
}

int guest_mem_create(struct guest_mem **out, const struct guest_mem_slot *slot, unsigned int n,
		     const char **why)
{
	*why = "no memory";
	int err = check_slots(slot, n, why);

	if (err)
		return err;
	struct guest_mem *mem = calloc(1, sizeof(*mem) + n * sizeof(mem->region[0]));

	if (!mem)
		return -ENOMEM;
	for (; mem->nregions < n; mem->nregions++) {
		err =
		    map_region(&mem->region[mem->nregions], &slot[mem->nregions], &mem->hole, why);
		if (err) {
			guest_mem_destroy(mem);
			return err;
		}
	}
	*out = mem;
	return 0;
}

void guest_mem_destroy(struct guest_mem *mem)
{
	if (!mem)
		return;
	for (uint32_t i = 0; i < mem->nregions; i++) {
		sigbus_unwatch(mem->region[i].watch);
		munmap(mem->region[i].map, mem->region[i].map_size);
	}
	free(mem);
}

int guest_mem_catch_sigbus(void)
{
	return sigbus_install();
}

bool guest_mem_has_hole(const struct guest_mem *mem)
{
	return load_relaxed(&mem->hole) != 0;
}

size_t guest_mem_page_size(const struct guest_mem *mem, unsigned int region)
{
	return mem->region[region].page_size;
}

uint8_t *guest_mem_at_uva(const struct guest_mem *mem, uint64_t uva, uint64_t len)
{
	for (uint32_t i = 0; i < mem->nregions; i++) {
		const struct guest_region *r = &mem->region[i];
		const uint64_t off = uva - r->uva;

		if (len <= r->size && off <= r->size - len)
			return r->host + off;
	}
	return NULL;
}

uint8_t *guest_mem_search(const struct guest_mem *mem, uint64_t gpa, uint64_t len, uint32_t *hint)
{
	for (uint32_t i = 0; i < mem->nregions; i++) {
		if (guest_region_holds(&mem->region[i], gpa, len)) {
			*hint = i;
			return mem->region[i].host + (gpa - mem->region[i].gpa);
		}
	}
	return NULL;
}

uint64_t guest_mem_piece(const struct guest_mem *mem, uint64_t gpa, uint64_t len, uint32_t *hint,
			 uint8_t **host)
{
	if (len == 0 || range_wraps(gpa, len))
		return 0;
	*host = guest_mem_at(mem, gpa, len, hint);
	if (*host)
		return len;
	*host = guest_mem_at(mem, gpa, 1, hint);
	if (!*host)
		return 0;
	const struct guest_region *r = &mem->region[*hint];

	return r->size - (gpa - r->gpa);
}
