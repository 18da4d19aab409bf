/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Clients that send what makes others wait: descriptors that are slow to close, memory whose pages come
 * and go. Who comes behind them attaches at once, and the daemon ends when it is told to.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc_rig.h"
#include "raw.h"

#define LINGER_S 60
#define STOP_MS 20000 /* far below the time those sockets linger */

static struct rig rig;

static int
start(void **state)
{
	static const char *const extra[] = {"12", "6", "256", NULL};

	rig_start(&rig, extra);
	return 0;
}

/* Ends within its time, or not at all. */
static int
stop(void **state)
{
	assert_int_equal(write(rig.to, "quit\n", 5), 5);
	for (int ms = 0; ms < STOP_MS; ms += 10) {
		int status;

		if (waitpid(rig.pid, &status, WNOHANG) == rig.pid) {
			rig_forget(&rig);
			assert_true(WIFEXITED(status));
			assert_int_equal(WEXITSTATUS(status), 0);
			return 0;
		}
		usleep(10000);
	}
	rig_kill(&rig);
	fail_msg("the daemon does not end");
	return -1;
}

/* ---- sockets that linger ---- */

struct linger_pair {
	int full; /* whose close() sleeps: its peer takes nothing any more */
	int peer;
};

static void
make_linger(struct linger_pair *p)
{
	const struct linger on = {1, LINGER_S};
	struct sockaddr_in addr = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	static const uint8_t bytes[65536];
	socklen_t len = sizeof(addr);
	int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(l, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(l, 1), 0);
	assert_int_equal(getsockname(l, (struct sockaddr *)&addr, &len), 0);
	p->full = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(p->full, (struct sockaddr *)&addr, sizeof(addr)), 0);
	p->peer = accept(l, NULL, NULL);
	assert_true(p->peer >= 0);
	close(l);
	while (send(p->full, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	assert_int_equal(setsockopt(p->full, SOL_SOCKET, SO_LINGER, &on, sizeof(on)), 0);
}

/*
 * A process that says these packets, the socket with each of them from the second on, and is gone: its
 * own end does not linger, as this process would if it had the last descriptor. Returns the peer.
 */
static int
attack(const char *path, unsigned int packets, bool nested)
{
	struct linger_pair p;
	int go[2], sent;
	pid_t pid;

	make_linger(&p);
	assert_int_equal(pipe(go), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct raw r, inner = {0};
		int pair[2] = {-1, -1};

		close(go[1]);
		if (read(go[0], &sent, 1) != 0)
			_exit(1);
		if (nested) {
			if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0)
				_exit(1);
			inner.sock = pair[0];
			raw_packet(&inner, "?", 1, &p.full, 1);
		}
		raw_connect(&r, path);
		for (unsigned int i = 0; i < packets; i++)
			raw_packet(&r, "?", 1, nested ? &pair[1] : &p.full, i != 0 || packets == 1);
		_exit(0);
	}
	close(p.full);
	close(go[0]);
	close(go[1]);
	rig_join(pid);
	return p.peer;
}

static void
others_attach(void)
{
	struct raw r;

	for (int i = 0; i < 4; i++) {
		raw_open(&r, rig.path[0]);
		assert_int_equal(raw_call(&r, IPC_ALLOC_PD, NULL, 0, -1), 0);
		raw_close(&r);
	}
}

/* In a request that is refused: the client itself goes on. */
static void
linger_refused(void **state)
{
	const struct hca_ctl_segment segment = {0x10000000, 4096, 0};
	struct linger_pair p;
	struct raw r;

	raw_open(&r, rig.path[0]);
	make_linger(&p);
	/* queued behind a request that takes longer than close() here */
	kill(rig.pid, SIGSTOP);
	assert_int_equal(raw_request(&r, IPC_ATTACH, &segment, sizeof(segment), p.full), 0);
	close(p.full);
	kill(rig.pid, SIGCONT);
	assert_int_equal(raw_reply(&r, 20000), 1);
	assert_int_equal(r.head.err, -EBADF);
	assert_int_equal(raw_call(&r, IPC_ALLOC_PD, NULL, 0, -1), 0);
	others_attach();
	raw_close(&r);
	close(p.peer);
}

/* In what ends the session, in what nobody reads any more, and where nobody can look. */
static void
linger_queued(void **state)
{
	int peer[12];

	for (unsigned int i = 0; i < 12; i++)
		peer[i] = attack(rig.path[0], i % 4 + 1, i >= 8);
	others_attach();
	assert_int_equal(rig_ask(&rig, "counters", 0, "closes_lost"), 0);
	for (int i = 0; i < 12; i++)
		close(peer[i]);
}

/* Before the listener has let it in, and it does not: the user has his clients. */
static void
linger_not_admitted(void **state)
{
	struct raw r[6];
	int peer[4];

	for (int i = 0; i < 6; i++)
		raw_open(&r[i], rig.path[0]);
	for (int i = 0; i < 4; i++)
		peer[i] = attack(rig.path[0], 1, false);
	for (int i = 0; i < 6; i++)
		raw_close(&r[i]);
	assert_true(rig_wait_empty(&rig, 0, 20000) >= 0);
	others_attach();
	for (int i = 0; i < 4; i++)
		close(peer[i]);
}

/* While it ends: clients that are there, in the backlog, and half way. */
static void
linger_at_the_end(void **state)
{
	kill(rig.pid, SIGSTOP);
	for (unsigned int i = 0; i < 6; i++)
		attack(rig.path[i % 2], 3, i % 3 == 0); /* the peers stay open */
	kill(rig.pid, SIGCONT);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(linger_refused),
		cmocka_unit_test(linger_queued),
		cmocka_unit_test(linger_not_admitted),
		cmocka_unit_test(linger_at_the_end),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, start, stop);
}
