/* SPDX-License-Identifier: BSD-3-Clause */

/* How a device distributes frames to several queues: rules for the QPN, as drivers take them. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include <dpdk_compat.h>

#include <rte_dev.h>

#include "../../../test_eal.h"
#include "abi_roce.h"
#include "port/port_ethdev.h"
#include "port/port_ethdev_spread.h"

#define ID 7u

struct rule {
	bool alive, jump;
	uint32_t group;
	enum rte_flow_item_type l3;
	uint8_t qpn, mask;
	uint16_t queue;
};

/* The driver. */
static struct {
	bool group0, group1; /* takes rules for the BTH in this group */
	unsigned int room;   /* rules */
	unsigned int n;
	struct rule rule[64];
} driver;

int __wrap_rte_flow_validate(uint16_t id, const struct rte_flow_attr *attr,
			     const struct rte_flow_item *pattern,
			     const struct rte_flow_action *actions, struct rte_flow_error *why);
struct rte_flow *__wrap_rte_flow_create(uint16_t id, const struct rte_flow_attr *attr,
					const struct rte_flow_item *pattern,
					const struct rte_flow_action *actions,
					struct rte_flow_error *why);
int __wrap_rte_flow_destroy(uint16_t id, struct rte_flow *flow, struct rte_flow_error *why);

static struct rule
read_rule(const struct rte_flow_attr *attr, const struct rte_flow_item *pattern,
	  const struct rte_flow_action *actions)
{
	const struct rte_flow_item_udp *udp = pattern[2].spec;
	struct rule r = {.group = attr->group, .l3 = pattern[1].type};

	assert_true(attr->ingress && !attr->egress && !attr->transfer);
	assert_int_equal(pattern[0].type, RTE_FLOW_ITEM_TYPE_ETH);
	assert_int_equal(pattern[2].type, RTE_FLOW_ITEM_TYPE_UDP);
	assert_int_equal(udp->hdr.dst_port, RTE_BE16(HCA_ROCE_UDP_PORT));
	assert_int_equal(actions[1].type, RTE_FLOW_ACTION_TYPE_END);
	if (actions[0].type == RTE_FLOW_ACTION_TYPE_JUMP) {
		r.jump = true;
		assert_int_equal(((const struct rte_flow_action_jump *)actions[0].conf)->group, 1);
		assert_int_equal(pattern[3].type, RTE_FLOW_ITEM_TYPE_END);
		return r;
	}
	assert_int_equal(actions[0].type, RTE_FLOW_ACTION_TYPE_QUEUE);
	assert_int_equal(pattern[3].type, RTE_FLOW_ITEM_TYPE_IB_BTH);
	assert_int_equal(pattern[4].type, RTE_FLOW_ITEM_TYPE_END);
	r.queue = ((const struct rte_flow_action_queue *)actions[0].conf)->index;
	r.qpn = ((const struct rte_flow_item_ib_bth *)pattern[3].spec)->hdr.dst_qp[2];
	r.mask = ((const struct rte_flow_item_ib_bth *)pattern[3].mask)->hdr.dst_qp[2];
	return r;
}

int
__wrap_rte_flow_validate(uint16_t id, const struct rte_flow_attr *attr,
			 const struct rte_flow_item *pattern, const struct rte_flow_action *actions,
			 struct rte_flow_error *why)
{
	struct rule r = read_rule(attr, pattern, actions);

	if (r.jump)
		return driver.group1 ? 0 : -ENOTSUP;
	return (r.group == 0 ? driver.group0 : driver.group1) ? 0 : -ENOTSUP;
}

struct rte_flow *
__wrap_rte_flow_create(uint16_t id, const struct rte_flow_attr *attr,
		       const struct rte_flow_item *pattern, const struct rte_flow_action *actions,
		       struct rte_flow_error *why)
{
	struct rule *r = &driver.rule[driver.n];

	if (driver.room == 0)
		return NULL;
	driver.room--;
	driver.n++;
	*r = read_rule(attr, pattern, actions);
	r->alive = true;
	return (struct rte_flow *)r;
}

int
__wrap_rte_flow_destroy(uint16_t id, struct rte_flow *flow, struct rte_flow_error *why)
{
	struct rule *r = (struct rule *)flow;

	assert_true(r->alive);
	/* a jump does not outlive the rules behind it */
	for (unsigned int i = 0; !r->jump && i < driver.n; i++)
		assert_false(driver.rule[i].alive && driver.rule[i].jump);
	r->alive = false;
	driver.room++;
	return 0;
}

static unsigned int
alive(void)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < driver.n; i++)
		n += driver.rule[i].alive;
	return n;
}

/* Number of rules that put frames to this QPN into this queue. */
static unsigned int
rules_to(uint32_t qpn, uint16_t queue, uint32_t group)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < driver.n; i++) {
		const struct rule *r = &driver.rule[i];

		n += r->alive && !r->jump && r->group == group && (qpn & r->mask) == r->qpn &&
		     r->queue == queue;
	}
	return n;
}

static void
assert_spread(uint16_t queues, uint32_t group)
{
	for (uint32_t qpn = 0; qpn < 256; qpn++)
		for (uint16_t q = 0; q < queues; q++)
			assert_int_equal(rules_to(qpn, q, group), qpn % queues == q ? 2 : 0);
}

static void
by_qpn(void **state)
{
	(void)state;
	for (uint16_t queues = 2; queues <= 16; queues *= 2) {
		struct ethdev_spread s = {0};

		memset(&driver, 0, sizeof(driver));
		driver.group0 = true;
		driver.room = 64;
		assert_int_equal(ethdev_spread_rules(&s, ID, queues), 0);
		assert_int_equal(s.by, ETHDEV_SPREAD_QPN);
		assert_int_equal(alive(), 2 * queues);
		assert_spread(queues, 0);
		ethdev_spread_end(&s);
		assert_int_equal(alive(), 0);
	}
}

/* As mlx5: the BTH is matched in group 1, to which frames of RoCE jump. */
static void
in_group_1(void **state)
{
	struct ethdev_spread s = {0};

	(void)state;
	memset(&driver, 0, sizeof(driver));
	driver.group1 = true;
	driver.room = 64;
	assert_int_equal(ethdev_spread_rules(&s, ID, 4), 0);
	assert_int_equal(alive(), 2 * 4 + 2);
	assert_spread(4, 1);
	ethdev_spread_end(&s);
	assert_int_equal(alive(), 0);
}

/* A driver that refuses the item, or has no room for all rules: no rule stays. */
static void
refused(void **state)
{
	struct ethdev_spread s = {0};

	(void)state;
	memset(&driver, 0, sizeof(driver));
	driver.room = 64;
	assert_true(ethdev_spread_rules(&s, ID, 4) < 0);
	driver.group0 = driver.group1 = true;
	for (driver.room = 0; driver.room < 8; driver.room++) {
		driver.n = 0;
		assert_true(ethdev_spread_rules(&s, ID, 4) < 0);
		assert_int_equal(alive(), 0);
		assert_int_equal(s.by, ETHDEV_SPREAD_DRIVER);
	}
	assert_int_equal(ethdev_spread_rules(&s, ID, 3), -EINVAL);
	assert_int_equal(ethdev_spread_rules(&s, ID, 32), -EINVAL);
}

static void
hashed(void **state)
{
	struct rte_eth_dev_info info = {.max_rx_queues = 8, .max_tx_queues = 4};
	struct rte_eth_conf conf = {0};

	(void)state;
	assert_int_equal(ethdev_spread_queues(&info, 2), 2);
	assert_int_equal(ethdev_spread_queues(&info, 16), 4);
	assert_int_equal(ethdev_spread_queues(&info, 3), 2);
	info.max_tx_queues = 0;
	assert_int_equal(ethdev_spread_queues(&info, 16), 1);
	info.flow_type_rss_offloads = RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_TCP;
	assert_false(ethdev_spread_hash(&info, 4, &conf));
	info.flow_type_rss_offloads |= RTE_ETH_RSS_NONFRAG_IPV4_UDP;
	assert_false(ethdev_spread_hash(&info, 1, &conf));
	assert_int_equal(conf.rxmode.mq_mode, RTE_ETH_MQ_RX_NONE);
	assert_true(ethdev_spread_hash(&info, 4, &conf));
	assert_int_equal(conf.rxmode.mq_mode, RTE_ETH_MQ_RX_RSS);
	assert_true(conf.rx_adv_conf.rss_conf.rss_hf ==
		    (RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_UDP));
}

static char told[160];

static void
log_line(void *arg, bool warning, const char *text)
{
	(void)arg;
	assert_false(warning);
	snprintf(told, sizeof(told), "%s", text);
}

/* net_null offers RSS, and the port logs it. */
static void
told_by_port(void **state)
{
	struct hca_port_ethdev_config cfg = {.queues = 4,
					     .name = "spread",
					     .socket_id = SOCKET_ID_ANY,
					     .log = log_line};
	struct hca_port *p;

	(void)state;
	assert_int_equal(rte_dev_probe("net_null0,no-rx=1"), 0);
	assert_int_equal(rte_eth_dev_get_port_by_name("net_null0", &cfg.port_id), 0);
	driver.group0 = driver.group1 = false;
	assert_int_equal(hca_port_ethdev_open(&cfg, &p), 0);
	assert_int_equal(p->queues, 4);
	assert_non_null(strstr(told, "4 queues"));
	assert_non_null(strstr(told, "RSS"));
	p->ops->close(p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_qpn), cmocka_unit_test(in_group_1),	  cmocka_unit_test(refused),
		cmocka_unit_test(hashed), cmocka_unit_test(told_by_port),
	};

	if (test_eal_start(64) != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
