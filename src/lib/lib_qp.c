/* SPDX-License-Identifier: BSD-3-Clause */

/* Queue pairs: sizes and memory of their queues, creation, destruction. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi_ctx.h"
#include "lib_types.h"

#define PAGE 4096u

/* Units of 16 bytes in front of the data of the largest send WQE, by service */
#define RC_HEADER_UNITS 2u /* next, raddr; an atomic has a third and one SGE */
#define RC_ATOMIC_UNITS 4u
#define UD_HEADER_UNITS 4u /* next, ud */

static uint32_t
log2_up(uint32_t n)
{
	uint32_t log = 0;

	while ((UINT64_C(1) << log) < n)
		log++;
	return log;
}

static uint32_t
max_u32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static uint32_t
stride_log(uint32_t bytes)
{
	return max_u32(log2_up(bytes), HCA_WQE_MIN_STRIDE_LOG);
}

static uint32_t
send_header_bytes(uint32_t qp_type)
{
	return (qp_type == SOFTHCA_QPT_UD ? UD_HEADER_UNITS : RC_HEADER_UNITS) * HCA_WQE_UNIT;
}

static uint32_t
send_stride_log(const struct softhca_qp_init_attr *attr)
{
	uint32_t header = send_header_bytes(attr->qp_type);
	uint32_t sges = header + attr->cap.max_send_sge * HCA_WQE_UNIT;
	uint32_t in_line = header + attr->cap.max_inline_data;

	if (attr->cap.max_inline_data != 0)
		in_line += sizeof(struct hca_inline_unit);
	return stride_log(max_u32(max_u32(sges, in_line), RC_ATOMIC_UNITS * HCA_WQE_UNIT));
}

static int
check_caps(const struct lib_context *ctx, const struct softhca_qp_init_attr *attr)
{
	const struct softhca_qp_cap *cap = &attr->cap;
	uint32_t max_wr = 1u << ctx->info.log_max_wqes;

	if (attr->send_cq == NULL || attr->recv_cq == NULL)
		return lib_fail(-EINVAL, "a QP needs a send and a receive CQ");
	if (attr->qp_type < SOFTHCA_QPT_RC || attr->qp_type > SOFTHCA_QPT_UD)
		return lib_fail(-EINVAL, "QP type %u is not known", attr->qp_type);
	if (cap->max_send_wr > max_wr || cap->max_recv_wr > max_wr)
		return lib_fail(-EINVAL, "queues of %u and %u requests, the device has %u",
				cap->max_send_wr, cap->max_recv_wr, max_wr);
	if (cap->max_send_sge > ctx->info.max_sge || cap->max_recv_sge > ctx->info.max_sge)
		return lib_fail(-EINVAL, "%u and %u SGEs, the device has %u", cap->max_send_sge,
				cap->max_recv_sge, ctx->info.max_sge);
	if (cap->max_inline_data > ctx->info.max_inline)
		return lib_fail(-EINVAL, "%u bytes inline, the device has %u", cap->max_inline_data,
				ctx->info.max_inline);
	if (1u << send_stride_log(attr) > ctx->info.max_wqe_stride)
		return lib_fail(-EINVAL, "WQEs of %u bytes, the device has %u",
				1u << send_stride_log(attr), ctx->info.max_wqe_stride);
	return 0;
}

static int
alloc_wq(struct lib_wq *wq, uint32_t max_wr, uint32_t log_stride, size_t record_bytes)
{
	uint32_t log_size = log2_up(max_u32(max_wr, 1));
	size_t bytes = ((size_t)1 << (log_size + log_stride)) + record_bytes;

	wq->mask = (1u << log_size) - 1;
	wq->log_stride = log_stride;
	wq->bytes = (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
	wq->buf = lib_map(wq->bytes);
	wq->wr_id = calloc((size_t)wq->mask + 1, sizeof(*wq->wr_id));
	if (wq->buf == NULL || wq->wr_id == NULL)
		return lib_fail(-ENOMEM, "no memory for a queue of %u requests", wq->mask + 1);
	return 0;
}

static void
free_wq(struct lib_wq *wq)
{
	lib_unmap(wq->buf, wq->bytes);
	free(wq->wr_id);
}

void
lib_qp_free(struct lib_qp *qp)
{
	free_wq(&qp->sq);
	free_wq(&qp->rq);
	free(qp);
}

/* What was granted: everything the strides have room for. */
static void
set_caps(struct lib_qp *qp, const struct lib_context *ctx)
{
	uint32_t header = send_header_bytes(qp->pub.qp_type);
	uint32_t room = (1u << qp->sq.log_stride) - header;
	uint32_t recv_room = (1u << qp->rq.log_stride) - sizeof(struct hca_next_unit);
	uint32_t max_sge = ctx->info.max_sge;
	uint32_t max_inline = room - (uint32_t)sizeof(struct hca_inline_unit);

	qp->sq.max_sge = room / HCA_WQE_UNIT < max_sge ? room / HCA_WQE_UNIT : max_sge;
	qp->rq.max_sge = recv_room / HCA_WQE_UNIT < max_sge ? recv_room / HCA_WQE_UNIT : max_sge;
	qp->max_inline = max_inline < ctx->info.max_inline ? max_inline : ctx->info.max_inline;
	qp->cap = (struct softhca_qp_cap){
		.max_send_wr = qp->sq.mask + 1,
		.max_recv_wr = qp->rq.mask + 1,
		.max_send_sge = qp->sq.max_sge,
		.max_recv_sge = qp->rq.max_sge,
		.max_inline_data = qp->max_inline,
	};
}

void
lib_qp_rewind(struct lib_qp *qp)
{
	qp->sq.head = 0;
	qp->rq.head = 0;
	__atomic_store_n(&qp->sq.tail, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&qp->rq.tail, 0, __ATOMIC_RELEASE);
	memset(qp->rq_record, 0, sizeof(*qp->rq_record));
}

static struct lib_qp *
alloc_qp(struct lib_context *ctx, struct softhca_pd *pd, const struct softhca_qp_init_attr *attr)
{
	uint32_t recv_bytes = sizeof(struct hca_next_unit) + attr->cap.max_recv_sge * HCA_WQE_UNIT;
	struct lib_qp *qp = aligned_alloc(HCA_CACHE_LINE, sizeof(*qp));
	int err;

	if (qp == NULL) {
		lib_fail(-ENOMEM, "no memory for a QP");
		return NULL;
	}
	memset(qp, 0, sizeof(*qp));
	qp->ctx = ctx;
	qp->pub.context = pd->context;
	qp->pub.pd = pd;
	qp->pub.send_cq = attr->send_cq;
	qp->pub.recv_cq = attr->recv_cq;
	qp->pub.qp_context = attr->qp_context;
	qp->pub.qp_type = attr->qp_type;
	qp->locked = (attr->flags & SOFTHCA_SINGLE_THREADED) == 0;
	qp->signal_all = attr->sq_sig_all ? HCA_WQE_FLAG_SIGNALED : 0;
	err = alloc_wq(&qp->sq, attr->cap.max_send_wr, send_stride_log(attr), 0);
	if (err == 0)
		err = alloc_wq(&qp->rq, attr->cap.max_recv_wr, stride_log(recv_bytes),
			       sizeof(struct hca_rq_record));
	if (err != 0) {
		lib_qp_free(qp);
		return NULL;
	}
	qp->rq_record = (struct hca_rq_record *)(qp->rq.buf +
						 (((size_t)qp->rq.mask + 1) << qp->rq.log_stride));
	set_caps(qp, ctx);
	return qp;
}

static uint32_t
service_of(uint32_t qp_type)
{
	return qp_type == SOFTHCA_QPT_RC   ? HCA_ST_RC
	       : qp_type == SOFTHCA_QPT_UC ? HCA_ST_UC
					   : HCA_ST_UD;
}

static int
enter_qp(struct lib_context *ctx, struct lib_qp *qp)
{
	struct lib_qp **place = &ctx->qps[qp->pub.qp_num & ctx->qp_mask];
	int err = 0;

	pthread_mutex_lock(&ctx->lock);
	if (*place != NULL) {
		err = lib_fail(-EIO, "the driver gave QPN %#x twice", qp->pub.qp_num);
	} else {
		((struct lib_cq *)qp->pub.send_cq)->users++;
		((struct lib_cq *)qp->pub.recv_cq)->users++;
		__atomic_store_n(place, qp, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&ctx->lock);
	return err;
}

struct softhca_qp *
softhca_create_qp(struct softhca_pd *pd, struct softhca_qp_init_attr *attr)
{
	struct lib_context *ctx = lib_ctx(pd->context);
	struct hca_ctl_qp request;
	struct lib_qp *qp;
	int err;

	if (check_caps(ctx, attr) != 0)
		return NULL;
	qp = alloc_qp(ctx, pd, attr);
	if (qp == NULL)
		return NULL;
	request = (struct hca_ctl_qp){
		.sq_addr = (uintptr_t)qp->sq.buf,
		.rq_addr = (uintptr_t)qp->rq.buf,
		.pdn = pd->handle,
		.service = service_of(attr->qp_type),
		.send_cqn = attr->send_cq->handle,
		.recv_cqn = attr->recv_cq->handle,
		.log_sq = (uint8_t)log2_up(qp->sq.mask + 1),
		.log_sq_stride = (uint8_t)qp->sq.log_stride,
		.log_rq = (uint8_t)log2_up(qp->rq.mask + 1),
		.log_rq_stride = (uint8_t)qp->rq.log_stride,
	};
	err = ctx->ops->create_qp(ctx->ctl, &request, &qp->pub.qp_num);
	if (err != 0) {
		lib_ctl_fail(ctx, err);
		goto err_free;
	}
	err = enter_qp(ctx, qp);
	if (err != 0)
		goto err_destroy;
	attr->cap = qp->cap;
	return &qp->pub;

err_destroy:
	ctx->ops->destroy_qp(ctx->ctl, qp->pub.qp_num);
err_free:
	lib_qp_free(qp);
	errno = -err;
	return NULL;
}

int
softhca_destroy_qp(struct softhca_qp *pub)
{
	struct lib_qp *qp = (struct lib_qp *)pub;
	struct lib_context *ctx = qp->ctx;
	struct lib_cq *send_cq = (struct lib_cq *)pub->send_cq;
	struct lib_cq *recv_cq = (struct lib_cq *)pub->recv_cq;
	int err = ctx->ops->destroy_qp(ctx->ctl, pub->qp_num);

	if (err != 0)
		return lib_ctl_fail(ctx, err);
	/* Pollers look the QP up under their CQ's lock: with both held none is between. */
	lib_cq_lock_pair(send_cq, recv_cq);
	__atomic_store_n(&ctx->qps[pub->qp_num & ctx->qp_mask], NULL, __ATOMIC_RELEASE);
	lib_cq_forget(send_cq, pub->qp_num);
	if (recv_cq != send_cq)
		lib_cq_forget(recv_cq, pub->qp_num);
	lib_cq_unlock_pair(send_cq, recv_cq);

	pthread_mutex_lock(&ctx->lock);
	send_cq->users--;
	recv_cq->users--;
	while (qp->events_got != qp->events_acked)
		pthread_cond_wait(&ctx->acked, &ctx->lock);
	pthread_mutex_unlock(&ctx->lock);
	lib_qp_free(qp);
	return 0;
}
