/* SPDX-License-Identifier: BSD-3-Clause */

/* The daemon's device, and the exchange of both ends about their queues. */

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "perf_ub.h"
#include "remote.h"

static int
failed(const char *what)
{
	fprintf(stderr, "softhca-perf: %s: %s\n", what, softhca_last_error(NULL));
	return -EIO;
}

/* A name or a path where no process listens */
static bool
is_absent(int err)
{
	return err == -ENODEV || err == -ENOENT;
}

/* A daemon started a moment ago may not listen yet. */
static int
open_device(const char *name, uint64_t timeout_ns, struct softhca_context **ctx)
{
	uint64_t deadline =
		perf_now_ns() + (timeout_ns < REMOTE_START_NS ? timeout_ns : REMOTE_START_NS);
	int err = softhca_open(name, ctx);

	if (is_absent(err))
		fprintf(stderr, "softhca-perf: waiting: %s\n", softhca_last_error(NULL));
	while (is_absent(err) && perf_now_ns() < deadline) {
		remote_pause();
		err = softhca_open(name, ctx);
	}
	return err == 0 ? 0 : failed("no device");
}

int
remote_session_open(struct remote *r, const struct perf_options *opt)
{
	struct perf_session *s = &r->s;
	struct softhca_port_attr port;

	memset(r, 0, sizeof(*r));
	r->line.fd = -1;
	r->own = opt;
	r->opt = *opt;
	s->opt = &r->opt;
	s->peer = r;
	s->wake_fd = -1;
	s->local[0] = true;
	if (open_device(opt->remote.device, opt->remote.timeout * 1000000000ull, &s->ctx[0]) != 0)
		return -EIO;
	s->pd[0] = softhca_alloc_pd(s->ctx[0]);
	if (s->pd[0] == NULL)
		return failed("alloc_pd");
	if (softhca_query_device(s->ctx[0], &s->device) != 0 ||
	    softhca_query_port(s->ctx[0], 1, &port) != 0)
		return failed("query");
	r->port_mtu = 128u << port.active_mtu;
	return 0;
}

/* A frame to a GID of the own port never leaves it. */
static bool
peer_is_own_port(const struct remote *r)
{
	static struct remote_gids gids; /* large */

	if (remote_gids_read(r->s.ctx[0], &gids) != 0)
		return false;
	for (unsigned int i = 0; i < gids.count; i++)
		if (memcmp(gids.entry[i].gid.raw, r->s.gid[1].raw, sizeof(r->s.gid[1].raw)) == 0)
			return true;
	return false;
}

void
remote_wait_link(struct remote *r)
{
	struct softhca_context *ctx = r->s.ctx[0];
	uint64_t deadline = perf_now_ns() + r->own->remote.timeout * 1000000000ull;
	struct softhca_port_attr port;
	bool told = false;

	if (softhca_query_port(ctx, 1, &port) == 0 && port.state == SOFTHCA_PORT_ACTIVE)
		return;
	if (peer_is_own_port(r))
		return;
	while (softhca_query_port(ctx, 1, &port) == 0 && port.state != SOFTHCA_PORT_ACTIVE) {
		bool late = perf_now_ns() >= deadline || perf_interrupted();

		if (!told || late)
			fprintf(stderr, "softhca-perf: %sthe port of %s is %s\n",
				late ? "" : "waiting: ", ctx->name,
				softhca_port_state_str(port.state));
		told = true;
		if (late || (r->line.fd >= 0 && remote_beat(&r->line) != 0))
			break;
		remote_pause();
	}
}

void
remote_session_close(struct remote *r)
{
	if (r->open)
		perf_row_close(&r->s);
	r->open = false;
	remote_close(&r->line);
	if (r->s.pd[0] != NULL)
		softhca_dealloc_pd(r->s.pd[0]);
	if (r->s.ctx[0] != NULL)
		softhca_close(r->s.ctx[0]);
	r->s.pd[0] = NULL;
	r->s.ctx[0] = NULL;
}

int
remote_flow_say(struct remote *r, uint32_t i, struct perf_exchange *x)
{
	const struct perf_session *s = &r->s;
	const struct perf_area *a = &s->area[0][perf_remote_kind(r->opt.op)];
	uint32_t random;

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -EIO;
	s->flows[i].psn[0] = random & 0xffffff;
	x->qpn = s->flows[i].qpn[0];
	x->executes = s->flows[i].executes[0];
	x->psn = s->flows[i].psn[0];
	x->qkey = s->ub != NULL ? s->ub->token[0].token : PERF_QKEY;
	x->vaddr = a->addr;
	x->rkey = a->rkey;
	x->srqn = s->srqn[0];
	memcpy(x->gid, s->gid[0].raw, sizeof(x->gid));
	return 0;
}

/* Numbers of the wire have 24 or 32 bits, whatever was said. */
void
remote_flow_hear(struct remote *r, uint32_t i, const struct perf_exchange *x)
{
	struct perf_session *s = &r->s;
	struct perf_area *a = &s->area[1][perf_remote_kind(r->opt.op)];
	struct perf_flow *f = &s->flows[i];

	f->qpn[1] = x->qpn & 0xffffff;
	f->executes[1] = x->executes != 0 ? x->executes & 0xffffff : f->qpn[1];
	f->psn[1] = x->psn & 0xffffff;
	a->addr = x->vaddr;
	a->rkey = (uint32_t)x->rkey;
	s->srqn[1] = x->srqn & 0xffffff;
	if (s->ub != NULL)
		s->ub->token[1].token = (uint32_t)x->qkey;
}

/* Receives of SEND: in the ping-pong of latency both ends take messages. */
static bool
takes_messages(const struct remote *r)
{
	return r->opt.op == PERF_OP_SEND &&
	       (!r->client || r->opt.remote.bidir || r->opt.test == PERF_TEST_LAT);
}

static int
start_flow(struct remote *r, uint32_t i, uint32_t posted)
{
	struct perf_session *s = &r->s;
	uint32_t group = r->opt.post_list, count = posted > s->slots ? posted : s->slots;
	int err = perf_ring_build(s, i, 1, (count + group - 1) / group * group, group, 1,
				  &s->flows[i].back);

	return err == 0 ? perf_receives_start(s, &s->flows[i], 0, posted) : err;
}

/*
 * UB: the first connection to a peer has to wait for its channels, up to half a minute without an
 * answer, while the other end must receive signs of life.
 */
static void *
beat_main(void *arg)
{
	struct remote *r = arg;

	while (!__atomic_load_n(&r->connected, __ATOMIC_ACQUIRE) && remote_beat(&r->line) == 0)
		remote_pause();
	return NULL;
}

static int
connect_row(struct remote *r)
{
	pthread_t beats;
	int err;

	__atomic_store_n(&r->connected, false, __ATOMIC_RELEASE);
	if (r->s.ub == NULL || pthread_create(&beats, NULL, beat_main, r) != 0)
		return perf_row_connect(&r->s);
	err = perf_row_connect(&r->s);
	__atomic_store_n(&r->connected, true, __ATOMIC_RELEASE);
	pthread_join(beats, NULL);
	return err;
}

/* The checking pass posts its requests round by round, the latency test one by one. */
int
remote_row_connect(struct remote *r)
{
	bool shared = r->s.srq[0] != NULL || r->opt.srq;
	uint32_t wanted = shared ? r->opt.depth : perf_recv_depth(&r->s);
	int err = connect_row(r);

	if (err != 0 || r->pass == REMOTE_PASS_VERIFY || !takes_messages(r))
		return err;
	/* UB's receives complete in any order, and a place is free again when all before it are */
	if (r->s.ub != NULL)
		wanted /= 2;
	if (r->opt.test == PERF_TEST_LAT)
		wanted = 1;
	for (uint32_t i = 0; i < r->s.num_flows && err == 0; i++)
		err = start_flow(r, i, wanted / r->opt.post_list * r->opt.post_list);
	return err;
}

int
remote_talk_hear(struct remote *r, struct remote_talk *t)
{
	char word[PERF_EXCHANGE_WORD];
	struct perf_exchange x;
	int rc = remote_beat(&r->line);

	if (rc == 0)
		rc = remote_poll(&r->line, word, &x);
	if (rc <= 0)
		return rc;
	if (strcmp(word, "done") == 0) {
		t->done = x;
		t->heard = true;
	} else if (strcmp(word, "result") == 0) {
		t->result = x;
		t->result_heard = true;
	} else {
		return remote_fail(&r->line, -EPROTO, "\"%s\" in the middle of a pass", word);
	}
	return 1;
}

int
remote_talk_done(struct remote *r, struct remote_talk *t, const struct perf_exchange *x)
{
	t->told = true;
	return remote_send(&r->line, "done", x);
}

int
remote_talk_result(struct remote *r, struct remote_talk *t, const struct perf_exchange *x)
{
	t->result_told = true;
	return remote_send(&r->line, "result", x);
}
