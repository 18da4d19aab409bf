/* SPDX-License-Identifier: BSD-3-Clause */

/* The lossless doorbell FIFO with many producers. */

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "lib_doorbell.h"
#include "lib_rig.h"

#define PRODUCERS 4u
#define PER_PRODUCER 20000u

const struct rig_wanted rig_wanted = {
	.cap = {.max_send_wr = 512, .max_send_sge = 1},
	.cqe = 4,
	.state = SOFTHCA_QPS_RTS,
};

/* QPN = producer + 2; sq_head and size hold the producer's sequence number */
static uint64_t
word_of(uint32_t producer, uint32_t sequence)
{
	return HCA_DB_MAKE(sequence & 0xffff, 0, HCA_OP_SEND, producer + 2, sequence >> 16);
}

static void *
produce(void *arg)
{
	uint32_t producer = (uint32_t)(uintptr_t)arg;

	for (uint32_t i = 0; i < PER_PRODUCER; i++) {
		uint32_t number;

		while (!lib_doorbell_try(&lib_ctx(ctx)->uar, &number))
			sched_yield();
		lib_doorbell_fill(&lib_ctx(ctx)->uar, number, word_of(producer, i));
	}
	return NULL;
}

/* Every word arrives once, in the order of its producer. */
static void
test_lossless(void **state)
{
	pthread_t threads[PRODUCERS];
	uint32_t next[PRODUCERS] = {0};
	uint32_t total = 0;

	for (uintptr_t i = 0; i < PRODUCERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, produce, (void *)i), 0);
	while (total < PRODUCERS * PER_PRODUCER) {
		uint64_t word = fake_take_doorbell(fake);
		uint32_t producer;

		if (word == 0) {
			sched_yield();
			continue;
		}
		producer = HCA_DB_QPN(word) - 2;
		assert_in_range(producer, 0, PRODUCERS - 1);
		assert_int_equal(word, word_of(producer, next[producer]));
		next[producer]++;
		total++;
	}
	for (uint32_t i = 0; i < PRODUCERS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(fake_take_doorbell(fake), 0);
}

/*
 * A reserved slot that is not filled yet looks empty; a round later no other producer may get it.
 */
static void
test_unfilled_slot_is_not_given_again(void **state)
{
	struct lib_context *c = lib_ctx(ctx);
	uint32_t held = 0, number = 0;

	assert_int_equal(lib_doorbell_take(c, &c->uar, &held), 0);
	for (uint32_t i = 1; i < HCA_UAR_FIFO_SLOTS; i++) {
		assert_int_equal(lib_doorbell_take(c, &c->uar, &number), 0);
		lib_doorbell_fill(&c->uar, number, 1);
	}
	assert_int_equal(lib_doorbell_take(c, &c->uar, &number), LIB_DOORBELL_FULL);
	assert_int_equal(fake_take_doorbell(fake), 0); /* the device waits at the reserved slot */
	lib_doorbell_fill(&c->uar, held, 2);
	assert_int_equal(fake_take_doorbell(fake), 2);
	assert_int_equal(lib_doorbell_take(c, &c->uar, &number), 0);
	lib_doorbell_fill(&c->uar, number, 3);
}

/* Link of the WQE at an index of the queue, as the device reads it. */
static uint32_t
flags_at(const struct lib_qp *qp, uint32_t index)
{
	const struct hca_next_unit *next =
		(const void *)(qp->sq.buf + ((index & qp->sq.mask) << qp->sq.log_stride));

	return hca_le32_to_cpu(__atomic_load_n(&next->flags, __ATOMIC_ACQUIRE));
}

static bool
take_mark(const struct lib_qp *qp)
{
	uint32_t m = HCA_UAR_MARK(1, qp->pub.qp_num);
	uint64_t w = 1ull << m / 64, bit = 1ull << m % 64;
	bool summary = (hca_le64_to_cpu(fake->page.marked) & w) != 0;
	bool set = (hca_le64_to_cpu(fake->page.marks[m / 64]) & bit) != 0;

	assert_true(summary == set);
	fake->page.marked &= hca_cpu_to_le64(~w);
	fake->page.marks[m / 64] &= hca_cpu_to_le64(~bit);
	return set;
}

/* The page is full: the previous WQE's link announces the request, in every round of the queue. */
static void
test_full(void **state)
{
	struct softhca_send_wr last = {.opcode = SOFTHCA_WR_SEND};
	struct softhca_send_wr wr = {.opcode = SOFTHCA_WR_RDMA_READ,
				     .send_flags = SOFTHCA_SEND_FENCE,
				     .next = &last};
	struct lib_qp *qp = (struct lib_qp *)q.qp;
	uint32_t says;

	for (uint32_t i = 0; i < HCA_UAR_FIFO_SLOTS; i++)
		assert_int_equal(softhca_post_send(q.qp, &last, NULL), 0);
	for (uint32_t i = 0; i < HCA_UAR_FIFO_SLOTS; i++)
		assert_int_equal(flags_at(qp, i) >> 16, 0);
	assert_false(take_mark(qp));
	for (uint32_t round = 0; round < 5; round++) {
		assert_int_equal(softhca_post_send(q.qp, &wr, NULL), 0);
		assert_true(take_mark(qp));
		says = flags_at(qp, qp->sq.head - 2);
		assert_int_equal(says & 0xffff0000, HCA_WQE_MAKE_ANNOUNCE((qp->sq.head - 2) >> 9, 1,
									  HCA_OP_RDMA_READ, 2));
		assert_int_equal(flags_at(qp, qp->sq.head - 1) >> 16, 0);
		for (uint32_t i = 2; i < qp->sq.mask + 1; i++) {
			__atomic_store_n(&qp->sq_polled.tail, qp->sq.head, __ATOMIC_RELEASE);
			assert_int_equal(softhca_post_send(q.qp, &last, NULL), 0);
		}
		assert_true(take_mark(qp));
	}
	assert_int_not_equal(fake_take_doorbell(fake), 0);
	__atomic_store_n(&qp->sq_polled.tail, qp->sq.head, __ATOMIC_RELEASE);
	assert_int_equal(softhca_post_send(q.qp, &last, NULL), 0);
	assert_false(take_mark(qp));
}

/* Requests announced before a reset are not read after it. */
static void
test_reset_forgets(void **state)
{
	struct softhca_qp_attr attr = {.qp_state = SOFTHCA_QPS_RESET};
	struct softhca_send_wr wr = {.opcode = SOFTHCA_WR_SEND};
	struct lib_qp *qp = (struct lib_qp *)q.qp;
	uint32_t number;

	while (lib_doorbell_try(&lib_ctx(ctx)->uar, &number))
		lib_doorbell_fill(&lib_ctx(ctx)->uar, number, 1);
	for (uint32_t i = 0; i <= qp->sq.mask; i++)
		assert_int_equal(softhca_post_send(q.qp, &wr, NULL), 0);
	assert_int_equal(softhca_post_send(q.qp, &wr, NULL), -ENOMEM);
	assert_int_not_equal(flags_at(qp, 0) >> 16, 0);
	assert_int_equal(softhca_modify_qp(q.qp, &attr, SOFTHCA_QP_STATE), 0);
	for (uint32_t i = 0; i <= qp->sq.mask; i++)
		assert_int_equal(flags_at(qp, i) >> 16, 0);
}

/* Dead device: nothing is posted, and bad_wr is the first request. */
static void
test_full_and_dead(void **state)
{
	struct lib_qp *qp = (struct lib_qp *)q.qp;
	struct softhca_send_wr wr = {.opcode = SOFTHCA_WR_SEND};
	struct softhca_send_wr *bad = NULL;

	for (uint32_t i = 0; i < HCA_UAR_FIFO_SLOTS; i++)
		assert_int_equal(softhca_post_send(q.qp, &wr, NULL), 0);
	fake->dead = true;
	assert_int_equal(softhca_post_send(q.qp, &wr, &bad), -EIO);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(qp->sq.head, HCA_UAR_FIFO_SLOTS);
	assert_int_equal(softhca_post_send(q.qp, &wr, &bad), -EIO);
}

/* The counters of a pipeline share no cache line with those of another. */
static void
test_pipelines_share_no_line(void **state)
{
	struct softhca_context *several;
	struct fake_ctl *f = fake_open_pipes(&several, false, HCA_UAR_PIPES_MAX);

	for (uint32_t i = 0; i < HCA_UAR_PIPES_MAX; i++)
		assert_int_equal((uintptr_t)lib_uar_of(lib_ctx(several), i) % HCA_CACHE_LINE, 0);
	fake_close(f, several);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lossless, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_unfilled_slot_is_not_given_again, rig_setup,
						rig_teardown),
		cmocka_unit_test_setup_teardown(test_full, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_reset_forgets, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_full_and_dead, rig_setup, rig_teardown),
		cmocka_unit_test(test_pipelines_share_no_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
