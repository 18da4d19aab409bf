/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * One fault at a time: every operation with every fault of every kind of packet, selected by PSN or
 * position, in each direction.
 */

#include "sim_fault.h"
#include "sim_test.h"
#include "wire/roce_opcode.h"

#define PROGRAM "test_fault"
#define S SOFTHCA_SEND_SIGNALED

#define all_ops sim_fault_ops

static const enum hca_fault faults[] = {
	HCA_FAULT_DROP,
	HCA_FAULT_DUP,
	HCA_FAULT_REORDER,
	HCA_FAULT_DELAY,
	HCA_FAULT_CORRUPT_PAYLOAD,
	HCA_FAULT_CORRUPT_HEADER,
	HCA_FAULT_CORRUPT_ICRC,
	HCA_FAULT_CORRUPT_RANDOM,
	HCA_FAULT_TRUNCATE,
	HCA_FAULT_ECN,
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static uint64_t
hits(const struct sim *s, unsigned int side)
{
	return hca_port_impair_hits(s->side[side].impair, 0);
}

static void
one_op(struct sim *s, unsigned int side, uint32_t opcode, enum hca_fault fault, uint32_t count)
{
	const uint32_t lens[] = {100, 4 * SIM_FAULT_MTU + 3};
	struct sim_fault_case c = {.side = side, .opcode = opcode, .fault = fault, .count = count};

	for (unsigned int l = 0; l < COUNT(lens); l++) {
		uint32_t sent, packets = sim_fault_packets(opcode, lens[l], &sent);
		const uint32_t places[] = {0, packets / 2, packets - 1};

		c.len = lens[l];
		c.by_psn = true;
		for (unsigned int k = 0; k < COUNT(places); k++) {
			if (k != 0 && places[k] == places[k - 1])
				continue;
			c.place = places[k];
			c.response = false;
			if (places[k] < sent)
				sim_one_fault(s, &c);
			c.response = true;
			sim_one_fault(s, &c);
		}
		c.by_psn = false;
		for (c.place = 1; c.place <= 5; c.place++) {
			c.response = false;
			sim_one_fault(s, &c);
			c.response = true;
			sim_one_fault(s, &c);
		}
	}
}

static void
packets_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);

	for (unsigned int i = 0; i < sim_fault_num_ops; i++)
		for (unsigned int f = 0; f < COUNT(faults); f++)
			one_op(s, (i + f) & 1, all_ops[i], faults[f], 1);
	sim_close(s);
}
SIM_TEST(packets)

/* The retransmissions of the packet are also hit, three times. */
static void
repeated_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);

	for (unsigned int i = 0; i < sim_fault_num_ops; i++)
		for (unsigned int f = 0; f < COUNT(faults); f++)
			one_op(s, (i + f) & 1, all_ops[i], faults[f], 3);
	sim_close(s);
}
SIM_TEST(repeated)

/* Each kind of acknowledgement and response, by opcode. */
static void
responses_in(const struct sim_config *cfg)
{
	static const uint8_t opcodes[] = {HCA_BTH_RC_READ_RESP_FIRST,
					  HCA_BTH_RC_READ_RESP_MIDDLE,
					  HCA_BTH_RC_READ_RESP_LAST,
					  HCA_BTH_RC_READ_RESP_ONLY,
					  HCA_BTH_RC_ACK,
					  HCA_BTH_RC_ATOMIC_ACK};
	const struct sim_pair_attr attr = {.mtu = SOFTHCA_MTU_256, .region = 65536};
	struct sim *s = sim_open(cfg);

	for (unsigned int o = 0; o < COUNT(opcodes); o++) {
		for (unsigned int f = 0; f < COUNT(faults); f++) {
			const struct hca_fault_rule rule = {
				.opcode = opcodes[o],
				.psn = HCA_FAULT_ANY,
				.nth = 1,
				.count = 2,
				.fault = faults[f],
				.arg = faults[f] == HCA_FAULT_DELAY ? 50000 : 0,
			};
			struct sim_pair *p = sim_pair_open(s, &attr);
			uint64_t before = sim_faults(s);

			sim_clear_rules(s);
			sim_rule(s, 1, rule);
			for (unsigned int i = sim_fault_num_ops; i-- > 0;) {
				const struct sim_req r[] = {
					{.opcode = all_ops[i], .len = 1000, .flags = S},
					{.opcode = all_ops[i], .len = 20, .flags = S},
				};

				sim_check(s, sim_post(p, 0, r, 2) == 0, "post");
			}
			sim_finish(s, 10 * SIM_S);
			sim_check(s, hits(s, 1) != 0, "opcode %#x was never sent", opcodes[o]);
			sim_check(s, faults[f] == HCA_FAULT_ECN || sim_faults(s) > before,
				  "fault %u of %#x was not made", faults[f], opcodes[o]);
			sim_clear_rules(s);
			sim_pair_close(p);
		}
	}
	sim_close(s);
}
SIM_TEST(responses)

/* --- receiver not ready -------------------- */

static void
rnr_in(const struct sim_config *cfg)
{
	/* code 14: 1.28 ms */
	const struct sim_pair_attr attr = {.min_rnr_timer = 14};
	const struct sim_req r[] = {
		{.opcode = SOFTHCA_WR_RDMA_WRITE, .len = 50, .flags = S},
		{.opcode = SOFTHCA_WR_SEND, .len = 5000, .flags = S, .no_recv = true},
		{.opcode = SOFTHCA_WR_SEND_WITH_IMM, .len = 70, .flags = S, .no_recv = true},
		{.opcode = SOFTHCA_WR_RDMA_WRITE_WITH_IMM, .len = 70, .flags = S, .no_recv = true},
		{.opcode = SOFTHCA_WR_RDMA_READ, .len = 3000, .flags = S},
	};
	struct sim *s = sim_open(cfg);
	struct sim_pair *p = sim_pair_open(s, &attr);
	uint64_t naks;

	p->hold_recvs = true;
	sim_check(s, sim_post(p, 0, r, COUNT(r)) == 0, "post");
	for (unsigned int i = 0; i < 3; i++) {
		sim_run_for(s, 20000000);
		sim_reap(s);
		naks = sim_counter(s, 1, "rnr_nak_sent");
		sim_check(s, naks >= 8 * (i + 1) && naks <= 16 * (i + 1),
			  "%llu RNR NAKs in %u times 20 ms of 1.28 ms each",
			  (unsigned long long)naks, i + 1);
		sim_check(s, p->unmatched_send[0].n == 3 - i, "messages without a receive");
		sim_check(s, sim_post_recv(p, 1, p->unmatched_send[0].head->len + i, 2) == 0,
			  "post_recv");
	}
	sim_finish(s, SIM_S);
	sim_pair_close(p);
	sim_close(s);
}
SIM_TEST(rnr)

static void
rnr_exceeded_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);

	for (uint32_t n = 0; n < 7; n += 2) {
		const struct sim_pair_attr attr = {.min_rnr_timer = 10,
						   .rnr_retry = n,
						   .no_rnr_retry = n == 0};
		const struct sim_req r[] = {
			{.opcode = SOFTHCA_WR_RDMA_WRITE, .len = 50, .flags = S},
			{.opcode = SOFTHCA_WR_RDMA_WRITE, .len = 50},
			{.opcode = SOFTHCA_WR_SEND, .len = 500, .no_recv = true},
			{.opcode = SOFTHCA_WR_RDMA_READ, .len = 500},
			{.opcode = SOFTHCA_WR_RDMA_WRITE, .len = 500, .flags = S},
		};
		struct sim_pair *p = sim_pair_open(s, &attr);
		uint64_t naks = sim_counter(s, 1, "rnr_nak_sent"), start = s->now;

		p->hold_recvs = true;
		sim_check(s, sim_post(p, 0, r, COUNT(r)) == 0, "post");
		sim_expect_sq_error(p, 0, 2, SOFTHCA_WC_RNR_RETRY_EXC_ERR, false);
		sim_finish(s, 10 * SIM_S);
		naks = sim_counter(s, 1, "rnr_nak_sent") - naks;
		sim_check(s, naks == n + 1, "%llu RNR NAKs with rnr_retry %u",
			  (unsigned long long)naks, n);
		sim_check(s, s->now - start >= n * 320000ull, "retried too early");
		sim_pair_close(p);
	}
	sim_close(s);
}
SIM_TEST(rnr_exceeded)

/* --- timeouts -------------------- */

/*
 * No packets (or no acknowledgements) arrive: the configured retries, then the error, and the rest
 * is flushed.
 */
static void
exhausted(const struct sim_config *cfg, unsigned int deaf, uint32_t retries)
{
	const struct hca_impair all = {.drop = 1};
	const struct sim_pair_attr attr = {.retry_cnt = retries,
					   .no_retry = retries == 0,
					   .timeout = 8};
	struct sim_req r[12];
	struct sim *s = sim_open(cfg);
	struct sim_pair *p = sim_pair_open(s, &attr);
	uint64_t start, timeouts;

	for (unsigned int i = 0; i < COUNT(r); i++)
		r[i] = (struct sim_req){.opcode = all_ops[i % 5],
					.len = 100 * i,
					.flags = i % 3 != 0 ? S : 0};
	sim_impair(s, deaf, &all);
	start = s->now;
	sim_check(s, sim_post(p, 0, r, COUNT(r)) == 0, "post");
	sim_expect_sq_error(p, 0, p->sq[0].head->wr_id, SOFTHCA_WC_RETRY_EXC_ERR, deaf == 1);
	if (deaf == 1)
		sim_check(s, sim_drain(s, 10 * SIM_S), "not finished");
	else
		sim_finish(s, 10 * SIM_S);
	timeouts = sim_counter(s, 0, "local_ack_timeout_err");
	sim_check(s, timeouts == retries + 1, "%llu timeouts with retry_cnt %u",
		  (unsigned long long)timeouts, retries);
	sim_check(s, s->now - start >= (retries + 1) * (4096ull << 8), "timed out too early");
	sim_check(s, sim_counter(s, 0, "req_transport_retries_exceeded") == 1, "not counted");
	sim_impair(s, deaf, NULL);
	sim_settle(s);
	sim_pair_reset(p);
	sim_check(s, sim_post(p, 0, r, COUNT(r)) == 0, "post after the reset");
	sim_finish(s, SIM_S);
	sim_pair_close(p);
	sim_close(s);
}

static void
timeouts_in(const struct sim_config *cfg)
{
	for (uint32_t n = 0; n <= 7; n += 7) {
		exhausted(cfg, 0, n);
		exhausted(cfg, 1, n);
	}
}
SIM_TEST(timeouts)

/* Timeout 0: a loss is detected only by later packets. */
static void
no_timeout_in(const struct sim_config *cfg)
{
	const struct sim_pair_attr attr = {.no_timeout = true};
	const struct hca_fault_rule rule = {.opcode = HCA_FAULT_ANY,
					    .psn = HCA_FAULT_ANY,
					    .nth = 1,
					    .count = 1,
					    .fault = HCA_FAULT_DROP};
	const struct sim_req r = {.opcode = SOFTHCA_WR_RDMA_WRITE, .len = 50, .flags = S};
	struct sim *s = sim_open(cfg);
	struct sim_pair *p = sim_pair_open(s, &attr);

	sim_rule(s, 0, rule);
	sim_check(s, sim_post(p, 0, &r, 1) == 0, "post");
	sim_run_for(s, 3 * SIM_S);
	sim_check(s, sim_reap(s) == 0, "completed although it was lost");
	sim_check(s, sim_post(p, 0, &r, 1) == 0, "post");
	sim_finish(s, SIM_S);
	sim_check(s, sim_counter(s, 0, "packet_seq_err") == 1, "no sequence NAK");
	sim_pair_close(p);
	sim_close(s);
}
SIM_TEST(no_timeout)

/* --- refused requests -------------------- */

struct refused {
	const char *what;
	uint32_t opcode;
	uint32_t status; /* of the requester */
	int64_t va;	 /* added to the remote address; far beyond the end of the region */
	uint32_t rkey;	 /* flipped */
	uint32_t len;
	uint32_t lkey;	   /* flipped */
	uint32_t recv_len; /* SENDs: of the receive */
	uint32_t recv_status;
	uint32_t recv_lkey; /* flipped */
	bool local;	    /* local error, which the peer does not see */
};

#define FAR (1 << 20)

static const struct refused refused[] = {
	{"WRITE rkey", SOFTHCA_WR_RDMA_WRITE, SOFTHCA_WC_REM_ACCESS_ERR, .rkey = 1, .len = 100},
	{"WRITE long rkey", SOFTHCA_WR_RDMA_WRITE, SOFTHCA_WC_REM_ACCESS_ERR, .rkey = 0x100,
	 .len = 5000},
	{"WRITE range", SOFTHCA_WR_RDMA_WRITE, SOFTHCA_WC_REM_ACCESS_ERR, .va = FAR - 4999,
	 .len = 5000},
	{"WRITE before", SOFTHCA_WR_RDMA_WRITE, SOFTHCA_WC_REM_ACCESS_ERR, .va = -1, .len = 1},
	{"WRITE imm rkey", SOFTHCA_WR_RDMA_WRITE_WITH_IMM, SOFTHCA_WC_REM_ACCESS_ERR,
	 .rkey = 0x1000000, .len = 64, .recv_len = 1, .recv_status = SOFTHCA_WC_LOC_ACCESS_ERR},
	{"READ rkey", SOFTHCA_WR_RDMA_READ, SOFTHCA_WC_REM_ACCESS_ERR, .rkey = 1, .len = 100},
	{"READ range", SOFTHCA_WR_RDMA_READ, SOFTHCA_WC_REM_ACCESS_ERR, .va = FAR - 8, .len = 9},
	{"atomic rkey", SOFTHCA_WR_ATOMIC_FETCH_AND_ADD, SOFTHCA_WC_REM_ACCESS_ERR, .rkey = 1,
	 .len = 8},
	{"atomic range", SOFTHCA_WR_ATOMIC_CMP_AND_SWP, SOFTHCA_WC_REM_ACCESS_ERR, .va = FAR,
	 .len = 8},
	{"atomic unaligned", SOFTHCA_WR_ATOMIC_FETCH_AND_ADD, SOFTHCA_WC_REM_INV_REQ_ERR, .va = 4,
	 .len = 8},
	{"SEND too long", SOFTHCA_WR_SEND, SOFTHCA_WC_REM_INV_REQ_ERR, .len = 5000,
	 .recv_len = 4999, .recv_status = SOFTHCA_WC_LOC_LEN_ERR},
	{"SEND imm too long", SOFTHCA_WR_SEND_WITH_IMM, SOFTHCA_WC_REM_INV_REQ_ERR, .len = 10,
	 .recv_len = 9, .recv_status = SOFTHCA_WC_LOC_LEN_ERR},
	{"SEND to a bad receive", SOFTHCA_WR_SEND, SOFTHCA_WC_REM_OP_ERR, .len = 100,
	 .recv_len = 100, .recv_status = SOFTHCA_WC_LOC_PROT_ERR, .recv_lkey = 1},
	{"WRITE lkey", SOFTHCA_WR_RDMA_WRITE, SOFTHCA_WC_LOC_PROT_ERR, .lkey = 1, .len = 100,
	 .local = true},
	{"SEND lkey", SOFTHCA_WR_SEND, SOFTHCA_WC_LOC_PROT_ERR, .lkey = 1, .len = 5000,
	 .recv_len = 5000, .local = true},
	{"READ lkey", SOFTHCA_WR_RDMA_READ, SOFTHCA_WC_LOC_PROT_ERR, .lkey = 0x200, .len = 3000,
	 .local = true},
	{"atomic lkey", SOFTHCA_WR_ATOMIC_FETCH_AND_ADD, SOFTHCA_WC_LOC_PROT_ERR, .lkey = 1,
	 .len = 8, .local = true},
};

static void
post_bad(struct sim_pair *p, const struct refused *c)
{
	struct sim_region *l = &p->region[0], *r = &p->region[1];
	struct softhca_sge sge = {.addr = l->va + l->len / 2,
				  .length = c->len,
				  .lkey = l->mr->lkey ^ c->lkey};
	struct softhca_sge rsge = {.addr = r->va + r->len / 2,
				   .length = c->recv_len,
				   .lkey = r->mr->lkey ^ c->recv_lkey};
	struct softhca_recv_wr rwr = {.sg_list = &rsge, .num_sge = 1};
	struct softhca_send_wr wr = {.sg_list = &sge,
				     .num_sge = 1,
				     .opcode = c->opcode,
				     .send_flags = S};

	if (c->recv_len != 0)
		sim_post_recv_wr(p, 1, &rwr, c->recv_status);
	if (c->opcode >= SOFTHCA_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = r->va + (uint64_t)c->va;
		wr.wr.atomic.rkey = r->mr->rkey ^ c->rkey;
	} else {
		wr.wr.rdma.remote_addr = r->va + (uint64_t)c->va;
		wr.wr.rdma.rkey = r->mr->rkey ^ c->rkey;
	}
	sim_post_wr(p, 0, &wr, c->status);
}

/* Valid requests, the invalid one, valid ones: the first succeed, the last are flushed. */
static void
refused_one(struct sim *s, struct sim_pair *bystander, const struct refused *c)
{
	const struct sim_req before[] = {
		{.opcode = SOFTHCA_WR_RDMA_READ, .len = 3000, .flags = S},
		{.opcode = SOFTHCA_WR_SEND, .len = 30},
		{.opcode = SOFTHCA_WR_RDMA_WRITE, .len = 3000, .flags = S},
	};
	const struct sim_req after[] = {
		{.opcode = SOFTHCA_WR_RDMA_WRITE, .len = 30},
		{.opcode = SOFTHCA_WR_RDMA_READ, .len = 3000, .flags = S},
	};
	struct sim_pair *p = sim_pair_open(s, NULL);
	uint64_t bad_id;
	struct sim_req mixed[8];

	sim_check(s, sim_post(p, 0, before, COUNT(before)) == 0, "post");
	bad_id = p->next_id + (c->recv_len != 0);
	post_bad(p, c);
	sim_check(s, sim_post(p, 0, after, COUNT(after)) == 0, "post");
	sim_expect_sq_error(p, 0, bad_id, c->status, false);
	for (unsigned int i = 0; i < COUNT(mixed); i++)
		mixed[i] = sim_random_req(bystander, 5000);
	sim_check(s, sim_post(bystander, 0, mixed, COUNT(mixed)) == 0, "post");
	if (!sim_drain(s, 10 * SIM_S) || c->local)
		sim_check(s, c->local && p->sq[0].n == 0, "%s: not finished", c->what);
	sim_settle(s);
	sim_reap(s);
	sim_check(s, p->sq[0].n == 0, "%s: not finished", c->what);
	sim_pair_close(p);
	sim_finish(s, SIM_S);
}

static void
refused_requests_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	struct sim_pair *bystander = sim_pair_open(s, NULL);

	for (unsigned int i = 0; i < COUNT(refused); i++) {
		if (sim_env("SIM_VERBOSE", 0))
			fprintf(stderr, "%s\n", refused[i].what);
		refused_one(s, bystander, &refused[i]);
	}
	sim_pair_close(bystander);
	sim_close(s);
}
SIM_TEST(refused_requests)

/* --- flushing -------------------- */

static void
to_error(struct sim_pair *p, unsigned int side)
{
	const struct softhca_qp_attr a = {.qp_state = SOFTHCA_QPS_ERR};

	sim_check(p->s, softhca_modify_qp(p->qp[side], &a, SOFTHCA_QP_STATE) == 0, "to ERR");
}

static void
check_state(struct sim_pair *p, unsigned int side, uint32_t state)
{
	struct softhca_qp_attr a;

	sim_check(p->s, softhca_query_qp(p->qp[side], &a, SOFTHCA_QP_STATE, NULL) == 0, "query");
	sim_check(p->s, a.qp_state == state, "state %s, not %s", softhca_qp_state_str(a.qp_state),
		  softhca_qp_state_str(state));
}

/* All requests posted before and after the move to ERR are flushed, in order, on both queues. */
static void
flush_in(const struct sim_config *cfg)
{
	const struct hca_impair deaf = {.drop = 1};
	struct sim *s = sim_open(cfg);

	for (unsigned int wait = 0; wait < 4; wait++) {
		struct sim_pair *p = sim_pair_open(s, NULL);
		struct sim_req r[20];

		for (unsigned int i = 0; i < COUNT(r); i++)
			r[i] = (struct sim_req){.opcode = all_ops[i % sim_fault_num_ops],
						.len = 700 * i,
						.flags = i % 4 != 0 ? S : 0};
		sim_impair(s, 0, &deaf);
		sim_check(s, sim_post(p, 0, r, COUNT(r)) == 0, "post");
		sim_run_for(s, wait * 3000);
		sim_expect_sq_error(p, 0, p->sq[0].head->wr_id, SOFTHCA_WC_WR_FLUSH_ERR, false);
		to_error(p, 0);
		sim_check(s, sim_post(p, 0, r, 5) == 0, "post in ERR");
		sim_expect_sq_error(p, 0, p->sq[0].head->wr_id, SOFTHCA_WC_WR_FLUSH_ERR, false);
		to_error(p, 1);
		sim_check(s, sim_post_recv(p, 1, 100, 2) == 0, "post_recv in ERR");
		sim_expect_rq_flush(p, 1, SOFTHCA_WC_WR_FLUSH_ERR);
		sim_finish(s, SIM_S);
		/* no request is left to flush; new requests are also flushed */
		sim_check(s, sim_post_recv(p, 1, 100, 2) == 0, "post_recv in ERR");
		sim_expect_rq_flush(p, 1, SOFTHCA_WC_WR_FLUSH_ERR);
		sim_finish(s, SIM_S);
		check_state(p, 0, SOFTHCA_QPS_ERR);
		check_state(p, 1, SOFTHCA_QPS_ERR);
		sim_impair(s, 0, NULL);
		sim_pair_reset(p);
		sim_check(s, sim_post(p, 0, r, COUNT(r)) == 0, "post after the reset");
		sim_finish(s, SIM_S);
		sim_pair_close(p);
	}
	sim_close(s);
}
SIM_TEST(flush)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets),	cmocka_unit_test(repeated),
		cmocka_unit_test(responses),	cmocka_unit_test(rnr),
		cmocka_unit_test(rnr_exceeded), cmocka_unit_test(timeouts),
		cmocka_unit_test(no_timeout),	cmocka_unit_test(refused_requests),
		cmocka_unit_test(flush),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
