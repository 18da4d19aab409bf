/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The ways of decap to a descriptor, which must judge every frame alike; whatever they accept lies
 * inside the frame. The input is the frame.
 */

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

/* For its static functions. */
#include "frame/decap_roce.c"
#include "ub/frame/frame.h"
#include "ub/tp/pkt.h"

static void
inside(const struct hca_wire_view *v, uint32_t len)
{
	fuzz_check(v->icrc + HCA_ICRC_LEN <= len, "ICRC at %u of %u", v->icrc, len);
	fuzz_check(v->payload <= v->icrc, "headers end behind the ICRC");
	fuzz_check(v->wire != HCA_WIRE_ROCE ||
			   v->payload == v->transport + hca_roce_opcodes[v->opcode].header_len,
		   "headers and payload apart");
	fuzz_check(v->psn <= HCA_PSN_MASK && v->dst <= 0xffffff && v->src <= 0xffffff,
		   "PSN or QPN");
}

static void
descriptor_inside(const struct hca_rxd *r, const struct hca_icrc_span *span, const uint8_t *frame)
{
	uint32_t icrc = (uint32_t)((const uint8_t *)span->data + span->len - frame);

	fuzz_check(span->data == frame + r->l3_off, "span and L3 apart");
	fuzz_check(r->payload_off >= r->ext_off && r->payload_off <= icrc, "payload outside");
	fuzz_check(r->payload_off + r->payload_len + r->pad == icrc ||
			   ((const struct hca_roce_opcode_info *)r->info)->name == NULL,
		   "payload and ICRC apart");
}

static void
same(const struct hca_rxd *a, const struct hca_rxd *b)
{
	fuzz_check(a->qpi == b->qpi && a->psn == b->psn && a->opcode == b->opcode &&
			   a->flags == b->flags && a->pad == b->pad && a->ecn == b->ecn &&
			   a->ext_off == b->ext_off && a->payload_off == b->payload_off &&
			   a->payload_len == b->payload_len && a->info == b->info &&
			   a->l3_off == b->l3_off && a->vlan == b->vlan,
		   "decap's ways differ");
}

/* Both ways describe the frame with another QPN, source port and PSN equally. */
static void
same_of_another_qp(struct alike *last, const uint8_t *frame, uint32_t len, const struct hca_rxd *as)
{
	static uint8_t other[HCA_MBUF_DATA];
	struct hca_rxd general, alike;
	struct hca_icrc_span span;

	memcpy(other, frame, len);
	other[V4_UDP] ^= 0x15;
	other[V4_BTH + 5] ^= 0x80;
	other[V4_BTH + 7] ^= 0x2a;
	other[V4_BTH + 8] ^= 0x80; /* AckReq */
	other[V4_BTH + 11] ^= 1;
	memset(&general, 0, sizeof(general));
	fuzz_check(hca_decap_describe(other, len, &general, &span) == 0,
		   "refused with another QPN");
	fuzz_check(likeness(last, other, len) == ALIKE_BUT_QP,
		   "a frame of another QP is not alike");
	describe_alike(other, as, change_qp(last, other), &alike, 0);
	same(&general, &alike);
	fuzz_check(likeness(last, other, len) == ALIKE, "its frame is not like itself");
}

static void
same_descriptions(const uint8_t *frame, uint32_t len, int rc, const struct hca_rxd *general,
		  const struct hca_icrc_span *span)
{
	struct hca_rxd fast, alike;
	struct hca_icrc_span of_fast;
	struct alike last;

	memset(&fast, 0, sizeof(fast));
	if (!describe_fast(frame, len, &fast, &of_fast))
		return;
	fuzz_check(rc == 0, "decap's fast way takes what the other refuses: %d", rc);
	same(general, &fast);
	fuzz_check(memcmp(span, &of_fast, sizeof(*span)) == 0, "decap's two spans differ");
	note_alike(&last, frame, len);
	fuzz_check(likeness(&last, frame, len) == ALIKE, "a frame is not like itself");
	describe_alike(frame, &fast, fast.qpi, &alike, HCA_RXD_ALIKE);
	fuzz_check(alike.flags & HCA_RXD_ALIKE, "an equal frame is not marked");
	alike.flags &= (uint8_t)~HCA_RXD_ALIKE;
	same(general, &alike);
	same_of_another_qp(&last, frame, len, &fast);
}

/* A frame as the port would give it. */
struct received {
	struct rte_mbuf m;
	uint8_t priv[HCA_MBUF_PRIV];
};

/* For UB: the general way describes a frame of the short way equally. */
static void
same_descriptions_of_ub(const uint8_t *frame, uint32_t len, const struct hca_wire_view *v,
			int parsed)
{
	static struct hca_decap d;
	struct received r = {.m = {.buf_addr = (void *)(uintptr_t)frame,
				   .data_len = (uint16_t)len,
				   .nb_segs = 1}};
	const struct hca_ub_rxd *fast = hca_ub_rxd(&r.m);
	struct rte_mbuf *m = &r.m;
	struct hca_ub_rxd general;
	struct hca_icrc_span span;

	d.n = 0;
	if (hca_decap_ub_take(&d, &m, 1) == 0)
		return;
	fuzz_check(v->wire == HCA_WIRE_UB && parsed == 0, "the short way takes what is refused");
	fuzz_check(hca_decap_ub_describe(frame, v, &general, &span) == HCA_CTR_N, "refused");
	/* up to its last member: padding may be anything */
	fuzz_check(memcmp(&general, fast, offsetof(struct hca_ub_rxd, flags) + 1) == 0,
		   "descriptions of UB differ");
	fuzz_check(memcmp(&span, &d.span[0], sizeof(span)) == 0, "spans of UB differ");
	fuzz_check(fast->tph + fast->end + HCA_ICRC_LEN <= len, "the ICRC is outside");
	fuzz_check(fast->ta <= fast->end, "the transaction header is outside");
}

/* As a device of RoCE alone judges: it drops all frames of UB, well formed or not. */
static int
judged_by_decap(const struct hca_wire_view *v, int parsed)
{
	return v->wire == HCA_WIRE_UB ? -HCA_WIRE_DROP_NOT_ROCE : parsed;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t icrc, len = (uint32_t)size;
	struct hca_icrc_span span;
	struct hca_wire_view v;
	struct hca_rxd r;
	int parsed, rc;

	if (size > HCA_MBUF_DATA)
		return 0;
	memset(&v, 0, sizeof(v));
	memset(&r, 0, sizeof(r));
	parsed = hca_wire_parse(data, len, &v);
	rc = hca_decap_describe(data, len, &r, &span);
	fuzz_check(rc <= 0 && rc > -HCA_WIRE_DROP_COUNT, "unknown verdict %d", rc);
	fuzz_check(rc == judged_by_decap(&v, parsed) ||
			   (rc == 0 && parsed == -HCA_WIRE_DROP_OPCODE),
		   "decap says %d of what is %d", rc, parsed);
	same_descriptions(data, len, rc, &r, &span);
	same_descriptions_of_ub(data, len, &v, parsed);
	if (parsed == 0)
		inside(&v, len);
	if (rc != 0)
		return 0;
	descriptor_inside(&r, &span, data);
	hca_icrc_select()->crc_burst(&span, &icrc, 1);
	return 0;
}
