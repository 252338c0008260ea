/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A vhost-user front-end (specification: "Vhost-user Protocol", front-end role).
 *
 * One connection, one thread. Everything is built from two calls, frontend_send_raw() and
 * frontend_recv(), so that a test can leave the right path after any step and send what it
 * likes. Typed helpers send what QEMU would send.
 *
 * With reply_ack set (and negotiated) each message without an answer of its own asks for one and
 * waits for it, so that a refusal shows at the call that caused it. Waiting is bounded by
 * timeout_ms everywhere; SIGPIPE is avoided by MSG_NOSIGNAL.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "guest/guest.h"

#define TIMEOUT_MS  2000
#define RETRY_NS    2000000
#define HEADER_SIZE 12u

_Static_assert(sizeof(struct vu_header) == HEADER_SIZE, "vhost-user: header layout");

void frontend_adopt(struct frontend *fe, int fd)
{
	memset(fe, 0, sizeof(*fe));
	fe->fd = fd;
	fe->timeout_ms = TIMEOUT_MS;
}

static int set_path(struct sockaddr_un *addr, const char *path)
{
	memset(addr, 0, sizeof(*addr));
	addr->sun_family = AF_UNIX;
	if (strlen(path) >= sizeof(addr->sun_path))
		return -ENAMETOOLONG;
	strcpy(addr->sun_path, path);
	return 0;
}

int frontend_connect(struct frontend *fe, const char *path)
{
	const uint64_t end = clock_ns() + UINT64_C(1000000) * TIMEOUT_MS;
	const struct timespec pause = {.tv_nsec = RETRY_NS};
	struct sockaddr_un addr;
	int err;

	frontend_adopt(fe, -1);
	err = set_path(&addr, path);
	if (err)
		return err;
	do {
		fe->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fe->fd < 0)
			return -errno;
		if (connect(fe->fd, (struct sockaddr *)&addr, sizeof(addr)) == 0)
			return 0;
		err = -errno;
		frontend_close(fe);
		nanosleep(&pause, NULL);
	} while (clock_ns() < end);
	return err;
}

int frontend_listen(const char *path)
{
	struct sockaddr_un addr;
	int err, fd;

	err = set_path(&addr, path);
	if (err)
		return err;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	unlink(path);
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(fd, 4) < 0) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

/* 0 when fd is readable (or hung up), -ETIMEDOUT. */
static int wait_readable(int fd, int timeout_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int n;

	do {
		n = poll(&p, 1, timeout_ms);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return n ? 0 : -ETIMEDOUT;
}

int frontend_accept(struct frontend *fe, int listen_fd)
{
	int err;

	frontend_adopt(fe, -1);
	err = wait_readable(listen_fd, fe->timeout_ms);
	if (err)
		return err;
	fe->fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
	return fe->fd < 0 ? -errno : 0;
}

void frontend_close(struct frontend *fe)
{
	if (fe->fd >= 0)
		close(fe->fd);
	fe->fd = -1;
}

int frontend_send_raw(struct frontend *fe, const void *data, size_t len, const int *fds,
		      unsigned int nfds)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int) * 253)];
		struct cmsghdr align;
	} control;
	struct iovec iov = {.iov_len = len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	memcpy(&iov.iov_base, &data, sizeof(data)); /* iovec is not const, sendmsg() only reads */
	if (nfds) {
		memset(&control, 0, sizeof(control));
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(sizeof(int) * nfds);
		memcpy(CMSG_DATA(&control.align), fds, sizeof(int) * nfds);
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
	}
	n = sendmsg(fe->fd, &msg, MSG_NOSIGNAL);
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EMSGSIZE;
}

int frontend_send(struct frontend *fe, uint32_t request, uint32_t flags, const void *payload,
		  uint32_t size, const int *fds, unsigned int nfds)
{
	const struct vu_header header = {.request = request, .flags = flags, .size = size};
	uint8_t bytes[HEADER_SIZE + VU_PAYLOAD_MAX];

	if (size > VU_PAYLOAD_MAX)
		return -EMSGSIZE;
	memcpy(bytes, &header, sizeof(header));
	if (size)
		memcpy(bytes + sizeof(header), payload, size);
	return frontend_send_raw(fe, bytes, sizeof(header) + size, fds, nfds);
}

/* Descriptors of a received message go to out->fd[]. */
static void take_fds(struct msghdr *msg, struct vu_msg *out)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		out->nfds = (unsigned int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(out->fd, CMSG_DATA(c), out->nfds * sizeof(int));
	}
}

/* Exactly len bytes, within the time-out for each piece. */
static int recv_all(struct frontend *fe, void *data, size_t len, struct vu_msg *fds_to)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int) * VU_FDS_MAX)];
		struct cmsghdr align;
	} control;
	uint8_t *at = data;

	while (len) {
		struct iovec iov = {.iov_base = at, .iov_len = len};
		struct msghdr msg = {
		    .msg_iov = &iov,
		    .msg_iovlen = 1,
		    .msg_control = &control,
		    .msg_controllen = sizeof(control),
		};
		int err = wait_readable(fe->fd, fe->timeout_ms);
		ssize_t n;

		if (err)
			return err;
		n = recvmsg(fe->fd, &msg, MSG_CMSG_CLOEXEC);
		if (n < 0)
			return -errno;
		if (n == 0)
			return -ECONNRESET;
		take_fds(&msg, fds_to);
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

int frontend_recv(struct frontend *fe, struct vu_msg *out)
{
	int err;

	out->nfds = 0;
	err = recv_all(fe, &out->header, sizeof(out->header), out);
	if (err)
		return err;
	if (out->header.size > VU_PAYLOAD_MAX)
		return -EPROTO;
	return recv_all(fe, &out->payload, out->header.size, out);
}

bool frontend_closed_by_peer(struct frontend *fe)
{
	uint8_t byte;

	while (wait_readable(fe->fd, fe->timeout_ms) == 0) {
		const ssize_t n = recv(fe->fd, &byte, 1, 0);

		if (n == 0 || (n < 0 && errno == ECONNRESET))
			return true;
		if (n < 0)
			return false;
	}
	return false;
}

/* The answer to `request`: version 1, reply bit, the size it has to have. */
static int recv_answer(struct frontend *fe, uint32_t request, uint32_t size, struct vu_msg *out)
{
	const int err = frontend_recv(fe, out);

	if (err)
		return err;
	if (out->header.request != request || out->header.size != size ||
	    (out->header.flags & 7u) != (VU_FLAG_VERSION | VU_FLAG_REPLY))
		return -EPROTO;
	return 0;
}

int frontend_set(struct frontend *fe, uint32_t request, const void *payload, uint32_t size,
		 const int *fds, unsigned int nfds)
{
	const uint32_t flags = VU_FLAG_VERSION | (fe->reply_ack ? VU_FLAG_NEED_REPLY : 0);
	struct vu_msg answer;
	int err;

	err = frontend_send(fe, request, flags, payload, size, fds, nfds);
	if (err || !fe->reply_ack)
		return err;
	err = recv_answer(fe, request, sizeof(answer.payload.u64), &answer);
	if (err)
		return err;
	return answer.payload.u64 ? -EREMOTEIO : 0;
}

int frontend_set_u64(struct frontend *fe, uint32_t request, uint64_t value)
{
	return frontend_set(fe, request, &value, sizeof(value), NULL, 0);
}

int frontend_get_u64(struct frontend *fe, uint32_t request, uint64_t *out)
{
	struct vu_msg answer;
	int err;

	err = frontend_send(fe, request, VU_FLAG_VERSION, NULL, 0, NULL, 0);
	if (!err)
		err = recv_answer(fe, request, sizeof(*out), &answer);
	if (!err)
		*out = answer.payload.u64;
	return err;
}

int frontend_set_ring(struct frontend *fe, uint32_t request, uint32_t ring, uint32_t num)
{
	const struct vu_ring_state state = {.ring = ring, .num = num};

	return frontend_set(fe, request, &state, sizeof(state), NULL, 0);
}

int frontend_set_ring_fd(struct frontend *fe, uint32_t request, uint32_t ring, int fd)
{
	const uint64_t payload = ring | (fd < 0 ? VU_NO_FD : 0);

	return frontend_set(fe, request, &payload, sizeof(payload), &fd, fd < 0 ? 0 : 1);
}

int frontend_set_mem(struct frontend *fe, const struct guest_ram *ram)
{
	struct vu_mem_table table = {.n = ram->n};
	int fds[GUEST_RAM_MAX];

	for (unsigned int i = 0; i < ram->n; i++) {
		const struct guest_ram_region *r = &ram->region[i];

		table.region[i] = (struct vu_region){
		    .gpa = r->gpa,
		    .size = r->size,
		    .uva = r->uva,
		    .offset = r->offset,
		};
		fds[i] = r->fd;
	}
	return frontend_set(fe, VU_SET_MEM_TABLE, &table,
			    (uint32_t)(8 + ram->n * sizeof(table.region[0])), fds, ram->n);
}

int frontend_set_addr(struct frontend *fe, uint32_t ring, const struct guest_ring *r)
{
	const struct vu_ring_addr addr = {
	    .ring = ring,
	    .desc = guest_ram_uva(r->ram, r->config.desc),
	    .avail = guest_ram_uva(r->ram, r->config.avail),
	    .used = guest_ram_uva(r->ram, r->config.used),
	};

	return frontend_set(fe, VU_SET_VRING_ADDR, &addr, sizeof(addr), NULL, 0);
}

int frontend_get_base(struct frontend *fe, uint32_t ring, uint32_t *base)
{
	const struct vu_ring_state state = {.ring = ring};
	struct vu_ring_state answer;
	struct vu_msg msg;
	int err;

	err = frontend_send(fe, VU_GET_VRING_BASE, VU_FLAG_VERSION, &state, sizeof(state), NULL, 0);
	if (!err)
		err = recv_answer(fe, VU_GET_VRING_BASE, sizeof(answer), &msg);
	if (err)
		return err;
	answer = msg.payload.state;
	*base = answer.num;
	return answer.ring == ring ? 0 : -EPROTO;
}

static int negotiate_protocol(struct frontend *fe, uint64_t wanted)
{
	uint64_t offered;
	int err;

	err = frontend_get_u64(fe, VU_GET_PROTOCOL_FEATURES, &offered);
	if (err)
		return err;
	fe->protocol = wanted & offered;
	err = frontend_set_u64(fe, VU_SET_PROTOCOL_FEATURES, fe->protocol);
	if (!err && fe->protocol & FEATURE(VU_PROTOCOL_REPLY_ACK))
		fe->reply_ack = true;
	return err;
}

int frontend_negotiate(struct frontend *fe, uint64_t features, uint64_t protocol)
{
	int err;

	err = frontend_get_u64(fe, VU_GET_FEATURES, &fe->offered);
	if (err)
		return err;
	fe->features = features & fe->offered;
	if (fe->features & FEATURE(VHOST_USER_F_PROTOCOL_FEATURES)) {
		err = negotiate_protocol(fe, protocol);
		if (err)
			return err;
	}
	err = frontend_set(fe, VU_SET_OWNER, NULL, 0, NULL, 0);
	if (!err)
		err = frontend_set_u64(fe, VU_SET_FEATURES, fe->features);
	return err;
}

int frontend_start_ring(struct frontend *fe, uint32_t ring, const struct guest_ring *r,
			uint32_t base)
{
	int err;

	err = frontend_set_ring(fe, VU_SET_VRING_NUM, ring, r->config.size);
	if (!err)
		err = frontend_set_ring(fe, VU_SET_VRING_BASE, ring, base);
	if (!err)
		err = frontend_set_addr(fe, ring, r);
	if (!err)
		err = frontend_set_ring_fd(fe, VU_SET_VRING_ERR, ring, r->err_fd);
	if (!err)
		err = frontend_set_ring_fd(fe, VU_SET_VRING_KICK, ring, r->kick_fd);
	if (!err)
		err = frontend_set_ring_fd(fe, VU_SET_VRING_CALL, ring, r->call_fd);
	return err;
}

int frontend_sync(struct frontend *fe)
{
	uint64_t ignored;

	return frontend_get_u64(fe, VU_GET_FEATURES, &ignored);
}
