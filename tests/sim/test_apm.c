/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Automatic path migration: each side has several addresses, and the wire loses all frames between
 * some of them. Messages are self-describing, so it does not matter which path they took.
 */

#include <pthread.h>
#include <sched.h>

#include "sim_duo.h"
#include "sim_link.h"
#include "sim_tagged.h"
#include "sim_test.h"

#define PROGRAM "test_apm"
#define DRY_NS 60000000000ull /* enough for timeouts and waiting for CPUs */
#define L3 14u

/* Pairs of addresses (by index) between which everything is lost. */
static bool dead[SIM_GIDS];
static uint8_t alt_timeout;

static unsigned int
gid_of(const uint8_t *frame)
{
	bool tagged = frame[12] == 0x81;
	const uint8_t *l3 = frame + L3 + 4 * tagged;
	uint8_t gid[16];

	for (unsigned int i = 0; i < SIM_GIDS; i++) {
		sim_gid(0, i, gid);
		if (l3[0] >> 4 == 4 ? gid[10] == 0xff && memcmp(l3 + 12, gid + 12, 3) == 0
				    : memcmp(l3 + 8, gid, 15) == 0)
			return i;
	}
	return SIM_GIDS;
}

static bool
is_dead(void *arg, uint8_t *frame, uint32_t len)
{
	unsigned int i = gid_of(frame);

	return i < SIM_GIDS && dead[i];
}

static struct sim *
open_sim(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);

	memset(dead, 0, sizeof(dead));
	alt_timeout = cfg->executor == SIM_THREADS ? 17 : 9;
	for (unsigned int i = 0; i < 2; i++)
		sim_link_lose(s->side[i].wire, is_dead, NULL);
	return s;
}

static struct softhca_qp_attr
alternate(unsigned int side, enum sim_gid gid)
{
	struct softhca_qp_attr a = {
		.alt_ah_attr = {.port_num = 1,
				.is_global = 1,
				.hop_limit = 33,
				.traffic_class = 8,
				.sgid_index = (uint8_t)gid},
		.alt_port_num = 1,
		.alt_timeout = alt_timeout,
		.path_mig_state = SOFTHCA_MIG_REARM,
	};

	sim_gid(1 - side, gid, a.alt_ah_attr.dgid.raw);
	return a;
}

static void
modify(struct sim *s, unsigned int side, struct softhca_qp *qp, const struct softhca_qp_attr *a,
       uint32_t mask)
{
	sim_check(s, softhca_modify_qp(qp, a, mask) == 0, "side %u: modify %#x: %s", side, mask,
		  softhca_last_error(s->side[side].ctx));
}

static void
rearm(struct sim *s, unsigned int side, struct softhca_qp *qp, enum sim_gid gid)
{
	struct softhca_qp_attr a = alternate(side, gid);

	modify(s, side, qp, &a, SOFTHCA_QP_ALT_PATH | SOFTHCA_QP_PATH_MIG_STATE);
}

static void
set_mig(struct sim *s, unsigned int side, struct softhca_qp *qp, uint32_t mig)
{
	const struct softhca_qp_attr a = {.path_mig_state = mig};

	modify(s, side, qp, &a, SOFTHCA_QP_PATH_MIG_STATE);
}

static void
expect_path(struct sim *s, unsigned int side, struct softhca_qp *qp, uint32_t mig,
	    enum sim_gid primary, enum sim_gid other)
{
	struct softhca_qp_attr a;
	uint8_t gid[16];

	sim_check(s, softhca_query_qp(qp, &a, 0, NULL) == 0, "query_qp");
	sim_check(s, a.path_mig_state == mig, "side %u: migration state %u, not %u", side,
		  a.path_mig_state, mig);
	sim_check(s, a.ah_attr.sgid_index == primary, "side %u: path %u, not %u", side,
		  a.ah_attr.sgid_index, primary);
	sim_gid(1 - side, primary, gid);
	sim_check(s, memcmp(a.ah_attr.dgid.raw, gid, 16) == 0, "side %u: destination", side);
	if (other == SIM_GIDS)
		return;
	sim_gid(1 - side, other, gid);
	sim_check(s,
		  a.alt_ah_attr.sgid_index == other && memcmp(a.alt_ah_attr.dgid.raw, gid, 16) == 0,
		  "side %u: alternate path %u, not %u", side, a.alt_ah_attr.sgid_index, other);
}

static void
expect_event(struct sim *s, unsigned int side, uint32_t type, struct softhca_qp *qp)
{
	struct softhca_async_event e;

	sim_check(s, sim_async(s->side[side].ctx, &e), "side %u: no event", side);
	sim_check(s, e.event_type == type, "side %u: event %s", side,
		  softhca_event_type_str(e.event_type));
	sim_check(s, e.element.qp == qp, "side %u: event of another QP", side);
	softhca_ack_async_event(&e);
}

static void
expect_no_event(struct sim *s)
{
	struct softhca_async_event e;

	for (unsigned int i = 0; i < 2; i++)
		if (sim_async(s->side[i].ctx, &e))
			sim_fail(s, "side %u: event %s", i, softhca_event_type_str(e.event_type));
}

static void
drop_events(struct sim *s)
{
	struct softhca_async_event e;

	for (unsigned int i = 0; i < 2; i++)
		while (sim_async(s->side[i].ctx, &e))
			softhca_ack_async_event(&e);
}

static void
exchange(struct sim_tagged *t, unsigned int messages)
{
	struct sim_rng *r = &sim_model(t->s)->rng;
	uint64_t last = t->s->now;

	while (messages > 0) {
		bool one = sim_tagged_send(t, sim_below(r, 2), sim_below(r, t->attr.flows));

		messages -= one;
		last = one ? t->s->now : last;
		sim_check(t->s, t->s->now - last < DRY_NS, "nothing more can be sent");
		if (!one || sim_below(r, 4) == 0)
			sim_poll(t->s);
		sim_tagged_reap(t);
		sim_tagged_fill(t);
	}
}

/* Every QP of the test, initiators and targets separately. */
#define EACH_QP(t, side, qp) \
	for (unsigned int side = 0; side < 2; side++) \
		for (struct softhca_qp *qp = (t)->end[side].qp[0]; qp != NULL; \
		     qp = qp == (t)->end[side].tgt[0] ? NULL : (t)->end[side].tgt[0])

static void
rearm_all(struct sim_tagged *t, enum sim_gid gid)
{
	EACH_QP(t, side, qp)
	rearm(t->s, side, qp, gid);
}

static void
expect_all(struct sim_tagged *t, uint32_t mig, enum sim_gid primary, enum sim_gid other)
{
	EACH_QP(t, side, qp)
	expect_path(t->s, side, qp, mig, primary, other);
}

/* Expect one event for each QP of both sides, in any order. */
static void
expect_migrated(struct sim_tagged *t)
{
	struct softhca_async_event e;
	unsigned int wanted = 0, got = 0;

	EACH_QP(t, side, qp)
	{
		wanted++;
		if (!sim_async(t->s->side[side].ctx, &e))
			continue;
		sim_check(t->s, e.event_type == SOFTHCA_EVENT_PATH_MIG, "event %s",
			  softhca_event_type_str(e.event_type));
		softhca_ack_async_event(&e);
		got++;
	}
	sim_check(t->s, got == wanted, "%u of %u QPs told of their migration", got, wanted);
	expect_no_event(t->s);
}

static const enum sim_gid pairs[][2] = {
	{SIM_GID_V4, SIM_GID_V6},
	{SIM_GID_V6, SIM_GID_V4},
	{SIM_GID_V4, SIM_GID_V4_VLAN},
	{SIM_GID_V4_VLAN, SIM_GID_LINK_LOCAL},
};

#define PAIRS (sizeof(pairs) / sizeof(pairs[0]))

/* The path fails under traffic and recovers; no completion shows it. */
static void
dies_and_comes_back_in(const struct sim_config *cfg)
{
	static const enum sim_service services[] = {SIM_RC, SIM_XRC};

	for (unsigned int i = 0; i < 2 * PAIRS; i++) {
		const struct sim_tagged_attr a = {.service = services[i & 1],
						  .gid = pairs[i / 2][0]};
		enum sim_gid now = pairs[i / 2][0], next = pairs[i / 2][1], swap;
		struct sim *s = open_sim(cfg);
		struct sim_tagged *t = sim_tagged_open(s, &a);

		t->lossless = true;
		for (unsigned int round = 0; round < 4; round++) {
			exchange(t, 10);
			rearm_all(t, next);
			exchange(t, 20);
			sim_tagged_finish(t);
			expect_all(t, SOFTHCA_MIG_ARMED, now, next);
			expect_no_event(s);
			exchange(t, 20);
			dead[now] = true;
			exchange(t, 40);
			sim_tagged_finish(t);
			expect_migrated(t);
			expect_all(t, SOFTHCA_MIG_MIGRATED, next, now);
			dead[now] = false;
			swap = now;
			now = next;
			next = swap;
		}
		sim_check(s, sim_counter(s, 0, "path_migrations") == (i & 1 ? 8 : 4),
			  "path_migrations");
		sim_check(s, sim_counter(s, 0, "rx_bad_migration") == 0, "rx_bad_migration");
		sim_tagged_close(t);
		sim_close(s);
	}
}
SIM_TEST(dies_and_comes_back)

/* Software migrates one end; the other follows. */
static void
forced_in(const struct sim_config *cfg)
{
	static const enum sim_service services[] = {SIM_RC, SIM_UC, SIM_XRC};

	for (unsigned int i = 0; i < 3 * PAIRS; i++) {
		const struct sim_tagged_attr a = {.service = services[i % 3],
						  .gid = pairs[i / 3][0]};
		struct sim *s = open_sim(cfg);
		struct sim_tagged *t = sim_tagged_open(s, &a);

		/*
		 * messages of UC in flight to the end that moves then come from an unknown address
		 */
		t->lossless = a.service != SIM_UC;
		rearm_all(t, pairs[i / 3][1]);
		exchange(t, 20);
		sim_tagged_finish(t);
		expect_all(t, SOFTHCA_MIG_ARMED, pairs[i / 3][0], pairs[i / 3][1]);
		exchange(t, 20);
		set_mig(s, 0, t->end[0].qp[0], SOFTHCA_MIG_MIGRATED);
		exchange(t, 10);
		if (a.service == SIM_XRC)
			set_mig(s, 0, t->end[0].tgt[0], SOFTHCA_MIG_MIGRATED);
		exchange(t, 20);
		sim_tagged_finish(t);
		expect_migrated(t);
		expect_all(t, SOFTHCA_MIG_MIGRATED, pairs[i / 3][1], pairs[i / 3][0]);
		sim_tagged_close(t);
		sim_close(s);
	}
}
SIM_TEST(forced)

static bool
all_are(struct sim_tagged *t, uint32_t mig)
{
	struct softhca_qp_attr a;

	EACH_QP(t, side, qp)
	{
		sim_check(t->s, softhca_query_qp(qp, &a, 0, NULL) == 0, "query_qp");
		if (a.path_mig_state != mig)
			return false;
	}
	return true;
}

static void
exchange_until(struct sim_tagged *t, uint32_t mig)
{
	for (unsigned int i = 0; !all_are(t, mig); i++) {
		sim_check(t->s, i < 20000, "migration state %u is not reached", mig);
		exchange(t, 4);
	}
}

/* Either end, or both at once, with a thread per worker, and queues that are never empty. */
static void
threads(void **state)
{
	uint64_t seed = sim_env("SIM_SEED", 1);

	for (unsigned int i = 0; i < 4; i++) {
		const struct sim_tagged_attr a = {.service = i & 1 ? SIM_XRC : SIM_RC,
						  .timeout = 17};
		const struct sim_config cfg = {.layout = i < 2 ? HCA_LAYOUT_TXRX : HCA_LAYOUT_FULL,
					       .executor = SIM_THREADS,
					       .all_cpus = true,
					       .seed = seed};
		struct sim *s;
		struct sim_tagged *t;

		sim_set_repeat("SIM_SEED=%llu CMOCKA_TEST_FILTER=threads %s",
			       (unsigned long long)seed, PROGRAM);
		s = open_sim(&cfg);
		t = sim_tagged_open(s, &a);
		t->lossless = true;
		for (unsigned int round = 0; round < 30; round++) {
			rearm_all(t, round & 1 ? SIM_GID_V4 : SIM_GID_V6);
			exchange_until(t, SOFTHCA_MIG_ARMED);
			exchange(t, 10);
			/*
			 * if only the responder moved, the requester would notice after all retries
			 */
			for (unsigned int side = 0; side < 2; side++)
				if (i & 1 || round % 3 == 2 || side == round % 3)
					set_mig(s, side, t->end[side].qp[0], SOFTHCA_MIG_MIGRATED);
			exchange_until(t, SOFTHCA_MIG_MIGRATED);
			drop_events(s);
		}
		sim_tagged_finish(t);
		expect_all(t, SOFTHCA_MIG_MIGRATED, SIM_GID_V4, SIM_GID_V6);
		sim_tagged_close(t);
		sim_close(s);
	}
}

/* ---- failures ---- */

static void
write_fails(struct sim_duo *d, uint32_t status)
{
	struct softhca_wc wc = {0};

	sim_duo_post(d, 0, SOFTHCA_WR_RDMA_WRITE, 3000, 1, 0);
	sim_settle(d->s);
	sim_check(d->s, softhca_poll_cq(d->scq[0], 1, &wc) == 1, "no completion");
	sim_check(d->s, wc.status == status, "status %s", softhca_wc_status_str(wc.status));
}

static void
write_works(struct sim_duo *d, unsigned int side)
{
	sim_duo_post(d, side, SOFTHCA_WR_RDMA_WRITE, 3000, 1, 0);
	sim_settle(d->s);
	sim_check(d->s, sim_cq_drain(d->scq[side], NULL) == 1, "no completion");
	sim_check(d->s, sim_qp_state(d->s, d->qp[side]) == SOFTHCA_QPS_RTS, "not in RTS");
}

/* The alternate path has also failed. */
static void
both_paths_dead_in(const struct sim_config *cfg)
{
	struct sim *s = open_sim(cfg);
	struct sim_duo d = {0};

	sim_duo_open(s, &d);
	rearm(s, 0, d.qp[0], SIM_GID_V6);
	rearm(s, 1, d.qp[1], SIM_GID_V6);
	write_works(&d, 0);
	write_works(&d, 1);
	dead[SIM_GID_V4] = dead[SIM_GID_V6] = true;
	write_fails(&d, SOFTHCA_WC_RETRY_EXC_ERR);
	expect_event(s, 0, SOFTHCA_EVENT_PATH_MIG, d.qp[0]);
	expect_no_event(s);
	expect_path(s, 1, d.qp[1], SOFTHCA_MIG_ARMED, SIM_GID_V4, SIM_GID_V6);
	/* all retries on both paths */
	sim_check(s, sim_counter(s, 0, "local_ack_timeout_err") == 2 * 8, "%llu timeouts",
		  (unsigned long long)sim_counter(s, 0, "local_ack_timeout_err"));
	sim_duo_close(&d);
	sim_close(s);
}
SIM_TEST(both_paths_dead)

/* One end alone does not get armed: its peer always sends MigReq 1. */
static void
one_end_only_in(const struct sim_config *cfg)
{
	struct sim *s = open_sim(cfg);
	struct sim_duo d = {0};

	sim_duo_open(s, &d);
	rearm(s, 0, d.qp[0], SIM_GID_V6);
	write_works(&d, 0);
	write_works(&d, 1);
	expect_path(s, 0, d.qp[0], SOFTHCA_MIG_REARM, SIM_GID_V4, SIM_GID_V6);
	expect_path(s, 1, d.qp[1], SOFTHCA_MIG_MIGRATED, SIM_GID_V4, SIM_GIDS);
	dead[SIM_GID_V4] = true;
	write_fails(&d, SOFTHCA_WC_RETRY_EXC_ERR);
	expect_no_event(s);
	sim_check(s, sim_counter(s, 0, "path_migrations") == 0, "path_migrations");
	sim_duo_close(&d);
	sim_close(s);
}
SIM_TEST(one_end_only)

/*
 * Armed, while its peer no longer is but uses the same path: a migration is refused, and reported.
 */
static void
refused_in(const struct sim_config *cfg)
{
	struct sim *s = open_sim(cfg);
	struct sim_duo d = {0};

	sim_duo_open(s, &d);
	rearm(s, 0, d.qp[0], SIM_GID_V6);
	rearm(s, 1, d.qp[1], SIM_GID_V6);
	write_works(&d, 0);
	write_works(&d, 1);
	set_mig(s, 0, d.qp[0], SOFTHCA_MIG_REARM);
	expect_path(s, 0, d.qp[0], SOFTHCA_MIG_REARM, SIM_GID_V4, SIM_GID_V6);
	set_mig(s, 0, d.qp[0], SOFTHCA_MIG_MIGRATED);
	expect_path(s, 0, d.qp[0], SOFTHCA_MIG_MIGRATED, SIM_GID_V4, SIM_GID_V6);
	sim_duo_post(&d, 0, SOFTHCA_WR_RDMA_WRITE, 100, 1, 0);
	sim_run_for(s, 2000000);
	sim_check(s, sim_cq_drain(d.scq[0], NULL) == 0, "accepted");
	expect_event(s, 1, SOFTHCA_EVENT_PATH_MIG_ERR, d.qp[1]);
	sim_check(s, sim_counter(s, 1, "rx_bad_migration") != 0, "rx_bad_migration");
	/* in time for the last retries */
	set_mig(s, 0, d.qp[0], SOFTHCA_MIG_REARM);
	sim_settle(s);
	sim_check(s, sim_cq_drain(d.scq[0], NULL) == 1, "no completion");
	drop_events(s); /* one per refused attempt */
	write_works(&d, 0);
	write_works(&d, 1);
	expect_path(s, 0, d.qp[0], SOFTHCA_MIG_ARMED, SIM_GID_V4, SIM_GID_V6);
	expect_path(s, 1, d.qp[1], SOFTHCA_MIG_ARMED, SIM_GID_V4, SIM_GID_V6);
	sim_duo_close(&d);
	sim_close(s);
}
SIM_TEST(refused)

/* Software cannot set ARMED, nor REARM without an alternate path. */
static void
bad_requests_in(const struct sim_config *cfg)
{
	struct sim *s = open_sim(cfg);
	struct softhca_qp_attr a = alternate(0, SIM_GID_V6);
	struct sim_duo d = {0};

	sim_duo_open(s, &d);
	sim_check(s, softhca_modify_qp(d.qp[0], &a, SOFTHCA_QP_PATH_MIG_STATE) == -EINVAL,
		  "rearmed without alternate path");
	a.path_mig_state = SOFTHCA_MIG_ARMED;
	sim_check(s,
		  softhca_modify_qp(d.qp[0], &a, SOFTHCA_QP_ALT_PATH | SOFTHCA_QP_PATH_MIG_STATE) ==
			  -EINVAL,
		  "armed by software");
	a = alternate(0, SIM_GID_V6);
	a.alt_port_num = 2;
	sim_check(s, softhca_modify_qp(d.qp[0], &a, SOFTHCA_QP_ALT_PATH) == -EINVAL, "port 2");
	a = alternate(0, SIM_GID_V6);
	a.alt_timeout = 32;
	sim_check(s, softhca_modify_qp(d.qp[0], &a, SOFTHCA_QP_ALT_PATH) == -EINVAL, "timeout");
	a = alternate(0, SIM_GID_V6);
	a.alt_pkey_index = 3;
	sim_check(s, softhca_modify_qp(d.qp[0], &a, SOFTHCA_QP_ALT_PATH) == -EINVAL, "P_Key");
	a = alternate(0, SIM_GID_V6);
	a.alt_ah_attr.sgid_index = SIM_GID_V4;
	sim_check(s, softhca_modify_qp(d.qp[0], &a, SOFTHCA_QP_ALT_PATH) == -EINVAL,
		  "IPv6 from IPv4");
	expect_path(s, 0, d.qp[0], SOFTHCA_MIG_MIGRATED, SIM_GID_V4, SIM_GIDS);
	write_works(&d, 0);
	sim_duo_close(&d);
	sim_close(s);
}
SIM_TEST(bad_requests)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dies_and_comes_back),
		cmocka_unit_test(forced),
		cmocka_unit_test(threads),
		cmocka_unit_test(both_paths_dead),
		cmocka_unit_test(one_end_only),
		cmocka_unit_test(refused),
		cmocka_unit_test(bad_requests),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
