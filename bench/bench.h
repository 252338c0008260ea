/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xvs-bench: contract between its parts. One thread (pinned to options.cpu) plays all guests;
 * a second one (probe.c) wakes only between slices.
 *
 * A scenario measures in slices of a few ten milliseconds. Each slice belongs to one series: a
 * system (a switch and the guests on it) and a parameter of the scenario (number of addresses,
 * percent of the maximum, ...). Series take turns, systems whose turn it is not are stopped. A
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
#define PARAMS_MAX  8
#define PORTS_MAX   256
#define SIZES_MAX   16
#define SLICES_MAX  20000

/* ---- options.c ---- */

struct target {
	char name[32];
	unsigned int nports;
	char path[PORTS_MAX][108]; /* sockets of the guest ports */
	pid_t pid;         /* the switch, to be stopped between its slices; 0: not ours to stop */
	char run_dir[108]; /* of an xvswitchd whose ports we may change; "": none */
	bool ours;         /* started by us (daemon.c), in a directory made for it */
};

struct options {
	const struct scenario *scenario;
	unsigned int size[SIZES_MAX]; /* bytes per frame, without FCS; FAST_IMIX: a mix */
	unsigned int nsizes;
	double seconds; /* per series and size */
	unsigned int slice_ms;
	unsigned int pairs;  /* queue pairs of each guest */
	unsigned int guests; /* on ports made by us; 0: as the scenario says */
	unsigned int ring_size;
	unsigned int count; /* of repetitions, attach and gap only */
	unsigned int cpu;
	int switch_cpu; /* for the probes and an own xvswitchd; -1: no probes */
	bool both_ways;
	bool light;
	bool interrupts; /* rr: guests sleep until they are interrupted */
	bool huge;
	bool json;
	const char *plot; /* SVG file to write, or NULL */
	const char *run_dir;
	const char *kicker_cpu; /* of an own xvswitchd */
	struct target target[SYSTEMS_MAX];
	unsigned int ntargets;
};

struct scenario {
	const char *name;                                     /* as typed */
	int (*run)(const struct options *o, json_t *results); /* 0 or negative errno */
	const char *help;
	unsigned int ports[PARAMS_MAX]; /* one own xvswitchd with so many ports for each, up to 0 */
	unsigned int active;            /* guests beyond these have little memory; 0: all active */
	const char *fdb_size;           /* of an own xvswitchd, NULL: its default */
	/* Before any daemon is started; may be NULL. 0 or negative errno. */
	int (*prepare)(const struct options *o);
};

/* Scenarios by name (main.c); NULL when there is none of that name. */
const struct scenario *scenario_find(const char *name);
void scenario_list(void);

/* SIGINT or SIGTERM came: end soon, in order. (main.c) */
bool interrupted(void);

/* 0; 1: help was printed; 2: wrong usage, with a message. */
int options_parse(struct options *o, int argc, char **argv);

/* ---- daemon.c ---- */

/*
 * Makes targets when none was given: ports on the xvswitchd of options.run_dir, else on
 * xvswitchds of our own. daemons_end() takes all of it away. 0 or negative errno, with a message.
 */
int daemons_start(struct options *o);
void daemons_end(struct options *o);

/*
 * Runs `xvsctl WORDS...` (at most 12, the last is NULL) on the target's xvswitchd. 0 or negative
 * errno; *answer, if not NULL, is what it said with -j, to be released by the caller.
 */
int daemon_ctl(const struct target *t, const char *const words[], json_t **answer);

/* ---- system.c ---- */

struct bench_system {
	const struct target *target;
	unsigned int nguests;
	unsigned int npairs;
	bool attached;
	struct guest *guest;
	struct fast_tx **tx; /* of each guest: npairs of them */
	struct fast_rx **rx;
};

/* Address of guest i of a system. */
struct mac system_mac(unsigned int guest);

/* Attaches all guests and passes frames between the first two. 0 or negative errno, with a
 * message. */
int system_attach(struct bench_system *s, const struct target *target, const struct options *o);
void system_detach(struct bench_system *s);

/* Frames between the first two guests, to each other. */
void system_set_size(struct bench_system *s, unsigned int size);
/* Frames of one guest. */
void system_set_frame(struct bench_system *s, unsigned int guest, const struct mac *dst,
		      unsigned int size);

/* All systems of the options, attached; prints what went wrong. */
int systems_attach(struct bench_system *s, const struct options *o);
void systems_detach(struct bench_system *s, const struct options *o);

/* Lets only system `turn` run. */
void systems_turn(const struct bench_system *s, unsigned int n, unsigned int turn);
/* Lets all run again. */
void systems_resume(const struct bench_system *s, unsigned int n);

/* Sends frames from one of the first two guests until the other has one. 0 or -ETIMEDOUT. */
int system_pass_one(struct bench_system *s, unsigned int from);
/* Takes what is in the receive rings of the first two guests, until nothing comes any more. */
void system_drain(struct bench_system *s);
/* Used entries that no correct device writes make a result worthless: -EPROTO if there were any. */
int systems_check(const struct bench_system *s, unsigned int n);

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
	unsigned int param; /* index into the scenario's */
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
	/*
	 * Measures one slice of system s with one parameter; the result goes to *out (value,
	 * gen_cost, gen_busy).
	 */
	void (*measure)(struct bench_system *s, const struct options *o, unsigned int param,
			struct slice *out);
	/* The slice just measured counts: its state did not change. May be NULL. */
	void (*keep)(const struct slice *slice);
	/* Makes the frames of one size; NULL: system_set_size(). */
	void (*set_size)(struct bench_system *s, unsigned int size);
	const char *unit;     /* what parameters are; NULL: there are none */
	unsigned int nparams; /* 0 counts as one, of value 0 */
	unsigned int param[PARAMS_MAX];
	const char *const *param_name; /* by value of the parameter; NULL: numbers */
};

/*
 * Takes turns over all series for options.seconds each, with probes. -EINTR: ended by a signal,
 * -EAGAIN: no slice counts.
 */
int slices_run(struct slices *out, struct bench_system *s, const struct options *o,
	       const struct slice_ops *ops);

/* The usual frame of a scenario: attach, slices_run(), report(), check, detach. */
typedef void slices_report(const struct options *o, const struct slices *s,
			   const struct slice_ops *ops, unsigned int size, json_t *results);
int slices_scenario(const struct options *o, const struct slice_ops *ops, slices_report *report,
		    json_t *results);

/* ---- traffic.c: as much as goes ---- */

enum traffic_kind { TRAFFIC_REALISTIC, TRAFFIC_LIGHT, TRAFFIC_ADDRESSES };

struct traffic_plan {
	enum traffic_kind kind;
	unsigned int senders; /* guests 0 .. senders-1; guest i+1 (modulo active) receives */
	unsigned int active;  /* guests that take part */
	/* TRAFFIC_ADDRESSES: guest 0 has so many addresses, from `first` on, a power of two */
	unsigned int addresses;
	uint32_t first;
};

struct traffic {
	uint64_t tx, tx_ticks; /* frames sent and what the calls cost */
	uint64_t rx, rx_ticks;
	uint64_t ticks; /* in all */
};

void traffic_run(struct bench_system *s, const struct traffic_plan *plan, double ms,
		 struct traffic *out);
/* Received Mpps, and the generator's share. */
void traffic_result(const struct traffic *t, struct slice *out);

/* ---- paced.c: at a given rate, one way ---- */

struct histogram;

struct paced {
	double offered; /* frames, by the clock */
	uint64_t sent;
	uint64_t received;
	uint64_t ticks;
};

/*
 * From guest 0 to guest 1 at `rate` frames per tick, 0: as much as goes. Latencies (from the time
 * a frame is due until its receiver has it) go to *latency unless NULL, in ticks.
 */
void paced_run(struct bench_system *s, double rate, double ms, struct histogram *latency,
	       struct paced *out);

/* ---- histogram.c: of ticks, exact to 0.4 % ---- */

#define HISTOGRAM_BUCKETS 8448u

struct histogram {
	uint64_t n;
	uint64_t bucket[HISTOGRAM_BUCKETS];
};

void histogram_reset(struct histogram *h);
void histogram_add(struct histogram *h, uint64_t ticks);
void histogram_merge(struct histogram *into, const struct histogram *h);
double histogram_us(const struct histogram *h, double quantile);

/* Latencies of the slice being measured, and of all kept ones by series and mode. */
struct histogram *latency_slice(void); /* emptied */
void latency_keep(const struct slice *slice);
/* Table on stdout, rows to results; forgets all. */
slices_report latency_report;

/* ---- report.c ---- */

/* Medians over the slices of one series in one mode. */
struct summary {
	unsigned int n; /* slices */
	double value;
	double spread; /* half of what lies between the 10th and 90th percentile, relative */
	double gen_cost;
	double gen_busy;
	double distance;
};
struct summary slices_summary(const struct slices *s, unsigned int system, unsigned int param,
			      enum mode mode);

/* Median per series and mode of the slices of one frame size: table on stdout, rows to results. */
slices_report report_rates;
int report_json(json_t *results);
double median_of(double *v, unsigned int n); /* sorts v */
double quantile_of(const double *sorted, unsigned int n, double q);
/* How a frame size, the kind of guests and a parameter are called in results. */
const char *size_name(unsigned int size); /* valid until the next call */
json_t *size_json(unsigned int size);
const char *generator_name(const struct options *o);
/* Of parameter number `param`; "" where there are none. Valid until the next call. */
const char *param_text(const struct slice_ops *ops, unsigned int param);
/* A row of results with what all rows have. */
json_t *row_start(const struct options *o, const struct slice_ops *ops, unsigned int system,
		  unsigned int param, unsigned int size, enum mode mode);

/* ---- plot.c ---- */

/* Rate against frame size of all rows, in the state of the machine with most rows. */
int plot_write(const char *path, const json_t *results);

/* ---- scenarios ---- */
int vm2vm_run(const struct options *o, json_t *results);
int flood_run(const struct options *o, json_t *results);
int fdb_run(const struct options *o, json_t *results);
int rr_run(const struct options *o, json_t *results);
int load_run(const struct options *o, json_t *results);
int ndr_run(const struct options *o, json_t *results);
int attach_run(const struct options *o, json_t *results);
int gap_run(const struct options *o, json_t *results);
int nic_run(const struct options *o, json_t *results);
int state_run(const struct options *o, json_t *results);
int nic_prepare(const struct options *o);

#endif
