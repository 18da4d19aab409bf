/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Threads of one context whose QPs, regions and CQs come and go under traffic.
 *
 * verbs_threads THREADS SECONDS
 */

#include <pthread.h>
#include <time.h>

#include "all.h"

#define MAX_THREADS 64
#define WRITES 32
#define HALF 4096

static struct all shared;
static time_t end;

static time_t
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

/* WRITEs from the first half of the memory to the second, each with other data */
static void
traffic(struct all *own, struct ibv_qp *qp)
{
	struct ibv_sge sge = {(uintptr_t)own->memory, HALF, own->mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_RDMA_WRITE,
					 .send_flags = IBV_SEND_SIGNALED,
					 .wr.rdma = {(uintptr_t)own->memory + HALF, own->mr->rkey},
				 };

	for (uint64_t i = 0; i < WRITES; i++) {
		memset(own->memory, (int)(i + qp->qp_num), HALF);
		wr.wr_id = i;
		CHECK(ibv_post_send(qp, &wr, &bad) == 0);
		CHECK(all_wc(own->cq).wr_id == i);
		CHECK(memcmp(own->memory, own->memory + HALF, HALF) == 0);
	}
}

/* Odd threads use the PD that all share. */
static void
list_devices(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	CHECK(list != NULL && list[0] == shared.context->device);
	ibv_free_device_list(list);
}

static void
live_once(struct all *own, bool odd)
{
	struct ibv_ah *ah;
	struct ibv_qp *a, *b;

	list_devices();
	own->pd = odd ? shared.pd : ibv_alloc_pd(shared.context);
	CHECK(own->pd != NULL);
	own->mr = ibv_reg_mr(own->pd, own->memory, 2 * HALF, ALL_ACCESS);
	own->cq = ibv_create_cq(shared.context, 64, own, NULL, 0);
	CHECK(own->mr != NULL && own->cq != NULL);
	a = all_qp(own, IBV_QPT_RC, own->cq, NULL, 0);
	b = all_qp(own, IBV_QPT_RC, own->cq, NULL, 0);
	ah = all_ah(own);
	all_connect(own, a, b);
	traffic(own, a);
	CHECK(ibv_destroy_ah(ah) == 0);
	CHECK(ibv_destroy_qp(a) == 0 && ibv_destroy_qp(b) == 0);
	CHECK(ibv_destroy_cq(own->cq) == 0 && ibv_dereg_mr(own->mr) == 0);
	CHECK(odd || ibv_dealloc_pd(own->pd) == 0);
}

static void *
live(void *number)
{
	struct all own = shared;
	unsigned long lives = 0;

	own.memory = aligned_alloc(4096, 2 * HALF);
	CHECK(own.memory != NULL);
	do {
		live_once(&own, (uintptr_t)number % 2 != 0);
		lives++;
	} while (now() < end);
	free(own.memory);
	return (void *)lives;
}

int
main(int argc, char **argv)
{
	uintptr_t threads = argc > 1 ? strtoul(argv[1], NULL, 10) : 4;
	pthread_t thread[MAX_THREADS];
	unsigned long lives = 0;
	void *one;

	CHECK(threads > 0 && threads <= MAX_THREADS);
	all_open(&shared);
	end = now() + (argc > 2 ? atol(argv[2]) : 2);
	for (uintptr_t i = 0; i < threads; i++)
		CHECK(pthread_create(&thread[i], NULL, live, (void *)i) == 0);
	for (uintptr_t i = 0; i < threads; i++) {
		CHECK(pthread_join(thread[i], &one) == 0);
		lives += (unsigned long)one;
	}
	all_close(&shared);
	printf("%lu lives of %lu threads\n", lives, (unsigned long)threads);
	return 0;
}
