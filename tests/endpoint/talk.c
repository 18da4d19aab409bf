/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * One end of a conversation through a daemon: every operation of a service, every byte verified,
 * memory windows of RC and UC among them; srq also uses XRC. Two of them, at two daemons, meet at a
 * unix socket (which network namespaces do not separate) to exchange connection data and to keep
 * step.
 *
 * talk --device PATH --meet PATH --listen|--connect [--type rc|uc|ud|srq] [--gid N] [--seconds S]
 *      [--events] [--ack-timeout T]
 *
 * It ends after a round, when the time is up or either end gets SIGTERM.
 *
 * The last lines of stdout: "verified SEND N WRITE N ..." and so on for every operation this end
 * has verified, those over XRC as XRC_SEND and so on; "lost N", messages of unreliable services
 * sent again; "rounds N port_err N port_active N gid_change N fatal N".
 */

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "talk.h"

#define MEET_SECONDS RIG_TIMEOUT_S
#define ROUNDS 4u /* at least: every kind of window with every operation, even on a busy machine */

struct talk {
	const char *device, *meet, *type;
	bool listen;
	bool port_returns; /* the end waits until the port is active again */
	struct peer_config peer;
	double seconds;
};

static struct {
	unsigned int port_err, port_active, gid_change, fatal, other;
} seen;

int
talk_failed(const char *what, int err)
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

int
talk_swap(int sock, const void *mine, void *others, size_t bytes)
{
	if (send(sock, mine, bytes, MSG_NOSIGNAL) != (ssize_t)bytes ||
	    recv(sock, others, bytes, 0) != (ssize_t)bytes)
		return talk_failed("the other end is gone", -EPIPE);
	return 0;
}

int
talk_agree(int sock, bool yes)
{
	char mine = yes ? 'y' : 'n', other;
	int err = talk_swap(sock, &mine, &other, 1);

	return err != 0 ? err : yes && other == 'y';
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

/* On a busy machine the event comes late. */
static void
await_port(struct peer *p)
{
	struct pollfd f = {.fd = p->ctx->async_fd, .events = POLLIN};

	while (seen.port_active == 0 && poll(&f, 1, RIG_TIMEOUT_MS) == 1)
		look_for_events(p);
}

/* ---- running ---- */

/* Objects of one end for the conversation. */
struct end {
	struct peer p;
	struct talk_flow f;
	struct talk_windows windows;
	struct talk_xrc xrc;
	struct talk_tally tally, xrc_tally;
	unsigned int rounds;
};

static bool
has_windows(const struct end *e)
{
	return e->p.qp->qp_type != SOFTHCA_QPT_UD;
}

static int
open_end(const struct talk *t, struct end *e, int sock)
{
	int err = peer_open(&e->p, t->device, &t->peer);

	if (err == 0)
		err = peer_connect(&e->p, sock);
	if (err != 0)
		return err;
	e->f = (struct talk_flow){
		.p = &e->p,
		.sock = sock,
		.tx = e->p.qp,
		.rx = e->p.qp,
		.srq = e->p.srq,
		.mine = e->p.me.qpn,
		.others = e->p.other.qpn,
		.tally = &e->tally,
	};
	if (has_windows(e))
		err = talk_windows_open(&e->windows, &e->f, t->listen);
	if (err == 0 && t->peer.srq)
		err = talk_xrc_open(&e->xrc, &e->p, sock, &e->xrc_tally);
	return err;
}

/* SIGTERM is blocked: it waits here. */
static bool
told_to_end(void)
{
	sigset_t waiting;

	return sigpending(&waiting) == 0 && sigismember(&waiting, SIGTERM) == 1;
}

static int
converse(const struct talk *t, struct end *e, int sock)
{
	uint64_t end = rig_now_ns() + (uint64_t)(t->seconds * 1e9);
	int more = 1, err = 0;

	while (more == 1 && err == 0) {
		err = talk_ops(&e->f);
		if (err == 0 && has_windows(e))
			err = talk_windows_round(&e->windows, e->rounds);
		if (err == 0 && t->peer.srq)
			err = talk_ops(&e->xrc.f);
		look_for_events(&e->p);
		if (err == 0)
			more = talk_agree(sock, (rig_now_ns() < end || e->rounds + 1 < ROUNDS) &&
							!told_to_end());
		e->rounds += err == 0;
	}
	return err != 0 ? err : more < 0 ? more : 0;
}

static void
report(const struct end *e)
{
#define X(name) #name,
	static const char *const names[] = { TALK_OPS(X) };
#undef X
	printf("verified");
	for (unsigned int i = 0; i < TALK_COUNT; i++)
		if (e->tally.verified[i] != 0)
			printf(" %s %u", names[i], e->tally.verified[i]);
	for (unsigned int i = 0; i < TALK_COUNT; i++)
		if (e->xrc_tally.verified[i] != 0)
			printf(" XRC_%s %u", names[i], e->xrc_tally.verified[i]);
	printf("\nlost %u\n", e->tally.lost);
	printf("rounds %u port_err %u port_active %u gid_change %u fatal %u\n", e->rounds,
	       seen.port_err, seen.port_active, seen.gid_change, seen.fatal);
}

static int
run(const struct talk *t)
{
	static struct end e;
	sigset_t term;
	int sock, err;

	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
	sock = meet(t);
	if (sock < 0)
		return talk_failed("meet", sock);
	err = open_end(t, &e, sock);
	if (err == 0)
		err = converse(t, &e, sock);
	if (err == 0 && t->port_returns)
		await_port(&e.p);
	report(&e);
	talk_xrc_close(&e.xrc);
	talk_windows_close(&e.windows);
	peer_close(&e.p);
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
		{"device", 1, NULL, 'd'},
		{"meet", 1, NULL, 'm'},
		{"listen", 0, NULL, 'l'},
		{"connect", 0, NULL, 'c'},
		{"type", 1, NULL, 't'},
		{"gid", 1, NULL, 'g'},
		{"seconds", 1, NULL, 's'},
		{"events", 0, NULL, 'e'},
		{"ack-timeout", 1, NULL, 'a'},
		{"port-returns", 0, NULL, 'p'},
		{NULL, 0, NULL, 0},
	};
	/* Seven retries last seconds: as long as a link may be down in a test. */
	struct talk t = {.type = "rc", .seconds = 1, .peer = {.timeout = 17, .sges = 4}};
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
		case 'p':
			t.port_returns = true;
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
