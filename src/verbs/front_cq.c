/* SPDX-License-Identifier: BSD-3-Clause */

/* Completion channels and queues. */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "front.h"

/* ---- channels ---- */

static int
channel_destroy(void *object, const char *call)
{
	struct front_channel *channel = object;
	int err = front_result(softhca_destroy_comp_channel(channel->hca), call);

	if (err == 0)
		free(channel);
	return err;
}

static const struct front_kind channel_kind = {"completion channel", 0, channel_destroy, free};

struct ibv_comp_channel *
ibv_create_comp_channel(struct ibv_context *context)
{
	FRONT_FAULT(NULL);
	struct softhca_comp_channel *hca = softhca_create_comp_channel(front_hca(context));
	struct front_channel *channel;

	if (hca == NULL)
		return FRONT_FAILED();
	channel = FRONT_NEW(struct front_channel);
	if (channel == NULL) {
		softhca_destroy_comp_channel(hca);
		return NULL;
	}
	channel->pub.context = context;
	channel->pub.fd = hca->fd;
	channel->hca = hca;
	return FRONT_ENTER(channel, &channel_kind, context);
}

int
ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	return FRONT_DESTROY(channel, &channel_kind);
}

int
ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	FRONT_FAULT(-1);
	struct softhca_cq *hca;
	void *own;
	int err = softhca_get_cq_event(((struct front_channel *)channel)->hca, &hca, &own);

	if (err != 0) {
		FRONT_RESULT(err);
		return -1;
	}
	*cq = own;
	*cq_context = (*cq)->cq_context;
	return 0;
}

void
ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	if (nevents != 0)
		softhca_ack_cq_events(front_cq_hca(cq), nevents);
}

/* ---- queues: always in the large form ---- */

static void
cq_free(void *object)
{
	struct front_cq *cq = object;

	pthread_cond_destroy(&cq->pub.cond);
	pthread_mutex_destroy(&cq->pub.mutex);
	free(cq);
}

static int
cq_destroy(void *object, const char *call)
{
	int err = front_result(softhca_destroy_cq(((struct front_cq *)object)->hca), call);

	if (err == 0)
		cq_free(object);
	return err;
}

static const struct front_kind cq_kind = {"CQ", offsetof(struct ibv_cq, handle), cq_destroy,
					  cq_free};

static struct front_cq *
cq_new(struct ibv_context *context, const struct ibv_cq_init_attr_ex *attr, uint32_t flags,
       const char *call)
{
	struct front_channel *channel = (struct front_channel *)attr->channel;
	struct front_cq *cq = front_new(sizeof(*cq), call);
	const struct softhca_cq_init_attr request = {
		.cqe = attr->cqe,
		.comp_vector = attr->comp_vector,
		.channel = channel != NULL ? channel->hca : NULL,
		.cq_context = cq,
		.flags = flags,
		.wc_flags = attr->wc_flags,
	};

	if (cq == NULL)
		return NULL;
	cq->hca = softhca_create_cq(front_hca(context), &request);
	if (cq->hca == NULL) {
		free(cq);
		return front_failed(call);
	}
	cq->pub.context = context;
	cq->pub.channel = attr->channel;
	cq->pub.cq_context = attr->cq_context;
	cq->pub.handle = cq->hca->handle;
	cq->pub.cqe = cq->hca->cqe;
	pthread_mutex_init(&cq->pub.mutex, NULL);
	pthread_cond_init(&cq->pub.cond, NULL);
	return front_enter(cq, &cq_kind, context, NULL, call);
}

struct ibv_cq *
ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
	      struct ibv_comp_channel *channel, int comp_vector)
{
	FRONT_FAULT(NULL);
	const struct ibv_cq_init_attr_ex attr = {
		.cqe = (uint32_t)cqe,
		.cq_context = cq_context,
		.channel = channel,
		.comp_vector = (uint32_t)comp_vector,
	};
	struct front_cq *cq;

	if (cqe <= 0 || comp_vector < 0)
		return FRONT_NULL(EINVAL, "a CQ of %d entries at vector %d", cqe, comp_vector);
	cq = cq_new(context, &attr, 0, __func__);
	return cq != NULL ? ibv_cq_ex_to_cq(&cq->pub) : NULL;
}

struct ibv_cq_ex *
front_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	FRONT_FAULT(NULL);
	const uint32_t known = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
	const uint32_t known_flags =
		IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	uint32_t flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0;
	struct front_cq *cq;

	if ((attr->comp_mask & ~known) != 0)
		return FRONT_NULL(EOPNOTSUPP, "comp_mask %#x", attr->comp_mask);
	if ((flags & ~known_flags) != 0)
		return FRONT_NULL(EOPNOTSUPP, "flags %#x", flags);
	cq = cq_new(context, attr, flags, __func__);
	if (cq == NULL)
		return NULL;
	front_cq_ex_init(cq);
	return &cq->pub;
}

int
ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	FRONT_FAULT(errno);
	int err = front_cq_judge(cq, __func__);

	if (err == 0)
		err = FRONT_RESULT(softhca_resize_cq(front_cq_hca(cq), cqe));
	if (err == 0)
		cq->cqe = front_cq_hca(cq)->cqe;
	return err;
}

int
front_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	const struct softhca_modify_cq_attr request = {
		.attr_mask = attr->attr_mask,
		.moderate = {attr->moderate.cq_count, attr->moderate.cq_period},
	};

	int err = front_cq_judge(cq, __func__);

	if (err != 0)
		return err;
	if (attr->attr_mask >= IBV_CQ_ATTR_RESERVED)
		return FRONT_REFUSE(EOPNOTSUPP, "attributes %#x", attr->attr_mask);
	return FRONT_RESULT(softhca_modify_cq(front_cq_hca(cq), &request));
}

/* Without a channel no thread gets the event; other devices accept the call. */
int
front_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	int err = front_cq_judge(cq, __func__);

	if (err != 0 || cq->channel == NULL)
		return err;
	return FRONT_RESULT(softhca_req_notify_cq(front_cq_hca(cq), solicited_only));
}

int
ibv_destroy_cq(struct ibv_cq *cq)
{
	return FRONT_DESTROY(cq, &cq_kind);
}
