/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>

#include <dpdk_compat.h>

#include "abi_roce.h"
#include "port/port_ethdev_spread.h"

#define HASHED \
	(RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_IPV6 | \
	 RTE_ETH_RSS_NONFRAG_IPV6_UDP | RTE_ETH_RSS_IPV6_EX | RTE_ETH_RSS_IPV6_UDP_EX)
#define UDP_HASHED \
	(RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_NONFRAG_IPV6_UDP | RTE_ETH_RSS_IPV6_UDP_EX)

static const enum rte_flow_item_type ip[] = {RTE_FLOW_ITEM_TYPE_IPV4, RTE_FLOW_ITEM_TYPE_IPV6};

uint16_t
ethdev_spread_queues(const struct rte_eth_dev_info *info, uint16_t wanted)
{
	uint16_t most = RTE_MIN(info->max_rx_queues, info->max_tx_queues);

	/* as many as pipelines may be, because each pipeline reads one */
	return (uint16_t)rte_align32prevpow2(RTE_MAX(RTE_MIN(wanted, most), 1u));
}

bool
ethdev_spread_hash(const struct rte_eth_dev_info *info, uint16_t queues, struct rte_eth_conf *conf)
{
	uint64_t offered = info->flow_type_rss_offloads & HASHED;

	/* addresses alone would put all frames between two hosts into one queue */
	if (queues < 2 || (offered & UDP_HASHED) == 0)
		return false;
	conf->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
	conf->rx_adv_conf.rss_conf.rss_hf = offered;
	return true;
}

static int
make_rule(struct ethdev_spread *s, uint32_t group, const struct rte_flow_item *pattern,
	  const struct rte_flow_action *to)
{
	const struct rte_flow_attr attr = {.group = group, .ingress = 1};
	const struct rte_flow_action actions[] = {*to, {.type = RTE_FLOW_ACTION_TYPE_END}};
	struct rte_flow_error why;
	struct rte_flow *f;
	int rc = rte_flow_validate(s->id, &attr, pattern, actions, &why);

	if (rc != 0)
		return rc;
	f = rte_flow_create(s->id, &attr, pattern, actions, &why);
	if (f == NULL)
		return -ENOTSUP;
	s->flow[s->n++] = f;
	return 0;
}

/* Frames with destination QPN `queue` modulo queues. */
static int
make_qpn_rule(struct ethdev_spread *s, uint32_t group, enum rte_flow_item_type l3, uint16_t queue,
	      uint16_t queues)
{
	const struct rte_flow_item_udp port = {.hdr.dst_port = RTE_BE16(HCA_ROCE_UDP_PORT)};
	const struct rte_flow_item_udp port_mask = {.hdr.dst_port = RTE_BE16(0xffff)};
	const struct rte_flow_item_ib_bth bth = {.hdr.dst_qp = {0, 0, (uint8_t)queue}};
	const struct rte_flow_item_ib_bth bth_mask = {.hdr.dst_qp = {0, 0, (uint8_t)(queues - 1)}};
	const struct rte_flow_item pattern[] = {
		{.type = RTE_FLOW_ITEM_TYPE_ETH},
		{.type = l3},
		{.type = RTE_FLOW_ITEM_TYPE_UDP, .spec = &port, .mask = &port_mask},
		{.type = RTE_FLOW_ITEM_TYPE_IB_BTH, .spec = &bth, .mask = &bth_mask},
		{.type = RTE_FLOW_ITEM_TYPE_END},
	};
	const struct rte_flow_action_queue to = {.index = queue};

	return make_rule(s, group, pattern,
			 &(struct rte_flow_action){.type = RTE_FLOW_ACTION_TYPE_QUEUE,
						   .conf = &to});
}

/* Frames of RoCE go on in group 1. */
static int
make_jump(struct ethdev_spread *s, enum rte_flow_item_type l3)
{
	const struct rte_flow_item_udp port = {.hdr.dst_port = RTE_BE16(HCA_ROCE_UDP_PORT)};
	const struct rte_flow_item_udp port_mask = {.hdr.dst_port = RTE_BE16(0xffff)};
	const struct rte_flow_item pattern[] = {
		{.type = RTE_FLOW_ITEM_TYPE_ETH},
		{.type = l3},
		{.type = RTE_FLOW_ITEM_TYPE_UDP, .spec = &port, .mask = &port_mask},
		{.type = RTE_FLOW_ITEM_TYPE_END},
	};
	const struct rte_flow_action_jump to = {.group = 1};

	return make_rule(s, 0, pattern,
			 &(struct rte_flow_action){.type = RTE_FLOW_ACTION_TYPE_JUMP, .conf = &to});
}

/* The rules in one group. The jump comes last: until then frames are received as before. */
static int
make_rules(struct ethdev_spread *s, uint32_t group, uint16_t queues)
{
	int rc = 0;

	for (unsigned int i = 0; i < RTE_DIM(ip) && rc == 0; i++)
		for (uint16_t q = 0; q < queues && rc == 0; q++)
			rc = make_qpn_rule(s, group, ip[i], q, queues);
	for (unsigned int i = 0; i < RTE_DIM(ip) && rc == 0 && group != 0; i++)
		rc = make_jump(s, ip[i]);
	if (rc != 0)
		ethdev_spread_end(s);
	return rc;
}

int
ethdev_spread_rules(struct ethdev_spread *s, uint16_t id, uint16_t queues)
{
	int rc;

	if (queues > ETHDEV_SPREAD_QUEUES || !rte_is_power_of_2(queues))
		return -EINVAL;
	s->id = id;
	/* mlx5 matches the BTH in groups other than 0 only */
	rc = make_rules(s, 0, queues);
	if (rc != 0)
		rc = make_rules(s, 1, queues);
	if (rc == 0)
		s->by = ETHDEV_SPREAD_QPN;
	return rc;
}

void
ethdev_spread_end(struct ethdev_spread *s)
{
	struct rte_flow_error why;

	/* the jumps first */
	while (s->n != 0)
		(void)rte_flow_destroy(s->id, s->flow[--s->n], &why);
}

const char *
ethdev_spread_text(const struct ethdev_spread *s)
{
	switch (s->by) {
	case ETHDEV_SPREAD_QPN:
		return "by destination QPN (rules of the device)";
	case ETHDEV_SPREAD_RSS:
		return "by the hash of addresses and UDP ports (RSS): pipelines hand frames over";
	default:
		return "as its driver does: pipelines hand frames over";
	}
}
