/* SPDX-License-Identifier: BSD-3-Clause */

/* The loop of every timed pass; see perf_pass.h. */

#include <errno.h>
#include <poll.h>

#include "perf_pass.h"

#define PEAK_NS 10000000ull
#define QUIET_NS 500000000ull /* UC, UD: nothing more is expected */
#define LOOK_NS 500000u
#define PASSIVE_MS 100

/* Everything that was sent to this end has arrived, or never will. */
static bool
taken_all(const struct perf_pass *p)
{
	if (!p->receives)
		return true;
	if (!p->talk.heard)
		return false;
	return p->s->opt->test == PERF_TEST_LAT || p->received >= p->talk.done.value ||
	       (perf_is_lossy(p->s->opt) && p->now - p->last_progress > QUIET_NS);
}

static bool
is_over(const struct perf_pass *p)
{
	return p->s->peer != NULL ? p->talk.result_told && p->talk.result_heard
				  : perf_pass_sent_all(p);
}

/* Only words of the other end are waited for. */
static bool
is_passive(const struct perf_pass *p)
{
	return p->s->peer != NULL && !p->receives && perf_pass_sent_all(p);
}

static int
tell(struct perf_pass *p)
{
	struct remote *r = p->s->peer;
	struct perf_exchange x = {0};
	int err;

	if (p->requests && !p->talk.told && perf_pass_sent_all(p)) {
		p->end = p->now;
		x.value = p->done * p->ways;
		x.elapsed_us = (p->end - p->begin) / 1000;
		err = remote_talk_done(r, &p->talk, &x);
		if (err != 0)
			return err;
	}
	if (p->talk.result_told || !perf_pass_sent_all(p) || !taken_all(p) ||
	    (!r->client && !p->talk.heard))
		return 0;
	x = (struct perf_exchange){.value = p->received};
	if (p->receives && p->talk.done.value > p->received)
		x.lost = p->talk.done.value - p->received;
	return remote_talk_result(r, &p->talk, &x);
}

static int
talk(struct perf_pass *p)
{
	struct remote *r = p->s->peer;
	bool heard = p->talk.heard;
	int rc = remote_talk_hear(r, &p->talk);

	if (rc < 0)
		return rc;
	if (rc > 0)
		p->last_progress = p->now;
	/* The client's time is over, or it was interrupted: so is the server's. */
	if (p->talk.heard && !heard && !r->client && p->s->opt->iters == 0)
		p->limit = p->posted;
	return tell(p);
}

/* Every second point goes. */
static void
series_thin(struct perf_series *s)
{
	for (uint32_t i = 1; i < s->count; i += 2) {
		s->at_ns[i / 2] = s->at_ns[i];
		s->done[i / 2] = s->done[i];
	}
	s->count /= 2;
	s->step_ns *= 2;
}

/* Called at the end of each 10 ms. */
static void
note_series(struct perf_pass *p)
{
	struct perf_series *s = p->series;
	uint64_t at = p->now - p->begin;

	if (s == NULL || (s->count != 0 && at - s->at_ns[s->count - 1] < s->step_ns))
		return;
	if (s->count == PERF_SERIES_MAX)
		series_thin(s);
	s->at_ns[s->count] = at;
	s->done[s->count++] = p->done * p->ways;
}

static void
note_peak(struct perf_pass *p)
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
	note_series(p);
}

static double
progress_of(const struct perf_pass *p)
{
	if (p->duration_ns == 0)
		return (double)p->done / (double)p->limit;
	return (double)(p->now - p->begin) / (double)p->duration_ns;
}

/* No message is done or taken any more although there are some to come. */
static bool
is_stuck(struct perf_pass *p)
{
	if (p->seen != p->done + p->received) {
		p->seen = p->done + p->received;
		p->last_progress = p->now;
	}
	return p->now - p->last_progress > PERF_STUCK_NS &&
	       (p->s->peer == NULL || p->done < p->posted || (p->talk.heard && !taken_all(p)));
}

/* Work that is not needed in every turn: the clock, signals, the peer and the progress. */
static int
look_around(struct perf_pass *p)
{
	struct remote *r = p->s->peer;

	p->now = perf_pass_clock(p->s);
	if (perf_interrupted() && r != NULL && !r->client)
		return remote_fail(&r->line, -EINTR, "the server was told to end");
	if ((p->duration_ns != 0 && p->now - p->begin >= p->duration_ns) || perf_interrupted())
		p->limit = p->posted > 1 ? p->posted : 1;
	if (is_stuck(p)) {
		if (r != NULL)
			remote_fail(&r->line, -ETIMEDOUT, "no more messages arrive");
		return perf_stuck(p->s);
	}
	if (p->requests && p->end == 0) {
		note_peak(p);
		perf_progress(p->s, perf_test_name(p->s->opt->test), progress_of(p));
	}
	perf_report_interval(p->s, &p->interval, p->done);
	return r != NULL ? talk(p) : 0;
}

/*
 * Whether there is nothing to look at yet: with --events a message needs three turns, and a look at
 * the peer is a system call. The thread that ends waiting tells of the peer, again and again.
 */
static bool
looked_just_now(const struct perf_pass *p)
{
	return p->s->wake != NULL && !p->talk.heard && (!p->requests || !perf_pass_sent_all(p)) &&
	       perf_pass_clock(p->s) - p->now < LOOK_NS;
}

/* There was nothing to do: a passive end sleeps; at other ends poll_cq yields to other threads. */
static int
rest(struct perf_pass *p)
{
	const struct perf_options *opt = p->s->opt;

	if (is_passive(p)) {
		struct pollfd fd = {.fd = p->s->peer->line.fd, .events = POLLIN};

		poll(&fd, 1, p->talk.told && !p->talk.result_told ? 0 : PASSIVE_MS);
		return 0;
	}
	if (!opt->events)
		return 0;
	/* An end that waits for a message must not be woken when its own is acknowledged. */
	return p->ways == 2 ? perf_wait_recv(p->s) : perf_wait(p->s);
}

int
perf_pass_run(struct perf_pass *p, uint64_t limit, uint64_t duration_ns)
{
	int err = 0;

	p->limit = limit;
	p->duration_ns = duration_ns;
	p->begin = p->now = p->peak_at = p->last_progress = perf_pass_clock(p->s);
	while (err == 0 && !is_over(p)) {
		int n = p->turn(p);

		if (n < 0)
			err = n;
		else if (!looked_just_now(p))
			err = look_around(p);
		if (err == 0 && n == 0 && !is_over(p))
			err = rest(p);
	}
	if (p->s->peer == NULL)
		p->end = perf_pass_clock(p->s);
	perf_progress(p->s, "", -1);
	return err;
}
