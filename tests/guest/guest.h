/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The other side of a vhost-user device, for tests and the benchmark: guest memory, the driver's
 * half of split virtqueues (virtio 1.2, 2.7), a vhost-user front-end, and a whole guest made of
 * these. Written from the specifications only, sharing nothing with the device side but the
 * layouts of ring/virtio_net.h, so that a misreading in one is not repeated in the other.
 *
 * Four layers, each usable alone:
 *     guest_ram_*    memory regions, each between inaccessible pages
 *     guest_ring_*   one virtqueue as its driver sees it; raw access for hostile drivers
 *     frontend_*     one vhost-user connection; any message, right or wrong
 *     guest_*        a network device with its queue pairs and buffers, on top of the others
 *
 * Without a socket, guest_ram_view() and guest_ring_vq_config() give the device side of the same
 * memory, so that a test can call vq_pop() and vq_put() in its own thread.
 *
 * Results: 0 or a count, or a negative errno; -EPROTO means that the device broke a rule of the
 * specification, -ETIMEDOUT that it did not answer. No call blocks longer than its time-out.
 * One thread per guest. Nothing here ends the process.
 */
#ifndef XVS_TESTS_GUEST_H
#define XVS_TESTS_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring/guest_mem.h"
#include "ring/virtio_net.h"
#include "ring/vq.h"

/* ---- memory ---- */

#define GUEST_RAM_MAX  8
#define GUEST_RAM_HUGE 1u /* 2 MiB pages; sizes and offsets must be multiples */

struct guest_ram_region {
	uint64_t gpa;    /* guest-physical address */
	uint64_t uva;    /* what the front-end calls its own address of it */
	uint64_t size;   /* bytes, multiple of the page size */
	uint64_t offset; /* of the region in its file */
	int fd;          /* set at create: a memfd of its own */
	uint8_t *host;   /* set at create: our mapping */
};

struct guest_ram {
	unsigned int n;
	unsigned int flags; /* as given to guest_ram_create() */
	struct guest_ram_region region[GUEST_RAM_MAX];
};

/*
 * Makes a memfd for each of n regions (gpa, uva, size, offset given) and maps it with an
 * inaccessible page before and behind it. -ENOMEM with GUEST_RAM_HUGE: no such pages free.
 */
int guest_ram_create(struct guest_ram *ram, const struct guest_ram_region *spec, unsigned int n,
		     unsigned int flags);
void guest_ram_destroy(struct guest_ram *ram);

/* Our pointer to [gpa, gpa+len), NULL when not wholly inside one region. */
void *guest_ram_at(const struct guest_ram *ram, uint64_t gpa, uint64_t len);

/* Front-end address of gpa, 0 outside. */
uint64_t guest_ram_uva(const struct guest_ram *ram, uint64_t gpa);

/* Copies between a buffer and guest memory, across adjacent regions. 0 or -EFAULT. */
int guest_ram_write(const struct guest_ram *ram, uint64_t gpa, const void *src, size_t len);
int guest_ram_read(const struct guest_ram *ram, uint64_t gpa, void *dst, size_t len);

/* The same memory as a device sees it, on the guarded mapping; free(*out) when done. */
int guest_ram_view(const struct guest_ram *ram, struct guest_mem **out);

/*
 * The layout that the hostile cases are written for: 2 MiB at guest-physical 0, 2 MiB at 4 GiB,
 * a hole behind the first (`adjacent` fills it with a third region), rings of 256 entries.
 */
#define H0_SIZE      0x200000u
#define H0_HIGH      UINT64_C(0x100000000)
#define H0_RING_SIZE 256u
#define H0_INDIRECT  0x30000u
#define H0_BUFFER(i) (0x40000u + (uint64_t)(i)*0x1000u)
int guest_ram_create_h0(struct guest_ram *ram, bool adjacent);

/* ---- one virtqueue, driver's side ---- */

struct guest_seg {
	uint64_t gpa;
	uint32_t len;
};

struct guest_ring_config {
	uint32_t size; /* entries: power of two */
	uint64_t desc; /* guest-physical places of the three parts */
	uint64_t avail;
	uint64_t used;
	uint16_t base; /* first index of both rings */
	bool event_idx;
};

struct guest_ring {
	/* set at init */
	struct guest_ring_config config;
	const struct guest_ram *ram;
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;
	int kick_fd; /* eventfds */
	int call_fd;
	int err_fd;

	/* driver */
	uint16_t avail_next;      /* next value of avail->idx */
	uint16_t avail_published; /* its value now */
	uint16_t used_seen;       /* used entries taken, free-running */
	uint16_t nfree;           /* free descriptors */
	uint16_t free_head;
	uint16_t *free_next; /* chain of free descriptors, kept where the device cannot write */
	uint16_t *chain;     /* per head: descriptors of the chain in flight, 0 = not in flight */
	uint64_t kicks;      /* eventfd writes made */
	uint64_t calls;      /* interrupts taken */
};

/* Clears the three parts, sets both indices to config->base, makes the eventfds. */
int guest_ring_init(struct guest_ring *r, const struct guest_ram *ram,
		    const struct guest_ring_config *config);
void guest_ring_fini(struct guest_ring *r);

/* Where ring 0 (receive) and 1 (transmit) of the H0 layout are. */
struct guest_ring_config guest_ring_h0(unsigned int ring);

/*
 * Offers a chain of n segments, the last nwrite of them for the device to write (2.7.13.1). Not
 * visible before guest_ring_publish(). Returns its head, or -ENOSPC.
 */
int guest_ring_add(struct guest_ring *r, const struct guest_seg *seg, unsigned int n,
		   unsigned int nwrite);
/* The same as one descriptor with an indirect table at `table` (2.7.5.3). */
int guest_ring_add_indirect(struct guest_ring *r, const struct guest_seg *seg, unsigned int n,
			    unsigned int nwrite, uint64_t table);

/* Makes everything added visible to the device (2.7.13.3). */
void guest_ring_publish(struct guest_ring *r);

/* Kicks if the device asks for it (2.7.13.4.1); true when it did. After guest_ring_publish(). */
bool guest_ring_kick(struct guest_ring *r);
void guest_ring_kick_always(struct guest_ring *r);

/*
 * Takes the next used entry and frees its descriptors (2.7.14). 1, 0 when there is none, -EPROTO
 * for an index jump beyond the ring or an id that is not the head of a chain in flight.
 */
int guest_ring_take(struct guest_ring *r, struct vring_used_elem *out);

/* Used entries not yet taken. */
uint16_t guest_ring_pending(const struct guest_ring *r);

/* Interrupts wanted or not, by flag or by event index (2.7.7, 2.7.10). A fence is included. */
void guest_ring_interrupts(struct guest_ring *r, bool wanted);

/*
 * Sleeps until there are used entries, with interrupts switched on for that time only.
 * 1, or 0 when the device did not interrupt in time: if entries are there by then, the
 * interrupt was lost, and guest_ring_pending() shows it.
 */
int guest_ring_sleep(struct guest_ring *r, int timeout_ms);

/* Raw access: no checks, no order. Indices are taken modulo the ring size. */
void guest_ring_raw_desc(struct guest_ring *r, unsigned int i, uint64_t addr, uint32_t len,
			 uint16_t flags, uint16_t next);
void guest_ring_raw_avail(struct guest_ring *r, unsigned int slot, uint16_t head);
void guest_ring_raw_avail_idx(struct guest_ring *r, uint16_t idx);
uint16_t guest_ring_raw_used_idx(const struct guest_ring *r);
struct vring_used_elem guest_ring_raw_used(const struct guest_ring *r, unsigned int slot);

/* Descriptor i, written into a table in guest memory (an indirect one). 0 or -EFAULT. */
int guest_ram_write_desc(const struct guest_ram *ram, uint64_t table, unsigned int i, uint64_t addr,
			 uint32_t len, uint16_t flags, uint16_t next);

/* Device side of the ring, to be given to vq_start(). Header 12 bytes, not mergeable. */
struct vq_config guest_ring_vq_config(const struct guest_ring *r);

/* ---- front-end ---- */

/* vhost-user requests of a front-end, by number (specification: "Front-end message types"). */
#define VU_REQUESTS(X)                                                                             \
	X(GET_FEATURES, 1)                                                                         \
	X(SET_FEATURES, 2)                                                                         \
	X(SET_OWNER, 3)                                                                            \
	X(RESET_OWNER, 4)                                                                          \
	X(SET_MEM_TABLE, 5)                                                                        \
	X(SET_LOG_BASE, 6)                                                                         \
	X(SET_LOG_FD, 7)                                                                           \
	X(SET_VRING_NUM, 8)                                                                        \
	X(SET_VRING_ADDR, 9)                                                                       \
	X(SET_VRING_BASE, 10)                                                                      \
	X(GET_VRING_BASE, 11)                                                                      \
	X(SET_VRING_KICK, 12)                                                                      \
	X(SET_VRING_CALL, 13)                                                                      \
	X(SET_VRING_ERR, 14)                                                                       \
	X(GET_PROTOCOL_FEATURES, 15)                                                               \
	X(SET_PROTOCOL_FEATURES, 16)                                                               \
	X(GET_QUEUE_NUM, 17)                                                                       \
	X(SET_VRING_ENABLE, 18)                                                                    \
	X(SEND_RARP, 19)                                                                           \
	X(NET_SET_MTU, 20)                                                                         \
	X(SET_BACKEND_REQ_FD, 21)                                                                  \
	X(GET_INFLIGHT_FD, 31)                                                                     \
	X(SET_INFLIGHT_FD, 32)                                                                     \
	X(RESET_DEVICE, 34)                                                                        \
	X(GET_MAX_MEM_SLOTS, 36)                                                                   \
	X(ADD_MEM_REG, 37)                                                                         \
	X(REM_MEM_REG, 38)

enum vu_request {
#define X(name, number) VU_##name = (number),
	VU_REQUESTS(X)
#undef X
};

#define VU_FLAG_VERSION    1u
#define VU_FLAG_REPLY      4u
#define VU_FLAG_NEED_REPLY 8u
#define VU_NO_FD           0x100u /* in the payload of KICK, CALL, ERR */

#define VU_PROTOCOL_MQ        0
#define VU_PROTOCOL_REPLY_ACK 3

#define VU_PAYLOAD_MAX 4096u
#define VU_FDS_MAX     16u

struct vu_header {
	uint32_t request;
	uint32_t flags;
	uint32_t size; /* of the payload */
};

struct vu_ring_state {
	uint32_t ring;
	uint32_t num;
};

struct vu_ring_addr {
	uint32_t ring;
	uint32_t flags;
	uint64_t desc;
	uint64_t used;
	uint64_t avail;
	uint64_t log;
};

struct vu_region {
	uint64_t gpa;
	uint64_t size;
	uint64_t uva;
	uint64_t offset;
};

struct vu_mem_table {
	uint32_t n;
	uint32_t padding;
	struct vu_region region[GUEST_RAM_MAX];
};

/* A message received. Descriptors that came with it are the caller's. */
struct vu_msg {
	struct vu_header header;
	union {
		uint64_t u64;
		struct vu_ring_state state;
		uint8_t bytes[VU_PAYLOAD_MAX];
	} payload;
	unsigned int nfds;
	int fd[VU_FDS_MAX];
};

struct frontend {
	int fd;            /* -1: not connected */
	int timeout_ms;    /* for each answer; set by the caller, 2000 by default */
	bool reply_ack;    /* ask for an answer to each message that has none of its own */
	uint64_t offered;  /* by GET_FEATURES */
	uint64_t features; /* acknowledged */
	uint64_t protocol; /* acknowledged */
};

/* Connects to a listening device, retrying for fe->timeout_ms while nobody listens. */
int frontend_connect(struct frontend *fe, const char *path);
/* The other way round: a listening socket (or -errno), and the next connection on it. */
int frontend_listen(const char *path);
int frontend_accept(struct frontend *fe, int listen_fd);
/* Uses a connected socket, for example one end of a socketpair(). */
void frontend_adopt(struct frontend *fe, int fd);
void frontend_close(struct frontend *fe);

/* Any bytes with any descriptors. */
int frontend_send_raw(struct frontend *fe, const void *data, size_t len, const int *fds,
		      unsigned int nfds);
/* Header and payload; flags are sent as given (VU_FLAG_VERSION is not added). */
int frontend_send(struct frontend *fe, uint32_t request, uint32_t flags, const void *payload,
		  uint32_t size, const int *fds, unsigned int nfds);
/* The next message from the device. -ECONNRESET: it hung up. */
int frontend_recv(struct frontend *fe, struct vu_msg *out);
/* True once the device has closed the connection; waits for fe->timeout_ms at most. */
bool frontend_closed_by_peer(struct frontend *fe);

/*
 * Sends a message and, with reply_ack, waits for its answer: 0, or -EREMOTEIO when the device
 * refused.
 */
int frontend_set(struct frontend *fe, uint32_t request, const void *payload, uint32_t size,
		 const int *fds, unsigned int nfds);
int frontend_set_u64(struct frontend *fe, uint32_t request, uint64_t value);
int frontend_get_u64(struct frontend *fe, uint32_t request, uint64_t *out);
int frontend_set_ring(struct frontend *fe, uint32_t request, uint32_t ring, uint32_t num);
/* KICK, CALL, ERR; fd -1 sends VU_NO_FD. The descriptor stays the caller's. */
int frontend_set_ring_fd(struct frontend *fe, uint32_t request, uint32_t ring, int fd);
int frontend_set_mem(struct frontend *fe, const struct guest_ram *ram);
int frontend_set_addr(struct frontend *fe, uint32_t ring, const struct guest_ring *r);
/* Stops the ring; *base = next index of the available ring. */
int frontend_get_base(struct frontend *fe, uint32_t ring, uint32_t *base);

/* Owner, features, protocol features: the intersection of wanted and offered. */
int frontend_negotiate(struct frontend *fe, uint64_t features, uint64_t protocol);
/* Size, base, addresses, call, err and kick of one ring, in QEMU's order. Not the enable. */
int frontend_start_ring(struct frontend *fe, uint32_t ring, const struct guest_ring *r,
			uint32_t base);
/* Returns when the device has dealt with everything sent before (a question and its answer). */
int frontend_sync(struct frontend *fe);

/* ---- a guest with a network device ---- */

#define GUEST_PAIRS_MAX 64u

#define GUEST_FEATURES                                                                             \
	(FEATURE(VIRTIO_F_VERSION_1) | FEATURE(VIRTIO_NET_F_MRG_RXBUF) |                           \
	 FEATURE(VIRTIO_F_INDIRECT_DESC) | FEATURE(VHOST_USER_F_PROTOCOL_FEATURES))
#define GUEST_PROTOCOL (FEATURE(VU_PROTOCOL_MQ) | FEATURE(VU_PROTOCOL_REPLY_ACK))

struct guest_config {
	uint64_t features;   /* wanted; what is used is the intersection with the device's */
	uint64_t protocol;   /* vhost-user protocol features wanted */
	unsigned int npairs; /* 1..GUEST_PAIRS_MAX */
	uint32_t ring_size;
	uint32_t rx_buffer; /* bytes of a receive buffer, header included */
	uint32_t tx_buffer; /* bytes of a transmit buffer, header included */
	uint16_t base;      /* first index of all rings */
	bool two_regions;   /* receive buffers in a region of their own, above 4 GiB */
	bool huge;          /* 2 MiB pages */
	bool interrupts;    /* wanted from the start; else polled */
};

/* 256 entries, one pair, 2 KiB buffers, polled, GUEST_FEATURES. */
struct guest_config guest_config_default(void);

struct guest_pair {
	struct guest_ring rx;
	struct guest_ring tx;
	uint64_t rx_base; /* guest-physical address of receive buffer 0 */
	uint64_t tx_base;
	uint64_t tx_table; /* of indirect table 0, GUEST_TABLE bytes each */
};

#define GUEST_TX_SEGS_MAX 64u
#define GUEST_TABLE       (GUEST_TX_SEGS_MAX * 16u)

struct guest {
	struct guest_config config;
	struct guest_ram ram;
	struct frontend fe;
	uint64_t features; /* in force */
	uint32_t hdr_len;
	uint32_t rx_stride; /* bytes between buffers: an odd number of cache lines */
	uint32_t tx_stride;
	struct guest_pair pair[GUEST_PAIRS_MAX];
};

/* Memory, rings and buffers, no device yet; features in force are those of the config. */
int guest_create(struct guest *g, const struct guest_config *config);
void guest_destroy(struct guest *g);

/* Connects, negotiates and starts all rings, with the receive buffers posted. */
int guest_attach(struct guest *g, const char *path);
/* The same on a connection that g->fe already has. */
int guest_start(struct guest *g);
/* Stops all rings (GET_VRING_BASE); their bases must be what was made available minus what was
 * not taken, else -EPROTO. */
int guest_stop(struct guest *g);

enum guest_tx_how {
	GUEST_TX_SINGLE,   /* header and frame in one descriptor */
	GUEST_TX_SPLIT,    /* header | frame */
	GUEST_TX_INDIRECT, /* header | frame in an indirect table */
};

/* Adds a frame; -ENOSPC when the ring is full even after taking used entries, -EMSGSIZE, ... */
int guest_tx(struct guest *g, unsigned int pair, const void *frame, uint32_t len,
	     enum guest_tx_how how);
/* Header and frame cut into n pieces of the given lengths (their sum is header + len). */
int guest_tx_cut(struct guest *g, unsigned int pair, const void *frame, uint32_t len,
		 const uint32_t cut[], unsigned int n, bool indirect);
/* Publishes and kicks. */
void guest_tx_flush(struct guest *g, unsigned int pair);
/* Frees what the device has sent. 0 or -EPROTO (also for a used length other than 0). */
int guest_tx_reap(struct guest *g, unsigned int pair);

/* Posts every free receive buffer. */
void guest_rx_fill(struct guest *g, unsigned int pair);
/*
 * Takes one frame into buf (size bytes) and posts its buffers again. Length of the frame, 0 when
 * there is none, -EPROTO for a wrong header, num_buffers or used length, -EMSGSIZE.
 */
int guest_rx(struct guest *g, unsigned int pair, void *buf, uint32_t size);

#endif
