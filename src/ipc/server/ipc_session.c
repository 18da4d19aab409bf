/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A client's thread: waits for requests and for the end of the client, checks the framing, answers.
 * Only this thread uses the session, except for the numbers shown to operators.
 */

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "ipc_closer.h"
#include "ipc_msg.h"
#include "ipc_server_impl.h"

struct message {
	struct ipc_request head;
	union {
		uint8_t bytes[IPC_BODY_MAX];
		uint64_t align;
	} body;
};

/* Buffers of the loop, too large for the small stack of the thread. */
struct desk {
	struct message in;
	struct ipc_answer answer;
	int fds[IPC_FDS_PER_MESSAGE];
};

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* How a session ends: IPC_COUNTER_ended_*, or IPC_COUNTER_COUNT: it continues. */
#define GOES_ON IPC_COUNTER_COUNT

static enum ipc_counter
wait_for_message(struct ipc_session *s)
{
	struct pollfd fds[] = {
		{.fd = s->server->stop_fd, .events = POLLIN},
		{.fd = s->lost_fd, .events = POLLIN},
		{.fd = s->pid_fd, .events = POLLIN},
		{.fd = s->sock, .events = POLLIN},
	};
	int n;

	do {
		n = poll(fds, 4, s->greeted ? -1 : (int)s->server->config.hello_ms);
	} while (n < 0 && errno == EINTR);
	if (fds[0].revents != 0)
		return IPC_COUNTER_ended_server;
	if (fds[1].revents != 0)
		return IPC_COUNTER_ended_segment_lost;
	if (fds[2].revents != 0)
		return IPC_COUNTER_ended_process;
	return n == 0 ? IPC_COUNTER_ended_silent : GOES_ON;
}

/* The client has this long to make room for a reply. */
static enum ipc_counter
send_reply(struct ipc_session *s, const struct ipc_reply *head, struct ipc_answer *answer)
{
	struct pollfd fds[] = {
		{.fd = s->sock, .events = POLLOUT},
		{.fd = s->server->stop_fd, .events = POLLIN},
		{.fd = s->pid_fd, .events = POLLIN},
	};
	int err;

	for (;;) {
		err = ipc_send(s->sock, head, sizeof(*head), answer->body.bytes, answer->len,
			       answer->extra.fds, answer->num_fds, MSG_DONTWAIT);
		if (err == 0)
			return GOES_ON;
		if (err != -EAGAIN)
			return IPC_COUNTER_ended_closed;
		if (poll(fds, 3, (int)s->server->config.send_ms) == 0)
			return IPC_COUNTER_ended_not_reading;
		if (fds[1].revents != 0)
			return IPC_COUNTER_ended_server;
		if (fds[2].revents != 0)
			return IPC_COUNTER_ended_process;
	}
}

/*
 * For its turn, if the user's clients take turns. The client sees that its greeting was read, and
 * waits for the answer. How it ends is seen afterwards.
 */
static enum ipc_counter
wait_for_turn(struct ipc_session *s)
{
	struct ipc_server *server = s->server;
	struct pollfd fds[] = {
		{.fd = server->stop_fd, .events = POLLIN},
		{.fd = s->pid_fd, .events = POLLIN},
		{.fd = s->sock}, /* its end */
	};
	bool delayed = false;
	uint32_t ms;

	while ((ms = ipc_turns_take(&server->turns, s->uid, now_ns() / 1000000)) != 0) {
		if (!delayed)
			ipc_count(server, IPC_COUNTER_clients_delayed);
		delayed = true;
		if (poll(fds, 3, (int)ms) <= 0)
			continue;
		return fds[0].revents != 0   ? IPC_COUNTER_ended_server
		       : fds[1].revents != 0 ? IPC_COUNTER_ended_process
					     : IPC_COUNTER_ended_closed;
	}
	return GOES_ON;
}

static bool
framed(const struct ipc_session *s, const struct message *in, size_t got)
{
	const struct ipc_request *h = &in->head;

	return got >= sizeof(*h) && h->version == HCA_CTL_VERSION && h->len == got - sizeof(*h) &&
	       h->seq == s->seq && (h->op == HCA_CTL_HELLO) == !s->greeted;
}

static void
count_refusal(struct ipc_server *server, int err)
{
	ipc_count(server, err == -EPERM	  ? IPC_COUNTER_refused_address
			  : err == -EBADF ? IPC_COUNTER_refused_file
					  : IPC_COUNTER_refused_request);
}

/* Answers the request in d->in. An error: with ipc_reason(), without body and descriptors. */
static enum ipc_counter
answer(struct ipc_session *s, struct desk *d, int err)
{
	struct ipc_reply head = {
		.version = d->in.head.version,
		.op = d->in.head.op,
		.seq = d->in.head.seq,
		.err = err,
		.speaks = HCA_CTL_VERSION,
	};
	enum ipc_counter end;

	if (err != 0) {
		strncpy(head.reason, ipc_reason(), sizeof(head.reason) - 1);
		d->answer.len = 0;
		d->answer.num_fds = 0;
	}
	head.len = d->answer.len;
	s->seq++;
	end = send_reply(s, &head, &d->answer);
	ipc_close_fds(d->answer.extra.fds, d->answer.num_fds);
	return end;
}

/* A refusal that does not end the session: of requests that this release does not have. */
static enum ipc_counter
refuse_unknown(struct ipc_session *s, struct desk *d)
{
	ipc_tell_unknown(s);
	return answer(s, d, -EOPNOTSUPP);
}

/* A greeting of a version that this daemon does not speak */
static enum ipc_counter
refuse_version(struct ipc_session *s, struct desk *d)
{
	ipc_count(s->server, IPC_COUNTER_refused_version);
	answer(s, d, -EPROTONOSUPPORT);
	return IPC_COUNTER_ended_protocol;
}

/* The request is complete except for descriptors that this process may not have. */
static enum ipc_counter
refuse_descriptors(struct ipc_session *s, struct desk *d, unsigned int num_fds)
{
	const struct ipc_request *h = &d->in.head;
	const struct hca_ctl_shape *shape = hca_ctl_shape(h->op);

	if (!s->greeted || shape == NULL || num_fds >= shape->fds_in ||
	    !framed(s, &d->in, sizeof(*h) + h->len))
		return IPC_COUNTER_ended_protocol;
	ipc_count(s->server, IPC_COUNTER_refused_resources);
	return answer(
		s, d,
		ipc_fail(
			-EMFILE,
			"the daemon has no free descriptors: raise its limit of open files (ulimit -n)"));
}

static enum ipc_counter
answer_one(struct ipc_session *s, struct desk *d, size_t got, int *fds, unsigned int num_fds)
{
	struct ipc_request *h = &d->in.head;
	enum ipc_counter end;
	enum ipc_form form;
	int err;

	if (got >= sizeof(*h) && h->len == got - sizeof(*h)) {
		if (!ipc_agree(s, h, d->in.body.bytes))
			return refuse_version(s, d);
		got = sizeof(*h) + h->len;
	}
	if (!framed(s, &d->in, got))
		return IPC_COUNTER_ended_protocol;
	form = ipc_form(s, h->op, d->in.body.bytes, h->len, num_fds);
	if (form == IPC_FORM_UNKNOWN)
		return refuse_unknown(s, d);
	if (form == IPC_FORM_WRONG)
		return IPC_COUNTER_ended_protocol;
	__atomic_store_n(&s->requests, s->requests + 1, __ATOMIC_RELAXED);
	ipc_count(s->server, IPC_COUNTER_requests);
	ipc_count(s->server, IPC_COUNTER_calls_hello + h->op);
	err = ipc_execute(s, h->op, d->in.body.bytes, fds, &d->answer);
	if (err != 0)
		count_refusal(s->server, err);
	end = answer(s, d, err);
	/* after CLOSE, or a refused HELLO, the session cannot continue */
	if (end == GOES_ON && s->client == NULL)
		end = IPC_COUNTER_ended_closed;
	return end;
}

static enum ipc_counter
serve_one(struct ipc_session *s, struct desk *d)
{
	enum ipc_counter end = wait_for_message(s);
	unsigned int num_fds = IPC_FDS_PER_MESSAGE;
	ssize_t got;

	if (end != GOES_ON)
		return end;
	got = ipc_receive(s->sock, &d->in, sizeof(d->in), d->fds, &num_fds);
	if (got == -EMFILE)
		end = refuse_descriptors(s, d, num_fds);
	else if (got == -EBADMSG)
		end = IPC_COUNTER_ended_protocol;
	else if (got <= 0)
		end = IPC_COUNTER_ended_closed;
	else if (!s->greeted)
		end = wait_for_turn(s);
	if (end == GOES_ON && got > 0)
		end = answer_one(s, d, (size_t)got, d->fds, num_fds);
	ipc_closer_give_all(s->server->closer, d->fds, num_fds, s->uid);
	return end;
}

/*
 * The device accesses no memory of the client any more. Also if the session ended otherwise first.
 */
static bool
has_lost_memory(const struct ipc_session *s)
{
	uint64_t times;

	return read(s->lost_fd, &times, sizeof(times)) == sizeof(times);
}

void *
ipc_session_main(void *arg)
{
	struct ipc_session *s = arg;
	struct desk *desk = calloc(1, sizeof(*desk));
	enum ipc_counter end = desk != NULL ? GOES_ON : IPC_COUNTER_refused_resources;
	uint64_t since;

	(void)pthread_setname_np(pthread_self(), "hca-session");
	ipc_closer_admit();
	while (end == GOES_ON)
		end = serve_one(s, desk);
	since = now_ns();
	ipc_count(s->server, end);
	ipc_session_release(s);
	if (has_lost_memory(s))
		ipc_turns_lost(&s->server->turns, s->uid, since / 1000000);
	free(desk);
	ipc_session_gone(s, now_ns() - since);
	return NULL;
}
