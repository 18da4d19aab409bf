/* SPDX-License-Identifier: BSD-3-Clause */

/* Orders of ubcm, as calls of the driver. */

#include <errno.h>
#include <string.h>

#include "ubagent_impl.h"

#define HOPS 64u
/*
 * Source ports of channels: each has a range of its own of 256, and begins there after the ports of
 * the channel before it. So channels of a group also take different paths, where paths are chosen
 * by the low bits of the port.
 */
#define FIRST_PORT 0xc000u
#define PORTS_LOG 8u
#define PORT_RANGES_LOG 6u
#define SPRAY_REORDER_US 25u

static int
checked(struct ubagent *a, int err)
{
	if (err != 0)
		ubagent_count(a, UBAGENT_refused);
	return err;
}

/* ---- messages ---- */

/*
 * To the station that sent the answered message, independent of a search for the peer's MAC
 * address.
 */
static bool
return_path(const struct ubagent *a, const uint8_t *own, const uint8_t *peer, struct hca_ctl_ah *ah)
{
	static const uint8_t none[6];
	const struct cmagent_mail_letter *l = a->answering;
	struct hca_ctl_gid gid;

	if (l == NULL || memcmp(l->own, own, sizeof(l->own)) != 0 ||
	    memcmp(l->peer, peer, sizeof(l->peer)) != 0 || (l->mac[0] & 1) != 0 ||
	    memcmp(l->mac, none, sizeof(none)) == 0)
		return false;
	*ah = (struct hca_ctl_ah){.sgid_index = cmagent_gid_index(a->cfg.drv, own)};
	if (hca_driver_query_gid(a->cfg.drv, ah->sgid_index, &gid) != 0)
		return false;
	memcpy(ah->dgid, peer, sizeof(ah->dgid));
	memcpy(ah->dmac, l->mac, sizeof(ah->dmac));
	memcpy(ah->smac, gid.mac, sizeof(ah->smac));
	return true;
}

/* Without a message to answer the link has local users, which need the peer. */
static bool
find_path(struct ubagent *a, const uint8_t *own, const uint8_t *peer, struct hca_ctl_ah *ah)
{
	if (cmagent_hops_find(&a->hops, own, peer, ah))
		return true;
	if (return_path(a, own, peer, ah)) {
		ubagent_count(a, UBAGENT_returned);
		return true;
	}
	if (a->answering == NULL)
		cmagent_hops_look(&a->hops, own, peer);
	return false;
}

static void
send(void *arg, const uint8_t *own, const uint8_t *peer, const uint8_t *bytes, size_t len)
{
	struct cmagent_mail_to to = {.hop_limit = HOPS};
	struct ubagent *a = arg;
	bool sent = find_path(a, own, peer, &to.ah) && cmagent_mail_send(&a->mail, &to, bytes, len);

	ubagent_count(a, sent ? UBAGENT_sent : UBAGENT_not_sent);
	if (sent && a->cfg.kick != NULL)
		a->cfg.kick(a->cfg.arg);
}

/* ---- TPs ---- */

static uint32_t
log2_of(uint32_t n)
{
	return n == 0 ? 0 : 31u - (uint32_t)__builtin_clz(n);
}

/* The rule of the configuration, if the mode that was agreed on has it. */
static uint32_t
rule_for(const struct ubagent *a, uint32_t mode)
{
	static const uint8_t first[HCA_TP_MODES] = {
		[HCA_TP_MODE_DROP] = HCA_TP_RULE_NAK,
		[HCA_TP_MODE_TRACK] = HCA_TP_RULE_NONE,
		[HCA_TP_MODE_SACK] = HCA_TP_RULE_TIME,
	};
	static const uint32_t modes[HCA_TP_RULES] = {
#define X(name, number, bits) [number] = bits,
		HCA_TP_RULE_LIST(X)
#undef X
	};
	uint32_t rule = a->cfg.rule != 0 ? a->cfg.rule - 1 : HCA_TP_RULE_TIME;

	return (modes[rule] & HCA_BIT(mode)) != 0 ? rule : first[mode];
}

static void
fill_path(struct hca_tpc *c, uint32_t index, const uint8_t peer[16])
{
	c->path.port_pkey = hca_cpu_to_be32(HCA_QPC_MAKE_PORT_PKEY(1, 0));
	c->path.ackto = hca_cpu_to_be32(HCA_QPC_MAKE_ACKTO(0, index, 0, HOPS));
	memcpy(c->path.rgid, peer, sizeof(c->path.rgid));
}

static uint32_t
first_port(uint32_t tpn, uint32_t ports_log)
{
	uint32_t n = tpn & ((1u << PORT_RANGES_LOG) - 1);

	return FIRST_PORT | n << PORTS_LOG | (n << ports_log & ((1u << PORTS_LOG) - 1));
}

static void
fill(const struct ubagent *a, struct hca_tpc *c, const struct ubcm_tp *tp,
     const struct ubcm_timer *t, enum hca_tp_state state)
{
	const struct ubcm_limits *l = &tp->limits;
	bool spray = (l->flags & HCA_TP_FLAG_SPRAY) != 0;
	uint32_t ports_log = spray ? a->cfg.spray - 1 : 0;
	const struct {
		enum hca_tpc_field field;
		uint32_t value;
	} fields[] = {
		{HCA_TPC_STATE, state},
		{HCA_TPC_MODE, l->mode},
		{HCA_TPC_RULE, rule_for(a, l->mode)},
		{HCA_TPC_MTU, l->mtu >= 4096},
		{HCA_TPC_WINDOW, log2_of(l->window) - 7},
		{HCA_TPC_SACK, log2_of(l->sack) - 6},
		{HCA_TPC_FLAGS, l->flags},
		{HCA_TPC_TPN, tp->tpn},
		{HCA_TPC_PEER, tp->peer_tpn},
		{HCA_TPC_PSN, tp->psn},
		{HCA_TPC_EPSN, tp->epsn},
		{HCA_TPC_REQUESTS, l->requests},
		{HCA_TPC_ACK_EVERY, t->ack_every},
		{HCA_TPC_OOO_EVERY, t->ooo_every},
		{HCA_TPC_RTO_BASE, t->rto_base},
		{HCA_TPC_RTO_EXPONENT, t->rto_exponent},
		{HCA_TPC_RETRIES, t->retries},
		{HCA_TPC_REORDER,
		 spray && a->cfg.reorder_us == 0 ? SPRAY_REORDER_US : a->cfg.reorder_us},
		{HCA_TPC_SPORT, first_port(tp->tpn, ports_log)},
		{HCA_TPC_SPORTS_LOG, ports_log},
	};

	memset(c, 0, sizeof(*c));
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		hca_tpc_set(c, fields[i].field, fields[i].value);
}

static void
destroy_tps(struct ubagent *a, const struct ubcm_action *action, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		(void)checked(a, hca_driver_destroy_tp(a->cfg.drv, action->tp[i].tpn));
}

static int
create(struct ubagent *a, const struct ubcm_action *action)
{
	uint32_t index = cmagent_gid_index(a->cfg.drv, action->own), tpns[HCA_TPG_MAX_TPS], n,
		 *group;
	struct hca_ctl_ah ah;
	int err = index == CMAGENT_HOP_NO_GID					? -EADDRNOTAVAIL
		  : cmagent_hops_find(&a->hops, action->own, action->peer, &ah) ? 0
										: -EHOSTUNREACH;

	for (n = 0; n < action->ntps && err == 0; n++) {
		struct hca_tpc c;

		fill(a, &c, &action->tp[n], action->timer, action->state);
		fill_path(&c, index, action->peer);
		tpns[n] = action->tp[n].tpn;
		err = checked(a, hca_driver_create_tp_to(a->cfg.drv, &c, ah.dmac));
		if (err != 0)
			break;
	}
	group = &a->group[UBCM_LINK_TPG(action->link)];
	if (err == 0)
		err = checked(a, hca_driver_create_tpg(a->cfg.drv, tpns, n, group));
	if (err != 0) {
		destroy_tps(a, action, n);
		*group = NO_GROUP;
	}
	return err;
}

/* Those that are in the state already, or in ERROR, stay as they are. */
static void
change_state(struct ubagent *a, const struct ubcm_action *action, enum hca_tp_state state)
{
	for (uint32_t i = 0; i < action->ntps; i++) {
		struct hca_tpc c = {.mask = hca_cpu_to_be32(HCA_TP_ATTR_STATE)};

		hca_tpc_set(&c, HCA_TPC_STATE, state);
		(void)hca_driver_modify_tp(a->cfg.drv, action->tp[i].tpn, &c);
	}
}

void
ubagent_give_group(struct ubagent *a, uint32_t group)
{
	if (group != NO_GROUP)
		(void)checked(a, hca_driver_destroy_tpg(a->cfg.drv, group));
}

static void
destroy(struct ubagent *a, const struct ubcm_action *action)
{
	uint32_t *group = &a->group[UBCM_LINK_TPG(action->link)];
	bool unused;

	destroy_tps(a, action, action->ntps);
	pthread_mutex_lock(&a->account.lock);
	unused = account_group_gone(&a->account, *group);
	pthread_mutex_unlock(&a->account.lock);
	if (unused)
		ubagent_give_group(a, *group);
	*group = NO_GROUP;
}

static void
tell(struct ubagent *a, const struct ubcm_action *action)
{
	pthread_mutex_lock(&a->account.lock);
	if (action->type == UBCM_JOIN)
		account_join(&a->account, action->from, action->link);
	else if (action->type == UBCM_UP)
		account_up(&a->account, action->link, a->group[UBCM_LINK_TPG(action->link)]);
	else
		account_down(&a->account, action->link, action->status);
	pthread_mutex_unlock(&a->account.lock);
}

static int
act(void *arg, const struct ubcm_action *action)
{
	struct ubagent *a = arg;

	switch (action->type) {
	case UBCM_CREATE:
		return create(a, action);
	case UBCM_ACTIVATE:
		change_state(a, action, HCA_TPS_ACTIVE);
		break;
	case UBCM_DRAIN:
		change_state(a, action, HCA_TPS_DRAIN);
		break;
	case UBCM_FAIL:
		change_state(a, action, HCA_TPS_ERROR);
		break;
	case UBCM_DESTROY:
		destroy(a, action);
		break;
	case UBCM_JOIN:
	case UBCM_UP:
	case UBCM_DOWN:
		tell(a, action);
		break;
	}
	return 0;
}

static uint64_t
random_number(void *arg)
{
	return cmagent_random(&((struct ubagent *)arg)->random);
}

/* Packets sent and taken since the TPs were made */
static uint64_t
traffic(void *arg, const struct ubcm_tp *tp, uint32_t ntps)
{
	struct ubagent *a = arg;
	uint64_t n = 0;
	struct hca_tpc c;

	for (uint32_t i = 0; i < ntps; i++)
		if (hca_driver_query_tp(a->cfg.drv, tp[i].tpn, &c) == 0)
			n += ((hca_be32_to_cpu(c.next) - tp[i].psn) & HCA_TPN_MASK) +
			     ((hca_be32_to_cpu(c.live_epsn) - tp[i].epsn) & HCA_TPN_MASK);
	return n;
}

const struct ubcm_ops ubagent_ops = {
	.send = send,
	.act = act,
	.random = random_number,
	.traffic = traffic,
};
