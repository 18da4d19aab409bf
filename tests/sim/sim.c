/* SPDX-License-Identifier: BSD-3-Clause */

#include <inttypes.h>
#include <malloc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>

#include "../test_eal.h"
#include "cc/cc.h"
#include "embed_ctl.h"
#include "engine/impl.h"
#include "graph/sleep.h"
#include "host.h"
#include "sim.h"
#include "sim_link.h"
#include "sim_model.h"

#define IDLE_LOOPS 4u /* direct: loops without work until time jumps */
#define IDLE_STEPS 8u /* stepped: sim_poll() calls of STEPS each */
#define STEPS 32u
#define JUMP_NS 20000u
#define SETTLE_NS 2000000u
#define SETTLE_MAX_NS 60000000000ull
#define DRIVER_EVERY 16u
#define PCAP_FRAMES 1000000u
/* Frames of each pool, and those that the link holds: DPDK clears pools, which takes time. */
#define MBUFS 256u
#define HELD 128u

void (*sim_on_fail)(void);
static char repeat[256];

const char *const sim_layout_names[] = {"rtc", "txrx", "full", NULL};

int
sim_layout_of(const char *name)
{
	for (int i = 0; sim_layout_names[i] != NULL; i++)
		if (strcmp(name, sim_layout_names[i]) == 0)
			return i;
	return -1;
}

uint64_t
sim_env(const char *name, uint64_t otherwise)
{
	const char *v = getenv(name);

	return v != NULL && *v != '\0' ? strtoull(v, NULL, 0) : otherwise;
}

uint64_t
sim_random(struct sim_rng *r)
{
	uint64_t z = (r->s += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

uint32_t
sim_below(struct sim_rng *r, uint32_t n)
{
	return (uint32_t)(((sim_random(r) >> 32) * n) >> 32);
}

void
sim_set_repeat(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(repeat, sizeof(repeat), format, ap);
	va_end(ap);
}

static void
dump_side(const struct sim *s, unsigned int i)
{
	struct hca_port_impair_stats st;
	struct hca_usage u;

	if (s->side[i].hca == NULL)
		return;
	hca_usage(s->side[i].hca, &u);
	fprintf(stderr,
		"side %u: records %u+%u mbufs %u+%u edges %u backlog %u messages %u qps %u\n", i,
		u.records, u.full_records, u.tx_mbufs, u.resp_mbufs, u.edge_objects, u.backlog,
		u.messages, u.qps);
	for (unsigned int c = 0; c < hca_counter_count(); c++)
		if (hca_counter_value(s->side[i].hca, c) != 0)
			fprintf(stderr, "  %s=%" PRIu64, hca_counter_name(c),
				hca_counter_value(s->side[i].hca, c));
	hca_port_impair_stats(s->side[i].impair, &st);
	fprintf(stderr, "\n  port:");
#define X(n) \
	if (st.n != 0) \
		fprintf(stderr, " " #n "=%" PRIu64, st.n);
	HCA_PORT_IMPAIR_STATS(X)
#undef X
	fprintf(stderr, " held=%u queued=%u\n", hca_port_impair_held(s->side[i].impair),
		sim_link_queued(s->side[i].wire));
}

void
sim_summary(const struct sim *s)
{
	static const char *const executors[] = {"direct", "stepped", "threads"};

	fprintf(stderr, "seed %" PRIu64 ", layout %s, executor %s, now %" PRIu64 " ns\n",
		s->cfg.seed, sim_layout_names[s->cfg.layout], executors[s->cfg.executor], s->now);
	dump_side(s, 0);
	dump_side(s, 1);
}

void
sim_fail(struct sim *s, const char *format, ...)
{
	va_list ap;

	fprintf(stderr, "FAILED: ");
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fprintf(stderr, "\n");
	if (s != NULL)
		sim_summary(s);
	if (s != NULL)
		hca_pcap_close(s->pcap);
	if (repeat[0] != '\0')
		fprintf(stderr, "repeat: %s\n", repeat);
	fflush(stderr);
	if (sim_on_fail != NULL)
		sim_on_fail();
	exit(1);
}

static cpu_set_t every_cpu;

static void
start_eal(void)
{
	static bool started;

	if (started)
		return;
	sched_getaffinity(0, sizeof(every_cpu), &every_cpu);
	sim_check(NULL, test_eal_start(1024) == 0, "rte_eal_init");
	/* freed memory serves the next simulation: page faults would take longer than it does */
	mallopt(M_MMAP_THRESHOLD, 32 << 20);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	started = true;
}

static void
hw_progress(void *arg)
{
	struct sim *s = arg;

	for (unsigned int i = 0; s->threads != NULL && i < 2; i++)
		hca_kick_stage(s->side[i].hca, HCA_STAGE_CEU);
	sim_poll(s);
}

static void
open_ports(struct sim *s, const char *name)
{
	struct hca_port *wire[2];
	const struct sim_link_config link = {
		.depth = s->cfg.link_depth ? s->cfg.link_depth : 256,
		.queues = s->cfg.pipes,
		.steering = s->cfg.seed & 1 ? SIM_LINK_BY_QPN : SIM_LINK_BY_HASH,
	};

	sim_check(s, sim_link_open(name, &link, wire) == 0, "no wire");
	if (getenv("SIM_PCAP") != NULL)
		sim_check(s, hca_pcap_open(getenv("SIM_PCAP"), PCAP_FRAMES, &s->pcap) == 0,
			  "SIM_PCAP cannot be written");
	for (unsigned int i = 0; i < 2; i++) {
		struct sim_side *side = &s->side[i];
		char pool[24];
		struct hca_port_impair_config ic = {.name = pool,
						    .seed = s->cfg.seed * 4 + i,
						    .hold = HELD,
						    .socket_id = -1};
		struct hca_port *sent;
		struct hca_port_stall_config sc = {.seed = s->cfg.seed * 4 + 2 + i,
						   .socket_id = -1};

		snprintf(pool, sizeof(pool), "%s%u", name, i);
		side->wire = wire[i];
		sim_check(s, hca_port_impair_open(&ic, wire[i], &side->impair) == 0, "no impair");
		sent = side->impair;
		if (s->pcap != NULL)
			sim_check(s, hca_port_pcap_open(s->pcap, side->impair, -1, &sent) == 0,
				  "no capture");
		sim_check(s, hca_port_stall_open(&sc, sent, &side->stall) == 0, "no stall");
	}
}

static void
open_hca(struct sim *s, unsigned int i, const char *name)
{
	const struct sim_config *c = &s->cfg;
	uint32_t log_qps = c->log_num_qps ? c->log_num_qps : 8;
	const struct hca_cc_ops *const more[] = {c->congestion, NULL};
	char hname[16];
	struct hca_config cfg = {
		.name = hname,
		.port = s->side[i].stall,
		.wires = c->wires,
		.layout = c->layout,
		.pipelines = c->pipes,
		.socket_id = -1,
		.log_qps = log_qps,
		.log_cqs = RTE_MIN(log_qps + 1, 14u),
		.log_srqs = 8,
		.log_eqs = 3,
		.log_mpts = RTE_MIN(log_qps + 3, 17u),
		.log_mtts = 17,
		.log_tps = c->log_tps ? c->log_tps : 4,
		.ub_ops = c->ub_ops ? c->ub_ops : 1024,
		.edge_size = c->edge_size,
		.records = c->records ? c->records : 1024,
		.full_records = c->full_records ? c->full_records : 1024,
		.records_per_qp = c->records_per_qp,
		.mbufs = c->mbufs ? c->mbufs : MBUFS,
		.port_stall_ns = c->port_stall_ns,
		.max_mtu = c->max_mtu,
		.congestion = c->congestion != NULL ? c->congestion->name : NULL,
		.congestion_more = more,
		.mac = {2, 0, 0, 0, 0, (uint8_t)(i + 1)},
	};
	int rc;

	snprintf(hname, sizeof(hname), "%s.h%u", name, i);
	rc = hca_create(&cfg, &s->side[i].hca);
	sim_check(s, rc == 0, "hca_create: %d", rc);
}

const char *const sim_gid_names[SIM_GIDS] = {
#define X(id, name, vlan, ...) [SIM_GID_##id] = name,
	SIM_GID_LIST(X)
#undef X
};

const uint16_t sim_gid_vlan[SIM_GIDS] = {
#define X(id, name, vlan, ...) [SIM_GID_##id] = vlan,
	SIM_GID_LIST(X)
#undef X
};

void
sim_gid(unsigned int side, unsigned int index, uint8_t gid[16])
{
	static const uint8_t prefix[SIM_GIDS][16] = {
#define X(id, name, vlan, ...) [SIM_GID_##id] = {__VA_ARGS__},
		SIM_GID_LIST(X)
#undef X
	};

	memcpy(gid, prefix[index], 16);
	gid[15] = (uint8_t)(side + 1);
}

static void
set_addresses(struct sim *s, unsigned int i)
{
	struct hca_driver *drv = s->side[i].drv;
	uint8_t gid[16], mac[6] = {2, 0, 0, 0, 0};
	int rc;

	for (unsigned int k = 0; k < SIM_GIDS; k++) {
		mac[5] = (uint8_t)(i + 1);
		sim_gid(i, k, gid);
		rc = hca_driver_set_gid(drv, k, gid, mac, sim_gid_vlan[k]);
		sim_check(s, rc == 0, "set_gid %s: %d: %s", sim_gid_names[k], rc,
			  hca_driver_reason());
		mac[5] = (uint8_t)(2 - i);
		sim_gid(1 - i, k, gid);
		rc = hca_driver_set_neigh(drv, gid, mac);
		sim_check(s, rc == 0, "set_neigh %s: %d: %s", sim_gid_names[k], rc,
			  hca_driver_reason());
	}
}

static void
open_driver(struct sim *s, unsigned int i)
{
	struct sim_side *side = &s->side[i];
	struct hca_hw hw = hca_host_hw(side->hca);
	struct hca_driver_config dc = {.seed = s->cfg.seed * 2 + 1 + i,
				       .timeout_ms = 60000,
				       .quota = s->cfg.quota};
	struct hca_ctl_port port = {.speed = 100000,
				    .state = SOFTHCA_PORT_ACTIVE,
				    .max_mtu = SOFTHCA_MTU_4096,
				    .active_mtu = SOFTHCA_MTU_4096};
	const uint8_t mac[6] = {2, 0, 0, 0, 0, (uint8_t)(i + 1)};
	int rc;

	hw.progress = hw_progress;
	hw.progress_arg = s;
	rc = hca_driver_create(&hw, &dc, &side->drv);
	sim_check(s, rc == 0, "hca_driver_create: %d: %s", rc, hca_driver_reason());
	memcpy(port.mac, mac, 6);
	set_addresses(s, i);
	rc = hca_driver_set_port(side->drv, &port);
	sim_check(s, rc == 0, "set_port: %d: %s", rc, hca_driver_reason());
}

struct softhca_context *
sim_client(struct sim *s, unsigned int side)
{
	/* No progress hook: only the simulation decides when the engine runs. */
	const struct hca *h = s->side[side].hca;
	struct embed_ctl_config cc = {.name = "sim"};
	struct softhca_context *ctx;
	int rc;

	for (unsigned int n = 0; s->threads != NULL && n < hca_pipelines(h); n++) {
		cc.sleep[n].word = hca_doorbell_word(h, n);
		cc.sleep[n].kick_fd = hca_kick_fd(h, n);
	}
	rc = embed_ctl_open(s->side[side].drv, &cc, &ctx);
	sim_check(s, rc == 0, "client: %d: %s", rc, hca_driver_reason());
	return ctx;
}

/* For this thread and those it creates. */
static void
choose_cpus(const struct sim *s)
{
	bool one = s->cfg.executor == SIM_THREADS && !s->cfg.all_cpus;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((unsigned int)sched_getcpu(), &set);
	sched_setaffinity(0, sizeof(set), one ? &set : &every_cpu);
}

static void
start_threads(struct sim *s)
{
	struct hca *h[2] = {s->side[0].hca, s->side[1].hca};
	struct hca_threads_config tc = {
		.hca = h,
		.num_hca = 2,
		.backstop_ns = s->cfg.backstop_ns,
	};
	int rc = hca_threads_start(&tc, &s->threads);

	sim_check(s, rc == 0, "threads: %d", rc);
}

static void
open_client(struct sim *s, unsigned int i)
{
	struct sim_side *side = &s->side[i];

	side->ctx = sim_client(s, i);
	side->pd = softhca_alloc_pd(side->ctx);
	sim_check(s, side->pd != NULL, "alloc_pd: %s", softhca_last_error(side->ctx));
	hca_usage(side->hca, &side->base);
	hca_driver_usage(side->drv, &side->drv_base);
}

struct sim *
sim_open(const struct sim_config *cfg)
{
	static unsigned int serial;
	struct sim *s = calloc(1, sizeof(*s));
	struct hca *h[2];
	char name[12];

	start_eal();
	sim_check(NULL, s != NULL, "no memory");
	s->cfg = *cfg;
	s->now = 1000000;
	if (s->cfg.pipes == 0)
		s->cfg.pipes = (uint32_t)sim_env("SIM_PIPES", 1);
	if (s->cfg.tick_ns == 0)
		s->cfg.tick_ns = cfg->executor == SIM_STEPPED ? 50 / s->cfg.pipes : 500;
	snprintf(name, sizeof(name), "s%u", serial++);
	open_ports(s, name);
	for (unsigned int i = 0; i < 2; i++) {
		open_hca(s, i, name);
		h[i] = s->side[i].hca;
		if (cfg->executor == SIM_STEPPED) {
			sim_link_hash_on(s->side[i].wire);
		}
	}
	sim_stepper_init(&s->stepper, h, 2, cfg->seed, s->cfg.tick_ns);
	s->stepper.now = s->now;
	choose_cpus(s);
	if (cfg->executor == SIM_THREADS)
		start_threads(s);
	for (unsigned int i = 0; i < 2; i++)
		open_driver(s, i);
	for (unsigned int i = 0; i < 2; i++)
		open_client(s, i);
	return s;
}

void
sim_restart(struct sim *s, unsigned int i)
{
	struct sim_side *side = &s->side[i];
	struct hca_driver *drv = side->drv;

	softhca_dealloc_pd(side->pd);
	softhca_close(side->ctx);
	side->drv = NULL; /* so that it is not polled any more */
	hca_driver_destroy(drv);
	open_driver(s, i);
	open_client(s, i);
}

static unsigned int
poll_direct(struct sim *s)
{
	unsigned int work = 0;

	s->now += s->cfg.tick_ns;
	for (unsigned int i = 0; i < 2; i++) {
		struct hca *h = s->side[i].hca;

		for (unsigned int w = 0; h != NULL && w < hca_workers(h); w++)
			work += hca_poll(h, w, s->now);
	}
	s->idle = work != 0 ? 0 : s->idle + 1;
	if (s->idle > IDLE_LOOPS)
		s->now += JUMP_NS;
	return work;
}

static unsigned int
poll_stepped(struct sim *s)
{
	unsigned int work = 0;

	for (unsigned int i = 0; i < STEPS; i++)
		work += sim_stepper_step(&s->stepper);
	s->idle = work != 0 ? 0 : s->idle + 1;
	if (s->idle > IDLE_STEPS)
		s->stepper.now += JUMP_NS;
	s->now = s->stepper.now;
	return work;
}

#define ALONE_NS 2000u
#define ALONE_TURNS 64u
#define REST_US 20u

/*
 * Yield the CPU. If no other thread has used it recently and this thread was also idle, all wait
 * for time to pass: sleep, and leave the CPU to other programs.
 */
static void
wait_for_threads(struct sim *s)
{
	uint64_t now = hca_clock_ns();

	s->alone = now - s->now < ALONE_NS ? s->alone + 1 : 0;
	s->now = now;
	if (s->alone < ALONE_TURNS) {
		sched_yield();
		return;
	}
	s->alone = 0;
	usleep(REST_US);
}

unsigned int
sim_poll(struct sim *s)
{
	unsigned int work = 0;

	if (s->threads != NULL) {
		wait_for_threads(s);
	} else if (s->cfg.executor == SIM_STEPPED) {
		work = poll_stepped(s);
	} else {
		work = poll_direct(s);
	}
	if (++s->loops % DRIVER_EVERY == 0)
		for (unsigned int i = 0; i < 2; i++)
			if (s->side[i].drv != NULL)
				hca_driver_poll(s->side[i].drv);
	if (s->watch != NULL)
		s->watch(s->watch_arg);
	return work;
}

void
sim_run_for(struct sim *s, uint64_t ns)
{
	uint64_t end = s->now + ns;

	while (s->now < end)
		sim_poll(s);
}

void
sim_pass(struct sim *s, uint64_t ns)
{
	s->now += ns;
	s->stepper.now += ns;
}

bool
sim_run_until(struct sim *s, bool (*done)(struct sim *s, void *arg), void *arg, uint64_t max_ns)
{
	uint64_t end;

	sim_poll(s);
	end = s->now + max_ns;
	while (!done(s, arg)) {
		if (s->now >= end)
			return false;
		sim_poll(s);
	}
	return true;
}

static bool
in_flight(const struct sim *s)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct hca_usage u;

		hca_usage(s->side[i].hca, &u);
		if (u.records + u.full_records + u.tx_mbufs + u.resp_mbufs + u.edge_objects +
			    u.backlog + u.messages !=
		    0)
			return true;
		if (hca_port_impair_held(s->side[i].impair) != 0 ||
		    sim_link_queued(s->side[i].wire) != 0)
			return true;
	}
	return false;
}

void
sim_settle(struct sim *s)
{
	uint64_t end, quiet;

	sim_poll(s);
	quiet = s->now;
	for (end = s->now + SETTLE_MAX_NS; s->now < end && s->now - quiet < SETTLE_NS;)
		if (sim_poll(s) != 0 || ((s->loops & 63) == 0 && in_flight(s)))
			quiet = s->now;
}

/*
 * A worker thread may be off its CPU while it handles a message, or a timer that is no longer
 * needed may expire between two checks: only objects that stay in use over many checks are a leak.
 */
static void
settle_threads(struct sim *s)
{
	for (unsigned int looks = 0; looks < 200 && in_flight(s); looks++)
		sim_settle(s);
}

static void
check_zero(struct sim *s, unsigned int side, const char *what, uint64_t value)
{
	sim_check(s, value == 0, "side %u: %" PRIu64 " %s left in use", side, value, what);
}

void
sim_check_usage(struct sim *s, bool objects_too)
{
	sim_settle(s);
	for (unsigned int i = 0; i < 2; i++) {
		struct sim_side *side = &s->side[i];
		struct hca_driver_usage d;
		unsigned int tries = 100;
		struct hca_usage u;

		do {
			settle_threads(s);
			hca_usage(side->hca, &u);
		} while (s->threads != NULL && u.messages + u.edge_objects != 0 && tries-- != 0);
		check_zero(s, i, "records", u.records);
		check_zero(s, i, "full records", u.full_records);
		check_zero(s, i, "requester mbufs", u.tx_mbufs);
		check_zero(s, i, "response mbufs", u.resp_mbufs);
		check_zero(s, i, "edge objects", u.edge_objects);
		check_zero(s, i, "frames in the backlog", u.backlog);
		check_zero(s, i, "messages", u.messages);
		check_zero(s, i, "frames held", hca_port_impair_held(side->impair));
		check_zero(s, i, "frames on the wire", sim_link_queued(side->wire));
		check_zero(s, i, "copies", hca_port_impair_mbufs(side->impair));
		if (!objects_too)
			continue;
		hca_driver_usage(side->drv, &d);
		check_zero(s, i, "QPs", u.qps - side->base.qps);
		check_zero(s, i, "CQs", u.cqs - side->base.cqs);
		check_zero(s, i, "MPTs", u.mpts - side->base.mpts);
		check_zero(s, i, "QPs of the driver", d.qps - side->drv_base.qps);
		check_zero(s, i, "CQs of the driver", d.cqs - side->drv_base.cqs);
		check_zero(s, i, "MRs of the driver", d.mrs - side->drv_base.mrs);
		check_zero(s, i, "MTTs of the driver", d.mtts - side->drv_base.mtts);
	}
}

void
sim_close(struct sim *s)
{
	sim_check_usage(s, true);
	sim_check_conservation(s);
	for (unsigned int i = 0; i < 2; i++) {
		struct sim_side *side = &s->side[i];

		sim_check(s, softhca_dealloc_pd(side->pd) == 0, "dealloc_pd");
		sim_check(s, softhca_close(side->ctx) == 0, "close");
		hca_driver_destroy(side->drv);
		side->drv = NULL;
	}
	hca_threads_stop(s->threads);
	for (unsigned int i = 0; i < 2; i++)
		hca_destroy(s->side[i].hca);
	for (unsigned int i = 0; i < 2; i++)
		s->side[i].stall->ops->close(s->side[i].stall);
	hca_pcap_close(s->pcap);
	free(s->model);
	free(s);
}

uint8_t
sim_ack_timeout(const struct sim *s)
{
	return s->cfg.executor == SIM_THREADS ? 20 : 8;
}

uint64_t
sim_counter(const struct sim *s, unsigned int side, const char *name)
{
	for (unsigned int i = 0; i < hca_counter_count(); i++)
		if (strcmp(hca_counter_name(i), name) == 0)
			return hca_counter_value(s->side[side].hca, i);
	sim_fail((struct sim *)(uintptr_t)s, "no counter %s", name);
}

uint64_t
sim_hash_all(struct sim *s)
{
	uint64_t h = 0;

	for (unsigned int i = 0; i < 2; i++) {
		uint64_t v[2] = {sim_link_hash(s->side[i].wire), s->side[i].cqe_hash};

		h = sim_hash(h, v, sizeof(v));
		for (unsigned int c = 0; c < hca_counter_count(); c++) {
			v[0] = hca_counter_value(s->side[i].hca, c);
			h = sim_hash(h, v, sizeof(v[0]));
		}
	}
	return sim_hash(h, &s->now, sizeof(s->now));
}

void
sim_impair(struct sim *s, unsigned int side, const struct hca_impair *impair)
{
	hca_port_impair_set(s->side[side].impair, impair);
}

void
sim_rule(struct sim *s, unsigned int side, struct hca_fault_rule rule)
{
	sim_check(s, hca_port_impair_rule(s->side[side].impair, &rule) == 0, "too many rules");
}

void
sim_clear_rules(struct sim *s)
{
	for (unsigned int i = 0; i < 2; i++)
		hca_port_impair_clear_rules(s->side[i].impair);
}

/* Number of faults that make a requester retransmit. */
uint64_t
sim_faults(const struct sim *s)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < 2; i++) {
		struct hca_port_impair_stats st;

		hca_port_impair_stats(s->side[i].impair, &st);
		n += st.dropped + st.duplicated + st.reordered + st.delayed + st.corrupted +
		     st.truncated;
	}
	return n;
}
