/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UB_TP_PKT_H
#define UB_TP_PKT_H

/*
 * Descriptors of UB's packets, in the private area of the mbuf, where those of RoCE
 * (engine/pkt.h) have theirs. Decap fills in struct hca_ub_rxd after it has judged the frame up to
 * the transport header and its TP. TPR, the TP receiver, passes the same descriptor on to the
 * transaction initiator TAI (responses) or the transaction target TAT (requests). TPS, the TP
 * sender, fills in a struct hca_tp_txd (tp_core.h) for encap.
 */

#include <stdint.h>

#include <rte_mbuf.h>

#include "core/mbuf.h"
#include "ub/tp/tp_core.h"
#include "wire/ub_frame.h"

enum hca_ub_rxd_flag {
	HCA_UB_RXD_LAST = 1u << 0,
	HCA_UB_RXD_ASK = 1u << 1,  /* A */
	HCA_UB_RXD_FAKE = 1u << 2, /* F */
	/* of decap alone: equals the packet before it in all that decap judges */
	HCA_UB_RXD_ALIKE = 1u << 3,
	/* TPR: packets before it are missing, from PSN hca_ub_rxd_expected() on */
	HCA_UB_RXD_AHEAD = 1u << 4,
};

struct hca_ub_rxd {
	uint32_t tp;	     /* index; HCA_TP_UNRELIABLE: a UTP packet */
	uint32_t generation; /* tp.cfg.generation */
	uint32_t psn, tpmsn;
	uint16_t end;  /* of the pad, bytes from the transport header */
	uint16_t tph;  /* offset of the transport header in the mbuf's data */
	uint16_t l3;   /* of the IP header */
	uint16_t port; /* UDP source port */
	uint16_t vlan;
	uint8_t opcode; /* enum hca_ub_tp_opcode */
	uint8_t ta;	/* BTAH or ATAH, bytes from the transport header; 0: none */
	uint8_t pad;
	uint8_t ecn;   /* IP ECN bits as received */
	uint8_t flags; /* enum hca_ub_rxd_flag */
	uint8_t first; /* byte of BTAH or ATAH: TAOpcode; without one, of the transport header */
};

_Static_assert(sizeof(struct hca_ub_rxd) + sizeof(uint32_t) <= HCA_MBUF_PRIV, "fits");
_Static_assert(sizeof(struct hca_tp_txd) <= HCA_MBUF_PRIV, "fits");

/* An answer that TPR has made, for encap. */
struct hca_ub_answer {
	uint32_t tp; /* index */
	uint32_t generation;
	struct hca_tp_answer answer;
};

_Static_assert(sizeof(struct hca_ub_answer) <= HCA_MBUF_PRIV, "fits");

/* Where its bitmap is until the frame is built: in the mbuf, behind all headers of a frame. */
#define HCA_UB_ANSWER_BITS 512u

static inline struct hca_ub_answer *
hca_ub_answer(struct rte_mbuf *m)
{
	return rte_mbuf_to_priv(m);
}

static inline uint8_t *
hca_ub_answer_bits(struct rte_mbuf *m)
{
	return (uint8_t *)m->buf_addr + RTE_PKTMBUF_HEADROOM + HCA_UB_ANSWER_BITS;
}

static inline struct hca_ub_rxd *
hca_ub_rxd(struct rte_mbuf *m)
{
	return rte_mbuf_to_priv(m);
}

/* Behind the descriptor, which decap copies as a whole. */
static inline uint32_t *
hca_ub_rxd_expected(const struct hca_ub_rxd *r)
{
	return (uint32_t *)((uintptr_t)r + sizeof(*r));
}

static inline struct hca_tp_txd *
hca_ub_txd(struct rte_mbuf *m)
{
	return rte_mbuf_to_priv(m);
}

static inline const uint8_t *
hca_ub_rxd_tph(struct rte_mbuf *m)
{
	return rte_pktmbuf_mtod_offset(m, const uint8_t *, hca_ub_rxd(m)->tph);
}

/* The fields that hca_ub_parse_ta() reads of a transport header that was parsed already. */
static inline void
hca_ub_rxd_view(const struct hca_ub_rxd *r, struct hca_ub_tp_view *v)
{
	*v = (struct hca_ub_tp_view){
		.op = &hca_ub_tp_ops[r->opcode],
		.psn = r->psn,
		.tpmsn = r->tpmsn,
		.opcode = r->opcode,
		.pad = r->pad,
		.last = (r->flags & HCA_UB_RXD_LAST) != 0,
		.ack = (r->flags & HCA_UB_RXD_ASK) != 0,
		.fake = (r->flags & HCA_UB_RXD_FAKE) != 0,
		.ta = r->ta,
		.end = r->end,
	};
}

#endif
