/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Times of each kernel, ISA-L and libc, interleaved so that changes of the clock frequency
 * affect all of them. Prints nanoseconds per call and the ratio to the portable code. Not a test.
 *
 * "indep": each call has its own seed, so calls overlap; "chain": each call depends on the previous
 * one.
 */
#include <stdio.h>
#include <time.h>

#include "wire/icrc.h"

#define ROUNDS 31
#define KERNELS 4
#define BURST 32
#define STRIDE 4224 /* one frame of the largest MTU, and not a power of two */

static uint8_t src[BURST * STRIDE] __attribute__((aligned(64)));
static uint8_t dst[BURST * STRIDE] __attribute__((aligned(64)));
static volatile uint32_t sink;

static double
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

typedef void (*body)(const struct hca_icrc_ops *ops, size_t n);

static void
crc_indep(const struct hca_icrc_ops *ops, size_t n)
{
	uint32_t x = 0;
	int i;

	for (i = 0; i < BURST; i++)
		x ^= ops->crc(hca_icrc_seed[HCA_WIRE_ROCE], src + i * STRIDE + 14, n);
	sink = x;
}

static void
crc_chain(const struct hca_icrc_ops *ops, size_t n)
{
	uint32_t x = hca_icrc_seed[HCA_WIRE_ROCE];
	int i;

	for (i = 0; i < BURST; i++)
		x = ops->crc(x, src + i * STRIDE + 14, n);
	sink = x;
}

static void
crc_burst_with(const struct hca_icrc_ops *ops, size_t n, const uint8_t *ones)
{
	struct hca_icrc_span spans[BURST];
	uint32_t out[BURST];
	int i;

	for (i = 0; i < BURST; i++)
		spans[i] = (struct hca_icrc_span){src + i * STRIDE + 14, ones, n,
						  hca_icrc_seed[HCA_WIRE_ROCE]};
	ops->crc_burst(spans, out, BURST);
	sink = out[BURST - 1];
}

static void
crc_burst(const struct hca_icrc_ops *ops, size_t n)
{
	crc_burst_with(ops, n, hca_icrc_ones_none);
}

static void
crc_burst_masked(const struct hca_icrc_ops *ops, size_t n)
{
	crc_burst_with(ops, n, hca_icrc_ones(HCA_WIRE_ROCE, 4));
}

static void
copy_crc(const struct hca_icrc_ops *ops, size_t n)
{
	uint32_t x = 0;
	int i;

	for (i = 0; i < BURST; i++)
		x ^= ops->copy_crc(hca_icrc_seed[HCA_WIRE_ROCE], dst + i * STRIDE + 68,
				   src + i * STRIDE, n);
	sink = x;
}

static void
copy(const struct hca_icrc_ops *ops, size_t n)
{
	int i;

	for (i = 0; i < BURST; i++)
		ops->copy(dst + i * STRIDE + 68, src + i * STRIDE, n);
}

/* Best of several rounds, all kernels within each round. */
static void
run(const char *what, body fn, size_t n)
{
	const struct hca_icrc_ops *ops;
	double best[KERNELS], t;
	unsigned int i, k, r, loops = 20000 / (n / 8 + 20) + 1, kernels = 0;

	for (r = 0; r < ROUNDS; r++)
		for (k = 0; k < KERNELS && (ops = hca_icrc_nth(k)) != NULL; k++) {
			kernels = k + 1;
			t = now_ns();
			for (i = 0; i < loops; i++)
				fn(ops, n);
			t = (now_ns() - t) / loops / BURST;
			if (r == 0 || t < best[k])
				best[k] = t;
		}
	printf("%-18s %5zu B", what, n);
	for (k = 0; k < kernels; k++)
		printf("  %8s %7.2f ns %5.2fx", hca_icrc_nth(k)->name, best[k],
		       best[kernels - 1] / best[k]);
	printf("\n");
}

int
main(void)
{
	static const size_t sizes[] = {64, 124, 256, 1024, 4096};
	static const struct {
		const char *name;
		body fn;
	} bodies[] = {
		{"crc indep", crc_indep}, {"crc chain", crc_chain},
		{"crc burst", crc_burst}, {"crc burst masked", crc_burst_masked},
		{"copy + crc", copy_crc}, {"copy", copy},
	};
	size_t i, j;

	for (i = 0; i < sizeof(src); i++)
		src[i] = i * 2654435761U >> 11;
	for (j = 0; j < sizeof(bodies) / sizeof(bodies[0]); j++)
		for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			run(bodies[j].name, bodies[j].fn, sizes[i]);
	return 0;
}
