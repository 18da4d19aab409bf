/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A wire is a row: devices that a test gives the echo wire answer its frames in each layout, with
 * and without UB, and drop other frames as before. Without the row its frames are dropped.
 */

#include "core/mbuf.h"
#include "core/table.h"
#include "echo_wire.h"
#include "graph/executor.h"
#include "rig.h"

#define FRAMES 200u
#define LEN 100u
#define POLLS 64u

/* A port that delivers frames to the device and keeps those that it sends. */
struct echo_port {
	struct hca_port port;
	struct rte_mempool *pool;
	unsigned int given, wanted, sent, wrong;
	uint16_t ethertype;
};

static void
write_frame(struct rte_mbuf *m, uint16_t ethertype, uint8_t number)
{
	uint8_t *p = (uint8_t *)rte_pktmbuf_append(m, LEN);

	memset(p, 0xab, 6);
	memset(p + 6, 0xcd, 6);
	p[12] = (uint8_t)(ethertype >> 8);
	p[13] = (uint8_t)ethertype;
	memset(p + 14, number, LEN - 14);
}

static uint16_t
give(struct hca_port *port, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct echo_port *e = (void *)port;
	uint16_t k;

	for (k = 0; k < n && e->given < e->wanted; k++) {
		m[k] = rte_pktmbuf_alloc(e->pool);
		assert_non_null(m[k]);
		write_frame(m[k], e->ethertype, (uint8_t)e->given++);
	}
	return k;
}

/* Frames come back in their order, with the addresses exchanged. */
static uint16_t
keep(struct hca_port *port, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct echo_port *e = (void *)port;

	for (uint16_t i = 0; i < n; i++) {
		const uint8_t *p = rte_pktmbuf_mtod(m[i], const uint8_t *);

		e->wrong += m[i]->data_len != LEN || p[0] != 0xcd || p[6] != 0xab ||
			    p[LEN - 1] != (uint8_t)e->sent;
		e->sent++;
	}
	rte_pktmbuf_free_bulk(m, n);
	return n;
}

static bool
is_up(struct hca_port *port)
{
	return true;
}

static const struct hca_port_ops port_ops = {.rx = give, .tx = keep, .link_up = is_up};

static uint64_t
counter(const struct hca *h, enum hca_counter c)
{
	return hca_counter_value(h, c);
}

/* What a device makes of FRAMES frames of this Ethertype. */
static void
run(struct echo_port *e, enum hca_layout layout, uint32_t wires, const struct hca_wire_ops *more)
{
	struct hca_config cfg = {
		.name = "echo",
		.port = &e->port,
		.wires = wires,
		.wire_more = more,
		.layout = layout,
		.socket_id = -1,
		.log_qps = RIG_LOG_QPS,
		.log_tps = RIG_LOG_TPS,
		.ub_ops = 64,
		.records = 128,
		.full_records = 64,
		.mbufs = 256,
	};
	struct hca *h;

	e->given = e->sent = e->wrong = 0;
	e->wanted = FRAMES;
	assert_int_equal(hca_create(&cfg, &h), 0);
	for (unsigned int i = 1; i <= POLLS; i++)
		hca_direct_poll(h, i * 1000);
	assert_int_equal(e->given, FRAMES);
	assert_int_equal(counter(h, HCA_CTR_rcvd_pkts), FRAMES);
	assert_int_equal(counter(h, HCA_CTR_sent_pkts), e->sent);
	assert_int_equal(counter(h, HCA_CTR_rx_not_ip), FRAMES - e->sent);
	hca_destroy(h);
	assert_int_equal(rte_mempool_in_use_count(e->pool), 0);
}

static void
echoes(void **state)
{
	static const uint32_t wires[] = {0, RIG_UB};
	struct echo_port *e = *state;

	for (enum hca_layout layout = HCA_LAYOUT_RTC; layout <= HCA_LAYOUT_FULL; layout++) {
		for (unsigned int i = 0; i < RTE_DIM(wires); i++) {
			e->ethertype = ECHO_ETHERTYPE;
			run(e, layout, wires[i], &echo_wire);
			assert_int_equal(e->sent, FRAMES);
			assert_int_equal(e->wrong, 0);
			e->ethertype = ECHO_ETHERTYPE + 1;
			run(e, layout, wires[i], &echo_wire);
			assert_int_equal(e->sent, 0);
		}
	}
}

/* A device without the row has no such wire. */
static void
without(void **state)
{
	struct echo_port *e = *state;

	e->ethertype = ECHO_ETHERTYPE;
	run(e, HCA_LAYOUT_RTC, 0, NULL);
	assert_int_equal(e->sent, 0);
	run(e, HCA_LAYOUT_FULL, RIG_UB, NULL);
	assert_int_equal(e->sent, 0);
}

int
main(void)
{
	static struct echo_port e = {
		.port = {.ops = &port_ops, .max_frame = 9000, .queue_size = 32}};
	const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(echoes, &e),
					   cmocka_unit_test_prestate(without, &e)};

	if (rig_eal() != 0)
		return 1;
	e.pool = hca_mbuf_pool("echo.port", 1023, 0, HCA_MBUF_DATA, -1);
	if (e.pool == NULL)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
