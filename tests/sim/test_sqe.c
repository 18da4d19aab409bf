/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A local error of a UC or UD request moves the send queue to SQE: later requests are flushed,
 * receives continue, and the program restarts the queue. In SQD it changes a UD QP's partition.
 */

#include "sim_test.h"
#include "../set_pkey.h"

#define PROGRAM "test_sqe"
#define S SOFTHCA_SEND_SIGNALED
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define BYTES 16384u
#define QKEY 0x1234u
#define DEPTH 32u

struct end {
	struct softhca_cq *scq, *rcq;
	struct softhca_qp *qp;
	struct softhca_mr *mr;
	struct softhca_ah *ah;
	uint8_t *mem;
};

struct link {
	struct sim *s;
	bool ud;
	enum sim_gid gid;
	struct end e[2];
};

static void
step(struct link *l, unsigned int side, uint32_t state, uint32_t mask)
{
	struct softhca_qp_attr a = {
		.qp_state = state,
		.cur_qp_state = SOFTHCA_QPS_SQE,
		.port_num = 1,
		.qkey = QKEY,
		.qp_access_flags = SOFTHCA_ACCESS_REMOTE_WRITE,
		.path_mtu = SOFTHCA_MTU_1024,
		.dest_qp_num = l->e[1 - side].qp->qp_num,
		.rq_psn = 77,
		.sq_psn = 77,
		.ah_attr = {.port_num = 1, .is_global = 1, .sgid_index = (uint8_t)l->gid},
	};
	int rc;

	sim_gid(1 - side, l->gid, a.ah_attr.dgid.raw);
	rc = softhca_modify_qp(l->e[side].qp, &a, SOFTHCA_QP_STATE | mask);
	sim_check(l->s, rc == 0, "to %s: %d: %s", softhca_qp_state_str(state), rc,
		  softhca_last_error(l->s->side[side].ctx));
}

static void
connect(struct link *l, unsigned int side)
{
	uint32_t av = SOFTHCA_QP_AV | SOFTHCA_QP_PATH_MTU | SOFTHCA_QP_DEST_QPN | SOFTHCA_QP_RQ_PSN;

	step(l, side, SOFTHCA_QPS_INIT,
	     SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT |
		     (l->ud ? SOFTHCA_QP_QKEY : SOFTHCA_QP_ACCESS_FLAGS));
	step(l, side, SOFTHCA_QPS_RTR, l->ud ? 0 : av);
	step(l, side, SOFTHCA_QPS_RTS, SOFTHCA_QP_SQ_PSN);
}

static void
open_end(struct link *l, unsigned int side)
{
	struct sim_side *ss = &l->s->side[side];
	struct softhca_cq_init_attr ca = {.cqe = 128};
	struct softhca_ah_attr aa = {.port_num = 1, .sgid_index = (uint8_t)l->gid};
	struct end *e = &l->e[side];
	struct softhca_qp_init_attr qa = {
		.cap = {.max_send_wr = DEPTH,
			.max_recv_wr = DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = l->ud ? SOFTHCA_QPT_UD : SOFTHCA_QPT_UC,
	};

	qa.send_cq = e->scq = softhca_create_cq(ss->ctx, &ca);
	qa.recv_cq = e->rcq = softhca_create_cq(ss->ctx, &ca);
	e->qp = softhca_create_qp(ss->pd, &qa);
	e->mem = aligned_alloc(4096, BYTES);
	e->mr = softhca_reg_mr(ss->pd, e->mem, BYTES,
			       SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE);
	sim_gid(1 - side, l->gid, aa.dgid.raw);
	e->ah = softhca_create_ah(ss->pd, &aa);
	sim_check(l->s, e->qp != NULL && e->mr != NULL && e->ah != NULL, "create");
}

static void
link_open(struct link *l, struct sim *s, bool ud, enum sim_gid gid)
{
	*l = (struct link){.s = s, .ud = ud, .gid = gid};
	open_end(l, 0);
	open_end(l, 1);
	connect(l, 0);
	connect(l, 1);
}

static void
link_close(struct link *l)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct end *e = &l->e[i];

		sim_check(l->s,
			  softhca_destroy_qp(e->qp) == 0 && softhca_destroy_ah(e->ah) == 0 &&
				  softhca_destroy_cq(e->scq) == 0 &&
				  softhca_destroy_cq(e->rcq) == 0 && softhca_dereg_mr(e->mr) == 0,
			  "destroy");
		free(e->mem);
	}
}

static void
post_recvs(struct link *l, unsigned int side, unsigned int n)
{
	struct end *e = &l->e[side];
	struct softhca_sge sge = {(uintptr_t)e->mem, 1024, e->mr->lkey};
	struct softhca_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	for (unsigned int i = 0; i < n; i++)
		sim_check(l->s, softhca_post_recv(e->qp, &wr, &bad) == 0, "post_recv");
}

static struct softhca_send_wr
good_wr(struct link *l, unsigned int side, struct softhca_sge *sge)
{
	struct end *e = &l->e[side];

	*sge = (struct softhca_sge){(uintptr_t)e->mem + 2048, 100, e->mr->lkey};
	return (struct softhca_send_wr){
		.sg_list = sge,
		.num_sge = 1,
		.opcode = SOFTHCA_WR_SEND,
		.send_flags = S,
		.wr.ud = {.ah = e->ah,
			  .remote_qpn = l->e[1 - side].qp->qp_num,
			  .remote_qkey = QKEY},
	};
}

static void
post(struct link *l, unsigned int side, struct softhca_send_wr *wr)
{
	struct softhca_send_wr *bad;

	sim_check(l->s, softhca_post_send(l->e[side].qp, wr, &bad) == 0, "post_send: %s",
		  softhca_last_error(l->s->side[side].ctx));
}

static void
send(struct link *l, unsigned int side, uint64_t id, uint32_t flags)
{
	struct softhca_sge sge;
	struct softhca_send_wr wr = good_wr(l, side, &sge);

	wr.wr_id = id;
	wr.send_flags = flags;
	post(l, side, &wr);
}

/* The next completion of the send queue. */
static void
expect(struct link *l, unsigned int side, uint64_t id, uint32_t status)
{
	struct softhca_wc wc;

	sim_check(l->s, softhca_poll_cq(l->e[side].scq, 1, &wc) == 1, "request %u: no completion",
		  (unsigned int)id);
	sim_check(l->s, wc.wr_id == id && wc.status == status, "request %u: %s instead of %u: %s",
		  (unsigned int)wc.wr_id, softhca_wc_status_str(wc.status), (unsigned int)id,
		  softhca_wc_status_str(status));
}

static unsigned int
received(struct link *l, unsigned int side)
{
	struct softhca_wc wc;
	unsigned int n = 0;

	for (; softhca_poll_cq(l->e[side].rcq, 1, &wc) == 1; n++)
		sim_check(l->s, wc.status == SOFTHCA_WC_SUCCESS, "a receive: %s",
			  softhca_wc_status_str(wc.status));
	return n;
}

static void
check_state(struct link *l, unsigned int side, uint32_t want)
{
	struct softhca_qp_attr a;

	sim_check(l->s, softhca_query_qp(l->e[side].qp, &a, SOFTHCA_QP_STATE, NULL) == 0, "query");
	sim_check(l->s, a.qp_state == want, "%s, not %s", softhca_qp_state_str(a.qp_state),
		  softhca_qp_state_str(want));
}

static void
nothing_more(struct link *l)
{
	struct softhca_wc wc;

	sim_check(l->s, softhca_poll_cq(l->e[0].scq, 1, &wc) == 0, "one completion too many");
}

/* Local errors of a request */
enum flaw {
	FLAW_KEY,
	FLAW_RANGE,
	FLAW_WRAP,
	FLAW_NO_KEY,
	FLAWS
};

static void
post_bad(struct link *l, enum flaw flaw, uint64_t id)
{
	struct softhca_sge sge;
	struct softhca_send_wr wr = good_wr(l, 0, &sge);

	wr.wr_id = id;
	if (flaw == FLAW_KEY)
		sge.lkey ^= 0x100;
	else if (flaw == FLAW_RANGE)
		sge.addr = (uintptr_t)l->e[0].mem + BYTES - 99;
	else if (flaw == FLAW_WRAP)
		sge.addr = UINT64_MAX - 9;
	else
		sge.lkey = 0;
	post(l, 0, &wr);
}

/* Earlier requests complete, later ones are flushed, and receives continue all the time. */
static void
one_error(struct link *l, enum flaw flaw, bool unsignalled)
{
	const uint32_t f = unsignalled ? 0 : S;
	unsigned int arrived, left;

	post_recvs(l, 1, 8);
	post_recvs(l, 0, 8);
	send(l, 0, 1, f);
	send(l, 0, 2, S);
	post_bad(l, flaw, 3);
	send(l, 0, 4, f);
	send(l, 0, 5, f);
	for (unsigned int i = 0; i < 3; i++)
		send(l, 1, 20 + i, S);
	sim_settle(l->s);
	if (!unsignalled)
		expect(l, 0, 1, SOFTHCA_WC_SUCCESS);
	expect(l, 0, 2, SOFTHCA_WC_SUCCESS);
	expect(l, 0, 3, SOFTHCA_WC_LOC_PROT_ERR);
	expect(l, 0, 4, SOFTHCA_WC_WR_FLUSH_ERR);
	expect(l, 0, 5, SOFTHCA_WC_WR_FLUSH_ERR);
	nothing_more(l);
	check_state(l, 0, SOFTHCA_QPS_SQE);
	check_state(l, 1, SOFTHCA_QPS_RTS);
	/* later ones may have been sent already */
	arrived = received(l, 1);
	sim_check(l->s, arrived >= 2 && arrived <= 4, "%u arrived", arrived);
	sim_check(l->s, received(l, 0) == 3, "not heard around the error");
	/* in SQE sends are flushed, receives continue */
	send(l, 0, 6, f);
	send(l, 1, 23, S);
	send(l, 1, 24, S);
	sim_settle(l->s);
	expect(l, 0, 6, SOFTHCA_WC_WR_FLUSH_ERR);
	sim_check(l->s, received(l, 0) == 2, "not heard in SQE");
	sim_check(l->s, received(l, 1) == 0, "sent in SQE");
	for (unsigned int i = 0; i < 5; i++)
		expect(l, 1, 20 + i, SOFTHCA_WC_SUCCESS);
	step(l, 0, SOFTHCA_QPS_RTS, SOFTHCA_QP_CUR_STATE);
	check_state(l, 0, SOFTHCA_QPS_RTS);
	send(l, 0, 7, S);
	send(l, 0, 8, S);
	send(l, 1, 25, S);
	sim_settle(l->s);
	expect(l, 0, 7, SOFTHCA_WC_SUCCESS);
	expect(l, 0, 8, SOFTHCA_WC_SUCCESS);
	expect(l, 1, 25, SOFTHCA_WC_SUCCESS);
	sim_check(l->s, received(l, 1) == 2 && received(l, 0) == 1, "not back in RTS");
	nothing_more(l);
	/* the remaining receives: they were not flushed */
	left = 8 - arrived - 2;
	for (unsigned int i = 0; i < left; i++)
		send(l, 0, 9, S);
	for (unsigned int i = 0; i < 2; i++)
		send(l, 1, 26, S);
	sim_settle(l->s);
	sim_check(l->s, received(l, 1) == left && received(l, 0) == 2, "receives are missing");
	for (unsigned int i = 0; i < left; i++)
		expect(l, 0, 9, SOFTHCA_WC_SUCCESS);
	for (unsigned int i = 0; i < 2; i++)
		expect(l, 1, 26, SOFTHCA_WC_SUCCESS);
}

static void
and_back_in(const struct sim_config *cfg)
{
	for (unsigned int ud = 0; ud < 2; ud++) {
		struct sim *s = sim_open(cfg);

		for (unsigned int gid = 0; gid < SIM_GIDS; gid++) {
			struct link l;

			link_open(&l, s, ud, gid);
			/* repeatedly with the same QP */
			for (unsigned int flaw = 0; flaw < FLAWS; flaw++)
				one_error(&l, flaw, flaw & 1);
			link_close(&l);
		}
		sim_close(s);
	}
}
SIM_TEST(and_back)

/*
 * A move from SQE to ERR also flushes the receives; from either state RESET makes the QP like new.
 */
static void
and_out_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);

	for (unsigned int i = 0; i < 4; i++) {
		struct softhca_wc wc;
		struct link l;

		link_open(&l, s, i & 1, SIM_GID_V4);
		post_recvs(&l, 0, 3);
		post_bad(&l, FLAW_KEY, 1);
		sim_settle(s);
		expect(&l, 0, 1, SOFTHCA_WC_LOC_PROT_ERR);
		check_state(&l, 0, SOFTHCA_QPS_SQE);
		if (i & 2) {
			step(&l, 0, SOFTHCA_QPS_ERR, 0);
			sim_settle(s);
			for (unsigned int k = 0; k < 3; k++)
				sim_check(s,
					  softhca_poll_cq(l.e[0].rcq, 1, &wc) == 1 &&
						  wc.status == SOFTHCA_WC_WR_FLUSH_ERR,
					  "a receive is not flushed");
		}
		for (unsigned int side = 0; side < 2; side++) {
			step(&l, side, SOFTHCA_QPS_RESET, 0);
			connect(&l, side);
		}
		post_recvs(&l, 1, 1);
		send(&l, 0, 2, S);
		sim_settle(s);
		expect(&l, 0, 2, SOFTHCA_WC_SUCCESS);
		sim_check(s, received(&l, 1) == 1 && received(&l, 0) == 0, "not as new");
		link_close(&l);
	}
	sim_close(s);
}
SIM_TEST(and_out)

static void
modify_ud(struct link *l, uint32_t state, uint32_t mask, uint16_t pkey_index)
{
	struct softhca_qp_attr a = {.qp_state = state, .pkey_index = pkey_index};

	sim_check(l->s, softhca_modify_qp(l->e[0].qp, &a, SOFTHCA_QP_STATE | mask) == 0, "to %s",
		  softhca_qp_state_str(state));
}

/* After SQD a UD QP sends in the partition that was set there, and in no other. */
static void
other_partition_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	struct link l;

	for (unsigned int side = 0; side < 2; side++)
		sim_check(s, set_pkey(s->side[side].drv, 1, 0x9234) == 0, "set_pkey");
	link_open(&l, s, true, SIM_GID_V4);
	post_recvs(&l, 1, 3);
	for (unsigned int i = 0; i < 3; i++) {
		send(&l, 0, i, S);
		sim_settle(s);
		expect(&l, 0, i, SOFTHCA_WC_SUCCESS);
		sim_check(s, received(&l, 1) == (i != 1), "message %u", i);
		sim_check(s, sim_counter(s, 1, "rx_bad_pkey") == (i != 0), "message %u", i);
		modify_ud(&l, SOFTHCA_QPS_SQD, 0, 0);
		sim_settle(s);
		modify_ud(&l, SOFTHCA_QPS_SQD, SOFTHCA_QP_PKEY_INDEX, i == 0);
		modify_ud(&l, SOFTHCA_QPS_RTS, 0, 0);
	}
	link_close(&l);
	sim_close(s);
}
SIM_TEST(other_partition)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(and_back),
		cmocka_unit_test(and_out),
		cmocka_unit_test(other_partition),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
