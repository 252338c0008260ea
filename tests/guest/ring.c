/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Driver's side of a split virtqueue (virtio 1.2, 2.7), as a guest would have it.
 *
 * Free descriptors are chained in private memory, and for each head the number of descriptors in
 * flight is kept there too: the driver trusts the device no more than the device the driver, and
 * a used entry that names something else is reported as -EPROTO instead of being followed.
 *
 * The order of accesses is the specification's: descriptors, available ring, (release) index,
 * (fence) then a look at whether the device wants a kick (2.7.13); used index (acquire), then
 * entries (2.7.14). When the ring is full, guest_ring_add() says -ENOSPC and the caller takes
 * used entries first.
 *
 * The raw functions at the end write what they are told; after using them the private state no
 * longer says anything, and only raw functions should follow.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/atomic.h"
#include "guest/guest.h"

static uint16_t mask(const struct guest_ring *r)
{
	return (uint16_t)(r->config.size - 1);
}

/* 2.7.10: used_event stands behind the available ring, avail_event behind the used ring. */
static uint16_t *used_event(const struct guest_ring *r)
{
	return &r->avail->ring[r->config.size];
}

static const uint16_t *avail_event(const struct guest_ring *r)
{
	return (const uint16_t *)(const void *)&r->used->ring[r->config.size];
}

static int resolve(struct guest_ring *r)
{
	const struct guest_ring_config *c = &r->config;

	r->desc = guest_ram_at(r->ram, c->desc, vring_desc_bytes(c->size));
	r->avail = guest_ram_at(r->ram, c->avail, vring_avail_bytes(c->size, 1));
	r->used = guest_ram_at(r->ram, c->used, vring_used_bytes(c->size, 1));
	return r->desc && r->avail && r->used ? 0 : -EFAULT;
}

static void clear(struct guest_ring *r)
{
	const uint32_t size = r->config.size;

	memset(r->desc, 0, vring_desc_bytes(size));
	memset(r->avail, 0, vring_avail_bytes(size, 1));
	memset(r->used, 0, vring_used_bytes(size, 1));
	r->avail->idx = r->config.base;
	r->used->idx = r->config.base;
	r->avail_next = r->config.base;
	r->avail_published = r->config.base;
	r->used_seen = r->config.base;
	r->nfree = (uint16_t)size;
	r->free_head = 0;
	for (uint32_t i = 0; i < size; i++) {
		r->free_next[i] = (uint16_t)((i + 1) & mask(r));
		r->chain[i] = 0;
	}
	guest_ring_interrupts(r, false);
}

int guest_ring_init(struct guest_ring *r, const struct guest_ram *ram,
		    const struct guest_ring_config *config)
{
	int err;

	memset(r, 0, sizeof(*r));
	r->config = *config;
	r->ram = ram;
	r->kick_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	r->call_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	r->err_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	r->free_next = calloc(config->size, sizeof(*r->free_next));
	r->chain = calloc(config->size, sizeof(*r->chain));
	err = resolve(r);
	if (!err && (r->kick_fd < 0 || r->call_fd < 0 || r->err_fd < 0))
		err = -EMFILE;
	if (!err && (!r->free_next || !r->chain))
		err = -ENOMEM;
	if (err) {
		guest_ring_fini(r);
		return err;
	}
	clear(r);
	return 0;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void guest_ring_fini(struct guest_ring *r)
{
	if (!r->ram)
		return;
	close_fd(&r->kick_fd);
	close_fd(&r->call_fd);
	close_fd(&r->err_fd);
	free(r->free_next);
	free(r->chain);
	memset(r, 0, sizeof(*r));
}

struct guest_ring_config guest_ring_h0(unsigned int ring)
{
	const uint64_t base = ring ? 0x20000 : 0x10000;

	return (struct guest_ring_config){
	    .size = H0_RING_SIZE,
	    .desc = base,
	    .avail = base + 0x2000,
	    .used = base + 0x3000,
	};
}

/* Takes `n` descriptors off the free list; the first is returned, they stay chained. */
static uint16_t take_free(struct guest_ring *r, unsigned int n)
{
	const uint16_t head = r->free_head;

	for (unsigned int i = 0; i < n; i++)
		r->free_head = r->free_next[r->free_head];
	r->nfree = (uint16_t)(r->nfree - n);
	r->chain[head] = (uint16_t)n;
	return head;
}

static void give_free(struct guest_ring *r, uint16_t head)
{
	uint16_t last = head;

	for (unsigned int i = 1; i < r->chain[head]; i++)
		last = r->free_next[last];
	r->free_next[last] = r->free_head;
	r->free_head = head;
	r->nfree = (uint16_t)(r->nfree + r->chain[head]);
	r->chain[head] = 0;
}

static void offer(struct guest_ring *r, uint16_t head)
{
	store_relaxed(&r->avail->ring[r->avail_next & mask(r)], head);
	r->avail_next++;
}

static uint16_t seg_flags(unsigned int i, unsigned int n, unsigned int nwrite)
{
	return (uint16_t)((i + 1 < n ? VRING_DESC_F_NEXT : 0) |
			  (i >= n - nwrite ? VRING_DESC_F_WRITE : 0));
}

int guest_ring_add(struct guest_ring *r, const struct guest_seg *seg, unsigned int n,
		   unsigned int nwrite)
{
	uint16_t head, at;

	if (n == 0 || n > r->nfree)
		return -ENOSPC;
	head = take_free(r, n);
	at = head;
	for (unsigned int i = 0; i < n; i++) {
		r->desc[at] = (struct vring_desc){
		    .addr = seg[i].gpa,
		    .len = seg[i].len,
		    .flags = seg_flags(i, n, nwrite),
		    .next = i + 1 < n ? r->free_next[at] : 0,
		};
		at = r->free_next[at];
	}
	offer(r, head);
	return head;
}

int guest_ring_add_indirect(struct guest_ring *r, const struct guest_seg *seg, unsigned int n,
			    unsigned int nwrite, uint64_t table)
{
	uint16_t head;

	if (r->nfree == 0)
		return -ENOSPC;
	for (unsigned int i = 0; i < n; i++) {
		if (guest_ram_write_desc(r->ram, table, i, seg[i].gpa, seg[i].len,
					 seg_flags(i, n, nwrite), (uint16_t)(i + 1)))
			return -EFAULT;
	}
	head = take_free(r, 1);
	r->desc[head] = (struct vring_desc){
	    .addr = table,
	    .len = (uint32_t)(n * sizeof(struct vring_desc)),
	    .flags = VRING_DESC_F_INDIRECT,
	};
	offer(r, head);
	return head;
}

void guest_ring_publish(struct guest_ring *r)
{
	/* release: pairs with the device's acquire of the index */
	store_release(&r->avail->idx, r->avail_next);
}

bool guest_ring_kick(struct guest_ring *r)
{
	const uint16_t old = r->avail_published;
	bool wanted;

	r->avail_published = r->avail_next;
	if (old == r->avail_next)
		return false;
	/* 2.7.13.4: the index must be visible before the device's wish is read */
	fence_full();
	if (r->config.event_idx) {
		const uint16_t event = load_relaxed(avail_event(r));

		wanted = (uint16_t)(r->avail_next - event - 1) < (uint16_t)(r->avail_next - old);
	} else {
		wanted = !(load_relaxed(&r->used->flags) & VRING_USED_F_NO_NOTIFY);
	}
	if (wanted)
		guest_ring_kick_always(r);
	return wanted;
}

void guest_ring_kick_always(struct guest_ring *r)
{
	const uint64_t one = 1;

	r->kicks++;
	if (write(r->kick_fd, &one, sizeof(one)) < 0)
		return; /* counter at its maximum: the device has been told often enough */
}

uint16_t guest_ring_pending(const struct guest_ring *r)
{
	/* acquire: pairs with the device's release; entries are read after it */
	return (uint16_t)(load_acquire(&r->used->idx) - r->used_seen);
}

int guest_ring_take(struct guest_ring *r, struct vring_used_elem *out)
{
	const uint16_t pending = guest_ring_pending(r);
	const struct vring_used_elem *e = &r->used->ring[r->used_seen & mask(r)];

	if (pending == 0)
		return 0;
	if (pending > r->config.size)
		return -EPROTO;
	out->id = load_relaxed(&e->id);
	out->len = load_relaxed(&e->len);
	if (out->id >= r->config.size || r->chain[out->id] == 0)
		return -EPROTO;
	give_free(r, (uint16_t)out->id);
	r->used_seen++;
	return 1;
}

void guest_ring_interrupts(struct guest_ring *r, bool wanted)
{
	if (r->config.event_idx)
		store_relaxed(used_event(r),
			      (uint16_t)(wanted ? r->used_seen : r->used_seen - 0x8000));
	else
		store_relaxed(&r->avail->flags, wanted ? 0 : VRING_AVAIL_F_NO_INTERRUPT);
	/* the wish must be visible before the used index is looked at again */
	fence_full();
}

int guest_ring_sleep(struct guest_ring *r, int timeout_ms)
{
	struct pollfd p = {.fd = r->call_fd, .events = POLLIN};
	uint64_t count;
	int found = 1;

	guest_ring_interrupts(r, true);
	while (guest_ring_pending(r) == 0) {
		if (poll(&p, 1, timeout_ms) <= 0) {
			found = 0;
			break;
		}
		if (read(r->call_fd, &count, sizeof(count)) == (ssize_t)sizeof(count))
			r->calls += count;
	}
	guest_ring_interrupts(r, false);
	return found;
}

void guest_ring_raw_desc(struct guest_ring *r, unsigned int i, uint64_t addr, uint32_t len,
			 uint16_t flags, uint16_t next)
{
	r->desc[i & mask(r)] = (struct vring_desc){
	    .addr = addr,
	    .len = len,
	    .flags = flags,
	    .next = next,
	};
}

void guest_ring_raw_avail(struct guest_ring *r, unsigned int slot, uint16_t head)
{
	store_relaxed(&r->avail->ring[slot & mask(r)], head);
}

void guest_ring_raw_avail_idx(struct guest_ring *r, uint16_t idx)
{
	store_release(&r->avail->idx, idx);
}

uint16_t guest_ring_raw_used_idx(const struct guest_ring *r)
{
	return load_acquire(&r->used->idx);
}

struct vring_used_elem guest_ring_raw_used(const struct guest_ring *r, unsigned int slot)
{
	return r->used->ring[slot & mask(r)];
}

struct vq_config guest_ring_vq_config(const struct guest_ring *r)
{
	return (struct vq_config){
	    .size = r->config.size,
	    .desc = r->desc,
	    .avail = r->avail,
	    .used = r->used,
	    .base = r->config.base,
	    .used_base = r->config.base,
	    .event_idx = r->config.event_idx,
	    .indirect = true,
	    .hdr_len = sizeof(struct virtio_net_hdr),
	};
}
