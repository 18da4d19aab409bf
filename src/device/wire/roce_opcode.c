/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/roce_opcode.h"

#include "abi_ctx.h"
#include "abi_wqe.h"

enum direction {
	OTHER,
	REQUEST,
	RESPONSE,
};

/* Of each kind of packet. */
enum {
#define X(name, direction, kind, access) \
	IS_REQUEST_##name = (direction) == REQUEST, IS_RESPONSE_##name = (direction) == RESPONSE, \
	RUNS_##name = HCA_KIND_##kind, ACCESS_##name = (access),
	HCA_PKT_KIND_LIST(X)
#undef X
};

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
		.runs = RUNS_##what, \
		.pos = HCA_PKT_##where, \
		.starts = HCA_PKT_##where == HCA_PKT_FIRST || HCA_PKT_##where == HCA_PKT_ONLY, \
		.ends = HCA_PKT_##where == HCA_PKT_LAST || HCA_PKT_##where == HCA_PKT_ONLY, \
		.ext = (headers), \
		.header_len = HCA_ROCE_BTH_LEN + HCA_EXT_LEN(headers), \
		.is_request = IS_REQUEST_##what, \
		.is_response = IS_RESPONSE_##what, \
		.access = ACCESS_##what, \
		.has_payload = ((headers)&HCA_EXT_PAYLOAD) != 0, \
		.at = \
			{ \
				.deth = AT(DETH, headers), \
				.xrceth = AT(XRCETH, headers), \
				.feth = AT(FETH, headers), \
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
