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
#include "abi_roce.h"
#include "lib_types.h"

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
};

static const uint8_t sw_mig[] = {
	[HCA_MIG_ARMED] = SOFTHCA_MIG_ARMED,
	[HCA_MIG_REARM] = SOFTHCA_MIG_REARM,
	[HCA_MIG_MIGRATED] = SOFTHCA_MIG_MIGRATED,
};

static const char *const attr_names[] = {
#define ATTR_NAME(name, bit) [bit] = #name,
	HCA_QP_ATTR_LIST(ATTR_NAME)
#undef ATTR_NAME
};

#define ASSERT_BIT(name, bit) \
	_Static_assert((uint32_t)SOFTHCA_QP_##name == (uint32_t)HCA_QP_ATTR_##name, #name);
HCA_QP_ATTR_LIST(ASSERT_BIT)
#undef ASSERT_BIT
_Static_assert(SOFTHCA_RATE_LIMIT_LEAST == HCA_RATE_LIMIT_MIN &&
		       SOFTHCA_RATE_LIMIT_MOST == HCA_RATE_LIMIT_MAX,
	       "rate limits");
#define ONE_MORE(...) +1
_Static_assert(0 SOFTHCA_CONGESTION_LIST(ONE_MORE) == HCA_CONGESTION_MAX + 1, "algorithms");
#undef ONE_MORE
_Static_assert((uint32_t)SOFTHCA_MIG_REARM == (uint32_t)HCA_MIG_REARM,
	       "limit of path_mig_state before it is coded");

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

/* Attributes that the mask does not name are not read, and 0. */
static struct softhca_qp_attr
named_attrs(const struct softhca_qp_attr *attr, uint32_t mask)
{
	struct softhca_qp_attr named = {0};

#define COPY(attribute, member, ...) \
	if ((mask & HCA_QP_ATTR_##attribute) != 0) \
		named.member = attr->member;
	HCA_QP_FIELD_LIST(COPY)
	HCA_QP_MEMBER_LIST(COPY)
#undef COPY
	return named;
}

static int
check_value(const char *name, uint32_t value, uint32_t min, uint32_t max,
	    enum hca_qp_attr_rule rule)
{
	bool option = rule == HCA_QP_ATTR_OPTION;

	if (rule == HCA_QP_ATTR_CUT || (value >= min && value <= max) || (option && value == 0))
		return 0;
	return lib_fail(-EINVAL, "%s %u: must be %s%u..%u", name, value, option ? "0 or " : "", min,
			max);
}

static int
check_values(const struct hca_ctl_info *info, const struct softhca_qp_attr *attr, uint32_t mask)
{
	int err;

	if (attr->path_mig_state == SOFTHCA_MIG_ARMED)
		return lib_fail(-EINVAL, "path_mig_state ARMED: only the device sets it, of a QP "
					 "in REARM");
#define CHECK(attribute, member, word, field, min, max, limit, rule, verbs) \
	if ((mask & HCA_QP_ATTR_##attribute) != 0) { \
		err = check_value(#member, attr->member, min, limit, HCA_QP_ATTR_##rule); \
		if (err != 0) \
			return err; \
	}
	HCA_QP_VALUE_LIST(CHECK)
#undef CHECK
	err = lib_check_rate(attr->ah_attr.static_rate);
	return err != 0 ? err : lib_check_rate(attr->alt_ah_attr.static_rate);
}

/* Bits beyond the width of the field are cut off, as other devices do. */
static void
put_field(hca_be32 *word, uint32_t bits, uint32_t value)
{
	*word |= hca_cpu_to_be32(value << __builtin_ctz(bits) & bits);
}

static void
fill_address(struct hca_qpc_path *path, const struct softhca_ah_attr *ah)
{
	memcpy(path->rgid, ah->dgid.raw, sizeof(path->rgid));
	if (ah->hop_limit == 0)
		put_field(&path->ackto, HCA_BITS_OF(HCA_QPC_HOP_LIMIT), HCA_HOP_LIMIT);
}

static void
fill_mailbox(const struct lib_qp *qp, const struct softhca_qp_attr *named, uint32_t mask,
	     uint32_t to, struct hca_qpc *qpc)
{
	const struct hca_ctl_info *info = &lib_qp_ctx(qp)->info;
	struct softhca_qp_attr attr = *named;

	attr.path_mig_state = hw_mig[attr.path_mig_state];
	memset(qpc, 0, sizeof(*qpc));
	qpc->opt_param_mask = hca_cpu_to_be32(mask | HCA_QP_ATTR_STATE);
	qpc->flags = hca_cpu_to_be32(HCA_QPC_MAKE_FLAGS(to, lib_service_of(qp->pub.qp_type), 0, 0));
	qpc->sizes = hca_cpu_to_be32(
		HCA_QPC_MAKE_SIZES(0, HCA_MAX_MSG_LOG, qp->rq.log_stride, qp->sq.log_stride));
	qpc->local_qpn = hca_cpu_to_be32(qp->pub.qp_num);
	qpc->path.rnr_retry = hca_cpu_to_be32(HCA_QPC_HAS_GRH);
/* by rule: the bits that are kept */
#define CUT_RANGE(limit) UINT32_MAX
#define CUT_OPTION(limit) UINT32_MAX
#define CUT_CUT(limit) (limit)
#define FILL(attribute, member, word, field, min, max, limit, rule, verbs) \
	put_field(&qpc->word, HCA_BITS_OF(HCA_QPC_##field), (attr.member) & (CUT_##rule(limit)));
	HCA_QP_VALUE_LIST(FILL)
#undef FILL
#undef CUT_RANGE
#undef CUT_OPTION
#undef CUT_CUT
	if ((mask & SOFTHCA_QP_AV) != 0)
		fill_address(&qpc->path, &attr.ah_attr);
	if ((mask & SOFTHCA_QP_ALT_PATH) != 0)
		fill_address(&qpc->alt_path, &attr.alt_ah_attr);
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
		return lib_fail(-EINVAL, "QP state %u: expected 0 to %u", to, SOFTHCA_QPS_ERR);
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
		err = check_values(&lib_qp_ctx(qp)->info, &attr, mask);
	if (err == 0 && (mask & SOFTHCA_QP_CONGESTION) != 0)
		err = lib_needs(lib_qp_ctx(qp), HCA_CTL_FEATURE_CONGESTION);
	if (err != 0)
		return err;
	/* for the device, naming the attribute requests the event */
	if (attr.en_sqd_async_notify == 0)
		mask &= ~(uint32_t)SOFTHCA_QP_EN_SQD_ASYNC_NOTIFY;
	return run_transition(qp, t, &attr, mask, to);
}

static void
read_address(const struct hca_qpc_path *path, struct softhca_ah_attr *ah)
{
	ah->port_num = (uint8_t)HCA_QPC_PORT(hca_be32_to_cpu(path->port_pkey));
	ah->is_global = 1;
	memcpy(ah->dgid.raw, path->rgid, sizeof(ah->dgid.raw));
}

static void
read_mailbox(const struct hca_qpc *qpc, struct softhca_qp_attr *attr)
{
	uint32_t flags = hca_be32_to_cpu(qpc->flags);
	uint32_t state = HCA_QPC_STATE(flags);

#define READ(attribute, member, word, field, ...) \
	attr->member = (__typeof__(attr->member))HCA_QPC_##field(hca_be32_to_cpu(qpc->word));
	HCA_QP_VALUE_LIST(READ)
#undef READ
	attr->path_mig_state = sw_mig[attr->path_mig_state];
	attr->qp_state = state < HCA_QPS_COUNT ? sw_state[state] : SOFTHCA_QPS_ERR;
	attr->cur_qp_state = attr->qp_state;
	attr->sq_draining = (flags & HCA_QPC_DRAINING) != 0;
	read_address(&qpc->path, &attr->ah_attr);
	read_address(&qpc->alt_path, &attr->alt_ah_attr);
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
