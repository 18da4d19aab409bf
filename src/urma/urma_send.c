/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Posting requests: a chain of WQEs with UB units (abi_tp.h), and one doorbell for it, as post_send
 * of verbs does. A request is judged completely before its WQE is written.
 */

#include <string.h>

#include "abi_addr.h"
#include "urma_impl.h"

#define HOPS 64u

enum op_flag {
	OP_REMOTE = 1 << 0,  /* raddr unit */
	OP_NOTIFY = 1 << 1,  /* notify unit, second remote SGE */
	OP_ATOMIC = 1 << 2,  /* operands */
	OP_ENABLES = 1 << 3, /* byte enables */
	OP_IMM = 1 << 4,
	OP_READ = 1 << 5, /* local memory is written: no inline data */
	OP_SEND = 1 << 6, /* the token is that of the receiver */
	OP_CAS = 1 << 7,  /* the request has urma_cas_wr */
	OP_UD = 1 << 8,	  /* an operation of atomic store and load */
};

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

struct op {
	uint8_t known, op, atomic;
	uint16_t flags;
};

static const struct op ops[256] = {
#define ROW(opcode, doorbell, atomic, flags) [opcode] = {1, doorbell, atomic, flags},
	REQUEST_LIST(ROW)
#undef ROW
};

#define SEND_MAX (16u << 20)
/* A request that was judged */
struct request {
	const urma_jfs_wr_t *wr;
	const struct op *op;
	const struct urma_target *to;
	const urma_sge_t *local, *remote;
	uint32_t nlocal;
	uint32_t total;	   /* bytes of local data */
	uint32_t operands; /* bytes of each, or of the byte enables; 0: none */
	uint32_t units;	   /* of the WQE */
	bool plain;	   /* judge_plain() has taken it */
};

#include "urma_send_plain.h"

/* ---- judging ---- */

static int
judge_flags(const struct urma_queue *q, struct request *r)
{
	const urma_jfs_wr_flag_t *f = &r->wr->flag;

	if (f->bs.reserved != 0 || HCA_UB_ODR_EXECUTION(f->bs.place_order) == HCA_UB_CODE_RESERVED)
		return urma_fail(-EINVAL, "flags %#x are not known", f->value);
	if (f->bs.inline_flag && (r->op->flags & OP_READ) != 0)
		return urma_fail(-EINVAL, "inline data with a Read or an atomic");
	return 0;
}

static int
judge_target(const struct urma_queue *q, struct request *r)
{
	r->to = r->wr->tjetty != NULL ? (const struct urma_target *)r->wr->tjetty : q->bound;
	if (r->to == NULL)
		return urma_fail(-EINVAL, "a request to no Jetty");
	if (r->to->unreliable != (mode_of(q) == URMA_TM_UM))
		return urma_fail(-EINVAL, "the queue and its target are of different modes");
	if (r->to->unreliable && (r->op->flags & OP_SEND) == 0)
		return urma_fail(-EINVAL, "unreliable queues have Sends only");
	if (r->to->pub.urma_ctx != &q->ctx->pub)
		return urma_fail(-EINVAL, "the target was imported by another context");
	if (!q->is_jfs && q->jetty.jetty_cfg.jfs_cfg.trans_mode == URMA_TM_RC && r->to != q->bound)
		return urma_fail(-EINVAL, "the Jetty is bound to another one, or to none");
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
		return urma_fail(-EINVAL, "%u SGEs, the queue takes %u", r->nlocal, q->sq.max_sge);
	for (uint32_t i = 0; i < r->nlocal; i++) {
		if (!in_line && !is_registered(q, r->local[i].tseg))
			return urma_fail(-EINVAL, "SGE %u is in no registered segment", i);
		if (r->local[i].len > HCA_WQE_MAX_BYTE_CNT)
			return urma_fail(-EINVAL, "SGE %u is longer than 2^31 - 1 bytes", i);
		total += r->local[i].len;
	}
	if (total > ((r->op->flags & OP_SEND) != 0 ? SEND_MAX : HCA_MAX_MSG_SIZE))
		return urma_fail(-EINVAL, "a message of %llu bytes", (unsigned long long)total);
	if (in_line && total > q->max_inline)
		return urma_fail(-EINVAL, "%llu bytes of inline data, the queue takes %u",
				 (unsigned long long)total, q->max_inline);
	r->total = (uint32_t)total;
	return 0;
}

/* Only what can be seen here; the peer has the last word. */
static int
judge_range(const struct urma_queue *q, const urma_sge_t *sge, uint64_t len)
{
	const urma_seg_t *seg;

	if (sge == NULL || !is_imported(q, sge->tseg))
		return urma_fail(-EINVAL, "the remote side is in no imported segment");
	seg = &sge->tseg->seg;
	if (sge->addr < seg->ubva.va || sge->addr - seg->ubva.va > seg->len ||
	    len > seg->len - (sge->addr - seg->ubva.va))
		return urma_fail(-EINVAL, "%llu bytes at %#llx are not in the segment",
				 (unsigned long long)len, (unsigned long long)sge->addr);
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
		return urma_fail(-EINVAL, "an atomic of %u bytes at %#llx", n,
				 (unsigned long long)r->remote->addr);
	if (r->nlocal != 0 && r->total < n)
		return urma_fail(-EINVAL, "%u bytes for an old value of %u", r->total, n);
	if ((r->op->flags & OP_UD) != 0 && r->wr->faa.op >= HCA_UB_UD_OPS)
		return urma_fail(-EINVAL, "atomic operation %u is not known", r->wr->faa.op);
	if (n > sizeof(uint64_t) && has_no_operand(r))
		return urma_fail(-EINVAL, "operands of %u bytes stand at an address", n);
	r->operands = n;
	return 0;
}

static int
judge_enables(struct request *r)
{
	if (r->total < HCA_UB_BE_MIN || r->total > HCA_UB_BE_MAX || (r->total & (r->total - 1)) ||
	    r->wr->rw.byte_enables == NULL)
		return urma_fail(-EINVAL, "byte enables for %u bytes", r->total);
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
		return urma_fail(-EINVAL, "the remote side has another number of SGEs");
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

static uint32_t
units_of(uint32_t bytes)
{
	return (bytes + HCA_WQE_UNIT - 1) / HCA_WQE_UNIT;
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
		return urma_fail(-EINVAL, "a request of %u bytes, WQEs of the queue have %u",
				 r->units * HCA_WQE_UNIT, 1u << q->sq.log_stride);
	return 0;
}

static int
judge(const struct urma_queue *q, const urma_jfs_wr_t *wr, struct request *r)
{
	int err;

	if (judge_plain(q, wr, r))
		return 0;
	memset(r, 0, sizeof(*r));
	r->wr = wr;
	r->op = &ops[wr->opcode & 255];
	if ((uint32_t)wr->opcode > 255 || !r->op->known)
		return urma_fail(wr->opcode == URMA_OPC_NOP ||
						 wr->opcode == URMA_OPC_SEND_INVALIDATE
					 ? -EOPNOTSUPP
					 : -EINVAL,
				 "opcode %#x is not offered", (uint32_t)wr->opcode);
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

/* ---- building ---- */

static void
build_ub(struct hca_ub_unit *u, const struct request *r)
{
	const urma_jfs_wr_t *wr = r->wr;
	uint32_t flags = r->op->flags, odr = wr->flag.bs.place_order;
	bool is_send = (flags & OP_SEND) != 0;
	bool check = is_send ? r->to->check : segment(r->remote)->check;
	uint32_t token = is_send ? r->to->token : segment(r->remote)->token;
	uint64_t data = (flags & OP_IMM) == 0 ? 0
			: is_send	      ? wr->send.imm_data
					      : wr->rw.notify_data;

	odr |= wr->flag.bs.comp_order ? HCA_UB_ODR_COMPLETION : 0;
	u->number =
		hca_cpu_to_le32(r->to->unreliable ? HCA_UB_MAKE_NUMBER(HCA_UB_TO_ADDRESS, 0)
						  : HCA_UB_MAKE_NUMBER(HCA_UB_TO_TPG, r->to->tpg));
	u->tc = hca_cpu_to_le32(HCA_UB_MAKE_TC(r->to->pub.id.id, HCA_UB_TC_ONE, 0));
	u->token = hca_cpu_to_le32(check ? token : 0);
	u->order = hca_cpu_to_le32(HCA_UB_MAKE_ORDER(odr, check, 0, r->op->atomic,
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

static void
build_any(uint8_t *wqe, const struct request *r)
{
	struct hca_next_unit *next = (struct hca_next_unit *)wqe;
	struct hca_ub_unit *ub = (struct hca_ub_unit *)(next + 1);
	uint8_t *at = (uint8_t *)(ub + 1);
	const urma_jfs_wr_flag_t *f = &r->wr->flag;

	memset(next, 0, sizeof(*next));
	next->flags = hca_cpu_to_le32((f->bs.complete_enable ? HCA_WQE_FLAG_SIGNALED : 0) |
				      (f->bs.solicited_enable ? HCA_WQE_FLAG_SOLICITED : 0));
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
	if (f->bs.inline_flag)
		build_inline(at, r);
	else
		build_sges((struct hca_data_unit *)at, r);
}

static inline void
build_wqe(uint8_t *wqe, const struct request *r)
{
	if (r->plain)
		build_plain(wqe, r);
	else
		build_any(wqe, r);
}

/* ---- the chain ---- */

static inline void
link_wqe(uint8_t *previous, uint32_t offset, const struct request *r)
{
	struct hca_next_unit *next = (struct hca_next_unit *)previous;

	next->nda_nop = hca_cpu_to_le32(HCA_NEXT_MAKE_NDA_NOP(offset, r->op->op));
	next->nee_nds = hca_cpu_to_le32(HCA_NEXT_MAKE_NEE_NDS(r->wr->flag.bs.fence, r->units));
}

static int
judge_next(const struct urma_queue *q, uint32_t head, const urma_jfs_wr_t *wr, struct request *r)
{
	if (head - __atomic_load_n(&q->tail, __ATOMIC_ACQUIRE) == q->sq.mask + 1)
		return urma_fail(-ENOMEM, "the send queue is full (%u)", q->sq.mask + 1);
	return judge(q, wr, r);
}

/*
 * As many of the usual requests as follow, behind the WQE `previous`; returns the last WQE. r: the
 * request of that WQE; afterwards what it is says nothing.
 */
static inline uint8_t *
add_plain(struct urma_queue *q, urma_jfs_wr_t **wr, uint32_t *head, uint8_t *previous,
	  struct request *r)
{
	const uint8_t *model = previous;
	uint32_t mask = q->sq.mask, end = __atomic_load_n(&q->tail, __ATOMIC_ACQUIRE) + mask + 1;
	uint32_t at = *head, log_stride = q->sq.log_stride;
	const urma_jfs_wr_t *next = *wr;
	uint8_t *buf = q->sq.buf;

	for (; next != NULL && at != end; at++, next = next->next) {
		uint32_t index = at & mask, offset = index << log_stride;

		if (r->plain && judge_like(next, r)) {
			build_like(buf + offset, model, r);
		} else if (judge_plain(q, next, r)) {
			model = buf + offset;
			build_plain(buf + offset, r);
		} else {
			break;
		}
		link_wqe(previous, offset, r);
		previous = buf + offset;
		q->sq.wr_id[index] = next->user_ctx;
	}
	*head = at;
	*wr = (urma_jfs_wr_t *)(uintptr_t)next;
	return previous;
}

/* WQEs from *wr on, of which the first is judged. */
static int
build_chain(struct urma_queue *q, urma_jfs_wr_t **wr, struct request *r)
{
	uint8_t *previous = NULL;
	uint32_t head = q->sq.head;
	int err = 0;

	while (err == 0) {
		uint32_t index = head & q->sq.mask, offset = index << q->sq.log_stride;

		build_wqe(q->sq.buf + offset, r);
		if (previous != NULL)
			link_wqe(previous, offset, r);
		previous = q->sq.buf + offset;
		q->sq.wr_id[index] = (*wr)->user_ctx;
		head++;
		*wr = (*wr)->next;
		previous = add_plain(q, wr, &head, previous, r);
		if (*wr == NULL)
			break;
		err = judge_next(q, head, *wr, r);
	}
	q->sq.head = head;
	return err;
}

/* The page of doorbells is full: the chain's first WQE announces it. */
static void
announce(struct urma_queue *q, uint32_t first, uint64_t word)
{
	struct hca_next_unit *next =
		(struct hca_next_unit *)(q->sq.buf + ((first & q->sq.mask) << q->sq.log_stride));
	uint32_t round = (uint32_t)((uint64_t)first / ((uint64_t)q->sq.mask + 1));
	uint32_t says = HCA_WQE_MAKE_ANNOUNCE(round, HCA_DB_F(word), HCA_DB_OPCODE(word),
					      HCA_DB_SIZE0(word));

	q->announces = true;
	__atomic_store_n(&next->flags, next->flags | hca_cpu_to_le32(says), __ATOMIC_RELEASE);
	urma_inside()->doorbell_mark(&q->ctx->lib->uar, q->number);
}

static int
post_locked(struct urma_queue *q, urma_jfs_wr_t **wr)
{
	uint32_t first = q->sq.head, number = 0;
	struct request r;
	uint64_t word;
	int err = judge_next(q, first, *wr, &r), full;

	if (err != 0)
		return err;
	full = urma_inside()->doorbell_take(q->ctx->lib, &number);
	if (full < 0)
		return full;
	word = HCA_DB_MAKE(first & q->sq.mask, r.wr->flag.bs.fence, r.op->op, q->number, r.units);
	err = build_chain(q, wr, &r);
	if (full == 0)
		urma_inside()->doorbell_fill(&q->ctx->lib->uar, number, word);
	else
		announce(q, first, word);
	return err;
}

urma_status_t
urma_post_send(struct urma_queue *q, urma_jfs_wr_t *wr, urma_jfs_wr_t **bad_wr)
{
	uint32_t posted;
	int err;

	if (wr == NULL)
		return URMA_SUCCESS;
	lib_lock_take(&q->sq.lock);
	posted = q->sq.head;
	if (q->state == URMA_JETTY_STATE_RESET)
		err = urma_fail(-EINVAL, "a request in state RESET");
	else
		err = post_locked(q, &wr);
	posted = q->sq.head - posted;
	lib_lock_drop(&q->sq.lock);
	if (err != 0 && bad_wr != NULL)
		*bad_wr = wr;
	lib_posted(q->ctx->lib, posted);
	return urma_status(err);
}

urma_status_t
urma_post_jetty_send_wr(urma_jetty_t *jetty, urma_jfs_wr_t *wr, urma_jfs_wr_t **bad_wr)
{
	if (jetty == NULL)
		return urma_status(urma_fail(-EINVAL, "no Jetty"));
	return urma_post_send((struct urma_queue *)jetty, wr, bad_wr);
}

urma_status_t
urma_post_jfs_wr(urma_jfs_t *jfs, urma_jfs_wr_t *wr, urma_jfs_wr_t **bad_wr)
{
	if (jfs == NULL)
		return urma_status(urma_fail(-EINVAL, "no JFS"));
	return urma_post_send((struct urma_queue *)jfs, wr, bad_wr);
}

/* ---- one at a time ---- */

static urma_status_t
post_rw(urma_jfs_t *jfs, urma_opcode_t opcode, urma_target_jetty_t *to, urma_sge_t *dst,
	urma_sge_t *src, urma_jfs_wr_flag_t flag, uint64_t user_ctx)
{
	urma_jfs_wr_t wr = {
		.opcode = opcode,
		.flag = flag,
		.tjetty = to,
		.user_ctx = user_ctx,
		.rw = {.src = {src, 1}, .dst = {dst, 1}},
	};

	return urma_post_jfs_wr(jfs, &wr, NULL);
}

urma_status_t
urma_write(urma_jfs_t *jfs, urma_target_jetty_t *target_jfr, urma_target_seg_t *dst_tseg,
	   urma_target_seg_t *src_tseg, uint64_t dst, uint64_t src, uint32_t len,
	   urma_jfs_wr_flag_t flag, uint64_t user_ctx)
{
	urma_sge_t to = {dst, len, dst_tseg}, from = {src, len, src_tseg};

	return post_rw(jfs, URMA_OPC_WRITE, target_jfr, &to, &from, flag, user_ctx);
}

urma_status_t
urma_read(urma_jfs_t *jfs, urma_target_jetty_t *target_jfr, urma_target_seg_t *dst_tseg,
	  urma_target_seg_t *src_tseg, uint64_t dst, uint64_t src, uint32_t len,
	  urma_jfs_wr_flag_t flag, uint64_t user_ctx)
{
	urma_sge_t to = {dst, len, dst_tseg}, from = {src, len, src_tseg};

	return post_rw(jfs, URMA_OPC_READ, target_jfr, &to, &from, flag, user_ctx);
}

urma_status_t
urma_send(urma_jfs_t *jfs, urma_target_jetty_t *target_jfr, urma_target_seg_t *src_tseg,
	  uint64_t src, uint32_t len, urma_jfs_wr_flag_t flag, uint64_t user_ctx)
{
	urma_sge_t from = {src, len, src_tseg};
	urma_jfs_wr_t wr = {
		.opcode = URMA_OPC_SEND,
		.flag = flag,
		.tjetty = target_jfr,
		.user_ctx = user_ctx,
		.send = {.src = {&from, 1}},
	};

	return urma_post_jfs_wr(jfs, &wr, NULL);
}
