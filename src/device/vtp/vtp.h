/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VTP_VTP_H
#define VTP_VTP_H

/*
 * Virtual-to-physical: memory keys to CPU addresses (MPT and MTT, T3-2-17, T3-2-22).
 *
 * hca_vtp_check() is the one check of a copy: key, state, PD, rights and range. The entry it
 * returns is valid until the end of the caller's poll() (the RCU read section): nobody may keep it,
 * or an address from hca_vtp_ptr(), any longer. Any lcore may read; the CEU writes.
 *
 * CPU address = MTT[mtt + (lin >> page_shift)] + (lin & page_mask), lin = first + (va - start).
 * Entries whose pages follow each other on the bus carry the address of their first byte in base.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>

#include "abi_ctx.h"

struct hca_mpt_entry {
	uint64_t start; /* va */
	uint64_t length;
	uint8_t *base; /* address of byte `start` when contiguous, else NULL */
	uint32_t key;  /* all 32 bits */
	uint32_t pd;
	uint32_t state; /* [pub] enum hca_mpt_state, one atomic word */
	uint32_t flags; /* HCA_ACCESS_* and HCA_MPT_FLAG_* */
	uint64_t first; /* offset of byte `start` in its first page */
	uint32_t mtt;	/* index of the first MTT entry */
	uint32_t mtt_count;
	uint8_t page_shift;
	uint8_t reserved[3];
	uint32_t users; /* CEU: live queues on this MR */
} __rte_cache_aligned;

_Static_assert(sizeof(struct hca_mpt_entry) == 64, "one line");

enum hca_mpt_state {
	HCA_MPT_FREE = 0,
	HCA_MPT_VALID = 1,
	HCA_MPT_DYING = 2, /* HW2SW_MPT waits for its round */
};

struct hca_vtp {
	struct hca_mpt_entry *mpt;
	uint64_t *mtt;	   /* bus addresses = CPU addresses, host order */
	uint32_t mpt_mask; /* entries - 1 */
	uint32_t mtt_count;
	uint16_t *mtt_ref; /* CEU: live MPTs over each MTT entry */
};

struct hca;

int hca_vtp_init(struct hca *h);
void hca_vtp_fini(struct hca *h);

/* NULL: the access is not allowed. len 0 checks the key all the same. */
static inline const struct hca_mpt_entry *
hca_vtp_check(const struct hca_vtp *v, uint32_t key, uint32_t pd, uint32_t access, uint64_t va,
	      uint64_t len)
{
	const struct hca_mpt_entry *e = &v->mpt[HCA_KEY_INDEX(key) & v->mpt_mask];
	uint64_t off = va - e->start;

	if (unlikely(__atomic_load_n(&e->state, __ATOMIC_ACQUIRE) != HCA_MPT_VALID ||
		     e->key != key || e->pd != pd || (e->flags & access) != access ||
		     len > e->length || off > e->length - len))
		return NULL;
	return e;
}

/* CPU address of va and how many bytes follow it without a break (at most len). */
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
 * Scatter len bytes to va (already checked): every byte but the last, then the last, so that a
 * program polling the last byte sees all of them. Plain CPU copies; ops gives the copy kernel.
 */
struct hca_icrc_ops;
void hca_vtp_scatter(const struct hca_vtp *v, const struct hca_mpt_entry *e, uint64_t va,
		     const uint8_t *src, uint32_t len, const struct hca_icrc_ops *ops);

/*
 * SW2HW_MPT in slices, so that a huge region does not hold up the CEU: hca_mpt_begin() judges the
 * mailbox, then hca_mpt_slice() as often as it answers HCA_MPT_AGAIN judges MTT entries, then
 * hca_mpt_commit(). Nothing changes before commit. All return enum hca_stat otherwise. CEU only.
 */
#define HCA_MPT_AGAIN (-1)

struct hca_mpt_build {
	struct hca_mpt_entry e;
	uint64_t psize;
	uint64_t run_bus, run_len; /* bytes that follow each other and are not checked yet */
	uint64_t left;		   /* bytes of the region behind those */
	uint32_t at;		   /* entries seen */
	bool contiguous;
};

int hca_mpt_begin(struct hca *h, uint32_t index, const struct hca_mpt *m, struct hca_mpt_build *b);
int hca_mpt_slice(struct hca *h, struct hca_mpt_build *b);
int hca_mpt_commit(struct hca *h, uint32_t index, const struct hca_mpt_build *b);
/* The entry is DYING and the round is over: drop it. */
void hca_mpt_release(struct hca *h, uint32_t index);
/* WRITE_MTT: n entries from start on. */
int hca_mtt_write(struct hca *h, uint64_t start, const uint64_t *bus, uint32_t n);

#endif
