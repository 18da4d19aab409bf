/* SPDX-License-Identifier: BSD-3-Clause */
#include "abi_test.h"

#include "abi_cqe.h"

/* Tables 3-3-1 and 3-3-4. */
static void
test_cqe(void **state)
{
	struct hca_cqe c = {
		.my_qpn = hca_cpu_to_le32(0x123456),
		.srqn = hca_cpu_to_le32(7),
		.rqpn = hca_cpu_to_le32(0x654321),
		.flags = hca_cpu_to_le32(HCA_CQE_MAKE_FLAGS(0x0102, 1, 2, 5)),
		.imm = hca_cpu_to_be32(0x0a0b0c0d),
		.byte_cnt = hca_cpu_to_le32(4096),
		.wqe = hca_cpu_to_le32(0x1c0),
		.opcode = 0x04,
		.is_send = 0,
		.owner = HCA_OWNER_SW,
	};
	struct hca_cqe_err e = {
		.my_qpn = hca_cpu_to_le32(2),
		.syndrome = HCA_SYND_WR_FLUSH,
		.wqe = hca_cpu_to_le32(0x40),
		.opcode = HCA_CQE_OP_ERR_SEND,
		.is_send = 1,
		.owner = HCA_OWNER_HW,
	};

	assert_bytes(c, 0, 0x56, 0x34, 0x12, 0, 7, 0, 0, 0, 0x21, 0x43, 0x65, 0, 0x25, 0x80, 2, 1,
		     10, 11, 12, 13, 0, 0x10, 0, 0, 0xc0, 1, 0, 0, 4, 0, 0, 0);
	assert_bytes(e, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0,
		     0x40, 0, 0, 0, 0xff, 1, 0, 0x80);
}

static void
test_eqe(void **state)
{
	struct hca_eqe a = {
		.type = HCA_EVENT_CQ_ERROR,
		.subtype = HCA_CQ_ERR_OVERRUN,
		.object = hca_cpu_to_le32(0x010203),
		.owner = HCA_OWNER_HW,
	};
	struct hca_eqe c = {
		.type = HCA_EVENT_CMD,
		.cmd.token = hca_cpu_to_le16(0xbeef),
		.status = 0x10,
		.out_param = hca_cpu_to_le64(UINT64_C(0x0102030405060708)),
	};

	assert_bytes(a, 0, 0, 4, 0, 1, 3, 2, 1, 0);
	assert_bytes(a, 0x1c, 0, 0, 0, 0x80);
	assert_bytes(c, 0, 0, 0x0a, 0, 0, 0, 0, 0xef, 0xbe, 0, 0, 0, 0, 0, 0, 0, 0x10, 8, 7, 6, 5,
		     4, 3, 2, 1);
}

/* Table 3-2-25 and the arm word. */
static void
test_words(void **state)
{
	uint32_t arm = HCA_CQ_ARM_MAKE(0x3ffffffd, HCA_CQ_ARM_NEXT);

	assert_int_equal(arm, 0xfffffff6);
	assert_int_equal(HCA_CQ_ARM_SEQ(arm), 0x3ffffffd);
	assert_int_equal(HCA_CQ_ARM_MODE(arm), HCA_CQ_ARM_NEXT);
	assert_true(HCA_EVENT_MASK_ALL == UINT64_C(0x3f87bf));
	assert_true(HCA_EVENT_MASK(HCA_EVENT_WQ_ACCESS) == UINT64_C(0x20000));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cqe),
		cmocka_unit_test(test_eqe),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
