/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A text from one program to another, which are connected by IP address and port: no number is
 * exchanged by other means.
 *
 *   hello_cm DEVICE            waits for one client at all addresses of the device
 *   hello_cm DEVICE ADDRESS    sends it the text
 *
 *   cc hello_cm.c -o hello_cm $(pkg-config --cflags --libs softhca)
 */

#include <netdb.h>
#include <string.h>

#include <softhca/cm.h>

#include "example.h"

#define BYTES 64u
#define PORT "7471"

static struct softhca_cm_channel *channel;

/* A call only begins an operation; its end is an event. */
static struct softhca_cm_event
await(uint32_t type)
{
	struct softhca_cm_event event;

	must(softhca_cm_get_event(channel, &event) == 0, "get_event");
	if (event.type != type) {
		fprintf(stderr, "%s (%d) instead of %s\n", softhca_cm_event_str(event.type),
			event.status, softhca_cm_event_str(type));
		exit(1);
	}
	return event;
}

static struct softhca_cm_id *
new_id(void)
{
	struct softhca_cm_id *id =
		softhca_cm_create_id(channel, SOFTHCA_CM_TCP, SOFTHCA_QPT_RC, NULL);

	must(id != NULL, "create_id");
	return id;
}

static void
serve(struct side *s, const struct sockaddr *address)
{
	struct softhca_cm_param param = {.qp_num = s->qp->qp_num, .rnr_retry_count = 7};
	struct softhca_cm_id *listener = new_id(), *id;

	must(softhca_cm_bind(listener, address, 0) == 0, "bind");
	must(softhca_cm_listen(listener, 1) == 0, "listen");
	printf("waiting\n");
	fflush(stdout);
	id = await(SOFTHCA_CM_CONNECT_REQUEST).id;
	must(softhca_cm_modify_qp(id, s->qp, SOFTHCA_QPS_RTS) == 0, "modify_qp");
	post_receive(s, BYTES);
	must(softhca_cm_accept(id, &param) == 0, "accept");
	await(SOFTHCA_CM_ESTABLISHED);
	complete(s);
	printf("%s\n", s->memory);
	await(SOFTHCA_CM_DISCONNECTED);
}

static void
call(struct side *s, const struct sockaddr *address)
{
	struct softhca_cm_param param = {.qp_num = s->qp->qp_num,
					 .retry_count = 7,
					 .rnr_retry_count = 7};
	struct softhca_cm_id *id = new_id();

	must(softhca_cm_resolve_addr(id, NULL, address, 5000) == 0, "resolve_addr");
	await(SOFTHCA_CM_ADDR_RESOLVED);
	must(softhca_cm_resolve_route(id, 5000) == 0, "resolve_route");
	await(SOFTHCA_CM_ROUTE_RESOLVED);
	must(softhca_cm_connect(id, &param) == 0, "connect");
	await(SOFTHCA_CM_CONNECT_RESPONSE);
	must(softhca_cm_modify_qp(id, s->qp, SOFTHCA_QPS_RTS) == 0, "modify_qp");
	must(softhca_cm_establish(id) == 0, "establish");
	strcpy(s->memory, "hello over a connection");
	post(s, SOFTHCA_WR_SEND, BYTES, NULL);
	complete(s);
	must(softhca_cm_disconnect(id) == 0, "disconnect");
	await(SOFTHCA_CM_DISCONNECTED);
}

int
main(int argc, char **argv)
{
	struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICHOST, .ai_family = AF_UNSPEC};
	struct addrinfo *address;
	struct side s = {0};

	must(softhca_open(argc > 1 ? argv[1] : NULL, &s.ctx) == 0, "open");
	must(getaddrinfo(argc > 2 ? argv[2] : "::", PORT, &hints, &address) == 0, "address");
	create_objects(&s, BYTES, 0);
	channel = softhca_cm_create_channel(s.ctx);
	must(channel != NULL, "create_channel");
	if (argc > 2)
		call(&s, address->ai_addr);
	else
		serve(&s, address->ai_addr);
	freeaddrinfo(address);
	softhca_cm_destroy_channel(channel); /* with its ids */
	return softhca_close(s.ctx) == 0 ? 0 : 1;
}
