/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>

#include "ubcm_impl.h"

/* ---- begin and end ---- */

static bool
good_config(const struct ubcm_config *cfg)
{
	return cfg->tps >= 1 && cfg->tps <= UBCM_MSG_TPS && cfg->log_tps >= 1 &&
	       cfg->log_tps <= HCA_TP_MAX_LOG && cfg->max_links >= 1 &&
	       cfg->max_links <= UBCM_LINKS_MAX;
}

static struct cm_share_limits
limits_of(const struct ubcm_config *cfg)
{
	return cm_share_limits((1u << cfg->log_tps) - 1, cfg->tps);
}

size_t
ubcm_bytes(const struct ubcm_config *cfg)
{
	struct cm_share_limits limits;

	if (!good_config(cfg))
		return 0;
	limits = limits_of(cfg);
	return sizeof(struct ubcm) + cfg->max_links * sizeof(struct ubcm_link) +
	       (sizeof(struct ubcm_number) << cfg->log_tps) + cm_share_bytes(&limits) +
	       cm_pairs_bytes(cfg->max_links);
}

struct ubcm *
ubcm_init(void *mem, const struct ubcm_config *cfg)
{
	struct ubcm *cm = memset(mem, 0, ubcm_bytes(cfg));
	struct cm_share_limits limits = limits_of(cfg);
	void *share;

	cm->cfg = *cfg;
	cm->next = 1;
	cm->nlinks = cfg->max_links;
	cm->link = (struct ubcm_link *)(cm + 1);
	cm->number = (struct ubcm_number *)(cm->link + cm->nlinks);
	for (uint32_t i = 0; i < 2; i++)
		cm->key[i] = cfg->ops->random(cfg->arg);
	share = cm->number + (1u << cfg->log_tps);
	cm_share_init(&cm->share, &limits, cm->key, share);
	cm_pairs_init(&cm->pairs, cm->nlinks, cm->key, (char *)share + cm_share_bytes(&limits));
	for (uint32_t i = 0; i < cm->nlinks; i++)
		cm->link[i].deadline = UBCM_NEVER;
	return cm;
}

void
ubcm_end(struct ubcm *cm, uint64_t now)
{
	for (uint32_t i = 0; i < cm->nlinks; i++)
		if (cm->link[i].state != LINK_FREE)
			ubcm_link_end(cm, &cm->link[i], UBCM_STATUS_CLOSING, true, now);
}

const struct ubcm_counters *
ubcm_counters(struct ubcm *cm, uint64_t now)
{
	const struct cm_share *s = &cm->share;
	uint64_t peers = (uint64_t)s->used[CM_SHARE_half] + s->used[CM_SHARE_open];

	cm->counters.now = (struct ubcm_gauges){
		.half = s->used[CM_SHARE_half],
		.peers = peers,
		.own = cm->used - peers,
		.resting = ubcm_resting_numbers(cm, now),
		.limit_half = s->limits.half,
		.limit_peers = s->limits.peers,
		.limit_address = s->limits.address,
		.all = ubcm_all_numbers(cm),
	};
	return &cm->counters;
}

/* ---- users ---- */

/* How good a link is for one more user */
static uint32_t
worth(const struct ubcm_link *l)
{
	static const uint8_t worths[] = {
		[LINK_FREE] = 0, [LINK_ASKING] = 3,  [LINK_ANSWERED] = 2,
		[LINK_OPEN] = 4, [LINK_LEAVING] = 1, [LINK_DRAINING] = 0,
	};

	return worths[l->state];
}

static struct ubcm_link *
best_link(struct ubcm *cm, const uint8_t *own, const uint8_t *peer)
{
	struct ubcm_link *best = NULL;

	UBCM_PAIR_EACH(l, cm, own, peer)
		if (worth(l) > (best == NULL ? 0 : worth(best)))
			best = l;
	return best;
}

int
ubcm_import(struct ubcm *cm, const uint8_t *own, const uint8_t *peer, uint64_t now,
	    uint32_t *handle)
{
	struct ubcm_link *l = best_link(cm, own, peer);

	if (l == NULL) {
		ubcm_room_for_own(cm, now);
		l = ubcm_link_new(cm, own, peer, cm->cfg.tps, now);
		cm->counters.refused_own += l == NULL;
		if (l == NULL)
			return -ENOMEM;
		ubcm_link_ask(cm, l, now);
	}
	if (l->state == LINK_OPEN)
		l->deadline = UBCM_NEVER;
	l->users++;
	*handle = ubcm_link_handle(cm, l);
	return 0;
}

int
ubcm_unimport(struct ubcm *cm, uint32_t handle, uint64_t now)
{
	struct ubcm_link *l = ubcm_link_get(cm, handle);

	if (l == NULL || l->users == 0)
		return -ENOENT;
	l->users--;
	if (l->users == 0 && l->state == LINK_OPEN)
		ubcm_link_idle(l, now);
	if (l->users == 0 && l->state == LINK_ASKING)
		ubcm_link_end(cm, l, UBCM_STATUS_IDLE, false, now);
	return 0;
}

uint32_t
ubcm_tpns(struct ubcm *cm, const uint8_t *own, const uint8_t *peer, uint32_t tpns[UBCM_MSG_TPS])
{
	const struct ubcm_link *l = best_link(cm, own, peer);

	if (l == NULL || !l->created)
		return 0;
	for (uint32_t i = 0; i < l->ntps; i++)
		tpns[i] = l->tp[i].tpn;
	return l->ntps;
}

bool
ubcm_is_up(const struct ubcm *cm, uint32_t handle)
{
	const struct ubcm_link *l = ubcm_link_get(cm, handle);

	return l != NULL && l->state == LINK_OPEN;
}

/* ---- time ---- */

static void
repeat(struct ubcm *cm, struct ubcm_link *l)
{
	static const uint8_t what[] = {
		[LINK_ASKING] = UBCM_REQ,
		[LINK_ANSWERED] = UBCM_REP,
		[LINK_LEAVING] = UBCM_DISC,
	};

	cm->counters.repeated++;
	ubcm_send(cm, l, what[l->state],
		  l->state == LINK_LEAVING ? UBCM_STATUS_IDLE : UBCM_STATUS_OK);
}

/* No answer came. The peer, which may have received a message, gets a DISC. */
static void
give_up(struct ubcm *cm, struct ubcm_link *l, uint64_t now)
{
	if (l->state != LINK_LEAVING)
		ubcm_send(cm, l, UBCM_REJ, UBCM_STATUS_TIMEOUT);
	if (l->state == LINK_ANSWERED)
		ubcm_link_abandoned(cm, l, UBCM_STATUS_TIMEOUT, now);
	else
		ubcm_link_end(cm, l, UBCM_STATUS_TIMEOUT, false, now);
}

static void
expired(struct ubcm *cm, struct ubcm_link *l, uint64_t now)
{
	if (l->state == LINK_OPEN) {
		ubcm_room_look(cm, l, now);
		ubcm_link_leave(cm, l, now);
	} else if (l->state == LINK_DRAINING) {
		ubcm_link_end(cm, l, UBCM_STATUS_IDLE, false, now);
	} else if (cm_repeat_again(&ubcm_repeats, &l->repeat, now, &l->deadline)) {
		repeat(cm, l);
	} else {
		give_up(cm, l, now);
	}
}

void
ubcm_tick(struct ubcm *cm, uint64_t now)
{
	for (uint32_t i = 0; i < cm->nlinks; i++)
		if (cm->link[i].deadline <= now)
			expired(cm, &cm->link[i], now);
}

uint64_t
ubcm_deadline(const struct ubcm *cm)
{
	uint64_t first = UBCM_NEVER;

	for (uint32_t i = 0; i < cm->nlinks; i++)
		if (cm->link[i].deadline < first)
			first = cm->link[i].deadline;
	return first;
}
