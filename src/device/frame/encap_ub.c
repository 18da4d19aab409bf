/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * UB in encap: builds frames from the packet descriptors of TPS, whose headers and payload their
 * operation tells, and from the answers of TPR.
 *
 * A packet has a PSN that the peer waits for, whatever has become of its payload: what cannot be
 * read goes out as zeros that are marked as poisoned, so no user stops a channel of all.
 */

#include <string.h>

#include "ctxmgt/ctxmgt.h"
#include "engine/record_ub.h"
#include "frame/encap.h"
#include "ub/tp_wire.h"
#include "ub/token.h"
#include "ub/ub_stage.h"
#include "vtp/foreign.h"

#define POISON 0x04u /* in byte 1 of BTAH and ATAH */
#define MT_EN 0x08u  /* in byte 4 of the BTAH */

/* ---- headers ---- */

/* From Ethernet to UDP, with the packet's own source port; returns where the RTPH begins. */
static uint8_t *
put_path(const struct hca_udp_template *t, uint32_t udp_len, uint16_t port, uint8_t *frame)
{
	uint8_t *tph = hca_udp_template_put(t, udp_len, frame), *l3 = frame + t->l3;
	uint32_t label;

	hca_put_be16(tph - HCA_UDP_LEN, port);
	if (t->ip_version != 6)
		return tph;
	label = hca_get_be32(l3) & ~UINT32_C(0xfffff);
	hca_put_be32(l3, label | hca_ub_flow_label(port));
	return tph;
}

static uint8_t *
put_entities(const struct hca_tp_cfg *cfg, uint8_t *p)
{
	if (likely(!(cfg->flags & HCA_TP_FLAG_EIDH)))
		return p;
	hca_put_be32(p, 0);
	memcpy(p + HCA_UB_UPIH_LEN, cfg->own_eid, 16);
	memcpy(p + HCA_UB_UPIH_LEN + 16, cfg->peer_eid, 16);
	return p + HCA_UB_UPIH_LEN + HCA_UB_EIDH_LEN;
}

/* BTAH or ATAH: both have these members at the same places. */
static void
put_first(const struct hca_ta_op *op, uint8_t opcode, const struct hca_ub_layout *at, uint8_t *tah)
{
	tah[0] = opcode;
	tah[1] = op->ta1;
	hca_put_be16(tah + 2, op->tassn);
	hca_put_be32(tah + 4, (uint32_t)op->ta4 << 24 | (op->rc & 0xffffff));
	if (hca_ub_ta_ops[opcode].is & HCA_UB_OP_RESPONSE)
		return;
	/* only where a queue is addressed: of a write, in its last packet */
	tah[4] = (uint8_t)((tah[4] & ~MT_EN) | (at->mtetah != 0 ? MT_EN : 0));
}

/* Headers of requests that name memory or a queue. */
static void
put_target(const struct hca_ta_op *op, const struct hca_ub_layout *at, uint32_t displacement,
	   uint8_t *tah)
{
	if (at->maetah != 0)
		hca_ub_maetah_put(tah + at->maetah,
				  &(struct hca_ub_maetah){.address = op->req.address + displacement,
							  .token_id = op->req.token_id,
							  .length = op->length});
	if (at->mtetah != 0)
		hca_put_be32(tah + at->mtetah, op->req.tc);
	if (at->tvetah != 0)
		hca_put_be32(tah + at->tvetah, op->req.token);
	if (at->udetah != 0)
		hca_put_be32(tah + at->udetah, op->req.user);
}

/* Headers of last packets that carry data of 64 bits. */
static void
put_data(const struct hca_ta_op *op, const struct hca_ub_layout *at, uint8_t *tah)
{
	bool write = at->maetah != 0;

	if (at->immetah != 0)
		hca_ub_immetah_put(
			tah + at->immetah,
			&(struct hca_ub_immetah){.immediate = op->req.data,
						 .token_value = write ? op->req.notify_token : 0,
						 .length = write ? op->req.total : 0});
	if (at->ntfetah != 0)
		hca_ub_ntfetah_put(tah + at->ntfetah,
				   &(struct hca_ub_ntfetah){.address = op->req.notify,
							    .token_id = op->req.notify_token_id,
							    .token_value = op->req.notify_token,
							    .data = op->req.data});
}

/* Headers of Reads, atomics and their responses, and offsets of Sends. */
static void
put_place(const struct hca_ta_op *op, const struct hca_ub_layout *at, uint32_t displacement,
	  uint8_t *tah)
{
	if (at->taidetah != 0)
		hca_ub_taidetah_put(tah + at->taidetah,
				    &(struct hca_ub_taidetah){.taid = HCA_UB_TAID_OF(op->tassn)});
	if (at->ofstetah != 0)
		hca_ub_ofstetah_put(tah + at->ofstetah,
				    &(struct hca_ub_ofstetah){.offset = HCA_UB_READ_OFFSET(
								      op->offset, displacement)});
}

/* The byte enables of a Write_with_be stand in its record. */
static uint8_t *
put_enables(const struct hca *h, const struct hca_ta_op *op, const struct hca_ub_layout *at,
	    uint8_t *tah)
{
	uint8_t *p = tah + at->beetah;

	if (likely(!(at->headers & HCA_UB_EXT(BEETAH))))
		return p;
	memcpy(p, hca_ub_record_enables(hca_ub_record(h, op->req.record)), op->length / 8);
	return p + op->length / 8;
}

/* Transaction headers of a packet; returns where its payload begins. */
static uint8_t *
put_transaction(const struct hca *h, const struct hca_ta_op *op, uint8_t opcode,
		uint32_t displacement, uint8_t form, uint8_t *tah)
{
	const struct hca_ub_layout *at = hca_ub_layout_of(opcode, op->ta1, form);

	put_first(op, opcode, at, tah);
	put_place(op, at, displacement, tah);
	if (hca_ub_ta_ops[opcode].is & HCA_UB_OP_RESPONSE)
		return tah + at->beetah;
	put_target(op, at, displacement, tah);
	put_data(op, at, tah);
	return put_enables(h, op, at, tah);
}

/* ---- payload ---- */

/* A packet being built. */
struct packet {
	struct hca *h;
	const struct hca_tp *tp;
	struct hca_ta_op *op;
	uint32_t displacement; /* of its payload in that of the operation */
	uint32_t len;
};

enum gathered {
	GATHERED,
	GONE, /* it never will be */
	LATE, /* foreign memory did not answer in time */
};

static enum gathered
copy_foreign(struct hca *h, const struct hca_mpt_entry *e, uint64_t va, uint8_t *dst, uint32_t n)
{
	int rc = hca_foreign_read(&h->core, e, va, dst, n);

	return rc == 0 ? GATHERED : rc == -EAGAIN ? LATE : GONE;
}

static enum gathered
copy_region(struct hca *h, const struct hca_mpt_entry *e, uint64_t va, uint8_t *dst, uint32_t n)
{
	if (unlikely(e->foreign))
		return copy_foreign(h, e, va, dst, n);
	while (n != 0) {
		uint32_t run;
		const uint8_t *src = hca_vtp_ptr(&h->vtp, e, va, n, &run);

		h->icrc->copy(dst, src, run);
		dst += run;
		va += run;
		n -= run;
	}
	return GATHERED;
}

/* Any live region of its PD may be sent from. */
static enum gathered
gather_local(struct hca *h, uint32_t pd, uint32_t key, uint64_t va, uint8_t *dst, uint32_t n)
{
	const struct hca_mpt_entry *e = hca_vtp_check(&h->vtp, key, pd, HCA_MPT_FLAG_REGION, va, n);

	if (unlikely(e == NULL))
		e = hca_foreign_find(&h->vtp, key, pd, NULL, HCA_MPT_FLAG_REGION, va, n);
	return e != NULL ? copy_region(h, e, va, dst, n) : GONE;
}

/* From byte `skip` of the list on. */
static enum gathered
gather_sges(struct hca *h, uint32_t pd, const struct hca_sge *sge, unsigned int nsge, uint32_t skip,
	    uint8_t *dst, uint32_t n)
{
	enum gathered got = GATHERED;

	for (unsigned int i = 0; i < nsge && n != 0 && got == GATHERED; i++) {
		uint32_t run = sge[i].len > skip ? RTE_MIN(sge[i].len - skip, n) : 0;

		if (run != 0)
			got = gather_local(h, pd, sge[i].lkey, sge[i].va + skip, dst, run);
		skip -= RTE_MIN(skip, sge[i].len);
		dst += run;
		n -= run;
	}
	return n == 0 ? got : GONE;
}

static enum gathered
gather_record(const struct packet *k, uint32_t pd, uint8_t *dst)
{
	const struct hca_ub_record *r = hca_ub_record(k->h, k->op->req.record);
	const uint8_t *data = hca_ub_record_data(r);
	uint32_t from = k->op->req.from + k->displacement;

	if (data == NULL)
		return gather_sges(k->h, pd, hca_ub_record_sges(r), r->nsge, from, dst, k->len);
	memcpy(dst, data + from, k->len);
	return GATHERED;
}

/* A Read_response: the right was judged when the request came, except that it may be gone. */
static enum gathered
gather_segment(const struct packet *k, uint8_t *dst)
{
	struct hca_token_access a = {.va = k->op->read.va + k->displacement,
				     .len = k->len,
				     .token_id = k->op->key,
				     .right = HCA_ACCESS_REMOTE_READ};
	const struct hca_mpt_entry *e;

	if (hca_token_check_again(&k->h->core, &a, &e) != HCA_TOKEN_OK)
		return GONE;
	return copy_region(k->h, e, a.va, dst, k->len);
}

/* The old value of an atomic: its least significant byte first, unless the TP says otherwise. */
static enum gathered
put_result(const struct packet *k, uint8_t *dst)
{
	bool turn = (k->tp->cfg.flags & HCA_TP_FLAG_RSP_BE) != 0;

	for (uint32_t i = 0; i < k->len; i++)
		dst[i] = k->op->result[turn ? k->len - 1 - i : i];
	return GATHERED;
}

/* The Jetty of a request lives, as it was when it made the request. */
static const struct hca_qp *
jetty_of(const struct packet *k)
{
	const struct hca_qp *qp = &k->h->qp[k->op->object & k->h->qp_mask];

	/* in this order: a new generation is stored before its state */
	if (hca_ta_op_flags(k->op) & HCA_TA_OP_ORPHAN || hca_qp_state(qp) == HCA_QPS_RST ||
	    qp->cfg.generation != k->op->generation)
		return NULL;
	return qp;
}

static enum gathered
gather_request(const struct packet *k, uint8_t *dst)
{
	const struct hca_qp *qp = jetty_of(k);

	if (unlikely(qp == NULL))
		return GONE;
	if (likely(k->op->source == HCA_TA_OP_LOCAL))
		return gather_local(k->h, qp->cfg.pd, k->op->key, k->op->req.va + k->displacement,
				    dst, k->len);
	return gather_record(k, qp->cfg.pd, dst);
}

static enum gathered
gather(const struct packet *k, uint8_t *dst)
{
	switch (k->op->source) {
	case HCA_TA_OP_LOCAL:
	case HCA_TA_OP_RECORD:
		return gather_request(k, dst);
	case HCA_TA_OP_TOKEN:
		return gather_segment(k, dst);
	case HCA_TA_OP_RESULT:
		return put_result(k, dst);
	default:
		return GONE;
	}
}

/*
 * Payload of the packet. False: it is late for the first time, and the packet counts as lost on the
 * wire. What is late again, or gone, becomes zeros, and the packet says so.
 */
static bool
put_payload(const struct packet *k, uint8_t *tah, uint8_t *dst)
{
	struct hca_ta_op *op = k->op;
	enum gathered got = op->encap & HCA_TA_OP_POISONED ? GONE : GATHERED;

	if (got == GATHERED && k->len != 0)
		got = gather(k, dst);
	if (likely(got == GATHERED))
		return true;
	if (got == LATE && !(op->encap & HCA_TA_OP_LATE)) {
		op->encap |= HCA_TA_OP_LATE;
		HCA_COUNT(k->h, ENCAP, ub_gather_late);
		return false;
	}
	__atomic_store_n(&op->encap, op->encap | HCA_TA_OP_POISONED, __ATOMIC_RELEASE);
	HCA_COUNT(k->h, ENCAP, ub_poisoned);
	tah[1] |= POISON;
	memset(dst, 0, k->len);
	return true;
}

/* ---- frames ---- */

/* Pad and ICRC; the frame joins the burst. */
static void
finish(struct hca_encap_burst *b, const struct hca_udp_template *t, struct rte_mbuf *m,
       uint8_t *end, uint32_t payload)
{
	uint8_t *frame = hca_encap_frame(m), *l3 = frame + t->l3;
	uint32_t pad = hca_ub_pad(payload);

	memset(end, 0, pad);
	end += pad;
	b->span[b->spans] = hca_icrc_span_of(HCA_WIRE_UB, t->ip_version, l3, (uint32_t)(end - l3));
	b->icrc_at[b->spans++] = end;
	end += HCA_ICRC_LEN;
	m->data_off = RTE_PKTMBUF_HEADROOM;
	m->ol_flags = 0;
	m->data_len = (uint16_t)(end - frame);
	m->pkt_len = m->data_len;
	b->bytes += m->data_len;
	b->payload += payload;
	b->frame[b->frames++] = m;
}

/* Lengths are known when everything has been written. */
static void
set_lengths(const struct hca_udp_template *t, uint8_t *frame, uint32_t udp_len)
{
	uint8_t *l3 = frame + t->l3;

	hca_put_be16(frame + t->transport - 4, (uint16_t)udp_len);
	if (t->ip_version == 6) {
		hca_put_be16(l3 + 4, (uint16_t)udp_len);
		return;
	}
	hca_put_be16(l3 + 2, (uint16_t)(udp_len + HCA_IPV4_LEN));
	hca_put_be16(l3 + 10, (uint16_t)~hca_ip_fold(t->ip_sum + udp_len + HCA_IPV4_LEN));
}

/* Transport header and what is in front of the transaction header, whose place is returned. */
static uint8_t *
put_transport(const struct packet *k, const struct hca_tp_txd *d, uint8_t *tph)
{
	struct hca_ub_rtph rtph;

	if (unlikely(d->tp == HCA_TP_UNRELIABLE))
		rtph = (struct hca_ub_rtph){.last = 1,
					    .opcode = HCA_UB_TP_UTP,
					    .pad = hca_ub_pad(k->len)};
	else
		hca_tp_write_packet(k->tp, k->op, d, &rtph);
	hca_ub_rtph_put(tph, &rtph);
	return put_entities(&k->tp->cfg, tph + HCA_UB_RTPH_LEN);
}

/* False: its payload is late. */
static bool
build(const struct packet *k, struct hca_encap_burst *b, const struct hca_udp_template *t,
      struct rte_mbuf *m)
{
	const struct hca_tp_txd *d = hca_ub_txd(m);
	uint8_t *frame = hca_encap_frame(m), *tph = put_path(t, 0, d->port, frame), *tah, *payload;
	uint8_t opcode = d->flags & HCA_TP_TXD_LAST ? k->op->last_opcode : k->op->opcode;

	tah = put_transport(k, d, tph);
	payload = put_transaction(k->h, k->op, opcode, k->displacement, k->tp->cfg.flags, tah);
	if (unlikely(!put_payload(k, tah, payload)))
		return false;
	set_lengths(t, frame,
		    (uint32_t)(payload - tph) + k->len + hca_ub_pad(k->len) + HCA_UDP_LEN +
			    HCA_ICRC_LEN);
	finish(b, t, m, payload + k->len, k->len);
	return true;
}

/* ---- unreliable packets ---- */

/* Headers of a packet to the address in its record; false: its own address is gone. */
static bool
fill_template(struct hca *h, const struct hca_ta_op *op, struct hca_udp_template *t)
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

static bool
build_unreliable(const struct packet *k, struct hca_encap_burst *b, struct rte_mbuf *m)
{
	struct hca_udp_template t;

	/* a record may be another's by now if its Jetty is gone */
	if (hca_ta_op_flags(k->op) & HCA_TA_OP_ORPHAN || !fill_template(k->h, k->op, &t)) {
		HCA_COUNT(k->h, ENCAP, ub_bad_av);
		return false;
	}
	return build(k, b, &t, m);
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

/* The packet into a frame; false: none is sent. */
static bool
packet(struct hca *h, struct hca_encap_burst *b, struct hca_tp *tp, struct rte_mbuf *m)
{
	const struct hca_tp_txd *d = hca_ub_txd(m);
	struct hca_ta_op *op = hca_ta_op_at(&h->ub->ops, d->op);
	struct packet k = {.h = h,
			   .tp = tp,
			   .op = op,
			   .displacement = d->packet << tp->cfg.mtu_log,
			   .len = hca_ta_op_packet_len(op, d->packet, tp->cfg.mtu_log)};

	if (unlikely(!hca_tp_sends(hca_tp_state(tp)))) {
		HCA_COUNT(h, ENCAP, ub_dropped_dead);
		return false;
	}
	if (unlikely(has_arrived(tp, op, d))) {
		HCA_COUNT(h, ENCAP, ub_dropped_answered);
		return false;
	}
	if (unlikely(d->tp == HCA_TP_UNRELIABLE))
		return build_unreliable(&k, b, m);
	return build(&k, b, &tp->encap.tmpl, m);
}

/* Consecutive descriptors of one TP. */
struct run {
	struct hca_tp *tp; /* NULL: none, or stale ones */
	uint32_t tpi, generation, seq;
	unsigned int frames; /* in the burst when it began; likewise payload */
	uint64_t payload;
};

/* Tell TPS how far the TP's descriptors are finished. */
static void
end_run(struct hca *h, const struct hca_encap_burst *b, const struct run *r)
{
	struct hca_tp_encap *e;

	if (r->tp == NULL)
		return;
	e = &r->tp->encap;
	__atomic_store_n(&e->tx_packets, e->tx_packets + (b->frames - r->frames), __ATOMIC_RELAXED);
	__atomic_store_n(&e->tx_bytes, e->tx_bytes + (b->payload - r->payload), __ATOMIC_RELAXED);
	__atomic_store_n(&e->done_seq, r->seq, __ATOMIC_RELEASE);
	if (h->edge[HCA_EDGE_TPS_ENCAP].ring != NULL)
		hca_tp_msg_send(h, HCA_STAGE_ENCAP, HCA_STAGE_TPS, r->tpi, HCA_MSG_COPIED);
}

static void
begin_run(struct hca *h, const struct hca_encap_burst *b, struct run *r, const struct hca_tp_txd *d)
{
	struct hca_tp *tp = &h->ub->tp[d->tp];

	end_run(h, b, r);
	*r = (struct run){.tp = is_stale(tp, d->generation) ? NULL : tp,
			  .tpi = d->tp,
			  .generation = d->generation,
			  .frames = b->frames,
			  .payload = b->payload};
}

static bool
in_run(struct hca *h, struct hca_encap_burst *b, struct run *r, struct rte_mbuf *m)
{
	if (unlikely(r->tp == NULL)) {
		HCA_COUNT(h, ENCAP, stale_descriptors);
		return false;
	}
	r->seq = hca_ub_txd(m)->seq;
	return packet(h, b, r->tp, m);
}

static void
packet_burst(struct hca *h, void *const *objs, unsigned int n, uint64_t now)
{
	struct run run = {.tp = NULL, .tpi = UINT32_MAX};
	struct hca_encap_burst b;

	b.frames = b.spans = 0;
	b.bytes = b.payload = 0;
	for (unsigned int i = 0; i < n; i++) {
		const struct hca_tp_txd *d = hca_ub_txd(objs[i]);

		if (d->tp != run.tpi || d->generation != run.generation)
			begin_run(h, &b, &run, d);
		if (unlikely(!in_run(h, &b, &run, objs[i])))
			rte_pktmbuf_free(objs[i]);
	}
	end_run(h, &b, &run);
	hca_encap_transmit(h, &b, now);
}

void
hca_encap_process_tps(struct hca *h, void *const *objs, unsigned int n, uint64_t now)
{
	for (unsigned int i = 0; i < n; i += HCA_BURST)
		packet_burst(h, objs + i, RTE_MIN(n - i, HCA_BURST), now);
}

/* ---- answers of TPR ---- */

static void
answer(struct hca_encap_burst *b, const struct hca_tp *tp, struct rte_mbuf *m)
{
	const struct hca_tp_answer *a = &hca_ub_answer(m)->answer;
	const struct hca_udp_template *t = &tp->encap.tmpl;
	uint8_t *frame = hca_encap_frame(m), *tph = put_path(t, 0, a->port, frame);
	struct hca_ub_headers headers;
	uint32_t n;

	hca_tp_write_answer(tp, a, &headers);
	n = (uint32_t)hca_ub_put_headers(tph, &headers);
	set_lengths(t, frame, n + HCA_UDP_LEN + HCA_ICRC_LEN);
	finish(b, t, m, tph + n, 0);
}

static void
answer_burst(struct hca *h, void *const *objs, unsigned int n, uint64_t now)
{
	struct hca_encap_burst b;

	b.frames = b.spans = 0;
	b.bytes = b.payload = 0;
	for (unsigned int i = 0; i < n; i++) {
		const struct hca_ub_answer *a = hca_ub_answer(objs[i]);
		const struct hca_tp *tp = &h->ub->tp[a->tp];

		if (likely(!is_stale(tp, a->generation))) {
			answer(&b, tp, objs[i]);
			continue;
		}
		HCA_COUNT(h, ENCAP, stale_descriptors);
		rte_pktmbuf_free(objs[i]);
	}
	hca_encap_transmit(h, &b, now);
}

void
hca_encap_process_tpr(struct hca *h, void *const *objs, unsigned int n, uint64_t now)
{
	for (unsigned int i = 0; i < n; i += HCA_BURST)
		answer_burst(h, objs + i, RTE_MIN(n - i, HCA_BURST), now);
}
