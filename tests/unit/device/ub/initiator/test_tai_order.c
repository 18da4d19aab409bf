/* SPDX-License-Identifier: BSD-3-Clause */

/* The requests for which a request waits before it begins, and those for which it does not. */

#include "tai_rig.h"

/* Post a request of one segment with an order. */
static struct hca_ub_record *
post(struct tai_rig *r, uint8_t op, uint8_t odr)
{
	struct hca_ub_record *rec = rig_post(r, op, 8);

	rec->order = odr;
	if (op == HCA_OP_ATOMIC)
		rec->atomic = HCA_UB_TA_SWAP;
	return rec;
}

static uint32_t
begun(struct tai_rig *r)
{
	rig_poll(r);
	return rig_skip(r);
}

static void
answer_read(struct tai_rig *r, uint32_t tpi, uint16_t tassn)
{
	struct hca_ub_headers h = rig_response(HCA_UB_TA_READ_RESPONSE, r->qp, tassn);
	uint8_t data[8] = {0};

	rig_answer(r, tpi, &h, data, sizeof(data));
}

/* Reads and atomics hold up a fence, Writes do not. */
static void
test_fence(void **state)
{
	struct tai_rig *r = *state;
	struct hca_ub_headers h;

	post(r, HCA_OP_RDMA_READ, 0);
	post(r, HCA_OP_ATOMIC, 0);
	post(r, HCA_OP_RDMA_WRITE, 0);
	post(r, HCA_OP_SEND, 0)->flags |= HCA_REC_FENCE;
	post(r, HCA_OP_SEND, 0); /* behind it */
	assert_int_equal(begun(r), 3);
	answer_read(r, 1, 0);
	assert_int_equal(begun(r), 0);
	h = rig_response(HCA_UB_TA_ATOMIC_RESPONSE, r->qp, 1);
	rig_answer(r, 2, &h, "12345678", 8);
	assert_int_equal(r->qp->tai.open_reads, 0);
	assert_int_equal(begun(r), 2);
}

/* Strong order waits for relaxed and strong ones, not for those without order. */
static void
test_strong(void **state)
{
	struct tai_rig *r = *state;

	post(r, HCA_OP_RDMA_WRITE, HCA_UB_ODR_NONE);
	post(r, HCA_OP_RDMA_WRITE, HCA_UB_ODR_STRONG);
	assert_int_equal(begun(r), 2);
	post(r, HCA_OP_RDMA_WRITE, HCA_UB_ODR_RELAXED);
	post(r, HCA_OP_RDMA_WRITE, HCA_UB_ODR_STRONG);
	post(r, HCA_OP_RDMA_WRITE, HCA_UB_ODR_NONE); /* held too */
	assert_int_equal(begun(r), 1);
	rig_taack(r, 2, 1, 0, 0);
	assert_int_equal(begun(r), 0);
	rig_taack(r, 1, 2, 0, 0);
	assert_int_equal(begun(r), 2);
	assert_int_equal(r->qp->tai.open, 3);
	assert_int_equal(r->qp->tai.open_ordered, 1);
}

/* Segments of one strong request do not wait for each other. */
static void
test_strong_of_many_segments(void **state)
{
	struct tai_rig *r = *state;

	rig_post(r, HCA_OP_RDMA_WRITE, 3 * 65536)->order = HCA_UB_ODR_STRONG;
	post(r, HCA_OP_RDMA_WRITE, HCA_UB_ODR_STRONG);
	assert_int_equal(begun(r), 3);
	rig_taack(r, 1, 0, 0, 1);
	assert_int_equal(begun(r), 0);
	rig_taack(r, 1, 2, 0, 0);
	assert_int_equal(begun(r), 1);
}

/* Completion order at the target: of those that complete something there. */
static void
test_completion_order(void **state)
{
	struct tai_rig *r = *state;

	post(r, HCA_OP_RDMA_WRITE, 0);
	post(r, HCA_OP_SEND, HCA_UB_ODR_COMPLETION);
	assert_int_equal(begun(r), 2);
	post(r, HCA_OP_RDMA_WRITE, HCA_UB_ODR_COMPLETION);
	post(r, HCA_OP_SEND, 0);
	assert_int_equal(begun(r), 2);
	post(r, HCA_OP_RDMA_WRITE_IMM, HCA_UB_ODR_COMPLETION);
	assert_int_equal(begun(r), 0);
	rig_taack(r, 2, 1, 0, 0);
	assert_int_equal(begun(r), 0);
	rig_taack(r, 2, 3, 0, 0);
	assert_int_equal(begun(r), 1);
}

/* The notification, or the immediate, leaves when all data before it is there. */
static void
test_closing_segment(void **state)
{
	static const uint8_t ops[] = {HCA_OP_WRITE_NOTIFY, HCA_OP_RDMA_WRITE_IMM};
	struct tai_rig *r = *state;

	for (unsigned int i = 0; i < RTE_DIM(ops); i++) {
		uint16_t first = r->qp->tai.tassn;

		rig_post(r, ops[i], 3 * 65536);
		assert_int_equal(begun(r), 2);
		rig_taack(r, 2, (uint16_t)(first + 1), 0, 0);
		assert_int_equal(begun(r), 0);
		rig_taack(r, 1, first, 0, 0);
		assert_int_equal(begun(r), 1);
		rig_expect_none(r);
		rig_taack(r, 1, (uint16_t)(first + 2), 0, 0);
		rig_expect(r, i, 0);
	}
	rig_release_all(r);
	rig_check_quiet(r);
}

/* CQEs in the order of the requests, whatever that of the answers. */
static void
test_completions_in_order(void **state)
{
	struct tai_rig *r = *state;

	for (unsigned int i = 0; i < 4; i++)
		post(r, HCA_OP_RDMA_WRITE, 0);
	assert_int_equal(begun(r), 4);
	rig_taack(r, 2, 3, 0, 0);
	rig_taack(r, 2, 1, 0, 0);
	rig_expect_none(r);
	rig_taack(r, 1, 0, 0, 0);
	rig_expect(r, 0, 0);
	rig_expect(r, 1, 0);
	rig_expect_none(r);
	assert_int_equal(hca_una_tail(r->qp->sq_una), 2);
	rig_taack(r, 1, 2, 0, 0);
	rig_expect(r, 2, 0);
	rig_expect(r, 3, 0);
	rig_release_all(r);
	rig_check_quiet(r);
	assert_int_equal(RIG_COUNTER(r, req_completions), 4);
}

static void
test_unsignaled(void **state)
{
	struct tai_rig *r = *state;

	post(r, HCA_OP_RDMA_WRITE, 0)->flags &= ~HCA_REC_SIGNALED;
	post(r, HCA_OP_RDMA_WRITE, 0)->flags &= ~HCA_REC_SIGNALED;
	assert_int_equal(begun(r), 2);
	rig_taack(r, 1, 0, 0, 0);
	rig_expect_none(r);
	rig_taack(r, 2, 1, 3, 2);
	rig_expect(r, 1, HCA_UB_STATUS_REMOTE_ACCESS);
}

/* A record goes back when its request is complete and nothing refers to it. */
static void
test_records_come_back(void **state)
{
	struct tai_rig *r = *state;

	rig_by_turns(r);
	post(r, HCA_OP_SEND, 0);
	post(r, HCA_OP_SEND, 0);
	assert_int_equal(begun(r), 2);
	rig_taack(r, 1, 0, 0, 0);
	rig_taack(r, 2, 1, 0, 0);
	assert_int_equal(r->qp->sq_freed, 0);
	rig_release(r, 2, 1);
	assert_int_equal(r->qp->sq_freed, 0); /* in the order of the window */
	rig_release(r, 1, 1);
	assert_int_equal(r->qp->sq_freed, 2);
	assert_int_equal(fx_take_msgs(r->fx, HCA_STAGE_TAI, HCA_STAGE_PARSER, RIG_QPI),
			 HCA_MSG_FREED);
	post(r, HCA_OP_SEND, 0);
	assert_int_equal(begun(r), 1);
	rig_release_all(r);
	assert_int_equal(r->qp->sq_freed, 2);
	rig_taack(r, 1, 2, 0, 0);
	assert_int_equal(r->qp->sq_freed, 3);
}

/* A bad WQE fails in its turn, and those behind it go on. */
static void
test_bad_record(void **state)
{
	struct tai_rig *r = *state;

	post(r, HCA_OP_SEND, 0);
	post(r, HCA_OP_SEND, 0)->status = HCA_UB_STATUS_LOCAL_LENGTH;
	post(r, HCA_OP_SEND, 0);
	assert_int_equal(begun(r), 2);
	rig_expect_none(r);
	rig_taack(r, 1, 0, 0, 0);
	rig_expect(r, 0, 0);
	rig_expect(r, 1, HCA_UB_STATUS_LOCAL_LENGTH);
	rig_taack(r, 2, 1, 0, 0);
	rig_expect(r, 2, 0);
	assert_int_equal(RIG_COUNTER(r, req_cqe_error), 1);
}

/* One TP, and runs of plain Writes as long as a visit allows. */
static struct tai_rig *
in_runs(void **state)
{
	struct tai_rig *r = *state;

	hca_tai_ctx(r->h)->run = HCA_TAI_RUN;
	r->h->ub->tpg[RIG_GROUP].count = 1;
	return r;
}

/* A Write with its SGE in the first line, as the parser makes it of the common form. */
static struct hca_ub_record *
post_plain(struct tai_rig *r, uint8_t odr)
{
	struct hca_ub_record *rec = post(r, HCA_OP_RDMA_WRITE, odr);

	rec->flags &= (uint8_t)~HCA_REC_FULL;
	rec->sge = (struct hca_sge){.va = RIG_VA, .lkey = RIG_KEY, .len = rec->len};
	return rec;
}

/* The same order in a run of plain Writes. */
static void
test_order_in_a_run(void **state)
{
	struct tai_rig *r = in_runs(state);

	post_plain(r, HCA_UB_ODR_NONE);
	post_plain(r, HCA_UB_ODR_RELAXED);
	post_plain(r, HCA_UB_ODR_NONE);
	post_plain(r, HCA_UB_ODR_STRONG);
	assert_int_equal(begun(r), 3);
	assert_int_equal(r->qp->tai.open_ordered, 1);
	rig_taack(r, 1, 1, 0, 0);
	assert_int_equal(begun(r), 1);
	post(r, HCA_OP_RDMA_READ, 0);
	post_plain(r, 0);
	post_plain(r, 0);
	post_plain(r, 0)->flags |= HCA_REC_FENCE;
	assert_int_equal(begun(r), 3);
	answer_read(r, 1, 4);
	assert_int_equal(begun(r), 1);
}

#define KINDS 6u

/* Post requests of a run with different headers, and copy their operations to op. */
static void
post_kinds(struct tai_rig *r, struct hca_ta_op op[KINDS])
{
	static const struct {
		uint8_t order, flags;
	} kind[KINDS] = {
		{HCA_UB_ODR_NONE, 0},
		{HCA_UB_ODR_RELAXED | HCA_UB_HAS_TOKEN, 0},
		{HCA_UB_ODR_RELAXED | HCA_UB_HAS_TOKEN, HCA_REC_SOLICITED},
		{HCA_UB_ODR_NONE | HCA_UB_EXCLUSIVE, HCA_REC_SOLICITED},
		{HCA_UB_ODR_NONE, HCA_REC_SOLICITED},
		{HCA_UB_ODR_NONE, 0},
	};
	uint16_t first = r->qp->tai.tassn;

	for (unsigned int i = 0; i < KINDS; i++)
		post_plain(r, kind[i].order)->flags |= kind[i].flags;
	rig_poll(r);
	assert_int_equal(r->qp->tai.open_ordered, 2);
	for (unsigned int i = 0; i < KINDS; i++) {
		struct hca_ta_op *o = rig_next(r, 1);

		assert_non_null(o);
		op[i] = *o;
	}
	rig_release_all(r);
	rig_taack(r, 1, first, 0, KINDS - 1);
	assert_int_equal(r->qp->tai.open_ordered, 0);
}

/* The headers of a run say the same as those of requests that go one by one. */
static void
test_headers_in_a_run(void **state)
{
	struct tai_rig *r = in_runs(state);
	struct hca_ta_op one[KINDS], run[KINDS];

	rig_by_turns(r);
	post_kinds(r, one);
	hca_tai_ctx(r->h)->run = HCA_TAI_RUN;
	post_kinds(r, run);
	for (unsigned int i = 0; i < KINDS; i++) {
		assert_int_equal(run[i].opcode, one[i].opcode);
		assert_int_equal(run[i].last_opcode, one[i].last_opcode);
		assert_int_equal(run[i].ta1, one[i].ta1);
		assert_int_equal(run[i].ta4, one[i].ta4);
		assert_int_equal(run[i].rc, one[i].rc);
	}
	assert_int_not_equal(run[0].ta1, run[1].ta1);
	assert_int_not_equal(run[0].ta4, run[1].ta4);
	assert_int_not_equal(run[1].ta4, run[2].ta4);
	assert_int_not_equal(run[3].rc, run[4].rc);
}

static uint32_t
take_ref(struct hca_record_pool *p)
{
	hca_record_pool_refill(p);
	assert_true(p->stack_n > 0);
	hca_record_set_stack(p, p->stack_n - 1);
	return p->stack[p->stack_n];
}

/* A plain Write whose record is of the pool of short ones. */
static void
post_short(struct tai_rig *r)
{
	const struct hca_ub_record *full = post_plain(r, 0);
	struct hca_qp_parser *p = &r->qp->parser;
	uint32_t *place = &p->window[(p->head - 1) & p->window_mask];
	struct hca_record_pool *pool = &r->h->records[HCA_WIRE_UB].full;
	uint32_t ref = take_ref(&r->h->records[HCA_WIRE_UB].small);

	*hca_ub_record(r->h, ref) = *full;
	pool->stack[pool->stack_n] = *place;
	hca_record_set_stack(pool, pool->stack_n + 1);
	*place = ref;
}

/* Records of both kinds return to their pools, also where the window wraps. */
static void
test_records_return(void **state)
{
	struct tai_rig *r = in_runs(state);
	uint32_t window = r->qp->tai.window_mask + 1, posted = 0;

	for (unsigned int round = 0; posted < 2 * window; round++) {
		uint16_t first = r->qp->tai.tassn;
		unsigned int n = 5;

		for (unsigned int i = 0; i < n; i++, posted++)
			if ((round + i) % 3 == 0)
				post(r, HCA_OP_RDMA_WRITE, 0);
			else
				post_short(r);
		assert_int_equal(begun(r), n);
		rig_release_all(r);
		rig_taack(r, 1, first, 0, n - 1);
		assert_int_equal(r->qp->sq_freed, posted);
		while (rig_cqe(r) != NULL)
			;
	}
	rig_check_quiet(r);
	hca_record_pool_refill(&r->h->records[HCA_WIRE_UB].small);
	assert_int_equal(hca_record_pool_in_use(&r->h->records[HCA_WIRE_UB].small), 0);
}

/* A run ends where its TP has room for no more; below, where there are no more operations. */
static void
test_room_in_a_run(void **state)
{
	struct tai_rig *r = in_runs(state);

	r->h->ub->tp[1].cfg.requests = 3;
	for (unsigned int i = 0; i < 5; i++)
		post_plain(r, 0);
	assert_int_equal(begun(r), 3);
	assert_int_equal(r->h->ub->tp[1].tai.open_out, 3);
}

static void
test_operations_in_a_run(void **state)
{
	struct tai_rig *r = in_runs(state);

	r->h->ub->pool[HCA_TP_REQUESTS].free_n = 2;
	for (unsigned int i = 0; i < 4; i++)
		post_plain(r, 0);
	assert_int_equal(begun(r), 2);
	assert_int_equal(r->h->ub->pool[HCA_TP_REQUESTS].free_n, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
		T(test_fence),
		T(test_strong),
		T(test_strong_of_many_segments),
		T(test_completion_order),
		T(test_closing_segment),
		T(test_completions_in_order),
		T(test_unsignaled),
		T(test_records_come_back),
		T(test_bad_record),
		T(test_order_in_a_run),
		T(test_headers_in_a_run),
		T(test_records_return),
		T(test_room_in_a_run),
		T(test_operations_in_a_run),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
