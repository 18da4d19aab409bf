/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The address of a QP changes in SQD while its peer keeps sending. Every frame on the wire has the
 * old headers or the new ones, never a mixture; a change that does not concern the peer loses no
 * packet; the alternate path is kept.
 */

#include <pthread.h>
#include <sched.h>

#include "sim_link.h"
#include "sim_tagged.h"
#include "sim_test.h"

#define PROGRAM "test_address"
#define DRY_NS 60000000000ull /* enough for timeouts and waiting for CPUs */

/* Traffic class and hop limit that belong together. */
static const struct softhca_ah_attr shapes[] = {
	{.traffic_class = 0, .hop_limit = 64},
	{.traffic_class = 0x20, .hop_limit = 50},
	{.traffic_class = 0x56, .hop_limit = 99}, /* ECT(0) */
	{.traffic_class = 0xfc, .hop_limit = 255},
};

#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

/* Frames of both wires, counted when they are sent. */
static struct {
	uint64_t frames, shape[SHAPES], torn;
} seen;

static bool
checksum_is_good(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (unsigned int i = 0; i < 20; i += 2)
		sum += (uint32_t)(ip[i] << 8 | ip[i + 1]);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff;
}

static bool
look(void *arg, uint8_t *frame, uint32_t len)
{
	const uint8_t *l3 = frame + 14;
	bool v6 = frame[12] == 0x86;
	uint8_t tclass = v6 ? (uint8_t)(l3[0] << 4 | l3[1] >> 4) : l3[1], hop = l3[v6 ? 7 : 8];

	__atomic_fetch_add(&seen.frames, 1, __ATOMIC_RELAXED);
	for (unsigned int i = 0; i < SHAPES && (v6 || checksum_is_good(l3)); i++)
		if (shapes[i].traffic_class == tclass && shapes[i].hop_limit == hop) {
			__atomic_fetch_add(&seen.shape[i], 1, __ATOMIC_RELAXED);
			return false;
		}
	__atomic_fetch_add(&seen.torn, 1, __ATOMIC_RELAXED);
	return false;
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

static void
modify(struct sim *s, struct softhca_qp *qp, struct softhca_qp_attr *a, uint32_t to, uint32_t mask)
{
	a->qp_state = to;
	sim_check(s, softhca_modify_qp(qp, a, mask | SOFTHCA_QP_STATE) == 0, "modify %#x: %s", mask,
		  softhca_last_error(s->side[0].ctx));
}

/* Change the headers of side 0 in SQD, while the peer keeps sending. */
static void
change(struct sim_tagged *t, enum sim_gid gid, unsigned int shape)
{
	struct softhca_qp *qp = t->end[0].qp[0];
	struct softhca_qp_attr a = {.ah_attr = shapes[shape]};

	a.ah_attr.port_num = 1;
	a.ah_attr.is_global = 1;
	a.ah_attr.sgid_index = (uint8_t)gid;
	sim_gid(1, gid, a.ah_attr.dgid.raw);
	modify(t->s, qp, &a, SOFTHCA_QPS_SQD, 0);
	exchange(t, 2);
	modify(t->s, qp, &a, SOFTHCA_QPS_SQD, SOFTHCA_QP_AV);
	exchange(t, 1);
	modify(t->s, qp, &a, SOFTHCA_QPS_RTS, 0);
}

static void
load_alternate(struct sim_tagged *t, unsigned int side, enum sim_gid gid)
{
	struct softhca_qp_attr a = {
		.alt_ah_attr = shapes[3],
		.alt_port_num = 1,
		.alt_timeout = (uint8_t)t->attr.timeout,
		.path_mig_state = SOFTHCA_MIG_REARM,
	};

	a.alt_ah_attr.sgid_index = (uint8_t)gid;
	sim_gid(1 - side, gid, a.alt_ah_attr.dgid.raw);
	modify(t->s, t->end[side].qp[0], &a, SOFTHCA_QPS_RTS,
	       SOFTHCA_QP_ALT_PATH | SOFTHCA_QP_PATH_MIG_STATE);
}

static uint64_t
so_far(const uint64_t *count)
{
	return __atomic_load_n(count, __ATOMIC_RELAXED);
}

/* Workers may still send retransmissions and acknowledgements. */
static void
expect_good_frames(struct sim *s, unsigned int shape_count)
{
	sim_check(s, so_far(&seen.torn) == 0, "%llu of %llu frames torn",
		  (unsigned long long)so_far(&seen.torn), (unsigned long long)so_far(&seen.frames));
	for (unsigned int i = 0; i < shape_count; i++)
		sim_check(s, so_far(&seen.shape[i]) != 0, "no frame of shape %u", i);
}

static void
watch(struct sim *s)
{
	memset(&seen, 0, sizeof(seen));
	for (unsigned int i = 0; i < 2; i++)
		sim_link_lose(s->side[i].wire, look, NULL);
}

/* One flow, with or without an alternate path, which the QP must keep. */
static void
one_flow(const struct sim_config *cfg, enum sim_service service, enum sim_gid gid, bool armed,
	 unsigned int changes)
{
	const struct sim_tagged_attr ta = {.service = service,
					   .gid = gid,
					   .timeout = cfg->executor == SIM_THREADS ? 19 : 16};
	const struct softhca_qp_attr go = {.path_mig_state = SOFTHCA_MIG_MIGRATED};
	enum sim_gid other = gid == SIM_GID_V4 ? SIM_GID_V6 : SIM_GID_V4;
	struct sim *s = sim_open(cfg);
	struct sim_tagged *t = sim_tagged_open(s, &ta);
	struct softhca_qp_attr is;

	watch(s);
	t->lossless = true;
	for (unsigned int side = 0; armed && side < 2; side++)
		load_alternate(t, side, other);
	exchange(t, 20);
	for (unsigned int i = 0; i < changes; i++)
		change(t, gid, i % 3);
	exchange(t, 20);
	sim_tagged_finish(t);
	expect_good_frames(s, 3);
	sim_check(s, softhca_query_qp(t->end[0].qp[0], &is, 0, NULL) == 0, "query_qp");
	sim_check(s, is.ah_attr.hop_limit == shapes[(changes - 1) % 3].hop_limit, "hop limit");
	if (armed) {
		sim_check(s, is.path_mig_state == SOFTHCA_MIG_ARMED, "not armed");
		/* UC loses messages in flight to the end that moves */
		t->lossless = service != SIM_UC;
		sim_check(s,
			  softhca_modify_qp(t->end[0].qp[0], &go, SOFTHCA_QP_PATH_MIG_STATE) == 0,
			  "migrate");
		exchange(t, 30);
		sim_tagged_finish(t);
		expect_good_frames(s, 4);
	}
	sim_tagged_close(t);
	sim_close(s);
}

static void
changes_in(const struct sim_config *cfg)
{
	static const enum sim_gid gids[] = {SIM_GID_V4, SIM_GID_V6};

	for (unsigned int i = 0; i < 8; i++)
		one_flow(cfg, i & 1 ? SIM_UC : SIM_RC, gids[i >> 1 & 1], i >= 4, 30);
}
SIM_TEST(changes)

/* The same with a thread per worker. */
static void
threads(void **state)
{
	uint64_t seed = sim_env("SIM_SEED", 1);
	unsigned int n = (unsigned int)sim_env("SIM_ROUNDS", 20);

	for (unsigned int i = 0; i < 4; i++) {
		const struct sim_config cfg = {.layout = i & 1 ? HCA_LAYOUT_FULL : HCA_LAYOUT_TXRX,
					       .executor = SIM_THREADS,
					       .all_cpus = true,
					       .seed = seed};

		sim_set_repeat("SIM_SEED=%llu CMOCKA_TEST_FILTER=threads %s",
			       (unsigned long long)seed, PROGRAM);
		one_flow(&cfg, SIM_RC, SIM_GID_V4, i >= 2, n);
	}
}

/* A new address that the peer does not accept: answers are lost meanwhile, and repeated. */
static void
another_source_in(const struct sim_config *cfg)
{
	const struct sim_tagged_attr ta = {.timeout = 10};
	struct sim *s = sim_open(cfg);
	struct sim_tagged *t = sim_tagged_open(s, &ta);

	watch(s);
	t->lossless = true;
	for (unsigned int i = 0; i < 6; i++) {
		exchange(t, 10);
		change(t, SIM_GID_V6, i % 3);
		sim_run_for(s, 2000000);
		change(t, SIM_GID_V4, i % 3);
		sim_tagged_finish(t);
	}
	expect_good_frames(s, 3);
	sim_check(s, sim_counter(s, 1, "rx_bad_source") != 0, "no frame from the other address");
	sim_tagged_close(t);
	sim_close(s);
}
SIM_TEST(another_source)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(changes),
		cmocka_unit_test(threads),
		cmocka_unit_test(another_source),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
