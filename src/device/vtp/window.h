/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VTP_WINDOW_H
#define VTP_WINDOW_H

/*
 * Memory windows: binding and invalidating in the data path. States and their writers: vtp.h. There
 * are no locks: the state word changes by CAS, and a caller whose CAS fails reports an error.
 *
 * A window belongs to a PD. Type 1 may be rebound at any time and used by every QP of the PD; type
 * 2 must be unbound before it is bound and is used by one QP only. Changing a binding takes two
 * steps, with an RCU round between them if other lcores may be reading the entry:
 *  hca_window_claim()       all checks; the window becomes inaccessible
 *  hca_window_bind()        the new binding
 * or hca_window_invalidate(), hca_window_settle(). Between the steps the window is BUSY. If the
 * second step is not possible, hca_window_settle() leaves the window unbound.
 *
 * Callers: req_tx and EE, within their poll(); the CEU for hca_window_unpin().
 */

#include <stdbool.h>
#include <stdint.h>

#include "vtp/vtp.h"

struct hca_core;
struct hca_qp_cfg;

/* The fields of a BIND_MW WQE. */
struct hca_bind {
	uint32_t access; /* HCA_ACCESS_* */
	uint32_t old_key, new_key;
	uint32_t lkey;
	uint64_t addr, length; /* length 0 unbinds */
};

static inline bool
hca_mpt_cas(struct hca_mpt_entry *e, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(&e->state, &from, to, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_ACQUIRE);
}

/* State of a live region, and of a bound window of type 1. */
static inline uint32_t
hca_mpt_live_state(const struct hca_mpt_entry *e)
{
	return e->foreign ? HCA_MPT_FOREIGN : HCA_MPT_VALID;
}

/* 0: the window of b->new_key is BUSY, its region counts it. Otherwise HCA_SYND_*: no change. */
uint8_t hca_window_claim(struct hca_core *h, const struct hca_qp_cfg *qp, const struct hca_bind *b);
void hca_window_bind(struct hca_core *h, const struct hca_qp_cfg *qp, const struct hca_bind *b);

/* Is key a type 2 window bound to this QP? A request may invalidate no other key. */
bool hca_window_owned(const struct hca_core *h, const struct hca_qp_cfg *qp, uint32_t key);
/* Makes a window that hca_window_owned() accepts BUSY; false: no change. */
bool hca_window_invalidate(struct hca_core *h, const struct hca_qp_cfg *qp, uint32_t key);
/* BUSY -> UNBOUND. */
void hca_window_settle(struct hca_core *h, uint32_t key);

/* Removes the window from the count of its region, if it has one. The caller owns the entry. */
void hca_window_unpin(struct hca_core *h, struct hca_mpt_entry *e);

#endif
