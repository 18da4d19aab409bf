/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * RoCE in encap: builds frames from the packet descriptors of req_tx and EE. Per burst: find every
 * payload and prefetch it; write headers and payload into the mbuf; transmit.
 */

#include <string.h>

#include "abi_cqe.h"
#include "ctxmgt/ctxmgt.h"
#include "frame/encap.h"
#include "frame/encap_roce_headers.h"
#include "wire/roce_frame.h"

/* ---- one frame ---- */

static inline bool
is_read_resp(const struct hca_txd *d)
{
	uint8_t op = HCA_BTH_OPERATION(d->opcode);

	return op >= HCA_BTH_RC_READ_RESP_FIRST && op <= HCA_BTH_RC_READ_RESP_ONLY;
}

/*
 * Rights required of the payload's key: any live MR may be sent from, READ needs the remote right.
 */
static inline uint32_t
access_of(const struct hca_txd *d)
{
	return is_read_resp(d) ? HCA_ACCESS_REMOTE_READ : HCA_MPT_FLAG_REGION;
}

/* PD of the payload's key. */
static inline uint32_t
pd_of(const struct hca_qp *qp, const struct hca_txd *d)
{
	return is_read_resp(d) ? d->imm : qp->cfg.pd;
}

/*
 * The rest of a CNP, whose headers end at payload: 16 reserved bytes, BECN, no MigReq, and its own
 * DSCP. A switch does not mark it.
 */
static bool
put_notification(const struct hca_pipe *h, const struct hca_udp_template *t, uint8_t *payload)
{
	uint8_t *bth = payload - HCA_ROCE_BTH_LEN;

	memset(payload, 0, HCA_CNP_PAYLOAD_LEN);
	bth[1] = 0;
	bth[4] = HCA_BTH_BECN >> 24;
	hca_udp_set_tclass(bth - t->transport + t->l3, t->ip_version,
			   HCA_PARAMETER(h, cnp_dscp) << 2);
	return true;
}

/* Gather payload that is not in one contiguous run; CNPs take this way to theirs. */
static __rte_noinline bool
gather(struct hca_pipe *h, const struct hca_qp *qp, const struct hca_txd *d, uint8_t *dst,
       uint32_t *crc)
{
	if (unlikely(d->opcode == HCA_BTH_CNP))
		return put_notification(h, hca_qp_template(qp), dst);
	return hca_encap_gather(h, qp, d, pd_of(qp, d), access_of(d), dst, crc);
}

/* False: the payload could not be gathered. */
static __rte_always_inline bool
build(struct hca_pipe *h, struct hca_encap_burst *b, const struct hca_qp *qp,
      const struct hca_udp_template *t, struct rte_mbuf *m, const uint8_t *src)
{
	uint8_t *payload = put_headers(h, t, hca_txd(m), hca_encap_frame(m));

	return hca_encap_finish(h, b, qp, HCA_WIRE_ROCE, t, m, payload, src, gather);
}

/* ---- datagrams ---- */

static int
ud_fill(const struct hca_qp *qp, uint16_t pkey, const struct hca_gid_entry *g,
	const struct hca_ud_av *av, struct hca_udp_template *t)
{
	struct hca_roce_path p = {
		.udp = {.vlan = g->vlan_id != HCA_NO_VLAN,
			.vlan_tci = (uint16_t)(av->priority << 13 | (g->vlan_id & 0xfff)),
			.ip_version = g->ip_version,
			.tclass = av->tclass,
			.hop_limit = av->hop_limit,
			.flow_label = av->flow_label,
			.sport = hca_roce_udp_sport(av->flow_label, qp->cfg.local_qpn, av->dqpn)},
		.pkey = pkey,
		.qpn = av->dqpn,
		.migreq = true,
	};

	memcpy(p.udp.dmac, av->dmac, sizeof(p.udp.dmac));
	memcpy(p.udp.smac, g->mac, sizeof(p.udp.smac));
	memcpy(p.udp.sip, g->gid, sizeof(p.udp.sip));
	memcpy(p.udp.dip, av->dgid, sizeof(p.udp.dip));
	return hca_roce_template_fill(&p, t);
}

/* Headers of a datagram; NULL: its GID entry was removed after the WQE was checked. */
static const struct hca_udp_template *
ud_headers(struct hca_pipe *h, const struct hca_qp *qp, const struct hca_txd *d)
{
	struct hca_encap_ud *u = &((struct hca_encap *)h->stage_ctx[HCA_STAGE_ENCAP])->ud;
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

/* ---- requests ---- */

/* Whether the descriptor is of an earlier generation, or the QP no longer sends. */
static inline bool
is_stale(const struct hca_qp *qp, const struct hca_txd *d)
{
	/* in this order: a new generation is stored before its state */
	return unlikely(hca_qp_state(qp) == HCA_QPS_RST || d->generation != qp->cfg.generation);
}

static void
request_failed(struct hca_pipe *h, struct hca_qp *qp, const struct hca_txd *d)
{
	if (hca_encap_is_late(h)) {
		HCA_COUNT(h, ENCAP, req_gather_late);
		hca_msg_send(h, HCA_STAGE_ENCAP, HCA_STAGE_REQ_TX, d->qpi, HCA_MSG_LATE);
		return;
	}
	HCA_COUNT(h, ENCAP, req_gather_error);
	__atomic_store_n(&qp->encap.req_failed_syndrome, HCA_SYND_LOCAL_PROT, __ATOMIC_RELAXED);
	__atomic_store_n(&qp->encap.req_failed_psn, d->psn, __ATOMIC_RELEASE);
	__atomic_store_n(&qp->encap.req_failed, qp->encap.req_failed + 1, __ATOMIC_RELEASE);
	hca_msg_send(h, HCA_STAGE_ENCAP, HCA_STAGE_REQ_TX, d->qpi, HCA_MSG_FAILED);
}

/* Whether it was acknowledged already: the owner may be reusing the buffer. */
static inline bool
is_released(const struct hca_qp *qp, const struct hca_txd *d)
{
	uint64_t una = __atomic_load_n(&qp->sq_una, __ATOMIC_ACQUIRE);

	return hca_psn_diff(d->psn, hca_una_psn(una)) < 0;
}

/* Consecutive descriptors of one QP share these values. */
struct run {
	struct hca_qp *qp;
	const struct hca_udp_template *tmpl; /* NULL: each datagram has its own */
	uint32_t qpi, generation, seq;
	struct like like;
	bool responses;
	bool sends;	     /* the state permits requests */
	bool any;	     /* seq is valid */
	unsigned int frames; /* frames and payload in the burst when the run began */
	uint64_t payload;
};

/* Adds packets and bytes that the burst has sent since the run began to the QP's counters. */
static inline void
count_sent(struct hca_qp *qp, const struct hca_encap_burst *b, unsigned int frames,
	   uint64_t payload)
{
	struct hca_qp_encap *e = &qp->encap;

	__atomic_store_n(&e->tx_packets, e->tx_packets + (b->frames - frames), __ATOMIC_RELAXED);
	__atomic_store_n(&e->tx_bytes, e->tx_bytes + (b->payload - payload), __ATOMIC_RELAXED);
}

/* Tell req_tx how far the QP's descriptors are finished; once per run. */
static void
finish_run(struct hca_pipe *h, uint32_t qpi, uint32_t seq)
{
	__atomic_store_n(&h->qp[qpi].encap.req_done_seq, seq, __ATOMIC_RELEASE);
	if (h->edge[HCA_EDGE_REQ_TX_ENCAP].ring != NULL)
		hca_msg_send(h, HCA_STAGE_ENCAP, HCA_STAGE_REQ_TX, qpi, HCA_MSG_COPIED);
}

/* The entry of a key; the next descriptor of the QP often has the same key. */
struct source {
	const struct hca_mpt_entry *e; /* contiguous; NULL: none */
	uint32_t qpi, generation, key, pd;
};

static inline bool
is_of_source(const struct source *s, const struct hca_txd *d)
{
	return s->e != NULL && d->key == s->key && d->qpi == s->qpi &&
	       d->generation == s->generation && d->nsge == 1 && d->len != 0 &&
	       d->len <= s->e->length && d->va - s->e->start <= s->e->length - d->len;
}

/* As hca_encap_find_payload(); notes the entry. */
static inline const uint8_t *
find_payload(struct hca_pipe *h, struct source *s, const struct hca_qp *qp, const struct hca_txd *d,
	     uint32_t pd, uint32_t access)
{
	const struct hca_mpt_entry *e;

	s->e = NULL;
	if (d->nsge != 1 || d->len == 0)
		return NULL;
	e = hca_encap_find_entry(h, qp, pd, d->key, access, d->va, d->len);
	if (unlikely(e == NULL))
		return NULL;
	if (HCA_SHORT_WAYS && likely(e->base != NULL))
		*s = (struct source){e, d->qpi, d->generation, d->key, pd};
	return hca_encap_place(h, e, d);
}

static inline void
find_request_payloads(struct hca_pipe *h, void *const *objs, const uint8_t **src, unsigned int n)
{
	struct source s = {.e = NULL};

	for (unsigned int i = 0; i < n; i++) {
		const struct hca_txd *d = hca_txd(objs[i]);
		const struct hca_qp *qp;

		if (likely(is_of_source(&s, d))) {
			src[i] = s.e->base + (d->va - s.e->start);
			rte_prefetch0(src[i]);
			continue;
		}
		qp = &h->qp[d->qpi];
		/* a stale descriptor may have no context any more */
		src[i] = is_stale(qp, d)
				 ? NULL
				 : find_payload(h, &s, qp, d, qp->cfg.pd, HCA_MPT_FLAG_REGION);
	}
}

/* Only READ responses have a payload. */
static inline void
find_response_payloads(struct hca_pipe *h, void *const *objs, const uint8_t **src, unsigned int n)
{
	struct source s = {.e = NULL};

	for (unsigned int i = 0; i < n; i++) {
		const struct hca_txd *d = hca_txd(objs[i]);
		const struct hca_qp *qp;

		if (likely(is_of_source(&s, d)) && d->imm == s.pd) {
			src[i] = s.e->base + (d->va - s.e->start);
			rte_prefetch0(src[i]);
			continue;
		}
		qp = &h->qp[d->qpi];
		src[i] = is_stale(qp, d) ? NULL
					 : find_payload(h, &s, qp, d, pd_of(qp, d), access_of(d));
	}
}

static void
end_run(struct hca_pipe *h, struct hca_encap_burst *b, struct run *r)
{
	if (!r->any)
		return;
	count_sent(r->qp, b, r->frames, r->payload);
	if (r->responses)
		return;
	hca_encap_copy_all(h, b);
	finish_run(h, r->qpi, r->seq);
}

static void
begin_run(struct hca_pipe *h, struct hca_encap_burst *b, struct run *r, const struct hca_txd *d)
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
	r->like.frame = NULL;
}

/* As build(), of a packet whose path is that of the run. */
static __rte_always_inline bool
build_like(struct hca_pipe *h, struct hca_encap_burst *b, struct run *r, struct rte_mbuf *m,
	   const uint8_t *src, bool response)
{
	const struct hca_txd *d = hca_txd(m);
	uint8_t *frame = hca_encap_frame(m), *payload;

	if (HCA_SHORT_WAYS && likely(is_like(&r->like, d))) {
		payload = response ? put_like_response(&r->like, r->tmpl, d, frame)
				   : put_like(&r->like, r->tmpl, d, frame);
	} else {
		payload = put_headers(h, r->tmpl, d, frame);
		note_like(&r->like, r->tmpl, d, frame);
	}
	return hca_encap_finish(h, b, r->qp, HCA_WIRE_ROCE, r->tmpl, m, payload, src, gather);
}

/* Handle a request of the run; false: no frame is sent. */
static __rte_always_inline bool
request(struct hca_pipe *h, struct hca_encap_burst *b, struct run *r, struct rte_mbuf *m,
	const uint8_t *src)
{
	struct hca_txd *d = hca_txd(m);
	bool built;

	if (unlikely(!r->any)) {
		HCA_COUNT(h, ENCAP, stale_descriptors);
		return false;
	}
	r->seq = d->seq;
	if (unlikely(!r->sends || is_released(r->qp, d))) {
		HCA_COUNT(h, ENCAP, req_dropped_released);
		return false;
	}
	if (likely(r->tmpl != NULL)) {
		built = build_like(h, b, r, m, src, false);
	} else {
		const struct hca_udp_template *t = ud_headers(h, r->qp, d);

		/* datagrams may be lost: the request completes nevertheless */
		if (unlikely(t == NULL)) {
			HCA_COUNT(h, ENCAP, req_bad_av);
			return false;
		}
		built = build(h, b, r->qp, t, m, src);
	}
	if (likely(built))
		return true;
	r->like.frame = NULL; /* this frame is freed */
	request_failed(h, r->qp, d);
	return false;
}

static void
request_burst(struct hca_pipe *h, void *const *objs, unsigned int n, uint64_t now)
{
	struct hca_encap_burst b;
	const uint8_t *src[HCA_BURST];
	struct run run;

	hca_encap_begin(&b);
	run.any = run.responses = false;
	find_request_payloads(h, objs, src, n);
	begin_run(h, &b, &run, hca_txd(objs[0]));
	for (unsigned int i = 0; i < n; i++) {
		const struct hca_txd *d = hca_txd(objs[i]);

		if (unlikely(d->qpi != run.qpi || d->generation != run.generation))
			begin_run(h, &b, &run, d);
		if (unlikely(!request(h, &b, &run, objs[i], src[i])))
			rte_pktmbuf_free(objs[i]);
	}
	end_run(h, &b, &run);
	hca_encap_transmit(h, &b, now);
}

void
hca_encap_process_req(struct hca_pipe *h, void *const *objs, unsigned int n, uint64_t now)
{
	for (unsigned int i = 0; i < n; i += HCA_BURST)
		request_burst(h, objs + i, RTE_MIN(n - i, HCA_BURST), now);
}

/*
 * The memory of a READ response did not answer in time: EE tells the requester to ask again, from
 * the first such PSN that EE has not seen yet.
 */
static void
response_late(struct hca_pipe *h, struct hca_qp *qp, const struct hca_txd *d)
{
	uint8_t seen = __atomic_load_n(&qp->ee.late_seen, __ATOMIC_ACQUIRE);
	uint32_t repeat = d->flags & HCA_TXD_REPEAT ? HCA_RESP_LATE_REPEAT : 0;

	HCA_COUNT(h, ENCAP, resp_gather_late);
	if (qp->encap.resp_late != seen &&
	    hca_psn_diff(d->psn, qp->encap.resp_late_psn & HCA_PSN_MASK) >= 0)
		return;
	__atomic_store_n(&qp->encap.resp_late_psn, d->psn | repeat, __ATOMIC_RELAXED);
	__atomic_store_n(&qp->encap.resp_late, (uint8_t)(seen + 1), __ATOMIC_RELEASE);
	hca_msg_send(h, HCA_STAGE_ENCAP, HCA_STAGE_EE, d->qpi, HCA_MSG_LATE);
}

/*
 * A failed READ response ends the connection, so only the first one since the reset is reported.
 * One of a repeated READ is only dropped: the memory may have been released since.
 */
static void
response_failed(struct hca_pipe *h, struct hca_qp *qp, const struct hca_txd *d)
{
	if (hca_encap_is_late(h)) {
		response_late(h, qp, d);
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
response_burst(struct hca_pipe *h, void *const *objs, unsigned int n, uint64_t now)
{
	struct hca_encap_burst b;
	const uint8_t *src[HCA_BURST];
	struct run run;

	hca_encap_begin(&b);
	run.any = false;
	run.responses = true;
	find_response_payloads(h, objs, src, n);
	begin_run(h, &b, &run, hca_txd(objs[0]));
	for (unsigned int i = 0; i < n; i++) {
		struct rte_mbuf *m = objs[i];
		struct hca_txd *d = hca_txd(m);

		if (unlikely(d->qpi != run.qpi || d->generation != run.generation))
			begin_run(h, &b, &run, d);
		if (unlikely(!run.any)) {
			HCA_COUNT(h, ENCAP, stale_descriptors);
			rte_pktmbuf_free(m);
		} else if (unlikely(!build_like(h, &b, &run, m, src[i], true))) {
			run.like.frame = NULL; /* this frame is freed */
			response_failed(h, run.qp, d);
			rte_pktmbuf_free(m);
		}
	}
	end_run(h, &b, &run);
	hca_encap_transmit(h, &b, now);
}

void
hca_encap_process_resp(struct hca_pipe *h, void *const *objs, unsigned int n, uint64_t now)
{
	for (unsigned int i = 0; i < n; i += HCA_BURST)
		response_burst(h, objs + i, RTE_MIN(n - i, HCA_BURST), now);
}
