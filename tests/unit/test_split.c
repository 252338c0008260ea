/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Split virtqueue against a driver that keeps to the rules (tests/guest): what goes in comes out,
 * byte for byte and in order, for every ring size, through index wraps, for random frames in
 * random pieces, direct and indirect, in receive buffers of any size, merged or not.
 *
 * The device side runs in this thread, on memory between inaccessible pages. Expected frames are
 * a queue of (length, seed); contents are made again from the seed to compare.
 */
#include <errno.h>

#include "guest/guest.h"
#include "unit/unit.h"

#define EXPECTED_MAX 32768u
#define FRAME_BUFFER 70000u

struct expected {
	uint32_t len;
	uint32_t seed;
};

struct bed {
	struct guest guest;
	struct guest_mem *mem;
	struct vq vq;
	struct batch batch;
	struct expected queue[EXPECTED_MAX]; /* in flight */
	uint32_t first, count;
	uint64_t rng;
	uint8_t frame[FRAME_BUFFER];
	uint8_t got[FRAME_BUFFER];
};

static struct bed bed;

static uint32_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (uint32_t)(*state >> 32);
}

static uint32_t random_below(uint32_t n)
{
	return next_random(&bed.rng) % n;
}

static void make_frame(const struct expected *e)
{
	uint64_t state = UINT64_C(0x9e3779b97f4a7c15) ^ e->seed;

	for (uint32_t i = 0; i < e->len; i += 4) {
		const uint32_t word = next_random(&state);

		memcpy(bed.frame + i, &word, sizeof(word));
	}
}

static struct expected *expect(uint32_t len)
{
	struct expected *e = &bed.queue[(bed.first + bed.count++) % EXPECTED_MAX];

	*e = (struct expected){.len = len, .seed = next_random(&bed.rng)};
	make_frame(e);
	return e;
}

/* The oldest frame in flight must be these bytes. */
static void check_frame(const uint8_t *got, uint32_t len)
{
	const struct expected *e = &bed.queue[bed.first % EXPECTED_MAX];

	CU_ASSERT_FATAL(bed.count > 0);
	bed.first++;
	bed.count--;
	make_frame(e);
	CU_ASSERT_EQUAL_FATAL(len, e->len);
	CU_ASSERT_FATAL(memcmp(got, bed.frame, len) == 0);
}

enum side { TX, RX };

static void bed_open(const struct guest_config *config, enum side side)
{
	struct vq_config c;

	bed.first = 0;
	bed.count = 0;
	bed.rng = UINT64_C(0x123456789abcdef);
	CU_ASSERT_EQUAL_FATAL(guest_create(&bed.guest, config), 0);
	CU_ASSERT_EQUAL_FATAL(guest_ram_view(&bed.guest.ram, &bed.mem), 0);
	c = guest_ring_vq_config(side == TX ? &bed.guest.pair[0].tx : &bed.guest.pair[0].rx);
	c.mergeable = config->features & FEATURE(VIRTIO_NET_F_MRG_RXBUF);
	c.hdr_len = (uint8_t)bed.guest.hdr_len;
	vq_start(&bed.vq, &c);
}

static void bed_close(void)
{
	CU_ASSERT_EQUAL(bed.vq.fault, VQ_FAULT_NONE);
	CU_ASSERT_EQUAL(bed.vq.counts.bad_chains, 0);
	CU_ASSERT_EQUAL(bed.vq.counts.bad_buffer_drops, 0);
	guest_destroy(&bed.guest);
	free(bed.mem);
}

static struct guest_config config_of(uint32_t ring_size, uint16_t base)
{
	struct guest_config c = guest_config_default();

	c.ring_size = ring_size;
	c.base = base;
	c.two_regions = true;
	return c;
}

/* ---- transmit: driver -> device ---- */

/* A frame of up to max_len bytes in random pieces; false when the ring is full. */
static bool tx_random(uint32_t max_len, unsigned int max_pieces)
{
	const bool indirect = random_below(3) == 0;
	const uint32_t len = 14 + random_below(max_len - 13);
	const unsigned int n = 1 + random_below(max_pieces);
	uint32_t left = bed.guest.hdr_len + len;
	uint32_t cut[GUEST_TX_SEGS_MAX];
	int err;

	for (unsigned int i = 0; i + 1 < n; i++) {
		cut[i] =
		    random_below(3) ? random_below(left / 2 + 1) : random_below(MIN(left, 8u) + 1);
		left -= cut[i];
	}
	cut[n - 1] = left;
	expect(len);
	err = guest_tx_cut(&bed.guest, 0, bed.frame, len, cut, n, indirect);
	if (err)
		bed.count--;
	CU_ASSERT_FATAL(err == 0 || err == -ENOSPC);
	return err == 0;
}

static unsigned int device_takes(void)
{
	unsigned int n;

	batch_reset(&bed.batch);
	n = vq_pop(&bed.vq, bed.mem, &bed.batch);
	CU_ASSERT_EQUAL(n, bed.batch.count);
	for (unsigned int i = 0; i < n; i++) {
		const struct pkt *p = &bed.batch.pkt[i];

		memset(bed.got, 0xee, p->len + 32);
		pkt_copy_out(p, bed.got);
		CU_ASSERT_EQUAL(bed.got[p->len], 0xee);
		check_frame(bed.got, p->len);
	}
	vq_complete(&bed.vq);
	return n;
}

static void tx_rounds(unsigned int frames, uint32_t max_len, unsigned int max_pieces)
{
	unsigned int sent = 0, received = 0;

	while (received < frames) {
		const unsigned int burst = 1 + random_below(70);

		for (unsigned int i = 0; i < burst && sent < frames; i++) {
			if (!tx_random(max_len, max_pieces))
				break;
			sent++;
		}
		guest_tx_flush(&bed.guest, 0);
		received += device_takes();
		if (random_below(4) == 0)
			CU_ASSERT_EQUAL_FATAL(guest_tx_reap(&bed.guest, 0), 0);
	}
	CU_ASSERT_EQUAL(received, sent);
	CU_ASSERT_EQUAL(guest_tx_reap(&bed.guest, 0), 0);
	CU_ASSERT_EQUAL(bed.guest.pair[0].tx.nfree, bed.guest.config.ring_size);
}

static void tx_all_ring_sizes(void)
{
	for (uint32_t size = 1; size <= VRING_SIZE_MAX; size *= 2) {
		const struct guest_config c = config_of(size, 65530);

		bed_open(&c, TX);
		tx_rounds(size == 1 ? 500 : 3000, 1514, MIN(size, 8u));
		bed_close();
	}
}

static void tx_through_index_wraps(void)
{
	static const uint16_t bases[] = {65530, 65535, 0, 32767};

	for (size_t i = 0; i < ARRAY_LEN(bases); i++) {
		const struct guest_config c = config_of(256, bases[i]);

		bed_open(&c, TX);
		tx_rounds(140000, 64, 1);
		CU_ASSERT_EQUAL(guest_ring_raw_used_idx(&bed.guest.pair[0].tx),
				(uint16_t)(bases[i] + 140000));
		bed_close();
	}
}

static void tx_full_ring_at_once(void)
{
	for (uint32_t size = 1; size <= 4096; size *= 2) {
		const struct guest_config c = config_of(size, (uint16_t)(65536 - size / 2));
		uint32_t n = 0;

		bed_open(&c, TX);
		while (tx_random(200, 1))
			n++;
		CU_ASSERT_EQUAL(n, size);
		guest_tx_flush(&bed.guest, 0);
		for (n = 0; n < size;) {
			const unsigned int taken = device_takes();

			CU_ASSERT_FATAL(taken > 0);
			n += taken;
		}
		CU_ASSERT_EQUAL(device_takes(), 0);
		bed_close();
	}
}

static void tx_large_frames_in_many_pieces(void)
{
	struct guest_config c = config_of(128, 65530);

	c.tx_buffer = FRAME_MAX + 12;
	bed_open(&c, TX);
	tx_rounds(2000, FRAME_MAX, GUEST_TX_SEGS_MAX);
	bed_close();
}

static void tx_legacy_header(void)
{
	struct guest_config c = config_of(256, 65530);

	c.features = 0;
	bed_open(&c, TX);
	CU_ASSERT_EQUAL(bed.guest.hdr_len, 10);
	tx_rounds(5000, 1514, 4);
	bed_close();
}

static void tx_batch_is_bounded(void)
{
	const struct guest_config c = config_of(256, 0);

	bed_open(&c, TX);
	for (unsigned int i = 0; i < 100; i++)
		CU_ASSERT_TRUE_FATAL(tx_random(64, 1));
	guest_tx_flush(&bed.guest, 0);
	CU_ASSERT_EQUAL(device_takes(), BATCH_MAX);
	CU_ASSERT_EQUAL(device_takes(), BATCH_MAX);
	CU_ASSERT_EQUAL(device_takes(), BATCH_MAX);
	CU_ASSERT_EQUAL(device_takes(), 100 - 3 * BATCH_MAX);
	CU_ASSERT_EQUAL(device_takes(), 0);
	bed_close();
}

/* ---- receive: device -> driver ---- */

/* A pkt over the frame in bed.frame, which `copy` keeps alive, in one or several pieces. */
static void rx_make_pkt(struct pkt *p, struct pkt_seg seg[3], uint8_t *copy, uint32_t len)
{
	uint32_t body;

	memcpy(copy, bed.frame, len);
	pkt_set(p, copy, len);
	if (random_below(2) || p->body_len < 3)
		return;
	body = random_below(p->body_len);
	seg[0] = (struct pkt_seg){p->body + body, (p->body_len - body) / 2};
	seg[1] = (struct pkt_seg){seg[0].base + seg[0].len, p->body_len - body - seg[0].len};
	p->body_len = body;
	p->more = seg;
	p->nmore = 2;
}

/* Puts up to n random frames; returns how many the device took on. */
static unsigned int rx_put_random(unsigned int n, uint32_t max_len, uint64_t *sent)
{
	static uint8_t copy[BATCH_MAX][FRAME_BUFFER];
	struct pkt_seg seg[BATCH_MAX][3];
	struct pkt pkt[BATCH_MAX], *list[BATCH_MAX];
	const uint64_t before = *sent;
	uint64_t bytes = 0, sum = 0;
	unsigned int dealt;

	for (unsigned int i = 0; i < n; i++) {
		const uint32_t len = 14 + random_below(max_len - 13);

		expect(len);
		rx_make_pkt(&pkt[i], seg[i], copy[i], len);
		list[i] = &pkt[i];
	}
	dealt = vq_put(&bed.vq, bed.mem, list, n, sent, &bytes);
	CU_ASSERT_FATAL(dealt <= n);
	CU_ASSERT_EQUAL_FATAL(*sent - before, dealt);
	for (unsigned int i = 0; i < dealt; i++)
		sum += pkt[i].len;
	CU_ASSERT_EQUAL(bytes, sum);
	bed.count -= n - dealt;
	vq_publish(&bed.vq);
	return dealt;
}

static unsigned int driver_takes(unsigned int max)
{
	unsigned int n;

	for (n = 0; n < max; n++) {
		const int len = guest_rx(&bed.guest, 0, bed.got, sizeof(bed.got));

		CU_ASSERT_FATAL(len >= 0);
		if (len == 0)
			break;
		check_frame(bed.got, (uint32_t)len);
	}
	return n;
}

static void rx_rounds(unsigned int frames, uint32_t max_len)
{
	unsigned int received = 0;
	uint64_t sent = 0;

	guest_rx_fill(&bed.guest, 0);
	while (received < frames) {
		rx_put_random(1 + random_below(BATCH_MAX), max_len, &sent);
		received += driver_takes(1 + random_below(40));
	}
	driver_takes(UINT32_MAX);
	CU_ASSERT_EQUAL(bed.count, 0);
	CU_ASSERT_EQUAL(bed.vq.counts.too_small_drops, 0);
}

static void rx_all_ring_sizes(void)
{
	for (uint32_t size = 1; size <= VRING_SIZE_MAX; size *= 2) {
		const struct guest_config c = config_of(size, 65530);

		bed_open(&c, RX);
		rx_rounds(size == 1 ? 500 : 3000, 1514);
		bed_close();
	}
}

static void rx_through_index_wraps(void)
{
	static const uint16_t bases[] = {65530, 65535, 0, 32767};

	for (size_t i = 0; i < ARRAY_LEN(bases); i++) {
		const struct guest_config c = config_of(256, bases[i]);

		bed_open(&c, RX);
		rx_rounds(140000, 64);
		bed_close();
	}
}

static void rx_merged_buffers_of_all_sizes(void)
{
	static const uint32_t sizes[] = {13, 14, 26, 64, 65, 128, 256, 1000, 1526, 4096};

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		struct guest_config c = config_of(256, 65530);

		c.rx_buffer = sizes[i];
		bed_open(&c, RX);
		rx_rounds(4000, 1514);
		bed_close();
	}
}

static void rx_largest_frames_merged(void)
{
	struct guest_config c = config_of(256, 65530);

	c.rx_buffer = 1526;
	bed_open(&c, RX);
	rx_rounds(1000, FRAME_MAX);
	bed_close();
}

static void rx_largest_frames_in_one_buffer(void)
{
	struct guest_config c = config_of(64, 65530);

	c.features &= ~FEATURE(VIRTIO_NET_F_MRG_RXBUF);
	c.rx_buffer = FRAME_MAX + 12;
	bed_open(&c, RX);
	rx_rounds(1000, FRAME_MAX);
	bed_close();
}

static void rx_not_mergeable(void)
{
	struct guest_config c = config_of(256, 65530);

	c.features &= ~FEATURE(VIRTIO_NET_F_MRG_RXBUF);
	c.rx_buffer = 1526;
	bed_open(&c, RX);
	rx_rounds(10000, 1514);
	bed_close();
}

static void rx_legacy_header(void)
{
	struct guest_config c = config_of(256, 65530);

	c.features = 0;
	c.rx_buffer = 1524;
	bed_open(&c, RX);
	CU_ASSERT_EQUAL(bed.guest.hdr_len, 10);
	rx_rounds(10000, 1514);
	bed_close();
}

/* Number of buffers per frame, and all used entries of a frame under one index update. */
static void rx_num_buffers(void)
{
	static const struct {
		uint32_t len, buffers;
	} row[] = {{60, 1}, {244, 1}, {245, 2}, {500, 2}, {501, 3}, {1514, 6}};
	struct guest_config c = config_of(256, 0);
	uint16_t used = 0;

	c.rx_buffer = 256;
	bed_open(&c, RX);
	guest_rx_fill(&bed.guest, 0);
	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		struct pkt pkt, *list[] = {&pkt};
		uint64_t sent = 0, bytes = 0;

		expect(row[i].len);
		pkt_set(&pkt, bed.frame, row[i].len);
		CU_ASSERT_EQUAL(vq_put(&bed.vq, bed.mem, list, 1, &sent, &bytes), 1);
		CU_ASSERT_EQUAL(guest_ring_raw_used_idx(&bed.guest.pair[0].rx), used);
		CU_ASSERT_TRUE(vq_publish(&bed.vq));
		used = (uint16_t)(used + row[i].buffers);
		CU_ASSERT_EQUAL(guest_ring_raw_used_idx(&bed.guest.pair[0].rx), used);
		CU_ASSERT_EQUAL(driver_takes(2), 1);
	}
	bed_close();
}

static void rx_ring_full_then_goes_on(void)
{
	const struct guest_config c = config_of(64, 65530);
	uint64_t sent = 0;

	bed_open(&c, RX);
	CU_ASSERT_EQUAL(rx_put_random(5, 1514, &sent), 0);
	guest_rx_fill(&bed.guest, 0);
	CU_ASSERT_EQUAL(rx_put_random(32, 1514, &sent), 32);
	CU_ASSERT_EQUAL(rx_put_random(32, 1514, &sent), 32);
	CU_ASSERT_EQUAL(rx_put_random(1, 1514, &sent), 0);
	CU_ASSERT_EQUAL(driver_takes(10), 10);
	CU_ASSERT_EQUAL(rx_put_random(32, 1514, &sent), 10);
	CU_ASSERT_EQUAL(driver_takes(100), 64);
	bed_close();
}

/* A frame that needs more buffers than are there now waits; nothing of it becomes visible. */
static void rx_merged_frame_waits_for_buffers(void)
{
	struct guest_config c = config_of(8, 0);
	struct pkt pkt, *list[] = {&pkt};
	uint64_t sent = 0, bytes = 0;

	c.rx_buffer = 256;
	bed_open(&c, RX);
	guest_rx_fill(&bed.guest, 0);
	for (unsigned int i = 0; i < 2; i++) {
		expect(900);
		pkt_set(&pkt, bed.frame, 900);
		CU_ASSERT_EQUAL(vq_put(&bed.vq, bed.mem, list, 1, &sent, &bytes), 1);
	}
	expect(245);
	pkt_set(&pkt, bed.frame, 245);
	CU_ASSERT_EQUAL(vq_put(&bed.vq, bed.mem, list, 1, &sent, &bytes), 0);
	vq_publish(&bed.vq);
	CU_ASSERT_EQUAL(guest_ring_raw_used_idx(&bed.guest.pair[0].rx), 8);
	bed.count--;
	CU_ASSERT_EQUAL(driver_takes(10), 2);
	expect(245);
	pkt_set(&pkt, bed.frame, 245);
	CU_ASSERT_EQUAL(vq_put(&bed.vq, bed.mem, list, 1, &sent, &bytes), 1);
	vq_publish(&bed.vq);
	CU_ASSERT_EQUAL(driver_takes(10), 1);
	CU_ASSERT_EQUAL(sent, 3);
	CU_ASSERT_EQUAL(bytes, 900 + 900 + 245);
	CU_ASSERT_EQUAL(bed.vq.counts.too_small_drops, 0);
	bed_close();
}

static const struct unit_case cases[] = {
    UNIT_CASE(tx_all_ring_sizes),
    UNIT_CASE(tx_through_index_wraps),
    UNIT_CASE(tx_full_ring_at_once),
    UNIT_CASE(tx_large_frames_in_many_pieces),
    UNIT_CASE(tx_legacy_header),
    UNIT_CASE(tx_batch_is_bounded),
    UNIT_CASE(rx_all_ring_sizes),
    UNIT_CASE(rx_through_index_wraps),
    UNIT_CASE(rx_merged_buffers_of_all_sizes),
    UNIT_CASE(rx_largest_frames_merged),
    UNIT_CASE(rx_largest_frames_in_one_buffer),
    UNIT_CASE(rx_not_mergeable),
    UNIT_CASE(rx_legacy_header),
    UNIT_CASE(rx_num_buffers),
    UNIT_CASE(rx_ring_full_then_goes_on),
    UNIT_CASE(rx_merged_frame_waits_for_buffers),
};
UNIT_MAIN("split", cases)
