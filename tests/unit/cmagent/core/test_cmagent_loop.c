/* SPDX-License-Identifier: BSD-3-Clause */

/* The loop of an agent, with the queues of management datagrams over a device made of arrays. */

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "../../driver/fake_hw.h"
#include "cmagent_loop.h"
#include "gsi_mail.h"

static struct fake_hw *fake;
static struct hca_driver *drv;
static struct cmagent_mail mail;
static struct cmagent_loop loop;
static uint64_t now, next; /* the clock, and the deadline that a turn sets */
static uint32_t turns, inside;
static sem_t turned;

static uint64_t
clock_of(void *arg)
{
	return __atomic_load_n(&now, __ATOMIC_ACQUIRE);
}

/* A turn, which tries to begin another one. */
static unsigned int
turn(void *owner, uint64_t at, uint64_t *deadline)
{
	struct cmagent_mail_letter l;
	unsigned int n = 0;

	turns++;
	inside += cmagent_loop_poll(owner);
	while (cmagent_mail_take(&mail, &l) != CMAGENT_MAIL_NONE)
		n++;
	*deadline = __atomic_load_n(&next, __ATOMIC_ACQUIRE);
	sem_post(&turned);
	return 7 + n;
}

static void
open_loop(bool thread)
{
	const struct cmagent_loop_config c = {.thread = thread,
					      .mail = &mail,
					      .now = clock_of,
					      .work = turn,
					      .owner = &loop};
	struct hca_driver_config config = {.timeout_ms = 50};

	now = turns = inside = 0;
	next = CMAGENT_NEVER;
	sem_init(&turned, 0, 0);
	fake = fake_hw_create();
	assert_int_equal(hca_driver_create(&fake->hw, &config, &drv), 0);
	assert_int_equal(cmagent_loop_open(&loop, &c), 0);
	assert_int_equal(gsi_mail_open(&mail, drv, thread), 0);
}

static void
close_loop(void)
{
	cmagent_loop_stop(&loop);
	cmagent_mail_close(&mail);
	cmagent_loop_close(&loop);
	hca_driver_destroy(drv);
	assert_int_equal(fake->windows, 0);
	fake_hw_destroy(fake);
	sem_destroy(&turned);
}

/* A turn is due at first, when a caller wakes the loop, at its deadline, and for a completion. */
static void
test_due(void **state)
{
	open_loop(false);
	next = 100;
	assert_int_equal(cmagent_loop_start(&loop), 0);
	assert_int_equal(cmagent_loop_poll(&loop), 7);
	assert_int_equal(cmagent_loop_poll(&loop), 0);
	cmagent_loop_wake(&loop);
	assert_int_equal(cmagent_loop_poll(&loop), 7);
	now = 99;
	assert_int_equal(cmagent_loop_poll(&loop), 0);
	now = 100;
	next = CMAGENT_NEVER;
	assert_int_equal(cmagent_loop_poll(&loop), 7);
	assert_int_equal(cmagent_loop_poll(&loop), 0);
	*(struct hca_cqe *)(void *)mail.cq = (struct hca_cqe){.is_send = 1};
	assert_int_equal(cmagent_loop_poll(&loop), 8);
	assert_int_equal(cmagent_loop_poll(&loop), 0);
	/* the owner does not poll the mail meanwhile */
	loop.mail_at = 200;
	*(struct hca_cqe *)(void *)(mail.cq + HCA_CQE_LARGE_SIZE) = (struct hca_cqe){.is_send = 1};
	assert_int_equal(cmagent_loop_poll(&loop), 0);
	now = 200;
	assert_int_equal(cmagent_loop_poll(&loop), 8);
	assert_int_equal(turns, 5);
	assert_int_equal(inside, 0); /* one thread at a time */
	close_loop();
}

static void
await_turn(void)
{
	while (sem_wait(&turned) != 0)
		;
}

/* The thread sleeps without a deadline until it is woken, and not beyond a deadline. */
static void
test_thread(void **state)
{
	open_loop(true);
	assert_int_equal(cmagent_loop_start(&loop), 0);
	await_turn();
	cmagent_loop_wake(&loop);
	await_turn();
	__atomic_store_n(&next, 1, __ATOMIC_RELEASE);
	cmagent_loop_wake(&loop);
	await_turn();
	/* a deadline of the past is due at once */
	__atomic_store_n(&now, 1, __ATOMIC_RELEASE);
	await_turn();
	close_loop();
	assert_int_equal(inside, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_due),
		cmocka_unit_test(test_thread),
	};

	return cmocka_run_group_tests_name("cmagent_loop", tests, NULL, NULL);
}
