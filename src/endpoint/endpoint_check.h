/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENDPOINT_CHECK_H
#define ENDPOINT_CHECK_H

/*
 * What a good configuration file may still get wrong on this machine: an interface or a group that
 * is not there, CPUs it does not have, memory that cannot hold what the file asks for. `softhcad
 * --check` and every start say all of it before anything is made.
 */

#include <stdio.h>

#include "endpoint_config.h"

/*
 * Lines "PATH:LINE: key: ..." to out, with "warning:" where the daemon would run. Returns the
 * errors.
 */
int endpoint_check(const struct endpoint_config *c, const char *path, FILE *out);

#endif
