/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_CM_IB_CM_RIG_H
#define TESTS_UNIT_CM_IB_CM_RIG_H

/*
 * Two connection managers, a network between them with the faults of a test, and clients. Time and
 * random numbers are simulated. Each end has an IPv4 and an IPv6 address; the one of end 0 is
 * 10.0.0.1 and fd00::1. A MAD to an address of no end is logged only: a test plays the peer.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "ib_impl.h"

#define RIG_ENDS 2u
#define RIG_MESSAGES 4096u
#define RIG_LOG 512u
#define RIG_MS UINT64_C(1000000)
#define RIG_SECOND (1000 * RIG_MS)
#define RIG_DELAY RIG_MS
#define RIG_IP4 0u
#define RIG_IP6 1u
#define RIG_GIDS 2u
#define RIG_CHANNELS 64u

struct rig_message {
	uint64_t at, order;
	struct ibcm_way way; /* of the sender */
	uint8_t mad[IBCM_MAD_BYTES];
};

struct rig_sent {
	uint32_t end;
	uint64_t at;
	struct ibcm_way way;
	struct ib_mad mad;
};

struct rig_wait {
	uint64_t ticket;
	struct ibcm_wish wish;
};

struct rig {
	uint64_t now, random, order;
	struct ibcm *cm[RIG_ENDS];
	struct ibcm_config cfg[RIG_ENDS];
	uint8_t gid[RIG_ENDS][RIG_GIDS][16];
	uint32_t signals[RIG_ENDS][RIG_CHANNELS]; /* by channel */
	struct rig_message message[RIG_MESSAGES]; /* on their way */
	uint32_t nmessages;
	struct rig_sent log[RIG_LOG];
	uint32_t sent; /* logged */
	/* how a MAD fares; NULL: it arrives after RIG_DELAY */
	void (*fate)(struct rig *r, const struct rig_message *m);
	uint32_t loss, copies; /* per cent, of rig_bad() */
	uint64_t latest;       /* delay */
	struct rig_wait wait[RIG_ENDS][64];
	uint32_t nwait[RIG_ENDS];
	bool mute;		 /* resolutions are not answered */
	uint8_t moved[RIG_ENDS]; /* byte 4 of the MAC address that MADs of the end come from */
	uint32_t joined[RIG_ENDS], left[RIG_ENDS];
	const char *why;
};

/* With defaults where *limits is NULL. */
void rig_begin(struct rig *r, uint64_t seed, const struct ibcm_limits *limits);
/* Both are destroyed; none of their objects may be left. */
void rig_end(struct rig *r);
uint32_t rig_random(struct rig *r, uint32_t below);

/* MADs that arrive, resolutions, timers: all until then. */
void rig_run(struct rig *r, uint64_t for_ns);
/* Do the next work if it is due before limit; false: no work. */
bool rig_step(struct rig *r, uint64_t limit);
void rig_put(struct rig *r, const struct rig_message *m, uint64_t delay);
/* A fate: loss, copies, disorder. */
void rig_bad(struct rig *r, const struct rig_message *m);
/* A fate: nothing arrives. */
void rig_lost(struct rig *r, const struct rig_message *m);
/* A MAD of a peer that the test plays comes to the end. */
void rig_inject(struct rig *r, uint32_t end, const uint8_t peer[16], const struct ib_mad *mad);
/* Messages to peers that the test plays: MADs logged of a type, and the last one. */
uint32_t rig_count(const struct rig *r, uint32_t end, enum ib_mad_type type);
const struct ib_mad *rig_last(const struct rig *r, uint32_t end, enum ib_mad_type type);

/* Clients: owner is their number, user the same. */
int rig_call(struct rig *r, uint32_t end, uint32_t owner, enum hca_ctl_op op, const void *request,
	     void *answer);
uint32_t rig_create(struct rig *r, uint32_t end, uint32_t owner, uint32_t channel, uint32_t space);
int rig_destroy(struct rig *r, uint32_t end, uint32_t owner, uint32_t id);
/* gid NULL: the wildcard of the family */
int rig_bind(struct rig *r, uint32_t end, uint32_t owner, uint32_t id, uint32_t family,
	     const uint8_t *gid, uint16_t port, uint32_t flags);
int rig_listen(struct rig *r, uint32_t end, uint32_t owner, uint32_t id, uint32_t backlog);
/* A listener at the wildcard of IPv6, which takes both families */
uint32_t rig_listener(struct rig *r, uint32_t end, uint32_t owner, uint32_t channel, uint32_t space,
		      uint16_t port);
int rig_resolve(struct rig *r, uint32_t end, uint32_t owner, uint32_t id, const uint8_t dst[16],
		uint16_t port);
/* An id that is routed to the address; its two events are fetched. */
uint32_t rig_routed(struct rig *r, uint32_t end, uint32_t owner, uint32_t channel, uint32_t space,
		    const uint8_t dst[16], uint16_t port);
struct hca_ctl_cm_param rig_param(uint32_t id, uint32_t qpn, const char *text);
int rig_connect(struct rig *r, uint32_t end, uint32_t owner, uint32_t id, uint32_t qpn,
		const char *text);
int rig_accept(struct rig *r, uint32_t end, uint32_t owner, uint32_t id, uint32_t qpn,
	       const char *text);
int rig_establish(struct rig *r, uint32_t end, uint32_t owner, uint32_t id);
int rig_reject(struct rig *r, uint32_t end, uint32_t owner, uint32_t id, const char *text);
int rig_disconnect(struct rig *r, uint32_t end, uint32_t owner, uint32_t id);
uint32_t rig_state(struct rig *r, uint32_t end, uint32_t owner, uint32_t id);
/* The next event of the channel; false: none waits. */
bool rig_event(struct rig *r, uint32_t end, uint32_t owner, uint32_t channel,
	       struct hca_ctl_cm_event *event);
/* It is of this type, and waits. */
struct hca_ctl_cm_event rig_expect(struct rig *r, uint32_t end, uint32_t owner, uint32_t channel,
				   uint32_t type);
uint64_t rig_counter(const struct rig *r, uint32_t end, const char *name);
/* Received are all that were dropped and handled. */
void rig_sums(const struct rig *r, uint32_t end);

#endif
