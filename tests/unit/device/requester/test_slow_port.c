/* SPDX-License-Identifier: BSD-3-Clause */

/* req_rx with a slow port: which ack timeouts count. */

#include "req_rig.h"

static void
post_write(struct rig *r)
{
	rig_post(r, HCA_OP_RDMA_WRITE, 8, HCA_REC_SIGNALED);
}

/* Frames wait for the port: the timeout of QPs that may have frames among them does not run. */
static void
test_frames_that_wait(void **state)
{
	struct rig *r = *state;
	struct hca_tx_wait *w = &r->h->tx_wait;
	uint64_t began = r->now;

	post_write(r);
	rig_send(r, 1);
	rig_pass(r, 0);
	w->since = began;
	for (unsigned int i = 0; i < 100; i++)
		rig_pass(r, RIG_TIMEOUT_NS);
	assert_int_equal(RIG_COUNTER(r, REQ_RX, local_ack_timeout_err), 0);
	/* it was sent only now: the answer gets the whole timeout */
	w->since = 0;
	w->left_at = r->now;
	w->waited = r->now - began;
	rig_pass(r, RIG_TIMEOUT_NS / 2);
	assert_int_equal(RIG_COUNTER(r, REQ_RX, local_ack_timeout_err), 0);
	for (unsigned int i = 0; i < 4; i++)
		rig_pass(r, RIG_TIMEOUT_NS);
	assert_int_not_equal(RIG_COUNTER(r, REQ_RX, local_ack_timeout_err), 0);
}

/* A loss is detected even if the port is always slow. */
static void
test_a_loss(void **state)
{
	struct rig *r = *state;
	struct hca_tx_wait *w = &r->h->tx_wait;

	post_write(r);
	rig_send(r, 1);
	rig_pass(r, 0);
	w->waited = 3 * RIG_TIMEOUT_NS;
	for (unsigned int i = 0; i < 200; i++) {
		w->since = r->now - 3 * RIG_TIMEOUT_NS;
		w->left_at = r->now;
		rig_pass(r, RIG_TIMEOUT_NS / 4);
	}
	assert_int_not_equal(RIG_COUNTER(r, REQ_RX, local_ack_timeout_err), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
		T(test_frames_that_wait),
		T(test_a_loss),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
