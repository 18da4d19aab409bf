/* SPDX-License-Identifier: BSD-3-Clause */

/* Queue pairs: sizes and memory of their queues, creation, destruction. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi_service.h"
#include "lib_types.h"

#define PAGE 4096u

/* Units of 16 bytes before the data of the largest send WQE; extra ones depend on the service */
#define HEADER_UNITS 2u /* next, raddr; an atomic has a third one, but only one SGE */
#define ATOMIC_UNITS 4u
#define UD_HEADER_UNITS 4u /* next, ud: no raddr */

#define NO_SERVICE UINT32_MAX

uint32_t
lib_service_of(uint32_t qp_type)
{
	switch (qp_type) {
#define X(name, type, ...) \
	case SOFTHCA_QPT_##type: \
		return HCA_ST_##name;
		HCA_SERVICE_LIST(X)
#undef X
	default:
		return NO_SERVICE;
	}
}

/* The row of a QP type; an empty one if the type is unknown. */
static const struct hca_service_info *
service_of(uint32_t qp_type)
{
	return hca_service_info(lib_service_of(qp_type));
}

uint32_t
lib_log2_up(uint32_t n)
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
	return max_u32(lib_log2_up(bytes), HCA_WQE_MIN_STRIDE_LOG);
}

static uint32_t
send_header_bytes(uint32_t qp_type)
{
	uint32_t units = qp_type == SOFTHCA_QPT_UD ? UD_HEADER_UNITS
						   : HEADER_UNITS + service_of(qp_type)->units;

	return units * HCA_WQE_UNIT;
}

static uint32_t
send_stride_log(const struct softhca_qp_init_attr_ex *attr)
{
	uint32_t header = send_header_bytes(attr->qp_type);
	uint32_t sges = header + attr->cap.max_send_sge * HCA_WQE_UNIT;
	uint32_t in_line = header + attr->cap.max_inline_data;

	if (attr->cap.max_inline_data != 0)
		in_line += sizeof(struct hca_inline_unit);
	return stride_log(
		max_u32(max_u32(sges, in_line),
			(ATOMIC_UNITS + service_of(attr->qp_type)->units) * HCA_WQE_UNIT));
}

/* Raw types and reliable datagrams have numbers in verbs, but are not supported. */
static int
refuse_type(uint32_t qp_type)
{
	if (qp_type == 5)
		return lib_fail(
			-EOPNOTSUPP,
			"QP type 5, reliable datagrams (RD), is not offered: use RC, UC, UD or "
			"XRC");
	return lib_fail(-EINVAL, "QP type %u: expected one of enum softhca_qp_type", qp_type);
}

static int
check_objects(const struct softhca_qp_init_attr_ex *attr)
{
	uint32_t service = lib_service_of(attr->qp_type), has;

	if (service == NO_SERVICE)
		return refuse_type(attr->qp_type);
	has = hca_service_info(service)->queues;
	if ((has & HCA_HAS_SQ) != 0 && attr->send_cq == NULL)
		return lib_fail(-EINVAL, "send_cq is NULL: a QP of type %u needs one",
				attr->qp_type);
	if ((has & HCA_HAS_RQ) != 0 && attr->recv_cq == NULL)
		return lib_fail(-EINVAL, "recv_cq is NULL: a QP of type %u needs one",
				attr->qp_type);
	if (attr->srq != NULL && (has & HCA_MAY_SRQ) == 0)
		return lib_fail(-EINVAL, "a QP of type %u takes no SRQ: set srq to NULL",
				attr->qp_type);
	if (attr->srq != NULL && ((struct lib_srq *)attr->srq)->xrcd != NULL)
		return lib_fail(
			-EINVAL,
			"SRQ %u is of XRC and serves XRC_RECV QPs only: create the SRQ with type "
			"BASIC",
			attr->srq->handle);
	if (attr->qp_type == SOFTHCA_QPT_XRC_RECV ? attr->xrcd == NULL : attr->pd == NULL)
		return lib_fail(-EINVAL, "a QP of type %u needs %s", attr->qp_type,
				attr->qp_type == SOFTHCA_QPT_XRC_RECV ? "an XRC domain" : "a PD");
	return 0;
}

/*
 * Numbers of another context would mean other objects here. Members that the type does not use are
 * not checked.
 */
static int
check_contexts(const struct lib_context *ctx, const struct softhca_qp_init_attr_ex *attr)
{
	uint32_t has = service_of(attr->qp_type)->queues;
	const struct softhca_context *home =
		attr->qp_type == SOFTHCA_QPT_XRC_RECV ? attr->xrcd->context : attr->pd->context;

	if (home == &ctx->pub && ((has & HCA_HAS_SQ) == 0 || attr->send_cq->context == home) &&
	    ((has & HCA_HAS_RQ) == 0 || attr->recv_cq->context == home) &&
	    (attr->srq == NULL || attr->srq->context == home))
		return 0;
	return lib_fail(
		-EINVAL,
		"PD, XRC domain, CQs and SRQ of a QP must be of one context: one of them is of "
		"another");
}

static int
check_flags(const struct softhca_qp_init_attr_ex *attr)
{
	const uint32_t of_datagrams = SOFTHCA_BLOCK_SELF_MCAST_LB | SOFTHCA_SOURCE_QPN;

	if ((attr->flags & ~(SOFTHCA_SINGLE_THREADED | of_datagrams)) != 0)
		return lib_fail(-EINVAL, "QP flags %#x: expected a set of %#x", attr->flags,
				SOFTHCA_SINGLE_THREADED | of_datagrams);
	if ((attr->flags & of_datagrams) != 0 && attr->qp_type != SOFTHCA_QPT_UD)
		return lib_fail(-EINVAL,
				"QP flags %#x: %#x are for QPs of type UD, this one has type %u",
				attr->flags, of_datagrams, attr->qp_type);
	if ((attr->flags & SOFTHCA_SOURCE_QPN) != 0 &&
	    (attr->source_qpn == 0 || attr->source_qpn > HCA_QPN_MASK))
		return lib_fail(-EINVAL, "source QPN %#x: expected 1 to %#x", attr->source_qpn,
				HCA_QPN_MASK);
	return 0;
}

/* The queues that the QP will have: HCA_HAS_SQ, HCA_HAS_RQ */
static uint32_t
own_queues(const struct softhca_qp_init_attr_ex *attr)
{
	uint32_t has = service_of(attr->qp_type)->queues;

	return attr->srq != NULL ? has & ~(uint32_t)HCA_HAS_RQ : has;
}

static int
check_queue(const struct lib_context *ctx, const char *name, uint32_t wr, uint32_t sge)
{
	uint32_t max_wr = 1u << ctx->info.log_max_wqes;

	if (wr > max_wr)
		return lib_fail(-EINVAL, "a %s queue of %u requests: the device has at most %u",
				name, wr, max_wr);
	if (sge > ctx->info.max_sge)
		return lib_fail(-EINVAL, "%u SGEs of a %s queue: the device has at most %u", sge,
				name, ctx->info.max_sge);
	return 0;
}

static int
check_wqes(const struct lib_context *ctx, const struct softhca_qp_init_attr_ex *attr)
{
	if (attr->cap.max_inline_data > ctx->info.max_inline)
		return lib_fail(-EINVAL, "%u bytes inline: the device has at most %u",
				attr->cap.max_inline_data, ctx->info.max_inline);
	if (1u << send_stride_log(attr) > ctx->info.max_wqe_stride)
		return lib_fail(
			-EINVAL,
			"%u SGEs and %u bytes inline make WQEs of %u bytes: the device has at most "
			"%u",
			attr->cap.max_send_sge, attr->cap.max_inline_data,
			1u << send_stride_log(attr), ctx->info.max_wqe_stride);
	return 0;
}

/* Capacities of a queue that the QP does not have are ignored, as verbs say. */
static int
check_caps(const struct lib_context *ctx, const struct softhca_qp_init_attr_ex *attr)
{
	const struct softhca_qp_cap *cap = &attr->cap;
	uint32_t has;
	int err;

	if (check_objects(attr) != 0 || check_contexts(ctx, attr) != 0 || check_flags(attr) != 0)
		return -EINVAL;
	has = own_queues(attr);
	err = has & HCA_HAS_SQ ? check_queue(ctx, "send", cap->max_send_wr, cap->max_send_sge) : 0;
	if (err == 0 && (has & HCA_HAS_SQ) != 0)
		err = check_wqes(ctx, attr);
	if (err == 0 && (has & HCA_HAS_RQ) != 0)
		err = check_queue(ctx, "receive", cap->max_recv_wr, cap->max_recv_sge);
	return err;
}

uint32_t
lib_wq_log(uint32_t max_wr)
{
	return lib_log2_up(max_u32(max_wr, 1));
}

int
lib_wq_map(struct lib_context *ctx, struct lib_wq *wq, uint32_t log_size, uint32_t log_stride,
	   size_t record_bytes)
{
	size_t bytes = ((size_t)1 << (log_size + log_stride)) + record_bytes;

	wq->mask = (1u << log_size) - 1;
	wq->log_stride = log_stride;
	wq->bytes = (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
	wq->buf = lib_map(ctx, wq->bytes);
	if (wq->buf == NULL && errno == EMFILE)
		return -EMFILE;
	if (wq->buf == NULL)
		return lib_fail(-ENOMEM,
				"no memory for a queue of %u requests: %zu bytes cannot be mapped: "
				"make it smaller, or raise the memory limit (ulimit -v, cgroup)",
				wq->mask + 1, wq->bytes);
	return 0;
}

void
lib_qp_free(struct lib_qp *qp)
{
	lib_unmap(lib_qp_ctx(qp), qp->sq.buf, qp->sq.bytes);
	lib_unmap(lib_qp_ctx(qp), qp->rq.buf, qp->rq.bytes);
	free(qp);
}

static uint32_t
smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Grant everything that fits the strides. */
static void
set_send_limits(struct lib_qp *qp, const struct lib_context *ctx)
{
	uint32_t room = (1u << qp->sq.log_stride) - send_header_bytes(qp->pub.qp_type);

	qp->sq.max_sge = smaller(room / HCA_WQE_UNIT, ctx->info.max_sge);
	qp->max_inline =
		smaller(room - (uint32_t)sizeof(struct hca_inline_unit), ctx->info.max_inline);
}

static void
set_recv_limits(struct lib_qp *qp, const struct lib_context *ctx)
{
	uint32_t room = (1u << qp->rq.log_stride) - (uint32_t)sizeof(struct hca_next_unit);

	qp->rq.max_sge = smaller(room / HCA_WQE_UNIT, ctx->info.max_sge);
}

struct softhca_qp_cap
lib_qp_cap(const struct lib_qp *qp)
{
	return (struct softhca_qp_cap){
		.max_send_wr = qp->sq.buf != NULL ? qp->sq.mask + 1 : 0,
		.max_recv_wr = qp->rq.buf != NULL ? qp->rq.mask + 1 : 0,
		.max_send_sge = qp->sq.max_sge,
		.max_recv_sge = qp->rq.max_sge,
		.max_inline_data = qp->max_inline,
	};
}

/* Announcements in WQEs must not be read after the queue was reset. */
static void
forget_announced(struct lib_qp *qp)
{
	for (uint32_t i = 0; qp->announces && i <= qp->sq.mask; i++)
		((struct hca_next_unit *)(qp->sq.buf + ((size_t)i << qp->sq.log_stride)))->flags =
			0;
	qp->announces = false;
}

void
lib_qp_rewind(struct lib_qp *qp)
{
	forget_announced(qp);
	__atomic_store_n(&qp->sq.head, 0, __ATOMIC_RELAXED); /* polls read it */
	qp->rq.head = 0;
	__atomic_store_n(&qp->sq_polled.tail, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&qp->rq_polled.tail, 0, __ATOMIC_RELEASE);
	if (qp->rq_record != NULL)
		memset(qp->rq_record, 0, sizeof(*qp->rq_record));
}

static struct lib_polled
polled(const struct lib_wq *wq)
{
	return (struct lib_polled){.mask = wq->mask,
				   .wr_id = wq->wr_id,
				   .log_stride = wq->log_stride};
}

static int
map_sq(struct lib_context *ctx, struct lib_qp *qp, const struct softhca_qp_init_attr_ex *attr)
{
	int err = lib_wq_map(ctx, &qp->sq, lib_wq_log(attr->cap.max_send_wr), send_stride_log(attr),
			     0);

	if (err != 0)
		return err;
	set_send_limits(qp, ctx);
	qp->sq_polled = polled(&qp->sq);
	return 0;
}

static int
map_rq(struct lib_context *ctx, struct lib_qp *qp, const struct softhca_qp_init_attr_ex *attr)
{
	uint32_t bytes = sizeof(struct hca_next_unit) + attr->cap.max_recv_sge * HCA_WQE_UNIT;
	int err = lib_wq_map(ctx, &qp->rq, lib_wq_log(attr->cap.max_recv_wr), stride_log(bytes),
			     sizeof(struct hca_rq_record));

	if (err != 0)
		return err;
	qp->rq_record = (struct hca_rq_record *)(qp->rq.buf +
						 (((size_t)qp->rq.mask + 1) << qp->rq.log_stride));
	set_recv_limits(qp, ctx);
	qp->rq_polled = polled(&qp->rq);
	return 0;
}

/* The object and its wr_ids, zeroed, in one allocation */
static struct lib_qp *
alloc_object(const struct softhca_qp_init_attr_ex *attr)
{
	uint32_t has = own_queues(attr);
	size_t sends = 0, receives = 0, bytes;
	struct lib_qp *qp;
	void *mem;

	if ((has & HCA_HAS_SQ) != 0)
		sends = (size_t)1 << lib_wq_log(attr->cap.max_send_wr);
	if ((has & HCA_HAS_RQ) != 0)
		receives = (size_t)1 << lib_wq_log(attr->cap.max_recv_wr);
	bytes = sizeof(*qp) + (sends + receives) * sizeof(qp->wr_ids[0]);
	if (posix_memalign(&mem, HCA_CACHE_LINE, bytes) != 0) {
		lib_no_memory("a QP", bytes);
		return NULL;
	}
	qp = memset(mem, 0, bytes);
	if (sends != 0)
		qp->sq.wr_id = qp->wr_ids;
	if (receives != 0)
		qp->rq.wr_id = qp->wr_ids + sends;
	return qp;
}

struct lib_qp *
lib_qp_new(struct lib_context *ctx, const struct softhca_qp_init_attr_ex *attr)
{
	struct lib_qp *qp = alloc_object(attr);
	int err = 0;

	if (qp == NULL)
		return NULL;
	qp->pub.context = &ctx->pub;
	qp->pub.pd = attr->pd;
	qp->pub.send_cq = attr->send_cq;
	qp->pub.recv_cq = attr->recv_cq;
	qp->pub.srq = attr->srq;
	qp->pub.qp_context = attr->qp_context;
	qp->pub.qp_type = attr->qp_type;
	qp->ops = service_of(attr->qp_type)->ops;
	qp->xrcd = attr->qp_type == SOFTHCA_QPT_XRC_RECV ? (struct lib_xrcd *)attr->xrcd : NULL;
	qp->extra_units = service_of(attr->qp_type)->units;
	qp->sq.locked = (attr->flags & SOFTHCA_SINGLE_THREADED) == 0;
	qp->rq.locked = qp->sq.locked;
	qp->signal_all = attr->sq_sig_all ? HCA_WQE_FLAG_SIGNALED : 0;
	if (qp->sq.wr_id != NULL)
		err = map_sq(ctx, qp, attr);
	if (err == 0 && qp->rq.wr_id != NULL)
		err = map_rq(ctx, qp, attr);
	if (err != 0) {
		lib_qp_free(qp);
		return NULL;
	}
	return qp;
}

/* Change the user counts of the objects that the QP refers to; the context's lock is held. */
static void
use_objects(struct lib_qp *qp, uint32_t add)
{
	if (qp->pub.send_cq != NULL)
		((struct lib_cq *)qp->pub.send_cq)->users += add;
	if (qp->pub.recv_cq != NULL)
		((struct lib_cq *)qp->pub.recv_cq)->users += add;
	if (qp->pub.srq != NULL)
		((struct lib_srq *)qp->pub.srq)->users += add;
	if (qp->xrcd != NULL)
		qp->xrcd->users += add;
}

/* An XRC target that the context has already: events are about the one in the table. */
static bool
opened_again(const struct lib_qp *first, const struct lib_qp *qp)
{
	return first->xrcd != NULL && qp->xrcd != NULL && first->pub.qp_num == qp->pub.qp_num;
}

int
lib_qp_enter(struct lib_context *ctx, struct lib_qp *qp)
{
	struct lib_qp **place = &ctx->qps[qp->pub.qp_num & ctx->qp_mask];
	int err = 0;

	qp->uar = lib_uar_of(ctx, qp->pub.qp_num);
	pthread_mutex_lock(&ctx->lock);
	/* another thread has destroyed the previous one and is about to remove it */
	while (*place != NULL && (*place)->leaving)
		pthread_cond_wait(&ctx->acked, &ctx->lock);
	if (*place == NULL) {
		use_objects(qp, 1);
		__atomic_store_n(place, qp, __ATOMIC_RELEASE);
	} else if (opened_again(*place, qp)) {
		use_objects(qp, 1);
		qp->next = (*place)->next;
		(*place)->next = qp;
	} else {
		err = lib_fail(-EIO, "the driver gave QPN %#x twice", qp->pub.qp_num);
	}
	pthread_mutex_unlock(&ctx->lock);
	return err;
}

static struct hca_ctl_qp
qp_request(const struct lib_qp *qp, const struct softhca_qp_init_attr_ex *attr)
{
	struct hca_ctl_qp r = {
		.sq_addr = (uintptr_t)qp->sq.buf,
		.rq_addr = (uintptr_t)qp->rq.buf,
		.pdn = attr->pd != NULL ? attr->pd->handle : 0,
		.service = lib_service_of(attr->qp_type),
		.send_cqn = attr->send_cq != NULL ? attr->send_cq->handle : 0,
		.recv_cqn = attr->recv_cq != NULL ? attr->recv_cq->handle : 0,
		.srqn = attr->srq != NULL ? attr->srq->handle : 0,
		.xrcd = attr->xrcd != NULL ? attr->xrcd->handle : 0,
	};

	if ((attr->flags & SOFTHCA_SOURCE_QPN) != 0)
		r.source = attr->source_qpn;
	if ((attr->flags & SOFTHCA_BLOCK_SELF_MCAST_LB) != 0)
		r.source |= HCA_CTL_NO_OWN_GROUP;
	if (qp->sq.buf != NULL) {
		r.log_sq = (uint8_t)lib_log2_up(qp->sq.mask + 1);
		r.log_sq_stride = (uint8_t)qp->sq.log_stride;
	}
	if (qp->rq.buf != NULL) {
		r.log_rq = (uint8_t)lib_log2_up(qp->rq.mask + 1);
		r.log_rq_stride = (uint8_t)qp->rq.log_stride;
	}
	return r;
}

/* Ask for the pipeline of the thread domain. */
static void
ask_pipe(const struct lib_context *ctx, const struct lib_td *td, struct hca_ctl_qp *request)
{
	uint32_t pipe = td != NULL ? __atomic_load_n(&td->pipe, __ATOMIC_RELAXED) : 0;

	if (pipe != 0 && ctx->uar.pipes > 1)
		request->source |= HCA_CTL_PIPE(pipe - 1);
}

/* The driver has chosen the pipeline of the first QP by load. */
static void
take_pipe(const struct lib_context *ctx, struct lib_td *td, uint32_t qpn)
{
	uint32_t none = 0;

	if (td != NULL)
		__atomic_compare_exchange_n(&td->pipe, &none, qpn % ctx->uar.pipes + 1, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

struct softhca_qp *
softhca_create_qp_td(struct softhca_context *pub, struct softhca_qp_init_attr_ex *attr,
		     struct softhca_td *td)
{
	struct lib_context *ctx = lib_ctx(pub);
	struct hca_ctl_qp request;
	struct lib_qp *qp;
	int err;

	if (check_caps(ctx, attr) != 0)
		return NULL;
	if (td != NULL && td->context != pub) {
		lib_fail(-EINVAL, "the thread domain is of another context: allocate one in this");
		return NULL;
	}
	qp = lib_qp_new(ctx, attr);
	if (qp == NULL)
		return NULL;
	request = qp_request(qp, attr);
	ask_pipe(ctx, (struct lib_td *)td, &request);
	err = LIB_CALL(ctx, CREATE_QP, &request, &qp->pub.qp_num);
	if (err != 0)
		goto err_free;
	err = lib_qp_enter(ctx, qp);
	if (err != 0)
		goto err_destroy;
	take_pipe(ctx, (struct lib_td *)td, qp->pub.qp_num);
	attr->cap = lib_qp_cap(qp);
	return &qp->pub;

err_destroy:
	lib_drop(ctx, HCA_CTL_DESTROY_QP, qp->pub.qp_num);
err_free:
	lib_qp_free(qp);
	errno = -err;
	return NULL;
}

struct softhca_qp *
softhca_create_qp_ex(struct softhca_context *pub, struct softhca_qp_init_attr_ex *attr)
{
	return softhca_create_qp_td(pub, attr, NULL);
}

struct softhca_qp *
softhca_create_qp(struct softhca_pd *pd, struct softhca_qp_init_attr *attr)
{
	struct softhca_qp_init_attr_ex ex = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.flags = attr->flags,
		.comp_mask = SOFTHCA_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct softhca_qp *qp = softhca_create_qp_ex(pd->context, &ex);

	if (qp != NULL)
		attr->cap = ex.cap;
	return qp;
}

/* Take a QP out of the context's table; another one of its number may be there. */
static void
leave_table(struct lib_context *ctx, struct lib_qp *qp)
{
	struct lib_qp **place = &ctx->qps[qp->pub.qp_num & ctx->qp_mask];

	pthread_mutex_lock(&ctx->lock);
	while (*place != qp)
		place = &(*place)->next;
	__atomic_store_n(place, qp->next, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&ctx->lock);
}

/* Pollers look up the QP with their CQ's lock held: with both locks held no poller is using it. */
static void
leave_qp(struct lib_context *ctx, struct lib_qp *qp)
{
	struct lib_cq *send_cq = (struct lib_cq *)qp->pub.send_cq;
	struct lib_cq *recv_cq = (struct lib_cq *)qp->pub.recv_cq;

	lib_cq_lock_pair(send_cq, recv_cq);
	leave_table(ctx, qp);
	if (send_cq != NULL)
		lib_cq_forget(send_cq, qp->pub.qp_num);
	if (recv_cq != NULL && recv_cq != send_cq)
		lib_cq_forget(recv_cq, qp->pub.qp_num);
	lib_cq_unlock_pair(send_cq, recv_cq);
}

int
softhca_destroy_qp(struct softhca_qp *pub)
{
	struct lib_qp *qp = (struct lib_qp *)pub;
	struct lib_context *ctx = lib_qp_ctx(qp);
	int err;

	pthread_mutex_lock(&ctx->lock);
	qp->leaving = true;
	pthread_mutex_unlock(&ctx->lock);
	err = LIB_CALL(ctx, DESTROY_QP, &pub->qp_num, NULL);
	if (err == 0)
		leave_qp(ctx, qp);
	pthread_mutex_lock(&ctx->lock);
	qp->leaving = false;
	pthread_cond_broadcast(&ctx->acked);
	if (err != 0) {
		pthread_mutex_unlock(&ctx->lock);
		return err;
	}
	use_objects(qp, (uint32_t)-1);
	while (qp->events_got != qp->events_acked)
		pthread_cond_wait(&ctx->acked, &ctx->lock);
	pthread_mutex_unlock(&ctx->lock);
	lib_qp_free(qp);
	return 0;
}

static int
mcast(struct softhca_qp *pub, const union softhca_gid *gid, bool attach)
{
	struct hca_ctl_mcast request = {.qpn = pub->qp_num, .attach = attach};

	if (pub->qp_type != SOFTHCA_QPT_UD)
		return lib_fail(-EINVAL, "QP %#x is of type %u: only a UD QP receives multicasts",
				pub->qp_num, pub->qp_type);
	memcpy(request.mgid, gid->raw, sizeof(request.mgid));
	return LIB_CALL(lib_qp_ctx((struct lib_qp *)pub), MCAST, &request, NULL);
}

int
softhca_attach_mcast(struct softhca_qp *qp, const union softhca_gid *gid, uint16_t lid)
{
	return mcast(qp, gid, true);
}

int
softhca_detach_mcast(struct softhca_qp *qp, const union softhca_gid *gid, uint16_t lid)
{
	return mcast(qp, gid, false);
}
