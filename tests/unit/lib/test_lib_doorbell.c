/* SPDX-License-Identifier: BSD-3-Clause */

/* The lossless doorbell FIFO with many producers. */

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "fake_ctl.h"
#include "lib_doorbell.h"

#define PRODUCERS 4u
#define PER_PRODUCER 20000u

static struct softhca_context *ctx;
static struct fake_ctl *fake;

static int
setup(void **state)
{
	fake = fake_open(&ctx, false);
	return 0;
}

static int
teardown(void **state)
{
	fake_close(fake, ctx);
	return 0;
}

/* QPN = producer + 2, sq_head and size carry its own sequence number */
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

		while (lib_doorbell_take(lib_ctx(ctx), &number) != 0)
			sched_yield();
		lib_doorbell_fill(&lib_ctx(ctx)->uar, number, word_of(producer, i));
	}
	return NULL;
}

/* Every word arrives, once, and each producer's in its order. */
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

/* A slot taken and not yet filled looks empty; nobody else may get it a round later. */
static void
test_unfilled_slot_is_not_given_again(void **state)
{
	struct lib_context *c = lib_ctx(ctx);
	uint32_t held, number;

	assert_int_equal(lib_doorbell_take(c, &held), 0);
	for (uint32_t i = 1; i < HCA_UAR_FIFO_SLOTS; i++) {
		assert_int_equal(lib_doorbell_take(c, &number), 0);
		lib_doorbell_fill(&c->uar, number, 1);
	}
	assert_int_equal(lib_doorbell_take(c, &number), -ENOMEM);
	assert_int_equal(fake_take_doorbell(fake), 0); /* the device waits at the held slot */
	lib_doorbell_fill(&c->uar, held, 2);
	assert_int_equal(fake_take_doorbell(fake), 2);
	assert_int_equal(lib_doorbell_take(c, &number), 0);
	lib_doorbell_fill(&c->uar, number, 3);
}

/* Full or dead: nothing is posted, bad_wr says so, the next try goes through. */
static void
test_full_and_dead(void **state)
{
	static const struct softhca_qp_cap cap = {.max_send_wr = 512, .max_send_sge = 1};
	struct fake_qp q = fake_make_qp(ctx, &cap, SOFTHCA_QPS_RTS, 4);
	struct lib_qp *qp = (struct lib_qp *)q.qp;
	struct softhca_send_wr wr = {.opcode = SOFTHCA_WR_SEND};
	struct softhca_send_wr *bad = NULL;

	for (uint32_t i = 0; i < HCA_UAR_FIFO_SLOTS; i++)
		assert_int_equal(softhca_post_send(q.qp, &wr, NULL), 0);
	assert_int_equal(softhca_post_send(q.qp, &wr, &bad), -ENOMEM);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(qp->sq.head, HCA_UAR_FIFO_SLOTS);
	assert_int_not_equal(fake_take_doorbell(fake), 0);
	assert_int_equal(softhca_post_send(q.qp, &wr, NULL), 0);
	fake->dead = true;
	assert_int_equal(softhca_post_send(q.qp, &wr, &bad), -EIO);
	assert_int_equal(softhca_post_send(q.qp, &wr, &bad), -EIO);
	fake_drop_qp(&q);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lossless, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unfilled_slot_is_not_given_again, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_full_and_dead, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
