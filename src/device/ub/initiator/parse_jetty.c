/* SPDX-License-Identifier: BSD-3-Clause */

/* Records of the WQEs of Jettys, for the parser (hca_wire_ops.parse_run and parse). */

#include "ctxmgt/ctxmgt.h"
#include "requester/parser_visit.h"
#include "requester/wqe_unit.h"
#include "ub/initiator/parse_jetty.h"
#include "ub/initiator/wqe_ub.h"

/* The members that the next unit and the chain tell. */
static inline void
jetty_fill(struct hca_ub_record *r, const struct hca_qp_parser *p, const struct hca_next_unit *next)
{
	r->flags |= record_flags(p, next);
	r->op = p->next_op;
	r->wqe_index = p->sq_index;
}

/* An unreliable Send: 0 or a status. The driver of the peer listens at the lowest numbers. */
static uint8_t
jetty_judge_datagram(struct hca_pipe *h, const struct hca_qp *qp, const struct hca_wqe_ub *w,
		     struct hca_ud_av *av)
{
	uint32_t tc = HCA_UB_TC(hca_le32_to_cpu(w->ub->tc));

	if (hca_wqe_judge_address(h, w->ud, av) != 0)
		return HCA_UB_STATUS_UNSUPPORTED_OPCODE;
	if (likely(tc >= HCA_TC_WELL_KNOWN_FREE || qp->cfg.privileged))
		return 0;
	HCA_COUNT(h, PARSER, sq_management_refused);
	return HCA_UB_STATUS_LOCAL_ACCESS;
}

/* Removes flags that the Jetty may not use, and translates the operation to the wire's code. */
static void
jetty_judge_rights(const struct hca_pipe *h, const struct hca_qp *qp, struct hca_ub_record *r)
{
	uint32_t code = HCA_UB_UD_OPERATION(r->user);

	if (!qp->cfg.privileged)
		r->order &= (uint8_t)~HCA_UB_EXCLUSIVE;
	r->user = HCA_UB_UD_MAKE_OPERATION(hca_ub_ud_op(code, h->cfg.ub_choices));
}

static void
jetty_judge(struct hca_pipe *h, struct hca_parser_visit *v, const uint8_t *copy,
	    struct hca_wqe_ub *w, struct hca_ud_av *av)
{
	struct hca_qp_parser *p = v->p;
	uint8_t status;

	if (unlikely(v->flush)) {
		*w = (struct hca_wqe_ub){.status = HCA_UB_STATUS_FLUSHED};
		return;
	}
	hca_wqe_ub_decode(copy, (uint32_t)p->next_size * HCA_WQE_UNIT, 1u << p->sq_stride_log,
			  p->next_op, w);
	if (w->status != 0 || w->ud == NULL)
		return;
	status = jetty_judge_datagram(h, v->qp, w, av);
	if (status != 0)
		*w = (struct hca_wqe_ub){.status = status};
}

uint32_t
hca_jetty_parse(struct hca_pipe *h, struct hca_parser_visit *v, const uint8_t *copy)
{
	struct hca_record_pools *pools = &h->records[HCA_WIRE_UB];
	struct hca_wqe_ub w;
	struct hca_ud_av av;
	uint32_t ref;

	jetty_judge(h, v, copy, &w, &av);
	ref = hca_parser_take(v, hca_wqe_ub_full(&w) ? &pools->full : &pools->small);
	if (unlikely(ref == HCA_RECREF_NONE))
		return ref;
	hca_wqe_ub_fill(&w, &av, hca_ub_record(h, ref));
	jetty_judge_rights(h, v->qp, hca_ub_record(h, ref));
	jetty_fill(hca_ub_record(h, ref), v->p, (const struct hca_next_unit *)copy);
	if (w.is_inline)
		HCA_COUNT(h, PARSER, sq_inline);
	v->bad += w.status != 0 && !v->flush;
	return ref;
}

static __rte_always_inline bool
jetty_parse_simple(struct hca_pipe *h, const struct hca_qp *qp, const uint8_t *copy, uint32_t size,
		   uint32_t stride, uint8_t service, struct hca_qp_parser *at, void *record)
{
	(void)service;
	if (unlikely(!hca_wqe_ub_fill_simple(copy, size, stride, at->next_op, record)))
		return false;
	jetty_fill(record, at, (const struct hca_next_unit *)copy);
	return true;
}

unsigned int
hca_jetty_parse_run(struct hca_pipe *h, struct hca_parser_visit *v, unsigned int quota)
{
	return hca_parser_run(h, v, quota, &h->records[HCA_WIRE_UB].small,
			      sizeof(struct hca_ub_record), jetty_parse_simple);
}
