/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Threads that wait for completion events, while CQs are destroyed, signals come and the context is
 * closed; with manual progress they run the engine meanwhile. A hanging thread ends the process.
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib_rig.h"

#define ROUNDS 300

const struct rig_wanted rig_wanted = {0}; /* no QP */

static struct softhca_comp_channel *channel;
static struct softhca_cq *cq;

static void
make_cq(void)
{
	struct softhca_cq_init_attr attr = {.cqe = 4, .channel = channel};

	cq = softhca_create_cq(ctx, &attr);
	assert_non_null(cq);
}

static int
setup_channel(void)
{
	channel = softhca_create_comp_channel(ctx);
	assert_non_null(channel);
	make_cq();
	return 0;
}

static int
setup(void **state)
{
	return rig_setup(state) == 0 ? setup_channel() : -1;
}

static int
setup_manual(void **state)
{
	return rig_setup_manual(state) == 0 ? setup_channel() : -1;
}

static int
teardown(void **state)
{
	if (ctx != NULL) {
		assert_int_equal(softhca_destroy_cq(cq), 0);
		assert_int_equal(softhca_destroy_comp_channel(channel), 0);
	}
	return rig_teardown(state);
}

/* As the driver does */
static void
raise_event(void)
{
	const struct hca_ctl_event event = {
		.type = HCA_EVENT_COMP,
		.object = cq->handle,
		.tag = ((struct lib_cq *)cq)->tag,
	};

	assert_int_equal(write(fake->channel_write, &event, sizeof(event)), sizeof(event));
}

struct waiter {
	pthread_t thread;
	int result;
	bool done;
};

static void *
wait_main(void *arg)
{
	struct waiter *w = arg;
	struct softhca_cq *got;

	w->result = softhca_get_cq_event(channel, &got, NULL);
	__atomic_store_n(&w->done, true, __ATOMIC_RELEASE);
	return NULL;
}

static void
start(struct waiter *w, void *(*fn)(void *))
{
	*w = (struct waiter){0};
	assert_int_equal(pthread_create(&w->thread, NULL, fn, w), 0);
}

static bool
is_done(struct waiter *w)
{
	return __atomic_load_n(&w->done, __ATOMIC_ACQUIRE);
}

/* An event that was not read does not become one of the next CQ of the same number. */
static void
freed_cq(void **state)
{
	uint32_t number = cq->handle;
	struct softhca_cq *got;

	raise_event();
	assert_int_equal(softhca_destroy_cq(cq), 0);
	fake->next_cqn = number;
	make_cq();
	assert_int_equal(cq->handle, number);
	assert_int_equal(fake->cq.tag, ((struct lib_cq *)cq)->tag);
	fcntl(channel->fd, F_SETFL, O_NONBLOCK);
	assert_int_equal(softhca_get_cq_event(channel, &got, NULL), -EAGAIN);
	raise_event();
	assert_int_equal(softhca_get_cq_event(channel, &got, NULL), 0);
	assert_ptr_equal(got, cq);
	softhca_ack_cq_events(cq, 1);
}

static void *
destroy_main(void *arg)
{
	struct waiter *w = arg;

	w->result = softhca_destroy_cq(cq);
	__atomic_store_n(&w->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* destroy_cq waits until every event that was got is acknowledged, singly or together. */
static void
acknowledged(void **state)
{
	struct softhca_cq *got;
	struct waiter w;

	for (unsigned int i = 0; i < 3; i++) {
		raise_event();
		assert_int_equal(softhca_get_cq_event(channel, &got, NULL), 0);
	}
	softhca_ack_cq_events(cq, 1);
	start(&w, destroy_main);
	usleep(50000);
	assert_false(is_done(&w));
	softhca_ack_cq_events(cq, 2);
	pthread_join(w.thread, NULL);
	assert_int_equal(w.result, 0);
	make_cq();
}

static void
on_signal(int number)
{
	(void)number;
}

static void
handle(int flags)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};

	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
}

/* As read(2) does: a handler ends the wait, unless it was installed with SA_RESTART. */
static void
signals(void **state)
{
	struct waiter w;

	handle(0);
	start(&w, wait_main);
	while (!is_done(&w)) {
		pthread_kill(w.thread, SIGUSR1);
		usleep(1000);
	}
	pthread_join(w.thread, NULL);
	assert_int_equal(w.result, -EINTR);

	handle(SA_RESTART);
	start(&w, wait_main);
	for (unsigned int i = 0; i < 50; i++) {
		pthread_kill(w.thread, SIGUSR1);
		usleep(1000);
	}
	assert_false(is_done(&w));
	raise_event();
	pthread_join(w.thread, NULL);
	assert_int_equal(w.result, 0);
	softhca_ack_cq_events(cq, 1);
}

/* ---- manual progress ---- */

static unsigned int inside, taken, given;

/*
 * Both threads meet here, so that both see the same event; the second event comes only
 * when one of them runs the engine after the first one was taken.
 */
static void
one_at_a_time(struct fake_ctl *f)
{
	unsigned int n = __atomic_load_n(&taken, __ATOMIC_SEQ_CST);

	(void)f;
	__atomic_fetch_add(&inside, 1, __ATOMIC_SEQ_CST);
	for (unsigned int i = 0; i < 1000 && __atomic_load_n(&inside, __ATOMIC_SEQ_CST) < 2; i++)
		lib_cpu_relax();
	if (__atomic_compare_exchange_n(&given, &n, n + 1, false, __ATOMIC_SEQ_CST,
					__ATOMIC_SEQ_CST))
		raise_event();
	__atomic_fetch_sub(&inside, 1, __ATOMIC_SEQ_CST);
}

static void *
take_one(void *arg)
{
	struct waiter *w = arg;
	struct softhca_cq *got;

	w->result = softhca_get_cq_event(channel, &got, NULL);
	if (w->result == 0)
		softhca_ack_cq_events(got, 1);
	__atomic_fetch_add(&taken, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

/* The one that gets no event goes on running the engine. */
static void
two_run_the_engine(void **state)
{
	struct waiter w[2];

	fake->on_progress = one_at_a_time;
	for (unsigned int round = 0; round < ROUNDS; round++) {
		taken = given = 0;
		start(&w[0], take_one);
		start(&w[1], take_one);
		for (unsigned int i = 0; i < 2; i++) {
			pthread_join(w[i].thread, NULL);
			assert_int_equal(w[i].result, 0);
		}
	}
	fake->on_progress = NULL;
}

static unsigned int held, released;

/* The thread that waits stays here until it is let go. */
static void
hold(struct fake_ctl *f)
{
	(void)f;
	__atomic_store_n(&held, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&released, __ATOMIC_SEQ_CST) == 0)
		usleep(100);
}

static void
start_held(struct waiter *w)
{
	held = released = 0;
	fake->on_progress = hold;
	start(w, wait_main);
	while (__atomic_load_n(&held, __ATOMIC_SEQ_CST) == 0)
		usleep(100);
}

static void *
destroy_channel_main(void *arg)
{
	struct waiter *w = arg;

	w->result = softhca_destroy_comp_channel(channel);
	__atomic_store_n(&w->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* A channel is freed, and its descriptor closed, when the thread that waits has left. */
static void
channel_is_destroyed(void **state)
{
	struct waiter reader, destroyer;

	assert_int_equal(softhca_destroy_cq(cq), 0);
	start_held(&reader);
	start(&destroyer, destroy_channel_main);
	usleep(50000);
	assert_false(is_done(&destroyer));
	__atomic_store_n(&released, 1, __ATOMIC_SEQ_CST);
	pthread_join(reader.thread, NULL);
	pthread_join(destroyer.thread, NULL);
	assert_int_equal(reader.result, -EIO);
	assert_int_equal(destroyer.result, 0);
	fake->on_progress = NULL;
	channel = softhca_create_comp_channel(ctx);
	assert_non_null(channel);
	make_cq();
}

static void *
close_main(void *arg)
{
	struct waiter *w = arg;

	w->result = softhca_close(ctx);
	return NULL;
}

/* A thread that runs the engine has left it when the control channel is closed. */
static void
context_is_closed(void **state)
{
	struct waiter reader, closer;

	start_held(&reader);
	start(&closer, close_main);
	usleep(50000);
	assert_false(__atomic_load_n(&fake->closed, __ATOMIC_SEQ_CST));
	__atomic_store_n(&released, 1, __ATOMIC_SEQ_CST);
	pthread_join(reader.thread, NULL);
	pthread_join(closer.thread, NULL);
	assert_int_equal(reader.result, -EIO);
	assert_int_equal(closer.result, 0);
	assert_true(fake->closed);
	ctx = NULL;
	close(fake->async_write);
	close(fake->channel_write);
	free(fake);
}

static uint32_t
waiting(void)
{
	struct lib_context *c = lib_ctx(ctx);
	uint32_t n;

	pthread_mutex_lock(&c->lock);
	n = c->readers;
	pthread_mutex_unlock(&c->lock);
	return n;
}

/*
 * A daemon that does not run leaves the channel open: the context is closed all the same, and the
 * thread that waits frees it later.
 */
static void
context_is_left(void **state)
{
	int fd = ctx->async_fd;
	struct waiter reader;

	start(&reader, wait_main);
	while (waiting() == 0)
		usleep(100);
	assert_int_equal(softhca_close(ctx), 0);
	ctx = NULL;
	assert_false(is_done(&reader));
	assert_true(fcntl(fd, F_GETFD) >= 0);
	close(fake->channel_write);
	pthread_join(reader.thread, NULL);
	assert_int_equal(reader.result, -EIO);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	close(fake->async_write);
	free(fake);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(freed_cq, setup, teardown),
		cmocka_unit_test_setup_teardown(acknowledged, setup, teardown),
		cmocka_unit_test_setup_teardown(signals, setup, teardown),
		cmocka_unit_test_setup_teardown(two_run_the_engine, setup_manual, teardown),
		cmocka_unit_test_setup_teardown(channel_is_destroyed, setup_manual, teardown),
		cmocka_unit_test_setup_teardown(context_is_closed, setup_manual, teardown),
		cmocka_unit_test_setup_teardown(context_is_left, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
