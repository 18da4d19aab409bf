/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TELEMETRY_TELEMETRY_IMPL_H
#define TELEMETRY_TELEMETRY_IMPL_H

/*
 * The commands and their helpers. Object lists are read piecewise, because an answer of DPDK holds
 * at most 16 KiB and its arrays only plain values. An answer is a dictionary of objects by
 * ascending index; the next request names the index to start from, and an empty answer ends the
 * list.
 */

#include "hca_telemetry.h"

#define TELEMETRY_VALUES_MAX 256u

/* NAME[,NUMBER]; without a name the first HCA is meant. */
struct telemetry_request {
	const struct hca_telemetry *t;
	uint64_t number;
	bool has_number;
};

/*
 * X(function, path, help). Functions run with the registry locked and return 0 or a negative errno.
 */
#define TELEMETRY_COMMANDS(X) \
	X(hca_list, "/softhca/hca/list", "Names of the HCAs of this process") \
	X(hca_counters, "/softhca/hca/counters", "Counters of an HCA. Parameters: NAME") \
	X(port_list, "/softhca/port/list", "Ports of an HCA. Parameters: NAME") \
	X(port_counters, "/softhca/port/counters", \
	  "Frames, bytes and drops of a port. Parameters: NAME[,PORT]") \
	X(qp_list, "/softhca/qp/list", "QPNs, 512 at most. Parameters: NAME[,SKIP]") \
	X(qp_counters, "/softhca/qp/counters", "Counters of a QP. Parameters: NAME,QPN") \
	X(stages, "/softhca/stages", \
	  "Worker of each stage, what waits for it; polls and cycles while measured. " \
	  "Parameters: NAME") \
	X(measure, "/softhca/measure", \
	  "Measure polls and cycles of the stages from now on, or no more. Parameters: NAME,1|0") \
	X(usage, "/softhca/usage", "Objects in use of an HCA and its driver. Parameters: NAME") \
	X(status, "/softhca/status", "Port, layout and limits of an HCA. Parameters: NAME") \
	X(qps, "/softhca/qps", "QPs, with their counters. Parameters: NAME[,FIRST_INDEX]") \
	X(mrs, "/softhca/mrs", "Memory regions and windows. Parameters: NAME[,FIRST_INDEX]") \
	X(gids, "/softhca/gids", "GID table. Parameters: NAME[,FIRST_INDEX]") \
	X(clients, "/softhca/clients", "Clients and what they have. Parameters: NAME[,FIRST_INDEX]")

#define X(fn, path, text) \
	int telemetry_##fn(const struct telemetry_request *r, struct rte_tel_data *d);
TELEMETRY_COMMANDS(X)
#undef X

/* The head of the list of HCAs (the one added last). */
const struct hca_telemetry *telemetry_first(void);

/* A dictionary under construction; the first error is kept. */
struct telemetry_dict {
	struct rte_tel_data *d;
	int rc;
};

void telemetry_put(struct telemetry_dict *t, const char *name, uint64_t value);
/* Add a string, cut to the length that telemetry supports. */
void telemetry_put_text(struct telemetry_dict *t, const char *name, const char *text);
void telemetry_put_values(struct telemetry_dict *t, unsigned int n,
			  const char *(*name)(unsigned int i), const uint64_t *values);

/* Begin an object of a list: a nested dictionary with its index as name. */
void telemetry_begin(struct telemetry_dict *t);
int telemetry_end(struct telemetry_dict *t, struct rte_tel_data *list, uint32_t index);

#endif
