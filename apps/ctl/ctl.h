/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_CTL_H
#define CTL_CTL_H

/*
 * What the commands of softhca-ctl share: the command line, the processes that are asked over DPDK's
 * telemetry socket, and how answers are printed. One thread. Functions that return int: 0 or -1 with
 * a sentence on stderr, unless said otherwise.
 */

#include <getopt.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CTL_PROCESSES_MAX 64u

enum {
	CTL_EXIT_FAILED = 1,
	CTL_EXIT_USAGE = 2
};

/* A process with a telemetry socket */
struct ctl_process {
	char prefix[64]; /* DPDK's file prefix: the name of a daemon's HCA */
	char path[108];
	int fd;		/* -1: lost */
	size_t longest; /* of an answer */
	char *answer;
};

/* The command line */
struct ctl {
	const char *prefix; /* NULL: whatever runs */
	const char *hca;    /* NULL: all */
	bool json;
	const char *const *words; /* behind the options */
	int num_words;
};

void ctl_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- command line (softhca_ctl.c) ---- */

/*
 * Reads the options that every command has, and its own: table ends with a zero, codes from 256 on
 * go to take(arg, code, value), which returns 0 or -1 (said). Returns 0, or CTL_EXIT_USAGE.
 */
int ctl_options(struct ctl *c, int argc, char **argv, const struct option *own,
		int (*take)(void *arg, int code, const char *value), void *arg);
/* A number within [min, max] with nothing behind it. */
int ctl_number(const char *option, const char *text, double min, double max, double *out);

/* Seconds of the monotonic clock; sleeping, which a signal ends early. */
double ctl_now(void);
void ctl_wait(double seconds);

/* SIGINT, SIGTERM and SIGHUP end nothing from here on; have they come? */
void ctl_catch_signals(void);
bool ctl_stopped(void);

/* A command: returns the exit status of the program. */
typedef int (*ctl_run_fn)(struct ctl *c, int argc, char **argv);

int ctl_run_counters(struct ctl *c, int argc, char **argv);
int ctl_run_top(struct ctl *c, int argc, char **argv);
int ctl_run_capture(struct ctl *c, int argc, char **argv);
int ctl_run_impair(struct ctl *c, int argc, char **argv);
int ctl_run_doctor(struct ctl *c, int argc, char **argv);

/* ---- processes (ctl_telemetry.c) ---- */

/* Sockets there are; those nobody listens on are left out and counted in *stale (or NULL). */
unsigned int ctl_find(const struct ctl *c, struct ctl_process *out, unsigned int max,
		      unsigned int *stale);
void ctl_close(struct ctl_process *p, unsigned int n);
/* The only process the command line can mean; says why there is none. */
int ctl_one(const struct ctl *c, struct ctl_process *out);
/* The only HCA it can mean: name of at most `size` bytes. */
int ctl_one_hca(const struct ctl *c, struct ctl_process *p, char *name, size_t size);

/* The answer, or NULL when it was refused or the process is gone. */
json_t *ctl_ask(struct ctl_process *p, const char *command, const char *parameters);
json_t *ctl_ask_about(struct ctl_process *p, const char *command, const char *hca,
		      const char *more);
/* A list that is read piecewise, whole. */
json_t *ctl_ask_list(struct ctl_process *p, const char *command, const char *hca);

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
