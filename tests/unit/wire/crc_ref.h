/* SPDX-License-Identifier: BSD-3-Clause */
/* CRC-32 bit by bit: slow, but obviously follows the definition. */
#ifndef TESTS_UNIT_WIRE_CRC_REF_H
#define TESTS_UNIT_WIRE_CRC_REF_H

#include <stddef.h>
#include <stdint.h>

static inline uint32_t
crc_ref(uint32_t seed, const void *p, size_t n)
{
	const uint8_t *b = p;
	uint32_t reg = ~seed;
	size_t i;
	int bit;

	for (i = 0; i < n; i++) {
		reg ^= b[i];
		for (bit = 0; bit < 8; bit++)
			reg = reg >> 1 ^ (reg & 1 ? 0xedb88320U : 0);
	}
	return ~reg;
}

#endif
