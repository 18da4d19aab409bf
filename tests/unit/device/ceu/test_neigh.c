/* SPDX-License-Identifier: BSD-3-Clause */

/* SET_NEIGH with connected QPs: QPs that send to the neighbour follow, others do not change. */

#include <string.h>

#include "../rig.h"

static const uint8_t peer[16] = {[10] = 0xff, 0xff, 10, 0, 0, 2};
static const uint8_t stranger[16] = {[10] = 0xff, 0xff, 10, 0, 0, 3};

static int
setup(void **state)
{
	struct rig *r = rig_new(true);

	rig_qp_world(r);
	*state = r;
	return 0;
}

static int
teardown(void **state)
{
	rig_free(*state);
	return 0;
}

static void
to_rts(struct rig *r, uint32_t qpi)
{
	assert_int_equal(rig_to_init(r, qpi), HCA_STAT_OK);
	assert_int_equal(rig_to_rtr(r, qpi), HCA_STAT_OK);
	assert_int_equal(rig_to_rts(r, qpi), HCA_STAT_OK);
}

static int
set_neigh(struct rig *r, const uint8_t gid[16], const char *mac, uint32_t flags)
{
	struct hca_mbox_set_neigh *n = (void *)r->in;

	memset(n, 0, sizeof(*n));
	memcpy(n->dgid, gid, 16);
	memcpy(n->dmac, mac, 6);
	n->flags = hca_cpu_to_be32(flags);
	return rig_mbox(r, HCA_CMD_SET_NEIGH, 0);
}

static const uint8_t *
frame_of(struct rig *r, uint32_t qpi)
{
	return r->h->core->qp[qpi].encap.tmpl.bytes;
}

static uint64_t
image_dmac(struct rig *r, uint32_t qpi)
{
	const struct hca_qpc *q = (const void *)r->out;

	assert_int_equal(rig_mbox(r, HCA_CMD_QUERY_QP, RIG_QPN(qpi)), HCA_STAT_OK);
	return HCA_QPC_DMAC(hca_be32_to_cpu(q->path.mac_lo), hca_be32_to_cpu(q->path.dmac_hi));
}

static void
qps_follow(void **state)
{
	struct rig *r = *state;
	uint8_t before[64];

	to_rts(r, 5);
	memcpy(before, frame_of(r, 5), sizeof(before));
	assert_int_equal(set_neigh(r, peer, "\x06\1\2\3\4\5", HCA_NEIGH_VALID), HCA_STAT_OK);
	assert_memory_equal(frame_of(r, 5), "\x06\1\2\3\4\5", 6);
	assert_memory_equal(frame_of(r, 5) + 6, before + 6, sizeof(before) - 6);
	assert_true(image_dmac(r, 5) == 0x060102030405);
	/* another neighbour moves */
	assert_int_equal(set_neigh(r, stranger, "\x06\1\2\3\4\6", HCA_NEIGH_VALID), HCA_STAT_OK);
	assert_memory_equal(frame_of(r, 5), "\x06\1\2\3\4\5", 6);
	/* removing an entry changes no QP */
	assert_int_equal(set_neigh(r, peer, "\x06\1\2\3\4\7", 0), HCA_STAT_OK);
	assert_memory_equal(frame_of(r, 5), "\x06\1\2\3\4\5", 6);
}

/* The same address in another VLAN is a different neighbour. */
static void
vlans_are_apart(void **state)
{
	static const uint8_t gid[16] = {[10] = 0xff, 0xff, 10, 1, 0, 1};
	struct rig *r = *state;
	struct hca_mbox_set_gid *m = (void *)r->in;

	memset(m, 0, sizeof(*m));
	m->index = hca_cpu_to_be32(3);
	m->flags = hca_cpu_to_be32(HCA_GID_MAKE_FLAGS(1, HCA_GID_ROCE_V2_IPV4, 1, 7));
	memcpy(m->gid, gid, 16);
	memcpy(m->mac, "\x02\0\0\0\0\1", 6);
	assert_int_equal(rig_mbox(r, HCA_CMD_SET_GID, 0), HCA_STAT_OK);
	to_rts(r, 5);
	assert_int_equal(set_neigh(r, peer, "\x06\1\2\3\4\5", HCA_NEIGH_VALID | 3), HCA_STAT_OK);
	assert_memory_equal(frame_of(r, 5), "\x02\0\0\0\0\2", 6);
	assert_int_equal(set_neigh(r, peer, "\x06\1\2\3\4\5", HCA_NEIGH_VALID | 0), HCA_STAT_OK);
	assert_memory_equal(frame_of(r, 5), "\x06\1\2\3\4\5", 6);
}

static void
dead_qps_are_left_alone(void **state)
{
	struct rig *r = *state;

	to_rts(r, 5);
	assert_int_equal(rig_cmd(r, HCA_CMD_ERR2RST_QPEE, HCA_MODIFY_QP_NO_INBOX, RIG_QPN(5), 0, 0),
			 HCA_STAT_OK);
	assert_int_equal(set_neigh(r, peer, "\x06\1\2\3\4\5", HCA_NEIGH_VALID), HCA_STAT_OK);
	assert_memory_not_equal(frame_of(r, 5), "\x06\1\2\3\4\5", 6);
	assert_int_equal(rig_to_init(r, 5), HCA_STAT_OK);
	assert_int_equal(set_neigh(r, peer, "\x06\1\2\3\4\5", HCA_NEIGH_VALID), HCA_STAT_OK);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(qps_follow),
		T(vlans_are_apart),
		T(dead_qps_are_left_alone),
	};

	if (rig_eal() != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
