/* SPDX-License-Identifier: BSD-3-Clause */

/* The notification point: when CNPs are due, at most one of a QP in an interval. */

#include "ee_rig.h"

#define INTERVAL_US 50u
#define OTHER_QPI 2u

static int
setup(void **state)
{
	struct rig *r;

	if (rig_setup(state) != 0)
		return -1;
	r = *state;
	r->h->cfg.cnp_interval_us = INTERVAL_US;
	return 0;
}

/* One that only receives. */
static void
open_other(struct rig *r)
{
	r->h->qp[OTHER_QPI].cfg.state = HCA_QPS_RTS;
	r->h->qp[OTHER_QPI].cfg.generation = 7;
}

/* Decap tells of a mark. */
static void
mark(struct rig *r, uint32_t qpi)
{
	hca_msg_send(r->h, HCA_STAGE_DECAP, HCA_STAGE_EE, qpi, HCA_MSG_MARKED);
	rig_poll(r);
}

static void
expect_cnp(struct rig *r, unsigned int i, uint32_t qpi)
{
	const struct hca_txd *d = rig_response(r, i);

	assert_int_equal(d->opcode, HCA_BTH_CNP);
	assert_int_equal(d->qpi, qpi);
	assert_int_equal(d->psn, 0);
	assert_int_equal(d->len, 16);
	assert_int_equal(d->nsge, 0);
	assert_int_equal(d->generation, r->h->qp[qpi].cfg.generation);
}

static void
one_in_an_interval(void **state)
{
	struct rig *r = *state;

	mark(r, RIG_QPI);
	assert_int_equal(rig_responses(r), 1);
	expect_cnp(r, 0, RIG_QPI);
	rig_forget_responses(r);
	/* a poll takes 1 us */
	r->now += INTERVAL_US * 1000 - 1001;
	mark(r, RIG_QPI);
	assert_int_equal(rig_responses(r), 0);
	r->now -= 999;
	mark(r, RIG_QPI);
	assert_int_equal(rig_responses(r), 1);
	expect_cnp(r, 0, RIG_QPI);
	assert_int_equal(RIG_COUNTER(r, np_cnp_sent), 2);
	assert_int_equal(RIG_COUNTER(r, np_cnp_suppressed), 1);
}

/* A CNP leaves before the responses of the same poll, and each QP has its own interval. */
static void
beside_responses(void **state)
{
	struct rig *r = *state;
	struct rig_packet p = rig_read(100, 8, 64);

	open_other(r);
	hca_msg_send(r->h, HCA_STAGE_DECAP, HCA_STAGE_EE, OTHER_QPI, HCA_MSG_MARKED);
	hca_msg_send(r->h, HCA_STAGE_DECAP, HCA_STAGE_EE, RIG_QPI, HCA_MSG_MARKED);
	rig_burst(r, &p, 1);
	rig_poll(r);
	assert_int_equal(rig_responses(r), 3);
	expect_cnp(r, 0, OTHER_QPI);
	expect_cnp(r, 1, RIG_QPI);
	assert_int_equal(rig_response(r, 2)->opcode, HCA_BTH_RC_READ_RESP_ONLY);
}

/* Without a buffer it waits. */
static void
no_buffer(void **state)
{
	struct rig *r = *state;
	unsigned int n = rte_mempool_avail_count(r->h->resp_pool);
	void *kept[4096];

	assert_true(n <= RTE_DIM(kept));
	assert_int_equal(rte_mempool_get_bulk(r->h->resp_pool, kept, n), 0);
	mark(r, RIG_QPI);
	assert_int_equal(rig_responses(r), 0);
	assert_int_equal(RIG_COUNTER(r, resp_no_mbuf), 1);
	assert_int_equal(hca_ee_deadline(r->h, r->now), HCA_DEADLINE_ROOM);
	rte_mempool_put_bulk(r->h->resp_pool, kept, n);
	rig_poll(r);
	assert_int_equal(rig_responses(r), 1);
	expect_cnp(r, 0, RIG_QPI);
	assert_int_equal(hca_ee_deadline(r->h, r->now), UINT64_MAX);
}

/* A QP that ended sends none; the other ones keep their turn. */
static void
forgotten(void **state)
{
	struct rig *r = *state;
	unsigned int n = rte_mempool_avail_count(r->h->resp_pool);
	void *kept[4096];

	open_other(r);
	assert_int_equal(rte_mempool_get_bulk(r->h->resp_pool, kept, n), 0);
	mark(r, RIG_QPI);
	mark(r, OTHER_QPI);
	hca_msg_send(r->h, HCA_STAGE_CEU, HCA_STAGE_EE, RIG_QPI, HCA_MSG_PURGE);
	rig_poll(r);
	assert_int_equal(RIG_COUNTER(r, np_cnp_suppressed), 1);
	rte_mempool_put_bulk(r->h->resp_pool, kept, n);
	rig_poll(r);
	assert_int_equal(rig_responses(r), 1);
	expect_cnp(r, 0, OTHER_QPI);
	rig_forget_responses(r);
	/* a message from before the end */
	r->qp->cfg.state = HCA_QPS_RST;
	mark(r, RIG_QPI);
	rig_expect_silence(r);
	/* it failed after the mark */
	r->now += INTERVAL_US * 1000;
	assert_int_equal(rte_mempool_get_bulk(r->h->resp_pool, kept, n - 1), 0);
	mark(r, OTHER_QPI);
	r->h->qp[OTHER_QPI].cfg.state = HCA_QPS_ERR;
	rte_mempool_put_bulk(r->h->resp_pool, kept, n - 1);
	rig_poll(r);
	assert_int_equal(RIG_COUNTER(r, np_cnp_sent) + RIG_COUNTER(r, np_cnp_suppressed), 4);
	rig_forget_responses(r);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		T(one_in_an_interval),
		T(beside_responses),
		T(no_buffer),
		T(forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
