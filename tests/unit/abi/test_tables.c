/* SPDX-License-Identifier: BSD-3-Clause */
#include "abi_test.h"

#include "abi_cmd.h"
#include "abi_qp_attr.h"
#include "abi_tp.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct hca_qp_transition rows[] = {HCA_QP_TRANSITION_LIST(HCA_QP_TRANSITION_ROW)};

static const struct {
	uint16_t op;
	uint16_t in_len;
	uint16_t out_len;
	uint32_t flags;
	uint32_t caps;
} cmds[] = {
#define ROW(name, opcode, in_len, out_len, flags, caps) {opcode, in_len, out_len, flags, caps},
	HCA_CMD_LIST(ROW)
#undef ROW
};

static const struct hca_qp_transition *
find(int cmd, int from, int service)
{
	for (size_t i = 0; i < COUNT(rows); i++)
		if (rows[i].cmd == cmd && rows[i].from == from && rows[i].service == service)
			return &rows[i];
	return NULL;
}

static void
test_commands(void **state)
{
	assert_int_equal(HCA_CMD_QUERY_DEV_LIM, 0x3);
	assert_int_equal(HCA_CMD_MAP_ICM, 0xffa);
	assert_int_equal(HCA_CMD_SQD2SQD_QPEE, 0x38);
	assert_int_equal(HCA_CMD_NOP, 0x31);
	assert_int_equal(HCA_CMD_QUERY_COUNTERS, 0xf07);
	assert_int_equal(HCA_CMD_CLOSE_DOMAIN, 0xf08);
	assert_int_equal(HCA_CMD_QUERY_CLOCK, 0xf09);
	assert_int_equal(HCA_CMD_SW2HW_TP, 0xf0a);
	assert_int_equal(HCA_CMD_RST2RTS_QPEE, 0xf11);
	for (size_t i = 0; i < COUNT(cmds); i++) {
		assert_true(cmds[i].op <= 0xfff);
		assert_true(cmds[i].in_len <= HCA_MBOX_SIZE && cmds[i].out_len <= HCA_MBOX_SIZE);
		/* commands that table 3-2-1 lacks are announced by a capability */
		assert_int_equal(cmds[i].caps != 0,
				 (cmds[i].op >= 0xf00 && cmds[i].op < 0xff0) ||
					 (cmds[i].op >= 0x35 && cmds[i].op <= 0x37) ||
					 cmds[i].op == 0x40);
		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(cmds[i].op, cmds[j].op);
	}
}

/* The mailbox lengths in the list equal those of the structures. */
static void
test_mailbox_lengths(void **state)
{
#define LEN_IN(op_, type) \
	if (cmds[i].op == (op_)) \
	assert_int_equal(cmds[i].in_len, sizeof(struct type))
#define LEN_OUT(op_, type) \
	if (cmds[i].op == (op_)) \
	assert_int_equal(cmds[i].out_len, sizeof(struct type))
	for (size_t i = 0; i < COUNT(cmds); i++) {
		LEN_OUT(HCA_CMD_QUERY_DEV_LIM, hca_mbox_dev_lim);
		LEN_OUT(HCA_CMD_QUERY_ADAPTER, hca_mbox_adapter);
		LEN_IN(HCA_CMD_INIT_HCA, hca_mbox_init_hca);
		LEN_IN(HCA_CMD_MAP_ICM, hca_mbox_map_icm);
		LEN_IN(HCA_CMD_SW2HW_MPT, hca_mpt);
		LEN_IN(HCA_CMD_WRITE_MTT, hca_mbox_write_mtt);
		LEN_IN(HCA_CMD_SW2HW_EQ, hca_eqc);
		LEN_IN(HCA_CMD_SW2HW_CQ, hca_cqc);
		LEN_IN(HCA_CMD_RESIZE_CQ, hca_mbox_resize_cq);
		LEN_OUT(HCA_CMD_QUERY_QP, hca_qpc);
		LEN_IN(HCA_CMD_MAD_IFC, hca_mad_smp);
		LEN_OUT(HCA_CMD_MAD_IFC, hca_mad_smp);
		LEN_IN(HCA_CMD_SW2HW_SRQ, hca_srqc);
		LEN_OUT(HCA_CMD_QUERY_SRQ, hca_srqc);
		LEN_IN(HCA_CMD_SET_GID, hca_mbox_set_gid);
		LEN_IN(HCA_CMD_SET_PKEY, hca_mbox_set_pkey);
		LEN_IN(HCA_CMD_SET_NEIGH, hca_mbox_set_neigh);
		LEN_IN(HCA_CMD_MCAST_ATTACH, hca_mbox_mcast);
		LEN_IN(HCA_CMD_MODIFY_CQ, hca_mbox_modify_cq);
		LEN_OUT(HCA_CMD_QUERY_CQ, hca_cqc);
		LEN_OUT(HCA_CMD_QUERY_COUNTERS, hca_mbox_counters);
		LEN_IN(HCA_CMD_SW2HW_TP, hca_tpc);
		LEN_IN(HCA_CMD_MODIFY_TP, hca_tpc);
		LEN_OUT(HCA_CMD_QUERY_TP, hca_tpc);
		LEN_IN(HCA_CMD_SET_TPG, hca_mbox_set_tpg);
		LEN_IN(HCA_CMD_SET_TOKEN, hca_mbox_set_token);
		if (cmds[i].flags & HCA_CMDF_MODIFY_QP)
			assert_int_equal(cmds[i].in_len, sizeof(struct hca_qpc));
	}
#undef LEN_IN
#undef LEN_OUT
}

static void
test_transition_rows(void **state)
{
#define BIT(name, bit) | HCA_BIT(bit)
	const uint32_t all = 0 HCA_QP_ATTR_LIST(BIT);
#undef BIT

	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_int_equal(rows[i].required & rows[i].optional, 0);
		assert_true(rows[i].optional & HCA_QP_ATTR_STATE);
		assert_true(rows[i].from < HCA_QPS_COUNT && rows[i].to < HCA_QPS_COUNT);
		/* no attribute beyond table A1-3 is required */
		assert_int_equal(rows[i].required & ~HCA_MASK(20, 0), 0);
		assert_int_equal(rows[i].optional & ~all, 0);
		for (size_t j = 0; j < i; j++)
			assert_false(rows[i].cmd == rows[j].cmd && rows[i].from == rows[j].from &&
				     rows[i].service == rows[j].service);
	}
}

/* Every command of the family has a transition, and all its transitions lead to one state. */
static void
test_transition_commands(void **state)
{
	for (size_t c = 0; c < COUNT(cmds); c++) {
		int to = -1;

		for (size_t i = 0; i < COUNT(rows); i++) {
			if (rows[i].cmd != cmds[c].op)
				continue;
			assert_true(to < 0 || to == rows[i].to);
			to = rows[i].to;
		}
		assert_int_equal(to >= 0, !!(cmds[c].flags & HCA_CMDF_MODIFY_QP));
	}
}

#define A1_3(mask) ((mask)&HCA_MASK(20, 0))
/* Golden masks, written out from table A1-2 and the amendments. */
static void
test_transition_masks(void **state)
{
	const struct hca_qp_transition *t;

	t = find(HCA_CMD_RST2INIT_QPEE, HCA_QPS_RST, HCA_ST_RC);
	assert_int_equal(t->required, 0x000038);
	assert_int_equal(A1_3(t->optional), 0x000001);
	t = find(HCA_CMD_RST2INIT_QPEE, HCA_QPS_RST, HCA_ST_UD);
	assert_int_equal(t->required, 0x000070);
	t = find(HCA_CMD_INIT2INIT_QPEE, HCA_QPS_INIT, HCA_ST_RC);
	assert_int_equal(t->required, 0);
	assert_int_equal(A1_3(t->optional), 0x000039);
	t = find(HCA_CMD_INIT2INIT_QPEE, HCA_QPS_INIT, HCA_ST_UD);
	assert_int_equal(A1_3(t->optional), 0x000071);
	t = find(HCA_CMD_INIT2RTR_QPEE, HCA_QPS_INIT, HCA_ST_RC);
	assert_int_equal(t->required, 0x129180 | 0x020000);
	assert_int_equal(A1_3(t->optional), 0x004019);
	t = find(HCA_CMD_INIT2RTR_QPEE, HCA_QPS_INIT, HCA_ST_UC);
	assert_int_equal(t->required, 0x101180);
	t = find(HCA_CMD_RTR2RTS_QPEE, HCA_QPS_RTR, HCA_ST_RC);
	assert_int_equal(t->required, 0x012e00);
	assert_int_equal(A1_3(t->optional), 0x04c00b);
	assert_true(t->optional & HCA_QP_ATTR_RATE_LIMIT);
	t = find(HCA_CMD_RTR2RTS_QPEE, HCA_QPS_RTR, HCA_ST_XRC_TGT);
	assert_int_equal(t->required, 0x010200);
	t = find(HCA_CMD_SQD2SQD_QPEE, HCA_QPS_SQD, HCA_ST_RC);
	assert_int_equal(A1_3(t->optional), 0x06eeb9);
	t = find(HCA_CMD_SQERR2RTS_QPEE, HCA_QPS_SQE, HCA_ST_UC);
	assert_int_equal(A1_3(t->optional), 0x00000b);
	t = find(HCA_CMD_RST2RTS_QPEE, HCA_QPS_RST, HCA_ST_JETTY);
	assert_int_equal(t->required,
			 HCA_QP_ATTR_TIMEOUT | HCA_QP_ATTR_RNR_RETRY | HCA_QP_ATTR_MIN_RNR_TIMER);
	t = find(HCA_CMD_RST2RTS_QPEE, HCA_QPS_RST, HCA_ST_JFS);
	assert_int_equal(t->required, HCA_QP_ATTR_TIMEOUT | HCA_QP_ATTR_RNR_RETRY);
	assert_null(find(HCA_CMD_RST2RTS_QPEE, HCA_QPS_RST, HCA_ST_RC));
	assert_null(find(HCA_CMD_RST2INIT_QPEE, HCA_QPS_RST, HCA_ST_JETTY));
	assert_null(find(HCA_CMD_SQERR2RTS_QPEE, HCA_QPS_SQE, HCA_ST_RC));
	assert_null(find(HCA_CMD_2ERR_QPEE, HCA_QPS_RST, HCA_ST_RC));
	assert_null(find(HCA_CMD_RTS2SQD_QPEE, HCA_QPS_RTR, HCA_ST_RC));
	assert_null(find(HCA_CMD_RST2INIT_QPEE, HCA_QPS_RST, HCA_ST_RD));
}

static void
test_statuses(void **state)
{
	assert_int_equal(HCA_STAT_OK, 0);
	assert_int_equal(HCA_STAT_BAD_NVMEM, 5);
	assert_int_equal(HCA_STAT_BAD_INDEX, 0x0a);
	assert_int_equal(HCA_STAT_BAD_QP_STATE, 0x10);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_commands),	 cmocka_unit_test(test_mailbox_lengths),
		cmocka_unit_test(test_transition_rows),	 cmocka_unit_test(test_transition_commands),
		cmocka_unit_test(test_transition_masks), cmocka_unit_test(test_statuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
