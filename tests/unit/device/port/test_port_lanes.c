/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Ports in front of a port with 2 and 4 queues: each queue has its state, settings apply to
 * all, and statistics are sums.
 */

#include "port_rig.h"
#include "port/port_fabric.h"
#include "port/port_impair.h"
#include "port/port_inbound.h"
#include "port/port_stall.h"
#include "port/port_wrap.h"
#include "wire/roce_opcode.h"

#define MOST 4u

static const uint16_t numbers[] = {2, MOST};

static struct hca_port *
new_impair(uint16_t queues, uint64_t seed, uint32_t hold)
{
	const struct hca_port_impair_config cfg = {.name = "tlanes",
						   .seed = seed,
						   .hold = hold,
						   .socket_id = -1};
	struct hca_port *p;

	assert_int_equal(hca_port_impair_open(&cfg, rig_sink_of(queues), &p), 0);
	assert_int_equal(p->queues, queues != 0 ? queues : 1);
	return p;
}

static struct hca_port_impair_stats
stats(const struct hca_port *p)
{
	struct hca_port_impair_stats s;

	hca_port_impair_stats(p, &s);
	return s;
}

/* A bit for each of 64 frames of a queue: it has passed. */
static uint64_t
passed(struct hca_port *p, uint16_t q)
{
	uint64_t bits = 0;

	rig_sink_clear();
	for (uint32_t psn = 0; psn < 64; psn++)
		rig_send_by(p, q, psn, psn);
	for (unsigned int i = 0; i < sink.n; i++) {
		assert_int_equal(sink.queue[i], q);
		bits |= UINT64_C(1) << rig_psn_of(i);
	}
	return bits;
}

/* Queue 0 has the fates of a port with one queue, the others have others. */
static void
fates_of_queues(void **state)
{
	const struct hca_impair half = {.drop = 0.5};
	struct hca_port *one = new_impair(0, 7, 8);
	uint64_t of_one, of[MOST];

	(void)state;
	hca_port_impair_set(one, &half);
	of_one = passed(one, 0);
	rig_done(one);
	for (unsigned int k = 0; k < RTE_DIM(numbers); k++) {
		struct hca_port *p = new_impair(numbers[k], 7, 8);

		hca_port_impair_set(p, &half);
		for (uint16_t q = numbers[k]; q-- != 0;) {
			of[q] = passed(p, q);
			for (uint16_t i = q + 1; i < numbers[k]; i++)
				assert_true(of[q] != of[i]);
		}
		assert_true(of[0] == of_one);
		assert_int_equal(stats(p).frames, 64 * numbers[k]);
		rig_done(p);
	}
}

/* Each queue holds and releases its frames. */
static void
holds_of_queues(void **state)
{
	(void)state;
	for (unsigned int k = 0; k < RTE_DIM(numbers); k++) {
		struct hca_port *p = new_impair(numbers[k], 7, 2);
		struct rte_mbuf *m = rig_frame(9);

		for (uint16_t q = 0; q < numbers[k]; q++) {
			const struct hca_impair slow = {.delay_ns = 1000u * (q + 1u)};

			hca_port_impair_set(p, &slow);
			rig_send_by(p, q, q, 0);
			assert_int_equal(p->ops->deadline(p, q, 0), 1000 * (q + 1));
		}
		assert_int_equal(hca_port_impair_held(p), numbers[k]);
		assert_int_equal(hca_port_impair_mbufs(p), numbers[k]);
		/* the limit of one queue leaves room in the others */
		rig_send_by(p, 1, 8, 0);
		assert_int_equal(p->ops->tx(p, 1, &m, 1, 0), 0);
		assert_int_equal(p->ops->tx(p, 0, &m, 1, 0), 1);
		assert_int_equal(stats(p).stalled, 1);
		for (uint16_t q = numbers[k]; q-- != 0;) {
			rig_sink_clear();
			p->ops->poll(p, q, 100000);
			assert_int_equal(sink.n, q < 2 ? 2 : 1);
			for (unsigned int i = 0; i < sink.n; i++)
				assert_int_equal(sink.queue[i], q);
			assert_int_equal(rig_psn_of(0), q);
		}
		assert_int_equal(hca_port_impair_held(p), 0);
		rig_done(p);
	}
}

/* On close, and when the receiver forgets, no held frame is left. */
static void
forgotten(void **state)
{
	const struct hca_impair slow = {.delay_ns = 1000};
	struct hca_port *p = new_impair(MOST, 7, 8);

	(void)state;
	hca_port_impair_set(p, &slow);
	for (uint16_t q = 0; q < MOST; q++)
		for (uint32_t i = 0; i <= q; i++)
			rig_send_by(p, q, i, 0);
	assert_int_equal(hca_port_impair_held(p), 10);
	assert_int_equal(hca_port_impair_forget(p, 2), 3);
	assert_int_equal(hca_port_impair_held(p), 7);
	hca_port_impair_set(p, NULL);
	assert_true(hca_port_impair_clean(p, 2));
	assert_false(hca_port_impair_clean(p, 3));
	hca_port_impair_count(p, 2, 5);
	assert_int_equal(stats(p).frames, 15);
	rig_done(p);
}

/* nth and count are of each queue, hits and seen are sums. */
static void
rules_of_queues(void **state)
{
	const struct hca_fault_rule second = {.opcode = HCA_FAULT_ANY,
					      .psn = HCA_FAULT_ANY,
					      .nth = 2,
					      .count = 1,
					      .fault = HCA_FAULT_DROP};

	(void)state;
	for (unsigned int k = 0; k < RTE_DIM(numbers); k++) {
		struct hca_port *p = new_impair(numbers[k], 7, 8);

		assert_int_equal(hca_port_impair_rule(p, &second), 0);
		assert_int_equal(hca_port_impair_rules(p), 1);
		for (uint32_t psn = 0; psn < 3; psn++)
			for (uint16_t q = 0; q < numbers[k]; q++)
				rig_send_by(p, q, psn, psn);
		assert_int_equal(hca_port_impair_seen(p, 0), 3 * numbers[k]);
		assert_int_equal(hca_port_impair_hits(p, 0), numbers[k]);
		assert_int_equal(hca_port_impair_hits(p, 1), 0);
		assert_int_equal(stats(p).dropped, numbers[k]);
		for (unsigned int i = 0; i < sink.n; i++)
			assert_int_equal(rig_psn_of(i), i < numbers[k] ? 0 : 2);
		hca_port_impair_clear_rules(p);
		assert_int_equal(hca_port_impair_rules(p), 0);
		assert_int_equal(hca_port_impair_rule(p, &second), 0);
		assert_int_equal(hca_port_impair_seen(p, 0), 0);
		rig_done(p);
	}
}

/* The faults of all queues are one list by time. */
static void
fired_of_queues(void **state)
{
	const struct hca_impair all = {.drop = 1};
	struct hca_fired list[HCA_FIRED_MAX];
	struct hca_port *p = new_impair(MOST, 7, 8);
	/* the queue of the fault at each time */
	static const uint16_t by[] = {3, 1, 1, 0, 2, 3, 3, 3, 0, 1, 2, 2, 0, 0, 0, 0,
				      0, 0, 0, 1, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0};

	(void)state;
	hca_port_impair_set(p, &all);
	for (uint32_t i = 0; i < RTE_DIM(by); i++) {
		unsigned int first = i < HCA_FIRED_MAX ? 0 : i + 1 - HCA_FIRED_MAX, n;

		rig_send_by(p, by[i], i, 100 + i);
		n = hca_port_impair_fired(p, list);
		assert_int_equal(n, i + 1 - first);
		for (unsigned int k = 0; k < n; k++) {
			assert_int_equal(list[k].at, 100 + first + k);
			assert_int_equal(list[k].number, first + k + 1);
			assert_int_equal(list[k].queue, by[first + k]);
		}
	}
	rig_done(p);
}

static struct hca_port *
new_inbound(unsigned int frames, uint16_t queues)
{
	const struct hca_port_impair_config cfg = {.name = "tin", .seed = 7, .socket_id = -1};
	struct hca_port *p;

	assert_int_equal(hca_port_inbound_open(&cfg, rig_source_of(frames, queues), &p), 0);
	assert_int_equal(p->queues, queues);
	return p;
}

/* Each queue receives its frames, through its lane of the impairment. */
static void
received_by_queues(void **state)
{
	const struct hca_fault_rule second = {.opcode = HCA_FAULT_ANY,
					      .psn = HCA_FAULT_ANY,
					      .nth = 2,
					      .count = 1,
					      .fault = HCA_FAULT_DROP};

	(void)state;
	for (unsigned int k = 0; k < RTE_DIM(numbers); k++) {
		uint16_t n = numbers[k];
		struct hca_port *p = new_inbound(8u * n, n), *im = hca_port_inbound_impair(p);

		for (uint16_t q = n; q-- != 0;)
			assert_int_equal(rig_receive_by(p, q, 4, 10), 4);
		assert_int_equal(hca_port_impair_rule(im, &second), 0);
		for (uint16_t q = 0; q < n; q++)
			assert_int_equal(rig_receive_by(p, q, 4, 20), 3);
		assert_int_equal(hca_port_impair_hits(im, 0), n);
		assert_int_equal(stats(im).frames, 8 * n);
		for (unsigned int i = 0; i < sink.n; i++) {
			assert_int_equal(rig_psn_of(i) % n, sink.queue[i]);
			assert_true(rig_psn_of(i) / n != 5);
		}
		rig_done(p);
	}
}

/* The link goes down: each queue loses its held frames and those that arrive. */
static void
lost_by_queues(void **state)
{
	const struct hca_impair slow = {.delay_ns = 1000};

	(void)state;
	for (unsigned int k = 0; k < RTE_DIM(numbers); k++) {
		uint16_t n = numbers[k];
		struct hca_port *p = new_inbound(8u * n, n), *im = hca_port_inbound_impair(p);

		hca_port_impair_set(im, &slow);
		for (uint16_t q = 0; q < n; q++) {
			assert_int_equal(rig_receive_by(p, q, 4, 10 + q), 0);
			assert_int_equal(hca_port_deadline(p, q, 10), 1010 + q);
		}
		assert_int_equal(hca_port_impair_held(im), 4 * n);
		assert_int_equal(rig_receive_by(p, 0, 2, 1010), 2);
		assert_int_equal(hca_port_deadline(p, 0, 1010), 1010);
		assert_int_equal(hca_port_deadline(p, 1, 1010), 1011);
		__atomic_store_n(hca_port_inbound_deaf(p), 1, __ATOMIC_RELAXED);
		for (uint16_t q = 0; q < n; q++)
			assert_int_equal(rig_receive_by(p, q, 4, 1020), 0);
		assert_int_equal(hca_port_impair_held(im), 0);
		assert_int_equal(hca_port_inbound_lost(p), arrived - 2);
		__atomic_store_n(hca_port_inbound_deaf(p), 0, __ATOMIC_RELAXED);
		rig_done(p);
	}
}

static struct hca_port *
new_stall(uint16_t queues, uint32_t *deaf)
{
	const struct hca_port_stall_config cfg = {.seed = 3, .socket_id = -1, .deaf = deaf};
	struct hca_port *p;

	assert_int_equal(hca_port_stall_open(&cfg, rig_sink_of(queues), &p), 0);
	assert_int_equal(p->queues, queues);
	return p;
}

static struct hca_port_stall_stats
stall_stats(const struct hca_port *p)
{
	struct hca_port_stall_stats s;

	hca_port_stall_stats(p, &s);
	return s;
}

/* The link is one: it goes down for all queues, counted once, from the first frame of any. */
static void
link_of_all(void **state)
{
	const struct hca_port_stall_rules down = {.down_after = 100,
						  .down_for = 50,
						  .both_ways = true};
	uint32_t deaf = 0;

	(void)state;
	for (unsigned int k = 0; k < RTE_DIM(numbers); k++) {
		uint16_t last = numbers[k] - 1;
		struct hca_port *p = new_stall(numbers[k], &deaf);
		struct rte_mbuf *m = rig_frame(1);

		hca_port_stall_set(p, &down);
		p->ops->poll(p, 0, 500);
		assert_true(p->ops->deadline(p, 0, 500) == UINT64_MAX);
		rig_send_by(p, last, 0, 1000);
		p->ops->poll(p, 0, 1050);
		assert_int_equal(p->ops->deadline(p, 0, 1050), 1100);
		for (uint16_t q = 0; q < numbers[k]; q++) {
			assert_int_equal(p->ops->tx(p, q, &m, 1, 1100 + q), 0);
			assert_false(p->ops->link_up(p));
			p->ops->poll(p, q, 1100 + q);
			assert_int_equal(p->ops->deadline(p, q, 1100 + q), 1150);
		}
		assert_int_equal(deaf, 1);
		for (uint16_t q = 0; q < numbers[k]; q++) {
			p->ops->poll(p, q, 1150 + q);
			assert_true(p->ops->link_up(p));
		}
		assert_int_equal(deaf, 0);
		hca_port_stall_link(p, false);
		assert_int_equal(p->ops->tx(p, last, &m, 1, 1200), 0);
		hca_port_stall_link(p, true);
		assert_int_equal(p->ops->tx(p, last, &m, 1, 1201), 1);
		assert_int_equal(stall_stats(p).link_downs, 2);
		assert_int_equal(stall_stats(p).offered, numbers[k] + 3);
		assert_int_equal(stall_stats(p).taken, 2);
		rig_done(p);
	}
}

/* Bursts of the queues are cut short by different draws. */
static void
bursts_of_queues(void **state)
{
	const struct hca_port_stall_rules some = {.tx_burst_max = 3};
	uint64_t of[MOST] = {0}, one = 0;

	(void)state;
	for (unsigned int k = 0; k <= RTE_DIM(numbers); k++) {
		uint16_t n = k == 0 ? 1 : numbers[k - 1];
		struct hca_port *p = new_stall(n, NULL);

		hca_port_stall_set(p, &some);
		for (uint16_t q = 0; q < n; q++) {
			of[q] = 0;
			for (unsigned int i = 0; i < 32; i++) {
				struct rte_mbuf *m[3] = {rig_frame(0), rig_frame(1), rig_frame(2)};
				uint16_t took = p->ops->tx(p, q, m, 3, i);

				rte_pktmbuf_free_bulk(m + took, 3 - took);
				of[q] = of[q] << 2 | took;
			}
			for (uint16_t i = 0; i < q; i++)
				assert_true(of[i] != of[q]);
		}
		one = k == 0 ? of[0] : one;
		assert_true(of[0] == one);
		rig_done(p);
	}
}

/* The network is one: the link's rate is shared, and each queue delivers its frames. */
static void
network_of_all(void **state)
{
	(void)state;
	for (unsigned int k = 0; k < RTE_DIM(numbers); k++) {
		struct hca_port_fabric_config cfg = {
			.name = "tfab",
			.fabric = {.rate_mbps = 10000, .delay_ns = 10000, .paths = 1},
			.socket_id = -1};
		struct hca_port_fabric_stats s;
		struct hca_port *p;
		uint64_t last = 0;

		assert_int_equal(hca_port_fabric_open(&cfg, rig_sink_of(numbers[k]), &p), 0);
		assert_int_equal(p->queues, numbers[k]);
		for (uint16_t q = 0; q < numbers[k]; q++) {
			rig_send_by(p, q, q, 0);
			/* each frame leaves behind that of the queue before */
			assert_true(p->ops->deadline(p, q, 0) >= last + 64);
			last = p->ops->deadline(p, q, 0);
		}
		assert_int_equal(hca_port_fabric_held(p), numbers[k]);
		assert_int_equal(hca_port_fabric_mbufs(p), numbers[k]);
		for (uint16_t q = numbers[k]; q-- != 0;) {
			p->ops->poll(p, q, last);
			assert_int_equal(sink.n, numbers[k] - q);
			assert_int_equal(sink.queue[sink.n - 1], q);
			assert_int_equal(rig_psn_of(sink.n - 1), q);
		}
		hca_port_fabric_stats(p, &s);
		assert_int_equal(s.frames, numbers[k]);
		assert_int_equal(s.arrived, numbers[k]);
		assert_int_equal(hca_port_fabric_carried(p, 0), numbers[k]);
		rig_send_by(p, 1, 9, last);
		rig_done(p); /* with a frame on its way */
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fates_of_queues),  cmocka_unit_test(holds_of_queues),
		cmocka_unit_test(forgotten),	    cmocka_unit_test(rules_of_queues),
		cmocka_unit_test(fired_of_queues),  cmocka_unit_test(received_by_queues),
		cmocka_unit_test(lost_by_queues),   cmocka_unit_test(link_of_all),
		cmocka_unit_test(bursts_of_queues), cmocka_unit_test(network_of_all),
	};

	return cmocka_run_group_tests(tests, rig_setup, NULL);
}
