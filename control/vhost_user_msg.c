/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vhost-user messages, as QEMU's docs/interop/vhost-user.rst describes them.
 *
 * Pure functions without state: everything they look at is a private copy of what the front-end
 * sent, so that checking and using see the same bytes. Nothing is allocated; no descriptor is
 * closed here, vu_fds stays the caller's.
 *
 * The rules of each request are one row of VU_REQUESTS. A request that is not in the table is
 * refused, whether the specification knows it or not: there is no path that depends on a number
 * being in range.
 *
 * Two deliberate choices where front-ends differ:
 *   - bit 8 of a ring descriptor message ("no descriptor") together with a descriptor: the bit
 *     wins, the descriptor is closed unused; other back-ends do the same.
 *   - a memory table's payload must have exactly the size of its regions; a longer one would
 *     leave bytes that nobody checked.
 */
#include "control/vhost_user_msg.h"

#include <errno.h>
#include <string.h>

#include "base/compiler.h"

enum vu_answer_kind { VU_ANSWER_ACK, VU_ANSWER_DATA };

struct vu_rule {
	bool served;
	uint8_t fds_min;
	uint8_t fds_max;
	int8_t needs; /* protocol feature bit, or VU_ANY */
	uint16_t size_min;
	uint16_t size_max;
	enum vu_answer_kind answer;
};

static const struct vu_rule rules[] = {
#define X(number, name, handler, size_min_, size_max_, fds_min_, fds_max_, answer_, needs_)        \
	[number] = {.served = true,                                                                \
		    .size_min = size_min_,                                                         \
		    .size_max = size_max_,                                                         \
		    .fds_min = fds_min_,                                                           \
		    .fds_max = fds_max_,                                                           \
		    .answer = VU_ANSWER_##answer_,                                                 \
		    .needs = needs_},
    VU_REQUESTS(X)
#undef X
};

static const char *const names[] = {
#define X(number, name, ...) [number] = #name,
    VU_REQUESTS(X) VU_REQUESTS_NOT_OFFERED(X)
#undef X
};

static const struct vu_rule *vu_rule(uint32_t request)
{
	return request < ARRAY_LEN(rules) && rules[request].served ? &rules[request] : NULL;
}

const char *vu_request_name(uint32_t request)
{
	return request < ARRAY_LEN(names) && names[request] ? names[request] : "unknown request";
}

bool vu_has_answer(uint32_t request)
{
	const struct vu_rule *rule = vu_rule(request);

	return rule && rule->answer == VU_ANSWER_DATA;
}

int vu_header_check(const struct vu_header *h, const char **why)
{
	if ((h->flags & VU_VERSION_MASK) != VU_VERSION) {
		*why = "header has another version than 1";
		return -EPROTO;
	}
	if (h->size > VU_PAYLOAD_MAX) {
		*why = "payload is larger than any request has";
		return -EMSGSIZE;
	}
	return 0;
}

int vu_check(const struct vu_header *h, unsigned int nfds, uint64_t protocol_features,
	     const char **why)
{
	const struct vu_rule *rule = vu_rule(h->request);

	if (h->flags & VU_FLAG_REPLY) {
		*why = "a reply came where a request was due";
		return -EPROTO;
	}
	if (!rule) {
		*why = "not offered by this device";
		return -EOPNOTSUPP;
	}
	if (rule->needs != VU_ANY && !(protocol_features >> rule->needs & 1)) {
		*why = "its protocol feature was not negotiated";
		return -EOPNOTSUPP;
	}
	if (h->size < rule->size_min || h->size > rule->size_max) {
		*why = "wrong payload size";
		return -EINVAL;
	}
	if (nfds < rule->fds_min || nfds > rule->fds_max) {
		*why = "wrong number of file descriptors";
		return -EINVAL;
	}
	return 0;
}

int vu_parse_mem_table(const struct vu_msg *m, const struct vu_fds *fds,
		       struct guest_mem_slot slot[VU_REGIONS_MAX], const char **why)
{
	const uint32_t n = m->payload.mem.nregions;

	if (n == 0 || n > VU_REGIONS_MAX) {
		*why = "the memory table must have 1 to 8 regions";
		return -EINVAL;
	}
	if (m->payload.mem.padding != 0) {
		*why = "the memory table's padding is not zero";
		return -EINVAL;
	}
	if (m->header.size != 8 + n * sizeof(struct vu_region)) {
		*why = "payload size does not fit the number of memory regions";
		return -EINVAL;
	}
	if (fds->count < n) {
		*why = "a memory region came without file descriptor; guest memory must be "
		       "shared (QEMU: memory-backend-memfd,share=on)";
		return -EBADF;
	}
	if (fds->count > n) {
		*why = "more file descriptors than memory regions";
		return -EINVAL;
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct vu_region r = m->payload.mem.region[i];

		slot[i] = (struct guest_mem_slot){.gpa = r.gpa,
						  .uva = r.uva,
						  .size = r.size,
						  .offset = r.offset,
						  .fd = fds->fd[i]};
	}
	return (int)n;
}

int vu_parse_ring_fd(const struct vu_msg *m, struct vu_fds *fds, uint32_t nrings, uint32_t *ring,
		     int *fd, const char **why)
{
	const uint64_t value = m->payload.u64;

	if (value & ~(VU_RING_MASK | VU_RING_NO_FD) || (value & VU_RING_MASK) >= nrings) {
		*why = "no such ring";
		return -EINVAL;
	}
	if (!(value & VU_RING_NO_FD) && fds->count != 1) {
		*why = "came without file descriptor";
		return -EINVAL;
	}
	*ring = (uint32_t)(value & VU_RING_MASK);
	*fd = -1;
	if (!(value & VU_RING_NO_FD)) {
		*fd = fds->fd[0];
		fds->count = 0;
	}
	return 0;
}

void vu_answer(struct vu_msg *out, uint32_t request, uint32_t size)
{
	out->header = (struct vu_header){
	    .request = request, .flags = VU_VERSION | VU_FLAG_REPLY, .size = size};
}

void vu_answer_u64(struct vu_msg *out, uint32_t request, uint64_t value)
{
	vu_answer(out, request, sizeof(value));
	out->payload.u64 = value;
}
