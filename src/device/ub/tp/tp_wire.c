/* SPDX-License-Identifier: BSD-3-Clause */

#include "ub/tp/tp_wire.h"

#include <string.h>

void
hca_tp_read_packet(const struct hca_ub_tp_view *v, uint16_t port, struct hca_tp_pkt *p)
{
	*p = (struct hca_tp_pkt){.psn = v->psn,
				 .tpmsn = v->tpmsn,
				 .port = port,
				 .last = v->last,
				 .ask = v->ack,
				 .fake = v->fake};
}

bool
hca_tp_read_answer(const uint8_t *tph, const struct hca_ub_tp_view *v, uint16_t port,
		   struct hca_tp_answer *a)
{
	const uint8_t *saetph = tph + v->saetph;

	*a = (struct hca_tp_answer){.psn = v->psn,
				    .tpmsn = v->tpmsn,
				    .port = port,
				    .kind = HCA_TP_TPACK};
	if (v->op->headers & HCA_UB_TP_ACK_STATUS) {
		if (HCA_UB_IS_NEGATIVE(v->rspst, v->rspinfo))
			a->kind = HCA_TP_TPNAK;
		else
			a->status = (uint8_t)(v->rspst << 5 | v->rspinfo);
		return true;
	}
	if (!(v->op->headers & HCA_UB_TP_SAETPH))
		return false;
	a->kind = HCA_TP_TPSACK;
	a->sack_code = (uint8_t)hca_ub_saetph_size(saetph);
	a->max_rcv = hca_ub_saetph_max_rcv(saetph);
	a->bits = saetph + HCA_UB_SAETPH_LEN;
	return true;
}

void
hca_tp_write_answer(const struct hca_tp *tp, const struct hca_tp_answer *a,
		    struct hca_ub_headers *h)
{
	memset(h, 0, sizeof(*h));
	if (unlikely(a->kind == HCA_TP_CNP)) {
		h->rtph = (struct hca_ub_rtph){.opcode = HCA_UB_TP_CNP,
					       .src_tpn = tp->cfg.own_tpn,
					       .dst_tpn = tp->cfg.peer_tpn};
		h->cetph_cnp.ecn = HCA_ECN_CE;
		return;
	}
	h->rtph = (struct hca_ub_rtph){
		.opcode = a->kind == HCA_TP_TPSACK ? HCA_UB_TP_SACK : HCA_UB_TP_ACK,
		.rspst = a->kind == HCA_TP_TPNAK ? HCA_UB_ACK_ERROR : HCA_UB_ACK_OK,
		.rspinfo = a->kind == HCA_TP_TPNAK ? HCA_UB_ERROR_PSN : 0,
		.src_tpn = tp->cfg.own_tpn,
		.dst_tpn = tp->cfg.peer_tpn,
		.psn = a->psn,
		.tpmsn = a->tpmsn};
	h->saetph = (struct hca_ub_saetph){.size = a->sack_code, .max_rcv = a->max_rcv};
	h->bitmap = a->bits;
}
