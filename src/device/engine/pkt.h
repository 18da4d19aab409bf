/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_PKT_H
#define ENGINE_PKT_H

/*
 * Packet descriptors, in the private area of the mbuf. Outgoing ones are filled in by req_tx or EE
 * and read by encap; incoming ones are filled in by decap and read by EE or req_rx. Every pool of
 * an HCA reserves HCA_MBUF_PRIV bytes; the port copies received mbufs of pools with less.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_mbuf.h>

#include "core/mbuf.h"
#include "ctxmgt/qp.h"

enum hca_txd_flag {
	HCA_TXD_ACKREQ = 1u << 0,
	HCA_TXD_SOLICITED = 1u << 1,
	HCA_TXD_LAST_OF_RECORD = 1u << 2,
	HCA_TXD_INLINE = 1u << 3, /* payload in the record's inline data at off */
	/* sent before; for a READ response, a failed gather is only a counted drop */
	HCA_TXD_REPEAT = 1u << 4,
	HCA_TXD_PART = 1u << 5, /* of a message of several packets, whose next part may follow */
};

/* Outgoing packet. 64 bytes; self-contained when nsge <= 1. */
struct hca_txd {
	uint32_t qpi;
	uint32_t psn;
	uint8_t opcode; /* BTH */
	uint8_t flags;
	uint8_t nsge;	  /* 0: no payload; 1: va/key; more: SGL of the record, from byte off */
	uint8_t syndrome; /* AETH */
	uint16_t len;	  /* payload bytes in this packet */
	uint16_t reserved;
	uint32_t seq; /* requests: encap stores it in encap.req_done_seq when finished */
	uint32_t key; /* lkey, or rkey for READ responses */
	uint64_t va;  /* start of the payload (nsge == 1) */
	uint32_t rec; /* record reference (nsge > 1, inline, atomics); READ resp: start of job */
	uint32_t off; /* byte offset of the payload in the message */
	union {
		struct {
			uint64_t raddr; /* RETH, AtomicETH */
			uint32_t rkey;
			uint32_t dma_len;
		} reth;
		struct {
			uint64_t result; /* AtomicAckETH */
			uint32_t msn;	 /* AETH */
		} resp;
	};
	uint32_t imm;	     /* as on the wire; READ responses: PD of the key */
	uint32_t generation; /* qp.cfg.generation: descriptors of an earlier one are dropped */
};

/*
 * Opcode, flags, nsge, length and no syndrome as one word: runs of packets alike differ in few of
 * them, and a word that is read whole must have been stored whole.
 */
static inline uint64_t
hca_txd_head(uint8_t opcode, uint8_t flags, uint8_t nsge, uint16_t len)
{
	return (uint64_t)len << 32 | (uint32_t)nsge << 16 | (uint32_t)flags << 8 | opcode;
}

static inline uint64_t
hca_txd_get_head(const struct hca_txd *d)
{
	uint64_t w;

	memcpy(&w, &d->opcode, sizeof(w));
	return rte_le_to_cpu_64(w);
}

static inline void
hca_txd_set_head(struct hca_txd *d, uint64_t w)
{
	w = rte_cpu_to_le_64(w);
	memcpy(&d->opcode, &w, sizeof(w));
}

_Static_assert(offsetof(struct hca_txd, flags) - offsetof(struct hca_txd, opcode) == 1 &&
		       offsetof(struct hca_txd, nsge) - offsetof(struct hca_txd, opcode) == 2 &&
		       offsetof(struct hca_txd, len) - offsetof(struct hca_txd, opcode) == 4 &&
		       offsetof(struct hca_txd, seq) - offsetof(struct hca_txd, opcode) == 8,
	       "the head is one word");

/* Incoming packet after validation of lengths, ICRC, QP, source, P_Key and class. */
struct hca_rxd {
	uint32_t qpi;
	uint32_t psn;
	uint8_t opcode;
	uint8_t flags; /* HCA_RXD_* */
	uint8_t pad;
	uint8_t ecn;	      /* IP ECN bits as received */
	uint16_t ext_off;     /* offset of the first header after BTH in the mbuf's data */
	uint16_t payload_off; /* offset of the payload */
	uint32_t payload_len; /* without pad and ICRC */
	uint32_t generation;
	const void *info; /* const struct hca_roce_opcode_info * */
	uint16_t l3_off;  /* for GRH of UD receives */
	uint16_t vlan;
};

enum hca_rxd_flag {
	HCA_RXD_ACKREQ = 1u << 0,
	HCA_RXD_SOLICITED = 1u << 1,
	HCA_RXD_MIGREQ = 1u << 2,
	HCA_RXD_ALT_PATH = 1u << 3, /* came from the alternate path's address */
	HCA_RXD_GSI = 1u << 4,	    /* was sent to QPN 1 */
	HCA_RXD_ASKED = 1u << 5,    /* checked with hca_qp_addr instead of hca_qp_cfg */
	HCA_RXD_GROUP = 1u << 6,    /* was sent to a multicast group of which its QP is a member */
	HCA_RXD_ALIKE = 1u << 7,    /* decap: as the frame before it, up to the BTH */
};

_Static_assert(sizeof(struct hca_txd) <= 80, "fits HCA_MBUF_PRIV");
_Static_assert(sizeof(struct hca_rxd) <= 64, "fits HCA_MBUF_PRIV");

static inline struct hca_txd *
hca_txd(struct rte_mbuf *m)
{
	return rte_mbuf_to_priv(m);
}

static inline struct hca_rxd *
hca_rxd(struct rte_mbuf *m)
{
	return rte_mbuf_to_priv(m);
}

#endif
