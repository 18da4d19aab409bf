/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Sends: the first packet, whichever it is, takes a receive; each is placed by its offset. Several
 * may be open at once in a queue.
 */

#include <string.h>

#include "abi_addr.h"
#include "abi_roce.h"
#include "ub/target/ta_target.h"

#define SOURCE_MAC 6 /* offset in a frame */

static bool
has_token(const struct tat_request *q, uint32_t *value)
{
	if (q->v.at->tvetah == 0)
		return false;
	*value = hca_ub_tvetah_token_value(q->tah + q->v.at->tvetah);
	return true;
}

static bool
take_receive(struct tat_request *q)
{
	uint32_t value = 0;
	bool has_value = has_token(q, &value);

	return tat_message_take(q) &&
	       tat_recv_take(q, hca_get_be32(q->tah + q->v.at->mtetah), has_value, value);
}

static void
tat_place_payload(struct tat_request *q)
{
	uint64_t offset =
		(uint64_t)hca_ub_ofstetah_offset(q->tah + q->v.at->ofstetah) * HCA_UB_OFFSET_UNIT;
	struct tat_open *o = q->o;

	if (unlikely(q->len == 0 && offset != 0)) {
		tat_refuse(q, TAT_SUM);
		return;
	}
	if (!tat_recv_place(q, offset, q->payload, q->len))
		return;
	o->bytes += q->len;
	if (!q->last)
		return;
	o->length = (uint32_t)offset + q->len;
	tat_closing_read(q, &q->msg->closing);
}

void
tat_send(struct tat_request *q)
{
	if (q->o->packets == 1 && !take_receive(q))
		return;
	if (likely(tat_recv_is_alive(q->h, q->msg)))
		tat_place_payload(q);
	else
		tat_refuse(q, q->msg->killed);
}

void
tat_send_done(struct tat_request *q)
{
	if (unlikely(q->o->bytes != q->o->length))
		tat_refuse(q, TAT_SUM);
	else
		tat_recv_complete(q, &q->msg->closing, q->o->bytes);
}

void
tat_immediate(struct tat_request *q, const struct tat_closing *c)
{
	if (q->msg == NULL && !tat_message_take(q))
		return;
	if (tat_recv_take(q, c->tc, true, c->token))
		tat_recv_complete(q, c, c->total);
}

/* ---- without TP ---- */

/*
 * The 40 bytes in front of the payload, as receives of UD have them: the IPv6 header, or the IPv4
 * header in the last 20 of them. They overwrite headers that were read already.
 */
static void
put_addresses(struct tat_request *q, const uint8_t *l3)
{
	uint8_t *to = q->payload - HCA_UD_GRH_LEN;

	if (l3[0] >> 4 == 6) {
		memmove(to, l3, HCA_UD_GRH_LEN);
	} else {
		memmove(to + HCA_UD_GRH_LEN - HCA_IPV4_LEN, l3, HCA_IPV4_LEN);
		memset(to, 0, HCA_UD_GRH_LEN - HCA_IPV4_LEN);
	}
	q->payload = to;
	q->len += HCA_UD_GRH_LEN;
}

/*
 * Without an immediate its word says which station has sent the frame: to answer a sender whose
 * address has not been looked up yet.
 */
static uint64_t
data_of_datagram(const struct tat_request *q, const uint8_t *l3, const struct tat_closing *c)
{
	if (q->v.at->immetah != 0)
		return c->data;
	return hca_mac_number(l3 - q->rxd->l3 + SOURCE_MAC);
}

/* A receive is taken only for a datagram that fits it: any host may send longer ones. */
void
tat_datagram(struct tat_request *q)
{
	const uint8_t *l3 = q->tah - q->rxd->ta - (q->rxd->tph - q->rxd->l3);
	struct tat_closing c;

	if (unlikely(hca_ub_ofstetah_offset(q->tah + q->v.at->ofstetah) != 0)) {
		tat_refuse(q, TAT_SUM);
		return;
	}
	q->least = q->len + HCA_UD_GRH_LEN;
	if (!take_receive(q))
		return;
	tat_closing_read(q, &c);
	c.data = data_of_datagram(q, l3, &c);
	put_addresses(q, l3);
	if (tat_recv_place(q, 0, q->payload, q->len))
		tat_recv_complete(q, &c, q->len);
}
