/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_WIRE_OPS_H
#define ENGINE_WIRE_OPS_H

/*
 * A wire is a row: struct hca_wire_ops names everything by which one protocol on the port differs
 * from another. The table of rows is src/device/wireops. hca_create() puts the rows of a device
 * into hca_core.wire, by enum hca_wire; NULL: the device does not have that wire. Stages, the CEU
 * and the composition walk that table (HCA_WIRES_IN_USE) and do not name a wire.
 *
 * RoCE's stages exist on every device, and functions of RoCE are called directly where a call
 * through the row would cost instructions of each message. RoCE's row names the same functions.
 *
 * The stages of all wires stand in one list (core/stage.h), as do edges (edge.h), channels (msg.h)
 * and kinds of objects (object.h), because their numbers index arrays. A function that a wire does
 * not need is NULL, unless stated otherwise.
 */

#include <stdbool.h>
#include <stdint.h>

#include "abi_service.h"
#include "core/core.h"
#include "ctxmgt/qp.h"
#include "engine/edge.h"
#include "engine/object.h"

struct hca_cmd;
struct hca_decap;
struct hca_mbox_dev_lim;
struct hca_parser_visit;
struct hca_qp_change;
struct hca_qp_room;
struct hca_qp_shape;
struct hca_qpc;
struct hca_srqc;
struct hca_wire_view;
struct rte_mbuf;

/* An edge that exists where the wire does. */
struct hca_wire_edge {
	uint8_t edge; /* enum hca_edge_id */
	hca_stage_process_fn process;
	hca_stage_room_fn room;
};

/* A command of the register that a device has with this wire; HCA_CMD_LIST has its row. */
struct hca_wire_command {
	uint16_t opcode;
	int (*run)(struct hca_core *h, struct hca_cmd *c); /* as hca_cmd_fn */
};

/*
 * Objects of the wire that are no QPs, by index among those of their kind. The driver owns them,
 * so they end with all domains. CEU only.
 */
struct hca_wire_object {
	uint8_t kind;	 /* enum hca_object_kind */
	uint32_t stages; /* those that keep state of it, a bit each */
	bool (*is_live)(const struct hca_core *h, uint32_t i);
	/* It works no longer; its numbers and memory stay until free, which follows a round. */
	void (*reset)(struct hca_core *h, uint32_t i);
	void (*free)(struct hca_core *h, uint32_t i);
	/* Clients of this domain use it no longer. The caller makes the round. */
	void (*leave)(struct hca_core *h, uint32_t i, uint32_t domain);
	/* The neighbour has another MAC address. */
	void (*follow)(struct hca_core *h, uint32_t i, const uint8_t gid[16], uint16_t vlan,
		       const uint8_t mac[6]);
	/*
	 * It has the HCA's algorithm of congestion control from now on: its headers get the ECN
	 * field of that, and its stages ask again. NULL: nothing controls such objects.
	 */
	void (*control)(struct hca_core *h, uint32_t i);
};

/* Shared receive queues that peers name in their requests (HCA_SRQC_JFR). CEU only. */
struct hca_wire_jfr {
	bool (*ok)(const struct hca_srqc *m);
	void (*open)(struct hca_core *h, uint32_t index, const struct hca_srqc *m);
	/* Adds its fields to the context. */
	void (*image)(const struct hca_core *h, uint32_t index, struct hca_srqc *out);
	/* No request finds it from here on; the caller makes a round, then close. */
	void (*hide)(struct hca_core *h, uint32_t srqn);
	void (*close)(struct hca_core *h, uint32_t index);
};

/* Values of a QP that other wires do not have. */
struct hca_wire_values {
	const char *const *name;
	unsigned int n;
	/* Reads them, in the order of the names. Any thread; the QP may change meanwhile. */
	void (*read)(const struct hca_qp *qp, uint64_t *values);
};

struct hca_wire_ops {
	const char *name; /* as in hca_wire_names */
	uint8_t wire;	  /* enum hca_wire; HCA_WIRE_TEST: a row that a test adds */

	/* ---- composition ---- */

	/*
	 * Those that keep state of its QPs, a bit each, without the parser and the timer; 0: it has
	 * no QPs. Each has a channel to the parser for STATE, records_to also for FREED.
	 */
	uint32_t qp_stages;
	/* the stage that takes records of its QPs from the parser; that has their timeouts */
	uint8_t records_to, timeouts_to;
	/* the stage that flushes receives of its QPs: it gets the doorbell KICK */
	uint8_t receives_to;
	const struct hca_wire_edge *edges;
	unsigned int num_edges;
	/* Fills in sizes that are 0. */
	void (*defaults)(struct hca_config *c);
	/*
	 * Memory of a device, before it has edges and stages: 0 or a negative errno. destroy
	 * accepts the state that a failed create leaves.
	 */
	int (*create)(struct hca_pipe *h);
	void (*destroy)(struct hca_pipe *h);

	/* ---- WQEs: the parser, see requester/parser_visit.h; it has RoCE's itself ---- */

	/* opcodes of its WQEs, a bit each; those of RoCE are accepted of each service */
	uint32_t wqe_ops;
	/* Makes records of at most quota WQEs that have the usual form; returns how many. */
	unsigned int (*parse_run)(struct hca_pipe *h, struct hca_parser_visit *v,
				  unsigned int quota);
	/*
	 * Makes the record of one WQE of any form, also of a wrong one. copy: the WQE. Returns the
	 * record, or HCA_RECREF_NONE and the pool that has none in v->wanted.
	 */
	uint32_t (*parse)(struct hca_pipe *h, struct hca_parser_visit *v, const uint8_t *copy);
	/* records_to gets the message STATE when a QP in ERR has no WQE left. */
	bool wants_parsed;

	/* ---- frames: decap, see frame/decap.h ---- */

	/*
	 * Adds the first frames of m[0..n) that have the usual form to the burst, with descriptor
	 * and span of the ICRC; returns how many those are. NULL: no form is usual.
	 */
	unsigned int (*take)(struct hca_decap *d, struct rte_mbuf **m, unsigned int n);
	/*
	 * Adds one frame of any form to the burst, or drops it. v: filled in by hca_wire_parse(),
	 * which has returned rc. False: it is not a frame of this wire.
	 */
	bool (*describe)(struct hca_pipe *h, struct hca_decap *d, struct rte_mbuf *m,
			 const struct hca_wire_view *v, int rc);
	/* Checks frames from .. to - 1 of the burst, all of this wire; passes on or drops each. */
	void (*judge)(struct hca_pipe *h, struct hca_decap *d, unsigned int from, unsigned int to);

	/* ---- commands: on the CEU's lcore ---- */

	uint32_t caps; /* HCA_CAP_* of a device with this wire */
	const struct hca_wire_command *commands;
	unsigned int num_commands;
	/* Its fields of QUERY_DEV_LIM. */
	void (*limits)(const struct hca_core *h, struct hca_mbox_dev_lim *m);
	const struct hca_wire_object *object;
	const struct hca_wire_jfr *jfr;
	/* Whether it may be the number of a QP of its services. NULL: all numbers may. */
	bool (*qpn_ok)(uint32_t qpn);
	/* Whether the attributes of a QP are right. NULL: those of RoCE are judged. */
	bool (*qp_ok)(const struct hca_qp_change *ch);
	/* Flags of a QPC (HCA_QPC_*) that its QPs keep from RST2INIT on, besides those of all. */
	uint32_t qp_flags;
	/* The PD of its QPs is of their domain; else it may be another client's (HCA_HAS_SQ). */
	bool qp_in_domain;
	/*
	 * Memory of a QP at RST2INIT (ceu/qp_shape.h), not NULL if it has QPs: adds its bytes to a
	 * room of zeros; then fills in its members of the QP, where only the parser's are set.
	 */
	void (*qp_room)(const struct hca_qp_shape *s, struct hca_qp_room *room);
	void (*qp_fill)(struct hca_qp *qp, const struct hca_qp_shape *s, uint8_t *front,
			uint8_t *back);
	/* Attributes of mask that are in lines of its stages; not NULL if it has QPs. */
	void (*qp_apply)(struct hca_qp *qp, const struct hca_qpc *q, uint32_t mask);
	/* QUERY_QP of one in ERR: it has requests that are not flushed. NULL: it does not say. */
	bool (*qp_flushing)(const struct hca_qp *qp);
	/* The number that the next packet or segment will have; not NULL if it has QPs. */
	uint32_t (*qp_next)(const struct hca_qp *qp);
	/* A QP of its services is made; is reset, before the rounds; is freed, after them. */
	void (*qp_open)(struct hca_core *h, uint32_t qpi, const struct hca_qpc *image);
	void (*qp_reset)(struct hca_core *h, uint32_t qpi);
	void (*qp_close)(struct hca_core *h, uint32_t qpi);
	/* A memory key ends. The caller makes the round. */
	void (*key_gone)(struct hca_core *h, uint32_t mpt);

	/* ---- counters: any thread ---- */

	/* the beginning of the names of its counters (core/counters.h); NULL: it has none alone */
	const char *counters;
	/* Packets that a QP of its services has received as answers; not NULL if it has QPs. */
	uint64_t (*qp_answers)(const struct hca_qp *qp);
	const struct hca_wire_values *qp_values;
};

/* The rows of the device's wires: HCA_WIRES_IN_USE(h, w) { ... w->... }, h a core or a pipe. */
#define HCA_WIRES_IN_USE(h, w) \
	for (unsigned int i_##w = 0; i_##w < HCA_WIRE_ROWS; i_##w++) \
		for (const struct hca_wire_ops *w = (h)->wire[i_##w]; w != NULL; w = NULL)

/* Services of RoCE, a bit each: a constant, because the parser asks for each message. */
#define HCA_SERVICE_BIT(name, ...) | 1u << HCA_ST_##name
#define HCA_ROCE_SERVICES (0u HCA_SERVICE_LIST(HCA_SERVICE_BIT))

/* The wire of the QPs of a service; HCA_WIRE_NONE: the device has none for it. */
static inline uint32_t
hca_service_wire(const struct hca_core *h, uint32_t service)
{
	return likely(HCA_ROCE_SERVICES >> service & 1) ? HCA_WIRE_ROCE : h->service_wire[service];
}

/* Its row; NULL: none. */
static inline const struct hca_wire_ops *
hca_wire_of_service(const struct hca_core *h, uint32_t service)
{
	return h->wire[hca_service_wire(h, service)];
}

/* The same for the parser, which has RoCE's functions itself: NULL for RoCE. */
static inline const struct hca_wire_ops *
hca_other_wire(const struct hca_core *h, uint32_t service)
{
	uint32_t wire = hca_service_wire(h, service);

	return likely(wire == HCA_WIRE_ROCE) ? NULL : h->wire[wire];
}

static inline const struct hca_wire_ops *
hca_wire_of_qp(const struct hca_core *h, const struct hca_qp *qp)
{
	return hca_wire_of_service(h, qp->cfg.service);
}

#endif
