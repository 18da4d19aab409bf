/* SPDX-License-Identifier: BSD-3-Clause */

/* Messages of the control channel: parts, descriptors, wrong sizes, and the end of a connection. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "ipc_msg.h"

static int ends[2];
static uint8_t got[64];
static int fds[IPC_FDS_PER_MESSAGE];
static unsigned int num_fds;

static int
setup(void **state)
{
	num_fds = 4;
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
}

static int
teardown(void **state)
{
	ipc_close_fds(ends, 2);
	return 0;
}

static unsigned int
open_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned int n = 0;

	assert_non_null(folder);
	while (readdir(folder) != NULL)
		n++;
	closedir(folder);
	return n;
}

static ssize_t
receive(size_t room)
{
	memset(got, 0xee, sizeof(got));
	return ipc_receive(ends[1], got, room, fds, &num_fds);
}

/* Two parts, or one, are one message; descriptors are copies that exec() closes. */
static void
test_parts(void **state)
{
	int pipes[2], flags;
	char byte = 'x';

	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(ipc_send(ends[0], "head", 4, "body", 4, pipes, 2, 0), 0);
	assert_int_equal(ipc_send(ends[0], "alone", 5, NULL, 0, NULL, 0, MSG_DONTWAIT), 0);
	assert_int_equal(receive(sizeof(got)), 8);
	assert_memory_equal(got, "headbody", 8);
	assert_int_equal(num_fds, 2);
	flags = fcntl(fds[0], F_GETFD);
	assert_int_equal(flags & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(write(fds[1], &byte, 1), 1);
	assert_int_equal(read(pipes[0], &byte, 1), 1);
	ipc_close_fds(fds, num_fds);
	assert_int_equal(fds[0], -1);
	ipc_close_fds(fds, num_fds); /* they are closed */
	num_fds = 4;
	assert_int_equal(receive(sizeof(got)), 5);
	assert_int_equal(num_fds, 0);
	ipc_close_fds(pipes, 2);
}

static void
test_too_long(void **state)
{
	int many[HCA_CTL_FDS_MAX + 1];

	for (unsigned int i = 0; i < HCA_CTL_FDS_MAX + 1; i++)
		many[i] = ends[0];
	assert_int_equal(ipc_send(ends[0], "x", 1, NULL, 0, many, HCA_CTL_FDS_MAX + 1, 0), -EINVAL);
	assert_int_equal(ipc_send(ends[0], "12345678", 8, NULL, 0, NULL, 0, 0), 0);
	assert_int_equal(receive(7), -EBADMSG);
	assert_int_equal(num_fds, 0);
	/* the next one is not affected */
	assert_int_equal(ipc_send(ends[0], "1234567", 7, NULL, 0, NULL, 0, 0), 0);
	assert_int_equal(receive(7), 7);
}

/* Descriptors without room are closed, those with room belong to the caller. */
static void
test_more_descriptors(void **state)
{
	const int mine[3] = {ends[0], ends[0], ends[1]};
	unsigned int before = open_descriptors();

	num_fds = 2;
	assert_int_equal(ipc_send(ends[0], "x", 1, NULL, 0, mine, 3, 0), 0);
	assert_int_equal(receive(sizeof(got)), -EBADMSG);
	assert_int_equal(num_fds, 2);
	assert_int_equal(open_descriptors(), before + 2);
	ipc_close_fds(fds, num_fds);
	/* without a body, which is also the end of a stream */
	num_fds = 2;
	assert_int_equal(ipc_send(ends[0], "", 0, NULL, 0, mine, 1, 0), 0);
	assert_int_equal(receive(sizeof(got)), 0);
	assert_int_equal(num_fds, 1);
	ipc_close_fds(fds, num_fds);
	assert_int_equal(open_descriptors(), before);
}

/* A process that may open no more: it is said apart from a wrong message. */
static void
test_no_descriptors_left(void **state)
{
	struct rlimit old, few;
	const int mine[2] = {ends[0], ends[1]};
	int highest = dup(ends[0]);

	assert_true(highest >= 0);
	close(highest);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = old;
	few.rlim_cur = (rlim_t)highest + 1;
	assert_int_equal(ipc_send(ends[0], "x", 1, NULL, 0, mine, 2, 0), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(receive(sizeof(got)), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(got[0], 'x');
	assert_int_equal(num_fds, 1);
	ipc_close_fds(fds, num_fds);
}

/* What was sent before the end is read; then both directions say that it has come. */
static void
test_end(void **state)
{
	assert_int_equal(ipc_send(ends[0], "last", 4, NULL, 0, NULL, 0, 0), 0);
	assert_int_equal(ipc_send(ends[1], "never read", 10, NULL, 0, NULL, 0, 0), 0);
	close(ends[0]); /* with an unread message: a reset */
	ends[0] = -1;
	assert_int_equal(receive(sizeof(got)), 4);
	num_fds = 4;
	assert_int_equal(receive(sizeof(got)), 0);
	assert_int_equal(ipc_send(ends[1], "x", 1, NULL, 0, NULL, 0, 0), -EPIPE);
}

static void
test_full(void **state)
{
	uint8_t large[1024] = {0};
	int rc;

	do {
		rc = ipc_send(ends[0], large, sizeof(large), NULL, 0, NULL, 0, MSG_DONTWAIT);
	} while (rc == 0);
	assert_int_equal(rc, -EAGAIN);
	assert_int_equal(ipc_receive(-1, got, sizeof(got), fds, &num_fds), -EBADF);
}

/* Bodies of other releases: shorter ones get zeros, longer ones have to end with them. */
static void
test_fit(void **state)
{
	uint8_t body[8] = {1, 2, 3, 4, 0xff, 0xff, 0xff, 0xff};
	static const uint8_t filled[8] = {1, 2, 3, 4};

	assert_true(ipc_fit(body, 4, 8));
	assert_memory_equal(body, filled, 8);
	assert_true(ipc_fit(body, 8, 4));
	assert_true(ipc_fit(body, 4, 4));
	assert_false(ipc_fit(body, 4, 3));
	body[7] = 1;
	assert_false(ipc_fit(body, 8, 4));
	assert_true(ipc_fit(body, 8, 8));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_parts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_long, setup, teardown),
		cmocka_unit_test_setup_teardown(test_more_descriptors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_descriptors_left, setup, teardown),
		cmocka_unit_test_setup_teardown(test_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full, setup, teardown),
		cmocka_unit_test(test_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
