/* SPDX-License-Identifier: BSD-3-Clause */

/* Connections to a daemon that the test plays: refusals, and reasons for its silence. */

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include <softhca/softhca.h>

#include "../../../test_path.h"
#include "ipc_connect.h"
#include "ipc_msg.h"
#include "lib_error.h"

static char folder[TEST_PATH_MAX];
static char path[TEST_PATH_MAX + 8];
static int listener;

static int
setup(void **state)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	if (mkdtemp(test_path(folder, "connect")) == NULL)
		return -1;
	snprintf(path, sizeof(path), "%s/d.sock", folder);
	strcpy(addr.sun_path, path);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	return bind(listener, (struct sockaddr *)&addr, sizeof(addr)) == 0 &&
			       listen(listener, 4) == 0
		       ? 0
		       : -1;
}

static int
teardown(void **state)
{
	close(listener);
	unlink(path);
	rmdir(folder);
	return 0;
}

static void
assert_says(const char *part)
{
	if (strstr(softhca_last_error(NULL), part) == NULL)
		fail_msg("\"%s\" without \"%s\"", softhca_last_error(NULL), part);
}

static void
test_connects(void **state)
{
	int sock = -1;

	assert_int_equal(ipc_connect(path, &sock), 0);
	assert_true(sock >= 0);
	close(sock);
}

static void
test_refusals(void **state)
{
	char much[200];
	int sock = -1;

	memset(much, 'p', sizeof(much) - 1);
	much[sizeof(much) - 1] = '\0';
	assert_int_equal(ipc_connect(much, &sock), -ENAMETOOLONG);
	assert_says("too long");
	/* a socket that no process listens at, and no file */
	close(listener);
	listener = -1;
	assert_int_equal(ipc_connect(path, &sock), -ENOENT);
	assert_says("no daemon listens there");
	unlink(path);
	assert_int_equal(ipc_connect(path, &sock), -ENOENT);
	assert_says("no daemon listens there");
	assert_int_equal(sock, -1);
}

/* ---- a daemon that has ended a connection without an answer is asked in version 1 ---- */

enum manner {
	ANSWERS,
	REFUSES,
	OTHER_VERSION,
	HANGS_UP,
};

static void *
play(void *arg)
{
	enum manner manner = (enum manner)(uintptr_t)arg;
	struct {
		struct ipc_request head;
		struct hca_ctl_hello hello;
	} m;
	struct ipc_reply reply = {.op = HCA_CTL_HELLO};
	unsigned int num_fds = 0;
	int sock = accept(listener, NULL, NULL);

	if (ipc_receive(sock, &m, sizeof(m), NULL, &num_fds) == sizeof(m) && manner != HANGS_UP) {
		reply.version = manner == OTHER_VERSION ? m.head.version + 1 : m.head.version;
		reply.err = manner == REFUSES ? -EPROTONOSUPPORT : 0;
		ipc_send(sock, &reply, sizeof(reply), NULL, 0, NULL, 0, 0);
	}
	close(sock);
	return m.hello.magic == IPC_MAGIC ? arg : NULL;
}

static int
explain(enum manner manner)
{
	pthread_t thread;
	int err;

	assert_int_equal(pthread_create(&thread, NULL, play, (void *)(uintptr_t)manner), 0);
	err = ipc_explain_silence(path);
	pthread_join(thread, NULL);
	return err;
}

static void
test_silence(void **state)
{
	assert_int_equal(explain(ANSWERS), -EPROTONOSUPPORT);
	assert_says("the daemon speaks version 1");
	assert_says("upgrade the daemon");
	for (enum manner manner = REFUSES; manner <= HANGS_UP; manner++) {
		assert_int_equal(explain(manner), -EIO);
		assert_says("it may be shutting down");
	}
	close(listener); /* it has gone meanwhile */
	listener = -1;
	assert_int_equal(ipc_explain_silence(path), -EIO);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_connects, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
		cmocka_unit_test_setup_teardown(test_silence, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
