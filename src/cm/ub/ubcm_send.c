/* SPDX-License-Identifier: BSD-3-Clause */

#include "ubcm_impl.h"

static void
send_message(struct ubcm *cm, struct ubcm_msg *m, const uint8_t *own, const uint8_t *peer)
{
	uint8_t bytes[UBCM_MSG_MAX];

	memcpy(m->source, own, sizeof(m->source));
	memcpy(m->destination, peer, sizeof(m->destination));
	cm->counters.sent[m->type]++;
	cm->cfg.ops->send(cm->cfg.arg, own, peer, bytes, ubcm_msg_build(m, bytes));
}

/* An RTU has the TPs of the peer, which prove that its REP was seen; the others have our own. */
static void
fill_tps(struct ubcm_msg *m, const struct ubcm_link *l)
{
	bool theirs = m->type == UBCM_RTU;

	m->ntps = l->ntps;
	for (uint32_t i = 0; i < l->ntps; i++)
		m->tp[i] = (struct ubcm_msg_tp){
			.tpn = theirs ? l->tp[i].peer_tpn : l->tp[i].tpn,
			.psn = theirs ? l->tp[i].epsn : l->tp[i].psn,
			.limits = l->tp[i].limits,
		};
}

void
ubcm_send(struct ubcm *cm, const struct ubcm_link *l, enum ubcm_type type, enum ubcm_status status)
{
	struct ubcm_msg m = {
		.type = (uint8_t)type,
		.status = (uint16_t)status,
		.transaction = type == UBCM_DISC ? l->disc : l->transaction,
		.timer = l->timer,
		.has_cookie = l->has_cookie,
		.cookie = l->cookie,
	};

	fill_tps(&m, l);
	send_message(cm, &m, l->own, l->peer);
}

void
ubcm_send_bare(struct ubcm *cm, const uint8_t *own, const uint8_t *peer, enum ubcm_type type,
	       enum ubcm_status status, uint64_t transaction)
{
	struct ubcm_msg m = {
		.type = (uint8_t)type,
		.status = (uint16_t)status,
		.transaction = transaction,
	};

	send_message(cm, &m, own, peer);
}

void
ubcm_send_retry(struct ubcm *cm, const uint8_t *own, const uint8_t *peer, uint64_t transaction,
		uint64_t cookie)
{
	struct ubcm_msg m = {
		.type = UBCM_RETRY,
		.transaction = transaction,
		.has_cookie = true,
		.cookie = cookie,
	};

	send_message(cm, &m, own, peer);
}
