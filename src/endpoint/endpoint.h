/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENDPOINT_H
#define ENDPOINT_H

/*
 * An HCA on a real port, for the processes of a machine: the composition of softhcad. Puts
 * together the EAL, a DPDK port, the device with its worker threads, the driver, its addresses and
 * whatever serves clients, and keeps them running.
 *
 * One endpoint per process (the EAL is). Callers: the main thread creates, runs and destroys.
 * Errors: 0 or negative errno, with a sentence from endpoint_reason().
 */

#include "endpoint_config.h"

struct endpoint;
struct hca_driver;

/* Everything runs when this has returned 0. Signals should be blocked before (endpoint_run). */
int endpoint_create(const struct endpoint_config *config, struct endpoint **out);

/*
 * Watches the link and the signals until SIGTERM or SIGINT. Blocks these and SIGHUP for itself:
 * they must be blocked in every thread.
 */
int endpoint_run(struct endpoint *e);

/* Clients hear of it first; then everything goes in reverse order. Leaves no file behind. */
void endpoint_destroy(struct endpoint *e);

/* Why endpoint_create() failed; never NULL. */
const char *endpoint_reason(void);

/* For clients inside the process */
struct hca_driver *endpoint_driver(struct endpoint *e);

#endif
