/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Answers that are due, per TP a ring in the order in which requests were executed, and the
 * operations that carry them in the TP's lane of responses. TPs with answers to give are in one
 * list and take turns; one whose lane is full leaves it until TPS, the TP sender, says that there
 * is room.
 */

#include "ub/target/ta_target.h"

#define STATUS(answer) ((answer) >> 5)

static void
tat_publish_open(struct hca_tp *tp)
{
	__atomic_store_n(&tp->tat.open_in, (uint32_t)tp->tat.open + tp->tat.owed, __ATOMIC_RELAXED);
}

/* ---- list of TPs ---- */

static void
tat_list_append(struct hca_pipe *h, struct hca_tp *tp)
{
	struct tat_ctx *ctx = tat_ctx(h);
	uint32_t i = tat_tp_index(h, tp);

	if (tp->tat.listed)
		return;
	tp->tat.listed = true;
	tp->tat.list_next = TAT_NONE;
	if (ctx->head == TAT_NONE)
		ctx->head = i;
	else
		h->ub->tp[ctx->tail].tat.list_next = i;
	ctx->tail = i;
	ctx->listed++;
}

static struct hca_tp *
tat_list_pop(struct hca_pipe *h)
{
	struct tat_ctx *ctx = tat_ctx(h);
	struct hca_tp *tp = &h->ub->tp[ctx->head];

	ctx->head = tp->tat.list_next;
	ctx->listed--;
	tp->tat.listed = false;
	return tp;
}

static void
tat_list_remove(struct hca_pipe *h, struct hca_tp *tp)
{
	for (uint32_t n = tp->tat.listed ? tat_ctx(h)->listed : 0; n != 0; n--) {
		struct hca_tp *other = tat_list_pop(h);

		if (other != tp)
			tat_list_append(h, other);
	}
}

/* ---- owing ---- */

static void
tat_count_answer(struct hca_pipe *h, uint8_t answer)
{
	static const enum hca_counter counter[] = {
		[HCA_UB_RSP_DONE] = HCA_CTR_ub_requests_done,
		[HCA_UB_RSP_RNR] = HCA_CTR_ub_requests_not_ready,
		[HCA_UB_RSP_PAGE_FAULT] = HCA_CTR_ub_requests_late,
		[HCA_UB_RSP_ERROR] = HCA_CTR_ub_requests_refused,
	};

	HCA_COUNT_AT(h, HCA_STAGE_TAT, counter[STATUS(answer)]);
}

static void
describe_read(const struct tat_request *q, struct tat_owed *e)
{
	const uint8_t *maetah = q->tah + q->v.at->maetah;

	e->va = hca_ub_maetah_address(maetah);
	e->token_id = hca_ub_maetah_token_id(maetah);
	e->length = hca_ub_maetah_length(maetah);
	if (q->v.at->tvetah != 0)
		e->token = hca_ub_tvetah_token_value(q->tah + q->v.at->tvetah);
	if (q->v.at->ofstetah != 0)
		e->offset = hca_ub_ofstetah_offset(q->tah + q->v.at->ofstetah);
}

void
tat_owe(struct tat_request *q)
{
	struct hca_tp *tp = q->tp;
	struct tat_owed *e = tat_owed_at(tp, tp->tat.owed);
	const struct tat_open *o = q->o;

	*e = (struct tat_owed){
		.opcode = HCA_UB_TA_TAACK,
		.answer = o->answer,
		.rc = o->rc,
		.tassn = o->tassn,
	};
	if (o->kind == HCA_UB_KIND_READ) {
		e->opcode = HCA_UB_TA_READ_RESPONSE;
		if (o->answer == 0)
			describe_read(q, e);
	} else if (o->kind == HCA_UB_KIND_ATOMIC) {
		e->opcode = HCA_UB_TA_ATOMIC_RESPONSE;
		e->length = o->answer == 0 ? q->op : TAT_NONE;
	}
	tp->tat.owed++;
	tat_publish_open(tp);
	tat_count_answer(q->h, o->answer);
	tat_list_append(q->h, tp);
}

void
tat_owe_done(struct hca_pipe *h, struct hca_tp *tp, uint32_t n)
{
	struct hca_tp_tat *tat = &tp->tat;

	__atomic_store_n(&tat->requests, tat->requests + n, __ATOMIC_RELAXED);
	tat->owed = (uint16_t)(tat->owed + n);
	tat_publish_open(tp);
	if (!tat->listed)
		tat_list_append(h, tp);
}

/* ---- operations ---- */

void
tat_op_return(struct hca_pipe *h, struct hca_tp *tp, uint32_t index)
{
	hca_ta_op_return(&h->ub->pool[HCA_TP_RESPONSES], index);
	tp->tat.held--;
}

uint32_t
tat_op_take(struct hca_pipe *h, struct hca_tp *tp)
{
	struct hca_ta_op_pool *pool = &h->ub->pool[HCA_TP_RESPONSES];

	/* a TP has at most as many as are left for the others: peers that do not acknowledge */
	if (unlikely(pool->free_n == 0 || tp->tat.held > pool->free_n))
		return TAT_NONE;
	tp->tat.held++;
	return hca_ta_op_take(pool);
}

static struct hca_ta_op *
op_at(const struct hca_pipe *h, uint32_t index)
{
	return &h->ub->ops.op[HCA_TP_RESPONSES][index];
}

/* Operations before `end` of the lane have come back. */
static void
tat_take_back(struct hca_pipe *h, struct hca_tp *tp, uint32_t end)
{
	const struct hca_tp_lane *lane = &tp->lane[HCA_TP_RESPONSES];

	for (; tp->tat.taken != end; tp->tat.taken++)
		tat_op_return(h, tp, lane->ring[tp->tat.taken & (tp->cfg.window - 1u)]);
}

static void
tat_take_back_done(struct hca_pipe *h, struct hca_tp *tp)
{
	tat_take_back(h, tp,
		      __atomic_load_n(&tp->tx.lane[HCA_TP_RESPONSES].done, __ATOMIC_ACQUIRE));
}

/* As hca_tp_lane_room(), but operations that were not taken back count as in the lane. */
static uint32_t
lane_room(const struct hca_tp *tp)
{
	return tp->cfg.window - (tp->lane[HCA_TP_RESPONSES].head - tp->tat.taken);
}

/* ---- answering ---- */

static void
tat_fill_response_op(struct hca_ta_op *op, const struct tat_owed *e)
{
	hca_ta_op_clear(op);
	op->opcode = e->opcode;
	op->last_opcode = e->opcode;
	op->ta4 = e->answer;
	op->tassn = e->tassn;
	op->rc = e->rc;
	op->offset = e->offset;
	if (e->opcode != HCA_UB_TA_READ_RESPONSE || e->length == 0)
		return;
	op->source = HCA_TA_OP_TOKEN;
	op->payload = e->length;
	op->length = e->length;
	op->key = e->token_id;
	op->read.va = e->va;
	op->read.token = e->token;
}

/* Number of answers behind the oldest one that its TAACK can also report. */
static uint32_t
tat_count_neighbours(const struct hca_tp *tp)
{
	const struct tat_owed *e = tat_owed_at(tp, 0);
	uint32_t n = 0;

	if (e->opcode != HCA_UB_TA_TAACK || e->answer != 0)
		return 0;
	while (n + 1 < tp->tat.owed) {
		const struct tat_owed *next = tat_owed_at(tp, n + 1);

		if (next->opcode != HCA_UB_TA_TAACK || next->answer != 0 || next->rc != e->rc ||
		    next->tassn != (uint16_t)(e->tassn + n + 1) || n + 1 >= HCA_UB_AGGREGATE_MAX)
			break;
		n++;
	}
	return n;
}

static void
count_response(struct hca_pipe *h, uint8_t opcode, uint32_t merged)
{
	if (opcode == HCA_UB_TA_TAACK)
		HCA_COUNT(h, TAT, ub_taacks);
	else if (opcode == HCA_UB_TA_READ_RESPONSE)
		HCA_COUNT(h, TAT, ub_read_responses);
	else
		HCA_COUNT(h, TAT, ub_atomic_responses);
	if (merged != 0)
		HCA_COUNT_N(h, TAT, ub_taacks_merged, merged);
}

static void
tat_settle(struct hca_tp *tp, uint32_t n)
{
	uint32_t at = tp->tat.owed_at + n;

	tp->tat.owed = (uint16_t)(tp->tat.owed - n);
	/* an empty ring begins again at place 0, which is in the cache */
	if (tp->tat.owed == 0)
		at = 0;
	tp->tat.owed_at = (uint16_t)(at < tp->cfg.requests ? at : at - tp->cfg.requests);
	tat_publish_open(tp);
}

/* The oldest answer, and those it speaks for, into the lane; false: there is no operation. */
static bool
tat_send_answer(struct hca_pipe *h, struct hca_tp *tp)
{
	const struct tat_owed *e = tat_owed_at(tp, 0);
	bool ready = e->opcode == HCA_UB_TA_ATOMIC_RESPONSE && e->length != TAT_NONE;
	uint32_t index = ready ? e->length : tat_op_take(h, tp), merged = tat_count_neighbours(tp);
	struct hca_ta_op *op;

	if (unlikely(index == TAT_NONE))
		return false;
	op = op_at(h, index);
	if (!ready)
		tat_fill_response_op(op, e);
	op->ta4 |= (uint8_t)merged;
	count_response(h, e->opcode, merged);
	tat_settle(tp, merged + 1);
	hca_tp_lane_put(tp, HCA_TP_RESPONSES, index);
	return true;
}

static unsigned int
tat_visit(struct hca_pipe *h, struct hca_tp *tp)
{
	unsigned int n = 0;

	if (unlikely(hca_tp_state(tp) == HCA_TPS_ERROR)) {
		tat_answer_drop(h, tp, false);
		return 1;
	}
	tat_take_back_done(h, tp);
	while (tp->tat.owed != 0 && lane_room(tp) != 0) {
		if (!tat_send_answer(h, tp)) {
			tat_list_append(h, tp); /* until operations come back, of any TP */
			break;
		}
		n++;
	}
	if (n != 0)
		tat_tell_tps(h, tp, HCA_MSG_NEW);
	return n;
}

unsigned int
tat_answer(struct hca_pipe *h, unsigned int budget)
{
	uint32_t visits = RTE_MIN(tat_ctx(h)->listed, TAT_VISITS);
	unsigned int n = 0;

	for (; visits != 0 && n < budget; visits--)
		n += tat_visit(h, tat_list_pop(h));
	return n;
}

void
tat_answer_room(struct hca_pipe *h, struct hca_tp *tp)
{
	tat_take_back_done(h, tp);
	if (tp->tat.owed != 0)
		tat_list_append(h, tp);
}

void
tat_answer_drop(struct hca_pipe *h, struct hca_tp *tp, bool all)
{
	while (tp->tat.owed != 0) {
		const struct tat_owed *e = tat_owed_at(tp, 0);

		if (e->opcode == HCA_UB_TA_ATOMIC_RESPONSE && e->length != TAT_NONE)
			tat_op_return(h, tp, e->length);
		HCA_COUNT(h, TAT, ub_answers_abandoned);
		tat_settle(tp, 1);
	}
	tat_take_back_done(h, tp);
	if (!all)
		return;
	tat_take_back(h, tp, tp->lane[HCA_TP_RESPONSES].head);
	tat_list_remove(h, tp);
}
