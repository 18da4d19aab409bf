/* SPDX-License-Identifier: BSD-3-Clause */

#include "star.h"

#include <inttypes.h>

#include <rte_common.h>

#include "../test_eal.h"
#include "cc/cc_names.h"
#include "core/wires.h"
#include "embed_ctl.h"
#include "graph/sleep.h"
#include "host.h"

#define TICK_NS 500u
#define DRIVER_EVERY 16u
#define HOLD 16384u
#define SETTING_NS 200000u /* as many ticks as a setting may take */
#define CQES 8192u
#define TIMEOUT 10u /* 4.2 ms */

#define CALL(call) \
	do { \
		int rc_ = (call); \
		STAR_CHECK(rc_ == 0, #call ": %d: %s", rc_, hca_driver_reason()); \
	} while (0)

/* ---- time ---- */

static void
note_queue(struct star_host *t, uint64_t at)
{
	uint64_t i = at / STAR_SAMPLE_NS, bytes = hca_port_switch_queued(t->port);

	if (i < STAR_SAMPLES && t->sample[i] < bytes)
		t->sample[i] = bytes;
}

static void
poll_host(struct star_host *t)
{
	for (unsigned int w = 0; w < hca_workers(t->h); w++)
		hca_poll(t->h, w, t->all->now);
}

static void
poll_all(struct star *x)
{
	x->now += x->cfg.tick_ns;
	x->loops++;
	for (uint32_t i = 0; i < x->n; i++) {
		poll_host(&x->host[i]);
		if (x->loops % DRIVER_EVERY == 0)
			hca_driver_poll(x->host[i].drv);
	}
	for (uint32_t i = 0; i < x->n && x->begin != 0; i++)
		note_queue(&x->host[i], x->now - x->begin);
}

/* Of a command: before flows begin, the other hosts wait. */
static void
progress(void *arg)
{
	struct star_host *t = arg;
	struct star *x = t->all;

	x->now += x->cfg.tick_ns;
	for (uint32_t i = 0; i < x->n; i++)
		if (x->begin != 0 || i == t->index)
			poll_host(&x->host[i]);
}

/* ---- hosts ---- */

void
star_gid(uint32_t index, uint8_t gid[16])
{
	memcpy(gid, (const uint8_t[16]){[10] = 0xff, 0xff, 10, 80, 0, (uint8_t)(index + 1)}, 16);
}

void
star_mac(uint32_t index, uint8_t mac[6])
{
	memcpy(mac, (const uint8_t[6]){2, 0, 0, 0, 2, (uint8_t)(index + 1)}, 6);
}

static void
open_hca(struct star_host *t, unsigned int serial)
{
	const struct star_config *c = &t->all->cfg;
	bool first = t->index == 0;
	char name[24];
	struct hca_config cfg = {
		.name = name,
		.port = t->port,
		.wires = HCA_WIRE_BIT(HCA_WIRE_ROCE) | (c->ub ? HCA_WIRE_BIT(HCA_WIRE_UB) : 0),
		.layout = c->layout,
		.socket_id = -1,
		.log_qps = first ? 8 : 4,
		.log_cqs = 3,
		.log_srqs = 2,
		.log_eqs = 3,
		.log_mpts = first ? 8 : 5,
		.log_mtts = first ? 13 : 11,
		.log_tps = first ? 6 : 2,
		.ub_ops = 256,
		.edge_size = 256,
		.records = first ? 2048 : 256,
		.full_records = first ? 256 : 64,
		.ub_records = 256,
		.ub_full_records = 64,
		.mbufs = first ? 1024 : 256,
		.congestion = c->congestion,
		.pipelines = c->pipes,
	};
	int rc;

	snprintf(name, sizeof(name), "fan%u.%u", serial, t->index);
	star_mac(t->index, cfg.mac);
	rc = hca_create(&cfg, &t->h);
	STAR_CHECK(rc == 0, "hca_create of host %u: %d", t->index, rc);
}

static void
open_driver(struct star_host *t)
{
	struct hca_hw hw = hca_host_hw(t->h);
	struct hca_driver_config dc = {.seed = t->index + 1, .timeout_ms = 60000};
	struct hca_ctl_port port = {.speed = 100000,
				    .state = SOFTHCA_PORT_ACTIVE,
				    .max_mtu = SOFTHCA_MTU_4096,
				    .active_mtu = SOFTHCA_MTU_4096};
	uint8_t gid[16], mac[6];

	hw.progress = progress;
	hw.progress_arg = t;
	CALL(hca_driver_create(&hw, &dc, &t->drv));
	star_gid(t->index, gid);
	star_mac(t->index, mac);
	memcpy(port.mac, mac, sizeof(mac));
	CALL(hca_driver_set_gid(t->drv, 0, gid, mac, 0xffff));
	for (uint32_t i = 0; i < t->all->n; i++) {
		star_gid(i, gid);
		star_mac(i, mac);
		if (i != t->index)
			CALL(hca_driver_set_neigh(t->drv, gid, mac));
	}
	CALL(hca_driver_set_port(t->drv, &port));
}

static void
open_client(struct star_host *t)
{
	const struct embed_ctl_config cc = {.name = "star"};
	struct softhca_cq_init_attr ca = {.cqe = t->index == 0 ? CQES : CQES / 16};

	CALL(embed_ctl_open(t->drv, &cc, &t->ctx));
	t->pd = softhca_alloc_pd(t->ctx);
	STAR_CHECK(t->pd != NULL, "alloc_pd: %s", softhca_last_error(t->ctx));
	t->cq = softhca_create_cq(t->ctx, &ca);
	STAR_CHECK(t->cq != NULL, "create_cq: %s", softhca_last_error(t->ctx));
	t->memory = aligned_alloc(4096, STAR_MESSAGE_MAX);
	STAR_CHECK(t->memory != NULL, "no memory");
	memset(t->memory, (int)t->index, STAR_MESSAGE_MAX);
	t->mr = softhca_reg_mr(t->pd, t->memory, STAR_MESSAGE_MAX,
			       SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE |
				       SOFTHCA_ACCESS_REMOTE_READ);
	STAR_CHECK(t->mr != NULL, "reg_mr: %s", softhca_last_error(t->ctx));
	if (t->all->cfg.ub)
		star_ub_open(t);
}

static void
open_network(struct star *x, unsigned int serial)
{
	struct hca_port *port[STAR_HOSTS];
	char name[24], why[192];
	struct hca_port_switch_config sc = {.name = name,
					    .ports = x->n,
					    .seed = x->cfg.seed,
					    .hold = HOLD,
					    .queues = (uint16_t)x->cfg.pipes,
					    .socket_id = -1};
	uint8_t mac[6];

	snprintf(name, sizeof(name), "fan%u", serial);
	if (getenv("STAR_NETWORK") != NULL)
		x->cfg.network = getenv("STAR_NETWORK");
	STAR_CHECK(hca_switch_parse(x->cfg.network, &sc.settings, why, sizeof(why)) == 0, "%s",
		   why);
	x->network = sc.settings;
	STAR_CHECK(hca_port_switch_open(&sc, port) == 0, "no switch");
	for (uint32_t i = 0; i < x->n; i++) {
		x->host[i].port = port[i];
		star_mac(i, mac);
		CALL(hca_port_switch_give(port[i], mac));
	}
}

void
star_open(struct star *x, const struct star_config *cfg)
{
	static unsigned int serial;
	static bool started;

	if (!started)
		STAR_CHECK(test_eal_start(1024) == 0, "rte_eal_init");
	started = true;
	STAR_CHECK(cfg->hosts <= STAR_HOSTS, "%u hosts", cfg->hosts);
	memset(x, 0, sizeof(*x));
	x->cfg = *cfg;
	if (x->cfg.tick_ns == 0)
		x->cfg.tick_ns = TICK_NS;
	x->n = cfg->hosts;
	x->now = STAR_MS;
	open_network(x, serial);
	for (uint32_t i = 0; i < x->n; i++) {
		x->host[i].all = x;
		x->host[i].index = i;
		open_hca(&x->host[i], serial);
		open_driver(&x->host[i]);
		open_client(&x->host[i]);
	}
	serial++;
}

/* ---- flows ---- */

static struct softhca_qp *
create_qp(struct star_host *t, const struct star_flow *f)
{
	struct softhca_qp_init_attr attr = {
		.send_cq = t->cq,
		.recv_cq = t->cq,
		.qp_type = f->kind == STAR_DATAGRAM ? SOFTHCA_QPT_UC : SOFTHCA_QPT_RC,
		.cap = {.max_send_wr = f->depth,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};
	struct softhca_qp *qp = softhca_create_qp(t->pd, &attr);

	STAR_CHECK(qp != NULL, "create_qp: %s", softhca_last_error(t->ctx));
	return qp;
}

static void
to_state(struct star_host *t, struct softhca_qp *qp, struct softhca_qp_attr *a, uint32_t state,
	 uint32_t mask)
{
	int rc;

	a->qp_state = state;
	rc = softhca_modify_qp(qp, a, mask | SOFTHCA_QP_STATE);
	STAR_CHECK(rc == 0, "modify_qp to %u: %d: %s", state, rc, softhca_last_error(t->ctx));
}

static void
connect_qp(struct star_host *t, struct softhca_qp *qp, uint32_t host, uint32_t qpn,
	   uint32_t congestion)
{
	uint32_t rtr = SOFTHCA_QP_AV | SOFTHCA_QP_PATH_MTU | SOFTHCA_QP_DEST_QPN |
		       SOFTHCA_QP_RQ_PSN,
		 rts = SOFTHCA_QP_SQ_PSN;
	struct softhca_qp_attr a = {
		.port_num = 1,
		.qp_access_flags = SOFTHCA_ACCESS_REMOTE_WRITE | SOFTHCA_ACCESS_REMOTE_READ,
		.path_mtu = SOFTHCA_MTU_4096,
		.dest_qp_num = qpn,
		.max_dest_rd_atomic = 16,
		.max_rd_atomic = 16,
		.min_rnr_timer = 1,
		.timeout = TIMEOUT,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.congestion = (uint8_t)congestion,
		.ah_attr = {.port_num = 1, .is_global = 1, .hop_limit = 64},
	};

	star_gid(host, a.ah_attr.dgid.raw);
	if (qp->qp_type == SOFTHCA_QPT_RC) {
		rtr |= SOFTHCA_QP_MAX_DEST_RD_ATOMIC | SOFTHCA_QP_MIN_RNR_TIMER |
		       (congestion != 0 ? SOFTHCA_QP_CONGESTION : 0);
		rts |= SOFTHCA_QP_TIMEOUT | SOFTHCA_QP_RETRY_CNT | SOFTHCA_QP_RNR_RETRY |
		       SOFTHCA_QP_MAX_QP_RD_ATOMIC;
	}
	to_state(t, qp, &a, SOFTHCA_QPS_INIT,
		 SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT | SOFTHCA_QP_ACCESS_FLAGS);
	to_state(t, qp, &a, SOFTHCA_QPS_RTR, rtr);
	to_state(t, qp, &a, SOFTHCA_QPS_RTS, rts);
}

struct star_flow *
star_add(struct star *x, struct star_flow attr)
{
	struct star_flow *f = &x->flow[x->flows++];
	struct star_host *from = &x->host[attr.from], *to = &x->host[attr.to];

	STAR_CHECK(x->flows <= STAR_FLOWS && attr.message <= STAR_MESSAGE_MAX, "too large");
	*f = attr;
	f->all = x;
	f->requester = f->kind == STAR_READ ? to : from;
	if (f->kind == STAR_UB_WRITE) {
		star_ub_flow_open(f);
		return f;
	}
	f->qp[0] = create_qp(from, f);
	f->qp[1] = create_qp(to, f);
	connect_qp(from, f->qp[0], to->index, f->qp[1]->qp_num, f->congestion);
	connect_qp(to, f->qp[1], from->index, f->qp[0]->qp_num, f->congestion);
	return f;
}

static void
post_roce(struct star_flow *f)
{
	bool read = f->kind == STAR_READ;
	struct star_host *t = f->requester, *peer = &f->all->host[read ? f->from : f->to];
	struct softhca_sge sge = {.addr = (uintptr_t)t->memory,
				  .length = f->message,
				  .lkey = t->mr->lkey};
	struct softhca_send_wr wr = {
		.wr_id = (uintptr_t)f,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = read ? SOFTHCA_WR_RDMA_READ : SOFTHCA_WR_RDMA_WRITE,
		.send_flags = SOFTHCA_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = (uintptr_t)peer->memory, .rkey = peer->mr->rkey},
	};
	struct softhca_send_wr *bad;
	int rc = softhca_post_send(f->qp[read], &wr, &bad);

	STAR_CHECK(rc == 0, "post_send: %d", rc);
}

/* The time at which the next message of a flow is due. */
static uint64_t
due_of(const struct star_flow *f)
{
	uint64_t bits = 8ull * f->message * f->posted;

	return f->start + (f->rate_mbps != 0 ? bits * 1000 / f->rate_mbps : 0);
}

static void
post_due(struct star_flow *f)
{
	uint64_t at = f->all->now - f->all->begin;

	while (f->failed == 0 && f->under_way < f->depth && due_of(f) <= at &&
	       (f->stop == 0 || at < f->stop)) {
		f->posted++;
		f->under_way++;
		if (f->kind == STAR_UB_WRITE)
			star_ub_post(f);
		else
			post_roce(f);
	}
}

static void
done(struct star_flow *f, bool fine)
{
	uint64_t i = (f->all->now - f->all->begin) / STAR_BUCKET_NS;

	f->under_way--;
	f->failed += !fine;
	f->done += fine;
	if (fine && i < STAR_BUCKETS)
		f->bytes[i] += f->message;
}

static void
poll_completions(struct star_host *t)
{
	struct softhca_wc wc[16];
	int n;

	while ((n = softhca_poll_cq(t->cq, 16, wc)) > 0)
		for (int i = 0; i < n; i++)
			done((struct star_flow *)(uintptr_t)wc[i].wr_id,
			     wc[i].status == SOFTHCA_WC_SUCCESS);
	if (t->all->cfg.ub)
		star_ub_poll(t, done);
}

static void
turn(struct star *x)
{
	for (uint32_t i = 0; i < x->flows; i++)
		post_due(&x->flow[i]);
	poll_all(x);
	for (uint32_t i = 0; i < x->n; i++)
		poll_completions(&x->host[i]);
}

void
star_run(struct star *x, uint64_t until_ns)
{
	if (x->begin == 0)
		x->begin = x->now;
	while (x->now - x->begin < until_ns)
		turn(x);
}

void
star_set_congestion(struct star *x, uint32_t host, const char *name)
{
	uint64_t from = x->now;

	CALL(hca_driver_set_congestion(x->host[host].drv, hca_cc_number(name)));
	STAR_CHECK(strcmp(hca_congestion(x->host[host].h), name) == 0, "it has not %s", name);
	STAR_CHECK(x->now - from <= SETTING_NS, "host %u: set in %" PRIu64 " ns", host,
		   x->now - from);
}

static uint32_t
under_way(const struct star *x)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < x->flows; i++)
		n += x->flow[i].under_way;
	return n;
}

void
star_stop(struct star *x)
{
	uint64_t end = x->now + 20000ull * STAR_MS;

	for (uint32_t i = 0; i < x->flows; i++)
		x->flow[i].stop = 1;
	while (under_way(x) != 0 && x->now < end)
		turn(x);
	STAR_CHECK(under_way(x) == 0, "%u messages never end", under_way(x));
	for (end = x->now + STAR_MS; x->now < end || hca_port_switch_held(x->host[0].port) != 0;)
		turn(x);
}

/* Each frame that entered the switch left it once, or is counted; marks that left came. */
static void
check_frames(const struct star *x)
{
	uint64_t in = 0, out = 0, marked = 0, cnps = 0, seen;

	for (uint32_t i = 0; i < x->n; i++) {
		struct hca_port_switch_stats s = star_port(x, i);

		in += s.taken + s.copied;
		out += s.frames + s.dropped + s.missed + s.filtered;
		marked += s.marked;
	}
	seen = star_counter(x, "np_ecn_marked_roce_packets") + star_counter(x, "ub_rx_ecn_marked");
	STAR_CHECK(in == out, "%s: %lu frames into the switch, %lu out of it", x->cfg.name,
		   (unsigned long)in, (unsigned long)out);
	for (uint32_t i = 0; i < x->flows; i++)
		cnps += star_flow_counter(&x->flow[i], "rp_cnp_handled");
	STAR_CHECK(cnps == star_counter(x, "rp_cnp_handled"), "%s: %lu CNPs of QPs, %lu of HCAs",
		   x->cfg.name, (unsigned long)cnps,
		   (unsigned long)star_counter(x, "rp_cnp_handled"));
	STAR_CHECK(marked == seen, "%s: %lu frames were marked, %lu marks were counted",
		   x->cfg.name, (unsigned long)marked, (unsigned long)seen);
}

static void
close_host(struct star_host *t)
{
	if (t->all->cfg.ub)
		star_ub_close(t);
	CALL(softhca_dereg_mr(t->mr));
	CALL(softhca_destroy_cq(t->cq));
	CALL(softhca_dealloc_pd(t->pd));
	CALL(softhca_close(t->ctx));
	hca_driver_destroy(t->drv);
	hca_destroy(t->h);
	free(t->memory);
}

void
star_close(struct star *x)
{
	if (getenv("STAR_TRACE") != NULL)
		star_trace(x);
	check_frames(x);
	for (uint32_t i = 0; i < x->flows; i++) {
		struct star_flow *f = &x->flow[i];

		for (unsigned int k = 0; k < 2 && f->qp[k] != NULL; k++)
			CALL(softhca_destroy_qp(f->qp[k]));
		if (f->kind == STAR_UB_WRITE)
			star_ub_flow_close(f);
	}
	for (uint32_t i = 0; i < x->n; i++)
		close_host(&x->host[i]);
	for (uint32_t i = 0; i < x->n; i++)
		x->host[i].port->ops->close(x->host[i].port);
}

/* ---- figures ---- */

uint64_t
star_counter(const struct star *x, const char *name)
{
	uint64_t sum = 0;

	for (unsigned int c = 0; c < hca_counter_count(); c++)
		for (uint32_t i = 0; strcmp(hca_counter_name(c), name) == 0 && i < x->n; i++)
			sum += hca_counter_value(x->host[i].h, c);
	return sum;
}

static uint64_t
qp_counter(struct softhca_qp *qp, const char *name)
{
	struct softhca_counter c[64];
	int n = softhca_query_qp_counters(qp, c, RTE_DIM(c));

	STAR_CHECK(n > 0 && n <= (int)RTE_DIM(c), "query_qp_counters: %d", n);
	while (n != 0 && strcmp(c[n - 1].name, name) != 0)
		n--;
	return n != 0 ? c[n - 1].value : 0;
}

uint64_t
star_flow_counter(const struct star_flow *f, const char *name)
{
	return f->qp[0] != NULL ? qp_counter(f->qp[0], name) + qp_counter(f->qp[1], name) : 0;
}

struct hca_port_switch_stats
star_port(const struct star *x, uint32_t host)
{
	struct hca_port_switch_stats s;

	hca_port_switch_stats(x->host[host].port, &s);
	return s;
}

uint64_t
star_bytes(const struct star_flow *f, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t sum = 0;

	for (uint64_t i = from_ns / STAR_BUCKET_NS;
	     i < RTE_MIN(to_ns / STAR_BUCKET_NS, STAR_BUCKETS); i++)
		sum += f->bytes[i];
	return sum;
}

double
star_jain(const struct star *x, uint32_t first, uint32_t step, uint32_t n, uint64_t from_ns,
	  uint64_t to_ns)
{
	double sum = 0, squares = 0;

	for (uint32_t i = 0; i < n; i++) {
		double v = (double)star_bytes(&x->flow[first + i * step], from_ns, to_ns);

		sum += v;
		squares += v * v;
	}
	return squares > 0 ? sum * sum / (n * squares) : 0;
}

uint64_t
star_queue(const struct star *x, uint32_t host, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t most = 0;

	for (uint64_t i = from_ns / STAR_SAMPLE_NS;
	     i < RTE_MIN(to_ns / STAR_SAMPLE_NS, STAR_SAMPLES); i++)
		most = RTE_MAX(most, x->host[host].sample[i]);
	return most;
}
