/* SPDX-License-Identifier: BSD-3-Clause */

/* Queue pairs: creation, destruction, multicast groups, and queries of a QP. */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "front.h"

/* Members that a type does not use are not read: programs leave them unset. */
static void
drop_unused(struct ibv_qp_init_attr_ex *attr)
{
	if (attr->qp_type == IBV_QPT_XRC_RECV)
		attr->send_cq = NULL;
	if (attr->qp_type == IBV_QPT_XRC_RECV || attr->qp_type == IBV_QPT_XRC_SEND) {
		attr->recv_cq = NULL;
		attr->srq = NULL;
	}
}

/* Padding of writes by PCI is a hint, and no write of this device passes PCI. */
#define CREATE_FLAGS \
	(IBV_QP_CREATE_BLOCK_SELF_MCAST_LB | IBV_QP_CREATE_SOURCE_QPN | \
	 IBV_QP_CREATE_PCI_WRITE_END_PADDING)
#define OF_DATAGRAMS (IBV_QP_CREATE_BLOCK_SELF_MCAST_LB | IBV_QP_CREATE_SOURCE_QPN)

static void
take_flags(const struct ibv_qp_init_attr_ex *attr, struct softhca_qp_init_attr_ex *to)
{
	if ((attr->create_flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB) != 0)
		to->flags |= SOFTHCA_BLOCK_SELF_MCAST_LB;
	if ((attr->create_flags & IBV_QP_CREATE_SOURCE_QPN) != 0) {
		to->flags |= SOFTHCA_SOURCE_QPN;
		to->source_qpn = attr->source_qpn;
	}
}

static int
judge_flags(enum ibv_qp_type type, uint32_t flags, const char *call)
{
	uint32_t known = type == IBV_QPT_UD ? CREATE_FLAGS : CREATE_FLAGS & ~OF_DATAGRAMS;

	if ((flags & ~known) != 0)
		return front_refuse(EOPNOTSUPP, call,
				    "create_flags %#x: a QP of type %u takes a set of %#x", flags,
				    type, known);
	return 0;
}

/* The thread domain of the parent domain in which the QP is created, or NULL */
static struct softhca_td *
td_of(const struct ibv_qp_init_attr_ex *attr)
{
	const struct front_pd *pd = (const struct front_pd *)attr->pd;

	return (attr->comp_mask & IBV_QP_INIT_ATTR_PD) != 0 && pd != NULL && pd->td != NULL
		       ? pd->td->hca
		       : NULL;
}

static struct softhca_qp_init_attr_ex
attr_to(const struct ibv_qp_init_attr_ex *attr, struct front_qp *qp)
{
	struct softhca_qp_init_attr_ex to = {
		.qp_context = qp,
		.send_cq = front_cq_hca(attr->send_cq),
		.recv_cq = front_cq_hca(attr->recv_cq),
		.srq = front_srq_hca(attr->srq),
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
	};

	memcpy(&to.cap, &attr->cap, sizeof(to.cap));
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0)
		take_flags(attr, &to);
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_PD) != 0)
		to.pd = front_pd_hca(attr->pd);
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) != 0 && attr->xrcd != NULL)
		to.xrcd = ((struct front_xrcd *)attr->xrcd)->hca;
	to.comp_mask = (to.pd != NULL ? (uint32_t)SOFTHCA_QP_INIT_ATTR_PD : 0) |
		       (to.xrcd != NULL ? (uint32_t)SOFTHCA_QP_INIT_ATTR_XRCD : 0);
	return to;
}

static void
fill_pub(struct front_qp *qp, struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *pub = &qp->pub.qp_base;

	pub->context = context;
	pub->qp_context = attr->qp_context;
	pub->pd = (attr->comp_mask & IBV_QP_INIT_ATTR_PD) != 0 ? attr->pd : NULL;
	pub->send_cq = attr->send_cq;
	pub->recv_cq = attr->recv_cq;
	pub->srq = attr->srq;
	pub->handle = qp->hca->qp_num;
	pub->qp_num = qp->hca->qp_num;
	pub->state = (enum ibv_qp_state)qp->hca->state;
	pub->qp_type = attr->qp_type;
	pthread_mutex_init(&pub->mutex, NULL);
	pthread_cond_init(&pub->cond, NULL);
	front_fault_qp_add(qp);
}

static void
qp_free(void *object)
{
	struct front_qp *qp = object;

	front_fault_qp_remove(qp);
	front_wr_fini(qp);
	pthread_cond_destroy(&qp->pub.qp_base.cond);
	pthread_mutex_destroy(&qp->pub.qp_base.mutex);
	free(qp);
}

static int
qp_destroy(void *object, const char *call)
{
	int err = front_result(softhca_destroy_qp(((struct front_qp *)object)->hca), call);

	if (err == 0)
		qp_free(object);
	return err;
}

static const struct front_kind qp_kind = {"QP", offsetof(struct ibv_qp, handle), qp_destroy,
					  qp_free};

static int
judge_handles(const struct ibv_qp_init_attr_ex *attr, const char *call)
{
	bool has_pd = (attr->comp_mask & IBV_QP_INIT_ATTR_PD) != 0;
	int err = has_pd ? front_pd_judge(attr->pd, call) : 0;

	if (err == 0)
		err = front_cq_judge(attr->send_cq, call);
	if (err == 0)
		err = front_cq_judge(attr->recv_cq, call);
	return err == 0 ? front_srq_judge(attr->srq, call) : err;
}

/* The granted capacities are written back to *granted. */
static struct ibv_qp *
qp_new(struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr,
       struct ibv_qp_cap *granted, const char *call)
{
	struct softhca_qp_init_attr_ex request;
	struct front_qp *qp;

	if (judge_handles(attr, call) != 0)
		return NULL;
	qp = front_new(sizeof(*qp), call);
	if (qp == NULL)
		return NULL;
	request = attr_to(attr, qp);
	qp->hca = softhca_create_qp_td(front_hca(context), &request, td_of(attr));
	if (qp->hca == NULL) {
		free(qp);
		return front_failed(call);
	}
	fill_pub(qp, context, attr);
	memcpy(granted, &request.cap, sizeof(*granted));
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0 &&
	    front_wr_init(qp, &request.cap) != 0) {
		softhca_destroy_qp(qp->hca);
		qp_free(qp);
		return NULL;
	}
	return front_enter(qp, &qp_kind, context, qp->pub.qp_base.pd, call);
}

static int
judge_type(enum ibv_qp_type type, const char *call)
{
	if (type == IBV_QPT_RAW_PACKET || type == IBV_QPT_DRIVER)
		return front_refuse(EOPNOTSUPP, call,
				    "QPs of type %u are not offered: use RC, UC, UD or XRC", type);
	return 0;
}

struct ibv_qp *
ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	FRONT_FAULT(NULL);
	struct ibv_qp_init_attr_ex all = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};

	if (judge_type(attr->qp_type, __func__) != 0)
		return NULL;
	drop_unused(&all);
	return qp_new(pd->context, &all, &attr->cap, __func__);
}

struct ibv_qp *
front_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	FRONT_FAULT(NULL);
	const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |
			       IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	struct ibv_qp_init_attr_ex all = *attr;

	if (judge_type(attr->qp_type, __func__) != 0)
		return NULL;
	if ((attr->comp_mask & ~known) != 0)
		return FRONT_NULL(EOPNOTSUPP, "comp_mask %#x", attr->comp_mask);
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 &&
	    judge_flags(attr->qp_type, attr->create_flags, __func__) != 0)
		return NULL;
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0 &&
	    front_wr_judge(context, attr->qp_type, attr->send_ops_flags, __func__) != 0)
		return NULL;
	drop_unused(&all);
	return qp_new(context, &all, &attr->cap, __func__);
}

/* A target of XRC has no queues, and no PD. */
struct ibv_qp *
front_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	const uint32_t required =
		IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
	const uint32_t known = required | IBV_QP_OPEN_ATTR_CONTEXT;
	struct ibv_qp_init_attr_ex init = {.qp_type = attr->qp_type};
	struct softhca_qp_open_attr request = {.qp_num = attr->qp_num, .qp_type = attr->qp_type};
	struct front_qp *qp;

	if ((attr->comp_mask & ~known) != 0)
		return FRONT_NULL(EOPNOTSUPP, "comp_mask %#x", attr->comp_mask);
	if ((attr->comp_mask & required) != required || attr->xrcd == NULL)
		return FRONT_NULL(EINVAL, "comp_mask %#x, %#x is needed", attr->comp_mask,
				  required);
	qp = FRONT_NEW(struct front_qp);
	if (qp == NULL)
		return NULL;
	request.xrcd = ((struct front_xrcd *)attr->xrcd)->hca;
	request.qp_context = qp;
	qp->hca = softhca_open_qp(front_hca(context), &request);
	if (qp->hca == NULL) {
		free(qp);
		return FRONT_FAILED();
	}
	if ((attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT) != 0)
		init.qp_context = attr->qp_context;
	fill_pub(qp, context, &init);
	return FRONT_ENTER(qp, &qp_kind, context);
}

int
ibv_destroy_qp(struct ibv_qp *qp)
{
	return FRONT_DESTROY(qp, &qp_kind);
}

struct ibv_qp_ex *
ibv_qp_to_qp_ex(struct ibv_qp *pub)
{
	struct front_qp *qp = front_qp(pub);

	return qp->batch != NULL ? &qp->pub : NULL;
}

int
ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	FRONT_FAULT(errno);
	int err = front_qp_judge(qp, __func__);

	if (err != 0)
		return err;
	return FRONT_RESULT(
		softhca_attach_mcast(front_qp(qp)->hca, (const union softhca_gid *)gid, lid));
}

int
ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	FRONT_FAULT(errno);
	int err = front_qp_judge(qp, __func__);

	if (err != 0)
		return err;
	return FRONT_RESULT(
		softhca_detach_mcast(front_qp(qp)->hca, (const union softhca_gid *)gid, lid));
}

/* Not guaranteed: retransmitted data may be written again. */
int
ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	return 0;
}

int
ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	return FRONT_REFUSE(EOPNOTSUPP, "there are no ECE options");
}

int
ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	return FRONT_REFUSE(EOPNOTSUPP, "there are no ECE options");
}
