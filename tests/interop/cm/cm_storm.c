/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * How fast librdmacm sets connections up, uses each once and takes it down:
 *
 *	cm-storm ADDRESS PORT COUNT PARALLEL
 *
 * The server is a thread of the process. PARALLEL clients resolve, connect, send one message, await
 * the answer and disconnect, one connection after another. The times of connect are those from
 * rdma_connect to ESTABLISHED.
 */

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define BYTES 64u
#define RESOLVE_MS 10000
#define BACKLOG 1024
#define SERVER_CQES 8192

struct storm {
	struct addrinfo *address;
	struct rdma_event_channel *channel; /* of the server */
	struct rdma_cm_id *listener;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	pthread_mutex_t lock;
	pthread_mutex_t server_lock; /* ids of the server are used by those that poll its CQ */
	unsigned int count, parallel, begun;
	uint64_t *ns; /* of each connect */
	char bytes[BYTES];
};

static void
storm_die(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

#define GOOD(call) ((call) == 0 ? (void)0 : storm_die(#call))

static uint64_t
storm_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static struct ibv_qp_init_attr
storm_attr(struct ibv_cq *cq)
{
	return (struct ibv_qp_init_attr){
		.cap = {.max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
		.sq_sig_all = 1,
	};
}

static struct rdma_conn_param
storm_param(void)
{
	return (struct rdma_conn_param){.retry_count = 7, .rnr_retry_count = 7};
}

/* ---- the server ---- */

static void
server_accept(struct storm *s, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr;
	struct rdma_conn_param param = storm_param();

	if (s->pd == NULL) {
		s->pd = ibv_alloc_pd(id->verbs);
		s->cq = ibv_create_cq(id->verbs, SERVER_CQES, NULL, NULL, 0);
		s->mr = ibv_reg_mr(s->pd, s->bytes, BYTES, IBV_ACCESS_LOCAL_WRITE);
		if (s->pd == NULL || s->cq == NULL || s->mr == NULL)
			storm_die("objects of the server");
	}
	attr = storm_attr(s->cq);
	GOOD(rdma_create_qp(id, s->pd, &attr));
	GOOD(rdma_post_recv(id, id, s->bytes, BYTES, s->mr));
	GOOD(rdma_accept(id, &param));
}

static void
server_take_event(struct storm *s, struct rdma_cm_event *event)
{
	struct rdma_cm_id *id = event->id;
	enum rdma_cm_event_type type = event->event;

	GOOD(rdma_ack_cm_event(event));
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		server_accept(s, id);
	} else if (type == RDMA_CM_EVENT_DISCONNECTED) {
		rdma_disconnect(id);
		pthread_mutex_lock(&s->server_lock);
		rdma_destroy_qp(id);
		pthread_mutex_unlock(&s->server_lock);
		GOOD(rdma_destroy_id(id));
	}
}

static void *
server_events(void *arg)
{
	struct storm *s = arg;
	struct rdma_cm_event *event;

	while (rdma_get_cm_event(s->channel, &event) == 0)
		server_take_event(s, event);
	return NULL;
}

/* ---- clients ---- */

/* A completion of the server: its thread waits for events only. false: none. */
static bool
client_serve(struct storm *s)
{
	struct rdma_cm_id *id;
	struct ibv_wc wc;

	if (s->cq == NULL)
		return false;
	pthread_mutex_lock(&s->server_lock);
	if (ibv_poll_cq(s->cq, 1, &wc) < 1) {
		pthread_mutex_unlock(&s->server_lock);
		return false;
	}
	id = (struct rdma_cm_id *)(uintptr_t)wc.wr_id;
	if (wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV)
		GOOD(rdma_post_send(id, NULL, s->bytes, BYTES, s->mr, 0));
	pthread_mutex_unlock(&s->server_lock);
	return true;
}

static void
client_await(struct storm *s, struct ibv_cq *cq, unsigned int n)
{
	struct ibv_wc wc;

	while (n > 0) {
		if (ibv_poll_cq(cq, 1, &wc) < 1) {
			if (!client_serve(s))
				sched_yield();
			continue;
		}
		if (wc.status != IBV_WC_SUCCESS)
			storm_die(ibv_wc_status_str(wc.status));
		n--;
	}
}

static void
client_once(struct storm *s, unsigned int i, char *bytes)
{
	struct rdma_conn_param param = storm_param();
	struct ibv_qp_init_attr attr;
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	uint64_t begin;

	GOOD(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP));
	GOOD(rdma_resolve_addr(id, NULL, s->address->ai_addr, RESOLVE_MS));
	GOOD(rdma_resolve_route(id, RESOLVE_MS));
	cq = ibv_create_cq(id->verbs, 4, NULL, NULL, 0);
	if (cq == NULL)
		storm_die("ibv_create_cq");
	attr = storm_attr(cq);
	GOOD(rdma_create_qp(id, NULL, &attr));
	mr = rdma_reg_msgs(id, bytes, BYTES);
	if (mr == NULL)
		storm_die("rdma_reg_msgs");
	GOOD(rdma_post_recv(id, NULL, bytes, BYTES, mr));
	begin = storm_now();
	GOOD(rdma_connect(id, &param));
	s->ns[i] = storm_now() - begin;
	GOOD(rdma_post_send(id, NULL, bytes, BYTES, mr, 0));
	client_await(s, cq, 2);
	GOOD(rdma_disconnect(id));
	rdma_destroy_qp(id);
	GOOD(rdma_dereg_mr(mr));
	GOOD(ibv_destroy_cq(cq));
	GOOD(rdma_destroy_id(id));
}

static void *
client_run(void *arg)
{
	struct storm *s = arg;
	char bytes[BYTES] = {0};
	unsigned int i;

	for (;;) {
		pthread_mutex_lock(&s->lock);
		i = s->begun < s->count ? s->begun++ : s->count;
		pthread_mutex_unlock(&s->lock);
		if (i == s->count)
			return NULL;
		client_once(s, i, bytes);
	}
}

static int
storm_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void
storm_run(struct storm *s)
{
	pthread_t *clients = calloc(s->parallel, sizeof(*clients)), server;
	uint64_t begin = storm_now(), ns;

	if (clients == NULL || pthread_create(&server, NULL, server_events, s) != 0)
		storm_die("threads");
	for (unsigned int i = 0; i < s->parallel; i++)
		if (pthread_create(&clients[i], NULL, client_run, s) != 0)
			storm_die("threads");
	for (unsigned int i = 0; i < s->parallel; i++)
		pthread_join(clients[i], NULL);
	ns = storm_now() - begin;
	qsort(s->ns, s->count, sizeof(s->ns[0]), storm_compare);
	printf("%u connections, %u at a time: %.0f a second; connect p50 %.2f ms, p99 %.2f ms\n",
	       s->count, s->parallel, s->count * 1e9 / (double)ns,
	       (double)s->ns[s->count / 2] / 1e6, (double)s->ns[s->count * 99ull / 100] / 1e6);
}

int
main(int argc, char **argv)
{
	struct storm s = {.lock = PTHREAD_MUTEX_INITIALIZER,
			  .server_lock = PTHREAD_MUTEX_INITIALIZER};

	if (argc != 5 || getaddrinfo(argv[1], argv[2], NULL, &s.address) != 0) {
		printf("usage: cm-storm ADDRESS PORT COUNT PARALLEL\n");
		return 1;
	}
	s.count = (unsigned int)atoi(argv[3]);
	s.parallel = (unsigned int)atoi(argv[4]);
	s.ns = calloc(s.count, sizeof(s.ns[0]));
	s.channel = rdma_create_event_channel();
	if (s.count == 0 || s.parallel == 0 || s.ns == NULL || s.channel == NULL)
		storm_die("set-up");
	GOOD(rdma_create_id(s.channel, &s.listener, NULL, RDMA_PS_TCP));
	GOOD(rdma_bind_addr(s.listener, s.address->ai_addr));
	GOOD(rdma_listen(s.listener, BACKLOG));
	storm_run(&s);
	exit(0); /* the server's thread waits in rdma_get_cm_event() */
}
