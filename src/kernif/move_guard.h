/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KERNIF_MOVE_GUARD_H
#define KERNIF_MOVE_GUARD_H

/*
 * Does a next hop really have another MAC address? Anybody on the segment can say so, and live QPs
 * would follow. Frames of RoCE that go on coming from the old MAC address speak against it: a claim
 * is believed when they have been silent for a moment, refused when they have not for longer (the
 * last ones of a hop that really moves come after the claim), and a hop that has moved comes back
 * with the first one afterwards. Frames never speak for a claim.
 *
 * No clock, no lock: the time comes as an argument, the caller serializes. Whoever watches the
 * frames is told by watch() what to look for.
 */

#include <stdbool.h>
#include <stdint.h>

#include "arp_nd.h"

#define MOVE_GUARD_CLAIMS 32u		  /* at a time; more of them are believed at once */
#define MOVE_GUARD_HOLD_NS 200000000ull	  /* of silence: it has moved */
#define MOVE_GUARD_REFUSE_NS 700000000ull /* still no such silence: it has not */
#define MOVE_GUARD_WATCH_NS 30000000000ull

struct move_guard_config {
	/* A handle, or negative: nobody can watch. gid NULL: frames of whatever IP address. */
	int (*watch)(void *arg, const uint8_t mac[6], const uint8_t *gid, uint16_t vlan_id);
	/* Since it was asked last */
	bool (*seen)(void *arg, int handle);
	void (*unwatch)(void *arg, int handle);
	/* The hop is at mac. back: where it was; what says otherwise is to be corrected. */
	void (*moved)(void *arg, const struct arp_nd_hop *hop, const uint8_t mac[6], bool back);
	void *arg;
};

struct move_claim {
	struct arp_nd_hop hop;
	uint8_t old[6], mac[6];
	uint8_t state; /* see move_guard.c */
	int handle;
	uint64_t since, until;
};

struct move_guard {
	struct move_guard_config cfg;
	struct move_claim claim[MOVE_GUARD_CLAIMS];
	uint32_t busy;	  /* claims that are not over */
	uint64_t refused; /* claims; and the next: moves taken back */
	uint64_t taken_back;
};

void move_guard_init(struct move_guard *g, const struct move_guard_config *cfg);
/*
 * Somebody says that the hop has mac; old: where it was, NULL: nowhere. direct: its own address is
 * that of the frames that come from it (no router). moved() is called now, later or never.
 */
void move_guard_claim(struct move_guard *g, const struct arp_nd_hop *hop, const uint8_t *old,
		      const uint8_t mac[6], bool direct, uint64_t now);
/* At least ten times a second while it is busy */
void move_guard_tick(struct move_guard *g, uint64_t now);
/* Nothing is watched any more. */
void move_guard_end(struct move_guard *g);

#endif
