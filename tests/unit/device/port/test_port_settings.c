/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * An operator changes faults while a worker sends and receives: every frame meets the old setting
 * or the new one, never a mixture; ThreadSanitizer finds no races.
 */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include <rte_mbuf.h>

#include "../../../test_eal.h"
#include "engine/pkt.h"
#include "port/port_impair.h"
#include "port/port_inbound.h"

#define CHANGES 20000u
#define LEN 100u

static struct rte_mempool *pool;

/* Used by the worker: frames are allocated in rx and freed after tx. */
struct wire {
	struct hca_port port;
	uint64_t sent, made;
};

static uint16_t
wire_tx(struct hca_port *p, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	(void)now;
	((struct wire *)p)->sent += n;
	rte_pktmbuf_free_bulk(m, n);
	return n;
}

static uint16_t
wire_rx(struct hca_port *p, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	(void)now;
	if (rte_pktmbuf_alloc_bulk(pool, m, n) != 0)
		return 0;
	for (uint16_t i = 0; i < n; i++)
		rte_pktmbuf_append(m[i], LEN);
	((struct wire *)p)->made += n;
	return n;
}

static bool
wire_up(struct hca_port *p)
{
	(void)p;
	return true;
}

static void
wire_close(struct hca_port *p)
{
	(void)p;
}

static const struct hca_port_ops wire_ops = {
	.rx = wire_rx,
	.tx = wire_tx,
	.link_up = wire_up,
	.close = wire_close,
};

struct operator
{
	struct hca_port *impair;
	int end;
};

/* All frames are lost, or all are duplicated: a frame that is neither met a mixture. */
static void *
operate(void *arg)
{
	static const struct hca_impair lose = {.drop = 1}, twice = {.dup = 1};
	struct operator* o = arg;
	struct hca_port_impair_stats s;
	struct hca_fired fired[HCA_FIRED_MAX];

	for (unsigned int i = 0; i < CHANGES; i++) {
		hca_port_impair_set(o->impair, i % 2 ? &lose : &twice);
		for (unsigned int k = hca_port_impair_fired(o->impair, fired); k > 1; k--)
			assert_int_equal(fired[k - 1].number, fired[k - 2].number + 1);
		hca_port_impair_stats(o->impair, &s);
		if (i % 64 == 0)
			sched_yield();
	}
	__atomic_store_n(&o->end, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* step: passes one burst through the port. */
static void
change_while(struct hca_port *impair, void (*step)(struct hca_port *p, uint64_t now),
	     struct hca_port *p)
{
	static const struct hca_impair twice = {.dup = 1};
	struct operator o = {.impair = impair};
	struct hca_port_impair_stats s;
	pthread_t thread;
	uint64_t now = 0;

	hca_port_impair_set(impair, &twice);
	assert_int_equal(pthread_create(&thread, NULL, operate, &o), 0);
	while (!__atomic_load_n(&o.end, __ATOMIC_ACQUIRE)) {
		step(p, ++now);
		sched_yield();
	}
	pthread_join(thread, NULL);
	/* the last setting is in effect: everything is lost */
	hca_port_impair_stats(impair, &s);
	step(p, ++now);
	for (uint64_t dropped = s.dropped, frames = s.frames, i = 0; i < 10; i++) {
		step(p, ++now);
		hca_port_impair_stats(impair, &s);
		assert_true(s.frames > frames && s.dropped > dropped);
	}
	assert_int_equal(s.no_mbuf + s.hold_full, 0);
	assert_int_equal(s.frames, s.dropped + s.duplicated);
}

static void
send_burst(struct hca_port *p, uint64_t now)
{
	struct rte_mbuf *m[8];

	assert_int_equal(rte_pktmbuf_alloc_bulk(pool, m, RTE_DIM(m)), 0);
	for (unsigned int i = 0; i < RTE_DIM(m); i++)
		rte_pktmbuf_append(m[i], LEN);
	assert_int_equal(p->ops->tx(p, 0, m, RTE_DIM(m), now), RTE_DIM(m));
}

static void
receive_burst(struct hca_port *p, uint64_t now)
{
	struct rte_mbuf *m[32];
	uint16_t got = p->ops->rx(p, 0, m, 4, now);

	got += p->ops->rx(p, 0, m + got, (uint16_t)(RTE_DIM(m) - got), now);
	rte_pktmbuf_free_bulk(m, got);
}

static void
of_sent(void **state)
{
	const struct hca_port_impair_config cfg = {.name = "tss", .seed = 3, .socket_id = -1};
	struct wire w = {.port = {.ops = &wire_ops, .max_frame = 4400, .queue_size = 64}};
	struct hca_port_impair_stats s;
	struct hca_port *p;

	(void)state;
	assert_int_equal(hca_port_impair_open(&cfg, &w.port, &p), 0);
	change_while(p, send_burst, p);
	hca_port_impair_stats(p, &s);
	assert_int_equal(w.sent, 2 * s.duplicated);
	p->ops->close(p);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

static void
of_received(void **state)
{
	const struct hca_port_impair_config cfg = {.name = "tsr", .seed = 3, .socket_id = -1};
	struct wire w = {.port = {.ops = &wire_ops, .max_frame = 4400, .queue_size = 64}};
	struct hca_port *p;

	(void)state;
	assert_int_equal(hca_port_inbound_open(&cfg, &w.port, &p), 0);
	change_while(hca_port_inbound_impair(p), receive_burst, p);
	p->ops->close(p);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

static int
setup(void **state)
{
	(void)state;
	if (test_eal_start(256) != 0)
		return -1;
	pool = rte_pktmbuf_pool_create("tp", 4095, 0, HCA_MBUF_PRIV, HCA_MBUF_DATA, -1);
	return pool != NULL ? 0 : -1;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_sent),
		cmocka_unit_test(of_received),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
