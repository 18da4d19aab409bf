/* SPDX-License-Identifier: BSD-3-Clause */

#include "requester/rtt.h"
#include "fixture.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_eal.h>

#include "abi_bar.h"
#include "abi_ctx.h"
#include "engine/wire_ops.h"
#include "ub/initiator/parse_jetty.h"
#include "ub/record.h"
#include "requester/record_pool.h"
#include "queues/eq.h"

/* One HCA at a time, because recorders are plain functions. */
static struct fx *current;

static void
remove_runtime_dir(void)
{
	rmdir(rte_eal_get_runtime_dir());
}

static void
eal_start(void)
{
	static bool started;
	char prefix[32];
	char *argv[] = {"test",		  "--no-huge",	 "-m",	"256",		 "--no-pci",
			"--no-telemetry", "--no-shconf", "-c1", "--log-level=4", prefix};
	cpu_set_t cpus;

	if (started)
		return;
	snprintf(prefix, sizeof(prefix), "--file-prefix=fx%d", (int)getpid());
	/* tests run in parallel, so the EAL must not bind us to one CPU */
	sched_getaffinity(0, sizeof(cpus), &cpus);
	if (rte_eal_init(RTE_DIM(argv), argv) < 0)
		abort();
	sched_setaffinity(0, sizeof(cpus), &cpus);
	atexit(remove_runtime_dir);
	started = true;
}

#define X(e, f, t) \
	static void record_##e(struct hca_pipe *h, void *const *objs, unsigned int n, \
			       uint64_t now) \
	{ \
		struct fx_edge *fe = &current->edge[HCA_EDGE_##e]; \
		assert_true(fe->n + n <= FX_OBJECTS); \
		memcpy(&fe->obj[fe->n], objs, n * sizeof(*objs)); \
		fe->n += n; \
	} \
	static unsigned int room_##e(struct hca_pipe *h) \
	{ \
		return current->edge[HCA_EDGE_##e].room; \
	}
HCA_EDGE_LIST(X)
#undef X

/* What the engine reads of the rows; tests that need more put their own into hca_core.wire. */
static const struct hca_wire_ops wires[HCA_WIRES] = {
	[HCA_WIRE_ROCE] = {.wire = HCA_WIRE_ROCE,
			   .qp_stages = 1u << HCA_STAGE_REQ_TX | 1u << HCA_STAGE_REQ_RX |
					1u << HCA_STAGE_EE,
			   .records_to = HCA_STAGE_REQ_TX,
			   .timeouts_to = HCA_STAGE_REQ_RX,
			   .receives_to = HCA_STAGE_EE},
	[HCA_WIRE_UB] = {.wire = HCA_WIRE_UB,
			 .qp_stages = 1u << HCA_STAGE_TAI | 1u << HCA_STAGE_TAT,
			 .records_to = HCA_STAGE_TAI,
			 .timeouts_to = HCA_STAGE_TAI,
			 .receives_to = HCA_STAGE_TAT,
			 .wqe_ops = HCA_JETTY_WQE_OPS},
};

/* Only those of RoCE are in use. */
static void
make_edges(struct fx *fx)
{
	const uint32_t with = hca_stages_of(HCA_WIRE_BIT(HCA_WIRE_ROCE));

#define X(e, f, t) \
	if ((with >> HCA_STAGE_##f & with >> HCA_STAGE_##t & 1) != 0 && \
	    HCA_EDGE_##e != HCA_EDGE_DECAP_ENCAP) \
		fx->h->edge[HCA_EDGE_##e].process = record_##e; \
	fx->edge[HCA_EDGE_##e].room = FX_OBJECTS; \
	fx->h->edge[HCA_EDGE_##e].room = room_##e; \
	fx->h->edge[HCA_EDGE_##e].from = HCA_STAGE_##f; \
	fx->h->edge[HCA_EDGE_##e].to = HCA_STAGE_##t;
	HCA_EDGE_LIST(X)
#undef X
}

static void
make_channel(struct hca_pipe *h, enum hca_stage_id from, enum hca_stage_id to)
{
	struct hca_msg_channel *c = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*c));

	assert_non_null(c);
	memset(c, 0, sizeof(*c));
	c->mask = 2 * (h->qp_mask + 1) - 1; /* tests of UB have as many TPs */
	c->slot = calloc(c->mask + 1, sizeof(*c->slot));
	c->pending = calloc(c->mask + 1, 1);
	c->local = true;
	c->inbox = &h->inbox[to];
	assert_non_null(c->slot);
	assert_non_null(c->pending);
	h->msg[from][to] = c;
}

static void
make_pools(struct hca_pipe *h, const struct fx_config *c)
{
	const struct hca_record_sizes roce = {
		.small = c->records ? c->records : 64,
		.small_bytes = sizeof(struct hca_record),
		.full = c->full_records ? c->full_records : 32,
		.full_bytes = sizeof(struct hca_record_full),
	};
	const struct hca_record_sizes jettys = {64, sizeof(struct hca_ub_record), 32,
						sizeof(struct hca_ub_record_full)};

	assert_int_equal(hca_record_pools_init(h, HCA_WIRE_ROCE, &roce), 0);
	assert_int_equal(hca_record_pools_init(h, HCA_WIRE_UB, &jettys), 0);
}

/* The only pipe of a device without workers. */
static struct hca_pipe *
make_pipe(void)
{
	size_t bytes = sizeof(struct hca) + sizeof(struct hca_pipe);
	struct hca *dev = aligned_alloc(RTE_CACHE_LINE_SIZE, bytes);

	assert_non_null(dev);
	memset(dev, 0, bytes);
	dev->n_pipes = dev->num_workers = 1;
	dev->core = &dev->pipe[0].core;
	dev->core->hca = dev;
	dev->core->wake = dev->wake;
	return &dev->pipe[0];
}

struct fx *
fx_create(const struct fx_config *cfg)
{
	static const struct fx_config none;
	const struct fx_config *c = cfg != NULL ? cfg : &none;
	struct fx *fx;
	struct hca_pipe *h;

	eal_start();
	fx = calloc(1, sizeof(*fx));
	assert_non_null(fx);
	current = fx;
	h = make_pipe();
	fx->h = h;
	h->cfg.name = "fx";
	h->cfg.socket_id = SOCKET_ID_ANY;
	h->cfg.log_qps = c->log_num_qps ? c->log_num_qps : 4;
	h->qp_mask = (1u << h->cfg.log_qps) - 1;
	h->object[HCA_OBJECT_QP].count = h->object[HCA_OBJECT_ANY].count = h->qp_mask + 1;
	h->rtt = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*h->rtt));
	assert_non_null(h->rtt);
	memset(h->rtt, 0, sizeof(*h->rtt));
	h->rtt_peers = calloc(HCA_RTT_PEERS, sizeof(*h->rtt_peers));
	assert_non_null(h->rtt_peers);
	h->qp = aligned_alloc(RTE_CACHE_LINE_SIZE, (h->qp_mask + 1) * sizeof(*h->qp));
	assert_non_null(h->qp);
	memset(h->qp, 0, (h->qp_mask + 1) * sizeof(*h->qp));
	/* zeros, of which tests touch a few pages */
	h->bar2 = mmap(NULL, HCA_BAR2_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);
	assert_true(h->bar2 != MAP_FAILED);
	h->wire[HCA_WIRE_ROCE] = &wires[HCA_WIRE_ROCE];
	h->wire[HCA_WIRE_UB] = &wires[HCA_WIRE_UB];
	for (uint32_t s = 0; s < HCA_ST_COUNT; s++)
		h->service_wire[s] = hca_service_is_ub(s) ? HCA_WIRE_UB : HCA_WIRE_ROCE;
	make_edges(fx);
#define X(f, t, k) make_channel(h, HCA_STAGE_##f, HCA_STAGE_##t);
	HCA_MSG_LIST(X)
#undef X
	make_pools(h, c);
	return fx;
}

void
fx_destroy(struct fx *fx)
{
	struct hca_pipe *h = fx->h;

	for (uint32_t i = 0; i <= h->qp_mask; i++) {
		free(h->qp[i].parser.sq.base);
		free(h->qp[i].parser.chain);
		free(h->qp[i].parser.window);
	}
	for (unsigned int f = 0; f < HCA_STAGE_N; f++) {
		for (unsigned int t = 0; t < HCA_STAGE_N; t++) {
			if (h->msg[f][t] == NULL)
				continue;
			free(h->msg[f][t]->slot);
			free(h->msg[f][t]->pending);
			free(h->msg[f][t]);
		}
	}
	hca_record_pools_fini(h, HCA_WIRE_ROCE);
	hca_record_pools_fini(h, HCA_WIRE_UB);
	munmap(h->bar2, HCA_BAR2_SIZE);
	free(h->rtt_peers);
	free(h->rtt);
	free(h->qp);
	free(h->hca);
	free(fx);
	current = NULL;
}

uint32_t
fx_qpn(uint32_t qpi)
{
	return 0xabc000u | qpi;
}

struct hca_qp *
fx_qp(struct fx *fx, uint32_t qpi, uint32_t page, uint32_t log_sq, uint32_t log_stride,
      uint32_t window)
{
	struct hca_qp *qp = &fx->h->qp[qpi];
	uint32_t bytes = 1u << (log_sq + log_stride);

	qp->cfg.local_qpn = fx_qpn(qpi);
	qp->cfg.usr_page = (uint16_t)page;
	qp->cfg.service = HCA_ST_RC;
	qp->cfg.mtu_log = qp->req_tx.mtu_log = qp->ee.mtu_log = 10;
	qp->cfg.max_rd_atomic = qp->cfg.max_dest_rd_atomic = 16;
	qp->cfg.generation = 7;
	qp->parser.sq.base = aligned_alloc(4096, RTE_ALIGN_CEIL(bytes, 4096u));
	qp->parser.sq.bytes = bytes;
	qp->parser.chain = calloc(1u << log_sq, sizeof(uint32_t));
	qp->parser.window = calloc(window, sizeof(uint32_t));
	assert_non_null(qp->parser.sq.base);
	assert_non_null(qp->parser.chain);
	assert_non_null(qp->parser.window);
	memset(qp->parser.sq.base, 0, bytes);
	qp->parser.sq_size_log = (uint8_t)log_sq;
	qp->parser.sq_stride_log = (uint8_t)log_stride;
	qp->req_tx.window = qp->req_rx.window = qp->parser.window;
	qp->parser.window_mask = qp->req_tx.window_mask = qp->req_rx.window_mask = window - 1;
	qp->cfg.state = HCA_QPS_RTS;
	assert_int_equal(hca_record_reserve_qp(fx->h, HCA_ST_RC, qp->cfg.usr_page, 1), 0);
	return qp;
}

unsigned int
fx_take_msgs(struct fx *fx, enum hca_stage_id from, enum hca_stage_id to, uint32_t qpi)
{
	struct hca_msg_channel *c = fx->h->msg[from][to];
	unsigned int left = hca_msg_count(c), found = 0;

	while (left-- > 0) {
		uint32_t i = 0;
		uint8_t flags = hca_msg_take(c, &i);

		if (i == qpi)
			found |= flags;
		else
			hca_msg_post(c, i, flags);
	}
	return found;
}

uint64_t
fx_counter(const struct fx *fx, enum hca_stage_id s, enum hca_counter c)
{
	return fx->h->line[s].counters[c];
}

/* Functions that stages call, without edges and messages. Weak: some tests link the real ones. */
__attribute__((weak)) void
hca_eq_raise_qp(struct hca_core *h, enum hca_stage_id from, uint8_t type, uint32_t qpi)
{
	assert_true(current->events < RTE_DIM(current->event));
	current->event[current->events++] = (struct fx_event){type, qpi};
}

__attribute__((weak)) void
hca_eq_raise_cq(struct hca_core *h, enum hca_stage_id from, uint8_t type, uint32_t cqi)
{
	assert_true(current->events < RTE_DIM(current->event));
	current->event[current->events++] = (struct fx_event){type, cqi};
}

__attribute__((weak)) void
hca_eq_raise_port(struct hca_core *h, enum hca_stage_id from, uint8_t subtype)
{
	assert_true(current->events < RTE_DIM(current->event));
	current->event[current->events++] = (struct fx_event){HCA_EVENT_PORT_CHANGE, subtype};
}

__attribute__((weak)) bool
hca_qp_to_error(struct hca_pipe *h, enum hca_stage_id from, uint32_t qpi)
{
	static const uint8_t told[] = {HCA_STAGE_PARSER, HCA_STAGE_REQ_TX, HCA_STAGE_REQ_RX,
				       HCA_STAGE_EE};
	struct hca_qp *qp = &h->qp[qpi];
	uint32_t state = hca_qp_state(qp);

	if (state == HCA_QPS_ERR || state == HCA_QPS_RST)
		return false;
	qp->cfg.state = HCA_QPS_ERR;
	for (unsigned int i = 0; i < RTE_DIM(told); i++)
		if (told[i] != from && h->msg[from][told[i]] != NULL)
			hca_msg_send(h, from, told[i], qpi, HCA_MSG_STATE);
	return true;
}

__attribute__((weak)) bool
hca_qp_to_sq_error(struct hca_pipe *h, enum hca_stage_id from, uint32_t qpi)
{
	struct hca_qp *qp = &h->qp[qpi];

	if (!hca_qp_state_cas(qp, HCA_QPS_RTS, HCA_QPS_SQE) &&
	    !hca_qp_state_cas(qp, HCA_QPS_SQD, HCA_QPS_SQE))
		return false;
	if (h->msg[from][HCA_STAGE_PARSER] != NULL && from != HCA_STAGE_PARSER)
		hca_msg_send(h, from, HCA_STAGE_PARSER, qpi, HCA_MSG_STATE);
	return true;
}

__attribute__((weak)) void
hca_eq_raise_srq(struct hca_core *h, enum hca_stage_id from, uint8_t type, uint32_t srqi)
{
	assert_true(current->events < RTE_DIM(current->event));
	current->event[current->events++] = (struct fx_event){type, srqi};
}
