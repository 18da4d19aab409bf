/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UB_FRAME_FRAME_H
#define UB_FRAME_FRAME_H

/* Frames of UB: the functions that its row of the table of wires names (engine/wire_ops.h). */

#include "core/counters.h"
#include "engine/wire_ops.h"

struct hca_icrc_span;
struct hca_ub_rxd;

/* ---- decap: take, describe and judge ---- */

unsigned int hca_decap_ub_take(struct hca_decap *d, struct rte_mbuf **m, unsigned int n);
/* It takes frames that have all headers up to UDP. */
bool hca_decap_ub(struct hca_pipe *h, struct hca_decap *d, struct rte_mbuf *m,
		  const struct hca_wire_view *v, int rc);
/* The descriptor of a frame that it takes. Returns HCA_CTR_N or the counter of its drop. */
enum hca_counter hca_decap_ub_describe(const uint8_t *frame, const struct hca_wire_view *v,
				       struct hca_ub_rxd *r, struct hca_icrc_span *span);
/* Checks ICRC, TP, addresses and Entities. */
void hca_decap_ub_judge(struct hca_pipe *h, struct hca_decap *d, unsigned int from,
			unsigned int to);

/* ---- encap: of the edges from TPS and TPR ---- */

void hca_encap_process_tps(struct hca_pipe *h, void *const *objs, unsigned int n, uint64_t now);
void hca_encap_process_tpr(struct hca_pipe *h, void *const *objs, unsigned int n, uint64_t now);

#endif
