/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/ub_opcode.h"

#define TP_LEN(headers) \
	(HCA_UB_RTPH_LEN + ((headers)&HCA_UB_TP_CETPH ? HCA_UB_CETPH_LDCP_LEN : 0) + \
	 ((headers)&HCA_UB_TP_CNP_CETPH ? HCA_UB_CETPH_CNP_LEN : 0) + \
	 ((headers)&HCA_UB_TP_SAETPH ? HCA_UB_SAETPH_LEN : 0))

_Static_assert((int)HCA_UB_CETPH_LDCP_LEN == (int)HCA_UB_CETPH_CAQM_LEN,
	       "both forms of feedback have one place");

const struct hca_ub_tp_info hca_ub_tp_ops[HCA_UB_TP_OPCODES] = {
#define X(NAME, opcode, follows, text) [HCA_UB_TP_##NAME] = {text, follows, TP_LEN(follows)},
	HCA_UB_TP_LIST(X)
#undef X
};

const struct hca_ub_ta_info hca_ub_ta_ops[256] = {
#define X(NAME, opcode, what, always, tp, text) \
	[HCA_UB_TA_##NAME] = {text, always, tp, HCA_UB_KIND_##what},
	HCA_UB_TA_LIST(X)
#undef X
};

/* Forms as hca_ub_layout_of() numbers them. */
#define FORM_UD 1
#define FORM_TV 2
#define FORM_TAID 4
#define FORM_OFST 8

#define IF(condition, header) ((condition) ? HCA_UB_EXT(header) : 0)
#define EXT_MASK (HCA_UB_EXT(BEETAH) * 2 - 1)
/* The set of headers of a row in one form. */
#define SET(is, by_tp, form) \
	(((is)&EXT_MASK) | IF(!((is)&HCA_UB_OP_RESPONSE) && ((form)&FORM_UD), UDETAH) | \
	 IF(((is)&HCA_UB_OP_TOKEN) && ((form)&FORM_TV), TVETAH) | \
	 ((by_tp)&IF((form)&FORM_TAID, TAIDETAH)) | ((by_tp)&IF((form)&FORM_OFST, OFSTETAH)))

/* Bytes of the headers of a set that precede the header with that bit. */
#define PART(set, bit, HEADER) \
	(((set) & ((bit)-1) & HCA_UB_EXT(HEADER)) ? (int)HCA_UB_##HEADER##_LEN : 0)
#define BEFORE(set, bit) \
	((int)HCA_UB_BTAH_LEN + PART(set, bit, UDETAH) + PART(set, bit, MGMTETAH) + \
	 PART(set, bit, MTETAH) + PART(set, bit, TAIDETAH) + PART(set, bit, OFSTETAH) + \
	 PART(set, bit, MAETAH) + PART(set, bit, NTFETAH) + PART(set, bit, IMMETAH) + \
	 PART(set, bit, TVETAH))
#define AT(set, HEADER) (((set)&HCA_UB_EXT(HEADER)) ? BEFORE(set, HCA_UB_EXT(HEADER)) : 0)

#define LAYOUT(set) \
	{ \
		.headers = (set), .udetah = AT(set, UDETAH), .mgmtetah = AT(set, MGMTETAH), \
		.mtetah = AT(set, MTETAH), .taidetah = AT(set, TAIDETAH), \
		.ofstetah = AT(set, OFSTETAH), .maetah = AT(set, MAETAH), \
		.ntfetah = AT(set, NTFETAH), .immetah = AT(set, IMMETAH), \
		.tvetah = AT(set, TVETAH), .beetah = BEFORE(set, HCA_UB_EXT(BEETAH)), \
	}

/* Each set has a name: LAYOUT() repeats its argument a hundred times, which costs compile time. */
#define NAMED(NAME, is, by_tp, form) \
	SET_##form##_ \
	##NAME = SET(is, by_tp, form)
enum {
#define X(NAME, opcode, kind, is, by_tp, text) \
	NAMED(NAME, is, by_tp, 0), NAMED(NAME, is, by_tp, 1), NAMED(NAME, is, by_tp, 2), \
		NAMED(NAME, is, by_tp, 3), NAMED(NAME, is, by_tp, 4), NAMED(NAME, is, by_tp, 5), \
		NAMED(NAME, is, by_tp, 6), NAMED(NAME, is, by_tp, 7), NAMED(NAME, is, by_tp, 8), \
		NAMED(NAME, is, by_tp, 9), NAMED(NAME, is, by_tp, 10), NAMED(NAME, is, by_tp, 11), \
		NAMED(NAME, is, by_tp, 12), NAMED(NAME, is, by_tp, 13), \
		NAMED(NAME, is, by_tp, 14), NAMED(NAME, is, by_tp, 15),
	HCA_UB_TA_LIST(X)
#undef X
};

#define FORM(NAME, form) LAYOUT(SET_##form##_##NAME)

_Static_assert((int)HCA_UB_BTAH_LEN == (int)HCA_UB_ATAH_LEN, "both have one place");

const struct hca_ub_layout hca_ub_layouts[HCA_UB_LAYOUT_OPCODES][HCA_UB_LAYOUT_FORMS] = {
#define X(NAME, opcode, kind, is, by_tp, text) \
	[HCA_UB_TA_##NAME] = {FORM(NAME, 0),  FORM(NAME, 1),  FORM(NAME, 2),  FORM(NAME, 3), \
			      FORM(NAME, 4),  FORM(NAME, 5),  FORM(NAME, 6),  FORM(NAME, 7), \
			      FORM(NAME, 8),  FORM(NAME, 9),  FORM(NAME, 10), FORM(NAME, 11), \
			      FORM(NAME, 12), FORM(NAME, 13), FORM(NAME, 14), FORM(NAME, 15)},
	HCA_UB_TA_LIST(X)
#undef X
};

const char *
hca_ub_tp_name(uint8_t opcode)
{
	const char *name = opcode < HCA_UB_TP_OPCODES ? hca_ub_tp_ops[opcode].name : NULL;

	return name ? name : "unknown";
}

const char *
hca_ub_ta_name(uint8_t opcode)
{
	const char *name = hca_ub_ta_ops[opcode].name;

	return name ? name : "unknown";
}
