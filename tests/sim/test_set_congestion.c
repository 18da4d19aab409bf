/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * SET_CONGESTION while QPs and TPs work: several senders and one receiver around a switch, whose
 * algorithm becomes another one in the middle, with one, two and four pipelines.
 */

#include "star.h"

#include <inttypes.h>

#include <rte_common.h>

#include "core/wires.h"
#include "engine/impl.h"

#define PROGRAM "test_set_congestion"
#define SENDERS 8u
#define NETWORK "rate=100,delay=1,queue=1500000,kmin=50000,kmax=400000"
#define MESSAGE 16384u
#define DEPTH 64u
#define WITHOUT (3 * STAR_MS)
#define SETTLED (9 * STAR_MS) /* also the retries of frames lost without an algorithm */
#define MEASURED (6 * STAR_MS)
#define CHANGES 40u

static struct star star;

/* ---- an incast ---- */

static void
open_star(const struct sim_config *cfg, const char *name, enum star_kind kind, uint32_t pipes,
	  uint32_t of_qps)
{
	const struct star_config c = {.name = name,
				      .congestion = "none",
				      .network = NETWORK,
				      .hosts = 1 + SENDERS,
				      .seed = cfg->seed,
				      .layout = cfg->layout,
				      .ub = kind == STAR_UB_WRITE,
				      .pipes = pipes};

	star_open(&star, &c);
	for (uint32_t i = 0; i < SENDERS; i++)
		star_add(&star, (struct star_flow){.from = 1 + i,
						   .kind = kind,
						   .message = MESSAGE,
						   .depth = DEPTH,
						   .congestion = of_qps});
}

static void
set_all(const char *name)
{
	for (uint32_t i = 0; i < star.n; i++)
		star_set_congestion(&star, i, name);
}

static uint64_t
dropped(void)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < star.n; i++)
		sum += star_port(&star, i).dropped;
	return sum;
}

static uint64_t
timeouts(void)
{
	return star_counter(&star, "local_ack_timeout_err") + star_counter(&star, "ub_tp_timeouts");
}

/* Frames lost so far, the link's use from now on. */
struct before {
	uint64_t at, dropped, timeouts, bytes;
};

static struct before
now_before(void)
{
	struct hca_port_switch_stats s = star_port(&star, 0);

	return (struct before){star.now - star.begin, dropped(), timeouts(),
			       s.bytes + HCA_FABRIC_OVERHEAD * s.frames};
}

/* Without a loss since then, all flows went on and used the link. */
static void
settled(const char *name, const struct before *b)
{
	struct before e = now_before();
	uint64_t to = b->at + MEASURED;
	double used = (double)(e.bytes - b->bytes) * 8e3 / (double)(e.at - b->at) / 100e3;

	STAR_CHECK(e.dropped == b->dropped && e.timeouts == b->timeouts,
		   "%s: %" PRIu64 " dropped, %" PRIu64 " timeouts", name, e.dropped - b->dropped,
		   e.timeouts - b->timeouts);
	for (uint32_t i = 0; i < star.flows; i++)
		STAR_CHECK(star_bytes(&star.flow[i], b->at, to) != 0, "%s: flow %u stands", name,
			   i);
	STAR_CHECK(used >= 0.95, "%s: %.1f %% used", name, 100 * used);
}

static uint64_t
marked(void)
{
	return star_counter(&star, "np_ecn_marked_roce_packets") +
	       star_counter(&star, "ub_rx_ecn_marked");
}

/* Losses, then none while there is an algorithm, then losses; the windows of UB lose none. */
static void
there_and_back(const struct sim_config *cfg, const char *name, enum star_kind kind, uint32_t pipes,
	       const char *algorithm)
{
	bool ub = kind == STAR_UB_WRITE;
	struct before b;
	uint64_t lost;

	open_star(cfg, name, kind, pipes, 0);
	star_run(&star, WITHOUT);
	STAR_CHECK(ub || dropped() != 0, "%s: no frame lost without an algorithm", name);
	STAR_CHECK(marked() == 0, "%s: marks without an algorithm", name);
	set_all(algorithm);
	star_run(&star, WITHOUT + SETTLED);
	b = now_before();
	star_run(&star, WITHOUT + SETTLED + MEASURED);
	settled(name, &b);
	STAR_CHECK(marked() != 0, "%s: no marks", name);
	STAR_CHECK(ub || star_counter(&star, "rp_cnp_handled") != 0, "%s: no CNP", name);
	set_all("none");
	for (uint32_t i = 0; i < star.n; i++)
		STAR_CHECK(star.host[i].h->core->cc == NULL, "%s: host %u still asks", name, i);
	lost = dropped();
	star_run(&star, WITHOUT + SETTLED + 2 * MEASURED);
	STAR_CHECK(ub || dropped() != lost, "%s: no frame lost without an algorithm again", name);
	for (uint32_t i = 0; i < star.flows; i++)
		STAR_CHECK(star_bytes(&star.flow[i], b.at + MEASURED, b.at + 2 * MEASURED) != 0,
			   "%s: flow %u stands without an algorithm", name, i);
	star_stop(&star);
	star_close(&star);
}

static void
incast_in(const struct sim_config *cfg)
{
	static const struct {
		const char *name, *algorithm;
		enum star_kind kind;
		uint32_t pipes;
	} rows[] = {
		{"set-write-1", "dcqcn", STAR_WRITE, 1}, {"set-write-2", "dcqcn", STAR_WRITE, 2},
		{"set-write-4", "swift", STAR_WRITE, 4}, {"set-read-1", "swift", STAR_READ, 1},
		{"set-read-4", "dcqcn", STAR_READ, 4},	 {"set-ub-1", "dcqcn", STAR_UB_WRITE, 1},
	};

	if (cfg->executor != SIM_DIRECT)
		return; /* the stepper has two HCAs */
	for (unsigned int i = 0; i < RTE_DIM(rows); i++)
		if (rows[i].pipes == 1 || cfg->layout == HCA_LAYOUT_RTC)
			there_and_back(cfg, rows[i].name, rows[i].kind, rows[i].pipes,
				       rows[i].algorithm);
}
SIM_TEST(incast)

/* From one algorithm to the other all the time: no request is lost, no flow stands at the end. */
static void
often_in(const struct sim_config *cfg)
{
	static const char *const turn[] = {"dcqcn", "none", "swift"};

	if (cfg->executor != SIM_DIRECT)
		return;
	open_star(cfg, "set-often", STAR_WRITE, cfg->layout == HCA_LAYOUT_RTC ? 2 : 1, 0);
	for (uint32_t k = 1; k <= CHANGES; k++) {
		star_run(&star, k * 50 * STAR_US);
		for (uint32_t i = 0; i < star.n; i++)
			star_set_congestion(&star, i, turn[(k + i) % RTE_DIM(turn)]);
	}
	set_all("dcqcn");
	star_run(&star, CHANGES * 50 * STAR_US + SETTLED);
	for (uint32_t i = 0; i < star.flows; i++)
		STAR_CHECK(star.flow[i].done != 0 && star.flow[i].failed == 0,
			   "flow %u: %" PRIu64 " done, %u failed", i, star.flow[i].done,
			   star.flow[i].failed);
	star_stop(&star);
	star_close(&star);
}
SIM_TEST(often)

/* QPs whose attribute names an algorithm keep it, whatever the HCA has. */
static void
of_qps_in(const struct sim_config *cfg)
{
	struct hca_congestion_limits l;
	struct softhca_qp_attr a;
	struct before b;

	if (cfg->executor != SIM_DIRECT)
		return;
	open_star(cfg, "of-qps", STAR_WRITE, 1, SOFTHCA_CONGESTION_DCQCN);
	star_run(&star, SETTLED);
	b = now_before();
	star_run(&star, SETTLED + MEASURED);
	settled("of-qps", &b);
	STAR_CHECK(b.dropped == 0 && star_counter(&star, "rp_cnp_handled") != 0,
		   "%" PRIu64 " dropped", b.dropped);
	STAR_CHECK(hca_qp_congestion(star.host[1].h, star.flow[0].qp[0]->qp_num, &l) == 0 &&
			   strcmp(l.name, "dcqcn") == 0 && l.rate_bps != 0 &&
			   l.rate_bps < 100000000000 && l.window >= 4,
		   "shows %s, %" PRIu64 " bit/s, window %u", l.name, l.rate_bps, l.window);
	set_all("swift");
	set_all("none");
	b = now_before();
	star_run(&star, SETTLED + 2 * MEASURED);
	settled("of-qps-none", &b);
	STAR_CHECK(softhca_query_qp(star.flow[0].qp[0], &a, 0, NULL) == 0 &&
			   a.congestion == SOFTHCA_CONGESTION_DCQCN,
		   "query: %u", a.congestion);
	star_stop(&star);
	star_close(&star);
}
SIM_TEST(of_qps)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(incast),
		cmocka_unit_test(often),
		cmocka_unit_test(of_qps),
	};

	return sim_main_of(tests, RTE_DIM(tests));
}
