/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * UB in decap: descriptors of frames, and whether their TP takes them: number, state, addresses,
 * VLAN, the number that the sender says it has, Entities. Packets go to TPR, acknowledgements to
 * TPS. Until a frame is judged, its descriptor's tp and generation hold the TPNs of receiver and
 * sender.
 */

#include <string.h>

#include <rte_memcpy.h>

#include "cc/cc.h"
#include "ctxmgt/ctxmgt.h"
#include "frame/decap.h"
#include "ub/frame/frame.h"
#include "ub/tp/pkt.h"
#include "ub/ub_stage.h"

/* UPIH of a TP: Entities have no partitions yet. */
#define PARTITION 0u

/* ---- descriptors ---- */

static void
fill(const uint8_t *frame, const struct hca_wire_view *w, const struct hca_ub_tp_view *v,
     struct hca_ub_rxd *r)
{
	const uint8_t *l3 = frame + w->l3;

	*r = (struct hca_ub_rxd){
		.tp = v->dst_tpn,
		.generation = v->src_tpn,
		.psn = v->psn,
		.tpmsn = v->tpmsn,
		.end = (uint16_t)v->end,
		.tph = w->transport,
		.l3 = w->l3,
		.port = hca_get_be16(frame + w->transport - HCA_UDP_LEN),
		.vlan = w->l3 != HCA_ETH_LEN ? hca_get_be16(frame + HCA_ETH_LEN) : 0,
		.opcode = v->opcode,
		.ta = v->ta,
		.pad = v->pad,
		.ecn = w->ip_version == 4 ? l3[1] & 3 : l3[1] >> 4 & 3,
		.flags = (uint8_t)(v->last * HCA_UB_RXD_LAST | v->ack * HCA_UB_RXD_ASK |
				   v->fake * HCA_UB_RXD_FAKE),
		.first = frame[w->transport + v->ta],
	};
}

/* n: bytes from the transport header to the end of the ICRC. Returns 0 or -enum hca_ub_drop. */
static int
describe(const uint8_t *frame, const struct hca_wire_view *w, uint32_t n, struct hca_ub_rxd *r,
	 struct hca_icrc_span *span)
{
	struct hca_ub_tp_view v;
	int rc;

	if (n < HCA_ICRC_LEN)
		return -HCA_UB_DROP_SHORT;
	rc = hca_ub_parse_tp(frame + w->transport, n - HCA_ICRC_LEN, &v);
	if (rc != 0)
		return rc;
	fill(frame, w, &v, r);
	*span = hca_icrc_span_of(HCA_WIRE_UB, w->ip_version, frame + w->l3,
				 w->transport + v.end - w->l3);
	return 0;
}

/* IPv4 and UDP of the usual form and no VLAN tag; *n: as above. */
static bool
is_usual_ip4(const uint8_t *p, uint32_t len, struct hca_wire_view *w, uint32_t *n)
{
	uint32_t total;

	w->l3 = HCA_ETH_LEN;
	w->transport = HCA_ETH_LEN + HCA_IPV4_LEN + HCA_UDP_LEN;
	w->ip_version = 4;
	if (len < w->transport)
		return false;
	total = hca_get_be16(p + w->l3 + 2);
	*n = total - HCA_IPV4_LEN - HCA_UDP_LEN;
	return (hca_get_be32(p + 12) & 0xffffff00) == (HCA_ETHERTYPE_IPV4 << 16 | 0x4500) &&
	       total <= len - w->l3 && total >= HCA_IPV4_LEN + HCA_UDP_LEN &&
	       (hca_get_be32(p + w->l3 + 6) & (HCA_IPV4_FRAG_MASK << 16 | 0xff)) ==
		       HCA_IPPROTO_UDP &&
	       hca_get_be32(p + w->transport - 6) ==
		       (HCA_UB_UDP_PORT << 16 | (total - HCA_IPV4_LEN));
}

static bool
is_usual_ip6(const uint8_t *p, uint32_t len, struct hca_wire_view *w, uint32_t *n)
{
	uint32_t payload;

	w->l3 = HCA_ETH_LEN;
	w->transport = HCA_ETH_LEN + HCA_IPV6_LEN + HCA_UDP_LEN;
	w->ip_version = 6;
	if (len < w->transport)
		return false;
	payload = hca_get_be16(p + w->l3 + 4);
	*n = payload - HCA_UDP_LEN;
	return hca_get_be16(p + 12) == HCA_ETHERTYPE_IPV6 && p[w->l3] >> 4 == 6 &&
	       payload <= len - w->l3 - HCA_IPV6_LEN && payload >= HCA_UDP_LEN &&
	       p[w->l3 + 6] == HCA_IPPROTO_UDP &&
	       hca_get_be32(p + w->transport - 6) == (HCA_UB_UDP_PORT << 16 | payload);
}

#define V4_TPH (HCA_ETH_LEN + HCA_IPV4_LEN + HCA_UDP_LEN)

typedef uint64_t vec16 __attribute__((vector_size(16)));

/*
 * The words of an IPv4 frame with a TP Packet, from its Ethertype to the TPNs, without IP
 * identification, TTL and both checksums, source port, A, PSN and TPMSN: all that is judged of it
 * before its PSN.
 */
struct alike {
	/* all 40 bytes; the last two vectors overlap */
	vec16 v[3];
	uint32_t len; /* of the frame; a value larger than any frame: there is nothing to compare */
	struct hca_ub_rxd rxd __rte_aligned(16);
	struct hca_icrc_span span;
};

/*
 * X(i, offset, first, last): masks of eight bytes each, in the order of the wire. F is the
 * lowest bit but six of byte 50.
 */
#define ALIKE_LIST(X) \
	X(0, 12, 0xffffffffffff0000, 0xffff00ff0000ffff) \
	X(1, 28, 0xffffffffffff0000, 0xffffffff0000ffff) \
	X(2, 36, 0xffffffff0000ffff, 0xffffffffffff4000)

_Static_assert(V4_TPH == 42, "offsets of ALIKE_LIST");

static inline vec16
load16(const uint8_t *p)
{
	vec16 v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Frames with Entities are looked at one by one. */
static inline void
note_alike(struct alike *a, const uint8_t *p, uint32_t len, const struct hca_ub_rxd *r,
	   const struct hca_icrc_span *span)
{
	a->len = UINT32_MAX;
	if (r->opcode != HCA_UB_TP_RTP || r->tph != V4_TPH || r->ta != HCA_UB_RTPH_LEN)
		return;
#define X(i, offset, first, last) a->v[i] = load16(p + (offset));
	ALIKE_LIST(X)
#undef X
	a->len = len;
	a->rxd = *r;
	a->rxd.flags = (uint8_t)((r->flags & ~HCA_UB_RXD_ASK) | HCA_UB_RXD_ALIKE);
	a->span = *span;
}

static inline bool
is_alike(const struct alike *a, const uint8_t *p, uint32_t len)
{
	vec16 differs = {0};

	if (a->len != len)
		return false;
#define X(i, offset, first, last) \
	differs |= (load16(p + (offset)) ^ a->v[i]) & \
		   (vec16){RTE_BE64(UINT64_C(first)), RTE_BE64(UINT64_C(last))};
	ALIKE_LIST(X)
#undef X
	return (differs[0] | differs[1]) == 0;
}

_Static_assert(sizeof(struct hca_ub_rxd) == 32, "copied as a whole");

static inline void
describe_alike(const struct alike *a, const uint8_t *p, struct hca_ub_rxd *r,
	       struct hca_icrc_span *span)
{
	uint32_t psn = hca_get_be32(p + V4_TPH + 8);

	rte_mov32((uint8_t *)r, (const uint8_t *)&a->rxd);
	r->psn = psn & HCA_PSN_MASK;
	r->tpmsn = hca_get_be32(p + V4_TPH + 12) & HCA_PSN_MASK;
	r->port = hca_get_be16(p + V4_TPH - HCA_UDP_LEN);
	r->first = p[V4_TPH + HCA_UB_RTPH_LEN];
	r->flags = (uint8_t)(a->rxd.flags | (psn >> 31) * HCA_UB_RXD_ASK);
	*span = a->span;
	span->data = p + HCA_ETH_LEN;
}

static bool
take_usual(const uint8_t *p, uint32_t len, struct hca_ub_rxd *r, struct hca_icrc_span *span)
{
	struct hca_wire_view w;
	uint32_t bytes;

	if (!is_usual_ip4(p, len, &w, &bytes) && !is_usual_ip6(p, len, &w, &bytes))
		return false;
	return describe(p, &w, bytes, r, span) == 0;
}

unsigned int
hca_decap_ub_take(struct hca_decap *d, struct rte_mbuf **m, unsigned int n)
{
	struct alike last = {.len = UINT32_MAX};
	unsigned int i, at = d->n;

	for (i = 0; HCA_SHORT_WAYS && i < n && likely(m[i]->nb_segs == 1); i++) {
		const uint8_t *p = rte_pktmbuf_mtod(m[i], const uint8_t *);
		struct hca_icrc_span *span = &d->span[at + i];
		struct hca_ub_rxd *r = hca_ub_rxd(m[i]);

		if (is_alike(&last, p, m[i]->data_len))
			describe_alike(&last, p, r, span);
		else if (take_usual(p, m[i]->data_len, r, span))
			note_alike(&last, p, m[i]->data_len, r, span);
		else
			break;
		d->frame[at + i] = m[i];
	}
	hca_decap_add(d, HCA_WIRE_UB, i);
	return i;
}

static const uint16_t drop_counter[HCA_UB_DROP_TA] = {
#define X(NAME, name, text) [HCA_UB_DROP_##NAME] = HCA_CTR_##name,
	HCA_UB_DROP_LIST(X)
#undef X
};

enum hca_counter
hca_decap_ub_describe(const uint8_t *frame, const struct hca_wire_view *v, struct hca_ub_rxd *r,
		      struct hca_icrc_span *span)
{
	uint32_t udp_len = hca_get_be16(frame + v->transport - 4);
	int rc = describe(frame, v, udp_len - HCA_UDP_LEN, r, span);

	return rc == 0 ? HCA_CTR_N : drop_counter[-rc];
}

bool
hca_decap_ub(struct hca_pipe *h, struct hca_decap *d, struct rte_mbuf *m,
	     const struct hca_wire_view *v, int rc)
{
	enum hca_counter why;

	if (v->wire != HCA_WIRE_UB ||
	    (rc != 0 && rc != -HCA_WIRE_DROP_TRANSPORT && rc != -HCA_WIRE_DROP_HEADER_SHORT))
		return false;
	why = hca_decap_ub_describe(rte_pktmbuf_mtod(m, const uint8_t *), v, hca_ub_rxd(m),
				    &d->span[d->n]);
	if (why != HCA_CTR_N) {
		hca_decap_drop(h, d, m, why);
		return true;
	}
	d->frame[d->n] = m;
	hca_decap_add(d, HCA_WIRE_UB, 1);
	return true;
}

/* ---- judging ---- */

/* IP source and destination as EIDs; IPv4 as ::ffff:a.b.c.d. */
static void
addresses(const uint8_t *l3, uint8_t source[16], uint8_t destination[16])
{
	if (l3[0] >> 4 == 4) {
		hca_gid_from_ip4(source, l3 + offsetof(struct hca_ipv4_hdr, saddr));
		hca_gid_from_ip4(destination, l3 + offsetof(struct hca_ipv4_hdr, daddr));
	} else {
		memcpy(source, l3 + offsetof(struct hca_ipv6_hdr, saddr), 16);
		memcpy(destination, l3 + offsetof(struct hca_ipv6_hdr, daddr), 16);
	}
}

/* UPIH and EIDH, where the packet has them, name these Entities. */
static bool
entities_fit(const uint8_t *tph, const uint8_t source[16], const uint8_t destination[16])
{
	const uint8_t *eidh = tph + HCA_UB_RTPH_LEN + HCA_UB_UPIH_LEN;

	if (likely(hca_ub_rtph_nlp(tph) != HCA_UB_NLP_EIDH))
		return true;
	return hca_ub_upih_partition(tph + HCA_UB_RTPH_LEN) == PARTITION &&
	       memcmp(eidh, source, 16) == 0 && memcmp(eidh + 16, destination, 16) == 0;
}

/* Unreliable packets come from anywhere, to any own address. */
static enum hca_counter
judge_datagram(const struct hca_pipe *h, struct hca_ub_rxd *r, const uint8_t *p)
{
	uint8_t source[16], destination[16];

	addresses(p + r->l3, source, destination);
	if (!hca_gid_is_own(h->ctxmgt, destination, HCA_VLAN_VID(r->vlan)))
		return HCA_CTR_ub_rx_bad_destination;
	if (!entities_fit(p + r->tph, source, destination))
		return HCA_CTR_ub_rx_bad_eid;
	r->tp = HCA_TP_UNRELIABLE;
	r->generation = 0;
	return HCA_CTR_N;
}

/* A frame is for the TP if it is of its peer, to its own address, in its VLAN. */
static enum hca_counter
judge_address(const struct hca_tp_cfg *cfg, const struct hca_ub_rxd *r, const uint8_t *p)
{
	uint8_t source[16], destination[16];

	addresses(p + r->l3, source, destination);
	if (unlikely(memcmp(source, cfg->peer_eid, 16) != 0 ||
		     HCA_VLAN_VID(r->vlan) != HCA_VLAN_VID(cfg->vlan)))
		return HCA_CTR_ub_rx_bad_source;
	if (unlikely(memcmp(destination, cfg->own_eid, 16) != 0))
		return HCA_CTR_ub_rx_bad_destination;
	return entities_fit(p + r->tph, source, destination) ? HCA_CTR_N : HCA_CTR_ub_rx_bad_eid;
}

static enum hca_counter
judge_packet(const struct hca_pipe *h, struct hca_ub_rxd *r, const uint8_t *p)
{
	const struct hca_tp *tp = hca_ub_tp(h->ub, r->tp);
	uint32_t index = (uint32_t)(tp - h->ub->tp);
	enum hca_counter why;

	if (unlikely(index == HCA_TP_UNRELIABLE ||
		     __atomic_load_n(&tp->cfg.own_tpn, __ATOMIC_ACQUIRE) != r->tp))
		return HCA_CTR_ub_rx_unknown_tpn;
	if (unlikely(!hca_tp_receives(hca_tp_state(tp))))
		return HCA_CTR_ub_rx_tp_state;
	why = judge_address(&tp->cfg, r, p);
	if (unlikely(why != HCA_CTR_N))
		return why;
	if (unlikely(r->generation != tp->cfg.peer_tpn))
		return HCA_CTR_ub_rx_bad_peer;
	if (unlikely(r->opcode == HCA_UB_TP_CNP) && hca_cc_of(h, hca_tp_object(h, index)) == NULL)
		return HCA_CTR_ub_rx_cnp_ignored;
	r->tp = index;
	r->generation = tp->cfg.generation;
	return HCA_CTR_N;
}

static enum hca_counter
judge(const struct hca_pipe *h, struct hca_ub_rxd *r, const uint8_t *p)
{
	return r->opcode == HCA_UB_TP_UTP ? judge_datagram(h, r, p) : judge_packet(h, r, p);
}

/* Sums of a burst. */
struct passed {
	unsigned int packets, datagrams, acks;
};

/*
 * n accepted packets of a TP, or others, have congestion marks. The peer's packets ask for a CNP:
 * TPR keeps the interval and sends it.
 */
static __rte_noinline void
note_marks(struct hca_pipe *h, const struct hca_ub_rxd *r, unsigned int n)
{
	HCA_COUNT_N(h, DECAP, ub_rx_ecn_marked, n);
	if (r->opcode != HCA_UB_TP_RTP || !(h->ub->tp[r->tp].cfg.flags & HCA_TP_FLAG_CNP)) {
		HCA_COUNT_N(h, DECAP, ub_ecn_marked_unanswered, n);
		return;
	}
	if (hca_msg_post_first(h->msg[HCA_STAGE_DECAP][HCA_STAGE_TPR], hca_tp_object(h, r->tp),
			       HCA_MSG_MARKED))
		n--;
	HCA_COUNT_N(h, DECAP, ub_cnp_suppressed, n);
}

static inline void
pass_on(struct hca_pipe *h, struct hca_decap *d, struct passed *n, struct rte_mbuf *m,
	const struct hca_ub_rxd *r)
{
	if (unlikely(r->ecn == HCA_ECN_CE))
		note_marks(h, r, 1);
	if (likely(r->opcode == HCA_UB_TP_RTP))
		n->packets++;
	else if (r->opcode == HCA_UB_TP_UTP)
		n->datagrams++;
	else
		n->acks++;
	if (r->opcode == HCA_UB_TP_UTP || r->opcode == HCA_UB_TP_RTP)
		hca_decap_pass(d, HCA_EDGE_DECAP_TPR, m);
	else
		hca_decap_pass(d, HCA_EDGE_DECAP_TPS, m);
}

static inline void
count_passed(struct hca_pipe *h, const struct passed *n)
{
	HCA_COUNT_N(h, DECAP, ub_rx_tp_packets, n->packets);
	HCA_COUNT_N(h, DECAP, ub_rx_acks, n->acks);
	if (unlikely(n->datagrams != 0))
		HCA_COUNT_N(h, DECAP, ub_rx_utp, n->datagrams);
}

/* Frames from i on that are like the one before, which was accepted. Returns the next one. */
static inline unsigned int
pass_alike(struct hca_pipe *h, struct hca_decap *d, struct passed *n, const struct hca_ub_rxd *last,
	   unsigned int i, unsigned int to)
{
	uint32_t tp = last->tp, generation = last->generation;
	struct hca_decap_out *to_tpr = &d->out[HCA_EDGE_DECAP_TPR];
	void **out = &to_tpr->frame[to_tpr->n];
	unsigned int first = i;

	for (; i < to; i++) {
		struct hca_ub_rxd *r = hca_ub_rxd(d->frame[i]);

		if (!(r->flags & HCA_UB_RXD_ALIKE) || unlikely(!hca_decap_icrc_matches(d, i)))
			break;
		r->tp = tp;
		r->generation = generation;
		*out++ = d->frame[i];
	}
	to_tpr->n += i - first;
	n->packets += i - first;
	if (unlikely(last->ecn == HCA_ECN_CE) && i != first)
		note_marks(h, last, i - first);
	return i;
}

void
hca_decap_ub_judge(struct hca_pipe *h, struct hca_decap *d, unsigned int from, unsigned int to)
{
	struct passed passed = {0};

	for (unsigned int i = from; i < to;) {
		struct rte_mbuf *m = d->frame[i];
		struct hca_ub_rxd *r = hca_ub_rxd(m);
		enum hca_counter why = HCA_CTR_rx_icrc_encapsulated;

		r->flags &= (uint8_t)~HCA_UB_RXD_ALIKE;
		if (likely(hca_decap_icrc_matches(d, i)))
			why = judge(h, r, rte_pktmbuf_mtod(m, const uint8_t *));
		i++;
		if (unlikely(why != HCA_CTR_N)) {
			hca_decap_drop(h, d, m, why);
			continue;
		}
		pass_on(h, d, &passed, m, r);
		i = pass_alike(h, d, &passed, r, i, to);
	}
	count_passed(h, &passed);
}
