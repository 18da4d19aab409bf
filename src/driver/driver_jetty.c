/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Jettys and JFSs of UB, and well-known numbers. For the driver a Jetty is a QP: the same tables,
 * quotas and clean-up. JFRs: driver_srq.c.
 */

#include <errno.h>
#include <string.h>

#include "abi_qp_attr.h"
#include "abi_roce.h"
#include "abi_service.h"
#include "abi_tp.h"
#include "abi_ub.h"
#include "driver_types.h"

/* More requests than a Jetty can have open while it is reset. */
#define TASSN_GAP 1024u

static struct driver_qp *
jetty_of(struct hca_client *client, uint32_t number)
{
	struct driver_qp *qp = driver_qp_of(client, number);

	return qp != NULL && hca_service_is_ub(qp->service) ? qp : NULL;
}

static int
check_jetty(const struct hca_client *client, const struct hca_ctl_jetty *request)
{
	bool jfs = request->qp.service == HCA_ST_JFS;

	if (!driver_has_cap(client->drv, HCA_CAP_UB))
		return driver_fail(-EOPNOTSUPP, "the device does not speak UB");
	if (!hca_service_is_ub(request->qp.service))
		return driver_fail(-EINVAL, "service %u is not of Jettys", request->qp.service);
	if ((request->flags &
	     ~(HCA_CTL_TC_TOKEN | HCA_CTL_JETTY_SUSPEND | HCA_CTL_JETTY_ONE_PEER)) != 0 ||
	    (jfs && (request->flags & (HCA_CTL_TC_TOKEN | HCA_CTL_JETTY_ONE_PEER)) != 0))
		return driver_fail(-EINVAL, "a Jetty with flags %#x", request->flags);
	if (request->err_timeout > HCA_ACK_TIMEOUT_MAX ||
	    request->rnr_retry > HCA_RNR_RETRY_FOREVER ||
	    request->min_rnr_timer > HCA_UB_RNR_TIMER_MAX)
		return driver_fail(-EINVAL, "error timeout %u, RNR retries %u, RNR timer %u",
				   request->err_timeout, request->rnr_retry,
				   request->min_rnr_timer);
	return 0;
}

/* The mailbox of RST2RTS. */
static int
make_ready(struct hca_driver *drv, struct driver_qp *qp)
{
	uint32_t mask = HCA_QP_ATTR_TIMEOUT | HCA_QP_ATTR_RNR_RETRY | HCA_QP_ATTR_SQ_PSN, more;
	const struct driver_jetty *j = qp->jetty;
	struct hca_qpc qpc = {0};
	int err;

	driver_qp_fill(qp, &qpc);
	more = hca_be32_to_cpu(qpc.flags) & HCA_QPC_PRIVILEGED;
	if (qp->service == HCA_ST_JETTY)
		mask |= HCA_QP_ATTR_MIN_RNR_TIMER;
	if ((j->flags & HCA_CTL_TC_TOKEN) != 0) {
		mask |= HCA_QP_ATTR_QKEY;
		more |= HCA_QPC_TOKEN;
		qpc.qkey = hca_cpu_to_be32(j->token);
	}
	if ((j->flags & HCA_CTL_JETTY_SUSPEND) != 0)
		more |= HCA_QPC_SUSPEND;
	if ((j->flags & HCA_CTL_JETTY_ONE_PEER) != 0)
		more |= HCA_QPC_ONE_PEER;
	qpc.flags = hca_cpu_to_be32(HCA_QPC_MAKE_FLAGS(HCA_QPS_RTS, qp->service, HCA_MIG_ARMED, 0) |
				    more);
	qpc.opt_param_mask = hca_cpu_to_be32(mask);
	qpc.path.ackto = hca_cpu_to_be32(HCA_QPC_MAKE_ACKTO(j->err_timeout, 0, 0, 0));
	qpc.path.rnr_retry = hca_cpu_to_be32(HCA_QPC_MAKE_RNR_RETRY(j->rnr_retry, 0));
	qpc.rnr_nextrecvpsn = hca_cpu_to_be32(HCA_QPC_MAKE_RNR_EPSN(j->min_rnr_timer, 0));
	qpc.next_send_psn = hca_cpu_to_be32(j->tassn);
	memcpy(driver_mailbox(drv), &qpc, sizeof(qpc));
	err = driver_command_in(drv, HCA_CMD_RST2RTS_QPEE, qp->qpn);
	qp->live = err == 0;
	return err;
}

int
driver_op_create_jetty(struct hca_client *client, const struct hca_ctl_jetty *request,
		       uint32_t *number)
{
	struct driver_qp *qp;
	int err = check_jetty(client, request);

	if (err == 0)
		err = driver_qp_create(client, &request->qp, &qp);
	if (err != 0)
		return err;
	qp->jetty[0] = (struct driver_jetty){
		.token = request->token,
		.flags = (uint8_t)request->flags,
		.err_timeout = request->err_timeout,
		.rnr_retry = request->rnr_retry,
		.min_rnr_timer = request->min_rnr_timer,
	};
	err = make_ready(client->drv, qp);
	if (err != 0) {
		driver_qp_release(client->drv, qp, true);
		return err;
	}
	*number = qp->qpn;
	return 0;
}

/* ---- states ---- */

/* Ready or suspended; the device refuses a change that the present state does not allow. */
static int
change_state(struct hca_driver *drv, const struct driver_qp *qp, uint32_t state)
{
	struct hca_qpc qpc = {0};

	driver_qp_fill(qp, &qpc);
	memcpy(driver_mailbox(drv), &qpc, sizeof(qpc));
	return driver_command_in(drv,
				 state == HCA_QPS_SQD ? HCA_CMD_RTS2SQD_QPEE : HCA_CMD_SQD2RTS_QPEE,
				 qp->qpn);
}

/*
 * The device forgets the Jetty, as if it were destroyed; number, queues and well-known numbers stay
 * the client's. Requests of the next life have numbers that no request of this one has, so that a
 * late answer is none of theirs.
 */
static int
reset(struct hca_client *client, struct driver_qp *qp)
{
	struct hca_driver *drv = client->drv;
	const struct hca_qpc *now = drv->mailbox_out;
	int err;

	if (!qp->live)
		return 0;
	err = driver_command_bare(drv, HCA_CMD_2ERR_QPEE, HCA_MODIFY_QP_NO_INBOX, qp->qpn, 0);
	if (err == 0)
		err = driver_command_out(drv, HCA_CMD_QUERY_QP, qp->qpn);
	if (err != 0)
		return err;
	qp->jetty->tassn = (uint16_t)(hca_be32_to_cpu(now->next_send_psn) + TASSN_GAP);
	err = driver_take_back(drv, client, HCA_CMD_ERR2RST_QPEE, HCA_MODIFY_QP_NO_INBOX, qp->qpn);
	qp->live = err != 0;
	return err;
}

/* The device has forgotten which well-known numbers stand for the TC. */
static int
name_again(struct hca_driver *drv, uint32_t tc)
{
	int err = 0;

	for (uint32_t i = 0; err == 0 && i < HCA_TC_WELL_KNOWN; i++)
		if (drv->known[i] == tc)
			err = driver_command_bare(drv, HCA_CMD_SET_JETTY_ID, 0, i, tc);
	return err;
}

static int
begin_again(struct hca_client *client, struct driver_qp *qp)
{
	int err = make_ready(client->drv, qp);

	if (err != 0)
		return err;
	err = name_again(client->drv, qp->qpn);
	if (err != 0)
		(void)reset(client, qp);
	return err;
}

int
driver_op_modify_jetty(struct hca_client *client, const struct hca_ctl_jetty_state *request,
		       struct hca_ctl_none *none)
{
	struct driver_qp *qp = jetty_of(client, request->number);

	if (qp == NULL)
		return driver_fail(-EINVAL, "Jetty %#x does not exist", request->number);
	if (!qp->live && request->state != HCA_QPS_RST && request->state != HCA_QPS_RTS)
		return driver_fail(-EINVAL, "a Jetty in RESET becomes READY, and nothing else");
	switch (request->state) {
	case HCA_QPS_RST:
		return reset(client, qp);
	case HCA_QPS_ERR:
		return driver_command_bare(client->drv, HCA_CMD_2ERR_QPEE, HCA_MODIFY_QP_NO_INBOX,
					   qp->qpn, 0);
	case HCA_QPS_RTS:
		if (!qp->live)
			return begin_again(client, qp);
		return change_state(client->drv, qp, request->state);
	case HCA_QPS_SQD:
		return change_state(client->drv, qp, request->state);
	default:
		return driver_fail(-EINVAL, "a Jetty cannot be told to be in state %u",
				   request->state);
	}
}

int
driver_op_bind_jetty(struct hca_client *client, const struct hca_ctl_bind *request,
		     struct hca_ctl_none *none)
{
	const struct driver_qp *qp = jetty_of(client, request->number);
	struct hca_mbox_bind_jetty m = {.tc = hca_cpu_to_be32(request->tc)};

	if (qp == NULL || qp->service != HCA_ST_JETTY)
		return driver_fail(-EINVAL, "Jetty %#x does not exist", request->number);
	if (request->tc != HCA_TC_NONE &&
	    (request->tc < HCA_TC_WELL_KNOWN || request->tc >= HCA_TC_JFR))
		return driver_fail(-EINVAL,
				   "a Jetty is bound to the own number of another, not %#x",
				   request->tc);
	memcpy(m.eid, request->eid, sizeof(m.eid));
	memcpy(driver_mailbox(client->drv), &m, sizeof(m));
	return driver_command_in(client->drv, HCA_CMD_BIND_JETTY, qp->qpn);
}

/* ---- well-known numbers ---- */

/* Whether requests to the TC reach the client. */
static bool
owns(struct hca_client *client, uint32_t tc)
{
	const struct driver_srq *srq;
	const struct driver_qp *qp;

	if ((tc & HCA_TC_JFR) != 0) {
		srq = driver_srq_of(client, HCA_TC_NUMBER(tc));
		return srq != NULL && srq->jfr;
	}
	qp = jetty_of(client, tc);
	return qp != NULL && qp->service == HCA_ST_JETTY;
}

/* Those below are for drivers. */
static bool
is_counted(uint32_t id)
{
	return id >= HCA_TC_WELL_KNOWN_FREE;
}

int
driver_op_name_tc(struct hca_client *client, const struct hca_ctl_known *request,
		  struct hca_ctl_none *none)
{
	struct hca_driver *drv = client->drv;
	uint32_t *known, tc = request->tc;
	int err;

	if (drv->known == NULL)
		return driver_fail(-EOPNOTSUPP, "the device does not speak UB");
	if (request->id >= HCA_TC_WELL_KNOWN)
		return driver_fail(-EINVAL, "number %u is not well known", request->id);
	if (request->id < HCA_TC_WELL_KNOWN_FREE && !client->privileged)
		return driver_fail(-EACCES, "numbers below %u are for privileged users",
				   HCA_TC_WELL_KNOWN_FREE);
	known = &drv->known[request->id];
	if (!owns(client, tc != HCA_TC_NONE ? tc : *known))
		return driver_fail(-EINVAL, "%#x is no Jetty or JFR of the client", tc);
	if (tc != HCA_TC_NONE && *known != HCA_TC_NONE)
		return driver_fail(-EBUSY, "number %u is taken", request->id);
	if (tc != HCA_TC_NONE && is_counted(request->id) &&
	    driver_quota(client, DRIVER_KNOWN, 1) != 0)
		return -ENOMEM;
	err = driver_command_bare(drv, HCA_CMD_SET_JETTY_ID, 0, request->id, tc);
	if (err != 0)
		return err;
	if (is_counted(request->id))
		client->count[DRIVER_KNOWN] += tc != HCA_TC_NONE ? 1 : UINT64_MAX;
	*known = tc;
	return 0;
}

void
driver_known_forget(struct hca_driver *drv, struct hca_client *owner, uint32_t tc)
{
	if (drv->known == NULL)
		return;
	for (uint32_t i = 0; i < HCA_TC_WELL_KNOWN; i++) {
		if (drv->known[i] != tc)
			continue;
		drv->known[i] = HCA_TC_NONE;
		if (owner != NULL && is_counted(i))
			owner->count[DRIVER_KNOWN]--;
	}
}
