/* SPDX-License-Identifier: BSD-3-Clause */

/* The MODIFY_QP family and QUERY_QP (3.2.6). */

#include <string.h>

#include "abi_qp_attr.h"
#include "abi_service.h"
#include "ceu/qp.h"
#include "ctxmgt/ctxmgt.h"
#include "engine/impl.h"
#include "engine/state.h"

static const struct hca_qp_transition transitions[] = {
#define X HCA_QP_TRANSITION_ROW
	HCA_QP_TRANSITION_LIST(X)
#undef X
};

static const struct hca_qp_transition *
find_transition(uint32_t cmd, uint32_t from, uint32_t service)
{
	for (unsigned int i = 0; i < RTE_DIM(transitions); i++) {
		const struct hca_qp_transition *t = &transitions[i];

		if (t->cmd == cmd && t->from == from && t->service == service)
			return t;
	}
	return NULL;
}

/* The QP named by in_modifier: its index, and its state. */
static int
find_qp(const struct hca_core *h, const struct hca_cmd *c, struct hca_qp_change *ch)
{
	uint32_t qpn = c->in_modifier, live;

	if (qpn <= HCA_QPN_GSI || qpn >= HCA_QPN_MULTICAST)
		return HCA_STAT_BAD_INDEX;
	ch->qpn = qpn;
	ch->qpi = qpn & h->qp_mask;
	live = h->qp[ch->qpi].cfg.local_qpn;
	if (live != 0 && live != qpn)
		return HCA_STAT_BAD_INDEX;
	ch->from = live != 0 ? hca_qp_state(&h->qp[ch->qpi]) : (uint32_t)HCA_QPS_RST;
	return HCA_STAT_OK;
}

static int
check_transition(const struct hca_core *h, const struct hca_cmd *c, struct hca_qp_change *ch)
{
	const struct hca_qpc *in = (const void *)c->in;
	uint32_t service = h->qp[ch->qpi].cfg.service, state;
	const struct hca_qp_transition *t;

	if ((c->op == HCA_CMD_RST2INIT_QPEE || c->op == HCA_CMD_RST2RTS_QPEE) &&
	    ch->from == HCA_QPS_RST)
		service = HCA_QPC_SERVICE(hca_be32_to_cpu(in->flags));
	if ((hca_service_info(service)->cap & hca_ceu_caps(h)) == 0)
		return HCA_STAT_BAD_PARAM;
	t = find_transition(c->op, ch->from, service);
	if (t == NULL)
		return HCA_STAT_BAD_QP_STATE;
	ch->to = t->to;
	if (c->in_len == 0)
		return HCA_STAT_OK;
	ch->mask = hca_be32_to_cpu(in->opt_param_mask);
	state = HCA_QPC_STATE(hca_be32_to_cpu(in->flags));
	if ((ch->mask & t->required) != t->required ||
	    (ch->mask & ~(t->required | t->optional)) != 0 ||
	    ((ch->mask & HCA_QP_ATTR_STATE) && state != t->to))
		return HCA_STAT_BAD_PARAM;
	return HCA_STAT_OK;
}

static int
prepare(const struct hca_core *h, const struct hca_cmd *c, struct hca_qp_change *ch)
{
	const uint8_t inbox = HCA_MODIFY_QP_INBOX, none = HCA_MODIFY_QP_NO_INBOX;
	bool may_omit = c->op == HCA_CMD_2ERR_QPEE || c->op == HCA_CMD_ERR2RST_QPEE;
	int rc;

	memset(ch, 0, sizeof(*ch));
	if (c->op_modifier != inbox && !(may_omit && c->op_modifier == none))
		return HCA_STAT_BAD_PARAM;
	rc = find_qp(h, c, ch);
	return rc != HCA_STAT_OK ? rc : check_transition(h, c, ch);
}

static void
mirror(struct hca_core *h, uint32_t qpi, uint32_t qpn)
{
	struct hca_qpc image;

	hca_qp_image(h, qpi, qpn, &image);
	hca_icm_write(h, HCA_ICM_QPC, qpi, &image);
}

/*
 * From INIT on: first the attributes, then the state, unless a stage has changed it meanwhile.
 */
static int
commit(struct hca_core *h, const struct hca_qp_change *ch)
{
	struct hca_qp *qp = &h->qp[ch->qpi];

	hca_qp_apply(h, ch);
	if (ch->to == HCA_QPS_SQD) {
		bool notify = (ch->mask & HCA_QP_ATTR_EN_SQD_ASYNC_NOTIFY) != 0;

		/* from SQD to SQD: req_tx may be reading it */
		__atomic_store_n(&qp->cfg.draining, ch->from != HCA_QPS_SQD || qp->cfg.draining,
				 __ATOMIC_RELAXED);
		__atomic_store_n(&qp->cfg.sqd_notify, notify, __ATOMIC_RELAXED);
	}
	if (!hca_qp_state_cas(qp, ch->from, ch->to))
		return HCA_STAT_BAD_QP_STATE;
	hca_qp_image_store(qp, &ch->image);
	if (ch->from != ch->to)
		hca_tell_state(hca_pipe_of_qp(h, ch->qpi), HCA_STAGE_CEU, ch->qpi);
	return HCA_STAT_OK;
}

enum modify_step {
	MODIFY_PREPARE,
	MODIFY_PATHS,
	MODIFY_CREATE,
};

static int
modify_begin(struct hca_core *h, struct hca_cmd *c)
{
	const struct hca_qpc *in = (const void *)c->in;
	uint32_t named = hca_be32_to_cpu(in->local_qpn) & HCA_QPN_MASK;
	struct hca_qp_change *ch = &c->change;
	int rc = prepare(h, c, ch);

	if (rc != HCA_STAT_OK)
		return rc;
	if (named != ch->qpn && (named != 0 || ch->from == HCA_QPS_RST))
		return HCA_STAT_BAD_PARAM;
	if (ch->from != HCA_QPS_RST && ch->from != HCA_QPS_INIT && !hca_qp_paths_hold(h, ch))
		return HCA_CMD_AGAIN;
	return hca_qp_judge(h, in, ch);
}

int
hca_cmd_modify_qp(struct hca_core *h, struct hca_cmd *c)
{
	struct hca_qp_change *ch = &c->change;
	int rc = c->step == MODIFY_PREPARE ? modify_begin(h, c) : HCA_STAT_OK;

	if (rc == HCA_STAT_OK && ch->from != HCA_QPS_RST) {
		c->step = MODIFY_PATHS;
		rc = hca_qp_paths_step(h, ch);
	}
	if (rc == HCA_CMD_AGAIN)
		return rc;
	if (rc == HCA_STAT_OK)
		rc = ch->from == HCA_QPS_RST ? hca_qp_create(h, ch) : commit(h, ch);
	if (rc == HCA_CMD_AGAIN) {
		c->step = MODIFY_CREATE;
		return rc;
	}
	hca_qp_paths_release(h, ch, rc == HCA_STAT_OK);
	if (rc == HCA_STAT_OK)
		mirror(h, ch->qpi, ch->qpn);
	return rc;
}

int
hca_cmd_qp_to_err(struct hca_core *h, struct hca_cmd *c)
{
	struct hca_qp_change ch;
	int rc = prepare(h, c, &ch);

	if (rc != HCA_STAT_OK)
		return rc;
	hca_qp_to_error(hca_pipe_of_qp(h, ch.qpi), HCA_STAGE_CEU, ch.qpi);
	mirror(h, ch.qpi, ch.qpn);
	return HCA_STAT_OK;
}

int
hca_cmd_qp_to_rst(struct hca_core *h, struct hca_cmd *c)
{
	struct hca_qp_change ch;

	if (c->step == 0) {
		int rc = prepare(h, c, &ch);

		if (rc != HCA_STAT_OK)
			return rc;
		if (h->qp[ch.qpi].cfg.local_qpn == 0)
			return HCA_STAT_OK;
		hca_teardown_start(&c->teardown, ch.qpi, ch.qpi, HCA_DOMAIN_ALL);
		c->step = 1;
	}
	if (!hca_teardown_step(h, &c->teardown))
		return HCA_CMD_AGAIN;
	mirror(h, c->in_modifier & h->qp_mask, c->in_modifier);
	return HCA_STAT_OK;
}

/*
 * SQD is draining until all requests that had begun are released; ERR, if the wire says so, until
 * the last request is flushed.
 */
static bool
draining(const struct hca_wire_ops *wire, const struct hca_qp *qp, uint32_t state)
{
	if (state == HCA_QPS_ERR && wire->qp_flushing != NULL)
		return wire->qp_flushing(qp);
	return state == HCA_QPS_SQD &&
	       hca_una_tail(__atomic_load_n(&qp->sq_una, __ATOMIC_ACQUIRE)) !=
		       __atomic_load_n(&qp->sq_next, __ATOMIC_ACQUIRE);
}

static void
live_fields(const struct hca_wire_ops *wire, const struct hca_qp *qp, uint32_t state,
	    struct hca_qpc *out)
{
	uint32_t flags = hca_be32_to_cpu(out->flags), timer;

	flags = HCA_QPC_SET_STATE(flags, state) & ~HCA_QPC_DRAINING;
	if (draining(wire, qp, state))
		flags |= HCA_QPC_DRAINING;
	out->flags = hca_cpu_to_be32(flags);
	timer = HCA_QPC_MIN_RNR_TIMER(hca_be32_to_cpu(out->rnr_nextrecvpsn));
	out->next_send_psn = hca_cpu_to_be32(wire->qp_next(qp));
	out->last_acked_psn =
		hca_cpu_to_be32(hca_una_psn(__atomic_load_n(&qp->sq_una, __ATOMIC_ACQUIRE)));
	out->rnr_nextrecvpsn = hca_cpu_to_be32(
		HCA_QPC_MAKE_RNR_EPSN(timer, __atomic_load_n(&qp->ee.epsn, __ATOMIC_ACQUIRE)));
	out->rmsn =
		hca_cpu_to_be32(__atomic_load_n(&qp->ee.msn, __ATOMIC_ACQUIRE) & HCA_MASK(23, 0));
	out->wqe_counters = hca_cpu_to_be32(
		HCA_QPC_MAKE_COUNTERS(__atomic_load_n(&qp->ee.rq_consumed, __ATOMIC_RELAXED),
				      __atomic_load_n(&qp->parser.head, __ATOMIC_RELAXED)));
}

void
hca_qp_image(struct hca_core *h, uint32_t qpi, uint32_t qpn, struct hca_qpc *out)
{
	const struct hca_qp *qp = &h->qp[qpi];

	if (qp->cfg.local_qpn == 0) {
		memset(out, 0, sizeof(*out));
		out->local_qpn = hca_cpu_to_be32(qpn);
		return;
	}
	hca_qp_image_load(qp, out);
	live_fields(hca_wire_of_qp(h, qp), qp, hca_qp_state(qp), out);
	hca_qp_paths_query(qp, out);
}

int
hca_cmd_query_qp(struct hca_core *h, struct hca_cmd *c)
{
	struct hca_qp_change ch = {0};
	int rc = find_qp(h, c, &ch);

	if (rc != HCA_STAT_OK)
		return rc;
	hca_qp_image(h, ch.qpi, ch.qpn, (void *)c->out);
	hca_icm_write(h, HCA_ICM_QPC, ch.qpi, c->out);
	return HCA_STAT_OK;
}

/* The GSI is a privileged UD QP, which receives the packets to QPN 1. */
int
hca_cmd_conf_special_qp(struct hca_core *h, struct hca_cmd *c)
{
	struct hca_qp_change ch = {0};

	if (c->op_modifier != HCA_CONF_SPECIAL_GSI)
		return HCA_STAT_BAD_PARAM;
	if (c->in_modifier == 0) {
		__atomic_store_n(&h->ctxmgt->gsi_qpn, 0, __ATOMIC_RELEASE);
		return HCA_STAT_OK;
	}
	if (find_qp(h, c, &ch) != HCA_STAT_OK)
		return HCA_STAT_BAD_INDEX;
	if (ch.from == HCA_QPS_RST)
		return HCA_STAT_BAD_RES_STATE;
	if (h->qp[ch.qpi].cfg.service != HCA_ST_UD || !h->qp[ch.qpi].cfg.privileged)
		return HCA_STAT_BAD_PARAM;
	__atomic_store_n(&h->ctxmgt->gsi_qpn, ch.qpn, __ATOMIC_RELEASE);
	return HCA_STAT_OK;
}
