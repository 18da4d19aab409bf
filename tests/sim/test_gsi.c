/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * QP 1: management datagrams between two HCAs over every kind of address, as they are in frames;
 * which QP gets them, and that a flood of them harms no other QP.
 */

#include "abi_ctx.h"
#include "sim_duo.h"
#include "sim_test.h"

#define PROGRAM "test_gsi"
#define SLOTS 8u
#define MAD 256u
#define HEADERS SOFTHCA_GRH_BYTES
#define SLOT (HEADERS + MAD)
#define HOP_LIMIT 64u
#define PRIVATE 140u /* offset of the private data in a REQ */

struct gsi {
	struct sim *s;
	struct gsi_side {
		struct softhca_cq *cq, *scq;
		struct softhca_mr *mr;
		struct softhca_ah *ah[SIM_GIDS];
		struct softhca_qp *qp;
		uint8_t mem[(SLOTS + 1) * SLOT]; /* the last one sends */
	} side[2];
};

static void
gsi_receive(struct gsi *g, unsigned int side, unsigned int n)
{
	struct gsi_side *e = &g->side[side];
	struct softhca_sge sge = {(uintptr_t)e->mem + n * SLOT, SLOT, e->mr->lkey};
	struct softhca_recv_wr wr = {.wr_id = n, .sg_list = &sge, .num_sge = 1}, *bad;

	memset(e->mem + n * SLOT, 0xee, SLOT);
	sim_check(g->s, softhca_post_recv(e->qp, &wr, &bad) == 0, "post_recv");
}

static void
gsi_ready(struct gsi *g, unsigned int side)
{
	struct softhca_qp_attr a = {.port_num = 1, .qkey = HCA_QKEY_GSI};
	static const uint32_t mask[] = {SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT | SOFTHCA_QP_QKEY,
					0, SOFTHCA_QP_SQ_PSN};

	for (uint32_t i = 0; i < 3; i++) {
		a.qp_state = SOFTHCA_QPS_INIT + i;
		sim_check(g->s,
			  softhca_modify_qp(g->side[side].qp, &a, SOFTHCA_QP_STATE | mask[i]) == 0,
			  "to %s", softhca_qp_state_str(a.qp_state));
	}
}

static void
gsi_open_side(struct gsi *g, unsigned int side)
{
	struct gsi_side *e = &g->side[side];
	struct sim_side *ss = &g->s->side[side];
	struct softhca_cq_init_attr cq = {.cqe = 4 * SLOTS};
	struct softhca_qp_init_attr_ex a = {
		.cap = {.max_send_wr = SLOTS,
			.max_recv_wr = SLOTS,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = SOFTHCA_QPT_UD,
		.flags = SOFTHCA_SOURCE_QPN,
		.comp_mask = SOFTHCA_QP_INIT_ATTR_PD,
		.pd = ss->pd,
		.source_qpn = HCA_QPN_GSI,
	};

	a.recv_cq = e->cq = softhca_create_cq(ss->ctx, &cq);
	a.send_cq = e->scq = softhca_create_cq(ss->ctx, &cq);
	e->mr = softhca_reg_mr(ss->pd, e->mem, sizeof(e->mem), SOFTHCA_ACCESS_LOCAL_WRITE);
	e->qp = softhca_create_qp_ex(ss->ctx, &a);
	sim_check(g->s, e->scq != NULL && e->cq != NULL && e->mr != NULL && e->qp != NULL,
		  "objects");
	gsi_ready(g, side);
	for (unsigned int i = 0; i < SIM_GIDS; i++) {
		struct softhca_ah_attr ah = {.sgid_index = (uint8_t)i, .port_num = 1};

		sim_gid(1 - side, i, ah.dgid.raw);
		e->ah[i] = softhca_create_ah(ss->pd, &ah);
		sim_check(g->s, e->ah[i] != NULL, "create_ah");
	}
}

static void
gsi_open(struct gsi *g, const struct sim_config *cfg)
{
	*g = (struct gsi){.s = sim_open(cfg)};
	for (unsigned int i = 0; i < 2; i++) {
		gsi_open_side(g, i);
		sim_check(g->s, hca_driver_set_gsi(g->s->side[i].drv, g->side[i].qp->qp_num) == 0,
			  "set_gsi: %s", hca_driver_reason());
	}
}

static void
gsi_close(struct gsi *g)
{
	for (unsigned int side = 0; side < 2; side++) {
		struct gsi_side *e = &g->side[side];

		for (unsigned int i = 0; i < SIM_GIDS; i++)
			softhca_destroy_ah(e->ah[i]);
		sim_check(g->s, softhca_destroy_qp(e->qp) == 0, "destroy_qp");
		sim_check(g->s, softhca_destroy_cq(e->cq) == 0, "destroy_cq");
		sim_check(g->s, softhca_destroy_cq(e->scq) == 0, "destroy_cq");
		sim_check(g->s, softhca_dereg_mr(e->mr) == 0, "dereg_mr");
	}
	sim_close(g->s);
}

/* A REQ of connection management, such as librdmacm's to port 7174 of TCP. */
static void
gsi_make_req(uint8_t *mad, unsigned int side, unsigned int gid)
{
	static const uint8_t head[] = {1, 7, 2, 3, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0x10};
	static const uint8_t service[] = {0, 0, 0, 0, 1, 6, 0x1c, 6};
	uint8_t *req = mad + 24, *private = mad + PRIVATE, from[16], to[16];

	memset(mad, 0, MAD);
	memcpy(mad, head, sizeof(head));
	req[3] = (uint8_t)(1 + side); /* local communication ID */
	memcpy(req + 8, service, sizeof(service));
	memset(req + 50, 0xff, 2); /* P_Key */
	memset(req + 56, 0xff, 4); /* LIDs */
	sim_gid(side, gid, from);
	sim_gid(1 - side, gid, to);
	memcpy(req + 60, from, 16);
	memcpy(req + 76, to, 16);
	req[97] = HOP_LIMIT;
	private[1] = gid == SIM_GID_V4 || gid == SIM_GID_V4_VLAN ? 0x40 : 0x60;
	memcpy(private + 4, from, 16);
	memcpy(private + 20, to, 16);
}

static void
gsi_send(struct gsi *g, unsigned int side, unsigned int gid, uint32_t qpn, uint32_t qkey)
{
	struct gsi_side *e = &g->side[side];
	struct softhca_sge sge = {(uintptr_t)e->mem + SLOTS * SLOT, MAD, e->mr->lkey};
	struct softhca_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = SOFTHCA_WR_SEND,
		.send_flags = SOFTHCA_SEND_SIGNALED,
		.wr.ud = {.ah = e->ah[gid], .remote_qpn = qpn, .remote_qkey = qkey},
	};
	struct softhca_send_wr *bad;
	unsigned int errors = 0;

	gsi_make_req(e->mem + SLOTS * SLOT, side, gid);
	sim_check(g->s, softhca_post_send(e->qp, &wr, &bad) == 0, "post_send");
	sim_settle(g->s);
	sim_check(g->s, sim_cq_drain(e->scq, &errors) == 1 && errors == 0, "sent");
}

/* The receive has the MAD behind the IP header of its frame. */
static void
gsi_expect(struct gsi *g, unsigned int side, unsigned int gid)
{
	struct gsi_side *e = &g->side[side];
	bool ip4 = gid == SIM_GID_V4 || gid == SIM_GID_V4_VLAN;
	struct softhca_wc wc;
	const uint8_t *at;
	uint8_t from[16];

	sim_check(g->s, softhca_poll_cq(e->cq, 1, &wc) == 1, "%s: nothing came",
		  sim_gid_names[gid]);
	at = e->mem + wc.wr_id * SLOT;
	sim_check(g->s, wc.status == SOFTHCA_WC_SUCCESS && wc.opcode == SOFTHCA_WC_RECV, "status");
	sim_check(g->s, wc.src_qp == HCA_QPN_GSI, "from QPN %#x", wc.src_qp);
	sim_check(g->s, wc.byte_len == SLOT && wc.pkey_index == 0, "%u bytes", wc.byte_len);
	sim_check(g->s, at[ip4 ? 28 : 7] == HOP_LIMIT, "hop limit %u", at[ip4 ? 28 : 7]);
	sim_gid(1 - side, gid, from);
	sim_check(g->s, memcmp(ip4 ? at + 32 : at + 8, ip4 ? from + 12 : from, ip4 ? 4 : 16) == 0,
		  "source address");
	sim_check(g->s, memcmp(at + HEADERS, g->side[1 - side].mem + SLOTS * SLOT, MAD) == 0,
		  "another MAD");
	gsi_receive(g, side, wc.wr_id);
}

/* Each direction over every kind of address; test_gsi_tshark.py reads the frames. */
static void
frames_in(const struct sim_config *cfg)
{
	struct gsi g;

	gsi_open(&g, cfg);
	for (unsigned int side = 0; side < 2; side++)
		gsi_receive(&g, side, 0);
	for (unsigned int gid = 0; gid < SIM_GIDS; gid++) {
		for (unsigned int side = 0; side < 2; side++) {
			gsi_send(&g, side, gid, HCA_QPN_GSI, HCA_QKEY_GSI);
			gsi_expect(&g, 1 - side, gid);
		}
	}
	gsi_close(&g);
}
SIM_TEST(frames)

/* Datagrams that are not for QP 1, and those without a receiver, have counters of their own. */
static void
refused_in(const struct sim_config *cfg)
{
	struct softhca_wc wc;
	struct gsi g;

	gsi_open(&g, cfg);
	gsi_receive(&g, 1, 0);
	gsi_send(&g, 0, SIM_GID_V4, HCA_QPN_GSI, 0x10000);
	sim_check(g.s, sim_counter(g.s, 1, "rx_bad_qkey") == 1, "the Q_Key is not counted");
	sim_check(g.s, hca_driver_set_gsi(g.s->side[1].drv, 0) == 0, "end");
	gsi_send(&g, 0, SIM_GID_V4, HCA_QPN_GSI, HCA_QKEY_GSI);
	sim_check(g.s, sim_counter(g.s, 1, "rx_unknown_qpn") == 1, "QPN 1 without a QP");
	sim_check(g.s, softhca_poll_cq(g.side[1].cq, 1, &wc) == 0, "a datagram came");
	gsi_close(&g);
}
SIM_TEST(refused)

/* The datagrams that find no receive are counted apart; an RC connection goes on meanwhile. */
static void
flood_in(const struct sim_config *cfg)
{
	struct sim_duo d = {.depth = 64};
	unsigned int done = 0, errors = 0;
	struct gsi g;

	gsi_open(&g, cfg);
	sim_duo_open(g.s, &d);
	gsi_receive(&g, 1, 0);
	for (unsigned int i = 0; i < 20; i++) {
		sim_duo_post(&d, 1, SOFTHCA_WR_RDMA_WRITE, 1000, 1, SOFTHCA_SEND_SIGNALED);
		gsi_send(&g, 0, SIM_GID_V4, HCA_QPN_GSI, HCA_QKEY_GSI);
		done += sim_cq_drain(d.scq[1], &errors);
	}
	gsi_expect(&g, 1, SIM_GID_V4);
	sim_check(g.s, sim_counter(g.s, 1, "gsi_no_receive") == 19, "gsi_no_receive");
	sim_check(g.s, sim_counter(g.s, 1, "out_of_buffer") == 0, "out_of_buffer");
	sim_check(g.s, done == 20 && errors == 0, "%u of 20 WRITEs, %u errors", done, errors);
	sim_duo_close(&d);
	gsi_close(&g);
}
SIM_TEST(flood)

/* The end of its QP ends it: datagrams are for no QP then, and another QP may be it. */
static void
ends_with_its_qp_in(const struct sim_config *cfg)
{
	struct gsi g;

	gsi_open(&g, cfg);
	sim_check(g.s, softhca_destroy_qp(g.side[1].qp) == 0, "destroy_qp");
	gsi_send(&g, 0, SIM_GID_V6, HCA_QPN_GSI, HCA_QKEY_GSI);
	sim_check(g.s, sim_counter(g.s, 1, "rx_unknown_qpn") == 1, "QPN 1 without a QP");
	for (unsigned int i = 0; i < SIM_GIDS; i++)
		softhca_destroy_ah(g.side[1].ah[i]);
	sim_check(g.s,
		  softhca_destroy_cq(g.side[1].cq) == 0 && softhca_destroy_cq(g.side[1].scq) == 0 &&
			  softhca_dereg_mr(g.side[1].mr) == 0,
		  "destroy");
	gsi_open_side(&g, 1);
	sim_check(g.s, hca_driver_set_gsi(g.s->side[1].drv, g.side[1].qp->qp_num) == 0, "again");
	gsi_receive(&g, 1, 3);
	gsi_send(&g, 0, SIM_GID_V6, HCA_QPN_GSI, HCA_QKEY_GSI);
	gsi_expect(&g, 1, SIM_GID_V6);
	gsi_close(&g);
}
SIM_TEST(ends_with_its_qp)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames),
		cmocka_unit_test(refused),
		cmocka_unit_test(flood),
		cmocka_unit_test(ends_with_its_qp),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
