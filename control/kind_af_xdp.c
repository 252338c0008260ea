/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * "port add NAME af-xdp ...": from words to a port on a network device.
 *
 * The UMEM and the kicker thread are made with the first such port and stay until the daemon
 * ends: a daemon that serves only virtual machines does not pay for them, and a device that is
 * removed and added again does not register tens of megabytes each time.
 *
 * A device that is missing or refuses is a reason to refuse the port, whereas one that disappears
 * later leaves the port in place, down, until it comes back: look() is the port's own
 * af_xdp_link_changed(), called for the kernel's notifications and once a second in any case.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "control/port_kind.h"
#include "ports/netdev.h"

static bool same_device(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

static int parse(const struct command_line *line, const char *run_dir, struct port_request *out,
		 struct refusal *why)
{
	const char *mode = command_arg(line, "mode");

	(void)run_dir;
	out->xdp_mode = XDP_MODE_AUTO;
	if (mode && xdp_mode_parse(mode, &out->xdp_mode))
		return refuse(why, -EINVAL, "mode %s: unknown", mode);
	snprintf(out->where, sizeof(out->where), "%s", command_arg(line, "DEV"));
	return port_request_queues(line, 0, &out->queues, why);
}

static int make_shared(struct port_resources *res, struct refusal *why)
{
	int error = 0;

	if (!res->umem)
		error = umem_create(&res->umem, res->config.umem_chunks);
	if (error)
		return refuse(why, error,
			      "cannot make the UMEM of %u chunks: %s; see --umem-chunks",
			      res->config.umem_chunks, strerror(-error));
	if (!res->kicker && res->config.kicker_cpu != KICKER_NONE)
		error = kicker_create(&res->kicker, res->config.kicker_cpu);
	if (error)
		return refuse(why, error, "cannot start the kicker on CPU %d: %s; see --kicker-cpu",
			      res->config.kicker_cpu, strerror(-error));
	return 0;
}

/*
 * VLAN offload at the other end of a veth pair leaves the tag beside the frame, where XDP does not
 * see it. Whether that is so cannot be found out when the other end is in another namespace, nor
 * whether tags are used at all, so it is said once, and not shown as a warning forever.
 */
static void mention_vlan_tags(const struct port_request *req)
{
	struct netdev_info dev;

	if (netdev_get(req->where, &dev) == 0 && dev.veth)
		log_info("port",
			 "%s: VLAN tags from the other end of veth %s are lost unless set there: "
			 "ethtool -K DEVICE txvlan off",
			 req->name, req->where);
}

static int create(struct port_resources *res, const struct port_request *req, struct port **out,
		  struct refusal *why)
{
	struct af_xdp_config config = {
	    .name = req->name,
	    .device = req->where,
	    .nqueues = req->queues,
	    .mode = req->xdp_mode,
	};
	int error = make_shared(res, why);

	if (error)
		return error;
	config.umem = res->umem;
	config.kicker = res->kicker;
	why->text[0] = '\0';
	error = af_xdp_port_create(out, &config, why->text, sizeof(why->text));
	if (error && !why->text[0])
		refuse(why, error, "cannot attach to device %s: %s", req->where, strerror(-error));
	if (!error)
		mention_vlan_tags(req);
	return error;
}

const struct port_kind port_kind_af_xdp = {
    .word = "af-xdp",
    .place = "device",
    .parse = parse,
    .same_place = same_device,
    .create = create,
    .look = af_xdp_link_changed,
};
