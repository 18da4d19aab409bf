/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ICRC kernels for x86: PCLMULQDQ on 16-byte lanes, VPCLMULQDQ on 64-byte vectors.
 *
 * Both put the zeros that fill the first lane in FRONT of the message, where they do not count, so
 * every length ends on a whole lane and needs no tail. Up to 256 bytes no lane depends on another:
 * this makes short frames cheap. One inlined body serves crc, copy_crc and crc_burst; dst
 * or ones is a constant NULL where it is not wanted.
 */
#if defined(__x86_64__)

#include <immintrin.h>

#include "wire/icrc.h"
#include "wire/icrc_kernels.h"

#define SSE __attribute__((target("sse4.1,pclmul")))
#define Z512_FEATURES "avx512f,avx512bw,avx512vl,avx512dq,vpclmulqdq,pclmul,bmi2"
#define Z512 __attribute__((target(Z512_FEATURES)))
#define INLINE static inline __attribute__((always_inline))

#define LANES_DIRECT 16 /* entries of hca_icrc_lane */

/*
 * Bodies test dst and ones for NULL; callers that have them assert that, so that the tests are
 * optimized away.
 */
#define PRESENT(p) \
	do { \
		if ((p) == NULL) \
			__builtin_unreachable(); \
	} while (0)
#define AT(p, off) ((p) ? (p) + (off) : NULL)

/* S mod P; see icrc_kernels.h. */
INLINE SSE uint32_t
reduce(__m128i s)
{
	const __m128i mu_p = _mm_load_si128((const __m128i *)hca_icrc_mu_p);
	__m128i q = _mm_clmulepi64_si128(s, mu_p, 0x00);
	__m128i r = _mm_clmulepi64_si128(q, mu_p, 0x10);

	return _mm_extract_epi32(_mm_xor_si128(r, s), 2);
}

/* The register is its own S: nothing left to multiply. */
INLINE SSE __m128i
sum_of_reg(uint32_t reg)
{
	return _mm_set_epi64x(reg, 0);
}

/* Advances the register by 1 to 4 bytes. */
INLINE SSE uint32_t
few_bytes(uint32_t reg, uint8_t *dst, const uint8_t *src, const uint8_t *ones, unsigned int n)
{
	uint64_t v = 0;
	unsigned int i;
	uint8_t b;

	for (i = 0; i < n; i++) {
		b = src[i];
		if (dst)
			dst[i] = b;
		if (ones)
			b |= ones[i];
		v |= (uint64_t)b << (8 * i);
	}
	return reduce(_mm_set_epi64x((uint64_t)reg >> (8 * n), (v ^ reg) << (64 - 8 * n)));
}

INLINE SSE __m128i
load16(uint8_t *dst, const uint8_t *src, const uint8_t *ones)
{
	__m128i v = _mm_loadu_si128((const __m128i *)src);

	if (dst)
		_mm_storeu_si128((__m128i *)dst, v);
	if (ones)
		v = _mm_or_si128(v, _mm_loadu_si128((const __m128i *)ones));
	return v;
}

/* Both halves of a lane times their constants. */
INLINE SSE __m128i
product(__m128i x, const uint64_t *k)
{
	__m128i kk = _mm_load_si128((const __m128i *)k);

	return _mm_xor_si128(_mm_clmulepi64_si128(x, kk, 0x00), _mm_clmulepi64_si128(x, kk, 0x11));
}

/* The first r (1 to 16) bytes of x, moved to the end of the lane. */
INLINE SSE __m128i
right_align(__m128i x, unsigned int r)
{
	/* clang-format off */
	static const uint8_t slide[32] __attribute__((aligned(16))) = {
		0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
		0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
		0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
	};
	/* clang-format on */

	return _mm_shuffle_epi8(x, _mm_loadu_si128((const __m128i *)(slide + r)));
}

/* S of r + 16 * (lanes - 1) bytes, at least 16; 1 <= r <= 16, 1 <= lanes <= 16. */
INLINE SSE __m128i
sum_direct(uint32_t reg, uint8_t *dst, const uint8_t *src, const uint8_t *ones, unsigned int r,
	   unsigned int lanes)
{
	const uint64_t(*k)[2] = &hca_icrc_lane[LANES_DIRECT - lanes];
	unsigned int masked = HCA_ICRC_PATTERN_LEN / 16 + 1;
	/* With r < 4 the rest of the register meets the second lane. */
	uint64_t spill = (uint64_t)reg >> (8 * (r < 4 ? r : 4));
	__m128i x, s;
	unsigned int i;

	x = _mm_xor_si128(load16(dst, src, ones), _mm_cvtsi32_si128(reg));
	s = product(right_align(x, r), k[0]);
	src += r;
	dst = AT(dst, r);
	ones = AT(ones, r);
	if (lanes == 1)
		return s;
	x = _mm_xor_si128(load16(dst, src, ones), _mm_cvtsi64_si128(spill));
	s = _mm_xor_si128(s, product(x, k[1]));
	for (i = 2; ones && i < lanes && i < masked; i++) {
		x = load16(AT(dst, 16 * (i - 1)), src + 16 * (i - 1), ones + 16 * (i - 1));
		s = _mm_xor_si128(s, product(x, k[i]));
	}
	for (; i < lanes; i++) {
		x = load16(AT(dst, 16 * (i - 1)), src + 16 * (i - 1), NULL);
		s = _mm_xor_si128(s, product(x, k[i]));
	}
	return s;
}

/* S of n bytes, n a multiple of 128 and not 0: eight lanes fold over 128 bytes at a time. */
INLINE SSE __m128i
sum_folded(uint32_t reg, uint8_t *dst, const uint8_t *src, size_t n)
{
	__m128i x[8], s;
	size_t off;
	int i;

	for (i = 0; i < 8; i++)
		x[i] = load16(AT(dst, 16 * i), src + 16 * i, NULL);
	x[0] = _mm_xor_si128(x[0], _mm_cvtsi32_si128(reg));
	for (off = 128; off < n; off += 128)
		for (i = 0; i < 8; i++)
			x[i] = _mm_xor_si128(product(x[i], hca_icrc_fold128),
					     load16(AT(dst, off + 16 * i), src + off + 16 * i,
						    NULL));
	s = product(x[0], hca_icrc_lane[LANES_DIRECT - 8]);
	for (i = 1; i < 8; i++)
		s = _mm_xor_si128(s, product(x[i], hca_icrc_lane[LANES_DIRECT - 8 + i]));
	return s;
}

INLINE SSE uint32_t
short_sse(uint32_t reg, uint8_t *dst, const uint8_t *src, const uint8_t *ones, size_t n)
{
	unsigned int m;
	size_t off;

	for (off = 0; off < n; off += m) {
		m = n - off < 4 ? n - off : 4;
		reg = few_bytes(reg, AT(dst, off), src + off, AT(ones, off), m);
	}
	return reg;
}

/* The head takes 9 to 16 lanes when a folded part follows, so it holds all that is masked. */
INLINE SSE uint32_t
body_sse(uint32_t seed, uint8_t *dst, const uint8_t *src, const uint8_t *ones, size_t n)
{
	uint32_t reg = ~seed;
	unsigned int r;
	size_t lanes, head, len;

	if (n < 16)
		return ~short_sse(reg, dst, src, ones, n);
	r = ((n - 1) & 15) + 1;
	lanes = (n - r) / 16 + 1;
	head = lanes <= LANES_DIRECT ? lanes : ((lanes - 1) & 7) + 9;
	reg = reduce(sum_direct(reg, dst, src, ones, r, head));
	if (head == lanes)
		return ~reg;
	len = r + 16 * (head - 1);
	return ~reduce(sum_folded(reg, AT(dst, len), src + len, n - len));
}

static SSE uint32_t
crc_sse(uint32_t seed, const void *p, size_t n)
{
	return body_sse(seed, NULL, p, NULL, n);
}

static SSE uint32_t
copy_crc_sse(uint32_t seed, void *dst, const void *src, size_t n)
{
	if (n == 0)
		return seed;
	PRESENT(dst);
	return body_sse(seed, dst, src, NULL, n);
}

static SSE void
crc_burst_sse(const struct hca_icrc_span *spans, uint32_t *out, unsigned int n)
{
	const struct hca_icrc_span *s;
	unsigned int i;

	for (i = 0; i < n; i++) {
		s = &spans[i];
		PRESENT(s->ones);
		out[i] = body_sse(s->seed, NULL, s->data, s->ones, s->len);
	}
}

const struct hca_icrc_ops hca_icrc_ops_sse = {
	.name = "sse",
	.crc = crc_sse,
	.copy_crc = copy_crc_sse,
	.crc_burst = crc_burst_sse,
	.copy = hca_copy_libc,
	.copy_ahead = hca_copy_ahead_libc,
};

const struct hca_icrc_ops hca_icrc_ops_avx2 = {
	.name = "avx2",
	.crc = crc_sse,
	.copy_crc = copy_crc_sse,
	.crc_burst = crc_burst_sse,
	.copy = hca_copy_avx2,
	.copy_ahead = hca_copy_ahead_avx2,
};

/* From here on: four lanes per vector. */

#define XOR3 0x96 /* ternary logic: a ^ b ^ c */

INLINE Z512 __m512i
load64(uint8_t *dst, const uint8_t *src)
{
	__m512i v = _mm512_loadu_si512(src);

	if (dst)
		_mm512_storeu_si512(dst, v);
	return v;
}

INLINE Z512 __m512i
muladd(__m512i x, __m512i k, __m512i add)
{
	return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(x, k, 0x00),
					 _mm512_clmulepi64_epi128(x, k, 0x11), add, XOR3);
}

/* Vector v (3 = last) of the final 256 bytes times its lane constants. */
INLINE Z512 __m512i
product_z(__m512i x, int v)
{
	const __m512i k = _mm512_load_si512(hca_icrc_lane[4 * v]);

	return _mm512_xor_si512(_mm512_clmulepi64_epi128(x, k, 0x00),
				_mm512_clmulepi64_epi128(x, k, 0x11));
}

INLINE Z512 __m512i
add_product_z(__m512i x, int v, __m512i s)
{
	return muladd(x, _mm512_load_si512(hca_icrc_lane[4 * v]), s);
}

/*
 * The first vector: pad zeros, then 64 - pad bytes, with the register in the first four bytes. It
 * is loaded from pad bytes before the data with those masked off, which cannot fault.
 */
INLINE Z512 __m512i
load_first(uint32_t reg, uint8_t *dst, const uint8_t *src, const uint8_t *ones, unsigned int pad)
{
	__mmask16 m = 0xffffU << (pad / 4);
	__m512i x = _mm512_maskz_loadu_epi32(m, src - pad);

	if (dst)
		_mm512_mask_storeu_epi32(dst - pad, m, x);
	if (ones)
		x = _mm512_or_si512(x, _mm512_maskz_loadu_epi32(m, ones - pad));
	return _mm512_xor_si512(x, _mm512_maskz_set1_epi32(1U << (pad / 4), reg));
}

/* The part of the pattern in the second vector; the third is past it. */
INLINE Z512 __m512i
load_late(const uint8_t *ones, unsigned int pad)
{
	return ones ? _mm512_loadu_si512(ones + 64 - pad) : _mm512_setzero_si512();
}

INLINE Z512 __m512i
load_second(uint8_t *dst, const uint8_t *src, const uint8_t *ones, unsigned int pad)
{
	__m512i x = load64(AT(dst, 64 - pad), src + 64 - pad);

	return ones ? _mm512_or_si512(x, load_late(ones, pad)) : x;
}

/* S of n bytes, spread over four lanes; n a multiple of 4, 4 <= n <= 256. */
INLINE Z512 __m512i
sum_direct_z(uint32_t reg, uint8_t *dst, const uint8_t *src, const uint8_t *ones, size_t n)
{
	unsigned int pad = -n & 63;
	__m512i x = load_first(reg, dst, src, ones, pad), s;

	if (n <= 64)
		return product_z(x, 3);
	if (n <= 128) {
		s = product_z(x, 2);
		return add_product_z(load_second(dst, src, ones, pad), 3, s);
	}
	if (n <= 192) {
		s = product_z(x, 1);
		s = add_product_z(load_second(dst, src, ones, pad), 2, s);
		return add_product_z(load64(AT(dst, 128 - pad), src + 128 - pad), 3, s);
	}
	s = product_z(x, 0);
	s = add_product_z(load_second(dst, src, ones, pad), 1, s);
	s = add_product_z(load64(AT(dst, 128 - pad), src + 128 - pad), 2, s);
	return add_product_z(load64(AT(dst, 192 - pad), src + 192 - pad), 3, s);
}

/*
 * S of more than 256 bytes, a multiple of 4: the head fills the last of four vectors as above,
 * then all four move over 256 bytes at a time.
 */
INLINE Z512 __m512i
sum_folded_z(uint32_t reg, uint8_t *dst, const uint8_t *src, const uint8_t *ones, size_t n)
{
	const __m512i k = _mm512_broadcast_i32x4(_mm_load_si128((const __m128i *)hca_icrc_fold256));
	const uint8_t *end = src + n;
	unsigned int head = ((n - 1) & 255) + 1, pad = -head & 63;
	__m512i x0 = _mm512_setzero_si512(), x1 = x0, x2 = x0, x3, late = x0;

	x3 = load_first(reg, dst, src, ones, pad);
	if (head <= 64) {
		late = load_late(ones, pad);
	} else {
		x2 = x3;
		x3 = load_second(dst, src, ones, pad);
	}
	if (head > 128) {
		x1 = x2;
		x2 = x3;
		x3 = load64(AT(dst, 128 - pad), src + 128 - pad);
	}
	if (head > 192) {
		x0 = x1;
		x1 = x2;
		x2 = x3;
		x3 = load64(AT(dst, 192 - pad), src + 192 - pad);
	}
	src += head;
	dst = AT(dst, head);
	do {
		x0 = muladd(x0, k, _mm512_or_si512(load64(dst, src), late));
		x1 = muladd(x1, k, load64(AT(dst, 64), src + 64));
		x2 = muladd(x2, k, load64(AT(dst, 128), src + 128));
		x3 = muladd(x3, k, load64(AT(dst, 192), src + 192));
		late = _mm512_setzero_si512();
		src += 256;
		dst = AT(dst, 256);
	} while (src != end);
	x0 = add_product_z(x0, 0, product_z(x1, 1));
	return add_product_z(x2, 2, add_product_z(x3, 3, x0));
}

/* Any length but whole words up to 256 bytes: out of the way of short frames. */
INLINE Z512 __m512i
sum_any_z(uint32_t reg, uint8_t *dst, const uint8_t *src, const uint8_t *ones, size_t n)
{
	unsigned int odd = n & 3;

	if (odd != 0) {
		reg = few_bytes(reg, dst, src, ones, odd);
		src += odd;
		dst = AT(dst, odd);
		ones = AT(ones, odd);
		n -= odd;
	}
	if (n == 0)
		return _mm512_zextsi128_si512(sum_of_reg(reg));
	if (n <= 256)
		return sum_direct_z(reg, dst, src, ones, n);
	return sum_folded_z(reg, dst, src, ones, n);
}

static __attribute__((noinline)) Z512 __m512i
crc_any_z(uint32_t reg, const uint8_t *src, size_t n)
{
	return sum_any_z(reg, NULL, src, NULL, n);
}

static __attribute__((noinline)) Z512 __m512i
copy_crc_any_z(uint32_t reg, uint8_t *dst, const uint8_t *src, size_t n)
{
	if (n == 0)
		return _mm512_zextsi128_si512(sum_of_reg(reg));
	PRESENT(dst);
	return sum_any_z(reg, dst, src, NULL, n);
}

static __attribute__((noinline)) Z512 __m512i
span_any_z(const struct hca_icrc_span *s)
{
	PRESENT(s->ones);
	return sum_any_z(~s->seed, NULL, s->data, s->ones, s->len);
}

INLINE int
is_direct(size_t n)
{
	return __builtin_expect((n & 3) == 0 && n - 1 < 256, 1);
}

INLINE Z512 uint32_t
reduce_z(__m512i s)
{
	__m256i y = _mm256_xor_si256(_mm512_castsi512_si256(s), _mm512_extracti64x4_epi64(s, 1));

	return reduce(_mm_xor_si128(_mm256_castsi256_si128(y), _mm256_extracti128_si256(y, 1)));
}

static Z512 uint32_t
crc_z(uint32_t seed, const void *p, size_t n)
{
	if (is_direct(n))
		return ~reduce_z(sum_direct_z(~seed, NULL, p, NULL, n));
	return ~reduce_z(crc_any_z(~seed, p, n));
}

static Z512 uint32_t
copy_crc_z(uint32_t seed, void *dst, const void *src, size_t n)
{
	if (is_direct(n)) {
		PRESENT(dst);
		return ~reduce_z(sum_direct_z(~seed, dst, src, NULL, n));
	}
	return ~reduce_z(copy_crc_any_z(~seed, dst, src, n));
}

INLINE Z512 __m512i
sum_span_z(const struct hca_icrc_span *s)
{
	PRESENT(s->ones);
	if (is_direct(s->len))
		return sum_direct_z(~s->seed, NULL, s->data, s->ones, s->len);
	return span_any_z(s);
}

/* Four sums become the four lanes of one vector, so four frames share one reduction. */
INLINE Z512 __m128i
reduce4_z(__m512i a, __m512i b, __m512i c, __m512i d)
{
	const __m512i mu_p = _mm512_broadcast_i32x4(_mm_load_si128((const __m128i *)hca_icrc_mu_p));
	const __m512i dword2 = _mm512_castsi128_si512(_mm_set_epi32(14, 10, 6, 2));
	__m512i ab = _mm512_xor_si512(_mm512_shuffle_i64x2(a, b, 0x44),
				      _mm512_shuffle_i64x2(a, b, 0xee));
	__m512i cd = _mm512_xor_si512(_mm512_shuffle_i64x2(c, d, 0x44),
				      _mm512_shuffle_i64x2(c, d, 0xee));
	__m512i s = _mm512_xor_si512(_mm512_shuffle_i64x2(ab, cd, 0x88),
				     _mm512_shuffle_i64x2(ab, cd, 0xdd));
	__m512i q = _mm512_clmulepi64_epi128(s, mu_p, 0x00);
	__m512i r = _mm512_clmulepi64_epi128(q, mu_p, 0x10);

	r = _mm512_permutexvar_epi32(dword2, _mm512_xor_si512(r, s));
	return _mm_xor_si128(_mm512_castsi512_si128(r), _mm_set1_epi32(-1));
}

static Z512 void
crc_burst_z(const struct hca_icrc_span *spans, uint32_t *out, unsigned int n)
{
	__m512i a, b, c, d;
	unsigned int i;

	for (i = 0; i + 4 <= n; i += 4) {
		a = sum_span_z(&spans[i]);
		b = sum_span_z(&spans[i + 1]);
		c = sum_span_z(&spans[i + 2]);
		d = sum_span_z(&spans[i + 3]);
		_mm_storeu_si128((__m128i *)(out + i), reduce4_z(a, b, c, d));
	}
	for (; i < n; i++)
		out[i] = ~reduce_z(sum_span_z(&spans[i]));
}

const struct hca_icrc_ops hca_icrc_ops_avx512 = {
	.name = "avx512",
	.crc = crc_z,
	.copy_crc = copy_crc_z,
	.crc_burst = crc_burst_z,
	.copy = hca_copy_avx512,
	.copy_ahead = hca_copy_ahead_avx512,
};

#else
typedef int hca_icrc_x86_not_built;
#endif
