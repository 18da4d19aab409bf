/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * One Jetty that works with 64 peers, each of which is an HCA of its own with small pools, around
 * a switch that may lose frames: Writes, Sends, Reads and fetch-adds, verified.
 */

#include "ub_hosts.h"

#define PROGRAM "sim-ub-hosts"

#define PEERS 64u
#define ROUNDS 4u
#define WRITTEN 20000u
#define SENT 3000u
#define KINDS 4u /* of requests: one of each for each peer in a round */
#define MS 1000000ull
#define TOKEN 0x5eedu

/* Parts of the memory of a host; host 0 has one for each peer. */
#define FROM 0u
#define TO 24576u
#define RECV 49152u
#define COUNTER 57344u
#define MEMORY 65536u

struct peer {
	urma_jfc_t *jfc;
	urma_jfr_t *jfr;
	urma_target_seg_t *seg;
	/* at host 0 */
	urma_target_jetty_t *to;
	urma_target_seg_t *to_seg;
};

static struct ub_hosts hosts;
static struct peer peers[PEERS + 1];
static uint8_t memory[2 * PEERS + 1][MEMORY] __attribute__((aligned(4096)));
static urma_jfc_t *jfc;
static urma_jetty_t *jetty;
static urma_target_seg_t *own;

#define MADE(object) UB_HOSTS_CHECK((object) != NULL, #object ": %s", softhca_urma_reason())
#define FINE(call) UB_HOSTS_CHECK((call) == URMA_SUCCESS, #call ": %s", softhca_urma_reason())

/* Objects of host 0 for the peer. */
static uint8_t *
part(uint32_t k)
{
	return memory[PEERS + k];
}

/* ---- objects ---- */

static urma_target_seg_t *
register_memory(urma_context_t *ctx, uint8_t *at, uint64_t len)
{
	urma_seg_cfg_t cfg = {.va = (uintptr_t)at,
			      .len = len,
			      .token_value.token = TOKEN,
			      .flag.bs = {.token_policy = URMA_TOKEN_PLAIN_TEXT,
					  .access = URMA_ACCESS_READ | URMA_ACCESS_WRITE |
						    URMA_ACCESS_ATOMIC}};
	urma_target_seg_t *seg = urma_register_seg(ctx, &cfg);

	MADE(seg);
	return seg;
}

static void
open_peer(uint32_t k)
{
	urma_context_t *ctx = hosts.host[k].ctx;
	urma_jfc_cfg_t depth = {.depth = 2 * ROUNDS};
	urma_jfr_cfg_t receives = {.depth = ROUNDS,
				   .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT,
				   .trans_mode = URMA_TM_RM,
				   .token_value.token = TOKEN};
	urma_rjfr_t theirs = {.trans_mode = URMA_TM_RM,
			      .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT};
	urma_token_t token = {TOKEN};
	struct peer *p = &peers[k];

	receives.jfc = p->jfc = urma_create_jfc(ctx, &depth);
	MADE(p->jfc);
	p->jfr = urma_create_jfr(ctx, &receives);
	MADE(p->jfr);
	p->seg = register_memory(ctx, memory[k], MEMORY);
	theirs.jfr_id = p->jfr->jfr_id;
	p->to = urma_import_jfr(hosts.host[0].ctx, &theirs, &token);
	MADE(p->to);
	p->to_seg = urma_import_seg(hosts.host[0].ctx, &p->seg->seg, &token, 0,
				    (urma_import_seg_flag_t){0});
	MADE(p->to_seg);
}

static void
open_first(void)
{
	urma_context_t *ctx = hosts.host[0].ctx;
	urma_jfc_cfg_t depth = {.depth = 2 * KINDS * PEERS};
	urma_jfr_cfg_t receives = {.depth = 1, .trans_mode = URMA_TM_RM};
	urma_jetty_cfg_t cfg = {.jfs_cfg = {.depth = KINDS * PEERS,
					    .trans_mode = URMA_TM_RM,
					    .rnr_retry = 7,
					    .err_timeout = 24},
				.jfr_cfg = &receives};

	jfc = urma_create_jfc(ctx, &depth);
	MADE(jfc);
	cfg.jfs_cfg.jfc = receives.jfc = jfc;
	jetty = urma_create_jetty(ctx, &cfg);
	MADE(jetty);
	own = register_memory(ctx, memory[PEERS + 1], (uint64_t)PEERS * MEMORY);
}

static void
open_all(const struct sim_config *cfg, bool v6)
{
	struct sim_rng rng = {cfg->seed};

	for (uint32_t k = 1; k < RTE_DIM(memory); k++)
		for (uint32_t i = 0; i < MEMORY; i += 8) {
			uint64_t v = i < TO ? sim_random(&rng) : 0;

			memcpy(memory[k] + i, &v, sizeof(v));
		}
	ub_hosts_open(&hosts, cfg, v6, PEERS);
	open_first();
	for (uint32_t k = 1; k <= PEERS; k++)
		open_peer(k);
}

static void
close_all(void)
{
	for (uint32_t k = 1; k <= PEERS; k++) {
		FINE(urma_unimport_seg(peers[k].to_seg));
		FINE(urma_unimport_jfr(peers[k].to));
		FINE(urma_delete_jfr(peers[k].jfr));
		FINE(urma_delete_jfc(peers[k].jfc));
		FINE(urma_unregister_seg(peers[k].seg));
	}
	FINE(urma_delete_jetty(jetty));
	FINE(urma_delete_jfc(jfc));
	FINE(urma_unregister_seg(own));
	ub_hosts_close(&hosts);
}

/* ---- requests ---- */

static void
post(urma_opcode_t opcode, uint32_t k, uint32_t local, uint32_t remote, uint32_t len, uint64_t id)
{
	urma_sge_t mine = {(uintptr_t)part(k) + local, len, own};
	urma_sge_t theirs = {(uintptr_t)memory[k] + remote, len, peers[k].to_seg};
	bool read = opcode == URMA_OPC_READ;
	urma_jfs_wr_t wr = {.opcode = opcode,
			    .flag.bs.complete_enable = 1,
			    .tjetty = peers[k].to,
			    .user_ctx = id};

	if (opcode == URMA_OPC_SEND_IMM)
		wr.send = (urma_send_wr_t){.src = {&mine, 1}, .imm_data = id};
	else if (opcode == URMA_OPC_FADD)
		wr.faa = (urma_faa_wr_t){.dst = &theirs, .src = &mine, .operand = k};
	else
		wr.rw = (urma_rw_wr_t){.src = {read ? &theirs : &mine, 1},
				       .dst = {read ? &mine : &theirs, 1}};
	FINE(urma_post_jetty_send_wr(jetty, &wr, NULL));
	ub_hosts_poll(&hosts);
}

static void
post_receive(uint32_t k)
{
	urma_sge_t sge = {(uintptr_t)memory[k] + RECV, SENT, peers[k].seg};
	urma_jfr_wr_t wr = {.src = {&sge, 1}, .user_ctx = k};

	FINE(urma_post_jfr_wr(peers[k].jfr, &wr, NULL));
}

static urma_cr_t
next(urma_jfc_t *from)
{
	uint64_t end = hosts.now + 5000 * MS;
	urma_cr_t cr;

	while (urma_poll_jfc(from, 1, &cr) == 0) {
		UB_HOSTS_CHECK(hosts.now < end, "no completion");
		ub_hosts_poll(&hosts);
	}
	return cr;
}

static void
same(const uint8_t *have, const uint8_t *want, uint32_t n, uint32_t k, const char *what)
{
	UB_HOSTS_CHECK(memcmp(have, want, n) == 0, "%s of peer %u differs", what, k);
}

static void
check_peer(uint32_t k, uint32_t round)
{
	urma_cr_t cr = next(peers[k].jfc);
	uint64_t found, left;

	UB_HOSTS_CHECK(cr.status == URMA_CR_SUCCESS && cr.completion_len == SENT &&
			       cr.imm_data / KINDS + 1 == k,
		       "receive of peer %u: status %u, %lu", k, cr.status,
		       (unsigned long)cr.imm_data);
	same(memory[k] + TO, part(k) + FROM + round, WRITTEN, k, "what was written");
	same(memory[k] + RECV, part(k) + FROM + round, SENT, k, "what was sent");
	same(part(k) + TO, memory[k] + FROM + round, WRITTEN, k, "what was read");
	memcpy(&found, part(k) + COUNTER, 8);
	memcpy(&left, memory[k] + COUNTER, 8);
	UB_HOSTS_CHECK(found == (uint64_t)k * round && left == (uint64_t)k * (round + 1),
		       "peer %u: fetch-add found %lu and left %lu", k, (unsigned long)found,
		       (unsigned long)left);
}

/* Kind by kind, so that all peers work at once; completions come in the order of requests. */
static void
work(uint32_t round)
{
	static const struct {
		urma_opcode_t opcode;
		uint32_t local, remote, len;
	} kinds[KINDS] = {{URMA_OPC_WRITE, FROM, TO, WRITTEN},
			  {URMA_OPC_SEND_IMM, FROM, 0, SENT},
			  {URMA_OPC_READ, TO, FROM, WRITTEN},
			  {URMA_OPC_FADD, COUNTER, COUNTER, 8}};

	for (uint32_t k = 1; k <= PEERS; k++) {
		memset(memory[k] + TO, 0, COUNTER - TO);
		memset(part(k) + TO, 0, COUNTER - TO);
		post_receive(k);
	}
	for (uint32_t i = 0; i < KINDS; i++)
		for (uint32_t k = 1; k <= PEERS; k++)
			post(kinds[i].opcode, k, kinds[i].local + (i != 2 && i != 3 ? round : 0),
			     kinds[i].remote + (i == 2 ? round : 0), kinds[i].len,
			     (k - 1) * KINDS + i);
	for (uint32_t i = 0; i < KINDS; i++)
		for (uint32_t k = 1; k <= PEERS; k++) {
			urma_cr_t cr = next(jfc);

			UB_HOSTS_CHECK(cr.status == URMA_CR_SUCCESS &&
					       cr.user_ctx == (k - 1) * KINDS + i,
				       "completion of %lu with status %u, not of %u",
				       (unsigned long)cr.user_ctx, cr.status, (k - 1) * KINDS + i);
		}
	for (uint32_t k = 1; k <= PEERS; k++)
		check_peer(k, round);
}

static void
run(const struct sim_config *cfg, bool v6, uint32_t lose_every)
{
	uint64_t again = 0;

	if (cfg->executor != SIM_DIRECT)
		return; /* it steps two HCAs */
	open_all(cfg, v6);
	hosts.lose_every = lose_every;
	for (uint32_t round = 0; round < ROUNDS; round++)
		work(round);
	hosts.lose_every = 0;
	for (uint32_t k = 0; k <= PEERS; k++)
		again += ub_hosts_again(&hosts, k);
	UB_HOSTS_CHECK((again != 0) == (lose_every != 0), "%lu packets were sent again",
		       (unsigned long)again);
	for (uint32_t k = 1; k <= PEERS; k++)
		UB_HOSTS_CHECK(ub_hosts_tp(&hosts, k)->tx.ops_sent == KINDS * ROUNDS,
			       "channel to peer %u: %lu operations", k,
			       (unsigned long)ub_hosts_tp(&hosts, k)->tx.ops_sent);
	close_all();
}

static void
good_in(const struct sim_config *cfg)
{
	run(cfg, false, 0);
	run(cfg, true, 0);
}

static void
bad_in(const struct sim_config *cfg)
{
	run(cfg, false, 53);
}

SIM_TEST(good)
SIM_TEST(bad)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good),
		cmocka_unit_test(bad),
	};

	return sim_main_of(tests, RTE_DIM(tests));
}
