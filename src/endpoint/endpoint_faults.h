/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENDPOINT_FAULTS_H
#define ENDPOINT_FAULTS_H

/*
 * Faults of an endpoint that runs: of frames in both directions, of its port, and of the GID table
 * that clients see. Set and read by commands of the telemetry socket (endpoint_admin.c), one at a
 * time; the main thread executes later steps.
 */

#include <stdint.h>

#include "admin_impair.h"

struct endpoint;
struct rte_tel_data;

/**
 * Carry out a command.
 *
 * @param peer  QPN of the peer of the QP that the command names, or 0
 * @return  0, or -ENOSPC: there is no room for the rule, nothing was changed
 */
int endpoint_faults_set(struct endpoint *e, const struct admin_impair *a, uint32_t peer);

/* A dictionary: the settings, their counts, the last faults. 0 or -ENOMEM. */
int endpoint_faults_tell(struct endpoint *e, struct rte_tel_data *d);

/* Main thread, now and then; now: CLOCK_MONOTONIC in ns. */
void endpoint_faults_watch(struct endpoint *e, uint64_t now);

#endif
