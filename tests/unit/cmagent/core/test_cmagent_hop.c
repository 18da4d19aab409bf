/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Questions of clients for the way to an address, over a driver whose neighbours answer when the
 * test says so. Places of datagrams: tests/unit/cmagent.
 */

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "../../driver/fake_hw.h"
#include "abi_addr.h"
#include "cmagent_hop.h"

#define TICKETS 64u
#define CLIENTS 16u
#define HALF (CMAGENT_HOP_THREADS / 2)

static struct fake_hw *fake;
static struct hca_driver *drv;
static struct cmagent_hops hops;
static sem_t woken;
static sem_t asked;    /* a thread waits for a neighbour that does not answer */
static sem_t give_up;  /* one of these threads gives up */
static uint32_t wakes; /* without threads */

static uint64_t
clock_of(void *arg)
{
	return 1;
}

static void
wake(void *owner)
{
	__atomic_add_fetch(&wakes, 1, __ATOMIC_RELAXED);
	sem_post(&woken);
}

static void
await(sem_t *s)
{
	while (sem_wait(s) != 0)
		;
}

/* 10.0.net.n; those of net 9 do not answer. */
static const uint8_t *
address(uint8_t net, uint8_t n)
{
	static uint8_t gid[16];

	memcpy(gid, (const uint8_t[16]){[10] = 0xff, 0xff, 10, 0, net, n}, sizeof(gid));
	return gid;
}

static int
ask_neighbour(void *arg, uint32_t sgid_index, const uint8_t dgid[16], uint8_t dmac[6])
{
	if (dgid[14] == 9) {
		sem_post(&asked);
		await(&give_up);
		return -EHOSTUNREACH;
	}
	memcpy(dmac, (const uint8_t[6]){2, 0, 0, 0, dgid[14], dgid[15]}, 6);
	return 0;
}

static void
start(bool asks)
{
	struct hca_driver_config config = {.timeout_ms = 50,
					   .resolve = asks ? ask_neighbour : NULL};
	const struct cmagent_hops_config c = {.asks = asks,
					      .now = clock_of,
					      .wake = wake,
					      .tickets = TICKETS,
					      .clients = CLIENTS};
	const uint8_t mac[6] = {2, 1, 1, 1, 1, 1};
	struct cmagent_hops_config with = c;

	sem_init(&woken, 0, 0);
	sem_init(&asked, 0, 0);
	sem_init(&give_up, 0, 0);
	wakes = 0;
	fake = fake_hw_create();
	assert_int_equal(hca_driver_create(&fake->hw, &config, &drv), 0);
	assert_int_equal(hca_driver_set_gid(drv, 0, address(1, 1), mac, 0xffff), 0);
	assert_int_equal(hca_driver_set_gid(drv, 3, address(8, 1), mac, 7), 0);
	with.drv = drv;
	assert_int_equal(cmagent_hops_open(&hops, &with), 0);
	assert_int_equal(cmagent_hops_start(&hops), 0);
}

static int
setup(void **state)
{
	start(true);
	return 0;
}

static int
setup_without(void **state)
{
	start(false);
	return 0;
}

static uint32_t
locked(const uint32_t *member)
{
	uint32_t value;

	pthread_mutex_lock(&hops.lock);
	value = *member;
	pthread_mutex_unlock(&hops.lock);
	return value;
}

/* Nothing is left. */
static int
teardown(void **state)
{
	for (uint32_t i = 0; i < TICKETS; i++)
		sem_post(&give_up);
	cmagent_hops_stop(&hops);
	for (uint32_t i = 0; i < CLIENTS; i++)
		cmagent_hops_forget(&hops, i);
	assert_int_equal(locked(&hops.tickets_used), 0);
	assert_int_equal(locked(&hops.clients_taken), 0);
	cmagent_hops_close(&hops);
	hca_driver_destroy(drv);
	fake_hw_destroy(fake);
	sem_destroy(&woken);
	sem_destroy(&asked);
	sem_destroy(&give_up);
	return 0;
}

static int
ask_from(uint32_t client, uint64_t ticket, uint32_t index, uint8_t net, uint8_t n)
{
	struct cmagent_hop_wish w = {.ticket = ticket, .client = client, .gid_index = index};

	memcpy(w.peer, address(net, n), sizeof(w.peer));
	return cmagent_hops_ask(&hops, &w);
}

static void
ask(uint32_t client, uint64_t ticket, uint8_t net, uint8_t n)
{
	assert_int_equal(ask_from(client, ticket, CMAGENT_HOP_NO_GID, net, n), 0);
}

static struct cmagent_hop_answer
answer(void)
{
	struct cmagent_hop_answer a;

	while (!cmagent_hops_answer(&hops, &a))
		await(&woken);
	return a;
}

static void
expect_none(void)
{
	struct cmagent_hop_answer a;

	assert_false(cmagent_hops_answer(&hops, &a));
}

/* The answer has the way, with the source that was asked for, or the nearest one. */
static void
test_way(void **state)
{
	const uint8_t mac[6] = {2, 0, 0, 0, 8, 5};
	struct cmagent_hop_answer a;

	ask(3, 77, 8, 5);
	a = answer();
	assert_int_equal(a.ticket, 77);
	assert_int_equal(a.err, 0);
	assert_int_equal(a.ah.sgid_index, 3);
	assert_memory_equal(a.own, address(8, 1), 16);
	assert_memory_equal(a.ah.dgid, address(8, 5), 16);
	assert_memory_equal(a.ah.dmac, mac, 6);
	assert_int_equal(ask_from(3, 78, 0, 8, 5), 0);
	a = answer();
	assert_int_equal(a.ticket, 78);
	assert_int_equal(a.ah.sgid_index, 0);
	assert_memory_equal(a.own, address(1, 1), 16);
	expect_none();
}

static void
test_no_way(void **state)
{
	static const uint8_t v6[16] = {0x20, 1, 0xd, 0xb8, [15] = 1};
	struct cmagent_hop_wish w = {.ticket = 5, .gid_index = CMAGENT_HOP_NO_GID};
	struct cmagent_hop_answer a;

	memcpy(w.peer, v6, sizeof(v6));
	assert_int_equal(cmagent_hops_ask(&hops, &w), 0);
	a = answer();
	assert_int_equal(a.ticket, 5);
	assert_int_equal(a.err, -EADDRNOTAVAIL); /* no own address of this version */
	assert_int_equal(ask_from(1, 6, 2, 8, 5), 0);
	a = answer();
	assert_int_equal(a.ticket, 6);
	assert_int_not_equal(a.err, 0); /* an entry that is empty */
	ask(1, 7, 9, 1);
	await(&asked);
	sem_post(&give_up);
	a = answer();
	assert_int_equal(a.ticket, 7);
	assert_int_equal(a.err, -EHOSTUNREACH);
	assert_int_equal(cmagent_hops_counter(&hops, CMAGENT_HOP_not_found), 3);
}

/* A client that asks for addresses that do not answer has one thread; others do not wait. */
static void
test_one_thread(void **state)
{
	for (uint8_t n = 0; n < 20; n++)
		ask(1, 100 + n, 9, n);
	await(&asked);
	for (uint8_t n = 0; n < 20; n++) {
		ask(2, n, 8, n);
		assert_int_equal(answer().ticket, n);
	}
	assert_int_equal(sem_trywait(&asked), -1);
	/* its own wait in their order */
	for (uint8_t n = 0; n < 3; n++) {
		sem_post(&give_up);
		assert_int_equal(answer().ticket, 100 + n);
		await(&asked);
	}
}

/* Clients have half of the threads; when all are busy, each client's turn comes. */
static void
test_turns(void **state)
{
	for (uint8_t round = 0; round < 5; round++)
		for (uint8_t c = 0; c < HALF; c++)
			ask(c, 10u * c + round, 9, (uint8_t)(20 * c + round));
	for (uint8_t c = 0; c < HALF; c++)
		await(&asked);
	ask(HALF, 501, 8, 1);
	ask(HALF + 1, 502, 8, 2);
	expect_none();
	assert_int_equal(locked(&hops.clients_taken), HALF);
	sem_post(&give_up);
	assert_int_equal(answer().ticket % 10, 0); /* the first of its client */
	assert_int_equal(answer().ticket, 501);
	assert_int_equal(answer().ticket, 502);
	await(&asked);
	assert_int_equal(locked(&hops.clients_taken), HALF);
}

/* One answer is that of all tickets of the client for the same way, and of no other. */
static void
test_same_way(void **state)
{
	uint64_t sum = 0;

	ask(1, 1, 9, 7);
	await(&asked);
	ask(1, 2, 9, 7);
	ask(1, 4, 9, 8);
	ask(1, 8, 9, 7);
	assert_int_equal(ask_from(1, 16, 3, 9, 7), 0); /* from an address of its choice */
	ask(2, 32, 9, 7);
	await(&asked);
	sem_post(&give_up);
	while (sum != (1 | 2 | 8)) {
		struct cmagent_hop_answer a = answer();

		if (a.ticket == 32) { /* it was that thread which gave up */
			sem_post(&give_up);
			continue;
		}
		assert_int_equal(a.ticket & ~UINT64_C(11), 0);
		sum |= a.ticket;
	}
}

/* A request of a client that has ended is not answered. */
static void
test_forget(void **state)
{
	ask(1, 1, 9, 1);
	await(&asked);
	ask(1, 2, 9, 2);
	ask(2, 3, 8, 3);
	while (locked(&hops.done.first) == 0)
		await(&woken);
	ask(3, 4, 8, 4);
	assert_int_equal(locked(&hops.tickets_used), 4);
	cmagent_hops_forget(&hops, 1);
	assert_int_equal(locked(&hops.tickets_used), 3);
	cmagent_hops_forget(&hops, 2);
	assert_int_equal(locked(&hops.tickets_used), 2);
	assert_int_equal(answer().ticket, 4);
	/* a new client with its number */
	ask(1, 5, 8, 5);
	sem_post(&give_up);
	assert_int_equal(answer().ticket, 5);
	expect_none();
	assert_int_equal(locked(&hops.tickets_used), 0);
}

/* A client has no more tickets than it leaves to others. */
static void
test_shares(void **state)
{
	uint32_t n = 0, left = TICKETS;

	for (uint32_t c = 1; c < 4; c++) {
		for (n = 0; ask_from(c, n, 0, 9, (uint8_t)n) == 0; n++)
			;
		assert_int_equal(n, left / 2);
		left -= n;
	}
	assert_int_equal(ask_from(1, 0, 0, 8, 1), -EAGAIN);
	assert_int_equal(ask_from(CLIENTS, 0, 0, 8, 1), -EINVAL);
	assert_int_equal(cmagent_hops_counter(&hops, CMAGENT_HOP_not_asked), 4);
	ask(5, 1000, 8, 1);
	assert_int_equal(answer().ticket, 1000);
}

/* Without threads the agent looks in the driver's table itself. */
static void
test_without_threads(void **state)
{
	const uint8_t mac[6] = {2, 5, 5, 5, 5, 5};
	struct cmagent_hop_answer a;

	assert_int_equal(hca_driver_set_neigh(drv, address(8, 5), mac), 0);
	ask(1, 1, 8, 5);
	ask(2, 2, 8, 6);
	assert_int_equal(wakes, 2);
	a = answer();
	assert_int_equal(a.ticket, 1);
	assert_memory_equal(a.ah.dmac, mac, 6);
	a = answer();
	assert_int_equal(a.ticket, 2);
	assert_int_not_equal(a.err, 0);
	expect_none();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_way),
		TEST(test_no_way),
		TEST(test_one_thread),
		TEST(test_turns),
		TEST(test_same_way),
		TEST(test_forget),
		TEST(test_shares),
		cmocka_unit_test_setup_teardown(test_without_threads, setup_without, teardown),
	};

	return cmocka_run_group_tests_name("cmagent_hop", tests, NULL, NULL);
}
