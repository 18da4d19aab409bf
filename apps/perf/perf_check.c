/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The checking pass, round by round. In one process both sides of a round are local. With two, each
 * end prepares and checks its own memory, and computes from the seed the data that the other one
 * must have sent; the client says when a round begins and how many there are.
 */

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "perf_verify.h"
#include "remote.h"

#define QUIET_NS 1000000000ull /* UC, UD: after that nothing is on its way any more */
#define SCAN_NS 10000000ull
#define IDLE_TURNS 64u
#define EXTRA_TURNS 64u /* after a round: nothing must complete twice */

struct perf_check {
	struct perf_session *s;
	bool requests, responds;
	struct perf_verify out, in; /* from side 0; from the other process */
};

struct round {
	struct perf_check *c;
	struct remote_talk talk;
	uint64_t last_progress;
	uint64_t next_scan; /* UC WRITE: when the memory is read next */
	uint32_t idle;
};

int
perf_check_open(struct perf_session *s, struct perf_check **out)
{
	struct perf_check *c = calloc(1, sizeof(*c));
	const struct remote *r = s->peer;
	bool lossy = r != NULL && perf_is_lossy(s->opt);
	int err = 0;

	*out = c;
	if (c == NULL)
		return -ENOMEM;
	c->s = s;
	c->requests = r == NULL || r->client || s->opt->remote.bidir;
	c->responds = r != NULL && (!r->client || s->opt->remote.bidir);
	if (c->requests)
		err = perf_verify_open(&c->out, s, 0, lossy);
	if (err == 0 && c->responds)
		err = perf_verify_open(&c->in, s, 1, lossy);
	c->out.direction = r != NULL && !r->client;
	c->in.direction = r != NULL && r->client;
	return err;
}

void
perf_check_close(struct perf_check *c)
{
	if (c == NULL)
		return;
	perf_verify_close(&c->out);
	perf_verify_close(&c->in);
	free(c);
}

static int
prepare(struct perf_check *c, uint64_t round)
{
	int err = 0;

	c->in.round = c->out.round = round;
	if (c->responds)
		err = perf_verify_prepare(&c->in);
	if (err == 0 && c->requests)
		err = perf_verify_prepare(&c->out);
	return err;
}

static int
check_take(struct perf_check *c)
{
	int n = c->requests ? perf_verify_take(&c->out) : 0;
	int m = n >= 0 && c->responds ? perf_verify_take(&c->in) : 0;

	return n < 0 ? n : m < 0 ? m : n + m;
}

static int
check(struct perf_check *c)
{
	int err = c->responds ? perf_verify_check(&c->in) : 0;

	if (err == 0 && c->requests)
		err = perf_verify_check(&c->out);
	return err;
}

/* The requests of the other end have had their effect here, or never will. */
static bool
arrived(struct round *t)
{
	const struct perf_verify *in = &t->c->in;
	uint64_t now = perf_now_ns();

	if (!t->c->responds)
		return true;
	if (!t->talk.heard)
		return false;
	if (!in->lossy)
		return in->recv_left == 0;
	if (now - t->last_progress > QUIET_NS)
		return true;
	if (in->s->opt->op != PERF_OP_SEND && now < t->next_scan)
		return false;
	t->next_scan = now + SCAN_NS;
	return perf_verify_complete(in);
}

/* Says so to the other end, if there is one. */
static int
failed(const struct perf_check *c, int err, const char *what)
{
	struct remote *r = c->s->peer;

	return r == NULL ? err
			 : remote_fail(&r->line, err, "the %s found %s",
				       r->client ? "client" : "server", what);
}

static int
tell(struct round *t)
{
	struct perf_check *c = t->c;
	struct perf_exchange x = {.value = c->out.round};
	int err = 0;

	if (c->requests && !t->talk.told && c->out.sends_left == 0)
		err = remote_talk_done(c->s->peer, &t->talk, &x);
	if (err != 0 || t->talk.result_told || (c->requests && !t->talk.told) || !arrived(t))
		return err;
	err = check(c);
	if (err != 0)
		return failed(c, err, "wrong data or completions");
	x.lost = c->in.lost;
	return remote_talk_result(c->s->peer, &t->talk, &x);
}

static int
talk(struct round *t)
{
	int rc = remote_talk_hear(t->c->s->peer, &t->talk);

	if (rc < 0)
		return rc;
	if (rc > 0)
		t->last_progress = perf_now_ns();
	if (t->talk.result_heard)
		t->c->out.lost = t->talk.result.lost;
	return tell(t);
}

/* No message has come for this long: the requests or messages still missing are lost. */
static int
give_up(struct round *t)
{
	struct perf_check *c = t->c;
	struct remote *r = c->s->peer;

	if (perf_now_ns() - t->last_progress <= PERF_STUCK_NS)
		return 0;
	if (c->requests && !t->talk.told) {
		if (r != NULL)
			remote_fail(&r->line, -ETIMEDOUT, "no more completions");
		return perf_stuck(c->s);
	}
	if (t->talk.heard && !c->in.lossy && c->in.recv_left != 0)
		return remote_fail(&r->line, -EILSEQ, "%u messages have not arrived",
				   c->in.recv_left);
	return 0;
}

static int
rest(struct round *t)
{
	struct perf_check *c = t->c;
	struct remote *r = c->s->peer;
	int err = give_up(t);

	if (err != 0)
		return err;
	if (r != NULL && perf_interrupted() && !r->client)
		return remote_fail(&r->line, -EINTR, "the server was told to end");
	if (r != NULL && c->in.recv_left == 0 && c->out.sends_left == 0) {
		struct pollfd fd = {.fd = r->line.fd, .events = POLLIN};

		poll(&fd, 1, t->talk.heard ? 1 : 100);
	} else if (c->s->opt->events && !t->talk.heard) {
		return perf_wait(c->s);
	} else if (++t->idle > IDLE_TURNS) {
		sched_yield();
	}
	return 0;
}

static bool
is_over(const struct round *t)
{
	const struct perf_verify *out = &t->c->out;

	if (t->c->s->peer == NULL)
		return out->sends_left == 0 && out->recv_left == 0;
	return t->talk.result_told && t->talk.result_heard;
}

/*
 * One process: no request completes twice. A UC WRITE completes when it has been sent: wait for
 * packets still under way.
 */
static int
finish_here(struct perf_check *c)
{
	const struct perf_options *opt = c->s->opt;
	bool on_its_way = opt->service == PERF_SERVICE_UC && opt->op == PERF_OP_WRITE;
	uint64_t since = perf_now_ns();
	uint32_t turns = 0;

	while (turns < EXTRA_TURNS || (on_its_way && !perf_verify_complete(&c->out) &&
				       perf_now_ns() - since < PERF_STUCK_NS)) {
		int n = check_take(c);

		if (n < 0)
			return n;
		turns++;
	}
	return check(c);
}

static int
run_round(struct perf_check *c)
{
	struct round t = {.c = c, .last_progress = perf_now_ns()};
	int err = c->requests ? perf_verify_post(&c->out) : 0;

	while (err == 0 && !is_over(&t)) {
		int n = check_take(c);

		if (n < 0)
			return failed(c, n, "a wrong completion");
		if (n != 0) {
			t.last_progress = perf_now_ns();
			t.idle = 0;
			if ((c->out.sends_left & 63) != 0)
				continue;
		}
		if (c->s->peer != NULL)
			err = talk(&t);
		if (err == 0 && n == 0 && !is_over(&t))
			err = rest(&t);
	}
	return err == 0 && c->s->peer == NULL ? finish_here(c) : err;
}

int
perf_check_serve(struct perf_check *c, uint64_t round)
{
	struct remote_line *line = &c->s->peer->line;
	struct perf_exchange x = {.value = round};
	int err = prepare(c, round);

	if (err != 0)
		return remote_fail(line, err, "the server cannot prepare a round");
	err = remote_send(line, "go", &x);
	return err == 0 ? run_round(c) : err;
}

static int
one_round(struct perf_check *c, uint64_t round)
{
	struct perf_exchange x = {.value = round};
	int err = prepare(c, round);

	if (err == 0 && c->s->peer != NULL)
		err = remote_send(&c->s->peer->line, "go", &x);
	if (err == 0 && c->s->peer != NULL)
		err = remote_expect(&c->s->peer->line, "go", &x);
	return err == 0 ? run_round(c) : err;
}

int
perf_check_run(struct perf_session *s, struct perf_row *row)
{
	uint64_t begin = perf_now_ns(), lost = 0;
	uint64_t batch = (uint64_t)s->num_flows * s->slots * (s->opt->remote.bidir ? 2 : 1);
	struct perf_check *c;
	int err = perf_check_open(s, &c);

	for (uint64_t round = 0; err == 0 && !perf_interrupted(); round++) {
		c->out.round = round;
		if (perf_verify_enough(&c->out, begin))
			break;
		err = one_round(c, round);
		if (err == 0)
			row->verified_msgs += batch;
	}
	perf_progress(s, "verify", -1);
	row->verified = perf_verdict(err);
	if (c != NULL)
		lost = c->out.lost + c->in.lost;
	row->lost += lost;
	if (err == 0 && row->verified_msgs != 0 && lost >= row->verified_msgs) {
		fprintf(stderr, "softhca-perf: no message arrived\n");
		row->verified = PERF_WRONG;
		err = -EILSEQ;
	}
	perf_check_close(c);
	return err;
}
