/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Operations of the driver. Jettys and JFRs are created by rows of their own, and are QPs and SRQs
 * for the rest.
 */

#include <string.h>
#include <time.h>

#include "urma_impl.h"

/* Between two questions about an import, at first and at most */
#define PEER_PAUSE_NS 50000
#define PEER_PAUSE_MAX_NS 10000000

#define CALL(ctx, NAME, request, answer) \
	urma_inside()->call(ctx, HCA_CTL_##NAME, HCA_CTL_REQUEST(NAME, request), \
			    HCA_CTL_ANSWER(NAME, answer), NULL)

/* A well-known number for a TC; 0: it needs none. */
static int
name_tc(struct lib_context *ctx, uint32_t well_known, uint32_t tc)
{
	struct hca_ctl_known request = {.id = well_known, .tc = tc};

	return well_known == 0 ? 0 : CALL(ctx, NAME_TC, &request, NULL);
}

/* ---- Jettys ---- */

static int
destroy_jetty(struct lib_context *ctx, uint32_t number)
{
	return CALL(ctx, DESTROY_QP, &number, NULL);
}

static int
create_jetty(struct lib_context *ctx, const struct urma_ctl_jetty *j, uint32_t *number)
{
	struct hca_ctl_jetty request = {
		.qp = {.sq_addr = j->sq_addr,
		       .rq_addr = j->rq_addr,
		       .pdn = j->pdn,
		       .service = j->is_jfs ? HCA_ST_JFS : HCA_ST_JETTY,
		       .send_cqn = j->send_cqn,
		       .recv_cqn = j->recv_cqn,
		       .log_sq = j->log_sq,
		       .log_sq_stride = j->log_sq_stride,
		       .log_rq = j->log_rq,
		       .log_rq_stride = j->log_rq_stride,
		       .srqn = j->srqn},
		.flags = (j->check_token ? HCA_CTL_TC_TOKEN : 0) |
			 (j->error_suspend ? HCA_CTL_JETTY_SUSPEND : 0) |
			 (j->one_peer ? HCA_CTL_JETTY_ONE_PEER : 0),
		.token = j->token,
		.err_timeout = j->err_timeout,
		.rnr_retry = j->rnr_retry,
		.min_rnr_timer = j->min_rnr_timer,
	};
	int err = CALL(ctx, CREATE_JETTY, &request, number);

	if (err != 0)
		return err;
	err = name_tc(ctx, j->well_known, *number);
	if (err != 0)
		(void)ctx->ops->call(ctx->ctl, HCA_CTL_DESTROY_QP, number, NULL, NULL);
	return err;
}

/* Of a QP, by URMA's number */
static const uint8_t qp_states[] = {
	[URMA_JETTY_STATE_RESET] = HCA_QPS_RST,
	[URMA_JETTY_STATE_READY] = HCA_QPS_RTS,
	[URMA_JETTY_STATE_SUSPENDED] = HCA_QPS_SQD,
	[URMA_JETTY_STATE_ERROR] = HCA_QPS_ERR,
};

static int
modify_jetty(struct lib_context *ctx, uint32_t number, uint32_t state)
{
	struct hca_ctl_jetty_state request = {.number = number, .state = qp_states[state]};

	return CALL(ctx, MODIFY_JETTY, &request, NULL);
}

static int
query_jetty(struct lib_context *ctx, uint32_t number, struct urma_ctl_state *now)
{
	struct hca_qpc qpc;
	int err = CALL(ctx, QUERY_QP, &number, &qpc);
	uint32_t state, counters;

	if (err != 0)
		return err;
	state = HCA_QPC_STATE(hca_be32_to_cpu(qpc.flags));
	counters = hca_be32_to_cpu(qpc.wqe_counters);
	*now = (struct urma_ctl_state){
		.state = URMA_JETTY_STATE_RESET,
		.flushed = state == HCA_QPS_ERR &&
			   (hca_be32_to_cpu(qpc.flags) & HCA_QPC_DRAINING) == 0,
		.sent = (uint16_t)HCA_QPC_SQ_COUNTER(counters),
		.received = (uint16_t)HCA_QPC_RQ_COUNTER(counters),
	};
	for (; now->state < URMA_JETTY_STATE_ERROR; now->state++)
		if (qp_states[now->state] == state)
			break;
	return 0;
}

static int
bind_jetty(struct lib_context *ctx, uint32_t number, const uint8_t eid[16], uint32_t tc)
{
	struct hca_ctl_bind request = {.number = number, .tc = tc};

	memcpy(request.eid, eid, sizeof(request.eid));
	return CALL(ctx, BIND_JETTY, &request, NULL);
}

/* ---- JFRs ---- */

static int
destroy_jfr(struct lib_context *ctx, uint32_t number)
{
	return CALL(ctx, DESTROY_SRQ, &number, NULL);
}

static int
create_jfr(struct lib_context *ctx, const struct urma_ctl_jfr *j, uint32_t *number)
{
	struct hca_ctl_jfr request = {
		.srq = {.addr = j->addr,
			.pdn = j->pdn,
			.cqn = j->cqn,
			.log_size = j->log_size,
			.log_stride = j->log_stride,
			.max_sge = j->max_sge},
		.flags = j->check_token ? HCA_CTL_TC_TOKEN : 0,
		.token = j->token,
		.min_rnr_timer = j->min_rnr_timer,
	};
	int err = CALL(ctx, CREATE_JFR, &request, number);

	if (err != 0)
		return err;
	err = name_tc(ctx, j->well_known, HCA_TC_JFR | *number);
	if (err != 0)
		(void)ctx->ops->call(ctx->ctl, HCA_CTL_DESTROY_SRQ, number, NULL, NULL);
	return err;
}

static int
arm_jfr(struct lib_context *ctx, uint32_t number, uint32_t threshold)
{
	struct hca_ctl_arm request = {.srqn = number, .limit = threshold};

	return CALL(ctx, ARM_SRQ, &request, NULL);
}

/* ---- segments, peers ---- */

static int
set_token(struct lib_context *ctx, const struct urma_ctl_token *t)
{
	struct hca_ctl_token request = {
		.lkey = t->lkey,
		.flags = t->flags,
		.value = {t->value[0], t->value[1]},
	};
	uint32_t token_id;

	return CALL(ctx, SET_TOKEN, &request, &token_id);
}

/* Let the engine run, if this thread has to, or wait a little longer each time. */
static void
wait_for_peer(struct lib_context *ctx, long *pause_ns)
{
	struct timespec pause = {.tv_nsec = *pause_ns};

	if (ctx->progress != NULL) {
		lib_run(ctx, ctx->progress);
		return;
	}
	nanosleep(&pause, NULL);
	if (*pause_ns < PEER_PAUSE_MAX_NS)
		*pause_ns *= 2;
}

static int
await_peer(struct lib_context *ctx, uint32_t number, uint32_t *tpg)
{
	struct hca_ctl_peer_state state;
	long pause_ns = PEER_PAUSE_NS;
	int err;

	for (;;) {
		err = CALL(ctx, QUERY_PEER, &number, &state);
		if (err != 0 || state.up != 0)
			break;
		wait_for_peer(ctx, &pause_ns);
	}
	if (err == 0)
		*tpg = state.tpg;
	return err;
}

static int
import_peer(struct lib_context *ctx, const struct urma_ctl_peer *request, uint32_t *number,
	    uint32_t *tpg)
{
	struct hca_ctl_peer peer = {.gid_index = request->gid_index};
	int err;

	memcpy(peer.eid, request->eid, sizeof(peer.eid));
	err = CALL(ctx, IMPORT_PEER, &peer, number);
	if (err != 0)
		return err;
	err = await_peer(ctx, *number, tpg);
	if (err != 0)
		(void)ctx->ops->call(ctx->ctl, HCA_CTL_UNIMPORT_PEER, number, NULL, NULL);
	return err;
}

static int
find_peer(struct lib_context *ctx, const struct urma_ctl_peer *request, struct hca_ctl_ah *ah)
{
	struct hca_ctl_ah what = {.sgid_index = request->gid_index};

	memcpy(what.dgid, request->eid, sizeof(what.dgid));
	return CALL(ctx, RESOLVE, &what, ah);
}

static int
unimport_peer(struct lib_context *ctx, uint32_t number)
{
	return CALL(ctx, UNIMPORT_PEER, &number, NULL);
}

static int
tp_eid(struct lib_context *ctx, uint32_t tpn, uint8_t eid[16])
{
	struct hca_ctl_eid answer;
	int err = CALL(ctx, QUERY_TP_EID, &tpn, &answer);

	if (err == 0)
		memcpy(eid, answer.eid, sizeof(answer.eid));
	return err;
}

const struct urma_ctl urma_ctl_driver = {
	.create_jetty = create_jetty,
	.modify_jetty = modify_jetty,
	.query_jetty = query_jetty,
	.destroy_jetty = destroy_jetty,
	.bind_jetty = bind_jetty,
	.create_jfr = create_jfr,
	.arm_jfr = arm_jfr,
	.destroy_jfr = destroy_jfr,
	.set_token = set_token,
	.import_peer = import_peer,
	.find_peer = find_peer,
	.unimport_peer = unimport_peer,
	.tp_eid = tp_eid,
};
