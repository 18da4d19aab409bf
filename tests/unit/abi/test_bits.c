/* SPDX-License-Identifier: BSD-3-Clause */
#include "abi_test.h"

#include "abi_bits.h"

static void
test_fields(void **state)
{
	assert_int_equal(HCA_BITS(0x12345678u, 31, 28), 0x1);
	assert_int_equal(HCA_BITS(0x12345678u, 15, 8), 0x56);
	assert_int_equal(HCA_BITS(UINT64_C(0xabcdef0123456789), 63, 40), 0xabcdef);
	assert_int_equal(HCA_FIELD(23, 16, 0x1ff), 0xff0000);
	assert_int_equal(HCA_FIELD(31, 0, 0xffffffffu), 0xffffffffu);
	assert_int_equal(HCA_SET_BITS(0xffffffffu, 15, 8, 0x12), 0xffff12ff);
	assert_true(HCA_MASK64(63, 0) == UINT64_MAX);
	assert_true(HCA_FIELD64(63, 40, 0xabcdef) == UINT64_C(0xabcdef0000000000));
}

static void
test_byte_order(void **state)
{
	uint8_t b[12] = {0};

	hca_put_be32(b + 1, 0x01020304);
	assert_bytes(b, 0, 0, 1, 2, 3, 4, 0);
	assert_int_equal(hca_get_be32(b + 1), 0x01020304);
	hca_put_le32(b + 1, 0x01020304);
	assert_bytes(b, 0, 0, 4, 3, 2, 1, 0);
	assert_int_equal(hca_get_le32(b + 1), 0x01020304);
	hca_put_be64(b + 3, UINT64_C(0x0102030405060708));
	assert_bytes(b, 3, 1, 2, 3, 4, 5, 6, 7, 8);
	assert_true(hca_get_be64(b + 3) == UINT64_C(0x0102030405060708));
	hca_put_le64(b + 3, UINT64_C(0x0102030405060708));
	assert_bytes(b, 3, 8, 7, 6, 5, 4, 3, 2, 1);
	assert_true(hca_get_le64(b + 3) == UINT64_C(0x0102030405060708));
	hca_put_be16(b, 0x0102);
	assert_bytes(b, 0, 1, 2);
	assert_int_equal(hca_be32_to_cpu(hca_cpu_to_be32(0xdeadbeef)), 0xdeadbeef);
	assert_int_equal(hca_le16_to_cpu(hca_cpu_to_le16(0xbeef)), 0xbeef);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_byte_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
