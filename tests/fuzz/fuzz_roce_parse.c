/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The frame parser and the two ways of decap, which must judge every frame alike; whatever
 * they accept lies inside the frame. The input is the frame.
 */

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

/* For its static functions; nothing else of the device is linked. */
#include "engine/decap_roce.c"

static void
inside(const struct hca_roce_view *v, uint32_t len)
{
	fuzz_check(v->icrc + HCA_ICRC_LEN <= len, "ICRC at %u of %u", v->icrc, len);
	fuzz_check(v->payload + v->payload_len + v->pad == v->icrc, "payload and ICRC apart");
	fuzz_check(v->payload == v->bth + v->op->header_len, "headers and payload apart");
	fuzz_check(v->psn <= HCA_PSN_MASK && v->qpn <= 0xffffff, "PSN or QPN");
}

static void
same_descriptions(const uint8_t *frame, uint32_t len)
{
	struct hca_rxd slow, fast;
	struct hca_icrc_span span[2];
	int rc;

	memset(&slow, 0, sizeof(slow));
	memset(&fast, 0, sizeof(fast));
	rc = describe(frame, len, &slow, &span[0]);
	if (!describe_fast(frame, len, &fast, &span[1]))
		return;
	fuzz_check(rc == 0, "decap's fast way takes what the other refuses: %d", rc);
	fuzz_check(slow.qpi == fast.qpi && slow.psn == fast.psn && slow.opcode == fast.opcode &&
			   slow.flags == fast.flags && slow.pad == fast.pad &&
			   slow.ecn == fast.ecn && slow.ext_off == fast.ext_off &&
			   slow.payload_off == fast.payload_off &&
			   slow.payload_len == fast.payload_len && slow.info == fast.info &&
			   slow.l3_off == fast.l3_off,
		   "decap's two ways differ");
	fuzz_check(span[0].data == span[1].data && span[0].len == span[1].len &&
			   span[0].ones == span[1].ones,
		   "decap's two spans differ");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hca_roce_headers headers;
	struct hca_roce_view v;
	struct hca_icrc_span span;
	uint32_t icrc, len = (uint32_t)size;
	int rc;

	if (size > HCA_MBUF_DATA)
		return 0;
	memset(&v, 0, sizeof(v));
	rc = hca_roce_parse(data, len, &v);
	fuzz_check(rc <= 0 && rc > -HCA_ROCE_DROP_COUNT, "unknown verdict %d", rc);
	same_descriptions(data, len);
	if (rc != 0)
		return 0;
	inside(&v, len);
	hca_roce_get_headers(data + v.bth, v.op, &headers);
	hca_roce_icrc_span(data, &v, &span);
	hca_icrc_select()->crc_burst(&span, &icrc, 1);
	rc = hca_roce_check_icrc(hca_icrc_select(), data, &v);
	fuzz_check((rc == 0) == (icrc == hca_icrc_load(data + v.icrc)), "two ICRC verdicts");
	return 0;
}
