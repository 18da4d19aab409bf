/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "cm_pair.h"

#define RESOURCES 64u

struct softhca_embed *embed;
struct side side[2];

static struct softhca_value before[2][RESOURCES];
static int num_before[2];

/* ---- life ---- */

static void
side_open(struct side *s, unsigned int hca)
{
	struct softhca_cq_init_attr ca = {.cqe = 4096};

	assert_int_equal(softhca_embed_open(embed, hca, &s->ctx), 0);
	s->channel = softhca_cm_create_channel(s->ctx);
	if (s->channel == NULL)
		fail_msg("%s", softhca_last_error(s->ctx));
	fcntl(s->channel->fd, F_SETFL, O_NONBLOCK);
	s->pd = softhca_alloc_pd(s->ctx);
	s->cq = softhca_create_cq(s->ctx, &ca);
	assert_non_null(s->cq);
}

void
pair_open(enum softhca_executor executor, bool one_hca)
{
	struct softhca_embed_config cfg;

	softhca_embed_config_init(&cfg);
	cfg.hugepages = 2;
	cfg.executor = executor;
	cfg.mbufs = 512;
	cfg.records = 4096;
	cfg.log_qps = cfg.log_cqs = 12;
	cfg.log_mpts = 14;
	cfg.log_mtts = 16;
	if (softhca_embed_create(&cfg, &embed) != 0)
		fail_msg("%s", softhca_embed_last_error());
	for (unsigned int i = 0; i < 2; i++)
		num_before[i] = softhca_embed_resources(embed, i, before[i], RESOURCES);
	side_open(&side[0], 0);
	side_open(&side[1], one_hca ? 0 : 1);
}

static void
side_close(struct side *s)
{
	if (s->ctx == NULL)
		return;
	assert_int_equal(softhca_cm_destroy_channel(s->channel), 0);
	assert_int_equal(softhca_destroy_cq(s->cq), 0);
	assert_int_equal(softhca_dealloc_pd(s->pd), 0);
	assert_int_equal(softhca_close(s->ctx), 0);
	s->ctx = NULL;
}

/* Frames and requests of the connection manager itself may still be under way. */
static void
nothing_is_left(unsigned int hca)
{
	struct softhca_value now[RESOURCES];
	int n = 0, same = -1;

	for (unsigned int round = 0; round < 1000000 && same != n; round++) {
		softhca_embed_progress(embed);
		n = softhca_embed_resources(embed, hca, now, RESOURCES);
		assert_int_equal(n, num_before[hca]);
		for (same = 0; same < n && now[same].value <= before[hca][same].value; same++)
			;
		sched_yield();
	}
	if (same != n)
		fail_msg("HCA %u: %s: %llu, before %llu", hca, now[same].name,
			 (unsigned long long)now[same].value,
			 (unsigned long long)before[hca][same].value);
}

void
pair_close(void)
{
	side_close(&side[0]);
	side_close(&side[1]);
	nothing_is_left(0);
	nothing_is_left(1);
	assert_int_equal(softhca_embed_destroy(embed), 0);
}

/* ---- addresses and events ---- */

struct sockaddr_storage
address_of(unsigned int which, uint32_t gid_index, uint16_t port)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	struct sockaddr_storage addr = {0};
	struct sockaddr_in *ip4 = (struct sockaddr_in *)&addr;
	struct sockaddr_in6 *ip6 = (struct sockaddr_in6 *)&addr;
	union softhca_gid gid;

	assert_int_equal(softhca_query_gid(side[which].ctx, 1, gid_index, &gid), 0);
	if (memcmp(gid.raw, mapped, sizeof(mapped)) == 0) {
		*ip4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
		memcpy(&ip4->sin_addr, gid.raw + 12, 4);
	} else {
		*ip6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
		memcpy(&ip6->sin6_addr, gid.raw, 16);
	}
	return addr;
}

void
await(unsigned int which, uint32_t type, struct softhca_cm_event *event)
{
	int err;

	while ((err = softhca_cm_get_event(side[which].channel, event)) == -EAGAIN) {
		softhca_progress(side[0].ctx);
		softhca_progress(side[1].ctx);
		sched_yield();
	}
	assert_int_equal(err, 0);
	if (event->type != type)
		fail_msg("side %u: %s (status %d) instead of %s", which,
			 softhca_cm_event_str(event->type), event->status,
			 softhca_cm_event_str(type));
}

void
nothing_waits(void)
{
	struct softhca_cm_event event;

	for (unsigned int i = 0; i < 2; i++) {
		int err = softhca_cm_get_event(side[i].channel, &event);

		if (err == 0)
			fail_msg("side %u: %s", i, softhca_cm_event_str(event.type));
		assert_int_equal(err, -EAGAIN);
	}
}

/* ---- ids ---- */

struct softhca_cm_id *
new_id(unsigned int which, enum softhca_cm_space space)
{
	struct softhca_cm_id *id =
		softhca_cm_create_id(side[which].channel, space,
				     space == SOFTHCA_CM_UDP ? SOFTHCA_QPT_UD : SOFTHCA_QPT_RC,
				     NULL);

	if (id == NULL)
		fail_msg("%s", softhca_last_error(NULL));
	return id;
}

static void
good(int err)
{
	if (err != 0)
		fail_msg("%d: %s", err, softhca_last_error(NULL));
}

struct softhca_cm_id *
listen_at(uint32_t gid_index, enum softhca_cm_space space)
{
	struct sockaddr_storage own = address_of(1, gid_index, CM_PORT);
	struct softhca_cm_id *id = new_id(1, space);

	good(softhca_cm_bind(id, (struct sockaddr *)&own, 0));
	good(softhca_cm_listen(id, 0));
	return id;
}

struct softhca_cm_id *
resolve_to(uint32_t gid_index, enum softhca_cm_space space, uint16_t port)
{
	struct sockaddr_storage to = address_of(1, gid_index, port);
	struct softhca_cm_id *id = new_id(0, space);
	struct softhca_cm_event e;

	good(softhca_cm_resolve_addr(id, NULL, (struct sockaddr *)&to, 5000));
	await(0, SOFTHCA_CM_ADDR_RESOLVED, &e);
	assert_ptr_equal(e.id, id);
	good(softhca_cm_resolve_route(id, 5000));
	await(0, SOFTHCA_CM_ROUTE_RESOLVED, &e);
	assert_ptr_equal(e.id, id);
	return id;
}

void
end_open(struct end *e, unsigned int which, struct softhca_cm_id *id)
{
	struct side *s = &side[which];
	struct softhca_qp_init_attr qa = {
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = id->space == SOFTHCA_CM_UDP ? SOFTHCA_QPT_UD : SOFTHCA_QPT_RC,
	};

	*e = (struct end){.side = s, .id = id};
	e->mem = calloc(2, SLOT);
	assert_non_null(e->mem);
	e->mr = softhca_reg_mr(s->pd, e->mem, (size_t)2 * SLOT, SOFTHCA_ACCESS_LOCAL_WRITE);
	assert_non_null(e->mr);
	e->qp = softhca_create_qp(s->pd, &qa);
	assert_non_null(e->qp);
}

void
end_close(struct end *e)
{
	if (e->id != NULL)
		assert_int_equal(softhca_cm_destroy_id(e->id), 0);
	assert_int_equal(softhca_destroy_qp(e->qp), 0);
	assert_int_equal(softhca_dereg_mr(e->mr), 0);
	free(e->mem);
}

/* ---- connections ---- */

void
begin(struct end *client, uint32_t gid_index, const char *words, struct softhca_cm_event *req)
{
	struct softhca_cm_param param = {
		.private_data = words,
		.private_data_len = (uint8_t)strlen(words),
		.responder_resources = 4,
		.initiator_depth = 3,
		.retry_count = 7,
		.rnr_retry_count = 6,
	};

	end_open(client, 0, resolve_to(gid_index, SOFTHCA_CM_TCP, CM_PORT));
	good(softhca_cm_modify_qp(client->id, client->qp, SOFTHCA_QPS_INIT));
	param.qp_num = client->qp->qp_num;
	good(softhca_cm_connect(client->id, &param));
	await(1, SOFTHCA_CM_CONNECT_REQUEST, req);
}

void
connect_ends(struct end *client, struct end *server, uint32_t gid_index)
{
	struct softhca_cm_param param = {
		.private_data = "welcome",
		.private_data_len = 7,
		.responder_resources = 3,
		.initiator_depth = 4,
		.rnr_retry_count = 6,
	};
	struct softhca_cm_event e;

	begin(client, gid_index, "hello", &e);
	end_open(server, 1, e.id);
	good(softhca_cm_modify_qp(server->id, server->qp, SOFTHCA_QPS_RTS));
	param.qp_num = server->qp->qp_num;
	good(softhca_cm_accept(server->id, &param));
	await(0, SOFTHCA_CM_CONNECT_RESPONSE, &e);
	assert_ptr_equal(e.id, client->id);
	assert_int_equal(e.param.qp_num, server->qp->qp_num);
	assert_memory_equal(e.param.private_data, "welcome", 7);
	good(softhca_cm_modify_qp(client->id, client->qp, SOFTHCA_QPS_RTS));
	good(softhca_cm_establish(client->id));
	await(1, SOFTHCA_CM_ESTABLISHED, &e);
	assert_ptr_equal(e.id, server->id);
}

static void
complete(struct end *e)
{
	struct softhca_wc wc;
	int n;

	while ((n = softhca_poll_cq(e->side->cq, 1, &wc)) == 0)
		;
	assert_int_equal(n, 1);
	if (wc.status != SOFTHCA_WC_SUCCESS)
		fail_msg("%s", softhca_wc_status_str(wc.status));
}

void
carry(struct end *from, struct end *to, const char *text)
{
	struct softhca_sge in = {(uintptr_t)to->mem, SLOT, to->mr->lkey};
	struct softhca_sge out = {(uintptr_t)from->mem + SLOT, (uint32_t)strlen(text) + 1,
				  from->mr->lkey};
	struct softhca_recv_wr *bad_recv, recv = {.sg_list = &in, .num_sge = 1};
	struct softhca_send_wr *bad, send = {.sg_list = &out,
					     .num_sge = 1,
					     .opcode = SOFTHCA_WR_SEND,
					     .send_flags = SOFTHCA_SEND_SIGNALED};

	strcpy((char *)from->mem + SLOT, text);
	assert_int_equal(softhca_post_recv(to->qp, &recv, &bad_recv), 0);
	assert_int_equal(softhca_post_send(from->qp, &send, &bad), 0);
	complete(from);
	complete(to);
	assert_string_equal((char *)to->mem, text);
}
