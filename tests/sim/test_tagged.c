/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Every service over every kind of address, with and without a shared receive queue, on a clean
 * link and on bad ones, with self-describing messages.
 */

#include "sim_mix.h"
#include "sim_tagged.h"
#include "sim_test.h"

#define PROGRAM "test_tagged"

static const struct hca_impair clean;

static void
exchange(struct sim *s, const struct sim_tagged_attr *attr, const struct hca_impair *link,
	 unsigned int messages)
{
	struct sim_tagged *t = sim_tagged_open(s, attr);
	struct sim_rng *r = &sim_model(s)->rng;
	unsigned int sent = 0, dry = 0;

	t->lossless = link == &clean;
	t->duplicates = link->dup != 0;
	sim_impair(s, 0, link);
	sim_impair(s, 1, link);
	while (sent < messages) {
		bool one = sim_tagged_send(t, sim_below(r, 2), sim_below(r, t->attr.flows));

		sent += one;
		dry = one ? 0 : dry + 1;
		sim_check(s, dry < 200000, "%s: nothing more can be sent after %u messages",
			  sim_service_names[attr->service], sent);
		if (!one || sim_below(r, 4) == 0)
			sim_poll(s);
		sim_tagged_reap(t);
		sim_tagged_fill(t);
	}
	sim_tagged_finish(t);
	sim_impair(s, 0, NULL);
	sim_impair(s, 1, NULL);
	sim_tagged_close(t);
}

static void
check_reliable(struct sim *s)
{
	for (unsigned int i = 0; i < 2; i++) {
		sim_check(s, sim_counter(s, i, "retransmissions") == 0, "retransmissions");
		sim_check(s, sim_counter(s, i, "rnr_nak_sent") == 0, "RNR NAKs");
		sim_check(s, sim_counter(s, i, "resp_ud_dropped") == 0, "UD drops");
		sim_check(s, sim_counter(s, i, "resp_uc_dropped") == 0, "UC drops");
	}
}

/* On a clean link nothing is lost, whatever the service, the address and the receive queue. */
static void
clean_link_in(const struct sim_config *cfg)
{
	for (unsigned int service = 0; service < SIM_SERVICES; service++) {
		struct sim *s = sim_open(cfg);

		for (unsigned int i = 0; i < 2 * SIM_GIDS; i++) {
			const struct sim_tagged_attr a = {
				.service = service,
				.gid = i % SIM_GIDS,
				.srq = i >= SIM_GIDS,
				.flows = 1 + i % 3,
				.sl = i % 8,
				.traffic_class = (uint8_t)(i * 4),
				.max_len = service == SIM_UD ? 1024 : 3000,
				.read = i % 2 != 0,
			};

			if (service == SIM_UC && a.srq)
				continue;
			exchange(s, &a, &clean, 60);
		}
		check_reliable(s);
		sim_close(s);
	}
}
SIM_TEST(clean_link)

static void
bad_link_in(const struct sim_config *cfg)
{
	for (unsigned int service = 0; service < SIM_SERVICES; service++) {
		struct sim *s = sim_open(cfg);

		for (unsigned int i = 0; i < SIM_GIDS; i++) {
			const struct sim_tagged_attr a = {
				.service = service,
				.gid = i,
				.srq = service != SIM_UC && i % 2 == 0,
				.flows = 1 + i,
				.max_len = service == SIM_UD ? 1024 : 5000,
			};

			exchange(s, &a, &sim_bad_link, 300);
		}
		sim_close(s);
	}
}
SIM_TEST(bad_link)

/* Many QPs of a service receive from one SRQ. */
static void
shared_in(const struct sim_config *cfg)
{
	static const enum sim_service services[] = {SIM_RC, SIM_UD, SIM_XRC};

	for (unsigned int i = 0; i < sizeof(services) / sizeof(services[0]); i++) {
		const struct sim_tagged_attr a = {
			.service = services[i],
			.srq = true,
			.flows = SIM_TAGGED_FLOWS,
			.max_len = services[i] == SIM_UD ? 1024 : 4000,
		};
		struct sim *s = sim_open(cfg);

		exchange(s, &a, &clean, 1000);
		check_reliable(s);
		sim_close(s);
	}
}
SIM_TEST(shared)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clean_link),
		cmocka_unit_test(bad_link),
		cmocka_unit_test(shared),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
