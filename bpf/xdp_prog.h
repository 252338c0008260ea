/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loads the XDP program (xdp_redirect.bpf.c) and attaches it to one network device.
 *
 * The attachment is a bpf_link held by this process: it goes away with xdp_prog_destroy() and
 * when the process dies, however it dies. A program that somebody else attached is never
 * replaced nor detached. All functions: control thread.
 */
#ifndef XVS_BPF_XDP_PROG_H
#define XVS_BPF_XDP_PROG_H

#include <stdint.h>

#include "bpf/xdp_redirect.h"

struct xdp_prog;

enum xdp_attach { XDP_ATTACH_NATIVE, XDP_ATTACH_GENERIC };

/*
 * Loads a program of its own for one device. `max_frame`: longest frame, in bytes, that fits
 * the sockets' chunks. Returns 0 or a negative errno (-EPERM: CAP_BPF and CAP_NET_ADMIN).
 */
int xdp_prog_load(struct xdp_prog **out, uint32_t max_frame);

/* Detaches and unloads. NULL is fine. */
void xdp_prog_destroy(struct xdp_prog *p);

/*
 * Attaches to the device. -EBUSY or -EEXIST: somebody's program is there (see
 * xdp_prog_attached()); -EOPNOTSUPP, -EINVAL, -ERANGE: the driver does not take it in that mode.
 */
int xdp_prog_attach(struct xdp_prog *p, int ifindex, enum xdp_attach how);

/*
 * The device it is attached to; 0 when that device was deleted, or the attachment was taken away
 * by force.
 */
int xdp_prog_ifindex(const struct xdp_prog *p);

/* Frames of queue 0..XDP_REDIRECT_QUEUES-1 go to the XDP socket `fd` from now on. */
int xdp_prog_set_socket(struct xdp_prog *p, uint32_t queue, int fd);

/* value[XDP_REDIRECT_COUNTERS]: sums over all CPUs since loading. */
void xdp_prog_counters(const struct xdp_prog *p, uint64_t value[XDP_REDIRECT_COUNTERS]);

/*
 * The XDP program on a device, whoever attached it: its id and mode ("native", "generic",
 * "offload"; static). Returns 1 if there is one, 0 if not, or a negative errno.
 */
int xdp_prog_attached(int ifindex, uint32_t *id, const char **mode);

#endif
