/* SPDX-License-Identifier: BSD-3-Clause */

/* Messages are unreliable sends from Jetty 0 to that of the peer. */

#include "abi_service.h"
#include "abi_tp.h"
#include "abi_ub.h"
#include "ubagent_impl.h"

#define LOG_SENDS 6u
#define LOG_RECEIVES 7u
#define RECEIVE_BYTES 1088u
#define JETTY_0 0u

struct peer_units {
	struct hca_ub_unit ub;
	struct hca_ud_unit ud;
};

static int
jetty_open(struct cmagent_mail *m, uint32_t pdn)
{
	struct hca_ctl_jetty jetty = {.qp = cmagent_mail_queues(m, HCA_ST_JETTY, pdn)};
	struct hca_ctl_known known = {.id = JETTY_0};
	int err = CMAGENT_MAIL_CALL(m, CREATE_JETTY, &jetty, &m->qpn, NULL);

	known.tc = m->qpn;
	return err != 0 ? err : CMAGENT_MAIL_CALL(m, NAME_TC, &known, NULL, NULL);
}

static void
jetty_address(void *units, const struct cmagent_mail_to *to)
{
	struct peer_units *peer = units;

	peer->ub.number = hca_cpu_to_le32(HCA_UB_MAKE_NUMBER(HCA_UB_TO_ADDRESS, 0));
	peer->ub.tc = hca_cpu_to_le32(HCA_UB_MAKE_TC(JETTY_0, HCA_UB_TC_ONE, 0));
	cmagent_mail_ud(&peer->ud, to);
}

static bool
jetty_refused(const void *cqe)
{
	return ((const struct hca_cqe_ub *)cqe)->status != HCA_UB_STATUS_OK;
}

/*
 * A message over a channel is not one of channel set-up. Neither is one with an immediate: the
 * immediate takes the place of the frame's MAC address, so its sender could name any station.
 */
static bool
jetty_receive(const void *entry, uint32_t *wqe, uint32_t *bytes, struct cmagent_mail_letter *l)
{
	const struct hca_cqe_ub *cqe = entry;

	*wqe = hca_le32_to_cpu(cqe->wqe);
	*bytes = hca_le32_to_cpu(cqe->bytes);
	for (uint32_t i = 0; i < sizeof(l->mac); i++)
		l->mac[i] = (uint8_t)(hca_le64_to_cpu(cqe->imm) >> (40 - 8 * i));
	return cqe->status == HCA_UB_STATUS_OK && cqe->opcode == HCA_UB_TA_SEND &&
	       hca_le32_to_cpu(cqe->tpn) == 0;
}

static const struct cmagent_mail_form jetty_form = {
	.to_bytes = sizeof(struct peer_units),
	.open = jetty_open,
	.address = jetty_address,
	.refused = jetty_refused,
	.receive = jetty_receive,
};

int
ubagent_mail_open(struct ubagent *a)
{
	return cmagent_mail_open(&a->mail, &(struct cmagent_mail_config){
						   .form = &jetty_form,
						   .drv = a->cfg.drv,
						   .events = a->cfg.thread,
						   .log_sends = LOG_SENDS,
						   .log_receives = LOG_RECEIVES,
						   .send_bytes = UBCM_MSG_MAX,
						   .receive_bytes = RECEIVE_BYTES,
					   });
}
