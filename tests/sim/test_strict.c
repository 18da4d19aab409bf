/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A peer that acknowledges only requests that ask for it (sim_strict.h), without ack timeouts: a
 * request that does not lead to an acknowledgement never completes. Every operation, alone and in
 * chains, whatever stops the queue after it: its end, a local operation, an error, SQD.
 */

#include "sim_duo.h"
#include "sim_strict.h"
#include "sim_test.h"

#define PROGRAM "test_strict"
#define S SOFTHCA_SEND_SIGNALED
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define DEPTH 64u

struct bench {
	struct sim *s;
	struct sim_strict x;
	struct sim_pair *p;
	struct softhca_mr *mr; /* the region that the window is bound to */
	struct softhca_mw *mw;
	uint8_t *mem;
	bool bound;
};

static void
bench_open(struct bench *b, const struct sim_config *cfg, bool strict)
{
	const struct sim_pair_attr attr = {
		.mtu = SOFTHCA_MTU_4096,
		.sq_depth = DEPTH,
		.rq_depth = DEPTH,
		.region = 8u << 20,
		.no_timeout = strict,
		.psn = {0xfffff0, 0x7ffff0},
	};
	struct sim_side *side;

	*b = (struct bench){.s = sim_open(cfg)};
	side = &b->s->side[0];
	sim_strict_open(b->s, &b->x, strict);
	b->p = sim_pair_open(b->s, &attr);
	b->mem = aligned_alloc(4096, 4096);
	b->mr = softhca_reg_mr(side->pd, b->mem, 4096,
			       SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_MW_BIND);
	b->mw = softhca_alloc_mw(side->pd, SOFTHCA_MW_TYPE_2);
	sim_check(b->s, b->mr != NULL && b->mw != NULL, "window: %s", softhca_last_error(NULL));
}

static void
bench_close(struct bench *b)
{
	sim_check(b->s, softhca_dealloc_mw(b->mw) == 0 && softhca_dereg_mr(b->mr) == 0, "window");
	sim_pair_close(b->p);
	sim_strict_close(&b->x);
	sim_close(b->s);
	free(b->mem);
}

/* LOCAL_INV of a bound window, BIND_MW of an unbound one. */
static void
post_local(struct bench *b)
{
	struct softhca_send_wr wr = {.send_flags = S};

	if (b->bound) {
		wr.opcode = SOFTHCA_WR_LOCAL_INV;
		wr.invalidate_rkey = b->mw->rkey;
	} else {
		b->mw->rkey = softhca_inc_rkey(b->mw->rkey);
		wr.opcode = SOFTHCA_WR_BIND_MW;
		wr.bind_mw.mw = b->mw;
		wr.bind_mw.rkey = b->mw->rkey;
		wr.bind_mw.bind_info = (struct softhca_mw_bind_info){b->mr, (uintptr_t)b->mem, 4096,
								     SOFTHCA_ACCESS_REMOTE_READ};
	}
	b->bound = !b->bound;
	sim_post_wr(b->p, 0, &wr, SOFTHCA_WC_SUCCESS);
}

static void
post_writes(struct bench *b, unsigned int n, uint32_t len, bool last_signalled)
{
	struct sim_req r[DEPTH];

	for (unsigned int i = 0; i < n; i++)
		r[i] = (struct sim_req){.opcode = SOFTHCA_WR_RDMA_WRITE,
					.len = len,
					.nsge = 1,
					.flags = i + 1 == n && last_signalled ? S : 0};
	sim_check(b->s, sim_post(b->p, 0, r, n) == 0, "post");
}

static const unsigned int lengths[] = {7, 8, 26, 40, 47};

static void
check_nothing_again(struct bench *b)
{
	uint64_t again = sim_counter(b->s, 0, "retransmissions"),
		 ask = sim_counter(b->s, 0, "again_ask");

	sim_check(b->s, again == ask, "%llu sent again, %llu of them to ask",
		  (unsigned long long)again, (unsigned long long)ask);
}

/* WRITEs, followed by a request that sends nothing. */
static void
before_local_in(const struct sim_config *cfg)
{
	struct bench b;

	bench_open(&b, cfg, true);
	for (unsigned int i = 0; i < COUNT(lengths); i++)
		for (uint32_t kib = 4; kib <= 40; kib += 4)
			for (unsigned int twice = 0; twice < 2; twice++) {
				post_writes(&b, lengths[i], kib << 10, false);
				post_local(&b);
				sim_finish(b.s, SIM_S);
			}
	check_nothing_again(&b);
	sim_check(b.s, sim_counter(b.s, 0, "again_ask") == 0, "could have been foreseen");
	bench_close(&b);
}
SIM_TEST(before_local)

/* Local operations anywhere in long chains without a fence, in order with the rest. */
static void
among_locals_in(const struct sim_config *cfg)
{
	for (unsigned int strict = 0; strict < 2; strict++) {
		struct sim_rng *rng;
		struct bench b;

		bench_open(&b, cfg, strict);
		rng = &sim_model(b.s)->rng;
		for (unsigned int round = 0; round < 60; round++) {
			unsigned int left = 2 + sim_below(rng, DEPTH - 2);

			while (left > 1) {
				struct sim_req r[DEPTH];
				unsigned int n = 1 + sim_below(rng, left - 1);

				for (unsigned int i = 0; i < n; i++) {
					r[i] = sim_random_req(b.p, 20000);
					r[i].flags &= ~(uint32_t)SOFTHCA_SEND_FENCE;
				}
				sim_check(b.s, sim_post(b.p, 0, r, n) == 0, "post");
				post_local(&b);
				left -= n + 1 < left ? n + 1 : left;
				for (unsigned int k = sim_below(rng, 8); k > 0; k--)
					sim_poll(b.s);
			}
			sim_finish(b.s, SIM_S);
		}
		if (strict)
			check_nothing_again(&b);
		bench_close(&b);
	}
}
SIM_TEST(among_locals)

/*
 * A request that fails locally completes after all before it, which may not have asked for an
 * acknowledgement.
 */
static void
before_error_in(const struct sim_config *cfg)
{
	struct bench b;

	bench_open(&b, cfg, true);
	for (unsigned int i = 0; i < COUNT(lengths) * 10; i++) {
		struct sim_region *l = &b.p->region[0], *r = &b.p->region[1];
		uint32_t len = 4096 * (1 + i % 10);
		struct softhca_sge sge = {l->va + l->len / 2, len, l->mr->lkey ^ 1};
		struct softhca_send_wr wr = {
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = SOFTHCA_WR_RDMA_WRITE,
			.send_flags = S,
			.wr.rdma = {r->va, r->mr->rkey},
		};

		post_writes(&b, lengths[i / 10], len, false);
		sim_post_wr(b.p, 0, &wr, SOFTHCA_WC_LOC_PROT_ERR);
		sim_finish(b.s, SIM_S);
		sim_pair_reset(b.p);
	}
	check_nothing_again(&b);
	bench_close(&b);
}
SIM_TEST(before_error)

static bool
is_drained(struct sim *s, void *arg)
{
	struct softhca_async_event e;

	sim_reap(s);
	if (!sim_async(s->side[0].ctx, &e))
		return false;
	sim_check(s, e.event_type == SOFTHCA_EVENT_SQ_DRAINED, "event %u", e.event_type);
	softhca_ack_async_event(&e);
	return true;
}

/* SQD stops the queue after a request that has not asked. */
static void
before_sqd_in(const struct sim_config *cfg)
{
	struct bench b;

	bench_open(&b, cfg, true);
	for (unsigned int i = 0; i < 60; i++) {
		struct softhca_qp_attr a = {.qp_state = SOFTHCA_QPS_SQD, .en_sqd_async_notify = 1};

		post_writes(&b, 40, 4096 * (1 + i % 5), true);
		for (unsigned int k = i % 12; k > 0; k--)
			sim_poll(b.s);
		sim_check(b.s,
			  softhca_modify_qp(b.p->qp[0], &a,
					    SOFTHCA_QP_STATE | SOFTHCA_QP_EN_SQD_ASYNC_NOTIFY) == 0,
			  "to SQD");
		sim_check(b.s, sim_run_until(b.s, is_drained, &b, SIM_S),
			  "not drained, %u polls after posting", i % 12);
		a.qp_state = SOFTHCA_QPS_RTS;
		sim_check(b.s, softhca_modify_qp(b.p->qp[0], &a, SOFTHCA_QP_STATE) == 0, "to RTS");
		sim_finish(b.s, SIM_S);
	}
	check_nothing_again(&b);
	bench_close(&b);
}
SIM_TEST(before_sqd)

/* Each operation alone; then chains of all, from both sides. */
static void
everything_in(const struct sim_config *cfg)
{
	struct bench b;
	struct sim_rng *rng;

	bench_open(&b, cfg, true);
	rng = &sim_model(b.s)->rng;
	for (uint32_t op = 0; op < SOFTHCA_WR_LOCAL_INV; op++)
		for (uint32_t len = 0; len <= 16384; len = len * 4 + 1) {
			const struct sim_req r = {.opcode = op, .len = len, .flags = S};

			sim_check(b.s, sim_post(b.p, 0, &r, 1) == 0, "post");
			sim_finish(b.s, SIM_S);
		}
	for (unsigned int round = 0; round < 120; round++) {
		struct sim_req r[DEPTH / 2];
		unsigned int n = 1 + sim_below(rng, COUNT(r));

		for (unsigned int i = 0; i < n; i++)
			r[i] = sim_random_req(b.p, 40000);
		sim_check(b.s, sim_post(b.p, round & 1, r, n) == 0, "post");
		if (sim_below(rng, 2) == 0)
			sim_finish(b.s, SIM_S);
		else
			sim_check(b.s, sim_drain(b.s, SIM_S), "not finished");
	}
	sim_finish(b.s, SIM_S);
	check_nothing_again(&b);
	bench_close(&b);
}
SIM_TEST(everything)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(before_local), cmocka_unit_test(among_locals),
		cmocka_unit_test(before_error), cmocka_unit_test(before_sqd),
		cmocka_unit_test(everything),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
