/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A port of a vhost device: frames for a queue that the guest does not use leave by the first one.
 * The device is made of rings and says that it is of vhost; a full ring is a queue without buffers.
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_ring.h>

#include "../../../test_eal.h"
#include "core/mbuf.h"
#include "core/table.h"
#include "port/port_ethdev.h"

#define QUEUES 2u
#define ROOM 3u /* of a ring */
#define SECOND 1000000000ull

static struct rte_ring *ring[QUEUES];
static struct rte_mempool *pool;
static struct hca_port *port;
static uint16_t id;

/* The watchers of the device, and how many calls to remove one find it inside. */
static struct {
	rte_eth_dev_cb_fn call;
	void *arg;
	unsigned int n, inside;
} watchers;

int __real_rte_eth_dev_info_get(uint16_t of, struct rte_eth_dev_info *info);
int __wrap_rte_eth_dev_info_get(uint16_t of, struct rte_eth_dev_info *info);
int __wrap_rte_eth_dev_callback_register(uint16_t of, enum rte_eth_event_type event,
					 rte_eth_dev_cb_fn call, void *arg);
int __wrap_rte_eth_dev_callback_unregister(uint16_t of, enum rte_eth_event_type event,
					   rte_eth_dev_cb_fn call, void *arg);

int
__wrap_rte_eth_dev_info_get(uint16_t of, struct rte_eth_dev_info *info)
{
	int rc = __real_rte_eth_dev_info_get(of, info);

	info->driver_name = "net_vhost";
	return rc;
}

int
__wrap_rte_eth_dev_callback_register(uint16_t of, enum rte_eth_event_type event,
				     rte_eth_dev_cb_fn call, void *arg)
{
	(void)event;
	assert_int_equal(of, id);
	watchers.call = call;
	watchers.arg = arg;
	watchers.n++;
	return 0;
}

int
__wrap_rte_eth_dev_callback_unregister(uint16_t of, enum rte_eth_event_type event,
				       rte_eth_dev_cb_fn call, void *arg)
{
	(void)event;
	assert_int_equal(of, id);
	assert_ptr_equal(call, watchers.call);
	assert_ptr_equal(arg, watchers.arg);
	if (watchers.inside != 0) {
		watchers.inside--;
		return -EAGAIN;
	}
	watchers.n--;
	return 0;
}

static int
setup(void **state)
{
	static unsigned int turn;
	char name[32];
	struct hca_port_ethdev_config cfg = {.queues = QUEUES,
					     .name = name,
					     .socket_id = SOCKET_ID_ANY};
	int rc;

	(void)state;
	snprintf(name, sizeof(name), "vhost%u", turn++);
	rc = rte_eth_from_rings(name, ring, QUEUES, ring, QUEUES, 0);
	id = (uint16_t)rc;
	cfg.port_id = id;
	return rc < 0 ? rc : hca_port_ethdev_open(&cfg, &port);
}

/* close() frees the frames in the rings. */
static int
teardown(void **state)
{
	(void)state;
	port->ops->close(port);
	return 0;
}

static void
guest_changes(void)
{
	watchers.call(id, RTE_ETH_EVENT_QUEUE_STATE, watchers.arg, NULL);
}

/* One frame by this queue; the number that the port takes. */
static unsigned int
send_one(uint16_t q, uint64_t now)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	uint16_t took;

	assert_non_null(m);
	assert_non_null(rte_pktmbuf_append(m, 64));
	took = port->ops->tx(port, q, &m, 1, now);
	if (took == 0)
		rte_pktmbuf_free(m);
	return took;
}

static unsigned int
frames_in(unsigned int q)
{
	return rte_ring_count(ring[q]);
}

static void
take_all(unsigned int q)
{
	struct rte_mbuf *m;

	while (rte_ring_dequeue(ring[q], (void **)&m) == 0)
		rte_pktmbuf_free(m);
}

static void
fill(unsigned int q)
{
	while (rte_ring_free_count(ring[q]) != 0)
		assert_int_equal(rte_ring_enqueue(ring[q], rte_pktmbuf_alloc(pool)), 0);
}

/* A queue without buffers is as one that is not used, until the guest changes it. */
static void
unused(void **state)
{
	(void)state;
	fill(1);
	assert_int_equal(send_one(1, SECOND), 1);
	assert_int_equal(frames_in(0), 1);
	take_all(1);
	assert_int_equal(send_one(1, SECOND), 1);
	assert_int_equal(frames_in(0), 2);
	guest_changes();
	assert_int_equal(send_one(1, SECOND), 1);
	assert_int_equal(frames_in(0), 2);
	assert_int_equal(frames_in(1), 1);
}

/* A guest that gives its buffers after it has enabled the queue raises no event with them. */
static void
buffers_later(void **state)
{
	(void)state;
	guest_changes();
	fill(1);
	assert_int_equal(send_one(1, SECOND), 1);
	assert_int_equal(frames_in(0), 1);
	take_all(1);
	/* not with each frame: a call of the driver for an unused queue costs time */
	assert_int_equal(send_one(1, SECOND + 1000), 1);
	assert_int_equal(frames_in(0), 2);
	assert_int_equal(send_one(1, SECOND + SECOND / 10), 1);
	assert_int_equal(frames_in(0), 2);
	assert_int_equal(frames_in(1), 1);
}

/* One that took frames is full: they wait, and keep their order. */
static void
full(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < ROOM; i++)
		assert_int_equal(send_one(1, SECOND), 1);
	assert_int_equal(send_one(1, SECOND), 0);
	assert_int_equal(send_one(1, 2 * SECOND), 0);
	assert_int_equal(frames_in(0), 0);
	take_all(1);
	assert_int_equal(send_one(1, 2 * SECOND), 1);
	assert_int_equal(frames_in(1), 1);
}

/* While a worker sends by the first queue, another one sends. */
static uint16_t
meanwhile(uint16_t of, uint16_t q, struct rte_mbuf **m, uint16_t n, void *took)
{
	(void)of;
	(void)q;
	(void)m;
	*(unsigned int *)took = send_one(1, SECOND);
	return n;
}

static void
first_is_busy(void **state)
{
	unsigned int took = 9;
	const struct rte_eth_rxtx_callback *c;

	(void)state;
	fill(1);
	c = rte_eth_add_tx_callback(id, 0, meanwhile, &took);
	if (c == NULL)
		skip(); /* a DPDK without these calls */
	assert_int_equal(send_one(0, SECOND), 1);
	assert_int_equal(took, 0);
	assert_int_equal(frames_in(0), 1);
	rte_eth_remove_tx_callback(id, 0, c);
	assert_int_equal(send_one(1, SECOND), 1);
	assert_int_equal(frames_in(0), 2);
}

/* close() waits for a watcher that is called at that moment. */
static void
watched(void **state)
{
	(void)state;
	assert_int_equal(watchers.n, 2);
	watchers.inside = 3;
	port->ops->close(port);
	assert_int_equal(watchers.inside, 0);
	assert_int_equal(watchers.n, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(unused, setup, teardown),
		cmocka_unit_test_setup_teardown(buffers_later, setup, teardown),
		cmocka_unit_test_setup_teardown(full, setup, teardown),
		cmocka_unit_test_setup_teardown(first_is_busy, setup, teardown),
		cmocka_unit_test_setup(watched, setup),
	};

	if (test_eal_start(128) != 0)
		return 1;
	pool = hca_mbuf_pool("vh_pool", 63, 0, HCA_MBUF_DATA, SOCKET_ID_ANY);
	for (unsigned int q = 0; q < QUEUES; q++) {
		char name[RTE_RING_NAMESIZE];

		snprintf(name, sizeof(name), "vh%u", q);
		ring[q] = rte_ring_create(name, ROOM + 1, SOCKET_ID_ANY, 0);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
