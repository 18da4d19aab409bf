/* SPDX-License-Identifier: BSD-3-Clause */

/* --wire ub: rings as URMA has them, posting and polling. */

#include <stdio.h>
#include <stdlib.h>

#include "perf_ub.h"

/* How an operation names its two places. */
enum shape {
	SHAPE_OUT, /* from here to there */
	SHAPE_IN,  /* from there to here */
	SHAPE_SEND,
	SHAPE_CAS,
	SHAPE_FETCH,
};

static const struct {
	urma_opcode_t opcode;
	enum shape shape;
} operations[PERF_OP_COUNT] = {
	[PERF_OP_WRITE] = {URMA_OPC_WRITE, SHAPE_OUT},
	[PERF_OP_READ] = {URMA_OPC_READ, SHAPE_IN},
	[PERF_OP_SEND] = {URMA_OPC_SEND, SHAPE_SEND},
	[PERF_OP_FETCH_ADD] = {URMA_OPC_FADD, SHAPE_FETCH},
	[PERF_OP_CMP_SWAP] = {URMA_OPC_CAS, SHAPE_CAS},
	[PERF_OP_SWAP] = {URMA_OPC_SWAP, SHAPE_CAS},
	[PERF_OP_NOTIFY] = {URMA_OPC_WRITE_NOTIFY, SHAPE_OUT},
};

/* The ring that a request or receive is of has its index from the verbs one. */
static void
fill_places(const struct perf_session *s, uint32_t f, unsigned int side, uint32_t i,
	    const struct perf_ring *ring)
{
	struct perf_ub_ring *u = ring->ub;
	enum perf_area_kind kind = perf_remote_kind(s->opt->op);
	uint64_t at = perf_slot_addr(s, !side, kind, f, i % s->slots);

	u->local[i] = (urma_sge_t){
		.addr = ring->sge[i].addr,
		.len = ring->sge[i].length,
		.tseg = s->ub->seg[side][perf_local_kind(s->opt->op)],
	};
	u->remote[2 * i] =
		(urma_sge_t){.addr = at, .len = (uint32_t)s->size, .tseg = s->ub->to_seg[side]};
	u->remote[2 * i + 1] = (urma_sge_t){.addr = at + s->stride - PERF_NOTIFY_SIZE,
					    .len = PERF_NOTIFY_SIZE,
					    .tseg = s->ub->to_seg[side]};
}

static void
fill_request(const struct perf_session *s, uint32_t f, unsigned int side, uint32_t i,
	     struct perf_ring *ring)
{
	const struct softhca_send_wr *verbs = &ring->wr[i];
	struct perf_ub_ring *u = ring->ub;
	urma_sg_t local = {&u->local[i], 1}, remote = {&u->remote[2 * i], 1};
	urma_jfs_wr_t *wr = &u->wr[i];

	fill_places(s, f, side, i, ring);
	wr->opcode = operations[s->opt->op].opcode;
	wr->user_ctx = verbs->wr_id;
	wr->tjetty = s->ub->flow[f].to[side];
	wr->flag.bs.complete_enable = (verbs->send_flags & SOFTHCA_SEND_SIGNALED) != 0;
	wr->flag.bs.inline_flag = (verbs->send_flags & SOFTHCA_SEND_INLINE) != 0;
	wr->next = verbs->next != NULL ? wr + 1 : NULL;
	switch (operations[s->opt->op].shape) {
	case SHAPE_OUT:
		remote.num_sge = s->opt->op == PERF_OP_NOTIFY ? 2 : 1;
		wr->rw.src = local;
		wr->rw.dst = remote;
		wr->rw.notify_data = PERF_NOTIFY_VALUE(verbs->wr_id);
		break;
	case SHAPE_IN:
		wr->rw.src = remote;
		wr->rw.dst = local;
		break;
	case SHAPE_SEND:
		wr->send.src = local;
		break;
	case SHAPE_CAS:
		wr->cas.dst = remote.sge;
		wr->cas.src = local.sge;
		wr->cas.cmp_data = 1;
		break;
	case SHAPE_FETCH:
		wr->faa.dst = remote.sge;
		wr->faa.src = local.sge;
		wr->faa.operand = 1;
		break;
	}
}

static void
fill_receive(const struct perf_session *s, unsigned int side, uint32_t i, struct perf_ring *ring)
{
	const struct softhca_recv_wr *verbs = &ring->recv[i];
	struct perf_ub_ring *u = ring->ub;

	u->result[i] = (urma_sge_t){
		.addr = verbs->sg_list[0].addr,
		.len = verbs->sg_list[0].length,
		.tseg = s->ub->seg[!side][PERF_SINK],
	};
	u->recv[i] = (urma_jfr_wr_t){
		.src = {&u->result[i], 1},
		.user_ctx = verbs->wr_id,
		.next = verbs->next != NULL ? &u->recv[i + 1] : NULL,
	};
}

int
perf_ub_ring_build(const struct perf_session *s, uint32_t f, unsigned int side,
		   struct perf_ring *ring)
{
	size_t n = ring->count;
	struct perf_ub_ring *u = ring->ub = calloc(1, sizeof(*u));

	if (u != NULL) {
		u->wr = calloc(n, sizeof(*u->wr));
		u->recv = calloc(n, sizeof(*u->recv));
		u->local = calloc(n, sizeof(*u->local));
		u->remote = calloc(2 * n, sizeof(*u->remote));
		u->result = calloc(n, sizeof(*u->result));
	}
	if (u == NULL || u->wr == NULL || u->recv == NULL || u->local == NULL ||
	    u->remote == NULL || u->result == NULL) {
		fprintf(stderr, "softhca-perf: no memory for %zu requests\n", n);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (s->local[side])
			fill_request(s, f, side, i, ring);
		if (s->local[!side])
			fill_receive(s, side, i, ring);
	}
	return 0;
}

void
perf_ub_ring_free(struct perf_ring *ring)
{
	struct perf_ub_ring *u = ring->ub;

	if (u == NULL)
		return;
	free(u->wr);
	free(u->recv);
	free(u->local);
	free(u->remote);
	free(u->result);
	free(u);
}

/* The checking pass chooses new operands in each round. */
static void
take_operands(enum perf_op op, urma_jfs_wr_t *wr, const struct softhca_send_wr *verbs)
{
	for (; verbs != NULL; verbs = verbs->next, wr++) {
		if (op == PERF_OP_FETCH_ADD) {
			wr->faa.operand = verbs->wr.atomic.compare_add;
			continue;
		}
		wr->cas.cmp_data = verbs->wr.atomic.compare_add;
		wr->cas.swap_data = verbs->wr.atomic.swap;
	}
}

int
perf_ub_post(struct perf_session *s, struct perf_flow *f, unsigned int side,
	     const struct softhca_send_wr *wr)
{
	const struct perf_ring *ring = perf_ring_of(f, side);
	urma_jfs_wr_t *first = &ring->ub->wr[wr - ring->wr], *bad;
	urma_jetty_t *jetty = s->ub->flow[f - s->flows].jetty[side];
	urma_status_t status;

	if (perf_is_atomic(s->opt->op))
		take_operands(s->opt->op, first, wr);
	status = urma_post_jetty_send_wr(jetty, first, &bad);
	if (status == URMA_SUCCESS)
		return 0;
	fprintf(stderr, "softhca-perf: post_jetty_send_wr: %s\n", softhca_urma_reason());
	return -EIO;
}

int
perf_ub_post_recv(struct perf_session *s, struct perf_flow *f, unsigned int side,
		  const struct softhca_recv_wr *wr)
{
	const struct perf_ring *ring = perf_ring_of(f, !side);
	urma_jetty_t *jetty = s->ub->flow[f - s->flows].jetty[side];
	urma_jfr_wr_t *first = &ring->ub->recv[wr - ring->recv], *bad;
	urma_status_t status = s->ub->jfr[side] != NULL
				       ? urma_post_jfr_wr(s->ub->jfr[side], first, &bad)
				       : urma_post_jetty_recv_wr(jetty, first, &bad);

	if (status == URMA_SUCCESS)
		return 0;
	fprintf(stderr, "softhca-perf: post_recv: %s\n", softhca_urma_reason());
	return -EIO;
}

int
perf_ub_poll(const struct perf_session *s, unsigned int side, enum perf_queue queue, int max,
	     struct softhca_wc *wc)
{
	urma_cr_t cr[PERF_POLL_MAX];
	urma_jfc_t *jfc = queue == PERF_SENDS ? s->ub->send_jfc[side] : s->ub->recv_jfc[side];
	int n = urma_poll_jfc(jfc, max, cr);

	for (int i = 0; i < n; i++) {
		wc[i].wr_id = cr[i].user_ctx;
		wc[i].status = cr[i].status == URMA_CR_SUCCESS ? SOFTHCA_WC_SUCCESS
							       : SOFTHCA_WC_GENERAL_ERR;
		wc[i].vendor_err = (uint32_t)cr[i].status;
		wc[i].byte_len = cr[i].completion_len;
		wc[i].qp_num = cr[i].local_id;
	}
	return n < 0 ? -EIO : n;
}
