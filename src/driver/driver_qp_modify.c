/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * MODIFY_QP for clients: in a client's mailbox, all fields that name resources are replaced by
 * values from the driver's tables.
 */

#include <errno.h>
#include <string.h>

#include "abi_qp_attr.h"
#include "abi_service.h"
#include "driver_types.h"

void
driver_qp_fill(const struct driver_qp *qp, struct hca_qpc *qpc)
{
	uint32_t flags = hca_be32_to_cpu(qpc->flags);
	uint32_t sizes = hca_be32_to_cpu(qpc->sizes) & (HCA_MASK(31, 29) | HCA_MASK(28, 24));
	uint32_t page = qp->shared ? DRIVER_DOMAIN : qp->owner->uar;

	qpc->flags = hca_cpu_to_be32(
		HCA_QPC_MAKE_FLAGS(HCA_QPC_STATE(flags), qp->service, HCA_QPC_MIG(flags), 0) |
		(qp->owner->privileged && !qp->shared ? HCA_QPC_PRIVILEGED : 0) |
		(qp->no_own_group ? HCA_QPC_NO_OWN_GROUP : 0));
	qpc->sizes = hca_cpu_to_be32(
		sizes | HCA_QPC_MAKE_SIZES(0, 0, qp->log_rq_stride, qp->log_sq_stride));
	qpc->usr_page = hca_cpu_to_be32(page);
	qpc->local_qpn = hca_cpu_to_be32(qp->qpn);
	if (qp->service == HCA_ST_UD)
		qpc->remote_qpn = hca_cpu_to_be32(qp->source_qpn);
	qpc->srqn = hca_cpu_to_be32(qp->srq != NULL ? HCA_QPC_SRQ_VALID | qp->srq->srqn : 0);
	qpc->pd = hca_cpu_to_be32(qp->pd != NULL ? qp->pd->pdn : HCA_PD_MAKE(0, page));
	qpc->wqe_lkey = 0;
	qpc->xrcd = hca_cpu_to_be32(qp->xrcd != NULL ? qp->xrcd->number : 0);
	qpc->cqn_snd = hca_cpu_to_be32(qp->send_cq != NULL ? qp->send_cq->cqn : 0);
	qpc->snd_wqe_base_l = hca_cpu_to_be32(qp->sq_mr != NULL ? qp->sq_mr->key : 0);
	qpc->snd_wqe_len = hca_cpu_to_be32(qp->sq_bytes);
	qpc->cqn_rcv = hca_cpu_to_be32(qp->recv_cq != NULL ? qp->recv_cq->cqn : 0);
	qpc->rcv_wqe_base_l = hca_cpu_to_be32(qp->rq_mr != NULL ? qp->rq_mr->key : 0);
	qpc->rcv_wqe_len = hca_cpu_to_be32(qp->rq_bytes);
}

static bool
is_modify(uint32_t opcode)
{
	switch (opcode) {
#define MODIFY_CASE(name, op, in_len, out_len, cmd_flags, caps) \
	case op: \
		return ((cmd_flags)&HCA_CMDF_MODIFY_QP) != 0;
		HCA_CMD_LIST(MODIFY_CASE)
#undef MODIFY_CASE
	default:
		return false;
	}
}

/* The QP is in RESET: it does not exist in the device any more. */
static void
in_reset(struct driver_qp *qp)
{
	qp->live = false;
	driver_mcast_forget(qp);
}

static int
modify_bare(struct hca_driver *drv, struct driver_qp *qp, uint32_t opcode)
{
	int err;

	if (opcode != HCA_CMD_ERR2RST_QPEE && opcode != HCA_CMD_2ERR_QPEE)
		return driver_fail(-EINVAL, "the transition needs attributes");
	if (!qp->live && opcode == HCA_CMD_ERR2RST_QPEE)
		return 0; /* is in RESET */
	err = driver_command_bare(drv, opcode, HCA_MODIFY_QP_NO_INBOX, qp->qpn, 0);
	if (err == 0 && opcode == HCA_CMD_ERR2RST_QPEE)
		in_reset(qp);
	return err;
}

/* A MODIFY_QP of a client: checked and sent from one copy. */
struct modify {
	struct hca_qpc qpc;
	struct driver_answer path, alt_path; /* resolved MAC addresses */
};

static bool
sets(const struct hca_qpc *qpc, uint32_t attr)
{
	return (hca_be32_to_cpu(qpc->opt_param_mask) & attr) != 0;
}

/* Resolve addresses that need it; the lock is held, and released while config.resolve is asked. */
static void
resolve_paths(struct hca_driver *drv, struct modify *m)
{
	if (sets(&m->qpc, HCA_QP_ATTR_AV))
		driver_ask_path(drv, &m->qpc.path, &m->path);
	if (sets(&m->qpc, HCA_QP_ATTR_ALT_PATH))
		driver_ask_path(drv, &m->qpc.alt_path, &m->alt_path);
}

/* Record a reason that the device's status does not tell */
static int
explain(const struct driver_qp *qp, uint32_t opcode, const struct hca_qpc *qpc, int err)
{
	bool controlled = (hca_be32_to_cpu(qpc->qkey) & HCA_QKEY_CONTROLLED) != 0;

	if (err == -EINVAL && sets(qpc, HCA_QP_ATTR_QKEY) && controlled && !qp->owner->privileged)
		return driver_fail(-EACCES,
				   "Q_Key %#x: those with the top bit are for privileged "
				   "users (root, [control] privileged_users)",
				   hca_be32_to_cpu(qpc->qkey));
	if (err == -ENOMEM && opcode == HCA_CMD_RST2INIT_QPEE)
		return driver_fail(err, "the device has no memory, or no request records, for one "
					"more QP (two of each kind are every QP's own)");
	return err;
}

static int
modify_with(struct hca_driver *drv, struct driver_qp *qp, uint32_t opcode, struct modify *m)
{
	int err = 0;

	driver_qp_fill(qp, &m->qpc);
	if (sets(&m->qpc, HCA_QP_ATTR_AV) && qp->service != HCA_ST_UD)
		err = driver_resolve_path(drv, &m->qpc.path, &m->path);
	if (err == 0 && sets(&m->qpc, HCA_QP_ATTR_ALT_PATH))
		err = driver_resolve_path(drv, &m->qpc.alt_path, &m->alt_path);
	if (err != 0)
		return err;
	memcpy(driver_mailbox(drv), &m->qpc, sizeof(m->qpc));
	err = driver_command_in(drv, opcode, qp->qpn);
	if (err != 0)
		return explain(qp, opcode, &m->qpc, err);
	if (opcode == HCA_CMD_RST2INIT_QPEE)
		qp->live = true;
	if (opcode == HCA_CMD_ERR2RST_QPEE)
		in_reset(qp);
	return 0;
}

int
driver_op_modify_qp(struct hca_client *client, const struct hca_ctl_modify *request,
		    struct hca_ctl_none *none)
{
	struct hca_driver *drv = client->drv;
	struct driver_qp *qp;
	struct modify m;

	if (request->has_mailbox != 0) {
		m.qpc = request->mailbox;
		resolve_paths(drv, &m);
	}
	qp = driver_qp_of(client, request->qpn);
	if (qp == NULL)
		return driver_fail(-EINVAL, "QP %#x does not exist", request->qpn);
	if (hca_service_is_ub(qp->service))
		return driver_fail(-EINVAL, "%#x is a Jetty", request->qpn);
	if (!is_modify(request->opcode))
		return driver_fail(-EINVAL, "command %#x modifies no QP", request->opcode);
	if (request->has_mailbox == 0)
		return modify_bare(drv, qp, request->opcode);
	return modify_with(drv, qp, request->opcode, &m);
}
