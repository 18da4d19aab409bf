/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CC_CC_H
#define CC_CC_H

/*
 * Congestion control: the seam between the requester and an algorithm. hca_config.congestion names
 * the algorithm of an HCA; NULL is "none". Only requests of reliable QPs are subject to it: RTC
 * asks before it sends them and says what it has sent; RRC tells what it learns from the network.
 *
 * may_send and sent run on the lcore of RTC, acked, round_trip, cnp and lost on that of RRC, begin
 * on that of the CEU while neither of them works for the object. No call may block or allocate. An
 * algorithm defines all of them, with an empty function where it has nothing to do.
 *
 * obj: object index (object.h). now: ns, of poll(). Bytes: of frames, from Ethernet header to ICRC.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_common.h>

#include "engine/msg.h"

struct hca;

struct hca_cc_ops {
	const char *name;
	/* Of its state of each object, zero at first: hca_cc_state(); see there. */
	size_t state_bytes;
	/* A new life of the object begins: nothing is unanswered. */
	void (*begin)(struct hca *h, uint32_t obj);
	/*
	 * Bytes that may leave now; unanswered: PSNs sent and not acknowledged. If the next frame
	 * needs more, the object waits until acked or lost was called for it, or until *again (ns),
	 * which is UINT64_MAX before the call. While nothing is unanswered the answer must allow a
	 * frame of the path MTU or set *again: nothing else would wake the object. One frame may
	 * leave beyond the answer, where the responder would not be asked for an ACK otherwise.
	 */
	uint32_t (*may_send)(struct hca *h, uint32_t obj, uint32_t unanswered, uint64_t now,
			     uint64_t *again);
	/* So many frames left, first and repeated ones. */
	void (*sent)(struct hca *h, uint32_t obj, uint32_t frames, uint64_t bytes, uint64_t now);
	/* So many PSNs more are acknowledged; a response of a READ acknowledges its own. */
	void (*acked)(struct hca *h, uint32_t obj, uint32_t psns, uint64_t now);
	/* A PSN that was sent once was acknowledged ns after that. */
	void (*round_trip)(struct hca *h, uint32_t obj, uint64_t ns, uint64_t now);
	/* A congestion notification packet came from the peer. */
	void (*cnp)(struct hca *h, uint32_t obj, uint64_t now);
	/* RTC goes back to the first unanswered PSN: TIMEOUT, SEQ_NAK or IMPLIED_NAK. */
	void (*lost)(struct hca *h, uint32_t obj, enum hca_again why, uint64_t now);
};

/*
 * The state of an object that the algorithm keeps, for its own functions. It begins at a cache
 * line. Each line has one writer, or atomics: may_send and sent may run beside the others.
 */
void *hca_cc_state(const struct hca *h, uint32_t obj);

/* Round trips: one PSN of each object at a time is timed. Only where there is an algorithm. */
struct hca_cc_flow {
	/* RTC */
	uint64_t sent_at;  /* ns */
	uint32_t psn;	   /* timed */
	uint32_t begun;	   /* [pub] PSNs ever timed; stored after the two above */
	uint32_t repeated; /* [pub] begun, when frames were sent again: that one is not told */
	/* RRC */
	uint32_t ended __rte_cache_aligned; /* [pub] PSNs timed and acknowledged */
} __rte_cache_aligned;

/* hca_create(), hca_destroy() */
int hca_cc_init(struct hca *h);
void hca_cc_fini(struct hca *h);

/* The functions below are called only where hca_config.congestion is not NULL. */

/* CEU, RST2INIT */
void hca_cc_begin(struct hca *h, uint32_t obj);
/* RTC: so much has left, up to the PSN last; repeated: some of it not for the first time. */
void hca_cc_sent(struct hca *h, uint32_t obj, uint32_t last, bool repeated, uint32_t frames,
		 uint64_t bytes, uint64_t now);
/* RRC: n PSNs before una are acknowledged. */
void hca_cc_acked(struct hca *h, uint32_t obj, uint32_t una, uint32_t n, uint64_t now);

#endif
