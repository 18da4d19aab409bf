/* SPDX-License-Identifier: BSD-3-Clause */
/* CRC-32 bit by bit: slow, but obviously follows the definition. */
#ifndef TESTS_UNIT_DEVICE_WIRE_CRC_REF_H
#define TESTS_UNIT_DEVICE_WIRE_CRC_REF_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

/* l3: IP and UDP header; sets the fields that every wire reads as ones. */
static inline void
mask_udp_ref(uint8_t *l3, int is_v6)
{
	uint8_t *udp = l3 + (is_v6 ? 40 : 20);

	if (is_v6) {
		l3[0] |= 0x0f; /* traffic class and flow label */
		memset(l3 + 1, 0xff, 3);
		l3[7] = 0xff; /* hop limit */
	} else {
		l3[1] = 0xff; /* TOS */
		l3[8] = 0xff; /* TTL */
		memset(l3 + 10, 0xff, 2);
	}
	memset(udp + 6, 0xff, 2); /* checksum */
}

/* l3: IP header, UDP and BTH of a RoCE frame. */
static inline void
mask_ref(uint8_t *l3, int is_v6)
{
	mask_udp_ref(l3, is_v6);
	l3[(is_v6 ? 40 : 20) + 8 + 4] = 0xff; /* of the BTH: FECN, BECN, reserved */
}

#endif
