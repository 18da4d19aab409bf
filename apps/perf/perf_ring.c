/* SPDX-License-Identifier: BSD-3-Clause */

/* Work requests made ready once and posted again and again. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "perf_ub.h"

/* Where the data of a request lies at its own side, and at the other one. */
enum perf_area_kind
perf_local_kind(enum perf_op op)
{
	return op == PERF_OP_READ || perf_is_atomic(op) ? PERF_SINK : PERF_SOURCE;
}

enum perf_area_kind
perf_remote_kind(enum perf_op op)
{
	return op == PERF_OP_READ ? PERF_SOURCE : PERF_SINK;
}

/* Of the bytes that the WRITE in front of it has sent; the completion is of both. */
static void
fill_flush(const struct perf_session *s, const struct softhca_send_wr *write,
	   struct softhca_send_wr *flush)
{
	flush->wr_id = write->wr_id;
	flush->opcode = SOFTHCA_WR_FLUSH;
	flush->qp_type = write->qp_type;
	flush->wr.flush.remote_addr = write->wr.rdma.remote_addr;
	flush->wr.flush.rkey = write->wr.rdma.rkey;
	flush->wr.flush.length = (uint32_t)s->size;
	flush->wr.flush.type = SOFTHCA_FLUSH_GLOBAL;
	flush->wr.flush.level = SOFTHCA_FLUSH_RANGE;
}

static void
fill_request(const struct perf_session *s, uint32_t f, unsigned int side, uint32_t i,
	     struct perf_ring *ring)
{
	enum perf_op op = s->opt->op;
	uint32_t slot = i % s->slots;
	uint64_t remote = perf_slot_addr(s, !side, perf_remote_kind(op), f, slot);
	uint32_t rkey = s->area[!side][perf_remote_kind(op)].rkey;
	struct softhca_send_wr *wr = &ring->wr[i];

	ring->sge[i] = (struct softhca_sge){
		.addr = (uintptr_t)perf_slot(s, side, perf_local_kind(op), f, slot),
		.length = (uint32_t)s->size,
		.lkey = s->ub == NULL ? s->area[side][perf_local_kind(op)].mr->lkey : 0,
	};
	wr->wr_id = (uint64_t)f << 32 | i;
	wr->sg_list = &ring->sge[i];
	wr->num_sge = 1;
	if (s->size <= s->opt->inline_max)
		wr->send_flags = SOFTHCA_SEND_INLINE;
	wr->opcode = op == PERF_OP_FLUSH ? SOFTHCA_WR_RDMA_WRITE : perf_op_codes[op];
	if (s->opt->service == PERF_SERVICE_XRC)
		wr->qp_type.xrc.remote_srqn = s->srqn[!side];
	if (s->opt->service == PERF_SERVICE_UD) {
		wr->wr.ud.ah = s->ah[side];
		wr->wr.ud.remote_qpn = s->flows[f].qpn[!side];
		wr->wr.ud.remote_qkey = PERF_QKEY;
	}
	if (perf_is_atomic(op)) {
		wr->wr.atomic.remote_addr = remote;
		wr->wr.atomic.rkey = rkey;
		wr->wr.atomic.compare_add = 1;
	} else if (op != PERF_OP_SEND) {
		wr->wr.rdma.remote_addr = remote;
		wr->wr.rdma.rkey = rkey;
	}
	if (op == PERF_OP_FLUSH)
		fill_flush(s, wr, &ring->flush[i]);
}

static void
fill_receive(const struct perf_session *s, uint32_t f, unsigned int side, uint32_t i,
	     struct perf_ring *ring)
{
	bool ud = s->opt->service == PERF_SERVICE_UD;
	struct softhca_sge *list = &ring->sge[ring->count + 2 * i], *sge = list;

	if (ud)
		*sge++ = (struct softhca_sge){
			.addr = (uintptr_t)s->grh[!side],
			.length = SOFTHCA_GRH_BYTES,
			.lkey = s->grh_mr[!side]->lkey,
		};
	*sge = (struct softhca_sge){
		.addr = (uintptr_t)perf_slot(s, !side, PERF_SINK, f, i % s->slots),
		.length = (uint32_t)s->size,
		.lkey = s->ub == NULL ? s->area[!side][PERF_SINK].mr->lkey : 0,
	};
	ring->recv[i].wr_id = (uint64_t)f << 32 | i;
	ring->recv[i].sg_list = list;
	ring->recv[i].num_sge = ud ? 2 : 1;
}

static void
link_lists(struct perf_ring *ring, uint32_t signal_every)
{
	for (uint32_t i = 0; i < ring->count; i++) {
		bool last = i % ring->group == ring->group - 1 || i + 1 == ring->count;
		bool signalled = i % signal_every == signal_every - 1 || i + 1 == ring->count;
		struct softhca_send_wr *end = &ring->wr[i];

		if (ring->flush != NULL)
			ring->wr[i].next = end = &ring->flush[i];
		end->next = last ? NULL : &ring->wr[i + 1];
		if (signalled)
			end->send_flags |= SOFTHCA_SEND_SIGNALED;
		ring->recv[i].next = last ? NULL : &ring->recv[i + 1];
	}
}

int
perf_ring_build(const struct perf_session *s, uint32_t f, unsigned int side, uint32_t count,
		uint32_t group, uint32_t signal_every, struct perf_ring *ring)
{
	perf_ring_free(ring);
	ring->count = count;
	ring->group = group;
	ring->wr = calloc(count, sizeof(*ring->wr));
	if (s->opt->op == PERF_OP_FLUSH)
		ring->flush = calloc(count, sizeof(*ring->flush));
	ring->recv = calloc(count, sizeof(*ring->recv));
	ring->sge = calloc(3 * (size_t)count, sizeof(*ring->sge));
	if (ring->wr == NULL || ring->recv == NULL || ring->sge == NULL ||
	    (s->opt->op == PERF_OP_FLUSH && ring->flush == NULL)) {
		fprintf(stderr, "softhca-perf: no memory for %u requests\n", count);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++) {
		if (s->local[side])
			fill_request(s, f, side, i, ring);
		if (s->local[!side])
			fill_receive(s, f, side, i, ring);
	}
	link_lists(ring, signal_every);
	return s->ub != NULL ? perf_ub_ring_build(s, f, side, ring) : 0;
}

void
perf_ring_free(struct perf_ring *ring)
{
	free(ring->wr);
	free(ring->flush);
	free(ring->recv);
	free(ring->sge);
	perf_ub_ring_free(ring);
	*ring = (struct perf_ring){0};
}

int
perf_post(struct perf_session *s, struct perf_flow *f, unsigned int side,
	  struct softhca_send_wr *wr)
{
	struct softhca_send_wr *bad;
	int err;

	if (__builtin_expect(s->ub != NULL, 0))
		return perf_ub_post(s, f, side, wr);
	err = softhca_post_send(f->qp[side], wr, &bad);
	if (err != 0)
		fprintf(stderr, "softhca-perf: post_send: %s\n", softhca_last_error(NULL));
	return err;
}

int
perf_post_recv(struct perf_session *s, struct perf_flow *f, unsigned int side,
	       struct softhca_recv_wr *wr)
{
	struct softhca_recv_wr *bad;
	int err;

	if (__builtin_expect(s->ub != NULL, 0))
		return perf_ub_post_recv(s, f, side, wr);
	err = s->srq[side] != NULL ? softhca_post_srq_recv(s->srq[side], wr, &bad)
				   : softhca_post_recv(f->qp[side], wr, &bad);
	if (err != 0)
		fprintf(stderr, "softhca-perf: post_recv: %s\n", softhca_last_error(NULL));
	return err;
}

int
perf_receives_post(struct perf_session *s, struct perf_flow *f, unsigned int side)
{
	const struct perf_ring *r = perf_ring_of(f, !side);

	while (f->recv_done >= r->group) {
		int err = perf_post_recv(s, f, side, &r->recv[f->recv_next]);

		if (err != 0)
			return err;
		f->recv_next = (f->recv_next + r->group) % r->count;
		f->recv_done -= r->group;
		f->recv_room += r->group;
	}
	return 0;
}

int
perf_receives_start(struct perf_session *s, struct perf_flow *f, unsigned int side, uint32_t n)
{
	f->recv_next = 0;
	f->recv_done = n;
	return perf_receives_post(s, f, side);
}
