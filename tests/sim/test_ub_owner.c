/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Objects of another program, named by one with all their numbers, with a bystander on the same
 * channel: queues of the peer by well-known and own numbers without their tokens, TPs, groups and
 * queues in WQEs, Jettys in doorbells. Each is refused with one counter or error, its owner keeps
 * its objects, and the bystander is not disturbed.
 *
 * Keys of memory: test_ub_isolate.c; a group that was not imported: test_ub_stranger.c.
 */

#include "ub_counters.h"
#include "ub_bystander.h"
#include "ub_client.h"

#include "lib_doorbell.h"

#define PROGRAM "sim-ub-owner"

#define FROM UB_PAIR_FROM
#define TO UB_PAIR_TO
#define RECV UB_PAIR_RECV
#define RESULT UB_PAIR_READ
#define LENGTH 64u
#define EVERY 5u /* the bystander's requests between two attempts */
#define ATTEMPTS (UB_BYSTANDER_REQUESTS / EVERY)

static struct ub_pair pair;

/* Attempts of an attacker, each of which ends with this status. */
struct attempts {
	struct ub_bystander b;
	void (*attempt)(struct attempts *x, uint32_t n);
	urma_cr_status_t status;
	uint64_t posted, done;
};

#define MADE(p, object) sim_check((p)->s, (object) != NULL, #object ": %s", softhca_urma_reason())
#define ENDED(p, call) \
	sim_check((p)->s, (call) == URMA_SUCCESS, #call ": %s", softhca_urma_reason())

static void
take(void *arg, const urma_cr_t *cr)
{
	struct attempts *x = arg;

	sim_check(x->b.p->s, cr->user_ctx == x->done && cr->status == x->status,
		  "completion of %lu with status %u, not of %lu with %u",
		  (unsigned long)cr->user_ctx, cr->status, (unsigned long)x->done, x->status);
	x->done++;
}

static void
disturb(void *arg, uint32_t i)
{
	struct attempts *x = arg;

	if (i % EVERY == 0)
		x->attempt(x, i / EVERY);
}

static struct ub_pair *
begin(const struct sim_config *cfg, struct attempts *x, urma_cr_status_t status,
      void (*attempt)(struct attempts *x, uint32_t n))
{
	const struct ub_pair_config c = {.sim = *cfg, .rto_base = 100000};

	memset(x, 0, sizeof(*x));
	x->attempt = attempt;
	x->status = status;
	ub_pair_open(&pair, &c);
	ub_bystander_open(&x->b, &pair);
	x->b.other = take;
	x->b.disturb = disturb;
	x->b.arg = x;
	return &pair;
}

/* All attempts during the bystander's work; these counters have moved, and no other one. */
static void
run(struct attempts *x, const char *what, const struct ub_expected *expected, unsigned int n)
{
	struct ub_pair *p = x->b.p;
	uint64_t requests = ub_pair_counter(p, 1, HCA_CTR_ub_requests_done);
	struct ub_counters counters;

	ub_counters_begin(&counters, p);
	ub_bystander_run(&x->b);
	sim_run_for(p->s, UB_PAIR_MS);
	ub_counters_check(&counters, p, what, expected, n);
	UB_PAIR_EQ(p, ub_pair_counter(p, 1, HCA_CTR_ub_requests_done),
		   requests + UB_BYSTANDER_REQUESTS);
	for (unsigned int side = 0; side < 2; side++)
		UB_PAIR_EQ(p, hca_tp_state(ub_pair_tp(p, side, 1)), HCA_TPS_ACTIVE);
}

/* ---- queues of the peer ---- */

#define KNOWN_JETTY 40u
#define KNOWN_JFR 41u
#define JETTY_TOKEN 0x40404u
#define JFR_TOKEN 0x41414u
#define QUEUES 4u
#define GUESSES 4u

/* A Jetty and a JFR of another client of side 1, each by both of its numbers. */
struct queues {
	struct attempts x;
	struct ub_client owner;
	urma_jfr_t *jfr;
	urma_target_jetty_t *guess[QUEUES][GUESSES], *right[QUEUES];
};

static struct queues queues;

static urma_target_jetty_t *
import_queue(struct ub_pair *p, uint32_t id, bool jfr, uint32_t token)
{
	urma_rjetty_t r = {.jetty_id = p->side[1].jetty->jetty_id,
			   .trans_mode = URMA_TM_RM,
			   .type = jfr ? URMA_JFR : URMA_JETTY,
			   .flag.bs.token_policy =
				   token != 0 ? URMA_TOKEN_PLAIN_TEXT : URMA_TOKEN_NONE};
	urma_token_t value = {token};
	urma_target_jetty_t *t;

	r.jetty_id.id = id;
	t = urma_import_jetty(p->side[0].ctx, &r, &value);
	MADE(p, t);
	return t;
}

static void
open_owner(struct ub_pair *p, struct queues *q)
{
	urma_jfr_cfg_t cfg = {.id = KNOWN_JFR,
			      .depth = 16,
			      .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT,
			      .trans_mode = URMA_TM_RM,
			      .token_value.token = JFR_TOKEN};

	ub_client_open(
		p, &q->owner,
		&(struct ub_client_config){.side = 1, .id = KNOWN_JETTY, .token = JETTY_TOKEN});
	cfg.jfc = q->owner.own.recv_jfc;
	q->jfr = urma_create_jfr(q->owner.own.ctx, &cfg);
	MADE(p, q->jfr);
	q->owner.own.jfr = q->jfr;
}

static void
import_queues(struct ub_pair *p, struct queues *q)
{
	const uint32_t ids[QUEUES] = {KNOWN_JETTY,
				      ((struct urma_queue *)q->owner.own.jetty)->number, KNOWN_JFR,
				      HCA_TC_JFR | ((struct urma_jfrq *)q->jfr)->number};

	for (uint32_t k = 0; k < QUEUES; k++) {
		/* none, that of another client's queues, that of memory, that of the other queue */
		const uint32_t guesses[GUESSES] = {0, UB_PAIR_SEND_TOKEN, UB_PAIR_SEG_TOKEN,
						   k < 2 ? JFR_TOKEN : JETTY_TOKEN};

		for (uint32_t g = 0; g < GUESSES; g++)
			q->guess[k][g] = import_queue(p, ids[k], k >= 2, guesses[g]);
		q->right[k] = import_queue(p, ids[k], k >= 2, k < 2 ? JETTY_TOKEN : JFR_TOKEN);
	}
}

static void
close_queues(struct ub_pair *p, struct queues *q)
{
	for (uint32_t k = 0; k < QUEUES; k++) {
		for (uint32_t g = 0; g < GUESSES; g++)
			ENDED(p, urma_unimport_jetty(q->guess[k][g]));
		ENDED(p, urma_unimport_jetty(q->right[k]));
	}
	ENDED(p, urma_delete_jfr(q->jfr));
	ub_client_close(p, &q->owner);
}

static void
send_with_guess(struct attempts *x, uint32_t n)
{
	struct queues *q = (struct queues *)x;

	ub_pair_send(x->b.p, 0, q->guess[n / GUESSES % QUEUES][n % GUESSES], FROM, LENGTH,
		     x->posted++);
}

/* Two receives of each, by both numbers of it. */
static void
post_receives(struct ub_pair *p, struct queues *q)
{
	struct ub_pair_side usual = p->side[1];

	p->side[1] = q->owner.own;
	for (uint32_t k = 0; k < QUEUES; k++)
		ub_pair_recv(p, 1, k >= 2, RECV + k * LENGTH, LENGTH, k);
	p->side[1] = usual;
}

/* Another program on that side cannot take one of these numbers for itself, nor give it away. */
static void
not_taken(struct ub_pair *p)
{
	struct hca_ctl_known none = {.id = KNOWN_JETTY, .tc = HCA_TC_NONE};
	struct lib_context *other = (struct lib_context *)p->s->side[1].ctx;
	urma_jfr_cfg_t receives = {.depth = 16,
				   .trans_mode = URMA_TM_RM,
				   .jfc = p->side[1].recv_jfc};
	urma_jetty_cfg_t cfg = {
		.id = KNOWN_JETTY,
		.jfs_cfg = {.depth = 16, .trans_mode = URMA_TM_RM, .jfc = p->side[1].send_jfc},
		.jfr_cfg = &receives};
	int rc;

	sim_check(p->s,
		  urma_create_jetty(p->side[1].ctx, &cfg) == NULL &&
			  strstr(softhca_urma_reason(), "taken") != NULL,
		  "a number of two Jettys: %s", softhca_urma_reason());
	rc = urma_inside()->call(other, HCA_CTL_NAME_TC, HCA_CTL_REQUEST(NAME_TC, &none), NULL,
				 NULL);
	UB_PAIR_EQ(p, rc, -EINVAL);
}

static void
still_received(struct ub_pair *p, struct queues *q)
{
	for (uint32_t i = 0; i < QUEUES * LENGTH; i++)
		UB_PAIR_EQ(p, p->side[1].mem[RECV + i], 0);
	for (uint32_t k = 0; k < QUEUES; k++) {
		urma_cr_t cr;

		ub_pair_send(p, 0, q->right[k], FROM + k, LENGTH, k);
		ub_pair_done(p, 0, k, URMA_CR_SUCCESS);
		cr = ub_pair_next(p, q->owner.own.recv_jfc, UB_PAIR_MS);
		UB_PAIR_EQ(p, cr.user_ctx, k);
		UB_PAIR_EQ(p, cr.status, URMA_CR_SUCCESS);
		ub_pair_same(p, 1, RECV + k * LENGTH, FROM + k, LENGTH);
	}
}

static void
queue_in(const struct sim_config *cfg)
{
	struct queues *q = &queues;
	struct ub_pair *p = begin(cfg, &q->x, URMA_CR_REM_ACCESS_ABORT_ERR, send_with_guess);
	const struct ub_expected expected = {1, HCA_CTR_ub_tc_token, ATTEMPTS};

	open_owner(p, q);
	import_queues(p, q);
	post_receives(p, q);
	run(&q->x, "queues of another", &expected, 1);
	UB_PAIR_EQ(p, q->x.done, ATTEMPTS);
	not_taken(p);
	still_received(p, q);
	close_queues(p, q);
	ub_pair_close(p);
}

/* ---- WQEs ---- */

struct writer {
	struct attempts x;
	struct ub_client client; /* on side 0 */
};

static struct writer writer;

/* The UB unit of the WQE that was posted last, which the device has not read yet. */
static struct hca_ub_unit *
last_unit(const struct ub_client *c)
{
	const struct urma_queue *q = (const struct urma_queue *)c->own.jetty;
	uint8_t *wqe = q->sq.buf + (((q->sq.head - 1) & q->sq.mask) << q->sq.log_stride);

	return (struct hca_ub_unit *)(wqe + sizeof(struct hca_next_unit));
}

/* Peers that the client has not imported: by TP, and unknown ones. */
static uint32_t
number_of(struct ub_pair *p, uint32_t n)
{
	uint32_t tpn = ub_pair_tp(p, 0, 1)->cfg.own_tpn;
	const uint32_t numbers[] = {
		HCA_UB_MAKE_NUMBER(HCA_UB_TO_TPG, 0),
		HCA_UB_MAKE_NUMBER(HCA_UB_TO_TP, tpn),
		HCA_UB_MAKE_NUMBER(HCA_UB_TO_TP, tpn ^ 0x800000),
		HCA_UB_MAKE_NUMBER(HCA_UB_TO_TP, tpn & ~15u),
		HCA_UB_MAKE_NUMBER(HCA_UB_TO_TP, 0),
		HCA_UB_MAKE_NUMBER(HCA_UB_TO_TPG, 1),
		HCA_UB_MAKE_NUMBER(HCA_UB_TO_TPG, 0xffffff),
		HCA_UB_MAKE_NUMBER(HCA_UB_TO_TPG, 1u << 16),
	};

	return numbers[n % RTE_DIM(numbers)];
}

#define NUMBERS 8u	/* of number_of() */
#define NOT_IMPORTED 2u /* of these, those that exist: counted */

/* A Write, a Read, a Send or an atomic in turn. */
static void
post_as(struct writer *w, uint32_t n)
{
	struct ub_pair *p = w->x.b.p;
	struct ub_pair_side usual = p->side[0];
	uint64_t id = w->x.posted++;

	p->side[0] = w->client.own;
	if (n % 4 == 0)
		ub_pair_rw(p, 0, URMA_OPC_WRITE, FROM, TO, LENGTH, id);
	else if (n % 4 == 1)
		ub_pair_rw(p, 0, URMA_OPC_READ, RESULT, FROM, LENGTH, id);
	else if (n % 4 == 2)
		ub_pair_send(p, 0, p->side[0].to_jetty, FROM, LENGTH, id);
	else
		ub_pair_atomic(p, 0, URMA_OPC_FADD, RESULT, TO, 8, 1, id);
	p->side[0] = usual;
}

/* Completions of the other program. */
static void
poll_own(struct writer *w)
{
	urma_cr_t cr;

	while (urma_poll_jfc(w->client.own.send_jfc, 1, &cr) == 1)
		take(&w->x, &cr);
}

static void
name_number(struct attempts *x, uint32_t n)
{
	struct writer *w = (struct writer *)x;

	poll_own(w);
	post_as(w, n / NUMBERS);
	last_unit(&w->client)->number = hca_cpu_to_le32(number_of(x->b.p, n));
}

static void
check_writer(struct ub_pair *p, struct writer *w)
{
	poll_own(w);
	UB_PAIR_EQ(p, w->x.done, ATTEMPTS);
	for (uint32_t i = 0; i < LENGTH; i++)
		UB_PAIR_EQ(p,
			   p->side[1].mem[TO + i] | p->side[0].mem[RESULT + i] |
				   p->side[1].mem[RECV + i],
			   0);
}

static void
channel_in(const struct sim_config *cfg)
{
	struct writer *w = &writer;
	struct ub_pair *p = begin(cfg, &w->x, URMA_CR_ACK_TIMEOUT_ERR, name_number);
	const struct ub_expected expected = {0, HCA_CTR_ub_not_imported,
					     ATTEMPTS / NUMBERS * NOT_IMPORTED};

	p->strangers = true;
	ub_client_open(p, &w->client, &(struct ub_client_config){0});
	ub_pair_recv(p, 1, false, RECV, LENGTH, 7);
	run(&w->x, "channels of another", &expected, 1);
	check_writer(p, w);
	ub_client_close(p, &w->client);
	ub_pair_close(p);
}

/* A Jetty that is bound to one queue of the peer names another one, or one that is not there. */
static void
name_queue(struct attempts *x, uint32_t n)
{
	struct writer *w = (struct writer *)x;
	const uint32_t others[] = {((struct urma_jfrq *)x->b.p->side[1].jfr)->number | HCA_TC_JFR,
				   0, KNOWN_JETTY, 0x7abcd};

	poll_own(w);
	post_as(w, 2);
	last_unit(&w->client)->tc =
		hca_cpu_to_le32(HCA_UB_MAKE_TC(others[n % RTE_DIM(others)], n % 4 / 2, 0));
}

static void
bound_in(const struct sim_config *cfg)
{
	struct writer *w = &writer;
	struct ub_pair *p = begin(cfg, &w->x, URMA_CR_LOC_ACCESS_ERR, name_queue);
	const struct ub_expected expected = {0, HCA_CTR_ub_not_for_peer, ATTEMPTS};

	ub_client_open(p, &w->client, &(struct ub_client_config){.one_peer = true});
	ENDED(p, urma_bind_jetty(w->client.own.jetty, w->client.own.to_jetty));
	ub_pair_recv(p, 1, false, RECV, LENGTH, 7);
	run(&w->x, "queues of others", &expected, 1);
	check_writer(p, w);
	ENDED(p, urma_unbind_jetty(w->client.own.jetty));
	ub_client_close(p, &w->client);
	ub_pair_close(p);
}

/* ---- doorbells ---- */

/*
 * Those of the bystander's JFS and of its Jetty, and of unknown ones, rung in another client's
 * page.
 */
static void
ring(struct attempts *x, uint32_t n)
{
	struct writer *w = (struct writer *)x;
	const struct ub_pair_side *sd = &x->b.p->side[0];
	const uint32_t numbers[] = {((struct urma_queue *)sd->jfs)->number,
				    ((struct urma_queue *)sd->jetty)->number,
				    ((struct urma_queue *)sd->jfs)->number ^ 0x40000, 0x7abcd};
	const uint8_t ops[] = {HCA_OP_RDMA_WRITE, HCA_OP_SEND, HCA_OP_RDMA_READ,
			       HCA_DB_OPCODE_KICK};
	struct lib_uar *uar = &((struct lib_context *)w->client.lib)->uar;
	uint32_t slot;

	sim_check(x->b.p->s, lib_doorbell_try(uar, &slot), "no slot");
	lib_doorbell_fill(uar, slot,
			  HCA_DB_MAKE(n, 0, ops[n / 4 % RTE_DIM(ops)],
				      numbers[n % RTE_DIM(numbers)], 6));
}

static void
doorbell_in(const struct sim_config *cfg)
{
	struct writer *w = &writer;
	struct ub_pair *p = begin(cfg, &w->x, URMA_CR_SUCCESS, ring);
	const struct ub_expected expected[] = {{0, HCA_CTR_db_foreign_qpn, ATTEMPTS / 2},
					       {0, HCA_CTR_db_dead_qpn, ATTEMPTS / 2}};

	ub_client_open(p, &w->client, &(struct ub_client_config){0});
	run(&w->x, "doorbells of another", expected, RTE_DIM(expected));
	ub_client_close(p, &w->client);
	ub_pair_close(p);
}

SIM_TEST(queue)
SIM_TEST(channel)
SIM_TEST(bound)
SIM_TEST(doorbell)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queue),
		cmocka_unit_test(channel),
		cmocka_unit_test(bound),
		cmocka_unit_test(doorbell),
	};

	return sim_main_of(tests, RTE_DIM(tests));
}
