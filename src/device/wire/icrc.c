/* SPDX-License-Identifier: BSD-3-Clause */
/* The portable kernels (ISA-L and libc), the shared constants and the choice at run time. */
#include <isa-l/crc.h>

#include "wire/icrc.h"
#include "wire/icrc_kernels.h"

#define GUARD HCA_ICRC_PATTERN_GUARD

/* Where a byte of ones stands in a pattern, by its offset from the IP header. */
#define ONES(offset) [GUARD + (offset)] = 0xff

/* TOS, TTL, checksum; checksum of UDP. */
#define IPV4_ONES ONES(1), ONES(8), ONES(10), ONES(11), ONES(26), ONES(27)
/* Traffic class and flow label, hop limit; checksum of UDP. */
#define IPV6_ONES [GUARD] = 0x0f, ONES(1), ONES(2), ONES(3), ONES(7), ONES(46), ONES(47)

/* RoCE's patterns also have, in the BTH: the byte with FECN, BECN and reserved bits. */
const uint8_t hca_icrc_patterns[HCA_WIRES][2][HCA_ICRC_PATTERN_LEN + 3 * GUARD] = {
	[HCA_WIRE_ROCE] =
		{
			{IPV4_ONES, ONES(28 + 4)},
			{IPV6_ONES, ONES(48 + 4)},
		},
	[HCA_WIRE_UB] =
		{
			{IPV4_ONES},
			{IPV6_ONES},
		},
};

const uint64_t hca_icrc_mu_p[2] __attribute__((aligned(16))) = {
	0xb4e5b025f7011641ULL,
	0x1db710641ULL,
};

const uint64_t hca_icrc_fold128[2] __attribute__((aligned(16))) = {
	0x1e88ef372ULL,
	0x14a7fe880ULL,
};

const uint64_t hca_icrc_fold256[2] __attribute__((aligned(16))) = {
	0x11542778aULL,
	0x1322d1430ULL,
};

const uint64_t hca_icrc_lane[16][2] __attribute__((aligned(64))) = {
	{0x1322d1430ULL, 0x1db06f64cULL}, {0x1c47d2a9cULL, 0x19159bb02ULL},
	{0x125f17dfcULL, 0x1b35adb0eULL}, {0x1e7146aacULL, 0x1821d8bc0ULL},
	{0x12e958ac4ULL, 0x1816ab61cULL}, {0x10aae2566ULL, 0x0e3543be0ULL},
	{0x14b57d3f0ULL, 0x1fdc60a7cULL}, {0x03f41287aULL, 0x1e88ef372ULL},
	{0x14a7fe880ULL, 0x1ea89367eULL}, {0x1d7cfc6acULL, 0x0df068dc2ULL},
	{0x18cb44e58ULL, 0x1c7569e54ULL}, {0x0ae0b5394ULL, 0x154442bd4ULL},
	{0x1c6e41596ULL, 0x03db1ecdcULL}, {0x174359406ULL, 0x0f1da05aaULL},
	{0x15a546366ULL, 0x1751997d0ULL}, {0x0ccaa009eULL, 0x1db710640ULL},
};

static uint32_t
crc_isal(uint32_t seed, const void *p, size_t n)
{
	return crc32_gzip_refl(seed, p, n);
}

static uint32_t
copy_crc_isal(uint32_t seed, void *dst, const void *src, size_t n)
{
	if (n == 0)
		return seed;
	memcpy(dst, src, n);
	return crc32_gzip_refl(seed, dst, n);
}

/* The masked head goes through a scratch copy, the rest is read in place. */
static uint32_t
crc_span_isal(const struct hca_icrc_span *s)
{
	uint8_t head[HCA_ICRC_PATTERN_LEN];
	uint32_t n = s->len < sizeof(head) ? s->len : sizeof(head);
	uint32_t i, crc;

	if (s->ones == hca_icrc_ones_none)
		return crc32_gzip_refl(s->seed, s->data, s->len);
	for (i = 0; i < n; i++)
		head[i] = ((const uint8_t *)s->data)[i] | s->ones[i];
	crc = crc32_gzip_refl(s->seed, head, n);
	return crc32_gzip_refl(crc, (const uint8_t *)s->data + n, s->len - n);
}

static void
crc_burst_isal(const struct hca_icrc_span *spans, uint32_t *out, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		out[i] = crc_span_isal(&spans[i]);
}

void
hca_copy_libc(void *dst, const void *src, size_t n)
{
	if (n > 0)
		memcpy(dst, src, n);
}

void
hca_copy_ahead_libc(void *dst, const void *src, size_t n)
{
	hca_prefetch((const uint8_t *)dst + n, n);
	hca_copy_libc(dst, src, n);
}

static const struct hca_icrc_ops ops_portable = {
	.name = "portable",
	.crc = crc_isal,
	.copy_crc = copy_crc_isal,
	.crc_burst = crc_burst_isal,
	.copy = hca_copy_libc,
	.copy_ahead = hca_copy_ahead_libc,
};

#if defined(__x86_64__)

/* __builtin_cpu_supports also asks the operating system whether it saves the registers. */
static int
have_avx512(void)
{
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
	       __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("bmi2");
}

static int
have_sse(void)
{
	return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
}

static int
have_avx2(void)
{
	return have_sse() && __builtin_cpu_supports("avx2");
}

static const struct {
	int (*usable)(void);
	const struct hca_icrc_ops *ops;
} candidates[] = {
	{have_avx512, &hca_icrc_ops_avx512},
	{have_avx2, &hca_icrc_ops_avx2},
	{have_sse, &hca_icrc_ops_sse},
};

const struct hca_icrc_ops *
hca_icrc_nth(unsigned int i)
{
	size_t c;

	__builtin_cpu_init();
	for (c = 0; c < sizeof(candidates) / sizeof(candidates[0]); c++)
		if (candidates[c].usable() && i-- == 0)
			return candidates[c].ops;
	return i == 0 ? &ops_portable : NULL;
}

#else

const struct hca_icrc_ops *
hca_icrc_nth(unsigned int i)
{
	return i == 0 ? &ops_portable : NULL;
}

#endif

const struct hca_icrc_ops *
hca_icrc_select(void)
{
	return hca_icrc_nth(0);
}
