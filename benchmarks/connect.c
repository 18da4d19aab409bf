/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * How fast connections are set up, used once and taken down, by softhca_cm_*: the client resolves,
 * connects, sends one message and waits for the answer, and disconnects; a given number at a time.
 * Then a given number are alive at once.
 *
 *   connect [--count N] [--parallel N] [--alive N] [DEVICE-A DEVICE-B]
 *
 * Without devices: two HCAs in this process, whose threads share its CPUs. DEVICE-A is the
 * client's, DEVICE-B the server's, of daemons of this machine; they may be the same. At the end
 * each side has as many objects as before; the exit status says so.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <softhca/cm.h>
#include <softhca/embed.h>

#define PORT 7472
#define BYTES 64u
#define WAIT_MS 30000 /* for an event: a later one counts as lost */
#define STEP_MS 10000
#define RESOURCES 64u

static unsigned int count = 5000, parallel = 64, alive = 1000;

static void
die(const char *what, ...)
{
	va_list args;

	va_start(args, what);
	fprintf(stderr, "connect: ");
	vfprintf(stderr, what, args);
	fprintf(stderr, ": %s\n", softhca_last_error(NULL));
	va_end(args);
	exit(1);
}

#define GOOD(call) ((call) == 0 ? (void)0 : die("%s", #call))

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- ends ---- */

struct side {
	struct softhca_context *ctx;
	struct softhca_cm_channel *channel;
	struct softhca_pd *pd;
	struct softhca_cq *cq; /* of all QPs: wr_id is the end */
	uint8_t *mem;	       /* two slots for each end */
	struct softhca_mr *mr;
	uint32_t *free, num_free; /* slots */
	unsigned int ends;
};

struct end {
	struct side *side;
	struct softhca_cm_id *id;
	struct softhca_qp *qp;
	uint32_t slot;
	uint64_t begun;
};

static uint8_t *
slot_of(const struct end *e, unsigned int which)
{
	return e->side->mem + ((size_t)e->slot * 2 + which) * BYTES;
}

static void
post_receive(struct end *e)
{
	struct softhca_sge sge = {(uintptr_t)slot_of(e, 0), BYTES, e->side->mr->lkey};
	struct softhca_recv_wr *bad, wr = {.wr_id = (uintptr_t)e, .sg_list = &sge, .num_sge = 1};

	GOOD(softhca_post_recv(e->qp, &wr, &bad));
}

static void
post_send(struct end *e, uint32_t number)
{
	struct softhca_sge sge = {(uintptr_t)slot_of(e, 1), BYTES, e->side->mr->lkey};
	struct softhca_send_wr *bad, wr = {.wr_id = (uintptr_t)e,
					   .sg_list = &sge,
					   .num_sge = 1,
					   .opcode = SOFTHCA_WR_SEND,
					   .send_flags = SOFTHCA_SEND_SIGNALED};

	memset(slot_of(e, 1), (int)(number & 0xff), BYTES);
	memcpy(slot_of(e, 1), &number, sizeof(number));
	GOOD(softhca_post_send(e->qp, &wr, &bad));
}

static struct end *
end_new(struct side *s, struct softhca_cm_id *id)
{
	struct softhca_qp_init_attr qa = {.send_cq = s->cq,
					  .recv_cq = s->cq,
					  .cap = {1, 1, 1, 1, 0},
					  .qp_type = SOFTHCA_QPT_RC};
	struct end *e = calloc(1, sizeof(*e));

	if (e == NULL || s->num_free == 0)
		die("an end");
	*e = (struct end){.side = s, .id = id, .slot = s->free[--s->num_free]};
	id->user = e;
	e->qp = softhca_create_qp(s->pd, &qa);
	if (e->qp == NULL)
		die("create_qp");
	s->ends++;
	return e;
}

static void
end_free(struct end *e)
{
	GOOD(softhca_cm_destroy_id(e->id));
	GOOD(softhca_destroy_qp(e->qp));
	e->side->free[e->side->num_free++] = e->slot;
	e->side->ends--;
	free(e);
}

static void
side_open(struct side *s, uint32_t ends)
{
	struct softhca_cq_init_attr ca = {.cqe = 4 * ends};

	s->channel = softhca_cm_create_channel(s->ctx);
	if (s->channel == NULL)
		die("no connection management");
	s->pd = softhca_alloc_pd(s->ctx);
	s->cq = softhca_create_cq(s->ctx, &ca);
	s->mem = softhca_alloc((size_t)ends * 2 * BYTES);
	s->free = calloc(ends, sizeof(*s->free));
	if (s->pd == NULL || s->cq == NULL || s->mem == NULL || s->free == NULL)
		die("objects");
	s->mr = softhca_reg_mr(s->pd, s->mem, (size_t)ends * 2 * BYTES, SOFTHCA_ACCESS_LOCAL_WRITE);
	if (s->mr == NULL)
		die("reg_mr");
	for (uint32_t i = 0; i < ends; i++)
		s->free[s->num_free++] = i;
}

static void
side_close(struct side *s)
{
	if (s->ends != 0)
		die("%u ends are left", s->ends);
	GOOD(softhca_cm_destroy_channel(s->channel));
	GOOD(softhca_dereg_mr(s->mr));
	softhca_free(s->mem);
	GOOD(softhca_destroy_cq(s->cq));
	GOOD(softhca_dealloc_pd(s->pd));
	free(s->free);
}

/* One event, if there is one; sleeps at most a millisecond otherwise. */
static bool
next_event(struct side *s, struct softhca_cm_event *event)
{
	struct pollfd p = {.fd = s->channel->fd, .events = POLLIN};

	if (poll(&p, 1, 0) == 0)
		return false;
	GOOD(softhca_cm_get_event(s->channel, event));
	return true;
}

static void
unexpected(const struct softhca_cm_event *event)
{
	fprintf(stderr, "connect: %s, status %d\n", softhca_cm_event_str(event->type),
		event->status);
	exit(1);
}

/* ---- the server ---- */

struct server {
	struct side side;
	bool stop;
};

static void
accept_one(struct side *s, struct softhca_cm_id *id)
{
	struct end *e = end_new(s, id);
	struct softhca_cm_param param = {.qp_num = e->qp->qp_num, .rnr_retry_count = 7};

	GOOD(softhca_cm_modify_qp(id, e->qp, SOFTHCA_QPS_RTS));
	post_receive(e);
	GOOD(softhca_cm_accept(id, &param));
}

static void
server_event(struct side *s, const struct softhca_cm_event *event)
{
	switch (event->type) {
	case SOFTHCA_CM_CONNECT_REQUEST:
		accept_one(s, event->id);
		break;
	case SOFTHCA_CM_ESTABLISHED:
	case SOFTHCA_CM_TIMEWAIT_EXIT:
		break;
	case SOFTHCA_CM_DISCONNECTED:
		end_free(event->id->user);
		break;
	default:
		unexpected(event);
	}
}

/* The server returns the message of a client. */
static bool
server_complete(struct side *s)
{
	struct softhca_wc wc;
	struct end *e;
	uint32_t number;
	int n = softhca_poll_cq(s->cq, 1, &wc);

	if (n == 0)
		return false;
	if (n < 0)
		die("poll_cq");
	if (wc.status != SOFTHCA_WC_SUCCESS || wc.opcode != SOFTHCA_WC_RECV)
		return true;
	e = (struct end *)(uintptr_t)wc.wr_id;
	memcpy(&number, slot_of(e, 0), sizeof(number));
	post_send(e, number);
	return true;
}

static void
pause_a_little(bool *idle)
{
	const struct timespec ts = {.tv_nsec = 50000};

	if (*idle)
		nanosleep(&ts, NULL);
	*idle = true;
}

static void *
server_main(void *arg)
{
	struct server *server = arg;
	struct softhca_cm_event event;
	bool idle = false;

	while (!__atomic_load_n(&server->stop, __ATOMIC_ACQUIRE) || server->side.ends != 0) {
		if (next_event(&server->side, &event)) {
			server_event(&server->side, &event);
			idle = false;
		}
		while (server_complete(&server->side))
			idle = false;
		pause_a_little(&idle);
	}
	return NULL;
}

/* ---- the client ---- */

struct client {
	struct side side;
	struct sockaddr_storage to;
	unsigned int begun, answered, ended;
	unsigned int hold; /* number of connections that stay after the answer */
	uint32_t *took_ns; /* from connect to the answer of the peer's connection manager */
};

static void
client_begin(struct client *c)
{
	struct softhca_cm_id *id =
		softhca_cm_create_id(c->side.channel, SOFTHCA_CM_TCP, SOFTHCA_QPT_RC, NULL);

	if (id == NULL)
		die("create_id");
	end_new(&c->side, id);
	GOOD(softhca_cm_resolve_addr(id, NULL, (struct sockaddr *)&c->to, STEP_MS));
	c->begun++;
}

static void
client_connect(struct end *e)
{
	struct softhca_cm_param param = {.qp_num = e->qp->qp_num,
					 .retry_count = 7,
					 .rnr_retry_count = 7};

	e->begun = now_ns();
	GOOD(softhca_cm_connect(e->id, &param));
}

/* The message goes right behind the confirmation. */
static void
client_use(struct client *c, struct end *e)
{
	c->took_ns[c->answered++ % count] = (uint32_t)(now_ns() - e->begun);
	GOOD(softhca_cm_modify_qp(e->id, e->qp, SOFTHCA_QPS_RTS));
	post_receive(e);
	GOOD(softhca_cm_establish(e->id));
	post_send(e, e->slot + 1);
}

static void
client_event(struct client *c, const struct softhca_cm_event *event)
{
	struct end *e = event->id->user;

	switch (event->type) {
	case SOFTHCA_CM_ADDR_RESOLVED:
		GOOD(softhca_cm_resolve_route(e->id, STEP_MS));
		break;
	case SOFTHCA_CM_ROUTE_RESOLVED:
		client_connect(e);
		break;
	case SOFTHCA_CM_CONNECT_RESPONSE:
		client_use(c, e);
		break;
	case SOFTHCA_CM_DISCONNECTED:
		end_free(e);
		c->ended++;
		break;
	case SOFTHCA_CM_TIMEWAIT_EXIT:
		break;
	default:
		unexpected(event);
	}
}

/* The answer has the number that was sent, or the data is wrong. */
static bool
client_complete(struct client *c, struct end **held, unsigned int *num_held)
{
	struct softhca_wc wc;
	struct end *e;
	int n = softhca_poll_cq(c->side.cq, 1, &wc);

	if (n == 0)
		return false;
	if (n < 0)
		die("poll_cq");
	if (wc.status != SOFTHCA_WC_SUCCESS)
		die("a completion: %s", softhca_wc_status_str(wc.status));
	if (wc.opcode != SOFTHCA_WC_RECV)
		return true;
	e = (struct end *)(uintptr_t)wc.wr_id;
	if (memcmp(slot_of(e, 0), slot_of(e, 1), BYTES) != 0)
		die("wrong data");
	if (*num_held < c->hold)
		held[(*num_held)++] = e;
	else
		GOOD(softhca_cm_disconnect(e->id));
	return true;
}

/* Set up `total` connections; `hold` of them stay until all of these are there. */
static void
client_run(struct client *c, unsigned int total, unsigned int hold)
{
	struct end **held = calloc(hold + 1, sizeof(struct end *));
	struct softhca_cm_event event;
	unsigned int num_held = 0;
	uint64_t last = now_ns();
	bool idle = false;

	if (held == NULL)
		die("memory");
	c->begun = c->answered = c->ended = 0;
	c->hold = hold;
	while (c->ended < total) {
		while (c->begun < total && c->begun - c->ended - num_held < parallel)
			client_begin(c);
		if (next_event(&c->side, &event)) {
			client_event(c, &event);
			idle = false;
		}
		while (client_complete(c, held, &num_held))
			idle = false;
		if (num_held == hold && hold != 0) {
			printf("%u connections alive at once\n", num_held);
			while (num_held != 0)
				GOOD(softhca_cm_disconnect(held[--num_held]->id));
			c->hold = hold = 0;
		}
		if (!idle)
			last = now_ns();
		else if (now_ns() - last > (uint64_t)WAIT_MS * 1000000)
			die("nothing happens any more, after %u of %u", c->ended, total);
		pause_a_little(&idle);
	}
	free(held);
}

static int
compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void
measure(struct client *c)
{
	uint64_t begin = now_ns(), ns;

	client_run(c, count, 0);
	ns = now_ns() - begin;
	qsort(c->took_ns, count, sizeof(*c->took_ns), compare);
	printf("%u connections, %u at a time: %.0f/s; connect p50 %.0f us, p99 %.0f us\n", count,
	       parallel, count * 1e9 / (double)ns, c->took_ns[count / 2] / 1e3,
	       c->took_ns[(uint64_t)count * 99 / 100] / 1e3);
}

/* ---- the whole ---- */

static struct softhca_embed *embed;
static struct softhca_value before[2][RESOURCES];

static void
open_embedded(struct client *c, struct server *s)
{
	struct softhca_embed_config cfg;

	softhca_embed_config_init(&cfg);
	cfg.executor = SOFTHCA_EXECUTOR_THREADS;
	cfg.log_qps = 14;
	if (softhca_embed_create(&cfg, &embed) != 0) {
		fprintf(stderr, "connect: %s\n", softhca_embed_last_error());
		exit(1);
	}
	for (unsigned int i = 0; i < 2; i++)
		softhca_embed_resources(embed, i, before[i], RESOURCES);
	GOOD(softhca_embed_open(embed, 0, &c->side.ctx));
	GOOD(softhca_embed_open(embed, 1, &s->side.ctx));
}

/* Objects in addition to those before; the connection manager frees ended ones a little later. */
static unsigned int
count_left(unsigned int hca)
{
	struct softhca_value now[RESOURCES];
	int n = softhca_embed_resources(embed, hca, now, RESOURCES);
	unsigned int left = 0;

	for (int i = 0; i < n; i++)
		left += now[i].value > before[hca][i].value;
	return left;
}

static int
close_embedded(void)
{
	uint64_t deadline = now_ns() + (uint64_t)WAIT_MS * 1000000;
	unsigned int left;

	do
		left = count_left(0) + count_left(1);
	while (left != 0 && now_ns() < deadline);
	if (left != 0)
		fprintf(stderr, "connect: %u kinds of objects are left\n", left);
	return softhca_embed_destroy(embed) == 0 && left == 0 ? 0 : 1;
}

/* The first address of the server's device that is no link-local one */
static void
choose_address(struct client *c, struct softhca_context *server)
{
	struct sockaddr_in6 *ip6 = (struct sockaddr_in6 *)&c->to;
	struct sockaddr_in *ip4 = (struct sockaddr_in *)&c->to;
	union softhca_gid gid;
	uint32_t i = 0;

	while (softhca_query_gid(server, 1, i, &gid) == 0 && gid.raw[0] == 0xfe)
		i++;
	if (softhca_query_gid(server, 1, i, &gid) != 0)
		die("the server's device has no address");
	if (IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)gid.raw)) {
		ip4->sin_family = AF_INET;
		ip4->sin_port = htons(PORT);
		memcpy(&ip4->sin_addr, gid.raw + 12, 4);
	} else {
		ip6->sin6_family = AF_INET6;
		ip6->sin6_port = htons(PORT);
		memcpy(&ip6->sin6_addr, gid.raw, 16);
	}
}

static void
run(struct client *c, struct server *s)
{
	uint32_t ends = 2 * parallel + alive + 16;
	struct softhca_cm_id *listener;
	pthread_t thread;

	choose_address(c, s->side.ctx);
	side_open(&c->side, ends);
	side_open(&s->side, 4 * ends);
	c->took_ns = calloc(count > alive ? count : alive, sizeof(*c->took_ns));
	listener = softhca_cm_create_id(s->side.channel, SOFTHCA_CM_TCP, SOFTHCA_QPT_RC, NULL);
	if (c->took_ns == NULL || listener == NULL)
		die("listener");
	GOOD(softhca_cm_bind(listener, (struct sockaddr *)&c->to, 0));
	GOOD(softhca_cm_listen(listener, 0));
	pthread_create(&thread, NULL, server_main, s);
	measure(c);
	if (alive != 0)
		client_run(c, alive, alive);
	__atomic_store_n(&s->stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	side_close(&c->side);
	side_close(&s->side);
	free(c->took_ns);
}

static void
take_options(int argc, char **argv)
{
	static const struct option options[] = {{"count", required_argument, NULL, 'c'},
						{"parallel", required_argument, NULL, 'p'},
						{"alive", required_argument, NULL, 'a'},
						{NULL, 0, NULL, 0}};
	int o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		unsigned int n = optarg != NULL ? (unsigned int)strtoul(optarg, NULL, 10) : 0;

		if (o == 'c' && n != 0)
			count = n;
		else if (o == 'p' && n != 0)
			parallel = n;
		else if (o == 'a')
			alive = n;
		else
			exit(2);
	}
}

int
main(int argc, char **argv)
{
	static struct client c;
	static struct server s;

	take_options(argc, argv);
	if (argc - optind == 2) {
		GOOD(softhca_open(argv[optind], &c.side.ctx));
		GOOD(softhca_open(argv[optind + 1], &s.side.ctx));
	} else if (argc == optind) {
		open_embedded(&c, &s);
	} else {
		fprintf(stderr, "usage: connect [--count N] [--parallel N] [--alive N] [A B]\n");
		return 2;
	}
	run(&c, &s);
	GOOD(softhca_close(c.side.ctx));
	GOOD(softhca_close(s.side.ctx));
	return embed != NULL ? close_embedded() : 0;
}
