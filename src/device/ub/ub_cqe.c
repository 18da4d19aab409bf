/* SPDX-License-Identifier: BSD-3-Clause */

#include "ub/ub_cqe.h"

/* Bytes of the last word. */
#define LAST_WORD(opcode, is_send, status) \
	((uint32_t)(opcode) | (uint32_t)(is_send) << 8 | (uint32_t)(status) << 16 | \
	 (uint32_t)HCA_OWNER_SW << 24)

bool
hca_ub_cqe_write(struct hca_core *h, uint32_t cqi, struct hca_cq_batch *b, enum hca_stage_id stage,
		 const struct hca_ub_cqe *c)
{
	bool solicited = c->solicited || c->status != HCA_UB_STATUS_OK;
	struct hca_cqe *slot = hca_cq_reserve(h, cqi, b, solicited, stage);
	struct hca_cqe_ub *cqe = (struct hca_cqe_ub *)slot;

	if (unlikely(slot == NULL))
		return false;
	cqe->local = hca_cpu_to_le32(HCA_CQE_UB_MAKE_LOCAL(c->kind, c->number));
	cqe->wqe = hca_cpu_to_le32(c->wqe);
	cqe->rc = hca_cpu_to_le32(c->rc);
	cqe->tpn = hca_cpu_to_le32(c->tpn);
	cqe->imm = hca_cpu_to_le64(c->imm);
	cqe->bytes = hca_cpu_to_le32(c->bytes);
	hca_cq_publish(slot, LAST_WORD(c->opcode, (c->is_send ? HCA_CQE_UB_SEND : 0) | HCA_CQE_UB,
				       c->status));
	return true;
}
