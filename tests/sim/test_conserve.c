/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Exactly one counter explains whatever was sent without effect. Each run also ends with the checks
 * of sim_close().
 */

#include <inttypes.h>

#include "abi_roce.h"
#include "sim_duo.h"
#include "sim_tagged.h"
#include "sim_test.h"

#define PROGRAM "test_conserve"
#define MESSAGES 150u

#define EXPECT(s, got, want) \
	do { \
		uint64_t g_ = (got), w_ = (want); \
		sim_check((s), g_ == w_, "line %d: %s = %" PRIu64 ", not %" PRIu64, __LINE__, \
			  #got, g_, w_); \
	} while (0)

static const struct hca_impair links[] = {
	{.drop = 0},
	{.drop = 0.04},
	{.dup = 0.06, .reorder = 0.06},
	{.corrupt = 0.04, .truncate = 0.03},
	{.drop = 0.02, .dup = 0.02, .reorder = 0.03, .corrupt = 0.02, .truncate = 0.01, .ecn = 0.1},
};

static void
impair_both(struct sim *s, const struct hca_impair *link)
{
	sim_impair(s, 0, link);
	sim_impair(s, 1, link);
}

static void
exchange(struct sim_tagged *t, unsigned int sent[2])
{
	struct sim *s = t->s;
	struct sim_rng *r = &sim_model(s)->rng;
	unsigned int dry = 0;

	sent[0] = sent[1] = 0;
	while (sent[0] + sent[1] < MESSAGES) {
		unsigned int side = sim_below(r, 2);
		bool one = sim_tagged_send(t, side, sim_below(r, t->attr.flows));

		sent[side] += one;
		dry = one ? 0 : dry + 1;
		sim_check(s, dry < 200000, "nothing more can be sent");
		if (!one || sim_below(r, 4) == 0)
			sim_poll(s);
		sim_tagged_reap(t);
		sim_tagged_fill(t);
	}
	sim_tagged_finish(t);
	sim_settle(s);
}

static bool
is_reliable(enum sim_service service)
{
	return service == SIM_RC || service == SIM_XRC;
}

/* From `side` to the other one. */
static void
judge(struct sim *s, enum sim_service service, unsigned int side, unsigned int sent)
{
	uint64_t packets = sim_counter(s, side, "req_packets");
	uint64_t executed = sim_requests_executed(s, 1 - side);

	EXPECT(s, sim_chains_begun(s, side), sent);
	EXPECT(s, sim_counter(s, side, "rdma_sends"), sent);
	if (is_reliable(service)) {
		EXPECT(s, executed, packets - sim_counter(s, side, "retransmissions"));
		EXPECT(s, sim_counter(s, 1 - side, "rdma_recvs"), sent);
		return;
	}
	EXPECT(s, sim_counter(s, side, "retransmissions"), 0);
	EXPECT(s, sim_counter(s, side, "rcvd_responses"), 0);
	if (service == SIM_UD) {
		EXPECT(s, packets, sent);
		EXPECT(s, executed, sim_counter(s, 1 - side, "rdma_recvs"));
	}
}

static void
one_service(const struct sim_config *cfg, enum sim_service service, const struct hca_impair *link)
{
	struct sim *s = sim_open(cfg);
	const struct sim_tagged_attr attr = {
		.service = service,
		.gid = cfg->seed % SIM_GIDS,
		.flows = 3,
		.srq = cfg->seed % 2 == 0 && service != SIM_UC,
		.max_len = service == SIM_UD ? 1024 : 4000,
	};
	struct sim_tagged *t = sim_tagged_open(s, &attr);
	unsigned int sent[2];

	t->lossless = link == &links[0];
	t->duplicates = link->dup != 0;
	impair_both(s, link);
	exchange(t, sent);
	impair_both(s, NULL);
	for (unsigned int side = 0; side < 2; side++)
		judge(s, service, side, sent[side]);
	sim_tagged_close(t);
	sim_close(s);
}

static void
services_in(const struct sim_config *cfg)
{
	for (unsigned int i = 0; i < SIM_SERVICES * (sizeof(links) / sizeof(links[0])) * 2; i++) {
		struct sim_config c = *cfg;

		c.seed = cfg->seed + i;
		one_service(&c, i % SIM_SERVICES,
			    &links[i / SIM_SERVICES % (sizeof(links) / sizeof(links[0]))]);
	}
	print_message("seeds %" PRIu64 " and on\n", cfg->seed);
}
SIM_TEST(services)

/* --- reasons for retransmissions -------------------- */

static void
nothing(struct sim_duo *d)
{
}

static void
lose(struct sim_duo *d, unsigned int side, uint32_t opcode, uint32_t nth, uint32_t count)
{
	sim_rule(d->s, side,
		 (struct hca_fault_rule){.opcode = opcode,
					 .psn = HCA_FAULT_ANY,
					 .nth = nth,
					 .count = count,
					 .fault = HCA_FAULT_DROP});
}

static void
lose_acks(struct sim_duo *d)
{
	lose(d, 1, HCA_BTH_RC_ACK, 1, 1);
}

static void
lose_a_write(struct sim_duo *d)
{
	lose(d, 0, HCA_BTH_RC_WRITE_MIDDLE, 2, 1);
}

static void
lose_a_response(struct sim_duo *d)
{
	lose(d, 1, HCA_BTH_RC_READ_RESP_MIDDLE, 2, 1);
}

static void
late_receive(struct sim_duo *d)
{
	sim_run_for(d->s, 200000);
	sim_duo_recv(d, 1, 64, 1);
}

static const struct cause {
	const char *counter, *event; /* counters of retransmissions, and of their causes */
	uint32_t opcode, len;
	void (*before)(struct sim_duo *d), (*after)(struct sim_duo *d);
} causes[] = {
	{"again_timeout", "local_ack_timeout_err", SOFTHCA_WR_RDMA_WRITE, 900, lose_acks, nothing},
	{"again_seq_nak", "packet_seq_err", SOFTHCA_WR_RDMA_WRITE, 9000, lose_a_write, nothing},
	{"again_implied_nak", "implied_nak_seq_err", SOFTHCA_WR_RDMA_READ, 9000, lose_a_response,
	 nothing},
	{"again_rnr_nak", "rnr_nak_retry_err", SOFTHCA_WR_SEND, 64, nothing, late_receive},
};

static void
reasons_in(const struct sim_config *cfg)
{
	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		const struct cause *c = &causes[i];
		struct sim *s = sim_open(cfg);
		struct sim_duo d = {0};
		uint64_t again;

		sim_duo_open(s, &d);
		c->before(&d);
		sim_duo_post(&d, 0, c->opcode, c->len, 1, 0);
		c->after(&d);
		sim_settle(s);
		again = sim_counter(s, 0, "retransmissions");
		sim_check(s, again != 0, "%s: nothing was sent again", c->counter);
		EXPECT(s, sim_counter(s, 0, c->counter), again);
		sim_check(s, sim_counter(s, 0, c->event) != 0, "%s", c->event);
		EXPECT(s, sim_counter(s, 0, "req_rewinds"), sim_counter(s, 0, c->event));
		EXPECT(s, sim_requests_executed(s, 1), sim_counter(s, 0, "req_packets") - again);
		sim_clear_rules(s);
		sim_duo_close(&d);
		sim_close(s);
	}
}
SIM_TEST(reasons)

/* --- requests and doorbells of destroyed QPs -------------------- */

static void
to_state(struct sim *s, struct softhca_qp *qp, uint32_t state)
{
	struct softhca_qp_attr a = {.qp_state = state};

	sim_check(s, softhca_modify_qp(qp, &a, SOFTHCA_QP_STATE) == 0, "to %u", state);
}

/* Reset or failed at any point of a burst, with requests inside and outside of the window. */
static void
ends_in(const struct sim_config *cfg)
{
	const uint64_t runs = 30, each = 40;
	uint64_t completed = 0, gone, flushed, dropped;
	struct sim_config c = *cfg;
	struct sim_rng *r;
	struct sim *s;

	c.records_per_qp = 8;
	s = sim_open(&c);
	r = &sim_model(s)->rng;
	for (unsigned int i = 0; i < runs; i++) {
		struct sim_duo d = {0};

		sim_duo_open(s, &d);
		sim_duo_post(&d, 0, i % 2 ? SOFTHCA_WR_RDMA_WRITE : SOFTHCA_WR_RDMA_READ, 3000,
			     each, 0);
		for (unsigned int k = sim_below(r, 40); k > 0; k--)
			sim_poll(s);
		to_state(s, d.qp[0], i % 3 == 0 ? SOFTHCA_QPS_ERR : SOFTHCA_QPS_RESET);
		sim_settle(s);
		completed += sim_cq_drain(d.own[0], NULL);
		sim_duo_close(&d);
	}
	sim_settle(s);
	flushed = sim_counter(s, 0, "req_cqe_flush_error");
	gone = sim_counter(s, 0, "sq_purged");
	dropped = sim_counter(s, 0, "db_dropped") + sim_counter(s, 0, "db_stale") +
		  sim_counter(s, 0, "db_bad_state") + sim_counter(s, 0, "db_dead_qpn");
	EXPECT(s, sim_counter(s, 0, "doorbells"), runs * each);
	EXPECT(s, sim_counter(s, 0, "sq_wqes") + dropped, runs * each);
	EXPECT(s, sim_counter(s, 0, "req_completions") + flushed + gone + dropped, runs * each);
	sim_check(s, flushed != 0 && gone != 0 && sim_counter(s, 0, "db_dropped") != 0,
		  "nothing was under way");
	/* software has not seen completions that a reset removes */
	sim_check(s, completed <= sim_counter(s, 0, "req_completions") + flushed, "completions");
	sim_close(s);
}
SIM_TEST(ends)

/* --- completions that find no room -------------------- */

static void
small_cq_in(const struct sim_config *cfg)
{
	const struct softhca_cq_init_attr ca = {.cqe = 16};
	struct sim *s = sim_open(cfg);
	struct softhca_cq *cq = softhca_create_cq(s->side[0].ctx, &ca);
	struct sim_duo d = {.scq = {cq, NULL}, .rcq = {cq, NULL}};
	uint64_t wanted;

	sim_check(s, cq != NULL, "create_cq");
	sim_duo_open(s, &d);
	sim_duo_post(&d, 0, SOFTHCA_WR_RDMA_WRITE, 100, 60, 0);
	sim_settle(s);
	wanted = sim_counter(s, 0, "req_completions") + sim_counter(s, 0, "req_cqe_error") +
		 sim_counter(s, 0, "req_cqe_flush_error");
	EXPECT(s, wanted, 60);
	sim_check(s, sim_counter(s, 0, "cqe_overrun") != 0, "no overrun");
	EXPECT(s, sim_cq_drain(cq, NULL),
	       wanted - sim_counter(s, 0, "cqe_overrun") - sim_counter(s, 0, "cqe_dead_cq"));
	sim_duo_close(&d);
	sim_check(s, softhca_destroy_cq(cq) == 0, "destroy_cq");
	sim_close(s);
}
SIM_TEST(small_cq)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(services),
		cmocka_unit_test(reasons),
		cmocka_unit_test(ends),
		cmocka_unit_test(small_cq),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
