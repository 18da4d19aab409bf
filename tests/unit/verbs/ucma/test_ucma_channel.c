/* SPDX-License-Identifier: BSD-3-Clause */

/* Descriptors: poll, epoll, O_NONBLOCK, dup, fork, close; threads; ids that move. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ucma_calls.h"

static int
setup(void **state)
{
	(void)state;
	fake_begin(1);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	assert_int_equal(fake_counts().ids, 0);
	assert_int_equal(fake_counts().channels, 0);
	return 0;
}

static bool
readable(int fd)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};

	return poll(&wait, 1, 0) == 1 && wait.revents == POLLIN;
}

static int
start_event(int fd, uint64_t uid)
{
	int id = a_create(fd, A_TCP, uid);

	assert_int_equal(a_resolve(fd, id, "10.0.0.1", 1), 0);
	return id;
}

static void
test_poll(void **state)
{
	int fd = a_open(), nest = epoll_create1(0);
	struct epoll_event event = {.events = EPOLLIN};

	(void)state;
	assert_int_equal(epoll_ctl(nest, EPOLL_CTL_ADD, fd, &event), 0);
	assert_false(readable(fd));
	assert_int_equal(epoll_wait(nest, &event, 1, 0), 0);
	start_event(fd, 1);
	assert_true(readable(fd));
	assert_int_equal(epoll_wait(nest, &event, 1, 0), 1);
	a_expect(fd, SOFTHCA_CM_ADDR_RESOLVED, 1, 0);
	assert_false(readable(fd));
	assert_int_equal(epoll_wait(nest, &event, 1, 0), 0);
	a_close(fd);
	close(nest);
}

static void
test_nonblock(void **state)
{
	int fd = ucma_open(O_RDWR | O_NONBLOCK);
	struct rdma_ucm_event_resp event;

	(void)state;
	assert_int_equal(a_event(fd, &event), -EAGAIN);
	start_event(fd, 1);
	a_expect(fd, SOFTHCA_CM_ADDR_RESOLVED, 1, 0);
	a_close(fd);
	fd = a_open();
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	assert_int_equal(a_event(fd, &event), -EAGAIN);
	a_close(fd);
}

/* A duplicate is the same channel, which ends with the last of them. */
static void
test_dup(void **state)
{
	int fd = a_open(), copy, id;

	(void)state;
	id = start_event(fd, 1);
	copy = dup(fd);
	a_expect(copy, SOFTHCA_CM_ADDR_RESOLVED, 1, 0);
	assert_int_equal(a_route(copy, id), 0);
	a_close(fd);
	a_expect(copy, SOFTHCA_CM_ROUTE_RESOLVED, 1, 0);
	a_close(copy);
	assert_int_equal(fake_counts().channels, 0);
	/* the duplicate was not used before the first one was closed */
	fd = a_open();
	start_event(fd, 2);
	copy = dup(fd);
	a_close(fd);
	assert_int_equal(fake_counts().channels, 1);
	a_expect(copy, SOFTHCA_CM_ADDR_RESOLVED, 2, 0);
	a_close(copy);
	assert_int_equal(fake_counts().channels, 0);
	/* closed without our seeing it */
	fd = a_open();
	start_event(fd, 3);
	copy = dup(fd);
	a_close(fd);
	close(copy);
	assert_int_equal(fake_counts().channels, 1);
	ucma_file_sweep();
	assert_int_equal(fake_counts().channels, 0);
}

/* Others' descriptors are none of ours, also with a number that one of ours had. */
static void
test_others(void **state)
{
	int fd = a_open(), other;

	(void)state;
	start_event(fd, 1);
	close(fd); /* the program's own call */
	other = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(other, fd);
	assert_false(ucma_is_file(other));
	assert_int_equal(fake_counts().channels, 0);
	assert_int_equal(ucma_close(other, close), 0);
	other = epoll_create1(0);
	assert_false(ucma_is_file(other));
	assert_int_equal(a_create(other, A_TCP, 1), -EBADF);
	assert_int_equal(ucma_close(other, close), 0);
	assert_int_equal(ucma_close(other, close), -1);
	assert_int_equal(a_create(-1, A_TCP, 1), -EBADF);
}

/* 0: all as it should be in the child */
static int
child_main(int fd)
{
	struct rdma_ucm_event_resp event;
	int own;

	alarm(240);
	if (a_create(fd, A_TCP, 1) != -EACCES || a_event(fd, &event) != -EACCES)
		return 1;
	if (!readable(fd) || ucma_close(fd, close) != 0)
		return 2;
	own = ucma_open(O_RDWR);
	if (own < 0)
		return 3;
	if (a_resolve(own, a_create(own, A_TCP, 9), "10.0.0.1", 1) != 0 ||
	    a_event(own, &event) != 0 || event.uid != 9)
		return 4;
	return ucma_close(own, close) == 0 ? 0 : 5;
}

/* The child's calls fail, its close leaves the parent's channel; a channel of its own works. */
static void
test_fork(void **state)
{
	int fd = a_open(), status;
	pid_t child;

	(void)state;
	start_event(fd, 1);
	child = fork();
	if (child == 0)
		_exit(child_main(fd));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	a_expect(fd, SOFTHCA_CM_ADDR_RESOLVED, 1, 0);
	a_close(fd);
}

struct waiter {
	pthread_t thread;
	int fd;
	pid_t tid;
	bool ended;
	int result;
	struct rdma_ucm_event_resp event;
};

static void *
waiter_main(void *arg)
{
	struct waiter *waiter = arg;

	__atomic_store_n(&waiter->tid, gettid(), __ATOMIC_RELEASE);
	waiter->result = a_event(waiter->fd, &waiter->event);
	__atomic_store_n(&waiter->ended, true, __ATOMIC_RELEASE);
	return NULL;
}

/* S: it sleeps */
static char
thread_state(pid_t tid)
{
	char path[64], state = '?';
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	file = fopen(path, "re");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
	fclose(file);
	return state;
}

/* Return when the thread waits for an event: that wait is the only sleep of the thread. */
static void
start_waiter(struct waiter *waiter, int fd)
{
	*waiter = (struct waiter){.fd = fd};
	assert_int_equal(pthread_create(&waiter->thread, NULL, waiter_main, waiter), 0);
	while (__atomic_load_n(&waiter->tid, __ATOMIC_ACQUIRE) == 0 ||
	       thread_state(waiter->tid) != 'S')
		sched_yield();
}

/* The HCA comes into the channel while a thread waits in it. */
static void
test_wait(void **state)
{
	int fd = a_open();
	struct waiter waiter;

	(void)state;
	start_waiter(&waiter, fd);
	start_event(fd, 5);
	pthread_join(waiter.thread, NULL);
	assert_int_equal(waiter.result, 0);
	assert_int_equal(waiter.event.uid, 5);
	a_close(fd);
}

/* As with the kernel's device: the waiting thread goes on, and the ids live until it ends. */
static void
test_close_while_waiting(void **state)
{
	int fd = a_open(), id, second;
	struct waiter waiter;

	(void)state;
	id = start_event(fd, 1);
	a_expect(fd, SOFTHCA_CM_ADDR_RESOLVED, 1, 0);
	second = a_open();
	start_waiter(&waiter, fd);
	a_close(fd);
	assert_int_equal(fake_counts().ids, 1);
	assert_int_equal(a_route(second, id), -EINVAL);
	fake_die(0);
	pthread_join(waiter.thread, NULL);
	assert_int_equal(waiter.result, 0);
	assert_int_equal(waiter.event.event, SOFTHCA_CM_DEVICE_REMOVAL);
	ucma_file_sweep();
	assert_int_equal(fake_counts().ids, 0);
	a_close(second);
}

static void
on_signal(int number)
{
	(void)number;
}

static void
start_signals(int flags)
{
	const struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};

	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
}

static void
test_signals(void **state)
{
	int fd = a_open();
	struct waiter waiter;

	(void)state;
	start_signals(0);
	start_waiter(&waiter, fd);
	while (!__atomic_load_n(&waiter.ended, __ATOMIC_ACQUIRE)) {
		assert_int_equal(pthread_kill(waiter.thread, SIGUSR1), 0);
		sched_yield();
	}
	pthread_join(waiter.thread, NULL);
	assert_int_equal(waiter.result, -EINTR);
	start_signals(SA_RESTART);
	start_waiter(&waiter, fd);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(pthread_kill(waiter.thread, SIGUSR1), 0);
		sched_yield();
	}
	start_event(fd, 1);
	pthread_join(waiter.thread, NULL);
	assert_int_equal(waiter.result, 0);
	a_close(fd);
}

/* With its events; numbers of events that were reported stay. */
static void
test_migrate(void **state)
{
	int a = a_open(), b = a_open(), id;

	(void)state;
	id = start_event(a, 1);
	a_expect(a, SOFTHCA_CM_ADDR_RESOLVED, 1, 0);
	assert_int_equal(a_route(a, id), 0);
	assert_int_equal(a_migrate(b, a, 99), -ENOENT);
	assert_int_equal(a_migrate(b, 9999, id), -ENOENT);
	assert_int_equal(a_migrate(b, STDERR_FILENO, id), -EINVAL);
	assert_int_equal(a_migrate(b, b, id), -EINVAL);
	assert_int_equal(a_migrate(b, a, id), 1);
	assert_false(readable(a));
	assert_true(readable(b));
	assert_int_equal(a_route(a, id), -EINVAL);
	a_expect(b, SOFTHCA_CM_ROUTE_RESOLVED, 1, 0);
	a_close(a);
	assert_int_equal(a_migrate(b, b, id), 2);
	assert_int_equal(a_destroy(b, id), 2);
	a_close(b);
}

enum {
	THREADS = 8,
	TURNS = 200
};

static void *
thread_main(void *arg)
{
	int fd = *(int *)arg, mine = a_open(), client, accepted;

	for (int i = 0; i < TURNS; i++) {
		a_pair(mine, mine, &client, &accepted);
		assert_true(a_migrate(fd, mine, client) >= 0);
		assert_true(a_destroy(fd, client) >= 0);
		assert_true(a_destroy(mine, accepted) >= 0);
	}
	a_close(mine);
	return NULL;
}

static void
test_threads(void **state)
{
	pthread_t threads[THREADS];
	int fd = a_open();

	(void)state;
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, thread_main, &fd);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(fake_counts().ids, 0);
	a_close(fd);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_poll),
		TEST(test_nonblock),
		TEST(test_dup),
		TEST(test_others),
		TEST(test_fork),
		TEST(test_wait),
		TEST(test_close_while_waiting),
		TEST(test_signals),
		TEST(test_migrate),
		TEST(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
