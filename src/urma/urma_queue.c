/* SPDX-License-Identifier: BSD-3-Clause */

/* Memory of queues: sizes, mapping, which WQE a completion is of. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "urma_impl.h"

#define PAGE 4096u
/* In front of the data of the largest Write: next, UB, raddr, notify */
#define HEADER_BYTES (sizeof(struct hca_next_unit) + sizeof(struct hca_ub_unit) + 32u)
/* The same of an unreliable Send: next, UB, address */
#define MAIL_BYTES \
	(sizeof(struct hca_next_unit) + sizeof(struct hca_ub_unit) + sizeof(struct hca_ud_unit))
/* An atomic of 16 bytes: next, UB, raddr, both operands, one data unit */
#define ATOMIC_BYTES (sizeof(struct hca_next_unit) + sizeof(struct hca_ub_unit) + 64u)

static uint32_t
log2_up(uint32_t n)
{
	uint32_t log = 0;

	while ((UINT64_C(1) << log) < n)
		log++;
	return log;
}

static uint32_t
larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static uint32_t
smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static int
map(struct urma_ctx *ctx, struct lib_wq *wq, uint32_t log_size, uint32_t log_stride,
    size_t record_bytes)
{
	size_t bytes = ((size_t)1 << (log_size + log_stride)) + record_bytes;

	wq->mask = (1u << log_size) - 1;
	wq->log_stride = log_stride;
	wq->locked = true;
	wq->bytes = (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
	wq->wr_id = calloc((size_t)wq->mask + 1, sizeof(*wq->wr_id));
	if (wq->wr_id != NULL)
		wq->buf = urma_inside()->map(ctx->lib, wq->bytes);
	if (wq->buf == NULL) {
		free(wq->wr_id);
		wq->wr_id = NULL;
		return urma_fail(
			-ENOMEM,
			"no memory for a queue of %u requests: %zu bytes: make it smaller, "
			"or raise the memory limit (ulimit -v, cgroup)",
			wq->mask + 1, wq->bytes);
	}
	return 0;
}

void
urma_wq_unmap(struct urma_ctx *ctx, struct lib_wq *wq)
{
	if (wq->buf != NULL)
		urma_inside()->unmap(ctx->lib, wq->buf, wq->bytes);
	free(wq->wr_id);
	wq->buf = NULL;
	wq->wr_id = NULL;
}

static int
check_depth(const struct urma_ctx *ctx, uint32_t depth, uint32_t sges)
{
	if (depth == 0 || log2_up(depth) > ctx->lib->info.log_max_wqes)
		return urma_fail(-EINVAL, "a queue of %u requests: expected 1 to 2^%u", depth,
				 ctx->lib->info.log_max_wqes);
	if (sges > ctx->lib->info.max_sge)
		return urma_fail(-EINVAL, "%u SGEs: the device has at most %u", sges,
				 ctx->lib->info.max_sge);
	return 0;
}

int
urma_sq_map(struct urma_ctx *ctx, struct urma_queue *q, const urma_jfs_cfg_t *cfg)
{
	const struct hca_ctl_info *info = &ctx->lib->info;
	uint32_t in_line = (uint32_t)sizeof(struct hca_inline_unit) + cfg->max_inline_data;
	uint32_t data = larger(cfg->max_sge * HCA_WQE_UNIT, in_line);
	uint32_t header = cfg->trans_mode == URMA_TM_UM ? MAIL_BYTES : HEADER_BYTES;
	uint32_t log_stride =
		larger(log2_up(larger(header + data, ATOMIC_BYTES)), HCA_WQE_MIN_STRIDE_LOG);
	uint32_t room;
	int err = check_depth(ctx, cfg->depth, cfg->max_sge);

	if (err != 0)
		return err;
	if (cfg->max_inline_data > info->max_inline || 1u << log_stride > info->max_wqe_stride)
		return urma_fail(
			-EINVAL,
			"%u SGEs and %u bytes inline: together they exceed a WQE of at most %u "
			"bytes",
			cfg->max_sge, cfg->max_inline_data, info->max_wqe_stride);
	err = map(ctx, &q->sq, log2_up(cfg->depth), log_stride, 0);
	if (err != 0)
		return err;
	room = (1u << log_stride) - header;
	q->sq.max_sge = smaller(room / HCA_WQE_UNIT, info->max_sge);
	q->max_inline = smaller(room - (uint32_t)sizeof(struct hca_inline_unit), info->max_inline);
	return 0;
}

/* All are free; the last one stays so. */
static int
list_all(struct urma_rq *rq)
{
	rq->next = calloc((size_t)rq->wq.mask + 1, sizeof(*rq->next));
	if (rq->next == NULL)
		return urma_no_memory("a JFR", ((size_t)rq->wq.mask + 1) * sizeof(*rq->next));
	for (uint32_t i = 0; i <= rq->wq.mask; i++)
		rq->next[i] = i + 1;
	rq->free_tail = rq->wq.mask;
	return 0;
}

static int
mark_none(struct urma_rq *rq)
{
	rq->done = calloc((size_t)rq->wq.mask + 1, sizeof(*rq->done));
	return rq->done != NULL ? 0
				: urma_no_memory("a receive queue",
						 ((size_t)rq->wq.mask + 1) * sizeof(*rq->done));
}

/* The first SGE of each receive is the library's. */
static int
map_heads(struct urma_ctx *ctx, struct urma_rq *rq)
{
	size_t bytes = ((size_t)rq->wq.mask + 1) * URMA_HEAD_STRIDE;

	rq->wq.max_sge--;
	rq->heads = urma_inside()->map(ctx->lib, bytes);
	if (rq->heads == NULL)
		return urma_no_memory("the addresses of messages", bytes);
	rq->heads_mr = softhca_reg_mr(ctx->pd, rq->heads, bytes, SOFTHCA_ACCESS_LOCAL_WRITE);
	return rq->heads_mr != NULL ? 0 : -errno;
}

static void
unmap_heads(struct urma_ctx *ctx, struct urma_rq *rq)
{
	if (rq->heads_mr != NULL)
		(void)softhca_dereg_mr(rq->heads_mr);
	if (rq->heads != NULL)
		urma_inside()->unmap(ctx->lib, rq->heads,
				     ((size_t)rq->wq.mask + 1) * URMA_HEAD_STRIDE);
	rq->heads_mr = NULL;
	rq->heads = NULL;
}

int
urma_rq_map(struct urma_ctx *ctx, struct urma_rq *rq, const urma_jfr_cfg_t *cfg, bool list)
{
	bool heads = cfg->trans_mode == URMA_TM_UM;
	uint32_t depth = cfg->depth, sges = cfg->max_sge + heads;
	uint32_t bytes = (uint32_t)sizeof(struct hca_next_unit) + sges * HCA_WQE_UNIT;
	uint32_t log_stride = larger(log2_up(bytes), HCA_WQE_MIN_STRIDE_LOG);
	int err = check_depth(ctx, depth + list, sges);

	if (err == 0)
		err = map(ctx, &rq->wq, log2_up(depth + list), log_stride,
			  sizeof(struct hca_rq_record));
	if (err != 0)
		return err;
	rq->record =
		(struct hca_rq_record *)(rq->wq.buf + (((size_t)rq->wq.mask + 1) << log_stride));
	rq->wq.max_sge = smaller(((1u << log_stride) - (uint32_t)sizeof(struct hca_next_unit)) /
					 HCA_WQE_UNIT,
				 ctx->lib->info.max_sge);
	err = list ? list_all(rq) : mark_none(rq);
	if (err == 0 && heads)
		err = map_heads(ctx, rq);
	if (err != 0)
		urma_rq_unmap(ctx, rq);
	return err;
}

void
urma_rq_unmap(struct urma_ctx *ctx, struct urma_rq *rq)
{
	unmap_heads(ctx, rq);
	urma_wq_unmap(ctx, &rq->wq);
	free(rq->next);
	free(rq->done);
	rq->next = NULL;
	rq->done = NULL;
}
