/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loader of the XDP program.
 *
 * Called by the control thread only. Each port loads a program and maps of its own, so that
 * counters belong to a device and a port's end frees everything it had.
 *
 * Why a bpf_link and not the older netlink attachment: a link is a file descriptor, the kernel
 * detaches when the last one is closed. After kill -9 nothing is left on the device, and the
 * host has its interface back. The kernel also refuses to replace a link's program by netlink,
 * and refuses our link while another program is attached in the same mode, so that "never touch
 * a foreign program" does not depend on our checks. Replacing (XDP_FLAGS_REPLACE) is not used.
 *
 * Why not libxdp's dispatcher, which lets several programs share a device: it would put another
 * program in front of every frame and leaves it pinned after a crash. One program per device
 * is the price.
 *
 * A device that is deleted takes its attachment along; the link then is an empty shell and
 * destroying it is harmless.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>

#include "base/log.h"
#include "bpf/xdp_prog.h"
#include "xdp_redirect.skel.h"

struct xdp_prog {
	struct xdp_redirect_bpf *skel;
	int link; /* bpf_link descriptor, or -1 */
	int ncpus;
};

/* libbpf would write to stderr; what it says is of use only when looking for a fault. */
static int libbpf_message(enum libbpf_print_level level, const char *fmt, va_list args)
{
	char text[256];

	if (level == LIBBPF_DEBUG || log_get_level() < LOG_LEVEL_DEBUG)
		return 0;
	vsnprintf(text, sizeof(text), fmt, args);
	text[strcspn(text, "\n")] = '\0';
	log_debug("bpf", "%s", text);
	return 0;
}

int xdp_prog_load(struct xdp_prog **out, uint32_t max_frame)
{
	struct xdp_prog *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	libbpf_set_print(libbpf_message);
	p->link = -1;
	p->ncpus = libbpf_num_possible_cpus();
	p->skel = xdp_redirect_bpf__open();
	if (!p->skel) {
		err = -errno;
		goto fail;
	}
	p->skel->rodata->max_frame = max_frame;
	err = xdp_redirect_bpf__load(p->skel);
	if (err)
		goto fail;
	*out = p;
	return 0;
fail:
	xdp_prog_destroy(p);
	return err;
}

void xdp_prog_destroy(struct xdp_prog *p)
{
	if (!p)
		return;
	if (p->link >= 0)
		close(p->link);
	xdp_redirect_bpf__destroy(p->skel);
	free(p);
}

int xdp_prog_attach(struct xdp_prog *p, int ifindex, enum xdp_attach how)
{
	DECLARE_LIBBPF_OPTS(bpf_link_create_opts, opts,
			    .flags =
				how == XDP_ATTACH_NATIVE ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE);
	int link =
	    bpf_link_create(bpf_program__fd(p->skel->progs.xdp_redirect), ifindex, BPF_XDP, &opts);

	if (link < 0)
		return link;
	p->link = link;
	return 0;
}

int xdp_prog_ifindex(const struct xdp_prog *p)
{
	struct bpf_link_info info = {0};
	uint32_t len = sizeof(info);

	return bpf_obj_get_info_by_fd(p->link, &info, &len) ? 0 : (int)info.xdp.ifindex;
}

int xdp_prog_set_socket(struct xdp_prog *p, uint32_t queue, int fd)
{
	return bpf_map_update_elem(bpf_map__fd(p->skel->maps.xsks), &queue, &fd, BPF_ANY);
}

void xdp_prog_counters(const struct xdp_prog *p, uint64_t value[XDP_REDIRECT_COUNTERS])
{
	int map = bpf_map__fd(p->skel->maps.counters);
	uint64_t *per_cpu = p->ncpus > 0 ? calloc((size_t)p->ncpus, sizeof(*per_cpu)) : NULL;

	for (uint32_t i = 0; i < XDP_REDIRECT_COUNTERS; i++) {
		value[i] = 0;
		if (!per_cpu || bpf_map_lookup_elem(map, &i, per_cpu))
			continue;
		for (int cpu = 0; cpu < p->ncpus; cpu++)
			value[i] += per_cpu[cpu];
	}
	free(per_cpu);
}

int xdp_prog_attached(int ifindex, uint32_t *id, const char **mode)
{
	DECLARE_LIBBPF_OPTS(bpf_xdp_query_opts, opts);
	int err = bpf_xdp_query(ifindex, 0, &opts);

	if (err)
		return err;
	if (opts.hw_prog_id) {
		*id = opts.hw_prog_id;
		*mode = "offload";
	} else if (opts.drv_prog_id) {
		*id = opts.drv_prog_id;
		*mode = "native";
	} else if (opts.skb_prog_id) {
		*id = opts.skb_prog_id;
		*mode = "generic";
	} else {
		return 0;
	}
	return 1;
}
