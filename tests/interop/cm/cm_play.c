/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * One end of a connection by librdmacm, which says each event it gets. Debian's programs accept
 * every request and send no private data of their own; this program does both:
 *
 *	cm-play listen ADDRESS PORT [OPTION]...
 *	cm-play connect ADDRESS PORT [OPTION]...
 *
 *	udp          datagrams instead of connections
 *	data=N       N bytes of private data (1, 2, 3, ...) with the request or with the answer
 *	reject       listen: refuse; connect: refuse the answer
 *	wait=MS      before the answer (listen), between ESTABLISHED and the end (connect)
 *	hold         stay until the other end disconnects
 *	vanish       end without a word, listen: before the answer, connect: when ESTABLISHED
 *	timeout=MS   for the address
 *
 * listen ends after one connection. Exit status: 0: all came as asked for; 1: else.
 */

#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

struct play {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct addrinfo *address;
	bool listens, udp, reject, hold, vanish;
	int wait_ms, timeout_ms;
	uint8_t data_len;
	uint8_t data[255];
};

static void
play_fail(const char *what)
{
	printf("failed %s: %s\n", what, strerror(errno));
	exit(1);
}

static void
play_check(int result, const char *what)
{
	if (result != 0)
		play_fail(what);
}

static void
play_print_data(const void *data, uint8_t len)
{
	const uint8_t *byte = data;
	uint8_t used = len;

	while (used != 0 && byte[used - 1] == 0)
		used--;
	printf(" data %u", len);
	for (uint8_t i = 0; i < used; i++)
		printf("%s%02x", i == 0 ? " " : "", byte[i]);
}

static void
play_say(const struct rdma_cm_event *event, bool udp)
{
	const char *name = rdma_event_str(event->event);

	printf("%s status %d", name + strlen("RDMA_CM_EVENT_"), event->status);
	if (udp)
		play_print_data(event->param.ud.private_data, event->param.ud.private_data_len);
	else
		play_print_data(event->param.conn.private_data, event->param.conn.private_data_len);
	printf("\n");
	fflush(stdout);
}

/* The next event; its id. */
static enum rdma_cm_event_type
play_next(struct play *play, struct rdma_cm_id **id)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;

	play_check(rdma_get_cm_event(play->channel, &event), "rdma_get_cm_event");
	play_say(event, play->udp);
	type = event->event;
	*id = event->id;
	rdma_ack_cm_event(event);
	return type;
}

static void
play_want(struct play *play, enum rdma_cm_event_type wanted)
{
	struct rdma_cm_id *id;

	if (play_next(play, &id) != wanted)
		exit(1);
}

static void
play_make_qp(const struct play *play, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = play->udp ? IBV_QPT_UD : IBV_QPT_RC,
	};

	play_check(rdma_create_qp(id, NULL, &init), "rdma_create_qp");
}

static struct rdma_conn_param
play_param(const struct play *play, const struct rdma_cm_id *id)
{
	return (struct rdma_conn_param){
		.private_data = play->data,
		.private_data_len = play->data_len,
		.responder_resources = 3,
		.initiator_depth = 2,
		.retry_count = 5,
		.rnr_retry_count = 6,
		.qp_num = play->udp && id->qp != NULL ? id->qp->qp_num : 0,
	};
}

static void
play_until_disconnected(struct play *play, struct rdma_cm_id *id)
{
	play_want(play, RDMA_CM_EVENT_DISCONNECTED);
	play_check(rdma_disconnect(id), "rdma_disconnect");
}

static void
play_answer(struct play *play, struct rdma_cm_id *id)
{
	struct rdma_conn_param param;

	usleep((useconds_t)play->wait_ms * 1000);
	if (play->vanish)
		exit(0);
	if (play->reject) {
		play_check(rdma_reject(id, play->data, play->data_len), "rdma_reject");
		usleep(200000);
		return;
	}
	play_make_qp(play, id);
	param = play_param(play, id);
	play_check(rdma_accept(id, &param), "rdma_accept");
	if (play->udp) {
		usleep(1000000);
		return;
	}
	play_want(play, RDMA_CM_EVENT_ESTABLISHED);
	play_until_disconnected(play, id);
}

static void
play_listen(struct play *play)
{
	struct rdma_cm_id *id;

	play_check(rdma_bind_addr(play->id, play->address->ai_addr), "rdma_bind_addr");
	play_check(rdma_listen(play->id, 8), "rdma_listen");
	printf("listening\n");
	fflush(stdout);
	if (play_next(play, &id) != RDMA_CM_EVENT_CONNECT_REQUEST)
		exit(1);
	play_answer(play, id);
}

/* After ESTABLISHED. */
static void
play_end(struct play *play)
{
	usleep((useconds_t)play->wait_ms * 1000);
	if (play->vanish)
		_exit(0);
	if (play->udp)
		return;
	if (play->hold) {
		play_until_disconnected(play, play->id);
		return;
	}
	play_check(rdma_disconnect(play->id), "rdma_disconnect");
	play_want(play, RDMA_CM_EVENT_DISCONNECTED);
}

static void
play_refuse_answer(struct play *play, struct rdma_conn_param *param)
{
	param->qp_num = 0x123; /* no such QP: the server refuses the answer */
	play_check(rdma_connect(play->id, param), "rdma_connect");
	play_want(play, RDMA_CM_EVENT_CONNECT_RESPONSE);
	play_check(rdma_reject(play->id, play->data, play->data_len), "rdma_reject");
	usleep(200000);
}

static void
play_connect(struct play *play)
{
	struct rdma_conn_param param;

	play_check(rdma_resolve_addr(play->id, NULL, play->address->ai_addr, play->timeout_ms),
		   "rdma_resolve_addr");
	play_want(play, RDMA_CM_EVENT_ADDR_RESOLVED);
	play_check(rdma_resolve_route(play->id, play->timeout_ms), "rdma_resolve_route");
	play_want(play, RDMA_CM_EVENT_ROUTE_RESOLVED);
	param = play_param(play, play->id);
	if (play->reject) {
		play_refuse_answer(play, &param);
		return;
	}
	if (!play->udp)
		play_make_qp(play, play->id);
	play_check(rdma_connect(play->id, &param), "rdma_connect");
	play_want(play, RDMA_CM_EVENT_ESTABLISHED);
	play_end(play);
}

static void
play_option(struct play *play, const char *word)
{
	if (strcmp(word, "udp") == 0)
		play->udp = true;
	else if (strcmp(word, "reject") == 0)
		play->reject = true;
	else if (strcmp(word, "hold") == 0)
		play->hold = true;
	else if (strcmp(word, "vanish") == 0)
		play->vanish = true;
	else if (strncmp(word, "data=", 5) == 0)
		play->data_len = (uint8_t)atoi(word + 5);
	else if (strncmp(word, "wait=", 5) == 0)
		play->wait_ms = atoi(word + 5);
	else if (strncmp(word, "timeout=", 8) == 0)
		play->timeout_ms = atoi(word + 8);
	else {
		printf("no such option: %s\n", word);
		exit(1);
	}
}

int
main(int argc, char **argv)
{
	struct play play = {.timeout_ms = 2000};

	if (argc < 4 || (strcmp(argv[1], "listen") != 0 && strcmp(argv[1], "connect") != 0)) {
		printf("usage: cm-play listen|connect ADDRESS PORT [OPTION]...\n");
		return 1;
	}
	play.listens = strcmp(argv[1], "listen") == 0;
	for (int i = 4; i < argc; i++)
		play_option(&play, argv[i]);
	for (unsigned int i = 0; i < sizeof(play.data); i++)
		play.data[i] = (uint8_t)(i + 1);
	if (getaddrinfo(argv[2], argv[3], NULL, &play.address) != 0)
		play_fail("getaddrinfo");
	play.channel = rdma_create_event_channel();
	if (play.channel == NULL)
		play_fail("rdma_create_event_channel");
	play_check(rdma_create_id(play.channel, &play.id, NULL,
				  play.udp ? RDMA_PS_UDP : RDMA_PS_TCP),
		   "rdma_create_id");
	(play.listens ? play_listen : play_connect)(&play);
	freeaddrinfo(play.address);
	return 0;
}
