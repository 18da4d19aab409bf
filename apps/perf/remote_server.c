/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * --server: one client after another. Whatever a client does, the next one finds everything as it
 * was: objects belong to a row, a row to a client, and silence ends both.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "perf_version.h"
#include "remote.h"

static int
say_hello(struct remote *r)
{
	struct perf_exchange x = {.version = PERF_EXCHANGE_VERSION, .mtu = r->port_mtu};

	snprintf(x.text, sizeof(x.text), "softhca-perf %s", PERF_COMMIT);
	return remote_send(&r->line, "hello", &x);
}

static int
say_gids(struct remote *r)
{
	static struct remote_gids gids; /* large */
	const struct perf_exchange none = {0};
	int err = remote_gids_read(r->s.ctx[0], &gids);

	if (err != 0)
		return remote_fail(&r->line, err, "the server: %s", softhca_last_error(NULL));
	remote_gids_filter(&gids, r->own);
	for (unsigned int i = 0; i < gids.count && err == 0; i++) {
		const struct remote_gid *g = &gids.entry[i];
		struct perf_exchange x = {.sgid = g->index, .vlan = g->vlan};

		memcpy(x.gid, g->gid.raw, sizeof(x.gid));
		err = remote_send(&r->line, "gid", &x);
	}
	return err == 0 ? remote_send(&r->line, "end", &none) : err;
}

/* The own GID is the one that the client chose from the server's list. */
static int
take_gids(struct remote *r, const struct perf_exchange *x)
{
	static struct remote_gids gids;
	struct remote_gid client = {.vlan = (uint32_t)x->vlan & 0xfff};
	const char *why = "it is not one of those offered";

	memcpy(client.gid.raw, x->gid, sizeof(x->gid));
	if (remote_gids_read(r->s.ctx[0], &gids) != 0)
		return remote_fail(&r->line, -EIO, "the server: %s", softhca_last_error(NULL));
	remote_gids_filter(&gids, r->own);
	for (unsigned int i = 0; i < gids.count; i++) {
		if (gids.entry[i].index != x->sgid)
			continue;
		why = remote_gid_unroutable(&gids.entry[i], &client);
		if (why != NULL)
			break;
		r->s.gid[0] = gids.entry[i].gid;
		r->s.sgid_index[0] = (uint8_t)gids.entry[i].index;
		r->s.gid[1] = client.gid;
		return 0;
	}
	return remote_fail(&r->line, -EINVAL, "GID %u of the server and that of the client: %s",
			   (unsigned int)x->sgid, why);
}

/* The first QP of a row */
static int
open_row(struct remote *r, const struct perf_exchange *x)
{
	char why[256];
	int err = remote_case_take(x, r->own, &r->opt, why);

	if (err != 0)
		return remote_fail(&r->line, err, "%s", why);
	if (r->opt.mtu > r->port_mtu)
		return remote_fail(&r->line, -EINVAL,
				   "MTU %u of the client, the server's port has %u", r->opt.mtu,
				   r->port_mtu);
	err = take_gids(r, x);
	if (err != 0)
		return err;
	remote_wait_link(r);
	r->pass = (enum remote_pass)x->pass;
	if (r->pass == REMOTE_PASS_TIMED)
		perf_report_header(&r->opt);
	r->open = true;
	r->cases = 0;
	err = perf_row_open(&r->s, r->opt.size);
	return err == 0 ? 0
			: remote_fail(&r->line, err, "the server: %s", softhca_last_error(NULL));
}

static int
add_qp(struct remote *r, const struct perf_exchange *x)
{
	struct perf_exchange ready = {.version = PERF_EXCHANGE_VERSION};
	int err = 0;

	if (!r->open)
		err = open_row(r, x);
	if (err != 0)
		return err;
	if (r->cases == r->s.num_flows)
		return remote_fail(&r->line, -EPROTO, "more QPs than were announced");
	remote_flow_hear(r, r->cases, x);
	err = remote_flow_say(r, r->cases, &ready);
	if (err == 0 && ++r->cases == r->s.num_flows)
		err = remote_row_connect(r);
	if (err != 0)
		return remote_fail(&r->line, err, "the server: %s", softhca_last_error(NULL));
	return remote_send(&r->line, "ready", &ready);
}

static int
run_timed(struct remote *r)
{
	static struct perf_row row; /* large */
	const struct perf_exchange none = {0};
	int err = remote_send(&r->line, "go", &none);

	memset(&row, 0, sizeof(row));
	row.size = r->opt.size;
	if (err == 0)
		err = perf_measure(&r->s, &row);
	if (err == 0 && row.msgs != 0)
		perf_report_row(&r->opt, &row);
	return err;
}

static int
go(struct remote *r, uint64_t round, struct perf_check **c)
{
	int err = 0;

	if (!r->open || r->cases != r->s.num_flows)
		return remote_fail(&r->line, -EPROTO, "\"go\" before all QPs are there");
	if (r->pass == REMOTE_PASS_TIMED)
		return run_timed(r);
	if (*c == NULL)
		err = perf_check_open(&r->s, c);
	if (err != 0)
		return remote_fail(&r->line, err, "the server has no memory for the check");
	err = perf_check_serve(*c, round);
	r->rounds += err == 0;
	return err;
}

static void
stop(struct remote *r, struct perf_check **c)
{
	if (*c != NULL && r->rounds != 0)
		printf("# data of %u rounds was checked at this end too\n", r->rounds);
	r->rounds = 0;
	perf_check_close(*c);
	*c = NULL;
	if (r->open)
		perf_row_close(&r->s);
	r->open = false;
}

static int
serve(struct remote *r)
{
	struct perf_check *c = NULL;
	char word[PERF_EXCHANGE_WORD] = "";
	struct perf_exchange x;
	int err = say_hello(r);

	while (err == 0) {
		err = remote_recv(&r->line, word, &x);
		if (err != 0 || strcmp(word, "bye") == 0)
			break;
		if (strcmp(word, "gids") == 0)
			err = say_gids(r);
		else if (strcmp(word, "case") == 0)
			err = add_qp(r, &x);
		else if (strcmp(word, "go") == 0)
			err = go(r, x.value, &c);
		else if (strcmp(word, "stop") == 0)
			stop(r, &c);
		else
			err = remote_fail(&r->line, -EPROTO, "the server knows no \"%s\"", word);
	}
	stop(r, &c);
	return err;
}

static bool
device_lives(const struct remote *r)
{
	struct softhca_port_attr port;

	if (softhca_query_port(r->s.ctx[0], 1, &port) == 0)
		return true;
	fprintf(stderr, "softhca-perf: the device is gone, and the server ends: %s\n",
		softhca_last_error(NULL));
	return false;
}

/* Where clients come in */
struct entrance {
	int listener;		  /* of TCP; -1: none */
	struct remote_door *door; /* --cm; NULL: none */
};

/* Waits for a client, and meanwhile for news of the device. 0, or the device is gone. */
static int
next_client(struct remote *r, const struct entrance *e)
{
	uint64_t timeout_ns = r->own->remote.timeout * 1000000000ull;
	struct softhca_context *ctx = r->s.ctx[0];
	struct softhca_async_event event;
	int err;

	for (;;) {
		err = e->door != NULL
			      ? remote_cm_accept(e->door, ctx->async_fd, &r->line, timeout_ns)
			      : remote_accept(e->listener, ctx->async_fd, &r->line, timeout_ns);
		if (err != -EAGAIN)
			return err;
		while (softhca_get_async_event(ctx, &event) == 0)
			softhca_ack_async_event(&event);
		if (!device_lives(r))
			return -EIO;
	}
}

static int
serve_all(struct remote *r, const struct entrance *e)
{
	int err, flags = fcntl(r->s.ctx[0]->async_fd, F_GETFL);

	fcntl(r->s.ctx[0]->async_fd, F_SETFL, flags | O_NONBLOCK);
	while ((err = next_client(r, e)) == 0) {
		printf("# client %s\n", r->line.peer);
		fflush(stdout);
		r->s.wake_fd = r->line.fd;
		r->pass = REMOTE_PASS_TIMED;
		err = serve(r);
		printf("# client %s %s\n", r->line.peer, err == 0 ? "is content" : "has failed");
		fflush(stdout);
		remote_close(&r->line);
		if (r->own->remote.once)
			return err;
		if (!device_lives(r))
			return -EIO;
	}
	return err == -EINTR ? 0 : err;
}

static int
open_entrance(struct remote *r, struct entrance *e)
{
	const struct perf_remote_options *o = &r->own->remote;
	int err = o->cm ? remote_cm_listen(r->s.ctx[0], o->port, &e->door)
			: remote_listen(o->port, &e->listener);

	if (err != 0)
		return err;
	printf("# %s serves on %s port %u, MTU %u\n", r->s.ctx[0]->name, o->cm ? "RDMA" : "TCP",
	       o->port, r->port_mtu);
	fflush(stdout);
	return 0;
}

int
remote_server(const struct perf_options *opt)
{
	static struct remote r; /* large */
	struct entrance e = {.listener = -1};
	int err = remote_session_open(&r, opt);

	if (err == 0 && perf_option_given(opt, "mtu") && opt->mtu < r.port_mtu)
		r.port_mtu = opt->mtu;
	if (err == 0)
		err = open_entrance(&r, &e);
	if (err == 0)
		err = serve_all(&r, &e);
	if (e.listener >= 0)
		close(e.listener);
	remote_cm_unlisten(e.door);
	remote_session_close(&r);
	return err;
}
