/* SPDX-License-Identifier: BSD-3-Clause */

/* Opcodes by the names that operators write, against real frames of both wires. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "abi_roce.h"
#include "abi_ub.h"
#include "wire/opcode_set.h"
#include "wire/roce_opcode.h"

static struct hca_opcode_set
named(const char *name)
{
	struct hca_opcode_set s = {0};

	if (hca_opcode_set_add(&s, name) != 0)
		fail_msg("\"%s\" was refused", name);
	return s;
}

static unsigned int
bths(const struct hca_opcode_set *s)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < 4; i++)
		n += (unsigned int)__builtin_popcountll(s->bth[i]);
	return n;
}

static bool
has(const struct hca_opcode_set *s, uint8_t opcode)
{
	const struct hca_wire_view v = {.wire = HCA_WIRE_ROCE, .opcode = opcode};

	return hca_opcode_set_has(s, NULL, &v);
}

static void
one_word_many_opcodes(void **state)
{
	struct hca_opcode_set s = named("read-response");

	(void)state;
	assert_int_equal(bths(&s), 8); /* first, middle, last, only of RC and XRC */
	assert_true(has(&s, HCA_BTH_RC_READ_RESP_FIRST) && has(&s, HCA_BTH_XRC_READ_RESP_ONLY));
	assert_false(has(&s, HCA_BTH_RC_READ_REQ) || has(&s, HCA_BTH_RC_ACK));
	assert_int_equal(s.ta, UINT64_C(1) << HCA_UB_TA_READ_RESPONSE);
	s = named("ack");
	assert_int_equal(bths(&s), 2);
	assert_true(has(&s, HCA_BTH_RC_ACK) && !has(&s, HCA_BTH_RC_ATOMIC_ACK));
	assert_int_equal(s.tp | s.ta, 0);
	s = named("send");
	assert_int_equal(bths(&s), 8 + 6 + 2 + 8); /* RC, UC, UD, XRC */
	s = named("uc");
	assert_int_equal(bths(&s), 12);
}

static void
other_spellings(void **state)
{
	static const char *const same[] = {
		"RC_WRITE_ONLY_IMM",
		"rc-write-only-imm",
		"rc rdma write only imm",
		"RC-RDMA-Write-Only-with-Immediate",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		struct hca_opcode_set s = named(same[i]);

		assert_int_equal(bths(&s), 1);
		assert_true(has(&s, HCA_BTH_RC_WRITE_ONLY_IMM));
	}
	assert_true(bths(&(struct hca_opcode_set){0}) == 0);
	for (size_t i = 0; i < 2; i++) {
		struct hca_opcode_set s = named(i == 0 ? "compare-swap" : "cmp-swap");

		assert_true(has(&s, HCA_BTH_RC_CMP_SWAP) && has(&s, HCA_BTH_XRC_CMP_SWAP));
		assert_int_equal(s.ta != 0, i == 0);
	}
}

/* Every opcode that there is, by its whole name, is one opcode: none means another. */
static void
whole_names(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 256; i++) {
		struct hca_opcode_set s;

		if (!hca_roce_opcodes[i].valid)
			continue;
		s = named(hca_roce_opcodes[i].name);
		assert_true(has(&s, (uint8_t)i));
	}
}

/* The name of a frame is one that is taken again, and has no cut word. */
static void
names_of_frames(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 256; i++) {
		const struct hca_wire_view v = {.wire = HCA_WIRE_ROCE, .opcode = (uint8_t)i};
		struct hca_opcode_set s;
		char name[25];

		if (!hca_roce_opcodes[i].valid)
			continue;
		hca_opcode_name(NULL, &v, name, sizeof(name));
		s = named(name);
		assert_true(has(&s, (uint8_t)i));
		assert_null(strstr(name, "resp-"));
		assert_null(strstr(name, "_"));
	}
}

static void
numbers(void **state)
{
	struct hca_opcode_set s = named("0x0a");

	(void)state;
	assert_int_equal(bths(&s), 1);
	assert_true(has(&s, 10));
	assert_int_equal(s.tp, 1u << 10);
}

static void
refused(void **state)
{
	static const char *const bad[] = {
		"",
		"foo",
		"-",
		"reads",
		"read-response-first-x",
		"re",
		"256",
		"1x",
		"rd-send",
		"ack-read",
		"only",
		"first",
		"-1",
		"read_requested-x",
		"send-send-send-send-send-send-send-send-send-send-send-send-send-send-send",
	};
	struct hca_opcode_set s = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (hca_opcode_set_add(&s, bad[i]) != -EINVAL)
			fail_msg("\"%s\" was taken", bad[i]);
	assert_int_equal(bths(&s) + s.tp + s.ta, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_word_many_opcodes), cmocka_unit_test(other_spellings),
		cmocka_unit_test(whole_names),		 cmocka_unit_test(numbers),
		cmocka_unit_test(names_of_frames),	 cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
