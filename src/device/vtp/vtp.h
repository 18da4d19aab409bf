/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VTP_VTP_H
#define VTP_VTP_H

/*
 * Virtual-to-physical: memory keys to CPU addresses (MPT and MTT, T3-2-17, T3-2-22).
 *
 * hca_vtp_check() is the one check of a copy: key, state, PD, rights and range. The entry it
 * returns, and addresses from hca_vtp_ptr(), are valid until the end of the caller's poll() (the
 * RCU read section). Any lcore may read; the CEU writes.
 *
 * Memory windows are entries without HCA_MPT_FLAG_REGION. When bound, they contain the translation
 * of their region, so that an access through a window costs the same as one to a region; the region
 * counts its windows and cannot be freed before them. They have remote rights only: a local access
 * requires LOCAL_WRITE or, to read, the REGION flag. A bound window of type 1 is VALID like a
 * region; one of type 2 is BOUND and found by hca_vtp_check_bound(), after hca_vtp_check() has
 * failed.
 *
 * The state is changed by CAS, by the CEU and (windows only, window.c) by req_tx and EE:
 * 	FREE -> UNBOUND (SW2HW_MPT), {VALID, BOUND} -> BUSY -> UNBOUND (unbind, invalidate)
 * 	{UNBOUND, VALID} -> BUSY -> {VALID, BOUND} (bind)
 * 	{UNBOUND, VALID, BOUND} -> DYING -> FREE (HW2SW_MPT, which waits while it is BUSY)
 * FOREIGN replaces VALID for foreign memory and null regions (foreign.h). The stage that made it
 * BUSY owns the entry. A window that HW2SW_MPT waits for cannot be bound again, so the wait ends
 * with the operation in progress. Members change only after a round that began while the entry was
 * BUSY, so no reader sees half a binding.
 *
 * CPU address = MTT[mtt + (lin >> page_shift)] + lin % page size, lin = first + (va - start). For
 * entries with contiguous pages on the bus, base is the address of the first byte.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "abi_ctx.h"
#include "core/core.h"

struct hca_mpt_entry {
	uint64_t start; /* virtual address of the first byte */
	uint64_t length;
	uint8_t *base; /* address of byte `start` when contiguous, else NULL */
	uint32_t key;  /* all 32 bits */
	uint32_t pd;
	uint32_t state; /* [pub] enum hca_mpt_state, one atomic word */
	uint32_t flags; /* HCA_ACCESS_* and HCA_MPT_FLAG_* */
	uint32_t first; /* offset of byte `start` in its first page */
	uint32_t mtt;	/* index of the first MTT entry */
	union {
		uint32_t mtt_count;  /* region */
		uint32_t generation; /* window of type 2: of its QP */
	};
	union {
		uint32_t users; /* region, CEU: live queues on this MR */
		uint32_t qpn;	/* window of type 2: its QP, all 24 bits */
	};
	union {
		uint32_t windows; /* region: number of windows bound to it, atomic */
		uint32_t parent;  /* window: index of its region, 0 = not bound */
	};
	uint8_t page_shift;
	uint8_t doomed;	 /* window, CEU: HW2SW_MPT found it BUSY; it cannot be bound again */
	uint8_t foreign; /* foreign memory or a null region: base is NULL */
	uint8_t reserved;
} __rte_cache_aligned;

_Static_assert(sizeof(struct hca_mpt_entry) == 64, "one line");

enum hca_mpt_state {
	HCA_MPT_FREE = 0,
	HCA_MPT_VALID = 1,
	HCA_MPT_DYING = 2, /* HW2SW_MPT waits for its round */
	HCA_MPT_UNBOUND = 3,
	HCA_MPT_BUSY = 4,    /* req_tx or EE is changing the binding */
	HCA_MPT_BOUND = 5,   /* window of type 2 */
	HCA_MPT_FOREIGN = 6, /* as VALID, but only hca_foreign_find() finds it */
};

/* The DMA domain of an entry that is not free */
static inline uint32_t
hca_mpt_domain(const struct hca_vtp *v, const struct hca_mpt_entry *e)
{
	return __atomic_load_n(&v->domain[e - v->mpt], __ATOMIC_RELAXED);
}

int hca_vtp_init(struct hca_core *h);
void hca_vtp_fini(struct hca_core *h);

static inline uint32_t
hca_mpt_state(const struct hca_mpt_entry *e)
{
	return __atomic_load_n(&e->state, __ATOMIC_ACQUIRE);
}

/* Check an access; returns the entry, or NULL: not allowed. The key is checked even if len is 0. */
static inline const struct hca_mpt_entry *
hca_vtp_check(const struct hca_vtp *v, uint32_t key, uint32_t pd, uint32_t access, uint64_t va,
	      uint64_t len)
{
	const struct hca_mpt_entry *e = &v->mpt[HCA_KEY_INDEX(key) & v->mpt_mask];

	/* the state is read first: other members may be outdated before it is VALID */
	if (unlikely(__atomic_load_n(&e->state, __ATOMIC_ACQUIRE) != HCA_MPT_VALID ||
		     e->key != key || e->pd != pd || (e->flags & access) != access ||
		     len > e->length || va - e->start > e->length - len))
		return NULL;
	return e;
}

/*
 * Whether the entry of the packet before, with the same PD and rights, also grants this access: a
 * run of packets looks at a key once. e: NULL: none.
 */
static inline bool
hca_vtp_grants(const struct hca_mpt_entry *e, uint32_t key, uint64_t va, uint32_t len)
{
	return e != NULL && e->key == key && len <= e->length && va - e->start <= e->length - len;
}

/*
 * Checks a remote access that hca_vtp_check() has refused against type 2 windows bound to this QP.
 * Returns the entry, or NULL: not allowed.
 */
struct hca_qp_cfg;
const struct hca_mpt_entry *hca_vtp_check_bound(const struct hca_vtp *v, uint32_t key,
						const struct hca_qp_cfg *qp, uint32_t access,
						uint64_t va, uint64_t len);

/*
 * First address that a live key grants access to, for a check of the key without a range; 0: no
 * such key. The check decides whether it is live.
 */
static inline uint64_t
hca_vtp_start(const struct hca_vtp *v, uint32_t key)
{
	const struct hca_mpt_entry *e = &v->mpt[HCA_KEY_INDEX(key) & v->mpt_mask];
	uint32_t state = hca_mpt_state(e);

	return state == HCA_MPT_VALID || state == HCA_MPT_BOUND || state == HCA_MPT_FOREIGN
		       ? e->start
		       : 0;
}

/* CPU address of va, and number of contiguous bytes there (at most len). */
static inline uint8_t *
hca_vtp_ptr(const struct hca_vtp *v, const struct hca_mpt_entry *e, uint64_t va, uint32_t len,
	    uint32_t *contig)
{
	uint64_t lin, in_page, rest;

	if (likely(e->base != NULL)) {
		*contig = len;
		return e->base + (va - e->start);
	}
	lin = e->first + (va - e->start);
	in_page = lin & ((1ull << e->page_shift) - 1);
	rest = (1ull << e->page_shift) - in_page;
	*contig = rest < len ? (uint32_t)rest : len;
	return (uint8_t *)(uintptr_t)(v->mtt[e->mtt + (lin >> e->page_shift)] + in_page);
}

/*
 * Store len bytes to va (already checked): the last byte after all others, so that a program
 * polling it sees all of them. Plain CPU copies; ops provides the copy kernel.
 */
struct hca_icrc_ops;
void hca_vtp_scatter(const struct hca_vtp *v, const struct hca_mpt_entry *e, uint64_t va,
		     const uint8_t *src, uint32_t len, const struct hca_icrc_ops *ops);

/*
 * SW2HW_MPT in slices, so that a huge region does not delay the CEU: hca_mpt_begin() checks the
 * mailbox; hca_mpt_slice() checks MTT entries; hca_mpt_commit() writes the entry. The caller
 * repeats the last two while they return HCA_MPT_AGAIN; other results are enum hca_stat. No table
 * changes before commit; an entry whose commit is not finished is DYING and may be released. CEU
 * only.
 */
#define HCA_MPT_AGAIN (-1)

struct hca_mpt_build {
	struct hca_mpt_entry e;
	uint64_t psize;
	uint64_t run_bus, run_len; /* contiguous bytes that are not checked yet */
	uint64_t left;		   /* bytes of the region after those */
	uint32_t at;		   /* number of entries seen */
	uint16_t domain;
	bool contiguous;
	bool entered; /* commit has begun */
};

int hca_mpt_begin(struct hca_core *h, uint32_t index, const struct hca_mpt *m,
		  struct hca_mpt_build *b);
int hca_mpt_slice(struct hca_core *h, struct hca_mpt_build *b);
int hca_mpt_commit(struct hca_core *h, uint32_t index, struct hca_mpt_build *b);
/*
 * HW2SW_MPT: set the state DYING. HCA_MPT_AGAIN: try again at the next poll. RESOURCE_BUSY: a
 * region with queues or windows.
 */
int hca_mpt_dying(struct hca_core *h, uint32_t index);
/* Frees a DYING entry after its round, a slice per call; returns true when it is free. */
bool hca_mpt_release(struct hca_core *h, uint32_t index);
/* WRITE_MTT: n entries from start on. */
int hca_mtt_write(struct hca_core *h, uint64_t start, const uint64_t *bus, uint32_t n);
/*
 * Returns whether live regions of the domain lie in [bus, bus + len) that its DMA windows no longer
 * cover. Not called while a command of the domain is in progress.
 */
bool hca_vtp_uncovered(struct hca_core *h, uint32_t domain, uint64_t bus, uint64_t len);

#endif
