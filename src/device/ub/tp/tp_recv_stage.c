/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * tp_recv (TPR, TP receiver): packets of the peer's TPs, each passed on once: requests to the
 * transaction target (TAT), responses to the transaction initiator (TAI). It takes only packets for
 * which both have room. Answers of the transport are made at the end of a poll, one for each TP;
 * those that are not due at once wait until the stage has nothing to do.
 */

#include <errno.h>

#include <rte_malloc.h>

#include "ub/tp/pkt.h"
#include "ub/ub_stage.h"

#define NONE UINT32_MAX
#define LAZY_POLLS 8u /* polls with packets after which answers do not wait any more */

enum list {
	DUE,  /* by list_next */
	LAZY, /* by lazy_next */
	CNP,  /* by cnp_next */
	LISTS
};

struct tp_list {
	uint32_t head, tail; /* NONE: empty */
};

struct tpr_ctx {
	struct tp_list list[LISTS];
	uint32_t due; /* places on the lists DUE and CNP */
	bool seen;    /* packets came since the last poll */
	uint8_t busy; /* polls that had packets while answers waited */
};

/* Packets of a burst by where they go. */
struct sorted {
	void *to_tai[HCA_BURST], *to_tat[HCA_BURST];
	struct rte_mbuf *dead[HCA_BURST];
	unsigned int n_tai, n_tat, n_dead;
	uint32_t filled[HCA_BURST]; /* TPs */
	unsigned int n_filled;
	uint32_t taker; /* TP of the last packets, which may owe an answer; NONE: no TP */
};

int
hca_tpr_init(struct hca_pipe *h)
{
	struct tpr_ctx *c;

	if (h->ub == NULL)
		return 0;
	c = rte_zmalloc_socket("tpr", sizeof(*c), RTE_CACHE_LINE_SIZE, h->cfg.socket_id);
	h->stage_ctx[HCA_STAGE_TPR] = c;
	if (c == NULL)
		return -ENOMEM;
	c->list[DUE].head = c->list[LAZY].head = c->list[CNP].head = NONE;
	return 0;
}

void
hca_tpr_fini(struct hca_pipe *h)
{
	rte_free(h->stage_ctx[HCA_STAGE_TPR]);
	h->stage_ctx[HCA_STAGE_TPR] = NULL;
}

/* ---- answers that are due ---- */

static uint32_t *
tpr_link_of(struct hca_pipe *h, enum list l, uint32_t tpi)
{
	struct hca_tp_rx *rx = &h->ub->tp[tpi].rx;

	if (unlikely(l == CNP))
		return &rx->cnp_next;
	return l == DUE ? &rx->list_next : &rx->lazy_next;
}

static void
tpr_list_append(struct hca_pipe *h, struct tpr_ctx *c, enum list l, uint32_t tpi)
{
	struct hca_tp_rx *rx = &h->ub->tp[tpi].rx;
	struct tp_list *list = &c->list[l];

	if (rx->lists & 1u << l)
		return;
	rx->lists |= 1u << l;
	c->due += l != LAZY;
	*tpr_link_of(h, l, tpi) = NONE;
	if (list->head == NONE)
		list->head = tpi;
	else
		*tpr_link_of(h, l, list->tail) = tpi;
	list->tail = tpi;
}

/* The list is not empty. */
static uint32_t
tpr_list_pop(struct hca_pipe *h, struct tpr_ctx *c, enum list l)
{
	uint32_t tpi = c->list[l].head;

	c->list[l].head = *tpr_link_of(h, l, tpi);
	h->ub->tp[tpi].rx.lists &= (uint8_t) ~(1u << l);
	c->due -= l != LAZY;
	return tpi;
}

/* For a purge. */
static void
tpr_list_remove(struct hca_pipe *h, struct tpr_ctx *c, enum list l, uint32_t tpi)
{
	uint32_t last = c->list[l].tail;
	bool end = !(h->ub->tp[tpi].rx.lists & 1u << l);

	while (!end) {
		uint32_t at = tpr_list_pop(h, c, l);

		end = at == last;
		if (at != tpi)
			tpr_list_append(h, c, l, at);
	}
}

static inline void
note_debt(struct hca_pipe *h, struct tpr_ctx *c, const struct hca_tp *tp, uint32_t tpi)
{
	enum list l = tp->rx.debt == HCA_TP_OWES_NOW ? DUE : LAZY;

	if (tp->rx.debt != HCA_TP_OWES_NOTHING && !(tp->rx.lists & 1u << l))
		tpr_list_append(h, c, l, tpi);
}

/*
 * The next packets are of that TP: the answer to those before them is noted if they were of another
 * one. Packets of a TP in a row so owe one answer, whether they were taken in a run or not.
 */
static inline void
tpr_change_taker(struct hca_pipe *h, struct tpr_ctx *c, struct sorted *s, uint32_t tpi)
{
	if (likely(s->taker == tpi))
		return;
	if (s->taker != NONE)
		note_debt(h, c, &h->ub->tp[s->taker], s->taker);
	s->taker = tpi;
}

/* ---- packets ---- */

/* The numbers of the TP disagree, so it is in ERROR: TPS tells the other stages. */
static void
tp_broke(struct hca_pipe *h, uint32_t tpi)
{
	HCA_COUNT(h, TPR, ub_tp_broken);
	hca_tp_msg_send(h, HCA_STAGE_TPR, HCA_STAGE_TPS, tpi, HCA_MSG_STATE);
}

static void
count_verdict(struct hca_pipe *h, enum hca_tp_verdict verdict)
{
	static const uint16_t counter[] = {
#define X(name, counter) [HCA_TP_##name] = HCA_CTR_ub_tp_##counter,
		HCA_TP_VERDICT_LIST(X)
#undef X
	};

	HCA_COUNT_AT(h, HCA_STAGE_TPR, counter[verdict]);
}

static inline bool
is_response(const struct hca_ub_rxd *r)
{
	return (hca_ub_ta_ops[r->first].is & HCA_UB_OP_RESPONSE) != 0;
}

static inline struct hca_tp_pkt
pkt_of(const struct hca_ub_rxd *r)
{
	return (struct hca_tp_pkt){.psn = r->psn,
				   .tpmsn = r->tpmsn,
				   .port = r->port,
				   .last = (r->flags & HCA_UB_RXD_LAST) != 0,
				   .ask = (r->flags & HCA_UB_RXD_ASK) != 0,
				   .fake = (r->flags & HCA_UB_RXD_FAKE) != 0};
}

/* True: the TP accepts the packet and TAI or TAT gets it. */
static bool
tpr_accept(struct hca_pipe *h, struct tpr_ctx *c, struct sorted *s, const struct hca_ub_rxd *r)
{
	struct hca_tp *tp = &h->ub->tp[r->tp];
	struct hca_tp_pkt p = pkt_of(r);
	uint32_t state = hca_tp_state(tp), broken = tp->rx.broken;
	enum hca_tp_verdict verdict;

	if (unlikely(r->generation != tp->cfg.generation || !hca_tp_receives(state))) {
		HCA_COUNT(h, TPR, ub_tp_stale);
		return false;
	}
	verdict = hca_tp_accept(tp, &p);
	count_verdict(h, verdict);
	if (unlikely(tp->rx.broken != broken))
		tp_broke(h, r->tp);
	else if (unlikely(state == HCA_TPS_PASSIVE))
		hca_tp_msg_send(h, HCA_STAGE_TPR, HCA_STAGE_TPS, r->tp, HCA_MSG_STATE);
	tpr_change_taker(h, c, s, r->tp);
	return verdict == HCA_TP_PASS;
}

static inline void
tpr_pass_on(struct sorted *s, struct rte_mbuf *m, const struct hca_ub_rxd *r)
{
	if (is_response(r))
		s->to_tai[s->n_tai++] = m;
	else
		s->to_tat[s->n_tat++] = m;
}

/* A packet in the general way. */
static __rte_noinline void
tpr_sort(struct hca_pipe *h, struct tpr_ctx *c, struct sorted *s, struct rte_mbuf *m)
{
	struct hca_ub_rxd *r = hca_ub_rxd(m);
	struct hca_tp *tp = &h->ub->tp[r->tp];
	uint32_t before = tp->rx.epsn;
	bool passes;

	if (r->tp == HCA_TP_UNRELIABLE) {
		s->to_tat[s->n_tat++] = m;
		return;
	}
	passes = tpr_accept(h, c, s, r);
	if (hca_tp_past(tp->rx.epsn, before) > 1 || (!passes && tp->rx.epsn != before))
		s->filled[s->n_filled++] = r->tp;
	if (!passes) {
		s->dead[s->n_dead++] = m;
		return;
	}
	if (r->psn != before) {
		r->flags |= HCA_UB_RXD_AHEAD;
		*hca_ub_rxd_expected(r) = before;
	}
	tpr_pass_on(s, m, r);
}

/* Holes are filled, and the packets behind them have been passed on. */
static __rte_noinline void
tell_given(struct hca_pipe *h, const struct sorted *s)
{
	for (unsigned int i = 0; i < s->n_filled; i++) {
		struct hca_tp_rx *rx = &h->ub->tp[s->filled[i]].rx;

		__atomic_store_n(&rx->given, rx->epsn, __ATOMIC_RELEASE);
		hca_tp_msg_send(h, HCA_STAGE_TPR, HCA_STAGE_TAT, s->filled[i], HCA_MSG_NEW);
	}
}

/* The first packets, as far as they are the expected ones of one TP. Returns how many. */
static inline unsigned int
tpr_sort_run(struct hca_pipe *h, struct tpr_ctx *c, struct sorted *s, void *const *objs,
	     unsigned int n)
{
	const struct hca_ub_rxd *first = hca_ub_rxd(objs[0]), *r;
	struct hca_tp *tp = &h->ub->tp[first->tp];
	uint32_t tpi = first->tp, generation = tp->cfg.generation;
	struct hca_tp_run run;
	unsigned int i;

	if (!HCA_SHORT_WAYS || unlikely(tpi == HCA_TP_UNRELIABLE || !hca_tp_run_begin(tp, &run)))
		return 0;
	for (i = 0; i < n; i++) {
		struct hca_tp_pkt p;

		r = hca_ub_rxd(objs[i]);
		p = pkt_of(r);
		if (r->tp != tpi || unlikely(r->generation != generation) ||
		    !hca_tp_run_take(&run, &p))
			break;
		tpr_pass_on(s, objs[i], r);
	}
	hca_tp_run_end(tp, &run);
	if (likely(i != 0))
		tpr_change_taker(h, c, s, tpi);
	return i;
}

static void
tpr_burst(struct hca_pipe *h, struct tpr_ctx *c, void *const *objs, unsigned int n, uint64_t now)
{
	unsigned int usual = 0;
	struct sorted s;

	s.n_tai = s.n_tat = s.n_dead = s.n_filled = 0;
	s.taker = NONE;
	for (unsigned int i = 0, run; i < n; i += run) {
		run = tpr_sort_run(h, c, &s, objs + i, n - i);
		usual += run;
		if (unlikely(run == 0)) {
			tpr_sort(h, c, &s, objs[i]);
			run = 1;
		}
	}
	tpr_change_taker(h, c, &s, NONE);
	HCA_COUNT_N(h, TPR, ub_tp_passed, usual);
	if (s.n_tat != 0)
		hca_edge_push(h, &h->edge[HCA_EDGE_TPR_TAT], s.to_tat, s.n_tat, now);
	if (s.n_tai != 0)
		hca_edge_push(h, &h->edge[HCA_EDGE_TPR_TAI], s.to_tai, s.n_tai, now);
	if (s.n_dead != 0)
		hca_mbuf_free_burst(s.dead, s.n_dead);
	if (unlikely(s.n_filled != 0))
		tell_given(h, &s);
}

unsigned int
hca_tpr_room(struct hca_pipe *h)
{
	return RTE_MIN(hca_edge_room(h, &h->edge[HCA_EDGE_TPR_TAI]),
		       hca_edge_room(h, &h->edge[HCA_EDGE_TPR_TAT]));
}

void
hca_tpr_process(struct hca_pipe *h, void *const *objs, unsigned int n, uint64_t now)
{
	struct tpr_ctx *c = h->stage_ctx[HCA_STAGE_TPR];

	c->seen = true;
	for (unsigned int i = 0; i < n; i += HCA_BURST)
		tpr_burst(h, c, objs + i, RTE_MIN(n - i, HCA_BURST), now);
}

/* ---- answers ---- */

/* The answer of a TP in a descriptor; the bitmap is kept in the frame's own memory. */
static bool
tpr_make_answer(struct hca_pipe *h, uint32_t tpi, struct rte_mbuf *m)
{
	struct hca_tp *tp = &h->ub->tp[tpi];
	struct hca_ub_answer *a = hca_ub_answer(m);

	a->tp = tpi;
	a->generation = tp->cfg.generation;
	return hca_tp_receives(hca_tp_state(tp)) &&
	       hca_tp_make_answer(tp, &a->answer, hca_ub_answer_bits(m));
}

/* Send due answers, as far as encap has room. */
static unsigned int
tpr_answer(struct hca_pipe *h, struct tpr_ctx *c, uint64_t now, unsigned int budget)
{
	struct hca_edge *e = &h->edge[HCA_EDGE_TPR_ENCAP];
	unsigned int room = RTE_MIN(RTE_MIN(hca_edge_room(h, e), budget), HCA_BURST), n = 0;
	void *out[HCA_BURST];

	while (n < room && c->list[DUE].head != NONE) {
		struct rte_mbuf *m = rte_mbuf_raw_alloc(h->resp_pool);

		if (unlikely(m == NULL)) {
			HCA_COUNT(h, TPR, ub_no_mbuf);
			break;
		}
		if (tpr_make_answer(h, tpr_list_pop(h, c, DUE), m))
			out[n++] = m;
		else
			rte_mbuf_raw_free(m);
	}
	if (n == 0)
		return 0;
	HCA_COUNT_N(h, TPR, ub_answers, n);
	hca_edge_push(h, e, out, n, now);
	return n;
}

/* ---- congestion notifications ---- */

/*
 * A packet came with a congestion mark: a CNP is due, at most one of a TP in an interval. The
 * message may be older than the end of the TP.
 */
static void
tpr_on_decap(struct hca_pipe *h, struct hca_tp *tp, uint32_t tpi, uint8_t flags, uint64_t now)
{
	(void)flags;
	if (now < tp->rx.cnp_at || (tp->rx.lists & 1u << CNP) != 0 ||
	    !hca_tp_receives(hca_tp_state(tp))) {
		HCA_COUNT(h, TPR, ub_cnp_suppressed);
		return;
	}
	tp->rx.cnp_at = now + HCA_PARAMETER(h, cnp_interval_us) * UINT64_C(1000);
	tpr_list_append(h, h->stage_ctx[HCA_STAGE_TPR], CNP, tpi);
}

/* False: the TP does not receive any more. */
static bool
tpr_make_cnp(struct hca_pipe *h, uint32_t tpi, struct rte_mbuf *m)
{
	const struct hca_tp *tp = &h->ub->tp[tpi];

	*hca_ub_answer(m) = (struct hca_ub_answer){
		.tp = tpi,
		.generation = tp->cfg.generation,
		.answer = {.kind = HCA_TP_CNP, .port = tp->rx.port},
	};
	return hca_tp_receives(hca_tp_state(tp));
}

static __rte_noinline unsigned int
tpr_notify(struct hca_pipe *h, struct tpr_ctx *c, uint64_t now, unsigned int budget)
{
	struct hca_edge *e = &h->edge[HCA_EDGE_TPR_ENCAP];
	unsigned int room = RTE_MIN(RTE_MIN(hca_edge_room(h, e), budget), HCA_BURST), n = 0;
	void *out[HCA_BURST];

	while (n < room && c->list[CNP].head != NONE) {
		struct rte_mbuf *m = rte_mbuf_raw_alloc(h->resp_pool);

		if (unlikely(m == NULL)) {
			HCA_COUNT(h, TPR, ub_no_mbuf);
			break;
		}
		if (tpr_make_cnp(h, tpr_list_pop(h, c, CNP), m)) {
			out[n++] = m;
			continue;
		}
		HCA_COUNT(h, TPR, ub_cnp_suppressed);
		rte_mbuf_raw_free(m);
	}
	if (n == 0)
		return 0;
	HCA_COUNT_N(h, TPR, ub_cnp_sent, n);
	hca_edge_push(h, e, out, n, now);
	return n;
}

/* Answers that may wait are due when nothing came since the last poll, or enough polls went by. */
static void
tpr_end_waiting(struct hca_pipe *h, struct tpr_ctx *c)
{
	if (c->list[LAZY].head == NONE || (c->seen && ++c->busy < LAZY_POLLS))
		return;
	c->busy = 0;
	while (c->list[LAZY].head != NONE) {
		uint32_t tpi = tpr_list_pop(h, c, LAZY);

		if (h->ub->tp[tpi].rx.debt != HCA_TP_OWES_NOTHING)
			tpr_list_append(h, c, DUE, tpi);
	}
}

/* ---- polls ---- */

static void
tpr_on_ceu(struct hca_pipe *h, struct hca_tp *tp, uint32_t tpi, uint8_t flags, uint64_t now)
{
	(void)now;
	if (!(flags & HCA_MSG_PURGE))
		return;
	tpr_list_remove(h, h->stage_ctx[HCA_STAGE_TPR], DUE, tpi);
	tpr_list_remove(h, h->stage_ctx[HCA_STAGE_TPR], LAZY, tpi);
	if (tp->rx.lists & 1u << CNP)
		HCA_COUNT(h, TPR, ub_cnp_suppressed);
	tpr_list_remove(h, h->stage_ctx[HCA_STAGE_TPR], CNP, tpi);
	hca_purge_ack(h, HCA_STAGE_TPR);
}

unsigned int
hca_tpr_poll(struct hca_pipe *h, uint64_t now, unsigned int budget)
{
	struct tpr_ctx *c = h->stage_ctx[HCA_STAGE_TPR];
	unsigned int n = 0;

	if (c == NULL)
		return 0;
	if (hca_msg_due(h, HCA_STAGE_TPR)) {
		n += hca_tp_msg_drain(h, HCA_STAGE_CEU, HCA_STAGE_TPR, tpr_on_ceu, now, budget);
		n += hca_tp_msg_drain(h, HCA_STAGE_DECAP, HCA_STAGE_TPR, tpr_on_decap, now, budget);
	}
	n += hca_edge_drain(h, &h->edge[HCA_EDGE_DECAP_TPR], RTE_MIN(budget, hca_tpr_room(h)), now);
	tpr_end_waiting(h, c);
	c->seen = false;
	if (c->due != 0) {
		if (unlikely(c->list[CNP].head != NONE))
			n += tpr_notify(h, c, now, budget);
		n += tpr_answer(h, c, now, budget);
	}
	return n;
}

uint64_t
hca_tpr_deadline(const struct hca_pipe *h, uint64_t now)
{
	const struct tpr_ctx *c = h->stage_ctx[HCA_STAGE_TPR];

	if (c == NULL)
		return UINT64_MAX;
	if (c->list[LAZY].head != NONE)
		return now;
	/* answers that are due wait for encap or for mbufs */
	return c->due != 0 ? HCA_DEADLINE_ROOM : UINT64_MAX;
}
