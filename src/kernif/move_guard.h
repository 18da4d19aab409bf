/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KERNIF_MOVE_GUARD_H
#define KERNIF_MOVE_GUARD_H

/*
 * Decides whether a next hop has really moved to another MAC address. Any host on the segment can
 * claim that, and live QPs would follow. RoCE frames that still come from the old MAC address
 * refute a claim: it is accepted after they have been silent for MOVE_GUARD_HOLD_NS, and refused if
 * they are not for MOVE_GUARD_REFUSE_NS (the last frames of a hop that really moves arrive after
 * the claim). An accepted move is undone by the first such frame afterwards. Frames never confirm a
 * claim.
 *
 * It has no clock or lock: the time (ns) is an argument, and the caller serializes all calls.
 * watch() tells the caller which frames to look for.
 */

#include <stdbool.h>
#include <stdint.h>

#include "arp_nd.h"

/* undecided at a time; further ones are accepted at once */
#define MOVE_GUARD_CLAIMS 32u
#define MOVE_GUARD_HOLD_NS 200000000ull /* silence after which a move is accepted */
/* time without such silence after which a claim is refused */
#define MOVE_GUARD_REFUSE_NS 700000000ull
#define MOVE_GUARD_WATCH_NS 30000000000ull

struct move_guard_config {
	/*
	 * Starts watching for frames; gid NULL: of any IP address. Returns a handle; negative: not
	 * possible.
	 */
	int (*watch)(void *arg, const uint8_t mac[6], const uint8_t *gid, uint16_t vlan_id);
	/* Whether a watched frame came since the last call */
	bool (*seen)(void *arg, int handle);
	void (*unwatch)(void *arg, int handle);
	/* Use mac for the hop. back: mac is the old address; other tables must be corrected. */
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
	uint32_t busy;	  /* claims in use */
	uint64_t refused; /* claims refused, and moves undone */
	uint64_t taken_back;
};

void move_guard_init(struct move_guard *g, const struct move_guard_config *cfg);
/*
 * Handle the claim that the hop is at mac; old: its MAC address until now, or NULL. direct: frames
 * of the hop have its own IP address (it is no router). Calls moved() now, later or never.
 */
void move_guard_claim(struct move_guard *g, const struct arp_nd_hop *hop, const uint8_t *old,
		      const uint8_t mac[6], bool direct, uint64_t now);
/* Check the claims; to be called at least ten times per second while busy is not 0. */
void move_guard_tick(struct move_guard *g, uint64_t now);

#endif
