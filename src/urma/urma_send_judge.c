/* SPDX-License-Identifier: BSD-3-Clause */

/* Kinds of requests, and the checks before a post that this side can make. */

#include <string.h>

#include "urma_send.h"

/* Requests: X(URMA opcode, doorbell's opcode, TAOpcode of an atomic, flags) */
#define REQUEST_LIST(X) \
	X(URMA_OPC_WRITE, HCA_OP_RDMA_WRITE, 0, OP_REMOTE) \
	X(URMA_OPC_WRITE_IMM, HCA_OP_RDMA_WRITE_IMM, 0, OP_REMOTE | OP_IMM) \
	X(URMA_OPC_WRITE_NOTIFY, HCA_OP_WRITE_NOTIFY, 0, OP_REMOTE | OP_NOTIFY | OP_IMM) \
	X(URMA_OPC_READ, HCA_OP_RDMA_READ, 0, OP_REMOTE | OP_READ) \
	X(URMA_OPC_CAS, HCA_OP_ATOMIC, HCA_UB_TA_COMPARE_SWAP, ATOMIC_CAS) \
	X(URMA_OPC_SWAP, HCA_OP_ATOMIC, HCA_UB_TA_SWAP, ATOMIC_CAS) \
	X(URMA_OPC_FADD, HCA_OP_ATOMIC, HCA_UB_TA_FETCH_ADD, ATOMIC) \
	X(URMA_OPC_FSUB, HCA_OP_ATOMIC, HCA_UB_TA_FETCH_SUB, ATOMIC) \
	X(URMA_OPC_FAND, HCA_OP_ATOMIC, HCA_UB_TA_FETCH_AND, ATOMIC) \
	X(URMA_OPC_FOR, HCA_OP_ATOMIC, HCA_UB_TA_FETCH_OR, ATOMIC) \
	X(URMA_OPC_FXOR, HCA_OP_ATOMIC, HCA_UB_TA_FETCH_XOR, ATOMIC) \
	X(URMA_OPC_SEND, HCA_OP_SEND, 0, OP_SEND) \
	X(URMA_OPC_SEND_IMM, HCA_OP_SEND_IMM, 0, OP_SEND | OP_IMM) \
	X(SOFTHCA_URMA_OPC_WRITE_BE, HCA_OP_WRITE_BE, 0, OP_REMOTE | OP_ENABLES) \
	X(SOFTHCA_URMA_OPC_ATOMIC_LOAD, HCA_OP_ATOMIC, HCA_UB_TA_LOAD, ATOMIC | OP_UD) \
	X(SOFTHCA_URMA_OPC_ATOMIC_STORE, HCA_OP_ATOMIC, HCA_UB_TA_STORE, ATOMIC | OP_UD)
#define ATOMIC (OP_REMOTE | OP_ATOMIC | OP_READ)
#define ATOMIC_CAS (ATOMIC | OP_CAS)

const struct op urma_ops[256] = {
#define ROW(opcode, doorbell, atomic, flags) [opcode] = {1, doorbell, atomic, flags},
	REQUEST_LIST(ROW)
#undef ROW
};

static int
judge_flags(const struct urma_queue *q, struct request *r)
{
	const urma_jfs_wr_flag_t *f = &r->wr->flag;

	if (f->bs.reserved != 0 || HCA_UB_ODR_EXECUTION(f->bs.place_order) == HCA_UB_CODE_RESERVED)
		return urma_fail(
			-EINVAL,
			"request flags %#x: the reserved bits must be 0, and place_order one that "
			"urma.h lists",
			f->value);
	if (f->bs.inline_flag && (r->op->flags & OP_READ) != 0)
		return urma_fail(
			-EINVAL,
			"inline_flag with opcode %#x: it is for data that the request sends",
			(uint32_t)r->wr->opcode);
	return 0;
}

static int
judge_target(const struct urma_queue *q, struct request *r)
{
	r->to = r->wr->tjetty != NULL ? (const struct urma_target *)r->wr->tjetty : q->bound;
	if (r->to == NULL)
		return urma_fail(
			-EINVAL,
			"tjetty is NULL, and %s %u is not bound: import a Jetty, or bind to one",
			URMA_QUEUE(q));
	if (r->to->unreliable != (mode_of(q) == URMA_TM_UM))
		return urma_fail(
			-EINVAL,
			"%s %u has mode %u and its target was imported for mode %u: UM (%u) needs "
			"UM",
			URMA_QUEUE(q), mode_of(q), r->to->pub.trans_mode, URMA_TM_UM);
	if (r->to->unreliable && (r->op->flags & OP_SEND) == 0)
		return urma_fail(
			-EINVAL,
			"opcode %#x in mode UM, which has Sends only: use a queue of mode RM or RC",
			(uint32_t)r->wr->opcode);
	if (r->to->pub.urma_ctx != &q->ctx->pub)
		return urma_fail(
			-EINVAL,
			"target %#x was imported by another context: import it in that of %s %u",
			r->to->pub.id.id, URMA_QUEUE(q));
	if (!q->is_jfs && q->jetty.jetty_cfg.jfs_cfg.trans_mode == URMA_TM_RC && r->to != q->bound)
		return urma_fail(
			-EINVAL,
			"Jetty %u has mode RC and is not bound to target %#x: urma_bind_jetty() "
			"comes first",
			q->number, r->to->pub.id.id);
	return 0;
}

/* Where the request has its lists: local memory, and the remote side if it has one */
static void
find_sges(struct request *r)
{
	const urma_jfs_wr_t *wr = r->wr;
	bool read = r->op->op == HCA_OP_RDMA_READ;

	if ((r->op->flags & OP_SEND) != 0) {
		r->local = wr->send.src.sge;
		r->nlocal = wr->send.src.num_sge;
	} else if ((r->op->flags & OP_ATOMIC) != 0) {
		bool cas = (r->op->flags & OP_CAS) != 0;

		r->local = cas ? wr->cas.src : wr->faa.src;
		r->nlocal = r->op->atomic == HCA_UB_TA_STORE ? 0 : 1;
		r->remote = cas ? wr->cas.dst : wr->faa.dst;
	} else {
		const urma_sg_t *local = read ? &wr->rw.dst : &wr->rw.src;
		const urma_sg_t *remote = read ? &wr->rw.src : &wr->rw.dst;
		uint32_t want = (r->op->flags & OP_NOTIFY) != 0 ? 2 : 1;

		r->local = local->sge;
		r->nlocal = local->num_sge;
		r->remote = remote->num_sge == want ? remote->sge : NULL;
	}
}

static int
judge_local(const struct urma_queue *q, struct request *r)
{
	bool in_line = r->wr->flag.bs.inline_flag;
	uint64_t total = 0;

	if (r->nlocal > q->sq.max_sge || (r->nlocal != 0 && r->local == NULL))
		return urma_fail(-EINVAL, URMA_SGES, r->nlocal, q->sq.max_sge);
	for (uint32_t i = 0; i < r->nlocal; i++) {
		if (!in_line && !is_registered(q, r->local[i].tseg))
			return urma_fail(-EINVAL, URMA_NO_SEGMENT, i);
		if (r->local[i].len > HCA_WQE_MAX_BYTE_CNT)
			return urma_fail(-EINVAL, "SGE %u is longer than 2^31 - 1 bytes", i);
		total += r->local[i].len;
	}
	if (total > ((r->op->flags & OP_SEND) != 0 ? SEND_MAX : HCA_MAX_MSG_SIZE))
		return urma_fail(-EINVAL, "a message of %llu bytes: at most %llu",
				 (unsigned long long)total,
				 (unsigned long long)((r->op->flags & OP_SEND) != 0
							      ? SEND_MAX
							      : HCA_MAX_MSG_SIZE));
	if (in_line && total > q->max_inline)
		return urma_fail(
			-EINVAL,
			"%llu bytes of inline data: the queue takes at most %u (max_inline_data)",
			(unsigned long long)total, q->max_inline);
	r->total = (uint32_t)total;
	return 0;
}

/* Only the checks possible here; the peer checks again. */
static int
judge_range(const struct urma_queue *q, const urma_sge_t *sge, uint64_t len)
{
	const urma_seg_t *seg;

	if (sge == NULL || !is_imported(q, sge->tseg))
		return urma_fail(
			-EINVAL,
			"the remote SGE has no segment of urma_import_seg() in this context");
	seg = &sge->tseg->seg;
	if (sge->addr < seg->ubva.va || sge->addr - seg->ubva.va > seg->len ||
	    len > seg->len - (sge->addr - seg->ubva.va))
		return urma_fail(
			-EINVAL,
			"%llu bytes at %#llx are not in segment %#x: it has %llu bytes at %#llx",
			(unsigned long long)len, (unsigned long long)sge->addr, seg->token_id,
			(unsigned long long)seg->len, (unsigned long long)seg->ubva.va);
	return 0;
}

/* Operands of more than 8 bytes: the request has their addresses. */
static bool
has_no_operand(const struct request *r)
{
	if ((r->op->flags & OP_CAS) == 0)
		return r->wr->faa.operand_addr == 0;
	return r->wr->cas.swap_addr == 0 ||
	       (r->op->atomic == HCA_UB_TA_COMPARE_SWAP && r->wr->cas.cmp_addr == 0);
}

static int
judge_atomic(struct request *r)
{
	uint32_t n = r->remote->len;

	if (n == 0 || n > HCA_UB_ATOMIC_MAX || (n & (n - 1)) != 0 ||
	    (r->remote->addr & (n - 1)) != 0)
		return urma_fail(
			-EINVAL,
			"an atomic of %u bytes at %#llx: expected a power of two up to %u, at a "
			"multiple of it",
			n, (unsigned long long)r->remote->addr, HCA_UB_ATOMIC_MAX);
	if (r->nlocal != 0 && r->total < n)
		return urma_fail(-EINVAL,
				 "%u bytes for the old value of an atomic of %u: it needs as many",
				 r->total, n);
	if ((r->op->flags & OP_UD) != 0 && r->wr->faa.op >= HCA_UB_UD_OPS)
		return urma_fail(-EINVAL, "atomic operation %u: expected 0 to %u", r->wr->faa.op,
				 HCA_UB_UD_OPS - 1);
	if (n > sizeof(uint64_t) && has_no_operand(r))
		return urma_fail(
			-EINVAL,
			"operands of %u bytes: more than 8 are passed by address, and an address "
			"is 0",
			n);
	r->operands = n;
	return 0;
}

static int
judge_enables(struct request *r)
{
	if (r->total < HCA_UB_BE_MIN || r->total > HCA_UB_BE_MAX || (r->total & (r->total - 1)) ||
	    r->wr->rw.byte_enables == NULL)
		return urma_fail(
			-EINVAL,
			"byte enables for %u bytes: expected a power of two from %u to %u, and "
			"byte_enables not NULL",
			r->total, HCA_UB_BE_MIN, HCA_UB_BE_MAX);
	r->operands = r->total / 8;
	return 0;
}

static int
judge_remote(const struct urma_queue *q, struct request *r)
{
	int err;

	if ((r->op->flags & OP_REMOTE) == 0)
		return 0;
	if (r->remote == NULL)
		return urma_fail(
			-EINVAL,
			"the remote list of opcode %#x has a wrong number of SGEs: expected %u",
			(uint32_t)r->wr->opcode, (r->op->flags & OP_NOTIFY) != 0 ? 2 : 1);
	err = judge_range(q, r->remote,
			  (r->op->flags & OP_ATOMIC) != 0 ? r->remote->len : r->total);
	if (err == 0 && (r->op->flags & OP_NOTIFY) != 0)
		err = judge_range(q, &r->remote[1], sizeof(uint64_t));
	if (err == 0 && (r->op->flags & OP_ATOMIC) != 0)
		err = judge_atomic(r);
	if (err == 0 && (r->op->flags & OP_ENABLES) != 0)
		err = judge_enables(r);
	return err;
}

static int
judge_size(const struct urma_queue *q, struct request *r)
{
	uint32_t flags = r->op->flags;

	r->units = units_of(sizeof(struct hca_next_unit) + sizeof(struct hca_ub_unit)) +
		   ((flags & OP_REMOTE) != 0) + ((flags & OP_NOTIFY) != 0) +
		   units_of(r->operands) * ((flags & OP_ATOMIC) != 0 ? 2 : 1) +
		   (r->to->unreliable ? units_of(sizeof(struct hca_ud_unit)) : 0);
	r->units += r->wr->flag.bs.inline_flag
			    ? units_of((uint32_t)sizeof(struct hca_inline_unit) + r->total)
			    : r->nlocal;
	if (r->units * HCA_WQE_UNIT > 1u << q->sq.log_stride)
		return urma_fail(
			-EINVAL,
			"a request of %u bytes: WQEs of the queue have %u; create it with more "
			"max_sge or max_inline_data",
			r->units * HCA_WQE_UNIT, 1u << q->sq.log_stride);
	return 0;
}

int
urma_send_judge(const struct urma_queue *q, const urma_jfs_wr_t *wr, struct request *r)
{
	int err;

	memset(r, 0, sizeof(*r));
	r->wr = wr;
	r->op = &urma_ops[wr->opcode & 255];
	if ((uint32_t)wr->opcode > 255 || !r->op->known)
		return urma_fail(wr->opcode == URMA_OPC_NOP ||
						 wr->opcode == URMA_OPC_SEND_INVALIDATE
					 ? -EOPNOTSUPP
					 : -EINVAL,
				 "opcode %#x is not offered: see the opcodes in urma.h",
				 (uint32_t)wr->opcode);
	find_sges(r);
	err = judge_flags(q, r);
	if (err == 0)
		err = judge_target(q, r);
	if (err == 0)
		err = judge_local(q, r);
	if (err == 0)
		err = judge_remote(q, r);
	return err != 0 ? err : judge_size(q, r);
}
