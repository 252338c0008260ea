/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xvs-bench: contract between its parts. One thread (pinned to options.cpu) plays all guests;
 * a second one (probe.c) wakes only between slices.
 *
 * A scenario measures in slices of a few ten milliseconds. Each slice belongs to one system (a
 * switch with two guest ports); systems take turns, those whose turn it is not are stopped. A
 * slice is bracketed by probes of the machine's state and dropped when the state changed.
 */
#ifndef XVS_BENCH_BENCH_H
#define XVS_BENCH_BENCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "guest/fast.h"
#include "guest/guest.h"

#define SYSTEMS_MAX 8
#define SIZES_MAX   16
#define SLICES_MAX  20000

/* ---- options.c ---- */

struct target {
	char name[32];
	char path[2][108]; /* sockets of the two guest ports */
	pid_t pid;         /* the switch, to be stopped between its slices; 0: not ours to stop */
};

struct options {
	const struct scenario *scenario;
	unsigned int size[SIZES_MAX]; /* bytes per frame, without FCS; FAST_IMIX: a mix */
	unsigned int nsizes;
	double seconds; /* per system and size */
	unsigned int slice_ms;
	unsigned int pairs; /* queue pairs of each guest */
	unsigned int ring_size;
	unsigned int count; /* of repetitions, attach only */
	unsigned int cpu;
	int switch_cpu; /* for the probes; -1: no probes */
	bool both_ways;
	bool light;
	bool huge;
	bool json;
	const char *run_dir;
	struct target target[SYSTEMS_MAX];
	unsigned int ntargets;
};

struct scenario {
	const char *name;
	const char *help;
	int (*run)(const struct options *o, json_t *results); /* 0 or negative errno */
};

/* Scenarios by name (main.c); NULL when there is none of that name. */
const struct scenario *scenario_find(const char *name);
void scenario_list(void);

/* SIGINT or SIGTERM came: end soon, in order. (main.c) */
bool interrupted(void);

/* 0; 1: help was printed; 2: wrong usage, with a message. */
int options_parse(struct options *o, int argc, char **argv);

/* ---- system.c ---- */

struct bench_system {
	const struct target *target;
	unsigned int npairs;
	bool attached;
	struct guest guest[2];
	struct fast_tx *tx[2]; /* npairs each */
	struct fast_rx *rx[2];
};

/* Attaches both guests and passes one frame each way. 0 or negative errno, with a message. */
int system_attach(struct bench_system *s, const struct target *target, const struct options *o);
void system_detach(struct bench_system *s);
void system_set_size(struct bench_system *s, unsigned int size);

/* All systems of the options, attached; prints what went wrong. */
int systems_attach(struct bench_system *s, const struct options *o);
void systems_detach(struct bench_system *s, const struct options *o);

/* Lets only system `turn` run. */
void systems_turn(const struct bench_system *s, unsigned int n, unsigned int turn);
/* Lets all run again. */
void systems_resume(const struct bench_system *s, unsigned int n);

/* Ports for the scenario on a running xvswitchd, through its xvsctl. */
int daemon_ports_add(struct options *o);
void daemon_ports_del(const struct options *o);

/* Sends frames from one guest of the system until the other has one. 0 or -ETIMEDOUT. */
int system_pass_one(struct bench_system *s, unsigned int from);

/* ---- probe.c ---- */

enum mode { MODE_UNKNOWN, MODE_SMT, MODE_NEAR, MODE_NEAR_SHARED, MODE_FAR, MODE_FAR_SHARED };
#define MODES 6
const char *mode_name(enum mode mode);

/*
 * Ticks from core to core, one way. Seen here: 50-120 between hyper-threads of one core (rates are
 * the same over all of that range), 150-180 within a cache complex, 530-720 across.
 */
#define SMT_BELOW  130
#define NEAR_BELOW 300

struct probe;
int probe_create(struct probe **out, int cpu); /* cpu -1: a probe that knows nothing */
void probe_destroy(struct probe *p);
/* State of the machine now; takes about 0.3 ms. *distance in ticks, one way (median). */
enum mode probe_mode(struct probe *p, unsigned int *distance);

/* ---- slices.c ---- */

struct slice {
	unsigned int system;
	enum mode mode;
	double value;    /* the scenario's: Mpps, or round trips */
	double gen_cost; /* ticks of the generator per packet */
	double gen_busy; /* share of its time in which the generator moved packets */
	double distance; /* ticks from core to core */
};

struct slices {
	unsigned int n;
	unsigned int dropped; /* state changed */
	struct slice slice[SLICES_MAX];
};

struct slice_ops {
	/* Measures one slice of system s; the result goes to *out (value, gen_cost, gen_busy). */
	void (*measure)(struct bench_system *s, const struct options *o, struct slice *out);
	/* The slice just measured counts: its state did not change. May be NULL. */
	void (*keep)(const struct slice *slice);
};

/*
 * Takes turns over all systems for options.seconds each, with probes. -EINTR: ended by a signal,
 * -EAGAIN: no slice counts.
 */
int slices_run(struct slices *out, struct bench_system *s, const struct options *o,
	       const struct slice_ops *ops);

/* ---- report.c ---- */

/* Median per system and mode of the slices of one frame size: table on stdout, rows to results. */
void report_rates(const struct options *o, const struct slices *s, unsigned int size,
		  json_t *results);
int report_json(json_t *results);
/* How a frame size and the kind of guests are called in results. */
const char *size_name(unsigned int size); /* valid until the next call */
json_t *size_json(unsigned int size);
const char *generator_name(const struct options *o);
double median_of(double *v, unsigned int n); /* sorts v */
double quantile_of(const double *sorted, unsigned int n, double q);

/* ---- scenarios ---- */
int vm2vm_run(const struct options *o, json_t *results);
int rr_run(const struct options *o, json_t *results);
int attach_run(const struct options *o, json_t *results);

#endif
