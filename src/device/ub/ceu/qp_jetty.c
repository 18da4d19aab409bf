/* SPDX-License-Identifier: BSD-3-Clause */

/* Jettys and JFSs as QPs, for the row of UB: segments in place of responder jobs, TASSN of PSN. */

#include <rte_common.h>

#include "abi_qp_attr.h"
#include "ceu/qp.h"
#include "ceu/qp_shape.h"
#include "ub/ceu/row.h"

#define SEGMENTS_MIN 64u
#define WORD(f) hca_be32_to_cpu(q->f)

/* Segments that a Jetty may have without an answer: a few for each request of its window. */
static uint32_t
open_segments(const struct hca_qp_shape *s)
{
	return RTE_MIN(RTE_MAX(4 * s->window, SEGMENTS_MIN), HCA_JETTY_SEGMENTS);
}

/* TAT keeps the SGEs of receives elsewhere. */
void
hca_ub_qp_room(const struct hca_qp_shape *s, struct hca_qp_room *room)
{
	room->back = sizeof(struct hca_jetty_segment) * open_segments(s);
}

void
hca_ub_qp_fill(struct hca_qp *qp, const struct hca_qp_shape *s, uint8_t *front, uint8_t *back)
{
	qp->tai.window = qp->parser.window;
	qp->tai.window_mask = s->window - 1;
	qp->tai.segment = (struct hca_jetty_segment *)(void *)back;
	qp->tai.segment_mask = (uint16_t)(open_segments(s) - 1);
	qp->tai.sq_stride_log = (uint8_t)s->sq_stride_log;
}

/* The timeout is that of its segments, as it has no path. Stages may read it while it changes. */
void
hca_ub_qp_apply(struct hca_qp *qp, const struct hca_qpc *q, uint32_t mask)
{
	uint32_t tassn = WORD(next_send_psn);

	if (mask & HCA_QP_ATTR_TIMEOUT)
		__atomic_store_n(&qp->cfg.ack_timeout, (uint8_t)HCA_QPC_ACKTO(WORD(path.ackto)),
				 __ATOMIC_RELAXED);
	if (!(mask & HCA_QP_ATTR_SQ_PSN))
		return;
	__atomic_store_n(&qp->tai.tassn, (uint16_t)tassn, __ATOMIC_RELEASE);
	__atomic_store_n(&qp->sq_una, tassn, __ATOMIC_RELEASE);
}

/* Until its last request is flushed, and its owner has the completion that says so. */
bool
hca_ub_qp_flushing(const struct hca_qp *qp)
{
	return __atomic_load_n(&qp->tai.flushed, __ATOMIC_ACQUIRE) == 0;
}

/* TASSN of the next segment. */
uint32_t
hca_ub_qp_next(const struct hca_qp *qp)
{
	return __atomic_load_n(&qp->tai.tassn, __ATOMIC_ACQUIRE);
}
