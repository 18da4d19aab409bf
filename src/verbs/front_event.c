/* SPDX-License-Identifier: BSD-3-Clause */

/* Asynchronous events. */

#include "front.h"

enum element {
	OF_PORT,
	OF_CQ,
	OF_QP,
	OF_SRQ,
};

static enum element
element_of(uint32_t type)
{
	switch (type) {
	case SOFTHCA_EVENT_CQ_ERR:
		return OF_CQ;
	case SOFTHCA_EVENT_SRQ_ERR:
	case SOFTHCA_EVENT_SRQ_LIMIT_REACHED:
		return OF_SRQ;
	case SOFTHCA_EVENT_QP_FATAL:
	case SOFTHCA_EVENT_QP_REQ_ERR:
	case SOFTHCA_EVENT_QP_ACCESS_ERR:
	case SOFTHCA_EVENT_COMM_EST:
	case SOFTHCA_EVENT_SQ_DRAINED:
	case SOFTHCA_EVENT_PATH_MIG:
	case SOFTHCA_EVENT_PATH_MIG_ERR:
	case SOFTHCA_EVENT_QP_LAST_WQE_REACHED:
		return OF_QP;
	default:
		return OF_PORT;
	}
}

int
ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	FRONT_FAULT(-1);
	struct softhca_async_event from;
	int err = softhca_get_async_event(front_hca(context), &from);

	if (err != 0) {
		FRONT_RESULT(err);
		return -1;
	}
	event->event_type = (enum ibv_event_type)from.event_type;
	switch (element_of(from.event_type)) {
	case OF_CQ:
		event->element.cq = from.element.cq->cq_context;
		break;
	case OF_QP:
		event->element.qp = from.element.qp->qp_context;
		break;
	case OF_SRQ:
		event->element.srq = from.element.srq->srq_context;
		break;
	default:
		event->element.port_num = from.element.port_num;
	}
	return 0;
}

void
ibv_ack_async_event(struct ibv_async_event *event)
{
	struct softhca_async_event to = {.event_type = event->event_type};

	switch (element_of(to.event_type)) {
	case OF_CQ:
		to.element.cq = front_cq_hca(event->element.cq);
		break;
	case OF_QP:
		to.element.qp = front_qp(event->element.qp)->hca;
		break;
	case OF_SRQ:
		to.element.srq = front_srq_hca(event->element.srq);
		break;
	default:
		return;
	}
	softhca_ack_async_event(&to);
}
