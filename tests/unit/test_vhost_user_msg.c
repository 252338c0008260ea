/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vhost-user messages: every request's row of rules at its borders, numbers outside the table,
 * memory tables and ring descriptor messages as a hostile front-end would write them.
 */
#include <errno.h>

#include "control/vhost_user_msg.h"
#include "unit.h"

#define ALL_PROTOCOL VU_PROTOCOL_FEATURES

struct row {
	uint32_t request;
	const char *name;
	uint32_t size_min, size_max;
	unsigned int fds_min, fds_max;
	bool has_answer;
	int needs;
};

#define ACK  false
#define DATA true
static const struct row rows[] = {
#define X(number, name, handler, smin, smax, fmin, fmax, answer, needs)                            \
	{number, #name, smin, smax, fmin, fmax, answer, needs},
    VU_REQUESTS(X)
#undef X
};

static int check(uint32_t request, uint32_t flags, uint32_t size, unsigned int nfds,
		 uint64_t protocol)
{
	const struct vu_header h = {.request = request, .flags = flags, .size = size};
	const char *why = NULL;
	const int err = vu_check(&h, nfds, protocol, &why);

	CU_ASSERT((err == 0) == (why == NULL));
	return err;
}

static void every_row_at_its_borders(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];

		CU_ASSERT_STRING_EQUAL(vu_request_name(r->request), r->name);
		CU_ASSERT_EQUAL(vu_has_answer(r->request), r->has_answer);
		CU_ASSERT_EQUAL(check(r->request, 1, r->size_min, r->fds_min, ALL_PROTOCOL), 0);
		CU_ASSERT_EQUAL(check(r->request, 9, r->size_max, r->fds_max, ALL_PROTOCOL), 0);
		CU_ASSERT_EQUAL(check(r->request, 1, r->size_max + 1, r->fds_min, ALL_PROTOCOL),
				-EINVAL);
		if (r->size_min)
			CU_ASSERT_EQUAL(
			    check(r->request, 1, r->size_min - 1, r->fds_min, ALL_PROTOCOL),
			    -EINVAL);
		CU_ASSERT_EQUAL(check(r->request, 1, r->size_min, r->fds_max + 1, ALL_PROTOCOL),
				-EINVAL);
		CU_ASSERT_EQUAL(check(r->request, 5, r->size_min, r->fds_min, ALL_PROTOCOL),
				-EPROTO);
	}
}

static void protocol_features_gate_requests(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];

		CU_ASSERT_EQUAL(check(r->request, 1, r->size_min, r->fds_min, 0),
				r->needs == VU_ANY ? 0 : -EOPNOTSUPP);
	}
}

static void unknown_and_unoffered_requests(void)
{
	static const uint32_t unknown[] = {0, 41, 200, 255, 256, 65536, 0x7fffffff, 0xffffffff};

	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		CU_ASSERT_EQUAL(check(unknown[i], 1, 0, 0, ALL_PROTOCOL), -EOPNOTSUPP);
		CU_ASSERT_STRING_EQUAL(vu_request_name(unknown[i]), "unknown request");
		CU_ASSERT_FALSE(vu_has_answer(unknown[i]));
	}
#define X(number, name)                                                                            \
	CU_ASSERT_EQUAL(check(number, 1, 0, 0, UINT64_MAX), -EOPNOTSUPP);                          \
	CU_ASSERT_STRING_EQUAL(vu_request_name(number), #name);
	VU_REQUESTS_NOT_OFFERED(X)
#undef X
}

static void headers(void)
{
	static const struct {
		uint32_t flags, size;
		int err;
	} h[] = {
	    {1, 0, 0},
	    {9, VU_PAYLOAD_MAX, 0},
	    {0xfffffff9, 8, 0},
	    {0, 0, -EPROTO},
	    {2, 0, -EPROTO},
	    {3, 0, -EPROTO},
	    {1, VU_PAYLOAD_MAX + 1, -EMSGSIZE},
	    {1, 1000, -EMSGSIZE},
	    {1, 0x7fffffff, -EMSGSIZE},
	    {1, 0xffffffff, -EMSGSIZE},
	};

	for (size_t i = 0; i < sizeof(h) / sizeof(h[0]); i++) {
		const struct vu_header header = {5, h[i].flags, h[i].size};
		const char *why = NULL;

		CU_ASSERT_EQUAL(vu_header_check(&header, &why), h[i].err);
		CU_ASSERT((h[i].err == 0) == (why == NULL));
	}
}

static struct vu_msg mem_table(uint32_t n)
{
	struct vu_msg m = {.header = {VU_SET_MEM_TABLE, 1, 8 + n * 32}};

	m.payload.mem.nregions = n;
	for (uint32_t i = 0; i < VU_REGIONS_MAX; i++)
		m.payload.mem.region[i] =
		    (struct vu_region){i * 0x1000u, 0x1000, 0x7f0000000000 + i * 0x1000u, i};
	return m;
}

static int parse_table(const struct vu_msg *m, unsigned int nfds,
		       struct guest_mem_slot slot[VU_REGIONS_MAX])
{
	struct vu_fds fds = {.count = nfds, .fd = {100, 101, 102, 103, 104, 105, 106, 107}};
	const char *why = NULL;
	const int n = vu_parse_mem_table(m, &fds, slot, &why);

	CU_ASSERT((n >= 0) == (why == NULL));
	CU_ASSERT_EQUAL(fds.count, nfds);
	return n;
}

static void memory_tables(void)
{
	struct guest_mem_slot slot[VU_REGIONS_MAX];

	for (uint32_t n = 1; n <= VU_REGIONS_MAX; n++) {
		const struct vu_msg m = mem_table(n);

		CU_ASSERT_EQUAL(parse_table(&m, n, slot), (int)n);
		CU_ASSERT_EQUAL(slot[n - 1].fd, (int)(99 + n));
		CU_ASSERT_EQUAL(slot[n - 1].gpa, (n - 1) * 0x1000);
		CU_ASSERT_EQUAL(slot[n - 1].uva, 0x7f0000000000 + (n - 1) * 0x1000);
		CU_ASSERT_EQUAL(slot[n - 1].size, 0x1000);
		CU_ASSERT_EQUAL(slot[n - 1].offset, n - 1);
		CU_ASSERT_EQUAL(parse_table(&m, n - 1, slot), -EBADF);
		if (n < VU_REGIONS_MAX)
			CU_ASSERT_EQUAL(parse_table(&m, n + 1, slot), -EINVAL);
	}
}

static void memory_tables_with_wrong_counts(void)
{
	static const uint32_t counts[] = {0, 9, 64, 0xffffffff};
	struct guest_mem_slot slot[VU_REGIONS_MAX];
	struct vu_msg m;

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		m = mem_table(2);
		m.payload.mem.nregions = counts[i];
		CU_ASSERT_EQUAL(parse_table(&m, 2, slot), -EINVAL);
		m.header.size = 8 + counts[i] * 32;
		CU_ASSERT_EQUAL(parse_table(&m, 2, slot), -EINVAL);
		m.header.size = 8;
		CU_ASSERT_EQUAL(parse_table(&m, 2, slot), -EINVAL);
	}
	m = mem_table(2);
	m.payload.mem.nregions = 8;
	CU_ASSERT_EQUAL(parse_table(&m, 8, slot), -EINVAL);
	m = mem_table(1);
	m.payload.mem.padding = 1;
	CU_ASSERT_EQUAL(parse_table(&m, 1, slot), -EINVAL);
	m = mem_table(1);
	m.header.size += 32;
	CU_ASSERT_EQUAL(parse_table(&m, 1, slot), -EINVAL);
}

static int parse_fd(uint64_t value, unsigned int nfds, uint32_t *ring, int *fd, unsigned int *left)
{
	const struct vu_msg m = {.header = {VU_SET_VRING_CALL, 1, 8}, .payload.u64 = value};
	struct vu_fds fds = {.count = nfds, .fd = {100}};
	const char *why = NULL;
	const int err = vu_parse_ring_fd(&m, &fds, 4, ring, fd, &why);

	CU_ASSERT((err == 0) == (why == NULL));
	*left = fds.count;
	return err;
}

static void ring_descriptors(void)
{
	uint32_t ring = 99;
	unsigned int left;
	int fd = 99;

	CU_ASSERT_EQUAL(parse_fd(3, 1, &ring, &fd, &left), 0);
	CU_ASSERT(ring == 3 && fd == 100 && left == 0);
	CU_ASSERT_EQUAL(parse_fd(0x102, 0, &ring, &fd, &left), 0);
	CU_ASSERT(ring == 2 && fd == -1 && left == 0);
	/* Marker and descriptor: the marker wins, the caller closes the descriptor. */
	CU_ASSERT_EQUAL(parse_fd(0x101, 1, &ring, &fd, &left), 0);
	CU_ASSERT(ring == 1 && fd == -1 && left == 1);
	CU_ASSERT_EQUAL(parse_fd(1, 0, &ring, &fd, &left), -EINVAL);
}

static void ring_numbers_in_full_width(void)
{
	static const uint64_t bad[] = {
	    4,          0xff,
	    0x1ff,      0x104,
	    0x200,      0x10000,
	    0x10001,    0x100000000,
	    0x80000000, 0xffffffffffffff00,
	    UINT64_MAX, 0x1000000000000000,
	};
	uint32_t ring;
	unsigned int left;
	int fd;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CU_ASSERT_EQUAL(parse_fd(bad[i], 1, &ring, &fd, &left), -EINVAL);
		CU_ASSERT_EQUAL(left, 1);
	}
}

static void answers(void)
{
	struct vu_msg m;

	vu_answer_u64(&m, VU_GET_FEATURES, 0x123456789abcdef0);
	CU_ASSERT_EQUAL(m.header.request, 1);
	CU_ASSERT_EQUAL(m.header.flags, 5);
	CU_ASSERT_EQUAL(m.header.size, 8);
	CU_ASSERT_EQUAL(m.payload.u64, 0x123456789abcdef0);
	CU_ASSERT_EQUAL((char *)&m.payload - (char *)&m, 12);
}

static const struct unit_case cases[] = {
    UNIT_CASE(every_row_at_its_borders),
    UNIT_CASE(protocol_features_gate_requests),
    UNIT_CASE(unknown_and_unoffered_requests),
    UNIT_CASE(headers),
    UNIT_CASE(memory_tables),
    UNIT_CASE(memory_tables_with_wrong_counts),
    UNIT_CASE(ring_descriptors),
    UNIT_CASE(ring_numbers_in_full_width),
    UNIT_CASE(answers),
};
UNIT_MAIN("vhost_user_msg", cases)
