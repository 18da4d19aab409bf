/* SPDX-License-Identifier: BSD-3-Clause */

/* Commands about shared receive queues: SW2HW_SRQ, HW2SW_SRQ, QUERY_SRQ, ARM_SRQ. */

#include <string.h>

#include "abi_wqe.h"
#include "ceu/ceu.h"
#include "ctxmgt/ctxmgt.h"
#include "ctxmgt/store.h"

static struct hca_srq *
srq_at(struct hca_core *h, uint32_t srqn)
{
	return &h->srq[srqn & h->srq_mask];
}

/* The live SRQ named by in_modifier; all bits are compared. */
static int
find_live(struct hca_core *h, const struct hca_cmd *c, struct hca_srq **out)
{
	*out = hca_srq_find(h, c->in_modifier);
	return *out != NULL ? HCA_STAT_OK : HCA_STAT_BAD_INDEX;
}

static void
srq_image(struct hca_srq *s, struct hca_srqc *out)
{
	uint32_t is = hca_srq_state(s);
	uint32_t state = is == HCA_SRQ_ERROR ? HCA_SRQC_STATE_ERR : HCA_SRQC_STATE_OK;
	uint32_t limit = __atomic_load_n(&s->limit, __ATOMIC_RELAXED);

	memset(out, 0, sizeof(*out));
	if (is == HCA_SRQ_FREE)
		return;
	out->flags =
		hca_cpu_to_be32(HCA_FIELD(31, 28, state) | (limit != 0 ? HCA_SRQC_LIMIT_ARMED : 0));
	hca_srqc_set_start(out, s->start);
	out->logsize_usrpage =
		hca_cpu_to_be32(HCA_FIELD(31, 24, s->size_log) | HCA_FIELD(23, 0, s->usr_page));
	out->stride = hca_cpu_to_be32(HCA_FIELD(31, 24, s->stride_log) | s->max_sge);
	out->pd = hca_cpu_to_be32(s->pd);
	out->lkey = hca_cpu_to_be32(s->lkey);
	out->limit = hca_cpu_to_be32(limit);
	out->srqn = hca_cpu_to_be32(s->srqn);
	out->xrcd = hca_cpu_to_be32(s->xrcd);
	out->xrc_cqn = hca_cpu_to_be32(hca_srq_has_cq(s) ? s->cqn : 0);
	out->producer = hca_cpu_to_be32(
		s->shared ? hca_srq_posted(s) : __atomic_load_n(&s->producer, __ATOMIC_RELAXED));
	out->consumer = hca_cpu_to_be32(__atomic_load_n(&s->consumed, __ATOMIC_RELAXED));
}

static void
jfr_image(const struct hca_core *h, const struct hca_srq *s, struct hca_srqc *out)
{
	if (s->jfr)
		hca_ceu_jfr(h)->image(h, (uint32_t)(s - h->srq), out);
}

static void
srq_mirror(struct hca_core *h, uint32_t index)
{
	struct hca_srqc image;

	srq_image(&h->srq[index], &image);
	jfr_image(h, &h->srq[index], &image);
	hca_icm_write(h, HCA_ICM_SRQC, index, &image);
}

static bool
shape_ok(const struct hca_srq *n)
{
	return n->stride_log >= HCA_WQE_MIN_STRIDE_LOG && n->stride_log <= HCA_WQE_MAX_STRIDE_LOG &&
	       n->size_log <= HCA_WQ_MAX_LOG_SIZE && n->max_sge <= HCA_WQE_MAX_SGE &&
	       HCA_WQE_UNIT * (1u + n->max_sge) <= 1u << n->stride_log &&
	       n->limit <= 1u << n->size_log;
}

/* An XRC SRQ has a domain and a CQ of its own, a JFR a CQ; a basic one has neither. */
static bool
kind_ok(const struct hca_core *h, const struct hca_srq *n)
{
	if (!(n->xrcd & HCA_SRQC_XRCD_VALID) && n->xrcd != 0)
		return false;
	if (!hca_srq_has_cq(n))
		return true;
	if (n->xrcd & ~(HCA_SRQC_XRCD_VALID | HCA_QPN_MASK) || (n->xrcd != 0 && n->jfr))
		return false;
	return n->cqn < h->ctxmgt->count[HCA_ICM_CQC] &&
	       hca_cq_state(&h->cq[n->cqn]) == HCA_CQ_LIVE && h->cq[n->cqn].usr_page == n->usr_page;
}

/* Fields of JFRs are 0 in other SRQs. */
static bool
jfr_ok(const struct hca_core *h, const struct hca_srqc *m)
{
	uint32_t flags = hca_be32_to_cpu(m->flags);

	if (!(flags & HCA_SRQC_JFR))
		return !(flags & HCA_SRQC_TOKEN) && m->token == 0 && m->rnr == 0;
	return hca_ceu_jfr(h) != NULL && hca_ceu_jfr(h)->ok(m);
}

static struct hca_srq
read_srqc(const struct hca_srqc *m)
{
	uint32_t size = hca_be32_to_cpu(m->logsize_usrpage), stride = hca_be32_to_cpu(m->stride);

	return (struct hca_srq){
		.srqn = hca_be32_to_cpu(m->srqn),
		.pd = hca_be32_to_cpu(m->pd),
		.lkey = hca_be32_to_cpu(m->lkey),
		.usr_page = HCA_SRQC_USRPAGE(size),
		.xrcd = hca_be32_to_cpu(m->xrcd),
		.cqn = hca_be32_to_cpu(m->xrc_cqn),
		.limit = hca_be32_to_cpu(m->limit),
		.stride_log = (uint8_t)HCA_SRQC_STRIDE_LOG(stride),
		.size_log = (uint8_t)HCA_SRQC_LOGSIZE(size),
		.max_sge = (uint8_t)HCA_SRQC_MAX_SGE(stride),
		.jfr = (hca_be32_to_cpu(m->flags) & HCA_SRQC_JFR) != 0,
		.start = hca_srqc_start(m),
	};
}

int
hca_cmd_sw2hw_srq(struct hca_core *h, struct hca_cmd *c)
{
	const struct hca_srqc *m = (const void *)c->in;
	struct hca_srq n = read_srqc(m), *s = srq_at(h, c->in_modifier);
	uint32_t index = c->in_modifier & h->srq_mask;
	int rc;

	if (c->in_modifier == 0 || c->in_modifier > HCA_QPN_MASK)
		return HCA_STAT_BAD_INDEX;
	if (hca_srq_state(s) != HCA_SRQ_FREE)
		return HCA_STAT_BAD_RES_STATE;
	if (!hca_icm_mapped(h, HCA_ICM_SRQC, index))
		return HCA_STAT_BAD_RES_STATE;
	if (n.srqn != c->in_modifier || n.usr_page >= HCA_DMA_DOMAINS ||
	    (n.jfr && HCA_PD_DOMAIN(n.pd) != n.usr_page) || !shape_ok(&n) || !kind_ok(h, &n) ||
	    !jfr_ok(h, m))
		return HCA_STAT_BAD_PARAM;
	if (c->step == 0 && hca_srq_has_cq(&n) &&
	    hca_cq_join(h, n.cqn, n.jfr ? 0 : HCA_CQ_NO_PIPE)) {
		c->rcu = hca_round_start(h);
		c->step = 1;
	}
	if (c->step != 0 && !hca_round_done(h, c->rcu))
		return HCA_CMD_AGAIN;
	rc = hca_qbuf_resolve(h, &n.q, n.lkey, n.pd, n.usr_page, n.start,
			      (1u << (n.size_log + n.stride_log)) + sizeof(struct hca_rq_record));
	if (rc != HCA_STAT_OK)
		return rc;
	if (hca_srq_has_cq(&n))
		h->cq[n.cqn].users++;
	hca_eq_forget_srq(h, index);
	n.state = HCA_SRQ_FREE;
	n.generation = s->generation + 1;
	n.shared = !n.jfr && h->pipe_mask != 0;
	hca_store_words(s, &n, sizeof(n));
	if (n.jfr)
		hca_ceu_jfr(h)->open(h, index, m);
	__atomic_store_n(&s->state, HCA_SRQ_LIVE, __ATOMIC_RELEASE);
	srq_mirror(h, index);
	return HCA_STAT_OK;
}

void
hca_srq_free(struct hca_core *h, uint32_t srqi)
{
	struct hca_srq *s = &h->srq[srqi], gone = {.generation = s->generation};

	hca_eq_forget_srq(h, srqi);
	hca_qbuf_release(h, &s->q, s->lkey);
	if (hca_srq_has_cq(s))
		h->cq[s->cqn].users--;
	if (s->jfr)
		hca_ceu_jfr(h)->close(h, srqi);
	hca_store_words(s, &gone, sizeof(gone));
	srq_mirror(h, srqi);
}

/* EE may be using it: hide it first, free it after a round. */
int
hca_cmd_hw2sw_srq(struct hca_core *h, struct hca_cmd *c)
{
	struct hca_srq *s;

	if (c->step == 0) {
		int rc = find_live(h, c, &s);

		if (rc != HCA_STAT_OK)
			return rc;
		if (s->users != 0)
			return HCA_STAT_RESOURCE_BUSY;
		__atomic_store_n(&s->state, HCA_SRQ_DYING, __ATOMIC_SEQ_CST);
		if (s->jfr)
			hca_ceu_jfr(h)->hide(h, s->srqn);
		c->rcu = hca_round_start(h);
		c->step = 1;
		return HCA_CMD_AGAIN;
	}
	if (!hca_round_done(h, c->rcu))
		return HCA_CMD_AGAIN;
	hca_srq_free(h, c->in_modifier & h->srq_mask);
	return HCA_STAT_OK;
}

int
hca_cmd_query_srq(struct hca_core *h, struct hca_cmd *c)
{
	struct hca_srq *s;
	int rc = find_live(h, c, &s);

	if (rc != HCA_STAT_OK)
		return rc;
	srq_image(s, (void *)c->out);
	jfr_image(h, s, (void *)c->out);
	srq_mirror(h, c->in_modifier & h->srq_mask);
	return HCA_STAT_OK;
}

/*
 * Fewer receives are left already, and it may be long until the next one is taken. EE may detect
 * the same; the side that resets the limit raises the event.
 */
static void
fire_at_once(struct hca_core *h, struct hca_srq *s, uint32_t limit)
{
	uint32_t left = hca_srq_posted(s) - __atomic_load_n(&s->consumed, __ATOMIC_RELAXED);

	if (left >= limit || !__atomic_compare_exchange_n(&s->limit, &limit, 0, false,
							  __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	HCA_COUNT(h, CEU, srq_limit_events);
	hca_eq_raise_srq(h, HCA_STAGE_CEU, HCA_EVENT_SRQ_LIMIT, (uint32_t)(s - h->srq));
}

/* Set the limit to in_param; 0 disarms. EE resets it to 0 when it raises the event. */
int
hca_cmd_arm_srq(struct hca_core *h, struct hca_cmd *c)
{
	struct hca_srq *s;
	int rc = find_live(h, c, &s);

	if (rc != HCA_STAT_OK)
		return rc;
	if (c->in_param > 1u << s->size_log)
		return HCA_STAT_BAD_PARAM;
	__atomic_store_n(&s->limit, (uint32_t)c->in_param, __ATOMIC_RELEASE);
	fire_at_once(h, s, (uint32_t)c->in_param);
	srq_mirror(h, c->in_modifier & h->srq_mask);
	return HCA_STAT_OK;
}
