/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UB_TP_TP_WIRE_H
#define UB_TP_TP_WIRE_H

/* Between the transport's structures (tp_core.h) and its headers on the wire (wire/ub_frame.h). */

#include "ub/tp/tp_core.h"
#include "wire/ub_frame.h"

/* A TP Packet that hca_ub_parse_tp() has taken. port: UDP source port. */
void hca_tp_read_packet(const struct hca_ub_tp_view *v, uint16_t port, struct hca_tp_pkt *p);

/*
 * An acknowledgement that hca_ub_parse_tp() has taken; the bitmap stays in the packet. False: it is
 * something else.
 */
bool hca_tp_read_answer(const uint8_t *tph, const struct hca_ub_tp_view *v, uint16_t port,
			struct hca_tp_answer *a);

/* The transport headers of an answer or a CNP; all other members of *h become 0. */
void hca_tp_write_answer(const struct hca_tp *tp, const struct hca_tp_answer *a,
			 struct hca_ub_headers *h);

/* The second half of the RTPH of a packet: A, PSN and TPMSN. */
static inline void
hca_tp_write_numbers(const struct hca_ta_op *op, const struct hca_tp_txd *d, uint8_t *tph)
{
	uint64_t ask = (d->flags & HCA_TP_TXD_ASK) != 0;

	hca_put_be64(tph + 8, ask << 63 | (uint64_t)d->psn << 32 | op->tps.tpmsn);
}

/* The RTPH of a packet with len bytes of payload to tph, HCA_UB_RTPH_LEN. */
static inline void
hca_tp_write_packet(const struct hca_tp *tp, const struct hca_ta_op *op, const struct hca_tp_txd *d,
		    uint32_t len, uint8_t *tph)
{
	uint64_t nlp = tp->cfg.flags & HCA_TP_FLAG_EIDH ? HCA_UB_NLP_EIDH : HCA_UB_NLP_TA;
	uint64_t last = (d->flags & HCA_TP_TXD_LAST) != 0;

	/* all fields of HCA_UB_RTPH_FIELDS in two words: those that are 0 are left out */
	hca_put_be64(tph, last << 63 | (uint64_t)HCA_UB_TP_RTP << 56 |
				  (uint64_t)hca_ub_pad(len) << 52 | nlp << 48 |
				  (uint64_t)tp->cfg.own_tpn << 24 | tp->cfg.peer_tpn);
	hca_tp_write_numbers(op, d, tph);
}

#endif
