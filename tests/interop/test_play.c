/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * One end of a test whose other end is slow, hangs or is silent, in simulated time: an end that
 * makes progress is never given up, one that does not always is.
 */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ep.h"
#include "ep_line.h"

#define MS 1000000ull
#define NEVER UINT64_MAX

/* Behaviour of the other end and the network, times in ns of the simulation. */
static struct {
	uint64_t now;
	uint64_t step_ms;   /* interval of a requester's completions */
	uint64_t sent_at;   /* time of the other end's "sent" */
	uint64_t result_at; /* and of its "result" */
	bool said_sent, said_result;
	unsigned int results; /* number of results we have sent */
	uint64_t failed;      /* the status we have sent */
} sim;

uint64_t
ep_now(void)
{
	return sim.now;
}

void
ep_idle(unsigned int *idle)
{
	(*idle)++;
	sim.now += MS;
}

int
ep_fail(struct ep *ep, int err, const char *format, ...)
{
	(void)format;
	strcpy(ep->reason, "failed");
	return err;
}

unsigned int
softhca_progress(struct softhca_context *ctx)
{
	(void)ctx;
	return 0;
}

void
ep_close(struct ep *ep)
{
	(void)ep;
}

int
ep_verify(struct ep *ep)
{
	(void)ep;
	return 0;
}

bool
ep_complete(struct ep *ep)
{
	return ep->received == ep->test.count;
}

int
ep_respond(struct ep *ep)
{
	(void)ep;
	return 0;
}

/* One completion every step_ms, checked as by the real function. */
int
ep_request(struct ep *ep)
{
	if (sim.step_ms != NEVER && sim.now >= (ep->completed + 1) * sim.step_ms * MS) {
		ep->completed++;
		return 1;
	}
	return sim.now > ep->end ? ep_fail(ep, -ETIMEDOUT, "late") : 0;
}

int
ep_line_send(struct ep_line *l, const char *word, const struct perf_exchange *x)
{
	(void)l;
	if (strcmp(word, "result") == 0) {
		sim.results++;
		sim.failed = x->status;
	}
	return 0;
}

int
ep_line_poll(struct ep_line *l, char word[PERF_EXCHANGE_WORD], struct perf_exchange *x)
{
	(void)l;
	memset(x, 0, sizeof(*x));
	if (!sim.said_sent && sim.now >= sim.sent_at) {
		sim.said_sent = true;
		strcpy(word, "sent");
		return 1;
	}
	if (!sim.said_result && sim.results != 0 && sim.now >= sim.result_at) {
		sim.said_result = true;
		strcpy(word, "result");
		return 1;
	}
	return 0;
}

static int
play(bool requester, unsigned int count, uint64_t step_ms, uint64_t sent_ms)
{
	static struct ep_set s;
	struct ep_line l = {0};
	struct perf_exchange x;

	memset(&sim, 0, sizeof(sim));
	sim.step_ms = step_ms;
	sim.sent_at = sent_ms == NEVER ? NEVER : sent_ms * MS;
	memset(&s, 0, sizeof(s));
	s.n = 1;
	s.ep[0].test.requester = requester;
	s.ep[0].test.count = count;
	return ep_play(&s, &l, &x);
}

/* The other end has nothing to send and reports it at once: the deadline is not shortened. */
static void
slow_requester(void **state)
{
	(void)state;
	assert_int_equal(play(true, 10, 2000, 0), 0);
	assert_int_equal(sim.failed, 0);
	assert_true(sim.now >= 20000 * MS);
	assert_int_equal(play(true, 3, 14000, 0), 0);
	assert_int_equal(play(true, 100, 900, 1000), 0);
}

static void
requester_hangs(void **state)
{
	(void)state;
	assert_int_equal(play(true, 10, NEVER, 0), -EBADMSG);
	assert_int_equal(sim.failed, 1);
	assert_true(sim.now >= EP_TIMEOUT_MS * MS && sim.now < 2 * EP_TIMEOUT_MS * MS);
}

/* Its requests take long; nothing arrives here meanwhile, as with READs. */
static void
slow_other(void **state)
{
	(void)state;
	assert_int_equal(play(false, 0, NEVER, 50000), 0);
	assert_int_equal(sim.failed, 0);
	assert_int_equal(play(true, 1, 1, 50000), 0);
}

static void
other_is_mute(void **state)
{
	(void)state;
	assert_int_equal(play(false, 0, NEVER, NEVER), -ETIMEDOUT);
	assert_int_equal(play(true, 1, 1, NEVER), -ETIMEDOUT);
}

/* Everything was sent, but not everything arrives. */
static void
missing(void **state)
{
	(void)state;
	assert_int_equal(play(false, 5, NEVER, 1000), -EBADMSG);
	assert_true(sim.now >= EP_LATE_MS * MS && sim.now < EP_OTHER_MS * MS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slow_requester), cmocka_unit_test(requester_hangs),
		cmocka_unit_test(slow_other),	  cmocka_unit_test(other_is_mute),
		cmocka_unit_test(missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
