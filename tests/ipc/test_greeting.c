/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The greeting: versions, daemons that answer in another way or not at all, full daemons, and the
 * client's errors for each.
 */

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../test_path.h"
#include "ipc_rig.h"
#include "raw.h"

RIG_OF_ALL(rig)

/* ---- versions ---- */

/* The daemon answers a greeting of any version, in that version, and says which side to upgrade. */
static void
other_versions(void **state)
{
	static const uint16_t versions[] = {0, HCA_CTL_VERSION - 1, HCA_CTL_VERSION + 1, 0xffff};
	int64_t before = rig_ask(&rig, "counters", 0, "refused_version");

	for (unsigned int i = 0; i < 4; i++) {
		struct {
			struct ipc_request head;
			struct hca_ctl_hello hello;
			uint8_t more[24]; /* of a later version */
		} m = {{versions[i], HCA_CTL_HELLO, sizeof(m) - sizeof(m.head), 7},
		       {.magic = IPC_MAGIC}};
		char number[16];
		struct raw r;

		raw_connect(&r, rig.path[0]);
		assert_int_equal(raw_packet(&r, &m, sizeof(m), NULL, 0), 0);
		assert_int_equal(raw_reply(&r, RIG_TIMEOUT_MS), 1);
		assert_int_equal(r.head.version, versions[i]);
		assert_int_equal(r.head.op, HCA_CTL_HELLO);
		assert_int_equal(r.head.seq, 7);
		assert_int_equal(r.head.len, 0);
		assert_int_equal(r.head.err, -EPROTONOSUPPORT);
		assert_int_equal(r.head.speaks, HCA_CTL_VERSION);
		snprintf(number, sizeof(number), "version %u:", versions[i]);
		assert_non_null(strstr(r.head.reason, number));
		assert_non_null(strstr(r.head.reason, versions[i] < HCA_CTL_VERSION
							      ? "upgrade libsofthca"
							      : "upgrade the daemon"));
		assert_int_equal(raw_reply(&r, RIG_TIMEOUT_MS), 0);
		raw_close(&r);
	}
	assert_int_equal(rig_ask(&rig, "counters", 0, "refused_version") - before, 4);
}

/* Other implementations of a daemon: their reaction to a greeting. */
enum manner {
	MUTE,	/* closes, unless the version is 1 */
	WORDS,	/* answers that the version is too old */
	FULL,	/* closes; answers other versions that they are too old */
	CLOSES, /* always closes */
	SPILLS, /* answers older versions with a descriptor and more bytes than any reply has */
	DEAF,	/* reads nothing */
};

static void
greet_back(int s, enum manner manner)
{
	struct {
		struct ipc_request head;
		struct hca_ctl_hello hello;
	} m;
	struct ipc_reply reply = {.op = HCA_CTL_HELLO, .err = -EPROTONOSUPPORT, .speaks = 99};

	if (manner == DEAF) {
		struct pollfd end = {.fd = s, .events = POLLRDHUP};

		poll(&end, 1, -1);
		return;
	}
	if (recv(s, &m, sizeof(m), 0) != sizeof(m) || manner == CLOSES ||
	    (manner == MUTE && m.head.version != 1) ||
	    (manner != WORDS && m.head.version == HCA_CTL_VERSION))
		return;
	if (manner == MUTE)
		reply.err = 0;
	if (manner == SPILLS) {
		static uint8_t much[sizeof(struct ipc_reply) + IPC_BODY_MAX + 1];

		raw_packet(&(struct raw){.sock = s}, much, sizeof(much), &s, 1);
		return;
	}
	reply.version = m.head.version;
	reply.seq = m.head.seq;
	strcpy(reply.reason, "version 99 here: upgrade libsofthca");
	send(s, &reply, sizeof(reply), MSG_NOSIGNAL);
}

/* Start a child that listens at path as that user, until it is killed. */
static pid_t
fake_daemon(struct sockaddr_un *addr, enum manner manner, uid_t uid)
{
	char folder[TEST_PATH_MAX];
	pid_t pid;
	int l;

	assert_non_null(mkdtemp(test_path(folder, "ipc-fake")));
	assert_int_equal(chmod(folder, 0777), 0);
	*addr = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(addr->sun_path, sizeof(addr->sun_path), "%s/x.sock", folder);
	l = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(l, (struct sockaddr *)addr, sizeof(*addr)), 0);
	assert_int_equal(chmod(addr->sun_path, 0777), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (setuid(uid) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || listen(l, 4) != 0)
			_exit(1);
		for (;;) {
			int s = accept(l, NULL, NULL);

			greet_back(s, manner);
			close(s);
		}
	}
	close(l);
	return pid;
}

static void
end_fake(struct sockaddr_un *addr, pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	unlink(addr->sun_path);
	*strrchr(addr->sun_path, '/') = '\0';
	rmdir(addr->sun_path);
}

/* Retry until a process listens. */
static void
open_fails(const char *path, int error, const char *words)
{
	struct softhca_context *ctx;
	int err;

	for (int i = 0; (err = softhca_open(path, &ctx)) == -ENOENT && i < RIG_TIMEOUT_MS; i++)
		usleep(1000);
	if (err == 0)
		softhca_close(ctx);
	if (err != error || strstr(softhca_last_error(NULL), words) == NULL)
		fail_msg("%d: %s", err, softhca_last_error(NULL));
}

static void
other_daemons(void **state)
{
	static const struct {
		enum manner manner;
		int error;
		const char *words;
	} cases[] = {
		{WORDS, -EPROTONOSUPPORT, "version 99 here: upgrade libsofthca"},
		{MUTE, -EPROTONOSUPPORT, "upgrade the daemon"},
		{FULL, -EIO, "ended the connection at the greeting"},
		{CLOSES, -EIO, "ended the connection at the greeting"},
		{SPILLS, -EIO, "ended the connection at the greeting"},
		{DEAF, -ETIMEDOUT, "has not read the greeting"},
	};

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sockaddr_un addr;
		pid_t pid = fake_daemon(&addr, cases[i].manner, getuid());
		int before = rig_open_files(getpid());

		open_fails(addr.sun_path, cases[i].error, cases[i].words);
		assert_int_equal(rig_open_files(getpid()), before);
		end_fake(&addr, pid);
	}
}

/*
 * A full daemon says so, with its limit, and refusals connect once. The clients come at once, so
 * that some greetings are sent before the refusal and some after it.
 */
static void *
refused(void *arg)
{
	const char *const *how = arg; /* path, words */

	for (unsigned int i = 0; i < 20; i++) {
		struct softhca_context *ctx;
		int err = softhca_open(how[0], &ctx);

		if ((err != -EMFILE && err != -ENOMEM) ||
		    strstr(softhca_last_error(NULL), how[1]) == NULL) {
			printf("%d: %s\n", err, softhca_last_error(NULL));
			return arg;
		}
	}
	return NULL;
}

/* A session counts until its thread ends, a moment after its objects. */
static void
opens_again(const char *path)
{
	struct softhca_context *ctx;
	int err;

	for (int i = 0; (err = softhca_open(path, &ctx)) == -ENOMEM && i < RIG_TIMEOUT_MS; i++)
		usleep(1000);
	assert_int_equal(err, 0);
	assert_int_equal(softhca_close(ctx), 0);
}

static void
full_daemon(const char *const *limits, const char *counter, const char *words)
{
	struct softhca_context *ctx[3];
	struct rig full;
	const char *how[2];
	pthread_t thread[4];
	void *failed;

	rig_start(&full, limits);
	how[0] = full.path[0];
	how[1] = words;
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(softhca_open(full.path[0], &ctx[i]), 0);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, refused, how), 0);
	for (unsigned int i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(thread[i], &failed), 0);
		assert_null(failed);
	}
	assert_int_equal(rig_ask(&full, "counters", 0, counter), 80);
	assert_int_equal(rig_ask(&full, "counters", 0, "clients_accepted"), 3);
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(softhca_close(ctx[i]), 0);
	assert_true(rig_wait_empty(&full, 0) >= 0);
	opens_again(full.path[0]);
	rig_stop(&full);
}

static void
full_daemons(void **state)
{
	static const char *const user[] = {"20", "3", NULL}, *const all[] = {"3", NULL};

	full_daemon(user, "refused_clients_per_uid",
		    "3 clients of the daemon, the limit of a user");
	full_daemon(all, "refused_clients_max", "3 clients, its limit ([limits] clients)");
}

/* A daemon that is stopped is not waited for, nor one whose queue of connections is full. */
static void
stopped_daemon(void **state)
{
	int sock[200], n = 0, err = 0;
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct rig other;

	rig_start(&other, NULL);
	rig_suspend(&other);
	open_fails(other.path[0], -ETIMEDOUT, "is stopped: resume it");
	strcpy(addr.sun_path, other.path[0]);
	while (err == 0 && n < 200) {
		sock[n] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		assert_true(sock[n] >= 0);
		err = connect(sock[n++], (struct sockaddr *)&addr, sizeof(addr));
	}
	assert_int_equal(errno, EAGAIN);
	open_fails(other.path[0], -ETIMEDOUT, "accepted no connection");
	while (n > 0)
		close(sock[--n]);
	assert_int_equal(kill(other.pid, SIGCONT), 0);
	rig_stop(&other);
}

/* The client checks the owner of the socket before it sends anything. */
static void
strangers_daemon(void **state)
{
	const uid_t stranger = 65533;
	struct sockaddr_un addr;
	pid_t pid;

	if (getuid() != 0) {
		printf("strangers_daemon: needs root, to be another user\n");
		skip();
	}
	pid = fake_daemon(&addr, WORDS, stranger);
	open_fails(addr.sun_path, -EACCES, "run by user 65533");
	setenv("SOFTHCA_DAEMON_USER", "65533", 1);
	open_fails(addr.sun_path, -EPROTONOSUPPORT, "version 99 here");
	setenv("SOFTHCA_DAEMON_USER", "no such user", 1);
	open_fails(addr.sun_path, -EACCES, "SOFTHCA_DAEMON_USER");
	unsetenv("SOFTHCA_DAEMON_USER");
	end_fake(&addr, pid);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_versions),   cmocka_unit_test(other_daemons),
		cmocka_unit_test(strangers_daemon), cmocka_unit_test(full_daemons),
		cmocka_unit_test(stopped_daemon),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, start, shut_down);
}
