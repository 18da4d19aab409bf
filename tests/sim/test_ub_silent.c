/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A peer that acknowledges everything and does not answer the requests of one queue. Its requests
 * fail when their time is up, and another queue on the same channel, for which no place was left,
 * goes on when those places expire; answers that come after all change nothing. The same with a
 * queue that waits without limit, but that its requests complete when they are answered after all.
 */

#include "ub_strict.h"

#include "ub/initiator/ta_initiator.h"

#define PROGRAM "sim-ub-silent"

#define FROM UB_PAIR_FROM
#define TO UB_PAIR_TO
#define RESULT UB_PAIR_READ
#define PLACES 8u
#define MS UB_PAIR_MS
#define TIMEOUT HCA_ACK_TIMEOUT_NS(14) /* 67 ms */
#define LIFE HCA_ACK_TIMEOUT_NS(17)    /* 537 ms: twice the timeouts of this TP are 102 ms */
#define PATIENCE HCA_TAI_OVERDUE_NS

static struct ub_pair pair;
static struct ub_strict peer;

/* A write of the JFS, which is another queue than the Jetty. */
static void
post_other(struct ub_pair *p, uint64_t id)
{
	urma_sge_t own = ub_pair_local(p, 0, FROM, 64), peers = ub_pair_remote(p, 0, TO + 4096, 64);
	urma_jfs_wr_t wr = ub_pair_request(p, 0, URMA_OPC_WRITE, id);

	wr.rw.src = (urma_sg_t){&own, 1};
	wr.rw.dst = (urma_sg_t){&peers, 1};
	sim_check(p->s, urma_post_jfs_wr(p->side[0].jfs, &wr, NULL) == URMA_SUCCESS, "post: %s",
		  softhca_urma_reason());
}

/* Requests of the Jetty that take all places: writes, Reads, atomics, Sends. */
static void
post_all(struct ub_pair *p)
{
	for (uint64_t id = 0; id < PLACES; id += 4) {
		ub_pair_rw(p, 0, URMA_OPC_WRITE, FROM, TO, 3000, id);
		ub_pair_rw(p, 0, URMA_OPC_READ, RESULT, FROM, 3000, id + 1);
		ub_pair_atomic(p, 0, URMA_OPC_FADD, RESULT + 4096, TO + 8192, 8, 1, id + 2);
		ub_pair_send(p, 0, p->side[0].to_jetty, FROM, 3000, id + 3);
	}
}

static const struct hca_tp_tai *
places(struct ub_pair *p)
{
	return &ub_pair_tp(p, 0, 1)->tai;
}

static void
between(struct ub_pair *p, uint64_t took, uint64_t least, uint64_t most)
{
	sim_check(p->s, took >= least && took <= most, "took %lu us, not %lu to %lu",
		  (unsigned long)took / 1000, (unsigned long)least / 1000,
		  (unsigned long)most / 1000);
}

static void
silent_peer(struct ub_pair *p, struct ub_strict *x)
{
	uint64_t began = p->s->now;

	x->silent = p->side[0].jetty->jetty_id.id;
	post_all(p);
	post_other(p, 100);
	for (uint64_t id = 0; id < PLACES; id++) {
		ub_pair_done(p, 0, id, URMA_CR_ACK_TIMEOUT_ERR);
		between(p, p->s->now - began, TIMEOUT, TIMEOUT + MS);
	}
	UB_PAIR_EQ(p, places(p)->open_out, PLACES);
	ub_pair_done(p, 0, 100, URMA_CR_SUCCESS);
	between(p, p->s->now - began, TIMEOUT + LIFE, TIMEOUT + 2 * LIFE + MS);
	UB_PAIR_EQ(p, ub_pair_counter(p, 0, HCA_CTR_ub_places_lapsed), PLACES);
	UB_PAIR_EQ(p, places(p)->expired, PLACES);
	UB_PAIR_EQ(p, x->again, 0);
}

/* Answers of requests whose places have expired take no place of others that are open. */
static void
late_answers(struct ub_pair *p, struct ub_strict *x)
{
	memset(p->side[0].mem + RESULT, 0, 8192);
	x->silent = p->side[0].jfs->jfs_id.id;
	for (uint64_t id = 0; id < PLACES + 2; id++)
		post_other(p, id);
	sim_run_for(p->s, MS);
	UB_PAIR_EQ(p, x->kept_n, 2 * PLACES);
	ub_strict_answer(x, PLACES);
	sim_run_for(p->s, MS);
	/* a Read_response of 3000 bytes is three packets of 1024 */
	UB_PAIR_EQ(p, ub_pair_counter(p, 0, HCA_CTR_ub_rsp_late), PLACES + PLACES / 4 * 2);
	UB_PAIR_EQ(p, places(p)->open_out, PLACES);
	UB_PAIR_EQ(p, places(p)->expired, 0);
	for (uint32_t i = 0; i < 8192; i++)
		UB_PAIR_EQ(p, p->side[0].mem[RESULT + i], 0);
	x->silent = 0;
	ub_strict_answer(x, PLACES);
	for (uint64_t id = 0; id < PLACES + 2; id++)
		ub_pair_done(p, 0, id, URMA_CR_SUCCESS);
	UB_PAIR_EQ(p, places(p)->open_out, 0);
}

/* false: stepped, where times are unknown, and so the strict peer is not used */
static bool
begin(const struct sim_config *cfg, uint8_t err_timeout)
{
	struct ub_pair_config c = {.sim = *cfg,
				   .mode = HCA_TP_MODE_SACK,
				   .rule = HCA_TP_RULE_TIME,
				   .small_mtu = true,
				   .requests = PLACES,
				   .err_timeout = err_timeout,
				   .for_ever = err_timeout == 0,
				   .rto_base = 200};

	if (cfg->executor == SIM_STEPPED)
		return false;
	ub_pair_open(&pair, &c);
	ub_strict_open(&peer, &pair);
	return true;
}

static void
end(void)
{
	ub_strict_check(&peer);
	ub_pair_close(&pair);
}

static void
silent_in(const struct sim_config *cfg)
{
	if (!begin(cfg, 14))
		return;
	silent_peer(&pair, &peer);
	late_answers(&pair, &peer);
	end();
}

/* ---- queues that wait ---- */

/*
 * Two turns: requests that wait without a place leave all of them to others, and take them again.
 */
static void
others_go_on(struct ub_pair *p, struct ub_strict *x)
{
	for (unsigned int turn = 0; turn < 2; turn++) {
		uint64_t began = p->s->now;

		post_all(p);
		sim_run_for(p->s, MS / 10);
		post_other(p, 100);
		ub_pair_done(p, 0, 100, URMA_CR_SUCCESS);
		between(p, p->s->now - began, PATIENCE + LIFE, PATIENCE + 2 * LIFE + MS);
		UB_PAIR_EQ(p, ub_pair_counter(p, 0, HCA_CTR_ub_places_lapsed), (turn + 1) * PLACES);
		UB_PAIR_EQ(p, places(p)->open_out, 0);
	}
	ub_pair_nothing(p, 3000 * MS);
	UB_PAIR_EQ(p, x->kept_n, 2 * PLACES);
	UB_PAIR_EQ(p, ub_pair_counter(p, 0, HCA_CTR_ub_requests_timed_out), 0);
}

/* The requests have completed, and each place is there once. */
static void
answered_after_all(struct ub_pair *p, struct ub_strict *x)
{
	memset(p->side[0].mem + RESULT, 0, 3000);
	x->silent = 0;
	ub_strict_answer(x, 2 * PLACES);
	for (unsigned int turn = 0; turn < 2; turn++)
		for (uint64_t id = 0; id < PLACES; id++)
			ub_pair_done(p, 0, id, URMA_CR_SUCCESS);
	ub_pair_same(p, 0, RESULT, FROM, 3000);
	UB_PAIR_EQ(p, places(p)->expired, 0);
	UB_PAIR_EQ(p, places(p)->open_out, 0);
	UB_PAIR_EQ(p, ub_pair_counter(p, 0, HCA_CTR_ub_rsp_late), 0);
	x->silent = p->side[0].jfs->jfs_id.id;
	for (uint64_t id = 0; id < PLACES + 2; id++)
		post_other(p, id);
	sim_run_for(p->s, MS);
	UB_PAIR_EQ(p, x->kept_n, PLACES);
	x->silent = 0;
	ub_strict_answer(x, PLACES);
	for (uint64_t id = 0; id < PLACES + 2; id++)
		ub_pair_done(p, 0, id, URMA_CR_SUCCESS);
}

static void
waits(const struct sim_config *cfg, uint8_t err_timeout)
{
	if (!begin(cfg, err_timeout))
		return;
	peer.silent = pair.side[0].jetty->jetty_id.id;
	others_go_on(&pair, &peer);
	answered_after_all(&pair, &peer);
	end();
}

static void
for_ever_in(const struct sim_config *cfg)
{
	waits(cfg, 0);
}

static void
for_hours_in(const struct sim_config *cfg)
{
	waits(cfg, 31);
}

SIM_TEST(silent)
SIM_TEST(for_ever)
SIM_TEST(for_hours)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(silent),
		cmocka_unit_test(for_ever),
		cmocka_unit_test(for_hours),
	};

	return sim_main_of(tests, RTE_DIM(tests));
}
