/* SPDX-License-Identifier: BSD-3-Clause */
#include "abi_test.h"

#include "abi_roce.h"

static void
test_headers(void **state)
{
	struct hca_bth b = {
		.opcode = HCA_BTH_RC_WRITE_ONLY,
		.flags = HCA_BTH_MAKE_FLAGS(1, 1, 3),
		.pkey = hca_cpu_to_be16(0xffff),
		.dqpn = hca_cpu_to_be32(0x123456),
		.psn = hca_cpu_to_be32(HCA_BTH_MAKE_PSN(1, 0xabcdef)),
	};
	struct hca_atomiceth a = {
		.va = hca_cpu_to_be64(UINT64_C(0x0102030405060708)),
		.rkey = hca_cpu_to_be32(0x11121314),
		.swap_add = hca_cpu_to_be64(2),
		.cmp = hca_cpu_to_be64(3),
	};
	struct hca_aeth n = {
		.syndrome_msn = hca_cpu_to_be32(
			HCA_AETH_MAKE(HCA_NAK_SYNDROME(HCA_NAK_REMOTE_OP), 0x010203)),
	};

	assert_bytes(b, 0, 0x0a, 0xf0, 0xff, 0xff, 0, 0x12, 0x34, 0x56, 0x80, 0xab, 0xcd, 0xef);
	assert_int_equal(HCA_BTH_PAD(b.flags), 3);
	assert_bytes(a, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0, 0, 0, 0, 0, 0, 0, 2,
		     0, 0, 0, 0, 0, 0, 0, 3);
	assert_bytes(n, 0, 0x63, 1, 2, 3);
	assert_int_equal(HCA_RNR_SYNDROME(12), 0x2c);
}

/* InfiniBand table 38, spot values of every transport. */
static void
test_opcodes(void **state)
{
	assert_int_equal(HCA_BTH_RC_SEND_FIRST, 0x00);
	assert_int_equal(HCA_BTH_RC_WRITE_LAST_IMM, 0x09);
	assert_int_equal(HCA_BTH_RC_READ_REQ, 0x0c);
	assert_int_equal(HCA_BTH_RC_READ_RESP_ONLY, 0x10);
	assert_int_equal(HCA_BTH_RC_ACK, 0x11);
	assert_int_equal(HCA_BTH_RC_FETCH_ADD, 0x14);
	assert_int_equal(HCA_BTH_RC_SEND_ONLY_INV, 0x17);
	assert_int_equal(HCA_BTH_RC_FLUSH, 0x1c);
	assert_int_equal(HCA_BTH_RC_ATOMIC_WRITE, 0x1d);
	assert_int_equal(HCA_BTH_UC_WRITE_ONLY_IMM, 0x2b);
	assert_int_equal(HCA_BTH_RD_RESYNC, 0x55);
	assert_int_equal(HCA_BTH_UD_SEND_ONLY_IMM, 0x65);
	assert_int_equal(HCA_BTH_CNP, 0x81);
	assert_int_equal(HCA_BTH_XRC_SEND_ONLY_INV, 0xb7);
	assert_int_equal(HCA_BTH_XRC_ATOMIC_WRITE, 0xbd);
}

/* Header lengths follow from the list; every opcode appears once, in its transport. */
static void
test_opcode_list(void **state)
{
	uint8_t seen[256] = {0};
	unsigned int count = 0;

#define CHECK(name, opcode, kind, pos, ext) \
	assert_false(seen[opcode]++); \
	assert_int_not_equal(HCA_PKT_##kind, HCA_PKT_NONE); \
	assert_true(HCA_PKT_##pos <= HCA_PKT_ONLY); \
	count++;
	HCA_BTH_LIST(CHECK)
#undef CHECK
	assert_int_equal(count, 25 + 12 + 24 + 2 + 1 + 25);

#define LEN(name, opcode, kind, pos, ext) \
	if ((opcode) == want) \
		len = HCA_EXT_LEN(ext);
	static const struct {
		uint8_t opcode;
		uint8_t len;
	} golden[] = {
		{HCA_BTH_RC_SEND_MIDDLE, 0},
		{HCA_BTH_RC_WRITE_FIRST, 16},
		{HCA_BTH_RC_WRITE_ONLY_IMM, 20},
		{HCA_BTH_RC_READ_REQ, 16},
		{HCA_BTH_RC_READ_RESP_MIDDLE, 0},
		{HCA_BTH_RC_READ_RESP_LAST, 4},
		{HCA_BTH_RC_ACK, 4},
		{HCA_BTH_RC_ATOMIC_ACK, 12},
		{HCA_BTH_RC_CMP_SWAP, 28},
		{HCA_BTH_RC_SEND_LAST_INV, 4},
		{HCA_BTH_RC_ATOMIC_WRITE, 16},
		{HCA_BTH_RC_FLUSH, 20},
		{HCA_BTH_XRC_FLUSH, 24},
		{HCA_BTH_UD_SEND_ONLY, 8},
		{HCA_BTH_UD_SEND_ONLY_IMM, 12},
		{HCA_BTH_XRC_WRITE_ONLY, 20},
		{HCA_BTH_XRC_ACK, 4},
		{HCA_BTH_RD_SEND_ONLY, 12},
		{HCA_BTH_RD_ACK, 8},
	};
	for (size_t i = 0; i < sizeof(golden) / sizeof(golden[0]); i++) {
		uint8_t want = golden[i].opcode;
		unsigned int len = 999;

		HCA_BTH_LIST(LEN)
		assert_int_equal(len, golden[i].len);
	}
#undef LEN
}

static void
test_psn(void **state)
{
	assert_int_equal(hca_psn_diff(5, 5), 0);
	assert_int_equal(hca_psn_diff(0, 0xffffff), 1);
	assert_int_equal(hca_psn_diff(0xffffff, 0), -1);
	assert_int_equal(hca_psn_diff(0x7fffff, 0), 0x7fffff);
	assert_int_equal(hca_psn_diff(0x800000, 0), -0x800000);
}

static void
test_timers(void **state)
{
	uint32_t us[32] = {0};

#define SET(code, microseconds) us[code] = microseconds;
	HCA_RNR_TIMER_LIST(SET)
#undef SET
	assert_int_equal(us[0], 655360);
	assert_int_equal(us[1], 10);
	assert_int_equal(us[12], 640);
	assert_int_equal(us[31], 491520);
	for (int i = 2; i < 32; i++)
		assert_true(us[i] > us[i - 1]);
	assert_true(HCA_ACK_TIMEOUT_NS(14) == UINT64_C(67108864));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_headers),	    cmocka_unit_test(test_opcodes),
		cmocka_unit_test(test_opcode_list), cmocka_unit_test(test_psn),
		cmocka_unit_test(test_timers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
