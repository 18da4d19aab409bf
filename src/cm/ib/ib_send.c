/* SPDX-License-Identifier: BSD-3-Clause */

/* Messages that are sent once, and the count of all. */

#include <string.h>

#include "ib_impl.h"

/* Time that an MRA asks for: 68.7 s, as in Linux */
#define SEND_MRA_TIMEOUT 24u

void
ib_send_bytes(struct ibcm *cm, const struct ibcm_way *way, enum ib_mad_type type,
	      const uint8_t mad[IBCM_MAD_BYTES])
{
	cm->counters.sent[type]++;
	cm->cfg.ops->send(cm->cfg.arg, way, mad);
}

void
ib_send(struct ibcm *cm, const struct ibcm_way *way, const struct ib_mad *mad)
{
	uint8_t bytes[IBCM_MAD_BYTES];

	ib_mad_build(mad, bytes);
	ib_send_bytes(cm, way, mad->type, bytes);
}

void
ib_send_rtu(struct ibcm *cm, const struct ib_id *id)
{
	struct ib_mad mad = {
		.type = IB_MAD_RTU,
		.transaction = id->c.transaction,
		.rtu = {.local_comm = id->c.local_comm, .remote_comm = id->c.remote_comm},
	};

	ib_send(cm, &id->way, &mad);
}

void
ib_send_mra(struct ibcm *cm, struct ib_id *id)
{
	struct ib_mad mad = {
		.type = IB_MAD_MRA,
		.transaction = id->c.transaction,
		.mra = {.local_comm = id->c.local_comm,
			.remote_comm = id->c.remote_comm,
			.message = id->phase == IB_PHASE_REQ_RCVD ? IB_MAD_OF_REQ : IB_MAD_OF_REP,
			.service_timeout = SEND_MRA_TIMEOUT},
	};

	id->c.mra_sent = true;
	ib_send(cm, &id->way, &mad);
}

void
ib_send_drep(struct ibcm *cm, const struct ibcm_way *way, uint64_t transaction, uint32_t local_comm,
	     uint32_t remote_comm)
{
	struct ib_mad mad = {
		.type = IB_MAD_DREP,
		.transaction = transaction,
		.drep = {.local_comm = local_comm, .remote_comm = remote_comm},
	};

	ib_send(cm, way, &mad);
}

static void
send_rej_counted(struct ibcm *cm, const struct ibcm_way *way, const struct ib_mad *mad)
{
	cm->counters.rejected[mad->rej.reason < IB_MAD_REASONS ? mad->rej.reason : 0]++;
	ib_send(cm, way, mad);
}

void
ib_send_rej(struct ibcm *cm, struct ib_id *id, uint16_t reason, const void *private, uint32_t len)
{
	struct ib_mad mad = {
		.type = IB_MAD_REJ,
		.transaction = id->c.transaction,
		.rej = {.local_comm = id->c.local_comm,
			.remote_comm = id->c.remote_comm,
			.message = id->phase == IB_PHASE_REQ_RCVD   ? IB_MAD_OF_REQ
				   : id->phase == IB_PHASE_REP_RCVD ? IB_MAD_OF_REP
								    : IB_MAD_OF_OTHER,
			.reason = reason},
	};

	/* the peer has seen the number of this end in an MRA only */
	if (id->phase == IB_PHASE_REQ_RCVD && !id->c.mra_sent)
		mad.rej.local_comm = 0;
	if (len > 0)
		memcpy(mad.rej.private, private, len);
	ib_mad_build(&mad, id->c.mad);
	send_rej_counted(cm, &id->way, &mad);
}

void
ib_send_rej_timeout(struct ibcm *cm, const struct ib_id *id)
{
	struct ib_mad mad = {
		.type = IB_MAD_REJ,
		.transaction = id->c.transaction,
		.rej = {.local_comm = id->c.local_comm,
			.remote_comm = id->c.remote_comm,
			.message = IB_MAD_OF_OTHER,
			.reason = IB_MAD_REASON_TIMEOUT,
			.info_len = 8},
	};

	hca_put_be64(mad.rej.info, cm->cfg.node_guid);
	send_rej_counted(cm, &id->way, &mad);
}

void
ib_send_rej_of(struct ibcm *cm, const struct ibcm_way *way, uint64_t transaction,
	       uint32_t local_comm, uint32_t remote_comm, enum ib_mad_message message,
	       uint16_t reason, const void *info, uint32_t info_len)
{
	struct ib_mad mad = {
		.type = IB_MAD_REJ,
		.transaction = transaction,
		.rej = {.local_comm = local_comm,
			.remote_comm = remote_comm,
			.message = (uint8_t)message,
			.reason = reason,
			.info_len = (uint8_t)info_len},
	};

	if (info_len > 0)
		memcpy(mad.rej.info, info, info_len);
	send_rej_counted(cm, way, &mad);
}
