/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * modify_qp and query_qp: converts verbs attributes to and from the QPC mailbox (table 3-2-40)
 * after checking them against the table of transitions. The device checks again.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "abi_cmd.h"
#include "abi_ctx.h"
#include "abi_qp_attr.h"
#include "lib_types.h"

#define DEFAULT_HOP_LIMIT 64u
#define MSG_MAX_LOG 31u
#define SL_MASK 7u /* the priority of a VLAN tag has three bits */
#define PSN_MASK 0xffffffu

static const struct hca_qp_transition transitions[] = {
	HCA_QP_TRANSITION_LIST(HCA_QP_TRANSITION_ROW)};

static const uint8_t hw_state[] = {
#define X(name, number, verbs) [SOFTHCA_QPS_##verbs] = HCA_QPS_##name,
	HCA_QP_STATE_LIST(X)
#undef X
};

static const uint8_t sw_state[HCA_QPS_COUNT] = {
#define X(name, number, verbs) [HCA_QPS_##name] = SOFTHCA_QPS_##verbs,
	HCA_QP_STATE_LIST(X)
#undef X
};

static const uint8_t hw_mig[] = {
	[SOFTHCA_MIG_MIGRATED] = HCA_MIG_MIGRATED,
	[SOFTHCA_MIG_REARM] = HCA_MIG_REARM,
	[SOFTHCA_MIG_ARMED] = HCA_MIG_ARMED,
};

static const char *const attr_names[] = {
#define ATTR_NAME(name, bit) [bit] = #name,
	HCA_QP_ATTR_LIST(ATTR_NAME)
#undef ATTR_NAME
};

_Static_assert((uint32_t)SOFTHCA_QP_DEST_QPN == (uint32_t)HCA_QP_ATTR_DEST_QPN &&
		       (uint32_t)SOFTHCA_QP_MIN_RNR_TIMER == (uint32_t)HCA_QP_ATTR_MIN_RNR_TIMER,
	       "the attribute bits of verbs are those of table A1-3");
_Static_assert((uint32_t)SOFTHCA_QP_RATE_LIMIT == (uint32_t)HCA_QP_ATTR_RATE_LIMIT &&
		       SOFTHCA_RATE_LIMIT_LEAST == HCA_QPC_RATE_LIMIT_LEAST &&
		       SOFTHCA_RATE_LIMIT_MOST == HCA_QPC_RATE_LIMIT_MOST,
	       "rate limits");

static const struct hca_qp_transition *
find_transition(uint32_t from, uint32_t to, uint32_t service)
{
	for (size_t i = 0; i < sizeof(transitions) / sizeof(transitions[0]); i++) {
		const struct hca_qp_transition *t = &transitions[i];

		if (t->from == from && t->to == to && t->service == service)
			return t;
	}
	return NULL;
}

/* "AV, PATH_MTU" */
static void
list_attrs(uint32_t mask, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (uint32_t bit = 0; bit < 32; bit++) {
		const char *name = bit < sizeof(attr_names) / sizeof(attr_names[0])
					   ? attr_names[bit]
					   : "unknown";
		int n;

		if ((mask & 1u << bit) == 0 || used >= size)
			continue;
		n = snprintf(text + used, size - used, "%s%s", used ? ", " : "", name);
		used += n > 0 ? (size_t)n : 0;
	}
}

static int
check_mask(const struct hca_qp_transition *t, uint32_t mask, const char *from, const char *to)
{
	uint32_t missing = t->required & ~mask;
	uint32_t extra = mask & ~(t->required | t->optional | HCA_QP_ATTR_STATE);
	char names[160];

	if (missing != 0) {
		list_attrs(missing, names, sizeof(names));
		return lib_fail(-EINVAL, "%s to %s needs %s", from, to, names);
	}
	if (extra != 0) {
		list_attrs(extra, names, sizeof(names));
		return lib_fail(-EINVAL, "%s to %s does not take %s", from, to, names);
	}
	return 0;
}

/* The members that each bit of the mask names. X(bit, member) */
#define ATTR_MEMBERS(X) \
	X(STATE, qp_state) \
	X(CUR_STATE, cur_qp_state) \
	X(EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify) \
	X(ACCESS_FLAGS, qp_access_flags) \
	X(PKEY_INDEX, pkey_index) \
	X(PORT, port_num) \
	X(QKEY, qkey) \
	X(AV, ah_attr) \
	X(PATH_MTU, path_mtu) \
	X(TIMEOUT, timeout) \
	X(RETRY_CNT, retry_cnt) \
	X(RNR_RETRY, rnr_retry) \
	X(RQ_PSN, rq_psn) \
	X(MAX_QP_RD_ATOMIC, max_rd_atomic) \
	X(ALT_PATH, alt_ah_attr) \
	X(ALT_PATH, alt_pkey_index) \
	X(ALT_PATH, alt_port_num) \
	X(ALT_PATH, alt_timeout) \
	X(MIN_RNR_TIMER, min_rnr_timer) \
	X(SQ_PSN, sq_psn) \
	X(MAX_DEST_RD_ATOMIC, max_dest_rd_atomic) \
	X(PATH_MIG_STATE, path_mig_state) \
	X(CAP, cap) \
	X(DEST_QPN, dest_qp_num) \
	X(RATE_LIMIT, rate_limit)

/* Attributes that the mask does not name are not read, and 0. */
static struct softhca_qp_attr
named_attrs(const struct softhca_qp_attr *attr, uint32_t mask)
{
	struct softhca_qp_attr named = {0};

#define COPY(bit, member) \
	if ((mask & SOFTHCA_QP_##bit) != 0) \
		named.member = attr->member;
	ATTR_MEMBERS(COPY)
#undef COPY
	return named;
}

/* Upper bounds of single attributes; an attribute that is not named is 0. X(value, limit, name) */
#define ATTR_LIMITS(X) \
	X(attr->path_mtu, ctx->info.max_mtu, "path_mtu") \
	X(attr->dest_qp_num, 0xfffffeu, "dest_qp_num") \
	X(attr->timeout, 31u, "timeout") \
	X(attr->retry_cnt, 7u, "retry_cnt") \
	X(attr->rnr_retry, 7u, "rnr_retry") \
	X(attr->min_rnr_timer, 31u, "min_rnr_timer") \
	X(attr->max_rd_atomic, ctx->info.max_rd_atomic, "max_rd_atomic") \
	X(attr->max_dest_rd_atomic, ctx->info.max_dest_rd_atomic, "max_dest_rd_atomic") \
	X(attr->port_num, ctx->info.num_ports, "port_num") \
	X(attr->pkey_index, ctx->info.pkey_entries - 1, "pkey_index") \
	X(attr->ah_attr.sgid_index, ctx->info.gid_entries - 1, "sgid_index") \
	X(attr->alt_ah_attr.sgid_index, ctx->info.gid_entries - 1, "alternate sgid_index") \
	X(attr->alt_pkey_index, ctx->info.pkey_entries - 1, "alt_pkey_index") \
	X(attr->alt_port_num, ctx->info.num_ports, "alt_port_num") \
	X(attr->alt_timeout, 31u, "alt_timeout") \
	X(attr->path_mig_state, (uint32_t)SOFTHCA_MIG_ARMED, "path_mig_state") \
	X(attr->rate_limit, SOFTHCA_RATE_LIMIT_MOST, "rate_limit")

static int
check_values(const struct lib_context *ctx, const struct softhca_qp_attr *attr, uint32_t mask)
{
	int err;

#define CHECK_LIMIT(value, limit, name) \
	if ((uint32_t)(value) > (limit)) \
		return lib_fail(-EINVAL, "%s %u, at most %u", name, (uint32_t)(value), limit);
	ATTR_LIMITS(CHECK_LIMIT)
#undef CHECK_LIMIT
	if ((mask & SOFTHCA_QP_PATH_MTU) != 0 && !HCA_MTU_VALID(attr->path_mtu))
		return lib_fail(-EINVAL, "path_mtu %u is not one of 1..5", attr->path_mtu);
	if (((mask & SOFTHCA_QP_PORT) != 0 && attr->port_num == 0) ||
	    ((mask & SOFTHCA_QP_ALT_PATH) != 0 && attr->alt_port_num == 0))
		return lib_fail(-EINVAL, "ports count from 1");
	if (attr->path_mig_state == SOFTHCA_MIG_ARMED)
		return lib_fail(-EINVAL, "the device arms a QP that is in REARM by itself");
	if (attr->rate_limit != 0 && attr->rate_limit < SOFTHCA_RATE_LIMIT_LEAST)
		return lib_fail(-EINVAL, "rate_limit %u, at least %u kb/s", attr->rate_limit,
				SOFTHCA_RATE_LIMIT_LEAST);
	err = lib_check_rate(attr->ah_attr.static_rate);
	return err != 0 ? err : lib_check_rate(attr->alt_ah_attr.static_rate);
}

/* Bits beyond the width of a field are cut off, as other devices do. */
static void
fill_path(struct hca_qpc_path *path, const struct softhca_ah_attr *ah)
{
	uint32_t acks = hca_be32_to_cpu(path->ackto);
	uint32_t hops = ah->hop_limit != 0 ? ah->hop_limit : DEFAULT_HOP_LIMIT;

	path->ackto = hca_cpu_to_be32(
		HCA_QPC_MAKE_ACKTO(HCA_QPC_ACKTO(acks), ah->sgid_index, ah->static_rate, hops));
	path->sl_tclass_flow = hca_cpu_to_be32(
		HCA_QPC_MAKE_SL_TCLASS_FLOW(ah->sl & SL_MASK, ah->traffic_class, ah->flow_label));
	memcpy(path->rgid, ah->dgid.raw, sizeof(path->rgid));
}

static uint32_t
hw_access(uint32_t access)
{
	return access &
	       (HCA_ACCESS_REMOTE_WRITE | HCA_ACCESS_REMOTE_READ | HCA_ACCESS_REMOTE_ATOMIC);
}

static void
fill_mailbox(const struct lib_qp *qp, const struct softhca_qp_attr *attr, uint32_t mask,
	     uint32_t to, struct hca_qpc *qpc)
{
	uint32_t mig = hw_mig[attr->path_mig_state];

	memset(qpc, 0, sizeof(*qpc));
	qpc->opt_param_mask = hca_cpu_to_be32(mask | HCA_QP_ATTR_STATE);
	qpc->flags =
		hca_cpu_to_be32(HCA_QPC_MAKE_FLAGS(to, lib_service_of(qp->pub.qp_type), mig, 0));
	qpc->sizes = hca_cpu_to_be32(HCA_QPC_MAKE_SIZES(attr->path_mtu, MSG_MAX_LOG,
							qp->rq.log_stride, qp->sq.log_stride));
	qpc->local_qpn = hca_cpu_to_be32(qp->pub.qp_num);
	qpc->remote_qpn = hca_cpu_to_be32(attr->dest_qp_num);
	qpc->path.port_pkey =
		hca_cpu_to_be32(HCA_QPC_MAKE_PORT_PKEY(attr->port_num, attr->pkey_index));
	qpc->path.rnr_retry = hca_cpu_to_be32(HCA_QPC_MAKE_RNR_RETRY(attr->rnr_retry, 1));
	qpc->path.ackto = hca_cpu_to_be32(HCA_QPC_MAKE_ACKTO(attr->timeout, 0, 0, 0));
	if ((mask & SOFTHCA_QP_AV) != 0)
		fill_path(&qpc->path, &attr->ah_attr);
	if ((mask & SOFTHCA_QP_ALT_PATH) != 0) {
		qpc->alt_path.port_pkey = hca_cpu_to_be32(
			HCA_QPC_MAKE_PORT_PKEY(attr->alt_port_num, attr->alt_pkey_index));
		qpc->alt_path.ackto =
			hca_cpu_to_be32(HCA_QPC_MAKE_ACKTO(attr->alt_timeout, 0, 0, 0));
		fill_path(&qpc->alt_path, &attr->alt_ah_attr);
	}
	qpc->access_flags = hca_cpu_to_be32(hw_access(attr->qp_access_flags));
	qpc->rd_atomic =
		hca_cpu_to_be32(HCA_QPC_MAKE_RD_ATOMIC(attr->max_rd_atomic,
						       attr->max_dest_rd_atomic, attr->retry_cnt));
	qpc->next_send_psn = hca_cpu_to_be32(attr->sq_psn & PSN_MASK);
	qpc->rnr_nextrecvpsn =
		hca_cpu_to_be32(HCA_QPC_MAKE_RNR_EPSN(attr->min_rnr_timer, attr->rq_psn));
	qpc->qkey = hca_cpu_to_be32(attr->qkey);
	qpc->rate_limit = hca_cpu_to_be32(attr->rate_limit);
}

int
lib_qp_refresh(struct lib_qp *qp)
{
	struct lib_context *ctx = lib_qp_ctx(qp);
	struct hca_qpc qpc;
	uint32_t state;
	int err = LIB_CALL(ctx, QUERY_QP, &qp->pub.qp_num, &qpc);

	if (err != 0)
		return err;
	state = HCA_QPC_STATE(hca_be32_to_cpu(qpc.flags));
	if (state < HCA_QPS_COUNT)
		qp->pub.state = sw_state[state];
	return 0;
}

/* Old completions of the reset queues must not reach the program. */
static void
after_reset(struct lib_qp *qp)
{
	struct lib_cq *send_cq = (struct lib_cq *)qp->pub.send_cq;
	struct lib_cq *recv_cq = (struct lib_cq *)qp->pub.recv_cq;

	lib_cq_lock_pair(send_cq, recv_cq);
	if (send_cq != NULL)
		lib_cq_forget(send_cq, qp->pub.qp_num);
	if (recv_cq != NULL && recv_cq != send_cq)
		lib_cq_forget(recv_cq, qp->pub.qp_num);
	lib_qp_rewind(qp);
	lib_cq_unlock_pair(send_cq, recv_cq);
}

/*
 * Execute the command of a checked transition. A QP that goes to RESET refuses posts before the
 * device stops taking WQEs; other states are stored after they are reached.
 */
static int
run_transition(struct lib_qp *qp, const struct hca_qp_transition *t,
	       const struct softhca_qp_attr *attr, uint32_t mask, uint32_t to)
{
	struct lib_context *ctx = lib_qp_ctx(qp);
	struct hca_ctl_modify request = {
		.qpn = qp->pub.qp_num,
		.opcode = t->cmd,
		.has_mailbox = t->to != HCA_QPS_RST && t->to != HCA_QPS_ERR,
	};
	uint32_t before = qp->pub.state;
	int err;

	fill_mailbox(qp, attr, mask, t->to, &request.mailbox);
	if (t->to == HCA_QPS_RST)
		qp->pub.state = SOFTHCA_QPS_RESET;
	err = LIB_CALL(ctx, MODIFY_QP, &request, NULL);
	if (err != 0) {
		qp->pub.state = before;
		return err;
	}
	if (t->to == HCA_QPS_RST)
		after_reset(qp);
	qp->pub.state = to;
	return 0;
}

int
softhca_modify_qp(struct softhca_qp *pub, const struct softhca_qp_attr *given, uint32_t mask)
{
	const struct softhca_qp_attr attr = named_attrs(given, mask);
	struct lib_qp *qp = (struct lib_qp *)pub;
	const struct hca_qp_transition *t;
	uint32_t to;
	int err;

	/*
	 * The device may have left any other state because of an error, and another program that
	 * has the QP open may have modified it.
	 */
	if ((pub->state != SOFTHCA_QPS_RESET && pub->state != SOFTHCA_QPS_ERR) ||
	    qp->xrcd != NULL) {
		err = lib_qp_refresh(qp);
		if (err != 0)
			return err;
	}
	to = (mask & SOFTHCA_QP_STATE) != 0 ? attr.qp_state : pub->state;
	if (to > SOFTHCA_QPS_ERR)
		return lib_fail(-EINVAL, "QP state %u is not known", to);
	if ((mask & SOFTHCA_QP_CUR_STATE) != 0 && attr.cur_qp_state != pub->state)
		return lib_fail(-EINVAL, "the QP is in %s, not in %s",
				softhca_qp_state_str(pub->state),
				softhca_qp_state_str(attr.cur_qp_state));
	t = find_transition(hw_state[pub->state], hw_state[to], lib_service_of(pub->qp_type));
	if (t == NULL)
		return lib_fail(-EINVAL, "there is no transition from %s to %s",
				softhca_qp_state_str(pub->state), softhca_qp_state_str(to));
	err = check_mask(t, mask, softhca_qp_state_str(pub->state), softhca_qp_state_str(to));
	if (err == 0)
		err = check_values(lib_qp_ctx(qp), &attr, mask);
	if (err != 0)
		return err;
	/* for the device, naming the attribute requests the event */
	if (attr.en_sqd_async_notify == 0)
		mask &= ~(uint32_t)SOFTHCA_QP_EN_SQD_ASYNC_NOTIFY;
	return run_transition(qp, t, &attr, mask, to);
}

static void
read_path(const struct hca_qpc_path *path, struct softhca_ah_attr *ah, uint8_t *timeout)
{
	uint32_t acks = hca_be32_to_cpu(path->ackto);
	uint32_t flow = hca_be32_to_cpu(path->sl_tclass_flow);

	ah->sgid_index = (uint8_t)HCA_QPC_GID_INDEX(acks);
	ah->static_rate = (uint8_t)HCA_QPC_STATIC_RATE(acks);
	ah->hop_limit = (uint8_t)HCA_QPC_HOP_LIMIT(acks);
	ah->sl = (uint8_t)HCA_QPC_SL(flow);
	ah->traffic_class = (uint8_t)HCA_QPC_TCLASS(flow);
	ah->flow_label = HCA_QPC_FLOW_LABEL(flow);
	ah->port_num = (uint8_t)HCA_QPC_PORT(hca_be32_to_cpu(path->port_pkey));
	ah->is_global = 1;
	memcpy(ah->dgid.raw, path->rgid, sizeof(ah->dgid.raw));
	*timeout = (uint8_t)HCA_QPC_ACKTO(acks);
}

static void
read_mailbox(const struct hca_qpc *qpc, struct softhca_qp_attr *attr)
{
	uint32_t flags = hca_be32_to_cpu(qpc->flags);
	uint32_t state = HCA_QPC_STATE(flags);
	uint32_t rd_atomic = hca_be32_to_cpu(qpc->rd_atomic);
	uint32_t rnr_epsn = hca_be32_to_cpu(qpc->rnr_nextrecvpsn);

	attr->qp_state = state < HCA_QPS_COUNT ? sw_state[state] : SOFTHCA_QPS_ERR;
	attr->cur_qp_state = attr->qp_state;
	attr->path_mtu = HCA_QPC_MTU(hca_be32_to_cpu(qpc->sizes));
	attr->path_mig_state = HCA_QPC_MIG(flags) == HCA_MIG_ARMED   ? SOFTHCA_MIG_ARMED
			       : HCA_QPC_MIG(flags) == HCA_MIG_REARM ? SOFTHCA_MIG_REARM
								     : SOFTHCA_MIG_MIGRATED;
	attr->rate_limit = hca_be32_to_cpu(qpc->rate_limit);
	attr->sq_draining = (flags & HCA_QPC_DRAINING) != 0;
	attr->qkey = hca_be32_to_cpu(qpc->qkey);
	attr->rq_psn = HCA_QPC_EPSN(rnr_epsn);
	attr->min_rnr_timer = (uint8_t)HCA_QPC_MIN_RNR_TIMER(rnr_epsn);
	attr->sq_psn = hca_be32_to_cpu(qpc->next_send_psn) & PSN_MASK;
	attr->dest_qp_num = hca_be32_to_cpu(qpc->remote_qpn) & HCA_QPN_MASK;
	attr->qp_access_flags = hca_be32_to_cpu(qpc->access_flags) & HCA_ACCESS_MASK;
	attr->max_rd_atomic = (uint8_t)HCA_QPC_MAX_RD_ATOMIC(rd_atomic);
	attr->max_dest_rd_atomic = (uint8_t)HCA_QPC_MAX_DEST_RD_ATOMIC(rd_atomic);
	attr->retry_cnt = (uint8_t)HCA_QPC_RETRY_CNT(rd_atomic);
	attr->rnr_retry = (uint8_t)HCA_QPC_RNR_RETRY(hca_be32_to_cpu(qpc->path.rnr_retry));
	attr->pkey_index = (uint16_t)HCA_QPC_PKEY_INDEX(hca_be32_to_cpu(qpc->path.port_pkey));
	attr->alt_pkey_index =
		(uint16_t)HCA_QPC_PKEY_INDEX(hca_be32_to_cpu(qpc->alt_path.port_pkey));
	read_path(&qpc->path, &attr->ah_attr, &attr->timeout);
	read_path(&qpc->alt_path, &attr->alt_ah_attr, &attr->alt_timeout);
	attr->port_num = attr->ah_attr.port_num;
	attr->alt_port_num = attr->alt_ah_attr.port_num;
}

int
softhca_query_qp(struct softhca_qp *pub, struct softhca_qp_attr *attr, uint32_t mask,
		 struct softhca_qp_init_attr *init_attr)
{
	struct lib_qp *qp = (struct lib_qp *)pub;
	struct lib_context *ctx = lib_qp_ctx(qp);
	struct hca_qpc qpc;
	int err = LIB_CALL(ctx, QUERY_QP, &pub->qp_num, &qpc);

	if (err != 0)
		return err;
	memset(attr, 0, sizeof(*attr));
	read_mailbox(&qpc, attr);
	attr->cap = lib_qp_cap(qp);
	pub->state = attr->qp_state;
	if (init_attr != NULL)
		*init_attr = (struct softhca_qp_init_attr){
			.qp_context = pub->qp_context,
			.send_cq = pub->send_cq,
			.recv_cq = pub->recv_cq,
			.srq = pub->srq,
			.cap = lib_qp_cap(qp),
			.qp_type = pub->qp_type,
			.sq_sig_all = qp->signal_all != 0,
			.flags = qp->sq.locked ? 0 : SOFTHCA_SINGLE_THREADED,
		};
	return 0;
}
