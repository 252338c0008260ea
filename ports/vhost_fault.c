/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Broken rings of a vhost-user port. Control thread, about ten times a second.
 *
 * A broken ring (vq->fault, a hole in guest memory) is stopped and forgets its kick. A new kick,
 * after whatever set-up, heals it.
 *
 * The call descriptor is written by workers, who must not sleep in it: only eventfds are accepted,
 * and made non-blocking. That flag belongs to the open file, which the front-end shares; one that
 * clears it again can stop a worker until the next check, which empties the counter, breaks
 * the ring and does so once per set-up.
 *
 * What is found is told once: in the log (the caller's), by the ring's error eventfd, and by
 * port_info for as long as the ring stays broken.
 */
#include <stdio.h>

#include "base/atomic.h"
#include "ports/event_fd.h"
#include "ports/vhost_internal.h"

/* What is wrong with a live ring, or NULL. */
static const char *ring_fault(const struct vhost_port *v, const struct vhost_ring *r)
{
	/* Relaxed: only a number; the ring is looked at after the hand-off. */
	const enum vq_fault fault = load_relaxed(&r->vq.fault);

	if (fault != VQ_FAULT_NONE)
		return vq_fault_text(fault);
	if (guest_mem_has_hole(v->mem))
		return "the front-end cut a piece off the file behind guest memory";
	if (r->call_fd >= 0 && event_fd_is_blocking(r->call_fd)) {
		event_fd_unblock(r->call_fd);
		return "the front-end made the call descriptor blocking";
	}
	return NULL;
}

const char *vhost_check_faults(struct vhost_port *v)
{
	const char *found = NULL;

	for (unsigned int i = 0; i < vhost_nrings(v); i++) {
		struct vhost_ring *r = &v->ring[i];
		const char *fault = r->live ? ring_fault(v, r) : NULL;

		if (!fault)
			continue;
		vhost_ring_halt(v, r);
		r->trouble = fault;
		event_fd_signal(r->err_fd);
		if (!found)
			snprintf(v->found, sizeof(v->found), "ring %u broke: %s", i, fault);
		found = v->found;
	}
	return found;
}
