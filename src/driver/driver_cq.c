/* SPDX-License-Identifier: BSD-3-Clause */

/* Completion queues, tables 3-2-31 .. 3-2-35. */

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "driver_types.h"

struct driver_cq *
driver_cq_of(struct hca_client *client, uint32_t cqn)
{
	struct driver_cq *cq = cqn < client->drv->cq_ids.count ? client->drv->cqs[cqn] : NULL;

	return cq != NULL && cq->owner == client ? cq : NULL;
}

static uint32_t
vector_eqn(uint32_t vector)
{
	return vector == 0 ? EQ_COMP : EQ_MORE + vector - 1;
}

static int
check_cq(const struct hca_client *client, const struct hca_ctl_cq *request)
{
	const struct hca_driver *drv = client->drv;
	uint32_t max_log = HCA_LIM_CQ_SZ_LOG(hca_be32_to_cpu(drv->lim.max_sz));
	uint32_t channel = request->channel;

	if (request->log_size > max_log)
		return driver_fail(-EINVAL, "a CQ of 2^%u entries: at most 2^%u", request->log_size,
				   max_log);
	if ((request->flags & ~HCA_CTL_CQ_FLAGS) != 0)
		return driver_fail(-EINVAL, "CQ flags %#x are not known", request->flags);
	if ((request->flags & (HCA_CTL_CQ_LARGE | HCA_CTL_CQ_WALL)) == HCA_CTL_CQ_WALL)
		return driver_fail(-EINVAL, "CQEs with the time of day must be large ones");
	if (vector_eqn(request->vector) >= drv->num_eqs)
		return driver_fail(-EINVAL, "completion vector %u: the device has %u",
				   request->vector, drv->num_eqs - 1);
	if (channel != HCA_CTL_NO_CHANNEL && (channel == 0 || channel >= client->num_channels ||
					      client->channels[channel].write_fd < 0))
		return driver_fail(-EINVAL, "channel %u does not exist", channel);
	return driver_quota(client, DRIVER_CQS, 1);
}

static uint32_t
device_flags(uint32_t requested)
{
	return HCA_CQ_FLAG_TR |
	       ((requested & HCA_CTL_CQ_IGNORE_OVERRUN) != 0 ? HCA_CQ_FLAG_OI : 0) |
	       ((requested & HCA_CTL_CQ_LARGE) != 0 ? HCA_CQ_FLAG_LARGE : 0) |
	       ((requested & HCA_CTL_CQ_WALL) != 0 ? HCA_CQ_FLAG_WALL : 0);
}

/* Bytes of the CQEs of a CQ; its record follows them. */
static uint32_t
cqe_bytes(const struct driver_cq *cq, uint32_t log_size)
{
	return HCA_CTL_CQE_SIZE(cq->flags) << log_size;
}

static int
enable_cq(struct hca_driver *drv, const struct driver_cq *cq, const struct hca_ctl_cq *request)
{
	uint32_t record = cqe_bytes(cq, request->log_size);
	struct hca_cqc *cqc = driver_mailbox(drv);
	uint32_t uar = cq->owner->uar;

	cqc->flags = hca_cpu_to_be32(device_flags(request->flags));
	hca_cqc_set_start(cqc, request->addr);
	cqc->logsize_usrpage = hca_cpu_to_be32(HCA_CQC_MAKE_LOGSIZE(request->log_size, uar));
	cqc->comp_eqn = hca_cpu_to_be32(vector_eqn(request->vector));
	cqc->pd = hca_cpu_to_be32(cq->mr->pdn);
	cqc->lkey = hca_cpu_to_be32(cq->mr->key);
	cqc->cqn = hca_cpu_to_be32(cq->cqn);
	cqc->ci_db = hca_cpu_to_be32(record + offsetof(struct hca_cq_record, consumer));
	cqc->state_db = hca_cpu_to_be32(record + offsetof(struct hca_cq_record, arm));
	return driver_command_in(drv, HCA_CMD_SW2HW_CQ, cq->cqn);
}

static void
link_cq(struct hca_driver *drv, struct driver_cq *cq)
{
	struct hca_client *client = cq->owner;

	pthread_mutex_lock(&drv->event_lock);
	DRIVER_LIST_ADD(client->cqs, cq);
	client->count[DRIVER_CQS]++;
	drv->cqs[cq->cqn] = cq;
	if (cq->channel != HCA_CTL_NO_CHANNEL)
		client->channels[cq->channel].users++;
	pthread_mutex_unlock(&drv->event_lock);
}

static void
unlink_cq(struct hca_driver *drv, struct driver_cq *cq)
{
	struct hca_client *client = cq->owner;

	pthread_mutex_lock(&drv->event_lock);
	driver_eq_drain(drv); /* its events must not go to the next owner of the number */
	driver_eq_forget(client, cq->channel, HCA_EVENT_MASK(HCA_EVENT_COMP), cq->cqn);
	driver_eq_forget(client, 0, DRIVER_CQ_EVENTS, cq->cqn);
	DRIVER_LIST_REMOVE(cq);
	client->count[DRIVER_CQS]--;
	drv->cqs[cq->cqn] = NULL;
	if (cq->owed != 0)
		drv->owed--;
	if (cq->channel != HCA_CTL_NO_CHANNEL)
		client->channels[cq->channel].users--;
	pthread_mutex_unlock(&drv->event_lock);
}

int
driver_op_create_cq(struct hca_client *client, const struct hca_ctl_cq *request, uint32_t *cqn)
{
	struct hca_driver *drv = client->drv;
	uint64_t bytes;
	struct driver_cq *cq;
	int err = check_cq(client, request);

	if (err != 0)
		return err;
	cq = calloc(1, sizeof(*cq));
	if (cq == NULL)
		return driver_no_memory("a CQ", sizeof(*cq));
	cq->owner = client;
	cq->channel = request->channel;
	cq->tag = request->tag;
	cq->flags = request->flags;
	err = driver_ids_take(&drv->cq_ids, &cq->cqn);
	if (err != 0) {
		driver_all_used(err, "CQs", drv->cq_ids.count - 1, "[limits] log_cqs");
		goto err_free;
	}
	bytes = cqe_bytes(cq, request->log_size) + sizeof(struct hca_cq_record);
	err = driver_icm_need(drv, ICM_CQC, cq->cqn, 1);
	if (err == 0)
		err = driver_mr_queue(drv, client, HCA_PD_MAKE(0, client->uar), request->addr,
				      bytes, HCA_ACCESS_LOCAL_WRITE, &cq->mr);
	if (err != 0)
		goto err_id;
	/* linked first, because the device may raise events as soon as the command is done */
	link_cq(drv, cq);
	err = enable_cq(drv, cq, request);
	if (err != 0)
		goto err_unlink;
	*cqn = cq->cqn;
	return 0;

err_unlink:
	unlink_cq(drv, cq);
	driver_mr_destroy(drv, cq->mr, true);
err_id:
	driver_ids_give(&drv->cq_ids, cq->cqn);
err_free:
	free(cq);
	return err;
}

int
driver_cq_release(struct hca_driver *drv, struct driver_cq *cq, bool force)
{
	int err = driver_take_back(drv, cq->owner, HCA_CMD_HW2SW_CQ, 0, cq->cqn);

	if (err != 0 && !force)
		return err;
	unlink_cq(drv, cq);
	driver_mr_destroy(drv, cq->mr, true);
	driver_ids_give(&drv->cq_ids, cq->cqn);
	free(cq);
	return 0;
}

int
driver_op_destroy_cq(struct hca_client *client, const uint32_t *cqn, struct hca_ctl_none *none)
{
	struct driver_cq *cq = driver_cq_of(client, *cqn);

	if (cq == NULL)
		return driver_fail(-EINVAL, "CQ %#x does not exist", *cqn);
	if (cq->users != 0)
		return driver_fail(-EBUSY, "%u queues complete to the CQ: destroy them first",
				   cq->users);
	return driver_cq_release(client->drv, cq, false);
}

static int
resize_cq(struct hca_driver *drv, struct driver_cq *cq, uint64_t addr, uint32_t log_size,
	  uint32_t *index)
{
	struct driver_cmd cmd = {.op = HCA_CMD_RESIZE_CQ, .in_modifier = cq->cqn};
	struct hca_mbox_resize_cq *m;
	struct driver_mr *mr;
	uint32_t record;
	int err;

	if (log_size > HCA_LIM_CQ_SZ_LOG(hca_be32_to_cpu(drv->lim.max_sz)))
		return driver_fail(-EINVAL, "a CQ of 2^%u entries: at most 2^%u", log_size,
				   HCA_LIM_CQ_SZ_LOG(hca_be32_to_cpu(drv->lim.max_sz)));
	record = cqe_bytes(cq, log_size);
	err = driver_mr_queue(drv, cq->owner, HCA_PD_MAKE(0, cq->owner->uar), addr,
			      record + sizeof(struct hca_cq_record), HCA_ACCESS_LOCAL_WRITE, &mr);
	if (err != 0)
		return err;
	m = driver_mailbox(drv);
	m->logsize = hca_cpu_to_be32(HCA_RESIZE_CQ_MAKE_LOGSIZE(log_size));
	m->lkey = hca_cpu_to_be32(mr->key);
	m->start = hca_cpu_to_be64(addr);
	m->ci_db = hca_cpu_to_be32(record);
	m->state_db = hca_cpu_to_be32(record + offsetof(struct hca_cq_record, arm));
	cmd.in_param = drv->mailbox_in_bus;
	err = driver_command(drv, &cmd);
	if (err != 0) {
		driver_mr_destroy(drv, mr, true);
		return err;
	}
	driver_mr_destroy(drv, cq->mr, true);
	cq->mr = mr;
	*index = (uint32_t)cmd.out_param;
	return 0;
}

int
driver_op_resize_cq(struct hca_client *client, const struct hca_ctl_resize *request,
		    uint32_t *index)
{
	struct driver_cq *cq = driver_cq_of(client, request->cqn);

	if (cq == NULL)
		return driver_fail(-EINVAL, "CQ %#x does not exist", request->cqn);
	/* the channel has checked the memory of the size that this means */
	if (request->flags != (cq->flags & HCA_CTL_CQ_LARGE))
		return driver_fail(-EINVAL, "CQ %#x has CQEs of another size", request->cqn);
	return resize_cq(client->drv, cq, request->addr, request->log_size, index);
}

int
driver_op_moderate_cq(struct hca_client *client, const struct hca_ctl_moderate *request,
		      struct hca_ctl_none *none)
{
	struct hca_mbox_modify_cq *m;

	if (driver_cq_of(client, request->cqn) == NULL)
		return driver_fail(-EINVAL, "CQ %#x does not exist", request->cqn);
	m = driver_mailbox(client->drv);
	m->moderation = hca_cpu_to_be32(HCA_CQ_MOD_MAKE(request->count, request->period_us));
	return driver_command_in(client->drv, HCA_CMD_MODIFY_CQ, request->cqn);
}
