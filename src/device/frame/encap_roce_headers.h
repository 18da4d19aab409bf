/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FRAME_ENCAP_ROCE_HEADERS_H
#define FRAME_ENCAP_ROCE_HEADERS_H

/* Internal to encap_roce.c: the headers of a RoCE frame from its packet descriptor. */

#include <string.h>

#include "engine/impl.h"
#include "engine/pkt.h"
#include "wire/roce_frame.h"

static inline uint8_t *
put_reth(uint8_t *p, const struct hca_txd *d)
{
	struct hca_reth *r = (struct hca_reth *)p;

	hca_put_be64(&r->va, d->reth.raddr);
	hca_put_be32(&r->rkey, d->reth.rkey);
	hca_put_be32(&r->dma_len, d->reth.dma_len);
	return p + sizeof(*r);
}

static inline uint8_t *
put_aeth(uint8_t *p, const struct hca_txd *d)
{
	hca_put_be32(p, HCA_AETH_MAKE(d->syndrome, d->resp.msn));
	return p + sizeof(struct hca_aeth);
}

static inline uint8_t *
put_atomic(struct hca_pipe *h, uint8_t *p, const struct hca_txd *d)
{
	const struct hca_record_full *r = (void *)hca_record(h, d->rec);
	struct hca_atomiceth *a = (struct hca_atomiceth *)p;

	hca_put_be64(&a->va, d->reth.raddr);
	hca_put_be32(&a->rkey, d->reth.rkey);
	hca_put_be64(&a->swap_add, r->swap_add);
	hca_put_be64(&a->cmp, r->compare);
	return p + sizeof(*a);
}

/* UD: source QP, and the receiver's Q_Key. */
static inline uint8_t *
put_deth(struct hca_pipe *h, uint8_t *p, const struct hca_txd *d)
{
	const struct hca_record_full *r = (void *)hca_record(h, d->rec);

	hca_put_be32(p, r->av.qkey);
	hca_put_be32(p + 4, h->qp[d->qpi].cfg.source_qpn);
	return p + sizeof(struct hca_deth);
}

/* Write extended headers other than a single RETH or AETH, in wire order. */
static inline uint8_t *
put_ext(struct hca_pipe *h, uint8_t *p, const struct hca_txd *d, uint16_t ext)
{
	if (ext & HCA_EXT_DETH)
		p = put_deth(h, p, d);
	if (ext & HCA_EXT_XRCETH) {
		hca_put_be32(p, hca_record(h, d->rec)->srqn);
		p += sizeof(struct hca_xrceth);
	}
	if (ext & HCA_EXT_FETH) {
		memcpy(p, &d->imm, sizeof(d->imm));
		p += sizeof(struct hca_feth);
	}
	if (ext & HCA_EXT_RETH)
		p = put_reth(p, d);
	if (ext & HCA_EXT_ATOMICETH)
		p = put_atomic(h, p, d);
	if (ext & HCA_EXT_AETH)
		p = put_aeth(p, d);
	if (ext & HCA_EXT_ATOMICACKETH) {
		hca_put_be64(p, d->resp.result);
		p += sizeof(struct hca_atomicacketh);
	}
	if (ext & HCA_EXT_IMMDT) {
		memcpy(p, &d->imm, sizeof(d->imm));
		p += sizeof(struct hca_immdt);
	}
	if (ext & HCA_EXT_IETH) {
		hca_put_be32(p, d->reth.rkey);
		p += sizeof(struct hca_ieth);
	}
	return p;
}

/* Write all headers of the packet to frame; returns the address of the payload. */
static __rte_always_inline uint8_t *
put_headers(struct hca_pipe *h, const struct hca_udp_template *t, const struct hca_txd *d,
	    uint8_t *frame)
{
	const struct hca_roce_opcode_info *op = &hca_roce_opcodes[d->opcode];
	uint32_t udp_len = HCA_UDP_LEN + op->header_len + ((d->len + 3u) & ~3u) + HCA_ICRC_LEN;
	uint8_t *bth = hca_udp_template_put(t, udp_len, frame), *p = bth + HCA_ROCE_BTH_LEN;
	uint32_t flags = d->flags;

	bth[0] = d->opcode;
	bth[1] = (uint8_t)(t->bytes[t->transport + 1] | !!(flags & HCA_TXD_SOLICITED) << 7 |
			   (-(uint32_t)d->len & 3) << 4);
	hca_put_be32(bth + 8, (flags & HCA_TXD_ACKREQ) << 31 | d->psn);
	if (likely((op->ext & ~HCA_EXT_PAYLOAD) == HCA_EXT_RETH))
		return put_reth(p, d);
	if (likely((op->ext & ~HCA_EXT_PAYLOAD) == HCA_EXT_AETH))
		return put_aeth(p, d);
	return put_ext(h, p, d, op->ext);
}

_Static_assert(HCA_TXD_ACKREQ == 1, "shifted into the AckReq bit");

/* ---- frames like the one before ---- */

#define LIKE_BYTES 96u /* longest headers that are copied, in whole words of the copy */

_Static_assert(HCA_ETH_LEN + HCA_VLAN_LEN + HCA_IPV6_LEN + HCA_UDP_LEN + HCA_ROCE_BTH_LEN +
			       sizeof(struct hca_reth) <=
		       LIKE_BYTES,
	       "the longest headers");

/*
 * The last packet of a run of one path: a request with at most a RETH, or a response. The next one
 * with the same opcode, flags and length differs from it in PSN and AckReq, and in RETH, or in AETH
 * and the result of an ATOMIC; the rest is copied. image: its headers. A copy from the frame would
 * wait for the stores that have just made it.
 */
struct like {
	const uint8_t *frame; /* NULL: none */
	bool has_image;
	uint8_t opcode, flags, headers; /* flags: without ACKREQ; headers: their length */
	uint16_t len;
	uint8_t image[LIKE_BYTES] __rte_aligned(16);
};

static inline bool
is_like(const struct like *l, const struct hca_txd *d)
{
	return l->frame != NULL && d->opcode == l->opcode && d->len == l->len &&
	       (d->flags & ~HCA_TXD_ACKREQ) == l->flags;
}

static inline void
note_like(struct like *l, const struct hca_udp_template *t, const struct hca_txd *d,
	  const uint8_t *frame)
{
	const struct hca_roce_opcode_info *op = &hca_roce_opcodes[d->opcode];
	uint16_t ext = op->is_response ? HCA_EXT_AETH | HCA_EXT_ATOMICACKETH : HCA_EXT_RETH;

	l->frame =
		(op->ext & ~(HCA_EXT_PAYLOAD | ext)) == 0 && op->kind != HCA_PKT_CNP ? frame : NULL;
	l->has_image = false;
	l->opcode = d->opcode;
	l->flags = d->flags & ~HCA_TXD_ACKREQ;
	l->headers = (uint8_t)(t->transport + op->header_len);
	l->len = d->len;
}

/* Headers of a packet like the last one, but for the extended ones; returns where those begin. */
static __rte_always_inline uint8_t *
put_image(struct like *l, const struct hca_udp_template *t, const struct hca_txd *d, uint8_t *frame)
{
	uint8_t *bth = frame + t->transport;

	if (unlikely(!l->has_image)) {
		memcpy(l->image, l->frame, LIKE_BYTES);
		l->has_image = true;
	}
	memcpy(frame, l->image, LIKE_BYTES);
	hca_put_be32(bth + 8, (uint32_t)(d->flags & HCA_TXD_ACKREQ) << 31 | d->psn);
	return bth + HCA_ROCE_BTH_LEN;
}

/* Headers of a request like the last one; returns where the payload begins. */
static __rte_always_inline uint8_t *
put_like(struct like *l, const struct hca_udp_template *t, const struct hca_txd *d, uint8_t *frame)
{
	/* without a RETH it lies where the payload follows, or the ICRC */
	put_reth(put_image(l, t, d, frame), d);
	return frame + l->headers;
}

/* The same of a response; AETH and result lie where the payload follows if it has none. */
static __rte_always_inline uint8_t *
put_like_response(struct like *l, const struct hca_udp_template *t, const struct hca_txd *d,
		  uint8_t *frame)
{
	uint8_t *aeth = put_image(l, t, d, frame);

	hca_put_be64(put_aeth(aeth, d), d->resp.result);
	return frame + l->headers;
}

#endif
