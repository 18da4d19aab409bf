/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A peer with arbitrary answers: every kind of response with every syndrome, at, before and after
 * the expected PSN. The requester continues, or goes to ERR with a corresponding completion; it
 * never stores a byte outside its SGE, completes twice, or hangs.
 */

#include "sim_test.h"
#include "sim_victim.h"

#define PROGRAM "test_answers"
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define SGE_AT 8192u

static const uint8_t answers[] = {
	HCA_BTH_RC_READ_RESP_FIRST,
	HCA_BTH_RC_READ_RESP_MIDDLE,
	HCA_BTH_RC_READ_RESP_LAST,
	HCA_BTH_RC_READ_RESP_ONLY,
	HCA_BTH_RC_ACK,
	HCA_BTH_RC_ATOMIC_ACK,
};

static const struct {
	uint32_t opcode, len, packets;
} requests[] = {
	{SOFTHCA_WR_RDMA_WRITE, 64, 1},	 {SOFTHCA_WR_RDMA_WRITE, 3000, 3},
	{SOFTHCA_WR_SEND, 64, 1},	 {SOFTHCA_WR_RDMA_READ, 64, 1},
	{SOFTHCA_WR_RDMA_READ, 3000, 3}, {SOFTHCA_WR_ATOMIC_FETCH_AND_ADD, 8, 1},
};

static void
request(struct sim_victim *v, unsigned int which)
{
	struct softhca_sge sge = {(uintptr_t)v->mem + SGE_AT, requests[which].len, v->mr->lkey};
	struct softhca_send_wr wr = {.wr_id = which,
				     .sg_list = &sge,
				     .num_sge = 1,
				     .opcode = requests[which].opcode,
				     .send_flags = SOFTHCA_SEND_SIGNALED};
	struct softhca_send_wr *bad;

	if (wr.opcode == SOFTHCA_WR_ATOMIC_FETCH_AND_ADD)
		wr.wr.atomic.remote_addr = 0x1000;
	else
		wr.wr.rdma.remote_addr = 0x1000;
	sim_check(v->s, softhca_post_send(v->qp, &wr, &bad) == 0, "post_send");
}

/* The request has left: an answer before that would be stale. */
static void
send(struct sim_victim *v, unsigned int which)
{
	uint64_t before = sim_counter(v->s, 1, "sent_pkts");

	request(v, which);
	for (unsigned int k = 0; sim_counter(v->s, 1, "sent_pkts") == before; k++) {
		sim_check(v->s, k < 1000000, "the request is not sent");
		sim_poll(v->s);
	}
}

/* Memory outside the SGE is unchanged; all memory is, if the request is not a READ. */
static void
check_memory(struct sim_victim *v, unsigned int which)
{
	bool in = requests[which].opcode == SOFTHCA_WR_RDMA_READ ||
		  requests[which].opcode == SOFTHCA_WR_ATOMIC_FETCH_AND_ADD;
	uint32_t len = in ? requests[which].len : 0;

	sim_victim_check(v, false);
	for (uint32_t i = 0; i < SIM_VICTIM_BYTES; i++)
		if (i < SGE_AT || i >= SGE_AT + len)
			sim_check(v->s, v->mem[i] == 0x96, "request %u: byte %u was written", which,
				  i);
}

static void
check_end(struct sim_victim *v, unsigned int which, uint8_t opcode, uint8_t syndrome)
{
	uint32_t state = sim_victim_state(v);
	unsigned int done = 0, failed = 0;
	struct softhca_wc wc;

	while (softhca_poll_cq(v->cq, 1, &wc) == 1) {
		if (wc.opcode & SOFTHCA_WC_RECV)
			continue;
		done++;
		failed += wc.status != SOFTHCA_WC_SUCCESS;
	}
	sim_check(v->s, done <= 1, "request %u completed %u times", which, done);
	sim_check(v->s, state == SOFTHCA_QPS_RTS || state == SOFTHCA_QPS_ERR,
		  "request %u, answer %#x/%#x: in %s", which, opcode, syndrome,
		  softhca_qp_state_str(state));
	sim_check(v->s, failed == (state == SOFTHCA_QPS_ERR),
		  "request %u, answer %#x/%#x: in %s with %u failed of %u", which, opcode, syndrome,
		  softhca_qp_state_str(state), failed, done);
}

static void
one(struct sim_injector *x, struct sim_victim *v, struct sim_rng *r)
{
	unsigned int which = sim_below(r, COUNT(requests));
	uint8_t opcode = answers[sim_below(r, COUNT(answers))];
	uint8_t syndrome = (uint8_t)sim_random(r);
	uint32_t psn = SIM_VICTIM_SQ_PSN + sim_below(r, requests[which].packets + 2) - 1;
	/* Correct payload lengths and others. */
	static const uint32_t lens[] = {0, 1, 8, 64, 65, 952, 1000, 1024, 1028, 2048, 4096};
	uint32_t len = lens[sim_below(r, COUNT(lens))];
	const struct roce_headers h = {
		.aeth = {.syndrome = syndrome, .msn = (uint32_t)sim_random(r) & 0xffffff},
		.original = sim_random(r),
	};
	uint8_t op = v->kind == SIM_VICTIM_RC ? opcode : (uint8_t)(HCA_TRANSPORT_XRC << 5 | opcode);

	sim_victim_to(v, SOFTHCA_QPS_RTS);
	request(v, which);
	sim_run_for(v->s, 5000);
	for (unsigned int i = 1 + sim_below(r, 3); i > 0; i--)
		sim_inject_whole(x, &v->path, op, psn + (i & 1), false, &h,
				 hca_roce_opcodes[op].has_payload ? len : 0);
	/* shorter than an ACK timeout, longer than the handling of a response */
	sim_run_for(v->s, 100000);
	check_memory(v, which);
	check_end(v, which, opcode, syndrome);
}

static void
any_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	struct sim_rng r = {cfg->seed * 29 + cfg->layout};
	unsigned int cases = (unsigned int)sim_env("SIM_CASES", 1200);
	struct sim_injector x;

	sim_injector_open(s, &x);
	for (unsigned int i = 0; i < 2; i++) {
		struct sim_victim v;

		sim_victim_open(s, &v, i ? SIM_VICTIM_XRC_INI : SIM_VICTIM_RC,
				i ? SIM_GID_V6 : SIM_GID_V4);
		for (unsigned int n = 0; n < cases; n++)
			one(&x, &v, &r);
		sim_victim_close(&v);
	}
	/* at least one must have completed, or nothing was tested */
	sim_check(s,
		  sim_counter(s, 1, "req_bad_response") > 10 &&
			  sim_counter(s, 1, "req_cqe_error") > 10 &&
			  sim_counter(s, 1, "req_completions") > 10 &&
			  sim_counter(s, 1, "req_stale_response") > 10,
		  "too little happened");
	sim_injector_close(&x);
	sim_close(s);
}
SIM_TEST(any)

/* --- NAKs of each kind -------------------- */

/* Effect of each syndrome on a SEND and on the QP. */
static const struct {
	uint8_t syndrome;
	uint32_t status; /* SUCCESS: it completes, sooner or later */
} verdicts[] = {
	{0x60, SOFTHCA_WC_SUCCESS}, /* PSN sequence: retransmitted */
	{0x61, SOFTHCA_WC_REM_INV_REQ_ERR}, {0x62, SOFTHCA_WC_REM_ACCESS_ERR},
	{0x63, SOFTHCA_WC_REM_OP_ERR},	    {0x21, SOFTHCA_WC_SUCCESS}, /* RNR: waits */
	{0x64, SOFTHCA_WC_SUCCESS}, /* of RD, or reserved: no answer */
	{0x65, SOFTHCA_WC_SUCCESS},	    {0x7f, SOFTHCA_WC_SUCCESS},
	{0x40, SOFTHCA_WC_SUCCESS},	    {0x5f, SOFTHCA_WC_SUCCESS},
};

static void
naks_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	struct sim_injector x;

	sim_injector_open(s, &x);
	for (unsigned int i = 0; i < COUNT(verdicts); i++) {
		struct roce_headers h = {.aeth = {.syndrome = verdicts[i].syndrome, .msn = 1}};
		struct softhca_wc wc;
		struct sim_victim v;

		sim_victim_open(s, &v, SIM_VICTIM_RC, SIM_GID_V4);
		sim_victim_to(&v, SOFTHCA_QPS_RTS);
		send(&v, 2);
		sim_inject_whole(&x, &v.path, HCA_BTH_RC_ACK, SIM_VICTIM_SQ_PSN, false, &h, 0);
		sim_run_for(s, 200000);
		if (verdicts[i].status == SOFTHCA_WC_SUCCESS) {
			sim_check(s, softhca_poll_cq(v.cq, 1, &wc) == 0, "%#x completes",
				  verdicts[i].syndrome);
			sim_check(s, sim_victim_state(&v) == SOFTHCA_QPS_RTS, "not in RTS");
			/* the answer is still awaited */
			h.aeth.syndrome = 0x1f;
			sim_inject_whole(&x, &v.path, HCA_BTH_RC_ACK, SIM_VICTIM_SQ_PSN, false, &h,
					 0);
			sim_run_for(s, 200000);
		}
		sim_check(s, softhca_poll_cq(v.cq, 1, &wc) == 1 && wc.status == verdicts[i].status,
			  "%#x: no completion, or %s", verdicts[i].syndrome,
			  softhca_wc_status_str(wc.status));
		sim_victim_close(&v);
	}
	sim_injector_close(&x);
	sim_close(s);
}
SIM_TEST(naks)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any),
		cmocka_unit_test(naks),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
