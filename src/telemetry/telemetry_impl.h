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
	X(hca_counters, "/softhca/hca/counters", \
	  "Counters of an HCA, without those of UB. Parameters: NAME") \
	X(ub_counters, "/softhca/ub/counters", "Counters of UB. Parameters: NAME") \
	X(ub_agent, "/softhca/ub/agent", \
	  "Counters of the setting up of UB's channels. Parameters: NAME") \
	X(port_list, "/softhca/port/list", "Ports of an HCA. Parameters: NAME") \
	X(port_counters, "/softhca/port/counters", \
	  "Frames, bytes and drops of a port. Parameters: NAME[,PORT]") \
	X(qp_list, "/softhca/qp/list", "QPNs, 512 at most. Parameters: NAME[,SKIP]") \
	X(qp_counters, "/softhca/qp/counters", "Counters of a QP. Parameters: NAME,QPN") \
	X(stages, "/softhca/stages", \
	  "Worker of each stage of a pipeline, what waits for it; polls and cycles while " \
	  "measured. Parameters: NAME[,PIPELINE]") \
	X(measure, "/softhca/measure", \
	  "Measure polls and cycles of the stages from now on, or no more. Parameters: NAME,1|0") \
	X(usage, "/softhca/usage", "Objects in use of an HCA and its driver. Parameters: NAME") \
	X(status, "/softhca/status", "Port, layout and limits of an HCA. Parameters: NAME") \
	X(findings, "/softhca/findings", "What is wrong, the worst first. Parameters: NAME") \
	X(qps, "/softhca/qps", "QPs, with their counters. Parameters: NAME[,FIRST_INDEX]") \
	X(jettys, "/softhca/jettys", \
	  "Jettys and JFSs of UB, with their counters. Parameters: NAME[,FIRST_INDEX]") \
	X(tps, "/softhca/tps", "TPs of UB, with their counters. Parameters: NAME[,FIRST_INDEX]") \
	X(cm, "/softhca/cm", \
	  "Ids and connections of connection management. Parameters: NAME[,FIRST_INDEX]") \
	X(cm_counters, "/softhca/cm/counters", \
	  "Counters of connection management. Parameters: NAME") \
	X(cm_refusals, "/softhca/cm/refusals", \
	  "What connection management refused programs: how often, the last. Parameters: NAME[,FIRST]") \
	X(mrs, "/softhca/mrs", "Memory regions and windows. Parameters: NAME[,FIRST_INDEX]") \
	X(gids, "/softhca/gids", "GID table. Parameters: NAME[,FIRST_INDEX]") \
	X(clients, "/softhca/clients", "Clients and what they have. Parameters: NAME[,FIRST_INDEX]")

#define X(fn, path, text) \
	int telemetry_##fn(const struct telemetry_request *r, struct rte_tel_data *d);
TELEMETRY_COMMANDS(X)
#undef X

/* The head of the list of HCAs (the one added last). */
const struct hca_telemetry *telemetry_first(void);

/* Findings of an HCA, the worst first; returns their number. */
unsigned int telemetry_judge(const struct hca_telemetry *t, struct finding out[FINDINGS_MAX]);

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

const char *telemetry_name_in(const char *const *names, unsigned int n, uint32_t i);
const char *telemetry_service_name(uint32_t service);
const char *telemetry_qp_state_name(uint32_t state);
/* Add the algorithm, and its limits that are not 0. */
void telemetry_put_congestion(struct telemetry_dict *t, const struct hca_congestion_limits *l);
/* Add a GID as an IP address; IPv4 if it is mapped. */
void telemetry_put_ip(struct telemetry_dict *t, const char *name, const uint8_t gid[16]);
/* Begin an answer that lists objects from the requested index (*from). */
int telemetry_begin_list(const struct telemetry_request *r, struct rte_tel_data *d, uint32_t *from);

/* QPs, or Jettys and JFSs, with indexes from `from` on; returns how many of at most max. */
unsigned int telemetry_list_queues(struct hca_driver *drv, uint32_t from, bool ub,
				   struct hca_driver_qp_info *out, unsigned int max);

/* A command that lists objects: at most `max` of those that list() returns, each by add(). */
#define TELEMETRY_LIST(name, type, max, list, add) \
	int name(const struct telemetry_request *r, struct rte_tel_data *d) \
	{ \
		type info[max]; \
		unsigned int n = 0; \
		uint32_t from; \
		int rc = telemetry_begin_list(r, d, &from); \
\
		if (rc == 0) \
			n = list(r->t->drv, from, info, max); \
		for (unsigned int i = 0; i < n && rc == 0; i++) \
			rc = add(r->t, &info[i], d); \
		return rc; \
	}

#endif
