/* SPDX-License-Identifier: BSD-3-Clause */
/* The opcode table, compared with header lengths written down by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "wire/roce_opcode.h"

static void
test_header_lengths(void **state)
{
	static const struct {
		uint8_t opcode;
		uint8_t len;
	} want[] = {
		{HCA_BTH_RC_SEND_FIRST, 12},
		{HCA_BTH_RC_SEND_ONLY_IMM, 16},
		{HCA_BTH_RC_WRITE_FIRST, 28},
		{HCA_BTH_RC_WRITE_MIDDLE, 12},
		{HCA_BTH_RC_WRITE_LAST_IMM, 16},
		{HCA_BTH_RC_WRITE_ONLY_IMM, 32},
		{HCA_BTH_RC_READ_REQ, 28},
		{HCA_BTH_RC_READ_RESP_FIRST, 16},
		{HCA_BTH_RC_READ_RESP_MIDDLE, 12},
		{HCA_BTH_RC_ACK, 16},
		{HCA_BTH_RC_ATOMIC_ACK, 24},
		{HCA_BTH_RC_CMP_SWAP, 40},
		{HCA_BTH_RC_FETCH_ADD, 40},
		{HCA_BTH_RC_SEND_ONLY_INV, 16},
		{HCA_BTH_RC_FLUSH, 32},
		{HCA_BTH_XRC_FLUSH, 36},
		{HCA_BTH_RC_ATOMIC_WRITE, 28},
		{HCA_BTH_XRC_ATOMIC_WRITE, 32},
		{HCA_BTH_UD_SEND_ONLY, 20},
		{HCA_BTH_UD_SEND_ONLY_IMM, 24},
		{HCA_BTH_XRC_WRITE_ONLY, 32},
		{HCA_BTH_XRC_ACK, 16},
		{HCA_BTH_CNP, 12},
	};
	size_t i;

	for (i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		assert_int_equal(hca_roce_opcodes[want[i].opcode].header_len, want[i].len);
}

static void
test_header_offsets(void **state)
{
	const struct hca_roce_opcode_info *t = hca_roce_opcodes;

	assert_int_equal(t[HCA_BTH_RC_WRITE_ONLY_IMM].at.reth, 12);
	assert_int_equal(t[HCA_BTH_RC_WRITE_ONLY_IMM].at.immdt, 28);
	assert_int_equal(t[HCA_BTH_RC_WRITE_MIDDLE].at.reth, 0);
	assert_int_equal(t[HCA_BTH_RC_ATOMIC_ACK].at.aeth, 12);
	assert_int_equal(t[HCA_BTH_RC_ATOMIC_ACK].at.atomicacketh, 16);
	assert_int_equal(t[HCA_BTH_RC_CMP_SWAP].at.atomiceth, 12);
	assert_int_equal(t[HCA_BTH_UD_SEND_ONLY_IMM].at.deth, 12);
	assert_int_equal(t[HCA_BTH_UD_SEND_ONLY_IMM].at.immdt, 20);
	assert_int_equal(t[HCA_BTH_RC_FLUSH].at.feth, 12);
	assert_int_equal(t[HCA_BTH_RC_FLUSH].at.reth, 16);
	assert_int_equal(t[HCA_BTH_XRC_FLUSH].at.feth, 16);
	assert_int_equal(t[HCA_BTH_XRC_WRITE_ONLY].at.xrceth, 12);
	assert_int_equal(t[HCA_BTH_XRC_WRITE_ONLY].at.reth, 16);
	assert_int_equal(t[HCA_BTH_RC_SEND_LAST_INV].at.ieth, 12);
}

static void
test_directions(void **state)
{
	const struct hca_roce_opcode_info *t = hca_roce_opcodes;

	assert_true(t[HCA_BTH_RC_READ_REQ].is_request);
	assert_false(t[HCA_BTH_RC_READ_REQ].has_payload);
	assert_true(t[HCA_BTH_RC_READ_RESP_LAST].is_response);
	assert_true(t[HCA_BTH_RC_READ_RESP_LAST].has_payload);
	assert_true(t[HCA_BTH_RC_ATOMIC_ACK].is_response);
	assert_false(t[HCA_BTH_CNP].is_request || t[HCA_BTH_CNP].is_response);
}

static void
test_places(void **state)
{
	const struct hca_roce_opcode_info *t = hca_roce_opcodes;

	assert_true(t[HCA_BTH_UC_SEND_FIRST].starts && !t[HCA_BTH_UC_SEND_FIRST].ends);
	assert_true(!t[HCA_BTH_UC_SEND_MIDDLE].starts && !t[HCA_BTH_UC_SEND_MIDDLE].ends);
	assert_true(!t[HCA_BTH_UC_SEND_LAST].starts && t[HCA_BTH_UC_SEND_LAST].ends);
	assert_true(t[HCA_BTH_UC_SEND_ONLY].starts && t[HCA_BTH_UC_SEND_ONLY].ends);
}

/* Conditions that every row must fulfil. */
static void
test_every_row_is_consistent(void **state)
{
	const struct hca_roce_opcode_info *info;
	unsigned int op, valid = 0;

	for (op = 0; op < 256; op++) {
		info = &hca_roce_opcodes[op];
		assert_non_null(hca_roce_opcode_name(op));
		if (!info->valid)
			continue;
		valid++;
		assert_int_equal(info->transport, op >> 5);
		assert_int_not_equal(info->kind, HCA_PKT_NONE);
		assert_in_range(info->header_len, 12, 44);
		assert_false(info->is_request && info->is_response);
		assert_int_equal(info->at.aeth != 0, (info->ext & HCA_EXT_AETH) != 0);
		assert_int_equal(info->header_len % 4, 0);
	}
	/* RC and XRC 25 each, UC 12, UD 2, CNP */
	assert_int_equal(valid, 25 + 25 + 12 + 2 + 1);
}

static void
test_unknown_and_unsupported(void **state)
{
	assert_false(hca_roce_opcodes[0x1f].valid);
	assert_string_equal(hca_roce_opcode_name(0x1f), "UNKNOWN");
	assert_false(hca_roce_opcodes[HCA_BTH_RD_SEND_ONLY].valid);
	assert_false(hca_roce_opcodes[0x60].valid);
	assert_false(hca_roce_opcodes[0xff].valid);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_header_lengths),
		cmocka_unit_test(test_header_offsets),
		cmocka_unit_test(test_directions),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_every_row_is_consistent),
		cmocka_unit_test(test_unknown_and_unsupported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
