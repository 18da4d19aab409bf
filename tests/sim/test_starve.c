/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Scarce resources: edges of 4 entries, pools of 64 mbufs, 8 records, a port that accepts 0 or 1
 * frame per burst, and a link that is down for a second.
 */

#include "sim_mix.h"
#include "sim_test.h"

#define PROGRAM "test_starve"
#define MS 1000000ull

static const uint32_t five_ops[] = {
	SOFTHCA_WR_SEND,
	SOFTHCA_WR_RDMA_WRITE,
	SOFTHCA_WR_RDMA_READ,
	SOFTHCA_WR_ATOMIC_CMP_AND_SWP,
	SOFTHCA_WR_ATOMIC_FETCH_AND_ADD,
};

static struct sim_config
starved(const struct sim_config *cfg)
{
	struct sim_config c = *cfg;

	c.edge_size = 4;
	c.mbufs = 64;
	c.records = 8;
	c.full_records = 8;
	c.link_depth = 16;
	return c;
}

static void
set_stall(struct sim *s, const struct hca_port_stall_rules *rules)
{
	for (unsigned int i = 0; i < 2; i++)
		hca_port_stall_set(s->side[i].stall, rules);
}

static void
post_one(struct sim *s, struct sim_pair *p, unsigned int side, uint32_t opcode, uint32_t len)
{
	const struct sim_req r = {.opcode = opcode,
				  .len = len,
				  .nsge = 2,
				  .flags = SOFTHCA_SEND_SIGNALED};

	for (unsigned int k = 0; sim_post(p, side, &r, 1) != 0; k++) {
		sim_check(s, k < 1000000, "the queue stays full");
		sim_poll(s);
		sim_reap(s);
	}
}

/* n operations of one kind from both sides of every pair. */
static void
post_all(struct sim *s, uint32_t opcode, unsigned int n, uint32_t len)
{
	for (unsigned int i = 0; i < n; i++)
		for (struct sim_pair *p = s->model->pairs; p != NULL; p = p->next)
			for (unsigned int side = 0; side < 2; side++)
				post_one(s, p, side, opcode, len);
}

static void
close_pairs(struct sim *s)
{
	while (s->model->pairs != NULL)
		sim_pair_close(s->model->pairs);
	sim_close(s);
}

static uint64_t
sum(const struct sim *s, const char *counter)
{
	return sim_counter(s, 0, counter) + sim_counter(s, 1, counter);
}

static void
tiny_in(const struct sim_config *cfg)
{
	const struct hca_port_stall_rules slow = {.tx_burst_max = 1};
	const struct sim_pair_attr attr = {.timeout = 14, .region = 4 << 20};
	struct sim_config c = starved(cfg);
	struct sim *s = sim_open(&c);

	for (unsigned int i = 0; i < 3; i++)
		sim_pair_open(s, &attr);
	set_stall(s, &slow);
	for (unsigned int i = 0; i < 5; i++) {
		post_all(s, five_ops[i], 40, 2500);
		sim_finish(s, 100 * SIM_S);
	}
	sim_check(s, sum(s, "retransmissions") == 0, "%llu retransmissions",
		  (unsigned long long)sum(s, "retransmissions"));
	sim_check(s, sum(s, "tx_discard_stalled") == 0, "frames were discarded");
	close_pairs(s);
}
SIM_TEST(tiny)

/* Stalls shorter than the discard limit take time, but lose no frames. */
static void
short_stalls_in(const struct sim_config *cfg)
{
	const struct hca_port_stall_rules stalls = {.stall_every = 12 * MS, .stall_for = 8 * MS};
	const struct sim_pair_attr attr = {.timeout = 16, .region = 4 << 20};
	struct sim_config c = starved(cfg);
	struct sim *s;

	c.pipes = 1; /* four pipes send everything before the first stall */
	s = sim_open(&c);
	for (unsigned int i = 0; i < 3; i++)
		sim_pair_open(s, &attr);
	set_stall(s, &stalls);
	for (unsigned int i = 0; i < 5; i++) {
		post_all(s, five_ops[i], 60, 9000);
		sim_finish(s, 100 * SIM_S);
	}
	sim_check(s, sum(s, "retransmissions") == 0, "%llu retransmissions",
		  (unsigned long long)sum(s, "retransmissions"));
	sim_check(s, sum(s, "tx_backlog_events") != 0, "the port never stalled");
	close_pairs(s);
}
SIM_TEST(short_stalls)

/* Longer stalls lose frames: counted, and repaired. */
static void
long_stalls_in(const struct sim_config *cfg)
{
	const struct hca_port_stall_rules stalls = {.stall_every = 40 * MS, .stall_for = 30 * MS};
	const struct sim_pair_attr attr = {.timeout = 12, .region = 4 << 20};
	struct sim_config c = starved(cfg);
	struct sim *s;

	c.port_stall_ns = 10 * MS;
	s = sim_open(&c);
	sim_pair_open(s, &attr);
	sim_pair_open(s, &attr);
	set_stall(s, &stalls);
	for (unsigned int i = 0; i < 5; i++) {
		post_all(s, five_ops[i], 100, 9000);
		/* requests outstanding when the next stall begins */
		sim_run_for(s, 50 * MS);
		sim_finish(s, 100 * SIM_S);
	}
	sim_check(s, sum(s, "tx_discard_stalled") != 0, "nothing was discarded");
	sim_check(s, sum(s, "retransmissions") != 0, "nothing was sent again");
	close_pairs(s);
}
SIM_TEST(long_stalls)

/*
 * The port accepts no frame for almost a second, many times the retry time of the QPs: their
 * timeouts do not run while their frames wait, nor before an answer is possible.
 */
static void
check_timeout(const struct sim_config *cfg, uint32_t code, uint64_t ms)
{
	const struct hca_port_stall_rules stall = {.stall_every = ms * MS + 1200000,
						   .stall_for = ms * MS};
	const struct sim_pair_attr attr = {.timeout = code, .region = 4 << 20};
	struct sim_config c = starved(cfg);
	struct sim *s;

	c.tick_ns = cfg->executor == SIM_STEPPED ? 400 : 40000;
	s = sim_open(&c);
	for (unsigned int i = 0; i < 4; i++)
		sim_pair_open(s, &attr);
	hca_port_stall_set(s->side[0].stall, &stall);
	for (unsigned int i = 0; i < 40; i++)
		for (struct sim_pair *p = s->model->pairs; p != NULL; p = p->next)
			post_one(s, p, 0, five_ops[i % 3], 9000);
	sim_finish(s, 100 * SIM_S);
	sim_check(s, s->now > ms * MS, "the port never stalled");
	sim_check(s, sum(s, "tx_discard_stalled") == 0, "frames were discarded");
	sim_check(s, sum(s, "local_ack_timeout_err") == 0, "%llu ack timeouts, code %u",
		  (unsigned long long)sum(s, "local_ack_timeout_err"), code);
	sim_check(s, sum(s, "retransmissions") == 0, "retransmissions");
	close_pairs(s);
}

static void
stalled_for_a_second_in(const struct sim_config *cfg)
{
	/* the stepped executor advances in small steps: a tenth of it is also ten times code 8 */
	if (cfg->executor == SIM_STEPPED) {
		check_timeout(cfg, 8, 90);
		return;
	}
	check_timeout(cfg, 14, 900);
	check_timeout(cfg, 8, 900);
}
SIM_TEST(stalled_for_a_second)

/* A port that accepts nothing does not delay the destruction of QPs and regions. */
static void
destroyed_while_stalled_in(const struct sim_config *cfg)
{
	const struct hca_port_stall_rules none = {0};
	const struct hca_port_stall_rules stall = {.stall_every = 10 * SIM_S,
						   .stall_for = 10 * SIM_S - 1000};
	const struct sim_pair_attr attr = {.timeout = 14, .region = 1 << 20};
	struct sim_config c = starved(cfg);
	struct sim *s = sim_open(&c);
	uint64_t from;

	sim_pair_open(s, &attr);
	sim_pair_open(s, &attr);
	set_stall(s, &stall);
	for (unsigned int i = 0; i < 8; i++)
		for (struct sim_pair *p = s->model->pairs; p != NULL; p = p->next)
			post_one(s, p, 0, SOFTHCA_WR_RDMA_WRITE, 9000);
	sim_run_for(s, 2 * MS);
	from = s->now;
	while (s->model->pairs != NULL)
		sim_pair_close(s->model->pairs);
	sim_check(s, s->now - from < 100 * MS, "the port held up who resets a QP");
	sim_check(s, sum(s, "tx_discard_stalled") == 0, "discarded already");
	set_stall(s, &none);
	sim_close(s);
}
SIM_TEST(destroyed_while_stalled)

/* The link is down for a second, with 0 or 1 frame per burst before and after. */
static void
link_down_in(const struct sim_config *cfg)
{
	const struct hca_port_stall_rules slow = {.tx_burst_max = 1};
	/* 4.096 us << 16 = 268 ms, seven times */
	const struct sim_pair_attr attr = {.timeout = 16, .region = 8 << 20};
	struct sim_config c = starved(cfg);

	for (unsigned int i = 0; i < 5; i++) {
		struct sim *s = sim_open(&c);

		for (unsigned int k = 0; k < 3; k++)
			sim_pair_open(s, &attr);
		set_stall(s, &slow);
		post_all(s, five_ops[i], 30, 6000);
		for (unsigned int k = 0; k < 2; k++)
			hca_port_stall_link(s->side[k].stall, false);
		sim_run_for(s, SIM_S);
		for (unsigned int k = 0; k < 2; k++)
			hca_port_stall_link(s->side[k].stall, true);
		post_all(s, five_ops[i], 30, 6000);
		sim_finish(s, 100 * SIM_S);
		sim_check(s, sum(s, "tx_discard_link_down") != 0, "nothing was discarded");
		sim_check(s, sum(s, "retransmissions") != 0, "nothing was sent again");
		close_pairs(s);
	}
}
SIM_TEST(link_down)

/* Random operations over a bad link under these conditions. */
static void
everything_in(const struct sim_config *cfg)
{
	for (uint64_t k = 0; k < 4; k++) {
		struct sim_mix mix = {
			.cfg = starved(cfg),
			.ops = 400,
			.max_pairs = 4,
			.max_len = 20000,
			.impair = sim_bad_link,
			.stall = {.tx_burst_max = 1 + (uint32_t)k},
		};

		mix.cfg.seed += k;
		sim_mix_run(&mix);
	}
}
SIM_TEST(everything)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tiny),
		cmocka_unit_test(short_stalls),
		cmocka_unit_test(long_stalls),
		cmocka_unit_test(link_down),
		cmocka_unit_test(stalled_for_a_second),
		cmocka_unit_test(destroyed_while_stalled),
		cmocka_unit_test(everything),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
