/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>

#include "decode_ub.h"

bool
decode_is_ub(const uint8_t *frame, uint32_t len)
{
	struct hca_wire_view v;

	hca_wire_parse(frame, len, &v);
	return v.wire == HCA_WIRE_UB;
}

int
decode_ub_parse(const uint8_t *frame, uint32_t len, struct ub_view *v)
{
	int rc = ub_parse(frame, len, HCA_UB_FORM_DEFAULT, v);

	return rc == UB_REASON(-HCA_UB_DROP_TA_OFFERED) ? 0 : rc;
}

#define PRINT(header, field, word, byte, hi, lo) \
	printf(" ub." #header "." #field "=%" PRIu64, (uint64_t)hca_ub_##header##_##field(p));

#define PRINTER(header, HEADER) \
	static void print_##header(const uint8_t *p) \
	{ \
		HCA_UB_##HEADER##_FIELDS(PRINT) \
	}
PRINTER(rtph, RTPH)
PRINTER(cetph_ldcp, CETPH_LDCP)
PRINTER(cetph_cnp, CETPH_CNP)
PRINTER(saetph, SAETPH)
PRINTER(upih, UPIH)
PRINTER(eidh, EIDH)
PRINTER(btah, BTAH)
PRINTER(atah, ATAH)
#define X(HEADER, header) PRINTER(header, HEADER)
HCA_UB_EXT_LIST(X)
#undef X

static void
print_utph(const uint8_t *p)
{
	PRINT(rtph, last, 32, 0, 31, 31)
	PRINT(rtph, opcode, 32, 0, 30, 24)
	PRINT(rtph, version, 32, 0, 23, 22)
	PRINT(rtph, pad, 32, 0, 21, 20)
	PRINT(rtph, nlp, 32, 0, 19, 16)
}

static void
print_bytes(const char *name, const uint8_t *p, uint32_t n)
{
	if (n == 0)
		return;
	printf(" ub.%s=", name);
	for (uint32_t i = 0; i < n; i++)
		printf("%02x", p[i]);
}

static void
print_answer(const uint8_t *tph, const struct hca_ub_tp_view *tp)
{
	const uint8_t *saetph = tph + tp->saetph;

	if (tp->opcode == HCA_UB_TP_CNP)
		print_cetph_cnp(tph + tp->cetph);
	else if (tp->cetph != 0)
		print_cetph_ldcp(tph + tp->cetph);
	if (tp->saetph == 0)
		return;
	print_saetph(saetph);
	print_bytes("bitmap", saetph + HCA_UB_SAETPH_LEN,
		    HCA_UB_SACK_BYTES(hca_ub_saetph_size(saetph)));
}

static void
print_ta(const uint8_t *tah, const struct hca_ub_ta_view *ta)
{
	const uint8_t *payload = tah + ta->payload;

	if (ta->op->is & HCA_UB_OP_RESPONSE)
		print_atah(tah);
	else
		print_btah(tah);
#define X(HEADER, header) \
	if (ta->at->header != 0) \
		print_##header(tah + ta->at->header);
	HCA_UB_EXT_LIST(X)
#undef X
	print_bytes("enables", tah + ta->at->beetah, ta->enables_len);
	if (ta->op->kind != HCA_UB_KIND_ATOMIC) {
		print_bytes("payload", payload, ta->payload_len);
		return;
	}
	if (ta->at->udetah != 0 && (tah[0] == HCA_UB_TA_STORE || tah[0] == HCA_UB_TA_LOAD))
		printf(" ub.operation=%u",
		       HCA_UB_UD_OPERATION(hca_ub_udetah_user(tah + ta->at->udetah)));
	print_bytes("operand1", payload, ta->payload_len / 2);
	print_bytes("operand2", payload + ta->payload_len / 2, ta->payload_len / 2);
}

void
decode_ub_print(const uint8_t *frame, const struct ub_view *v)
{
	const uint8_t *tph = frame + v->w.transport;

	printf("UB %s", hca_ub_tp_name(v->tp.opcode));
	if (v->tp.ta != 0)
		printf(" %s", v->ta.op->name);
	printf(":");
	if (v->tp.opcode == HCA_UB_TP_UTP)
		print_utph(tph);
	else
		print_rtph(tph);
	print_answer(tph, &v->tp);
	if (v->tp.upih != 0) {
		print_upih(tph + v->tp.upih);
		print_eidh(tph + v->tp.upih + HCA_UB_UPIH_LEN);
	}
	if (v->tp.ta != 0)
		print_ta(tph + v->tp.ta, &v->ta);
	print_bytes("padding", frame + v->w.icrc - v->tp.pad, v->tp.pad);
	printf(" ub.icrc=%u", hca_icrc_load(frame + v->w.icrc));
}
