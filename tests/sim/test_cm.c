/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Connection management on a bad network: programs at both ends connect, ask for the QPs of
 * datagrams, accept, refuse, disconnect and vanish at random moments, while MADs are lost, copied
 * and reordered. When all is quiet each connection is established at both ends or at none, each
 * question has an error or a QP and Q_Key that the server gave for it, and when the programs have
 * gone nothing is left. SIM_SEED=N runs one seed, SIM_RUNS=N so many.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../unit/cm/ib/cm_rig.h"

#define CLIENT 5u
#define SERVER 6u
#define PORT 4791u
#define ATTEMPTS 12u
#define CHILDREN 64u /* a question whose first answers were late or lost begins others */
#define LIVELY (20 * RIG_SECOND)
#define QUIET (900 * RIG_SECOND)

/* Result of an attempt for its program */
struct half {
	uint32_t id; /* 0: destroyed */
	bool up, failed;
	uint32_t qpn, qkey; /* of datagrams: given or got */
};

struct attempt {
	uint32_t end; /* of the client */
	bool datagrams;
	struct half client;
	struct half child[CHILDREN]; /* a REQ that comes after its REJ begins another one */
	uint32_t children;
};

static struct rig r;
static struct attempt attempt[ATTEMPTS];
static uint32_t attempts;
static bool wild;		      /* programs also vanish, refuse and disconnect */
static uint64_t at;		      /* the seed */
static uint64_t hash;		      /* of all MADs and when they left */
static uint32_t established, refused; /* of all runs */
static uint32_t answers, unanswered;  /* of datagrams */

static void
hash_word(uint64_t word)
{
	hash = (hash ^ word) * UINT64_C(0x100000001b3);
}

static void
bad_network(struct rig *s, const struct rig_message *m)
{
	hash_word(s->now);
	for (uint32_t i = 0; i < IBCM_MAD_BYTES; i += 8)
		hash_word(hca_get_be64(m->mad + i));
	rig_bad(s, m);
}

static bool
chance(uint32_t per_cent)
{
	return rig_random(&r, 100) < per_cent;
}

/* ---- the programs ---- */

static struct half *
half_of(uint32_t end, uint32_t owner, uint32_t id)
{
	for (uint32_t i = 0; i < attempts; i++) {
		struct attempt *a = &attempt[i];

		if (owner == CLIENT && a->end == end && a->client.id == id)
			return &a->client;
		for (uint32_t c = 0; owner == SERVER && a->end != end && c < a->children; c++)
			if (a->child[c].id == id)
				return &a->child[c];
	}
	fail_msg("seed %ju: event of id %#x, which nothing has", (uintmax_t)at, id);
	return NULL;
}

static void
destroy(uint32_t end, uint32_t owner, struct half *h)
{
	if (h->id == 0)
		return;
	assert_int_equal(rig_destroy(&r, end, owner, h->id), 0);
	h->id = 0;
}

static void
begin_attempt(void)
{
	struct attempt *a = &attempt[attempts];
	uint32_t end = rig_random(&r, RIG_ENDS), family = rig_random(&r, RIG_GIDS);

	*a = (struct attempt){.end = end, .datagrams = chance(30)};
	a->client.id = rig_create(&r, end, CLIENT, 1,
				  a->datagrams ? HCA_CTL_CM_SPACE_UDP : HCA_CTL_CM_SPACE_TCP);
	assert_int_not_equal(a->client.id, 0);
	assert_int_equal(rig_resolve(&r, end, CLIENT, a->client.id, r.gid[1 - end][family], PORT),
			 0);
	attempts++;
}

static void
route(uint32_t end, uint32_t id)
{
	struct hca_ctl_cm_route request = {.id = id, .timeout_ms = 1000};
	struct hca_ctl_none none;

	assert_int_equal(rig_call(&r, end, CLIENT, HCA_CTL_CM_ROUTE, &request, &none), 0);
}

static uint32_t
number_of(const struct half *h)
{
	for (uint32_t i = 0; i < attempts; i++)
		if (&attempt[i].client == h)
			return i;
	fail_msg("not a client");
	return 0;
}

static void
accept_request(uint32_t end, const struct attempt *a, struct half *h)
{
	struct hca_ctl_cm_param param = rig_param(h->id, 0x20000 + h->id % 0x10000, NULL);
	struct hca_ctl_none none;

	if (a->datagrams) {
		h->qpn = param.qpn;
		h->qkey = param.qkey = 1 + rig_random(&r, 0x7fffffff);
	}
	assert_int_equal(rig_call(&r, end, SERVER, HCA_CTL_CM_ACCEPT, &param, &none), 0);
}

static void
requested(uint32_t end, const struct hca_ctl_cm_event *e)
{
	struct attempt *a = &attempt[(uint32_t)atoi((const char *)e->param.private)];
	struct half *h = &a->child[a->children];

	assert_true(a->end != end && a->children < CHILDREN);
	*h = (struct half){.id = e->id};
	a->children++;
	if (wild && chance(15)) {
		assert_int_equal(rig_reject(&r, end, SERVER, h->id, "no"), 0);
		h->failed = true;
	} else if (wild && chance(10)) {
		destroy(end, SERVER, h);
	} else {
		accept_request(end, a, h);
	}
}

static void
answered(uint32_t end, struct half *h)
{
	int err;

	if (wild && chance(10)) {
		(void)rig_reject(&r, end, CLIENT, h->id, "no");
		h->failed = true;
		return;
	}
	/* the peer may have ended it since */
	err = rig_establish(&r, end, CLIENT, h->id);
	assert_true(err == 0 || err == -EINVAL);
	h->up = err == 0;
}

static void
handle(uint32_t end, uint32_t owner, const struct hca_ctl_cm_event *e)
{
	struct half *h;
	char text[16];

	if (e->type == HCA_CTL_CM_EV_CONNECT_REQUEST) {
		requested(end, e);
		return;
	}
	h = half_of(end, owner, e->id);
	switch (e->type) {
	case HCA_CTL_CM_EV_ADDR_RESOLVED:
		route(end, h->id);
		break;
	case HCA_CTL_CM_EV_ROUTE_RESOLVED:
		snprintf(text, sizeof(text), "%u", number_of(h));
		assert_int_equal(rig_connect(&r, end, owner, h->id, 0x10000 + number_of(h), text),
				 0);
		break;
	case HCA_CTL_CM_EV_CONNECT_RESPONSE:
		answered(end, h);
		break;
	case HCA_CTL_CM_EV_ESTABLISHED:
		assert_false(h->up || h->failed);
		h->up = true;
		h->qpn = e->param.qpn;
		h->qkey = e->param.qkey;
		break;
	case HCA_CTL_CM_EV_TIMEWAIT_EXIT:
		break;
	default:
		h->failed = true;
		if (chance(50))
			destroy(end, owner, h);
	}
}

static void
poll_events(uint32_t end, uint32_t owner)
{
	struct hca_ctl_cm_event e;

	if (rig_event(&r, end, owner, owner == CLIENT ? 1 : 2, &e))
		handle(end, owner, &e);
}

static void
mischief(void)
{
	struct attempt *a = &attempt[rig_random(&r, attempts)];
	bool client = chance(50);
	uint32_t end = client ? a->end : 1 - a->end, owner = client ? CLIENT : SERVER;
	struct half *h = client ? &a->client : a->children == 0 ? NULL : &a->child[0];

	if (h == NULL || h->id == 0)
		return;
	if (chance(40))
		destroy(end, owner, h);
	else if (h->up || chance(20))
		(void)rig_disconnect(&r, end, owner, h->id);
}

static void
turn(bool lively)
{
	for (uint32_t end = 0; end < RIG_ENDS; end++) {
		poll_events(end, CLIENT);
		poll_events(end, SERVER);
	}
	if (lively && attempts < ATTEMPTS && chance(50))
		begin_attempt();
	if (lively && wild && attempts > 0 && chance(20))
		mischief();
}

/* Programs have their turns at random, slow ones so seldom that MRAs are needed. */
static void
live(uint64_t for_ns, bool lively, uint32_t pace_ms)
{
	uint64_t until = r.now + for_ns;

	while (r.now < until) {
		rig_run(&r, (1 + (uint64_t)rig_random(&r, pace_ms)) * RIG_MS);
		turn(lively);
	}
}

/* ---- judgement ---- */

static bool
is_live(uint32_t end, uint32_t owner, const struct half *h)
{
	uint32_t state;

	if (h->id == 0)
		return false;
	state = rig_state(&r, end, owner, h->id);
	if (state != HCA_CTL_CM_ESTABLISHED && state != HCA_CTL_CM_ENDED)
		fail_msg("seed %ju: an id rests in state %u", (uintmax_t)at, state);
	return state == HCA_CTL_CM_ESTABLISHED;
}

/* The client got the server's answer to one of its repetitions. */
static bool
was_given(const struct attempt *a)
{
	for (uint32_t i = 0; i < a->children; i++)
		if (a->child[i].qkey != 0 && a->child[i].qkey == a->client.qkey &&
		    a->child[i].qpn == a->client.qpn)
			return true;
	return false;
}

static void
judge_datagrams(const struct attempt *a)
{
	uint32_t number = (uint32_t)(a - attempt);
	bool client = is_live(a->end, CLIENT, &a->client);

	for (uint32_t i = 0; i < a->children; i++)
		(void)is_live(1 - a->end, SERVER, &a->child[i]);
	if (a->client.up && !was_given(a))
		fail_msg("seed %ju: question %u: QP %#x, Q_Key %#x were not given", (uintmax_t)at,
			 number, a->client.qpn, a->client.qkey);
	if (a->client.id != 0 && (a->client.up == a->client.failed || client != a->client.up))
		fail_msg("seed %ju: question %u: %s answer, %s error, %s established",
			 (uintmax_t)at, number, a->client.up ? "an" : "no",
			 a->client.failed ? "an" : "no", client ? "is" : "is not");
	answers += a->client.up;
	unanswered += !a->client.up;
}

static void
judge(const struct attempt *a)
{
	bool client = is_live(a->end, CLIENT, &a->client), server = false;

	for (uint32_t i = 0; i < a->children; i++)
		server = is_live(1 - a->end, SERVER, &a->child[i]) || server;
	if (client != server)
		fail_msg("seed %ju: attempt %u: the client is %s, the server is %s", (uintmax_t)at,
			 (uint32_t)(a - attempt), client ? "established" : "not",
			 server ? "established" : "not");
	/* a connection that is not established has failed at the program */
	if (a->client.id != 0 && !client && !a->client.failed)
		fail_msg("seed %ju: attempt %u: no error at the client", (uintmax_t)at,
			 (uint32_t)(a - attempt));
	established += client;
	refused += !client;
}

static void
nothing_left(void)
{
	static const char *const gauges[] = {"cm_now_ids",   "cm_now_orphans",	   "cm_now_halves",
					     "cm_now_ports", "cm_now_connections", NULL};
	struct ibcm_entry entry;

	for (uint32_t end = 0; end < RIG_ENDS; end++) {
		for (uint32_t i = 0; gauges[i] != NULL; i++)
			if (rig_counter(&r, end, gauges[i]) != 0)
				fail_msg("seed %ju: %s is left", (uintmax_t)at, gauges[i]);
		assert_int_equal(ibcm_list(r.cm[end], 0, &entry, 1), 0);
		assert_true(ibcm_deadline(r.cm[end]) == IBCM_NEVER);
	}
}

static uint64_t
run(uint64_t seed)
{
	at = seed;
	rig_begin(&r, seed, NULL);
	hash = UINT64_C(0xcbf29ce484222325);
	attempts = 0;
	wild = seed % 4 != 0;
	r.loss = rig_random(&r, 31);
	r.copies = rig_random(&r, 31);
	r.latest = (1 + rig_random(&r, 1000)) * RIG_MS;
	r.fate = bad_network;
	for (uint32_t end = 0; end < RIG_ENDS; end++) {
		(void)rig_listener(&r, end, SERVER, 2, HCA_CTL_CM_SPACE_TCP, PORT);
		(void)rig_listener(&r, end, SERVER, 2, HCA_CTL_CM_SPACE_UDP, PORT);
	}
	live(LIVELY, true, chance(25) ? 8000 : 200);
	live(QUIET, false, 4000);
	for (uint32_t i = 0; i < attempts; i++)
		(attempt[i].datagrams ? judge_datagrams : judge)(&attempt[i]);
	for (uint32_t end = 0; end < RIG_ENDS; end++) {
		ibcm_forget(r.cm[end], CLIENT, r.now);
		ibcm_forget(r.cm[end], SERVER, r.now);
	}
	rig_run(&r, QUIET);
	nothing_left();
	rig_end(&r);
	return hash;
}

static uint64_t
number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text == NULL ? otherwise : strtoull(text, NULL, 0);
}

static void
test_random(void **state)
{
	uint64_t seed = number("SIM_SEED", 0), runs = number("SIM_RUNS", 300);

	if (seed != 0) {
		(void)run(seed);
		return;
	}
	for (seed = 1; seed <= runs; seed++)
		(void)run(seed);
	print_message("%ju runs: %u connections established at both ends, %u at none; of datagrams "
		      "%u questions answered, %u not\n",
		      (uintmax_t)runs, established, refused, answers, unanswered);
	assert_true(established > runs && refused > runs && answers > runs && unanswered > 0);
}

static void
test_repeats(void **state)
{
	for (uint64_t seed = 1000; seed < 1010; seed++) {
		uint64_t first = run(seed);

		assert_true(run(seed) == first);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_repeats),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
