/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTXMGT_QP_H
#define CTXMGT_QP_H

/*
 * The key-QPC store: the data path's fields of a QP, an array in hugepages indexed by the index
 * bits of the QPN, divided into cache lines by writer. Configuration that a stage needs per message
 * is repeated in that stage's own line: the CEU writes it at RST2INIT..RTR2RTS while the stage does
 * not run for this QP, so each line still has one writer at any time.
 *
 * Words marked [pub] are read by other lcores: stored with release, loaded with acquire, never
 * torn. All others are private to the line's stage. Host byte order unless stated otherwise; PSNs
 * are 24-bit values in uint32_t.
 *
 * parser.chain, the window, ee.jobs and ee.recv_sge point into one block per QP (cfg.block),
 * allocated by the CEU at RST2INIT and freed at 2RST after the round. If a QP must answer more
 * READs and ATOMICs at a time than the block has jobs for, these are a separate block.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "abi_ctx.h"
#include "core/qbuf.h"
#include "ctxmgt/jetty.h"
#include "wire/roce_frame.h"

/*
 * One of the last READs and ATOMICs that were executed, to be answered now or possibly again later;
 * see responder/ee.h. A QP has as many as its requester may have outstanding, so they are packed.
 */
struct hca_resp_job {
	uint64_t va; /* READ: next byte to send; ATOMIC: result */
	uint32_t rkey;
	uint32_t left;	     /* READ: bytes still to send */
	uint32_t first : 24; /* PSN of the request when it was executed */
	uint32_t kind : 8;   /* enum hca_op_kind, 0: none yet */
	uint32_t psn : 24;   /* next response PSN */
	uint32_t flags : 8;
	uint32_t msn : 24;
	uint32_t reserved : 8;
	uint32_t pd; /* READ: of its key; XRC: of the SRQ that the request named */
} __attribute__((packed, aligned(4)));

/* In resp_late_psn: the response was one of a repeated READ. */
#define HCA_RESP_LATE_REPEAT (1u << 31)
#define HCA_RESP_JOBS 16u /* of every QP; more only if max_dest_rd_atomic requests it */

/* Line 0. Writer: CEU; state also by req_rx and EE through hca_qp_state_cas(). */
struct hca_qp_cfg {
	uint32_t state;	    /* [pub] enum hca_qp_state */
	uint32_t local_qpn; /* [pub] all 24 bits, 0 = dead */
	union {
		uint32_t remote_qpn;
		uint32_t source_qpn; /* UD: of its datagrams */
	};
	uint32_t pd;
	union {		      /* transport bits of its packets */
		uint64_t ip4; /* [pub] connected, over IPv4: source and destination in one word */
		struct {
			uint32_t peer_ip4, own_ip4; /* network order, as in the packet */
		};
		uint32_t qkey; /* [pub] UD */
	};
	uint32_t scqn, rcqn; /* CQ indexes */
	uint16_t usr_page;
	uint16_t pkey;
	uint8_t service;	      /* enum hca_service */
	uint8_t mtu_log;	      /* 8..12 */
	uint8_t access;		      /* [pub] remote rights, HCA_QP_RIGHTS() */
	uint8_t max_rd_atomic;	      /* [pub] */
	uint8_t max_dest_rd_atomic;   /* [pub] as requested, rounded up to a power of two */
	uint8_t retry_cnt, rnr_retry; /* [pub] */
	/* [pub] 4.096 us << n, 0 = never; also changed by migration */
	uint8_t ack_timeout;
	uint8_t min_rnr_timer; /* [pub] code 0..31 */
	uint8_t draining;      /* [pub] SQD entered, SQ_DRAINED not raised yet */
	uint8_t sqd_notify;    /* [pub] */
	uint8_t ask_addr;      /* [pub] IPv6, or paths that may change: decap uses hca_qp_addr */
	uint32_t generation;   /* counts the generations of this index */
	uint16_t vlan;	       /* VLAN id of the path, 0: none */
	bool privileged;       /* HCA_QPC_PRIVILEGED */
	bool suspend : 1;      /* Jetty: HCA_QPC_SUSPEND */
	bool one_peer : 1;     /* Jetty: HCA_QPC_ONE_PEER */
	bool no_own_group : 1; /* UD: HCA_QPC_NO_OWN_GROUP */
	struct hca_qp_block *block; /* its other memory */
} __rte_cache_aligned;

/* Remote rights in a byte: HCA_ACCESS_*, those of FLUSH at bits 5:4. */
#define HCA_QP_RIGHTS(access) \
	((uint8_t)(((access)&HCA_ACCESS_REMOTE & ~HCA_ACCESS_FLUSH) | \
		   ((access)&HCA_ACCESS_FLUSH) >> 4))
#define HCA_QP_RIGHT_FLUSH(placement) ((uint32_t)(placement) << 4)

/* Paths of a QP; values are bits of the QPC's migration state. */
#define HCA_QP_PATHS 2u

/* Place 1 of a QP's paths, which exists if the QP has or had a second path. */
struct hca_qp_second {
	struct hca_udp_template tmpl;
	struct hca_qpc_path words; /* CEU: the alternate path as it was set, for QUERY_QP */
};

/* Start of a QP's own memory; struct hca_qp_work in ceu/qp.h has more of it. */
struct hca_qp_block {
	struct hca_qp_second *second; /* [pub] CEU; stored before anything that says it is used */
};

/*
 * Written by the CEU; mig and encap.path also by a stage that migrates the QP (engine/migrate.h).
 * Read where the fast paths do not apply: packets over IPv6, alternate paths, XRC. Fields of a path
 * change only while no stage uses it: ceu/qp_path.c.
 */
struct hca_qp_addr {
	uint8_t peer_gid[HCA_QP_PATHS][16]; /* network order; IPv4 as ::ffff:a.b.c.d */
	uint16_t pkey[HCA_QP_PATHS];
	uint16_t vlan[HCA_QP_PATHS]; /* id, 0: none */
	uint32_t mig;		     /* [pub] enum hca_mig_state or HCA_MIG_HELD */
	union {
		uint32_t xrcd;	/* XRC domain of an XRC_TGT QP */
		uint32_t limit; /* [pub] of others: the rate limit, ps per byte, 0: none */
	};
	uint8_t ack_timeout[HCA_QP_PATHS];
	uint8_t rate[HCA_QP_PATHS]; /* static, as in the QPC */
	uint8_t alt_valid;	    /* the unused path may be migrated to */
	uint8_t pkey_index;	    /* [pub] of the path in use */
	/* req_tx, of QPs that wait for a time: when the next frame may leave, ns */
	uint64_t pace_at;
} __rte_cache_aligned;

/* Lines 1-2. Writer: parser; the CEU zeroes them at RST2INIT before it sets its members. */
struct hca_qp_parser {
	struct hca_qbuf sq; /* CEU */
	/* CEU: announced chains, private, room for one per WQE of the SQ: size0[31:24], low bits of
	 * the doorbell[23:0] */
	uint32_t *chain;
	uint32_t *window;     /* CEU: ring of record references, written before head */
	uint32_t window_mask; /* CEU */
	uint8_t sq_stride_log, sq_size_log; /* CEU */
	uint8_t flags;			    /* see parser.h: lists, and reasons for parking */
	uint8_t in_chain;		    /* walking a chain; next_* valid */
	/* [pub] number of records put into the window (free running) */
	uint32_t head;
	uint32_t chain_head, chain_tail;	/* free running */
	uint16_t sq_index;			/* next WQE index, reduced */
	uint8_t next_op, next_size, next_fence; /* of the next WQE of the chain, size in 16 B */
	uint8_t marked;				/* enum hca_parser_marked in parser.h */
	uint32_t rd_count;	       /* READ/ATOMIC records parsed; determines record.rd_ord */
	uint32_t list_next, list_prev; /* ready list or record wait list links, QP indexes */
	uint32_t freed_seen;	       /* sq_freed up to which `held` has been settled */
	uint32_t tail_seen;	       /* window tail (sq_una) last read */
	uint16_t held[2];	       /* number of records in use: one line, full */
	uint16_t chain_len;	       /* WQEs of this chain parsed so far */
	uint16_t full_polls;	       /* visits since the queue was found overfull */
	uint64_t full_since;	       /* ns */
} __rte_cache_aligned;

/* Line 2, after sq_next and sq_freed. Writer: req_tx. */
struct hca_qp_req_tx {
	uint32_t next_psn; /* [pub] */
	uint32_t max_psn;  /* [pub] highest PSN sent + 1 */
	/* [pub] window cursor of the error record that stops the QP; valid with the BAD flag */
	uint32_t bad;
	uint32_t pkt;	       /* packets of record `next` already sent */
	uint32_t desc_seq;     /* number of descriptors given to encap */
	uint32_t rewind_epoch; /* last epoch executed */
	uint32_t list_next;
	int32_t deficit; /* bytes */
	uint16_t since_ackreq;
	uint8_t flags;	      /* see req_tx.h */
	uint8_t mtu_log;      /* CEU */
	uint32_t window_mask; /* CEU */
	uint32_t *window;     /* CEU */
	/* CEU and migration, for UD the current datagram: ps per byte, 0 = no limit */
	uint32_t pace;
	uint8_t transport;   /* CEU: top three bits of BTH opcodes */
	uint8_t unreliable;  /* CEU: UC, UD: requests complete when they have been copied */
	uint8_t failed_seen; /* value of encap.req_failed already handled, low bits */
	uint8_t again;	     /* enum hca_again: reason of the last rewind */
};

/* Line 3, after sq_una. Writer: req_rx. The CEU zeroes it at RST2INIT. */
struct hca_qp_req_rx {
	uint64_t rewind;      /* [pub] epoch << 32 | enum hca_again << 24 | PSN to go back to */
	uint32_t rd_done;     /* [pub] READ/ATOMIC records completed */
	uint16_t timer_armed; /* [pub] the wheel has an entry */
	/* time granted since the timeout expired, in units of HCA_PORT_WAIT_LOG */
	uint16_t port_waits;
	uint64_t timer_deadline;      /* [pub] ns, read by timer on ARM */
	uint64_t deadline;	      /* actual deadline, updated lazily */
	uint32_t *window;	      /* CEU */
	uint64_t rx_packets;	      /* [pub] responses */
	uint32_t window_mask;	      /* CEU */
	uint8_t retries, rnr_retries; /* used since the last progress; limits in cfg */
	uint8_t flags;		      /* [pub] see req_rx.h */
	uint8_t sq_stride_log;	      /* CEU: for the wqe field of CQEs */
};

/* Lines 4-5. Writer: execution_engine. */
struct hca_qp_ee {
	uint32_t epsn;	   /* [pub] expected PSN */
	uint32_t msn;	   /* [pub] */
	uint64_t write_va; /* next byte of the WRITE in progress */
	uint32_t write_rkey;
	uint32_t msg_left;    /* bytes of the message still expected (WRITE) or room left (SEND) */
	uint32_t msg_done;    /* bytes of the message received */
	uint8_t msg_kind;     /* enum ee_msg_kind in ee.h */
	uint8_t mtu_log;      /* CEU */
	uint8_t job_now;      /* slot + 1 of the job being answered, 0: none */
	uint8_t unacked;      /* packets accepted since the last acknowledgement */
	uint16_t flags;	      /* enum ee_flag in ee.h */
	uint16_t accepted_at; /* when the last SEND or WRITE was accepted, EE_STAMP_NS, low bits */
	uint32_t job_pending; /* bits of ring slots that must be answered, or answered again */
	uint32_t list_next;   /* list of QPs with pending responses */
	uint32_t lazy_next;   /* list of QPs to acknowledge when the stage becomes idle */
	uint64_t rx_packets;  /* [pub] requests */
	uint64_t rx_bytes;    /* [pub] their payload */
	/* second line */
	struct hca_qbuf rq;	   /* CEU */
	uint32_t rq_consumed;	   /* [pub] free running */
	uint32_t rq_producer;	   /* private copy of the producer count */
	struct hca_resp_job *jobs; /* CEU */
	struct hca_sge *recv_sge;  /* CEU: private copy of the receive WQE in progress, as many
				   * entries as the stride has room for, at most 16 */
	uint8_t recv_nsge;	   /* entries in recv_sge */
	uint8_t recv_sge_at;	   /* SGE of the next byte */
	uint8_t rq_stride_log, rq_size_log; /* CEU */
	uint32_t recv_sge_off;
	/* number of READs and ATOMICs executed, free running; the ring has job_mask + 1 slots */
	uint32_t job_head;
	uint16_t job_mask; /* CEU */
	uint8_t new_jobs;  /* jobs neither answered completely nor late */
	uint8_t late_seen; /* [pub] encap.resp_late as handled last */
	/* third line */
	uint32_t owed_psn;	 /* PSN that the NAK refuses, or of the duplicate to acknowledge */
	uint32_t recv_off;	 /* with EE_RECV_HELD: byte offset of the WQE taken from an SRQ */
	uint32_t recv_srqn : 24; /* of that SRQ */
	uint32_t owed_syndrome : 8; /* AETH syndrome of the pending NAK */
	uint32_t recv_generation;
	struct hca_srq *srq; /* CEU: replaces the RQ; NULL: none */
	/* counters of rare events [pub] */
	uint64_t rx_dropped; /* of rx_packets: not executed */
	uint32_t duplicate_request;
	uint32_t out_of_sequence;
	uint32_t rnr_nak_sent;
	uint32_t seq_nak_sent;
	uint32_t rx_missing, rx_late, rx_doubled; /* requests */
	uint32_t resp_cqe_error; /* receives completed with an error, including flushed ones */
} __rte_cache_aligned;

/*
 * Writer: encap; the templates by the CEU (hca_roce_template_fill()): only the one that
 * path does not name, or any while the QP cannot send.
 */
struct hca_qp_encap {
	uint32_t
		req_done_seq; /* [pub] requester descriptors finished (copied, dropped or failed) */
	uint32_t req_failed_psn; /* [pub] sent with FAILED to req_tx */
	/* [pub] number of failed gathers; stored before req_done_seq */
	uint32_t req_failed;
	uint32_t resp_failed_psn;    /* [pub] sent with FAILED to EE */
	uint32_t resp_late_psn;	     /* [pub] sent with LATE to EE; HCA_RESP_LATE_REPEAT */
	uint8_t req_failed_syndrome; /* [pub] enum hca_synd */
	uint8_t resp_failed;	     /* resp_failed_psn has been sent */
	uint8_t resp_late;	     /* [pub] number of resp_late_psn sent */
	uint8_t path;		     /* [pub] the path in use; changed by migration */
	uint64_t tx_packets;	     /* [pub] frames built, requests and responses */
	uint64_t tx_bytes;	     /* [pub] their payload */
	/* CEU: headers up to the BTH of place 0; see hca_qp_tmpl() */
	struct hca_udp_template tmpl;
} __rte_cache_aligned;

/*
 * Counters of rare events of the requester: each word has one writer, but the line has two.
 * rx_read_bytes, updated once per burst, is the exception, which costs READs some time.
 */
struct hca_qp_stats {
	/* [pub] req_rx: payload of READ responses; it also writes the next ones up to rx_dropped */
	uint64_t rx_read_bytes;
	uint32_t local_ack_timeout_err;
	uint32_t packet_seq_err;
	uint32_t implied_nak_seq_err;
	uint32_t rnr_nak_received;
	uint32_t rx_missing, rx_late,
		rx_doubled; /* READ responses; doubled: answers of all kinds */
	uint32_t rp_cnp_handled;
	uint64_t rx_dropped;	  /* of req_rx.rx_packets: not used */
	uint64_t req_cqe_error;	  /* [pub] req_rx (UC, UD: req_tx): errors, flushed ones included */
	uint64_t retransmissions; /* [pub] req_tx */
} __rte_cache_aligned;

struct hca_qp {
	struct hca_qp_cfg cfg;
	struct hca_qp_parser parser;
	/*
	 * Cursors of the requester in the window, each at the head of its writer's line. The parser
	 * reads only these of a requester: they have this place whatever the transport is. In a
	 * Jetty, TAI writes the cursors that req_tx and req_rx write in a QP.
	 */
	uint32_t sq_next __rte_cache_aligned; /* [pub] req_tx: window cursor: record being sent */
	uint32_t sq_freed; /* [pub] req_tx: window cursor: records returned to their pool */
	/* by service: RoCE, or UB (jetty.h) */
	union {
		struct hca_qp_req_tx req_tx;
		struct hca_qp_tai tai;
	};
	/* [pub] req_rx, of UC and UD req_tx, CEU at RTR2RTS: window tail << 32 | unacked_psn */
	uint64_t sq_una __rte_cache_aligned;
	union {
		struct hca_qp_req_rx req_rx;
		struct hca_qp_tai_wait tai_wait;
	};
	struct hca_qp_ee ee;
	struct hca_qp_encap encap;
	struct hca_qp_addr addr;
	struct hca_qp_stats stats;
} __rte_cache_aligned;

_Static_assert(sizeof(struct hca_resp_job) == 32, "packed");
_Static_assert(sizeof(struct hca_qp_cfg) == 64, "one line");
_Static_assert(sizeof(struct hca_qp_parser) <= 128, "at most two lines");
_Static_assert(offsetof(struct hca_qp, sq_una) - offsetof(struct hca_qp, sq_next) == 64,
	       "one line");
_Static_assert(offsetof(struct hca_qp, ee) - offsetof(struct hca_qp, sq_una) == 64, "one line");
_Static_assert(offsetof(struct hca_qp, tai) == offsetof(struct hca_qp, req_tx) &&
		       offsetof(struct hca_qp, tai_wait) == offsetof(struct hca_qp, req_rx),
	       "UB's requester has the place of RoCE's");
_Static_assert(offsetof(struct hca_qp, tai_wait.timer_armed) ==
			       offsetof(struct hca_qp, req_rx.timer_armed) &&
		       offsetof(struct hca_qp, tai_wait.timer_deadline) ==
			       offsetof(struct hca_qp, req_rx.timer_deadline),
	       "the timer reads both alike");
_Static_assert(sizeof(struct hca_qp_ee) <= 192, "at most three lines");
_Static_assert(offsetof(struct hca_qp_ee, rq) == 64, "a WRITE touches one line");
_Static_assert(offsetof(struct hca_qp_ee, owed_psn) == 128, "a SEND two");
_Static_assert(sizeof(struct hca_qp_stats) == 64, "one line");
_Static_assert(sizeof(struct hca_qp_encap) <= 128, "two lines");

/* Add to a word of hca_qp_stats; only by its writer. */
static inline void
hca_qp_stat_add(uint64_t *word, uint64_t n)
{
	__atomic_store_n(word, *word + n, __ATOMIC_RELAXED);
}

static inline void
hca_qp_stat_add32(uint32_t *word, uint32_t n)
{
	__atomic_store_n(word, *word + n, __ATOMIC_RELAXED);
}

static inline uint32_t
hca_qp_state(const struct hca_qp *qp)
{
	return __atomic_load_n(&qp->cfg.state, __ATOMIC_ACQUIRE);
}

/* Change the state atomically; false: it was not `from` any more. */
static inline bool
hca_qp_state_cas(struct hca_qp *qp, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(&qp->cfg.state, &from, to, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_ACQUIRE);
}

/* Template of a place; NULL: the QP does not have that place. */
static inline const struct hca_udp_template *
hca_qp_tmpl(const struct hca_qp *qp, uint32_t place)
{
	const struct hca_qp_second *second;

	if (likely(place == 0))
		return &qp->encap.tmpl;
	second = __atomic_load_n(&qp->cfg.block->second, __ATOMIC_ACQUIRE);
	return second != NULL ? &second->tmpl : NULL;
}

/* Template of the path in use. */
static inline const struct hca_udp_template *
hca_qp_template(const struct hca_qp *qp)
{
	return hca_qp_tmpl(qp, __atomic_load_n(&qp->encap.path, __ATOMIC_ACQUIRE));
}

/* Reference at a window cursor; the slot may be written concurrently, for prefetching. */
static inline uint32_t
hca_window_ref(const uint32_t *window, uint32_t mask, uint32_t cursor)
{
	return __atomic_load_n(&window[cursor & mask], __ATOMIC_RELAXED);
}

/* Read an attribute of one byte that may be changed while the QP runs. */
static inline uint32_t
hca_qp_live(const uint8_t *byte)
{
	return __atomic_load_n(byte, __ATOMIC_RELAXED);
}

static inline uint32_t
hca_qp_ack_timeout(const struct hca_qp *qp)
{
	return __atomic_load_n(&qp->cfg.ack_timeout, __ATOMIC_RELAXED);
}

static inline uint32_t
hca_qp_pace(const struct hca_qp *qp)
{
	return __atomic_load_n(&qp->req_tx.pace, __ATOMIC_RELAXED);
}

static inline uint32_t
hca_una_psn(uint64_t una)
{
	return (uint32_t)una;
}

static inline uint32_t
hca_una_tail(uint64_t una)
{
	return (uint32_t)(una >> 32);
}

#endif
