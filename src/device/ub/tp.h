/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UB_TP_H
#define UB_TP_H

/*
 * TP: one end of a transport channel of UB between two hosts. Its context is divided into cache
 * lines by writer, as the key-QPC store is: the CEU configures, TPS (TP sender) sends, TPR (TP
 * receiver) receives, TAI (transaction initiator) and TAT (transaction target) put operations into
 * the lanes, encap reports the packets that it has finished.
 *
 * Words marked [pub] are read by other lcores: stored with release, loaded with acquire. The state
 * is changed by compare and swap. All others are private to the line's writer. PSNs, TPMSNs and
 * TPNs are 24-bit values in uint32_t, their arithmetic is modulo 2^24. Times are in ns.
 *
 * Memory that is proportional to the window lies in one block (hca_tp_block_bytes()), allocated by
 * the CEU and freed after the TP's round. Use of all of this by the transport: tp_core.h.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_branch_prediction.h>

#include "abi_tp.h"
#include "ub/op.h"
#include "wire/udp_template.h"

#define HCA_TP_SACK_CODES 5u
#define HCA_TP_SACK_BYTES 128u /* of the largest bitmap */

/* Why packets were sent again: X(NAME, counter). */
#define HCA_TP_AGAIN_LIST(X) \
	X(NAK, resent_nak) \
	X(HIGH, resent_high) \
	X(MARK, resent_mark) \
	X(TIME, resent_time) \
	X(TIMEOUT, resent_timeout)

enum hca_tp_again {
#define X(name, counter) HCA_TP_AGAIN_##name,
	HCA_TP_AGAIN_LIST(X)
#undef X
	HCA_TP_AGAINS
};

/*
 * Index HCA_TP_UNRELIABLE alone: it has a lane of requests, whose operations are single packets
 * without PSN to the address in their record.
 */
#define HCA_TP_MODE_UNRELIABLE HCA_TP_MODES

/* Memory of TAT in the block, bytes each. */
#define HCA_TP_OWED_BYTES 32u
#define HCA_TP_OPEN_BYTES 32u
/* Places of RC ids, by their low bits: as many as a device has Jettys. */
#define HCA_TP_SUSPECTS 16384u

/* Writer: CEU; state also by TPS and TPR, through hca_tp_state_cas(). */
struct hca_tp_cfg {
	uint32_t state;	  /* [pub] enum hca_tp_state */
	uint32_t own_tpn; /* [pub] 0: dead */
	uint32_t peer_tpn;
	uint32_t generation; /* counts the lives of this index */
	uint8_t mode;	     /* enum hca_tp_mode, or HCA_TP_MODE_UNRELIABLE */
	uint8_t rule;	     /* enum hca_tp_rule */
	uint8_t mtu_log;     /* 10 or 12 */
	uint8_t sack_code;   /* of the largest TPSACK it sends */
	uint8_t flags;	     /* enum hca_tp_flag */
	uint8_t ack_every;   /* packets in order that are acknowledged at once, not 0 */
	uint8_t ooo_every;   /* packets out of order that are reported at once, not 0 */
	uint8_t congestion;
	uint16_t window;   /* W: a power of two, 128..2048 */
	uint16_t requests; /* that either side may have open */
	uint8_t rto_exponent;
	uint8_t retries;
	uint8_t ports_log; /* with spray: log2 of the source ports, from `port` on */
	uint8_t reserved;
	uint16_t port;	      /* UDP source port */
	uint16_t vlan;	      /* id, 0: none */
	uint32_t rto_base;    /* us, 0: from round trips */
	uint32_t reorder;     /* rule TIME: how much later a packet may come, ns */
	uint32_t tpg;	      /* index of its group + 1, 0: none */
	void *block;	      /* the memory that the lines below point into */
	uint8_t own_eid[16];  /* network order; IPv4 as ::ffff:a.b.c.d */
	uint8_t peer_eid[16]; /* the address its packets must come from */
} __rte_cache_aligned;

/* A packet that was sent and is not acknowledged, at its PSN in a ring of W. */
struct hca_tp_slot {
	uint32_t op;	  /* reference with its lane; the packet is PSN - op.tps.psn */
	uint16_t port;	  /* offset of the source port it was last sent from */
	uint8_t flags;	  /* enum hca_tp_slot_flag */
	uint8_t why;	  /* enum hca_tp_again: why it is, or was last, sent again */
	uint64_t sent_at; /* ns; no two packets of a TP have the same */
};

enum hca_tp_slot_flag {
	HCA_TP_SLOT_LAST = 1u << 0,   /* last packet of its operation */
	HCA_TP_SLOT_RESENT = 1u << 1, /* sent more than once: its round trip says nothing */
};

/* Phases of rule MARK. */
enum hca_tp_phase {
	HCA_TP_PHASE_NEW, /* sends new packets only */
	HCA_TP_PHASE_RTX, /* sends missing packets only */
};

#define HCA_TP_NEVER UINT64_MAX

/* Of a lane, TPS's side: free running positions. */
struct hca_tp_lane_tx {
	uint32_t next; /* the operation being sent, or to be sent next */
	uint32_t done; /* [pub] before it: given back to the owner */
	uint32_t sent; /* packets of `next` that have PSNs */
};

/* Writer: TPS. */
struct hca_tp_tx {
	uint32_t una;	/* [pub] oldest PSN that is not acknowledged */
	uint32_t next;	/* [pub] first PSN that was never sent */
	uint32_t tpmsn; /* of the next operation */
	/* the resend set: PSNs in the bitmap `again`, none of which is before again_at */
	uint32_t again_n;
	uint32_t again_at;
	uint32_t high; /* highest PSN ever sent again, not before una - 1 */
	uint32_t mark; /* MARK: first PSN sent after the last phase RTX */
	/* TPNAK obeyed last, with bit 31; 0: none since una moved or the timer expired */
	uint32_t nak;
	uint32_t got_n;		  /* packets in the bitmap `got` */
	uint64_t *got;		  /* CEU: bitmap of W: received, by the peer's word */
	uint64_t *again;	  /* CEU: bitmap of W */
	struct hca_tp_slot *slot; /* CEU: W of them */
	uint64_t deadline;	  /* of the retransmission timer; HCA_TP_NEVER: it does not run */
	uint64_t newest;	  /* sent_at of the latest packet known to have arrived */
	uint64_t min_rtt;	  /* HCA_TP_NEVER: no packet was timed yet */
	uint64_t srtt;		  /* 0: no packet was timed yet */
	uint64_t rtt;		  /* of the last answer; 0: it reported no packet sent once */
	uint64_t sent_at;	  /* of the packet sent last */
	uint32_t lost;		  /* packets put into the resend set, free running */
	uint32_t open;		  /* packets unanswered, as congestion control was told */
	uint32_t cc_life;	  /* hca_cc_life() of its state */
	struct hca_tp_lane_tx lane[HCA_TP_LANES];
	uint32_t desc_seq;	 /* descriptors made */
	uint32_t list_next;	 /* TPs that may send, by index */
	int32_t deficit;	 /* bytes */
	uint16_t since_ask;	 /* packets sent since one with A */
	uint16_t spray;		 /* packets sent with spray */
	uint16_t timer_armed;	 /* [pub] the wheel has an entry */
	uint64_t timer_deadline; /* [pub] ns, read by timer on ARM */
	uint8_t times;		 /* timeouts since una moved */
	uint8_t phase;		 /* enum hca_tp_phase */
	uint8_t turn;		 /* the lane whose operation is, or is to be, sent */
	bool ready;		 /* on the list, or held */
	bool held;		 /* congestion control: until its time, an answer or a loss */
	bool buried;		 /* it is in ERROR, and its owners and software were told */
	bool excused;		 /* a timeout was put off since una moved or one counted */
	/* [pub] counters */
	uint32_t timeouts;
	uint32_t resent[HCA_TP_AGAINS];
	uint32_t acks_stale; /* said nothing new: older than una */
	uint32_t acks_bad;   /* of packets that were never sent */
	uint64_t packets;    /* first sendings */
	uint64_t ops_sent;
	uint64_t ops_acked;
	uint32_t told;	       /* [pub] operations whose status a TPACK has told */
	uint32_t ops_given_up; /* sent, not acknowledged when the TP died */
	uint32_t ops_skipped;  /* never sent */
	/* the device's counters have this part of them */
	uint32_t given_up_counted;
	uint32_t resent_counted[HCA_TP_AGAINS];
	uint64_t packets_counted;
	uint64_t sent_counted;
	uint64_t acked_counted;
} __rte_cache_aligned;

/* An answer that the receiver has to give its peer. */
enum hca_tp_debt {
	HCA_TP_OWES_NOTHING,
	HCA_TP_OWES_LATER, /* an answer before the stage has nothing to do */
	HCA_TP_OWES_NOW,   /* an answer at the end of this poll */
};

/* Writer: TPR. */
struct hca_tp_rx {
	uint32_t epsn;	  /* [pub] expected PSN */
	uint32_t max_rcv; /* [pub] highest PSN received; epsn - 1 when there are no holes */
	uint32_t msn;	  /* TPMSN that the packet at epsn must have */
	uint32_t ack_msn; /* that of the packet accepted last */
	uint64_t *bits;	  /* CEU: bitmap of W: received above epsn */
	uint32_t *seen;	  /* CEU: W words of those: TPMSN and HCA_TP_SEEN_* */
	uint16_t unacked; /* packets in order since the last answer */
	uint16_t ooo;	  /* packets out of order since the last answer */
	uint16_t port;	  /* UDP source port of the packet received last */
	uint8_t debt;	  /* enum hca_tp_debt */
	uint8_t nak;	  /* enum hca_tp_nak */
	/* TPs with answers due, with answers that may wait, and with CNPs due, by index */
	uint32_t list_next, lazy_next, cnp_next;
	uint8_t lists;	 /* those it is on */
	uint32_t broken; /* packets whose TPMSN disagrees with their PSN */
	/* [pub] counters: packets is the sum of the next five */
	uint64_t packets;
	uint64_t passed;
	uint32_t fake;
	uint32_t duplicates;
	uint32_t out_of_order; /* dropped in mode DROP */
	uint32_t invalid;
	uint32_t given;	       /* [pub] PSN up to which all were passed on; when a hole is filled */
	uint32_t accepted_ooo; /* of `passed` and `fake` */
	uint32_t answers;
	uint64_t cnp_at; /* no CNP before, ns */
} __rte_cache_aligned;

#define HCA_TP_SEEN_LAST (UINT32_C(1) << 31)
#define HCA_TP_SEEN_FAKE (UINT32_C(1) << 30)

/* Mode DROP: one TPNAK until epsn moves. */
enum hca_tp_nak {
	HCA_TP_NAK_NONE,
	HCA_TP_NAK_DUE,
	HCA_TP_NAK_SENT,
};

/* Writer: TAI for requests, TAT for responses. A ring of W references without lane. */
struct hca_tp_lane {
	uint32_t head;	/* [pub] free running */
	uint32_t *ring; /* CEU */
} __rte_cache_aligned;

/* Writer: TAI. */
struct hca_tp_tai {
	uint32_t taken;	    /* of the request lane: operations taken back, free running */
	uint32_t open_out;  /* [pub] requests without an answer, at most cfg.requests */
	uint32_t abandoned; /* of these, those given up or overdue */
	uint32_t aged;	    /* of these, for a whole life of the TP */
	uint32_t expired;   /* not counted in open_out any more, and never answered */
	uint32_t told;	    /* of TPACKs with a status: operations that have come back */
	uint64_t expire_at; /* while some are abandoned: when the places of aged ones expire, ns */
} __rte_cache_aligned;

/* Writer: TAT. The peer's requests, and the answers to them. */
struct hca_tp_tat {
	uint32_t taken;	     /* of the response lane: operations taken back, free running */
	uint32_t list_next;  /* TPs with answers to give, by index */
	uint16_t owed_at;    /* the oldest of the answers due, a place in their ring */
	uint16_t owed;	     /* their number */
	uint16_t open;	     /* requests of which packets are missing */
	uint16_t held;	     /* operations of the pool */
	uint32_t open_in;    /* [pub] requests begun and not answered yet */
	uint32_t flood;	     /* wrong token values since flood_from */
	uint64_t flood_from; /* ns */
	uint64_t mismatches; /* [pub] wrong token values */
	uint64_t requests;   /* [pub] begun */
	bool listed;
	bool cut;	    /* a request was answered before its first packets had come */
	bool flooded;	    /* suspects are refused until a second after flood_from */
	uint16_t ordered_n; /* messages that wait for packets before them (ta_order.c) */
	uint32_t ordered;   /* the first of them, its index + 1; 0: none */
} __rte_cache_aligned;

/* Writer: encap; the template by the CEU. */
struct hca_tp_encap {
	uint32_t done_seq; /* [pub] descriptors of TPS finished: copied or dropped */
	uint64_t tx_packets;
	uint64_t tx_bytes;
	struct hca_udp_template tmpl;
} __rte_cache_aligned;

struct hca_tp {
	struct hca_tp_cfg cfg;
	struct hca_tp_tx tx;
	struct hca_tp_rx rx;
	struct hca_tp_lane lane[HCA_TP_LANES];
	struct hca_tp_tai tai;
	struct hca_tp_tat tat;
	struct hca_tp_encap encap;
	void *owed;	    /* TAT: `requests` answers due, HCA_TP_OWED_BYTES each */
	void *open;	    /* TAT: 2 W open operations, HCA_TP_OPEN_BYTES each */
	uint64_t *suspects; /* TAT: bitmap of HCA_TP_SUSPECTS: a wrong token since flood_from */
} __rte_cache_aligned;

_Static_assert(sizeof(struct hca_tp_cfg) <= 128, "two lines");
_Static_assert(sizeof(struct hca_tp_slot) == 16, "packed");
_Static_assert(sizeof(struct hca_tp_rx) <= 128, "two lines");
_Static_assert(sizeof(struct hca_tp_lane) == 64, "one line");
_Static_assert(sizeof(struct hca_tp_tat) == 64, "one line");

/* ---- PSNs and TPMSNs: hca_psn_diff() (abi_roce.h) compares them ---- */

static inline uint32_t
hca_tp_psn(uint32_t psn, uint32_t n)
{
	return (psn + n) & HCA_PSN_MASK;
}

/* How far a is behind b, 0..2^24 - 1. */
static inline uint32_t
hca_tp_past(uint32_t a, uint32_t b)
{
	return (a - b) & HCA_PSN_MASK;
}

static inline uint32_t
hca_tp_psn_before(uint32_t psn)
{
	return (psn - 1) & HCA_PSN_MASK;
}

/* ---- state ---- */

static inline uint32_t
hca_tp_state(const struct hca_tp *tp)
{
	return __atomic_load_n(&tp->cfg.state, __ATOMIC_ACQUIRE);
}

/* Change the state atomically; false: it was not `from` any more. */
static inline bool
hca_tp_state_cas(struct hca_tp *tp, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(&tp->cfg.state, &from, to, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_ACQUIRE);
}

static inline bool
hca_tp_receives(uint32_t state)
{
	return state == HCA_TPS_PASSIVE || state == HCA_TPS_ACTIVE || state == HCA_TPS_DRAIN;
}

static inline bool
hca_tp_sends(uint32_t state)
{
	return state == HCA_TPS_ACTIVE || state == HCA_TPS_DRAIN;
}

/* From any state but RESET; false: it was in ERROR already, or is being reset. */
bool hca_tp_fail(struct hca_tp *tp);

/* ---- memory ---- */

/* Bytes of the block of a TP; it begins at a cache line. */
size_t hca_tp_block_bytes(uint32_t window, uint32_t requests);

/*
 * CEU, while no stage uses the TP: a new life with zeroed memory of that many bytes. cfg.window,
 * cfg.requests and cfg.mode are set; sent and expected: the first PSNs of each direction.
 */
void hca_tp_begin(struct hca_tp *tp, void *block, uint32_t sent, uint32_t expected);

/* ---- lanes: for their writers ---- */

/* Operations that the lane still takes. */
static inline uint32_t
hca_tp_lane_room(const struct hca_tp *tp, uint32_t lane)
{
	uint32_t done = __atomic_load_n(&tp->tx.lane[lane].done, __ATOMIC_ACQUIRE);

	return tp->cfg.window - (tp->lane[lane].head - done);
}

/* There is room. The operation must be complete: TPS may send it at once. */
static inline void
hca_tp_lane_put(struct hca_tp *tp, uint32_t lane, uint32_t index)
{
	struct hca_tp_lane *l = &tp->lane[lane];

	l->ring[l->head & (tp->cfg.window - 1)] = index;
	__atomic_store_n(&l->head, l->head + 1, __ATOMIC_RELEASE);
}

#endif
