/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "roce_craft.h"

int
roce_parse(const uint8_t *frame, uint32_t len, struct roce_view *v)
{
	struct hca_wire_view w = {.wire = HCA_WIRE_NONE};
	int rc = hca_wire_parse(frame, len, &w);
	const struct hca_bth *bth = (const void *)(frame + w.transport);

	if (rc < 0 && rc > -HCA_WIRE_DROP_OPCODE)
		return rc;
	if (w.wire != HCA_WIRE_ROCE)
		return -HCA_WIRE_DROP_NOT_ROCE;
	*v = (struct roce_view){
		.op = &hca_roce_opcodes[w.opcode],
		.icrc = w.icrc,
		.qpn = w.dst,
		.psn = w.psn,
		.pkey = hca_be16_to_cpu(bth->pkey),
		.l3 = w.l3,
		.bth = w.transport,
		.ip_version = w.ip_version,
		.opcode = w.opcode,
		.pad = HCA_BTH_PAD(bth->flags),
		.ackreq = hca_be32_to_cpu(bth->psn) & HCA_BTH_ACKREQ,
		.se = bth->flags & HCA_BTH_SE,
		.migreq = bth->flags & HCA_BTH_MIGREQ,
	};
	if (rc == 0) {
		v->payload = w.payload;
		v->payload_len = w.icrc - w.payload - v->pad;
	}
	return rc;
}

static const struct {
	const char *name;
	const char *text;
} drops[HCA_WIRE_DROP_COUNT] = {[HCA_WIRE_DROP_NONE] = {"none", "taken"},
#define X(NAME, counter, meaning) [HCA_WIRE_DROP_##NAME] = {#NAME, meaning},
				HCA_WIRE_DROP_LIST(X)
#undef X
};

const char *
roce_drop_name(int reason)
{
	unsigned int i = reason < 0 ? -(unsigned int)reason : (unsigned int)reason;

	return i < HCA_WIRE_DROP_COUNT ? drops[i].name : "unknown";
}

const char *
roce_drop_text(int reason)
{
	unsigned int i = reason < 0 ? -(unsigned int)reason : (unsigned int)reason;

	return i < HCA_WIRE_DROP_COUNT ? drops[i].text : "unknown";
}

static uint32_t
icrc_of(const struct hca_icrc_ops *ops, const uint8_t *l3, uint8_t ip_version, uint32_t len)
{
	struct hca_icrc_span span = hca_icrc_span_of(HCA_WIRE_ROCE, ip_version, l3, len);
	uint32_t crc;

	ops->crc_burst(&span, &crc, 1);
	return crc;
}

bool
roce_icrc_ok(const struct hca_icrc_ops *ops, const uint8_t *frame, const struct roce_view *v)
{
	return icrc_of(ops, frame + v->l3, v->ip_version, v->icrc - v->l3) ==
	       hca_icrc_load(frame + v->icrc);
}

void
roce_seal(const struct hca_icrc_ops *ops, uint8_t *frame, const struct roce_view *v)
{
	hca_icrc_store(frame + v->icrc,
		       icrc_of(ops, frame + v->l3, v->ip_version, v->icrc - v->l3));
}

void
roce_get_headers(const uint8_t *bth, const struct hca_roce_opcode_info *info,
		 struct roce_headers *h)
{
	const struct hca_deth *deth = (const void *)(bth + info->at.deth);
	const struct hca_reth *reth = (const void *)(bth + info->at.reth);
	const struct hca_atomiceth *atomic = (const void *)(bth + info->at.atomiceth);
	uint32_t aeth;

	if (info->at.deth) {
		h->deth.qkey = hca_be32_to_cpu(deth->qkey);
		h->deth.src_qpn = hca_be32_to_cpu(deth->sqpn) & 0xffffff;
	}
	if (info->at.xrceth)
		h->xrceth = hca_get_be32(bth + info->at.xrceth) & 0xffffff;
	if (info->at.feth)
		h->feth = hca_get_be32(bth + info->at.feth);
	if (info->at.reth) {
		h->reth.va = hca_be64_to_cpu(reth->va);
		h->reth.rkey = hca_be32_to_cpu(reth->rkey);
		h->reth.len = hca_be32_to_cpu(reth->dma_len);
	}
	if (info->at.atomiceth) {
		h->atomic.va = hca_be64_to_cpu(atomic->va);
		h->atomic.rkey = hca_be32_to_cpu(atomic->rkey);
		h->atomic.swap_add = hca_be64_to_cpu(atomic->swap_add);
		h->atomic.compare = hca_be64_to_cpu(atomic->cmp);
	}
	if (info->at.aeth) {
		aeth = hca_get_be32(bth + info->at.aeth);
		h->aeth.syndrome = HCA_AETH_SYNDROME(aeth);
		h->aeth.msn = HCA_AETH_MSN(aeth);
	}
	if (info->at.atomicacketh)
		h->original = hca_get_be64(bth + info->at.atomicacketh);
	if (info->at.immdt)
		memcpy(h->imm, bth + info->at.immdt, sizeof(h->imm));
	if (info->at.ieth)
		h->ieth = hca_get_be32(bth + info->at.ieth);
}

void
roce_put_headers(uint8_t *bth, const struct hca_roce_opcode_info *info,
		 const struct roce_headers *h)
{
	struct hca_deth *deth = (void *)(bth + info->at.deth);
	struct hca_reth *reth = (void *)(bth + info->at.reth);
	struct hca_atomiceth *atomic = (void *)(bth + info->at.atomiceth);

	if (info->at.deth) {
		deth->qkey = hca_cpu_to_be32(h->deth.qkey);
		deth->sqpn = hca_cpu_to_be32(h->deth.src_qpn & 0xffffff);
	}
	if (info->at.xrceth)
		hca_put_be32(bth + info->at.xrceth, h->xrceth & 0xffffff);
	if (info->at.feth)
		hca_put_be32(bth + info->at.feth, h->feth);
	if (info->at.reth) {
		reth->va = hca_cpu_to_be64(h->reth.va);
		reth->rkey = hca_cpu_to_be32(h->reth.rkey);
		reth->dma_len = hca_cpu_to_be32(h->reth.len);
	}
	if (info->at.atomiceth) {
		atomic->va = hca_cpu_to_be64(h->atomic.va);
		atomic->rkey = hca_cpu_to_be32(h->atomic.rkey);
		atomic->swap_add = hca_cpu_to_be64(h->atomic.swap_add);
		atomic->cmp = hca_cpu_to_be64(h->atomic.compare);
	}
	if (info->at.aeth)
		hca_put_be32(bth + info->at.aeth, HCA_AETH_MAKE(h->aeth.syndrome, h->aeth.msn));
	if (info->at.atomicacketh)
		hca_put_be64(bth + info->at.atomicacketh, h->original);
	if (info->at.immdt)
		memcpy(bth + info->at.immdt, h->imm, sizeof(h->imm));
	if (info->at.ieth)
		hca_put_be32(bth + info->at.ieth, h->ieth);
}

uint32_t
roce_frame_len(const struct hca_udp_template *t, uint8_t opcode, uint32_t payload_len)
{
	return t->transport + hca_roce_opcodes[opcode].header_len + ((payload_len + 3) & ~3U);
}

int
roce_build(const struct hca_icrc_ops *ops, const struct hca_udp_template *t,
	   const struct roce_packet *p, const struct roce_headers *h, const void *payload,
	   uint8_t *out, uint32_t room)
{
	const struct hca_roce_opcode_info *info = &hca_roce_opcodes[p->opcode];
	uint8_t head[sizeof(t->bytes)];
	struct hca_bth *bth = (void *)(head + t->transport);
	uint32_t len, headers;

	if (!info->valid || (!info->has_payload && p->payload_len != 0) ||
	    p->payload_len > UINT16_MAX - ROCE_MAX_HEADERS)
		return -EINVAL;
	len = roce_frame_len(t, p->opcode, p->payload_len);
	headers = t->transport + info->header_len;
	if (room < len + HCA_ICRC_LEN)
		return -ENOSPC;
	hca_udp_template_put(t, len + HCA_ICRC_LEN + HCA_UDP_LEN - t->transport, head);
	bth->opcode = p->opcode;
	bth->flags |= HCA_BTH_MAKE_FLAGS(p->se, 0, -p->payload_len & 3);
	bth->psn = hca_cpu_to_be32(HCA_BTH_MAKE_PSN(p->ackreq, p->psn));
	memcpy(out, head, t->transport + HCA_ROCE_BTH_LEN);
	roce_put_headers(out + t->transport, info, h);
	ops->copy(out + headers, payload, p->payload_len);
	memset(out + headers + p->payload_len, 0, len - headers - p->payload_len);
	hca_icrc_store(out + len, icrc_of(ops, out + t->l3, t->ip_version, len - t->l3));
	return len + HCA_ICRC_LEN;
}
