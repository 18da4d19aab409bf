/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * ta_initiator (TAI, transaction initiator): the stage. Jettys with something to send take turns;
 * those that find no room in a lane, or no operation, wait in the order in which they came.
 */

#include "ub/initiator/ta_initiator.h"

#include <errno.h>

#include <rte_malloc.h>

#include "core/table.h"

int
hca_tai_init(struct hca_pipe *h)
{
	struct hca_tai_ctx *ctx;
	uint32_t tps, lists;

	if (h->ub == NULL)
		return 0;
	tps = h->ub->tp_mask + 1;
	lists = HCA_TAI_WAIT_LISTS(tps);
	ctx = rte_zmalloc_socket("tai", sizeof(*ctx), RTE_CACHE_LINE_SIZE, h->cfg.socket_id);
	h->stage_ctx[HCA_STAGE_TAI] = ctx;
	if (ctx == NULL)
		return -ENOMEM;
	ctx->wait = hca_table_alloc(lists, sizeof(*ctx->wait), h->cfg.socket_id);
	ctx->turn = hca_table_alloc(tps, sizeof(*ctx->turn), h->cfg.socket_id);
	if (ctx->wait == NULL || ctx->turn == NULL) {
		hca_tai_fini(h);
		return -ENOMEM;
	}
	ctx->segment = h->cfg.ub_segment != 0 ? h->cfg.ub_segment : HCA_TAI_SEGMENT;
	ctx->run = HCA_TAI_RUN;
	ctx->expire_at = UINT64_MAX;
	ctx->ready.head = ctx->ready.front = HCA_TAI_NONE;
	for (uint32_t i = 0; i < lists; i++)
		ctx->wait[i].head = ctx->wait[i].front = HCA_TAI_NONE;
	return 0;
}

void
hca_tai_fini(struct hca_pipe *h)
{
	struct hca_tai_ctx *ctx = hca_tai_ctx(h);

	if (ctx == NULL)
		return;
	hca_table_free(ctx->turn);
	hca_table_free(ctx->wait);
	rte_free(ctx);
	h->stage_ctx[HCA_STAGE_TAI] = NULL;
}

unsigned int
hca_tai_room(struct hca_pipe *h)
{
	(void)h;
	return HCA_DIRECT_ROOM;
}

/* ---- lists ---- */

static void
tai_list_append(struct hca_pipe *h, struct hca_tai_list *l, uint32_t qpi)
{
	struct hca_qp_tai *q = &h->qp[qpi].tai;

	q->list_next = HCA_TAI_NONE;
	q->list_prev = l->head == HCA_TAI_NONE ? HCA_TAI_NONE : l->tail;
	if (l->head == HCA_TAI_NONE)
		l->head = qpi;
	else
		h->qp[l->tail].tai.list_next = qpi;
	l->tail = qpi;
}

/* In front of the others, behind those that came back before it: they keep their order. */
static void
tai_list_put_back(struct hca_pipe *h, struct hca_tai_list *l, uint32_t qpi)
{
	struct hca_qp_tai *q = &h->qp[qpi].tai;
	uint32_t *link = l->front == HCA_TAI_NONE ? &l->head : &h->qp[l->front].tai.list_next;

	q->list_next = *link;
	q->list_prev = l->front;
	if (q->list_next == HCA_TAI_NONE)
		l->tail = qpi;
	else
		h->qp[q->list_next].tai.list_prev = qpi;
	*link = l->front = qpi;
}

static void
tai_list_remove(struct hca_pipe *h, struct hca_tai_list *l, uint32_t qpi)
{
	const struct hca_qp_tai *q = &h->qp[qpi].tai;

	if (l->front == qpi)
		l->front = q->list_prev;
	if (q->list_next == HCA_TAI_NONE)
		l->tail = q->list_prev;
	else
		h->qp[q->list_next].tai.list_prev = q->list_prev;
	if (q->list_prev == HCA_TAI_NONE)
		l->head = q->list_next;
	else
		h->qp[q->list_prev].tai.list_next = q->list_next;
}

static void
tai_make_ready(struct hca_pipe *h, struct hca_tai_ctx *ctx, uint32_t qpi)
{
	h->qp[qpi].tai.flags |= HCA_TAI_READY;
	tai_list_append(h, &ctx->ready, qpi);
	ctx->ready_n++;
}

void
hca_tai_wake(struct hca_pipe *h, uint32_t qpi)
{
	if (!(h->qp[qpi].tai.flags & (HCA_TAI_READY | HCA_TAI_WAITS)))
		tai_make_ready(h, hca_tai_ctx(h), qpi);
}

/*
 * There is room for n: as many that wait on the list become ready, less those that have been made
 * so and are not served yet. More would find nothing, and leave their place in the order.
 */
static void
tai_grant_room(struct hca_pipe *h, uint32_t list, uint32_t n)
{
	struct hca_tai_ctx *ctx = hca_tai_ctx(h);
	struct hca_tai_list *l = &ctx->wait[list];

	while (l->granted < n && l->head != HCA_TAI_NONE) {
		uint32_t qpi = l->head;

		l->granted++;
		tai_list_remove(h, l, qpi);
		ctx->waiting_n--;
		h->qp[qpi].tai.flags &= ~HCA_TAI_WAITS;
		h->qp[qpi].tai.flags |= HCA_TAI_GRANTED;
		tai_make_ready(h, ctx, qpi);
	}
}

/* Room for which the Jettys of a list wait: requests of a TP or of a group, or operations. */
static uint32_t
room_of(const struct hca_pipe *h, uint32_t list)
{
	uint32_t tps = h->ub->tp_mask + 1, room = 0;
	const struct hca_tpg *g;

	if (list < tps)
		return hca_tai_tp_room(h, list);
	if (list == hca_tai_wait_op(h))
		return h->ub->pool[HCA_TP_REQUESTS].free_n;
	g = &h->ub->tpg[list - tps];
	for (uint32_t i = __atomic_load_n(&g->count, __ATOMIC_ACQUIRE); i-- > 0;)
		room += hca_tai_tp_usable(&h->ub->tp[g->tp[i]]) ? hca_tai_tp_room(h, g->tp[i]) : 0;
	return room;
}

static void
end_grant(struct hca_pipe *h, struct hca_qp *qp)
{
	qp->tai.flags &= ~HCA_TAI_GRANTED;
	hca_tai_ctx(h)->wait[qp->tai.waits].granted--;
}

/* It was woken, and leaves room for others, whether it needed any or not. */
static void
tai_pass_on_room(struct hca_pipe *h, struct hca_qp *qp)
{
	end_grant(h, qp);
	tai_grant_room(h, qp->tai.waits, room_of(h, qp->tai.waits));
}

/* A Jetty that was woken and found no room waits in front of the others. */
void
hca_tai_wait(struct hca_pipe *h, uint32_t qpi, uint32_t list)
{
	struct hca_tai_list *l = &hca_tai_ctx(h)->wait[list];
	struct hca_qp_tai *q = &h->qp[qpi].tai;
	bool in_front = q->flags & HCA_TAI_GRANTED && q->waits == list;

	if (in_front)
		end_grant(h, &h->qp[qpi]);
	else if (q->flags & HCA_TAI_GRANTED)
		tai_pass_on_room(h, &h->qp[qpi]);
	q->waits = list;
	q->flags |= HCA_TAI_WAITS;
	hca_tai_ctx(h)->waiting_n++;
	if (in_front)
		tai_list_put_back(h, l, qpi);
	else
		tai_list_append(h, l, qpi);
	HCA_COUNT(h, TAI, ub_parked_room);
}

bool
hca_tai_is_before(struct hca_pipe *h, const struct hca_qp *qp, uint32_t list)
{
	const struct hca_tai_list *l = &hca_tai_ctx(h)->wait[list];
	uint32_t room;

	if (qp->tai.flags & HCA_TAI_GRANTED && qp->tai.waits == list)
		return true;
	room = room_of(h, list);
	tai_grant_room(h, list, room);
	return room > l->granted;
}

void
hca_tai_grant_tp(struct hca_pipe *h, uint32_t tpi)
{
	const struct hca_tp *tp = &h->ub->tp[tpi];
	bool usable = hca_tai_tp_usable(tp);
	uint32_t list = hca_tai_wait_tp(h, tpi);

	tai_grant_room(h, list, usable ? room_of(h, list) : UINT32_MAX);
	if (tp->cfg.tpg == 0)
		return;
	list = hca_tai_wait_group(h, tp->cfg.tpg - 1);
	if (hca_tai_ctx(h)->wait[list].head != HCA_TAI_NONE)
		tai_grant_room(h, list, usable ? room_of(h, list) : UINT32_MAX);
}

void
hca_tai_room_of_ops(struct hca_pipe *h)
{
	tai_grant_room(h, hca_tai_wait_op(h), h->ub->pool[HCA_TP_REQUESTS].free_n);
}

void
hca_tai_unlist(struct hca_pipe *h, uint32_t qpi)
{
	struct hca_tai_ctx *ctx = hca_tai_ctx(h);
	struct hca_qp *qp = &h->qp[qpi];

	if (qp->tai.flags & HCA_TAI_READY) {
		tai_list_remove(h, &ctx->ready, qpi);
		ctx->ready_n--;
	} else if (qp->tai.flags & HCA_TAI_WAITS) {
		tai_list_remove(h, &ctx->wait[qp->tai.waits], qpi);
		ctx->waiting_n--;
	}
	qp->tai.flags &= ~(HCA_TAI_READY | HCA_TAI_WAITS);
	if (qp->tai.flags & HCA_TAI_GRANTED)
		tai_pass_on_room(h, qp);
}

/* ---- records back to their pools ---- */

/* n references, not 0: runs of one kind at once. */
static void
return_refs(struct hca_pipe *h, const uint32_t *ref, uint32_t n)
{
	struct hca_record_pools *pools = &h->records[HCA_WIRE_UB];

	for (uint32_t i = 0, run; i < n; i += run) {
		uint32_t kind = ref[i] & HCA_RECREF_FULL;
		struct hca_record_pool *p = kind != 0 ? &pools->full : &pools->small;

		for (run = 1; i + run < n && (ref[i + run] & HCA_RECREF_FULL) == kind; run++)
			;
		rte_ring_sp_enqueue_bulk_elem(p->free, &ref[i], sizeof(ref[i]), run, NULL);
	}
}

void
hca_tai_return(struct hca_pipe *h, const struct hca_qp *qp, uint32_t from, uint32_t to)
{
	uint32_t mask = qp->tai.window_mask;

	for (uint32_t n; from != to; from += n) {
		n = RTE_MIN(to - from, mask + 1 - (from & mask));
		return_refs(h, &qp->tai.window[from & mask], n);
	}
}

/* ---- messages ---- */

static void
tai_on_parser(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, uint8_t flags, uint64_t now)
{
	(void)now;
	if (unlikely(flags & HCA_MSG_STATE)) {
		if (hca_qp_state(qp) == HCA_QPS_ERR)
			qp->tai.flags |= HCA_TAI_PARSED;
		hca_tai_state(h, qp, qpi);
	}
	hca_tai_wake(h, qpi);
}

static void
tai_on_timer(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, uint8_t flags, uint64_t now)
{
	(void)flags;
	(void)now;
	hca_tai_expired(h, qp, qpi);
}

static void
tai_on_state(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, uint8_t flags, uint64_t now)
{
	(void)flags;
	(void)now;
	hca_tai_state(h, qp, qpi);
}

static void
tai_on_ceu_qp(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, uint8_t flags, uint64_t now)
{
	if (!(flags & HCA_MSG_PURGE)) {
		tai_on_state(h, qp, qpi, flags, now);
		return;
	}
	hca_tai_forget(h, qp, qpi);
	hca_purge_ack(h, HCA_STAGE_TAI);
}

/* Segments of it may be any Jetty's; those of other TPs are found on the way. */
static void
begin_search(struct hca_pipe *h)
{
	hca_tai_ctx(h)->search_left = h->object[HCA_OBJECT_QP].count;
}

static void
tai_on_tps(struct hca_pipe *h, struct hca_tp *tp, uint32_t tpi, uint8_t flags, uint64_t now)
{
	(void)now;
	if (unlikely(flags & HCA_MSG_DEAD))
		begin_search(h);
	hca_tai_take_back(h, tp, tpi,
			  __atomic_load_n(&tp->tx.lane[HCA_TP_REQUESTS].done, __ATOMIC_ACQUIRE));
	hca_tai_room_of_tp(h, tpi);
}

/* In RESET no other stage uses the operations in its lane. */
static void
tai_on_ceu_tp(struct hca_pipe *h, struct hca_tp *tp, uint32_t tpi, uint8_t flags, uint64_t now)
{
	(void)now;
	if (flags & HCA_MSG_PURGE) {
		hca_tai_ctx(h)->search_purges = true;
		begin_search(h);
		hca_tai_take_back(h, tp, tpi, tp->lane[HCA_TP_REQUESTS].head);
	}
	hca_tai_room_of_tp(h, tpi);
}

static unsigned int
tai_messages(struct hca_pipe *h, uint64_t now, unsigned int budget)
{
	unsigned int n;

	n = hca_ub_msg_drain(h, HCA_STAGE_CEU, HCA_STAGE_TAI, tai_on_ceu_qp, tai_on_ceu_tp, now,
			     budget);
	n += hca_msg_drain(h, HCA_STAGE_TIMER, HCA_STAGE_TAI, tai_on_timer, now, budget);
	n += hca_msg_drain(h, HCA_STAGE_TAT, HCA_STAGE_TAI, tai_on_state, now, budget);
	n += hca_tp_msg_drain(h, HCA_STAGE_TPS, HCA_STAGE_TAI, tai_on_tps, now, budget);
	n += hca_msg_drain(h, HCA_STAGE_PARSER, HCA_STAGE_TAI, tai_on_parser, now, budget);
	return n;
}

/* ---- turns ---- */

static unsigned int
tai_serve(struct hca_pipe *h, struct hca_tai_ctx *ctx, unsigned int budget)
{
	unsigned int n = 0;

	for (uint32_t turns = ctx->ready_n; turns > 0 && n < budget; turns--) {
		uint32_t qpi = ctx->ready.head;
		struct hca_qp *qp = &h->qp[qpi];
		uint16_t before = qp->tai.tassn;

		tai_list_remove(h, &ctx->ready, qpi);
		ctx->ready_n--;
		qp->tai.flags &= ~HCA_TAI_READY;
		hca_tai_visit(h, qp, qpi);
		if (qp->tai.flags & HCA_TAI_GRANTED)
			tai_pass_on_room(h, qp);
		n += 1u + (uint16_t)(qp->tai.tassn - before);
	}
	return n;
}

unsigned int
hca_tai_poll(struct hca_pipe *h, uint64_t now, unsigned int budget)
{
	struct hca_tai_ctx *ctx = hca_tai_ctx(h);
	unsigned int n = 0;

	if (h->ub == NULL)
		return 0;
	ctx->now = now;
	hca_ub_stall_note(h, &ctx->stall, now);
	if (hca_msg_due(h, HCA_STAGE_TAI))
		n += tai_messages(h, now, budget);
	n += hca_edge_drain(h, &h->edge[HCA_EDGE_TPR_TAI], budget, now);
	if (unlikely(ctx->search_left != 0))
		n += hca_tai_search(h);
	if (unlikely(ctx->expire_at <= now))
		hca_tai_expire_places(h);
	n += tai_serve(h, ctx, budget);
	if (ctx->batch.n != 0)
		hca_cq_batch_end(&h->core, &ctx->batch, HCA_STAGE_TAI);
	return n;
}

uint64_t
hca_tai_deadline(const struct hca_pipe *h, uint64_t now)
{
	const struct hca_tai_ctx *ctx = hca_tai_ctx(h);

	if (ctx == NULL)
		return UINT64_MAX;
	return (ctx->ready_n | ctx->search_left) != 0 ? now : ctx->expire_at;
}
