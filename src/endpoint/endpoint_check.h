/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENDPOINT_CHECK_H
#define ENDPOINT_CHECK_H

/*
 * Checks a valid configuration against this machine: a missing interface or group, CPUs that do not
 * exist, too little memory. `softhcad --check` and every start report all problems before anything
 * is created.
 */

#include <stdbool.h>
#include <stdio.h>

#include "endpoint_config.h"

/*
 * Write "PATH:LINE: key: ..." lines to out, marked "warning:" if the daemon can run nevertheless,
 * or, unless it is starting, could if others returned their share (hugepages). Returns the number
 * of errors.
 */
int endpoint_check(const struct endpoint_config *c, const char *path, bool starting, FILE *out);

/* The part that judges CPUs, with those that are given. */
int endpoint_check_cpus(const struct endpoint_config *c, const struct endpoint_cpus *cpus,
			const char *path, FILE *out);

#endif
