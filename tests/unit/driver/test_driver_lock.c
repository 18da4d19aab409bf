/* SPDX-License-Identifier: BSD-3-Clause */

/* The driver's lock goes round: turns are counted, no time. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "driver.h"
#include "driver_lock.h"
#include "fake_hw.h"

#define THREADS 6u
#define TURNS 200u
#define HAMMERS 3u
#define CALLS 15u
#define COMMAND_LOOPS 200000u /* of the device, which the calling thread runs */

static struct driver_lock lock;
static unsigned int turns;
static struct {
	unsigned int thread;
	unsigned int waiting; /* when this turn began */
} turn[THREADS * TURNS];

static void *
take_turns(void *arg)
{
	for (unsigned int i = 0; i < TURNS; i++) {
		driver_lock_take(&lock);
		turn[turns].thread = (unsigned int)(uintptr_t)arg;
		turn[turns++].waiting = driver_lock_waiting(&lock);
		driver_lock_give(&lock);
	}
	return NULL;
}

/* Threads that waited during a turn have one each before any thread has another. */
static unsigned int
judge_turn(unsigned int i)
{
	bool had[THREADS] = {false};

	had[turn[i].thread] = true;
	for (unsigned int k = 1; k <= turn[i].waiting; k++) {
		assert_true(i + k < turns);
		assert_false(had[turn[i + k].thread]);
		had[turn[i + k].thread] = true;
	}
	return turn[i].waiting;
}

static void
handed_over(void **state)
{
	pthread_t thread[THREADS];
	unsigned int waited = 0;

	driver_lock_init(&lock);
	driver_lock_take(&lock);
	assert_false(driver_lock_try(&lock));
	for (unsigned int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_create(&thread[i], NULL, take_turns, (void *)(uintptr_t)i),
				 0);
		while (driver_lock_waiting(&lock) != i + 1)
			usleep(100);
	}
	driver_lock_give(&lock);
	for (unsigned int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	assert_int_equal(turns, THREADS * TURNS);
	for (unsigned int i = 0; i < THREADS; i++) /* in the order of asking */
		assert_int_equal(turn[i].thread, i);
	for (unsigned int i = 0; i < turns; i++)
		waited += judge_turn(i);
	assert_true(waited >= THREADS * (THREADS - 1) / 2);
	assert_true(driver_lock_try(&lock));
	driver_lock_give(&lock);
	driver_lock_destroy(&lock);
}

/* ---- clients ---- */

static struct fake_hw *fake;
static struct hca_driver *drv;
static void (*device)(void *arg);
static bool stop;
static unsigned int done[HAMMERS];

static void
slow_device(void *arg)
{
	for (volatile unsigned int i = 0; i < COMMAND_LOOPS; i++)
		;
	device(arg);
}

struct user {
	struct hca_client *client;
	uint32_t pdn;
};

static void
open_user(struct user *u)
{
	assert_int_equal(hca_client_open(drv, NULL, &u->client), 0);
	assert_int_equal(hca_client_call(u->client, HCA_CTL_ALLOC_PD, NULL, &u->pdn, NULL), 0);
}

/* One command of the device */
static int
make_window(const struct user *u, uint32_t *key)
{
	const struct hca_ctl_mw request = {u->pdn, HCA_CTL_MW_TYPE_1};

	return hca_client_call(u->client, HCA_CTL_ALLOC_MW, &request, key, NULL);
}

static struct user hammer_user[HAMMERS];

static void *
hammer(void *arg)
{
	unsigned int *count = arg;
	const struct user *u = &hammer_user[count - done];
	uint32_t key;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		if (make_window(u, &key) != 0)
			return arg;
		__atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
		if (hca_client_call(u->client, HCA_CTL_DEALLOC_MW, &key, NULL, NULL) != 0)
			return arg;
		__atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void
count_all(unsigned int *out)
{
	for (unsigned int i = 0; i < HAMMERS; i++)
		out[i] = __atomic_load_n(&done[i], __ATOMIC_RELAXED);
}

/*
 * While a client waits each of the others ends the call under way and at most one more.
 * A thread that is kept from its CPU before it asks does not wait yet: most calls are judged.
 */
static void
nobody_hammers(void **state)
{
	const struct hca_driver_config config = {.timeout_ms = 60000};
	pthread_t thread[HAMMERS];
	unsigned int fair = 0;
	struct user me;
	uint32_t key;
	void *failed;

	fake = fake_hw_create();
	device = fake->hw.progress;
	fake->hw.progress = slow_device;
	assert_int_equal(hca_driver_create(&fake->hw, &config, &drv), 0);
	open_user(&me);
	for (unsigned int i = 0; i < HAMMERS; i++) {
		open_user(&hammer_user[i]);
		assert_int_equal(pthread_create(&thread[i], NULL, hammer, &done[i]), 0);
	}
	for (unsigned int i = 0; i < CALLS; i++) {
		unsigned int before[HAMMERS], after[HAMMERS], most = 0;

		usleep(1000); /* the others have the lock among them */
		count_all(before);
		assert_int_equal(make_window(&me, &key), 0);
		count_all(after);
		for (unsigned int k = 0; k < HAMMERS; k++)
			if (after[k] - before[k] > most)
				most = after[k] - before[k];
		fair += most <= 2;
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (unsigned int i = 0; i < HAMMERS; i++) {
		assert_int_equal(pthread_join(thread[i], &failed), 0);
		assert_null(failed);
		hca_client_close(hammer_user[i].client);
	}
	print_message("%u of %u calls waited for at most two of each other client\n", fair, CALLS);
	assert_true(fair > CALLS / 2);
	hca_client_close(me.client);
	hca_driver_destroy(drv);
	fake_hw_destroy(fake);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handed_over),
		cmocka_unit_test(nobody_hammers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
