/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Bandwidth between two processes. Who requests keeps as many messages under way as the depth
 * allows and says "done" with their number; who takes them refills its receives until all have come
 * (UC, UD: until no more come) and says "result". Both are over when both results are known.
 */

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "remote.h"

#define PEAK_NS 10000000ull
#define QUIET_NS 500000000ull /* UC, UD: nothing more is expected */

struct pass {
	struct remote *r;
	struct perf_session *s;
	bool requests, receives, lossy;
	uint64_t limit, posted, done, received;
	uint64_t begin, end, now, end_at, last_progress, seen;
	uint64_t peak_at, peak_done;
	double peak_mmsg;
	struct perf_interval interval;
	bool told, heard, result_told, result_heard;
	struct perf_exchange theirs, result; /* "done" and "result" of the other end */
};

static int
post_lists(struct pass *p, struct perf_flow *f)
{
	uint32_t group = f->ring.group;

	while (f->room >= group && p->posted < p->limit) {
		int err = perf_post(f, 0, &f->ring.wr[f->next]);

		if (err != 0)
			return err;
		f->next = f->next + group == f->ring.count ? 0 : f->next + group;
		f->room -= group;
		p->posted += group;
	}
	return 0;
}

static int
poll_sends(struct pass *p)
{
	struct softhca_wc wc[PERF_POLL_MAX];
	int n = softhca_poll_cq(p->s->send_cq[0], PERF_POLL_MAX, wc);

	for (int i = 0; i < n; i++) {
		uint32_t count = (uint32_t)wc[i].wr_id % p->r->opt.signal_every + 1;

		if (wc[i].status != SOFTHCA_WC_SUCCESS)
			return perf_bad_completion(p->s, &wc[i]);
		p->s->flows[wc[i].wr_id >> 32].room += count;
		p->done += count;
	}
	return n;
}

static int
poll_receives(struct pass *p)
{
	struct softhca_wc wc[PERF_POLL_MAX];
	int n = softhca_poll_cq(p->s->recv_cq[0], PERF_POLL_MAX, wc), err = 0;

	for (int i = 0; i < n && err == 0; i++) {
		struct perf_flow *f = &p->s->flows[wc[i].wr_id >> 32];

		if (wc[i].status != SOFTHCA_WC_SUCCESS)
			return perf_bad_completion(p->s, &wc[i]);
		p->received++;
		if (++f->recv_done < f->back.group)
			continue;
		f->recv_done -= f->back.group;
		err = perf_post_recv(p->s, f, 0, &f->back.recv[f->recv_next]);
		f->recv_next = (f->recv_next + f->back.group) % f->back.count;
	}
	return err != 0 ? err : n;
}

static bool
sent_all(const struct pass *p)
{
	return !p->requests || (p->posted >= p->limit && p->done >= p->posted);
}

/* Everything that was sent to this end has come, or will not. */
static bool
taken_all(const struct pass *p)
{
	if (!p->receives)
		return true;
	if (!p->heard)
		return false;
	return p->received >= p->theirs.value || (p->lossy && p->now - p->last_progress > QUIET_NS);
}

static int
tell(struct pass *p)
{
	struct perf_exchange x = {0};

	if (p->requests && !p->told && sent_all(p)) {
		p->end = p->now;
		x.value = p->done;
		x.elapsed_us = (p->end - p->begin) / 1000;
		p->told = true;
		if (remote_send(&p->r->line, "done", &x) != 0)
			return -EPIPE;
	}
	if (p->result_told || !sent_all(p) || !taken_all(p) || (!p->r->client && !p->heard))
		return 0;
	x = (struct perf_exchange){.value = p->received};
	if (p->receives && p->theirs.value > p->received)
		x.lost = p->theirs.value - p->received;
	p->result_told = true;
	return remote_send(&p->r->line, "result", &x);
}

static int
hear(struct pass *p)
{
	char word[PERF_EXCHANGE_WORD];
	struct perf_exchange x;
	int rc = remote_look(p->r, word, &x);

	if (rc <= 0)
		return rc;
	p->last_progress = p->now;
	if (strcmp(word, "done") == 0) {
		p->theirs = x;
		p->heard = true;
		/* Its time is over, or it was interrupted: so is this end's. */
		if (!p->r->client && p->r->opt.iters == 0)
			p->limit = p->posted;
		return 0;
	}
	if (strcmp(word, "result") != 0)
		return remote_fail(&p->r->line, -EPROTO, "\"%s\" in the middle of a pass", word);
	p->result = x;
	p->result_heard = true;
	return 0;
}

static void
note_peak(struct pass *p)
{
	uint64_t ns = p->now - p->peak_at;
	double mmsg;

	if (ns < PEAK_NS)
		return;
	mmsg = (double)(p->done - p->peak_done) * 1e3 / (double)ns;
	if (mmsg > p->peak_mmsg)
		p->peak_mmsg = mmsg;
	p->peak_at = p->now;
	p->peak_done = p->done;
}

static int
look_around(struct pass *p)
{
	p->now = perf_now_ns();
	if (perf_interrupted() && !p->r->client)
		return remote_fail(&p->r->line, -EINTR, "the server was told to end");
	if (p->now >= p->end_at || perf_interrupted())
		p->limit = p->posted;
	if (p->seen != p->done + p->received) {
		p->seen = p->done + p->received;
		p->last_progress = p->now;
	} else if (p->now - p->last_progress > PERF_STUCK_NS &&
		   (p->done < p->posted || (p->heard && !taken_all(p)))) {
		remote_fail(&p->r->line, -ETIMEDOUT, "nothing arrives any more");
		return perf_stuck(p->s);
	}
	if (p->requests && !p->told)
		note_peak(p);
	perf_report_interval(p->s, &p->interval, p->done);
	if (p->requests && p->end_at != UINT64_MAX)
		perf_progress(p->s, "bw",
			      1 - ((double)p->end_at - (double)p->now) / 1e9 / p->r->opt.duration);
	if (hear(p) != 0)
		return -EIO;
	return tell(p);
}

/* Waits for words of the other end only. */
static bool
is_passive(const struct pass *p)
{
	return !p->receives && sent_all(p);
}

/* Nothing to do now: a passive end sleeps; of the others poll_cq gives way where that is due. */
static int
rest(const struct pass *p)
{
	struct pollfd fd = {.fd = p->r->line.fd, .events = POLLIN};

	if (is_passive(p) && !p->result_heard)
		poll(&fd, 1, p->told && !p->result_told ? 0 : 100);
	else if (p->r->opt.events)
		return perf_wait(p->s);
	return 0;
}

static int
run_pass(struct pass *p)
{
	struct perf_session *s = p->s;
	int n, m = 0;

	for (uint32_t turn = 0; !p->result_told || !p->result_heard; turn++) {
		for (uint32_t i = 0; p->requests && i < s->num_flows; i++)
			if (post_lists(p, &s->flows[i]) != 0)
				return -EIO;
		n = p->requests ? poll_sends(p) : 0;
		if (p->receives)
			m = poll_receives(p);
		if (n < 0 || m < 0)
			return -EIO;
		if (((turn & 31) == 0 || is_passive(p) || (n + m == 0 && p->r->opt.events)) &&
		    look_around(p) != 0)
			return -EIO;
		if (n + m == 0 && !(p->result_told && p->result_heard) && rest(p) != 0)
			return -EIO;
	}
	return 0;
}

/* Requests on; the receives are there since before "go". */
static int
start(struct pass *p)
{
	uint32_t group = p->r->opt.post_list, depth = p->r->opt.depth / group * group;
	uint32_t count = depth > p->s->slots ? depth : p->s->slots;
	int err = 0;

	count = (count + group - 1) / group * group;
	for (uint32_t i = 0; p->requests && i < p->s->num_flows && err == 0; i++) {
		struct perf_flow *f = &p->s->flows[i];

		err = perf_ring_build(p->s, i, 0, count, group, p->r->opt.signal_every, &f->ring);
		f->next = 0;
		f->room = depth;
	}
	p->begin = p->now = p->peak_at = p->last_progress = perf_now_ns();
	p->limit = p->r->opt.iters != 0 ? p->r->opt.iters : UINT64_MAX;
	p->end_at =
		p->r->opt.iters != 0 ? UINT64_MAX : p->begin + (uint64_t)(p->r->opt.duration * 1e9);
	return err;
}

/*
 * Both directions count. Of datagrams and UC messages what arrived counts, where that is known: a
 * WRITE that is lost leaves no trace.
 */
static void
summarize(const struct pass *p, struct perf_row *row)
{
	double mine = p->told ? (double)(p->end - p->begin) / 1e9 : 0;
	double theirs = (double)p->theirs.elapsed_us / 1e6;

	row->msgs = p->done + (p->heard ? p->theirs.value : 0);
	row->seconds = mine > theirs ? mine : theirs;
	row->lost = p->result.lost;
	if (p->receives && p->theirs.value > p->received)
		row->lost += p->theirs.value - p->received;
	row->msgs -= row->lost < row->msgs ? row->lost : row->msgs;
	row->peak_mmsg = p->peak_mmsg * (p->r->opt.remote.bidir ? 2 : 1);
	if (row->seconds > 0 && row->peak_mmsg < (double)row->msgs / row->seconds / 1e6)
		row->peak_mmsg = (double)row->msgs / row->seconds / 1e6;
}

int
remote_bw_run(struct remote *r, struct perf_row *row)
{
	struct pass p = {
		.r = r,
		.s = &r->s,
		.requests = remote_requests(r),
		.receives = remote_receives(r),
		.lossy = remote_is_lossy(&r->opt),
	};
	int err = start(&p);

	if (err == 0)
		err = run_pass(&p);
	perf_progress(&r->s, "bw", -1);
	if (err != 0)
		return err;
	summarize(&p, row);
	return 0;
}
