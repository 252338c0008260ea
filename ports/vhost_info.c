/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What `port show` says about a vhost-user port: state, reason, features by name, ring sizes.
 *
 * A port without traffic is the commonest question that operators have, so that every state other
 * than up has a sentence that says what is missing and what to do. They are tried in the order in
 * which a guest comes up: front-end connected, memory announced, rings started, rings enabled; a
 * ring that broke comes before those that merely wait.
 *
 * Control thread; reads the port, changes nothing. Names of features are the specification's.
 */
#include <stdio.h>
#include <string.h>

#include "base/atomic.h"
#include "ports/vhost_internal.h"

#define FEATURE_NAMES(X)                                                                           \
	X(VIRTIO_NET_F_CSUM)                                                                       \
	X(VIRTIO_NET_F_GUEST_CSUM)                                                                 \
	X(VIRTIO_NET_F_MRG_RXBUF)                                                                  \
	X(VIRTIO_NET_F_STATUS)                                                                     \
	X(VIRTIO_NET_F_CTRL_VQ)                                                                    \
	X(VIRTIO_NET_F_GUEST_ANNOUNCE)                                                             \
	X(VIRTIO_NET_F_MQ)                                                                         \
	X(VHOST_F_LOG_ALL)                                                                         \
	X(VIRTIO_F_ANY_LAYOUT)                                                                     \
	X(VIRTIO_F_INDIRECT_DESC)                                                                  \
	X(VIRTIO_F_EVENT_IDX)                                                                      \
	X(VHOST_USER_F_PROTOCOL_FEATURES)                                                          \
	X(VIRTIO_F_VERSION_1)                                                                      \
	X(VIRTIO_F_RING_PACKED)                                                                    \
	X(VIRTIO_F_IN_ORDER)

static const char *const feature_names[64] = {
#define X(bit) [bit] = #bit,
    FEATURE_NAMES(X)
#undef X
};

const char *vhost_feature_name(unsigned int bit)
{
	return bit < ARRAY_LEN(feature_names) ? feature_names[bit] : NULL;
}

/* First ring in trouble, or NULL; *number is its number. */
static const struct vhost_ring *first_trouble(const struct vhost_port *v, unsigned int *number)
{
	for (unsigned int i = 0; i < vhost_nrings(v); i++) {
		if (v->ring[i].trouble) {
			*number = i;
			return &v->ring[i];
		}
	}
	return NULL;
}

static void trouble_text(const struct vhost_port *v, char *out, size_t size)
{
	unsigned int n;
	const struct vhost_ring *r = first_trouble(v, &n);

	if (r)
		snprintf(out, size, "ring %u broke: %s; restart the guest's driver", n, r->trouble);
}

/* Why no ring runs, in words, and what to do. */
static void down_reason(const struct vhost_port *v, char *out, size_t size)
{
	unsigned int n;

	if (v->reason[0])
		snprintf(out, size, "%s", v->reason);
	else if (!v->connected)
		snprintf(out, size,
			 "no front-end connected; start the guest with chardev path=%.90s",
			 v->where);
	else if (v->refusing)
		snprintf(out, size,
			 "rings refused for %u s: the front-end made a call descriptor blocking "
			 "or full, which can stop a worker",
			 (unsigned int)(v->refuse_ns / 1000000000));
	else if (first_trouble(v, &n))
		trouble_text(v, out, size);
	else if (!v->mem && v->mem_trouble)
		snprintf(out, size, "the guest's memory was refused: %s", v->mem_trouble);
	else if (!v->mem)
		snprintf(out, size, "front-end connected, waiting for its memory table");
	else if (!vhost_any_live(v))
		snprintf(out, size, "guest driver has not started the rings (no kick yet)");
	else
		snprintf(out, size, "guest driver has not enabled any ring");
}

/*
 * Memory that the front-end maps privately reads as zeros here, without an error anywhere. A driver
 * offers buffers before anything else, so a ring that never held one is worth a word.
 */
static bool looks_private(const struct vhost_ring *r)
{
	return r->to_guest && vhost_ring_running(r) && load_relaxed(&r->vq.avail->idx) == 0 &&
	       load_relaxed(&r->vq.desc[0].len) == 0;
}

static void up_warning(const struct vhost_port *v, char *out, size_t size)
{
	trouble_text(v, out, size);
	if (!out[0] && looks_private(&v->ring[0]))
		snprintf(out, size,
			 "guest offers no receive buffers; if that lasts, its memory is not shared "
			 "(share=on)");
}

static const struct vhost_port *vhost_of_const(const struct port *p)
{
	return (const void *)((const char *)p - offsetof(struct vhost_port, port));
}

void vhost_info(const struct port *p, struct port_info *out)
{
	const struct vhost_port *v = vhost_of_const(p);

	memset(out, 0, sizeof(*out));
	out->mode = v->mode;
	out->nqueues = p->nqueues;
	memcpy(out->where, v->where, sizeof(out->where));
	for (unsigned int i = 0; i < vhost_nrings(v); i++) {
		const struct vhost_ring *r = &v->ring[i];

		*(r->to_guest ? &out->tx_ring[i / 2] : &out->rx_ring[i / 2]) = r->size;
		if (vhost_ring_running(r))
			out->state = PORT_UP;
	}
	for (unsigned int bit = 0; bit < 64; bit++)
		if ((v->features & FEATURE(bit)) && feature_names[bit])
			out->feature[out->nfeatures++] = feature_names[bit];
	if (out->state == PORT_UP)
		up_warning(v, out->warning, sizeof(out->warning));
	else
		down_reason(v, out->reason, sizeof(out->reason));
}
