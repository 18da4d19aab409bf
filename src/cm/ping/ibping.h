/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_PING_IBPING_H
#define CM_PING_IBPING_H

/*
 * Pings between HCAs of softhca: datagrams on QP 1 that the peer's daemon answers. A ping is a MAD
 * of a vendor's class (IBTA volume 1, section 16.6: range 2, with an OUI), 256 bytes, and so is its
 * answer. A padded one is longer, to find the largest size that the path carries; its answer has 64
 * bytes, and it is sent only to a peer that has answered a MAD: another implementation may lose a
 * receive of its QP 1 to a datagram that is longer than a MAD. A peer that answers no ping gets a
 * DREQ for a connection that does not exist, which every connection manager answers with a DREP.
 *
 * No answer is longer than its question, and there are at most IBPING_ANSWERS a second for one
 * address, so that a forged source gains nothing.
 *
 * State machines without I/O. The caller serializes all calls. Times are ns of a clock that does
 * not jump.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ibcm.h"

#define IBPING_BYTES_MAX 4096u /* of a datagram */
#define IBPING_BYTES_MIN IBCM_MAD_BYTES
#define IBPING_SESSIONS 8u /* of all operators */
#define IBPING_COUNT_MAX 1000u
#define IBPING_ANSWERS 100u /* a second for one address */
#define IBPING_INTERVAL_MIN UINT64_C(20000000)
#define IBPING_NEVER UINT64_MAX
#define IBPING_TRAFFIC_CLASS 2u /* of pings and answers: ECT(0) */

/* Counters: X(name, text) */
#define IBPING_COUNTER_LIST(X) \
	X(pings_received, "pings of peers") \
	X(pings_answered, "of these, answered") \
	X(pings_limited, "of these, not answered because there were too many") \
	X(pings_off, "of these, not answered because of [admin] ping = no") \
	X(pings_bad, "datagrams of the class of pings that are none") \
	X(pings_sent, "pings sent, and questions to connection managers") \
	X(pings_returned, "answers to these")

enum ibping_counter {
#define IBPING_COUNTER_ENUM(name, text) IBPING_##name,
	IBPING_COUNTER_LIST(IBPING_COUNTER_ENUM)
#undef IBPING_COUNTER_ENUM
	IBPING_COUNTERS
};

struct ibping_config {
	bool answers;		       /* pings of others */
	uint64_t (*random)(void *arg); /* of a CSPRNG */
	void *arg;
};

struct ibping;

/* NULL: no memory. */
struct ibping *ibping_create(const struct ibping_config *config);
void ibping_destroy(struct ibping *p);

/* ---- datagrams ---- */

/**
 * Handle a datagram of the GSI.
 *
 * @param from  own and peer as in its IP header; dmac: its sender's
 * @param traffic_class  of its IP header
 * @return
 *   False: it is none of pings, and remains to be handled.
 */
bool ibping_input(struct ibping *p, const struct ibcm_way *from, uint8_t traffic_class,
		  const uint8_t *bytes, size_t len, uint64_t now);
/**
 * Fetch a datagram that is to be sent to QP 1 of way->peer now.
 *
 * @return
 *   Its length; 0: no datagram before ibping_deadline().
 */
size_t ibping_output(struct ibping *p, struct ibcm_way *way, uint8_t bytes[IBPING_BYTES_MAX],
		     uint64_t now);
uint64_t ibping_deadline(const struct ibping *p);

/* ---- operators ---- */

struct ibping_request {
	struct ibcm_way way;
	uint32_t count;	   /* 1 to IBPING_COUNT_MAX */
	uint32_t size;	   /* bytes, IBPING_BYTES_MIN to IBPING_BYTES_MAX */
	uint32_t size_max; /* then try padded ones up to this size, of the path's MTUs; 0: none */
	uint64_t interval; /* at least IBPING_INTERVAL_MIN */
	uint64_t timeout;  /* of each */
};

/* Number of the session; -EINVAL, -EBUSY: there are as many as may be, -ENOMEM. */
int ibping_begin(struct ibping *p, const struct ibping_request *request, uint64_t now);
/* It need not have come to its end; -ENOENT. Sessions that are not queried also end. */
int ibping_end(struct ibping *p, uint32_t number);

/* Kind of a peer, by its answers. */
enum ibping_peer {
	IBPING_SILENT,
	IBPING_SOFTHCA,
	IBPING_CM, /* its connection manager alone */
};

#define IBPING_LOST UINT64_MAX
#define IBPING_OPEN (UINT64_MAX - 1)

struct ibping_result {
	bool done;
	enum ibping_peer peer;
	uint32_t sent, received;	  /* pings of the size asked for */
	uint32_t duplicates;		  /* answers that came twice */
	uint32_t ce_there, ce_back;	  /* answered pings, and answers, with a CE mark */
	uint64_t min, avg, p50, p99, max; /* round trips in ns; 0: none */
	uint32_t passed; /* bytes of the largest datagram that was answered; 0: none */
	uint32_t failed; /* of the smallest one that never was, though a smaller one was; 0: none */
	uint32_t num;	 /* round trips in rtt[] */
};

/*
 * How far it is. rtt: up to max round trips from ping `from` on, IBPING_LOST, IBPING_OPEN: not
 * answered yet. -ENOENT: there is no such session.
 */
int ibping_look(struct ibping *p, uint32_t number, uint32_t from, uint64_t *rtt, uint32_t max,
		uint64_t now, struct ibping_result *out);

uint64_t ibping_counter(const struct ibping *p, enum ibping_counter which);

#endif
