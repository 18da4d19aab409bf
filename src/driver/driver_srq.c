/* SPDX-License-Identifier: BSD-3-Clause */

/* Shared receive queues. */

#include <errno.h>
#include <stdlib.h>

#include "abi_tp.h"
#include "abi_ub.h"
#include "driver_types.h"

#define SRQN_BITS 24u
#define JFR_BITS 19u /* also its number on the wire */

struct driver_srq *
driver_srq_of(struct hca_client *client, uint32_t srqn)
{
	struct hca_driver *drv = client->drv;
	struct driver_srq *srq = drv->srqs[srqn & (drv->srq_ids.count - 1)];

	return srq != NULL && srq->srqn == srqn && srq->owner == client ? srq : NULL;
}

static int
check_srq(struct hca_client *client, const struct hca_ctl_srq *request, bool jfr)
{
	struct hca_driver *drv = client->drv;

	if (!driver_has_cap(drv, HCA_CAP_SRQ))
		return driver_fail(-EOPNOTSUPP, "the device has no SRQs");
	if (request->log_size > HCA_LIM_SRQ_SZ_LOG(hca_be32_to_cpu(drv->lim.rd_atomic)) ||
	    request->log_stride < HCA_WQE_MIN_STRIDE_LOG ||
	    request->log_stride > HCA_WQE_MAX_STRIDE_LOG)
		return driver_fail(-EINVAL, "an SRQ of 2^%u x 2^%u bytes", request->log_size,
				   request->log_stride);
	if (driver_pd_of(client, request->pdn) == NULL)
		return driver_fail(-EINVAL, "PD %#x does not exist", request->pdn);
	if (jfr && (request->xrcd != 0 || driver_cq_of(client, request->cqn) == NULL))
		return driver_fail(-EINVAL, "CQ %#x does not exist, or an XRC domain",
				   request->cqn);
	if (request->xrcd != 0 && (driver_xrcd_of(client, request->xrcd) == NULL ||
				   driver_cq_of(client, request->cqn) == NULL))
		return driver_fail(-EINVAL, "XRC domain %u or CQ %#x does not exist", request->xrcd,
				   request->cqn);
	return driver_quota(client, DRIVER_SRQS, 1);
}

/* Peers name XRC SRQs and JFRs, so numbers must not be predictable. */
static int
take_srqn(struct hca_driver *drv, bool jfr, uint32_t *srqn)
{
	uint32_t bits = jfr ? JFR_BITS : SRQN_BITS, log = drv->config.log_num_srqs, index;
	int err = driver_ids_take(&drv->srq_ids, &index);

	if (err != 0)
		return driver_all_used(err, "SRQs", drv->srq_ids.count, "[limits] log_srqs");
	err = driver_icm_need(drv, ICM_SRQC, index, 1);
	if (err != 0) {
		driver_ids_give(&drv->srq_ids, index);
		return err;
	}
	do {
		*srqn = HCA_QPN_MAKE(driver_ids_new_tag(&drv->srq_ids, index, bits - log,
							&drv->random),
				     index, log);
	} while (*srqn == 0);
	return 0;
}

/* Members of JFRs only; jfr NULL: an SRQ. */
static void
fill_jfr(struct hca_srqc *c, const struct driver_srq *srq, const struct hca_ctl_jfr *jfr)
{
	bool token;

	if (jfr == NULL)
		return;
	token = (jfr->flags & HCA_CTL_TC_TOKEN) != 0;
	c->flags = hca_cpu_to_be32(HCA_SRQC_JFR | (token ? HCA_SRQC_TOKEN : 0));
	c->token = hca_cpu_to_be32(token ? jfr->token : 0);
	c->xrc_cqn = hca_cpu_to_be32(srq->cq->cqn);
	c->rnr = hca_cpu_to_be32(HCA_FIELD(31, 24, jfr->min_rnr_timer));
}

static int
enable_srq(struct hca_driver *drv, const struct driver_srq *srq, const struct hca_ctl_srq *request,
	   const struct hca_ctl_jfr *jfr)
{
	struct hca_srqc *c = driver_mailbox(drv);
	int err;

	hca_srqc_set_start(c, request->addr);
	c->logsize_usrpage = hca_cpu_to_be32(HCA_FIELD(31, 24, request->log_size) |
					     HCA_FIELD(23, 0, srq->owner->uar));
	c->stride = hca_cpu_to_be32(HCA_FIELD(31, 24, request->log_stride) | request->max_sge);
	c->pd = hca_cpu_to_be32(srq->pd->pdn);
	c->lkey = hca_cpu_to_be32(srq->mr->key);
	c->limit = hca_cpu_to_be32(request->limit);
	c->srqn = hca_cpu_to_be32(srq->srqn);
	if (srq->xrcd != NULL) {
		c->xrcd = hca_cpu_to_be32(HCA_SRQC_XRCD_VALID | srq->xrcd->number);
		c->xrc_cqn = hca_cpu_to_be32(srq->cq->cqn);
	}
	fill_jfr(c, srq, jfr);
	err = driver_command_in(drv, HCA_CMD_SW2HW_SRQ, srq->srqn);
	if (err == -EINVAL && srq->cq != NULL)
		driver_fail(err, "the device takes no such %s: has its CQ overrun?",
			    srq->jfr ? "JFR" : "XRC SRQ");
	return err;
}

static void
use_objects(struct driver_srq *srq, uint32_t add)
{
	srq->pd->users += add;
	if (srq->cq != NULL)
		srq->cq->users += add;
	if (srq->xrcd != NULL)
		srq->xrcd->users += add;
}

static void
link_srq(struct hca_driver *drv, struct driver_srq *srq)
{
	pthread_mutex_lock(&drv->event_lock);
	srq->next = srq->owner->srqs;
	srq->owner->srqs = srq;
	srq->owner->count[DRIVER_SRQS]++;
	drv->srqs[HCA_QPN_INDEX(srq->srqn, drv->config.log_num_srqs)] = srq;
	pthread_mutex_unlock(&drv->event_lock);
	use_objects(srq, 1);
}

static void
unlink_srq(struct hca_driver *drv, struct driver_srq *srq)
{
	struct driver_srq **link = &srq->owner->srqs;

	pthread_mutex_lock(&drv->event_lock);
	while (*link != srq)
		link = &(*link)->next;
	*link = srq->next;
	srq->owner->count[DRIVER_SRQS]--;
	drv->srqs[HCA_QPN_INDEX(srq->srqn, drv->config.log_num_srqs)] = NULL;
	if (srq->owed != 0)
		drv->owed--;
	driver_eq_forget(srq->owner, 0, DRIVER_SRQ_EVENTS, srq->srqn);
	pthread_mutex_unlock(&drv->event_lock);
	use_objects(srq, (uint32_t)-1);
}

/* jfr: the JFR's own members; NULL: an SRQ of verbs. */
static int
create_srq(struct hca_client *client, const struct hca_ctl_srq *request,
	   const struct hca_ctl_jfr *jfr, uint32_t *srqn)
{
	struct hca_driver *drv = client->drv;
	struct driver_srq *srq;
	uint64_t bytes;
	int err = check_srq(client, request, jfr != NULL);

	if (err != 0)
		return err;
	srq = calloc(1, sizeof(*srq));
	if (srq == NULL)
		return driver_no_memory("an SRQ", sizeof(*srq));
	srq->owner = client;
	srq->pd = driver_pd_of(client, request->pdn);
	srq->jfr = jfr != NULL;
	if (request->xrcd != 0)
		srq->xrcd = driver_xrcd_of(client, request->xrcd);
	if (request->xrcd != 0 || srq->jfr)
		srq->cq = driver_cq_of(client, request->cqn);
	err = take_srqn(drv, srq->jfr, &srq->srqn);
	if (err != 0)
		goto err_free;
	bytes = (UINT64_C(1) << (request->log_size + request->log_stride)) +
		sizeof(struct hca_rq_record);
	err = driver_mr_queue(drv, client, request->pdn, request->addr, bytes,
			      HCA_ACCESS_LOCAL_WRITE, &srq->mr);
	if (err != 0)
		goto err_number;
	link_srq(drv, srq);
	err = enable_srq(drv, srq, request, jfr);
	if (err != 0)
		goto err_unlink;
	*srqn = srq->srqn;
	return 0;

err_unlink:
	unlink_srq(drv, srq);
	driver_mr_destroy(drv, srq->mr, true);
err_number:
	driver_ids_give(&drv->srq_ids, HCA_QPN_INDEX(srq->srqn, drv->config.log_num_srqs));
err_free:
	free(srq);
	return err;
}

int
driver_op_create_srq(struct hca_client *client, const struct hca_ctl_srq *request, uint32_t *srqn)
{
	return create_srq(client, request, NULL, srqn);
}

int
driver_op_create_jfr(struct hca_client *client, const struct hca_ctl_jfr *request, uint32_t *srqn)
{
	if (!driver_has_cap(client->drv, HCA_CAP_UB))
		return driver_fail(-EOPNOTSUPP, "the device does not speak UB");
	if ((request->flags & ~HCA_CTL_TC_TOKEN) != 0 ||
	    request->min_rnr_timer > HCA_UB_RNR_TIMER_MAX)
		return driver_fail(-EINVAL, "a JFR with flags %#x and RNR timer %u", request->flags,
				   request->min_rnr_timer);
	return create_srq(client, &request->srq, request, srqn);
}

int
driver_srq_release(struct hca_driver *drv, struct driver_srq *srq, bool force)
{
	int err = driver_take_back(drv, srq->owner, HCA_CMD_HW2SW_SRQ, 0, srq->srqn);

	if (err != 0 && !force)
		return err;
	if (srq->jfr)
		driver_known_forget(drv, srq->owner, HCA_TC_JFR | srq->srqn);
	unlink_srq(drv, srq);
	driver_mr_destroy(drv, srq->mr, true);
	driver_ids_give(&drv->srq_ids, HCA_QPN_INDEX(srq->srqn, drv->config.log_num_srqs));
	free(srq);
	return 0;
}

int
driver_op_arm_srq(struct hca_client *client, const struct hca_ctl_arm *request,
		  struct hca_ctl_none *none)
{
	if (driver_srq_of(client, request->srqn) == NULL)
		return driver_fail(-EINVAL, "SRQ %#x does not exist", request->srqn);
	return driver_command_bare(client->drv, HCA_CMD_ARM_SRQ, 0, request->srqn, request->limit);
}

int
driver_op_query_srq(struct hca_client *client, const uint32_t *srqn,
		    struct hca_ctl_srq_state *answer)
{
	const struct hca_srqc *c = client->drv->mailbox_out;
	int err;

	if (driver_srq_of(client, *srqn) == NULL)
		return driver_fail(-EINVAL, "SRQ %#x does not exist", *srqn);
	err = driver_command_out(client->drv, HCA_CMD_QUERY_SRQ, *srqn);
	if (err != 0)
		return err;
	answer->limit = hca_be32_to_cpu(c->limit);
	answer->error = HCA_SRQC_STATE(hca_be32_to_cpu(c->flags)) == HCA_SRQC_STATE_ERR;
	return 0;
}

int
driver_op_destroy_srq(struct hca_client *client, const uint32_t *srqn, struct hca_ctl_none *none)
{
	struct driver_srq *srq = driver_srq_of(client, *srqn);

	if (srq == NULL)
		return driver_fail(-EINVAL, "SRQ %#x does not exist", *srqn);
	if (srq->users != 0)
		return driver_fail(-EBUSY, "%u QPs use the SRQ: destroy them first", srq->users);
	return driver_srq_release(client->drv, srq, false);
}
