/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * post_send: builds a chain of WQEs (tables 3-4-1 .. 3-4-13) and rings one doorbell for it. The
 * doorbell describes the first WQE, and the next unit of each WQE the following one.
 */

#include <string.h>

#include "abi_cmd.h"
#include "abi_roce.h"
#include "lib_doorbell.h"
#include "lib_wait.h"

enum imm_kind {
	IMM_NONE,
	IMM_DATA, /* in network order */
	IMM_KEY,  /* a key, as a number */
};

/* Properties of the WQE of a verbs opcode; units of 16 bytes */
struct send_op {
	uint8_t op;	      /* HCA_OP_* */
	uint8_t header_units; /* next, raddr, operands; without the unit of the service; or 0 */
	bool raddr;
	bool operands; /* an atomic, flush or bind unit */
	uint8_t imm;   /* enum imm_kind */
	bool inline_ok;
	uint16_t services; /* that offer it: HCA_WQE_OP_RC, _UC, _UD */
};

/* The services of LOCAL and CONFIRM operations are those of judge_other(). */
static const struct send_op send_ops[SOFTHCA_WR_OPCODE_COUNT] = {
#define IMM(flags) ((flags)&HCA_WQE_OP_INV ? IMM_KEY : (flags)&HCA_WQE_OP_IMM ? IMM_DATA : IMM_NONE)
#define IS(kind, wanted) (HCA_KIND_##kind == HCA_KIND_##wanted)
#define X(name, code, wr, wc, kind, flags, bth) \
	[SOFTHCA_WR_##wr] = { \
		.op = code, \
		.header_units = 1 + !!((flags)&HCA_WQE_OP_RADDR) + IS(kind, ATOMIC) + \
				!!((flags)&HCA_WQE_OP_FLUSH) + 2 * !!((flags)&HCA_WQE_OP_BIND), \
		.raddr = ((flags) & (HCA_WQE_OP_RADDR | HCA_WQE_OP_BIND)) != 0, \
		.operands = IS(kind, ATOMIC) || (flags) & (HCA_WQE_OP_BIND | HCA_WQE_OP_FLUSH), \
		.imm = IMM(flags), \
		.inline_ok = IS(kind, MESSAGE), \
		.services = IS(kind, LOCAL) || IS(kind, CONFIRM) ? 0 : (flags)&HCA_WQE_OP_ANY, \
	},
	HCA_OP_LIST(X)
#undef X
#undef IS
};

/*
 * Requests that are posted without their operands: the service does not offer the opcode, so the
 * device completes them with an error. In verbs this mistake of the caller is no error of
 * post_send.
 */
static const struct send_op refused_ops[SOFTHCA_WR_OPCODE_COUNT] = {
#define X(name, code, wr, wc, kind, flags, bth) [SOFTHCA_WR_##wr] = {.op = code},
	HCA_OP_LIST(X)
#undef X
};

/* States in which send requests may be posted: RTS, SQD, SQE, ERR (the last two flush them) */
#define SENDABLE_STATES \
	(1u << SOFTHCA_QPS_RTS | 1u << SOFTHCA_QPS_SQD | 1u << SOFTHCA_QPS_SQE | \
	 1u << SOFTHCA_QPS_ERR)

/* A checked request: its opcode and its size in units of 16 bytes */
struct judged_wr {
	const struct send_op *op;
	uint32_t units;
};

/* Flags that only set bits of the WQE and the doorbell */
#define PLAIN_FLAGS (SOFTHCA_SEND_FENCE | SOFTHCA_SEND_SIGNALED | SOFTHCA_SEND_SOLICITED)
#define ALL_FLAGS (PLAIN_FLAGS | SOFTHCA_SEND_INLINE)

#define LIB_NO_OPCODE "unknown opcode %u: expected one of enum softhca_wr_opcode"
#define LIB_SQ_FULL "the send queue is full (%u): poll its CQ first"

/* There are other flags: inline data, or unknown ones. */
static int
judge_inline(const struct lib_qp *qp, const struct softhca_send_wr *wr, struct judged_wr *out)
{
	uint64_t total = 0;

	if ((wr->send_flags & ~(uint32_t)ALL_FLAGS) != 0)
		return lib_fail(-EINVAL, "send flags %#x: expected a set of %#x", wr->send_flags,
				ALL_FLAGS);
	if (!out->op->inline_ok)
		return lib_fail(
			-EINVAL,
			"send flag INLINE with a READ or an atomic: it is for data that the "
			"request sends");
	for (int i = 0; i < wr->num_sge; i++)
		total += wr->sg_list[i].length;
	if (total > qp->max_inline)
		return lib_fail(
			-EINVAL,
			"%llu bytes of inline data: the QP takes at most %u (max_inline_data)",
			(unsigned long long)total, qp->max_inline);
	out->units = out->op->header_units + qp->extra_units +
		     (sizeof(struct hca_inline_unit) + (uint32_t)total + HCA_WQE_UNIT - 1) /
			     HCA_WQE_UNIT;
	return 0;
}

/* A WQE has room for fewer SGEs behind an atomic unit than behind the others. */
static int
judge_sges(const struct lib_qp *qp, const struct softhca_send_wr *wr, uint32_t units)
{
	uint64_t total = 0;

	if (units * HCA_WQE_UNIT > 1u << qp->sq.log_stride)
		return lib_fail(-EINVAL,
				"%d SGEs with an atomic, the WQEs of the QP have room for %u",
				wr->num_sge,
				(1u << qp->sq.log_stride) / HCA_WQE_UNIT -
					(units - (uint32_t)wr->num_sge));

	for (int i = 0; i < wr->num_sge; i++) {
		if (wr->sg_list[i].length > HCA_WQE_MAX_BYTE_CNT)
			return lib_fail(-EINVAL, "SGE %d is longer than 2^31 - 1 bytes", i);
		total += wr->sg_list[i].length;
	}
	if (total > HCA_MAX_MSG_SIZE)
		return lib_fail(-EINVAL, "a message of %llu bytes: at most 2^31",
				(unsigned long long)total);
	return 0;
}

static int
refuse_wr(uint32_t opcode, struct judged_wr *out)
{
	out->op = &refused_ops[opcode];
	out->units = 1;
	return 0;
}

static int
judge_atomic_write(const struct lib_qp *qp, const struct softhca_send_wr *wr, struct judged_wr *out)
{
	bool in_line = (wr->send_flags & SOFTHCA_SEND_INLINE) != 0;
	uint64_t total = 0;

	if ((lib_qp_ctx(qp)->info.flags & HCA_CAP_ATOMIC_WRITE) == 0)
		return lib_fail(-EOPNOTSUPP, "the daemon has no ATOMIC WRITE: upgrade the daemon");
	if ((wr->send_flags & ~(uint32_t)ALL_FLAGS) != 0)
		return lib_fail(-EINVAL, "send flags %#x: expected a set of %#x", wr->send_flags,
				ALL_FLAGS);
	if (wr->num_sge < 0 || (!in_line && (uint32_t)wr->num_sge > qp->sq.max_sge))
		return lib_fail(-EINVAL, "%d SGEs: the QP takes 0 to %u", wr->num_sge,
				qp->sq.max_sge);
	for (int i = 0; i < wr->num_sge; i++)
		total += wr->sg_list[i].length;
	if (total != 8)
		return lib_fail(-EINVAL, "%llu bytes of an ATOMIC WRITE: expected 8",
				(unsigned long long)total);
	/* a WQE of any stride has room for the unit of 8 inline bytes */
	out->units =
		out->op->header_units + qp->extra_units + (in_line ? 1u : (uint32_t)wr->num_sge);
	return 0;
}

static int
judge_flush(const struct lib_qp *qp, const struct softhca_send_wr *wr, struct judged_wr *out)
{
	const uint32_t types = SOFTHCA_FLUSH_GLOBAL | SOFTHCA_FLUSH_PERSISTENT;

	if ((lib_qp_ctx(qp)->info.flags & HCA_CAP_FLUSH) == 0)
		return lib_fail(-EOPNOTSUPP, "the daemon has no FLUSH: upgrade the daemon");
	if (wr->num_sge != 0 || (wr->send_flags & ~(uint32_t)PLAIN_FLAGS) != 0)
		return lib_fail(
			-EINVAL,
			"%d SGEs and send flags %#x with a FLUSH: expected no SGE, and a set of "
			"%#x",
			wr->num_sge, wr->send_flags, PLAIN_FLAGS);
	if (wr->wr.flush.type == 0 || (wr->wr.flush.type & ~types) != 0)
		return lib_fail(-EINVAL,
				"placement type %#x: a FLUSH has SOFTHCA_FLUSH_GLOBAL, "
				"SOFTHCA_FLUSH_PERSISTENT or both",
				wr->wr.flush.type);
	if (wr->wr.flush.level > SOFTHCA_FLUSH_MR)
		return lib_fail(-EINVAL, "selectivity level %u: must be 0..1", wr->wr.flush.level);
	if (wr->wr.flush.length > HCA_MAX_MSG_SIZE)
		return lib_fail(-EINVAL, "a FLUSH of %u bytes: at most 2^31", wr->wr.flush.length);
	out->units = out->op->header_units + qp->extra_units;
	return 0;
}

/* Operations that are not plain, and opcodes that this type of QP does not have. */
static __attribute__((noinline)) int
judge_other(const struct lib_qp *qp, const struct softhca_send_wr *wr, struct judged_wr *out)
{
	bool bind = wr->opcode == SOFTHCA_WR_BIND_MW, inv = wr->opcode == SOFTHCA_WR_LOCAL_INV;

	if (out->op->op == HCA_OP_NOP)
		return lib_fail(-EINVAL, LIB_NO_OPCODE, wr->opcode);
	if (out->op->op == HCA_OP_ATOMIC_WRITE && (qp->ops & HCA_WQE_OP_RC) != 0)
		return judge_atomic_write(qp, wr, out);
	if (out->op->op == HCA_OP_FLUSH && (qp->ops & HCA_WQE_OP_RC) != 0)
		return judge_flush(qp, wr, out);
	if (!bind && !inv)
		return refuse_wr(wr->opcode, out);
	if (qp->pub.qp_type != SOFTHCA_QPT_RC && qp->pub.qp_type != SOFTHCA_QPT_UC)
		return lib_fail(-EINVAL, "opcode %u is not for QPs of type %u: RC and UC have it",
				wr->opcode, qp->pub.qp_type);
	if (wr->num_sge != 0 || (wr->send_flags & ~(uint32_t)PLAIN_FLAGS) != 0)
		return lib_fail(
			-EINVAL,
			"%d SGEs and send flags %#x with a bind or invalidate: expected no SGE, "
			"and a set of %#x",
			wr->num_sge, wr->send_flags, PLAIN_FLAGS);
	if (bind && lib_mw_judge(wr) != 0)
		return -EINVAL;
	out->units = out->op->header_units;
	return 0;
}

static inline int
judge_wr(const struct lib_qp *qp, const struct softhca_send_wr *wr, struct judged_wr *out)
{
	if (__builtin_expect(wr->opcode >= SOFTHCA_WR_OPCODE_COUNT, 0))
		return lib_fail(-EINVAL, LIB_NO_OPCODE, wr->opcode);
	out->op = &send_ops[wr->opcode];
	if (__builtin_expect((out->op->services & qp->ops) == 0, 0))
		return judge_other(qp, wr, out);
	if (__builtin_expect(wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->sq.max_sge, 0))
		return lib_fail(-EINVAL, "%d SGEs: the QP takes 0 to %u", wr->num_sge,
				qp->sq.max_sge);
	if (qp->pub.qp_type == SOFTHCA_QPT_UD) {
		if (__builtin_expect(wr->wr.ud.ah == NULL, 0))
			return lib_fail(-EINVAL,
					"wr.ud.ah is NULL: a datagram needs an address handle");
		/* UD does not have the opcode of LOCAL_INV */
		if (__builtin_expect(((const struct lib_ah *)wr->wr.ud.ah)->pd != qp->pub.pd, 0))
			return refuse_wr(SOFTHCA_WR_LOCAL_INV, out);
	}
	if (wr->send_flags & ~(uint32_t)PLAIN_FLAGS)
		return judge_inline(qp, wr, out);
	out->units = out->op->header_units + qp->extra_units + (uint32_t)wr->num_sge;
	if (__builtin_expect(wr->num_sge == 1, 1)) {
		if (__builtin_expect(wr->sg_list->length > HCA_WQE_MAX_BYTE_CNT, 0))
			return lib_fail(-EINVAL, "SGE 0 is longer than 2^31 - 1 bytes");
		return 0;
	}
	return judge_sges(qp, wr, out->units);
}

static __attribute__((noinline)) void
build_inline(uint8_t *at, const struct softhca_send_wr *wr)
{
	uint8_t *data = at + sizeof(struct hca_inline_unit);
	uint32_t total = 0;

	for (int i = 0; i < wr->num_sge; i++) {
		const struct softhca_sge *sge = &wr->sg_list[i];

		if (sge->length != 0)
			memcpy(data + total, (const void *)(uintptr_t)sge->addr, sge->length);
		total += sge->length;
	}
	hca_put_le32(at, HCA_INLINE_FLAG | total);
}

static inline void
build_sge(struct hca_data_unit *unit, const struct softhca_sge *sge)
{
	unit->byte_cnt = hca_cpu_to_le32(sge->length);
	unit->lkey = hca_cpu_to_le32(sge->lkey);
	unit->addr = hca_cpu_to_le64(sge->addr);
}

/* Any number of SGEs; kept apart from the usual case of one. */
static __attribute__((noinline)) void
build_sges(struct hca_data_unit *unit, const struct softhca_sge *sge, int n)
{
	for (int i = 0; i < n; i++)
		build_sge(&unit[i], &sge[i]);
}

static void
build_flush(struct hca_raddr_unit *remote, const struct softhca_send_wr *wr)
{
	struct hca_flush_unit *flush = (struct hca_flush_unit *)(remote + 1);

	remote->raddr = hca_cpu_to_le64(wr->wr.flush.remote_addr);
	remote->rkey = hca_cpu_to_le32(wr->wr.flush.rkey);
	flush->length = hca_cpu_to_le32(wr->wr.flush.length);
	flush->feth = hca_cpu_to_le32(HCA_FETH_MAKE(wr->wr.flush.type, wr->wr.flush.level));
	flush->reserved = 0;
}

static inline void
build_remote(uint8_t *at, const struct softhca_send_wr *wr, bool has_operands)
{
	struct hca_raddr_unit *remote = (struct hca_raddr_unit *)at;
	struct hca_atomic_unit *operands = (struct hca_atomic_unit *)(remote + 1);

	remote->reserved = 0;
	if (!has_operands) {
		remote->raddr = hca_cpu_to_le64(wr->wr.rdma.remote_addr);
		remote->rkey = hca_cpu_to_le32(wr->wr.rdma.rkey);
		return;
	}
	if (wr->opcode == SOFTHCA_WR_BIND_MW) {
		lib_mw_build((struct hca_bind_unit *)at, wr);
		return;
	}
	if (wr->opcode == SOFTHCA_WR_FLUSH) {
		build_flush(remote, wr);
		return;
	}
	remote->raddr = hca_cpu_to_le64(wr->wr.atomic.remote_addr);
	remote->rkey = hca_cpu_to_le32(wr->wr.atomic.rkey);
	if (wr->opcode == SOFTHCA_WR_ATOMIC_CMP_AND_SWP) {
		operands->swap_add = hca_cpu_to_le64(wr->wr.atomic.swap);
		operands->cmp = hca_cpu_to_le64(wr->wr.atomic.compare_add);
	} else {
		operands->swap_add = hca_cpu_to_le64(wr->wr.atomic.compare_add);
		operands->cmp = 0;
	}
}

_Static_assert(SOFTHCA_SEND_SOLICITED >> 1 == HCA_WQE_FLAG_SOLICITED, "one shift moves S and C");
_Static_assert(SOFTHCA_SEND_SIGNALED << 2 == HCA_WQE_FLAG_SIGNALED, "one shift moves S and C");

/* Write the unit of the service after the next unit. */
static void
build_extra(const struct lib_qp *qp, uint8_t *at, const struct softhca_send_wr *wr)
{
	struct hca_ud_unit *ud = (struct hca_ud_unit *)at;
	struct hca_xrc_unit *xrc = (struct hca_xrc_unit *)at;

	if (qp->pub.qp_type == SOFTHCA_QPT_UD) {
		*ud = ((const struct lib_ah *)wr->wr.ud.ah)->unit;
		/* as many bits as a packet has */
		ud->dqpn = hca_cpu_to_le32(wr->wr.ud.remote_qpn & HCA_QPN_MASK);
		ud->qkey = hca_cpu_to_le32(wr->wr.ud.remote_qkey);
	} else {
		memset(xrc, 0, sizeof(*xrc));
		xrc->remote_srqn = hca_cpu_to_le32(wr->qp_type.xrc.remote_srqn);
	}
}

/* The first unit; link_wqe() adds the following WQE. */
static inline void
build_next(const struct lib_qp *qp, struct hca_next_unit *next, const struct softhca_send_wr *wr,
	   const struct send_op *op)
{
	uint32_t flags = qp->signal_all | (wr->send_flags & SOFTHCA_SEND_SIGNALED) << 2 |
			 (wr->send_flags & SOFTHCA_SEND_SOLICITED) >> 1;

	next->nda_nop = 0;
	next->nee_nds = 0;
	next->flags = hca_cpu_to_le32(flags);
	next->imm_data = op->imm == IMM_NONE  ? 0
			 : op->imm == IMM_KEY ? hca_cpu_to_le32(wr->invalidate_rkey)
					      : wr->imm_data;
}

static inline void
build_wqe(const struct lib_qp *qp, uint8_t *wqe, const struct softhca_send_wr *wr,
	  const struct send_op *op)
{
	struct hca_next_unit *next = (struct hca_next_unit *)wqe;
	uint8_t *head = wqe + sizeof(*next) + qp->extra_units * HCA_WQE_UNIT;
	uint8_t *tail = head + (op->header_units - 1u) * HCA_WQE_UNIT;

	build_next(qp, next, wr, op);
	if (__builtin_expect(op->header_units == 0, 0))
		return; /* refused */
	if (__builtin_expect(qp->extra_units != 0, 0))
		build_extra(qp, wqe + sizeof(*next), wr);
	if (op->raddr)
		build_remote(head, wr, op->operands);
	if (__builtin_expect((wr->send_flags & SOFTHCA_SEND_INLINE) != 0, 0))
		build_inline(tail, wr);
	else if (__builtin_expect(wr->num_sge == 1, 1))
		build_sge((struct hca_data_unit *)tail, wr->sg_list);
	else
		build_sges((struct hca_data_unit *)tail, wr->sg_list, wr->num_sge);
}

static inline void
link_wqe(uint8_t *previous, uint32_t offset, const struct judged_wr *judged, bool fence)
{
	struct hca_next_unit *next = (struct hca_next_unit *)previous;

	next->nda_nop = hca_cpu_to_le32(HCA_NEXT_MAKE_NDA_NOP(offset, judged->op->op));
	next->nee_nds = hca_cpu_to_le32(HCA_NEXT_MAKE_NEE_NDS(fence, judged->units));
}

/* Build WQEs from *wr on; the first is checked and fits. */
static int
build_chain(struct lib_qp *qp, struct softhca_send_wr **wr, struct judged_wr judged, uint32_t room)
{
	struct lib_wq *sq = &qp->sq;
	uint32_t head = sq->head;
	uint8_t *previous = NULL;
	int err = 0;

	for (;;) {
		struct softhca_send_wr *w = *wr;
		uint32_t index = head & sq->mask;
		uint32_t offset = index << sq->log_stride;
		uint8_t *wqe = sq->buf + offset;

		build_wqe(qp, wqe, w, judged.op);
		if (previous != NULL)
			link_wqe(previous, offset, &judged,
				 (w->send_flags & SOFTHCA_SEND_FENCE) != 0);
		sq->wr_id[index] = w->wr_id;
		previous = wqe;
		head++;
		*wr = w = w->next;
		if (w == NULL)
			break;
		if (--room == 0) {
			err = lib_fail(-ENOMEM, LIB_SQ_FULL, sq->mask + 1);
			break;
		}
		err = judge_wr(qp, w, &judged);
		if (err != 0)
			break;
	}
	__atomic_store_n(&sq->head, head, __ATOMIC_RELAXED); /* polls read it */
	return err;
}

/* Room for WQEs in the send queue */
static inline uint32_t
room_of(const struct lib_qp *qp)
{
	return qp->sq.mask + 1 -
	       (qp->sq.head - __atomic_load_n(&qp->sq_polled.tail, __ATOMIC_ACQUIRE));
}

/* The chain is complete: its first WQE announces it, because there is no doorbell. */
static __attribute__((noinline)) void
announce_chain(struct lib_qp *qp, uint32_t first, uint64_t word)
{
	struct lib_wq *sq = &qp->sq;
	struct hca_next_unit *next =
		(struct hca_next_unit *)(sq->buf + ((first & sq->mask) << sq->log_stride));
	uint32_t round = first >> lib_log2_up(sq->mask + 1);
	uint32_t says = HCA_WQE_MAKE_ANNOUNCE(round, HCA_DB_F(word), HCA_DB_OPCODE(word),
					      HCA_DB_SIZE0(word));

	if (!qp->announces)
		qp->announces = true;
	__atomic_store_n(&next->flags, next->flags | hca_cpu_to_le32(says), __ATOMIC_RELEASE);
	lib_doorbell_mark(qp->uar, qp->pub.qp_num);
}

static inline int
post_locked(struct lib_qp *qp, struct softhca_send_wr **wr)
{
	struct lib_context *ctx = lib_qp_ctx(qp);
	struct lib_wq *sq = &qp->sq;
	struct softhca_send_wr *first = *wr;
	uint32_t index = sq->head & sq->mask;
	uint32_t room = room_of(qp);
	struct judged_wr judged;
	uint32_t number = 0;
	uint32_t head = sq->head;
	uint64_t word;
	int err, full;

	if (__builtin_expect(room == 0, 0))
		return lib_fail(-ENOMEM, LIB_SQ_FULL, sq->mask + 1);
	err = judge_wr(qp, first, &judged);
	if (err != 0)
		return err;
	full = lib_doorbell_take(ctx, qp->uar, &number);
	if (__builtin_expect(full < 0, 0))
		return full;
	word = HCA_DB_MAKE(index, (first->send_flags & SOFTHCA_SEND_FENCE) != 0, judged.op->op,
			   qp->pub.qp_num, judged.units);
	err = build_chain(qp, wr, judged, room);
	if (__builtin_expect(full == 0, 1))
		lib_doorbell_fill(qp->uar, number, word);
	else
		announce_chain(qp, head, word);
	return err;
}

/* Whether send requests may be posted at all */
static inline int
judge_state(const struct lib_qp *qp)
{
	if (__builtin_expect(qp->sq.buf == NULL, 0))
		return lib_fail(-EINVAL, "QP %#x is of type XRC_RECV, which has no send queue",
				qp->pub.qp_num);
	if (__builtin_expect((1u << qp->pub.state & SENDABLE_STATES) == 0, 0))
		return lib_fail(
			-EINVAL,
			"QP %#x is in state %s: requests are posted in RTS, SQD, SQE or ERR",
			qp->pub.qp_num, softhca_qp_state_str(qp->pub.state));
	return 0;
}

LIB_NO_CANARY int
softhca_post_send(struct softhca_qp *pub, struct softhca_send_wr *wr,
		  struct softhca_send_wr **bad_wr)
{
	struct lib_qp *qp = (struct lib_qp *)pub;
	uint32_t wqes;
	int err;

	if (__builtin_expect(wr == NULL, 0))
		return 0;
	if (qp->sq.locked)
		lib_lock_take(&qp->sq.lock);
	wqes = qp->sq.head;
	err = judge_state(qp);
	if (__builtin_expect(err == 0, 1))
		err = post_locked(qp, &wr);
	wqes = qp->sq.head - wqes;
	if (qp->sq.locked)
		lib_lock_drop(&qp->sq.lock);
	if (__builtin_expect(err != 0, 0) && bad_wr != NULL)
		*bad_wr = wr;
	lib_posted(lib_qp_ctx(qp), wqes);
	lib_wait_posted(qp->uar);
	return err;
}

/* ---- one by one ---- */

static void
unlock_batch(struct lib_qp *qp)
{
	if (qp->sq.locked)
		lib_lock_drop(&qp->sq.lock);
}

void
softhca_wr_start(struct softhca_wr_batch *batch, struct softhca_qp *pub)
{
	struct lib_qp *qp = (struct lib_qp *)pub;

	if (qp->sq.locked)
		lib_lock_take(&qp->sq.lock);
	/* until here the batch may have been another thread's */
	batch->qp = pub;
	batch->count = 0;
	batch->err = judge_state(qp);
	batch->room = batch->err == 0 ? room_of(qp) : 0;
}

/* WQEs behind the head are the library's until a doorbell tells of them. */
static inline void
append(struct softhca_wr_batch *batch, struct lib_wq *sq, uint32_t index,
       const struct softhca_send_wr *wr, const struct judged_wr *judged)
{
	const struct lib_qp *qp = (const struct lib_qp *)batch->qp;
	bool fence = (wr->send_flags & SOFTHCA_SEND_FENCE) != 0;
	uint32_t before = (index - 1) & sq->mask;

	if (__builtin_expect(batch->count != 0, 1))
		link_wqe(sq->buf + (before << sq->log_stride), index << sq->log_stride, judged,
			 fence);
	else
		batch->doorbell =
			HCA_DB_MAKE(index, fence, judged->op->op, qp->pub.qp_num, judged->units);
	sq->wr_id[index] = wr->wr_id;
	batch->count++;
}

static __attribute__((noinline)) int
add_any(struct softhca_wr_batch *batch, const struct softhca_send_wr *wr)
{
	struct lib_qp *qp = (struct lib_qp *)batch->qp;
	struct lib_wq *sq = &qp->sq;
	uint32_t index = (sq->head + batch->count) & sq->mask;
	struct judged_wr judged;

	if (batch->err != 0)
		return batch->err;
	if (batch->count == batch->room)
		batch->err = lib_fail(-ENOMEM, LIB_SQ_FULL, sq->mask + 1);
	else
		batch->err = judge_wr(qp, wr, &judged);
	if (batch->err != 0)
		return batch->err;
	build_wqe(qp, sq->buf + (index << sq->log_stride), wr, judged.op);
	append(batch, sq, index, wr, &judged);
	return 0;
}

/*
 * A valid request with one SGE, an address and a key, and no other operand: it is judged and built
 * without a call, so that no register has to be saved around one.
 */
static inline bool
is_plain(const struct softhca_wr_batch *batch, const struct softhca_send_wr *wr)
{
	const struct lib_qp *qp = (const struct lib_qp *)batch->qp;
	const struct send_op *op;

	if (__builtin_expect(wr->opcode >= SOFTHCA_WR_OPCODE_COUNT, 0))
		return false;
	op = &send_ops[wr->opcode];
	return batch->err == 0 && batch->count != batch->room && (op->services & qp->ops) != 0 &&
	       !op->operands && qp->extra_units == 0 && qp->sq.max_sge != 0 && wr->num_sge == 1 &&
	       (wr->send_flags & ~(uint32_t)PLAIN_FLAGS) == 0 &&
	       wr->sg_list->length <= HCA_WQE_MAX_BYTE_CNT;
}

static inline void
build_plain(const struct lib_qp *qp, uint8_t *wqe, const struct softhca_send_wr *wr,
	    const struct send_op *op)
{
	struct hca_next_unit *next = (struct hca_next_unit *)wqe;
	struct hca_data_unit *data =
		(struct hca_data_unit *)(wqe + op->header_units * HCA_WQE_UNIT);

	build_next(qp, next, wr, op);
	if (__builtin_expect(op->raddr, 1))
		build_remote(wqe + sizeof(*next), wr, false);
	build_sge((struct hca_data_unit *)data, wr->sg_list);
}

int
softhca_wr_add(struct softhca_wr_batch *batch, const struct softhca_send_wr *wr)
{
	struct lib_qp *qp = (struct lib_qp *)batch->qp;
	struct lib_wq *sq = &qp->sq;
	struct judged_wr judged;
	uint32_t index;

	if (__builtin_expect(!is_plain(batch, wr), 0))
		return add_any(batch, wr);
	judged.op = &send_ops[wr->opcode];
	judged.units = judged.op->header_units + 1u;
	index = (sq->head + batch->count) & sq->mask;
	build_plain(qp, sq->buf + (index << sq->log_stride), wr, judged.op);
	append(batch, sq, index, wr, &judged);
	return 0;
}

/* Without the lock the batch, which threads may share as they do the QP, is another's. */
int
softhca_wr_complete(struct softhca_wr_batch *batch)
{
	struct lib_qp *qp = (struct lib_qp *)batch->qp;
	struct lib_context *ctx = lib_qp_ctx(qp);
	uint32_t first = qp->sq.head, count = batch->count, number = 0;
	int err = batch->err, full = 0;

	if (err == 0 && count != 0) {
		full = lib_doorbell_take(ctx, qp->uar, &number);
		if (full < 0)
			err = full;
	}
	if (err != 0 || count == 0) {
		unlock_batch(qp);
		return err;
	}
	__atomic_store_n(&qp->sq.head, first + count, __ATOMIC_RELAXED); /* polls read it */
	if (__builtin_expect(full == 0, 1))
		lib_doorbell_fill(qp->uar, number, batch->doorbell);
	else
		announce_chain(qp, first, batch->doorbell);
	unlock_batch(qp);
	lib_posted(ctx, count);
	lib_wait_posted(qp->uar);
	return 0;
}

void
softhca_wr_abort(struct softhca_wr_batch *batch)
{
	unlock_batch((struct lib_qp *)batch->qp);
}
