/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Builds an HCA: tables, pools, stages, and the graph that connects them. Everything is decided
 * here, once, from the configuration; afterwards the engine only polls.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>

#include "bar/bar.h"
#include "core/tsan.h"
#include "core/table.h"
#include "ctxmgt/ctxmgt.h"
#include "cc/cc.h"
#include "requester/rtt.h"
#include "engine/impl.h"
#include "engine/pkt.h"
#include "requester/record_pool.h"
#include "graph/layout.h"
#include "graph/sleep.h"
#include "queues/eq.h"
#include "wireops/wireops.h"

#define MBUF_CACHE_MAX 256u
/* Default number of records beyond those reserved for QPs. */
#define SHARED_RECORDS 16384u
#define SHARED_FULL_RECORDS 4096u
#define MBUF_CACHE_MIN_POOL 2048u

static const struct edge_row {
	uint8_t from, to;
} edge_rows[HCA_EDGE_N] = {
#define X(e, f, t) [HCA_EDGE_##e] = {HCA_STAGE_##f, HCA_STAGE_##t},
	HCA_EDGE_LIST(X)
#undef X
};

static const struct msg_row {
	uint8_t from, to, kind;
} msg_rows[] = {
#define X(f, t, k) {HCA_STAGE_##f, HCA_STAGE_##t, HCA_OBJECT_##k},
	HCA_MSG_LIST(X)
#undef X
};

struct stage_row {
	int (*init)(struct hca_pipe *h);
	void (*fini)(struct hca_pipe *h);
};

static const struct stage_row stage_rows[HCA_STAGE_N] = {
#define X(e, n, wires) [HCA_STAGE_##e] = {hca_##n##_init, hca_##n##_fini},
	HCA_STAGE_LIST(X)
#undef X
};

/* Messages have object indexes of 16 bits. */
enum {
#define X(section, name, min, max, def) MAX_##name = max,
	HCA_LIMIT_LIST(X)
#undef X
};
#define X(k, log, wires) +(1u << MAX_##log)
_Static_assert(0 HCA_OBJECT_LIST(X) <= 1u << 16, "struct hca_msg_channel");
#undef X

/* Full edges push back along a DAG, so forward edges must not form a cycle. */
static bool
edges_form_dag(void)
{
	bool reach[HCA_STAGE_N][HCA_STAGE_N] = {{false}};

	for (unsigned int i = 0; i < HCA_EDGE_N; i++)
		reach[edge_rows[i].from][edge_rows[i].to] = true;
	for (unsigned int k = 0; k < HCA_STAGE_N; k++)
		for (unsigned int i = 0; i < HCA_STAGE_N; i++)
			for (unsigned int j = 0; j < HCA_STAGE_N; j++)
				reach[i][j] |= reach[i][k] && reach[k][j];
	for (unsigned int i = 0; i < HCA_STAGE_N; i++)
		if (reach[i][i])
			return false;
	return true;
}

static void
apply_defaults(struct hca_config *c)
{
	static const struct {
		size_t off;
		uint32_t value;
	} defaults[] = {
#define X(section, name, min, max, def) {offsetof(struct hca_config, name), def},
		HCA_LIMIT_LIST(X)
#undef X
			{offsetof(struct hca_config, log_eqs), 5},
		{offsetof(struct hca_config, ack_every), 32},
		{offsetof(struct hca_config, max_mtu), 4096},
		{offsetof(struct hca_config, link_mbps), 100000},
		{offsetof(struct hca_config, pipelines), 1},
	};

	for (unsigned int i = 0; i < RTE_DIM(defaults); i++) {
		uint32_t *v = (uint32_t *)((uint8_t *)c + defaults[i].off);

		if (*v == 0)
			*v = defaults[i].value;
	}
	/* two of each kind are reserved per QP; shared ones are added */
	if (c->records == 0 && c->log_qps <= 14)
		c->records = (HCA_RECORDS_PER_QP_RESERVED << c->log_qps) + SHARED_RECORDS;
	if (c->full_records == 0 && c->log_qps <= 14)
		c->full_records = (HCA_RECORDS_PER_QP_RESERVED << c->log_qps) + SHARED_FULL_RECORDS;
	if (c->wires == 0)
		c->wires = HCA_WIRE_BIT(HCA_WIRE_ROCE);
	if (c->fw_ver == 0)
		c->fw_ver = HCA_FW_VER_DEFAULT;
	if (c->port_stall_ns == 0)
		c->port_stall_ns = 1000 * 1000 * 1000;
}

static int
check_config(const struct hca_config *c)
{
	if (c->port == NULL || c->name == NULL || strlen(c->name) > 16 ||
	    (unsigned int)c->layout >= HCA_LAYOUTS)
		return -EINVAL;
#define X(section, name, min, max, def) \
	if (!hca_limit_holds(c->name, min, max, def)) \
		return -EINVAL;
	HCA_LIMIT_LIST(X)
#undef X
	if (c->log_eqs > 5 || c->records < 2 || c->full_records < 2)
		return -EINVAL;
	if (c->max_mtu < 256 || c->max_mtu > 4096)
		return -EINVAL;
	if (c->pipelines > HCA_PIPES_MAX || !rte_is_power_of_2(c->pipelines) ||
	    c->pipelines > RTE_MAX(c->port->queues, 1u) ||
	    hca_layout_workers(c->layout, c->pipelines, c->wires) > HCA_WORKERS_MAX)
		return -EINVAL;
	return 0;
}

static struct rte_ring *
ring_new(struct hca_pipe *h, const char *kind, unsigned int id, unsigned int count,
	 unsigned int esize)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "%s.%u.%s%u", h->cfg.name, h->pipe_number, kind, id);
	return rte_ring_create_elem(name, esize, count, h->cfg.socket_id,
				    RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
}

/* The edges that the rows of the device's wires have. */
static void
edges_name(struct hca_pipe *h)
{
	HCA_WIRES_IN_USE(h, w)
	{
		for (unsigned int i = 0; i < w->num_edges; i++) {
			struct hca_edge *e = &h->edge[w->edges[i].edge];

			e->process = e->plain = w->edges[i].process;
			e->room = w->edges[i].room;
		}
	}
}

static int
edges_init(struct hca_pipe *h)
{
	edges_name(h);
	for (unsigned int i = 0; i < HCA_EDGE_N; i++) {
		const struct edge_row *r = &edge_rows[i];
		struct hca_edge *e = &h->edge[i];

		e->from = r->from;
		e->to = r->to;
		if (e->process == NULL || h->stage_worker[r->from] == h->stage_worker[r->to])
			continue;
		e->wake = &h->wake[h->stage_worker[r->from]].workers;
		e->wake_bit = UINT64_C(1) << h->stage_worker[r->to];
		e->ring = ring_new(h, "e", i, h->cfg.edge_size, sizeof(void *));
		if (e->ring == NULL)
			return -rte_errno;
	}
	return 0;
}

static void
edges_fini(struct hca_pipe *h)
{
	for (unsigned int i = 0; i < HCA_EDGE_N; i++)
		rte_ring_free(h->edge[i].ring);
}

static int
msgs_init(struct hca_pipe *h)
{
	uint32_t stages = hca_stages_of(h->cfg.wires);

	for (unsigned int i = 0; i < RTE_DIM(msg_rows); i++) {
		unsigned int from = msg_rows[i].from, to = msg_rows[i].to;
		const struct hca_object_range *objects;
		struct hca_msg_channel *c;
		uint32_t slots;

		if ((stages >> from & stages >> to & 1) == 0)
			continue;
		c = rte_zmalloc_socket(NULL, sizeof(*c), RTE_CACHE_LINE_SIZE, h->cfg.socket_id);
		if (c == NULL)
			return -ENOMEM;
		h->msg[from][to] = c;
		c->local = h->stage_worker[from] == h->stage_worker[to];
		c->inbox = &h->inbox[to];
		h->inbox[to].remote |= !c->local;
		c->wake = &h->wake[h->stage_worker[from]].workers;
		c->wake_bit = UINT64_C(1) << h->stage_worker[to];
		objects = &h->object[msg_rows[i].kind];
		slots = rte_align32pow2(objects->count);
		c->mask = slots - 1;
		c->slot = rte_zmalloc_socket(NULL, slots * HCA_MSG_BYTES_PER_OBJECT,
					     RTE_CACHE_LINE_SIZE, h->cfg.socket_id);
		if (c->slot == NULL)
			return -ENOMEM;
		c->pending = (uint8_t *)(c->slot + slots) - objects->first;
	}
	return 0;
}

static void
msgs_fini(struct hca_pipe *h)
{
	for (unsigned int i = 0; i < RTE_DIM(msg_rows); i++) {
		struct hca_msg_channel *c = h->msg[msg_rows[i].from][msg_rows[i].to];

		if (c == NULL)
			continue;
		rte_free(c->slot);
		rte_free(c);
	}
}

static struct rte_mempool *
mbuf_pool(struct hca_pipe *h, const char *kind, uint32_t n)
{
	char name[RTE_MEMPOOL_NAMESIZE];
	unsigned int cache = n >= MBUF_CACHE_MIN_POOL ? MBUF_CACHE_MAX : 0;

	snprintf(name, sizeof(name), "%s.%u.%s", h->cfg.name, h->pipe_number, kind);
	return hca_mbuf_pool(name, n, cache, HCA_MBUF_DATA, h->cfg.socket_id);
}

static int
pools_init(struct hca_pipe *h)
{
	hca_tsan_watch_pools();
	h->tx_pool = mbuf_pool(h, "tx", h->cfg.mbufs);
	h->resp_pool = mbuf_pool(h, "resp", h->cfg.mbufs);
	return h->tx_pool != NULL && h->resp_pool != NULL ? 0 : -ENOMEM;
}

static void
pools_fini(struct hca_pipe *h)
{
	rte_mempool_free(h->resp_pool);
	rte_mempool_free(h->tx_pool);
}

/* One for all workers of the device: a round waits for those of all pipes. */
static int
rcu_init(struct hca_core *h)
{
	size_t size = rte_rcu_qsbr_get_memsize(h->hca->num_workers);

	h->rcu = rte_zmalloc_socket(NULL, size, RTE_CACHE_LINE_SIZE, h->cfg.socket_id);
	if (h->rcu == NULL)
		return -ENOMEM;
	if (rte_rcu_qsbr_init(h->rcu, h->hca->num_workers) != 0)
		return -EINVAL;
	for (unsigned int i = 0; i < h->hca->num_workers; i++)
		rte_rcu_qsbr_thread_register(h->rcu, i);
	return 0;
}

static void
rcu_fini(struct hca_core *h)
{
	rte_free(h->rcu);
	h->rcu = NULL;
}

static int
stages_init(struct hca_pipe *h)
{
	for (unsigned int i = 0; i < HCA_STAGE_N; i++) {
		int rc = stage_rows[i].init(h);

		if (rc != 0) {
			while (i-- > 0)
				stage_rows[i].fini(h);
			return rc;
		}
	}
	return 0;
}

static void
stages_fini(struct hca_pipe *h)
{
	for (unsigned int i = HCA_STAGE_N; i-- > 0;)
		stage_rows[i].fini(h);
}

/* The rooms below the engine, in the order in which one builds on the other. */
static const struct {
	int (*init)(struct hca_core *h);
	void (*fini)(struct hca_core *h);
} rooms[] = {
	{hca_bar_init, hca_bar_fini}, {hca_ctxmgt_init, hca_ctxmgt_fini},
	{hca_vtp_init, hca_vtp_fini}, {hca_queues_init, hca_queues_fini},
	{hca_eqs_init, hca_eqs_fini}, {rcu_init, rcu_fini},
};

/* The other pipes use what the first one has. */
static void
rooms_share(struct hca_core *h, const struct hca_core *first)
{
	h->bar0 = first->bar0;
	h->bar2 = first->bar2;
	h->qp = first->qp;
	h->ctxmgt = first->ctxmgt;
	h->vtp = first->vtp;
	h->cq = first->cq;
	h->srq = first->srq;
	h->eqs = first->eqs;
	h->rcu = first->rcu;
}

static int
rooms_init(struct hca_pipe *h)
{
	int rc = 0;

	if (h->pipe_number != 0) {
		rooms_share(&h->core, h->hca->core);
		return 0;
	}
	for (unsigned int i = 0; rc == 0 && i < RTE_DIM(rooms); i++)
		rc = rooms[i].init(&h->core);
	return rc;
}

static void
rooms_fini(struct hca_pipe *h)
{
	for (unsigned int i = RTE_DIM(rooms); i-- > 0 && h->pipe_number == 0;)
		rooms[i].fini(&h->core);
}

static int
wires_init(struct hca_pipe *h)
{
	HCA_WIRES_IN_USE(h, w)
	{
		int rc = w->create != NULL ? w->create(h) : 0;

		if (rc != 0)
			return rc;
	}
	return 0;
}

static void
wires_fini(struct hca_pipe *h)
{
	HCA_WIRES_IN_USE(h, w)
	if (w->destroy != NULL)
		w->destroy(h);
}

/*
 * Parts of a pipe in the order of creation; pipe_fini() goes backwards. Every fini function accepts
 * the state that a failed init leaves.
 */
static const struct {
	int (*init)(struct hca_pipe *h);
	void (*fini)(struct hca_pipe *h);
} parts[] = {
	{rooms_init, rooms_fini},     {wires_init, wires_fini},
	{edges_init, edges_fini},     {msgs_init, msgs_fini},
	{pools_init, pools_fini},     {hca_cc_init, hca_cc_fini},
	{hca_rtt_init, hca_rtt_fini}, {hca_loopback_init, hca_loopback_fini},
	{stages_init, stages_fini},
};

static void
place_stages(struct hca_pipe *h)
{
	enum hca_layout layout = h->cfg.layout;
	uint32_t wires = h->hca->core->cfg.wires;
	unsigned int first = 0;

	h->wake = h->hca->wake;
	if (h->pipe_number != 0)
		first = hca_layout_workers(layout, h->pipe_number, wires);
	h->num_workers = hca_layout_workers(layout, h->pipe_number + 1, wires) - first;
	for (unsigned int s = 0; s < HCA_STAGE_N; s++)
		h->stage_worker[s] = (uint8_t)(first + hca_layout_worker(layout, h->cfg.wires, s));
	h->stage_worker[HCA_STAGE_CEU] = h->hca->core->stage_worker[HCA_STAGE_CEU];
	for (unsigned int w = first; w < first + h->num_workers; w++)
		h->hca->of_worker[w] = h;
	h->single_worker = h->hca->num_workers == 1;
}

static void
number_objects(struct hca_pipe *h)
{
	struct hca_object_range *all = &h->object[HCA_OBJECT_ANY];

#define X(k, log, wires_of_kind) \
	h->object[HCA_OBJECT_##k].first = all->count; \
	if (h->cfg.wires & (wires_of_kind)) \
		h->object[HCA_OBJECT_##k].count = 1u << h->cfg.log; \
	all->count += h->object[HCA_OBJECT_##k].count;
	HCA_OBJECT_LIST(X)
#undef X
}

static void
pipe_fini(struct hca_pipe *p)
{
	for (unsigned int i = RTE_DIM(parts); i-- > 0;)
		parts[i].fini(p);
}

static int
parts_init(struct hca_pipe *p)
{
	for (unsigned int i = 0; i < RTE_DIM(parts); i++) {
		int rc = parts[i].init(p);

		if (rc == 0)
			continue;
		/* stages_init() cleans up after itself; the others are cleaned up here */
		if (i + 1 < RTE_DIM(parts))
			parts[i].fini(p);
		while (i-- > 0)
			parts[i].fini(p);
		return rc;
	}
	return 0;
}

/* cfg: checked, with the defaults applied. */
static int
pipe_init(struct hca *h, struct hca_pipe *p, const struct hca_config *cfg)
{
	int rc;

	p->hca = h;
	p->pipe_number = (uint8_t)(p - h->pipe);
	p->pipe_mask = (uint8_t)(cfg->pipelines - 1);
	p->cfg = *cfg;
	if (p->pipe_number != 0) {
		p->cfg.wires = HCA_WIRE_BIT(HCA_WIRE_ROCE);
		p->cfg.wire_more = NULL;
	}
	rc = hca_wires_set(&p->core);
	if (rc != 0)
		return rc;
	HCA_WIRES_IN_USE(p, w)
	if (w->defaults != NULL)
		w->defaults(&p->cfg);
	/* each pipe has as many QPs as the others, and two records are reserved for each QP */
	p->cfg.records = RTE_MAX(cfg->records / cfg->pipelines, 2u);
	p->cfg.full_records = RTE_MAX(cfg->full_records / cfg->pipelines, 2u);
	p->port = cfg->port;
	p->port_queue = p->pipe_number;
	p->icrc = hca_icrc_select();
	p->qp_mask = (1u << cfg->log_qps) - 1;
	p->cq_mask = (1u << cfg->log_cqs) - 1;
	p->srq_mask = (1u << cfg->log_srqs) - 1;
	number_objects(p);
	place_stages(p);
	return parts_init(p);
}

int
hca_create(const struct hca_config *config, struct hca **out)
{
	struct hca_config cfg = *config;
	struct hca *h;
	int rc;

	if (!edges_form_dag())
		return -EDEADLK;
	apply_defaults(&cfg);
	rc = check_config(&cfg);
	if (rc != 0)
		return rc;
	h = rte_zmalloc_socket("hca", sizeof(*h) + cfg.pipelines * sizeof(h->pipe[0]),
			       RTE_CACHE_LINE_SIZE, cfg.socket_id);
	if (h == NULL)
		return -ENOMEM;
	h->core = &h->pipe[0].core;
	h->num_workers = hca_layout_workers(cfg.layout, cfg.pipelines, cfg.wires);
	for (; h->n_pipes < cfg.pipelines; h->n_pipes++) {
		rc = pipe_init(h, &h->pipe[h->n_pipes], &cfg);
		if (rc != 0)
			goto err_pipes;
	}
	rc = hca_sleep_init(h);
	if (rc != 0)
		goto err_sleep;
	for (unsigned int w = 0; w < hca_workers(h); w++)
		hca_worker_online(h, w);
	*out = h;
	return 0;

err_sleep:
	hca_sleep_fini(h);
err_pipes:
	while (h->n_pipes-- > 0)
		pipe_fini(&h->pipe[h->n_pipes]);
	rte_free(h);
	return rc;
}

void
hca_destroy(struct hca *h)
{
	if (h == NULL)
		return;
	hca_sleep_fini(h);
	while (h->n_pipes-- > 0)
		pipe_fini(&h->pipe[h->n_pipes]);
	rte_free(h);
}
