/* SPDX-License-Identifier: BSD-3-Clause */

#include "abi_cqe.h"
#include "core/core.h"
#include "ctxmgt/qp.h"
#include "vtp/window.h"

#define BIND_RIGHTS \
	(HCA_ACCESS_REMOTE_WRITE | HCA_ACCESS_REMOTE_READ | HCA_ACCESS_REMOTE_ATOMIC | \
	 HCA_ACCESS_FLUSH_GLOBAL)
#define BIND_WRITES (HCA_ACCESS_REMOTE_WRITE | HCA_ACCESS_REMOTE_ATOMIC)

static struct hca_mpt_entry *
entry_of(const struct hca_core *h, uint32_t key)
{
	return &h->vtp.mpt[HCA_KEY_INDEX(key) & h->vtp.mpt_mask];
}

static uint32_t
state_of(const struct hca_mpt_entry *e)
{
	return __atomic_load_n(&e->state, __ATOMIC_ACQUIRE);
}

/*
 * A bind uses windows and regions of the client that posts it: those of another client of the PD
 * may be freed at any time, without waiting for the round of a bind.
 */
static bool
own_domain(const struct hca_core *h, const struct hca_mpt_entry *e, const struct hca_qp_cfg *qp)
{
	return hca_mpt_domain(&h->vtp, e) == qp->usr_page;
}

/* Whether the QP may bind the window; state: its present state. */
static bool
window_fits(const struct hca_mpt_entry *w, uint32_t state, const struct hca_qp_cfg *qp,
	    const struct hca_bind *b)
{
	bool type2;

	if (state != HCA_MPT_UNBOUND && state != HCA_MPT_VALID && state != HCA_MPT_FOREIGN)
		return false;
	if (w->flags & HCA_MPT_FLAG_REGION || w->pd != qp->pd ||
	    __atomic_load_n(&w->doomed, __ATOMIC_ACQUIRE))
		return false;
	/* only the consumer's tag may differ */
	if (HCA_KEY_TAG(w->key ^ b->new_key) != (w->key ^ b->new_key) ||
	    HCA_KEY_TAG(w->key ^ b->old_key) != (w->key ^ b->old_key))
		return false;
	type2 = w->flags & HCA_MPT_FLAG_WINDOW2;
	return !type2 || b->length != 0;
}

/* Whether the region allows this binding; whether it is still live is checked after counting. */
static bool
region_fits(const struct hca_mpt_entry *r, const struct hca_qp_cfg *qp, const struct hca_bind *b)
{
	uint32_t needed = HCA_MPT_FLAG_REGION | HCA_ACCESS_MW_BIND;

	if (b->access & BIND_WRITES)
		needed |= HCA_ACCESS_LOCAL_WRITE;
	return state_of(r) == hca_mpt_live_state(r) && r->key == b->lkey && r->pd == qp->pd &&
	       (r->flags & needed) == needed && b->length <= r->length &&
	       b->addr - r->start <= r->length - b->length;
}

/* First count, then check the state: HW2SW_MPT does it in the reverse order. */
static bool
pin(struct hca_mpt_entry *r)
{
	__atomic_fetch_add(&r->windows, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&r->state, __ATOMIC_SEQ_CST) == hca_mpt_live_state(r))
		return true;
	__atomic_fetch_sub(&r->windows, 1, __ATOMIC_SEQ_CST);
	return false;
}

void
hca_window_unpin(struct hca_core *h, struct hca_mpt_entry *e)
{
	if (e->parent != 0)
		__atomic_fetch_sub(&h->vtp.mpt[e->parent].windows, 1, __ATOMIC_SEQ_CST);
	e->parent = 0;
}

uint8_t
hca_window_claim(struct hca_core *h, const struct hca_qp_cfg *qp, const struct hca_bind *b)
{
	struct hca_mpt_entry *w = entry_of(h, b->new_key), *r = entry_of(h, b->lkey);
	uint32_t state = state_of(w);

	if (!own_domain(h, w, qp) || !window_fits(w, state, qp, b) ||
	    b->access & ~(BIND_RIGHTS | HCA_ACCESS_ZERO_BASED))
		return HCA_SYND_MW_BIND;
	if (b->length != 0 && (!own_domain(h, r, qp) || !region_fits(r, qp, b) || !pin(r)))
		return HCA_SYND_MW_BIND;
	if (!hca_mpt_cas(w, state, HCA_MPT_BUSY)) {
		if (b->length != 0)
			__atomic_fetch_sub(&r->windows, 1, __ATOMIC_SEQ_CST);
		return HCA_SYND_MW_BIND;
	}
	hca_window_unpin(h, w);
	if (b->length != 0)
		w->parent = (uint32_t)(r - h->vtp.mpt);
	return 0;
}

void
hca_window_bind(struct hca_core *h, const struct hca_qp_cfg *qp, const struct hca_bind *b)
{
	struct hca_mpt_entry *w = entry_of(h, b->new_key);
	const struct hca_mpt_entry *r = entry_of(h, b->lkey);
	uint32_t type2 = w->flags & HCA_MPT_FLAG_WINDOW2;
	uint64_t off, lin;

	w->key = b->new_key;
	if (b->length == 0) {
		__atomic_store_n(&w->state, HCA_MPT_UNBOUND, __ATOMIC_RELEASE);
		return;
	}
	off = b->addr - r->start;
	lin = r->first + off;
	w->start = b->access & HCA_ACCESS_ZERO_BASED ? 0 : b->addr;
	w->length = b->length;
	w->base = r->base != NULL ? r->base + off : NULL;
	w->foreign = r->foreign;
	/* the CEU may read the REGION flag at the same time */
	__atomic_store_n(&w->flags, type2 | HCA_MPT_FLAGS_OF(b->access), __ATOMIC_RELAXED);
	w->page_shift = r->page_shift;
	w->mtt = r->mtt + (uint32_t)(lin >> r->page_shift);
	w->first = (uint32_t)(lin & ((UINT64_C(1) << r->page_shift) - 1));
	w->qpn = qp->local_qpn;
	w->generation = qp->generation;
	__atomic_store_n(&w->state, type2 ? HCA_MPT_BOUND : hca_mpt_live_state(w),
			 __ATOMIC_RELEASE);
}

/* Whether e is a type 2 window bound to this generation of the QP, under this key. */
static bool
owned(const struct hca_mpt_entry *e, const struct hca_qp_cfg *qp, uint32_t key)
{
	return state_of(e) == HCA_MPT_BOUND && e->key == key && e->pd == qp->pd &&
	       e->qpn == qp->local_qpn && e->generation == qp->generation;
}

const struct hca_mpt_entry *
hca_vtp_check_bound(const struct hca_vtp *v, uint32_t key, const struct hca_qp_cfg *qp,
		    uint32_t access, uint64_t va, uint64_t len)
{
	const struct hca_mpt_entry *e = &v->mpt[HCA_KEY_INDEX(key) & v->mpt_mask];

	if (!owned(e, qp, key) || e->foreign || (e->flags & access) != access || len > e->length ||
	    va - e->start > e->length - len)
		return NULL;
	return e;
}

bool
hca_window_owned(const struct hca_core *h, const struct hca_qp_cfg *qp, uint32_t key)
{
	return owned(entry_of(h, key), qp, key);
}

bool
hca_window_invalidate(struct hca_core *h, const struct hca_qp_cfg *qp, uint32_t key)
{
	struct hca_mpt_entry *e = entry_of(h, key);

	if (!owned(e, qp, key) || !hca_mpt_cas(e, HCA_MPT_BOUND, HCA_MPT_BUSY))
		return false;
	hca_window_unpin(h, e);
	return true;
}

void
hca_window_settle(struct hca_core *h, uint32_t key)
{
	struct hca_mpt_entry *e = entry_of(h, key);

	hca_window_unpin(h, e);
	__atomic_store_n(&e->state, HCA_MPT_UNBOUND, __ATOMIC_RELEASE);
}
