/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The invariant CRC of RoCEv2 and the copy kernels of the data path.
 *
 * The ICRC is the CRC-32 of Ethernet over eight bytes of ones followed by everything from the IP
 * header to the last pad byte, with the fields a router may change read as ones. It travels least
 * significant byte first, directly after the pad bytes.
 *
 * Every kernel takes and returns the CRC in the convention of zlib and ISA-L (inverted on both
 * sides), so results chain: crc(crc(s, a, n), a + n, m) == crc(s, a, n + m).
 *
 * Used by encap, decap, vtp (copies) and the tests, on any lcore. Kernels keep no
 * state, never read outside [p, p + n) and never write outside [dst, dst + n). dst and src must
 * not overlap. Any alignment, any length.
 */
#ifndef DEVICE_WIRE_ICRC_H
#define DEVICE_WIRE_ICRC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "abi_roce.h"

/* CRC state after the eight bytes of ones: where the CRC of every frame starts. */
#define HCA_ICRC_SEED 0x2144df1cU

/* Bytes from the IP header to BTH byte 4, inclusive: no pattern of variant fields is longer. */
#define HCA_ICRC_PATTERN_LEN 64
/* Zeros on both sides of a pattern, so that kernels may load it at any shift. */
#define HCA_ICRC_PATTERN_GUARD 64

/*
 * A pattern of ones that is ORed over the first bytes of a span while it is read: the frame itself
 * stays as it is. Point at hca_icrc_ones_*; the guard bytes around them are part of the contract.
 */
extern const uint8_t hca_icrc_ones_table[3][HCA_ICRC_PATTERN_LEN + 3 * HCA_ICRC_PATTERN_GUARD];

/* Nothing masked: the frame was built with its variant fields as ones, or is no frame. */
#define hca_icrc_ones_none (&hca_icrc_ones_table[0][HCA_ICRC_PATTERN_GUARD])
/* IPv4 without options, UDP, BTH. */
#define hca_icrc_ones_ipv4 (&hca_icrc_ones_table[1][HCA_ICRC_PATTERN_GUARD])
/* IPv6 without extension headers, UDP, BTH. */
#define hca_icrc_ones_ipv6 (&hca_icrc_ones_table[2][HCA_ICRC_PATTERN_GUARD])

/* One run of bytes of a burst. */
struct hca_icrc_span {
	const void *data;
	const uint8_t *ones; /* one of hca_icrc_ones_* */
	uint32_t len;
	uint32_t seed;
};

/* One set of kernels; const, chosen once per HCA. */
struct hca_icrc_ops {
	const char *name;
	uint32_t (*crc)(uint32_t seed, const void *p, size_t n);
	/* Copy and CRC of the bytes copied, in one pass. */
	uint32_t (*copy_crc)(uint32_t seed, void *dst, const void *src, size_t n);
	/* out[i] = CRC of spans[i]; independent spans overlap in the pipeline of the CPU. */
	void (*crc_burst)(const struct hca_icrc_span *spans, uint32_t *out, unsigned int n);
	void (*copy)(void *dst, const void *src, size_t n);
};

/* The fastest kernels this CPU runs. Never NULL. */
const struct hca_icrc_ops *hca_icrc_select(void);

/*
 * Kernel set number i of those this CPU runs, fastest first, ending with the portable one; NULL
 * past the end. For tests and for a configuration that pins a kernel.
 */
const struct hca_icrc_ops *hca_icrc_nth(unsigned int i);

/*
 * Copies so that the last byte becomes visible after all others, which programs that poll the
 * last byte of a message rely on.
 */
static inline void
hca_copy_last_byte_last(const struct hca_icrc_ops *ops, void *dst, const void *src, size_t n)
{
	uint8_t *last;

	if (n == 0)
		return;
	last = (uint8_t *)dst + n - 1;
	ops->copy(dst, src, n - 1);
	__atomic_store_n(last, ((const uint8_t *)src)[n - 1], __ATOMIC_RELEASE);
}

/* The ICRC as it stands on the wire. */
static inline void
hca_icrc_store(void *p, uint32_t icrc)
{
	uint8_t b[HCA_ICRC_LEN] = {icrc, icrc >> 8, icrc >> 16, icrc >> 24};

	memcpy(p, b, sizeof(b));
}

static inline uint32_t
hca_icrc_load(const void *p)
{
	const uint8_t *b = p;

	return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

/* Offsets from the IP header of the fields that are masked. */
#define HCA_ICRC_V4_TOS 1
#define HCA_ICRC_V4_TTL 8
#define HCA_ICRC_V4_CSUM 10
#define HCA_ICRC_V4_UDP_CSUM 26
#define HCA_ICRC_V4_BTH4 32
#define HCA_ICRC_V6_HOP 7
#define HCA_ICRC_V6_UDP_CSUM 46
#define HCA_ICRC_V6_BTH4 52

/* What hca_icrc_mask() took out of a frame, for hca_icrc_unmask(). */
struct hca_icrc_saved {
	uint8_t word0[4]; /* version, class, flow label; of IPv4 only TOS counts */
	uint8_t hop;	  /* TTL or hop limit */
	uint8_t csum[2];  /* IPv4 only */
	uint8_t udp_csum[2];
	uint8_t bth4;
};

/* Sets the variant fields of an IPv4 frame to ones; l3 points at its IP header, IHL = 5. */
static inline void
hca_icrc_mask_ipv4(uint8_t *l3, struct hca_icrc_saved *saved)
{
	memcpy(saved->word0, l3, 4);
	saved->hop = l3[HCA_ICRC_V4_TTL];
	memcpy(saved->csum, l3 + HCA_ICRC_V4_CSUM, 2);
	memcpy(saved->udp_csum, l3 + HCA_ICRC_V4_UDP_CSUM, 2);
	saved->bth4 = l3[HCA_ICRC_V4_BTH4];
	l3[HCA_ICRC_V4_TOS] = 0xff;
	l3[HCA_ICRC_V4_TTL] = 0xff;
	memset(l3 + HCA_ICRC_V4_CSUM, 0xff, 2);
	memset(l3 + HCA_ICRC_V4_UDP_CSUM, 0xff, 2);
	l3[HCA_ICRC_V4_BTH4] = 0xff;
}

static inline void
hca_icrc_unmask_ipv4(uint8_t *l3, const struct hca_icrc_saved *saved)
{
	l3[HCA_ICRC_V4_TOS] = saved->word0[HCA_ICRC_V4_TOS];
	l3[HCA_ICRC_V4_TTL] = saved->hop;
	memcpy(l3 + HCA_ICRC_V4_CSUM, saved->csum, 2);
	memcpy(l3 + HCA_ICRC_V4_UDP_CSUM, saved->udp_csum, 2);
	l3[HCA_ICRC_V4_BTH4] = saved->bth4;
}

/* The same for IPv6: the version nibble is the only part of its first word that is covered. */
static inline void
hca_icrc_mask_ipv6(uint8_t *l3, struct hca_icrc_saved *saved)
{
	memcpy(saved->word0, l3, 4);
	saved->hop = l3[HCA_ICRC_V6_HOP];
	memset(saved->csum, 0, sizeof(saved->csum));
	memcpy(saved->udp_csum, l3 + HCA_ICRC_V6_UDP_CSUM, 2);
	saved->bth4 = l3[HCA_ICRC_V6_BTH4];
	l3[0] |= 0x0f;
	memset(l3 + 1, 0xff, 3);
	l3[HCA_ICRC_V6_HOP] = 0xff;
	memset(l3 + HCA_ICRC_V6_UDP_CSUM, 0xff, 2);
	l3[HCA_ICRC_V6_BTH4] = 0xff;
}

static inline void
hca_icrc_unmask_ipv6(uint8_t *l3, const struct hca_icrc_saved *saved)
{
	memcpy(l3, saved->word0, 4);
	l3[HCA_ICRC_V6_HOP] = saved->hop;
	memcpy(l3 + HCA_ICRC_V6_UDP_CSUM, saved->udp_csum, 2);
	l3[HCA_ICRC_V6_BTH4] = saved->bth4;
}

/* By address family: is_v6 as hca_roce_view has it. */
static inline void
hca_icrc_mask(uint8_t *l3, int is_v6, struct hca_icrc_saved *saved)
{
	if (is_v6)
		hca_icrc_mask_ipv6(l3, saved);
	else
		hca_icrc_mask_ipv4(l3, saved);
}

static inline void
hca_icrc_unmask(uint8_t *l3, int is_v6, const struct hca_icrc_saved *saved)
{
	if (is_v6)
		hca_icrc_unmask_ipv6(l3, saved);
	else
		hca_icrc_unmask_ipv4(l3, saved);
}

#endif
