/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * One end of connections, which test_cm_kills.py kills, or which survives: it says when it learns
 * that a connection has ended. Both ends send messages all the time.
 *
 *	cm-kill DEVICE serve ADDRESS PORT		takes every request; port 0: says which
 *	cm-kill DEVICE call ADDRESS PORT LINKS HOW	LINKS connections at once
 *
 * HOW: churn: each is disconnected after some time and begins again; hold: it stays; once: it
 * ends after some messages. A connection that ends otherwise does not begin again. When the
 * standard input ends, `call` disconnects, and ends after its last connection. Lines begin with
 * the time in nanoseconds (CLOCK_MONOTONIC).
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kill_api.h"

#define LINKS 256u
#define TURN_MS 2
#define MESSAGES 3u

static struct kill_link links[LINKS];
static struct sockaddr_storage address;
static uint32_t nlinks; /* of the client; 0: the server */
static bool churn, hold, finishing, dead;

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t
now_ms(void)
{
	return now_ns() / 1000000;
}

__attribute__((format(printf, 1, 2))) static void
say(const char *format, ...)
{
	va_list args;

	printf("%llu ", (unsigned long long)now_ns());
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

static void
must(int err, const char *what)
{
	if (err == 0)
		return;
	say("failed %s: %s", what, strerror(-err));
	exit(1);
}

/* Where the first connection is: moments to be killed at. */
static void
say_at(const struct kill_link *l, const char *where)
{
	if (l == links)
		say("at %s", where);
}

static void
say_alive(void)
{
	uint32_t alive = 0;

	for (uint32_t i = 0; i < LINKS; i++)
		alive += links[i].state != KILL_OVER;
	say("alive %u", alive);
}

/* ---- the end of a connection ---- */

static void link_begin(struct kill_link *l);

static void
link_over(struct kill_link *l)
{
	kill_destroy(l);
	l->state = KILL_OVER;
	say_alive();
}

/* Once for each connection: how it learns of an end that it has not asked for. */
static void
link_learns(struct kill_link *l, const char *how, int status)
{
	if (!l->blamed)
		say("learned %s %d", how, status);
	l->blamed = true;
}

static void
link_disconnect(struct kill_link *l)
{
	say_at(l, "disconnect");
	l->state = KILL_ENDING;
	if (kill_disconnect(l) != 0)
		link_over(l);
}

/* The result of a call of the connection: it is over if that has failed. */
static void
link_check(struct kill_link *l, int err, const char *call)
{
	if (err == 0)
		return;
	link_learns(l, call, err);
	link_over(l);
}

static void
link_ended(struct kill_link *l, const struct kill_event *e)
{
	bool asked = l->state == KILL_ENDING && e->type == KILL_DISCONNECTED && !l->blamed;

	if (!asked)
		link_learns(l, e->name, e->status);
	if (l->state == KILL_UP && e->type == KILL_DISCONNECTED)
		(void)kill_disconnect(l);
	link_over(l);
	if (asked && churn && !finishing)
		link_begin(l);
}

/* ---- the way to a connection ---- */

static void
link_begin(struct kill_link *l)
{
	memset(l, 0, sizeof(*l));
	l->state = KILL_CONNECTING;
	say_at(l, "resolve");
	link_check(l, kill_resolve(l, (const struct sockaddr *)&address), "resolve");
}

static void
link_up(struct kill_link *l)
{
	say_at(l, "data");
	l->state = KILL_UP;
	l->want = MESSAGES;
	l->until_ms = hold && !finishing ? UINT64_MAX : now_ms() + 10 + (uint64_t)rand() % 150;
}

static void
request(void *id)
{
	for (uint32_t i = 0; i < LINKS; i++) {
		struct kill_link *l = &links[i];

		if (l->state != KILL_OVER)
			continue;
		memset(l, 0, sizeof(*l));
		l->id = id;
		l->state = KILL_CONNECTING;
		say("at request");
		say_alive();
		link_check(l, kill_accept(l), "accept");
		say("at accept");
		return;
	}
	must(-ENOBUFS, "request");
}

static void
handle(const struct kill_event *e)
{
	struct kill_link *l = e->link;

	switch (e->type) {
	case KILL_CONNECT_REQUEST:
		request(e->id);
		break;
	case KILL_ADDR_RESOLVED:
		link_check(l, kill_route(l), "route");
		break;
	case KILL_ROUTE_RESOLVED:
		say_at(l, "connect");
		link_check(l, kill_connect(l), "connect");
		break;
	case KILL_CONNECT_RESPONSE:
		say_at(l, "response");
		link_up(l);
		link_check(l, kill_establish(l), "establish");
		break;
	case KILL_ESTABLISHED:
		link_up(l);
		break;
	case KILL_ADDR_CHANGE:
	case KILL_TIMEWAIT_EXIT:
		break;
	default:
		if (l != NULL) {
			link_ended(l, e);
			break;
		}
		say("learned %s %d of the listener", e->name, e->status);
		dead = true;
	}
}

static void
take_events(void)
{
	struct kill_event e;
	int err;

	while ((err = kill_next(&e)) == 0)
		handle(&e);
	if (err == -EAGAIN || err == -EINTR)
		return;
	say("learned get_event %d of the device", err);
	dead = true;
}

/* ---- data ---- */

static void
take_completions(void)
{
	struct kill_link *l;
	const char *status;

	while (kill_done(&l, &status)) {
		if (status == NULL) {
			if (l->sending)
				l->sent++;
			l->sending = false;
		} else if (l->state == KILL_UP) {
			link_learns(l, "completion", 0);
			link_disconnect(l);
		}
	}
}

static void
link_turn(struct kill_link *l)
{
	if (l->state != KILL_UP)
		return;
	if (nlinks != 0 && l->sent >= l->want && now_ms() >= l->until_ms) {
		link_disconnect(l);
		return;
	}
	if (l->sending)
		return;
	l->sending = true;
	link_check(l, kill_send(l), "send");
}

static void
finish(void)
{
	finishing = true;
	for (uint32_t i = 0; i < nlinks; i++) {
		links[i].until_ms = 0;
		/* an established connection carries data to its end */
		if (hold)
			links[i].want = links[i].sent + MESSAGES;
	}
}

static bool
all_over(void)
{
	for (uint32_t i = 0; i < nlinks; i++)
		if (links[i].state != KILL_OVER)
			return false;
	return nlinks != 0;
}

static void
run(int fd)
{
	struct pollfd fds[] = {{.fd = fd, .events = POLLIN}, {.fd = 0, .events = POLLIN}};
	char byte;

	while (!dead && !all_over()) {
		(void)poll(fds, finishing ? 1 : 2, TURN_MS);
		if (!finishing && fds[1].revents != 0 && read(0, &byte, 1) <= 0) {
			if (nlinks == 0)
				return;
			finish();
		}
		take_events();
		take_completions();
		for (uint32_t i = 0; i < LINKS; i++)
			link_turn(&links[i]);
	}
}

static void
parse_address(const char *text, const char *port)
{
	struct sockaddr_in6 *six = (void *)&address;
	struct sockaddr_in *four = (void *)&address;

	four->sin_port = htons((uint16_t)atoi(port));
	four->sin_family = AF_INET;
	if (inet_pton(AF_INET, text, &four->sin_addr) == 1)
		return;
	six->sin6_family = AF_INET6;
	must(inet_pton(AF_INET6, text, &six->sin6_addr) == 1 ? 0 : -EINVAL, text);
}

int
main(int argc, char **argv)
{
	bool call = argc == 7 && strcmp(argv[2], "call") == 0;
	uint16_t port;
	int fd;

	if (!call && !(argc == 5 && strcmp(argv[2], "serve") == 0))
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	srand((unsigned int)now_ns());
	say("at start");
	parse_address(argv[3], argv[4]);
	must(kill_open(argv[1], &fd), "open");
	must(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0 ? 0 : -errno, "O_NONBLOCK");
	hold = call && strcmp(argv[6], "hold") == 0;
	if (call) {
		nlinks = (uint32_t)atoi(argv[5]) < LINKS ? (uint32_t)atoi(argv[5]) : LINKS;
		churn = strcmp(argv[6], "churn") == 0;
		for (uint32_t i = 0; i < nlinks; i++)
			link_begin(&links[i]);
	} else {
		must(kill_listen((const struct sockaddr *)&address, &port), "listen");
		say("listening %u", port);
	}
	run(fd);
	for (uint32_t i = 0; i < LINKS; i++)
		if (links[i].state != KILL_OVER)
			link_over(&links[i]);
	say("ends");
	return 0;
}
