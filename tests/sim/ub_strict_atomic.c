/* SPDX-License-Identifier: BSD-3-Clause */

/* Effect of each atomic of the design of the wire; numbers are least significant byte first. */

#include <string.h>

#include "ub_strict.h"

static void
add(uint8_t *v, const uint8_t *operand, uint32_t n)
{
	unsigned int carry = 0;

	for (uint32_t i = 0; i < n; i++) {
		carry += v[i] + operand[i];
		v[i] = (uint8_t)carry;
		carry >>= 8;
	}
}

/* Returns whether the subtraction borrows: v is less, of numbers without sign. */
static bool
subtract(uint8_t *v, const uint8_t *operand, uint32_t n)
{
	unsigned int carry = 1;

	for (uint32_t i = 0; i < n; i++) {
		carry += v[i] + (uint8_t)~operand[i];
		v[i] = (uint8_t)carry;
		carry >>= 8;
	}
	return carry == 0;
}

static bool
is_less(const uint8_t *a, const uint8_t *b, uint32_t n, bool with_sign)
{
	uint8_t difference[64];
	bool negative[2] = {a[n - 1] >> 7, b[n - 1] >> 7};

	memcpy(difference, a, n);
	if (with_sign && negative[0] != negative[1])
		return negative[0];
	return subtract(difference, b, n);
}

static void
smaller_or_larger(uint8_t op, uint8_t *v, const uint8_t *operand, uint32_t n)
{
	bool with_sign = op == 4 || op == 5, larger = op == 4 || op == 6;
	bool less = is_less(v, operand, n, with_sign);

	if (less == larger)
		memcpy(v, operand, n);
}

/* Operation of UDETAH, for load and store. */
static void
by_user_operation(uint8_t op, uint8_t *v, const uint8_t *operand, uint32_t n)
{
	if (op == 0)
		add(v, operand, n);
	else if (op >= 4)
		smaller_or_larger(op, v, operand, n);
	for (uint32_t i = 0; op >= 1 && op <= 3 && i < n; i++)
		v[i] = op == 1	 ? v[i] & ~operand[i]
		       : op == 2 ? v[i] ^ operand[i]
				 : v[i] | operand[i];
}

void
ub_strict_change(uint8_t op, uint8_t user_op, uint8_t *v, const uint8_t *first,
		 const uint8_t *second, uint32_t n)
{
	switch (op) {
	case 0x07:
		if (memcmp(v, first, n) == 0)
			memcpy(v, second, n);
		break;
	case 0x08:
		memcpy(v, first, n);
		break;
	case 0x0b:
		add(v, first, n);
		break;
	case 0x0c:
		subtract(v, first, n);
		break;
	case 0x0d:
	case 0x0e:
	case 0x0f:
		for (uint32_t i = 0; i < n; i++)
			v[i] = op == 0x0d   ? v[i] & first[i]
			       : op == 0x0e ? v[i] | first[i]
					    : v[i] ^ first[i];
		break;
	default:
		by_user_operation(user_op, v, first, n);
	}
}
