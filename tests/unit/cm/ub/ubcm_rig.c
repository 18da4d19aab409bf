/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <string.h>

#include "ubcm_rig.h"

#define LOG_TPS 6u

static struct rig *rig; /* of the functions below, which get only their end */

uint32_t
rig_random(struct rig *r, uint32_t below)
{
	r->random = r->random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((r->random >> 33) % below);
}

/* ---- the driver ---- */

static struct rig_tp *
find_tp(struct rig_end *e, uint32_t tpn)
{
	for (uint32_t i = 0; i < RIG_TPS; i++)
		if (e->tp[i].state != HCA_TPS_RESET && e->tp[i].tp.tpn == tpn)
			return &e->tp[i];
	return NULL;
}

static void
make_tp(struct rig_end *e, const struct ubcm_action *a, const struct ubcm_tp *tp)
{
	struct rig_tp *place = &e->tp[tp->tpn & (RIG_TPS - 1)];

	assert_int_equal(place->state, HCA_TPS_RESET);
	assert_true(tp->tpn != 0 && tp->peer_tpn != 0);
	assert_true((tp->tpn & (RIG_TPS - 1)) != HCA_TP_UNRELIABLE);
	assert_true(a->state == HCA_TPS_PASSIVE || a->state == HCA_TPS_ACTIVE);
	*place = (struct rig_tp){.state = a->state, .link = a->link, .tp = *tp};
}

/* Orders that leave a TP in ERROR as it is */
static bool
stays(const struct rig_tp *tp, enum hca_tp_state to)
{
	return tp->state == HCA_TPS_ERROR && (to == HCA_TPS_ACTIVE || to == HCA_TPS_DRAIN);
}

static void
move_tp(struct rig_end *e, const struct ubcm_tp *tp, enum hca_tp_state to)
{
	struct rig_tp *place = find_tp(e, tp->tpn);

	assert_non_null(place);
	if (stays(place, to))
		return;
	if (to == HCA_TPS_ACTIVE || to == HCA_TPS_DRAIN)
		assert_true(place->state == HCA_TPS_PASSIVE || place->state == HCA_TPS_ACTIVE);
	if (to == HCA_TPS_RESET)
		assert_true(place->state == HCA_TPS_DRAIN || place->state == HCA_TPS_ERROR);
	place->state = to;
}

static int
act(void *arg, const struct ubcm_action *a)
{
	static const enum hca_tp_state to[] = {
		[UBCM_ACTIVATE] = HCA_TPS_ACTIVE,
		[UBCM_DRAIN] = HCA_TPS_DRAIN,
		[UBCM_FAIL] = HCA_TPS_ERROR,
		[UBCM_DESTROY] = HCA_TPS_RESET,
	};
	struct rig_end *e = arg;
	int err = e->fail_create;

	e->acts[a->type]++;
	e->up += a->type == UBCM_UP;
	e->down += a->type == UBCM_DOWN;
	if (a->type == UBCM_DOWN)
		e->why = a->status;
	if (a->type == UBCM_JOIN && rig->joined != NULL)
		rig->joined(rig, (uint32_t)(e - rig->end), a->from, a->link);
	if (a->type == UBCM_UP || a->type == UBCM_DOWN || a->type == UBCM_JOIN)
		return 0;
	if (a->type == UBCM_CREATE && err != 0) {
		e->fail_create = 0;
		return err;
	}
	assert_true(a->ntps >= 1 && a->ntps <= UBCM_MSG_TPS);
	for (uint32_t i = 0; i < a->ntps; i++)
		if (a->type == UBCM_CREATE)
			make_tp(e, a, &a->tp[i]);
		else
			move_tp(e, &a->tp[i], to[a->type]);
	return 0;
}

static uint64_t
traffic(void *arg, const struct ubcm_tp *tp, uint32_t ntps)
{
	struct rig_end *e = arg;
	uint64_t n = 0;

	e->looks++;
	for (uint32_t i = 0; i < ntps; i++) {
		assert_non_null(find_tp(e, tp[i].tpn));
		n += find_tp(e, tp[i].tpn)->packets;
	}
	return n;
}

static uint64_t
draw(void *arg)
{
	(void)arg;
	return (uint64_t)rig_random(rig, 1u << 30) << 34 ^
	       (uint64_t)rig_random(rig, 1u << 30) << 8 ^ rig_random(rig, 256);
}

/* ---- the network ---- */

void
rig_put(struct rig *r, uint32_t from, const uint8_t *bytes, size_t len, uint64_t delay)
{
	struct rig_message *m = &r->message[r->nmessages++];

	assert_true(r->nmessages < RIG_MESSAGES && len <= UBCM_MSG_MAX);
	m->at = r->now + delay;
	m->from = from;
	m->len = len;
	memcpy(m->bytes, bytes, len);
}

static void
send_message(void *arg, const uint8_t *own, const uint8_t *peer, const uint8_t *bytes, size_t len)
{
	const struct rig_end *e = arg;
	uint32_t from = (uint32_t)(e - rig->end);

	assert_memory_equal(own, e->eid, 16);
	if (rig->sent < RIG_LOG)
		rig->log[rig->sent++] = (uint8_t)(bytes[1] | (from != 0 ? 0x80 : 0));
	rig->count[from]++;
	if (rig->fate == NULL && memcmp(own, peer, 16) != 0)
		assert_memory_equal(peer, rig->end[1 - from].eid, 16);
	if (rig->fate != NULL)
		rig->fate(rig, from, rig->count[from], bytes, len);
	else
		rig_put(rig, from, bytes, len, RIG_DELAY);
}

void
rig_deliver(struct rig *r, uint32_t to, const uint8_t *bytes, size_t len)
{
	ubcm_input(r->end[to].cm, r->end[to].eid, r->end[1 - to].eid, bytes, len, r->now);
}

static struct rig_message *
next_message(struct rig *r)
{
	struct rig_message *next = NULL;

	for (uint32_t i = 0; i < r->nmessages; i++)
		if (next == NULL || r->message[i].at < next->at)
			next = &r->message[i];
	return next;
}

static void
arrive(struct rig *r, struct rig_message *m)
{
	struct rig_message copy = *m;
	bool self = memcmp(copy.bytes + 20, copy.bytes + 36, 16) == 0;
	uint32_t to = self ? copy.from : 1 - copy.from;

	*m = r->message[--r->nmessages];
	ubcm_input(r->end[to].cm, r->end[to].eid, r->end[self ? to : copy.from].eid, copy.bytes,
		   copy.len, r->now);
}

void
rig_run(struct rig *r, uint64_t until)
{
	for (;;) {
		struct rig_message *m = next_message(r);
		uint64_t at = m != NULL ? m->at : UBCM_NEVER;
		uint32_t due = RIG_ENDS;

		for (uint32_t e = 0; e < RIG_ENDS; e++)
			if (ubcm_deadline(r->end[e].cm) < at) {
				at = ubcm_deadline(r->end[e].cm);
				due = e;
			}
		if (at > until)
			break;
		r->now = at;
		if (due != RIG_ENDS)
			ubcm_tick(r->end[due].cm, r->now);
		else
			arrive(r, m);
	}
	r->now = until;
}

/* ---- begin and end ---- */

static const struct ubcm_ops ops = {
	.send = send_message,
	.act = act,
	.random = draw,
	.traffic = traffic,
};

struct ubcm_config
rig_config(struct rig *r, uint32_t end, uint32_t tps, uint32_t links)
{
	return (struct ubcm_config){
		.ops = &ops,
		.arg = &r->end[end],
		.limits = {.window = 1024,
			   .sack = 1024,
			   .mtu = 4096,
			   .requests = 1024,
			   .mode = HCA_TP_MODE_SACK,
			   .flags = HCA_TP_FLAG_TAID | HCA_TP_FLAG_OFST},
		.timer = {.rto_exponent = 1, .retries = 7, .ack_every = 16, .ooo_every = 1},
		.tps = tps,
		.log_tps = LOG_TPS,
		.max_links = links,
	};
}

void
rig_open(struct rig *r, uint64_t seed, uint32_t tps, uint32_t links)
{
	memset(r, 0, sizeof(*r));
	rig = r;
	r->random = seed;
	r->now = UBCM_MS;
	for (uint32_t e = 0; e < RIG_ENDS; e++) {
		struct ubcm_config cfg = rig_config(r, e, tps, links);
		void *mem = malloc(ubcm_bytes(&cfg));

		assert_non_null(mem);
		memset(r->end[e].eid, 0, 16);
		memcpy(r->end[e].eid + 10, "\xff\xff\xc0\xa8\x00", 5);
		r->end[e].eid[15] = (uint8_t)(e + 1);
		r->end[e].cm = ubcm_init(mem, &cfg);
	}
}

void
rig_close(struct rig *r)
{
	for (uint32_t e = 0; e < RIG_ENDS; e++) {
		ubcm_end(r->end[e].cm, r->now);
		assert_int_equal(rig_tps(r, e), 0);
		assert_int_equal(ubcm_counters(r->end[e].cm, r->now)->begun,
				 ubcm_counters(r->end[e].cm, r->now)->ended);
		free(r->end[e].cm);
	}
}

uint32_t
rig_import(struct rig *r, uint32_t end)
{
	uint32_t handle = 0;

	assert_int_equal(ubcm_import(r->end[end].cm, r->end[end].eid, r->end[1 - end].eid, r->now,
				     &handle),
			 0);
	return handle;
}

/* ---- invariants ---- */

uint32_t
rig_tps(const struct rig *r, uint32_t end)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < RIG_TPS; i++)
		n += r->end[end].tp[i].state != HCA_TPS_RESET;
	return n;
}

struct rig_tp *
rig_first(struct rig *r, uint32_t end)
{
	for (uint32_t i = 0; i < RIG_TPS; i++)
		if (r->end[end].tp[i].state != HCA_TPS_RESET)
			return &r->end[end].tp[i];
	return NULL;
}

void
rig_agree(struct rig *r, uint32_t n)
{
	assert_int_equal(rig_tps(r, 0), n);
	assert_int_equal(rig_tps(r, 1), n);
	for (uint32_t i = 0; i < RIG_TPS; i++) {
		const struct rig_tp *ours = &r->end[0].tp[i], *theirs;

		if (ours->state == HCA_TPS_RESET)
			continue;
		theirs = find_tp(&r->end[1], ours->tp.peer_tpn);
		assert_non_null(theirs);
		assert_int_equal(ours->state, HCA_TPS_ACTIVE);
		assert_int_equal(theirs->state, HCA_TPS_ACTIVE);
		assert_int_equal(theirs->tp.peer_tpn, ours->tp.tpn);
		assert_int_equal(theirs->tp.psn, ours->tp.epsn);
		assert_int_equal(theirs->tp.epsn, ours->tp.psn);
		assert_true(ubcm_limits_equal(&theirs->tp.limits, &ours->tp.limits));
	}
}

uint64_t
rig_dropped(const struct rig *r, uint32_t end)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < UBCM_DROPS; i++)
		n += ubcm_counters(r->end[end].cm, r->now)->dropped[i];
	return n;
}

static void
links_as_driver(const struct rig_end *e)
{
	uint32_t used[CM_SHARE_KINDS] = {0}, all = 0;

	for (uint32_t i = 0; i < e->cm->nlinks; i++) {
		const struct ubcm_link *l = &e->cm->link[i];

		all += l->state != LINK_FREE ? l->ntps : 0;
		if (l->state == LINK_ANSWERED)
			used[CM_SHARE_half] += l->ntps;
		else if (l->created && !l->active)
			used[CM_SHARE_open] += l->ntps;
		for (uint32_t t = 0; l->created && t < l->ntps; t++)
			assert_non_null(find_tp((struct rig_end *)(uintptr_t)e, l->tp[t].tpn));
	}
	assert_memory_equal(used, e->cm->share.used, sizeof(used));
	assert_int_equal(all, e->cm->used);
}

void
rig_sums(const struct rig *r)
{
	for (uint32_t e = 0; e < RIG_ENDS; e++) {
		const struct ubcm_counters *c = ubcm_counters(r->end[e].cm, r->now);
		uint64_t handled = 0;

		for (uint32_t i = 0; i < UBCM_TYPES; i++)
			handled += c->handled[i];
		assert_int_equal(c->received, handled + rig_dropped(r, e));
		links_as_driver(&r->end[e]);
	}
}
