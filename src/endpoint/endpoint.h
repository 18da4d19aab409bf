/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENDPOINT_H
#define ENDPOINT_H

/*
 * An HCA on a real port for the processes of a machine, for softhcad. Creates the EAL, a DPDK port,
 * the device with its worker threads, the driver, its addresses and the services for clients, and
 * runs them.
 *
 * There is one endpoint per process, because there is one EAL. The main thread creates, runs and
 * destroys it. Errors are 0 or a negative errno; endpoint_reason() explains them.
 */

#include "endpoint_config.h"

struct endpoint;
struct hca_driver;

/* Create and start everything. Block signals before this call (see endpoint_run). */
int endpoint_create(const struct endpoint_config *config, struct endpoint **out);

/*
 * Watch the link and wait for signals; returns 0 after SIGTERM or SIGINT. It takes these and SIGHUP
 * by signalfd, so all threads must have them blocked.
 */
int endpoint_run(struct endpoint *e);

/* Tell the clients, then stop everything in reverse order and remove all files. */
void endpoint_destroy(struct endpoint *e);

/* The reason why endpoint_create() failed; never NULL. */
const char *endpoint_reason(void);

#endif
