/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UB_TP_WIRE_H
#define UB_TP_WIRE_H

/* Between the transport's structures (tp_core.h) and its headers on the wire (wire/ub_frame.h). */

#include "ub/tp_core.h"
#include "wire/ub_frame.h"

/* A TP Packet that hca_ub_parse_tp() has taken. port: UDP source port. */
void hca_tp_read_packet(const struct hca_ub_tp_view *v, uint16_t port, struct hca_tp_pkt *p);

/*
 * An acknowledgement that hca_ub_parse_tp() has taken; the bitmap stays in the packet. False: it is
 * something else.
 */
bool hca_tp_read_answer(const uint8_t *tph, const struct hca_ub_tp_view *v, uint16_t port,
			struct hca_tp_answer *a);

/* The transport headers of an answer; all other members of *h become 0. */
void hca_tp_write_answer(const struct hca_tp *tp, const struct hca_tp_answer *a,
			 struct hca_ub_headers *h);

/* The RTPH of a packet. */
void hca_tp_write_packet(const struct hca_tp *tp, const struct hca_ta_op *op,
			 const struct hca_tp_txd *d, struct hca_ub_rtph *h);

#endif
