/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A channel never waits for one of its users: faults of a Jetty, a segment, a program or a peer,
 * while a bystander uses the same channel. Its packets flow on: nothing is sent again, no timer
 * expires, and the bystander's requests take as long as before. Where the others' work takes turns
 * with it, as long as during the same work without a fault.
 *
 * SIM_ROUNDS: how often a receiver is not ready.
 */

#include "ub_bystander.h"
#include "ub_client.h"

#define PROGRAM "sim-ub-isolate"

#define FROM UB_PAIR_FROM
#define TO UB_PAIR_TO
#define RESULT UB_PAIR_READ
#define RECV UB_PAIR_RECV
#define EVERY 20u /* the bystander's requests between two faults */
#define MIB (1u << 20)

__attribute__((weak)) void __lsan_disable(void);
__attribute__((weak)) void __lsan_enable(void);

static struct ub_pair pair;

/* Requests of the other user: the test decides which completions are allowed. */
struct faulty {
	struct ub_bystander b;
	uint64_t posted, done;
	uint64_t allowed; /* bits of urma_cr_status_t */
	uint64_t count[64];
	uint32_t n; /* objects made so far */
	urma_jetty_t *jetty;
	urma_target_seg_t *seg, *imported;
	struct urma_segment bad;
	struct softhca_mr bad_mr;
	struct ub_client client;
	bool well; /* the fault in the middle of its work comes after it instead */
};

static struct faulty faulty;

#define ALLOW(status) (UINT64_C(1) << (status))
#define MADE(x, object) \
	sim_check((x)->b.p->s, (object) != NULL, #object ": %s", softhca_urma_reason())
#define FINE(x, call) \
	sim_check((x)->b.p->s, (call) == URMA_SUCCESS, #call ": %s", softhca_urma_reason())

static void
take(void *arg, const urma_cr_t *cr)
{
	struct faulty *x = arg;

	sim_check(x->b.p->s, x->allowed >> cr->status & 1, "request %lu: status %u",
		  (unsigned long)cr->user_ctx, cr->status);
	x->count[cr->status]++;
	x->done++;
}

static struct faulty *
begin(const struct sim_config *cfg, struct ub_pair_config c, uint64_t allowed,
      void (*disturb)(void *arg, uint32_t i))
{
	struct faulty *x = &faulty;

	c.sim = *cfg;
	c.rto_base = c.rto_base != 0 ? c.rto_base : 100000;
	memset(x, 0, sizeof(*x));
	ub_pair_open(&pair, &c);
	ub_bystander_open(&x->b, &pair);
	x->allowed = allowed;
	x->b.other = take;
	x->b.disturb = disturb;
	x->b.arg = x;
	return x;
}

/* Remaining requests also complete. */
static void
drain(struct faulty *x)
{
	while (x->done < x->posted) {
		urma_cr_t cr = ub_pair_next(x->b.p, x->b.p->side[0].send_jfc, 1000 * UB_PAIR_MS);

		take(x, &cr);
	}
}

/* Times the bystander during the same work with and without faults, which come during requests. */
static void
run_well_and_faulty(struct faulty *x, void (*fault)(void *arg, uint32_t i))
{
	uint64_t allowed = x->allowed;

	x->well = true;
	x->allowed &= ALLOW(URMA_CR_SUCCESS);
	ub_bystander_beside(&x->b);
	drain(x);
	x->well = false;
	x->allowed = allowed;
	x->b.during = fault;
	ub_bystander_run(&x->b);
	x->b.during = NULL;
}

static void
finish(struct faulty *x)
{
	drain(x);
	ub_bystander_check(&x->b);
	UB_PAIR_EQ(x->b.p, hca_tp_state(ub_pair_tp(x->b.p, 0, 1)), HCA_TPS_ACTIVE);
	UB_PAIR_EQ(x->b.p, hca_tp_state(ub_pair_tp(x->b.p, 1, 1)), HCA_TPS_ACTIVE);
	ub_pair_close(x->b.p);
}

/* ---- an unknown key ---- */

static void
use_bad_key(void *arg, uint32_t i)
{
	struct faulty *x = arg;
	struct ub_pair *p = x->b.p;
	urma_target_seg_t *good = p->side[0].seg;

	if (i % EVERY != 0)
		return;
	p->side[0].seg = x->well ? good : &x->bad.pub;
	ub_pair_rw(p, 0, URMA_OPC_WRITE, FROM, TO, 20000, x->posted++);
	ub_pair_rw(p, 0, URMA_OPC_READ, RESULT, FROM, 20000, x->posted++);
	ub_pair_send(p, 0, p->side[0].to_jfr, FROM, 20000, x->posted++);
	p->side[0].seg = good;
	ub_pair_recv(p, 1, true, RECV, 20000, i);
}

/* Receives end so; afterwards memory is as it was. */
static void
end_receives(struct faulty *x, urma_cr_status_t status)
{
	struct ub_pair *p = x->b.p;
	urma_cr_t cr;

	drain(x);
	while (urma_poll_jfc(p->side[1].recv_jfc, 1, &cr) == 1)
		UB_PAIR_EQ(p, cr.status, status);
	memset(p->side[1].mem + TO, 0, 20000);
	memset(p->side[1].mem + RECV, 0, 20000);
	memset(p->side[0].mem + RESULT, 0, 20000);
}

static void
bad_key_in(const struct sim_config *cfg)
{
	struct faulty *x = begin(cfg, (struct ub_pair_config){.small_mtu = true},
				 ALLOW(URMA_CR_SUCCESS), use_bad_key);
	struct ub_pair *p = x->b.p;

	x->bad = *(struct urma_segment *)p->side[0].seg;
	x->bad_mr = *x->bad.mr;
	x->bad_mr.lkey ^= 0x100;
	x->bad.mr = &x->bad_mr;
	x->well = true;
	ub_bystander_beside(&x->b);
	end_receives(x, URMA_CR_SUCCESS);
	x->well = false;
	x->allowed = ALLOW(URMA_CR_LOC_ACCESS_ERR);
	ub_bystander_run(&x->b);
	drain(x);
	sim_check(p->s, ub_pair_counter(p, 0, HCA_CTR_ub_poisoned) != 0, "nothing was poisoned");
	for (uint32_t i = 0; i < 20000; i++)
		UB_PAIR_EQ(p,
			   p->side[1].mem[TO + i] | p->side[0].mem[RESULT + i] |
				   p->side[1].mem[RECV + i],
			   0);
	end_receives(x, URMA_CR_LOC_DATA_POISON);
	finish(x);
}

/* ---- a Jetty that goes ---- */

static urma_jetty_t *
make_jetty(struct faulty *x, urma_context_t *ctx, urma_jfc_t *send_jfc, urma_jfc_t *recv_jfc)
{
	urma_jfr_cfg_t r = {.depth = 16,
			    .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT,
			    .trans_mode = URMA_TM_RM,
			    .jfc = recv_jfc,
			    .token_value.token = UB_PAIR_SEND_TOKEN};
	urma_jetty_cfg_t cfg = {
		.jfs_cfg = {.depth = 16, .trans_mode = URMA_TM_RM, .rnr_retry = 7, .jfc = send_jfc},
		.jfr_cfg = &r};
	urma_jetty_t *jetty = urma_create_jetty(ctx, &cfg);

	MADE(x, jetty);
	return jetty;
}

/* One that writes or reads 1 MiB. */
static void
work_of_jetty(void *arg, uint32_t i)
{
	struct faulty *x = arg;
	struct ub_pair *p = x->b.p;
	struct ub_pair_side *sd = &p->side[0];
	urma_jetty_t *usual = sd->jetty;

	if (i % EVERY == 0) {
		x->jetty = sd->jetty = make_jetty(x, sd->ctx, sd->send_jfc, sd->recv_jfc);
		ub_pair_rw(p, 0, x->n % 2 ? URMA_OPC_READ : URMA_OPC_WRITE,
			   x->n % 2 ? RESULT : FROM, x->n % 2 ? FROM : TO, MIB, 0);
		sd->jetty = usual;
		x->n++;
		x->posted += x->well;
	} else if (x->well && i % EVERY == EVERY - 1) {
		drain(x);
		FINE(x, urma_delete_jetty(x->jetty));
	}
}

static void
destroy_jetty(void *arg, uint32_t i)
{
	struct faulty *x = arg;

	if (i % EVERY == 1)
		FINE(x, urma_delete_jetty(x->jetty));
}

static void
destroyed_in(const struct sim_config *cfg)
{
	struct faulty *x =
		begin(cfg, (struct ub_pair_config){0}, ALLOW(URMA_CR_SUCCESS), work_of_jetty);
	struct ub_pair *p = x->b.p;
	uint64_t packets = ub_pair_counter(p, 0, HCA_CTR_ub_packets);

	run_well_and_faulty(x, destroy_jetty);
	sim_check(p->s, ub_pair_counter(p, 0, HCA_CTR_ub_packets) - packets > 100,
		  "it sent nothing");
	sim_check(p->s, x->done < 2 * UB_BYSTANDER_REQUESTS / EVERY, "all was done in time");
	finish(x);
}

/* ---- a receiver without receives ---- */

static void
send_to_busy_one(void *arg, uint32_t i)
{
	struct faulty *x = arg;

	if (x->posted == 0)
		ub_pair_send(x->b.p, 0, x->b.p->side[0].to_jetty, FROM, 100, x->posted++);
}

static void
no_receives_in(const struct sim_config *cfg)
{
	uint64_t rounds = sim_env("SIM_ROUNDS", 300), before;
	struct faulty *x = begin(
		cfg, (struct ub_pair_config){.min_rnr_timer = 1, .rnr_retry = 7, .err_timeout = 31},
		ALLOW(URMA_CR_SUCCESS), send_to_busy_one);
	struct ub_pair *p = x->b.p;

	before = ub_pair_counter(p, 1, HCA_CTR_ub_requests_not_ready);
	do
		ub_bystander_run(&x->b);
	while (ub_pair_counter(p, 1, HCA_CTR_ub_requests_not_ready) - before < rounds);
	UB_PAIR_EQ(p, x->done, 0);
	ub_pair_recv(p, 1, false, RECV, 100, 5);
	ub_pair_received(p, 1, 5, 100);
	finish(x);
}

/* ---- a program that is killed ---- */

/* Another client of side 0, whose memory is leaked as it dies. */
static void
make_client(struct faulty *x)
{
	if (__lsan_disable != NULL)
		__lsan_disable();
	ub_client_open(x->b.p, &x->client, &(struct ub_client_config){0});
	if (__lsan_enable != NULL)
		__lsan_enable();
}

/* With a Jetty that has much to do. */
static void
start_client(struct faulty *x)
{
	struct ub_pair *p = x->b.p;
	struct ub_pair_side usual = p->side[0];

	make_client(x);
	p->side[0] = x->client.own;
	for (uint32_t k = 0; k < 8; k++)
		ub_pair_rw(p, 0, k % 2 ? URMA_OPC_READ : URMA_OPC_WRITE, k % 2 ? RESULT : FROM,
			   k % 2 ? FROM : TO, MIB / 4, k);
	p->side[0] = usual;
}

static void
work_of_client(void *arg, uint32_t i)
{
	struct faulty *x = arg;

	if (i % EVERY == 0)
		start_client(x);
	if (!x->well || i % EVERY != EVERY - 1)
		return;
	for (uint32_t k = 0; k < 8; k++) {
		urma_cr_t cr = ub_pair_next(x->b.p, x->client.own.send_jfc, 1000 * UB_PAIR_MS);

		UB_PAIR_EQ(x->b.p, cr.status, URMA_CR_SUCCESS);
	}
	ub_client_kill(x->b.p, &x->client);
}

static void
kill_client(void *arg, uint32_t i)
{
	struct faulty *x = arg;
	urma_cr_t cr[8];

	if (i % EVERY != 1)
		return;
	sim_check(x->b.p->s, urma_poll_jfc(x->client.own.send_jfc, 8, cr) < 8,
		  "all was done in time");
	ub_client_kill(x->b.p, &x->client);
}

static void
killed_in(const struct sim_config *cfg)
{
	struct faulty *x = begin(cfg, (struct ub_pair_config){0}, 0, work_of_client);

	run_well_and_faulty(x, kill_client);
	finish(x);
}

/* ---- a program that uses the key of another one's memory ---- */

/* Its payload follows one that the memory's owner sends, in the same burst of packets. */
static void
key_of_another_in(const struct sim_config *cfg)
{
	struct faulty *x = begin(cfg, (struct ub_pair_config){0}, ALLOW(URMA_CR_SUCCESS), NULL);
	struct ub_pair *p = x->b.p;
	struct ub_pair_side usual = p->side[0], client;

	make_client(x);
	client = x->client.own;
	x->bad = *(struct urma_segment *)client.seg;
	x->bad_mr = *x->bad.mr;
	x->bad_mr.lkey = ((struct urma_segment *)usual.seg)->mr->lkey;
	x->bad.mr = &x->bad_mr;
	client.seg = &x->bad.pub;
	memset(p->side[1].mem + TO, 0, 4096 + 64);
	for (uint32_t k = 0; k < EVERY; k++) {
		urma_cr_t cr;

		p->side[0] = usual;
		ub_pair_rw(p, 0, URMA_OPC_WRITE, FROM, TO, 64, x->posted++);
		p->side[0] = client;
		ub_pair_rw(p, 0, URMA_OPC_WRITE, FROM, TO + 4096, 64, k);
		cr = ub_pair_next(p, client.send_jfc, 1000 * UB_PAIR_MS);
		UB_PAIR_EQ(p, cr.status, URMA_CR_LOC_ACCESS_ERR);
		p->side[0] = usual;
		drain(x);
	}
	ub_pair_same(p, 1, TO, FROM, 64);
	for (uint32_t k = 0; k < 64; k++)
		UB_PAIR_EQ(p, p->side[1].mem[TO + 4096 + k], 0);
	ub_client_kill(x->b.p, &x->client);
	finish(x);
}

/* ---- a segment that goes ---- */

static void
use_segment(struct faulty *x)
{
	struct ub_pair *p = x->b.p;
	urma_token_t token = {77};
	urma_seg_cfg_t cfg = {.va = (uintptr_t)p->side[1].mem + TO,
			      .len = MIB,
			      .token_value = token,
			      .flag.bs = {.token_policy = URMA_TOKEN_PLAIN_TEXT,
					  .access = URMA_ACCESS_READ | URMA_ACCESS_WRITE}};
	urma_target_seg_t *usual = p->side[0].to_seg;

	x->seg = urma_register_seg(p->side[1].ctx, &cfg);
	MADE(x, x->seg);
	x->imported = urma_import_seg(p->side[0].ctx, &x->seg->seg, &token, 0,
				      (urma_import_seg_flag_t){0});
	MADE(x, x->imported);
	p->side[0].to_seg = x->imported;
	for (uint32_t k = 0; k < 16; k++)
		ub_pair_rw(p, 0, k % 4 == 3 ? URMA_OPC_READ : URMA_OPC_WRITE,
			   k % 4 == 3 ? RESULT : FROM, TO, 60000, x->posted++);
	p->side[0].to_seg = usual;
}

static void
lose_segment(struct faulty *x)
{
	FINE(x, urma_unregister_seg(x->seg));
	memset(x->b.p->side[1].mem + TO, 0, MIB);
}

static void
work_on_segment(void *arg, uint32_t i)
{
	struct faulty *x = arg;

	if (i % EVERY == 0)
		use_segment(x);
	if (i % EVERY != EVERY - 1)
		return;
	drain(x);
	if (x->well)
		lose_segment(x);
	for (uint32_t k = 0; k < MIB; k++)
		UB_PAIR_EQ(x->b.p, x->b.p->side[1].mem[TO + k], 0);
	FINE(x, urma_unimport_seg(x->imported));
}

static void
lose_segment_midway(void *arg, uint32_t i)
{
	if (i % EVERY == 1)
		lose_segment(arg);
}

static void
segment_in(const struct sim_config *cfg)
{
	struct faulty *x = begin(cfg, (struct ub_pair_config){0},
				 ALLOW(URMA_CR_SUCCESS) | ALLOW(URMA_CR_REM_ACCESS_ABORT_ERR) |
					 ALLOW(URMA_CR_REM_DATA_POISON),
				 work_on_segment);

	run_well_and_faulty(x, lose_segment_midway);
	sim_check(x->b.p->s, x->count[URMA_CR_REM_ACCESS_ABORT_ERR] != 0, "all were in time");
	finish(x);
}

/* ---- rotation under load ---- */

static void
write_by(struct faulty *x, urma_target_seg_t *seg)
{
	struct ub_pair *p = x->b.p;
	urma_target_seg_t *usual = p->side[0].to_seg;

	p->side[0].to_seg = seg;
	ub_pair_rw(p, 0, x->posted % 3 == 2 ? URMA_OPC_READ : URMA_OPC_WRITE,
		   x->posted % 3 == 2 ? RESULT : FROM, TO, 3000, x->posted);
	p->side[0].to_seg = usual;
	x->posted++;
}

static urma_target_seg_t *
import_with(struct faulty *x, uint32_t value)
{
	urma_token_t token = {value};
	urma_seg_t seg = x->b.p->side[1].seg->seg;
	urma_target_seg_t *t =
		urma_import_seg(x->b.p->side[0].ctx, &seg, &token, 0, (urma_import_seg_flag_t){0});

	MADE(x, t);
	return t;
}

/* Takes completions until at most `open` requests are open. */
static void
keep(struct faulty *x, uint32_t open)
{
	while (x->posted - x->done > open) {
		urma_cr_t cr = ub_pair_next(x->b.p, x->b.p->side[0].send_jfc, 1000 * UB_PAIR_MS);

		take(x, &cr);
	}
}

/*
 * While two values are valid no request with either fails; when the old one is gone none succeeds
 * with it, and those with the new one, which are under way all the time, never notice.
 */
static void
rotation_in(const struct sim_config *cfg)
{
	struct ub_pair_config c = {.sim = *cfg, .rto_base = 100000};
	struct faulty *x = &faulty;
	struct ub_pair *p = &pair;
	urma_target_seg_t *old;

	memset(x, 0, sizeof(*x));
	x->b.p = p;
	ub_pair_open(p, &c);
	old = import_with(x, UB_PAIR_SEG_TOKEN);
	for (uint32_t round = 1; round <= 30; round++) {
		urma_target_seg_t *next = import_with(x, UB_PAIR_SEG_TOKEN + round);
		urma_token_t second = {UB_PAIR_SEG_TOKEN + round};

		x->allowed = ALLOW(URMA_CR_SUCCESS);
		for (uint32_t k = 0; k < 40; k++) {
			if (k == 5) /* at full load */
				FINE(x, softhca_urma_rotate_token(p->side[1].seg, second));
			write_by(x, k > 5 && k % 2 ? next : old);
			keep(x, 30);
		}
		keep(x, 0);
		for (uint32_t k = 0; k < 20; k++) {
			if (k == 10)
				FINE(x, softhca_urma_commit_token(p->side[1].seg));
			write_by(x, next);
			keep(x, 15);
		}
		keep(x, 0);
		x->allowed = ALLOW(URMA_CR_REM_ACCESS_ABORT_ERR);
		for (uint32_t k = 0; k < 20; k++)
			write_by(x, old);
		keep(x, 0);
		FINE(x, urma_unimport_seg(old));
		old = next;
	}
	UB_PAIR_EQ(p, x->count[URMA_CR_REM_ACCESS_ABORT_ERR], 30 * 20);
	UB_PAIR_EQ(p, ub_pair_counter(p, 1, HCA_CTR_ub_token_mismatch), 30 * 20);
	FINE(x, urma_unimport_seg(old));
	ub_pair_close(p);
}

/* ---- a Jetty that guesses tokens ---- */

#define GUESSES 64u

static void
guess(void *arg, uint32_t i)
{
	struct faulty *x = arg;
	urma_target_seg_t *usual = x->b.p->side[0].to_seg;

	keep(x, UB_PAIR_DEPTH - GUESSES);
	x->b.p->side[0].to_seg = x->imported;
	for (uint32_t k = 0; k < GUESSES; k++)
		ub_pair_rw(x->b.p, 0, URMA_OPC_WRITE, FROM, TO, 8, x->posted++);
	x->b.p->side[0].to_seg = usual;
}

/* A request with the right value. */
static void
write_rightly(struct faulty *x, urma_cr_status_t status)
{
	x->allowed = ALLOW(status);
	ub_pair_rw(x->b.p, 0, URMA_OPC_WRITE, FROM, TO, 8, x->posted++);
	drain(x);
}

/* More wrong values than the peer judges in a second: its TP lives, and others do not notice. */
static void
guesses_in(const struct sim_config *cfg)
{
	struct faulty *x =
		begin(cfg, (struct ub_pair_config){0}, ALLOW(URMA_CR_REM_ACCESS_ABORT_ERR), guess);
	struct ub_pair *p = x->b.p;
	uint64_t began = p->s->now;

	x->imported = import_with(x, UB_PAIR_SEG_TOKEN ^ 1);
	ub_bystander_beside(&x->b);
	while (ub_pair_counter(p, 1, HCA_CTR_ub_token_floods) == 0)
		guess(x, 0);
	sim_check(p->s, p->s->now - began < 1000 * UB_PAIR_MS, "it took a second");
	ub_bystander_run(&x->b);
	drain(x);
	sim_check(p->s, ub_pair_counter(p, 1, HCA_CTR_ub_token_suspect) != 0, "all were judged");
	/* right values are refused, until the second is over */
	write_rightly(x, URMA_CR_REM_ACCESS_ABORT_ERR);
	sim_run_for(p->s, 1000 * UB_PAIR_MS);
	write_rightly(x, URMA_CR_SUCCESS);
	FINE(x, urma_unimport_seg(x->imported));
	finish(x);
}

/* ---- a peer that is gone ---- */

/* The channel dies when its timeouts are used up, no sooner and not much later. */
static void
peer_gone_in(const struct sim_config *cfg)
{
	struct ub_pair_config c = {.sim = *cfg, .rto_base = 100, .retries = 3};
	uint64_t series = (100 + 200 + 400 + 800) * 1000, most = series + series / 10, began, took;
	struct ub_pair *p = &pair;

	ub_pair_open(p, &c);
	ub_pair_rw(p, 0, URMA_OPC_WRITE, FROM, TO, 64, 1);
	ub_pair_done(p, 0, 1, URMA_CR_SUCCESS);
	ub_pair_close_tp(p, 1, 1);
	began = p->s->now;
	for (uint32_t i = 0; i < 20; i++)
		ub_pair_rw(p, 0, i % 2 ? URMA_OPC_READ : URMA_OPC_WRITE, i % 2 ? RESULT : FROM,
			   i % 2 ? FROM : TO, 9000, i);
	for (uint32_t i = 0; i < 20; i++)
		ub_pair_done(p, 0, i, URMA_CR_ACK_TIMEOUT_ERR);
	took = p->s->now - began;
	/* stages take turns at random, so each of the four timeouts is seen later */
	if (cfg->executor == SIM_STEPPED)
		most += series / 10;
	/* one is put off when its stage was not polled in time; the stepped executor does so */
	most += ub_pair_counter(p, 0, HCA_CTR_ub_tp_timeouts_put_off) * 800000;
	sim_check(p->s, took >= series && took < most, "%lu ns, expected %lu to %lu",
		  (unsigned long)took, (unsigned long)series, (unsigned long)most);
	UB_PAIR_EQ(p, hca_tp_state(ub_pair_tp(p, 0, 1)), HCA_TPS_ERROR);
	UB_PAIR_EQ(p, ub_pair_counter(p, 0, HCA_CTR_ub_tp_retries_exceeded), 1);
	/* requests posted now fail at once */
	began = p->s->now;
	ub_pair_rw(p, 0, URMA_OPC_WRITE, FROM, TO, 64, 30);
	ub_pair_done(p, 0, 30, URMA_CR_ACK_TIMEOUT_ERR);
	sim_check(p->s, p->s->now - began < 100000, "a dead channel takes %lu ns",
		  (unsigned long)(p->s->now - began));
	ub_pair_close_tp(p, 0, 1);
	for (unsigned int i = 0; i < 2; i++) {
		ub_pair_open_tp(p, i, 1);
		ub_pair_set_group(p, i);
	}
	ub_pair_rw(p, 0, URMA_OPC_WRITE, FROM + 5, TO, 5000, 31);
	ub_pair_done(p, 0, 31, URMA_CR_SUCCESS);
	ub_pair_same(p, 1, TO, FROM + 5, 5000);
	ub_pair_close(p);
}

SIM_TEST(bad_key)
SIM_TEST(destroyed)
SIM_TEST(no_receives)
SIM_TEST(killed)
SIM_TEST(key_of_another)
SIM_TEST(segment)
SIM_TEST(rotation)
SIM_TEST(guesses)
SIM_TEST(peer_gone)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_key),	  cmocka_unit_test(destroyed),
		cmocka_unit_test(no_receives),	  cmocka_unit_test(killed),
		cmocka_unit_test(key_of_another), cmocka_unit_test(segment),
		cmocka_unit_test(rotation),	  cmocka_unit_test(guesses),
		cmocka_unit_test(peer_gone),
	};

	return sim_main_of(tests, RTE_DIM(tests));
}
