/* SPDX-License-Identifier: BSD-3-Clause */

/* Connections between two connection managers over a good network, and at one. */

#include <errno.h>
#include <string.h>

#include "abi_qp_attr.h"
#include "cm_rig.h"

#define CLIENT 7u
#define SERVER 9u
#define CH 1u
#define PORT 7174u
#define QP_A 0x111u
#define QP_B 0x222u

static struct rig r;

/* A connection from end a to end b; *child is the id of the server. */
static uint32_t
connected(uint32_t a, uint32_t b, uint32_t family, uint32_t *child)
{
	uint32_t listener = rig_listener(&r, b, SERVER, CH, HCA_CTL_CM_SPACE_TCP, PORT);
	uint32_t id = rig_routed(&r, a, CLIENT, CH, HCA_CTL_CM_SPACE_TCP, r.gid[b][family], PORT);
	struct hca_ctl_cm_event e;

	assert_int_equal(rig_connect(&r, a, CLIENT, id, QP_A, "hello"), 0);
	assert_int_equal(rig_state(&r, a, CLIENT, id), HCA_CTL_CM_CONNECTING);
	rig_run(&r, 10 * RIG_MS);
	e = rig_expect(&r, b, SERVER, CH, HCA_CTL_CM_EV_CONNECT_REQUEST);
	assert_int_equal(e.listener, listener);
	assert_int_equal(e.param.qpn, QP_A);
	assert_int_equal(e.param.private_len, 56);
	assert_string_equal((const char *)e.param.private, "hello");
	assert_int_equal(e.param.responder_resources, 5);
	assert_int_equal(e.param.initiator_depth, 4);
	assert_int_equal(e.param.retry_count, 7);
	*child = e.id;
	assert_int_equal(rig_accept(&r, b, SERVER, *child, QP_B, "welcome"), 0);
	rig_run(&r, 10 * RIG_MS);
	e = rig_expect(&r, a, CLIENT, CH, HCA_CTL_CM_EV_CONNECT_RESPONSE);
	assert_int_equal(e.id, id);
	assert_int_equal(e.param.qpn, QP_B);
	assert_int_equal(e.param.private_len, 196);
	assert_string_equal((const char *)e.param.private, "welcome");
	assert_int_equal(rig_establish(&r, a, CLIENT, id), 0);
	rig_run(&r, 10 * RIG_MS);
	e = rig_expect(&r, b, SERVER, CH, HCA_CTL_CM_EV_ESTABLISHED);
	assert_int_equal(e.id, *child);
	assert_int_equal(rig_state(&r, a, CLIENT, id), HCA_CTL_CM_ESTABLISHED);
	assert_int_equal(rig_state(&r, b, SERVER, *child), HCA_CTL_CM_ESTABLISHED);
	return id;
}

static void
test_connect(void **state)
{
	for (uint32_t i = 0; i < 4; i++) {
		uint32_t b = i % 2, child, id;
		struct hca_ctl_cm_info info;

		rig_begin(&r, i, NULL);
		id = connected(0, b, i / 2, &child);
		assert_int_equal(rig_call(&r, 0, CLIENT, HCA_CTL_CM_QUERY, &id, &info), 0);
		assert_int_equal(info.dst.port, PORT);
		assert_int_equal(info.service_id, 0x01060000u + PORT);
		assert_memory_equal(info.src.gid, r.gid[0][i / 2], 16);
		assert_true(info.src.port >= 32768);
		assert_int_equal(rig_call(&r, b, SERVER, HCA_CTL_CM_QUERY, &child, &info), 0);
		assert_int_equal(info.src.port, PORT);
		assert_memory_equal(info.src.gid, r.gid[b][i / 2], 16);
		assert_memory_equal(info.dst.gid, r.gid[0][i / 2], 16);
		assert_int_equal(info.gid_index, i / 2);
		/* every message once */
		assert_int_equal(r.sent, 3);
		rig_end(&r);
	}
}

static void
expect_end(uint32_t end, uint32_t owner, uint32_t id)
{
	struct hca_ctl_cm_event e = rig_expect(&r, end, owner, CH, HCA_CTL_CM_EV_DISCONNECTED);

	assert_int_equal(e.id, id);
	assert_int_equal(e.status, 0);
	assert_int_equal(rig_state(&r, end, owner, id), HCA_CTL_CM_ENDED);
}

static void
test_disconnect(void **state)
{
	/* 0: the client ends it, 1: the server, 2: both at once */
	for (uint32_t who = 0; who < 3; who++) {
		uint32_t child, id;

		rig_begin(&r, who, NULL);
		id = connected(0, 1, RIG_IP4, &child);
		if (who != 1)
			assert_int_equal(rig_disconnect(&r, 0, CLIENT, id), 0);
		if (who != 0)
			assert_int_equal(rig_disconnect(&r, 1, SERVER, child), 0);
		rig_run(&r, 20 * RIG_MS);
		expect_end(0, CLIENT, id);
		expect_end(1, SERVER, child);
		assert_int_equal(rig_count(&r, 0, IB_MAD_DREQ), who != 1);
		assert_int_equal(rig_count(&r, 1, IB_MAD_DREQ), who != 0);
		assert_int_equal(rig_disconnect(&r, 0, CLIENT, id), 0);
		rig_run(&r, 10 * RIG_SECOND);
		(void)rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_TIMEWAIT_EXIT);
		(void)rig_expect(&r, 1, SERVER, CH, HCA_CTL_CM_EV_TIMEWAIT_EXIT);
		assert_int_equal(rig_counter(&r, 0, "cm_now_connections"), 0);
		assert_int_equal(rig_counter(&r, 1, "cm_now_connections"), 0);
		assert_int_equal(rig_destroy(&r, 0, CLIENT, id), 0);
		assert_int_equal(rig_destroy(&r, 0, CLIENT, id), -ENOENT);
		assert_int_equal(rig_counter(&r, 0, "cm_now_ids"), 0);
		assert_int_equal(rig_counter(&r, 0, "cm_now_ports"), 0);
		rig_end(&r);
	}
}

static void
expect_way(const struct rig_sent *s, uint8_t moved, bool doubted)
{
	const uint8_t mac[6] = {2, [4] = moved, 1};

	assert_int_equal(s->end, 1);
	assert_memory_equal(s->way.dmac, mac, sizeof(mac));
	assert_int_equal(s->way.doubted, doubted);
}

/* The peer has another MAC address: messages go there when one has come, else they are doubted. */
static void
test_peer_moves(void **state)
{
	uint32_t child, id, sent;

	rig_begin(&r, 1, NULL);
	id = connected(0, 1, RIG_IP4, &child);
	r.moved[0] = 9;
	r.fate = rig_lost;
	sent = r.sent;
	assert_int_equal(rig_disconnect(&r, 1, SERVER, child), 0);
	rig_run(&r, RIG_SECOND);
	assert_int_equal(r.sent, sent + 3);
	expect_way(&r.log[sent], 0, false);
	expect_way(&r.log[sent + 1], 0, true);
	expect_way(&r.log[sent + 2], 0, true);
	/* the DREQ of the peer arrives */
	r.fate = NULL;
	assert_int_equal(rig_disconnect(&r, 0, CLIENT, id), 0);
	rig_run(&r, RIG_MS + 1);
	assert_int_equal(r.log[r.sent - 1].mad.type, IB_MAD_DREP);
	expect_way(&r.log[r.sent - 1], 9, false);
	rig_run(&r, 10 * RIG_MS);
	expect_end(0, CLIENT, id);
	expect_end(1, SERVER, child);
	rig_end(&r);
}

/* A request is repeated from another MAC address: its answer goes there. */
static void
test_request_moves(void **state)
{
	struct hca_ctl_cm_event e;
	uint32_t id;

	rig_begin(&r, 1, NULL);
	(void)rig_listener(&r, 1, SERVER, CH, HCA_CTL_CM_SPACE_TCP, PORT);
	id = rig_routed(&r, 0, CLIENT, CH, HCA_CTL_CM_SPACE_TCP, r.gid[1][RIG_IP4], PORT);
	assert_int_equal(rig_connect(&r, 0, CLIENT, id, QP_A, NULL), 0);
	rig_run(&r, 10 * RIG_MS);
	r.moved[0] = 9;
	rig_run(&r, RIG_SECOND / 2);
	e = rig_expect(&r, 1, SERVER, CH, HCA_CTL_CM_EV_CONNECT_REQUEST);
	assert_int_equal(rig_accept(&r, 1, SERVER, e.id, QP_B, NULL), 0);
	assert_int_equal(r.log[r.sent - 1].mad.type, IB_MAD_REP);
	expect_way(&r.log[r.sent - 1], 9, false);
	rig_end(&r);
}

/* The connection outlives its id until TIMEWAIT is over; the peer is told. */
static void
test_destroy_established(void **state)
{
	struct ibcm_entry left;
	uint32_t child, id;

	rig_begin(&r, 1, NULL);
	id = connected(0, 1, RIG_IP4, &child);
	assert_int_equal(rig_destroy(&r, 0, CLIENT, id), 0);
	assert_int_equal(rig_counter(&r, 0, "cm_now_orphans"), 1);
	assert_int_equal(ibcm_list(r.cm[0], 0, &left, 1), 1);
	assert_int_equal(left.id, 0);
	assert_int_equal(left.state, HCA_CTL_CM_DISCONNECTING);
	rig_run(&r, 20 * RIG_MS);
	expect_end(1, SERVER, child);
	assert_int_equal(rig_counter(&r, 0, "cm_now_orphans"), 1);
	assert_int_equal(ibcm_list(r.cm[0], 0, &left, 1), 1);
	assert_string_equal(left.phase, "timewait");
	assert_int_equal(left.state, HCA_CTL_CM_ENDED);
	rig_run(&r, 10 * RIG_SECOND);
	assert_int_equal(rig_counter(&r, 0, "cm_now_orphans"), 0);
	rig_end(&r);
}

static void
test_forget(void **state)
{
	uint32_t child, id;

	rig_begin(&r, 1, NULL);
	id = connected(0, 1, RIG_IP4, &child);
	ibcm_forget(r.cm[1], SERVER, r.now);
	assert_int_equal(rig_counter(&r, 1, "cm_now_ids"), 0);
	assert_int_equal(rig_counter(&r, 1, "cm_now_ports"), 0);
	rig_run(&r, 20 * RIG_MS);
	expect_end(0, CLIENT, id);
	/* its successor has another account, and no ids of it */
	assert_int_equal(rig_destroy(&r, 1, SERVER, child), -ENOENT);
	(void)rig_listener(&r, 1, SERVER, CH, HCA_CTL_CM_SPACE_TCP, PORT);
	ibcm_forget(r.cm[1], SERVER, r.now);
	ibcm_forget(r.cm[1], SERVER, r.now);
	rig_run(&r, 10 * RIG_SECOND);
	assert_int_equal(rig_counter(&r, 1, "cm_now_orphans"), 0);
	rig_end(&r);
}

static void
test_reject(void **state)
{
	struct hca_ctl_cm_event e;
	uint32_t id;

	rig_begin(&r, 1, NULL);
	(void)rig_listener(&r, 1, SERVER, CH, HCA_CTL_CM_SPACE_TCP, PORT);
	id = rig_routed(&r, 0, CLIENT, CH, HCA_CTL_CM_SPACE_TCP, r.gid[1][RIG_IP4], PORT);
	assert_int_equal(rig_connect(&r, 0, CLIENT, id, QP_A, NULL), 0);
	rig_run(&r, 10 * RIG_MS);
	e = rig_expect(&r, 1, SERVER, CH, HCA_CTL_CM_EV_CONNECT_REQUEST);
	assert_int_equal(rig_reject(&r, 1, SERVER, e.id, "no"), 0);
	assert_int_equal(rig_accept(&r, 1, SERVER, e.id, QP_B, NULL), -EINVAL);
	rig_run(&r, 10 * RIG_MS);
	e = rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_REJECTED);
	assert_int_equal(e.status, 28);
	assert_int_equal(e.param.private_len, 148);
	assert_string_equal((const char *)e.param.private, "no");
	assert_int_equal(rig_state(&r, 0, CLIENT, id), HCA_CTL_CM_ENDED);
	rig_end(&r);
}

static void
test_no_listener(void **state)
{
	struct hca_ctl_cm_event e;
	uint32_t id, listener;

	rig_begin(&r, 1, NULL);
	listener = rig_listener(&r, 1, SERVER, CH, HCA_CTL_CM_SPACE_TCP, PORT);
	/* another port; another space; after the listener has gone */
	for (uint32_t i = 0; i < 3; i++) {
		if (i == 2)
			assert_int_equal(rig_destroy(&r, 1, SERVER, listener), 0);
		id = rig_routed(&r, 0, CLIENT, CH,
				i == 1 ? HCA_CTL_CM_SPACE_IB : HCA_CTL_CM_SPACE_TCP,
				r.gid[1][RIG_IP4], i == 0 ? PORT + 1 : PORT);
		assert_int_equal(rig_connect(&r, 0, CLIENT, id, QP_A + i, NULL), 0);
		rig_run(&r, 10 * RIG_MS);
		e = rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_REJECTED);
		assert_int_equal(e.status, 8);
	}
	assert_int_equal(rig_counter(&r, 1, "cm_rejected_8"), 3);
	rig_end(&r);
}

/* A listener that goes refuses the requests that wait. */
static void
test_listener_goes(void **state)
{
	struct hca_ctl_cm_event e;
	uint32_t id, listener;

	rig_begin(&r, 1, NULL);
	listener = rig_listener(&r, 1, SERVER, CH, HCA_CTL_CM_SPACE_TCP, PORT);
	id = rig_routed(&r, 0, CLIENT, CH, HCA_CTL_CM_SPACE_TCP, r.gid[1][RIG_IP4], PORT);
	assert_int_equal(rig_connect(&r, 0, CLIENT, id, QP_A, NULL), 0);
	rig_run(&r, 10 * RIG_MS);
	assert_int_equal(rig_counter(&r, 1, "cm_now_ids"), 2);
	assert_int_equal(rig_destroy(&r, 1, SERVER, listener), 0);
	assert_int_equal(rig_counter(&r, 1, "cm_now_ids"), 0);
	assert_false(rig_event(&r, 1, SERVER, CH, &e));
	rig_run(&r, 10 * RIG_MS);
	e = rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_REJECTED);
	assert_int_equal(e.status, 28);
	rig_end(&r);
}

static void
test_resolve_errors(void **state)
{
	uint8_t far[16] = {[10] = 0xff, [11] = 0xff, [12] = 192, [15] = 1};
	struct hca_ctl_cm_event e;
	uint32_t id;

	rig_begin(&r, 1, NULL);
	id = rig_create(&r, 0, CLIENT, CH, HCA_CTL_CM_SPACE_TCP);
	assert_int_equal(rig_resolve(&r, 0, CLIENT, id, far, PORT), 0);
	assert_int_equal(rig_resolve(&r, 0, CLIENT, id, far, PORT), -EINVAL);
	rig_run(&r, RIG_MS);
	e = rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_ADDR_ERROR);
	assert_int_equal(e.status, -EHOSTUNREACH);
	assert_int_equal(rig_state(&r, 0, CLIENT, id), HCA_CTL_CM_BOUND);
	/* it may be tried again; nothing answers in time, and too late is nothing */
	r.mute = true;
	assert_int_equal(rig_resolve(&r, 0, CLIENT, id, r.gid[1][RIG_IP4], PORT), 0);
	rig_run(&r, 3 * RIG_SECOND);
	e = rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_ADDR_ERROR);
	assert_int_equal(e.status, -ETIMEDOUT);
	r.mute = false;
	rig_run(&r, RIG_MS);
	assert_false(rig_event(&r, 0, CLIENT, CH, &e));
	assert_int_equal(rig_connect(&r, 0, CLIENT, id, QP_A, NULL), -EINVAL);
	assert_int_equal(rig_resolve(&r, 0, CLIENT, id, r.gid[1][RIG_IP6], PORT), -EINVAL);
	rig_end(&r);
}

/* An id with an address of its own is told, once until its program looks; one without is not. */
static void
test_address_goes(void **state)
{
	const struct hca_ctl_gid none = {0};
	struct hca_ctl_cm_event e;
	uint32_t id, other;

	rig_begin(&r, 21, NULL);
	id = rig_create(&r, 0, CLIENT, CH, HCA_CTL_CM_SPACE_TCP);
	other = rig_create(&r, 0, CLIENT, CH, HCA_CTL_CM_SPACE_TCP);
	assert_int_equal(rig_resolve(&r, 0, CLIENT, id, r.gid[1][RIG_IP4], PORT), 0);
	rig_run(&r, RIG_MS);
	(void)rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_ADDR_RESOLVED);
	for (uint32_t i = 0; i < 8; i++)
		ibcm_set_gid(r.cm[0], i, &none, r.now);
	e = rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_ADDR_CHANGE);
	assert_int_equal(e.id, id);
	assert_false(rig_event(&r, 0, CLIENT, CH, &e));
	assert_int_equal(rig_destroy(&r, 0, CLIENT, other), 0);
	rig_end(&r);
}

/* The peer never answers: as many REQs as its MaxCMRetries say, then UNREACHABLE. */
static void
test_unreachable(void **state)
{
	struct hca_ctl_cm_event e;
	uint32_t id;

	rig_begin(&r, 1, NULL);
	id = rig_routed(&r, 0, CLIENT, CH, HCA_CTL_CM_SPACE_TCP, r.gid[1][RIG_IP4], PORT);
	r.fate = rig_lost;
	assert_int_equal(rig_connect(&r, 0, CLIENT, id, QP_A, NULL), 0);
	rig_run(&r, 200 * RIG_SECOND);
	e = rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_UNREACHABLE);
	assert_int_equal(e.status, -ETIMEDOUT);
	assert_int_equal(rig_count(&r, 0, IB_MAD_REQ), 16);
	assert_int_equal(rig_counter(&r, 0, "cm_repeated_req"), 15);
	assert_int_equal(rig_counter(&r, 0, "cm_now_connections"), 0);
	rig_end(&r);
}

static void
test_peer_vanishes(void **state)
{
	struct hca_ctl_cm_event e;
	uint32_t id, child;

	rig_begin(&r, 1, NULL);
	id = connected(0, 1, RIG_IP4, &child);
	r.fate = rig_lost;
	assert_int_equal(rig_disconnect(&r, 0, CLIENT, id), 0);
	rig_run(&r, 200 * RIG_SECOND);
	e = rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_DISCONNECTED);
	assert_int_equal(e.status, -ETIMEDOUT);
	(void)rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_TIMEWAIT_EXIT);
	assert_int_equal(rig_count(&r, 0, IB_MAD_DREQ), 16);
	rig_end(&r);
}

/* ---- attributes of QPs ---- */

static struct hca_ctl_cm_attr
attr(uint32_t end, uint32_t owner, uint32_t id, uint32_t qp_state)
{
	struct hca_ctl_cm_ask ask = {.id = id, .qp_state = qp_state};
	struct hca_ctl_cm_attr out;

	assert_int_equal(rig_call(&r, end, owner, HCA_CTL_CM_QP_ATTR, &ask, &out), 0);
	assert_int_equal(out.qp_state, qp_state);
	return out;
}

static void
test_attributes(void **state)
{
	struct hca_ctl_cm_attr init, rtr[2], rts[2];
	uint32_t id, child;

	rig_begin(&r, 1, NULL);
	id = connected(0, 1, RIG_IP4, &child);
	init = attr(0, CLIENT, id, HCA_QPS_INIT);
	assert_int_equal(init.mask, HCA_QP_ATTR_STATE | HCA_QP_ATTR_PKEY_INDEX | HCA_QP_ATTR_PORT |
					    HCA_QP_ATTR_ACCESS_FLAGS);
	assert_int_equal(init.access, HCA_ACCESS_REMOTE_WRITE | HCA_ACCESS_REMOTE_READ |
					      HCA_ACCESS_REMOTE_ATOMIC);
	rtr[0] = attr(0, CLIENT, id, HCA_QPS_RTR);
	rtr[1] = attr(1, SERVER, child, HCA_QPS_RTR);
	rts[0] = attr(0, CLIENT, id, HCA_QPS_RTS);
	rts[1] = attr(1, SERVER, child, HCA_QPS_RTS);
	assert_int_equal(rtr[0].mask, HCA_QP_ATTR_STATE | HCA_QP_ATTR_AV | HCA_QP_ATTR_PATH_MTU |
					      HCA_QP_ATTR_DEST_QPN | HCA_QP_ATTR_RQ_PSN |
					      HCA_QP_ATTR_MAX_DEST_RD_ATOMIC |
					      HCA_QP_ATTR_MIN_RNR_TIMER);
	assert_int_equal(rts[0].mask, HCA_QP_ATTR_STATE | HCA_QP_ATTR_SQ_PSN | HCA_QP_ATTR_TIMEOUT |
					      HCA_QP_ATTR_RETRY_CNT | HCA_QP_ATTR_RNR_RETRY |
					      HCA_QP_ATTR_MAX_QP_RD_ATOMIC);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(rtr[i].path_mtu, 3);
		assert_int_equal(rtr[i].rq_psn, rts[1 - i].sq_psn);
		assert_memory_equal(rtr[i].dgid, r.gid[1 - i][RIG_IP4], 16);
		assert_int_equal(rts[i].timeout, 19);
	}
	assert_int_equal(rtr[0].dest_qpn, QP_B);
	assert_int_equal(rtr[1].dest_qpn, QP_A);
	/* accept: 4 are served, 5 are sent; the client has got the server's values */
	assert_int_equal(rtr[1].max_dest_rd_atomic, 4);
	assert_int_equal(rts[1].max_rd_atomic, 5);
	assert_int_equal(rtr[0].max_dest_rd_atomic, 5);
	assert_int_equal(rts[0].max_rd_atomic, 4);
	assert_int_equal(rts[1].retry_count, 7);
	rig_end(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_connect),
		cmocka_unit_test(test_disconnect),
		cmocka_unit_test(test_peer_moves),
		cmocka_unit_test(test_request_moves),
		cmocka_unit_test(test_destroy_established),
		cmocka_unit_test(test_forget),
		cmocka_unit_test(test_reject),
		cmocka_unit_test(test_no_listener),
		cmocka_unit_test(test_listener_goes),
		cmocka_unit_test(test_resolve_errors),
		cmocka_unit_test(test_address_goes),
		cmocka_unit_test(test_unreachable),
		cmocka_unit_test(test_peer_vanishes),
		cmocka_unit_test(test_attributes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
