/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CMAGENT_IB_IBAGENT_H
#define CMAGENT_IB_IBAGENT_H

/*
 * The agent of an HCA for connection management: it joins the state machines (cm/ib) to QP 1, to
 * the driver, which brings the operations of clients, and to the addresses of the host. The QP is
 * that of a client of the driver like any other, which the host has.
 *
 * Threads: with `thread` a thread of its own, which sleeps on datagrams, on operations of clients,
 * and until the next deadline. Without it the thread that runs the engine calls ibagent_poll(),
 * outside of the driver and of the engine.
 *
 * Locks: one mutex around the state machines, taken under the driver's; their requests to the
 * driver and to the network wait in queues until the agent runs, without locks.
 *
 * Datagrams that come faster than the rates below are dropped and counted: those of one address by
 * the agent, those of all by the device (gsi_no_receive), because the agent stops to take them.
 */

#include <stdbool.h>
#include <stdint.h>

#include "driver.h"
#include "ibcm.h"
#include "ibping.h"

struct ibagent;

struct ibagent_config {
	struct hca_driver *drv;
	bool thread;
	bool asks;     /* the driver may have to ask for MAC addresses, which takes a while */
	uint64_t seed; /* of numbers that peers must not guess; 0: from the system */
	/*
	 * ns of a clock that does not jump; wakes the worker that checks doorbells (may be NULL);
	 * lets the engine run, NULL: it runs in its own threads.
	 */
	uint64_t (*now)(void *arg);
	void (*kick)(void *arg);
	void (*progress)(void *arg);
	/*
	 * The first member of a multicast group of this entry of the GID table has come, or the
	 * last one has gone. Called without locks, by the agent. NULL: it is not announced.
	 */
	void (*group)(void *arg, uint32_t gid_index, const uint8_t mgid[16], bool joined);
	void *arg; /* of all four */
	struct ibcm_limits limits;
	uint32_t user_share; /* as in struct ibcm_config */
	bool pings_off;	     /* pings of others are not answered */
	/* Datagrams a second, 0: the default. first: REQ and SIDR_REQ, which begin something */
	uint32_t rate;	       /* of all peers [50000] */
	uint32_t first_rate;   /* of these, first ones [25000] */
	uint32_t address_rate; /* from one address [20000] */
};

/* Counters in addition to those of ibcm: X(name, text) */
#define IBAGENT_COUNTER_LIST(X) \
	X(mads_sent, "management datagrams given to the device") \
	X(mads_returned, "of these, to the MAC address that the peer's came from") \
	X(mads_queue_full, "datagrams dropped because too many waited to be sent") \
	X(mads_no_address, "datagrams dropped because the own address has gone") \
	X(mads_no_hop, "datagrams dropped because no MAC address is known for the peer") \
	X(mads_received, "management datagrams taken from the device") \
	X(mads_bad, "receives that hold no datagram from QP 1 to an own address") \
	X(mads_excess_address, "datagrams dropped because one address sent too many") \
	X(mads_excess_first, "first messages dropped because all peers sent too many") \
	X(mads_pauses, "times that no datagram was taken for a while: all peers sent too many") \
	X(ways_asked, "destinations that clients have asked for") \
	X(ways_lost, "of these, those that found no place to wait") \
	X(ways_failed, "of these, those that cannot be reached") \
	X(groups_lost, "changes of groups that found no place to wait")

enum ibagent_counter {
#define IBAGENT_COUNTER_ENUM(name, text) IBAGENT_##name,
	IBAGENT_COUNTER_LIST(IBAGENT_COUNTER_ENUM)
#undef IBAGENT_COUNTER_ENUM
	IBAGENT_COUNTERS
};

/**
 * Make the agent; clients may use connection management from now on.
 *
 * @return
 *   0 or a negative errno with hca_driver_reason().
 */
int ibagent_create(const struct ibagent_config *config, struct ibagent **agent);
/* Peers are told, as far as there is time. NULL: nothing. */
void ibagent_destroy(struct ibagent *agent);

/* Do the work that is due; returns its amount. Returns at once if another thread is running. */
unsigned int ibagent_poll(struct ibagent *agent);

uint64_t ibagent_counter(const struct ibagent *agent, enum ibagent_counter which);

/* As ibcm_list(), with the time of `since` as ns that have passed. Any thread. */
unsigned int ibagent_list(struct ibagent *agent, uint32_t from, struct ibcm_entry *out,
			  unsigned int max);

/* Refusals that are common with new users: X(name, errno of an operation or 0, text) */
#define IBAGENT_REFUSAL_LIST(X) \
	X(port_taken, -EADDRINUSE, "addresses and ports that others have") \
	X(foreign_address, -EADDRNOTAVAIL, "addresses that are not the HCA's") \
	X(ports, -EADDRNOTAVAIL, "ports beyond the share of a user") \
	X(limit, -ENOMEM, "what is beyond a limit") \
	X(unreachable, 0, "destinations that cannot be reached")

enum ibagent_refusal_kind {
#define IBAGENT_REFUSAL_ENUM(name, number, text) IBAGENT_REFUSED_##name,
	IBAGENT_REFUSAL_LIST(IBAGENT_REFUSAL_ENUM)
#undef IBAGENT_REFUSAL_ENUM
	IBAGENT_REFUSALS
};

struct ibagent_refusal {
	uint64_t count;
	/* of the last one */
	uint64_t since; /* ns that have passed */
	uint32_t owner; /* UAR page; 0: not known */
	char text[256]; /* the request, or the reason of the refusal */
};

/* Its name; NULL: there are no more. Any thread. */
const char *ibagent_refusal(struct ibagent *agent, uint32_t i, struct ibagent_refusal *out);

/*
 * Pings of operators: as ibping_begin(), ibping_look() and ibping_end(). The way of a request has
 * been found by hca_driver_source() and hca_driver_resolve(). Any thread.
 */
int ibagent_ping_begin(struct ibagent *agent, const struct ibping_request *request);
int ibagent_ping_look(struct ibagent *agent, uint32_t number, uint32_t from, uint64_t *rtt,
		      uint32_t max, struct ibping_result *out);
int ibagent_ping_end(struct ibagent *agent, uint32_t number);

#endif
