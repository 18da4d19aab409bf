/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A program of plain MPI whose data is checked: messages of all sizes between all ranks, collective
 * ones, and one-sided operations. Prints "good" and the number of checks at rank 0, or ends with 1.
 */

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST (1 << 20)
#define WORDS 4096
#define ROUNDS 20

static int rank, ranks;
static long checks;

#define CHECK(what) \
	do { \
		checks++; \
		if (!(what)) { \
			fprintf(stderr, "rank %d, line %d: not true: %s\n", rank, __LINE__, \
				#what); \
			MPI_Abort(MPI_COMM_WORLD, 1); \
		} \
	} while (0)

static void
fill(uint8_t *data, int size, int seed)
{
	for (int i = 0; i < size; i++)
		data[i] = (uint8_t)(seed * 31 + i * 7 + (i >> 8));
}

static int
holds(const uint8_t *data, int size, int seed)
{
	for (int i = 0; i < size; i++)
		if (data[i] != (uint8_t)(seed * 31 + i * 7 + (i >> 8)))
			return 0;
	return 1;
}

/* Each rank sends to the next one and receives from the one before it. */
static void
ring(uint8_t *out, uint8_t *in, int size)
{
	int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks, count;
	MPI_Status status;

	fill(out, size, rank);
	memset(in, 0, (size_t)size + 1);
	MPI_Sendrecv(out, size, MPI_BYTE, to, size, in, size + 1, MPI_BYTE, from, size,
		     MPI_COMM_WORLD, &status);
	MPI_Get_count(&status, MPI_BYTE, &count);
	CHECK(count == size);
	CHECK(holds(in, size, from) && in[size] == 0);
}

/* Messages come before their receives are posted, from any rank, with tags out of order. */
static void
unexpected(void)
{
	static int out[8], in[8];
	MPI_Request requests[8];

	for (int i = 0; i < 8; i++) {
		out[i] = rank * 100 + i;
		MPI_Isend(&out[i], 1, MPI_INT, (rank + 1) % ranks, i, MPI_COMM_WORLD, &requests[i]);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 7; i >= 0; i--)
		MPI_Recv(&in[i], 1, MPI_INT, MPI_ANY_SOURCE, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < 8; i++)
		CHECK(in[i] == (rank + ranks - 1) % ranks * 100 + i);
}

static void
collective(int words)
{
	int *out = malloc((size_t)(words * ranks) * sizeof(int));
	int *in = malloc((size_t)(words * ranks) * sizeof(int));
	long sum = rank + 1, all = 0;

	for (int i = 0; i < words * ranks; i++)
		out[i] = rank * 1000003 + i;
	MPI_Alltoall(out, words, MPI_INT, in, words, MPI_INT, MPI_COMM_WORLD);
	for (int i = 0; i < words * ranks; i++)
		CHECK(in[i] == i / words * 1000003 + rank * words + i % words);
	MPI_Allreduce(&sum, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	CHECK(all == (long)ranks * (ranks + 1) / 2);
	if (rank == 0)
		for (int i = 0; i < words; i++)
			in[i] = i * 3;
	MPI_Bcast(in, words, MPI_INT, 0, MPI_COMM_WORLD);
	for (int i = 0; i < words; i++)
		CHECK(in[i] == i * 3);
	free(in);
	free(out);
}

/* ---- one-sided ---- */

static void
put_get(MPI_Win window, const int64_t *mine)
{
	static int64_t out[WORDS], in[WORDS];
	int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;

	for (int i = 0; i < WORDS; i++)
		out[i] = rank * 1000000 + i;
	MPI_Win_fence(0, window);
	MPI_Put(out, WORDS, MPI_INT64_T, to, 0, WORDS, MPI_INT64_T, window);
	MPI_Win_fence(0, window);
	for (int i = 0; i < WORDS; i++)
		CHECK(mine[i] == from * 1000000 + i);
	MPI_Get(in, WORDS, MPI_INT64_T, to, 0, WORDS, MPI_INT64_T, window);
	MPI_Win_fence(0, window);
	CHECK(memcmp(in, out, sizeof(in)) == 0);
}

/* All ranks change the same words of rank 0. */
static void
accumulate(MPI_Win window, int64_t *mine)
{
	int64_t one[8], old, add = 1, mark = rank + 1, zero = 0, swapped;

	for (int i = 0; i < 8; i++)
		one[i] = i + 1;
	memset(mine, 0, WORDS * sizeof(*mine));
	MPI_Win_fence(0, window);
	for (int i = 0; i < ROUNDS; i++)
		MPI_Accumulate(one, 8, MPI_INT64_T, 0, 0, 8, MPI_INT64_T, MPI_SUM, window);
	MPI_Win_fence(0, window);
	if (rank == 0)
		for (int i = 0; i < 8; i++)
			CHECK(mine[i] == (int64_t)ROUNDS * ranks * (i + 1));
	MPI_Win_fence(0, window);
	MPI_Win_lock_all(0, window);
	for (int i = 0; i < ROUNDS; i++) {
		MPI_Fetch_and_op(&add, &old, MPI_INT64_T, 0, 16, MPI_SUM, window);
		MPI_Win_flush(0, window);
		CHECK(old >= i && old < (int64_t)ROUNDS * ranks);
	}
	MPI_Compare_and_swap(&mark, &zero, &swapped, MPI_INT64_T, 0, 17, window);
	MPI_Win_flush(0, window);
	CHECK(swapped >= 0 && swapped <= ranks);
	MPI_Win_unlock_all(window);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_fence(0, window);
	if (rank == 0) {
		CHECK(mine[16] == (int64_t)ROUNDS * ranks);
		CHECK(mine[17] >= 1 && mine[17] <= ranks);
	}
	MPI_Win_fence(0, window);
}

static void
one_sided(void)
{
	int64_t *mine;
	MPI_Win window;

	MPI_Win_allocate(WORDS * sizeof(*mine), sizeof(*mine), MPI_INFO_NULL, MPI_COMM_WORLD, &mine,
			 &window);
	put_get(window, mine);
	accumulate(window, mine);
	MPI_Win_free(&window);
}

int
main(int argc, char **argv)
{
	uint8_t *out = malloc(LARGEST + 64), *in = malloc(LARGEST + 65);
	long all;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	ring(out, in, 0);
	for (int size = 1; size <= LARGEST; size *= 2) {
		ring(out, in, size);
		ring(out, in, size + 13);
		ring(out + 3, in + 1, size);
	}
	unexpected();
	collective(1);
	collective(WORDS);
	one_sided();
	MPI_Reduce(&checks, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("good %ld\n", all);
	MPI_Finalize();
	free(out);
	free(in);
	return 0;
}
