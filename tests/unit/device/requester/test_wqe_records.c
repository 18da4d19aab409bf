/* SPDX-License-Identifier: BSD-3-Clause */

/* wqe_parser: the window, records and their reservation, states and purge. */

#include "parser_rig.h"

/* ---- window, quota, records ---- */

static void
test_window_parks_until_freed(void **state)
{
	struct fx *fx = *state;

	fx_qp(fx, QPI, PAGE, 6, 6, 8);
	post_chain(fx, 0, 20);
	assert_int_equal(poll_parser(fx), 8);
	assert_int_equal(poll_parser(fx), 0);
	assert_int_equal(FX_COUNTER(fx, PARSER, sq_parked_window), 1);
	complete(fx, QPI, 3);
	assert_int_equal(poll_parser(fx), 4);
	complete(fx, QPI, 8);
	assert_int_equal(poll_parser(fx), 9);
	complete(fx, QPI, 8);
	poll_parser(fx);
	assert_int_equal(fx->h->qp[QPI].parser.head, 20);
	complete(fx, QPI, 1);
	poll_parser(fx);
	assert_int_equal(hca_record_pool_in_use(&fx->h->records[HCA_WIRE_ROCE].small), 0);
}

static void
test_round_robin(void **state)
{
	struct fx *fx = *state;

	fx_qp(fx, 1, PAGE, 6, 6, 64);
	fx_qp(fx, 2, PAGE, 6, 6, 64);
	post_chain_qp(fx, 1, 0, 40);
	post_chain_qp(fx, 2, 0, 3);
	assert_int_equal(poll_parser(fx), 32);
	assert_int_equal(fx->h->qp[1].parser.head, 32);
	assert_int_equal(poll_parser(fx), 11);
	assert_int_equal(fx->h->qp[2].parser.head, 3);
	assert_int_equal(hca_parser_poll(fx->h, 0, 1), 0);
}

static void
test_small_budget(void **state)
{
	struct fx *fx = *state;

	fx_qp(fx, QPI, PAGE, 6, 6, 64);
	post_chain(fx, 0, 5);
	for (uint32_t i = 1; i <= 5; i++) {
		assert_int_equal(hca_parser_poll(fx->h, 0, 1), 1);
		assert_int_equal(fx->h->qp[QPI].parser.head, i);
	}
	assert_int_equal(hca_parser_poll(fx->h, 0, 1), 0);
}

static int
setup_8_records(void **state)
{
	static const struct fx_config cfg = {.records = 8, .full_records = 8};
	struct fx *fx = fx_create(&cfg);

	assert_int_equal(hca_parser_init(fx->h), 0);
	*state = fx;
	return 0;
}

static void
test_two_records_are_reserved(void **state)
{
	struct fx *fx = *state;

	for (uint32_t i = 1; i <= 4; i++)
		fx_qp(fx, i, PAGE, 4, 6, 16);
	assert_int_equal(hca_record_reserve_qp(fx->h, HCA_ST_RC, PAGE, 1), -ENOMEM);
	post_chain_qp(fx, 1, 0, 16);
	poll_parser(fx);
	assert_int_equal(fx->h->qp[1].parser.head, 2); /* no shared records */
	for (uint32_t i = 2; i <= 4; i++) {
		post_chain_qp(fx, i, 0, 5);
		poll_parser(fx);
		assert_int_equal(fx->h->qp[i].parser.head, 2);
	}
	assert_int_equal(FX_COUNTER(fx, PARSER, sq_parked_record), 4);
	/* each QP continues with its own */
	complete(fx, 3, 1);
	poll_parser(fx);
	assert_int_equal(fx->h->qp[3].parser.head, 3);
	assert_int_equal(fx->h->qp[1].parser.head, 2);
}

static void
test_shared_go_in_turn(void **state)
{
	struct fx *fx = *state;

	for (uint32_t i = 1; i <= 3; i++)
		fx_qp(fx, i, PAGE, 4, 6, 16);
	post_chain_qp(fx, 1, 0, 16);
	poll_parser(fx);
	assert_int_equal(fx->h->qp[1].parser.head, 4); /* 2 shared */
	post_chain_qp(fx, 2, 0, 16);
	post_chain_qp(fx, 3, 0, 16);
	poll_parser(fx);
	assert_int_equal(fx->h->qp[2].parser.head, 2);
	assert_int_equal(fx->h->qp[3].parser.head, 2);
	/* QP 1 has waited longer: it gets the freed records, then QP 2 */
	complete(fx, 1, 1);
	poll_parser(fx);
	assert_int_equal(fx->h->qp[1].parser.head, 5);
	complete(fx, 1, 1);
	poll_parser(fx);
	assert_int_equal(fx->h->qp[1].parser.head, 5);
	assert_int_equal(fx->h->qp[2].parser.head, 3);
}

static int
setup_64_records(void **state)
{
	static const struct fx_config cfg = {.records = 64, .full_records = 8};
	struct fx *fx = fx_create(&cfg);

	assert_int_equal(hca_parser_init(fx->h), 0);
	*state = fx;
	return 0;
}

static uint32_t
heads(const struct fx *fx, uint32_t first, uint32_t last)
{
	uint32_t sum = 0;

	for (uint32_t i = first; i <= last; i++)
		sum += fx->h->qp[i].parser.head;
	return sum;
}

static void
poll_often(struct fx *fx)
{
	for (unsigned int i = 0; i < 16; i++)
		poll_parser(fx);
}

/* QPs 1 and 2 take all they can and free nothing; QP 3, of another owner, still makes progress. */
static void
test_owners_share(void **state)
{
	struct fx *fx = *state;

	fx_qp(fx, 1, PAGE, 6, 6, 64);
	fx_qp(fx, 2, PAGE, 6, 6, 64);
	fx_qp(fx, 3, PAGE + 1, 6, 6, 64);
	post_chain_qp(fx, 1, 0, 60);
	post_chain_qp(fx, 2, 0, 60);
	poll_often(fx);
	assert_int_equal(heads(fx, 1, 2), 4 + 29); /* half of 58 shared records */
	for (uint32_t round = 0; round < 6; round++) {
		post_chain_qp(fx, 3, round * 10 % 64, 10);
		poll_often(fx);
		assert_int_equal(heads(fx, 3, 3), (round + 1) * 10);
		complete(fx, 3, 10);
		poll_often(fx);
	}
	/* a quarter at once; the rest is reserved for a third owner */
	post_chain_qp(fx, 3, 60, 40);
	poll_often(fx);
	assert_int_equal(heads(fx, 3, 3), 60 + 2 + 15);
	assert_int_equal(heads(fx, 1, 2), 33);
	fx_qp(fx, 4, PAGE + 2, 6, 6, 64);
	post_chain_qp(fx, 4, 0, 40);
	poll_often(fx);
	assert_int_equal(heads(fx, 4, 4), 2 + 6);
	/* freed records go first to owners below their share */
	complete(fx, 1, 12);
	poll_often(fx);
	assert_true(heads(fx, 3, 3) > 77 && heads(fx, 4, 4) > 8);
	assert_true(heads(fx, 1, 2) <= 33 + 12);
}

/* A single owner leaves an eighth for the next one. */
static void
test_owner_alone(void **state)
{
	struct fx *fx = *state;

	fx_qp(fx, 1, PAGE, 6, 6, 64);
	post_chain_qp(fx, 1, 0, 64);
	poll_often(fx);
	assert_int_equal(heads(fx, 1, 1), 2 + 62 - 62 / 8);
	fx_qp(fx, 2, PAGE + 1, 6, 6, 64);
	post_chain_qp(fx, 2, 0, 64);
	poll_often(fx);
	assert_true(heads(fx, 2, 2) >= 2 + 2);
}

static void
test_everything_gets_done(void **state)
{
	struct fx *fx = *state;
	uint32_t posted[4] = {0};

	for (uint32_t i = 0; i < 4; i++)
		fx_qp(fx, i + 1, PAGE, 4, 6, 16);
	for (int round = 0; round < 2000; round++) {
		uint32_t i = (uint32_t)(round * 7 / 3) % 4;
		struct hca_qp *qp = &fx->h->qp[i + 1];

		if (posted[i] - qp->sq_freed <= 11) {
			post_chain_qp(fx, i + 1, posted[i], 5);
			posted[i] += 5;
		}
		poll_parser(fx);
		qp = &fx->h->qp[(i + 1) % 4 + 1];
		complete(fx, (i + 1) % 4 + 1, RTE_MIN(qp->parser.head - qp->sq_freed, 2u));
	}
	for (int round = 0; round < 200; round++)
		for (uint32_t i = 1; i <= 4; i++) {
			complete(fx, i, fx->h->qp[i].parser.head - fx->h->qp[i].sq_freed);
			poll_parser(fx);
		}
	for (uint32_t i = 0; i < 4; i++) {
		assert_true(posted[i] > 100);
		assert_int_equal(fx->h->qp[i + 1].sq_freed, posted[i]);
		assert_int_equal(fx->h->qp[i + 1].parser.held[0], 0);
	}
	assert_int_equal(fx->h->records[HCA_WIRE_ROCE].small.shared_used, 0);
	assert_int_equal(hca_record_pool_in_use(&fx->h->records[HCA_WIRE_ROCE].small), 0);
	assert_int_equal(fx->events, 0);
}

/* ---- states ---- */

static void
test_sqd_waits(void **state)
{
	struct fx *fx = *state;
	struct hca_qp *qp = fx_qp(fx, QPI, PAGE, 4, 6, 16);

	qp->cfg.state = HCA_QPS_SQD;
	post_chain(fx, 0, 3);
	assert_int_equal(poll_parser(fx), 0);
	assert_int_equal(poll_parser(fx), 0);
	qp->cfg.state = HCA_QPS_RTS;
	hca_msg_send(fx->h, HCA_STAGE_CEU, HCA_STAGE_PARSER, QPI, HCA_MSG_STATE);
	assert_int_equal(poll_parser(fx), 4);
	assert_int_equal(qp->parser.head, 3);
}

static void
test_err_flushes(void **state)
{
	struct fx *fx = *state;
	struct hca_qp *qp = fx_qp(fx, QPI, PAGE, 4, 6, 4);
	struct wqe w = wqe_new(0, 0);

	add_raddr(&w, 0, 0);
	post_chain(fx, 0, 6);
	assert_int_equal(poll_parser(fx), 4);
	qp->cfg.state = HCA_QPS_ERR;
	hca_msg_send(fx->h, HCA_STAGE_REQ_RX, HCA_STAGE_PARSER, QPI, HCA_MSG_STATE);
	poll_parser(fx);
	complete(fx, QPI, 4);
	put(fx, 6, &w);
	ring(fx, 6, HCA_OP_RDMA_READ, 32);
	poll_parser(fx);
	assert_int_equal(qp->parser.head, 7);
	for (uint32_t i = 4; i < 7; i++) {
		assert_int_equal(rec(fx, i)->syndrome, HCA_SYND_WR_FLUSH);
		assert_int_equal(rec(fx, i)->wqe_index, i);
		assert_int_equal(rec(fx, i)->flags & ~HCA_REC_SIGNALED, 0);
	}
	assert_int_equal(rec(fx, 5)->flags, HCA_REC_SIGNALED);
	assert_int_equal(rec(fx, 6)->flags, 0);
	assert_int_equal(FX_COUNTER(fx, PARSER, sq_bad_wqe), 0);
}

static void
test_rst_drops(void **state)
{
	struct fx *fx = *state;
	struct hca_qp *qp = fx_qp(fx, QPI, PAGE, 4, 6, 16);

	post_chain(fx, 0, 6);
	qp->cfg.state = HCA_QPS_RST;
	assert_int_equal(poll_parser(fx), 0);
	qp->cfg.state = HCA_QPS_RTS;
	assert_int_equal(poll_parser(fx), 0);
	assert_int_equal(qp->parser.head, 0);
}

/* Purge an entry of each list, before and after others. */
static void
test_purge(void **state)
{
	struct fx *fx = *state;

	for (uint32_t gone = 1; gone <= 4; gone++) {
		for (uint32_t i = 1; i <= 4; i++) {
			struct hca_qp *qp = &fx->h->qp[i];

			if (qp->parser.chain == NULL)
				fx_qp(fx, i, PAGE, 4, 6, 16);
			post_chain_qp(fx, i, qp->parser.sq_index, 4);
		}
		if (gone & 1)
			poll_parser(fx); /* all wait for records */
		fx->h->qp[gone].cfg.state = HCA_QPS_RST;
		fx->h->purge_seq = gone;
		hca_msg_send(fx->h, HCA_STAGE_CEU, HCA_STAGE_PARSER, gone, HCA_MSG_PURGE);
		poll_parser(fx);
		assert_int_equal(fx->h->line[HCA_STAGE_PARSER].purge_ack, gone);
		assert_int_equal(fx->h->qp[gone].parser.held[0], 0);
		assert_int_equal(fx->h->qp[gone].parser.flags, 0);
		complete(fx, gone, fx->h->qp[gone].parser.head - fx->h->qp[gone].sq_freed);
		/* the others finish */
		for (int round = 0; round < 30; round++)
			for (uint32_t i = 1; i <= 4; i++) {
				if (i == gone)
					continue;
				complete(fx, i, fx->h->qp[i].parser.head - fx->h->qp[i].sq_freed);
				poll_parser(fx);
			}
		for (uint32_t i = 1; i <= 4; i++)
			assert_false(fx->h->qp[i].parser.in_chain);
		assert_int_equal(fx->h->records[HCA_WIRE_ROCE].small.shared_used, 0);
		assert_int_equal(hca_record_pool_in_use(&fx->h->records[HCA_WIRE_ROCE].small), 0);
		/* reset the QP as the CEU does */
		fx->h->qp[gone].parser.freed_seen = fx->h->qp[gone].sq_freed;
		fx->h->qp[gone].cfg.state = HCA_QPS_RTS;
	}
}

/* Records of a purged QP are freed without a FREED message: waiting QPs still get them. */
static void
test_purged_records_wake_others(void **state)
{
	struct fx *fx = *state;
	struct hca_qp *a, *b;

	a = fx_qp(fx, 1, PAGE, 4, 6, 16);
	post_chain_qp(fx, 1, 0, 8);
	poll_parser(fx);
	assert_int_equal(a->parser.head, 8); /* all records */
	b = fx_qp(fx, 2, PAGE, 4, 6, 16);
	post_chain_qp(fx, 2, 0, 8);
	poll_parser(fx);
	assert_int_equal(b->parser.head, 0);
	a->cfg.state = HCA_QPS_RST;
	hca_msg_send(fx->h, HCA_STAGE_CEU, HCA_STAGE_PARSER, 1, HCA_MSG_PURGE);
	poll_parser(fx);
	for (uint32_t i = 0; i < 8; i++)
		rte_ring_sp_enqueue_elem(fx->h->records[HCA_WIRE_ROCE].small.free,
					 &a->parser.window[i], 4);
	assert_int_equal(hca_record_reserve_qp(fx->h, HCA_ST_RC, PAGE, -1), 0);
	poll_parser(fx);
	assert_int_equal(b->parser.head, 8);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, parser_setup, parser_teardown)
#define T64(f) cmocka_unit_test_setup_teardown(f, setup_64_records, parser_teardown)
#define T8(f) cmocka_unit_test_setup_teardown(f, setup_8_records, parser_teardown)
		T(test_window_parks_until_freed),
		T(test_round_robin),
		T(test_small_budget),
		T8(test_two_records_are_reserved),
		T8(test_shared_go_in_turn),
		T64(test_owners_share),
		T64(test_owner_alone),
		T8(test_everything_gets_done),
		T(test_sqd_waits),
		T(test_err_flushes),
		T(test_rst_drops),
		T8(test_purge),
		T8(test_purged_records_wake_others),
#undef T
#undef T64
#undef T8
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
