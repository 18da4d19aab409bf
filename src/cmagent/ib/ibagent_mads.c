/* SPDX-License-Identifier: BSD-3-Clause */

/* Management datagrams: those received, within the rates; those that wait to be sent. */

#include <string.h>

#include "abi_addr.h"
#include "abi_ctx.h"
#include "ibagent_impl.h"

#define SECOND UINT64_C(1000000000)
#define RATE 50000u
#define FIRST_RATE 25000u
#define ADDRESS_RATE 20000u
#define BURST_NS (SECOND / 20) /* largest burst, as time at that rate */
#define TURN 256u	       /* receives of a turn */
#define NO_VLAN 0xffffu
#define VLAN_ID_MASK 0xfffu
#define MAD_ATTRIBUTE 16u /* offset of the attribute ID */
#define ATTRIBUTE_REQ 0x10u
#define ATTRIBUTE_SIDR_REQ 0x17u

/* ---- rates ---- */

static struct ibagent_rate
rate_of(uint32_t per_second, uint32_t def)
{
	return (struct ibagent_rate){.every = SECOND / (per_second != 0 ? per_second : def),
				     .burst = BURST_NS};
}

void
ibagent_set_rates(struct ibagent *a)
{
	a->rate = rate_of(a->cfg.rate, RATE);
	a->first_rate = rate_of(a->cfg.first_rate, FIRST_RATE);
	a->address_rate = rate_of(a->cfg.address_rate, ADDRESS_RATE);
}

static bool
bucket_may(const struct ibagent_bucket *b, const struct ibagent_rate *r, uint64_t now)
{
	return b->next <= now + r->burst;
}

static void
bucket_take(struct ibagent_bucket *b, const struct ibagent_rate *r, uint64_t now)
{
	b->next = (b->next > now ? b->next : now) + r->every;
}

static struct ibagent_bucket *
bucket_of(struct ibagent *a, const uint8_t peer[16])
{
	return &a->address[hca_gid_hash(peer, a->hash_key) % IBAGENT_BUCKETS];
}

static bool
is_first(const uint8_t *mad, size_t len)
{
	uint32_t attribute;

	if (len < MAD_ATTRIBUTE + 2)
		return false;
	attribute = hca_get_be16(mad + MAD_ATTRIBUTE);
	return attribute == ATTRIBUTE_REQ || attribute == ATTRIBUTE_SIDR_REQ;
}

/* Whether the datagram is within the rates, which are charged for it. */
static bool
mad_may(struct ibagent *a, const struct cmagent_mail_letter *l, uint64_t now)
{
	struct ibagent_bucket *b = bucket_of(a, l->peer);
	bool first = is_first(l->bytes, l->len);

	if (!bucket_may(b, &a->address_rate, now)) {
		ibagent_count(a, IBAGENT_mads_excess_address);
		return false;
	}
	if (first && !bucket_may(&a->first, &a->first_rate, now)) {
		ibagent_count(a, IBAGENT_mads_excess_first);
		return false;
	}
	bucket_take(b, &a->address_rate, now);
	if (first)
		bucket_take(&a->first, &a->first_rate, now);
	return true;
}

/* ---- receiving ---- */

static void
mad_input(struct ibagent *a, const struct cmagent_mail_letter *l, uint64_t now)
{
	uint16_t vlan = l->vlan != 0 ? l->vlan & VLAN_ID_MASK : NO_VLAN;
	struct ibcm_way from = {.hop_limit = CMAGENT_MAIL_HOP_LIMIT};
	bool known;

	memcpy(from.own, l->own, sizeof(from.own));
	memcpy(from.peer, l->peer, sizeof(from.peer));
	memcpy(from.dmac, l->mac, sizeof(from.dmac));
	pthread_mutex_lock(&a->lock);
	known = ibagent_gid(a, l->own, vlan, &from.gid_index) != NULL;
	if (known && !ibagent_ping_input(a, &from, l))
		ibcm_input(a->cm, &from, l->bytes, l->len, now);
	pthread_mutex_unlock(&a->lock);
	if (!known)
		ibagent_count(a, IBAGENT_mads_bad);
}

static void
mad_take(struct ibagent *a, const struct cmagent_mail_letter *l, uint64_t now)
{
	ibagent_count(a, IBAGENT_mads_received);
	if (l->from_qpn != HCA_QPN_GSI)
		ibagent_count(a, IBAGENT_mads_bad);
	else if (mad_may(a, l, now))
		mad_input(a, l, now);
}

/* Too many come: the device drops and counts them, until the next one is due. */
static void
mads_pause(struct ibagent *a)
{
	ibagent_count(a, IBAGENT_mads_pauses);
	a->loop.mail_at = a->all.next - a->rate.burst / 2;
}

unsigned int
ibagent_receive(struct ibagent *a, uint64_t now)
{
	struct cmagent_mail_letter l;
	enum cmagent_mail_kind kind;
	unsigned int n = 0;

	if (now < a->loop.mail_at)
		return 0;
	for (; n < TURN; n++) {
		if (!bucket_may(&a->all, &a->rate, now)) {
			mads_pause(a);
			break;
		}
		kind = cmagent_mail_take(&a->mail, &l);
		if (kind == CMAGENT_MAIL_NONE)
			break;
		if (kind == CMAGENT_MAIL_SENT)
			continue;
		bucket_take(&a->all, &a->rate, now);
		if (kind == CMAGENT_MAIL_BAD) {
			ibagent_count(a, IBAGENT_mads_bad);
			continue;
		}
		mad_take(a, &l, now);
		cmagent_mail_give_back(&a->mail, l.slot);
	}
	return n;
}

/* ---- sending ---- */

void
ibagent_from(const struct ibagent *a, const struct ibcm_way *way, struct hca_ctl_ah *ah)
{
	const struct hca_ctl_gid *g =
		way->gid_index < IBAGENT_GIDS ? &a->gid[way->gid_index] : NULL;

	*ah = (struct hca_ctl_ah){.sgid_index = way->gid_index};
	memcpy(ah->dgid, way->peer, sizeof(ah->dgid));
	if (g == NULL || !g->valid || memcmp(g->gid, way->own, sizeof(g->gid)) != 0)
		g = ibagent_gid(a, way->own, NO_VLAN, &ah->sgid_index);
	if (g != NULL)
		memcpy(ah->smac, g->mac, sizeof(ah->smac));
	else
		ah->sgid_index = UINT32_MAX;
}

/* The next datagram that waits, with the entry that it leaves from; false: no datagram waits. */
static bool
mad_next(struct ibagent *a, struct hca_ctl_ah *ah)
{
	struct ibagent_out *o = &a->sending;
	bool any;

	pthread_mutex_lock(&a->lock);
	any = a->has_sending || a->out_count != 0;
	if (!a->has_sending && any) {
		*o = a->out[a->out_first];
		a->out_first = (a->out_first + 1) % IBAGENT_OUT;
		a->out_count--;
		a->has_sending = true;
	}
	if (any)
		ibagent_from(a, &o->way, ah);
	pthread_mutex_unlock(&a->lock);
	return any;
}

static bool
is_station(const uint8_t mac[6])
{
	static const uint8_t none[6];

	return (mac[0] & 1) == 0 && memcmp(mac, none, sizeof(none)) != 0;
}

/* The next hop is looked for, because the peer does not answer; false: not known yet. */
static bool
mad_find_again(struct ibagent *a, const struct ibcm_way *way, struct hca_ctl_ah *ah)
{
	struct hca_ctl_ah found;

	cmagent_hops_doubt(&a->hops, way->own, ah->dgid);
	if (!cmagent_hops_find(&a->hops, way->own, ah->dgid, &found) ||
	    found.sgid_index != ah->sgid_index)
		return false;
	memcpy(ah->dmac, found.dmac, sizeof(ah->dmac));
	return true;
}

/*
 * A neighbour in the driver's table; else the next hop that was found for the peer, or the station
 * that its datagram came from. Without any it is looked for: the state machines repeat the message.
 */
static bool
mad_find_hop(struct ibagent *a, const struct ibcm_way *way, struct hca_ctl_ah *ah)
{
	struct hca_ctl_ah known = *ah;

	if (hca_driver_resolve(a->cfg.drv, false, &known) == 0) {
		*ah = known;
		return true;
	}
	if (!is_station(way->dmac)) {
		cmagent_hops_look(&a->hops, way->own, ah->dgid);
		return cmagent_hops_find(&a->hops, way->own, ah->dgid, ah);
	}
	if (way->doubted && mad_find_again(a, way, ah))
		return true;
	ibagent_count(a, IBAGENT_mads_returned);
	memcpy(ah->dmac, way->dmac, sizeof(ah->dmac));
	return true;
}

bool
ibagent_post(struct ibagent *a, const struct ibcm_way *way, const struct hca_ctl_ah *ah,
	     const uint8_t *bytes, size_t len)
{
	struct cmagent_mail_to to = {.ah = *ah,
				     .hop_limit = way->hop_limit,
				     .traffic_class = way->traffic_class};

	if (ah->sgid_index == UINT32_MAX) {
		ibagent_count(a, IBAGENT_mads_no_address);
		return true;
	}
	if (!mad_find_hop(a, way, &to.ah)) {
		ibagent_count(a, IBAGENT_mads_no_hop);
		return true;
	}
	if (!cmagent_mail_send(&a->mail, &to, bytes, len))
		return false;
	ibagent_count(a, IBAGENT_mads_sent);
	return true;
}

/* False: there is no room. */
static bool
mad_send(struct ibagent *a, const struct hca_ctl_ah *ah)
{
	return ibagent_post(a, &a->sending.way, ah, a->sending.mad, sizeof(a->sending.mad));
}

unsigned int
ibagent_send(struct ibagent *a)
{
	struct hca_ctl_ah ah;
	unsigned int n = 0;

	gsi_mail_recover(&a->mail);
	for (; mad_next(a, &ah) && mad_send(a, &ah); n++)
		a->has_sending = false;
	n += ibagent_ping_send(a);
	if (n != 0 && a->cfg.kick != NULL)
		a->cfg.kick(a->cfg.arg);
	return n;
}
