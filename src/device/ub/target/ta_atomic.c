/* SPDX-License-Identifier: BSD-3-Clause */

#include "ub/target/ta_atomic.h"

#include <string.h>

/* ---- arithmetic on n bytes, least significant byte first ---- */

typedef void (*apply_fn)(uint8_t *r, const uint8_t *a, const uint8_t *b, uint32_t n);

static void
add(uint8_t *r, const uint8_t *a, const uint8_t *b, uint32_t n)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		sum = (sum >> 8) + a[i] + b[i];
		r[i] = (uint8_t)sum;
	}
}

static void
sub(uint8_t *r, const uint8_t *a, const uint8_t *b, uint32_t n)
{
	uint32_t borrow = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t d = 256u + a[i] - b[i] - borrow;

		r[i] = (uint8_t)d;
		borrow = d < 256u;
	}
}

#define BITWISE(name, expression) \
	static void name(uint8_t *r, const uint8_t *a, const uint8_t *b, uint32_t n) \
	{ \
		for (uint32_t i = 0; i < n; i++) \
			r[i] = (uint8_t)(expression); \
	}
BITWISE(and, a[i] & b[i])
BITWISE(or, a[i] | b[i])
BITWISE(xor, a[i] ^ b[i])
BITWISE(clear, a[i] & ~b[i])
#undef BITWISE

/* flip: bits to invert in the top byte, to compare as signed or as unsigned numbers. */
static int
compare(const uint8_t *a, const uint8_t *b, uint32_t n, uint8_t flip)
{
	int d = (a[n - 1] ^ flip) - (b[n - 1] ^ flip);

	for (uint32_t i = n - 1; d == 0 && i-- != 0;)
		d = a[i] - b[i];
	return d;
}

#define SIGNED 0x80u
#define UNSIGNED 0u
#define CHOOSE(name, order, flip) \
	static void name(uint8_t *r, const uint8_t *a, const uint8_t *b, uint32_t n) \
	{ \
		memcpy(r, compare(a, b, n, flip) order 0 ? a : b, n); \
	}
CHOOSE(smax, >, SIGNED)
CHOOSE(smin, <, SIGNED)
CHOOSE(umax, >, UNSIGNED)
CHOOSE(umin, <, UNSIGNED)
#undef CHOOSE

static void
swap(uint8_t *r, const uint8_t *a, const uint8_t *b, uint32_t n)
{
	memcpy(r, b, n);
}

/* ---- operations ---- */

static const apply_fn ud_ops[HCA_UB_UD_OPS] = {
	[HCA_UB_UD_OP_ADD] = add,   [HCA_UB_UD_OP_CLR] = clear, [HCA_UB_UD_OP_EOR] = xor,
	[HCA_UB_UD_OP_SET] = or,    [HCA_UB_UD_OP_SMAX] = smax, [HCA_UB_UD_OP_SMIN] = smin,
	[HCA_UB_UD_OP_UMAX] = umax, [HCA_UB_UD_OP_UMIN] = umin,
};

static apply_fn
function_of(const struct hca_ub_atomic *a)
{
	switch (a->opcode) {
	case HCA_UB_TA_SWAP:
		return swap;
	case HCA_UB_TA_FETCH_ADD:
		return add;
	case HCA_UB_TA_FETCH_SUB:
		return sub;
	case HCA_UB_TA_FETCH_AND:
		return and;
	case HCA_UB_TA_FETCH_OR:
		return or ;
	case HCA_UB_TA_FETCH_XOR:
		return xor;
	default:
		return ud_ops[a->ud_op % HCA_UB_UD_OPS];
	}
}

void
hca_ub_atomic_apply(const struct hca_ub_atomic *a, const uint8_t *old, uint8_t *value)
{
	if (a->opcode == HCA_UB_TA_COMPARE_SWAP)
		memcpy(value, memcmp(old, a->operand[0], a->len) == 0 ? a->operand[1] : old,
		       a->len);
	else
		function_of(a)(value, old, a->operand[0], a->len);
}

/* ---- with the CPU's instructions ---- */

#define EXECUTE(bits) \
	static void execute_##bits(const struct hca_ub_atomic *a, void *p, uint8_t *old) \
	{ \
		uint##bits##_t *at = p, value, seen = __atomic_load_n(at, __ATOMIC_RELAXED); \
\
		do { \
			memcpy(old, &seen, sizeof(seen)); \
			hca_ub_atomic_apply(a, old, (uint8_t *)&value); \
		} while (!__atomic_compare_exchange_n(at, &seen, value, false, __ATOMIC_SEQ_CST, \
						      __ATOMIC_SEQ_CST)); \
	}
EXECUTE(8)
EXECUTE(16)
EXECUTE(32)
EXECUTE(64)
#undef EXECUTE

__extension__ typedef unsigned __int128 uint128;

/* The first guess may be torn: it is the exchange that reads. */
static void
execute_128(const struct hca_ub_atomic *a, void *p, uint8_t *old)
{
	uint128 *at = p, value, seen, found = 0;

	do {
		seen = found;
		memcpy(old, &seen, sizeof(seen));
		hca_ub_atomic_apply(a, old, (uint8_t *)&value);
		found = __sync_val_compare_and_swap(at, seen, value);
	} while (found != seen);
}

void
hca_ub_atomic_execute(const struct hca_ub_atomic *a, void *p, uint8_t *old)
{
	switch (a->len) {
	case 1:
		execute_8(a, p, old);
		return;
	case 2:
		execute_16(a, p, old);
		return;
	case 4:
		execute_32(a, p, old);
		return;
	case 8:
		execute_64(a, p, old);
		return;
	default:
		execute_128(a, p, old);
		return;
	}
}
