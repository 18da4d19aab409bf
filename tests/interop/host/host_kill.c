/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The machine at the other end is killed in full traffic: requests must fail as verbs specify and
 * in bounded time, everything must be freed, and a new machine must be served.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "host.h"
#include "host_special.h"

#define QPS 8
#define COUNT 4000
#define KILL_AFTER 50  /* completions */
#define FAIL_MS 60000u /* eight timeouts of 67 ms, and delays of a busy machine */
#define MS 1000000ull

static struct host_case
traffic(const struct host_options *o)
{
	struct host_case c = {
		.ours = true,
		.qps = QPS,
		.both_ways = true,
		.test =
			{
				.service = IBV_QPT_RC,
				.op = IBV_WR_RDMA_WRITE,
				.size = 1024,
				.count = COUNT,
				.timeout = 14,
				.retry_cnt = 7,
			},
	};

	host_finish_case(&c, o->seed, "kill");
	return c;
}

/* Failed requests; responders do not notice that the requester is gone. */
static unsigned int
count_failed(const struct host *h, unsigned int *completed)
{
	unsigned int failed = 0;

	*completed = 0;
	for (unsigned int i = 0; i < h->set.n; i++) {
		const struct ep *ep = &h->set.ep[i];

		*completed += ep->test.requester ? ep->completed : 0;
		failed += ep->test.requester && ep->reason[0] != '\0';
	}
	return failed;
}

static void
step(struct host *h)
{
	for (unsigned int i = 0; i < h->set.n; i++) {
		struct ep *ep = &h->set.ep[i];

		if (ep->reason[0] == '\0' && ep->completed < ep->test.count)
			(void)(ep->test.requester ? ep_request(ep) : ep_respond(ep));
	}
	softhca_embed_progress(h->embed);
}

static bool
failed_as_promised(const struct host *h)
{
	for (unsigned int i = 0; i < h->set.n; i++)
		if (h->set.ep[i].test.requester &&
		    strstr(h->set.ep[i].reason, ibv_wc_status_str(IBV_WC_RETRY_EXC_ERR)) == NULL)
			return false;
	return true;
}

/* ns from the kill to the last failure, or negative errno. */
static int64_t
watch(struct host *h)
{
	uint64_t killed = 0, end = ep_now() + 4 * FAIL_MS * MS;
	unsigned int completed, failed, idle = 0;

	for (unsigned int i = 0; i < h->set.n; i++)
		h->set.ep[i].end = UINT64_MAX;
	while ((failed = count_failed(h, &completed)) < h->set.n / 2) {
		step(h);
		ep_idle(&idle);
		idle = killed == 0 ? 0 : idle;
		if (killed == 0 && completed >= KILL_AFTER) {
			printf("kill\n");
			fflush(stdout);
			killed = ep_now();
			end = killed + FAIL_MS * MS;
		}
		if (ep_now() > end)
			return -ETIMEDOUT;
	}
	return failed_as_promised(h) ? (int64_t)(ep_now() - killed) : -EPROTO;
}

/* The greeting of the next machine, and a case in each direction. */
static int
serve_next(struct host *h, const struct host_options *o, char reason[HOST_REASON])
{
	int err = host_wait_guest(h);

	for (unsigned int way = 0; way < 2 && err == 0; way++) {
		struct host_case c = traffic(o);

		c.ours = way == 0;
		c.test.count = 50;
		err = host_run(h, &c, reason);
	}
	return err;
}

int
host_kill(struct host *h, const struct host_options *o)
{
	const struct host_case c = traffic(o);
	char reason[HOST_REASON] = "";
	struct perf_exchange x = {0};
	int err = host_connect(h, &c, &x);
	int64_t ns = 0;
	uint64_t start;

	if (err == 0)
		err = ep_line_send(&h->line, "go", &x);
	if (err == 0) {
		ns = watch(h);
		err = ns < 0 ? (int)ns : 0;
	}
	if (err != 0)
		printf("FAIL machine killed: %s: %s\n", strerror(-err), ep_reason(&h->set));
	start = ep_now();
	ep_close_all(&h->set);
	if (err == 0)
		printf("\nmachine killed in full traffic: %u QPs failed as promised after %u ms, all "
		       "freed in %u ms\n",
		       QPS / 2, (unsigned int)(ns / (int64_t)MS),
		       (unsigned int)((ep_now() - start) / MS));
	start = ep_now();
	if (err == 0) {
		err = serve_next(h, o, reason);
		if (err == 0)
			printf("the next machine was up and served after %u ms\n",
			       (unsigned int)((ep_now() - start) / MS));
		else
			printf("FAIL the next machine: %s: %s\n", strerror(-err), reason);
	}
	return err;
}
