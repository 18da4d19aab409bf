/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The invariant CRC of the wires and the copy kernels of the data path.
 *
 * The ICRC is the CRC-32 of Ethernet over everything from the IP header to the last pad byte, with
 * the fields a router may change read as ones. These fields, and the bytes in front (RoCEv2:
 * eight bytes of ones), depend on the wire. It travels least significant byte first, directly
 * after the pad bytes.
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
#include "core/tsan.h"
#include "wire/wire_view.h"

/* Where the CRC of a frame starts, by wire. RoCE: the state after eight bytes of ones. */
static const uint32_t hca_icrc_seed[HCA_WIRES] = {
	[HCA_WIRE_ROCE] = 0x2144df1cU,
	[HCA_WIRE_UB] = 0,
};

/* Bytes from the IP header to byte 4 of the transport header: no pattern is longer. */
#define HCA_ICRC_PATTERN_LEN 64
/* Zeros on both sides of a pattern, so that kernels may load it at any shift. */
#define HCA_ICRC_PATTERN_GUARD 64

/*
 * Patterns of ones that are ORed over the first bytes of a span while it is read: the frame itself
 * stays as it is. By wire and IP version (0: IPv4, 1: IPv6); the guard bytes around them are part
 * of the contract. That of HCA_WIRE_NONE masks nothing: its spans are not frames.
 */
extern const uint8_t hca_icrc_patterns[HCA_WIRES][2]
				      [HCA_ICRC_PATTERN_LEN + 3 * HCA_ICRC_PATTERN_GUARD];

static inline const uint8_t *
hca_icrc_ones(enum hca_wire wire, uint8_t ip_version)
{
	return &hca_icrc_patterns[wire][ip_version == 6][HCA_ICRC_PATTERN_GUARD];
}

#define hca_icrc_ones_none (&hca_icrc_patterns[HCA_WIRE_NONE][0][HCA_ICRC_PATTERN_GUARD])

/* One run of bytes of a burst. */
struct hca_icrc_span {
	const void *data;
	const uint8_t *ones; /* of hca_icrc_ones() */
	uint32_t len;
	uint32_t seed;
};

/* The span that the ICRC of a frame covers: len bytes from its IP header on. */
static inline struct hca_icrc_span
hca_icrc_span_of(enum hca_wire wire, uint8_t ip_version, const uint8_t *l3, uint32_t len)
{
	return (struct hca_icrc_span){l3, hca_icrc_ones(wire, ip_version), len,
				      hca_icrc_seed[wire]};
}

/* The same for a frame that hca_wire_parse() has taken. */
static inline struct hca_icrc_span
hca_icrc_span_of_view(const uint8_t *frame, const struct hca_wire_view *v)
{
	return hca_icrc_span_of(v->wire, v->ip_version, frame + v->l3, v->icrc - v->l3);
}

/* Prefetch n bytes at any address. */
static inline void
hca_prefetch(const void *p, size_t n)
{
	for (size_t at = 0; at < n; at += 64)
		__builtin_prefetch((const uint8_t *)p + at);
}

/* One set of kernels; const, chosen once per HCA. */
struct hca_icrc_ops {
	const char *name;
	uint32_t (*crc)(uint32_t seed, const void *p, size_t n);
	/* Copy and CRC of the bytes copied, in one pass. */
	uint32_t (*copy_crc)(uint32_t seed, void *dst, const void *src, size_t n);
	/* out[i] = CRC of spans[i]; independent spans overlap in the pipeline of the CPU. */
	void (*crc_burst)(const struct hca_icrc_span *spans, uint32_t *out, unsigned int n);
	void (*copy)(void *dst, const void *src, size_t n);
	/*
	 * The same for a part of a long message: the n bytes at dst + n are prefetched, where the
	 * next part is stored, and where the prefetcher of the CPU begins again. Kernels with
	 * AVX-512 do so for n > 256, with AVX2 for n > 128; shorter parts are only copied.
	 */
	void (*copy_ahead)(void *dst, const void *src, size_t n);
};

/* The fastest kernels this CPU runs. Never NULL. */
const struct hca_icrc_ops *hca_icrc_select(void);

/*
 * Kernel set number i of those this CPU runs, fastest first, ending with the portable one; NULL
 * past the end. For tests and for a configuration that pins a kernel.
 */
const struct hca_icrc_ops *hca_icrc_nth(unsigned int i);

/*
 * Programs may let several peers write the same memory at once. ThreadSanitizer does not see the
 * stores of the kernels.
 */
#ifdef HCA_TSAN
#define HCA_COPY_IN_LINE 0
#else
#define HCA_COPY_IN_LINE 1
#endif

/* Copy; in line where a call would take as long as the copy itself: 16 to 64 bytes. */
static inline void
hca_copy(const struct hca_icrc_ops *ops, void *dst, const void *src, size_t n)
{
	const uint8_t *s = src;
	uint8_t *d = dst, head[2][16], tail[2][16];

	if (__builtin_expect(!HCA_COPY_IN_LINE || n - 16 > 48, 0)) {
		ops->copy(dst, src, n);
		return;
	}
	/* two overlapping moves from both ends, or four */
	memcpy(head[0], s, 16);
	memcpy(tail[0], s + n - 16, 16);
	if (n > 32) {
		memcpy(head[1], s + 16, 16);
		memcpy(tail[1], s + n - 32, 16);
		memcpy(d + 16, head[1], 16);
		memcpy(d + n - 32, tail[1], 16);
	}
	memcpy(d, head[0], 16);
	memcpy(d + n - 16, tail[0], 16);
}

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
	hca_copy(ops, dst, src, n - 1);
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

#endif
