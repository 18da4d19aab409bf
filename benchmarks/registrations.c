/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Time of a registration of private memory, and of its end: of pages that lie 16 KiB apart, the
 * last hundredth part of 100, 1,000, 4,000 and 20,000, while all of them exist, and of 1 GiB.
 *
 *   softhca-run build/benchmarks/registrations [MOST]
 *
 * MOST: pages at most (20,000). Devices with fewer regions are said to have fewer.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <infiniband/verbs.h>

#define PAGE ((size_t)4096)
#define APART (4 * PAGE)
#define GIANT ((size_t)1 << 30)
#define MOST 20000u
#define SAMPLE 100u

static struct ibv_mr *mr[MOST];

static double
now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void *
map_private(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return at;
}

static struct ibv_pd *
open_pd(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context =
		list != NULL && list[0] != NULL ? ibv_open_device(list[0]) : NULL;
	struct ibv_pd *pd = context != NULL ? ibv_alloc_pd(context) : NULL;

	if (pd == NULL) {
		perror("registrations: no device");
		exit(1);
	}
	return pd;
}

/* Registers pages up to n; returns the time of each of the last ones, 0 if the device has fewer. */
static double
register_to(struct ibv_pd *pd, char *at, unsigned int from, unsigned int n)
{
	double start = 0;

	for (unsigned int i = from; i < n; i++) {
		if (i == n - SAMPLE)
			start = now_us();
		mr[i] = ibv_reg_mr(pd, at + i * APART, PAGE, IBV_ACCESS_LOCAL_WRITE);
		if (mr[i] == NULL) {
			printf("%6u pages: region %u: ", n, i);
			fflush(stdout);
			perror("ibv_reg_mr");
			return 0;
		}
	}
	return (now_us() - start) / SAMPLE;
}

static void
scattered(struct ibv_pd *pd, unsigned int most)
{
	static const unsigned int counts[] = {SAMPLE, 1000, 4000, MOST};
	char *at = map_private(MOST * APART);
	unsigned int done = 0;
	double start;

	for (unsigned int k = 0; k < 4 && counts[k] <= most; k++) {
		double each = register_to(pd, at, done, counts[k]);

		if (each <= 0)
			break;
		done = counts[k];
		printf("%6u pages: %8.1f us for each of the last %u\n", done, each, SAMPLE);
	}
	for (unsigned int i = done; i < MOST && mr[i] != NULL; i++)
		ibv_dereg_mr(mr[i]);
	start = now_us();
	for (unsigned int i = 0; i < done; i++)
		ibv_dereg_mr(mr[i]);
	if (done > 0)
		printf("%6u pages: %8.1f us for each that is given up\n", done,
		       (now_us() - start) / done);
	munmap(at, MOST * APART);
}

static void
giant(struct ibv_pd *pd, size_t shift)
{
	char *at = map_private(GIANT + PAGE);
	double start, end;
	struct ibv_mr *one;

	memset(at, 1, GIANT + PAGE);
	start = now_us();
	one = ibv_reg_mr(pd, at + shift, GIANT, IBV_ACCESS_LOCAL_WRITE);
	end = now_us();
	if (one == NULL)
		printf("refused: %s, ", strerror(errno));
	printf("1 GiB at %2zu: %10.0f us, ", shift, end - start);
	if (one != NULL)
		ibv_dereg_mr(one);
	printf("given up in %.0f us\n", now_us() - end);
	munmap(at, GIANT + PAGE);
}

int
main(int argc, char **argv)
{
	unsigned int most = argc > 1 ? (unsigned int)strtoul(argv[1], NULL, 10) : MOST;
	struct ibv_pd *pd = open_pd();

	setvbuf(stdout, NULL, _IOLBF, 0);
	scattered(pd, most);
	giant(pd, 0);
	giant(pd, 16);
	return 0;
}
