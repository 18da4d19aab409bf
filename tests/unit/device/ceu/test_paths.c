/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The two paths of a QP: where and when the CEU writes them, which one is in use, the state after a
 * migration by a stage, and the output of QUERY_QP.
 */

#include <string.h>

#include "engine/migrate.h"
#include "../rig.h"

#define QPI 5u
#define QPN RIG_QPN(QPI)
#define REARMED (HCA_QP_ATTR_ALT_PATH | HCA_QP_ATTR_PATH_MIG_STATE)

static struct hca_qp *
qp(struct rig *r)
{
	return &r->h->core->qp[QPI];
}

static int
setup(void **state)
{
	struct rig *r = rig_new(true);

	rig_qp_world(r);
	assert_int_equal(rig_to_init(r, QPI), HCA_STAT_OK);
	assert_int_equal(rig_to_rtr(r, QPI), HCA_STAT_OK);
	assert_int_equal(rig_to_rts(r, QPI), HCA_STAT_OK);
	*state = r;
	return 0;
}

static int
teardown(void **state)
{
	rig_free(*state);
	return 0;
}

static struct hca_qpc *
mailbox(struct rig *r, uint32_t mask, uint32_t mig)
{
	struct hca_qpc *q = rig_qpc(r, QPI, mask);

	q->flags = hca_cpu_to_be32(HCA_QPC_MAKE_FLAGS(0, HCA_ST_RC, mig, 0));
	q->alt_path = q->path;
	q->alt_path.rgid[15] = 9;
	q->alt_path.ackto = hca_cpu_to_be32(HCA_QPC_MAKE_ACKTO(11, 0, 3, 64));
	return q;
}

static void
rearm(struct rig *r)
{
	mailbox(r, REARMED, HCA_MIG_REARM);
	assert_int_equal(rig_mbox(r, HCA_CMD_RTS2RTS_QPEE, QPN), HCA_STAT_OK);
	assert_int_equal(qp(r)->addr.mig, HCA_MIG_REARM);
}

/* Check the last byte of the destination address, and MigReq. */
static void
expect_place(struct rig *r, uint32_t place, uint8_t peer, bool migreq)
{
	const struct hca_udp_template *t = hca_qp_tmpl(qp(r), place);

	assert_int_equal(t->bytes[14 + 19], peer);
	assert_int_equal((t->bytes[t->transport + 1] & HCA_BTH_MIGREQ) != 0, migreq);
	assert_int_equal(qp(r)->addr.peer_gid[place][15], peer);
}

static void
to_sqd(struct rig *r)
{
	rig_qpc(r, QPI, 0);
	assert_int_equal(rig_mbox(r, HCA_CMD_RTS2SQD_QPEE, QPN), HCA_STAT_OK);
}

static void
post_address(struct rig *r, uint8_t peer)
{
	rig_qpc(r, QPI, HCA_QP_ATTR_AV)->path.rgid[15] = peer;
	rig_post(r, HCA_HCR_MAKE_CTRL(0, 0, HCA_CMD_SQD2SQD_QPEE), QPN, (uintptr_t)r->in, 0, 0);
}

/* Both paths; the second is empty in a QP that never needed it. */
static void
places(struct rig *r, struct hca_udp_template t[HCA_QP_PATHS])
{
	memset(t, 0, HCA_QP_PATHS * sizeof(*t));
	for (uint32_t i = 0; i < HCA_QP_PATHS; i++)
		if (hca_qp_tmpl(qp(r), i) != NULL)
			memcpy(&t[i], hca_qp_tmpl(qp(r), i), sizeof(*t));
}

/*
 * A new address is written into the unused place after a round, and the place in use is not
 * changed: a stage that is building a frame from it finishes with a consistent one.
 */
static void
address_in_the_free_place(void **state)
{
	struct rig *r = *state;
	struct hca_udp_template before[HCA_QP_PATHS], during[HCA_QP_PATHS];

	to_sqd(r);
	for (unsigned int i = 0; i < 6; i++) {
		uint32_t old = qp(r)->encap.path;

		places(r, before);
		post_address(r, (uint8_t)(20 + i));
		rig_poll(r);
		assert_true(rig_ctrl(r) & HCA_HCR_GO);
		places(r, during);
		assert_memory_equal(before, during, sizeof(before));
		for (unsigned int k = 0; k < 8 && rig_ctrl(r) & HCA_HCR_GO; k++) {
			rig_poll(r);
			assert_memory_equal(&before[old], hca_qp_tmpl(qp(r), old),
					    sizeof(before[old]));
		}
		assert_int_equal(HCA_HCR_STATUS(rig_ctrl(r)), HCA_STAT_OK);
		assert_int_equal(qp(r)->encap.path, 1 - old);
		expect_place(r, 1 - old, (uint8_t)(20 + i), true);
		assert_int_equal(qp(r)->cfg.ask_addr, 0);
		assert_int_equal(((const uint8_t *)&qp(r)->cfg.peer_ip4)[3], 20 + i);
	}
}

/* Commands that do not change the path move nothing. */
static void
nothing_moves(void **state)
{
	struct rig *r = *state;

	rig_qpc(r, QPI, HCA_QP_ATTR_ACCESS_FLAGS);
	assert_int_equal(rig_mbox(r, HCA_CMD_RTS2RTS_QPEE, QPN), HCA_STAT_OK);
	to_sqd(r);
	rig_qpc(r, QPI, HCA_QP_ATTR_AV | HCA_QP_ATTR_TIMEOUT)->path.ackto =
		hca_cpu_to_be32(HCA_QPC_MAKE_ACKTO(3, 0, 0, 64));
	assert_int_equal(rig_mbox(r, HCA_CMD_SQD2SQD_QPEE, QPN), HCA_STAT_OK);
	assert_int_equal(qp(r)->encap.path, 0);
	assert_int_equal(qp(r)->cfg.ack_timeout, 3);
	assert_int_equal(qp(r)->addr.ack_timeout[0], 3);
}

/* The alternate path stays the alternate path when the primary one has moved. */
static void
alternate_follows(void **state)
{
	static const uint32_t mig[] = {HCA_MIG_REARM, HCA_MIG_ARMED};
	struct rig *r = *state;

	rearm(r);
	to_sqd(r);
	for (unsigned int i = 0; i < 4; i++) {
		uint32_t old = qp(r)->encap.path;

		qp(r)->addr.mig = mig[i & 1];
		rig_qpc(r, QPI, HCA_QP_ATTR_AV)->path.rgid[15] = (uint8_t)(30 + i);
		assert_int_equal(rig_mbox(r, HCA_CMD_SQD2SQD_QPEE, QPN), HCA_STAT_OK);
		assert_int_equal(qp(r)->encap.path, 1 - old);
		assert_int_equal(qp(r)->addr.mig, mig[i & 1]);
		expect_place(r, 1 - old, (uint8_t)(30 + i), false);
		expect_place(r, old, 9, true);
		assert_int_equal(qp(r)->addr.ack_timeout[old], 11);
		assert_int_equal(qp(r)->addr.ack_timeout[1 - old], 14);
		assert_int_equal(qp(r)->cfg.ask_addr, 1);
	}
}

static void
expect_query(struct rig *r, uint32_t mig, uint8_t primary, uint8_t other)
{
	const struct hca_qpc *q = (const void *)r->out;

	assert_int_equal(rig_mbox(r, HCA_CMD_QUERY_QP, QPN), HCA_STAT_OK);
	assert_int_equal(HCA_QPC_MIG(hca_be32_to_cpu(q->flags)), mig);
	assert_int_equal(q->path.rgid[15], primary);
	assert_int_equal(q->alt_path.rgid[15], other);
	assert_int_equal(HCA_QPC_RNR_RETRY(hca_be32_to_cpu(q->path.rnr_retry)), 7);
	assert_int_equal(HCA_QPC_ACKTO(hca_be32_to_cpu(q->path.ackto)), primary == 9 ? 11 : 14);
	assert_int_equal(HCA_QPC_ACKTO(hca_be32_to_cpu(q->alt_path.ackto)), primary == 9 ? 14 : 11);
}

/*
 * A stage migrates; software reads it and rearms, and the QP can migrate back without a new
 * alternate path.
 */
static void
there_and_back(void **state)
{
	struct rig *r = *state;
	uint8_t here = 2, there = 9, swap;

	rearm(r);
	expect_place(r, 1 - qp(r)->encap.path, there, true);
	for (unsigned int i = 0; i < 4; i++) {
		expect_query(r, HCA_MIG_REARM, here, there);
		expect_place(r, qp(r)->encap.path, here, false);
		assert_int_equal(hca_migrate(&r->h->pipe[0], HCA_STAGE_REQ_RX, QPI),
				 HCA_MIGRATE_NOT_ARMED);
		qp(r)->addr.mig = HCA_MIG_ARMED;
		assert_int_equal(hca_migrate(&r->h->pipe[0], HCA_STAGE_REQ_RX, QPI),
				 HCA_MIGRATE_DONE);
		assert_int_equal(hca_migrate(&r->h->pipe[0], HCA_STAGE_REQ_RX, QPI),
				 HCA_MIGRATE_NOT_ARMED);
		expect_query(r, HCA_MIG_MIGRATED, there, here);
		expect_place(r, qp(r)->encap.path, there, true);
		assert_int_equal(qp(r)->cfg.ack_timeout, there == 9 ? 11 : 14);
		assert_int_equal(qp(r)->req_tx.pace != 0, there == 9);
		assert_int_equal(qp(r)->cfg.ask_addr, 1);
		/* any command refreshes the cached state */
		rig_qpc(r, QPI, HCA_QP_ATTR_ACCESS_FLAGS);
		assert_int_equal(rig_mbox(r, HCA_CMD_RTS2RTS_QPEE, QPN), HCA_STAT_OK);
		assert_int_equal(qp(r)->cfg.ask_addr, 0);
		assert_int_equal(((const uint8_t *)&qp(r)->cfg.peer_ip4)[3], there);
		mailbox(r, HCA_QP_ATTR_PATH_MIG_STATE, HCA_MIG_REARM);
		assert_int_equal(rig_mbox(r, HCA_CMD_RTS2RTS_QPEE, QPN), HCA_STAT_OK);
		swap = here;
		here = there;
		there = swap;
	}
	assert_int_equal(hca_counter_value(r->h, HCA_CTR_path_migrations), 4);
}

/* Migration by software: only an armed path can be used. */
static void
forced(void **state)
{
	struct rig *r = *state;

	rearm(r);
	mailbox(r, HCA_QP_ATTR_PATH_MIG_STATE, HCA_MIG_MIGRATED);
	assert_int_equal(rig_mbox(r, HCA_CMD_RTS2RTS_QPEE, QPN), HCA_STAT_OK);
	expect_query(r, HCA_MIG_MIGRATED, 2, 9);
	expect_place(r, qp(r)->encap.path, 2, true);
	assert_int_equal(hca_counter_value(r->h, HCA_CTR_path_migrations), 0);
	rearm(r);
	qp(r)->addr.mig = HCA_MIG_ARMED;
	mailbox(r, HCA_QP_ATTR_PATH_MIG_STATE, HCA_MIG_MIGRATED);
	assert_int_equal(rig_mbox(r, HCA_CMD_RTS2RTS_QPEE, QPN), HCA_STAT_OK);
	expect_query(r, HCA_MIG_MIGRATED, 9, 2);
	expect_place(r, qp(r)->encap.path, 9, true);
	expect_place(r, 1 - qp(r)->encap.path, 2, true);
	assert_int_equal(hca_counter_value(r->h, HCA_CTR_path_migrations), 1);
}

/* While one thread holds the paths, no other one can. */
static void
held(void **state)
{
	struct rig *r = *state;
	uint32_t was;

	rearm(r);
	qp(r)->addr.mig = HCA_MIG_ARMED;
	assert_true(hca_migrate_hold(qp(r), &was));
	assert_int_equal(was, HCA_MIG_ARMED);
	assert_false(hca_migrate_hold(qp(r), &was));
	assert_int_equal(hca_migrate(&r->h->pipe[0], HCA_STAGE_REQ_RX, QPI), HCA_MIGRATE_HELD);
	rig_qpc(r, QPI, HCA_QP_ATTR_ACCESS_FLAGS);
	rig_post(r, HCA_HCR_MAKE_CTRL(0, 0, HCA_CMD_RTS2RTS_QPEE), QPN, (uintptr_t)r->in, 0, 0);
	for (unsigned int i = 0; i < 20; i++)
		rig_poll(r);
	assert_true(rig_ctrl(r) & HCA_HCR_GO);
	hca_migrate_release(qp(r), HCA_MIG_ARMED);
	for (unsigned int i = 0; i < 20; i++)
		rig_poll(r);
	assert_false(rig_ctrl(r) & HCA_HCR_GO);
	assert_int_equal(qp(r)->addr.mig, HCA_MIG_ARMED);
}

/* An alternate path with one invalid field at a time, for a QP that is armed and stays so. */
#define BREAK_ALT(X) \
	X(q->alt_path.port_pkey = hca_cpu_to_be32(HCA_QPC_MAKE_PORT_PKEY(2, 0))) \
	X(q->alt_path.port_pkey = hca_cpu_to_be32(HCA_QPC_MAKE_PORT_PKEY(1, 1))) \
	X(q->alt_path.port_pkey = hca_cpu_to_be32(HCA_QPC_MAKE_PORT_PKEY(1, 99))) \
	X(q->alt_path.ackto = hca_cpu_to_be32(HCA_QPC_MAKE_ACKTO(32, 0, 0, 64))) \
	X(q->alt_path.ackto = hca_cpu_to_be32(HCA_QPC_MAKE_ACKTO(0, 1, 0, 64))) \
	X(q->alt_path.ackto = hca_cpu_to_be32(HCA_QPC_MAKE_ACKTO(0, 0, 1, 64))) \
	X(q->alt_path.sip = hca_cpu_to_be32(0x0a000009)) \
	X(q->alt_path.rgid[0] = 0xfe) \
	X((q->alt_path.mac_lo = 0, q->alt_path.dmac_hi = 0)) \
	X(q->flags = hca_cpu_to_be32(HCA_QPC_MAKE_FLAGS(0, HCA_ST_RC, HCA_MIG_ARMED, 0))) \
	X(q->flags = hca_cpu_to_be32(HCA_QPC_MAKE_FLAGS(0, HCA_ST_RC, HCA_MIG_HELD, 0)))

static void
bad_alternate_changes_nothing(void **state)
{
	struct rig *r = *state;
	struct hca_qpc *q;

	/* REARM without an alternate path */
	rig_remember(r, QPI);
	mailbox(r, HCA_QP_ATTR_PATH_MIG_STATE, HCA_MIG_REARM);
	assert_int_equal(rig_mbox(r, HCA_CMD_RTS2RTS_QPEE, QPN), HCA_STAT_BAD_PARAM);
	rig_unchanged(r, QPI);
	rearm(r);
	qp(r)->addr.mig = HCA_MIG_ARMED;
	rig_remember(r, QPI);
#define X(change) \
	q = mailbox(r, REARMED, HCA_MIG_REARM); \
	change; \
	assert_int_equal(rig_mbox(r, HCA_CMD_RTS2RTS_QPEE, QPN), HCA_STAT_BAD_PARAM); \
	rig_unchanged(r, QPI);
	BREAK_ALT(X)
#undef X
}

/* A path may be loaded before RTR. */
static void
loaded_on_the_way_to_rtr(void **state)
{
	struct rig *r = *state;
	struct hca_qpc *q;

	assert_int_equal(rig_cmd(r, HCA_CMD_ERR2RST_QPEE, 3, QPN, 0, 0), HCA_STAT_OK);
	assert_int_equal(rig_to_init(r, QPI), HCA_STAT_OK);
	q = mailbox(r, 0, HCA_MIG_MIGRATED);
	q->opt_param_mask = hca_cpu_to_be32(
		HCA_QP_ATTR_AV | HCA_QP_ATTR_PATH_MTU | HCA_QP_ATTR_DEST_QPN | HCA_QP_ATTR_RQ_PSN |
		HCA_QP_ATTR_MAX_DEST_RD_ATOMIC | HCA_QP_ATTR_MIN_RNR_TIMER | HCA_QP_ATTR_ALT_PATH);
	assert_int_equal(rig_mbox(r, HCA_CMD_INIT2RTR_QPEE, QPN), HCA_STAT_OK);
	expect_place(r, 0, 2, true);
	expect_place(r, 1, 9, true);
	assert_int_equal(qp(r)->addr.mig, HCA_MIG_MIGRATED);
	q = mailbox(r,
		    HCA_QP_ATTR_TIMEOUT | HCA_QP_ATTR_RETRY_CNT | HCA_QP_ATTR_RNR_RETRY |
			    HCA_QP_ATTR_SQ_PSN | HCA_QP_ATTR_MAX_QP_RD_ATOMIC |
			    HCA_QP_ATTR_PATH_MIG_STATE,
		    HCA_MIG_REARM);
	assert_int_equal(rig_mbox(r, HCA_CMD_RTR2RTS_QPEE, QPN), HCA_STAT_OK);
	expect_place(r, qp(r)->encap.path, 2, false);
	expect_query(r, HCA_MIG_REARM, 2, 9);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(address_in_the_free_place),
		T(nothing_moves),
		T(alternate_follows),
		T(there_and_back),
		T(forced),
		T(held),
		T(bad_alternate_changes_nothing),
		T(loaded_on_the_way_to_rtr),
	};

	if (rig_eal() != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
