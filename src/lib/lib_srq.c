/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Shared receive queues. The WQEs of an SRQ complete out of order, so they form a
 * list: nda of each is the next one to be posted, which the device follows. That must be known when
 * a WQE is posted, so one WQE of the queue is always free.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib_recv.h"

static void
list_all(struct lib_srq *srq)
{
	for (uint32_t i = 0; i <= srq->wq.mask; i++)
		srq->next[i] = i + 1;
	srq->free_head = 0;
	srq->free_tail = srq->wq.mask;
}

/* The object, its wr_ids and the list in one allocation */
static struct lib_srq *
alloc_object(uint32_t log_size)
{
	size_t n = (size_t)1 << log_size;
	size_t bytes = sizeof(struct lib_srq) + n * (sizeof(uint64_t) + sizeof(uint32_t));
	struct lib_srq *srq = calloc(1, bytes);

	if (srq == NULL) {
		lib_no_memory("an SRQ", bytes);
		return NULL;
	}
	srq->wq.wr_id = (uint64_t *)(srq + 1);
	srq->next = (uint32_t *)(srq->wq.wr_id + n);
	return srq;
}

static struct lib_srq *
alloc_srq(struct lib_context *ctx, const struct softhca_srq_init_attr_ex *attr)
{
	uint32_t bytes = sizeof(struct hca_next_unit) + attr->attr.max_sge * HCA_WQE_UNIT;
	uint32_t log_stride = lib_log2_up(bytes);
	uint32_t log_size = lib_wq_log(attr->attr.max_wr + 1);
	struct lib_srq *srq = alloc_object(log_size);

	if (srq == NULL)
		return NULL;
	srq->ctx = ctx;
	if (log_stride < HCA_WQE_MIN_STRIDE_LOG)
		log_stride = HCA_WQE_MIN_STRIDE_LOG;
	if (lib_wq_map(ctx, &srq->wq, log_size, log_stride, sizeof(struct hca_rq_record)) != 0) {
		lib_srq_free(srq);
		return NULL;
	}
	srq->pub.context = &ctx->pub;
	srq->pub.pd = attr->pd;
	srq->pub.srq_context = attr->srq_context;
	srq->wq.max_sge =
		((1u << log_stride) - (uint32_t)sizeof(struct hca_next_unit)) / HCA_WQE_UNIT;
	if (srq->wq.max_sge > ctx->info.max_sge)
		srq->wq.max_sge = ctx->info.max_sge;
	srq->record =
		(struct hca_rq_record *)(srq->wq.buf + (((size_t)srq->wq.mask + 1) << log_stride));
	list_all(srq);
	return srq;
}

void
lib_srq_free(struct lib_srq *srq)
{
	lib_unmap(srq->ctx, srq->wq.buf, srq->wq.bytes);
	free(srq);
}

static int
check_srq(const struct lib_context *ctx, const struct softhca_srq_init_attr_ex *attr)
{
	uint32_t max = (1u << ctx->info.log_max_wqes) - 1;
	bool xrc = attr->srq_type == SOFTHCA_SRQT_XRC;

	if (attr->srq_type > SOFTHCA_SRQT_XRC)
		return lib_fail(-EINVAL, "SRQ type %u: expected 0 to %u", attr->srq_type,
				SOFTHCA_SRQT_XRC);
	if (attr->pd == NULL || (xrc && (attr->xrcd == NULL || attr->cq == NULL)))
		return lib_fail(-EINVAL, xrc ? "an XRC SRQ needs a PD, an XRC domain and a CQ"
					     : "an SRQ needs a PD");
	if (attr->pd->context != &ctx->pub ||
	    (xrc && (attr->xrcd->context != &ctx->pub || attr->cq->context != &ctx->pub)))
		return lib_fail(
			-EINVAL,
			"PD, XRC domain and CQ of an SRQ must be of one context: one of them is of "
			"another");
	if (attr->attr.max_wr == 0 || attr->attr.max_wr > max)
		return lib_fail(-EINVAL, "an SRQ of %u receives: expected 1 to %u",
				attr->attr.max_wr, max);
	if (attr->attr.max_sge > ctx->info.max_sge)
		return lib_fail(-EINVAL, "%u SGEs: the device has at most %u", attr->attr.max_sge,
				ctx->info.max_sge);
	return 0;
}

static void
use_objects(struct lib_srq *srq, uint32_t add)
{
	if (srq->cq != NULL)
		srq->cq->users += add;
	if (srq->xrcd != NULL)
		srq->xrcd->users += add;
}

static int
enter_srq(struct lib_context *ctx, struct lib_srq *srq)
{
	struct lib_srq **place = &ctx->srqs[srq->pub.handle & ctx->srq_mask];
	int err = 0;

	pthread_mutex_lock(&ctx->lock);
	while (*place != NULL && (*place)->leaving) /* another thread is removing it */
		pthread_cond_wait(&ctx->acked, &ctx->lock);
	if (*place != NULL) {
		err = lib_fail(-EIO, "the driver gave SRQN %#x twice", srq->pub.handle);
	} else {
		use_objects(srq, 1);
		__atomic_store_n(place, srq, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&ctx->lock);
	return err;
}

struct softhca_srq *
softhca_create_srq_ex(struct softhca_context *pub, struct softhca_srq_init_attr_ex *attr)
{
	struct lib_context *ctx = lib_ctx(pub);
	bool xrc = attr->srq_type == SOFTHCA_SRQT_XRC;
	struct hca_ctl_srq request;
	struct lib_srq *srq;
	int err;

	if (check_srq(ctx, attr) != 0)
		return NULL;
	srq = alloc_srq(ctx, attr);
	if (srq == NULL)
		return NULL;
	if (xrc) {
		srq->cq = (struct lib_cq *)attr->cq;
		srq->xrcd = (struct lib_xrcd *)attr->xrcd;
	}
	request = (struct hca_ctl_srq){
		.addr = (uintptr_t)srq->wq.buf,
		.pdn = attr->pd->handle,
		.limit = attr->attr.srq_limit,
		.xrcd = xrc ? attr->xrcd->handle : 0,
		.cqn = xrc ? attr->cq->handle : 0,
		.log_size = (uint8_t)lib_log2_up(srq->wq.mask + 1),
		.log_stride = (uint8_t)srq->wq.log_stride,
		.max_sge = (uint8_t)srq->wq.max_sge,
	};
	err = LIB_CALL(ctx, CREATE_SRQ, &request, &srq->pub.handle);
	if (err != 0)
		goto err_free;
	err = enter_srq(ctx, srq);
	if (err != 0)
		goto err_destroy;
	attr->attr.max_wr = srq->wq.mask;
	attr->attr.max_sge = srq->wq.max_sge;
	return &srq->pub;

err_destroy:
	lib_drop(ctx, HCA_CTL_DESTROY_SRQ, srq->pub.handle);
err_free:
	lib_srq_free(srq);
	errno = -err;
	return NULL;
}

struct softhca_srq *
softhca_create_srq(struct softhca_pd *pd, struct softhca_srq_init_attr *attr)
{
	struct softhca_srq_init_attr_ex ex = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
		.srq_type = SOFTHCA_SRQT_BASIC,
		.pd = pd,
	};
	struct softhca_srq *srq = softhca_create_srq_ex(pd->context, &ex);

	if (srq != NULL)
		attr->attr = ex.attr;
	return srq;
}

static bool
is_polled(struct lib_cq *cq)
{
	if (!lib_cq_try(cq))
		return true;
	lib_cq_unlock(cq);
	return false;
}

/*
 * The context's lock is held, but not while this waits. Completions of destroyed QPs with WQEs of
 * the SRQ may still be in any CQ, and pollers free these WQEs; after each CQ's lock was seen free,
 * no poller is freeing them.
 */
static void
leave_srq(struct lib_context *ctx, struct lib_srq *srq)
{
	__atomic_store_n(&ctx->srqs[srq->pub.handle & ctx->srq_mask], NULL, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i <= ctx->cq_mask; i++) {
		while (is_polled(ctx->cqs[i])) {
			pthread_mutex_unlock(&ctx->lock);
			sched_yield();
			pthread_mutex_lock(&ctx->lock);
		}
	}
}

int
softhca_destroy_srq(struct softhca_srq *pub)
{
	struct lib_srq *srq = (struct lib_srq *)pub;
	struct lib_context *ctx = srq->ctx;
	uint32_t users;
	int err;

	pthread_mutex_lock(&ctx->lock);
	users = srq->users;
	srq->leaving = users == 0;
	pthread_mutex_unlock(&ctx->lock);
	if (users != 0)
		return lib_fail(-EBUSY, "%u QPs use SRQ %u: destroy them first", users,
				pub->handle);
	err = LIB_CALL(ctx, DESTROY_SRQ, &pub->handle, NULL);
	pthread_mutex_lock(&ctx->lock);
	srq->leaving = false;
	pthread_cond_broadcast(&ctx->acked);
	if (err != 0) {
		pthread_mutex_unlock(&ctx->lock);
		return err;
	}
	leave_srq(ctx, srq);
	use_objects(srq, (uint32_t)-1);
	while (srq->events_got != srq->events_acked)
		pthread_cond_wait(&ctx->acked, &ctx->lock);
	pthread_mutex_unlock(&ctx->lock);
	lib_srq_free(srq);
	return 0;
}

int
softhca_modify_srq(struct softhca_srq *pub, const struct softhca_srq_attr *attr, uint32_t mask)
{
	struct hca_ctl_arm request = {.srqn = pub->handle};
	struct lib_srq *srq = (struct lib_srq *)pub;

	if ((mask & ~(uint32_t)(SOFTHCA_SRQ_MAX_WR | SOFTHCA_SRQ_LIMIT)) != 0)
		return lib_fail(-EINVAL, "SRQ attributes %#x: expected SOFTHCA_SRQ_LIMIT (%#x)",
				mask, SOFTHCA_SRQ_LIMIT);
	if ((mask & SOFTHCA_SRQ_MAX_WR) != 0)
		return lib_fail(-EOPNOTSUPP,
				"max_wr of SRQ %u cannot change: create an SRQ of the wanted size",
				pub->handle);
	if (mask == 0)
		return 0;
	if (attr->srq_limit > srq->wq.mask)
		return lib_fail(-EINVAL, "limit %u: SRQ %u has at most %u receives",
				attr->srq_limit, pub->handle, srq->wq.mask);
	request.limit = attr->srq_limit;
	return LIB_CALL(srq->ctx, ARM_SRQ, &request, NULL);
}

int
softhca_query_srq(struct softhca_srq *pub, struct softhca_srq_attr *attr)
{
	struct lib_srq *srq = (struct lib_srq *)pub;
	struct hca_ctl_srq_state state;
	int err = LIB_CALL(srq->ctx, QUERY_SRQ, &pub->handle, &state);

	if (err != 0)
		return err;
	*attr = (struct softhca_srq_attr){
		.max_wr = srq->wq.mask,
		.max_sge = srq->wq.max_sge,
		.srq_limit = state.limit,
	};
	return 0;
}

int
softhca_get_srq_num(struct softhca_srq *srq, uint32_t *srq_num)
{
	*srq_num = srq->handle;
	return 0;
}

/* --- receives -------------------- */

/* Append the WQE to the list of free ones. */
uint64_t
lib_srq_take(struct lib_srq *srq, uint32_t wqe_offset)
{
	uint32_t index = wqe_offset >> srq->wq.log_stride & srq->wq.mask;
	uint64_t wr_id;

	lib_lock_take(&srq->wq.lock);
	wr_id = srq->wq.wr_id[index];
	srq->next[srq->free_tail] = index;
	srq->free_tail = index;
	lib_lock_drop(&srq->wq.lock);
	return wr_id;
}

/* A WQE of any form. */
static int
build_any(struct lib_wq *wq, uint32_t index, uint32_t next, const struct softhca_recv_wr *wr)
{
	struct hca_next_unit *wqe =
		(struct hca_next_unit *)(wq->buf + ((size_t)index << wq->log_stride));
	int err = lib_recv_judge(wq, wr);

	if (err != 0)
		return err;
	lib_recv_build(wq, index, wr);
	wqe->nda_nop = hca_cpu_to_le32(next);
	return 0;
}

static int
post_all(struct lib_srq *srq, struct softhca_recv_wr **wr)
{
	struct lib_wq *wq = &srq->wq;
	int err = 0;

	for (; *wr != NULL; *wr = (*wr)->next) {
		uint32_t index = srq->free_head, next;

		if (index == srq->free_tail) {
			err = lib_fail(-ENOMEM,
				       "the SRQ is full (%u): poll the CQs of its QPs first",
				       wq->mask);
			break;
		}
		next = HCA_NEXT_MAKE_NDA_NOP(srq->next[index] << wq->log_stride, 0);
		if (__builtin_expect(!lib_recv_put(wq, index, next, *wr), 0)) {
			err = build_any(wq, index, next, *wr);
			if (err != 0)
				break;
		}
		srq->free_head = srq->next[index];
		wq->wr_id[index] = (*wr)->wr_id;
		srq->posted++;
	}
	__atomic_store_n(&srq->record->producer, hca_cpu_to_le32(srq->posted), __ATOMIC_RELEASE);
	return err;
}

int
softhca_post_srq_recv(struct softhca_srq *pub, struct softhca_recv_wr *wr,
		      struct softhca_recv_wr **bad_wr)
{
	struct lib_srq *srq = (struct lib_srq *)pub;
	int err;

	if (wr == NULL)
		return 0;
	lib_lock_take(&srq->wq.lock);
	err = srq->ctx->dead ? lib_dead(srq->ctx) : post_all(srq, &wr);
	lib_lock_drop(&srq->wq.lock);
	if (err != 0 && bad_wr != NULL)
		*bad_wr = wr;
	return err;
}
