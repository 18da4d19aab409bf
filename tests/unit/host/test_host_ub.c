/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * UB's objects through the driver in a device: requests of clients and of the host's agent arrive
 * in the device, and all objects are given back, in each layout of stages.
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../driver_calls.h"
#include "../../test_eal.h"
#include "abi_service.h"
#include "abi_tp.h"
#include "core/core.h"
#include "ctxmgt/qp.h"
#include "driver.h"
#include "graph/executor.h"
#include "host.h"
#include "port/port.h"
#include "queues/srq.h"
#include "ub/ub.h"
#include "wire/wire_view.h"

#define PAGE 4096u
#define PAGES 16u
#define TPS 3u

static struct hca *dev;
static struct hca_driver *drv;
static struct hca_client *client;
static uint8_t *memory;
static uint64_t now;
static uint32_t pdn, cqn;

static uint16_t
port_rx(struct hca_port *p, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t at)
{
	return 0;
}

static uint16_t
port_tx(struct hca_port *p, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t at)
{
	rte_pktmbuf_free_bulk(m, n);
	return n;
}

static bool
port_up(struct hca_port *p)
{
	return true;
}

static const struct hca_port_ops port_ops = {.rx = port_rx, .tx = port_tx, .link_up = port_up};
static struct hca_port port = {.ops = &port_ops, .max_frame = 9000, .queue_size = 32};

static void
progress(void *arg)
{
	now += 1000;
	for (unsigned int i = 0; i < hca_core(dev)->num_workers; i++)
		hca_poll(dev, i, now);
}

static void
start(enum hca_layout layout)
{
	static const uint8_t own[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1};
	static const uint8_t peer[16] = {[10] = 0xff, 0xff, 10, 0, 0, 2};
	const struct hca_client_who who = {.privileged = true};
	const struct hca_config config = {
		.name = "ub",
		.port = &port,
		.wires = HCA_WIRE_BIT(HCA_WIRE_ROCE) | HCA_WIRE_BIT(HCA_WIRE_UB),
		.layout = layout,
		.socket_id = -1,
		.log_qps = 6,
		.log_cqs = 5,
		.log_srqs = 4,
		.log_mpts = 8,
		.log_mtts = 12,
		.log_tps = 4,
		.ub_ops = 64,
		.records = 256,
		.full_records = 256,
		.mbufs = 128,
		.mac = {2, 0, 0, 0, 0, 1},
	};
	struct hca_ctl_cq cq = {.log_size = 5, .channel = HCA_CTL_NO_CHANNEL};
	struct hca_hw hw;

	memory = aligned_alloc(PAGE, PAGES * PAGE);
	memset(memory, 0, PAGES * PAGE);
	assert_int_equal(hca_create(&config, &dev), 0);
	hw = hca_host_hw(dev);
	hw.progress = progress;
	assert_int_equal(hca_driver_create(&hw, NULL, &drv), 0);
	assert_int_equal(hca_driver_set_gid(drv, 0, own, config.mac, 0xffff), 0);
	assert_int_equal(hca_driver_set_neigh(drv, peer, (const uint8_t *)"\2\0\0\0\0\2"), 0);
	assert_int_equal(hca_client_open(drv, &who, &client), 0);
	assert_int_equal(hca_client_attach(client, (uintptr_t)memory, PAGES * PAGE), 0);
	assert_int_equal(hca_client_call(client, HCA_CTL_ALLOC_PD, NULL, &pdn, NULL), 0);
	cq.addr = (uintptr_t)memory;
	assert_int_equal(hca_client_call(client, HCA_CTL_CREATE_CQ, &cq, &cqn, NULL), 0);
}

static void
shut_down(void)
{
	hca_driver_destroy(drv);
	hca_destroy(dev);
	free(memory);
}

static int
create_jetty(uint32_t service, uint32_t srqn, uint32_t *number)
{
	struct hca_ctl_jetty j = {
		.qp = {.sq_addr = (uintptr_t)memory + 4 * PAGE,
		       .rq_addr = (uintptr_t)memory + 6 * PAGE,
		       .pdn = pdn,
		       .service = service,
		       .send_cqn = cqn,
		       .recv_cqn = cqn,
		       .log_sq = 4,
		       .log_sq_stride = 7,
		       .log_rq = 4,
		       .log_rq_stride = 6,
		       .srqn = srqn},
		.err_timeout = 17,
		.rnr_retry = 7,
		.min_rnr_timer = 12,
	};

	return hca_client_call(client, HCA_CTL_CREATE_JETTY, &j, number, NULL);
}

static uint32_t
create_jfr(void)
{
	struct hca_ctl_jfr r = {
		.srq = {.addr = (uintptr_t)memory + 8 * PAGE,
			.pdn = pdn,
			.cqn = cqn,
			.log_size = 4,
			.log_stride = 6,
			.max_sge = 3},
		.min_rnr_timer = 9,
	};
	uint32_t number;

	assert_int_equal(hca_client_call(client, HCA_CTL_CREATE_JFR, &r, &number, NULL), 0);
	return number;
}

static uint32_t
create_segment(uint32_t *id)
{
	struct hca_ctl_mr mr = {.va = (uintptr_t)memory + 10 * PAGE,
				.length = PAGE,
				.pdn = pdn,
				.access = HCA_ACCESS_LOCAL_WRITE | HCA_ACCESS_REMOTE_WRITE};
	struct hca_ctl_token t = {.flags = HCA_TOKEN_EXPORTED | HCA_TOKEN_CHECK, .value = {42}};
	struct hca_ctl_extra extra = {0};
	struct hca_ctl_keys keys;

	assert_int_equal(hca_client_call(client, HCA_CTL_REG_MR, &mr, &keys, &extra), 0);
	t.lkey = keys.lkey;
	assert_int_equal(hca_client_call(client, HCA_CTL_SET_TOKEN, &t, id, NULL), 0);
	return keys.lkey;
}

static int
name(uint32_t id, uint32_t tc)
{
	struct hca_ctl_known k = {.id = id, .tc = tc};

	return hca_client_call(client, HCA_CTL_NAME_TC, &k, NULL, NULL);
}

static uint32_t
state_of(uint32_t number)
{
	return hca_qp_state(&hca_core(dev)->qp[hca_qp_index(hca_core(dev), number)]);
}

static int
to_state(uint32_t number, uint32_t state)
{
	struct hca_ctl_jetty_state s = {.number = number, .state = state};

	return hca_client_call(client, HCA_CTL_MODIFY_JETTY, &s, NULL, NULL);
}

static uint32_t
create_tp(void)
{
	struct hca_tpc t = {
		.path = {.port_pkey = hca_cpu_to_be32(HCA_QPC_MAKE_PORT_PKEY(1, 0)),
			 .rgid = {[10] = 0xff, 0xff, 10, 0, 0, 2}},
	};

	hca_tpc_set(&t, HCA_TPC_STATE, HCA_TPS_ACTIVE);
	hca_tpc_set(&t, HCA_TPC_MODE, HCA_TP_MODE_SACK);
	hca_tpc_set(&t, HCA_TPC_RULE, HCA_TP_RULE_TIME);
	hca_tpc_set(&t, HCA_TPC_PEER, 0x77);
	hca_tpc_set(&t, HCA_TPC_REQUESTS, 16);
	hca_tpc_set(&t, HCA_TPC_ACK_EVERY, 16);
	hca_tpc_set(&t, HCA_TPC_OOO_EVERY, 1);
	hca_tpc_set(&t, HCA_TPC_SPORT, 0xc000);
	assert_int_equal(hca_driver_create_tp(drv, &t), 0);
	return hca_be32_to_cpu(t.tpn);
}

static unsigned int
live_tps(void)
{
	const struct hca_ub *ub = hca_core(dev)->ub;
	unsigned int n = 0;

	for (uint32_t i = 0; i <= ub->tp_mask; i++)
		n += ub->tp[i].cfg.own_tpn != 0;
	return n;
}

static void
jettys_in(enum hca_layout layout)
{
	struct hca_driver_usage used;
	struct hca_qpc qpc;
	uint32_t jetty, jfs, jfr, shared;

	start(layout);
	assert_int_equal(create_jetty(HCA_ST_JETTY, 0, &jetty), 0);
	assert_int_equal(create_jetty(HCA_ST_JFS, 0, &jfs), 0);
	jfr = create_jfr();
	assert_int_equal(create_jetty(HCA_ST_JETTY, jfr, &shared), 0);
	assert_int_equal(name(0, jetty), 0);
	assert_int_equal(name(40, HCA_TC_JFR | jfr), 0);
	assert_int_equal(hca_core(dev)->ub->known[0], jetty);
	assert_int_equal(to_state(jetty, HCA_QPS_SQD), 0);
	assert_int_equal(state_of(jetty), HCA_QPS_SQD);
	assert_int_equal(to_state(jetty, HCA_QPS_SQD), -EINVAL);
	assert_int_equal(to_state(jetty, HCA_QPS_RTS), 0);
	assert_int_equal(to_state(jfs, HCA_QPS_ERR), 0);
	assert_int_equal(hca_client_call(client, HCA_CTL_QUERY_QP, &jfs, &qpc, NULL), 0);
	assert_int_equal(HCA_QPC_STATE(hca_be32_to_cpu(qpc.flags)), HCA_QPS_ERR);
	assert_int_equal(call_drop(client, HCA_CTL_DESTROY_SRQ, jfr), -EBUSY);
	assert_int_equal(call_drop(client, HCA_CTL_DESTROY_QP, shared), 0);
	assert_int_equal(call_drop(client, HCA_CTL_DESTROY_SRQ, jfr), 0);
	assert_int_equal(call_drop(client, HCA_CTL_DESTROY_QP, jetty), 0);
	assert_int_equal(hca_core(dev)->ub->known[0], HCA_TC_NONE);
	assert_int_equal(name(0, jfs), -EINVAL);
	hca_driver_usage(drv, &used);
	assert_int_equal(used.qps, 1);
	shut_down();
}

static void
tps_in(enum hca_layout layout)
{
	uint32_t tpns[TPS], group;
	struct hca_tpc q;

	start(layout);
	for (unsigned int i = 0; i < TPS; i++)
		tpns[i] = create_tp();
	assert_int_equal(live_tps(), TPS);
	assert_int_equal(hca_driver_create_tpg(drv, tpns, TPS, &group), 0);
	assert_int_equal(hca_driver_query_tp(drv, tpns[1], &q), 0);
	assert_int_equal(hca_tpc_get(&q, HCA_TPC_GROUP), group + 1);
	assert_int_equal(hca_tpc_get(&q, HCA_TPC_PEER), 0x77);
	memset(&q, 0, sizeof(q));
	q.mask = hca_cpu_to_be32(HCA_TP_ATTR_STATE);
	hca_tpc_set(&q, HCA_TPC_STATE, HCA_TPS_DRAIN);
	assert_int_equal(hca_driver_modify_tp(drv, tpns[1], &q), 0);
	assert_int_equal(hca_driver_change_tpg(drv, group, tpns, 2), 0);
	assert_int_equal(hca_driver_destroy_tp(drv, tpns[0]), 0);
	assert_int_equal(hca_driver_destroy_tpg(drv, group), 0);
	assert_int_equal(live_tps(), TPS - 1);
	/* the others go with the driver */
	hca_driver_destroy(drv);
	assert_int_equal(live_tps(), 0);
	hca_destroy(dev);
	free(memory);
}

static void
client_goes_in(enum hca_layout layout)
{
	uint32_t jetty, id, lkey, tpn;
	struct hca_usage used;

	start(layout);
	tpn = create_tp();
	assert_int_equal(create_jetty(HCA_ST_JETTY, 0, &jetty), 0);
	assert_int_equal(name(33, jetty), 0);
	(void)create_jfr();
	lkey = create_segment(&id);
	assert_int_equal(id, HCA_KEY_TOKEN_ID(lkey));
	assert_int_equal(hca_core(dev)->ub->token[HCA_KEY_INDEX(lkey)].value[0], 42);
	hca_client_close(client);
	hca_usage(dev, &used);
	assert_int_equal(used.qps + used.srqs + used.cqs, 0);
	assert_int_equal(hca_core(dev)->ub->known[33], HCA_TC_NONE);
	assert_int_equal(hca_core(dev)->ub->token[HCA_KEY_INDEX(lkey)].flags, 0);
	assert_int_equal(hca_core(dev)->qp_own_bytes, 0);
	/* the host's channel stays */
	assert_int_equal(live_tps(), 1);
	assert_int_equal(hca_driver_destroy_tp(drv, tpn), 0);
	shut_down();
}

#define IN_EACH_LAYOUT(what) \
	static void what(void **state) \
	{ \
		what##_in(HCA_LAYOUT_RTC); \
		what##_in(HCA_LAYOUT_TXRX); \
		what##_in(HCA_LAYOUT_FULL); \
	}
IN_EACH_LAYOUT(jettys)
IN_EACH_LAYOUT(tps)
IN_EACH_LAYOUT(client_goes)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jettys),
		cmocka_unit_test(tps),
		cmocka_unit_test(client_goes),
	};

	if (test_eal_start(256) != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
