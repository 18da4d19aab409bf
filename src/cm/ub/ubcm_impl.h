/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_UB_UBCM_IMPL_H
#define CM_UB_UBCM_IMPL_H

/* Inside of ubcm: only its sources include this. */

#include "cm_cookie.h"
#include "cm_pairs.h"
#include "cm_repeat.h"
#include "cm_share.h"
#include "ubcm.h"

enum link_state {
	LINK_FREE,
	LINK_ASKING,   /* REQ is sent, REP is awaited */
	LINK_ANSWERED, /* REP is sent, RTU or a packet is awaited */
	LINK_OPEN,
	LINK_LEAVING,  /* DISC is sent, its answer is awaited */
	LINK_DRAINING, /* both ends have agreed; open operations may end */
};

struct ubcm_link {
	enum link_state state;
	bool active;	/* this end has asked */
	bool created;	/* the TPs exist: CREATE without DESTROY */
	bool again;	/* asked after the peer's own REQ had led nowhere */
	bool confirmed; /* both ends have the TPs, which may have been used */
	bool has_cookie;
	enum cm_share_kind kind; /* share that the peer's account pays from */
	uint32_t charged;	 /* TPNs */
	uint32_t retried;	 /* repeat.tries + 1 when the last RETRY was taken */
	uint16_t generation;	 /* of the handle */
	struct cm_repeat repeat; /* of the message that waits for an answer */
	uint32_t users;
	uint32_t dead, drained; /* sets of TPs */
	uint64_t deadline;
	uint64_t born, opened;
	uint64_t traffic, seen; /* as it was looked at last; when that had changed */
	uint64_t cookie;	/* of the peer, for the REQ */
	uint64_t transaction;	/* of REQ, REP, RTU */
	uint64_t disc;		/* of DISC */
	uint8_t own[16], peer[16];
	uint32_t ntps;
	struct ubcm_tp tp[UBCM_MSG_TPS];
	struct ubcm_timer timer;
};

/* Use of an index of TPNs. */
struct ubcm_number {
	uint64_t rests; /* not given out until then */
	uint32_t tpn;
	uint32_t link; /* index + 1; 0: none */
};

struct ubcm {
	struct ubcm_config cfg;
	struct ubcm_counters counters;
	struct cm_share share; /* of the TPNs */
	uint64_t key[2];       /* of cookies, and of pairs */
	struct cm_pairs pairs; /* links that are not free */
	uint64_t sampled;      /* when links were asked for their traffic */
	uint32_t used;	       /* TPNs */
	uint32_t next;	       /* index of TPNs that is tried first */
	uint32_t nlinks;       /* allocated */
	struct ubcm_number *number;
	struct ubcm_link *link;
};

/* ubcm_tpn.c: the TPNs of the HCA. Index 0 is that of unreliable packets. */
uint32_t ubcm_all_numbers(const struct ubcm *cm);
uint32_t ubcm_free_numbers(const struct ubcm *cm);
uint32_t ubcm_resting_numbers(const struct ubcm *cm, uint64_t now);
/* n TPNs or as many as there are, each with a random first PSN. Returns how many. */
uint32_t ubcm_take_numbers(struct ubcm *cm, struct ubcm_link *l, uint32_t n, uint64_t now);
/* Those from the index `from` on rest. */
void ubcm_drop_numbers(struct ubcm *cm, struct ubcm_link *l, uint32_t from, uint64_t now);
/* The link of a TPN, and which of its TPs it is; NULL: no link has it. */
struct ubcm_link *ubcm_link_of_tpn(struct ubcm *cm, uint32_t tpn, uint32_t *which);

/* ubcm_limits.c */
struct ubcm_limits ubcm_limits_both(const struct ubcm_limits *a, const struct ubcm_limits *b);
struct ubcm_timer ubcm_timer_both(const struct ubcm_timer *a, const struct ubcm_timer *b);
bool ubcm_limits_equal(const struct ubcm_limits *a, const struct ubcm_limits *b);
bool ubcm_timer_equal(const struct ubcm_timer *a, const struct ubcm_timer *b);

/* ubcm_link.c: the life of a link */
/* In LINK_FREE still, with TPNs; NULL: there is no link or no TPN. */
struct ubcm_link *ubcm_link_new(struct ubcm *cm, const uint8_t *own, const uint8_t *peer,
				uint32_t tps, uint64_t now);
uint32_t ubcm_link_handle(const struct ubcm *cm, const struct ubcm_link *l);
struct ubcm_link *ubcm_link_get(const struct ubcm *cm, uint32_t handle);
int ubcm_link_act(struct ubcm *cm, const struct ubcm_link *l, struct ubcm_action action);
/* Send REQ with a new transaction. */
void ubcm_link_ask(struct ubcm *cm, struct ubcm_link *l, uint64_t now);
/* It may be used from now on. */
void ubcm_link_open(struct ubcm *cm, struct ubcm_link *l, uint64_t now);
/* The link has no users: begin to wait for the end. */
void ubcm_link_idle(struct ubcm_link *l, uint64_t now);
void ubcm_link_leave(struct ubcm *cm, struct ubcm_link *l, uint64_t now);
void ubcm_link_drain(struct ubcm *cm, struct ubcm_link *l, uint64_t now);
/* Its end, at once. tell: the peer gets a DISC. */
void ubcm_link_end(struct ubcm *cm, struct ubcm_link *l, enum ubcm_status status, bool tell,
		   uint64_t now);
/* The peer does not complete its request: users get a REQ of this end instead, once. */
void ubcm_link_abandoned(struct ubcm *cm, struct ubcm_link *l, enum ubcm_status status,
			 uint64_t now);
/* The message that is sent now waits for an answer. */
void ubcm_link_await(struct ubcm_link *l, uint64_t now);

bool ubcm_link_is_free(const struct ubcm *cm);
/* The peer pays for its TPNs: as a half, or as an open link. */
void ubcm_link_charge(struct ubcm *cm, struct ubcm_link *l, enum cm_share_kind kind);
/* The users of a link that ends have this one from now on. */
void ubcm_link_join(struct ubcm *cm, struct ubcm_link *l, struct ubcm_link *from, uint64_t now);

/* ubcm_room.c */
/* For how many of the TPNs that a peer wants there is room now; other links may end for it. */
uint32_t ubcm_room_for_peer(struct ubcm *cm, const uint8_t *peer, uint32_t want, uint64_t now);
/* Try to have a free link and all its TPNs for local users. */
void ubcm_room_for_own(struct ubcm *cm, uint64_t now);
/* Evicts a half. */
void ubcm_room_end_half(struct ubcm *cm, struct ubcm_link *l, uint64_t now);
/* Note the traffic of the link, if it has no users. */
void ubcm_room_look(struct ubcm *cm, struct ubcm_link *l, uint64_t now);

/* ubcm_send.c */
/* A message of a link, as its state has it. */
void ubcm_send(struct ubcm *cm, const struct ubcm_link *l, enum ubcm_type type,
	       enum ubcm_status status);
/* A message about a transaction that no link has. */
void ubcm_send_bare(struct ubcm *cm, const uint8_t *own, const uint8_t *peer, enum ubcm_type type,
		    enum ubcm_status status, uint64_t transaction);
/* The cookie that a peer must repeat with its REQ. */
void ubcm_send_retry(struct ubcm *cm, const uint8_t *own, const uint8_t *peer, uint64_t transaction,
		     uint64_t cookie);

extern const struct cm_repeat_rule ubcm_repeats;

static inline bool
ubcm_is_pair(const struct ubcm_link *l, const uint8_t *own, const uint8_t *peer)
{
	return l->state != LINK_FREE && memcmp(l->own, own, sizeof(l->own)) == 0 &&
	       memcmp(l->peer, peer, sizeof(l->peer)) == 0;
}

/* The links of a pair of addresses by their indexes: the first one, or that after `last`. */
static inline struct ubcm_link *
ubcm_pair_next(const struct ubcm *cm, const struct ubcm_link *last, const uint8_t *own,
	       const uint8_t *peer)
{
	uint32_t i = last == NULL ? cm_pairs_first(&cm->pairs, own, peer)
				  : cm_pairs_next(&cm->pairs, (uint32_t)(last - cm->link));

	while (i != CM_PAIRS_NONE && !ubcm_is_pair(&cm->link[i], own, peer))
		i = cm_pairs_next(&cm->pairs, i);
	return i != CM_PAIRS_NONE ? &cm->link[i] : NULL;
}

/* The body may end the link. */
#define UBCM_PAIR_EACH(l, cm, own, peer) \
	for (struct ubcm_link *l = ubcm_pair_next(cm, NULL, own, peer); l != NULL; \
	     l = ubcm_pair_next(cm, l, own, peer))

#endif
