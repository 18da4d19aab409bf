/* SPDX-License-Identifier: BSD-3-Clause */

/* Requests over channels that the client of the Jetty has imported, and over others. */

#include "tai_rig.h"

/* Whether the client of the Jetty has imported the target of request n. */
static bool
is_there(struct tai_rig *r, uint32_t to, uint32_t n)
{
	const struct hca_ta_op *op;
	uint32_t tpi;

	rig_post(r, HCA_OP_SEND, 8)->to = to;
	rig_poll(r);
	op = rig_any(r, &tpi);
	if (op != NULL)
		rig_taack(r, tpi, op->tassn, 0, 0);
	rig_release_all(r);
	rig_expect(r, n, op != NULL ? 0 : HCA_UB_STATUS_ACK_TIMEOUT);
	return op != NULL;
}

/* Channels of others are not there: groups and TPs that the client has not imported. */
static void
test_not_imported(void **state)
{
	const uint32_t group = HCA_UB_MAKE_NUMBER(HCA_UB_TO_TPG, RIG_GROUP);
	const uint32_t member = HCA_UB_MAKE_NUMBER(HCA_UB_TO_TP, 0x1001);
	const uint32_t alone = HCA_UB_MAKE_NUMBER(HCA_UB_TO_TP, 0x1004);
	struct tai_rig *r = *state;
	struct hca_tpg *g = &r->h->ub->tpg[RIG_GROUP];
	struct hca_qp *others = rig_jetty(r, 5);

	r->qp->cfg.usr_page = 0x407;
	g->user[0x406 / 64] = ~(UINT64_C(1) << 7); /* all other clients of the word */
	others->cfg.usr_page = 0x406;
	assert_false(is_there(r, group, 0));
	assert_false(is_there(r, member, 1));
	assert_false(is_there(r, alone, 2));
	assert_int_equal(RIG_COUNTER(r, ub_not_imported), 3);
	rig_post_on(r, others, HCA_OP_SEND, 8);
	rig_poll(r);
	assert_int_equal(rig_skip(r), 1);
	rig_release_all(r);
	g->user[0x407 / 64] |= UINT64_C(1) << 7;
	assert_true(is_there(r, group, 3));
	assert_true(is_there(r, member, 4));
	assert_false(is_there(r, alone, 5)); /* it has no group */
	g->user[0x407 / 64] &= ~(UINT64_C(1) << 7);
	assert_false(is_there(r, group, 6));
	assert_int_equal(RIG_COUNTER(r, ub_not_imported), 5);
	/* a group that does not exist is not counted */
	g->count = 0;
	assert_false(is_there(r, group, 7));
	assert_int_equal(RIG_COUNTER(r, ub_not_imported), 5);
}

/* One that was not ready is not sent again when its client may not use the channel any more. */
static void
test_import_ends(void **state)
{
	struct tai_rig *r = *state;
	struct hca_tpg *g = &r->h->ub->tpg[RIG_GROUP];
	uint32_t tpi;

	r->qp->cfg.usr_page = 9;
	g->user[0] = 1u << 9;
	rig_post(r, HCA_OP_SEND, 8);
	rig_poll(r);
	assert_non_null(rig_any(r, &tpi));
	rig_taack(r, tpi, 0, HCA_UB_RSP_RNR, 0);
	rig_release_all(r);
	g->user[0] = 0;
	r->now += 1000000;
	hca_msg_send(r->h, HCA_STAGE_TIMER, HCA_STAGE_TAI, RIG_QPI, HCA_MSG_EXPIRED);
	rig_poll(r);
	rig_expect(r, 0, HCA_UB_STATUS_ACK_TIMEOUT);
	assert_int_equal(RIG_COUNTER(r, ub_not_imported), 1);
	rig_check_quiet(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
		T(test_not_imported),
		T(test_import_ends),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
