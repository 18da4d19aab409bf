/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * MCAST_ATTACH and MCAST_DETACH: permissions, limits, and that destroying a QP removes its
 * memberships.
 */

#include <string.h>

#include "../rig.h"

#define UD 3u
#define UD2 4u
#define RC 5u

static const uint8_t group4[16] = {[10] = 0xff, 0xff, 239, 0, 0, 1};
static const uint8_t group6[16] = {0xff, 0x02, [15] = 1};

static int
to_init(struct rig *r, uint32_t qpi, uint32_t service)
{
	uint32_t mask = HCA_QP_ATTR_PKEY_INDEX | HCA_QP_ATTR_PORT;
	struct hca_qpc *q;

	mask |= service == HCA_ST_UD ? HCA_QP_ATTR_QKEY : HCA_QP_ATTR_ACCESS_FLAGS;
	q = rig_qpc(r, qpi, mask);
	q->flags = hca_cpu_to_be32(HCA_QPC_MAKE_FLAGS(0, service, HCA_MIG_MIGRATED, 0));
	return rig_mbox(r, HCA_CMD_RST2INIT_QPEE, RIG_QPN(qpi));
}

static int
setup(void **state)
{
	struct rig *r = rig_new(true);

	rig_qp_world(r);
	assert_int_equal(to_init(r, UD, HCA_ST_UD), HCA_STAT_OK);
	assert_int_equal(to_init(r, UD2, HCA_ST_UD), HCA_STAT_OK);
	assert_int_equal(to_init(r, RC, HCA_ST_RC), HCA_STAT_OK);
	*state = r;
	return 0;
}

static int
teardown(void **state)
{
	rig_free(*state);
	return 0;
}

static int
mcast(struct rig *r, uint16_t op, uint32_t qpn, const uint8_t gid[16])
{
	memcpy(((struct hca_mbox_mcast *)(void *)r->in)->mgid, gid, 16);
	return rig_mbox(r, op, qpn);
}

static int
attach(struct rig *r, uint32_t qpn, const uint8_t gid[16])
{
	return mcast(r, HCA_CMD_MCAST_ATTACH, qpn, gid);
}

static int
detach(struct rig *r, uint32_t qpn, const uint8_t gid[16])
{
	return mcast(r, HCA_CMD_MCAST_DETACH, qpn, gid);
}

/* Number of members of a group; 0 if it does not exist. */
static unsigned int
members(struct rig *r, const uint8_t gid[16])
{
	const struct hca_mcast_group *g = hca_mcast_find(r->h->core, gid);
	unsigned int n = 0;

	for (unsigned int i = 0; g != NULL && i < HCA_MCAST_MEMBERS; i++)
		n += g->qpn[i] != 0;
	assert_true(g == NULL || g->used == n);
	return n;
}

static void
no_group_is_left(struct rig *r)
{
	for (unsigned int i = 0; i < HCA_MCAST_GROUPS; i++)
		assert_int_equal(r->h->core->ctxmgt->mcast[i].state, HCA_MCAST_FREE);
	assert_int_equal(r->h->core->ctxmgt->mcast_end, 0);
}

static void
attach_and_detach(void **state)
{
	struct rig *r = *state;

	assert_int_equal(attach(r, RIG_QPN(UD), group4), HCA_STAT_OK);
	assert_int_equal(attach(r, RIG_QPN(UD), group4), HCA_STAT_OK);
	assert_int_equal(members(r, group4), 1);
	assert_int_equal(attach(r, RIG_QPN(UD2), group4), HCA_STAT_OK);
	assert_int_equal(attach(r, RIG_QPN(UD), group6), HCA_STAT_OK);
	assert_int_equal(members(r, group4), 2);
	assert_int_equal(members(r, group6), 1);
	assert_int_equal(detach(r, RIG_QPN(UD), group4), HCA_STAT_OK);
	assert_int_equal(members(r, group4), 1);
	assert_int_equal(detach(r, RIG_QPN(UD2), group4), HCA_STAT_OK);
	assert_int_equal(members(r, group4), 0);
	assert_int_equal(members(r, group6), 1);
	assert_int_equal(detach(r, RIG_QPN(UD), group6), HCA_STAT_OK);
	no_group_is_left(r);
}

static void
not_attached(void **state)
{
	struct rig *r = *state;

	assert_int_equal(detach(r, RIG_QPN(UD), group4), HCA_STAT_BAD_PARAM);
	assert_int_equal(attach(r, RIG_QPN(UD), group4), HCA_STAT_OK);
	assert_int_equal(detach(r, RIG_QPN(UD2), group4), HCA_STAT_BAD_PARAM);
	assert_int_equal(detach(r, RIG_QPN(UD), group6), HCA_STAT_BAD_PARAM);
	assert_int_equal(members(r, group4), 1);
	assert_int_equal(detach(r, RIG_QPN(UD), group4), HCA_STAT_OK);
	assert_int_equal(detach(r, RIG_QPN(UD), group4), HCA_STAT_BAD_PARAM);
}

static void
whose_qp(void **state)
{
	const uint32_t bad[] = {0, 1, 0xffffff, RIG_QPN(UD) ^ 0x400, RIG_QPN(9), UD, UINT32_MAX};
	struct rig *r = *state;

	for (unsigned int i = 0; i < RTE_DIM(bad); i++) {
		assert_int_equal(attach(r, bad[i], group4), HCA_STAT_BAD_INDEX);
		assert_int_equal(detach(r, bad[i], group4), HCA_STAT_BAD_INDEX);
	}
	assert_int_equal(attach(r, RIG_QPN(RC), group4), HCA_STAT_BAD_PARAM);
	assert_int_equal(detach(r, RIG_QPN(RC), group4), HCA_STAT_BAD_PARAM);
	no_group_is_left(r);
}

static void
what_address(void **state)
{
	static const uint8_t bad[][16] = {
		{0},
		{0xfe, 0x80, [15] = 1},
		{[10] = 0xff, 0xff, 10, 0, 0, 1},
		{[10] = 0xff, 0xff, 223, 255, 255, 255},
		{[10] = 0xff, 0xff, 240, 0, 0, 1},
		{[9] = 1, 0xff, 0xff, 239, 0, 0, 1},
	};
	struct rig *r = *state;

	for (unsigned int i = 0; i < RTE_DIM(bad); i++)
		assert_int_equal(attach(r, RIG_QPN(UD), bad[i]), HCA_STAT_BAD_PARAM);
	no_group_is_left(r);
}

/* The numbers of members and groups that QUERY_DEV_LIM reports. */
static void
limits(void **state)
{
	struct rig *r = *state;
	uint8_t gid[16];
	uint32_t word;

	assert_int_equal(rig_mbox(r, HCA_CMD_QUERY_DEV_LIM, 0), HCA_STAT_OK);
	word = hca_be32_to_cpu(((struct hca_mbox_dev_lim *)(void *)r->out)->mcast);
	assert_int_equal(HCA_LIM_QP_PER_MCG(word), HCA_MCAST_MEMBERS);
	for (uint32_t i = 0; i < HCA_MCAST_MEMBERS; i++)
		assert_int_equal(hca_mcast_attach(r->h->core, group4, 0x1000 + i), HCA_STAT_OK);
	assert_int_equal(attach(r, RIG_QPN(UD), group4), HCA_STAT_EXCEED_LIM);
	assert_int_equal(members(r, group4), HCA_MCAST_MEMBERS);
	memcpy(gid, group6, 16);
	for (uint32_t i = 1; i < HCA_MCAST_GROUPS; i++) {
		gid[13] = (uint8_t)i;
		assert_int_equal(attach(r, RIG_QPN(UD), gid), HCA_STAT_OK);
	}
	assert_int_equal(attach(r, RIG_QPN(UD), group6), HCA_STAT_EXCEED_LIM);
	assert_int_equal(detach(r, RIG_QPN(UD), gid), HCA_STAT_OK);
	assert_int_equal(attach(r, RIG_QPN(UD2), group6), HCA_STAT_OK);
	assert_int_equal(members(r, group6), 1);
}

/* The QP leaves all groups; other QPs stay. */
static void
qp_ends(void **state)
{
	struct rig *r = *state;

	for (unsigned int i = 0; i < 20; i++) {
		assert_int_equal(attach(r, RIG_QPN(UD), group4), HCA_STAT_OK);
		assert_int_equal(attach(r, RIG_QPN(UD), group6), HCA_STAT_OK);
		assert_int_equal(attach(r, RIG_QPN(UD2), group6), HCA_STAT_OK);
		assert_int_equal(rig_cmd(r, HCA_CMD_ERR2RST_QPEE, 3, RIG_QPN(UD), 0, 0),
				 HCA_STAT_OK);
		assert_int_equal(members(r, group4), 0);
		assert_int_equal(members(r, group6), 1);
		assert_int_equal(attach(r, RIG_QPN(UD), group4), HCA_STAT_BAD_INDEX);
		assert_int_equal(to_init(r, UD, HCA_ST_UD), HCA_STAT_OK);
		assert_int_equal(detach(r, RIG_QPN(UD), group4), HCA_STAT_BAD_PARAM);
	}
	assert_int_equal(rig_cmd(r, HCA_CMD_ERR2RST_QPEE, 3, RIG_QPN(UD2), 0, 0), HCA_STAT_OK);
	no_group_is_left(r);
}

static void
hca_closes(void **state)
{
	struct rig *r = *state;

	assert_int_equal(attach(r, RIG_QPN(UD), group4), HCA_STAT_OK);
	assert_int_equal(attach(r, RIG_QPN(UD2), group6), HCA_STAT_OK);
	assert_int_equal(rig_cmd(r, HCA_CMD_CLOSE_HCA, 0, 0, 0, 0), HCA_STAT_OK);
	no_group_is_left(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(attach_and_detach), T(not_attached), T(whose_qp), T(what_address), T(limits),
		T(qp_ends),	      T(hca_closes),
#undef T
	};

	if (rig_eal() != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
