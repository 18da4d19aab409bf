/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Workers that sleep without the alarm: if a wakeup is lost, a request never completes. Doorbells
 * at random times around the one at which workers fall asleep; with several workers every edge and
 * message between them wakes the next one, and commands wake that of the CEU. (The wire has no
 * interrupt here, so the worker of decap takes short sleeps.) SLEEP_ROUNDS in the environment sets
 * the number of rounds.
 */

#include <stdlib.h>
#include <time.h>

#include "sim_duo.h"
#include "sim_test.h"

#define LOST_S 60
#define ROUNDS 300u
#define COMMANDS_EVERY 16u
#define DISTANCE_NS 400000u

static uint64_t
seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec;
}

/* Some pauses are short enough to meet a worker that is going to sleep. */
static void
pause_between(struct sim_rng *rng)
{
	struct timespec ts = {.tv_nsec = sim_below(rng, DISTANCE_NS)};

	nanosleep(&ts, NULL);
}

static void
one_round(struct sim *s, struct sim_duo *d, struct softhca_cq *cq)
{
	uint64_t end = seconds() + LOST_S;

	sim_duo_post(d, 0, SOFTHCA_WR_RDMA_WRITE, 8, 1, 0);
	while (sim_cq_drain(cq, NULL) == 0) {
		sim_check(s, seconds() < end, "a wake-up was lost");
		sim_poll(s);
	}
}

static void
some_commands(struct sim *s)
{
	struct softhca_cq_init_attr ca = {.cqe = 16};
	struct softhca_cq *cq = softhca_create_cq(s->side[0].ctx, &ca);

	sim_check(s, cq != NULL && softhca_destroy_cq(cq) == 0, "commands");
}

static void
sleeps(enum hca_layout layout)
{
	const struct sim_config cfg = {
		.seed = 1,
		.layout = layout,
		.executor = SIM_THREADS,
		.backstop_ns = UINT64_MAX,
	};
	const char *env = getenv("SLEEP_ROUNDS");
	uint32_t rounds = env != NULL ? (uint32_t)atoi(env) : ROUNDS;
	struct sim *s = sim_open(&cfg);
	struct sim_duo d = {.depth = 64};
	struct sim_rng rng = {.s = 7};

	sim_duo_open(s, &d);
	for (uint32_t i = 0; i < rounds; i++) {
		one_round(s, &d, d.scq[0] != NULL ? d.scq[0] : d.own[0]);
		pause_between(&rng);
		if (i % COMMANDS_EVERY == 0)
			some_commands(s);
	}
	sim_duo_close(&d);
	sim_close(s);
}

static void
rtc(void **state)
{
	sleeps(HCA_LAYOUT_RTC);
}

static void
txrx(void **state)
{
	sleeps(HCA_LAYOUT_TXRX);
}

static void
full(void **state)
{
	sleeps(HCA_LAYOUT_FULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rtc),
		cmocka_unit_test(txrx),
		cmocka_unit_test(full),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
