/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Text output, made from the JSON that the daemon sends: one formatter per command in a table.
 *
 * Every text from the answer goes through show(): names and paths may hold anything, and a
 * terminal must not obey them. Fields that are missing (an older daemon) print as empty or 0.
 * Lists of counters are printed as they come, so that a counter which the daemon gets later needs
 * no change here. Zeros are left out of lists of drops: a reason that is shown has happened.
 */
#include "cli/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef void format_fn(const json_t *result);

#define TEXT_MAX   2048
#define LINE_WIDTH 78u

/* ---- pieces ---- */

static const char *field(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static int64_t integer(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static double real(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

/* Prints the text escaped, padded with blanks to `width`. */
static void show(const char *text, int width)
{
	char escaped[TEXT_MAX];

	printf("%-*s", width, text_escape(text, escaped, sizeof(escaped)));
}

static void label(const char *text)
{
	printf("  %-10s", text);
}

static void show_line(const char *name, const char *text)
{
	if (!*text)
		return;
	label(name);
	show(text, 0);
	putchar('\n');
}

/* Words of an array after a label, broken into lines. */
static void show_words(const char *name, const json_t *array)
{
	size_t column = 12, i;
	const json_t *word;

	if (json_array_size(array) == 0)
		return;
	label(name);
	json_array_foreach(array, i, word)
	{
		const char *text = json_is_string(word) ? json_string_value(word) : "?";

		if (i > 0 && column + 1 + strlen(text) > LINE_WIDTH) {
			printf("\n%12s", "");
			column = 12;
		} else if (i > 0) {
			putchar(' ');
			column++;
		}
		show(text, 0);
		column += strlen(text);
	}
	putchar('\n');
}

/* "reason 12, reason 3" of an object of counters; zeros are left out. */
static void show_drops(const json_t *drops)
{
	const char *between = "", *key;
	json_t *value, *copy = json_deep_copy(drops);

	json_object_foreach(copy, key, value)
	{
		if (json_integer_value(value) == 0)
			continue;
		if (!*between)
			label("drops");
		printf("%s", between);
		show(key, 0);
		printf(" %" JSON_INTEGER_FORMAT, json_integer_value(value));
		between = ", ";
	}
	if (*between)
		putchar('\n');
	json_decref(copy);
}

/* ---- port ---- */

static void format_port_add(const json_t *result)
{
	show(field(result, "name"), 0);
	printf(": added, ");
	show(field(result, "type"), 0);
	putchar(' ');
	show(field(result, "where"), 0);
	putchar('\n');
}

static void show_queue(const json_t *q)
{
	const json_t *worker = json_object_get(q, "worker");

	printf("  queue %-4" PRId64 "rx ring %" PRId64 ", tx ring %" PRId64, integer(q, "queue"),
	       integer(q, "rx_ring"), integer(q, "tx_ring"));
	if (json_is_integer(worker))
		printf(", polled by worker %" JSON_INTEGER_FORMAT, json_integer_value(worker));
	putchar('\n');
}

/* Queues that are set up, one per line; the number of those that are not. */
static void show_queues(const json_t *queues)
{
	unsigned int idle = 0;
	const json_t *q;
	size_t i;

	json_array_foreach(queues, i, q)
	{
		if (integer(q, "rx_ring") || integer(q, "tx_ring"))
			show_queue(q);
		else
			idle++;
	}
	if (idle) {
		label("queues");
		printf("%u of %zu not set up\n", idle, json_array_size(queues));
	}
}

static void show_traffic(const json_t *stats, const char *dir)
{
	char packets[16], bytes[16], dropped[16];

	snprintf(packets, sizeof(packets), "%s_packets", dir);
	snprintf(bytes, sizeof(bytes), "%s_bytes", dir);
	snprintf(dropped, sizeof(dropped), "%s_dropped", dir);
	label(dir);
	printf("%" PRId64 " packets, %" PRId64 " bytes, %" PRId64 " dropped\n",
	       integer(stats, packets), integer(stats, bytes), integer(stats, dropped));
}

static void show_port(const json_t *port)
{
	const json_t *stats = json_object_get(port, "stats");
	const char *mode = field(port, "mode");

	show(field(port, "name"), 0);
	printf(": ");
	show(field(port, "type"), 0);
	if (*mode) {
		putchar(' ');
		show(mode, 0);
	}
	printf(", ");
	show(field(port, "state"), 0);
	putchar('\n');
	show_line("reason", field(port, "reason"));
	show_line("warning", field(port, "warning"));
	show_line("at", field(port, "where"));
	show_words("features", json_object_get(port, "features"));
	show_queues(json_object_get(port, "queues"));
	label("frames");
	printf("up to %" PRId64 " bytes, %" PRId64 " waiting\n", integer(port, "max_frame"),
	       integer(port, "backlog"));
	show_traffic(stats, "rx");
	show_traffic(stats, "tx");
	show_drops(json_object_get(stats, "drops"));
}

static void format_port_show(const json_t *result)
{
	const json_t *port;
	size_t i;

	if (json_array_size(result) == 0)
		puts("no ports; \"xvsctl help port add\" shows how to add one");
	json_array_foreach(result, i, port)
	{
		if (i > 0)
			putchar('\n');
		show_port(port);
	}
}

/* ---- stats ---- */

static void show_counter(const char *name, json_int_t value)
{
	printf("  ");
	show(name, 26);
	printf(" %20" JSON_INTEGER_FORMAT "\n", value);
}

static void show_counters(const json_t *object, const char *heading)
{
	json_t *value, *copy = json_deep_copy(object);
	const char *key;

	if (heading && json_object_size(copy) > 0)
		printf("  %s\n", heading);
	json_object_foreach(copy, key, value) if (json_is_integer(value))
	    show_counter(key, json_integer_value(value));
	json_decref(copy);
}

static void format_stats(const json_t *result)
{
	const json_t *port;
	size_t i;

	json_array_foreach(result, i, port)
	{
		const json_t *stats = json_object_get(port, "stats");

		if (i > 0)
			putchar('\n');
		show(field(port, "name"), 0);
		printf(": ");
		show(field(port, "type"), 0);
		putchar('\n');
		show_counters(stats, NULL);
		show_counter("backlog", integer(port, "backlog"));
		show_counters(json_object_get(stats, "drops"), "dropped frames by reason:");
		show_counters(json_object_get(port, "type_stats"), "of this kind of port:");
	}
}

/* ---- fdb ---- */

static void format_fdb_show(const json_t *result)
{
	const json_t *e;
	size_t i;

	printf("%-18s %5s %6s  %s\n", "MAC", "VLAN", "AGE", "PORT");
	json_array_foreach(result, i, e)
	{
		show(field(e, "mac"), 18);
		printf(" %5" PRId64 " ", integer(e, "vlan"));
		if (json_is_true(json_object_get(e, "static")))
			printf("%6s", "static");
		else
			printf("%6" PRId64, integer(e, "age"));
		printf("  ");
		show(field(e, "port"), 0);
		putchar('\n');
	}
}

static void format_fdb_flush(const json_t *result)
{
	const int64_t n = integer(result, "removed");

	printf("%" PRId64 " address%s forgotten\n", n, n == 1 ? "" : "es");
}

static void format_fdb_stats(const json_t *result)
{
	show_counters(result, NULL);
}

/* ---- worker ---- */

static void show_worker(const json_t *w)
{
	const json_t *last = json_object_get(w, "last_second");

	printf("%6" PRId64 " %4" PRId64 " %6" PRId64 " %6.1f%% %12.0f %12.0f %9.1f %16" PRId64 "\n",
	       integer(w, "worker"), integer(w, "cpu"), integer(w, "rx_queues"),
	       100.0 * real(last, "busy_share"), real(last, "packets_per_second"),
	       real(last, "cycles_per_packet"), real(last, "packets_per_poll"),
	       integer(w, "packets"));
}

static void show_kicker(const json_t *k)
{
	printf("kicker: %" PRId64 " system calls for AF_XDP, %" PRId64 " sleeps, %" PRId64
	       " errors\n",
	       integer(k, "kicks"), integer(k, "sleeps"), integer(k, "errors"));
}

static void format_worker_show(const json_t *result)
{
	const json_t *w;
	size_t i;

	printf("%6s %4s %6s %7s %12s %12s %9s %16s\n", "WORKER", "CPU", "QUEUES", "BUSY",
	       "PACKETS/S", "CYCLES/PKT", "PKT/POLL", "PACKETS");
	json_array_foreach(result, i, w)
	{
		if (strcmp(field(w, "role"), "kicker") == 0)
			show_kicker(w);
		else
			show_worker(w);
	}
}

/* ---- the rest ---- */

static void format_version(const json_t *result)
{
	printf("xvsctl %s\nxvswitchd ", XVS_VERSION);
	show(field(result, "version"), 0);
	printf(" (process %" PRId64 ", protocol %" PRId64 ", copies with ", integer(result, "pid"),
	       integer(result, "protocol"));
	show(field(result, "copy"), 0);
	puts(")");
}

static format_fn *const formatters[CMD_COUNT] = {
#define X(kind, symbol, word, args, summary, details) [CMD_PORT_ADD_##kind] = format_port_add,
    PORT_KINDS(X)
#undef X
	[CMD_PORT_SHOW] = format_port_show,
    [CMD_FDB_SHOW] = format_fdb_show,
    [CMD_FDB_FLUSH] = format_fdb_flush,
    [CMD_FDB_STATS] = format_fdb_stats,
    [CMD_STATS] = format_stats,
    [CMD_WORKER_SHOW] = format_worker_show,
    [CMD_VERSION] = format_version,
};

void format_result(enum command_id id, const json_t *result)
{
	if (formatters[id])
		formatters[id](result);
}
