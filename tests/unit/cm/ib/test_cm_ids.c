/* SPDX-License-Identifier: BSD-3-Clause */

/* Ids: their clients, ports, options, channels, datagrams, groups, and the end of addresses. */

#include <errno.h>
#include <string.h>

#include "abi_cqe.h"
#include "abi_qp_attr.h"
#include "cm_rig.h"

#define CLIENT 7u
#define OTHER 8u
#define SERVER 9u
#define CH 1u
#define CH2 2u
#define PORT 7174u
#define TCP HCA_CTL_CM_SPACE_TCP
#define UDP HCA_CTL_CM_SPACE_UDP

static struct rig r;
static struct hca_ctl_none none;

/* ---- ports ---- */

enum {
	ANY4,
	ANY6,
	ANY6_ONLY,
	ONE4,
	ONE6,
	HOWS
};

static int
bind_how(uint32_t id, uint32_t how, uint16_t port, uint32_t flags)
{
	static const uint32_t family[HOWS] = {RIG_IP4, RIG_IP6, RIG_IP6, RIG_IP4, RIG_IP6};
	const uint8_t *gid = how == ONE4 || how == ONE6 ? r.gid[0][family[how]] : NULL;

	return rig_bind(&r, 0, CLIENT, id, family[how], gid, port,
			flags | (how == ANY6_ONLY ? HCA_CTL_CM_AF_ONLY : 0));
}

static void
test_ports(void **state)
{
	/* of an id that has the port (row), and another one that wants it: 1: it may */
	static const uint8_t may[HOWS][HOWS] = {
		[ANY4] = {0, 0, 1, 0, 1}, [ANY6] = {0, 0, 0, 0, 0}, [ANY6_ONLY] = {1, 0, 0, 1, 0},
		[ONE4] = {0, 0, 1, 0, 1}, [ONE6] = {1, 0, 0, 1, 0},
	};

	rig_begin(&r, 1, NULL);
	for (uint32_t has = 0; has < HOWS; has++)
		for (uint32_t wants = 0; wants < HOWS; wants++)
			for (uint32_t reuse = 0; reuse < 4; reuse++) {
				uint32_t a = rig_create(&r, 0, CLIENT, CH, TCP);
				uint32_t b = rig_create(&r, 0, CLIENT, CH, TCP);
				bool good = may[has][wants] || reuse == 3;

				assert_int_equal(bind_how(a, has, PORT, reuse & 1), 0);
				assert_int_equal(bind_how(b, wants, PORT, reuse >> 1),
						 good ? 0 : -EADDRINUSE);
				/* two that reuse it: only one of them can listen */
				if (good && !may[has][wants])
					assert_int_equal(rig_listen(&r, 0, CLIENT, b, 0),
							 -EADDRINUSE);
				(void)rig_destroy(&r, 0, CLIENT, a);
				if (good)
					assert_int_equal(rig_listen(&r, 0, CLIENT, b, 0), 0);
				(void)rig_destroy(&r, 0, CLIENT, b);
			}
	assert_int_equal(rig_counter(&r, 0, "cm_now_ports"), 0);
	rig_end(&r);
}

static void
test_spaces(void **state)
{
	static const uint32_t spaces[] = {TCP, UDP, HCA_CTL_CM_SPACE_IB, HCA_CTL_CM_SPACE_IPOIB};
	uint32_t id;

	rig_begin(&r, 1, NULL);
	for (uint32_t i = 0; i < 4; i++) {
		id = rig_create(&r, 0, CLIENT, CH, spaces[i]);
		assert_int_equal(bind_how(id, ANY6, PORT, 0), 0);
		assert_int_equal(bind_how(id, ANY6, PORT + 1, 0), -EINVAL);
	}
	assert_int_equal(rig_create(&r, 0, CLIENT, CH, 0x107), 0);
	rig_end(&r);
}

static void
test_bad_addresses(void **state)
{
	uint32_t id;
	struct hca_ctl_cm_bind request = {.addr = {.family = 5}};
	struct hca_ctl_cm_bound bound;

	rig_begin(&r, 1, NULL);
	id = rig_create(&r, 0, CLIENT, CH, TCP);
	assert_int_equal(rig_bind(&r, 0, CLIENT, id, RIG_IP4, r.gid[1][RIG_IP4], PORT, 0),
			 -EADDRNOTAVAIL);
	request.id = id;
	assert_int_equal(rig_call(&r, 0, CLIENT, HCA_CTL_CM_BIND, &request, &bound), -EAFNOSUPPORT);
	/* an IPv4 address that is not mapped */
	request.addr.family = HCA_CTL_CM_IP4;
	assert_int_equal(rig_call(&r, 0, CLIENT, HCA_CTL_CM_BIND, &request, &bound), -EAFNOSUPPORT);
	/* an id that is not bound listens at a port that is chosen */
	assert_int_equal(rig_listen(&r, 0, CLIENT, id, 0), 0);
	assert_int_equal(rig_listen(&r, 0, CLIENT, id, 0), -EINVAL);
	rig_end(&r);
}

/* A specific listener is preferred to a wildcard, and that to the one of the other family. */
static void
test_which_listener(void **state)
{
	static const uint32_t how[] = {ANY6, ONE4};
	uint32_t id[2], client, expected;
	struct hca_ctl_cm_event e;

	for (uint32_t family = 0; family < RIG_GIDS; family++) {
		rig_begin(&r, 1, NULL);
		for (uint32_t i = 0; i < 2; i++) {
			id[i] = rig_create(&r, 0, CLIENT, CH, TCP);
			/* both reuse it until they listen: as Linux, only the first one can */
			assert_int_equal(bind_how(id[i], how[i], (uint16_t)(PORT + i), 0), 0);
			assert_int_equal(rig_listen(&r, 0, CLIENT, id[i], 0), 0);
		}
		client = rig_routed(&r, 1, OTHER, CH, TCP, r.gid[0][family], PORT + 1);
		assert_int_equal(rig_connect(&r, 1, OTHER, client, 5, NULL), 0);
		rig_run(&r, 5 * RIG_MS);
		expected = family == RIG_IP4 ? HCA_CTL_CM_EV_CONNECT_REQUEST : 0;
		assert_int_equal(rig_event(&r, 0, CLIENT, CH, &e), expected != 0);
		if (family == RIG_IP6) /* the listener of IPv4 does not have it */
			(void)rig_expect(&r, 1, OTHER, CH, HCA_CTL_CM_EV_REJECTED);
		rig_end(&r);
	}
}

/* ---- clients ---- */

/* Each operation with the id of another client, with one that was, with one that never was. */
/* Ids that share a port and do not listen cost its listener's requests nothing. */
static void
test_listeners_first(void **state)
{
	const struct ib_port *port;
	const struct ib_link *link;
	uint32_t listener;

	rig_begin(&r, 1, NULL);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(bind_how(rig_create(&r, 0, CLIENT, CH, HCA_CTL_CM_SPACE_TCP), ONE6,
					  PORT, HCA_CTL_CM_REUSE),
				 0);
	listener = rig_create(&r, 0, CLIENT, CH, HCA_CTL_CM_SPACE_TCP);
	assert_int_equal(bind_how(listener, ONE4, PORT, HCA_CTL_CM_REUSE), 0);
	assert_int_equal(bind_how(rig_create(&r, 0, CLIENT, CH, HCA_CTL_CM_SPACE_TCP), ONE6, PORT,
				  HCA_CTL_CM_REUSE),
			 0);
	assert_int_equal(rig_listen(&r, 0, CLIENT, listener, 0), 0);
	link = ib_hash_next(&r.cm[0]->ports, (uint64_t)HCA_CTL_CM_SPACE_TCP << 16 | PORT, NULL);
	assert_non_null(link);
	port = IB_CONTAINER(link, struct ib_port, link);
	assert_int_equal(IB_CONTAINER(port->ids.next, struct ib_id, in_port)->number, listener);
	rig_end(&r);
}

static void
test_owners(void **state)
{
	uint32_t id, gone, bad[3];
	struct hca_ctl_cm_info info;

	rig_begin(&r, 1, NULL);
	id = rig_create(&r, 0, CLIENT, CH, TCP);
	gone = rig_create(&r, 0, OTHER, CH, TCP);
	assert_int_equal(rig_destroy(&r, 0, OTHER, gone), 0);
	bad[0] = id;
	bad[1] = gone;
	bad[2] = 0xfffff;
	for (uint32_t i = 0; i < 3; i++)
		for (uint32_t op = HCA_CTL_CM_DESTROY; op < HCA_CTL_CM_EVENT; op++) {
			union {
				uint32_t id;
				struct hca_ctl_cm_bind bind;
				struct hca_ctl_cm_resolve resolve;
				struct hca_ctl_cm_param param;
				struct hca_ctl_cm_reject reject;
				struct hca_ctl_cm_join join;
				struct hca_ctl_cm_attr attr;
				struct hca_ctl_cm_info info;
			} request = {.id = 0}, answer;

			if (op == HCA_CTL_CM_LEAVE)
				continue;
			request.id = bad[i];
			if (op == HCA_CTL_CM_BIND)
				request.bind.id = bad[i];
			if (op == HCA_CTL_CM_RESOLVE)
				request.resolve.id = bad[i];
			if (op == HCA_CTL_CM_JOIN)
				request.join.id = bad[i];
			assert_int_equal(rig_call(&r, 0, OTHER, op, &request, &answer), -ENOENT);
		}
	assert_int_equal(rig_call(&r, 0, CLIENT, HCA_CTL_CM_QUERY, &id, &info), 0);
	assert_int_equal(info.state, HCA_CTL_CM_IDLE);
	rig_end(&r);
}

/* Numbers are not used again soon: one that is destroyed names nothing. */
static void
test_numbers(void **state)
{
	uint32_t first, id;

	rig_begin(&r, 1, NULL);
	first = rig_create(&r, 0, CLIENT, CH, TCP);
	assert_int_equal(rig_destroy(&r, 0, CLIENT, first), 0);
	for (uint32_t i = 0; i < 100000; i++) {
		id = rig_create(&r, 0, CLIENT, CH, TCP);
		assert_int_not_equal(id, 0);
		assert_int_not_equal(id, first);
		assert_int_equal(rig_destroy(&r, 0, CLIENT, id), 0);
	}
	rig_end(&r);
}

/* ---- channels ---- */

static void
test_signals(void **state)
{
	struct hca_ctl_cm_event e;
	uint32_t id[3];

	rig_begin(&r, 1, NULL);
	for (uint32_t i = 0; i < 3; i++) {
		id[i] = rig_create(&r, 0, CLIENT, CH, TCP);
		assert_int_equal(rig_resolve(&r, 0, CLIENT, id[i], r.gid[1][0], PORT), 0);
	}
	rig_run(&r, RIG_MS);
	/* one when the first begins to wait, one with each that is fetched while others wait */
	assert_int_equal(r.signals[0][CH], 1);
	for (uint32_t i = 0; i < 3; i++) {
		e = rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_ADDR_RESOLVED);
		assert_int_equal(e.left, 2 - i);
		assert_int_equal(r.signals[0][CH], i == 2 ? 3 : 2 + i);
	}
	assert_false(rig_event(&r, 0, CLIENT, CH, &e));
	assert_false(rig_event(&r, 0, OTHER, CH, &e));
	rig_end(&r);
}

/* An id moves with its waiting events, a listener with its requests. */
static void
test_move(void **state)
{
	struct hca_ctl_cm_move move = {.channel = CH2};
	struct hca_ctl_cm_event e;
	uint32_t id, other, client;

	rig_begin(&r, 1, NULL);
	id = rig_listener(&r, 0, CLIENT, CH, TCP, PORT);
	other = rig_create(&r, 0, CLIENT, CH, TCP);
	assert_int_equal(rig_resolve(&r, 0, CLIENT, other, r.gid[1][0], PORT), 0);
	client = rig_routed(&r, 1, OTHER, CH, TCP, r.gid[0][RIG_IP4], PORT);
	assert_int_equal(rig_connect(&r, 1, OTHER, client, 5, NULL), 0);
	rig_run(&r, 5 * RIG_MS);
	move.id = id;
	assert_int_equal(rig_call(&r, 0, CLIENT, HCA_CTL_CM_MOVE, &move, &none), 0);
	assert_int_equal(rig_call(&r, 0, CLIENT, HCA_CTL_CM_MOVE, &move, &none), 0);
	assert_int_equal(r.signals[0][CH2], 1);
	(void)rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_ADDR_RESOLVED);
	assert_false(rig_event(&r, 0, CLIENT, CH, &e));
	e = rig_expect(&r, 0, CLIENT, CH2, HCA_CTL_CM_EV_CONNECT_REQUEST);
	/* the new id is of the channel of its listener */
	assert_int_equal(rig_accept(&r, 0, CLIENT, e.id, 6, NULL), 0);
	rig_run(&r, 5 * RIG_MS);
	(void)rig_expect(&r, 1, OTHER, CH, HCA_CTL_CM_EV_CONNECT_RESPONSE);
	assert_int_equal(rig_establish(&r, 1, OTHER, client), 0);
	rig_run(&r, 5 * RIG_MS);
	(void)rig_expect(&r, 0, CLIENT, CH2, HCA_CTL_CM_EV_ESTABLISHED);
	rig_end(&r);
}

/* ---- options ---- */

static int
option(uint32_t id, uint32_t name, uint32_t value)
{
	struct hca_ctl_cm_option request = {.id = id, .option = name, .value = value};

	return rig_call(&r, 0, CLIENT, HCA_CTL_CM_OPTION, &request, &none);
}

static void
test_options(void **state)
{
	uint32_t id, listener;

	rig_begin(&r, 1, NULL);
	listener = rig_listener(&r, 0, CLIENT, CH, TCP, PORT);
	assert_int_equal(option(listener, HCA_CTL_CM_OPTION_REUSE, 1), -EINVAL);
	assert_int_equal(option(listener, HCA_CTL_CM_OPTION_AF_ONLY, 1), -EINVAL);
	id = rig_routed(&r, 0, CLIENT, CH, TCP, r.gid[1][RIG_IP4], PORT);
	assert_int_equal(option(id, HCA_CTL_CM_OPTION_TOS, 0x68), 0);
	assert_int_equal(option(id, HCA_CTL_CM_OPTION_ACK_TIMEOUT, 32), -EINVAL);
	assert_int_equal(option(id, HCA_CTL_CM_OPTION_ACK_TIMEOUT, 14), 0);
	assert_int_equal(option(id, 99, 0), -EINVAL);
	assert_int_equal(rig_connect(&r, 0, CLIENT, id, 5, NULL), 0);
	assert_int_equal(rig_last(&r, 0, IB_MAD_REQ)->req.primary_traffic_class, 0x68);
	assert_int_equal(rig_last(&r, 0, IB_MAD_REQ)->req.primary_ack_timeout, 14);
	id = rig_create(&r, 0, CLIENT, CH, UDP);
	assert_int_equal(option(id, HCA_CTL_CM_OPTION_ACK_TIMEOUT, 14), -EINVAL);
	rig_end(&r);
}

static void
test_private_lengths(void **state)
{
	struct hca_ctl_cm_param param;
	uint32_t id, udp;

	rig_begin(&r, 1, NULL);
	id = rig_routed(&r, 0, CLIENT, CH, TCP, r.gid[1][RIG_IP4], PORT);
	udp = rig_routed(&r, 0, CLIENT, CH, UDP, r.gid[1][RIG_IP4], PORT);
	param = rig_param(id, 5, NULL);
	param.private_len = 57;
	assert_int_equal(rig_call(&r, 0, CLIENT, HCA_CTL_CM_CONNECT, &param, &none), -EINVAL);
	param.private_len = 56;
	assert_int_equal(rig_call(&r, 0, CLIENT, HCA_CTL_CM_CONNECT, &param, &none), 0);
	param.id = udp;
	param.private_len = 181;
	assert_int_equal(rig_call(&r, 0, CLIENT, HCA_CTL_CM_CONNECT, &param, &none), -EINVAL);
	param.private_len = 180;
	assert_int_equal(rig_call(&r, 0, CLIENT, HCA_CTL_CM_CONNECT, &param, &none), 0);
	rig_end(&r);
}

/* Data came before the RTU. */
static void
test_notify(void **state)
{
	struct hca_ctl_cm_notify n = {.event = HCA_EVENT_COMM_EST};
	struct hca_ctl_cm_event e;
	uint32_t id;

	rig_begin(&r, 1, NULL);
	(void)rig_listener(&r, 1, SERVER, CH, TCP, PORT);
	id = rig_routed(&r, 0, CLIENT, CH, TCP, r.gid[1][RIG_IP4], PORT);
	n.id = id;
	assert_int_equal(rig_call(&r, 0, CLIENT, HCA_CTL_CM_NOTIFY, &n, &none), -EINVAL);
	assert_int_equal(rig_connect(&r, 0, CLIENT, id, 5, NULL), 0);
	rig_run(&r, 5 * RIG_MS);
	e = rig_expect(&r, 1, SERVER, CH, HCA_CTL_CM_EV_CONNECT_REQUEST);
	assert_int_equal(rig_accept(&r, 1, SERVER, e.id, 6, NULL), 0);
	n.id = e.id;
	assert_int_equal(rig_call(&r, 1, SERVER, HCA_CTL_CM_NOTIFY, &n, &none), 0);
	assert_int_equal(rig_call(&r, 1, SERVER, HCA_CTL_CM_NOTIFY, &n, &none), -EISCONN);
	(void)rig_expect(&r, 1, SERVER, CH, HCA_CTL_CM_EV_ESTABLISHED);
	rig_run(&r, 5 * RIG_MS);
	(void)rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_CONNECT_RESPONSE);
	assert_int_equal(rig_establish(&r, 0, CLIENT, id), 0);
	rig_run(&r, 5 * RIG_MS);
	assert_false(rig_event(&r, 1, SERVER, CH, &e));
	rig_end(&r);
}

/* ---- datagrams ---- */

static uint32_t
asked(uint32_t *child)
{
	struct hca_ctl_cm_event e;
	uint32_t id;

	rig_begin(&r, 1, NULL);
	(void)rig_listener(&r, 1, SERVER, CH, UDP, PORT);
	id = rig_routed(&r, 0, CLIENT, CH, UDP, r.gid[1][RIG_IP6], PORT);
	assert_int_equal(rig_connect(&r, 0, CLIENT, id, 5, "who?"), 0);
	rig_run(&r, 5 * RIG_MS);
	e = rig_expect(&r, 1, SERVER, CH, HCA_CTL_CM_EV_CONNECT_REQUEST);
	assert_int_equal(e.param.private_len, 180);
	assert_string_equal((const char *)e.param.private, "who?");
	*child = e.id;
	return id;
}

static void
test_datagrams(void **state)
{
	struct hca_ctl_cm_ask ask = {.qp_state = HCA_QPS_INIT};
	struct hca_ctl_cm_attr attr;
	struct hca_ctl_cm_event e;
	uint32_t child, id = asked(&child);
	struct rig_message again = {.way = r.log[0].way};

	assert_int_equal(rig_accept(&r, 1, SERVER, child, 0x66, "me"), 0);
	rig_run(&r, 5 * RIG_MS);
	e = rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_ESTABLISHED);
	assert_int_equal(e.id, id);
	assert_int_equal(e.param.qpn, 0x66);
	assert_int_equal(e.param.qkey, 0x01234567);
	assert_int_equal(e.param.private_len, 136);
	assert_string_equal((const char *)e.param.private, "me");
	assert_memory_equal(e.dgid, r.gid[1][RIG_IP6], 16);
	assert_int_equal(e.gid_index, RIG_IP6);
	/* its repetition is answered without the program, even when the id has gone */
	for (uint32_t i = 0; i < 2; i++) {
		ib_mad_build(&r.log[0].mad, again.mad);
		rig_put(&r, &again, 1);
		rig_run(&r, 5 * RIG_MS);
		assert_int_equal(rig_count(&r, 1, IB_MAD_SIDR_REP), 2 + i);
		assert_false(rig_event(&r, 1, SERVER, CH, &e));
		if (i == 0)
			assert_int_equal(rig_destroy(&r, 1, SERVER, child), 0);
	}
	ask.id = id;
	assert_int_equal(rig_call(&r, 0, CLIENT, HCA_CTL_CM_QP_ATTR, &ask, &attr), 0);
	assert_int_equal(attr.mask, HCA_QP_ATTR_STATE | HCA_QP_ATTR_PKEY_INDEX | HCA_QP_ATTR_PORT |
					    HCA_QP_ATTR_QKEY);
	assert_int_equal(attr.qkey, 0x01234567);
	rig_run(&r, 60 * RIG_SECOND);
	assert_int_equal(rig_counter(&r, 1, "cm_now_halves"), 0);
	assert_int_equal(rig_counter(&r, 1, "cm_now_orphans"), 0);
	rig_end(&r);
}

static void
test_datagrams_refused(void **state)
{
	struct hca_ctl_cm_event e;
	uint32_t child;

	/* by a call, by the end of the id */
	for (uint32_t i = 0; i < 2; i++) {
		(void)asked(&child);
		if (i == 0)
			assert_int_equal(rig_reject(&r, 1, SERVER, child, "no"), 0);
		assert_int_equal(rig_destroy(&r, 1, SERVER, child), 0);
		rig_run(&r, 5 * RIG_MS);
		e = rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_UNREACHABLE);
		assert_int_equal(e.status, IB_MAD_SIDR_REJECTED);
		assert_string_equal((const char *)e.param.private, i == 0 ? "no" : "");
		rig_end(&r);
	}
	/* no such service; nothing answers */
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t id;

		rig_begin(&r, 1, NULL);
		(void)rig_listener(&r, 1, SERVER, CH, TCP, PORT);
		id = rig_routed(&r, 0, CLIENT, CH, UDP, r.gid[1][RIG_IP4], PORT);
		r.fate = i == 0 ? NULL : rig_lost;
		assert_int_equal(rig_connect(&r, 0, CLIENT, id, 5, NULL), 0);
		rig_run(&r, 200 * RIG_SECOND);
		e = rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_UNREACHABLE);
		assert_int_equal(e.status, i == 0 ? IB_MAD_SIDR_SERVICE_ID : -ETIMEDOUT);
		assert_int_equal(rig_count(&r, 0, IB_MAD_SIDR_REQ), i == 0 ? 1 : 16);
		rig_end(&r);
	}
}

/* In another partition there is no such service; a limited member of this one may ask. */
static void
test_datagrams_pkey(void **state)
{
	static const uint16_t pkeys[] = {0x8001, 0x0001, 0x7fff};
	struct hca_ctl_cm_event e;
	uint32_t child;

	(void)asked(&child);
	for (uint32_t i = 0; i < 3; i++) {
		struct rig_message m = {.way = r.log[0].way};
		struct ib_mad mad = r.log[0].mad;

		mad.sidr_req.request += 1 + i;
		mad.sidr_req.pkey = pkeys[i];
		ib_mad_build(&mad, m.mad);
		rig_put(&r, &m, 1);
		rig_run(&r, 5 * RIG_MS);
		assert_int_equal(rig_event(&r, 1, SERVER, CH, &e), i == 2);
		if (i == 2)
			continue;
		assert_int_equal(rig_count(&r, 1, IB_MAD_SIDR_REP), 1 + i);
		assert_int_equal(rig_last(&r, 1, IB_MAD_SIDR_REP)->sidr_rep.status,
				 IB_MAD_SIDR_SERVICE_ID);
	}
	rig_end(&r);
}

/* ---- groups ---- */

static int
join(uint32_t id, const char *text, uint32_t flags, uint32_t *number)
{
	struct hca_ctl_cm_join request = {.addr = ib_ip_any(HCA_CTL_CM_IP4),
					  .id = id,
					  .flags = flags};

	memcpy(request.addr.gid + 12, text, 4);
	return rig_call(&r, 0, CLIENT, HCA_CTL_CM_JOIN, &request, number);
}

static void
test_groups(void **state)
{
	static const char group[] = {(char)239, 1, 2, 3, 0}, single[] = {10, 0, 0, 9, 0};
	uint32_t id, other, number[3];
	struct hca_ctl_cm_event e;

	rig_begin(&r, 1, NULL);
	id = rig_create(&r, 0, CLIENT, CH, UDP);
	assert_int_equal(join(id, group, 0, number), -EINVAL);
	assert_int_equal(bind_how(id, ONE4, 0, 0), 0);
	assert_int_equal(join(id, single, 0, number), -EINVAL);
	assert_int_equal(join(id, group, 0, number), 0);
	e = rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_MULTICAST_JOIN);
	assert_int_equal(e.group, number[0]);
	assert_int_equal(e.param.qpn, 0xffffff);
	assert_int_equal(e.param.qkey, 0x01234567);
	assert_memory_equal(e.dgid + 10, "\xff\xff\xef\1\2\3", 6);
	assert_int_equal(r.joined[0], 1);
	/* a second member, a sender: the group is announced already */
	other = rig_create(&r, 0, CLIENT, CH, UDP);
	assert_int_equal(bind_how(other, ONE4, 0, 0), 0);
	assert_int_equal(join(other, group, 0, number + 1), 0);
	assert_int_equal(join(other, group, 1, number + 2), 0);
	assert_int_equal(r.joined[0], 1);
	assert_int_equal(rig_call(&r, 0, OTHER, HCA_CTL_CM_LEAVE, number, &none), -ENOENT);
	assert_int_equal(rig_call(&r, 0, CLIENT, HCA_CTL_CM_LEAVE, number, &none), 0);
	assert_int_equal(rig_call(&r, 0, CLIENT, HCA_CTL_CM_LEAVE, number, &none), -ENOENT);
	assert_int_equal(r.left[0], 0);
	/* waiting events of a membership end with it */
	assert_int_equal(rig_call(&r, 0, CLIENT, HCA_CTL_CM_LEAVE, number + 1, &none), 0);
	assert_int_equal(r.left[0], 1);
	e = rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_MULTICAST_JOIN);
	assert_int_equal(e.group, number[2]);
	assert_int_equal(rig_destroy(&r, 0, CLIENT, other), 0);
	assert_int_equal(rig_counter(&r, 0, "cm_now_memberships"), 0);
	assert_int_equal(r.joined[0], 1);
	rig_end(&r);
}

/* The peer's datagrams have another Q_Key than the group; the address has gone. */
static void
test_groups_fail(void **state)
{
	static const char group[] = {(char)239, 1, 2, 3, 0};
	struct hca_ctl_gid gone = {.vlan_id = 0xffff};
	struct hca_ctl_cm_param param;
	struct hca_ctl_cm_event e;
	uint32_t child, number, id = asked(&child);

	param = rig_param(child, 5, NULL);
	param.qkey = 0x1111;
	assert_int_equal(rig_call(&r, 1, SERVER, HCA_CTL_CM_ACCEPT, &param, &none), 0);
	rig_run(&r, 5 * RIG_MS);
	(void)rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_ESTABLISHED);
	assert_int_equal(join(id, group, 0, &number), 0);
	e = rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_MULTICAST_ERROR);
	assert_int_equal(e.status, -EINVAL);
	assert_int_equal(e.group, number);
	assert_int_equal(rig_call(&r, 0, CLIENT, HCA_CTL_CM_LEAVE, &number, &none), 0);

	id = rig_create(&r, 0, CLIENT, CH, UDP);
	assert_int_equal(bind_how(id, ONE4, 0, 0), 0);
	ibcm_set_gid(r.cm[0], RIG_IP4, &gone, r.now);
	(void)rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_ADDR_CHANGE);
	assert_int_equal(join(id, group, 0, &number), 0);
	e = rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_MULTICAST_ERROR);
	assert_int_equal(e.status, -EADDRNOTAVAIL);
	rig_end(&r);
}

/* ---- addresses and the HCA ---- */

static void
test_address_changes(void **state)
{
	struct hca_ctl_gid gid = {.vlan_id = 0xffff, .valid = 0};
	struct hca_ctl_cm_event e;
	uint32_t id, wild;

	rig_begin(&r, 1, NULL);
	id = rig_create(&r, 0, CLIENT, CH, TCP);
	wild = rig_create(&r, 0, CLIENT, CH, TCP);
	assert_int_equal(bind_how(id, ONE4, 0, 0), 0);
	assert_int_equal(bind_how(wild, ANY4, 0, 0), 0);
	/* two changes, one event that waits */
	ibcm_set_gid(r.cm[0], RIG_IP4, &gid, r.now);
	gid.valid = 1;
	memcpy(gid.gid, r.gid[0][RIG_IP4], 16);
	ibcm_set_gid(r.cm[0], RIG_IP4, &gid, r.now);
	gid.mac[0] = 2;
	ibcm_set_gid(r.cm[0], RIG_IP4, &gid, r.now);
	e = rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_ADDR_CHANGE);
	assert_int_equal(e.id, id);
	assert_false(rig_event(&r, 0, CLIENT, CH, &e));
	rig_end(&r);
}

static void
test_dead(void **state)
{
	struct hca_ctl_cm_event e;
	uint32_t id, listener, sent, seen = 0;

	rig_begin(&r, 1, NULL);
	listener = rig_listener(&r, 0, CLIENT, CH, TCP, PORT);
	id = rig_routed(&r, 1, OTHER, CH, TCP, r.gid[0][RIG_IP4], PORT);
	assert_int_equal(rig_connect(&r, 1, OTHER, id, 5, NULL), 0);
	rig_run(&r, 5 * RIG_MS);
	id = rig_routed(&r, 0, CLIENT, CH2, TCP, r.gid[1][RIG_IP4], PORT);
	assert_int_equal(rig_connect(&r, 0, CLIENT, id, 5, NULL), 0);
	sent = r.sent;
	r.nmessages = 0; /* the peer gets none */
	ibcm_dead(r.cm[0], r.now);
	while (rig_event(&r, 0, CLIENT, CH, &e))
		seen += e.type == HCA_CTL_CM_EV_DEVICE_REMOVAL && e.id == listener;
	assert_int_equal(seen, 1);
	(void)rig_expect(&r, 0, CLIENT, CH2, HCA_CTL_CM_EV_DEVICE_REMOVAL);
	assert_int_equal(rig_create(&r, 0, CLIENT, CH, TCP), 0);
	assert_int_equal(rig_listen(&r, 0, CLIENT, id, 0), -ENODEV);
	assert_int_equal(rig_destroy(&r, 0, CLIENT, id), 0);
	rig_run(&r, 5 * RIG_MS);
	assert_int_equal(r.sent, sent);
	rig_end(&r);
}

/* To the wildcard or a loopback address: the HCA itself */
static void
test_own_address(void **state)
{
	const uint8_t own[][16] = {{[10] = 0xff, [11] = 0xff},
				   {[10] = 0xff, 0xff, 127, 0, 0, 1},
				   {[10] = 0xff, 0xff, 127, 255, 0, 9}};
	struct hca_ctl_cm_info info;
	uint32_t id;

	for (uint32_t i = 0; i < 3; i++) {
		rig_begin(&r, 1, NULL);
		id = rig_create(&r, 0, CLIENT, CH, TCP);
		assert_int_equal(rig_resolve(&r, 0, CLIENT, id, own[i], PORT), 0);
		rig_run(&r, RIG_MS);
		(void)rig_expect(&r, 0, CLIENT, CH, HCA_CTL_CM_EV_ADDR_RESOLVED);
		assert_int_equal(rig_call(&r, 0, CLIENT, HCA_CTL_CM_QUERY, &id, &info), 0);
		assert_memory_equal(info.dst.gid, r.gid[0][RIG_IP4], 16);
		rig_end(&r);
	}
}

/* A loopback address is bound as the wildcard of its family, with the port. */
static void
test_loopback(void **state)
{
	const struct hca_ctl_cm_addr addr[] = {
		{.gid = {[10] = 0xff, 0xff, 127, 0, 0, 1}, .family = HCA_CTL_CM_IP4, .port = PORT},
		{.gid = {[15] = 1}, .family = HCA_CTL_CM_IP6, .port = PORT},
	};
	struct hca_ctl_cm_bind request;
	struct hca_ctl_cm_bound bound;
	struct hca_ctl_cm_addr any;

	rig_begin(&r, 1, NULL);
	for (uint32_t i = 0; i < 2; i++) {
		request = (struct hca_ctl_cm_bind){.addr = addr[i], .flags = HCA_CTL_CM_AF_ONLY};
		request.id = rig_create(&r, 0, CLIENT, CH, TCP);
		any = ib_ip_any(addr[i].family);
		assert_int_equal(rig_call(&r, 0, CLIENT, HCA_CTL_CM_BIND, &request, &bound), 0);
		assert_memory_equal(bound.addr.gid, any.gid, sizeof(any.gid));
		assert_int_equal(bound.addr.port, PORT);
		assert_int_equal(bound.gid_index, HCA_CTL_CM_NO_GID);
	}
	rig_end(&r);
}

static void
test_list(void **state)
{
	struct ibcm_entry entry[8];
	uint32_t id[3];

	rig_begin(&r, 1, NULL);
	for (uint32_t i = 0; i < 3; i++)
		id[i] = rig_listener(&r, 0, CLIENT, CH, TCP, (uint16_t)(PORT + i));
	assert_int_equal(ibcm_list(r.cm[0], 0, entry, 2), 2);
	assert_int_equal(ibcm_list(r.cm[0], entry[1].index + 1, entry, 8), 1);
	assert_int_equal(entry[0].id, id[2]);
	assert_int_equal(entry[0].state, HCA_CTL_CM_LISTENING);
	assert_int_equal(entry[0].backlog, 1024);
	assert_int_equal(entry[0].owner, CLIENT);
	assert_int_equal(entry[0].src.port, PORT + 2);
	rig_end(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ports),
		cmocka_unit_test(test_spaces),
		cmocka_unit_test(test_bad_addresses),
		cmocka_unit_test(test_which_listener),
		cmocka_unit_test(test_listeners_first),
		cmocka_unit_test(test_owners),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_move),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_private_lengths),
		cmocka_unit_test(test_notify),
		cmocka_unit_test(test_datagrams),
		cmocka_unit_test(test_datagrams_refused),
		cmocka_unit_test(test_datagrams_pkey),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_groups_fail),
		cmocka_unit_test(test_address_changes),
		cmocka_unit_test(test_dead),
		cmocka_unit_test(test_own_address),
		cmocka_unit_test(test_loopback),
		cmocka_unit_test(test_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
