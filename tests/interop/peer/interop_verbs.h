/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_INTEROP_PEER_INTEROP_VERBS_H
#define TESTS_INTEROP_PEER_INTEROP_VERBS_H

/* The verbs of libibverbs. */

#include <infiniband/verbs.h>
#include <string.h>

/* Status of a receive that is too small for its message; that of rxe differs. */
#define INTEROP_SHORT_RECV IBV_WC_LOC_QP_OP_ERR

/*
 * Least number of messages that must arrive on a bad wire. After a loss rxe skips messages until it
 * sees the first packet of one.
 */
#define INTEROP_LEAST(count) ((count) / 32)

static inline void
interop_path(struct ibv_ah_attr *attr, const uint8_t gid[16], unsigned int sgid_index,
	     unsigned int traffic_class, unsigned int hop_limit)
{
	memset(attr, 0, sizeof(*attr));
	attr->is_global = 1;
	attr->port_num = 1;
	attr->grh.sgid_index = (uint8_t)sgid_index;
	attr->grh.traffic_class = (uint8_t)traffic_class;
	attr->grh.hop_limit = (uint8_t)hop_limit;
	memcpy(attr->grh.dgid.raw, gid, 16);
}

static inline void
interop_invalidate(struct ibv_send_wr *wr, uint32_t rkey)
{
	wr->invalidate_rkey = rkey;
}

/* rxe sets a completion flag that has another name in user space. */
static inline int
interop_invalidated(const struct ibv_wc *wc, uint32_t rkey)
{
	return (wc->wc_flags & (IBV_WC_WITH_INV | IBV_WC_IP_CSUM_OK)) != 0 &&
	       wc->invalidated_rkey == rkey;
}

/* The kernel needs no calls. */
static inline void
interop_progress(struct ibv_context *ctx)
{
	(void)ctx;
}

#endif
