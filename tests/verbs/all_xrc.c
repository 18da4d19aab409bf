/* SPDX-License-Identifier: BSD-3-Clause */

/* XRC: an initiator, a target and an SRQ of one process. */

#include "all.h"

#define OPS (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE)

static struct ibv_srq *
make_srq(struct all *all, struct ibv_xrcd *xrcd)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = {16, 1, 0},
		.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = all->pd,
		.xrcd = xrcd,
		.cq = all->cq,
	};
	struct ibv_srq *srq = ibv_create_srq_ex(all->context, &attr);

	CHECK(srq != NULL);
	return srq;
}

static struct ibv_qp *
make_target(struct all *all, struct ibv_xrcd *xrcd)
{
	void *nothing = (void *)1; /* in members that the type does not use */
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = nothing,
		.recv_cq = nothing,
		.srq = nothing,
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = xrcd,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(all->context, &attr);

	CHECK(qp != NULL && qp->send_cq == NULL && qp->pd == NULL);
	all_to_init(qp);
	return qp;
}

static struct ibv_qp *
make_initiator(struct all *all)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = all->cq,
		.recv_cq = (void *)1, /* which the type does not use */
		.cap = {16, 0, 2, 0, 32},
		.qp_type = IBV_QPT_XRC_SEND,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = all->pd,
		.send_ops_flags = OPS | IBV_QP_EX_WITH_LOCAL_INV,
	};
	struct ibv_qp *qp;

	CHECK_NULL(ibv_create_qp_ex(all->context, &attr), EOPNOTSUPP);
	attr.send_ops_flags = OPS;
	qp = ibv_create_qp_ex(all->context, &attr);
	CHECK(qp != NULL && qp->recv_cq == NULL);
	all_to_init(qp);
	return qp;
}

static void
expect(struct all *all)
{
	unsigned int seen = 0;

	for (int i = 0; i < 2; i++) {
		struct ibv_wc wc = all_wc(all->cq);

		seen |= wc.opcode & IBV_WC_RECV ? 1 : 2;
		CHECK((wc.opcode & IBV_WC_RECV) == 0 || (wc.wr_id == 9 && wc.byte_len == 8));
	}
	CHECK(seen == 3);
	CHECK(memcmp(all->memory + 4096, "by XRC..", 8) == 0);
	memset(all->memory + 4096, 0, 8);
}

static void
send_to(struct all *all, struct ibv_qp *qp, struct ibv_srq *srq)
{
	struct ibv_sge to = {(uintptr_t)all->memory + 4096, 64, all->mr->lkey};
	struct ibv_sge from = {(uintptr_t)all->memory, 8, all->mr->lkey};
	struct ibv_recv_wr recv = {.wr_id = 9, .sg_list = &to, .num_sge = 1}, *bad_recv;
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	struct ibv_send_wr *bad, wr = {
					 .sg_list = &from,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_SIGNALED,
				 };

	memcpy(all->memory, "by XRC..", 8);
	CHECK(ibv_get_srq_num(srq, &wr.qp_type.xrc.remote_srqn) == 0);
	for (int order = 0; order < 3; order++) {
		CHECK(ibv_post_srq_recv(srq, &recv, &bad_recv) == 0);
		if (order == 2) {
			CHECK(ibv_post_send(qp, &wr, &bad) == 0);
			expect(all);
			continue;
		}
		ibv_wr_start(ex);
		ex->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_send(ex);
		if (order == 0)
			ibv_wr_set_xrc_srqn(ex, wr.qp_type.xrc.remote_srqn);
		ibv_wr_set_sge(ex, from.lkey, from.addr, from.length);
		if (order == 1)
			ibv_wr_set_xrc_srqn(ex, wr.qp_type.xrc.remote_srqn);
		CHECK(ibv_wr_complete(ex) == 0);
		expect(all);
	}
}

void
all_xrc(struct all *all)
{
	struct ibv_xrcd_init_attr attr = {IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, -1, 0};
	struct ibv_xrcd *xrcd = ibv_open_xrcd(all->context, &attr);
	struct ibv_qp *target, *initiator;
	struct ibv_srq *srq;

	CHECK(xrcd != NULL);
	srq = make_srq(all, xrcd);
	target = make_target(all, xrcd);
	initiator = make_initiator(all);
	all_connect(all, initiator, target);
	send_to(all, initiator, srq);
	CHECK(ibv_destroy_qp(initiator) == 0 && ibv_destroy_qp(target) == 0);
	CHECK(ibv_destroy_srq(srq) == 0 && ibv_close_xrcd(xrcd) == 0);
}
