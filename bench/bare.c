/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A bare AF_XDP transmit loop. All frames of its umem are made once and belong to the ring or to
 * the kernel; the completion ring says which may be sent again. The completion ring has as many
 * entries as there are frames, so that it cannot overflow. In copy mode sendto() does the work of
 * the kernel in this thread, for a limited number of frames per call (raised where the kernel can).
 */
#include "bench/bare.h"

#include <errno.h>
#include <linux/if_xdp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <xdp/xsk.h>

#include "base/compiler.h"

#ifndef XDP_MAX_TX_SKB_BUDGET
#define XDP_MAX_TX_SKB_BUDGET 9
#endif

#define FRAMES     2048u
#define FRAME_SIZE 2048u
#define BATCH      64u
#define SNDBUF     (4 * 1024 * 1024)
#define TEST_TYPE  0x88b5u

struct bare {
	uint8_t *area;
	struct xsk_umem *umem;
	struct xsk_socket *socket;
	struct xsk_ring_prod fill; /* never used: we do not receive */
	struct xsk_ring_cons done;
	struct xsk_ring_prod tx;
	unsigned int size;
	unsigned int nfree;
	uint64_t free[FRAMES];
};

static void make_frames(struct bare *b, const struct mac *dst, const struct mac *src)
{
	for (unsigned int i = 0; i < FRAMES; i++) {
		uint8_t *frame = b->area + (size_t)i * FRAME_SIZE;

		memcpy(frame, dst->octet, MAC_LEN);
		memcpy(frame + MAC_LEN, src->octet, MAC_LEN);
		frame[12] = TEST_TYPE >> 8;
		frame[13] = TEST_TYPE & 0xff;
		b->free[i] = (uint64_t)i * FRAME_SIZE;
	}
	b->nfree = FRAMES;
}

static int open_socket(struct bare *b, const char *device)
{
	const struct xsk_umem_config umem = {
	    .fill_size = FRAMES, .comp_size = FRAMES, .frame_size = FRAME_SIZE};
	const struct xsk_socket_config config = {
	    .tx_size = FRAMES,
	    .libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD,
	    .bind_flags = XDP_COPY,
	};
	const int sndbuf = SNDBUF, budget = FRAMES;
	int err;

	err = xsk_umem__create(&b->umem, b->area, (uint64_t)FRAMES * FRAME_SIZE, &b->fill, &b->done,
			       &umem);
	if (!err)
		err = xsk_socket__create(&b->socket, device, 0, b->umem, NULL, &b->tx, &config);
	if (err)
		return err;
	/* both are only faster: a kernel that refuses still sends */
	setsockopt(xsk_socket__fd(b->socket), SOL_SOCKET, SO_SNDBUFFORCE, &sndbuf, sizeof(sndbuf));
	setsockopt(xsk_socket__fd(b->socket), SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &budget,
		   sizeof(budget));
	return 0;
}

int bare_create(struct bare **out, const char *device, const struct mac *dst, const struct mac *src,
		unsigned int size)
{
	struct bare *b = calloc(1, sizeof(*b));
	int err;

	if (!b)
		return -ENOMEM;
	b->size = size;
	b->area = mmap(NULL, (size_t)FRAMES * FRAME_SIZE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (b->area == MAP_FAILED) {
		free(b);
		return -ENOMEM;
	}
	make_frames(b, dst, src);
	err = open_socket(b, device);
	if (err) {
		bare_destroy(b);
		return err;
	}
	*out = b;
	return 0;
}

void bare_destroy(struct bare *b)
{
	if (!b)
		return;
	if (b->socket)
		xsk_socket__delete(b->socket);
	if (b->umem)
		xsk_umem__delete(b->umem);
	munmap(b->area, (size_t)FRAMES * FRAME_SIZE);
	free(b);
}

static void offer(struct bare *b)
{
	const unsigned int n = MIN(BATCH, b->nfree);
	uint32_t at = 0;

	if (n == 0 || xsk_ring_prod__reserve(&b->tx, n, &at) != n)
		return;
	for (unsigned int i = 0; i < n; i++) {
		struct xdp_desc *d = xsk_ring_prod__tx_desc(&b->tx, at + i);

		d->addr = b->free[--b->nfree];
		d->len = b->size;
	}
	xsk_ring_prod__submit(&b->tx, n);
}

static unsigned int take_back(struct bare *b)
{
	uint32_t at = 0;
	const unsigned int n = xsk_ring_cons__peek(&b->done, FRAMES, &at);

	for (unsigned int i = 0; i < n; i++)
		b->free[b->nfree++] = *xsk_ring_cons__comp_addr(&b->done, at + i);
	if (n)
		xsk_ring_cons__release(&b->done, n);
	return n;
}

unsigned int bare_send(struct bare *b)
{
	offer(b);
	/* errors are of the moment (EAGAIN, ENOBUFS): what was not sent is sent by a later call */
	sendto(xsk_socket__fd(b->socket), NULL, 0, MSG_DONTWAIT, NULL, 0);
	return take_back(b);
}
