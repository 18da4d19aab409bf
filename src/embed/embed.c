/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * HCAs inside the calling process: device, driver and link of each, and how they run. With the
 * executor "manual" a thread that posts, polls or waits runs one loop of every HCA; with "threads"
 * the device's workers run, and forward events (host_events.h).
 */

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_lcore.h>

#include "abi_reason.h"
#include "abi_release.h"
#include "cc/cc_names.h"
#include "core/core.h"
#include "embed_ctl.h"
#include "abi_ub.h"
#include "embed_impl.h"
#include "embed_ports.h"
#include "embed_telemetry.h"
#include "graph/sleep.h"
#include "host.h"
#include "port/port_wrap.h"
#include "wire/wire_view.h"

/* A fabric's clock: each loop takes a tick; after some without work, until the next arrival. */
#define TICK_NS 100u
#define IDLE_LOOPS 8u
#define IDLE_NS 1000u
#define SIM_START_NS 1000000000u

#define CM_EVERY 64u	   /* manual: of calls of programs: turns of connection management */
#define EVENTS_EVERY 1024u /* manual: interval of checks of the event queues, in loops */

HCA_REASON_DEFINE(embed_fail, softhca_embed_last_error, 256, 0)

void
softhca_embed_config_init(struct softhca_embed_config *c)
{
	*c = (struct softhca_embed_config)
	{
		.size = sizeof(*c), .num_hcas = 2, .max_mtu = SOFTHCA_MTU_4096, .pipelines = 1,
#define X(section, name, min, max, def) .name = def,
		HCA_LIMIT_LIST(X)
#undef X
			.memory_mb = 512,
		.port_queue = 1024,
	};
}

static uint32_t
wires_of(const struct softhca_embed_config *c)
{
	return HCA_WIRE_BIT(HCA_WIRE_ROCE) | (c->ub ? HCA_WIRE_BIT(HCA_WIRE_UB) : 0);
}

static int
check_pipelines(const struct softhca_embed_config *c)
{
	if (c->pipelines > HCA_PIPES_MAX || (c->pipelines & (c->pipelines - 1)) != 0)
		return embed_fail(-EINVAL, "pipelines = %u: expected 1, 2, 4, 8 or 16",
				  c->pipelines);
	if (hca_layout_workers((enum hca_layout)c->layout, c->pipelines, wires_of(c)) >
	    HCA_WORKERS_MAX)
		return embed_fail(-EINVAL, "pipelines = %u: the layout has more than %u workers",
				  c->pipelines, HCA_WORKERS_MAX);
	return 0;
}

static int
check_sizes(const struct softhca_embed_config *c)
{
#define X(section, name, min, max, def) \
	if (!hca_limit_holds(c->name, min, max, def)) \
		return embed_fail(-EINVAL, #name " = %u: %u to %u", c->name, min, max);
	HCA_LIMIT_LIST(X)
#undef X
	return 0;
}

/* Fields that are 0 get their defaults. */
/* 0: the default */
static bool
power_within(uint32_t value, uint32_t min, uint32_t max)
{
	return value == 0 || (value >= min && value <= max && (value & (value - 1)) == 0);
}

static bool
valid_ub(const struct softhca_embed_config *c)
{
	return c->ub_tps <= 16 && power_within(c->ub_window, 128, 2048) &&
	       c->ub_rule <= SOFTHCA_UB_RULE_TIME && power_within(c->ub_spray, 1, 256) &&
	       c->ub_reorder_us <= 1000000 && c->ub_segment % 4096 == 0 && c->ub_segment <= 65536 &&
	       (c->ub_choices & ~HCA_UB_SWITCHES) == 0 && c->ub_mode <= SOFTHCA_UB_MODE_SACK &&
	       power_within(c->ub_sack, 64, 1024) && c->ub_exponent <= 8;
}

static int
take_config(struct softhca_embed *e, const struct softhca_embed_config *in)
{
	struct softhca_embed_config *c = &e->cfg;
	struct softhca_embed_config d;

	if (in->size != sizeof(*in))
		return embed_fail(-EINVAL,
				  "size = %u: expected %zu; begin with softhca_embed_config_init()",
				  in->size, sizeof(*in));
	for (size_t i = 0; i < RTE_DIM(in->reserved); i++)
		if (in->reserved[i] != 0)
			return embed_fail(-EOPNOTSUPP,
					  "the configuration has members of a later release than "
					  "libsofthca-embed " HCA_RELEASE);
	softhca_embed_config_init(&d);
	*c = *in;
#define DEFAULT(f) \
	if (c->f == 0) \
	c->f = d.f
	DEFAULT(num_hcas);
	DEFAULT(max_mtu);
	DEFAULT(pipelines);
#define X(section, name, ...) DEFAULT(name);
	HCA_LIMIT_LIST(X)
#undef X
	DEFAULT(memory_mb);
	DEFAULT(port_queue);
#undef DEFAULT
	if ((c->num_hcas % 2 != 0 && c->ports == NULL) || c->num_hcas > EMBED_HCAS_MAX)
		return embed_fail(-EINVAL, "%u HCAs: an even number up to %u", c->num_hcas,
				  EMBED_HCAS_MAX);
	if (c->first > EMBED_FIRST_MAX)
		return embed_fail(-EINVAL, "number %u of the first HCA: 0 to %u", c->first,
				  EMBED_FIRST_MAX);
	if (c->layout > SOFTHCA_LAYOUT_FULL || c->executor > SOFTHCA_EXECUTOR_THREADS ||
	    c->idle > SOFTHCA_IDLE_SPIN || c->max_mtu > SOFTHCA_MTU_4096)
		return embed_fail(
			-EINVAL,
			"layout = %u, executor = %u, idle = %u, max_mtu = %u: expected at "
			"most %u, %u, %u and %u",
			c->layout, c->executor, c->idle, c->max_mtu, SOFTHCA_LAYOUT_FULL,
			SOFTHCA_EXECUTOR_THREADS, SOFTHCA_IDLE_SPIN, SOFTHCA_MTU_4096);
	if (c->fabric.rate_gbps != 0 &&
	    (c->executor != SOFTHCA_EXECUTOR_MANUAL || c->ports != NULL))
		return embed_fail(-EINVAL,
				  "a fabric needs the executor manual and links in memory");
	if (!valid_ub(c))
		return embed_fail(
			-EINVAL,
			"UB: %u TPs, window %u, rule %u, %u ports, segment %u, choices %#x, "
			"mode %u, %u bits, exponent %u",
			c->ub_tps, c->ub_window, c->ub_rule, c->ub_spray, c->ub_segment,
			c->ub_choices, c->ub_mode, c->ub_sack, c->ub_exponent);
	if (c->ub > 1)
		return embed_fail(-EINVAL, "ub = %u: 0 or 1", c->ub);
	if (c->congestion != NULL && !hca_cc_is_name(c->congestion))
		return embed_fail(-EINVAL, "congestion = \"%s\": %s", c->congestion, HCA_CC_NAMES);
	return check_pipelines(c) != 0 ? -EINVAL : check_sizes(c);
}

/* ---- running ---- */

/* Manual: the thread that runs the engine forwards the events afterwards. */
static void
on_events(void *arg, uint32_t eqn_bits)
{
	struct softhca_embed *e = arg;

	__atomic_fetch_or(&e->events, eqn_bits, __ATOMIC_RELEASE);
}

static void
forward_events(struct softhca_embed *e)
{
	if (__atomic_load_n(&e->stop, __ATOMIC_RELAXED))
		/*
		 * the drivers are destroyed one by one, and commands of the last one run the engine
		 */
		return;
	__atomic_exchange_n(&e->events, 0, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < e->cfg.num_hcas; i++) {
		struct hca_driver *drv = __atomic_load_n(&e->side[i].drv, __ATOMIC_ACQUIRE);

		if (drv != NULL)
			hca_driver_poll(drv);
	}
}

/* Mbuf pools have a cache per registered thread. */
static inline void
register_thread(void)
{
	if (__builtin_expect(rte_lcore_id() == LCORE_ID_ANY, 0))
		(void)rte_thread_register();
}

static bool
is_simulated(const struct softhca_embed *e)
{
	return e->cfg.fabric.rate_gbps != 0;
}

/* Where to an idle clock may jump without passing an arrival. */
static uint64_t
idle_until(const struct softhca_embed *e)
{
	uint64_t at = e->sim_now + IDLE_NS;

	for (uint32_t i = 0; i < e->cfg.num_hcas; i++)
		at = RTE_MIN(at, hca_port_deadline(e->side[i].fabric, 0, e->sim_now));
	return at;
}

static void
advance(struct softhca_embed *e, unsigned int work)
{
	uint64_t next = e->sim_now + TICK_NS;

	e->idle = work == 0 ? e->idle + 1 : 0;
	if (e->idle > IDLE_LOOPS)
		next = RTE_MAX(next, idle_until(e));
	__atomic_store_n(&e->sim_now, next, __ATOMIC_RELAXED);
}

uint64_t
softhca_embed_now(const struct softhca_embed *e)
{
	return is_simulated(e) ? __atomic_load_n(&e->sim_now, __ATOMIC_RELAXED) : hca_clock_ns();
}

/* The HCA whose program waits comes last: its messages have arrived when the run ends. */
static inline unsigned int
poll_all(struct softhca_embed *e, uint32_t last, uint64_t now)
{
	unsigned int work = 0;
	uint32_t i = last;

	do {
		i = i + 1 < e->cfg.num_hcas ? i + 1 : 0;
		if (e->side[i].hca != NULL)
			work += hca_direct_poll(e->side[i].hca, now);
	} while (i != last);
	return work;
}

static __attribute__((noinline)) unsigned int
poll_simulated(struct softhca_embed *e)
{
	unsigned int work = poll_all(e, e->cfg.num_hcas - 1, e->sim_now);

	advance(e, work);
	return work;
}

static unsigned int
run_once(struct softhca_embed *e, uint32_t last)
{
	unsigned int work;

	if (__builtin_expect(is_simulated(e), 0))
		work = poll_simulated(e);
	else
		work = poll_all(e, last, hca_clock_ns());
	if (__atomic_load_n(&e->events, __ATOMIC_RELAXED) != 0 ||
	    (++e->polls & (EVENTS_EVERY - 1)) == 0)
		forward_events(e);
	return work;
}

/* Manual: one thread at a time runs the engine; others continue without progress. */
unsigned int
embed_run(struct softhca_embed *e, uint32_t last)
{
	unsigned int work;

	if (__atomic_exchange_n(&e->running, 1, __ATOMIC_ACQUIRE) != 0) {
		sched_yield();
		return 0;
	}
	register_thread();
	work = run_once(e, last);
	__atomic_store_n(&e->running, 0, __ATOMIC_RELEASE);
	return work;
}

/* The same, for programs: they may wait for agents. */
static unsigned int
run_all(struct softhca_embed *e, uint32_t last)
{
	unsigned int work = embed_run(e, last);
	uint32_t cm_polls;

	if (__builtin_expect(e->cfg.ub, 0))
		embed_agents_poll(e);
	cm_polls = __atomic_load_n(&e->cm_polls, __ATOMIC_RELAXED) + 1;
	__atomic_store_n(&e->cm_polls, cm_polls, __ATOMIC_RELAXED);
	if (__builtin_expect((cm_polls & (CM_EVERY - 1)) == 0, 0))
		embed_cm_poll(e);
	return work;
}

/* Called by the driver while a command is executed. */
static void
wait_for_command(void *arg)
{
	struct softhca_embed *e = ((struct embed_hca *)arg)->owner;

	if (e->threads == NULL)
		embed_run(e, e->cfg.num_hcas - 1);
	else
		hca_host_wait(((struct embed_hca *)arg)->hca);
}

unsigned int
softhca_embed_progress(struct softhca_embed *e)
{
	return e->threads == NULL && e->forks == embed_forks() ? run_all(e, e->cfg.num_hcas - 1)
							       : 0;
}

unsigned int
softhca_embed_lcores(const struct softhca_embed *e)
{
	return e->threads == NULL ? 0 : hca_threads_count(e->threads);
}

static int
start_threads(struct softhca_embed *e)
{
	struct hca *hca[EMBED_HCAS_MAX];
	struct hca_threads_config tc = {
		.hca = hca,
		.num_hca = e->cfg.num_hcas,
		.spin = e->cfg.idle == SOFTHCA_IDLE_SPIN,
	};
	int err;

	if (e->cfg.executor != SOFTHCA_EXECUTOR_THREADS)
		return 0;
	for (uint32_t i = 0; i < e->cfg.num_hcas; i++)
		hca[i] = e->side[i].hca;
	err = hca_threads_start(&tc, &e->threads);
	if (err != 0)
		return embed_fail(err, "worker threads could not be started");
	err = host_events_start(&e->notifier);
	return err == 0 ? 0 : embed_fail(err, "the notifier thread could not be started");
}

/* After this the event queues of the drivers are not read any more. */
static void
stop_events(struct softhca_embed *e)
{
	__atomic_store_n(&e->stop, 1, __ATOMIC_RELAXED);
	host_events_stop(&e->notifier);
}

/* ---- building ---- */

static void
mac_of(uint32_t i, uint8_t mac[6])
{
	const uint8_t m[6] = {0x02, 0x00, 0x00, 0x77, 0x00, (uint8_t)(i + 1)};

	memcpy(mac, m, sizeof(m));
}

/*
 * Addresses of every HCA by GID index; with link_local_first the last one is in front of the
 * others. The last byte is 1 + its number, that of the first + i.
 */
static const struct embed_gid {
	bool vlan;
	uint8_t prefix[15];
} gids[] = {
	{false, {[10] = 0xff, 0xff, 10, 77, 0}},
	{false, {0x20, 0x01, 0x0d, 0xb8, 0, 0x77}},
	{true, {[10] = 0xff, 0xff, 10, 78, 0}},
	{true, {0x20, 0x01, 0x0d, 0xb8, 0, 0x78}},
	{false, {0xfe, 0x80}},
};

/* The rate of an HCA's link; 0: the configuration has no fabric. */
static uint32_t
embed_link_mbps(const struct softhca_embed_config *c)
{
	double mbps = c->fabric.rate_gbps * 1e3 * RTE_MAX(c->fabric.paths, 1u);

	return mbps < UINT32_MAX ? (uint32_t)(mbps + 0.5) : 0;
}

static int
create_hca(struct softhca_embed *e, uint32_t i, uint32_t serial)
{
	const struct softhca_embed_config *c = &e->cfg;
	struct hca_config hc = {
		.name = e->side[i].name,
		.port = e->side[i].port,
		.layout = (enum hca_layout)c->layout,
		.pipelines = c->pipelines,
		.socket_id = -1,
#define X(section, name, ...) .name = c->name,
		HCA_LIMIT_LIST(X)
#undef X
			.full_records = c->records,
		.wires = wires_of(c),
		.port_stall_ns = (uint64_t)c->stall.discard_after_us * 1000,
		.max_mtu = 128u << c->max_mtu,
		.ub_segment = c->ub_segment,
		.ub_choices = c->ub_choices,
		.congestion = c->congestion,
		.link_mbps = embed_link_mbps(c),
		.wall_clock = hca_host_wall_clock,
	};
	int err;

	snprintf(e->side[i].name, sizeof(e->side[i].name), "sh%u_%u", serial, i);
	mac_of(c->first + i, hc.mac);
	err = hca_host_sleep_open(&e->side[i].sleep_words, &e->side[i].sleep_fd);
	if (err != 0)
		return embed_fail(err, "sleep words of HCA %u: %s", i, strerror(-err));
	hc.sleep_words = e->side[i].sleep_words;
	err = hca_create(&hc, &e->side[i].hca);
	if (err != 0)
		return embed_fail(err, "HCA %u could not be created: %s (memory: %u MB)", i,
				  strerror(-err), c->memory_mb);
	if (c->executor == SOFTHCA_EXECUTOR_THREADS)
		host_events_watch(&e->notifier, i, e->side[i].hca);
	else
		hca_set_notify(e->side[i].hca, on_events, e);
	return 0;
}

static int
set_gid(struct softhca_embed *e, uint32_t i, uint32_t row)
{
	struct hca_driver *drv = e->side[i].drv;
	uint16_t vlan = gids[row].vlan ? (uint16_t)e->cfg.vlan : 0xffff;
	uint32_t index = e->cfg.link_local_first ? (row + 1) % RTE_DIM(gids) : row;
	uint32_t number = e->cfg.first + i;
	uint8_t gid[16], mac[6];
	int err;

	if (gids[row].vlan && e->cfg.vlan == 0)
		return 0;
	memcpy(gid, gids[row].prefix, sizeof(gids[row].prefix));
	gid[15] = (uint8_t)((number ^ 1) + 1);
	mac_of(number ^ 1, mac);
	err = hca_driver_set_neigh(drv, gid, mac);
	gid[15] = (uint8_t)(number + 1);
	mac_of(number, mac);
	return err != 0 ? err : hca_driver_set_gid(drv, index, gid, mac, vlan);
}

static int
set_addresses(struct softhca_embed *e, uint32_t i)
{
	struct hca_ctl_port port = {
		.speed = 100000,
		.state = SOFTHCA_PORT_ACTIVE,
		.max_mtu = e->cfg.max_mtu,
		.active_mtu = e->cfg.max_mtu,
	};
	int err = 0;

	mac_of(e->cfg.first + i, port.mac);
	for (uint32_t row = 0; row < RTE_DIM(gids) && err == 0; row++)
		err = set_gid(e, i, row);
	if (err == 0)
		err = hca_driver_set_port(e->side[i].drv, &port);
	return err == 0 ? 0 : embed_fail(err, "addresses of HCA %u: %s", i, hca_driver_reason());
}

static int
create_driver(struct softhca_embed *e, uint32_t i)
{
	struct embed_hca *s = &e->side[i];
	struct hca_hw hw = hca_host_hw(s->hca);
	struct hca_driver_config dc = {
		.seed = e->cfg.seed == 0 ? 0 : e->cfg.seed * EMBED_HCAS_MAX + i,
		.urge = e->threads != NULL ? host_events_urge : NULL,
		.urge_arg = &e->notifier,
	};
	struct hca_driver *drv;
	int err;

	hw.progress = wait_for_command;
	hw.progress_arg = s;
	err = hca_driver_create(&hw, &dc, &drv);
	if (err != 0)
		return embed_fail(err, "driver of HCA %u: %s", i, hca_driver_reason());
	/* read by the thread that runs the engine */
	__atomic_store_n(&s->drv, drv, __ATOMIC_RELEASE);
	if (e->threads != NULL)
		host_events_forward(&e->notifier, i, drv);
	return set_addresses(e, i);
}

static int
build(struct softhca_embed *e)
{
	static uint32_t serials;
	uint32_t serial = __atomic_fetch_add(&serials, 1, __ATOMIC_RELAXED);
	int err = embed_ports_open(e, serial);

	for (uint32_t i = 0; i < e->cfg.num_hcas && err == 0; i++) {
		e->side[i].owner = e;
		err = create_hca(e, i, serial);
	}
	if (err == 0)
		err = start_threads(e);
	for (uint32_t i = 0; i < e->cfg.num_hcas && err == 0; i++)
		err = create_driver(e, i);
	if (err == 0)
		err = embed_agents_start(e);
	if (err == 0)
		err = embed_cm_start(e);
	for (uint32_t i = 0; i < e->cfg.num_hcas && err == 0; i++)
		hca_usage(e->side[i].hca, &e->side[i].base);
	return err;
}

static void
tear_down(struct softhca_embed *e)
{
	embed_telemetry_remove(e);
	embed_cm_stop(e);
	embed_agents_stop(e);
	stop_events(e);
	for (uint32_t i = 0; i < e->cfg.num_hcas; i++)
		if (e->side[i].drv != NULL)
			hca_driver_destroy(e->side[i].drv);
	hca_threads_stop(e->threads);
	for (uint32_t i = 0; i < e->cfg.num_hcas; i++) {
		hca_destroy(e->side[i].hca);
		if (e->side[i].sleep_words != NULL)
			hca_host_sleep_close(e->side[i].sleep_words, e->side[i].sleep_fd);
	}
	if (e->capture != NULL)
		softhca_embed_capture(e, NULL);
	embed_ports_close(e);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

static int
create(const struct softhca_embed_config *config, struct softhca_embed **out)
{
	struct softhca_embed *e = aligned_alloc(64, sizeof(*e) + (-sizeof(*e) & 63));
	int err;

	if (e == NULL)
		return embed_fail(-ENOMEM, "no memory for the state of embedded HCAs: %zu bytes",
				  sizeof(*e));
	memset(e, 0, sizeof(*e));
	err = take_config(e, config);
	if (err == 0)
		err = embed_eal_start(&e->cfg);
	if (err != 0) {
		free(e);
		return err;
	}
	e->sim_now = SIM_START_NS;
	e->forks = embed_forks();
	pthread_mutex_init(&e->lock, NULL);
	err = build(e);
	if (err != 0) {
		tear_down(e);
		return err;
	}
	embed_telemetry_add(e);
	*out = e;
	return 0;
}

/*
 * Threads that are created inside (workers, events, those of DPDK) must not run the program's
 * signal handlers. Signals that a thread raises by its own access are not held back: ports repair
 * memory that a peer has taken away (sigbus_guard.h).
 */
int
softhca_embed_create(const struct softhca_embed_config *config, struct softhca_embed **out)
{
	static const int own[] = {SIGBUS, SIGSEGV, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGABRT};
	sigset_t held, before;
	int err;

	sigfillset(&held);
	for (size_t i = 0; i < RTE_DIM(own); i++)
		sigdelset(&held, own[i]);
	pthread_sigmask(SIG_BLOCK, &held, &before);
	err = create(config, out);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

int
embed_own(const struct softhca_embed *e)
{
	return e->forks == embed_forks() ? 0 : embed_fail(-EPERM, EMBED_FOREIGN);
}

int
embed_own_hca(const struct softhca_embed *e, unsigned int index)
{
	int err = embed_own(e);

	if (err == 0 && index >= e->cfg.num_hcas)
		err = embed_fail(-EINVAL, "HCA number %u: expected 0 to %u", index,
				 e->cfg.num_hcas - 1);
	return err;
}

/* ---- contexts ---- */

struct embed_context {
	struct softhca_embed *embed;
	uint32_t slot, index; /* index: of its HCA */
};

static unsigned int
context_progress(void *arg)
{
	const struct embed_context *c = arg;

	return run_all(c->embed, c->index);
}

/* Its HCA is first: the requests are sent, and the others serve them. */
static unsigned int
context_posted(void *arg)
{
	const struct embed_context *c = arg;

	return run_all(c->embed, (c->index != 0 ? c->index : c->embed->cfg.num_hcas) - 1);
}

static void
context_closed(void *arg)
{
	struct embed_context *c = arg;

	pthread_mutex_lock(&c->embed->lock);
	c->embed->ctx[c->slot] = NULL;
	pthread_mutex_unlock(&c->embed->lock);
	free(c);
}

/* The workers that a client wakes. */
static void
list_sleepers(const struct hca *h, struct embed_ctl_config *cc)
{
	for (unsigned int n = 0; n < hca_pipelines(h); n++) {
		cc->sleep[n].word = hca_doorbell_word(h, n);
		cc->sleep[n].kick_fd = hca_kick_fd(h, n);
	}
}

static int
open_context(struct softhca_embed *e, unsigned int index, uint32_t slot,
	     struct softhca_context **ctx)
{
	struct embed_context *c = malloc(sizeof(*c));
	char name[24];
	struct embed_ctl_config cc = {
		.name = name,
		.progress = e->threads == NULL ? context_progress : NULL,
		.posted = context_posted,
		.closed = context_closed,
		.arg = c,
	};
	int err;

	if (c == NULL)
		return embed_fail(-ENOMEM, "no memory for a context: %zu bytes", sizeof(*c));
	*c = (struct embed_context){e, slot, index};
	if (e->threads != NULL && e->cfg.idle != SOFTHCA_IDLE_SPIN)
		list_sleepers(e->side[index].hca, &cc);
	snprintf(name, sizeof(name), "softhca%u", index);
	err = embed_ctl_open(e->side[index].drv, &cc, ctx);
	if (err != 0) {
		free(c);
		return embed_fail(err, "HCA %u: %s", index, hca_driver_reason());
	}
	return 0;
}

int
softhca_embed_open(struct softhca_embed *e, unsigned int index, struct softhca_context **ctx)
{
	uint32_t slot = 0;
	int err;

	err = embed_own_hca(e, index);
	if (err != 0)
		return err;
	pthread_mutex_lock(&e->lock);
	while (slot < EMBED_CONTEXTS_MAX && e->ctx[slot] != NULL)
		slot++;
	if (slot == EMBED_CONTEXTS_MAX)
		err = embed_fail(-EMFILE, "%u contexts are open, the most that may be: close one",
				 EMBED_CONTEXTS_MAX);
	else
		err = open_context(e, index, slot, &e->ctx[slot]);
	if (err == 0)
		*ctx = e->ctx[slot];
	pthread_mutex_unlock(&e->lock);
	return err;
}

int
softhca_embed_destroy(struct softhca_embed *e)
{
	if (e == NULL)
		return 0;
	if (embed_own(e) != 0)
		return -EPERM;
	for (uint32_t i = 0; i < EMBED_CONTEXTS_MAX; i++) {
		struct softhca_context *ctx = e->ctx[i];

		if (ctx != NULL)
			softhca_close(ctx);
	}
	tear_down(e);
	return 0;
}
