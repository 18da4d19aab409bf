/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * RoCE in decap: descriptors of frames, and whether the QP takes them (service, state, addresses,
 * P_Key, Q_Key). Multicasts are copied for each member of their group.
 */

#include <string.h>

#include "abi_service.h"
#include "cc/cc.h"
#include "ctxmgt/ctxmgt.h"
#include "frame/decap.h"
#include "engine/migrate.h"
#include "requester/rtt.h"
#include "wire/roce_frame.h"

void
hca_decap_roce_fini(struct hca_decap *d)
{
	struct hca_decap_roce *rd = &d->roce;

	for (; rd->mcast_at < rd->mcast_n; rd->mcast_at++)
		rte_pktmbuf_free(rd->mcast[rd->mcast_at].frame);
}

/*
 * The responder refuses an unknown RC opcode with a NAK, after ICRC and source have been checked;
 * the descriptor then has no operation and no payload.
 */
static bool
is_unknown_rc_request(int rc, const struct hca_wire_view *v)
{
	return rc == -HCA_WIRE_DROP_OPCODE && HCA_BTH_TRANSPORT(v->opcode) == HCA_TRANSPORT_RC;
}

static inline bool
is_request(const struct hca_roce_opcode_info *op)
{
	return op->is_request || op->kind == HCA_PKT_NONE;
}

int
hca_decap_roce_describe(const uint8_t *frame, const struct hca_wire_view *v, int rc,
			struct hca_rxd *r)
{
	const uint8_t *bth = frame + v->transport, *l3 = frame + v->l3;
	bool known = rc == 0;

	if (!known && !is_unknown_rc_request(rc, v))
		return rc;
	*r = (struct hca_rxd){
		.qpi = v->dst,
		.psn = v->psn,
		.opcode = v->opcode,
		.flags = bth[8] & 0x80 ? HCA_RXD_ACKREQ : 0,
		.ecn = v->ip_version == 4 ? l3[1] & 3 : l3[1] >> 4 & 3,
		.ext_off = v->transport + HCA_ROCE_BTH_LEN,
		.payload_off = v->transport + HCA_ROCE_BTH_LEN,
		.info = &hca_roce_opcodes[v->opcode],
		.l3_off = v->l3,
		.vlan = v->l3 == HCA_ETH_LEN + HCA_VLAN_LEN ? hca_get_be16(frame + HCA_ETH_LEN) : 0,
	};
	if (!known)
		return 0;
	r->flags |= (bth[1] & HCA_BTH_SE ? HCA_RXD_SOLICITED : 0) |
		    (bth[1] & HCA_BTH_MIGREQ ? HCA_RXD_MIGREQ : 0);
	r->pad = HCA_BTH_PAD(bth[1]);
	r->payload_off = v->payload;
	r->payload_len = v->icrc - v->payload - r->pad;
	return 0;
}

#define V4_L3 HCA_ETH_LEN
#define V4_UDP (V4_L3 + HCA_IPV4_LEN)
#define V4_BTH (V4_UDP + HCA_UDP_LEN)

/*
 * Fill in the descriptor of a valid IPv4 frame without VLAN tag, with few comparisons; false:
 * undecided, use the general parser.
 */
static inline bool
describe_fast(const uint8_t *p, uint32_t len, struct hca_rxd *r, struct hca_icrc_span *span)
{
	const struct hca_roce_opcode_info *op;
	uint32_t total, rest, bth0, psn;

	if (unlikely(len < V4_BTH + HCA_ROCE_BTH_LEN + HCA_ICRC_LEN))
		return false;
	total = hca_get_be16(p + V4_L3 + 2);
	/* Ethertype, version and header length; not a fragment; UDP; port and length of RoCE */
	if (unlikely((hca_get_be32(p + 12) & 0xffffff00) != (HCA_ETHERTYPE_IPV4 << 16 | 0x4500) ||
		     total > len - V4_L3 ||
		     total < HCA_IPV4_LEN + HCA_UDP_LEN + HCA_ROCE_BTH_LEN + HCA_ICRC_LEN ||
		     (hca_get_be32(p + V4_L3 + 6) & (HCA_IPV4_FRAG_MASK << 16 | 0xff)) !=
			     HCA_IPPROTO_UDP ||
		     hca_get_be32(p + V4_UDP + 2) !=
			     (HCA_ROCE_UDP_PORT << 16 | (total - HCA_IPV4_LEN))))
		return false;
	bth0 = hca_get_be32(p + V4_BTH);
	op = &hca_roce_opcodes[bth0 >> 24];
	rest = total - HCA_IPV4_LEN - HCA_UDP_LEN - HCA_ICRC_LEN - op->header_len;
	/*
	 * valid opcodes have header_len; for shorter frames rest wraps around and exceeds a packet
	 */
	if (unlikely(!op->valid || (bth0 & 0x0f0000) != 0 || (rest & 3) != 0 || rest > len ||
		     rest < (bth0 >> 20 & 3) || (!op->has_payload && rest != 0)))
		return false;
	psn = hca_get_be32(p + V4_BTH + 8);
	r->qpi = hca_get_be32(p + V4_BTH + 4) & 0xffffff;
	r->psn = psn & HCA_PSN_MASK;
	r->opcode = (uint8_t)(bth0 >> 24);
	r->flags = (uint8_t)((psn >> 31) * HCA_RXD_ACKREQ | (bth0 >> 23 & 1) * HCA_RXD_SOLICITED |
			     (bth0 >> 22 & 1) * HCA_RXD_MIGREQ);
	r->pad = (uint8_t)(bth0 >> 20 & 3);
	r->ecn = p[V4_L3 + 1] & 3;
	r->ext_off = V4_BTH + HCA_ROCE_BTH_LEN;
	r->payload_off = V4_BTH + op->header_len;
	r->payload_len = rest - r->pad;
	r->info = op;
	r->l3_off = V4_L3;
	r->vlan = 0;
	*span = hca_icrc_span_of(HCA_WIRE_ROCE, 4, p + V4_L3, total - HCA_ICRC_LEN);
	return true;
}

/*
 * The words of an IPv4 frame from its Ethertype to the end of the BTH, without IP identification,
 * TTL and checksum, AckReq and PSN: all that describe_fast() checks, and more.
 */
struct alike {
	uint64_t w[5];
	/* of the frame; a value larger than any frame: there is nothing to compare with */
	uint32_t len;
};

static inline uint64_t
word_of(const uint8_t *p, uint64_t be_mask)
{
	uint64_t w;

	memcpy(&w, p, sizeof(w));
	return w & rte_cpu_to_be_64(be_mask);
}

/* len: at least that of the shortest frame, see describe_fast(). */
static inline void
note_alike(struct alike *a, const uint8_t *p, uint32_t len)
{
	a->w[0] = word_of(p + 12, 0xffffffffffff0000);
	a->w[1] = word_of(p + 20, 0xffff00ff0000ffff);
	a->w[2] = word_of(p + 28, UINT64_MAX);
	a->w[3] = word_of(p + 36, UINT64_MAX);
	a->w[4] = word_of(p + 44, 0xffffffffffff0000);
	a->len = len;
}

/* Bits of these words that differ between QPs of one peer: UDP source port, destination QPN. */
#define OF_QP_W2 rte_cpu_to_be_64(0xffff)
#define OF_QP_W4 rte_cpu_to_be_64(0xffffff0000)

_Static_assert(V4_UDP + 2 == 28 + 8 && V4_BTH + 8 == 44 + 6,
	       "the source port and the QPN end there");

enum likeness {
	ALIKE_NOT,
	ALIKE_BUT_QP,
	ALIKE,
};

static __rte_always_inline enum likeness
likeness(const struct alike *a, const uint8_t *p, uint32_t len)
{
	uint64_t w2 = word_of(p + 28, UINT64_MAX) ^ a->w[2];
	uint64_t w4 = word_of(p + 44, 0xffffffffffff0000) ^ a->w[4];
	uint64_t others = (word_of(p + 12, 0xffffffffffff0000) ^ a->w[0]) |
			  (word_of(p + 20, 0xffff00ff0000ffff) ^ a->w[1]) |
			  (word_of(p + 36, UINT64_MAX) ^ a->w[3]);

	if (a->len != len)
		return ALIKE_NOT;
	if ((others | w2 | w4) == 0)
		return ALIKE;
	return (others | (w2 & ~OF_QP_W2) | (w4 & ~OF_QP_W4)) == 0 ? ALIKE_BUT_QP : ALIKE_NOT;
}

_Static_assert(V4_BTH + 10 == 44 + 8, "the last word has AckReq and one byte of the PSN");

/*
 * Fill in the descriptor of a frame that equals the one of `as` except for AckReq, PSN and QPN.
 * flags: to add.
 */
static inline void
describe_alike(const uint8_t *p, const struct hca_rxd *as, uint32_t qpn, struct hca_rxd *r,
	       uint8_t flags)
{
	uint32_t psn = hca_get_be32(p + V4_BTH + 8);

	*r = *as;
	r->qpi = qpn;
	r->psn = psn & HCA_PSN_MASK;
	r->flags = (uint8_t)((as->flags & ~HCA_RXD_ACKREQ) | (psn >> 31) * HCA_RXD_ACKREQ | flags);
}

/* The frame is for another QP, which is the one to compare with from now on. Returns its QPN. */
static inline uint32_t
change_qp(struct alike *a, const uint8_t *p)
{
	a->w[2] = word_of(p + 28, UINT64_MAX);
	a->w[4] = word_of(p + 44, 0xffffffffffff0000);
	return hca_get_be32(p + V4_BTH + 4) & 0xffffff;
}

/*
 * Prefetch the lines of the QP that the checks of a frame need, and those of the stage that takes
 * the frame. Lines that other workers write are left to them.
 */
static inline void
prefetch_lines(const struct hca_pipe *h, const struct hca_rxd *r)
{
	const struct hca_qp *qp = &h->qp[hca_qp_index(&h->core, r->qpi)];

	rte_prefetch0(&qp->cfg);
	if (!h->single_worker)
		return;
	if (is_request(r->info)) {
		rte_prefetch0(&qp->ee);
		rte_prefetch0((const uint8_t *)&qp->ee + RTE_CACHE_LINE_SIZE);
		rte_prefetch0(&qp->encap);
		rte_prefetch0((const uint8_t *)&qp->encap + RTE_CACHE_LINE_SIZE);
	} else {
		rte_prefetch0(&qp->sq_una);
		rte_prefetch0(&qp->sq_next);
		rte_prefetch0(&hca_rtt_of(h, hca_qp_index(&h->core, r->qpi))->ended);
	}
}

unsigned int
hca_decap_roce_take(struct hca_decap *d, struct rte_mbuf **m, unsigned int n)
{
	struct alike last = {.len = UINT32_MAX};
	struct hca_icrc_span span;
	struct hca_rxd as;
	enum likeness like;
	uint32_t qpn = 0;
	unsigned int i;

	for (i = 0; HCA_SHORT_WAYS && i < n && likely(m[i]->nb_segs == 1); i++) {
		const uint8_t *p = rte_pktmbuf_mtod(m[i], const uint8_t *);
		struct hca_rxd *r = hca_rxd(m[i]);

		like = likeness(&last, p, m[i]->data_len);
		if (like == ALIKE) {
			describe_alike(p, &as, qpn, r, HCA_RXD_ALIKE);
			span.data = p + V4_L3;
			d->span[d->n] = span;
		} else if (like == ALIKE_BUT_QP) {
			qpn = change_qp(&last, p);
			describe_alike(p, &as, qpn, r, 0);
			prefetch_lines(d->h, r);
			span.data = p + V4_L3;
			d->span[d->n] = span;
		} else if (likely(describe_fast(p, m[i]->data_len, r, &d->span[d->n]))) {
			prefetch_lines(d->h, r);
			note_alike(&last, p, m[i]->data_len);
			as = *r;
			qpn = r->qpi;
			span = d->span[d->n];
		} else {
			break;
		}
		d->frame[d->n++] = m[i];
	}
	return i;
}

static inline bool
pkey_matches(uint16_t ours, uint16_t theirs)
{
	return ((ours ^ theirs) & 0x7fff) == 0 && ((ours | theirs) & 0x8000) != 0;
}

static inline bool
vlan_matches(uint16_t ours, const struct hca_rxd *r)
{
	return HCA_VLAN_VID(r->vlan) == ours;
}

/* Whether source and destination are the ends of the path. */
static bool
is_of_path(const struct hca_qp *qp, uint32_t path, const struct hca_rxd *r, const uint8_t *l3)
{
	return hca_path_is_from(l3, r, qp->addr.peer_gid[path], qp->addr.vlan[path]) &&
	       hca_path_is_to(l3, hca_qp_tmpl(qp, path));
}

/* General comparison: IPv6, QPs whose paths may change, the alternate path of an armed QP. */
static bool
addresses_match_any(const struct hca_qp *qp, struct hca_rxd *r, const uint8_t *l3)
{
	uint32_t path = __atomic_load_n(&qp->encap.path, __ATOMIC_ACQUIRE) & 1;
	const struct hca_qp_addr *a = &qp->addr;

	r->flags |= HCA_RXD_ASKED;
	if (is_of_path(qp, path, r, l3))
		return true;
	if (__atomic_load_n(&a->mig, __ATOMIC_ACQUIRE) != HCA_MIG_ARMED || !a->alt_valid ||
	    !is_of_path(qp, 1 - path, r, l3))
		return false;
	r->flags |= HCA_RXD_ALT_PATH;
	return true;
}

/* P_Key of the path that the packet used. */
static inline uint16_t
pkey_of(const struct hca_qp *qp, const struct hca_rxd *r)
{
	uint32_t path;

	if (likely(!(r->flags & HCA_RXD_ASKED)))
		return __atomic_load_n(&qp->cfg.pkey, __ATOMIC_RELAXED);
	path = __atomic_load_n(&qp->encap.path, __ATOMIC_ACQUIRE) & 1;
	return qp->addr.pkey[r->flags & HCA_RXD_ALT_PATH ? 1 - path : path];
}

_Static_assert(offsetof(struct hca_ipv4_hdr, daddr) == offsetof(struct hca_ipv4_hdr, saddr) + 4,
	       "both addresses are one word");

static inline uint64_t
ip4_of(const uint8_t *l3)
{
	uint64_t ip4;

	memcpy(&ip4, l3 + offsetof(struct hca_ipv4_hdr, saddr), sizeof(ip4));
	return ip4;
}

/*
 * Whether the packet is from the QP's peer to the QP's own address, in its VLAN: a port may deliver
 * frames for others. A priority tag counts as no VLAN.
 */
static inline bool
addresses_match(const struct hca_qp *qp, struct hca_rxd *r, const uint8_t *l3)
{
	if (likely(l3[0] >> 4 == 4 && !__atomic_load_n(&qp->cfg.ask_addr, __ATOMIC_ACQUIRE) &&
		   ip4_of(l3) == __atomic_load_n(&qp->cfg.ip4, __ATOMIC_RELAXED) &&
		   vlan_matches(__atomic_load_n(&qp->cfg.vlan, __ATOMIC_RELAXED), r)))
		return true;
	return addresses_match_any(qp, r, l3);
}

/* Counter of a wrong address: of the destination only if the source is the peer. */
static enum hca_counter
bad_address(const struct hca_qp *qp, const struct hca_rxd *r, const uint8_t *l3)
{
	uint32_t path = __atomic_load_n(&qp->encap.path, __ATOMIC_ACQUIRE) & 1;

	return hca_path_is_from(l3, r, qp->addr.peer_gid[path], qp->addr.vlan[path])
		       ? HCA_CTR_rx_bad_destination
		       : HCA_CTR_rx_bad_source;
}

/* One of the packet's IP addresses, by its offset in either header, as a GID. */
static inline void
gid_at(const uint8_t *l3, size_t in_ipv4, size_t in_ipv6, uint8_t gid[16])
{
	if (l3[0] >> 4 == 4)
		hca_gid_from_ip4(gid, l3 + in_ipv4);
	else
		memcpy(gid, l3 + in_ipv6, 16);
}

/* address: saddr, daddr */
#define GID_OF(l3, address, gid) \
	gid_at(l3, offsetof(struct hca_ipv4_hdr, address), offsetof(struct hca_ipv6_hdr, address), \
	       gid)

/* Whether a datagram is for any address of this port, in its VLAN; groups were found by theirs. */
static bool
is_for_us(const struct hca_pipe *h, struct hca_decap_roce *d, const struct hca_rxd *r,
	  const uint8_t *l3)
{
	uint64_t gids = __atomic_load_n(&h->ctxmgt->gid_changes, __ATOMIC_ACQUIRE);
	uint16_t vlan = HCA_VLAN_VID(r->vlan);
	uint8_t gid[16];

	if (r->flags & HCA_RXD_GROUP)
		return true;
	GID_OF(l3, daddr, gid);
	if (likely(d->own_gids == gids && d->own_vlan == vlan && memcmp(d->own, gid, 16) == 0))
		return true;
	if (!hca_gid_is_own(h->ctxmgt, gid, vlan))
		return false;
	memcpy(d->own, gid, sizeof(d->own));
	d->own_vlan = vlan;
	d->own_gids = gids;
	return true;
}

/* States in which a QP accepts requests and responses (A1-1). */
#define TAKES_REQUESTS \
	(1u << HCA_QPS_RTR | 1u << HCA_QPS_RTS | 1u << HCA_QPS_SQD | 1u << HCA_QPS_SQE)
#define TAKES_RESPONSES (1u << HCA_QPS_RTS | 1u << HCA_QPS_SQD | 1u << HCA_QPS_SQE)

/* XRC has a service for each end. */
static inline bool
service_fits(uint8_t service, const struct hca_roce_opcode_info *op)
{
	if (likely(service < HCA_ST_XRC_INI))
		return true;
	return service == HCA_ST_XRC_TGT ? is_request(op) : op->is_response;
}

/* Packets to QPN 1 carry the well-known Q_Key, whatever that of the actual QP is. */
static inline bool
qkey_matches(const struct hca_qp *qp, const struct hca_rxd *r, const uint8_t *deth)
{
	uint32_t ours = r->flags & HCA_RXD_GSI ? HCA_QKEY_GSI
					       : __atomic_load_n(&qp->cfg.qkey, __ATOMIC_ACQUIRE);

	return hca_get_be32(deth) == ours;
}

static inline bool
is_reliable(uint8_t service)
{
	return service == HCA_ST_RC || service == HCA_ST_XRC_INI || service == HCA_ST_XRC_TGT;
}

/* Packets of no service: req_rx takes CNPs of QPs that have an algorithm. */
static enum hca_counter
judge_class(const struct hca_pipe *h, const struct hca_qp *qp, struct hca_rxd *r, const uint8_t *p)
{
	const struct hca_roce_opcode_info *op = r->info;

	if (op->kind != HCA_PKT_CNP ||
	    hca_services[qp->cfg.service].transport == HCA_NO_TRANSPORT ||
	    !addresses_match(qp, r, p + r->l3_off))
		return HCA_CTR_rx_bad_service;
	return hca_cc_of(h, hca_qp_index(&h->core, r->qpi)) != NULL ? HCA_CTR_N
								    : HCA_CTR_rp_cnp_ignored;
}

/* A QP in RTR answers READs, so it takes CNPs, and nothing else that is no request. */
static __rte_noinline enum hca_counter
early_cnp(const struct hca_pipe *h, const struct hca_qp *qp, struct hca_rxd *r, const uint8_t *p)
{
	const struct hca_roce_opcode_info *op = r->info;

	if (op->kind != HCA_PKT_CNP || hca_qp_state(qp) != HCA_QPS_RTR)
		return HCA_CTR_rx_qp_state;
	return judge_class(h, qp, r, p);
}

/* Checks of datagrams, which may come from any host. */
static enum hca_counter
judge_datagram(const struct hca_pipe *h, struct hca_decap_roce *d, const struct hca_qp *qp,
	       const struct hca_rxd *r, const uint8_t *p)
{
	if (!is_for_us(h, d, r, p + r->l3_off))
		return HCA_CTR_rx_bad_destination;
	return qkey_matches(qp, r, p + r->ext_off) ? HCA_CTR_N : HCA_CTR_rx_bad_qkey;
}

/* All checks in order; HCA_CTR_N: the packet is accepted. */
static inline enum hca_counter
decap_judge(const struct hca_pipe *h, struct hca_decap_roce *d, const struct hca_qp *qp,
	    struct hca_rxd *r, const uint8_t *p)
{
	const struct hca_roce_opcode_info *op = r->info;
	uint32_t states = is_request(op) ? TAKES_REQUESTS : TAKES_RESPONSES;

	if (unlikely(__atomic_load_n(&qp->cfg.local_qpn, __ATOMIC_ACQUIRE) != r->qpi ||
		     r->qpi == 0))
		return HCA_CTR_rx_unknown_qpn;
	if (unlikely((states & 1u << hca_qp_state(qp)) == 0))
		return early_cnp(h, qp, r, p);
	if (unlikely(HCA_BTH_TRANSPORT(r->opcode) != hca_services[qp->cfg.service].transport))
		return judge_class(h, qp, r, p);
	if (unlikely(!service_fits(qp->cfg.service, op)))
		return HCA_CTR_rx_bad_service;
	if (unlikely(qp->cfg.service != HCA_ST_UD && !addresses_match(qp, r, p + r->l3_off)))
		return bad_address(qp, r, p + r->l3_off);
	if (unlikely(!pkey_matches(pkey_of(qp, r),
				   hca_get_be16(p + r->ext_off - HCA_ROCE_BTH_LEN + 2))))
		return HCA_CTR_rx_bad_pkey;
	if (unlikely(!is_request(op) && !op->is_response))
		return HCA_CTR_rx_bad_service;
	if (unlikely(qp->cfg.service == HCA_ST_UD))
		return judge_datagram(h, d, qp, r, p);
	return HCA_CTR_N;
}

/*
 * An accepted packet has a congestion mark. Data of a reliable QP asks for a CNP to its source: EE
 * keeps the interval and sends it.
 */
static __rte_noinline void
note_mark(struct hca_pipe *h, const struct hca_qp *qp, const struct hca_rxd *r)
{
	const struct hca_roce_opcode_info *op = r->info;

	HCA_COUNT(h, DECAP, np_ecn_marked_roce_packets);
	if (!is_reliable(qp->cfg.service) || !op->has_payload || op->kind == HCA_PKT_CNP)
		HCA_COUNT(h, DECAP, np_ecn_marked_unanswered);
	else if (!hca_msg_post_first(h->msg[HCA_STAGE_DECAP][HCA_STAGE_EE],
				     hca_qp_index(&h->core, r->qpi), HCA_MSG_MARKED))
		HCA_COUNT(h, DECAP, np_cnp_suppressed);
}

/*
 * Fields that decap_judge() checks: a frame with the same values as the last accepted one of the
 * burst is also accepted.
 */
struct judged {
	const void *info;
	uint64_t ip4;
	uint32_t qpn, qkey;
	uint16_t pkey;
	bool alike; /* it is the frame before, and HCA_RXD_ALIKE says that the fields are equal */
	bool datagram; /* only if the Q_Key is equal too */
};

static inline bool
same_as_last(const struct judged *j, const struct hca_rxd *r, const uint8_t *p)
{
	uint16_t pkey;

	memcpy(&pkey, p + V4_BTH + offsetof(struct hca_bth, pkey), sizeof(pkey));
	/* no other frame has its BTH at this offset; marked frames must be counted */
	return r->info == j->info && r->qpi == j->qpn && r->ext_off == V4_BTH + HCA_ROCE_BTH_LEN &&
	       ip4_of(p + V4_L3) == j->ip4 && pkey == j->pkey && r->ecn != HCA_ECN_CE;
}

/*
 * Whether the frame passes all checks: those of decap_judge() for an unmarked frame of an RC QP
 * whose path does not change, from a peer with an IPv4 address, without a VLAN tag.
 */
static inline bool
is_usual(const struct hca_qp *qp, const struct hca_rxd *r, const uint8_t *p)
{
	const struct hca_qp_cfg *c = &qp->cfg;
	const struct hca_roce_opcode_info *op = r->info;
	uint32_t states = op->is_request ? TAKES_REQUESTS : TAKES_RESPONSES;

	return __atomic_load_n(&c->local_qpn, __ATOMIC_ACQUIRE) == r->qpi && r->qpi != 0 &&
	       (states & 1u << hca_qp_state(qp)) != 0 && c->service == HCA_ST_RC &&
	       HCA_BTH_TRANSPORT(r->opcode) == HCA_TRANSPORT_RC &&
	       (op->is_request || op->is_response) && r->ext_off == V4_BTH + HCA_ROCE_BTH_LEN &&
	       r->vlan == 0 && r->ecn != HCA_ECN_CE &&
	       !__atomic_load_n(&c->ask_addr, __ATOMIC_ACQUIRE) &&
	       __atomic_load_n(&c->vlan, __ATOMIC_RELAXED) == 0 &&
	       ip4_of(p + V4_L3) == __atomic_load_n(&c->ip4, __ATOMIC_RELAXED) &&
	       pkey_matches(__atomic_load_n(&c->pkey, __ATOMIC_RELAXED),
			    hca_get_be16(p + V4_BTH + 2));
}

static inline uint32_t
qkey_of(const uint8_t *p)
{
	uint32_t qkey;

	memcpy(&qkey, p + V4_BTH + HCA_ROCE_BTH_LEN, sizeof(qkey));
	return qkey;
}

static inline bool
is_accepted(const struct judged *j, const struct hca_rxd *r, const uint8_t *p)
{
	if (likely(r->flags & HCA_RXD_ALIKE && j->alike))
		return likely(!j->datagram) || qkey_of(p) == j->qkey;
	return same_as_last(j, r, p);
}

static void
remember(struct judged *j, const struct hca_qp *qp, const struct hca_rxd *r, const uint8_t *p)
{
	j->info = r->info;
	j->qpn = r->qpi;
	j->ip4 = ip4_of(p + V4_L3);
	memcpy(&j->pkey, p + V4_BTH + offsetof(struct hca_bth, pkey), sizeof(j->pkey));
	j->qkey = qkey_of(p);
	j->datagram = qp->cfg.service == HCA_ST_UD;
	/* not where path or MigReq must be checked, a mark counted, or the QPN was replaced */
	j->alike = !(r->flags & (HCA_RXD_ASKED | HCA_RXD_GSI)) && r->ecn != HCA_ECN_CE;
	/* not for datagrams, whose Q_Keys may differ */
	if (r->l3_off != V4_L3 || j->datagram || r->flags & HCA_RXD_ASKED)
		j->info = NULL;
}

/* ---- multicast: a copy for each member ---- */

static const struct hca_mcast_group *
group_of(const struct hca_pipe *h, struct rte_mbuf *m)
{
	uint8_t gid[16];

	GID_OF(rte_pktmbuf_mtod_offset(m, const uint8_t *, hca_rxd(m)->l3_off), daddr, gid);
	return hca_mcast_find(&h->core, gid);
}

struct rte_mbuf *
hca_decap_copy(struct hca_pipe *h, const struct rte_mbuf *m)
{
	struct rte_mbuf *c = rte_pktmbuf_alloc(h->resp_pool);
	char *to = c != NULL ? rte_pktmbuf_append(c, m->data_len) : NULL;

	if (to == NULL) {
		rte_pktmbuf_free(c);
		return NULL;
	}
	memcpy(to, rte_pktmbuf_mtod(m, const char *), m->data_len);
	return c;
}

static struct rte_mbuf *
copy_frame(struct hca_pipe *h, const struct rte_mbuf *m)
{
	struct rte_mbuf *c = hca_decap_copy(h, m);

	if (c == NULL) {
		HCA_COUNT(h, DECAP, rx_mcast_no_buffer);
		return NULL;
	}
	*hca_rxd(c) = *hca_rxd((struct rte_mbuf *)(uintptr_t)m);
	HCA_COUNT(h, DECAP, rx_mcast_copies);
	return c;
}

/* A datagram that a QP has sent, for one that does not want its own. */
static bool
is_own_voice(const struct hca_pipe *h, const struct hca_qp *qp, const struct hca_rxd *r,
	     const uint8_t *p)
{
	uint8_t gid[16];

	if (likely(!qp->cfg.no_own_group) ||
	    (hca_get_be32(p + r->ext_off + 4) & HCA_QPN_MASK) != qp->cfg.source_qpn)
		return false;
	GID_OF(p + r->l3_off, saddr, gid);
	return hca_gid_is_own(h->ctxmgt, gid, HCA_VLAN_VID(r->vlan));
}

static void
to_member(struct hca_pipe *h, struct hca_decap *d, const struct rte_mbuf *m, uint32_t qpn)
{
	uint32_t qpi = hca_qp_index(&h->core, qpn);
	const struct hca_qp *qp = &h->qp[qpi];
	struct hca_rxd r = *hca_rxd((struct rte_mbuf *)(uintptr_t)m);
	struct rte_mbuf *c;
	enum hca_counter why;

	if (is_own_voice(h, qp, &r, rte_pktmbuf_mtod(m, const uint8_t *)))
		return;
	HCA_COUNT(h, DECAP, rx_mcast_members);
	r.qpi = qpn;
	r.flags |= HCA_RXD_GROUP;
	why = decap_judge(h, &d->roce, qp, &r, rte_pktmbuf_mtod(m, const uint8_t *));
	if (why != HCA_CTR_N) {
		HCA_COUNT_AT(h, HCA_STAGE_DECAP, why);
		return;
	}
	c = copy_frame(h, m);
	if (c == NULL)
		return;
	hca_rxd(c)->qpi = qpi;
	hca_rxd(c)->generation = qp->cfg.generation;
	hca_decap_pass(d, HCA_EDGE_DECAP_EE, c);
}

/* Finish a multicast: delivered to members, or without any. */
static void
end_multicast(struct hca_pipe *h, struct hca_decap *d, const struct hca_to_members *t)
{
	if (h->pipe_mask != 0 && t->frame->hash.usr == HCA_HANDED_COPY)
		; /* the pipe that received it counts it */
	else if (t->served)
		HCA_COUNT(h, DECAP, rx_mcast_pkts);
	else
		HCA_COUNT(h, DECAP, rx_mcast_unattached);
	d->dead[d->n_dead++] = t->frame;
}

void
hca_decap_roce_multicast(struct hca_pipe *h, struct hca_decap *d, unsigned int room)
{
	struct hca_decap_roce *rd = &d->roce;

	for (; rd->mcast_at < rd->mcast_n; rd->mcast_at++) {
		struct hca_to_members *t = &rd->mcast[rd->mcast_at];
		const struct hca_mcast_group *g = group_of(h, t->frame);

		for (; g != NULL && t->next < HCA_MCAST_MEMBERS; t->next++) {
			uint32_t qpn = __atomic_load_n(&g->qpn[t->next], __ATOMIC_ACQUIRE);

			if (qpn == 0)
				continue;
			if (unlikely(((qpn ^ h->pipe_number) & h->pipe_mask) != 0)) {
				t->served = true; /* by its pipe, which has a copy */
				continue;
			}
			if (d->out[HCA_EDGE_DECAP_EE].n == room)
				return;
			to_member(h, d, t->frame, qpn);
			t->served = true;
		}
		end_multicast(h, d, t);
	}
	rd->mcast_at = rd->mcast_n = 0;
}

/* QPN 1 is the QP named by CONF_SPECIAL_QP. */
static inline void
redirect_gsi(const struct hca_pipe *h, struct hca_rxd *r)
{
	if (likely(r->qpi != HCA_QPN_GSI))
		return;
	r->qpi = __atomic_load_n(&h->ctxmgt->gsi_qpn, __ATOMIC_ACQUIRE);
	r->flags |= HCA_RXD_GSI;
}

/* All checks of frame m; NULL: it is dropped, or a multicast. */
static __rte_noinline struct hca_qp *
judge_any(struct hca_pipe *h, struct hca_decap *d, struct rte_mbuf *m, const uint8_t *p)
{
	struct hca_decap_roce *rd = &d->roce;
	struct hca_rxd *r = hca_rxd(m);
	enum hca_counter why;
	struct hca_qp *qp;

	if (unlikely(r->qpi == HCA_QPN_MULTICAST)) {
		rd->mcast[rd->mcast_n++] = (struct hca_to_members){.frame = m};
		return NULL;
	}
	redirect_gsi(h, r);
	qp = &h->qp[hca_qp_index(&h->core, r->qpi)];
	why = decap_judge(h, rd, qp, r, p);
	/* the MigReq bit of a CNP is 0 and says nothing */
	if (unlikely(r->flags & HCA_RXD_ASKED && why == HCA_CTR_N && r->opcode != HCA_BTH_CNP))
		why = hca_migrate_judge(h, qp, r, p + r->l3_off);
	if (unlikely(why != HCA_CTR_N)) {
		hca_decap_drop(h, d, m, why);
		return NULL;
	}
	if (unlikely(r->ecn == HCA_ECN_CE))
		note_mark(h, qp, r);
	return qp;
}

static inline const struct hca_qp *
judge_qp(struct hca_pipe *h, struct hca_decap *d, struct rte_mbuf *m, const uint8_t *p)
{
	const struct hca_rxd *r = hca_rxd(m);
	const struct hca_qp *qp = &h->qp[hca_qp_index(&h->core, r->qpi)];

	if (HCA_SHORT_WAYS && likely(is_usual(qp, r, p)))
		return qp;
	return judge_any(h, d, m, p);
}

void
hca_decap_roce_judge(struct hca_pipe *h, struct hca_decap *d, unsigned int from, unsigned int to)
{
	struct judged last = {.info = NULL, .alike = false};
	uint32_t generation = 0; /* of the last accepted frame's QP */

	for (unsigned int i = from; i < to; i++) {
		struct rte_mbuf *m = d->frame[i];
		const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);
		struct hca_rxd *r = hca_rxd(m);
		uint32_t qpn = r->qpi;

		if (unlikely(!hca_decap_icrc_matches(d, i))) {
			hca_decap_drop(h, d, m, HCA_CTR_rx_icrc_encapsulated);
			last.alike &= (r->flags & HCA_RXD_ALIKE) != 0;
			continue;
		}
		if (!HCA_SHORT_WAYS || !is_accepted(&last, r, p)) {
			const struct hca_qp *qp = judge_qp(h, d, m, p);

			if (unlikely(qp == NULL)) {
				last.alike = false;
				continue;
			}
			/* the next one compares with this one only if it is for the same QP */
			generation = qp->cfg.generation;
			last.alike = false;
			last.info = NULL;
			if (i + 1 < to && hca_rxd(d->frame[i + 1])->qpi == qpn)
				remember(&last, qp, r, p);
		}
		r->qpi = hca_qp_index(&h->core, r->qpi);
		r->generation = generation;
		if (is_request(r->info))
			hca_decap_pass(d, HCA_EDGE_DECAP_EE, m);
		else
			hca_decap_pass(d, HCA_EDGE_DECAP_REQ_RX, m);
	}
}
