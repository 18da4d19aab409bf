/* SPDX-License-Identifier: BSD-3-Clause */

/* Posting receives, into a Jetty's own ring or into a JFR; no doorbell is rung for them. */

#include <string.h>

#include "urma_impl.h"

static inline int
recv_judge(const struct urma_ctx *ctx, const struct lib_wq *wq, const urma_jfr_wr_t *wr)
{
	if (wr->src.num_sge > wq->max_sge || (wr->src.num_sge != 0 && wr->src.sge == NULL))
		return urma_fail(-EINVAL, URMA_SGES, wr->src.num_sge, wq->max_sge);
	for (uint32_t i = 0; i < wr->src.num_sge; i++) {
		const urma_sge_t *sge = &wr->src.sge[i];

		if (sge->tseg == NULL || sge->tseg->urma_ctx != &ctx->pub ||
		    ((const struct urma_segment *)sge->tseg)->mr == NULL)
			return urma_fail(-EINVAL, URMA_NO_SEGMENT, i);
		if (sge->len > HCA_WQE_MAX_BYTE_CNT)
			return urma_fail(-EINVAL, "SGE %u is longer than 2^31 - 1 bytes", i);
	}
	return 0;
}

/* A unit of zeros ends the list, so empty SGEs are left out. */
static inline struct hca_next_unit *
build(struct urma_rq *rq, uint32_t index, const urma_jfr_wr_t *wr)
{
	struct lib_wq *wq = &rq->wq;
	uint8_t *wqe = wq->buf + ((size_t)index << wq->log_stride);
	struct hca_data_unit *u = (struct hca_data_unit *)(wqe + sizeof(struct hca_next_unit));
	uint32_t used = 0;

	memset(wqe, 0, sizeof(struct hca_next_unit));
	if (rq->heads != NULL) {
		u[used].byte_cnt = hca_cpu_to_le32(URMA_HEAD_BYTES);
		u[used].lkey = hca_cpu_to_le32(rq->heads_mr->lkey);
		u[used].addr =
			hca_cpu_to_le64((uintptr_t)rq->heads + (size_t)index * URMA_HEAD_STRIDE);
		used++;
	}
	for (uint32_t i = 0; i < wr->src.num_sge; i++) {
		const urma_sge_t *sge = &wr->src.sge[i];

		if (sge->len == 0)
			continue;
		u[used].byte_cnt = hca_cpu_to_le32(sge->len);
		u[used].lkey = hca_cpu_to_le32(((struct urma_segment *)sge->tseg)->mr->lkey);
		u[used].addr = hca_cpu_to_le64(sge->addr);
		used++;
	}
	if (used < ((1u << wq->log_stride) - sizeof(struct hca_next_unit)) / HCA_WQE_UNIT)
		memset(&u[used], 0, sizeof(*u));
	wq->wr_id[index] = wr->user_ctx;
	return (struct hca_next_unit *)wqe;
}

static int
refuse_full(const struct urma_rq *rq)
{
	if (rq->next != NULL)
		return urma_fail(-ENOMEM, "the JFR is full (%u): poll its JFC first", rq->wq.mask);
	return urma_fail(-ENOMEM, "the receive queue is full (%u): poll its JFC first",
			 rq->wq.mask + 1);
}

/* In a list the WQE after it must be known when it is posted, so one is always free. */
static inline int
post_one(const struct urma_ctx *ctx, struct urma_rq *rq, const urma_jfr_wr_t *wr)
{
	bool list = rq->next != NULL;
	uint32_t index = list ? rq->free_head : rq->posted & rq->wq.mask;
	struct hca_next_unit *next;
	int err;

	if (list ? index == rq->free_tail
		 : rq->posted - __atomic_load_n(&rq->tail, __ATOMIC_ACQUIRE) == rq->wq.mask + 1)
		return refuse_full(rq);
	err = recv_judge(ctx, &rq->wq, wr);
	if (err != 0)
		return err;
	next = build(rq, index, wr);
	rq->posted++;
	if (list) {
		rq->free_head = rq->next[index];
		next->nda_nop = hca_cpu_to_le32(
			HCA_NEXT_MAKE_NDA_NOP(rq->free_head << rq->wq.log_stride, 0));
	}
	return 0;
}

/* In ERROR the device flushes a receive only if a doorbell announces it. */
static void
kick_if_asked(struct urma_ctx *ctx, const struct urma_rq *rq, uint32_t qpn)
{
	uint32_t number = 0;
	int full;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&rq->record->notify, __ATOMIC_RELAXED) == 0)
		return;
	full = urma_inside()->doorbell_take(ctx->lib, &number);
	if (full > 0)
		urma_inside()->doorbell_mark(&ctx->lib->uar, qpn);
	else if (full == 0)
		urma_inside()->doorbell_fill(&ctx->lib->uar, number,
					     HCA_DB_MAKE(0, 0, HCA_DB_OPCODE_KICK, qpn, 0));
}

static urma_status_t
post(struct urma_ctx *ctx, struct urma_rq *rq, urma_jfr_wr_t *wr, urma_jfr_wr_t **bad_wr)
{
	int err = 0;

	lib_lock_take(&rq->wq.lock);
	if (ctx->lib->dead)
		err = urma_inside()->dead(ctx->lib);
	else if (__builtin_expect(rq->closed, 0))
		err = urma_fail(
			-EINVAL,
			"the Jetty is in state RESET: modify it to READY before receives are "
			"posted");
	while (err == 0 && wr != NULL) {
		err = post_one(ctx, rq, wr);
		if (err == 0)
			wr = wr->next;
	}
	__atomic_store_n(&rq->record->producer, hca_cpu_to_le32(rq->posted), __ATOMIC_RELEASE);
	lib_lock_drop(&rq->wq.lock);
	if (err != 0 && bad_wr != NULL)
		*bad_wr = wr;
	return urma_status(err);
}

urma_status_t
urma_post_jfr_wr(urma_jfr_t *jfr, urma_jfr_wr_t *wr, urma_jfr_wr_t **bad_wr)
{
	struct urma_jfrq *f = (struct urma_jfrq *)jfr;

	if (jfr == NULL)
		return urma_status(urma_null("jfr", "urma_create_jfr"));
	return post(f->ctx, &f->rq, wr, bad_wr);
}

LIB_NO_CANARY urma_status_t
urma_post_jetty_recv_wr(urma_jetty_t *jetty, urma_jfr_wr_t *wr, urma_jfr_wr_t **bad_wr)
{
	struct urma_queue *q = (struct urma_queue *)jetty;
	urma_status_t status;

	if (jetty == NULL || q->rq.wq.buf == NULL)
		return urma_status(urma_fail(
			-EINVAL,
			"jetty is NULL, or its receives are those of a JFR: post them with "
			"urma_post_jfr_wr()"));
	status = post(q->ctx, &q->rq, wr, bad_wr);
	kick_if_asked(q->ctx, &q->rq, q->number);
	return status;
}

urma_status_t
urma_recv(urma_jfr_t *jfr, urma_target_seg_t *recv_tseg, uint64_t buf, uint32_t len,
	  uint64_t user_ctx)
{
	urma_sge_t sge = {buf, len, recv_tseg};
	urma_jfr_wr_t wr = {.src = {&sge, 1}, .user_ctx = user_ctx};

	return urma_post_jfr_wr(jfr, &wr, NULL);
}
