/* SPDX-License-Identifier: BSD-3-Clause */

#include "ub_world_impl.h"

#include <string.h>

#include "wire/icrc.h"

#define READ_MAX 4096u /* longer Reads are refused */
#define SPORT 0xd000u
/* Queues of the peer: of its Writes and Sends */
#define WRITER 0x12345u
#define SENDER 0x54321u

void
ub_peer_open(struct ub_world *w, unsigned int peer, bool honest)
{
	const struct hca_ub_path path = {
		.udp = {.dmac = {2, 0, 0, 0, 0, 1},
			.smac = {2, 0, 0, 0, 0, (uint8_t)(2 + peer)},
			.ip_version = 4,
			.hop_limit = 64,
			.sip = {[12] = 10, 77, 0, (uint8_t)(2 + peer)},
			.dip = {[12] = 10, 77, 0, 1},
			.sport = SPORT},
		.src_tpn = UB_PEER_TPN(peer),
		.dst_tpn = ub_world_tp(w, peer)->cfg.own_tpn,
	};
	struct ub_peer *p = &w->peer[peer];

	*p = (struct ub_peer){
		.tpi = peer + 1,
		.honest = honest,
		.form = ub_world_tp(w, peer)->cfg.flags & HCA_UB_FORM_DEFAULT,
		.epsn = UB_WORLD_PSN,
		.msn = HCA_UB_TPMSN_FIRST,
		.next = UB_PEER_PSN,
		.next_msn = HCA_UB_TPMSN_FIRST,
	};
	fuzz_check(hca_ub_template_fill(&path, &p->path) == 0, "template");
}

/* ---- frames ---- */

static void
patch(uint8_t *frame, uint32_t from, uint32_t to, struct fuzz_input *in, unsigned int n)
{
	while (n-- > 0) {
		uint32_t at = from + fuzz_u8(in);
		uint8_t bits = fuzz_u8(in);

		if (at < to)
			frame[at] ^= bits;
	}
}

void
ub_world_packet(struct ub_world *w, unsigned int peer, struct hca_ub_headers *headers,
		const uint8_t *payload, uint32_t len, struct fuzz_input *in, unsigned int patches)
{
	const struct ub_peer *p = &w->peer[peer];
	uint8_t frame[UB_ROOM];
	struct hca_wire_view v = {.l3 = HCA_ETH_LEN, .ip_version = 4};
	int n;

	headers->form = p->form;
	headers->rtph.src_tpn = UB_PEER_TPN(peer);
	headers->rtph.dst_tpn = ub_world_tp(w, peer)->cfg.own_tpn;
	n = ub_build(hca_icrc_select(), &p->path, headers, payload, len, frame, sizeof(frame));
	if (n < 0)
		return;
	v.icrc = (uint32_t)n - HCA_ICRC_LEN;
	if (patches != 0) {
		patch(frame, p->path.transport, v.icrc, in, patches);
		ub_seal(hca_icrc_select(), frame, &v);
	}
	if (p->honest)
		fuzz_check(fuzz_port_put(&w->port, frame, (uint32_t)n), "the device hears nothing");
	else
		ub_world_frame(w, frame, (uint32_t)n);
}

void
ub_world_fix(struct ub_world *w, uint8_t *frame, uint32_t len)
{
	struct hca_ipv4_hdr *ip = (void *)(frame + HCA_ETH_LEN);
	struct hca_udp_hdr *udp = (void *)(ip + 1);
	uint8_t *tph = (uint8_t *)(udp + 1);
	struct hca_wire_view v = {.l3 = HCA_ETH_LEN, .ip_version = 4, .icrc = len - HCA_ICRC_LEN};
	uint32_t total = len - HCA_ETH_LEN;

	if (len < HCA_ETH_LEN + sizeof(*ip) + sizeof(*udp) + HCA_UB_RTPH_LEN + HCA_ICRC_LEN)
		return;
	frame[12] = HCA_ETHERTYPE_IPV4 >> 8;
	frame[13] = HCA_ETHERTYPE_IPV4 & 0xff;
	ip->ver_ihl = HCA_IPV4_VER_IHL;
	ip->total_len = hca_cpu_to_be16(total);
	ip->frag = hca_cpu_to_be16(HCA_IPV4_DF);
	ip->proto = HCA_IPPROTO_UDP;
	ip->saddr = hca_cpu_to_be32(UB_PEER_IP(0));
	ip->daddr = hca_cpu_to_be32(UB_WORLD_IP);
	udp->dport = hca_cpu_to_be16(HCA_UB_UDP_PORT);
	udp->len = hca_cpu_to_be16(total - sizeof(*ip));
	if (tph[0] & 0x7f) {
		hca_ub_rtph_set_src_tpn(tph, UB_PEER_TPN(0));
		hca_ub_rtph_set_dst_tpn(tph, ub_world_tp(w, 0)->cfg.own_tpn);
	}
	ub_seal(hca_icrc_select(), frame, &v);
}

/* ---- an honest peer ---- */

static void
next_packet(struct ub_peer *p, struct hca_ub_headers *h, bool last)
{
	h->rtph.opcode = HCA_UB_TP_RTP;
	h->rtph.last = last;
	h->rtph.ack = last;
	h->rtph.psn = p->next;
	h->rtph.tpmsn = p->next_msn;
	p->next = hca_tp_psn(p->next, 1);
	p->next_msn = hca_tp_psn(p->next_msn, last);
}

static void
acknowledge(struct ub_world *w, unsigned int peer)
{
	struct hca_ub_headers h = {
		.rtph = {.opcode = HCA_UB_TP_ACK, .psn = hca_tp_psn_before(w->peer[peer].epsn)}};

	ub_world_packet(w, peer, &h, NULL, 0, NULL, 0);
}

static void
read_response(struct ub_world *w, unsigned int peer, const struct hca_ub_headers *request,
	      struct hca_ub_headers *h)
{
	static const uint8_t bytes[UB_WORLD_MTU] = {0xd1, 0xd2, 0xd3};
	uint32_t left = request->maetah.length;

	if (h->atah.rspst != 0)
		left = 0;
	h->ofstetah = request->ofstetah;
	do {
		uint32_t n = RTE_MIN(left, UB_WORLD_MTU);

		left -= n;
		next_packet(&w->peer[peer], h, left == 0);
		ub_world_packet(w, peer, h, bytes, n, NULL, 0);
		h->ofstetah.offset++;
	} while (left != 0);
}

static void
answer(struct ub_world *w, unsigned int peer, const struct hca_ub_headers *request)
{
	static const uint8_t old[HCA_UB_ATOMIC_MAX] = {0xa1, 0xa2};
	struct ub_peer *p = &w->peer[peer];
	struct hca_ub_headers h = {.atah = {.opcode = HCA_UB_TA_TAACK,
					    .tassn = request->btah.tassn,
					    .rspst = p->answer >> 5,
					    .rspinfo = p->answer & 31,
					    .rc_type = request->btah.rc_type,
					    .rc_id = request->btah.rc_id},
				   .taidetah = request->taidetah};
	uint32_t kind = hca_ub_ta_ops[request->btah.opcode].kind, n = 0;

	if (request->btah.rc_id == ub_world_number(w, &w->theirs->jetty_id))
		h.atah.rspst = h.atah.rspinfo = 0; /* the bystander's */
	if (kind == HCA_UB_KIND_READ) {
		if (request->maetah.length > READ_MAX) {
			h.atah.rspst = HCA_UB_RSP_ERROR;
			h.atah.rspinfo = HCA_UB_ERROR_UNSUPPORTED;
		}
		h.atah.opcode = HCA_UB_TA_READ_RESPONSE;
		read_response(w, peer, request, &h);
		return;
	}
	if (kind == HCA_UB_KIND_ATOMIC) {
		h.atah.opcode = HCA_UB_TA_ATOMIC_RESPONSE;
		if (h.atah.rspst == 0 && request->btah.opcode != HCA_UB_TA_STORE)
			n = request->maetah.length;
	}
	next_packet(p, &h, true);
	ub_world_packet(w, peer, &h, old, n, NULL, 0);
}

void
ub_peer_write(struct ub_world *w, unsigned int peer)
{
	struct ub_peer *p = &w->peer[peer];
	uint8_t payload[64];
	uint32_t len;
	struct hca_ub_headers h = {
		.btah = {.opcode = HCA_UB_TA_WRITE,
			 .ee = HCA_UB_EE_NORMAL,
			 .tv_en = 1,
			 .tassn = p->tassn++,
			 .rc_id = WRITER},
		.maetah = {.address = (uintptr_t)ub_world_region(w, UB_WORLD_THEIR, &len),
			   .token_id = ub_world_token_id(w, UB_WORLD_THEIR),
			   .length = sizeof(payload)},
		.tvetah = {UB_WORLD_SECRET},
	};

	memset(payload, (int)++p->written, sizeof(payload));
	next_packet(p, &h, true);
	ub_world_packet(w, peer, &h, payload, sizeof(payload), NULL, 0);
}

void
ub_peer_send(struct ub_world *w, unsigned int peer, uint32_t tc, uint32_t len)
{
	static const uint8_t payload[2048] = {0x77};
	struct ub_peer *p = &w->peer[peer];
	struct hca_ub_headers h = {.btah = {.opcode = HCA_UB_TA_SEND,
					    .ee = HCA_UB_EE_NORMAL,
					    .tv_en = 1,
					    .mt_en = 1,
					    .rc_id = SENDER},
				   .mtetah = {.tc_id = tc},
				   .tvetah = {UB_WORLD_TOKEN}};

	/* the device acknowledges received packets: this number may be under way */
	if (hca_tp_past(p->next, ub_world_tp(w, peer)->rx.epsn) > 32)
		return;
	for (uint32_t at = 0, n; at == 0 || at < len; at += n) {
		n = RTE_MIN(len - at, UB_WORLD_MTU);
		next_packet(p, &h, at + n == len);
		h.ofstetah.offset = at / 1024;
		ub_world_packet(w, peer, &h, payload, n, NULL, 0);
		if (n == 0)
			return;
	}
}

static void
hear_response(struct ub_peer *p, const struct hca_ub_headers *h)
{
	if (h->atah.rc_id == SENDER) /* it may find no receive, or a queue in ERROR */
		return;
	fuzz_check(h->atah.opcode == HCA_UB_TA_TAACK && h->atah.rspst == 0 &&
			   h->atah.rc_id == WRITER,
		   "answer %#x, status %u, of queue %#x", h->atah.opcode, h->atah.rspst,
		   h->atah.rc_id);
	fuzz_check(h->atah.tassn == (uint16_t)p->answered, "answers %u", h->atah.tassn);
	p->answered += 1 + h->atah.rspinfo;
	fuzz_check(p->answered <= p->written, "answers what was not asked");
}

static void
take(struct ub_world *w, unsigned int peer, const struct ub_view *v, const struct hca_ub_headers *h)
{
	struct ub_peer *p = &w->peer[peer];

	fuzz_check(v->tp.psn == p->epsn, "peer %u: PSN %#x, expected %#x", peer, v->tp.psn,
		   p->epsn);
	fuzz_check(v->tp.tpmsn == p->msn, "peer %u: TPMSN %#x, expected %#x", peer, v->tp.tpmsn,
		   p->msn);
	p->epsn = hca_tp_psn(p->epsn, 1);
	p->msn = hca_tp_psn(p->msn, v->tp.last);
	if (v->tp.last || v->tp.ack)
		acknowledge(w, peer);
	if (v->ta.op->is & HCA_UB_OP_RESPONSE)
		hear_response(p, h);
	else if (v->tp.last)
		answer(w, peer, h);
}

/* The answer to a reserved RC type. */
static bool
peers_refuse(const struct ub_peer *p, const uint8_t *frame, const struct ub_view *v, int rc)
{
	const uint8_t *atah = frame + v->w.transport + v->tp.ta;

	return rc == UB_REASON(-HCA_UB_DROP_TA_CODE) && !p->honest &&
	       (v->ta.op->is & HCA_UB_OP_RESPONSE) &&
	       hca_ub_atah_rc_type(atah) == HCA_UB_CODE_RESERVED &&
	       hca_ub_atah_rspst(atah) == HCA_UB_RSP_ERROR &&
	       hca_ub_atah_rspinfo(atah) == HCA_UB_ERROR_UNSUPPORTED;
}

void
ub_peer_hear(void *world, const uint8_t *frame, uint32_t len)
{
	struct ub_world *w = world;
	struct hca_ub_headers h = {0};
	struct ub_view v;
	const uint8_t *tph;
	unsigned int peer;
	int rc = ub_parse(frame, len, w->peer[0].form, &v);

	fuzz_trace_add(&w->trace, 'f', w->now, frame, len);
	peer = v.tp.dst_tpn == UB_PEER_TPN(1);
	if (peer == 1) /* its own form */
		rc = ub_parse(frame, len, w->peer[1].form, &v);
	fuzz_check(rc == 0 || peers_refuse(&w->peer[peer], frame, &v, rc),
		   "sent a malformed frame: %s", ub_drop_name(rc));
	fuzz_check(ub_icrc_ok(hca_icrc_select(), frame, &v.w), "sent a frame with a wrong ICRC");
	if (v.tp.opcode == HCA_UB_TP_UTP)
		return;
	fuzz_check(v.tp.dst_tpn == UB_PEER_TPN(peer) &&
			   v.tp.src_tpn == ub_world_tp(w, peer)->cfg.own_tpn,
		   "sent a frame to TP %#x", v.tp.dst_tpn);
	fuzz_check(v.ta.payload_len <= UB_WORLD_MTU, "sent %u bytes in one packet",
		   v.ta.payload_len);
	if (!w->peer[peer].honest)
		return;
	tph = frame + v.w.transport;
	if (v.tp.opcode == HCA_UB_TP_RTP) {
		h.form = w->peer[peer].form;
		hca_ub_get_headers(tph, &v.tp, &v.ta, &h);
		take(w, peer, &v, &h);
	} else {
		fuzz_check(v.tp.opcode == HCA_UB_TP_ACK && v.tp.rspst == 0,
			   "peer %u: opcode %u, status %u", peer, v.tp.opcode, v.tp.rspst);
	}
}
