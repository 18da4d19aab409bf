/* SPDX-License-Identifier: BSD-3-Clause */

/* Asynchronous events of the context, but for those of Jettys and JFRs. */

#include <stdlib.h>

#include "urma_impl.h"

static bool
translate(const struct softhca_async_event *from, urma_async_event_t *to)
{
	switch (from->event_type) {
	case SOFTHCA_EVENT_CQ_ERR:
		to->event_type = URMA_EVENT_JFC_ERR;
		to->element.jfc = &((struct urma_jfc_obj *)from->element.cq->cq_context)->pub;
		return true;
	case SOFTHCA_EVENT_PORT_ACTIVE:
		to->event_type = URMA_EVENT_PORT_ACTIVE;
		to->element.port_id = (uint32_t)from->element.port_num;
		return true;
	case SOFTHCA_EVENT_PORT_ERR:
		to->event_type = URMA_EVENT_PORT_DOWN;
		to->element.port_id = (uint32_t)from->element.port_num;
		return true;
	case SOFTHCA_EVENT_DEVICE_FATAL:
		to->event_type = URMA_EVENT_DEV_FATAL;
		return true;
	case SOFTHCA_EVENT_GID_CHANGE:
		to->event_type = URMA_EVENT_EID_CHANGE;
		return true;
	default:
		return false;
	}
}

urma_status_t
urma_get_async_event(urma_context_t *ctx, urma_async_event_t *event)
{
	struct softhca_async_event *e;
	int err;

	if (ctx == NULL || event == NULL)
		return urma_status(urma_fail(
			-EINVAL, "ctx %p, event %p: expected a context, and a place for the event",
			(void *)ctx, (void *)event));
	e = malloc(sizeof(*e));
	if (e == NULL)
		return urma_status(urma_no_memory("an event", sizeof(*e)));
	*event = (urma_async_event_t){.urma_ctx = ctx, .priv = e};
	for (;;) {
		err = softhca_get_async_event(&urma_ctx_of(ctx)->lib->pub, e);
		if (err != 0 || translate(e, event))
			break;
		softhca_ack_async_event(e);
	}
	if (err != 0)
		free(e);
	return urma_status(err);
}

void
urma_ack_async_event(urma_async_event_t *event)
{
	softhca_ack_async_event(event->priv);
	free(event->priv);
	event->priv = NULL;
}
