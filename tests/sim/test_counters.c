/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Counters through the public API: names, consistency with each other and with the link, and
 * exactly one of them explains each missing packet.
 */

#include <inttypes.h>

#include "sim_duo.h"
#include "sim_test.h"

#define PROGRAM "test_counters"
#define MOST 512

struct set {
	struct softhca_counter c[MOST];
	int n;
};

static void
check_set(struct sim *s, const struct set *set, const char *what)
{
	sim_check(s, set->n > 0 && set->n <= MOST, "%s: %d counters: %s", what, set->n,
		  softhca_last_error(NULL));
}

static uint64_t
value(struct sim *s, const struct set *set, const char *name)
{
	for (int i = 0; i < set->n; i++)
		if (strcmp(set->c[i].name, name) == 0)
			return set->c[i].value;
	sim_fail(s, "no counter %s", name);
}

static struct set
of_device(struct sim *s, unsigned int side)
{
	struct set set;

	set.n = softhca_query_counters(s->side[side].ctx, set.c, MOST);
	check_set(s, &set, "device");
	return set;
}

static uint64_t
of_port(struct sim *s, unsigned int side, const char *name)
{
	struct set set;

	set.n = softhca_query_port_counters(s->side[side].ctx, 1, set.c, MOST);
	check_set(s, &set, "port");
	return value(s, &set, name);
}

static uint64_t
of_qp(struct sim *s, struct softhca_qp *qp, const char *name)
{
	struct set set;

	set.n = softhca_query_qp_counters(qp, set.c, MOST);
	check_set(s, &set, "QP");
	return value(s, &set, name);
}

#define EXPECT(s, got, want) \
	do { \
		uint64_t g_ = (got), w_ = (want); \
		sim_check((s), g_ == w_, "line %d: %s = %" PRIu64 ", not %" PRIu64, __LINE__, \
			  #got, g_, w_); \
	} while (0)

/* Names, values, limits, refused queries. */
static void
api_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	struct softhca_context *ctx = s->side[0].ctx;
	struct softhca_counter two[3] = {{.name = "", .value = 7}};
	struct sim_duo d = {0};
	struct set set;

	sim_duo_open(s, &d);
	sim_duo_send(&d, 0, 5, 0);
	sim_settle(s);
	set = of_device(s, 0);
	EXPECT(s, set.n, hca_counter_count());
	for (int i = 0; i < set.n; i++) {
		uint64_t now = hca_counter_value(s->side[0].hca, (unsigned int)i);

		sim_check(s, strcmp(set.c[i].name, hca_counter_name((unsigned int)i)) == 0,
			  "name of %d", i);
		if (strncmp(set.c[i].name, "hcr_", 4) != 0)
			sim_check(s, set.c[i].value == now, "%s", set.c[i].name);
	}
	EXPECT(s, value(s, &set, "rdma_sends"), 5);
	set = of_device(s, 1);
	EXPECT(s, value(s, &set, "rdma_recvs"), 5);
	EXPECT(s, softhca_query_counters(ctx, NULL, 0), hca_counter_count());
	two[2].value = 99;
	EXPECT(s, softhca_query_counters(ctx, two, 2), hca_counter_count());
	sim_check(s, strcmp(two[0].name, hca_counter_name(0)) == 0 && two[2].value == 99,
		  "two of them");
	sim_check(s, softhca_query_port_counters(ctx, 2, NULL, 0) == -EINVAL, "port 2");
	EXPECT(s, softhca_query_port_counters(ctx, 1, NULL, 0), hca_port_counter_count());
	EXPECT(s, softhca_query_qp_counters(d.qp[0], NULL, 0), hca_qp_counter_count());
	d.qp[0]->qp_num ^= 0x8000;
	sim_check(s, softhca_query_qp_counters(d.qp[0], NULL, 0) == -EINVAL, "no such QP");
	d.qp[0]->qp_num ^= 0x8000;
	sim_duo_close(&d);
	sim_close(s);
}
SIM_TEST(api)

static void
to_reset(struct sim *s, struct softhca_qp *qp)
{
	struct softhca_qp_attr a = {.qp_state = SOFTHCA_QPS_RESET};

	sim_check(s, softhca_modify_qp(qp, &a, SOFTHCA_QP_STATE) == 0, "to RESET");
}

/*
 * Packets and payload of each operation, in both directions; another QP's counters do not change.
 */
static void
traffic_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	struct sim_duo d = {0}, other = {0};

	sim_duo_open(s, &d);
	sim_duo_open(s, &other);
	EXPECT(s, of_qp(s, d.qp[0], "tx_packets"), 0);
	sim_duo_post(&d, 0, SOFTHCA_WR_RDMA_WRITE, 3000, 10, 0);
	sim_settle(s);
	EXPECT(s, of_qp(s, d.qp[0], "tx_packets"), 30);
	EXPECT(s, of_qp(s, d.qp[0], "tx_bytes"), 30000);
	EXPECT(s, of_qp(s, d.qp[1], "rx_packets"), 30);
	EXPECT(s, of_qp(s, d.qp[1], "rx_bytes"), 30000);
	EXPECT(s, of_qp(s, d.qp[1], "tx_packets"), of_qp(s, d.qp[0], "rx_packets"));
	EXPECT(s, of_qp(s, d.qp[1], "tx_bytes"), 0);
	sim_duo_post(&d, 0, SOFTHCA_WR_RDMA_READ, 5000, 3, 0);
	sim_settle(s);
	EXPECT(s, of_qp(s, d.qp[0], "tx_packets"), 33);
	EXPECT(s, of_qp(s, d.qp[0], "rx_bytes"), 15000);
	EXPECT(s, of_qp(s, d.qp[1], "tx_bytes"), 15000);
	EXPECT(s, of_qp(s, d.qp[1], "tx_packets"), of_qp(s, d.qp[0], "rx_packets"));
	sim_duo_send(&d, 1, 4, 0);
	sim_settle(s);
	EXPECT(s, of_qp(s, d.qp[0], "rx_bytes"), 15000 + 4 * 64);
	EXPECT(s, of_qp(s, d.qp[0], "retransmissions"), 0);
	EXPECT(s, of_qp(s, other.qp[0], "tx_packets"), 0);
	EXPECT(s, of_qp(s, other.qp[1], "rx_packets"), 0);
	to_reset(s, d.qp[0]);
	EXPECT(s, of_qp(s, d.qp[0], "tx_packets"), 0);
	sim_duo_close(&d);
	sim_duo_close(&other);
	sim_close(s);
}
SIM_TEST(traffic)

/* --- everything adds up -------------------- */

struct totals {
	uint64_t qp_tx, qp_rx, retransmissions, duplicates, timeouts, sequence, implied, naks,
		dropped;
};

static struct totals
add_up(struct sim *s, struct sim_duo *d, unsigned int n, unsigned int side)
{
	struct totals t = {0};

	for (unsigned int i = 0; i < n; i++) {
		struct softhca_qp *qp = d[i].qp[side];

		t.qp_tx += of_qp(s, qp, "tx_packets");
		t.qp_rx += of_qp(s, qp, "rx_packets");
		t.retransmissions += of_qp(s, qp, "retransmissions");
		t.duplicates += of_qp(s, qp, "duplicate_request");
		t.timeouts += of_qp(s, qp, "local_ack_timeout_err");
		t.sequence += of_qp(s, qp, "packet_seq_err");
		t.implied += of_qp(s, qp, "implied_nak_seq_err");
		t.naks += of_qp(s, qp, "seq_nak_sent");
		t.dropped += of_qp(s, qp, "rx_dropped");
	}
	return t;
}

/*
 * Packets created were sent or discarded; sent ones arrived, except for faults of the link;
 * received ones were dropped for one reason or delivered to a QP.
 */
static void
balance(struct sim *s, struct sim_duo *d, unsigned int n)
{
	struct hca_port_impair_stats link;

	for (unsigned int side = 0; side < 2; side++) {
		struct totals t = add_up(s, d, n, side);
		struct set dev = of_device(s, side);

		EXPECT(s, t.qp_tx, of_port(s, side, "port_xmit_packets"));
		EXPECT(s, of_port(s, side, "port_rcv_packets"),
		       of_port(s, side, "port_rcv_errors") + t.qp_rx);
		EXPECT(s, t.retransmissions, value(s, &dev, "retransmissions"));
		EXPECT(s, t.duplicates, value(s, &dev, "duplicate_request"));
		EXPECT(s, t.timeouts, value(s, &dev, "local_ack_timeout_err"));
		EXPECT(s, t.sequence, value(s, &dev, "packet_seq_err"));
		EXPECT(s, t.implied, value(s, &dev, "implied_nak_seq_err"));
		EXPECT(s, t.naks, value(s, &dev, "seq_nak_sent"));
		EXPECT(s, t.qp_rx - t.dropped,
		       sim_requests_executed(s, side) + sim_responses_used(s, side));
		hca_port_impair_stats(s->side[side].impair, &link);
		EXPECT(s, of_port(s, 1 - side, "port_rcv_packets"),
		       of_port(s, side, "port_xmit_packets") -
			       of_port(s, side, "port_xmit_discards") - link.dropped +
			       link.duplicated);
		EXPECT(s,
		       of_port(s, side, "port_xmit_packets") -
			       of_port(s, side, "port_xmit_discards"),
		       link.frames);
		dev = of_device(s, 1 - side);
		EXPECT(s, value(s, &dev, "np_ecn_marked_roce_packets"), link.ecn_marked);
	}
}

static const struct hca_impair impairments[] = {
	{.drop = 0.03},
	{.dup = 0.05},
	{.reorder = 0.05},
	{.corrupt = 0.04, .corrupt_kinds = HCA_CORRUPT_PAYLOAD | HCA_CORRUPT_ICRC},
	{.truncate = 0.03},
	{.drop = 0.01, .dup = 0.01, .reorder = 0.01, .corrupt = 0.01, .truncate = 0.01},
};

static void
mixed_traffic(struct sim *s, struct sim_duo *d, unsigned int n)
{
	static const uint32_t ops[] = {SOFTHCA_WR_RDMA_WRITE, SOFTHCA_WR_RDMA_READ};

	for (unsigned int round = 0; round < 6; round++) {
		for (unsigned int i = 0; i < n; i++)
			for (unsigned int side = 0; side < 2; side++) {
				sim_duo_post(&d[i], side, ops[(round + i) % 2], 2500, 4, 0);
				sim_duo_send(&d[i], side, 4, 0);
			}
		sim_settle(s);
		for (unsigned int i = 0; i < n; i++)
			for (unsigned int side = 0; side < 2; side++)
				sim_cq_drain(d[i].own[side], NULL);
	}
}

static void
adds_up_in(const struct sim_config *cfg)
{
	for (size_t k = 0; k < sizeof(impairments) / sizeof(impairments[0]); k++) {
		struct sim *s = sim_open(cfg);
		struct sim_duo d[3] = {{0}};

		for (unsigned int i = 0; i < 3; i++)
			sim_duo_open(s, &d[i]);
		for (unsigned int side = 0; side < 2; side++)
			sim_impair(s, side, &impairments[k]);
		mixed_traffic(s, d, 3);
		for (unsigned int side = 0; side < 2; side++)
			sim_impair(s, side, NULL);
		sim_settle(s);
		balance(s, d, 3);
		for (unsigned int i = 0; i < 3; i++)
			sim_duo_close(&d[i]);
		sim_close(s);
	}
}
SIM_TEST(adds_up)

/* Congestion marks and a link that is down are counted where they occur. */
static void
marks_and_cables_in(const struct sim_config *cfg)
{
	const struct hca_impair marks = {.ecn = 0.3};
	struct sim *s = sim_open(cfg);
	struct sim_duo d[1] = {{0}};

	sim_duo_open(s, d);
	sim_impair(s, 0, &marks);
	mixed_traffic(s, d, 1);
	sim_impair(s, 0, NULL);
	hca_port_stall_link(s->side[0].stall, false);
	sim_duo_post(d, 0, SOFTHCA_WR_RDMA_WRITE, 2500, 4, 0);
	sim_run_for(s, 3000000);
	hca_port_stall_link(s->side[0].stall, true);
	sim_settle(s);
	sim_check(s, of_port(s, 0, "port_xmit_discards") > 0, "nothing was discarded");
	balance(s, d, 1);
	sim_duo_close(d);
	sim_close(s);
}
SIM_TEST(marks_and_cables)

/* --- datagrams are not repeated, so each missing one has exactly one reason ------------------- */

#define DATAGRAMS 12u
#define QKEY 0x1234u

struct ud {
	struct sim *s;
	struct softhca_cq *cq[2];
	struct softhca_qp *qp[2];
	struct softhca_mr *mr[2];
	uint8_t *buf[2];
	struct softhca_ah *ah;
	uint32_t qpn, qkey, room, receives; /* destination of the next datagrams */
};

static void
ud_state(struct ud *u, unsigned int side, uint32_t state, uint32_t mask)
{
	struct softhca_qp_attr a = {.qp_state = state, .port_num = 1, .qkey = QKEY, .sq_psn = 5};

	sim_check(u->s, softhca_modify_qp(u->qp[side], &a, SOFTHCA_QP_STATE | mask) == 0, "UD: %s",
		  softhca_last_error(NULL));
}

static void
ud_up(struct ud *u, unsigned int side)
{
	ud_state(u, side, SOFTHCA_QPS_INIT,
		 SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT | SOFTHCA_QP_QKEY);
	ud_state(u, side, SOFTHCA_QPS_RTR, 0);
	ud_state(u, side, SOFTHCA_QPS_RTS, SOFTHCA_QP_SQ_PSN);
}

static void
ud_open(struct sim *s, struct ud *u)
{
	struct softhca_cq_init_attr ca = {.cqe = 256};
	struct softhca_qp_init_attr qa = {
		.cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = SOFTHCA_QPT_UD,
	};
	struct softhca_ah_attr ah = {.port_num = 1, .is_global = 1, .hop_limit = 64};

	u->s = s;
	for (unsigned int i = 0; i < 2; i++) {
		u->cq[i] = softhca_create_cq(s->side[i].ctx, &ca);
		qa.send_cq = qa.recv_cq = u->cq[i];
		u->qp[i] = softhca_create_qp(s->side[i].pd, &qa);
		u->buf[i] = aligned_alloc(4096, 4096);
		u->mr[i] =
			softhca_reg_mr(s->side[i].pd, u->buf[i], 4096, SOFTHCA_ACCESS_LOCAL_WRITE);
		sim_check(s, u->qp[i] != NULL && u->mr[i] != NULL, "UD");
		ud_up(u, i);
	}
	sim_gid(1, 0, ah.dgid.raw);
	u->ah = softhca_create_ah(s->side[0].pd, &ah);
	sim_check(s, u->ah != NULL, "create_ah");
}

static void
ud_close(struct ud *u)
{
	sim_check(u->s, softhca_destroy_ah(u->ah) == 0, "destroy_ah");
	for (unsigned int i = 0; i < 2; i++) {
		sim_check(u->s, softhca_destroy_qp(u->qp[i]) == 0, "destroy_qp");
		sim_check(u->s, softhca_destroy_cq(u->cq[i]) == 0, "destroy_cq");
		sim_check(u->s, softhca_dereg_mr(u->mr[i]) == 0, "dereg_mr");
		free(u->buf[i]);
	}
}

/* Post receives, then datagrams; returns the number that arrived. */
static unsigned int
ud_send(struct ud *u)
{
	struct softhca_sge to = {(uintptr_t)u->buf[1], u->room, u->mr[1]->lkey};
	struct softhca_sge from = {(uintptr_t)u->buf[0], 256, u->mr[0]->lkey};
	struct softhca_recv_wr rwr = {.sg_list = &to, .num_sge = 1}, *rbad;
	struct softhca_send_wr wr = {.sg_list = &from,
				     .num_sge = 1,
				     .opcode = SOFTHCA_WR_SEND,
				     .wr.ud = {u->ah, u->qpn, u->qkey}},
			       *bad;

	for (unsigned int i = 0; i < u->receives; i++)
		sim_check(u->s, softhca_post_recv(u->qp[1], &rwr, &rbad) == 0, "post_recv");
	for (unsigned int i = 0; i < DATAGRAMS; i++) {
		wr.send_flags = i + 1 == DATAGRAMS ? SOFTHCA_SEND_SIGNALED : 0;
		sim_check(u->s, softhca_post_send(u->qp[0], &wr, &bad) == 0, "post_send");
	}
	sim_settle(u->s);
	EXPECT(u->s, sim_cq_drain(u->cq[0], NULL), 1);
	return sim_cq_drain(u->cq[1], NULL);
}

static void
ud_wrong_qkey(struct ud *u)
{
	u->qkey++;
}

static void
ud_no_such_qp(struct ud *u)
{
	u->qpn ^= 0x400000;
}

static void
ud_few_receives(struct ud *u)
{
	u->receives = 5;
}

static void
ud_short_receives(struct ud *u)
{
	u->room = 100;
}

static void
ud_not_ready(struct ud *u)
{
	ud_state(u, 1, SOFTHCA_QPS_RESET, 0);
	ud_state(u, 1, SOFTHCA_QPS_INIT, SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT | SOFTHCA_QP_QKEY);
}

static void
ud_unplugged(struct ud *u)
{
	hca_port_stall_link(u->s->side[0].stall, false);
}

static void
ud_fault(struct ud *u, enum hca_fault fault, uint64_t arg)
{
	const struct hca_fault_rule rule = {.opcode = HCA_FAULT_ANY,
					    .psn = HCA_FAULT_ANY,
					    .nth = 3,
					    .count = 4,
					    .fault = fault,
					    .arg = arg};

	sim_rule(u->s, 0, rule);
}

static void
ud_lost(struct ud *u)
{
	ud_fault(u, HCA_FAULT_DROP, 0);
}

static void
ud_corrupt(struct ud *u)
{
	ud_fault(u, HCA_FAULT_CORRUPT_PAYLOAD, 0);
}

static void
ud_stub(struct ud *u)
{
	ud_fault(u, HCA_FAULT_TRUNCATE, 30);
}

static const struct scenario {
	const char *name;
	void (*set)(struct ud *u);
	const char *reason; /* counter that explains the missing ones; "link": the link itself */
	unsigned int side, missing;
} scenarios[] = {
	{"nothing", NULL, "link", 1, 0},
	{"wrong Q_Key", ud_wrong_qkey, "rx_bad_qkey", 1, DATAGRAMS},
	{"no such QP", ud_no_such_qp, "rx_unknown_qpn", 1, DATAGRAMS},
	{"too few receives", ud_few_receives, "out_of_buffer", 1, DATAGRAMS - 5},
	{"receives too short", ud_short_receives, "resp_ud_dropped", 1, DATAGRAMS},
	{"QP in INIT", ud_not_ready, "rx_qp_state", 1, DATAGRAMS},
	{"no link", ud_unplugged, "tx_discard_link_down", 0, DATAGRAMS},
	{"lost", ud_lost, "link", 1, 4},
	{"corrupt", ud_corrupt, "rx_icrc_encapsulated", 1, 4},
	{"cut short", ud_stub, "rx_short", 1, 4},
};

/* Sum of all counters of losses. */
static uint64_t
all_drops(struct sim *s)
{
	struct set receiver = of_device(s, 1);
	struct hca_port_impair_stats link;

	hca_port_impair_stats(s->side[0].impair, &link);
	return of_port(s, 0, "port_xmit_discards") + link.dropped +
	       of_port(s, 1, "port_rcv_errors") + value(s, &receiver, "out_of_buffer") +
	       value(s, &receiver, "resp_ud_dropped");
}

static uint64_t
reason(struct sim *s, const struct scenario *c)
{
	struct hca_port_impair_stats link;

	hca_port_impair_stats(s->side[0].impair, &link);
	return strcmp(c->reason, "link") == 0 ? link.dropped : sim_counter(s, c->side, c->reason);
}

static void
datagrams_in(const struct sim_config *cfg)
{
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
		const struct scenario *c = &scenarios[i];
		struct sim *s = sim_open(cfg);
		struct ud u = {.qkey = QKEY, .room = 512, .receives = DATAGRAMS};
		uint64_t drops, why;
		unsigned int got;

		ud_open(s, &u);
		u.qpn = u.qp[1]->qp_num;
		drops = all_drops(s);
		why = reason(s, c);
		if (c->set != NULL)
			c->set(&u);
		got = ud_send(&u);
		sim_check(s, got == DATAGRAMS - c->missing, "%s: %u arrived", c->name, got);
		sim_check(s, reason(s, c) - why == c->missing, "%s: %s counts %" PRIu64, c->name,
			  c->reason, reason(s, c) - why);
		sim_check(s, all_drops(s) - drops == c->missing, "%s: all drops are %" PRIu64,
			  c->name, all_drops(s) - drops);
		hca_port_stall_link(s->side[0].stall, true);
		sim_clear_rules(s);
		ud_close(&u);
		sim_close(s);
	}
}
SIM_TEST(datagrams)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(api),	     cmocka_unit_test(traffic),
		cmocka_unit_test(adds_up),   cmocka_unit_test(marks_and_cables),
		cmocka_unit_test(datagrams),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
