/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Broken rings of a vhost-user port. Control thread, about ten times a second.
 *
 * A broken ring (vq->fault, a hole in guest memory) is stopped and forgets its kick. A new kick,
 * after whatever set-up, heals it.
 *
 * The call descriptor is written by workers, who must not sleep in it: only eventfds are accepted,
 * and made non-blocking. That flag belongs to the open file, which the front-end shares. One that
 * clears it and fills the counter stops a worker until the next look, which empties the counter. It
 * looks for either, since the flag may be back by then. Nobody does such a thing by mistake, and
 * all guests of that worker stand still meanwhile. So all rings of the port break, and none of it
 * starts again for a while: 1 s, twice as long each time, 60 s at most. A front-end thus costs a
 * worker less than two thousandths of its time in the long run. Reconnecting shortens nothing; a
 * minute without such a fault after the end makes the next refusal 1 s again. What is set up
 * meanwhile is kept, and starts when the time is over.
 *
 * Rejected: an error to the front-end that sets up too early, which most answer by ending the
 * guest; a refusal for good, which only an operator could end.
 *
 * What is found is told once in the log (by the caller) and by the rings' error eventfds, and in
 * port_info for as long as it lasts.
 */
#include <stdio.h>

#include "base/atomic.h"
#include "ports/event_fd.h"
#include "ports/vhost_internal.h"

#define REFUSE_MIN_NS UINT64_C(1000000000)
#define REFUSE_MAX_NS UINT64_C(60000000000)

/* ---- refusal ---- */

static void refuse(struct vhost_port *v, uint64_t now_ns)
{
	const bool again = v->refuse_ns && now_ns < v->refuse_until_ns + REFUSE_MAX_NS;

	v->refuse_ns = again ? MIN(2 * v->refuse_ns, REFUSE_MAX_NS) : REFUSE_MIN_NS;
	v->refuse_until_ns = now_ns + v->refuse_ns;
	v->refusing = true;
}

/* Starts what was set up meanwhile. */
static void end_refusal(struct vhost_port *v)
{
	v->refusing = false;
	for (unsigned int i = 0; i < vhost_nrings(v); i++)
		vhost_ring_try_start(v, &v->ring[i]);
	vhost_rings_update(v);
}

/* ---- faults ---- */

/* True when one of the call descriptors was blocking or full; none is now. */
static bool unblock_calls(const struct vhost_port *v)
{
	bool found = false;

	for (unsigned int i = 0; i < vhost_nrings(v); i++) {
		const struct vhost_ring *r = &v->ring[i];

		if (!r->live || r->call_fd < 0 || !event_fd_may_sleep(r->call_fd))
			continue;
		event_fd_unblock(r->call_fd);
		found = true;
	}
	return found;
}

/* What is wrong with all live rings, or NULL. */
static const char *port_fault(struct vhost_port *v, uint64_t now_ns)
{
	if (unblock_calls(v)) {
		refuse(v, now_ns);
		return "the front-end made a call descriptor blocking or full";
	}
	if (vhost_any_live(v) && guest_mem_has_hole(v->mem))
		return "the front-end cut a piece off the file behind guest memory";
	return NULL;
}

/* What is wrong with this one, or NULL. */
static const char *ring_fault(const struct vhost_ring *r)
{
	/* Relaxed: only a number; the ring is looked at after the hand-off. */
	const enum vq_fault fault = load_relaxed(&r->vq.fault);

	return fault == VQ_FAULT_NONE ? NULL : vq_fault_text(fault);
}

static void break_ring(struct vhost_port *v, struct vhost_ring *r, const char *fault)
{
	vhost_ring_halt(v, r);
	r->trouble = fault;
	event_fd_signal(r->err_fd);
}

const char *vhost_check_faults(struct vhost_port *v, uint64_t now_ns)
{
	const char *found = NULL, *common;

	if (v->refusing && now_ns >= v->refuse_until_ns)
		end_refusal(v);
	common = port_fault(v, now_ns);
	for (unsigned int i = 0; i < vhost_nrings(v); i++) {
		struct vhost_ring *r = &v->ring[i];
		const char *own = ring_fault(r);
		const char *fault = own ? own : common;

		if (!r->live || !fault)
			continue;
		break_ring(v, r, fault);
		if (!found)
			snprintf(v->found, sizeof(v->found), "ring %u broke: %s", i, fault);
		found = v->found;
	}
	return found;
}
