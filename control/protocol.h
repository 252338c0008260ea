/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What xvsctl and xvswitchd share: the socket, the wire format, and the commands.
 *
 * Wire: a Unix stream socket RUN_DIR/control.sock. One JSON object per line and direction:
 *     -> {"xvswitch":1,"id":7,"method":"command","params":{"words":["port","show"]}}
 *     <- {"xvswitch":1,"id":7,"result":[...]}
 *     <- {"xvswitch":1,"id":7,"error":{"code":-22,"message":"what is wrong and what to do"}}
 * "xvswitch" is the version of this protocol, "id" comes back as it was sent, "code" is a
 * negative errno. Requests of one connection are answered in order. A request line has at most
 * PROTOCOL_REQUEST_MAX bytes with its newline; the longest idle connection is closed when
 * PROTOCOL_CONNECTIONS_MAX are open and one more comes.
 *
 * Commands: one row each, in COMMANDS or, for the kinds of port, in PORT_KINDS. The pattern is
 * the usage line and, at the same time, the grammar that command_parse() follows:
 *     word        this word                    a|b         one of these words
 *     NAME        a value of that type         [x]         x may be left out; optional parts
 *     key VALUE   (in brackets) a named value              come in any order, each once
 *     WORD...     (in brackets) any words to the end
 * The types of values are rows of VALUE_TYPES. The daemon checks again what it receives.
 *
 * Needs nothing but base/. All functions: any single thread.
 */
#ifndef XVS_CONTROL_PROTOCOL_H
#define XVS_CONTROL_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

#define PROTOCOL_VERSION         1
#define PROTOCOL_RUN_DIR         "/run/xvswitch"
#define PROTOCOL_SOCKET          "control.sock"
#define PROTOCOL_REQUEST_MAX     65536u
#define PROTOCOL_CONNECTIONS_MAX 64u

/* ---- why something was refused: one line, for the operator ---- */

struct refusal {
	char text[640];
	bool placed; /* the text begins with a place in a file */
};

/* Words the refusal and returns `error`, so that callers can `return refuse(...)`. */
int refuse(struct refusal *why, int error, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* ---- the commands ---- */

/*
 * To add a kind of port: a row here, and struct port_kind port_kind_<symbol> (port_kind.h) in a
 * file of its own.
 *
 *      kind        symbol      word          arguments              summary, details
 */
#define PORT_KINDS(X)                                                                              \
	X(VHOST_USER, vhost_user, "vhost-user", "PATH [server|client] [queues N]",                 \
	  "add a port for a virtual machine",                                                      \
	  "PATH is the vhost-user socket; a relative one is below the run directory.\n"            \
	  "server (default): the switch makes the socket and waits for the machine.\n"             \
	  "client: the machine makes the socket; the switch connects and keeps trying.\n"          \
	  "queues: most queue pairs that the guest can use, 1 (default) to 64; the\n"              \
	  "machine may have fewer. Its memory must be shared. For QEMU, with one\n"                \
	  "queue pair and 1 GiB of memory:\n"                                                      \
	  "  -m 1G -object memory-backend-memfd,id=m,size=1G,share=on\n"                           \
	  "  -machine memory-backend=m -chardev socket,id=c,path=PATH\n"                           \
	  "  -netdev vhost-user,id=n,chardev=c -device virtio-net-pci,netdev=n\n"                  \
	  "For N queue pairs add queues=N to -netdev, and mq=on to -device. For client\n"          \
	  "add server=on to -chardev; otherwise reconnect=1, so that the guest finds a\n"          \
	  "restarted switch.\n")                                                                   \
	X(AF_XDP, af_xdp, "af-xdp", "DEV [queues N] [mode auto|zero-copy|native|generic]",         \
	  "add a network device through AF_XDP",                                                   \
	  "DEV keeps its kernel driver; what it receives goes to the switch until the\n"           \
	  "port is removed or the daemon ends.\n"                                                  \
	  "queues: how many of the device's queues, from the first; default: all that\n"           \
	  "\"ethtool -l DEV\" shows. What arrives on others stays with the kernel.\n"              \
	  "mode: auto (default) is the fastest that works. zero-copy and native need\n"            \
	  "the driver's support and fail without it; generic works with every device,\n"           \
	  "but slowly. \"port show\" says which one is in use.\n")

enum command_effect {
	COMMAND_SHOWS,
	COMMAND_CHANGES, /* changes the switch: allowed in a configuration file */
	COMMAND_LOCAL,   /* answered by xvsctl alone */
};

/*      id          handler      effect   pattern                   summary, details */
#define COMMANDS(X)                                                                                \
	X(PORT_DEL, port_del, CHANGES, "port del NAME", "remove a port",                           \
	  "A guest loses its connection; a network device goes back to the kernel.\n")             \
	X(PORT_SHOW, port_show, SHOWS, "port show [NAME]", "show ports",                           \
	  "State and, for a port that is down, the reason and what to do; negotiated\n"            \
	  "features; queues with ring sizes and the worker that polls them; traffic.\n"            \
	  "rx: received from the port by the switch, tx: sent to it.\n")                           \
	X(FDB_SHOW, fdb_show, SHOWS, "fdb show", "show which address is behind which port",        \
	  "\"age\" is in seconds since the last frame from the address.\n")                        \
	X(FDB_ADD, fdb_add, CHANGES, "fdb add MAC NAME", "pin an address to a port",               \
	  "It does not age, and frames from elsewhere with this source do not move it.\n")         \
	X(FDB_DEL, fdb_del, CHANGES, "fdb del MAC", "forget an address, pinned or learned", "")    \
	X(FDB_FLUSH, fdb_flush, CHANGES, "fdb flush [NAME]", "forget learned addresses",           \
	  "Of one port, or of all. Pinned ones stay.\n")                                           \
	X(FDB_STATS, fdb_stats, SHOWS, "fdb stats", "show how full the address table is",          \
	  "\"evicted\" above 0 means that the table is too small: xvswitchd --fdb-size.\n")        \
	X(STATS, stats, SHOWS, "stats [NAME]", "show every counter of the ports",                  \
	  "rx: received from the port by the switch, tx: sent to it. Each dropped frame\n"         \
	  "is counted once, under its reason.\n")                                                  \
	X(WORKER_SHOW, worker_show, SHOWS, "worker show", "show how busy the workers are",         \
	  "Over the last second, except for the number of packets. BUSY: share of time in\n"       \
	  "rounds that found frames; near 100% the worker is at its limit (it uses its\n"          \
	  "whole CPU in any case). PKT/POLL: frames per poll that found any, 32 at most.\n")       \
	X(LOG_LEVEL, log_level, CHANGES, "log level LEVEL", "choose what the daemon logs",         \
	  "LEVEL is error, warn, info or debug.\n")                                                \
	X(VERSION, version, SHOWS, "version", "show the versions of xvsctl and the daemon", "")    \
	X(HELP, help, LOCAL, "help [WORD...]", "show the commands, or explain one",                \
	  "\"help port\" explains every command that begins with \"port\".\n")

enum command_id {
#define X(kind, symbol, word, args, summary, details) CMD_PORT_ADD_##kind,
	PORT_KINDS(X)
#undef X
#define X(id, handler, effect, pattern, summary, details) CMD_##id,
	    COMMANDS(X)
#undef X
		CMD_COUNT
};

struct command {
	enum command_id id;
	enum command_effect effect;
	const char *pattern; /* usage and grammar in one */
	const char *summary; /* one line, without a full stop */
	const char *details; /* whole lines, may be empty */
};

/* id: 0..CMD_COUNT-1. */
const struct command *command_get(enum command_id id);

/* True when the command's pattern begins with these words (none: always). */
bool command_begins_with(const struct command *c, const char *const word[], unsigned int n);

/* ---- command lines ---- */

#define COMMAND_WORDS_MAX 32u
#define COMMAND_ARGS_MAX  8u

/* A command line that fits its pattern. Points into the words it was made from. */
struct command_line {
	const struct command *command;
	unsigned int nargs;
	struct command_arg {
		const char *name; /* in the pattern, not terminated */
		size_t name_len;
		const char *value;
	} arg[COMMAND_ARGS_MAX];
	const char *const *rest; /* words of "WORD..." */
	unsigned int nrest;
};

/*
 * Finds the command and checks form and values. Returns 0 or -EINVAL with the reason; then
 * out->command is the command if the words were enough to tell, else NULL.
 */
int command_parse(const char *const word[], unsigned int n, struct command_line *out,
		  struct refusal *why);

/*
 * Value of the argument: by its type ("NAME"), by its key ("queues"), or by its list of choices
 * ("server|client"). NULL when it was left out.
 */
const char *command_arg(const struct command_line *line, const char *name);

/* The same for a number; `fallback` when it was left out. */
uint64_t command_number(const struct command_line *line, const char *name, uint64_t fallback);

/* ---- texts ---- */

/*
 * Decimal digits and nothing else ("1k", "+1", "0x1", " 1" are refused). Returns 0, -EINVAL,
 * or -ERANGE outside min..max.
 */
int number_parse(const char *text, uint64_t min, uint64_t max, uint64_t *out);

/*
 * The word of the list that `text` is probably a mistyped form of, or NULL: at most a third of
 * the word's letters wrong, or an abbreviation of it.
 */
const char *nearest_word(const char *text, const char *const word[], unsigned int n);

/*
 * Copies `text` so that a terminal can show it: control characters and what is not UTF-8 become
 * \xNN. Cuts what does not fit; returns out. size >= 5.
 */
char *text_escape(const char *text, char *out, size_t size);

#endif
