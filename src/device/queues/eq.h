/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QUEUES_EQ_H
#define QUEUES_EQ_H

/*
 * Event queues. Any stage may raise an event at any time; it is never lost: an EQ that is full
 * parks the event (a bit per object and type), the EQ writer in the CEU retries. At most one
 * unconsumed COMP per CQ; asynchronous events coalesce per (object, type). Stages therefore do not
 * write EQEs themselves: they set the object's pending bit and post the object on their own SPSC
 * ring towards the CEU, which is the only writer of EQs.
 */

#include <stdint.h>

#include "engine/stage.h"

struct hca;

/* A completion event of CQ index cqi is due on its comp_eqn. */
void hca_eq_raise_comp(struct hca *h, enum hca_stage_id from, uint32_t cqi);

/* An asynchronous event (HCA_EVENT_*) about object number num (QPN, CQN, ... as software knows it);
 * index is the object's table index. */
void hca_eq_raise_qp(struct hca *h, enum hca_stage_id from, uint8_t type, uint32_t qpi);
void hca_eq_raise_cq(struct hca *h, enum hca_stage_id from, uint8_t type, uint32_t cqi);

/* Called by the embedder's notifier when EQEs were written: sets bits of EQNs, never a syscall. */
#endif
