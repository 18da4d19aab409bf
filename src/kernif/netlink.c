/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "netlink.h"

#define RECEIVE_BYTES 32768u
#define SOCKET_BYTES (1 << 20)

int
nl_open(struct nl *s, uint32_t groups)
{
	const struct sockaddr_nl me = {.nl_family = AF_NETLINK, .nl_groups = groups};
	const struct timeval second = {.tv_sec = 1};
	const int bytes = SOCKET_BYTES;
	int err;

	s->seq = 0;
	s->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | (groups != 0 ? SOCK_NONBLOCK : 0),
		       NETLINK_ROUTE);
	if (s->fd < 0)
		return -errno;
	(void)setsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second));
	(void)setsockopt(s->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	if (bind(s->fd, (const struct sockaddr *)&me, sizeof(me)) == 0)
		return 0;
	err = -errno;
	nl_close(s);
	return err;
}

void
nl_close(struct nl *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

static struct nlmsghdr *
header_of(struct nl_request *r)
{
	return (struct nlmsghdr *)(void *)r->bytes;
}

void
nl_begin(struct nl_request *r, uint16_t type, uint16_t flags, const void *header, size_t len)
{
	struct nlmsghdr *h = header_of(r);

	memset(r, 0, sizeof(*r));
	h->nlmsg_type = type;
	h->nlmsg_flags = NLM_F_REQUEST | flags;
	h->nlmsg_len = NLMSG_LENGTH((uint32_t)len);
	memcpy(NLMSG_DATA(h), header, len);
}

void
nl_put(struct nl_request *r, uint16_t attribute, const void *data, size_t len)
{
	struct nlmsghdr *h = header_of(r);
	size_t at = NLMSG_ALIGN(h->nlmsg_len);
	struct rtattr a = {.rta_type = attribute, .rta_len = (uint16_t)RTA_LENGTH(len)};

	if (at + RTA_SPACE(len) > sizeof(r->bytes)) {
		r->full = true;
		return;
	}
	memcpy(r->bytes + at, &a, sizeof(a));
	if (len != 0)
		memcpy(r->bytes + at + RTA_LENGTH(0), data, len);
	h->nlmsg_len = (uint32_t)(at + RTA_SPACE(len));
}

size_t
nl_nest(struct nl_request *r, uint16_t attribute)
{
	size_t at = NLMSG_ALIGN(header_of(r)->nlmsg_len);

	nl_put(r, attribute, NULL, 0);
	return at;
}

void
nl_nest_end(struct nl_request *r, size_t at)
{
	struct rtattr *a = (struct rtattr *)(void *)(r->bytes + at);

	if (!r->full)
		a->rta_len = (uint16_t)(header_of(r)->nlmsg_len - at);
}

/*
 * Receive a datagram, ignoring those not from the kernel. Returns its length or a negative errno.
 */
static ssize_t
receive(struct nl *s, void *bytes)
{
	struct sockaddr_nl from;
	socklen_t len;
	ssize_t n;

	do {
		len = sizeof(from);
		n = recvfrom(s->fd, bytes, RECEIVE_BYTES, 0, (struct sockaddr *)&from, &len);
	} while ((n < 0 && errno == EINTR) || (n >= 0 && from.nl_pid != 0));
	return n < 0 ? -errno : n;
}

/* Handle one datagram of an answer; *done: it was the last. Returns the kernel's error code. */
static int
walk_answer(struct nl *s, const void *bytes, ssize_t n, nl_fn fn, void *arg, bool *done)
{
	const struct nlmsghdr *h = bytes;

	for (uint32_t left = (uint32_t)n; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
		if (h->nlmsg_seq != s->seq)
			continue; /* answer to an earlier request that timed out */
		if (h->nlmsg_type == NLMSG_ERROR && h->nlmsg_len >= NLMSG_LENGTH(sizeof(int))) {
			*done = true;
			return ((const struct nlmsgerr *)NLMSG_DATA(h))->error;
		}
		if (h->nlmsg_type == NLMSG_DONE) {
			*done = true;
			return 0;
		}
		if (fn != NULL)
			fn(arg, h);
	}
	return 0;
}

int
nl_talk(struct nl *s, struct nl_request *r, nl_fn fn, void *arg)
{
	_Alignas(NLMSG_ALIGNTO) uint8_t bytes[RECEIVE_BYTES];
	struct nlmsghdr *h = header_of(r);
	bool done = false;
	int err = 0;

	if (r->full)
		return -EMSGSIZE;
	h->nlmsg_seq = ++s->seq;
	if ((h->nlmsg_flags & NLM_F_DUMP) != NLM_F_DUMP)
		h->nlmsg_flags |= NLM_F_ACK;
	if (send(s->fd, h, h->nlmsg_len, 0) < 0)
		return -errno;
	while (!done) {
		ssize_t n = receive(s, bytes);

		if (n < 0)
			return (int)n;
		err = walk_answer(s, bytes, n, fn, arg, &done);
	}
	return err;
}

int
nl_drain(struct nl *s, nl_fn fn, void *arg)
{
	_Alignas(NLMSG_ALIGNTO) uint8_t bytes[RECEIVE_BYTES];

	for (;;) {
		const struct nlmsghdr *h = (const void *)bytes;
		ssize_t n = receive(s, bytes);

		if (n < 0)
			return (int)n;
		for (uint32_t left = (uint32_t)n; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left))
			fn(arg, h);
	}
}

void
nl_parse(const struct rtattr *first, size_t len, const struct rtattr *table[], uint16_t max)
{
	const struct rtattr *a = first;

	memset(table, 0, sizeof(*table) * (max + 1u));
	while (len >= sizeof(*a) && a->rta_len >= sizeof(*a) && a->rta_len <= len) {
		uint16_t type = a->rta_type & NLA_TYPE_MASK;
		size_t step = RTA_ALIGN(a->rta_len);

		if (type <= max)
			table[type] = a;
		if (step >= len)
			break;
		len -= step;
		a = (const struct rtattr *)(const void *)((const uint8_t *)a + step);
	}
}

bool
nl_parse_message(const struct nlmsghdr *h, size_t header, const struct rtattr *table[],
		 uint16_t max)
{
	size_t at = NLMSG_SPACE(header);

	if (h->nlmsg_len < NLMSG_LENGTH(header))
		return false;
	nl_parse((const struct rtattr *)(const void *)((const uint8_t *)h + at),
		 h->nlmsg_len > at ? h->nlmsg_len - at : 0, table, max);
	return true;
}
