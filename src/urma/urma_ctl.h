/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef URMA_CTL_H
#define URMA_CTL_H

/*
 * Operations of the driver that this library uses in addition to those of verbs objects. A table,
 * so that tests have a driver of their own. Each function returns 0 or a negative errno with the
 * reason set.
 */

#include "abi_tp.h"
#include "lib_types.h"

/* A Jetty or, without receive queue, a JFS. */
struct urma_ctl_jetty {
	uint64_t sq_addr, rq_addr; /* buffers; rq_addr 0: it has none */
	uint32_t pdn;
	uint32_t send_cqn, recv_cqn;
	uint32_t srqn;	     /* of the JFR it shares, with share_jfr */
	uint32_t token;	     /* with check_token: the value that senders must have */
	uint32_t well_known; /* asked for: 32..1023; 0: none */
	uint8_t log_sq, log_sq_stride, log_rq, log_rq_stride;
	uint8_t priority, rnr_retry, err_timeout, min_rnr_timer;
	bool is_jfs, share_jfr, check_token, error_suspend;
	bool one_peer; /* bind_jetty() says which */
};

/* A Jetty as the device has it. */
struct urma_ctl_state {
	uint32_t state; /* urma_jetty_state_t */
	bool flushed;	/* in ERROR: FLUSH_DONE was written */
	/* how many requests it has read and receives it has used, modulo 65536 */
	uint16_t sent, received;
};

struct urma_ctl_jfr {
	uint64_t addr;
	uint32_t pdn, cqn;
	uint32_t token;
	uint32_t well_known;
	uint8_t log_size, log_stride, max_sge, min_rnr_timer;
	bool check_token;
};

struct urma_ctl_token {
	uint32_t lkey;	/* of the region */
	uint32_t flags; /* HCA_TOKEN_* */
	uint32_t value[2];
};

/* A peer: channels from the address of index gid_index to eid. */
struct urma_ctl_peer {
	uint8_t eid[16];
	uint32_t gid_index;
};

struct urma_ctl {
	/* *number: its QPN or SRQN */
	int (*create_jetty)(struct lib_context *ctx, const struct urma_ctl_jetty *request,
			    uint32_t *number);
	int (*modify_jetty)(struct lib_context *ctx, uint32_t number, uint32_t state);
	int (*query_jetty)(struct lib_context *ctx, uint32_t number, struct urma_ctl_state *now);
	int (*destroy_jetty)(struct lib_context *ctx, uint32_t number);
	/* Its one peer, the Jetty tc of the host eid; HCA_TC_NONE: no peer any more */
	int (*bind_jetty)(struct lib_context *ctx, uint32_t number, const uint8_t eid[16],
			  uint32_t tc);
	int (*create_jfr)(struct lib_context *ctx, const struct urma_ctl_jfr *request,
			  uint32_t *number);
	int (*arm_jfr)(struct lib_context *ctx, uint32_t number, uint32_t threshold);
	int (*destroy_jfr)(struct lib_context *ctx, uint32_t number);
	int (*set_token)(struct lib_context *ctx, const struct urma_ctl_token *request);
	/* Waits for channels. *number: to be given back; *tpg: where requests to the peer go */
	int (*import_peer)(struct lib_context *ctx, const struct urma_ctl_peer *request,
			   uint32_t *number, uint32_t *tpg);
	/* How unreliable messages get to the peer */
	int (*find_peer)(struct lib_context *ctx, const struct urma_ctl_peer *request,
			 struct hca_ctl_ah *ah);
	int (*unimport_peer)(struct lib_context *ctx, uint32_t number);
	int (*tp_eid)(struct lib_context *ctx, uint32_t tpn, uint8_t eid[16]);
};

/* The operations of the context's driver; a missing one returns -EOPNOTSUPP. */
extern const struct urma_ctl urma_ctl_driver __attribute__((visibility("hidden")));

#endif
