/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTXMGT_JETTY_H
#define CTXMGT_JETTY_H

/*
 * The lines of a Jetty or JFS in the key-QPC store in place of those of req_tx and req_rx. Both
 * lines have one writer, the initiator of UB's transactions (TAI), except members marked CEU: the
 * CEU writes them at RST2RTS, before any stage sees the Jetty. Its cursors in the window (sq_next,
 * sq_freed and sq_una) and its place in the receive queue (second line of struct hca_qp_ee) are
 * where a QP has them.
 *
 * sq_una: window tail << 32 | TASSN of the oldest segment that is in use.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>

#include "abi_service.h"

#define HCA_JETTY_SEGMENTS 512u /* without an answer at a time */

/*
 * A part of a request with a number (TASSN) of its own, from its first sending until it is answered
 * and its operation has come back from the lane.
 */
struct hca_jetty_segment {
	uint32_t cursor; /* window cursor of its request */
	uint32_t op;	 /* index of its operation while that is in a lane, else UINT32_MAX */
	uint32_t number; /* of the TP it went to; while it waits: until when, units of 1024 ns */
	uint8_t state;	 /* enum hca_tai_segment_state */
	uint8_t retries; /* after "not ready" */
	uint8_t packets; /* of its Read_response that have come */
	uint8_t counted; /* enum hca_tai_counted: in which counts of its Jetty it is */
	/* of the Read_response, once a packet has come: its TP, the PSN of the segment's start */
	uint32_t response_tp;
	uint32_t response_psn;
};

/* In place of struct hca_qp_req_tx. */
struct hca_qp_tai {
	uint32_t *window;		   /* CEU */
	struct hca_jetty_segment *segment; /* CEU: ring by TASSN */
	uint32_t window_mask;		   /* CEU */
	uint16_t segment_mask;		   /* CEU */
	uint16_t tassn;			   /* [pub] of the next segment */
	uint16_t open;			   /* segments without an answer */
	uint16_t open_ordered;		   /* of those, relaxed and strong order */
	uint16_t open_reads;		   /* of those, Reads and atomics */
	uint8_t flags;
	uint8_t sq_stride_log; /* CEU: for the WQE offset of CQEs */
	uint32_t sent;	       /* bytes of request sq_next that are segments already */
	int32_t deficit;       /* bytes */
	uint32_t list_next, list_prev;
	uint16_t open_sends; /* of those without an answer, with a receive at the peer */
	uint16_t flushed;    /* [pub] in ERR: FLUSH_DONE was written */
	uint32_t waits;	     /* on which list of those that wait for room */
};

/* In place of struct hca_qp_req_rx; its first members stand where the timer reads them. */
struct hca_qp_tai_wait {
	uint64_t answers;	 /* [pub] received */
	uint32_t again;		 /* segments that wait for an operation, to be sent once more */
	uint16_t timer_armed;	 /* [pub] the wheel has an entry */
	uint16_t excused;	 /* low bits of answers + 1 when timeouts were put off last */
	uint64_t timer_deadline; /* [pub] ns, read by timer on ARM */
	uint64_t deadline;	 /* actual deadline, updated lazily */
	uint64_t reissued;	 /* [pub] segments sent again after "not ready" */
	uint64_t refused;	 /* [pub] segments that failed */
};

_Static_assert(sizeof(struct hca_jetty_segment) == 24, "packed");

#endif
