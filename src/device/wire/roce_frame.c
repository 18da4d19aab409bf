/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "wire/roce_frame.h"

/* Only datagrams carry the QPN of their sender. */
static uint32_t
source_qpn(const uint8_t *bth, const struct hca_roce_opcode_info *op)
{
	const struct hca_deth *deth = (const void *)(bth + op->at.deth);

	return op->at.deth != 0 ? hca_be32_to_cpu(deth->sqpn) & 0xffffff : 0;
}

int
hca_roce_parse(const uint8_t *frame, uint32_t n, struct hca_wire_view *v)
{
	const struct hca_bth *bth = (const void *)(frame + v->transport);
	const struct hca_roce_opcode_info *op;
	uint32_t rest;

	if (n < HCA_ROCE_BTH_LEN + HCA_ICRC_LEN)
		return -HCA_WIRE_DROP_HEADER_SHORT;
	v->opcode = bth->opcode;
	op = &hca_roce_opcodes[v->opcode];
	v->dst = HCA_BTH_DQPN(hca_be32_to_cpu(bth->dqpn));
	v->src = 0;
	v->psn = HCA_BTH_PSN(hca_be32_to_cpu(bth->psn));
	v->icrc = v->transport + n - HCA_ICRC_LEN;
	if (HCA_BTH_TVER(bth->flags) != 0)
		return -HCA_WIRE_DROP_TVER;
	if (!op->valid)
		return -HCA_WIRE_DROP_OPCODE;
	if (n < op->header_len + HCA_ICRC_LEN)
		return -HCA_WIRE_DROP_HEADER_SHORT;
	rest = n - op->header_len - HCA_ICRC_LEN;
	if (rest < HCA_BTH_PAD(bth->flags) || (rest & 3) != 0)
		return -HCA_WIRE_DROP_PAD;
	if (!op->has_payload && rest != 0)
		return -HCA_WIRE_DROP_PAYLOAD;
	v->payload = v->transport + op->header_len;
	v->src = source_qpn((const uint8_t *)bth, op);
	return 0;
}

bool
hca_roce_is_data(const struct hca_wire_view *v)
{
	uint8_t kind = hca_roce_opcodes[v->opcode].kind;

	return kind != HCA_PKT_ACK && kind != HCA_PKT_CNP;
}

int
hca_roce_template_fill(const struct hca_roce_path *path, struct hca_udp_template *t)
{
	struct hca_bth *bth;
	int rc;

	if (path->qpn > 0xffffff)
		return -EINVAL;
	rc = hca_udp_template_fill(&path->udp, HCA_ROCE_UDP_PORT, t);
	if (rc != 0)
		return rc;
	bth = (void *)(t->bytes + t->transport);
	bth->flags = HCA_BTH_MAKE_FLAGS(0, path->migreq, 0);
	bth->pkey = hca_cpu_to_be16(path->pkey);
	bth->dqpn = hca_cpu_to_be32(path->qpn);
	return 0;
}
