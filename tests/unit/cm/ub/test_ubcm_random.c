/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Random users of two machines over a network that loses, copies, delays and reorders: when all is
 * quiet the ends agree, or have nothing. UBCM_SEED=N runs one seed, UBCM_RUNS=N that number.
 */

#include <string.h>

#include "ubcm_rig.h"

#define SECOND (1000 * UBCM_MS)
#define USERS 8u
#define QUIET (3 * 256 * UBCM_FIRST_WAIT)

static struct rig r;
static uint64_t at; /* seed of the run */
static uint32_t user[RIG_ENDS][USERS], nusers[RIG_ENDS];

/* arg: loss, copies in per cent; the longest delay in ms */
static void
bad_network(struct rig *s, uint32_t from, uint32_t n, const uint8_t *bytes, size_t len)
{
	uint32_t copies = 1;

	while (copies < 4 && rig_random(s, 100) < s->arg[1])
		copies++;
	for (uint32_t i = 0; i < copies && s->nmessages < RIG_MESSAGES - 1; i++)
		if (rig_random(s, 100) >= s->arg[0])
			rig_put(s, from, bytes, len, (1 + rig_random(s, s->arg[2])) * UBCM_MS);
}

static void
do_import(uint32_t end)
{
	uint32_t handle;

	if (nusers[end] == USERS)
		return;
	if (ubcm_import(r.end[end].cm, r.end[end].eid, r.end[1 - end].eid, r.now, &handle) == 0)
		user[end][nusers[end]++] = handle;
}

static void
do_unimport(uint32_t end)
{
	if (nusers[end] != 0)
		(void)ubcm_unimport(r.end[end].cm, user[end][--nusers[end]], r.now);
}

static void
some_event(uint32_t end, enum ubcm_event event)
{
	struct rig_tp *tp = &r.end[end].tp[rig_random(&r, RIG_TPS)];

	if (tp->state == HCA_TPS_RESET)
		return;
	if (event == UBCM_DEAD)
		tp->state = HCA_TPS_ERROR;
	if (event != UBCM_DRAINED || tp->state == HCA_TPS_DRAIN)
		ubcm_event(r.end[end].cm, tp->tp.tpn, event, r.now);
}

static void
forget(struct rig *s, uint32_t end)
{
	struct ubcm_config cfg = s->end[end].cm->cfg;

	memset(s->end[end].tp, 0, sizeof(s->end[end].tp));
	ubcm_init(s->end[end].cm, &cfg);
	nusers[end] = 0;
}

static void
joined(struct rig *s, uint32_t end, uint32_t from, uint32_t to)
{
	for (uint32_t i = 0; i < nusers[end]; i++)
		if (user[end][i] == from)
			user[end][i] = to;
}

static void
something(void)
{
	uint32_t end = rig_random(&r, RIG_ENDS);

	switch (rig_random(&r, 16)) {
	case 0 ... 5:
		do_import(end);
		break;
	case 6 ... 11:
		do_unimport(end);
		break;
	case 12:
		some_event(end, UBCM_DEAD);
		break;
	case 13:
		some_event(end, UBCM_DRAINED);
		break;
	case 14:
		some_event(end, UBCM_PACKET);
		break;
	default:
		if (rig_random(&r, 8) == 0)
			forget(&r, end);
	}
}

/* The TP at the other end of one that may send */
static bool
has_partner(uint32_t end, const struct rig_tp *tp)
{
	for (uint32_t i = 0; i < RIG_TPS; i++) {
		const struct rig_tp *other = &r.end[1 - end].tp[i];

		if (other->state != HCA_TPS_RESET && other->tp.tpn == tp->tp.peer_tpn)
			return other->tp.peer_tpn == tp->tp.tpn && other->tp.epsn == tp->tp.psn &&
			       ubcm_limits_equal(&other->tp.limits, &tp->tp.limits);
	}
	return false;
}

/* A TP without a peer dies as in the transport: after its retries. */
static void
bury(uint32_t end)
{
	for (uint32_t i = 0; i < RIG_TPS; i++) {
		struct rig_tp *tp = &r.end[end].tp[i];

		if (tp->state == HCA_TPS_ACTIVE && !has_partner(end, tp)) {
			tp->state = HCA_TPS_ERROR;
			ubcm_event(r.end[end].cm, tp->tp.tpn, UBCM_DEAD, r.now);
		}
	}
}

static void
check_quiet(void)
{
	for (uint32_t end = 0; end < RIG_ENDS; end++) {
		for (uint32_t i = 0; i < r.end[end].cm->nlinks; i++) {
			enum link_state s = r.end[end].cm->link[i].state;

			assert_true(s == LINK_FREE || s == LINK_OPEN);
		}
		for (uint32_t i = 0; i < RIG_TPS; i++)
			if (r.end[end].tp[i].state == HCA_TPS_ACTIVE)
				assert_true(has_partner(end, &r.end[end].tp[i]));
	}
	rig_sums(&r);
}

/* Both are imported again: the last import meets an open link at both ends. */
static void
check_works(void)
{
	for (uint32_t end = 0; end < RIG_ENDS; end++) {
		uint32_t handle = rig_import(&r, end);

		rig_run(&r, r.now + SECOND);
		assert_true(ubcm_is_up(r.end[end].cm, handle));
		user[end][nusers[end]++] = handle;
	}
	check_quiet();
}

/* Without users no link is left. */
static void
check_ends(void)
{
	for (uint32_t end = 0; end < RIG_ENDS; end++)
		while (nusers[end] != 0)
			do_unimport(end);
	rig_run(&r, r.now + 3 * UBCM_IDLE);
	assert_int_equal(rig_tps(&r, 0) + rig_tps(&r, 1), 0);
	for (uint32_t end = 0; end < RIG_ENDS; end++)
		assert_true(ubcm_deadline(r.end[end].cm) == UBCM_NEVER);
}

static void
run(uint64_t seed)
{
	uint32_t acts;

	rig_open(&r, seed, 1 + (uint32_t)(seed % 5), 16);
	memset(nusers, 0, sizeof(nusers));
	r.arg[0] = rig_random(&r, 2) * rig_random(&r, 60);
	r.arg[1] = rig_random(&r, 2) * rig_random(&r, 60);
	r.arg[2] = 1 + rig_random(&r, 3) * rig_random(&r, 20000);
	r.fate = bad_network;
	r.joined = joined;
	for (acts = 1 + rig_random(&r, 20); acts > 0; acts--) {
		something();
		rig_run(&r, r.now + rig_random(&r, rig_random(&r, 4) == 0 ? 70000 : 300) * UBCM_MS);
	}
	r.fate = NULL;
	for (uint32_t end = 0; end < RIG_ENDS; end++)
		while (nusers[end] > USERS - 2)
			do_unimport(end);
	/* idle ends ask each other at any time: none of these messages may be left at the check */
	for (uint32_t end = 0; end < RIG_ENDS; end++)
		do_import(end);
	rig_run(&r, r.now + QUIET);
	for (uint32_t i = 0; i < 2; i++) {
		bury(0);
		bury(1);
		rig_run(&r, r.now + QUIET);
	}
	check_quiet();
	check_works();
	check_ends();
	rig_close(&r);
}

static uint64_t
number_of(const char *name, uint64_t def)
{
	const char *text = getenv(name);

	return text != NULL ? strtoull(text, NULL, 0) : def;
}

static void
test_random(void **state)
{
	uint64_t runs = number_of("UBCM_RUNS", 1000), first = number_of("UBCM_SEED", 0);

	(void)state;
	if (first != 0)
		runs = 1;
	for (uint64_t seed = first != 0 ? first : 1; runs > 0; runs--, seed++) {
		at = seed;
		run(seed);
	}
	at = 0;
}

static int
tell_seed(void **state)
{
	(void)state;
	if (at != 0)
		print_error("UBCM_SEED=%llu repeats it\n", (unsigned long long)at);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test_teardown(test_random, tell_seed)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
