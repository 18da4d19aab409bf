/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The end inside the virtual machine, on libibverbs: takes tests from the control channel one by
 * one, plays its part in them and reports.
 *
 * peer DEVICE CHANNEL		e.g. peer rxe0 /dev/vport1p1
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ep.h"
#include "ep_line.h"

#define QUIET_MS 120000 /* nobody speaks: the host is gone */
#define LATE_MS 3000u	/* what is under way when the other end has finished */

static struct ibv_context *
open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;

	for (struct ibv_device **d = list; d != NULL && *d != NULL && ctx == NULL; d++)
		if (strcmp(ibv_get_device_name(*d), name) == 0)
			ctx = ibv_open_device(*d);
	if (list != NULL)
		ibv_free_device_list(list);
	return ctx;
}

/* Blocks; the host leaves between tests whatever time it likes. */
static int
wait_line(struct ep_line *l, char word[PERF_EXCHANGE_WORD], struct perf_exchange *x)
{
	struct pollfd p = {.fd = l->fd, .events = POLLIN};
	int rc;

	while ((rc = ep_line_poll(l, word, x)) == 0)
		if (poll(&p, 1, QUIET_MS) == 0)
			return -ETIMEDOUT;
	return rc < 0 ? rc : 0;
}

/* Serves until the host says that it has finished, and a little longer where something is missing. */
static int
respond(struct ep *ep, struct ep_line *l)
{
	char word[PERF_EXCHANGE_WORD] = "";
	struct perf_exchange x;
	unsigned int idle = 0;
	uint64_t end = UINT64_MAX;
	int n, rc;

	while (end == UINT64_MAX || (!ep_complete(ep) && ep_now() < end)) {
		n = ep_respond(ep);
		if (n < 0 && ep->reason[0] == '\0')
			return n;
		if (n > 0)
			idle = 0;
		else
			ep_idle(&idle);
		rc = end == UINT64_MAX ? ep_line_poll(l, word, &x) : 0;
		if (rc < 0)
			return rc;
		if (rc > 0)
			end = ep_now() + (uint64_t)LATE_MS * 1000000;
		if (n < 0 && end != UINT64_MAX)
			break;
	}
	if (ep->reason[0] == '\0' && !ep_complete(ep))
		ep_fail(ep, -ETIMEDOUT, "%u receives of %u messages", ep->received,
			(unsigned int)ep->test.count);
	return 0;
}

static int
request(struct ep *ep, struct ep_line *l)
{
	char word[PERF_EXCHANGE_WORD];
	struct perf_exchange x;
	int err;

	x = (struct perf_exchange){.status = (uint64_t)-ep_request(ep)};
	snprintf(x.text, sizeof(x.text), "%s", ep->reason);
	err = ep_line_send(l, "sent", &x);
	return err == 0 ? wait_line(l, word, &x) : err;
}

static void
report(struct ep *ep, struct perf_exchange *x)
{
	memset(x, 0, sizeof(*x));
	if (ep->reason[0] == '\0')
		ep_verify(ep);
	x->status = ep->reason[0] != '\0';
	x->value = ep->received;
	memcpy(x->text, ep->reason, sizeof(x->text));
}

/* Returns negative only when the channel is of no use any more. */
static int
run(struct ibv_context *ctx, struct ep_line *l, const struct perf_exchange *x)
{
	char word[PERF_EXCHANGE_WORD];
	struct perf_exchange test = *x, answer;
	struct ep ep;
	int err;

	test.requester = !x->requester;
	test.psn = (x->psn * 5 + 0x3579) & 0xffffff;
	err = ep_open(&ep, ctx, &test);
	if (err == 0)
		err = ep_connect(&ep, x);
	if (err == 0)
		err = ep_start(&ep);
	answer = ep.test;
	memcpy(answer.text, ep.reason, sizeof(answer.text));
	if (ep_line_send(l, err == 0 ? "ready" : "error", &answer) != 0 || err != 0) {
		ep_close(&ep);
		return 0;
	}
	err = wait_line(l, word, &answer);
	if (err == 0)
		err = ep.test.requester ? request(&ep, l) : respond(&ep, l);
	report(&ep, &answer);
	ep_close(&ep);
	return err == 0 ? ep_line_send(l, "result", &answer) : err;
}

int
main(int argc, char **argv)
{
	char word[PERF_EXCHANGE_WORD] = "";
	struct perf_exchange x = {.version = PERF_EXCHANGE_VERSION};
	struct ep_line l = {.fd = -1};
	struct ibv_context *ctx;
	int err;

	if (argc != 3)
		return 2;
	ctx = open_device(argv[1]);
	l.fd = open(argv[2], O_RDWR | O_NONBLOCK);
	if (ctx == NULL || l.fd < 0) {
		printf("peer: cannot open %s: %s\n", ctx == NULL ? argv[1] : argv[2],
		       strerror(errno));
		return 1;
	}
	err = ep_line_send(&l, "hello", &x);
	while (err == 0 && strcmp(word, "bye") != 0) {
		err = wait_line(&l, word, &x);
		if (err == 0 && strcmp(word, "case") == 0)
			err = run(ctx, &l, &x);
	}
	printf("peer: ends (%d)\n", err);
	ibv_close_device(ctx);
	return err != 0;
}
