/* SPDX-License-Identifier: BSD-3-Clause */

/* Atomics against a plain model: numbers as strings of bits, one bit at a time. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rte_common.h>

#include "ub/target/ta_atomic.h"

static const uint8_t opcodes[] = {
	HCA_UB_TA_COMPARE_SWAP, HCA_UB_TA_SWAP,	     HCA_UB_TA_STORE,
	HCA_UB_TA_LOAD,		HCA_UB_TA_FETCH_ADD, HCA_UB_TA_FETCH_SUB,
	HCA_UB_TA_FETCH_AND,	HCA_UB_TA_FETCH_OR,  HCA_UB_TA_FETCH_XOR,
};

static bool
bit(const uint8_t *v, uint32_t i)
{
	return v[i / 8] >> (i % 8) & 1;
}

/* a + b + carry, bit by bit; b is inverted for a subtraction. */
static void
model_sum(uint8_t *r, const uint8_t *a, const uint8_t *b, uint32_t bits, bool subtract)
{
	bool carry = subtract;

	memset(r, 0, bits / 8);
	for (uint32_t i = 0; i < bits; i++) {
		uint32_t sum = bit(a, i) + (bit(b, i) ^ subtract) + carry;

		r[i / 8] |= (uint8_t)((sum & 1) << (i % 8));
		carry = sum > 1;
	}
}

static bool
model_less(const uint8_t *a, const uint8_t *b, uint32_t bits, bool is_signed)
{
	if (is_signed && bit(a, bits - 1) != bit(b, bits - 1))
		return bit(a, bits - 1);
	for (uint32_t i = bits; i-- != 0;)
		if (bit(a, i) != bit(b, i))
			return bit(b, i);
	return false;
}

static void
model_bits(uint8_t *r, const uint8_t *a, const uint8_t *b, uint32_t bits, uint32_t table)
{
	memset(r, 0, bits / 8);
	for (uint32_t i = 0; i < bits; i++)
		r[i / 8] |= (uint8_t)((table >> (bit(a, i) * 2 + bit(b, i)) & 1) << (i % 8));
}

#define AND 0x8
#define OR 0xe
#define XOR 0x6
#define AND_NOT 0x4

static void
model_ud(uint8_t op, uint8_t *r, const uint8_t *a, const uint8_t *b, uint32_t bits)
{
	bool is_signed = op == HCA_UB_UD_OP_SMAX || op == HCA_UB_UD_OP_SMIN;
	bool max = op == HCA_UB_UD_OP_SMAX || op == HCA_UB_UD_OP_UMAX;

	switch (op) {
	case HCA_UB_UD_OP_ADD:
		model_sum(r, a, b, bits, false);
		return;
	case HCA_UB_UD_OP_CLR:
		model_bits(r, a, b, bits, AND_NOT);
		return;
	case HCA_UB_UD_OP_EOR:
		model_bits(r, a, b, bits, XOR);
		return;
	case HCA_UB_UD_OP_SET:
		model_bits(r, a, b, bits, OR);
		return;
	default:
		memcpy(r, model_less(a, b, bits, is_signed) == max ? b : a, bits / 8);
		return;
	}
}

static void
model(const struct hca_ub_atomic *m, uint8_t *r, const uint8_t *a)
{
	const uint8_t *b = m->operand[0];
	uint32_t bits = m->len * 8u;

	switch (m->opcode) {
	case HCA_UB_TA_COMPARE_SWAP:
		memcpy(r, memcmp(a, b, m->len) == 0 ? m->operand[1] : a, m->len);
		return;
	case HCA_UB_TA_SWAP:
		memcpy(r, b, m->len);
		return;
	case HCA_UB_TA_FETCH_ADD:
	case HCA_UB_TA_FETCH_SUB:
		model_sum(r, a, b, bits, m->opcode == HCA_UB_TA_FETCH_SUB);
		return;
	case HCA_UB_TA_FETCH_AND:
		model_bits(r, a, b, bits, AND);
		return;
	case HCA_UB_TA_FETCH_OR:
		model_bits(r, a, b, bits, OR);
		return;
	case HCA_UB_TA_FETCH_XOR:
		model_bits(r, a, b, bits, XOR);
		return;
	default:
		model_ud(m->ud_op, r, a, b, bits);
		return;
	}
}

/* Random bytes, often all zeros or ones, so that carries run and values are equal. */
static void
draw(unsigned int *seed, uint8_t *v, uint32_t n)
{
	uint32_t kind = (uint32_t)rand_r(seed) % 4;

	for (uint32_t i = 0; i < n; i++)
		v[i] = kind == 0 ? 0 : kind == 1 ? 0xff : (uint8_t)rand_r(seed);
}

static void
check(const struct hca_ub_atomic *a, uint8_t *value)
{
	uint8_t before[HCA_UB_ATOMIC_MAX], expected[HCA_UB_ATOMIC_MAX], old[HCA_UB_ATOMIC_MAX];
	uint8_t result[HCA_UB_ATOMIC_MAX];

	memcpy(before, value, a->len);
	model(a, expected, before);
	hca_ub_atomic_apply(a, before, result);
	assert_memory_equal(result, expected, a->len);
	if (a->len > HCA_UB_ATOMIC_CPU_MAX)
		return;
	hca_ub_atomic_execute(a, value, old);
	assert_memory_equal(old, before, a->len);
	assert_memory_equal(value, expected, a->len);
}

static void
test_all_operations(void **state)
{
	unsigned int seed = 5;

	for (unsigned int i = 0; i < RTE_DIM(opcodes) * HCA_UB_UD_OPS * 7 * 12; i++) {
		uint8_t operand[2 * HCA_UB_ATOMIC_MAX + 1];
		_Alignas(64) uint8_t value[HCA_UB_ATOMIC_MAX + 1];
		struct hca_ub_atomic a = {
			.operand = {operand + 1, operand + 1},
			.opcode = opcodes[i % RTE_DIM(opcodes)],
			.ud_op = i / RTE_DIM(opcodes) % HCA_UB_UD_OPS,
			.len = (uint8_t)(1u << i / RTE_DIM(opcodes) / HCA_UB_UD_OPS % 7),
		};

		a.operand[1] += a.len;
		draw(&seed, operand, sizeof(operand));
		draw(&seed, value, sizeof(value));
		if (rand_r(&seed) % 2)
			memcpy(operand + 1, value, a.len);
		value[a.len] = 0x77;
		check(&a, value);
		assert_int_equal(value[a.len], 0x77);
	}
}

/* Values that tell signed from unsigned, and one width from another. */
static void
test_signs_and_widths(void **state)
{
	const uint8_t minus[16] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
				   0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	const uint8_t one[16] = {1};

	for (uint8_t len = 1; len <= 16; len *= 2) {
		struct hca_ub_atomic a = {{one, one}, HCA_UB_TA_LOAD, HCA_UB_UD_OP_SMAX, len};
		uint8_t r[16];

		hca_ub_atomic_apply(&a, minus, r);
		assert_memory_equal(r, one, len);
		a.ud_op = HCA_UB_UD_OP_UMAX;
		hca_ub_atomic_apply(&a, minus, r);
		assert_memory_equal(r, minus, len);
		a.opcode = HCA_UB_TA_FETCH_ADD;
		hca_ub_atomic_apply(&a, minus, r);
		for (uint8_t i = 0; i < len; i++)
			assert_int_equal(r[i], 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_operations),
		cmocka_unit_test(test_signs_and_widths),
	};

	return cmocka_run_group_tests_name("ta_atomic", tests, NULL, NULL);
}
