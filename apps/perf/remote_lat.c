/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Latency between two processes, one message under way. WRITE and SEND: the server answers each
 * with one of its own until it hears "done"; half a round trip counts. READ and atomics: post to
 * completion, the server does nothing.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perf_clock.h"
#include "remote.h"

#define SAMPLES_MAX (1u << 22)
#define WARM_UP 100u
#define SEND_CQ_SLACK 32u
#define SPINS 256u

struct lat {
	struct remote *r;
	struct perf_session *s;
	struct perf_flow *f;
	struct perf_clock clock;
	uint32_t *sample; /* ns */
	uint32_t n, unpolled;
	bool over; /* server: the client has said "done" */
	uint64_t limit, begin, end_at;
};

static int
hear(struct lat *l)
{
	char word[PERF_EXCHANGE_WORD];
	struct perf_exchange x;
	int rc = remote_look(l->r, word, &x);

	if (rc <= 0)
		return rc;
	if (l->r->client || strcmp(word, "done") != 0)
		return remote_fail(&l->r->line, -EPROTO, "\"%s\" in the middle of a pass", word);
	l->over = true;
	return 0;
}

/* Who waits for a message is not to be woken when his own has been acknowledged. */
static int
wait_event(struct lat *l, bool send)
{
	return send ? perf_wait(l->s) : perf_wait_recv(l->s);
}

/* Between two polls that find nothing; send: of the send CQ. */
static int
wait_a_little(struct lat *l, bool send, uint64_t since, uint32_t *spins)
{
	if (perf_interrupted() && !l->r->client)
		return remote_fail(&l->r->line, -EINTR, "the server was told to end");
	if (l->r->opt.events && wait_event(l, send) != 0)
		return -EIO;
	/* poll_cq gives way where the CPU is shared; once more would be too often. */
	if (!l->r->opt.events && ++*spins % SPINS != 0)
		return 0;
	if (perf_now_ns() - since < PERF_STUCK_NS || !l->r->client)
		return hear(l);
	remote_fail(&l->r->line, -ETIMEDOUT, "no answer comes any more");
	return perf_stuck(l->s);
}

/* One completion of cq; 1, or 0 when the client is done. */
static int
wait_cq(struct lat *l, struct softhca_cq *cq)
{
	uint64_t since = perf_now_ns();
	struct softhca_wc wc;
	uint32_t spins = 0;
	int n;

	while ((n = softhca_poll_cq(cq, 1, &wc)) == 0) {
		int err = wait_a_little(l, cq == l->s->send_cq[0], since, &spins);

		if (err != 0 || l->over)
			return err;
	}
	if (n < 0)
		return n;
	return wc.status == SOFTHCA_WC_SUCCESS ? 1 : perf_bad_completion(l->s, &wc);
}

/* Send completions are taken when many may be outstanding: post_send must find room. */
static int
reap(struct lat *l)
{
	struct softhca_wc wc[PERF_POLL_MAX];

	while (l->unpolled >= SEND_CQ_SLACK) {
		int n = softhca_poll_cq(l->s->send_cq[0], PERF_POLL_MAX, wc);

		for (int i = 0; i < n; i++)
			if (wc[i].status != SOFTHCA_WC_SUCCESS)
				return perf_bad_completion(l->s, &wc[i]);
		if (n < 0)
			return n;
		l->unpolled -= (uint32_t)n;
	}
	return 0;
}

/* Nothing of the library is called, so that it can give nobody its CPU. */
static int
watch_byte(struct lat *l, const volatile uint8_t *last, uint8_t value)
{
	uint64_t since = perf_now_ns();

	while (!perf_watch(last, value)) {
		int err = hear(l);

		if (err != 0 || l->over)
			return err;
		if (perf_interrupted() && !l->r->client)
			return remote_fail(&l->r->line, -EINTR, "the server was told to end");
		if (perf_now_ns() - since < PERF_STUCK_NS || !l->r->client)
			continue;
		remote_fail(&l->r->line, -ETIMEDOUT, "no answer comes any more");
		return perf_stuck(l->s);
	}
	return 1;
}

static int
wait_byte(struct lat *l, uint8_t value)
{
	const uint8_t *last = &perf_slot(l->s, 0, PERF_SINK, 0, 0)[l->s->size - 1];
	uint64_t since = perf_now_ns();
	struct softhca_wc wc;
	uint32_t spins = 0;
	int n, err;

	if (l->r->opt.memory_poll)
		return watch_byte(l, last, value);
	while (__atomic_load_n(last, __ATOMIC_ACQUIRE) != value) {
		/* A request that fails must not look like a peer that is slow. */
		n = softhca_poll_cq(l->s->send_cq[0], 1, &wc);
		if (n > 0 && wc.status != SOFTHCA_WC_SUCCESS)
			return perf_bad_completion(l->s, &wc);
		if (n < 0)
			return n;
		l->unpolled -= (uint32_t)n;
		err = wait_a_little(l, true, since, &spins);
		if (err != 0 || l->over)
			return err;
	}
	return 1;
}

static int
say(struct lat *l, uint8_t value)
{
	int err;

	perf_slot(l->s, 0, PERF_SOURCE, 0, 0)[l->s->size - 1] = value;
	err = perf_post(l->f, 0, &l->f->ring.wr[0]);
	l->unpolled++;
	return err;
}

/* 1: it has come; the receive it took is posted again. */
static int
listen(struct lat *l, uint8_t value)
{
	int rc;

	if (l->r->opt.op != PERF_OP_SEND)
		return wait_byte(l, value);
	rc = wait_cq(l, l->s->recv_cq[0]);
	if (rc == 1 && perf_post_recv(l->s, l->f, 0, &l->f->back.recv[0]) != 0)
		return -EIO;
	return rc;
}

static int
one_sample(struct lat *l, uint8_t value)
{
	int rc = say(l, value);

	if (rc != 0)
		return rc;
	if (l->r->opt.op == PERF_OP_READ || perf_is_atomic(l->r->opt.op)) {
		l->unpolled = 0;
		rc = wait_cq(l, l->s->send_cq[0]);
		return rc == 1 ? 0 : rc;
	}
	rc = listen(l, value);
	return rc == 1 ? reap(l) : rc;
}

static int
measure(struct lat *l, uint32_t divisor)
{
	uint64_t warm_up = l->limit < WARM_UP ? l->limit : WARM_UP;

	for (uint64_t i = 0; i < l->limit + warm_up; i++) {
		uint64_t t0 = perf_ticks(), t1;
		int err = one_sample(l, (uint8_t)(i % 255 + 1));

		if (err != 0)
			return err;
		t1 = perf_ticks();
		if (i < warm_up) {
			l->begin = perf_now_ns();
			continue;
		}
		l->sample[l->n++] = (uint32_t)(perf_ticks_to_ns(&l->clock, t1 - t0) / divisor);
		if (l->n == SAMPLES_MAX || perf_interrupted())
			break;
		if ((i & 63) != 0)
			continue;
		err = hear(l);
		if (err != 0)
			return err;
		if (perf_now_ns() >= l->end_at)
			break;
		perf_progress(l->s, "lat", (double)l->n / (double)l->limit);
	}
	perf_progress(l->s, "lat", -1);
	return 0;
}

static int
answer(struct lat *l)
{
	for (uint64_t i = 0;; i++) {
		uint8_t value = (uint8_t)(i % 255 + 1);
		int rc = listen(l, value);

		if (rc <= 0)
			return rc;
		rc = say(l, value);
		if (rc == 0)
			rc = reap(l);
		if (rc == 0 && (i & 1023) == 1023)
			rc = hear(l);
		if (rc != 0 || l->over)
			return rc;
	}
}

/* READ, atomics: until the client is done. */
static int
stand_by(struct lat *l)
{
	struct perf_exchange x;
	int err = remote_expect(&l->r->line, "done", &x);

	l->over = err == 0;
	return err;
}

static int
client(struct lat *l, struct perf_row *row)
{
	const struct perf_options *opt = &l->r->opt;
	uint32_t divisor = opt->op == PERF_OP_WRITE || opt->op == PERF_OP_SEND ? 2 : 1;
	struct perf_exchange x = {0};
	uint64_t end;
	int err;

	l->sample = malloc(SAMPLES_MAX * sizeof(l->sample[0]));
	if (l->sample == NULL)
		return -ENOMEM;
	perf_clock_init(&l->clock);
	l->limit = opt->iters != 0 && opt->iters < SAMPLES_MAX ? opt->iters : SAMPLES_MAX;
	l->end_at = UINT64_MAX;
	if (opt->iters == 0)
		l->end_at = perf_now_ns() + (uint64_t)(opt->duration * 1e9);
	err = measure(l, divisor);
	end = perf_now_ns();
	if (err == 0 && l->n != 0) {
		perf_lat_summarize(l->sample, l->n, &row->lat);
		row->has_latency = true;
		row->msgs = (uint64_t)l->n * divisor;
		row->seconds = (double)(end - l->begin) / 1e9;
		x.elapsed_us = (end - l->begin) / 1000;
		x.value = row->msgs;
	}
	free(l->sample);
	if (err == 0)
		err = remote_send(&l->r->line, "done", &x);
	return err == 0 ? remote_expect(&l->r->line, "result", &x) : err;
}

static int
server(struct lat *l)
{
	struct perf_exchange x = {0};
	int err = remote_requests(l->r) ? answer(l) : stand_by(l);

	return err == 0 ? remote_send(&l->r->line, "result", &x) : err;
}

int
remote_lat_run(struct remote *r, struct perf_row *row)
{
	struct lat l = {.r = r, .s = &r->s, .f = &r->s.flows[0]};
	int err = 0;

	if (remote_requests(r))
		err = perf_ring_build(&r->s, 0, 0, 1, 1, 1, &l.f->ring);
	if (err != 0)
		return err;
	return r->client ? client(&l, row) : server(&l);
}
