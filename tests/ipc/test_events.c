/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Completion channels and asynchronous events of a daemon's device: their descriptors in poll(2)
 * and epoll(7), threads that share a channel, channels, CQs and contexts that end meanwhile.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "ipc_rig.h"

#define SECONDS (2 * RIG_TIMEOUT_S) /* a hanging thread ends the process */
#define MANY 300u
#define EVENT_BYTES 16

RIG_OF_ALL(rig)

/* A CQ on the channel of `a`, and a QP that completes to it */
struct line {
	struct softhca_cq *cq;
	struct softhca_qp *qp, *other;
};

static struct peer a, b;

static int
setup(void **state)
{
	const struct peer_config with = {.type = SOFTHCA_QPT_RC, .events = true};
	const struct peer_config without = {.type = SOFTHCA_QPT_RC};

	alarm(SECONDS);
	if (peer_open(&a, rig.path[0], &with) != 0 || peer_open(&b, rig.path[1], &without) != 0)
		return -1;
	return peer_connect_pair(&a, &b);
}

static int
teardown(void **state)
{
	peer_close(&a);
	peer_close(&b);
	alarm(0);
	return rig_tidy(state);
}

static struct softhca_qp *
make_qp(struct softhca_pd *pd, struct softhca_cq *cq)
{
	struct softhca_qp_init_attr qa = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1},
		.qp_type = SOFTHCA_QPT_RC,
	};
	struct softhca_qp *qp = softhca_create_qp(pd, &qa);

	assert_non_null(qp);
	return qp;
}

static void
line_open(struct line *l)
{
	struct softhca_cq_init_attr ca = {.cqe = 16, .channel = a.channel, .cq_context = l};

	l->cq = softhca_create_cq(a.ctx, &ca);
	assert_non_null(l->cq);
	l->qp = make_qp(a.pd, l->cq);
	l->other = make_qp(b.pd, b.cq);
	assert_int_equal(peer_connect_qp(&a, l->qp, l->other->qp_num, 1, 7), 0);
	assert_int_equal(peer_connect_qp(&b, l->other, l->qp->qp_num, 7, 1), 0);
}

static void
line_close(struct line *l)
{
	assert_int_equal(softhca_destroy_qp(l->qp), 0);
	assert_int_equal(softhca_destroy_qp(l->other), 0);
	assert_int_equal(softhca_destroy_cq(l->cq), 0);
}

/* A completion that was asked for; no data. */
static void
post(struct line *l)
{
	struct softhca_send_wr *bad, wr = {
					     .opcode = SOFTHCA_WR_RDMA_WRITE,
					     .send_flags = SOFTHCA_SEND_SIGNALED,
				     };

	assert_int_equal(softhca_req_notify_cq(l->cq, 0), 0);
	assert_int_equal(softhca_post_send(l->qp, &wr, &bad), 0);
}

/* Wait until this number of unread events is in the channel. */
static void
wait_unread(int n)
{
	uint64_t end = rig_now_ns() + RIG_TIMEOUT_MS * UINT64_C(1000000);
	int bytes = 0;

	while (bytes != n * EVENT_BYTES) {
		assert_int_equal(ioctl(a.channel->fd, FIONREAD, &bytes), 0);
		assert_true(rig_now_ns() < end);
		usleep(100);
	}
}

/* The completion, and the event that it has caused */
static void
take(struct line *l)
{
	struct softhca_cq *cq;
	struct softhca_wc wc;
	void *context;

	assert_int_equal(softhca_get_cq_event(a.channel, &cq, &context), 0);
	assert_ptr_equal(cq, l->cq);
	assert_ptr_equal(context, l);
	softhca_ack_cq_events(cq, 1);
	assert_int_equal(softhca_poll_cq(cq, 1, &wc), 1);
	assert_int_equal(wc.status, SOFTHCA_WC_SUCCESS);
}

static short
polled(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	assert_true(poll(&p, 1, ms) >= 0);
	return p.revents;
}

static void
descriptors(void **state)
{
	int copy = fcntl(a.channel->fd, F_DUPFD_CLOEXEC, 0);
	struct softhca_async_event event;
	struct softhca_cq *cq;
	struct line l;

	line_open(&l);
	assert_int_equal(fcntl(a.channel->fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fcntl(a.ctx->async_fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(polled(a.channel->fd, 0), 0);
	assert_int_equal(polled(a.ctx->async_fd, 0), 0);
	post(&l);
	assert_int_equal(polled(copy, RIG_TIMEOUT_MS), POLLIN);
	assert_int_equal(polled(a.channel->fd, 0), POLLIN);
	/* the flag belongs to the open file of both descriptors */
	assert_int_equal(fcntl(copy, F_SETFL, O_NONBLOCK), 0);
	take(&l);
	assert_int_equal(polled(copy, 0), 0);
	assert_int_equal(softhca_get_cq_event(a.channel, &cq, NULL), -EAGAIN);
	assert_int_equal(fcntl(a.ctx->async_fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(softhca_get_async_event(a.ctx, &event), -EAGAIN);
	assert_int_equal(softhca_destroy_comp_channel(a.channel), -EBUSY);
	line_close(&l);
	assert_int_equal(softhca_destroy_qp(a.qp), 0);
	assert_int_equal(softhca_destroy_cq(a.cq), 0);
	assert_int_equal(softhca_destroy_comp_channel(a.channel), 0);
	a.qp = NULL;
	a.cq = NULL;
	a.channel = NULL;
	assert_int_equal(polled(copy, RIG_TIMEOUT_MS), POLLHUP);
	close(copy);
}

/* Each event is an edge, whether or not the one before it was read. */
static void
edges(void **state)
{
	struct epoll_event e = {.events = EPOLLIN | EPOLLET};
	int set = epoll_create1(EPOLL_CLOEXEC);
	struct line l[2];

	line_open(&l[0]);
	line_open(&l[1]);
	assert_int_equal(epoll_ctl(set, EPOLL_CTL_ADD, a.channel->fd, &e), 0);
	assert_int_equal(epoll_wait(set, &e, 1, 0), 0);
	for (int i = 0; i < 2; i++) {
		post(&l[i]);
		assert_int_equal(epoll_wait(set, &e, 1, RIG_TIMEOUT_MS), 1);
		assert_int_equal(e.events, EPOLLIN);
		assert_int_equal(epoll_wait(set, &e, 1, 0), 0);
	}
	take(&l[0]);
	take(&l[1]);
	close(set);
	line_close(&l[0]);
	line_close(&l[1]);
}

struct waiter {
	pthread_t thread;
	struct softhca_comp_channel *channel;
	uint32_t taken; /* by all threads of a test: of the first one */
	int result;
};

static void *
take_all(void *arg)
{
	struct waiter *w = arg;
	struct softhca_cq *cq;
	struct softhca_wc wc;

	while ((w->result = softhca_get_cq_event(w->channel, &cq, NULL)) == 0) {
		softhca_poll_cq(cq, 1, &wc);
		softhca_ack_cq_events(cq, 1);
		__atomic_fetch_add(&w->taken, 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void
start_waiter(struct waiter *w, void *(*fn)(void *))
{
	*w = (struct waiter){.channel = a.channel};
	assert_int_equal(pthread_create(&w->thread, NULL, fn, w), 0);
}

static uint32_t
taken_by(struct waiter *w)
{
	return __atomic_load_n(&w[0].taken, __ATOMIC_ACQUIRE) +
	       __atomic_load_n(&w[1].taken, __ATOMIC_ACQUIRE);
}

/* The channel ends, and with it the wait of the threads that read it. */
static void
end_channel(struct waiter *w, unsigned int n)
{
	assert_int_equal(softhca_destroy_qp(a.qp), 0);
	assert_int_equal(softhca_destroy_cq(a.cq), 0);
	assert_int_equal(softhca_destroy_comp_channel(a.channel), 0);
	a.qp = NULL;
	a.cq = NULL;
	a.channel = NULL;
	for (unsigned int i = 0; i < n; i++) {
		assert_int_equal(pthread_join(w[i].thread, NULL), 0);
		assert_int_equal(w[i].result, -EIO);
	}
}

/* Two threads read a channel: each event goes to one of them. */
static void
two_threads(void **state)
{
	struct waiter w[2];
	struct line l[2];

	line_open(&l[0]);
	line_open(&l[1]);
	start_waiter(&w[0], take_all);
	start_waiter(&w[1], take_all);
	for (unsigned int i = 0; i < MANY; i++) {
		post(&l[0]);
		post(&l[1]);
		while (taken_by(w) != 2 * (i + 1))
			usleep(50);
	}
	line_close(&l[0]);
	line_close(&l[1]);
	usleep(10000);
	assert_int_equal(taken_by(w), 2 * MANY);
	end_channel(w, 2);
}

/* CQs come and go while another thread reads their events. */
static void
destroyed_while_read(void **state)
{
	struct waiter w;
	struct line l;

	start_waiter(&w, take_all);
	for (unsigned int i = 0; i < MANY / 10; i++) {
		line_open(&l);
		post(&l);
		usleep(i * 20);
		line_close(&l);
	}
	end_channel(&w, 1);
}

/* Unread events vanish with their CQ, those of other CQs stay. */
static void
freed_cq(void **state)
{
	struct line l[2];

	line_open(&l[0]);
	line_open(&l[1]);
	post(&l[0]);
	post(&l[1]);
	wait_unread(2);
	line_close(&l[0]);
	wait_unread(1);
	take(&l[1]);
	post(&l[1]);
	wait_unread(1);
	line_close(&l[1]);
	assert_int_equal(polled(a.channel->fd, 0), 0);
}

static void *
wait_async(void *arg)
{
	struct waiter *w = arg;
	struct softhca_async_event event;

	w->result = softhca_get_async_event(a.ctx, &event);
	return NULL;
}

/* Threads that wait for events of a context that is closed */
static void
closed_while_read(void **state)
{
	struct waiter w[3];

	start_waiter(&w[0], take_all);
	start_waiter(&w[1], wait_async);
	start_waiter(&w[2], wait_async);
	usleep(20000);
	assert_int_equal(softhca_close(a.ctx), 0);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(pthread_join(w[i].thread, NULL), 0);
		assert_int_equal(w[i].result, -EIO);
	}
	assert_int_equal(softhca_free(a.buf), 0);
	memset(&a, 0, sizeof(a));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(descriptors, setup, teardown),
		cmocka_unit_test_setup_teardown(edges, setup, teardown),
		cmocka_unit_test_setup_teardown(two_threads, setup, teardown),
		cmocka_unit_test_setup_teardown(destroyed_while_read, setup, teardown),
		cmocka_unit_test_setup_teardown(freed_cq, setup, teardown),
		cmocka_unit_test_setup_teardown(closed_while_read, setup, teardown),
	};

	return cmocka_run_group_tests(tests, start, shut_down);
}
