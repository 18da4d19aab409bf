/* SPDX-License-Identifier: BSD-3-Clause */

/* Setup of every subject: a device, memory, queue pairs in RTS. */

#include "all.h"

void
all_open(struct all *all)
{
	all_open_at(all, 0);
}

void
all_open_at(struct all *all, int index)
{
	int n = 0;

	memset(all, 0, sizeof(*all));
	CHECK(ibv_fork_init() == 0);
	CHECK(ibv_is_fork_initialized() != IBV_FORK_DISABLED);
	all->list = ibv_get_device_list(&n);
	CHECK(all->list != NULL && n >= 1 && all->list[n] == NULL);
	all->context = ibv_open_device(all->list[index >= 0 ? index : n + index]);
	CHECK(all->context != NULL);
	all->pd = ibv_alloc_pd(all->context);
	CHECK(all->pd != NULL && all->pd->context == all->context);
	all->memory = calloc(1, BYTES);
	all->mr = ibv_reg_mr(all->pd, all->memory, BYTES, ALL_ACCESS);
	CHECK(all->mr != NULL && all->mr->addr == all->memory && all->mr->length == BYTES);
	all->cq = ibv_create_cq(all->context, 64, all, NULL, 0);
	CHECK(all->cq != NULL && all->cq->cqe >= 64 && all->cq->cq_context == all);
	CHECK(ibv_query_gid(all->context, PORT, GID_INDEX, &all->gid) == 0);
}

void
all_close(struct all *all)
{
	CHECK(ibv_dealloc_pd(all->pd) == EBUSY);
	CHECK(ibv_destroy_cq(all->cq) == 0);
	CHECK(ibv_dereg_mr(all->mr) == 0);
	CHECK(ibv_dealloc_pd(all->pd) == 0);
	ibv_free_device_list(all->list);
	/* an open device outlives its list */
	CHECK(ibv_get_device_name(all->context->device)[0] != '\0');
	CHECK(ibv_close_device(all->context) == 0);
	free(all->memory);
}

/* Named attributes of a QP in INIT are changed, all or none. */
static void
init_again(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = PORT}, got;
	struct ibv_qp_init_attr init;

	CHECK(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0);
	CHECK(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT) == 0);
	CHECK(ibv_modify_qp(qp, &attr, IBV_QP_PKEY_INDEX) == 0);
	CHECK(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_DEST_QPN) == EINVAL);
	CHECK(ibv_query_qp(qp, &got, IBV_QP_STATE | IBV_QP_QKEY | IBV_QP_ACCESS_FLAGS, &init) == 0);
	CHECK(got.qp_state == IBV_QPS_INIT && got.port_num == PORT);
	if (qp->qp_type == IBV_QPT_UD)
		CHECK(got.qkey == 0x11111111);
	else
		CHECK((got.qp_access_flags & IBV_ACCESS_REMOTE_WRITE) != 0);
}

void
all_to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = PORT,
		.qkey = 0x11111111,
		.qp_access_flags = ALL_ACCESS & ~IBV_ACCESS_MW_BIND,
	};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	CHECK(qp->state == IBV_QPS_RESET);
	mask |= qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	CHECK(ibv_modify_qp(qp, &attr, mask) == 0);
	CHECK(qp->state == IBV_QPS_INIT);
	init_again(qp);
}

static struct ibv_ah_attr
path(const struct all *all)
{
	return (struct ibv_ah_attr){
		.grh = {.dgid = all->gid, .sgid_index = GID_INDEX, .hop_limit = 64},
		.is_global = 1,
		.port_num = PORT,
	};
}

#define CONNECT (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RESPOND (IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define REQUEST (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)

/* XRC also takes all attributes of RC, at either end. */
static int
rtr_mask(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_UD:
		return 0;
	case IBV_QPT_UC:
		return CONNECT;
	default:
		return CONNECT | RESPOND;
	}
}

static int
rts_mask(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_UC:
	case IBV_QPT_UD:
		return IBV_QP_SQ_PSN;
	default: /* of XRC QPs more than they have, as perftest does */
		return IBV_QP_SQ_PSN | REQUEST;
	}
}

static void
to_rts(struct all *all, struct ibv_qp *qp, uint32_t peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer,
		.ah_attr = path(all),
		.max_dest_rd_atomic = 1,
		.max_rd_atomic = 1,
		.min_rnr_timer = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};

	CHECK(ibv_modify_qp(qp, &attr, IBV_QP_STATE | rtr_mask(qp->qp_type)) == 0);
	attr.qp_state = IBV_QPS_RTS;
	CHECK(ibv_modify_qp(qp, &attr, IBV_QP_STATE | rts_mask(qp->qp_type)) == 0);
	CHECK(qp->state == IBV_QPS_RTS);
}

struct ibv_qp *
all_qp(struct all *all, enum ibv_qp_type type, struct ibv_cq *cq, struct ibv_srq *srq, uint64_t ops)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_context = all,
		.send_cq = cq,
		.recv_cq = cq,
		.srq = srq,
		.cap = {16, 16, 4, 4, 64},
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     (ops != 0 ? (uint32_t)IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
		.pd = all->pd,
		.send_ops_flags = ops,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(all->context, &attr);

	CHECK(qp != NULL && qp->qp_context == all && qp->qp_type == type);
	CHECK(attr.cap.max_inline_data >= 64 && attr.cap.max_send_wr >= 16);
	CHECK((ibv_qp_to_qp_ex(qp) != NULL) == (ops != 0));
	all_to_init(qp);
	if (type == IBV_QPT_UD)
		to_rts(all, qp, 0);
	return qp;
}

void
all_connect(struct all *all, struct ibv_qp *a, struct ibv_qp *b)
{
	to_rts(all, a, b->qp_num);
	to_rts(all, b, a->qp_num);
}

struct ibv_ah *
all_ah(struct all *all)
{
	struct ibv_ah_attr attr = path(all);
	struct ibv_ah *ah;

	attr.is_global = 0;
	CHECK_NULL(ibv_create_ah(all->pd, &attr), EINVAL);
	attr.is_global = 1;
	attr.grh.flow_label = 0xffffffff; /* other devices take 20 bits of it */
	ah = ibv_create_ah(all->pd, &attr);
	CHECK(ah != NULL && ah->pd == all->pd);
	return ah;
}

struct ibv_wc
all_any_wc(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(cq, 1, &wc);
	while (n == 0);
	CHECK(n == 1);
	return wc;
}

struct ibv_wc
all_wc(struct ibv_cq *cq)
{
	struct ibv_wc wc = all_any_wc(cq);

	if (wc.status != IBV_WC_SUCCESS)
		fprintf(stderr, "completion of %llu: %s\n", (unsigned long long)wc.wr_id,
			ibv_wc_status_str(wc.status));
	CHECK(wc.status == IBV_WC_SUCCESS);
	return wc;
}

void
all_recv(struct all *all, struct ibv_qp *qp, uint64_t wr_id, size_t offset, uint32_t bytes)
{
	struct ibv_sge sge = {(uintptr_t)all->memory + offset, bytes, all->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	CHECK(ibv_post_recv(qp, &wr, &bad) == 0);
}
