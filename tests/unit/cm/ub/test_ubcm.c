/* SPDX-License-Identifier: BSD-3-Clause */

/* Links between two HCAs: how they begin and end, with each message lost, late or twice. */

#include <errno.h>
#include <string.h>

#include "ubcm_rig.h"

#define SECOND (1000 * UBCM_MS)
#define B 0x80 /* in the log: of end 1 */
/* REQ, REP or DISC without an answer: 100 ms * (1 + 2 + .. + 128) */
#define GIVE_UP (255 * UBCM_FIRST_WAIT)

static struct rig r;

static void
assert_log(const uint8_t *want, uint32_t n)
{
	assert_int_equal(r.sent, n);
	assert_memory_equal(r.log, want, n);
}
#define ASSERT_LOG(...) \
	do { \
		static const uint8_t want_[] = {__VA_ARGS__}; \
		assert_log(want_, sizeof(want_)); \
	} while (0)

/* An open link that end 0 has imported */
static uint32_t
open_link(uint32_t tps)
{
	uint32_t handle;

	rig_open(&r, 1, tps, 4);
	handle = rig_import(&r, 0);
	rig_run(&r, r.now + SECOND);
	rig_agree(&r, tps);
	r.sent = 0;
	return handle;
}

/* ---- beginning ---- */

static void
test_handshake(void **state)
{
	uint32_t handle;

	(void)state;
	for (uint32_t tps = 1; tps <= UBCM_MSG_TPS; tps++) {
		rig_open(&r, tps, tps, 4);
		handle = rig_import(&r, 0);
		assert_false(ubcm_is_up(r.end[0].cm, handle));
		rig_run(&r, r.now + SECOND);
		ASSERT_LOG(UBCM_REQ, B | UBCM_RETRY, UBCM_REQ, B | UBCM_REP, UBCM_RTU);
		rig_agree(&r, tps);
		assert_true(ubcm_is_up(r.end[0].cm, handle));
		assert_int_equal(r.end[0].up, 1);
		assert_int_equal(r.end[1].up, 0); /* it has no users */
		assert_int_equal(ubcm_counters(r.end[0].cm, r.now)->opened, 1);
		assert_int_equal(ubcm_counters(r.end[1].cm, r.now)->opened, 1);
		rig_sums(&r);
		rig_close(&r);
	}
}

/* Of the peer's TPs nothing is sent before its RTU. */
static void
test_passive_waits(void **state)
{
	(void)state;
	rig_open(&r, 2, 2, 4);
	rig_import(&r, 0);
	rig_run(&r, r.now + RIG_DELAY);
	assert_int_equal(rig_tps(&r, 1), 0); /* the peer gets a cookie, no more */
	rig_run(&r, r.now + 2 * RIG_DELAY);
	assert_int_equal(rig_tps(&r, 0), 0);
	assert_int_equal(rig_first(&r, 1)->state, HCA_TPS_PASSIVE);
	rig_run(&r, r.now + RIG_DELAY);
	assert_int_equal(rig_first(&r, 0)->state, HCA_TPS_ACTIVE);
	assert_int_equal(rig_first(&r, 1)->state, HCA_TPS_PASSIVE);
	rig_run(&r, r.now + RIG_DELAY);
	rig_agree(&r, 2);
	rig_close(&r);
}

static void
lose(struct rig *s, uint32_t from, uint32_t n, const uint8_t *bytes, size_t len)
{
	if (from != s->arg[0] || n < s->arg[1] || n >= s->arg[1] + s->arg[2])
		rig_put(s, from, bytes, len, RIG_DELAY);
}

static void
open_losing(uint32_t from, uint32_t first, uint32_t number)
{
	rig_open(&r, 3, 4, 4);
	r.fate = lose;
	r.arg[0] = from;
	r.arg[1] = first;
	r.arg[2] = number;
}

/* Up to seven losses in a row of each message; when the repetitions leave is known to the ms. */
static void
test_repeated(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= UBCM_REPEATS; n++) {
		uint64_t waits = UBCM_FIRST_WAIT * ((1u << n) - 1);

		open_losing(0, 1, n); /* REQ */
		rig_import(&r, 0);
		rig_run(&r, r.now + waits + 4 * RIG_DELAY - 1);
		assert_int_equal(rig_tps(&r, 0), 0);
		rig_run(&r, r.now + RIG_DELAY + 1);
		rig_agree(&r, 4);
		rig_close(&r);

		open_losing(1, 1, n); /* RETRY */
		rig_import(&r, 0);
		rig_run(&r, r.now + GIVE_UP);
		rig_agree(&r, 4);
		rig_close(&r);

		open_losing(0, 2, n); /* REQ with its cookie */
		rig_import(&r, 0);
		rig_run(&r, r.now + GIVE_UP);
		rig_agree(&r, 4);
		rig_close(&r);

		open_losing(1, 2, n); /* REP: each of its own, and of each repeated REQ */
		rig_import(&r, 0);
		rig_run(&r, r.now + GIVE_UP);
		rig_agree(&r, 4);
		rig_close(&r);

		open_losing(0, 3, n); /* RTU: of each repeated REP */
		rig_import(&r, 0);
		rig_run(&r, r.now + GIVE_UP);
		rig_agree(&r, 4);
		assert_int_equal(ubcm_counters(r.end[1].cm, r.now)->repeated, n);
		rig_close(&r);
	}
}

static void
test_no_answer(void **state)
{
	uint32_t handle;

	(void)state;
	open_losing(0, 1, 100);
	handle = rig_import(&r, 0);
	rig_run(&r, r.now + GIVE_UP - 1);
	assert_int_equal(r.count[0], 1 + UBCM_REPEATS);
	assert_int_equal(r.end[0].down, 0);
	rig_run(&r, r.now + 1);
	assert_int_equal(r.end[0].down, 1);
	assert_int_equal(r.end[0].why, UBCM_STATUS_TIMEOUT);
	assert_int_equal(ubcm_unimport(r.end[0].cm, handle, r.now), -ENOENT);
	assert_true(ubcm_deadline(r.end[0].cm) == UBCM_NEVER);
	/* the next import begins again */
	r.fate = NULL;
	assert_int_not_equal(rig_import(&r, 0), handle);
	rig_run(&r, r.now + SECOND);
	rig_agree(&r, 4);
	rig_close(&r);
}

/* No RTU and no packet: the passive end gives up, and tells so. */
static void
test_no_rtu(void **state)
{
	(void)state;
	open_losing(0, 3, 100);
	rig_import(&r, 0);
	rig_run(&r, r.now + GIVE_UP + SECOND);
	assert_int_equal(rig_tps(&r, 0), 0);
	assert_int_equal(rig_tps(&r, 1), 0);
	assert_int_equal(r.end[0].why, UBCM_STATUS_TIMEOUT);
	rig_close(&r);
}

/* A packet of the peer stands for the RTU. */
static void
test_packet_confirms(void **state)
{
	(void)state;
	open_losing(0, 3, 100);
	rig_import(&r, 0);
	rig_run(&r, r.now + 10 * RIG_DELAY);
	ubcm_event(r.end[1].cm, rig_first(&r, 1)->tp.tpn, UBCM_PACKET, r.now);
	rig_run(&r, r.now + GIVE_UP);
	rig_agree(&r, 4);
	rig_close(&r);
}

static void
twice(struct rig *s, uint32_t from, uint32_t n, const uint8_t *bytes, size_t len)
{
	for (uint32_t i = 0; i < 3; i++)
		rig_put(s, from, bytes, len, RIG_DELAY + i * s->arg[0] * UBCM_MS);
}

/* Copies at once and up to a minute later change nothing. */
static void
test_duplicates(void **state)
{
	(void)state;
	for (uint32_t late = 0; late < 30000; late = 2 * late + 1) {
		rig_open(&r, 4, 4, 4);
		r.fate = twice;
		r.arg[0] = late;
		rig_import(&r, 0);
		rig_run(&r, r.now + 59 * SECOND);
		rig_agree(&r, 4);
		assert_int_equal(r.end[0].acts[UBCM_CREATE], 1);
		assert_int_equal(r.end[1].acts[UBCM_CREATE], 1);
		assert_int_equal(r.end[0].down + r.end[1].down, 0);
		rig_sums(&r);
		rig_close(&r);
	}
}

/* ---- both at once ---- */

static uint32_t moved_to;

static void
moved(struct rig *s, uint32_t end, uint32_t from, uint32_t to)
{
	moved_to = to;
}

static void
test_both_ask(void **state)
{
	uint32_t low, high;

	(void)state;
	rig_open(&r, 5, 4, 4);
	r.joined = moved;
	low = rig_import(&r, 0);
	high = rig_import(&r, 1);
	rig_run(&r, r.now + SECOND);
	ASSERT_LOG(UBCM_REQ, B | UBCM_REQ, B | UBCM_RETRY, UBCM_RETRY, UBCM_REQ, B | UBCM_REQ,
		   UBCM_REP, B | UBCM_RTU);
	rig_agree(&r, 4);
	assert_int_not_equal(low, moved_to); /* the link that end 1 asked for serves both */
	assert_true(ubcm_is_up(r.end[0].cm, moved_to) && ubcm_is_up(r.end[1].cm, high));
	assert_int_equal(r.end[0].up, 1);
	assert_int_equal(r.end[1].up, 1);
	assert_int_equal(ubcm_counters(r.end[1].cm, r.now)->dropped[UBCM_DROP_crossed], 1);
	assert_int_equal(ubcm_counters(r.end[0].cm, r.now)->begun, 2);
	assert_int_equal(ubcm_unimport(r.end[0].cm, low, r.now), -ENOENT);
	assert_int_equal(ubcm_unimport(r.end[0].cm, moved_to, r.now), 0);
	rig_close(&r);
}

/* The REQ of one is lost, once and always. */
static void
test_both_ask_lossy(void **state)
{
	(void)state;
	for (uint32_t from = 0; from < 2; from++)
		for (uint32_t n = 1; n < 100; n += 98) {
			open_losing(from, 1, n);
			rig_import(&r, 0);
			rig_import(&r, 1);
			rig_run(&r, r.now + 2 * GIVE_UP + SECOND);
			if (n == 1)
				rig_agree(&r, 4);
			else
				assert_int_equal(rig_tps(&r, 0) + rig_tps(&r, 1), 0);
			rig_sums(&r);
			rig_close(&r);
		}
}

/* Each message of both lost once to three times: users get only the event that it is up. */
static void
test_both_ask_repeated(void **state)
{
	(void)state;
	for (uint32_t from = 0; from < 2; from++)
		for (uint32_t first = 1; first <= 5; first++)
			for (uint32_t n = 1; n <= 3; n++) {
				open_losing(from, first, n);
				rig_import(&r, 0);
				rig_import(&r, 1);
				rig_run(&r, r.now + GIVE_UP + SECOND);
				rig_agree(&r, 4);
				assert_int_equal(r.end[0].down + r.end[1].down, 0);
				rig_sums(&r);
				rig_close(&r);
			}
}

/* Users of the passive end join the link, before and after it is open. */
static void
test_joined(void **state)
{
	uint32_t first, second;

	(void)state;
	rig_open(&r, 6, 4, 4);
	rig_import(&r, 0);
	rig_run(&r, r.now + 3 * RIG_DELAY);
	first = rig_import(&r, 1);
	assert_false(ubcm_is_up(r.end[1].cm, first));
	rig_run(&r, r.now + SECOND);
	assert_int_equal(r.end[1].up, 1);
	second = rig_import(&r, 1);
	assert_int_equal(first, second);
	assert_true(ubcm_is_up(r.end[1].cm, second));
	rig_agree(&r, 4);
	assert_int_equal(r.count[1], 2); /* RETRY, REP */
	rig_close(&r);
}

/* The peer closes a link that a user has joined: this end asks itself, with the same handle. */
static void
test_joined_in_vain(void **state)
{
	struct ubcm_msg m = {.type = UBCM_REJ, .status = UBCM_STATUS_UNKNOWN};
	uint8_t bytes[UBCM_MSG_MAX];
	uint32_t handle;

	(void)state;
	rig_open(&r, 7, 4, 4);
	rig_import(&r, 0);
	rig_run(&r, r.now + 3 * RIG_DELAY);
	handle = rig_import(&r, 1);
	m.transaction = r.end[0].cm->link[0].transaction;
	memcpy(m.source, r.end[0].eid, 16);
	memcpy(m.destination, r.end[1].eid, 16);
	ubcm_end(r.end[0].cm, r.now);
	rig_deliver(&r, 1, bytes, ubcm_msg_build(&m, bytes));
	assert_int_equal(rig_tps(&r, 1), 0);
	rig_run(&r, r.now + SECOND);
	rig_agree(&r, 4);
	assert_true(ubcm_is_up(r.end[1].cm, handle));
	assert_int_equal(r.end[1].down, 0);
	rig_close(&r);
}

static void
test_itself(void **state)
{
	struct rig_end *e = &r.end[0];
	uint32_t handle;

	(void)state;
	rig_open(&r, 8, 4, 4);
	assert_int_equal(ubcm_import(e->cm, e->eid, e->eid, r.now, &handle), 0);
	rig_run(&r, r.now + SECOND);
	assert_true(ubcm_is_up(e->cm, handle));
	assert_int_equal(rig_tps(&r, 0), 8);
	assert_int_equal(e->acts[UBCM_CREATE], 2);
	assert_int_equal(ubcm_unimport(e->cm, handle, r.now), 0);
	rig_run(&r, r.now + 2 * UBCM_IDLE + 10 * SECOND);
	assert_int_equal(rig_tps(&r, 0), 0);
	rig_close(&r);
}

/* The only user has gone before there is an answer: so has the link, also at the peer. */
static void
test_unimport_while_asking(void **state)
{
	(void)state;
	for (uint32_t steps = 0; steps < 4; steps++) {
		rig_open(&r, 18, 4, 4);
		assert_int_equal(ubcm_unimport(r.end[0].cm, rig_import(&r, 0), r.now), 0);
		assert_int_equal(ubcm_counters(r.end[0].cm, r.now)->now.own, 0);
		rig_import(&r, 0);
		rig_run(&r, r.now + steps * RIG_DELAY);
		if (r.end[0].cm->link[0].state == LINK_ASKING)
			assert_int_equal(ubcm_unimport(r.end[0].cm,
						       ubcm_link_handle(r.end[0].cm,
									&r.end[0].cm->link[0]),
						       r.now),
					 0);
		rig_run(&r, r.now + 30 * SECOND);
		assert_int_equal(rig_tps(&r, 0) + rig_tps(&r, 1), 0);
		rig_sums(&r);
		rig_close(&r);
	}
}

/* ---- agreement ---- */

/* Replace the machine of end 1 by one that can do less. */
static void
reopen(struct ubcm_config cfg)
{
	free(r.end[1].cm);
	r.end[1].cm = ubcm_init(malloc(ubcm_bytes(&cfg)), &cfg);
}

static void
test_limits(void **state)
{
	struct ubcm_config cfg;
	const struct ubcm_limits *l;

	(void)state;
	for (uint32_t asks = 0; asks < 2; asks++) {
		rig_open(&r, 9, 6, 4);
		cfg = rig_config(&r, 1, 2, 4);
		cfg.limits = (struct ubcm_limits){.window = 128,
						  .sack = 64,
						  .mtu = 1024,
						  .requests = 5,
						  .mode = HCA_TP_MODE_TRACK,
						  .flags = HCA_TP_FLAG_TAID | HCA_TP_FLAG_SPRAY};
		cfg.timer = (struct ubcm_timer){500, 1, 3, 4, 2};
		reopen(cfg);
		rig_import(&r, asks);
		rig_run(&r, r.now + SECOND);
		rig_agree(&r, 2);
		l = &rig_first(&r, 0)->tp.limits;
		assert_int_equal(l->window, 128);
		assert_int_equal(l->sack, 64);
		assert_int_equal(l->mtu, 1024);
		assert_int_equal(l->requests, 5);
		assert_int_equal(l->mode, HCA_TP_MODE_TRACK);
		assert_int_equal(l->flags, HCA_TP_FLAG_TAID);
		for (uint32_t e = 0; e < 2; e++) {
			const struct ubcm_timer *t = &r.end[e].cm->link[0].timer;

			assert_int_equal(t->rto_base, 0);
			assert_int_equal(t->retries, 3);
			assert_int_equal(t->ack_every, 4);
		}
		/* the TPNs that found no partner are free */
		assert_int_equal(r.end[asks].cm->link[0].ntps, 2);
		rig_close(&r);
	}
}

/* A peer that answers with more than was offered */
static void
test_answers_more(void **state)
{
	struct ubcm_msg m;
	uint8_t bytes[UBCM_MSG_MAX];

	(void)state;
	for (uint32_t kind = 0; kind < 4; kind++) {
		rig_open(&r, 10, 2, 4);
		rig_import(&r, 0);
		r.fate = lose;
		r.arg[2] = 0;
		assert_int_equal(ubcm_msg_parse(r.message[0].bytes, r.message[0].len, &m), 0);
		m.type = UBCM_REP;
		memcpy(m.source, r.end[1].eid, 16);
		memcpy(m.destination, r.end[0].eid, 16);
		m.tp[0].limits.window = kind == 0 ? 2048 : 1024;
		m.tp[1].limits.flags |= kind == 1 ? HCA_TP_FLAG_ROL : 0;
		m.timer.ack_every = kind == 2 ? 17 : 16;
		m.tp[2] = m.tp[1];
		m.tp[2].tpn++;
		m.ntps = kind == 3 ? 3 : 2;
		rig_deliver(&r, 0, bytes, ubcm_msg_build(&m, bytes));
		assert_int_equal(r.end[0].why, UBCM_STATUS_BAD_ANSWER);
		assert_int_equal(rig_tps(&r, 0), 0);
		assert_int_equal(ubcm_counters(r.end[0].cm, r.now)->dropped[UBCM_DROP_more], 1);
		/* the REJ reaches the peer after its REQ, which has made a half */
		rig_run(&r, r.now + SECOND);
		assert_int_equal(rig_tps(&r, 1), 0);
		rig_close(&r);
	}
}

/* The driver has no room for TPs, at either end. */
static void
test_create_fails(void **state)
{
	(void)state;
	for (uint32_t end = 0; end < 2; end++) {
		rig_open(&r, 11, 4, 4);
		r.end[end].fail_create = -ENOMEM;
		rig_import(&r, 0);
		rig_run(&r, r.now + SECOND);
		assert_int_equal(rig_tps(&r, 0) + rig_tps(&r, 1), 0);
		assert_int_equal(r.end[0].down, 1);
		assert_int_equal(r.end[0].why, UBCM_STATUS_NO_RESOURCES);
		rig_import(&r, 0);
		rig_run(&r, r.now + SECOND);
		rig_agree(&r, 4);
		rig_close(&r);
	}
}

/* ---- TPNs ---- */

static void
test_no_links(void **state)
{
	uint32_t handle;
	uint8_t other[16] = {1};

	(void)state;
	rig_open(&r, 13, 4, 1);
	rig_import(&r, 0);
	rig_import(&r, 0);
	assert_int_equal(ubcm_import(r.end[0].cm, r.end[0].eid, other, r.now, &handle), -ENOMEM);
	rig_run(&r, r.now + SECOND);
	rig_agree(&r, 4);
	rig_close(&r);
}

/* The peer has no TPN: it says so. */
static void
test_peer_is_full(void **state)
{
	struct ubcm_config cfg;
	uint32_t handle;

	(void)state;
	rig_open(&r, 14, 4, 4);
	cfg = rig_config(&r, 1, 4, 4);
	cfg.log_tps = 1;
	reopen(cfg);
	assert_int_equal(ubcm_import(r.end[1].cm, r.end[1].eid, r.end[1].eid, r.now, &handle), 0);
	r.nmessages = 0;
	rig_import(&r, 0);
	rig_run(&r, r.now + 10 * RIG_DELAY);
	assert_int_equal(r.end[0].why, UBCM_STATUS_NO_RESOURCES);
	rig_close(&r);
}

/* ---- ends ---- */

static void
test_idle(void **state)
{
	uint32_t handle = open_link(4);
	uint64_t left = r.now;

	(void)state;
	assert_int_equal(ubcm_unimport(r.end[0].cm, handle, r.now), 0);
	r.end[1].cm->link[0].deadline = UBCM_NEVER; /* only end 0 asks */
	rig_run(&r, left + UBCM_IDLE - 1);
	assert_int_equal(r.sent, 0);
	rig_run(&r, r.now + 1 + 3 * RIG_DELAY);
	ASSERT_LOG(UBCM_DISC, B | UBCM_DISC_REP);
	assert_int_equal(rig_first(&r, 0)->state, HCA_TPS_DRAIN);
	assert_int_equal(rig_first(&r, 1)->state, HCA_TPS_DRAIN);
	rig_run(&r, r.now + UBCM_FIRST_WAIT);
	assert_int_equal(rig_tps(&r, 0) + rig_tps(&r, 1), 0);
	assert_int_equal(r.end[0].acts[UBCM_FAIL] + r.end[1].acts[UBCM_FAIL], 0);
	assert_int_equal(r.end[0].down, 0);
	rig_close(&r);
}

/* Imported again in time, or used by the peer: it stays. */
static void
test_not_idle(void **state)
{
	uint32_t handle = open_link(4);

	(void)state;
	ubcm_unimport(r.end[0].cm, handle, r.now);
	rig_run(&r, r.now + UBCM_IDLE / 2);
	assert_int_equal(rig_import(&r, 0), handle);
	rig_run(&r, r.now + 10 * UBCM_IDLE);
	rig_agree(&r, 4);
	/* end 1, without users, has asked each time */
	assert_in_range(ubcm_counters(r.end[1].cm, r.now)->sent[UBCM_DISC], 9, 11);
	assert_int_equal(ubcm_counters(r.end[0].cm, r.now)->sent[UBCM_DISC], 0);
	assert_int_equal(r.end[0].down, 0);
	assert_int_equal(ubcm_counters(r.end[1].cm, r.now)->opened, 1);
	rig_close(&r);
}

/* An import while the peer is asked: if it goes the user gets an event, if not it is up. */
static void
test_import_while_leaving(void **state)
{
	(void)state;
	for (uint32_t used = 0; used < 2; used++) {
		uint32_t handle = open_link(4);

		if (used)
			rig_import(&r, 1);
		else
			r.end[1].cm->link[0].deadline = UBCM_NEVER;
		ubcm_unimport(r.end[0].cm, handle, r.now);
		rig_run(&r, r.now + UBCM_IDLE);
		r.end[0].up = 0;
		assert_int_equal(rig_import(&r, 0), handle);
		assert_false(ubcm_is_up(r.end[0].cm, handle));
		rig_run(&r, r.now + 2 * RIG_DELAY);
		assert_int_equal(r.end[0].up, used);
		assert_int_equal(r.end[0].down, !used);
		if (!used)
			rig_import(&r, 0);
		rig_run(&r, r.now + SECOND);
		rig_agree(&r, 4);
		rig_close(&r);
	}
}

static void
test_disc_lossy(void **state)
{
	(void)state;
	for (uint32_t from = 0; from < 2; from++)
		for (uint32_t n = 1; n <= UBCM_REPEATS; n++) {
			uint32_t handle = open_link(4);

			r.end[1].cm->link[0].deadline = UBCM_NEVER;
			r.fate = lose;
			r.arg[0] = from;
			r.arg[1] = r.count[from] + 1;
			r.arg[2] = n;
			ubcm_unimport(r.end[0].cm, handle, r.now);
			rig_run(&r, r.now + UBCM_IDLE + GIVE_UP);
			assert_int_equal(rig_tps(&r, 0) + rig_tps(&r, 1), 0);
			assert_int_equal(ubcm_counters(r.end[0].cm, r.now)->repeated, n);
			rig_close(&r);
		}
}

/* All is drained before the time is over. */
static void
test_drained(void **state)
{
	uint32_t handle = open_link(2);

	(void)state;
	r.end[1].cm->link[0].deadline = UBCM_NEVER;
	ubcm_unimport(r.end[0].cm, handle, r.now);
	rig_run(&r, r.now + UBCM_IDLE + 3 * RIG_DELAY);
	ubcm_event(r.end[0].cm, r.end[0].tp[1].tp.tpn, UBCM_DRAINED, r.now);
	ubcm_event(r.end[0].cm, r.end[0].tp[1].tp.tpn, UBCM_DRAINED, r.now);
	assert_int_equal(rig_tps(&r, 0), 2);
	ubcm_event(r.end[0].cm, r.end[0].tp[2].tp.tpn, UBCM_DRAINED, r.now);
	assert_int_equal(rig_tps(&r, 0), 0);
	rig_close(&r);
}

/* One dead TP of a group is left out by the device; with the last one the link ends. */
static void
test_dead(void **state)
{
	uint32_t handle = open_link(2);

	(void)state;
	rig_import(&r, 1);
	ubcm_event(r.end[0].cm, r.end[0].tp[2].tp.tpn, UBCM_DEAD, r.now);
	assert_int_equal(rig_tps(&r, 0), 0);
	assert_int_equal(r.end[0].why, UBCM_STATUS_DEAD);
	assert_int_equal(ubcm_unimport(r.end[0].cm, handle, r.now), -ENOENT);
	/* the peer, if it lives, is told */
	rig_run(&r, r.now + 2 * RIG_DELAY);
	assert_int_equal(rig_tps(&r, 1), 0);
	assert_int_equal(r.end[1].down, 1);
	/* and the next import makes new ones */
	rig_import(&r, 0);
	rig_run(&r, r.now + SECOND);
	rig_agree(&r, 2);
	rig_close(&r);
}

/* A peer that has died without a word, and comes back */
static void
test_restarted(void **state)
{
	uint32_t handle = open_link(4);
	struct ubcm_config cfg = rig_config(&r, 0, 4, 4);

	(void)state;
	(void)handle;
	rig_import(&r, 1);
	free(r.end[0].cm);
	r.end[0].cm = ubcm_init(malloc(ubcm_bytes(&cfg)), &cfg);
	memset(r.end[0].tp, 0, sizeof(r.end[0].tp));
	rig_import(&r, 0);
	rig_run(&r, r.now + 2 * RIG_DELAY);
	assert_int_equal(r.end[1].down, 0); /* a REQ alone proves nothing */
	rig_run(&r, r.now + SECOND);
	assert_int_equal(r.end[1].why, UBCM_STATUS_RESTARTED);
	rig_agree(&r, 4);
	rig_close(&r);
}

static void
test_end_tells(void **state)
{
	(void)state;
	open_link(4);
	rig_import(&r, 1);
	ubcm_end(r.end[0].cm, r.now);
	rig_run(&r, r.now + 2 * RIG_DELAY);
	assert_int_equal(r.end[1].why, UBCM_STATUS_CLOSING);
	assert_int_equal(rig_tps(&r, 1), 0);
	rig_close(&r);
}

/* DISC of a link that is gone is answered, so that the peer need not wait. */
static void
test_disc_of_nothing(void **state)
{
	uint32_t handle = open_link(4);

	(void)state;
	free(r.end[1].cm);
	reopen((r.end[1].cm = NULL, rig_config(&r, 1, 4, 4)));
	memset(r.end[1].tp, 0, sizeof(r.end[1].tp));
	ubcm_unimport(r.end[0].cm, handle, r.now);
	rig_run(&r, r.now + UBCM_IDLE + SECOND);
	ASSERT_LOG(UBCM_DISC, B | UBCM_DISC_REP);
	assert_int_equal(rig_tps(&r, 0), 0);
	rig_close(&r);
}

static void
test_configuration(void **state)
{
	struct ubcm_config good, bad;

	(void)state;
	rig_open(&r, 15, 4, 4);
	good = rig_config(&r, 0, 4, 4);
	assert_int_not_equal(ubcm_bytes(&good), 0);
#define BAD(member, value) \
	bad = good; \
	bad.member = (value); \
	assert_int_equal(ubcm_bytes(&bad), 0)
	BAD(tps, 0);
	BAD(tps, UBCM_MSG_TPS + 1);
	BAD(log_tps, 0);
	BAD(log_tps, HCA_TP_MAX_LOG + 1);
	BAD(max_links, 0);
	BAD(max_links, UBCM_LINKS_MAX + 1);
	rig_close(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_handshake),
		cmocka_unit_test(test_passive_waits),
		cmocka_unit_test(test_repeated),
		cmocka_unit_test(test_no_answer),
		cmocka_unit_test(test_no_rtu),
		cmocka_unit_test(test_packet_confirms),
		cmocka_unit_test(test_duplicates),
		cmocka_unit_test(test_both_ask),
		cmocka_unit_test(test_both_ask_lossy),
		cmocka_unit_test(test_both_ask_repeated),
		cmocka_unit_test(test_joined),
		cmocka_unit_test(test_joined_in_vain),
		cmocka_unit_test(test_unimport_while_asking),
		cmocka_unit_test(test_itself),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_answers_more),
		cmocka_unit_test(test_create_fails),
		cmocka_unit_test(test_no_links),
		cmocka_unit_test(test_peer_is_full),
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_not_idle),
		cmocka_unit_test(test_import_while_leaving),
		cmocka_unit_test(test_disc_lossy),
		cmocka_unit_test(test_drained),
		cmocka_unit_test(test_dead),
		cmocka_unit_test(test_restarted),
		cmocka_unit_test(test_end_tells),
		cmocka_unit_test(test_disc_of_nothing),
		cmocka_unit_test(test_configuration),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
