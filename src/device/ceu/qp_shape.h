/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CEU_QP_SHAPE_H
#define CEU_QP_SHAPE_H

/*
 * A QP as RST2INIT describes it, for the functions of a wire's row that make its memory: qp_room
 * and qp_fill of struct hca_wire_ops. RoCE's are in ceu/qp_roce.c. CEU only.
 */

#include <stddef.h>
#include <stdint.h>

#include "core/qbuf.h"

struct hca_qp;
struct hca_qpc;
struct hca_srq;

/* Sizes and addresses latched by RST2INIT. */
struct hca_qp_shape {
	uint32_t service, has; /* HCA_HAS_*: the queues it will have */
	struct hca_srq *srq;
	uint32_t xrcd;
	uint32_t pd, usr_page;
	uint32_t scqn, rcqn;
	uint32_t sq_key, rq_key;
	uint32_t sq_stride_log, rq_stride_log;
	uint32_t sq_size_log, rq_size_log;
	uint32_t window;
	struct hca_qbuf sq, rq;
};

/*
 * Bytes of the QP's memory that belong to the wire: in front of struct hca_qp_work, written by the
 * stage that has receives, and behind it, written by the stage that has records. Multiples of 8.
 */
struct hca_qp_room {
	size_t front, back;
};

/* RoCE's row; contracts in engine/wire_ops.h. */
void hca_roce_qp_room(const struct hca_qp_shape *s, struct hca_qp_room *room);
void hca_roce_qp_fill(struct hca_qp *qp, const struct hca_qp_shape *s, uint8_t *front,
		      uint8_t *back);
void hca_roce_qp_apply(struct hca_qp *qp, const struct hca_qpc *q, uint32_t mask);
uint32_t hca_roce_qp_next(const struct hca_qp *qp);

#endif
