/* SPDX-License-Identifier: BSD-3-Clause */

/* wqe_parser: chains announced by marks, because their doorbell found the page full. */

#include "requester/doorbell.h"
#include "parser_rig.h"

#define QUEUE 16u

static void
look(struct fx *fx)
{
	const struct hca_qp *qp = &fx->h->qp[QPI];
	void *obj = hca_dbw_make(HCA_DB_MAKE(0, 0, HCA_DBW_LOOK, 0, 0), QPI, qp->cfg.generation);

	hca_parser_process(fx->h, &obj, 1, 0);
}

/* Post a WRITE as a chain of its own without a doorbell. */
static void
announce(struct fx *fx, uint32_t index)
{
	struct wqe w = write_wqe(index);
	uint8_t *flags;

	put(fx, index, &w);
	flags = slot(fx, index) + offsetof(struct hca_next_unit, flags);
	hca_put_le32(flags, hca_get_le32(flags) |
				    HCA_WQE_MAKE_ANNOUNCE(index / QUEUE, 0, HCA_OP_RDMA_WRITE,
							  w.len / HCA_WQE_UNIT));
}

static void
ring_write(struct fx *fx, uint32_t index)
{
	struct wqe w = write_wqe(index);

	put(fx, index, &w);
	ring(fx, index, HCA_OP_RDMA_WRITE, w.len);
}

static struct fx *
begin(void **state, uint32_t window)
{
	struct fx *fx = *state;

	fx_qp(fx, QPI, PAGE, 4, 6, window);
	return fx;
}

static void
expect_write(struct fx *fx, uint32_t index)
{
	assert_int_equal(rec(fx, index)->op, HCA_OP_RDMA_WRITE);
	assert_int_equal(rec(fx, index)->syndrome, 0);
	assert_int_equal(rec(fx, index)->wqe_index, index % QUEUE);
}

static void
test_found_at_its_mark(void **state)
{
	struct fx *fx = begin(state, 16);

	announce(fx, 0);
	announce(fx, 1);
	assert_int_equal(poll_parser(fx), 0);
	look(fx);
	assert_int_equal(poll_parser(fx), 2);
	expect_write(fx, 0);
	expect_write(fx, 1);
	look(fx);
	assert_int_equal(poll_parser(fx), 0);
	assert_int_equal(FX_COUNTER(fx, PARSER, db_read_on), 2);
}

/* The first doorbell is in a slot after one that has not been filled yet. */
static void
test_mark_overtakes_a_doorbell(void **state)
{
	struct fx *fx = begin(state, 16);

	announce(fx, 1);
	look(fx);
	assert_int_equal(poll_parser(fx), 0);
	ring_write(fx, 0);
	assert_int_equal(poll_parser(fx), 2);
	expect_write(fx, 1);
}

/* The FIFO has room again before the mark is read. */
static void
test_doorbell_overtakes_a_mark(void **state)
{
	struct fx *fx = begin(state, 16);

	ring_write(fx, 0);
	announce(fx, 1);
	announce(fx, 2);
	ring_write(fx, 3);
	assert_int_equal(poll_parser(fx), 4);
	look(fx);
	assert_int_equal(poll_parser(fx), 0);
	ring_write(fx, 4);
	assert_int_equal(poll_parser(fx), 1);
	for (uint32_t i = 0; i < 5; i++)
		expect_write(fx, i);
	assert_int_equal(fx->events, 0);
}

/* Links of an earlier round of the queue are not followed. */
static void
test_rounds(void **state)
{
	struct fx *fx = begin(state, 16);
	uint32_t index = 0;

	for (uint32_t i = 0; i < 5 * QUEUE; i++, index++) {
		if (i % 3 == 0)
			ring_write(fx, index);
		else
			announce(fx, index);
		look(fx);
		assert_int_equal(poll_parser(fx), 1);
		expect_write(fx, index);
		complete(fx, QPI, 1);
		look(fx);
		poll_parser(fx);
		assert_int_equal(fx->h->qp[QPI].parser.head, index + 1);
	}
	assert_int_equal(fx->events, 0);
}

/* Only as many WQEs as fit the window are parsed; the rest when there is room. */
static void
test_window(void **state)
{
	struct fx *fx = begin(state, 4);

	for (uint32_t i = 0; i < 8; i++)
		announce(fx, i);
	look(fx);
	assert_int_equal(poll_parser(fx), 4);
	assert_int_equal(poll_parser(fx), 0);
	complete(fx, QPI, 4);
	poll_parser(fx);
	assert_int_equal(fx->h->qp[QPI].parser.head, 8);
	expect_write(fx, 7);
}

static void
test_flushed_in_error(void **state)
{
	struct fx *fx = begin(state, 16);

	announce(fx, 0);
	fx->h->qp[QPI].cfg.state = HCA_QPS_ERR;
	look(fx);
	assert_int_equal(poll_parser(fx), 1);
	assert_int_equal(rec(fx, 0)->syndrome, HCA_SYND_WR_FLUSH);
}

/* A doorbell for a later position than the queue's, without marks for the gap, is fatal. */
static void
test_gap_is_catas(void **state)
{
	struct fx *fx = begin(state, 16);

	look(fx);
	announce(fx, 2);
	ring_write(fx, 1);
	assert_int_equal(poll_parser(fx), 0);
	assert_int_equal(fx->events, 1);
	assert_int_equal(fx->event[0].type, HCA_EVENT_WQ_CATAS);
	look(fx);
	assert_int_equal(poll_parser(fx), 0);
}

static void
test_nonsense_is_a_bad_wqe(void **state)
{
	struct fx *fx = begin(state, 16);
	uint8_t *flags = slot(fx, 0) + offsetof(struct hca_next_unit, flags);

	hca_put_le32(flags, HCA_WQE_MAKE_ANNOUNCE(0, 1, 0x1f, 63));
	look(fx);
	assert_int_equal(poll_parser(fx), 1);
	assert_int_equal(rec(fx, 0)->syndrome, HCA_SYND_LOCAL_QP_OP);
	assert_int_equal(fx->events, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, parser_setup, parser_teardown)
		T(test_found_at_its_mark),
		T(test_mark_overtakes_a_doorbell),
		T(test_doorbell_overtakes_a_mark),
		T(test_rounds),
		T(test_window),
		T(test_flushed_in_error),
		T(test_gap_is_catas),
		T(test_nonsense_is_a_bad_wqe),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
