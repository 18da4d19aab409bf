/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Connection management: the operations of clients go to the connection manager of the host
 * (hca_driver_set_cm()), which has their ids; it gets the GID table and the end of clients from
 * here, and its events leave through the pipes of the clients' channels.
 */

#include <errno.h>

#include "abi_service.h"
#include "driver_types.h"

/* ---- QP 1 ---- */

static const struct driver_qp *
gsi_qp(const struct hca_driver *drv, uint32_t qpn)
{
	const struct driver_qp *qp = drv->qps[HCA_QPN_INDEX(qpn, drv->config.log_num_qps)];

	return qp != NULL && qp->qpn == qpn ? qp : NULL;
}

static int
gsi_judge(const struct hca_driver *drv, uint32_t qpn)
{
	const struct driver_qp *qp = gsi_qp(drv, qpn);

	if (qp == NULL)
		return driver_fail(-EINVAL, "QP %#x does not exist", qpn);
	if (qp->service != HCA_ST_UD || !qp->owner->privileged || !qp->live ||
	    qp->source_qpn != HCA_QPN_GSI)
		return driver_fail(-EINVAL,
				   "QP %#x cannot be QP 1: it is not a live UD QP of the host with "
				   "source QPN 1",
				   qpn);
	if (qpn != drv->gsi_qpn && gsi_qp(drv, drv->gsi_qpn) != NULL)
		return driver_fail(-EBUSY, "QP 1 is QP %#x", drv->gsi_qpn);
	return 0;
}

int
hca_driver_set_gsi(struct hca_driver *drv, uint32_t qpn)
{
	int err;

	driver_lock_take(&drv->lock);
	err = qpn != 0 ? gsi_judge(drv, qpn) : 0;
	if (err == 0)
		err = driver_command_bare(drv, HCA_CMD_CONF_SPECIAL_QP, HCA_CONF_SPECIAL_GSI, qpn,
					  0);
	if (err == 0)
		drv->gsi_qpn = qpn;
	driver_lock_give(&drv->lock);
	return err;
}

/* ---- connection management ---- */

static void
cm_tell_gid(struct hca_driver *drv, uint32_t index)
{
	struct hca_ctl_gid gid;

	if (drv->cm == NULL || hca_driver_gid_entries(drv) <= index)
		return;
	(void)driver_query_gid(drv, index, &gid);
	drv->cm->gid(drv->cm_arg, index, &gid);
}

void
hca_driver_set_cm(struct hca_driver *drv, const struct hca_driver_cm *cm, void *arg)
{
	driver_lock_take(&drv->lock);
	drv->cm = cm;
	drv->cm_arg = arg;
	for (uint32_t i = 0; i < hca_driver_gid_entries(drv); i++)
		cm_tell_gid(drv, i);
	driver_lock_give(&drv->lock);
}

void
driver_cm_gid(struct hca_driver *drv, uint32_t index)
{
	cm_tell_gid(drv, index);
}

void
driver_cm_forget(struct hca_client *client)
{
	struct hca_driver *drv = client->drv;

	if (drv->cm != NULL)
		drv->cm->forget(drv->cm_arg, client->uar);
}

void
driver_cm_channel(struct hca_client *client, uint32_t channel)
{
	struct hca_driver *drv = client->drv;

	if (drv->cm != NULL)
		drv->cm->channel(drv->cm_arg, client->uar, channel);
}

const char *
hca_driver_cm_counter(struct hca_driver *drv, uint32_t i, uint64_t *value)
{
	const char *name = NULL;

	driver_lock_take(&drv->lock);
	if (drv->cm != NULL)
		name = drv->cm->counter(drv->cm_arg, i, value);
	driver_lock_give(&drv->lock);
	return name;
}

static bool
cm_has_channel(const struct hca_client *client, uint32_t channel)
{
	return channel != 0 && channel < client->num_channels &&
	       client->channels[channel].write_fd >= 0;
}

static int
cm_call(struct hca_client *client, enum hca_ctl_op op, const void *request, void *answer)
{
	struct hca_driver *drv = client->drv;
	const char *why = "";
	int err;

	if (drv->cm == NULL)
		return driver_fail(-EOPNOTSUPP, "this HCA has no connection manager");
	err = drv->cm->call(drv->cm_arg, &(struct hca_driver_cm_caller){client->uar, client->user},
			    op, request, answer, &why);
	return err == 0 ? 0 : driver_fail(err, "%s", why);
}

static int
cm_judge_channel(const struct hca_client *client, uint32_t channel)
{
	return cm_has_channel(client, channel)
		       ? 0
		       : driver_fail(-EINVAL, "channel %u does not exist", channel);
}

int
driver_op_cm_create(struct hca_client *client, const struct hca_ctl_cm_create *request,
		    uint32_t *id)
{
	int err = cm_judge_channel(client, request->channel);

	return err != 0 ? err : cm_call(client, HCA_CTL_CM_CREATE, request, id);
}

int
driver_op_cm_move(struct hca_client *client, const struct hca_ctl_cm_move *request,
		  struct hca_ctl_none *none)
{
	int err = cm_judge_channel(client, request->channel);

	return err != 0 ? err : cm_call(client, HCA_CTL_CM_MOVE, request, none);
}

/* The connection manager judges all that these name. */
#define CM_OP(NAME, name, request_type, answer_type) \
	int driver_op_cm_##name(struct hca_client *client, const request_type *request, \
				answer_type *answer) \
	{ \
		return cm_call(client, HCA_CTL_CM_##NAME, request, answer); \
	}

CM_OP(DESTROY, destroy, uint32_t, struct hca_ctl_none)
CM_OP(BIND, bind, struct hca_ctl_cm_bind, struct hca_ctl_cm_bound)
CM_OP(RESOLVE, resolve, struct hca_ctl_cm_resolve, struct hca_ctl_none)
CM_OP(ROUTE, route, struct hca_ctl_cm_route, struct hca_ctl_none)
CM_OP(LISTEN, listen, struct hca_ctl_cm_listen, struct hca_ctl_none)
CM_OP(CONNECT, connect, struct hca_ctl_cm_param, struct hca_ctl_none)
CM_OP(ACCEPT, accept, struct hca_ctl_cm_param, struct hca_ctl_none)
CM_OP(REJECT, reject, struct hca_ctl_cm_reject, struct hca_ctl_none)
CM_OP(DISCONNECT, disconnect, uint32_t, struct hca_ctl_none)
CM_OP(NOTIFY, notify, struct hca_ctl_cm_notify, struct hca_ctl_none)
CM_OP(OPTION, option, struct hca_ctl_cm_option, struct hca_ctl_none)
CM_OP(QUERY, query, uint32_t, struct hca_ctl_cm_info)
CM_OP(QP_ATTR, qp_attr, struct hca_ctl_cm_ask, struct hca_ctl_cm_attr)
CM_OP(JOIN, join, struct hca_ctl_cm_join, uint32_t)
CM_OP(LEAVE, leave, uint32_t, struct hca_ctl_none)
CM_OP(EVENT, event, uint32_t, struct hca_ctl_cm_event)
