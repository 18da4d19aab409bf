/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim_link.h"
#include "sim_model.h"

#define PAGE 4096u
#define GUARD 64u
#define COUNTER_BYTES 64u /* the atomics' counter is the first word of a region */
#define VA_BASE 0x100000000000ull
#define CQ_BATCH 64

static struct sim_model *
model(struct sim *s)
{
	if (s->model == NULL) {
		s->model = calloc(1, sizeof(*s->model));
		sim_check(s, s->model != NULL, "no memory");
		s->model->rng.s = s->cfg.seed ^ 0x5bd1e995;
	}
	return s->model;
}

static void
fifo_init(struct sim_fifo *f)
{
	f->head = NULL;
	f->tail = &f->head;
	f->n = 0;
}

static void
fifo_put(struct sim_fifo *f, struct sim_op *op)
{
	op->next = NULL;
	*f->tail = op;
	f->tail = &op->next;
	f->n++;
}

static struct sim_op *
fifo_take(struct sim_fifo *f)
{
	struct sim_op *op = f->head;

	if (op == NULL)
		return NULL;
	f->head = op->next;
	if (f->head == NULL)
		f->tail = &f->head;
	f->n--;
	return op;
}

static void
fifo_free(struct sim_fifo *f)
{
	struct sim_op *op;

	while ((op = fifo_take(f)) != NULL)
		free(op);
}

/* --- memory -------------------- */

static void
fill(struct sim_model *m, uint8_t *p, uint32_t n)
{
	for (uint32_t i = 0; i < n; i += 8) {
		uint64_t r = sim_random(&m->rng);

		memcpy(p + i, &r, n - i < 8 ? n - i : 8);
	}
}

/* The view is mapped page by page onto a permutation of the file's pages. */
static void
map_scattered(struct sim *s, struct sim_region *r, void **list)
{
	uint32_t n = r->len / PAGE, *perm = malloc(n * sizeof(*perm));
	int fd = memfd_create("sim", 0);

	sim_check(s, perm != NULL && fd >= 0 && ftruncate(fd, r->len) == 0, "no memory");
	r->pages = mmap(NULL, r->len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	r->view = mmap(NULL, r->len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	sim_check(s, r->pages != MAP_FAILED && r->view != MAP_FAILED, "no memory");
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = sim_below(&s->model->rng, i + 1);

		perm[i] = perm[k];
		perm[k] = i;
	}
	/* Large regions keep long runs, or the kernel runs out of mappings. */
	for (uint32_t i = 0; i < n; i++) {
		void *at = r->view + (size_t)i * PAGE;

		if (n > 2048)
			perm[i] = i;
		else
			sim_check(s, mmap(at, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
					  fd, (off_t)perm[i] * PAGE) == at, "mmap");
		list[i] = r->pages + (size_t)perm[i] * PAGE;
	}
	close(fd);
	free(perm);
}

static void
region_open(struct sim_pair *p, unsigned int side)
{
	struct sim *s = p->s;
	struct sim_region *r = &p->region[side];
	void **list;

	r->len = ((p->attr.region ? p->attr.region : 1u << 20) + PAGE - 1) & ~(PAGE - 1);
	list = malloc(r->len / PAGE * sizeof(*list));
	r->shadow = malloc(r->len);
	sim_check(s, list != NULL && r->shadow != NULL, "no memory");
	map_scattered(s, r, list);
	/* A first byte that is not the first of its page. */
	r->va = VA_BASE * (1 + side) + (uint64_t)p->index * 0x100000000ull;
	r->mr = softhca_reg_mr_pages(s->side[side].pd, r->va, r->len, PAGE, list, r->len / PAGE,
				     SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE |
				     SOFTHCA_ACCESS_REMOTE_READ | SOFTHCA_ACCESS_REMOTE_ATOMIC);
	sim_check(s, r->mr != NULL, "reg_mr_pages: %s", softhca_last_error(s->side[side].ctx));
	free(list);
	fill(s->model, r->view, r->len);
	memcpy(r->shadow, r->view, r->len);
	r->used = COUNTER_BYTES;
}

static void
region_close(struct sim_pair *p, unsigned int side)
{
	struct sim_region *r = &p->region[side];
	int rc = softhca_dereg_mr(r->mr);

	sim_check(p->s, rc == 0, "dereg_mr: %d: %s", rc, softhca_last_error(p->s->side[side].ctx));
	munmap(r->view, r->len);
	munmap(r->pages, r->len);
	free(r->shadow);
}

struct sim_area
sim_area(struct sim_pair *p, unsigned int side, uint32_t len)
{
	struct sim_region *r = &p->region[side];
	uint32_t gap = 1 + sim_below(&p->s->model->rng, GUARD);
	struct sim_area a = {.off = r->used + gap, .len = len};

	if ((uint64_t)a.off + len + GUARD > r->len)
		return (struct sim_area){.off = UINT32_MAX, .len = len};
	r->used = a.off + len;
	return a;
}

static bool
has_room(const struct sim_pair *p, uint32_t bytes, unsigned int areas)
{
	for (unsigned int i = 0; i < 2; i++)
		if ((uint64_t)p->region[i].used + bytes + (areas + 1ull) * (GUARD + 1) >
		    p->region[i].len)
			return false;
	return true;
}

static void
set_shadow(struct sim_region *r, uint32_t off, const void *data, uint32_t len)
{
	memcpy(r->shadow + off, data, len);
}

/* What the areas hold by the shadow, as one run of bytes. */
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

/* A message and a receive have met. */
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

static bool
is_atomic(uint32_t opcode)
{
	return opcode == SOFTHCA_WR_ATOMIC_CMP_AND_SWP ||
	       opcode == SOFTHCA_WR_ATOMIC_FETCH_AND_ADD;
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
		fifo_put(&p->unmatched_send[op->side], copy);
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
build_sges(const struct sim_pair *p, const struct sim_op *op, struct softhca_sge *sge,
	   bool in_line)
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
	*op = (struct sim_op){.wr_id = p->next_id++, .side = side, .is_recv = true, .len = len,
			      .nsge = nsge, .signalled = true};
	split(p, op, &req);
	build_sges(p, op, sge, false);
	wr.wr_id = op->wr_id;
	wr.num_sge = (int)nsge;
	rc = softhca_post_recv(p->qp[side], &wr, &bad);
	sim_check(p->s, rc == 0, "post_recv: %d: %s", rc,
		  softhca_last_error(p->s->side[side].ctx));
	fifo_put(&p->rq[side], op);
	send = fifo_take(&p->unmatched_send[1 - side]);
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

	/* Messages without a receive on purpose wait for this call. */
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
	op->len = is_atomic(req->opcode) ? 8 : req->len;
	op->nsge = is_atomic(req->opcode) ? 1 : req->nsge != 0 ? req->nsge : op->len != 0;
	op->signalled = (req->flags & SOFTHCA_SEND_SIGNALED) != 0;
	split(p, op, req);
	if (is_atomic(op->opcode))
		op->remote = (struct sim_area){.off = 0, .len = 8};
	else if (op->opcode != SOFTHCA_WR_SEND && op->opcode != SOFTHCA_WR_SEND_WITH_IMM)
		op->remote = sim_area(p, 1 - side, op->len);
	if (op->opcode == SOFTHCA_WR_SEND_WITH_IMM ||
	    op->opcode == SOFTHCA_WR_RDMA_WRITE_WITH_IMM)
		op->imm = (uint32_t)sim_random(&p->s->model->rng);
	return op;
}

static void
build_wr(struct sim_pair *p, struct sim_op *op, const struct sim_req *req,
	 struct softhca_send_wr *wr, struct softhca_sge *sge)
{
	const struct sim_region *r = &p->region[1 - op->side];
	uint64_t raddr = r->va + op->remote.off;

	*wr = (struct softhca_send_wr){.wr_id = op->wr_id, .sg_list = sge,
				       .num_sge = (int)op->nsge, .opcode = op->opcode,
				       .send_flags = req->flags, .imm_data = op->imm};
	build_sges(p, op, sge, (req->flags & SOFTHCA_SEND_INLINE) != 0);
	if (is_atomic(op->opcode)) {
		wr->wr.atomic.remote_addr = raddr;
		wr->wr.atomic.rkey = r->mr->rkey;
	} else {
		wr->wr.rdma.remote_addr = raddr;
		wr->wr.rdma.rkey = r->mr->rkey;
	}
	predict(p, op, wr);
}

static bool
fits(const struct sim_pair *p, unsigned int side, const struct sim_req *req, unsigned int n)
{
	unsigned int areas = 0, recvs = 0;
	uint64_t bytes = 0;

	for (unsigned int i = 0; i < n; i++) {
		bytes += is_atomic(req[i].opcode) ? 8 : req[i].len;
		areas += 2 + req[i].nsge;
		if (needs_recv(req[i].opcode) && !req[i].no_recv) {
			recvs++;
			bytes += req[i].len + GUARD;
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

	if (n == 0 || n > MAX_CHAIN || sim_post_missing(p, 1 - side) != 0 ||
	    !fits(p, side, req, n))
		return -ENOMEM;
	for (unsigned int i = 0; i < n; i++) {
		struct sim_op *op;

		if (needs_recv(req[i].opcode) && !req[i].no_recv) {
			uint32_t room = req[i].len + sim_below(&p->s->model->rng, GUARD);
			unsigned int k = 1 + sim_below(&p->s->model->rng, p->attr.max_sge);

			rc = sim_post_recv(p, 1 - side, room, k);
			sim_check(p->s, rc == 0, "no room for a receive");
		}
		op = make_op(p, side, &req[i]);
		build_wr(p, op, &req[i], &wr[i], sge[i]);
		wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
		fifo_put(&p->sq[side], op);
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
	*op = (struct sim_op){.wr_id = p->next_id++, .side = side, .opcode = wr->opcode,
			      .status = status, .signalled = true};
	wr->wr_id = op->wr_id;
	fifo_put(&p->sq[side], op);
	p->posted[side]++;
	rc = softhca_post_send(p->qp[side], wr, &bad);
	sim_check(p->s, rc == 0, "post_send: %d: %s", rc,
		  softhca_last_error(p->s->side[side].ctx));
	return op->wr_id;
}

void
sim_post_recv_wr(struct sim_pair *p, unsigned int side, struct softhca_recv_wr *wr,
		 uint32_t status)
{
	struct softhca_recv_wr *bad;
	struct sim_op *op = calloc(1, sizeof(*op));
	int rc;

	sim_check(p->s, op != NULL, "no memory");
	*op = (struct sim_op){.wr_id = p->next_id++, .side = side, .is_recv = true,
			      .status = status, .signalled = true};
	wr->wr_id = op->wr_id;
	fifo_put(&p->rq[side], op);
	rc = softhca_post_recv(p->qp[side], wr, &bad);
	sim_check(p->s, rc == 0, "post_recv: %d: %s", rc,
		  softhca_last_error(p->s->side[side].ctx));
}

struct sim_req
sim_random_req(struct sim_pair *p, uint32_t max_len)
{
	struct sim_rng *rng = &p->s->model->rng;
	uint32_t mtu = 128u << p->attr.mtu;
	struct sim_req r = {.opcode = sim_below(rng, SOFTHCA_WR_OPCODE_COUNT)};

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
	    r.opcode <= SOFTHCA_WR_SEND_WITH_IMM)
		r.flags |= SOFTHCA_SEND_INLINE;
	return r;
}

/* --- judging -------------------- */

static void
check_area(struct sim_pair *p, const struct sim_op *op, unsigned int side, struct sim_area a,
	   const char *what)
{
	const struct sim_region *r = &p->region[side];

	if (memcmp(r->view + a.off, r->shadow + a.off, a.len) == 0)
		return;
	for (uint32_t i = 0; i < a.len; i++)
		sim_check(p->s, r->view[a.off + i] == r->shadow[a.off + i],
			  "pair %u, request %" PRIu64 " (side %u, op %u, %u bytes): %s byte %u of "
			  "%u on side %u is %02x instead of %02x", p->index, op->wr_id, op->side,
			  op->opcode, op->len, what, i, a.len, side, r->view[a.off + i],
			  r->shadow[a.off + i]);
}

static void
check_data(struct sim_pair *p, const struct sim_op *op)
{
	uint32_t left = op->is_recv ? op->byte_len : op->len;

	/* The counter may have been changed by later requests, the result word has not. */
	if (op->checks & 1) {
		for (unsigned int i = 0; i < op->nsge && left != 0; i++) {
			struct sim_area a = op->local[i];

			a.len = a.len < left ? a.len : left;
			left -= a.len;
			check_area(p, op, op->side, a, "local");
		}
	}
	if (op->checks & 2)
		check_area(p, op, 1 - op->side, op->remote, "remote");
}

static uint32_t
wc_opcode_of(const struct sim_op *op)
{
	static const uint8_t send[] = {
		[SOFTHCA_WR_RDMA_WRITE] = SOFTHCA_WC_RDMA_WRITE,
		[SOFTHCA_WR_RDMA_WRITE_WITH_IMM] = SOFTHCA_WC_RDMA_WRITE,
		[SOFTHCA_WR_SEND] = SOFTHCA_WC_SEND,
		[SOFTHCA_WR_SEND_WITH_IMM] = SOFTHCA_WC_SEND,
		[SOFTHCA_WR_RDMA_READ] = SOFTHCA_WC_RDMA_READ,
		[SOFTHCA_WR_ATOMIC_CMP_AND_SWP] = SOFTHCA_WC_COMP_SWAP,
		[SOFTHCA_WR_ATOMIC_FETCH_AND_ADD] = SOFTHCA_WC_FETCH_ADD,
	};

	if (!op->is_recv)
		return send[op->opcode];
	return op->opcode == SOFTHCA_WR_RDMA_WRITE_WITH_IMM ? SOFTHCA_WC_RECV_RDMA_WITH_IMM :
	       SOFTHCA_WC_RECV;
}

static bool
is_recv_wc(const struct softhca_wc *wc)
{
	return (wc->opcode & SOFTHCA_WC_RECV) != 0;
}

/* Fields a successful completion must have. */
static void
check_fields(struct sim_pair *p, const struct sim_op *op, const struct softhca_wc *wc)
{
	bool imm = op->is_recv && op->opcode != SOFTHCA_WR_SEND;
	bool counts = op->is_recv || op->opcode >= SOFTHCA_WR_RDMA_READ;

	sim_check(p->s, wc->opcode == wc_opcode_of(op), "request %" PRIu64 ": opcode %u not %u",
		  op->wr_id, wc->opcode, wc_opcode_of(op));
	sim_check(p->s, !counts || wc->byte_len == op->byte_len,
		  "request %" PRIu64 " op %u: byte_len %u not %u", op->wr_id, op->opcode,
		  wc->byte_len, op->byte_len);
	sim_check(p->s, !imm || (wc->imm_data == op->imm && (wc->wc_flags & SOFTHCA_WC_WITH_IMM)),
		  "request %" PRIu64 ": immediate %08x not %08x", op->wr_id, wc->imm_data, op->imm);
	sim_check(p->s, imm || !op->is_recv || (wc->wc_flags & SOFTHCA_WC_WITH_IMM) == 0,
		  "request %" PRIu64 ": an immediate that was not sent", op->wr_id);
}

/* Where an operation failed, its targets hold anything. */
static void
adopt(struct sim_region *r, struct sim_area a)
{
	if (a.off < r->len && a.len <= r->len - a.off)
		memcpy(r->shadow + a.off, r->view + a.off, a.len);
}

static void
forget_targets(struct sim_pair *p, const struct sim_op *op)
{
	for (unsigned int i = 0; i < op->nsge; i++)
		adopt(&p->region[op->side], op->local[i]);
	adopt(&p->region[1 - op->side], op->remote);
}

static void
judge(struct sim_pair *p, unsigned int side, const struct softhca_wc *wc)
{
	bool recv = is_recv_wc(wc);
	struct sim_fifo *f = recv ? &p->rq[side] : &p->sq[side];
	struct sim_op *op;

	/* Unsignalled requests before it are done with it. */
	while (f->head != NULL && !f->head->signalled && f->head->wr_id != wc->wr_id) {
		op = fifo_take(f);
		check_data(p, op);
		p->posted[side]--;
		free(op);
	}
	op = fifo_take(f);
	sim_check(p->s, op != NULL,
		  "pair %u side %u: %s completion of %" PRIu64 " (status %u) too many", p->index,
		  side, recv ? "receive" : "send", wc->wr_id, wc->status);
	sim_check(p->s, op->wr_id == wc->wr_id,
		  "pair %u side %u: %s completion of %" PRIu64 " (status %s, vendor %#x) where "
		  "%" PRIu64 " was due", p->index, side, recv ? "receive" : "send", wc->wr_id,
		  softhca_wc_status_str(wc->status), wc->vendor_err, op->wr_id);
	sim_check(p->s, op->signalled, "pair %u side %u: request %" PRIu64 " was not signalled",
		  p->index, side, op->wr_id);
	sim_check(p->s, wc->status == op->status,
		  "pair %u side %u: %s %" PRIu64 " (op %u, %u bytes): status %s (vendor %#x), not "
		  "%s", p->index, side, recv ? "receive" : "request", op->wr_id, op->opcode,
		  op->len, softhca_wc_status_str(wc->status), wc->vendor_err,
		  softhca_wc_status_str(op->status));
	if (op->status == SOFTHCA_WC_SUCCESS) {
		sim_check(p->s, !recv || op->matched, "receive %" PRIu64 " completed for nothing",
			  op->wr_id);
		check_fields(p, op, wc);
		check_data(p, op);
		p->retired += op->len;
	} else {
		p->s->model->last_error = *wc;
		forget_targets(p, op);
	}
	if (!recv)
		p->posted[side]--;
	p->completions++;
	free(op);
}

static unsigned int
reap_side(struct sim_pair *p, unsigned int side)
{
	struct softhca_wc wc[CQ_BATCH];
	int n = softhca_poll_cq(p->cq[side], CQ_BATCH, wc);

	sim_check(p->s, n >= 0, "poll_cq: %d", n);
	for (int i = 0; i < n; i++) {
		const uint64_t v[] = {wc[i].wr_id, wc[i].status, wc[i].opcode, wc[i].byte_len,
				      wc[i].imm_data, wc[i].qp_num, wc[i].vendor_err};
		uint64_t *h = &p->s->side[side].cqe_hash;

		sim_check(p->s, wc[i].qp_num == p->qp[side]->qp_num, "a completion of QP %#x",
			  wc[i].qp_num);
		*h = sim_hash(*h, v, sizeof(v));
		judge(p, side, &wc[i]);
	}
	return (unsigned int)n;
}

unsigned int
sim_reap(struct sim *s)
{
	unsigned int n = 0;

	for (struct sim_pair *p = model(s)->pairs; p != NULL; p = p->next)
		n += reap_side(p, 0) + reap_side(p, 1);
	return n;
}

bool
sim_outstanding(struct sim_pair *p)
{
	for (unsigned int i = 0; i < 2; i++) {
		if (p->sq[i].n != 0 || p->unmatched_send[i].n != 0)
			return true;
		for (struct sim_op *op = p->rq[i].head; op != NULL; op = op->next)
			if (op->matched || op->status != SOFTHCA_WC_SUCCESS)
				return true;
	}
	return false;
}

static bool
all_done(struct sim *s, void *arg)
{
	(void)arg;
	sim_reap(s);
	for (struct sim_pair *p = s->model->pairs; p != NULL; p = p->next)
		if (sim_outstanding(p))
			return false;
	return true;
}

/* An unsignalled request at the end would never be known to be done. */
static void
signal_ends(struct sim *s)
{
	const struct sim_req last = {.opcode = SOFTHCA_WR_RDMA_WRITE,
				     .flags = SOFTHCA_SEND_SIGNALED};

	for (struct sim_pair *p = model(s)->pairs; p != NULL; p = p->next) {
		for (unsigned int i = 0; i < 2; i++) {
			if (!p->unsignalled_last[i] || p->sq[i].n == 0 ||
			    p->qp[i]->state != SOFTHCA_QPS_RTS)
				continue;
			for (unsigned int k = 0; k < 1000000; k++) {
				if (sim_post(p, i, &last, 1) == 0)
					break;
				sim_poll(s);
				sim_reap(s);
			}
		}
	}
}

bool
sim_drain(struct sim *s, uint64_t max_ns)
{
	signal_ends(s);
	return sim_run_until(s, all_done, NULL, max_ns);
}

static void
explain(struct sim *s)
{
	for (struct sim_pair *p = s->model->pairs; p != NULL; p = p->next) {
		for (unsigned int i = 0; i < 2; i++) {
			const struct sim_op *op = p->sq[i].head;

			if (p->sq[i].n + p->rq[i].n != 0)
				fprintf(stderr, "pair %u side %u: sq %u, rq %u, unmatched %u\n",
					p->index, i, p->sq[i].n, p->rq[i].n,
					p->unmatched_send[i].n);
			if (op != NULL)
				fprintf(stderr, "  first: request %" PRIu64 ", op %u, %u bytes%s\n",
					op->wr_id, op->opcode, op->len,
					op->signalled ? "" : ", unsignalled");
		}
	}
}

void
sim_finish(struct sim *s, uint64_t max_ns)
{
	if (!sim_drain(s, max_ns)) {
		explain(s);
		sim_fail(s, "not finished after %" PRIu64 " us", max_ns / 1000);
	}
	for (struct sim_pair *p = s->model->pairs; p != NULL; p = p->next) {
		for (unsigned int i = 0; i < 2; i++) {
			const struct sim_op op = {.wr_id = 0, .side = i};
			struct sim_area all = {.off = 0, .len = p->region[i].len};

			check_area(p, &op, i, all, "epoch");
			/* Receives that wait for nothing keep their memory. */
			if (p->rq[0].n + p->rq[1].n == 0)
				p->region[i].used = COUNTER_BYTES;
		}
	}
}

void
sim_expect_sq_error(struct sim_pair *p, unsigned int side, uint64_t wr_id, uint32_t status,
		    bool arrived)
{
	struct sim_op *op = p->sq[side].head;

	while (op != NULL && op->wr_id != wr_id)
		op = op->next;
	sim_check(p->s, op != NULL, "no request %" PRIu64, wr_id);
	for (; op != NULL; op = op->next) {
		op->status = status;
		op->signalled = true;
		op->checks = 0;
		status = SOFTHCA_WC_WR_FLUSH_ERR;
		if (op->peer != NULL && !arrived) {
			op->peer->matched = false;
			op->peer->checks = 0;
			forget_targets(p, op->peer);
		}
	}
	p->unsignalled_last[side] = false;
	fifo_free(&p->unmatched_send[side]);
}

void
sim_expect_rq_flush(struct sim_pair *p, unsigned int side, uint32_t first_status)
{
	for (struct sim_op *op = p->rq[side].head; op != NULL; op = op->next) {
		op->status = first_status;
		op->checks = 0;
		first_status = SOFTHCA_WC_WR_FLUSH_ERR;
	}
}

/* --- pairs -------------------- */

static void
to_state(struct sim_pair *p, unsigned int side, const struct softhca_qp_attr *attr, uint32_t mask)
{
	int rc = softhca_modify_qp(p->qp[side], attr, mask);

	sim_check(p->s, rc == 0, "modify_qp to %s: %d: %s", softhca_qp_state_str(attr->qp_state),
		  rc, softhca_last_error(p->s->side[side].ctx));
}

void
sim_connect(struct sim_pair *p, unsigned int side)
{
	const struct sim_pair_attr *a = &p->attr;
	struct softhca_qp_attr q = {
		.qp_state = SOFTHCA_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = SOFTHCA_ACCESS_REMOTE_WRITE | SOFTHCA_ACCESS_REMOTE_READ |
				   SOFTHCA_ACCESS_REMOTE_ATOMIC,
		.path_mtu = a->mtu,
		.dest_qp_num = p->qp[1 - side]->qp_num,
		.rq_psn = a->psn[1 - side],
		.sq_psn = a->psn[side],
		.max_dest_rd_atomic = (uint8_t)a->max_rd_atomic,
		.max_rd_atomic = (uint8_t)a->max_rd_atomic,
		.min_rnr_timer = (uint8_t)a->min_rnr_timer,
		.timeout = (uint8_t)a->timeout,
		.retry_cnt = (uint8_t)a->retry_cnt,
		.rnr_retry = (uint8_t)a->rnr_retry,
		.ah_attr = {.port_num = 1, .is_global = 1, .hop_limit = 64,
			    .dgid.raw = {[10] = 0xff, 0xff, 10, 77, 0, (uint8_t)(2 - side)}},
	};

	to_state(p, side, &q, SOFTHCA_QP_STATE | SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT |
			      SOFTHCA_QP_ACCESS_FLAGS);
	q.qp_state = SOFTHCA_QPS_RTR;
	to_state(p, side, &q, SOFTHCA_QP_STATE | SOFTHCA_QP_AV | SOFTHCA_QP_PATH_MTU |
			      SOFTHCA_QP_DEST_QPN | SOFTHCA_QP_RQ_PSN |
			      SOFTHCA_QP_MAX_DEST_RD_ATOMIC | SOFTHCA_QP_MIN_RNR_TIMER);
	q.qp_state = SOFTHCA_QPS_RTS;
	to_state(p, side, &q, SOFTHCA_QP_STATE | SOFTHCA_QP_TIMEOUT | SOFTHCA_QP_RETRY_CNT |
			      SOFTHCA_QP_RNR_RETRY | SOFTHCA_QP_SQ_PSN |
			      SOFTHCA_QP_MAX_QP_RD_ATOMIC);
}

static void
set_default(uint32_t *v, uint32_t d)
{
	if (*v == 0)
		*v = d;
}

static void
default_attr(struct sim_pair_attr *a)
{
	set_default(&a->mtu, SOFTHCA_MTU_1024);
	set_default(&a->sq_depth, 64);
	set_default(&a->rq_depth, 64);
	set_default(&a->max_sge, 4);
	set_default(&a->max_rd_atomic, 4);
	set_default(&a->min_rnr_timer, 1);
	set_default(&a->timeout, a->no_timeout ? 0 : 8);
	set_default(&a->retry_cnt, a->no_retry ? 0 : 7);
	set_default(&a->rnr_retry, a->no_rnr_retry ? 0 : 7);
}

static void
open_qp(struct sim_pair *p, unsigned int side)
{
	struct softhca_cq_init_attr ca = {.cqe = p->attr.sq_depth + p->attr.rq_depth};
	struct softhca_qp_init_attr qa = {
		.cap = {.max_send_wr = p->attr.sq_depth, .max_recv_wr = p->attr.rq_depth,
			.max_send_sge = p->attr.max_sge, .max_recv_sge = p->attr.max_sge,
			.max_inline_data = p->attr.max_inline},
		.qp_type = SOFTHCA_QPT_RC,
	};
	struct sim_side *ss = &p->s->side[side];

	p->cq[side] = softhca_create_cq(ss->ctx, &ca);
	sim_check(p->s, p->cq[side] != NULL, "create_cq: %s", softhca_last_error(ss->ctx));
	qa.send_cq = qa.recv_cq = p->cq[side];
	p->qp[side] = softhca_create_qp(ss->pd, &qa);
	sim_check(p->s, p->qp[side] != NULL, "create_qp: %s", softhca_last_error(ss->ctx));
	fifo_init(&p->sq[side]);
	fifo_init(&p->rq[side]);
	fifo_init(&p->unmatched_send[side]);
}

struct sim_pair *
sim_pair_open(struct sim *s, const struct sim_pair_attr *attr)
{
	struct sim_model *m = model(s);
	struct sim_pair *p = calloc(1, sizeof(*p));

	sim_check(s, p != NULL, "no memory");
	p->s = s;
	p->index = m->serial++;
	if (attr != NULL)
		p->attr = *attr;
	default_attr(&p->attr);
	for (unsigned int i = 0; i < 2; i++) {
		region_open(p, i);
		open_qp(p, i);
	}
	sim_connect(p, 0);
	sim_connect(p, 1);
	p->next = m->pairs;
	m->pairs = p;
	m->num_pairs++;
	return p;
}

static void
forget_all(struct sim_pair *p)
{
	for (unsigned int i = 0; i < 2; i++) {
		for (struct sim_op *op = p->sq[i].head; op != NULL; op = op->next)
			forget_targets(p, op);
		for (struct sim_op *op = p->rq[i].head; op != NULL; op = op->next)
			forget_targets(p, op);
		fifo_free(&p->sq[i]);
		fifo_free(&p->rq[i]);
		fifo_free(&p->unmatched_send[i]);
		p->posted[i] = 0;
		p->unsignalled_last[i] = false;
	}
}

void
sim_pair_close(struct sim_pair *p)
{
	struct sim_model *m = p->s->model;
	struct sim_pair **at = &m->pairs;

	for (unsigned int i = 0; i < 2; i++) {
		int rc = softhca_destroy_qp(p->qp[i]);

		sim_check(p->s, rc == 0, "destroy_qp: %d: %s", rc,
			  softhca_last_error(p->s->side[i].ctx));
		rc = softhca_destroy_cq(p->cq[i]);
		sim_check(p->s, rc == 0, "destroy_cq: %d: %s", rc,
			  softhca_last_error(p->s->side[i].ctx));
	}
	for (unsigned int i = 0; i < 2; i++)
		region_close(p, i);
	for (unsigned int i = 0; i < 2; i++) {
		fifo_free(&p->sq[i]);
		fifo_free(&p->rq[i]);
		fifo_free(&p->unmatched_send[i]);
	}
	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	m->num_pairs--;
	free(p);
}

void
sim_pair_reset(struct sim_pair *p)
{
	const struct softhca_qp_attr q = {.qp_state = SOFTHCA_QPS_RESET};

	for (unsigned int i = 0; i < 2; i++)
		to_state(p, i, &q, SOFTHCA_QP_STATE);
	forget_all(p);
	sim_connect(p, 0);
	sim_connect(p, 1);
	/* Whatever a failed atomic did to a counter, it is known now. */
	for (unsigned int i = 0; i < 2; i++) {
		memcpy(p->region[i].shadow, p->region[i].view, p->region[i].len);
		p->region[i].used = COUNTER_BYTES;
	}
}
