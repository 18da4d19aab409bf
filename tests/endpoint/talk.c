/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * One end of a conversation through a daemon: every operation of a service, every byte verified.
 * Two of them, at two daemons, meet at a unix socket (which network namespaces do not separate) to
 * exchange what a connection needs and to keep step.
 *
 * talk --device PATH --meet PATH --listen|--connect [--type rc|uc|ud|srq] [--gid N] [--seconds S]
 *      [--events] [--ack-timeout T]
 *
 * The last line of stdout: "rounds N port_err N port_active N gid_change N fatal N".
 */

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ipc_rig.h"

#define AT_IMM 0u
#define AT_IMM_RECV 8192u
#define AT_SWAP (PEER_BYTES - 128)
#define AT_OLD (PEER_BYTES - 192)
#define IMM_BYTES 3000u
#define MEET_SECONDS 30
#define WAIT_SECONDS 30.0

struct talk {
	const char *device, *meet, *type;
	bool listen;
	struct peer_config peer;
	double seconds;
};

static struct {
	unsigned int port_err, port_active, gid_change, fatal, other;
} seen;

static int
failed(const char *what, int err)
{
	fprintf(stderr, "talk: %s: %s (%s)\n", what, strerror(err < 0 ? -err : err),
		softhca_last_error(NULL));
	return err < 0 ? err : -EIO;
}

/* ---- meeting ---- */

static int
meet(const struct talk *t)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), err = -1, peer;
	struct timeval limit = {.tv_sec = MEET_SECONDS};
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", t->meet);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (t->listen) {
		unlink(t->meet);
		if (bind(fd, (struct sockaddr *)&a, sizeof(a)) != 0 || listen(fd, 1) != 0)
			return -errno;
		peer = accept(fd, NULL, NULL);
		err = -errno;
		close(fd);
		unlink(t->meet);
		if (peer >= 0)
			setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
		return peer >= 0 ? peer : err;
	}
	for (unsigned int i = 0; i < MEET_SECONDS * 50 && err != 0; i++) {
		err = connect(fd, (struct sockaddr *)&a, sizeof(a));
		if (err != 0)
			usleep(20000);
	}
	return err == 0 ? fd : -ETIMEDOUT;
}

/* Both go on, or both end. */
static int
agree(int sock, bool more)
{
	char mine = more ? 'm' : 'e', other;

	if (send(sock, &mine, 1, MSG_NOSIGNAL) != 1 || recv(sock, &other, 1, 0) != 1)
		return failed("the other end is gone", -EPIPE);
	return mine == 'm' && other == 'm';
}

/* ---- operations the common conversation does not have ---- */

static int
post_imm(struct peer *p, uint32_t opcode, uint32_t imm)
{
	struct softhca_sge sge = {(uintptr_t)p->buf + AT_IMM, IMM_BYTES, p->mr->lkey};
	struct softhca_send_wr wr = {
		.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = SOFTHCA_SEND_SIGNALED | SOFTHCA_SEND_SOLICITED,
		.imm_data = imm,
		.wr.rdma = {.remote_addr = p->other.addr + AT_IMM_RECV, .rkey = p->other.rkey},
	};
	struct softhca_send_wr *bad;

	return softhca_post_send(p->qp, &wr, &bad);
}

/* Sends and what is received, in either order */
static int
wait_both(struct peer *p, uint32_t imm)
{
	struct softhca_wc wc;

	for (unsigned int i = 0; i < 2; i++) {
		int err = peer_wait(p, &wc, WAIT_SECONDS);

		if (err != 0)
			return failed(softhca_wc_status_str((uint32_t)err), err);
		if ((wc.opcode & SOFTHCA_WC_RECV) != 0 &&
		    (wc.imm_data != imm || (wc.wc_flags & SOFTHCA_WC_WITH_IMM) == 0))
			return failed("immediate data", -EILSEQ);
	}
	return 0;
}

static int
with_imm(struct peer *p, int sock, uint32_t opcode, uint32_t round)
{
	int err = peer_post_recv(p, 2, AT_IMM_RECV, IMM_BYTES);

	memset(p->buf + AT_IMM_RECV, 0, IMM_BYTES);
	peer_fill(p->buf + AT_IMM, IMM_BYTES, p->me.qpn * 3 + round);
	if (err == 0)
		err = peer_meet(sock);
	if (err == 0)
		err = post_imm(p, opcode, p->me.qpn + round);
	if (err == 0)
		err = wait_both(p, p->other.qpn + round);
	if (err == 0 && !peer_verify(p->buf + AT_IMM_RECV, IMM_BYTES, p->other.qpn * 3 + round))
		err = failed("data with immediate", -EILSEQ);
	return err == 0 ? peer_meet(sock) : err;
}

static int
swap(struct peer *p, int sock, uint32_t round)
{
	uint64_t *word = (uint64_t *)(p->buf + AT_SWAP), *old = (uint64_t *)(p->buf + AT_OLD);
	struct softhca_sge sge = {(uintptr_t)old, 8, p->mr->lkey};
	struct softhca_send_wr wr = {
		.wr_id = 3,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = SOFTHCA_WR_ATOMIC_CMP_AND_SWP,
		.send_flags = SOFTHCA_SEND_SIGNALED,
		.wr.atomic = {.remote_addr = p->other.addr + AT_SWAP,
			      .rkey = p->other.rkey,
			      .compare_add = round,
			      .swap = ~(uint64_t)round},
	};
	struct softhca_send_wr *bad;
	struct softhca_wc wc;
	int err;

	__atomic_store_n(word, round, __ATOMIC_RELEASE);
	err = peer_meet(sock);
	if (err == 0)
		err = softhca_post_send(p->qp, &wr, &bad);
	if (err == 0)
		err = peer_wait(p, &wc, WAIT_SECONDS);
	if (err == 0)
		err = peer_meet(sock);
	if (err == 0 &&
	    (*old != round || __atomic_load_n(word, __ATOMIC_ACQUIRE) != ~(uint64_t)round))
		err = -EILSEQ;
	return err == 0 ? peer_meet(sock) : failed("compare and swap", err);
}

static int
more_operations(struct peer *p, int sock, uint32_t round)
{
	int err = with_imm(p, sock, SOFTHCA_WR_SEND_WITH_IMM, round);

	if (err == 0)
		err = with_imm(p, sock, SOFTHCA_WR_RDMA_WRITE_WITH_IMM, round);
	if (err == 0 && p->qp->qp_type == SOFTHCA_QPT_RC)
		err = swap(p, sock, round);
	return err;
}

/* ---- events ---- */

static void
look_for_events(struct peer *p)
{
	struct pollfd f = {.fd = p->ctx->async_fd, .events = POLLIN};
	struct softhca_async_event ev;

	while (poll(&f, 1, 0) == 1 && softhca_get_async_event(p->ctx, &ev) == 0) {
		switch (ev.event_type) {
		case SOFTHCA_EVENT_PORT_ERR:
			seen.port_err++;
			break;
		case SOFTHCA_EVENT_PORT_ACTIVE:
			seen.port_active++;
			break;
		case SOFTHCA_EVENT_GID_CHANGE:
			seen.gid_change++;
			break;
		case SOFTHCA_EVENT_DEVICE_FATAL:
			seen.fatal++;
			break;
		default:
			seen.other++;
		}
		softhca_ack_async_event(&ev);
	}
}

/* ---- running ---- */

static int
converse(const struct talk *t, struct peer *p, int sock, unsigned int *rounds)
{
	uint64_t end = rig_now_ns() + (uint64_t)(t->seconds * 1e9);
	int more = 1, err = 0;

	while (more == 1 && err == 0) {
		err = peer_talk(p, sock, 1);
		if (err == 0 && p->qp->qp_type != SOFTHCA_QPT_UD)
			err = more_operations(p, sock, *rounds);
		look_for_events(p);
		++*rounds;
		/* Nothing is under way now, and the next round's data is the same. */
		memset(p->buf, 0, PEER_BYTES);
		if (err == 0)
			more = agree(sock, rig_now_ns() < end);
	}
	return err != 0 ? err : more < 0 ? more : 0;
}

static int
run(const struct talk *t)
{
	unsigned int rounds = 0;
	struct peer p;
	int sock = meet(t), err;

	if (sock < 0)
		return failed("meet", sock);
	err = peer_open(&p, t->device, &t->peer);
	if (err == 0)
		err = peer_connect(&p, sock);
	if (err == 0)
		err = converse(t, &p, sock, &rounds);
	printf("rounds %u port_err %u port_active %u gid_change %u fatal %u\n", rounds,
	       seen.port_err, seen.port_active, seen.gid_change, seen.fatal);
	peer_close(&p);
	close(sock);
	return err;
}

static int
take_type(struct talk *t)
{
	static const struct {
		const char *name;
		uint32_t type;
		bool srq;
	} types[] = {
		{"rc", SOFTHCA_QPT_RC, false},
		{"uc", SOFTHCA_QPT_UC, false},
		{"ud", SOFTHCA_QPT_UD, false},
		{"srq", SOFTHCA_QPT_RC, true},
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (strcmp(types[i].name, t->type) != 0)
			continue;
		t->peer.type = types[i].type;
		t->peer.srq = types[i].srq;
		return 0;
	}
	return -EINVAL;
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {
		{"device", 1, NULL, 'd'},  {"meet", 1, NULL, 'm'},   {"listen", 0, NULL, 'l'},
		{"connect", 0, NULL, 'c'}, {"type", 1, NULL, 't'},   {"gid", 1, NULL, 'g'},
		{"seconds", 1, NULL, 's'}, {"events", 0, NULL, 'e'}, {"ack-timeout", 1, NULL, 'a'},
		{NULL, 0, NULL, 0},
	};
	/* Seven retries last seconds: as long as a link may be down in a test. */
	struct talk t = {.type = "rc", .seconds = 1, .peer.timeout = 17};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'd':
			t.device = optarg;
			break;
		case 'm':
			t.meet = optarg;
			break;
		case 'l':
			t.listen = true;
			break;
		case 'c':
			t.listen = false;
			break;
		case 't':
			t.type = optarg;
			break;
		case 'g':
			t.peer.gid_index = (uint32_t)strtoul(optarg, NULL, 10);
			break;
		case 's':
			t.seconds = strtod(optarg, NULL);
			break;
		case 'a':
			t.peer.timeout = (uint8_t)strtoul(optarg, NULL, 10);
			break;
		case 'e':
			t.peer.events = true;
			break;
		default:
			return 2;
		}
	}
	if (t.device == NULL || t.meet == NULL || take_type(&t) != 0) {
		fprintf(stderr, "usage: see the source\n");
		return 2;
	}
	return run(&t) == 0 ? 0 : 1;
}
