/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * WQEs of Jettys: the fields of each operation's record, the pool of the record, bad WQEs, and that
 * records of QPs are not touched.
 */

#include "../../requester/parser_rig.h"

#include <stdlib.h>

#include "abi_tp.h"
#include "ctxmgt/ctxmgt.h"
#include "ub/record.h"
#include "ub/initiator/parse_jetty.h"
#include "ub/initiator/wqe_ub.h"
#include "ub/ub.h"

#define NUMBER HCA_UB_MAKE_NUMBER(HCA_UB_TO_TPG, 5)
#define TC HCA_UB_MAKE_TC(0x10403, HCA_UB_TC_ONE, 0x77)
#define TOKEN 0x11223344u
#define TC_TOKEN 0x55667788u
#define DATA UINT64_C(0x0123456789abcdef)
#define RADDR UINT64_C(0x7000000010)
#define TOKEN_ID 0xabcdeu

static struct hca_ub ub;
static struct hca_wire_ops wire; /* that of the fixture, with the parser's functions */

static void
add_ub(struct wqe *w, uint32_t number, uint32_t order, uint32_t operands)
{
	struct hca_ub_unit u = {.number = hca_cpu_to_le32(number),
				.tc = hca_cpu_to_le32(TC),
				.token = hca_cpu_to_le32(TOKEN),
				.order = hca_cpu_to_le32(order),
				.data = hca_cpu_to_le64(DATA),
				.tc_token = hca_cpu_to_le32(TC_TOKEN),
				.operands = hca_cpu_to_le32(operands)};

	memcpy(w->b + w->len, &u, sizeof(u));
	w->len += sizeof(u);
}

/* Next and UB unit of a request with a token. */
static struct wqe
begin(uint32_t odr)
{
	struct wqe w = wqe_new(HCA_WQE_FLAG_SIGNALED | HCA_WQE_FLAG_SOLICITED, 0);

	add_ub(&w, NUMBER, HCA_UB_MAKE_ORDER(odr, 1, 0, 0, 0), 0);
	return w;
}

static struct wqe
begin_operands(uint32_t opcode, uint32_t ud_op, uint32_t operands)
{
	struct wqe w = wqe_new(HCA_WQE_FLAG_SIGNALED, 0);

	add_ub(&w, NUMBER, HCA_UB_MAKE_ORDER(0, 1, 0, opcode, ud_op), operands);
	add_raddr(&w, RADDR, TOKEN_ID);
	return w;
}

static void
add_notify(struct wqe *w)
{
	hca_put_le64(w->b + w->len, 0x9000);
	hca_put_le32(w->b + w->len + 8, 0x54321);
	hca_put_le32(w->b + w->len + 12, 0x1234);
	w->len += 16;
}

/* n bytes, first, first + 1, ..., padded to whole units. */
static void
add_bytes(struct wqe *w, uint8_t first, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		w->b[w->len + i] = (uint8_t)(first + i);
	w->len += RTE_ALIGN_CEIL(n, 16u);
}

static int
setup(void **state)
{
	struct fx *fx;

	parser_setup(state);
	fx = *state;
	wire = *fx->h->wire[HCA_WIRE_UB];
	wire.parse_run = hca_jetty_parse_run;
	wire.parse = hca_jetty_parse;
	wire.wants_parsed = true;
	fx->h->wire[HCA_WIRE_UB] = &wire;
	fx->h->ub = &ub;
	fx->h->mixed = true;
	fx->h->ctxmgt = calloc(1, sizeof(*fx->h->ctxmgt));
	fx_qp(fx, QPI, PAGE, 4, 9, 16)->cfg.service = HCA_ST_JETTY;
	return hca_record_reserve_qp(fx->h, HCA_ST_JETTY, PAGE, 1);
}

static int
teardown(void **state)
{
	struct fx *fx = *state;

	free(fx->h->ctxmgt);
	return parser_teardown(state);
}

static struct hca_ub_record *
record_at(struct fx *fx, uint32_t cursor)
{
	struct hca_qp_parser *p = &fx->h->qp[QPI].parser;

	return hca_ub_record(fx->h, p->window[cursor & p->window_mask]);
}

/* Post a WQE of that many bytes; returns its record. */
static struct hca_ub_record *
post(struct fx *fx, const struct wqe *w, uint8_t op, uint32_t size)
{
	uint32_t at = fx->h->qp[QPI].parser.head;

	put(fx, at, w);
	ring(fx, at, op, size);
	assert_int_equal(poll_parser(fx), 1);
	assert_int_equal(fx->h->qp[QPI].parser.head, at + 1);
	return record_at(fx, at);
}

/* TAI has done with everything. */
static void
finish_all(struct fx *fx)
{
	struct hca_qp *qp = &fx->h->qp[QPI];

	for (uint32_t i = qp->sq_freed; i != qp->parser.head; i++) {
		uint32_t ref = qp->parser.window[i & qp->parser.window_mask];
		struct hca_record_pools *pools = hca_record_pools_of(fx->h, HCA_ST_JETTY);
		struct hca_record_pool *p = ref & HCA_RECREF_FULL ? &pools->full : &pools->small;

		assert_int_equal(rte_ring_sp_enqueue_elem(p->free, &ref, sizeof(ref)), 0);
	}
	qp->sq_freed = qp->parser.head;
	qp->sq_una = (uint64_t)qp->sq_freed << 32;
}

/* ---- good ones ---- */

static void
test_write(void **state)
{
	struct fx *fx = *state;
	struct wqe w = begin(HCA_UB_ODR_COMPLETION | HCA_UB_ODR_STRONG);
	struct hca_ub_record *r;

	add_raddr(&w, RADDR, TOKEN_ID);
	add_sge(&w, 0x10000, 0x500, 8 << 20);
	r = post(fx, &w, HCA_OP_RDMA_WRITE, w.len);
	assert_int_equal(r->status, 0);
	assert_int_equal(r->op, HCA_OP_RDMA_WRITE);
	assert_int_equal(r->flags, HCA_REC_SIGNALED | HCA_REC_SOLICITED);
	assert_int_equal(r->order, HCA_UB_ODR_COMPLETION | HCA_UB_ODR_STRONG | HCA_UB_HAS_TOKEN);
	assert_int_equal(r->len, 8 << 20);
	assert_int_equal(r->to, NUMBER);
	assert_true(r->raddr == RADDR);
	assert_int_equal(r->token_id, TOKEN_ID);
	assert_int_equal(r->token, TOKEN);
	assert_int_equal(r->nsge, 1);
	assert_true(hca_ub_record_sges(r)->va == 0x10000);
	assert_int_equal(hca_ub_record_sges(r)->lkey, 0x500);
	assert_null(hca_ub_record_data(r));
	assert_int_equal(r->open | r->active, 0);
}

/* The common form of a record has words that name a queue; a Write has not changed them. */
static void
test_queue_of_common_form(void **state)
{
	const uint8_t ops[] = {HCA_OP_SEND, HCA_OP_SEND_IMM, HCA_OP_RDMA_WRITE_IMM};
	struct fx *fx = *state;

	for (unsigned int i = 0; i < RTE_DIM(ops); i++) {
		struct wqe w = begin(0);
		struct hca_ub_record *r;

		if (ops[i] == HCA_OP_RDMA_WRITE_IMM)
			add_raddr(&w, RADDR, TOKEN_ID);
		add_sge(&w, 0x10000, 0x500, 100);
		r = post(fx, &w, ops[i], w.len);
		assert_int_equal(r->status, 0);
		assert_true(r->data == DATA && r->notify == 0);
		assert_int_equal(r->tc, TC);
		assert_int_equal(r->tc_token, TC_TOKEN);
		assert_int_equal(r->notify_token_id | r->notify_token, 0);
		finish_all(fx);
		test_write(state);
		finish_all(fx);
	}
}

static void
test_send_inline(void **state)
{
	struct fx *fx = *state;
	struct wqe w = begin(0);
	uint8_t data[HCA_UB_INLINE_MAX];
	struct hca_ub_record *r;

	for (uint32_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7);
	add_inline(&w, data, sizeof(data));
	assert_int_equal(w.len, HCA_WQE_MAX_STRIDE);
	r = post(fx, &w, HCA_OP_SEND_IMM, w.len);
	assert_int_equal(r->flags,
			 HCA_REC_SIGNALED | HCA_REC_SOLICITED | HCA_REC_FULL | HCA_REC_INLINE);
	assert_int_equal(r->len, sizeof(data));
	assert_memory_equal(hca_ub_record_data(r), data, sizeof(data));
	assert_true(r->data == DATA);
	assert_int_equal(FX_COUNTER(fx, PARSER, sq_inline), 1);
}

static void
test_notify_of_many_sges(void **state)
{
	struct fx *fx = *state;
	struct wqe w = begin(0);
	struct hca_ub_record *r;

	add_raddr(&w, RADDR, TOKEN_ID);
	add_notify(&w);
	for (uint32_t i = 0; i < HCA_SGE_MAX; i++)
		add_sge(&w, 0x1000 * i, i, i == 3 ? 0 : 100);
	r = post(fx, &w, HCA_OP_WRITE_NOTIFY, w.len);
	assert_int_equal(r->nsge, HCA_SGE_MAX - 1);
	assert_int_equal(r->len, 1500);
	assert_int_equal(hca_ub_record_sges(r)[3].lkey, 4);
	assert_true(r->notify == 0x9000);
	assert_int_equal(r->notify_token_id, 0x54321);
	assert_int_equal(r->notify_token, 0x1234);
}

/* Operands of each length, one after the other without gap; the result goes to the SGE. */
static void
test_atomic_lengths(void **state)
{
	struct fx *fx = *state;

	for (uint32_t n = 1; n <= HCA_UB_ATOMIC_MAX; n *= 2) {
		struct wqe w = begin_operands(HCA_UB_TA_COMPARE_SWAP, 0, n);
		struct hca_ub_record *r;

		add_bytes(&w, 1, n);
		add_bytes(&w, 101, n);
		add_sge(&w, 0x20000, 0x501, n);
		r = post(fx, &w, HCA_OP_ATOMIC, w.len);
		assert_int_equal(r->status, 0);
		assert_int_equal(r->len, n);
		assert_int_equal(r->atomic, HCA_UB_TA_COMPARE_SWAP);
		assert_true(r->flags & HCA_REC_RD);
		for (uint32_t i = 0; i < n; i++) {
			assert_int_equal(hca_ub_record_data(r)[i], 1 + i);
			assert_int_equal(hca_ub_record_data(r)[n + i], (uint8_t)(101 + i));
		}
		assert_true(hca_ub_record_sges(r)->va == 0x20000);
		finish_all(fx);
	}
}

static void
test_store_has_no_result(void **state)
{
	struct fx *fx = *state;
	struct wqe w = begin_operands(HCA_UB_TA_STORE, HCA_UB_UD_OP_UMAX, 8);
	struct hca_ub_record *r;

	add_bytes(&w, 1, 8);
	add_bytes(&w, 9, 8);
	r = post(fx, &w, HCA_OP_ATOMIC, w.len);
	assert_int_equal(r->status, 0);
	assert_int_equal(HCA_UB_UD_OPERATION(r->user), HCA_UB_UD_OP_UMAX);
	add_sge(&w, 0x20000, 0x501, 8);
	assert_int_equal(post(fx, &w, HCA_OP_ATOMIC, w.len)->status, HCA_UB_STATUS_LOCAL_LENGTH);
}

/* Operations keep their names in WQEs, whatever codes the wire has for them. */
static void
test_codes_of_the_text(void **state)
{
	struct fx *fx = *state;

	fx->h->cfg.ub_choices = HCA_UB_SWITCH_CLR_EOR_TEXT;
	for (uint32_t op = 0; op < HCA_UB_UD_OPS; op++) {
		struct wqe w = begin_operands(HCA_UB_TA_STORE, (uint8_t)op, 8);
		uint32_t code = op == HCA_UB_UD_OP_CLR	 ? HCA_UB_UD_OP_EOR
				: op == HCA_UB_UD_OP_EOR ? HCA_UB_UD_OP_CLR
							 : op;

		add_bytes(&w, 1, 8);
		add_bytes(&w, 9, 8);
		assert_int_equal(HCA_UB_UD_OPERATION(post(fx, &w, HCA_OP_ATOMIC, w.len)->user),
				 code);
		finish_all(fx);
	}
}

/* A program cannot ask for exclusive access; in both forms of WQEs. */
static void
test_exclusive(void **state)
{
	struct fx *fx = *state;

	for (unsigned int i = 0; i < 4; i++) {
		struct wqe w = wqe_new(0, 0);
		const struct hca_ub_record *r;

		add_ub(&w, NUMBER, HCA_UB_MAKE_ORDER(HCA_UB_ODR_RELAXED, 1, 1, 0, 0), 0);
		add_raddr(&w, RADDR, TOKEN_ID);
		for (unsigned int k = 0; k <= i / 2; k++)
			add_sge(&w, 0x10000, 0x500, 64);
		fx->h->qp[QPI].cfg.privileged = i % 2;
		r = post(fx, &w, HCA_OP_RDMA_WRITE, w.len);
		assert_int_equal(r->status, 0);
		assert_int_equal(r->order, HCA_UB_ODR_RELAXED | HCA_UB_HAS_TOKEN |
						   (i % 2 ? HCA_UB_EXCLUSIVE : 0));
		finish_all(fx);
	}
	fx->h->qp[QPI].cfg.privileged = false;
}

/* In the WQE they are in the order of the bytes, on the wire one big-endian number. */
static void
test_byte_enables(void **state)
{
	struct fx *fx = *state;
	struct wqe w = begin_operands(0, 0, 32);
	struct hca_ub_record *r;

	add_bytes(&w, 1, 32);
	add_sge(&w, 0x10000, 0x500, 256);
	r = post(fx, &w, HCA_OP_WRITE_BE, w.len);
	assert_int_equal(r->status, 0);
	assert_int_equal(r->len, 256);
	for (uint32_t i = 0; i < 32; i++)
		assert_int_equal(hca_ub_record_enables(r)[i], 32 - i);
	assert_null(hca_ub_record_data(r));
}

static void
test_read(void **state)
{
	struct fx *fx = *state;
	struct wqe w = begin(0);
	struct hca_ub_record *r;

	add_raddr(&w, RADDR, TOKEN_ID);
	add_sge(&w, 0x10000, 0x500, 5000);
	add_sge(&w, 0x20000, 0x501, 5000);
	r = post(fx, &w, HCA_OP_RDMA_READ, w.len);
	assert_int_equal(r->flags & (HCA_REC_RD | HCA_REC_FULL), HCA_REC_RD | HCA_REC_FULL);
	assert_int_equal(r->len, 10000);
}

/* ---- unreliable ---- */

static struct wqe
unreliable(uint8_t op_flags, uint32_t len)
{
	struct wqe w = wqe_new(HCA_WQE_FLAG_SIGNALED, 0);
	struct hca_ud_unit u = {
		.port = hca_cpu_to_le32(HCA_UD_MAKE_PORT(1, 0, 9, 0x20)),
		.mac_lo = hca_cpu_to_le32(HCA_UD_MAKE_MAC_LO(0x0002, 0)),
		.dmac_hi = hca_cpu_to_le32(0x02000000),
		.dgid = {[10] = 0xff, 0xff, 10, 0, 0, 2},
		.flow = hca_cpu_to_le32(HCA_UD_MAKE_FLOW(1, 3, 0, 0)),
	};

	add_ub(&w, HCA_UB_MAKE_NUMBER(HCA_UB_TO_ADDRESS, 0),
	       HCA_UB_MAKE_ORDER(op_flags, 1, 0, 0, 0), 0);
	memcpy(w.b + w.len, &u, sizeof(u));
	w.len += sizeof(u);
	add_sge(&w, 0x10000, 0x500, len);
	return w;
}

static void
own_address(struct fx *fx)
{
	static const uint8_t own[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1};
	struct hca_gid_entry *g = &fx->h->ctxmgt->gid[0];

	*g = (struct hca_gid_entry){.ip_version = 4, .valid = 1, .vlan_id = HCA_NO_VLAN};
	memcpy(g->gid, own, sizeof(own));
}

static void
test_unreliable(void **state)
{
	struct fx *fx = *state;
	struct wqe w = unreliable(0, 1024);
	struct hca_ub_record_full *f;

	assert_int_equal(post(fx, &w, HCA_OP_SEND, w.len)->status,
			 HCA_UB_STATUS_UNSUPPORTED_OPCODE); /* no such source */
	own_address(fx);
	f = (struct hca_ub_record_full *)post(fx, &w, HCA_OP_SEND, w.len);
	assert_int_equal(f->r.status, 0);
	assert_int_equal(HCA_UB_TO(f->r.to), HCA_UB_TO_ADDRESS);
	assert_int_equal(f->av.hop_limit, 9);
	assert_int_equal(f->av.dgid[15], 2);
	assert_int_equal(f->av.dmac[5], 2);
	assert_int_equal(hca_ub_record_sges(&f->r)->lkey, 0x500);
	w = unreliable(0, 8);
	assert_int_equal(post(fx, &w, HCA_OP_RDMA_READ, w.len)->status,
			 HCA_UB_STATUS_UNSUPPORTED_OPCODE);
	assert_int_equal(FX_COUNTER(fx, PARSER, sq_management_refused), 0);
}

static void
set_tc(struct wqe *w, uint32_t tc)
{
	hca_put_le32(w->b + sizeof(struct hca_next_unit) + offsetof(struct hca_ub_unit, tc),
		     HCA_UB_MAKE_TC(tc, HCA_UB_TC_ONE, 0x77));
}

/* The driver of the peer listens at Jetty 0; it takes an address for that of another driver. */
static void
test_unreliable_to_driver(void **state)
{
	const uint32_t low[] = {0, 1, HCA_TC_WELL_KNOWN_FREE - 1};
	struct fx *fx = *state;
	struct hca_qp *qp = &fx->h->qp[QPI];
	struct wqe w = unreliable(0, 64);

	own_address(fx);
	for (unsigned int i = 0; i < RTE_DIM(low); i++) {
		set_tc(&w, low[i]);
		assert_int_equal(post(fx, &w, HCA_OP_SEND, w.len)->status,
				 HCA_UB_STATUS_LOCAL_ACCESS);
		assert_int_equal(FX_COUNTER(fx, PARSER, sq_management_refused), i + 1);
		assert_int_equal(FX_COUNTER(fx, PARSER, sq_bad_wqe), i + 1);
		qp->cfg.privileged = true;
		assert_int_equal(post(fx, &w, HCA_OP_SEND, w.len)->status, 0);
		qp->cfg.privileged = false;
		finish_all(fx);
	}
	set_tc(&w, HCA_TC_WELL_KNOWN_FREE);
	assert_int_equal(post(fx, &w, HCA_OP_SEND, w.len)->status, 0);
	assert_int_equal(FX_COUNTER(fx, PARSER, sq_management_refused), RTE_DIM(low));
}

/* ---- bad ones ---- */

static void
test_bad_lengths(void **state)
{
	static const struct {
		uint8_t op, opcode;
		uint16_t operands;
		uint32_t data;
	} bad[] = {
		{HCA_OP_ATOMIC, HCA_UB_TA_SWAP, 0, 0},
		{HCA_OP_ATOMIC, HCA_UB_TA_SWAP, 3, 3},
		{HCA_OP_ATOMIC, HCA_UB_TA_SWAP, 128, 128},
		{HCA_OP_ATOMIC, HCA_UB_TA_SWAP, 8, 4},
		{HCA_OP_ATOMIC, HCA_UB_TA_LOAD, 8, 0},
		{HCA_OP_WRITE_BE, 0, 4, 32},
		{HCA_OP_WRITE_BE, 0, 256, 2048},
		{HCA_OP_WRITE_BE, 0, 8, 63},
		{HCA_OP_WRITE_BE, 0, 24, 192},
	};
	struct fx *fx = *state;

	for (unsigned int i = 0; i < RTE_DIM(bad); i++) {
		struct wqe w = begin_operands(bad[i].opcode, 0, bad[i].operands);

		add_bytes(&w, 0, 128);
		if (bad[i].op == HCA_OP_ATOMIC)
			w.len = 64 + 2 * RTE_ALIGN_CEIL(RTE_MIN(bad[i].operands, 64u), 16u);
		else
			w.len = 64 + RTE_ALIGN_CEIL(RTE_MIN(bad[i].operands, 128u), 16u);
		add_sge(&w, 0x10000, 0x500, bad[i].data);
		assert_int_equal(post(fx, &w, bad[i].op, w.len)->status,
				 HCA_UB_STATUS_LOCAL_LENGTH);
		finish_all(fx);
	}
	assert_int_equal(FX_COUNTER(fx, PARSER, sq_bad_wqe), RTE_DIM(bad));
}

static void
test_bad_codes(void **state)
{
	struct fx *fx = *state;
	const struct {
		uint8_t op;
		uint32_t number, order, tc;
	} bad[] = {
		{HCA_OP_NOP, NUMBER, 0, TC},
		{HCA_OP_SEND_INV, NUMBER, 0, TC},
		{HCA_OP_ATOMIC_CS, NUMBER, 0, TC},
		{HCA_OP_ATOMIC_WRITE, NUMBER, 0, TC},
		{HCA_OP_FLUSH, NUMBER, 0, TC},
		{HCA_OP_BIND_MW, NUMBER, 0, TC},
		{HCA_OP_SEND, HCA_UB_MAKE_NUMBER(3, 5), 0, TC},
		{HCA_OP_SEND, NUMBER, 3, TC},
		{HCA_OP_SEND, NUMBER, 0, HCA_UB_MAKE_TC(5, HCA_UB_CODE_RESERVED, 0)},
		{HCA_OP_RDMA_WRITE_IMM, HCA_UB_MAKE_NUMBER(HCA_UB_TO_ADDRESS, 0), 0, TC},
		{HCA_OP_ATOMIC, NUMBER, HCA_UB_MAKE_ORDER(0, 0, 0, HCA_UB_TA_READ, 0), TC},
		{HCA_OP_ATOMIC, NUMBER, HCA_UB_MAKE_ORDER(0, 0, 0, HCA_UB_TA_MANAGEMENT, 0), TC},
		{HCA_OP_ATOMIC, NUMBER, HCA_UB_MAKE_ORDER(0, 0, 0, HCA_UB_TA_LOAD, 8), TC},
	};

	for (unsigned int i = 0; i < RTE_DIM(bad); i++) {
		struct wqe w = wqe_new(0, 0);
		struct hca_ub_record *r;

		add_ub(&w, bad[i].number, bad[i].order, 8);
		hca_put_le32(w.b + 16 + offsetof(struct hca_ub_unit, tc), bad[i].tc);
		add_bytes(&w, 0, 96);
		r = post(fx, &w, bad[i].op, w.len);
		assert_int_equal(r->status, HCA_UB_STATUS_UNSUPPORTED_OPCODE);
		assert_int_equal(r->op, bad[i].op);
		assert_int_equal(r->len | r->nsge, 0);
		finish_all(fx);
	}
}

/* A WQE that ends anywhere: nothing behind its end is used. */
static void
test_cut_anywhere(void **state)
{
	struct fx *fx = *state;
	struct wqe w = begin(0);
	uint8_t inline_data[16] = {0};

	add_raddr(&w, RADDR, TOKEN_ID);
	add_notify(&w);
	add_inline(&w, inline_data, 12);
	for (uint32_t size = 16; size <= w.len; size += 16) {
		struct hca_ub_record *r = post(fx, &w, HCA_OP_WRITE_NOTIFY, size);

		if (size < 80)
			assert_int_equal(r->status, HCA_UB_STATUS_LOCAL_LENGTH);
		else
			assert_int_equal(r->len, size == 80 ? 0 : 12);
		finish_all(fx);
	}
	hca_put_le32(w.b + 80, HCA_INLINE_FLAG | 13);
	assert_int_equal(post(fx, &w, HCA_OP_WRITE_NOTIFY, w.len)->status,
			 HCA_UB_STATUS_LOCAL_LENGTH);
	assert_int_equal(post(fx, &w, HCA_OP_WRITE_NOTIFY, 63 * 16)->status,
			 HCA_UB_STATUS_LOCAL_LENGTH); /* more than the stride */
}

static void
test_too_long(void **state)
{
	struct fx *fx = *state;
	struct wqe w = begin(0);

	add_sge(&w, 0x10000, 0x500, HCA_UB_SEND_MAX);
	assert_int_equal(post(fx, &w, HCA_OP_SEND, w.len)->status, 0);
	add_sge(&w, 0x10000, 0x500, 1);
	assert_int_equal(post(fx, &w, HCA_OP_SEND, w.len)->status, HCA_UB_STATUS_LOCAL_LENGTH);
	w = begin(0);
	add_raddr(&w, RADDR, TOKEN_ID);
	add_sge(&w, 0x10000, 0x500, HCA_MAX_MSG_SIZE - 1);
	add_sge(&w, 0x10000, 0x500, 1);
	assert_int_equal(post(fx, &w, HCA_OP_RDMA_WRITE, w.len)->status, 0);
	add_sge(&w, 0x10000, 0x500, 1);
	assert_int_equal(post(fx, &w, HCA_OP_RDMA_WRITE, w.len)->status,
			 HCA_UB_STATUS_LOCAL_LENGTH);
}

/* ---- pools ---- */

static void
test_error_flushes(void **state)
{
	struct fx *fx = *state;
	struct wqe w = begin(0);

	fx->h->qp[QPI].cfg.state = HCA_QPS_ERR;
	assert_int_equal(post(fx, &w, HCA_OP_SEND, w.len)->status, HCA_UB_STATUS_FLUSHED);
	/* that there is nothing more is said when it has been looked for */
	assert_int_equal(fx_take_msgs(fx, HCA_STAGE_PARSER, HCA_STAGE_TAI, QPI),
			 HCA_MSG_NEW | HCA_MSG_STATE);
	assert_int_equal(FX_COUNTER(fx, PARSER, sq_bad_wqe), 0);
}

/* In an idle Jetty there is nothing to flush. */
static void
test_error_of_an_idle_one(void **state)
{
	struct fx *fx = *state;

	hca_msg_send(fx->h, HCA_STAGE_TAI, HCA_STAGE_PARSER, QPI, HCA_MSG_STATE);
	poll_parser(fx);
	assert_int_equal(fx_take_msgs(fx, HCA_STAGE_PARSER, HCA_STAGE_TAI, QPI), 0);
	fx->h->qp[QPI].cfg.state = HCA_QPS_ERR;
	hca_msg_send(fx->h, HCA_STAGE_TAI, HCA_STAGE_PARSER, QPI, HCA_MSG_STATE);
	poll_parser(fx);
	assert_int_equal(fx_take_msgs(fx, HCA_STAGE_PARSER, HCA_STAGE_TAI, QPI), HCA_MSG_STATE);
}

static void
test_pools(void **state)
{
	struct fx *fx = *state;
	struct hca_qp_parser *p = &fx->h->qp[QPI].parser;
	struct wqe w = begin(0);

	add_sge(&w, 0x10000, 0x500, 5);
	post(fx, &w, HCA_OP_SEND, w.len);
	add_sge(&w, 0x10000, 0x500, 5);
	post(fx, &w, HCA_OP_SEND, w.len);
	assert_int_equal(p->held[0], 1);
	assert_int_equal(p->held[1], 1);
	assert_int_equal(hca_record_pool_in_use(&fx->h->records[HCA_WIRE_UB].small), 1);
	assert_int_equal(hca_record_pool_in_use(&fx->h->records[HCA_WIRE_UB].full), 1);
	assert_int_equal(hca_record_pool_in_use(&fx->h->records[HCA_WIRE_ROCE].small), 0);
	assert_int_equal(hca_record_pool_in_use(&fx->h->records[HCA_WIRE_ROCE].full), 0);
}

/* A Jetty waits for records of its own kind, and goes on when some come back. */
static void
test_waits_for_records(void **state)
{
	struct fx *fx = *state;
	struct hca_record_pool *pool = &fx->h->records[HCA_WIRE_UB].small;
	struct hca_qp *qp = &fx->h->qp[QPI];
	struct wqe w = begin(0);

	for (uint32_t i = 0; i < pool->count - 2; i++)
		hca_record_set_stack(pool, pool->stack_n - 1);
	pool->shared_used = pool->count - 2;
	post(fx, &w, HCA_OP_SEND, w.len);
	post(fx, &w, HCA_OP_SEND, w.len);
	put(fx, 2, &w);
	ring(fx, 2, HCA_OP_SEND, w.len);
	assert_int_equal(poll_parser(fx), 0);
	assert_true(qp->parser.flags & HCA_PF_WAIT_REC);
	assert_int_equal(hca_parser_deadline(fx->h, 0), HCA_DEADLINE_ROOM);
	finish_all(fx);
	assert_int_equal(poll_parser(fx), 0); /* it has not been told */
	hca_msg_send(fx->h, HCA_STAGE_TAI, HCA_STAGE_PARSER, QPI, HCA_MSG_FREED);
	assert_int_equal(poll_parser(fx), 2);
	assert_int_equal(qp->parser.head, 3);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(test_write),
		T(test_queue_of_common_form),
		T(test_send_inline),
		T(test_notify_of_many_sges),
		T(test_atomic_lengths),
		T(test_store_has_no_result),
		T(test_codes_of_the_text),
		T(test_exclusive),
		T(test_byte_enables),
		T(test_read),
		T(test_unreliable),
		T(test_unreliable_to_driver),
		T(test_bad_lengths),
		T(test_bad_codes),
		T(test_cut_anywhere),
		T(test_too_long),
		T(test_error_flushes),
		T(test_error_of_an_idle_one),
		T(test_pools),
		T(test_waits_for_records),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
