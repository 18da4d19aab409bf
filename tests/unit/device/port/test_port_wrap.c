/* SPDX-License-Identifier: BSD-3-Clause */

/* Ports that misbehave when sending: impairment by probability and by rule, stalls. */

#include "port_rig.h"

#include <stdio.h>

#include "port/port_impair.h"
#include "port/port_inbound.h"
#include "port/port_stall.h"

static struct hca_port *
new_impair(uint32_t hold)
{
	static unsigned int serial;
	char name[16];
	const struct hca_port_impair_config cfg = {.name = name,
						   .seed = 7,
						   .hold = hold,
						   .socket_id = -1};
	struct hca_port *p;

	snprintf(name, sizeof(name), "ti%u", serial++);
	assert_int_equal(hca_port_impair_open(&cfg, rig_sink(), &p), 0);
	assert_int_equal(hca_port_missed(p), RIG_MISSED);
	return p;
}

static struct hca_port_impair_stats
stats(struct hca_port *p)
{
	struct hca_port_impair_stats s;

	hca_port_impair_stats(p, &s);
	return s;
}

static void
clean(void **state)
{
	struct hca_port *p = new_impair(4);

	(void)state;
	for (uint32_t i = 0; i < 10; i++)
		rig_send(p, i, i);
	assert_int_equal(sink.n, 10);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(rig_psn_of(i), i);
	p->ops->poll(p, 0, 11);
	assert_int_equal(sink.polls, 1);
	rig_done(p);
}

/* 2,000 frames, each fault at 10 %: about 200 of each. */
static void
by_chance(void **state)
{
	const struct hca_impair all = {.drop = 0.1,
				       .dup = 0.1,
				       .reorder = 0.1,
				       .corrupt = 0.1,
				       .truncate = 0.1,
				       .ecn = 0.1};
	struct hca_port *p = new_impair(1024);
	struct hca_port_impair_stats s;
	unsigned int bad = 0, swapped = 0;
	int last = -1;

	(void)state;
	hca_port_impair_set(p, &all);
	for (uint32_t i = 0; i < 2000; i++)
		rig_send(p, i, i * 1000);
	p->ops->poll(p, 0, 1000000000);
	s = stats(p);
	assert_int_equal(hca_port_impair_held(p), 0);
	assert_int_equal(sink.n, 2000 - s.dropped + s.duplicated);
	for (unsigned int i = 0; i < sink.n; i++) {
		int psn = rig_psn_of(i);

		bad += psn < 0;
		swapped += psn >= 0 && psn < last;
		last = psn >= 0 ? psn : last;
	}
	/* a few corruptions affect a byte that routers may change: not detected */
	assert_in_range(bad, (s.corrupted + s.truncated) * 9 / 10, s.corrupted + s.truncated);
	assert_true(swapped >= s.reordered / 2);
#define X(n) assert_in_range(s.n, 100, 300);
	X(dropped)
	X(duplicated)
	X(reordered)
	X(corrupted)
	X(truncated)
	X(ecn_marked)
#undef X
	hca_port_impair_set(p, NULL);
	rig_sink_clear();
	rig_send(p, 5, 2000000000);
	assert_int_equal(rig_psn_of(0), 5);
	rig_done(p);
}

static void
same_seed_same_fate(void **state)
{
	const struct hca_impair all = {.drop = 0.2, .dup = 0.2, .reorder = 0.2};
	int first[600], n = 0;

	(void)state;
	for (unsigned int run = 0; run < 2; run++) {
		struct hca_port *p = new_impair(1024);

		hca_port_impair_set(p, &all);
		for (uint32_t i = 0; i < 300; i++)
			rig_send(p, i, i * 100);
		p->ops->poll(p, 0, 1000000);
		for (unsigned int i = 0; i < sink.n; i++) {
			if (run == 0)
				first[n++] = rig_psn_of(i);
			else
				assert_int_equal(first[i], rig_psn_of(i));
		}
		assert_int_equal(sink.n, n);
		rig_done(p);
	}
}

/* Send a frame until it is taken. Returns its fate: 0 passed, 1 dropped, 2 corrupted. */
static unsigned int
fate_of(struct hca_port *p, struct rte_mbuf *m, uint64_t *now)
{
	struct hca_port_impair_stats before = stats(p), after;

	while (p->ops->tx(p, 0, &m, 1, *now) == 0) {
		*now += 100;
		p->ops->poll(p, 0, *now);
		rig_sink_clear();
	}
	after = stats(p);
	return (unsigned int)(after.dropped - before.dropped +
			      2 * (after.corrupted - before.corrupted));
}

/*
 * The nth frame meets the same, whether frames are larger or have to wait for room, and whatever
 * passed before the odds were set; not so if they are set again.
 */
static void
nth_frame_same_fate(void **state)
{
	const struct hca_impair all = {.drop = 0.2,
				       .corrupt = 0.3,
				       .delay_ns = 200,
				       .jitter_ns = 500};
	unsigned int fate[4][300];

	(void)state;
	for (unsigned int run = 0; run < 4; run++) {
		struct hca_port *p = new_impair(run == 1 ? 2 : 1024);
		uint64_t now = 1;

		if (run == 3)
			hca_port_impair_set(p, &all);
		if (run >= 2)
			fate_of(p, rig_frame(1000), &now);
		hca_port_impair_set(p, &all);
		for (uint32_t i = 0; i < 300; i++)
			fate[run][i] =
				fate_of(p, rig_frame_of(HCA_BTH_UD_SEND_ONLY, i, 2, 3, run == 1),
					&now);
		p->ops->poll(p, 0, now + 1000);
		assert_int_equal(stats(p).stalled != 0, run == 1);
		rig_done(p);
	}
	assert_memory_equal(fate[0], fate[1], sizeof(fate[0]));
	assert_memory_equal(fate[0], fate[2], sizeof(fate[0]));
	assert_memory_not_equal(fate[0], fate[3], sizeof(fate[0]));
}

static void
rules(void **state)
{
	const struct hca_fault_rule drop = {.opcode = HCA_BTH_RC_WRITE_ONLY,
					    .psn = 3,
					    .count = 1,
					    .fault = HCA_FAULT_DROP};
	const struct hca_fault_rule dup = {.opcode = HCA_FAULT_ANY,
					   .psn = HCA_FAULT_ANY,
					   .nth = 5,
					   .count = 1,
					   .fault = HCA_FAULT_DUP};
	const struct hca_fault_rule swap = {.opcode = HCA_FAULT_ANY,
					    .psn = 7,
					    .count = 1,
					    .fault = HCA_FAULT_REORDER};
	const struct hca_fault_rule other = {.opcode = HCA_BTH_RC_ACK,
					     .psn = HCA_FAULT_ANY,
					     .fault = HCA_FAULT_DROP};
	const struct hca_fault_rule late = {.opcode = HCA_FAULT_ANY,
					    .psn = 9,
					    .count = 1,
					    .fault = HCA_FAULT_DELAY,
					    .arg = 500};
	static const int want[] = {0, 1, 2, 4, 5, 5, 6, 8, 7, 10, 9, 3};
	struct hca_port *p = new_impair(8);

	(void)state;
	assert_int_equal(hca_port_impair_rule(p, &drop), 0);
	assert_int_equal(hca_port_impair_rule(p, &dup), 0);
	assert_int_equal(hca_port_impair_rule(p, &swap), 0);
	assert_int_equal(hca_port_impair_rule(p, &other), 0);
	assert_int_equal(hca_port_impair_rule(p, &late), 0);
	for (uint32_t i = 0; i <= 10; i++)
		rig_send(p, i, i);
	p->ops->poll(p, 0, 508);
	assert_int_equal(sink.n, 10);
	p->ops->poll(p, 0, 509);
	rig_send(p, 3, 600);
	assert_int_equal(sink.n, sizeof(want) / sizeof(want[0]));
	for (unsigned int i = 0; i < sink.n; i++)
		assert_int_equal(rig_psn_of(i), want[i]);
	assert_int_equal(hca_port_impair_hits(p, 0), 1);
	assert_int_equal(hca_port_impair_hits(p, 3), 0);
	hca_port_impair_clear_rules(p);
	rig_done(p);
}

/* Every kind of corruption is caught by the parser or the ICRC. */
static void
corruption(void **state)
{
	struct hca_port *p = new_impair(4);

	(void)state;
	for (unsigned int f = HCA_FAULT_CORRUPT_PAYLOAD; f <= HCA_FAULT_CORRUPT_ICRC; f++) {
		const struct hca_fault_rule rule = {.opcode = HCA_FAULT_ANY,
						    .psn = HCA_FAULT_ANY,
						    .fault = f};
		unsigned int missed = 0;

		hca_port_impair_clear_rules(p);
		hca_port_impair_rule(p, &rule);
		for (uint32_t i = 0; i < 300; i++)
			rig_send(p, i, 0);
		/* BTH byte 4 is not covered by the ICRC. */
		for (unsigned int i = 0; i < sink.n; i++)
			missed += rig_psn_of(i) >= 0;
		assert_true(missed < (f == HCA_FAULT_CORRUPT_HEADER ? 40 : 1));
		assert_int_equal(sink.n, 300);
		rig_sink_clear();
	}
	rig_done(p);
}

/* When the port holds the maximum of delayed frames it stalls; nothing is lost or reordered. */
static void
delay_is_bounded(void **state)
{
	const struct hca_impair slow = {.delay_ns = 1000};
	struct hca_port *p = new_impair(8);
	struct rte_mbuf *m[20];
	uint16_t took;

	(void)state;
	hca_port_impair_set(p, &slow);
	for (uint32_t i = 0; i < 20; i++)
		m[i] = rig_frame(i);
	took = p->ops->tx(p, 0, m, 20, 100);
	assert_int_equal(took, 8);
	assert_int_equal(hca_port_impair_held(p), 8);
	p->ops->poll(p, 0, 1099);
	assert_int_equal(sink.n, 0);
	assert_int_equal(p->ops->tx(p, 0, m + took, 12, 1100), 8);
	assert_int_equal(sink.n, 8);
	p->ops->poll(p, 0, 2100);
	assert_int_equal(sink.n, 16);
	for (uint32_t i = 0; i < 16; i++)
		assert_int_equal(rig_psn_of(i), i);
	/* Duplicates still held by the receiver count against the pool: the port stalls. */
	assert_int_equal(p->ops->tx(p, 0, m + 16, 4, 3000), 0);
	assert_int_equal(stats(p).no_mbuf, 1);
	rig_sink_clear();
	assert_int_equal(p->ops->tx(p, 0, m + 16, 4, 3000), 4);
	p->ops->poll(p, 0, 4000);
	assert_int_equal(sink.n, 4);
	assert_int_equal(rig_psn_of(3), 19);
	assert_true(stats(p).stalled != 0);
	rig_done(p);
}

/* The inner port refuses: a damaged frame waits here, another frame stays with the caller. */
static void
inner_full(void **state)
{
	const struct hca_fault_rule dup = {.opcode = HCA_FAULT_ANY,
					   .psn = HCA_FAULT_ANY,
					   .nth = 1,
					   .count = 1,
					   .fault = HCA_FAULT_CORRUPT_ICRC};
	struct hca_port *p = new_impair(1);
	struct rte_mbuf *m[2] = {rig_frame(1), rig_frame(2)};

	(void)state;
	hca_port_impair_rule(p, &dup);
	sink.room = 0;
	assert_int_equal(p->ops->tx(p, 0, m, 2, 1), 1);
	assert_int_equal(p->ops->tx(p, 0, m + 1, 1, 2), 0);
	assert_int_equal(hca_port_impair_held(p), 1);
	sink.room = 4;
	assert_int_equal(p->ops->tx(p, 0, m + 1, 1, 3), 1);
	assert_int_equal(sink.n, 2);
	assert_int_equal(rig_psn_of(0), -2);
	assert_int_equal(rig_psn_of(1), 2);
	assert_int_equal(stats(p).corrupted, 1);
	rig_done(p);
}

/* No frame can be held: it comes back damaged, and is not damaged again. */
static void
inner_and_hold_full(void **state)
{
	const struct hca_fault_rule corrupt = {.opcode = HCA_FAULT_ANY,
					       .psn = HCA_FAULT_ANY,
					       .nth = 1,
					       .count = 2,
					       .fault = HCA_FAULT_CORRUPT_ICRC};
	struct hca_port *p = new_impair(1);
	struct rte_mbuf *m[2] = {rig_frame(1), rig_frame(2)};

	(void)state;
	hca_port_impair_rule(p, &corrupt);
	sink.room = 0;
	assert_int_equal(p->ops->tx(p, 0, m, 2, 1), 1);
	assert_int_equal(p->ops->tx(p, 0, m + 1, 1, 2), 0);
	sink.room = 4;
	assert_int_equal(p->ops->tx(p, 0, m + 1, 1, 3), 1);
	assert_int_equal(rig_psn_of(0), -2);
	assert_int_equal(rig_psn_of(1), -2);
	assert_int_equal(stats(p).corrupted, 2);
	rig_done(p);
}

/* The list of faults has the number of the counters: one, of that frame. */
static void
assert_fired_once(struct hca_port *p, uint32_t psn, unsigned int fault)
{
	struct hca_fired list[HCA_FIRED_MAX];

	assert_int_equal(hca_port_impair_fired(p, list), 1);
	assert_int_equal(list[0].psn, psn);
	assert_int_equal(list[0].fault, fault);
	assert_int_equal(list[0].rule, 1);
	assert_int_equal(hca_port_impair_hits(p, 0), 1);
}

/* Send a frame until it is taken, and append the frames that passed to the PSNs. */
static void
insist(struct hca_port *p, uint32_t psn, uint64_t *now, int *passed, unsigned int *n)
{
	struct rte_mbuf *m = rig_frame(psn);

	for (bool sent = false; !sent; *now += 100) {
		sent = p->ops->tx(p, 0, &m, 1, *now) == 1;
		for (unsigned int i = 0; i < sink.n; i++)
			passed[(*n)++] = rig_psn_of(i);
		rig_sink_clear();
	}
}

/* Frames are refused while a delay has no room: a rule counts each of them once all the same. */
static void
rule_counts_refused_once(void **state)
{
	const struct hca_fault_rule fifth = {.opcode = HCA_FAULT_ANY,
					     .psn = HCA_FAULT_ANY,
					     .nth = 5,
					     .count = 1,
					     .fault = HCA_FAULT_DROP};
	const struct hca_impair slow = {.delay_ns = 1000};
	struct hca_port *p = new_impair(2);
	unsigned int n = 0;
	uint64_t now = 1;
	int passed[16];

	(void)state;
	hca_port_impair_set(p, &slow);
	hca_port_impair_rule(p, &fifth);
	for (uint32_t i = 0; i < 9; i++)
		insist(p, i, &now, passed, &n);
	assert_true(stats(p).stalled > 9);
	assert_int_equal(hca_port_impair_seen(p, 0), 9);
	assert_fired_once(p, 4, HCA_FAULT_DROP);
	assert_int_equal(n, 6); /* two are held */
	for (unsigned int i = 0; i < n; i++)
		assert_int_equal(passed[i], i < 4 ? i : i + 1);
	rig_done(p);
}

/* A frame that a rule changed and that then has to wait: once changed, listed, and delayed. */
static void
refused_after_its_fault(void **state)
{
	const struct hca_fault_rule corrupt = {.opcode = HCA_FAULT_ANY,
					       .psn = 2,
					       .count = 1,
					       .fault = HCA_FAULT_CORRUPT_ICRC};
	const struct hca_impair slow = {.delay_ns = 1000};
	struct hca_port *p = new_impair(1);
	struct rte_mbuf *m = rig_frame(2);

	(void)state;
	hca_port_impair_set(p, &slow);
	hca_port_impair_rule(p, &corrupt);
	rig_send(p, 1, 100);
	for (uint64_t now = 200; now < 500; now += 100)
		assert_int_equal(p->ops->tx(p, 0, &m, 1, now), 0);
	assert_fired_once(p, 2, HCA_FAULT_CORRUPT_ICRC);
	assert_int_equal(p->ops->tx(p, 0, &m, 1, 1100), 1);
	p->ops->poll(p, 0, 2099);
	assert_int_equal(sink.n, 1);
	p->ops->poll(p, 0, 2100);
	assert_int_equal(sink.n, 2);
	assert_int_equal(rig_psn_of(1), -2);
	assert_int_equal(stats(p).corrupted, 1);
	assert_fired_once(p, 2, HCA_FAULT_CORRUPT_ICRC);
	rig_done(p);
}

/* A fault of the frame's time also happens after the wait for room; without faults it passes. */
static void
refused_before_its_delay(void **state)
{
	const struct hca_fault_rule late = {.opcode = HCA_FAULT_ANY,
					    .psn = HCA_FAULT_ANY,
					    .nth = 1,
					    .count = 2,
					    .fault = HCA_FAULT_DELAY,
					    .arg = 1000};

	(void)state;
	for (unsigned int off = 0; off < 2; off++) {
		struct hca_port *p = new_impair(1);
		struct rte_mbuf *m = rig_frame(2);

		hca_port_impair_rule(p, &late);
		rig_send(p, 1, 100);
		assert_int_equal(p->ops->tx(p, 0, &m, 1, 200), 0);
		if (off != 0) {
			hca_port_impair_set(p, NULL);
			hca_port_impair_clear_rules(p);
		}
		assert_int_equal(p->ops->tx(p, 0, &m, 1, off != 0 ? 300 : 1100), 1);
		assert_int_equal(sink.n, 1);
		assert_int_equal(rig_psn_of(0), off != 0 ? 2 : 1);
		p->ops->poll(p, 0, 2100);
		assert_int_equal(sink.n, 2);
		assert_int_equal(stats(p).delayed, off != 0 ? 1 : 2);
		rig_done(p);
	}
}

/* The copy is held, and the inner port refuses the frame itself: one copy, listed. */
static void
duplicate_refused(void **state)
{
	const struct hca_fault_rule dup = {.opcode = HCA_FAULT_ANY,
					   .psn = 1,
					   .count = 1,
					   .fault = HCA_FAULT_DUP};
	struct hca_port *p = new_impair(4);
	struct rte_mbuf *m = rig_frame(1);

	(void)state;
	hca_port_impair_rule(p, &dup);
	sink.room = 0;
	for (uint64_t now = 1; now < 4; now++)
		assert_int_equal(p->ops->tx(p, 0, &m, 1, now), 0);
	assert_fired_once(p, 1, HCA_FAULT_DUP);
	sink.room = 4;
	assert_int_equal(p->ops->tx(p, 0, &m, 1, 5), 1);
	assert_int_equal(sink.n, 2);
	assert_int_equal(stats(p).duplicated, 1);
	assert_int_equal(hca_port_impair_seen(p, 0), 1);
	rig_done(p);
}

static void
send_of(struct hca_port *p, uint8_t opcode, uint32_t qpn, uint32_t sqpn)
{
	struct rte_mbuf *m = rig_frame_of(opcode, 1, qpn, sqpn, false);

	assert_int_equal(p->ops->tx(p, 0, &m, 1, 0), 1);
}

/* Probabilities and rules of one QP, including delays, do not affect frames of others. */
static void
one_qp(void **state)
{
	const struct hca_impair odds = {.drop = 1, .delay_ns = 100, .qpn = RIG_QPN, .sqpn = 5};
	const struct hca_fault_rule rule = {.opcode = HCA_FAULT_ANY,
					    .psn = HCA_FAULT_ANY,
					    .fault = HCA_FAULT_DROP,
					    .qpn = RIG_QPN,
					    .sqpn = 5};
	struct hca_port *p = new_impair(8);

	(void)state;
	for (unsigned int by_rule = 0; by_rule < 2; by_rule++) {
		uint64_t dropped = stats(p).dropped;

		if (by_rule)
			hca_port_impair_rule(p, &rule);
		hca_port_impair_set(p, by_rule ? NULL : &odds);
		send_of(p, HCA_BTH_RC_WRITE_ONLY, RIG_QPN, 0);
		send_of(p, HCA_BTH_UD_SEND_ONLY, 9, 5);
		assert_int_equal(sink.n, 0);
		assert_int_equal(stats(p).dropped, dropped + 2);
		send_of(p, HCA_BTH_RC_WRITE_ONLY, RIG_QPN + 1, 0);
		send_of(p, HCA_BTH_RC_WRITE_ONLY, 5, 0);
		send_of(p, HCA_BTH_UD_SEND_ONLY, 9, 6);
		assert_int_equal(sink.n, 3);
		assert_int_equal(stats(p).dropped, dropped + 2);
		rig_sink_clear();
	}
	assert_int_equal(hca_port_impair_hits(p, 0), 2);
	assert_int_equal(stats(p).delayed, 0);
	rig_done(p);
}

static void
send_ub(struct hca_port *p, uint8_t opcode, uint32_t psn, uint32_t tpn)
{
	struct rte_mbuf *m = rig_ub_frame(opcode, psn, tpn, 7);

	assert_int_equal(p->ops->tx(p, 0, &m, 1, 0), 1);
}

/* Rules match UB by the opcode of its transport, PSN and TPNs, and keep the wires apart. */
static void
both_wires(void **state)
{
	static const struct hca_fault_rule rules[] = {
		{.opcode = HCA_UB_TP_ACK, .psn = 5, .wire = HCA_WIRE_UB, .qpn = RIG_QPN},
		{.opcode = HCA_FAULT_ANY, .psn = HCA_FAULT_ANY, .wire = HCA_WIRE_ROCE, .qpn = 9},
		{.opcode = HCA_UB_TP_RTP, .psn = 6, .sqpn = 7},
	};
	const struct hca_impair odds = {.drop = 1, .wire = HCA_WIRE_UB};
	struct hca_port *p = new_impair(8);

	(void)state;
	for (unsigned int i = 0; i < RTE_DIM(rules); i++)
		hca_port_impair_rule(p, &rules[i]);
	send_ub(p, HCA_UB_TP_ACK, 5, RIG_QPN);
	send_of(p, HCA_BTH_RC_WRITE_ONLY, 9, 0);
	send_ub(p, HCA_UB_TP_RTP, 6, 1);
	assert_int_equal(sink.n, 0);
	send_ub(p, HCA_UB_TP_ACK, 4, RIG_QPN);
	send_ub(p, HCA_UB_TP_RTP, 5, RIG_QPN);
	send_ub(p, HCA_UB_TP_ACK, 5, 9);
	send_of(p, HCA_UB_TP_ACK, RIG_QPN, 0);
	assert_int_equal(sink.n, 4);
	for (unsigned int i = 0; i < RTE_DIM(rules); i++)
		assert_int_equal(hca_port_impair_hits(p, i), 1);
	hca_port_impair_clear_rules(p);
	hca_port_impair_set(p, &odds);
	send_ub(p, HCA_UB_TP_RTP, 5, 1);
	send_of(p, HCA_BTH_RC_WRITE_ONLY, 1, 0);
	assert_int_equal(sink.n, 5);
	rig_done(p);
}

/* A receiver that verifies the IP checksum accepts the frame, with the mark set. */
static void
marks(void **state)
{
	const struct hca_impair all = {.ecn = 1};
	struct hca_port *p = new_impair(8);

	(void)state;
	hca_port_impair_set(p, &all);
	for (unsigned int vlan = 0; vlan < 2; vlan++) {
		struct rte_mbuf *m = rig_frame_of(HCA_BTH_RC_WRITE_ONLY, 1, RIG_QPN, 0, vlan != 0);
		const uint8_t *l3;
		uint32_t sum = 0;

		assert_int_equal(p->ops->tx(p, 0, &m, 1, 0), 1);
		assert_int_equal(rig_psn_of(vlan), 1);
		l3 = rte_pktmbuf_mtod_offset(sink.got[vlan], uint8_t *,
					     HCA_ETH_LEN + vlan * HCA_VLAN_LEN);
		assert_int_equal(l3[1], 3);
		for (unsigned int i = 0; i < HCA_IPV4_LEN; i += 2)
			sum += hca_get_be16(l3 + i);
		assert_int_equal(hca_ip_fold(sum), 0xffff);
	}
	assert_int_equal(stats(p).ecn_marked, 2);
	rig_done(p);
}

static void
stalls(void **state)
{
	const struct hca_port_stall_config cfg = {.seed = 3, .socket_id = -1};
	const struct hca_port_stall_rules two = {.tx_burst_max = 2};
	const struct hca_port_stall_rules window = {.stall_every = 100, .stall_for = 40};
	const struct hca_port_stall_rules down = {.down_after = 100, .down_for = 50};
	struct rte_mbuf *m[8];
	struct hca_port *p;
	unsigned int seen = 0;

	(void)state;
	assert_int_equal(hca_port_stall_open(&cfg, rig_sink(), &p), 0);
	assert_int_equal(hca_port_missed(p), RIG_MISSED);
	for (uint32_t i = 0; i < 8; i++)
		m[i] = rig_frame(i);
	hca_port_stall_set(p, &two);
	for (unsigned int at = 0, k = 0; at < 8 && k < 1000; k++) {
		uint16_t took = p->ops->tx(p, 0, m + at, (uint16_t)(8 - at), k);

		assert_true(took <= 2);
		seen |= 1u << took;
		at += took;
	}
	assert_int_equal(sink.n, 8);
	assert_int_equal(seen, 7);
	hca_port_stall_set(p, &window);
	m[0] = rig_frame(0);
	m[1] = rig_frame(1);
	assert_int_equal(p->ops->tx(p, 0, m, 1, 1000), 1);
	assert_int_equal(p->ops->tx(p, 0, m + 1, 1, 1060), 0);
	assert_true(p->ops->link_up(p));
	assert_int_equal(p->ops->tx(p, 0, m + 1, 1, 1100), 1);
	hca_port_stall_set(p, &down);
	m[0] = rig_frame(0);
	m[1] = rig_frame(1);
	assert_int_equal(p->ops->tx(p, 0, m, 1, 2000), 1);
	assert_int_equal(p->ops->tx(p, 0, m + 1, 1, 2100), 0);
	assert_false(p->ops->link_up(p));
	p->ops->poll(p, 0, 2150);
	assert_true(p->ops->link_up(p));
	hca_port_stall_link(p, false);
	assert_false(p->ops->link_up(p));
	assert_int_equal(p->ops->tx(p, 0, m + 1, 1, 2160), 0);
	hca_port_stall_link(p, true);
	assert_int_equal(p->ops->tx(p, 0, m + 1, 1, 2170), 1);
	rig_done(p);
}

/* A port without rules that has been polled takes short cuts: rules hold from the next frame on. */
static void
stalls_after_idle(void **state)
{
	const struct hca_port_stall_config cfg = {.seed = 3, .socket_id = -1};
	const struct hca_port_stall_rules none = {.tx_burst_max = 0};
	const struct hca_port_stall_rules down = {.down_after = 100, .down_for = 50};
	struct hca_port_stall_stats stats;
	struct hca_port *p;
	uint64_t t = 1000;

	(void)state;
	assert_int_equal(hca_port_stall_open(&cfg, rig_sink(), &p), 0);
	for (unsigned int round = 0; round < 3; round++, t += 1000) {
		struct rte_mbuf *m = rig_frame(round);

		p->ops->poll(p, 0, t);
		assert_int_equal(p->ops->tx(p, 0, &m, 1, t), 1);
		hca_port_stall_link(p, false);
		m = rig_frame(round);
		assert_int_equal(p->ops->tx(p, 0, &m, 1, t + 1), 0);
		hca_port_stall_link(p, true);
		assert_int_equal(p->ops->tx(p, 0, &m, 1, t + 2), 1);
		p->ops->poll(p, 0, t + 3);
		hca_port_stall_set(p, &down);
		m = rig_frame(round);
		assert_int_equal(p->ops->tx(p, 0, &m, 1, t + 10), 1);
		p->ops->poll(p, 0, t + 11);
		assert_int_equal(p->ops->deadline(p, 0, t + 12), t + 110);
		m = rig_frame(round);
		assert_int_equal(p->ops->tx(p, 0, &m, 1, t + 110), 0);
		/* the link that the rules took down is up again as soon as they are gone */
		hca_port_stall_set(p, &none);
		assert_int_equal(p->ops->tx(p, 0, &m, 1, t + 112), 1);
		p->ops->poll(p, 0, t + 113);
		assert_true(p->ops->link_up(p));
		assert_int_equal(p->ops->deadline(p, 0, t + 114), UINT64_MAX);
	}
	hca_port_stall_stats(p, &stats);
	assert_int_equal(stats.offered, 6 * 3);
	assert_int_equal(stats.taken, 4 * 3);
	assert_int_equal(stats.short_bursts, 2 * 3);
	assert_int_equal(stats.link_downs, 2 * 3);
	rig_done(p);
}

/* Frames that come while the link is down are lost, if the rules say so, and counted. */
static void
down_both_ways(void **state)
{
	const struct hca_port_impair_config ic = {.name = "tdeaf", .seed = 7, .socket_id = -1};
	struct hca_port_stall_config cfg = {.seed = 3, .socket_id = -1};

	(void)state;
	for (unsigned int both = 0; both < 2; both++) {
		const struct hca_port_stall_rules down = {.down_for = 50,
							  .at_once = true,
							  .both_ways = both != 0};
		struct hca_port *in, *p;

		assert_int_equal(hca_port_inbound_open(&ic, rig_source(6), &in), 0);
		cfg.deaf = hca_port_inbound_deaf(in);
		assert_int_equal(hca_port_stall_open(&cfg, in, &p), 0);
		p->ops->poll(p, 0, 1000);
		assert_int_equal(rig_receive(p, 2, 1000), 2);
		hca_port_stall_set(p, &down);
		p->ops->poll(p, 0, 1010);
		assert_false(p->ops->link_up(p));
		assert_int_equal(rig_receive(p, 2, 1010), both != 0 ? 0 : 2);
		assert_int_equal(hca_port_inbound_lost(in), both != 0 ? 2 : 0);
		p->ops->poll(p, 0, 1061);
		assert_true(p->ops->link_up(p));
		assert_int_equal(rig_receive(p, 2, 1061), 2);
		rig_done(p);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clean),
		cmocka_unit_test(by_chance),
		cmocka_unit_test(same_seed_same_fate),
		cmocka_unit_test(nth_frame_same_fate),
		cmocka_unit_test(rules),
		cmocka_unit_test(corruption),
		cmocka_unit_test(delay_is_bounded),
		cmocka_unit_test(inner_full),
		cmocka_unit_test(inner_and_hold_full),
		cmocka_unit_test(rule_counts_refused_once),
		cmocka_unit_test(refused_after_its_fault),
		cmocka_unit_test(refused_before_its_delay),
		cmocka_unit_test(duplicate_refused),
		cmocka_unit_test(one_qp),
		cmocka_unit_test(both_wires),
		cmocka_unit_test(marks),
		cmocka_unit_test(stalls),
		cmocka_unit_test(stalls_after_idle),
		cmocka_unit_test(down_both_ways),
	};

	return cmocka_run_group_tests(tests, rig_setup, NULL);
}
