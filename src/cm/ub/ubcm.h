/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_UB_UBCM_H
#define CM_UB_UBCM_H

/*
 * Setting up and ending the channels of an HCA: a link joins an address of each of two HCAs by a
 * group of TPs. The first import of a peer makes it, all clients of the HCA share it, and it ends
 * after 60 s without an import or when one of its TPs is dead.
 *
 * State machines without I/O: messages and the time go in, messages and actions come out through
 * functions of the owner, which moves messages (unreliable sends to Jetty 0 of the peer) and turns
 * actions into calls of its driver. One struct ubcm for each HCA. The caller serializes all calls;
 * the functions of struct ubcm_ops must not call back. Times are ns of a clock that does not jump.
 *
 *	         import              REP (TPs are made ACTIVE)
 *	free ----------> ASKING ------------------------------+
 *	  |                | REQ of the peer, our EID is      v      idle
 *	  |                v the lower one                   OPEN <--------> LEAVING
 *	  +----------> ANSWERED ------------------------------^      IN_USE    | DISC_REP
 *	    REQ     (TPs are made PASSIVE)  RTU or packet     |                v
 *	                                                      +---------> DRAINING --> free
 *	                                                         DISC
 *
 * Every other end (no answer, a refusal, dead TPs) leads to free: a clean failure, of which the
 * users of the link are told. Where both ends ask at once the one with the lower EID answers.
 */

#include "ubcm_msg.h"

#define UBCM_MS UINT64_C(1000000)
/* Repetitions of REQ, REP and DISC: after 100 ms * 2^n. */
#define UBCM_FIRST_WAIT (100 * UBCM_MS)
#define UBCM_REPEATS 7u
/* A link without users ends after so long. */
#define UBCM_IDLE (60000 * UBCM_MS)
/* Timeouts within which open operations must end; the time is at least UBCM_FIRST_WAIT. */
#define UBCM_DRAIN_RTOS 4u
/*
 * The number of a TP that may have been used rests for this number of the largest timeouts of this
 * end's configuration, each at most UBCM_RTO_MOST, unless no other number is free.
 */
#define UBCM_REST_RTOS 2u
/* A link without local users that never carried a packet can be reclaimed after so long. */
#define UBCM_YOUNG (1000 * UBCM_MS)
/* The traffic of links is asked for at most so often. */
#define UBCM_SAMPLE_EVERY (10 * UBCM_MS)
#define UBCM_RTO_MOST (60000 * UBCM_MS)
/* The base where it is automatic: the value of a TP before its first round trip. */
#define UBCM_RTO_AUTO UBCM_MS

#define UBCM_NEVER UINT64_MAX
#define UBCM_LINKS_MAX (1u << HCA_TP_MAX_LOG)

/* One TP of a link, as its context needs it. */
struct ubcm_tp {
	uint32_t tpn, peer_tpn;
	uint32_t psn;  /* first that is sent */
	uint32_t epsn; /* first that is expected */
	struct ubcm_limits limits;
};

/*
 * Actions of the owner; TPs that are in ERROR stay there, but for DESTROY. X(NAME)
 *
 *  CREATE    TPs in the state of the action, then the TPG; may fail, and leaves none of them then
 *  ACTIVATE  TPs from PASSIVE to ACTIVE; a packet may have brought some of them there already
 *  DRAIN     TPs to DRAIN; ubcm_event(DRAINED) may tell that one has nothing open any more
 *  FAIL      TPs to ERROR; DESTROY follows
 *  DESTROY   no TPG, TPs to RESET; when it returns their packets go nowhere
 *  JOIN      users of the link in from are users of this one; UP follows
 *  UP        the link has users and may be used
 *  DOWN      the link has no users any more, for the reason in status; an import makes a new one
 */
#define UBCM_ACT_LIST(X) \
	X(CREATE) \
	X(ACTIVATE) \
	X(DRAIN) \
	X(FAIL) \
	X(DESTROY) \
	X(JOIN) \
	X(UP) \
	X(DOWN)

enum ubcm_act {
#define UBCM_ACT_ENUM(NAME) UBCM_##NAME,
	UBCM_ACT_LIST(UBCM_ACT_ENUM)
#undef UBCM_ACT_ENUM
};

/* Pointers are valid until the function returns. */
struct ubcm_action {
	enum ubcm_act type;
	uint32_t link;		   /* handle; UBCM_LINK_TPG() is the number of its group */
	const uint8_t *own, *peer; /* EIDs */
	enum hca_tp_state state;   /* CREATE */
	enum ubcm_status status;   /* DOWN */
	uint32_t from;		   /* JOIN: handle of a link that ends */
	uint32_t ntps;
	const struct ubcm_tp *tp;
	const struct ubcm_timer *timer;
};

#define UBCM_LINK_TPG(handle) HCA_BITS(handle, 15, 0)

struct ubcm_ops {
	/* Send a message of len bytes from own to peer (EIDs); it may be lost. */
	void (*send)(void *arg, const uint8_t *own, const uint8_t *peer, const uint8_t *bytes,
		     size_t len);
	/* 0, or for CREATE a negative errno. */
	int (*act)(void *arg, const struct ubcm_action *action);
	uint64_t (*random)(void *arg); /* of a CSPRNG: numbers that peers must not guess */
	/* Packets that TPs have carried so far, both ways; 0: none. */
	uint64_t (*traffic)(void *arg, const struct ubcm_tp *tp, uint32_t ntps);
};

struct ubcm_config {
	const struct ubcm_ops *ops;
	void *arg;
	struct ubcm_limits limits; /* of every TP */
	struct ubcm_timer timer;
	uint32_t tps;	    /* of a link that is asked for, 1..16 */
	uint32_t log_tps;   /* TPNs are indexes of log_tps bits below a tag, 1..HCA_TP_MAX_LOG */
	uint32_t max_links; /* 1..UBCM_LINKS_MAX */
};

/* Present use, in TPNs: X(name, text) */
#define UBCM_GAUGE_LIST(X) \
	X(half, "peers have begun and not confirmed") \
	X(peers, "peers have, with those") \
	X(own, "local users have asked for") \
	X(resting, "free, but used a short time ago") \
	X(limit_half, "at most of half") \
	X(limit_peers, "at most of peers: the rest is the reserve of local users") \
	X(limit_address, "at most of one address") \
	X(all, "all")

struct ubcm_gauges {
#define UBCM_GAUGE_MEMBER(name, text) uint64_t name;
	UBCM_GAUGE_LIST(UBCM_GAUGE_MEMBER)
#undef UBCM_GAUGE_MEMBER
};

struct ubcm_counters {
	uint64_t received;	      /* messages = dropped + handled of all types */
	uint64_t dropped[UBCM_DROPS]; /* by reason */
	uint64_t handled[UBCM_TYPES];
	uint64_t sent[UBCM_TYPES];     /* with repeated ones */
	uint64_t repeated;	       /* because there was no answer */
	uint64_t duplicates;	       /* handled ones that had an answer already */
	uint64_t begun, opened, ended; /* links */
	/* peers' links that were evicted or refused (ubcm_room.c) */
	uint64_t evicted;	  /* halves, for a newer one */
	uint64_t reclaimed;	  /* open links that carried nothing */
	uint64_t refused_address; /* REQs of addresses that have their share */
	uint64_t refused_peers;	  /* REQs while peers have all that is theirs */
	uint64_t refused_own;	  /* imports without a free link or TPN */
	struct ubcm_gauges now;
};

struct ubcm;

/* Bytes of a struct ubcm for *cfg, 0: a value of it is out of range. */
size_t ubcm_bytes(const struct ubcm_config *cfg);
/*
 * Begin in ubcm_bytes() bytes at mem, aligned as malloc() does; *cfg is copied. ubcm uses no other
 * memory.
 */
struct ubcm *ubcm_init(void *mem, const struct ubcm_config *cfg);
/* Tell all peers (best effort), and end all links. */
void ubcm_end(struct ubcm *cm, uint64_t now);

/*
 * One more user of the channels between two addresses. 0: *handle may be used if ubcm_is_up(), else
 * UP or DOWN follows. -ENOMEM: no link or TPN is free.
 */
int ubcm_import(struct ubcm *cm, const uint8_t *own, const uint8_t *peer, uint64_t now,
		uint32_t *handle);
/* One user less. -ENOENT: the link has gone, which DOWN has said. */
int ubcm_unimport(struct ubcm *cm, uint32_t handle, uint64_t now);
bool ubcm_is_up(const struct ubcm *cm, uint32_t handle);

/* TPNs of the open link that an import of the peer would join; returns their number. */
uint32_t ubcm_tpns(struct ubcm *cm, const uint8_t *own, const uint8_t *peer,
		   uint32_t tpns[UBCM_MSG_TPS]);

/* A message has come from the address of peer to that of own. */
void ubcm_input(struct ubcm *cm, const uint8_t *own, const uint8_t *peer, const uint8_t *bytes,
		size_t len, uint64_t now);

enum ubcm_event {
	UBCM_PACKET,  /* the first good packet of a TP that was made PASSIVE */
	UBCM_DEAD,    /* it is in ERROR */
	UBCM_DRAINED, /* it is in DRAIN and has nothing open */
};

/* Report an event of a TP; an event of a TPN without link is ignored. */
void ubcm_event(struct ubcm *cm, uint32_t tpn, enum ubcm_event event, uint64_t now);

/* Do the work that is due; ubcm_deadline(): the time of the next work, or UBCM_NEVER. */
void ubcm_tick(struct ubcm *cm, uint64_t now);
uint64_t ubcm_deadline(const struct ubcm *cm);

/* With gauges of the time `now`. */
const struct ubcm_counters *ubcm_counters(struct ubcm *cm, uint64_t now);

/*
 * Whether the way to the peer must be known before the message is given to ubcm_input(): it is a
 * REQ with a good cookie, whose sender has proved that it receives at the address of peer, or there
 * are links to that address. The answer to any other message may go back to where it came from.
 */
bool ubcm_needs_way(const struct ubcm *cm, const uint8_t *own, const uint8_t *peer,
		    const uint8_t *bytes, size_t len, uint64_t now);

/* The longest time between two sendings of a packet, in ns. */
uint64_t ubcm_rto_largest(const struct ubcm_timer *timer);

#endif
