/* SPDX-License-Identifier: BSD-3-Clause */

/* All QPs of a test at once, each in its role, and the words exchanged meanwhile. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ep.h"
#include "ep_line.h"

#define MS 1000000ull

struct play {
	struct ep_set *set;
	struct ep_line *line;
	struct perf_exchange *x; /* words of the other end */
	bool told, heard;	 /* "sent": sent, received */
	uint64_t other_at;	 /* ns; deadline for the other end's "sent" */
	uint64_t late_at;	 /* ns; messages that have not arrived then are missing */
	bool result;		 /* the other end's result was received */
};

const char *
ep_reason(const struct ep_set *s)
{
	for (unsigned int i = 0; i < s->n; i++)
		if (s->ep[i].reason[0] != '\0')
			return s->ep[i].reason;
	return "";
}

void
ep_close_all(struct ep_set *s)
{
	while (s->n != 0)
		ep_close(&s->ep[--s->n]);
}

/* A QP that has failed stops; the others continue. */
static bool
is_done(struct ep *ep)
{
	if (ep->reason[0] != '\0')
		return true;
	return ep->test.requester ? ep->completed == ep->test.count : ep_complete(ep);
}

static bool
all_done(struct ep_set *s, bool requesters)
{
	for (unsigned int i = 0; i < s->n; i++)
		if ((s->ep[i].test.requester != 0) == requesters && !is_done(&s->ep[i]))
			return false;
	return true;
}

/* Responders that are complete still poll: there may be too many messages. */
static unsigned int
step_all(struct ep_set *s)
{
	unsigned int work = 0;

	for (unsigned int i = 0; i < s->n; i++) {
		struct ep *ep = &s->ep[i];
		int n;

		if (ep->reason[0] != '\0' || (ep->test.requester && is_done(ep)))
			continue;
		n = ep->test.requester ? ep_request(ep) : ep_respond(ep);
		if (n > 0)
			ep->end = ep_now() + EP_TIMEOUT_MS * MS;
		work += n > 0;
	}
	interop_progress(s->ep[0].ctx);
	return work;
}

/* The other end has sent everything: set the deadline for messages in flight. */
static void
heard_sent(struct play *p)
{
	uint64_t now = ep_now();

	p->heard = true;
	p->late_at = now + EP_LATE_MS * MS;
	for (unsigned int i = 0; i < p->set->n; i++)
		p->set->ep[i].quiet_at = now + EP_QUIET_MS * MS;
}

static int
listen(struct play *p)
{
	char word[PERF_EXCHANGE_WORD];
	struct perf_exchange x;
	int rc = ep_line_poll(p->line, word, &x);

	if (rc <= 0)
		return rc;
	if (strcmp(word, "sent") == 0) {
		heard_sent(p);
		return 0;
	}
	if (strcmp(word, "result") != 0)
		return -EPROTO;
	*p->x = x;
	p->result = true;
	return 0;
}

static int
until_done(struct play *p)
{
	const struct perf_exchange none = {0};
	unsigned int idle = 0;
	int err = 0;

	while (err == 0 &&
	       !(p->told && p->heard && (all_done(p->set, false) || ep_now() > p->late_at))) {
		if (step_all(p->set) != 0)
			idle = 0;
		else
			ep_idle(&idle);
		if (!p->told && all_done(p->set, true)) {
			p->told = true;
			p->other_at = ep_now() + EP_OTHER_MS * MS;
			err = ep_line_send(p->line, "sent", &none);
		}
		if (err == 0)
			err = listen(p);
		if (err == 0 && p->told && !p->heard && ep_now() > p->other_at)
			err = -ETIMEDOUT;
	}
	return err;
}

static void
judge_all(struct ep_set *s)
{
	for (unsigned int i = 0; i < s->n; i++) {
		struct ep *ep = &s->ep[i];

		if (!is_done(ep))
			ep_fail(ep, -ETIMEDOUT, "%u receives of %u messages", ep->received,
				(unsigned int)ep->test.count);
		if (ep->reason[0] == '\0')
			ep_verify(ep);
	}
}

static int
until_result(struct play *p)
{
	uint64_t end = ep_now() + (EP_TIMEOUT_MS + 2 * EP_LATE_MS) * MS;
	unsigned int idle = 0;
	int err = 0;

	while (err == 0 && !p->result) {
		interop_progress(p->set->ep[0].ctx);
		ep_idle(&idle);
		err = listen(p);
		if (err == 0 && ep_now() > end)
			err = -ETIMEDOUT;
	}
	return err;
}

int
ep_play(struct ep_set *s, struct ep_line *l, struct perf_exchange *x)
{
	struct play p = {.set = s, .line = l, .x = x};
	struct perf_exchange mine = {0};
	uint64_t end = ep_now() + EP_TIMEOUT_MS * MS;
	int err;

	memset(x, 0, sizeof(*x));
	for (unsigned int i = 0; i < s->n; i++) {
		s->ep[i].end = end;
		s->ep[i].quiet_at = UINT64_MAX;
	}
	err = until_done(&p);
	judge_all(s);
	mine.status = ep_reason(s)[0] != '\0';
	snprintf(mine.text, sizeof(mine.text), "%s", ep_reason(s));
	if (err == 0)
		err = ep_line_send(l, "result", &mine);
	if (err == 0)
		err = until_result(&p);
	if (err != 0)
		return err;
	return mine.status != 0 || x->status != 0 ? -EBADMSG : 0;
}
