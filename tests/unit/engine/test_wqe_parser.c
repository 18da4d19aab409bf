/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * wqe_parser: chains, decoding of every unit, what is wrong in a WQE and in a chain, the window,
 * the record reservation, states and purge.
 */

#include "fixture.h"

#include <string.h>

#include "abi_bar.h"
#include "abi_cqe.h"
#include "abi_ctx.h"
#include "abi_wqe.h"
#include "engine/doorbell.h"
#include "engine/parser.h"
#include "engine/record_pool.h"

#define QPI 3u
#define PAGE 5u
#define BUDGET 32u

/* ---- client side: building WQEs ---- */

/* A WQE under construction: units are appended behind the next unit. */
struct wqe {
	uint8_t b[HCA_WQE_MAX_STRIDE];
	uint32_t len;
};

static struct wqe
wqe_new(uint32_t flags, uint32_t imm)
{
	struct wqe w = {.len = sizeof(struct hca_next_unit)};

	hca_put_le32(w.b + 8, flags);
	memcpy(w.b + 12, &imm, sizeof(imm));
	return w;
}

static void
add_raddr(struct wqe *w, uint64_t raddr, uint32_t rkey)
{
	hca_put_le64(w->b + w->len, raddr);
	hca_put_le32(w->b + w->len + 8, rkey);
	w->len += 16;
}

static void
add_atomic(struct wqe *w, uint64_t swap_add, uint64_t cmp)
{
	hca_put_le64(w->b + w->len, swap_add);
	hca_put_le64(w->b + w->len + 8, cmp);
	w->len += 16;
}

static void
add_sge(struct wqe *w, uint64_t va, uint32_t lkey, uint32_t len)
{
	hca_put_le32(w->b + w->len, len);
	hca_put_le32(w->b + w->len + 4, lkey);
	hca_put_le64(w->b + w->len + 8, va);
	w->len += 16;
}

static void
add_inline(struct wqe *w, const void *data, uint32_t len)
{
	hca_put_le32(w->b + w->len, HCA_INLINE_FLAG | len);
	memcpy(w->b + w->len + 4, data, len);
	w->len += RTE_ALIGN_CEIL(4 + len, 16u);
}

static uint8_t *
slot(struct fx *fx, uint32_t index)
{
	struct hca_qp_parser *p = &fx->h->qp[QPI].parser;

	return p->sq.base + ((index & ((1u << p->sq_size_log) - 1)) << p->sq_stride_log);
}

static void
put(struct fx *fx, uint32_t index, const struct wqe *w)
{
	memcpy(slot(fx, index), w->b, 1u << fx->h->qp[QPI].parser.sq_stride_log);
}

/* The WQE at index - 1 announces the one at index. */
static void
link_to(struct fx *fx, uint32_t index, uint8_t op, uint32_t size, bool fence)
{
	struct hca_qp_parser *p = &fx->h->qp[QPI].parser;
	uint32_t off = (uint32_t)(slot(fx, index) - p->sq.base);
	uint8_t *before = slot(fx, index - 1);

	hca_put_le32(before, HCA_NEXT_MAKE_NDA_NOP(off, op));
	hca_put_le32(before + 4, HCA_NEXT_MAKE_NEE_NDS(fence, size / 16));
}

static void
ring_qp(struct fx *fx, uint32_t qpi, uint32_t index, uint8_t op, uint32_t size, bool fence)
{
	struct hca_qp *qp = &fx->h->qp[qpi];
	uint32_t head = index & ((1u << qp->parser.sq_size_log) - 1);
	void *obj = hca_dbw_make(HCA_DB_MAKE(head, fence, op, qp->cfg.local_qpn, size / 16), qpi,
				 qp->cfg.generation);

	hca_parser_process(fx->h, &obj, 1, 0);
}

static void
ring(struct fx *fx, uint32_t index, uint8_t op, uint32_t size)
{
	ring_qp(fx, QPI, index, op, size, false);
}

static struct wqe
write_wqe(uint32_t n)
{
	struct wqe w = wqe_new(HCA_WQE_FLAG_SIGNALED, 0);

	add_raddr(&w, 0x7000 + n, 0x900 + n);
	add_sge(&w, 0x10000 + n, 0x500 + n, 64);
	return w;
}

/* n WRITEs from index on as one chain, announced. */
static void
post_chain_qp(struct fx *fx, uint32_t qpi, uint32_t index, uint32_t n)
{
	struct hca_qp_parser *p = &fx->h->qp[qpi].parser;
	uint32_t mask = (1u << p->sq_size_log) - 1;

	for (uint32_t i = 0; i < n; i++) {
		struct wqe w = write_wqe(index + i);
		uint32_t at = ((index + i) & mask) << p->sq_stride_log;
		uint32_t next = ((index + i + 1) & mask) << p->sq_stride_log;

		if (i + 1 < n) {
			hca_put_le32(w.b, HCA_NEXT_MAKE_NDA_NOP(next, HCA_OP_RDMA_WRITE));
			hca_put_le32(w.b + 4, HCA_NEXT_MAKE_NEE_NDS(0, 3));
		}
		memcpy(p->sq.base + at, w.b, 64);
	}
	ring_qp(fx, qpi, index, HCA_OP_RDMA_WRITE, 48, false);
}

static void
post_chain(struct fx *fx, uint32_t index, uint32_t n)
{
	post_chain_qp(fx, QPI, index, n);
}

/* ---- device side: the rest of the engine ---- */

static uint64_t fx_now;

static unsigned int
poll_parser(struct fx *fx)
{
	return hca_parser_poll(fx->h, fx_now, BUDGET);
}

static struct hca_record *
rec(struct fx *fx, uint32_t cursor)
{
	struct hca_qp_parser *p = &fx->h->qp[QPI].parser;

	assert_true((int32_t)(p->head - cursor) > 0);
	return hca_record(fx->h, p->window[cursor & p->window_mask]);
}

/* RTC and RRC finish n requests of a QP. */
static void
complete(struct fx *fx, uint32_t qpi, uint32_t n)
{
	struct hca_qp *qp = &fx->h->qp[qpi];

	assert_true(qp->parser.head - qp->rtc.freed >= n);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t ref = qp->parser.window[(qp->rtc.freed + i) & qp->parser.window_mask];
		struct hca_record_pool *pool =
			ref & HCA_RECREF_FULL ? &fx->h->rec_full : &fx->h->rec;

		assert_int_equal(rte_ring_sp_enqueue_elem(pool->free, &ref, sizeof(ref)), 0);
	}
	qp->rtc.freed += n;
	qp->rrc.una = (uint64_t)qp->rtc.freed << 32;
	hca_msg_send(fx->h, HCA_STAGE_RTC, HCA_STAGE_PARSER, qpi, HCA_MSG_FREED);
}

static bool
told_rtc(struct fx *fx, uint32_t qpi)
{
	return fx_take_msgs(fx, HCA_STAGE_PARSER, HCA_STAGE_RTC, qpi) & HCA_MSG_NEW;
}

static void
expect_catas(struct fx *fx)
{
	assert_int_equal(FX_COUNTER(fx, PARSER, sq_catas), 1);
	assert_int_equal(fx->events, 1);
	assert_int_equal(fx->event[0].type, HCA_EVENT_WQ_CATAS);
	assert_int_equal(fx->event[0].index, QPI);
	assert_int_equal(fx->h->qp[QPI].cfg.state, HCA_QPS_ERR);
}

static int
setup(void **state)
{
	struct fx *fx = fx_create(NULL);

	assert_int_equal(hca_parser_init(fx->h), 0);
	fx_now = 0;
	*state = fx;
	return 0;
}

static int
teardown(void **state)
{
	struct fx *fx = *state;

	hca_parser_fini(fx->h);
	fx_destroy(fx);
	return 0;
}

/* One WQE of op on a fresh QP with stride 512; returns its record. */
static struct hca_record *
parse_one(struct fx *fx, const struct wqe *w, uint8_t op, uint32_t size)
{
	static uint32_t index;

	if (fx->h->qp[QPI].parser.chain == NULL) {
		fx_qp(fx, QPI, PAGE, 4, 9, 16);
		index = 0;
	}
	put(fx, index, w);
	ring(fx, index, op, size);
	assert_int_equal(poll_parser(fx), 1);
	assert_true(told_rtc(fx, QPI));
	return rec(fx, index++);
}

/* ---- decoding ---- */

static void
test_write(void **state)
{
	struct wqe w = wqe_new(HCA_WQE_FLAG_SIGNALED | HCA_WQE_FLAG_EVENT, 0);
	struct fx *fx = *state;
	struct hca_record *r;

	add_raddr(&w, 0x1122334455667788, 0xdeadbeef);
	add_sge(&w, 0xfedcba9876543210, 0x12345678, 4096);
	r = parse_one(fx, &w, HCA_OP_RDMA_WRITE, w.len);
	assert_int_equal(r->op, HCA_OP_RDMA_WRITE);
	assert_int_equal(r->flags, HCA_REC_SIGNALED);
	assert_int_equal(r->syndrome, 0);
	assert_int_equal(r->nsge, 1);
	assert_int_equal(r->wqe_index, 0);
	assert_int_equal(r->len, 4096);
	assert_true(r->raddr == 0x1122334455667788);
	assert_int_equal(r->rkey, 0xdeadbeef);
	assert_true(r->sge.va == 0xfedcba9876543210);
	assert_int_equal(r->sge.lkey, 0x12345678);
	assert_int_equal(r->sge.len, 4096);
}

static void
test_flags_imm_and_fence(void **state)
{
	struct fx *fx = *state;
	struct wqe w = wqe_new(HCA_WQE_FLAG_SOLICITED, 0xa1b2c3d4);
	struct hca_record *r;

	fx_qp(fx, QPI, PAGE, 4, 9, 16);
	put(fx, 0, &w);
	put(fx, 1, &w);
	put(fx, 2, &w);
	link_to(fx, 1, HCA_OP_SEND_IMM, 16, false);
	link_to(fx, 2, HCA_OP_SEND, 16, true);
	ring_qp(fx, QPI, 0, HCA_OP_SEND, 16, true);
	assert_int_equal(poll_parser(fx), 3);
	r = rec(fx, 0);
	assert_int_equal(r->flags, HCA_REC_SOLICITED | HCA_REC_FENCE);
	assert_int_equal(r->imm, 0xa1b2c3d4);
	assert_int_equal(r->len, 0);
	assert_int_equal(r->nsge, 0);
	assert_int_equal(rec(fx, 1)->op, HCA_OP_SEND_IMM);
	assert_int_equal(rec(fx, 1)->flags, HCA_REC_SOLICITED);
	assert_int_equal(rec(fx, 2)->flags, HCA_REC_SOLICITED | HCA_REC_FENCE);
}

static void
test_gather_list_skips_empty(void **state)
{
	struct fx *fx = *state;
	struct wqe w = wqe_new(0, 0);
	struct hca_record_full *f;

	for (uint32_t i = 0; i < HCA_SGE_MAX; i++)
		add_sge(&w, 0x1000 * i, i, i % 3);
	f = (struct hca_record_full *)parse_one(fx, &w, HCA_OP_SEND, w.len);
	assert_int_equal(f->r.syndrome, 0);
	assert_int_equal(f->r.flags, HCA_REC_FULL);
	assert_int_equal(f->r.nsge, 10);
	assert_int_equal(f->r.len, 15);
	for (uint32_t i = 0, k = 0; i < HCA_SGE_MAX; i++) {
		if (i % 3 == 0)
			continue;
		assert_int_equal(f->body.sge[k].lkey, i);
		assert_int_equal(f->body.sge[k].va, 0x1000 * i);
		assert_int_equal(f->body.sge[k++].len, i % 3);
	}
}

static void
test_one_of_many_sges(void **state)
{
	struct fx *fx = *state;
	struct wqe w = wqe_new(0, 0);
	struct hca_record *r;

	add_sge(&w, 1, 1, 0);
	add_sge(&w, 2, 2, 77);
	add_sge(&w, 3, 3, 0);
	r = parse_one(fx, &w, HCA_OP_SEND, w.len);
	assert_int_equal(r->flags, 0);
	assert_int_equal(r->nsge, 1);
	assert_int_equal(r->sge.va, 2);
	assert_int_equal(r->len, 77);
}

static void
test_inline(void **state)
{
	static const uint32_t lens[] = {1, 4, 12, 13, 480, 492};
	struct fx *fx = *state;
	uint8_t data[492];

	for (uint32_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + 1);
	for (unsigned int i = 0; i < RTE_DIM(lens); i++) {
		struct wqe w = wqe_new(0, 0);
		struct hca_record_full *f;

		add_inline(&w, data, lens[i]);
		f = (struct hca_record_full *)parse_one(fx, &w, HCA_OP_SEND, w.len);
		assert_int_equal(f->r.syndrome, 0);
		assert_int_equal(f->r.flags, HCA_REC_FULL | HCA_REC_INLINE);
		assert_int_equal(f->r.len, lens[i]);
		assert_int_equal(f->r.nsge, 0);
		assert_memory_equal(f->body.inline_data, data, lens[i]);
	}
}

static void
test_atomics_and_rd_ord(void **state)
{
	struct wqe cs = wqe_new(0, 0), fa = cs, rd = cs, wr = cs;
	struct fx *fx = *state;
	struct hca_record_full *f;
	struct hca_record *r;

	add_raddr(&cs, 0x100, 1);
	add_atomic(&cs, 11, 22);
	add_sge(&cs, 0x200, 2, 8);
	add_raddr(&fa, 0x100, 1);
	add_atomic(&fa, 33, 0);
	add_sge(&fa, 0x200, 2, 3);
	add_sge(&fa, 0x300, 3, 5);
	add_raddr(&rd, 0x100, 1);
	add_sge(&rd, 0x200, 2, 100000);
	wr = rd;
	r = parse_one(fx, &wr, HCA_OP_RDMA_WRITE, wr.len);
	assert_int_equal(r->rd_ord, 0);
	f = (struct hca_record_full *)parse_one(fx, &cs, HCA_OP_ATOMIC_CS, cs.len);
	assert_int_equal(f->r.flags, HCA_REC_FULL | HCA_REC_RD);
	assert_int_equal(f->r.rd_ord, 0);
	assert_int_equal(f->swap_add, 11);
	assert_int_equal(f->compare, 22);
	assert_int_equal(f->r.nsge, 1);
	assert_int_equal(f->body.sge[0].va, 0x200);
	r = parse_one(fx, &rd, HCA_OP_RDMA_READ, rd.len);
	assert_int_equal(r->flags, HCA_REC_RD);
	assert_int_equal(r->rd_ord, 1);
	f = (struct hca_record_full *)parse_one(fx, &fa, HCA_OP_ATOMIC_FA, fa.len);
	assert_int_equal(f->r.rd_ord, 2);
	assert_int_equal(f->r.nsge, 2);
	assert_int_equal(f->r.len, 8);
	r = parse_one(fx, &wr, HCA_OP_RDMA_WRITE, wr.len);
	assert_int_equal(r->rd_ord, 3);
}

static void
expect_bad(struct fx *fx, const struct wqe *w, uint8_t op, uint32_t size, uint8_t syndrome)
{
	struct hca_record *r = parse_one(fx, w, op, size);

	assert_int_equal(r->syndrome, syndrome);
	assert_int_equal(r->flags & (HCA_REC_FULL | HCA_REC_INLINE | HCA_REC_RD), 0);
	assert_int_equal(r->len, 0);
	assert_int_equal(r->nsge, 0);
	assert_int_equal(fx->h->qp[QPI].parser.rd_count, 0);
	assert_int_equal(fx->h->qp[QPI].cfg.state, HCA_QPS_RTS);
	complete(fx, QPI, 1);
	poll_parser(fx);
}

static void
test_send_with_invalidate(void **state)
{
	struct wqe w = wqe_new(0, 0);
	struct fx *fx = *state;
	struct hca_record *r;

	hca_put_le32(w.b + 12, 0x12345678);
	add_sge(&w, 0x200, 2, 8);
	r = parse_one(fx, &w, HCA_OP_SEND_INV, w.len);
	assert_int_equal(r->syndrome, 0);
	assert_int_equal(r->rkey, 0x12345678);
	assert_int_equal(r->len, 8);
}

static void
test_local_operations(void **state)
{
	struct wqe w = wqe_new(0, 0);
	struct fx *fx = *state;
	struct hca_bind_unit *u = (void *)(w.b + sizeof(struct hca_next_unit));
	struct hca_record *r;
	const struct hca_bind *b;

	hca_put_le32(w.b + 12, 0x11223344);
	r = parse_one(fx, &w, HCA_OP_LOCAL_INV, 16);
	assert_int_equal(r->syndrome, 0);
	assert_int_equal(r->flags & (HCA_REC_LOCAL | HCA_REC_FULL | HCA_REC_RD), HCA_REC_LOCAL);
	assert_int_equal(r->rkey, 0x11223344);
	complete(fx, QPI, 1);
	poll_parser(fx);
	u->access = hca_cpu_to_le32(HCA_ACCESS_REMOTE_READ);
	u->old_key = hca_cpu_to_le32(0x901);
	u->new_key = hca_cpu_to_le32(0x902);
	u->lkey = hca_cpu_to_le32(0x501);
	u->addr = hca_cpu_to_le64(0x123456789abcdef0);
	u->length = hca_cpu_to_le64(0xfedcba9876543210);
	w.len = 48;
	r = parse_one(fx, &w, HCA_OP_BIND_MW, 48);
	b = &((const struct hca_record_full *)r)->body.bind;
	assert_int_equal(r->syndrome, 0);
	assert_int_equal(r->flags & (HCA_REC_LOCAL | HCA_REC_FULL | HCA_REC_RD),
			 HCA_REC_LOCAL | HCA_REC_FULL);
	assert_int_equal(r->len, 0);
	assert_int_equal(b->access, HCA_ACCESS_REMOTE_READ);
	assert_int_equal(b->old_key, 0x901);
	assert_int_equal(b->new_key, 0x902);
	assert_int_equal(b->lkey, 0x501);
	assert_int_equal(b->addr, 0x123456789abcdef0);
	assert_int_equal(b->length, 0xfedcba9876543210);
}

static void
test_bad_structure(void **state)
{
	struct wqe head = wqe_new(0, 0), w;
	struct fx *fx = *state;
	uint8_t data[480] = {0};

	/* announced sizes: none, below the headers, above the stride */
	expect_bad(fx, &head, HCA_OP_SEND, 0, HCA_SYND_LOCAL_QP_OP);
	expect_bad(fx, &head, HCA_OP_RDMA_WRITE, 16, HCA_SYND_LOCAL_QP_OP);
	expect_bad(fx, &head, HCA_OP_ATOMIC_CS, 32, HCA_SYND_LOCAL_QP_OP);
	expect_bad(fx, &head, HCA_OP_SEND, 528, HCA_SYND_LOCAL_QP_OP);
	expect_bad(fx, &head, HCA_OP_SEND, 255 * 16, HCA_SYND_LOCAL_QP_OP);
	/* local operations have their unit and no data */
	expect_bad(fx, &head, HCA_OP_LOCAL_INV, 48, HCA_SYND_LOCAL_QP_OP);
	expect_bad(fx, &head, HCA_OP_BIND_MW, 16, HCA_SYND_LOCAL_QP_OP);
	expect_bad(fx, &head, HCA_OP_BIND_MW, 64, HCA_SYND_LOCAL_QP_OP);
	/* operations: reserved, unknown */
	expect_bad(fx, &head, HCA_OP_NOP, 16, HCA_SYND_LOCAL_QP_OP);
	expect_bad(fx, &head, 0x1e, 16, HCA_SYND_LOCAL_QP_OP);
	/* 17 SGEs */
	w = head;
	for (int i = 0; i < 17; i++)
		add_sge(&w, 0, 1, 1);
	expect_bad(fx, &w, HCA_OP_SEND, w.len, HCA_SYND_LOCAL_QP_OP);
	/* inline data in the middle of a list */
	w = head;
	add_sge(&w, 0, 1, 1);
	add_inline(&w, data, 4);
	expect_bad(fx, &w, HCA_OP_SEND, w.len, HCA_SYND_LOCAL_QP_OP);
	/* inline data beyond the WQE: by one, by as much as possible */
	w = head;
	add_inline(&w, data, 12);
	hca_put_le32(w.b + 16, HCA_INLINE_FLAG | 13);
	expect_bad(fx, &w, HCA_OP_SEND, 32, HCA_SYND_LOCAL_QP_OP);
	hca_put_le32(w.b + 16, 0xffffffff);
	expect_bad(fx, &w, HCA_OP_SEND, 32, HCA_SYND_LOCAL_QP_OP);
	/* inline data where an answer should go */
	w = head;
	add_raddr(&w, 0, 1);
	add_inline(&w, data, 8);
	expect_bad(fx, &w, HCA_OP_RDMA_READ, w.len, HCA_SYND_LOCAL_QP_OP);
	w = head;
	add_raddr(&w, 0, 1);
	add_atomic(&w, 0, 0);
	add_inline(&w, data, 8);
	expect_bad(fx, &w, HCA_OP_ATOMIC_FA, w.len, HCA_SYND_LOCAL_QP_OP);
	assert_int_equal(FX_COUNTER(fx, PARSER, sq_bad_wqe), FX_COUNTER(fx, PARSER, sq_wqes));
}

static void
test_bad_lengths(void **state)
{
	struct wqe head = wqe_new(0, 0), w = head;
	struct fx *fx = *state;

	add_sge(&w, 0, 1, 0x7fffffff);
	add_sge(&w, 0, 1, 2);
	expect_bad(fx, &w, HCA_OP_SEND, w.len, HCA_SYND_LOCAL_LENGTH);
	for (int i = 0; i < 14; i++)
		add_sge(&w, 0, 1, 0x7fffffff);
	expect_bad(fx, &w, HCA_OP_SEND, w.len, HCA_SYND_LOCAL_LENGTH);
	w = head;
	add_raddr(&w, 0, 1);
	add_atomic(&w, 0, 0);
	expect_bad(fx, &w, HCA_OP_ATOMIC_CS, w.len, HCA_SYND_LOCAL_LENGTH);
	add_sge(&w, 0, 1, 16);
	expect_bad(fx, &w, HCA_OP_ATOMIC_CS, w.len, HCA_SYND_LOCAL_LENGTH);
	/* 2^31 exactly is a message */
	w = head;
	add_sge(&w, 0, 1, 0x7fffffff);
	add_sge(&w, 0, 1, 1);
	assert_int_equal(parse_one(fx, &w, HCA_OP_SEND, w.len)->len, 0x80000000u);
}

static void
test_services(void **state)
{
	struct fx *fx = *state;
	struct wqe w = write_wqe(0);

	fx_qp(fx, QPI, PAGE, 4, 9, 16)->cfg.service = HCA_ST_UC;
	put(fx, 0, &w);
	put(fx, 1, &w);
	link_to(fx, 1, HCA_OP_RDMA_READ, w.len, false);
	ring(fx, 0, HCA_OP_RDMA_WRITE, w.len);
	poll_parser(fx);
	assert_int_equal(rec(fx, 0)->syndrome, 0);
	assert_int_equal(rec(fx, 1)->syndrome, HCA_SYND_LOCAL_QP_OP);
	fx->h->qp[QPI].cfg.service = HCA_ST_UD;
	put(fx, 2, &w);
	ring(fx, 2, HCA_OP_SEND, w.len);
	poll_parser(fx);
	assert_int_equal(rec(fx, 2)->syndrome, HCA_SYND_LOCAL_QP_OP);
}

/* ---- chains ---- */

static void
test_chain_wraps(void **state)
{
	struct fx *fx = *state;
	uint32_t index = 0;

	fx_qp(fx, QPI, PAGE, 3, 6, 16);
	for (uint32_t n = 1; n <= 8; n++) {
		post_chain(fx, index, n);
		assert_int_equal(poll_parser(fx), n);
		assert_true(told_rtc(fx, QPI));
		for (uint32_t i = 0; i < n; i++) {
			assert_int_equal(rec(fx, index + i)->wqe_index, (index + i) % 8);
			assert_int_equal(rec(fx, index + i)->raddr, 0x7000 + index + i);
		}
		complete(fx, QPI, n);
		assert_int_equal(poll_parser(fx), 1);
		index += n;
	}
	assert_int_equal(fx->events, 0);
	assert_int_equal(FX_COUNTER(fx, PARSER, sq_wqes), index);
}

static void
test_bad_wqe_does_not_break_the_chain(void **state)
{
	struct fx *fx = *state;
	struct wqe good = write_wqe(0), bad = wqe_new(0, 0);

	fx_qp(fx, QPI, PAGE, 4, 6, 16);
	put(fx, 0, &good);
	put(fx, 1, &bad);
	put(fx, 2, &good);
	link_to(fx, 1, HCA_OP_RDMA_WRITE, 16, false);
	link_to(fx, 2, HCA_OP_RDMA_WRITE, good.len, false);
	ring(fx, 0, HCA_OP_RDMA_WRITE, good.len);
	assert_int_equal(poll_parser(fx), 3);
	assert_int_equal(rec(fx, 0)->syndrome, 0);
	assert_int_equal(rec(fx, 1)->syndrome, HCA_SYND_LOCAL_QP_OP);
	assert_int_equal(rec(fx, 2)->syndrome, 0);
	assert_int_equal(FX_COUNTER(fx, PARSER, sq_bad_wqe), 1);
}

static void
test_chain_elsewhere_is_catas(void **state)
{
	struct fx *fx = *state;

	fx_qp(fx, QPI, PAGE, 4, 6, 16);
	post_chain(fx, 0, 2);
	post_chain(fx, 3, 1); /* should be 2 */
	post_chain(fx, 4, 1);
	assert_int_equal(poll_parser(fx), 2);
	expect_catas(fx);
	/* Nothing more is believed until the QP is reset. */
	post_chain(fx, 2, 1);
	assert_int_equal(poll_parser(fx), 0);
	assert_int_equal(fx->h->qp[QPI].parser.head, 2);
	expect_catas(fx);
}

static void
test_nda_elsewhere_is_catas(void **state)
{
	struct fx *fx = *state;

	fx_qp(fx, QPI, PAGE, 4, 6, 16);
	post_chain(fx, 0, 3);
	hca_put_le32(slot(fx, 1), HCA_NEXT_MAKE_NDA_NOP(5 * 64, HCA_OP_RDMA_WRITE));
	assert_int_equal(poll_parser(fx), 2);
	assert_true(told_rtc(fx, QPI));
	expect_catas(fx);
}

static void
test_endless_chain_is_catas(void **state)
{
	struct fx *fx = *state;

	fx_qp(fx, QPI, PAGE, 3, 6, 16);
	post_chain(fx, 0, 8);
	link_to(fx, 8, HCA_OP_RDMA_WRITE, 48, false); /* slot 7 names slot 0 */
	assert_int_equal(poll_parser(fx), 8);
	expect_catas(fx);
}

static void
test_too_many_chains_is_catas(void **state)
{
	struct fx *fx = *state;

	fx_qp(fx, QPI, PAGE, 3, 6, 16);
	for (uint32_t i = 0; i < 8; i++)
		ring(fx, i, HCA_OP_SEND, 16);
	assert_int_equal(fx->events, 0);
	ring(fx, 8, HCA_OP_SEND, 16);
	expect_catas(fx);
}

static void
test_more_than_the_queue_is_catas(void **state)
{
	struct fx *fx = *state;

	fx_qp(fx, QPI, PAGE, 3, 6, 16);
	post_chain(fx, 0, 8);
	assert_int_equal(poll_parser(fx), 8);
	post_chain(fx, 8, 1); /* nothing has completed */
	for (int i = 0; i < 100; i++)
		assert_int_equal(poll_parser(fx), 0);
	assert_int_equal(fx->events, 0);
	fx_now += 21000000;
	poll_parser(fx);
	expect_catas(fx);
}

static void
test_late_tail_is_no_catas(void **state)
{
	struct fx *fx = *state;

	fx_qp(fx, QPI, PAGE, 3, 6, 16);
	post_chain(fx, 0, 8);
	assert_int_equal(poll_parser(fx), 8);
	post_chain(fx, 8, 1);
	for (int i = 0; i < 100; i++)
		assert_int_equal(poll_parser(fx), 0);
	complete(fx, QPI, 1);
	assert_int_equal(poll_parser(fx), 2);
	/* The patience is for each time anew. */
	fx_now += 21000000;
	post_chain(fx, 9, 1);
	assert_int_equal(poll_parser(fx), 0);
	assert_int_equal(fx->events, 0);
	complete(fx, QPI, 1);
	assert_int_equal(poll_parser(fx), 2);
	assert_int_equal(fx->h->qp[QPI].parser.head, 10);
}

static void
test_stale_doorbell(void **state)
{
	struct fx *fx = *state;
	struct hca_qp *qp = fx_qp(fx, QPI, PAGE, 3, 6, 16);
	void *old = hca_dbw_make(HCA_DB_MAKE(0, 0, HCA_OP_SEND, fx_qpn(QPI), 1), QPI,
				 qp->cfg.generation - 1);

	hca_parser_process(fx->h, &old, 1, 0);
	qp->cfg.state = HCA_QPS_RST;
	ring(fx, 0, HCA_OP_SEND, 16);
	assert_int_equal(poll_parser(fx), 0);
	assert_int_equal(FX_COUNTER(fx, PARSER, stale_descriptors), 2);
}

/* The WQE is scribbled over behind the copy: what was copied counts. */
static void
test_queue_changes_later(void **state)
{
	struct fx *fx = *state;
	struct hca_record_full *f;
	struct wqe w = wqe_new(0, 0);

	add_inline(&w, "abcd", 4);
	f = (struct hca_record_full *)parse_one(fx, &w, HCA_OP_SEND, w.len);
	memset(slot(fx, 0), 0xff, 512);
	assert_memory_equal(f->body.inline_data, "abcd", 4);
	assert_int_equal(f->r.len, 4);
}

/* ---- window, quota, records ---- */

static void
test_window_parks_until_freed(void **state)
{
	struct fx *fx = *state;

	fx_qp(fx, QPI, PAGE, 6, 6, 8);
	post_chain(fx, 0, 20);
	assert_int_equal(poll_parser(fx), 8);
	assert_int_equal(poll_parser(fx), 0);
	assert_int_equal(FX_COUNTER(fx, PARSER, sq_parked_window), 1);
	complete(fx, QPI, 3);
	assert_int_equal(poll_parser(fx), 4);
	complete(fx, QPI, 8);
	assert_int_equal(poll_parser(fx), 9);
	complete(fx, QPI, 8);
	poll_parser(fx);
	assert_int_equal(fx->h->qp[QPI].parser.head, 20);
	complete(fx, QPI, 1);
	poll_parser(fx);
	assert_int_equal(hca_record_pool_in_use(&fx->h->rec), 0);
}

static void
test_round_robin(void **state)
{
	struct fx *fx = *state;

	fx_qp(fx, 1, PAGE, 6, 6, 64);
	fx_qp(fx, 2, PAGE, 6, 6, 64);
	post_chain_qp(fx, 1, 0, 40);
	post_chain_qp(fx, 2, 0, 3);
	assert_int_equal(poll_parser(fx), 32);
	assert_int_equal(fx->h->qp[1].parser.head, 32);
	assert_int_equal(poll_parser(fx), 11);
	assert_int_equal(fx->h->qp[2].parser.head, 3);
	assert_int_equal(hca_parser_poll(fx->h, 0, 1), 0);
}

static void
test_small_budget(void **state)
{
	struct fx *fx = *state;

	fx_qp(fx, QPI, PAGE, 6, 6, 64);
	post_chain(fx, 0, 5);
	for (uint32_t i = 1; i <= 5; i++) {
		assert_int_equal(hca_parser_poll(fx->h, 0, 1), 1);
		assert_int_equal(fx->h->qp[QPI].parser.head, i);
	}
	assert_int_equal(hca_parser_poll(fx->h, 0, 1), 0);
}

static int
setup_8_records(void **state)
{
	static const struct fx_config cfg = {.records = 8, .full_records = 8};
	struct fx *fx = fx_create(&cfg);

	assert_int_equal(hca_parser_init(fx->h), 0);
	*state = fx;
	return 0;
}

static void
test_two_records_are_reserved(void **state)
{
	struct fx *fx = *state;

	for (uint32_t i = 1; i <= 4; i++)
		fx_qp(fx, i, PAGE, 4, 6, 16);
	assert_int_equal(hca_record_reserve_qp(fx->h, PAGE, 1), -ENOMEM);
	post_chain_qp(fx, 1, 0, 16);
	poll_parser(fx);
	assert_int_equal(fx->h->qp[1].parser.head, 2); /* nothing is shared */
	for (uint32_t i = 2; i <= 4; i++) {
		post_chain_qp(fx, i, 0, 5);
		poll_parser(fx);
		assert_int_equal(fx->h->qp[i].parser.head, 2);
	}
	assert_int_equal(FX_COUNTER(fx, PARSER, sq_parked_record), 4);
	/* Each goes on with its own. */
	complete(fx, 3, 1);
	poll_parser(fx);
	assert_int_equal(fx->h->qp[3].parser.head, 3);
	assert_int_equal(fx->h->qp[1].parser.head, 2);
}

static void
test_shared_go_in_turn(void **state)
{
	struct fx *fx = *state;

	for (uint32_t i = 1; i <= 3; i++)
		fx_qp(fx, i, PAGE, 4, 6, 16);
	post_chain_qp(fx, 1, 0, 16);
	poll_parser(fx);
	assert_int_equal(fx->h->qp[1].parser.head, 4); /* 2 shared */
	post_chain_qp(fx, 2, 0, 16);
	post_chain_qp(fx, 3, 0, 16);
	poll_parser(fx);
	assert_int_equal(fx->h->qp[2].parser.head, 2);
	assert_int_equal(fx->h->qp[3].parser.head, 2);
	/* 1 waited first: it gets what comes back, then 2. */
	complete(fx, 1, 1);
	poll_parser(fx);
	assert_int_equal(fx->h->qp[1].parser.head, 5);
	complete(fx, 1, 1);
	poll_parser(fx);
	assert_int_equal(fx->h->qp[1].parser.head, 5);
	assert_int_equal(fx->h->qp[2].parser.head, 3);
}

static int
setup_64_records(void **state)
{
	static const struct fx_config cfg = {.records = 64, .full_records = 8};
	struct fx *fx = fx_create(&cfg);

	assert_int_equal(hca_parser_init(fx->h), 0);
	*state = fx;
	return 0;
}

static uint32_t
heads(const struct fx *fx, uint32_t first, uint32_t last)
{
	uint32_t sum = 0;

	for (uint32_t i = first; i <= last; i++)
		sum += fx->h->qp[i].parser.head;
	return sum;
}

static void
poll_often(struct fx *fx)
{
	for (unsigned int i = 0; i < 16; i++)
		poll_parser(fx);
}

/* QPs 1 and 2 take what they can and give nothing back; 3, of another owner, goes on all the same. */
static void
test_owners_share(void **state)
{
	struct fx *fx = *state;

	fx_qp(fx, 1, PAGE, 6, 6, 64);
	fx_qp(fx, 2, PAGE, 6, 6, 64);
	fx_qp(fx, 3, PAGE + 1, 6, 6, 64);
	post_chain_qp(fx, 1, 0, 60);
	post_chain_qp(fx, 2, 0, 60);
	poll_often(fx);
	assert_int_equal(heads(fx, 1, 2), 4 + 29); /* half of 58 shared ones */
	for (uint32_t round = 0; round < 6; round++) {
		post_chain_qp(fx, 3, round * 10 % 64, 10);
		poll_often(fx);
		assert_int_equal(heads(fx, 3, 3), (round + 1) * 10);
		complete(fx, 3, 10);
		poll_often(fx);
	}
	/* Its quarter in one go, and what is left is nobody's: a third owner would have it. */
	post_chain_qp(fx, 3, 60, 40);
	poll_often(fx);
	assert_int_equal(heads(fx, 3, 3), 60 + 2 + 15);
	assert_int_equal(heads(fx, 1, 2), 33);
	fx_qp(fx, 4, PAGE + 2, 6, 6, 64);
	post_chain_qp(fx, 4, 0, 40);
	poll_often(fx);
	assert_int_equal(heads(fx, 4, 4), 2 + 6);
	/* What the greedy ones give back goes to those below their share first. */
	complete(fx, 1, 12);
	poll_often(fx);
	assert_true(heads(fx, 3, 3) > 77 && heads(fx, 4, 4) > 8);
	assert_true(heads(fx, 1, 2) <= 33 + 12);
}

/* Alone, an owner leaves an eighth for whoever comes next. */
static void
test_owner_alone(void **state)
{
	struct fx *fx = *state;

	fx_qp(fx, 1, PAGE, 6, 6, 64);
	post_chain_qp(fx, 1, 0, 64);
	poll_often(fx);
	assert_int_equal(heads(fx, 1, 1), 2 + 62 - 62 / 8);
	fx_qp(fx, 2, PAGE + 1, 6, 6, 64);
	post_chain_qp(fx, 2, 0, 64);
	poll_often(fx);
	assert_true(heads(fx, 2, 2) >= 2 + 2);
}

static void
test_everything_gets_done(void **state)
{
	struct fx *fx = *state;
	uint32_t posted[4] = {0};

	for (uint32_t i = 0; i < 4; i++)
		fx_qp(fx, i + 1, PAGE, 4, 6, 16);
	for (int round = 0; round < 2000; round++) {
		uint32_t i = (uint32_t)(round * 7 / 3) % 4;
		struct hca_qp *qp = &fx->h->qp[i + 1];

		if (posted[i] - qp->rtc.freed <= 11) {
			post_chain_qp(fx, i + 1, posted[i], 5);
			posted[i] += 5;
		}
		poll_parser(fx);
		qp = &fx->h->qp[(i + 1) % 4 + 1];
		complete(fx, (i + 1) % 4 + 1, RTE_MIN(qp->parser.head - qp->rtc.freed, 2u));
	}
	for (int round = 0; round < 200; round++)
		for (uint32_t i = 1; i <= 4; i++) {
			complete(fx, i, fx->h->qp[i].parser.head - fx->h->qp[i].rtc.freed);
			poll_parser(fx);
		}
	for (uint32_t i = 0; i < 4; i++) {
		assert_true(posted[i] > 100);
		assert_int_equal(fx->h->qp[i + 1].rtc.freed, posted[i]);
		assert_int_equal(fx->h->qp[i + 1].parser.held[0], 0);
	}
	assert_int_equal(fx->h->rec.shared_used, 0);
	assert_int_equal(hca_record_pool_in_use(&fx->h->rec), 0);
	assert_int_equal(fx->events, 0);
}

/* ---- states ---- */

static void
test_sqd_waits(void **state)
{
	struct fx *fx = *state;
	struct hca_qp *qp = fx_qp(fx, QPI, PAGE, 4, 6, 16);

	qp->cfg.state = HCA_QPS_SQD;
	post_chain(fx, 0, 3);
	assert_int_equal(poll_parser(fx), 0);
	assert_int_equal(poll_parser(fx), 0);
	qp->cfg.state = HCA_QPS_RTS;
	hca_msg_send(fx->h, HCA_STAGE_CEU, HCA_STAGE_PARSER, QPI, HCA_MSG_STATE);
	assert_int_equal(poll_parser(fx), 4);
	assert_int_equal(qp->parser.head, 3);
}

static void
test_err_flushes(void **state)
{
	struct fx *fx = *state;
	struct hca_qp *qp = fx_qp(fx, QPI, PAGE, 4, 6, 4);
	struct wqe w = wqe_new(0, 0);

	add_raddr(&w, 0, 0);
	post_chain(fx, 0, 6);
	assert_int_equal(poll_parser(fx), 4);
	qp->cfg.state = HCA_QPS_ERR;
	hca_msg_send(fx->h, HCA_STAGE_RRC, HCA_STAGE_PARSER, QPI, HCA_MSG_STATE);
	poll_parser(fx);
	complete(fx, QPI, 4);
	put(fx, 6, &w);
	ring(fx, 6, HCA_OP_RDMA_READ, 32);
	poll_parser(fx);
	assert_int_equal(qp->parser.head, 7);
	for (uint32_t i = 4; i < 7; i++) {
		assert_int_equal(rec(fx, i)->syndrome, HCA_SYND_WR_FLUSH);
		assert_int_equal(rec(fx, i)->wqe_index, i);
		assert_int_equal(rec(fx, i)->flags & ~HCA_REC_SIGNALED, 0);
	}
	assert_int_equal(rec(fx, 5)->flags, HCA_REC_SIGNALED);
	assert_int_equal(rec(fx, 6)->flags, 0);
	assert_int_equal(FX_COUNTER(fx, PARSER, sq_bad_wqe), 0);
}

static void
test_rst_drops(void **state)
{
	struct fx *fx = *state;
	struct hca_qp *qp = fx_qp(fx, QPI, PAGE, 4, 6, 16);

	post_chain(fx, 0, 6);
	qp->cfg.state = HCA_QPS_RST;
	assert_int_equal(poll_parser(fx), 0);
	qp->cfg.state = HCA_QPS_RTS;
	assert_int_equal(poll_parser(fx), 0);
	assert_int_equal(qp->parser.head, 0);
}

/* A purge from each list, in front of and behind others. */
static void
test_purge(void **state)
{
	struct fx *fx = *state;

	for (uint32_t gone = 1; gone <= 4; gone++) {
		for (uint32_t i = 1; i <= 4; i++) {
			struct hca_qp *qp = &fx->h->qp[i];

			if (qp->parser.chain == NULL)
				fx_qp(fx, i, PAGE, 4, 6, 16);
			post_chain_qp(fx, i, qp->parser.sq_index, 4);
		}
		if (gone & 1)
			poll_parser(fx); /* all of them wait for records */
		fx->h->qp[gone].cfg.state = HCA_QPS_RST;
		fx->h->purge_seq = gone;
		hca_msg_send(fx->h, HCA_STAGE_CEU, HCA_STAGE_PARSER, gone, HCA_MSG_PURGE);
		poll_parser(fx);
		assert_int_equal(fx->h->line[HCA_STAGE_PARSER].purge_ack, gone);
		assert_int_equal(fx->h->qp[gone].parser.held[0], 0);
		assert_int_equal(fx->h->qp[gone].parser.flags, 0);
		complete(fx, gone, fx->h->qp[gone].parser.head - fx->h->qp[gone].rtc.freed);
		/* The others finish. */
		for (int round = 0; round < 30; round++)
			for (uint32_t i = 1; i <= 4; i++) {
				if (i == gone)
					continue;
				complete(fx, i, fx->h->qp[i].parser.head - fx->h->qp[i].rtc.freed);
				poll_parser(fx);
			}
		for (uint32_t i = 1; i <= 4; i++)
			assert_false(fx->h->qp[i].parser.in_chain);
		assert_int_equal(fx->h->rec.shared_used, 0);
		assert_int_equal(hca_record_pool_in_use(&fx->h->rec), 0);
		/* A new life, as the CEU would begin it. */
		fx->h->qp[gone].parser.freed_seen = fx->h->qp[gone].rtc.freed;
		fx->h->qp[gone].cfg.state = HCA_QPS_RTS;
	}
}

/* Records of a purged QP come back without a FREED message: waiting QPs find them all the same. */
static void
test_purged_records_wake_others(void **state)
{
	struct fx *fx = *state;
	struct hca_qp *a, *b;

	a = fx_qp(fx, 1, PAGE, 4, 6, 16);
	post_chain_qp(fx, 1, 0, 8);
	poll_parser(fx);
	assert_int_equal(a->parser.head, 8); /* all there are */
	b = fx_qp(fx, 2, PAGE, 4, 6, 16);
	post_chain_qp(fx, 2, 0, 8);
	poll_parser(fx);
	assert_int_equal(b->parser.head, 0);
	a->cfg.state = HCA_QPS_RST;
	hca_msg_send(fx->h, HCA_STAGE_CEU, HCA_STAGE_PARSER, 1, HCA_MSG_PURGE);
	poll_parser(fx);
	for (uint32_t i = 0; i < 8; i++)
		rte_ring_sp_enqueue_elem(fx->h->rec.free, &a->parser.window[i], 4);
	assert_int_equal(hca_record_reserve_qp(fx->h, PAGE, -1), 0);
	poll_parser(fx);
	assert_int_equal(b->parser.head, 8);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define T64(f) cmocka_unit_test_setup_teardown(f, setup_64_records, teardown)
#define T8(f) cmocka_unit_test_setup_teardown(f, setup_8_records, teardown)
		T(test_write),
		T(test_flags_imm_and_fence),
		T(test_gather_list_skips_empty),
		T(test_one_of_many_sges),
		T(test_inline),
		T(test_atomics_and_rd_ord),
		T(test_send_with_invalidate),
		T(test_local_operations),
		T(test_bad_structure),
		T(test_bad_lengths),
		T(test_services),
		T(test_chain_wraps),
		T(test_bad_wqe_does_not_break_the_chain),
		T(test_chain_elsewhere_is_catas),
		T(test_nda_elsewhere_is_catas),
		T(test_endless_chain_is_catas),
		T(test_too_many_chains_is_catas),
		T(test_more_than_the_queue_is_catas),
		T(test_late_tail_is_no_catas),
		T(test_stale_doorbell),
		T(test_queue_changes_later),
		T(test_window_parks_until_freed),
		T(test_round_robin),
		T(test_small_budget),
		T8(test_two_records_are_reserved),
		T8(test_shared_go_in_turn),
		T64(test_owners_share),
		T64(test_owner_alone),
		T8(test_everything_gets_done),
		T(test_sqd_waits),
		T(test_err_flushes),
		T(test_rst_drops),
		T8(test_purge),
		T8(test_purged_records_wake_others),
#undef T
#undef T8
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
