/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FRAME_DECAP_H
#define FRAME_DECAP_H

/*
 * Decap as the wires see it: the state of a burst. decap.c takes frames from the port; take() and
 * describe() of the wire fill in a descriptor of each; decap.c computes the ICRC of all together;
 * judge() of the wire checks them and calls hca_decap_pass() or hca_decap_drop(); decap.c passes
 * them on.
 */

#include "engine/impl.h"
#include "engine/pkt.h"
#include "engine/wire_ops.h"
#include "wire/icrc.h"

/*
 * Frames of a poll of a device with several wires. A poll of the peer may send a burst of packets
 * and half a burst of acknowledgements. If decap took only one burst, the port's queue would grow
 * as long as the peer's windows, and frames would leave the cache before they are read.
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

/* Frames of the burst that are passed on by one edge. */
struct hca_decap_out {
	unsigned int n;
	void *frame[HCA_DECAP_BURST];
};

/* A device with several wires uses a bit for each frame of the burst. */
_Static_assert(HCA_DECAP_BURST < 64, "a bit each");

/* The state of decap. Between description and judging rxd.qpi holds the destination QPN. */
struct hca_decap {
	/* frames that have a descriptor, the bytes that their ICRC covers, and its value */
	struct rte_mbuf *frame[HCA_DECAP_BURST];
	struct hca_icrc_span span[HCA_DECAP_BURST];
	uint32_t icrc[HCA_DECAP_BURST];
	unsigned int n;
	/* frames to pass on, by enum hca_edge_id, and to free */
	struct hca_decap_out out[HCA_EDGE_N];
	struct rte_mbuf *dead[HCA_DECAP_BURST];
	unsigned int n_dead;
	struct hca_decap_roce roce;
	const struct hca_pipe *h;
	bool stuck; /* a stage had no room, so the port was not read */
	/* of a device with several pipes: frames handed over in this poll, copies in the burst */
	unsigned int handed, copies, next_pipe;
	uint64_t full_since[HCA_PIPES_MAX]; /* ns: the ring to that pipe has no room; 0: it has */
	/* of a device with several wires */
	uint64_t of[HCA_WIRE_ROWS];			 /* the frames of each but RoCE */
	uint64_t of_others;				 /* those of all but RoCE */
	const struct hca_wire_ops *usual[HCA_WIRE_ROWS]; /* those with a usual form */
	unsigned int n_usual, usual_at; /* usual_at: of the last frame that had one */
	/* edges of decap that are in use, without those of RoCE */
	struct hca_edge *edge[HCA_EDGE_N];
	unsigned int n_edges;
};

/* Refuse a frame: count it under its reason and free it with the burst. */
static inline void
hca_decap_drop(struct hca_pipe *h, struct hca_decap *d, struct rte_mbuf *m, enum hca_counter why)
{
	HCA_COUNT_AT(h, HCA_STAGE_DECAP, why);
	d->dead[d->n_dead++] = m;
}

/* Pass a frame on by an edge. */
static inline void
hca_decap_pass(struct hca_decap *d, enum hca_edge_id edge, struct rte_mbuf *m)
{
	struct hca_decap_out *out = &d->out[edge];

	out->frame[out->n++] = m;
}

/* Add n frames of another wire than RoCE to the burst; their descriptors and spans are there. */
static inline void
hca_decap_add(struct hca_decap *d, enum hca_wire wire, unsigned int n)
{
	uint64_t bits = ((UINT64_C(1) << n) - 1) << d->n;

	d->of[wire] |= bits;
	d->of_others |= bits;
	d->n += n;
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
/* A copy of a multicast; NULL: there is no buffer. */
struct rte_mbuf *hca_decap_copy(struct hca_pipe *h, const struct rte_mbuf *m);

#endif
