/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Everything of UB comes and goes under traffic over a bad link: Jettys, their states, segments,
 * channels. Each request completes once and in order, with a status that the end of an object
 * explains; nothing hangs, no object is left, and the remaining ones work.
 */

#include "ub_pair.h"

#define PROGRAM "sim-ub-chaos"

#define USERS 5u
#define SEGMENTS 3u
#define OPEN_MAX 24u
#define SEGMENT (256u << 10)
#define RECEIVE 20000u
#define ID_BITS 40u /* of user_ctx; the user above */
#define COUNTER UB_PAIR_TO

struct user {
	urma_jetty_t *jetty;
	urma_target_jetty_t *to; /* as the peer has it */
	uint64_t posted, done;	 /* ids of this life */
	bool stopped, reset;	 /* in ERROR, in RESET */
};

struct chaos_side {
	struct user user[USERS];
	urma_target_seg_t *seg[SEGMENTS], *imported[SEGMENTS];
	uint64_t adds; /* posted */
	uint64_t ok, failed;
};

struct chaos {
	struct ub_pair p;
	struct chaos_side side[2];
};

static struct chaos chaos;

#define FINE(c, call) \
	sim_check((c)->p.s, (call) == URMA_SUCCESS, #call ": %s", softhca_urma_reason())
#define MADE(c, object) sim_check((c)->p.s, (object) != NULL, #object ": %s", softhca_urma_reason())

/* ---- objects ---- */

static uint32_t
segment_at(uint32_t i)
{
	return UB_PAIR_TO + 4096 + i * (SEGMENT + 4096);
}

static void
make_segment(struct chaos *c, unsigned int side, uint32_t i)
{
	struct chaos_side *cs = &c->side[side];
	urma_token_t token = {sim_below(&c->p.rng, 1u << 30)};
	urma_seg_cfg_t cfg = {.va = (uintptr_t)c->p.side[side].mem + segment_at(i),
			      .len = SEGMENT,
			      .token_value = token,
			      .flag.bs = {.token_policy = URMA_TOKEN_PLAIN_TEXT,
					  .access = URMA_ACCESS_READ | URMA_ACCESS_WRITE |
						    URMA_ACCESS_ATOMIC}};

	cs->seg[i] = urma_register_seg(c->p.side[side].ctx, &cfg);
	MADE(c, cs->seg[i]);
	cs->imported[i] = urma_import_seg(c->p.side[1 - side].ctx, &cs->seg[i]->seg, &token, 0,
					  (urma_import_seg_flag_t){0});
	MADE(c, cs->imported[i]);
}

/* The peer detects it at its next request; its import stays until the next one. */
static void
drop_segment(struct chaos *c, unsigned int side, uint32_t i)
{
	FINE(c, urma_unregister_seg(c->side[side].seg[i]));
	c->side[side].seg[i] = NULL;
	memset(c->p.side[side].mem + segment_at(i), 0, SEGMENT);
}

static void
change_segment(struct chaos *c, unsigned int side)
{
	uint32_t i = sim_below(&c->p.rng, SEGMENTS);

	if (c->side[side].seg[i] != NULL) {
		drop_segment(c, side, i);
		return;
	}
	for (uint32_t k = 0; k < SEGMENT; k++)
		UB_PAIR_EQ(&c->p, c->p.side[side].mem[segment_at(i) + k], 0);
	urma_unimport_seg(c->side[side].imported[i]);
	make_segment(c, side, i);
}

static void
make_user(struct chaos *c, unsigned int side, uint32_t i)
{
	struct ub_pair_side *sd = &c->p.side[side];
	struct user *u = &c->side[side].user[i];
	urma_token_t token = {UB_PAIR_SEND_TOKEN};
	urma_jfr_cfg_t own = {.depth = 64,
			      .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT,
			      .trans_mode = URMA_TM_RM,
			      .min_rnr_timer = 2,
			      .jfc = sd->recv_jfc,
			      .token_value = token};
	urma_jetty_cfg_t cfg = {.jfs_cfg = {.depth = 64,
					    .flag.bs.error_suspend = i == 0,
					    .trans_mode = URMA_TM_RM,
					    .max_sge = 2,
					    .rnr_retry = i % 2 ? 7 : 3,
					    .err_timeout = 12 + i,
					    .jfc = sd->send_jfc}};
	urma_rjetty_t r = {.trans_mode = URMA_TM_RM,
			   .type = URMA_JETTY,
			   .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT};

	cfg.flag.bs.share_jfr = i % 2;
	if (i % 2)
		cfg.shared.jfr = sd->jfr;
	else
		cfg.jfr_cfg = &own;
	memset(u, 0, sizeof(*u));
	u->jetty = urma_create_jetty(sd->ctx, &cfg);
	MADE(c, u->jetty);
	r.jetty_id = u->jetty->jetty_id;
	u->to = urma_import_jetty(c->p.side[1 - side].ctx, &r, &token);
	MADE(c, u->to);
}

static void
drop_user(struct chaos *c, unsigned int side, uint32_t i)
{
	struct user *u = &c->side[side].user[i];

	FINE(c, urma_delete_jetty(u->jetty));
	u->jetty = NULL;
}

static void
change_user(struct chaos *c, unsigned int side)
{
	uint32_t i = sim_below(&c->p.rng, USERS);
	struct user *u = &c->side[side].user[i];

	if (u->jetty != NULL) {
		drop_user(c, side, i);
		return;
	}
	FINE(c, urma_unimport_jetty(u->to));
	make_user(c, side, i);
}

/* From ERROR to RESET, and from there to a new life, which the peer does not have to import. */
static void
restart(struct chaos *c, struct user *u)
{
	urma_jetty_attr_t attr = {.mask = JETTY_STATE,
				  .state = u->reset ? URMA_JETTY_STATE_READY
						    : URMA_JETTY_STATE_RESET};

	FINE(c, urma_modify_jetty(u->jetty, &attr));
	u->stopped = u->reset = !u->reset;
}

static void
change_state(struct chaos *c, unsigned int side)
{
	struct user *u = &c->side[side].user[sim_below(&c->p.rng, USERS)];
	urma_jetty_attr_t attr;

	for (uint32_t i = 0; i < USERS; i++)
		if (c->side[side].user[i].stopped)
			u = &c->side[side].user[i];
	if (u->jetty == NULL)
		return;
	if (u->stopped) {
		restart(c, u);
		return;
	}
	FINE(c, urma_query_jetty(u->jetty, NULL, &attr));
	attr.mask = JETTY_STATE;
	attr.state = attr.state == URMA_JETTY_STATE_SUSPENDED ? URMA_JETTY_STATE_READY
		     : sim_below(&c->p.rng, 3) == 0	      ? URMA_JETTY_STATE_ERROR
							      : URMA_JETTY_STATE_SUSPENDED;
	u->stopped = attr.state == URMA_JETTY_STATE_ERROR;
	/* a failure may suspend it meanwhile */
	(void)urma_modify_jetty(u->jetty, &attr);
	FINE(c, urma_query_jetty(u->jetty, NULL, &attr));
	u->stopped = attr.state == URMA_JETTY_STATE_ERROR;
}

/* Both ends go, one first, and come again. */
static void
change_tp(struct chaos *c, unsigned int side)
{
	uint32_t tpi = 1 + sim_below(&c->p.rng, c->p.cfg.tps);

	ub_pair_close_tp(&c->p, side, tpi);
	sim_run_for(c->p.s, sim_below(&c->p.rng, UB_PAIR_MS));
	ub_pair_close_tp(&c->p, 1 - side, tpi);
	sim_run_for(c->p.s, UB_PAIR_MS);
	for (unsigned int i = 0; i < 2; i++) {
		ub_pair_open_tp(&c->p, i, tpi);
		ub_pair_set_group(&c->p, i);
	}
}

/* ---- traffic ---- */

static void
post_one(struct chaos *c, unsigned int side, uint32_t i)
{
	static const urma_opcode_t codes[] = {URMA_OPC_WRITE,	 URMA_OPC_READ,
					      URMA_OPC_SEND_IMM, URMA_OPC_WRITE_IMM,
					      URMA_OPC_FADD,	 URMA_OPC_WRITE_NOTIFY};
	struct user *u = &c->side[side].user[i];
	struct sim_rng *rng = &c->p.rng;
	urma_opcode_t opcode = codes[sim_below(rng, RTE_DIM(codes))];
	uint32_t k = sim_below(rng, SEGMENTS), len = sim_below(rng, 2) ? 100000 : 1000;
	urma_sge_t own = ub_pair_local(&c->p, side, UB_PAIR_READ + i * 150000, len), dst[2];
	urma_jfs_wr_t wr = ub_pair_request(&c->p, side, opcode, (uint64_t)i << ID_BITS | u->posted);

	if (opcode == URMA_OPC_SEND_IMM)
		own.len = len = sim_below(rng, RECEIVE);
	wr.tjetty = c->side[1 - side].user[sim_below(rng, USERS)].to;
	wr.flag.bs.place_order = sim_below(rng, 3);
	wr.flag.bs.fence = sim_below(rng, 8) == 0;
	dst[0] = (urma_sge_t){(uintptr_t)c->p.side[1 - side].mem + segment_at(k), len,
			      c->side[1 - side].imported[k]};
	dst[1] = dst[0];
	dst[1].addr += SEGMENT - 8;
	if (opcode == URMA_OPC_SEND_IMM) {
		wr.send = (urma_send_wr_t){.src = {&own, 1}, .imm_data = u->posted};
	} else if (opcode == URMA_OPC_FADD) {
		dst[0] = ub_pair_remote(&c->p, side, COUNTER, 8);
		own.len = 8;
		wr.faa = (urma_faa_wr_t){.dst = dst, .src = &own, .operand = 1};
		c->side[side].adds++;
	} else if (opcode == URMA_OPC_READ) {
		wr.rw = (urma_rw_wr_t){.src = {dst, 1}, .dst = {&own, 1}};
	} else {
		wr.rw = (urma_rw_wr_t){.src = {&own, 1},
				       .dst = {dst, 1 + (opcode == URMA_OPC_WRITE_NOTIFY)}};
	}
	FINE(c, urma_post_jetty_send_wr(u->jetty, &wr, NULL));
	u->posted++;
}

static const bool explained[] = {
	[URMA_CR_SUCCESS] = true,
	[URMA_CR_LOC_ACCESS_ERR] = false,
	[URMA_CR_REM_UNSUPPORTED_REQ_ERR] = true, /* its Jetty is gone */
	[URMA_CR_REM_ACCESS_ABORT_ERR] = true,	  /* its segment; or its Jetty is in ERROR */
	[URMA_CR_ACK_TIMEOUT_ERR] = true,	  /* the channel */
	[URMA_CR_RNR_RETRY_CNT_EXC_ERR] = true,
	[URMA_CR_WR_FLUSH_ERR] = true,
	[URMA_CR_WR_SUSPEND_DONE] = true,
	[URMA_CR_WR_FLUSH_ERR_DONE] = true,
	[URMA_CR_REM_DATA_POISON] = true, /* its segment went while it was read */
};

static void
take_sent(struct chaos *c, unsigned int side, const urma_cr_t *cr)
{
	struct chaos_side *cs = &c->side[side];
	struct user *u = NULL;

	for (uint32_t i = 0; i < USERS; i++)
		if ((uintptr_t)cs->user[i].jetty == cr->user_data)
			u = &cs->user[i];
	sim_check(c->p.s, u != NULL, "a completion of nobody");
	sim_check(c->p.s, cr->status < RTE_DIM(explained) && explained[cr->status],
		  "side %u: status %u", side, cr->status);
	if (cr->status == URMA_CR_WR_SUSPEND_DONE || cr->status == URMA_CR_WR_FLUSH_ERR_DONE)
		return;
	UB_PAIR_EQ(&c->p, cr->user_ctx & ((UINT64_C(1) << ID_BITS) - 1), u->done);
	u->done++;
	cs->ok += cr->status == URMA_CR_SUCCESS;
	cs->failed += cr->status != URMA_CR_SUCCESS;
}

static void
post_receives(struct chaos *c, unsigned int side)
{
	struct ub_pair_side *sd = &c->p.side[side];
	urma_sge_t sge = ub_pair_local(&c->p, side, UB_PAIR_RECV, RECEIVE);
	urma_jfr_wr_t wr = {.src = {&sge, 1}};
	uint32_t i = sim_below(&c->p.rng, USERS);
	const struct user *u = &c->side[side].user[i];

	/* a full queue is no failure */
	if (i % 2)
		(void)urma_post_jfr_wr(sd->jfr, &wr, NULL);
	else if (u->jetty != NULL)
		(void)urma_post_jetty_recv_wr(u->jetty, &wr, NULL);
}

/* Returns whether requests are open. */
static bool
turn(struct chaos *c, bool post)
{
	bool open = false;

	for (unsigned int side = 0; side < 2; side++) {
		struct chaos_side *cs = &c->side[side];
		urma_cr_t cr;

		post_receives(c, side);
		for (uint32_t i = 0; i < USERS; i++) {
			struct user *u = &cs->user[i];

			if (u->jetty == NULL)
				continue;
			if (post && !u->reset && u->posted - u->done < OPEN_MAX &&
			    sim_below(&c->p.rng, 8) == 0)
				post_one(c, side, i);
			open |= u->posted != u->done;
		}
		while (urma_poll_jfc(c->p.side[side].recv_jfc, 1, &cr) == 1)
			continue;
		while (urma_poll_jfc(c->p.side[side].send_jfc, 1, &cr) == 1)
			take_sent(c, side, &cr);
	}
	sim_poll(c->p.s);
	return open;
}

static void
resume(struct chaos *c)
{
	urma_jetty_attr_t attr;

	for (uint32_t k = 0; k < 2 * USERS; k++) {
		struct user *u = &c->side[k % 2].user[k / 2];

		if (u->jetty == NULL)
			continue;
		FINE(c, urma_query_jetty(u->jetty, NULL, &attr));
		attr.mask = JETTY_STATE;
		if (attr.state != URMA_JETTY_STATE_SUSPENDED)
			continue;
		attr.state = URMA_JETTY_STATE_READY;
		(void)urma_modify_jetty(u->jetty, &attr);
	}
}

/* Nothing hangs. */
static void
finish(struct chaos *c)
{
	uint64_t end = c->p.s->now + 30000 * UB_PAIR_MS;
	unsigned int turns = 0;

	while (turn(c, false)) {
		if (turns++ % 64 == 0)
			resume(c);
		sim_check(c->p.s, c->p.s->now < end, "requests hang");
	}
}

/* All Jettys begin again, whatever their states, and go on. */
static void
restart_all(struct chaos *c)
{
	for (uint32_t k = 0; k < 2 * USERS; k++) {
		struct user *u = &c->side[k % 2].user[k / 2];

		if (u->jetty == NULL)
			continue;
		if (!u->reset)
			restart(c, u);
		turn(c, false);
		restart(c, u);
	}
	for (uint32_t k = 0; k < 100; k++)
		turn(c, true);
	finish(c);
}

static void
open_all(struct chaos *c, const struct ub_pair_config *cfg)
{
	memset(c->side, 0, sizeof(c->side));
	ub_pair_open(&c->p, cfg);
	for (unsigned int side = 0; side < 2; side++) {
		for (uint32_t i = 0; i < SEGMENTS; i++)
			make_segment(c, side, i);
		for (uint32_t i = 0; i < USERS; i++)
			make_user(c, side, i);
	}
}

static void
close_all(struct chaos *c)
{
	for (unsigned int side = 0; side < 2; side++) {
		for (uint32_t i = 0; i < USERS; i++) {
			FINE(c, urma_unimport_jetty(c->side[side].user[i].to));
			if (c->side[side].user[i].jetty != NULL)
				drop_user(c, side, i);
		}
		for (uint32_t i = 0; i < SEGMENTS; i++) {
			urma_unimport_seg(c->side[side].imported[i]);
			if (c->side[side].seg[i] != NULL)
				drop_segment(c, side, i);
		}
	}
	ub_pair_close(&c->p);
}

static void
run(const struct sim_config *cfg, void (*const *changes)(struct chaos *c, unsigned int side),
    unsigned int n)
{
	struct ub_pair_config pc = {.sim = *cfg,
				    .tps = 2,
				    .small_mtu = true,
				    .requests = 32,
				    .rto_base = 100,
				    .retries = 4};
	static const struct hca_impair bad = {.drop = 0.01,
					      .dup = 0.02,
					      .reorder = 0.03,
					      .reorder_ns = 20000};
	struct chaos *c = &chaos;

	open_all(c, &pc);
	for (unsigned int side = 0; side < 2; side++)
		sim_impair(c->p.s, side, &bad);
	for (unsigned int i = 0; i < 30; i++) {
		for (uint32_t k = sim_below(&c->p.rng, 150); k > 0; k--)
			turn(c, true);
		changes[sim_below(&c->p.rng, n)](c, sim_below(&c->p.rng, 2));
	}
	finish(c);
	restart_all(c);
	for (unsigned int side = 0; side < 2; side++) {
		uint64_t sum;

		memcpy(&sum, c->p.side[1 - side].mem + COUNTER, sizeof(sum));
		sim_check(c->p.s, sum <= c->side[side].adds, "executed twice");
		sim_check(c->p.s, c->side[side].ok != 0, "nothing worked");
		UB_PAIR_EQ(&c->p, ub_pair_counter(&c->p, side, HCA_CTR_ub_bad_receive), 0);
		UB_PAIR_EQ(&c->p, ub_pair_counter(&c->p, side, HCA_CTR_ub_tp_broken), 0);
		sim_impair(c->p.s, side, NULL);
	}
	if (getenv("SIM_VERBOSE") != NULL)
		sim_summary(c->p.s);
	close_all(c);
}

static void
users_in(const struct sim_config *cfg)
{
	static void (*const changes[])(struct chaos * c, unsigned int side) = {change_user};

	run(cfg, changes, RTE_DIM(changes));
}

static void
states_in(const struct sim_config *cfg)
{
	static void (*const changes[])(struct chaos * c,
				       unsigned int side) = {change_user, change_state,
							     change_state, change_state};

	run(cfg, changes, RTE_DIM(changes));
}

static void
segments_in(const struct sim_config *cfg)
{
	static void (*const changes[])(struct chaos * c, unsigned int side) = {change_segment};

	run(cfg, changes, RTE_DIM(changes));
}

static void
tps_in(const struct sim_config *cfg)
{
	static void (*const changes[])(struct chaos * c, unsigned int side) = {change_tp};

	run(cfg, changes, RTE_DIM(changes));
}

static void
all_in(const struct sim_config *cfg)
{
	static void (*const changes[])(struct chaos * c,
				       unsigned int side) = {change_user, change_state,
							     change_segment, change_tp};

	run(cfg, changes, RTE_DIM(changes));
}

SIM_TEST(users)
SIM_TEST(states)
SIM_TEST(segments)
SIM_TEST(tps)
SIM_TEST(all)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(users), cmocka_unit_test(states), cmocka_unit_test(segments),
		cmocka_unit_test(tps),	 cmocka_unit_test(all),
	};

	return sim_main_of(tests, RTE_DIM(tests));
}
