/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FRAME_DECAP_H
#define FRAME_DECAP_H

/*
 * Internal to decap: the state of a burst, and the functions that decap.c and the file of each wire
 * call of each other. decap.c takes frames from the port, the wire's file fills in a descriptor of
 * each, decap.c computes the ICRC of all together, the wire's file checks them and puts them into
 * lists, decap.c passes the lists on.
 */

#include "engine/impl.h"
#include "engine/pkt.h"
#include "wire/icrc.h"

/*
 * Frames of a poll where UB is. A peer's polls send a burst of packets and, of UB, some
 * acknowledgements beside it. Who took one burst for each of them would have a queue in the port as
 * long as the peer's windows, whose frames have left the cache when they are read.
 */
#define HCA_DECAP_BURST (HCA_BURST + HCA_BURST / 2)

/*
 * A multicast being delivered to its members, continued when EE has room. The group is looked up
 * again then, because its entry may have been reused between two polls.
 */
struct hca_to_members {
	struct rte_mbuf *frame;
	uint32_t next; /* next member */
	bool served;   /* at least one member was served */
};

/* State of RoCE's part. */
struct hca_decap_roce {
	struct hca_to_members mcast[HCA_DECAP_BURST];
	unsigned int mcast_at, mcast_n; /* first unfinished one; end */
	/* the own address the last datagram was sent to */
	uint8_t own[16];
	uint16_t own_vlan;
	uint64_t own_gids; /* state of the GID table in which it was found, 0: none */
};

/* State of UB's part: which frames of the burst are of it, a bit each; and where they go. */
struct hca_decap_ub {
	uint64_t frames;
	bool last; /* the last frame of the usual form was of it */
	unsigned int n_tpr, n_tps;
	void *to_tpr[HCA_DECAP_BURST], *to_tps[HCA_DECAP_BURST];
};

_Static_assert(HCA_DECAP_BURST < 64, "a bit each");

/* The state of decap. Between description and judging rxd.qpi holds the destination QPN. */
struct hca_decap {
	/* frames that have a descriptor, what their ICRC covers, and its value */
	struct rte_mbuf *frame[HCA_DECAP_BURST];
	struct hca_icrc_span span[HCA_DECAP_BURST];
	uint32_t icrc[HCA_DECAP_BURST];
	unsigned int n;
	/* frames to pass on and to free */
	void *to_ee[HCA_DECAP_BURST], *to_req_rx[HCA_DECAP_BURST];
	struct rte_mbuf *dead[HCA_DECAP_BURST];
	unsigned int n_ee, n_req_rx, n_dead;
	struct hca_decap_roce roce;
	struct hca_decap_ub ub;
	bool stuck; /* a stage had no room, so the port was not read */
};

/* Refuse a frame: count it under its reason and free it with the burst. */
static inline void
hca_decap_drop(struct hca_pipe *h, struct hca_decap *d, struct rte_mbuf *m, enum hca_counter why)
{
	HCA_COUNT_AT(h, HCA_STAGE_DECAP, why);
	d->dead[d->n_dead++] = m;
}

static inline bool
hca_decap_icrc_matches(const struct hca_decap *d, unsigned int i)
{
	const struct hca_icrc_span *span = &d->span[i];

	return d->icrc[i] == hca_icrc_load((const uint8_t *)span->data + span->len);
}

/*
 * Fill in *r and *span of a frame of len bytes with the general parser. Returns 0 or a negative
 * enum hca_wire_drop.
 */
int hca_decap_describe(const uint8_t *frame, uint32_t len, struct hca_rxd *r,
		       struct hca_icrc_span *span);

/*
 * RoCE's part. Fill in the descriptors of the first frames of m[0..n) that have the usual form and
 * add them to the burst. Returns how many those are; the next one needs the general parser.
 */
unsigned int hca_decap_roce_take(struct hca_decap *d, struct rte_mbuf **m, unsigned int n);
/* Fill in *r from *v, with which hca_wire_parse() has returned rc. Returns 0 or a negative drop. */
int hca_decap_roce_describe(const uint8_t *frame, const struct hca_wire_view *v, int rc,
			    struct hca_rxd *r);
/* Check ICRC, QP, addresses, P_Key of frames from .. to - 1, all RoCE; put them into the lists. */
void hca_decap_roce_judge(struct hca_pipe *h, struct hca_decap *d, unsigned int from,
			  unsigned int to);
/* Copy waiting multicasts for their members into the lists, as far as EE has room. */
void hca_decap_roce_multicast(struct hca_pipe *h, struct hca_decap *d, unsigned int room);
void hca_decap_roce_fini(struct hca_decap *d);

struct hca_ub_rxd;

/* A frame that has a descriptor of UB. */
static inline void
hca_decap_ub_add(struct hca_decap *d, struct rte_mbuf *m)
{
	d->ub.frames |= UINT64_C(1) << d->n;
	d->frame[d->n++] = m;
}

/* UB's part, likewise. A device without that wire does not call it. */
unsigned int hca_decap_ub_take(struct hca_decap *d, struct rte_mbuf **m, unsigned int n);
/*
 * Fill in *r and *span of a frame whose headers up to UDP hca_wire_parse() has taken. Returns
 * HCA_CTR_N or the counter of its drop.
 */
enum hca_counter hca_decap_ub_describe(const uint8_t *frame, const struct hca_wire_view *v,
				       struct hca_ub_rxd *r, struct hca_icrc_span *span);
/* Check ICRC, TP, addresses and Entities of frames from .. to - 1, all UB; into the lists. */
void hca_decap_ub_judge(struct hca_pipe *h, struct hca_decap *d, unsigned int from,
			unsigned int to);

#endif
