/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KERNIF_NETLINK_H
#define KERNIF_NETLINK_H

/*
 * rtnetlink sockets and messages, as far as a kernel interface needs them. A socket is used by one
 * thread at a time. Errors are 0 or a negative errno, possibly the kernel's.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

struct nl {
	int fd;
	uint32_t seq;
};

/* A request under construction. */
struct nl_request {
	_Alignas(NLMSG_ALIGNTO) uint8_t bytes[1024];
	bool full; /* an attribute did not fit */
};

/* Open a socket. groups: bits of RTMGRP_* to subscribe to; 0 for requests. */
int nl_open(struct nl *s, uint32_t groups);
void nl_close(struct nl *s);

/*
 * Begin a request. header: struct ifinfomsg, ifaddrmsg, ndmsg or rtmsg; NLM_F_REQUEST is added to
 * flags.
 */
void nl_begin(struct nl_request *r, uint16_t type, uint16_t flags, const void *header, size_t len);
void nl_put(struct nl_request *r, uint16_t attribute, const void *data, size_t len);
/* Nest the attributes until nl_nest_end() in this one; returns the argument for it. */
size_t nl_nest(struct nl_request *r, uint16_t attribute);
void nl_nest_end(struct nl_request *r, size_t at);

typedef void (*nl_fn)(void *arg, const struct nlmsghdr *h);

/*
 * Send a request and wait up to a second for the answer; fn, if not NULL, gets every message of it.
 */
int nl_talk(struct nl *s, struct nl_request *r, nl_fn fn, void *arg);
/*
 * Pass all pending messages of a subscription to fn. -ENOBUFS: messages were lost; -EAGAIN: none.
 */
int nl_drain(struct nl *s, nl_fn fn, void *arg);

/* Put attributes into table[0 .. max] by number; malformed and unknown ones are left out. */
void nl_parse(const struct rtattr *first, size_t len, const struct rtattr *table[], uint16_t max);
/* nl_parse() for a message with a header of that size; false: it is too short. */
bool nl_parse_message(const struct nlmsghdr *h, size_t header, const struct rtattr *table[],
		      uint16_t max);

static inline const void *
nl_data(const struct rtattr *a)
{
	return (const uint8_t *)a + RTA_LENGTH(0);
}

/* Bytes of the attribute's data; 0 if it is NULL. */
static inline size_t
nl_len(const struct rtattr *a)
{
	return a == NULL ? 0 : a->rta_len - RTA_LENGTH(0);
}

#endif
