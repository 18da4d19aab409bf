/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Queue pairs. For the driver a QP is a number and two registered queues; in the device it exists
 * from RST2INIT (a Jetty: RST2RTS) to 2RST.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi_service.h"
#include "abi_tp.h"
#include "driver_types.h"

#define QPN_BITS 24u
#define JETTY_BITS 19u /* also its number on the wire */

struct driver_qp *
driver_qp_of(struct hca_client *client, uint32_t qpn)
{
	struct hca_driver *drv = client->drv;
	struct driver_qp *qp = drv->qps[qpn & (drv->qp_ids.count - 1)];

	if (qp == NULL || qp->qpn != qpn)
		return NULL;
	return qp->owner == client || driver_opener_of(qp, client) != NULL ? qp : NULL;
}

static bool
queue_fits(const struct hca_driver *drv, uint32_t log_size, uint32_t log_stride)
{
	return log_size <= HCA_LIM_QP_SZ_LOG(hca_be32_to_cpu(drv->lim.max_sz)) &&
	       log_stride >= HCA_WQE_MIN_STRIDE_LOG && log_stride <= HCA_WQE_MAX_STRIDE_LOG;
}

/* Queues that the request's QP has: HCA_HAS_SQ, HCA_HAS_RQ. */
static uint32_t
queues_of(const struct hca_ctl_qp *request)
{
	uint32_t has = hca_service_info(request->service)->queues;

	return request->srqn != 0 ? has & ~HCA_HAS_RQ : has;
}

static int
check_srq(struct hca_client *client, const struct hca_ctl_qp *request)
{
	struct driver_srq *srq;

	if (request->srqn == 0)
		return 0;
	srq = driver_srq_of(client, request->srqn);
	if (srq == NULL || srq->xrcd != NULL || srq->jfr != hca_service_is_ub(request->service) ||
	    (hca_service_info(request->service)->queues & HCA_MAY_SRQ) == 0)
		return driver_fail(-EINVAL, "SRQ %#x cannot serve the QP", request->srqn);
	return 0;
}

static int
check_objects(struct hca_client *client, const struct hca_ctl_qp *request)
{
	uint32_t has = hca_service_info(request->service)->queues;

	if (request->service == HCA_ST_XRC_TGT)
		return driver_xrcd_of(client, request->xrcd) != NULL
			       ? 0
			       : driver_fail(-EINVAL, "XRC domain %u does not exist",
					     request->xrcd);
	if (driver_pd_of(client, request->pdn) == NULL)
		return driver_fail(-EINVAL, "PD %#x does not exist", request->pdn);
	if (driver_cq_of(client, request->send_cqn) == NULL ||
	    ((has & HCA_HAS_RQ) != 0 && driver_cq_of(client, request->recv_cqn) == NULL))
		return driver_fail(-EINVAL, "CQ %#x or %#x does not exist", request->send_cqn,
				   request->recv_cqn);
	return check_srq(client, request);
}

/* Source QPN in datagrams, and whether their sender receives its own. */
static int
check_source(const struct hca_client *client, const struct hca_ctl_qp *request)
{
	uint32_t pipe = HCA_CTL_PIPE_OF(request->source);

	if (pipe > client->pipes || (pipe != 0 && client->pipes == 1))
		return driver_fail(-EINVAL, "pipeline %u of %u", pipe - 1, client->pipes);
	if ((request->source & ~HCA_CTL_PIPE_MASK) == 0)
		return 0;
	if (request->service != HCA_ST_UD ||
	    (request->source & ~(HCA_CTL_NO_OWN_GROUP | HCA_CTL_PIPE_MASK | HCA_QPN_MASK)) != 0)
		return driver_fail(-EINVAL, "source %#x of a QP of service %u", request->source,
				   request->service);
	if ((request->source & HCA_QPN_MASK) != 0 && !client->privileged)
		return driver_fail(-EACCES,
				   "source QPN %#x: another than its own is for privileged "
				   "users (root, [control] privileged_users)",
				   request->source & HCA_QPN_MASK);
	return 0;
}

/* Device memory of a QP: its own, its doorbell ring, the pages of its queues. */
static uint32_t
cost_of(const struct hca_ctl_qp *request)
{
	uint32_t has = queues_of(request);
	uint64_t cost = DRIVER_QP_BYTES;

	if (hca_service_is_ub(request->service))
		cost += DRIVER_JETTY_BYTES;
	if ((has & HCA_HAS_SQ) != 0)
		cost += (sizeof(uint32_t) << request->log_sq) +
			driver_queue_cost(UINT64_C(1)
					  << (request->log_sq + request->log_sq_stride));
	if ((has & HCA_HAS_RQ) != 0)
		cost += driver_queue_cost(UINT64_C(1)
					  << (request->log_rq + request->log_rq_stride));
	return (uint32_t)cost;
}

static int
check_qp(struct hca_client *client, const struct hca_ctl_qp *request)
{
	struct hca_driver *drv = client->drv;
	uint32_t has = queues_of(request);
	int err;

	if ((hca_service_info(request->service)->cap & hca_be32_to_cpu(drv->lim.caps)) == 0)
		return driver_fail(request->service == HCA_ST_RD ? -EOPNOTSUPP : -EINVAL,
				   "service %u is not offered", request->service);
	if (((has & HCA_HAS_SQ) != 0 &&
	     !queue_fits(drv, request->log_sq, request->log_sq_stride)) ||
	    ((has & HCA_HAS_RQ) != 0 && !queue_fits(drv, request->log_rq, request->log_rq_stride)))
		return driver_fail(-EINVAL, "queues of 2^%u x 2^%u and 2^%u x 2^%u bytes",
				   request->log_sq, request->log_sq_stride, request->log_rq,
				   request->log_rq_stride);
	err = check_source(client, request);
	if (err == 0)
		err = driver_quota(client, DRIVER_QPS, 1);
	if (err == 0)
		err = driver_quota(client, DRIVER_BYTES, cost_of(request));
	return err == 0 ? check_objects(client, request) : err;
}

/* The pipeline with the fewest QPs, of those of the client. */
static uint32_t
emptiest_pipe(const struct hca_client *client)
{
	const struct hca_driver *drv = client->drv;
	uint32_t pipe = 0;

	for (uint32_t i = 1; i < client->pipes; i++)
		if (drv->pipe_qps[i] < drv->pipe_qps[pipe])
			pipe = i;
	return pipe;
}

/*
 * A quarter of a pipeline's QPNs is not for clients that ask for it: those of an older library and
 * Jettys have no other pipeline than the first.
 */
static bool
has_reserve(const struct hca_driver *drv, uint32_t pipe)
{
	return drv->pipe_qps[pipe] < drv->qp_ids.count / drv->pipes / 4 * 3;
}

/*
 * A QPN that cannot be predicted; reserved ones are not used, for Jettys those well known. wanted:
 * a pipeline + 1, which it gets as long as that has a reserve; 0: any.
 */
static int
take_qpn(struct hca_client *client, uint32_t service, uint32_t wanted, uint32_t *qpn)
{
	struct hca_driver *drv = client->drv;
	bool jetty = hca_service_is_ub(service);
	uint32_t bits = jetty ? JETTY_BITS : QPN_BITS, log = drv->config.log_num_qps;
	uint32_t min = jetty ? HCA_TC_WELL_KNOWN : HCA_QPN_GSI + 1, index;
	uint32_t pipe = jetty ? 0 : emptiest_pipe(client);
	int err;

	if (!jetty && wanted != 0 && has_reserve(drv, wanted - 1))
		pipe = wanted - 1;
	err = driver_ids_take_of(&drv->qp_ids, pipe, drv->pipes, &index);
	if (err != 0 && drv->pipes > 1)
		return driver_fail(err,
				   "all %u QPs of pipeline %u are in use: destroy some, or raise "
				   "[limits] log_qps%s",
				   drv->qp_ids.count / drv->pipes, pipe,
				   client->pipes == 1 ? "; a library of this release has those of "
							"the other pipelines"
						      : "");
	if (err != 0)
		return driver_all_used(err, "QPs", drv->qp_ids.count, "[limits] log_qps");
	err = driver_icm_need(drv, ICM_QPC, index, 1);
	if (err != 0) {
		driver_ids_give(&drv->qp_ids, index);
		return err;
	}
	drv->pipe_qps[pipe]++;
	do {
		*qpn = HCA_QPN_MAKE(driver_ids_new_tag(&drv->qp_ids, index, bits - log,
						       &drv->random),
				    index, log);
	} while (*qpn < min || *qpn == HCA_QPN_MULTICAST);
	return 0;
}

static void
give_qpn(struct hca_driver *drv, uint32_t qpn)
{
	drv->pipe_qps[qpn % drv->pipes]--;
	driver_ids_give(&drv->qp_ids, HCA_QPN_INDEX(qpn, drv->config.log_num_qps));
}

/* Change the user counts of the objects that the QP refers to. */
static void
use_objects(struct driver_qp *qp, uint32_t add)
{
	if (qp->pd != NULL)
		qp->pd->users += add;
	if (qp->send_cq != NULL)
		qp->send_cq->users += add;
	if (qp->recv_cq != NULL)
		qp->recv_cq->users += add;
	if (qp->srq != NULL)
		qp->srq->users += add;
	if (qp->xrcd != NULL)
		qp->xrcd->users += add;
}

void
driver_qp_own(struct driver_qp *qp)
{
	struct hca_client *client = qp->owner;

	DRIVER_LIST_ADD(client->qps, qp);
	client->count[DRIVER_QPS]++;
	client->count[DRIVER_BYTES] += qp->cost;
}

void
driver_qp_disown(struct driver_qp *qp)
{
	DRIVER_LIST_REMOVE(qp);
	qp->owner->count[DRIVER_QPS]--;
	qp->owner->count[DRIVER_BYTES] -= qp->cost;
	if (qp->owed != 0)
		qp->owner->drv->owed--;
	driver_eq_forget(qp->owner, 0, DRIVER_QP_EVENTS, qp->qpn);
}

static void
link_qp(struct hca_driver *drv, struct driver_qp *qp)
{
	pthread_mutex_lock(&drv->event_lock);
	driver_qp_own(qp);
	drv->qps[HCA_QPN_INDEX(qp->qpn, drv->config.log_num_qps)] = qp;
	pthread_mutex_unlock(&drv->event_lock);
	use_objects(qp, 1);
}

static void
unlink_qp(struct hca_driver *drv, struct driver_qp *qp)
{
	pthread_mutex_lock(&drv->event_lock);
	driver_qp_disown(qp);
	drv->qps[HCA_QPN_INDEX(qp->qpn, drv->config.log_num_qps)] = NULL;
	pthread_mutex_unlock(&drv->event_lock);
	use_objects(qp, (uint32_t)-1);
}

/* Register the memory of the QP's queues; an XRC target uses its owner's first PD. */
static int
register_queues(struct hca_driver *drv, struct driver_qp *qp, const struct hca_ctl_qp *request)
{
	uint32_t has = queues_of(request);
	int err = 0;

	if ((has & HCA_HAS_SQ) != 0) {
		qp->sq_bytes = 1u << (request->log_sq + request->log_sq_stride);
		err = driver_mr_queue(drv, qp->owner, request->pdn, request->sq_addr, qp->sq_bytes,
				      0, &qp->sq_mr);
	}
	if (err != 0 || (has & HCA_HAS_RQ) == 0)
		return err;
	qp->rq_bytes = 1u << (request->log_rq + request->log_rq_stride);
	return driver_mr_queue(drv, qp->owner, request->pdn, request->rq_addr,
			       (uint64_t)qp->rq_bytes + sizeof(struct hca_rq_record),
			       HCA_ACCESS_LOCAL_WRITE, &qp->rq_mr);
}

static void
unregister_queues(struct hca_driver *drv, struct driver_qp *qp)
{
	if (qp->rq_mr != NULL)
		driver_mr_destroy(drv, qp->rq_mr, true);
	if (qp->sq_mr != NULL)
		driver_mr_destroy(drv, qp->sq_mr, true);
}

static void
find_objects(struct hca_client *client, struct driver_qp *qp, const struct hca_ctl_qp *request)
{
	uint32_t has = hca_service_info(request->service)->queues;

	if (request->service == HCA_ST_XRC_TGT) {
		qp->xrcd = driver_xrcd_of(client, request->xrcd);
		qp->shared = qp->xrcd->file != NULL;
		return;
	}
	qp->pd = driver_pd_of(client, request->pdn);
	qp->send_cq = driver_cq_of(client, request->send_cqn);
	if ((has & HCA_HAS_RQ) != 0)
		qp->recv_cq = driver_cq_of(client, request->recv_cqn);
	if (request->srqn != 0)
		qp->srq = driver_srq_of(client, request->srqn);
}

int
driver_qp_create(struct hca_client *client, const struct hca_ctl_qp *request,
		 struct driver_qp **out)
{
	struct hca_driver *drv = client->drv;
	bool jetty = hca_service_is_ub(request->service);
	struct driver_qp *qp;
	size_t bytes;
	int err = check_qp(client, request);

	if (err != 0)
		return err;
	bytes = sizeof(*qp) + (jetty ? sizeof(qp->jetty[0]) : 0);
	qp = calloc(1, bytes);
	if (qp == NULL)
		return driver_no_memory(jetty ? "a Jetty" : "a QP", bytes);
	qp->owner = client;
	find_objects(client, qp, request);
	qp->service = (uint8_t)request->service;
	qp->log_sq_stride = request->log_sq_stride;
	qp->log_rq_stride = request->log_rq_stride;
	qp->source_qpn = request->source & HCA_QPN_MASK;
	qp->no_own_group = (request->source & HCA_CTL_NO_OWN_GROUP) != 0;
	qp->cost = cost_of(request);
	err = take_qpn(client, qp->service, HCA_CTL_PIPE_OF(request->source), &qp->qpn);
	if (err != 0)
		goto err_free;
	err = register_queues(drv, qp, request);
	if (err != 0)
		goto err_queues;
	link_qp(drv, qp);
	*out = qp;
	return 0;

err_queues:
	unregister_queues(drv, qp);
	give_qpn(drv, qp->qpn);
err_free:
	free(qp);
	return err;
}

int
driver_op_create_qp(struct hca_client *client, const struct hca_ctl_qp *request, uint32_t *qpn)
{
	struct driver_qp *qp;
	int err;

	if (hca_service_is_ub(request->service))
		return driver_fail(-EINVAL, "service %u is of Jettys", request->service);
	err = driver_qp_create(client, request, &qp);
	if (err == 0)
		*qpn = qp->qpn;
	return err;
}

int
driver_qp_release(struct hca_driver *drv, struct driver_qp *qp, bool force)
{
	int err = 0;

	if (qp->live)
		err = driver_take_back(drv, qp->shared ? NULL : qp->owner, HCA_CMD_ERR2RST_QPEE,
				       HCA_MODIFY_QP_NO_INBOX, qp->qpn);
	if (err != 0 && !force)
		return err;
	driver_mcast_forget(qp);
	driver_known_forget(drv, qp->owner, qp->qpn);
	unlink_qp(drv, qp);
	unregister_queues(drv, qp);
	give_qpn(drv, qp->qpn);
	free(qp);
	return 0;
}

int
driver_qp_query(struct hca_driver *drv, const struct driver_qp *qp, void *mailbox)
{
	struct hca_qpc qpc = {0}; /* RESET: state 0 */
	int err;

	if (!qp->live) {
		driver_qp_fill(qp, &qpc);
		memcpy(mailbox, &qpc, sizeof(qpc));
		return 0;
	}
	err = driver_command_out(drv, HCA_CMD_QUERY_QP, qp->qpn);
	if (err == 0)
		memcpy(mailbox, drv->mailbox_out, sizeof(struct hca_qpc));
	return err;
}

int
driver_op_query_qp(struct hca_client *client, const uint32_t *qpn, struct hca_qpc *mailbox)
{
	const struct driver_qp *qp = driver_qp_of(client, *qpn);

	if (qp == NULL)
		return driver_fail(-EINVAL, "QP %#x does not exist", *qpn);
	return driver_qp_query(client->drv, qp, mailbox);
}

int
driver_op_destroy_qp(struct hca_client *client, const uint32_t *qpn, struct hca_ctl_none *none)
{
	struct driver_qp *qp = driver_qp_of(client, *qpn);

	if (qp == NULL)
		return driver_fail(-EINVAL, "QP %#x does not exist", *qpn);
	if (driver_qp_close_again(qp, client))
		return 0;
	if (qp->owner != client) {
		driver_opener_drop(client->drv, driver_opener_of(qp, client));
		return 0;
	}
	return driver_qp_pass_on(client->drv, qp) ? 0 : driver_qp_release(client->drv, qp, false);
}

int
driver_op_mcast(struct hca_client *client, const struct hca_ctl_mcast *request,
		struct hca_ctl_none *none)
{
	struct driver_qp *qp = driver_qp_of(client, request->qpn);

	if (qp == NULL)
		return driver_fail(-EINVAL, "QP %#x does not exist", request->qpn);
	return driver_mcast(qp, request->mgid, request->attach != 0);
}
