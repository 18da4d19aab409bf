/* SPDX-License-Identifier: BSD-3-Clause */
#include "abi_test.h"

#include "abi_ctx.h"
#include "abi_qp_attr.h"

#define BE(v) hca_cpu_to_be32(v)

static void
fill_path(struct hca_qpc_path *p)
{
	const uint64_t dmac = UINT64_C(0x0a0b0c0d0e0f), smac = UINT64_C(0x010203040506);

	p->port_pkey = BE(HCA_QPC_MAKE_PORT_PKEY(1, 5));
	p->rnr_retry = BE(HCA_QPC_MAKE_RNR_RETRY(7, 1));
	p->ackto = BE(HCA_QPC_MAKE_ACKTO(14, 3, 2, 64));
	p->sl_tclass_flow = BE(HCA_QPC_MAKE_SL_TCLASS_FLOW(0xa, 0xbc, 0xdef12));
	p->rgid[15] = 0x42;
	p->mac_lo = BE(HCA_QPC_MAKE_MAC_LO(dmac, smac));
	p->smac_hi = BE(HCA_QPC_MAC_HI(smac));
	p->dmac_hi = BE(HCA_QPC_MAC_HI(dmac));
	p->sip = BE(0x0a000001);
	p->dip = BE(0x0a000002);
}

/* Table 3-2-40, with the reserved words that the interface decisions define. */
static void
test_qpc(void **state)
{
	struct hca_qpc q = {0};

	q.opt_param_mask = BE(HCA_QP_ATTR_STATE | HCA_QP_ATTR_DEST_QPN);
	q.flags = BE(HCA_QPC_MAKE_FLAGS(HCA_QPS_RTS, HCA_ST_XRC_TGT, HCA_MIG_MIGRATED, 1));
	q.sizes = BE(HCA_QPC_MAKE_SIZES(HCA_MTU_4096, 31, 7, 6));
	q.local_qpn = BE(0x123456);
	q.remote_qpn = BE(0x654321);
	fill_path(&q.path);
	fill_path(&q.alt_path);
	q.access_flags = BE(HCA_ACCESS_REMOTE_READ | HCA_ACCESS_REMOTE_ATOMIC);
	q.rd_atomic = BE(HCA_QPC_MAKE_RD_ATOMIC(16, 8, 7));
	q.srqn = BE(HCA_QPC_SRQ_VALID | 0x55);
	q.rnr_nextrecvpsn = BE(HCA_QPC_MAKE_RNR_EPSN(12, 0xabcdef));
	q.qkey = BE(0x80010000);
	q.wqe_counters = BE(HCA_QPC_MAKE_COUNTERS(0x1111, 0x2222));

	assert_bytes(q, 0x00, 0, 0x10, 0, 1, 0, 0, 0, 0, 0x30, 7, 0x18, 1, 0xbf, 7, 6, 0);
	assert_bytes(q, 0x14, 0, 0x12, 0x34, 0x56, 0, 0x65, 0x43, 0x21);
	assert_bytes(q, 0x1c, 1, 0, 0, 5, 7, 0x80, 0, 0, 14, 3, 2, 64, 0xab, 0xcd, 0xef, 0x12);
	assert_bytes(q, 0x3b, 0x42, 0x0e, 0x0f, 0x05, 0x06, 1, 2, 3, 4, 0x0a, 0x0b, 0x0c, 0x0d, 10,
		     0, 0, 1, 10, 0, 0, 2);
	assert_bytes(q, 0x50, 0, 0, 0, 0x0c, 16, 8, 7, 0, 0x80, 0, 0, 0x55);
	assert_bytes(q, 0x84, 12, 0xab, 0xcd, 0xef);
	assert_bytes(q, 0x98, 0x80, 1, 0, 0);
	assert_bytes(q, 0xbc, 0x11, 0x11, 0x22, 0x22, 1, 0, 0, 5);
	assert_bytes(q, 0xf0, 10, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	assert_true(HCA_QPC_DMAC(hca_be32_to_cpu(q.path.mac_lo), hca_be32_to_cpu(q.path.dmac_hi)) ==
		    UINT64_C(0x0a0b0c0d0e0f));
	assert_true(HCA_QPC_SMAC(hca_be32_to_cpu(q.path.mac_lo), hca_be32_to_cpu(q.path.smac_hi)) ==
		    UINT64_C(0x010203040506));
	assert_int_equal(HCA_QPC_STATE(hca_be32_to_cpu(q.flags)), HCA_QPS_RTS);
	assert_int_equal(HCA_QPC_SERVICE(hca_be32_to_cpu(q.flags)), HCA_ST_XRC_TGT);
}

/* Tables 3-2-32 and 3-2-27. */
static void
test_queues(void **state)
{
	struct hca_cqc c = {
		.flags = BE(HCA_CQ_FLAG_TR | HCA_CQ_STATE_ARMED),
		.logsize_usrpage = BE(HCA_CQC_MAKE_LOGSIZE(10, 0x7ff)),
		.comp_eqn = BE(2),
		.cqn = BE(0x99),
		.ci_db = BE(0x8000),
		.state_db = BE(0x8040),
	};
	struct hca_eqc e = {
		.flags = BE(HCA_EQ_OWNER_HW | HCA_EQ_FLAG_TR | HCA_EQ_STATE_ARMED),
		.logsize = BE(HCA_EQC_MAKE_LOGSIZE(8)),
		.intr = BE(1),
		.pd = BE(3),
		.producer_index = BE(4),
	};

	hca_cqc_set_start(&c, UINT64_C(0x0102030405060708));
	assert_bytes(c, 0, 0, 4, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 0, 7, 0xff, 0, 0, 0, 2);
	assert_bytes(c, 0x2c, 0, 0, 0, 0x99, 0, 0, 0x80, 0, 0, 0, 0x80, 0x40);
	assert_true(hca_cqc_start(&c) == UINT64_C(0x0102030405060708));
	hca_eqc_set_start(&e, UINT64_C(0x1112131415161718));
	assert_bytes(e, 0, 1, 4, 1, 0, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 8, 0, 0, 0,
		     0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 3);
	assert_bytes(e, 0x2c, 0, 0, 0, 4);
	assert_true(hca_eqc_start(&e) == UINT64_C(0x1112131415161718));
}

/* Tables 3-2-17 and 3-2-19. */
static void
test_mpt(void **state)
{
	struct hca_mpt m = {
		.flags = BE(HCA_MPT_FLAG_REGION | HCA_ACCESS_LOCAL_WRITE | HCA_ACCESS_REMOTE_WRITE),
		.page_size = BE(4096),
		.key = BE(HCA_KEY_MAKE(0x7f, 0x1fffe, 0x5a)),
		.pd = BE(7),
		.start = hca_cpu_to_be64(UINT64_C(0x7f0000001234)),
		.length = hca_cpu_to_be64(UINT64_C(0x180000000)),
		.first_byte_offset = BE(0x234),
	};

	hca_mpt_set_mtt_seg(&m, UINT64_C(0x0000000500000006));
	assert_bytes(m, 0, 0, 0, 1, 3, 0, 0, 0x10, 0, 0xff, 0xff, 0xfe, 0x5a, 0, 0, 0, 7, 0, 0,
		     0x7f, 0, 0, 0, 0x12, 0x34, 0, 0, 0, 1, 0x80, 0, 0, 0);
	assert_bytes(m, 0x2c, 0, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 2, 0x34);
	assert_true(hca_mpt_mtt_seg(&m) == UINT64_C(0x0000000500000006));
	assert_int_equal(HCA_KEY_INDEX(hca_be32_to_cpu(m.key)), 0x1fffe);
	assert_int_equal(HCA_KEY_TAG(hca_be32_to_cpu(m.key)), 0x5a);
	assert_int_equal(HCA_KEY_RANDOM(hca_be32_to_cpu(m.key)), 0x7f);
	assert_int_equal(HCA_MPT_FLAG_SW_OWNS, 0xf0000000u);
}

static void
test_numbers(void **state)
{
	assert_int_equal(HCA_MTU_BYTES(HCA_MTU_256), 256);
	assert_int_equal(HCA_MTU_BYTES(HCA_MTU_4096), 4096);
	assert_int_equal(HCA_QPN_MAKE(0x3ff, 0x1234, 14), 0xffd234);
	assert_int_equal(HCA_QPN_INDEX(0xffd234, 14), 0x1234);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_qpc),
		cmocka_unit_test(test_queues),
		cmocka_unit_test(test_mpt),
		cmocka_unit_test(test_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
