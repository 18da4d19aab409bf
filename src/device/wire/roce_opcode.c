/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/roce_opcode.h"

#define KIND(name) (1U << HCA_PKT_##name)
#define REQUESTS (KIND(SEND) | KIND(WRITE) | KIND(READ_REQ) | KIND(CMP_SWAP) | KIND(FETCH_ADD))
#define RESPONSES (KIND(READ_RESP) | KIND(ACK) | KIND(ATOMIC_ACK))

/* Header bits ascend in wire order, so headers with lower bits precede. */
#define AT(NAME, ext) \
	(((ext)&HCA_EXT_##NAME) ? HCA_ROCE_BTH_LEN + HCA_EXT_LEN((ext) & (HCA_EXT_##NAME - 1)) : 0)

const struct hca_roce_opcode_info hca_roce_opcodes[256] = {
#define ROW(row, opcode, what, where, headers) \
	[HCA_BTH_##row] = { \
		.name = #row, \
		.valid = HCA_BTH_TRANSPORT(opcode) != HCA_TRANSPORT_RD, \
		.transport = HCA_BTH_TRANSPORT(opcode), \
		.kind = HCA_PKT_##what, \
		.pos = HCA_PKT_##where, \
		.starts = HCA_PKT_##where == HCA_PKT_FIRST || HCA_PKT_##where == HCA_PKT_ONLY, \
		.ends = HCA_PKT_##where == HCA_PKT_LAST || HCA_PKT_##where == HCA_PKT_ONLY, \
		.ext = (headers), \
		.header_len = HCA_ROCE_BTH_LEN + HCA_EXT_LEN(headers), \
		.is_request = (KIND(what) & REQUESTS) != 0, \
		.is_response = (KIND(what) & RESPONSES) != 0, \
		.has_payload = ((headers)&HCA_EXT_PAYLOAD) != 0, \
		.at = \
			{ \
				.deth = AT(DETH, headers), \
				.xrceth = AT(XRCETH, headers), \
				.reth = AT(RETH, headers), \
				.atomiceth = AT(ATOMICETH, headers), \
				.aeth = AT(AETH, headers), \
				.atomicacketh = AT(ATOMICACKETH, headers), \
				.immdt = AT(IMMDT, headers), \
				.ieth = AT(IETH, headers), \
			}, \
	},
	HCA_BTH_LIST(ROW)
#undef ROW
};

const char *
hca_roce_opcode_name(uint8_t opcode)
{
	const char *name = hca_roce_opcodes[opcode].name;

	return name ? name : "UNKNOWN";
}
