/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A whole guest: memory, rings and buffers of a network device with one or more queue pairs.
 *
 * Memory is laid out by a bump allocator in region 0 (and, with two_regions, receive buffers in
 * region 1 above 4 GiB): rings first, then indirect tables, then buffers. Buffers stand at a
 * stride of an odd number of cache lines: powers of two would map all of them to a few cache
 * sets and measure nothing but conflicts.
 *
 * A buffer belongs to the descriptor with its number: transmit buffer i is used by the chain
 * whose head is i, receive buffer i is offered by descriptor i. So there is no buffer
 * allocation, and what is in flight is what the ring says is in flight.
 *
 * When the transmit ring is full, used entries are taken first; when that does not help the
 * caller gets -ENOSPC. Received frames are checked as a careful driver would: id in flight, used
 * length within the buffer, num_buffers as announced, all of a frame's entries there at once.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "guest/guest.h"

#define LINE         ((uint64_t)CACHE_LINE)
#define REGION_ALIGN UINT64_C(0x200000)
#define HIGH_GPA     UINT64_C(0x100000000)
#define UVA_BASE     UINT64_C(0x7f0000000000)
#define START_GPA    UINT64_C(0x1000)

struct guest_config guest_config_default(void)
{
	return (struct guest_config){
	    .features = GUEST_FEATURES,
	    .protocol = GUEST_PROTOCOL,
	    .npairs = 1,
	    .ring_size = 256,
	    .rx_buffer = 2048,
	    .tx_buffer = 2048,
	};
}

static uint64_t round_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

static uint32_t stride(uint32_t size)
{
	return (uint32_t)((round_up(size, LINE) / LINE) | 1) * CACHE_LINE;
}

/* The next `bytes` of a region, on a cache line; *next is where the free part starts. */
static uint64_t bump(uint64_t *next, uint64_t bytes)
{
	const uint64_t at = round_up(*next, LINE);

	*next = at + bytes;
	return at;
}

static struct guest_ring_config place_ring(const struct guest_config *c, uint64_t *next)
{
	return (struct guest_ring_config){
	    .size = c->ring_size,
	    .desc = bump(next, vring_desc_bytes(c->ring_size)),
	    .avail = bump(next, vring_avail_bytes(c->ring_size, 1)),
	    .used = bump(next, vring_used_bytes(c->ring_size, 1)),
	    .base = c->base,
	};
}

/* Decides all addresses; *low and *high become the first free ones of the two regions. */
static void place(struct guest *g, uint64_t *low, uint64_t *high)
{
	const struct guest_config *c = &g->config;

	for (unsigned int i = 0; i < c->npairs; i++) {
		g->pair[i].rx.config = place_ring(c, low);
		g->pair[i].tx.config = place_ring(c, low);
		g->pair[i].tx_table = bump(low, (uint64_t)c->ring_size * GUEST_TABLE);
	}
	for (unsigned int i = 0; i < c->npairs; i++) {
		g->pair[i].tx_base = bump(low, (uint64_t)c->ring_size * g->tx_stride);
		g->pair[i].rx_base =
		    bump(c->two_regions ? high : low, (uint64_t)c->ring_size * g->rx_stride);
	}
}

static int make_rings(struct guest *g)
{
	for (unsigned int i = 0; i < g->config.npairs; i++) {
		struct guest_pair *p = &g->pair[i];
		const struct guest_ring_config rx = p->rx.config, tx = p->tx.config;
		int err;

		err = guest_ring_init(&p->rx, &g->ram, &rx);
		if (!err)
			err = guest_ring_init(&p->tx, &g->ram, &tx);
		if (err)
			return err;
	}
	return 0;
}

/* What follows from the features in force. */
static void use_features(struct guest *g, uint64_t features)
{
	const bool event_idx = features & FEATURE(VIRTIO_F_EVENT_IDX);

	g->features = features;
	g->hdr_len = features & (FEATURE(VIRTIO_F_VERSION_1) | FEATURE(VIRTIO_NET_F_MRG_RXBUF))
			 ? sizeof(struct virtio_net_hdr)
			 : VIRTIO_NET_HDR_LEGACY;
	for (unsigned int i = 0; i < g->config.npairs; i++) {
		g->pair[i].rx.config.event_idx = event_idx;
		g->pair[i].tx.config.event_idx = event_idx;
		guest_ring_interrupts(&g->pair[i].rx, g->config.interrupts);
		guest_ring_interrupts(&g->pair[i].tx, false);
	}
}

int guest_create(struct guest *g, const struct guest_config *config)
{
	struct guest_ram_region spec[2] = {
	    {.gpa = 0, .uva = UVA_BASE},
	    {.gpa = HIGH_GPA, .uva = UVA_BASE + HIGH_GPA},
	};
	uint64_t low = START_GPA, high = HIGH_GPA;
	int err;

	memset(g, 0, sizeof(*g));
	g->config = *config;
	g->fe.fd = -1;
	g->rx_stride = stride(config->rx_buffer);
	g->tx_stride = stride(config->tx_buffer);
	if (config->npairs == 0 || config->npairs > GUEST_PAIRS_MAX)
		return -EINVAL;
	place(g, &low, &high);
	spec[0].size = round_up(low, REGION_ALIGN);
	spec[1].size = round_up(high - HIGH_GPA, REGION_ALIGN);
	err = guest_ram_create(&g->ram, spec, config->two_regions ? 2 : 1,
			       config->huge ? GUEST_RAM_HUGE : 0);
	if (!err)
		err = make_rings(g);
	if (err) {
		guest_destroy(g);
		return err;
	}
	use_features(g, config->features);
	return 0;
}

void guest_destroy(struct guest *g)
{
	frontend_close(&g->fe);
	for (unsigned int i = 0; i < g->config.npairs; i++) {
		guest_ring_fini(&g->pair[i].rx);
		guest_ring_fini(&g->pair[i].tx);
	}
	guest_ram_destroy(&g->ram);
}

int guest_attach(struct guest *g, const char *path)
{
	const int err = frontend_connect(&g->fe, path);

	return err ? err : guest_start(g);
}

/* Ring 2*i is the receive queue of pair i, ring 2*i+1 its transmit queue. */
static struct guest_ring *ring_of(struct guest *g, unsigned int ring)
{
	return ring & 1 ? &g->pair[ring / 2].tx : &g->pair[ring / 2].rx;
}

static int enable_rings(struct guest *g)
{
	int err = 0;

	if (!(g->features & FEATURE(VHOST_USER_F_PROTOCOL_FEATURES)))
		return 0; /* then rings are enabled by the kick alone */
	for (unsigned int i = 0; i < 2 * g->config.npairs && !err; i++)
		err = frontend_set_ring(&g->fe, VU_SET_VRING_ENABLE, i, 1);
	return err;
}

int guest_start(struct guest *g)
{
	int err;

	err = frontend_negotiate(&g->fe, g->config.features, g->config.protocol);
	if (err)
		return err;
	use_features(g, g->fe.features);
	err = frontend_set_mem(&g->fe, &g->ram);
	for (unsigned int i = 0; i < g->config.npairs; i++)
		guest_rx_fill(g, i);
	for (unsigned int i = 0; i < 2 * g->config.npairs && !err; i++)
		err = frontend_start_ring(&g->fe, i, ring_of(g, i),
					  guest_ring_raw_used_idx(ring_of(g, i)));
	if (!err)
		err = enable_rings(g);
	return err ? err : frontend_sync(&g->fe);
}

int guest_stop(struct guest *g)
{
	for (unsigned int i = 0; i < 2 * g->config.npairs; i++) {
		struct guest_ring *r = ring_of(g, i);
		uint32_t base;
		int err = frontend_get_base(&g->fe, i, &base);

		if (err)
			return err;
		/* everything the device took has been returned (GET_VRING_BASE) */
		if (base != guest_ring_raw_used_idx(r))
			return -EPROTO;
	}
	return 0;
}

/* ---- transmit ---- */

int guest_tx_reap(struct guest *g, unsigned int pair)
{
	struct vring_used_elem e;
	int n;

	while ((n = guest_ring_take(&g->pair[pair].tx, &e)) > 0) {
		if (e.len != 0)
			return -EPROTO;
	}
	return n;
}

static uint64_t tx_buffer(const struct guest *g, unsigned int pair, uint16_t head)
{
	return g->pair[pair].tx_base + (uint64_t)head * g->tx_stride;
}

/* Room for n more descriptors, after taking used entries if need be. */
static int tx_room(struct guest *g, unsigned int pair, unsigned int n)
{
	struct guest_ring *r = &g->pair[pair].tx;
	int err = 0;

	if (r->nfree < n)
		err = guest_tx_reap(g, pair);
	if (err)
		return err;
	return r->nfree < n ? -ENOSPC : 0;
}

int guest_tx_cut(struct guest *g, unsigned int pair, const void *frame, uint32_t len,
		 const uint32_t cut[], unsigned int n, bool indirect)
{
	struct guest_pair *p = &g->pair[pair];
	struct guest_seg seg[GUEST_TX_SEGS_MAX];
	uint64_t at;
	int err;

	if (n == 0 || n > GUEST_TX_SEGS_MAX)
		return -EINVAL;
	if (len + g->hdr_len > g->config.tx_buffer)
		return -EMSGSIZE;
	err = tx_room(g, pair, indirect ? 1 : n);
	if (err)
		return err;
	at = tx_buffer(g, pair, p->tx.free_head);
	memset(guest_ram_at(&g->ram, at, g->hdr_len), 0, g->hdr_len);
	memcpy(guest_ram_at(&g->ram, at + g->hdr_len, len), frame, len);
	for (unsigned int i = 0; i < n; i++) {
		seg[i] = (struct guest_seg){.gpa = at, .len = cut[i]};
		at += cut[i];
	}
	if (indirect)
		err = guest_ring_add_indirect(
		    &p->tx, seg, n, 0, p->tx_table + (uint64_t)p->tx.free_head * GUEST_TABLE);
	else
		err = guest_ring_add(&p->tx, seg, n, 0);
	return err < 0 ? err : 0;
}

int guest_tx(struct guest *g, unsigned int pair, const void *frame, uint32_t len,
	     enum guest_tx_how how)
{
	const uint32_t whole[] = {g->hdr_len + len};
	const uint32_t split[] = {g->hdr_len, len};

	if (how == GUEST_TX_SINGLE)
		return guest_tx_cut(g, pair, frame, len, whole, 1, false);
	return guest_tx_cut(g, pair, frame, len, split, 2, how == GUEST_TX_INDIRECT);
}

void guest_tx_flush(struct guest *g, unsigned int pair)
{
	guest_ring_publish(&g->pair[pair].tx);
	guest_ring_kick(&g->pair[pair].tx);
}

/* ---- receive ---- */

static uint64_t rx_buffer(const struct guest *g, unsigned int pair, uint32_t id)
{
	return g->pair[pair].rx_base + (uint64_t)id * g->rx_stride;
}

static void rx_post(struct guest *g, unsigned int pair)
{
	struct guest_ring *r = &g->pair[pair].rx;
	const struct guest_seg seg = {
	    .gpa = rx_buffer(g, pair, r->free_head),
	    .len = g->config.rx_buffer,
	};

	guest_ring_add(r, &seg, 1, 1);
}

void guest_rx_fill(struct guest *g, unsigned int pair)
{
	struct guest_ring *r = &g->pair[pair].rx;

	if (r->nfree == 0)
		return;
	while (r->nfree)
		rx_post(g, pair);
	guest_ring_publish(r);
	guest_ring_kick(r);
}

/* Bytes of one used buffer from `skip` on, appended to buf at `done`. New `done`, or an error. */
static int rx_append(struct guest *g, unsigned int pair, const struct vring_used_elem *e,
		     uint32_t skip, uint8_t *buf, uint32_t done, uint32_t size)
{
	uint32_t len;

	if (e->len < skip || e->len > g->config.rx_buffer)
		return -EPROTO;
	len = e->len - skip;
	if (len > size - done)
		return -EMSGSIZE;
	guest_ram_read(&g->ram, rx_buffer(g, pair, e->id) + skip, buf + done, len);
	return (int)(done + len);
}

/* Header of the frame whose first buffer is `id`: number of buffers, or -EPROTO. */
static int rx_header(struct guest *g, unsigned int pair, uint32_t id)
{
	struct virtio_net_hdr h = {.num_buffers = 1};
	uint32_t n;

	guest_ram_read(&g->ram, rx_buffer(g, pair, id), &h, g->hdr_len);
	n = h.num_buffers;
	if (g->features & FEATURE(VIRTIO_NET_F_MRG_RXBUF) ? n == 0 || n > g->config.ring_size
							  : n != 1)
		return -EPROTO;
	/* 5.1.6.4.1: no offload was negotiated, so none may be announced */
	return h.flags || h.gso_type ? -EPROTO : (int)n;
}

/* The remaining n - 1 buffers of a frame; they must be there already (5.1.6.4). */
static int rx_merge(struct guest *g, unsigned int pair, int n, uint8_t *buf, int done,
		    uint32_t size)
{
	struct vring_used_elem e;

	for (int i = 1; i < n && done >= 0; i++) {
		if (guest_ring_take(&g->pair[pair].rx, &e) <= 0)
			return -EPROTO;
		done = rx_append(g, pair, &e, 0, buf, (uint32_t)done, size);
	}
	return done;
}

int guest_rx(struct guest *g, unsigned int pair, void *buf, uint32_t size)
{
	struct vring_used_elem e;
	int n, done;

	n = guest_ring_take(&g->pair[pair].rx, &e);
	if (n <= 0)
		return n;
	done = rx_append(g, pair, &e, g->hdr_len, buf, 0, size);
	if (done >= 0) {
		n = rx_header(g, pair, e.id);
		done = n < 0 ? n : rx_merge(g, pair, n, buf, done, size);
	}
	guest_rx_fill(g, pair);
	return done;
}
