/* SPDX-License-Identifier: BSD-3-Clause */

/* The responder and memory windows: access through them, SEND with invalidate. */

#include "ee_rig.h"

#include <string.h>

#include "vtp/window.h"

#define REGION HCA_KEY_INDEX(RIG_KEY_ALL)
#define W1 6u /* MPT index of the type 1 window; W2: type 2, bound to the QP */
#define W2 7u
#define W2_OTHER 0u /* bound to another QP: index 0 is free in the rig */
#define KEY(index) HCA_KEY_MAKE(0x21, index, 5)
#define OFF 512u
#define LEN 2048u

static void
window(struct rig *r, uint32_t index, uint32_t flags, uint32_t state, uint32_t qpn)
{
	r->h->vtp.mpt[index] = (struct hca_mpt_entry){
		.start = RIG_VA + OFF,
		.length = LEN,
		.base = r->mem + OFF,
		.key = KEY(index),
		.pd = RIG_PD,
		.state = state,
		.flags = flags | HCA_ACCESS_REMOTE_WRITE | HCA_ACCESS_REMOTE_READ,
		.qpn = qpn,
		.generation = r->qp->cfg.generation,
		.parent = REGION,
	};
	r->h->vtp.mpt[REGION].windows++;
}

static int
setup(void **state)
{
	struct rig *r;

	if (rig_setup(state) != 0)
		return -1;
	r = *state;
	window(r, W1, 0, HCA_MPT_VALID, 0);
	window(r, W2, HCA_MPT_FLAG_WINDOW2, HCA_MPT_BOUND, r->qp->cfg.local_qpn);
	return 0;
}

static struct rig_packet
write_to(uint32_t psn, uint32_t index, uint32_t off, uint32_t len)
{
	struct rig_packet p = rig_write(psn, off, len, 0x40);

	p.rkey = KEY(index);
	return p;
}

static void
access_through_windows(void **state)
{
	static const uint32_t index[] = {W1, W2};
	struct rig *r = *state;
	uint32_t psn = r->qp->ee.epsn;

	for (unsigned int i = 0; i < RTE_DIM(index); i++) {
		memset(r->mem, 0, RIG_LEN);
		rig_feed(r, write_to(psn, index[i], OFF + LEN - 64, 64));
		rig_expect_ack(r, RIG_ACK, psn++);
		assert_true(rig_holds(r, OFF + LEN - 64, 64, 0x40));
	}
}

static void
not_beyond(void **state)
{
	const struct {
		uint32_t index, off, len;
	} bad[] = {
		{W1, OFF - 1, 1},   {W1, OFF + LEN, 1}, {W1, OFF + LEN - 7, 8},
		{W2, OFF - 1, 1},   {W2, OFF + LEN, 1}, {W2, OFF + LEN - 7, 8},
		{W2_OTHER, OFF, 8},
	};

	for (unsigned int i = 0; i < RTE_DIM(bad); i++) {
		struct rig *r;
		uint32_t psn;

		assert_int_equal(setup(state), 0);
		r = *state;
		if (bad[i].index == W2_OTHER)
			window(r, W2_OTHER, HCA_MPT_FLAG_WINDOW2, HCA_MPT_BOUND,
			       r->qp->cfg.local_qpn ^ 0x10000);
		psn = r->qp->ee.epsn;
		rig_feed(r, write_to(psn, bad[i].index, bad[i].off, bad[i].len));
		rig_expect_fatal(r, HCA_NAK_REMOTE_ACCESS, psn, HCA_EVENT_WQ_ACCESS);
		assert_int_equal(rig_teardown(state), 0);
	}
}

/* A window's key cannot be used as lkey. */
static void
not_local(void **state)
{
	struct rig *r = *state;
	struct hca_sge sge = {.va = RIG_VA + OFF, .lkey = KEY(W1), .len = 64};
	uint32_t psn = r->qp->ee.epsn;

	rig_post(r, &sge, 1);
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_ONLY, psn, 8, 1));
	rig_expect_fatal(r, HCA_NAK_REMOTE_OP, psn, 0);
}

static struct rig_packet
send_inv(uint8_t opcode, uint32_t psn, uint32_t len, uint32_t key)
{
	struct rig_packet p = rig_send(opcode, psn, len, 9);

	p.imm = hca_cpu_to_be32(key);
	return p;
}

static void
invalidates(void **state)
{
	struct rig *r = *state;
	uint32_t psn = r->qp->ee.epsn;

	rig_post_one(r, 4096, 600);
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_FIRST, psn, RIG_MTU, 9));
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_MIDDLE, psn + 1, RIG_MTU, 9));
	assert_int_equal(r->h->vtp.mpt[W2].state, HCA_MPT_BOUND);
	rig_feed(r, send_inv(HCA_BTH_RC_SEND_LAST_INV, psn + 2, 10, KEY(W2)));
	rig_poll(r);
	rig_forget_responses(r);
	assert_int_equal(r->h->vtp.mpt[W2].state, HCA_MPT_UNBOUND);
	assert_int_equal(r->h->vtp.mpt[REGION].windows, 1);
	assert_int_equal(r->cqes, 1);
	assert_int_equal(r->cqe[0].opcode, HCA_BTH_RC_SEND_LAST_INV);
	assert_int_equal(hca_le32_to_cpu(r->cqe[0].imm), KEY(W2));
	assert_int_equal(hca_le32_to_cpu(r->cqe[0].byte_cnt), 2 * RIG_MTU + 10);
	assert_int_equal(RIG_COUNTER(r, resp_invalidations), 1);
	/* twice: the duplicate changes nothing, and the window is invalid */
	rig_feed(r, send_inv(HCA_BTH_RC_SEND_LAST_INV, psn + 2, 10, KEY(W2)));
	rig_expect_ack(r, RIG_ACK, psn + 2);
	assert_int_equal(RIG_COUNTER(r, resp_invalidations), 1);
	rig_feed(r, write_to(psn + 3, W2, OFF, 8));
	rig_expect_fatal(r, HCA_NAK_REMOTE_ACCESS, psn + 3, HCA_EVENT_WQ_ACCESS);
}

/*
 * Regions, windows of type 1 or of another QP, and invalid keys: the receive completes with an
 * error, the requester is not told, and nothing is invalidated.
 */
static void
may_not_invalidate(void **state)
{
	const uint32_t keys[] = {RIG_KEY_ALL, RIG_KEY_STALE, KEY(W1),	   KEY(W2) ^ 1,
				 0,	      UINT32_MAX,    KEY(W2_OTHER)};

	for (unsigned int i = 0; i < RTE_DIM(keys); i++) {
		struct rig *r;
		uint32_t psn;

		assert_int_equal(setup(state), 0);
		r = *state;
		window(r, W2_OTHER, HCA_MPT_FLAG_WINDOW2, HCA_MPT_BOUND,
		       r->qp->cfg.local_qpn ^ 0x10000);
		memset(r->mem, 0xee, RIG_LEN);
		psn = r->qp->ee.epsn;
		rig_post_one(r, 4096, 600);
		rig_feed(r, send_inv(HCA_BTH_RC_SEND_ONLY_INV, psn, 8, keys[i]));
		assert_int_equal(r->mem[4096], 0xee);
		assert_int_equal(RIG_COUNTER(r, resp_invalidations), 0);
		assert_int_equal(RIG_COUNTER(r, resp_invalidate_error), 1);
		assert_int_equal(r->h->vtp.mpt[W2].state, HCA_MPT_BOUND);
		assert_int_equal(r->h->vtp.mpt[W1].state, HCA_MPT_VALID);
		assert_int_equal(r->h->vtp.mpt[W2_OTHER].state, HCA_MPT_BOUND);
		assert_int_equal(r->h->vtp.mpt[REGION].state, HCA_MPT_VALID);
		rig_expect_silence(r);
		assert_int_equal(r->qp->cfg.state, HCA_QPS_ERR);
		assert_int_equal(r->cqes, 1);
		assert_int_equal(((const struct hca_cqe_err *)(const void *)r->cqe)->syndrome,
				 HCA_SYND_MW_BIND);
		rig_feed(r, rig_send(HCA_BTH_RC_SEND_ONLY, psn, 8, 9));
		rig_expect_silence(r);
		assert_int_equal(rig_teardown(state), 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, rig_teardown)
		T(access_through_windows),
		cmocka_unit_test(not_beyond),
		T(not_local),
		T(invalidates),
		cmocka_unit_test(may_not_invalidate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
