/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * An SRQ whose WQEs the stages of several pipes take: each WQE is taken once, in the order of the
 * list, and a stage that was slower gets nothing.
 */

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "abi_wqe.h"
#include "queues/srq.h"

#define SIZE_LOG 4u
#define STRIDE_LOG 6u
#define SIZE (1u << SIZE_LOG)
#define STRIDE (1u << STRIDE_LOG)
#define TAKERS 3u
#define POSTS 60000u

struct wqe {
	hca_le32 nda;
	uint32_t id; /* which post it is */
	uint8_t rest[STRIDE - 8];
};

static struct hca_srq srq;
static uint8_t memory[SIZE * STRIDE + sizeof(struct hca_rq_record)] __rte_cache_aligned;
static uint32_t posted;

static struct wqe *
wqe_at(uint32_t offset)
{
	return (struct wqe *)(memory + offset);
}

static struct hca_rq_record *
record(void)
{
	return (struct hca_rq_record *)(memory + SIZE * STRIDE);
}

static int
setup(void **state)
{
	memset(&srq, 0, sizeof(srq));
	memset(memory, 0, sizeof(memory));
	srq.q = (struct hca_qbuf){.base = memory, .bytes = sizeof(memory)};
	srq.size_log = SIZE_LOG;
	srq.stride_log = STRIDE_LOG;
	srq.state = HCA_SRQ_LIVE;
	srq.shared = 1;
	posted = 0;
	return 0;
}

/* Post the WQE at offset; the one after it will be at `after`. */
static void
post(uint32_t offset, uint32_t after)
{
	__atomic_store_n(&wqe_at(offset)->id, posted, __ATOMIC_RELAXED);
	__atomic_store_n(&wqe_at(offset)->nda, hca_cpu_to_le32(after), __ATOMIC_RELAXED);
	__atomic_store_n(&record()->producer, hca_cpu_to_le32(++posted), __ATOMIC_RELEASE);
}

static void
test_the_slower_gets_nothing(void **state)
{
	uint64_t mine, theirs;

	post(0, 3 * STRIDE);
	post(3 * STRIDE, STRIDE);
	assert_int_equal(hca_srq_available(&srq, &mine), 1);
	assert_int_equal(hca_srq_available(&srq, &theirs), 1);
	assert_ptr_equal(hca_srq_peek(&srq, mine), hca_srq_peek(&srq, theirs));
	assert_int_equal(hca_srq_take(&srq, theirs, 3 * STRIDE), 0);
	assert_int_equal(hca_srq_take(&srq, mine, 3 * STRIDE), -EAGAIN);
	/* nor with a link that is invalid because the WQE is used again */
	assert_int_equal(hca_srq_take(&srq, mine, 0xffffffc0), -EAGAIN);
	assert_int_equal(srq.state, HCA_SRQ_LIVE);
	assert_int_equal(srq.consumed, 1);
	assert_int_equal(hca_srq_available(&srq, &mine), 1);
	assert_int_equal(HCA_SRQ_HEAD(mine), 3 * STRIDE);
	assert_int_equal(hca_srq_count(&srq), 1);
	assert_int_equal(hca_srq_take(&srq, mine, STRIDE), 0);
	assert_int_equal(hca_srq_available(&srq, &mine), 0);
	assert_int_equal(hca_srq_count(&srq), 0);
}

/* The WQE with an invalid link is valid itself; no stage finds another one. */
static void
test_invalid_link(void **state)
{
	uint64_t mine, theirs;

	post(0, 0);
	post(STRIDE, 0);
	assert_int_equal(hca_srq_available(&srq, &mine), 1);
	assert_int_equal(hca_srq_available(&srq, &theirs), 1);
	assert_int_equal(hca_srq_take(&srq, theirs, SIZE * STRIDE), -EINVAL);
	assert_int_equal(srq.state, HCA_SRQ_ERROR);
	assert_int_equal(hca_srq_take(&srq, mine, 0), -EAGAIN);
	assert_int_equal(hca_srq_available(&srq, &mine), -1);
	/* even where the state is not seen yet */
	srq.state = HCA_SRQ_LIVE;
	assert_int_equal(hca_srq_available(&srq, &mine), -1);
}

static void
test_invalid_count(void **state)
{
	uint64_t next;

	record()->producer = hca_cpu_to_le32(SIZE);
	assert_int_equal(hca_srq_available(&srq, &next), 1);
	record()->producer = hca_cpu_to_le32(SIZE + 1);
	assert_int_equal(hca_srq_available(&srq, &next), -1);
	assert_int_equal(srq.state, HCA_SRQ_ERROR);
}

/* ---- with threads ---- */

static struct taker {
	pthread_t thread;
	uint32_t taken, slower, wrong;
} takers[TAKERS];

static uint32_t order[POSTS]; /* offset of the n-th WQE taken, plus 1 */

static void *
take_all(void *arg)
{
	struct taker *t = arg;
	uint64_t next;
	uint32_t id, nda;

	while (HCA_SRQ_CONSUMED(__atomic_load_n(&srq.next, __ATOMIC_RELAXED)) < POSTS) {
		const struct wqe *w;
		int rc = hca_srq_available(&srq, &next);

		if (rc != 1) {
			t->wrong += rc < 0;
			if (rc < 0)
				break;
			sched_yield();
			continue;
		}
		w = (const void *)hca_srq_peek(&srq, next);
		id = __atomic_load_n(&w->id, __ATOMIC_RELAXED);
		nda = hca_le32_to_cpu(__atomic_load_n(&w->nda, __ATOMIC_RELAXED));
		rc = hca_srq_take(&srq, next, nda);
		t->slower += rc == -EAGAIN;
		t->wrong += rc == -EINVAL;
		if (rc != 0)
			continue;
		t->taken++;
		t->wrong += id != HCA_SRQ_CONSUMED(next);
		/* as a CQE: the owner may use the WQE again */
		__atomic_store_n(&order[id % POSTS], HCA_SRQ_HEAD(next) + 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* Posts WQEs in the order in which they were taken, all but one are in the queue. */
static void
post_all(void)
{
	uint32_t next = 0, free_ones[SIZE], n = SIZE, seen = 0;

	for (uint32_t i = 0; i < SIZE; i++)
		free_ones[i] = (SIZE - 1 - i) * STRIDE;
	next = free_ones[--n];
	while (posted < POSTS) {
		uint32_t at = __atomic_load_n(&order[seen], __ATOMIC_ACQUIRE);

		if (at != 0) {
			free_ones[n++] = at - 1;
			seen++;
		} else if (n == 0) {
			sched_yield();
		}
		while (n != 0 && posted < POSTS) {
			post(next, free_ones[n - 1]);
			next = free_ones[--n];
		}
	}
}

static void
test_each_is_taken_once(void **state)
{
	uint32_t taken = 0, slower = 0;

	memset(order, 0, sizeof(order));
	memset(takers, 0, sizeof(takers));
	for (unsigned int i = 0; i < TAKERS; i++)
		assert_int_equal(pthread_create(&takers[i].thread, NULL, take_all, &takers[i]), 0);
	post_all();
	for (unsigned int i = 0; i < TAKERS; i++) {
		pthread_join(takers[i].thread, NULL);
		assert_int_equal(takers[i].wrong, 0);
		taken += takers[i].taken;
		slower += takers[i].slower;
	}
	assert_int_equal(taken, POSTS);
	assert_int_equal(srq.state, HCA_SRQ_LIVE);
	print_message("%u WQEs, %u times another stage was faster\n", taken, slower);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_the_slower_gets_nothing, setup),
		cmocka_unit_test_setup(test_invalid_link, setup),
		cmocka_unit_test_setup(test_invalid_count, setup),
		cmocka_unit_test_setup(test_each_is_taken_once, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
