/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/*
 * The XDP program of an AF_XDP port. It runs in the kernel for each frame that the device
 * receives, before the network stack sees it.
 *
 * A frame on a queue that has a socket goes to that socket. Everything else goes to the stack:
 * queues that the port does not serve, and all of them when the sockets are gone while the
 * program is still there (the kernel takes a closed socket out of the map by itself).
 *
 * A frame that does not fit a UMEM chunk (jumbo, or a large-send frame of a veth peer) is
 * dropped here, because here it can be counted under its own name.
 *
 * "xdp.frags": the program only looks at lengths, so frames in several pieces are fine. Without
 * it the kernel refuses native mode for devices with a large MTU.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "xdp_redirect.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Set by the loader before loading. */
const volatile __u32 max_frame = 0;

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, XDP_REDIRECT_QUEUES);
	__type(key, __u32);
	__type(value, __u32);
} xsks SEC(".maps");

/* One value per CPU, so that a plain increment is enough. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, XDP_REDIRECT_COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

static __always_inline void count(__u32 which)
{
	__u64 *value = bpf_map_lookup_elem(&counters, &which);

	if (value)
		*value += 1;
}

SEC("xdp.frags")
int xdp_redirect(struct xdp_md *ctx)
{
	if (bpf_redirect_map(&xsks, ctx->rx_queue_index, XDP_PASS) != XDP_REDIRECT) {
		count(XDP_REDIRECT_PASSED);
		return XDP_PASS;
	}
	if (bpf_xdp_get_buff_len(ctx) > max_frame) {
		count(XDP_REDIRECT_OVERSIZE);
		return XDP_DROP;
	}
	return XDP_REDIRECT;
}
