/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UB_TP_TP_BITS_H
#define UB_TP_TP_BITS_H

/* Rings of bits, one for each PSN of a window. Their size is a power of two of at least 64. */

#include <stdbool.h>
#include <stdint.h>

static inline bool
hca_bit_test(const uint64_t *ring, uint32_t mask, uint32_t psn)
{
	return ring[(psn & mask) >> 6] >> (psn & 63) & 1;
}

static inline void
hca_bit_set(uint64_t *ring, uint32_t mask, uint32_t psn)
{
	ring[(psn & mask) >> 6] |= UINT64_C(1) << (psn & 63);
}

static inline void
hca_bit_clear(uint64_t *ring, uint32_t mask, uint32_t psn)
{
	ring[(psn & mask) >> 6] &= ~(UINT64_C(1) << (psn & 63));
}

/* The 64 bits from that of psn on. */
static inline uint64_t
hca_bits_at(const uint64_t *ring, uint32_t mask, uint32_t psn)
{
	uint32_t word = (psn & mask) >> 6, shift = psn & 63;
	uint64_t low = ring[word] >> shift;

	return shift == 0 ? low : low | ring[(word + 1) & (mask >> 6)] << (64 - shift);
}

/* Mask of the bits that stand for from..to - 1, when bit 0 stands for base. */
static inline uint64_t
hca_bits_range(uint32_t base, uint32_t from, uint32_t to)
{
	uint64_t mask = ~UINT64_C(0);

	if (from >= base + 64 || to <= base || from >= to)
		return 0;
	if (from > base)
		mask &= ~UINT64_C(0) << (from - base);
	if (to < base + 64)
		mask &= ~UINT64_C(0) >> (base + 64 - to);
	return mask;
}

#endif
