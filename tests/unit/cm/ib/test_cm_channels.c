/* SPDX-License-Identifier: BSD-3-Clause */

/* The ends of channels and of clients, which take their ids with them. */

#include <errno.h>
#include <string.h>

#include "abi_ctx.h"
#include "cm_rig.h"

#define CLIENT 7u
#define OTHER 8u
#define SERVER 9u
#define CH 1u
#define CH2 2u
#define PORT 7174u
#define TCP HCA_CTL_CM_SPACE_TCP

static struct rig r;

static uint32_t
connecting(uint32_t qpn)
{
	uint32_t id = rig_routed(&r, 0, CLIENT, CH, TCP, r.gid[1][RIG_IP4], PORT);

	assert_int_equal(rig_connect(&r, 0, CLIENT, id, qpn, NULL), 0);
	rig_run(&r, 10 * RIG_MS);
	return id;
}

static void
expect_of(uint32_t type, uint32_t id, int32_t status)
{
	struct hca_ctl_cm_event e = rig_expect(&r, 0, CLIENT, CH, type);

	assert_int_equal(e.id, id);
	assert_int_equal(e.status, status);
}

/*
 * A channel of the server with a listener, a request that waits, one that was fetched, a
 * connection, and an id that has moved to another channel before.
 */
static void
test_channel_ends(void **state)
{
	struct hca_ctl_cm_move move = {.channel = CH2};
	struct hca_ctl_cm_event e;
	struct hca_ctl_none none;
	uint32_t listener, open, fetched, waits;

	rig_begin(&r, 1, NULL);
	listener = rig_listener(&r, 1, SERVER, CH, TCP, PORT);
	open = connecting(1);
	e = rig_expect(&r, 1, SERVER, CH, HCA_CTL_CM_EV_CONNECT_REQUEST);
	assert_int_equal(rig_accept(&r, 1, SERVER, e.id, 11, NULL), 0);
	rig_run(&r, 10 * RIG_MS);
	expect_of(HCA_CTL_CM_EV_CONNECT_RESPONSE, open, 0);
	assert_int_equal(rig_establish(&r, 0, CLIENT, open), 0);
	fetched = connecting(2);
	(void)rig_expect(&r, 1, SERVER, CH, HCA_CTL_CM_EV_ESTABLISHED);
	(void)rig_expect(&r, 1, SERVER, CH, HCA_CTL_CM_EV_CONNECT_REQUEST);
	waits = connecting(3);
	move.id = rig_create(&r, 1, SERVER, CH, TCP);
	assert_int_equal(rig_call(&r, 1, SERVER, HCA_CTL_CM_MOVE, &move, &none), 0);
	/* not the channel, not the client */
	ibcm_forget_channel(r.cm[1], SERVER, CH + 7, r.now);
	ibcm_forget_channel(r.cm[1], OTHER, CH, r.now);
	assert_int_equal(rig_state(&r, 1, SERVER, listener), HCA_CTL_CM_LISTENING);

	ibcm_forget_channel(r.cm[1], SERVER, CH, r.now);
	assert_int_equal(rig_counter(&r, 1, "cm_now_ids"), 1);
	assert_int_equal(rig_counter(&r, 1, "cm_now_ports"), 0);
	assert_int_equal(rig_state(&r, 1, SERVER, move.id), HCA_CTL_CM_IDLE);
	assert_int_equal(rig_destroy(&r, 1, SERVER, listener), -ENOENT);
	rig_run(&r, 10 * RIG_MS);
	/* the listener's requests first, as it was the first of the channel */
	expect_of(HCA_CTL_CM_EV_REJECTED, waits, IB_MAD_REASON_CONSUMER);
	expect_of(HCA_CTL_CM_EV_DISCONNECTED, open, 0);
	expect_of(HCA_CTL_CM_EV_REJECTED, fetched, IB_MAD_REASON_CONSUMER);
	/* the number of the channel belongs to another one now */
	r.signals[1][CH] = 0;
	rig_run(&r, 100 * RIG_SECOND);
	assert_false(rig_event(&r, 1, SERVER, CH, &e));
	assert_int_equal(r.signals[1][CH], 0);
	rig_end(&r);
}

/* The ids of a client are all in one channel: its account ends with the last one. */
static void
test_last_channel(void **state)
{
	rig_begin(&r, 1, NULL);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_not_equal(rig_create(&r, 0, CLIENT, CH, TCP), 0);
		(void)rig_listener(&r, 0, CLIENT, CH, TCP, PORT);
		ibcm_forget_channel(r.cm[0], CLIENT, CH, r.now);
		assert_null(ib_account_find(r.cm[0], CLIENT));
		assert_int_equal(rig_counter(&r, 0, "cm_now_ids"), 0);
	}
	rig_end(&r);
}

/* The cost of the end of a client grows with the ids of that client. */
static void
test_forget_own(void **state)
{
	uint32_t slots, ids[3];

	rig_begin(&r, 1, NULL);
	for (uint32_t i = 0; i < 3; i++)
		ids[i] = rig_listener(&r, 0, i == 1 ? OTHER : CLIENT, CH + i, TCP, 100 + i);
	slots = r.cm[0]->slots;
	r.cm[0]->slots = 0; /* a walk over all ids finds none */
	ibcm_forget(r.cm[0], CLIENT, r.now);
	r.cm[0]->slots = slots;
	assert_int_equal(rig_counter(&r, 0, "cm_now_ids"), 1);
	assert_int_equal(rig_state(&r, 0, OTHER, ids[1]), HCA_CTL_CM_LISTENING);
	assert_int_equal(rig_destroy(&r, 0, CLIENT, ids[0]), -ENOENT);
	rig_end(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_channel_ends),
		cmocka_unit_test(test_last_channel),
		cmocka_unit_test(test_forget_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
