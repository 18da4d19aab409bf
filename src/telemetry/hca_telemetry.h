/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TELEMETRY_HCA_TELEMETRY_H
#define TELEMETRY_HCA_TELEMETRY_H

/*
 * DPDK telemetry of the HCAs of this process: the commands /softhca/..., which softhca-ctl and
 * dpdk-telemetry.py use. Commands cannot be unregistered, so they are registered once and look up
 * HCAs by name, under a lock that keeps an HCA registered while it is read. Like DPDK's, the
 * registry is global to the process; the device does not use it.
 *
 * Any thread may add and remove HCAs. A DPDK thread answers, from atomic words, which may lag, and
 * from the driver under its lock.
 */

#include <stdbool.h>
#include <stddef.h>

#include <rte_telemetry.h>

#include "driver.h"
#include "finding.h"
#include "hca.h"

struct ibagent;

/* A client, if the composition has its process */
struct hca_telemetry_client {
	int pid;
	uint32_t uid;
	uint64_t attached; /* bytes of attached memory */
	uint64_t requests;
	/*
	 * number of times its doorbells were ignored for 100 ms because it woke workers without
	 * need
	 */
	uint64_t muted;
};

/*
 * Memory of the caller, filled in before hca_telemetry_add() and not changed until
 * hca_telemetry_remove(). Members the composition does not have are NULL or 0.
 */
struct hca_telemetry {
	struct hca_telemetry *next; /* used by the registry */
	const char *name;
	struct hca *hca;
	struct hca_driver *drv;
	struct ibagent *cm; /* connection management */
	const char *layout;
	const char *device; /* of the port */
	const char *socket; /* the control socket */
	uint32_t mtu;	    /* of IP packets */
	/* Adds the composition's objects in use to a dictionary, for leak checks. */
	int (*usage)(void *arg, struct rte_tel_data *d);
	/* Describes the client of a UAR page; false: unknown. May be NULL. */
	bool (*client)(void *arg, uint32_t uar_page, struct hca_telemetry_client *out);
	/* health: "well" or the trouble; cpu: "enough" or the shortage. May be NULL. */
	void (*health)(void *arg, char *health, size_t health_size, char *cpu, size_t cpu_size);
	/* Findings, the worst first. NULL: the counters since its start are judged. */
	unsigned int (*findings)(void *arg, struct finding out[FINDINGS_MAX]);
	void *arg;
};

/* Register an HCA that is completely set up. */
void hca_telemetry_add(struct hca_telemetry *t);
/* Remove an HCA, before any part of it is destroyed. Does nothing if it is not registered. */
void hca_telemetry_remove(struct hca_telemetry *t);

#endif
