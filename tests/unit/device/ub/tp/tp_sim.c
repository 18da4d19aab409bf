/* SPDX-License-Identifier: BSD-3-Clause */

#include "tp_sim.h"

#include "tp_rig.h"

#define RING 4096u	/* more than any window */
#define FRAME_BYTES 114 /* around a payload, with preamble and gap */
#define QUEUE 256u

struct sim_frame {
	uint64_t arrives;
	uint64_t order;	 /* of sending */
	uint64_t packet; /* number of a TP packet: in the order of first sendings */
	uint32_t to, tp;
	bool answer;
	struct hca_tp_pkt p;
	struct hca_tp_answer a;
	uint8_t bits[HCA_TP_SACK_BYTES];
};

/* The simulation's state of an operation. */
struct sim_op {
	uint32_t serial;
	uint32_t left; /* packets not passed on yet */
	uint64_t tag;
	bool busy;
	uint64_t answered_at; /* 0: not to be marked */
};

/* One TP's direction: packets by number. */
struct sim_ledger {
	uint64_t sent;
	uint64_t number[RING]; /* by PSN */
	uint32_t op[RING];     /* by number: reference with lane */
	uint32_t len[RING];
	uint64_t serial[RING];
	uint64_t passed[RING]; /* by number: the number + 1 that was passed on */
};

struct sim_end {
	struct hca_tp tp[SIM_TPS];
	struct hca_tp_sched sched;
	struct sim_ledger ledger[SIM_TPS];
	struct sim_op op[HCA_TP_LANES][SIM_OPS];
	uint32_t free[HCA_TP_LANES][SIM_OPS], n_free[HCA_TP_LANES];
	uint32_t back[HCA_TP_LANES][SIM_TPS]; /* operations taken back, free running */
	uint32_t serial;
	uint64_t port_free, path_free[SIM_PATHS];
	struct hca_tp_txd queue[QUEUE]; /* encap's */
	uint64_t queued_at[QUEUE];
	uint32_t queue_head, queue_tail;
	uint64_t answered_next;
};

/* ---- random numbers: splitmix64 ---- */

static uint64_t
random64(struct tp_sim *s)
{
	uint64_t z = s->random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

uint32_t
tp_sim_random(struct tp_sim *s, uint32_t n)
{
	return (uint32_t)(random64(s) % n);
}

static bool
happens(struct tp_sim *s, uint32_t ppm)
{
	return ppm != 0 && tp_sim_random(s, 1000000) < ppm;
}

/* ---- frames on their way ---- */

static bool
sooner(const struct sim_frame *a, const struct sim_frame *b)
{
	return a->arrives != b->arrives ? a->arrives < b->arrives : a->order < b->order;
}

static void
heap_push(struct sim_heap *h, struct sim_frame *f)
{
	uint32_t i = h->n++;

	if (i == h->size) {
		h->size = h->size * 2 + 1024;
		h->frame = realloc(h->frame, h->size * sizeof(h->frame[0]));
	}
	for (; i != 0 && sooner(f, h->frame[(i - 1) / 2]); i = (i - 1) / 2)
		h->frame[i] = h->frame[(i - 1) / 2];
	h->frame[i] = f;
}

static struct sim_frame *
heap_pop(struct sim_heap *h)
{
	struct sim_frame *top = h->frame[0], *last = h->frame[--h->n];
	uint32_t i = 0, child;

	while ((child = 2 * i + 1) < h->n) {
		if (child + 1 < h->n && sooner(h->frame[child + 1], h->frame[child]))
			child++;
		if (!sooner(h->frame[child], last))
			break;
		h->frame[i] = h->frame[child];
		i = child;
	}
	h->frame[i] = last;
	return top;
}

/* When the next frame for an end arrives; UINT64_MAX: none. */
static uint64_t
heap_next(const struct tp_sim *s)
{
	uint64_t next = UINT64_MAX;

	for (uint32_t end = 0; end < 2; end++) {
		if (s->heap[end].n != 0)
			next = RTE_MIN(next, s->heap[end].frame[0]->arrives);
	}
	return next;
}

/* ---- the network ---- */

/* The time at which a frame that leaves now has passed the sender's port and its path. */
static uint64_t
cross(struct tp_sim *s, uint32_t from, uint32_t path, uint32_t bytes)
{
	const struct sim_link *l = &s->cfg.link[from];
	struct sim_end *e = s->end[from];
	uint64_t ps = bytes * UINT64_C(8000) / l->gbps;

	e->port_free = RTE_MAX(e->port_free, s->now * 1000) + ps;
	e->path_free[path] =
		RTE_MAX(e->path_free[path], e->port_free - ps) + ps * RTE_MAX(l->paths, 1u);
	return e->path_free[path] / 1000 + l->delay +
	       (l->paths > 1 ? l->skew * path / (l->paths - 1) : 0);
}

static bool
is_cut(const struct tp_sim *s, const struct sim_link *l)
{
	return l->cut_at != 0 && s->now >= l->cut_at;
}

static void
launch(struct tp_sim *s, uint32_t from, const struct sim_frame *f, uint32_t port, uint32_t bytes)
{
	const struct sim_link *l = &s->cfg.link[from];
	uint32_t path = port % RTE_MAX(l->paths, 1u), copies = 1;
	uint64_t arrives = cross(s, from, path, bytes);

	if (happens(s, l->loss) || (path == 0 && happens(s, l->loss0)) || is_cut(s, l)) {
		copies = 0;
		s->flow[from].lost += !f->answer;
		s->flow[from].lost_answers += f->answer;
	} else if (happens(s, l->copy)) {
		copies = 2;
		s->flow[from].copied += !f->answer;
	}
	while (copies-- > 0) {
		struct sim_frame *on_way = malloc(sizeof(*on_way));

		*on_way = *f;
		on_way->to = from ^ 1;
		on_way->order = s->frames++;
		on_way->arrives = arrives + (happens(s, l->late) ? random64(s) % l->late_by : 0);
		on_way->a.bits = on_way->bits;
		heap_push(&s->heap[on_way->to], on_way);
	}
}

/* ---- operations ---- */

struct hca_tp *
tp_sim_tp(struct tp_sim *s, uint32_t end, uint32_t tp)
{
	return &s->end[end]->tp[tp];
}

uint32_t
tp_sim_room(struct tp_sim *s, uint32_t end, uint32_t tp, uint32_t lane)
{
	return RTE_MIN(hca_tp_lane_room(&s->end[end]->tp[tp], lane), s->end[end]->n_free[lane]);
}

void
tp_sim_put(struct tp_sim *s, uint32_t end, uint32_t tp, uint32_t lane, uint32_t payload,
	   uint64_t tag)
{
	struct sim_end *e = s->end[end];
	struct hca_ta_op *op;
	uint32_t index;

	assert_true(tp_sim_room(s, end, tp, lane) > 0);
	index = e->free[lane][--e->n_free[lane]];
	op = &e->sched.pools.op[lane][index];
	*op = (struct hca_ta_op){.payload = payload};
	e->op[lane][index] = (struct sim_op){.serial = ++e->serial,
					     .left = hca_ta_op_packets(op, s->cfg.tp.mtu_log),
					     .tag = tag,
					     .busy = true};
	hca_tp_lane_put(&e->tp[tp], lane, index);
	hca_tp_sched_wake(&e->sched, tp);
	if (happens(s, s->cfg.orphans))
		hca_ta_op_set_flag(op, HCA_TA_OP_ORPHAN);
}

/* Operations that came back may be used again; they are filled with nonsense until then. */
static void
take_back(struct tp_sim *s, struct sim_end *e, uint32_t tp)
{
	struct hca_tp *t = &e->tp[tp];

	hca_tp_release(t, &e->sched.pools);
	for (uint32_t lane = 0; lane < HCA_TP_LANES; lane++) {
		while (e->back[lane][tp] != t->tx.lane[lane].done) {
			uint32_t at = e->back[lane][tp]++ & (t->cfg.window - 1u);
			uint32_t index = t->lane[lane].ring[at];

			assert_true(e->op[lane][index].busy);
			e->op[lane][index].busy = false;
			memset(&e->sched.pools.op[lane][index], 0xa5, sizeof(struct hca_ta_op));
			e->free[lane][e->n_free[lane]++] = index;
		}
	}
}

/* ---- receiving ---- */

static void
op_progress(struct tp_sim *s, uint32_t from, uint32_t tp, uint32_t ref, uint64_t serial)
{
	uint32_t lane = ref >> HCA_TA_OPREF_LANE_SHIFT;
	struct sim_op *op = &s->end[from]->op[lane][ref & HCA_TA_OPREF_INDEX];

	/* passing on a packet of an operation that was taken back is a fault */
	assert_true(op->busy && op->serial == serial);
	assert_true(op->left > 0);
	if (--op->left != 0)
		return;
	if (happens(s, s->cfg.answered))
		op->answered_at = s->now + 1 + tp_sim_random(s, 20000);
	if (s->cfg.app->complete != NULL)
		s->cfg.app->complete(s, from, tp, lane, op->tag);
}

static void
passed_on(struct tp_sim *s, const struct sim_frame *f)
{
	uint32_t from = f->to ^ 1, at = f->packet % RING;
	struct sim_ledger *l = &s->end[from]->ledger[f->tp];

	assert_true(f->packet < l->sent);
	assert_true(f->packet + RING > l->sent);
	assert_true(l->passed[at] != f->packet + 1);
	l->passed[at] = f->packet + 1;
	s->flow[from].passed++;
	s->flow[from].bytes += l->len[at];
	op_progress(s, from, f->tp, l->op[at], l->serial[at]);
}

static void
receive(struct tp_sim *s, struct sim_end *e, const struct sim_frame *f)
{
	struct hca_tp *tp = &e->tp[f->tp];

	if (f->answer) {
		hca_tp_ack(tp, &e->sched.pools, &f->a, s->now);
		hca_tp_sched_wake(&e->sched, f->tp);
		take_back(s, e, f->tp);
		return;
	}
	s->flow[f->to ^ 1].tp_frames++;
	if (hca_tp_receives(hca_tp_state(tp)) && hca_tp_accept(tp, &f->p) == HCA_TP_PASS)
		passed_on(s, f);
}

static uint32_t
arrivals(struct tp_sim *s, uint32_t end)
{
	struct sim_heap *heap = &s->heap[end];
	uint32_t n = 0;

	for (; heap->n != 0 && heap->frame[0]->arrives <= s->now; n++) {
		struct sim_frame *f = heap_pop(heap);

		receive(s, s->end[end], f);
		free(f);
	}
	return n;
}

static void
answer(struct tp_sim *s, uint32_t end, bool idle)
{
	for (uint32_t i = 0; i < s->cfg.tps; i++) {
		struct hca_tp *tp = &s->end[end]->tp[i];
		struct sim_frame f = {.answer = true, .tp = i};

		if (tp->rx.debt == HCA_TP_OWES_LATER && !idle)
			continue;
		if (hca_tp_make_answer(tp, &f.a, f.bits))
			launch(s, end, &f, f.a.port, 64);
	}
}

/* ---- sending ---- */

static void
enter(struct tp_sim *s, uint32_t end, const struct hca_tp_txd *d)
{
	struct sim_end *e = s->end[end];
	struct sim_ledger *l = &e->ledger[d->tp];
	const struct hca_ta_op *op = hca_ta_op_at(&e->sched.pools, d->op);
	uint32_t lane = d->op >> HCA_TA_OPREF_LANE_SHIFT, at = l->sent % RING;

	l->number[d->psn % RING] = l->sent;
	l->op[at] = d->op;
	l->serial[at] = e->op[lane][d->op & HCA_TA_OPREF_INDEX].serial;
	l->len[at] = hca_ta_op_packet_len(op, d->packet, s->cfg.tp.mtu_log);
	l->passed[at] = 0;
	l->sent++;
	s->flow[end].packets++;
}

static void
transmit(struct tp_sim *s, uint32_t end, const struct hca_tp_txd *d)
{
	struct sim_end *e = s->end[end];
	const struct hca_ta_op *op = hca_ta_op_at(&e->sched.pools, d->op);
	struct sim_frame f = {.tp = d->tp, .packet = e->ledger[d->tp].number[d->psn % RING]};

	f.p = (struct hca_tp_pkt){.psn = d->psn,
				  .tpmsn = op->tps.tpmsn,
				  .port = d->port,
				  .last = d->flags & HCA_TP_TXD_LAST,
				  .ask = d->flags & HCA_TP_TXD_ASK};
	launch(s, end, &f, d->port,
	       hca_ta_op_packet_len(op, d->packet, s->cfg.tp.mtu_log) + FRAME_BYTES);
	e->tp[d->tp].encap.done_seq = d->seq;
}

static void
encap(struct tp_sim *s, uint32_t end)
{
	struct sim_end *e = s->end[end];

	while (e->queue_tail != e->queue_head && e->queued_at[e->queue_tail % QUEUE] <= s->now) {
		const struct hca_tp_txd *d = &e->queue[e->queue_tail++ % QUEUE];

		transmit(s, end, d);
		take_back(s, e, d->tp);
	}
}

static void
enqueue(struct tp_sim *s, struct sim_end *e, const struct hca_tp_txd *d)
{
	uint32_t at = e->queue_head++ % QUEUE;

	e->queue[at] = *d;
	e->queued_at[at] = s->now + (s->cfg.lazy_encap ? random64(s) % (4 * s->cfg.poll) : 0);
}

static uint32_t
send(struct tp_sim *s, uint32_t end)
{
	struct sim_end *e = s->end[end];
	struct hca_tp_txd d, *at = &d;
	uint32_t n = 0;

	encap(s, end);
	while (e->port_free < (s->now + s->cfg.poll) * 1000 &&
	       e->queue_head - e->queue_tail < QUEUE &&
	       hca_tp_sched_run(&e->sched, s->now, &at, 1) == 1) {
		if (d.flags & HCA_TP_TXD_AGAIN)
			s->flow[end].resent++;
		else
			enter(s, end, &d);
		enqueue(s, e, &d);
		if (!s->cfg.lazy_encap)
			encap(s, end);
		n++;
	}
	/* orphans that were passed over */
	for (uint32_t i = 0; i < s->cfg.tps; i++)
		take_back(s, e, i);
	return n;
}

static void
expire(struct tp_sim *s, uint32_t end)
{
	struct sim_end *e = s->end[end];

	for (uint32_t i = 0; i < s->cfg.tps; i++) {
		if (s->now >= e->tp[i].tx.deadline) {
			hca_tp_expire(&e->tp[i], &e->sched.pools, s->now);
			hca_tp_sched_wake(&e->sched, i);
		}
		if (hca_tp_state(&e->tp[i]) == HCA_TPS_ERROR)
			take_back(s, e, i);
	}
}

/* The response of some operations comes before the acknowledgement of their packets. */
static void
mark_answered(struct tp_sim *s, struct sim_end *e)
{
	if (s->cfg.answered == 0 || s->now < e->answered_next)
		return;
	e->answered_next = s->now + 20000;
	for (uint32_t lane = 0; lane < HCA_TP_LANES; lane++) {
		for (uint32_t i = 0; i < SIM_OPS; i++) {
			struct sim_op *op = &e->op[lane][i];

			if (!op->busy || op->answered_at == 0 || op->answered_at > s->now)
				continue;
			op->answered_at = 0;
			hca_ta_op_set_flag(&e->sched.pools.op[lane][i], HCA_TA_OP_ANSWERED);
		}
	}
}

/* ---- */

static uint32_t
poll_end(struct tp_sim *s, uint32_t end)
{
	uint32_t n = arrivals(s, end);

	answer(s, end, n == 0);
	mark_answered(s, s->end[end]);
	s->cfg.app->fill(s, end);
	expire(s, end);
	return n + send(s, end);
}

static bool
lanes_empty(struct tp_sim *s)
{
	for (uint32_t i = 0; i < 2 * s->cfg.tps; i++) {
		const struct hca_tp *tp = tp_sim_tp(s, i & 1, i >> 1);

		for (uint32_t lane = 0; lane < HCA_TP_LANES; lane++) {
			if (tp->tx.lane[lane].done != tp->lane[lane].head)
				return false;
		}
	}
	return true;
}

/* Nothing happens before: a frame arrives or a timer expires. */
static uint64_t
next_time(struct tp_sim *s)
{
	uint64_t next = heap_next(s);

	for (uint32_t i = 0; i < 2 * s->cfg.tps; i++)
		next = RTE_MIN(next, tp_sim_tp(s, i & 1, i >> 1)->tx.deadline);
	return RTE_MAX(next, s->now + s->cfg.poll);
}

static bool
encap_empty(const struct tp_sim *s)
{
	return s->end[0]->queue_head == s->end[0]->queue_tail &&
	       s->end[1]->queue_head == s->end[1]->queue_tail;
}

static bool
quiet(struct tp_sim *s)
{
	return heap_next(s) == UINT64_MAX && encap_empty(s) && lanes_empty(s) &&
	       s->cfg.app->finished(s);
}

bool
tp_sim_run(struct tp_sim *s, uint64_t until)
{
	uint32_t idle = 0;

	while (s->now < until) {
		uint32_t n = poll_end(s, 0) + poll_end(s, 1);

		idle = n == 0 ? idle + 1 : 0;
		if (idle > 8 && quiet(s))
			return true;
		if (idle > 8 && encap_empty(s) && s->cfg.app->finished(s))
			s->now = RTE_MIN(next_time(s), until);
		else
			s->now += s->cfg.poll;
	}
	return false;
}

/* A first number: often one that wraps soon. */
static uint32_t
first_number(struct tp_sim *s)
{
	return tp_sim_random(s, 2) ? 0xffffff - tp_sim_random(s, 1000) : tp_sim_random(s, 1u << 24);
}

static void
open_tp(struct tp_sim *s, uint32_t i)
{
	uint32_t psn[2] = {first_number(s), first_number(s)};
	uint32_t tpmsn[2] = {first_number(s), first_number(s)};

	for (uint32_t end = 0; end < 2; end++) {
		struct hca_tp *tp = &s->end[end]->tp[i];

		tp->cfg = s->cfg.tp;
		tp->cfg.port += (uint16_t)(i * 256);
		rig_memory(tp, psn[end], psn[end ^ 1]);
		tp->tx.tpmsn = tpmsn[end];
		tp->rx.msn = tpmsn[end ^ 1];
	}
}

void
tp_sim_open(struct tp_sim *s, const struct sim_cfg *cfg)
{
	*s = (struct tp_sim){.cfg = *cfg, .random = cfg->seed, .now = 1000000};
	for (uint32_t end = 0; end < 2; end++) {
		struct sim_end *e = s->end[end] =
			aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(struct sim_end));
		struct hca_ta_op_pools pools;

		memset(e, 0, sizeof(*e));
		for (uint32_t lane = 0; lane < HCA_TP_LANES; lane++) {
			pools.op[lane] = calloc(SIM_OPS, sizeof(struct hca_ta_op));
			for (uint32_t i = 0; i < SIM_OPS; i++)
				e->free[lane][i] = i;
			e->n_free[lane] = SIM_OPS;
		}
		hca_tp_sched_init(&e->sched, e->tp, &pools);
	}
	for (uint32_t i = 0; i < cfg->tps; i++)
		open_tp(s, i);
}

void
tp_sim_close(struct tp_sim *s)
{
	for (uint32_t end = 0; end < 2; end++) {
		struct sim_end *e = s->end[end];

		while (s->heap[end].n != 0)
			free(heap_pop(&s->heap[end]));
		free(s->heap[end].frame);
		for (uint32_t i = 0; i < s->cfg.tps; i++)
			free(e->tp[i].cfg.block);
		for (uint32_t lane = 0; lane < HCA_TP_LANES; lane++)
			free(e->sched.pools.op[lane]);
		free(e);
	}
}

/* ---- checks when no packet is in flight ---- */

static bool
all_zero(const uint64_t *ring, uint32_t window)
{
	for (uint32_t i = 0; i < window / 64; i++) {
		if (ring[i] != 0)
			return false;
	}
	return true;
}

static void
check_sender(const struct hca_tp *tp, const struct hca_tp *peer)
{
	const struct hca_tp_tx *tx = &tp->tx;

	assert_int_equal(tx->ops_sent, tx->ops_acked + tx->ops_given_up);
	for (uint32_t lane = 0; lane < HCA_TP_LANES; lane++)
		assert_int_equal(tx->lane[lane].done, tp->lane[lane].head);
	if (hca_tp_state(tp) == HCA_TPS_ERROR)
		return;
	assert_int_equal(tx->ops_given_up, 0);
	assert_int_equal(tx->una, tx->next);
	assert_int_equal(tx->again_n, 0);
	assert_true(tx->deadline == HCA_TP_NEVER);
	assert_true(all_zero(tx->got, tp->cfg.window));
	assert_true(all_zero(tx->again, tp->cfg.window));
	assert_int_equal(tx->acks_bad, 0);
	assert_int_equal(peer->rx.epsn, tx->next);
	assert_int_equal(peer->rx.msn, tx->tpmsn);
}

static void
check_receiver(const struct hca_tp *tp)
{
	const struct hca_tp_rx *rx = &tp->rx;

	assert_true(rx->packets ==
		    rx->passed + rx->fake + rx->duplicates + rx->out_of_order + rx->invalid);
	if (hca_tp_state(tp) == HCA_TPS_ERROR)
		return;
	assert_int_equal(rx->debt, HCA_TP_OWES_NOTHING);
	assert_int_equal(rx->broken, 0);
	assert_true(all_zero(rx->bits, tp->cfg.window));
	assert_int_equal(rx->max_rcv, hca_tp_psn_before(rx->epsn));
}

static uint64_t
resent_of(const struct hca_tp *tp)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < HCA_TP_AGAINS; i++)
		n += tp->tx.resent[i];
	return n;
}

void
tp_sim_check(struct tp_sim *s)
{
	for (uint32_t end = 0; end < 2; end++) {
		const struct sim_flow *f = &s->flow[end];
		uint64_t resent = 0, packets = 0, passed = 0, got = 0;

		for (uint32_t i = 0; i < s->cfg.tps; i++) {
			const struct hca_tp *tp = tp_sim_tp(s, end, i);
			const struct hca_tp *peer = tp_sim_tp(s, end ^ 1, i);

			check_sender(tp, peer);
			check_receiver(tp);
			resent += resent_of(tp);
			packets += tp->tx.packets;
			passed += peer->rx.passed;
			got += peer->rx.packets;
			if (hca_tp_state(tp) != HCA_TPS_ERROR)
				assert_int_equal(tp->tx.packets, peer->rx.passed);
		}
		assert_int_equal(f->packets, packets);
		assert_int_equal(f->resent, resent);
		assert_int_equal(f->passed, passed);
		assert_true(f->tp_frames == packets + resent + f->copied - f->lost);
		assert_true(got <= f->tp_frames);
		for (uint32_t lane = 0; lane < HCA_TP_LANES; lane++)
			assert_int_equal(s->end[end]->n_free[lane], SIM_OPS);
	}
}
