/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UB_UB_CQE_H
#define UB_UB_CQE_H

/* CQEs of Jettys and JFRs (struct hca_cqe_ub), written through queues/cq.h. */

#include "abi_tp.h"
#include "queues/cq.h"

#define HCA_CQE_UB_SEND 1u /* in the byte at 1Dh, next to HCA_CQE_UB */

/* Fields of a CQE; numbers in the CPU's order. */
struct hca_ub_cqe {
	uint8_t kind;	 /* enum hca_cqe_ub_kind */
	uint8_t status;	 /* enum hca_ub_status */
	uint8_t opcode;	 /* HCA_OP_* of a send, TAOpcode of a receive */
	bool is_send;	 /* else a receive */
	bool solicited;	 /* FCE; errors always are */
	uint32_t number; /* own, of the Jetty, JFS or JFR */
	uint32_t wqe;	 /* byte offset of the WQE in its queue */
	uint32_t rc;	 /* receive: RC id of the source */
	uint32_t tpn;	 /* receive: own TPN, 0: unreliable */
	uint32_t bytes;
	uint64_t imm; /* receive */
};

/*
 * One CQE to CQ index cqi; false: there was no room, which is counted. The stage ends its batch
 * with hca_cq_batch_end() before its poll returns.
 */
bool hca_ub_cqe_write(struct hca_core *h, uint32_t cqi, struct hca_cq_batch *b,
		      enum hca_stage_id stage, const struct hca_ub_cqe *c);

/*
 * All but the owner byte of the CQE of a request that succeeded, in a slot of a cursor (cq.h).
 * local: HCA_CQE_UB_MAKE_LOCAL() as it is stored; wqe: byte offset.
 */
static inline void
hca_ub_cqe_fill_sent(struct hca_cqe_ub *cqe, uint32_t local, uint32_t wqe, uint32_t bytes,
		     uint8_t opcode)
{
	cqe->local = local;
	cqe->wqe = hca_cpu_to_le32(wqe);
	cqe->rc = 0;
	cqe->tpn = 0;
	cqe->imm = 0;
	cqe->bytes = hca_cpu_to_le32(bytes);
	cqe->opcode = opcode;
	cqe->is_send = HCA_CQE_UB_SEND | HCA_CQE_UB;
	cqe->status = HCA_UB_STATUS_OK;
}

/* Writes the CQE of a received message without immediate data, as above: the owner byte last. */
static inline void
hca_ub_cqe_put_received(struct hca_cqe_ub *cqe, uint32_t local, uint32_t wqe, uint32_t rc,
			uint32_t tpn, uint32_t bytes, uint8_t opcode)
{
	cqe->local = local;
	cqe->wqe = hca_cpu_to_le32(wqe);
	cqe->rc = hca_cpu_to_le32(rc);
	cqe->tpn = hca_cpu_to_le32(tpn);
	cqe->imm = 0;
	cqe->bytes = hca_cpu_to_le32(bytes);
	cqe->opcode = opcode;
	cqe->is_send = HCA_CQE_UB;
	cqe->status = HCA_UB_STATUS_OK;
	__atomic_store_n(&cqe->owner, HCA_OWNER_SW, __ATOMIC_RELEASE);
}

#endif
