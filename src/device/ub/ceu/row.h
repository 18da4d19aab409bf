/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UB_CEU_ROW_H
#define UB_CEU_ROW_H

/* Functions for the CEU and for counters that UB's row names: contracts in engine/wire_ops.h. */

#include "engine/wire_ops.h"

#define HCA_UB_COMMANDS 9u
extern const struct hca_wire_command hca_ub_commands[HCA_UB_COMMANDS];
extern const struct hca_wire_object hca_ub_tp_object;
extern const struct hca_wire_jfr hca_ub_jfr;
extern const struct hca_wire_values hca_ub_qp_values;

void hca_ub_limits(const struct hca_core *h, struct hca_mbox_dev_lim *m);
bool hca_ub_qpn_ok(uint32_t qpn);
bool hca_ub_qp_ok(const struct hca_qp_change *ch);
void hca_ub_qp_room(const struct hca_qp_shape *s, struct hca_qp_room *room);
void hca_ub_qp_fill(struct hca_qp *qp, const struct hca_qp_shape *s, uint8_t *front, uint8_t *back);
void hca_ub_qp_apply(struct hca_qp *qp, const struct hca_qpc *q, uint32_t mask);
bool hca_ub_qp_flushing(const struct hca_qp *qp);
uint32_t hca_ub_qp_next(const struct hca_qp *qp);
void hca_ub_qp_open(struct hca_core *h, uint32_t qpi, const struct hca_qpc *image);
void hca_ub_qp_reset(struct hca_core *h, uint32_t qpi);
void hca_ub_qp_close(struct hca_core *h, uint32_t qpi);
void hca_ub_key_gone(struct hca_core *h, uint32_t mpt);
uint64_t hca_ub_qp_answers(const struct hca_qp *qp);

#endif
