/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Posting requests: a chain of WQEs with UB units (abi_tp.h), and one doorbell for it, as post_send
 * of verbs does. A request is judged completely before its WQE is written.
 */

#include <string.h>

#include "urma_send_plain.h"

/* ---- the chain ---- */

static inline void
build_wqe(uint8_t *wqe, const uint8_t *previous, const struct request *r)
{
	if (r->plain)
		build_plain(wqe, previous, r);
	else
		urma_send_build(wqe, r);
}

static inline void
link_wqe(uint8_t *previous, uint32_t offset, const struct request *r)
{
	struct hca_next_unit *next = (struct hca_next_unit *)previous;

	next->nda_nop = hca_cpu_to_le32(HCA_NEXT_MAKE_NDA_NOP(offset, r->op->op));
	next->nee_nds = hca_cpu_to_le32(HCA_NEXT_MAKE_NEE_NDS(r->wr->flag.bs.fence, r->units));
}

static __attribute__((noinline)) int
judge_alone(const struct urma_queue *q, const urma_jfs_wr_t *wr, struct request *r)
{
	return judge_plain(q, wr, r) ? 0 : urma_send_judge(q, wr, r);
}

/* after: r is the request before it. */
static inline __attribute__((always_inline)) int
judge_next(const struct urma_queue *q, uint32_t head, const urma_jfs_wr_t *wr, struct request *r,
	   bool after)
{
	if (head - __atomic_load_n(&q->tail, __ATOMIC_ACQUIRE) == q->sq.mask + 1)
		return urma_fail(-ENOMEM, "the send queue is full (%u): poll its JFC first",
				 q->sq.mask + 1);
	if (after && judge_like(wr, r))
		return 0;
	return judge_alone(q, wr, r);
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

		build_wqe(q->sq.buf + offset, previous, r);
		if (previous != NULL)
			link_wqe(previous, offset, r);
		previous = q->sq.buf + offset;
		q->sq.wr_id[index] = (*wr)->user_ctx;
		head++;
		*wr = (*wr)->next;
		if (*wr == NULL)
			break;
		err = judge_next(q, head, *wr, r, true);
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
	int err = judge_next(q, first, *wr, &r, false), full;

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

LIB_NO_CANARY urma_status_t
urma_post_send(struct urma_queue *q, urma_jfs_wr_t *wr, urma_jfs_wr_t **bad_wr)
{
	uint32_t posted;
	int err;

	if (wr == NULL)
		return URMA_SUCCESS;
	lib_lock_take(&q->sq.lock);
	posted = q->sq.head;
	if (q->state == URMA_JETTY_STATE_RESET)
		err = urma_fail(
			-EINVAL,
			"%s %u is in state RESET: modify it to READY before requests are posted",
			URMA_QUEUE(q));
	else
		err = post_locked(q, &wr);
	posted = q->sq.head - posted;
	lib_lock_drop(&q->sq.lock);
	if (err != 0 && bad_wr != NULL)
		*bad_wr = wr;
	lib_posted(q->ctx->lib, posted);
	if (__builtin_expect(__atomic_load_n(&q->ctx->lib->uar.woke, __ATOMIC_RELAXED), 0))
		urma_inside()->wait_woke(&q->ctx->lib->uar);
	return urma_status(err);
}

urma_status_t
urma_post_jetty_send_wr(urma_jetty_t *jetty, urma_jfs_wr_t *wr, urma_jfs_wr_t **bad_wr)
{
	if (jetty == NULL)
		return urma_status(urma_null("jetty", "urma_create_jetty"));
	return urma_post_send((struct urma_queue *)jetty, wr, bad_wr);
}

urma_status_t
urma_post_jfs_wr(urma_jfs_t *jfs, urma_jfs_wr_t *wr, urma_jfs_wr_t **bad_wr)
{
	if (jfs == NULL)
		return urma_status(urma_null("jfs", "urma_create_jfs"));
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
