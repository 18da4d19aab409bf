/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_ENCAP_HEADER_H
#define ENGINE_ENCAP_HEADER_H

/* Writes the RoCEv2 headers of one packet descriptor. Only encap includes this. */

#include <string.h>

#include "engine/impl.h"
#include "engine/pkt.h"
#include "wire/roce_frame.h"

static inline bool
hca_txd_is_read_resp(const struct hca_txd *d)
{
	uint8_t op = HCA_BTH_OPERATION(d->opcode);

	return op >= HCA_BTH_RC_READ_RESP_FIRST && op <= HCA_BTH_RC_READ_RESP_ONLY;
}

/*
 * Rights required of the payload's key: any live MR may be sent from, READ needs the remote right.
 */
static inline uint32_t
hca_txd_access(const struct hca_txd *d)
{
	return hca_txd_is_read_resp(d) ? HCA_ACCESS_REMOTE_READ : HCA_MPT_FLAG_REGION;
}

/* PD of the payload's key. */
static inline uint32_t
hca_txd_pd(const struct hca_qp *qp, const struct hca_txd *d)
{
	return hca_txd_is_read_resp(d) ? d->imm : qp->cfg.pd;
}

static inline uint8_t *
hca_encap_reth(uint8_t *p, const struct hca_txd *d)
{
	struct hca_reth *r = (struct hca_reth *)p;

	hca_put_be64(&r->va, d->reth.raddr);
	hca_put_be32(&r->rkey, d->reth.rkey);
	hca_put_be32(&r->dma_len, d->reth.dma_len);
	return p + sizeof(*r);
}

static inline uint8_t *
hca_encap_aeth(uint8_t *p, const struct hca_txd *d)
{
	hca_put_be32(p, HCA_AETH_MAKE(d->syndrome, d->resp.msn));
	return p + sizeof(struct hca_aeth);
}

static inline uint8_t *
hca_encap_atomic(struct hca *h, uint8_t *p, const struct hca_txd *d)
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
hca_encap_deth(struct hca *h, uint8_t *p, const struct hca_txd *d)
{
	const struct hca_record_full *r = (void *)hca_record(h, d->rec);

	hca_put_be32(p, r->av.qkey);
	hca_put_be32(p + 4, h->qp[d->qpi].cfg.local_qpn);
	return p + sizeof(struct hca_deth);
}

/* Write extended headers other than a single RETH, in wire order. */
static inline uint8_t *
hca_encap_ext(struct hca *h, uint8_t *p, const struct hca_txd *d, uint16_t ext)
{
	if (ext & HCA_EXT_DETH)
		p = hca_encap_deth(h, p, d);
	if (ext & HCA_EXT_XRCETH) {
		hca_put_be32(p, hca_record(h, d->rec)->srqn);
		p += sizeof(struct hca_xrceth);
	}
	if (ext & HCA_EXT_RETH)
		p = hca_encap_reth(p, d);
	if (ext & HCA_EXT_ATOMICETH)
		p = hca_encap_atomic(h, p, d);
	if (ext & HCA_EXT_AETH)
		p = hca_encap_aeth(p, d);
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

/*
 * Write all headers of the packet to frame; returns the address of the payload. Lengths, IPv4
 * checksum and BTH differ from the template.
 */
static inline uint8_t *
hca_encap_headers(struct hca *h, const struct hca_roce_template *t, const struct hca_txd *d,
		  uint8_t *frame)
{
	const struct hca_roce_opcode_info *op = &hca_roce_opcodes[d->opcode];
	uint8_t *l3 = frame + t->l3, *bth = frame + t->bth, *p = bth + HCA_ROCE_BTH_LEN;
	uint32_t udp_len = HCA_UDP_LEN + op->header_len + ((d->len + 3u) & ~3u) + HCA_ICRC_LEN;
	uint32_t flags = d->flags;
	uint64_t first;

	/*
	 * the CEU may be storing the neighbour's new MAC address: read the old one or the new one
	 */
	first = __atomic_load_n((const uint64_t *)(const void *)t->bytes, __ATOMIC_RELAXED);
	memcpy(frame, &first, sizeof(first));
	memcpy(frame + sizeof(first), t->bytes + sizeof(first), sizeof(t->bytes) - sizeof(first));
	if (likely(t->ip_version == 4)) {
		uint32_t total = udp_len + HCA_IPV4_LEN;

		hca_put_be16(l3 + 2, (uint16_t)total);
		hca_put_be16(l3 + 10, (uint16_t)~hca_ip_fold(t->ip_sum + total));
	} else {
		hca_put_be16(l3 + 4, (uint16_t)udp_len);
	}
	hca_put_be16(bth - 4, (uint16_t)udp_len);
	bth[0] = d->opcode;
	bth[1] = (uint8_t)(t->bytes[t->bth + 1] | !!(flags & HCA_TXD_SOLICITED) << 7 |
			   (-(uint32_t)d->len & 3) << 4);
	hca_put_be32(bth + 8, (flags & HCA_TXD_ACKREQ) << 31 | d->psn);
	if (likely((op->ext & ~HCA_EXT_PAYLOAD) == HCA_EXT_RETH))
		return hca_encap_reth(p, d);
	return hca_encap_ext(h, p, d, op->ext);
}

_Static_assert(HCA_TXD_ACKREQ == 1, "shifted into the AckReq bit");

#endif
