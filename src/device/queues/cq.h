/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QUEUES_CQ_H
#define QUEUES_CQ_H

/*
 * Completion queues as their writers (req_rx, EE, req_tx for UC/UD) see them.
 *
 * A CQE: hca_cq_reserve() -> fill in 28 bytes -> hca_cq_publish() stores the last word with release
 * semantics (owner byte last). At the end of a poll the stage calls hca_cq_batch_end(): one full
 * fence, then for each CQ written the arm word is read and at most one event raised.
 *
 * Overrun: reserve returns NULL; the CQE is counted and dropped. Unless the CQ ignores overruns, it
 * goes to the error state once (CQ_ERROR event, and the CEU moves its QPs to ERR).
 *
 * In the second half of a CQE of the larger kind, hca_cq_reserve() stores the time at which the
 * worker's poll began, and hca_cq_set_sender() the VLAN tag and source MAC address.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "abi_cqe.h"
#include "core/stage.h"
#include "core/qbuf.h"

struct hca_core;

struct hca_cq {
	/* line 0: CEU */
	uint32_t state; /* [pub] enum hca_cq_state */
	uint32_t cqn;
	uint32_t comp_eqn;
	uint32_t lkey, pd, usr_page;
	uint32_t single_writer; /* [pub] only one lcore writes it: no CAS; see hca_cq_join() */
	uint32_t users;		/* CEU: QPs with this CQ, for SQ and RQ each */
	uint32_t log_size;	/* CEU */
	uint32_t moderation;	/* [pub] CEU: HCA_CQ_MOD_*, 0 = no moderation */
	uint64_t start;		/* CEU: virtual address of the first CQE */
	uint32_t buf_key[2];	/* CEU: key of the region that buf[i] has a reference to */
	uint32_t flags;		/* HCA_CQ_FLAGS */
	uint32_t pipe;		/* CEU: that of its QPs; HCA_CQ_NO_PIPE */
	/*
	 * two generations of the buffer: resize switches between them by the generation in
	 * `reserve`
	 */
	struct hca_cq_buf {
		struct hca_qbuf q;
		uint32_t mask;	     /* entries - 1 */
		uint32_t record_off; /* offset of the CQ record, after the last CQE */
	} buf[2] __rte_cache_aligned;
	/* writers: CAS on {generation:32, producer index:32}; consumer copy is a hint */
	uint64_t reserve __rte_cache_aligned;
	uint32_t consumer;  /* last consumer index read from the record */
	uint32_t fired_seq; /* arm sequence already fired, CAS */
	uint32_t overrun;   /* CQ_ERROR raised */
	uint32_t mod_mark;  /* producer index when the last event fired */
	uint32_t mod_later; /* [pub] the CEU has been asked to fire when the period is over */
} __rte_cache_aligned;

#define HCA_CQ_NO_PIPE UINT32_MAX

enum hca_cq_state {
	HCA_CQ_FREE = 0,
	HCA_CQ_LIVE = 1,
	HCA_CQ_ERROR = 2, /* overrun */
	HCA_CQ_DYING = 3,
};

/* The stages that write the CQ may set ERROR. */
static inline uint32_t
hca_cq_state(const struct hca_cq *cq)
{
	return __atomic_load_n(&cq->state, __ATOMIC_ACQUIRE);
}

/*
 * hca_create(): allocates the tables of CQs and SRQs. 0 or -ENOMEM; in both cases hca_queues_fini()
 * frees them.
 */
int hca_queues_init(struct hca_core *h);
void hca_queues_fini(struct hca_core *h);

/* CQs that a stage wrote in this poll; a stage owns one and ends it before its poll returns. */
#define HCA_CQ_BATCH 16
struct hca_cq_batch {
	uint32_t n;
	struct {
		uint32_t cqi;
		bool solicited; /* a solicited or error completion was written */
	} e[HCA_CQ_BATCH];
};

/* Slot for one CQE of CQ index cqi, or NULL (overrun, dead CQ). Adds cqi to the batch. */
struct hca_cqe *hca_cq_reserve(struct hca_core *h, uint32_t cqi, struct hca_cq_batch *b,
			       bool solicited, enum hca_stage_id stage);
/*
 * Stores VLAN tag and source MAC address (NULL: unknown) of a datagram in its CQE, which was just
 * reserved in CQ index cqi.
 */
void hca_cq_set_sender(const struct hca_core *h, uint32_t cqi, struct hca_cqe *cqe, uint16_t vlan,
		       const uint8_t *smac);
/* Hands a CQE to software: stores its last word, the owner byte last. last_word: host order value
 * of the word at 1Ch with owner = software (0). */
void hca_cq_publish(struct hca_cqe *cqe, uint32_t last_word);

/* The same without a call. */
static inline void
hca_cq_publish_now(struct hca_cqe *cqe, uint32_t last_word)
{
	cqe->opcode = (uint8_t)last_word;
	cqe->is_send = (uint8_t)(last_word >> 8);
	cqe->reserved1e = (uint8_t)(last_word >> 16);
	/* software polls this byte, so it is stored after all others */
	__atomic_store_n(&cqe->owner, (uint8_t)(last_word >> 24), __ATOMIC_RELEASE);
}

/* Fills in the result of an error CQE; the caller sets QPN, WQE, opcode and owner. */
static inline void
hca_cqe_fill_error(struct hca_cqe *cqe, uint8_t syndrome)
{
	struct hca_cqe_err *err = (struct hca_cqe_err *)cqe;

	err->reserved08 = 0;
	err->reserved0c = 0;
	err->syndrome = syndrome;
	err->vendor_err = 0;
	err->db_cnt = 0;
	err->reserved14 = 0;
}

/*
 * Fast path for a stage that completes many requests of one QP: slots in sequence from a copy of
 * the producer index. Only for CQs that one lcore writes; between open and close no other code may
 * reserve slots in this CQ. The stage fills in the slots taken with owner = hardware; storing the
 * owner byte publishes them.
 */
struct hca_cq_cursor {
	struct hca_cq *cq; /* NULL: closed */
	uint8_t *base;	   /* start of the buffer */
	uint32_t mask;
	uint32_t prod, first; /* next slot, first one not published; free running */
	uint32_t consumer;    /* last known value */
	uint32_t cqi;
	enum hca_stage_id stage;
	struct hca_core *core;
	struct hca_cq_batch *batch;
};

/* false: write this CQ slot by slot with hca_cq_reserve(). */
bool hca_cq_cursor_open(struct hca_core *h, uint32_t cqi, struct hca_cq_batch *b,
			enum hca_stage_id stage, struct hca_cq_cursor *c);

/* Take a slot; NULL: full by the copy of the consumer index: close and use hca_cq_reserve(). */
static inline struct hca_cqe *
hca_cq_cursor_take(struct hca_cq_cursor *c)
{
	uint32_t at = c->prod;

	if (unlikely(at - c->consumer > c->mask))
		return NULL;
	c->prod = at + 1;
	return (struct hca_cqe *)(void *)(c->base + (size_t)(at & c->mask) * HCA_CQE_SIZE);
}

/* Publish all slots taken so far, in order. */
static inline void
hca_cq_cursor_publish(struct hca_cq_cursor *c)
{
	uint32_t first = c->first, prod = c->prod, mask = c->mask;
	uint8_t *base = c->base;

	for (; first != prod; first++) {
		struct hca_cqe *cqe = (void *)(base + (size_t)(first & mask) * HCA_CQE_SIZE);

		__atomic_store_n(&cqe->owner, 0, __ATOMIC_RELEASE);
	}
	c->first = prod;
}

/*
 * Publish, write the producer index back to the CQ, and add the CQ to the batch, which ends after
 * it. Without a slot taken nothing changes: an armed CQ without a completion has no event.
 */
void hca_cq_cursor_close(struct hca_cq_cursor *c);

/*
 * CEU: the stages of a pipe will write the CQ, HCA_CQ_NO_PIPE: of any pipe, or it is resized. True:
 * it had one writer and has several from now on, which must begin after a round.
 */
bool hca_cq_join(struct hca_core *h, uint32_t cqi, uint32_t pipe);

/* CEU: ends a moderation period; raises an event if the CQ is armed and has new completions. */
void hca_cq_fire_late(struct hca_core *h, uint32_t cqi);

void hca_cq_batch_end(struct hca_core *h, struct hca_cq_batch *b, enum hca_stage_id stage);

#endif
