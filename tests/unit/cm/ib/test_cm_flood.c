/* SPDX-License-Identifier: BSD-3-Clause */

/* Floods: their cost is bounded, and others connect meanwhile. */

#include <errno.h>
#include <string.h>

#include "abi_ctx.h"
#include "cm_rig.h"

#define CLIENT 7u
#define SERVER 9u
#define CH 1u
#define PORT 7174u
#define PENDING 64u
#define OF_ADDRESS 16u
#define BACKLOG 8u
#define FLOOD 20000u
#define DROPPED UINT32_MAX

static struct rig r;

static const struct ibcm_limits limits = {
	.ids = 200,
	.ids_user = 150,
	.ids_client = 100,
	.backlog = 16,
	.pending = PENDING,
	.pending_address = OF_ADDRESS,
	.groups = 4,
};

static void
source(uint8_t gid[16], uint32_t number)
{
	memset(gid, 0, 16);
	gid[10] = gid[11] = 0xff;
	gid[12] = 10;
	gid[13] = (uint8_t)(1 + number / 65536);
	gid[14] = (uint8_t)(number / 256);
	gid[15] = (uint8_t)number;
}

static void
spoofed_to(uint32_t from, uint32_t number, uint32_t space)
{
	struct ib_mad mad = {.type = IB_MAD_REQ, .transaction = number};
	struct ib_mad_req *q = &mad.req;
	struct ib_ip ip = {.src = ib_ip_any(HCA_CTL_CM_IP4), .dst = ib_ip_any(HCA_CTL_CM_IP4)};
	uint8_t gid[16];

	source(gid, from);
	q->local_comm = 1 + number;
	q->service_id = ib_ip_service_id(space, PORT);
	q->ca_guid = 0x7000 + from;
	q->qpn = number & 0xffffff;
	q->remote_timeout = q->local_timeout = 31;
	q->pkey = 0xffff;
	q->mtu = 3;
	q->max_retries = 15;
	memcpy(q->primary_local_gid, gid, 16);
	memcpy(q->primary_remote_gid, r.gid[1][RIG_IP4], 16);
	memcpy(ip.src.gid, gid, 16);
	memcpy(ip.dst.gid, r.gid[1][RIG_IP4], 16);
	ib_ip_build(&ip, q->private);
	rig_inject(&r, 1, gid, &mad);
}

static void
spoofed(uint32_t from, uint32_t number)
{
	spoofed_to(from, number, HCA_CTL_CM_SPACE_TCP);
}

/* The server takes requests up to a number, and accepts them if it does. */
static bool
serve(uint32_t turns, bool accepts, const char *wanted, uint32_t *id)
{
	struct hca_ctl_cm_event e;

	for (uint32_t i = 0; i < turns && rig_event(&r, 1, SERVER, CH, &e); i++) {
		if (e.type != HCA_CTL_CM_EV_CONNECT_REQUEST) {
			(void)rig_destroy(&r, 1, SERVER, e.id);
			continue;
		}
		if (accepts)
			assert_int_equal(rig_accept(&r, 1, SERVER, e.id, 5, NULL), 0);
		if (strcmp((const char *)e.param.private, wanted) == 0) {
			*id = e.id;
			return true;
		}
	}
	return false;
}

/* From one address, or from an address each. */
static void
flood(uint32_t addresses, bool accepts)
{
	uint32_t client, number = 0, id = 0;
	struct hca_ctl_cm_event e;
	bool got = false;

	rig_begin(&r, 3, &limits);
	(void)rig_listener(&r, 1, SERVER, CH, HCA_CTL_CM_SPACE_TCP, PORT);
	client = rig_routed(&r, 0, CLIENT, CH, HCA_CTL_CM_SPACE_TCP, r.gid[1][RIG_IP4], PORT);
	for (; number < FLOOD / 2; number++) {
		spoofed(1000 + number % addresses, number);
		assert_true(rig_counter(&r, 1, "cm_now_halves") <= PENDING);
		assert_true(rig_counter(&r, 1, "cm_now_ids") <= limits.ids_client);
		if (number % 4 == 0)
			(void)serve(1, accepts, "honest", &id);
	}
	assert_int_equal(rig_connect(&r, 0, CLIENT, client, 0x99, "honest"), 0);
	for (; number < FLOOD && !got; number++) {
		rig_run(&r, 10 * RIG_MS);
		for (uint32_t i = 0; i < 4; i++)
			spoofed(1000 + number % addresses, 4 * number + i);
		got = serve(4, accepts, "honest", &id);
	}
	assert_true(got);
	if (!accepts)
		assert_int_equal(rig_accept(&r, 1, SERVER, id, 5, NULL), 0);
	rig_run(&r, 10 * RIG_MS);
	(void)rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_CONNECT_RESPONSE);
	assert_int_equal(rig_establish(&r, 0, CLIENT, client), 0);
	rig_run(&r, 10 * RIG_MS);
	assert_int_equal(rig_state(&r, 1, SERVER, id), HCA_CTL_CM_ESTABLISHED);
	/* an established connection is not evicted */
	for (uint32_t i = 0; i < 1000; i++)
		spoofed(2000 + i, 4 * FLOOD + i);
	assert_int_equal(rig_state(&r, 1, SERVER, id), HCA_CTL_CM_ESTABLISHED);
	assert_false(rig_event(&r, 0, CLIENT, CH, &e));
	ibcm_forget(r.cm[1], SERVER, r.now);
	rig_run(&r, 1000 * RIG_SECOND);
	assert_int_equal(rig_counter(&r, 1, "cm_now_halves"), 0);
	assert_int_equal(rig_counter(&r, 1, "cm_now_connections"), 0);
	assert_int_equal(rig_counter(&r, 1, "cm_now_orphans"), 0);
	rig_end(&r);
}

static void
test_one_address(void **state)
{
	flood(1, false);
}

static void
test_one_address_accepted(void **state)
{
	flood(1, true);
}

static void
test_spoofed(void **state)
{
	flood(60000, false);
}

static void
test_spoofed_accepted(void **state)
{
	flood(60000, true);
}

/* A full backlog: a request of the address with the most is evicted, but not for its own. */
static void
test_backlog(void **state)
{
	struct hca_ctl_cm_event e;
	uint32_t id;

	rig_begin(&r, 1, &limits);
	id = rig_create(&r, 1, SERVER, CH, HCA_CTL_CM_SPACE_TCP);
	assert_int_equal(rig_bind(&r, 1, SERVER, id, RIG_IP4, NULL, PORT, 0), 0);
	assert_int_equal(rig_listen(&r, 1, SERVER, id, BACKLOG), 0);
	for (uint32_t i = 0; i < BACKLOG + 3; i++)
		spoofed(1, i);
	assert_int_equal(rig_counter(&r, 1, "cm_now_halves"), BACKLOG);
	assert_int_equal(rig_counter(&r, 1, "cm_drop_backlog"), 3);
	assert_int_equal(rig_counter(&r, 1, "cm_evicted"), 0);
	spoofed(2, 100);
	assert_int_equal(rig_counter(&r, 1, "cm_now_halves"), BACKLOG);
	assert_int_equal(rig_counter(&r, 1, "cm_evicted"), 1);
	/* the oldest one has gone */
	for (uint32_t i = 1; i < BACKLOG; i++) {
		e = rig_expect(&r, 1, SERVER, CH, HCA_CTL_CM_EV_CONNECT_REQUEST);
		assert_int_equal(e.param.qpn, i);
		assert_int_equal(e.left, BACKLOG - i);
	}
	e = rig_expect(&r, 1, SERVER, CH, HCA_CTL_CM_EV_CONNECT_REQUEST);
	assert_int_equal(e.param.qpn, 100);
	rig_end(&r);
}

/* The program has all of its ids, of which a flood has some: its requests are evicted. */
static void
test_ids_full(void **state)
{
	struct hca_ctl_cm_event e;

	rig_begin(&r, 1, &limits);
	(void)rig_listener(&r, 1, SERVER, CH, HCA_CTL_CM_SPACE_TCP, PORT);
	for (uint32_t i = 0; i < limits.ids_client - 1 - BACKLOG; i++)
		assert_int_not_equal(rig_create(&r, 1, SERVER, CH, HCA_CTL_CM_SPACE_TCP), 0);
	for (uint32_t i = 0; i < 2 * BACKLOG; i++)
		spoofed(1, i);
	assert_int_equal(rig_counter(&r, 1, "cm_refused_limit"), BACKLOG);
	spoofed(2, 100);
	assert_int_equal(rig_counter(&r, 1, "cm_evicted"), 1);
	assert_int_equal(rig_counter(&r, 1, "cm_now_ids"), limits.ids_client);
	for (uint32_t i = 1; i < BACKLOG; i++) {
		e = rig_expect(&r, 1, SERVER, CH, HCA_CTL_CM_EV_CONNECT_REQUEST);
		assert_int_equal(e.param.qpn, i);
	}
	e = rig_expect(&r, 1, SERVER, CH, HCA_CTL_CM_EV_CONNECT_REQUEST);
	assert_int_equal(e.param.qpn, 100);
	rig_end(&r);
}

/* The address with the most requests at the listener loses one, of equal ones the oldest. */
static void
test_victim(void **state)
{
	static const uint32_t from[] = {1, 2, 2, 3, 3, 4, 5, 6};
	/* the new request's address, and the QPN of the request that makes room for it */
	static const uint32_t next[][2] = {{7, 1}, {8, 3}, {9, 0}, {9, DROPPED}, {3, DROPPED}};
	struct hca_ctl_cm_event e;
	uint32_t id, qpn = BACKLOG;
	uint64_t gone = 0;

	rig_begin(&r, 1, &limits);
	id = rig_create(&r, 1, SERVER, CH, HCA_CTL_CM_SPACE_TCP);
	assert_int_equal(rig_bind(&r, 1, SERVER, id, RIG_IP4, NULL, PORT, 0), 0);
	assert_int_equal(rig_listen(&r, 1, SERVER, id, BACKLOG), 0);
	for (uint32_t i = 0; i < BACKLOG; i++)
		spoofed(from[i], i);
	for (uint32_t i = 0; i < 5; i++, qpn++) {
		spoofed(next[i][0], qpn);
		gone |= UINT64_C(1) << (next[i][1] == DROPPED ? qpn : next[i][1]);
	}
	for (uint32_t i = 0; i < qpn; i++) {
		if ((gone >> i & 1) != 0)
			continue;
		e = rig_expect(&r, 1, SERVER, CH, HCA_CTL_CM_EV_CONNECT_REQUEST);
		assert_int_equal(e.param.qpn, i);
	}
	assert_false(rig_event(&r, 1, SERVER, CH, &e));
	rig_end(&r);
}

/* Requests that the program has fetched are also evicted: the program gets an event. */
static void
test_fetched_evicted(void **state)
{
	struct hca_ctl_cm_event e;
	uint32_t first = 0;

	rig_begin(&r, 1, &limits);
	(void)rig_listener(&r, 1, SERVER, CH, HCA_CTL_CM_SPACE_TCP, PORT);
	for (uint32_t i = 0; i < PENDING; i++) {
		spoofed(i / 2, i);
		e = rig_expect(&r, 1, SERVER, CH, HCA_CTL_CM_EV_CONNECT_REQUEST);
		first = i == 0 ? e.id : first;
	}
	spoofed(999, 1000);
	e = rig_expect(&r, 1, SERVER, CH, HCA_CTL_CM_EV_UNREACHABLE);
	assert_int_equal(e.id, first);
	assert_int_equal(e.status, -ECONNABORTED);
	assert_int_equal(rig_accept(&r, 1, SERVER, first, 5, NULL), -EINVAL);
	(void)rig_expect(&r, 1, SERVER, CH, HCA_CTL_CM_EV_CONNECT_REQUEST);
	rig_end(&r);
}

/* Requests of an address at a user's listener that does not answer do not block other users. */
static void
test_other_user(void **state)
{
	uint32_t other;

	rig_begin(&r, 1, &limits);
	(void)rig_listener(&r, 1, SERVER, CH, HCA_CTL_CM_SPACE_TCP, PORT);
	for (uint32_t i = 0; i < 2 * OF_ADDRESS; i++)
		spoofed(1, i);
	assert_int_equal(rig_counter(&r, 1, "cm_now_halves"), OF_ADDRESS);
	other = rig_create(&r, 1, SERVER + 1, CH, HCA_CTL_CM_SPACE_IB);
	assert_int_equal(rig_bind(&r, 1, SERVER + 1, other, RIG_IP4, NULL, PORT, 0), 0);
	assert_int_equal(rig_listen(&r, 1, SERVER + 1, other, BACKLOG), 0);
	spoofed_to(1, 1000, HCA_CTL_CM_SPACE_IB);
	(void)rig_expect(&r, 1, SERVER + 1, CH, HCA_CTL_CM_EV_CONNECT_REQUEST);
	assert_int_equal(rig_counter(&r, 1, "cm_evicted"), 0);
	rig_end(&r);
}

/* An address with all the halves that it may have gets one place at another listener. */
static void
test_one_place(void **state)
{
	struct hca_ctl_cm_event e;
	uint32_t other;

	rig_begin(&r, 1, &limits);
	(void)rig_listener(&r, 1, SERVER, CH, HCA_CTL_CM_SPACE_TCP, PORT);
	other = rig_create(&r, 1, SERVER, CH + 1, HCA_CTL_CM_SPACE_IB);
	assert_int_equal(rig_bind(&r, 1, SERVER, other, RIG_IP4, NULL, PORT, 0), 0);
	assert_int_equal(rig_listen(&r, 1, SERVER, other, BACKLOG), 0);
	for (uint32_t i = 0; i < OF_ADDRESS; i++)
		spoofed(1, i);
	for (uint32_t i = 0; i < BACKLOG; i++)
		spoofed_to(2 + i, 100 + i, HCA_CTL_CM_SPACE_IB);
	for (uint32_t i = 0; i < BACKLOG; i++)
		spoofed_to(1, 200 + i, HCA_CTL_CM_SPACE_IB);
	/* a request of another address, and an own half */
	assert_int_equal(rig_counter(&r, 1, "cm_evicted"), 2);
	assert_int_equal(rig_counter(&r, 1, "cm_drop_backlog"), BACKLOG - 1);
	assert_int_equal(rig_counter(&r, 1, "cm_now_halves"), OF_ADDRESS + BACKLOG - 1);
	for (uint32_t i = 0; i < BACKLOG; i++) {
		e = rig_expect(&r, 1, SERVER, CH + 1, HCA_CTL_CM_EV_CONNECT_REQUEST);
		assert_int_equal(e.param.qpn, i + 1 < BACKLOG ? 101 + i : 200);
	}
	rig_end(&r);
}

/* The server accepts a request of the host, which does not confirm it. Returns its id. */
static uint32_t
accepted(uint32_t qpn)
{
	struct hca_ctl_cm_event e;

	spoofed(1, qpn);
	e = rig_expect(&r, 1, SERVER, CH, HCA_CTL_CM_EV_CONNECT_REQUEST);
	assert_int_equal(e.param.qpn, qpn);
	assert_int_equal(rig_accept(&r, 1, SERVER, e.id, 5, NULL), 0);
	return e.id;
}

/*
 * A host with all the halves that it may have, which it never confirms: of its next request the
 * oldest one is evicted, and its peer gets a REJ.
 */
static void
test_own_oldest(void **state)
{
	struct hca_ctl_cm_event e;
	uint32_t id[OF_ADDRESS];

	rig_begin(&r, 1, &limits);
	(void)rig_listener(&r, 1, SERVER, CH, HCA_CTL_CM_SPACE_TCP, PORT);
	for (uint32_t i = 0; i < OF_ADDRESS; i++)
		id[i] = accepted(i);
	for (uint32_t i = 0; i < 3; i++) {
		spoofed(1, 100 + i);
		assert_int_equal(rig_count(&r, 1, IB_MAD_REJ), i + 1);
		assert_int_equal(rig_last(&r, 1, IB_MAD_REJ)->rej.reason, IB_MAD_REASON_TIMEOUT);
		e = rig_expect(&r, 1, SERVER, CH, HCA_CTL_CM_EV_UNREACHABLE);
		assert_int_equal(e.id, id[i]);
		assert_int_equal(e.status, -ECONNABORTED);
		e = rig_expect(&r, 1, SERVER, CH, HCA_CTL_CM_EV_CONNECT_REQUEST);
		assert_int_equal(e.param.qpn, 100 + i);
	}
	assert_int_equal(rig_counter(&r, 1, "cm_now_halves"), OF_ADDRESS);
	assert_int_equal(rig_counter(&r, 1, "cm_evicted"), 3);
	assert_int_equal(rig_counter(&r, 1, "cm_drop_backlog"), 0);
	rig_end(&r);
}

/* A request that is dropped at the limit of ids ends no half. */
static void
test_refused_first(void **state)
{
	struct hca_ctl_cm_event e;

	rig_begin(&r, 1, &limits);
	(void)rig_listener(&r, 1, SERVER, CH, HCA_CTL_CM_SPACE_TCP, PORT);
	for (uint32_t i = 0; i < OF_ADDRESS; i++)
		(void)accepted(i);
	while (rig_counter(&r, 1, "cm_now_ids") < limits.ids_client)
		assert_int_not_equal(rig_create(&r, 1, SERVER, CH, HCA_CTL_CM_SPACE_TCP), 0);
	spoofed(1, 100);
	assert_int_equal(rig_counter(&r, 1, "cm_refused_limit"), 1);
	assert_int_equal(rig_counter(&r, 1, "cm_evicted"), 0);
	assert_int_equal(rig_counter(&r, 1, "cm_now_halves"), OF_ADDRESS);
	assert_int_equal(rig_count(&r, 1, IB_MAD_REJ), 0);
	assert_false(rig_event(&r, 1, SERVER, CH, &e));
	rig_end(&r);
}

/* A server that refuses more requests than an address may have halves refuses all of them. */
static void
test_refusals(void **state)
{
	rig_begin(&r, 1, &limits);
	(void)rig_listener(&r, 1, SERVER, CH, HCA_CTL_CM_SPACE_TCP, PORT);
	for (uint32_t i = 0; i < 10 * OF_ADDRESS; i++) {
		struct hca_ctl_cm_event e;

		spoofed(1, i);
		e = rig_expect(&r, 1, SERVER, CH, HCA_CTL_CM_EV_CONNECT_REQUEST);
		assert_int_equal(rig_reject(&r, 1, SERVER, e.id, "no"), 0);
		assert_int_equal(rig_destroy(&r, 1, SERVER, e.id), 0);
		assert_true(rig_counter(&r, 1, "cm_now_halves") <= OF_ADDRESS);
	}
	assert_int_equal(rig_counter(&r, 1, "cm_rejected_28"), 10 * OF_ADDRESS);
	rig_end(&r);
}

/* ---- clients ---- */

static int
join(uint32_t owner, uint32_t last, uint32_t *number)
{
	struct hca_ctl_cm_join request = {.addr = ib_ip_any(HCA_CTL_CM_IP4)};

	request.id = rig_create(&r, 0, owner, CH, HCA_CTL_CM_SPACE_UDP);
	assert_int_equal(rig_bind(&r, 0, owner, request.id, RIG_IP4, r.gid[0][RIG_IP4], 0, 0), 0);
	request.addr.gid[12] = 239;
	request.addr.gid[15] = (uint8_t)last;
	return rig_call(&r, 0, owner, HCA_CTL_CM_JOIN, &request, number);
}

/* A user joins until it has half of all memberships: others have the rest. */
static void
test_limit_of_groups(void **state)
{
	struct hca_ctl_none none;
	uint32_t number[2];

	rig_begin(&r, 1, &limits);
	assert_int_equal(join(CLIENT, 1, &number[0]), 0);
	assert_int_equal(join(CLIENT, 2, &number[1]), 0);
	assert_int_equal(join(CLIENT, 3, &number[1]), -ENOMEM);
	assert_int_equal(join(SERVER, 3, &number[1]), 0);
	assert_int_equal(join(SERVER, 4, &number[1]), -ENOMEM);
	assert_int_equal(rig_call(&r, 0, CLIENT, HCA_CTL_CM_LEAVE, &number[0], &none), 0);
	assert_int_equal(join(SERVER, 4, &number[1]), 0);
	rig_end(&r);
}

static void
test_limits_of_clients(void **state)
{
	struct hca_ctl_cm_create request = {.channel = CH,
					    .space = HCA_CTL_CM_SPACE_TCP,
					    .service = HCA_ST_RC};
	struct ibcm_client client[3] = {{1, 50}, {2, 50}, {3, 51}};
	uint32_t ids[3] = {0}, id;
	const char *why;

	rig_begin(&r, 1, &limits);
	for (uint32_t c = 0; c < 3; c++)
		while (ibcm_call(r.cm[0], &client[c], HCA_CTL_CM_CREATE, &request, &id, r.now,
				 &why) == 0)
			ids[c]++;
	assert_int_equal(ids[0], 100);
	assert_int_equal(ids[1], 50);
	assert_int_equal(ids[2], 50);
	ibcm_forget(r.cm[0], 1, r.now);
	assert_int_equal(rig_counter(&r, 0, "cm_now_ids"), 100);
	for (uint32_t c = 1; c < 3; c++)
		assert_int_equal(ibcm_call(r.cm[0], &client[c], HCA_CTL_CM_CREATE, &request, &id,
					   r.now, &why),
				 0);
	rig_end(&r);
}

/* A client connects to a peer that never answers, and destroys its ids, in a loop. */
static void
test_connects_to_nowhere(void **state)
{
	uint8_t nowhere[16];

	rig_begin(&r, 1, &limits);
	source(nowhere, 77);
	nowhere[13] = 0;
	for (uint32_t i = 0; i < 1000; i++) {
		uint32_t id = rig_routed(&r, 0, CLIENT, CH, HCA_CTL_CM_SPACE_TCP, nowhere, PORT);

		assert_int_equal(rig_connect(&r, 0, CLIENT, id, i, NULL), 0);
		rig_run(&r, RIG_MS);
		assert_int_equal(rig_destroy(&r, 0, CLIENT, id), 0);
	}
	assert_int_equal(rig_counter(&r, 0, "cm_now_connections"), 0);
	assert_int_equal(rig_counter(&r, 0, "cm_now_ports"), 0);
	rig_end(&r);
}

/* A client resolves in a loop and never looks: its events are bounded. */
static void
test_unfetched_events(void **state)
{
	struct hca_ctl_cm_event e;
	uint8_t far[16];
	uint32_t id, n = 0;

	rig_begin(&r, 1, &limits);
	source(far, 1);
	id = rig_create(&r, 0, CLIENT, CH, HCA_CTL_CM_SPACE_TCP);
	while (rig_resolve(&r, 0, CLIENT, id, far, PORT) == 0) {
		rig_run(&r, RIG_MS);
		assert_true(++n < 1000);
	}
	assert_int_equal(rig_resolve(&r, 0, CLIENT, id, far, PORT), -ENOMEM);
	(void)rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_ADDR_ERROR);
	assert_int_equal(rig_resolve(&r, 0, CLIENT, id, far, PORT), 0);
	while (rig_event(&r, 0, CLIENT, CH, &e))
		assert_int_equal(e.type, HCA_CTL_CM_EV_ADDR_ERROR);
	rig_end(&r);
}

/* Orphans count as ids of their client, and the oldest one is evicted for a new id. */
static void
test_orphans(void **state)
{
	rig_begin(&r, 1, &limits);
	(void)rig_listener(&r, 1, SERVER, CH, HCA_CTL_CM_SPACE_TCP, PORT);
	for (uint32_t i = 0; i < 3 * limits.ids_client; i++) {
		uint32_t id = rig_routed(&r, 0, CLIENT, CH, HCA_CTL_CM_SPACE_TCP, r.gid[1][RIG_IP4],
					 PORT);
		struct hca_ctl_cm_event e;

		r.fate = NULL;
		assert_int_equal(rig_connect(&r, 0, CLIENT, id, i, NULL), 0);
		rig_run(&r, 5 * RIG_MS);
		e = rig_expect(&r, 1, SERVER, CH, HCA_CTL_CM_EV_CONNECT_REQUEST);
		assert_int_equal(rig_accept(&r, 1, SERVER, e.id, i, NULL), 0);
		rig_run(&r, 5 * RIG_MS);
		(void)rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_CONNECT_RESPONSE);
		assert_int_equal(rig_establish(&r, 0, CLIENT, id), 0);
		rig_run(&r, 5 * RIG_MS);
		(void)rig_expect(&r, 1, SERVER, CH, HCA_CTL_CM_EV_ESTABLISHED);
		assert_int_equal(rig_destroy(&r, 1, SERVER, e.id), 0);
		/* the DREQ of the client is lost */
		r.fate = rig_lost;
		assert_int_equal(rig_destroy(&r, 0, CLIENT, id), 0);
		assert_true(rig_counter(&r, 0, "cm_now_orphans") <= limits.ids_client);
		r.fate = NULL;
	}
	assert_true(rig_counter(&r, 0, "cm_evicted") >= limits.ids_client);
	rig_end(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_address),	cmocka_unit_test(test_one_address_accepted),
		cmocka_unit_test(test_spoofed),		cmocka_unit_test(test_spoofed_accepted),
		cmocka_unit_test(test_backlog),		cmocka_unit_test(test_ids_full),
		cmocka_unit_test(test_victim),		cmocka_unit_test(test_fetched_evicted),
		cmocka_unit_test(test_other_user),	cmocka_unit_test(test_one_place),
		cmocka_unit_test(test_own_oldest),	cmocka_unit_test(test_refused_first),
		cmocka_unit_test(test_refusals),	cmocka_unit_test(test_limits_of_clients),
		cmocka_unit_test(test_limit_of_groups), cmocka_unit_test(test_connects_to_nowhere),
		cmocka_unit_test(test_orphans),		cmocka_unit_test(test_unfetched_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
