/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Jettys that become RESET and READY again: everything of the old life is complete once, none of it
 * is in the new one, and numbers and imports of peers stay valid.
 */

#include "ub_pair.h"

#define PROGRAM "sim-ub-reset"

#define FROM UB_PAIR_FROM
#define TO UB_PAIR_TO
#define RECV UB_PAIR_RECV
#define RESULT UB_PAIR_READ
#define LONG UB_PAIR_LONG
#define KNOWN 40u

static struct ub_pair pair;

static struct ub_pair *
begin(const struct sim_config *cfg, struct ub_pair_config c)
{
	c.sim = *cfg;
	ub_pair_open(&pair, &c);
	return &pair;
}

static urma_status_t
modify(urma_jetty_t *jetty, urma_jetty_state_t state)
{
	urma_jetty_attr_t attr = {.mask = JETTY_STATE, .state = state};

	return urma_modify_jetty(jetty, &attr);
}

static void
set(struct ub_pair *p, urma_jetty_t *jetty, urma_jetty_state_t state)
{
	urma_jetty_attr_t attr;

	sim_check(p->s, modify(jetty, state) == URMA_SUCCESS, "modify: %s", softhca_urma_reason());
	UB_PAIR_EQ(p, urma_query_jetty(jetty, NULL, &attr), URMA_SUCCESS);
	UB_PAIR_EQ(p, attr.state, state);
}

/* RESET, all completions are polled, READY. Returns how many requests were complete well. */
static uint32_t
again(struct ub_pair *p, unsigned int side)
{
	struct ub_pair_side *sd = &p->side[side];
	uint32_t good = 0;
	urma_cr_t cr;

	set(p, sd->jetty, URMA_JETTY_STATE_RESET);
	while (urma_poll_jfc(sd->send_jfc, 1, &cr) == 1)
		good += cr.status == URMA_CR_SUCCESS;
	while (urma_poll_jfc(sd->recv_jfc, 1, &cr) == 1)
		continue;
	set(p, sd->jetty, URMA_JETTY_STATE_READY);
	return good;
}

static void
good_send(struct ub_pair *p, unsigned int side, uint64_t id)
{
	ub_pair_recv(p, 1 - side, false, RECV, LONG, id);
	ub_pair_send(p, side, p->side[side].to_jetty, FROM, LONG, id);
	ub_pair_done(p, side, id, URMA_CR_SUCCESS);
	ub_pair_received(p, 1 - side, id, LONG);
	ub_pair_same(p, 1 - side, RECV, FROM, LONG);
	memset(p->side[1 - side].mem + RECV, 0, LONG);
}

static void
wait_for(struct ub_pair *p, unsigned int side, enum hca_counter counter, uint64_t least)
{
	for (uint32_t k = 0; ub_pair_counter(p, side, counter) < least; k++) {
		sim_check(p->s, k < 1000000, "it never comes");
		sim_poll(p->s);
	}
}

/* ---- completions ---- */

/* Requests 0 .. n - 1 in order, those that went well first, then the end. */
static void
flushed(struct ub_pair *p, uint32_t n)
{
	urma_cr_status_t status = URMA_CR_SUCCESS;
	urma_cr_t cr;

	for (uint32_t i = 0; i < n; i++) {
		UB_PAIR_EQ(p, urma_poll_jfc(p->side[0].send_jfc, 1, &cr), 1);
		UB_PAIR_EQ(p, cr.user_ctx, i);
		if (cr.status == URMA_CR_WR_FLUSH_ERR)
			status = cr.status;
		UB_PAIR_EQ(p, cr.status, status);
	}
	UB_PAIR_EQ(p, status, URMA_CR_WR_FLUSH_ERR);
	UB_PAIR_EQ(p, urma_poll_jfc(p->side[0].send_jfc, 1, &cr), 1);
	UB_PAIR_EQ(p, cr.status, URMA_CR_WR_FLUSH_ERR_DONE);
	UB_PAIR_EQ(p, urma_poll_jfc(p->side[0].send_jfc, 1, &cr), 0);
}

static void
receives_flushed(struct ub_pair *p, uint32_t n)
{
	urma_cr_t cr;

	for (uint32_t i = 0; i < n; i++) {
		UB_PAIR_EQ(p, urma_poll_jfc(p->side[0].recv_jfc, 1, &cr), 1);
		UB_PAIR_EQ(p, cr.user_ctx, 1000 + i);
		UB_PAIR_EQ(p, cr.status, URMA_CR_WR_FLUSH_ERR);
	}
	UB_PAIR_EQ(p, urma_poll_jfc(p->side[0].recv_jfc, 1, &cr), 0);
}

/* Calls that RESET refuses; none has an effect in the next life. */
static void
posts_are_refused(struct ub_pair *p)
{
	urma_sge_t own = ub_pair_local(p, 0, RECV, 64);
	urma_jfr_wr_t receive = {.src = {&own, 1}};
	urma_jfs_wr_t wr = ub_pair_request(p, 0, URMA_OPC_SEND, 9);

	wr.tjetty = p->side[0].to_jetty;
	wr.send.src = (urma_sg_t){&own, 1};
	UB_PAIR_EQ(p, urma_post_jetty_send_wr(p->side[0].jetty, &wr, NULL), URMA_EINVAL);
	UB_PAIR_EQ(p, urma_post_jetty_recv_wr(p->side[0].jetty, &receive, NULL), URMA_EINVAL);
	UB_PAIR_EQ(p, modify(p->side[0].jetty, URMA_JETTY_STATE_SUSPENDED), URMA_EINVAL);
	UB_PAIR_EQ(p, modify(p->side[0].jetty, URMA_JETTY_STATE_ERROR), URMA_EINVAL);
	UB_PAIR_EQ(p, modify(p->side[0].jetty, URMA_JETTY_STATE_RESET), URMA_SUCCESS);
}

/*
 * Full queues at each reset, from READY, SUSPENDED and ERROR: each request and receive has one
 * completion, and the Jetty cannot be READY before it is polled. The peer's imports outlive all.
 */
static void
completions_in(const struct sim_config *cfg)
{
	struct ub_pair *p = begin(cfg, (struct ub_pair_config){.small_mtu = true, .tps = 2});
	static const urma_jetty_state_t from[] = {URMA_JETTY_STATE_READY,
						  URMA_JETTY_STATE_SUSPENDED,
						  URMA_JETTY_STATE_ERROR};
	uint32_t number = p->side[0].jetty->jetty_id.id;

	for (uint32_t life = 0; life < 6; life++) {
		uint32_t n = UB_PAIR_DEPTH - life;

		for (uint32_t i = 0; i < n; i++)
			ub_pair_rw(p, 0, i % 2 ? URMA_OPC_READ : URMA_OPC_WRITE,
				   i % 2 ? RESULT : FROM, i % 2 ? FROM : TO, LONG, i);
		for (uint32_t i = 0; i < n; i++)
			ub_pair_recv(p, 0, false, RECV, 64, 1000 + i);
		wait_for(p, 0, HCA_CTR_ub_segments_done, 100 * (life + 1));
		if (from[life % 3] != URMA_JETTY_STATE_READY)
			set(p, p->side[0].jetty, from[life % 3]);
		set(p, p->side[0].jetty, URMA_JETTY_STATE_RESET);
		UB_PAIR_EQ(p, modify(p->side[0].jetty, URMA_JETTY_STATE_READY), URMA_EAGAIN);
		flushed(p, n);
		UB_PAIR_EQ(p, modify(p->side[0].jetty, URMA_JETTY_STATE_READY), URMA_EAGAIN);
		receives_flushed(p, n);
		posts_are_refused(p);
		set(p, p->side[0].jetty, URMA_JETTY_STATE_READY);
		UB_PAIR_EQ(p, p->side[0].jetty->jetty_id.id, number);
		sim_run_for(p->s, UB_PAIR_MS);
		memset(p->side[1].mem + TO, 0, UB_PAIR_PART);
		ub_pair_good_write(p, 0, 1);
		good_send(p, 0, 2);
		good_send(p, 1, 3);
	}
	ub_pair_close(p);
}

/* Requests without a completion fill the queue: the next life has all of it. */
static void
unsignalled_in(const struct sim_config *cfg)
{
	struct ub_pair *p = begin(cfg, (struct ub_pair_config){0});

	for (uint32_t life = 0; life < 3; life++) {
		for (uint32_t i = 0; i < UB_PAIR_DEPTH; i++) {
			urma_sge_t own = ub_pair_local(p, 0, FROM, 64);
			urma_sge_t peers = ub_pair_remote(p, 0, TO, 64);
			urma_jfs_wr_t wr = ub_pair_request(p, 0, URMA_OPC_WRITE, i);

			wr.flag.bs.complete_enable = 0;
			wr.rw = (urma_rw_wr_t){.src = {&own, 1}, .dst = {&peers, 1}};
			ub_pair_post(p, 0, &wr);
		}
		wait_for(p, 0, HCA_CTR_ub_segments_done, (uint64_t)UB_PAIR_DEPTH * (life + 1));
		again(p, 0);
	}
	ub_pair_good_write(p, 0, 1);
	ub_pair_close(p);
}

/* A JFS, and a Jetty whose receives are a JFR's. */
static void
others_in(const struct sim_config *cfg)
{
	struct ub_pair *p = begin(cfg, (struct ub_pair_config){0});
	urma_jfs_attr_t attr = {.mask = JFS_STATE};
	struct ub_pair_side *sd = &p->side[0];
	urma_jfs_wr_flag_t flag = {.bs.complete_enable = 1};

	for (uint64_t life = 0; life < 3; life++) {
		UB_PAIR_EQ(p,
			   urma_write(sd->jfs, sd->to_jetty, sd->to_seg, sd->seg,
				      (uintptr_t)p->side[1].mem + TO, (uintptr_t)sd->mem + FROM,
				      LONG, flag, life),
			   URMA_SUCCESS);
		ub_pair_done(p, 0, life, URMA_CR_SUCCESS);
		attr.state = URMA_JETTY_STATE_RESET;
		UB_PAIR_EQ(p, urma_modify_jfs(sd->jfs, &attr), URMA_SUCCESS);
		ub_pair_done(p, 0, 0, URMA_CR_WR_FLUSH_ERR_DONE);
		attr.state = URMA_JETTY_STATE_READY;
		UB_PAIR_EQ(p, urma_modify_jfs(sd->jfs, &attr), URMA_SUCCESS);
	}
	ub_pair_close(p);
}

/* ---- late packets ---- */

/*
 * Answers to requests of the old life come when the new one has requests open, which have not even
 * reached the peer: they complete when they are executed, not before.
 */
static void
late_answers_in(const struct sim_config *cfg)
{
	struct ub_pair *p = begin(cfg, (struct ub_pair_config){.rto_base = 100000});
	const struct hca_impair slow = {.delay_ns = 10 * UB_PAIR_MS},
				slower = {.delay_ns = 30 * UB_PAIR_MS};
	uint32_t n = 40;
	urma_cr_t cr;

	sim_impair(p->s, 1, &slow);
	for (uint32_t i = 0; i < n; i++)
		ub_pair_rw(p, 0, i % 4 == 3 ? URMA_OPC_READ : URMA_OPC_WRITE,
			   i % 4 == 3 ? RESULT : FROM, i % 4 == 3 ? FROM : TO, 64, i);
	wait_for(p, 1, HCA_CTR_ub_requests_done, n);
	UB_PAIR_EQ(p, again(p, 0), 0);
	memset(p->side[0].mem + RESULT, 0, 64);
	memset(p->side[1].mem + TO, 0, UB_PAIR_PART);
	sim_impair(p->s, 0, &slower);
	for (uint32_t i = 0; i < n; i++)
		ub_pair_rw(p, 0, i % 4 == 3 ? URMA_OPC_READ : URMA_OPC_WRITE,
			   i % 4 == 3 ? RESULT + 64 : FROM, i % 4 == 3 ? FROM + 128 : TO + 64 * i,
			   64, i);
	sim_run_for(p->s, 20 * UB_PAIR_MS);
	UB_PAIR_EQ(p,
		   ub_pair_counter(p, 0, HCA_CTR_ub_rsp_abandoned) +
				   ub_pair_counter(p, 0, HCA_CTR_ub_rsp_late) !=
			   0,
		   1);
	UB_PAIR_EQ(p, urma_poll_jfc(p->side[0].send_jfc, 1, &cr), 0);
	for (uint32_t i = 0; i < 64; i++)
		UB_PAIR_EQ(p, p->side[0].mem[RESULT + i], 0);
	sim_impair(p->s, 0, NULL);
	sim_impair(p->s, 1, NULL);
	for (uint32_t i = 0; i < n; i++) {
		ub_pair_done(p, 0, i, URMA_CR_SUCCESS);
		if (i % 4 != 3)
			ub_pair_same(p, 1, TO + 64 * i, FROM, 64);
	}
	ub_pair_same(p, 0, RESULT + 64, FROM + 128, 64);
	ub_pair_close(p);
}

/*
 * A Send of which one half arrives before the receiver's Jetty is reset, and the other half after
 * it is READY again: it is refused, or dropped without a word, and leaves the new receive alone.
 */
static void
half_a_send(const struct sim_config *cfg, bool silent)
{
	struct ub_pair *p = begin(cfg, (struct ub_pair_config){.small_mtu = true,
							       .silent = silent,
							       .err_timeout = 14,
							       .mode = HCA_TP_MODE_SACK,
							       .rule = HCA_TP_RULE_NONE,
							       .rto_base = 100000});
	const struct hca_impair half = {.reorder = 0.5, .reorder_ns = 5 * UB_PAIR_MS};
	uint64_t used;

	sim_impair(p->s, 0, &half);
	ub_pair_recv(p, 1, false, RECV, LONG, 1);
	ub_pair_send(p, 0, p->side[0].to_jetty, FROM, LONG, 1);
	/* a Write of the same Jetty is none of the receiver's business */
	ub_pair_rw(p, 0, URMA_OPC_WRITE, FROM, TO, LONG, 2);
	wait_for(p, 1, HCA_CTR_ub_ta_used, 20);
	sim_check(p->s, ub_pair_counter(p, 1, HCA_CTR_ub_requests_done) == 0, "it is complete");
	again(p, 1);
	used = ub_pair_counter(p, 1, HCA_CTR_ub_ta_after_refusal);
	memset(p->side[1].mem + RECV, 0, LONG);
	ub_pair_recv(p, 1, false, RECV, LONG, 2);
	ub_pair_done(p, 0, 1, silent ? URMA_CR_ACK_TIMEOUT_ERR : URMA_CR_REM_ACCESS_ABORT_ERR);
	ub_pair_done(p, 0, 2, URMA_CR_SUCCESS);
	ub_pair_same(p, 1, TO, FROM, LONG);
	sim_check(p->s, ub_pair_counter(p, 1, HCA_CTR_ub_ta_after_refusal) > used + 20,
		  "no half came late");
	for (uint32_t i = 0; i < LONG; i++)
		UB_PAIR_EQ(p, p->side[1].mem[RECV + i], 0);
	ub_pair_nothing(p, UB_PAIR_MS);
	sim_impair(p->s, 0, NULL);
	ub_pair_send(p, 0, p->side[0].to_jetty, FROM, LONG, 3);
	ub_pair_done(p, 0, 3, URMA_CR_SUCCESS);
	ub_pair_received(p, 1, 2, LONG);
	ub_pair_same(p, 1, RECV, FROM, LONG);
	ub_pair_close(p);
}

static void
late_packets_in(const struct sim_config *cfg)
{
	half_a_send(cfg, false);
	half_a_send(cfg, true);
}

/* Reads and Writes of the peer are of its memory, and do not notice. */
static void
peers_in(const struct sim_config *cfg)
{
	struct ub_pair *p = begin(cfg, (struct ub_pair_config){.small_mtu = true, .tps = 2});
	uint32_t n = 60;

	for (uint32_t i = 0; i < n; i++)
		ub_pair_rw(p, 1, i % 2 ? URMA_OPC_READ : URMA_OPC_WRITE, i % 2 ? RESULT : FROM,
			   i % 2 ? FROM : TO, LONG, i);
	for (uint32_t life = 0; life < 4; life++) {
		wait_for(p, 1, HCA_CTR_ub_segments_done, 20 * (life + 1));
		again(p, 0);
	}
	for (uint32_t i = 0; i < n; i++)
		ub_pair_done(p, 1, i, URMA_CR_SUCCESS);
	ub_pair_same(p, 0, TO, FROM, LONG);
	ub_pair_same(p, 1, RESULT, FROM, LONG);
	ub_pair_close(p);
}

/* A Send to a Jetty in RESET is answered as one to a Jetty that does not exist, or not at all. */
static void
send_in_reset(const struct sim_config *cfg, bool silent)
{
	struct ub_pair *p =
		begin(cfg, (struct ub_pair_config){.silent = silent, .err_timeout = 12});

	set(p, p->side[1].jetty, URMA_JETTY_STATE_RESET);
	ub_pair_done(p, 1, 0, URMA_CR_WR_FLUSH_ERR_DONE);
	ub_pair_send(p, 0, p->side[0].to_jetty, FROM, 100, 1);
	ub_pair_done(p, 0, 1, silent ? URMA_CR_ACK_TIMEOUT_ERR : URMA_CR_REM_UNSUPPORTED_REQ_ERR);
	UB_PAIR_EQ(p, ub_pair_counter(p, 1, HCA_CTR_ub_requests_unanswered), silent);
	set(p, p->side[1].jetty, URMA_JETTY_STATE_READY);
	good_send(p, 0, 2);
	ub_pair_close(p);
}

static void
told_in(const struct sim_config *cfg)
{
	send_in_reset(cfg, false);
	send_in_reset(cfg, true);
}

/* ---- numbers and bindings ---- */

static urma_jetty_t *
open_jetty(struct ub_pair *p, unsigned int side, urma_transport_mode_t mode, uint32_t known)
{
	struct ub_pair_side *sd = &p->side[side];
	urma_jfr_cfg_t receives = {.depth = 8,
				   .trans_mode = mode,
				   .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT,
				   .token_value.token = UB_PAIR_SEND_TOKEN,
				   .jfc = sd->recv_jfc};
	urma_jetty_cfg_t cfg = {
		.id = known,
		.jfs_cfg = {.depth = 8, .trans_mode = mode, .rnr_retry = 7, .jfc = sd->send_jfc},
		.jfr_cfg = &receives};
	urma_jetty_t *jetty = urma_create_jetty(sd->ctx, &cfg);

	sim_check(p->s, jetty != NULL, "Jetty: %s", softhca_urma_reason());
	return jetty;
}

static urma_target_jetty_t *
import_jetty(struct ub_pair *p, unsigned int side, const urma_jetty_t *peer,
	     urma_transport_mode_t mode)
{
	urma_rjetty_t what = {.jetty_id = peer->jetty_id,
			      .trans_mode = mode,
			      .type = URMA_JETTY,
			      .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT};
	urma_token_t token = {UB_PAIR_SEND_TOKEN};
	urma_target_jetty_t *t = urma_import_jetty(p->side[side].ctx, &what, &token);

	sim_check(p->s, t != NULL, "import: %s", softhca_urma_reason());
	return t;
}

static void
receive_of(struct ub_pair *p, urma_jetty_t *jetty, uint64_t id)
{
	urma_sge_t sge = ub_pair_local(p, 1, RECV, LONG);
	urma_jfr_wr_t wr = {.src = {&sge, 1}, .user_ctx = id};

	sim_check(p->s, urma_post_jetty_recv_wr(jetty, &wr, NULL) == URMA_SUCCESS, "receive: %s",
		  softhca_urma_reason());
}

/* A well-known number stands for the Jetty again, and for nothing meanwhile. */
static void
known_in(const struct sim_config *cfg)
{
	struct ub_pair *p = begin(cfg, (struct ub_pair_config){0});
	urma_jetty_t *jetty = open_jetty(p, 1, URMA_TM_RM, KNOWN);
	urma_target_jetty_t *to = import_jetty(p, 0, jetty, URMA_TM_RM);

	for (uint64_t life = 0; life < 3; life++) {
		receive_of(p, jetty, life);
		ub_pair_send(p, 0, to, FROM, LONG, life);
		ub_pair_done(p, 0, life, URMA_CR_SUCCESS);
		ub_pair_received(p, 1, life, LONG);
		set(p, jetty, URMA_JETTY_STATE_RESET);
		ub_pair_done(p, 1, 0, URMA_CR_WR_FLUSH_ERR_DONE);
		ub_pair_send(p, 0, to, FROM, 10, 9);
		ub_pair_done(p, 0, 9, URMA_CR_REM_UNSUPPORTED_REQ_ERR);
		set(p, jetty, URMA_JETTY_STATE_READY);
	}
	/* still not another client's */
	UB_PAIR_EQ(p,
		   urma_create_jetty(p->side[1].ctx,
				     &(urma_jetty_cfg_t){.id = KNOWN,
							 .jfs_cfg = jetty->jetty_cfg.jfs_cfg,
							 .flag.bs.share_jfr = 1,
							 .shared.jfr = p->side[1].jfr}) == NULL,
		   1);
	UB_PAIR_EQ(p, urma_unimport_jetty(to), URMA_SUCCESS);
	UB_PAIR_EQ(p, urma_delete_jetty(jetty), URMA_SUCCESS);
	ub_pair_close(p);
}

static void
send_of(struct ub_pair *p, urma_jetty_t *jetty, uint64_t id)
{
	urma_sge_t own = ub_pair_local(p, 0, FROM, LONG);
	urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND,
			    .user_ctx = id,
			    .flag.bs.complete_enable = 1,
			    .send.src = {&own, 1}};

	sim_check(p->s, urma_post_jetty_send_wr(jetty, &wr, NULL) == URMA_SUCCESS, "post: %s",
		  softhca_urma_reason());
}

/* RESET ends the own binding, not that of the peer; bound again, both go on. */
static void
one_peer_in(const struct sim_config *cfg)
{
	struct ub_pair *p = begin(cfg, (struct ub_pair_config){0});
	urma_jetty_t *a = open_jetty(p, 0, URMA_TM_RC, 0), *b = open_jetty(p, 1, URMA_TM_RC, 0);
	urma_target_jetty_t *to_b = import_jetty(p, 0, b, URMA_TM_RC),
			    *to_a = import_jetty(p, 1, a, URMA_TM_RC);

	UB_PAIR_EQ(p, urma_bind_jetty(a, to_b), URMA_SUCCESS);
	UB_PAIR_EQ(p, urma_bind_jetty(b, to_a), URMA_SUCCESS);
	set(p, b, URMA_JETTY_STATE_RESET);
	ub_pair_done(p, 1, 0, URMA_CR_WR_FLUSH_ERR_DONE);
	set(p, b, URMA_JETTY_STATE_READY);
	UB_PAIR_EQ(p, urma_unbind_jetty(b), URMA_EINVAL);
	receive_of(p, b, 7);
	send_of(p, a, 1);
	ub_pair_nothing(p, UB_PAIR_MS); /* its peer has to be told first */
	UB_PAIR_EQ(p, urma_bind_jetty(b, to_a), URMA_SUCCESS);
	ub_pair_done(p, 0, 1, URMA_CR_SUCCESS);
	ub_pair_received(p, 1, 7, LONG);
	UB_PAIR_EQ(p, urma_unbind_jetty(a), URMA_SUCCESS);
	UB_PAIR_EQ(p, urma_unbind_jetty(b), URMA_SUCCESS);
	UB_PAIR_EQ(p, urma_delete_jetty(a), URMA_SUCCESS);
	UB_PAIR_EQ(p, urma_delete_jetty(b), URMA_SUCCESS);
	UB_PAIR_EQ(p, urma_unimport_jetty(to_a), URMA_SUCCESS);
	UB_PAIR_EQ(p, urma_unimport_jetty(to_b), URMA_SUCCESS);
	ub_pair_close(p);
}

SIM_TEST(completions)
SIM_TEST(unsignalled)
SIM_TEST(others)
SIM_TEST(late_answers)
SIM_TEST(late_packets)
SIM_TEST(peers)
SIM_TEST(told)
SIM_TEST(known)
SIM_TEST(one_peer)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(completions),	cmocka_unit_test(unsignalled),
		cmocka_unit_test(others),	cmocka_unit_test(late_answers),
		cmocka_unit_test(late_packets), cmocka_unit_test(peers),
		cmocka_unit_test(told),		cmocka_unit_test(known),
		cmocka_unit_test(one_peer),
	};

	return sim_main_of(tests, RTE_DIM(tests));
}
