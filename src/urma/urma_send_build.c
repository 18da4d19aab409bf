/* SPDX-License-Identifier: BSD-3-Clause */

/* The WQE of a request: the next unit, the UB unit, and its other units (abi_tp.h). */

#include <string.h>

#include "abi_addr.h"
#include "urma_send.h"

#define HOPS 64u

static void
build_ub(struct hca_ub_unit *u, const struct request *r)
{
	const urma_jfs_wr_t *wr = r->wr;
	uint32_t flags = r->op->flags, odr = wr->flag.bs.place_order;
	bool is_send = (flags & OP_SEND) != 0;
	bool check = is_send ? r->to->check : segment(r->remote)->check;
	uint32_t token = is_send ? r->to->token : segment(r->remote)->token;
	/* the packet has the values of both segments, or none */
	bool notify = (flags & OP_NOTIFY) != 0 && segment(&r->remote[1])->check;
	uint64_t data = (flags & OP_IMM) == 0 ? 0
			: is_send	      ? wr->send.imm_data
					      : wr->rw.notify_data;

	odr |= wr->flag.bs.comp_order ? HCA_UB_ODR_COMPLETION : 0;
	u->number =
		hca_cpu_to_le32(r->to->unreliable ? HCA_UB_MAKE_NUMBER(HCA_UB_TO_ADDRESS, 0)
						  : HCA_UB_MAKE_NUMBER(HCA_UB_TO_TPG, r->to->tpg));
	u->tc = hca_cpu_to_le32(HCA_UB_MAKE_TC(r->to->pub.id.id, HCA_UB_TC_ONE, 0));
	u->token = hca_cpu_to_le32(check ? token : 0);
	u->order = hca_cpu_to_le32(HCA_UB_MAKE_ORDER(odr, check || notify, 0, r->op->atomic,
						     (flags & OP_UD) != 0 ? wr->faa.op : 0));
	u->data = hca_cpu_to_le64(data);
	u->tc_token = hca_cpu_to_le32(
		r->op->op == HCA_OP_RDMA_WRITE_IMM && r->to->check ? r->to->token : 0);
	u->operands = hca_cpu_to_le32(r->operands);
}

/* Where an unreliable message goes */
static uint8_t *
build_address(uint8_t *at, const struct hca_ctl_ah *ah)
{
	struct hca_ud_unit *u = (struct hca_ud_unit *)at;
	uint64_t dmac = hca_mac_number(ah->dmac), smac = hca_mac_number(ah->smac);

	memset(u, 0, sizeof(*u));
	u->port = hca_cpu_to_le32(HCA_UD_MAKE_PORT(1, ah->sgid_index, HOPS, 0));
	u->mac_lo = hca_cpu_to_le32(HCA_UD_MAKE_MAC_LO(dmac, smac));
	u->smac_hi = hca_cpu_to_le32(HCA_UD_MAC_HI(smac));
	u->dmac_hi = hca_cpu_to_le32(HCA_UD_MAC_HI(dmac));
	memcpy(u->dgid, ah->dgid, sizeof(u->dgid));
	u->flow = hca_cpu_to_le32(HCA_UD_MAKE_FLOW(1, 0, 0, 0));
	return at + sizeof(*u);
}

static uint8_t *
build_notify(uint8_t *at, const urma_sge_t *sge)
{
	struct hca_notify_unit *u = (struct hca_notify_unit *)at;

	u->addr = hca_cpu_to_le64(sge->addr);
	u->token_id = hca_cpu_to_le32(sge->tseg->seg.token_id);
	u->token = hca_cpu_to_le32(segment(sge)->check ? segment(sge)->token : 0);
	return at + sizeof(*u);
}

static uint8_t *
build_padded(uint8_t *at, const void *bytes, uint32_t n)
{
	memset(at, 0, units_of(n) * HCA_WQE_UNIT);
	memcpy(at, bytes, n);
	return at + units_of(n) * HCA_WQE_UNIT;
}

/* An operand, which stands in the request up to 8 bytes and else at that address */
static uint8_t *
build_operand(uint8_t *at, uint64_t value, uint32_t n)
{
	hca_le64 low = hca_cpu_to_le64(value);

	return build_padded(at, n <= sizeof(low) ? &low : (const void *)(uintptr_t)value, n);
}

/* Compare, then swap; of the other operations only the first is used. */
static uint8_t *
build_operands(uint8_t *at, const struct request *r)
{
	const urma_jfs_wr_t *wr = r->wr;
	static const uint8_t zeros[HCA_UB_ATOMIC_MAX];
	uint64_t none = r->operands <= sizeof(uint64_t) ? 0 : (uintptr_t)zeros;

	if (r->op->atomic == HCA_UB_TA_COMPARE_SWAP) {
		at = build_operand(at, wr->cas.cmp_data, r->operands);
		return build_operand(at, wr->cas.swap_data, r->operands);
	}
	at = build_operand(at, (r->op->flags & OP_CAS) != 0 ? wr->cas.swap_data : wr->faa.operand,
			   r->operands);
	return build_operand(at, none, r->operands);
}

static void
build_inline(uint8_t *at, const struct request *r)
{
	uint8_t *data = at + sizeof(struct hca_inline_unit);

	hca_put_le32(at, HCA_INLINE_FLAG | r->total);
	for (uint32_t i = 0; i < r->nlocal; i++) {
		if (r->local[i].len != 0)
			memcpy(data, (const void *)(uintptr_t)r->local[i].addr, r->local[i].len);
		data += r->local[i].len;
	}
}

/* The result of an atomic has the length of its operands, whatever room there is for it. */
static void
build_sges(struct hca_data_unit *u, const struct request *r)
{
	for (uint32_t i = 0; i < r->nlocal; i++) {
		bool atomic = (r->op->flags & OP_ATOMIC) != 0;

		u[i].byte_cnt = hca_cpu_to_le32(atomic ? r->operands : r->local[i].len);
		u[i].lkey = hca_cpu_to_le32(segment(&r->local[i])->mr->lkey);
		u[i].addr = hca_cpu_to_le64(r->local[i].addr);
	}
}

void
urma_send_build(uint8_t *wqe, const struct request *r)
{
	struct hca_next_unit *next = (struct hca_next_unit *)wqe;
	struct hca_ub_unit *ub = (struct hca_ub_unit *)(next + 1);
	uint8_t *at = (uint8_t *)(ub + 1);

	build_next(next, r);
	build_ub(ub, r);
	if (r->to->unreliable)
		at = build_address(at, &r->to->ah);
	if ((r->op->flags & OP_REMOTE) != 0)
		at = build_remote(at, r->remote);
	if ((r->op->flags & OP_NOTIFY) != 0)
		at = build_notify(at, &r->remote[1]);
	if ((r->op->flags & OP_ATOMIC) != 0)
		at = build_operands(at, r);
	if ((r->op->flags & OP_ENABLES) != 0)
		at = build_padded(at, r->wr->rw.byte_enables, r->operands);
	if (r->wr->flag.bs.inline_flag)
		build_inline(at, r);
	else
		build_sges((struct hca_data_unit *)at, r);
}
