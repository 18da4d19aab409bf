/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UB_INITIATOR_TA_INITIATOR_CHOOSE_H
#define UB_INITIATOR_TA_INITIATOR_CHOOSE_H

/*
 * Which TP takes the next segment of a request, of those that the client may use. For visits of
 * Jettys (ta_initiator_send.c), which do it for every segment.
 */

#include <rte_branch_prediction.h>

#include "ub/initiator/ta_initiator.h"

struct visit {
	struct hca_pipe *h;
	struct hca_tai_ctx *ctx;
	struct hca_qp *qp;
	uint32_t qpi;
	uint32_t head;
	uint32_t left; /* segments, and requests that fail at once */
	uint32_t list; /* STOP_ROOM */
	uint32_t told; /* TP that TPS is to be told of: something is in its lane; or HCA_TAI_NONE */
	uint32_t put;  /* segments that are not counted yet */
	/* the member of a group that took the last segment, segments that it takes yet; 0: ask */
	uint32_t group, member, room;
};

/*
 * Whether the client of the Jetty has imported the peer of a group. The client writes its WQEs
 * without the driver, so their TP numbers are not trusted. A peer that it has not imported does not
 * exist for it.
 */
static inline bool
is_imported(const struct visit *v, const struct hca_tpg *g)
{
	if (likely(hca_tpg_is_user(g, v->qp->cfg.usr_page)))
		return true;
	HCA_COUNT(v->h, TAI, ub_not_imported);
	return false;
}

/* A user of a TP may use its group; a TP without a group belongs to the driver alone. */
static inline bool
is_imported_tp(const struct visit *v, const struct hca_tp *tp)
{
	static const struct hca_tpg nobodys;
	uint32_t group = __atomic_load_n(&tp->cfg.tpg, __ATOMIC_RELAXED);

	return is_imported(v, group != 0 ? &v->h->ub->tpg[group - 1] : &nobodys);
}

/* The TP that a request names. False: no such TP. */
static inline bool
named_tp(const struct visit *v, uint32_t tpn, uint32_t *tpi)
{
	const struct hca_tp *tp = hca_ub_tp(v->h->ub, tpn);

	*tpi = tpn & v->h->ub->tp_mask;
	return *tpi != HCA_TP_UNRELIABLE && hca_tai_tp_usable(tp) &&
	       __atomic_load_n(&tp->cfg.own_tpn, __ATOMIC_ACQUIRE) == tpn && is_imported_tp(v, tp);
}

static inline void
end_turn(struct hca_tai_turn *turn)
{
	*turn = (struct hca_tai_turn){.member = turn->member + 1};
}

/*
 * The member of a group that takes the next request. *alive: there is one that will. It stays the
 * same for a run of short requests: the peer acknowledges them together, and answers neighbours of
 * one TP together.
 */
static inline bool
member_of(struct visit *v, uint32_t group, uint32_t *tpi, bool *alive)
{
	const struct hca_tpg *g = &v->h->ub->tpg[group];
	struct hca_tai_turn *turn = &v->ctx->turn[group];
	uint32_t n = __atomic_load_n(&g->count, __ATOMIC_ACQUIRE), at;

	*alive = false;
	if (unlikely(n == 0) || !is_imported(v, g))
		return false;
	/* here and not when the share is spent: segments of one visit stay together */
	if (turn->spent >= v->ctx->run)
		end_turn(turn);
	at = turn->member;
	for (uint32_t i = 0; i < n; i++, at++) {
		at = at < n ? at : 0;
		*tpi = g->tp[at];
		if (unlikely(!hca_tai_tp_usable(hca_tai_tp(v->h, *tpi))))
			continue;
		*alive = true;
		if (unlikely(hca_tai_tp_room(v->h, *tpi) == 0))
			continue;
		if (unlikely(at != turn->member))
			*turn = (struct hca_tai_turn){.member = at};
		v->group = group;
		v->member = *tpi;
		v->room = hca_tai_tp_room(v->h, *tpi);
		return true;
	}
	return false;
}

/* A member of a group has taken a request of this cost. */
static inline void
spend_turn(struct visit *v, uint32_t group, int32_t cost)
{
	struct hca_tai_turn *turn = &v->ctx->turn[group];

	turn->spent += (uint32_t)cost;
	v->room--;
	if (likely((uint32_t)cost < RTE_MIN(v->ctx->run, HCA_TAI_SEGMENT)))
		return;
	end_turn(turn);
	v->room = 0;
}

/* The TP of the next segment of a request; *alive false: it never gets one. */
static inline bool
choose_tp(struct visit *v, const struct hca_ub_record *r, uint32_t *tpi, bool *alive)
{
	uint32_t number = HCA_UB_NUMBER(r->to);

	*alive = true;
	if (likely(r->to == HCA_UB_MAKE_NUMBER(HCA_UB_TO_TPG, v->group) && v->room != 0)) {
		*tpi = v->member;
		return true;
	}
	switch (HCA_UB_TO(r->to)) {
	case HCA_UB_TO_TPG:
		*alive = number <= v->h->ub->tp_mask;
		v->list = hca_tai_wait_group(v->h, number);
		if (!*alive || !member_of(v, number, tpi, alive))
			return false;
		if (likely(hca_tai_nobody_waits(v->h, v->list)))
			return true;
		v->room = 1; /* only this one: others have waited for the rest */
		return hca_tai_may_go(v->h, v->qp, v->list);
	case HCA_UB_TO_TP:
		*alive = named_tp(v, number, tpi);
		break;
	default:
		*tpi = HCA_TP_UNRELIABLE;
	}
	v->list = hca_tai_wait_tp(v->h, *tpi);
	return *alive && hca_tai_tp_room(v->h, *tpi) != 0 && hca_tai_may_go(v->h, v->qp, v->list);
}

#endif
