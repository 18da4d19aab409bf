/* SPDX-License-Identifier: BSD-3-Clause */

/* RoCE's row. Most of these are also called directly: engine/wire_ops.h. */

#include "abi_cmd.h"
#include "ceu/qp_shape.h"
#include "frame/decap.h"
#include "requester/record_pool.h"
#include "wireops/wireops.h"

static const struct hca_wire_edge edges[] = {
	{HCA_EDGE_DB_PARSER, hca_parser_process, hca_parser_room},
	{HCA_EDGE_EE_ENCAP, hca_encap_process_resp, hca_encap_room},
	{HCA_EDGE_REQ_TX_ENCAP, hca_encap_process_req, hca_encap_room},
	{HCA_EDGE_DECAP_EE, hca_ee_process, hca_ee_room},
	{HCA_EDGE_DECAP_REQ_RX, hca_req_rx_process, hca_req_rx_room},
};

static int
create(struct hca_pipe *h)
{
	const struct hca_record_sizes sizes = {
		.small = h->cfg.records,
		.small_bytes = sizeof(struct hca_record),
		.full = h->cfg.full_records,
		.full_bytes = sizeof(struct hca_record_full),
	};

	return hca_record_pools_init(h, HCA_WIRE_ROCE, &sizes);
}

static void
destroy(struct hca_pipe *h)
{
	hca_record_pools_fini(h, HCA_WIRE_ROCE);
}

static uint64_t
qp_answers(const struct hca_qp *qp)
{
	return __atomic_load_n(&qp->req_rx.rx_packets, __ATOMIC_RELAXED);
}

const struct hca_wire_ops hca_wire_roce = {
	.name = "roce",
	.wire = HCA_WIRE_ROCE,
	.qp_stages = 1u << HCA_STAGE_REQ_TX | 1u << HCA_STAGE_REQ_RX | 1u << HCA_STAGE_EE,
	.records_to = HCA_STAGE_REQ_TX,
	.timeouts_to = HCA_STAGE_REQ_RX,
	.receives_to = HCA_STAGE_EE,
	.edges = edges,
	.num_edges = RTE_DIM(edges),
	.create = create,
	.destroy = destroy,
	.take = hca_decap_roce_take,
	.judge = hca_decap_roce_judge,
	.caps = HCA_CAP_RC | HCA_CAP_UC | HCA_CAP_UD | HCA_CAP_XRC,
	.qp_room = hca_roce_qp_room,
	.qp_fill = hca_roce_qp_fill,
	.qp_apply = hca_roce_qp_apply,
	.qp_next = hca_roce_qp_next,
	.qp_answers = qp_answers,
};
