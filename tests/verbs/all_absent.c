/* SPDX-License-Identifier: BSD-3-Clause */

/* Calls that the device does not offer are refused with EOPNOTSUPP. */

#include "all.h"

static void
of_context(struct all *all)
{
	struct ibv_context *context = all->context;
	struct ibv_alloc_dm_attr dm = {.length = 64};
	struct ibv_wq_init_attr wq = {.pd = all->pd, .cq = all->cq, .max_wr = 1, .max_sge = 1};
	struct ibv_rwq_ind_table_init_attr table = {0};
	struct ibv_counters_init_attr counters = {0};
	struct ibv_flow_action_esp_attr esp = {0};
	struct ibv_ah_attr path = {.is_global = 1, .port_num = PORT};
	uint8_t mac[ETHERNET_LL_SIZE];
	uint16_t vid;

	CHECK_NULL(ibv_alloc_dm(context, &dm), EOPNOTSUPP);
	CHECK_NULL(ibv_create_wq(context, &wq), EOPNOTSUPP);
	CHECK_NULL(ibv_create_rwq_ind_table(context, &table), EOPNOTSUPP);
	CHECK_NULL(ibv_create_counters(context, &counters), EOPNOTSUPP);
	CHECK_NULL(ibv_create_flow_action_esp(context, &esp), EOPNOTSUPP);
	CHECK(ibv_resolve_eth_l2_from_gid(context, &path, mac, &vid) == EOPNOTSUPP);
}

/* Objects that no call has made: the header asks only for their context. */
static void
of_objects(struct all *all)
{
	struct ibv_dm dm = {.context = all->context};
	struct ibv_wq wq = {.context = all->context};
	struct ibv_wq_attr wq_attr = {0};
	struct ibv_rwq_ind_table table = {.context = all->context};
	struct ibv_counters counters = {.context = all->context};
	struct ibv_counter_attach_attr attach = {0};
	struct ibv_flow flow = {.context = all->context};
	struct ibv_flow_action action = {.context = all->context};
	uint64_t value;

	CHECK(ibv_free_dm(&dm) == EOPNOTSUPP);
	CHECK_NULL(ibv_reg_dm_mr(all->pd, &dm, 0, 64, 0), EOPNOTSUPP);
	CHECK(ibv_modify_wq(&wq, &wq_attr) == EOPNOTSUPP && ibv_destroy_wq(&wq) == EOPNOTSUPP);
	CHECK(ibv_destroy_rwq_ind_table(&table) == EOPNOTSUPP);
	CHECK(ibv_attach_counters_point_flow(&counters, &attach, &flow) == EOPNOTSUPP);
	CHECK(ibv_read_counters(&counters, &value, 1, 0) == EOPNOTSUPP);
	CHECK(ibv_destroy_counters(&counters) == EOPNOTSUPP);
	CHECK(ibv_destroy_flow(&flow) == EOPNOTSUPP);
	CHECK(ibv_modify_flow_action_esp(&action, NULL) == EOPNOTSUPP);
	CHECK(ibv_destroy_flow_action(&action) == EOPNOTSUPP);
}

static void
of_queue_pairs(struct all *all)
{
	struct ibv_qp *qp = all_qp(all, IBV_QPT_UD, all->cq, NULL, 0);
	struct ibv_flow_attr flow = {.size = sizeof(flow), .port = PORT};
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = all->cq,
		.recv_cq = all->cq,
		.cap = {1, 1, 1, 1, 0},
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.pd = all->pd,
	};

	CHECK_NULL(ibv_create_flow(qp, &flow), EOPNOTSUPP);
	CHECK_NULL(ibv_create_qp_ex(all->context, &attr), EOPNOTSUPP);
	attr.qp_type = IBV_QPT_RC;
	for (uint32_t bit = 0; bit < 32; bit++) {
		attr.create_flags = 1u << bit;
		if (attr.create_flags == IBV_QP_CREATE_PCI_WRITE_END_PADDING)
			continue; /* a hint */
		CHECK_NULL(ibv_create_qp_ex(all->context, &attr), EOPNOTSUPP);
	}
	attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_RX_HASH;
	CHECK_NULL(ibv_create_qp_ex(all->context, &attr), EOPNOTSUPP);
	CHECK(ibv_destroy_qp(qp) == 0);
}

/* They read pointers in objects that cannot be made here, so that they are only compiled. */
static void
of_nothing(struct all *all)
{
	struct ibv_cq_ex *cq = (void *)all->memory;
	struct ibv_qp_ex *qp = (void *)all->memory;
	struct ibv_dm *dm = (void *)all->memory;
	struct ibv_wq *wq = (void *)all->memory;
	struct ibv_wc_tm_info info;

	ibv_memcpy_to_dm(dm, 0, all, 0);
	ibv_memcpy_from_dm(all, dm, 0, 0);
	ibv_post_wq_recv(wq, NULL, NULL);
	ibv_wc_read_flow_tag(cq);
	ibv_wc_read_tm_info(cq, &info);
	ibv_wr_send_tso(qp, NULL, 0, 0);
}

void
all_absent(struct all *all)
{
	if (all->context == NULL)
		of_nothing(all);
	of_context(all);
	of_objects(all);
	of_queue_pairs(all);
}
