/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Programs connect by address, between two HCAs and on one, with threads of the HCAs and without:
 * data flows, refusals arrive with their reasons, an end in any state leaves nothing.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cm_pair.h"

#define LIMIT_S 240 /* a longer step counts as hung */

static int
setup_threads(void **state)
{
	alarm(LIMIT_S);
	pair_open(SOFTHCA_EXECUTOR_THREADS, false);
	return 0;
}

static int
setup_manual(void **state)
{
	alarm(LIMIT_S);
	pair_open(SOFTHCA_EXECUTOR_MANUAL, false);
	return 0;
}

static int
setup_one_hca(void **state)
{
	alarm(LIMIT_S);
	pair_open(SOFTHCA_EXECUTOR_MANUAL, true);
	return 0;
}

static int
teardown(void **state)
{
	pair_close();
	return 0;
}

static void
end_both(struct end *first, struct end *second)
{
	struct softhca_cm_event e;

	assert_int_equal(softhca_cm_disconnect(first->id), 0);
	await((unsigned int)(second->side - side), SOFTHCA_CM_DISCONNECTED, &e);
	assert_ptr_equal(e.id, second->id);
	await((unsigned int)(first->side - side), SOFTHCA_CM_DISCONNECTED, &e);
	assert_ptr_equal(e.id, first->id);
}

/* IPv4 and IPv6; either side ends it. */
static void
data(void **state)
{
	for (uint32_t gid = 0; gid < 2; gid++) {
		struct softhca_cm_id *listener = listen_at(gid, SOFTHCA_CM_TCP);
		struct end client, server;

		connect_ends(&client, &server, gid);
		carry(&client, &server, "from the client");
		carry(&server, &client, "from the server");
		if (gid == 0)
			end_both(&client, &server);
		else
			end_both(&server, &client);
		end_close(&client);
		end_close(&server);
		softhca_cm_destroy_id(listener);
	}
}

/* Values of each end at the other */
static void
known(void **state)
{
	struct sockaddr_storage to = address_of(1, 0, CM_PORT), from = address_of(0, 0, 0);
	struct softhca_cm_id *listener = listen_at(0, SOFTHCA_CM_TCP);
	struct softhca_cm_info mine, theirs;
	struct end client, server;
	struct softhca_cm_event e;

	begin(&client, 0, "words", &e);
	assert_ptr_equal(e.listener, listener);
	assert_int_equal(e.param.qp_num, client.qp->qp_num);
	assert_int_equal(e.param.private_data_len, SOFTHCA_CM_CONNECT_PRIVATE);
	assert_memory_equal(e.param.private_data, "words\0", 6);
	assert_int_equal(e.param.responder_resources, 3);
	assert_int_equal(e.param.initiator_depth, 4);
	assert_int_equal(e.param.retry_count, 7);
	assert_int_equal(e.param.rnr_retry_count, 6);
	end_open(&server, 1, e.id);
	assert_int_equal(softhca_cm_query(client.id, &mine), 0);
	assert_int_equal(softhca_cm_query(server.id, &theirs), 0);
	assert_string_equal(softhca_cm_state_str(mine.state), "CONNECTING");
	assert_string_equal(softhca_cm_state_str(theirs.state), "REQUESTED");
	assert_memory_equal(&mine.dst, &to, sizeof(to));
	assert_memory_equal(&theirs.src, &to, sizeof(to));
	assert_memory_equal(&theirs.dst, &mine.src, sizeof(mine.src));
	((struct sockaddr_in *)&mine.src)->sin_port = 0;
	assert_memory_equal(&mine.src, &from, sizeof(from));
	assert_memory_equal(mine.sgid.raw, theirs.dgid.raw, 16);
	assert_memory_equal(mine.dgid.raw, theirs.sgid.raw, 16);
	assert_int_equal(mine.sgid_index, 0);
	assert_true(mine.service_id == (UINT64_C(0x01060000) | CM_PORT));
	end_close(&client);
	end_close(&server);
	softhca_cm_destroy_id(listener);
}

static void
refused(void **state)
{
	struct softhca_cm_id *listener = listen_at(0, SOFTHCA_CM_TCP);
	struct softhca_cm_event e;
	struct end client;

	begin(&client, 0, "", &e);
	assert_int_equal(softhca_cm_reject(e.id, 28, "no room", 7), 0);
	assert_int_equal(softhca_cm_destroy_id(e.id), 0);
	await(0, SOFTHCA_CM_REJECTED, &e);
	assert_ptr_equal(e.id, client.id);
	assert_int_equal(e.status, 28);
	assert_memory_equal(e.param.private_data, "no room", 8);
	end_close(&client);
	/* destroying a request also refuses it */
	begin(&client, 0, "", &e);
	assert_int_equal(softhca_cm_destroy_id(e.id), 0);
	await(0, SOFTHCA_CM_REJECTED, &e);
	end_close(&client);
	softhca_cm_destroy_id(listener);
}

static void
no_listener(void **state)
{
	struct softhca_cm_param param = {.retry_count = 7};
	struct softhca_cm_event e;
	struct end client;

	end_open(&client, 0, resolve_to(0, SOFTHCA_CM_TCP, 1));
	assert_int_equal(softhca_cm_modify_qp(client.id, client.qp, SOFTHCA_QPS_INIT), 0);
	param.qp_num = client.qp->qp_num;
	assert_int_equal(softhca_cm_connect(client.id, &param), 0);
	await(0, SOFTHCA_CM_REJECTED, &e);
	assert_int_equal(e.status, 8);
	end_close(&client);
}

static void
addresses(void **state)
{
	struct sockaddr_in strange = {.sin_family = AF_INET, .sin_addr = {htonl(0xc0000209)}};
	struct sockaddr_storage own = address_of(1, 0, CM_PORT);
	struct softhca_cm_id *listener = listen_at(0, SOFTHCA_CM_TCP),
			     *id = new_id(1, SOFTHCA_CM_TCP);
	struct softhca_cm_info info;

	assert_int_equal(softhca_cm_bind(id, (struct sockaddr *)&own, 0), -EADDRINUSE);
	assert_int_equal(softhca_cm_bind(id, (struct sockaddr *)&strange, 0), -EADDRNOTAVAIL);
	((struct sockaddr_in *)&own)->sin_port = 0;
	assert_int_equal(softhca_cm_bind(id, (struct sockaddr *)&own, 0), 0);
	assert_int_equal(softhca_cm_query(id, &info), 0);
	assert_int_not_equal(((struct sockaddr_in *)&info.src)->sin_port, 0);
	assert_int_equal(softhca_cm_bind(id, (struct sockaddr *)&own, 0), -EINVAL);
	softhca_cm_destroy_id(id);
	softhca_cm_destroy_id(listener);
	/* the port is free again */
	softhca_cm_destroy_id(listen_at(0, SOFTHCA_CM_TCP));
}

/* ---- datagrams ---- */

static void
open_datagrams(struct end *e, unsigned int which, struct softhca_cm_id *id)
{
	end_open(e, which, id);
	assert_int_equal(softhca_cm_modify_qp(id, e->qp, SOFTHCA_QPS_RTS), 0);
}

static void
send_datagram(struct end *from, struct end *to, const struct softhca_cm_event *where)
{
	struct softhca_ah *ah = softhca_create_ah(from->side->pd, &where->ah_attr);
	struct softhca_sge in = {(uintptr_t)to->mem, SLOT, to->mr->lkey};
	struct softhca_sge out = {(uintptr_t)from->mem + SLOT, 9, from->mr->lkey};
	struct softhca_recv_wr *bad_recv, recv = {.sg_list = &in, .num_sge = 1};
	struct softhca_send_wr *bad, send = {.sg_list = &out,
					     .num_sge = 1,
					     .opcode = SOFTHCA_WR_SEND,
					     .send_flags = SOFTHCA_SEND_SIGNALED};
	struct softhca_wc wc;
	int n, received = 0;

	assert_non_null(ah);
	send.wr.ud.ah = ah;
	send.wr.ud.remote_qpn = where->param.qp_num;
	send.wr.ud.remote_qkey = where->param.qkey;
	strcpy((char *)from->mem + SLOT, "datagram");
	assert_int_equal(softhca_post_recv(to->qp, &recv, &bad_recv), 0);
	assert_int_equal(softhca_post_send(from->qp, &send, &bad), 0);
	while (!received) {
		n = softhca_poll_cq(to->side->cq, 1, &wc);
		assert_true(n >= 0);
		if (n == 1 && wc.opcode == SOFTHCA_WC_RECV)
			received = 1;
		if (to->side != from->side)
			softhca_poll_cq(from->side->cq, 1, &wc);
	}
	assert_string_equal((char *)to->mem + SOFTHCA_GRH_BYTES, "datagram");
	assert_int_equal(softhca_destroy_ah(ah), 0);
}

/* The client learns where datagrams go; a server may refuse. */
static void
datagrams(void **state)
{
	struct softhca_cm_id *listener = listen_at(0, SOFTHCA_CM_UDP);
	struct softhca_cm_param param = {.private_data = "who?", .private_data_len = 4};
	struct softhca_cm_event e;
	struct end client, server;

	open_datagrams(&client, 0, resolve_to(0, SOFTHCA_CM_UDP, CM_PORT));
	param.qp_num = client.qp->qp_num;
	assert_int_equal(softhca_cm_connect(client.id, &param), 0);
	await(1, SOFTHCA_CM_CONNECT_REQUEST, &e);
	assert_memory_equal(e.param.private_data, "who?", 4);
	open_datagrams(&server, 1, e.id);
	param = (struct softhca_cm_param){.qp_num = server.qp->qp_num};
	assert_int_equal(softhca_cm_accept(server.id, &param), 0);
	await(0, SOFTHCA_CM_ESTABLISHED, &e);
	assert_int_equal(e.param.qp_num, server.qp->qp_num);
	assert_int_equal(e.param.qkey, 0x01234567);
	send_datagram(&client, &server, &e);
	end_close(&client);
	end_close(&server);
	softhca_cm_destroy_id(listener);
}

/* ---- ends in every state ---- */

/* How far a client goes before its id is destroyed */
enum stage {
	CREATED,
	RESOLVING,
	RESOLVED,
	CONNECTING,
	ANSWERED,
	ESTABLISHED,
	DISCONNECTING,
	STAGES
};

static void
go_to(enum stage stage, struct end *client, struct end *server)
{
	struct sockaddr_storage to = address_of(1, 0, CM_PORT);
	struct softhca_cm_param param = {.retry_count = 7};
	struct softhca_cm_event e;

	*client = *server = (struct end){0};
	if (stage >= ESTABLISHED) {
		connect_ends(client, server, 0);
		if (stage == DISCONNECTING)
			assert_int_equal(softhca_cm_disconnect(client->id), 0);
		return;
	}
	if (stage <= RESOLVING) {
		end_open(client, 0, new_id(0, SOFTHCA_CM_TCP));
		if (stage == RESOLVING)
			assert_int_equal(softhca_cm_resolve_addr(client->id, NULL,
								 (struct sockaddr *)&to, 1000),
					 0);
		return;
	}
	if (stage == RESOLVED) {
		end_open(client, 0, resolve_to(0, SOFTHCA_CM_TCP, CM_PORT));
		return;
	}
	begin(client, 0, "", &e);
	end_open(server, 1, e.id);
	if (stage != ANSWERED)
		return;
	assert_int_equal(softhca_cm_modify_qp(server->id, server->qp, SOFTHCA_QPS_RTS), 0);
	param.qp_num = server->qp->qp_num;
	assert_int_equal(softhca_cm_accept(server->id, &param), 0);
	await(0, SOFTHCA_CM_CONNECT_RESPONSE, &e);
}

/* The client's end goes first, or the server's; the other one learns of it, or goes unasked. */
static void
destroyed(void **state)
{
	struct softhca_cm_id *listener = listen_at(0, SOFTHCA_CM_TCP);

	for (unsigned int stage = 0; stage < 2 * STAGES; stage++) {
		struct end client, server;
		struct softhca_cm_event e;

		go_to(stage / 2, &client, &server);
		if (stage % 2 == 0) {
			end_close(&client);
			if (stage / 2 >= ESTABLISHED)
				await(1, SOFTHCA_CM_DISCONNECTED, &e);
			if (server.id != NULL)
				end_close(&server);
		} else {
			if (server.id != NULL)
				end_close(&server);
			if (stage / 2 == CONNECTING)
				await(0, SOFTHCA_CM_REJECTED, &e);
			if (stage / 2 >= ESTABLISHED)
				await(0, SOFTHCA_CM_DISCONNECTED, &e);
			end_close(&client);
		}
	}
	softhca_cm_destroy_id(listener);
	nothing_waits();
	/* and it works as before */
	data(state);
}

/* A program that ends without a word: its context is closed. */
static void
closed(void **state)
{
	struct softhca_cm_id *listener = listen_at(0, SOFTHCA_CM_TCP);
	struct end client, server;
	struct softhca_cm_event e;

	connect_ends(&client, &server, 0);
	assert_int_equal(softhca_close(side[0].ctx), 0);
	side[0].ctx = NULL;
	free(client.mem);
	while (softhca_cm_get_event(side[1].channel, &e) == -EAGAIN)
		softhca_embed_progress(embed);
	assert_int_equal(e.type, SOFTHCA_CM_DISCONNECTED);
	assert_ptr_equal(e.id, server.id);
	end_close(&server);
	softhca_cm_destroy_id(listener);
}

#define CONNECTIONS 100u

/* All alive at once; then all gone. */
static void
many(void **state)
{
	static struct end client[CONNECTIONS], server[CONNECTIONS];
	struct softhca_cm_id *listener = listen_at(0, SOFTHCA_CM_TCP);
	struct softhca_cm_event e;

	for (uint32_t i = 0; i < CONNECTIONS; i++)
		connect_ends(&client[i], &server[i], 0);
	for (uint32_t i = 0; i < CONNECTIONS; i++)
		carry(&client[i], &server[i], "one of many");
	for (uint32_t i = 0; i < CONNECTIONS; i++) {
		if (i % 2 == 0)
			end_both(&client[i], &server[i]);
		end_close(&client[i]);
		if (i % 2 != 0)
			await(1, SOFTHCA_CM_DISCONNECTED, &e);
	}
	for (uint32_t i = 0; i < CONNECTIONS; i++)
		end_close(&server[i]);
	softhca_cm_destroy_id(listener);
}

#define EACH(test) \
	cmocka_unit_test_setup_teardown(test, setup_threads, teardown), \
		cmocka_unit_test_setup_teardown(test, setup_manual, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(data),
		EACH(known),
		EACH(refused),
		EACH(no_listener),
		EACH(addresses),
		EACH(datagrams),
		EACH(destroyed),
		EACH(closed),
		EACH(many),
		cmocka_unit_test_setup_teardown(data, setup_one_hca, teardown),
		cmocka_unit_test_setup_teardown(datagrams, setup_one_hca, teardown),
		cmocka_unit_test_setup_teardown(destroyed, setup_one_hca, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
