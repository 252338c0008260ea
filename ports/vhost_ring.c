/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One ring of a vhost-user port: where it lies in this process, and where it starts.
 *
 * Control thread, while no worker has the ring (vhost.c sees to that). Addresses come from the
 * front-end, indices from guest memory: each part of a ring is looked up whole, so that a worker
 * need not check again, and an index is believed only where it is plausible.
 *
 * Where a ring starts. In-order completion means that every head taken is returned before the
 * worker leaves its round, so that in a stopped ring "heads taken" and used->idx are the same
 * number. They differ when a device died between two rounds (then used->idx is the truth for the
 * driver: what is not in the used ring must be taken again, else it is lost) or when the front-end
 * forgot (DPDK's virtio-user always says 0). So used->idx from guest memory wins where it is
 * plausible, that is within a ring's length of avail->idx, and the front-end's base is either
 * plausible too or 0. In all other cases the base stands; if it is nonsense the first poll breaks
 * the ring.
 *
 * A ring that is moved, to other addresses or another map of the same memory, keeps its indices.
 */
#include <errno.h>

#include "base/atomic.h"
#include "ports/vhost_internal.h"

struct ring_place {
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;
};

static bool addr_aligned(const struct vhost_ring_addr *a)
{
	return a->desc % 16 == 0 && a->avail % 2 == 0 && a->used % 4 == 0;
}

static bool host_aligned(const void *p, uintptr_t to)
{
	return (uintptr_t)p % to == 0;
}

/*
 * Finds the three parts, whole, in this process. -EFAULT when one is not wholly in a region, or
 * when a region's odd file offset makes it unaligned here.
 */
static int ring_locate(const struct guest_mem *mem, uint64_t features, uint32_t size,
		       const struct vhost_ring_addr *a, struct ring_place *out)
{
	const int event = (features & FEATURE(VIRTIO_F_EVENT_IDX)) != 0;
	uint8_t *desc = guest_mem_at_uva(mem, a->desc, vring_desc_bytes(size));
	uint8_t *avail = guest_mem_at_uva(mem, a->avail, vring_avail_bytes(size, event));
	uint8_t *used = guest_mem_at_uva(mem, a->used, vring_used_bytes(size, event));

	if (!desc || !avail || !used)
		return -EFAULT;
	if (!host_aligned(desc, 16) || !host_aligned(avail, 2) || !host_aligned(used, 4))
		return -EFAULT;
	out->desc = (struct vring_desc *)(void *)desc;
	out->avail = (struct vring_avail *)(void *)avail;
	out->used = (struct vring_used *)(void *)used;
	return 0;
}

int vhost_ring_check_addr(const struct vhost_port *v, const struct vhost_ring *r,
			  const struct vhost_ring_addr *addr)
{
	struct ring_place place;

	if (!addr_aligned(addr))
		return -EINVAL;
	if (!v->mem || !r->size)
		return 0;
	return ring_locate(v->mem, v->features, r->size, addr, &place);
}

/* See above. */
static uint16_t ring_start_index(const struct ring_place *p, uint32_t size, uint16_t base)
{
	const uint16_t avail = load_relaxed(&p->avail->idx);
	const uint16_t used = load_relaxed(&p->used->idx);
	const bool used_plausible = (uint16_t)(avail - used) <= size;
	const bool base_plausible = (uint16_t)(avail - base) <= size;

	return used_plausible && (base_plausible || base == 0) ? used : base;
}

static bool has_feature(const struct vhost_port *v, unsigned int bit)
{
	return v->features & FEATURE(bit);
}

static void ring_start(const struct vhost_port *v, struct vhost_ring *r, const struct ring_place *p)
{
	const uint16_t index = ring_start_index(p, r->size, r->base);
	const bool hdr12 =
	    has_feature(v, VIRTIO_F_VERSION_1) || has_feature(v, VIRTIO_NET_F_MRG_RXBUF);
	const struct vq_config config = {
	    .size = r->size,
	    .desc = p->desc,
	    .avail = p->avail,
	    .used = p->used,
	    .base = index,
	    .used_base = index,
	    .event_idx = has_feature(v, VIRTIO_F_EVENT_IDX),
	    .indirect = has_feature(v, VIRTIO_F_INDIRECT_DESC),
	    .mergeable = has_feature(v, VIRTIO_NET_F_MRG_RXBUF),
	    .hdr_len = hdr12 ? sizeof(struct virtio_net_hdr) : VIRTIO_NET_HDR_LEGACY,
	};

	vq_start(&r->vq, &config);
	r->folded = (struct vq_counts){0};
	r->mem = v->mem;
	r->trouble = NULL;
	r->live = true;
}

int vhost_ring_try_start(struct vhost_port *v, struct vhost_ring *r)
{
	struct ring_place place;
	int err;

	if (v->refusing || r->live || !r->kicked || !r->addressed || !r->size || !v->mem)
		return 0;
	err = ring_locate(v->mem, v->features, r->size, &r->addr, &place);
	if (err) {
		r->trouble = "it lies outside of guest memory";
		return err;
	}
	ring_start(v, r, &place);
	return 0;
}

int vhost_ring_move(struct vhost_port *v, struct vhost_ring *r)
{
	struct ring_place place;
	const int err = ring_locate(v->mem, v->features, r->size, &r->addr, &place);

	if (err)
		return err;
	r->vq.desc = place.desc;
	r->vq.avail = place.avail;
	r->vq.used = place.used;
	r->mem = v->mem;
	return 0;
}
