/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copy kernels for x86. Short lengths use two overlapping moves from both ends instead of a cascade
 * of branches; long ones a loop with aligned stores, because a store that crosses a cache line
 * costs more than a load that does.
 */
#if defined(__x86_64__)

#include <immintrin.h>
#include <stdbool.h>

#include "wire/icrc.h"
#include "wire/icrc_kernels.h"

#define Z512 __attribute__((target("avx512f,avx512bw,avx512vl,bmi2")))
#define AVX2 __attribute__((target("avx2")))
#define INLINE static inline __attribute__((always_inline))

INLINE Z512 void
move64(uint8_t *dst, const uint8_t *src)
{
	_mm512_storeu_si512(dst, _mm512_loadu_si512(src));
}

/*
 * n > 256. The head and the last 256 bytes overlap the loop. ahead: the n bytes at dst + n are
 * prefetched.
 */
INLINE Z512 void
copy_long_z(uint8_t *dst, const uint8_t *src, size_t n, const bool ahead)
{
	__m512i t0 = _mm512_loadu_si512(src + n - 256), t1 = _mm512_loadu_si512(src + n - 192);
	__m512i t2 = _mm512_loadu_si512(src + n - 128), t3 = _mm512_loadu_si512(src + n - 64);
	size_t off = 64 - ((uintptr_t)dst & 63);

	move64(dst, src);
	for (; off + 256 < n; off += 256) {
		__m512i a = _mm512_loadu_si512(src + off), b = _mm512_loadu_si512(src + off + 64);
		__m512i c = _mm512_loadu_si512(src + off + 128);
		__m512i d = _mm512_loadu_si512(src + off + 192);

		if (ahead)
			hca_prefetch(dst + n + off, 256);
		_mm512_store_si512(dst + off, a);
		_mm512_store_si512(dst + off + 64, b);
		_mm512_store_si512(dst + off + 128, c);
		_mm512_store_si512(dst + off + 192, d);
	}
	_mm512_storeu_si512(dst + n - 256, t0);
	_mm512_storeu_si512(dst + n - 192, t1);
	_mm512_storeu_si512(dst + n - 128, t2);
	_mm512_storeu_si512(dst + n - 64, t3);
}

Z512 void
hca_copy_avx512(void *dst, const void *src, size_t n)
{
	uint8_t *d = dst;
	const uint8_t *s = src;

	if (n <= 64) {
		__mmask64 m = _bzhi_u64(~0ULL, n);

		_mm512_mask_storeu_epi8(d, m, _mm512_maskz_loadu_epi8(m, s));
	} else if (n <= 128) {
		__m512i t = _mm512_loadu_si512(s + n - 64);

		move64(d, s);
		_mm512_storeu_si512(d + n - 64, t);
	} else if (n <= 256) {
		__m512i a = _mm512_loadu_si512(s), b = _mm512_loadu_si512(s + 64);
		__m512i e = _mm512_loadu_si512(s + n - 128), f = _mm512_loadu_si512(s + n - 64);

		_mm512_storeu_si512(d, a);
		_mm512_storeu_si512(d + 64, b);
		_mm512_storeu_si512(d + n - 128, e);
		_mm512_storeu_si512(d + n - 64, f);
	} else {
		copy_long_z(d, s, n, false);
	}
}

Z512 void
hca_copy_ahead_avx512(void *dst, const void *src, size_t n)
{
	if (n > 256)
		copy_long_z(dst, src, n, true);
	else
		hca_copy_avx512(dst, src, n);
}

INLINE AVX2 __m256i
get32(const uint8_t *p)
{
	return _mm256_loadu_si256((const __m256i *)p);
}

INLINE AVX2 void
put32(uint8_t *p, __m256i v)
{
	_mm256_storeu_si256((__m256i *)p, v);
}

/* n > 128; ahead: as above. */
INLINE AVX2 void
copy_long_y(uint8_t *dst, const uint8_t *src, size_t n, const bool ahead)
{
	__m256i t0 = get32(src + n - 128), t1 = get32(src + n - 96);
	__m256i t2 = get32(src + n - 64), t3 = get32(src + n - 32);
	size_t off = 32 - ((uintptr_t)dst & 31);

	put32(dst, get32(src));
	for (; off + 128 < n; off += 128) {
		__m256i a = get32(src + off), b = get32(src + off + 32);
		__m256i c = get32(src + off + 64), d = get32(src + off + 96);

		if (ahead)
			hca_prefetch(dst + n + off, 128);
		_mm256_store_si256((__m256i *)(dst + off), a);
		_mm256_store_si256((__m256i *)(dst + off + 32), b);
		_mm256_store_si256((__m256i *)(dst + off + 64), c);
		_mm256_store_si256((__m256i *)(dst + off + 96), d);
	}
	put32(dst + n - 128, t0);
	put32(dst + n - 96, t1);
	put32(dst + n - 64, t2);
	put32(dst + n - 32, t3);
}

AVX2 void
hca_copy_avx2(void *dst, const void *src, size_t n)
{
	uint8_t *d = dst;
	const uint8_t *s = src;

	if (n < 32) {
		if (n > 0)
			memcpy(d, s, n);
	} else if (n <= 64) {
		__m256i a = get32(s), b = get32(s + n - 32);

		put32(d, a);
		put32(d + n - 32, b);
	} else if (n <= 128) {
		__m256i a = get32(s), b = get32(s + 32);
		__m256i e = get32(s + n - 64), f = get32(s + n - 32);

		put32(d, a);
		put32(d + 32, b);
		put32(d + n - 64, e);
		put32(d + n - 32, f);
	} else {
		copy_long_y(d, s, n, false);
	}
}

AVX2 void
hca_copy_ahead_avx2(void *dst, const void *src, size_t n)
{
	if (n > 128)
		copy_long_y(dst, src, n, true);
	else
		hca_copy_avx2(dst, src, n);
}

#else
typedef int hca_copy_x86_not_built;
#endif
