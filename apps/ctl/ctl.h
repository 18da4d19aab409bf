/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_CTL_H
#define CTL_CTL_H

/*
 * Shared by the commands of softhca-ctl: the command line, the processes that are queried over
 * DPDK's telemetry socket, and the output of answers. One thread. Functions that return int: 0 or
 * -1 with a sentence on stderr, unless said otherwise.
 */

#include <getopt.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CTL_PROCESSES_MAX 64u
#define CTL_GREETING_S 1.5 /* a stopped process is not waited for any longer */
#define CTL_TIMEOUT_S 10.0 /* nor one that runs, or has no CPU */

enum {
	CTL_EXIT_FAILED = 1,
	CTL_EXIT_USAGE = 2
};

/* A process with a telemetry socket */
struct ctl_process {
	char prefix[64]; /* DPDK's file prefix: the name of a daemon's HCA */
	char path[108];
	int fd;		/* -1: lost */
	int pid;	/* 0: not known */
	double waited;	/* s: it did not greet */
	bool stopped;	/* of waited: by a signal or a debugger */
	size_t longest; /* of an answer */
	char *answer;
};

/* The command line */
struct ctl {
	const char *prefix; /* NULL: whatever runs */
	const char *hca;    /* NULL: all */
	bool json;
	const char *const *words; /* after the options */
	int num_words;
	double timeout_s; /* limit of the wait for an answer; 0: CTL_TIMEOUT_S */
};

void ctl_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- command line (softhca_ctl.c) ---- */

/*
 * Reads the options that every command has, and its own: table ends with a zero, codes from 256 on
 * go to take(arg, code, value), which returns 0 or -1 (said). Returns 0, or CTL_EXIT_USAGE.
 */
int ctl_options(struct ctl *c, int argc, char **argv, const struct option *own,
		int (*take)(void *arg, int code, const char *value), void *arg);
/* Parses a whole string as a number within [min, max]. */
int ctl_number(const char *option, const char *text, double min, double max, double *out);
/* The value of --dir: in, out or both. */
int ctl_direction(const char *text);

/* Seconds of the monotonic clock; sleeping, which a signal ends early. */
double ctl_now(void);
void ctl_wait(double seconds);

/* SIGINT, SIGTERM and SIGHUP end nothing from here on; have they come? */
void ctl_catch_signals(void);
bool ctl_stopped(void);

/* A command, each in a file of its own: returns the exit status of the program. */
typedef int (*ctl_run_fn)(struct ctl *c, int argc, char **argv);

int ctl_run_counters(struct ctl *c, int argc, char **argv);
int ctl_run_metrics(struct ctl *c, int argc, char **argv);
int ctl_run_top(struct ctl *c, int argc, char **argv);
int ctl_run_capture(struct ctl *c, int argc, char **argv);
int ctl_run_impair(struct ctl *c, int argc, char **argv);
int ctl_run_ping(struct ctl *c, int argc, char **argv);
int ctl_run_set(struct ctl *c, int argc, char **argv);
int ctl_run_doctor(struct ctl *c, int argc, char **argv);
int ctl_run_devices(struct ctl *c, int argc, char **argv);

/* ---- processes (ctl_telemetry.c) ---- */

/* Result of a search in addition to the processes that answer */
struct ctl_others {
	unsigned int stale, hung;
	struct ctl_process hanging[CTL_PROCESSES_MAX]; /* no descriptors in it */
	char prefixes[512]; /* of processes that --prefix leaves out: "a, b" */
};

/*
 * Processes that answer and --prefix admits. *others: sockets without a listener, and processes
 * that accept a connection and do not greet: stopped ones within CTL_GREETING_S, others within
 * CTL_TIMEOUT_S. Takes no longer than that, except where DPDK rejects callers because it serves
 * others.
 */
unsigned int ctl_find(const struct ctl *c, struct ctl_process *out, unsigned int max,
		      struct ctl_others *others);
void ctl_close(struct ctl_process *p, unsigned int n);
/* The sentence about a process that hangs; a static buffer. */
const char *ctl_hangs(const struct ctl_process *p);
/* That on stderr for each of them. */
void ctl_name_hanging(const struct ctl_others *others);
/* Says that no HCA was found, and which --prefix there is. */
void ctl_none(const struct ctl *c, const char *what, const struct ctl_others *others);
/* The only process that the command line can mean; prints the reason if none is. */
int ctl_one(const struct ctl *c, struct ctl_process *out);
/* The same with the only HCA it can mean: name of at most `size` bytes. */
int ctl_one_hca(const struct ctl *c, struct ctl_process *out, char *name, size_t size);

/* The answer, or NULL when it was refused or the process is gone. */
json_t *ctl_ask(struct ctl_process *p, const char *command, const char *parameters);
/* The same for a command whose refusals are sentences: NULL after the sentence was printed. */
json_t *ctl_order(struct ctl_process *p, const char *command, const char *parameters);
json_t *ctl_ask_about(struct ctl_process *p, const char *command, const char *hca,
		      const char *more);
/* The stages of all pipelines by name; those of pipeline N > 0 as "name.N". NULL: no answer. */
json_t *ctl_ask_stages(struct ctl_process *p, const char *hca);
/* A list that is read piecewise, whole. */
json_t *ctl_ask_list(struct ctl_process *p, const char *command, const char *hca);

/* All counters of an HCA and of the parts around it, in one object (ctl_counters.c). */
json_t *ctl_gather_counters(struct ctl_process *p, const char *hca);

/* ---- printing (ctl_table.c) ---- */

enum ctl_format {
	CTL_TEXT,
	CTL_NUMBER,
	CTL_HEX,
	CTL_BYTES,   /* 4 Ki, 2.0 Mi */
	CTL_RATE,    /* 12.3 k, 1.25 G */
	CTL_PERCENT, /* of a real 0..1 */
};

struct ctl_column {
	const char *key, *title;
	enum ctl_format format;
};

/* rows: an array of objects. A member that is missing prints as "-". */
void ctl_table(FILE *out, const struct ctl_column *columns, unsigned int n, const json_t *rows);
/* Name and value of every member, a line each. */
void ctl_members(FILE *out, const json_t *object);
/* As JSON, with a newline. */
void ctl_json(FILE *out, const json_t *value);
/* The same in one line, flushed: for commands that keep printing. */
void ctl_json_line(FILE *out, const json_t *value);
/*
 * The frame of every answer in JSON: {"process", "hca", "time", name: value}; process and hca may
 * be NULL, time is UTC with milliseconds. Takes the reference to value.
 */
json_t *ctl_frame(const char *process, const char *hca, const char *name, json_t *value);
/* An answer about an HCA in this frame, or its members as text. Takes the reference. */
void ctl_show(const struct ctl *c, const char *process, const char *hca, const char *name,
	      json_t *answer);

/* ---- commands that print one answer (ctl_lists.c) ---- */

struct ctl_view {
	const char *name;
	json_t *(*gather)(struct ctl_process *p, const char *hca);
	void (*print)(const json_t *answer);
};
extern const struct ctl_view ctl_views[];
extern const unsigned int ctl_views_count;
int ctl_run_view(struct ctl *c, const struct ctl_view *v, int argc, char **argv);

#endif
