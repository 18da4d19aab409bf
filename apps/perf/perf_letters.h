/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APPS_PERF_PERF_LETTERS_H
#define APPS_PERF_PERF_LETTERS_H

/* The options of perftest: those that softhca-perf takes, and its messages for the others. */

/* The letter of an option of softhca-perf, or 0; and the reverse, for a letter that there is. */
char perf_letter_of(const char *name);
const char *perf_name_of(char letter);
/* Why an option of perftest is not taken, and its replacement; NULL: no option of perftest. */
const char *perf_letter_refused(char letter);
const char *perf_long_refused(const char *name);

#endif
