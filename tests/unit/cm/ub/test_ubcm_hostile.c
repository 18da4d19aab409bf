/* SPDX-License-Identifier: BSD-3-Clause */

/* Messages of a hostile host: each is dropped and counted, and no state changes. */

#include <string.h>

#include "ubcm_rig.h"

#define SECOND (1000 * UBCM_MS)

static struct rig r;
static uint8_t bytes[UBCM_MSG_MAX];

static void
swallow(struct rig *s, uint32_t from, uint32_t n, const uint8_t *msg, size_t len)
{
}

/* A message from end 0 to end 1 as end 0 would send it, about a transaction of the test's */
static struct ubcm_msg
message(uint8_t type, uint32_t ntps)
{
	struct ubcm_msg m = {.type = type, .transaction = 77, .ntps = ntps};

	memcpy(m.source, r.end[0].eid, 16);
	memcpy(m.destination, r.end[1].eid, 16);
	m.timer = (struct ubcm_timer){0, 1, 7, 16, 1};
	for (uint32_t i = 0; i < ntps; i++)
		m.tp[i] = (struct ubcm_msg_tp){
			.tpn = 1000 + i,
			.psn = i,
			.limits = {1024, 1024, 4096, 1024, HCA_TP_MODE_SACK, 3, 0},
		};
	return m;
}

static void
give(const struct ubcm_msg *m)
{
	rig_deliver(&r, 1, bytes, ubcm_msg_build(m, bytes));
}

static void
open_link(void)
{
	rig_open(&r, 1, 2, 8);
	rig_import(&r, 0);
	rig_import(&r, 1);
	rig_run(&r, r.now + SECOND);
	rig_agree(&r, 2);
	r.fate = swallow;
}

/* In every case both ends have their old links, with their users. */
static void
close_unharmed(void)
{
	rig_agree(&r, 2);
	assert_int_equal(r.end[0].down + r.end[1].down, 0);
	rig_sums(&r);
	rig_close(&r);
}

static void
test_entity(void **state)
{
	struct ubcm_msg m;

	(void)state;
	open_link();
	for (uint32_t type = UBCM_REQ; type < UBCM_TYPES; type++)
		for (uint32_t wrong = 0; wrong < 2; wrong++) {
			uint64_t dropped = rig_dropped(&r, 1);

			m = message((uint8_t)type, 2);
			(wrong ? m.source : m.destination)[7] ^= 1;
			give(&m);
			assert_int_equal(rig_dropped(&r, 1), dropped + 1);
		}
	assert_int_equal(ubcm_counters(r.end[1].cm, r.now)->dropped[UBCM_DROP_entity],
			 2 * (UBCM_TYPES - 1));
	close_unharmed();
}

/* Answers without a request */
static void
test_nobodys(void **state)
{
	static const uint8_t types[] = {UBCM_REP, UBCM_RTU, UBCM_REJ, UBCM_DISC_REP, UBCM_RETRY};
	struct ubcm_msg m;

	(void)state;
	open_link();
	for (uint32_t i = 0; i < sizeof(types); i++) {
		m = message(types[i], 2);
		give(&m);
		assert_int_equal(ubcm_counters(r.end[1].cm, r.now)->dropped[UBCM_DROP_unknown],
				 i + 1);
	}
	/* REJ, DISC_REP and RETRY are not answered: two ends cannot keep each other busy */
	assert_int_equal(ubcm_counters(r.end[1].cm, r.now)->sent[UBCM_REJ], 2);
	close_unharmed();
}

/* TPs that are not those of the link: guessed, of another order, too few, with wrong PSNs */
static void
test_wrong_tps(void **state)
{
	struct ubcm_msg m;
	struct ubcm_link *l;

	(void)state;
	open_link();
	l = &r.end[1].cm->link[0]; /* active: end 1 has the higher EID */
	assert_true(l->active);
	for (uint32_t kind = 0; kind < 4; kind++) {
		m = message(UBCM_DISC, kind == 2 ? 1 : 2);
		m.status = UBCM_STATUS_CLOSING;
		for (uint32_t i = 0; i < m.ntps; i++) {
			m.tp[i].tpn = l->tp[kind == 1 ? 1 - i : i].peer_tpn;
			m.tp[i].psn = l->tp[kind == 1 ? 1 - i : i].epsn ^ (kind == 3);
		}
		if (kind == 0)
			m.tp[1].tpn ^= 0x40;
		give(&m);
		m.type = UBCM_REP;
		m.transaction = l->transaction;
		give(&m);
	}
	assert_int_equal(ubcm_counters(r.end[1].cm, r.now)->dropped[UBCM_DROP_tpn], 4);
	close_unharmed();
}

/* An RTU that does not prove that its sender has seen the REP */
static void
test_blind_rtu(void **state)
{
	struct ubcm_msg m;
	struct ubcm_link *l;

	(void)state;
	open_link();
	r.now += 30 * SECOND; /* the channels that there are were not made just now */
	m = message(UBCM_REQ, 2);
	m.has_cookie = true;
	m.cookie = cm_cookie(r.end[1].cm->key, r.end[1].eid, r.end[0].eid, m.transaction, r.now);
	give(&m);
	l = &r.end[1].cm->link[1];
	assert_int_equal(l->state, LINK_ANSWERED);
	m.type = UBCM_RTU;
	give(&m);
	for (uint32_t i = 0; i < 2; i++) {
		m.tp[i].tpn = l->tp[i].tpn;
		m.tp[i].psn = l->tp[i].psn ^ 1;
	}
	give(&m);
	assert_int_equal(l->state, LINK_ANSWERED);
	assert_int_equal(ubcm_counters(r.end[1].cm, r.now)->dropped[UBCM_DROP_tpn], 2);
	/* it goes without a message */
	rig_run(&r, r.now + 30 * SECOND);
	assert_int_equal(l->state, LINK_FREE);
	close_unharmed();
}

/* Each message of a handshake, cut everywhere and with each bit flipped, before the good one. */
static void
mangle(struct rig *s, uint32_t from, uint32_t n, const uint8_t *msg, size_t len)
{
	uint8_t bad[UBCM_MSG_MAX];

	memcpy(bad, msg, len);
	for (size_t cut = 0; s->arg[0] == 0 && cut < len; cut++) {
		hca_put_be16(bad + 2, (uint16_t)cut);
		rig_deliver(s, 1 - from, bad, cut);
	}
	for (size_t bit = 0; s->arg[0] == 1 && bit < 8 * UBCM_HEADER_BYTES; bit++) {
		/* of another transaction, type or length it may be a message of its own right */
		bad[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (bit / 8 < 4)
			rig_deliver(s, 1 - from, bad, len);
		bad[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	rig_put(s, from, msg, len, RIG_DELAY);
}

static void
test_mangled(void **state)
{
	(void)state;
	rig_open(&r, 2, 2, 8);
	r.fate = mangle;
	rig_import(&r, 0);
	rig_run(&r, r.now + SECOND);
	rig_agree(&r, 2);
	assert_int_equal(ubcm_counters(r.end[0].cm, r.now)->begun, 1);
	assert_int_equal(ubcm_counters(r.end[1].cm, r.now)->begun, 1);
	assert_in_range(rig_dropped(&r, 1), 100, 1000);
	r.fate = NULL;
	rig_close(&r);
}

/* Bits flipped in REQs with a cookie: refused, or a half that times out; the state adds up. */
static void
test_flipped(void **state)
{
	struct ubcm_msg m;
	size_t len;

	(void)state;
	open_link();
	m = message(UBCM_REQ, 2);
	m.has_cookie = true;
	m.cookie = cm_cookie(r.end[1].cm->key, r.end[1].eid, r.end[0].eid, m.transaction, r.now);
	len = ubcm_msg_build(&m, bytes);
	for (size_t bit = 0; bit < 8 * len; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		rig_deliver(&r, 1, bytes, len);
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		rig_sums(&r);
	}
	rig_run(&r, r.now + 60 * SECOND);
	close_unharmed();
}

/* Events of TPNs that no link has, or had */
static void
test_events_of_nobody(void **state)
{
	(void)state;
	open_link();
	for (uint32_t tpn = 0; tpn < 256; tpn++)
		for (uint32_t e = UBCM_PACKET; e <= UBCM_DRAINED; e++)
			ubcm_event(r.end[1].cm, tpn << 16 | (tpn & 63), e, r.now);
	close_unharmed();
}

/* A REJ of the link's own transaction is accepted; also one with an unknown reason. */
static void
test_rej(void **state)
{
	struct ubcm_msg m;

	(void)state;
	open_link();
	m = message(UBCM_REJ, 0);
	m.transaction = r.end[1].cm->link[0].transaction;
	m.status = 0xffff;
	give(&m);
	assert_int_equal(rig_tps(&r, 1), 0);
	assert_int_equal(r.end[1].down, 1);
	rig_close(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_entity),	  cmocka_unit_test(test_nobodys),
		cmocka_unit_test(test_wrong_tps), cmocka_unit_test(test_blind_rtu),
		cmocka_unit_test(test_mangled),	  cmocka_unit_test(test_flipped),
		cmocka_unit_test(test_rej),	  cmocka_unit_test(test_events_of_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
