/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Latency: one message under way. WRITE and SEND are a ping-pong (half the round trip counts):
 * WRITE is seen by its last byte in memory, SEND by its completion. READ and atomics: post to
 * completion.
 */

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "perf.h"
#include "perf_clock.h"

#define SAMPLES_MAX (1u << 22)
#define WARM_UP 100u
#define SEND_CQ_SLACK 32u /* sends of a side whose completions may be outstanding */

struct lat {
	struct perf_session *s;
	struct perf_clock clock;
	struct perf_ring back; /* requests of side 1 */
	uint32_t *sample;      /* ns */
	uint32_t n;
	uint32_t unpolled[2];
	uint64_t begin, end_ticks, limit, rounds;
};

static bool
is_ping_pong(const struct lat *l)
{
	return l->s->opt->op == PERF_OP_WRITE || l->s->opt->op == PERF_OP_SEND;
}

static int
wait_a_little(struct lat *l, uint64_t since, uint32_t *spins)
{
	if (l->s->opt->events)
		return perf_wait(l->s);
	softhca_progress(l->s->ctx[0]);
	if ((++*spins & 1023) != 0)
		return 0;
	if (perf_ticks_to_ns(&l->clock, perf_ticks() - since) > PERF_STUCK_NS)
		return perf_stuck(l->s);
	return 0;
}

/* Waits for one completion of cq. */
static int
wait_cq(struct lat *l, struct softhca_cq *cq)
{
	uint64_t since = perf_ticks();
	struct softhca_wc wc;
	uint32_t spins = 0;
	int n, err;

	while ((n = softhca_poll_cq(cq, 1, &wc)) == 0) {
		err = wait_a_little(l, since, &spins);
		if (err != 0)
			return err;
	}
	if (n < 0)
		return n;
	return wc.status == SOFTHCA_WC_SUCCESS ? 0 : perf_bad_completion(l->s, &wc);
}

/* Takes send completions without waiting, unless many are outstanding. */
static int
reap(struct lat *l, unsigned int side)
{
	struct softhca_wc wc[PERF_POLL_MAX];
	int n;

	while (l->unpolled[side] >= SEND_CQ_SLACK) {
		n = softhca_poll_cq(l->s->send_cq[side], PERF_POLL_MAX, wc);
		if (n < 0)
			return n;
		for (int i = 0; i < n; i++)
			if (wc[i].status != SOFTHCA_WC_SUCCESS)
				return perf_bad_completion(l->s, &wc[i]);
		l->unpolled[side] -= (uint32_t)n;
	}
	return 0;
}

static int
wait_byte(struct lat *l, const volatile uint8_t *at, uint8_t value)
{
	uint64_t since = perf_ticks();
	uint32_t spins = 0;

	if (l->s->opt->memory_poll) {
		while (!perf_watch(at, value))
			if (perf_ticks_to_ns(&l->clock, perf_ticks() - since) > PERF_STUCK_NS)
				return perf_stuck(l->s);
		return 0;
	}
	while (*at != value) {
		int err = wait_a_little(l, since, &spins);

		if (err != 0)
			return err;
	}
	return 0;
}

/* One way, from side `from`. */
static int
one_way(struct lat *l, unsigned int from, uint8_t value)
{
	struct perf_session *s = l->s;
	struct perf_flow *f = &s->flows[0];
	struct perf_ring *ring = from == 0 ? &f->ring : &l->back;
	int err;

	perf_slot(s, from, PERF_SOURCE, 0, 0)[s->size - 1] = value;
	if (s->opt->op == PERF_OP_SEND) {
		/* The receive after this one, so that one is always there. */
		err = perf_post_recv(s, f, !from, &ring->recv[0]);
		if (err != 0)
			return err;
	}
	err = perf_post(f, from, &ring->wr[0]);
	if (err != 0)
		return err;
	l->unpolled[from]++;
	if (s->opt->op == PERF_OP_SEND)
		err = wait_cq(l, s->recv_cq[!from]);
	else
		err = wait_byte(l, &perf_slot(s, !from, PERF_SINK, 0, 0)[s->size - 1], value);
	return err != 0 ? err : reap(l, from);
}

static int
one_sample(struct lat *l, uint8_t value)
{
	int err;

	if (!is_ping_pong(l)) {
		err = perf_post(&l->s->flows[0], 0, &l->s->flows[0].ring.wr[0]);
		return err != 0 ? err : wait_cq(l, l->s->send_cq[0]);
	}
	err = one_way(l, 0, value);
	return err != 0 ? err : one_way(l, 1, value);
}

static int
measure(struct lat *l)
{
	uint32_t divisor = is_ping_pong(l) ? 2 : 1;
	uint64_t warm_up = l->limit < WARM_UP ? l->limit : WARM_UP;

	for (uint64_t i = 0; i < l->limit + warm_up; i++) {
		uint64_t t0 = perf_ticks(), t1;
		int err = one_sample(l, (uint8_t)(i % 255 + 1));

		if (err != 0)
			return err;
		t1 = perf_ticks();
		if (i < warm_up) {
			l->begin = t1;
			continue;
		}
		l->sample[l->n++] = (uint32_t)(perf_ticks_to_ns(&l->clock, t1 - t0) / divisor);
		l->rounds++;
		if (t1 >= l->end_ticks || l->n == SAMPLES_MAX || perf_interrupted())
			break;
		if ((i & 255) == 0)
			perf_progress(l->s, "lat", (double)l->n / (double)l->limit);
	}
	perf_progress(l->s, "lat", -1);
	return 0;
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

void
perf_lat_summarize(uint32_t *sample, uint32_t n, struct perf_latency *out)
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

static int
prepare(struct lat *l)
{
	struct perf_session *s = l->s;
	const struct perf_options *opt = s->opt;
	int err = perf_ring_build(s, 0, 0, 1, 1, 1, &s->flows[0].ring);

	if (err == 0)
		err = perf_ring_build(s, 0, 1, 1, 1, 1, &l->back);
	l->sample = malloc(SAMPLES_MAX * sizeof(l->sample[0]));
	if (err == 0 && l->sample == NULL)
		err = -ENOMEM;
	perf_clock_init(&l->clock);
	l->limit = opt->iters != 0 && opt->iters < SAMPLES_MAX ? opt->iters : SAMPLES_MAX;
	l->end_ticks = UINT64_MAX;
	if (opt->iters == 0)
		l->end_ticks = perf_ticks() + (uint64_t)(opt->duration * 1e9 * 4294967296.0 /
							 (double)l->clock.ns_per_tick_q32);
	return err;
}

int
perf_lat_run(struct perf_session *s, struct perf_row *row)
{
	struct lat l = {.s = s};
	uint64_t end;
	int err = prepare(&l);

	if (err == 0)
		err = measure(&l);
	end = perf_ticks();
	if (err == 0 && l.n != 0) {
		perf_lat_summarize(l.sample, l.n, &row->lat);
		row->has_latency = true;
		row->msgs = l.rounds * (is_ping_pong(&l) ? 2 : 1);
		row->seconds = (double)perf_ticks_to_ns(&l.clock, end - l.begin) / 1e9;
	}
	perf_ring_free(&l.back);
	free(l.sample);
	return err;
}
