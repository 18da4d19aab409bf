/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * --flows: a session for each peer, a connected pair of QPs for each flow, and one loop that posts
 * messages when they are due. Both buffers of a flow have the length of its largest message; a
 * WRITE goes from PERF_SOURCE here to PERF_SINK there, a READ the other way.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "perf_flows.h"
#include "perf_pass.h"

#define STRIDE 4096u
#define MEMORY_MAX (1ull << 30) /* as servers have: remote.h */
#define TALK_NS 100000u

/* Flows with one peer, or all of the pair in this process. */
struct flows_session {
	struct perf_options opt;
	struct perf_session *s; /* of the pair, or of remote */
	struct remote *remote;	/* NULL: the pair */
	uint32_t first, n;	/* its flows, in the order of flows_run.flow */
	struct remote_talk talk;
};

struct flows_one {
	struct flows_session *in;
	uint32_t index;	    /* in the session */
	unsigned int side;  /* that posts */
	uint64_t posted;    /* bytes */
	uint64_t under_way; /* messages */
	double due;	    /* of the next message, after the beginning of the run, ns */
	struct perf_flows_result result;
};

struct flows_run {
	struct perf_flows file;
	uint32_t n, sessions;
	struct flows_one flow[PERF_FLOWS_MAX];
	struct flows_session *session;
	struct perf_session pair;
	uint64_t begin, now, talked, progress;
};

static int
complain(const char *why)
{
	fprintf(stderr, "softhca-perf: --flows: %s\n", why);
	return -EINVAL;
}

/* ---- sessions ---- */

static const char *
peer_of(const struct flows_one *f)
{
	const char *peer = f->result.spec->peer;

	return perf_flows_is_side(peer) ? "" : peer;
}

static int
compare_peers(const void *a, const void *b)
{
	const struct perf_flow_spec *x = a, *y = b;
	int order = perf_flows_is_side(x->peer) ? 0 : strcmp(x->peer, y->peer);

	return order != 0 ? order : (x->line > y->line) - (x->line < y->line);
}

/* Flows of one peer become neighbours. */
static int
make_sessions(struct flows_run *r)
{
	struct perf_flows *file = &r->file;

	qsort(file->spec, file->n, sizeof(file->spec[0]), compare_peers);
	r->session = calloc(file->n, sizeof(*r->session));
	if (r->session == NULL)
		return -ENOMEM;
	r->n = file->n;
	for (uint32_t i = 0; i < r->n; i++) {
		struct flows_one *f = &r->flow[i];

		f->result.spec = &file->spec[i];
		f->due = (double)file->spec[i].start_ns;
		if (i == 0 || strcmp(peer_of(f), peer_of(f - 1)) != 0)
			r->session[r->sessions++].first = i;
		f->in = &r->session[r->sessions - 1];
		f->index = f->in->n++;
		/* back to back the peer is the side that is sent to */
		f->side = strcmp(f->result.spec->peer, "0") == 0;
	}
	return 0;
}

/* Options of a session: its QPs, and slots for the largest message. */
static int
fit_options(struct flows_run *r, struct flows_session *in, const struct perf_options *opt)
{
	struct perf_options *o = &in->opt;
	const char *reason;

	*o = *opt;
	o->op = PERF_OP_WRITE;
	o->qps = in->n;
	o->slots = o->post_list = o->signal_every = 1;
	o->size = o->depth = 1;
	for (uint32_t i = in->first; i < in->first + in->n; i++) {
		const struct perf_flow_spec *s = r->flow[i].result.spec;

		o->size = s->message > o->size ? s->message : o->size;
		o->depth = s->depth > o->depth ? s->depth : o->depth;
	}
	o->stride = (o->size + STRIDE - 1) / STRIDE * STRIDE;
	if (o->stride * o->qps > MEMORY_MAX)
		return complain("messages times flows need more than 1 GiB");
	if (!perf_flows_is_side(r->flow[in->first].result.spec->peer))
		o->remote.client = r->flow[in->first].result.spec->peer;
	if (!perf_option_given(opt, "ack-timeout"))
		o->ack_timeout = 0;
	reason = perf_options_check(o);
	return reason == NULL ? 0 : complain(reason);
}

static uint8_t
traffic_class(const struct perf_flow_spec *s)
{
	return (uint8_t)(s->dscp << 2 | (s->ecn != 0 ? 2 : 0));
}

static struct perf_flow_class
class_of(const struct flows_run *r, const struct flows_session *in, uint32_t i)
{
	const struct perf_flow_spec *s = r->flow[in->first + i].result.spec;

	return (struct perf_flow_class){traffic_class(s), (uint8_t)s->congestion};
}

static void
set_classes(struct flows_run *r, struct flows_session *in)
{
	for (uint32_t i = 0; i < in->n; i++)
		in->s->flows[i].class = class_of(r, in, i);
}

static int
open_pair(struct flows_run *r, struct flows_session *in)
{
	int err;

	in->s = &r->pair;
	err = perf_session_open(in->s, &in->opt);
	if (err == 0)
		err = perf_row_open(in->s, in->opt.size);
	if (err != 0)
		return err;
	set_classes(r, in);
	return perf_row_connect(in->s);
}

static int
open_remote(struct flows_run *r, struct flows_session *in)
{
	struct perf_flow_class classes[PERF_FLOWS_MAX];
	int err;

	in->remote = calloc(1, sizeof(*in->remote));
	if (in->remote == NULL)
		return -ENOMEM;
	in->s = &in->remote->s;
	for (uint32_t i = 0; i < in->n; i++)
		classes[i] = class_of(r, in, i);
	err = remote_session_open(in->remote, &in->opt);
	in->remote->client = true;
	in->remote->classes = classes;
	if (err == 0)
		err = remote_meet(in->remote);
	if (err == 0)
		err = remote_pass_open(in->remote, REMOTE_PASS_TIMED, in->opt.size);
	in->remote->classes = NULL;
	return err;
}

static int
close_session(struct flows_session *in, int err)
{
	const struct perf_exchange none = {0};

	if (in->s == NULL)
		return err;
	if (in->remote == NULL) {
		perf_row_close(in->s);
		return perf_session_close(in->s) != 0 && err == 0 ? -EBUSY : err;
	}
	if (in->remote->open)
		remote_pass_close(in->remote, err);
	if (err == 0)
		err = remote_send(&in->remote->line, "bye", &none);
	remote_session_close(in->remote);
	free(in->remote);
	return err;
}

/* ---- flows ---- */

static int
post(struct flows_one *f, uint64_t bytes)
{
	struct perf_session *s = f->in->s;
	bool read = f->result.spec->op == PERF_FLOW_READ;
	struct softhca_sge sge = {
		.addr = (uintptr_t)perf_slot(s, f->side, PERF_SOURCE, f->index, 0),
		.length = (uint32_t)bytes,
		.lkey = s->area[f->side][PERF_SOURCE].mr->lkey,
	};
	struct softhca_send_wr wr = {
		.wr_id = (uint64_t)f->index,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = read ? SOFTHCA_WR_RDMA_READ : SOFTHCA_WR_RDMA_WRITE,
		.send_flags = SOFTHCA_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = perf_slot_addr(s, !f->side, PERF_SINK, f->index, 0),
			    .rkey = s->area[!f->side][PERF_SINK].rkey},
	};

	return perf_post(s, &s->flows[f->index], f->side, &wr);
}

/* A flow that was held up makes good for one message at most. */
static void
set_due(struct flows_one *f, uint64_t bytes, double at)
{
	const struct perf_flow_spec *s = f->result.spec;
	double takes = s->rate_gbps > 0 ? (double)bytes * 8 / s->rate_gbps : 0;

	f->due = (f->due > at - takes ? f->due : at - takes) + takes;
}

/* Whether no message of a flow will be posted any more. */
static bool
is_posted(const struct flows_run *r, const struct flows_one *f)
{
	const struct perf_flow_spec *s = f->result.spec;

	return f->result.failed || perf_interrupted() || (s->size != 0 && f->posted >= s->size) ||
	       (s->duration_ns != 0 && r->now - r->begin >= s->start_ns + s->duration_ns);
}

static int
post_due(struct flows_run *r, struct flows_one *f)
{
	const struct perf_flow_spec *s = f->result.spec;
	double at = (double)(r->now - r->begin);
	int err = 0;

	while (err == 0 && f->under_way < s->depth && !is_posted(r, f) && f->due <= at) {
		uint64_t left = s->size != 0 ? s->size - f->posted : s->message;
		uint64_t bytes = left < s->message ? left : s->message;

		err = post(f, bytes);
		set_due(f, bytes, at);
		f->posted += bytes;
		f->under_way++;
	}
	return err;
}

static void
complete(struct flows_run *r, struct flows_one *f, const struct softhca_wc *wc)
{
	uint64_t at = r->now - r->begin, bytes;

	f->under_way--;
	if (wc->status != SOFTHCA_WC_SUCCESS) {
		if (!f->result.failed)
			perf_bad_completion(f->in->s, wc);
		f->result.failed = true;
		return;
	}
	/* only the last message of a size is shorter */
	bytes = f->posted - f->result.bytes;
	bytes = bytes < f->result.spec->message ? bytes : f->result.spec->message;
	f->result.bytes += bytes;
	f->result.messages++;
	f->result.end_ns = at;
	perf_flows_rate_add(&f->result.rate, at, bytes);
}

static int
poll_session(struct flows_run *r, struct flows_session *in)
{
	struct softhca_wc wc[PERF_POLL_MAX];
	int all = 0;

	for (unsigned int side = 0; side < 2; side++) {
		int n = in->s->local[side] ? perf_poll(in->s, side, PERF_SENDS, PERF_POLL_MAX, wc)
					   : 0;

		if (n < 0)
			return n;
		for (int i = 0; i < n; i++)
			complete(r, &r->flow[in->first + wc[i].wr_id], &wc[i]);
		all += n;
	}
	return all;
}

/* ---- the run ---- */

static bool
is_over(const struct flows_run *r, const struct flows_session *in)
{
	for (uint32_t i = in->first; i < in->first + in->n; i++)
		if (r->flow[i].under_way != 0 || !is_posted(r, &r->flow[i]))
			return false;
	return true;
}

/* Signs of life, and the end of a session with a server. True: nothing more is to be said. */
static bool
talk(struct flows_run *r, struct flows_session *in, int *err)
{
	struct perf_exchange x = {.elapsed_us = (r->now - r->begin) / 1000};
	int rc = remote_talk_hear(in->remote, &in->talk);

	*err = rc < 0 ? rc : 0;
	if (*err != 0 || !is_over(r, in))
		return false;
	for (uint32_t i = in->first; i < in->first + in->n; i++)
		x.value += r->flow[i].result.messages;
	if (!in->talk.told)
		*err = remote_talk_done(in->remote, &in->talk, &x);
	x.value = 0;
	if (*err == 0 && !in->talk.result_told)
		*err = remote_talk_result(in->remote, &in->talk, &x);
	return in->talk.result_heard;
}

static bool
all_over(struct flows_run *r, int *err)
{
	bool over = true;

	for (uint32_t i = 0; i < r->sessions && *err == 0; i++) {
		struct flows_session *in = &r->session[i];

		over &= in->remote != NULL ? talk(r, in, err) : is_over(r, in);
	}
	return over;
}

static uint64_t
under_way(const struct flows_run *r)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < r->n; i++)
		n += r->flow[i].under_way;
	return n;
}

static int
turn(struct flows_run *r)
{
	int err = 0, n = 0;

	r->now = perf_pass_clock(r->session[0].s);
	for (uint32_t i = 0; i < r->n && err == 0; i++)
		err = post_due(r, &r->flow[i]);
	for (uint32_t i = 0; i < r->sessions && err == 0; i++) {
		n = poll_session(r, &r->session[i]);
		err = n < 0 ? n : 0;
		if (n > 0)
			r->progress = r->now;
	}
	if (under_way(r) == 0)
		r->progress = r->now;
	return err == 0 && r->now - r->progress > PERF_STUCK_NS ? perf_stuck(r->session[0].s) : err;
}

static int
run_loop(struct flows_run *r)
{
	int err = 0;

	r->begin = r->now = r->talked = r->progress = perf_pass_clock(r->session[0].s);
	while (err == 0) {
		err = turn(r);
		if (err != 0 || r->now - r->talked < TALK_NS)
			continue;
		r->talked = r->now;
		if (all_over(r, &err))
			break;
	}
	return err;
}

static uint64_t
counter_of(const struct softhca_counter *c, int n, const char *name)
{
	for (int i = 0; i < n; i++)
		if (strcmp(c[i].name, name) == 0)
			return c[i].value;
	return 0;
}

static void
read_counters(struct flows_one *f)
{
	struct softhca_counter c[PERF_VALUES_MAX];
	int n = softhca_query_qp_counters(f->in->s->flows[f->index].qp[f->side], c,
					  PERF_VALUES_MAX);

	f->result.cnps = counter_of(c, n, "rp_cnp_handled");
	f->result.retransmissions = counter_of(c, n, "retransmissions");
	f->result.timeouts = counter_of(c, n, "local_ack_timeout_err");
}

static int
compare_lines(const void *a, const void *b)
{
	const struct flows_one *x = a, *y = b;
	uint32_t i = x->result.spec->line, k = y->result.spec->line;

	return i != k ? (i > k) - (i < k) : (x->index > y->index) - (x->index < y->index);
}

/* In the order of the file. */
static int
report(struct flows_run *r)
{
	int err = 0;

	for (uint32_t i = 0; i < r->n; i++)
		read_counters(&r->flow[i]);
	qsort(r->flow, r->n, sizeof(r->flow[0]), compare_lines);
	for (uint32_t i = 0; i < r->n && err == 0; i++)
		err = perf_flows_print(stdout, i, &r->flow[i].result);
	return fflush(stdout) == 0 ? err : -EIO;
}

static int
open_file(const struct perf_options *opt, struct perf_flows *file)
{
	char why[256 + PERF_FLOWS_PEER];
	FILE *f = fopen(opt->flows, "r");
	int err;

	if (f == NULL) {
		snprintf(why, sizeof(why), "%.200s: %s", opt->flows, strerror(errno));
		return complain(why);
	}
	err = perf_flows_parse(f, opt->flows, file, why, sizeof(why));
	fclose(f);
	return err == 0 ? 0 : complain(why);
}

static int
failed_flows(const struct flows_run *r)
{
	for (uint32_t i = 0; i < r->n; i++)
		if (r->flow[i].result.failed)
			return -EIO;
	return perf_interrupted() ? -EINTR : 0;
}

int
perf_flows_run(const struct perf_options *opt)
{
	struct flows_run *r = calloc(1, sizeof(*r));
	int err = r != NULL ? open_file(opt, &r->file) : -ENOMEM;

	if (err == 0)
		err = make_sessions(r);
	for (uint32_t i = 0; err == 0 && i < r->sessions; i++) {
		struct flows_session *in = &r->session[i];

		err = fit_options(r, in, opt);
		if (err == 0)
			err = in->opt.remote.client != NULL ? open_remote(r, in) : open_pair(r, in);
	}
	if (err == 0)
		err = run_loop(r);
	if (err == 0)
		err = report(r);
	if (err == 0)
		err = failed_flows(r);
	for (uint32_t i = 0; r != NULL && i < r->sessions; i++)
		err = close_session(&r->session[i], err);
	if (r != NULL)
		free(r->session);
	free(r);
	return err;
}
