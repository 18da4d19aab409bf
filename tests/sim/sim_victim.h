/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SIM_SIM_VICTIM_H
#define TESTS_SIM_SIM_VICTIM_H

/*
 * A QP of any service on side 1, in any state, and packets of any form for it with a correct ICRC.
 * Its peer is a QPN of side 0 that does not exist, so that everything it receives comes from the
 * test. Its memory has known contents and is surrounded by guard bytes.
 */

#include "sim.h"
#include "roce_craft.h"

struct rte_mempool;

enum sim_victim_kind {
	SIM_VICTIM_RC,
	SIM_VICTIM_UC,
	SIM_VICTIM_UD,
	SIM_VICTIM_XRC_INI,
	SIM_VICTIM_XRC_TGT,
	SIM_VICTIM_KINDS
};

extern const char *const sim_victim_names[SIM_VICTIM_KINDS];

#define SIM_VICTIM_SIDE 1u
#define SIM_VICTIM_BYTES 16384u /* of the region; the guards on both sides have the same size */
#define SIM_VICTIM_RECVS 16u
#define SIM_VICTIM_RECV 512u
#define SIM_VICTIM_MTU 1024u
#define SIM_VICTIM_PSN 0x00fff0u
#define SIM_VICTIM_SQ_PSN 0x700000u
#define SIM_VICTIM_PEER 0x0ab123u
#define SIM_VICTIM_QKEY 0x5eed0001u

struct sim_victim {
	struct sim *s;
	enum sim_victim_kind kind;
	enum sim_gid gid;
	struct softhca_qp *qp;
	struct softhca_srq *srq;
	struct softhca_xrcd *xrcd;
	struct softhca_cq *cq;
	/* dark: a region in another PD, which the QP may not access */
	struct softhca_mr *mr, *dark;
	struct softhca_pd *other;
	struct softhca_ah *ah;
	uint8_t *block;	   /* guard, region, guard */
	uint8_t *mem;	   /* the region; receives are in its first half */
	uint32_t srqn;	   /* of XRC_TGT */
	uint32_t recv_len; /* bytes of each receive [SIM_VICTIM_RECV]; set before sim_victim_to() */
	struct hca_roce_path path;
};

/* Create the QP, in RESET. */
void sim_victim_open(struct sim *s, struct sim_victim *v, enum sim_victim_kind kind,
		     enum sim_gid gid);
void sim_victim_close(struct sim_victim *v);

/* Bring it from RESET to state and post receives; false: this kind does not have the state. */
bool sim_victim_to(struct sim_victim *v, uint32_t state);
uint32_t sim_victim_state(struct sim_victim *v);

/* Check that the guards and, if asked, the region are as sim_victim_to() left them. */
void sim_victim_check(struct sim_victim *v, bool region);
/* Discard all completions; returns their number. */
unsigned int sim_victim_completions(struct sim_victim *v);

/* --- packets -------------------- */

struct sim_injector {
	struct sim *s;
	struct rte_mempool *pool;
	const struct hca_icrc_ops *icrc;
	uint64_t injected;
};

void sim_injector_open(struct sim *s, struct sim_injector *x);
void sim_injector_close(struct sim_injector *x);

/* A packet, with or without everything that opcode requires. */
struct sim_packet {
	uint8_t opcode;
	uint8_t pad; /* pad count in the BTH */
	uint8_t tver;
	bool ackreq, se;
	uint32_t psn;
	uint32_t len;	     /* bytes between BTH and ICRC */
	const uint8_t *tail; /* their contents; NULL: 0xa5 */
	uint32_t cut;	     /* bytes missing at the end of the BTH; then len is 0 */
};

/* Build a packet with a correct ICRC; returns its length. */
uint32_t sim_craft(struct sim_injector *x, const struct hca_roce_path *path,
		   const struct sim_packet *p, uint8_t *frame);
/* Inject a frame to side 1; runs the simulation while the link is full. */
void sim_inject(struct sim_injector *x, const uint8_t *frame, uint32_t len);
/* Build and inject a packet. */
void sim_inject_packet(struct sim_injector *x, const struct hca_roce_path *path,
		       const struct sim_packet *p);
/* Inject a complete packet with these headers and this number of bytes of payload. */
void sim_inject_whole(struct sim_injector *x, const struct hca_roce_path *path, uint8_t opcode,
		      uint32_t psn, bool ackreq, const struct roce_headers *h, uint32_t payload);

#endif
