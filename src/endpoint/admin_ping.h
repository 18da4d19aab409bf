/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ADMIN_PING_H
#define ADMIN_PING_H

/*
 * Parameters of the ping command, and its answers:
 *
 *	to=GID[,scope=IFINDEX][,size=N][,mtu=yes][,count=N][,interval_ms=N][,timeout_ms=N]
 *	   -> {session, from, index, dmac, size}
 *	session=N[,from=K] -> {done, peer, sent, ..., rtt: of pings from K on, ns}
 *	session=N,end -> {}
 *
 * The wait for the peer's MAC address is the caller's, which must hold no lock.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ibping.h"

struct hca_driver;
struct ibagent;
struct rte_tel_data;

struct admin_ping {
	bool begin, end;
	uint32_t session, from; /* if begin is false */
	uint32_t scope;
	bool mtu;		       /* then try padded ones */
	struct ibping_request request; /* of its way only the peer */
};

/* 0, or -EINVAL with *why in words that have the operator's. */
int admin_ping_parse(const char *text, struct admin_ping *out, char *why, size_t size);

/* Executes the ping. */
struct admin_ping_host {
	struct hca_driver *drv;
	struct ibagent *agent;
	uint32_t size_max; /* bytes of a datagram that the port can send */
};

/* Carry it out: 0, or a negative errno with *why. */
int admin_ping_run(const struct admin_ping_host *host, struct admin_ping *ping,
		   struct rte_tel_data *d, char *why, size_t size);

#endif
