/* SPDX-License-Identifier: BSD-3-Clause */

/* BIND_MW and LOCAL_INV in the requester: executed once and in order, completed in order. */

#include "req_rig.h"

#include <string.h>

#include <rte_rcu_qsbr.h>

#include "requester/record_pool.h"
#include "vtp/window.h"

#define WRITE HCA_OP_RDMA_WRITE
#define SIG HCA_REC_SIGNALED
#define ACK (HCA_AETH_ACK | HCA_AETH_CREDITS_NONE)
#define WINDOW 3u /* MPT index */
#define KEY(tag) HCA_KEY_MAKE(0x11, WINDOW, tag)

static struct rte_rcu_qsbr *rcu;

static int
setup(void **state)
{
	struct hca_mpt_entry *e;
	struct rig *r;

	if (rig_setup(state) != 0)
		return -1;
	r = *state;
	r->h->single_worker = true;
	r->h->vtp.mpt[HCA_KEY_INDEX(RIG_KEY)].flags |= HCA_ACCESS_MW_BIND;
	r->h->vtp.domain[WINDOW] = HCA_PD_DOMAIN(RIG_PD);
	e = &r->h->vtp.mpt[WINDOW];
	memset(e, 0, sizeof(*e));
	e->key = KEY(1);
	e->pd = RIG_PD;
	e->flags = HCA_MPT_FLAG_WINDOW2;
	e->state = HCA_MPT_UNBOUND;
	return 0;
}

/* As with several workers: one of them reports its quiescent state when the test says so. */
static void
several_workers(struct rig *r)
{
	size_t n = RTE_ALIGN_CEIL(rte_rcu_qsbr_get_memsize(1), RTE_CACHE_LINE_SIZE);

	r->h->single_worker = false;
	rcu = aligned_alloc(RTE_CACHE_LINE_SIZE, n);
	assert_non_null(rcu);
	assert_int_equal(rte_rcu_qsbr_init(rcu, 1), 0);
	rte_rcu_qsbr_thread_register(rcu, 0);
	rte_rcu_qsbr_thread_online(rcu, 0);
	r->h->rcu = rcu;
}

static int
teardown(void **state)
{
	free(rcu);
	rcu = NULL;
	return rig_teardown(state);
}

static uint32_t
state_of(const struct rig *r)
{
	return r->h->vtp.mpt[WINDOW].state;
}

static struct hca_record_full *
post_bind(struct rig *r, uint32_t tag, uint8_t flags)
{
	struct hca_record_full *f =
		rig_post_full(r, HCA_OP_BIND_MW, 0, (uint8_t)(HCA_REC_LOCAL | flags), 1);

	f->r.nsge = 0;
	f->body.bind = (struct hca_bind){
		.access = HCA_ACCESS_REMOTE_WRITE,
		.old_key = KEY(1),
		.new_key = KEY(tag),
		.lkey = RIG_KEY,
		.addr = RIG_VA + 100,
		.length = 1000,
	};
	return f;
}

static struct hca_record *
post_inv(struct rig *r, uint32_t key, uint8_t flags)
{
	struct hca_record *rec = rig_post(r, HCA_OP_LOCAL_INV, 0, (uint8_t)(HCA_REC_LOCAL | flags));

	rec->nsge = 0;
	rec->rkey = key;
	return rec;
}

static void
run(struct rig *r)
{
	for (unsigned int i = 0; i < 4; i++) {
		rig_send(r, 1);
		rig_pass(r, 0);
	}
}

static void
expect_empty(struct rig *r)
{
	run(r);
	assert_int_equal(r->qp->sq_freed, r->qp->parser.head);
	assert_int_equal(hca_record_pool_in_use(&r->h->records[HCA_WIRE_ROCE].small), 0);
	assert_int_equal(hca_record_pool_in_use(&r->h->records[HCA_WIRE_ROCE].full), 0);
}

/* With no packets outstanding no acknowledgement is needed. */
static void
alone(void **state)
{
	struct rig *r = *state;

	post_bind(r, 2, SIG);
	run(r);
	assert_int_equal(state_of(r), HCA_MPT_BOUND);
	assert_int_equal(rig_cqes(r), 1);
	rig_expect_ok(r, 0, 0, HCA_OP_BIND_MW, 0);
	post_inv(r, KEY(2), 0);
	post_bind(r, 3, SIG);
	post_inv(r, KEY(3), SIG);
	run(r);
	assert_int_equal(state_of(r), HCA_MPT_UNBOUND);
	assert_int_equal(r->h->vtp.mpt[HCA_KEY_INDEX(RIG_KEY)].windows, 0);
	assert_int_equal(rig_cqes(r), 3);
	rig_expect_ok(r, 1, 2, HCA_OP_BIND_MW, 0);
	rig_expect_ok(r, 2, 3, HCA_OP_LOCAL_INV, 0);
	assert_int_equal(RIG_COUNTER(r, REQ_TX, req_local_ops), 4);
	assert_int_equal(rig_una(r), rig_psn(0));
	expect_empty(r);
}

/* An RNR NAK for the WRITE after one says that the peer's memory is late: it does not count. */
static void
before_rnr_nak(void **state)
{
	struct rig *r = *state;

	r->qp->cfg.rnr_retry = 0;
	rig_post(r, WRITE, 8, SIG);
	post_bind(r, 2, SIG);
	rig_post(r, WRITE, 8, SIG);
	assert_int_equal(rig_send(r, 3), 2);
	rig_ack(r, rig_psn(1), HCA_RNR_SYNDROME(1));
	rig_pass(r, 0);
	assert_int_equal(rig_state(r), HCA_QPS_RTS);
	assert_int_equal(rig_cqes(r), 2);
	rig_expect_ok(r, 1, 1, HCA_OP_BIND_MW, 0);
	rig_pass(r, 30000);
	assert_int_equal(rig_send(r, 2), 1);
	rig_ack(r, rig_psn(1), ACK);
	run(r);
	assert_int_equal(rig_cqes(r), 3);
	expect_empty(r);
}

/*
 * Between messages: they have no PSN, and complete after those before them, whatever acknowledges
 * these.
 */
static void
in_order(void **state)
{
	struct rig *r = *state;

	rig_post(r, WRITE, 8, SIG);
	post_bind(r, 2, SIG);
	rig_post(r, WRITE, 8, SIG);
	post_inv(r, KEY(2), SIG);
	post_bind(r, 3, 0);
	assert_int_equal(rig_send(r, 3), 2);
	assert_int_equal(r->txd[0].psn, rig_psn(0));
	assert_int_equal(r->txd[1].psn, rig_psn(1));
	run(r);
	assert_int_equal(rig_cqes(r), 0);
	rig_ack(r, rig_psn(0), ACK);
	run(r);
	assert_int_equal(rig_cqes(r), 2);
	rig_expect_ok(r, 1, 1, HCA_OP_BIND_MW, 0);
	rig_ack(r, rig_psn(1), ACK);
	run(r);
	assert_int_equal(rig_cqes(r), 4);
	rig_expect_ok(r, 3, 3, HCA_OP_LOCAL_INV, 0);
	assert_int_equal(rig_tail(r), 5);
	expect_empty(r);
}

/* A READ after local operations: its response is assigned correctly. */
static void
before_a_read(void **state)
{
	struct rig *r = *state;

	rig_post(r, WRITE, 8, 0);
	post_bind(r, 2, SIG);
	rig_post(r, HCA_OP_RDMA_READ, 8, SIG | HCA_REC_RD);
	rig_send(r, 2);
	rig_response(r, HCA_BTH_RC_READ_RESP_ONLY, rig_psn(1), 8, 0x11);
	run(r);
	assert_int_equal(rig_cqes(r), 2);
	rig_expect_ok(r, 0, 1, HCA_OP_BIND_MW, 0);
	rig_expect_ok(r, 1, 2, HCA_OP_RDMA_READ, 8);
	expect_empty(r);
}

/* Packets are retransmitted, operations are not repeated. */
static void
once(void **state)
{
	struct rig *r = *state;

	rig_post(r, WRITE, 8, SIG);
	post_bind(r, 2, SIG);
	rig_post(r, WRITE, 8, SIG);
	rig_send(r, 2);
	for (unsigned int i = 0; i < 3; i++) {
		rig_ack(r, rig_psn(0), HCA_NAK_SYNDROME(HCA_NAK_PSN_SEQ));
		assert_int_equal(rig_send(r, 3), 2);
		assert_int_equal(r->txd[0].psn, rig_psn(0));
		assert_int_equal(r->txd[1].psn, rig_psn(1));
	}
	assert_int_equal(RIG_COUNTER(r, REQ_TX, req_local_ops), 1);
	assert_int_equal(r->h->vtp.mpt[HCA_KEY_INDEX(RIG_KEY)].windows, 1);
	rig_ack(r, rig_psn(1), ACK);
	run(r);
	assert_int_equal(rig_cqes(r), 3);
	expect_empty(r);
}

/* A failure after an operation at the tail does not affect the operation. */
static void
failure_behind(void **state)
{
	struct rig *r = *state;

	post_bind(r, 2, SIG);
	rig_post(r, WRITE, 8, SIG);
	rig_post(r, WRITE, 8, SIG);
	rig_send(r, 2);
	rig_ack(r, rig_psn(0), HCA_NAK_SYNDROME(HCA_NAK_REMOTE_ACCESS));
	run(r);
	assert_int_equal(rig_state(r), HCA_QPS_ERR);
	assert_int_equal(rig_cqes(r), 3);
	rig_expect_ok(r, 0, 0, HCA_OP_BIND_MW, 0);
	rig_expect_error(r, 1, 1, HCA_SYND_REMOTE_ACCESS);
	rig_expect_error(r, 2, 2, HCA_SYND_WR_FLUSH);
	expect_empty(r);
}

static void
bad_bind_in_its_turn(void **state)
{
	struct rig *r = *state;

	rig_post(r, WRITE, 8, SIG);
	post_bind(r, 2, SIG)->body.bind.length = RIG_LEN;
	rig_post(r, WRITE, 8, SIG);
	assert_int_equal(rig_send(r, 3), 1);
	rig_pass(r, 0);
	assert_int_equal(rig_state(r), HCA_QPS_RTS);
	rig_ack(r, rig_psn(0), ACK);
	run(r);
	assert_int_equal(rig_state(r), HCA_QPS_ERR);
	assert_int_equal(rig_cqes(r), 3);
	rig_expect_ok(r, 0, 0, WRITE, 8);
	rig_expect_error(r, 1, 1, HCA_SYND_MW_BIND);
	rig_expect_error(r, 2, 2, HCA_SYND_WR_FLUSH);
	assert_int_equal(state_of(r), HCA_MPT_UNBOUND);
	assert_int_equal(RIG_COUNTER(r, REQ_TX, req_bind_error), 1);
	expect_empty(r);
}

/* Keys that are not type 2 windows bound to the QP. */
static void
bad_invalidates(void **state)
{
	static const uint32_t keys[] = {RIG_KEY, 0, KEY(1), KEY(2) ^ 0x80000000, UINT32_MAX};

	for (unsigned int i = 0; i < RTE_DIM(keys); i++) {
		struct rig *r;

		assert_int_equal(setup(state), 0);
		r = *state;
		post_inv(r, keys[i], 0);
		run(r);
		assert_int_equal(rig_state(r), HCA_QPS_ERR);
		rig_expect_error(r, 0, 0, HCA_SYND_MW_BIND);
		assert_int_equal(r->h->vtp.mpt[HCA_KEY_INDEX(RIG_KEY)].state, HCA_MPT_VALID);
		expect_empty(r);
		assert_int_equal(teardown(state), 0);
	}
}

static void
fence(void **state)
{
	struct rig *r = *state;

	post_bind(r, 2, SIG);
	rig_post(r, HCA_OP_RDMA_READ, 8, SIG | HCA_REC_RD);
	post_inv(r, KEY(2), SIG | HCA_REC_FENCE)->rd_ord = 1;
	rig_send(r, 2);
	run(r);
	assert_int_equal(state_of(r), HCA_MPT_BOUND);
	rig_response(r, HCA_BTH_RC_READ_RESP_ONLY, rig_psn(0), 8, 1);
	run(r);
	assert_int_equal(state_of(r), HCA_MPT_UNBOUND);
	assert_int_equal(rig_cqes(r), 3);
	rig_expect_ok(r, 2, 2, HCA_OP_LOCAL_INV, 0);
	expect_empty(r);
}

/*
 * With readers on other workers: nothing completes and nothing later is sent until they have
 * reported.
 */
static void
waits_for_round(void **state)
{
	struct rig *r = *state;

	several_workers(r);
	post_bind(r, 2, SIG);
	rig_post(r, WRITE, 8, SIG);
	assert_int_equal(rig_send(r, 3), 0);
	run(r);
	assert_int_equal(state_of(r), HCA_MPT_BUSY);
	assert_int_equal(rig_cqes(r), 0);
	assert_true(hca_req_tx_poll(r->h, r->now, 32) != 0);
	rte_rcu_qsbr_quiescent(rcu, 0);
	assert_int_equal(rig_send(r, 2), 1);
	assert_int_equal(state_of(r), HCA_MPT_BOUND);
	rig_ack(r, rig_psn(0), ACK);
	run(r);
	assert_int_equal(rig_cqes(r), 2);
	post_inv(r, KEY(2), SIG);
	run(r);
	assert_int_equal(state_of(r), HCA_MPT_BUSY);
	assert_int_equal(rig_cqes(r), 2);
	rte_rcu_qsbr_quiescent(rcu, 0);
	run(r);
	assert_int_equal(state_of(r), HCA_MPT_UNBOUND);
	assert_int_equal(rig_cqes(r), 3);
	expect_empty(r);
}

/* A rewind during an operation: it is neither lost nor started again. */
static void
rewound_while_waiting(void **state)
{
	struct rig *r = *state;

	several_workers(r);
	rig_post(r, WRITE, 8, SIG);
	post_bind(r, 2, SIG);
	rig_post(r, WRITE, 8, SIG);
	assert_int_equal(rig_send(r, 3), 1);
	rig_ack(r, rig_psn(0), HCA_NAK_SYNDROME(HCA_NAK_PSN_SEQ));
	assert_int_equal(rig_send(r, 3), 1);
	assert_int_equal(r->txd[0].psn, rig_psn(0));
	rte_rcu_qsbr_quiescent(rcu, 0);
	assert_int_equal(rig_send(r, 3), 1);
	assert_int_equal(r->txd[0].psn, rig_psn(1));
	assert_int_equal(RIG_COUNTER(r, REQ_TX, req_local_ops), 1);
	rig_ack(r, rig_psn(1), ACK);
	run(r);
	assert_int_equal(rig_cqes(r), 3);
	expect_empty(r);
}

/* The QP goes to ERR meanwhile: the request is flushed, and the window can be bound by others. */
static void
given_up(void **state)
{
	struct rig *r = *state;

	several_workers(r);
	rig_post(r, WRITE, 8, SIG);
	post_bind(r, 2, SIG);
	rig_send(r, 3);
	assert_int_equal(state_of(r), HCA_MPT_BUSY);
	rig_ack(r, rig_psn(0), HCA_NAK_SYNDROME(HCA_NAK_REMOTE_ACCESS));
	run(r);
	assert_int_equal(rig_state(r), HCA_QPS_ERR);
	rig_expect_error(r, 0, 0, HCA_SYND_REMOTE_ACCESS);
	rig_expect_error(r, 1, 1, HCA_SYND_WR_FLUSH);
	assert_int_equal(state_of(r), HCA_MPT_UNBOUND);
	assert_int_equal(r->h->vtp.mpt[HCA_KEY_INDEX(RIG_KEY)].windows, 0);
	rte_rcu_qsbr_quiescent(rcu, 0);
	expect_empty(r);
	assert_int_equal(state_of(r), HCA_MPT_UNBOUND);
	assert_int_equal(hca_req_tx_poll(r->h, r->now, 32), 0);
}

/* A started operation belongs to those that SQD waits for. */
static void
drained_behind_it(void **state)
{
	struct rig *r = *state;

	several_workers(r);
	post_bind(r, 2, SIG);
	post_inv(r, KEY(2), SIG);
	rig_send(r, 2);
	r->qp->cfg.state = HCA_QPS_SQD;
	r->qp->cfg.draining = r->qp->cfg.sqd_notify = 1;
	hca_msg_send(r->h, HCA_STAGE_CEU, HCA_STAGE_REQ_TX, RIG_QPI, HCA_MSG_STATE);
	run(r);
	assert_int_equal(r->fx->events, 0);
	rte_rcu_qsbr_quiescent(rcu, 0);
	run(r);
	assert_int_equal(state_of(r), HCA_MPT_BOUND);
	assert_int_equal(rig_cqes(r), 1);
	assert_int_equal(r->fx->events, 1);
	assert_int_equal(r->fx->event[0].type, HCA_EVENT_SQ_DRAINED);
	/* one that has not started waits */
	r->qp->cfg.state = HCA_QPS_RTS;
	hca_msg_send(r->h, HCA_STAGE_CEU, HCA_STAGE_REQ_TX, RIG_QPI, HCA_MSG_STATE);
	run(r);
	rte_rcu_qsbr_quiescent(rcu, 0);
	run(r);
	assert_int_equal(state_of(r), HCA_MPT_UNBOUND);
	assert_int_equal(rig_cqes(r), 2);
	expect_empty(r);
}

static void
reset_while_waiting(void **state)
{
	struct rig *r = *state;

	several_workers(r);
	post_bind(r, 2, SIG);
	rig_send(r, 3);
	r->qp->cfg.state = HCA_QPS_RST;
	hca_msg_send(r->h, HCA_STAGE_CEU, HCA_STAGE_REQ_TX, RIG_QPI, HCA_MSG_PURGE);
	hca_req_tx_poll(r->h, r->now, 32);
	assert_int_equal(state_of(r), HCA_MPT_UNBOUND);
	rte_rcu_qsbr_quiescent(rcu, 0);
	assert_int_equal(hca_req_tx_poll(r->h, r->now, 32), 0);
	hca_record_pool_refill(&r->h->records[HCA_WIRE_ROCE].full);
	assert_int_equal(hca_record_pool_in_use(&r->h->records[HCA_WIRE_ROCE].full), 0);
	assert_int_equal(state_of(r), HCA_MPT_UNBOUND);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(alone),
		T(in_order),
		T(before_rnr_nak),
		T(before_a_read),
		T(once),
		T(failure_behind),
		T(bad_bind_in_its_turn),
		cmocka_unit_test(bad_invalidates),
		T(fence),
		T(waits_for_round),
		T(rewound_while_waiting),
		T(given_up),
		T(drained_behind_it),
		T(reset_while_waiting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
