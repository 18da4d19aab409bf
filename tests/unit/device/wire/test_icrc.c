/* SPDX-License-Identifier: BSD-3-Clause */
/* Every kernel that this CPU supports, compared with ISA-L and with the definition of CRC-32. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <isa-l/crc.h>

#include "wire/icrc.h"

#include "crc_ref.h"
#include "guard.h"

#define ALL_LENGTHS 600
#define MAX_LENGTH 9000
#define PAGES 4 /* room for MAX_LENGTH + 64 */
#define FILL 0xa5

static uint64_t rng_state;

static uint64_t
rng(void)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return rng_state;
}

static void
fill_random(uint8_t *p, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		p[i] = rng();
}

struct fixture {
	struct guard src;
	struct guard dst;
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return -1;
	f->src = guard_alloc(PAGES);
	f->dst = guard_alloc(PAGES);
	fill_random(f->src.start, PAGES * GUARD_PAGE);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	guard_free(&f->src);
	guard_free(&f->dst);
	free(f);
	return 0;
}

#define FOR_EACH_KERNEL(ops, i) for ((i) = 0; ((ops) = hca_icrc_nth(i)) != NULL; (i)++)

static void
check_crc(const struct hca_icrc_ops *ops, uint32_t seed, const uint8_t *p, size_t n)
{
	uint32_t want = crc32_gzip_refl(seed, p, n);
	uint32_t got = ops->crc(seed, p, n);

	if (got != want)
		fail_msg("%s: crc of %zu bytes at %zu: %08x, expected %08x", ops->name, n,
			 (size_t)((uintptr_t)p & 63), got, want);
}

/* Bytes before and after the copy must be unchanged. */
static void
check_untouched(const struct hca_icrc_ops *ops, const uint8_t *from, const uint8_t *to, size_t n)
{
	for (; from < to; from++)
		if (*from != FILL)
			fail_msg("%s: wrote outside a copy of %zu bytes", ops->name, n);
}

/* copy_ahead() writes the same bytes as copy(). */
static void
check_ahead(const struct hca_icrc_ops *ops, uint8_t *dst, const uint8_t *src, size_t n,
	    const struct guard *g)
{
	uint8_t *hi = g->end - (dst + n) > 64 ? dst + n + 64 : dst + n;

	memset(dst, FILL, hi - dst);
	ops->copy_ahead(dst, src, n);
	assert_memory_equal(dst, src, n);
	check_untouched(ops, dst + n, hi, n);
}

static void
check_copies(const struct hca_icrc_ops *ops, uint32_t seed, uint8_t *dst, const uint8_t *src,
	     size_t n, const struct guard *g)
{
	const uint8_t *lo = dst - g->start > 64 ? dst - 64 : g->start;
	const uint8_t *hi = g->end - (dst + n) > 64 ? dst + n + 64 : g->end;
	uint32_t want = crc32_gzip_refl(seed, src, n), got;

	memset((uint8_t *)(uintptr_t)lo, FILL, hi - lo);
	got = ops->copy_crc(seed, dst, src, n);
	if (got != want || memcmp(dst, src, n) != 0)
		fail_msg("%s: copy_crc of %zu bytes from %zu to %zu", ops->name, n,
			 (size_t)((uintptr_t)src & 63), (size_t)((uintptr_t)dst & 63));
	check_untouched(ops, lo, dst, n);
	check_untouched(ops, dst + n, hi, n);
	check_ahead(ops, dst, src, n, g);

	memset((uint8_t *)(uintptr_t)lo, FILL, hi - lo);
	hca_copy_last_byte_last(ops, dst, src, n);
	if (memcmp(dst, src, n) != 0)
		fail_msg("%s: copy of %zu bytes from %zu to %zu", ops->name, n,
			 (size_t)((uintptr_t)src & 63), (size_t)((uintptr_t)dst & 63));
	check_untouched(ops, lo, dst, n);
	check_untouched(ops, dst + n, hi, n);
	ops->copy(dst, src, n);
	check_untouched(ops, dst + n, hi, n);
	assert_memory_equal(dst, src, n);
}

static void
test_reference_is_the_ethernet_crc(void **state)
{
	static const uint8_t ones[8] = {255, 255, 255, 255, 255, 255, 255, 255};

	assert_int_equal(crc_ref(0, "123456789", 9), 0xcbf43926U);
	assert_int_equal(crc_ref(0, ones, sizeof(ones)), hca_icrc_seed[HCA_WIRE_ROCE]);
}

/* ISA-L, the reference of the other tests, is compared with the definition. */
static void
test_all_kernels_match_reference(void **state)
{
	struct fixture *f = *state;
	const struct hca_icrc_ops *ops;
	unsigned int i, n;

	FOR_EACH_KERNEL(ops, i)
	for (n = 0; n <= ALL_LENGTHS; n++) {
		const uint8_t *p = f->src.end - n;
		uint32_t want = crc_ref(hca_icrc_seed[HCA_WIRE_ROCE], p, n);

		assert_int_equal(ops->crc(hca_icrc_seed[HCA_WIRE_ROCE], p, n), want);
		assert_int_equal(crc32_gzip_refl(hca_icrc_seed[HCA_WIRE_ROCE], p, n), want);
	}
}

static void
test_crc_all_lengths_all_alignments(void **state)
{
	struct fixture *f = *state;
	const struct hca_icrc_ops *ops;
	unsigned int i, n, a;

	FOR_EACH_KERNEL(ops, i)
	for (a = 0; a < 64; a++)
		for (n = 0; n <= ALL_LENGTHS; n++) {
			check_crc(ops, rng(), f->src.start + a, n);
			check_crc(ops, rng(), f->src.end - a - n, n);
		}
}

static void
test_crc_random_lengths(void **state)
{
	struct fixture *f = *state;
	const struct hca_icrc_ops *ops;
	unsigned int i, round;

	FOR_EACH_KERNEL(ops, i)
	for (round = 0; round < 2000; round++) {
		size_t n = rng() % (MAX_LENGTH + 1);

		check_crc(ops, rng(), f->src.start + rng() % 64, n);
		check_crc(ops, rng(), f->src.end - n - rng() % 64, n);
	}
}

static void
test_crc_chains(void **state)
{
	struct fixture *f = *state;
	const struct hca_icrc_ops *ops;
	const uint8_t *p = f->src.start;
	unsigned int i, round;

	FOR_EACH_KERNEL(ops, i)
	for (round = 0; round < 500; round++) {
		size_t n = rng() % 2000, cut = n ? rng() % n : 0;

		assert_int_equal(ops->crc(ops->crc(7, p, cut), p + cut, n - cut),
				 ops->crc(7, p, n));
	}
}

/* Source at the end of its pages, destination at either end. */
static void
test_copies_between_guard_pages(void **state)
{
	struct fixture *f = *state;
	const struct hca_icrc_ops *ops;
	unsigned int i, n;

	FOR_EACH_KERNEL(ops, i)
	for (n = 0; n <= ALL_LENGTHS; n++) {
		check_copies(ops, rng(), f->dst.start, f->src.start, n, &f->dst);
		check_copies(ops, rng(), f->dst.start, f->src.end - n, n, &f->dst);
		check_copies(ops, rng(), f->dst.end - n, f->src.start, n, &f->dst);
		check_copies(ops, rng(), f->dst.end - n, f->src.end - n, n, &f->dst);
	}
}

static void
test_copies_all_alignments(void **state)
{
	struct fixture *f = *state;
	const struct hca_icrc_ops *ops;
	unsigned int i, a, b, n;

	FOR_EACH_KERNEL(ops, i)
	for (a = 0; a < 64; a++)
		for (b = 0; b < 64; b++) {
			n = rng() % (ALL_LENGTHS + 1);
			check_copies(ops, rng(), f->dst.start + a, f->src.start + b, n, &f->dst);
		}
}

static void
test_copies_random_lengths(void **state)
{
	struct fixture *f = *state;
	const struct hca_icrc_ops *ops;
	unsigned int i, round;

	FOR_EACH_KERNEL(ops, i)
	for (round = 0; round < 1000; round++) {
		size_t n = rng() % (MAX_LENGTH + 1);

		check_copies(ops, rng(), f->dst.end - n - rng() % 64, f->src.end - n - rng() % 64,
			     n, &f->dst);
	}
}

#define PATTERNS 5

static const uint8_t *
pattern(unsigned int which)
{
	const uint8_t *p[PATTERNS] = {hca_icrc_ones_none, hca_icrc_ones(HCA_WIRE_ROCE, 4),
				      hca_icrc_ones(HCA_WIRE_ROCE, 6),
				      hca_icrc_ones(HCA_WIRE_UB, 4), hca_icrc_ones(HCA_WIRE_UB, 6)};

	return p[which];
}

/* The CRC of a span equals that of a copy with the pattern ORed into it. */
static uint32_t
span_ref(const struct hca_icrc_span *s)
{
	static uint8_t copy[MAX_LENGTH];
	uint32_t i;

	if (s->len > 0)
		memcpy(copy, s->data, s->len);
	for (i = 0; i < s->len && i < HCA_ICRC_PATTERN_LEN; i++)
		copy[i] |= s->ones[i];
	return crc32_gzip_refl(s->seed, copy, s->len);
}

static void
check_burst(const struct hca_icrc_ops *ops, const struct hca_icrc_span *spans, unsigned int n)
{
	uint32_t out[41];
	unsigned int i;

	out[n] = 0x5a5a5a5a;
	ops->crc_burst(spans, out, n);
	for (i = 0; i < n; i++)
		if (out[i] != span_ref(&spans[i]))
			fail_msg("%s: span %u of %u, %u bytes", ops->name, i, n, spans[i].len);
	assert_int_equal(out[n], 0x5a5a5a5a);
}

static void
test_burst_all_lengths(void **state)
{
	struct fixture *f = *state;
	const struct hca_icrc_ops *ops;
	struct hca_icrc_span s;
	unsigned int i, n, which;

	FOR_EACH_KERNEL(ops, i)
	for (which = 0; which < PATTERNS; which++)
		for (n = 0; n <= ALL_LENGTHS; n++) {
			s = (struct hca_icrc_span){f->src.end - n, pattern(which), n, rng()};
			check_burst(ops, &s, 1);
			s.data = f->src.start;
			check_burst(ops, &s, 1);
		}
}

static void
test_burst_mixed(void **state)
{
	struct fixture *f = *state;
	const struct hca_icrc_ops *ops;
	struct hca_icrc_span s[40];
	unsigned int i, j, n, round;

	FOR_EACH_KERNEL(ops, i)
	for (round = 0; round < 400; round++) {
		n = rng() % 41;
		for (j = 0; j < n; j++) {
			size_t len = rng() % (rng() % 8 ? 300 : MAX_LENGTH);

			s[j].data = rng() & 1 ? f->src.end - len : f->src.start + rng() % 64;
			s[j].len = len;
			s[j].ones = pattern(rng() % PATTERNS);
			s[j].seed = rng();
		}
		check_burst(ops, s, n);
	}
}

/* The definition of a wire's ICRC, byte by byte. */
static uint32_t
icrc_ref(enum hca_wire wire, int v6, const uint8_t *l3, uint32_t n)
{
	static const uint8_t ones[8] = {255, 255, 255, 255, 255, 255, 255, 255};
	static uint8_t copy[MAX_LENGTH];

	memcpy(copy, l3, n);
	if (wire == HCA_WIRE_UB) {
		mask_udp_ref(copy, v6);
		return crc_ref(0, copy, n);
	}
	mask_ref(copy, v6);
	return crc_ref(crc_ref(0, ones, sizeof(ones)), copy, n);
}

/* Frames of both wires and both IP versions in one burst. */
static void
test_burst_of_both_wires(void **state)
{
	struct fixture *f = *state;
	const struct hca_icrc_ops *ops;
	struct hca_icrc_span s[32];
	uint32_t want[32], got[32];
	unsigned int i, j, n, round;

	for (round = 0; round < 40; round++) {
		n = 1 + rng() % 32;
		for (j = 0; j < n; j++) {
			enum hca_wire wire = rng() & 1 ? HCA_WIRE_ROCE : HCA_WIRE_UB;
			const uint8_t *l3 = f->src.start + rng() % 64;
			uint32_t len = 64 + rng() % (rng() % 8 ? 200 : 4400);
			int v6 = rng() & 1;

			s[j] = hca_icrc_span_of(wire, v6 ? 6 : 4, l3, len);
			want[j] = icrc_ref(wire, v6, l3, len);
		}
		FOR_EACH_KERNEL(ops, i)
		{
			ops->crc_burst(s, got, n);
			for (j = 0; j < n; j++)
				if (got[j] != want[j])
					fail_msg("%s: frame %u of %u, %u bytes", ops->name, j, n,
						 s[j].len);
		}
	}
}

/* Masking in place and reading through a pattern give the same bytes. */
static void
test_mask_equals_pattern(void **state)
{
	struct fixture *f = *state;
	const struct hca_icrc_ops *ops = hca_icrc_select();
	uint8_t frame[128], before[128];
	struct hca_icrc_span s;
	uint32_t out;
	int v6;

	for (v6 = 0; v6 < 2; v6++) {
		fill_random(frame, sizeof(frame));
		memcpy(before, frame, sizeof(frame));
		s = (struct hca_icrc_span){frame, pattern(1 + v6), sizeof(frame),
					   hca_icrc_seed[HCA_WIRE_ROCE]};
		ops->crc_burst(&s, &out, 1);
		mask_ref(frame, v6);
		assert_int_equal(ops->crc(hca_icrc_seed[HCA_WIRE_ROCE], frame, sizeof(frame)), out);
		assert_memory_not_equal(frame, before, sizeof(frame));
	}
	assert_non_null(f);
}

static void
test_icrc_is_stored_least_significant_byte_first(void **state)
{
	uint8_t b[4];

	hca_icrc_store(b, 0x11223344);
	assert_int_equal(b[0], 0x44);
	assert_int_equal(b[3], 0x11);
	assert_int_equal(hca_icrc_load(b), 0x11223344);
}

static void
test_list_ends_with_portable(void **state)
{
	const struct hca_icrc_ops *ops, *last = NULL;
	unsigned int i;

	FOR_EACH_KERNEL(ops, i)
	{
		print_message("kernel %u: %s\n", i, ops->name);
		last = ops;
	}
	assert_non_null(last);
	assert_string_equal(last->name, "portable");
	assert_null(hca_icrc_nth(i + 1));
	assert_ptr_equal(hca_icrc_select(), hca_icrc_nth(0));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reference_is_the_ethernet_crc),
		cmocka_unit_test(test_list_ends_with_portable),
		cmocka_unit_test(test_all_kernels_match_reference),
		cmocka_unit_test(test_crc_all_lengths_all_alignments),
		cmocka_unit_test(test_crc_random_lengths),
		cmocka_unit_test(test_crc_chains),
		cmocka_unit_test(test_copies_between_guard_pages),
		cmocka_unit_test(test_copies_all_alignments),
		cmocka_unit_test(test_copies_random_lengths),
		cmocka_unit_test(test_burst_all_lengths),
		cmocka_unit_test(test_burst_mixed),
		cmocka_unit_test(test_burst_of_both_wires),
		cmocka_unit_test(test_mask_equals_pattern),
		cmocka_unit_test(test_icrc_is_stored_least_significant_byte_first),
	};
	const char *env = getenv("SOFTHCA_TEST_SEED");

	rng_state = env ? strtoull(env, NULL, 0) : (uint64_t)time(NULL) << 20 | getpid();
	if (rng_state == 0)
		rng_state = 1;
	fprintf(stderr, "SOFTHCA_TEST_SEED=%#llx\n", (unsigned long long)rng_state);
	return cmocka_run_group_tests(tests, setup, teardown);
}
