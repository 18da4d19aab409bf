/* SPDX-License-Identifier: BSD-3-Clause */
#include "abi_test.h"

#include "abi_bar.h"
#include "abi_wqe.h"

/* Table 3-1-3: QUERY_DEV_LIM with an event, as the driver writes it. */
static void
test_hcr(void **state)
{
	struct hca_hcr h = {
		.in_param_hi = hca_cpu_to_le32(0x11223344),
		.in_param_lo = hca_cpu_to_le32(0x55667788),
		.in_modifier = hca_cpu_to_le32(0x99aabbcc),
		.token = hca_cpu_to_le32(HCA_HCR_MAKE_TOKEN(0xbeef)),
		.ctrl = hca_cpu_to_le32(HCA_HCR_MAKE_CTRL(1, 0x02, 0xffa)),
	};
	uint32_t w = hca_le32_to_cpu(h.ctrl);

	assert_bytes(h, 0, 0x44, 0x33, 0x22, 0x11, 0x88, 0x77, 0x66, 0x55, 0xcc, 0xbb, 0xaa, 0x99,
		     0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xef, 0xbe, 0xfa, 0x2f, 0xc0, 0x00);
	assert_int_equal(HCA_HCR_OP(w), 0xffa);
	assert_int_equal(HCA_HCR_OP_MODIFIER(w), 2);
	assert_true(w & HCA_HCR_GO);
	assert_true(w & HCA_HCR_E);
	w = HCA_HCR_MAKE_DONE(w, 0x10);
	assert_int_equal(HCA_HCR_STATUS(w), 0x10);
	assert_false(w & HCA_HCR_GO);
	assert_int_equal(HCA_HCR_OP(w), 0xffa);
}

/* Tables 3-1-6 and 3-1-7. */
static void
test_doorbell(void **state)
{
	uint64_t w = HCA_DB_MAKE(0x1234, 1, HCA_OP_RDMA_READ, 0xabcdef, 0x21);
	uint8_t b[8];

	hca_put_le64(b, w);
	assert_bytes(b, 0, 0x30, 0x34, 0x12, 0x00, 0x21, 0xef, 0xcd, 0xab);
	assert_int_equal(HCA_DB_SQ_HEAD(w), 0x1234);
	assert_int_equal(HCA_DB_F(w), 1);
	assert_int_equal(HCA_DB_OPCODE(w), HCA_OP_RDMA_READ);
	assert_int_equal(HCA_DB_QPN(w), 0xabcdef);
	assert_int_equal(HCA_DB_SIZE0(w), 0x21);
	assert_int_equal(HCA_DB_OPCODE(HCA_DB_MAKE(0, 0, HCA_DB_OPCODE_KICK, 2, 0)), 0x1f);
	assert_true(HCA_DB_MAKE(0, 0, HCA_OP_NOP, 2, 0) != HCA_DB_EMPTY);
}

static void
test_places(void **state)
{
	assert_int_equal(HCA_BAR0_HCR, 0x80000);
	assert_int_equal(HCA_BAR0_RESET, 0xf0010);
	assert_int_equal(HCA_BAR0_EQ_CI(0), 0xf0100);
	assert_int_equal(HCA_BAR0_EQ_CI(31), 0xf017c);
	assert_int_equal(HCA_UAR_MARK(1, 0x7f1fff), 0xfff);
	assert_int_equal(HCA_UAR_MARK(1, 0x7f1000), 0);
	assert_int_equal(HCA_UAR_FIFO_FIRST(0), 0);
	assert_int_equal(HCA_UAR_FIFO_FIRST(31), 248);
	assert_int_equal(HCA_UAR_FIFO_FIRST(32), 0);
	assert_int_equal(HCA_UAR_FIFO_FIRST(2047), 248);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hcr),
		cmocka_unit_test(test_doorbell),
		cmocka_unit_test(test_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
