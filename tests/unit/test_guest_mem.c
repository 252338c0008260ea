/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Guest memory maps: what may be mapped, what an address translates to, edges and overflow,
 * borders between regions, and files that are shorter than announced or shrink later.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "guest/guest.h"
#include "unit/unit.h"

#define PAGE 4096u
#define SIZE 0x200000u
#define HIGH UINT64_C(0x100000000)

static int memory_file(uint64_t size)
{
	const int fd = memfd_create("test", MFD_CLOEXEC);

	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL_FATAL(ftruncate(fd, (off_t)size), 0);
	return fd;
}

static struct guest_mem_slot slot_at(uint64_t gpa, uint64_t uva, uint64_t size, int fd)
{
	return (struct guest_mem_slot){.gpa = gpa, .uva = uva, .size = size, .fd = fd};
}

/* Two regions with a hole between them, and a third adjacent to the first. */
static struct guest_mem *three_regions(void)
{
	struct guest_mem_slot slot[3];
	struct guest_mem *mem = NULL;
	const char *why;

	slot[0] = slot_at(0, 0x7f0000000000, SIZE, memory_file(SIZE));
	slot[1] = slot_at(HIGH, 0x7f1000000000, SIZE, memory_file(SIZE));
	slot[2] = slot_at(SIZE, 0x7f2000000000, SIZE, memory_file(2 * SIZE));
	slot[2].offset = SIZE;
	CU_ASSERT_EQUAL_FATAL(guest_mem_create(&mem, slot, 3, &why), 0);
	for (unsigned int i = 0; i < 3; i++)
		close(slot[i].fd);
	return mem;
}

static void translates_inside_regions_only(void)
{
	static const struct {
		uint64_t gpa, len;
		int region; /* -1: nowhere */
	} row[] = {
	    {0, 0, 0},
	    {0, 1, 0},
	    {0, SIZE, 0},
	    {0, SIZE + 1, -1},
	    {SIZE - 1, 1, 0},
	    {SIZE - 1, 2, -1}, /* crosses into an adjacent region: in pieces only */
	    {SIZE, 1, 2},
	    {SIZE, SIZE, 2},
	    {2 * SIZE - 1, 1, 2},
	    {2 * SIZE - 1, 2, -1},
	    {2 * SIZE, 1, -1},
	    {HIGH - 1, 1, -1},
	    {HIGH - 1, 2, -1},
	    {HIGH, SIZE, 1},
	    {HIGH + SIZE - 72, 72, 1},
	    {HIGH + SIZE - 71, 72, -1},
	    {HIGH + SIZE, 1, -1},
	    {HIGH + 100, UINT64_MAX, -1},
	    {HIGH + 100, UINT64_MAX - 99, -1},
	    {100, UINT64_MAX - 99, -1},
	    {UINT64_MAX, 1, -1},
	    {UINT64_MAX, 2, -1},
	    {UINT64_MAX - 63, 64, -1},
	    {UINT64_MAX - 63, 0x100, -1},
	    {UINT64_C(0x8000000000000000), UINT64_C(0x8000000000000000), -1},
	};
	static const uint32_t hints[] = {0, 1, 2, 3, 77, UINT32_MAX};
	struct guest_mem *mem = three_regions();

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		for (size_t h = 0; h < sizeof(hints) / sizeof(hints[0]); h++) {
			uint32_t hint = hints[h];
			const uint8_t *p = guest_mem_at(mem, row[i].gpa, row[i].len, &hint);
			const struct guest_region *r = &mem->region[MAX(row[i].region, 0)];
			const uint8_t *want =
			    row[i].region < 0 ? NULL : r->host + (row[i].gpa - r->gpa);

			if (p != want)
				printf("row %zu, hint %u\n", i, hints[h]);
			CU_ASSERT_PTR_EQUAL(p, want);
		}
	}
	guest_mem_destroy(mem);
}

static void pieces_cross_adjacent_regions(void)
{
	struct guest_mem *mem = three_regions();
	uint32_t hint = 99;
	uint8_t *host;

	CU_ASSERT_EQUAL(guest_mem_piece(mem, SIZE - 10, 100, &hint, &host), 10);
	CU_ASSERT_PTR_EQUAL(host, mem->region[0].host + SIZE - 10);
	CU_ASSERT_EQUAL(guest_mem_piece(mem, SIZE, 90, &hint, &host), 90);
	CU_ASSERT_PTR_EQUAL(host, mem->region[2].host);
	CU_ASSERT_EQUAL(guest_mem_piece(mem, 2 * SIZE - 10, 100, &hint, &host), 10);
	CU_ASSERT_EQUAL(guest_mem_piece(mem, 2 * SIZE, 90, &hint, &host), 0);
	CU_ASSERT_EQUAL(guest_mem_piece(mem, HIGH, 50, &hint, &host), 50);
	CU_ASSERT_EQUAL(guest_mem_piece(mem, HIGH, 0, &hint, &host), 0);
	CU_ASSERT_EQUAL(guest_mem_piece(mem, HIGH + 100, UINT64_MAX, &hint, &host), 0);
	CU_ASSERT_EQUAL(guest_mem_piece(mem, UINT64_MAX, 1, &hint, &host), 0);
	CU_ASSERT_EQUAL(guest_mem_piece(mem, UINT64_MAX, UINT64_MAX, &hint, &host), 0);
	guest_mem_destroy(mem);
}

static void user_addresses(void)
{
	struct guest_mem *mem = three_regions();

	CU_ASSERT_PTR_EQUAL(guest_mem_at_uva(mem, 0x7f0000000000, SIZE), mem->region[0].host);
	CU_ASSERT_PTR_EQUAL(guest_mem_at_uva(mem, 0x7f1000000000 + SIZE - 1, 1),
			    mem->region[1].host + SIZE - 1);
	CU_ASSERT_PTR_NULL(guest_mem_at_uva(mem, 0x7f1000000000 + SIZE - 1, 2));
	CU_ASSERT_PTR_NULL(guest_mem_at_uva(mem, 0x7f0000000000 - 1, 1));
	CU_ASSERT_PTR_NULL(guest_mem_at_uva(mem, 0x7f0000000000 + 5, UINT64_MAX));
	CU_ASSERT_PTR_NULL(guest_mem_at_uva(mem, 0, 1));
	guest_mem_destroy(mem);
}

static void memory_is_shared_with_the_file(void)
{
	const int fd = memory_file(2 * SIZE);
	struct guest_mem_slot slot = slot_at(0, 0x1000000, SIZE, fd);
	struct guest_mem *mem = NULL;
	const char *why;
	uint32_t hint = 0;
	uint8_t byte = 0x5a;

	slot.offset = SIZE;
	CU_ASSERT_EQUAL_FATAL(guest_mem_create(&mem, &slot, 1, &why), 0);
	CU_ASSERT_EQUAL(pwrite(fd, &byte, 1, SIZE + 77), 1);
	CU_ASSERT_EQUAL(*guest_mem_at(mem, 77, 1, &hint), 0x5a);
	*guest_mem_at(mem, 78, 1, &hint) = 0xa5;
	CU_ASSERT_EQUAL(pread(fd, &byte, 1, SIZE + 78), 1);
	CU_ASSERT_EQUAL(byte, 0xa5);
	CU_ASSERT_EQUAL(guest_mem_page_size(mem, 0), PAGE);
	guest_mem_destroy(mem);
	close(fd);
}

/* Lines of this process's memory map: what a refused creation must not leave behind. */
static unsigned int mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned int n = 0;
	int c;

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	while ((c = fgetc(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return n;
}

static void refused(const struct guest_mem_slot *slot, unsigned int n, int error)
{
	struct guest_mem *mem = NULL;
	const char *why = NULL;
	const unsigned int before = mappings();
	const int err = guest_mem_create(&mem, slot, n, &why);

	if (err != error)
		printf("wanted %d, got %d (%s)\n", error, err, why ? why : "");
	CU_ASSERT_EQUAL(err, error);
	CU_ASSERT_PTR_NULL(mem);
	CU_ASSERT_PTR_NOT_NULL(why);
	CU_ASSERT_EQUAL(mappings(), before);
	guest_mem_destroy(mem);
}

static void refuses_nonsense(void)
{
	static struct guest_mem_slot many[GUEST_MEM_REGIONS_MAX + 1];
	const int fd = memory_file(SIZE);
	struct guest_mem_slot s[2];

	refused(NULL, 0, -EINVAL);
	for (unsigned int i = 0; i <= GUEST_MEM_REGIONS_MAX; i++)
		many[i] = slot_at((uint64_t)i * PAGE, (uint64_t)i * PAGE + SIZE, PAGE, fd);
	refused(many, GUEST_MEM_REGIONS_MAX + 1, -E2BIG);
	s[0] = slot_at(0, SIZE, 0, fd);
	refused(s, 1, -EINVAL);
	s[0] = slot_at(0, SIZE, PAGE, -1);
	refused(s, 1, -EBADF);
	s[0] = slot_at(UINT64_MAX - PAGE + 1, SIZE, 2 * PAGE, fd);
	refused(s, 1, -EINVAL);
	s[0] = slot_at(0, UINT64_MAX - PAGE + 1, 2 * PAGE, fd);
	refused(s, 1, -EINVAL);
	s[0] = slot_at(0, SIZE, PAGE, fd);
	s[0].offset = UINT64_MAX - PAGE + 1;
	refused(s, 1, -EINVAL);
	s[0].offset = INT64_MAX - PAGE + 1;
	refused(s, 1, -EINVAL);
	close(fd);
}

static void refuses_overlap(void)
{
	const int fd = memory_file(SIZE);
	struct guest_mem_slot s[2];
	struct guest_mem *mem = NULL;
	const char *why;

	s[0] = slot_at(0, SIZE, 4 * PAGE, fd);
	s[1] = slot_at(3 * PAGE, 10 * SIZE, 4 * PAGE, fd);
	refused(s, 2, -EINVAL);
	s[1] = slot_at(PAGE, 10 * SIZE, PAGE, fd);
	refused(s, 2, -EINVAL);
	s[1] = slot_at(10 * SIZE, SIZE + PAGE, PAGE, fd);
	refused(s, 2, -EINVAL);
	s[1] = slot_at(4 * PAGE, SIZE + 4 * PAGE, PAGE, fd); /* adjacent in both: fine */
	CU_ASSERT_EQUAL(guest_mem_create(&mem, s, 2, &why), 0);
	guest_mem_destroy(mem);
	close(fd);
}

static void refuses_short_file(void)
{
	const int fd = memory_file(SIZE);
	struct guest_mem_slot s = slot_at(0, SIZE, SIZE + 1, fd);

	refused(&s, 1, -ENXIO);
	s = slot_at(0, SIZE, SIZE, fd);
	s.offset = PAGE;
	refused(&s, 1, -ENXIO);
	s.size = SIZE - PAGE + 1;
	refused(&s, 1, -ENXIO);
	close(fd);
}

/* Only files that are memory: the pages of others come from somebody who can take his time. */
static void refuses_other_files(void)
{
	int pipe_fd[2];
	struct guest_mem_slot s =
	    slot_at(0, SIZE, PAGE, open("/proc/self/exe", O_RDONLY | O_CLOEXEC));

	CU_ASSERT_FATAL(s.fd >= 0);
	refused(&s, 1, -EINVAL);
	close(s.fd);
	CU_ASSERT_EQUAL_FATAL(pipe2(pipe_fd, O_CLOEXEC), 0);
	s.fd = pipe_fd[0];
	refused(&s, 1, -EINVAL);
	close(pipe_fd[0]);
	close(pipe_fd[1]);
}

/* The second of two regions fails: the first must not stay mapped. */
static void failure_leaves_nothing(void)
{
	const int fd = memory_file(SIZE);
	struct guest_mem_slot s[2];

	s[0] = slot_at(0, SIZE, SIZE, fd);
	s[1] = slot_at(HIGH, 10 * SIZE, SIZE + 1, fd);
	refused(s, 2, -ENXIO);
	close(fd);
}

static void destroy_unmaps(void)
{
	const unsigned int before = mappings();

	for (unsigned int i = 0; i < 100; i++)
		guest_mem_destroy(three_regions());
	guest_mem_destroy(NULL);
	CU_ASSERT_EQUAL(mappings(), before);
}

static void hole_becomes_zeros(void)
{
	const int fd = memory_file(SIZE), other_fd = memory_file(SIZE);
	struct guest_mem_slot s = slot_at(0, SIZE, SIZE, fd);
	struct guest_mem_slot other_slot = slot_at(0, SIZE, SIZE, other_fd);
	struct guest_mem *mem = NULL, *other = NULL;
	const char *why;

	CU_ASSERT_EQUAL_FATAL(guest_mem_catch_sigbus(), 0);
	CU_ASSERT_EQUAL_FATAL(guest_mem_catch_sigbus(), 0);
	CU_ASSERT_EQUAL_FATAL(guest_mem_create(&mem, &s, 1, &why), 0);
	CU_ASSERT_EQUAL_FATAL(guest_mem_create(&other, &other_slot, 1, &why), 0);
	mem->region[0].host[SIZE - 1] = 1;
	CU_ASSERT_FALSE(guest_mem_has_hole(mem));
	CU_ASSERT_EQUAL_FATAL(ftruncate(fd, PAGE), 0);
	mem->region[0].host[0] = 1; /* still backed */
	CU_ASSERT_FALSE(guest_mem_has_hole(mem));
	CU_ASSERT_EQUAL(mem->region[0].host[SIZE - 1], 0);
	CU_ASSERT_TRUE(guest_mem_has_hole(mem));
	mem->region[0].host[SIZE - 1] = 7;
	CU_ASSERT_EQUAL(mem->region[0].host[SIZE - 1], 7);
	mem->region[0].host[SIZE / 2] = 7;
	CU_ASSERT_EQUAL(mem->region[0].host[0], 1);
	CU_ASSERT_FALSE(guest_mem_has_hole(other));
	guest_mem_destroy(mem);
	guest_mem_destroy(other);
	close(fd);
	close(other_fd);
}

static const struct unit_case cases[] = {
    UNIT_CASE(translates_inside_regions_only),
    UNIT_CASE(pieces_cross_adjacent_regions),
    UNIT_CASE(user_addresses),
    UNIT_CASE(memory_is_shared_with_the_file),
    UNIT_CASE(refuses_nonsense),
    UNIT_CASE(refuses_overlap),
    UNIT_CASE(refuses_short_file),
    UNIT_CASE(refuses_other_files),
    UNIT_CASE(failure_leaves_nothing),
    UNIT_CASE(destroy_unmaps),
    UNIT_CASE(hole_becomes_zeros),
};
UNIT_MAIN("guest_mem", cases)
