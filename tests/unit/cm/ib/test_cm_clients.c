/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Clients that name objects of others, or send anything: the manager answers each call, no object
 * of another client changes, and all are freed at the end. The driver has checked the channels of
 * new and moved ids.
 */

#include <errno.h>
#include <string.h>

#include "cm_rig.h"

#define ONE 1u
#define TWO 2u
#define CH 3u
#define PORT 4000
#define ROUNDS 40000u
#define RUNS 4u
#define POOL 24u

/* X(operation, request, where the id is) */
#define BY_ID(X) \
	X(DESTROY, uint32_t, 0) \
	X(BIND, struct hca_ctl_cm_bind, offsetof(struct hca_ctl_cm_bind, id)) \
	X(RESOLVE, struct hca_ctl_cm_resolve, offsetof(struct hca_ctl_cm_resolve, id)) \
	X(ROUTE, struct hca_ctl_cm_route, offsetof(struct hca_ctl_cm_route, id)) \
	X(LISTEN, struct hca_ctl_cm_listen, offsetof(struct hca_ctl_cm_listen, id)) \
	X(CONNECT, struct hca_ctl_cm_param, offsetof(struct hca_ctl_cm_param, id)) \
	X(ACCEPT, struct hca_ctl_cm_param, offsetof(struct hca_ctl_cm_param, id)) \
	X(REJECT, struct hca_ctl_cm_reject, offsetof(struct hca_ctl_cm_reject, id)) \
	X(DISCONNECT, uint32_t, 0) \
	X(NOTIFY, struct hca_ctl_cm_notify, offsetof(struct hca_ctl_cm_notify, id)) \
	X(OPTION, struct hca_ctl_cm_option, offsetof(struct hca_ctl_cm_option, id)) \
	X(MOVE, struct hca_ctl_cm_move, offsetof(struct hca_ctl_cm_move, id)) \
	X(QUERY, uint32_t, 0) \
	X(QP_ATTR, struct hca_ctl_cm_ask, offsetof(struct hca_ctl_cm_ask, id)) \
	X(JOIN, struct hca_ctl_cm_join, offsetof(struct hca_ctl_cm_join, id))

static const struct {
	enum hca_ctl_op op;
	uint32_t bytes, id_at;
} by_id[] = {
#define X(NAME, request, at) {HCA_CTL_CM_##NAME, sizeof(request), at},
	BY_ID(X)
#undef X
};
#define BY_ID_COUNT (sizeof(by_id) / sizeof(by_id[0]))

static struct rig r;
/* 8 bytes aligned, and larger than each request and answer */
static uint64_t request[64], answer[64];

static int
call(uint32_t owner, size_t i, uint32_t id)
{
	memcpy((uint8_t *)request + by_id[i].id_at, &id, sizeof(id));
	return rig_call(&r, 0, owner, by_id[i].op, request, answer);
}

/* ---- objects of another client ---- */

static void
test_ids_of_others(void **state)
{
	struct hca_ctl_cm_event e;
	uint32_t id, channel = CH;

	rig_begin(&r, 31, NULL);
	id = rig_create(&r, 0, ONE, CH, HCA_CTL_CM_SPACE_TCP);
	assert_int_equal(rig_resolve(&r, 0, ONE, id, r.gid[1][RIG_IP4], PORT), 0);
	rig_run(&r, RIG_MS);
	for (size_t i = 0; i < BY_ID_COUNT; i++) {
		memset(request, 0, sizeof(request));
		assert_int_equal(call(TWO, i, id), -ENOENT);
		assert_int_equal(call(TWO, i, 0), -ENOENT);
		assert_int_equal(call(TWO, i, UINT32_MAX), -ENOENT);
	}
	assert_int_equal(rig_call(&r, 0, TWO, HCA_CTL_CM_EVENT, &channel, &e), -EAGAIN);
	(void)rig_expect(&r, 0, ONE, CH, HCA_CTL_CM_EV_ADDR_RESOLVED);
	assert_int_equal(rig_state(&r, 0, ONE, id), HCA_CTL_CM_RESOLVED);
	ibcm_forget(r.cm[0], TWO, r.now);
	assert_int_equal(rig_state(&r, 0, ONE, id), HCA_CTL_CM_RESOLVED);
	rig_end(&r);
}

/* ---- anything ---- */

static struct {
	uint32_t number, owner;
} pool[POOL];

static void
fill_addr(struct hca_ctl_cm_addr *a, uint32_t end)
{
	uint32_t which = rig_random(&r, RIG_GIDS);

	memcpy(a->gid, r.gid[end][which], sizeof(a->gid));
	a->family = which == RIG_IP4 ? HCA_CTL_CM_IP4 : HCA_CTL_CM_IP6;
	a->port = (uint16_t)(PORT + rig_random(&r, 3));
}

static void
fill_param(struct hca_ctl_cm_param *p, bool accept)
{
	p->qpn = 1 + rig_random(&r, 1000);
	p->retry_count = p->rnr_retry_count = 7;
	p->responder_resources = (uint8_t)rig_random(&r, 20);
	p->private_len = (uint8_t)rig_random(&r, 57);
	p->valid = !accept || rig_random(&r, 2) == 0;
}

/* A good request */
static void
fill_good(enum hca_ctl_op op)
{
	memset(request, 0, sizeof(request));
	switch (op) {
	case HCA_CTL_CM_BIND:
		fill_addr(&((struct hca_ctl_cm_bind *)request)->addr, 0);
		break;
	case HCA_CTL_CM_RESOLVE:
		fill_addr(&((struct hca_ctl_cm_resolve *)request)->dst, rig_random(&r, 4) == 0);
		((struct hca_ctl_cm_resolve *)request)->timeout_ms = 1 + rig_random(&r, 100);
		break;
	case HCA_CTL_CM_CONNECT:
	case HCA_CTL_CM_ACCEPT:
		fill_param((struct hca_ctl_cm_param *)request, op == HCA_CTL_CM_ACCEPT);
		break;
	case HCA_CTL_CM_QP_ATTR:
		((struct hca_ctl_cm_ask *)request)->qp_state = 1 + rig_random(&r, 3);
		break;
	case HCA_CTL_CM_JOIN:
		fill_addr(&((struct hca_ctl_cm_join *)request)->addr, 0);
		((struct hca_ctl_cm_join *)request)->addr.gid[12] = 239;
		break;
	default:
		break;
	}
}

/* A third of the requests has some bytes that are not. */
static void
fill(enum hca_ctl_op op, uint32_t bytes)
{
	fill_good(op);
	for (uint32_t i = rig_random(&r, 3) == 0 ? 1 + rig_random(&r, 4) : 0; i > 0; i--)
		((uint8_t *)request)[rig_random(&r, bytes)] = (uint8_t)rig_random(&r, 256);
}

static bool
lives(uint32_t i)
{
	struct hca_ctl_cm_info info;

	return rig_call(&r, 0, pool[i].owner, HCA_CTL_CM_QUERY, &pool[i].number, &info) == 0;
}

/* In a place that is free, or in that of an id that goes */
static void
keep(uint32_t owner, uint32_t number)
{
	uint32_t i = 0;

	while (i < POOL && lives(i))
		i++;
	if (i == POOL) {
		i = rig_random(&r, POOL);
		assert_int_equal(rig_destroy(&r, 0, pool[i].owner, pool[i].number), 0);
	}
	pool[i].number = number;
	pool[i].owner = owner;
}

static void
create(uint32_t owner)
{
	bool datagrams = rig_random(&r, 4) == 0, odd = rig_random(&r, 8) == 0;
	const struct hca_ctl_cm_create c = {
		.channel = 1 + rig_random(&r, 3),
		.space = odd	     ? rig_random(&r, 0x200)
			 : datagrams ? HCA_CTL_CM_SPACE_UDP
				     : HCA_CTL_CM_SPACE_TCP,
		.service = odd	       ? rig_random(&r, 10)
			   : datagrams ? HCA_ST_UD
				       : HCA_ST_RC,
	};
	uint32_t number = 0;

	if (rig_call(&r, 0, owner, HCA_CTL_CM_CREATE, &c, &number) == 0)
		keep(owner, number);
}

static void
fetch(uint32_t owner)
{
	struct hca_ctl_cm_event e = {0};
	uint32_t channel = rig_random(&r, 5);

	if (rig_call(&r, 0, owner, HCA_CTL_CM_EVENT, &channel, &e) != 0)
		return;
	assert_in_range(e.type, 0, HCA_CTL_CM_EV_TIMEWAIT_EXIT);
	assert_in_range(e.param.private_len, 0, HCA_CTL_CM_PRIVATE_MAX);
	if (e.type == HCA_CTL_CM_EV_CONNECT_REQUEST)
		keep(owner, e.id);
}

/* The program's next step with an id in that state */
static enum hca_ctl_op
natural(uint32_t state)
{
	switch (state) {
	case HCA_CTL_CM_RESOLVED:
		return HCA_CTL_CM_ROUTE;
	case HCA_CTL_CM_ROUTED:
		return HCA_CTL_CM_CONNECT;
	case HCA_CTL_CM_REQUESTED:
	case HCA_CTL_CM_ANSWERED:
		return HCA_CTL_CM_ACCEPT;
	case HCA_CTL_CM_ENDED:
		return HCA_CTL_CM_DESTROY;
	case HCA_CTL_CM_BOUND:
		return HCA_CTL_CM_LISTEN;
	case HCA_CTL_CM_IDLE:
		return rig_random(&r, 6) == 0 ? HCA_CTL_CM_BIND : HCA_CTL_CM_RESOLVE;
	default:
		return HCA_CTL_CM_QUERY;
	}
}

static void
go_on(void)
{
	uint32_t i = rig_random(&r, POOL);
	struct hca_ctl_cm_info info;
	size_t k = 0;
	enum hca_ctl_op op;

	if (rig_call(&r, 0, pool[i].owner, HCA_CTL_CM_QUERY, &pool[i].number, &info) != 0)
		return;
	op = natural(info.state);
	while (by_id[k].op != op)
		k++;
	fill_good(op);
	(void)call(pool[i].owner, k, pool[i].number);
}

static void
anything(uint32_t owner)
{
	size_t i = rig_random(&r, BY_ID_COUNT);
	uint32_t group = rig_random(&r, 64);

	if (rig_random(&r, 3) != 0) {
		go_on();
		return;
	}
	switch (rig_random(&r, 16)) {
	case 0:
	case 1:
		create(owner);
		break;
	case 2:
	case 3:
		fetch(owner);
		break;
	case 4:
		(void)rig_call(&r, 0, owner, HCA_CTL_CM_LEAVE, &group, answer);
		break;
	default:
		if (by_id[i].op == HCA_CTL_CM_DESTROY && rig_random(&r, 8) != 0)
			break;
		fill(by_id[i].op, by_id[i].bytes);
		if (by_id[i].op == HCA_CTL_CM_MOVE)
			((struct hca_ctl_cm_move *)request)->channel = 1 + rig_random(&r, 3);
		(void)call(owner, i, pool[rig_random(&r, POOL)].number);
		break;
	}
}

static void
test_anything(void **state)
{
	uint64_t connected = 0;

	for (uint64_t run = 0; run < RUNS; run++) {
		memset(pool, 0, sizeof(pool));
		rig_begin(&r, 100 + run, NULL);
		for (uint32_t i = 0; i < ROUNDS; i++) {
			anything(1 + rig_random(&r, 2));
			rig_run(&r, rig_random(&r, 50) == 0 ? RIG_SECOND : RIG_MS / 2);
			if (rig_random(&r, 2000) == 0)
				ibcm_forget(r.cm[0], 1 + rig_random(&r, 2), r.now);
		}
		for (uint32_t owner = ONE; owner <= TWO; owner++)
			ibcm_forget(r.cm[0], owner, r.now);
		rig_run(&r, 100 * RIG_SECOND);
		assert_true(rig_counter(&r, 0, "cm_received_req") > 100);
		connected += rig_counter(&r, 0, "cm_received_rtu");
		rig_sums(&r, 0);
		rig_sums(&r, 1);
		assert_int_equal(rig_counter(&r, 0, "cm_now_ids"), 0);
		assert_int_equal(rig_counter(&r, 0, "cm_now_ports"), 0);
		assert_int_equal(rig_counter(&r, 0, "cm_now_connections"), 0);
		assert_int_equal(rig_counter(&r, 0, "cm_now_orphans"), 0);
		assert_int_equal(rig_counter(&r, 0, "cm_now_halves"), 0);
		assert_int_equal(rig_counter(&r, 0, "cm_now_memberships"), 0);
		rig_end(&r);
	}
	assert_true(connected > 100);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ids_of_others),
		cmocka_unit_test(test_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
