/* SPDX-License-Identifier: BSD-3-Clause */

/* wqe_parser: decoding of every unit, and errors in WQEs and chains. */

#include "parser_rig.h"

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
		assert_int_equal(FX_COUNTER(fx, PARSER, sq_inline), i + 1);
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
test_atomic_writes(void **state)
{
	const uint8_t data[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	struct wqe one = wqe_new(0, 0), two = one, in_line = one;
	struct fx *fx = *state;
	struct hca_record *r;

	add_raddr(&one, 0x100, 1);
	two = in_line = one;
	add_sge(&one, 0x200, 2, 8);
	add_sge(&two, 0x200, 2, 3);
	add_sge(&two, 0x300, 3, 5);
	add_inline(&in_line, data, 8);
	r = parse_one(fx, &one, HCA_OP_ATOMIC_WRITE, one.len);
	assert_int_equal(r->flags, HCA_REC_RD);
	assert_int_equal(r->syndrome, 0);
	assert_int_equal(r->len, 8);
	assert_int_equal(r->sge.va, 0x200);
	r = parse_one(fx, &two, HCA_OP_ATOMIC_WRITE, two.len);
	assert_int_equal(r->flags, HCA_REC_RD | HCA_REC_FULL);
	assert_int_equal(r->nsge, 2);
	assert_int_equal(r->rd_ord, 1);
	r = parse_one(fx, &in_line, HCA_OP_ATOMIC_WRITE, in_line.len);
	assert_int_equal(r->flags, HCA_REC_RD | HCA_REC_FULL | HCA_REC_INLINE);
	assert_int_equal(r->rd_ord, 2);
	assert_memory_equal(((struct hca_record_full *)r)->body.inline_data, data, 8);
}

static void
add_flush(struct wqe *w, uint32_t length, uint32_t feth)
{
	hca_put_le32(w->b + w->len, length);
	hca_put_le32(w->b + w->len + 4, feth);
	w->len += sizeof(struct hca_flush_unit);
}

static void
test_flush(void **state)
{
	const uint32_t feth = HCA_FETH_MAKE(HCA_FETH_PERSISTENT, HCA_FETH_MR);
	struct wqe w = wqe_new(0, 0);
	struct fx *fx = *state;
	struct hca_record *r;

	add_raddr(&w, 0x100, 7);
	add_flush(&w, 0x80000000, feth);
	r = parse_one(fx, &w, HCA_OP_FLUSH, w.len);
	assert_int_equal(r->syndrome, 0);
	assert_int_equal(r->flags, HCA_REC_RD);
	assert_int_equal(r->raddr, 0x100);
	assert_int_equal(r->rkey, 7);
	assert_int_equal(r->len, 0x80000000);
	assert_int_equal(r->nsge, 0);
	assert_int_equal(hca_be32_to_cpu(r->imm), feth);
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

	/* announced sizes: zero, less than the headers, more than the stride */
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
	/* inline data in a request that returns data */
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
	assert_int_equal(FX_COUNTER(fx, PARSER, sq_inline), 0);
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
	/* an ATOMIC WRITE has 8 bytes */
	w = head;
	add_raddr(&w, 0, 1);
	expect_bad(fx, &w, HCA_OP_ATOMIC_WRITE, w.len, HCA_SYND_LOCAL_LENGTH);
	add_inline(&w, (const uint8_t *)"12345678", 7);
	expect_bad(fx, &w, HCA_OP_ATOMIC_WRITE, w.len, HCA_SYND_LOCAL_LENGTH);
	w = head;
	add_raddr(&w, 0, 1);
	add_sge(&w, 0, 1, 9);
	expect_bad(fx, &w, HCA_OP_ATOMIC_WRITE, w.len, HCA_SYND_LOCAL_LENGTH);
	/* a FLUSH: longer than a message, without its unit, with data, bad types and levels */
	w = head;
	add_raddr(&w, 0, 1);
	expect_bad(fx, &w, HCA_OP_FLUSH, w.len, HCA_SYND_LOCAL_QP_OP);
	add_flush(&w, 0x80000001, 1);
	expect_bad(fx, &w, HCA_OP_FLUSH, w.len, HCA_SYND_LOCAL_LENGTH);
	for (uint32_t feth = 0; feth < 64; feth++) {
		if (feth == 1 || feth == 2 || feth == 3 || (feth >= 0x11 && feth <= 0x13))
			continue;
		w = head;
		add_raddr(&w, 0, 1);
		add_flush(&w, 8, feth);
		expect_bad(fx, &w, HCA_OP_FLUSH, w.len, HCA_SYND_LOCAL_QP_OP);
	}
	w = head;
	add_raddr(&w, 0, 1);
	add_flush(&w, 8, 1);
	add_sge(&w, 0, 1, 8);
	expect_bad(fx, &w, HCA_OP_FLUSH, w.len, HCA_SYND_LOCAL_QP_OP);
	/* a message of exactly 2^31 bytes is allowed */
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
		assert_true(told_req_tx(fx, QPI));
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
	/* no further chain is accepted until the QP is reset */
	post_chain(fx, 2, 1);
	assert_int_equal(poll_parser(fx), 0);
	assert_int_equal(fx->h->qp[QPI].parser.head, 2);
	expect_catas(fx);
}

/* WQEs that differ from the one before in one respect each; a run of the parser takes them all. */
static const struct mixed {
	uint8_t op;
	bool fence, signaled, solicited, is_inline;
	uint32_t len;
} mixed[] = {
	{HCA_OP_RDMA_WRITE, .len = 64},
	{HCA_OP_RDMA_WRITE, .len = 64},
	{HCA_OP_RDMA_WRITE, .len = 4096, .signaled = true},
	{HCA_OP_RDMA_WRITE_IMM, .len = 64, .solicited = true},
	{HCA_OP_SEND, .len = 64},
	{HCA_OP_SEND, .len = 1, .signaled = true, .solicited = true},
	{HCA_OP_SEND, .len = 64, .fence = true},
	{HCA_OP_SEND, .len = 8, .is_inline = true},
	{HCA_OP_RDMA_READ, .len = 64},
	{HCA_OP_RDMA_READ, .len = 65},
	{HCA_OP_RDMA_WRITE, .len = 64, .fence = true},
	{HCA_OP_RDMA_WRITE, .len = 64, .fence = true},
};

static void
put_mixed(struct fx *fx, uint32_t i, bool chained)
{
	const struct mixed *m = &mixed[i];
	struct wqe w = wqe_new((m->signaled ? HCA_WQE_FLAG_SIGNALED : 0) |
				       (m->solicited ? HCA_WQE_FLAG_SOLICITED : 0),
			       0x100 + i);
	uint8_t data[8] = {0};

	if (m->op != HCA_OP_SEND)
		add_raddr(&w, UINT64_C(0x123400000000) + i, 0x200 + i);
	if (m->is_inline)
		add_inline(&w, data, m->len);
	else
		add_sge(&w, UINT64_C(0x567800000000) + i, 0x300 + i, m->len);
	put(fx, i, &w);
	if (!chained || i == 0)
		ring_qp(fx, QPI, i, m->op, w.len, m->fence);
	else
		link_to(fx, i, m->op, w.len, m->fence);
}

static void
expect_mixed(struct fx *fx, uint32_t i, uint32_t rd_ord)
{
	const struct mixed *m = &mixed[i];
	const struct hca_record *r = rec(fx, i);

	assert_int_equal(r->op, m->op);
	assert_int_equal(r->flags, (m->fence ? HCA_REC_FENCE : 0) |
					   (m->signaled ? HCA_REC_SIGNALED : 0) |
					   (m->solicited ? HCA_REC_SOLICITED : 0) |
					   (m->op == HCA_OP_RDMA_READ ? HCA_REC_RD : 0) |
					   (m->is_inline ? HCA_REC_INLINE | HCA_REC_FULL : 0));
	assert_int_equal(r->syndrome, 0);
	assert_int_equal(r->wqe_index, i);
	assert_int_equal(r->len, m->len);
	assert_int_equal(r->imm, 0x100 + i);
	assert_true(r->raddr == (m->op != HCA_OP_SEND ? UINT64_C(0x123400000000) + i : 0));
	assert_int_equal(r->rkey, m->op != HCA_OP_SEND ? 0x200 + i : 0);
	assert_int_equal(r->rd_ord, rd_ord);
	assert_int_equal(r->nsge, !m->is_inline);
	if (m->is_inline)
		return;
	assert_true(r->sge.va == UINT64_C(0x567800000000) + i);
	assert_int_equal(r->sge.lkey, 0x300 + i);
	assert_int_equal(r->sge.len, m->len);
}

static void
run_mixed(struct fx *fx, bool chained)
{
	uint32_t rds = 0;

	fx_qp(fx, QPI, PAGE, 4, 6, 16);
	for (uint32_t i = 0; i < RTE_DIM(mixed); i++)
		put_mixed(fx, i, chained);
	assert_int_equal(poll_parser(fx), RTE_DIM(mixed));
	for (uint32_t i = 0; i < RTE_DIM(mixed); i++) {
		expect_mixed(fx, i, rds);
		rds += mixed[i].op == HCA_OP_RDMA_READ;
	}
	assert_int_equal(fx->h->qp[QPI].parser.rd_count, rds);
	assert_int_equal(fx->h->qp[QPI].parser.sq_index, RTE_DIM(mixed));
}

static void
test_mixed_chain(void **state)
{
	run_mixed(*state, true);
}

static void
test_mixed_doorbells(void **state)
{
	run_mixed(*state, false);
}

static void
test_nda_elsewhere_is_catas(void **state)
{
	struct fx *fx = *state;

	fx_qp(fx, QPI, PAGE, 4, 6, 16);
	post_chain(fx, 0, 3);
	hca_put_le32(slot(fx, 1), HCA_NEXT_MAKE_NDA_NOP(5 * 64, HCA_OP_RDMA_WRITE));
	assert_int_equal(poll_parser(fx), 2);
	assert_true(told_req_tx(fx, QPI));
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
	post_chain(fx, 8, 1); /* no request has completed */
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
	/* the time limit starts again each time */
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
	assert_int_equal(FX_COUNTER(fx, PARSER, db_stale), 2);
}

/* The WQE is overwritten after the copy: the copy is used. */
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, parser_setup, parser_teardown)
		T(test_write),
		T(test_flags_imm_and_fence),
		T(test_gather_list_skips_empty),
		T(test_one_of_many_sges),
		T(test_inline),
		T(test_atomics_and_rd_ord),
		T(test_atomic_writes),
		T(test_flush),
		T(test_send_with_invalidate),
		T(test_local_operations),
		T(test_bad_structure),
		T(test_bad_lengths),
		T(test_services),
		T(test_chain_wraps),
		T(test_bad_wqe_does_not_break_the_chain),
		T(test_chain_elsewhere_is_catas),
		T(test_mixed_chain),
		T(test_mixed_doorbells),
		T(test_nda_elsewhere_is_catas),
		T(test_endless_chain_is_catas),
		T(test_too_many_chains_is_catas),
		T(test_more_than_the_queue_is_catas),
		T(test_late_tail_is_no_catas),
		T(test_stale_doorbell),
		T(test_queue_changes_later),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
