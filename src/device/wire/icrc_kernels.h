/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside icrc only: the kernel sets for x86 and the constants they share.
 *
 * All polynomials are bit-reflected. A 33-bit constant K(n) is x^n mod P with bit j standing for
 * x^(32-j); carry-less multiplied with a 64-bit half of a 16-byte lane it gives a product whose
 * bit j stands for x^(95-j). Two facts follow, and both kernels are built on them:
 *
 * - a lane whose last byte is followed by d more lanes contributes lo * K(128d + 96) +
 *   hi * K(128d + 32) to S, a polynomial of degree < 95 that is congruent to message * x^32.
 *   No lane waits for another, and the lane sum needs no 128-to-64 step;
 * - S mod P needs two multiplications: the low half of S is S / x^32, times mu = x^95 / P the low
 *   half of the product is the quotient, and the quotient times P cancels everything but the
 *   remainder, which is left in bits 64..95.
 */
#ifndef DEVICE_WIRE_ICRC_KERNELS_H
#define DEVICE_WIRE_ICRC_KERNELS_H

#include <stdint.h>

#include "wire/icrc.h"

#if defined(__x86_64__)
/* AVX-512 with VPCLMULQDQ: Ice Lake, Zen 4 and later. */
extern const struct hca_icrc_ops hca_icrc_ops_avx512;
/* PCLMULQDQ for the CRC, AVX2 for the copy. */
extern const struct hca_icrc_ops hca_icrc_ops_avx2;
/* PCLMULQDQ for the CRC, libc for the copy. */
extern const struct hca_icrc_ops hca_icrc_ops_sse;

void hca_copy_avx512(void *dst, const void *src, size_t n);
void hca_copy_avx2(void *dst, const void *src, size_t n);
void hca_copy_ahead_avx512(void *dst, const void *src, size_t n);
void hca_copy_ahead_avx2(void *dst, const void *src, size_t n);
#endif

void hca_copy_libc(void *dst, const void *src, size_t n);
void hca_copy_ahead_libc(void *dst, const void *src, size_t n);

/* {mu, P}: the multipliers of the final reduction. */
extern const uint64_t hca_icrc_mu_p[2];
/* {K(128d + 96), K(128d + 32)} for d = 15 .. 0: the last n lanes use the last n entries. */
extern const uint64_t hca_icrc_lane[16][2];
/* {K(1024 + 32), K(1024 - 32)}: moves a lane over 128 bytes. */
extern const uint64_t hca_icrc_fold128[2];
/* {K(2048 + 32), K(2048 - 32)}: moves a lane over 256 bytes. */
extern const uint64_t hca_icrc_fold256[2];

#endif
