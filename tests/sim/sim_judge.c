/* SPDX-License-Identifier: BSD-3-Clause */

/* Checks of completions and memory, and expectations after failures. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim_link.h"
#include "sim_model_impl.h"

#define CQ_BATCH 64

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
			  "%u on side %u is %02x instead of %02x",
			  p->index, op->wr_id, op->side, op->opcode, op->len, what, i, a.len, side,
			  r->view[a.off + i], r->shadow[a.off + i]);
}

static void
check_data(struct sim_pair *p, const struct sim_op *op)
{
	uint32_t left = op->is_recv ? op->byte_len : op->len;

	/* later requests may have changed the counter, but not the result */
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
		[SOFTHCA_WR_LOCAL_INV] = SOFTHCA_WC_LOCAL_INV,
		[SOFTHCA_WR_BIND_MW] = SOFTHCA_WC_BIND_MW,
		[SOFTHCA_WR_FLUSH] = SOFTHCA_WC_FLUSH,
		[SOFTHCA_WR_ATOMIC_WRITE] = SOFTHCA_WC_ATOMIC_WRITE,
	};

	if (!op->is_recv)
		return send[op->opcode];
	return op->opcode == SOFTHCA_WR_RDMA_WRITE_WITH_IMM ? SOFTHCA_WC_RECV_RDMA_WITH_IMM
							    : SOFTHCA_WC_RECV;
}

static bool
is_recv_wc(const struct softhca_wc *wc)
{
	return (wc->opcode & SOFTHCA_WC_RECV) != 0;
}

/* Check the fields that a successful completion must have. */
static void
check_fields(struct sim_pair *p, const struct sim_op *op, const struct softhca_wc *wc)
{
	bool imm = op->is_recv && op->opcode != SOFTHCA_WR_SEND;
	bool counts = op->is_recv ||
		      (op->opcode >= SOFTHCA_WR_RDMA_READ && op->opcode < SOFTHCA_WR_LOCAL_INV) ||
		      op->opcode >= SOFTHCA_WR_ATOMIC_WRITE;

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

/* After a failure the targets of an operation may contain anything. */
static void
adopt(struct sim_region *r, struct sim_area a)
{
	if (a.off < r->len && a.len <= r->len - a.off)
		memcpy(r->shadow + a.off, r->view + a.off, a.len);
}

void
sim_forget_targets(struct sim_pair *p, const struct sim_op *op)
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

	/* unsignalled requests before it are also complete */
	while (f->head != NULL && !f->head->signalled && f->head->wr_id != wc->wr_id) {
		op = sim_fifo_take(f);
		check_data(p, op);
		p->posted[side]--;
		free(op);
	}
	op = sim_fifo_take(f);
	sim_check(p->s, op != NULL,
		  "pair %u side %u: %s completion of %" PRIu64 " (status %u) too many", p->index,
		  side, recv ? "receive" : "send", wc->wr_id, wc->status);
	sim_check(p->s, op->wr_id == wc->wr_id,
		  "pair %u side %u: %s completion of %" PRIu64 " (status %s, vendor %#x) where "
		  "%" PRIu64 " was due",
		  p->index, side, recv ? "receive" : "send", wc->wr_id,
		  softhca_wc_status_str(wc->status), wc->vendor_err, op->wr_id);
	sim_check(p->s, op->signalled,
		  "pair %u side %u: request %" PRIu64 " was not signalled (status %s)", p->index,
		  side, op->wr_id, softhca_wc_status_str(wc->status));
	sim_check(p->s, wc->status == op->status,
		  "pair %u side %u: %s %" PRIu64 " (op %u, %u bytes): status %s (vendor %#x), not "
		  "%s",
		  p->index, side, recv ? "receive" : "request", op->wr_id, op->opcode, op->len,
		  softhca_wc_status_str(wc->status), wc->vendor_err,
		  softhca_wc_status_str(op->status));
	if (op->status == SOFTHCA_WC_SUCCESS) {
		sim_check(p->s, !recv || op->matched, "receive %" PRIu64 " completed for nothing",
			  op->wr_id);
		check_fields(p, op, wc);
		check_data(p, op);
		p->retired += op->len;
	} else {
		p->s->model->last_error = *wc;
		sim_forget_targets(p, op);
	}
	if (!recv)
		p->posted[side]--;
	p->completions++;
	free(op);
}

static int
take(struct sim_pair *p, unsigned int side, struct softhca_wc *wc)
{
	uint16_t vlan[CQ_BATCH];

	return p->attr.read ? sim_read_cq(p->s, p->cq[side], CQ_BATCH, wc, vlan)
			    : softhca_poll_cq(p->cq[side], CQ_BATCH, wc);
}

static unsigned int
reap_side(struct sim_pair *p, unsigned int side)
{
	struct softhca_wc wc[CQ_BATCH];
	int n = take(p, side, wc);

	sim_check(p->s, n >= 0, "poll_cq: %d", n);
	for (int i = 0; i < n; i++) {
		const uint64_t v[] = {wc[i].wr_id,    wc[i].status, wc[i].opcode,    wc[i].byte_len,
				      wc[i].imm_data, wc[i].qp_num, wc[i].vendor_err};
		uint64_t *h = &p->s->side[side].cqe_hash;

		sim_check(p->s, wc[i].qp_num == (is_recv_wc(&wc[i]) ? p->tgt : p->qp)[side]->qp_num,
			  "a completion of QP %#x", wc[i].qp_num);
		*h = sim_hash(*h, v, sizeof(v));
		judge(p, side, &wc[i]);
	}
	return (unsigned int)n;
}

unsigned int
sim_reap(struct sim *s)
{
	unsigned int n = 0;

	for (struct sim_pair *p = sim_model(s)->pairs; p != NULL; p = p->next)
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

/* the completion of a last request that is unsignalled would never be known */
static void
signal_ends(struct sim *s)
{
	const struct sim_req last = {.opcode = SOFTHCA_WR_RDMA_WRITE,
				     .flags = SOFTHCA_SEND_SIGNALED};

	for (struct sim_pair *p = sim_model(s)->pairs; p != NULL; p = p->next) {
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
			/* receives without a message keep their memory */
			if (p->rq[0].n + p->rq[1].n == 0)
				p->region[i].used = SIM_COUNTER_BYTES;
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
			sim_forget_targets(p, op->peer);
		}
	}
	p->unsignalled_last[side] = false;
	sim_fifo_free(&p->unmatched_send[side]);
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
