/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Frames of a kernel interface and workers that sleep without an alarm: frames from the other side
 * wake the transmitting worker, and frames for it wake the receiving one, at random times around
 * the one at which a worker falls asleep. If a wakeup is lost, a frame never arrives.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <rte_mbuf.h>

#include "../../../test_eal.h"
#include "engine/impl.h"
#include "engine/pkt.h"
#include "graph/executor.h"
#include "graph/sleep.h"
#include "port/port_divert.h"
#include "port/port_memory.h"

#define FRAMES 300u /* [in each direction and layout], or WAKEUPS in the environment */
#define BYTES 60u
#define DISTANCE_NS 400000u
#define LOST_NS 60000000000ull

struct rig {
	struct hca_port *divert, *far;
	struct hca *hca;
	struct hca_threads *threads;
	struct rte_mempool *pool;
};

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void
pause_between(void)
{
	uint32_t ns = (uint32_t)random() % DISTANCE_NS;
	struct timespec ts = {.tv_nsec = ns};
	uint64_t end = now_ns() + ns;

	if (random() % 2 == 0)
		nanosleep(&ts, NULL);
	while (now_ns() < end)
		;
}

static void
wake_transmitter(void *h)
{
	hca_kick_stage(h, HCA_STAGE_ENCAP);
}

static void
rig_open(struct rig *r, enum hca_layout layout)
{
	static unsigned int serial;
	char name[16];
	struct hca_port_divert_config dc = {.name = name, .mac = {2, 0, 0, 0, 0, 1}};
	struct hca_config hc = {
		.name = name,
		.layout = layout,
		.socket_id = -1,
		.log_qps = 6,
		.log_cqs = 6,
		.log_mpts = 8,
		.log_mtts = 10,
		.records = 256,
		.full_records = 256,
		.mbufs = 512,
		.mac = {2, 0, 0, 0, 0, 1},
	};
	struct hca_threads_config tc = {.hca = &r->hca, .num_hca = 1, .backstop_ns = UINT64_MAX};
	struct hca_port *pair[2];

	snprintf(name, sizeof(name), "pw%u", serial++);
	assert_int_equal(hca_port_memory_pair(name, 1, 64, -1, pair), 0);
	r->far = pair[1];
	dc.socket_id = -1;
	assert_int_equal(hca_port_divert_open(&dc, pair[0], &r->divert), 0);
	hc.port = r->divert;
	assert_int_equal(hca_create(&hc, &r->hca), 0);
	hca_port_divert_set_wake(r->divert, wake_transmitter, r->hca);
	assert_int_equal(hca_threads_start(&tc, &r->threads), 0);
	r->pool = rte_pktmbuf_pool_create(name, 255, 0, HCA_MBUF_PRIV, 2048, -1);
	assert_non_null(r->pool);
}

static uint64_t
counter(const struct hca *h, const char *name)
{
	for (unsigned int i = 0; i < hca_counter_count(); i++)
		if (strcmp(hca_counter_name(i), name) == 0)
			return hca_counter_value(h, i);
	fail_msg("no counter %s", name);
	return 0;
}

static void
rig_close(struct rig *r)
{
	hca_threads_stop(r->threads);
	print_message("%lu sleeps, %lu kicked\n", (unsigned long)counter(r->hca, "worker_sleeps"),
		      (unsigned long)counter(r->hca, "worker_kicked"));
	assert_true(counter(r->hca, "worker_kicked") > 0);
	hca_destroy(r->hca);
	r->divert->ops->close(r->divert);
	r->far->ops->close(r->far);
	assert_int_equal(rte_mempool_in_use_count(r->pool), 0);
	rte_mempool_free(r->pool);
}

/* Looks like ARP. */
static void
fill(struct rte_mbuf *m, uint32_t serial)
{
	uint8_t *b = (uint8_t *)rte_pktmbuf_append(m, BYTES);

	memset(b, 0xff, 6);
	memset(b + 6, 2, BYTES - 6);
	b[12] = 0x08;
	b[13] = 0x06;
	memcpy(b + 20, &serial, sizeof(serial));
}

static void
is(struct rte_mbuf *m, uint32_t serial)
{
	assert_int_equal(m->pkt_len, BYTES);
	assert_memory_equal(rte_pktmbuf_mtod_offset(m, uint8_t *, 20), &serial, sizeof(serial));
	rte_pktmbuf_free(m);
}

static void
outwards(struct rig *r, uint32_t serial)
{
	struct rte_mbuf *m = hca_port_divert_alloc(r->divert);
	uint64_t end = now_ns() + LOST_NS;

	assert_non_null(m);
	fill(m, serial);
	assert_int_equal(hca_port_divert_give(r->divert, &m, 1), 1);
	while (r->far->ops->rx(r->far, 0, &m, 1, 0) == 0)
		assert_true(now_ns() < end && sched_yield() == 0);
	is(m, serial);
}

static void
inwards(struct rig *r, uint32_t serial)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(r->pool);
	uint64_t end = now_ns() + LOST_NS;

	assert_non_null(m);
	fill(m, serial);
	assert_int_equal(r->far->ops->tx(r->far, 0, &m, 1, 0), 1);
	while (hca_port_divert_take(r->divert, &m, 1) == 0)
		assert_true(now_ns() < end && sched_yield() == 0);
	is(m, serial);
}

static void
both_ways(enum hca_layout layout)
{
	const char *env = getenv("WAKEUPS");
	uint32_t n = 2 * (env != NULL ? (uint32_t)atoi(env) : FRAMES);
	struct rig r;

	rig_open(&r, layout);
	for (uint32_t i = 0; i < n; i++) {
		if (random() % 2 == 0)
			outwards(&r, i);
		else
			inwards(&r, i);
		pause_between();
	}
	rig_close(&r);
}

static void
rtc(void **state)
{
	both_ways(HCA_LAYOUT_RTC);
}

static void
txrx(void **state)
{
	both_ways(HCA_LAYOUT_TXRX);
}

static void
full(void **state)
{
	both_ways(HCA_LAYOUT_FULL);
}

/* The ports of a memory pair are closed one after the other, with a frame in each direction. */
static void
closed_with_frames(void **state)
{
	struct rte_mempool *pool =
		rte_pktmbuf_pool_create("closed", 63, 0, HCA_MBUF_PRIV, 2048, -1);
	struct hca_port *pair[2];

	assert_non_null(pool);
	assert_int_equal(hca_port_memory_pair("closed", 1, 64, -1, pair), 0);
	for (unsigned int i = 0; i < 2; i++) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

		assert_non_null(m);
		assert_non_null(rte_pktmbuf_append(m, 64));
		assert_int_equal(pair[i]->ops->tx(pair[i], 0, &m, 1, 0), 1);
	}
	for (unsigned int i = 0; i < 2; i++)
		pair[i]->ops->close(pair[i]);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
	rte_mempool_free(pool);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rtc),
		cmocka_unit_test(txrx),
		cmocka_unit_test(full),
		cmocka_unit_test(closed_with_frames),
	};

	if (test_eal_start(256) != 0)
		return 1;
	srandom((unsigned int)now_ns());
	prctl(PR_SET_TIMERSLACK, 1ul);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
