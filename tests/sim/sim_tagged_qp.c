/* SPDX-License-Identifier: BSD-3-Clause */

/* Objects of tagged messages: memory, CQ, SRQ, XRC domain, QPs, address handles. */

#include <stdlib.h>
#include <string.h>

#include "sim_tagged_impl.h"

#define QKEY 0x11223344u
#define RIGHTS \
	(SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE | SOFTHCA_ACCESS_REMOTE_READ)
#define MEM_BYTES ((size_t)2 * SIM_TAGGED_SLOTS * SIM_TAGGED_SLOT)

static const uint32_t qp_type[SIM_SERVICES] = {
	[SIM_RC] = SOFTHCA_QPT_RC,
	[SIM_UC] = SOFTHCA_QPT_UC,
	[SIM_UD] = SOFTHCA_QPT_UD,
	[SIM_XRC] = SOFTHCA_QPT_XRC_SEND,
};

#define CHECK(t, side, p, what) \
	sim_check((t)->s, (p), what ": %s", softhca_last_error(sim_tagged_side((t), side)->ctx))

static void
open_memory(struct sim_tagged *t, unsigned int side)
{
	struct sim_tagged_end *e = &t->end[side];

	e->mem = aligned_alloc(4096, MEM_BYTES);
	sim_check(t->s, e->mem != NULL, "no memory");
	e->mr = softhca_reg_mr(sim_tagged_side(t, side)->pd, e->mem, MEM_BYTES, RIGHTS);
	CHECK(t, side, e->mr != NULL, "reg_mr");
	e->free_sends = e->free_recvs = SIM_TAGGED_SLOTS;
	for (uint32_t i = 0; i < SIM_TAGGED_SLOTS; i++)
		e->free_send[i] = e->free_recv[i] = i;
}

static void
open_srq(struct sim_tagged *t, unsigned int side)
{
	struct sim_tagged_end *e = &t->end[side];
	struct sim_side *ss = sim_tagged_side(t, side);
	struct softhca_srq_attr a = {
		.max_wr = SIM_TAGGED_SLOTS,
		.max_sge = 2,
		.srq_limit = t->attr.srq_limit,
	};

	if (t->attr.service == SIM_XRC) {
		struct softhca_xrcd_init_attr xa = {0};
		struct softhca_srq_init_attr_ex ex = {.attr = a, .pd = ss->pd, .cq = e->cq};

		xa.fd = -1;
		e->xrcd = softhca_open_xrcd(ss->ctx, &xa);
		CHECK(t, side, e->xrcd != NULL, "open_xrcd");
		ex.srq_type = SOFTHCA_SRQT_XRC;
		ex.xrcd = e->xrcd;
		e->srq = softhca_create_srq_ex(ss->ctx, &ex);
		CHECK(t, side, e->srq != NULL, "create_srq_ex");
		sim_check(t->s, softhca_get_srq_num(e->srq, &e->srqn) == 0, "get_srq_num");
	} else {
		struct softhca_srq_init_attr ia = {.attr = a};

		e->srq = softhca_create_srq(ss->pd, &ia);
		CHECK(t, side, e->srq != NULL, "create_srq");
	}
}

static void
open_end(struct sim_tagged *t, unsigned int side)
{
	struct sim_tagged_end *e = &t->end[side];
	struct softhca_cq_init_attr ca = {
		.cqe = 4 * SIM_TAGGED_SLOTS,
		.wc_flags = t->attr.read ? SIM_WC_LARGE : 0,
	};

	open_memory(t, side);
	e->cq = softhca_create_cq(sim_tagged_side(t, side)->ctx, &ca);
	CHECK(t, side, e->cq != NULL, "create_cq");
	if (sim_tagged_has_srq(t))
		open_srq(t, side);
}

static struct softhca_qp *
open_xrc_target(struct sim_tagged *t, unsigned int side)
{
	struct softhca_qp_init_attr_ex a = {
		.qp_type = SOFTHCA_QPT_XRC_RECV,
		.comp_mask = SOFTHCA_QP_INIT_ATTR_XRCD,
		.xrcd = t->end[side].xrcd,
	};
	struct softhca_qp *qp = softhca_create_qp_ex(sim_tagged_side(t, side)->ctx, &a);

	CHECK(t, side, qp != NULL, "create_qp_ex");
	return qp;
}

static void
open_qp(struct sim_tagged *t, unsigned int side, uint32_t flow)
{
	struct sim_tagged_end *e = &t->end[side];
	bool own_rq = !sim_tagged_has_srq(t);
	struct softhca_qp_init_attr a = {
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.srq = t->attr.srq && t->attr.service != SIM_XRC ? e->srq : NULL,
		.cap = {.max_send_wr = SIM_TAGGED_DEPTH,
			.max_recv_wr = own_rq ? SIM_TAGGED_SLOTS : 0,
			.max_send_sge = 1,
			.max_recv_sge = own_rq ? 2 : 0},
		.qp_type = qp_type[t->attr.service],
	};

	e->qp[flow] = softhca_create_qp(sim_tagged_side(t, side)->pd, &a);
	CHECK(t, side, e->qp[flow] != NULL, "create_qp");
	e->tgt[flow] = t->attr.service == SIM_XRC ? open_xrc_target(t, side) : e->qp[flow];
}

static struct softhca_ah_attr
address(struct sim_tagged *t, unsigned int side)
{
	struct softhca_ah_attr a = {
		.sgid_index = (uint8_t)t->attr.gid,
		.hop_limit = 64,
		.flow_label = t->attr.flow_label,
		.traffic_class = t->attr.traffic_class,
		.sl = t->attr.sl,
		.static_rate = t->attr.static_rate,
		.port_num = 1,
		.is_global = 1,
	};

	sim_gid(t->attr.loop ? 0 : 1 - side, t->attr.gid, a.dgid.raw);
	return a;
}

static void
to_state(struct sim_tagged *t, unsigned int side, struct softhca_qp *qp, struct softhca_qp_attr *a,
	 uint32_t state, uint32_t mask)
{
	int rc;

	a->qp_state = state;
	rc = softhca_modify_qp(qp, a, mask | SOFTHCA_QP_STATE);
	sim_check(t->s, rc == 0, "%s QP to %s: %d: %s", sim_service_names[t->attr.service],
		  softhca_qp_state_str(state), rc,
		  softhca_last_error(sim_tagged_side(t, side)->ctx));
}

/* Attributes of the steps to RTR and RTS, per kind of QP. */
#define CONNECT (SOFTHCA_QP_AV | SOFTHCA_QP_PATH_MTU | SOFTHCA_QP_DEST_QPN | SOFTHCA_QP_RQ_PSN)
#define RESPOND (SOFTHCA_QP_MAX_DEST_RD_ATOMIC | SOFTHCA_QP_MIN_RNR_TIMER)
#define REQUEST \
	(SOFTHCA_QP_SQ_PSN | SOFTHCA_QP_TIMEOUT | SOFTHCA_QP_RETRY_CNT | SOFTHCA_QP_RNR_RETRY | \
	 SOFTHCA_QP_MAX_QP_RD_ATOMIC)

static void
connect(struct sim_tagged *t, unsigned int side, struct softhca_qp *qp, struct softhca_qp *peer)
{
	struct softhca_qp_attr a = {
		.port_num = 1,
		.pkey_index = t->attr.pkey_index[side],
		.qkey = QKEY,
		.qp_access_flags = RIGHTS & ~(uint32_t)SOFTHCA_ACCESS_LOCAL_WRITE,
		.path_mtu = t->attr.mtu,
		.dest_qp_num = peer->qp_num,
		.rq_psn = 0xfffff0,
		.sq_psn = 0xfffff0,
		.max_dest_rd_atomic = 4,
		.max_rd_atomic = 4,
		.min_rnr_timer = 1,
		.timeout = (uint8_t)t->attr.timeout,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = address(t, side),
	};
	uint32_t init = SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT;
	uint32_t rtr = CONNECT | RESPOND, rts = REQUEST;

	switch (qp->qp_type) {
	case SOFTHCA_QPT_UD:
		init |= SOFTHCA_QP_QKEY;
		rtr = 0;
		rts = SOFTHCA_QP_SQ_PSN;
		break;
	case SOFTHCA_QPT_UC:
		rtr = CONNECT;
		rts = SOFTHCA_QP_SQ_PSN;
		break;
	case SOFTHCA_QPT_XRC_SEND:
		rtr = CONNECT;
		break;
	case SOFTHCA_QPT_XRC_RECV:
		rts = SOFTHCA_QP_SQ_PSN | SOFTHCA_QP_TIMEOUT;
		break;
	default:
		break;
	}
	if (qp->qp_type != SOFTHCA_QPT_UD)
		init |= SOFTHCA_QP_ACCESS_FLAGS;
	to_state(t, side, qp, &a, SOFTHCA_QPS_INIT, init);
	to_state(t, side, qp, &a, SOFTHCA_QPS_RTR, rtr);
	to_state(t, side, qp, &a, SOFTHCA_QPS_RTS, rts);
}

static void
open_flow(struct sim_tagged *t, uint32_t flow)
{
	for (unsigned int side = 0; side < 2; side++)
		open_qp(t, side, flow);
	for (unsigned int side = 0; side < 2; side++) {
		struct sim_tagged_end *e = &t->end[side], *o = &t->end[1 - side];

		connect(t, side, e->qp[flow], o->tgt[flow]);
		if (e->tgt[flow] != e->qp[flow])
			connect(t, side, e->tgt[flow], o->qp[flow]);
	}
}

static void
default_attr(struct sim_tagged_attr *a)
{
	if (a->flows == 0)
		a->flows = 1;
	if (a->mtu == 0)
		a->mtu = SOFTHCA_MTU_1024;
	if (a->max_len == 0)
		a->max_len = 3000;
	if (a->timeout == 0)
		a->timeout = 8;
}

struct sim_tagged *
sim_tagged_open(struct sim *s, const struct sim_tagged_attr *attr)
{
	struct sim_tagged *t = calloc(1, sizeof(*t));

	sim_check(s, t != NULL, "no memory");
	t->s = s;
	t->attr = *attr;
	default_attr(&t->attr);
	open_end(t, 0);
	open_end(t, 1);
	for (uint32_t f = 0; f < t->attr.flows; f++)
		open_flow(t, f);
	for (unsigned int side = 0; side < 2 && t->attr.service == SIM_UD; side++) {
		struct softhca_ah_attr a = address(t, side);

		t->end[side].ah = softhca_create_ah(sim_tagged_side(t, side)->pd, &a);
		CHECK(t, side, t->end[side].ah != NULL, "create_ah");
	}
	sim_tagged_fill(t);
	return t;
}

void
sim_tagged_address(struct sim_tagged *t, unsigned int side, uint32_t flow,
		   struct softhca_send_wr *wr)
{
	if (t->attr.service == SIM_UD) {
		wr->wr.ud.ah = t->end[side].ah;
		wr->wr.ud.remote_qpn = t->end[1 - side].qp[flow]->qp_num;
		wr->wr.ud.remote_qkey = QKEY;
	} else if (t->attr.service == SIM_XRC) {
		wr->qp_type.xrc.remote_srqn = t->end[1 - side].srqn;
	}
}

static void
close_end(struct sim_tagged *t, unsigned int side)
{
	struct sim_tagged_end *e = &t->end[side];
	int rc = 0;

	for (uint32_t f = 0; f < t->attr.flows; f++) {
		if (e->tgt[f] != e->qp[f])
			rc |= softhca_destroy_qp(e->tgt[f]);
		rc |= softhca_destroy_qp(e->qp[f]);
	}
	CHECK(t, side, rc == 0, "destroy_qp");
	if (e->ah != NULL)
		rc |= softhca_destroy_ah(e->ah);
	if (e->srq != NULL)
		rc |= softhca_destroy_srq(e->srq);
	CHECK(t, side, rc == 0, "destroy_srq");
	if (e->xrcd != NULL)
		rc |= softhca_close_xrcd(e->xrcd);
	CHECK(t, side, rc == 0, "close_xrcd");
	rc |= softhca_destroy_cq(e->cq);
	rc |= softhca_dereg_mr(e->mr);
	CHECK(t, side, rc == 0, "destroy_cq, dereg_mr");
}

#define NONE 2u

static void
tagged_end(struct sim_tagged *t, unsigned int lost)
{
	for (unsigned int side = 0; side < 2; side++) {
		if (side != lost)
			close_end(t, side);
		free(t->end[side].mem);
	}
	free(t);
}

void
sim_tagged_close(struct sim_tagged *t)
{
	tagged_end(t, NONE);
}

void
sim_tagged_abandon(struct sim_tagged *t, unsigned int lost)
{
	tagged_end(t, lost);
}
