/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A program of the system's librdmacm, which uses no name of softhca: connections between all
 * addresses of the devices that there are, also as GIDs (AF_IB), QPs of librdmacm and of the
 * program, ids that move, many ids, a listener with a wildcard, ids that are destroyed while they
 * connect.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#define CHECK(what) \
	do { \
		if (!(what)) { \
			fprintf(stderr, "%s:%d: not true: %s (errno %d)\n", __FILE__, __LINE__, \
				#what, errno); \
			exit(1); \
		} \
	} while (0)

#define MANY 500
#define PORT 1

struct end {
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

/* A GID of device i that is an IPv4 address, as an address */
static struct sockaddr_in
address_of(struct ibv_context *context, uint16_t port)
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(port)};
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	union ibv_gid gid;

	for (int i = 0; i < 16; i++) {
		CHECK(ibv_query_gid(context, PORT, i, &gid) == 0);
		if (memcmp(gid.raw, mapped, sizeof(mapped)) == 0) {
			memcpy(&addr.sin_addr, gid.raw + 12, 4);
			return addr;
		}
	}
	CHECK(!"no IPv4 address");
	return addr;
}

static struct rdma_cm_event *
event_expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	CHECK(rdma_get_cm_event(channel, &event) == 0);
	if (event->event != type)
		fprintf(stderr, "%s, status %d, expected %s\n", rdma_event_str(event->event),
			event->status, rdma_event_str(type));
	CHECK(event->event == type);
	return event;
}

static void
event_take(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	CHECK(rdma_ack_cm_event(event_expect(channel, type)) == 0);
}

static struct ibv_qp_init_attr
qp_attr(struct end *end)
{
	end->cq = ibv_create_cq(end->id->verbs, 8, NULL, NULL, 0);
	CHECK(end->cq != NULL);
	return (struct ibv_qp_init_attr){
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
}

static void
qp_step(struct end *end, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask;

	CHECK(rdma_init_qp_attr(end->id, &attr, &mask) == 0);
	CHECK(ibv_modify_qp(end->qp, &attr, mask) == 0);
}

/* own: the QP is the program's, which brings it to RTS itself */
static void
qp_make(struct end *end, bool own)
{
	struct ibv_qp_init_attr init = qp_attr(end);

	if (!own) {
		CHECK(rdma_create_qp(end->id, NULL, &init) == 0);
		end->qp = end->id->qp;
		return;
	}
	end->qp = ibv_create_qp(end->id->pd, &init);
	CHECK(end->qp != NULL);
	qp_step(end, IBV_QPS_INIT);
}

static void
end_free(struct end *end, bool own)
{
	if (own)
		CHECK(ibv_destroy_qp(end->qp) == 0);
	else
		rdma_destroy_qp(end->id);
	CHECK(ibv_destroy_cq(end->cq) == 0);
	CHECK(rdma_destroy_id(end->id) == 0);
}

static uint16_t
listener_begin(struct rdma_event_channel *channel, struct rdma_cm_id **id)
{
	struct sockaddr_in any = {.sin_family = AF_INET};

	CHECK(rdma_create_id(channel, id, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(*id, (struct sockaddr *)&any) == 0);
	CHECK((*id)->verbs == NULL); /* all devices */
	CHECK(rdma_get_src_port(*id) != 0);
	CHECK(rdma_listen(*id, 0) == 0);
	return ntohs(rdma_get_src_port(*id));
}

static void
client_resolve(struct rdma_event_channel *channel, struct end *end, void *to)
{
	CHECK(rdma_create_id(channel, &end->id, end, RDMA_PS_TCP) == 0);
	CHECK(rdma_resolve_addr(end->id, NULL, to, 2000) == 0);
	event_take(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(end->id->verbs != NULL);
	CHECK(rdma_resolve_route(end->id, 2000) == 0);
	event_take(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static struct rdma_conn_param
param_of(const struct end *end)
{
	return (struct rdma_conn_param){
		.private_data = "hello",
		.private_data_len = 5,
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
		.qp_num = end->qp->qp_num,
	};
}

static void
server_accept(struct rdma_event_channel *channel, struct end *end, bool own)
{
	struct rdma_cm_event *event = event_expect(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	struct rdma_conn_param param;

	end->id = event->id;
	CHECK(event->param.conn.private_data_len >= 5);
	CHECK(memcmp(event->param.conn.private_data, "hello", 5) == 0);
	CHECK(rdma_ack_cm_event(event) == 0);
	qp_make(end, own);
	if (own) {
		qp_step(end, IBV_QPS_RTR);
		qp_step(end, IBV_QPS_RTS);
	}
	param = param_of(end);
	CHECK(rdma_accept(end->id, &param) == 0);
}

static void
client_finish(struct rdma_event_channel *channel, struct end *end, bool own)
{
	if (!own) {
		event_take(channel, RDMA_CM_EVENT_ESTABLISHED);
		return;
	}
	event_take(channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
	qp_step(end, IBV_QPS_RTR);
	qp_step(end, IBV_QPS_RTS);
	CHECK(rdma_establish(end->id) == 0);
}

/* An empty message each way */
static void
talk(struct end *a, struct end *b)
{
	struct ibv_recv_wr recv = {0}, *bad_recv;
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad_send;
	struct ibv_wc wc;
	int n = 0;

	CHECK(ibv_post_recv(b->qp, &recv, &bad_recv) == 0);
	CHECK(ibv_post_send(a->qp, &send, &bad_send) == 0);
	for (struct end *end = a; end != NULL; end = end == a ? b : NULL) {
		do {
			n = ibv_poll_cq(end->cq, 1, &wc);
		} while (n == 0);
		CHECK(n == 1 && wc.status == IBV_WC_SUCCESS);
	}
}

/* The client is routed to the listener. move: its id goes to the channel of the servers. */
static void
pair_run(struct rdma_event_channel *clients, struct rdma_event_channel *servers, struct end *client,
	 bool own, bool move)
{
	struct rdma_conn_param param;
	struct end server;

	qp_make(client, own);
	param = param_of(client);
	CHECK(rdma_connect(client->id, &param) == 0);
	server_accept(servers, &server, own);
	client_finish(clients, client, own);
	event_take(servers, RDMA_CM_EVENT_ESTABLISHED);
	if (move) {
		CHECK(rdma_migrate_id(client->id, servers) == 0);
		clients = servers;
	}
	talk(client, &server);
	talk(&server, client);
	CHECK(rdma_disconnect(client->id) == 0);
	event_take(servers, RDMA_CM_EVENT_DISCONNECTED);
	event_take(clients, RDMA_CM_EVENT_DISCONNECTED);
	end_free(client, own);
	end_free(&server, own);
}

static void
connect_pair(struct sockaddr_in to, bool own, bool move)
{
	struct rdma_event_channel *clients = rdma_create_event_channel();
	struct rdma_event_channel *servers = rdma_create_event_channel();
	struct rdma_cm_id *listener;
	struct end client;

	CHECK(clients != NULL && servers != NULL);
	to.sin_port = htons(listener_begin(servers, &listener));
	client_resolve(clients, &client, &to);
	pair_run(clients, servers, &client, own, move);
	CHECK(rdma_destroy_id(listener) == 0);
	rdma_destroy_event_channel(servers);
	rdma_destroy_event_channel(clients);
}

/* ---- addresses of family AF_IB ---- */

static struct rdma_addrinfo *
gid_info(const char *gid, const char *port, int flags)
{
	const struct rdma_addrinfo hints = {
		.ai_flags = RAI_NUMERICHOST | RAI_FAMILY | flags,
		.ai_family = AF_IB,
		.ai_port_space = RDMA_PS_TCP,
		.ai_qp_type = IBV_QPT_RC,
	};
	struct rdma_addrinfo *info;

	CHECK(rdma_getaddrinfo(gid, port, &hints, &info) == 0);
	return info;
}

static void
gid_listen(struct rdma_event_channel *channel, struct rdma_cm_id **id, const char *gid,
	   char port[8])
{
	struct rdma_addrinfo *info = gid_info(gid, NULL, RAI_PASSIVE);

	CHECK(rdma_create_id(channel, id, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(*id, info->ai_src_addr) == 0);
	CHECK((*id)->verbs != NULL);
	CHECK(rdma_listen(*id, 0) == 0);
	snprintf(port, 8, "%u", ntohs(rdma_get_src_port(*id)));
	rdma_freeaddrinfo(info);
}

/* Values in librdmacm: both GIDs are that one, and so are those of the path. */
static void
gid_known(const struct rdma_cm_id *id, const char *text)
{
	const struct rdma_ib_addr *addr = &id->route.addr.addr.ibaddr;
	const struct ibv_sa_path_rec *path = id->route.path_rec;
	union ibv_gid gid;

	CHECK(inet_pton(AF_INET6, text, gid.raw) == 1);
	CHECK(memcmp(&addr->sgid, &gid, sizeof(gid)) == 0);
	CHECK(memcmp(&addr->dgid, &gid, sizeof(gid)) == 0);
	CHECK(addr->pkey == 0xffff);
	CHECK(id->route.addr.src_addr.sa_family == AF_IB);
	CHECK(id->route.num_paths == 1);
	CHECK(memcmp(&path->sgid, &gid, sizeof(gid)) == 0);
	CHECK(memcmp(&path->dgid, &gid, sizeof(gid)) == 0);
	CHECK(path->pkey == 0xffff && path->hop_limit == 64 && path->reversible == 1);
	CHECK(path->mtu >= IBV_MTU_256 && path->mtu <= IBV_MTU_4096);
}

static void
gid_pair(const char *gid)
{
	struct rdma_event_channel *clients = rdma_create_event_channel();
	struct rdma_event_channel *servers = rdma_create_event_channel();
	struct rdma_addrinfo *info;
	struct rdma_cm_id *listener;
	struct end client;
	char port[8];

	CHECK(clients != NULL && servers != NULL);
	gid_listen(servers, &listener, gid, port);
	info = gid_info(gid, port, 0);
	CHECK(info->ai_family == AF_IB);
	client_resolve(clients, &client, info->ai_dst_addr);
	gid_known(client.id, gid);
	pair_run(clients, servers, &client, false, false);
	rdma_freeaddrinfo(info);
	CHECK(rdma_destroy_id(listener) == 0);
	rdma_destroy_event_channel(servers);
	rdma_destroy_event_channel(clients);
}

/* To each GID of the device: those of IPv4 and of IPv6 addresses */
static void
gid_pairs(struct ibv_context *context)
{
	char text[INET6_ADDRSTRLEN];
	union ibv_gid gid, zero = {0};
	int kinds[2] = {0};

	for (int i = 0; i < 16 && ibv_query_gid(context, PORT, i, &gid) == 0; i++) {
		if (memcmp(&gid, &zero, sizeof(gid)) == 0)
			continue;
		CHECK(inet_ntop(AF_INET6, gid.raw, text, sizeof(text)) != NULL);
		gid_pair(text);
		kinds[gid.raw[10] == 0xff]++;
	}
	CHECK(kinds[0] > 0 && kinds[1] > 0);
}

/* The listener gets an event of an id that is gone before it is accepted, and no later one. */
static void
destroy_early(struct sockaddr_in to)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *listener, *request;
	struct rdma_cm_event *event;
	struct rdma_conn_param param;
	struct end client;

	CHECK(channel != NULL);
	to.sin_port = htons(listener_begin(channel, &listener));
	client_resolve(channel, &client, &to);
	qp_make(&client, false);
	param = param_of(&client);
	CHECK(rdma_connect(client.id, &param) == 0);
	event = event_expect(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	request = event->id;
	CHECK(rdma_ack_cm_event(event) == 0);
	end_free(&client, false);
	CHECK(rdma_destroy_id(request) == 0);
	CHECK(rdma_destroy_id(listener) == 0);
	CHECK(fcntl(channel->fd, F_SETFL, O_NONBLOCK) == 0);
	CHECK(rdma_get_cm_event(channel, &event) == -1 && errno == EAGAIN);
	rdma_destroy_event_channel(channel);
}

static void
refused(struct sockaddr_in to)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_event *event;
	struct rdma_conn_param param;
	struct end client;

	CHECK(channel != NULL);
	to.sin_port = htons(9);
	client_resolve(channel, &client, &to);
	qp_make(&client, false);
	param = param_of(&client);
	CHECK(rdma_connect(client.id, &param) == 0);
	event = event_expect(channel, RDMA_CM_EVENT_REJECTED);
	CHECK(event->status == 8); /* nothing listens */
	CHECK(rdma_ack_cm_event(event) == 0);
	end_free(&client, false);
	rdma_destroy_event_channel(channel);
}

static void
many(struct sockaddr_in addr)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *ids[MANY], *other;

	CHECK(channel != NULL);
	for (int i = 0; i < MANY; i++) {
		CHECK(rdma_create_id(channel, &ids[i], NULL, RDMA_PS_TCP) == 0);
		CHECK(rdma_bind_addr(ids[i], (struct sockaddr *)&addr) == 0);
		CHECK(ids[i]->verbs != NULL);
	}
	addr.sin_port = rdma_get_src_port(ids[0]);
	CHECK(rdma_create_id(channel, &other, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(other, (struct sockaddr *)&addr) == -1 && errno == EADDRINUSE);
	CHECK(rdma_destroy_id(other) == 0);
	for (int i = 0; i < MANY; i++)
		CHECK(rdma_destroy_id(ids[i]) == 0);
	rdma_destroy_event_channel(channel);
}

int
main(void)
{
	int n = 0;
	struct ibv_context **devices = rdma_get_devices(&n);

	CHECK(devices != NULL && n >= 1);
	for (int i = 0; i < n; i++) {
		struct sockaddr_in addr = address_of(devices[i], 0);

		connect_pair(addr, false, false);
		connect_pair(addr, true, false);
		connect_pair(addr, false, true);
		gid_pairs(devices[i]);
		destroy_early(addr);
		refused(addr);
		many(addr);
	}
	rdma_free_devices(devices);
	printf("good\n");
	return 0;
}
