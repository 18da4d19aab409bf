/* SPDX-License-Identifier: BSD-3-Clause */

/* The MODIFY_QP family: transitions, attributes, the values they set, and destruction. */

#include <string.h>

#include "../rig.h"

#define QPI 5u
#define QPN RIG_QPN(QPI)

static int
setup(void **state)
{
	struct rig *r = rig_new(true);

	rig_qp_world(r);
	*state = r;
	return 0;
}

static int
teardown(void **state)
{
	rig_free(*state);
	return 0;
}

static struct hca_qp *
qp(struct rig *r)
{
	return &r->h->core->qp[QPI];
}

static void
to_rts(struct rig *r)
{
	assert_int_equal(rig_to_init(r, QPI), HCA_STAT_OK);
	assert_int_equal(rig_to_rtr(r, QPI), HCA_STAT_OK);
	assert_int_equal(rig_to_rts(r, QPI), HCA_STAT_OK);
}

static void
ladder_fills_the_store(void **state)
{
	struct rig *r = *state;
	struct hca_qp *q = qp(r);
	const struct hca_qpc *icm = (const void *)(r->driver + QPI * HCA_QPC_SIZE);

	assert_int_equal(rig_to_init(r, QPI), HCA_STAT_OK);
	assert_int_equal(q->cfg.state, HCA_QPS_INIT);
	assert_int_equal(q->cfg.local_qpn, QPN);
	assert_int_equal(q->cfg.pd, RIG_PD);
	assert_int_equal(q->cfg.usr_page, RIG_PAGE);
	assert_int_equal(q->parser.sq_size_log, 4);
	assert_int_equal(q->parser.window_mask, 7);
	assert_int_equal(q->ee.rq_size_log, 3);
	assert_ptr_equal(q->parser.sq.base, r->user + (512 << 10));
	assert_int_equal(r->h->core->cq[2].users, 1);
	assert_int_equal(r->h->core->vtp.mpt[20].users, 1);
	assert_int_equal(HCA_QPC_STATE(hca_be32_to_cpu(icm->flags)), HCA_QPS_INIT);

	assert_int_equal(rig_to_rtr(r, QPI), HCA_STAT_OK);
	assert_int_equal(q->ee.epsn, 0x654321);
	assert_int_equal(q->cfg.mtu_log, 10);
	assert_int_equal(q->cfg.remote_qpn, 0x123456);
	assert_memory_equal(&q->cfg.ip4, "\x0a\0\0\x02\x0a\0\0\x01", 8);
	assert_int_equal(q->cfg.max_dest_rd_atomic, 8);
	assert_int_equal(q->cfg.min_rnr_timer, 12);
	assert_memory_equal(q->encap.tmpl.bytes, "\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x08\0", 14);

	assert_int_equal(rig_to_rts(r, QPI), HCA_STAT_OK);
	assert_int_equal(q->req_tx.next_psn, 0xabcdef);
	assert_int_equal(q->req_tx.max_psn, 0xabcdef);
	assert_int_equal(q->sq_una, 0xabcdef);
	assert_int_equal(q->cfg.retry_cnt, 7);
	assert_int_equal(q->cfg.ack_timeout, 14);
	assert_int_equal(q->cfg.max_rd_atomic, 4);
	assert_int_equal(HCA_QPC_STATE(hca_be32_to_cpu(icm->flags)), HCA_QPS_RTS);
}

/*
 * Responder jobs follow max_dest_rd_atomic; in SQD the value may grow only up to the allocated
 * number.
 */
static void
responder_jobs(void **state)
{
	const uint32_t rtr = HCA_QP_ATTR_AV | HCA_QP_ATTR_PATH_MTU | HCA_QP_ATTR_DEST_QPN |
			     HCA_QP_ATTR_RQ_PSN | HCA_QP_ATTR_MAX_DEST_RD_ATOMIC |
			     HCA_QP_ATTR_MIN_RNR_TIMER;
	static const struct {
		uint8_t at_rtr, in_sqd, jobs;
		int rc;
	} cases[] = {
		{1, 16, 16, HCA_STAT_OK},  {5, 3, 16, HCA_STAT_OK},
		{0, 0, 16, HCA_STAT_OK},   {16, 17, 16, HCA_STAT_EXCEED_LIM},
		{17, 32, 32, HCA_STAT_OK}, {32, 1, 32, HCA_STAT_OK},
	};
	struct rig *r = *state;
	uint32_t limit, set;

	for (unsigned int i = 0; i < RTE_DIM(cases); i++) {
		assert_int_equal(rig_to_init(r, QPI), HCA_STAT_OK);
		rig_qpc(r, QPI, rtr)->rd_atomic =
			hca_cpu_to_be32(HCA_QPC_MAKE_RD_ATOMIC(0, cases[i].at_rtr, 0));
		assert_int_equal(rig_mbox(r, HCA_CMD_INIT2RTR_QPEE, QPN), HCA_STAT_OK);
		assert_int_equal(qp(r)->ee.job_mask + 1, cases[i].jobs);
		assert_int_equal(rig_to_rts(r, QPI), HCA_STAT_OK);
		rig_qpc(r, QPI, 0);
		assert_int_equal(rig_mbox(r, HCA_CMD_RTS2SQD_QPEE, QPN), HCA_STAT_OK);
		rig_qpc(r, QPI, HCA_QP_ATTR_MAX_DEST_RD_ATOMIC)->rd_atomic =
			hca_cpu_to_be32(HCA_QPC_MAKE_RD_ATOMIC(0, cases[i].in_sqd, 0));
		assert_int_equal(rig_mbox(r, HCA_CMD_SQD2SQD_QPEE, QPN), cases[i].rc);
		/* rounded up, for requesters that round their number up */
		limit = cases[i].rc == HCA_STAT_OK ? cases[i].in_sqd : cases[i].at_rtr;
		assert_int_equal(qp(r)->cfg.max_dest_rd_atomic, rte_align32pow2(limit));
		assert_int_equal(rig_mbox(r, HCA_CMD_QUERY_QP, QPN), HCA_STAT_OK);
		set = hca_be32_to_cpu(((const struct hca_qpc *)r->out)->rd_atomic);
		assert_int_equal(HCA_QPC_MAX_DEST_RD_ATOMIC(set), limit);
		assert_int_equal(rig_cmd(r, HCA_CMD_ERR2RST_QPEE, 3, QPN, 0, 0), HCA_STAT_OK);
	}
}

static void
query_returns_what_was_set(void **state)
{
	struct rig *r = *state;
	const struct hca_qpc *q = (const void *)r->out;

	assert_int_equal(rig_mbox(r, HCA_CMD_QUERY_QP, QPN), HCA_STAT_OK);
	assert_int_equal(q->flags, 0);
	to_rts(r);
	assert_int_equal(rig_mbox(r, HCA_CMD_QUERY_QP, QPN), HCA_STAT_OK);
	assert_int_equal(HCA_QPC_STATE(hca_be32_to_cpu(q->flags)), HCA_QPS_RTS);
	assert_int_equal(hca_be32_to_cpu(q->next_send_psn), 0xabcdef);
	assert_int_equal(hca_be32_to_cpu(q->last_acked_psn), 0xabcdef);
	assert_int_equal(HCA_QPC_EPSN(hca_be32_to_cpu(q->rnr_nextrecvpsn)), 0x654321);
	assert_int_equal(hca_be32_to_cpu(q->rd_atomic), HCA_QPC_MAKE_RD_ATOMIC(4, 8, 7));
	assert_int_equal(hca_be32_to_cpu(q->snd_wqe_len), 1024);
	assert_int_equal(hca_be32_to_cpu(q->path.ackto), HCA_QPC_MAKE_ACKTO(14, 0, 0, 64));
	assert_memory_equal(q, r->driver + QPI * HCA_QPC_SIZE, HCA_QPC_SIZE);
	assert_int_equal(rig_mbox(r, HCA_CMD_QUERY_QP, QPN ^ 0x100000), HCA_STAT_BAD_INDEX);
	assert_int_equal(rig_mbox(r, HCA_CMD_QUERY_QP, 1), HCA_STAT_BAD_INDEX);
	assert_int_equal(rig_mbox(r, HCA_CMD_QUERY_QP, 0xffffff), HCA_STAT_BAD_INDEX);
}

/* The device writes into the RQ's record but only reads the SQ. */
static void
rights_of_queue_regions(void **state)
{
	const uint32_t mask = HCA_QP_ATTR_PKEY_INDEX | HCA_QP_ATTR_PORT | HCA_QP_ATTR_ACCESS_FLAGS;
	struct rig *r = *state;
	uint8_t *p = r->user + (600 << 10);
	uint32_t mtt = rig_mtt(r, p, 1), key = HCA_KEY_MAKE(0x2a, 30, 0x33);
	struct hca_mpt *m = (void *)r->in;

	rig_fill_mpt(r, 30, RIG_PD, p, 1024, mtt);
	m->flags = hca_cpu_to_be32(HCA_MPT_FLAG_REGION);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_MPT, 30), HCA_STAT_OK);
	rig_qpc(r, QPI, mask)->rcv_wqe_base_l = hca_cpu_to_be32(key);
	assert_int_equal(rig_mbox(r, HCA_CMD_RST2INIT_QPEE, QPN), HCA_STAT_BAD_PARAM);
	rig_qpc(r, QPI, mask)->snd_wqe_base_l = hca_cpu_to_be32(key);
	assert_int_equal(rig_mbox(r, HCA_CMD_RST2INIT_QPEE, QPN), HCA_STAT_OK);
}

/* RST2INIT with one invalid field at a time: refused, and the device's state is unchanged. */
#define BREAK_INIT(X) \
	X(q->pd = hca_cpu_to_be32(HCA_PD_MAKE(5, 2))) \
	X(q->usr_page = hca_cpu_to_be32(2)) \
	X(q->usr_page = hca_cpu_to_be32(5000)) \
	X(q->cqn_snd = hca_cpu_to_be32(4)) \
	X(q->cqn_rcv = hca_cpu_to_be32(0x1000000)) \
	X(q->snd_wqe_base_l = hca_cpu_to_be32(HCA_KEY_MAKE(0x2b, 20, 0x33))) \
	X(q->rcv_wqe_base_l = hca_cpu_to_be32(0)) \
	X(q->snd_wqe_len = hca_cpu_to_be32(2048)) \
	X(q->snd_wqe_len = hca_cpu_to_be32(768)) \
	X(q->snd_wqe_len = 0) \
	X(q->rcv_wqe_len = hca_cpu_to_be32(1024)) \
	X(q->sizes = hca_cpu_to_be32(HCA_QPC_MAKE_SIZES(3, 31, 6, 5))) \
	X(q->sizes = hca_cpu_to_be32(HCA_QPC_MAKE_SIZES(3, 31, 10, 6))) \
	X(q->srqn = hca_cpu_to_be32(HCA_QPC_SRQ_VALID | 3)) \
	X(q->flags = hca_cpu_to_be32(HCA_QPC_MAKE_FLAGS(0, HCA_ST_RD, 3, 0))) \
	X(q->flags = hca_cpu_to_be32(HCA_QPC_MAKE_FLAGS(0, 4, 3, 0))) \
	X(q->local_qpn = hca_cpu_to_be32(QPN + 1)) \
	X(q->path.port_pkey = hca_cpu_to_be32(HCA_QPC_MAKE_PORT_PKEY(2, 0))) \
	X(q->path.port_pkey = hca_cpu_to_be32(HCA_QPC_MAKE_PORT_PKEY(1, 1))) \
	X(q->path.port_pkey = hca_cpu_to_be32(HCA_QPC_MAKE_PORT_PKEY(1, 99))) \
	X(q->access_flags = hca_cpu_to_be32(0x80)) \
	X(q->access_flags = hca_cpu_to_be32(0x400)) \
	X(q->opt_param_mask &= ~hca_cpu_to_be32(HCA_QP_ATTR_PORT)) \
	X(q->opt_param_mask |= hca_cpu_to_be32(HCA_QP_ATTR_SQ_PSN)) \
	X(q->opt_param_mask |= hca_cpu_to_be32(1u << 25)) \
	X(q->opt_param_mask |= hca_cpu_to_be32(HCA_QP_ATTR_STATE))

static void
bad_init_changes_nothing(void **state)
{
	const uint32_t mask = HCA_QP_ATTR_PKEY_INDEX | HCA_QP_ATTR_PORT | HCA_QP_ATTR_ACCESS_FLAGS;
	struct rig *r = *state;
	struct hca_qpc *q;

	rig_remember(r, QPI);
#define X(change) \
	q = rig_qpc(r, QPI, mask); \
	change; \
	assert_int_equal(rig_mbox(r, HCA_CMD_RST2INIT_QPEE, QPN), HCA_STAT_BAD_PARAM); \
	rig_unchanged(r, QPI);
	BREAK_INIT(X)
#undef X
	assert_int_equal(rig_cmd(r, HCA_CMD_RST2INIT_QPEE, 3, QPN, (uintptr_t)r->in, 0),
			 HCA_STAT_BAD_PARAM);
	assert_int_equal(rig_to_init(r, QPI), HCA_STAT_OK);
}

static void
congestion(struct hca_qpc *q, uint32_t number)
{
	q->opt_param_mask |= hca_cpu_to_be32(HCA_QP_ATTR_CONGESTION);
	q->congestion = hca_cpu_to_be32(number);
}

#define BREAK_RTR(X) \
	X(q->sizes = hca_cpu_to_be32(HCA_QPC_MAKE_SIZES(0, 31, 6, 6))) \
	X(q->sizes = hca_cpu_to_be32(HCA_QPC_MAKE_SIZES(6, 31, 6, 6))) \
	X(q->remote_qpn = hca_cpu_to_be32(0x1000002)) \
	X(q->remote_qpn = 0) \
	X(congestion(q, HCA_CONGESTION_MAX + 1)) \
	X(q->rd_atomic = hca_cpu_to_be32(HCA_QPC_MAKE_RD_ATOMIC(0, 33, 0))) \
	X(q->rnr_nextrecvpsn = hca_cpu_to_be32(HCA_QPC_MAKE_RNR_EPSN(32, 1))) \
	X(q->path.ackto = hca_cpu_to_be32(HCA_QPC_MAKE_ACKTO(0, 1, 0, 64))) \
	X(q->path.ackto = hca_cpu_to_be32(HCA_QPC_MAKE_ACKTO(0, 0, 1, 64))) \
	X(q->path.sip = hca_cpu_to_be32(0x0a000009)) \
	X(q->path.dip = hca_cpu_to_be32(0x0a000009)) \
	X(q->path.smac_hi = hca_cpu_to_be32(0x0200)) \
	X(q->path.dmac_hi = hca_cpu_to_be32(0x03000000)) \
	X(q->path.rgid[0] = 0xfe) \
	X(memset(q->path.rgid, 0, 16)) \
	X((q->path.mac_lo = 0, q->path.dmac_hi = 0)) \
	X(q->opt_param_mask &= ~hca_cpu_to_be32(HCA_QP_ATTR_MAX_DEST_RD_ATOMIC)) \
	X(q->opt_param_mask |= hca_cpu_to_be32(HCA_QP_ATTR_ALT_PATH))

static void
bad_rtr_changes_nothing(void **state)
{
	const uint32_t mask = HCA_QP_ATTR_AV | HCA_QP_ATTR_PATH_MTU | HCA_QP_ATTR_DEST_QPN |
			      HCA_QP_ATTR_RQ_PSN | HCA_QP_ATTR_MAX_DEST_RD_ATOMIC |
			      HCA_QP_ATTR_MIN_RNR_TIMER;
	struct rig *r = *state;
	struct hca_qpc *q;

	assert_int_equal(rig_to_init(r, QPI), HCA_STAT_OK);
	rig_remember(r, QPI);
#define X(change) \
	q = rig_qpc(r, QPI, mask); \
	change; \
	assert_int_equal(rig_mbox(r, HCA_CMD_INIT2RTR_QPEE, QPN), HCA_STAT_BAD_PARAM); \
	rig_unchanged(r, QPI);
	BREAK_RTR(X)
#undef X
	assert_int_equal(rig_to_rtr(r, QPI), HCA_STAT_OK);
}

static void
neighbour_table_gives_the_mac(void **state)
{
	struct rig *r = *state;
	struct hca_mbox_set_neigh *n = (void *)r->in;
	struct hca_qpc *q;

	assert_int_equal(rig_to_init(r, QPI), HCA_STAT_OK);
	memset(n, 0, sizeof(*n));
	memcpy(n->dgid, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\x02", 16);
	memcpy(n->dmac, "\x06\1\2\3\4\5", 6);
	n->flags = hca_cpu_to_be32(HCA_NEIGH_VALID);
	assert_int_equal(rig_mbox(r, HCA_CMD_SET_NEIGH, 0), HCA_STAT_OK);
	q = rig_qpc(r, QPI,
		    HCA_QP_ATTR_AV | HCA_QP_ATTR_PATH_MTU | HCA_QP_ATTR_DEST_QPN |
			    HCA_QP_ATTR_RQ_PSN | HCA_QP_ATTR_MAX_DEST_RD_ATOMIC |
			    HCA_QP_ATTR_MIN_RNR_TIMER);
	q->path.mac_lo = 0;
	q->path.dmac_hi = 0;
	assert_int_equal(rig_mbox(r, HCA_CMD_INIT2RTR_QPEE, QPN), HCA_STAT_OK);
	assert_memory_equal(qp(r)->encap.tmpl.bytes, "\x06\1\2\3\4\5", 6);
}

#define BREAK_RTS(X) \
	X(q->path.ackto = hca_cpu_to_be32(HCA_QPC_MAKE_ACKTO(32, 0, 0, 64))) \
	X(q->path.rnr_retry = hca_cpu_to_be32(HCA_QPC_MAKE_RNR_RETRY(8, 1))) \
	X(q->rd_atomic = hca_cpu_to_be32(HCA_QPC_MAKE_RD_ATOMIC(33, 8, 7))) \
	X(q->rd_atomic = hca_cpu_to_be32(HCA_QPC_MAKE_RD_ATOMIC(4, 8, 8))) \
	X(q->next_send_psn = hca_cpu_to_be32(0x1000000)) \
	X(limit(q, HCA_RATE_LIMIT_MIN - 1)) \
	X(limit(q, HCA_RATE_LIMIT_MAX + 1)) \
	X(q->opt_param_mask &= ~hca_cpu_to_be32(HCA_QP_ATTR_MAX_QP_RD_ATOMIC))

static void
limit(struct hca_qpc *q, uint32_t kbps)
{
	q->opt_param_mask |= hca_cpu_to_be32(HCA_QP_ATTR_RATE_LIMIT);
	q->rate_limit = hca_cpu_to_be32(kbps);
}

static void
bad_rts_changes_nothing(void **state)
{
	const uint32_t mask = HCA_QP_ATTR_TIMEOUT | HCA_QP_ATTR_RETRY_CNT | HCA_QP_ATTR_RNR_RETRY |
			      HCA_QP_ATTR_SQ_PSN | HCA_QP_ATTR_MAX_QP_RD_ATOMIC;
	struct rig *r = *state;
	struct hca_qpc *q;

	assert_int_equal(rig_to_init(r, QPI), HCA_STAT_OK);
	assert_int_equal(rig_to_rtr(r, QPI), HCA_STAT_OK);
	rig_remember(r, QPI);
#define X(change) \
	q = rig_qpc(r, QPI, mask); \
	change; \
	assert_int_equal(rig_mbox(r, HCA_CMD_RTR2RTS_QPEE, QPN), HCA_STAT_BAD_PARAM); \
	rig_unchanged(r, QPI);
	BREAK_RTS(X)
#undef X
	assert_int_equal(rig_to_rts(r, QPI), HCA_STAT_OK);
}

static void
to_state(struct rig *r, uint32_t state)
{
	int rc = rig_cmd(r, HCA_CMD_ERR2RST_QPEE, 3, QPN, 0, 0);

	assert_int_equal(rc, HCA_STAT_OK);
	if (state == HCA_QPS_RST)
		return;
	assert_int_equal(rig_to_init(r, QPI), HCA_STAT_OK);
	if (state == HCA_QPS_RTR || state == HCA_QPS_RTS || state == HCA_QPS_SQD)
		assert_int_equal(rig_to_rtr(r, QPI), HCA_STAT_OK);
	if (state == HCA_QPS_RTS || state == HCA_QPS_SQD)
		assert_int_equal(rig_to_rts(r, QPI), HCA_STAT_OK);
	rig_qpc(r, QPI, 0);
	if (state == HCA_QPS_SQD)
		assert_int_equal(rig_mbox(r, HCA_CMD_RTS2SQD_QPEE, QPN), HCA_STAT_OK);
	if (state == HCA_QPS_ERR)
		assert_int_equal(rig_cmd(r, HCA_CMD_2ERR_QPEE, 3, QPN, 0, 0), HCA_STAT_OK);
	if (state == HCA_QPS_SQE)
		qp(r)->cfg.state = HCA_QPS_SQE;
}

/* Every command in every state from which it has no transition. */
static void
illegal_transitions(void **state)
{
	static const struct hca_qp_transition rows[] = {
#define X HCA_QP_TRANSITION_ROW
		HCA_QP_TRANSITION_LIST(X)
#undef X
	};
	struct rig *r = *state;

	for (uint32_t from = 0; from < HCA_QPS_COUNT; from++) {
		for (unsigned int i = 0; i < RTE_DIM(rows); i++) {
			bool legal = false;

			if (rows[i].service != HCA_ST_RC)
				continue;
			for (unsigned int k = 0; k < RTE_DIM(rows); k++)
				legal |= rows[k].cmd == rows[i].cmd && rows[k].from == from &&
					 rows[k].service == HCA_ST_RC;
			if (legal)
				continue;
			to_state(r, from);
			/* let the stages handle their messages */
			for (unsigned int k = 0; k < 4; k++)
				rig_poll(r);
			rig_qpc(r, QPI, 0);
			rig_remember(r, QPI);
			assert_int_equal(rig_mbox(r, rows[i].cmd, QPN), HCA_STAT_BAD_QP_STATE);
			rig_unchanged(r, QPI);
		}
	}
}

static void
drain_and_resume(void **state)
{
	struct rig *r = *state;
	struct hca_qpc *q;

	to_rts(r);
	rig_qpc(r, QPI, HCA_QP_ATTR_EN_SQD_ASYNC_NOTIFY);
	assert_int_equal(rig_mbox(r, HCA_CMD_RTS2SQD_QPEE, QPN), HCA_STAT_OK);
	assert_int_equal(qp(r)->cfg.state, HCA_QPS_SQD);
	assert_int_equal(qp(r)->cfg.sqd_notify, 1);
	q = rig_qpc(r, QPI, HCA_QP_ATTR_AV | HCA_QP_ATTR_TIMEOUT);
	memcpy(&q->path.rgid[12], "\x0a\0\0\x09", 4);
	assert_int_equal(rig_mbox(r, HCA_CMD_SQD2SQD_QPEE, QPN), HCA_STAT_OK);
	assert_memory_equal(&qp(r)->cfg.peer_ip4, "\x0a\0\0\x09", 4);
	rig_qpc(r, QPI, 0);
	assert_int_equal(rig_mbox(r, HCA_CMD_SQD2RTS_QPEE, QPN), HCA_STAT_OK);
	assert_int_equal(qp(r)->cfg.state, HCA_QPS_RTS);
}

static void
reset_gives_everything_back(void **state)
{
	struct rig *r = *state;
	struct hca_usage u;
	uint32_t generation = qp(r)->cfg.generation;

	for (unsigned int i = 0; i < 50; i++) {
		to_rts(r);
		assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_CQ, 0, 2, 0, 0), HCA_STAT_RESOURCE_BUSY);
		assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_MPT, 0, 20, 0, 0),
				 HCA_STAT_RESOURCE_BUSY);
		if (i & 1)
			assert_int_equal(rig_cmd(r, HCA_CMD_2ERR_QPEE, 3, QPN, 0, 0), HCA_STAT_OK);
		assert_int_equal(rig_cmd(r, HCA_CMD_ERR2RST_QPEE, 3, QPN, 0, 0), HCA_STAT_OK);
		assert_int_equal(qp(r)->cfg.local_qpn, 0);
		assert_int_equal(qp(r)->cfg.generation, generation + i + 1);
	}
	hca_usage(r->h, &u);
	assert_int_equal(u.qps, 0);
	assert_int_equal(u.messages, 0);
	assert_int_equal(r->h->core->cq[2].users + r->h->core->cq[3].users, 0);
	assert_int_equal(r->h->core->vtp.mpt[20].users + r->h->core->vtp.mpt[21].users, 0);
	assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_MPT, 0, 20, 0, 0), HCA_STAT_OK);
	assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_CQ, 0, 2, 0, 0), HCA_STAT_OK);
}

/* A QPN whose tag differs from the live QP's. */
static void
another_number_on_a_live_index(void **state)
{
	struct rig *r = *state;

	to_rts(r);
	rig_remember(r, QPI);
	rig_qpc(r, QPI, 0);
	assert_int_equal(rig_mbox(r, HCA_CMD_2ERR_QPEE, QPN ^ 0x200000), HCA_STAT_BAD_INDEX);
	assert_int_equal(rig_cmd(r, HCA_CMD_ERR2RST_QPEE, 3, QPN ^ 0x200000, 0, 0),
			 HCA_STAT_BAD_INDEX);
	assert_int_equal(rig_cmd(r, HCA_CMD_ERR2RST_QPEE, 1, QPN, 0, 0), HCA_STAT_BAD_PARAM);
	rig_unchanged(r, QPI);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(ladder_fills_the_store),	  T(responder_jobs),
		T(query_returns_what_was_set),	  T(rights_of_queue_regions),
		T(bad_init_changes_nothing),	  T(bad_rtr_changes_nothing),
		T(neighbour_table_gives_the_mac), T(bad_rts_changes_nothing),
		T(illegal_transitions),		  T(drain_and_resume),
		T(reset_gives_everything_back),	  T(another_number_on_a_live_index),
	};

	if (rig_eal() != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
