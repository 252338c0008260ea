/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checksum completion against an independent way of summing: partial becomes complete, complete
 * stays, everything that is not plain TCP or UDP stays untouched, and no length is believed.
 */
#include "ports/csum.h"
#include "unit/unit.h"

#define TCP 6
#define UDP 17

static uint32_t random_state = 2463534242u;

static uint32_t random_next(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 17;
	random_state ^= random_state << 5;
	return random_state;
}

/* What a frame under test is made of. */
struct shape {
	int version;    /* of IP */
	int tags;       /* VLAN tags */
	int extensions; /* IPv6 destination options, or groups of 4 bytes of IPv4 options */
	uint8_t protocol;
	uint32_t payload; /* bytes behind the TCP or UDP header */
	uint32_t trailer; /* Ethernet padding behind the IP packet */
};

struct frame {
	uint8_t data[2048];
	uint32_t len;
	uint32_t ip; /* offsets */
	uint32_t segment;
	uint32_t segment_len;
	uint32_t field; /* of the checksum */
};

static void put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static uint32_t sum_bytes(const uint8_t *p, uint32_t n, uint32_t sum)
{
	for (uint32_t i = 0; i < n; i++)
		sum += i % 2 ? p[i] : (uint32_t)p[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static uint32_t pseudo_sum(const struct frame *f, const struct shape *s)
{
	const uint8_t *ip = f->data + f->ip;
	uint32_t sum = s->version == 4 ? sum_bytes(ip + 12, 8, 0) : sum_bytes(ip + 8, 32, 0);
	uint8_t rest[4] = {0, s->protocol, (uint8_t)(f->segment_len >> 8), (uint8_t)f->segment_len};

	return sum_bytes(rest, 4, sum);
}

static void build_ipv4(struct frame *f, const struct shape *s)
{
	uint8_t *ip = f->data + f->ip;
	const uint32_t header = 20 + 4 * (uint32_t)s->extensions;

	ip[0] = (uint8_t)(0x40 | header / 4);
	put16(ip + 2, header + f->segment_len);
	put16(ip + 6, 0x4000);
	ip[9] = s->protocol;
	f->segment = f->ip + header;
}

static void build_ipv6(struct frame *f, const struct shape *s)
{
	uint8_t *ip = f->data + f->ip, *next = ip + 6;
	uint32_t at = 40;

	ip[0] = 0x60;
	put16(ip + 4, 8 * (uint32_t)s->extensions + f->segment_len);
	for (int i = 0; i < s->extensions; i++) {
		*next = 60;
		next = ip + at;
		ip[at + 1] = 0;
		at += 8;
	}
	*next = s->protocol;
	f->segment = f->ip + at;
}

/* The frame with random contents and the partial checksum in its field. */
static void build(struct frame *f, const struct shape *s)
{
	const uint32_t header = s->protocol == TCP ? 20 : 8;
	uint32_t at = 12;

	for (size_t i = 0; i < sizeof(f->data); i++)
		f->data[i] = (uint8_t)random_next();
	for (int i = 0; i < s->tags; i++, at += 4)
		put16(f->data + at, i + 1 < s->tags ? 0x88a8 : 0x8100);
	put16(f->data + at, s->version == 4 ? 0x0800 : 0x86dd);
	f->ip = at + 2;
	f->segment_len = header + s->payload;
	if (s->version == 4)
		build_ipv4(f, s);
	else
		build_ipv6(f, s);
	f->field = f->segment + (s->protocol == TCP ? 16 : 6);
	f->len = f->segment + f->segment_len + s->trailer;
	put16(f->data + f->field, pseudo_sum(f, s));
}

/* A receiver's check: pseudo-header and segment sum to all ones. */
static bool is_complete(const struct frame *f, const struct shape *s)
{
	return sum_bytes(f->data + f->segment, f->segment_len, pseudo_sum(f, s)) == 0xffff;
}

static void check_shape(const struct shape *s, unsigned int *bad)
{
	struct frame f, before;

	build(&f, s);
	before = f;
	if (!csum_complete(f.data, f.len) || !is_complete(&f, s))
		++*bad;
	memcpy(before.data + before.field, f.data + f.field, 2);
	if (memcmp(before.data, f.data, sizeof(f.data)) != 0)
		++*bad; /* something else was changed */
	csum_complete(f.data, f.len);
	if (memcmp(before.data, f.data, sizeof(f.data)) != 0)
		++*bad; /* complete ones do not stay */
}

static void partial_sums_are_completed(void)
{
	static const int versions[] = {4, 6};
	static const uint8_t protocols[] = {TCP, UDP};
	unsigned int bad = 0;

	for (int round = 0; round < 200; round++) {
		for (int i = 0; i < 4; i++) {
			struct shape s = {.version = versions[i % 2],
					  .protocol = protocols[i / 2],
					  .tags = (int)(random_next() % 3),
					  .extensions = (int)(random_next() % 4),
					  .payload = random_next() % 1400,
					  .trailer = random_next() % 20};

			check_shape(&s, &bad);
		}
	}
	CU_ASSERT_EQUAL(bad, 0);
}

/* A UDP sum that computes to 0 is sent as 0xffff. */
static void udp_zero_becomes_all_ones(void)
{
	const struct shape s = {.version = 6, .protocol = UDP, .payload = 20};
	struct frame f;
	uint32_t sum;

	build(&f, &s);
	put16(f.data + f.segment + 8, 0);
	/* Makes all words sum to 0xffff, so that the inverted sum is 0. */
	sum = sum_bytes(f.data + f.segment, f.segment_len, 0);
	put16(f.data + f.segment + 8, 0xffff - sum);
	CU_ASSERT_TRUE(csum_complete(f.data, f.len));
	CU_ASSERT_EQUAL(f.data[f.field], 0xff);
	CU_ASSERT_EQUAL(f.data[f.field + 1], 0xff);
}

static void must_not_change(struct frame *f, uint32_t len, unsigned int *bad)
{
	uint8_t before[sizeof(f->data)];

	memcpy(before, f->data, sizeof(before));
	if (csum_complete(f->data, len) || memcmp(before, f->data, sizeof(before)) != 0)
		++*bad;
}

static void other_frames_stay(void)
{
	const struct shape v4 = {.version = 4, .protocol = TCP, .payload = 100};
	const struct shape v6 = {.version = 6, .protocol = UDP, .payload = 100};
	struct shape deep = {.version = 4, .protocol = TCP, .payload = 100, .tags = 3};
	unsigned int bad = 0;
	struct frame f;

	build(&f, &v4);
	f.data[f.ip + 6] = 0x20; /* first fragment */
	must_not_change(&f, f.len, &bad);
	build(&f, &v4);
	f.data[f.ip + 7] = 1; /* later fragment */
	must_not_change(&f, f.len, &bad);
	build(&f, &v4);
	f.data[f.ip + 9] = 132; /* SCTP */
	must_not_change(&f, f.len, &bad);
	build(&f, &v4);
	f.data[f.ip] = 0x44; /* header shorter than 20 */
	must_not_change(&f, f.len, &bad);
	build(&f, &v6);
	f.data[f.ip + 6] = 43; /* routing header */
	must_not_change(&f, f.len, &bad);
	build(&f, &deep);
	must_not_change(&f, f.len, &bad);
	CU_ASSERT_EQUAL(bad, 0);
}

/* Cut at every length, in a heap block of that length: nothing beyond it may be read. */
static void short_frames_are_not_read_beyond(void)
{
	static const struct shape shapes[] = {
	    {.version = 4, .protocol = TCP, .payload = 30, .tags = 2, .extensions = 2},
	    {.version = 6, .protocol = UDP, .payload = 30, .tags = 1, .extensions = 3},
	};
	unsigned int completed = 0;

	for (size_t i = 0; i < 2; i++) {
		struct frame f;

		build(&f, &shapes[i]);
		for (uint32_t len = 0; len < f.len; len++) {
			uint8_t *cut = malloc(len + 1);

			memcpy(cut + 1, f.data, len);
			completed += csum_complete(cut + 1, len);
			free(cut);
		}
	}
	CU_ASSERT_EQUAL(completed, 0);
}

/* Random bytes behind plausible types: for the sanitizers. */
static void garbage_does_no_harm(void)
{
	static const uint32_t types[] = {0x0800, 0x86dd, 0x8100, 0x88a8};

	for (int round = 0; round < 200000; round++) {
		const uint32_t len = random_next() % 120;
		uint8_t *frame = malloc(len + 1);

		for (uint32_t i = 0; i < len; i++)
			frame[i] = (uint8_t)random_next();
		if (len >= 20) {
			put16(frame + 12, types[random_next() % 4]);
			put16(frame + 16, types[random_next() % 2]);
		}
		csum_complete(frame, len);
		free(frame);
	}
}

static const struct unit_case cases[] = {
    UNIT_CASE(partial_sums_are_completed), UNIT_CASE(udp_zero_becomes_all_ones),
    UNIT_CASE(other_frames_stay),          UNIT_CASE(short_frames_are_not_read_beyond),
    UNIT_CASE(garbage_does_no_harm),
};
UNIT_MAIN("csum", cases)
