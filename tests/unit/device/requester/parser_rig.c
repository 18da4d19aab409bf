/* SPDX-License-Identifier: BSD-3-Clause */

#include "parser_rig.h"

void
add_raddr(struct wqe *w, uint64_t raddr, uint32_t rkey)
{
	hca_put_le64(w->b + w->len, raddr);
	hca_put_le32(w->b + w->len + 8, rkey);
	w->len += 16;
}

void
add_atomic(struct wqe *w, uint64_t swap_add, uint64_t cmp)
{
	hca_put_le64(w->b + w->len, swap_add);
	hca_put_le64(w->b + w->len + 8, cmp);
	w->len += 16;
}

void
add_sge(struct wqe *w, uint64_t va, uint32_t lkey, uint32_t len)
{
	hca_put_le32(w->b + w->len, len);
	hca_put_le32(w->b + w->len + 4, lkey);
	hca_put_le64(w->b + w->len + 8, va);
	w->len += 16;
}

void
add_inline(struct wqe *w, const void *data, uint32_t len)
{
	hca_put_le32(w->b + w->len, HCA_INLINE_FLAG | len);
	memcpy(w->b + w->len + 4, data, len);
	w->len += RTE_ALIGN_CEIL(4 + len, 16u);
}

uint8_t *
slot(struct fx *fx, uint32_t index)
{
	struct hca_qp_parser *p = &fx->h->qp[QPI].parser;

	return p->sq.base + ((index & ((1u << p->sq_size_log) - 1)) << p->sq_stride_log);
}

void
put(struct fx *fx, uint32_t index, const struct wqe *w)
{
	memcpy(slot(fx, index), w->b, 1u << fx->h->qp[QPI].parser.sq_stride_log);
}

void
link_to(struct fx *fx, uint32_t index, uint8_t op, uint32_t size, bool fence)
{
	struct hca_qp_parser *p = &fx->h->qp[QPI].parser;
	uint32_t off = (uint32_t)(slot(fx, index) - p->sq.base);
	uint8_t *before = slot(fx, index - 1);

	hca_put_le32(before, HCA_NEXT_MAKE_NDA_NOP(off, op));
	hca_put_le32(before + 4, HCA_NEXT_MAKE_NEE_NDS(fence, size / 16));
}

void
ring_qp(struct fx *fx, uint32_t qpi, uint32_t index, uint8_t op, uint32_t size, bool fence)
{
	struct hca_qp *qp = &fx->h->qp[qpi];
	uint32_t head = index & ((1u << qp->parser.sq_size_log) - 1);
	void *obj = hca_dbw_make(HCA_DB_MAKE(head, fence, op, qp->cfg.local_qpn, size / 16), qpi,
				 qp->cfg.generation);

	hca_parser_process(fx->h, &obj, 1, 0);
}

void
ring(struct fx *fx, uint32_t index, uint8_t op, uint32_t size)
{
	ring_qp(fx, QPI, index, op, size, false);
}

void
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

void
post_chain(struct fx *fx, uint32_t index, uint32_t n)
{
	post_chain_qp(fx, QPI, index, n);
}

uint64_t fx_now;

struct hca_record *
rec(struct fx *fx, uint32_t cursor)
{
	struct hca_qp_parser *p = &fx->h->qp[QPI].parser;

	assert_true((int32_t)(p->head - cursor) > 0);
	return hca_record(fx->h, p->window[cursor & p->window_mask]);
}

void
complete(struct fx *fx, uint32_t qpi, uint32_t n)
{
	struct hca_qp *qp = &fx->h->qp[qpi];

	assert_true(qp->parser.head - qp->sq_freed >= n);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t ref = qp->parser.window[(qp->sq_freed + i) & qp->parser.window_mask];
		struct hca_record_pool *pool = ref & HCA_RECREF_FULL
						       ? &fx->h->records[HCA_WIRE_ROCE].full
						       : &fx->h->records[HCA_WIRE_ROCE].small;

		assert_int_equal(rte_ring_sp_enqueue_elem(pool->free, &ref, sizeof(ref)), 0);
	}
	qp->sq_freed += n;
	qp->sq_una = (uint64_t)qp->sq_freed << 32;
	hca_msg_send(fx->h, HCA_STAGE_REQ_TX, HCA_STAGE_PARSER, qpi, HCA_MSG_FREED);
}

bool
told_req_tx(struct fx *fx, uint32_t qpi)
{
	return fx_take_msgs(fx, HCA_STAGE_PARSER, HCA_STAGE_REQ_TX, qpi) & HCA_MSG_NEW;
}

void
expect_catas(struct fx *fx)
{
	assert_int_equal(FX_COUNTER(fx, PARSER, sq_catas), 1);
	assert_int_equal(fx->events, 1);
	assert_int_equal(fx->event[0].type, HCA_EVENT_WQ_CATAS);
	assert_int_equal(fx->event[0].index, QPI);
	assert_int_equal(fx->h->qp[QPI].cfg.state, HCA_QPS_ERR);
}

int
parser_setup(void **state)
{
	struct fx *fx = fx_create(NULL);

	assert_int_equal(hca_parser_init(fx->h), 0);
	fx_now = 0;
	*state = fx;
	return 0;
}

int
parser_teardown(void **state)
{
	struct fx *fx = *state;

	hca_parser_fini(fx->h);
	fx_destroy(fx);
	return 0;
}

struct hca_record *
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
	assert_true(told_req_tx(fx, QPI));
	return rec(fx, index++);
}

struct wqe
wqe_new(uint32_t flags, uint32_t imm)
{
	struct wqe w = {.len = sizeof(struct hca_next_unit)};

	hca_put_le32(w.b + 8, flags);
	memcpy(w.b + 12, &imm, sizeof(imm));
	return w;
}

struct wqe
write_wqe(uint32_t n)
{
	struct wqe w = wqe_new(HCA_WQE_FLAG_SIGNALED, 0);

	add_raddr(&w, 0x7000 + n, 0x900 + n);
	add_sge(&w, 0x10000 + n, 0x500 + n, 64);
	return w;
}

unsigned int
poll_parser(struct fx *fx)
{
	return hca_parser_poll(fx->h, fx_now, BUDGET);
}
