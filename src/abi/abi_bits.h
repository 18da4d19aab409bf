/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HCA_ABI_BITS_H
#define HCA_ABI_BITS_H

/*
 * Byte order and bit fields of everything software and device share.
 *
 * The typedefs say which order the bytes of a field have in memory; they are plain integers, so
 * every access goes through the accessors below. Doorbells, HCR, WQEs, CQEs, EQEs and records
 * are little-endian; mailboxes, ICM contexts and wire headers are big-endian.
 *
 * Bit numbers are those of the tables: 31 is the most significant bit of the word after it has
 * been brought into the processor's order.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint16_t hca_be16;
typedef uint32_t hca_be32;
typedef uint64_t hca_be64;
typedef uint16_t hca_le16;
typedef uint32_t hca_le32;
typedef uint64_t hca_le64;

/* Mask of the bits hi..lo of a 32-bit and of a 64-bit word. */
#define HCA_MASK64(hi, lo) ((~UINT64_C(0) >> (63 - (hi))) & (~UINT64_C(0) << (lo)))
#define HCA_MASK(hi, lo) ((uint32_t)HCA_MASK64(hi, lo))

/* Value of the bits hi..lo of v (v of 32 or 64 bits, the field of at most 32). */
#define HCA_BITS(v, hi, lo) ((uint32_t)(((uint64_t)(v)&HCA_MASK64(hi, lo)) >> (lo)))
/* val placed in the bits hi..lo of a 32-bit word; higher bits are cut off. */
#define HCA_FIELD(hi, lo, val) ((uint32_t)(((uint64_t)(val) << (lo)) & HCA_MASK64(hi, lo)))
/* The same for words and fields of up to 64 bits. */
#define HCA_BITS64(v, hi, lo) (((uint64_t)(v)&HCA_MASK64(hi, lo)) >> (lo))
#define HCA_FIELD64(hi, lo, val) (((uint64_t)(val) << (lo)) & HCA_MASK64(hi, lo))
#define HCA_BIT(n) (UINT32_C(1) << (n))
#define HCA_BIT64(n) (UINT64_C(1) << (n))
/* Word v with its bits hi..lo replaced by val. */
#define HCA_SET_BITS(v, hi, lo, val) (((uint32_t)(v) & ~HCA_MASK(hi, lo)) | HCA_FIELD(hi, lo, val))

/*
 * Bits of a 32-bit word that the macro get(word) reads, as a constant: of HCA_QPC_MTU they are
 * HCA_MASK(31, 29).
 */
#define HCA_BITS_OF_1(get, n) (get(HCA_BIT(n)) != 0 ? HCA_BIT(n) : 0u)
#define HCA_BITS_OF_4(get, n) \
	(HCA_BITS_OF_1(get, n) | HCA_BITS_OF_1(get, (n) + 1) | HCA_BITS_OF_1(get, (n) + 2) | \
	 HCA_BITS_OF_1(get, (n) + 3))
#define HCA_BITS_OF(get) \
	(HCA_BITS_OF_4(get, 0) | HCA_BITS_OF_4(get, 4) | HCA_BITS_OF_4(get, 8) | \
	 HCA_BITS_OF_4(get, 12) | HCA_BITS_OF_4(get, 16) | HCA_BITS_OF_4(get, 20) | \
	 HCA_BITS_OF_4(get, 24) | HCA_BITS_OF_4(get, 28))

#define HCA_STATIC_ASSERT_OFFSET(type, field, offset) \
	_Static_assert(offsetof(type, field) == (offset), #type "." #field " not at " #offset)
#define HCA_STATIC_ASSERT_SIZE(type, size) \
	_Static_assert(sizeof(type) == (size), #type " is not " #size " bytes")

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define HCA_SWAP_BE(bits, v) __builtin_bswap##bits(v)
#define HCA_SWAP_LE(bits, v) (v)
#else
#define HCA_SWAP_BE(bits, v) (v)
#define HCA_SWAP_LE(bits, v) __builtin_bswap##bits(v)
#endif

/*
 * For each width: hca_be32_to_cpu(v), hca_cpu_to_be32(v), and hca_get_be32(p), hca_put_be32(p, v)
 * for a location of any alignment; the same with le.
 */
#define HCA_DEFINE_ORDER(order, swap, bits) \
	static inline uint##bits##_t hca_##order##bits##_to_cpu(hca_##order##bits v) \
	{ \
		return swap(bits, v); \
	} \
	static inline hca_##order##bits hca_cpu_to_##order##bits(uint##bits##_t v) \
	{ \
		return swap(bits, v); \
	} \
	static inline uint##bits##_t hca_get_##order##bits(const void *p) \
	{ \
		uint##bits##_t v; \
		memcpy(&v, p, sizeof(v)); \
		return swap(bits, v); \
	} \
	static inline void hca_put_##order##bits(void *p, uint##bits##_t v) \
	{ \
		v = swap(bits, v); \
		memcpy(p, &v, sizeof(v)); \
	}

HCA_DEFINE_ORDER(be, HCA_SWAP_BE, 16)
HCA_DEFINE_ORDER(be, HCA_SWAP_BE, 32)
HCA_DEFINE_ORDER(be, HCA_SWAP_BE, 64)
HCA_DEFINE_ORDER(le, HCA_SWAP_LE, 16)
HCA_DEFINE_ORDER(le, HCA_SWAP_LE, 32)
HCA_DEFINE_ORDER(le, HCA_SWAP_LE, 64)

#undef HCA_DEFINE_ORDER

#endif
