/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APPS_PERF_PERF_OPTIONS_H
#define APPS_PERF_PERF_OPTIONS_H

/* Shared by the two files of the command line. One thread. */

#include "perf.h"

/*
 * Prints a complaint, with the options as the user has written them, unless perf_options_check()
 * asks. Returns -EINVAL.
 */
int perf_options_bad(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Fills in the defaults. 0, or -EINVAL after perf_options_bad(). */
int perf_options_judge(struct perf_options *opt);

#endif
