/* SPDX-License-Identifier: BSD-3-Clause */

/* The pair of HCAs, and per row: memory, queues and connected QPs. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "perf_ub.h"

#define GUARD 4096u
#define AREA_MAX (32ull << 20)	/* slots of one kind at one side, unless a message is larger */
#define LENGTH_MAX (8ull << 20) /* largest size of --all-sizes */
#define RIGHTS \
	(SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE | SOFTHCA_ACCESS_REMOTE_READ | \
	 SOFTHCA_ACCESS_REMOTE_ATOMIC)

/* Rights of memory and QPs; daemons of older releases refuse the right of FLUSH. */
static uint32_t
rights_of(enum perf_op op)
{
	return RIGHTS | (op == PERF_OP_FLUSH ? SOFTHCA_ACCESS_FLUSH_GLOBAL : 0);
}

static int
failed(const char *what, const char *why)
{
	fprintf(stderr, "softhca-perf: %s: %s\n", what, why);
	return -EIO;
}

/* Index of the GID of --ip and --vlan, as <softhca/embed.h> numbers them. */
static uint8_t
gid_index(const struct perf_options *opt)
{
	return (uint8_t)((opt->ip == 6 ? 1 : 0) + (opt->embed.vlan != 0 ? 2 : 0));
}

static uint32_t
log2_at_least(uint64_t n, uint32_t least, uint32_t most)
{
	uint32_t log = least;

	while (log < most && 1ull << log < n)
		log++;
	return log;
}

/*
 * Tables as large as this run needs: to initialise and to clear those of the largest HCA takes
 * longer than a short run.
 */
static void
fit_sizes(struct softhca_embed_config *config, const struct perf_options *opt)
{
	uint64_t slot = opt->all_sizes ? 2 * LENGTH_MAX : 2 * opt->size + opt->stride;
	uint64_t bytes = slot * opt->qps > AREA_MAX ? slot * opt->qps : AREA_MAX;

	config->log_qps = log2_at_least(2ull * opt->qps + 32, 6, 14);
	config->log_cqs = config->log_srqs = 6;
	config->log_mpts = config->log_qps + 3;
	config->ub = opt->wire == PERF_WIRE_UB;
	if (config->ub)
		config->max_mtu = perf_mtu_code(opt->mtu);
	config->log_mtts = log2_at_least(bytes / 2048 + 64ull * opt->qps, 14, 20);
}

static void
note_in_use(struct perf_session *s)
{
	for (unsigned int i = 0; i < 2; i++) {
		int n = softhca_embed_resources(s->embed, i, s->in_use[i].value, PERF_VALUES_MAX);

		s->in_use[i].count = n > 0 ? (unsigned int)n : 0;
	}
}

int
perf_session_open(struct perf_session *s, const struct perf_options *opt)
{
	struct softhca_embed_config config = opt->embed;

	memset(s, 0, sizeof(*s));
	fit_sizes(&config, opt);
	if (opt->congestion != 0)
		config.congestion = perf_congestion_names[opt->congestion];
	s->opt = opt;
	s->wake_fd = -1;
	s->local[0] = s->local[1] = true;
	if (softhca_embed_create(&config, &s->embed) != 0)
		return failed("no HCAs", softhca_embed_last_error());
	note_in_use(s);
	if (opt->faults[0] != '\0' && softhca_embed_impair(s->embed, opt->faults) != 0)
		return failed("--impair", softhca_embed_last_error());
	if (opt->pcap != NULL && softhca_embed_capture(s->embed, opt->pcap) != 0)
		return failed(opt->pcap, softhca_embed_last_error());
	for (unsigned int i = 0; i < 2; i++) {
		if (softhca_embed_open(s->embed, i, &s->ctx[i]) != 0)
			return failed("open", softhca_embed_last_error());
		s->pd[i] = softhca_alloc_pd(s->ctx[i]);
		if (s->pd[i] == NULL)
			return failed("alloc_pd", softhca_last_error(s->ctx[i]));
		s->sgid_index[i] = gid_index(opt);
		if (softhca_query_gid(s->ctx[i], 1, s->sgid_index[i], &s->gid[i]) != 0)
			return failed("query_gid", softhca_last_error(s->ctx[i]));
	}
	if (softhca_query_device(s->ctx[0], &s->device) != 0)
		return failed("query_device", softhca_last_error(s->ctx[0]));
	return 0;
}

/* Kinds of resources that are still in use, of both HCAs. */
static unsigned int
left_in_use(const struct perf_session *s, bool print)
{
	struct softhca_value v[PERF_VALUES_MAX];
	unsigned int left = 0;

	for (unsigned int i = 0; i < 2; i++) {
		int n = softhca_embed_resources(s->embed, i, v, PERF_VALUES_MAX);

		for (int k = 0; k < n; k++) {
			uint64_t own =
				k < (int)s->in_use[i].count ? s->in_use[i].value[k].value : 0;

			/* fewer: the agent was still starting when the first values were read */
			if (v[k].value <= own)
				continue;
			left++;
			if (print)
				fprintf(stderr, "softhca-perf: HCA %u: %llu %s left in use\n", i,
					(unsigned long long)(v[k].value - own), v[k].name);
		}
	}
	return left;
}

unsigned int
perf_session_close(struct perf_session *s)
{
	unsigned int leaked;

	if (s->embed == NULL)
		return 0;
	for (unsigned int i = 0; i < 2; i++) {
		if (s->pd[i] != NULL)
			softhca_dealloc_pd(s->pd[i]);
		if (s->ctx[i] != NULL)
			softhca_close(s->ctx[i]);
	}
	/* Frames still on their way are not leaks: give them time to arrive. */
	for (unsigned int i = 0; i < 2000 && (i % 16 != 0 || left_in_use(s, false) != 0); i++) {
		softhca_embed_progress(s->embed);
		usleep(10);
	}
	leaked = left_in_use(s, true);
	softhca_embed_destroy(s->embed);
	return leaked;
}

static uint64_t
pow2_at_least(uint64_t n)
{
	uint64_t p = 1;

	while (p < n)
		p <<= 1;
	return p;
}

static void
choose_slots(struct perf_session *s)
{
	const struct perf_options *opt = s->opt;
	uint64_t reach = s->size + (opt->op == PERF_OP_NOTIFY ? PERF_NOTIFY_SIZE : 0), fit;

	s->stride = opt->stride;
	if (s->stride == 0)
		s->stride = pow2_at_least(reach < 4096 ? 4096 : reach);
	fit = AREA_MAX / opt->qps / s->stride;
	s->slots = opt->slots;
	if (s->slots == 0)
		s->slots = fit < 1 ? 1 : fit < opt->depth ? (uint32_t)fit : opt->depth;
}

/* With a daemon, only memory shared with it can be used. */
static void *
get_memory(const struct perf_session *s, uint64_t bytes)
{
	void *p;

	if (s->embed == NULL)
		return softhca_alloc(bytes);
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	madvise(p, bytes, MADV_HUGEPAGE);
	memset(p, 0, bytes);
	return p;
}

static void
put_memory(const struct perf_session *s, void *p, uint64_t bytes)
{
	if (p == NULL)
		return;
	if (s->embed == NULL)
		softhca_free(p);
	else
		munmap(p, bytes);
}

static int
open_area(struct perf_session *s, unsigned int side, enum perf_area_kind kind)
{
	struct perf_area *a = &s->area[side][kind];

	a->length = s->stride * s->slots * s->num_flows;
	a->map_length = a->length + 2 * GUARD;
	a->map = get_memory(s, a->map_length);
	if (a->map == NULL)
		return failed("memory", strerror(errno));
	a->base = (uint8_t *)a->map + GUARD;
	if (s->ub != NULL)
		return perf_ub_area_open(s, side, kind);
	a->mr = softhca_reg_mr(s->pd[side], a->base, a->length, rights_of(s->opt->op));
	if (a->mr == NULL)
		return failed("reg_mr", softhca_last_error(s->ctx[side]));
	a->addr = (uintptr_t)a->base;
	a->rkey = a->mr->rkey;
	return 0;
}

/* Another process refills its receives when it finds time: it has more of them. */
uint32_t
perf_recv_depth(const struct perf_session *s)
{
	uint32_t usual = s->opt->depth < 32 ? 64 : 2 * s->opt->depth;

	if (s->local[1] || s->num_flows > 16)
		return usual;
	usual = usual < 256 ? 256 : 2 * usual;
	return usual < s->device.max_qp_wr ? usual : s->device.max_qp_wr;
}

static int
open_cq(struct perf_session *s, unsigned int side, struct softhca_cq **cq)
{
	struct softhca_cq_init_attr attr = {
		.cqe = s->num_flows * (s->local[1] ? 2 * s->opt->depth : perf_recv_depth(s)) + 64,
		.channel = s->channel[side],
		.flags = SOFTHCA_SINGLE_THREADED,
	};

	*cq = softhca_create_cq(s->ctx[side], &attr);
	return *cq != NULL ? 0 : failed("create_cq", softhca_last_error(s->ctx[side]));
}

/* One SRQ for all flows; half the receives of all RQs, at most the size of a queue. */
static int
open_srq(struct perf_session *s, unsigned int side)
{
	bool xrc = s->opt->service == PERF_SERVICE_XRC;
	uint64_t wanted = (uint64_t)s->num_flows * perf_recv_depth(s);
	struct softhca_xrcd_init_attr domain = {.fd = -1};
	struct softhca_srq_init_attr_ex attr = {
		.attr = {.max_sge = 2},
		.srq_type = xrc ? SOFTHCA_SRQT_XRC : SOFTHCA_SRQT_BASIC,
		.pd = s->pd[side],
		.cq = s->recv_cq[side],
	};

	if (!xrc && !s->opt->srq)
		return 0;
	attr.attr.max_wr = wanted < s->device.max_srq_wr ? (uint32_t)wanted : s->device.max_srq_wr;
	if (s->opt->op == PERF_OP_SEND && s->num_flows * s->opt->depth > attr.attr.max_wr) {
		fprintf(stderr, "softhca-perf: %u QPs with %u receives each, an SRQ holds %u\n",
			s->num_flows, s->opt->depth, attr.attr.max_wr);
		return -EINVAL;
	}
	if (xrc) {
		s->xrcd[side] = softhca_open_xrcd(s->ctx[side], &domain);
		if (s->xrcd[side] == NULL)
			return failed("open_xrcd", softhca_last_error(s->ctx[side]));
		attr.xrcd = s->xrcd[side];
	}
	s->srq[side] = softhca_create_srq_ex(s->ctx[side], &attr);
	if (s->srq[side] == NULL)
		return failed("create_srq_ex", softhca_last_error(s->ctx[side]));
	s->srqn[side] = s->srq[side]->handle;
	return 0;
}

static int
create_qp(struct perf_session *s, unsigned int side, struct softhca_qp **qp)
{
	bool own_rq = s->srq[side] == NULL;
	uint32_t requests = s->opt->depth * (s->opt->op == PERF_OP_FLUSH ? 2 : 1);
	struct softhca_qp_init_attr attr = {
		.send_cq = s->send_cq[side],
		.recv_cq = s->recv_cq[side],
		.srq = s->opt->service == PERF_SERVICE_XRC ? NULL : s->srq[side],
		.qp_type = perf_service_types[s->opt->service],
		.flags = SOFTHCA_SINGLE_THREADED,
		.cap =
			{
				.max_send_wr = requests < 64 ? 64 : requests,
				.max_recv_wr = own_rq ? perf_recv_depth(s) : 0,
				.max_send_sge = 1,
				.max_recv_sge = 2,
				.max_inline_data = s->opt->inline_max,
			},
	};

	*qp = softhca_create_qp(s->pd[side], &attr);
	return *qp != NULL ? 0 : failed("create_qp", softhca_last_error(s->ctx[side]));
}

/* The end of XRC that executes requests */
static int
create_target(struct perf_session *s, unsigned int side, struct softhca_qp **qp)
{
	struct softhca_qp_init_attr_ex attr = {
		.qp_type = SOFTHCA_QPT_XRC_RECV,
		.comp_mask = SOFTHCA_QP_INIT_ATTR_XRCD,
		.xrcd = s->xrcd[side],
	};

	*qp = softhca_create_qp_ex(s->ctx[side], &attr);
	return *qp != NULL ? 0 : failed("create_qp_ex", softhca_last_error(s->ctx[side]));
}

static struct softhca_ah_attr
path_to(const struct perf_session *s, unsigned int side)
{
	return (struct softhca_ah_attr){
		.port_num = 1,
		.is_global = 1,
		.sgid_index = s->sgid_index[side],
		.dgid = s->gid[!side],
	};
}

#define CONNECT (SOFTHCA_QP_AV | SOFTHCA_QP_PATH_MTU | SOFTHCA_QP_DEST_QPN | SOFTHCA_QP_RQ_PSN)
#define RESPOND (SOFTHCA_QP_MAX_DEST_RD_ATOMIC | SOFTHCA_QP_MIN_RNR_TIMER)
#define REQUEST \
	(SOFTHCA_QP_SQ_PSN | SOFTHCA_QP_TIMEOUT | SOFTHCA_QP_RETRY_CNT | SOFTHCA_QP_RNR_RETRY | \
	 SOFTHCA_QP_MAX_QP_RD_ATOMIC)

/* Attributes of each type of QP on its way to INIT, RTR, RTS */
struct steps {
	uint32_t type, init, rtr, rts;
};

static const struct steps steps[] = {
	{SOFTHCA_QPT_RC, SOFTHCA_QP_ACCESS_FLAGS, CONNECT | RESPOND, REQUEST},
	{SOFTHCA_QPT_UC, SOFTHCA_QP_ACCESS_FLAGS, CONNECT, SOFTHCA_QP_SQ_PSN},
	{SOFTHCA_QPT_UD, SOFTHCA_QP_QKEY, 0, SOFTHCA_QP_SQ_PSN},
	{SOFTHCA_QPT_XRC_SEND, SOFTHCA_QP_ACCESS_FLAGS, CONNECT, REQUEST},
	{SOFTHCA_QPT_XRC_RECV, SOFTHCA_QP_ACCESS_FLAGS, CONNECT | RESPOND,
	 SOFTHCA_QP_SQ_PSN | SOFTHCA_QP_TIMEOUT},
};

static const struct steps *
steps_of(uint32_t type)
{
	const struct steps *t = steps;

	while (t->type != type)
		t++;
	return t;
}

/* Back to back both HCAs have that of the command line. */
static uint8_t
congestion_of(const struct perf_session *s, const struct perf_flow *f)
{
	if (f->class.congestion != 0)
		return f->class.congestion;
	return perf_is_remote(s->opt) ? (uint8_t)s->opt->congestion : 0;
}

/* INIT, RTR, RTS with all values of both ends. */
static int
connect_qp(struct perf_session *s, const struct perf_flow *f, unsigned int side,
	   struct softhca_qp *qp, uint32_t peer)
{
	const struct steps *t = steps_of(qp->qp_type);
	struct softhca_qp_attr a = {
		.qp_state = SOFTHCA_QPS_INIT,
		.port_num = 1,
		.qkey = PERF_QKEY,
		.qp_access_flags = rights_of(s->opt->op) & ~(uint32_t)SOFTHCA_ACCESS_LOCAL_WRITE,
		.path_mtu = perf_mtu_code(s->opt->mtu),
		.dest_qp_num = peer,
		.max_dest_rd_atomic = (uint8_t)s->device.max_qp_rd_atom,
		.max_rd_atomic = (uint8_t)s->device.max_qp_init_rd_atom,
		.min_rnr_timer = 1,
		.timeout = (uint8_t)s->opt->ack_timeout,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.sq_psn = f->psn[side],
		.rq_psn = f->psn[!side],
		.ah_attr = path_to(s, side),
		.congestion = congestion_of(s, f),
	};
	uint32_t rtr = t->rtr | (a.congestion != 0 ? SOFTHCA_QP_CONGESTION : 0);
	int err;

	a.ah_attr.traffic_class = f->class.traffic_class;
	err = softhca_modify_qp(
		qp, &a, SOFTHCA_QP_STATE | SOFTHCA_QP_PORT | SOFTHCA_QP_PKEY_INDEX | t->init);

	a.qp_state = SOFTHCA_QPS_RTR;
	if (err == 0)
		err = softhca_modify_qp(qp, &a, SOFTHCA_QP_STATE | rtr);
	a.qp_state = SOFTHCA_QPS_RTS;
	if (err == 0)
		err = softhca_modify_qp(qp, &a, SOFTHCA_QP_STATE | t->rts);
	return err == 0 ? 0 : failed("modify_qp", softhca_last_error(s->ctx[side]));
}

static int
open_flow(struct perf_session *s, struct perf_flow *f, unsigned int side)
{
	bool xrc = s->opt->service == PERF_SERVICE_XRC;
	int err = create_qp(s, side, &f->qp[side]);

	if (err == 0 && xrc)
		err = create_target(s, side, &f->target[side]);
	if (err != 0)
		return err;
	f->qpn[side] = f->qp[side]->qp_num;
	f->executes[side] = xrc ? f->target[side]->qp_num : f->qpn[side];
	return 0;
}

static int
connect_flow(struct perf_session *s, struct perf_flow *f)
{
	int err = 0;

	for (unsigned int side = 0; side < 2 && err == 0; side++) {
		if (!s->local[side])
			continue;
		err = connect_qp(s, f, side, f->qp[side], f->executes[!side]);
		if (err == 0 && s->opt->service == PERF_SERVICE_XRC)
			err = connect_qp(s, f, side, f->target[side], f->qpn[!side]);
	}
	return err;
}

/* UD: destination, and the place of headers in front of received data. */
static int
open_datagrams(struct perf_session *s, unsigned int side)
{
	struct softhca_ah_attr a = path_to(s, side);

	if (s->opt->service != PERF_SERVICE_UD)
		return 0;
	s->ah[side] = softhca_create_ah(s->pd[side], &a);
	if (s->ah[side] == NULL)
		return failed("create_ah", softhca_last_error(s->ctx[side]));
	s->grh[side] = get_memory(s, GUARD);
	if (s->grh[side] == NULL)
		return failed("memory", strerror(ENOMEM));
	s->grh_mr[side] =
		softhca_reg_mr(s->pd[side], s->grh[side], GUARD, SOFTHCA_ACCESS_LOCAL_WRITE);
	return s->grh_mr[side] != NULL ? 0 : failed("reg_mr", softhca_last_error(s->ctx[side]));
}

static int
open_queues(struct perf_session *s, unsigned int side)
{
	int err = open_cq(s, side, &s->send_cq[side]);

	if (err == 0)
		err = open_cq(s, side, &s->recv_cq[side]);
	if (err == 0)
		err = open_srq(s, side);
	return err == 0 ? open_datagrams(s, side) : err;
}

static int
open_side(struct perf_session *s, unsigned int side)
{
	int err = 0;

	for (unsigned int k = 0; k < PERF_AREA_KINDS && err == 0; k++)
		err = open_area(s, side, k);
	if (err == 0)
		err = s->ub != NULL ? perf_ub_queues_open(s, side) : open_queues(s, side);
	for (uint32_t i = 0; i < s->num_flows && err == 0; i++)
		err = s->ub != NULL ? perf_ub_flow_open(s, i, side)
				    : open_flow(s, &s->flows[i], side);
	return err;
}

int
perf_row_open(struct perf_session *s, uint64_t size)
{
	int err = 0;

	s->size = size;
	s->num_flows = s->opt->qps;
	choose_slots(s);
	s->flows = aligned_alloc(PERF_LINE, s->num_flows * sizeof(*s->flows));
	if (s->flows == NULL)
		return failed("memory", strerror(ENOMEM));
	memset(s->flows, 0, s->num_flows * sizeof(*s->flows));
	err = s->opt->wire == PERF_WIRE_UB ? perf_ub_session_open(s) : perf_channels_open(s);
	for (unsigned int side = 0; side < 2 && err == 0; side++)
		if (s->local[side])
			err = open_side(s, side);
	return err;
}

int
perf_row_connect(struct perf_session *s)
{
	int err = s->ub != NULL ? perf_ub_connect(s) : 0;

	for (uint32_t i = 0; s->ub == NULL && i < s->num_flows && err == 0; i++)
		err = connect_flow(s, &s->flows[i]);
	return err;
}

static void
close_side(struct perf_session *s, unsigned int side)
{
	if (s->srq[side] != NULL)
		softhca_destroy_srq(s->srq[side]);
	if (s->xrcd[side] != NULL)
		softhca_close_xrcd(s->xrcd[side]);
	if (s->ah[side] != NULL)
		softhca_destroy_ah(s->ah[side]);
	if (s->grh_mr[side] != NULL)
		softhca_dereg_mr(s->grh_mr[side]);
	put_memory(s, s->grh[side], GUARD);
	s->srq[side] = NULL;
	s->xrcd[side] = NULL;
	s->ah[side] = NULL;
	s->grh_mr[side] = NULL;
	s->grh[side] = NULL;
	if (s->send_cq[side] != NULL)
		softhca_destroy_cq(s->send_cq[side]);
	if (s->recv_cq[side] != NULL)
		softhca_destroy_cq(s->recv_cq[side]);
	s->send_cq[side] = s->recv_cq[side] = NULL;
	for (unsigned int k = 0; k < PERF_AREA_KINDS; k++) {
		struct perf_area *a = &s->area[side][k];

		if (a->mr != NULL)
			softhca_dereg_mr(a->mr);
		put_memory(s, a->map, a->map_length);
		memset(a, 0, sizeof(*a));
	}
}

void
perf_row_close(struct perf_session *s)
{
	for (uint32_t i = 0; s->flows != NULL && i < s->num_flows; i++) {
		for (unsigned int side = 0; side < 2; side++) {
			if (s->flows[i].qp[side] != NULL)
				softhca_destroy_qp(s->flows[i].qp[side]);
			if (s->flows[i].target[side] != NULL)
				softhca_destroy_qp(s->flows[i].target[side]);
		}
		perf_ring_free(&s->flows[i].ring);
		perf_ring_free(&s->flows[i].back);
	}
	perf_ub_row_close(s);
	free(s->flows);
	s->flows = NULL;
	close_side(s, 0);
	close_side(s, 1);
	perf_ub_session_close(s);
	perf_channels_close(s);
}

uint8_t *
perf_slot(const struct perf_session *s, unsigned int side, enum perf_area_kind kind, uint32_t flow,
	  uint32_t slot)
{
	return s->area[side][kind].base + ((uint64_t)flow * s->slots + slot) * s->stride;
}

uint64_t
perf_slot_addr(const struct perf_session *s, unsigned int side, enum perf_area_kind kind,
	       uint32_t flow, uint32_t slot)
{
	return s->area[side][kind].addr + ((uint64_t)flow * s->slots + slot) * s->stride;
}
