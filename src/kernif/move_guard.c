/* SPDX-License-Identifier: BSD-3-Clause */

#include <string.h>

#include "move_guard.h"

enum claim_state {
	CLAIM_FREE,
	CLAIM_HELD,  /* undecided */
	CLAIM_MOVED, /* accepted; the old owner may still refute it */
};

void
move_guard_init(struct move_guard *g, const struct move_guard_config *cfg)
{
	memset(g, 0, sizeof(*g));
	g->cfg = *cfg;
}

static struct move_claim *
find(struct move_guard *g, const struct arp_nd_hop *hop)
{
	for (uint32_t i = 0; i < MOVE_GUARD_CLAIMS; i++)
		if (g->claim[i].state != CLAIM_FREE && g->claim[i].hop.vlan_id == hop->vlan_id &&
		    memcmp(g->claim[i].hop.gid, hop->gid, sizeof(hop->gid)) == 0)
			return &g->claim[i];
	return NULL;
}

/* A free claim, else the move that was accepted longest ago; NULL: all are undecided. */
static struct move_claim *
claim_slot(struct move_guard *g)
{
	struct move_claim *best = NULL;

	for (uint32_t i = 0; i < MOVE_GUARD_CLAIMS; i++) {
		struct move_claim *c = &g->claim[i];

		if (c->state == CLAIM_FREE)
			return c;
		if (c->state == CLAIM_MOVED && (best == NULL || c->until < best->until))
			best = c;
	}
	return best;
}

static void
end_claim(struct move_guard *g, struct move_claim *c)
{
	g->cfg.unwatch(g->cfg.arg, c->handle);
	c->state = CLAIM_FREE;
	g->busy--;
}

static void
hold_claim(struct move_guard *g, const struct arp_nd_hop *hop, const uint8_t old[6],
	   const uint8_t mac[6], bool direct, uint64_t now)
{
	struct move_claim *c = claim_slot(g);
	int handle;

	if (c != NULL && c->state != CLAIM_FREE)
		end_claim(g, c);
	handle = c != NULL ? g->cfg.watch(g->cfg.arg, old, direct ? hop->gid : NULL, hop->vlan_id)
			   : -1;
	if (handle < 0) {
		g->cfg.moved(g->cfg.arg, hop, mac, false);
		return;
	}
	*c = (struct move_claim){
		.hop = *hop,
		.state = CLAIM_HELD,
		.handle = handle,
		.since = now,
		.until = now + MOVE_GUARD_HOLD_NS,
	};
	memcpy(c->old, old, 6);
	memcpy(c->mac, mac, 6);
	g->busy++;
}

/* Handle another claim about a hop that is already disputed. */
static void
repeated_claim(struct move_guard *g, struct move_claim *c, const uint8_t mac[6], bool direct,
	       uint64_t now)
{
	const struct arp_nd_hop hop = c->hop;
	uint8_t at[6];

	if (memcmp(c->old, mac, 6) == 0) { /* it is back at, or never left, the old address */
		end_claim(g, c);
		g->cfg.moved(g->cfg.arg, &hop, mac, false);
		return;
	}
	if (c->state == CLAIM_HELD || memcmp(c->mac, mac, 6) == 0) {
		memcpy(c->mac, mac, 6);
		return;
	}
	memcpy(at, c->mac, 6);
	end_claim(g, c);
	hold_claim(g, &hop, at, mac, direct, now);
}

void
move_guard_claim(struct move_guard *g, const struct arp_nd_hop *hop, const uint8_t *old,
		 const uint8_t mac[6], bool direct, uint64_t now)
{
	struct move_claim *c = find(g, hop);

	if (c != NULL)
		repeated_claim(g, c, mac, direct, now);
	else if (old == NULL || memcmp(old, mac, 6) == 0)
		g->cfg.moved(g->cfg.arg, hop, mac, false);
	else
		hold_claim(g, hop, old, mac, direct, now);
}

static void
check_claim(struct move_guard *g, struct move_claim *c, uint64_t now)
{
	bool held = c->state == CLAIM_HELD, seen = g->cfg.seen(g->cfg.arg, c->handle);
	struct move_claim was;

	if (seen && held && now - c->since < MOVE_GUARD_REFUSE_NS) {
		c->until = now + MOVE_GUARD_HOLD_NS;
	} else if (seen) {
		*(held ? &g->refused : &g->taken_back) += 1;
		was = *c;
		end_claim(g, c);
		g->cfg.moved(g->cfg.arg, &was.hop, was.old, true);
	} else if (now >= c->until && held) {
		c->state = CLAIM_MOVED;
		c->until = now + MOVE_GUARD_WATCH_NS;
		g->cfg.moved(g->cfg.arg, &c->hop, c->mac, false);
	} else if (now >= c->until) {
		end_claim(g, c);
	}
}

void
move_guard_tick(struct move_guard *g, uint64_t now)
{
	for (uint32_t i = 0; i < MOVE_GUARD_CLAIMS && g->busy != 0; i++)
		if (g->claim[i].state != CLAIM_FREE)
			check_claim(g, &g->claim[i], now);
}
