/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KERNIF_NETLINK_H
#define KERNIF_NETLINK_H

/*
 * rtnetlink sockets and messages, as much as a kernel interface needs. One thread per socket.
 * Errors: 0 or negative errno, the kernel's included.
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

/* A request being built. */
struct nl_request {
	_Alignas(NLMSG_ALIGNTO) uint8_t bytes[1024];
	bool full; /* an attribute did not fit */
};

/* groups: bits of RTMGRP_*; 0 for questions. */
int nl_open(struct nl *s, uint32_t groups);
void nl_close(struct nl *s);

/* header: struct ifinfomsg, ifaddrmsg, ndmsg or rtmsg; flags besides NLM_F_REQUEST. */
void nl_begin(struct nl_request *r, uint16_t type, uint16_t flags, const void *header, size_t len);
void nl_put(struct nl_request *r, uint16_t attribute, const void *data, size_t len);
/* Attributes until nl_nest_end() belong to this one; returns its place. */
size_t nl_nest(struct nl_request *r, uint16_t attribute);
void nl_nest_end(struct nl_request *r, size_t at);

typedef void (*nl_fn)(void *arg, const struct nlmsghdr *h);

/*
 * Sends it and waits for the end of the answer (at most a second); fn sees every message, or NULL.
 */
int nl_talk(struct nl *s, struct nl_request *r, nl_fn fn, void *arg);
/* What has come in on a socket with groups; -ENOBUFS: messages were lost; -EAGAIN: nothing. */
int nl_drain(struct nl *s, nl_fn fn, void *arg);

/* Attributes by number into table[0 .. max]; those that are malformed or unknown are left out. */
void nl_parse(const struct rtattr *first, size_t len, const struct rtattr *table[], uint16_t max);
/* The same of a message with a header of that size; false: it is too short. */
bool nl_parse_message(const struct nlmsghdr *h, size_t header, const struct rtattr *table[],
		      uint16_t max);

static inline const void *
nl_data(const struct rtattr *a)
{
	return (const uint8_t *)a + RTA_LENGTH(0);
}

/* Bytes of the attribute's data; 0: there is none. */
static inline size_t
nl_len(const struct rtattr *a)
{
	return a == NULL ? 0 : a->rta_len - RTA_LENGTH(0);
}

#endif
