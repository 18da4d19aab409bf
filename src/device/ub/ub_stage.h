/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UB_UB_STAGE_H
#define UB_UB_STAGE_H

/*
 * Shared by the stages of UB: messages about TPs, whose object indexes follow those of the QPs. A
 * device without UB has no channel, edge or context of these stages.
 */

#include "engine/impl.h"
#include "ub/ub.h"

/* Processes and rooms of the edges between these stages, and from decap: wireops/wire_ub.c. */
void hca_tai_process(struct hca_pipe *h, void *const *objs, unsigned int n, uint64_t now);
void hca_tpr_process(struct hca_pipe *h, void *const *objs, unsigned int n, uint64_t now);
void hca_tat_process(struct hca_pipe *h, void *const *objs, unsigned int n, uint64_t now);
void hca_tps_process(struct hca_pipe *h, void *const *objs, unsigned int n, uint64_t now);
unsigned int hca_tai_room(struct hca_pipe *h);
unsigned int hca_tpr_room(struct hca_pipe *h);
unsigned int hca_tat_room(struct hca_pipe *h);
unsigned int hca_tps_room(struct hca_pipe *h);

/* The stages that keep state of a TP, a bit each, and the timer. */
#define HCA_TP_STAGES \
	(1u << HCA_STAGE_TAI | 1u << HCA_STAGE_TPR | 1u << HCA_STAGE_TAT | 1u << HCA_STAGE_TPS | \
	 1u << HCA_STAGE_TIMER)

/* The state of the TP or its configuration has changed: STATE. */
void hca_tp_tell(struct hca_pipe *h, enum hca_stage_id from, uint32_t tpi);

/* Object index of a TP, and back. */
static inline uint32_t
hca_tp_object(const struct hca_pipe *h, uint32_t tpi)
{
	return h->object[HCA_OBJECT_TP].first + tpi;
}

static inline uint32_t
hca_tp_of_object(const struct hca_pipe *h, uint32_t obj)
{
	return obj - h->object[HCA_OBJECT_TP].first;
}

static inline void
hca_tp_msg_send(struct hca_pipe *h, enum hca_stage_id from, enum hca_stage_id to, uint32_t tpi,
		uint8_t flags)
{
	hca_msg_send(h, from, to, hca_tp_object(h, tpi), flags);
}

/* As hca_msg_fn and hca_msg_drain(), for channels about TPs. */
typedef void (*hca_tp_msg_fn)(struct hca_pipe *h, struct hca_tp *tp, uint32_t tpi, uint8_t flags,
			      uint64_t now);

static inline unsigned int
hca_tp_msg_drain(struct hca_pipe *h, enum hca_stage_id from, enum hca_stage_id to, hca_tp_msg_fn fn,
		 uint64_t now, unsigned int budget)
{
	struct hca_msg_channel *c = h->msg[from][to];
	unsigned int n = 0;
	uint32_t obj;
	uint8_t flags;

	while (n < budget && (flags = hca_msg_take(c, &obj)) != 0) {
		uint32_t tpi = hca_tp_of_object(h, obj);

		fn(h, &h->ub->tp[tpi], tpi, flags, now);
		n++;
	}
	return n;
}

/* The same for a channel about QPs and TPs. */
static inline unsigned int
hca_ub_msg_drain(struct hca_pipe *h, enum hca_stage_id from, enum hca_stage_id to, hca_msg_fn qp_fn,
		 hca_tp_msg_fn tp_fn, uint64_t now, unsigned int budget)
{
	struct hca_msg_channel *c = h->msg[from][to];
	unsigned int n = 0;
	uint32_t obj;
	uint8_t flags;

	for (; n < budget && (flags = hca_msg_take(c, &obj)) != 0; n++) {
		if (hca_object_kind(h, obj) == HCA_OBJECT_TP) {
			uint32_t tpi = hca_tp_of_object(h, obj);

			tp_fn(h, &h->ub->tp[tpi], tpi, flags, now);
		} else {
			qp_fn(h, &h->qp[obj], obj, flags, now);
		}
	}
	return n;
}

#endif
