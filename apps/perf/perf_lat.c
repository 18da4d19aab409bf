/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Latency: one message under way. WRITE and SEND are a ping-pong (half the round trip counts): a
 * WRITE is seen by its last byte in memory, a SEND by its completion; the server answers until it
 * receives "done". Others: post to completion.
 */

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "perf_pass.h"

#define WARM_UP 100u
#define SEND_CQ_SLACK 32u /* sends of a side whose completions may be outstanding */
#define SPINS 256u	  /* polls between two reads of the clock */
#define ROUNDS 64u
#define ANSWER_ROUNDS 1024u /* the client waits while its server looks around */

/* One completion at most */
static int
take_one(struct perf_pass *p, unsigned int side, enum perf_queue queue)
{
	struct softhca_wc wc;
	int n = perf_poll(p->s, side, queue, 1, &wc);

	if (n <= 0 || wc.status == SOFTHCA_WC_SUCCESS)
		return n;
	return perf_bad_completion(p->s, &wc);
}

static int
watch_queue(struct perf_pass *p, unsigned int side, enum perf_queue queue)
{
	uint32_t spins = p->s->opt->events ? 1 : SPINS;
	int n = 0;

	while (spins-- != 0 && n == 0)
		n = take_one(p, side, queue);
	return n;
}

/* The engine may run in this thread. A request that fails must not look like a slow peer. */
static int
make_progress(struct perf_pass *p, unsigned int side)
{
	int n;

	if (p->s->local[1]) {
		softhca_progress(p->s->ctx[side]);
		return 0;
	}
	n = take_one(p, 0, PERF_SENDS);
	if (n > 0)
		p->unpolled[0] -= (uint32_t)n;
	return n < 0 ? n : 0;
}

static int
watch_byte(struct perf_pass *p, unsigned int side)
{
	const uint8_t *last = &perf_slot(p->s, side, PERF_SINK, 0, 0)[p->s->size - 1];

	if (p->s->opt->memory_poll)
		return perf_watch(last, p->value);
	for (uint32_t i = 0; i < SPINS; i++) {
		int err;

		if (__atomic_load_n(last, __ATOMIC_ACQUIRE) == p->value)
			return 1;
		err = make_progress(p, side);
		if (err != 0)
			return err;
	}
	return 0;
}

/* Send completions are taken when many may be outstanding: post_send must find room. */
static int
reap(struct perf_pass *p, unsigned int side)
{
	struct softhca_wc wc[PERF_POLL_MAX];

	while (p->unpolled[side] >= SEND_CQ_SLACK) {
		int n = perf_poll(p->s, side, PERF_SENDS, PERF_POLL_MAX, wc);

		for (int i = 0; i < n; i++)
			if (wc[i].status != SOFTHCA_WC_SUCCESS)
				return perf_bad_completion(p->s, &wc[i]);
		if (n < 0)
			return n;
		p->unpolled[side] -= (uint32_t)n;
	}
	return 0;
}

/*
 * The message that `side` waits for: 1 = it has come, and the receive it took is posted again; 0 =
 * not yet.
 */
static int
watch(struct perf_pass *p, unsigned int side)
{
	bool send = p->s->opt->op == PERF_OP_SEND;
	int n, err = 0;

	if (p->ways == 1)
		return watch_queue(p, 0, PERF_SENDS);
	n = send ? watch_queue(p, side, PERF_RECEIVES) : watch_byte(p, side);
	if (n <= 0)
		return n;
	p->received++;
	if (send)
		err = perf_receive_again(p->s, &p->s->flows[0], side);
	if (err == 0)
		err = reap(p, side);
	return err == 0 ? 1 : err;
}

static int
post(struct perf_pass *p, unsigned int side)
{
	struct perf_flow *f = &p->s->flows[0];

	if (p->ways == 2) {
		perf_slot(p->s, side, PERF_SOURCE, 0, 0)[p->s->size - 1] = p->value;
		p->unpolled[side]++;
	}
	return perf_post(p->s, f, side, &perf_ring_of(f, side)->wr[0]);
}

/* The values of messages go from 1 to 255 again and again: memory begins with 0. */
static void
next_value(struct perf_pass *p)
{
	p->value = p->value == 255 ? 1 : (uint8_t)(p->value + 1);
}

static void
note_sample(struct perf_pass *p)
{
	uint64_t ns = perf_is_simulated(p->s->opt)
			      ? perf_pass_clock(p->s) - p->sent_at
			      : perf_ticks_to_ns(&p->clock, perf_ticks() - p->sent_at);

	p->under_way = false;
	next_value(p);
	if (p->warm_up == 0) {
		p->sample[p->done++] = (uint32_t)(ns / p->ways);
		return;
	}
	p->posted--;
	if (--p->warm_up == 0) {
		p->begin = perf_pass_clock(p->s);
		p->series->count = 0;
	}
}

/* 1: a sample has been taken. The other end answers here if it is of this process. */
static inline int
request_one(struct perf_pass *p)
{
	int n;

	if (!p->under_way) {
		if (p->posted >= p->limit)
			return 0;
		p->under_way = true;
		p->posted++;
		p->side = p->ways == 2 && p->s->local[1];
		p->sent_at = perf_is_simulated(p->s->opt) ? perf_pass_clock(p->s) : perf_ticks();
		n = post(p, 0);
		if (n != 0)
			return n;
	}
	n = watch(p, p->side);
	if (n > 0 && p->side == 1) {
		p->side = 0;
		n = post(p, 1);
		if (n == 0)
			n = watch(p, 0);
	}
	if (n > 0)
		note_sample(p);
	return n;
}

static inline int
answer_one(struct perf_pass *p)
{
	int n = p->receives ? watch(p, 0) : 0, err;

	if (n <= 0)
		return n;
	err = post(p, 0);
	next_value(p);
	return err == 0 ? n : err;
}

/* The end that takes the time */
static int
request(struct perf_pass *p)
{
	uint32_t rounds = 0;
	int n;

	do {
		n = request_one(p);
	} while (n > 0 && ++rounds < ROUNDS);
	return n < 0 ? n : (int)rounds;
}

/* The end that answers */
static int
answer(struct perf_pass *p)
{
	uint32_t rounds = 0;
	int n;

	do {
		n = answer_one(p);
	} while (n > 0 && ++rounds < ANSWER_ROUNDS);
	return n < 0 ? n : (int)rounds;
}

static int
by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static double
percentile(const uint32_t *sample, uint32_t n, double p)
{
	return sample[(uint32_t)(p * (n - 1) + 0.5)] / 1e3;
}

/* sample: n times in ns, n > 0; sorts them. */
static void
summarize(uint32_t *sample, uint32_t n, struct perf_latency *out)
{
	double sum = 0, squares = 0;

	for (uint32_t i = 0; i < n; i++) {
		sum += sample[i];
		squares += (double)sample[i] * sample[i];
	}
	qsort(sample, n, sizeof(sample[0]), by_value);
	out->min = percentile(sample, n, 0);
	out->p50 = percentile(sample, n, 0.5);
	out->p99 = percentile(sample, n, 0.99);
	out->p999 = percentile(sample, n, 0.999);
	out->max = percentile(sample, n, 1);
	out->avg = sum / n / 1e3;
	out->stdev = sqrt(fmax(0, squares / n - sum / n * sum / n)) / 1e3;
}

int
perf_samples_open(struct perf_pass *p)
{
	p->sample = malloc(PERF_SAMPLES_MAX * sizeof(p->sample[0]));
	return p->sample != NULL ? 0 : -ENOMEM;
}

void
perf_samples_close(struct perf_pass *p, int err, struct perf_row *row)
{
	if (err == 0 && p->done != 0) {
		summarize(p->sample, (uint32_t)p->done, &row->lat);
		perf_histogram_make(p->sample, (uint32_t)p->done, &row->histogram);
		row->has_latency = true;
		row->msgs = p->done * p->ways;
		row->seconds = (double)(p->end - p->begin) / 1e9;
	}
	free(p->sample);
}

/* Rings of one request; receives where both ends are of this process. */
static int
start(struct perf_pass *p)
{
	struct perf_session *s = p->s;
	struct perf_flow *f = &s->flows[0];
	int err = perf_ring_build(s, 0, 0, 1, 1, 1, &f->ring);

	if (err == 0 && s->local[1])
		err = perf_ring_build(s, 0, 1, 1, 1, 1, &f->back);
	for (unsigned int side = 0; side < 2 && s->local[1] && s->opt->op == PERF_OP_SEND; side++)
		if (err == 0)
			err = perf_receives_start(s, f, side, 1);
	if (err != 0 || !p->requests)
		return err;
	perf_clock_init(&p->clock);
	return perf_samples_open(p);
}

int
perf_lat_run(struct perf_session *s, struct perf_row *row)
{
	const struct perf_options *opt = s->opt;
	bool ping_pong = opt->op == PERF_OP_WRITE || opt->op == PERF_OP_SEND;
	bool requests = s->peer == NULL || s->peer->client;
	uint64_t limit =
		opt->iters != 0 && opt->iters < PERF_SAMPLES_MAX ? opt->iters : PERF_SAMPLES_MAX;
	struct perf_pass p = {
		.s = s,
		.turn = requests ? request : answer,
		.requests = requests,
		.series = &row->series,
		.receives = !requests && ping_pong,
		.ways = ping_pong ? 2 : 1,
		.warm_up = limit < WARM_UP ? (uint32_t)limit : WARM_UP,
		.value = 1,
		/* Only the server has a result to tell. */
		.talk = {.result_told = requests, .result_heard = !requests},
	};
	int err = start(&p);

	if (err == 0)
		err = perf_pass_run(&p, limit, (uint64_t)(opt->duration * 1e9));
	perf_samples_close(&p, err, row);
	return err;
}
