/* SPDX-License-Identifier: BSD-3-Clause */

/* UB in the driver: its commands, refusals, and released objects. */

#include "ub_clients.h"

/* ---- Jettys ---- */

static struct hca_ctl_jetty
jetty(unsigned int i, uint32_t service)
{
	return (struct hca_ctl_jetty){
		.qp = {.sq_addr = (uintptr_t)memory + 4 * PAGE,
		       .rq_addr = (uintptr_t)memory + 6 * PAGE,
		       .pdn = pdn[i],
		       .service = service,
		       .send_cqn = cqn[i],
		       .recv_cqn = cqn[i],
		       .log_sq = 4,
		       .log_sq_stride = 7,
		       .log_rq = 4,
		       .log_rq_stride = 6},
		.err_timeout = 17,
		.rnr_retry = 7,
		.min_rnr_timer = 12,
	};
}

static int
create(unsigned int i, const struct hca_ctl_jetty *j, uint32_t *number)
{
	return hca_client_call(client[i], HCA_CTL_CREATE_JETTY, j, number, NULL);
}

static const struct hca_qpc *
last_qpc(uint32_t op)
{
	const struct fake_command *cmd = fake_last(fake, op);

	assert_non_null(cmd);
	return (const void *)cmd->mailbox;
}

static void
jetty_is_ready_at_once(void **state)
{
	struct hca_ctl_jetty j = jetty(1, HCA_ST_JETTY);
	const struct hca_qpc *q;
	uint32_t number;

	j.flags = HCA_CTL_TC_TOKEN | HCA_CTL_JETTY_SUSPEND;
	j.token = 0x80001234;
	assert_int_equal(create(1, &j, &number), 0);
	assert_true(number >= HCA_TC_WELL_KNOWN && number < 1u << 19);
	q = last_qpc(HCA_CMD_RST2RTS_QPEE);
	assert_int_equal(hca_be32_to_cpu(q->flags),
			 HCA_QPC_MAKE_FLAGS(HCA_QPS_RTS, HCA_ST_JETTY, 0, 0) | HCA_QPC_TOKEN |
				 HCA_QPC_SUSPEND);
	assert_int_equal(hca_be32_to_cpu(q->opt_param_mask),
			 HCA_QP_ATTR_TIMEOUT | HCA_QP_ATTR_RNR_RETRY | HCA_QP_ATTR_MIN_RNR_TIMER |
				 HCA_QP_ATTR_QKEY | HCA_QP_ATTR_SQ_PSN);
	assert_int_equal(hca_be32_to_cpu(q->qkey), 0x80001234);
	assert_int_equal(hca_be32_to_cpu(q->local_qpn), number);
	assert_int_equal(hca_be32_to_cpu(q->usr_page), client[1]->uar);
	assert_int_equal(hca_be32_to_cpu(q->cqn_rcv), cqn[1]);
	assert_int_equal(hca_be32_to_cpu(q->snd_wqe_len), 2048);
	assert_int_equal(hca_be32_to_cpu(q->rcv_wqe_len), 1024);
	assert_int_equal(HCA_QPC_ACKTO(hca_be32_to_cpu(q->path.ackto)), 17);
	assert_int_equal(HCA_QPC_RNR_RETRY(hca_be32_to_cpu(q->path.rnr_retry)), 7);
	assert_int_equal(HCA_QPC_MIN_RNR_TIMER(hca_be32_to_cpu(q->rnr_nextrecvpsn)), 12);
	/* it is its owner's */
	assert_int_equal(call_drop(client[0], HCA_CTL_DESTROY_QP, number), -EINVAL);
	assert_int_equal(call_drop(client[1], HCA_CTL_DESTROY_QP, number), 0);
	assert_int_equal(fake->live[LIVE_QP], 0);
}

static void
jfs_only_sends(void **state)
{
	struct hca_ctl_jetty j = jetty(1, HCA_ST_JFS);
	uint32_t number;

	j.qp.rq_addr = 0;
	assert_int_equal(create(1, &j, &number), 0);
	assert_int_equal(hca_be32_to_cpu(last_qpc(HCA_CMD_RST2RTS_QPEE)->rcv_wqe_len), 0);
	assert_int_equal(hca_be32_to_cpu(last_qpc(HCA_CMD_RST2RTS_QPEE)->opt_param_mask),
			 HCA_QP_ATTR_TIMEOUT | HCA_QP_ATTR_RNR_RETRY | HCA_QP_ATTR_SQ_PSN);
	j.flags = HCA_CTL_TC_TOKEN;
	assert_int_equal(create(1, &j, &number), -EINVAL);
}

static void
jettys_that_are_refused(void **state)
{
	struct hca_ctl_jetty j = jetty(1, HCA_ST_RC);
	uint32_t number;

	assert_int_equal(create(1, &j, &number), -EINVAL);
	j = jetty(1, HCA_ST_JETTY);
	assert_int_equal(hca_client_call(client[1], HCA_CTL_CREATE_QP, &j.qp, &number, NULL),
			 -EINVAL);
	j.flags = 8;
	assert_int_equal(create(1, &j, &number), -EINVAL);
	j = jetty(1, HCA_ST_JETTY);
	j.min_rnr_timer = 20;
	assert_int_equal(create(1, &j, &number), -EINVAL);
	j = jetty(1, HCA_ST_JETTY);
	j.rnr_retry = 8;
	assert_int_equal(create(1, &j, &number), -EINVAL);
	j = jetty(1, HCA_ST_JETTY);
	j.err_timeout = 32;
	assert_int_equal(create(1, &j, &number), -EINVAL);
	j = jetty(0, HCA_ST_JETTY); /* another one's PD and CQ */
	assert_int_equal(create(1, &j, &number), -EINVAL);
	/* the device refuses: nothing is left */
	j = jetty(1, HCA_ST_JETTY);
	fake->fail_op = HCA_CMD_RST2RTS_QPEE;
	fake->fail_status = HCA_STAT_EXCEED_LIM;
	assert_int_equal(create(1, &j, &number), -ENOMEM);
	assert_int_equal(fake->live[LIVE_QP], 0);
	assert_int_equal(client[1]->count[DRIVER_QPS], 0);
}

static int
to_state(unsigned int i, uint32_t number, uint32_t state)
{
	struct hca_ctl_jetty_state s = {.number = number, .state = state};

	return hca_client_call(client[i], HCA_CTL_MODIFY_JETTY, &s, NULL, NULL);
}

static void
states(void **state)
{
	struct hca_ctl_jetty j = jetty(1, HCA_ST_JETTY);
	struct hca_qpc qpc = {0};
	uint32_t number;

	assert_int_equal(create(1, &j, &number), 0);
	assert_int_equal(to_state(1, number, HCA_QPS_SQD), 0);
	assert_int_equal(hca_be32_to_cpu(last_qpc(HCA_CMD_RTS2SQD_QPEE)->local_qpn), number);
	assert_int_equal(to_state(1, number, HCA_QPS_RTS), 0);
	assert_non_null(fake_last(fake, HCA_CMD_SQD2RTS_QPEE));
	assert_int_equal(to_state(1, number, HCA_QPS_ERR), 0);
	assert_int_equal(fake_last(fake, HCA_CMD_2ERR_QPEE)->in_modifier, number);
	assert_int_equal(to_state(1, number, HCA_QPS_INIT), -EINVAL);
	assert_int_equal(to_state(0, number, HCA_QPS_RST), -EINVAL);
	assert_int_equal(to_state(0, number, HCA_QPS_ERR), -EINVAL);
	/* not as a QP */
	assert_int_equal(call_modify_qp(client[1], number, HCA_CMD_RST2RTS_QPEE, &qpc), -EINVAL);
	assert_int_equal(call_modify_qp(client[1], number, HCA_CMD_2ERR_QPEE, NULL), -EINVAL);
}

static int
name_it(unsigned int i, uint32_t id, uint32_t tc)
{
	struct hca_ctl_known k = {.id = id, .tc = tc};

	return hca_client_call(client[i], HCA_CTL_NAME_TC, &k, NULL, NULL);
}

/*
 * RESET takes it from the device, READY gives it back under its numbers and as it was created; its
 * requests have other numbers than before.
 */
static void
begins_again(void **state)
{
	struct hca_ctl_jetty j = jetty(1, HCA_ST_JETTY);
	uint32_t number, quota = client[1]->count[DRIVER_KNOWN];
	const struct hca_qpc *q;

	j.flags = HCA_CTL_TC_TOKEN;
	j.token = 0x80001234;
	assert_int_equal(create(1, &j, &number), 0);
	assert_int_equal(name_it(1, 40, number), 0);
	for (uint32_t life = 0; life < 3; life++) {
		assert_int_equal(to_state(1, number, HCA_QPS_RST), 0);
		assert_int_equal(fake_last(fake, HCA_CMD_ERR2RST_QPEE)->in_modifier, number);
		assert_int_equal(fake->live[LIVE_QP], 0);
		assert_int_equal(to_state(1, number, HCA_QPS_RST), 0);
		assert_int_equal(to_state(1, number, HCA_QPS_SQD), -EINVAL);
		assert_int_equal(to_state(1, number, HCA_QPS_ERR), -EINVAL);
		assert_int_equal(to_state(0, number, HCA_QPS_RTS), -EINVAL);
		assert_int_equal(to_state(1, number, HCA_QPS_RTS), 0);
		q = last_qpc(HCA_CMD_RST2RTS_QPEE);
		assert_int_equal(hca_be32_to_cpu(q->local_qpn), number);
		assert_int_equal(hca_be32_to_cpu(q->qkey), 0x80001234);
		assert_int_equal(HCA_QPC_ACKTO(hca_be32_to_cpu(q->path.ackto)), 17);
		assert_true(hca_be32_to_cpu(q->next_send_psn) >= 512);
		assert_int_equal(fake_last(fake, HCA_CMD_SET_JETTY_ID)->in_modifier, 40);
		assert_int_equal(fake_last(fake, HCA_CMD_SET_JETTY_ID)->in_param, number);
		assert_int_equal(fake->live[LIVE_QP], 1);
	}
	assert_int_equal(client[1]->count[DRIVER_KNOWN], quota + 1);
	/* it goes from RESET as well */
	assert_int_equal(to_state(1, number, HCA_QPS_RST), 0);
	assert_int_equal(call_drop(client[1], HCA_CTL_DESTROY_QP, number), 0);
	assert_int_equal(client[1]->count[DRIVER_KNOWN], quota);
	assert_int_equal(name_it(1, 40, number), -EINVAL);
}

static int
bind_to(unsigned int i, uint32_t number, uint32_t tc)
{
	struct hca_ctl_bind b = {.number = number, .tc = tc, .eid = {1, [15] = 2}};

	return hca_client_call(client[i], HCA_CTL_BIND_JETTY, &b, NULL, NULL);
}

static void
one_peer(void **state)
{
	struct hca_ctl_jetty j = jetty(1, HCA_ST_JETTY), s = jetty(1, HCA_ST_JFS);
	const struct hca_mbox_bind_jetty *m;
	uint32_t number, jfs;

	j.flags = s.flags = HCA_CTL_JETTY_ONE_PEER;
	assert_int_equal(create(1, &s, &jfs), -EINVAL);
	s.flags = 0;
	assert_int_equal(create(1, &s, &jfs), 0);
	assert_int_equal(create(1, &j, &number), 0);
	assert_true(hca_be32_to_cpu(last_qpc(HCA_CMD_RST2RTS_QPEE)->flags) & HCA_QPC_ONE_PEER);
	assert_int_equal(bind_to(1, number, 0x10403), 0);
	assert_int_equal(fake_last(fake, HCA_CMD_BIND_JETTY)->in_modifier, number);
	m = (const void *)fake_last(fake, HCA_CMD_BIND_JETTY)->mailbox;
	assert_int_equal(hca_be32_to_cpu(m->tc), 0x10403);
	assert_true(m->eid[0] == 1 && m->eid[15] == 2);
	assert_int_equal(bind_to(1, number, HCA_TC_NONE), 0);
	/* no Jetty of another client, no JFS, no target with a well-known number */
	assert_int_equal(bind_to(0, number, 0x10403), -EINVAL);
	assert_int_equal(bind_to(1, jfs, 0x10403), -EINVAL);
	assert_int_equal(bind_to(1, number, 40), -EINVAL);
	assert_int_equal(bind_to(1, number, HCA_TC_JFR | 1), -EINVAL);
	assert_non_null(strstr(hca_driver_reason(), "own number"));
}

static bool
is_privileged(void)
{
	return hca_be32_to_cpu(last_qpc(HCA_CMD_RST2RTS_QPEE)->flags) & HCA_QPC_PRIVILEGED;
}

/* The device is told whose Jettys may send to well-known numbers of drivers. */
static void
whose_jetty_is_privileged(void **state)
{
	struct hca_ctl_jetty agent = jetty(0, HCA_ST_JETTY), j = jetty(1, HCA_ST_JETTY);
	uint32_t number;

	assert_int_equal(create(0, &agent, &number), 0);
	assert_true(is_privileged());
	assert_int_equal(create(1, &j, &number), 0);
	assert_false(is_privileged());
}

static void
quota_is_that_of_qps(void **state)
{
	struct hca_ctl_jetty j = jetty(1, HCA_ST_JFS);
	uint32_t number;

	for (unsigned int k = 0; k < QUOTA; k++)
		assert_int_equal(create(1, &j, &number), 0);
	assert_int_equal(create(1, &j, &number), -ENOMEM);
	assert_int_equal(fake->live[LIVE_QP], QUOTA);
	/* all of them go with the client: teardown looks */
}

/* ---- JFRs ---- */

static struct hca_ctl_jfr
jfr(unsigned int i)
{
	return (struct hca_ctl_jfr){
		.srq = {.addr = (uintptr_t)memory + 8 * PAGE,
			.pdn = pdn[i],
			.cqn = cqn[i],
			.log_size = 4,
			.log_stride = 6,
			.max_sge = 3},
		.min_rnr_timer = 9,
	};
}

static int
create_jfr(unsigned int i, const struct hca_ctl_jfr *r, uint32_t *number)
{
	return hca_client_call(client[i], HCA_CTL_CREATE_JFR, r, number, NULL);
}

static void
jfr_has_a_cq(void **state)
{
	struct hca_ctl_jfr r = jfr(1);
	struct hca_ctl_jetty j = jetty(1, HCA_ST_JETTY);
	const struct hca_srqc *c;
	uint32_t number, other;

	r.flags = HCA_CTL_TC_TOKEN;
	r.token = 77;
	assert_int_equal(create_jfr(1, &r, &number), 0);
	assert_true(number != 0 && number < 1u << 19);
	c = (const void *)fake_last(fake, HCA_CMD_SW2HW_SRQ)->mailbox;
	assert_int_equal(hca_be32_to_cpu(c->flags), HCA_SRQC_JFR | HCA_SRQC_TOKEN);
	assert_int_equal(hca_be32_to_cpu(c->token), 77);
	assert_int_equal(hca_be32_to_cpu(c->xrc_cqn), cqn[1]);
	assert_int_equal(hca_be32_to_cpu(c->xrcd), 0);
	assert_int_equal(HCA_SRQC_RNR_TIMER(hca_be32_to_cpu(c->rnr)), 9);
	assert_int_equal(call_drop(client[1], HCA_CTL_DESTROY_CQ, cqn[1]), -EBUSY);
	/* Jettys share it, QPs do not */
	j.qp.srqn = number;
	assert_int_equal(create(1, &j, &other), 0);
	assert_int_equal(hca_be32_to_cpu(last_qpc(HCA_CMD_RST2RTS_QPEE)->srqn),
			 HCA_QPC_SRQ_VALID | number);
	assert_int_equal(call_drop(client[1], HCA_CTL_DESTROY_SRQ, number), -EBUSY);
	assert_int_equal(call_drop(client[1], HCA_CTL_DESTROY_QP, other), 0);
	j.qp.service = HCA_ST_RC;
	assert_int_equal(hca_client_call(client[1], HCA_CTL_CREATE_QP, &j.qp, &other, NULL),
			 -EINVAL);
	assert_int_equal(call_drop(client[1], HCA_CTL_DESTROY_SRQ, number), 0);
	/* an SRQ of verbs serves no Jetty */
	r.srq.cqn = 0;
	assert_int_equal(hca_client_call(client[1], HCA_CTL_CREATE_SRQ, &r.srq, &number, NULL), 0);
	j = jetty(1, HCA_ST_JETTY);
	j.qp.srqn = number;
	assert_int_equal(create(1, &j, &other), -EINVAL);
}

static void
jfrs_that_are_refused(void **state)
{
	struct hca_ctl_jfr r = jfr(1);
	uint32_t number;

	r.srq.cqn = cqn[1] + 100;
	assert_int_equal(create_jfr(1, &r, &number), -EINVAL);
	r = jfr(1);
	r.srq.xrcd = 1;
	assert_int_equal(create_jfr(1, &r, &number), -EINVAL);
	r = jfr(1);
	r.flags = HCA_CTL_JETTY_SUSPEND;
	assert_int_equal(create_jfr(1, &r, &number), -EINVAL);
	r = jfr(1);
	r.min_rnr_timer = 20;
	assert_int_equal(create_jfr(1, &r, &number), -EINVAL);
	r = jfr(1);
	for (unsigned int k = 0; k < QUOTA; k++)
		assert_int_equal(create_jfr(1, &r, &number), 0);
	assert_int_equal(create_jfr(1, &r, &number), -ENOMEM);
}

/* ---- well-known numbers ---- */

static int
name(unsigned int i, uint32_t id, uint32_t tc)
{
	struct hca_ctl_known k = {.id = id, .tc = tc};

	return hca_client_call(client[i], HCA_CTL_NAME_TC, &k, NULL, NULL);
}

static void
well_known(void **state)
{
	struct hca_ctl_jetty j = jetty(1, HCA_ST_JETTY), a = jetty(0, HCA_ST_JETTY);
	struct hca_ctl_jetty s = jetty(1, HCA_ST_JFS);
	struct hca_ctl_jfr r = jfr(1);
	uint32_t number, agent, jfs, srqn;

	assert_int_equal(create(1, &j, &number), 0);
	assert_int_equal(create(0, &a, &agent), 0);
	assert_int_equal(create(1, &s, &jfs), 0);
	assert_int_equal(create_jfr(1, &r, &srqn), 0);
	/* the agent's, only for privileged clients */
	assert_int_equal(name(1, 0, number), -EACCES);
	assert_int_equal(name(1, 31, number), -EACCES);
	assert_int_equal(name(0, 0, agent), 0);
	assert_int_equal(name(1, 32, number), 0);
	assert_int_equal(fake_last(fake, HCA_CMD_SET_JETTY_ID)->in_modifier, 32);
	assert_int_equal(fake_last(fake, HCA_CMD_SET_JETTY_ID)->in_param, number);
	assert_int_equal(name(1, 1023, HCA_TC_JFR | srqn), 0);
	assert_int_equal(name(1, 1024, number), -EINVAL);
	assert_int_equal(name(1, 32, HCA_TC_JFR | srqn), -EBUSY);
	assert_int_equal(name(0, 32, agent), -EBUSY);
	assert_int_equal(name(1, 33, agent), -EINVAL);
	assert_int_equal(name(1, 33, jfs), -EINVAL);
	assert_int_equal(name(1, 33, srqn), -EINVAL);
	/* a client cannot give up the entry of another client */
	assert_int_equal(name(0, 32, HCA_TC_NONE), -EINVAL);
	assert_int_equal(name(1, 34, HCA_TC_NONE), -EINVAL);
	assert_int_equal(name(1, 32, HCA_TC_NONE), 0);
	assert_int_equal(name(0, 32, agent), 0);
	/* free again when its target has gone */
	assert_int_equal(call_drop(client[1], HCA_CTL_DESTROY_SRQ, srqn), 0);
	assert_int_equal(name(0, 1023, agent), 0);
	assert_int_equal(call_drop(client[0], HCA_CTL_DESTROY_QP, agent), 0);
	assert_int_equal(name(1, 1023, number), 0);
}

/* A client may have QUOTA entries; a place is free after it is given back or its target ends. */
static void
well_known_quota(void **state)
{
	struct hca_ctl_jetty j = jetty(1, HCA_ST_JETTY), a = jetty(0, HCA_ST_JETTY);
	uint32_t number, agent;

	assert_int_equal(create(1, &j, &number), 0);
	assert_int_equal(create(0, &a, &agent), 0);
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t k = 0; k < QUOTA; k++)
			assert_int_equal(name(1, 100 + k, number), 0);
		assert_int_equal(name(1, 200, number), -ENOMEM);
		assert_non_null(strstr(hca_driver_reason(), "[quota] known = 3"));
		assert_int_equal(name(0, 200, agent), 0); /* another one's */
		assert_int_equal(name(0, 200, HCA_TC_NONE), 0);
		if (round == 0) {
			for (uint32_t k = 0; k < QUOTA; k++)
				assert_int_equal(name(1, 100 + k, HCA_TC_NONE), 0);
		} else {
			assert_int_equal(call_drop(client[1], HCA_CTL_DESTROY_QP, number), 0);
			assert_int_equal(create(1, &j, &number), 0);
		}
	}
	/* those of drivers are not counted */
	for (uint32_t id = 0; id < 2 * QUOTA; id++)
		assert_int_equal(name(0, id, agent), 0);
}

/* ---- segments ---- */

static int
set_token(unsigned int i, uint32_t lkey, uint32_t flags, uint32_t *id)
{
	struct hca_ctl_token t = {.lkey = lkey, .flags = flags, .value = {11, 22}};

	return hca_client_call(client[i], HCA_CTL_SET_TOKEN, &t, id, NULL);
}

static uint32_t
region(unsigned int i)
{
	struct hca_ctl_mr mr = {.va = (uintptr_t)memory + 10 * PAGE,
				.length = PAGE,
				.pdn = pdn[i],
				.access = HCA_ACCESS_LOCAL_WRITE | HCA_ACCESS_REMOTE_WRITE};
	struct hca_ctl_extra extra = {0};
	struct hca_ctl_keys keys;

	assert_int_equal(hca_client_call(client[i], HCA_CTL_REG_MR, &mr, &keys, &extra), 0);
	return keys.lkey;
}

#define PLAIN (HCA_TOKEN_EXPORTED | HCA_TOKEN_CHECK)

static void
segments(void **state)
{
	uint32_t lkey = region(1), id;
	struct hca_ctl_rereg change = {.lkey = lkey,
				       .flags = HCA_CTL_REREG_ACCESS,
				       .mr = {.access = HCA_ACCESS_LOCAL_WRITE}};
	struct hca_ctl_extra extra = {0};
	const struct hca_mbox_set_token *m;
	struct hca_ctl_keys keys;

	assert_int_equal(set_token(1, lkey, PLAIN | HCA_TOKEN_SECOND, &id), 0);
	assert_int_equal(id, lkey >> 8 & HCA_TOKEN_ID_MASK);
	m = (const void *)fake_last(fake, HCA_CMD_SET_TOKEN)->mailbox;
	assert_int_equal(fake_last(fake, HCA_CMD_SET_TOKEN)->in_modifier, HCA_KEY_INDEX(lkey));
	assert_int_equal(hca_be32_to_cpu(m->flags), PLAIN | HCA_TOKEN_SECOND);
	assert_int_equal(hca_be32_to_cpu(m->value[1]), 22);
	assert_int_equal(hca_client_call(client[1], HCA_CTL_REREG_MR, &change, &keys, &extra),
			 -EBUSY);
	assert_int_equal(set_token(1, lkey, 0, &id), 0);
	assert_int_equal(hca_client_call(client[1], HCA_CTL_REREG_MR, &change, &keys, &extra), 0);
	assert_int_equal(set_token(1, keys.lkey, HCA_TOKEN_CHECK, &id), -EINVAL);
	assert_int_equal(set_token(1, keys.lkey, HCA_TOKEN_EXPORTED | HCA_TOKEN_SECOND, &id),
			 -EINVAL);
	assert_int_equal(set_token(1, keys.lkey, 8 | PLAIN, &id), -EINVAL);
	/* another one's region; a queue's memory */
	assert_int_equal(set_token(0, keys.lkey, PLAIN, &id), -EINVAL);
	assert_int_equal(set_token(1, client[1]->cqs->mr->key, PLAIN, &id), -EINVAL);
}

/* ---- TPs ---- */

static struct hca_tpc
tpc(uint8_t host)
{
	struct hca_tpc t = {.path = {.rgid = {[10] = 0xff, 0xff, 10, 0, 0, host}}};

	hca_tpc_set(&t, HCA_TPC_STATE, HCA_TPS_ACTIVE);
	return t;
}

static void
tps(void **state)
{
	struct hca_tpc t = tpc(2), q;
	const struct hca_tpc *m;
	uint32_t tpn, listed[TPS];

	assert_int_equal(hca_driver_create_tp(drv, &t), 0);
	tpn = hca_be32_to_cpu(t.tpn);
	assert_true(tpn < 1u << 24 && tpn % TPS != 0);
	m = (const void *)fake_last(fake, HCA_CMD_SW2HW_TP)->mailbox;
	assert_int_equal(fake_last(fake, HCA_CMD_SW2HW_TP)->in_modifier, tpn);
	assert_int_equal(hca_be32_to_cpu(m->tpn), tpn);
	/* MAC addresses are the driver's */
	assert_int_equal(HCA_QPC_DMAC(hca_be32_to_cpu(m->path.mac_lo),
				      hca_be32_to_cpu(m->path.dmac_hi)),
			 UINT64_C(0x020000000002));
	t.mask = hca_cpu_to_be32(HCA_TP_ATTR_STATE);
	assert_int_equal(hca_driver_modify_tp(drv, tpn, &t), 0);
	assert_int_equal(fake_last(fake, HCA_CMD_MODIFY_TP)->in_modifier, tpn);
	t.mask = hca_cpu_to_be32(HCA_TP_ATTR_PATH);
	t.path.mac_lo = t.path.dmac_hi = 0;
	assert_int_equal(hca_driver_modify_tp(drv, tpn, &t), 0);
	m = (const void *)fake_last(fake, HCA_CMD_MODIFY_TP)->mailbox;
	assert_int_equal(HCA_QPC_DMAC(hca_be32_to_cpu(m->path.mac_lo),
				      hca_be32_to_cpu(m->path.dmac_hi)),
			 UINT64_C(0x020000000002));
	assert_int_equal(hca_driver_query_tp(drv, tpn, &q), 0);
	assert_int_equal(hca_driver_list_tps(drv, 0, listed, TPS), 1);
	assert_int_equal(listed[0], tpn);
	assert_int_equal(hca_driver_query_tp(drv, tpn ^ TPS, &q), -EINVAL);
	assert_int_equal(hca_driver_modify_tp(drv, 0, &t), -EINVAL);
	assert_int_equal(hca_driver_destroy_tp(drv, tpn ^ TPS), -EINVAL);
	assert_int_equal(hca_driver_destroy_tp(drv, tpn), 0);
	assert_int_equal(hca_driver_destroy_tp(drv, tpn), -EINVAL);
	assert_int_equal(fake->live[LIVE_TP], 0);
}

/* The peer needs the number before the TP is made. */
static void
chosen_numbers(void **state)
{
	static const uint32_t bad[] = {1u << 24 | 1, 7 * TPS, 0x100000u + TPS};
	struct hca_tpc t = tpc(2);
	uint32_t tpn = 0x5a0000u + 3;

	t.tpn = hca_cpu_to_be32(tpn);
	assert_int_equal(hca_driver_create_tp(drv, &t), 0);
	assert_int_equal(hca_be32_to_cpu(t.tpn), tpn);
	assert_int_equal(fake_last(fake, HCA_CMD_SW2HW_TP)->in_modifier, tpn);
	t.tpn = hca_cpu_to_be32(0x160000u + 3);
	assert_int_equal(hca_driver_create_tp(drv, &t), -EBUSY);
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		t.tpn = hca_cpu_to_be32(bad[i]);
		assert_int_equal(hca_driver_create_tp(drv, &t), -EINVAL);
	}
	assert_int_equal(hca_driver_destroy_tp(drv, tpn), 0);
	fake->fail_op = HCA_CMD_SW2HW_TP;
	fake->fail_status = HCA_STAT_BAD_PARAM;
	t.tpn = hca_cpu_to_be32(tpn);
	assert_int_equal(hca_driver_create_tp(drv, &t), -EINVAL);
	assert_int_equal(hca_driver_create_tp(drv, &t), 0);
	assert_int_equal(hca_driver_destroy_tp(drv, tpn), 0);
	assert_int_equal(fake->live[LIVE_TP], 0);
}

static void
as_many_tps_as_there_are(void **state)
{
	struct hca_tpc t;

	/* no host answers for that address */
	t = tpc(99);
	assert_true(hca_driver_create_tp(drv, &t) < 0);
	t = tpc(2);
	fake->fail_op = HCA_CMD_SW2HW_TP;
	fake->fail_status = HCA_STAT_BAD_PARAM;
	assert_int_equal(hca_driver_create_tp(drv, &t), -EINVAL);
	for (unsigned int i = 1; i < TPS; i++) {
		t = tpc(2);
		assert_int_equal(hca_driver_create_tp(drv, &t), 0);
	}
	t = tpc(2);
	assert_int_equal(hca_driver_create_tp(drv, &t), -ENOMEM);
	assert_int_equal(fake->live[LIVE_TP], TPS - 1);
}

static void
groups(void **state)
{
	const uint32_t tpns[] = {0x11, 0x12};
	const struct hca_mbox_set_tpg *m;
	uint32_t group, other;

	assert_int_equal(hca_driver_create_tpg(drv, tpns, 2, &group), 0);
	m = (const void *)fake_last(fake, HCA_CMD_SET_TPG)->mailbox;
	assert_int_equal(fake_last(fake, HCA_CMD_SET_TPG)->in_modifier, group);
	assert_int_equal(hca_be32_to_cpu(m->count), 2);
	assert_int_equal(hca_be32_to_cpu(m->tpn[1]), 0x12);
	assert_int_equal(hca_driver_change_tpg(drv, group, tpns, 1), 0);
	assert_int_equal(hca_driver_change_tpg(drv, group + 1, tpns, 1), -EINVAL);
	assert_int_equal(hca_driver_change_tpg(drv, group + TPS, tpns, 1), -EINVAL);
	assert_int_equal(hca_driver_create_tpg(drv, tpns, 0, &other), -EINVAL);
	assert_int_equal(hca_driver_create_tpg(drv, tpns, 17, &other), -EINVAL);
	/* a refusal leaves no group */
	for (unsigned int i = 0; i < 2 * TPS; i++) {
		fake->fail_op = HCA_CMD_SET_TPG;
		fake->fail_status = HCA_STAT_EXCEED_LIM;
		assert_int_equal(hca_driver_create_tpg(drv, tpns, 1, &other), -ENOMEM);
	}
	/* its TPs have gone, and it with them */
	fake->fail_op = HCA_CMD_SET_TPG;
	fake->fail_status = HCA_STAT_BAD_RES_STATE;
	assert_int_equal(hca_driver_destroy_tpg(drv, group), 0);
	assert_int_equal(hca_driver_destroy_tpg(drv, group), -EINVAL);
}

/* A device without that wire. */
static void
without_ub(void **state)
{
	struct hca_ctl_jetty j;
	struct hca_tpc t = tpc(2);
	const uint32_t tpn = 5;
	struct hca_ctl_jfr r;
	uint32_t number;

	start(false);
	j = jetty(1, HCA_ST_JETTY);
	r = jfr(1);
	assert_int_equal(create(1, &j, &number), -EOPNOTSUPP);
	assert_int_equal(create_jfr(1, &r, &number), -EOPNOTSUPP);
	assert_int_equal(name(0, 5, 5000), -EOPNOTSUPP);
	assert_int_equal(set_token(1, region(1), PLAIN, &number), -EOPNOTSUPP);
	assert_int_equal(hca_driver_create_tp(drv, &t), -EOPNOTSUPP);
	assert_int_equal(hca_driver_destroy_tp(drv, tpn), -EINVAL);
	assert_int_equal(hca_driver_create_tpg(drv, &tpn, 1, &number), -EOPNOTSUPP);
	assert_int_equal(hca_driver_destroy_tpg(drv, 0), -EINVAL);
	assert_int_equal(hca_driver_list_tps(drv, 0, &number, 1), 0);
	teardown(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(jetty_is_ready_at_once),
		T(jfs_only_sends),
		T(jettys_that_are_refused),
		T(states),
		T(begins_again),
		T(one_peer),
		T(whose_jetty_is_privileged),
		T(quota_is_that_of_qps),
		T(jfr_has_a_cq),
		T(jfrs_that_are_refused),
		T(well_known),
		T(well_known_quota),
		T(segments),
		T(tps),
		T(chosen_numbers),
		T(as_many_tps_as_there_are),
		T(groups),
		cmocka_unit_test(without_ub),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
