/* SPDX-License-Identifier: BSD-3-Clause */

/* Completion events instead of polling: arm, poll once more, wait. */

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "perf_ub.h"
#include "perf_wake.h"

#define WAIT_MS 1000
#define WAIT_NS 1000000000ull

int
perf_channels_open(struct perf_session *s)
{
	for (unsigned int i = 0; i < 2 && s->opt->events; i++) {
		if (!s->local[i])
			continue;
		s->channel[i] = softhca_create_comp_channel(s->ctx[i]);
		if (s->channel[i] != NULL)
			continue;
		fprintf(stderr, "softhca-perf: create_comp_channel: %s\n",
			softhca_last_error(s->ctx[i]));
		return -EIO;
	}
	s->armed = false;
	if (s->channel[0] == NULL || s->local[1])
		return 0;
	s->wake = perf_wake_start(s->wake_fd);
	if (s->wake != NULL)
		return 0;
	fprintf(stderr, "softhca-perf: no thread that ends waiting: %s\n", strerror(errno));
	return -EIO;
}

void
perf_channels_close(struct perf_session *s)
{
	perf_wake_stop(s->wake);
	s->wake = NULL;
	for (unsigned int i = 0; i < 2; i++) {
		if (s->channel[i] != NULL)
			softhca_destroy_comp_channel(s->channel[i]);
		s->channel[i] = NULL;
	}
}

static int
arm(struct perf_session *s, bool send)
{
	int err = 0;

	for (unsigned int i = 0; i < 2 && err == 0; i++) {
		if (!s->local[i])
			continue;
		if (s->ub != NULL) {
			err = perf_ub_arm(s, i, send);
			continue;
		}
		if (send)
			err = softhca_req_notify_cq(s->send_cq[i], 0);
		if (err == 0)
			err = softhca_req_notify_cq(s->recv_cq[i], 0);
	}
	s->armed = true;
	return err;
}

static int
take_event(struct perf_session *s, unsigned int i)
{
	struct softhca_cq *cq;
	int err;

	if (s->ub != NULL)
		return perf_ub_take_events(s, i);
	err = softhca_get_cq_event(s->channel[i], &cq, NULL);
	if (err == 0)
		softhca_ack_cq_events(cq, 1);
	return err;
}

static int
channel_fd(const struct perf_session *s, unsigned int side)
{
	if (!s->local[side])
		return -1;
	return s->ub != NULL ? s->ub->jfce[side]->fd : s->channel[side]->fd;
}

/* One side is of this process, and one channel. */
static int
wait_for_event(struct perf_session *s)
{
	int err;

	perf_wake_begin(s->wake);
	err = perf_interrupted() ? -EINTR : take_event(s, 0);
	perf_wake_end(s->wake);
	return err == -EINTR ? 0 : err;
}

/* In manual progress the engine runs here; otherwise the thread sleeps. */
static int
wait_for_any(struct perf_session *s)
{
	struct pollfd fd[3] = {{.fd = channel_fd(s, 0), .events = POLLIN},
			       {.fd = channel_fd(s, 1), .events = POLLIN},
			       {.fd = s->wake_fd, .events = POLLIN}};
	bool manual = s->embed != NULL && s->opt->embed.executor == SOFTHCA_EXECUTOR_MANUAL;
	uint64_t since = perf_now_ns();
	int n = 0, err = 0;

	while (n == 0 && perf_now_ns() - since < WAIT_NS && !perf_interrupted()) {
		if (manual)
			softhca_embed_progress(s->embed);
		n = poll(fd, 3, manual ? 0 : WAIT_MS);
		if (n < 0 && errno != EINTR)
			return -errno;
	}
	for (unsigned int i = 0; i < 2 && err == 0; i++)
		if (n > 0 && (fd[i].revents & POLLIN) != 0)
			err = take_event(s, i);
	return err;
}

static int
wait_for(struct perf_session *s, bool send)
{
	if (!s->armed)
		return arm(s, send);
	s->armed = false;
	return s->wake != NULL ? wait_for_event(s) : wait_for_any(s);
}

int
perf_wait(struct perf_session *s)
{
	return wait_for(s, true);
}

/* A QP that fails flushes its receives, which also raises the event. */
int
perf_wait_recv(struct perf_session *s)
{
	return wait_for(s, false);
}
