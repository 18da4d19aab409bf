/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include "engine/pkt.h"
#include "sim_link.h"
#include "sim_victim.h"

#define GUARD SIM_VICTIM_BYTES
#define GUARD_BYTE 0x3c
#define REGION_BYTE 0x96
#define VLAN_ID 5u

const char *const sim_victim_names[SIM_VICTIM_KINDS] = {
	[SIM_VICTIM_RC] = "RC",
	[SIM_VICTIM_UC] = "UC",
	[SIM_VICTIM_UD] = "UD",
	[SIM_VICTIM_XRC_INI] = "XRC initiator",
	[SIM_VICTIM_XRC_TGT] = "XRC target",
};

#define RIGHTS \
	(SOFTHCA_ACCESS_REMOTE_WRITE | SOFTHCA_ACCESS_REMOTE_READ | SOFTHCA_ACCESS_REMOTE_ATOMIC)

static struct sim_side *
side_of(struct sim_victim *v)
{
	return &v->s->side[SIM_VICTIM_SIDE];
}

#define CHECK(v, p, what) \
	sim_check((v)->s, (p), "%s: " what ": %s", sim_victim_names[(v)->kind], \
		  softhca_last_error(side_of(v)->ctx))

static void
open_memory(struct sim_victim *v)
{
	v->block = aligned_alloc(4096, 2 * GUARD + SIM_VICTIM_BYTES);
	CHECK(v, v->block != NULL, "memory");
	v->mem = v->block + GUARD;
	v->mr = softhca_reg_mr(side_of(v)->pd, v->mem, SIM_VICTIM_BYTES,
			       RIGHTS | SOFTHCA_ACCESS_LOCAL_WRITE);
	v->other = softhca_alloc_pd(side_of(v)->ctx);
	CHECK(v, v->mr != NULL && v->other != NULL, "reg_mr");
	v->dark = softhca_reg_mr(v->other, v->block, GUARD, RIGHTS | SOFTHCA_ACCESS_LOCAL_WRITE);
	CHECK(v, v->dark != NULL, "reg_mr");
}

static void
open_xrc(struct sim_victim *v)
{
	struct softhca_xrcd_init_attr xa = {.fd = -1};
	struct softhca_srq_init_attr_ex sa = {
		.attr = {.max_wr = SIM_VICTIM_RECVS, .max_sge = 1},
		.srq_type = SOFTHCA_SRQT_XRC,
		.pd = side_of(v)->pd,
		.cq = v->cq,
	};

	v->xrcd = softhca_open_xrcd(side_of(v)->ctx, &xa);
	CHECK(v, v->xrcd != NULL, "open_xrcd");
	sa.xrcd = v->xrcd;
	v->srq = softhca_create_srq_ex(side_of(v)->ctx, &sa);
	CHECK(v, v->srq != NULL && softhca_get_srq_num(v->srq, &v->srqn) == 0, "create_srq_ex");
}

static void
open_qp(struct sim_victim *v)
{
	static const uint32_t type[SIM_VICTIM_KINDS] = {
		[SIM_VICTIM_RC] = SOFTHCA_QPT_RC,
		[SIM_VICTIM_UC] = SOFTHCA_QPT_UC,
		[SIM_VICTIM_UD] = SOFTHCA_QPT_UD,
		[SIM_VICTIM_XRC_INI] = SOFTHCA_QPT_XRC_SEND,
		[SIM_VICTIM_XRC_TGT] = SOFTHCA_QPT_XRC_RECV,
	};
	bool rq = v->kind <= SIM_VICTIM_UD;
	struct softhca_qp_init_attr a = {
		.send_cq = v->cq,
		.recv_cq = v->cq,
		.cap = {.max_send_wr = 16,
			.max_recv_wr = rq ? SIM_VICTIM_RECVS : 0,
			.max_send_sge = 1,
			.max_recv_sge = rq},
		.qp_type = type[v->kind],
	};
	struct softhca_qp_init_attr_ex x = {
		.qp_type = type[v->kind],
		.comp_mask = SOFTHCA_QP_INIT_ATTR_XRCD,
		.xrcd = v->xrcd,
	};

	v->qp = v->kind == SIM_VICTIM_XRC_TGT ? softhca_create_qp_ex(side_of(v)->ctx, &x)
					      : softhca_create_qp(side_of(v)->pd, &a);
	CHECK(v, v->qp != NULL, "create_qp");
}

static bool
has_vlan(enum sim_gid gid)
{
	return gid == SIM_GID_V4_VLAN || gid == SIM_GID_V6_VLAN;
}

static void
make_path(struct sim_victim *v)
{
	struct hca_roce_path *p = &v->path;

	*p = (struct hca_roce_path){
		.udp.dmac = {2, 0, 0, 0, 0, 2},
		.udp.smac = {2, 0, 0, 0, 0, 1},
		.udp.vlan = has_vlan(v->gid),
		.udp.vlan_tci = has_vlan(v->gid) ? VLAN_ID : 0,
		.udp.hop_limit = 64,
		.udp.sport = 0xc123,
		.pkey = 0xffff,
		.qpn = v->qp->qp_num,
		.migreq = true,
	};
	sim_gid(0, v->gid, p->udp.sip);
	sim_gid(1, v->gid, p->udp.dip);
	p->udp.ip_version = p->udp.sip[0] == 0 ? 4 : 6;
}

void
sim_victim_open(struct sim *s, struct sim_victim *v, enum sim_victim_kind kind, enum sim_gid gid)
{
	struct softhca_cq_init_attr ca = {.cqe = 256};

	*v = (struct sim_victim){.s = s, .kind = kind, .gid = gid, .recv_len = SIM_VICTIM_RECV};
	v->cq = softhca_create_cq(side_of(v)->ctx, &ca);
	CHECK(v, v->cq != NULL, "create_cq");
	open_memory(v);
	if (kind == SIM_VICTIM_XRC_TGT)
		open_xrc(v);
	open_qp(v);
	make_path(v);
	if (kind == SIM_VICTIM_UD) {
		struct softhca_ah_attr aa = {.sgid_index = (uint8_t)gid, .port_num = 1};

		memcpy(aa.dgid.raw, v->path.udp.sip, 16);
		v->ah = softhca_create_ah(side_of(v)->pd, &aa);
		CHECK(v, v->ah != NULL, "create_ah");
	}
}

void
sim_victim_close(struct sim_victim *v)
{
	int rc = softhca_destroy_qp(v->qp);

	if (v->ah != NULL)
		rc |= softhca_destroy_ah(v->ah);
	if (v->srq != NULL)
		rc |= softhca_destroy_srq(v->srq);
	if (v->xrcd != NULL)
		rc |= softhca_close_xrcd(v->xrcd);
	rc |= softhca_destroy_cq(v->cq);
	rc |= softhca_dereg_mr(v->mr);
	rc |= softhca_dereg_mr(v->dark);
	rc |= softhca_dealloc_pd(v->other);
	CHECK(v, rc == 0, "destroy");
	free(v->block);
}

/* --- states -------------------- */

static void
post_recvs(struct sim_victim *v)
{
	uint32_t n = SIM_VICTIM_BYTES / v->recv_len;

	for (uint32_t i = 0; i < n && i < SIM_VICTIM_RECVS; i++) {
		struct softhca_sge sge = {(uintptr_t)v->mem + i * v->recv_len, v->recv_len,
					  v->mr->lkey};
		struct softhca_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;
		int rc = 0;

		if (v->srq != NULL)
			/* receives that earlier generations have not used are still there */
			(void)softhca_post_srq_recv(v->srq, &wr, &bad);
		else if (v->kind <= SIM_VICTIM_UD)
			rc = softhca_post_recv(v->qp, &wr, &bad);
		CHECK(v, rc == 0, "post_recv");
	}
}

static int
step(struct sim_victim *v, uint32_t state, uint32_t mask)
{
	struct softhca_qp_attr a = {
		.qp_state = state,
		.port_num = 1,
		.qkey = SIM_VICTIM_QKEY,
		.qp_access_flags = RIGHTS,
		.path_mtu = SOFTHCA_MTU_1024,
		.dest_qp_num = SIM_VICTIM_PEER,
		.rq_psn = SIM_VICTIM_PSN,
		.sq_psn = SIM_VICTIM_SQ_PSN,
		.max_dest_rd_atomic = 4,
		.max_rd_atomic = 4,
		.min_rnr_timer = 1,
		.timeout = 18,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {.port_num = 1, .is_global = 1, .sgid_index = (uint8_t)v->gid},
	};

	memcpy(a.ah_attr.dgid.raw, v->path.udp.sip, 16);
	return softhca_modify_qp(v->qp, &a, SOFTHCA_QP_STATE | mask);
}

#define CONNECT (SOFTHCA_QP_AV | SOFTHCA_QP_PATH_MTU | SOFTHCA_QP_DEST_QPN | SOFTHCA_QP_RQ_PSN)
#define RESPOND (SOFTHCA_QP_MAX_DEST_RD_ATOMIC | SOFTHCA_QP_MIN_RNR_TIMER)
#define REQUEST \
	(SOFTHCA_QP_SQ_PSN | SOFTHCA_QP_TIMEOUT | SOFTHCA_QP_RETRY_CNT | SOFTHCA_QP_RNR_RETRY | \
	 SOFTHCA_QP_MAX_QP_RD_ATOMIC)

/* Attributes of the transitions to INIT, RTR and RTS */
static const uint32_t masks[SIM_VICTIM_KINDS][3] = {
	[SIM_VICTIM_RC] = {SOFTHCA_QP_ACCESS_FLAGS, CONNECT | RESPOND, REQUEST},
	[SIM_VICTIM_UC] = {SOFTHCA_QP_ACCESS_FLAGS, CONNECT, SOFTHCA_QP_SQ_PSN},
	[SIM_VICTIM_UD] = {SOFTHCA_QP_QKEY, 0, SOFTHCA_QP_SQ_PSN},
	[SIM_VICTIM_XRC_INI] = {SOFTHCA_QP_ACCESS_FLAGS, CONNECT, REQUEST},
	[SIM_VICTIM_XRC_TGT] = {SOFTHCA_QP_ACCESS_FLAGS, CONNECT | RESPOND,
				SOFTHCA_QP_SQ_PSN | SOFTHCA_QP_TIMEOUT},
};

/* A send with an invalid key: the send queue goes to SQE, the QP not to ERR. */
static bool
to_sqe(struct sim_victim *v)
{
	struct softhca_sge sge = {(uintptr_t)v->mem, 8, v->mr->lkey ^ 1};
	struct softhca_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = SOFTHCA_WR_SEND,
		.send_flags = SOFTHCA_SEND_SIGNALED,
		.wr.ud = {.ah = v->ah, .remote_qpn = SIM_VICTIM_PEER, .remote_qkey = 1},
	};
	struct softhca_send_wr *bad;

	if (v->kind != SIM_VICTIM_UC && v->kind != SIM_VICTIM_UD)
		return false;
	CHECK(v, softhca_post_send(v->qp, &wr, &bad) == 0, "post_send");
	sim_settle(v->s);
	CHECK(v, sim_victim_state(v) == SOFTHCA_QPS_SQE, "not in SQE");
	return true;
}

bool
sim_victim_to(struct sim_victim *v, uint32_t state)
{
	const uint32_t *m = masks[v->kind];

	CHECK(v, step(v, SOFTHCA_QPS_RESET, 0) == 0, "to RESET");
	memset(v->block, GUARD_BYTE, 2 * GUARD + SIM_VICTIM_BYTES);
	memset(v->mem, REGION_BYTE, SIM_VICTIM_BYTES);
	if (state == SOFTHCA_QPS_RESET)
		return true;
	CHECK(v, step(v, SOFTHCA_QPS_INIT, SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT | m[0]) == 0,
	      "to INIT");
	post_recvs(v);
	if (state >= SOFTHCA_QPS_RTR)
		CHECK(v, step(v, SOFTHCA_QPS_RTR, m[1]) == 0, "to RTR");
	if (state >= SOFTHCA_QPS_RTS)
		CHECK(v, step(v, SOFTHCA_QPS_RTS, m[2]) == 0, "to RTS");
	if (state == SOFTHCA_QPS_SQD)
		return step(v, SOFTHCA_QPS_SQD, 0) == 0;
	if (state == SOFTHCA_QPS_SQE)
		return to_sqe(v);
	if (state == SOFTHCA_QPS_ERR)
		CHECK(v, step(v, SOFTHCA_QPS_ERR, 0) == 0, "to ERR");
	return true;
}

uint32_t
sim_victim_state(struct sim_victim *v)
{
	struct softhca_qp_attr a;

	CHECK(v, softhca_query_qp(v->qp, &a, SOFTHCA_QP_STATE, NULL) == 0, "query_qp");
	return a.qp_state;
}

static void
check_bytes(struct sim_victim *v, const uint8_t *p, uint32_t n, uint8_t want, const char *what)
{
	for (uint32_t i = 0; i < n; i++)
		sim_check(v->s, p[i] == want, "%s: byte %u of the %s was written",
			  sim_victim_names[v->kind], i, what);
}

void
sim_victim_check(struct sim_victim *v, bool region)
{
	check_bytes(v, v->block, GUARD, GUARD_BYTE, "guard in front");
	check_bytes(v, v->mem + SIM_VICTIM_BYTES, GUARD, GUARD_BYTE, "guard behind");
	if (region)
		check_bytes(v, v->mem, SIM_VICTIM_BYTES, REGION_BYTE, "region");
}

unsigned int
sim_victim_completions(struct sim_victim *v)
{
	struct softhca_wc wc[16];
	unsigned int all = 0;
	int n;

	while ((n = softhca_poll_cq(v->cq, 16, wc)) > 0)
		all += (unsigned int)n;
	return all;
}

/* --- packets -------------------- */

void
sim_injector_open(struct sim *s, struct sim_injector *x)
{
	static unsigned int serial;
	char name[32];

	snprintf(name, sizeof(name), "inject%u", serial++);
	*x = (struct sim_injector){.s = s, .icrc = hca_icrc_select()};
	x->pool = rte_pktmbuf_pool_create(name, 1024, 0, HCA_MBUF_PRIV, HCA_MBUF_DATA, -1);
	sim_check(s, x->pool != NULL, "no pool");
}

void
sim_injector_close(struct sim_injector *x)
{
	sim_settle(x->s);
	sim_check(x->s, rte_mempool_in_use_count(x->pool) == 0, "injected frames are lost");
	rte_mempool_free(x->pool);
}

uint32_t
sim_craft(struct sim_injector *x, const struct hca_roce_path *path, const struct sim_packet *p,
	  uint8_t *frame)
{
	uint32_t n = HCA_ROCE_BTH_LEN + HCA_ICRC_LEN + (p->cut != 0 ? -p->cut : p->len);
	struct hca_udp_template t;
	struct roce_view v;
	struct hca_bth *bth;

	sim_check(x->s, hca_roce_template_fill(path, &t) == 0, "template");
	bth = (void *)hca_udp_template_put(&t, HCA_UDP_LEN + n, frame);
	bth->opcode = p->opcode;
	bth->flags = HCA_BTH_MAKE_FLAGS(p->se, path->migreq, p->pad) | p->tver;
	bth->psn = hca_cpu_to_be32(HCA_BTH_MAKE_PSN(p->ackreq, p->psn));
	if (p->cut == 0 && p->tail != NULL)
		memcpy(bth + 1, p->tail, p->len);
	else if (p->cut == 0)
		memset(bth + 1, 0xa5, p->len);
	v = (struct roce_view){.l3 = t.l3,
			       .ip_version = t.ip_version,
			       .icrc = t.transport + n - HCA_ICRC_LEN};
	roce_seal(x->icrc, frame, &v);
	return t.transport + n;
}

void
sim_inject(struct sim_injector *x, const uint8_t *frame, uint32_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(x->pool);
	unsigned int tries = 0;

	sim_check(x->s, m != NULL, "injected frames are not freed");
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), frame, len);
	while (!sim_link_inject(x->s->side[SIM_VICTIM_SIDE].wire, m)) {
		sim_poll(x->s);
		sim_check(x->s, ++tries < 100000, "the link stays full");
	}
	x->injected++;
}

void
sim_inject_packet(struct sim_injector *x, const struct hca_roce_path *path,
		  const struct sim_packet *p)
{
	uint8_t frame[HCA_MBUF_DATA];

	sim_inject(x, frame, sim_craft(x, path, p, frame));
}

void
sim_inject_whole(struct sim_injector *x, const struct hca_roce_path *path, uint8_t opcode,
		 uint32_t psn, bool ackreq, const struct roce_headers *h, uint32_t payload)
{
	struct roce_packet p = {.opcode = opcode,
				.psn = psn & 0xffffff,
				.ackreq = ackreq,
				.payload_len = payload};
	uint8_t frame[HCA_MBUF_DATA], data[HCA_MBUF_DATA];
	struct hca_udp_template t;
	int n;

	memset(data, 0xe7, sizeof(data));
	sim_check(x->s, hca_roce_template_fill(path, &t) == 0, "template");
	n = roce_build(x->icrc, &t, &p, h, data, frame, sizeof(frame));
	sim_check(x->s, n > 0, "build %#x: %d", opcode, n);
	sim_inject(x, frame, (uint32_t)n);
}
