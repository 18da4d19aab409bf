/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef URMA_SEND_PLAIN_H
#define URMA_SEND_PLAIN_H

/*
 * The usual requests of urma_send.c, which alone includes this: valid Writes, Reads and Sends of
 * one SGE.
 */

#include <string.h>

#include "urma_send.h"

/* Units of a WQE with one SGE: next, UB, data. */
#define PLAIN_UNITS \
	((sizeof(struct hca_next_unit) + sizeof(struct hca_ub_unit) + \
	  sizeof(struct hca_data_unit)) / \
	 HCA_WQE_UNIT)

/* ---- judging ---- */

/* An address below the segment wraps to an offset far above it. */
static inline bool
is_within(const urma_seg_t *seg, uint64_t addr, uint32_t len)
{
	return addr - seg->ubva.va <= seg->len && len <= seg->len - (addr - seg->ubva.va);
}

/*
 * The usual request: a valid Write, Read or Send of one SGE. False: judge it in the general way,
 * which reports the error.
 */
static inline __attribute__((always_inline)) bool
judge_plain(const struct urma_queue *q, const urma_jfs_wr_t *wr, struct request *r)
{
	const struct op *op = &urma_ops[wr->opcode & 255];
	bool send = op->flags == OP_SEND, read = op->flags == (OP_REMOTE | OP_READ);
	const urma_sg_t *local = send ? &wr->send.src : read ? &wr->rw.dst : &wr->rw.src;
	const urma_sg_t *remote = read ? &wr->rw.src : &wr->rw.dst;
	const urma_jfs_wr_flag_t *f = &wr->flag;

	if ((uint32_t)wr->opcode > 255 || !op->known ||
	    (!send && !read && op->flags != OP_REMOTE) || f->bs.reserved != 0 ||
	    f->bs.inline_flag || HCA_UB_ODR_EXECUTION(f->bs.place_order) == HCA_UB_CODE_RESERVED)
		return false;
	r->wr = wr;
	r->op = op;
	r->to = (const struct urma_target *)wr->tjetty;
	r->local = local->sge;
	r->nlocal = 1;
	r->remote = NULL;
	r->operands = 0;
	r->plain = true;
	r->like = false;
	r->units = PLAIN_UNITS + !send;
	if (r->to == NULL || r->to->pub.urma_ctx != &q->ctx->pub || local->num_sge != 1 ||
	    r->local == NULL || !is_registered(q, r->local->tseg) || r->local->len > SEND_MAX ||
	    r->to->unreliable || mode_of(q) != URMA_TM_RM || q->sq.max_sge == 0 ||
	    r->units * HCA_WQE_UNIT > 1u << q->sq.log_stride)
		return false;
	r->total = r->local->len;
	if (send)
		return true;
	r->remote = remote->sge;
	if (remote->num_sge != 1 || r->remote == NULL || !is_imported(q, r->remote->tseg))
		return false;
	return is_within(&r->remote->tseg->seg, r->remote->addr, r->total);
}

/*
 * The next request of a list, after r: the same operation with the same flags, to the same target
 * and from and to the same segments, whose checks hold for both. False: judge it alone.
 */
static inline __attribute__((always_inline)) bool
judge_like(const urma_jfs_wr_t *wr, struct request *r)
{
	bool send = r->remote == NULL, read = (r->op->flags & OP_READ) != 0;
	const urma_sg_t *local = send ? &wr->send.src : read ? &wr->rw.dst : &wr->rw.src;
	const urma_sg_t *remote = read ? &wr->rw.src : &wr->rw.dst;
	const urma_jfs_wr_t *b = r->wr;

	if (!r->plain || wr->opcode != b->opcode || wr->flag.value != b->flag.value ||
	    wr->tjetty != b->tjetty || local->num_sge != 1 || local->sge == NULL ||
	    local->sge->tseg != r->local->tseg || local->sge->len > SEND_MAX)
		return false;
	if (!send &&
	    (remote->num_sge != 1 || remote->sge == NULL || remote->sge->tseg != r->remote->tseg ||
	     !is_within(&remote->sge->tseg->seg, remote->sge->addr, local->sge->len)))
		return false;
	r->wr = wr;
	r->local = local->sge;
	r->remote = send ? NULL : remote->sge;
	r->total = local->sge->len;
	r->like = true;
	return true;
}

/* ---- building ---- */

/* build_ub() of a request that judge_plain() has taken. */
static inline void
build_plain_ub(struct hca_ub_unit *u, const struct request *r)
{
	const urma_jfs_wr_flag_t *f = &r->wr->flag;
	bool send = r->remote == NULL;
	bool check = send ? r->to->check : segment(r->remote)->check;
	uint32_t token = send ? r->to->token : segment(r->remote)->token;
	uint32_t odr = f->bs.place_order | (f->bs.comp_order ? HCA_UB_ODR_COMPLETION : 0);

	u->number = hca_cpu_to_le32(HCA_UB_MAKE_NUMBER(HCA_UB_TO_TPG, r->to->tpg));
	u->tc = hca_cpu_to_le32(HCA_UB_MAKE_TC(r->to->pub.id.id, HCA_UB_TC_ONE, 0));
	u->token = hca_cpu_to_le32(check ? token : 0);
	u->order = hca_cpu_to_le32(HCA_UB_MAKE_ORDER(odr, check, 0, 0, 0));
	u->data = 0;
	u->tc_token = 0;
	u->operands = 0;
}

/*
 * One that judge_plain() has taken, or judge_like(): the first units of that are those of the WQE
 * before, which has no link yet.
 */
static inline void
build_plain(uint8_t *wqe, const uint8_t *previous, const struct request *r)
{
	struct hca_next_unit *next = (struct hca_next_unit *)wqe;
	struct hca_ub_unit *ub = (struct hca_ub_unit *)(next + 1);
	uint8_t *at = (uint8_t *)(ub + 1);
	struct hca_data_unit *data;

	if (r->like) {
		memcpy(wqe, previous, sizeof(*next) + sizeof(*ub));
	} else {
		build_next(next, r);
		build_plain_ub(ub, r);
	}
	if (r->remote != NULL)
		at = build_remote(at, r->remote);
	data = (struct hca_data_unit *)at;
	data->byte_cnt = hca_cpu_to_le32(r->total);
	data->lkey = hca_cpu_to_le32(segment(r->local)->mr->lkey);
	data->addr = hca_cpu_to_le64(r->local->addr);
}

#endif
