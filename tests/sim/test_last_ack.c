/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A program has seen the completion of a receive and takes its QP away while the ACK waits for a
 * port that takes nothing at the moment: the request of the peer completes all the same.
 */

#include "sim_duo.h"
#include "sim_test.h"

#define PROGRAM "test_last_ack"
#define MS 1000000ull
#define FLOOD 16u /* READs of 64 KiB, whose responses are more than encap keeps for the port */
#define ROUNDS 12u

enum way {
	DESTROYED,
	RESET,
	WAYS
};

static unsigned int
reap(struct sim *s, struct softhca_cq *cq)
{
	unsigned int errors = 0, n = sim_cq_drain(cq, &errors);

	sim_check(s, errors == 0, "%u of %u completions are errors", errors, n);
	return n;
}

static void
take_away(struct sim *s, struct sim_duo *d, enum way way)
{
	const struct softhca_qp_attr a = {.qp_state = SOFTHCA_QPS_RESET};
	int rc = way == DESTROYED ? softhca_destroy_qp(d->qp[1])
				  : softhca_modify_qp(d->qp[1], &a, SOFTHCA_QP_STATE);

	sim_check(s, rc == 0, "the QP stays: %d", rc);
}

static void
close_rest(struct sim *s, struct sim_duo *d, enum way way)
{
	for (unsigned int i = 0; i < 2; i++) {
		if (i == 0 || way != DESTROYED)
			sim_check(s, softhca_destroy_qp(d->qp[i]) == 0, "destroy_qp");
		sim_check(s, softhca_dereg_mr(d->mr[i]) == 0, "dereg_mr");
		sim_check(s, softhca_destroy_cq(d->own[i]) == 0, "destroy_cq");
		free(d->buf[i]);
	}
}

/* Poll until a completion is there, no longer than that; what side 1 answers beside it goes on. */
static bool
await(struct sim *s, struct softhca_cq *cq, struct sim_duo *flood, uint64_t ns)
{
	uint64_t end = s->now + ns;

	while (reap(s, cq) == 0) {
		unsigned int n = reap(s, flood->own[0]);

		if (s->now >= end)
			return false;
		sim_duo_post(flood, 0, SOFTHCA_WR_RDMA_READ, 65536, n, 0);
		sim_poll(s);
	}
	return true;
}

/* Returns whether the ACK was not sent when the QP was taken away. */
static bool
one_message(struct sim *s, struct sim_duo *flood, enum way way)
{
	struct sim_duo d = {.depth = 8};
	bool waits;

	sim_duo_open(s, &d);
	sim_duo_recv(&d, 1, 3000, 1);
	sim_duo_post(&d, 0, SOFTHCA_WR_SEND, 3000, 1, 0);
	sim_check(s, await(s, d.own[1], flood, 100 * MS), "the message does not arrive");
	waits = reap(s, d.own[0]) == 0;
	take_away(s, &d, way);
	sim_check(s, !waits || await(s, d.own[0], flood, 20 * MS), "the peer gets no ACK");
	close_rest(s, &d, way);
	return waits;
}

/* A port that takes frames for 1 ms, and then none for 7. */
static void
taken_away_in(const struct sim_config *cfg)
{
	const struct hca_port_stall_rules stalls = {.stall_every = 8 * MS, .stall_for = 7 * MS};

	for (enum way way = 0; way < WAYS; way++) {
		struct sim *s = sim_open(cfg);
		struct sim_duo flood = {.depth = 64};
		unsigned int waited = 0;

		sim_duo_open(s, &flood);
		hca_port_stall_set(s->side[1].stall, &stalls);
		sim_duo_post(&flood, 0, SOFTHCA_WR_RDMA_READ, 65536, FLOOD, 0);
		sim_run_for(s, MS);
		for (unsigned int k = 0; k < ROUNDS; k++)
			waited += one_message(s, &flood, way);
		sim_check(s, waited != 0, "no ACK had to wait");
		sim_duo_close(&flood);
		sim_close(s);
	}
}
SIM_TEST(taken_away)

/* A port that takes nothing at all holds up nobody for long, and many no longer than one. */
static void
dead_port_in(const struct sim_config *cfg)
{
	const struct hca_port_stall_rules dead = {.stall_every = 10 * SIM_S,
						  .stall_for = 10 * SIM_S - 1000};
	struct sim *s = sim_open(cfg);
	struct sim_duo flood = {.depth = 64}, d[8] = {{0}};
	uint64_t from;

	sim_duo_open(s, &flood);
	for (unsigned int i = 0; i < 8; i++)
		sim_duo_open(s, &d[i]);
	hca_port_stall_set(s->side[1].stall, &dead);
	sim_duo_post(&flood, 0, SOFTHCA_WR_RDMA_READ, 65536, FLOOD, 0);
	sim_run_for(s, MS);
	for (unsigned int i = 0; i < 8; i++)
		sim_duo_send(&d[i], 0, 1, 0);
	sim_run_for(s, MS);
	from = s->now;
	for (unsigned int i = 0; i < 8; i++)
		sim_check(s, softhca_destroy_qp(d[i].qp[1]) == 0, "destroy_qp");
	sim_check(s, s->now - from < 80 * MS, "the port held up who destroys a QP for %llu us",
		  (unsigned long long)(s->now - from) / 1000);
	for (unsigned int i = 0; i < 8; i++)
		close_rest(s, &d[i], DESTROYED);
	hca_port_stall_set(s->side[1].stall, &(struct hca_port_stall_rules){0});
	sim_duo_close(&flood);
	sim_close(s);
}
SIM_TEST(dead_port)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(taken_away),
		cmocka_unit_test(dead_port),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
