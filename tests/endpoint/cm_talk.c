/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * One end of connections by address and port, for test_cm.py; prints a line for each event.
 *
 *	cm_talk SOCKET serve ADDRESS PORT	listens, takes every request; port 0: says which
 *	cm_talk SOCKET call ADDRESS PORT	connects and sends a message; holds the connection
 *	cm_talk SOCKET flood ADDRESS NUMBER	sends NUMBER management datagrams to QP 1
 *
 * When the standard input ends, `call` disconnects, and both end.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <softhca/cm.h>

#define BYTES 256u
#define QKEY 0x80010000u
#define DEPTH 32u
#define TEXT "over a connection"
#define TIMEOUT_MS 120000

struct end {
	struct softhca_cm_id *id;
	struct softhca_qp *qp;
};

static struct softhca_context *ctx;
static struct softhca_pd *pd;
static struct softhca_cq *cq;
static struct softhca_mr *mr;
static struct softhca_cm_channel *channel;
static uint8_t memory[DEPTH * BYTES];

static void
must(bool good, const char *what)
{
	if (good)
		return;
	printf("failed %s: %s (%s)\n", what, softhca_last_error(ctx), strerror(errno));
	exit(1);
}

static void
open_objects(const char *socket)
{
	const struct softhca_cq_init_attr attr = {.cqe = 512};

	must(softhca_open(socket, &ctx) == 0, "open");
	pd = softhca_alloc_pd(ctx);
	cq = softhca_create_cq(ctx, &attr);
	mr = softhca_reg_mr(pd, memory, sizeof(memory), SOFTHCA_ACCESS_LOCAL_WRITE);
	channel = softhca_cm_create_channel(ctx);
	must(pd != NULL && cq != NULL && mr != NULL && channel != NULL, "objects");
}

static struct softhca_qp *
new_qp(void)
{
	struct softhca_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = SOFTHCA_QPT_RC,
		.cap = {.max_send_wr = DEPTH,
			.max_recv_wr = 4,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};
	struct softhca_qp *qp = softhca_create_qp(pd, &attr);

	must(qp != NULL, "create_qp");
	return qp;
}

static struct sockaddr_storage
address_of(const char *text, const char *port)
{
	struct sockaddr_storage address = {.ss_family = AF_INET};
	struct sockaddr_in6 *six = (void *)&address;
	struct sockaddr_in *four = (void *)&address;

	four->sin_port = htons((uint16_t)atoi(port));
	if (inet_pton(AF_INET, text, &four->sin_addr) == 1)
		return address;
	six->sin6_family = AF_INET6;
	must(inet_pton(AF_INET6, text, &six->sin6_addr) == 1, text);
	return address;
}

/* ---- data ---- */

static void
receive(struct softhca_qp *qp)
{
	struct softhca_sge sge = {(uintptr_t)memory, BYTES, mr->lkey};
	struct softhca_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	must(softhca_post_recv(qp, &wr, &bad) == 0, "post_recv");
}

static void
say(struct softhca_qp *qp)
{
	struct softhca_sge sge = {(uintptr_t)memory, BYTES, mr->lkey};
	struct softhca_send_wr wr = {.sg_list = &sge,
				     .num_sge = 1,
				     .opcode = SOFTHCA_WR_SEND,
				     .send_flags = SOFTHCA_SEND_SIGNALED};
	struct softhca_send_wr *bad;

	memset(memory, 0, BYTES);
	strcpy((char *)memory, TEXT);
	must(softhca_post_send(qp, &wr, &bad) == 0, "post_send");
}

/* Completions that are flushed belong to connections that have ended. */
static bool
completed(void)
{
	struct softhca_wc wc;

	while (softhca_poll_cq(cq, 1, &wc) == 1) {
		if (wc.status == SOFTHCA_WC_SUCCESS)
			return true;
		if (wc.status != SOFTHCA_WC_WR_FLUSH_ERR)
			printf("completion: %s\n", softhca_wc_status_str(wc.status));
	}
	return false;
}

static void
await_completion(void)
{
	for (unsigned int i = 0; !completed(); i++) {
		must(i < TIMEOUT_MS, "completion");
		usleep(1000);
	}
}

/* ---- connections ---- */

static void
end_of(struct end *e)
{
	if (e == NULL)
		return;
	must(softhca_destroy_qp(e->qp) == 0, "destroy_qp");
	must(softhca_cm_destroy_id(e->id) == 0, "destroy_id");
	free(e);
}

static void
accept_request(struct softhca_cm_id *id)
{
	struct softhca_cm_param param = {.rnr_retry_count = 7};
	struct end *e = calloc(1, sizeof(*e));

	must(e != NULL, "memory");
	*e = (struct end){.id = id, .qp = new_qp()};
	id->user = e;
	param.qp_num = e->qp->qp_num;
	must(softhca_cm_modify_qp(id, e->qp, SOFTHCA_QPS_INIT) == 0, "INIT");
	receive(e->qp);
	must(softhca_cm_modify_qp(id, e->qp, SOFTHCA_QPS_RTS) == 0, "RTS");
	must(softhca_cm_accept(id, &param) == 0, "accept");
}

/* The way to a connected QP; each event begins the next step. True: it goes on. */
static bool
call_step(struct end *e, const struct softhca_cm_event *event)
{
	const struct softhca_cm_param param = {.qp_num = e->qp->qp_num,
					       .retry_count = 7,
					       .rnr_retry_count = 7};

	switch (event->type) {
	case SOFTHCA_CM_ADDR_RESOLVED:
		must(softhca_cm_resolve_route(e->id, TIMEOUT_MS) == 0, "resolve_route");
		return true;
	case SOFTHCA_CM_ROUTE_RESOLVED:
		must(softhca_cm_connect(e->id, &param) == 0, "connect");
		return true;
	case SOFTHCA_CM_CONNECT_RESPONSE:
		must(softhca_cm_modify_qp(e->id, e->qp, SOFTHCA_QPS_RTS) == 0, "RTS");
		must(softhca_cm_establish(e->id) == 0, "establish");
		say(e->qp);
		await_completion();
		printf("connected\n");
		return true;
	default:
		return false;
	}
}

static void
print_event(const struct softhca_cm_event *event)
{
	printf("%s %d\n", softhca_cm_event_str(event->type), event->status);
}

static bool
serve_step(struct end *none, const struct softhca_cm_event *event)
{
	print_event(event);
	if (event->type == SOFTHCA_CM_CONNECT_REQUEST) {
		accept_request(event->id);
	} else if (event->type == SOFTHCA_CM_ESTABLISHED) {
		await_completion();
		printf("got %s\n", (const char *)memory);
	} else if (event->type == SOFTHCA_CM_DISCONNECTED) {
		(void)softhca_cm_disconnect(event->id);
		end_of(event->id->user);
	} else if (event->type != SOFTHCA_CM_TIMEWAIT_EXIT) {
		return event->id->user != NULL; /* of one connection: the others go on */
	}
	return true;
}

/* Events until one that ends it, or the standard input ends: true. */
static bool
run(struct end *e, bool (*step)(struct end *e, const struct softhca_cm_event *event))
{
	struct pollfd fds[] = {{.fd = channel->fd, .events = POLLIN}, {.fd = 0, .events = POLLIN}};
	struct softhca_cm_event event;
	char byte;

	for (;;) {
		must(poll(fds, 2, -1) > 0, "poll");
		if (fds[1].revents != 0 && read(0, &byte, 1) <= 0)
			return true;
		if (fds[0].revents == 0)
			continue;
		must(softhca_cm_get_event(channel, &event) == 0, "get_event");
		if (step(e, &event))
			continue;
		print_event(&event);
		return false;
	}
}

static int
serve(const char *address, const char *port)
{
	struct sockaddr_storage a = address_of(address, port);
	struct softhca_cm_id *id =
		softhca_cm_create_id(channel, SOFTHCA_CM_TCP, SOFTHCA_QPT_RC, NULL);
	struct softhca_cm_info info;
	int err;

	must(id != NULL, "create_id");
	err = softhca_cm_bind(id, (const struct sockaddr *)&a, 0);
	if (err != 0) {
		printf("bind %d %s\n", err, softhca_last_error(ctx));
		return 1;
	}
	must(softhca_cm_listen(id, 0) == 0, "listen");
	must(softhca_cm_query(id, &info) == 0, "query");
	printf("listening %u\n", ntohs(((const struct sockaddr_in *)&info.src)->sin_port));
	return run(NULL, serve_step) ? 0 : 1;
}

static int
call(const char *address, const char *port)
{
	struct sockaddr_storage a = address_of(address, port);
	struct end e = {.qp = new_qp()};
	struct softhca_cm_event event;
	int err;

	e.id = softhca_cm_create_id(channel, SOFTHCA_CM_TCP, SOFTHCA_QPT_RC, &e);
	must(e.id != NULL, "create_id");
	err = softhca_cm_resolve_addr(e.id, NULL, (const struct sockaddr *)&a, TIMEOUT_MS);
	must(err == 0, "resolve_addr");
	if (!run(&e, call_step))
		return 1;
	must(softhca_cm_disconnect(e.id) == 0, "disconnect");
	must(softhca_cm_get_event(channel, &event) == 0, "get_event");
	print_event(&event);
	return 0;
}

/* ---- a flood ---- */

/* Privileged: its datagrams come from QP 1 of the host, as far as a peer sees. */
static struct softhca_qp *
flooder(void)
{
	struct softhca_qp_init_attr_ex init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = SOFTHCA_QPT_UD,
		.cap = {.max_send_wr = DEPTH,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.flags = SOFTHCA_SOURCE_QPN,
		.comp_mask = SOFTHCA_QP_INIT_ATTR_PD,
		.pd = pd,
		.source_qpn = 1,
	};
	struct softhca_qp_attr a = {.port_num = 1, .qkey = QKEY};
	static const uint32_t mask[] = {SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT | SOFTHCA_QP_QKEY,
					0, SOFTHCA_QP_SQ_PSN};
	struct softhca_qp *qp = softhca_create_qp_ex(ctx, &init);

	must(qp != NULL, "create_qp_ex");
	for (uint32_t i = 0; i < 3; i++) {
		a.qp_state = SOFTHCA_QPS_INIT + i;
		must(softhca_modify_qp(qp, &a, SOFTHCA_QP_STATE | mask[i]) == 0, "UD QP");
	}
	return qp;
}

static void
post_mad(struct softhca_qp *qp, struct softhca_ah *ah, unsigned int slot)
{
	struct softhca_sge sge = {(uintptr_t)memory + slot * BYTES, BYTES, mr->lkey};
	struct softhca_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = SOFTHCA_WR_SEND,
		.send_flags = SOFTHCA_SEND_SIGNALED,
		.wr.ud = {.ah = ah, .remote_qpn = 1, .remote_qkey = QKEY},
	};
	struct softhca_send_wr *bad;

	must(softhca_post_send(qp, &wr, &bad) == 0, "post_send");
}

/* REQs that no listener has asked for, each of a transaction of its own. */
static int
flood(const char *address, const char *number)
{
	static const uint8_t head[] = {1, 7, 2, 3, 0, 0, 0, 0};
	struct sockaddr_storage a = address_of(address, "0");
	struct softhca_ah_attr attr = {.sgid_index = 1, .port_num = 1, .hop_limit = 64};
	struct softhca_qp *qp = flooder();
	unsigned int n = (unsigned int)atoi(number), flying = 0;
	struct softhca_ah *ah;

	attr.dgid.raw[10] = attr.dgid.raw[11] = 0xff;
	memcpy(attr.dgid.raw + 12, &((const struct sockaddr_in *)&a)->sin_addr, 4);
	ah = softhca_create_ah(pd, &attr);
	must(ah != NULL, "create_ah");
	for (unsigned int i = 0; i < n; i++) {
		uint8_t *mad = memory + i % DEPTH * BYTES;

		for (; flying == DEPTH; flying -= completed())
			;
		memcpy(mad, head, sizeof(head));
		memcpy(mad + 12, &i, sizeof(i));
		memcpy(mad + 24, &i, sizeof(i));
		mad[17] = 0x10;
		post_mad(qp, ah, i % DEPTH);
		flying++;
	}
	for (; flying != 0; flying--)
		await_completion();
	printf("flooded\n");
	return 0;
}

int
main(int argc, char **argv)
{
	int rc = 2;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 5)
		return rc;
	open_objects(argv[1]);
	if (strcmp(argv[2], "serve") == 0)
		rc = serve(argv[3], argv[4]);
	else if (strcmp(argv[2], "call") == 0)
		rc = call(argv[3], argv[4]);
	else if (strcmp(argv[2], "flood") == 0)
		rc = flood(argv[3], argv[4]);
	softhca_close(ctx);
	return rc;
}
