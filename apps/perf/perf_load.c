/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Latency under load (--load): messages are due at a steady rate of the simulated clock,
 * independent of outstanding ones, and the latency is the time from then to their completion. It
 * includes the wait of a message that finds no room in the queue.
 */

#include <errno.h>

#include "perf_pass.h"

/* When message n is due. */
static uint64_t
due_at(const struct perf_pass *p, uint64_t n)
{
	return p->begin + (uint64_t)((double)n * (double)p->s->size * 8 / p->s->opt->load);
}

static int
post_due(struct perf_pass *p, struct perf_flow *f)
{
	int err = 0;

	while (err == 0 && f->room != 0 && p->posted < p->limit &&
	       due_at(p, p->posted) <= perf_pass_clock(p->s)) {
		err = perf_post(p->s, f, 0, &f->ring.wr[f->next]);
		f->next = f->next + 1 == f->ring.count ? 0 : f->next + 1;
		f->room--;
		p->posted++;
	}
	return err;
}

/* Requests complete in the order they were posted in. */
static int
take_completions(struct perf_pass *p, struct perf_flow *f)
{
	struct softhca_wc wc[PERF_POLL_MAX];
	int n = perf_poll(p->s, 0, PERF_SENDS, PERF_POLL_MAX, wc);
	uint64_t now = perf_pass_clock(p->s);

	for (int i = 0; i < n; i++) {
		if (wc[i].status != SOFTHCA_WC_SUCCESS)
			return perf_bad_completion(p->s, &wc[i]);
		p->sample[p->done] = (uint32_t)(now - due_at(p, p->done));
		p->done++;
		f->room++;
	}
	return n;
}

static int
turn(struct perf_pass *p)
{
	struct perf_flow *f = &p->s->flows[0];
	int err = post_due(p, f);

	return err == 0 ? take_completions(p, f) : err;
}

int
perf_load_run(struct perf_session *s, struct perf_row *row)
{
	const struct perf_options *opt = s->opt;
	uint64_t limit =
		opt->iters != 0 && opt->iters < PERF_SAMPLES_MAX ? opt->iters : PERF_SAMPLES_MAX;
	struct perf_flow *f = &s->flows[0];
	struct perf_pass p = {.s = s,
			      .turn = turn,
			      .requests = true,
			      .series = &row->series,
			      .ways = 1};
	int err = perf_ring_build(s, 0, 0, opt->depth, 1, 1, &f->ring);

	f->next = 0;
	f->room = opt->depth;
	if (err == 0)
		err = perf_samples_open(&p);
	if (err == 0)
		err = perf_pass_run(&p, limit, (uint64_t)(opt->duration * 1e9));
	perf_samples_close(&p, err, row);
	return err;
}
