/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Describing the switch in JSON. Runs on the control thread, which owns everything but the
 * counters; those are read word by word while workers write them, so that the sums of one
 * answer may be a few frames apart.
 *
 * Objects keep the order in which fields are set here (jansson preserves it), and the text
 * output of xvsctl follows that order.
 *
 * Out of memory: json_object_set_new() and json_array_append_new() accept and report NULL,
 * and a field that is missing is better than a switch that ends; only a missing outermost
 * object is reported, by NULL.
 */
#include "control/show.h"

#include <string.h>

#include "base/atomic.h"
#include "control/protocol.h"

static json_t *number(uint64_t n)
{
	return json_integer((json_int_t)n);
}

static void set(json_t *object, const char *key, json_t *value)
{
	json_object_set_new(object, key, value);
}

json_t *show_text(const char *text)
{
	json_t *value = json_string(text);
	char escaped[1024];

	return value ? value : json_string(text_escape(text, escaped, sizeof(escaped)));
}

/* ---- counters ---- */

static json_t *drops(const struct port_counters *c)
{
	json_t *object = json_object();

	for (unsigned int i = 0; i < DROP_COUNT; i++)
		set(object, drop_name((enum drop_reason)i), number(c->drop[i]));
	return object;
}

static json_t *port_counters(const struct vswitch *sw, const struct port *port)
{
	json_t *object = json_object();
	struct port_counters c;

	memset(&c, 0, sizeof(c));
	vswitch_port_counters(sw, port, &c);
	for (unsigned int i = 0; i < CTR_COUNT; i++)
		set(object, counter_name((enum port_counter)i), number(c.value[i]));
	set(object, "rx_dropped", number(counters_rx_dropped(&c)));
	set(object, "tx_dropped", number(counters_tx_dropped(&c)));
	set(object, "drops", drops(&c));
	return object;
}

static void emit_stat(void *ctx, const char *name, uint64_t value)
{
	set(ctx, name, number(value));
}

json_t *show_port_stats(const struct vswitch *sw, const struct port *port)
{
	json_t *object = json_object(), *specific = json_object();

	set(object, "name", json_string(port->name));
	set(object, "type", json_string(port->type->name));
	set(object, "backlog", number(vswitch_port_backlog(sw, port)));
	set(object, "stats", port_counters(sw, port));
	if (port->type->stats)
		port->type->stats(port, emit_stat, specific);
	set(object, "type_stats", specific);
	return object;
}

/* ---- ports ---- */

static json_t *queues(const struct vswitch *sw, const struct port *port,
		      const struct port_info *info)
{
	json_t *array = json_array();

	for (unsigned int i = 0; i < port->nqueues; i++) {
		const int worker = vswitch_rxq_worker(sw, port, i);
		json_t *q = json_object();

		set(q, "queue", number(i));
		set(q, "rx_ring", number(info->rx_ring[i]));
		set(q, "tx_ring", number(info->tx_ring[i]));
		set(q, "worker", worker < 0 ? json_null() : json_integer(worker));
		json_array_append_new(array, q);
	}
	return array;
}

static json_t *features(const struct port_info *info)
{
	json_t *array = json_array();

	for (unsigned int i = 0; i < info->nfeatures; i++)
		json_array_append_new(array, json_string(info->feature[i]));
	return array;
}

json_t *show_port(const struct vswitch *sw, const struct port *port)
{
	json_t *object = json_object();
	struct port_info info;

	memset(&info, 0, sizeof(info));
	port->type->info(port, &info);
	set(object, "name", json_string(port->name));
	set(object, "type", json_string(port->type->name));
	set(object, "mode", info.mode ? json_string(info.mode) : json_null());
	set(object, "where", show_text(info.where));
	set(object, "state", json_string(info.state == PORT_UP ? "up" : "down"));
	set(object, "reason", show_text(info.reason));
	set(object, "warning", show_text(info.warning));
	set(object, "features", features(&info));
	set(object, "queues", queues(sw, port, &info));
	set(object, "max_frame", number(port->nqueues ? port->txq[0]->max_frame : 0));
	set(object, "backlog", number(vswitch_port_backlog(sw, port)));
	set(object, "stats", port_counters(sw, port));
	return object;
}

json_t *show_ports(const struct vswitch *sw, const struct port *only,
		   json_t *(*show)(const struct vswitch *sw, const struct port *port))
{
	json_t *array = json_array();
	uint16_t id = 0;

	for (const struct port *p = only ? only : vswitch_next_port(sw, &id); p;
	     p = only ? NULL : vswitch_next_port(sw, &id))
		json_array_append_new(array, show(sw, p));
	return array;
}

/* ---- forwarding database ---- */

struct fdb_listing {
	const struct vswitch *sw;
	json_t *array;
};

static bool add_fdb_entry(void *ctx, const struct fdb_entry *e)
{
	struct fdb_listing *list = ctx;
	const struct port *port = vswitch_port(list->sw, e->port);
	json_t *object = json_object();
	char mac[MAC_TEXT_SIZE];

	set(object, "mac", json_string(mac_format(&e->mac, mac)));
	set(object, "vlan", number(e->vlan));
	set(object, "port", port ? json_string(port->name) : json_null());
	set(object, "age", number(e->age));
	set(object, "static", json_boolean(e->is_static));
	return json_array_append_new(list->array, object) == 0;
}

json_t *show_fdb(struct vswitch *sw)
{
	struct fdb_listing list = {.sw = sw, .array = json_array()};

	fdb_for_each(vswitch_fdb(sw), vswitch_now(sw), add_fdb_entry, &list);
	return list.array;
}

json_t *show_fdb_stats(struct vswitch *sw)
{
	json_t *object = json_object();
	struct fdb_stats stats;

	fdb_get_stats(vswitch_fdb(sw), &stats);
	set(object, "entries", number(stats.entries));
	set(object, "capacity", number(stats.capacity));
	set(object, "learned", number(stats.learned));
	set(object, "moved", number(stats.moved));
	set(object, "aged", number(stats.aged));
	set(object, "evicted", number(stats.evicted));
	set(object, "skipped", number(stats.skipped));
	return object;
}

/* ---- workers ---- */

static void set_load(json_t *object, const struct worker_info *info)
{
	const struct worker_load load = worker_load(info);

	set(object, "busy_share", json_real(load.busy_share));
	set(object, "cycles_per_packet", json_real(load.cycles_per_packet));
	set(object, "packets_per_poll", json_real(load.packets_per_poll));
	set(object, "packets_per_second", json_real(load.packets_per_second));
}

static json_t *worker(const struct worker_info *total, const struct worker_info *second,
		      unsigned int index)
{
	json_t *object = json_object(), *last = json_object();

	set(object, "role", json_string("worker"));
	set(object, "worker", number(index));
	set(object, "cpu", number(total->cpu));
	set(object, "rx_queues", number(total->nrxq));
	set_load(object, total);
	set(object, "packets", number(total->packets));
	set(object, "rounds", number(total->rounds));
	set(object, "polls", number(total->polls));
	set(object, "busy_polls", number(total->busy_polls));
	set_load(last, second);
	set(object, "last_second", last);
	return object;
}

static json_t *kicker(const struct kicker *k)
{
	json_t *object = json_object();
	struct kicker_stats stats;

	kicker_get_stats(k, &stats);
	set(object, "role", json_string("kicker"));
	set(object, "kicks", number(stats.kicks));
	set(object, "sleeps", number(stats.sleeps));
	set(object, "errors", number(stats.errors));
	return object;
}

json_t *show_workers(const struct workers *w, const struct vswitch *sw, const struct kicker *k)
{
	json_t *array = json_array();

	for (unsigned int i = 0; i < vswitch_nworkers(sw); i++) {
		struct worker_info total;

		vswitch_worker_info(sw, i, &total);
		json_array_append_new(array, worker(&total, &w->sample[i].second, i));
	}
	if (k)
		json_array_append_new(array, kicker(k));
	return array;
}
