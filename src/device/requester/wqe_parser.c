/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The parser: chains announced by doorbells wait per QP; QPs with work are visited round robin;
 * each WQE becomes a request record, which is its window entry.
 *
 * The queue is client memory. A WQE is copied once and only the copy is used. An invalid WQE
 * becomes a record with a syndrome and completes in order. An invalid chain (which does not begin
 * where the last one ended, leaves the order of the queue, or is longer than the queue) makes the
 * queue unusable: WQ_CATAS and ERR.
 */

#include <errno.h>
#include <string.h>

#include <rte_malloc.h>
#include <rte_prefetch.h>

#include "abi_cqe.h"
#include "abi_ctx.h"
#include "abi_wqe.h"
#include "ctxmgt/ctxmgt.h"
#include "requester/doorbell.h"
#include "engine/impl.h"
#include "requester/parser.h"
#include "requester/parser_chain.h"
#include "requester/parser_small.h"
#include "requester/parser_visit.h"
#include "requester/record_pool.h"
#include "requester/rtt.h"
#include "requester/wqe_unit.h"
#include "queues/eq.h"

#define VISIT_WQES 32u

/*
 * A queue that seems to hold more WQEs than fit is tolerated this long before WQ_CATAS: the owner
 * may have seen a completion and reused its slot before we see the tail that covers it, and the
 * lcore that publishes the tail may be off its CPU.
 */
#define OVERFULL_NS 20000000u
#define OVERFULL_VISITS 64u

_Static_assert(HCA_WQE_MAX_STRIDE - sizeof(struct hca_next_unit) - sizeof(struct hca_inline_unit) <=
		       sizeof(((struct hca_record_full *)0)->body),
	       "all inline data a WQE can carry fits a record");

static inline struct hca_parser_ctx *
parser_ctx(struct hca_pipe *h)
{
	return h->stage_ctx[HCA_STAGE_PARSER];
}

int
hca_parser_init(struct hca_pipe *h)
{
	struct hca_parser_ctx *c;

	c = rte_zmalloc_socket(NULL, sizeof(*c), RTE_CACHE_LINE_SIZE, h->cfg.socket_id);
	if (c == NULL)
		return -ENOMEM;
	c->ready_head = c->ready_tail = HCA_NO_QP;
	HCA_WIRES_IN_USE(h, w)
	if (w->wire != HCA_WIRE_ROCE && w->qp_stages != 0) {
		c->pools[c->n_others] = &h->records[w->wire];
		c->other[c->n_others++] = w;
	}
	h->stage_ctx[HCA_STAGE_PARSER] = c;
	return 0;
}

void
hca_parser_fini(struct hca_pipe *h)
{
	rte_free(h->stage_ctx[HCA_STAGE_PARSER]);
	h->stage_ctx[HCA_STAGE_PARSER] = NULL;
}

/* ---- a QP's window and records ---- */

/* The requester has returned records: update their count and the room of the window. */
static void
settle_freed(struct hca_pipe *h, struct hca_qp *qp)
{
	struct hca_qp_parser *p = &qp->parser;
	uint32_t freed = __atomic_load_n(&qp->sq_freed, __ATOMIC_ACQUIRE);
	uint32_t n = freed - p->freed_seen, full = 0;

	if (n == 0)
		return;
	for (uint32_t i = p->freed_seen; i != freed; i++)
		full += p->window[i & p->window_mask] >> 31;
	p->freed_seen = freed;
	if (full != 0)
		hca_record_settle(&hca_record_pools_of(h, qp->cfg.service)->full, p, full);
	if (n != full)
		hca_record_settle(&hca_record_pools_of(h, qp->cfg.service)->small, p, n - full);
}

static inline uint32_t
window_stop(const struct hca_qp_parser *p)
{
	uint32_t window = p->freed_seen + p->window_mask + 1;
	uint32_t queue = p->tail_seen + (1u << p->sq_size_log);

	return (int32_t)(window - queue) < 0 ? window : queue;
}

/* ---- chains ---- */

static void
drop_chains(struct hca_pipe *h, struct hca_qp_parser *p)
{
	HCA_COUNT_N(h, PARSER, db_dropped, p->chain_tail - p->chain_head);
	if (p->in_chain && p->chain_len == 0)
		HCA_COUNT(h, PARSER, db_dropped);
	else if (p->in_chain)
		HCA_COUNT(h, PARSER, db_cut);
	p->chain_head = p->chain_tail;
	p->in_chain = 0;
	p->marked &= ~HCA_PM_LOOK;
}

static void
catas(struct hca_pipe *h, uint32_t qpi)
{
	struct hca_qp_parser *p = &h->qp[qpi].parser;

	if (p->flags & HCA_PF_CATAS)
		return;
	p->flags |= HCA_PF_CATAS;
	drop_chains(h, p);
	HCA_COUNT(h, PARSER, sq_catas);
	hca_eq_raise_qp(&h->core, HCA_STAGE_PARSER, HCA_EVENT_WQ_CATAS, qpi);
	hca_qp_to_error(h, HCA_STAGE_PARSER, qpi);
}

static inline bool
accepts_chains(uint32_t state)
{
	return state == HCA_QPS_RTS || state >= HCA_QPS_SQE;
}

/* A chain announces itself in the queue, or will soon. */
static void
on_mark(struct hca_pipe *h, struct hca_parser_ctx *c, uint32_t qpi)
{
	struct hca_qp_parser *p = &h->qp[qpi].parser;

	if (p->flags & HCA_PF_CATAS)
		return;
	p->marked = HCA_PM_EVER | HCA_PM_LOOK;
	make_ready(h, c, qpi);
}

/* Prefetch the lines that the parser needs for this doorbell, and req_tx for its QP. */
static inline void
prefetch_wqe(const struct hca_pipe *h, const struct hca_qp_parser *p, uint32_t qpi, uint32_t word)
{
	rte_prefetch0(hca_qbuf_at(&p->sq, HCA_CHAIN_SQ_HEAD(word) << p->sq_stride_log));
	rte_prefetch0(&p->window[p->head & p->window_mask]);
	if (h->single_worker)
		rte_prefetch0(hca_rtt_of(h, qpi));
}

void
hca_parser_process(struct hca_pipe *h, void *const *objs, unsigned int n, uint64_t now)
{
	struct hca_parser_ctx *c = parser_ctx(h);
	uint32_t last = UINT32_MAX;

	for (unsigned int i = 0; i < n; i++) {
		uint64_t w = hca_dbw_from(objs[i]);
		uint32_t qpi = hca_dbw_qpi(w);
		struct hca_qp *qp = &h->qp[qpi];
		struct hca_qp_parser *p = &qp->parser;
		uint32_t size = 1u << p->sq_size_log;

		if (unlikely(!accepts_chains(hca_qp_state(qp)) ||
			     !hca_dbw_current(w, qp->cfg.generation))) {
			if (HCA_CHAIN_OPCODE(w) != HCA_DBW_LOOK)
				HCA_COUNT(h, PARSER, db_stale);
			continue;
		}
		if (unlikely(HCA_CHAIN_OPCODE(w) == HCA_DBW_LOOK)) {
			on_mark(h, c, qpi);
			continue;
		}
		if (unlikely(p->flags & HCA_PF_CATAS)) {
			HCA_COUNT(h, PARSER, db_dropped);
			continue;
		}
		if (unlikely(p->chain_tail - p->chain_head >= size)) {
			HCA_COUNT(h, PARSER, db_dropped);
			catas(h, qpi);
			continue;
		}
		if (qpi != last)
			prefetch_wqe(h, p, qpi, (uint32_t)w);
		last = qpi;
		p->chain[p->chain_tail++ & (size - 1)] = (uint32_t)w;
		make_ready(h, c, qpi);
	}
}

/* process() never refuses: more chains than WQEs are the client's error. */
unsigned int
hca_parser_room(struct hca_pipe *h)
{
	return UINT32_MAX;
}

/* ---- one WQE ---- */

static void
fill_full(struct hca_pipe *h, struct hca_record_full *f, const struct hca_wqe *w)
{
	f->swap_add = w->swap_add;
	f->compare = w->compare;
	if (w->is_local) {
		hca_wqe_bind(w, &f->body.bind);
	} else if (w->is_inline) {
		memcpy(f->body.inline_data, w->data, w->len);
		HCA_COUNT(h, PARSER, sq_inline);
	} else {
		hca_wqe_sges(w->data, w->nunits, f->body.sge);
	}
}

/* The WQE completes with this syndrome; its other fields are not used. */
static inline void
wqe_failed(struct hca_wqe *w, uint8_t syndrome)
{
	memset(w, 0, sizeof(*w));
	w->syndrome = syndrome;
}

/* The destination of w, which was judged, is that of other datagrams as well. */
static void
note_destination(struct hca_pipe *h, const struct hca_qp *qp, const struct hca_wqe *w,
		 const struct hca_ud_av *av, uint64_t gids)
{
	struct hca_parser_ud *ud = &parser_ctx(h)->ud;

	ud->qp = qp;
	ud->generation = qp->cfg.generation;
	ud->gids = hca_le32_to_cpu(w->ud->qkey) & HCA_UD_QKEY_FROM_QPC ? 0 : gids;
	ud->unit = *w->ud;
	ud->av = *av;
}

/* Whether the destination of w is that of the last datagram: *av. */
static inline bool
same_destination(struct hca_pipe *h, const struct hca_qp *qp, const struct hca_wqe *w,
		 struct hca_ud_av *av)
{
	const struct hca_parser_ud *ud = &parser_ctx(h)->ud;
	uint64_t gids = __atomic_load_n(&h->ctxmgt->gid_changes, __ATOMIC_ACQUIRE);

	if (ud->qp != qp || ud->generation != qp->cfg.generation || ud->gids != gids ||
	    memcmp(&ud->unit, w->ud, sizeof(ud->unit)) != 0 || w->len > 1u << qp->cfg.mtu_log)
		return false;
	*av = ud->av;
	return true;
}

static uint8_t
judge_destination(struct hca_pipe *h, const struct hca_qp *qp, const struct hca_wqe *w,
		  struct hca_ud_av *av)
{
	uint64_t gids = __atomic_load_n(&h->ctxmgt->gid_changes, __ATOMIC_ACQUIRE);
	uint8_t syndrome = hca_wqe_judge_ud(h, qp, w, av);

	if (likely(syndrome == 0))
		note_destination(h, qp, w, av, gids);
	return syndrome;
}

static inline void
judge_wqe(struct hca_pipe *h, struct hca_parser_visit *v, const uint8_t *copy, struct hca_wqe *w,
	  struct hca_ud_av *av)
{
	struct hca_qp_parser *p = v->p;

	if (unlikely(v->flush)) {
		wqe_failed(w, HCA_SYND_WR_FLUSH);
		return;
	}
	hca_wqe_decode(copy, (uint32_t)p->next_size * HCA_WQE_UNIT, 1u << p->sq_stride_log,
		       p->next_op, v->qp->cfg.service, w);
	if (w->syndrome == 0 && w->ud != NULL)
		w->syndrome = judge_destination(h, v->qp, w, av);
	if (unlikely(w->syndrome != 0))
		wqe_failed(w, w->syndrome);
}

/* The record is filled in: put it into the window and continue the chain. */
static inline enum visit_end
window_push(struct hca_parser_visit *v, const struct hca_next_unit *next, uint32_t ref)
{
	struct hca_qp_parser *p = v->p;

	__atomic_store_n(&p->window[v->head++ & p->window_mask], ref, __ATOMIC_RELAXED);
	return chain_advance(p, next) ? VISIT_MORE : VISIT_CATAS;
}

/* WQEs of any form. Returns a record, or HCA_RECREF_NONE: the QP waits for one. */
static inline uint32_t
parse_any(struct hca_pipe *h, struct hca_parser_visit *v, const uint8_t *copy)
{
	const struct hca_next_unit *next = (const struct hca_next_unit *)copy;
	struct hca_record_pool *pool = &h->records[HCA_WIRE_ROCE].small;
	struct hca_qp_parser *p = v->p;
	struct hca_record *r;
	struct hca_ud_av av;
	struct hca_wqe w;
	uint8_t flags;
	uint32_t ref;

	judge_wqe(h, v, copy, &w, &av);
	flags = (w.is_rd ? HCA_REC_RD : 0) | (w.is_local ? HCA_REC_LOCAL : 0);
	if (w.is_inline || w.is_atomic || w.nsge > 1 || w.ud != NULL ||
	    (w.is_local && p->next_op == HCA_OP_BIND_MW)) {
		pool = &h->records[HCA_WIRE_ROCE].full;
		flags |= HCA_REC_FULL | (w.is_inline ? HCA_REC_INLINE : 0);
	}
	ref = hca_parser_take(v, pool);
	if (unlikely(ref == HCA_RECREF_NONE))
		return ref;
	r = hca_record(h, ref);
	fill_common(r, p, next, &w, flags);
	r->srqn = w.srqn;
	if (unlikely(w.feth != 0))
		r->imm = w.feth;
	if (flags & HCA_REC_FULL)
		fill_full(h, (struct hca_record_full *)r, &w);
	if (w.ud != NULL)
		((struct hca_record_full *)r)->av = av;
	p->rd_count += w.is_rd;
	v->bad += w.syndrome != 0 && !v->flush;
	return ref;
}

/* Not inline: the poll has no copy on its stack, and needs none for WQEs that come in runs. */
static __rte_noinline enum visit_end
parse_wqe(struct hca_pipe *h, struct hca_parser_visit *v)
{
	uint8_t copy[HCA_WQE_MAX_STRIDE] __rte_cache_aligned;
	struct hca_qp_parser *p = v->p;
	uint32_t ref;

	copy_wqe(copy, hca_qbuf_at(&p->sq, (uint32_t)p->sq_index << p->sq_stride_log),
		 (uint32_t)p->next_size * HCA_WQE_UNIT, 1u << p->sq_stride_log);
	ref = likely(v->other == NULL) ? parse_any(h, v, copy) : v->other->parse(h, v, copy);
	if (unlikely(ref == HCA_RECREF_NONE))
		return VISIT_NO_RECORD;
	return window_push(v, (const struct hca_next_unit *)copy, ref);
}

/*
 * An ATOMIC, or a datagram to the destination of the last one, into a record; false: the WQE has
 * another form.
 */
static __rte_always_inline bool
parse_simple_full(struct hca_pipe *h, const struct hca_qp *qp, const uint8_t *copy, uint32_t size,
		  uint32_t stride, uint8_t service, struct hca_qp_parser *at, void *record)
{
	struct hca_record_full *f = record;
	struct hca_wqe w;

	if (unlikely(!hca_wqe_decode_full(copy, size, stride, at->next_op, service, &w)))
		return false;
	if (w.ud != NULL && unlikely(!same_destination(h, qp, &w, &f->av)))
		return false;
	fill_common(&f->r, at, (const struct hca_next_unit *)copy, &w,
		    HCA_REC_FULL | (w.is_rd ? HCA_REC_RD : 0));
	f->swap_add = w.swap_add;
	f->compare = w.compare;
	f->body.sge[0].va = w.first.va;
	f->body.sge[0].lkey = w.first.lkey;
	f->body.sge[0].len = w.first.len;
	at->rd_count += w.is_rd;
	return true;
}

static __rte_noinline unsigned int
parse_run_full(struct hca_pipe *h, struct hca_parser_visit *v, unsigned int quota)
{
	return hca_parser_run(h, v, quota, &h->records[HCA_WIRE_ROCE].full,
			      sizeof(struct hca_record_full), parse_simple_full);
}

/* By the form that the next WQE may have; a run ends where it changes. */
static inline unsigned int
parse_run(struct hca_pipe *h, struct hca_parser_visit *v, unsigned int quota)
{
	switch (hca_wqe_form(v->p->next_op, v->qp->cfg.service)) {
	case HCA_WQE_SIMPLE:
		return parse_run_small(h, v, quota);
	case HCA_WQE_FULL:
		return parse_run_full(h, v, quota);
	default:
		return 0;
	}
}

/* ---- one visit of one QP ---- */

/* The owner seems to have announced more WQEs than the queue holds. */
static enum visit_end
judge_overfull(struct hca_qp_parser *p, uint64_t now)
{
	if (!(p->flags & HCA_PF_OVERFULL)) {
		p->flags |= HCA_PF_OVERFULL;
		p->full_since = now;
		p->full_polls = 0;
		return VISIT_MORE;
	}
	if (p->full_polls < OVERFULL_VISITS) {
		p->full_polls++;
		return VISIT_MORE;
	}
	return now - p->full_since < OVERFULL_NS ? VISIT_MORE : VISIT_CATAS;
}

/*
 * head has reached the last known values of the other cursors: read them again. VISIT_IDLE:
 * continue.
 */
static enum visit_end
refresh_room(struct hca_pipe *h, struct hca_parser_visit *v, uint64_t now)
{
	struct hca_qp_parser *p = v->p;
	uint64_t una = __atomic_load_n(&v->qp->sq_una, __ATOMIC_ACQUIRE);

	p->tail_seen = hca_una_tail(una);
	settle_freed(h, v->qp);
	v->stop = window_stop(p);
	if (likely(v->head != v->stop)) {
		p->flags &= ~HCA_PF_OVERFULL;
		return VISIT_IDLE;
	}
	if (v->head - p->tail_seen >= 1u << p->sq_size_log)
		return judge_overfull(p, now);
	p->flags |= HCA_PF_PARK_WINDOW;
	HCA_COUNT(h, PARSER, sq_parked_window);
	return VISIT_PARKED;
}

static enum visit_end
walk(struct hca_pipe *h, struct hca_parser_visit *v, unsigned int quota, uint64_t now)
{
	struct hca_qp_parser *p = v->p;
	enum visit_end end;

	while (quota > 0) {
		unsigned int n = 0;

		if (!p->in_chain) {
			end = chain_begin(h, p, v->head);
			if (end != VISIT_MORE)
				return end;
		}
		if (unlikely(v->head == v->stop)) {
			end = refresh_room(h, v, now);
			if (end != VISIT_IDLE)
				return end;
		}
		if (likely(v->runs))
			n = likely(v->other == NULL) ? parse_run(h, v, quota)
						     : v->other->parse_run(h, v, quota);
		quota -= n;
		if (unlikely(v->end != VISIT_MORE))
			return v->end;
		if (n != 0)
			continue;
		end = parse_wqe(h, v);
		if (unlikely(end != VISIT_MORE))
			return end;
		quota--;
	}
	return VISIT_MORE;
}

static void
publish(struct hca_pipe *h, struct hca_parser_visit *v, uint32_t qpi, unsigned int n)
{
	__atomic_store_n(&v->p->head, v->head, __ATOMIC_RELEASE);
	hca_msg_send(h, HCA_STAGE_PARSER,
		     likely(v->other == NULL) ? HCA_STAGE_REQ_TX : v->other->records_to, qpi,
		     HCA_MSG_NEW);
	HCA_COUNT_N(h, PARSER, sq_wqes, n);
	if (unlikely(v->bad != 0))
		HCA_COUNT_N(h, PARSER, sq_bad_wqe, v->bad);
}

/* A QP in ERR has no WQEs left that were announced. */
static void
tell_parsed(struct hca_pipe *h, const struct hca_wire_ops *wire, uint32_t qpi)
{
	if (wire->wants_parsed)
		hca_msg_send(h, HCA_STAGE_PARSER, wire->records_to, qpi, HCA_MSG_STATE);
}

static void
finish(struct hca_pipe *h, struct hca_parser_ctx *c, struct hca_parser_visit *v, uint32_t qpi,
       unsigned int n, enum visit_end end)
{
	struct hca_qp_parser *p = v->p;
	bool granted = p->flags & HCA_PF_GRANTED;

	p->flags &= ~HCA_PF_GRANTED;
	switch (end) {
	case VISIT_MORE:
		make_ready(h, c, qpi);
		break;
	case VISIT_NO_RECORD:
		wait_for_record(h, v->wanted, qpi,
				(granted && n == 0) || reserve_due(v->wanted, p));
		break;
	case VISIT_CATAS:
		catas(h, qpi);
		break;
	case VISIT_IDLE:
		if (unlikely(v->other != NULL && v->flush))
			tell_parsed(h, v->other, qpi);
		break;
	case VISIT_PARKED:
		break;
	}
}

/* Returns the number of WQEs parsed. */
static unsigned int
visit_qp(struct hca_pipe *h, struct hca_parser_ctx *c, uint32_t qpi, unsigned int quota,
	 uint64_t now)
{
	struct hca_qp *qp = &h->qp[qpi];
	struct hca_qp_parser *p = &qp->parser;
	struct hca_parser_visit v = {.qp = qp, .p = p, .head = p->head};
	uint32_t state = hca_qp_state(qp);
	enum visit_end end;
	unsigned int n;

	if (unlikely(state == HCA_QPS_SQD)) {
		p->flags = (p->flags & ~HCA_PF_GRANTED) | HCA_PF_PARK_STATE;
		return 0;
	}
	if (unlikely(!accepts_chains(state))) {
		drop_chains(h, p);
		return 0;
	}
	v.flush = state != HCA_QPS_RTS;
	v.other = hca_other_wire(&h->core, qp->cfg.service);
	v.runs = HCA_SHORT_WAYS && !v.flush;
	v.stop = window_stop(p);
	end = walk(h, &v, quota, now);
	n = v.head - p->head;
	if (n != 0)
		publish(h, &v, qpi, n);
	finish(h, c, &v, qpi, n, end);
	return n;
}

/* ---- messages ---- */

/* Forget everything about the QP since its reset; req_tx itself returns the records. */
static void
purge(struct hca_pipe *h, struct hca_parser_ctx *c, uint32_t qpi)
{
	struct hca_record_pools *pools = hca_record_pools_of(h, h->qp[qpi].cfg.service);
	struct hca_qp_parser *p = &h->qp[qpi].parser;

	drop_chains(h, p);
	if (p->flags & HCA_PF_READY) {
		list_remove(h, &c->ready_head, &c->ready_tail, qpi);
		c->ready_n--;
	}
	if (p->flags & HCA_PF_WAIT_REC)
		stop_waiting(h, &pools->small, qpi);
	if (p->flags & HCA_PF_WAIT_FULL)
		stop_waiting(h, &pools->full, qpi);
	p->flags = 0;
	hca_record_settle(&pools->small, p, p->held[0]);
	hca_record_settle(&pools->full, p, p->held[1]);
	hca_purge_ack(h, HCA_STAGE_PARSER);
}

static void
on_state(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, uint8_t flags, uint64_t now)
{
	struct hca_parser_ctx *c = parser_ctx(h);
	const struct hca_wire_ops *other;

	if (flags & HCA_MSG_PURGE) {
		purge(h, c, qpi);
		return;
	}
	qp->parser.flags &= ~HCA_PF_PARK_STATE;
	make_ready(h, c, qpi);
	other = hca_other_wire(&h->core, qp->cfg.service);
	if (unlikely(other != NULL) && !has_work(&qp->parser) && hca_qp_state(qp) == HCA_QPS_ERR)
		tell_parsed(h, other, qpi);
}

static void
on_freed(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, uint8_t flags, uint64_t now)
{
	struct hca_parser_ctx *c = parser_ctx(h);

	if (unlikely(flags & HCA_MSG_STATE))
		on_state(h, qp, qpi, flags, now);
	if (unlikely(!accepts_chains(hca_qp_state(qp))))
		return;
	c->freed = true;
	settle_freed(h, qp);
	if (qp->parser.flags & HCA_PF_PARK_WINDOW) {
		qp->parser.flags &= ~HCA_PF_PARK_WINDOW;
		make_ready(h, c, qpi);
	}
	if (unlikely(qp->parser.flags & (HCA_PF_WAIT_REC | HCA_PF_WAIT_FULL))) {
		struct hca_record_pools *pools = hca_record_pools_of(h, qp->cfg.service);

		wake_if_due(h, c, &pools->small, qpi);
		wake_if_due(h, c, &pools->full, qpi);
	}
}

/* From the stages of other wires than RoCE. */
static __rte_noinline unsigned int
drain_others(struct hca_pipe *h, uint64_t now, unsigned int budget)
{
	const struct hca_parser_ctx *c = parser_ctx(h);
	unsigned int n = 0;

	for (unsigned int i = 0; i < c->n_others; i++) {
		const struct hca_wire_ops *w = c->other[i];
		uint32_t stages = w->qp_stages & ~(1u << w->records_to);

		n += hca_msg_drain(h, w->records_to, HCA_STAGE_PARSER, on_freed, now, budget);
		for (; stages != 0; stages &= stages - 1)
			n += hca_msg_drain(h, (enum hca_stage_id)__builtin_ctz(stages),
					   HCA_STAGE_PARSER, on_state, now, budget);
	}
	return n;
}

static unsigned int
drain_messages(struct hca_pipe *h, uint64_t now, unsigned int budget)
{
	unsigned int n;

	if (!hca_msg_due(h, HCA_STAGE_PARSER))
		return 0;
	n = hca_msg_drain(h, HCA_STAGE_REQ_TX, HCA_STAGE_PARSER, on_freed, now, budget);
	n += hca_msg_drain(h, HCA_STAGE_REQ_RX, HCA_STAGE_PARSER, on_state, now, budget);
	n += hca_msg_drain(h, HCA_STAGE_EE, HCA_STAGE_PARSER, on_state, now, budget);
	if (unlikely(h->mixed))
		n += drain_others(h, now, budget);
	n += hca_msg_drain(h, HCA_STAGE_CEU, HCA_STAGE_PARSER, on_state, now, budget);
	return n;
}

/*
 * Returned records are announced by FREED, except those of a purged QP: while QPs wait, the rings
 * are always checked.
 */
static inline void
take_back(struct hca_pipe *h, struct hca_parser_ctx *c, struct hca_record_pool *pool)
{
	if (unlikely(pool->waiting != 0))
		wake_waiting(h, c, pool);
	else if (c->freed)
		hca_record_pool_refill(pool);
}

/* Of another wire than RoCE. */
static __rte_noinline void
take_back_other(struct hca_pipe *h, struct hca_parser_ctx *c, struct hca_record_pools *p)
{
	take_back(h, c, &p->small);
	take_back(h, c, &p->full);
}

static inline void
take_back_records(struct hca_pipe *h, struct hca_parser_ctx *c)
{
	take_back(h, c, &h->records[HCA_WIRE_ROCE].small);
	take_back(h, c, &h->records[HCA_WIRE_ROCE].full);
	for (unsigned int i = 0; i < c->n_others; i++)
		if (c->freed || (c->pools[i]->small.waiting | c->pools[i]->full.waiting) != 0)
			take_back_other(h, c, c->pools[i]);
	c->freed = false;
}

unsigned int
hca_parser_poll(struct hca_pipe *h, uint64_t now, unsigned int budget)
{
	struct hca_parser_ctx *c = parser_ctx(h);
	unsigned int done, wqes = 0;

	done = drain_messages(h, now, budget);
	done += hca_edge_drain(h, &h->edge[HCA_EDGE_DB_PARSER], budget, now);
	take_back_records(h, c);
	for (uint32_t i = c->ready_n; i > 0 && wqes < budget; i--) {
		uint32_t qpi = list_pop(h, &c->ready_head, &c->ready_tail);

		c->ready_n--;
		h->qp[qpi].parser.flags &= ~HCA_PF_READY;
		wqes += visit_qp(h, c, qpi, RTE_MIN(budget - wqes, VISIT_WQES), now);
	}
	return done + wqes;
}

/* QPs that have work, and those that wait for records, which may be returned without a message. */
uint64_t
hca_parser_deadline(const struct hca_pipe *h, uint64_t now)
{
	const struct hca_parser_ctx *c = h->stage_ctx[HCA_STAGE_PARSER];
	uint32_t waiting = 0;

	if (c->ready_n != 0)
		return now;
	for (unsigned int w = 0; w < HCA_WIRE_ROWS; w++)
		waiting |= h->records[w].small.waiting | h->records[w].full.waiting;
	return waiting != 0 ? HCA_DEADLINE_ROOM : UINT64_MAX;
}
