/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The receive path of UB with a live TP, whose peer is the input, and with a Jetty, a JFS and a JFR
 * that have requests and receives. The first byte is the kind of the TP (ub_world.c); then a list
 * of steps, a byte that names the step (its low three bits) and its parameters:
 *
 *  0  u16 n, n bytes: a frame; step byte & 8: lengths, addresses, TPNs and ICRC are corrected
 *  1  request() below: a packet of a request
 *  2  response() below: of an answer to a request of the Jetty
 *  3  acknowledgement() below
 *  4  u8 kind, u8 length / 4: the Jetty posts a request; step byte & 8: the JFS
 *  5  u8 how, u8 length / 4: a receive; step byte & 8: of the JFR
 *  6  u8: time passes, its square in units of 10 us, and the bystander works
 *  7  the device runs once
 *
 * Successive frames arrive in one burst. Packets are right except where their parameters change
 * them, so that inputs get far; `patches` in the first byte's high bits change any bits before the
 * ICRC.
 *
 * Whatever the peer of one TP sends, the bystander's TP goes on at its pace, only memory changes
 * whose tokens were right, all sums of counters hold, and nothing is left.
 */

#include <string.h>

#include "ub_world.h"

#define FRAME_MAX 2048u
#define STEPS_MAX 256u
#define PAYLOAD_MAX 1400u /* more than the MTU */

/* Bits of the first byte of a packet. */
#define CTL_LAST 0x01u
#define CTL_ASK 0x02u
#define CTL_ODD_PSN 0x04u /* i8 follows */
#define CTL_ODD_MSN 0x08u /* i8 follows */
#define CTL_OTHER 0x10u	  /* request: the bystander's segment, wrong token; response: Poison */
#define CTL_UTP 0x20u
#define CTL_PATCHES(c) ((c) >> 6)

static const uint8_t *
bytes_of(uint8_t fill)
{
	static uint8_t payload[PAYLOAD_MAX];

	memset(payload, fill, sizeof(payload));
	return payload;
}

/* Numbers of the next packet of peer 0, and the input's changes to them. */
static void
number(struct ub_world *w, struct fuzz_input *in, uint8_t ctl, struct hca_ub_headers *h)
{
	struct ub_peer *p = &w->peer[0];
	int8_t psn = ctl & CTL_ODD_PSN ? (int8_t)fuzz_u8(in) : 0;
	int8_t msn = ctl & CTL_ODD_MSN ? (int8_t)fuzz_u8(in) : 0;

	h->rtph.opcode = ctl & CTL_UTP ? HCA_UB_TP_UTP : HCA_UB_TP_RTP;
	h->rtph.last = ctl & CTL_LAST;
	h->rtph.ack = (ctl & CTL_ASK) != 0;
	h->rtph.psn = hca_tp_psn(p->next, (uint32_t)psn);
	h->rtph.tpmsn = hca_tp_psn(p->next_msn, (uint32_t)msn);
	if (ctl & CTL_UTP)
		return;
	/* a hole is filled by a step back */
	if (psn >= 0)
		p->next = hca_tp_psn(h->rtph.psn, 1);
	if (msn >= 0)
		p->next_msn = hca_tp_psn(h->rtph.tpmsn, h->rtph.last);
}

static uint32_t
queue_of(const struct ub_world *w, uint8_t which)
{
	switch (which >> 4 & 3) {
	case 0:
		return HCA_TC_JFR | w->jfr->jfr_id.id;
	case 1:
		return UB_WORLD_KNOWN;
	case 2:
		return w->theirs->jetty_id.id;
	default:
		return w->jetty->jetty_id.id;
	}
}

/*
 * u8 ctl, [i8 PSN], [i8 TPMSN], u8 opcode, u8 order[1:0], region[3:2], queue[5:4], flags[7:6]; u16
 * offset in the region or in the message (KiB), u16 length of the segment, u16 payload; patches
 */
static void
request(struct ub_world *w, struct fuzz_input *in)
{
	uint8_t ctl = fuzz_u8(in);
	struct hca_ub_headers h = {0};
	uint8_t what, enables[HCA_UB_BE_MAX / 8];
	uint32_t region, region_len, offset, payload, kind;

	number(w, in, ctl, &h);
	h.btah.opcode = fuzz_u8(in) & 0x1f;
	what = fuzz_u8(in);
	region = (what & 8 ? 0 : 1) + (what & 4 ? 2 : 0); /* RO, RW, LOCAL, VERBS */
	region = ctl & CTL_OTHER ? UB_WORLD_THEIR : region;
	offset = fuzz_u16(in);
	h.maetah.length = fuzz_u16(in);
	payload = fuzz_u16(in) % PAYLOAD_MAX;
	kind = hca_ub_ta_ops[h.btah.opcode].kind;
	if (kind == HCA_UB_KIND_ATOMIC)
		payload = 2 * (h.maetah.length &= 0x7f);
	h.btah.ee = HCA_UB_EE_NORMAL;
	h.btah.tassn = w->peer[0].tassn;
	h.btah.rc_id = 0x10;
	h.btah.odr = what & 3;
	h.btah.retry = what >> 6 & 1;
	h.btah.poison = what >> 7;
	h.btah.mt_en = kind == HCA_UB_KIND_SEND || h.btah.opcode == HCA_UB_TA_WRITE_IMM;
	h.btah.tv_en = 1;
	h.btah.ud_flag = h.btah.opcode == HCA_UB_TA_LOAD || h.btah.opcode == HCA_UB_TA_STORE;
	h.udetah.user = HCA_UB_UD_MAKE_OPERATION(offset & 7);
	h.taidetah.taid = h.btah.tassn;
	h.maetah.address =
		(uintptr_t)ub_world_region(w, region, &region_len) + (offset & 0x1fff) - 16;
	h.maetah.token_id = ub_world_token_id(w, region);
	h.tvetah.token_value = UB_WORLD_TOKEN;
	h.mtetah.tc_id = queue_of(w, what);
	h.ofstetah.offset = offset & 3;
	h.immetah = (struct hca_ub_immetah){.immediate = 9};
	if (h.btah.opcode == HCA_UB_TA_WRITE_IMM) {
		h.immetah.token_value = UB_WORLD_TOKEN;
		h.immetah.length = h.maetah.length;
	}
	h.ntfetah = (struct hca_ub_ntfetah){
		.address =
			((uintptr_t)ub_world_region(w, UB_WORLD_RW, &region_len) + 0x800) & ~7ull,
		.token_id = ub_world_token_id(w, UB_WORLD_RW),
		.token_value = UB_WORLD_TOKEN,
		.data = 0x1122334455667788ull};
	memset(enables, what, sizeof(enables));
	h.enables = enables;
	if (kind == HCA_UB_KIND_WRITE_BE || h.btah.opcode == HCA_UB_TA_WRITEBACK_BE)
		payload = h.maetah.length %= HCA_UB_BE_MAX + 1;
	w->peer[0].tassn += h.rtph.last;
	ub_world_packet(w, 0, &h, bytes_of(what), payload, in, CTL_PATCHES(ctl));
}

/*
 * u8 ctl, [i8 PSN], [i8 TPMSN], u8 which: opcode[1:0], JFS[2], place of the request behind the
 * oldest[7:3]; u8 status; u8 offset (KiB); u16 payload; patches
 */
static void
response(struct ub_world *w, struct fuzz_input *in)
{
	static const uint8_t opcodes[] = {HCA_UB_TA_TAACK, HCA_UB_TA_READ_RESPONSE,
					  HCA_UB_TA_ATOMIC_RESPONSE, HCA_UB_TA_WRITE};
	uint8_t ctl = fuzz_u8(in), which, status;
	struct hca_ub_headers h = {0};
	const struct hca_qp *q;
	uint32_t payload;

	number(w, in, ctl, &h);
	which = fuzz_u8(in);
	status = fuzz_u8(in);
	q = ub_world_store(w, which & 4 ? &w->jfs->jfs_id : &w->jetty->jetty_id);
	h.atah.opcode = opcodes[which & 3];
	h.atah.poison = (ctl & CTL_OTHER) != 0;
	h.atah.tassn = (uint16_t)(hca_una_psn(q->sq_una) + (which >> 3));
	h.atah.rspst = status >> 5;
	h.atah.rspinfo = status & 31;
	h.atah.rc_id = ub_world_number(w, which & 4 ? &w->jfs->jfs_id : &w->jetty->jetty_id);
	h.taidetah.taid = h.atah.tassn;
	h.ofstetah.offset = fuzz_u8(in);
	payload = fuzz_u16(in) % PAYLOAD_MAX;
	ub_world_packet(w, 0, &h, bytes_of(which), payload, in, CTL_PATCHES(ctl));
}

/* u8 opcode[2:0], patches[7:6]; i8 PSN behind the oldest; u8 status; u8 size; i8 MaxRcv; 8 bytes */
static void
acknowledgement(struct ub_world *w, struct fuzz_input *in)
{
	static const uint8_t opcodes[] = {HCA_UB_TP_ACK,     HCA_UB_TP_SACK,
					  HCA_UB_TP_ACK,     HCA_UB_TP_SACK,
					  HCA_UB_TP_CNP,     HCA_UB_TP_ACK_CC,
					  HCA_UB_TP_SACK_CC, 4};
	uint8_t ctl = fuzz_u8(in), status, bitmap[HCA_UB_SACK_BYTES_MAX];
	struct hca_ub_headers h = {.rtph.opcode = opcodes[ctl & 7], .bitmap = bitmap};
	const struct hca_tp *tp = ub_world_tp(w, 0);
	const uint8_t *p;
	size_t n;

	h.rtph.psn = hca_tp_psn(tp->tx.una, (uint32_t)(int8_t)fuzz_u8(in));
	status = fuzz_u8(in);
	h.rtph.rspst = status >> 5;
	h.rtph.rspinfo = status & 31;
	h.saetph.size = fuzz_u8(in) & 7;
	h.saetph.max_rcv = hca_tp_psn(h.rtph.psn, (uint32_t)(int8_t)fuzz_u8(in));
	p = fuzz_bytes(in, 8, &n);
	for (unsigned int i = 0; i < sizeof(bitmap); i++)
		bitmap[i] = n != 0 ? p[i % n] : 0xff;
	ub_world_packet(w, 0, &h, NULL, 0, in, CTL_PATCHES(ctl));
}

static void
frame(struct ub_world *w, struct fuzz_input *in, bool fix)
{
	uint8_t buf[FRAME_MAX];
	size_t n;
	const uint8_t *bytes = fuzz_bytes(in, fuzz_u16(in) % FRAME_MAX, &n);

	memcpy(buf, bytes, n);
	if (fix)
		ub_world_fix(w, buf, (uint32_t)n);
	ub_world_frame(w, buf, (uint32_t)n);
}

static void
step(struct ub_world *w, struct fuzz_input *in)
{
	uint8_t what = fuzz_u8(in), kind;

	switch (what & 7) {
	case 0:
		frame(w, in, what & 8);
		break;
	case 1:
		request(w, in);
		break;
	case 2:
		response(w, in);
		break;
	case 3:
		acknowledgement(w, in);
		break;
	case 4:
		kind = fuzz_u8(in);
		ub_world_send(w, kind, fuzz_u8(in) * 16u, what & 8);
		break;
	case 5:
		kind = fuzz_u8(in);
		ub_world_recv(w, what & 8, kind % 5, fuzz_u8(in) * 8u);
		break;
	case 6:
		ub_world_time(w, fuzz_u8(in));
		break;
	default:
		ub_world_poll(w, 1);
	}
}

static void
run(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, data + size};
	struct ub_world *w = ub_world_begin(fuzz_u8(&in), false);

	for (unsigned int i = 0; i < STEPS_MAX && fuzz_left(&in) != 0; i++)
		step(w, &in);
	ub_world_end(w);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ub_world_run(run, data, size);
	return 0;
}
