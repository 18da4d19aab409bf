/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Two processes, one at each device, that exchange data every few ms and verify it: a test's
 * actions on other clients must not disturb them.
 */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc_rig.h"

#define PAUSE_US 3000u

static int
open_one(struct peer *p, const struct rig *rig, unsigned int side, int sock)
{
	/* 0.27 s, so that only the daemon, not a busy machine, can disturb them */
	const struct peer_config cfg = {.type = SOFTHCA_QPT_RC, .timeout = 19};
	int err = peer_open(p, rig->path[side], &cfg);

	return err == 0 ? peer_connect(p, sock) : err;
}

/* Side 1 continues while side 0 announces another round. */
static int
follow(const struct rig *rig, int sock)
{
	struct peer p;
	uint32_t more;
	int err = open_one(&p, rig, 1, sock);

	while (err == 0) {
		if (recv(sock, &more, sizeof(more), 0) != sizeof(more))
			err = -EPIPE;
		else if (more == 0)
			break;
		else
			err = peer_talk(&p, sock, 1);
	}
	peer_close(&p);
	return err;
}

static int
lead(const struct rig *rig, int sock, int control)
{
	unsigned int rounds = 0;
	struct peer p;
	char c;
	int err = open_one(&p, rig, 0, sock);

	if (err == 0)
		err = peer_meet(control);
	while (err == 0) {
		uint32_t more = recv(control, &c, 1, MSG_DONTWAIT) != 1;

		if (send(sock, &more, sizeof(more), MSG_NOSIGNAL) != sizeof(more))
			err = -EPIPE;
		if (err != 0 || more == 0)
			break;
		err = peer_talk(&p, sock, 1);
		rounds++;
		usleep(PAUSE_US); /* what is disturbed is found later: the CPUs are for the test */
	}
	peer_close(&p);
	printf("bystanders: %u rounds, all verified: %s\n", rounds, err == 0 ? "yes" : "NO");
	return err == 0 && rounds == 0 ? -EIO : err;
}

static int
both(int control, void *arg)
{
	const struct rig *rig = arg;
	int pair[2], status, err;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(pair[0]);
		_exit(follow(rig, pair[1]) == 0 ? 0 : 1);
	}
	close(pair[1]);
	err = lead(rig, pair[0], control);
	close(pair[0]);
	waitpid(pid, &status, 0);
	return status != 0 && err == 0 ? -EIO : err;
}

void
bystanders_start(struct bystanders *by, struct rig *rig)
{
	by->pid = rig_fork(both, rig, &by->sock);
	assert_int_equal(peer_meet(by->sock), 0);
}

void
bystanders_stop(struct bystanders *by)
{
	char c = 's';

	assert_int_equal(send(by->sock, &c, 1, MSG_NOSIGNAL), 1);
	rig_join(by->pid);
	close(by->sock);
}
