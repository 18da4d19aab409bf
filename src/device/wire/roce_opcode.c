/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/roce_opcode.h"

/* Bytes of the extension headers of a set whose bit is below the given one: its offset. */
#define PART(NAME, bytes, ext, below) \
	(((ext) & HCA_ROCE_HAS_##NAME) && HCA_ROCE_EXT_BIT_##NAME < (below) ? (bytes) : 0)
#define EXT_LEN(ext, below) \
	(PART(DETH, 8, ext, below) + PART(XRCETH, 4, ext, below) + PART(RETH, 16, ext, below) + \
	 PART(ATOMICETH, 28, ext, below) + PART(AETH, 4, ext, below) + \
	 PART(ATOMICACKETH, 8, ext, below) + PART(IMM, 4, ext, below) + \
	 PART(IETH, 4, ext, below) + PART(CNP, 16, ext, below))
#define AT(NAME, ext) \
	(((ext) & HCA_ROCE_HAS_##NAME) ? \
		 HCA_ROCE_BTH_LEN + EXT_LEN(ext, HCA_ROCE_EXT_BIT_##NAME) : 0)
#define ALL	32

enum kind_property {
#define X(KIND, request, response, payload) \
	IS_REQUEST_##KIND = request, \
	IS_RESPONSE_##KIND = response, \
	HAS_PAYLOAD_##KIND = payload,
	HCA_ROCE_KIND_LIST(X)
#undef X
};

/* EXT_LEN repeats the lengths of HCA_ROCE_EXT_LIST; this holds the two together. */
#define X(NAME, field, bytes) \
	_Static_assert(EXT_LEN(HCA_ROCE_HAS_##NAME, ALL) == (bytes), #NAME);
HCA_ROCE_EXT_LIST(X)
#undef X

const struct hca_roce_opcode_info hca_roce_opcodes[256] = {
#define X(SERVICE, NAME, low, KIND, PLACE, extensions) \
	[HCA_ROCE_OP_##SERVICE##_##NAME] = { \
		.name = #SERVICE "_" #NAME, \
		.valid = true, \
		.service = HCA_ROCE_##SERVICE, \
		.kind = HCA_ROCE_KIND_##KIND, \
		.place = HCA_ROCE_##PLACE, \
		.ext = (extensions), \
		.header_len = HCA_ROCE_BTH_LEN + EXT_LEN((extensions), ALL), \
		.is_request = IS_REQUEST_##KIND, \
		.is_response = IS_RESPONSE_##KIND, \
		.has_payload = HAS_PAYLOAD_##KIND, \
		.at = { \
			.deth = AT(DETH, (extensions)), \
			.xrceth = AT(XRCETH, (extensions)), \
			.reth = AT(RETH, (extensions)), \
			.atomiceth = AT(ATOMICETH, (extensions)), \
			.aeth = AT(AETH, (extensions)), \
			.atomicacketh = AT(ATOMICACKETH, (extensions)), \
			.imm = AT(IMM, (extensions)), \
			.ieth = AT(IETH, (extensions)), \
			.cnp = AT(CNP, (extensions)), \
		}, \
	},
	HCA_ROCE_OPCODE_LIST(X)
#undef X
};

const char *
hca_roce_opcode_name(uint8_t opcode)
{
	const char *name = hca_roce_opcodes[opcode].name;

	return name ? name : "UNKNOWN";
}
