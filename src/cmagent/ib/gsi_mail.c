/* SPDX-License-Identifier: BSD-3-Clause */

#include <string.h>

#include "abi_cmd.h"
#include "abi_ctx.h"
#include "abi_qp_attr.h"
#include "abi_service.h"
#include "abi_wqe.h"
#include "gsi_mail.h"

#define LOG_SENDS 7u
#define LOG_RECEIVES 9u

static int
modify(struct cmagent_mail *m, uint32_t opcode, enum hca_qp_state to, uint32_t mask)
{
	struct hca_ctl_modify request = {.qpn = m->qpn, .opcode = opcode, .has_mailbox = 1};
	struct hca_qpc *qpc = &request.mailbox;

	qpc->opt_param_mask = hca_cpu_to_be32(mask | HCA_QP_ATTR_STATE);
	qpc->flags = hca_cpu_to_be32(HCA_QPC_MAKE_FLAGS(to, HCA_ST_UD, HCA_MIG_MIGRATED, 0));
	qpc->sizes = hca_cpu_to_be32(HCA_QPC_MAKE_SIZES(HCA_MTU_MAX, HCA_MAX_MSG_LOG, 0, 0));
	qpc->path.port_pkey = hca_cpu_to_be32(HCA_QPC_MAKE_PORT_PKEY(1, 0));
	qpc->qkey = hca_cpu_to_be32(HCA_QKEY_GSI);
	return CMAGENT_MAIL_CALL(m, MODIFY_QP, &request, NULL, NULL);
}

static int
gsi_open(struct cmagent_mail *m, uint32_t pdn)
{
	struct hca_ctl_qp qp = cmagent_mail_queues(m, HCA_ST_UD, pdn);
	int err;

	qp.source = HCA_QPN_GSI;
	err = CMAGENT_MAIL_CALL(m, CREATE_QP, &qp, &m->qpn, NULL);
	if (err == 0)
		err = modify(m, HCA_CMD_RST2INIT_QPEE, HCA_QPS_INIT,
			     HCA_QP_ATTR_PKEY_INDEX | HCA_QP_ATTR_PORT | HCA_QP_ATTR_QKEY);
	if (err == 0)
		err = modify(m, HCA_CMD_INIT2RTR_QPEE, HCA_QPS_RTR, 0);
	if (err == 0)
		err = modify(m, HCA_CMD_RTR2RTS_QPEE, HCA_QPS_RTS, HCA_QP_ATTR_SQ_PSN);
	return err;
}

void
gsi_mail_recover(struct cmagent_mail *m)
{
	if (!m->refused || m->sq_head != m->sq_tail)
		return;
	m->refused = false;
	(void)modify(m, HCA_CMD_SQERR2RTS_QPEE, HCA_QPS_RTS, 0);
}

static void
gsi_address(void *units, const struct cmagent_mail_to *to)
{
	struct hca_ud_unit *unit = units;

	cmagent_mail_ud(unit, to);
	unit->dqpn = hca_cpu_to_le32(HCA_QPN_GSI);
	unit->qkey = hca_cpu_to_le32(HCA_QKEY_GSI);
}

static bool
gsi_refused(const void *cqe)
{
	return ((const struct hca_cqe *)cqe)->opcode == HCA_CQE_OP_ERR_SEND;
}

static bool
gsi_receive(const void *entry, uint32_t *wqe, uint32_t *bytes, struct cmagent_mail_letter *l)
{
	const struct hca_cqe *cqe = entry;
	const struct hca_cqe_more *more = (const void *)(cqe + 1);

	*wqe = hca_le32_to_cpu(cqe->wqe);
	*bytes = hca_le32_to_cpu(cqe->byte_cnt);
	l->from_qpn = hca_le32_to_cpu(cqe->rqpn);
	l->vlan = hca_le16_to_cpu(more->vlan);
	memcpy(l->mac, more->smac, sizeof(l->mac));
	return cqe->opcode != HCA_CQE_OP_ERR_RECV;
}

static const struct cmagent_mail_form gsi_form = {
	.to_bytes = sizeof(struct hca_ud_unit),
	.cq_flags = HCA_CTL_CQ_LARGE,
	.host = true,
	.open = gsi_open,
	.address = gsi_address,
	.refused = gsi_refused,
	.receive = gsi_receive,
};

int
gsi_mail_open(struct cmagent_mail *m, struct hca_driver *drv, bool events)
{
	return cmagent_mail_open(m,
				 &(struct cmagent_mail_config){
					 .form = &gsi_form,
					 .drv = drv,
					 .events = events,
					 .log_sends = LOG_SENDS,
					 .log_receives = LOG_RECEIVES,
					 .send_bytes = GSI_MAIL_BYTES,
					 .receive_bytes = CMAGENT_MAIL_ADDRESSES + GSI_MAIL_BYTES,
				 });
}
