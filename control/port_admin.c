/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The list of ports from the operator's side. Runs on the control thread.
 *
 * Owns one struct admin_port per port (what was asked for, its kind, the kind's handle) and the
 * resources that kinds share. The struct port itself belongs to the switch once it is added.
 *
 * Adding goes through four steps that are undone in reverse order when a later one fails: check
 * against the other ports, create, add to the switch, open the outer side. Removing: close the
 * outer side, so that no callback can reach the port any more, then take it out of the switch,
 * which destroys it.
 *
 * State changes are found by comparing, ten times a second, instead of by a call from whoever
 * changes the state: ports change it in many places, some in the middle of a hand-off, and a
 * guest that toggles must not make log lines faster than that.
 */
#include "control/port_admin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

#define AREA "port"

struct admin_port {
	struct admin_port *next;
	struct port_request request;
	const struct port_kind *kind;
	struct port *port;
	void *handle;          /* the kind's */
	enum port_state shown; /* as last logged */
};

struct port_admin {
	struct vswitch *sw;
	struct port_resources resources;
	struct admin_port *ports; /* the last added first */
};

int port_admin_create(struct port_admin **out, struct loop *loop, struct vswitch *sw,
		      const struct port_config *config)
{
	struct port_admin *admin = calloc(1, sizeof(*admin));

	if (!admin)
		return -ENOMEM;
	admin->sw = sw;
	admin->resources.config = *config;
	admin->resources.loop = loop;
	*out = admin;
	return 0;
}

static void remove_port(struct port_admin *admin, struct admin_port **link)
{
	struct admin_port *a = *link;

	*link = a->next;
	if (a->kind->close)
		a->kind->close(a->handle);
	vswitch_del_port(admin->sw, a->port);
	free(a);
}

void port_admin_destroy(struct port_admin *admin)
{
	if (!admin)
		return;
	while (admin->ports)
		remove_port(admin, &admin->ports);
	port_resources_release(&admin->resources);
	free(admin);
}

/* ---- adding ---- */

static int check_others(const struct port_admin *admin, const struct port_request *req,
			struct refusal *why)
{
	int error = 0;

	for (const struct admin_port *a = admin->ports; a && !error; a = a->next)
		error = port_request_conflict(req, &a->request, why);
	return error;
}

static int refuse_switch(struct refusal *why, int error, const char *name)
{
	if (error == -ENOSPC)
		return refuse(why, error,
			      "the switch is full (at most %d ports with %d queue pairs together): "
			      "remove a port, or give this one fewer queues",
			      PORT_ID_MAX, SWITCH_QUEUES_MAX);
	return refuse(why, error, "cannot add port \"%s\": %s", name, strerror(-error));
}

/* Creates, adds, opens. */
static int bring_up(struct port_admin *admin, struct admin_port *a, struct refusal *why)
{
	int error = a->kind->create(&admin->resources, &a->request, &a->port, why);

	if (error)
		return error;
	error = vswitch_add_port(admin->sw, a->port);
	if (error) {
		port_destroy(a->port);
		return refuse_switch(why, error, a->request.name);
	}
	if (!a->kind->open)
		return 0;
	error = a->kind->open(&admin->resources, &a->request, a->port, &a->handle, why);
	if (error)
		vswitch_del_port(admin->sw, a->port);
	return error;
}

int port_admin_add(struct port_admin *admin, const struct command_line *line,
		   struct port_request *out, struct refusal *why)
{
	struct admin_port *a = calloc(1, sizeof(*a));
	int error;

	if (!a)
		return refuse(why, -ENOMEM, "out of memory");
	error = port_request_parse(line, admin->resources.config.run_dir, &a->request, why);
	if (!error)
		error = check_others(admin, &a->request, why);
	if (error)
		goto fail;
	a->kind = port_kind_get(a->request.kind);
	error = bring_up(admin, a, why);
	if (error)
		goto fail;
	a->shown = PORT_DOWN;
	a->next = admin->ports;
	admin->ports = a;
	*out = a->request;
	log_info(AREA, "%s: added, %s %s", a->request.name, a->kind->word, a->request.where);
	return 0;

fail:
	free(a);
	return error;
}

/* ---- finding and removing ---- */

static int refuse_name(const struct port_admin *admin, const char *name, struct refusal *why)
{
	const struct admin_port *a;
	const char *nearest = NULL;

	for (a = admin->ports; a && !nearest; a = a->next) {
		const char *known = a->request.name;

		nearest = nearest_word(name, &known, 1);
	}
	if (nearest)
		return refuse(why, -ENOENT, "no port \"%.100s\": did you mean \"%s\"?", name,
			      nearest);
	return refuse(why, -ENOENT, "no port \"%.100s\": \"port show\" lists the ports", name);
}

static struct admin_port **find_link(struct port_admin *admin, const char *name)
{
	struct admin_port **link = &admin->ports;

	while (*link && strcmp((*link)->request.name, name) != 0)
		link = &(*link)->next;
	return link;
}

int port_admin_del(struct port_admin *admin, const char *name, struct refusal *why)
{
	struct admin_port **link = find_link(admin, name);

	if (!*link)
		return refuse_name(admin, name, why);
	remove_port(admin, link);
	log_info(AREA, "%s: removed", name);
	return 0;
}

struct port *port_admin_find(const struct port_admin *admin, const char *name, struct refusal *why)
{
	struct port *port = vswitch_find_port(admin->sw, name);

	if (!port)
		refuse_name(admin, name, why);
	return port;
}

/* ---- looking after ---- */

void port_admin_watch(struct port_admin *admin)
{
	struct port_info info;

	for (struct admin_port *a = admin->ports; a; a = a->next) {
		memset(&info, 0, sizeof(info));
		a->port->type->info(a->port, &info);
		if (info.state == a->shown)
			continue;
		a->shown = info.state;
		if (info.state == PORT_UP)
			log_limited(LOG_LEVEL_INFO, AREA, "%s: up", a->request.name);
		else
			log_limited(LOG_LEVEL_INFO, AREA, "%s: down: %s", a->request.name,
				    info.reason);
	}
}

void port_admin_link_changed(struct port_admin *admin, const char *device)
{
	for (struct admin_port *a = admin->ports; a; a = a->next)
		if (a->kind->look && (!device || strcmp(device, a->request.where) == 0))
			a->kind->look(a->port);
}

const struct kicker *port_admin_kicker(const struct port_admin *admin)
{
	return admin->resources.kicker;
}
