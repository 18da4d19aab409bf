/* SPDX-License-Identifier: BSD-3-Clause */

/* Failures in UB, end to end: errors at the affected ends, and none at others. */

#include "ub_pair.h"

#define PROGRAM "sim-ub-fail"

#define FROM UB_PAIR_FROM
#define TO UB_PAIR_TO
#define RECV UB_PAIR_RECV
#define RESULT UB_PAIR_READ
#define LONG UB_PAIR_LONG

static struct ub_pair pair;

static const struct hca_impair bad_link = {.drop = 0.02,
					   .dup = 0.02,
					   .reorder = 0.03,
					   .reorder_ns = 20000};

static struct ub_pair *
begin(const struct sim_config *cfg, struct ub_pair_config c)
{
	c.sim = *cfg;
	ub_pair_open(&pair, &c);
	return &pair;
}

static void
all_zero(struct ub_pair *p, unsigned int side, uint32_t at, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		UB_PAIR_EQ(p, p->side[side].mem[at + i], 0);
}

/* ---- memory ---- */

/* The peer's segment imported with something wrong in it. */
static urma_target_seg_t *
import_wrong(struct ub_pair *p, uint32_t token_bits, uint32_t id_bits, uint64_t more)
{
	urma_seg_t seg = p->side[1].seg->seg;
	urma_token_t token = {UB_PAIR_SEG_TOKEN ^ token_bits};
	urma_target_seg_t *t;

	seg.token_id ^= id_bits;
	seg.len += more;
	t = urma_import_seg(p->side[0].ctx, &seg, &token, 0, (urma_import_seg_flag_t){0});
	sim_check(p->s, t != NULL, "import: %s", softhca_urma_reason());
	return t;
}

/* Requests of each kind by that import are refused, and do nothing. */
static void
refused(struct ub_pair *p, urma_target_seg_t *wrong, uint32_t at)
{
	static const urma_opcode_t codes[] = {URMA_OPC_WRITE, URMA_OPC_READ, URMA_OPC_FADD,
					      URMA_OPC_WRITE_IMM, URMA_OPC_WRITE_NOTIFY};
	urma_target_seg_t *good = p->side[0].to_seg;
	uint64_t id = 100;

	for (unsigned int i = 0; i < RTE_DIM(codes); i++) {
		uint32_t len = codes[i] == URMA_OPC_FADD ? 8 : LONG;
		urma_sge_t own = ub_pair_local(p, 0, RESULT, len);
		urma_sge_t dst[2] = {ub_pair_remote(p, 0, at, len),
				     ub_pair_remote(p, 0, TO + UB_PAIR_PART - 8, 8)};
		urma_jfs_wr_t wr = ub_pair_request(p, 0, codes[i], ++id);

		dst[0].tseg = wrong;
		if (codes[i] == URMA_OPC_FADD) {
			/* aligned, so behind the end where others straddle it */
			dst[0].addr += at == UB_PAIR_MEM - 8u ? 8 : 0;
			wr.faa = (urma_faa_wr_t){.dst = dst, .src = &own, .operand = 1};
		} else if (codes[i] == URMA_OPC_READ) {
			wr.rw.src = (urma_sg_t){dst, 1};
			wr.rw.dst = (urma_sg_t){&own, 1};
		} else {
			own.addr = (uintptr_t)p->side[0].mem + FROM;
			wr.rw.src = (urma_sg_t){&own, 1};
			wr.rw.dst = (urma_sg_t){dst, 1u + (codes[i] == URMA_OPC_WRITE_NOTIFY)};
			wr.rw.notify_data = 1;
		}
		ub_pair_post(p, 0, &wr);
		ub_pair_done(p, 0, id, URMA_CR_REM_ACCESS_ABORT_ERR);
	}
	p->side[0].to_seg = good;
	all_zero(p, 1, TO, UB_PAIR_PART);
	all_zero(p, 0, RESULT, LONG);
	ub_pair_good_write(p, 0, 1);
}

static void
wrong_memory_in(const struct sim_config *cfg)
{
	struct ub_pair *p = begin(cfg, (struct ub_pair_config){.tps = 2});
	static const struct {
		uint32_t token, id;
		uint64_t more;
		uint32_t at;
	} rows[] = {
		{1, 0, 0, TO},			/* its value */
		{0, 1, 0, TO},			/* unknown TokenID */
		{0, 0, LONG, UB_PAIR_MEM - 8u}, /* bytes behind its end */
	};

	for (unsigned int i = 0; i < RTE_DIM(rows); i++) {
		urma_target_seg_t *t = import_wrong(p, rows[i].token, rows[i].id, rows[i].more);

		refused(p, t, rows[i].at);
		urma_unimport_seg(t);
	}
	ub_pair_close(p);
}

/* A region that was registered for verbs is nothing for UB, whatever is guessed. */
static void
region_of_verbs_in(const struct sim_config *cfg)
{
	struct ub_pair *p = begin(cfg, (struct ub_pair_config){0});
	struct softhca_mr *mr =
		softhca_reg_mr(p->s->side[1].pd, p->side[1].mem, UB_PAIR_MEM,
			       SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE |
				       SOFTHCA_ACCESS_REMOTE_READ | SOFTHCA_ACCESS_REMOTE_ATOMIC);
	urma_target_seg_t *t;

	sim_check(p->s, mr != NULL, "reg_mr");
	t = import_wrong(p, 0, p->side[1].seg->seg.token_id ^ HCA_KEY_TOKEN_ID(mr->rkey), 0);
	refused(p, t, TO);
	sim_check(p->s, ub_pair_counter(p, 1, HCA_CTR_ub_token_not_exported) != 0, "counter");
	urma_unimport_seg(t);
	softhca_dereg_mr(mr);
	ub_pair_close(p);
}

/* Old and new value are accepted while the token rotates, then the new one alone. */
static void
rotation_in(const struct sim_config *cfg)
{
	struct ub_pair *p = begin(cfg, (struct ub_pair_config){0});
	urma_target_seg_t *next = import_wrong(p, 4, 0, 0), *first = p->side[0].to_seg;

	sim_check(p->s,
		  softhca_urma_rotate_token(p->side[1].seg,
					    (urma_token_t){UB_PAIR_SEG_TOKEN ^ 4}) == URMA_SUCCESS,
		  "rotate");
	ub_pair_good_write(p, 0, 1);
	p->side[0].to_seg = next;
	ub_pair_good_write(p, 0, 2);
	sim_check(p->s, softhca_urma_commit_token(p->side[1].seg) == URMA_SUCCESS, "commit");
	ub_pair_good_write(p, 0, 3);
	p->side[0].to_seg = first;
	ub_pair_rw(p, 0, URMA_OPC_WRITE, FROM, TO, 64, 4);
	ub_pair_done(p, 0, 4, URMA_CR_REM_ACCESS_ABORT_ERR);
	urma_unimport_seg(next);
	ub_pair_close(p);
}

/* The segment goes in the middle: later packets are refused, and the Jetty goes on. */
static void
segment_goes_in(const struct sim_config *cfg)
{
	struct ub_pair *p = begin(cfg, (struct ub_pair_config){.small_mtu = true});
	unsigned int failed = 0;

	for (uint32_t i = 0; i < 100; i++)
		ub_pair_rw(p, 0, i % 2 ? URMA_OPC_READ : URMA_OPC_WRITE, RESULT, TO, LONG, i);
	ub_pair_done(p, 0, 0, URMA_CR_SUCCESS);
	sim_check(p->s, urma_unregister_seg(p->side[1].seg) == URMA_SUCCESS, "unregister");
	p->side[1].seg = NULL;
	memset(p->side[1].mem, 0, UB_PAIR_MEM);
	for (uint32_t i = 1; i < 100; i++) {
		urma_cr_t cr = ub_pair_next(p, p->side[0].send_jfc, 1000 * UB_PAIR_MS);

		UB_PAIR_EQ(p, cr.user_ctx, i);
		failed += cr.status == URMA_CR_REM_ACCESS_ABORT_ERR;
		/* a Read that was accepted before: its response could not be gathered */
		sim_check(p->s,
			  cr.status == URMA_CR_REM_ACCESS_ABORT_ERR ||
				  cr.status == URMA_CR_SUCCESS ||
				  (i % 2 && cr.status == URMA_CR_REM_DATA_POISON),
			  "status %u", cr.status);
	}
	sim_check(p->s, failed > 50, "%u failed", failed);
	all_zero(p, 1, TO, LONG); /* nothing is written behind the call */
	ub_pair_close(p);
}

static urma_target_seg_t *
another_segment(struct ub_pair *p)
{
	urma_seg_cfg_t cfg = {.va = (uintptr_t)p->side[0].mem,
			      .len = UB_PAIR_MEM,
			      .flag.bs.access = URMA_ACCESS_LOCAL_ONLY};
	urma_target_seg_t *t = urma_register_seg(p->side[0].ctx, &cfg);

	sim_check(p->s, t != NULL, "register: %s", softhca_urma_reason());
	return t;
}

/* Local memory that goes: the packets leave poisoned, the request says so, the others go on. */
static void
local_memory_goes_in(const struct sim_config *cfg)
{
	struct ub_pair *p = begin(cfg, (struct ub_pair_config){.small_mtu = true});
	urma_target_seg_t *seg = p->side[0].seg;
	unsigned int failed = 0;

	for (uint32_t i = 0; i < 100; i++)
		ub_pair_rw(p, 0, i % 2 ? URMA_OPC_READ : URMA_OPC_WRITE, i % 2 ? RESULT : FROM,
			   i % 2 ? FROM : TO, LONG, i);
	ub_pair_done(p, 0, 0, URMA_CR_SUCCESS);
	p->side[0].seg = another_segment(p);
	sim_check(p->s, urma_unregister_seg(seg) == URMA_SUCCESS, "unregister");
	memset(p->side[0].mem + RESULT, 0, LONG);
	for (uint32_t i = 1; i < 100; i++) {
		urma_cr_t cr = ub_pair_next(p, p->side[0].send_jfc, 1000 * UB_PAIR_MS);

		UB_PAIR_EQ(p, cr.user_ctx, i);
		failed += cr.status == URMA_CR_LOC_ACCESS_ERR;
		sim_check(p->s, cr.status == URMA_CR_LOC_ACCESS_ERR || cr.status == URMA_CR_SUCCESS,
			  "status %u", cr.status);
	}
	sim_check(p->s, failed > 50, "%u failed", failed);
	all_zero(p, 0, RESULT, LONG);
	ub_pair_good_write(p, 0, 5);
	ub_pair_close(p);
}

/* ---- receives ---- */

static void
send_to(struct ub_pair *p, uint32_t token_bits, uint32_t len, uint64_t id)
{
	urma_token_t token = {UB_PAIR_SEND_TOKEN ^ token_bits};
	urma_rjetty_t r = {.jetty_id = p->side[1].jetty->jetty_id,
			   .trans_mode = URMA_TM_RM,
			   .type = URMA_JETTY,
			   .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT};
	urma_target_jetty_t *t = urma_import_jetty(p->side[0].ctx, &r, &token);

	sim_check(p->s, t != NULL, "import: %s", softhca_urma_reason());
	ub_pair_send(p, 0, t, FROM, len, id);
	urma_unimport_jetty(t);
}

/* A wrong value takes no receive. */
static void
wrong_receiver_in(const struct sim_config *cfg)
{
	struct ub_pair *p = begin(cfg, (struct ub_pair_config){0});

	ub_pair_recv(p, 1, false, RECV, LONG, 9);
	send_to(p, 8, 0, 1);
	ub_pair_done(p, 0, 1, URMA_CR_REM_ACCESS_ABORT_ERR);
	send_to(p, 8, LONG, 2);
	ub_pair_done(p, 0, 2, URMA_CR_REM_ACCESS_ABORT_ERR);
	all_zero(p, 1, RECV, LONG);
	send_to(p, 0, LONG, 3);
	ub_pair_done(p, 0, 3, URMA_CR_SUCCESS);
	ub_pair_received(p, 1, 9, LONG);
	ub_pair_same(p, 1, RECV, FROM, LONG);
	ub_pair_close(p);
}

/* Longer than the receive: both are told, and no byte is written behind its end. */
static void
too_long_in(const struct sim_config *cfg)
{
	struct ub_pair *p = begin(cfg, (struct ub_pair_config){0});
	static const uint32_t lengths[] = {101, 5000, LONG};
	urma_cr_t cr;

	for (unsigned int i = 0; i < RTE_DIM(lengths); i++) {
		ub_pair_recv(p, 1, i % 2, RECV, 100, i);
		ub_pair_send(p, 0, i % 2 ? p->side[0].to_jfr : p->side[0].to_jetty, FROM,
			     lengths[i], i);
		ub_pair_done(p, 0, i, URMA_CR_REM_UNSUPPORTED_REQ_ERR);
		cr = ub_pair_next(p, p->side[1].recv_jfc, UB_PAIR_MS);
		UB_PAIR_EQ(p, cr.user_ctx, i);
		UB_PAIR_EQ(p, cr.status, URMA_CR_LOC_LEN_ERR);
		all_zero(p, 1, RECV + 100, LONG);
	}
	ub_pair_good_write(p, 0, 7);
	ub_pair_close(p);
}

/* The sender waits for a receive, and others on the channel do not. */
static void
not_ready_in(const struct sim_config *cfg)
{
	struct ub_pair *p = begin(cfg, (struct ub_pair_config){.min_rnr_timer = 3});
	urma_sge_t own = ub_pair_local(p, 0, FROM, LONG), peers = ub_pair_remote(p, 0, TO, LONG);
	urma_jfs_wr_t wr = ub_pair_request(p, 0, URMA_OPC_WRITE, 3);

	ub_pair_send(p, 0, p->side[0].to_jetty, FROM, LONG, 1);
	ub_pair_rw(p, 0, URMA_OPC_WRITE_IMM, FROM, TO, LONG, 2);
	sim_run_for(p->s, 5 * UB_PAIR_MS);
	wr.rw.src = (urma_sg_t){&own, 1};
	wr.rw.dst = (urma_sg_t){&peers, 1};
	sim_check(p->s, urma_post_jfs_wr(p->side[0].jfs, &wr, NULL) == URMA_SUCCESS, "post");
	ub_pair_done(p, 0, 3, URMA_CR_SUCCESS);
	ub_pair_recv(p, 1, false, RECV, LONG, 10);
	ub_pair_next(p, p->side[1].recv_jfc, UB_PAIR_MS);
	ub_pair_recv(p, 1, false, RECV, LONG, 11);
	ub_pair_next(p, p->side[1].recv_jfc, UB_PAIR_MS);
	ub_pair_done(p, 0, 1, URMA_CR_SUCCESS);
	ub_pair_done(p, 0, 2, URMA_CR_SUCCESS);
	sim_check(p->s, ub_pair_counter(p, 0, HCA_CTR_ub_segments_reissued) > 20, "no retries");
	ub_pair_close(p);
}

static void
not_ready_for_long_in(const struct sim_config *cfg)
{
	struct ub_pair *p = begin(cfg, (struct ub_pair_config){.min_rnr_timer = 3, .rnr_retry = 2});

	ub_pair_send(p, 0, p->side[0].to_jetty, FROM, LONG, 1);
	ub_pair_send(p, 0, p->side[0].to_jfr, FROM, 10, 2);
	ub_pair_done(p, 0, 1, URMA_CR_RNR_RETRY_CNT_EXC_ERR);
	ub_pair_done(p, 0, 2, URMA_CR_RNR_RETRY_CNT_EXC_ERR);
	UB_PAIR_EQ(p, ub_pair_counter(p, 1, HCA_CTR_ub_requests_not_ready), 6);
	ub_pair_good_write(p, 0, 3);
	ub_pair_close(p);
}

/* ---- queues ---- */

/* Sends to a Jetty that is destroyed meanwhile are refused; those to the JFR arrive. */
static void
receiver_goes_in(const struct sim_config *cfg)
{
	struct ub_pair *p =
		begin(cfg, (struct ub_pair_config){.small_mtu = true, .err_timeout = 24});
	uint32_t n = 60, received = 0, refused_n = 0;

	for (unsigned int i = 0; i < 2; i++)
		sim_impair(p->s, i, &bad_link);
	for (uint32_t i = 0; i < n; i++) {
		ub_pair_recv(p, 1, i % 2, RECV + i * 32768, 30000, i);
		ub_pair_send(p, 0, i % 2 ? p->side[0].to_jfr : p->side[0].to_jetty, FROM + i, 30000,
			     i);
	}
	ub_pair_done(p, 0, 0, URMA_CR_SUCCESS);
	sim_check(p->s, urma_delete_jetty(p->side[1].jetty) == URMA_SUCCESS, "delete: %s",
		  softhca_urma_reason());
	p->side[1].jetty = NULL;
	for (uint32_t i = 1; i < n; i++) {
		urma_cr_t cr = ub_pair_next(p, p->side[0].send_jfc, 5000 * UB_PAIR_MS);

		UB_PAIR_EQ(p, cr.user_ctx, i);
		if (i % 2 == 0 && cr.status != URMA_CR_SUCCESS) {
			UB_PAIR_EQ(p, cr.status, URMA_CR_REM_UNSUPPORTED_REQ_ERR);
			refused_n++;
		} else {
			UB_PAIR_EQ(p, cr.status, URMA_CR_SUCCESS);
		}
	}
	while (received < n / 2) {
		urma_cr_t cr = ub_pair_next(p, p->side[1].recv_jfc, UB_PAIR_MS);

		UB_PAIR_EQ(p, cr.status, URMA_CR_SUCCESS);
		received += cr.flag.bs.jetty == 0;
	}
	sim_check(p->s, refused_n > 10, "%u were refused", refused_n);
	for (unsigned int i = 0; i < 2; i++)
		sim_impair(p->s, i, NULL);
	ub_pair_close(p);
}

static void
jfs_write(struct ub_pair *p, uint32_t at, uint32_t len, uint64_t id)
{
	urma_jfs_wr_flag_t flag = {.bs.complete_enable = 1};
	struct ub_pair_side *sd = &p->side[0];

	sim_check(p->s,
		  urma_write(sd->jfs, sd->to_jetty, sd->to_seg, sd->seg,
			     (uintptr_t)p->side[1].mem + TO + at, (uintptr_t)sd->mem + FROM + at,
			     len, flag, id) == URMA_SUCCESS,
		  "%s", softhca_urma_reason());
}

/* A Jetty with requests in the air is destroyed; the JFS on the same channel goes on. */
static void
sender_goes_in(const struct sim_config *cfg)
{
	struct ub_pair *p =
		begin(cfg, (struct ub_pair_config){.small_mtu = true, .err_timeout = 24});

	for (unsigned int i = 0; i < 2; i++)
		sim_impair(p->s, i, &bad_link);
	for (uint32_t i = 0; i < 20; i++) {
		ub_pair_rw(p, 0, URMA_OPC_WRITE, FROM, TO + UB_PAIR_PART / 2, LONG, 1000 + i);
		ub_pair_rw(p, 0, URMA_OPC_READ, RESULT, FROM, LONG, 1000 + i);
		ub_pair_send(p, 0, p->side[0].to_jfr, FROM, LONG, 1000 + i);
		ub_pair_recv(p, 1, true, RECV, LONG, i);
		jfs_write(p, i * 30000, 30000, i);
	}
	for (uint32_t k = 0; k < 200; k++)
		sim_poll(p->s);
	sim_check(p->s, urma_delete_jetty(p->side[0].jetty) == URMA_SUCCESS, "delete: %s",
		  softhca_urma_reason());
	p->side[0].jetty = NULL;
	for (uint32_t i = 0; i < 20;) {
		urma_cr_t cr = ub_pair_next(p, p->side[0].send_jfc, 5000 * UB_PAIR_MS);

		if (cr.user_ctx >= 1000)
			continue;
		UB_PAIR_EQ(p, cr.user_ctx, i++);
		UB_PAIR_EQ(p, cr.status, URMA_CR_SUCCESS);
	}
	ub_pair_same(p, 1, TO, FROM, 600000);
	for (unsigned int i = 0; i < 2; i++)
		sim_impair(p->s, i, NULL);
	ub_pair_good_write(p, 1, 3);
	sim_run_for(p->s, 20 * UB_PAIR_MS);
	/* Sends that had left; one in the middle of which the Jetty went */
	for (urma_cr_t cr; urma_poll_jfc(p->side[1].recv_jfc, 1, &cr) == 1;)
		sim_check(p->s,
			  cr.status == URMA_CR_SUCCESS || cr.status == URMA_CR_LOC_DATA_POISON,
			  "status %u", cr.status);
	ub_pair_close(p);
}

static void
set_state(struct ub_pair *p, urma_jetty_state_t state)
{
	urma_jetty_attr_t attr = {.mask = JETTY_STATE, .state = state};

	sim_check(p->s, urma_modify_jetty(p->side[0].jetty, &attr) == URMA_SUCCESS, "modify: %s",
		  softhca_urma_reason());
}

/* ERROR: all that is not complete is flushed, in order, and the end is told. */
static void
flush_in(const struct sim_config *cfg)
{
	struct ub_pair *p = begin(cfg, (struct ub_pair_config){.small_mtu = true});
	uint32_t flushed = 0;
	urma_cr_t cr;

	for (uint32_t i = 0; i < 100; i++)
		ub_pair_rw(p, 0, i % 2 ? URMA_OPC_READ : URMA_OPC_WRITE, RESULT, TO, LONG, i);
	ub_pair_recv(p, 0, false, RECV, 100, 1);
	ub_pair_done(p, 0, 0, URMA_CR_SUCCESS);
	set_state(p, URMA_JETTY_STATE_ERROR);
	for (uint32_t i = 1; i < 100; i++) {
		cr = ub_pair_next(p, p->side[0].send_jfc, UB_PAIR_MS);
		UB_PAIR_EQ(p, cr.user_ctx, i);
		flushed += cr.status == URMA_CR_WR_FLUSH_ERR;
		UB_PAIR_EQ(p, cr.status, flushed != 0 ? URMA_CR_WR_FLUSH_ERR : URMA_CR_SUCCESS);
	}
	sim_check(p->s, flushed > 50, "%u flushed", flushed);
	ub_pair_done(p, 0, 0, URMA_CR_WR_FLUSH_ERR_DONE);
	cr = ub_pair_next(p, p->side[0].recv_jfc, UB_PAIR_MS);
	UB_PAIR_EQ(p, cr.status, URMA_CR_WR_FLUSH_ERR);
	for (uint32_t i = 2; i < 5; i++) { /* and those that are posted now */
		ub_pair_recv(p, 0, false, RECV, 100, i);
		cr = ub_pair_next(p, p->side[0].recv_jfc, UB_PAIR_MS);
		UB_PAIR_EQ(p, cr.status, URMA_CR_WR_FLUSH_ERR);
		UB_PAIR_EQ(p, cr.user_ctx, i);
	}
	ub_pair_good_write(p, 1, 3);
	ub_pair_close(p);
}

/* A failure stops the queue; Ready lets it go on. */
static void
suspend_in(const struct sim_config *cfg)
{
	struct ub_pair *p = begin(cfg, (struct ub_pair_config){.suspend = true});
	urma_target_seg_t *wrong = import_wrong(p, 1, 0, 0), *good = p->side[0].to_seg;

	ub_pair_rw(p, 0, URMA_OPC_WRITE, FROM, TO, 64, 1);
	ub_pair_done(p, 0, 1, URMA_CR_SUCCESS);
	p->side[0].to_seg = wrong;
	ub_pair_rw(p, 0, URMA_OPC_WRITE, FROM, TO, LONG, 2);
	p->side[0].to_seg = good;
	ub_pair_done(p, 0, 2, URMA_CR_REM_ACCESS_ABORT_ERR);
	ub_pair_done(p, 0, 0, URMA_CR_WR_SUSPEND_DONE);
	ub_pair_rw(p, 0, URMA_OPC_WRITE, FROM, TO, 64, 3);
	ub_pair_nothing(p, UB_PAIR_MS);
	set_state(p, URMA_JETTY_STATE_READY);
	ub_pair_done(p, 0, 3, URMA_CR_SUCCESS);
	set_state(p, URMA_JETTY_STATE_SUSPENDED);
	ub_pair_done(p, 0, 0, URMA_CR_WR_SUSPEND_DONE);
	set_state(p, URMA_JETTY_STATE_READY);
	ub_pair_good_write(p, 0, 4);
	urma_unimport_seg(wrong);
	ub_pair_close(p);
}

/* ---- one peer ---- */

static urma_jetty_t *
open_rc(struct ub_pair *p, unsigned int side)
{
	struct ub_pair_side *sd = &p->side[side];
	urma_jfr_cfg_t receives = {.depth = 8,
				   .trans_mode = URMA_TM_RC,
				   .max_sge = 1,
				   .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT,
				   .token_value.token = UB_PAIR_SEND_TOKEN,
				   .jfc = sd->recv_jfc};
	urma_jetty_cfg_t cfg = {.jfs_cfg = {.depth = 8,
					    .trans_mode = URMA_TM_RC,
					    .max_sge = 1,
					    .rnr_retry = 7,
					    .jfc = sd->send_jfc},
				.jfr_cfg = &receives};
	urma_jetty_t *jetty = urma_create_jetty(sd->ctx, &cfg);

	sim_check(p->s, jetty != NULL, "Jetty: %s", softhca_urma_reason());
	return jetty;
}

static urma_target_jetty_t *
import_rc(struct ub_pair *p, unsigned int side, const urma_jetty_t *peer)
{
	urma_rjetty_t what = {.jetty_id = peer->jetty_id,
			      .trans_mode = URMA_TM_RC,
			      .type = URMA_JETTY,
			      .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT};
	urma_token_t token = {UB_PAIR_SEND_TOKEN};
	urma_target_jetty_t *t = urma_import_jetty(p->side[side].ctx, &what, &token);

	sim_check(p->s, t != NULL, "import: %s", softhca_urma_reason());
	return t;
}

static void
send_rc(struct ub_pair *p, urma_jetty_t *from, uint64_t id)
{
	urma_sge_t own = ub_pair_local(p, 0, FROM, LONG);
	urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND,
			    .user_ctx = id,
			    .flag.bs.complete_enable = 1,
			    .send.src = {&own, 1}};

	sim_check(p->s, urma_post_jetty_send_wr(from, &wr, NULL) == URMA_SUCCESS, "post: %s",
		  softhca_urma_reason());
}

static void
receive_rc(struct ub_pair *p, urma_jetty_t *jetty, uint64_t id)
{
	urma_sge_t sge = ub_pair_local(p, 1, RECV, LONG);
	urma_jfr_wr_t wr = {.src = {&sge, 1}, .user_ctx = id};

	sim_check(p->s, urma_post_jetty_recv_wr(jetty, &wr, NULL) == URMA_SUCCESS, "receive: %s",
		  softhca_urma_reason());
}

/*
 * A bound Jetty waits until its peer is bound too, then only the two talk: a stranger with the
 * right token, on the same host and channel, is refused and takes no receive; after unbinding the
 * former peer is not served either.
 */
static void
one_peer_in(const struct sim_config *cfg)
{
	struct ub_pair *p = begin(cfg, (struct ub_pair_config){.tps = 2});
	urma_jetty_t *a = open_rc(p, 0), *b = open_rc(p, 1);
	urma_target_jetty_t *to_b = import_rc(p, 0, b), *to_a = import_rc(p, 1, a);

	receive_rc(p, b, 7);
	UB_PAIR_EQ(p, urma_bind_jetty(a, to_b), URMA_SUCCESS);
	send_rc(p, a, 1);
	ub_pair_nothing(p, UB_PAIR_MS);
	sim_check(p->s, ub_pair_counter(p, 1, HCA_CTR_ub_tc_alone) != 0, "it has to wait");
	UB_PAIR_EQ(p, urma_bind_jetty(b, to_a), URMA_SUCCESS);
	ub_pair_done(p, 0, 1, URMA_CR_SUCCESS);
	ub_pair_received(p, 1, 7, LONG);
	ub_pair_same(p, 1, RECV, FROM, LONG);
	receive_rc(p, b, 8);
	ub_pair_send(p, 0, to_b, FROM, LONG, 2); /* of the other Jetty, which is of mode RM */
	ub_pair_done(p, 0, 2, URMA_CR_REM_ACCESS_ABORT_ERR);
	UB_PAIR_EQ(p, ub_pair_counter(p, 1, HCA_CTR_ub_tc_stranger), 1);
	ub_pair_nothing(p, UB_PAIR_MS);
	send_rc(p, a, 3);
	ub_pair_done(p, 0, 3, URMA_CR_SUCCESS);
	ub_pair_received(p, 1, 8, LONG);
	ub_pair_good_write(p, 0, 4);
	UB_PAIR_EQ(p, urma_unbind_jetty(b), URMA_SUCCESS);
	receive_rc(p, b, 9);
	send_rc(p, a, 5);
	ub_pair_nothing(p, UB_PAIR_MS);
	UB_PAIR_EQ(p, urma_bind_jetty(b, to_a), URMA_SUCCESS);
	ub_pair_done(p, 0, 5, URMA_CR_SUCCESS);
	ub_pair_received(p, 1, 9, LONG);
	UB_PAIR_EQ(p, ub_pair_counter(p, 0, HCA_CTR_ub_not_for_peer), 0);
	UB_PAIR_EQ(p, urma_unbind_jetty(a), URMA_SUCCESS);
	UB_PAIR_EQ(p, urma_unbind_jetty(b), URMA_SUCCESS);
	UB_PAIR_EQ(p, urma_delete_jetty(a), URMA_SUCCESS);
	UB_PAIR_EQ(p, urma_delete_jetty(b), URMA_SUCCESS);
	UB_PAIR_EQ(p, urma_unimport_jetty(to_a), URMA_SUCCESS);
	UB_PAIR_EQ(p, urma_unimport_jetty(to_b), URMA_SUCCESS);
	ub_pair_close(p);
}

/* ---- channels ---- */

/* One of two TPs loses its peer's end: its requests fail, all others arrive over the other. */
static void
tp_dies_in(const struct sim_config *cfg)
{
	struct ub_pair *p =
		begin(cfg, (struct ub_pair_config){.tps = 2, .rto_base = 100, .retries = 2});
	unsigned int failed = 0;

	ub_pair_good_write(p, 0, 1);
	ub_pair_close_tp(p, 1, 1);
	for (uint32_t i = 0; i < 100; i++)
		ub_pair_rw(p, 0, i % 2 ? URMA_OPC_READ : URMA_OPC_WRITE, i % 2 ? RESULT : FROM,
			   i % 2 ? FROM : TO, 5000, i);
	for (uint32_t i = 0; i < 100; i++) {
		urma_cr_t cr = ub_pair_next(p, p->side[0].send_jfc, 1000 * UB_PAIR_MS);

		UB_PAIR_EQ(p, cr.user_ctx, i);
		failed += cr.status != URMA_CR_SUCCESS;
		if (cr.status != URMA_CR_SUCCESS)
			UB_PAIR_EQ(p, cr.status, URMA_CR_ACK_TIMEOUT_ERR);
	}
	sim_check(p->s, failed != 0 && failed < 60, "%u failed", failed);
	UB_PAIR_EQ(p, hca_tp_state(ub_pair_tp(p, 0, 1)), HCA_TPS_ERROR);
	ub_pair_good_write(p, 0, 2);
	ub_pair_close(p);
}

/* No way back for longer than a request waits; then there is one, and the Jetty goes on. */
static void
no_answer_in(const struct sim_config *cfg)
{
	static const struct hca_impair dead = {.drop = 1};
	struct ub_pair *p =
		begin(cfg,
		      (struct ub_pair_config){.err_timeout = 8, .rto_base = 4000, .retries = 15});

	ub_pair_good_write(p, 0, 1);
	sim_impair(p->s, 1, &dead);
	ub_pair_rw(p, 0, URMA_OPC_WRITE, FROM, TO, LONG, 2);
	ub_pair_atomic(p, 0, URMA_OPC_FADD, RESULT, TO + UB_PAIR_PART - 8, 8, 1, 3);
	ub_pair_done(p, 0, 2, URMA_CR_ACK_TIMEOUT_ERR);
	ub_pair_done(p, 0, 3, URMA_CR_ACK_TIMEOUT_ERR);
	sim_impair(p->s, 1, NULL);
	sim_run_for(p->s, 100 * UB_PAIR_MS);
	UB_PAIR_EQ(p, p->side[1].mem[TO + UB_PAIR_PART - 8], 1); /* once */
	UB_PAIR_EQ(p, ub_pair_tp(p, 0, 1)->tai.open_out, 0);
	ub_pair_good_write(p, 0, 4);
	ub_pair_close(p);
}

/*
 * A Jetty in error: where the ends have agreed to report it the sender gets the error at once, else
 * the Send is dropped without a word, and the sender's own timeout ends it.
 */
static void
send_to_dead_one(const struct sim_config *cfg, bool silent)
{
	struct ub_pair *p =
		begin(cfg, (struct ub_pair_config){.silent = silent, .err_timeout = 12});
	urma_jetty_attr_t attr = {.mask = JETTY_STATE, .state = URMA_JETTY_STATE_ERROR};

	sim_check(p->s, urma_modify_jetty(p->side[1].jetty, &attr) == URMA_SUCCESS, "%s",
		  softhca_urma_reason());
	ub_pair_send(p, 0, p->side[0].to_jetty, FROM, 100, 1);
	ub_pair_done(p, 0, 1, silent ? URMA_CR_ACK_TIMEOUT_ERR : URMA_CR_REM_ACCESS_ABORT_ERR);
	UB_PAIR_EQ(p, ub_pair_counter(p, 1, HCA_CTR_ub_tc_error), 1);
	UB_PAIR_EQ(p, ub_pair_counter(p, 1, HCA_CTR_ub_requests_unanswered), silent);
	UB_PAIR_EQ(p, ub_pair_next(p, p->side[1].send_jfc, UB_PAIR_MS).status,
		   URMA_CR_WR_FLUSH_ERR_DONE);
	ub_pair_good_write(p, 0, 2);
	ub_pair_close(p);
}

static void
dead_jetty_in(const struct sim_config *cfg)
{
	send_to_dead_one(cfg, false);
	send_to_dead_one(cfg, true);
}

SIM_TEST(wrong_memory)
SIM_TEST(region_of_verbs)
SIM_TEST(rotation)
SIM_TEST(segment_goes)
SIM_TEST(local_memory_goes)
SIM_TEST(wrong_receiver)
SIM_TEST(too_long)
SIM_TEST(not_ready)
SIM_TEST(not_ready_for_long)
SIM_TEST(receiver_goes)
SIM_TEST(sender_goes)
SIM_TEST(flush)
SIM_TEST(suspend)
SIM_TEST(one_peer)
SIM_TEST(tp_dies)
SIM_TEST(no_answer)
SIM_TEST(dead_jetty)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_memory),
		cmocka_unit_test(region_of_verbs),
		cmocka_unit_test(rotation),
		cmocka_unit_test(segment_goes),
		cmocka_unit_test(local_memory_goes),
		cmocka_unit_test(wrong_receiver),
		cmocka_unit_test(too_long),
		cmocka_unit_test(not_ready),
		cmocka_unit_test(not_ready_for_long),
		cmocka_unit_test(receiver_goes),
		cmocka_unit_test(sender_goes),
		cmocka_unit_test(flush),
		cmocka_unit_test(suspend),
		cmocka_unit_test(one_peer),
		cmocka_unit_test(tp_dies),
		cmocka_unit_test(no_answer),
		cmocka_unit_test(dead_jetty),
	};

	return sim_main_of(tests, RTE_DIM(tests));
}
