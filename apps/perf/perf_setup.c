/* SPDX-License-Identifier: BSD-3-Clause */

/* The pair of HCAs, and per row: memory, queues and connected QPs. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "perf.h"

#define GUARD 4096u
#define AREA_MAX (32ull << 20) /* slots of one kind at one side, unless a message is larger */
#define RIGHTS \
	(SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE | SOFTHCA_ACCESS_REMOTE_READ | \
	 SOFTHCA_ACCESS_REMOTE_ATOMIC)

static int
failed(const char *what, const char *why)
{
	fprintf(stderr, "softhca-perf: %s: %s\n", what, why);
	return -EIO;
}

int
perf_session_open(struct perf_session *s, const struct perf_options *opt)
{
	struct softhca_embed_config config = opt->embed;

	memset(s, 0, sizeof(*s));
	s->opt = opt;
	if (softhca_embed_create(&config, &s->embed) != 0)
		return failed("no HCAs", softhca_embed_last_error());
	if (opt->pcap != NULL && softhca_embed_capture(s->embed, opt->pcap) != 0)
		return failed(opt->pcap, softhca_embed_last_error());
	for (unsigned int i = 0; i < 2; i++) {
		if (softhca_embed_open(s->embed, i, &s->ctx[i]) != 0)
			return failed("open", softhca_embed_last_error());
		s->pd[i] = softhca_alloc_pd(s->ctx[i]);
		if (s->pd[i] == NULL)
			return failed("alloc_pd", softhca_last_error(s->ctx[i]));
	}
	if (softhca_query_device(s->ctx[0], &s->device) != 0)
		return failed("query_device", softhca_last_error(s->ctx[0]));
	return 0;
}

unsigned int
perf_session_close(struct perf_session *s)
{
	struct softhca_value v[PERF_VALUES_MAX];
	unsigned int leaked = 0;

	if (s->embed == NULL)
		return 0;
	for (unsigned int i = 0; i < 2; i++) {
		if (s->pd[i] != NULL)
			softhca_dealloc_pd(s->pd[i]);
		if (s->ctx[i] != NULL)
			softhca_close(s->ctx[i]);
	}
	/* Frames still on their way are not leaks: give them time to arrive. */
	for (unsigned int i = 0; i < 2000; i++) {
		softhca_embed_progress(s->embed);
		usleep(10);
	}
	for (unsigned int i = 0; i < 2; i++) {
		int n = softhca_embed_resources(s->embed, i, v, PERF_VALUES_MAX);

		for (int k = 0; k < n; k++) {
			if (v[k].value == 0)
				continue;
			fprintf(stderr, "softhca-perf: HCA %u: %llu %s left in use\n", i,
				(unsigned long long)v[k].value, v[k].name);
			leaked++;
		}
	}
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
	uint64_t fit;

	s->stride = opt->stride;
	if (s->stride == 0)
		s->stride = s->size <= 4096 ? 4096 : pow2_at_least(s->size);
	fit = AREA_MAX / opt->qps / s->stride;
	s->slots = opt->slots;
	if (s->slots == 0)
		s->slots = fit < 1 ? 1 : fit < opt->depth ? (uint32_t)fit : opt->depth;
}

static int
open_area(struct perf_session *s, unsigned int side, struct perf_area *a)
{
	a->length = s->stride * s->slots * s->num_flows;
	a->map_length = a->length + 2 * GUARD;
	a->map = mmap(NULL, a->map_length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	if (a->map == MAP_FAILED) {
		a->map = NULL;
		return failed("memory", strerror(errno));
	}
	madvise(a->map, a->map_length, MADV_HUGEPAGE);
	memset(a->map, 0, a->map_length);
	a->base = (uint8_t *)a->map + GUARD;
	a->mr = softhca_reg_mr(s->pd[side], a->base, a->length, RIGHTS);
	if (a->mr == NULL)
		return failed("reg_mr", softhca_last_error(s->ctx[side]));
	return 0;
}

static int
open_cq(struct perf_session *s, unsigned int side, struct softhca_cq **cq)
{
	struct softhca_cq_init_attr attr = {
		.cqe = s->num_flows * 2 * s->opt->depth + 64,
		.flags = SOFTHCA_SINGLE_THREADED,
	};

	*cq = softhca_create_cq(s->ctx[side], &attr);
	return *cq != NULL ? 0 : failed("create_cq", softhca_last_error(s->ctx[side]));
}

static int
create_qp(struct perf_session *s, unsigned int side, struct softhca_qp **qp)
{
	struct softhca_qp_init_attr attr = {
		.send_cq = s->send_cq[side],
		.recv_cq = s->recv_cq[side],
		.qp_type = SOFTHCA_QPT_RC,
		.flags = SOFTHCA_SINGLE_THREADED,
		.cap =
			{
				.max_send_wr = s->opt->depth < 64 ? 64 : s->opt->depth,
				.max_recv_wr = s->opt->depth < 32 ? 64 : 2 * s->opt->depth,
				.max_send_sge = 1,
				.max_recv_sge = 1,
			},
	};

	*qp = softhca_create_qp(s->pd[side], &attr);
	return *qp != NULL ? 0 : failed("create_qp", softhca_last_error(s->ctx[side]));
}

static uint32_t
mtu_code(uint32_t bytes)
{
	uint32_t code = SOFTHCA_MTU_256;

	while (128u << code < bytes)
		code++;
	return code;
}

/* INIT, RTR, RTS with everything both ends need to know. */
static int
connect_qp(struct perf_session *s, unsigned int side, struct softhca_qp *qp, uint32_t peer)
{
	struct softhca_qp_attr a = {
		.qp_state = SOFTHCA_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = RIGHTS & ~(uint32_t)SOFTHCA_ACCESS_LOCAL_WRITE,
		.path_mtu = mtu_code(s->opt->mtu),
		.dest_qp_num = peer,
		.max_dest_rd_atomic = (uint8_t)s->device.max_qp_rd_atom,
		.max_rd_atomic = (uint8_t)s->device.max_qp_init_rd_atom,
		.min_rnr_timer = 1,
		.ah_attr = {.port_num = 1, .is_global = 1},
		.timeout = (uint8_t)s->opt->ack_timeout,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};
	int err = softhca_query_gid(s->ctx[!side], 1, 0, &a.ah_attr.dgid);

	if (err == 0)
		err = softhca_modify_qp(qp, &a,
					SOFTHCA_QP_STATE | SOFTHCA_QP_PORT | SOFTHCA_QP_PKEY_INDEX |
						SOFTHCA_QP_ACCESS_FLAGS);
	a.qp_state = SOFTHCA_QPS_RTR;
	if (err == 0)
		err = softhca_modify_qp(qp, &a,
					SOFTHCA_QP_STATE | SOFTHCA_QP_AV | SOFTHCA_QP_PATH_MTU |
						SOFTHCA_QP_DEST_QPN | SOFTHCA_QP_RQ_PSN |
						SOFTHCA_QP_MAX_DEST_RD_ATOMIC |
						SOFTHCA_QP_MIN_RNR_TIMER);
	a.qp_state = SOFTHCA_QPS_RTS;
	if (err == 0)
		err = softhca_modify_qp(qp, &a,
					SOFTHCA_QP_STATE | SOFTHCA_QP_SQ_PSN | SOFTHCA_QP_TIMEOUT |
						SOFTHCA_QP_RETRY_CNT | SOFTHCA_QP_RNR_RETRY |
						SOFTHCA_QP_MAX_QP_RD_ATOMIC);
	return err == 0 ? 0 : failed("modify_qp", softhca_last_error(s->ctx[side]));
}

static int
open_flow(struct perf_session *s, struct perf_flow *f)
{
	int err;

	for (unsigned int side = 0; side < 2; side++) {
		err = create_qp(s, side, &f->qp[side]);
		if (err != 0)
			return err;
	}
	for (unsigned int side = 0; side < 2; side++) {
		err = connect_qp(s, side, f->qp[side], f->qp[!side]->qp_num);
		if (err != 0)
			return err;
	}
	return 0;
}

int
perf_row_open(struct perf_session *s, uint64_t size)
{
	int err = 0;

	s->size = size;
	s->num_flows = s->opt->qps;
	choose_slots(s);
	s->flows = calloc(s->num_flows, sizeof(*s->flows));
	if (s->flows == NULL)
		return failed("memory", strerror(ENOMEM));
	for (unsigned int side = 0; side < 2 && err == 0; side++) {
		for (unsigned int k = 0; k < PERF_AREA_KINDS && err == 0; k++)
			err = open_area(s, side, &s->area[side][k]);
		if (err == 0)
			err = open_cq(s, side, &s->send_cq[side]);
		if (err == 0)
			err = open_cq(s, side, &s->recv_cq[side]);
	}
	for (uint32_t i = 0; i < s->num_flows && err == 0; i++)
		err = open_flow(s, &s->flows[i]);
	return err;
}

static void
close_side(struct perf_session *s, unsigned int side)
{
	if (s->send_cq[side] != NULL)
		softhca_destroy_cq(s->send_cq[side]);
	if (s->recv_cq[side] != NULL)
		softhca_destroy_cq(s->recv_cq[side]);
	s->send_cq[side] = s->recv_cq[side] = NULL;
	for (unsigned int k = 0; k < PERF_AREA_KINDS; k++) {
		struct perf_area *a = &s->area[side][k];

		if (a->mr != NULL)
			softhca_dereg_mr(a->mr);
		if (a->map != NULL)
			munmap(a->map, a->map_length);
		memset(a, 0, sizeof(*a));
	}
}

void
perf_row_close(struct perf_session *s)
{
	for (uint32_t i = 0; s->flows != NULL && i < s->num_flows; i++) {
		for (unsigned int side = 0; side < 2; side++)
			if (s->flows[i].qp[side] != NULL)
				softhca_destroy_qp(s->flows[i].qp[side]);
		perf_ring_free(&s->flows[i].ring);
	}
	free(s->flows);
	s->flows = NULL;
	close_side(s, 0);
	close_side(s, 1);
}

uint8_t *
perf_slot(const struct perf_session *s, unsigned int side, enum perf_area_kind kind, uint32_t flow,
	  uint32_t slot)
{
	return s->area[side][kind].base + ((uint64_t)flow * s->slots + slot) * s->stride;
}
