/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Responses: effects of right ones, and that wrong ones (of requests that were not made, of other
 * peers, too long, at other places) only change a counter or the request that they answer.
 */

#include "tai_rig.h"

#include "wire/ub_frame.h"

#define FIRST_PSN 0xfffffeu /* of each Read_response */

static uint8_t pattern[70000];

static int
setup(void **state)
{
	for (uint32_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)(i * 31 + (i >> 8));
	return rig_setup(state);
}

static struct hca_ub_record *
post(struct tai_rig *r, uint8_t op, uint32_t len)
{
	struct hca_ub_record *rec = rig_post(r, op, len);

	if (op == HCA_OP_ATOMIC)
		rec->atomic = HCA_UB_TA_FETCH_ADD;
	rig_poll(r);
	rig_skip(r);
	return rec;
}

/* Packet of a Read_response, of n bytes at a place of its segment. */
static void
data(struct tai_rig *r, uint32_t tpi, uint16_t tassn, uint32_t offset, uint32_t at, uint32_t n,
     bool last)
{
	struct hca_ub_headers h = rig_response(HCA_UB_TA_READ_RESPONSE, r->qp, tassn);

	h.rtph.last = last;
	h.rtph.psn = (FIRST_PSN + at / RIG_MTU) & HCA_PSN_MASK;
	h.ofstetah.offset = (offset + at) / HCA_UB_OFFSET_UNIT;
	rig_answer(r, tpi, &h, pattern + offset + at, n);
}

/* Only that counter has changed: the request is open. */
#define EXPECT_DROPPED(r, name, before) \
	do { \
		rig_expect_none(r); \
		assert_int_equal(RIG_COUNTER(r, name), (before) + 1); \
		assert_int_equal((r)->qp->tai.open, 1); \
		assert_int_equal(RIG_COUNTER(r, ub_responses), 0); \
	} while (0)

/* ---- right ones ---- */

static void
test_aggregated(void **state)
{
	struct tai_rig *r = *state;
	uint32_t n = 0;

	r->h->ub->tpg[RIG_GROUP].count = 1;
	for (unsigned int i = 0; i < 30; i++)
		rig_post(r, HCA_OP_RDMA_WRITE, 8);
	rig_poll(r);
	rig_taack(r, 1, 3, 0, 26); /* 3 .. 29 */
	rig_expect_none(r);
	rig_taack(r, 1, 0, HCA_UB_RSP_BUFFERED, 2);
	while (rig_cqe(r) != NULL)
		n++;
	assert_int_equal(n, 30);
	rig_release_all(r);
	rig_check_quiet(r);
	assert_int_equal(RIG_COUNTER(r, ub_responses), 2);
	assert_int_equal(r->qp->tai_wait.answers, 2);
}

/* Packets in any order, of the segments in any order. */
static void
test_read(void **state)
{
	struct tai_rig *r = *state;
	uint32_t len = 65536 + 2500;

	post(r, HCA_OP_RDMA_READ, len);
	assert_int_equal(r->qp->tai.open, 2);
	data(r, 2, 1, 65536, 2048, 452, true);
	data(r, 2, 1, 65536, 0, 1024, false);
	data(r, 2, 1, 65536, 1024, 1024, false);
	assert_int_equal(r->qp->tai.open, 1);
	for (uint32_t i = 64; i-- > 0;) {
		rig_expect_none(r);
		data(r, 1, 0, 0, i * RIG_MTU, RIG_MTU, i == 63);
	}
	rig_expect(r, 0, 0);
	assert_memory_equal(r->mem, pattern, len);
	assert_int_equal(r->mem[len], 0);
	assert_int_equal(hca_le32_to_cpu(r->cqe[0].bytes), len);
	rig_release_all(r);
	rig_check_quiet(r);
}

static void
test_read_of_nothing(void **state)
{
	struct tai_rig *r = *state;

	post(r, HCA_OP_RDMA_READ, 0);
	data(r, 1, 0, 0, 0, 0, true);
	rig_expect(r, 0, 0);
}

static void
test_atomic(void **state)
{
	struct tai_rig *r = *state;
	struct hca_ub_headers h;

	post(r, HCA_OP_ATOMIC, 16);
	h = rig_response(HCA_UB_TA_ATOMIC_RESPONSE, r->qp, 0);
	rig_answer(r, 1, &h, pattern, 16);
	rig_expect(r, 0, 0);
	assert_memory_equal(r->mem, pattern, 16);
	/* a peer that sends it the other way round */
	r->h->ub->tp[2].cfg.flags |= HCA_TP_FLAG_RSP_BE;
	post(r, HCA_OP_ATOMIC, 16);
	h = rig_response(HCA_UB_TA_ATOMIC_RESPONSE, r->qp, 1);
	rig_answer(r, 2, &h, pattern, 16);
	for (uint32_t i = 0; i < 16; i++)
		assert_int_equal(r->mem[i], pattern[15 - i]);
	rig_expect(r, 1, 0);
	/* a store has no result */
	post(r, HCA_OP_ATOMIC, 16)->atomic = HCA_UB_TA_STORE;
	h = rig_response(HCA_UB_TA_ATOMIC_RESPONSE, r->qp, 2);
	rig_answer(r, 1, &h, NULL, 0);
	rig_expect(r, 2, 0);
}

static void
test_refused(void **state)
{
	static const struct {
		uint8_t op, opcode, rspinfo, status;
	} of[] = {
		{HCA_OP_SEND, HCA_UB_TA_TAACK, HCA_UB_ERROR_UNSUPPORTED,
		 HCA_UB_STATUS_REMOTE_UNSUPPORTED},
		{HCA_OP_RDMA_WRITE, HCA_UB_TA_TAACK, HCA_UB_ERROR_ABORT,
		 HCA_UB_STATUS_REMOTE_ACCESS},
		{HCA_OP_RDMA_READ, HCA_UB_TA_READ_RESPONSE, HCA_UB_ERROR_ABORT,
		 HCA_UB_STATUS_REMOTE_ACCESS},
		{HCA_OP_RDMA_READ, HCA_UB_TA_TAACK, HCA_UB_ERROR_UNSUPPORTED,
		 HCA_UB_STATUS_REMOTE_UNSUPPORTED},
		{HCA_OP_ATOMIC, HCA_UB_TA_ATOMIC_RESPONSE, HCA_UB_ERROR_UNSUPPORTED,
		 HCA_UB_STATUS_REMOTE_UNSUPPORTED},
	};
	struct tai_rig *r = *state;

	r->h->ub->tpg[RIG_GROUP].count = 1;
	for (unsigned int i = 0; i < RTE_DIM(of); i++) {
		struct hca_ub_headers h = rig_response(of[i].opcode, r->qp, (uint16_t)i);

		post(r, of[i].op, 8);
		h.atah.rspst = HCA_UB_RSP_ERROR;
		h.atah.rspinfo = of[i].rspinfo;
		rig_answer(r, 1, &h, NULL, 0);
		rig_expect(r, i, of[i].status);
	}
	assert_int_equal(r->qp->tai_wait.refused, RTE_DIM(of));
	rig_release_all(r);
	rig_check_quiet(r);
}

/* The others of its segments are waited for, and no more begin. */
static void
test_refused_in_the_middle(void **state)
{
	struct tai_rig *r = *state;

	r->h->ub->tp[1].cfg.requests = 1;
	r->h->ub->tp[2].cfg.requests = 1;
	post(r, HCA_OP_RDMA_WRITE, 10 * 65536);
	post(r, HCA_OP_RDMA_WRITE, 8);
	assert_int_equal(r->qp->tai.open, 2);
	rig_taack(r, 2, 1, 3, 2);
	rig_expect_none(r);
	rig_taack(r, 1, 0, 0, 0);
	rig_expect(r, 0, HCA_UB_STATUS_REMOTE_ACCESS);
	assert_int_equal(r->qp->tai.open, 1);
	rig_taack(r, (uint32_t)hca_tai_segment(r->qp, 2)->number, 2, 0, 0);
	rig_expect(r, 1, 0);
	assert_int_equal(r->qp->tai.tassn, 3);
	rig_release_all(r);
	rig_check_quiet(r);
}

static void
test_poisoned_response(void **state)
{
	struct tai_rig *r = *state;
	struct hca_ub_headers h = rig_response(HCA_UB_TA_READ_RESPONSE, r->qp, 0);

	post(r, HCA_OP_RDMA_READ, 8);
	h.atah.poison = 1;
	rig_answer(r, 1, &h, pattern, 8);
	rig_expect(r, 0, HCA_UB_STATUS_REMOTE_POISON);
	assert_int_equal(r->mem[1], 0);
}

/* ---- wrong ones ---- */

static void
test_wrong_queue(void **state)
{
	struct tai_rig *r = *state;
	struct hca_ub_headers h = rig_response(HCA_UB_TA_TAACK, r->qp, 0);

	post(r, HCA_OP_RDMA_WRITE, 8);
	h.atah.rc_id ^= 0x4000; /* another life of the index */
	rig_answer(r, 1, &h, NULL, 0);
	EXPECT_DROPPED(r, ub_rsp_unknown_queue, 0);
	h.atah.rc_id = 0;
	rig_answer(r, 1, &h, NULL, 0);
	EXPECT_DROPPED(r, ub_rsp_unknown_queue, 1);
	h = rig_response(HCA_UB_TA_TAACK, r->qp, 0);
	h.atah.rc_type = HCA_UB_RC_SEQUENCE;
	rig_answer(r, 1, &h, NULL, 0);
	EXPECT_DROPPED(r, ub_rsp_unknown_queue, 2);
	r->qp->cfg.service = HCA_ST_RC;
	rig_taack(r, 1, 0, 0, 0);
	r->qp->cfg.service = HCA_ST_JETTY;
	EXPECT_DROPPED(r, ub_rsp_unknown_queue, 3);
	rig_taack(r, 1, 0, 0, 0);
	rig_expect(r, 0, 0);
}

static void
test_wrong_number(void **state)
{
	static const struct {
		uint16_t tassn;
		uint8_t k;
	} of[] = {{1, 0}, {0xffff, 0}, {512, 0}, {0, 1}, {0xffff, 1}, {0, 31}};
	struct tai_rig *r = *state;

	post(r, HCA_OP_RDMA_WRITE, 8);
	for (unsigned int i = 0; i < RTE_DIM(of); i++) {
		rig_taack(r, 1, of[i].tassn, 0, of[i].k);
		EXPECT_DROPPED(r, ub_rsp_unknown_request, i);
	}
	rig_taack(r, 1, 0, 0, 0);
	rig_expect(r, 0, 0);
	rig_taack(r, 1, 0, 0, 0); /* once more */
	rig_expect_none(r);
	assert_int_equal(RIG_COUNTER(r, ub_rsp_unknown_request), RTE_DIM(of) + 1);
}

static void
test_wrong_peer(void **state)
{
	struct tai_rig *r = *state;

	post(r, HCA_OP_RDMA_WRITE, 8);
	rig_taack(r, 5, 0, 0, 0);
	EXPECT_DROPPED(r, ub_rsp_other_peer, 0);
	rig_taack(r, HCA_TP_UNRELIABLE, 0, 0, 0);
	EXPECT_DROPPED(r, ub_rsp_stale, 0);
	r->h->ub->tp[5].cfg.tpg = 6; /* one with a group of its own */
	rig_taack(r, 5, 0, 0, 0);
	EXPECT_DROPPED(r, ub_rsp_other_peer, 1);
	rig_taack(r, 2, 0, 0, 0); /* the same peer */
	rig_expect(r, 0, 0);
}

static void
test_wrong_kind(void **state)
{
	static const uint8_t ops[] = {HCA_OP_RDMA_WRITE, HCA_OP_RDMA_READ, HCA_OP_ATOMIC};
	static const uint8_t kinds[] = {HCA_UB_TA_TAACK, HCA_UB_TA_READ_RESPONSE,
					HCA_UB_TA_ATOMIC_RESPONSE};
	struct tai_rig *r = *state;
	uint64_t dropped = 0;

	for (unsigned int i = 0; i < RTE_DIM(ops); i++) {
		post(r, ops[i], 8);
		for (unsigned int k = 0; k < RTE_DIM(kinds); k++) {
			struct hca_ub_headers h = rig_response(kinds[k], r->qp, (uint16_t)i);

			if (k == i)
				continue;
			rig_answer(r, 1, &h, pattern, k == 0 ? 0 : 8);
			assert_int_equal(RIG_COUNTER(r, ub_rsp_bad), ++dropped);
			assert_int_equal(r->qp->tai.open, i + 1);
		}
	}
	rig_expect_none(r);
}

/* A TAID that is not that of the request, and a request in place of a response. */
static void
test_wrong_headers(void **state)
{
	struct tai_rig *r = *state;
	struct hca_ub_headers h = rig_response(HCA_UB_TA_READ_RESPONSE, r->qp, 0);

	post(r, HCA_OP_RDMA_READ, 8);
	h.taidetah.taid = 1;
	rig_answer(r, 1, &h, pattern, 8);
	EXPECT_DROPPED(r, ub_rsp_bad, 0);
	h = rig_response(HCA_UB_TA_TAACK, r->qp, 0);
	h.atah.rspst = 4;
	rig_answer(r, 1, &h, NULL, 0);
	EXPECT_DROPPED(r, ub_rsp_malformed, 0);
	h = (struct hca_ub_headers){.form = HCA_UB_FORM_DEFAULT};
	h.rtph.opcode = HCA_UB_TP_RTP;
	h.rtph.last = 1;
	h.btah.opcode = HCA_UB_TA_READ;
	h.btah.ee = HCA_UB_EE_NORMAL;
	rig_answer(r, 1, &h, NULL, 0);
	EXPECT_DROPPED(r, ub_rsp_malformed, 1);
	data(r, 1, 0, 0, 0, 8, true);
	rig_expect(r, 0, 0);
}

/* A packet of the TP's last life that was on its way. */
static void
test_stale(void **state)
{
	struct tai_rig *r = *state;
	struct rte_mbuf *m = rte_pktmbuf_alloc(r->pool);
	void *obj = m;

	post(r, HCA_OP_RDMA_WRITE, 8);
	*hca_ub_rxd(m) = (struct hca_ub_rxd){.tp = 1, .generation = 6, .ta = 16, .end = 24};
	hca_tai_process(r->h, &obj, 1, r->now);
	EXPECT_DROPPED(r, ub_rsp_stale, 0);
}

/* Longer, shorter, elsewhere, with or without its end: the Read fails, and nothing is stored. */
static void
test_read_that_does_not_fit(void **state)
{
	static const struct {
		uint32_t at, n;
		bool last;
	} of[] = {
		{0, 1023, true},    {0, 1024, true},	{1024, 1024, true}, {2048, 0, true},
		{2048, 453, true},  {2048, 451, true},	{3072, 1024, true}, {2048, 1024, true},
		{65536, 452, true}, {1 << 20, 1, true},
	};
	struct tai_rig *r = *state;

	for (unsigned int i = 0; i < RTE_DIM(of); i++) {
		struct hca_ub_headers h = rig_response(HCA_UB_TA_READ_RESPONSE, r->qp, (uint16_t)i);

		post(r, HCA_OP_RDMA_READ, 2500);
		h.rtph.last = of[i].last;
		h.ofstetah.offset = of[i].at / HCA_UB_OFFSET_UNIT;
		rig_answer(r, 1, &h, pattern, of[i].n);
		rig_expect(r, i, HCA_UB_STATUS_REMOTE_RESPONSE_LENGTH);
		assert_int_equal(RIG_COUNTER(r, ub_rsp_bad_place), i + 1);
	}
	for (uint32_t i = 0; i < 4096; i++)
		assert_int_equal(r->mem[i], 0);
	rig_release_all(r);
	rig_check_quiet(r);
}

/*
 * The packets of a Read_response have PSNs in a row, by one TP. So a peer that sends a part twice,
 * under another PSN, does not complete a Read of which a part is missing.
 */
static void
test_read_part_twice(void **state)
{
	static const struct {
		uint32_t tpi, psn, at;
	} of[] = {
		{1, FIRST_PSN + 1, 0},	  /* the same part under the next PSN */
		{1, FIRST_PSN + 7, 1024}, /* a gap */
		{1, FIRST_PSN - 1, 1024}, /* back */
		{2, FIRST_PSN + 1, 1024}, /* another TP */
	};
	struct tai_rig *r = *state;

	for (unsigned int i = 0; i < RTE_DIM(of); i++) {
		struct hca_ub_headers h = rig_response(HCA_UB_TA_READ_RESPONSE, r->qp, (uint16_t)i);

		post(r, HCA_OP_RDMA_READ, 2048);
		data(r, 1, (uint16_t)i, 0, 0, 1024, false);
		h.rtph.psn = of[i].psn;
		h.rtph.last = of[i].at != 0;
		h.ofstetah.offset = of[i].at / HCA_UB_OFFSET_UNIT;
		rig_answer(r, of[i].tpi, &h, pattern + of[i].at, 1024);
		rig_expect(r, i, HCA_UB_STATUS_REMOTE_RESPONSE_LENGTH);
		assert_int_equal(RIG_COUNTER(r, ub_rsp_bad_place), i + 1);
		assert_int_equal(r->mem[1024 + 1], 0);
		if (of[i].at == 0)
			data(r, 1, (uint16_t)i, 0, 1024, 1024, true);
	}
	rig_release_all(r);
	rig_check_quiet(r);
}

/*
 * A Read that fails in the middle of its response is open at the peer until the last packet, which
 * does not count as the answer of another request that was given up.
 */
static void
test_read_fails_in_the_middle(void **state)
{
	struct tai_rig *r = *state;
	const struct hca_tp_tai *tai = &r->h->ub->tp[1].tai;

	post(r, HCA_OP_RDMA_READ, 2048);
	data(r, 1, 0, 0, 2048, 1024, false);
	rig_expect(r, 0, HCA_UB_STATUS_REMOTE_RESPONSE_LENGTH);
	assert_int_equal(tai->open_out, 1);
	assert_int_equal(tai->abandoned, 1);
	data(r, 1, 0, 0, 1024, 1024, true);
	rig_expect_none(r);
	assert_int_equal(RIG_COUNTER(r, ub_rsp_abandoned), 1);
	rig_release_all(r);
	rig_check_quiet(r);
}

/* A response of the second segment whose place is in front of it. */
static void
test_read_in_front(void **state)
{
	struct tai_rig *r = *state;

	post(r, HCA_OP_RDMA_READ, 65536 + 1024);
	data(r, 2, 1, 0, 0, 1024, true);
	assert_int_equal(RIG_COUNTER(r, ub_rsp_bad_place), 1);
	assert_int_equal(r->mem[1], 0);
}

static void
test_atomic_of_another_length(void **state)
{
	struct tai_rig *r = *state;
	struct hca_ub_headers h = rig_response(HCA_UB_TA_ATOMIC_RESPONSE, r->qp, 0);

	post(r, HCA_OP_ATOMIC, 8);
	rig_answer(r, 1, &h, pattern, 16);
	rig_expect(r, 0, HCA_UB_STATUS_REMOTE_RESPONSE_LENGTH);
	post(r, HCA_OP_ATOMIC, 8);
	h = rig_response(HCA_UB_TA_ATOMIC_RESPONSE, r->qp, 1);
	rig_answer(r, 2, &h, NULL, 0);
	rig_expect(r, 1, HCA_UB_STATUS_REMOTE_RESPONSE_LENGTH);
}

/* Memory of this side that is gone fails the request, whose other packets are dropped. */
static void
test_key_is_gone(void **state)
{
	struct tai_rig *r = *state;

	post(r, HCA_OP_RDMA_READ, 2048);
	r->h->vtp.mpt[HCA_KEY_INDEX(RIG_KEY)].state = HCA_MPT_DYING;
	data(r, 1, 0, 0, 0, 1024, false);
	rig_expect(r, 0, HCA_UB_STATUS_LOCAL_ACCESS);
	data(r, 1, 0, 0, 1024, 1024, true);
	assert_int_equal(RIG_COUNTER(r, ub_rsp_scatter_error), 1);
	assert_int_equal(RIG_COUNTER(r, ub_rsp_abandoned), 1);
	rig_release_all(r);
	rig_check_quiet(r);
}

/* Random bytes in place of headers. */
static void
test_noise(void **state)
{
	struct tai_rig *r = *state;
	uint32_t seed = 1;

	post(r, HCA_OP_RDMA_READ, 2500);
	for (unsigned int i = 0; i < 20000; i++) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(r->pool);
		uint8_t *p = (uint8_t *)rte_pktmbuf_append(m, 128);
		void *obj = m;

		for (uint32_t b = 0; b < 128; b++)
			p[b] = (uint8_t)((seed = seed * 1103515245u + 12345u) >> 16);
		p[HCA_UB_RTPH_LEN] = (uint8_t)(HCA_UB_TA_TAACK + i % 3);
		p[HCA_UB_RTPH_LEN + 1] &= 0x04; /* version, Poison */
		*hca_ub_rxd(m) = (struct hca_ub_rxd){.tp = 1 + i % 2,
						     .generation = 7,
						     .end = (uint16_t)(24 + i % 26 * 4),
						     .opcode = HCA_UB_TP_RTP,
						     .ta = HCA_UB_RTPH_LEN,
						     .pad = (uint8_t)(i & 3),
						     .flags = HCA_UB_RXD_LAST};
		hca_tai_process(r->h, &obj, 1, r->now);
	}
	assert_int_equal(r->qp->tai.open, 1);
	rig_expect_none(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, rig_teardown)
		T(test_aggregated),
		T(test_read),
		T(test_read_of_nothing),
		T(test_atomic),
		T(test_refused),
		T(test_refused_in_the_middle),
		T(test_poisoned_response),
		T(test_wrong_queue),
		T(test_wrong_number),
		T(test_wrong_peer),
		T(test_wrong_kind),
		T(test_wrong_headers),
		T(test_stale),
		T(test_read_that_does_not_fit),
		T(test_read_part_twice),
		T(test_read_fails_in_the_middle),
		T(test_read_in_front),
		T(test_atomic_of_another_length),
		T(test_key_is_gone),
		T(test_noise),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
