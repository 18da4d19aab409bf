/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CMAGENT_UB_UBAGENT_H
#define CMAGENT_UB_UBAGENT_H

/*
 * The agent of an HCA that sets up its channels: it carries the messages of ubcm as unreliable
 * sends to the well-known Jetty 0 of peers, turns ubcm's actions into calls of the driver, and
 * keeps the account of which client has imported which peer. A client of the driver like any
 * other, but for the right to number 0.
 *
 * Threads: with `thread` a thread of its own, which sleeps on messages, on requests of clients (the
 * driver calls hca_driver_agent) and until the next deadline; its calls of the driver hold only the
 * driver's own lock, during a command. Without it the thread that runs the engine calls
 * ubagent_poll(), outside of the driver and of the engine.
 *
 * It never waits for the MAC address of a peer: other threads do (cmagent_hop.h). They look for
 * peers that have proved that they receive at their address; the answer to any other one goes back
 * to the MAC address of its frame.
 *
 * Locks: the account's, which is a leaf (it is taken under the driver's); that of the peers' MAC
 * addresses, a leaf; and the right to run, which one caller has at a time.
 */

#include <stdbool.h>
#include <stdint.h>

#include "driver.h"
#include "ubcm.h"

struct ubagent;

struct ubagent_config {
	struct hca_driver *drv;
	bool thread;
	bool asks;     /* the driver may have to ask for MAC addresses, which can take seconds */
	uint64_t seed; /* of numbers that peers must not guess; 0: from the system */
	/* ns of a clock that does not jump; wakes the worker that checks doorbells; lets the engine
	 * run, NULL: it runs in its own threads. Argument: arg */
	uint64_t (*now)(void *arg);
	void (*kick)(void *arg);
	void (*progress)(void *arg);
	void *arg;
	/* 0: the default of the members below */
	uint32_t tps;	     /* of a link, 1..16 [4] */
	uint32_t window;     /* packets [1024] */
	uint32_t rule;	     /* HCA_TP_RULE_* + 1 [TIME] */
	uint32_t spray;	     /* log2 of source ports + 1 [no spray] */
	uint32_t reorder_us; /* [0, with spray 25] */
	uint32_t timeout_us; /* until an unacknowledged packet is sent again [by round trips] */
	uint32_t mode;	     /* of the receiver, HCA_TP_MODE_* + 1 [as the rule needs] */
	uint32_t sack;	     /* bits of the largest TPSACK, 64, 128 .. 1024 [1024] */
	uint32_t exponent;   /* of timeouts, 0..7, + 1 [1] */
	uint32_t choices;    /* enum hca_ub_switch, a set: features not offered [none] */
};

/* Counters in addition to those of ubcm and of next hops: X(name, text) */
#define UBAGENT_COUNTER_LIST(X) \
	X(sent, "messages given to the device") \
	X(not_sent, "messages dropped: no room, or no address") \
	X(received, "messages taken from the device") \
	X(bad, "receives that hold no datagram, such as what came over a channel") \
	X(returned, "messages sent back to the MAC address that theirs came from") \
	X(events, "events of TPs") \
	X(refused, "calls that the driver has refused")

enum ubagent_counter {
#define UBAGENT_COUNTER_ENUM(name, text) UBAGENT_##name,
	UBAGENT_COUNTER_LIST(UBAGENT_COUNTER_ENUM)
#undef UBAGENT_COUNTER_ENUM
	UBAGENT_COUNTERS
};

/* 0 or a negative errno with hca_driver_reason(). The device speaks UB. */
int ubagent_create(const struct ubagent_config *config, struct ubagent **agent);
/* Peers are told, as far as there is time; all channels end. No client calls any more. */
void ubagent_destroy(struct ubagent *agent);

/* Do the work that is due; returns its amount. Returns at once if another thread is running. */
unsigned int ubagent_poll(struct ubagent *agent);

uint64_t ubagent_counter(const struct ubagent *agent, enum ubagent_counter which);

#endif
