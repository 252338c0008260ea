/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of the switch as JSON, as xvsctl -j prints it. Field names are part of the
 * interface: add, never rename. Control thread. NULL when memory runs out.
 */
#ifndef XVS_CONTROL_SHOW_H
#define XVS_CONTROL_SHOW_H

#include <jansson.h>

#include "control/workers.h"
#include "ports/kicker.h"
#include "switch/vswitch.h"

/* A text of unknown origin; what JSON cannot hold is escaped. */
json_t *show_text(const char *text);

/* An object of one port: `port show`. */
json_t *show_port(const struct vswitch *sw, const struct port *port);

/* An object of one port: `stats`. */
json_t *show_port_stats(const struct vswitch *sw, const struct port *port);

/* Array of what `show` makes of `only`, or of all ports when that is NULL. */
json_t *show_ports(const struct vswitch *sw, const struct port *only,
		   json_t *(*show)(const struct vswitch *sw, const struct port *port));

json_t *show_fdb(struct vswitch *sw);
json_t *show_fdb_stats(struct vswitch *sw);

/* Array of workers, and the kicker unless that is NULL. */
json_t *show_workers(const struct workers *w, const struct vswitch *sw, const struct kicker *k);

#endif
