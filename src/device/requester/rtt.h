/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_RTT_H
#define REQUESTER_RTT_H

/*
 * Round trips of QPs, always measured: req_tx notes when it sends a packet that asks for an answer,
 * one of a QP at a time, req_rx how long after that it is acknowledged. A packet that was sent
 * again says nothing. How long a peer waits for its CPU is part of it.
 *
 * The same samples say whether frames of the full MTU pass: a peer to which small frames are
 * acknowledged and full ones never has a path with a smaller MTU. That is kept by the peer's
 * address, because the QP whose full frames are lost may have no small ones.
 *
 * There are HCA_RTT_PLACES at most, by QP index; QPs that share one take turns when it is idle.
 * struct hca_rtt has a line for each of its two writers.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>

#include "engine/impl.h"

#define HCA_RTT_PLACES 1024u
#define HCA_RTT_PEERS 64u	 /* a power of two */
#define HCA_RTT_EVERY_NS 100000u /* a sample of a QP */
#define HCA_RTT_IDLE_NS 1000000000u
/* Half octaves from 2^HCA_RTT_FIRST ns on; shorter and longer times are in the first and last. */
#define HCA_RTT_BUCKETS 44u
#define HCA_RTT_FIRST 9u

struct hca_rtt {
	/* req_tx */
	uint64_t next_at; /* time of the next sample, ns */
	uint64_t sent_at; /* [pub] ns */
	uint32_t psn;	  /* [pub] whose acknowledgement is awaited */
	uint32_t qpi;	  /* [pub] of the QP that has the place */
	uint32_t life;	  /* [pub] its generation + 1; 0: none */
	uint32_t begun;	  /* [pub] samples begun; stored after all above */
	uint32_t spoilt;  /* [pub] begun, when something was sent again */
	bool full;	  /* [pub] the packets acknowledged include a frame of the full MTU */
	/* req_rx */
	uint32_t ended __rte_cache_aligned; /* [pub] begun, as seen when the last sample ended */
	uint32_t of_qpi, of_life;	    /* [pub] of the QP that all below is of */
	uint32_t min_ns;		    /* [pub] */
	bool passed;			    /* frames of the full MTU were acknowledged */
	/* [pub] counts; all are halved when one is full, so that they are of the last hundreds */
	uint8_t bucket[HCA_RTT_BUCKETS];
} __rte_cache_aligned;

/* req_rx: PSNs that a peer acknowledged, of all QPs. Peers of one slot overwrite each other. */
struct hca_rtt_peer {
	uint8_t gid[16];
	bool some;    /* frames */
	uint8_t full; /* log2 of the largest MTU of which full frames were */
};

/* hca_create(), hca_destroy() */
int hca_rtt_init(struct hca_pipe *h);
void hca_rtt_fini(struct hca_pipe *h);

static inline struct hca_rtt *
hca_rtt_of(const struct hca_pipe *h, uint32_t qpi)
{
	return &h->rtt[qpi & h->rtt_mask];
}

struct hca_req_tx_visit;
struct hca_req_rx_run;

/* req_tx: frames of v's QP leave; repeated: some not for the first time. Not for UC and UD. */
void hca_rtt_begin(struct hca_req_tx_visit *v, struct hca_rtt *t, bool repeated);
/* req_rx: a sample is under way in the place of run's QP, and una has moved. */
void hca_rtt_end(struct hca_req_rx_run *run, struct hca_rtt *t);
/*
 * req_rx: una was not acknowledged in time; is it a full frame, none of which has ever passed to
 * this peer, while smaller ones have?
 */
bool hca_rtt_never_full(const struct hca_req_rx_run *run);

#endif
