/* SPDX-License-Identifier: BSD-3-Clause */

/* Jettys, JFSs, JFRs, well-known numbers and tokens by command. */

#include <string.h>

#include "ceu/ceu.h"
#include "../../rig.h"
#include "ub/ub.h"

#define QPI 5u
#define JETTY HCA_QPN_MAKE(0x155, QPI, RIG_LOG_QPS)
#define SRQI 2u
#define SRQN HCA_QPN_MAKE(0x1234, SRQI, RIG_LOG_SRQS)
#define JFR (HCA_TC_JFR | SRQN)
#define U_SRQ (600u << 10)
#define ATTRS (HCA_QP_ATTR_TIMEOUT | HCA_QP_ATTR_RNR_RETRY)
#define JETTY_ATTRS (ATTRS | HCA_QP_ATTR_MIN_RNR_TIMER)

static struct hca_qp *
qp(struct rig *r)
{
	return &r->h->core->qp[QPI];
}

static const struct hca_tc *
tc(struct rig *r)
{
	return &r->h->core->ub->jetty[QPI];
}

static void
put_flags(struct hca_qpc *q, uint32_t service, uint32_t more)
{
	q->flags = hca_cpu_to_be32(HCA_QPC_MAKE_FLAGS(0, service, 0, 0) | more);
}

/* The mailbox of RST2RTS. */
static struct hca_qpc *
qpc(struct rig *r, uint32_t service, uint32_t mask)
{
	struct hca_qpc *q = rig_qpc(r, QPI, mask);

	put_flags(q, service, 0);
	if (service == HCA_ST_JFS)
		q->rcv_wqe_len = 0;
	q->qkey = hca_cpu_to_be32(0x80c0ffee);
	return q;
}

static int
to_rts(struct rig *r)
{
	return rig_mbox(r, HCA_CMD_RST2RTS_QPEE, JETTY);
}

static int
create(struct rig *r)
{
	qpc(r, HCA_ST_JETTY, JETTY_ATTRS);
	return to_rts(r);
}

static int
bare(struct rig *r, uint16_t op)
{
	return rig_cmd(r, op, HCA_MODIFY_QP_NO_INBOX, JETTY, 0, 0);
}

static int
with_mask(struct rig *r, uint16_t op, uint32_t mask)
{
	qpc(r, HCA_ST_JETTY, mask);
	return rig_mbox(r, op, JETTY);
}

/* ---- Jettys ---- */

static void
ready_in_one_step(void **state)
{
	struct rig *r = *state;
	const struct hca_qp *q = qp(r);

	assert_int_equal(create(r), HCA_STAT_OK);
	assert_int_equal(q->cfg.state, HCA_QPS_RTS);
	assert_int_equal(q->cfg.local_qpn, JETTY);
	assert_int_equal(q->cfg.service, HCA_ST_JETTY);
	assert_int_equal(q->cfg.ack_timeout, 14);
	assert_int_equal(q->cfg.rnr_retry, 7);
	assert_int_equal(q->cfg.min_rnr_timer, 12);
	assert_int_equal(q->cfg.scqn, 2);
	assert_int_equal(q->cfg.rcqn, 3);
	assert_false(q->cfg.suspend);
	assert_ptr_equal(q->tai.window, q->parser.window);
	assert_int_equal(q->tai.window_mask, q->parser.window_mask);
	assert_int_equal(q->tai.sq_stride_log, 6);
	assert_int_equal(q->tai.segment_mask, 63);
	/* all of it is ours */
	memset(q->tai.segment, 0, sizeof(*q->tai.segment) * 64);
	assert_int_equal(q->tai.tassn, 0);
	assert_int_equal(q->sq_una, 0);
	assert_int_equal(q->ee.rq_size_log, 3);
	assert_int_equal(tc(r)->token.flags, HCA_TOKEN_EXPORTED);
	assert_int_equal(tc(r)->rnr_timer, 12);
	assert_int_equal(r->h->core->cq[2].users, 1);
	assert_int_equal(r->h->core->cq[3].users, 1);
	assert_int_equal(bare(r, HCA_CMD_ERR2RST_QPEE), HCA_STAT_OK);
	assert_int_equal(q->cfg.local_qpn, 0);
	assert_int_equal(tc(r)->token.flags, 0);
	assert_int_equal(r->h->core->cq[2].users + r->h->core->cq[3].users, 0);
	assert_int_equal(r->h->core->qp_own_bytes, 0);
	assert_int_equal(r->h->core->qp_job_bytes, 0);
}

/* A token, suspend mode. */
static void
options(void **state)
{
	struct rig *r = *state;

	put_flags(qpc(r, HCA_ST_JETTY, JETTY_ATTRS | HCA_QP_ATTR_QKEY), HCA_ST_JETTY,
		  HCA_QPC_TOKEN | HCA_QPC_SUSPEND);
	assert_int_equal(to_rts(r), HCA_STAT_OK);
	assert_true(qp(r)->cfg.suspend);
	assert_int_equal(tc(r)->token.flags, HCA_TOKEN_EXPORTED | HCA_TOKEN_CHECK);
	assert_int_equal(tc(r)->token.value[0], 0x80c0ffee);
	assert_int_equal(rig_mbox(r, HCA_CMD_QUERY_QP, JETTY), HCA_STAT_OK);
	assert_int_equal(hca_be32_to_cpu(((struct hca_qpc *)(void *)r->out)->flags),
			 HCA_QPC_MAKE_FLAGS(HCA_QPS_RTS, HCA_ST_JETTY, HCA_MIG_MIGRATED, 0) |
				 HCA_QPC_TOKEN | HCA_QPC_SUSPEND);
}

/* The driver chooses the first TASSN, as the number of the Jetty may have been used before. */
static void
first_number(void **state)
{
	struct rig *r = *state;

	qpc(r, HCA_ST_JETTY, JETTY_ATTRS | HCA_QP_ATTR_SQ_PSN)->next_send_psn =
		hca_cpu_to_be32(0x10000);
	assert_int_equal(to_rts(r), HCA_STAT_BAD_PARAM);
	qpc(r, HCA_ST_JETTY, JETTY_ATTRS | HCA_QP_ATTR_SQ_PSN)->next_send_psn =
		hca_cpu_to_be32(0xfffe);
	assert_int_equal(to_rts(r), HCA_STAT_OK);
	assert_int_equal(qp(r)->tai.tassn, 0xfffe);
	assert_int_equal(qp(r)->sq_una, 0xfffe);
	assert_int_equal(qp(r)->sq_next, 0);
	assert_int_equal(bare(r, HCA_CMD_ERR2RST_QPEE), HCA_STAT_OK);
	qpc(r, HCA_ST_JETTY, JETTY_ATTRS);
	assert_int_equal(to_rts(r), HCA_STAT_OK);
	assert_int_equal(qp(r)->tai.tassn, 0);
}

/* In ERROR it drains until its owner has FLUSH_DONE. */
static void
flush_is_told(void **state)
{
	const struct hca_qpc *q = (void *)((struct rig *)*state)->out;
	struct rig *r = *state;

	assert_int_equal(create(r), HCA_STAT_OK);
	assert_int_equal(bare(r, HCA_CMD_2ERR_QPEE), HCA_STAT_OK);
	for (uint32_t i = 0; i < 3; i++) /* the stages run meanwhile */
		assert_int_equal(rig_mbox(r, HCA_CMD_QUERY_QP, JETTY), HCA_STAT_OK);
	assert_int_equal(hca_be32_to_cpu(q->flags) & HCA_QPC_DRAINING, 0);
	qp(r)->tai.flushed = 0;
	assert_int_equal(rig_mbox(r, HCA_CMD_QUERY_QP, JETTY), HCA_STAT_OK);
	assert_int_equal(hca_be32_to_cpu(q->flags) & HCA_QPC_DRAINING, HCA_QPC_DRAINING);
}

static void
send_only(void **state)
{
	struct rig *r = *state;

	qpc(r, HCA_ST_JFS, ATTRS);
	assert_int_equal(to_rts(r), HCA_STAT_OK);
	assert_int_equal(qp(r)->cfg.service, HCA_ST_JFS);
	assert_int_equal(tc(r)->token.flags, 0);
	assert_int_equal(r->h->core->cq[3].users, 0);
	/* it cannot be asked for anything */
	assert_int_equal(rig_cmd(r, HCA_CMD_SET_JETTY_ID, 0, 40, JETTY, 0), HCA_STAT_BAD_PARAM);
	assert_int_equal(bare(r, HCA_CMD_ERR2RST_QPEE), HCA_STAT_OK);
	qpc(r, HCA_ST_JFS, ATTRS)->rcv_wqe_len = hca_cpu_to_be32(512);
	assert_int_equal(to_rts(r), HCA_STAT_BAD_PARAM);
}

static void
bad_jettys(void **state)
{
	struct rig *r = *state;
	struct hca_qpc *q;

	rig_remember(r, QPI);
	qpc(r, HCA_ST_JETTY, ATTRS); /* no RNR timer */
	assert_int_equal(to_rts(r), HCA_STAT_BAD_PARAM);
	qpc(r, HCA_ST_JETTY, JETTY_ATTRS | HCA_QP_ATTR_AV);
	assert_int_equal(to_rts(r), HCA_STAT_BAD_PARAM);
	q = qpc(r, HCA_ST_JETTY, JETTY_ATTRS);
	q->rnr_nextrecvpsn = hca_cpu_to_be32(HCA_QPC_MAKE_RNR_EPSN(20, 0));
	assert_int_equal(to_rts(r), HCA_STAT_BAD_PARAM);
	q = qpc(r, HCA_ST_JETTY, JETTY_ATTRS);
	q->path.ackto = hca_cpu_to_be32(HCA_QPC_MAKE_ACKTO(32, 0, 0, 0));
	assert_int_equal(to_rts(r), HCA_STAT_BAD_PARAM);
	put_flags(qpc(r, HCA_ST_JETTY, JETTY_ATTRS), HCA_ST_JETTY, HCA_QPC_TOKEN); /* no value */
	assert_int_equal(to_rts(r), HCA_STAT_BAD_PARAM);
	qpc(r, HCA_ST_JETTY, JETTY_ATTRS)->snd_wqe_len = 0;
	assert_int_equal(to_rts(r), HCA_STAT_BAD_PARAM);
	qpc(r, HCA_ST_JETTY, JETTY_ATTRS)->cqn_rcv = hca_cpu_to_be32(9);
	assert_int_equal(to_rts(r), HCA_STAT_BAD_PARAM);
	qpc(r, HCA_ST_JETTY, JETTY_ATTRS)->usr_page = hca_cpu_to_be32(RIG_PAGE + 1);
	assert_int_equal(to_rts(r), HCA_STAT_BAD_PARAM);
	rig_unchanged(r, QPI);
	/* QPs are not made that way, and Jettys not the other one */
	qpc(r, HCA_ST_RC, JETTY_ATTRS);
	assert_int_equal(to_rts(r), HCA_STAT_BAD_QP_STATE);
	qpc(r, HCA_ST_JETTY, HCA_QP_ATTR_PKEY_INDEX | HCA_QP_ATTR_PORT | HCA_QP_ATTR_ACCESS_FLAGS);
	assert_int_equal(rig_mbox(r, HCA_CMD_RST2INIT_QPEE, JETTY), HCA_STAT_BAD_QP_STATE);
	rig_unchanged(r, QPI);
}

/* On the wire a number has 19 bits, and those below 1024 are well known. */
static void
numbers_of_19_bits(void **state)
{
	static const struct {
		uint32_t number;
		int status;
	} rows[] = {
		{QPI, HCA_STAT_BAD_INDEX},	     {1023 - 31 + QPI, HCA_STAT_BAD_INDEX},
		{1024 + QPI, HCA_STAT_OK},	     {0x7ffe0 | QPI, HCA_STAT_OK},
		{0x80000 | QPI, HCA_STAT_BAD_INDEX},
	};
	struct rig *r = *state;

	for (unsigned int i = 0; i < RTE_DIM(rows); i++) {
		qpc(r, HCA_ST_JETTY, JETTY_ATTRS)->local_qpn = hca_cpu_to_be32(rows[i].number);
		assert_int_equal(rig_mbox(r, HCA_CMD_RST2RTS_QPEE, rows[i].number), rows[i].status);
		if (rows[i].status == HCA_STAT_OK)
			assert_int_equal(rig_cmd(r, HCA_CMD_ERR2RST_QPEE, HCA_MODIFY_QP_NO_INBOX,
						 rows[i].number, 0, 0),
					 HCA_STAT_OK);
	}
}

static void
states(void **state)
{
	struct rig *r = *state;
	const uint32_t *is = &qp(r)->cfg.state;

	assert_int_equal(with_mask(r, HCA_CMD_RTS2SQD_QPEE, 0), HCA_STAT_BAD_QP_STATE);
	assert_int_equal(create(r), HCA_STAT_OK);
	assert_int_equal(create(r), HCA_STAT_BAD_QP_STATE);
	assert_int_equal(with_mask(r, HCA_CMD_SQD2RTS_QPEE, 0), HCA_STAT_BAD_QP_STATE);
	assert_int_equal(with_mask(r, HCA_CMD_RTS2RTS_QPEE, 0), HCA_STAT_BAD_QP_STATE);
	assert_int_equal(with_mask(r, HCA_CMD_RTS2SQD_QPEE, HCA_QP_ATTR_QKEY), HCA_STAT_BAD_PARAM);
	assert_int_equal(with_mask(r, HCA_CMD_RTS2SQD_QPEE, 0), HCA_STAT_OK);
	assert_int_equal(*is, HCA_QPS_SQD);
	assert_int_equal(with_mask(r, HCA_CMD_SQD2SQD_QPEE, 0), HCA_STAT_BAD_QP_STATE);
	assert_int_equal(with_mask(r, HCA_CMD_SQD2RTS_QPEE, 0), HCA_STAT_OK);
	assert_int_equal(*is, HCA_QPS_RTS);
	assert_int_equal(bare(r, HCA_CMD_2ERR_QPEE), HCA_STAT_OK);
	assert_int_equal(*is, HCA_QPS_ERR);
	assert_int_equal(with_mask(r, HCA_CMD_RTS2SQD_QPEE, 0), HCA_STAT_BAD_QP_STATE);
	assert_int_equal(bare(r, HCA_CMD_ERR2RST_QPEE), HCA_STAT_OK);
	assert_int_equal(*is, HCA_QPS_RST);
}

static void
query_says_what_it_does_now(void **state)
{
	struct rig *r = *state;
	const struct hca_qpc *q = (void *)r->out;
	uint64_t values[64];

	assert_int_equal(create(r), HCA_STAT_OK);
	qp(r)->tai.tassn = 0x1234;
	qp(r)->tai_wait.answers = 7;
	qp(r)->sq_una = 0x1230;
	qp(r)->ee.rq_consumed = 3;
	assert_int_equal(rig_mbox(r, HCA_CMD_QUERY_QP, JETTY), HCA_STAT_OK);
	assert_int_equal(hca_be32_to_cpu(q->next_send_psn), 0x1234);
	assert_int_equal(hca_be32_to_cpu(q->last_acked_psn), 0x1230);
	assert_int_equal(HCA_QPC_RQ_COUNTER(hca_be32_to_cpu(q->wqe_counters)), 3);
	assert_int_equal(hca_qp_counters(r->h, JETTY, values), 0);
	for (unsigned int i = 0; i < hca_qp_counter_count(); i++)
		if (strcmp(hca_qp_counter_name(i), "rx_packets") == 0)
			assert_int_equal(values[i], 7);
}

/* ---- JFRs ---- */

static struct hca_srqc *
srqc(struct rig *r)
{
	struct hca_srqc *c = (void *)r->in;

	memset(c, 0, sizeof(*c));
	c->flags = hca_cpu_to_be32(HCA_SRQC_JFR);
	hca_srqc_set_start(c, (uintptr_t)r->user + U_SRQ);
	c->logsize_usrpage = hca_cpu_to_be32(HCA_FIELD(31, 24, 3) | RIG_PAGE);
	c->stride = hca_cpu_to_be32(HCA_FIELD(31, 24, 6) | 3);
	c->pd = hca_cpu_to_be32(RIG_PD);
	c->lkey = hca_cpu_to_be32(HCA_KEY_MAKE(0x2a, 22, 0x33));
	c->srqn = hca_cpu_to_be32(SRQN);
	c->xrc_cqn = hca_cpu_to_be32(3);
	c->rnr = hca_cpu_to_be32(HCA_FIELD(31, 24, 9));
	return c;
}

static int
create_jfr(struct rig *r)
{
	srqc(r);
	return rig_mbox(r, HCA_CMD_SW2HW_SRQ, SRQN);
}

static int
destroy_jfr(struct rig *r)
{
	return rig_cmd(r, HCA_CMD_HW2SW_SRQ, 0, SRQN, 0, 0);
}

static void
receives_for_requests(void **state)
{
	struct rig *r = *state;
	const struct hca_tc *row = &r->h->core->ub->jfr[SRQI];
	const struct hca_srqc *q = (void *)r->out;
	struct hca_srqc *c = srqc(r);

	c->flags = hca_cpu_to_be32(HCA_SRQC_JFR | HCA_SRQC_TOKEN);
	c->token = hca_cpu_to_be32(0xfeed);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_SRQ, SRQN), HCA_STAT_OK);
	assert_int_equal(r->h->core->srq[SRQI].jfr, 1);
	assert_int_equal(r->h->core->srq[SRQI].cqn, 3);
	assert_int_equal(r->h->core->cq[3].users, 1);
	assert_int_equal(row->token.flags, HCA_TOKEN_EXPORTED | HCA_TOKEN_CHECK);
	assert_int_equal(row->token.value[0], 0xfeed);
	assert_int_equal(row->rnr_timer, 9);
	assert_int_equal(rig_mbox(r, HCA_CMD_QUERY_SRQ, SRQN), HCA_STAT_OK);
	assert_int_equal(hca_be32_to_cpu(q->flags), HCA_SRQC_JFR | HCA_SRQC_TOKEN);
	assert_int_equal(hca_be32_to_cpu(q->xrc_cqn), 3);
	assert_int_equal(hca_be32_to_cpu(q->token), 0xfeed);
	assert_int_equal(HCA_SRQC_RNR_TIMER(hca_be32_to_cpu(q->rnr)), 9);
	assert_int_equal(destroy_jfr(r), HCA_STAT_OK);
	assert_int_equal(row->token.flags, 0);
	assert_int_equal(r->h->core->cq[3].users, 0);
}

static void
bad_jfrs(void **state)
{
	struct rig *r = *state;
	struct hca_srqc *c;

	srqc(r)->xrc_cqn = hca_cpu_to_be32(9);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_SRQ, SRQN), HCA_STAT_BAD_PARAM);
	srqc(r)->xrcd = hca_cpu_to_be32(HCA_SRQC_XRCD_VALID | 5);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_SRQ, SRQN), HCA_STAT_BAD_PARAM);
	srqc(r)->rnr = hca_cpu_to_be32(HCA_FIELD(31, 24, 20));
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_SRQ, SRQN), HCA_STAT_BAD_PARAM);
	srqc(r)->srqn = hca_cpu_to_be32(1u << 19 | SRQN);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_SRQ, 1u << 19 | SRQN), HCA_STAT_BAD_PARAM);
	/* fields that only JFRs have */
	c = srqc(r);
	c->flags = hca_cpu_to_be32(HCA_SRQC_TOKEN);
	c->rnr = 0;
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_SRQ, SRQN), HCA_STAT_BAD_PARAM);
	srqc(r)->flags = 0;
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_SRQ, SRQN), HCA_STAT_BAD_PARAM);
	assert_int_equal(r->h->core->cq[3].users, 0);
}

/* A Jetty takes its receives from a JFR, a QP from another SRQ. */
static void
shared_jfr(void **state)
{
	struct rig *r = *state;
	struct hca_qpc *q;

	assert_int_equal(create_jfr(r), HCA_STAT_OK);
	q = qpc(r, HCA_ST_JETTY, JETTY_ATTRS);
	q->srqn = hca_cpu_to_be32(HCA_QPC_SRQ_VALID | SRQN);
	q->rcv_wqe_len = 0;
	assert_int_equal(to_rts(r), HCA_STAT_OK);
	assert_ptr_equal(qp(r)->ee.srq, &r->h->core->srq[SRQI]);
	assert_int_equal(destroy_jfr(r), HCA_STAT_RESOURCE_BUSY);
	assert_int_equal(bare(r, HCA_CMD_ERR2RST_QPEE), HCA_STAT_OK);
	q = rig_qpc(r, QPI, HCA_QP_ATTR_PKEY_INDEX | HCA_QP_ATTR_PORT | HCA_QP_ATTR_ACCESS_FLAGS);
	q->srqn = hca_cpu_to_be32(HCA_QPC_SRQ_VALID | SRQN);
	q->rcv_wqe_len = 0;
	assert_int_equal(rig_mbox(r, HCA_CMD_RST2INIT_QPEE, JETTY), HCA_STAT_BAD_PARAM);
	assert_int_equal(destroy_jfr(r), HCA_STAT_OK);
	srqc(r)->flags = 0;
	((struct hca_srqc *)(void *)r->in)->rnr = 0;
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_SRQ, SRQN), HCA_STAT_OK);
	q = qpc(r, HCA_ST_JETTY, JETTY_ATTRS);
	q->srqn = hca_cpu_to_be32(HCA_QPC_SRQ_VALID | SRQN);
	q->rcv_wqe_len = 0;
	assert_int_equal(to_rts(r), HCA_STAT_BAD_PARAM);
}

/* ---- well-known numbers ---- */

static int
name(struct rig *r, uint32_t id, uint64_t target)
{
	return rig_cmd(r, HCA_CMD_SET_JETTY_ID, 0, id, target, 0);
}

static void
well_known(void **state)
{
	struct rig *r = *state;
	const uint32_t *known = r->h->core->ub->known;

	assert_int_equal(create(r), HCA_STAT_OK);
	assert_int_equal(create_jfr(r), HCA_STAT_OK);
	assert_int_equal(name(r, 0, JETTY), HCA_STAT_OK);
	assert_int_equal(name(r, 1023, JFR), HCA_STAT_OK);
	assert_int_equal(known[0], JETTY);
	assert_int_equal(known[1023], JFR);
	assert_int_equal(name(r, 0, JFR), HCA_STAT_RESOURCE_BUSY);
	assert_int_equal(name(r, 1024, JETTY), HCA_STAT_BAD_INDEX);
	assert_int_equal(name(r, 5, HCA_TC_NONE), HCA_STAT_BAD_RES_STATE);
	assert_int_equal(name(r, 5, JETTY ^ 1u << 12), HCA_STAT_BAD_PARAM);
	assert_int_equal(name(r, 5, JFR ^ 1u << 12), HCA_STAT_BAD_PARAM);
	assert_int_equal(name(r, 5, 1u << 20 | JETTY), HCA_STAT_BAD_PARAM);
	assert_int_equal(name(r, 5, UINT64_C(1) << 32 | JETTY), HCA_STAT_BAD_PARAM);
	assert_int_equal(name(r, 0, HCA_TC_NONE), HCA_STAT_OK);
	assert_int_equal(known[0], HCA_TC_NONE);
	/* an entry is freed with its Jetty */
	assert_int_equal(name(r, 7, JETTY), HCA_STAT_OK);
	assert_int_equal(name(r, 8, JETTY), HCA_STAT_OK);
	assert_int_equal(bare(r, HCA_CMD_ERR2RST_QPEE), HCA_STAT_OK);
	assert_int_equal(known[7] | known[8], HCA_TC_NONE);
	assert_int_equal(known[1023], JFR);
	assert_int_equal(destroy_jfr(r), HCA_STAT_OK);
	assert_int_equal(known[1023], HCA_TC_NONE);
}

/* ---- one peer ---- */

static int
bind_to(struct rig *r, uint32_t qpn, uint8_t eid, uint32_t tc)
{
	struct hca_mbox_bind_jetty *m = (void *)r->in;

	memset(m, 0, sizeof(*m));
	memset(m->eid, eid, sizeof(m->eid));
	m->tc = hca_cpu_to_be32(tc);
	return rig_mbox(r, HCA_CMD_BIND_JETTY, qpn);
}

static void
one_peer(void **state)
{
	struct rig *r = *state;

	assert_int_equal(create(r), HCA_STAT_OK);
	assert_int_equal(tc(r)->bound, HCA_TC_ANYBODY);
	assert_int_equal(bind_to(r, JETTY, 7, 0x10403), HCA_STAT_BAD_RES_STATE);
	assert_int_equal(bare(r, HCA_CMD_ERR2RST_QPEE), HCA_STAT_OK);
	assert_false(qp(r)->cfg.privileged);
	put_flags(qpc(r, HCA_ST_JETTY, JETTY_ATTRS), HCA_ST_JETTY,
		  HCA_QPC_ONE_PEER | HCA_QPC_PRIVILEGED);
	assert_int_equal(to_rts(r), HCA_STAT_OK);
	assert_true(qp(r)->cfg.one_peer && !qp(r)->cfg.suspend && qp(r)->cfg.privileged);
	assert_int_equal(tc(r)->bound, HCA_TC_ALONE);
	assert_int_equal(bind_to(r, JETTY, 7, HCA_TC_NONE), HCA_STAT_BAD_RES_STATE);
	assert_int_equal(bind_to(r, JETTY ^ 1u << 12, 7, 0x10403), HCA_STAT_BAD_INDEX);
	assert_int_equal(bind_to(r, 0, 7, 0x10403), HCA_STAT_BAD_INDEX);
	/* a well-known number does not name the Jetty that sends */
	assert_int_equal(bind_to(r, JETTY, 7, HCA_TC_WELL_KNOWN - 1), HCA_STAT_BAD_PARAM);
	assert_int_equal(bind_to(r, JETTY, 7, HCA_TC_JFR | 5), HCA_STAT_BAD_PARAM);
	assert_int_equal(tc(r)->bound, HCA_TC_ALONE);
	assert_int_equal(bind_to(r, JETTY, 7, 0x10403), HCA_STAT_OK);
	assert_int_equal(tc(r)->bound, HCA_TC_BOUND);
	assert_int_equal(tc(r)->peer, 0x10403);
	assert_int_equal(tc(r)->peer_eid[15], 7);
	assert_int_equal(bind_to(r, JETTY, 8, 0x10404), HCA_STAT_RESOURCE_BUSY);
	assert_int_equal(tc(r)->peer_eid[0], 7);
	assert_int_equal(bind_to(r, JETTY, 0, HCA_TC_NONE), HCA_STAT_OK);
	assert_int_equal(tc(r)->bound, HCA_TC_ALONE);
	assert_int_equal(bind_to(r, JETTY, 8, 0x10404), HCA_STAT_OK);
	/* the next Jetty in its place has no peer */
	assert_int_equal(bare(r, HCA_CMD_ERR2RST_QPEE), HCA_STAT_OK);
	assert_int_equal(create(r), HCA_STAT_OK);
	assert_int_equal(tc(r)->bound, HCA_TC_ANYBODY);
}

/* ---- tokens ---- */

static int
set_token(struct rig *r, uint32_t index, uint32_t flags, uint32_t first, uint32_t second)
{
	struct hca_mbox_set_token *m = (void *)r->in;

	memset(m, 0, sizeof(*m));
	m->flags = hca_cpu_to_be32(flags);
	m->value[0] = hca_cpu_to_be32(first);
	m->value[1] = hca_cpu_to_be32(second);
	return rig_mbox(r, HCA_CMD_SET_TOKEN, index);
}

#define PLAIN (HCA_TOKEN_EXPORTED | HCA_TOKEN_CHECK)

static void
tokens(void **state)
{
	struct rig *r = *state;
	const struct hca_token *t = &r->h->core->ub->token[30];

	rig_mr(r, 30, RIG_PD, r->user + (700 << 10), 4096);
	assert_int_equal(t->flags, 0);
	assert_int_equal(set_token(r, 30, HCA_TOKEN_EXPORTED, 0, 0), HCA_STAT_OK);
	assert_int_equal(t->flags, HCA_TOKEN_EXPORTED);
	assert_int_equal(set_token(r, 30, PLAIN, 11, 99), HCA_STAT_OK);
	assert_int_equal(t->flags, PLAIN);
	assert_int_equal(t->value[0], 11);
	assert_int_equal(set_token(r, 30, PLAIN | HCA_TOKEN_SECOND, 11, 22), HCA_STAT_OK);
	assert_int_equal(t->flags, PLAIN | HCA_TOKEN_SECOND);
	assert_int_equal(t->value[1], 22);
	assert_int_equal(set_token(r, 30, PLAIN, 22, 0), HCA_STAT_OK);
	assert_int_equal(t->value[0], 22);
	/* while stages may see the flag, the second value does not become another one */
	assert_int_equal(t->value[1], 22);
	assert_int_equal(set_token(r, 30, 0, 0, 0), HCA_STAT_OK);
	assert_int_equal(t->flags, 0);
}

static void
bad_tokens(void **state)
{
	struct rig *r = *state;

	rig_mr(r, 30, RIG_PD, r->user + (700 << 10), 4096);
	assert_int_equal(set_token(r, 0, PLAIN, 1, 0), HCA_STAT_BAD_INDEX);
	assert_int_equal(set_token(r, 1u << RIG_LOG_MPTS, PLAIN, 1, 0), HCA_STAT_BAD_INDEX);
	assert_int_equal(set_token(r, 31, PLAIN, 1, 0), HCA_STAT_BAD_RES_STATE);
	assert_int_equal(set_token(r, 30, HCA_TOKEN_CHECK, 1, 0), HCA_STAT_BAD_PARAM);
	assert_int_equal(set_token(r, 30, HCA_TOKEN_EXPORTED | HCA_TOKEN_SECOND, 1, 0),
			 HCA_STAT_BAD_PARAM);
	assert_int_equal(set_token(r, 30, HCA_TOKEN_FLAGS_ALL + 1, 1, 0), HCA_STAT_BAD_PARAM);
	assert_int_equal(r->h->core->ub->token[30].flags, 0);
}

static void
token_ends_with_its_region(void **state)
{
	struct rig *r = *state;
	const struct hca_token *t = &r->h->core->ub->token[30];

	rig_mr(r, 30, RIG_PD, r->user + (700 << 10), 4096);
	assert_int_equal(set_token(r, 30, PLAIN, 1, 0), HCA_STAT_OK);
	rig_post(r, HCA_HCR_MAKE_CTRL(0, 0, HCA_CMD_HW2SW_MPT), 30, 0, 0, HCA_CMD_POLL_TOKEN);
	rig_poll(r);
	assert_true(rig_ctrl(r) & HCA_HCR_GO);
	assert_int_equal(t->flags, 0); /* before the round */
	for (unsigned int i = 0; i < 20; i++)
		rig_poll(r);
	assert_false(rig_ctrl(r) & HCA_HCR_GO);
	rig_mr(r, 30, RIG_PD, r->user + (700 << 10), 4096);
	assert_int_equal(t->flags, 0);
}

/* All that a client has of UB ends with its domain. */
static void
all_go_with_the_domain(void **state)
{
	struct rig *r = *state;

	assert_int_equal(create(r), HCA_STAT_OK);
	assert_int_equal(create_jfr(r), HCA_STAT_OK);
	assert_int_equal(name(r, 40, JETTY), HCA_STAT_OK);
	assert_int_equal(name(r, 41, JFR), HCA_STAT_OK);
	rig_mr(r, 30, RIG_PD, r->user + (700 << 10), 4096);
	rig_mr(r, 31, RIG_KPD, r->driver, 4096);
	assert_int_equal(set_token(r, 30, PLAIN, 1, 0), HCA_STAT_OK);
	assert_int_equal(set_token(r, 31, PLAIN, 1, 0), HCA_STAT_OK);
	assert_int_equal(rig_cmd(r, HCA_CMD_CLOSE_DOMAIN, 0, RIG_PAGE, 0, 0), HCA_STAT_OK);
	assert_int_equal(qp(r)->cfg.local_qpn, 0);
	assert_int_equal(tc(r)->token.flags, 0);
	assert_int_equal(r->h->core->ub->jfr[SRQI].token.flags, 0);
	assert_int_equal(r->h->core->ub->known[40] | r->h->core->ub->known[41], HCA_TC_NONE);
	assert_int_equal(r->h->core->ub->token[30].flags, 0);
	assert_int_equal(r->h->core->ub->token[31].flags, PLAIN);
	assert_int_equal(rig_cmd(r, HCA_CMD_CLOSE_HCA, 0, 0, 0, 0), HCA_STAT_OK);
	assert_int_equal(r->h->core->ub->token[31].flags, 0);
}

/* A device that speaks UB alone has no QPs of RoCE. */
static void
ub_alone(void **state)
{
	struct rig *r = rig_new_on(HCA_WIRE_BIT(HCA_WIRE_UB), true);

	rig_qp_world(r);
	assert_int_equal(rig_to_init(r, QPI), HCA_STAT_BAD_PARAM);
	assert_int_equal(create(r), HCA_STAT_OK);
	rig_free(r);
}

static int
setup(void **state)
{
	struct rig *r = rig_new_on(RIG_UB, true);

	rig_qp_world(r);
	rig_mr(r, 22, RIG_PD, r->user + U_SRQ, 512 + sizeof(struct hca_rq_record));
	*state = r;
	return 0;
}

static int
teardown(void **state)
{
	rig_free(*state);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(ready_in_one_step),
		T(options),
		T(send_only),
		T(bad_jettys),
		T(first_number),
		T(flush_is_told),
		T(numbers_of_19_bits),
		T(states),
		T(query_says_what_it_does_now),
		T(receives_for_requests),
		T(bad_jfrs),
		T(shared_jfr),
		T(well_known),
		T(one_peer),
		T(tokens),
		T(bad_tokens),
		T(token_ends_with_its_region),
		T(all_go_with_the_domain),
		cmocka_unit_test(ub_alone),
	};

	if (rig_eal() != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
