/* SPDX-License-Identifier: BSD-3-Clause */

/* XRC: an initiator here, a target and an SRQ at the other daemon, and the same the other way. */

#include <errno.h>
#include <string.h>

#include "talk.h"

/* Data that the ends exchange. */
struct card {
	uint32_t initiator, target, srqn, psn;
};

static int
make(struct talk_xrc *x, struct peer *p)
{
	struct softhca_xrcd_init_attr domain = {.fd = -1};
	struct softhca_srq_init_attr_ex srq = {
		.attr = {.max_wr = PEER_DEPTH, .max_sge = 2},
		.srq_type = SOFTHCA_SRQT_XRC,
		.pd = p->pd,
		.cq = p->cq,
	};
	struct softhca_qp_init_attr tx = {
		.send_cq = p->cq,
		.recv_cq = p->cq,
		.cap = {.max_send_wr = PEER_DEPTH,
			.max_send_sge = 4,
			.max_inline_data = PEER_INLINE},
		.qp_type = SOFTHCA_QPT_XRC_SEND,
	};
	struct softhca_qp_init_attr_ex rx = {
		.qp_type = SOFTHCA_QPT_XRC_RECV,
		.comp_mask = SOFTHCA_QP_INIT_ATTR_XRCD,
	};

	x->xrcd = softhca_open_xrcd(p->ctx, &domain);
	if (x->xrcd == NULL)
		return -errno;
	srq.xrcd = rx.xrcd = x->xrcd;
	x->f.srq = softhca_create_srq_ex(p->ctx, &srq);
	if (x->f.srq == NULL)
		return -errno;
	x->f.tx = softhca_create_qp(p->pd, &tx);
	if (x->f.tx == NULL)
		return -errno;
	x->f.rx = softhca_create_qp_ex(p->ctx, &rx);
	return x->f.rx != NULL ? 0 : -errno;
}

int
talk_xrc_open(struct talk_xrc *x, struct peer *p, int sock, struct talk_tally *tally)
{
	struct card me = {0}, other;
	int err;

	memset(x, 0, sizeof(*x));
	x->f = (struct talk_flow){.p = p, .sock = sock, .tally = tally};
	err = make(x, p);
	if (err == 0)
		err = softhca_get_srq_num(x->f.srq, &me.srqn);
	if (err != 0)
		return talk_failed("objects of XRC", err);
	me.initiator = x->f.mine = x->f.tx->qp_num;
	me.target = x->f.rx->qp_num;
	me.psn = me.initiator * 91 & 0xffffff;
	err = talk_swap(sock, &me, &other, sizeof(me));
	x->f.others = other.initiator;
	x->f.remote_srqn = other.srqn;
	if (err == 0)
		err = peer_connect_qp(p, x->f.tx, other.target, other.psn, me.psn);
	if (err == 0)
		err = peer_connect_qp(p, x->f.rx, other.initiator, other.psn, me.psn);
	return err == 0 ? peer_meet(sock) : err;
}

void
talk_xrc_close(struct talk_xrc *x)
{
	if (x->f.rx != NULL)
		softhca_destroy_qp(x->f.rx);
	if (x->f.tx != NULL)
		softhca_destroy_qp(x->f.tx);
	if (x->f.srq != NULL)
		softhca_destroy_srq(x->f.srq);
	if (x->xrcd != NULL)
		softhca_close_xrcd(x->xrcd);
	memset(x, 0, sizeof(*x));
}
