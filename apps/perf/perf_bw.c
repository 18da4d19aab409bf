/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Bandwidth and message rate: as many messages under way as the depth allows, in lists of one
 * doorbell each. In one process one thread posts, polls both ends and (manual executor) runs the
 * engine; of two processes each keeps its own requests going and refills its own receives.
 */

#include <errno.h>

#include "perf_pass.h"

#define ROUNDS 32u /* passes between two reads of the clock */
#define PREFETCH 8 /* posts ahead */
#define STAGE_MSGS_MAX 200000u
#define STAGE_NS 100000000ull

/* The side whose receive queues this process refills */
static unsigned int
recv_side(const struct perf_session *s)
{
	return s->local[1] ? 1 : 0;
}

static int
start_flow(struct perf_session *s, uint32_t i)
{
	uint32_t group = s->opt->post_list, depth = s->opt->depth / group * group;
	uint32_t most = depth > s->slots ? depth : s->slots;
	struct perf_flow *f = &s->flows[i];
	int err = perf_ring_build(s, i, 0, (most + group - 1) / group * group, group,
				  s->opt->signal_every, &f->ring);

	f->next = 0;
	f->room = depth;
	/*
	 * Receives left from an earlier pass are taken first: same slots, same lengths. Between two
	 * processes they were posted before "go".
	 */
	if (err == 0 && s->local[1] && s->opt->op == PERF_OP_SEND && f->recv_room == 0)
		err = perf_receives_start(s, f, 1, depth);
	return err;
}

/* Up to the limit, and from there until the last request has a completion. */
static int
post_lists(struct perf_pass *p, struct perf_flow *f, bool gated)
{
	uint32_t group = f->ring.group, every = p->s->opt->signal_every;

	while (f->room >= group && (p->posted < p->limit || f->next % every != 0)) {
		int err;

		if (gated) {
			if (f->recv_room < group)
				return 0;
			f->recv_room -= group;
		}
		err = perf_post(p->s, f, 0, &f->ring.wr[f->next]);
		if (err != 0)
			return err;
		f->next = f->next + group == f->ring.count ? 0 : f->next + group;
		f->room -= group;
		p->posted += group;
	}
	return 0;
}

/* A walk over all flows after each poll would cost more than the messages. */
static inline bool
has_many(const struct perf_session *s)
{
	return s->num_flows > 16;
}

/*
 * Prefetch the requests that a flow posts next: with thousands of QPs they are not in the cache.
 * Programs that fill in a request right before its post have it there.
 */
static inline void
prefetch_request(const struct perf_flow *f)
{
	const struct softhca_send_wr *wr = &f->ring.wr[f->next];

	__builtin_prefetch(wr);
	__builtin_prefetch((const char *)(wr + 1) - 1);
	__builtin_prefetch(&f->ring.sge[f->next]);
}

/* The flows of these completions have room again. */
static int
post_completed(struct perf_pass *p, const struct softhca_wc *wc, int n, bool gated)
{
	const struct perf_session *s = p->s;
	uint64_t last = UINT64_MAX;

	for (int i = 0; i < n && i < PREFETCH; i++)
		prefetch_request(&s->flows[wc[i].wr_id >> 32]);
	for (int i = 0; i < n; i++) {
		uint64_t flow = wc[i].wr_id >> 32;

		if (i + PREFETCH < n)
			prefetch_request(&s->flows[wc[i + PREFETCH].wr_id >> 32]);
		if (flow != last && post_lists(p, &s->flows[flow], gated) != 0)
			return -EIO;
		last = flow;
	}
	return n;
}

static int
post_all(struct perf_pass *p, bool gated)
{
	for (uint32_t i = 0; i < p->s->num_flows; i++)
		if (__builtin_expect(post_lists(p, &p->s->flows[i], gated) != 0, 0))
			return -EIO;
	return 0;
}

/* A signalled completion also stands for the unsignalled requests before it. */
static int
poll_sends(struct perf_pass *p, bool gated)
{
	struct softhca_wc wc[PERF_POLL_MAX];
	int n = perf_poll(p->s, 0, PERF_SENDS, PERF_POLL_MAX, wc);

	for (int i = 0; i < n; i++) {
		uint32_t count = (uint32_t)wc[i].wr_id % p->s->opt->signal_every + 1;

		if (__builtin_expect(wc[i].status != SOFTHCA_WC_SUCCESS, 0))
			return perf_bad_completion(p->s, &wc[i]);
		p->s->flows[wc[i].wr_id >> 32].room += count;
		p->done += count;
	}
	return n > 0 && has_many(p->s) ? post_completed(p, wc, n, gated) : n;
}

static int
poll_receives(struct perf_pass *p, bool gated)
{
	unsigned int side = recv_side(p->s);
	struct softhca_wc wc[PERF_POLL_MAX];
	int n = perf_poll(p->s, side, PERF_RECEIVES, PERF_POLL_MAX, wc);

	for (int i = 0; i < n; i++) {
		if (__builtin_expect(wc[i].status != SOFTHCA_WC_SUCCESS, 0))
			return perf_bad_completion(p->s, &wc[i]);
		if (perf_receive_again(p->s, &p->s->flows[wc[i].wr_id >> 32], side) != 0)
			return -EIO;
		p->received++;
	}
	return n > 0 && gated && has_many(p->s) ? post_completed(p, wc, n, gated) : n;
}

/*
 * Rounds of posting and polling, until there is nothing to do but wait. If there are many flows,
 * those of completions post at once, and all others when there were no completions.
 */
static int
turn(struct perf_pass *p)
{
	struct perf_session *s = p->s;
	bool gated = s->local[1] && s->opt->op == PERF_OP_SEND, takes = p->receives || gated;
	int n = 0, m = 0, all = 0;

	for (uint32_t round = 0; round < ROUNDS; round++) {
		if (p->requests && (p->idle || !has_many(s)) && post_all(p, gated) != 0)
			return -EIO;
		if (p->requests)
			n = poll_sends(p, gated);
		if (n >= 0 && takes)
			m = poll_receives(p, gated);
		if (__builtin_expect(n < 0 || m < 0, 0))
			return n < 0 ? n : m;
		all += n + m;
		p->idle = n + m == 0;
		if (p->idle && (s->opt->events || (!p->receives && perf_pass_sent_all(p))))
			break;
	}
	return all;
}

static int
run(struct perf_pass *p, struct perf_session *s, struct perf_series *series, uint64_t limit,
    uint64_t duration_ns)
{
	const struct remote *r = s->peer;
	bool both = r != NULL && s->opt->remote.bidir;
	int err = 0;

	*p = (struct perf_pass){
		.s = s,
		.turn = turn,
		.series = series,
		.requests = r == NULL || r->client || both,
		.receives = r != NULL && s->opt->op == PERF_OP_SEND && (!r->client || both),
		.ways = 1,
		.idle = true,
	};
	for (uint32_t i = 0; p->requests && i < s->num_flows && err == 0; i++)
		err = start_flow(s, i);
	return err == 0 ? perf_pass_run(p, limit, duration_ns) : err;
}

/*
 * Both directions count. Datagrams and UC messages count when they arrive, where this is known: a
 * lost WRITE leaves no trace.
 */
static void
summarize(const struct perf_pass *p, struct perf_row *row)
{
	double mine = p->end != 0 ? (double)(p->end - p->begin) / 1e9 : 0;
	double theirs = (double)p->talk.done.elapsed_us / 1e6;

	row->msgs = p->done + p->talk.done.value;
	row->seconds = mine > theirs ? mine : theirs;
	row->lost = p->talk.result.lost;
	if (p->receives && p->talk.done.value > p->received)
		row->lost += p->talk.done.value - p->received;
	row->msgs -= row->lost < row->msgs ? row->lost : row->msgs;
	row->peak_mmsg = p->peak_mmsg * (p->s->opt->remote.bidir ? 2 : 1);
	if (row->seconds > 0 && row->peak_mmsg < (double)row->msgs / row->seconds / 1e6)
		row->peak_mmsg = (double)row->msgs / row->seconds / 1e6;
}

int
perf_bw_run(struct perf_session *s, struct perf_row *row)
{
	const struct perf_options *opt = s->opt;
	struct perf_pass p;
	int err = run(&p, s, &row->series, opt->iters != 0 ? opt->iters : UINT64_MAX,
		      (uint64_t)(opt->duration * 1e9));

	/*
	 * The partial result of a failed pass is also reported, unless the other end has a better
	 * reason.
	 */
	if (err == 0 || s->peer == NULL)
		summarize(&p, row);
	return err;
}

int
perf_bw_stages(struct perf_session *s, struct perf_row *row)
{
	struct perf_pass p;
	int err;

	softhca_embed_reset_times(s->embed);
	err = run(&p, s, NULL, STAGE_MSGS_MAX, STAGE_NS);
	row->stage_msgs = p.done;
	for (unsigned int i = 0; i < 2; i++) {
		int n = softhca_embed_stage_times(s->embed, i, row->stages[i].value,
						  PERF_VALUES_MAX);

		row->stages[i].count = n > 0 ? (unsigned int)n : 0;
	}
	softhca_embed_stop_times(s->embed);
	return err;
}
