/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Order of visible effects, over eight paths and with losses: a notify and an immediate never
 * before their data, a request with strong order never before the ordered ones in front of it.
 * SIM_ROUNDS: rounds of each, in each layout.
 */

#include "ub_pair.h"

#define PROGRAM "sim-ub-litmus"

#define SLOTS 16u
#define SLOT (UB_PAIR_PART / SLOTS)
#define BYTES 5000u
#define FLAG (SLOT - 8u) /* in a slot: the notify, or the request with strong order */

static struct ub_pair pair;

static void
open_lossy(struct ub_pair *p, const struct sim_config *cfg)
{
	struct ub_pair_config c = {.sim = *cfg,
				   .tps = 2,
				   .small_mtu = true,
				   .flags = HCA_TP_FLAG_SPRAY,
				   .reorder = 20,
				   .min_rnr_timer = 2,
				   .err_timeout = 24,
				   .retries = 15,
				   .rto_base = 100};
	static const struct hca_impair bad = {.drop = 0.001, .reorder = 0.2, .reorder_ns = 15000};

	ub_pair_open(p, &c);
	for (unsigned int i = 0; i < 2; i++)
		sim_impair(p->s, i, &bad);
}

static void
close_lossy(struct ub_pair *p)
{
	for (unsigned int i = 0; i < 2; i++)
		sim_impair(p->s, i, NULL);
	ub_pair_close(p);
}

/* The words of a slot of side 0 are the round's number. */
static void
fill(struct ub_pair *p, uint64_t round)
{
	uint8_t *at = p->side[0].mem + UB_PAIR_FROM + round % SLOTS * SLOT;

	for (uint32_t i = 0; i < BYTES; i += 8)
		memcpy(at + i, &round, 8);
	memcpy(at + FLAG, &round, 8);
}

static uint64_t
seen(struct ub_pair *p, uint64_t round, uint32_t at)
{
	uint64_t v;

	memcpy(&v, p->side[1].mem + UB_PAIR_TO + round % SLOTS * SLOT + at, sizeof(v));
	return v;
}

/* All of the round's data is there. */
static void
check(struct ub_pair *p, uint64_t round)
{
	for (uint32_t i = 0; i < BYTES; i += 8)
		sim_check(p->s, seen(p, round, i) == round, "round %lu: byte %u is of round %lu",
			  (unsigned long)round, i, (unsigned long)seen(p, round, i));
}

static void
post_notify(struct ub_pair *p, uint64_t round)
{
	uint32_t at = (uint32_t)(round % SLOTS) * SLOT;
	urma_sge_t own = ub_pair_local(p, 0, UB_PAIR_FROM + at, BYTES);
	urma_sge_t dst[2] = {ub_pair_remote(p, 0, UB_PAIR_TO + at, BYTES),
			     ub_pair_remote(p, 0, UB_PAIR_TO + at + FLAG, 8)};
	urma_jfs_wr_t wr = ub_pair_request(p, 0, URMA_OPC_WRITE_NOTIFY, round);

	wr.rw.src = (urma_sg_t){&own, 1};
	wr.rw.dst = (urma_sg_t){dst, 2};
	wr.rw.notify_data = round;
	ub_pair_post(p, 0, &wr);
}

static void
post_immediate(struct ub_pair *p, uint64_t round)
{
	uint32_t at = (uint32_t)(round % SLOTS) * SLOT;

	ub_pair_recv(p, 1, false, UB_PAIR_RECV, 8, round);
	ub_pair_rw(p, 0, URMA_OPC_WRITE_IMM, UB_PAIR_FROM + at, UB_PAIR_TO + at, BYTES, round);
}

/* Data with relaxed order, then the flag with strong order. */
static void
post_strong(struct ub_pair *p, uint64_t round)
{
	uint32_t at = (uint32_t)(round % SLOTS) * SLOT;

	ub_pair_ordered(p, 0, URMA_OPC_WRITE, UB_PAIR_FROM + at, UB_PAIR_TO + at, BYTES,
			HCA_UB_ODR_RELAXED, round);
	ub_pair_ordered(p, 0, URMA_OPC_WRITE, UB_PAIR_FROM + at + FLAG, UB_PAIR_TO + at + FLAG, 8,
			HCA_UB_ODR_STRONG, round);
}

/* Rounds whose flag has come, looked for after each loop. */
static void
look_at_flags(struct ub_pair *p, uint64_t first, uint64_t last)
{
	for (uint64_t round = first; round <= last; round++)
		if (seen(p, round, FLAG) == round)
			check(p, round);
}

static void
look_at_receives(struct ub_pair *p, uint64_t first, uint64_t last)
{
	urma_cr_t cr;

	(void)first;
	while (urma_poll_jfc(p->side[1].recv_jfc, 1, &cr) == 1) {
		sim_check(p->s, cr.status == URMA_CR_SUCCESS && cr.imm_data <= last,
			  "receive of %lu", (unsigned long)cr.imm_data);
		check(p, cr.imm_data);
	}
}

/* Requests of a slot follow each other: half of the slots are in use at a time. */
static void
rounds(const struct sim_config *cfg, void (*post)(struct ub_pair *p, uint64_t round),
       void (*look)(struct ub_pair *p, uint64_t first, uint64_t last), uint32_t requests)
{
	uint64_t n = sim_env("SIM_ROUNDS", 300), posted = 0, done = 0;
	struct ub_pair *p = &pair;
	urma_cr_t cr;

	open_lossy(p, cfg);
	while (done < requests * n) {
		while (posted < n && posted - done / requests < SLOTS / 2) {
			fill(p, ++posted);
			post(p, posted);
		}
		sim_poll(p->s);
		look(p, done / requests + 1, posted);
		while (urma_poll_jfc(p->side[0].send_jfc, 1, &cr) == 1) {
			UB_PAIR_EQ(p, cr.status, URMA_CR_SUCCESS);
			UB_PAIR_EQ(p, cr.user_ctx, done / requests + 1);
			done++;
		}
	}
	look(p, n, n);
	close_lossy(p);
}

static void
notify_in(const struct sim_config *cfg)
{
	rounds(cfg, post_notify, look_at_flags, 1);
}

static void
immediate_in(const struct sim_config *cfg)
{
	rounds(cfg, post_immediate, look_at_receives, 1);
}

static void
strong_in(const struct sim_config *cfg)
{
	rounds(cfg, post_strong, look_at_flags, 2);
}

SIM_TEST(notify)
SIM_TEST(immediate)
SIM_TEST(strong)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(notify),
		cmocka_unit_test(immediate),
		cmocka_unit_test(strong),
	};

	return sim_main_of(tests, RTE_DIM(tests));
}
