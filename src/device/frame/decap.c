/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * decap: checks received bursts and passes frames to the stages of their wire: of RoCE to EE
 * (requests) or req_rx (responses), of UB to TPR (packets) or TPS (acknowledgements). It takes from
 * the port only as many frames as all of them can accept; the others stay in the port's queue. A
 * frame that fails a check is counted under its reason and has no other effect.
 */

#include <errno.h>

#include <rte_malloc.h>
#include <rte_prefetch.h>

#include "frame/decap.h"
#include "ub/tp/pkt.h"
#include "wire/wire_view.h"

int
hca_decap_init(struct hca_pipe *h)
{
	struct hca_decap *d =
		rte_zmalloc_socket("decap", sizeof(*d), RTE_CACHE_LINE_SIZE, h->cfg.socket_id);

	h->stage_ctx[HCA_STAGE_DECAP] = d;
	return d == NULL ? -ENOMEM : 0;
}

void
hca_decap_fini(struct hca_pipe *h)
{
	struct hca_decap *d = h->stage_ctx[HCA_STAGE_DECAP];

	if (d != NULL)
		hca_decap_roce_fini(d);
	rte_free(d);
}

int
hca_decap_describe(const uint8_t *frame, uint32_t len, struct hca_rxd *r,
		   struct hca_icrc_span *span)
{
	struct hca_wire_view v;
	int rc = hca_wire_parse(frame, len, &v);

	if (v.wire == HCA_WIRE_UB)
		return -HCA_WIRE_DROP_NOT_ROCE;
	if (v.wire == HCA_WIRE_ROCE)
		rc = hca_decap_roce_describe(frame, &v, rc, r);
	if (rc == 0)
		*span = hca_icrc_span_of_view(frame, &v);
	return rc;
}

/* Whether it is a frame of UB that this device judges: one with all headers up to UDP. */
static bool
take_ub(struct hca_pipe *h, struct hca_decap *d, struct rte_mbuf *m)
{
	const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);
	struct hca_wire_view v;
	int rc = hca_wire_parse(p, m->data_len, &v);
	enum hca_counter why;

	if (v.wire != HCA_WIRE_UB ||
	    (rc != 0 && rc != -HCA_WIRE_DROP_UB && rc != -HCA_WIRE_DROP_HEADER_SHORT))
		return false;
	why = hca_decap_ub_describe(p, &v, hca_ub_rxd(m), &d->span[d->n]);
	if (why != HCA_CTR_N)
		hca_decap_drop(h, d, m, why);
	else
		hca_decap_ub_add(d, m);
	return true;
}

static void
take_general(struct hca_pipe *h, struct hca_decap *d, struct rte_mbuf *m)
{
	static const uint16_t counter[HCA_WIRE_DROP_COUNT] = {
#define X(NAME, name, text) [HCA_WIRE_DROP_##NAME] = HCA_CTR_##name,
		HCA_WIRE_DROP_LIST(X)
#undef X
	};
	int rc;

	if (m->nb_segs != 1) {
		hca_decap_drop(h, d, m, HCA_CTR_rx_multi_segment);
		return;
	}
	if (h->ub != NULL && take_ub(h, d, m))
		return;
	rc = hca_decap_describe(rte_pktmbuf_mtod(m, const uint8_t *), m->data_len, hca_rxd(m),
				&d->span[d->n]);
	if (rc != 0)
		hca_decap_drop(h, d, m, counter[-rc]);
	else
		d->frame[d->n++] = m;
}

static unsigned int
take_usual(struct hca_decap *d, struct rte_mbuf **m, unsigned int n)
{
	return d->ub.last ? hca_decap_ub_take(d, m, n) : hca_decap_roce_take(d, m, n);
}

/* The short ways of both wires, the last one's first; then a frame of no usual form. */
static void
describe_mixed(struct hca_pipe *h, struct hca_decap *d, struct rte_mbuf **m, unsigned int n)
{
	unsigned int i = take_usual(d, m, n), taken;

	while (i < n) {
		d->ub.last = !d->ub.last;
		taken = take_usual(d, m + i, n - i);
		if (taken == 0) {
			d->ub.last = !d->ub.last;
			take_general(h, d, m[i++]);
			taken = take_usual(d, m + i, n - i);
		}
		i += taken;
	}
}

static inline void
describe_burst(struct hca_pipe *h, struct hca_decap *d, bool ub, struct rte_mbuf **m,
	       unsigned int n)
{
	unsigned int i;

	if (unlikely(ub)) {
		describe_mixed(h, d, m, n);
		return;
	}
	i = hca_decap_roce_take(d, m, n);
	while (unlikely(i < n)) {
		take_general(h, d, m[i++]);
		i += hca_decap_roce_take(d, m + i, n - i);
	}
}

static void
hand_over_ub(struct hca_pipe *h, struct hca_decap *d, uint64_t now)
{
	if (d->ub.n_tps != 0)
		hca_edge_push(h, &h->edge[HCA_EDGE_DECAP_TPS], d->ub.to_tps, d->ub.n_tps, now);
	if (d->ub.n_tpr != 0)
		hca_edge_push(h, &h->edge[HCA_EDGE_DECAP_TPR], d->ub.to_tpr, d->ub.n_tpr, now);
}

/* Frames of both wires, by runs; those of UB are passed on, too. */
static void
judge_mixed(struct hca_pipe *h, struct hca_decap *d, uint64_t now)
{
	unsigned int from = 0, to;

	d->ub.n_tpr = d->ub.n_tps = 0;
	for (; from < d->n; from = to) {
		uint64_t bits = d->ub.frames >> from;
		bool ub = bits & 1;

		/* there are more bits than frames */
		to = from + (unsigned int)__builtin_ctzll((ub ? ~bits : bits) |
							  UINT64_C(1) << (d->n - from));
		if (ub)
			hca_decap_ub_judge(h, d, from, to);
		else
			hca_decap_roce_judge(h, d, from, to);
	}
	hand_over_ub(h, d, now);
}

static inline void
begin_burst(struct hca_decap *d)
{
	d->n = d->n_ee = d->n_req_rx = d->n_dead = 0;
	d->ub.frames = 0;
}

static inline void
hand_over(struct hca_pipe *h, struct hca_decap *d, uint64_t now)
{
	if (d->n_req_rx != 0)
		hca_edge_push(h, &h->edge[HCA_EDGE_DECAP_REQ_RX], d->to_req_rx, d->n_req_rx, now);
	if (d->n_ee != 0)
		hca_edge_push(h, &h->edge[HCA_EDGE_DECAP_EE], d->to_ee, d->n_ee, now);
	if (unlikely(d->n_dead != 0))
		rte_pktmbuf_free_bulk(d->dead, d->n_dead);
}

/* The port is not read until the last multicasts have been delivered. */
static unsigned int
continue_multicast(struct hca_pipe *h, struct hca_decap *d, unsigned int room, uint64_t now)
{
	begin_burst(d);
	hca_decap_roce_multicast(h, d, room);
	hand_over(h, d, now);
	return 1;
}

/* Looped-back frames get at most half of a full burst, and what the port leaves of the rest. */
static inline unsigned int
take(struct hca_pipe *h, struct rte_mbuf **m, unsigned int room, uint64_t now)
{
	bool loops = unlikely(__atomic_load_n(&h->loop.on, __ATOMIC_ACQUIRE) != 0);
	unsigned int n = 0;

	if (loops)
		n = hca_loopback_rx(h, m, (room + 1) / 2);
	if (n == room)
		return n;
	n += h->port->ops->rx(h->port, h->port_queue, m + n, (uint16_t)(room - n), now);
	if (loops && n < room)
		n += hca_loopback_rx(h, m + n, room - n);
	return n;
}

/* How many frames all stages take, whichever they are for. */
static inline unsigned int
room_of_all(struct hca_pipe *h, bool ub, unsigned int budget)
{
	unsigned int room = RTE_MIN(budget, HCA_BURST);

	if (unlikely(ub && room == HCA_BURST))
		room = HCA_DECAP_BURST;
	room = RTE_MIN(room, hca_edge_room(h, &h->edge[HCA_EDGE_DECAP_EE]));
	room = RTE_MIN(room, hca_edge_room(h, &h->edge[HCA_EDGE_DECAP_REQ_RX]));
	if (likely(!ub))
		return room;
	room = RTE_MIN(room, hca_edge_room(h, &h->edge[HCA_EDGE_DECAP_TPR]));
	return RTE_MIN(room, hca_edge_room(h, &h->edge[HCA_EDGE_DECAP_TPS]));
}

/* At most room frames, from the port to the stages. */
static __rte_always_inline unsigned int
burst(struct hca_pipe *h, struct hca_decap *d, bool ub, unsigned int room, uint64_t now)
{
	struct rte_mbuf *m[HCA_DECAP_BURST];
	unsigned int n = take(h, m, room, now);
	uint64_t bytes = 0;

	if (n == 0)
		return 0;
	for (unsigned int i = 0; i < n; i++) {
		const uint8_t *p = rte_pktmbuf_mtod(m[i], const uint8_t *);

		rte_prefetch0(p);
		/* the headers of long packets lie in two lines: begin_frame() in encap_ub.c */
		if (ub)
			rte_prefetch0(p + RTE_CACHE_LINE_SIZE);
		bytes += m[i]->pkt_len;
	}
	HCA_COUNT_N(h, DECAP, rcvd_pkts, n);
	HCA_COUNT_N(h, DECAP, port_rcv_data, bytes);
	begin_burst(d);
	describe_burst(h, d, ub, m, n);
	h->icrc->crc_burst(d->span, d->icrc, d->n);
	if (likely(d->ub.frames == 0))
		hca_decap_roce_judge(h, d, 0, d->n);
	else
		judge_mixed(h, d, now);
	if (unlikely(d->roce.mcast_n != 0))
		hca_decap_roce_multicast(h, d, room);
	hand_over(h, d, now);
	return n;
}

unsigned int
hca_decap_poll(struct hca_pipe *h, uint64_t now, unsigned int budget)
{
	struct hca_decap *d = h->stage_ctx[HCA_STAGE_DECAP];
	bool ub = h->ub != NULL;
	unsigned int room = room_of_all(h, ub, budget);

	d->stuck = room == 0;
	if (room == 0)
		return 0;
	if (unlikely(d->roce.mcast_n != 0))
		return continue_multicast(h, d, room, now);
	return burst(h, d, ub, room, now);
}

/* The port announces its frames itself: graph/sleep.c. */
uint64_t
hca_decap_deadline(const struct hca_pipe *h, uint64_t now)
{
	const struct hca_decap *d = h->stage_ctx[HCA_STAGE_DECAP];

	if (d->stuck)
		return HCA_DEADLINE_ROOM;
	return d->roce.mcast_n != 0 || hca_loopback_count(h) != 0 ? now : UINT64_MAX;
}
