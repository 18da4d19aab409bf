/* SPDX-License-Identifier: BSD-3-Clause */
#include "abi_test.h"

#include "abi_wqe.h"

/* Table 3-4-2. */
static void
test_next(void **state)
{
	struct hca_next_unit n = {
		.nda_nop = hca_cpu_to_le32(HCA_NEXT_MAKE_NDA_NOP(0x12340, HCA_OP_RDMA_WRITE)),
		.nee_nds = hca_cpu_to_le32(HCA_NEXT_MAKE_NEE_NDS(1, 0x1f)),
		.flags = hca_cpu_to_le32(HCA_WQE_FLAG_SIGNALED | HCA_WQE_FLAG_SOLICITED),
	};
	const uint8_t imm[4] = {1, 2, 3, 4};

	memcpy(&n.imm_data, imm, 4);
	assert_bytes(n, 0, 0x48, 0x23, 1, 0, 0x5f, 0, 0, 0, 0x0a, 0, 0, 0, 1, 2, 3, 4);
	assert_int_equal(HCA_NEXT_NDA(hca_le32_to_cpu(n.nda_nop)), 0x12340);
	assert_int_equal(HCA_NEXT_NOP(hca_le32_to_cpu(n.nda_nop)), HCA_OP_RDMA_WRITE);
	assert_int_equal(HCA_NEXT_NDS(hca_le32_to_cpu(n.nee_nds)), 0x1f);
	assert_true(hca_le32_to_cpu(n.nee_nds) & HCA_NEXT_F);
}

/* Tables 3-4-4, 3-4-6, 3-4-10, 3-4-12. */
static void
test_units(void **state)
{
	struct hca_raddr_unit r = {
		.raddr = hca_cpu_to_le64(UINT64_C(0x0102030405060708)),
		.rkey = hca_cpu_to_le32(0x11121314),
	};
	struct hca_atomic_unit a = {
		.swap_add = hca_cpu_to_le64(1),
		.cmp = hca_cpu_to_le64(UINT64_C(0x0200000000000003)),
	};
	struct hca_data_unit d = {
		.byte_cnt = hca_cpu_to_le32(0x1000),
		.lkey = hca_cpu_to_le32(0x21222324),
		.addr = hca_cpu_to_le64(UINT64_C(0x3132333435363738)),
	};
	struct hca_inline_unit i = {.length = hca_cpu_to_le32(HCA_INLINE_FLAG | 60)};
	struct hca_bind_unit b = {.new_key = hca_cpu_to_le32(5), .length = hca_cpu_to_le64(6)};

	assert_bytes(r, 0, 8, 7, 6, 5, 4, 3, 2, 1, 0x14, 0x13, 0x12, 0x11, 0, 0, 0, 0);
	assert_bytes(a, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 2);
	assert_bytes(d, 0, 0, 0x10, 0, 0, 0x24, 0x23, 0x22, 0x21, 0x38, 0x37, 0x36, 0x35, 0x34,
		     0x33, 0x32, 0x31);
	assert_bytes(i, 0, 60, 0, 0, 0x80);
	assert_int_equal(HCA_INLINE_LENGTH(hca_le32_to_cpu(i.length)), 60);
	assert_bytes(b, 8, 5, 0, 0, 0);
	assert_bytes(b, 0x18, 6, 0, 0, 0, 0, 0, 0, 0);
}

/* Table 3-4-8 and the routing fields in addition to it. */
static void
test_ud(void **state)
{
	const uint64_t dmac = UINT64_C(0x0a0b0c0d0e0f), smac = UINT64_C(0x010203040506);
	struct hca_ud_unit u = {
		.port = hca_cpu_to_le32(HCA_UD_MAKE_PORT(1, 2, 64, 0xb8)),
		.mac_lo = hca_cpu_to_le32(HCA_UD_MAKE_MAC_LO(dmac, smac)),
		.smac_hi = hca_cpu_to_le32(HCA_UD_MAC_HI(smac)),
		.dmac_hi = hca_cpu_to_le32(HCA_UD_MAC_HI(dmac)),
		.sip = hca_cpu_to_le32(0x0a000001),
		.dip = hca_cpu_to_le32(0x0a000002),
		.dqpn = hca_cpu_to_le32(0x123456),
		.qkey = hca_cpu_to_le32(0x80010000),
		.flow = hca_cpu_to_le32(HCA_UD_MAKE_FLOW(1, 3, 0x12, 0xabcde)),
	};

	assert_bytes(u, 0, 0xb8, 64, 2, 1, 6, 5, 0x0f, 0x0e, 4, 3, 2, 1, 0x0d, 0x0c, 0x0b, 0x0a, 1,
		     0, 0, 10, 2, 0, 0, 10);
	assert_bytes(u, 0x20, 0x56, 0x34, 0x12, 0, 0, 0, 1, 0x80, 0xde, 0xbc, 0x2a, 0xb1);
	assert_true(HCA_UD_DMAC(hca_le32_to_cpu(u.mac_lo), hca_le32_to_cpu(u.dmac_hi)) == dmac);
	assert_true(HCA_UD_SMAC(hca_le32_to_cpu(u.mac_lo), hca_le32_to_cpu(u.smac_hi)) == smac);
}

/* The largest WQE of each shape fits the largest stride. */
static void
test_limits(void **state)
{
	assert_true(sizeof(struct hca_next_unit) + sizeof(struct hca_ud_unit) +
			    HCA_WQE_MAX_SGE * sizeof(struct hca_data_unit) <=
		    HCA_WQE_MAX_STRIDE);
	assert_int_equal(1u << HCA_WQE_MIN_STRIDE_LOG, HCA_WQE_MIN_STRIDE);
	assert_int_equal(1u << HCA_WQE_MAX_STRIDE_LOG, HCA_WQE_MAX_STRIDE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_next),
		cmocka_unit_test(test_units),
		cmocka_unit_test(test_ud),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
