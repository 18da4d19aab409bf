/* SPDX-License-Identifier: BSD-3-Clause */

/* How long TPNs rest. */

#include "ubcm_rig.h"

#define SECOND (1000 * UBCM_MS)
#define GIVE_UP (255 * UBCM_FIRST_WAIT)

static struct rig r;

/* Replace the machine of an end by another one. */
static void
reopen(uint32_t end, struct ubcm_config cfg)
{
	free(r.end[end].cm);
	r.end[end].cm = ubcm_init(malloc(ubcm_bytes(&cfg)), &cfg);
}

static void
lose_rtu(struct rig *s, uint32_t from, uint32_t n, const uint8_t *bytes, size_t len)
{
	if (bytes[1] != UBCM_RTU)
		rig_put(s, from, bytes, len, RIG_DELAY);
}

/* A used TPN of three rests, unless no other one is free; its tag is another then. */
static void
test_numbers_rest(void **state)
{
	uint32_t tpn, other;
	struct ubcm_config cfg;
	uint64_t rests;

	(void)state;
	rig_open(&r, 12, 1, 4);
	cfg = rig_config(&r, 1, 1, 4);
	cfg.log_tps = 2; /* there are three TPNs */
	reopen(1, cfg);
	rests = UBCM_REST_RTOS * ubcm_rto_largest(&cfg.timer);
	rig_import(&r, 1);
	rig_run(&r, r.now + SECOND);
	tpn = rig_first(&r, 1)->tp.tpn;
	ubcm_event(r.end[1].cm, tpn, UBCM_DEAD, r.now);
	assert_int_equal(r.end[1].down, 1);
	assert_int_equal(ubcm_counters(r.end[1].cm, r.now)->now.resting, 1);
	assert_int_equal(ubcm_counters(r.end[1].cm, r.now + rests)->now.resting, 0);
	for (uint32_t i = 0; i < 6; i++) { /* the other two take turns, until they also rest */
		rig_import(&r, 1);
		rig_run(&r, r.now + 10 * RIG_DELAY);
		other = rig_first(&r, 1)->tp.tpn;
		assert_int_not_equal(other, tpn);
		if (i < 2)
			assert_int_not_equal(other & 3, tpn & 3);
		ubcm_event(r.end[1].cm, other, UBCM_DEAD, r.now);
		rig_run(&r, r.now + 10 * RIG_DELAY);
	}
	rig_sums(&r);
	rig_close(&r);
}

/* Unconfirmed links of peers do not rest, with any announced timeout. */
static void
test_halves_do_not_rest(void **state)
{
	struct ubcm_config cfg;

	(void)state;
	rig_open(&r, 16, 4, 4);
	cfg = rig_config(&r, 0, 4, 4);
	cfg.timer.rto_base = 2097152;
	reopen(0, cfg);
	r.fate = lose_rtu;
	rig_import(&r, 0);
	rig_run(&r, r.now + GIVE_UP + SECOND);
	assert_int_equal(rig_tps(&r, 1), 0);
	assert_int_equal(ubcm_counters(r.end[1].cm, r.now)->handled[UBCM_REQ], 2);
	assert_int_equal(ubcm_counters(r.end[1].cm, r.now)->now.resting, 0);
	rig_close(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers_rest),
		cmocka_unit_test(test_halves_do_not_rest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
