/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * tp_send (TPS, TP sender): operations from the lanes of TPs become packet descriptors for encap,
 * as answers, windows and the scheduler allow; operations go back to their owners. Every TP has at
 * most one entry in the timing wheel, whose deadline is moved lazily.
 */

#include <errno.h>
#include <string.h>

#include <rte_malloc.h>

#include "engine/timer.h"
#include "queues/eq.h"
#include "ub/worker_stall.h"
#include "ub/tp/tp_wire.h"
#include "ub/tp/pkt.h"
#include "ub/ub_stage.h"

struct tps_ctx {
	struct hca_tp_sched sched;
	bool stuck; /* packets could leave, but there was no room or no mbuf */
	struct hca_ub_stall stall;
};

#define UNRELIABLE_WINDOW 128u
#define UNRELIABLE_PORT 0xc000u

static void tps_sent(void *arg, uint32_t tpi);
static void tps_idle(void *arg, uint32_t tpi);
static uint32_t tps_allow(void *arg, uint32_t tpi, uint64_t now, uint64_t *again);
static bool tps_left(void *arg, uint32_t tpi, const struct hca_tp_leave *leave, uint64_t now);

/* The lane of unreliable packets, which is there as long as the device. */
static int
open_unreliable(struct hca_pipe *h)
{
	struct hca_tp *tp = &h->ub->tp[HCA_TP_UNRELIABLE];
	void *block = rte_zmalloc_socket("tps", hca_tp_block_bytes(UNRELIABLE_WINDOW, 1),
					 RTE_CACHE_LINE_SIZE, h->cfg.socket_id);

	if (block == NULL)
		return -ENOMEM;
	tp->cfg.mode = HCA_TP_MODE_UNRELIABLE;
	tp->cfg.window = UNRELIABLE_WINDOW;
	tp->cfg.requests = 1;
	tp->cfg.mtu_log = 12;
	tp->cfg.port = UNRELIABLE_PORT;
	hca_tp_begin(tp, block, 0, 0);
	tp->cfg.state = HCA_TPS_ACTIVE;
	return 0;
}

/* While there is an algorithm TPs ask it before they send. */
static int
open_congestion(struct hca_pipe *h, struct hca_tp_sched *s)
{
	s->asks = &h->cc;
	s->allow = tps_allow;
	s->left = tps_left;
	return hca_pace_init(&s->pace, h->ub->tp_mask + 1, h->cfg.socket_id);
}

int
hca_tps_init(struct hca_pipe *h)
{
	struct tps_ctx *c;

	if (h->ub == NULL)
		return 0;
	c = rte_zmalloc_socket("tps", sizeof(*c), RTE_CACHE_LINE_SIZE, h->cfg.socket_id);
	h->stage_ctx[HCA_STAGE_TPS] = c;
	if (c == NULL)
		return -ENOMEM;
	hca_tp_sched_init(&c->sched, h->ub->tp, &h->ub->ops);
	c->sched.sent = tps_sent;
	c->sched.idle = tps_idle;
	c->sched.arg = h;
	hca_timer_watch(h, HCA_OBJECT_TP, HCA_STAGE_TPS, &h->ub->tp[0].tx.timer_armed,
			&h->ub->tp[0].tx.timer_deadline, sizeof(h->ub->tp[0]));
	if (open_congestion(h, &c->sched) != 0 || open_unreliable(h) != 0) {
		hca_tps_fini(h);
		return -ENOMEM;
	}
	return 0;
}

void
hca_tps_fini(struct hca_pipe *h)
{
	struct hca_tp *tp = h->ub != NULL ? &h->ub->tp[HCA_TP_UNRELIABLE] : NULL;
	struct tps_ctx *c = h->stage_ctx[HCA_STAGE_TPS];

	if (c != NULL)
		hca_pace_fini(&c->sched.pace);
	if (tp != NULL) {
		rte_free(tp->cfg.block);
		tp->cfg.block = NULL;
	}
	rte_free(c);
	h->stage_ctx[HCA_STAGE_TPS] = NULL;
}

static inline struct tps_ctx *
tps_ctx(const struct hca_pipe *h)
{
	return h->stage_ctx[HCA_STAGE_TPS];
}

/* ---- timer ---- */

static void
tps_arm_timer(struct hca_pipe *h, struct hca_tp *tp, uint32_t tpi)
{
	__atomic_store_n(&tp->tx.timer_deadline, tp->tx.deadline, __ATOMIC_RELAXED);
	__atomic_store_n(&tp->tx.timer_armed, 1, __ATOMIC_RELEASE);
	hca_tp_msg_send(h, HCA_STAGE_TPS, HCA_STAGE_TIMER, tpi, HCA_MSG_ARM);
}

/* An entry that expires too early is put back then; one that expires too late is moved now. */
static inline void
tps_arm_if_needed(struct hca_pipe *h, struct hca_tp *tp, uint32_t tpi)
{
	const struct hca_tp_tx *tx = &tp->tx;

	if (tx->deadline != HCA_TP_NEVER &&
	    (!tx->timer_armed || unlikely(tx->deadline < tx->timer_deadline)))
		tps_arm_timer(h, tp, tpi);
}

/* ---- congestion control: called only where there is an algorithm ---- */

static inline uint32_t
tps_object_of(const struct hca_pipe *h, uint32_t tpi)
{
	return h->object[HCA_OBJECT_TP].first + tpi;
}

static uint32_t
tps_allow(void *arg, uint32_t tpi, uint64_t now, uint64_t *again)
{
	struct hca_pipe *h = arg;
	const struct hca_tp *tp = &h->ub->tp[tpi];
	const struct hca_cc_ops *cc = hca_cc_of(h, tps_object_of(h, tpi));
	uint32_t open;

	if (unlikely(tpi == HCA_TP_UNRELIABLE || cc == NULL))
		return UINT32_MAX;
	open = hca_tp_unanswered(tp) - tp->tx.again_n;
	return RTE_MIN(cc->may_send(h, tps_object_of(h, tpi), open, now, again), UINT32_MAX - 1);
}

/*
 * fresh: packets sent for the first time since it was told last. Packets that were under way when
 * it began are not told. Returns whether it was told of some.
 */
static bool
tps_tell_acked(struct hca_pipe *h, const struct hca_cc_ops *cc, uint32_t tpi, uint32_t fresh,
	       uint64_t now)
{
	struct hca_tp *tp = &h->ub->tp[tpi];
	uint32_t open = hca_tp_unanswered(tp), n = tp->tx.open + fresh - open;
	uint32_t life = hca_cc_life(h, tps_object_of(h, tpi));

	tp->tx.open = open;
	if (unlikely(tp->tx.cc_life != life)) {
		tp->tx.cc_life = life;
		return false;
	}
	if (n != 0)
		cc->acked(h, tps_object_of(h, tpi), n, now);
	return n != 0;
}

static bool
tps_left(void *arg, uint32_t tpi, const struct hca_tp_leave *leave, uint64_t now)
{
	struct hca_pipe *h = arg;
	const struct hca_cc_ops *cc = hca_cc_of(h, tps_object_of(h, tpi));

	bool acked;

	if (cc == NULL)
		return false;
	acked = tps_tell_acked(h, cc, tpi, leave->fresh, now);
	if (leave->frames != 0)
		cc->sent(h, tps_object_of(h, tpi), leave->frames, leave->frames, leave->sent, now);
	return acked;
}

/* lost: tx.lost before the answer. */
static void
tell_answer(struct hca_pipe *h, struct hca_tp *tp, uint32_t tpi, uint32_t lost, uint64_t now)
{
	const struct hca_cc_ops *cc = hca_cc_of(h, tps_object_of(h, tpi));

	if (cc == NULL)
		return;
	if (tp->tx.rtt != 0)
		cc->round_trip(h, tps_object_of(h, tpi), tp->tx.rtt, now);
	tps_tell_acked(h, cc, tpi, 0, now);
	if (tp->tx.lost != lost)
		cc->lost(h, tps_object_of(h, tpi), HCA_CC_GAP, now);
}

/* lost: packets will be sent again */
static void
tell_timeout(struct hca_pipe *h, uint32_t tpi, bool lost, uint64_t now)
{
	const struct hca_cc_ops *cc = hca_cc_of(h, tps_object_of(h, tpi));

	if (cc == NULL)
		return;
	tps_tell_acked(h, cc, tpi, 0, now);
	if (lost)
		cc->lost(h, tps_object_of(h, tpi), HCA_CC_TIMEOUT, now);
}

/* ---- operations go back ---- */

static void
count_ops(struct hca_pipe *h, struct hca_tp_tx *tx)
{
	if (tx->ops_acked != tx->acked_counted)
		HCA_COUNT_N(h, TPS, ub_ops_acked, tx->ops_acked - tx->acked_counted);
	if (unlikely(tx->ops_given_up != tx->given_up_counted))
		HCA_COUNT_N(h, TPS, ub_ops_given_up, tx->ops_given_up - tx->given_up_counted);
	tx->acked_counted = tx->ops_acked;
	tx->given_up_counted = tx->ops_given_up;
}

/* Where the lanes of a TP were. */
struct released {
	uint32_t done[HCA_TP_LANES];
};

static inline struct released
released_of(const struct hca_tp *tp)
{
	return (struct released){{tp->tx.lane[0].done, tp->tx.lane[1].done}};
}

/* Owners of the lanes that have moved since then are told. */
static inline void
tps_release_since(struct hca_pipe *h, struct hca_tp *tp, uint32_t tpi, struct released before)
{
	static const uint8_t owner[HCA_TP_LANES] =
		{[HCA_TP_RESPONSES] = HCA_STAGE_TAT, [HCA_TP_REQUESTS] = HCA_STAGE_TAI};

	hca_tp_release(tp, &h->ub->ops);
	count_ops(h, &tp->tx);
	for (unsigned int l = 0; l < HCA_TP_LANES; l++)
		if (tp->tx.lane[l].done != before.done[l])
			hca_tp_msg_send(h, HCA_STAGE_TPS, owner[l], tpi, HCA_MSG_ROOM);
}

static inline void
tps_release(struct hca_pipe *h, struct hca_tp *tp, uint32_t tpi)
{
	tps_release_since(h, tp, tpi, released_of(tp));
}

/* Why it is in ERROR */
static uint8_t
reason_of(const struct hca_tp *tp)
{
	if (tp->tx.times > tp->cfg.retries)
		return HCA_TP_ERR_RETRIES;
	return __atomic_load_n(&tp->rx.broken, __ATOMIC_RELAXED) != 0 ? HCA_TP_ERR_DISAGREE
								      : HCA_TP_ERR_REQUEST;
}

/* The TP is in ERROR: its owners are told, and get everything back; software is told once. */
static void
tps_bury(struct hca_pipe *h, struct hca_tp *tp, uint32_t tpi)
{
	if (!tp->tx.buried)
		hca_eq_raise_tp(&h->core, HCA_STAGE_TPS, tpi, tp->cfg.own_tpn, reason_of(tp));
	tp->tx.buried = true;
	tp->tx.deadline = HCA_TP_NEVER;
	hca_tp_msg_send(h, HCA_STAGE_TPS, HCA_STAGE_TAI, tpi, HCA_MSG_DEAD);
	hca_tp_msg_send(h, HCA_STAGE_TPS, HCA_STAGE_TAT, tpi, HCA_MSG_DEAD);
	tps_release(h, tp, tpi);
}

/* Orphans that hca_tp_pick() has skipped also go back. */
static void
tps_idle(void *arg, uint32_t tpi)
{
	struct hca_pipe *h = arg;

	tps_release(h, &h->ub->tp[tpi], tpi);
}

/* Something about the TP has changed that may let it send. */
static void
tps_attend(struct hca_pipe *h, struct hca_tp *tp, uint32_t tpi)
{
	if (unlikely(hca_tp_state(tp) == HCA_TPS_ERROR))
		tps_bury(h, tp, tpi);
	else
		hca_tp_sched_wake(&tps_ctx(h)->sched, tpi);
}

/* ---- answers of the peer ---- */

static bool
read_answer(struct rte_mbuf *m, struct hca_tp_answer *a)
{
	const struct hca_ub_rxd *r = hca_ub_rxd(m);
	const uint8_t *tph = hca_ub_rxd_tph(m);
	struct hca_ub_tp_view v;

	hca_ub_rxd_view(r, &v);
	v.rspst = (uint8_t)hca_ub_rtph_rspst(tph);
	v.rspinfo = (uint8_t)hca_ub_rtph_rspinfo(tph);
	v.saetph = (uint8_t)(v.op->len - HCA_UB_SAETPH_LEN);
	return hca_tp_read_answer(tph, &v, r->port, a);
}

static void
count_heard(struct hca_pipe *h, enum hca_tp_heard heard)
{
	static const uint16_t counter[] = {
		[HCA_TP_HEARD_NEWS] = HCA_CTR_ub_acks_used,
		[HCA_TP_HEARD_OLD] = HCA_CTR_ub_acks_old,
		[HCA_TP_HEARD_BAD] = HCA_CTR_ub_acks_bad,
	};

	HCA_COUNT_AT(h, HCA_STAGE_TPS, counter[heard]);
}

/* Decap lets it pass only where the TP has an algorithm, which may have ended meanwhile. */
static bool
tps_took_cnp(struct hca_pipe *h, const struct hca_ub_rxd *r, const struct hca_tp *tp, uint64_t now)
{
	const struct hca_cc_ops *cc = hca_cc_of(h, tps_object_of(h, r->tp));

	if (r->opcode != HCA_UB_TP_CNP || r->generation != tp->cfg.generation ||
	    !hca_tp_sends(hca_tp_state(tp)))
		return false;
	HCA_COUNT(h, TPS, ub_cnp_handled);
	if (cc != NULL)
		cc->cnp(h, tps_object_of(h, r->tp), now);
	return true;
}

static void
tps_hear(struct hca_pipe *h, struct rte_mbuf *m, uint64_t now)
{
	const struct hca_ub_rxd *r = hca_ub_rxd(m);
	struct hca_tp *tp = &h->ub->tp[r->tp];
	struct hca_tp_answer a;
	struct released before;
	enum hca_tp_heard heard;
	uint32_t lost;

	if (unlikely(r->generation != tp->cfg.generation || !hca_tp_sends(hca_tp_state(tp)) ||
		     !read_answer(m, &a))) {
		if (!tps_took_cnp(h, r, tp, now))
			HCA_COUNT(h, TPS, ub_acks_stale);
		return;
	}
	before = released_of(tp);
	if (unlikely(a.status != 0) && !hca_tp_note_status(tp, &h->ub->ops, &a))
		HCA_COUNT(h, TPS, ub_acks_status_lost);
	lost = tp->tx.lost;
	heard = hca_tp_ack(tp, &h->ub->ops, &a, now);
	count_heard(h, heard);
	if (heard != HCA_TP_HEARD_NEWS)
		return;
	if (hca_cc_in_use(h))
		tell_answer(h, tp, r->tp, lost, now);
	tps_release_since(h, tp, r->tp, before);
	hca_tp_sched_heard(&tps_ctx(h)->sched, r->tp);
	tps_arm_if_needed(h, tp, r->tp);
}

unsigned int
hca_tps_room(struct hca_pipe *h)
{
	(void)h;
	return HCA_DIRECT_ROOM;
}

void
hca_tps_process(struct hca_pipe *h, void *const *objs, unsigned int n, uint64_t now)
{
	for (unsigned int i = 0; i < n; i++)
		tps_hear(h, objs[i], now);
	hca_mbuf_free_burst((struct rte_mbuf *const *)objs, n);
}

/* ---- sending ---- */

static __rte_noinline void
count_resent(struct hca_pipe *h, struct hca_tp_tx *tx)
{
	static const uint16_t counter[HCA_TP_AGAINS] = {
#define X(name, counter) [HCA_TP_AGAIN_##name] = HCA_CTR_ub_##counter,
		HCA_TP_AGAIN_LIST(X)
#undef X
	};

	for (unsigned int why = 0; why < HCA_TP_AGAINS; why++) {
		hca_count(&h->line[HCA_STAGE_TPS], counter[why],
			  tx->resent[why] - tx->resent_counted[why]);
		tx->resent_counted[why] = tx->resent[why];
	}
}

/* The TP has sent something, again or for the first time. */
static void
tps_sent(void *arg, uint32_t tpi)
{
	struct hca_pipe *h = arg;
	struct hca_tp *tp = &h->ub->tp[tpi];
	struct hca_tp_tx *tx = &tp->tx;
	uint64_t packets = tx->packets - tx->packets_counted;

	if (unlikely(tpi == HCA_TP_UNRELIABLE)) {
		HCA_COUNT_N(h, TPS, ub_utp_packets, packets);
	} else {
		HCA_COUNT_N(h, TPS, ub_packets, packets);
		HCA_COUNT_N(h, TPS, ub_ops_sent, tx->ops_sent - tx->sent_counted);
		if (unlikely(memcmp(tx->resent, tx->resent_counted, sizeof(tx->resent)) != 0))
			count_resent(h, tx);
	}
	tx->packets_counted = tx->packets;
	tx->sent_counted = tx->ops_sent;
	tps_arm_if_needed(h, tp, tpi);
}

static unsigned int
tps_send(struct hca_pipe *h, struct tps_ctx *c, uint64_t now, unsigned int budget)
{
	struct hca_edge *e = &h->edge[HCA_EDGE_TPS_ENCAP];
	unsigned int room = RTE_MIN(RTE_MIN(hca_edge_room(h, e), budget), HCA_BURST), n;
	const struct hca_tp *tp0 = &h->ub->tp[HCA_TP_UNRELIABLE];
	struct hca_tp_txd *d[HCA_BURST];
	struct rte_mbuf *m[HCA_BURST];

	c->stuck = room == 0;
	if (room == 0)
		return 0;
	if (unlikely(rte_mempool_get_bulk(h->tx_pool, (void **)m, room) != 0)) {
		HCA_COUNT(h, TPS, ub_no_mbuf);
		c->stuck = true;
		return 0;
	}
	for (unsigned int i = 0; i < room; i++)
		d[i] = hca_ub_txd(m[i]);
	n = hca_tp_sched_run(&c->sched, now, d, room);
	if (n != room)
		rte_mempool_put_bulk(h->tx_pool, (void *const *)(m + n), room - n);
	if (n == 0)
		return 0;
	hca_edge_push(h, e, (void *const *)m, n, now);
	/* encap may have finished unreliable ones already, and no answer of a peer follows */
	if (unlikely(tp0->lane[HCA_TP_REQUESTS].head != tp0->tx.lane[HCA_TP_REQUESTS].done))
		tps_release(h, &h->ub->tp[HCA_TP_UNRELIABLE], HCA_TP_UNRELIABLE);
	return n;
}

/* ---- messages ---- */

/* A message sent before a round came before its purge, or is about a later life of the TP. */
static bool
is_gone(const struct hca_tp *tp)
{
	return hca_tp_state(tp) == HCA_TPS_RESET;
}

static void
tps_on_lane(struct hca_pipe *h, struct hca_tp *tp, uint32_t tpi, uint8_t flags, uint64_t now)
{
	(void)flags;
	(void)now;
	if (likely(!is_gone(tp)))
		tps_attend(h, tp, tpi);
}

/* A passive one has its first good packet: requests may wait for that. */
static void
tps_on_tpr(struct hca_pipe *h, struct hca_tp *tp, uint32_t tpi, uint8_t flags, uint64_t now)
{
	if (unlikely(flags & HCA_MSG_STATE) && !is_gone(tp))
		hca_tp_msg_send(h, HCA_STAGE_TPS, HCA_STAGE_TAI, tpi, HCA_MSG_ROOM);
	tps_on_lane(h, tp, tpi, flags, now);
}

static void
tps_on_copied(struct hca_pipe *h, struct hca_tp *tp, uint32_t tpi, uint8_t flags, uint64_t now)
{
	(void)flags;
	(void)now;
	if (likely(!is_gone(tp)))
		tps_release(h, tp, tpi);
}

/*
 * A timeout is put off once until una moves or one counts, so that a worker that is always late
 * still sends again.
 */
static bool
tps_was_stalled(const struct tps_ctx *c, const struct hca_tp *tp)
{
	return !tp->tx.excused && hca_ub_was_stalled(&c->stall, tp->tx.deadline);
}

/* How much longer an answer may take because frames wait for our own port; 0: no longer. */
static uint64_t
tps_port_owes(const struct hca_pipe *h, const struct hca_tp *tp, uint64_t now)
{
	uint64_t since = __atomic_load_n(&h->tx_wait.since, __ATOMIC_ACQUIRE);
	uint64_t rto = hca_tp_rto(tp);

	return since != 0 && now > since && HCA_TX_WAIT_FACTOR * (now - since) >= rto ? rto : 0;
}

static void
tps_expire(struct hca_pipe *h, struct hca_tp *tp, uint32_t tpi, uint64_t now)
{
	uint64_t more = now >= tp->tx.deadline ? tps_port_owes(h, tp, now) : 0;

	if (unlikely(more != 0)) {
		tp->tx.deadline = now + more;
		return;
	}
	if (unlikely(tps_was_stalled(tps_ctx(h), tp))) {
		tp->tx.deadline = now + hca_tp_rto(tp);
		tp->tx.excused = true;
		HCA_COUNT(h, TPS, ub_tp_timeouts_put_off);
		return;
	}
	switch (hca_tp_expire(tp, &h->ub->ops, now)) {
	case HCA_TP_EXPIRY_DEAD:
		HCA_COUNT(h, TPS, ub_tp_timeouts);
		HCA_COUNT(h, TPS, ub_tp_retries_exceeded);
		tps_bury(h, tp, tpi);
		break;
	case HCA_TP_EXPIRY_AGAIN:
		HCA_COUNT(h, TPS, ub_tp_timeouts);
		if (hca_cc_in_use(h))
			tell_timeout(h, tpi, true, now);
		hca_tp_sched_heard(&tps_ctx(h)->sched, tpi);
		break;
	case HCA_TP_EXPIRY_NONE:
		if (hca_cc_in_use(h)) {
			tell_timeout(h, tpi, false, now);
			hca_tp_sched_heard(&tps_ctx(h)->sched, tpi);
		}
		tps_release(h, tp, tpi);
		break;
	}
}

/* The entry has left the wheel. */
static void
tps_on_timer(struct hca_pipe *h, struct hca_tp *tp, uint32_t tpi, uint8_t flags, uint64_t now)
{
	(void)flags;
	if (!tp->tx.timer_armed || is_gone(tp))
		return;
	__atomic_store_n(&tp->tx.timer_armed, 0, __ATOMIC_RELAXED);
	if (tp->tx.deadline == HCA_TP_NEVER || !hca_tp_sends(hca_tp_state(tp)))
		return;
	tps_expire(h, tp, tpi, now);
	tps_arm_if_needed(h, tp, tpi);
}

static void
tps_on_ceu(struct hca_pipe *h, struct hca_tp *tp, uint32_t tpi, uint8_t flags, uint64_t now)
{
	(void)now;
	if (!(flags & HCA_MSG_PURGE)) {
		if (unlikely(tp->tx.held) && !is_gone(tp)) /* its algorithm may be another one */
			hca_tp_sched_heard(&tps_ctx(h)->sched, tpi);
		if (!is_gone(tp))
			tps_attend(h, tp, tpi);
		return;
	}
	hca_tp_sched_forget(&tps_ctx(h)->sched, tpi);
	__atomic_store_n(&tp->tx.timer_armed, 0, __ATOMIC_RELAXED);
	tp->tx.ops_given_up = (uint32_t)(tp->tx.ops_sent - tp->tx.ops_acked);
	count_ops(h, &tp->tx);
	hca_purge_ack(h, HCA_STAGE_TPS);
}

static unsigned int
tps_messages(struct hca_pipe *h, uint64_t now, unsigned int budget)
{
	static const struct {
		enum hca_stage_id from;
		hca_tp_msg_fn fn;
	} channels[] = {
		{HCA_STAGE_CEU, tps_on_ceu},	 {HCA_STAGE_ENCAP, tps_on_copied},
		{HCA_STAGE_TIMER, tps_on_timer}, {HCA_STAGE_TPR, tps_on_tpr},
		{HCA_STAGE_TAT, tps_on_lane},	 {HCA_STAGE_TAI, tps_on_lane},
	};
	unsigned int n = 0;

	for (unsigned int i = 0; i < RTE_DIM(channels); i++)
		n += hca_tp_msg_drain(h, channels[i].from, HCA_STAGE_TPS, channels[i].fn, now,
				      budget);
	return n;
}

unsigned int
hca_tps_poll(struct hca_pipe *h, uint64_t now, unsigned int budget)
{
	struct tps_ctx *c = tps_ctx(h);
	unsigned int n = 0;

	if (c == NULL)
		return 0;
	hca_ub_stall_note(h, &c->stall, now);
	if (hca_msg_due(h, HCA_STAGE_TPS))
		n += tps_messages(h, now, budget);
	n += hca_edge_drain(h, &h->edge[HCA_EDGE_DECAP_TPS], budget, now);
	if (unlikely(now >= c->sched.pace.next))
		hca_tp_sched_due(&c->sched, now);
	if (c->sched.count != 0)
		n += tps_send(h, c, now, budget);
	return n;
}

uint64_t
hca_tps_deadline(const struct hca_pipe *h, uint64_t now)
{
	const struct tps_ctx *c = tps_ctx(h);

	if (c == NULL)
		return UINT64_MAX;
	if (c->sched.count == 0)
		return hca_pace_deadline(&c->sched.pace);
	return c->stuck ? HCA_DEADLINE_ROOM : now;
}
