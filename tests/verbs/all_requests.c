/* SPDX-License-Identifier: BSD-3-Clause */

/* Lists of requests: ibv_post_send, ibv_post_recv, ibv_post_srq_recv, ibv_bind_mw. */

#include "all.h"

#define LIST 40 /* more than the queue has room for */

static uint64_t
address(const struct all *all, size_t offset)
{
	return (uintptr_t)all->memory + offset;
}

/* In INIT a QP takes receives and no sends. */
static void
too_early(struct all *all, struct ibv_qp *qp)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad = NULL;

	all_recv(all, qp, 1, 0, 64);
	CHECK(qp->state == IBV_QPS_INIT);
	CHECK(ibv_post_send(qp, &wr, &bad) == EINVAL && bad == &wr);
}

/* A list with a bad request posts the requests before it and names it. */
static void
bad_in_list(struct all *all, struct ibv_qp *qp)
{
	struct ibv_sge sge = {address(all, 0), 8, all->mr->lkey};
	struct ibv_send_wr wr[3], *bad = NULL;

	memset(wr, 0, sizeof(wr));
	for (int i = 0; i < 3; i++) {
		wr[i].wr_id = (uint64_t)i;
		wr[i].next = i < 2 ? &wr[i + 1] : NULL;
		wr[i].sg_list = &sge;
		wr[i].num_sge = 1;
		wr[i].send_flags = IBV_SEND_SIGNALED;
		wr[i].opcode = i == 1 ? IBV_WR_DRIVER1 : IBV_WR_RDMA_WRITE;
		wr[i].wr.rdma.remote_addr = address(all, 4096);
		wr[i].wr.rdma.rkey = all->mr->rkey;
	}
	CHECK(ibv_post_send(qp, wr, &bad) == EINVAL && bad == &wr[1]);
	CHECK(all_wc(all->cq).wr_id == 0);
	CHECK(ibv_post_send(qp, &wr[2], &bad) == 0);
	CHECK(all_wc(all->cq).wr_id == 2);
}

/* Data by an address that is not the memory's: of a region elsewhere, and zeros of no memory. */
static void
elsewhere(struct all *all, struct ibv_qp *qp)
{
	uint64_t iova = UINT64_C(0x700000000000) + (address(all, 0) & 4095);
	struct ibv_mr *mr = ibv_reg_mr_iova(all->pd, all->memory, 4096, iova, 0);
	struct ibv_mr *zeros = ibv_alloc_null_mr(all->pd);
	struct ibv_sge sges[2];
	struct ibv_send_wr *bad, wr = {
					 .sg_list = sges,
					 .num_sge = 2,
					 .opcode = IBV_WR_RDMA_WRITE,
					 .send_flags = IBV_SEND_SIGNALED,
					 .wr.rdma = {address(all, 8192), all->mr->rkey},
				 };

	CHECK(mr != NULL && mr->addr == all->memory && zeros != NULL);
	sges[0] = (struct ibv_sge){iova + 8, 8, mr->lkey};
	sges[1] = (struct ibv_sge){12345, 8, zeros->lkey};
	memcpy(all->memory + 8, "dropped!", 8);
	memset(all->memory + 8192, 0xff, 16);
	CHECK(ibv_post_send(qp, &wr, &bad) == 0);
	all_wc(all->cq);
	CHECK(memcmp(all->memory + 8192, "dropped!\0\0\0\0\0\0\0\0", 16) == 0);
	CHECK(ibv_dereg_mr(mr) == 0 && ibv_dereg_mr(zeros) == 0);
}

/* The rate of a connection in RTS; datagrams have that of their address handle. */
static void
limited(struct all *all, struct ibv_qp *qp)
{
	struct ibv_qp_rate_limit_attr limit = {.rate_limit = 2500000};
	struct ibv_qp_attr attr = {.rate_limit = 5000000};
	struct ibv_device_attr_ex device;
	struct ibv_qp_init_attr init;
	struct ibv_qp *ud = all_qp(all, IBV_QPT_UD, all->cq, NULL, 0);

	CHECK(ibv_query_device_ex(all->context, NULL, &device) == 0);
	CHECK(device.packet_pacing_caps.supported_qpts ==
	      (1 << IBV_QPT_RC | 1 << IBV_QPT_UC | 1 << IBV_QPT_XRC_SEND));
	CHECK(ibv_modify_qp_rate_limit(qp, &limit) == 0);
	CHECK(ibv_query_qp(qp, &attr, IBV_QP_RATE_LIMIT, &init) == 0 && attr.rate_limit == 2500000);
	limit.max_burst_sz = 9000;
	CHECK(ibv_modify_qp_rate_limit(qp, &limit) == EINVAL);
	limit.max_burst_sz = 0;
	limit.rate_limit = device.packet_pacing_caps.qp_rate_limit_max + 1;
	CHECK(ibv_modify_qp_rate_limit(qp, &limit) == EINVAL);
	limit.rate_limit = device.packet_pacing_caps.qp_rate_limit_min - 1;
	CHECK(ibv_modify_qp_rate_limit(qp, &limit) == EINVAL);
	attr.rate_limit = 0;
	CHECK(ibv_modify_qp(qp, &attr, IBV_QP_RATE_LIMIT) == 0);
	limit.rate_limit = 2500000;
	CHECK(ibv_modify_qp_rate_limit(ud, &limit) == EINVAL);
	CHECK(ibv_destroy_qp(ud) == 0);
}

static void
connected(struct all *all)
{
	struct ibv_qp *a = all_qp(all, IBV_QPT_RC, all->cq, NULL, 0);
	struct ibv_qp *b = all_qp(all, IBV_QPT_RC, all->cq, NULL, 0);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_ece ece = {1, 1, 0};
	struct ibv_qp_init_attr plain = {
		.send_cq = all->cq,
		.recv_cq = all->cq,
		.cap = {1, 1, 1, 1, 0},
	};

	plain.qp_type = IBV_QPT_RAW_PACKET;
	CHECK_NULL(ibv_create_qp(all->pd, &plain), EOPNOTSUPP);
	plain.qp_type = IBV_QPT_RC;
	plain.cap.max_send_wr = UINT32_MAX;
	CHECK_NULL(ibv_create_qp(all->pd, &plain), EINVAL);
	too_early(all, a);
	all_connect(all, a, b);
	bad_in_list(all, a);
	elsewhere(all, a);
	CHECK(ibv_query_qp(a, &attr, IBV_QP_STATE | IBV_QP_AV, &init) == 0);
	CHECK(attr.qp_state == IBV_QPS_RTS && attr.dest_qp_num == b->qp_num);
	CHECK(memcmp(&attr.ah_attr.grh.dgid, &all->gid, sizeof(all->gid)) == 0);
	CHECK(init.send_cq == all->cq && init.qp_context == all && init.srq == NULL);
	CHECK(ibv_query_qp_data_in_order(a, IBV_WR_RDMA_WRITE, 0) == 0);
	CHECK(ibv_set_ece(a, &ece) == EOPNOTSUPP && ibv_query_ece(a, &ece) == EOPNOTSUPP);
	attr.qp_state = IBV_QPS_RTR;
	CHECK(ibv_modify_qp(a, &attr, IBV_QP_STATE) == EINVAL && a->state == IBV_QPS_RTS);
	limited(all, a);
	CHECK(ibv_attach_mcast(a, &all->gid, 0) == EINVAL);
	CHECK(ibv_detach_mcast(a, &all->gid, 0) != 0);
	CHECK(ibv_destroy_qp(a) == 0 && ibv_destroy_qp(b) == 0);
}

/* A long list of datagrams to itself, received by an SRQ; the sender's address of one of them. */
static void
datagrams(struct all *all)
{
	struct ibv_srq_init_attr init = {all, {64, 1, 0}};
	struct ibv_srq *srq = ibv_create_srq(all->pd, &init);
	struct ibv_cq *cq = ibv_create_cq(all->context, 128, NULL, NULL, 0);
	struct ibv_qp *qp = all_qp(all, IBV_QPT_UD, cq, srq, 0);
	struct ibv_ah *ah = all_ah(all), *back;
	struct ibv_sge from = {address(all, 0), 8, all->mr->lkey};
	struct ibv_sge to = {address(all, 4096), 64, all->mr->lkey};
	struct ibv_recv_wr recv = {.wr_id = 5, .sg_list = &to, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr wr[LIST], *bad;
	struct ibv_ah_attr sender;
	int received = 0;

	CHECK(srq != NULL && srq->srq_context == all && init.attr.max_wr >= 64);
	memset(wr, 0, sizeof(wr));
	/* the QP has room for 16 */
	for (int i = 0; i < LIST; i++) {
		wr[i].wr_id = (uint64_t)i;
		wr[i].next = i < LIST - 1 ? &wr[i + 1] : NULL;
		wr[i].sg_list = &from;
		wr[i].num_sge = 1;
		wr[i].opcode = IBV_WR_SEND;
		wr[i].send_flags = IBV_SEND_SIGNALED;
		wr[i].wr.ud.ah = ah;
		wr[i].wr.ud.remote_qpn = qp->qp_num;
		wr[i].wr.ud.remote_qkey = 0x11111111;
		CHECK(ibv_post_srq_recv(srq, &recv, &bad_recv) == 0);
	}
	CHECK(ibv_post_send(qp, wr, &bad) == ENOMEM && bad == &wr[16]);
	for (int i = 0; i < 32; i++) {
		struct ibv_wc wc = all_wc(cq);

		if ((wc.opcode & IBV_WC_RECV) == 0)
			continue;
		CHECK(wc.wr_id == 5 && (wc.wc_flags & IBV_WC_GRH) != 0 && wc.byte_len == 48);
		if (received++ != 0)
			continue;
		CHECK(ibv_init_ah_from_wc(all->context, PORT, &wc, (void *)(all->memory + 4096),
					  &sender) == 0);
		CHECK(sender.is_global == 1 && sender.grh.sgid_index == GID_INDEX);
		CHECK(memcmp(&sender.grh.dgid, &all->gid, sizeof(all->gid)) == 0);
		back = ibv_create_ah_from_wc(all->pd, &wc, (void *)(all->memory + 4096), PORT);
		CHECK(back != NULL && ibv_destroy_ah(back) == 0);
	}
	CHECK(received == 16);
	CHECK(ibv_destroy_srq(srq) == EBUSY);
	CHECK(ibv_destroy_ah(ah) == 0 && ibv_destroy_qp(qp) == 0);
	CHECK(ibv_destroy_srq(srq) == 0 && ibv_destroy_cq(cq) == 0);
}

/* Flags of a UD QP; that of another source QPN is for the privileged. */
static void
flags_of_datagrams(struct all *all)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = all->cq,
		.recv_cq = all->cq,
		.cap = {1, 1, 1, 1, 0},
		.qp_type = IBV_QPT_UD,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.pd = all->pd,
		.create_flags =
			IBV_QP_CREATE_BLOCK_SELF_MCAST_LB | IBV_QP_CREATE_PCI_WRITE_END_PADDING,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(all->context, &attr);

	CHECK(qp != NULL && ibv_destroy_qp(qp) == 0);
	attr.create_flags = IBV_QP_CREATE_SOURCE_QPN;
	CHECK_NULL(ibv_create_qp_ex(all->context, &attr), EINVAL);
	attr.source_qpn = 1 << 24;
	CHECK_NULL(ibv_create_qp_ex(all->context, &attr), EINVAL);
	attr.source_qpn = 77;
	qp = ibv_create_qp_ex(all->context, &attr);
	CHECK(qp != NULL ? ibv_destroy_qp(qp) == 0 : errno == EACCES);
	attr.create_flags = IBV_QP_CREATE_CVLAN_STRIPPING;
	CHECK_NULL(ibv_create_qp_ex(all->context, &attr), EOPNOTSUPP);
}

/* A UD QP in a group of link-local scope: in twice is in once. */
static void
groups(struct all *all)
{
	struct ibv_qp *qp = all_qp(all, IBV_QPT_UD, all->cq, NULL, 0);
	const union ibv_gid group = {.raw = {0xff, 0x12, [15] = 0x77}};

	CHECK(ibv_attach_mcast(qp, &all->gid, 0) == EINVAL);
	CHECK(ibv_attach_mcast(qp, &group, 0) == 0 && ibv_attach_mcast(qp, &group, 0) == 0);
	CHECK(ibv_detach_mcast(qp, &group, 0) == 0);
	CHECK(ibv_detach_mcast(qp, &group, 0) == EINVAL);
	CHECK(ibv_attach_mcast(qp, &group, 0) == 0);
	CHECK(ibv_destroy_qp(qp) == 0);
}

/* Windows of type 1 by ibv_bind_mw, of type 2 in a list behind a WRITE. */
static void
windows(struct all *all)
{
	struct ibv_qp *a = all_qp(all, IBV_QPT_RC, all->cq, NULL, 0);
	struct ibv_qp *b = all_qp(all, IBV_QPT_RC, all->cq, NULL, 0);
	struct ibv_mw *one = ibv_alloc_mw(all->pd, IBV_MW_TYPE_1);
	struct ibv_mw *two = ibv_alloc_mw(all->pd, IBV_MW_TYPE_2);
	struct ibv_mw_bind bind = {
		.wr_id = 1,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {all->mr, address(all, 0), 64, IBV_ACCESS_REMOTE_WRITE},
	};
	struct ibv_send_wr *bad, wr = {
					 .wr_id = 2,
					 .opcode = IBV_WR_BIND_MW,
					 .send_flags = IBV_SEND_SIGNALED,
				 };
	uint32_t old;

	CHECK(one != NULL && two != NULL && one->type == IBV_MW_TYPE_1);
	all_connect(all, a, b);
	old = one->rkey;
	CHECK(ibv_bind_mw(a, one, &bind) == 0 && one->rkey != old);
	CHECK(all_wc(all->cq).opcode == IBV_WC_BIND_MW);
	CHECK(ibv_bind_mw(a, two, &bind) == EINVAL);
	wr.bind_mw.mw = two;
	wr.bind_mw.rkey = ibv_inc_rkey(two->rkey);
	wr.bind_mw.bind_info = bind.bind_info;
	CHECK(ibv_post_send(a, &wr, &bad) == 0);
	CHECK(all_wc(all->cq).wr_id == 2);
	CHECK(ibv_dereg_mr(all->mr) == EBUSY);
	CHECK(ibv_dealloc_mw(one) == 0 && ibv_dealloc_mw(two) == 0);
	CHECK(ibv_destroy_qp(a) == 0 && ibv_destroy_qp(b) == 0);
}

void
all_requests(struct all *all)
{
	connected(all);
	datagrams(all);
	groups(all);
	flags_of_datagrams(all);
	windows(all);
}
