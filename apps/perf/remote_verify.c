/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The checking pass between two processes: each end prepares and checks what lies in its own
 * memory, knowing from the seed what the other one must have sent. The client says when a round
 * begins and how many there are.
 */

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perf_verify.h"
#include "remote.h"

#define QUIET_NS 1000000000ull /* UC, UD: after that nothing is on its way any more */
#define SCAN_NS 10000000ull
#define IDLE_TURNS 64u

struct remote_verify {
	struct remote *r;
	bool requests, responds;
	struct perf_verify out, in; /* from this side, from the other */
};

struct round {
	struct remote_verify *v;
	uint64_t last_progress;
	uint64_t next_scan; /* UC WRITE: memory is looked at so rarely */
	bool told, heard, result_told, result_heard;
};

int
remote_verify_open(struct remote *r, struct remote_verify **out)
{
	struct remote_verify *v = calloc(1, sizeof(*v));
	bool lossy = remote_is_lossy(&r->opt);
	int err = 0;

	*out = v;
	if (v == NULL)
		return -ENOMEM;
	v->r = r;
	v->requests = r->client || r->opt.remote.bidir;
	v->responds = !r->client || r->opt.remote.bidir;
	if (v->requests)
		err = perf_verify_open(&v->out, &r->s, 0, lossy);
	if (err == 0 && v->responds)
		err = perf_verify_open(&v->in, &r->s, 1, lossy);
	v->out.direction = !r->client;
	v->in.direction = r->client;
	return err;
}

void
remote_verify_close(struct remote_verify *v)
{
	if (v == NULL)
		return;
	perf_verify_close(&v->out);
	perf_verify_close(&v->in);
	free(v);
}

static int
prepare(struct remote_verify *v, uint64_t round)
{
	int err = 0;

	v->in.round = v->out.round = round;
	if (v->responds)
		err = perf_verify_prepare(&v->in);
	if (err == 0 && v->requests)
		err = perf_verify_prepare(&v->out);
	return err;
}

/* What the requests of the other end do here has been done, or never will be. */
static bool
arrived(struct round *t)
{
	const struct perf_verify *in = &t->v->in;
	uint64_t now = perf_now_ns();

	if (!t->v->responds)
		return true;
	if (!t->heard)
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

static int
check(struct remote_verify *v)
{
	int err = v->responds ? perf_verify_check(&v->in) : 0;

	if (err == 0 && v->requests)
		err = perf_verify_check(&v->out);
	return err;
}

static int
tell(struct round *t)
{
	struct remote_verify *v = t->v;
	struct perf_exchange x = {.value = v->out.round};
	int err = 0;

	if (v->requests && !t->told && v->out.sends_left == 0) {
		t->told = true;
		err = remote_send(&v->r->line, "done", &x);
	}
	if (err != 0 || t->result_told || (v->requests && !t->told) || !arrived(t))
		return err;
	err = check(v);
	if (err != 0)
		return remote_fail(&v->r->line, err, "the %s found wrong data or completions",
				   v->r->client ? "client" : "server");
	x.lost = v->in.lost;
	t->result_told = true;
	return remote_send(&v->r->line, "result", &x);
}

static int
hear(struct round *t)
{
	struct remote *r = t->v->r;
	char word[PERF_EXCHANGE_WORD];
	struct perf_exchange x;
	int rc = remote_look(r, word, &x);

	if (rc <= 0)
		return rc;
	t->last_progress = perf_now_ns();
	if (strcmp(word, "done") == 0) {
		t->heard = true;
		return 0;
	}
	if (strcmp(word, "result") != 0)
		return remote_fail(&r->line, -EPROTO, "\"%s\" in the middle of a round", word);
	t->v->out.lost = x.lost;
	t->result_heard = true;
	return 0;
}

static int
rest(struct round *t, uint32_t *idle)
{
	struct remote_verify *v = t->v;
	struct pollfd fd = {.fd = v->r->line.fd, .events = POLLIN};
	bool passive = v->in.recv_left == 0 && v->out.sends_left == 0;

	if (perf_interrupted() && !v->r->client)
		return remote_fail(&v->r->line, -EINTR, "the server was told to end");
	if (perf_now_ns() - t->last_progress > PERF_STUCK_NS && v->requests && !t->told) {
		remote_fail(&v->r->line, -ETIMEDOUT, "nothing completes any more");
		return perf_stuck(&v->r->s);
	}
	if (t->heard && !v->in.lossy && v->in.recv_left != 0 &&
	    perf_now_ns() - t->last_progress > PERF_STUCK_NS)
		return remote_fail(&v->r->line, -EILSEQ, "%u messages have not arrived",
				   v->in.recv_left);
	if (passive)
		poll(&fd, 1, t->heard ? 1 : 100);
	else if (v->r->opt.events && !t->heard)
		return perf_wait(&v->r->s);
	else if (++*idle > IDLE_TURNS)
		sched_yield();
	return 0;
}

static int
run_round(struct remote_verify *v)
{
	struct round t = {.v = v, .last_progress = perf_now_ns()};
	int err = v->requests ? perf_verify_post(&v->out) : 0, n, m;
	uint32_t idle = 0;

	while (err == 0 && (!t.result_told || !t.result_heard)) {
		n = v->requests ? perf_verify_take(&v->out) : 0;
		m = v->responds ? perf_verify_take(&v->in) : 0;
		if (n < 0 || m < 0) {
			err = n < 0 ? n : m;
			return remote_fail(&v->r->line, err, "the %s found a wrong completion",
					   v->r->client ? "client" : "server");
		}
		if (n + m != 0) {
			t.last_progress = perf_now_ns();
			idle = 0;
			if ((v->out.sends_left & 63) != 0)
				continue;
		}
		err = hear(&t);
		if (err == 0)
			err = tell(&t);
		if (err == 0 && n + m == 0 && !(t.result_told && t.result_heard))
			err = rest(&t, &idle);
	}
	return err;
}

int
remote_verify_serve(struct remote_verify *v, uint64_t round)
{
	struct perf_exchange x = {.value = round};
	int err = prepare(v, round);

	if (err != 0)
		return remote_fail(&v->r->line, err, "the server cannot prepare a round");
	err = remote_send(&v->r->line, "go", &x);
	return err == 0 ? run_round(v) : err;
}

static int
one_round(struct remote_verify *v, uint64_t round)
{
	struct perf_exchange x = {.value = round};
	int err = prepare(v, round);

	if (err == 0)
		err = remote_send(&v->r->line, "go", &x);
	if (err == 0)
		err = remote_expect(&v->r->line, "go", &x);
	return err == 0 ? run_round(v) : err;
}

int
remote_verify_run(struct remote *r, struct perf_row *row)
{
	uint64_t begin = perf_now_ns(), batch = (uint64_t)r->s.num_flows * r->s.slots;
	struct remote_verify *v;
	int err = remote_verify_open(r, &v);

	for (uint64_t round = 0; err == 0 && !perf_interrupted(); round++) {
		v->out.round = round;
		if (perf_verify_enough(&v->out, begin))
			break;
		err = one_round(v, round);
		if (err == 0)
			row->verified_msgs += batch * (r->opt.remote.bidir ? 2 : 1);
	}
	perf_progress(&r->s, "verify", -1);
	row->verified = perf_verdict(err);
	if (v != NULL)
		row->lost += v->out.lost + v->in.lost;
	if (err == 0 && row->verified_msgs != 0 && v->out.lost + v->in.lost >= row->verified_msgs) {
		fprintf(stderr, "softhca-perf: not one message arrived\n");
		row->verified = PERF_WRONG;
		err = -EILSEQ;
	}
	remote_verify_close(v);
	return err;
}
