/* SPDX-License-Identifier: BSD-3-Clause */

#include "ub_hosts.h"

#include <rte_ring.h>

#include "../test_eal.h"
#include "../ub_no_agent.h"
#include "../ub_tpc.h"
#include "core/counters.h"
#include "embed_ctl.h"
#include "engine/impl.h"
#include "graph/sleep.h"
#include "host.h"
#include "ub_sums.h"

#define TICK_NS 500u
#define IDLE_LOOPS 4u
#define JUMP_NS 20000u
#define DRIVER_EVERY 16u
#define QUEUE 4096u /* frames, in front of host 0; of others an eighth */
#define MS 1000000u

#define CALL(call) \
	do { \
		int rc_ = (call); \
		UB_HOSTS_CHECK(rc_ == 0, #call ": %d: %s", rc_, hca_driver_reason()); \
	} while (0)

/* ---- the switch ---- */

/* The last byte of the destination's address names the host. */
static struct ub_host *
destination(struct ub_hosts *x, const uint8_t *frame)
{
	uint32_t index = (frame[12] == 0x08 ? frame[33] : frame[53]) - 1u;

	UB_HOSTS_CHECK(index < x->n, "a frame to host %u", index);
	return &x->host[index];
}

static uint16_t
switch_tx(struct hca_port *port, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct ub_hosts *x = ((struct ub_host *)port)->all;

	(void)now;
	for (uint16_t i = 0; i < n; i++) {
		struct ub_host *to = destination(x, rte_pktmbuf_mtod(m[i], uint8_t *));

		if (++x->frames % RTE_MAX(x->lose_every, 1u) == 0 && x->lose_every != 0) {
			rte_pktmbuf_free(m[i]);
		} else if (rte_ring_enqueue(to->rx, m[i]) != 0) {
			x->full++;
			rte_pktmbuf_free(m[i]);
		}
	}
	return n;
}

static uint16_t
switch_rx(struct hca_port *port, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	(void)now;
	return (uint16_t)rte_ring_dequeue_burst(((struct ub_host *)port)->rx, (void **)m, n, NULL);
}

static bool
switch_up(struct hca_port *port)
{
	(void)port;
	return true;
}

static const struct hca_port_ops switch_ops = {.rx = switch_rx,
					       .tx = switch_tx,
					       .link_up = switch_up};

/* ---- time ---- */

static unsigned int
poll_host(struct ub_host *t)
{
	unsigned int work = 0;

	for (unsigned int w = 0; w < hca_workers(t->h); w++)
		work += hca_poll(t->h, w, t->all->now);
	return work;
}

void
ub_hosts_poll(struct ub_hosts *x)
{
	unsigned int work = 0;

	x->now += TICK_NS;
	x->loops++;
	for (uint32_t i = 0; i < x->n; i++)
		work += poll_host(&x->host[i]);
	x->idle = work != 0 ? 0 : x->idle + 1;
	if (x->idle > IDLE_LOOPS)
		x->now += JUMP_NS;
	for (uint32_t i = 0; x->loops % DRIVER_EVERY == 0 && i < x->n; i++)
		hca_driver_poll(x->host[i].drv);
}

void
ub_hosts_run_for(struct ub_hosts *x, uint64_t ns)
{
	for (uint64_t end = x->now + ns; x->now < end;)
		ub_hosts_poll(x);
}

/* Of a command: the others wait. */
static void
progress(void *arg)
{
	struct ub_host *t = arg;

	t->all->now += TICK_NS;
	poll_host(t);
}

/* ---- hosts ---- */

static void
eid_of(const struct ub_hosts *x, uint32_t index, uint8_t eid[16])
{
	static const uint8_t prefix[2][15] = {{[10] = 0xff, 0xff, 10, 79, 0},
					      {0x20, 0x01, 0x0d, 0xb8, 0, 0x79}};

	memcpy(eid, prefix[x->v6], 15);
	eid[15] = (uint8_t)(index + 1);
}

static void
mac_of(uint32_t index, uint8_t mac[6])
{
	memcpy(mac, (const uint8_t[]){2, 0, 0, 0, 1, (uint8_t)(index + 1)}, 6);
}

static void
open_hca(struct ub_host *t, unsigned int serial)
{
	bool first = t->index == 0;
	char name[24];
	struct hca_config cfg = {
		.name = name,
		.port = &t->port,
		.wires = HCA_WIRE_BIT(HCA_WIRE_UB),
		.layout = t->all->layout,
		.socket_id = -1,
		.log_qps = first ? 4 : 2,
		.log_cqs = 3,
		.log_srqs = 2,
		.log_eqs = 3,
		.log_mpts = 4,
		.log_mtts = first ? 12 : 7,
		.log_tps = first ? 7 : 1,
		.ub_ops = first ? 512 : 16,
		.edge_size = first ? 256 : 32,
		.records = first ? 256 : 16,
		.full_records = first ? 256 : 16,
		.ub_records = first ? 256 : 16,
		.ub_full_records = first ? 256 : 16,
		.mbufs = first ? 1024 : 64,
	};
	int rc;

	snprintf(name, sizeof(name), "star%u.%u", serial, t->index);
	t->port = (struct hca_port){.ops = &switch_ops, .max_frame = 4400, .queue_size = 64};
	t->rx = rte_ring_create(name, first ? QUEUE : QUEUE / 8, SOCKET_ID_ANY, RING_F_EXACT_SZ);
	UB_HOSTS_CHECK(t->rx != NULL, "no ring");
	mac_of(t->index, cfg.mac);
	rc = hca_create(&cfg, &t->h);
	UB_HOSTS_CHECK(rc == 0, "hca_create of host %u: %d", t->index, rc);
}

static void
open_driver(struct ub_host *t)
{
	struct hca_hw hw = hca_host_hw(t->h);
	struct hca_driver_config dc = {.seed = t->index + 1, .timeout_ms = 60000};
	struct hca_ctl_port port = {.speed = 100000,
				    .state = SOFTHCA_PORT_ACTIVE,
				    .max_mtu = SOFTHCA_MTU_4096,
				    .active_mtu = SOFTHCA_MTU_4096};
	uint8_t eid[16], mac[6];

	hw.progress = progress;
	hw.progress_arg = t;
	CALL(hca_driver_create(&hw, &dc, &t->drv));
	eid_of(t->all, t->index, eid);
	mac_of(t->index, mac);
	memcpy(port.mac, mac, sizeof(mac));
	CALL(hca_driver_set_gid(t->drv, 0, eid, mac, 0xffff));
	for (uint32_t i = 0; i < t->all->n; i++) {
		if (i == t->index || (i != 0 && t->index != 0))
			continue;
		eid_of(t->all, i, eid);
		mac_of(i, mac);
		CALL(hca_driver_set_neigh(t->drv, eid, mac));
	}
	CALL(hca_driver_set_port(t->drv, &port));
}

/* ---- channels ---- */

static uint32_t
tpn_of(bool first, uint32_t peer)
{
	return first ? 0xabc000u + peer : 0xdef001u; /* index 1 at the peer */
}

static void
open_tp(struct ub_hosts *x, bool first, uint32_t peer)
{
	const struct ub_tpc_field fields[] = {
		{HCA_TPC_STATE, HCA_TPS_ACTIVE},
		{HCA_TPC_MODE, HCA_TP_MODE_SACK},
		{HCA_TPC_RULE, HCA_TP_RULE_TIME},
		{HCA_TPC_MTU, peer % 2},
		{HCA_TPC_WINDOW, 0},
		{HCA_TPC_SACK, 1},
		{HCA_TPC_FLAGS, HCA_TP_FLAG_TAID | HCA_TP_FLAG_OFST},
		{HCA_TPC_TPN, tpn_of(first, peer)},
		{HCA_TPC_PEER, tpn_of(!first, peer)},
		{HCA_TPC_PSN, 0xfffff0 + first},
		{HCA_TPC_EPSN, 0xfffff0 + !first},
		{HCA_TPC_REQUESTS, 8},
		{HCA_TPC_ACK_EVERY, 16},
		{HCA_TPC_OOO_EVERY, 1},
		{HCA_TPC_RTO_BASE, 1000},
		{HCA_TPC_RTO_EXPONENT, 1},
		{HCA_TPC_RETRIES, 7},
		{HCA_TPC_SPORT, 0xc000 + peer},
	};
	struct ub_host *t = &x->host[first ? 0 : peer];
	uint32_t tpn = tpn_of(first, peer), group;
	struct hca_tpc image;
	uint8_t eid[16];

	eid_of(x, first ? peer : 0, eid);
	image = ub_tpc(fields, RTE_DIM(fields), 0, eid);
	CALL(hca_driver_create_tp(t->drv, &image));
	if (!first)
		return;
	CALL(hca_driver_create_tpg(t->drv, &tpn, 1, &group));
	UB_HOSTS_CHECK(group == peer - 1, "group %u of host %u", group, peer);
}

void
ub_hosts_close_channel(struct ub_hosts *x, uint32_t peer)
{
	CALL(hca_driver_destroy_tpg(x->host[0].drv, peer - 1));
	CALL(hca_driver_destroy_tp(x->host[0].drv, tpn_of(true, peer)));
	CALL(hca_driver_destroy_tp(x->host[peer].drv, tpn_of(false, peer)));
}

struct hca_tp *
ub_hosts_tp(struct ub_hosts *x, uint32_t peer)
{
	return &x->host[0].h->core->ub->tp[peer];
}

uint64_t
ub_hosts_again(const struct ub_hosts *x, uint32_t host)
{
	static const uint16_t again[] = {
#define X(n) HCA_CTR_##n,
		HCA_UB_AGAIN_LIST(X)
#undef X
	};

	return ub_sum_of(x->host[host].h, again, RTE_DIM(again));
}

/* ---- clients ---- */

static void
open_client(struct ub_host *t)
{
	static struct urma_ctl ctl;
	const struct embed_ctl_config cc = {.name = "star"};

	ctl = ub_no_agent();
	CALL(embed_ctl_open(t->drv, &cc, &t->client));
	t->ctx = urma_context_new(t->client, 0, false, &ctl);
	UB_HOSTS_CHECK(t->ctx != NULL, "context: %s", softhca_urma_reason());
}

void
ub_hosts_open(struct ub_hosts *x, const struct sim_config *cfg, bool v6, uint32_t peers)
{
	static unsigned int serial;
	static bool started;

	if (!started)
		UB_HOSTS_CHECK(test_eal_start(1024) == 0, "rte_eal_init");
	started = true;
	memset(x, 0, sizeof(*x));
	x->layout = cfg->layout;
	x->v6 = v6;
	x->n = peers + 1;
	x->now = MS;
	for (uint32_t i = 0; i < x->n; i++) {
		x->host[i].all = x;
		x->host[i].index = i;
		open_hca(&x->host[i], serial);
		open_driver(&x->host[i]);
		open_client(&x->host[i]);
	}
	serial++;
	for (uint32_t i = 1; i < x->n; i++) {
		open_tp(x, true, i);
		open_tp(x, false, i);
		CALL(hca_driver_permit_tpg(
			x->host[0].drv,
			((const struct lib_context *)x->host[0].client)->info.uar_page, i - 1,
			true));
	}
}

/* ---- the end ---- */

static void
check_quiet(const struct ub_host *t)
{
	struct ub_sum broken = ub_sums_broken(t->h);
	struct hca_usage u;

	UB_HOSTS_CHECK(broken.what == NULL, "host %u: %s: %lu and %lu", t->index, broken.what,
		       (unsigned long)broken.left, (unsigned long)broken.right);
	hca_usage(t->h, &u);
	UB_HOSTS_CHECK(u.records + u.full_records + u.tx_mbufs + u.resp_mbufs + u.edge_objects +
				       u.backlog + u.messages ==
			       0,
		       "host %u: %u records, %u frames, %u messages are in use", t->index,
		       u.records + u.full_records, u.tx_mbufs + u.resp_mbufs, u.messages);
	for (uint32_t l = 0; l < HCA_TP_LANES; l++)
		UB_HOSTS_CHECK(t->h->core->ub->pool[l].free_n == t->h->core->ub->pool[l].count,
			       "host %u: operations are in use", t->index);
}

void
ub_hosts_close(struct ub_hosts *x)
{
	UB_HOSTS_CHECK(x->full == 0, "%lu frames found a full queue", (unsigned long)x->full);
	ub_hosts_run_for(x, 2 * MS);
	for (uint32_t i = 0; i < x->n; i++) {
		struct ub_host *t = &x->host[i];

		UB_HOSTS_CHECK(urma_delete_context(t->ctx) == URMA_SUCCESS, "context: %s",
			       softhca_urma_reason());
		UB_HOSTS_CHECK(softhca_close(t->client) == 0, "close");
		check_quiet(t);
	}
	for (uint32_t i = 1; i < x->n; i++)
		ub_hosts_close_channel(x, i);
	for (uint32_t i = 0; i < x->n; i++) {
		hca_driver_destroy(x->host[i].drv);
		hca_destroy(x->host[i].h);
		rte_ring_free(x->host[i].rx);
	}
}
