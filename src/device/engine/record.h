/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_RECORD_H
#define ENGINE_RECORD_H

/*
 * Request records. The record that the parser fills in is the window entry; the window of a QP is a
 * ring of record references with three cursors: head (parser), next (req_tx), tail (req_rx, in
 * una). The parser writes a record before it publishes head, req_tx writes psn, npsn and desc_seq
 * before it publishes max_psn; afterwards it is only read.
 *
 * Life cycle: the parser takes it from the pool and puts it into the window; req_tx sends it,
 * possibly several times; req_rx moves the tail past it and writes its CQE; req_tx returns it to
 * the pool after encap has finished its last descriptor (encap.req_done_seq has passed desc_seq).
 * Only req_tx returns records, so the parser never fills a record that may still be sent.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>

#include "abi_wqe.h"
#include "ctxmgt/qp.h"
#include "vtp/window.h"

enum hca_record_flag {
	HCA_REC_SIGNALED = 1u << 0,
	HCA_REC_SOLICITED = 1u << 1,
	HCA_REC_FENCE = 1u << 2,
	HCA_REC_INLINE = 1u << 3, /* body.inline_data holds len bytes */
	HCA_REC_FULL = 1u << 4,	  /* struct hca_record_full */
	HCA_REC_SENT = 1u << 5,	  /* req_tx assigned psn and npsn */
	HCA_REC_RD = 1u << 6,	  /* READ or ATOMIC: counts against max_rd_atomic */
	HCA_REC_LOCAL = 1u << 7,  /* BIND_MW, LOCAL_INV: executed by req_tx, no packet, npsn 0 */
};

/*
 * Destination of a UD message from its WQE (T3-4-8): checked by the parser, read by encap. Source
 * MAC, address and VLAN come from the GID entry at the time of sending.
 */
struct hca_ud_av {
	uint8_t dgid[16]; /* network order; IPv4 as ::ffff:a.b.c.d */
	uint8_t dmac[6];
	uint8_t sgid_index;
	uint8_t hop_limit;
	uint8_t tclass; /* ECN bits are 0 */
	uint8_t priority;
	uint16_t reserved;
	uint32_t pace; /* static rate, ps per byte */
	uint32_t flow_label;
	uint32_t dqpn;
	uint32_t qkey; /* in wire order */
};

struct hca_record {
	uint8_t op; /* HCA_OP_* */
	uint8_t flags;
	uint8_t syndrome; /* 0, or the error that this request completes with */
	uint8_t nsge;	  /* 0, 1 (sge below) or up to 16 (body.sge) */
	uint16_t wqe_index;
	uint16_t reserved;
	uint32_t len; /* message bytes */
	uint32_t imm; /* in wire order; FLUSH: the FETH; READ: see hca_record_resumed() */
	uint64_t raddr;
	uint32_t rkey;	    /* also the key of SEND_INV and LOCAL_INV */
	uint32_t rd_ord;    /* number of READ/ATOMIC records of this QP before this one */
	uint32_t psn, npsn; /* first PSN and number of PSNs */
	uint32_t desc_seq;  /* req_tx.desc_seq after its last descriptor so far */
	uint32_t srqn;	    /* XRC: SRQ at the peer */
	struct hca_sge sge; /* nsge == 1 */
};

/* The first word of a record as a value, which is written and compared at once. */
#define HCA_RECORD_FIRST(op, flags, nsge) \
	((uint32_t)(nsge) << 24 | (uint32_t)(flags) << 8 | (uint32_t)(op))

_Static_assert(offsetof(struct hca_record, flags) == 1 &&
		       offsetof(struct hca_record, syndrome) == 2 &&
		       offsetof(struct hca_record, nsge) == 3,
	       "first word");

static inline uint32_t
hca_record_first(const struct hca_record *r)
{
	uint32_t w;

	memcpy(&w, r, sizeof(w));
	return rte_le_to_cpu_32(w);
}

static inline void
hca_record_set_first(struct hca_record *r, uint32_t w)
{
	w = rte_cpu_to_le_32(w);
	memcpy(r, &w, sizeof(w));
}

/* wqe_index, and reserved as 0, by one store. */
static inline void
hca_record_set_index(struct hca_record *r, uint32_t index)
{
	index = rte_cpu_to_le_32(index & UINT16_MAX);
	memcpy(&r->wqe_index, &index, sizeof(index));
}

#define HCA_INLINE_MAX 480u /* largest inline data: a stride of 512 minus next and inline headers */
#define HCA_SGE_MAX 16u

/* Several SGEs, inline data, an atomic, a UD message or a bind. */
struct hca_record_full {
	struct hca_record r;
	uint64_t swap_add, compare;
	struct hca_ud_av av;
	union {
		struct hca_bind bind;
		struct hca_sge sge[HCA_SGE_MAX]; /* also when nsge == 1 and FULL (atomics) */
		uint8_t inline_data[496];
	} body;
} __rte_cache_aligned;

_Static_assert(sizeof(struct hca_record) == 64, "one line");
_Static_assert(sizeof(struct hca_record_full) == 640, "ten lines");

#define HCA_RECREF_FULL 0x80000000u
#define HCA_RECREF_NONE 0xffffffffu

/*
 * Pools: an array in hugepages and its free references. req_tx returns references through `free`;
 * the parser keeps those it can use on a stack, so that the few records of a lightly loaded device
 * stay in the cache. Functions and reservation rules: record_pool.h.
 */
struct hca_record_owner {
	uint32_t used;		       /* shared records of its QPs */
	uint32_t wait_head, wait_tail; /* its QPs waiting for a record, by parser.list_next */
	uint16_t next;		       /* the owner that waits after it */
	uint16_t waiting;	       /* on the list of waiting owners */
};

struct hca_record_pool {
	struct rte_ring *free; /* uint32_t references, SPSC req_tx -> parser */
	void *mem;
	uint32_t *stack;		/* parser: free references, stack_n of them */
	struct hca_record_owner *owner; /* parser: by usr_page */
	uint16_t *owner_qps;		/* CEU: by usr_page */
	uint32_t count;
	uint32_t mark;				   /* bit in its references: HCA_RECREF_FULL or 0 */
	uint32_t reserved_qps __rte_cache_aligned; /* [pub] CEU: QPs with two records each */
	uint32_t owners;			   /* [pub] CEU: owners with at least one such QP */
	uint32_t stack_n __rte_cache_aligned;	   /* [pub] parser */
	uint32_t shared_used;			   /* parser: records of QPs beyond their own two */
	/* parser: list of waiting owners, head to tail */
	uint32_t waiting;
	uint16_t wait_head, wait_tail;
};

/* The pools of a wire: records without and with a list of SGEs or data. */
struct hca_record_pools {
	struct hca_record_pool small, full;
};

/* Atomic: req_tx may set an error for a request that was sent, while req_rx reads it. */
static inline uint8_t
hca_record_syndrome(const struct hca_record *r)
{
	return __atomic_load_n(&r->syndrome, __ATOMIC_RELAXED);
}

/* READ: the packet from which it was last requested; req_tx writes it while req_rx may read it. */
static inline uint32_t
hca_record_resumed(const struct hca_record *r)
{
	return __atomic_load_n(&r->imm, __ATOMIC_RELAXED);
}

/* 1: any kind of SEND; 0: another request. */
static inline uint32_t
hca_record_sends(const struct hca_record *r)
{
#define X(name, code, wr, wc, kind, flags, bth) \
	| (uint32_t)(((flags) & (HCA_WQE_OP_RECV | HCA_WQE_OP_RADDR)) == HCA_WQE_OP_RECV) << (code)
	const uint32_t sends = 0 HCA_OP_LIST(X);
#undef X

	return sends >> (r->op & 31) & 1;
}

/* Whether its operation is of one of these kinds: a set of 1 << HCA_KIND_*. */
static inline bool
hca_record_is(const struct hca_record *r, uint32_t kinds)
{
	static const uint8_t kind_of[32] = {
#define X(name, code, wr, wc, kind, flags, bth) [code] = HCA_KIND_##kind,
		HCA_OP_LIST(X)
#undef X
	};

	return (kinds >> kind_of[r->op & 31] & 1) != 0;
}

/* The SGEs of a record, wherever they are stored. */
static inline const struct hca_sge *
hca_record_sges(const struct hca_record *r)
{
	return r->flags & HCA_REC_FULL ? ((const struct hca_record_full *)r)->body.sge : &r->sge;
}

#endif
