/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Floods by others at end 1, while it imports end 0, end 0 imports it, and a channel that was there
 * before carries packets: these three must work at every moment.
 */

#include <string.h>

#include "ubcm_rig.h"

#define SECOND (1000 * UBCM_MS)
#define TPS 4u
#define LINKS 64u
#define LONG_TIMEOUT 2097152u /* us, the longest that can be said */
#define ROUNDS 40u
#define DISCS 64u

static struct rig r;
static struct ubcm_msg last; /* the last message to an address that is not end 0's */
static uint32_t got[UBCM_TYPES];
static uint64_t bytes_in, bytes_out, messages_in, messages_out;
static struct ubcm_msg disc[DISCS]; /* not answered yet */
static uint32_t ndiscs;
static uint32_t bystander; /* TPN at end 1 of a channel without local users */

static void
to_attacker(const uint8_t *bytes, size_t len)
{
	assert_int_equal(ubcm_msg_parse(bytes, len, &last), UBCM_DROP_none);
	got[last.type]++;
	bytes_out += len;
	messages_out++;
	if (last.type == UBCM_DISC && ndiscs < DISCS)
		disc[ndiscs++] = last;
}

static void
fate(struct rig *s, uint32_t from, uint32_t n, const uint8_t *bytes, size_t len)
{
	if (from == 1 && memcmp(bytes + 36, s->end[0].eid, 16) != 0)
		to_attacker(bytes, len);
	else
		rig_put(s, from, bytes, len, RIG_DELAY);
}

/* ---- the attacker ---- */

static struct ubcm_msg
from_address(uint8_t type, uint32_t host, uint64_t transaction)
{
	struct ubcm_msg m = {
		.type = type,
		.transaction = transaction,
		.ntps = TPS,
		.source = {0x20, 1, 0xd, 0xb8, [12] = (uint8_t)(host >> 24), (uint8_t)(host >> 16),
			   (uint8_t)(host >> 8), (uint8_t)host},
		.timer = {LONG_TIMEOUT, 1, 7, 16, 1},
	};

	memcpy(m.destination, r.end[1].eid, 16);
	for (uint32_t i = 0; i < TPS; i++)
		m.tp[i] = (struct ubcm_msg_tp){
			.tpn = 1 + ((uint32_t)transaction * TPS + i) % 0xfffffe,
			.psn = i,
			.limits = {1024, 1024, 4096, 1024, HCA_TP_MODE_SACK, 3, 0},
		};
	return m;
}

static void
give(const struct ubcm_msg *m)
{
	uint8_t bytes[UBCM_MSG_MAX];
	size_t len = ubcm_msg_build(m, bytes);

	bytes_in += len;
	messages_in++;
	ubcm_input(r.end[1].cm, r.end[1].eid, m->source, bytes, len, r.now);
}

/* A REQ of a host that receives at its address; whether it got a REP */
static bool
begin(uint32_t host, uint64_t transaction)
{
	struct ubcm_msg m = from_address(UBCM_REQ, host, transaction);

	give(&m);
	assert_int_equal(last.type, UBCM_RETRY);
	m.has_cookie = true;
	m.cookie = last.cookie;
	give(&m);
	return last.type == UBCM_REP;
}

/* The whole handshake */
static bool
begin_and_confirm(uint32_t host, uint64_t transaction)
{
	struct ubcm_msg m = from_address(UBCM_RTU, host, transaction);

	if (!begin(host, transaction))
		return false;
	m.ntps = last.ntps;
	memcpy(m.tp, last.tp, sizeof(m.tp));
	give(&m);
	return true;
}

/* "The peer uses them" */
static void
refuse_to_leave(void)
{
	while (ndiscs > 0) {
		struct ubcm_msg d = disc[--ndiscs], m = from_address(UBCM_REJ, 0, d.transaction);

		memcpy(m.source, d.destination, 16);
		m.status = UBCM_STATUS_IN_USE;
		give(&m);
	}
}

/* ---- other peers ---- */

static void
carry(void)
{
	for (uint32_t i = 0; i < RIG_TPS; i++)
		if (r.end[1].tp[i].state == HCA_TPS_ACTIVE && r.end[1].tp[i].tp.tpn == bystander)
			r.end[1].tp[i].packets++;
}

static bool
bystander_lives(void)
{
	for (uint32_t i = 0; i < RIG_TPS; i++)
		if (r.end[1].tp[i].state == HCA_TPS_ACTIVE && r.end[1].tp[i].tp.tpn == bystander)
			return true;
	return false;
}

/* Another peer has opened a channel and writes over it; no client has imported that peer here. */
static void
start(void)
{
	rig_open(&r, 21, TPS, LINKS);
	memset(got, 0, sizeof(got));
	bytes_in = bytes_out = messages_in = messages_out = 0;
	ndiscs = 0;
	r.fate = fate;
	assert_true(begin_and_confirm(0xb15, 7));
	bystander = r.end[1].cm->link[0].tp[0].tpn;
	carry();
	rig_run(&r, r.now + 30 * SECOND);
}

/* End `end` imports the other one, and the channels end again, as those of a peer that dies. */
static void
import_works(uint32_t end)
{
	uint32_t handle = rig_import(&r, end), up = r.end[end].up;

	rig_run(&r, r.now + 5 * RIG_DELAY);
	assert_int_equal(r.end[end].up, up + 1);
	assert_true(ubcm_is_up(r.end[end].cm, handle));
	ubcm_event(r.end[end].cm, ubcm_link_get(r.end[end].cm, handle)->tp[0].tpn, UBCM_DEAD,
		   r.now);
	rig_run(&r, r.now + 2 * RIG_DELAY);
}

static void
all_works(void)
{
	carry();
	import_works(1);
	import_works(0);
	assert_true(bystander_lives());
	rig_sums(&r);
}

static void
finish(void)
{
	rig_sums(&r);
	r.fate = fate;
	rig_close(&r);
}

/* ---- floods ---- */

/* REQs of addresses that receive nothing: nothing is kept; no more is sent than was received. */
static void
test_spoofed(void **state)
{
	uint64_t kept;

	(void)state;
	start();
	kept = ubcm_counters(r.end[1].cm, r.now)->begun;
	bytes_in = bytes_out = messages_in = messages_out = 0;
	for (uint32_t i = 0; i < 10000; i++) {
		struct ubcm_msg m = from_address(UBCM_REQ, i, i);

		r.now += UBCM_MS / 10;
		m.has_cookie = i % 3 == 0; /* guessed */
		m.cookie = i;
		give(&m);
		if (i % 500 == 0)
			all_works();
	}
	assert_int_equal(got[UBCM_RETRY], 10000 + 1);
	assert_int_equal(messages_out, messages_in);
	assert_true(bytes_out < bytes_in);
	assert_int_equal(ubcm_counters(r.end[1].cm, r.now)->begun, kept + 2 * 20);
	assert_int_equal(ubcm_counters(r.end[1].cm, r.now)->now.half, 0);
	finish();
}

/* A cookie of another address, transaction, or time */
static void
test_stolen_cookie(void **state)
{
	struct ubcm_msg m;

	(void)state;
	start();
	m = from_address(UBCM_REQ, 1, 1);
	give(&m);
	m.has_cookie = true;
	m.cookie = last.cookie;
	for (uint32_t i = 0; i < 3; i++) {
		struct ubcm_msg bad = m;

		bad.source[15] ^= i == 0;
		bad.transaction ^= i == 1;
		r.now += i == 2 ? 20 * SECOND : 0;
		give(&bad);
		assert_int_equal(last.type, UBCM_RETRY);
	}
	assert_int_equal(ubcm_counters(r.end[1].cm, r.now)->now.half, 0);
	m.cookie = last.cookie;
	give(&m);
	assert_int_equal(last.type, UBCM_REP);
	rig_run(&r, r.now + 30 * SECOND);
	finish();
}

/* One address that begins again and again and never confirms, with the longest timeout */
static void
test_halves_of_one(void **state)
{
	(void)state;
	start();
	for (uint32_t i = 0; i < 10 * ROUNDS; i++) {
		r.now += UBCM_MS;
		assert_true(begin(1, 100 + i));
		assert_int_equal(ubcm_counters(r.end[1].cm, r.now)->now.half,
				 i == 0 ? TPS : 2 * TPS);
		if (i % 10 == 0)
			all_works();
	}
	finish();
}

/* The same from many addresses */
static void
test_halves_of_many(void **state)
{
	const struct ubcm_counters *c;

	(void)state;
	start();
	for (uint32_t i = 0; i < 10 * ROUNDS; i++) {
		r.now += UBCM_MS;
		assert_true(begin(1 + i, 100 + i));
		if (i % 10 == 0)
			all_works();
	}
	c = ubcm_counters(r.end[1].cm, r.now);
	assert_in_range(c->now.half, TPS, c->now.limit_half);
	assert_in_range(c->evicted, 9 * ROUNDS, 10 * ROUNDS);
	rig_run(&r, r.now + 30 * SECOND);
	assert_int_equal(ubcm_counters(r.end[1].cm, r.now)->now.half, 0);
	finish();
}

/* Many addresses that confirm, do nothing, and refuse every DISC */
static void
test_open_of_many(void **state)
{
	const struct ubcm_counters *c;

	(void)state;
	start();
	for (uint32_t i = 0; i < 5 * ROUNDS; i++) {
		r.now += SECOND / 2;
		(void)begin_and_confirm(1 + i, 100 + i);
		if (i % 5 == 0)
			all_works();
		rig_run(&r, r.now + SECOND);
		refuse_to_leave();
	}
	c = ubcm_counters(r.end[1].cm, r.now);
	assert_in_range(c->now.peers, c->now.limit_peers - TPS + 1, c->now.limit_peers);
	assert_in_range(c->reclaimed, ROUNDS, 5 * ROUNDS + 2 * ROUNDS);
	finish();
}

/* Faster than a link may be reclaimed: peers wait, local users do not. */
static void
test_open_of_many_at_once(void **state)
{
	const struct ubcm_counters *c;

	(void)state;
	start();
	for (uint32_t i = 0; i < 30; i++)
		(void)begin_and_confirm(1 + i, 100 + i);
	c = ubcm_counters(r.end[1].cm, r.now);
	assert_int_equal(c->now.peers, c->now.limit_peers);
	assert_in_range(c->refused_peers, 10, 30);
	for (uint32_t i = 0; i < 5; i++)
		import_works(1);
	carry();
	rig_run(&r, r.now + UBCM_YOUNG);
	all_works();
	finish();
}

/* One address has its share, and no more; others have theirs. */
static void
test_open_of_one(void **state)
{
	const struct ubcm_counters *c;
	uint8_t own[16] = {0xfd};
	struct ubcm_msg m;

	(void)state;
	start();
	for (uint32_t i = 0; i < 20; i++) { /* with as many addresses of this host */
		own[15] = (uint8_t)i;
		m = from_address(UBCM_REQ, 1, 100 + i);
		memcpy(m.destination, own, 16);
		m.has_cookie = true;
		m.cookie = cm_cookie(r.end[1].cm->key, own, m.source, m.transaction, r.now);
		memcpy(r.end[1].eid, own, 16);
		give(&m);
	}
	c = ubcm_counters(r.end[1].cm, r.now);
	assert_int_equal(c->now.half, c->now.limit_address);
	assert_int_equal(c->refused_address, 20 - (c->now.limit_address + TPS - 1) / TPS);
	assert_int_equal(last.type, UBCM_REJ);
	assert_int_equal(last.status, UBCM_STATUS_NO_RESOURCES);
	r.fate = NULL;
	free(r.end[0].cm);
	free(r.end[1].cm);
}

/* Handshakes that are completed and ended at once: TPNs rest, and are there nevertheless. */
static void
test_churn(void **state)
{
	(void)state;
	start();
	for (uint32_t i = 0; i < 10 * ROUNDS; i++) {
		struct ubcm_msg m = from_address(UBCM_DISC, 1, 100 + i);

		r.now += UBCM_MS;
		assert_true(begin_and_confirm(1, 100 + i));
		m.status = UBCM_STATUS_CLOSING;
		give(&m);
		assert_int_equal(last.type, UBCM_DISC_REP);
		if (i % 10 == 0)
			all_works();
	}
	assert_in_range(ubcm_counters(r.end[1].cm, r.now)->now.resting, 32, RIG_TPS);
	finish();
}

/* Local users have more than their reserve: an idle link of their own goes, none that is used. */
static void
test_own_idle_goes(void **state)
{
	uint32_t handle[LINKS], n, other;
	uint8_t peer[16] = {0xfd};

	(void)state;
	start();
	for (n = 0; n < LINKS; n++) {
		struct ubcm_msg m = {.type = UBCM_REP, .ntps = TPS, .timer = {0, 1, 7, 16, 1}};

		peer[15] = (uint8_t)n;
		if (ubcm_import(r.end[1].cm, r.end[1].eid, peer, r.now, &handle[n]) != 0)
			break;
		m.ntps = last.ntps;
		m.transaction = last.transaction;
		memcpy(m.source, peer, 16);
		memcpy(m.destination, r.end[1].eid, 16);
		memcpy(m.tp, last.tp, sizeof(m.tp));
		give(&m);
		assert_true(ubcm_is_up(r.end[1].cm, handle[n]));
	}
	assert_int_equal(n, RIG_TPS / TPS - 1); /* all but the bystander's */
	assert_int_equal(ubcm_counters(r.end[1].cm, r.now)->refused_own, 1);
	assert_int_equal(ubcm_unimport(r.end[1].cm, handle[3], r.now), 0);
	carry();
	rig_run(&r, r.now + UBCM_YOUNG);
	peer[14] = 1;
	assert_int_equal(ubcm_import(r.end[1].cm, r.end[1].eid, peer, r.now, &other), 0);
	assert_null(ubcm_link_get(r.end[1].cm, handle[3]));
	/* and so does one for a peer, which has none free either */
	assert_int_equal(ubcm_unimport(r.end[1].cm, handle[5], r.now), 0);
	import_works(0);
	assert_null(ubcm_link_get(r.end[1].cm, handle[5]));
	for (uint32_t i = 0; i < n; i++)
		assert_true(i == 3 || i == 5 || ubcm_is_up(r.end[1].cm, handle[i]));
	assert_true(bystander_lives());
	finish();
}

/* ---- repeated messages, and messages with another's address ---- */

/* REQs with the address of end 0 while it is imported; with a cookie: from a host on the path */
static void
test_forged_req(void **state)
{
	(void)state;
	for (uint32_t proved = 0; proved < 2; proved++)
		for (uint32_t end = 0; end < 2; end++) {
			uint32_t handle, victim = 1 - end;

			rig_open(&r, 22, TPS, LINKS);
			handle = rig_import(&r, victim);
			for (uint32_t i = 0; i < 8; i++) {
				struct ubcm_msg m = from_address(UBCM_REQ, 0, 500 + i);
				uint8_t bytes[UBCM_MSG_MAX];

				memcpy(m.source, r.end[end].eid, 16);
				memcpy(m.destination, r.end[victim].eid, 16);
				m.has_cookie = proved;
				m.cookie = cm_cookie(r.end[victim].cm->key, m.destination, m.source,
						     m.transaction, r.now);
				rig_deliver(&r, victim, bytes, ubcm_msg_build(&m, bytes));
				rig_run(&r, r.now + RIG_DELAY / 2);
			}
			rig_run(&r, r.now + SECOND);
			assert_true(ubcm_is_up(r.end[victim].cm, handle));
			assert_int_equal(r.end[victim].up, 1);
			assert_int_equal(r.end[victim].down, 0);
			rig_run(&r, r.now + 30 * SECOND);
			assert_int_equal(ubcm_counters(r.end[victim].cm, r.now)->now.half, 0);
			rig_agree(&r, TPS);
			rig_close(&r);
		}
}

/* Every message of a handshake again, a thousand times, after the channels are there and gone */
static void
test_replays(void **state)
{
	static const uint8_t types[] = {UBCM_RTU, UBCM_DISC, UBCM_REQ};
	struct ubcm_msg m;
	uint32_t acts;

	(void)state;
	start();
	assert_true(begin_and_confirm(1, 100));
	for (uint32_t kind = 0; kind < 3; kind++) {
		m = from_address(types[kind], 1, 100);
		if (kind == 1)
			m.status = UBCM_STATUS_CLOSING; /* the first one ends them */
		give(&m);
		acts = r.end[1].acts[UBCM_CREATE] + r.end[1].acts[UBCM_DESTROY];
		bytes_in = bytes_out = messages_in = messages_out = 0;
		for (uint32_t i = 0; i < 1000; i++)
			give(&m);
		assert_true(messages_out <= messages_in);
		assert_true(bytes_out <= bytes_in);
		assert_int_equal(r.end[1].acts[UBCM_CREATE] + r.end[1].acts[UBCM_DESTROY], acts);
		all_works();
	}
	finish();
}

/* RETRYs: of no REQ, and repeated ones for a REQ of this end */
static void
test_retries(void **state)
{
	struct ubcm_msg m;
	uint32_t handle, sent;

	(void)state;
	rig_open(&r, 23, TPS, LINKS);
	handle = rig_import(&r, 0);
	assert_int_equal(ubcm_msg_parse(r.message[0].bytes, r.message[0].len, &m), UBCM_DROP_none);
	m.type = UBCM_RETRY;
	memcpy(m.source, r.end[1].eid, 16);
	memcpy(m.destination, r.end[0].eid, 16);
	sent = r.count[0];
	for (uint32_t i = 0; i < 100; i++) {
		uint8_t bytes[UBCM_MSG_MAX];

		m.transaction += i == 50;
		m.cookie = i;
		rig_deliver(&r, 0, bytes, ubcm_msg_build(&m, bytes));
	}
	assert_int_equal(r.count[0], sent + 1);
	rig_run(&r, r.now + SECOND);
	assert_true(ubcm_is_up(r.end[0].cm, handle));
	rig_close(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spoofed),	      cmocka_unit_test(test_stolen_cookie),
		cmocka_unit_test(test_halves_of_one), cmocka_unit_test(test_halves_of_many),
		cmocka_unit_test(test_open_of_many),  cmocka_unit_test(test_open_of_many_at_once),
		cmocka_unit_test(test_open_of_one),   cmocka_unit_test(test_churn),
		cmocka_unit_test(test_own_idle_goes), cmocka_unit_test(test_forged_req),
		cmocka_unit_test(test_replays),	      cmocka_unit_test(test_retries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
