/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_ENCAP_HEADER_H
#define ENGINE_ENCAP_HEADER_H

/* The RoCEv2 headers of one packet descriptor. Only frame_encap includes this. */

#include <string.h>

#include "engine/impl.h"
#include "engine/pkt.h"
#include "wire/roce_frame.h"

static inline bool
hca_txd_is_read_resp(const struct hca_txd *d)
{
	return d->opcode >= HCA_BTH_RC_READ_RESP_FIRST && d->opcode <= HCA_BTH_RC_READ_RESP_ONLY;
}

/* Rights the payload's key must give: any live MR may be sent from, READ needs the remote right. */
static inline uint32_t
hca_txd_access(const struct hca_txd *d)
{
	return hca_txd_is_read_resp(d) ? HCA_ACCESS_REMOTE_READ : 0;
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

/* Extended headers as the opcode has them; returns where the payload begins. */
static inline uint8_t *
hca_encap_ext(struct hca *h, uint8_t *p, const struct hca_txd *d)
{
	uint16_t ext = hca_roce_opcodes[d->opcode].ext;

	if (ext & HCA_EXT_RETH)
		p = hca_encap_reth(p, d);
	if (unlikely(ext & HCA_EXT_ATOMICETH))
		p = hca_encap_atomic(h, p, d);
	if (ext & HCA_EXT_AETH)
		p = hca_encap_aeth(p, d);
	if (unlikely(ext & HCA_EXT_ATOMICACKETH)) {
		hca_put_be64(p, d->resp.result);
		p += sizeof(struct hca_atomicacketh);
	}
	if (ext & HCA_EXT_IMMDT) {
		memcpy(p, &d->imm, sizeof(d->imm));
		p += sizeof(struct hca_immdt);
	}
	return p;
}

/* All headers of the packet into frame; returns where the payload begins. */
static inline uint8_t *
hca_encap_headers(struct hca *h, const struct hca_roce_template *t, const struct hca_txd *d,
		  uint8_t *frame)
{
	const struct hca_roce_packet p = {
		.opcode = d->opcode,
		.se = !!(d->flags & HCA_TXD_SOLICITED),
		.ackreq = !!(d->flags & HCA_TXD_ACKREQ),
		.psn = d->psn,
		.payload_len = d->len,
	};

	memcpy(frame, t->bytes, sizeof(t->bytes));
	hca_roce_finish(frame, t, &p);
	return hca_encap_ext(h, frame + t->len, d);
}

#endif
