/* SPDX-License-Identifier: BSD-3-Clause */

/* A port of an ethdev with several queues: each passes its own frames. */

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
#include "port/port_pcap.h"
#include "port/port_stall.h"

#define QUEUES 4u

static struct rte_ring *in[QUEUES], *out[QUEUES];
static struct rte_mempool *pool;

static int
device(const char *name)
{
	return rte_eth_from_rings(name, in, QUEUES, out, QUEUES, 0);
}

static struct hca_port *
port_open(const char *name, uint16_t queues)
{
	const struct hca_port_ethdev_config cfg = {.port_id = (uint16_t)device(name),
						   .queues = queues,
						   .name = name,
						   .socket_id = SOCKET_ID_ANY};
	struct hca_port *p;

	assert_int_equal(hca_port_ethdev_open(&cfg, &p), 0);
	return p;
}

static struct rte_mbuf *
frame(struct rte_mempool *from)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(from);

	assert_non_null(m);
	assert_non_null(rte_pktmbuf_append(m, 64));
	return m;
}

/* The frame in ring q, or NULL. All other rings must be empty. */
static struct rte_mbuf *
only_in(struct rte_ring *const *ring, uint16_t q)
{
	struct rte_mbuf *m = NULL;

	for (uint16_t i = 0; i < QUEUES; i++)
		if (i != q)
			assert_true(rte_ring_empty(ring[i]));
	rte_ring_dequeue(ring[q], (void **)&m);
	return m;
}

static void
each_alone(void **state)
{
	struct hca_port *p = port_open("q_each", QUEUES);
	struct rte_mbuf *m, *got;

	(void)state;
	assert_int_equal(p->queues, QUEUES);
	for (uint16_t q = 0; q < QUEUES; q++) {
		m = frame(pool);
		assert_int_equal(p->ops->tx(p, q, &m, 1, 0), 1);
		assert_ptr_equal(only_in(out, q), m);
		assert_int_equal(rte_ring_enqueue(in[q], m), 0);
		for (uint16_t other = 0; other < QUEUES; other++)
			if (other != q)
				assert_int_equal(p->ops->rx(p, other, &got, 1, 0), 0);
		assert_int_equal(p->ops->rx(p, q, &got, 1, 0), 1);
		assert_ptr_equal(got, m);
		rte_pktmbuf_free(m);
	}
	p->ops->close(p);
}

/* Frames without the private area are copied; the losses of all queues are the port's. */
static void
lost_in_all(void **state)
{
	struct rte_mempool *bare =
		rte_pktmbuf_pool_create("q_bare", 63, 0, 0, HCA_MBUF_DATA, SOCKET_ID_ANY);
	const struct hca_port_ethdev_config cfg = {.port_id = (uint16_t)device("q_lost"),
						   .queues = QUEUES,
						   .rx_mbufs = 1,
						   .name = "q_lost",
						   .socket_id = SOCKET_ID_ANY};
	struct rte_mbuf *got, *kept[QUEUES];
	struct hca_port *p;

	(void)state;
	assert_int_equal(hca_port_ethdev_open(&cfg, &p), 0);
	for (uint16_t q = 0; q < QUEUES; q++) {
		assert_int_equal(rte_ring_enqueue(in[q], frame(bare)), 0);
		assert_int_equal(p->ops->rx(p, q, &kept[q], 1, 0), 1);
		assert_int_equal(rte_ring_enqueue(in[q], frame(bare)), 0);
		assert_int_equal(p->ops->rx(p, q, &got, 1, 0), 0);
		assert_int_equal(hca_port_missed(p), q + 1);
	}
	rte_pktmbuf_free_bulk(kept, QUEUES);
	p->ops->close(p);
	rte_mempool_free(bare);
}

/* close() frees the frames that wait in all queues. */
static void
closed(void **state)
{
	unsigned int before = rte_mempool_avail_count(pool);
	struct hca_port *p = port_open("q_close", QUEUES);

	(void)state;
	for (uint16_t q = 0; q < QUEUES; q++)
		assert_int_equal(rte_ring_enqueue(in[q], frame(pool)), 0);
	p->ops->close(p);
	assert_int_equal(rte_mempool_avail_count(pool), before);
}

static void
bounded(void **state)
{
	struct hca_port_ethdev_config cfg = {.port_id = (uint16_t)device("q_many"),
					     .queues = HCA_PORT_ETHDEV_QUEUES + 1,
					     .name = "q_many",
					     .socket_id = SOCKET_ID_ANY};
	struct hca_port *p;

	(void)state;
	assert_int_equal(hca_port_ethdev_open(&cfg, &p), -EINVAL);
	cfg.queues = QUEUES + 1; /* more than the device has */
	assert_int_equal(hca_port_ethdev_open(&cfg, &p), 0);
	assert_int_equal(p->queues, QUEUES);
	p->ops->close(p);
	cfg.port_id = (uint16_t)device("q_one");
	cfg.queues = 0;
	assert_int_equal(hca_port_ethdev_open(&cfg, &p), 0);
	assert_int_equal(p->queues, 1);
	p->ops->close(p);
}

/* Ports in front of others have the same queues. */
static void
in_front(void **state)
{
	const struct hca_port_stall_config cfg = {.socket_id = SOCKET_ID_ANY};
	struct hca_port *inner = port_open("q_front", QUEUES), *p, *s;
	struct rte_mbuf *m = frame(pool);

	(void)state;
	assert_int_equal(hca_port_pcap_open(NULL, inner, SOCKET_ID_ANY, &p), 0);
	assert_int_equal(p->queues, QUEUES);
	assert_int_equal(p->ops->tx(p, 2, &m, 1, 0), 1);
	assert_ptr_equal(only_in(out, 2), m);
	rte_pktmbuf_free(m);
	assert_int_equal(hca_port_stall_open(&cfg, p, &s), 0);
	assert_int_equal(s->queues, QUEUES);
	s->ops->close(s);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_alone), cmocka_unit_test(lost_in_all),
		cmocka_unit_test(closed),     cmocka_unit_test(bounded),
		cmocka_unit_test(in_front),
	};

	if (test_eal_start(128) != 0)
		return 1;
	pool = hca_mbuf_pool("q_pool", 63, 0, HCA_MBUF_DATA, SOCKET_ID_ANY);
	for (unsigned int q = 0; q < QUEUES; q++) {
		char name[RTE_RING_NAMESIZE];

		snprintf(name, sizeof(name), "in%u", q);
		in[q] = rte_ring_create(name, 64, SOCKET_ID_ANY, 0);
		snprintf(name, sizeof(name), "out%u", q);
		out[q] = rte_ring_create(name, 64, SOCKET_ID_ANY, 0);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
