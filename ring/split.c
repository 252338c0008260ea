/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Split virtqueue, device side (virtio 1.2, 2.7).
 *
 * Owner: one worker (guest's transmit queue) or the holder of an output lock (receive queue).
 *
 * Shared lines are touched as rarely as the layout allows. avail->idx is read only when the entries
 * seen before are used up. Descriptors are copied once into registers, checked there and never read
 * again. Used entries gather in vq->shadow and go out in ascending order, so that each line of the
 * used ring changes hands once; used->idx is one release store per batch.
 *
 * Batches run in phases - heads, descriptors, payload - and each phase prefetches for the next, so
 * that the cache misses of up to 32 frames overlap. The phases know only the common shape: a frame
 * in one descriptor. Everything else (chains, indirect tables, small buffers, region borders)
 * leaves through chain_next() to code that is careful before it is fast.
 *
 * A batch of one or two has nothing to overlap with, and each miss in the chain index, entry,
 * descriptor, payload costs it a line transfer. So for lone frames lines are fetched on a guess
 * before their turn: the descriptor that a driver is likely to use next, the used ring's lines that
 * will be written, and after a put the buffers that come next (cores far apart, one frame in flight
 * between two guests: p50 2.82 -> 2.29 us, p99 3.53 -> 2.76 us).
 *
 * Heads come back in the order in which they were offered, malformed ones too: that is what
 * VIRTIO_F_IN_ORDER promises, with which a driver needs no list of free descriptors (DPDK's
 * virtio-user as the guest, 64 bytes, cores far apart: 11.0 -> 16.1 Mpps).
 *
 * Trust: a head number beyond the ring or an index that jumps further than the ring is long breaks
 * the queue (vq->fault). Anything wrong inside a chain costs that chain: it is returned with length
 * 0 and counted. Every walk is bounded by vq->chain_max or VQ_CHAIN_MAX links, and all walks for
 * one frame that is sent by GATHER_LINKS.
 *
 * A malformed receive chain also costs the frame that was about to be stored: all heads gathered
 * for it are returned empty. Putting single heads back would let a guest make us look at the same
 * bad heads again and again.
 *
 * Rejected: reading the transmit header. Without negotiated offloads it must be zero (5.1.6.2), so
 * looking at it could only cost a line.
 */
#include <string.h>

#include "base/atomic.h"
#include "ring/vq.h"

static const char *const fault_text[] = {
    [VQ_FAULT_NONE] = "no fault",
    [VQ_FAULT_HEAD] = "the driver offered a descriptor number beyond the ring",
    [VQ_FAULT_AVAIL_JUMP] = "the driver's available index jumped further than the ring is long",
};

const char *vq_fault_text(enum vq_fault fault)
{
	return fault_text[fault];
}

static void vq_break(struct vq *vq, enum vq_fault fault)
{
	store_relaxed(&vq->fault, fault);
}

/* used_event lies behind the available ring, avail_event behind the used ring (2.7.10) */
static uint16_t *used_event(const struct vq *vq)
{
	return &vq->avail->ring[vq->size];
}

static uint16_t *avail_event(const struct vq *vq)
{
	return (uint16_t *)(void *)&vq->used->ring[vq->size];
}

/* The queue is polled: kicks would only cost the guest an exit. */
static void suppress_kicks(const struct vq *vq)
{
	if (vq->event_idx) {
		store_relaxed(avail_event(vq), (uint16_t)(vq->next_avail - 1));
		store_relaxed(&vq->used->flags, (uint16_t)0);
	} else {
		store_relaxed(&vq->used->flags, (uint16_t)VRING_USED_F_NO_NOTIFY);
	}
}

void vq_start(struct vq *vq, const struct vq_config *c)
{
	memset(vq, 0, sizeof(*vq));
	vq->desc = c->desc;
	vq->avail = c->avail;
	vq->used = c->used;
	vq->size = c->size;
	vq->mask = (uint16_t)(c->size - 1);
	vq->chain_max = MIN(c->size, (uint32_t)VQ_CHAIN_MAX);
	vq->hdr_len = c->hdr_len;
	vq->event_idx = c->event_idx;
	vq->indirect = c->indirect;
	vq->mergeable = c->mergeable;
	vq->next_avail = c->base;
	vq->avail_seen = c->base;
	vq->used_next = c->used_base;
	vq->used_published = c->used_base;
	suppress_kicks(vq);
}

/* ---- available ring ---- */

/* How many heads can be taken now, at most `want`; reads the guest's index only if needed. */
static unsigned int heads_available(struct vq *vq, unsigned int want)
{
	if (vq_avail_cached(vq) < want && vq->fault == VQ_FAULT_NONE) {
		/* acquire: pairs with the driver's release of avail->idx (2.7.13.3) */
		const uint16_t seen = load_acquire(&vq->avail->idx);

		if ((uint16_t)(seen - vq->next_avail) > vq->size)
			vq_break(vq, VQ_FAULT_AVAIL_JUMP);
		else
			vq->avail_seen = seen;
	}
	return vq->fault == VQ_FAULT_NONE ? MIN((unsigned int)vq_avail_cached(vq), want) : 0;
}

/* Reads `n` heads that follow `skip` untaken ones. Returns how many are inside the ring. */
static unsigned int heads_read(struct vq *vq, uint16_t *head, unsigned int skip, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		head[i] = load_relaxed(
		    &vq->avail->ring[(uint16_t)(vq->next_avail + skip + i) & vq->mask]);
		if (unlikely(head[i] >= vq->size)) {
			vq_break(vq, VQ_FAULT_HEAD);
			return i;
		}
		__builtin_prefetch(&vq->desc[head[i]]);
	}
	return n;
}

/* One load into a register; the barrier forbids the compiler to look at guest memory again. */
static inline struct vring_desc desc_copy(const struct vring_desc *from)
{
	struct vring_desc d;

	copy_16((uint8_t *)&d, (const uint8_t *)from);
	__asm__("" : "+m"(d));
	return d;
}

/* Batches up to this size are latency's, larger ones throughput's: see "lone frames" above. */
#define LONE 3u

/* gcc 12 takes a function that only prefetches for one without effect and drops calls of it. */
#define PREFETCHER static inline __attribute__((always_inline))

/*
 * The lines that publishing the used entries of this batch will write; shared, since the guest may
 * be polling them.
 */
PREFETCHER void used_prefetch(const struct vq *vq)
{
	__builtin_prefetch(&vq->used->ring[vq->used_next & vq->mask]);
	__builtin_prefetch(&vq->used->idx);
}

/* Drivers with a ring of free descriptors use the next one, those with a stack the same again. */
PREFETCHER void pop_prefetch(const struct vq *vq)
{
	__builtin_prefetch(&vq->desc[(uint16_t)(vq->last_head + 1) & vq->mask]);
	__builtin_prefetch(&vq->desc[vq->last_head]);
	used_prefetch(vq);
}

/* Buffers that the driver offered long ago and does not touch until they are used. */
static inline void put_prefetch_next(struct vq *vq, const struct guest_mem *mem)
{
	const unsigned int n = MIN((unsigned int)vq_avail_cached(vq), 2u);

	for (unsigned int i = 0; i < n; i++) {
		const uint16_t head =
		    load_relaxed(&vq->avail->ring[(uint16_t)(vq->next_avail + i) & vq->mask]);
		/* Only a hint: what is used is copied and checked in its turn. */
		const uint64_t addr = load_relaxed(&vq->desc[head & vq->mask].addr);
		const uint8_t *dst = guest_mem_at(mem, addr, 1, &vq->hint);

		if (dst) {
			prefetch_write(dst);
			prefetch_write(dst + CACHE_LINE);
		}
	}
}

/* ---- used ring ---- */

static void used_write_run(struct vq *vq, unsigned int from, unsigned int n)
{
	struct vring_used_elem *out = &vq->used->ring[vq->used_next & vq->mask];

	memcpy(out, &vq->shadow[from], n * sizeof(*out));
	vq->used_next = (uint16_t)(vq->used_next + n);
}

/* Writes all gathered entries behind used_next; the index is published separately. */
static void used_write(struct vq *vq)
{
	unsigned int done = 0;

	while (done < vq->nshadow) {
		const unsigned int to_end = vq->size - (vq->used_next & vq->mask);
		const unsigned int n = MIN(vq->nshadow - done, to_end);

		used_write_run(vq, done, n);
		done += n;
	}
	vq->nshadow = 0;
}

static inline void used_push(struct vq *vq, uint16_t head, uint32_t len)
{
	if (unlikely(vq->nshadow == VQ_SHADOW))
		used_write(vq);
	vq->shadow[vq->nshadow++] = (struct vring_used_elem){.id = head, .len = len};
}

bool vq_publish(struct vq *vq)
{
	used_write(vq);
	if (vq->used_next == vq->used_published)
		return false;
	vq->used_published = vq->used_next;
	/* release: pairs with the driver's acquire of used->idx (2.7.14) */
	store_release(&vq->used->idx, vq->used_next);
	return true;
}

bool vq_complete(struct vq *vq)
{
	return vq_publish(vq);
}

bool vq_need_notify(struct vq *vq)
{
	const uint16_t old = vq->notified_at;

	/* Pairs with the driver's fence between asking for an interrupt and re-checking used->idx.
	 */
	fence_full();
	if (!vq->event_idx)
		return !(load_relaxed(&vq->avail->flags) & VRING_AVAIL_F_NO_INTERRUPT);
	vq->notified_at = vq->used_published;
	if (unlikely(!vq->notified_once)) {
		vq->notified_once = true;
		return true;
	}
	return vring_need_event(load_relaxed(used_event(vq)), vq->used_published, old);
}

/* ---- descriptor chains, one descriptor at a time ---- */

struct chain {
	const struct vq *vq;
	const struct vring_desc *table; /* the ring's, or an indirect one */
	uint32_t table_len;             /* descriptors in it */
	uint32_t left;                  /* links that may still follow */
	uint16_t next;
	bool more;
	bool indirect;
};

enum chain_step { CHAIN_BAD = -1, CHAIN_END = 0, CHAIN_DESC = 1 };

static void chain_init(struct chain *c, const struct vq *vq, uint16_t head)
{
	*c = (struct chain){
	    .vq = vq,
	    .table = vq->desc,
	    .table_len = vq->size,
	    .left = vq->chain_max,
	    .next = head,
	    .more = true,
	};
}

/* 2.7.5.3: an indirect table, here also required to lie in one memory region. */
static bool chain_enter_indirect(struct chain *c, const struct vring_desc *d,
				 const struct guest_mem *mem, uint32_t *hint)
{
	const uint32_t n = d->len / (uint32_t)sizeof(*d);

	if (!c->vq->indirect || c->indirect || (d->flags & VRING_DESC_F_NEXT))
		return false;
	if (n == 0 || d->len % sizeof(*d) || n > VQ_CHAIN_MAX)
		return false;
	const uint8_t *table = guest_mem_at(mem, d->addr, d->len, hint);

	if (!table)
		return false;
	c->table = (const struct vring_desc *)(const void *)table;
	c->table_len = n;
	c->left = n;
	c->next = 0;
	c->indirect = true;
	return true;
}

/* Copies the chain's next descriptor to *d. Indirect tables are entered on the way. */
static enum chain_step chain_next(struct chain *c, const struct guest_mem *mem, uint32_t *hint,
				  struct vring_desc *d)
{
	if (!c->more)
		return CHAIN_END;
	for (;;) {
		if (c->next >= c->table_len || c->left == 0)
			return CHAIN_BAD;
		c->left--;
		/* Byte arithmetic: guests may leave indirect tables unaligned. */
		*d = desc_copy((const struct vring_desc *)(const void *)((const uint8_t *)c->table +
									 c->next * sizeof(*d)));
		if (!(d->flags & VRING_DESC_F_INDIRECT))
			break;
		if (!chain_enter_indirect(c, d, mem, hint))
			return CHAIN_BAD;
	}
	c->next = d->next;
	c->more = d->flags & VRING_DESC_F_NEXT;
	return CHAIN_DESC;
}

/* ---- receive from the guest ---- */

enum pop_result { POP_FRAME, POP_BAD, POP_OVERSIZE, POP_RUNT };

/* Appends the pieces of [addr, addr+len) to the batch's segments. */
static bool batch_add_buffer(struct batch *b, const struct guest_mem *mem, uint32_t *hint,
			     uint64_t addr, uint32_t len)
{
	while (len) {
		uint8_t *host;
		const uint64_t piece = guest_mem_piece(mem, addr, len, hint, &host);

		if (piece == 0 || b->nsegs == BATCH_SEGS)
			return false;
		b->seg[b->nsegs++] = (struct pkt_seg){host, (uint32_t)piece};
		addr += piece;
		len -= (uint32_t)piece;
	}
	return true;
}

/* Collects a chain's frame bytes as segments; *len = bytes without the virtio-net header. */
static enum pop_result pop_gather(struct vq *vq, const struct guest_mem *mem, struct batch *b,
				  uint16_t head, uint32_t *len)
{
	uint32_t skip = vq->hdr_len;
	uint64_t total = 0;
	enum chain_step step;
	struct vring_desc d;
	struct chain c;

	chain_init(&c, vq, head);
	while ((step = chain_next(&c, mem, &vq->hint, &d)) == CHAIN_DESC) {
		const uint32_t skipped = MIN(skip, d.len);
		const unsigned int before = b->nsegs;

		if ((d.flags & VRING_DESC_F_WRITE) || d.len > UINT64_MAX - d.addr)
			return POP_BAD;
		skip -= skipped;
		total += d.len - skipped;
		if (total > FRAME_MAX)
			return POP_OVERSIZE;
		/* Header bytes are not looked at, but they have to be in guest memory as well. */
		if (!batch_add_buffer(b, mem, &vq->hint, d.addr, skipped))
			return POP_BAD;
		b->nsegs = before;
		if (!batch_add_buffer(b, mem, &vq->hint, d.addr + skipped, d.len - skipped))
			return POP_BAD;
	}
	*len = (uint32_t)total;
	if (step == CHAIN_BAD)
		return POP_BAD;
	return skip || total < FRAME_MIN ? POP_RUNT : POP_FRAME;
}

/* Builds p from segments [first, nsegs): the header is copied out, the rest stays borrowed. */
static void pkt_from_segs(struct pkt *p, struct batch *b, unsigned int first, uint32_t len)
{
	unsigned int i = first;

	p->len = len;
	p->umem = PKT_NO_UMEM;
	p->consumed = 0;
	p->hdr_len = (uint8_t)MIN(len, (uint32_t)PKT_HDR);
	for (uint32_t have = 0; have < p->hdr_len;) {
		struct pkt_seg *s = &b->seg[i];
		const uint32_t n = MIN(s->len, p->hdr_len - have);

		copy_frame(p->hdr + have, s->base, n);
		have += n;
		s->base += n;
		s->len -= n;
		if (s->len == 0)
			i++;
	}
	p->body = NULL;
	p->body_len = 0;
	if (i < b->nsegs) {
		p->body = b->seg[i].base;
		p->body_len = b->seg[i].len;
		i++;
	}
	p->more = &b->seg[i];
	p->nmore = (uint16_t)(b->nsegs - i);
}

static void count_refused(struct vq *vq, enum pop_result why)
{
	counter_add(why == POP_OVERSIZE ? &vq->counts.oversize
		    : why == POP_RUNT   ? &vq->counts.runts
					: &vq->counts.bad_chains,
		    1);
}

/* Any chain that is not one plain descriptor. Adds a frame to the batch, or counts why not. */
static void pop_chain(struct vq *vq, const struct guest_mem *mem, struct batch *b, uint16_t head)
{
	const unsigned int first = b->nsegs;
	uint32_t len = 0;
	const enum pop_result result = pop_gather(vq, mem, b, head, &len);

	if (result != POP_FRAME) {
		b->nsegs = first;
		count_refused(vq, result);
		return;
	}
	pkt_from_segs(&b->pkt[b->count++], b, first, len);
}

/* The common shape: header and frame in one readable descriptor inside one region. */
static inline const uint8_t *pop_single(struct vq *vq, const struct guest_mem *mem,
					const struct vring_desc *d)
{
	const uint16_t odd = VRING_DESC_F_NEXT | VRING_DESC_F_INDIRECT | VRING_DESC_F_WRITE;

	if (unlikely((d->flags & odd) || d->len < vq->hdr_len + FRAME_MIN ||
		     d->len > vq->hdr_len + FRAME_MAX))
		return NULL;
	return guest_mem_at(mem, d->addr, d->len, &vq->hint);
}

unsigned int vq_pop(struct vq *vq, const struct guest_mem *mem, struct batch *batch)
{
	const unsigned int before = batch->count;
	const uint8_t *frame[BATCH_MAX];
	uint32_t len[BATCH_MAX];
	uint16_t head[BATCH_MAX];
	unsigned int n, taken;

	/* Most polls find nothing: leave by the shortest way, asking only for one head. */
	if (heads_available(vq, 1) == 0)
		return 0;
	n = MIN((unsigned int)vq_avail_cached(vq), BATCH_MAX - before);
	if (n <= LONE)
		pop_prefetch(vq);
	n = heads_read(vq, head, 0, n);

	for (unsigned int i = 0; i < n; i++) {
		const struct vring_desc d = desc_copy(&vq->desc[head[i]]);

		frame[i] = pop_single(vq, mem, &d);
		if (likely(frame[i] != NULL)) {
			/* As if to write: the guest rewrites the buffer, and a line that
			 * moved here whole need not be taken back from two places. */
			prefetch_write(frame[i]);
			prefetch_write(frame[i] + CACHE_LINE);
			frame[i] += vq->hdr_len;
			len[i] = d.len - vq->hdr_len;
		}
	}
	for (taken = 0; taken < n; taken++) {
		if (likely(frame[taken] != NULL)) {
			pkt_set(&batch->pkt[batch->count++], frame[taken], len[taken]);
		} else {
			/* Room for the longest chain, unless the batch is still empty. */
			if (batch->count && BATCH_SEGS - batch->nsegs < VQ_CHAIN_MAX)
				break;
			pop_chain(vq, mem, batch, head[taken]);
		}
		used_push(vq, head[taken], 0);
	}
	if (likely(taken))
		vq->last_head = head[taken - 1];
	vq->next_avail = (uint16_t)(vq->next_avail + taken);
	return batch->count - before;
}

/* ---- send to the guest ---- */

/* Header the switch writes in front of each frame: no offloads, num_buffers (5.1.6.4). */
static inline void put_header(uint8_t *dst, unsigned int hdr_len, uint16_t num_buffers)
{
	const struct virtio_net_hdr hdr = {.num_buffers = num_buffers};

	if (likely(hdr_len == sizeof(hdr)))
		memcpy(dst, &hdr, sizeof(hdr));
	else
		memcpy(dst, &hdr, VIRTIO_NET_HDR_LEGACY);
}

/* The common shape: one writable descriptor that holds header and frame. */
static inline uint8_t *put_single(struct vq *vq, const struct guest_mem *mem,
				  const struct vring_desc *d, uint32_t need)
{
	const uint16_t shape = VRING_DESC_F_NEXT | VRING_DESC_F_INDIRECT | VRING_DESC_F_WRITE;

	if (unlikely((d->flags & shape) != VRING_DESC_F_WRITE || d->len < need))
		return NULL;
	return guest_mem_at(mem, d->addr, d->len, &vq->hint);
}

/* Sends frames as long as each fits one plain buffer. Returns how many. */
static unsigned int put_fast(struct vq *vq, const struct guest_mem *mem, struct pkt *const pkt[],
			     unsigned int n)
{
	uint8_t *dst[BATCH_MAX];
	uint16_t head[BATCH_MAX];
	unsigned int ready = 0;

	n = heads_available(vq, MIN(n, (unsigned int)BATCH_MAX));
	n = heads_read(vq, head, 0, n);
	for (; ready < n; ready++) {
		const struct vring_desc d = desc_copy(&vq->desc[head[ready]]);

		dst[ready] = put_single(vq, mem, &d, vq->hdr_len + pkt[ready]->len);
		if (unlikely(!dst[ready]))
			break;
		prefetch_write(dst[ready]);
		prefetch_write(dst[ready] + CACHE_LINE);
	}
	for (unsigned int i = 0; i < ready; i++) {
		put_header(dst[i], vq->hdr_len, 1);
		pkt_copy_out(pkt[i], dst[i] + vq->hdr_len);
		used_push(vq, head[i], vq->hdr_len + pkt[i]->len);
	}
	vq->next_avail = (uint16_t)(vq->next_avail + ready);
	return ready;
}

/* Buffers gathered for one frame: pieces of guest memory, and the heads they belong to. */
#define GATHER_PIECES 2048
#define GATHER_HEADS  1024
/*
 * Descriptors that are looked at for one frame, in all its chains. A frame in the smallest sensible
 * buffers needs two for each; without a limit a guest could have a million of empty ones read for
 * each frame that it is sent, at the cost of all others.
 */
#define GATHER_LINKS 2048

struct gather {
	uint32_t capacity; /* bytes in all pieces, cut off at `need` */
	unsigned int npieces;
	unsigned int nheads;
	unsigned int nlinks;
	struct {
		uint8_t *host;
		uint32_t len;
	} piece[GATHER_PIECES];
	struct {
		uint16_t head;
		uint32_t len; /* bytes of the frame and its header that go there */
	} buffer[GATHER_HEADS];
};

/* Checks the whole buffer [addr, addr+len); keeps pieces for its first `keep` bytes. */
static bool gather_add(struct gather *g, const struct guest_mem *mem, uint32_t *hint, uint64_t addr,
		       uint32_t len, uint32_t keep)
{
	while (len) {
		uint8_t *host;
		const uint32_t n = (uint32_t)guest_mem_piece(mem, addr, len, hint, &host);
		const uint32_t kept = MIN(n, keep);

		if (n == 0 || (kept && g->npieces == GATHER_PIECES))
			return false;
		if (kept) {
			g->piece[g->npieces].host = host;
			g->piece[g->npieces++].len = kept;
		}
		addr += n;
		len -= n;
		keep -= kept;
	}
	return true;
}

/* Adds one chain, as far as it is needed to reach `need` bytes; false if malformed or too long. */
static bool gather_chain(struct gather *g, struct vq *vq, const struct guest_mem *mem,
			 uint16_t head, uint32_t need)
{
	const uint32_t before = g->capacity;
	enum chain_step step;
	struct vring_desc d;
	struct chain c;

	chain_init(&c, vq, head);
	while ((step = chain_next(&c, mem, &vq->hint, &d)) == CHAIN_DESC) {
		const uint32_t take = MIN(d.len, need - g->capacity);

		if (!(d.flags & VRING_DESC_F_WRITE) || d.len > UINT64_MAX - d.addr)
			return false;
		if (g->nlinks++ == GATHER_LINKS)
			return false;
		if (!gather_add(g, mem, &vq->hint, d.addr, d.len, take))
			return false;
		g->capacity += take;
	}
	g->buffer[g->nheads - 1].len = g->capacity - before;
	return step == CHAIN_END;
}

enum put_result { PUT_SENT, PUT_DROPPED, PUT_FULL };

static void gather_return_empty(struct gather *g, struct vq *vq)
{
	for (unsigned int i = 0; i < g->nheads; i++)
		used_push(vq, g->buffer[i].head, 0);
	vq->next_avail = (uint16_t)(vq->next_avail + g->nheads);
	counter_add(&vq->counts.bad_buffer_drops, 1);
}

/* Takes heads until `need` bytes fit. PUT_SENT: they do. The heads are not consumed yet. */
static enum put_result gather_buffers(struct gather *g, struct vq *vq, const struct guest_mem *mem,
				      uint32_t need)
{
	const unsigned int max_heads = vq->mergeable ? GATHER_HEADS : 1;

	g->capacity = g->npieces = g->nheads = g->nlinks = 0;
	while (g->capacity < need) {
		uint16_t head;

		if (g->nheads == max_heads)
			return PUT_DROPPED;
		if (heads_available(vq, g->nheads + 1) <= g->nheads)
			return g->nheads == vq->size ? PUT_DROPPED : PUT_FULL;
		if (heads_read(vq, &head, g->nheads, 1) == 0)
			return PUT_FULL;
		g->buffer[g->nheads++].head = head;
		if (!gather_chain(g, vq, mem, head, need)) {
			gather_return_empty(g, vq);
			return PUT_DROPPED;
		}
	}
	return PUT_SENT;
}

/* Writes the header, which may itself be spread over pieces, and the frame. */
static void gather_write(const struct gather *g, const struct vq *vq, const struct pkt *p)
{
	uint8_t hdr[sizeof(struct virtio_net_hdr)];
	struct pkt_cursor cursor;
	uint32_t hdr_done = 0;

	put_header(hdr, vq->hdr_len, (uint16_t)g->nheads);
	pkt_cursor_init(&cursor, p);
	for (unsigned int i = 0; i < g->npieces; i++) {
		const uint32_t n = MIN(g->piece[i].len, vq->hdr_len - hdr_done);

		memcpy(g->piece[i].host, hdr + hdr_done, n);
		hdr_done += n;
		pkt_cursor_copy(&cursor, g->piece[i].host + n, g->piece[i].len - n);
	}
}

/* One frame of any size into buffers of any shape. */
static enum put_result put_slow(struct vq *vq, const struct guest_mem *mem, const struct pkt *p)
{
	struct gather g;
	const uint64_t bad_before = vq->counts.bad_buffer_drops;
	const enum put_result result = gather_buffers(&g, vq, mem, vq->hdr_len + p->len);

	if (result == PUT_DROPPED && vq->counts.bad_buffer_drops == bad_before)
		counter_add(&vq->counts.too_small_drops, 1);
	if (result != PUT_SENT)
		return result;
	gather_write(&g, vq, p);
	for (unsigned int i = 0; i < g.nheads; i++)
		used_push(vq, g.buffer[i].head, g.buffer[i].len);
	vq->next_avail = (uint16_t)(vq->next_avail + g.nheads);
	return PUT_SENT;
}

unsigned int vq_put(struct vq *vq, const struct guest_mem *mem, struct pkt *const pkt[],
		    unsigned int n, uint64_t *sent, uint64_t *bytes)
{
	unsigned int done = 0;

	if (n <= LONE)
		used_prefetch(vq);
	while (done < n) {
		const unsigned int fast = put_fast(vq, mem, pkt + done, n - done);
		enum put_result result;

		for (unsigned int i = 0; i < fast; i++)
			*bytes += pkt[done + i]->len;
		*sent += fast;
		done += fast;
		if (done == n || vq_avail_cached(vq) == 0)
			break;
		result = put_slow(vq, mem, pkt[done]);
		if (result == PUT_FULL)
			break;
		if (result == PUT_SENT) {
			*sent += 1;
			*bytes += pkt[done]->len;
		}
		done++;
	}
	if (n <= LONE)
		put_prefetch_next(vq, mem);
	return done;
}
