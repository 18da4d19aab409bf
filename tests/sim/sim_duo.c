/* SPDX-License-Identifier: BSD-3-Clause */

#include <fcntl.h>
#include <stdlib.h>

#include "sim_duo.h"

#define BYTES 65536u
#define OWN_CQES 512u

static void
to_state(struct sim_duo *d, unsigned int side, uint32_t state, uint32_t mask)
{
	struct softhca_qp_attr a = {
		.qp_state = state,
		.port_num = 1,
		.qp_access_flags = SOFTHCA_ACCESS_REMOTE_WRITE | SOFTHCA_ACCESS_REMOTE_READ |
				   SOFTHCA_ACCESS_REMOTE_ATOMIC,
		.path_mtu = SOFTHCA_MTU_1024,
		.dest_qp_num = d->qp[1 - side]->qp_num,
		.rq_psn = 100 + (1 - side),
		.sq_psn = 100 + side,
		.max_dest_rd_atomic = 4,
		.max_rd_atomic = 4,
		.min_rnr_timer = 1,
		.timeout = sim_ack_timeout(d->s),
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {.port_num = 1, .is_global = 1, .hop_limit = 64},
	};
	int rc;

	sim_gid(1 - side, 0, a.ah_attr.dgid.raw);
	rc = softhca_modify_qp(d->qp[side], &a, SOFTHCA_QP_STATE | mask);
	sim_check(d->s, rc == 0, "modify_qp to %u: %d: %s", state, rc,
		  softhca_last_error(d->s->side[side].ctx));
}

void
sim_duo_rts(struct sim_duo *d, unsigned int side)
{
	to_state(d, side, SOFTHCA_QPS_RTS,
		 SOFTHCA_QP_SQ_PSN | SOFTHCA_QP_TIMEOUT | SOFTHCA_QP_RETRY_CNT |
			 SOFTHCA_QP_RNR_RETRY | SOFTHCA_QP_MAX_QP_RD_ATOMIC);
}

static void
make_side(struct sim_duo *d, unsigned int side)
{
	struct sim *s = d->s;
	struct softhca_cq_init_attr ca = {.cqe = OWN_CQES};
	struct softhca_qp_init_attr qa = {
		.cap = {.max_send_wr = d->depth,
			.max_recv_wr = d->depth,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = SOFTHCA_QPT_RC,
	};

	if (d->scq[side] == NULL || d->rcq[side] == NULL) {
		d->own[side] = softhca_create_cq(s->side[side].ctx, &ca);
		sim_check(s, d->own[side] != NULL, "create_cq");
	}
	if (d->scq[side] == NULL)
		d->scq[side] = d->own[side];
	if (d->rcq[side] == NULL)
		d->rcq[side] = d->own[side];
	qa.send_cq = d->scq[side];
	qa.recv_cq = d->rcq[side];
	d->qp[side] = softhca_create_qp(s->side[side].pd, &qa);
	sim_check(s, d->qp[side] != NULL, "create_qp: %s", softhca_last_error(s->side[side].ctx));
	d->buf[side] = aligned_alloc(4096, BYTES);
	d->mr[side] =
		softhca_reg_mr(s->side[side].pd, d->buf[side], BYTES,
			       SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE |
				       SOFTHCA_ACCESS_REMOTE_READ | SOFTHCA_ACCESS_REMOTE_ATOMIC);
	sim_check(s, d->mr[side] != NULL, "reg_mr");
}

void
sim_duo_open(struct sim *s, struct sim_duo *d)
{
	d->s = s;
	if (d->depth == 0)
		d->depth = 64;
	make_side(d, 0);
	make_side(d, 1);
	for (unsigned int side = 0; side < 2; side++) {
		to_state(d, side, SOFTHCA_QPS_INIT,
			 SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT | SOFTHCA_QP_ACCESS_FLAGS);
		to_state(d, side, SOFTHCA_QPS_RTR,
			 SOFTHCA_QP_AV | SOFTHCA_QP_PATH_MTU | SOFTHCA_QP_DEST_QPN |
				 SOFTHCA_QP_RQ_PSN | SOFTHCA_QP_MAX_DEST_RD_ATOMIC |
				 SOFTHCA_QP_MIN_RNR_TIMER);
		if (side == 1 || !d->stay_rtr)
			sim_duo_rts(d, side);
	}
}

void
sim_duo_close(struct sim_duo *d)
{
	for (unsigned int i = 0; i < 2; i++) {
		sim_check(d->s, softhca_destroy_qp(d->qp[i]) == 0, "destroy_qp");
		sim_check(d->s, softhca_dereg_mr(d->mr[i]) == 0, "dereg_mr");
		if (d->own[i] != NULL)
			sim_check(d->s, softhca_destroy_cq(d->own[i]) == 0, "destroy_cq");
		free(d->buf[i]);
	}
}

void
sim_duo_post(struct sim_duo *d, unsigned int side, uint32_t opcode, uint32_t len, unsigned int n,
	     uint32_t flags)
{
	struct softhca_sge sge = {(uintptr_t)d->buf[side], len, d->mr[side]->lkey};
	struct softhca_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = SOFTHCA_SEND_SIGNALED | flags,
		.wr.rdma = {(uintptr_t)d->buf[1 - side], d->mr[1 - side]->rkey},
	};
	struct softhca_send_wr *bad;

	for (unsigned int i = 0; i < n; i++)
		sim_check(d->s, softhca_post_send(d->qp[side], &wr, &bad) == 0, "post_send: %s",
			  softhca_last_error(d->s->side[side].ctx));
}

void
sim_duo_recv(struct sim_duo *d, unsigned int side, uint32_t len, unsigned int n)
{
	struct softhca_sge sge = {(uintptr_t)d->buf[side], len, d->mr[side]->lkey};
	struct softhca_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	for (unsigned int i = 0; i < n; i++)
		sim_check(d->s, softhca_post_recv(d->qp[side], &wr, &bad) == 0, "post_recv: %s",
			  softhca_last_error(d->s->side[side].ctx));
}

void
sim_duo_send(struct sim_duo *d, unsigned int side, unsigned int n, uint32_t flags)
{
	for (unsigned int i = 0; i < n; i++) {
		sim_duo_recv(d, 1 - side, 64, 1);
		sim_duo_post(d, side, SOFTHCA_WR_SEND, 64, 1, flags);
	}
}

uint32_t
sim_qp_state(struct sim *s, struct softhca_qp *qp)
{
	struct softhca_qp_attr a;
	struct softhca_qp_init_attr init;

	sim_check(s, softhca_query_qp(qp, &a, SOFTHCA_QP_STATE, &init) == 0, "query_qp");
	return a.qp_state;
}

unsigned int
sim_cq_drain(struct softhca_cq *cq, unsigned int *errors)
{
	struct softhca_wc wc[32];
	unsigned int all = 0;
	int n;

	while ((n = softhca_poll_cq(cq, 32, wc)) > 0) {
		for (int i = 0; i < n && errors != NULL; i++)
			*errors += wc[i].status != SOFTHCA_WC_SUCCESS;
		all += (unsigned int)n;
	}
	return all;
}

bool
sim_async(struct softhca_context *ctx, struct softhca_async_event *event)
{
	fcntl(ctx->async_fd, F_SETFL, O_NONBLOCK);
	return softhca_get_async_event(ctx, event) == 0;
}
