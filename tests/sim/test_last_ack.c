/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A program has seen the completion of a receive and takes its QP away while the ACK waits for a
 * port that takes nothing at the moment: the request of the peer completes all the same.
 */

#include "sim_duo.h"
#include "sim_test.h"

#define PROGRAM "test_last_ack"
#define MS 1000000ull
#define FLOODS 16u /* QPs of side 1 whose requests fill encap's backlog */
#define ROUNDS 8u

struct rig {
	struct sim *s;
	struct sim_duo flood[FLOODS];
	uint64_t free_at; /* when the port of side 1 takes frames again */
};

static void
stall(struct rig *r, uint64_t ns)
{
	const struct hca_port_stall_rules nothing = {.stall_every = 1000 * SIM_S,
						     .stall_for = 1000 * SIM_S - 1};

	hca_port_stall_set(r->s->side[1].stall, &nothing);
	r->free_at = r->s->now + ns;
}

/* At the end of each poll, also while a command is awaited. */
static void
look_at_clock(void *arg)
{
	const struct hca_port_stall_rules none = {0};
	struct rig *r = arg;

	if (r->s->now >= r->free_at)
		hca_port_stall_set(r->s->side[1].stall, &none);
}

static void
open_rig(struct rig *r, const struct sim_config *cfg)
{
	*r = (struct rig){.s = sim_open(cfg), .free_at = UINT64_MAX};
	for (unsigned int i = 0; i < FLOODS; i++)
		sim_duo_open(r->s, &r->flood[i]);
	r->s->watch = look_at_clock;
	r->s->watch_arg = r;
}

static unsigned int
reap(struct sim *s, struct softhca_cq *cq)
{
	unsigned int errors = 0, n = sim_cq_drain(cq, &errors);

	sim_check(s, errors == 0, "%u of %u completions are errors", errors, n);
	return n;
}

static bool
await(struct sim *s, struct softhca_cq *cq, uint64_t ns)
{
	for (uint64_t end = s->now + ns; reap(s, cq) == 0; sim_poll(s))
		if (s->now >= end)
			return false;
	return true;
}

static void
close_rig(struct rig *r)
{
	struct sim *s = r->s;

	r->free_at = 0;
	sim_run_for(s, 20 * MS);
	for (unsigned int i = 0; i < FLOODS; i++) {
		(void)reap(s, r->flood[i].own[1]);
		sim_duo_close(&r->flood[i]);
	}
	sim_close(s);
}

/* The port takes nothing for ns from now on, and there is no room before it. */
static void
stall_and_fill(struct rig *r, uint64_t ns)
{
	for (unsigned int i = 0; i < FLOODS; i++)
		(void)reap(r->s, r->flood[i].own[1]);
	stall(r, ns);
	for (unsigned int i = 0; i < FLOODS; i++)
		sim_duo_post(&r->flood[i], 1, SOFTHCA_WR_RDMA_WRITE, 65536, 1, 0);
	sim_run_for(r->s, MS / 4);
}

static void
take_away(struct sim *s, struct sim_duo *d, bool destroy)
{
	const struct softhca_qp_attr a = {.qp_state = SOFTHCA_QPS_RESET};
	int rc = destroy ? softhca_destroy_qp(d->qp[1])
			 : softhca_modify_qp(d->qp[1], &a, SOFTHCA_QP_STATE);

	sim_check(s, rc == 0, "the QP stays: %d", rc);
}

static void
close_rest(struct sim *s, struct sim_duo *d, bool destroyed)
{
	for (unsigned int i = 0; i < 2; i++) {
		if (i == 0 || !destroyed)
			sim_check(s, softhca_destroy_qp(d->qp[i]) == 0, "destroy_qp");
		sim_check(s, softhca_dereg_mr(d->mr[i]) == 0, "dereg_mr");
		sim_check(s, softhca_destroy_cq(d->own[i]) == 0, "destroy_cq");
		free(d->buf[i]);
	}
}

static void
one_message(struct rig *r, bool destroy)
{
	struct sim_duo d = {.depth = 8};
	struct sim *s = r->s;

	sim_duo_open(s, &d);
	stall_and_fill(r, 2 * MS);
	sim_duo_send(&d, 0, 1, 0);
	sim_check(s, await(s, d.own[1], MS), "the message does not arrive");
	sim_check(s, reap(s, d.own[0]) == 0, "the ACK has not waited");
	take_away(s, &d, destroy);
	sim_check(s, await(s, d.own[0], 10 * MS), "the peer gets no ACK");
	close_rest(s, &d, destroy);
}

static void
taken_away_in(const struct sim_config *cfg)
{
	struct rig r;

	open_rig(&r, cfg);
	for (unsigned int k = 0; k < ROUNDS; k++)
		one_message(&r, k & 1);
	close_rig(&r);
}
SIM_TEST(taken_away)

/*
 * A port that accepts no frame delays a reset only for a limited time, and many resets no longer
 * than one.
 */
static void
long_stall_in(const struct sim_config *cfg)
{
	struct sim_duo d[4] = {{0}};
	struct rig r;
	uint64_t from;

	open_rig(&r, cfg);
	for (unsigned int i = 0; i < 4; i++)
		sim_duo_open(r.s, &d[i]);
	stall_and_fill(&r, SIM_S);
	for (unsigned int i = 0; i < 4; i++)
		sim_duo_send(&d[i], 0, 1, 0);
	sim_run_for(r.s, MS / 4);
	from = r.s->now;
	for (unsigned int i = 0; i < 4; i++)
		take_away(r.s, &d[i], true);
	sim_check(r.s, r.s->now - from < 80 * MS, "destroyed after %llu us",
		  (unsigned long long)(r.s->now - from) / 1000);
	for (unsigned int i = 0; i < 4; i++)
		close_rest(r.s, &d[i], true);
	close_rig(&r);
}
SIM_TEST(long_stall)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(taken_away),
		cmocka_unit_test(long_stall),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
