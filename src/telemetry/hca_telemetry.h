/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TELEMETRY_HCA_TELEMETRY_H
#define TELEMETRY_HCA_TELEMETRY_H

/*
 * DPDK telemetry: /softhca/... of the HCAs of this process, for whoever composes them. Answers come
 * from a thread of DPDK; the values of a running HCA may lag.
 */

#include <rte_telemetry.h>

#include "hca.h"

/* Memory of the caller, filled in before it is added and left alone until it is removed. */
struct hca_telemetry {
	struct hca_telemetry *next; /* of the registry */
	const char *name;
	struct hca *hca;
	/* Adds what is in use to a dictionary: for leak checks. */
	int (*usage)(void *arg, struct rte_tel_data *d);
	void *arg;
};

/* An HCA that is complete can be asked about until it is removed, before anything of it goes. */
void hca_telemetry_add(struct hca_telemetry *t);
/* Not added: nothing happens. */
void hca_telemetry_remove(struct hca_telemetry *t);

#endif
