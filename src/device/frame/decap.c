/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * decap: checks received bursts and passes frames to the stages of their wire: of RoCE to EE
 * (requests) or req_rx (responses). It takes from the port only as many frames as all of these
 * stages can accept; the others stay in the port's queue. A frame that fails a check is counted
 * under its reason and has no other effect.
 *
 * A device with RoCE alone calls the functions of RoCE directly; with several wires each frame goes
 * through the row of its wire (engine/wire_ops.h).
 */

#include <errno.h>

#include <rte_malloc.h>
#include <rte_prefetch.h>

#include "frame/decap.h"
#include "wire/wire_view.h"

#define HANDOVER_FRAMES 512u /* to each other pipe */

/* Lists the wires that a device with other wires than RoCE walks. */
static void
list_wires(const struct hca_pipe *h, struct hca_decap *d)
{
	HCA_WIRES_IN_USE(h, w)
	if (w->take != NULL)
		d->usual[d->n_usual++] = w;
}

/* In the reverse order of HCA_EDGE_LIST: acknowledgements before packets. */
static void
list_edges(struct hca_pipe *h, struct hca_decap *d)
{
	for (unsigned int i = HCA_EDGE_N; i-- > 0;)
		if (h->edge[i].process != NULL && h->edge[i].from == HCA_STAGE_DECAP &&
		    i != HCA_EDGE_DECAP_EE && i != HCA_EDGE_DECAP_REQ_RX)
			d->edge[d->n_edges++] = &h->edge[i];
}

int
hca_decap_init(struct hca_pipe *h)
{
	struct hca_decap *d =
		rte_zmalloc_socket("decap", sizeof(*d), RTE_CACHE_LINE_SIZE, h->cfg.socket_id);

	h->stage_ctx[HCA_STAGE_DECAP] = d;
	if (d == NULL)
		return -ENOMEM;
	d->h = h;
	list_wires(h, d);
	list_edges(h, d);
	return hca_handover_init(h, &h->handover, "hand", HANDOVER_FRAMES,
				 ((2u << h->pipe_mask) - 1) & ~(1u << h->pipe_number));
}

void
hca_decap_fini(struct hca_pipe *h)
{
	struct hca_decap *d = h->stage_ctx[HCA_STAGE_DECAP];

	hca_handover_fini(&h->handover);
	if (d != NULL)
		hca_decap_roce_fini(d);
	rte_free(d);
}

static int
describe_roce(const uint8_t *frame, const struct hca_wire_view *v, int rc, struct hca_rxd *r,
	      struct hca_icrc_span *span)
{
	if (v->wire == HCA_WIRE_ROCE)
		rc = hca_decap_roce_describe(frame, v, rc, r);
	else if (v->wire != HCA_WIRE_NONE)
		rc = -HCA_WIRE_DROP_NOT_ROCE;
	if (rc == 0)
		*span = hca_icrc_span_of_view(frame, v);
	return rc;
}

int
hca_decap_describe(const uint8_t *frame, uint32_t len, struct hca_rxd *r,
		   struct hca_icrc_span *span)
{
	struct hca_wire_view v;
	int rc = hca_wire_parse(frame, len, &v);

	return describe_roce(frame, &v, rc, r, span);
}

/* Whether another wire than RoCE has added it to the burst, or dropped it. */
static bool
take_other(struct hca_pipe *h, struct hca_decap *d, struct rte_mbuf *m,
	   const struct hca_wire_view *v, int rc)
{
	HCA_WIRES_IN_USE(h, w)
	if (w->wire != HCA_WIRE_ROCE && w->describe(h, d, m, v, rc))
		return true;
	return false;
}

static void
take_general(struct hca_pipe *h, struct hca_decap *d, struct rte_mbuf *m)
{
	static const uint16_t counter[HCA_WIRE_DROP_COUNT] = {
#define X(NAME, name, text) [HCA_WIRE_DROP_##NAME] = HCA_CTR_##name,
		HCA_WIRE_DROP_LIST(X)
#undef X
	};
	const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);
	struct hca_wire_view v;
	int rc;

	if (m->nb_segs != 1) {
		hca_decap_drop(h, d, m, HCA_CTR_rx_multi_segment);
		return;
	}
	rc = hca_wire_parse(p, m->data_len, &v);
	if (h->mixed && take_other(h, d, m, &v, rc))
		return;
	rc = describe_roce(p, &v, rc, hca_rxd(m), &d->span[d->n]);
	if (rc != 0)
		hca_decap_drop(h, d, m, counter[-rc]);
	else
		d->frame[d->n++] = m;
}

/* The frames at m of one wire that have its usual form; that of the last frame is tried first. */
static unsigned int
take_usual(struct hca_decap *d, struct rte_mbuf **m, unsigned int n)
{
	for (unsigned int i = 0; i < d->n_usual; i++) {
		unsigned int taken = d->usual[d->usual_at]->take(d, m, n);

		if (taken != 0)
			return taken;
		if (++d->usual_at == d->n_usual)
			d->usual_at = 0;
	}
	return 0;
}

static void
describe_mixed(struct hca_pipe *h, struct hca_decap *d, struct rte_mbuf **m, unsigned int n)
{
	for (unsigned int i = 0, taken; i < n; i += taken) {
		taken = take_usual(d, m + i, n - i);
		if (taken == 0) {
			take_general(h, d, m[i]);
			taken = 1;
		}
	}
}

static inline void
describe_burst(struct hca_pipe *h, struct hca_decap *d, bool mixed, struct rte_mbuf **m,
	       unsigned int n)
{
	unsigned int i;

	if (mixed) {
		describe_mixed(h, d, m, n);
		return;
	}
	i = hca_decap_roce_take(d, m, n);
	while (unlikely(i < n)) {
		take_general(h, d, m[i++]);
		i += hca_decap_roce_take(d, m + i, n - i);
	}
}

/* The wire of a frame of the burst, and in *end the first frame behind it that is of another. */
static const struct hca_wire_ops *
run_of(const struct hca_pipe *h, const struct hca_decap *d, unsigned int at, unsigned int *end)
{
	/* there are more bits than frames */
	uint64_t stop = UINT64_C(1) << (d->n - at), others = d->of_others >> at;
	unsigned int wire = HCA_WIRE_ROCE;

	if (others & 1) {
		for (wire = HCA_WIRE_ROWS - 1; (d->of[wire] >> at & 1) == 0;)
			wire--;
		others = ~(d->of[wire] >> at);
	}
	*end = at + (unsigned int)__builtin_ctzll(others | stop);
	return h->wire[wire];
}

static void
judge_mixed(struct hca_pipe *h, struct hca_decap *d)
{
	for (unsigned int from = 0, to; from < d->n; from = to) {
		const struct hca_wire_ops *w = run_of(h, d, from, &to);

		w->judge(h, d, from, to);
	}
}

/* Along the edges of other wires than RoCE. */
static void
hand_over_mixed(struct hca_pipe *h, struct hca_decap *d, uint64_t now)
{
	for (unsigned int i = 0; i < d->n_edges; i++) {
		struct hca_decap_out *out = &d->out[d->edge[i] - h->edge];

		if (out->n != 0)
			hca_edge_push(h, d->edge[i], out->frame, out->n, now);
	}
}

static inline void
begin_burst(struct hca_decap *d)
{
	d->n = d->out[HCA_EDGE_DECAP_EE].n = d->out[HCA_EDGE_DECAP_REQ_RX].n = d->n_dead = 0;
}

static void
begin_mixed(const struct hca_pipe *h, struct hca_decap *d)
{
	for (unsigned int i = 0; i < d->n_edges; i++)
		d->out[d->edge[i] - h->edge].n = 0;
	for (unsigned int i = 0; i < HCA_WIRE_ROWS; i++)
		d->of[i] = 0;
	d->of_others = 0;
}

static inline void
push(struct hca_pipe *h, struct hca_decap *d, enum hca_edge_id edge, uint64_t now)
{
	if (d->out[edge].n != 0)
		hca_edge_push(h, &h->edge[edge], d->out[edge].frame, d->out[edge].n, now);
}

static inline void
hand_over(struct hca_pipe *h, struct hca_decap *d, uint64_t now)
{
	push(h, d, HCA_EDGE_DECAP_REQ_RX, now);
	push(h, d, HCA_EDGE_DECAP_EE, now);
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

/* ---- several pipes ---- */

/* Frames that other pipes received for this one. */
static unsigned int
take_handed(struct hca_pipe *h, struct hca_decap *d, struct rte_mbuf **m, unsigned int max)
{
	unsigned int n = 0;

	for (unsigned int i = 1; i <= h->pipe_mask && n < max; i++) {
		unsigned int from = (h->pipe_number + d->next_pipe + i) & h->pipe_mask;
		struct rte_ring *r = h->hca->pipe[from].handover.to[h->pipe_number];

		if (r != NULL)
			n += rte_ring_dequeue_burst(r, (void **)m + n, max - n, NULL);
	}
	d->next_pipe++;
	for (unsigned int i = 0; i < n; i++)
		d->copies += m[i]->hash.usr == HCA_HANDED_COPY;
	return n;
}

/*
 * Frames that may be for any other pipe. A ring that has had no room for cfg.port_stall_ns belongs
 * to a worker without a CPU: it does not stop reception for the other pipes, its frames are lost.
 */
static unsigned int
handover_room(struct hca_pipe *h, struct hca_decap *d, uint64_t now)
{
	unsigned int room = UINT32_MAX;

	for (unsigned int n = 0; n < h->hca->n_pipes; n++) {
		unsigned int left =
			h->handover.to[n] != NULL ? hca_ring_room(h->handover.to[n]) : UINT32_MAX;

		if (likely(left != 0))
			d->full_since[n] = 0;
		else if (d->full_since[n] == 0)
			d->full_since[n] = now ? now : 1;
		else if (now - d->full_since[n] >= h->cfg.port_stall_ns)
			continue;
		room = RTE_MIN(room, left);
	}
	return room;
}

static void
hand_to(struct hca_pipe *h, struct hca_decap *d, unsigned int pipe, struct rte_mbuf *m)
{
	d->handed++;
	if (unlikely(rte_ring_enqueue(h->handover.to[pipe], m) != 0)) {
		HCA_COUNT(h, DECAP, rcvd_pkts);
		HCA_COUNT_N(h, DECAP, port_rcv_data, m->pkt_len);
		HCA_COUNT(h, DECAP, rx_handover_full);
		rte_pktmbuf_free(m);
		return;
	}
	HCA_COUNT(h, DECAP, rx_handed_over);
	hca_wake_pipe(h, HCA_STAGE_DECAP, pipe, HCA_STAGE_DECAP);
}

/* Copies of a multicast for the other pipes; a copy without a buffer or room is lost. */
static void
hand_copies(struct hca_pipe *h, struct hca_decap *d, const struct rte_mbuf *m)
{
	for (unsigned int n = 0; n < h->hca->n_pipes; n++) {
		struct rte_mbuf *c;

		if (h->handover.to[n] == NULL)
			continue;
		c = hca_decap_copy(h, m);
		if (c != NULL)
			c->hash.usr = HCA_HANDED_COPY;
		if (c == NULL || rte_ring_enqueue(h->handover.to[n], c) != 0) {
			HCA_COUNT(h, DECAP, rx_mcast_not_handed);
			rte_pktmbuf_free(c);
			continue;
		}
		d->handed++;
		hca_wake_pipe(h, HCA_STAGE_DECAP, n, HCA_STAGE_DECAP);
	}
}

/* Frames of the port: those of this pipe stay at m. Returns their number. */
static unsigned int
keep_own(struct hca_pipe *h, struct hca_decap *d, struct rte_mbuf **m, unsigned int n)
{
	unsigned int own = 0;

	for (unsigned int i = 0; i < n; i++)
		rte_prefetch0(rte_pktmbuf_mtod(m[i], const uint8_t *));
	for (unsigned int i = 0; i < n; i++) {
		unsigned int pipe =
			hca_pipe_of_frame(&h->core, rte_pktmbuf_mtod(m[i], const uint8_t *),
					  m[i]->data_len);

		if (unlikely(pipe == HCA_PIPE_ALL)) {
			hand_copies(h, d, m[i]);
			m[i]->hash.usr = 0;
			pipe = h->pipe_number;
		}
		if (pipe == h->pipe_number)
			m[own++] = m[i];
		else
			hand_to(h, d, pipe, m[i]);
	}
	return own;
}

/* The same as take_frames() for one of several pipes. */
static __rte_noinline unsigned int
take_of_pipes(struct hca_pipe *h, struct hca_decap *d, struct rte_mbuf **m, unsigned int room,
	      uint64_t now)
{
	unsigned int n, max;

	d->handed = d->copies = 0;
	n = hca_loopback_rx(h, m, (room + 3) / 4);
	for (unsigned int i = 0; i < n; i++)
		d->copies += m[i]->hash.usr == HCA_HANDED_COPY;
	n += take_handed(h, d, m + n, (room - n + 1) / 2);
	max = RTE_MIN(room - n, handover_room(h, d, now));
	if (max != 0) {
		max = h->port->ops->rx(h->port, h->port_queue, m + n, (uint16_t)max, now);
		n += keep_own(h, d, m + n, max);
	}
	return n;
}

/* ---- a burst ---- */

/* Looped-back frames get at most half of a full burst, and places that the port leaves free. */
static inline unsigned int
take_frames(struct hca_pipe *h, struct hca_decap *d, struct rte_mbuf **m, unsigned int room,
	    uint64_t now)
{
	bool loops = unlikely(__atomic_load_n(&h->loop.on, __ATOMIC_ACQUIRE) != 0);
	unsigned int n = 0;

	if (unlikely(h->pipe_mask != 0))
		return take_of_pipes(h, d, m, room, now);
	if (loops)
		n = hca_loopback_rx(h, m, (room + 1) / 2);
	if (n == room)
		return n;
	n += h->port->ops->rx(h->port, h->port_queue, m + n, (uint16_t)(room - n), now);
	if (loops && n < room)
		n += hca_loopback_rx(h, m + n, room - n);
	return n;
}

/* Number of frames that every stage can take, so that the burst may be for any of them. */
static inline unsigned int
room_of_all(struct hca_pipe *h, const struct hca_decap *d, bool mixed, unsigned int budget)
{
	unsigned int room = RTE_MIN(budget, HCA_BURST);

	if (mixed && room == HCA_BURST)
		room = HCA_DECAP_BURST;
	room = RTE_MIN(room, hca_edge_room(h, &h->edge[HCA_EDGE_DECAP_EE]));
	room = RTE_MIN(room, hca_edge_room(h, &h->edge[HCA_EDGE_DECAP_REQ_RX]));
	if (!mixed)
		return room;
	for (unsigned int i = 0; i < d->n_edges; i++)
		room = RTE_MIN(room, hca_edge_room(h, d->edge[i]));
	return room;
}

/* At most room frames, from the port to the stages. */
static __rte_always_inline unsigned int
burst(struct hca_pipe *h, struct hca_decap *d, bool mixed, unsigned int room, uint64_t now)
{
	struct rte_mbuf *m[HCA_DECAP_BURST];
	unsigned int n = take_frames(h, d, m, room, now);
	uint64_t bytes = 0;

	if (n == 0)
		return d->handed;
	for (unsigned int i = 0; i < n; i++) {
		const uint8_t *p = rte_pktmbuf_mtod(m[i], const uint8_t *);

		rte_prefetch0(p);
		/* a wire may have the headers of long packets in two lines */
		if (mixed)
			rte_prefetch0(p + RTE_CACHE_LINE_SIZE);
		bytes += m[i]->pkt_len;
	}
	HCA_COUNT_N(h, DECAP, rcvd_pkts, n - d->copies);
	HCA_COUNT_N(h, DECAP, port_rcv_data, bytes);
	begin_burst(d);
	if (mixed)
		begin_mixed(h, d);
	describe_burst(h, d, mixed, m, n);
	h->icrc->crc_burst(d->span, d->icrc, d->n);
	if (mixed) {
		judge_mixed(h, d);
		hand_over_mixed(h, d, now);
	} else {
		hca_decap_roce_judge(h, d, 0, d->n);
	}
	if (unlikely(d->roce.mcast_n != 0))
		hca_decap_roce_multicast(h, d, room);
	hand_over(h, d, now);
	return n + d->handed;
}

/* One copy for each kind of device: its checks are made once, not for each frame. */
static __rte_always_inline unsigned int
poll(struct hca_pipe *h, bool mixed, uint64_t now, unsigned int budget)
{
	struct hca_decap *d = h->stage_ctx[HCA_STAGE_DECAP];
	unsigned int room = room_of_all(h, d, mixed, budget);

	d->stuck = room == 0;
	if (room == 0)
		return 0;
	if (unlikely(d->roce.mcast_n != 0))
		return continue_multicast(h, d, room, now);
	return burst(h, d, mixed, room, now);
}

static __rte_noinline unsigned int
poll_mixed(struct hca_pipe *h, uint64_t now, unsigned int budget)
{
	return poll(h, true, now, budget);
}

unsigned int
hca_decap_poll(struct hca_pipe *h, uint64_t now, unsigned int budget)
{
	return likely(!h->mixed) ? poll(h, false, now, budget) : poll_mixed(h, now, budget);
}

static bool
handed_waits(const struct hca_pipe *h)
{
	for (unsigned int n = 0; n < h->hca->n_pipes; n++) {
		const struct rte_ring *r = h->hca->pipe[n].handover.to[h->pipe_number];

		if (r != NULL && hca_ring_count(r) != 0)
			return true;
	}
	return false;
}

/* The port announces its frames itself: graph/sleep.c. */
uint64_t
hca_decap_deadline(const struct hca_pipe *h, uint64_t now)
{
	const struct hca_decap *d = h->stage_ctx[HCA_STAGE_DECAP];

	if (d->stuck)
		return HCA_DEADLINE_ROOM;
	if (unlikely(h->pipe_mask != 0) && handed_waits(h))
		return now;
	return d->roce.mcast_n != 0 || hca_loopback_count(h) != 0 ? now : UINT64_MAX;
}
