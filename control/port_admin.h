/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ports that the operator has added: adding, removing, looking after them. Control thread.
 */
#ifndef XVS_CONTROL_PORT_ADMIN_H
#define XVS_CONTROL_PORT_ADMIN_H

#include "control/loop.h"
#include "control/port_kind.h"
#include "control/protocol.h"
#include "switch/vswitch.h"

struct port_admin;

/* Strings in config stay the caller's and must live as long. 0 or a negative errno. */
int port_admin_create(struct port_admin **out, struct loop *loop, struct vswitch *sw,
		      const struct port_config *config);

/* Removes all ports, the last added first. NULL is fine. */
void port_admin_destroy(struct port_admin *admin);

/*
 * Carries out a "port add" line. On failure all earlier ports are as before and nothing of the
 * new one is left. 0 or a negative errno with the reason.
 */
int port_admin_add(struct port_admin *admin, const struct command_line *line,
		   struct port_request *out, struct refusal *why);

/* 0 or -ENOENT with the reason. */
int port_admin_del(struct port_admin *admin, const char *name, struct refusal *why);

/* The port of that name, or NULL with a reason that suggests what may have been meant. */
struct port *port_admin_find(const struct port_admin *admin, const char *name, struct refusal *why);

/* About ten times a second: logs ports that came up or went down since the last call. */
void port_admin_watch(struct port_admin *admin);

/* A network device has changed (NULL: perhaps several have). */
void port_admin_link_changed(struct port_admin *admin, const char *device);

/* Shared by af-xdp ports, or NULL while there is none. */
const struct kicker *port_admin_kicker(const struct port_admin *admin);

#endif
