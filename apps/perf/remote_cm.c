/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * --cm: the server takes requests at a port of the device's addresses, the client connects to one
 * of them. The exchange then goes over that connection (remote_pump.c).
 */

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "remote.h"

#define SLICE_MS 200
#define STEP_MS 2000  /* for an address to be resolved */
#define NO_LISTENER 8 /* reason of a REJ: no service of that number */
#define BACKLOG 16

static const struct softhca_cm_param once = {.retry_count = 7, .rnr_retry_count = 7};

static int
failed(const char *what)
{
	int err = errno != 0 ? -errno : -EIO;

	fprintf(stderr, "softhca-perf: --cm: %s: %s\n", what, softhca_last_error(NULL));
	return err;
}

/* The next event; -ETIMEDOUT, -EINTR after a signal of the program. */
static int
next_event(struct softhca_cm_channel *channel, uint64_t deadline, struct softhca_cm_event *event)
{
	struct pollfd p = {.fd = channel->fd, .events = POLLIN};
	int err;

	while ((err = softhca_cm_get_event(channel, event)) == -EAGAIN || err == -EINTR) {
		if (perf_interrupted())
			return -EINTR;
		if (perf_now_ns() > deadline)
			return -ETIMEDOUT;
		poll(&p, 1, SLICE_MS);
	}
	return err;
}

/* Wait for the event of a call. If the call itself fails, return its error. */
static int
expect(struct softhca_cm_channel *channel, uint64_t deadline, uint32_t type)
{
	struct softhca_cm_event event;
	int err = next_event(channel, deadline, &event);

	if (err != 0 || event.type == type)
		return err;
	if (event.type == SOFTHCA_CM_REJECTED)
		return event.status == NO_LISTENER ? -ECONNREFUSED : -ECONNRESET;
	if (event.type == SOFTHCA_CM_DEVICE_REMOVAL)
		return -ENODEV;
	return event.status < 0 ? event.status : -ECONNRESET;
}

/* The connection is there: the line begins. */
static int
begin_line(struct remote_pump *p, struct softhca_cm_id *id, struct remote_line *l,
	   uint64_t timeout_ns)
{
	struct softhca_cm_info info;
	int fd, err;

	if (softhca_cm_query(id, &info) != 0)
		return failed("query");
	err = remote_pump_start(p, id, &fd);
	if (err != 0)
		return err;
	remote_line_start(l, fd, timeout_ns, (const struct sockaddr *)&info.dst, sizeof(info.dst));
	l->pump = p;
	l->own = info.sgid;
	l->other = info.dgid;
	return 0;
}

/* ---- the client ---- */

/* A call of an attempt that is refused says why. */
static int
said(int err, const char *what)
{
	if (err != 0)
		fprintf(stderr, "softhca-perf: --cm: %s: %s\n", what, softhca_last_error(NULL));
	return err;
}

/* One attempt to reach one address; the QP of the pump was not used before. */
static int
connect_id(struct remote_pump *p, struct softhca_cm_id *id, const struct sockaddr *to,
	   uint64_t deadline)
{
	struct softhca_cm_channel *channel = remote_pump_channel(p);
	struct softhca_cm_param param = once;
	int err = softhca_cm_resolve_addr(id, NULL, to, STEP_MS);

	if (err == 0)
		err = expect(channel, deadline, SOFTHCA_CM_ADDR_RESOLVED);
	if (err == 0)
		err = softhca_cm_resolve_route(id, STEP_MS);
	if (err == 0)
		err = expect(channel, deadline, SOFTHCA_CM_ROUTE_RESOLVED);
	if (err == 0)
		err = said(softhca_cm_modify_qp(id, remote_pump_qp(p), SOFTHCA_QPS_INIT), "QP");
	if (err == 0)
		err = remote_pump_fill(p);
	param.qp_num = remote_pump_qp(p)->qp_num;
	if (err == 0)
		err = said(softhca_cm_connect(id, &param), "connect");
	if (err == 0)
		err = expect(channel, deadline, SOFTHCA_CM_CONNECT_RESPONSE);
	if (err == 0)
		err = said(softhca_cm_modify_qp(id, remote_pump_qp(p), SOFTHCA_QPS_RTS), "QP");
	return err == 0 ? softhca_cm_establish(id) : err;
}

static int
connect_one(struct softhca_context *ctx, const struct sockaddr *to, uint64_t deadline,
	    struct remote_line *l)
{
	struct remote_pump *p = remote_pump_open(ctx);
	uint64_t timeout_ns = l->timeout_ns;
	struct softhca_cm_id *id;
	int err;

	if (p == NULL)
		return -EIO;
	id = softhca_cm_create_id(remote_pump_channel(p), SOFTHCA_CM_TCP, SOFTHCA_QPT_RC, NULL);
	err = id != NULL ? connect_id(p, id, to, deadline) : failed("no id");
	if (err == 0)
		err = begin_line(p, id, l, timeout_ns);
	if (err != 0)
		remote_pump_close(p); /* with its channel the id goes */
	return err;
}

/* A server that was started a moment ago may not listen yet, and the link may not be up. */
static bool
may_come(int err)
{
	return err == -ECONNREFUSED || err == -EHOSTUNREACH || err == -ETIMEDOUT;
}

static int
connect_any(struct softhca_context *ctx, const struct addrinfo *list, uint64_t deadline,
	    struct remote_line *l)
{
	uint64_t start = perf_now_ns(), now = start;
	int err = -EINVAL, refused = 0;
	bool again = true;

	while (again) {
		again = false;
		for (const struct addrinfo *a = list; a != NULL; a = a->ai_next) {
			err = connect_one(ctx, a->ai_addr, deadline, l);
			if (err == 0 || perf_interrupted())
				return err;
			again |= may_come(err);
			if (err == -ECONNREFUSED)
				refused = err;
		}
		now = perf_now_ns();
		again = again && now - start < REMOTE_START_NS && now < deadline;
		if (again)
			remote_pause();
	}
	return refused != 0 ? refused : err;
}

int
remote_cm_connect(struct softhca_context *ctx, struct remote_line *l, const char *text,
		  uint32_t otherwise, uint64_t timeout_ns)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
	char host[256], port[8];
	int err;

	*l = (struct remote_line){.fd = -1, .timeout_ns = timeout_ns};
	if (remote_split_host(text, otherwise, host, port) != 0) {
		fprintf(stderr, "softhca-perf: --client: HOST or HOST:PORT expected, not %s\n",
			text);
		return -EINVAL;
	}
	err = getaddrinfo(host, port, &hints, &list);
	if (err != 0) {
		fprintf(stderr, "softhca-perf: %s: %s\n", host, gai_strerror(err));
		return -EINVAL;
	}
	err = connect_any(ctx, list, perf_now_ns() + timeout_ns, l);
	freeaddrinfo(list);
	if (err == -ECONNREFUSED)
		fprintf(stderr, "softhca-perf: --cm: no server at %s, RDMA port %s\n", host, port);
	else if (err != 0 && err != -EINTR)
		fprintf(stderr,
			"softhca-perf: --cm: %s, RDMA port %s: %s; HOST is an address of the "
			"server's device (softhca-perf --gids prints them)\n",
			host, port, strerror(-err));
	return err;
}

/* ---- the server ---- */

struct remote_door {
	struct softhca_context *ctx;
	struct softhca_cm_channel *channel;
	struct softhca_cm_id *listener;
};

int
remote_cm_listen(struct softhca_context *ctx, uint32_t port, struct remote_door **out)
{
	struct sockaddr_in6 all = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
	struct remote_door *d = calloc(1, sizeof(*d));

	if (d == NULL)
		return -ENOMEM;
	*out = d;
	d->ctx = ctx;
	d->channel = softhca_cm_create_channel(ctx);
	if (d->channel == NULL)
		return failed("no channel");
	fcntl(d->channel->fd, F_SETFL, O_NONBLOCK);
	d->listener = softhca_cm_create_id(d->channel, SOFTHCA_CM_TCP, SOFTHCA_QPT_RC, NULL);
	if (d->listener == NULL)
		return failed("no id");
	if (softhca_cm_bind(d->listener, (struct sockaddr *)&all, 0) != 0)
		return failed("bind");
	if (softhca_cm_listen(d->listener, BACKLOG) != 0)
		return failed("listen");
	return 0;
}

void
remote_cm_unlisten(struct remote_door *d)
{
	if (d == NULL)
		return;
	if (d->channel != NULL)
		softhca_cm_destroy_channel(d->channel);
	free(d);
}

/* The id of a request; -EAGAIN: the device has news. */
static int
next_request(struct remote_door *d, int device, struct softhca_cm_id **id)
{
	struct pollfd p[2] = {{.fd = d->channel->fd, .events = POLLIN},
			      {.fd = device, .events = POLLIN}};
	struct softhca_cm_event event;
	int err;

	for (;;) {
		err = softhca_cm_get_event(d->channel, &event);
		if (err == 0 && event.type == SOFTHCA_CM_CONNECT_REQUEST) {
			*id = event.id;
			return 0;
		}
		if (err == 0 && event.id != d->listener) /* a request that has gone meanwhile */
			softhca_cm_destroy_id(event.id);
		if (err == -EIO)
			return failed("the device is gone, and the server ends");
		if (perf_interrupted())
			return -EINTR;
		if (err != 0 && poll(p, 2, SLICE_MS) > 0 && p[1].revents != 0)
			return -EAGAIN;
	}
}

static int
accept_id(struct remote_pump *p, struct softhca_cm_id *id)
{
	struct softhca_cm_param param = once;
	int err = softhca_cm_migrate(id, remote_pump_channel(p));

	if (err == 0)
		err = softhca_cm_modify_qp(id, remote_pump_qp(p), SOFTHCA_QPS_INIT);
	if (err == 0)
		err = remote_pump_fill(p);
	if (err == 0)
		err = softhca_cm_modify_qp(id, remote_pump_qp(p), SOFTHCA_QPS_RTS);
	param.qp_num = remote_pump_qp(p)->qp_num;
	return err == 0 ? softhca_cm_accept(id, &param) : err;
}

/* A client that sends no more is no error. */
static int
take_client(struct remote_door *d, struct softhca_cm_id *id, struct remote_line *l,
	    uint64_t timeout_ns)
{
	struct remote_pump *p = remote_pump_open(d->ctx);
	int err = p != NULL ? accept_id(p, id) : -EIO;

	if (err == 0)
		err = expect(remote_pump_channel(p), perf_now_ns() + timeout_ns,
			     SOFTHCA_CM_ESTABLISHED);
	if (err == 0)
		err = begin_line(p, id, l, timeout_ns);
	if (err != 0) {
		fprintf(stderr, "softhca-perf: --cm: a client has gone: %s\n", strerror(-err));
		if (p == NULL || id->channel != remote_pump_channel(p))
			softhca_cm_destroy_id(id);
		remote_pump_close(p);
	}
	return err;
}

int
remote_cm_accept(struct remote_door *d, int device, struct remote_line *l, uint64_t timeout_ns)
{
	struct softhca_cm_id *id;
	int err;

	do {
		err = next_request(d, device, &id);
		if (err != 0)
			return err;
	} while (take_client(d, id, l, timeout_ns) != 0);
	return 0;
}
