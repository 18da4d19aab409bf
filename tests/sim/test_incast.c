/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Several senders and one receiver around a switch whose queue has a limited size, with each
 * algorithm of congestion control: without one thousands of frames are lost; with one no frame is
 * lost, the link is used, and its senders have equal shares. Each row runs with each algorithm.
 */

#include "star.h"

#include <inttypes.h>

#include <rte_common.h>

#include "cc/cc_names.h"

#define PROGRAM "sim-incast"

#define WARM (5 * STAR_MS)
#define MEASURED (10 * STAR_MS)
#define WINDOW (2 * STAR_MS) /* of which Jain's index is taken */
#define DEPTH 64u
#define MESSAGE 16384u
/* Marks with probability 1 at kmax, as switches for RoCE are shipped. */
#define NETWORK "rate=100,delay=1,queue=1500000,kmin=50000,kmax=400000"
#define LOSSLESS NETWORK ",xoff=120000,xon=100000"

struct row {
	const char *name;
	uint32_t senders;
	enum star_kind kind;
	bool ub;
	void (*more)(struct star *x);	 /* after star_open(): other links and flows; NULL */
	void (*at_warm)(struct star *x); /* at WARM; NULL */
	uint64_t from;			 /* of MEASURED: WARM after the last change, 0: WARM */
	double share;			 /* of the link that the counted flows may use */
	uint32_t counted; /* flows of which Jain's index is taken, from 0; 0: all senders */
	uint32_t lost;	  /* without an algorithm: at least so many frames */
	bool each_layout; /* others run in rtc only */
	uint32_t seeds;	  /* with an algorithm: runs; 0: 1 */
	bool pfc;	  /* no frame is lost; without an algorithm hosts are paused instead */
};

/* What a run showed. */
struct figures {
	uint64_t dropped, marked, timeouts, again, cnps, pauses, max_queue, late_queue;
	double jain, used;
	double paused; /* share of the hosts' time */
};

static struct star star;

static struct star_flow
flow(uint32_t from, enum star_kind kind)
{
	return (struct star_flow){.from = from,
				  .to = 0,
				  .kind = kind,
				  .message = MESSAGE,
				  .depth = DEPTH};
}

/* ---- rows ---- */

/* Half of the hosts are 20 us away, the others 1 us. */
static void
two_distances(struct star *x)
{
	for (uint32_t i = 1; i < x->n; i += 2)
		hca_port_switch_set_link(x->host[i].port, x->network.rate_mbps, 20 * STAR_US);
}

/* The last host sends datagrams at 30 Gb/s, whatever happens. */
static void
disobedient(struct star *x)
{
	struct star_flow f = flow(x->n - 1, STAR_DATAGRAM);

	f.rate_mbps = 30000;
	star_add(x, f);
}

/* Half of the flows end at 4 ms; others begin at 2 ms. */
static void
start_and_stop(struct star *x)
{
	uint32_t n = x->flows;

	for (uint32_t i = n / 2; i < n; i++)
		x->flow[i].stop = 4 * STAR_MS;
	for (uint32_t i = 0; i < n / 4; i++) {
		struct star_flow f = flow(1 + i, STAR_WRITE);

		f.start = 2 * STAR_MS;
		f.stop = 3 * STAR_MS;
		star_add(x, f);
	}
}

/* Half of the flows begin at 2 ms, behind the queue of the others. */
static void
late_half(struct star *x)
{
	for (uint32_t i = 1; i < x->flows; i += 2)
		x->flow[i].start = 2 * STAR_MS;
}

static void
half_rate(struct star *x)
{
	hca_port_switch_set_link(x->host[0].port, x->network.rate_mbps / 2, x->network.delay_ns);
}

static const struct row rows[] = {
	{"write-2", 2, STAR_WRITE, .share = 1, .lost = 100},
	{"write-8", 8, STAR_WRITE, .share = 1, .each_layout = true, .lost = 1000},
	{"write-32", 32, STAR_WRITE, .share = 1, .lost = 5000},
	{"read-8", 8, STAR_READ, .share = 1, .lost = 200},
	{"read-32", 32, STAR_READ, .share = 1, .lost = 1000},
	{"distances-8", 8, STAR_WRITE, .more = two_distances, .share = 1, .lost = 1000, .seeds = 3},
	{"disobedient-9", 8, STAR_WRITE, .more = disobedient, .share = 1, .lost = 1000},
	{"start-stop-8", 8, STAR_WRITE, .more = start_and_stop, .share = 1, .counted = 4,
	 .lost = 1000, .from = 9 * STAR_MS},
	{"late-8", 8, STAR_WRITE, .more = late_half, .share = 1, .lost = 1000, .from = 7 * STAR_MS},
	{"half-rate-8", 8, STAR_WRITE, .at_warm = half_rate, .share = 0.5, .lost = 1000,
	 .from = 2 * WARM},
	{"pfc-8", 8, STAR_WRITE, .share = 1, .pfc = true},
	{"mixed-8", 8, STAR_WRITE, .ub = true, .share = 1, .lost = 1000},
	{"ub-32", 32, STAR_UB_WRITE, .ub = true, .share = 1, .lost = 1000},
};

/* ---- a run ---- */

static void
open_flows(struct star *x, const struct row *r)
{
	for (uint32_t i = 0; i < r->senders; i++)
		star_add(x, flow(1 + i, r->ub && i % 2 == 1 ? STAR_UB_WRITE : r->kind));
	if (r->more != NULL)
		r->more(x);
}

static uint64_t
paused_ns(const struct star *x)
{
	uint64_t sum = 0;

	for (uint32_t i = 1; i < x->n; i++)
		sum += star_port(x, i).paused_ns;
	return sum;
}

static void
measure(struct star *x, const struct row *r, struct figures *g)
{
	uint32_t n = r->counted != 0 ? r->counted : r->senders;
	struct hca_port_switch_stats warm, end;
	uint64_t from = r->from != 0 ? r->from : WARM, to = from + MEASURED, bytes, paused;

	star_run(x, WARM);
	if (r->at_warm != NULL)
		r->at_warm(x);
	star_run(x, from);
	warm = star_port(x, 0);
	paused = paused_ns(x);
	star_run(x, to);
	end = star_port(x, 0);
	*g = (struct figures){.jain = 1, .max_queue = end.max_queue};
	for (uint64_t t = from; t < to; t += WINDOW)
		g->jain = RTE_MIN(g->jain, star_jain(x, 0, 1, n, t, t + WINDOW));
	bytes = end.bytes - warm.bytes + HCA_FABRIC_OVERHEAD * (end.frames - warm.frames);
	g->used = (double)bytes * 8e3 / (double)MEASURED / (double)x->network.rate_mbps;
	g->late_queue = star_queue(x, 0, from, to);
	for (uint32_t i = 0; i < x->n; i++) {
		struct hca_port_switch_stats s = star_port(x, i);

		g->dropped += s.dropped;
		g->marked += s.marked;
		g->pauses += s.pauses;
	}
	g->paused = (double)(paused_ns(x) - paused) / (double)MEASURED / (x->n - 1);
	g->timeouts = star_counter(x, "local_ack_timeout_err") + star_counter(x, "ub_tp_timeouts");
	g->again = star_counter(x, "retransmissions");
	g->cnps = star_counter(x, "np_cnp_sent");
}

static void
show(const struct star *x, const struct figures *g)
{
	if (sim_env("SIM_VERBOSE", 0) == 0)
		return;
	fprintf(stderr,
		"%-22s jain %.3f used %5.1f %% max queue %7" PRIu64 " later %7" PRIu64
		" dropped %6" PRIu64 " marked %6" PRIu64 " timeouts %4" PRIu64 " again %7" PRIu64
		" cnps %6" PRIu64 " pauses %" PRIu64 " paused %.1f %%\n",
		x->cfg.name, g->jain, 100 * g->used, g->max_queue, g->late_queue, g->dropped,
		g->marked, g->timeouts, g->again, g->cnps, g->pauses, 100 * g->paused);
}

static void
judge(const struct row *r, const char *algorithm, const struct figures *g)
{
	if (strcmp(algorithm, "none") == 0) {
		STAR_CHECK(g->dropped >= r->lost,
			   "%s: only %" PRIu64 " frames were dropped without an algorithm", r->name,
			   g->dropped);
		STAR_CHECK(!r->pfc || (g->dropped == 0 && g->paused >= 0.5),
			   "%s: %" PRIu64 " dropped, paused %.1f %% without an algorithm", r->name,
			   g->dropped, 100 * g->paused);
		return;
	}
	STAR_CHECK(g->dropped == 0 && g->timeouts == 0,
		   "%s, %s: %" PRIu64 " dropped, %" PRIu64 " timeouts", r->name, algorithm,
		   g->dropped, g->timeouts);
	STAR_CHECK(g->paused <= 0.01, "%s, %s: paused %.1f %%", r->name, algorithm,
		   100 * g->paused);
	STAR_CHECK(g->jain >= 0.95, "%s, %s: Jain's index %.3f", r->name, algorithm, g->jain);
	STAR_CHECK(g->used >= 0.95 * r->share, "%s, %s: %.1f %% used", r->name, algorithm,
		   100 * g->used);
}

static struct figures
run_row(const struct sim_config *cfg, const struct row *r, const char *algorithm, uint32_t run)
{
	char name[48];
	const struct star_config c = {.name = name,
				      .congestion = algorithm,
				      .network = r->pfc ? LOSSLESS : NETWORK,
				      .hosts = 1 + r->senders + (r->more == disobedient),
				      .seed = cfg->seed + run,
				      .layout = cfg->layout,
				      .ub = r->ub};
	struct figures g;

	snprintf(name, sizeof(name), "%s-%s", r->name, algorithm);
	star_open(&star, &c);
	open_flows(&star, r);
	measure(&star, r, &g);
	show(&star, &g);
	star_stop(&star);
	star_close(&star);
	return g;
}

/* INCAST_ROWS in the environment: names of rows, with commas between them. */
static bool
is_wanted(const char *name)
{
	const char *v = getenv("INCAST_ROWS"), *end;

	for (; v != NULL && *v != '\0'; v = *end == '\0' ? end : end + 1) {
		end = strchrnul(v, ',');
		if (strlen(name) == (size_t)(end - v) && strncmp(v, name, end - v) == 0)
			return true;
	}
	return getenv("INCAST_ROWS") == NULL;
}

static void
each_row(const struct sim_config *cfg, const char *algorithm)
{
	STAR_CHECK(hca_cc_is_name(algorithm), "there is no algorithm %s", algorithm);
	if (cfg->executor != SIM_DIRECT)
		return; /* the stepper has two HCAs */
	for (unsigned int i = 0; i < RTE_DIM(rows); i++) {
		const struct row *r = &rows[i];
		uint32_t runs = strcmp(algorithm, "none") != 0 ? RTE_MAX(r->seeds, 1u) : 1;

		if (!is_wanted(r->name) || (cfg->layout != HCA_LAYOUT_RTC && !r->each_layout))
			continue;
		for (uint32_t run = 0; run < runs; run++) {
			struct figures g = run_row(cfg, r, algorithm, run);

			judge(r, algorithm, &g);
		}
	}
}

/* A run repeats with its seed. */
static void
repeats_in(const struct sim_config *cfg)
{
	struct figures a, b;

	if (cfg->executor != SIM_DIRECT)
		return;
	a = run_row(cfg, &rows[0], "none", 0);
	b = run_row(cfg, &rows[0], "none", 0);
	STAR_CHECK(memcmp(&a, &b, sizeof(a)) == 0, "another run has other figures");
}

static void
none_in(const struct sim_config *cfg)
{
	each_row(cfg, "none");
}

static void
dcqcn_in(const struct sim_config *cfg)
{
	each_row(cfg, "dcqcn");
}

static void
swift_in(const struct sim_config *cfg)
{
	each_row(cfg, "swift");
}

SIM_TEST(none)
SIM_TEST(dcqcn)
SIM_TEST(swift)
SIM_TEST(repeats)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(none),
		cmocka_unit_test(dcqcn),
		cmocka_unit_test(swift),
		cmocka_unit_test(repeats),
	};

	return sim_main_of(tests, RTE_DIM(tests));
}
