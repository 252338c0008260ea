/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What vhost-user requests mean (QEMU's docs/interop/vhost-user.rst), one handler per row of
 * VU_REQUESTS.
 *
 * A handler gets a message that kept the rules of its row. It returns 0 or a negative errno with
 * *why set; handlers of requests that have their own answer fill it in. Ring numbers are compared
 * in their full 32 bits, here and again in the port.
 *
 * A refusal changes nothing in the port and is told with a non-zero acknowledgement if the
 * front-end asked for one and REPLY_ACK was negotiated. Otherwise there is no way to tell, the two
 * sides would disagree from then on, and the connection is closed; reconnecting heals it. The same
 * holds for requests with their own answer, whose formats have no room for an error.
 *
 * Deliberately mild, because front-ends differ: SET_OWNER may come any number of times; ENABLE may
 * come before anything else; RESET_OWNER (deprecated, without agreed meaning) and RESET_DEVICE both
 * stop and forget all rings and keep memory and descriptors for signals.
 *
 * Control thread; runs to completion, the longest part being the hand-off with the workers. Owns
 * nothing.
 */
#include "control/vhost_session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

#define HANDLER_ARGS                                                                               \
	struct vhost_session *s, const struct vu_msg *m, struct vu_fds *fds,                       \
	    struct vu_msg *answer, const char **why

typedef int handler_fn(HANDLER_ARGS);

static int refuse(int err, const char **why, const char *text)
{
	*why = text;
	return err;
}

static int check_ring(const struct vhost_session *s, uint32_t ring, const char **why)
{
	return ring < vhost_nrings(s->port) ? 0 : refuse(-EINVAL, why, "no such ring");
}

/* ---- features ---- */

/* Appends the names of all set bits, or their numbers. */
static void bits_format(char *out, size_t size, uint64_t bits)
{
	size_t used = strlen(out);

	for (unsigned int bit = 0; bit < 64 && used < size; bit++) {
		const char *name = vhost_feature_name(bit);

		if (!(bits >> bit & 1))
			continue;
		if (name)
			used += (size_t)snprintf(out + used, size - used, " %s", name);
		else
			used += (size_t)snprintf(out + used, size - used, " bit %u", bit);
	}
}

static int get_features(HANDLER_ARGS)
{
	(void)s, (void)fds, (void)why;
	vu_answer_u64(answer, m->header.request, VHOST_FEATURES);
	return 0;
}

static int set_features(HANDLER_ARGS)
{
	const uint64_t features = m->payload.u64;
	const int err = vhost_set_features(s->port, features);

	(void)fds, (void)answer;
	if (err == -EBUSY)
		return refuse(err, why, "features cannot change while rings are started");
	if (err) {
		snprintf(s->why, sizeof(s->why), "not offered:");
		bits_format(s->why, sizeof(s->why), features & ~VHOST_FEATURES);
		*why = s->why;
	}
	return err;
}

static int get_protocol_features(HANDLER_ARGS)
{
	(void)s, (void)fds, (void)why;
	vu_answer_u64(answer, m->header.request, VU_PROTOCOL_FEATURES);
	return 0;
}

static int set_protocol_features(HANDLER_ARGS)
{
	const uint64_t unknown = m->payload.u64 & ~VU_PROTOCOL_FEATURES;

	(void)fds, (void)answer;
	if (unknown) {
		snprintf(s->why, sizeof(s->why), "protocol features not offered: 0x%llx",
			 (unsigned long long)unknown);
		return refuse(-EINVAL, why, s->why);
	}
	s->protocol_features = m->payload.u64;
	return 0;
}

static int get_queue_num(HANDLER_ARGS)
{
	(void)fds, (void)why;
	vu_answer_u64(answer, m->header.request, vhost_nrings(s->port) / 2);
	return 0;
}

/* ---- owner, reset, memory ---- */

static int set_owner(HANDLER_ARGS)
{
	(void)s, (void)m, (void)fds, (void)answer, (void)why;
	return 0;
}

static int reset_owner(HANDLER_ARGS)
{
	(void)m, (void)fds, (void)answer, (void)why;
	vhost_stop_all(s->port);
	return 0;
}

static int reset_device(HANDLER_ARGS)
{
	return reset_owner(s, m, fds, answer, why);
}

static int set_mem_table(HANDLER_ARGS)
{
	struct guest_mem_slot slot[VU_REGIONS_MAX];
	const int n = vu_parse_mem_table(m, fds, slot, why);

	(void)answer;
	return n < 0 ? n : vhost_set_mem(s->port, slot, (unsigned int)n, why);
}

/* ---- rings ---- */

static int set_vring_num(HANDLER_ARGS)
{
	const struct vu_ring_state state = m->payload.state;
	int err = check_ring(s, state.ring, why);

	(void)fds, (void)answer;
	if (err)
		return err;
	err = vhost_ring_set_size(s->port, state.ring, state.num);
	if (err == -EBUSY)
		return refuse(err, why, "the ring is started; its size cannot change");
	return err ? refuse(err, why, "a ring size must be a power of two, at most 32768") : 0;
}

static int set_vring_addr(HANDLER_ARGS)
{
	const struct vu_ring_addr a = m->payload.addr;
	const struct vhost_ring_addr addr = {.desc = a.desc, .avail = a.avail, .used = a.used};
	int err = check_ring(s, a.ring, why);

	(void)fds, (void)answer;
	if (err)
		return err;
	if (a.flags)
		return refuse(-EINVAL, why, "flags ask for a dirty log, which was not offered");
	err = vhost_ring_set_addr(s->port, a.ring, &addr);
	if (err == -EFAULT)
		return refuse(err, why, "the ring is not wholly inside one memory region");
	return err ? refuse(err, why, "a part of the ring is not aligned") : 0;
}

static int set_vring_base(HANDLER_ARGS)
{
	const struct vu_ring_state state = m->payload.state;
	int err = check_ring(s, state.ring, why);

	(void)fds, (void)answer;
	if (err)
		return err;
	err = vhost_ring_set_base(s->port, state.ring, state.num);
	if (err == -EBUSY)
		return refuse(err, why, "the ring is started; its index cannot change");
	return err ? refuse(err, why, "a ring index has 16 bits") : 0;
}

static int get_vring_base(HANDLER_ARGS)
{
	const uint32_t ring = m->payload.state.ring;
	struct vu_ring_state state = {.ring = ring};
	int err = check_ring(s, ring, why);

	(void)fds;
	if (!err)
		err = vhost_ring_stop(s->port, ring, &state.num);
	if (err)
		return err;
	vu_answer(answer, m->header.request, sizeof(state));
	answer->payload.state = state;
	return 0;
}

static int set_vring_enable(HANDLER_ARGS)
{
	const struct vu_ring_state state = m->payload.state;
	int err = check_ring(s, state.ring, why);

	(void)fds, (void)answer;
	if (err)
		return err;
	if (state.num > 1)
		return refuse(-EINVAL, why, "the value must be 0 or 1");
	return vhost_ring_enable(s->port, state.ring, state.num);
}

static int set_ring_fd(struct vhost_session *s, const struct vu_msg *m, struct vu_fds *fds,
		       const char **why, int (*set)(struct vhost_port *v, uint32_t ring, int fd))
{
	uint32_t ring;
	int fd;
	int err = vu_parse_ring_fd(m, fds, vhost_nrings(s->port), &ring, &fd, why);

	if (err)
		return err;
	err = set(s->port, ring, fd);
	if (err == -EBADF)
		return refuse(err, why, "the descriptor must be an eventfd");
	return err ? refuse(err, why, "the ring is not wholly inside one memory region") : 0;
}

static int set_vring_kick(HANDLER_ARGS)
{
	(void)answer;
	return set_ring_fd(s, m, fds, why, vhost_ring_set_kick);
}

static int set_vring_call(HANDLER_ARGS)
{
	(void)answer;
	return set_ring_fd(s, m, fds, why, vhost_ring_set_call);
}

static int set_vring_err(HANDLER_ARGS)
{
	(void)answer;
	return set_ring_fd(s, m, fds, why, vhost_ring_set_err);
}

/* ---- dispatch ---- */

static handler_fn *const handlers[VU_REQUEST_END] = {
#define X(number, name, handler, ...) [number] = handler,
    VU_REQUESTS(X)
#undef X
};

void vhost_session_init(struct vhost_session *s, struct vhost_port *port)
{
	*s = (struct vhost_session){.port = port};
}

/* Makes s->why a whole sentence; `why` may lie in s->why itself. */
static void word_refusal(struct vhost_session *s, const struct vu_msg *m, const char *why)
{
	char text[sizeof(s->why)];

	snprintf(text, sizeof(text), "%s (request %u, %u bytes): %s",
		 vu_request_name(m->header.request), m->header.request, m->header.size, why);
	memcpy(s->why, text, sizeof(text));
}

enum session_result vhost_session_handle(struct vhost_session *s, const struct vu_msg *m,
					 struct vu_fds *fds, struct vu_msg *answer)
{
	const uint32_t request = m->header.request;
	const char *why = "refused";
	int err = vu_check(&m->header, fds->count, s->protocol_features, &why);
	bool tell;

	if (!err)
		err = handlers[request](s, m, fds, answer, &why);
	if (!err && vu_has_answer(request))
		return SESSION_ANSWER;
	tell = (m->header.flags & VU_FLAG_NEED_REPLY) && !vu_has_answer(request) &&
	       (s->protocol_features >> VU_PROTOCOL_F_REPLY_ACK & 1);
	if (err) {
		word_refusal(s, m, why);
		if (!tell)
			return SESSION_REFUSED;
		log_limited(LOG_LEVEL_WARN, "vhost-user", "port %s: refused %s",
			    vhost_to_port(s->port)->name, s->why);
	}
	if (!tell)
		return SESSION_DONE;
	vu_answer_u64(answer, request, err ? 1 : 0);
	return SESSION_ANSWER;
}
