/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_RRC_H
#define ENGINE_RRC_H

/*
 * requester_recv: judges what comes back, releases the window, completes requests. Private to
 * requester_recv.c (packets, retries, messages), rrc_complete.c (window walk, CQEs, errors) and
 * rrc_read.c (READ and ATOMIC responses). HCA_RRC_HOLD is also read by RTC.
 *
 * A run is the work on one QP within one burst. It keeps the cursors in registers and publishes
 * once, in this order: una, CQEs, messages. Software that sees a completion may reuse the buffer
 * and the queue slot at once, so neither encap nor the parser may still see the old una then; and
 * RTC may refill a record as soon as una has passed it, so nothing is read from it afterwards.
 */

#include <stdbool.h>
#include <stdint.h>

#include "abi_cqe.h"
#include "abi_roce.h"
#include "engine/impl.h"
#include "engine/pkt.h"

/* Bits of hca_qp.rrc.flags. */
enum hca_rrc_flag {
	HCA_RRC_HOLD = 1u << 0,	   /* [pub] RNR wait: RTC sends nothing */
	HCA_RRC_IMPLIED = 1u << 1, /* went back for a missing response; once per loss */
	HCA_RRC_BAD = 1u << 2,	   /* rtc.bad holds a record that fails when its turn comes */
	HCA_RRC_LOCAL = 1u << 3,   /* the window may hold executed local operations */
	HCA_RRC_DEAD = 1u << 4,	   /* an error was completed: only errors follow */
	HCA_RRC_PATH1 = 1u << 5,   /* retries are those of path 1 */
};

/* RTC looks at the flags whenever it likes. */
static inline void
hca_rrc_set_flags(struct hca_qp_rrc *q, uint8_t set)
{
	__atomic_store_n(&q->flags, q->flags | set, __ATOMIC_RELEASE);
}

static inline void
hca_rrc_clear_flags(struct hca_qp_rrc *q, uint8_t clear)
{
	__atomic_store_n(&q->flags, q->flags & ~clear, __ATOMIC_RELEASE);
}

/* Deadline of a QP with nothing unacknowledged: the next expiry starts the time. */
#define HCA_RRC_IDLE UINT64_MAX
#define HCA_RRC_PENDING 64u

struct hca_rrc_run {
	struct hca *h;
	struct hca_qp *qp;
	struct hca_cq_batch *batch;
	uint64_t now;
	uint32_t qpi;
	uint32_t tail, upsn, max_psn;	 /* tail and upsn ahead of what is published */
	uint32_t old_tail, old_upsn;	 /* as published */
	uint32_t noted_tail, noted_upsn; /* up to where progress has been noted */
	uint32_t rd_done;
	uint32_t completed;
	uint32_t sends;	  /* of them SENDs */
	uint32_t packets; /* taken in this run, and what READ responses among them carry */
	uint64_t read_bytes;
	uint8_t msg;		 /* flags owed to RTC */
	uint8_t again;		 /* with REWIND: enum hca_again */
	bool dead;		 /* QP is in ERR: the rest of the run is dropped */
	struct hca_cq_cursor cq; /* short way to the CQ, see release_plain() */
	uint32_t pending;	 /* CQEs filled the long way, not yet handed over */
	struct {
		struct hca_cqe *cqe;
		uint32_t last_word;
	} cqe[HCA_RRC_PENDING];
};

/* PSNs from una to p, modulo 2^24: below hca_rrc_outstanding() when p is unacknowledged. */
static inline uint32_t
hca_rrc_ahead(const struct hca_rrc_run *run, uint32_t p)
{
	return (p - run->upsn) & HCA_PSN_MASK;
}

static inline uint32_t
hca_rrc_outstanding(const struct hca_rrc_run *run)
{
	return (run->max_psn - run->upsn) & HCA_PSN_MASK;
}

static inline struct hca_record *
hca_rrc_record(const struct hca_rrc_run *run, uint32_t cursor)
{
	const struct hca_qp_rrc *q = &run->qp->rrc;

	return hca_record(run->h, hca_window_ref(q->window, q->window_mask, cursor));
}

/* rrc_complete.c */
void hca_rrc_begin(struct hca_rrc_run *run, struct hca *h, uint32_t qpi, uint64_t now,
		   struct hca_cq_batch *batch);
/* Publish and tell RTC; the run may go on afterwards. */
void hca_rrc_commit(struct hca_rrc_run *run);
/*
 * Progress: counters of retries start again, and the time for what is still out. Called before
 * anything counts a retry, so that a loss behind the progress counts anew.
 */
void hca_rrc_note_progress(struct hca_rrc_run *run);
/* The record at the tail is done; una moves behind it. */
void hca_rrc_complete_tail(struct hca_rrc_run *run);
/*
 * Releases n PSNs from una on. false: a READ or ATOMIC without response, or a record that fails,
 * stands in the way and is now the tail.
 */
bool hca_rrc_release(struct hca_rrc_run *run, uint32_t n);
/* The record at the tail fails: QP to ERR, its CQE, everything behind it flushed. */
void hca_rrc_fail(struct hca_rrc_run *run, uint8_t syndrome);
/* QP is in ERR or SQE: completes what RTC has handed over. */
void hca_rrc_flush(struct hca_rrc_run *run);

/* rrc_read.c; d: PSNs ahead of una, in the window. */
void hca_rrc_read_response(struct hca_rrc_run *run, struct rte_mbuf *m, uint32_t d);
void hca_rrc_atomic_response(struct hca_rrc_run *run, struct rte_mbuf *m, uint32_t d);

/* requester_recv.c */

/* The packet is not used: the one counter that says why. */
void hca_rrc_drop(struct hca_rrc_run *run, enum hca_counter why);
/* A response before the packet is missing: it is dropped; at most one rewind per loss. */
void hca_rrc_out_of_order(struct hca_rrc_run *run);

#endif
