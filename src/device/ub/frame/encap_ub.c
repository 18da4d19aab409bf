/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * UB in encap: builds frames from the packet descriptors of TPS, whose headers and payload their
 * operation tells, and from the answers of TPR.
 *
 * The peer waits for the PSN of each packet. A payload that cannot be read leaves as zeros that are
 * marked as poisoned, so no client stops a channel that all clients share.
 */

#include <string.h>

#include "ctxmgt/ctxmgt.h"
#include "ub/record.h"
#include "ub/frame/encap_ub_headers.h"
#include "ub/frame/frame.h"
#include "ub/tp/tp_wire.h"

/* ---- frames ---- */

/*
 * Begin a frame whose payload of len bytes follows n bytes of headers. A long one is where cache
 * lines begin, because stores and loads of all of it would cross from one to the next.
 */
static inline uint8_t *
begin_frame(struct rte_mbuf *m, uint32_t n, uint32_t len)
{
	uint32_t off = RTE_PKTMBUF_HEADROOM;

	if (len >= HCA_ENCAP_FUSED_MIN)
		off -= (uint32_t)((uintptr_t)m->buf_addr + off + n) & (RTE_CACHE_LINE_SIZE - 1);
	m->data_off = (uint16_t)off;
	return (uint8_t *)m->buf_addr + off;
}

static inline uint8_t *
frame_of(const struct rte_mbuf *m)
{
	return (uint8_t *)m->buf_addr + m->data_off;
}

/* The open burst with room for n more frames. */
static inline struct hca_encap_burst *
burst_for(struct hca_pipe *h, unsigned int n, uint64_t now)
{
	struct hca_encap *e = h->stage_ctx[HCA_STAGE_ENCAP];

	if (unlikely(e->open.frames + n > HCA_ENCAP_FRAMES))
		hca_encap_transmit_open(h, now);
	return &e->open;
}

/* The frame, which ends there, joins the burst. */
static inline void
join(struct hca_encap_burst *b, struct rte_mbuf *m, const uint8_t *end, uint32_t payload)
{
	m->ol_flags = 0;
	m->data_len = (uint16_t)(end - frame_of(m));
	m->pkt_len = m->data_len;
	b->bytes += m->data_len;
	b->payload += payload;
	b->frame[b->frames++] = m;
}

/* Pad; the ICRC is computed with those of the burst. */
static inline void
finish(struct hca_encap_burst *b, const struct hca_udp_template *t, struct rte_mbuf *m,
       uint8_t *end, uint32_t payload)
{
	uint8_t *l3 = frame_of(m) + t->l3;

	/* of the four bytes those behind the pad will be the ICRC */
	memset(end, 0, 4);
	end += hca_ub_pad(payload);
	b->span[b->spans] = hca_icrc_span_of(HCA_WIRE_UB, t->ip_version, l3, (uint32_t)(end - l3));
	b->icrc_at[b->spans++] = end;
	join(b, m, end + HCA_ICRC_LEN, payload);
}

/* A long payload from src is copied at the end of the run. */
static inline void
finish_long(struct hca_encap_burst *b, const struct hca_udp_template *t, struct rte_mbuf *m,
	    uint8_t *payload, const uint8_t *src, uint32_t len)
{
	uint8_t *l3 = frame_of(m) + t->l3;

	b->head[b->copies] =
		hca_icrc_span_of(HCA_WIRE_UB, t->ip_version, l3, (uint32_t)(payload - l3));
	b->copy[b->copies++] = (struct hca_encap_copy){payload, src, len, 0};
	join(b, m, payload + len + hca_ub_pad(len) + HCA_ICRC_LEN, len);
}

/* A copy, made where it is needed: a packet with no address is kept in registers. */
#define ADDRESS_OF_COPY(k) \
	(&(struct hca_encap_ub_packet){(k).h, (k).tp, (k).op, (k).displacement, (k).len})

/*
 * Payload after the headers, and the end of the frame. src: as hca_encap_ub_find() returned it.
 * False: its payload is late.
 */
static __rte_always_inline bool
fill(struct hca_encap_ub_packet k, struct hca_encap_burst *b, const struct hca_udp_template *t,
     struct rte_mbuf *m, const uint8_t *src, uint8_t *tah, uint8_t *payload)
{
	if (likely(src != NULL)) {
		if (k.len >= HCA_ENCAP_FUSED_MIN) {
			finish_long(b, t, m, payload, src, k.len);
			return true;
		}
		hca_copy(k.h->icrc, payload, src, k.len);
	} else if (k.len != 0 && !hca_encap_ub_gather(ADDRESS_OF_COPY(k), tah, payload)) {
		return false;
	}
	finish(b, t, m, payload + k.len, k.len);
	return true;
}

/* Headers of a frame that may not be like the one before; returns where the payload begins. */
static __rte_noinline uint8_t *
put_headers(const struct hca_encap_ub_packet *packet, const struct hca_udp_template *t,
	    const struct hca_tp_txd *d, struct rte_mbuf *m, const uint8_t *src, struct like *like,
	    uint8_t **tah)
{
	struct hca_encap_ub_packet k = *packet;
	uint8_t opcode = d->flags & HCA_TP_TXD_LAST ? k.op->last_opcode : k.op->opcode;
	const struct hca_ub_layout *at = hca_ub_layout_of(opcode, k.op->ta1, k.tp->cfg.flags);
	uint32_t n = t->transport + HCA_UB_RTPH_LEN + entities_len(k.tp) + at->beetah +
		     enables_of(k.op, at);
	uint8_t *frame = begin_frame(m, n, k.len), *payload;

	*tah = put_transport(k, d, put_path(t, udp_len_of(k, at), d->port, frame));
	payload = put_transaction(k.h, k.op, opcode, at, k.displacement, *tah);
	note_like(like, k, d, at, frame, *tah, payload);
	/* one without readable payload is marked in its headers */
	if (src == NULL && k.len != 0)
		like->frame = NULL;
	return payload;
}

static __rte_always_inline bool
build(struct hca_encap_ub_packet k, struct hca_encap_burst *b, const struct hca_udp_template *t,
      struct rte_mbuf *m, const uint8_t *src, struct like *like)
{
	const struct hca_tp_txd *d = hca_ub_txd(m);
	uint8_t *tah = NULL, *payload;

	if (HCA_SHORT_WAYS && likely((src != NULL || k.len == 0) && is_like(like, k, d)))
		payload = put_like(like, k, t, d, begin_frame(m, like->payload, k.len));
	else
		payload = put_headers(ADDRESS_OF_COPY(k), t, d, m, src, like, &tah);
	return fill(k, b, t, m, src, tah, payload);
}

/* ---- unreliable packets ---- */

/* Headers of a packet to the address in its record; false: its own address is gone. */
static bool
fill_template(struct hca_pipe *h, const struct hca_ta_op *op, struct hca_udp_template *t)
{
	const struct hca_ub_record_full *r = (const void *)hca_ub_record(h, op->req.record);
	const struct hca_ud_av *av = &r->av;
	const struct hca_gid_entry *g = hca_gid_get(h->ctxmgt, av->sgid_index);
	struct hca_ub_path p = {0};

	if (g == NULL)
		return false;
	p.udp = (struct hca_udp_path){
		.vlan = g->vlan_id != HCA_NO_VLAN,
		.vlan_tci = (uint16_t)(av->priority << 13 | (g->vlan_id & 0xfff)),
		.ip_version = g->ip_version,
		.tclass = av->tclass,
		.hop_limit = av->hop_limit,
	};
	memcpy(p.udp.dmac, av->dmac, sizeof(p.udp.dmac));
	memcpy(p.udp.smac, g->mac, sizeof(p.udp.smac));
	memcpy(p.udp.sip, g->gid, sizeof(p.udp.sip));
	memcpy(p.udp.dip, av->dgid, sizeof(p.udp.dip));
	hca_loopback_learn(h, av->dmac);
	return hca_ub_template_fill(&p, t) == 0;
}

static __rte_noinline bool
build_unreliable(struct hca_encap_ub_packet k, struct hca_encap_burst *b, struct rte_mbuf *m)
{
	struct hca_udp_template t;

	/* a record may be another's by now if its Jetty is gone */
	if (hca_ta_op_flags(k.op) & HCA_TA_OP_ORPHAN || !fill_template(k.h, k.op, &t)) {
		HCA_COUNT(k.h, ENCAP, ub_bad_av);
		return false;
	}
	return build(k, b, &t, m, NULL, &(struct like){.frame = NULL});
}

/* ---- packets of TPS ---- */

/* Whether the descriptor is of an earlier life of the TP. */
static inline bool
is_stale(const struct hca_tp *tp, uint32_t generation)
{
	/* in this order: a new generation is stored before its state */
	return hca_tp_state(tp) == HCA_TPS_RESET || generation != tp->cfg.generation;
}

/* It has arrived by the peer's word: its payload may be in other use. */
static bool
has_arrived(const struct hca_tp *tp, const struct hca_ta_op *op, const struct hca_tp_txd *d)
{
	uint32_t una = __atomic_load_n(&tp->tx.una, __ATOMIC_ACQUIRE);

	return hca_ta_op_flags(op) & HCA_TA_OP_ANSWERED || hca_psn_diff(d->psn, una) < 0;
}

static inline struct hca_encap_ub_packet
packet_of(struct hca_pipe *h, const struct hca_tp *tp, const struct hca_tp_txd *d)
{
	struct hca_ta_op *op = hca_ta_op_at(&h->ub->ops, d->op);

	return (struct hca_encap_ub_packet){.h = h,
					    .tp = tp,
					    .op = op,
					    .displacement = d->packet << tp->cfg.mtu_log,
					    .len = hca_ta_op_packet_len(op, d->packet,
									tp->cfg.mtu_log)};
}

/* A packet of a burst. */
struct found {
	struct hca_ta_op *op;
	const uint8_t *src; /* of its payload; NULL: it is gathered in the general way */
	uint32_t len;
};

/* The packet into a frame; false: no frame is sent. */
static inline bool
packet(struct hca_pipe *h, struct hca_encap_burst *b, struct hca_tp *tp, struct rte_mbuf *m,
       const struct found *f, struct like *like)
{
	const struct hca_tp_txd *d = hca_ub_txd(m);
	struct hca_encap_ub_packet k = {.h = h,
					.tp = tp,
					.op = f->op,
					.displacement = d->packet << tp->cfg.mtu_log,
					.len = f->len};

	if (unlikely(!hca_tp_sends(hca_tp_state(tp)))) {
		HCA_COUNT(h, ENCAP, ub_dropped_dead);
		return false;
	}
	if (unlikely(has_arrived(tp, k.op, d))) {
		HCA_COUNT(h, ENCAP, ub_dropped_answered);
		return false;
	}
	if (unlikely(d->tp == HCA_TP_UNRELIABLE))
		return build_unreliable(k, b, m);
	return build(k, b, &tp->encap.tmpl, m, f->src, like);
}

/* Consecutive descriptors of one TP. */
struct run {
	struct hca_tp *tp; /* NULL: none, or stale ones */
	uint32_t tpi, generation, seq;
	struct like like;
	unsigned int frames; /* in the burst when it began; payload is that of the burst */
	uint64_t payload;
};

/* Tell TPS how far the TP's descriptors are finished. */
static void
end_run(struct hca_pipe *h, struct hca_encap_burst *b, const struct run *r)
{
	struct hca_tp_encap *e;

	if (r->tp == NULL)
		return;
	hca_encap_copy_all(h, b);
	e = &r->tp->encap;
	__atomic_store_n(&e->tx_packets, e->tx_packets + (b->frames - r->frames), __ATOMIC_RELAXED);
	__atomic_store_n(&e->tx_bytes, e->tx_bytes + (b->payload - r->payload), __ATOMIC_RELAXED);
	__atomic_store_n(&e->done_seq, r->seq, __ATOMIC_RELEASE);
	if (h->edge[HCA_EDGE_TPS_ENCAP].ring != NULL)
		hca_tp_msg_send(h, HCA_STAGE_ENCAP, HCA_STAGE_TPS, r->tpi, HCA_MSG_COPIED);
}

static void
begin_run(struct hca_pipe *h, struct hca_encap_burst *b, struct run *r, const struct hca_tp_txd *d)
{
	struct hca_tp *tp = &h->ub->tp[d->tp];

	end_run(h, b, r);
	r->tp = is_stale(tp, d->generation) ? NULL : tp;
	r->tpi = d->tp;
	r->generation = d->generation;
	r->seq = 0;
	r->like.frame = NULL;
	r->frames = b->frames;
	r->payload = b->payload;
}

static inline bool
in_run(struct hca_pipe *h, struct hca_encap_burst *b, struct run *r, struct rte_mbuf *m,
       const struct found *f)
{
	if (unlikely(r->tp == NULL)) {
		HCA_COUNT(h, ENCAP, stale_descriptors);
		return false;
	}
	r->seq = hca_ub_txd(m)->seq;
	return packet(h, b, r->tp, m, f, &r->like);
}

/* Payloads are prefetched. */
static inline void
find_all(struct hca_pipe *h, void *const *objs, struct found *f, unsigned int n)
{
	struct hca_encap_ub_memory memory = {.entry = NULL};
	uint32_t tpi = UINT32_MAX, generation = 0;
	const struct hca_tp *tp = NULL;
	bool stale = true;

	for (unsigned int i = 0; i < n; i++) {
		const struct hca_tp_txd *d = hca_ub_txd(objs[i]);
		struct hca_encap_ub_packet k;

		if (unlikely(d->tp != tpi || d->generation != generation)) {
			tpi = d->tp;
			generation = d->generation;
			tp = &h->ub->tp[tpi];
			stale = is_stale(tp, generation);
		}
		k = packet_of(h, tp, d);
		f[i] = (struct found){.op = k.op, .len = k.len};
		if (unlikely(stale))
			continue;
		f[i].src = hca_encap_ub_find(k, &memory);
		rte_prefetch0(f[i].src);
	}
}

static void
packet_burst(struct hca_pipe *h, void *const *objs, unsigned int n, uint64_t now)
{
	struct hca_encap_burst *b = burst_for(h, n, now);
	struct run run = {.tp = NULL, .tpi = UINT32_MAX};
	struct found found[HCA_BURST];

	find_all(h, objs, found, n);
	for (unsigned int i = 0; i < n; i++) {
		const struct hca_tp_txd *d = hca_ub_txd(objs[i]);

		if (d->tp != run.tpi || d->generation != run.generation)
			begin_run(h, b, &run, d);
		if (unlikely(!in_run(h, b, &run, objs[i], &found[i])))
			rte_pktmbuf_free(objs[i]);
	}
	end_run(h, b, &run);
	hca_encap_transmit_open(h, now);
}

void
hca_encap_process_tps(struct hca_pipe *h, void *const *objs, unsigned int n, uint64_t now)
{
	for (unsigned int i = 0; i < n; i += HCA_BURST)
		packet_burst(h, objs + i, RTE_MIN(n - i, HCA_BURST), now);
}

/* ---- answers of TPR ---- */

/* Transport headers behind the RTPH. */
static uint32_t
extensions_of(const struct hca_tp_answer *a)
{
	if (unlikely(a->kind == HCA_TP_CNP))
		return HCA_UB_CETPH_CNP_LEN;
	return a->kind == HCA_TP_TPSACK ? HCA_UB_SAETPH_LEN + HCA_UB_SACK_BYTES(a->sack_code) : 0;
}

static void
answer(const struct hca_pipe *h, struct hca_encap_burst *b, const struct hca_tp *tp,
       struct rte_mbuf *m)
{
	const struct hca_tp_answer *a = &hca_ub_answer(m)->answer;
	const struct hca_udp_template *t = &tp->encap.tmpl;
	uint32_t n = HCA_UB_RTPH_LEN + extensions_of(a);
	uint8_t *tph = put_path(t, HCA_UDP_LEN + n + HCA_ICRC_LEN, a->port, begin_frame(m, 0, 0));
	struct hca_ub_headers headers;

	if (unlikely(a->kind == HCA_TP_CNP))
		hca_udp_set_tclass(tph - t->transport + t->l3, t->ip_version,
				   HCA_PARAMETER(h, cnp_dscp) << 2);
	hca_tp_write_answer(tp, a, &headers);
	hca_ub_put_headers(tph, &headers);
	finish(b, t, m, tph + n, 0);
}

/* They leave with the packets of this poll, or at its end. */
static void
answer_burst(struct hca_pipe *h, void *const *objs, unsigned int n, uint64_t now)
{
	struct hca_encap_burst *b = burst_for(h, n, now);

	for (unsigned int i = 0; i < n; i++) {
		const struct hca_ub_answer *a = hca_ub_answer(objs[i]);
		const struct hca_tp *tp = &h->ub->tp[a->tp];

		if (likely(!is_stale(tp, a->generation))) {
			answer(h, b, tp, objs[i]);
			continue;
		}
		HCA_COUNT(h, ENCAP, stale_descriptors);
		rte_pktmbuf_free(objs[i]);
	}
	/* the ring of looped-back frames has promised room now */
	if (unlikely(__atomic_load_n(&h->loop.on, __ATOMIC_ACQUIRE) != 0))
		hca_encap_transmit_open(h, now);
}

void
hca_encap_process_tpr(struct hca_pipe *h, void *const *objs, unsigned int n, uint64_t now)
{
	for (unsigned int i = 0; i < n; i += HCA_BURST)
		answer_burst(h, objs + i, RTE_MIN(n - i, HCA_BURST), now);
}
