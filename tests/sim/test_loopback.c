/* SPDX-License-Identifier: BSD-3-Clause */

/* Both ends on one HCA: every service over every kind of address, and nothing on the wire. */

#include "sim_tagged.h"
#include "sim_test.h"

#define PROGRAM "test_loopback"
#define MESSAGES 100u

static void
exchange(struct sim_tagged *t, unsigned int messages)
{
	struct sim_rng *r = &sim_model(t->s)->rng;
	unsigned int dry = 0;

	while (messages > 0) {
		bool one = sim_tagged_send(t, sim_below(r, 2), sim_below(r, t->attr.flows));

		messages -= one;
		dry = one ? 0 : dry + 1;
		sim_check(t->s, dry < 200000, "%s: nothing more can be sent",
			  sim_service_names[t->attr.service]);
		if (!one || sim_below(r, 4) == 0)
			sim_poll(t->s);
		sim_tagged_reap(t);
		sim_tagged_fill(t);
	}
	sim_tagged_finish(t);
}

static uint64_t
on_the_wire(struct sim *s)
{
	struct hca_port_impair_stats st;

	hca_port_impair_stats(s->side[0].impair, &st);
	return st.frames;
}

static void
nothing_leaves_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);

	for (unsigned int i = 0; i < SIM_SERVICES * SIM_GIDS; i++) {
		const struct sim_tagged_attr a = {
			.service = i / SIM_GIDS,
			.gid = i % SIM_GIDS,
			.srq = i % 2 == 0 && i / SIM_GIDS != SIM_UC,
			.flows = 1 + i % 3,
			.max_len = i / SIM_GIDS == SIM_UD ? 1024 : 4000,
			.loop = true,
		};
		struct sim_tagged *t = sim_tagged_open(s, &a);

		t->lossless = true;
		exchange(t, MESSAGES);
		sim_tagged_close(t);
	}
	sim_check(s, on_the_wire(s) == 0, "%llu frames on the wire",
		  (unsigned long long)on_the_wire(s));
	sim_check(s, sim_counter(s, 0, "loopback_pkts") == sim_counter(s, 0, "sent_pkts"),
		  "some frames did not loop");
	sim_check(s, sim_counter(s, 0, "loopback_pkts") == sim_counter(s, 0, "rcvd_pkts"),
		  "some frames were not received");
	sim_check(s, sim_counter(s, 0, "loopback_drops") == 0, "lost");
	sim_check(s, sim_counter(s, 0, "retransmissions") == 0, "retransmissions");
	sim_close(s);
}
SIM_TEST(nothing_leaves)

/* It goes on without a link. */
static void
without_a_link_in(const struct sim_config *cfg)
{
	const struct sim_tagged_attr a = {.loop = true};
	struct sim *s = sim_open(cfg);
	struct sim_tagged *t = sim_tagged_open(s, &a);

	hca_port_stall_link(s->side[0].stall, false);
	t->lossless = true;
	exchange(t, MESSAGES);
	hca_port_stall_link(s->side[0].stall, true);
	sim_tagged_close(t);
	sim_close(s);
}
SIM_TEST(without_a_link)

/* Local and remote peers at the same time; the link being bad concerns the remote ones only. */
static void
beside_the_wire_in(const struct sim_config *cfg)
{
	const struct sim_tagged_attr a = {.loop = true, .flows = 4, .timeout = 12};
	const struct hca_impair bad = {.drop = 0.02, .dup = 0.02, .reorder = 0.02};
	struct sim *s = sim_open(cfg);
	struct sim_tagged *t = sim_tagged_open(s, &a);
	struct sim_pair *p = sim_pair_open(s, NULL);

	sim_impair(s, 0, &bad);
	sim_impair(s, 1, &bad);
	t->lossless = true;
	for (unsigned int i = 0; i < 20; i++) {
		struct sim_req r = sim_random_req(p, 6000);

		r.flags |= SOFTHCA_SEND_SIGNALED;
		sim_check(s, sim_post(p, i & 1, &r, 1) == 0, "post");
		exchange(t, 20);
	}
	sim_finish(s, SIM_S);
	sim_check(s, sim_counter(s, 0, "loopback_drops") == 0, "lost");
	sim_check(s, sim_counter(s, 0, "loopback_pkts") != 0 && on_the_wire(s) != 0, "not mixed");
	sim_impair(s, 0, NULL);
	sim_impair(s, 1, NULL);
	sim_pair_close(p);
	sim_tagged_close(t);
	sim_close(s);
}
SIM_TEST(beside_the_wire)

/* More than the ring holds at once is lost and sent again: small pools, long messages. */
static void
starved_in(const struct sim_config *cfg)
{
	const struct sim_tagged_attr a = {.loop = true, .flows = 8, .max_len = 8000};
	struct sim_config c = *cfg;
	struct sim *s;
	struct sim_tagged *t;

	c.mbufs = 64;
	c.edge_size = 4;
	c.records = c.full_records = 512;
	s = sim_open(&c);
	t = sim_tagged_open(s, &a);
	t->lossless = true;
	exchange(t, 400);
	sim_tagged_close(t);
	sim_close(s);
}
SIM_TEST(starved)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_leaves),
		cmocka_unit_test(without_a_link),
		cmocka_unit_test(beside_the_wire),
		cmocka_unit_test(starved),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
