/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Requests into operations: the headers of every opcode as the codec judges them, where segments
 * are cut, where their payload lies, which TP gets them, and which Jetty is next.
 */

#include "tai_rig.h"

#include "wire/ub_frame.h"

/* ---- headers ---- */

/* All headers of packet i of an operation, as they are sent. */
static struct hca_ub_headers
headers_of(const struct tai_rig *r, const struct hca_ta_op *op, uint32_t i)
{
	bool last = i + 1 == hca_ta_op_packets(op, RIG_MTU_LOG);
	uint8_t opcode = last ? op->last_opcode : op->opcode;
	bool to_queue = (hca_ub_ta_ops[opcode].is & HCA_UB_EXT(MTETAH)) != 0;
	struct hca_ub_headers h = {.form = HCA_UB_FORM_DEFAULT};
	uint8_t btah[HCA_UB_BTAH_LEN];

	h.rtph.opcode = HCA_UB_TP_RTP;
	h.rtph.last = last;
	h.rtph.pad = hca_ub_pad(hca_ta_op_packet_len(op, i, RIG_MTU_LOG));
	btah[0] = opcode;
	btah[1] = op->ta1;
	hca_put_be16(btah + 2, op->tassn);
	hca_put_be32(btah + 4, (uint32_t)op->ta4 << 24 | op->rc);
	hca_ub_btah_get(btah, &h.btah);
	h.btah.mt_en = to_queue;
	h.maetah = (struct hca_ub_maetah){.address = op->req.address + i * RIG_MTU,
					  .token_id = op->req.token_id,
					  .length = op->length};
	h.mtetah = (struct hca_ub_mtetah){.hint = HCA_UB_TC_HINT(op->req.tc),
					  .type = HCA_UB_TC_TYPE(op->req.tc),
					  .tc_id = HCA_UB_TC(op->req.tc)};
	h.tvetah.token_value = op->req.token;
	h.taidetah.taid = HCA_UB_TAID_OF(op->tassn);
	h.ofstetah.offset = op->offset + i * RIG_MTU / HCA_UB_OFFSET_UNIT;
	h.immetah = (struct hca_ub_immetah){.immediate = op->req.data,
					    .token_value = op->req.notify_token,
					    .length = op->req.total};
	h.ntfetah = (struct hca_ub_ntfetah){.address = op->req.notify,
					    .token_id = op->req.notify_token_id,
					    .token_value = op->req.notify_token,
					    .data = op->req.data};
	h.udetah.user = op->req.user;
	h.enables = hca_ub_record_enables(hca_ub_record(r->h, op->req.record));
	return h;
}

/* The codec takes every packet of the operation. Returns the headers of the last one. */
static struct hca_ub_headers
check_packets(const struct tai_rig *r, const struct hca_ta_op *op)
{
	static uint8_t tph[8192];
	struct hca_ub_headers h = {0}, got = {0};

	for (uint32_t i = 0; i < hca_ta_op_packets(op, RIG_MTU_LOG); i++) {
		uint32_t n = hca_ta_op_packet_len(op, i, RIG_MTU_LOG);
		struct hca_ub_tp_view v;
		struct hca_ub_ta_view ta;
		int len;

		h = headers_of(r, op, i);
		len = hca_ub_put_headers(tph, &h);
		assert_true(len > 0);
		assert_int_equal(hca_ub_parse_tp(tph, (uint32_t)len + n + h.rtph.pad, &v), 0);
		assert_int_equal(hca_ub_parse_ta(tph, &v, HCA_UB_FORM_DEFAULT, &ta), 0);
		assert_int_equal(ta.payload_len, n);
		hca_ub_get_headers(tph, &v, &ta, &got);
	}
	return got;
}

static struct hca_ta_op *
only_op(struct tai_rig *r)
{
	struct hca_ta_op *op;
	uint32_t tpi;

	rig_poll(r);
	op = rig_any(r, &tpi);
	assert_non_null(op);
	assert_null(rig_any(r, &tpi));
	return op;
}

static void
test_send(void **state)
{
	struct tai_rig *r = *state;
	struct hca_ub_record *rec = rig_post(r, HCA_OP_SEND_IMM, 5000);
	struct hca_ub_headers h;
	struct hca_ta_op *op;

	rec->order = HCA_UB_ODR_COMPLETION | HCA_UB_ODR_RELAXED | HCA_UB_HAS_TOKEN;
	rec->flags |= HCA_REC_SOLICITED;
	op = only_op(r);
	assert_int_equal(op->opcode, HCA_UB_TA_SEND);
	assert_int_equal(op->last_opcode, HCA_UB_TA_SEND_IMM);
	h = check_packets(r, op);
	assert_int_equal(h.btah.odr, HCA_UB_ODR_COMPLETION | HCA_UB_ODR_RELAXED);
	assert_int_equal(h.btah.tassn, 0);
	assert_int_equal(h.btah.rc_id, r->qp->cfg.local_qpn);
	assert_true(h.btah.fce && h.btah.tv_en && h.btah.mt_en);
	assert_false(h.btah.retry || h.btah.e_bit || h.btah.alloc || h.btah.no_taack);
	assert_int_equal(h.mtetah.tc_id, 0x10403);
	assert_int_equal(h.mtetah.hint, 0x77);
	assert_int_equal(h.ofstetah.offset, 4);
	assert_true(h.immetah.immediate == RIG_DATA);
	assert_int_equal(h.immetah.token_value | h.immetah.length, 0);
	assert_int_equal(h.tvetah.token_value, RIG_TOKEN);
	assert_int_equal(op->generation, 7);
	assert_int_equal(op->object, RIG_QPI);
}

static void
test_no_token(void **state)
{
	struct tai_rig *r = *state;

	rig_post(r, HCA_OP_RDMA_WRITE, 4)->order = 0;
	assert_false(check_packets(r, only_op(r)).btah.tv_en);
	rig_post(r, HCA_OP_RDMA_WRITE, 4)->order = HCA_UB_EXCLUSIVE;
	assert_int_equal(HCA_BITS(only_op(r)->rc, 22, 22), 1);
}

/* The last segment alone has the immediate, the queue's token and the length of the message. */
static void
test_write_imm(void **state)
{
	struct tai_rig *r = *state;
	struct hca_ub_record *rec = rig_post(r, HCA_OP_RDMA_WRITE_IMM, 65536 + 3000);
	struct hca_ub_headers h;
	struct hca_ta_op *op;

	rec->tc_token = 0x99;
	rec->flags |= HCA_REC_SOLICITED;
	op = only_op(r);
	assert_int_equal(op->last_opcode, HCA_UB_TA_WRITE);
	assert_false(check_packets(r, op).btah.fce);
	assert_int_equal(op->length, 65536);
	rig_taack(r, 1, 0, 0, 0);
	op = only_op(r);
	assert_int_equal(op->opcode, HCA_UB_TA_WRITE);
	h = check_packets(r, op);
	assert_int_equal(h.btah.opcode, HCA_UB_TA_WRITE_IMM);
	assert_int_equal(h.btah.tassn, 1);
	assert_true(h.btah.fce);
	assert_true(h.maetah.address == RIG_RADDR + 65536 + 2048);
	assert_int_equal(h.maetah.length, 3000);
	assert_int_equal(h.immetah.token_value, 0x99);
	assert_int_equal(h.immetah.length, 65536 + 3000);
	assert_int_equal(h.mtetah.tc_id, 0x10403);
}

static void
write_notify(struct tai_rig *r, uint8_t order)
{
	struct hca_ub_record *rec = rig_post(r, HCA_OP_WRITE_NOTIFY, 0);
	struct hca_ub_headers h;

	rec->notify = 0x9000;
	rec->notify_token_id = 0x54321;
	rec->notify_token = 0x1234;
	rec->order = order;
	h = check_packets(r, only_op(r));
	assert_int_equal(h.btah.opcode, HCA_UB_TA_WRITE_NOTIFY);
	assert_true(h.ntfetah.address == 0x9000 && h.ntfetah.data == RIG_DATA);
	assert_int_equal(h.ntfetah.token_id, 0x54321);
	assert_int_equal(h.btah.tv_en, (rec->order & HCA_UB_HAS_TOKEN) != 0);
	assert_int_equal(h.ntfetah.token_value, h.btah.tv_en ? 0x1234 : 0);
}

static void
test_write_notify(void **state)
{
	write_notify(*state, HCA_UB_HAS_TOKEN);
}

/* Without a token of its own the packet has none for the notify: the field is reserved. */
static void
test_write_notify_no_token(void **state)
{
	write_notify(*state, 0);
}

static void
test_read(void **state)
{
	struct tai_rig *r = *state;
	struct hca_ub_headers h;
	struct hca_ta_op *op;
	uint32_t tpi;

	rig_post(r, HCA_OP_RDMA_READ, 65536 + 100);
	rig_poll(r);
	op = rig_any(r, &tpi);
	assert_int_equal(op->payload, 0);
	assert_int_equal(op->source, HCA_TA_OP_NO_PAYLOAD);
	h = check_packets(r, op);
	assert_int_equal(h.maetah.length, 65536);
	op = rig_any(r, &tpi);
	h = check_packets(r, op);
	assert_int_equal(h.btah.opcode, HCA_UB_TA_READ);
	assert_int_equal(h.maetah.length, 100);
	assert_int_equal(h.maetah.token_id, RIG_TOKEN_ID);
	assert_int_equal(h.ofstetah.offset, 64);
	assert_int_equal(h.taidetah.taid, 1);
}

static void
test_atomics(void **state)
{
	struct tai_rig *r = *state;

	for (uint8_t opcode = HCA_UB_TA_COMPARE_SWAP; opcode <= HCA_UB_TA_FETCH_XOR; opcode++) {
		struct hca_ub_record *rec = rig_post(r, HCA_OP_ATOMIC, 16);
		struct hca_ub_headers h;
		struct hca_ta_op *op;

		rec->atomic = opcode;
		rec->user = HCA_UB_UD_MAKE_OPERATION(HCA_UB_UD_OP_SMIN);
		op = only_op(r);
		assert_int_equal(op->payload, 32);
		assert_int_equal(op->source, HCA_TA_OP_RECORD);
		assert_int_equal(op->req.from, 0);
		h = check_packets(r, op);
		assert_int_equal(h.btah.opcode, opcode);
		assert_int_equal(h.maetah.length, 16);
		assert_int_equal(h.btah.ud_flag,
				 opcode == HCA_UB_TA_STORE || opcode == HCA_UB_TA_LOAD);
		if (h.btah.ud_flag)
			assert_int_equal(HCA_UB_UD_OPERATION(h.udetah.user), HCA_UB_UD_OP_SMIN);
	}
}

static void
test_write_be(void **state)
{
	struct tai_rig *r = *state;
	struct hca_ub_record_full *f =
		(struct hca_ub_record_full *)rig_post(r, HCA_OP_WRITE_BE, 1024);
	struct hca_ub_headers h;
	struct hca_ta_op *op;

	for (uint32_t i = 0; i < 128; i++)
		f->operand[i] = (uint8_t)i;
	op = only_op(r);
	assert_int_equal(op->source, HCA_TA_OP_RECORD);
	h = check_packets(r, op);
	assert_int_equal(h.btah.opcode, HCA_UB_TA_WRITE_BE);
	assert_int_equal(h.enables[127], 127);
}

/* ---- segments ---- */

static void
test_lengths(void **state)
{
	static const struct {
		uint32_t bytes, segments, last;
	} of[] = {
		{0, 1, 0},	   {1, 1, 1},	  {RIG_MTU, 1, RIG_MTU}, {65535, 1, 65535},
		{65536, 1, 65536}, {65537, 2, 1}, {8 << 20, 128, 65536}, {(8 << 20) + 1, 129, 1},
	};
	struct tai_rig *r = *state;
	uint16_t tassn = 0;

	for (unsigned int i = 0; i < RTE_DIM(of); i++) {
		uint32_t n = 0, bytes = 0, last = 0, tpi;
		struct hca_ta_op *op;

		rig_post(r, HCA_OP_RDMA_WRITE, of[i].bytes);
		for (unsigned int visits = 0; visits < 16; visits++)
			rig_poll(r);
		for (; (op = rig_any(r, &tpi)) != NULL; n++) {
			assert_int_equal(op->length, op->payload);
			bytes += op->payload;
			if ((uint16_t)(op->tassn - tassn) + 1u == of[i].segments)
				last = op->payload;
		}
		assert_int_equal(n, of[i].segments);
		assert_int_equal(bytes, of[i].bytes);
		assert_int_equal(last, of[i].last);
		tassn += of[i].segments;
		assert_int_equal(r->qp->tai.tassn, tassn);
		assert_int_equal(r->qp->tai.open, of[i].segments);
		for (uint16_t t = hca_tai_una(r->qp); t != r->qp->tai.tassn; t++)
			rig_taack(r, hca_tai_segment(r->qp, t)->number, t, 0, 0);
		rig_release_all(r);
		rig_expect(r, i, 0);
	}
	rig_check_quiet(r);
}

/* Each segment has its place in the message, and no more numbers than there are. */
static void
test_places(void **state)
{
	struct tai_rig *r = *state;
	uint64_t sum = 0;
	struct hca_ta_op *op;
	uint32_t n = 0, tpi;

	rig_post(r, HCA_OP_RDMA_WRITE, 64 << 20);
	for (unsigned int i = 0; i < 100; i++)
		rig_poll(r);
	assert_int_equal(r->qp->tai.open, HCA_JETTY_SEGMENTS);
	while ((op = rig_any(r, &tpi)) != NULL) {
		uint64_t from = op->req.address - RIG_RADDR;

		assert_int_equal(from, (uint64_t)op->tassn * 65536);
		assert_true(op->req.va == RIG_VA + from);
		assert_int_equal(op->source, HCA_TA_OP_LOCAL);
		sum += op->tassn;
		n++;
	}
	assert_int_equal(n, HCA_JETTY_SEGMENTS);
	assert_int_equal(sum, HCA_JETTY_SEGMENTS * (HCA_JETTY_SEGMENTS - 1) / 2);
	/* one that is answered frees its number when its operation is back */
	rig_taack(r, 1, 0, 0, 0);
	assert_int_equal(r->qp->tai.open, HCA_JETTY_SEGMENTS - 1);
	rig_release(r, 1, 1);
	rig_poll(r);
	assert_int_equal(r->qp->tai.open, HCA_JETTY_SEGMENTS);
	assert_int_equal(r->qp->tai.tassn, HCA_JETTY_SEGMENTS + 1);
}

static void
test_numbers_wrap(void **state)
{
	struct tai_rig *r = *state;

	r->qp->tai.tassn = 0xfffe;
	r->qp->sq_una = 0xfffe;
	rig_post(r, HCA_OP_RDMA_WRITE, 4 * 65536);
	rig_poll(r);
	assert_int_equal(rig_skip(r), 4);
	assert_int_equal(r->qp->tai.tassn, 2);
	/* half of them went to the other TP of the group: that is the same peer */
	rig_taack(r, 1, 0xfffe, 0, 3);
	rig_expect(r, 0, 0);
}

/* A segment that one SGE has is read from there, others by the record. */
static void
test_sges(void **state)
{
	struct tai_rig *r = *state;
	struct hca_ub_record_full *f =
		(struct hca_ub_record_full *)rig_post(r, HCA_OP_RDMA_WRITE, 3 * 65536);
	struct hca_ta_op *op;

	f->r.nsge = 3;
	f->body.sge[0] = (struct hca_sge){.va = 0x1000, .lkey = 1, .len = 65536};
	f->body.sge[1] = (struct hca_sge){.va = 0x200000, .lkey = 2, .len = 65536 + 10};
	f->body.sge[2] = (struct hca_sge){.va = 0x300000, .lkey = 3, .len = 65536 - 10};
	rig_poll(r);
	op = rig_next(r, 1);
	assert_int_equal(op->source, HCA_TA_OP_LOCAL);
	assert_int_equal(op->key, 1);
	op = rig_next(r, 2);
	assert_int_equal(op->key, 2);
	assert_true(op->req.va == 0x200000);
	op = rig_next(r, 1);
	assert_int_equal(op->source, HCA_TA_OP_RECORD);
	assert_int_equal(op->req.from, 2 * 65536);
}

static void
test_inline(void **state)
{
	struct tai_rig *r = *state;
	struct hca_ub_record *rec = rig_post(r, HCA_OP_SEND, 100);
	struct hca_ta_op *op;

	rec->flags |= HCA_REC_INLINE;
	rec->nsge = 0;
	op = only_op(r);
	assert_int_equal(op->source, HCA_TA_OP_RECORD);
	assert_ptr_equal(hca_ub_record(r->h, op->req.record), rec);
}

/* ---- which TP ---- */

static void
test_round_robin(void **state)
{
	struct tai_rig *r = *state;

	rig_by_turns(r);
	for (unsigned int i = 0; i < 4; i++)
		rig_post(r, HCA_OP_SEND, 8);
	rig_poll(r);
	assert_non_null(rig_next(r, 1));
	assert_non_null(rig_next(r, 2));
	r->h->ub->tp[1].cfg.state = HCA_TPS_DRAIN;
	rig_skip(r);
	for (unsigned int i = 0; i < 4; i++)
		rig_post(r, HCA_OP_SEND, 8);
	rig_poll(r);
	assert_null(rig_next(r, 1));
	assert_int_equal(rig_skip(r), 4);
}

/* Of those posted now, how many the first TP is given before the second one is. */
static uint32_t
length_of_run(struct tai_rig *r, uint32_t n, uint32_t len)
{
	uint32_t run = 0;

	for (uint32_t i = 0; i < n; i++)
		rig_post(r, HCA_OP_RDMA_WRITE, len);
	rig_poll(r);
	while (rig_next(r, 1) != NULL)
		run++;
	assert_int_equal(rig_skip(r), n - run);
	return run;
}

/* Short requests go to one TP, so that they are answered together; long ones take turns. */
static void
test_runs(void **state)
{
	struct tai_rig *r = *state;

	assert_int_equal(length_of_run(r, 20, 8), 20);
	rig_by_turns(r);
	rig_post(r, HCA_OP_SEND, 8);
	rig_poll(r);
	assert_int_equal(rig_skip(r), 1);
	hca_tai_ctx(r->h)->run = HCA_TAI_RUN;
	assert_int_equal(length_of_run(r, 2, 65536), 1);
}

static void
test_names_a_tp(void **state)
{
	struct tai_rig *r = *state;

	rig_post(r, HCA_OP_SEND, 8)->to = HCA_UB_MAKE_NUMBER(HCA_UB_TO_TP, 0x1004);
	rig_poll(r);
	assert_non_null(rig_next(r, 4));
}

/* Unknown TPNs, one of another life, the unreliable one; unknown groups. */
static void
test_names_nothing(void **state)
{
	static const uint32_t to[] = {
		HCA_UB_MAKE_NUMBER(HCA_UB_TO_TP, 0x2004),
		HCA_UB_MAKE_NUMBER(HCA_UB_TO_TP, 0),
		HCA_UB_MAKE_NUMBER(HCA_UB_TO_TP, 0x1000),
		HCA_UB_MAKE_NUMBER(HCA_UB_TO_TPG, 1),
		HCA_UB_MAKE_NUMBER(HCA_UB_TO_TPG, 8),
		HCA_UB_MAKE_NUMBER(HCA_UB_TO_TPG, 0xffffff),
	};
	struct tai_rig *r = *state;

	for (unsigned int i = 0; i < RTE_DIM(to); i++) {
		rig_post(r, HCA_OP_SEND, 8)->to = to[i];
		rig_poll(r);
		rig_expect(r, i, HCA_UB_STATUS_ACK_TIMEOUT);
	}
	assert_int_equal(rig_skip(r), 0);
	rig_check_quiet(r);
}

/* Never more requests at the peer than agreed. */
static void
test_credit(void **state)
{
	struct tai_rig *r = *state;

	r->h->ub->tp[1].cfg.requests = 3;
	r->h->ub->tp[2].cfg.requests = 2;
	for (unsigned int i = 0; i < 8; i++)
		rig_post(r, HCA_OP_SEND, 8);
	rig_poll(r);
	assert_int_equal(rig_skip(r), 5);
	assert_int_equal(r->h->ub->tp[1].tai.open_out, 3);
	rig_release_all(r); /* that they have arrived is not enough */
	assert_int_equal(rig_skip(r), 0);
	rig_taack(r, 1, 0, 0, 0);
	assert_int_equal(rig_skip(r), 1);
	rig_taack(r, 2, 1, 0, 0);
	rig_taack(r, 1, 2, 0, 0);
	assert_int_equal(rig_skip(r), 2);
}

static void
test_lane_is_full(void **state)
{
	struct tai_rig *r = *state;

	r->h->ub->tpg[RIG_GROUP].count = 1;
	r->h->ub->tp[1].cfg.window = 4;
	for (unsigned int i = 0; i < 7; i++)
		rig_post(r, HCA_OP_SEND, 8);
	rig_poll(r);
	assert_int_equal(rig_skip(r), 4);
	assert_true(r->qp->tai.flags & HCA_TAI_WAITS);
	assert_int_equal(hca_tai_deadline(r->h, r->now), UINT64_MAX);
	rig_taack(r, 1, 0, 0, 0); /* an answer alone makes no room */
	assert_int_equal(rig_skip(r), 0);
	rig_release(r, 1, 2);
	assert_int_equal(rig_skip(r), 2);
	assert_int_equal(RIG_COUNTER(r, ub_parked_room), 2);
}

/* Without free operations requests wait, and go on when some come back. */
static void
test_no_ops(void **state)
{
	struct tai_rig *r = *state;
	struct hca_ta_op_pool *pool = &r->h->ub->pool[HCA_TP_REQUESTS];

	pool->free_n = 2;
	for (unsigned int i = 0; i < 4; i++)
		rig_post(r, HCA_OP_SEND, 8);
	rig_poll(r);
	assert_int_equal(rig_skip(r), 2);
	assert_int_equal(r->qp->tai.waits, hca_tai_wait_op(r->h));
	rig_release(r, 1, 1);
	assert_int_equal(rig_skip(r), 1);
	pool->free_n = 0;
}

/* Room that one that was woken does not need goes to the next. */
static void
test_room_is_passed_on(void **state)
{
	struct tai_rig *r = *state;
	struct hca_qp *other = rig_jetty(r, 5);

	r->h->ub->tpg[RIG_GROUP].count = 1;
	r->h->ub->tp[1].cfg.window = 1;
	rig_post(r, HCA_OP_SEND, 8);
	rig_post(r, HCA_OP_SEND, 8);
	rig_poll(r);
	rig_post_on(r, other, HCA_OP_SEND, 8);
	rig_poll(r);
	assert_int_equal(rig_skip(r), 1);
	assert_true(other->tai.flags & HCA_TAI_WAITS);
	r->qp->cfg.state = HCA_QPS_SQD; /* it does not use its turn */
	rig_release(r, 1, 1);
	rig_poll(r);
	assert_int_equal(rig_next(r, 1)->object, 5);
}

/* ---- one peer ---- */

/* A request to another queue than the peer of the Jetty fails here, and the next one goes on. */
static void
test_one_peer(void **state)
{
	struct tai_rig *r = *state;
	struct hca_tc *row = &r->h->ub->jetty[RIG_QPI];
	struct hca_ub_record *rec;

	r->qp->cfg.one_peer = true;
	row->bound = HCA_TC_ALONE;
	rig_post(r, HCA_OP_SEND, 8);
	rig_poll(r);
	rig_expect(r, 0, HCA_UB_STATUS_LOCAL_ACCESS);
	row->bound = HCA_TC_BOUND;
	row->peer = RIG_TC & HCA_TC_MASK;
	for (unsigned int t = 1; t < 3; t++)
		memset(r->h->ub->tp[t].cfg.peer_eid, 0x42, 16);
	memset(row->peer_eid, 0x42, 16);
	rig_post(r, HCA_OP_SEND, 8)->tc++; /* another Jetty of its host */
	row->peer_eid[15]++;
	rig_poll(r);
	rig_post(r, HCA_OP_SEND, 8); /* another host */
	rig_post(r, HCA_OP_RDMA_WRITE, 8);
	rig_poll(r);
	row->peer_eid[15]--;
	rec = rig_post(r, HCA_OP_SEND, 8);
	rec->to = HCA_UB_MAKE_NUMBER(HCA_UB_TO_ADDRESS, 0);
	rig_poll(r);
	for (uint32_t i = 1; i < 5; i++)
		rig_expect(r, i, HCA_UB_STATUS_LOCAL_ACCESS);
	assert_int_equal(RIG_COUNTER(r, ub_not_for_peer), 5);
	assert_int_equal(rig_skip(r), 0);
	rig_post(r, HCA_OP_SEND, 8);
	rig_post(r, HCA_OP_RDMA_WRITE, 3 * HCA_TAI_SEGMENT);
	rig_poll(r);
	assert_int_equal(rig_skip(r), 4);
	assert_int_equal(RIG_COUNTER(r, ub_not_for_peer), 5);
}

/* ---- turns ---- */

/* One with large requests gets no more bytes than one with small requests. */
static void
test_turns(void **state)
{
	struct tai_rig *r = *state;
	struct hca_qp *other = rig_jetty(r, 5);
	uint64_t bytes[2] = {0};
	struct hca_ta_op *op;
	uint32_t n = 0, tpi;

	rig_post(r, HCA_OP_SEND, 1 << 20);
	rig_post(r, HCA_OP_SEND, 1 << 20);
	rig_post(r, HCA_OP_SEND, 1 << 20);
	for (unsigned int i = 0; i < 20; i++)
		rig_post_on(r, other, HCA_OP_RDMA_WRITE, 65536);
	for (unsigned int i = 0; i < 12; i++)
		rig_poll(r);
	while ((op = rig_any(r, &tpi)) != NULL) {
		bytes[op->object == 5] += op->payload;
		n++;
	}
	assert_true(n > 10);
	assert_true(bytes[0] <= 1 << 20);
	assert_true(bytes[1] >= 11 * 65536);
}

static void
test_at_most_32_a_visit(void **state)
{
	struct tai_rig *r = *state;

	rig_jetty(r, 5);
	rig_post(r, HCA_OP_RDMA_READ, 100 * 65536);
	rig_poll(r);
	assert_int_equal(rig_skip(r), HCA_TAI_SEGMENTS_PER_VISIT);
	assert_true(hca_tai_deadline(r->h, r->now) <= r->now);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
		T(test_send),
		T(test_no_token),
		T(test_write_imm),
		T(test_write_notify),
		T(test_write_notify_no_token),
		T(test_read),
		T(test_atomics),
		T(test_write_be),
		T(test_lengths),
		T(test_places),
		T(test_numbers_wrap),
		T(test_sges),
		T(test_inline),
		T(test_round_robin),
		T(test_runs),
		T(test_names_a_tp),
		T(test_names_nothing),
		T(test_credit),
		T(test_lane_is_full),
		T(test_no_ops),
		T(test_room_is_passed_on),
		T(test_one_peer),
		T(test_turns),
		T(test_at_most_32_a_visit),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
