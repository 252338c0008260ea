/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Layouts that the virtio 1.2 specification fixes: feature bits, split virtqueue (2.7), and the
 * network device's header (5.1.6). Little-endian, as on all hosts this project supports.
 */
#ifndef XVS_RING_VIRTIO_NET_H
#define XVS_RING_VIRTIO_NET_H

#include <stdint.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "guest rings are little-endian and are accessed in place"
#endif

/* Feature bits (virtio 1.2, 5.1.3 and 6; vhost-user's own bits 26 and 30). */
#define VIRTIO_NET_F_CSUM              0
#define VIRTIO_NET_F_GUEST_CSUM        1
#define VIRTIO_NET_F_MRG_RXBUF         15
#define VIRTIO_NET_F_STATUS            16
#define VIRTIO_NET_F_CTRL_VQ           17
#define VIRTIO_NET_F_GUEST_ANNOUNCE    21
#define VIRTIO_NET_F_MQ                22
#define VHOST_F_LOG_ALL                26
#define VIRTIO_F_ANY_LAYOUT            27
#define VIRTIO_F_INDIRECT_DESC         28
#define VIRTIO_F_EVENT_IDX             29
#define VHOST_USER_F_PROTOCOL_FEATURES 30
#define VIRTIO_F_VERSION_1             32
#define VIRTIO_F_RING_PACKED           34
#define VIRTIO_F_IN_ORDER              35

#define FEATURE(bit) (UINT64_C(1) << (bit))

/* 2.7.5 The virtqueue descriptor table */
#define VRING_DESC_F_NEXT     1
#define VRING_DESC_F_WRITE    2
#define VRING_DESC_F_INDIRECT 4

struct vring_desc {
	uint64_t addr; /* guest-physical */
	uint32_t len;
	uint16_t flags;
	uint16_t next;
};
_Static_assert(sizeof(struct vring_desc) == 16, "virtio 1.2, 2.7.5");

/* 2.7.6 The virtqueue available ring; used_event follows ring[size] */
#define VRING_AVAIL_F_NO_INTERRUPT 1

struct vring_avail {
	uint16_t flags;
	uint16_t idx;
	uint16_t ring[];
};

/* 2.7.8 The virtqueue used ring; avail_event follows ring[size] */
#define VRING_USED_F_NO_NOTIFY 1

struct vring_used_elem {
	uint32_t id;
	uint32_t len;
};

struct vring_used {
	uint16_t flags;
	uint16_t idx;
	struct vring_used_elem ring[];
};

#define VRING_SIZE_MAX 32768u

/* Bytes of the three parts for `size` entries; `event_idx` adds the event word. */
static inline uint64_t vring_desc_bytes(uint32_t size)
{
	return (uint64_t)size * sizeof(struct vring_desc);
}

static inline uint64_t vring_avail_bytes(uint32_t size, int event_idx)
{
	return 4 + 2 * (uint64_t)size + (event_idx ? 2 : 0);
}

static inline uint64_t vring_used_bytes(uint32_t size, int event_idx)
{
	return 4 + 8 * (uint64_t)size + (event_idx ? 2 : 0);
}

/* 5.1.6 virtio-net header: 12 bytes with VERSION_1 or MRG_RXBUF, else 10 (no num_buffers) */
struct virtio_net_hdr {
	uint8_t flags;
	uint8_t gso_type;
	uint16_t hdr_len;
	uint16_t gso_size;
	uint16_t csum_start;
	uint16_t csum_offset;
	uint16_t num_buffers;
};
_Static_assert(sizeof(struct virtio_net_hdr) == 12, "virtio 1.2, 5.1.6");

#define VIRTIO_NET_HDR_LEGACY 10

/*
 * 2.7.10: after moving its index from `old` to `now`, a side notifies the other iff the other's
 * event index lies in [old, now).
 */
static inline int vring_need_event(uint16_t event, uint16_t now, uint16_t old)
{
	return (uint16_t)(now - event - 1) < (uint16_t)(now - old);
}

#endif
