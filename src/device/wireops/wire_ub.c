/* SPDX-License-Identifier: BSD-3-Clause */

/* UB's row. */

#include "abi_cmd.h"
#include "requester/record_pool.h"
#include "ub/ceu/row.h"
#include "ub/frame/frame.h"
#include "ub/initiator/parse_jetty.h"
#include "ub/record.h"
#include "ub/ub.h"
#include "ub/ub_stage.h"
#include "wireops/wireops.h"

static const struct hca_wire_edge edges[] = {
	{HCA_EDGE_DECAP_TPR, hca_tpr_process, hca_tpr_room},
	{HCA_EDGE_DECAP_TPS, hca_tps_process, hca_tps_room},
	{HCA_EDGE_TPR_TAI, hca_tai_process, hca_tai_room},
	{HCA_EDGE_TPR_TAT, hca_tat_process, hca_tat_room},
	{HCA_EDGE_TPR_ENCAP, hca_encap_process_tpr, hca_encap_room},
	{HCA_EDGE_TPS_ENCAP, hca_encap_process_tps, hca_encap_room},
};

static void
defaults(struct hca_config *c)
{
	if (c->ub_records == 0)
		c->ub_records = c->records;
	if (c->ub_full_records == 0)
		c->ub_full_records = c->full_records;
}

static int
create(struct hca_pipe *h)
{
	const struct hca_record_sizes sizes = {
		.small = h->cfg.ub_records,
		.small_bytes = sizeof(struct hca_ub_record),
		.full = h->cfg.ub_full_records,
		.full_bytes = sizeof(struct hca_ub_record_full),
	};
	int rc = hca_ub_create(&h->core);

	return rc == 0 ? hca_record_pools_init(h, HCA_WIRE_UB, &sizes) : rc;
}

static void
destroy(struct hca_pipe *h)
{
	hca_record_pools_fini(h, HCA_WIRE_UB);
	hca_ub_destroy(&h->core);
}

const struct hca_wire_ops hca_wire_ub = {
	.name = "ub",
	.wire = HCA_WIRE_UB,
	.qp_stages = 1u << HCA_STAGE_TAI | 1u << HCA_STAGE_TAT,
	.records_to = HCA_STAGE_TAI,
	.timeouts_to = HCA_STAGE_TAI,
	.receives_to = HCA_STAGE_TAT,
	.edges = edges,
	.num_edges = RTE_DIM(edges),
	.defaults = defaults,
	.create = create,
	.destroy = destroy,
	.wqe_ops = HCA_JETTY_WQE_OPS,
	.parse_run = hca_jetty_parse_run,
	.parse = hca_jetty_parse,
	.wants_parsed = true,
	.take = hca_decap_ub_take,
	.describe = hca_decap_ub,
	.judge = hca_decap_ub_judge,
	.caps = HCA_CAP_UB,
	.commands = hca_ub_commands,
	.num_commands = HCA_UB_COMMANDS,
	.limits = hca_ub_limits,
	.object = &hca_ub_tp_object,
	.jfr = &hca_ub_jfr,
	.qpn_ok = hca_ub_qpn_ok,
	.qp_ok = hca_ub_qp_ok,
	.qp_flags = HCA_QPC_SUSPEND | HCA_QPC_TOKEN | HCA_QPC_ONE_PEER,
	.qp_in_domain = true,
	.qp_room = hca_ub_qp_room,
	.qp_fill = hca_ub_qp_fill,
	.qp_apply = hca_ub_qp_apply,
	.qp_flushing = hca_ub_qp_flushing,
	.qp_next = hca_ub_qp_next,
	.qp_open = hca_ub_qp_open,
	.qp_reset = hca_ub_qp_reset,
	.qp_close = hca_ub_qp_close,
	.key_gone = hca_ub_key_gone,
	.counters = "ub_",
	.qp_answers = hca_ub_qp_answers,
	.qp_values = &hca_ub_qp_values,
};
