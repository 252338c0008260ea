/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vhost-user messages: formats and the rules that each request must keep. Pure functions on
 * plain data, no state, no I/O.
 *
 * Everything a front-end sends passes vu_header_check() when its header is there, vu_check() when
 * it is complete, and one of the parsers. What comes out is in range as far as a message alone can
 * tell; ring numbers are compared in their full width, also against the port's rings.
 *
 * "why" texts are static, fit into a log line behind the name of the request, and say what was
 * wrong.
 */
#ifndef XVS_CONTROL_VHOST_USER_MSG_H
#define XVS_CONTROL_VHOST_USER_MSG_H

#include <stdbool.h>
#include <stdint.h>

#include "ring/guest_mem.h"

/* Regions of a memory table, and so descriptors of one message. */
#define VU_REGIONS_MAX 8
#define VU_FDS_MAX     VU_REGIONS_MAX

/*
 * Largest payload that is read at all. More than any request offered here needs, so that those of
 * other devices can be refused without losing step.
 */
#define VU_PAYLOAD_MAX 512

/* header.flags */
#define VU_VERSION_MASK    0x3u
#define VU_VERSION         0x1u
#define VU_FLAG_REPLY      0x4u
#define VU_FLAG_NEED_REPLY 0x8u

/* payload of SET_VRING_KICK, _CALL and _ERR */
#define VU_RING_MASK  UINT64_C(0xff)
#define VU_RING_NO_FD UINT64_C(0x100)

/* Protocol features, by bit. */
#define VU_PROTOCOL_F_MQ           0
#define VU_PROTOCOL_F_REPLY_ACK    3
#define VU_PROTOCOL_F_RESET_DEVICE 13

#define VU_PROTOCOL_FEATURES                                                                       \
	(UINT64_C(1) << VU_PROTOCOL_F_MQ | UINT64_C(1) << VU_PROTOCOL_F_REPLY_ACK |                \
	 UINT64_C(1) << VU_PROTOCOL_F_RESET_DEVICE)

/*
 * Requests served. One row: number, name, handler, payload bytes (least, most), descriptors
 * (least, most), kind of answer, protocol feature that must have been negotiated.
 *   ACK: answered only if the front-end asks for it; DATA: has its own answer.
 */
#define VU_ANY (-1)
#define VU_REQUESTS(X)                                                                             \
	X(1, GET_FEATURES, get_features, 0, 0, 0, 0, DATA, VU_ANY)                                 \
	X(2, SET_FEATURES, set_features, 8, 8, 0, 0, ACK, VU_ANY)                                  \
	X(3, SET_OWNER, set_owner, 0, 0, 0, 0, ACK, VU_ANY)                                        \
	X(4, RESET_OWNER, reset_owner, 0, 0, 0, 0, ACK, VU_ANY)                                    \
	X(5, SET_MEM_TABLE, set_mem_table, 8, 264, 0, VU_REGIONS_MAX, ACK, VU_ANY)                 \
	X(8, SET_VRING_NUM, set_vring_num, 8, 8, 0, 0, ACK, VU_ANY)                                \
	X(9, SET_VRING_ADDR, set_vring_addr, 40, 40, 0, 0, ACK, VU_ANY)                            \
	X(10, SET_VRING_BASE, set_vring_base, 8, 8, 0, 0, ACK, VU_ANY)                             \
	X(11, GET_VRING_BASE, get_vring_base, 8, 8, 0, 0, DATA, VU_ANY)                            \
	X(12, SET_VRING_KICK, set_vring_kick, 8, 8, 0, 1, ACK, VU_ANY)                             \
	X(13, SET_VRING_CALL, set_vring_call, 8, 8, 0, 1, ACK, VU_ANY)                             \
	X(14, SET_VRING_ERR, set_vring_err, 8, 8, 0, 1, ACK, VU_ANY)                               \
	X(15, GET_PROTOCOL_FEATURES, get_protocol_features, 0, 0, 0, 0, DATA, VU_ANY)              \
	X(16, SET_PROTOCOL_FEATURES, set_protocol_features, 8, 8, 0, 0, ACK, VU_ANY)               \
	X(17, GET_QUEUE_NUM, get_queue_num, 0, 0, 0, 0, DATA, VU_PROTOCOL_F_MQ)                    \
	X(18, SET_VRING_ENABLE, set_vring_enable, 8, 8, 0, 0, ACK, VU_ANY)                         \
	X(34, RESET_DEVICE, reset_device, 0, 0, 0, 0, ACK, VU_PROTOCOL_F_RESET_DEVICE)

/* Requests of the specification that this device does not offer: for the log. */
#define VU_REQUESTS_NOT_OFFERED(X)                                                                 \
	X(6, SET_LOG_BASE)                                                                         \
	X(7, SET_LOG_FD)                                                                           \
	X(19, SEND_RARP)                                                                           \
	X(20, NET_SET_MTU)                                                                         \
	X(21, SET_BACKEND_REQ_FD)                                                                  \
	X(22, IOTLB_MSG)                                                                           \
	X(23, SET_VRING_ENDIAN)                                                                    \
	X(24, GET_CONFIG)                                                                          \
	X(25, SET_CONFIG)                                                                          \
	X(26, CREATE_CRYPTO_SESSION)                                                               \
	X(27, CLOSE_CRYPTO_SESSION)                                                                \
	X(28, POSTCOPY_ADVISE)                                                                     \
	X(29, POSTCOPY_LISTEN)                                                                     \
	X(30, POSTCOPY_END)                                                                        \
	X(31, GET_INFLIGHT_FD)                                                                     \
	X(32, SET_INFLIGHT_FD)                                                                     \
	X(33, GPU_SET_SOCKET)                                                                      \
	X(35, VRING_KICK)                                                                          \
	X(36, GET_MAX_MEM_SLOTS)                                                                   \
	X(37, ADD_MEM_REG)                                                                         \
	X(38, REM_MEM_REG)                                                                         \
	X(39, SET_STATUS)                                                                          \
	X(40, GET_STATUS)

enum vu_request {
#define X(number, name, ...) VU_##name = number,
	VU_REQUESTS(X)
#undef X
	    VU_REQUEST_END /* one above the last */
};

struct vu_header {
	uint32_t request;
	uint32_t flags;
	uint32_t size; /* of the payload, in bytes */
};
_Static_assert(sizeof(struct vu_header) == 12, "vhost-user: header");

struct vu_region {
	uint64_t gpa;
	uint64_t size;
	uint64_t uva;
	uint64_t offset;
};

struct vu_mem_table {
	uint32_t nregions;
	uint32_t padding;
	struct vu_region region[VU_REGIONS_MAX];
};
_Static_assert(sizeof(struct vu_mem_table) == 264, "vhost-user: memory regions description");

struct vu_ring_state {
	uint32_t ring;
	uint32_t num;
};
_Static_assert(sizeof(struct vu_ring_state) == 8, "vhost-user: vring state description");

struct vu_ring_addr {
	uint32_t ring;
	uint32_t flags;
	uint64_t desc;
	uint64_t used;
	uint64_t avail;
	uint64_t log;
};
_Static_assert(sizeof(struct vu_ring_addr) == 40, "vhost-user: vring address description");

/* A message in memory: header, then header.size bytes of payload. */
struct vu_msg {
	struct vu_header header;
	union {
		uint64_t u64;
		struct vu_ring_state state;
		struct vu_ring_addr addr;
		struct vu_mem_table mem;
		uint8_t bytes[VU_PAYLOAD_MAX];
	} payload;
} __attribute__((packed, aligned(4)));

/* Descriptors that came with a message. */
struct vu_fds {
	unsigned int count;
	int fd[VU_FDS_MAX];
};

/* "SET_FEATURES", ...; "unknown request" for numbers that are not in the specification. */
const char *vu_request_name(uint32_t request);

/* True when a request is served and has its own answer, so that it gets no acknowledgement. */
bool vu_has_answer(uint32_t request);

/*
 * May the rest of the message be read? 0, or with *why set -EPROTO (not our version) or -EMSGSIZE
 * (larger than VU_PAYLOAD_MAX): then the stream cannot be followed any further.
 */
int vu_header_check(const struct vu_header *h, const char **why);

/*
 * Checks a complete message against its row of VU_REQUESTS. 0, or with *why set:
 *   -EPROTO      a reply instead of a request
 *   -EOPNOTSUPP  unknown, not offered, or its protocol feature was not negotiated
 *   -EINVAL      wrong payload size or number of descriptors
 */
int vu_check(const struct vu_header *h, unsigned int nfds, uint64_t protocol_features,
	     const char **why);

/*
 * SET_MEM_TABLE -> slots, descriptors borrowed from `fds`. Returns the number of regions, 1 to
 * VU_REGIONS_MAX, or -EINVAL (-EBADF: fewer descriptors than regions) with *why set.
 */
int vu_parse_mem_table(const struct vu_msg *m, const struct vu_fds *fds,
		       struct guest_mem_slot slot[VU_REGIONS_MAX], const char **why);

/*
 * SET_VRING_KICK, _CALL, _ERR: ring number and descriptor. *fd = the one received, moved out of
 * `fds`; -1 when bit 8 says that there is none. 0, or -EINVAL with *why set.
 */
int vu_parse_ring_fd(const struct vu_msg *m, struct vu_fds *fds, uint32_t nrings, uint32_t *ring,
		     int *fd, const char **why);

/* Makes *out the answer to a request: `size` bytes of payload are the caller's to fill in. */
void vu_answer(struct vu_msg *out, uint32_t request, uint32_t size);
void vu_answer_u64(struct vu_msg *out, uint32_t request, uint64_t value);

#endif
