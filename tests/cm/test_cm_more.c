/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Functions for programs that connect by address, apart from connections: listeners of all
 * addresses, ids that move to another channel, options, and groups.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cm_pair.h"

#define LIMIT_S 240 /* a longer step counts as hung */

static int
setup(void **state)
{
	alarm(LIMIT_S);
	pair_open(SOFTHCA_EXECUTOR_MANUAL, false);
	return 0;
}

static int
teardown(void **state)
{
	pair_close();
	return 0;
}

static struct sockaddr_storage
address(const char *text, uint16_t port)
{
	struct sockaddr_storage addr = {0};
	struct sockaddr_in *ip4 = (struct sockaddr_in *)&addr;
	struct sockaddr_in6 *ip6 = (struct sockaddr_in6 *)&addr;

	if (inet_pton(AF_INET, text, &ip4->sin_addr) == 1) {
		ip4->sin_family = AF_INET;
		ip4->sin_port = htons(port);
	} else {
		ip6->sin6_family = AF_INET6;
		ip6->sin6_port = htons(port);
		assert_int_equal(inet_pton(AF_INET6, text, &ip6->sin6_addr), 1);
	}
	return addr;
}

static int
bind_to(struct softhca_cm_id *id, const char *text, unsigned int flags)
{
	struct sockaddr_storage addr = address(text, CM_PORT);

	return softhca_cm_bind(id, (struct sockaddr *)&addr, flags);
}

/* ---- listeners ---- */

/* The wildcard of IPv6 takes both families, unless it is told not to. */
static void
wildcards(void **state)
{
	struct softhca_cm_id *all = new_id(1, SOFTHCA_CM_TCP);
	struct end client;
	struct softhca_cm_event e;

	assert_int_equal(bind_to(all, "::", 0), 0);
	assert_int_equal(softhca_cm_listen(all, 0), 0);
	for (uint32_t gid = 0; gid < 2; gid++) {
		begin(&client, gid, "", &e);
		assert_ptr_equal(e.listener, all);
		softhca_cm_destroy_id(e.id);
		await(0, SOFTHCA_CM_REJECTED, &e);
		end_close(&client);
	}
	softhca_cm_destroy_id(all);
}

/* Each family has a listener of its own at one port. */
static void
two_families(void **state)
{
	struct softhca_cm_id *of[2] = {new_id(1, SOFTHCA_CM_TCP), new_id(1, SOFTHCA_CM_TCP)};
	struct end client;
	struct softhca_cm_event e;

	assert_int_equal(bind_to(of[1], "::", SOFTHCA_CM_AFONLY), 0);
	assert_int_equal(bind_to(of[0], "0.0.0.0", 0), 0);
	for (uint32_t gid = 0; gid < 2; gid++)
		assert_int_equal(softhca_cm_listen(of[gid], 0), 0);
	for (uint32_t gid = 0; gid < 2; gid++) {
		begin(&client, gid, "", &e);
		assert_ptr_equal(e.listener, of[gid]);
		softhca_cm_destroy_id(e.id);
		await(0, SOFTHCA_CM_REJECTED, &e);
		end_close(&client);
	}
	for (uint32_t gid = 0; gid < 2; gid++)
		softhca_cm_destroy_id(of[gid]);
}

/* A port is shared by those that all say so. */
static void
reuse(void **state)
{
	struct softhca_cm_id *id[3];

	for (unsigned int i = 0; i < 3; i++)
		id[i] = new_id(1, SOFTHCA_CM_TCP);
	assert_int_equal(bind_to(id[0], "0.0.0.0", SOFTHCA_CM_REUSEADDR), 0);
	assert_int_equal(softhca_cm_set_option(id[1], SOFTHCA_CM_OPTION_REUSEADDR, 1), 0);
	assert_int_equal(bind_to(id[1], "0.0.0.0", 0), 0);
	assert_int_equal(bind_to(id[2], "0.0.0.0", 0), -EADDRINUSE);
	for (unsigned int i = 0; i < 3; i++)
		softhca_cm_destroy_id(id[i]);
}

/* Unfetched requests are refused with their listener. */
static void
listener_goes(void **state)
{
	struct softhca_cm_id *listener = listen_at(0, SOFTHCA_CM_TCP);
	struct softhca_cm_param param = {.retry_count = 7};
	struct softhca_cm_event e;
	struct end client;

	end_open(&client, 0, resolve_to(0, SOFTHCA_CM_TCP, CM_PORT));
	assert_int_equal(softhca_cm_modify_qp(client.id, client.qp, SOFTHCA_QPS_INIT), 0);
	param.qp_num = client.qp->qp_num;
	assert_int_equal(softhca_cm_connect(client.id, &param), 0);
	for (unsigned int i = 0; i < 1000; i++)
		softhca_embed_progress(embed);
	softhca_cm_destroy_id(listener);
	await(0, SOFTHCA_CM_REJECTED, &e);
	end_close(&client);
	nothing_waits();
}

/* ---- channels and options ---- */

/* Waiting events of an id move with it. */
static void
moved(void **state)
{
	struct softhca_cm_channel *own = softhca_cm_create_channel(side[1].ctx);
	struct softhca_cm_id *listener = listen_at(0, SOFTHCA_CM_TCP);
	struct end client, server;
	struct softhca_cm_event e;
	int err;

	assert_non_null(own);
	fcntl(own->fd, F_SETFL, O_NONBLOCK);
	connect_ends(&client, &server, 0);
	assert_int_equal(softhca_cm_disconnect(client.id), 0);
	await(0, SOFTHCA_CM_DISCONNECTED, &e);
	assert_int_equal(softhca_cm_migrate(server.id, own), 0);
	while ((err = softhca_cm_get_event(own, &e)) == -EAGAIN)
		softhca_embed_progress(embed);
	assert_int_equal(err, 0);
	assert_int_equal(e.type, SOFTHCA_CM_DISCONNECTED);
	assert_ptr_equal(e.id, server.id);
	nothing_waits();
	end_close(&client);
	end_close(&server);
	softhca_cm_destroy_id(listener);
	assert_int_equal(softhca_cm_destroy_channel(own), 0);
}

static void
path_options(void **state)
{
	struct softhca_cm_id *listener = listen_at(0, SOFTHCA_CM_TCP);
	struct sockaddr_storage to = address_of(1, 0, CM_PORT);
	struct softhca_cm_id *id = new_id(0, SOFTHCA_CM_TCP);
	struct softhca_cm_param param = {.retry_count = 7};
	struct softhca_cm_event e;
	struct softhca_qp_attr attr;
	struct end client, server;
	uint32_t mask;

	assert_int_equal(softhca_cm_set_option(id, SOFTHCA_CM_OPTION_TOS, 0x68), 0);
	assert_int_equal(softhca_cm_set_option(id, SOFTHCA_CM_OPTION_ACK_TIMEOUT, 19), 0);
	assert_int_equal(softhca_cm_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000), 0);
	await(0, SOFTHCA_CM_ADDR_RESOLVED, &e);
	assert_int_equal(softhca_cm_resolve_route(id, 1000), 0);
	await(0, SOFTHCA_CM_ROUTE_RESOLVED, &e);
	end_open(&client, 0, id);
	assert_int_equal(softhca_cm_modify_qp(id, client.qp, SOFTHCA_QPS_INIT), 0);
	param.qp_num = client.qp->qp_num;
	assert_int_equal(softhca_cm_connect(id, &param), 0);
	await(1, SOFTHCA_CM_CONNECT_REQUEST, &e);
	end_open(&server, 1, e.id);
	/* it is that of both directions */
	assert_int_equal(softhca_cm_init_qp_attr(server.id, SOFTHCA_QPS_RTR, &attr, &mask), 0);
	assert_true((mask & SOFTHCA_QP_AV) != 0);
	assert_int_equal(attr.ah_attr.traffic_class, 0x68);
	assert_int_equal(softhca_cm_init_qp_attr(server.id, SOFTHCA_QPS_RTS, &attr, &mask), 0);
	assert_int_equal(attr.timeout, 19);
	end_close(&server);
	await(0, SOFTHCA_CM_REJECTED, &e);
	end_close(&client);
	softhca_cm_destroy_id(listener);
}

/* Data may come before the confirmation: the program of the QP's event says so. */
static void
notified(void **state)
{
	struct softhca_cm_id *listener = listen_at(0, SOFTHCA_CM_TCP);
	struct softhca_cm_param param = {.retry_count = 7, .rnr_retry_count = 7};
	struct end client, server;
	struct softhca_cm_event e;

	begin(&client, 0, "", &e);
	end_open(&server, 1, e.id);
	assert_int_equal(softhca_cm_modify_qp(server.id, server.qp, SOFTHCA_QPS_RTS), 0);
	param.qp_num = server.qp->qp_num;
	assert_int_equal(softhca_cm_accept(server.id, &param), 0);
	await(0, SOFTHCA_CM_CONNECT_RESPONSE, &e);
	assert_int_equal(softhca_cm_modify_qp(client.id, client.qp, SOFTHCA_QPS_RTS), 0);
	assert_int_equal(softhca_cm_notify(server.id, SOFTHCA_EVENT_COMM_EST), 0);
	await(1, SOFTHCA_CM_ESTABLISHED, &e);
	assert_ptr_equal(e.id, server.id);
	carry(&client, &server, "before the confirmation");
	assert_int_equal(softhca_cm_establish(client.id), 0);
	carry(&server, &client, "after it");
	nothing_waits();
	end_close(&client);
	await(1, SOFTHCA_CM_DISCONNECTED, &e);
	end_close(&server);
	softhca_cm_destroy_id(listener);
}

/* ---- groups ---- */

struct member {
	struct end end;
	struct softhca_cm_event joined;
	uint32_t group;
};

/* Bound to an address of the HCA, so that it is known which one joins */
static void
join(struct member *m, unsigned int which, uint32_t gid, const char *text, unsigned int flags)
{
	struct sockaddr_storage own = address_of(which, gid, 0), group = address(text, 0);
	struct softhca_cm_id *id = new_id(which, SOFTHCA_CM_UDP);

	assert_int_equal(softhca_cm_bind(id, (struct sockaddr *)&own, 0), 0);
	end_open(&m->end, which, id);
	assert_int_equal(softhca_cm_modify_qp(id, m->end.qp, SOFTHCA_QPS_RTS), 0);
	assert_int_equal(softhca_cm_join(id, (struct sockaddr *)&group, flags, &m->group), 0);
	await(which, SOFTHCA_CM_MULTICAST_JOIN, &m->joined);
	assert_ptr_equal(m->joined.id, id);
	assert_int_equal(m->joined.group, m->group);
	assert_int_equal(m->joined.param.qp_num, 0xffffff);
}

static void
leave(struct member *m)
{
	assert_int_equal(softhca_cm_leave(m->end.id, m->group), 0);
	end_close(&m->end);
}

/* To the address that the event names */
static void
send_to_group(struct member *from, struct member *to)
{
	struct softhca_ah *ah = softhca_create_ah(from->end.side->pd, &from->joined.ah_attr);
	struct softhca_sge in = {(uintptr_t)to->end.mem, SLOT, to->end.mr->lkey};
	struct softhca_sge out = {(uintptr_t)from->end.mem + SLOT, 8, from->end.mr->lkey};
	struct softhca_recv_wr *bad_recv, recv = {.sg_list = &in, .num_sge = 1};
	struct softhca_send_wr *bad, send = {.sg_list = &out,
					     .num_sge = 1,
					     .opcode = SOFTHCA_WR_SEND,
					     .send_flags = SOFTHCA_SEND_SIGNALED};
	struct softhca_wc wc;

	assert_non_null(ah);
	send.wr.ud.ah = ah;
	send.wr.ud.remote_qpn = from->joined.param.qp_num;
	send.wr.ud.remote_qkey = from->joined.param.qkey;
	strcpy((char *)from->end.mem + SLOT, "to all!");
	assert_int_equal(softhca_post_recv(to->end.qp, &recv, &bad_recv), 0);
	assert_int_equal(softhca_post_send(from->end.qp, &send, &bad), 0);
	while (softhca_poll_cq(to->end.side->cq, 1, &wc) == 0)
		assert_true(softhca_poll_cq(from->end.side->cq, 1, &wc) >= 0);
	assert_string_equal((char *)to->end.mem + SOFTHCA_GRH_BYTES, "to all!");
	assert_int_equal(softhca_destroy_ah(ah), 0);
}

static void
groups(void **state)
{
	static const char *const texts[] = {"239.1.2.3", "ff0e::1:2"};

	for (uint32_t gid = 0; gid < 2; gid++) {
		struct member sender, receiver;
		union softhca_gid *group = &receiver.joined.ah_attr.dgid;

		join(&sender, 0, gid, texts[gid], SOFTHCA_CM_SEND_ONLY);
		join(&receiver, 1, gid, texts[gid], 0);
		assert_memory_equal(sender.joined.ah_attr.dgid.raw, group->raw, 16);
		assert_int_equal(softhca_attach_mcast(receiver.end.qp, group, 0), 0);
		send_to_group(&sender, &receiver);
		assert_int_equal(softhca_detach_mcast(receiver.end.qp, group, 0), 0);
		leave(&receiver);
		leave(&sender);
	}
}

/* Addresses that are no group, and numbers that are no membership of the id */
static void
no_group(void **state)
{
	struct sockaddr_storage own = address_of(0, 0, 0);
	struct softhca_cm_id *id = new_id(0, SOFTHCA_CM_UDP);
	uint32_t group;

	assert_int_equal(softhca_cm_bind(id, (struct sockaddr *)&own, 0), 0);
	assert_true(softhca_cm_join(id, (struct sockaddr *)&own, 0, &group) < 0);
	assert_true(softhca_cm_leave(id, 12345) < 0);
	softhca_cm_destroy_id(id);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(wildcards), T(two_families), T(reuse),  T(listener_goes), T(moved),
		T(notified),  T(path_options), T(groups), T(no_group),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
