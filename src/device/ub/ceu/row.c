/* SPDX-License-Identifier: BSD-3-Clause */

/* The CEU's part of UB's row: TPs as objects of rounds, JFRs, Jettys, token rows. */

#include "abi_ub.h"
#include "ub/ceu/row.h"
#include "ub/ceu/tp.h"
#include "ub/ub_stage.h"

const struct hca_wire_command hca_ub_commands[HCA_UB_COMMANDS] = {
	{HCA_CMD_SW2HW_TP, hca_cmd_sw2hw_tp},	      {HCA_CMD_MODIFY_TP, hca_cmd_modify_tp},
	{HCA_CMD_QUERY_TP, hca_cmd_query_tp},	      {HCA_CMD_HW2SW_TP, hca_cmd_hw2sw_tp},
	{HCA_CMD_SET_TPG, hca_cmd_set_tpg},	      {HCA_CMD_SET_TOKEN, hca_cmd_set_token},
	{HCA_CMD_SET_JETTY_ID, hca_cmd_set_jetty_id}, {HCA_CMD_BIND_JETTY, hca_cmd_bind_jetty},
	{HCA_CMD_PERMIT_TPG, hca_cmd_permit_tpg},
};

void
hca_ub_limits(const struct hca_core *h, struct hca_mbox_dev_lim *m)
{
	m->ub = hca_cpu_to_be32(HCA_LIM_MAKE_UB(h->cfg.log_tps, HCA_TPG_MAX_TPS, hca_tp_mtu(h)));
}

/* ---- TPs ---- */

static bool
tp_is_live(const struct hca_core *h, uint32_t tpi)
{
	return h->ub->tp[tpi].cfg.own_tpn != 0;
}

/* The TP sends and accepts nothing any more; its group chooses other TPs. */
static void
tp_reset(struct hca_core *h, uint32_t tpi)
{
	__atomic_store_n(&h->ub->tp[tpi].cfg.state, HCA_TPS_RESET, __ATOMIC_SEQ_CST);
	hca_tpg_move(h, tpi, 0);
}

/* There are as many groups as TPs, with the same indexes. */
const struct hca_wire_object hca_ub_tp_object = {
	.kind = HCA_OBJECT_TP,
	.stages = HCA_TP_STAGES,
	.is_live = tp_is_live,
	.reset = tp_reset,
	.free = hca_tp_free,
	.leave = hca_tpg_forget,
	.follow = hca_tp_follow,
	.control = hca_tp_control,
};

/* ---- JFRs ---- */

/* Its number is also one on the wire, of 19 bits. */
static bool
jfr_ok(const struct hca_srqc *m)
{
	uint32_t rnr = hca_be32_to_cpu(m->rnr), srqn = hca_be32_to_cpu(m->srqn);

	return srqn == HCA_TC_NUMBER(srqn) && (rnr & ~HCA_MASK(31, 24)) == 0 &&
	       HCA_SRQC_RNR_TIMER(rnr) <= HCA_UB_RNR_TIMER_MAX;
}

static void
jfr_open(struct hca_core *h, uint32_t index, const struct hca_srqc *m)
{
	hca_tc_set(&h->ub->jfr[index], (hca_be32_to_cpu(m->flags) & HCA_SRQC_TOKEN) != 0,
		   hca_be32_to_cpu(m->token), HCA_SRQC_RNR_TIMER(hca_be32_to_cpu(m->rnr)),
		   HCA_TC_ANYBODY);
}

static void
jfr_image(const struct hca_core *h, uint32_t index, struct hca_srqc *out)
{
	const struct hca_tc *row = &h->ub->jfr[index];
	uint32_t flags = HCA_SRQC_JFR;

	if (row->token.flags & HCA_TOKEN_CHECK) {
		flags |= HCA_SRQC_TOKEN;
		out->token = hca_cpu_to_be32(row->token.value[0]);
	}
	out->flags |= hca_cpu_to_be32(flags);
	out->rnr = hca_cpu_to_be32(HCA_FIELD(31, 24, row->rnr_timer));
}

static void
jfr_hide(struct hca_core *h, uint32_t srqn)
{
	hca_known_forget(h, HCA_TC_JFR | srqn);
}

static void
jfr_close(struct hca_core *h, uint32_t index)
{
	hca_tc_close(&h->ub->jfr[index]);
}

const struct hca_wire_jfr hca_ub_jfr = {
	.ok = jfr_ok,
	.open = jfr_open,
	.image = jfr_image,
	.hide = jfr_hide,
	.close = jfr_close,
};

/* ---- Jettys and segments ---- */

/* Also a number on the wire, of 19 bits, outside the well-known ones. */
bool
hca_ub_qpn_ok(uint32_t qpn)
{
	return qpn >= HCA_TC_WELL_KNOWN && qpn == HCA_TC_NUMBER(qpn);
}

/* Its timer and number are in the ranges of the wire, and a token has a value. */
bool
hca_ub_qp_ok(const struct hca_qp_change *ch)
{
	const struct hca_qpc *q = &ch->image;

	if (ch->mask & HCA_QP_ATTR_SQ_PSN && hca_be32_to_cpu(q->next_send_psn) > UINT16_MAX)
		return false;
	if (ch->mask & HCA_QP_ATTR_MIN_RNR_TIMER &&
	    HCA_QPC_MIN_RNR_TIMER(hca_be32_to_cpu(q->rnr_nextrecvpsn)) > HCA_UB_RNR_TIMER_MAX)
		return false;
	return ch->from != HCA_QPS_RST || !(hca_be32_to_cpu(q->flags) & HCA_QPC_TOKEN) ||
	       ch->mask & HCA_QP_ATTR_QKEY;
}

/* Requests are sent to Jettys, not to JFSs. */
static bool
is_target(const struct hca_core *h, uint32_t qpi)
{
	return h->qp[qpi].cfg.service == HCA_ST_JETTY;
}

void
hca_ub_qp_open(struct hca_core *h, uint32_t qpi, const struct hca_qpc *image)
{
	if (is_target(h, qpi))
		hca_tc_open(&h->ub->jetty[qpi], image);
}

void
hca_ub_qp_reset(struct hca_core *h, uint32_t qpi)
{
	if (is_target(h, qpi))
		hca_known_forget(h, h->qp[qpi].cfg.local_qpn);
}

void
hca_ub_qp_close(struct hca_core *h, uint32_t qpi)
{
	if (is_target(h, qpi))
		hca_tc_close(&h->ub->jetty[qpi]);
}

void
hca_ub_key_gone(struct hca_core *h, uint32_t mpt)
{
	hca_token_drop(h, mpt);
}
