/* SPDX-License-Identifier: BSD-3-Clause */

/* Attributes of QPs: modify and query. */

#include <errno.h>
#include <string.h>

#include "front.h"
#include "front_qp_members.h"

static int
attr_to(const struct ibv_qp_attr *from, uint32_t mask, struct softhca_qp_attr *to, const char *call)
{
	memset(to, 0, sizeof(*to));
	FRONT_COPY_IBV
	memcpy(&to->cap, &from->cap, sizeof(to->cap));
	if ((mask & IBV_QP_AV) != 0 && front_path(&from->ah_attr, &to->ah_attr, call) != 0)
		return EINVAL;
	if ((mask & IBV_QP_ALT_PATH) != 0 &&
	    front_path(&from->alt_ah_attr, &to->alt_ah_attr, call) != 0)
		return EINVAL;
	return 0;
}

static void
attr_from(const struct softhca_qp_attr *from, struct ibv_qp_attr *to)
{
	memset(to, 0, sizeof(*to));
	FRONT_COPY_IBV
	memcpy(&to->cap, &from->cap, sizeof(to->cap));
	front_path_back(&from->ah_attr, &to->ah_attr);
	front_path_back(&from->alt_ah_attr, &to->alt_ah_attr);
}

/* Programs name both halves of what RC has for either end of XRC; the other half is dropped. */
static uint32_t
own_mask(enum ibv_qp_type type, uint32_t mask)
{
	switch (type) {
	case IBV_QPT_XRC_SEND:
		return mask & ~(uint32_t)(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	case IBV_QPT_XRC_RECV:
		return mask &
		       ~(uint32_t)(IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
	default:
		return mask;
	}
}

int
ibv_modify_qp(struct ibv_qp *pub, struct ibv_qp_attr *attr, int attr_mask)
{
	FRONT_FAULT(errno);
	struct front_qp *qp = front_qp(pub);
	uint32_t mask = own_mask(pub->qp_type, (uint32_t)attr_mask);
	struct softhca_qp_attr request;
	int err = front_qp_judge(pub, __func__);

	if (err != 0)
		return err;
	if ((mask & FRONT_OWN_ATTRS) != 0)
		return FRONT_REFUSE(EINVAL, "attributes %#x are not known to verbs",
				    mask & FRONT_OWN_ATTRS);
	err = attr_to(attr, mask, &request, __func__);
	if (err == 0)
		err = FRONT_RESULT(softhca_modify_qp(qp->hca, &request, mask));
	pub->state = (enum ibv_qp_state)qp->hca->state;
	if (pub->state == IBV_QPS_RESET)
		front_fault_qp_reset(qp);
	return err;
}

/* Bursts are as long as the engine makes them. */
int
front_modify_qp_rate_limit(struct ibv_qp *pub, struct ibv_qp_rate_limit_attr *attr)
{
	struct front_qp *qp = front_qp(pub);
	const struct softhca_qp_attr request = {.rate_limit = attr->rate_limit};
	int err = front_qp_judge(pub, __func__);

	if (err != 0)
		return err;
	if (attr->comp_mask != 0 || attr->max_burst_sz != 0 || attr->typical_pkt_sz != 0)
		return FRONT_REFUSE(EINVAL, "the size of bursts or packets is not limited");
	return FRONT_RESULT(softhca_modify_qp(qp->hca, &request, SOFTHCA_QP_RATE_LIMIT));
}

static void
init_attr_from(const struct front_qp *qp, const struct softhca_qp_init_attr *from,
	       struct ibv_qp_init_attr *to)
{
	const struct ibv_qp *pub = &qp->pub.qp_base;

	*to = (struct ibv_qp_init_attr){
		.qp_context = pub->qp_context,
		.send_cq = pub->send_cq,
		.recv_cq = pub->recv_cq,
		.srq = pub->srq,
		.qp_type = pub->qp_type,
		.sq_sig_all = from->sq_sig_all,
	};
	memcpy(&to->cap, &from->cap, sizeof(to->cap));
}

int
ibv_query_qp(struct ibv_qp *pub, struct ibv_qp_attr *attr, int attr_mask,
	     struct ibv_qp_init_attr *init_attr)
{
	FRONT_FAULT(errno);
	struct front_qp *qp = front_qp(pub);
	struct softhca_qp_init_attr init;
	struct softhca_qp_attr answer;
	int err = front_qp_judge(pub, __func__);

	if (err == 0)
		err = FRONT_RESULT(softhca_query_qp(qp->hca, &answer, (uint32_t)attr_mask, &init));
	if (err != 0)
		return err;
	attr_from(&answer, attr);
	pub->state = attr->qp_state;
	if (init_attr != NULL)
		init_attr_from(qp, &init, init_attr);
	return 0;
}
