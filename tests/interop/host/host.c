/* SPDX-License-Identifier: BSD-3-Clause */

/* Runs one test: sends it to the guest, executes it, compares the results. */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "host.h"

#define ANSWER_MS 20000u /* more than the guest's own limit */
#define VALUES_MAX 512

static int lost(char reason[HOST_REASON], int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int
lost(char reason[HOST_REASON], int err, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(reason, HOST_REASON, format, ap);
	va_end(ap);
	return err;
}

int
host_wait_line(struct host *h, unsigned int ms, char word[PERF_EXCHANGE_WORD],
	       struct perf_exchange *x)
{
	uint64_t end = ep_now() + (uint64_t)ms * 1000000;
	unsigned int idle = 0;
	int rc;

	while ((rc = ep_line_poll(&h->line, word, x)) == 0) {
		if (softhca_embed_progress(h->embed) != 0)
			idle = 0;
		else
			ep_idle(&idle);
		if (ep_now() > end) {
			h->lost = true;
			return -ETIMEDOUT;
		}
	}
	h->lost |= rc < 0;
	return rc < 0 ? rc : 0;
}

struct counters {
	struct softhca_value v[VALUES_MAX];
	int n;
};

static void
read_counters(struct host *h, struct counters *c)
{
	c->n = softhca_embed_counters(h->embed, 0, c->v, VALUES_MAX);
	if (c->n > VALUES_MAX)
		c->n = VALUES_MAX;
}

/* The number of faults in both directions between two readings. */
static uint64_t
faults_done(const struct counters *before, const struct counters *after)
{
	static const char *const kinds[] = {"_dropped", "_duplicated", "_reordered", "_corrupted",
					    "_delayed"};
	uint64_t sum = 0;

	for (int i = 0; i < before->n; i++)
		for (unsigned int k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
			if ((strncmp(before->v[i].name, "link_", 5) == 0 ||
			     strncmp(before->v[i].name, "inbound_", 8) == 0) &&
			    strstr(before->v[i].name, kinds[k]) != NULL)
				sum += after->v[i].value - before->v[i].value;
	return sum;
}

/* Counters since the start of the test help to explain a failure. */
static void
print_counters(const struct counters *before, const struct counters *after)
{
	for (int i = 0; i < before->n; i++)
		if (after->v[i].value != before->v[i].value)
			printf("    %-40s %llu\n", before->v[i].name,
			       (unsigned long long)(after->v[i].value - before->v[i].value));
}

static void
set_faults(struct host *h, const struct host_case *c)
{
	softhca_embed_set_impairment(h->embed, &c->impair);
	for (unsigned int i = 0; i < c->num_faults; i++)
		softhca_embed_add_fault(h->embed, 0, &c->fault[i]);
}

static void
clear_faults(struct host *h)
{
	softhca_embed_set_impairment(h->embed, NULL);
	softhca_embed_clear_faults(h->embed, 0);
}

/* Open QP k at both ends. */
static int
connect_qp(struct host *h, const struct host_case *c, unsigned int k, struct perf_exchange *x)
{
	struct ep *ep = &h->set.ep[h->set.n++];
	struct perf_exchange test = c->test;
	uint64_t asked;
	char word[PERF_EXCHANGE_WORD] = "";
	int err;

	test.requester = c->both_ways && k % 2 ? !c->ours : c->ours;
	test.psn = (test.psn + k * 0x2468) & 0xffffff;
	test.seed += k;
	err = ep_open(ep, h->ctx, &test);
	if (err != 0)
		return err;
	asked = ep_now();
	err = ep_line_send(&h->line, "case", &ep->test);
	if (err == 0)
		err = host_wait_line(h, ANSWER_MS, word, x);
	if (err != 0)
		return err;
	host_clock_heard(&h->clock, asked, ep_now(), x->clock);
	if (strcmp(word, "ready") != 0)
		return ep_fail(ep, -EREMOTEIO, "rxe cannot: %s", x->text);
	err = ep_connect(ep, x);
	return err == 0 ? ep_start(ep) : err;
}

int
host_connect(struct host *h, const struct host_case *c, struct perf_exchange *x)
{
	unsigned int n = c->qps != 0 ? c->qps : 1;
	int err = 0;

	for (unsigned int k = 0; k < n && err == 0; k++)
		err = connect_qp(h, c, k, x);
	if (err != 0 && !h->lost)
		h->lost = ep_line_send(&h->line, "stop", x) != 0;
	return err;
}

static int
explain(struct host *h, const struct perf_exchange *x, int err, char reason[HOST_REASON])
{
	const char *mine = ep_reason(&h->set);

	if (mine[0] == '\0' && x->text[0] == '\0')
		return lost(reason, err, "control channel: %s", strerror(-err));
	return lost(reason, err, "%s%s%s%s", mine[0] ? "softhca: " : "", mine,
		    x->text[0] ? " rxe: " : "", x->text);
}

int
host_run(struct host *h, const struct host_case *c, char reason[HOST_REASON])
{
	static struct counters before, after;
	struct perf_exchange x = {0};
	uint64_t asked;
	int err;

	read_counters(h, &before);
	err = host_connect(h, c, &x);
	if (err == 0) {
		set_faults(h, c);
		asked = ep_now();
		err = ep_line_send(&h->line, "go", &x);
		if (err == 0)
			err = ep_play(&h->set, &h->line, &x);
		h->lost = err != 0 && err != -EBADMSG;
		if (!h->lost)
			host_clock_heard(&h->clock, asked, ep_now(), x.clock);
		clear_faults(h);
	}
	read_counters(h, &after);
	if (err != 0)
		err = explain(h, &x, err, reason);
	else if (c->faults_must_hit && faults_done(&before, &after) == 0)
		err = lost(reason, -ENODATA, "none of the faults has happened");
	if (err != 0)
		print_counters(&before, &after);
	ep_close_all(&h->set);
	return err;
}
