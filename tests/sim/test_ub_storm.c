/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Floods of unreliable Sends, to a program's Jetty and to Jetty 0 of a host, with a bystander. They
 * use up the receives, and disturb neither the bystander nor the set-up of a channel to that host.
 */

#include "ub_agents.h"
#include "ub_counters.h"
#include "ub_bystander.h"
#include "ub_client.h"
#include "ub_forge.h"

#define PROGRAM "sim-ub-storm"

#define FROM UB_PAIR_FROM
#define TO UB_PAIR_TO
#define RESULT UB_PAIR_READ
#define STORM 10u /* datagrams per request of the bystander */
#define ALL (STORM * UB_BYSTANDER_REQUESTS)
#define RECEIVES 8u
#define PAYLOAD 64u

static struct ub_pair pair;

/* From an arbitrary sender to a Jetty of side 1; token 0: without one. */
static void
storm(struct ub_pair *p, uint32_t tc, uint32_t token)
{
	static const uint8_t payload[PAYLOAD] = {1};
	const struct ub_forged f = {.headers = {.rtph = {.opcode = HCA_UB_TP_UTP, .last = 1},
						.btah = {.opcode = HCA_UB_TA_SEND,
							 .ee = HCA_UB_EE_NORMAL,
							 .tv_en = token != 0,
							 .mt_en = 1,
							 .rc_id = 9},
						.mtetah = {.tc_id = tc},
						.tvetah = {token}},
				    .payload = payload,
				    .len = sizeof(payload)};
	uint8_t frame[UB_ROOM];
	uint32_t n = ub_forge(p->s, ub_pair_tp(p, 0, 1), &f, frame);

	for (uint32_t k = 0; k < STORM; k++)
		ub_forge_inject(p->s, 1, frame, n);
}

/* ---- to a program ---- */

static void
storm_at_program(void *arg, uint32_t i)
{
	struct ub_pair *p = ((struct ub_bystander *)arg)->p;

	storm(p, p->side[1].jetty->jetty_id.id, UB_PAIR_SEND_TOKEN);
}

static void
program_in(const struct sim_config *cfg)
{
	struct ub_pair_config c = {.sim = *cfg, .rto_base = 100000};
	const struct ub_expected expected = {1, HCA_CTR_ub_no_receive, ALL - RECEIVES};
	struct ub_pair *p = &pair;
	struct ub_counters counters;
	struct ub_bystander b;

	ub_pair_open(p, &c);
	ub_bystander_open(&b, p);
	for (uint32_t i = 0; i < RECEIVES; i++)
		ub_pair_recv(p, 1, false, UB_PAIR_RECV, 4096, i);
	b.disturb = storm_at_program;
	b.arg = &b;
	ub_counters_begin(&counters, p);
	ub_bystander_run(&b);
	for (uint32_t i = 0; i < RECEIVES; i++)
		ub_pair_received(p, 1, i, 40 + PAYLOAD); /* behind the addresses */
	sim_run_for(p->s, UB_PAIR_MS);
	UB_PAIR_EQ(p, ub_pair_counter(p, 1, HCA_CTR_ub_rx_utp), ALL);
	ub_counters_check(&counters, p, "storm", &expected, 1);
	ub_pair_close(p);
}

/* ---- to Jetty 0 ---- */

/*
 * Times are such that the first message of the import finds a full queue, and one of those by which
 * it is repeated, from 100 ms on, does not.
 */
#define AGENT_EVERY 20u	     /* requests between two turns of the agent of side 1 */
#define IMPORT_AT 55u	     /* 15 behind a turn */
#define GAP (3 * UB_PAIR_MS) /* between two requests */

_Static_assert(AGENT_EVERY *STORM > 128, "the queue of receives overflows");

struct flood {
	struct ub_bystander b;
	bool on;
	struct softhca_context *client; /* imports side 1 by another address */
	uint32_t number, tpg;
	bool up;
};

static struct flood flood;

static void
work(void *arg, uint32_t i)
{
	struct flood *x = arg;
	struct ub_pair *p = x->b.p;

	sim_run_for(p->s, GAP);
	p->s->idle = 0; /* time does not jump while the request is under way */
	if (x->on && i == IMPORT_AT)
		x->number = ub_agents_import(p, (struct lib_context *)x->client, SIM_GID_V6, 1);
	if (x->on && i > IMPORT_AT && !x->up)
		x->up = ub_agents_is_up(p, (struct lib_context *)x->client, x->number, &x->tpg);
	ub_agents_poll(0);
	if (i % AGENT_EVERY == 0)
		ub_agents_poll(1);
	if (x->on)
		storm(p, 0, 0);
}

static int
import_known(struct lib_context *ctx, const struct urma_ctl_peer *request, uint32_t *number,
	     uint32_t *tpg)
{
	*number = flood.number;
	*tpg = flood.tpg;
	return 0;
}

/* It may use its imports. */
static void
use_import(struct flood *x)
{
	struct ub_pair *p = x->b.p;
	struct ub_pair_side usual = p->side[0];
	struct urma_ctl ctl = *urma_ctx_of(usual.ctx)->ctl;
	struct ub_client c;

	ctl.import_peer = import_known;
	ub_client_open(
		p, &c,
		&(struct ub_client_config){.lib = x->client, .gid = SIM_GID_V6, .ctl = &ctl});
	p->side[0] = c.own;
	ub_pair_rw(p, 0, URMA_OPC_WRITE, FROM + 3, TO, 5000, 1);
	ub_pair_done(p, 0, 1, URMA_CR_SUCCESS);
	p->side[0] = usual;
	ub_pair_same(p, 1, TO, FROM + 3, 5000);
	ub_client_close(p, &c);
}

/* Each datagram is counted where it ended: by the device, or by the agent as no message. */
static void
check_datagrams(struct ub_pair *p, const struct ub_counters *counters)
{
	uint64_t refused = ub_pair_counter(p, 1, HCA_CTR_ub_no_receive);
	uint64_t dropped = ub_agents_dropped(p, 1);
	const struct ub_expected expected = {1, HCA_CTR_ub_no_receive, UB_EXPECTED_ANY};

	ub_counters_check(counters, p, "storm at Jetty 0", &expected, 1);
	sim_check(p->s, refused != 0 && ub_agents_counter(p, 0, "cm_repeated") != 0,
		  "there was room for all");
	UB_PAIR_EQ(p, ub_pair_counter(p, 1, HCA_CTR_ub_rx_utp),
		   refused + ub_agents_counter(p, 1, "received"));
	sim_check(p->s, dropped <= ALL && dropped + refused >= ALL,
		  "%lu refused, %lu dropped by the agent", (unsigned long)refused,
		  (unsigned long)dropped);
}

static void
host_in(const struct sim_config *cfg)
{
	struct ub_pair_config c = {.sim = *cfg, .maker = &ub_agents, .rto_base = 100000};
	struct ub_pair *p = &pair;
	struct flood *x = &flood;
	struct ub_counters counters;

	memset(x, 0, sizeof(*x));
	ub_pair_open(p, &c);
	x->client = sim_client(p->s, 0);
	ub_bystander_open(&x->b, p);
	x->b.disturb = work;
	x->b.arg = x;
	x->on = true;
	ub_counters_begin(&counters, p);
	ub_bystander_run(&x->b);
	sim_check(p->s, x->up, "the import has not succeeded");
	ub_agents_poll(1);
	check_datagrams(p, &counters);
	use_import(x);
	ub_bystander_check(&x->b);
	ub_pair_close(p);
}

SIM_TEST(program)
SIM_TEST(host)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(program),
		cmocka_unit_test(host),
	};

	return sim_main_of(tests, RTE_DIM(tests));
}
