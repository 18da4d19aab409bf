/* SPDX-License-Identifier: BSD-3-Clause */

/* Prediction and posting. */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "sim_model_impl.h"

struct sim_model *
sim_model(struct sim *s)
{
	if (s->model == NULL) {
		s->model = calloc(1, sizeof(*s->model));
		sim_check(s, s->model != NULL, "no memory");
		s->model->rng.s = s->cfg.seed ^ 0x5bd1e995;
	}
	return s->model;
}

struct sim_area
sim_area(struct sim_pair *p, unsigned int side, uint32_t len)
{
	struct sim_region *r = &p->region[side];
	uint32_t gap = 1 + sim_below(&p->s->model->rng, SIM_GUARD);
	struct sim_area a = {.off = r->used + gap, .len = len};

	if ((uint64_t)a.off + len + SIM_GUARD > r->len)
		return (struct sim_area){.off = UINT32_MAX, .len = len};
	r->used = a.off + len;
	return a;
}

/* 8 bytes at an address that is a multiple of 8 */
static struct sim_area
aligned_area(struct sim_pair *p, unsigned int side)
{
	struct sim_area a = sim_area(p, side, 15);

	if (a.off != UINT32_MAX)
		a.off += (uint32_t)(-(p->region[side].va + a.off) & 7);
	a.len = 8;
	return a;
}

static bool
has_room(const struct sim_pair *p, uint32_t bytes, unsigned int areas)
{
	for (unsigned int i = 0; i < 2; i++)
		if ((uint64_t)p->region[i].used + bytes + (areas + 1ull) * (SIM_GUARD + 1) >
		    p->region[i].len)
			return false;
	return true;
}

static void
set_shadow(struct sim_region *r, uint32_t off, const void *data, uint32_t len)
{
	memcpy(r->shadow + off, data, len);
}

/* The contents of the areas according to the shadow, concatenated. */
static uint8_t *
gather(const struct sim_region *r, const struct sim_area *a, unsigned int n, uint32_t len)
{
	uint8_t *buf = malloc(len + 1);
	uint32_t at = 0;

	for (unsigned int i = 0; i < n && buf != NULL; i++) {
		memcpy(buf + at, r->shadow + a[i].off, a[i].len);
		at += a[i].len;
	}
	return buf;
}

static void
scatter(struct sim_region *r, const struct sim_area *a, unsigned int n, const uint8_t *data,
	uint32_t len)
{
	for (unsigned int i = 0; i < n && len != 0; i++) {
		uint32_t k = a[i].len < len ? a[i].len : len;

		set_shadow(r, a[i].off, data, k);
		data += k;
		len -= k;
	}
}

/* --- prediction -------------------- */

static uint64_t
get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return v;
}

static void
predict_atomic(struct sim_pair *p, const struct sim_op *op, struct softhca_send_wr *wr)
{
	struct sim_region *l = &p->region[op->side], *r = &p->region[1 - op->side];
	uint64_t old = get64(r->shadow), value = old;

	if (op->opcode == SOFTHCA_WR_ATOMIC_FETCH_AND_ADD) {
		wr->wr.atomic.compare_add = sim_random(&p->s->model->rng);
		value = old + wr->wr.atomic.compare_add;
	} else {
		bool hit = sim_below(&p->s->model->rng, 4) != 0;

		wr->wr.atomic.compare_add = hit ? old : ~old;
		wr->wr.atomic.swap = sim_random(&p->s->model->rng);
		if (hit)
			value = wr->wr.atomic.swap;
	}
	set_shadow(r, 0, &value, 8);
	set_shadow(l, op->local[0].off, &old, 8);
}

/* A message has found its receive. */
static void
match(struct sim_pair *p, struct sim_op *send, struct sim_op *recv)
{
	recv->matched = true;
	recv->opcode = send->opcode;
	recv->imm = send->imm;
	recv->byte_len = send->len;
	send->peer = recv;
	if (send->opcode != SOFTHCA_WR_RDMA_WRITE_WITH_IMM) {
		uint8_t *data = gather(&p->region[send->side], send->local, send->nsge, send->len);

		scatter(&p->region[1 - send->side], recv->local, recv->nsge, data, send->len);
		free(data);
		recv->checks = 1;
	}
}

static struct sim_op *
first_unmatched(struct sim_fifo *rq)
{
	struct sim_op *op = rq->head;

	while (op != NULL && op->matched)
		op = op->next;
	return op;
}

static bool
needs_recv(uint32_t opcode)
{
	return opcode == SOFTHCA_WR_SEND || opcode == SOFTHCA_WR_SEND_WITH_IMM ||
	       opcode == SOFTHCA_WR_RDMA_WRITE_WITH_IMM;
}

static void
predict(struct sim_pair *p, struct sim_op *op, struct softhca_send_wr *wr)
{
	struct sim_region *l = &p->region[op->side], *r = &p->region[1 - op->side];
	struct sim_op *recv;
	uint8_t *data;

	op->byte_len = op->len;
	switch (op->opcode) {
	case SOFTHCA_WR_RDMA_WRITE:
	case SOFTHCA_WR_RDMA_WRITE_WITH_IMM:
	case SOFTHCA_WR_ATOMIC_WRITE:
		data = gather(l, op->local, op->nsge, op->len);
		set_shadow(r, op->remote.off, data, op->len);
		free(data);
		op->checks = 2;
		break;
	case SOFTHCA_WR_RDMA_READ:
		scatter(l, op->local, op->nsge, r->shadow + op->remote.off, op->len);
		op->checks = 1;
		break;
	case SOFTHCA_WR_ATOMIC_CMP_AND_SWP:
	case SOFTHCA_WR_ATOMIC_FETCH_AND_ADD:
		predict_atomic(p, op, wr);
		op->checks = 1;
		break;
	default:
		break;
	}
	if (!needs_recv(op->opcode))
		return;
	recv = first_unmatched(&p->rq[1 - op->side]);
	if (recv != NULL && p->unmatched_send[op->side].n == 0) {
		match(p, op, recv);
	} else {
		struct sim_op *copy = malloc(sizeof(*copy));

		sim_check(p->s, copy != NULL, "no memory");
		*copy = *op;
		sim_fifo_put(&p->unmatched_send[op->side], copy);
	}
}

/* --- posting -------------------- */

static void
split(struct sim_pair *p, struct sim_op *op, const struct sim_req *req)
{
	struct sim_rng *rng = &p->s->model->rng;
	uint32_t left = op->len;

	for (unsigned int i = 0; i < op->nsge; i++) {
		uint32_t n = left;

		if (req->sge_len != NULL)
			n = req->sge_len[i];
		else if (i + 1 < op->nsge)
			n = sim_below(rng, 5) == 0 ? 0 : sim_below(rng, left + 1);
		op->local[i] = sim_area(p, op->side, n);
		left -= n;
	}
}

static void
build_sges(const struct sim_pair *p, const struct sim_op *op, struct softhca_sge *sge, bool in_line)
{
	const struct sim_region *r = &p->region[op->side];

	for (unsigned int i = 0; i < op->nsge; i++)
		sge[i] = (struct softhca_sge){
			.addr = (in_line ? (uintptr_t)r->view : r->va) + op->local[i].off,
			.length = op->local[i].len,
			.lkey = in_line ? 0 : r->mr->lkey,
		};
}

int
sim_post_recv(struct sim_pair *p, unsigned int side, uint32_t len, unsigned int nsge)
{
	struct softhca_sge sge[SIM_MAX_SGE];
	struct softhca_recv_wr wr = {.sg_list = sge}, *bad;
	const struct sim_req req = {.nsge = nsge};
	struct sim_op *op, *send;
	int rc;

	if (p->rq[side].n >= p->attr.rq_depth || !has_room(p, len, nsge))
		return -ENOMEM;
	op = calloc(1, sizeof(*op));
	sim_check(p->s, op != NULL, "no memory");
	*op = (struct sim_op){.wr_id = p->next_id++,
			      .side = side,
			      .is_recv = true,
			      .len = len,
			      .nsge = nsge,
			      .signalled = true};
	split(p, op, &req);
	build_sges(p, op, sge, false);
	wr.wr_id = op->wr_id;
	wr.num_sge = (int)nsge;
	if (p->srq[side] != NULL)
		rc = softhca_post_srq_recv(p->srq[side], &wr, &bad);
	else
		rc = softhca_post_recv(p->qp[side], &wr, &bad);
	sim_check(p->s, rc == 0, "post_recv: %d: %s", rc, softhca_last_error(p->s->side[side].ctx));
	sim_fifo_put(&p->rq[side], op);
	send = sim_fifo_take(&p->unmatched_send[1 - side]);
	if (send != NULL) {
		match(p, send, op);
		free(send);
	}
	return 0;
}

int
sim_post_missing(struct sim_pair *p, unsigned int side)
{
	const struct sim_op *send;
	int rc = 0;

	/* messages posted without a receive on purpose are handled here */
	while (rc == 0 && !p->hold_recvs && (send = p->unmatched_send[1 - side].head) != NULL)
		rc = sim_post_recv(p, side, send->len, 1);
	return rc;
}

static struct sim_op *
make_op(struct sim_pair *p, unsigned int side, const struct sim_req *req)
{
	struct sim_op *op = calloc(1, sizeof(*op));

	sim_check(p->s, op != NULL, "no memory");
	op->wr_id = p->next_id++;
	op->side = side;
	op->opcode = req->opcode;
	op->len = sim_is_8_bytes(req->opcode) ? 8 : req->len;
	op->nsge = sim_is_atomic(req->opcode) ? 1 : req->nsge != 0 ? req->nsge : op->len != 0;
	if (req->opcode == SOFTHCA_WR_FLUSH)
		op->nsge = 0;
	op->signalled = (req->flags & SOFTHCA_SEND_SIGNALED) != 0;
	split(p, op, req);
	if (sim_is_atomic(op->opcode))
		op->remote = (struct sim_area){.off = 0, .len = 8};
	else if (op->opcode == SOFTHCA_WR_ATOMIC_WRITE)
		op->remote = aligned_area(p, 1 - side);
	else if (op->opcode != SOFTHCA_WR_SEND && op->opcode != SOFTHCA_WR_SEND_WITH_IMM)
		op->remote = sim_area(p, 1 - side, op->len);
	if (op->opcode == SOFTHCA_WR_SEND_WITH_IMM || op->opcode == SOFTHCA_WR_RDMA_WRITE_WITH_IMM)
		op->imm = (uint32_t)sim_random(&p->s->model->rng);
	return op;
}

static void
build_wr(struct sim_pair *p, struct sim_op *op, const struct sim_req *req,
	 struct softhca_send_wr *wr, struct softhca_sge *sge)
{
	const struct sim_region *r = &p->region[1 - op->side];
	uint64_t raddr = r->va + op->remote.off;

	*wr = (struct softhca_send_wr){.wr_id = op->wr_id,
				       .sg_list = sge,
				       .num_sge = (int)op->nsge,
				       .opcode = op->opcode,
				       .send_flags = req->flags,
				       .imm_data = op->imm};
	build_sges(p, op, sge, (req->flags & SOFTHCA_SEND_INLINE) != 0);
	if (p->attr.xrc)
		wr->qp_type.xrc.remote_srqn = p->srq[1 - op->side]->handle;
	if (sim_is_atomic(op->opcode)) {
		wr->wr.atomic.remote_addr = raddr;
		wr->wr.atomic.rkey = r->mr->rkey;
	} else {
		wr->wr.rdma.remote_addr = raddr;
		wr->wr.rdma.rkey = r->mr->rkey;
	}
	if (op->opcode == SOFTHCA_WR_FLUSH) {
		wr->wr.flush.length = op->len;
		wr->wr.flush.type = SOFTHCA_FLUSH_GLOBAL;
		wr->wr.flush.level = (uint8_t)sim_below(&p->s->model->rng, 2);
	}
	predict(p, op, wr);
}

static bool
fits(const struct sim_pair *p, unsigned int side, const struct sim_req *req, unsigned int n)
{
	unsigned int areas = 0, recvs = 0;
	uint64_t bytes = 0;

	for (unsigned int i = 0; i < n; i++) {
		bytes += sim_is_8_bytes(req[i].opcode) ? 16 : req[i].len;
		areas += 2 + req[i].nsge;
		if (needs_recv(req[i].opcode) && !req[i].no_recv) {
			recvs++;
			bytes += req[i].len + SIM_GUARD;
			areas += p->attr.max_sge + 1;
		}
	}
	return p->posted[side] + n <= p->attr.sq_depth && bytes < UINT32_MAX / 2 &&
	       p->rq[1 - side].n + recvs <= p->attr.rq_depth && has_room(p, (uint32_t)bytes, areas);
}

#define MAX_CHAIN 64

int
sim_post(struct sim_pair *p, unsigned int side, const struct sim_req *req, unsigned int n)
{
	static struct softhca_send_wr wr[MAX_CHAIN];
	static struct softhca_sge sge[MAX_CHAIN][SIM_MAX_SGE];
	struct softhca_send_wr *bad = NULL;
	int rc;

	if (n == 0 || n > MAX_CHAIN || sim_post_missing(p, 1 - side) != 0 || !fits(p, side, req, n))
		return -ENOMEM;
	for (unsigned int i = 0; i < n; i++) {
		struct sim_op *op;

		if (needs_recv(req[i].opcode) && !req[i].no_recv) {
			uint32_t room = req[i].len + sim_below(&p->s->model->rng, SIM_GUARD);
			unsigned int k = 1 + sim_below(&p->s->model->rng, p->attr.max_sge);

			rc = sim_post_recv(p, 1 - side, room, k);
			sim_check(p->s, rc == 0, "no room for a receive");
		}
		op = make_op(p, side, &req[i]);
		build_wr(p, op, &req[i], &wr[i], sge[i]);
		wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
		sim_fifo_put(&p->sq[side], op);
		p->posted[side]++;
		p->unsignalled_last[side] = !op->signalled;
	}
	rc = softhca_post_send(p->qp[side], wr, &bad);
	sim_check(p->s, rc == 0, "post_send: %d at %d of %u: %s", rc,
		  bad != NULL ? (int)(bad - wr) : -1, n, softhca_last_error(p->s->side[side].ctx));
	return 0;
}

uint64_t
sim_post_wr(struct sim_pair *p, unsigned int side, struct softhca_send_wr *wr, uint32_t status)
{
	struct softhca_send_wr *bad;
	struct sim_op *op = calloc(1, sizeof(*op));
	int rc;

	sim_check(p->s, op != NULL, "no memory");
	*op = (struct sim_op){.wr_id = p->next_id++,
			      .side = side,
			      .opcode = wr->opcode,
			      .status = status,
			      .signalled = true};
	for (int i = 0; i < wr->num_sge; i++)
		op->byte_len += wr->sg_list[i].length;
	wr->wr_id = op->wr_id;
	sim_fifo_put(&p->sq[side], op);
	p->posted[side]++;
	p->unsignalled_last[side] = false;
	rc = softhca_post_send(p->qp[side], wr, &bad);
	sim_check(p->s, rc == 0, "post_send: %d: %s", rc, softhca_last_error(p->s->side[side].ctx));
	return op->wr_id;
}

void
sim_post_recv_wr(struct sim_pair *p, unsigned int side, struct softhca_recv_wr *wr, uint32_t status)
{
	struct softhca_recv_wr *bad;
	struct sim_op *op = calloc(1, sizeof(*op));
	int rc;

	sim_check(p->s, op != NULL, "no memory");
	*op = (struct sim_op){.wr_id = p->next_id++,
			      .side = side,
			      .is_recv = true,
			      .status = status,
			      .signalled = true};
	wr->wr_id = op->wr_id;
	sim_fifo_put(&p->rq[side], op);
	rc = softhca_post_recv(p->qp[side], wr, &bad);
	sim_check(p->s, rc == 0, "post_recv: %d: %s", rc, softhca_last_error(p->s->side[side].ctx));
}

struct sim_req
sim_random_req(struct sim_pair *p, uint32_t max_len)
{
	struct sim_rng *rng = &p->s->model->rng;
	uint32_t mtu = 128u << p->attr.mtu;
	struct sim_req r = {.opcode = sim_below(rng, SOFTHCA_WR_LOCAL_INV + 2)};

	if (r.opcode >= SOFTHCA_WR_LOCAL_INV)
		r.opcode += SOFTHCA_WR_ATOMIC_WRITE - SOFTHCA_WR_LOCAL_INV;
	switch (sim_below(rng, 8)) {
	case 0:
		r.len = sim_below(rng, max_len + 1);
		break;
	case 1:
		r.len = 0;
		break;
	case 2:
		r.len = mtu * (1 + sim_below(rng, 3));
		break;
	case 3:
	case 4:
		r.len = sim_below(rng, 3 * mtu);
		break;
	default:
		r.len = sim_below(rng, 200);
	}
	if (r.len > max_len)
		r.len = max_len;
	r.nsge = sim_below(rng, p->attr.max_sge + 1);
	if (r.nsge == 0 && r.len != 0)
		r.nsge = 1;
	if (sim_below(rng, 4) != 0)
		r.flags |= SOFTHCA_SEND_SIGNALED;
	if (sim_below(rng, 8) == 0)
		r.flags |= SOFTHCA_SEND_FENCE;
	if (sim_below(rng, 8) == 0)
		r.flags |= SOFTHCA_SEND_SOLICITED;
	if (sim_below(rng, 3) == 0 && r.len <= p->attr.max_inline &&
	    (r.opcode <= SOFTHCA_WR_SEND_WITH_IMM || r.opcode == SOFTHCA_WR_ATOMIC_WRITE))
		r.flags |= SOFTHCA_SEND_INLINE;
	return r;
}
