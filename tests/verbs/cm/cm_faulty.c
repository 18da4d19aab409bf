/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Calls of librdmacm that fail on purpose: each of VERBS_FAULT_CM_CALLS fails once, with EXDEV, and
 * those that this program needs work the next time.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#include "faults/verbs_faults.h"

#define CHECK(what) \
	do { \
		if (!(what)) { \
			fprintf(stderr, "%s:%d: not true: %s (errno %d)\n", __FILE__, __LINE__, \
				#what, errno); \
			exit(1); \
		} \
	} while (0)
#define TIMEOUT_MS 20000

static uint32_t failed;

#define FAILS(call) \
	do { \
		errno = 0; \
		CHECK((call) == -1 && errno == EXDEV); \
		failed++; \
	} while (0)
#define WORKS(call) \
	do { \
		FAILS(call); \
		CHECK((call) == 0); \
	} while (0)

static struct rdma_event_channel *channel, *other;

static struct rdma_cm_id *
take(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	CHECK(rdma_get_cm_event(channel, &event) == 0);
	CHECK(event->event == type);
	id = event->id;
	CHECK(rdma_ack_cm_event(event) == 0);
	return id;
}

/* When librdmacm begins, it makes, binds and destroys an id. */
static bool
is_used_before(const char *name)
{
	return strcmp(name, "create_id") == 0 || strcmp(name, "bind_addr") == 0 ||
	       strcmp(name, "destroy_id") == 0;
}

static void
set_faults(void)
{
	static char text[2048];
	size_t used = 0;

#define X(name) \
	used += (size_t)snprintf(text + used, sizeof(text) - used, \
				 "%scall=rdma_" #name ",nth=%d,errno=EXDEV", used == 0 ? "" : ";", \
				 is_used_before(#name) ? 2 : 1);
	VERBS_FAULT_CM_CALLS(X)
#undef X
	CHECK(used < sizeof(text));
	CHECK(setenv("SOFTHCA_VERBS_FAULTS", text, 1) == 0);
}

static struct sockaddr_in
address_of(struct ibv_context *context)
{
	struct sockaddr_in addr = {.sin_family = AF_INET};
	union ibv_gid gid;

	for (int i = 0; i < 16; i++) {
		CHECK(ibv_query_gid(context, 1, i, &gid) == 0);
		if (gid.raw[10] == 0xff && gid.raw[11] == 0xff)
			memcpy(&addr.sin_addr, gid.raw + 12, 4);
	}
	return addr;
}

static struct rdma_cm_id *
listen_at(struct sockaddr_in *addr)
{
	struct rdma_cm_id *id;
	uint8_t tos = 0;

	WORKS(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	WORKS(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)));
	WORKS(rdma_bind_addr(id, (struct sockaddr *)addr));
	WORKS(rdma_listen(id, 1));
	addr->sin_port = rdma_get_src_port(id);
	return id;
}

static void
connect_and_reject(struct sockaddr_in *addr)
{
	struct rdma_conn_param param = {.qp_num = 0x123, .retry_count = 1};
	struct rdma_cm_id *listener = listen_at(addr), *id, *child;
	struct rdma_cm_event *event;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	int mask;

	CHECK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
	WORKS(rdma_resolve_addr(id, NULL, (struct sockaddr *)addr, TIMEOUT_MS));
	FAILS(rdma_get_cm_event(channel, &event));
	CHECK(take(RDMA_CM_EVENT_ADDR_RESOLVED) == id);
	WORKS(rdma_resolve_route(id, TIMEOUT_MS));
	CHECK(take(RDMA_CM_EVENT_ROUTE_RESOLVED) == id);
	WORKS(rdma_init_qp_attr(id, &attr, &mask));
	WORKS(rdma_connect(id, &param));
	child = take(RDMA_CM_EVENT_CONNECT_REQUEST);
	FAILS(rdma_accept(child, &param));
	FAILS(rdma_disconnect(child));
	FAILS(rdma_notify(child, IBV_EVENT_COMM_EST));
	WORKS(rdma_reject(child, NULL, 0));
	CHECK(take(RDMA_CM_EVENT_REJECTED) == id);
	WORKS(rdma_migrate_id(child, other));
	WORKS(rdma_destroy_id(child));
	CHECK(rdma_destroy_id(id) == 0 && rdma_destroy_id(listener) == 0);
}

static void
join(struct sockaddr_in addr)
{
	struct sockaddr_in group = {.sin_family = AF_INET};
	struct rdma_cm_id *id;

	addr.sin_port = 0;
	CHECK(inet_pton(AF_INET, "239.1.2.3", &group.sin_addr) == 1);
	CHECK(rdma_create_id(channel, &id, NULL, RDMA_PS_UDP) == 0);
	CHECK(rdma_bind_addr(id, (struct sockaddr *)&addr) == 0);
	WORKS(rdma_join_multicast(id, (struct sockaddr *)&group, NULL));
	CHECK(take(RDMA_CM_EVENT_MULTICAST_JOIN) == id);
	FAILS(rdma_leave_multicast(id, (struct sockaddr *)&group));
	CHECK(rdma_destroy_id(id) == 0);
}

int
main(void)
{
	struct ibv_context **devices;
	struct sockaddr_in addr;
	uint32_t all = 0;

	set_faults();
	devices = rdma_get_devices(NULL);
	CHECK(devices != NULL);
	addr = address_of(devices[0]);
	channel = rdma_create_event_channel();
	other = rdma_create_event_channel();
	CHECK(channel != NULL && other != NULL);
	connect_and_reject(&addr);
	join(addr);
#define X(name) all++;
	VERBS_FAULT_CM_CALLS(X)
#undef X
	CHECK(failed == all);
	printf("%u calls failed\n", failed);
	return 0;
}
