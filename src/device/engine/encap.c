/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * encap: builds frames from the packet descriptors of RTC and EE. Per burst: find every payload and
 * prefetch it; write headers and payload into the mbuf; compute the ICRC of the short frames
 * together; pass them to the port. Key, PD, rights and range are checked here, once, at the copy.
 *
 * If the port accepts fewer frames than offered, the rest waits in `backlog` and credit (room) is
 * withheld, back to the doorbells. A port that is only slow loses nothing: h->tx_wait tells RRC how
 * long frames wait, so that ack timeouts do not run meanwhile. If the port has no link, or accepts
 * nothing for cfg.port_stall_ns, encap discards and counts frames until it accepts some again.
 */

#include <errno.h>
#include <string.h>

#include <rte_malloc.h>
#include <rte_prefetch.h>

#include "abi_cqe.h"
#include "core/tsan.h"
#include "ctxmgt/ctxmgt.h"
#include "engine/encap_header.h"
#include "engine/impl.h"
#include "engine/pkt.h"
#include "queues/eq.h"
#include "vtp/foreign.h"

#define BACKLOG 128u		/* frames, a power of two, at least 2 bursts */
#define LINK_EVERY_NS 10000000u /* interval of queries of the port's link */
#define FUSED_MIN 257u		/* payload bytes from which copying and CRC in one pass is faster */

/* Headers of the last datagram: the next one often has the same destination. */
struct ud_template {
	struct hca_roce_template tmpl;
	struct hca_ud_av av;
	uint32_t qpi, generation;
	uint16_t pkey; /* the QP's at that time; SQD may change it */
	uint64_t gids; /* state of the GID table they were made from */
};

struct encap {
	struct rte_mbuf *backlog[BACKLOG];
	uint64_t kept_at[BACKLOG]; /* arrival of each, ns */
	struct ud_template ud;
	uint32_t head, tail;	/* free running */
	uint64_t stalled_since; /* 0: the port accepted frames last time */
	uint64_t link_at;	/* time of the next query of the link */
	bool discarding, link_down;
	bool late; /* the last failed gather was because foreign memory did not answer in time */
};

/* A burst being built. */
struct burst {
	struct rte_mbuf *frame[HCA_BURST];
	struct hca_icrc_span span[HCA_BURST];
	uint8_t *icrc_at[HCA_BURST];
	unsigned int frames, spans;
	uint64_t bytes, payload;
};

int
hca_encap_init(struct hca *h)
{
	struct encap *e =
		rte_zmalloc_socket("encap", sizeof(*e), RTE_CACHE_LINE_SIZE, h->cfg.socket_id);

	h->stage_ctx[HCA_STAGE_ENCAP] = e;
	return e == NULL ? -ENOMEM : 0;
}

void
hca_encap_fini(struct hca *h)
{
	struct encap *e = h->stage_ctx[HCA_STAGE_ENCAP];

	if (e == NULL)
		return;
	for (; e->tail != e->head; e->tail++)
		rte_pktmbuf_free(e->backlog[e->tail & (BACKLOG - 1)]);
	rte_free(e);
}

static inline uint32_t
backlog_count(const struct encap *e)
{
	return e->head - e->tail;
}

/*
 * Both incoming edges may deliver their room in one loop, so each gets half. The destination of a
 * frame is not known yet, so there must be room for it in the port and in the loopback ring.
 */
unsigned int
hca_encap_room(struct hca *h)
{
	const struct encap *e = h->stage_ctx[HCA_STAGE_ENCAP];
	uint32_t room = BACKLOG - backlog_count(e);

	if (unlikely(__atomic_load_n(&h->loop.on, __ATOMIC_ACQUIRE) != 0))
		room = RTE_MIN(room, hca_loopback_room(h));
	return room / 2;
}

/*
 * Publish how long the oldest frame has waited and, after a long wait, how long the first ones sent
 * had waited.
 */
static void
note_wait(struct hca *h, const struct encap *e, uint32_t left, uint64_t now)
{
	struct hca_tx_wait *w = &h->tx_wait;
	uint32_t n = backlog_count(e);

	if (left != 0) {
		uint64_t waited = now - e->kept_at[(e->tail - left) & (BACKLOG - 1)];
		bool old = now > w->left_at + HCA_TX_WAIT_FACTOR * w->waited;

		if (old || HCA_TX_WAIT_FACTOR * waited >= w->waited) {
			waited = old ? waited : RTE_MAX(waited, w->waited);
			__atomic_store_n(&w->left_at, now, __ATOMIC_RELAXED);
			__atomic_store_n(&w->waited, waited, __ATOMIC_RELAXED);
		}
	}
	__atomic_store_n(&w->since, n != 0 ? e->kept_at[e->tail & (BACKLOG - 1)] : 0,
			 __ATOMIC_RELEASE);
	__atomic_store_n(&h->backlog, n, __ATOMIC_RELAXED);
}

static void
set_discarding(struct hca *h, struct encap *e, bool on)
{
	if (e->discarding == on)
		return;
	e->discarding = on;
	__atomic_store_n(&h->discarding, on, __ATOMIC_RELAXED);
}

static void
discard(struct hca *h, struct encap *e, enum hca_counter why)
{
	hca_count(&h->line[HCA_STAGE_ENCAP], why, backlog_count(e));
	for (; e->tail != e->head; e->tail++)
		rte_pktmbuf_free(e->backlog[e->tail & (BACKLOG - 1)]);
}

/* Query the link; report a change. */
static bool
link_is_up(struct hca *h, struct encap *e)
{
	bool up = h->port->ops->link_up(h->port);

	if (up == e->link_down) {
		e->link_down = !up;
		__atomic_store_n(&h->link_down, e->link_down, __ATOMIC_RELAXED);
		hca_eq_raise_port(&h->core, HCA_STAGE_ENCAP, up ? HCA_PORT_ACTIVE : HCA_PORT_DOWN);
	}
	return up;
}

/* The port did not accept everything: check how long, and whether there is a link. */
static void
port_stalled(struct hca *h, struct encap *e, bool progress, uint64_t now)
{
	if (progress || e->stalled_since == 0) {
		e->stalled_since = now ? now : 1;
		if (progress)
			set_discarding(h, e, false);
	}
	if (!link_is_up(h, e)) {
		discard(h, e, HCA_CTR_tx_discard_link_down);
		/* nothing waits any more: the time starts anew */
		e->stalled_since = 0;
		set_discarding(h, e, false);
	} else if (e->discarding || now - e->stalled_since >= h->cfg.port_stall_ns) {
		set_discarding(h, e, true);
		discard(h, e, HCA_CTR_tx_discard_stalled);
	}
}

static unsigned int
flush_backlog(struct hca *h, struct encap *e, uint64_t now)
{
	unsigned int done = 0;

	while (backlog_count(e) != 0) {
		uint32_t at = e->tail & (BACKLOG - 1);
		uint16_t n = RTE_MIN(backlog_count(e), BACKLOG - at), took;

		took = h->port->ops->tx(h->port, &e->backlog[at], n, now);
		e->tail += took;
		done += took;
		note_wait(h, e, took, now);
		if (took < n) {
			port_stalled(h, e, took != 0, now);
			break;
		}
	}
	if (backlog_count(e) == 0 && done != 0) {
		e->stalled_since = 0;
		set_discarding(h, e, false);
	}
	note_wait(h, e, 0, now);
	return done;
}

static void
keep(struct encap *e, struct rte_mbuf *const *m, unsigned int n, uint64_t now)
{
	for (unsigned int i = 0; i < n; i++) {
		e->kept_at[e->head & (BACKLOG - 1)] = now;
		e->backlog[e->head++ & (BACKLOG - 1)] = m[i];
	}
}

static void
transmit(struct hca *h, struct burst *b, uint64_t now)
{
	struct encap *e = h->stage_ctx[HCA_STAGE_ENCAP];
	uint16_t took = 0;

	if (b->frames == 0)
		return;
	HCA_COUNT_N(h, ENCAP, sent_pkts, b->frames);
	HCA_COUNT_N(h, ENCAP, port_xmit_data, b->bytes);
	if (unlikely(__atomic_load_n(&h->loop.on, __ATOMIC_ACQUIRE) != 0)) {
		b->frames = hca_loopback_divert(h, b->frame, b->frames);
		if (b->frames == 0)
			return;
	}
	if (likely(backlog_count(e) == 0)) {
		took = h->port->ops->tx(h->port, b->frame, (uint16_t)b->frames, now);
		if (likely(took == b->frames)) {
			e->stalled_since = 0;
			set_discarding(h, e, false);
			return;
		}
		HCA_COUNT(h, ENCAP, tx_backlog_events);
	}
	keep(e, b->frame + took, b->frames - took, now);
	if (took == 0 && backlog_count(e) != b->frames)
		flush_backlog(h, e, now);
	else
		port_stalled(h, e, took != 0, now);
	note_wait(h, e, 0, now);
}

/* Compute the ICRC of the short frames of the burst together. */
static void
finish_icrc(struct hca *h, struct burst *b)
{
	uint32_t crc[HCA_BURST];

	if (b->spans == 0)
		return;
	h->icrc->crc_burst(b->span, crc, b->spans);
	for (unsigned int i = 0; i < b->spans; i++)
		hca_icrc_store(b->icrc_at[i], crc[i]);
}

/* Copy n bytes from src; crc NULL: without CRC. */
static inline void
put(struct hca *h, uint8_t *dst, const uint8_t *src, uint32_t n, uint32_t *crc)
{
	if (crc == NULL)
		h->icrc->copy(dst, src, n);
	else
		*crc = h->icrc->copy_crc(*crc, dst, src, n);
}

static inline const struct hca_mpt_entry *
find_entry(struct hca *h, const struct hca_qp *qp, uint32_t pd, uint32_t key, uint32_t access,
	   uint64_t va, uint32_t n)
{
	const struct hca_mpt_entry *e = hca_vtp_check(&h->vtp, key, pd, access, va, n);

	if (unlikely(e == NULL && access == HCA_ACCESS_REMOTE_READ))
		e = hca_vtp_check_bound(&h->vtp, key, &qp->cfg, access, va, n);
	return e;
}

/* Gather from foreign memory, if the key is of such a region. */
static bool
gather_foreign(struct hca *h, const struct hca_qp *qp, uint32_t pd, uint32_t key, uint32_t access,
	       uint64_t va, uint32_t n, uint8_t *dst, uint32_t *crc)
{
	struct encap *enc = h->stage_ctx[HCA_STAGE_ENCAP];
	const struct hca_mpt_entry *e =
		hca_foreign_find(&h->vtp, key, pd,
				 access == HCA_ACCESS_REMOTE_READ ? &qp->cfg : NULL, access, va, n);
	int rc = e != NULL ? hca_foreign_read(&h->core, e, va, dst, n) : -EFAULT;

	enc->late = rc == -EAGAIN;
	if (rc == 0 && crc != NULL)
		*crc = h->icrc->crc(*crc, dst, n);
	return rc == 0;
}

/* Gather [va, va + n) of one key; false: not allowed. */
static bool
gather_run(struct hca *h, const struct hca_qp *qp, uint32_t pd, uint32_t key, uint32_t access,
	   uint64_t va, uint32_t n, uint8_t *dst, uint32_t *crc)
{
	const struct hca_mpt_entry *e = find_entry(h, qp, pd, key, access, va, n);

	if (e == NULL)
		return gather_foreign(h, qp, pd, key, access, va, n, dst, crc);
	while (n != 0) {
		uint32_t run;
		const uint8_t *src = hca_vtp_ptr(&h->vtp, e, va, n, &run);

		put(h, dst, src, run, crc);
		dst += run;
		va += run;
		n -= run;
	}
	return true;
}

/* Gather from the record's list, from byte d->off on. */
static bool
gather_list(struct hca *h, const struct hca_qp *qp, const struct hca_txd *d, uint8_t *dst,
	    uint32_t *crc)
{
	const struct hca_record *r = hca_record(h, d->rec);
	const struct hca_sge *sge = hca_record_sges(r);
	uint32_t skip = d->off, left = d->len;

	for (unsigned int i = 0; i < r->nsge && left != 0; i++) {
		uint32_t n;

		if (skip >= sge[i].len) {
			skip -= sge[i].len;
			continue;
		}
		n = RTE_MIN(sge[i].len - skip, left);
		if (!gather_run(h, qp, qp->cfg.pd, sge[i].lkey, HCA_MPT_FLAG_REGION,
				sge[i].va + skip, n, dst, crc))
			return false;
		dst += n;
		left -= n;
		skip = 0;
	}
	return left == 0;
}

/* Gather payload that is not in one contiguous run. */
static __rte_noinline bool
gather(struct hca *h, const struct hca_qp *qp, const struct hca_txd *d, uint8_t *dst, uint32_t *crc)
{
	if (d->len == 0)
		return true;
	if (d->flags & HCA_TXD_INLINE) {
		const struct hca_record_full *r = (void *)hca_record(h, d->rec);

		put(h, dst, r->body.inline_data + d->off, d->len, crc);
		return true;
	}
	if (d->nsge > 1)
		return gather_list(h, qp, d, dst, crc);
	return gather_run(h, qp, hca_txd_pd(qp, d), d->key, hca_txd_access(d), d->va, d->len, dst,
			  crc);
}

/* Whether the descriptor is of an earlier generation, or the QP no longer sends. */
static inline bool
is_stale(const struct hca_qp *qp, const struct hca_txd *d)
{
	/* in this order: a new generation is stored before its state */
	return unlikely(hca_qp_state(qp) == HCA_QPS_RST || d->generation != qp->cfg.generation);
}

/* Address of a payload in one contiguous run, which is prefetched. */
static inline const uint8_t *
find_payload(struct hca *h, const struct hca_qp *qp, const struct hca_txd *d, bool request)
{
	uint32_t pd = request ? qp->cfg.pd : hca_txd_pd(qp, d);
	uint32_t access = request ? HCA_MPT_FLAG_REGION : hca_txd_access(d);
	const struct hca_mpt_entry *e;
	const uint8_t *src;
	uint32_t run;

	if (d->nsge != 1 || d->len == 0)
		return NULL;
	e = find_entry(h, qp, pd, d->key, access, d->va, d->len);
	if (unlikely(e == NULL))
		return NULL;
	src = hca_vtp_ptr(&h->vtp, e, d->va, d->len, &run);
	if (unlikely(run != d->len))
		return NULL;
	rte_prefetch0(src);
	return src;
}

/*
 * Write headers, payload, pad and (long frames) ICRC; false: the payload could not be gathered.
 * Inline in both bursts, because a call costs 5 % of a 64 B WRITE.
 */
static __rte_always_inline bool
build(struct hca *h, struct burst *b, const struct hca_qp *qp, const struct hca_roce_template *t,
      struct rte_mbuf *m, const uint8_t *src)
{
	const struct hca_txd *d = hca_txd(m);
	uint8_t *frame = (uint8_t *)m->buf_addr + RTE_PKTMBUF_HEADROOM;
	uint8_t *l3 = frame + t->l3, *payload, *end;
	const uint8_t *ones = hca_roce_ones(t->ip_version);
	uint32_t pad = -(uint32_t)d->len & 3, crc = 0;
	bool fused = d->len >= FUSED_MIN, there = true;

	m->data_off = RTE_PKTMBUF_HEADROOM;
	payload = hca_encap_headers(h, t, d, frame);
	end = payload + d->len;
	if (fused) {
		struct hca_icrc_span s = {l3, ones, (uint32_t)(payload - l3), HCA_ICRC_SEED};

		h->icrc->crc_burst(&s, &crc, 1);
	}
	hca_tsan_repeat_begin(d->flags & HCA_TXD_REPEAT);
	if (likely(src != NULL))
		put(h, payload, src, d->len, fused ? &crc : NULL);
	else
		there = gather(h, qp, d, payload, fused ? &crc : NULL);
	hca_tsan_repeat_end(d->flags & HCA_TXD_REPEAT);
	if (unlikely(!there))
		return false;
	memset(end, 0, 4);
	if (fused) {
		if (pad != 0)
			crc = h->icrc->crc(crc, end, pad);
		hca_icrc_store(end + pad, crc);
	} else {
		b->span[b->spans] =
			(struct hca_icrc_span){l3, ones, (uint32_t)(end + pad - l3), HCA_ICRC_SEED};
		b->icrc_at[b->spans++] = end + pad;
	}
	end += pad + HCA_ICRC_LEN;
	m->ol_flags = 0;
	m->data_len = (uint16_t)(end - frame);
	m->pkt_len = m->data_len;
	b->bytes += m->data_len;
	b->payload += d->len;
	b->frame[b->frames++] = m;
	return true;
}

/* The memory may answer next time: the frame counts as lost on the wire. */
static bool
is_late(struct hca *h)
{
	struct encap *e = h->stage_ctx[HCA_STAGE_ENCAP];
	bool late = e->late;

	e->late = false;
	return late;
}

static void
request_failed(struct hca *h, struct hca_qp *qp, const struct hca_txd *d)
{
	if (is_late(h)) {
		HCA_COUNT(h, ENCAP, req_gather_late);
		return;
	}
	HCA_COUNT(h, ENCAP, req_gather_error);
	__atomic_store_n(&qp->encap.req_failed_syndrome, HCA_SYND_LOCAL_PROT, __ATOMIC_RELAXED);
	__atomic_store_n(&qp->encap.req_failed_psn, d->psn, __ATOMIC_RELEASE);
	__atomic_store_n(&qp->encap.req_failed, qp->encap.req_failed + 1, __ATOMIC_RELEASE);
	hca_msg_send(h, HCA_STAGE_ENCAP, HCA_STAGE_RTC, d->qpi, HCA_MSG_FAILED);
}

/* Whether it was acknowledged already: the owner may be reusing the buffer. */
static inline bool
is_released(const struct hca_qp *qp, const struct hca_txd *d)
{
	uint64_t una = __atomic_load_n(&qp->sq_una, __ATOMIC_ACQUIRE);

	return hca_psn_diff(d->psn, hca_una_psn(una)) < 0;
}

static int
ud_fill(const struct hca_qp *qp, uint16_t pkey, const struct hca_gid_entry *g,
	const struct hca_ud_av *av, struct hca_roce_template *t)
{
	struct hca_roce_path p = {
		.vlan = g->vlan_id != HCA_NO_VLAN,
		.vlan_tci = (uint16_t)(av->priority << 13 | (g->vlan_id & 0xfff)),
		.ip_version = g->ip_version,
		.tclass = av->tclass,
		.hop_limit = av->hop_limit,
		.flow_label = av->flow_label,
		.udp_sport = hca_roce_udp_sport(qp->cfg.local_qpn, av->dqpn),
		.pkey = pkey,
		.qpn = av->dqpn,
		.migreq = true,
	};

	memcpy(p.dmac, av->dmac, sizeof(p.dmac));
	memcpy(p.smac, g->mac, sizeof(p.smac));
	memcpy(p.sip, g->gid, sizeof(p.sip));
	memcpy(p.dip, av->dgid, sizeof(p.dip));
	return hca_roce_template_fill(&p, t);
}

/* Headers of a datagram; NULL: its GID entry was removed after the WQE was checked. */
static const struct hca_roce_template *
ud_headers(struct hca *h, const struct hca_qp *qp, const struct hca_txd *d)
{
	struct ud_template *u = &((struct encap *)h->stage_ctx[HCA_STAGE_ENCAP])->ud;
	const struct hca_ud_av *av = &((const struct hca_record_full *)hca_record(h, d->rec))->av;
	const struct hca_gid_entry *g = hca_gid_get(h->ctxmgt, av->sgid_index);
	uint64_t gids = __atomic_load_n(&h->ctxmgt->gid_changes, __ATOMIC_ACQUIRE);
	uint16_t pkey = __atomic_load_n(&qp->cfg.pkey, __ATOMIC_RELAXED);

	if (unlikely(g == NULL))
		return NULL;
	if (u->qpi == d->qpi && u->generation == d->generation && u->gids == gids &&
	    u->pkey == pkey && memcmp(&u->av, av, sizeof(*av)) == 0)
		return &u->tmpl;
	u->gids = 0; /* counts begin at 1: nothing is cached while it is being filled in */
	if (ud_fill(qp, pkey, g, av, &u->tmpl) != 0)
		return NULL;
	hca_loopback_learn(h, av->dmac);
	u->av = *av;
	u->qpi = d->qpi;
	u->generation = d->generation;
	u->pkey = pkey;
	u->gids = gids;
	return &u->tmpl;
}

/* Consecutive descriptors of one QP share these values. */
struct run {
	struct hca_qp *qp;
	const struct hca_roce_template *tmpl; /* NULL: each datagram has its own */
	uint32_t qpi, generation, seq;
	bool sends;	     /* the state permits requests */
	bool any;	     /* seq is valid */
	unsigned int frames; /* in the burst when the run began; likewise payload */
	uint64_t payload;
};

/* Add to the QP's counters what the burst has sent since the run began. */
static inline void
count_sent(struct hca_qp *qp, const struct burst *b, unsigned int frames, uint64_t payload)
{
	struct hca_qp_encap *e = &qp->encap;

	__atomic_store_n(&e->tx_packets, e->tx_packets + (b->frames - frames), __ATOMIC_RELAXED);
	__atomic_store_n(&e->tx_bytes, e->tx_bytes + (b->payload - payload), __ATOMIC_RELAXED);
}

/* Tell RTC how far the QP's descriptors are finished; once per run. */
static void
finish_run(struct hca *h, uint32_t qpi, uint32_t seq)
{
	__atomic_store_n(&h->qp[qpi].encap.req_done_seq, seq, __ATOMIC_RELEASE);
	if (h->edge[HCA_EDGE_RTC_ENCAP].ring != NULL)
		hca_msg_send(h, HCA_STAGE_ENCAP, HCA_STAGE_RTC, qpi, HCA_MSG_COPIED);
}

static inline void
find_payloads(struct hca *h, void *const *objs, const uint8_t **src, unsigned int n, bool request)
{
	for (unsigned int i = 0; i < n; i++) {
		const struct hca_txd *d = hca_txd(objs[i]);
		const struct hca_qp *qp = &h->qp[d->qpi];

		/* a stale descriptor may have no context any more */
		src[i] = is_stale(qp, d) ? NULL : find_payload(h, qp, d, request);
	}
}

static void
end_run(struct hca *h, const struct burst *b, struct run *r)
{
	if (!r->any)
		return;
	count_sent(r->qp, b, r->frames, r->payload);
	finish_run(h, r->qpi, r->seq);
}

static void
begin_run(struct hca *h, const struct burst *b, struct run *r, const struct hca_txd *d)
{
	uint32_t state;

	end_run(h, b, r);
	r->frames = b->frames;
	r->payload = b->payload;
	r->qp = &h->qp[d->qpi];
	r->qpi = d->qpi;
	r->generation = d->generation;
	state = hca_qp_state(r->qp);
	r->sends = state != HCA_QPS_RST && state != HCA_QPS_ERR;
	r->any = !is_stale(r->qp, d);
	/* a stale descriptor may have no templates any more */
	r->tmpl = !r->any || r->qp->cfg.service == HCA_ST_UD ? NULL : hca_qp_template(r->qp);
}

/* Handle a request of the run; false: no frame is sent. */
static inline bool
request(struct hca *h, struct burst *b, struct run *r, struct rte_mbuf *m, const uint8_t *src)
{
	const struct hca_roce_template *t = r->tmpl;
	struct hca_txd *d = hca_txd(m);

	if (unlikely(!r->any)) {
		HCA_COUNT(h, ENCAP, stale_descriptors);
		return false;
	}
	r->seq = d->seq;
	if (unlikely(!r->sends || is_released(r->qp, d))) {
		HCA_COUNT(h, ENCAP, req_dropped_released);
		return false;
	}
	if (unlikely(t == NULL)) {
		t = ud_headers(h, r->qp, d);
		/* datagrams may be lost: the request completes nevertheless */
		if (t == NULL) {
			HCA_COUNT(h, ENCAP, req_bad_av);
			return false;
		}
	}
	if (likely(build(h, b, r->qp, t, m, src)))
		return true;
	request_failed(h, r->qp, d);
	return false;
}

static void
request_burst(struct hca *h, void *const *objs, unsigned int n, uint64_t now)
{
	struct burst b;
	const uint8_t *src[HCA_BURST];
	struct run run = {.any = false};

	b.frames = b.spans = 0;
	b.bytes = b.payload = 0;
	find_payloads(h, objs, src, n, true);
	begin_run(h, &b, &run, hca_txd(objs[0]));
	for (unsigned int i = 0; i < n; i++) {
		const struct hca_txd *d = hca_txd(objs[i]);

		if (unlikely(d->qpi != run.qpi || d->generation != run.generation))
			begin_run(h, &b, &run, d);
		if (unlikely(!request(h, &b, &run, objs[i], src[i])))
			rte_pktmbuf_free(objs[i]);
	}
	end_run(h, &b, &run);
	finish_icrc(h, &b);
	transmit(h, &b, now);
}

void
hca_encap_process_req(struct hca *h, void *const *objs, unsigned int n, uint64_t now)
{
	for (unsigned int i = 0; i < n; i += HCA_BURST)
		request_burst(h, objs + i, RTE_MIN(n - i, HCA_BURST), now);
}

/*
 * A failed READ response ends the connection, so only the first one since the reset is reported.
 * One of a repeated READ is only dropped: the memory may have been released since.
 */
static void
response_failed(struct hca *h, struct hca_qp *qp, const struct hca_txd *d)
{
	if (is_late(h)) {
		HCA_COUNT(h, ENCAP, resp_gather_late);
		return;
	}
	HCA_COUNT(h, ENCAP, resp_gather_error);
	if (d->flags & HCA_TXD_REPEAT || qp->encap.resp_failed)
		return;
	qp->encap.resp_failed = 1;
	__atomic_store_n(&qp->encap.resp_failed_psn, d->psn, __ATOMIC_RELEASE);
	hca_msg_send(h, HCA_STAGE_ENCAP, HCA_STAGE_EE, d->qpi, HCA_MSG_FAILED);
}

static void
response_burst(struct hca *h, void *const *objs, unsigned int n, uint64_t now)
{
	struct burst b;
	const uint8_t *src[HCA_BURST];

	b.frames = b.spans = 0;
	b.bytes = b.payload = 0;
	find_payloads(h, objs, src, n, false);
	for (unsigned int i = 0; i < n; i++) {
		struct rte_mbuf *m = objs[i];
		struct hca_txd *d = hca_txd(m);
		struct hca_qp *qp = &h->qp[d->qpi];

		if (unlikely(is_stale(qp, d))) {
			HCA_COUNT(h, ENCAP, stale_descriptors);
			rte_pktmbuf_free(m);
		} else if (unlikely(!build(h, &b, qp, hca_qp_template(qp), m, src[i]))) {
			response_failed(h, qp, d);
			rte_pktmbuf_free(m);
		} else {
			count_sent(qp, &b, b.frames - 1, b.payload - d->len);
		}
	}
	finish_icrc(h, &b);
	transmit(h, &b, now);
}

void
hca_encap_process_resp(struct hca *h, void *const *objs, unsigned int n, uint64_t now)
{
	for (unsigned int i = 0; i < n; i += HCA_BURST)
		response_burst(h, objs + i, RTE_MIN(n - i, HCA_BURST), now);
}

unsigned int
hca_encap_poll(struct hca *h, uint64_t now, unsigned int budget)
{
	struct encap *e = h->stage_ctx[HCA_STAGE_ENCAP];
	unsigned int done = 0, room;

	if (unlikely(h->port->ops->poll != NULL))
		h->port->ops->poll(h->port, now);
	if (unlikely(now >= e->link_at)) {
		e->link_at = now + LINK_EVERY_NS;
		link_is_up(h, e);
	}
	if (unlikely(backlog_count(e) != 0))
		done += flush_backlog(h, e, now);
	/* responses first, because they open the peer's window */
	room = RTE_MIN(hca_encap_room(h), budget);
	done += hca_edge_drain(h, &h->edge[HCA_EDGE_EE_ENCAP], room, now);
	room = RTE_MIN(hca_encap_room(h), budget);
	done += hca_edge_drain(h, &h->edge[HCA_EDGE_RTC_ENCAP], room, now);
	return done;
}

/* Changes of the link are announced by their cause, and the link is checked after every sleep. */
uint64_t
hca_encap_deadline(const struct hca *h, uint64_t now)
{
	const struct encap *e = h->stage_ctx[HCA_STAGE_ENCAP];

	(void)now;
	return backlog_count(e) != 0 ? HCA_DEADLINE_ROOM : UINT64_MAX;
}

void
hca_encap_ask_link_next(struct hca *h)
{
	((struct encap *)h->stage_ctx[HCA_STAGE_ENCAP])->link_at = 0;
}
