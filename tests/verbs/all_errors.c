/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Errors that verbs report as completions, handles that the program has overwritten, and capacities
 * of queues that a QP does not have.
 */

#include <fcntl.h>

#include "all.h"

#define FAR 4096 /* of the memory that requests name */

static uint64_t
address(struct all *all, size_t offset)
{
	return (uintptr_t)all->memory + offset;
}

/* Its completion, good or not */
static struct ibv_wc
next_wc(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(cq, 1, &wc);
	while (n == 0);
	CHECK(n == 1);
	return wc;
}

static void
completes(struct all *all, struct ibv_qp *qp, struct ibv_send_wr wr, enum ibv_wc_status status)
{
	struct ibv_send_wr *bad = NULL;
	struct ibv_wc wc;

	wr.wr_id = 77;
	wr.send_flags |= IBV_SEND_SIGNALED;
	CHECK(ibv_post_send(qp, &wr, &bad) == 0);
	wc = next_wc(all->cq);
	CHECK(wc.wr_id == 77 && wc.status == status && wc.qp_num == qp->qp_num);
}

/* ---- datagrams ---- */

/* A datagram QP takes requests again when it is taken out of SQE. */
static void
datagram(struct all *all, struct ibv_send_wr wr, enum ibv_wc_status status)
{
	struct ibv_qp *qp = all_qp(all, IBV_QPT_UD, all->cq, NULL, 0);

	if (wr.wr.ud.remote_qpn == 0)
		wr.wr.ud.remote_qpn = qp->qp_num;
	wr.wr.ud.remote_qkey = 0x11111111;
	completes(all, qp, wr, status);
	CHECK(ibv_destroy_qp(qp) == 0);
}

static void
datagrams(struct all *all)
{
	static const enum ibv_wr_opcode not_of_ud[] = {
		IBV_WR_RDMA_WRITE,    IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
		IBV_WR_SEND_WITH_INV, IBV_WR_ATOMIC_CMP_AND_SWP,  IBV_WR_ATOMIC_FETCH_AND_ADD,
	};
	struct ibv_sge sge = {address(all, 0), 8, all->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
	struct ibv_pd *other = ibv_alloc_pd(all->context);
	struct ibv_ah *ah = all_ah(all), *foreign;
	struct ibv_ah_attr path = {
		.grh = {.dgid = all->gid, .sgid_index = GID_INDEX, .hop_limit = 64},
		.is_global = 1,
		.port_num = PORT,
	};

	foreign = ibv_create_ah(other, &path);
	CHECK(ah != NULL && foreign != NULL);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = 0xdeadbeef;
	datagram(all, wr, IBV_WC_SUCCESS);
	wr.wr.ud.remote_qpn = 0;
	for (size_t i = 0; i < sizeof(not_of_ud) / sizeof(not_of_ud[0]); i++) {
		wr.opcode = not_of_ud[i];
		datagram(all, wr, IBV_WC_LOC_QP_OP_ERR);
	}
	wr.opcode = IBV_WR_SEND;
	wr.wr.ud.ah = foreign;
	datagram(all, wr, IBV_WC_LOC_QP_OP_ERR);
	CHECK(ibv_destroy_ah(ah) == 0 && ibv_destroy_ah(foreign) == 0);
	CHECK(ibv_dealloc_pd(other) == 0);
}

/* ---- connected QPs ---- */

struct pair {
	struct ibv_qp *a, *b;
};

static struct pair
make_pair(struct all *all, enum ibv_qp_type type)
{
	struct pair pair = {all_qp(all, type, all->cq, NULL, 0),
			    all_qp(all, type, all->cq, NULL, 0)};

	all_connect(all, pair.a, pair.b);
	return pair;
}

static void
drop_pair(struct pair *pair)
{
	CHECK(ibv_destroy_qp(pair->a) == 0 && ibv_destroy_qp(pair->b) == 0);
}

static void
unreliable(struct all *all)
{
	struct ibv_sge sge = {address(all, 0), 8, all->mr->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_READ,
		.wr.rdma = {address(all, FAR), all->mr->rkey},
	};
	struct pair pair = make_pair(all, IBV_QPT_UC);

	completes(all, pair.a, wr, IBV_WC_LOC_QP_OP_ERR);
	drop_pair(&pair);
}

static struct ibv_send_wr
bind_of(struct all *all, struct ibv_mw *mw, struct ibv_mr *mr, uint32_t rkey)
{
	return (struct ibv_send_wr){
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = {mw,
			    rkey,
			    {mr, address(all, FAR), 64,
			     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE}},
	};
}

/* The request names the tag of the key alone; the window has the key when that is posted. */
static void
tag_alone(struct all *all)
{
	struct ibv_mw *mw = ibv_alloc_mw(all->pd, IBV_MW_TYPE_2);
	struct pair pair = make_pair(all, IBV_QPT_RC);
	struct ibv_sge sge = {address(all, 0), 8, all->mr->lkey};
	struct ibv_send_wr read = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ};
	uint32_t tag = (mw->rkey + 5) & 0xff, key = (mw->rkey & ~0xffu) | tag;

	completes(all, pair.b, bind_of(all, mw, all->mr, tag), IBV_WC_SUCCESS);
	CHECK(mw->rkey == key);
	memcpy(all->memory + FAR, "by a tag", 8);
	read.wr.rdma.remote_addr = address(all, FAR);
	read.wr.rdma.rkey = key;
	completes(all, pair.a, read, IBV_WC_SUCCESS);
	CHECK(memcmp(all->memory, "by a tag", 8) == 0);
	drop_pair(&pair);
	CHECK(ibv_dealloc_mw(mw) == 0);
}

/* A window (1), a region (2) or both of another PD */
static void
foreign_bind(struct all *all, enum ibv_mw_type type, struct ibv_pd *other, struct ibv_mr *mr,
	     int which)
{
	struct ibv_mw *mw = ibv_alloc_mw(which & 1 ? other : all->pd, type);
	struct pair pair = make_pair(all, IBV_QPT_RC);
	struct ibv_send_wr wr = bind_of(all, mw, which & 2 ? mr : all->mr, 3);
	struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED,
				   .bind_info = wr.bind_mw.bind_info};

	if (type == IBV_MW_TYPE_2) {
		completes(all, pair.a, wr, IBV_WC_MW_BIND_ERR);
	} else {
		CHECK(ibv_bind_mw(pair.a, mw, &bind) == 0);
		CHECK(next_wc(all->cq).status == IBV_WC_MW_BIND_ERR);
	}
	drop_pair(&pair);
	CHECK(ibv_dealloc_mw(mw) == 0);
}

/* The header itself refuses a window of type 1 and a region of two PDs. */
static void
foreign_binds(struct all *all)
{
	struct ibv_pd *other = ibv_alloc_pd(all->context);
	struct ibv_mr *mr = ibv_reg_mr(other, all->memory, BYTES, ALL_ACCESS);

	for (int which = 1; which <= 3; which++)
		foreign_bind(all, IBV_MW_TYPE_2, other, mr, which);
	foreign_bind(all, IBV_MW_TYPE_1, other, mr, 3);
	CHECK(ibv_dereg_mr(mr) == 0 && ibv_dealloc_pd(other) == 0);
}

/* ---- handles that the program has overwritten ---- */

/* While the call runs, the handle is another one, of another live object. */
#define WITH_GARBLED(object, call) \
	do { \
		uint32_t saved = (object)->handle; \
		(object)->handle = saved + 1; \
		errno = 0; \
		CHECK(call); \
		CHECK(errno == ENOENT); \
		(object)->handle = saved; \
	} while (0)

static void
garbled_domain(struct all *all)
{
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_qp_init_attr qp = {
		.send_cq = all->cq,
		.recv_cq = all->cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_ah_attr path = {
		.grh = {.dgid = all->gid, .sgid_index = GID_INDEX, .hop_limit = 64},
		.is_global = 1,
		.port_num = PORT,
	};
	struct ibv_context *context = all->pd->context;
	struct ibv_context wrong = *context;
	struct ibv_pd *pd = ibv_alloc_pd(all->context);

	WITH_GARBLED(pd, ibv_reg_mr(pd, all->memory, 64, 0) == NULL);
	WITH_GARBLED(pd, ibv_create_qp(pd, &qp) == NULL);
	WITH_GARBLED(pd, ibv_create_srq(pd, &srq) == NULL);
	WITH_GARBLED(pd, ibv_create_ah(pd, &path) == NULL);
	WITH_GARBLED(pd, ibv_alloc_mw(pd, IBV_MW_TYPE_1) == NULL);
	WITH_GARBLED(pd, ibv_dealloc_pd(pd) == ENOENT);
	pd->context = &wrong;
	CHECK(ibv_dealloc_pd(pd) == ENOENT);
	pd->context = context;
	CHECK(ibv_dealloc_pd(pd) == 0);
}

static void
garbled_queues(struct all *all)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(all->pd, &init);
	struct ibv_cq *cq = ibv_create_cq(all->context, 4, NULL, NULL, 0);
	struct ibv_qp *qp = all_qp(all, IBV_QPT_RC, all->cq, NULL, 0);
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = all->cq,
		.srq = srq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_send_sge = 1},
	};
	struct ibv_qp_init_attr got;
	struct ibv_qp_attr qp_attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_srq_attr srq_attr = {.srq_limit = 1};

	WITH_GARBLED(cq, ibv_create_qp(all->pd, &attr) == NULL);
	WITH_GARBLED(srq, ibv_create_qp(all->pd, &attr) == NULL);
	WITH_GARBLED(cq, ibv_resize_cq(cq, 8) == ENOENT);
	WITH_GARBLED(cq, ibv_req_notify_cq(cq, 0) == ENOENT);
	WITH_GARBLED(cq, ibv_destroy_cq(cq) == ENOENT);
	WITH_GARBLED(srq, ibv_modify_srq(srq, &srq_attr, IBV_SRQ_LIMIT) == ENOENT);
	WITH_GARBLED(srq, ibv_query_srq(srq, &srq_attr) == ENOENT);
	WITH_GARBLED(srq, ibv_destroy_srq(srq) == ENOENT);
	WITH_GARBLED(qp, ibv_modify_qp(qp, &qp_attr, IBV_QP_STATE) == ENOENT);
	WITH_GARBLED(qp, ibv_query_qp(qp, &qp_attr, IBV_QP_STATE, &got) == ENOENT);
	WITH_GARBLED(qp, ibv_destroy_qp(qp) == ENOENT);
	CHECK(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0 && ibv_destroy_srq(srq) == 0);
}

static void
garbled_memory(struct all *all)
{
	struct ibv_mr *mr = ibv_reg_mr(all->pd, all->memory, 4096, ALL_ACCESS);
	struct ibv_mw *mw = ibv_alloc_mw(all->pd, IBV_MW_TYPE_1);
	struct ibv_ah *ah = all_ah(all);

	WITH_GARBLED(mr, ibv_dereg_mr(mr) == ENOENT);
	WITH_GARBLED(mw, ibv_dealloc_mw(mw) == ENOENT);
	WITH_GARBLED(ah, ibv_destroy_ah(ah) == ENOENT);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, all->memory, 8192, 0) == 0);
	CHECK(ibv_dereg_mr(mr) == 0 && ibv_dealloc_mw(mw) == 0 && ibv_destroy_ah(ah) == 0);
}

/* ---- capacities of queues that a QP does not have ---- */

#define TOO_MUCH (1u << 30)

static void
absent_queues(struct all *all)
{
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_xrcd *xrcd = ibv_open_xrcd(all->context, &domain);
	struct ibv_srq_init_attr shared = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(all->pd, &shared);
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = all->cq,
		.recv_cq = all->cq,
		.srq = srq,
		.pd = all->pd,
		.xrcd = xrcd,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.cap = {4, TOO_MUCH, 1, 4096, 0},
	};
	struct ibv_qp_init_attr_ex next = attr;
	struct ibv_qp *qp = ibv_create_qp_ex(all->context, &next);

	CHECK(qp != NULL && next.cap.max_recv_wr == 0 && next.cap.max_recv_sge == 0);
	CHECK(ibv_destroy_qp(qp) == 0);
	next = attr;
	next.srq = NULL;
	CHECK_NULL(ibv_create_qp_ex(all->context, &next), EINVAL);
	next = attr;
	next.qp_type = IBV_QPT_XRC_SEND;
	qp = ibv_create_qp_ex(all->context, &next);
	CHECK(qp != NULL && ibv_destroy_qp(qp) == 0);
	next = attr;
	next.qp_type = IBV_QPT_XRC_RECV;
	next.comp_mask = IBV_QP_INIT_ATTR_XRCD;
	next.cap = (struct ibv_qp_cap){TOO_MUCH, TOO_MUCH, 4096, 4096, TOO_MUCH};
	qp = ibv_create_qp_ex(all->context, &next);
	CHECK(qp != NULL && ibv_destroy_qp(qp) == 0);
	next = attr;
	next.cap.max_send_wr = TOO_MUCH;
	CHECK_NULL(ibv_create_qp_ex(all->context, &next), EINVAL);
	CHECK(ibv_destroy_srq(srq) == 0 && ibv_close_xrcd(xrcd) == 0);
}

void
all_errors(struct all *all)
{
	datagrams(all);
	unreliable(all);
	tag_alone(all);
	foreign_binds(all);
	garbled_domain(all);
	garbled_queues(all);
	garbled_memory(all);
	absent_queues(all);
}
