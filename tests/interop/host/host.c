/* SPDX-License-Identifier: BSD-3-Clause */

/* One test: told to the guest, played, compared. */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "host.h"

#define ANSWER_MS 20000u /* more than the guest gives itself */
#define LATE_MS 3000u
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

bool
host_is_lost(int err)
{
	return err == -EPIPE || err == -ECONNRESET;
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
		if (ep_now() > end)
			return -ETIMEDOUT;
	}
	return rc < 0 ? rc : 0;
}

/* Sum of what the impairments of both directions did. */
static uint64_t
faults_done(struct host *h)
{
	static const char *const kinds[] = {"_dropped", "_duplicated", "_reordered", "_corrupted",
					    "_delayed"};
	struct softhca_value v[VALUES_MAX];
	int n = softhca_embed_counters(h->embed, 0, v, VALUES_MAX);
	uint64_t sum = 0;

	for (int i = 0; i < n && i < VALUES_MAX; i++)
		for (unsigned int k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
			if ((strncmp(v[i].name, "link_", 5) == 0 ||
			     strncmp(v[i].name, "inbound_", 8) == 0) &&
			    strstr(v[i].name, kinds[k]) != NULL)
				sum += v[i].value;
	return sum;
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

/* Serves until the guest has sent everything, and a little longer where something is missing. */
static int
serve(struct host *h, struct ep *ep, struct perf_exchange *x)
{
	uint64_t end = ep_now() + (uint64_t)ANSWER_MS * 1000000;
	char word[PERF_EXCHANGE_WORD] = "";
	unsigned int idle = 0;
	bool sent = false;
	int n, rc;

	while (!sent || (!ep_complete(ep) && ep->reason[0] == '\0')) {
		n = ep->reason[0] == '\0' ? ep_respond(ep) : 0;
		softhca_embed_progress(h->embed);
		if (n > 0)
			idle = 0;
		else
			ep_idle(&idle);
		rc = sent ? 0 : ep_line_poll(&h->line, word, x);
		if (rc < 0)
			return rc;
		if (rc > 0) {
			sent = true;
			end = ep_now() + (uint64_t)LATE_MS * 1000000;
		}
		if (ep_now() > end)
			break;
	}
	if (!sent)
		return -ETIMEDOUT;
	if (!ep_complete(ep))
		ep_fail(ep, -ETIMEDOUT, "%u receives of %u messages", ep->received,
			(unsigned int)ep->test.count);
	return 0;
}

/* Both are connected: play. x: what the guest says at the end. */
static int
play(struct host *h, const struct host_case *c, struct ep *ep, struct perf_exchange *x)
{
	char word[PERF_EXCHANGE_WORD] = "";
	char sent[sizeof(x->text)] = "";
	int err = ep_line_send(&h->line, "go", x);

	if (err != 0)
		return err;
	if (c->ours) {
		ep_request(ep);
	} else {
		err = serve(h, ep, x);
		if (err != 0)
			return err;
		memcpy(sent, x->text, sizeof(sent));
	}
	/* What was held back may still come; it must not be lost while the guest checks. */
	clear_faults(h);
	err = ep_line_send(&h->line, "finish", x);
	if (err == 0)
		err = host_wait_line(h, ANSWER_MS, word, x);
	if (err == 0 && strcmp(word, "result") != 0)
		err = -EPROTO;
	if (ep->reason[0] == '\0')
		ep_verify(ep);
	return err;
}

static int
start(struct host *h, const struct host_case *c, struct ep *ep, struct perf_exchange *x)
{
	struct perf_exchange test = c->test;
	char word[PERF_EXCHANGE_WORD] = "";
	int err;

	test.requester = c->ours;
	err = ep_open(ep, h->ctx, &test);
	if (err != 0)
		return err;
	err = ep_line_send(&h->line, "case", &ep->test);
	if (err == 0)
		err = host_wait_line(h, ANSWER_MS, word, x);
	if (err != 0)
		return err;
	if (strcmp(word, "ready") != 0)
		return ep_fail(ep, -EREMOTEIO, "rxe cannot: %s", x->text);
	err = ep_connect(ep, x);
	return err == 0 ? ep_start(ep) : err;
}

int
host_run(struct host *h, const struct host_case *c, char reason[HOST_REASON])
{
	uint64_t before = faults_done(h), hits;
	struct perf_exchange x = {0};
	struct ep ep;
	int err = start(h, c, &ep, &x);

	if (err == 0) {
		set_faults(h, c);
		err = play(h, c, &ep, &x);
		clear_faults(h);
	}
	hits = faults_done(h) - before;
	if (ep.reason[0] != '\0' || x.text[0] != '\0')
		err = lost(reason, err != 0 ? err : -EBADMSG, "%s%s%s%s",
			   ep.reason[0] ? "softhca: " : "", ep.reason, x.text[0] ? " rxe: " : "",
			   x.text);
	else if (err != 0)
		lost(reason, err, "control channel: %s", strerror(-err));
	else if (c->faults_must_hit && hits == 0)
		err = lost(reason, -ENODATA, "none of the faults has happened");
	ep_close(&ep);
	return err;
}
