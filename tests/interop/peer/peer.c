/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The end inside the virtual machine, with libibverbs: receives tests one by one from the control
 * channel, executes its part and reports.
 *
 * peer DEVICE CHANNEL          e.g. peer rxe0 /dev/vport1p1
 */

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ep.h"
#include "ep_line.h"

#define NET_DEVICE "eth0"
#define NET_VLAN_DEVICE "eth0.77"
#define QUIET_MS 120000 /* limit of silence: the host is gone */

static struct ibv_context *
open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;

	for (struct ibv_device **d = list; d != NULL && *d != NULL && ctx == NULL; d++)
		if (strcmp(ibv_get_device_name(*d), name) == 0)
			ctx = ibv_open_device(*d);
	if (list != NULL)
		ibv_free_device_list(list);
	return ctx;
}

/* Blocks; the host may take any time between tests. */
static int
wait_line(struct ep_line *l, char word[PERF_EXCHANGE_WORD], struct perf_exchange *x)
{
	struct pollfd p = {.fd = l->fd, .events = POLLIN};
	int rc;

	while ((rc = ep_line_poll(l, word, x)) == 0)
		if (poll(&p, 1, QUIET_MS) == 0)
			return -ETIMEDOUT;
	return rc < 0 ? rc : 0;
}

/* Open a QP and answer. Negative only if the channel is broken. */
static int
add_qp(struct ibv_context *ctx, struct ep_set *s, struct ep_line *l, const struct perf_exchange *x)
{
	struct ep *ep = &s->ep[s->n];
	struct perf_exchange test = *x, answer;
	int err;

	if (s->n == EP_SET_MAX)
		return -E2BIG;
	s->n++;
	test.requester = !x->requester;
	test.psn = (x->psn * 5 + 0x3579) & 0xffffff;
	err = ep_open(ep, ctx, &test);
	if (err == 0)
		err = ep_connect(ep, x);
	if (err == 0)
		err = ep_start(ep);
	answer = ep->test;
	snprintf(answer.text, sizeof(answer.text), "%s", ep->reason);
	if (err != 0)
		ep_close_all(s);
	return ep_line_send(l, err == 0 ? "ready" : "error", &answer);
}

/* A failed test has been reported; only a broken channel ends the peer. */
static int
play(struct ep_set *s, struct ep_line *l)
{
	struct perf_exchange x;
	int err = s->n != 0 ? ep_play(s, l, &x) : -EPROTO;

	ep_close_all(s);
	return err == -EBADMSG ? 0 : err;
}

/*
 * Attaching with verbs is not enough: the IP layer drops groups that no socket has joined on the
 * interface of the frame, and rxe configures only the filters of its own interface.
 */
static int
join_groups(const char *device)
{
	struct perf_exchange t = {.ip = 6};
	struct ipv6_mreq m6 = {.ipv6mr_interface = if_nametoindex(device)};
	struct ip_mreqn m4 = {.imr_ifindex = (int)if_nametoindex(device)};
	int s4 = socket(AF_INET, SOCK_DGRAM, 0), s6 = socket(AF_INET6, SOCK_DGRAM, 0);
	union ibv_gid gid;

	ep_group(&t, &gid);
	memcpy(&m6.ipv6mr_multiaddr, gid.raw, 16);
	t.ip = 4;
	ep_group(&t, &gid);
	memcpy(&m4.imr_multiaddr, gid.raw + 12, 4);
	if (setsockopt(s4, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m4, sizeof(m4)) != 0 ||
	    setsockopt(s6, IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, &m6, sizeof(m6)) != 0)
		return -errno;
	return 0; /* the sockets stay open */
}

static int
serve(struct ibv_context *ctx, struct ep_line *l)
{
	static struct ep_set set;
	char word[PERF_EXCHANGE_WORD] = "";
	struct perf_exchange x = {.version = PERF_EXCHANGE_VERSION};
	int err = ep_line_send(l, "hello", &x);

	while (err == 0) {
		err = wait_line(l, word, &x);
		if (err != 0 || strcmp(word, "bye") == 0)
			break;
		if (strcmp(word, "case") == 0)
			err = add_qp(ctx, &set, l, &x);
		else if (strcmp(word, "go") == 0)
			err = play(&set, l);
		else if (strcmp(word, "stop") == 0)
			ep_close_all(&set);
		else
			err = -EPROTO;
	}
	ep_close_all(&set);
	return err;
}

int
main(int argc, char **argv)
{
	struct ep_line l = {.fd = -1};
	struct ibv_context *ctx;
	int err;

	if (argc != 3)
		return 2;
	ctx = open_device(argv[1]);
	l.fd = open(argv[2], O_RDWR | O_NONBLOCK);
	if (ctx == NULL || l.fd < 0) {
		printf("peer: cannot open %s: %s\n", ctx == NULL ? argv[1] : argv[2],
		       strerror(errno));
		return 1;
	}
	err = join_groups(NET_DEVICE);
	if (err == 0)
		err = join_groups(NET_VLAN_DEVICE);
	if (err == 0)
		err = serve(ctx, &l);
	printf("peer: ends (%d)\n", err);
	ibv_close_device(ctx);
	return err != 0;
}
