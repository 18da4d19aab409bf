/* SPDX-License-Identifier: BSD-3-Clause */

/* Shared receive queues. */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "front.h"

static struct softhca_srq_attr
attr_to(const struct ibv_srq_attr *from)
{
	return (struct softhca_srq_attr){from->max_wr, from->max_sge, from->srq_limit};
}

static struct ibv_srq_attr
attr_from(const struct softhca_srq_attr *from)
{
	return (struct ibv_srq_attr){from->max_wr, from->max_sge, from->srq_limit};
}

static void
srq_free(void *object)
{
	struct front_srq *srq = object;

	pthread_cond_destroy(&srq->pub.cond);
	pthread_mutex_destroy(&srq->pub.mutex);
	free(srq);
}

static int
srq_destroy(void *object, const char *call)
{
	int err = front_result(softhca_destroy_srq(((struct front_srq *)object)->hca), call);

	if (err == 0)
		srq_free(object);
	return err;
}

static const struct front_kind srq_kind = {"SRQ", offsetof(struct ibv_srq, handle), srq_destroy,
					   srq_free};

/* The granted sizes are written back to *granted. */
static struct ibv_srq *
srq_new(struct ibv_context *context, const struct ibv_srq_init_attr_ex *attr,
	struct ibv_srq_attr *granted, const char *call)
{
	struct front_srq *srq;
	struct softhca_srq_init_attr_ex request = {
		.attr = attr_to(&attr->attr),
		.srq_type = attr->srq_type,
		.pd = front_pd_hca(attr->pd),
	};

	if (front_pd_judge(attr->pd, call) != 0)
		return NULL;
	srq = front_new(sizeof(*srq), call);
	if (srq == NULL)
		return NULL;
	request.srq_context = srq;
	if (attr->srq_type == IBV_SRQT_XRC) {
		request.xrcd = ((struct front_xrcd *)attr->xrcd)->hca;
		request.cq = front_cq_hca(attr->cq);
	}
	srq->hca = softhca_create_srq_ex(front_hca(context), &request);
	if (srq->hca == NULL) {
		free(srq);
		return front_failed(call);
	}
	*granted = attr_from(&request.attr);
	srq->pub.context = context;
	srq->pub.srq_context = attr->srq_context;
	srq->pub.pd = attr->pd;
	srq->pub.handle = srq->hca->handle;
	pthread_mutex_init(&srq->pub.mutex, NULL);
	pthread_cond_init(&srq->pub.cond, NULL);
	return front_enter(srq, &srq_kind, context, attr->pd, call);
}

struct ibv_srq *
ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	FRONT_FAULT(NULL);
	const struct ibv_srq_init_attr_ex basic = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
		.srq_type = IBV_SRQT_BASIC,
		.pd = pd,
	};

	return srq_new(pd->context, &basic, &attr->attr, __func__);
}

struct ibv_srq *
front_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	FRONT_FAULT(NULL);
	const uint32_t known = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			       IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	const uint32_t xrc = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	struct ibv_srq_init_attr_ex all = *attr;
	uint32_t mask = attr->comp_mask;

	if ((mask & ~known) != 0)
		return FRONT_NULL(EOPNOTSUPP, "comp_mask %#x", mask);
	if ((mask & IBV_SRQ_INIT_ATTR_TYPE) == 0)
		all.srq_type = IBV_SRQT_BASIC;
	if (all.srq_type != IBV_SRQT_BASIC && all.srq_type != IBV_SRQT_XRC)
		return FRONT_NULL(EOPNOTSUPP, "SRQs of type %u", all.srq_type);
	if ((mask & IBV_SRQ_INIT_ATTR_PD) == 0 || attr->pd == NULL)
		return FRONT_NULL(EINVAL, "an SRQ needs a PD");
	if (all.srq_type == IBV_SRQT_XRC &&
	    ((mask & xrc) != xrc || attr->xrcd == NULL || attr->cq == NULL))
		return FRONT_NULL(EINVAL, "an XRC SRQ needs an XRC domain and a CQ");
	return srq_new(context, &all, &attr->attr, __func__);
}

int
ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int attr_mask)
{
	FRONT_FAULT(errno);
	const struct softhca_srq_attr request = attr_to(attr);
	int err = front_srq_judge(srq, __func__);

	if (err != 0)
		return err;
	return FRONT_RESULT(softhca_modify_srq(front_srq_hca(srq), &request, (uint32_t)attr_mask));
}

int
ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	struct softhca_srq_attr answer;
	int err = front_srq_judge(srq, __func__);

	if (err == 0)
		err = FRONT_RESULT(softhca_query_srq(front_srq_hca(srq), &answer));

	if (err == 0)
		*attr = attr_from(&answer);
	return err;
}

int
front_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num)
{
	return FRONT_RESULT(softhca_get_srq_num(front_srq_hca(srq), srq_num));
}

int
ibv_destroy_srq(struct ibv_srq *srq)
{
	return FRONT_DESTROY(srq, &srq_kind);
}
