/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Bandwidth and message rate: as many messages under way as the depth allows, in lists of one
 * doorbell each. One thread posts, polls both ends and (manual executor) runs the engine.
 */

#include <errno.h>
#include <stdio.h>

#include "perf.h"
#include "perf_clock.h"

#define PEAK_NS 10000000ull
#define STAGE_MSGS_MAX 200000u
#define STAGE_NS 100000000ull

/* One pass over all flows. */
struct pass {
	struct perf_session *s;
	struct perf_clock clock;
	uint64_t limit_msgs;  /* post no more than so many */
	uint64_t limit_ticks; /* post nothing after this */
	uint64_t posted, done;
	uint64_t begin, last_progress;
	uint64_t peak_at, peak_done; /* start of the current 10 ms */
	double peak_mmsg;
	struct perf_interval interval;
};

static uint32_t
round_up(uint32_t n, uint32_t step)
{
	return (n + step - 1) / step * step;
}

/* SEND: the peer's receive queue holds a ring's worth, refilled list by list. */
static int
fill_receives(struct perf_session *s, struct perf_flow *f)
{
	while (f->recv_done >= f->ring.group) {
		int err = perf_post_recv(s, f, 1, &f->ring.recv[f->recv_next]);

		if (err != 0)
			return err;
		f->recv_next = (f->recv_next + f->ring.group) % f->ring.count;
		f->recv_done -= f->ring.group;
		f->recv_room += f->ring.group;
	}
	return 0;
}

int
perf_flows_start(struct perf_session *s, uint32_t group, uint32_t signal_every)
{
	uint32_t depth = s->opt->depth / group * group;
	uint32_t count = round_up(depth > s->slots ? depth : s->slots, group);

	for (uint32_t i = 0; i < s->num_flows; i++) {
		struct perf_flow *f = &s->flows[i];
		int err = perf_ring_build(s, i, 0, count, group, signal_every, &f->ring);

		if (err != 0)
			return err;
		f->next = f->expected = 0;
		f->room = depth;
		/* Receives left from an earlier pass are taken first: same slots, same lengths. */
		if (s->opt->op != PERF_OP_SEND || f->recv_room != 0)
			continue;
		f->recv_next = 0;
		f->recv_done = depth;
		err = fill_receives(s, f);
		if (err != 0)
			return err;
	}
	return 0;
}

static int
post_lists(struct pass *p, struct perf_flow *f)
{
	uint32_t group = f->ring.group;

	while (f->room >= group && p->posted < p->limit_msgs) {
		int err;

		if (p->s->opt->op == PERF_OP_SEND) {
			if (f->recv_room < group)
				return 0;
			f->recv_room -= group;
		}
		err = perf_post(f, 0, &f->ring.wr[f->next]);
		if (err != 0)
			return err;
		f->next = f->next + group == f->ring.count ? 0 : f->next + group;
		f->room -= group;
		p->posted += group;
	}
	return 0;
}

/* A signalled completion stands for the unsignalled requests before it too. */
static inline void
count_done(struct pass *p, const struct softhca_wc *wc)
{
	struct perf_flow *f = &p->s->flows[wc->wr_id >> 32];
	uint32_t n = (uint32_t)wc->wr_id % p->s->opt->signal_every + 1;

	f->room += n;
	p->done += n;
}

static int
poll_sends(struct pass *p)
{
	struct softhca_wc wc[PERF_POLL_MAX];
	int n = softhca_poll_cq(p->s->send_cq[0], PERF_POLL_MAX, wc);

	for (int i = 0; i < n; i++) {
		if (__builtin_expect(wc[i].status != SOFTHCA_WC_SUCCESS, 0))
			return perf_bad_completion(p->s, &wc[i]);
		count_done(p, &wc[i]);
	}
	return n;
}

static int
poll_receives(struct pass *p)
{
	struct softhca_wc wc[PERF_POLL_MAX];
	int n = softhca_poll_cq(p->s->recv_cq[1], PERF_POLL_MAX, wc);

	for (int i = 0; i < n; i++) {
		struct perf_flow *f = &p->s->flows[wc[i].wr_id >> 32];

		if (__builtin_expect(wc[i].status != SOFTHCA_WC_SUCCESS, 0))
			return perf_bad_completion(p->s, &wc[i]);
		if (++f->recv_done >= f->ring.group && fill_receives(p->s, f) != 0)
			return -EIO;
	}
	return n;
}

static void
note_peak(struct pass *p, uint64_t now)
{
	uint64_t ns = perf_ticks_to_ns(&p->clock, now - p->peak_at);
	double mmsg;

	if (ns < PEAK_NS)
		return;
	mmsg = (double)(p->done - p->peak_done) * 1e3 / (double)ns;
	if (mmsg > p->peak_mmsg)
		p->peak_mmsg = mmsg;
	p->peak_at = now;
	p->peak_done = p->done;
}

static double
progress_of(const struct pass *p, uint64_t now)
{
	if (p->limit_msgs != UINT64_MAX)
		return (double)p->done / (double)p->limit_msgs;
	return (double)(now - p->begin) / (double)(p->limit_ticks - p->begin);
}

/* What need not be looked at every time: the clock, the user, and whether anything moves. */
static int
look_around(struct pass *p, uint64_t *seen)
{
	uint64_t now = perf_ticks();

	if (now >= p->limit_ticks || perf_interrupted())
		p->limit_msgs = p->posted;
	if (*seen != p->done) {
		*seen = p->done;
		p->last_progress = now;
	} else if (perf_ticks_to_ns(&p->clock, now - p->last_progress) > PERF_STUCK_NS) {
		return perf_stuck(p->s);
	}
	note_peak(p, now);
	perf_report_interval(p->s, &p->interval, p->done);
	perf_progress(p->s, "bw", progress_of(p, now));
	return 0;
}

static int
run_pass(struct pass *p)
{
	struct perf_session *s = p->s;
	bool receives = s->opt->op == PERF_OP_SEND;
	uint64_t seen = 0;
	int n = 0, m = 0, err;

	p->begin = p->peak_at = p->last_progress = perf_ticks();
	for (uint32_t turn = 0; p->done < p->posted || p->posted < p->limit_msgs; turn++) {
		for (uint32_t i = 0; i < s->num_flows; i++)
			if (__builtin_expect(post_lists(p, &s->flows[i]) != 0, 0))
				return -EIO;
		n = poll_sends(p);
		if (__builtin_expect(n < 0, 0))
			return n;
		if (receives)
			m = poll_receives(p);
		if (__builtin_expect(m < 0, 0))
			return -EIO;
		if (s->opt->events && n + m == 0 && perf_wait(s) != 0)
			return -EIO;
		if ((turn & 31) == 0 || n == 0) {
			err = look_around(p, &seen);
			if (err != 0)
				return err;
		}
	}
	return 0;
}

int
perf_bw_run(struct perf_session *s, struct perf_row *row)
{
	struct pass p = {.s = s};
	uint64_t end;
	int err = perf_flows_start(s, s->opt->post_list, s->opt->signal_every);

	if (err != 0)
		return err;
	perf_clock_init(&p.clock);
	p.limit_msgs = s->opt->iters != 0 ? s->opt->iters : UINT64_MAX;
	p.limit_ticks = UINT64_MAX;
	if (s->opt->iters == 0)
		p.limit_ticks = perf_ticks() + (uint64_t)(s->opt->duration * 1e9 * 4294967296.0 /
							  (double)p.clock.ns_per_tick_q32);
	err = run_pass(&p);
	end = perf_ticks();
	perf_progress(s, "bw", -1);
	row->msgs = p.done;
	row->seconds = (double)perf_ticks_to_ns(&p.clock, end - p.begin) / 1e9;
	row->peak_mmsg = p.peak_mmsg;
	if (row->seconds > 0 && row->peak_mmsg < (double)p.done / row->seconds / 1e6)
		row->peak_mmsg = (double)p.done / row->seconds / 1e6;
	return err;
}

int
perf_bw_stages(struct perf_session *s, struct perf_row *row)
{
	struct pass p = {.s = s};
	int err = perf_flows_start(s, s->opt->post_list, s->opt->signal_every);

	if (err != 0)
		return err;
	perf_clock_init(&p.clock);
	p.limit_msgs = STAGE_MSGS_MAX;
	p.limit_ticks = perf_ticks() + (uint64_t)((double)STAGE_NS * 4294967296.0 /
						  (double)p.clock.ns_per_tick_q32);
	softhca_embed_reset_times(s->embed);
	err = run_pass(&p);
	row->stage_msgs = p.done;
	for (unsigned int i = 0; i < 2; i++) {
		int n = softhca_embed_stage_times(s->embed, i, row->stages[i].value,
						  PERF_VALUES_MAX);

		row->stages[i].count = n > 0 ? (unsigned int)n : 0;
	}
	softhca_embed_stop_times(s->embed);
	return err;
}
