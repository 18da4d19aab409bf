/* SPDX-License-Identifier: BSD-3-Clause */

/* Completions that are made from CQEs of the UB form. */

#include <errno.h>
#include <string.h>

#include "fake_urma.h"

static struct urma_rig r;

static int
setup(void **state)
{
	rig_open(&r);
	return 0;
}

static int
teardown(void **state)
{
	rig_close(&r);
	return 0;
}

static void
post(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND, .tjetty = r.peer, .user_ctx = 100 + i};

		assert_int_equal(urma_post_jetty_send_wr(r.jetty, &wr, NULL), URMA_SUCCESS);
	}
}

static struct hca_cqe_ub
send_cqe(uint32_t kind, uint32_t number, uint32_t wqe, uint8_t status)
{
	return (struct hca_cqe_ub){
		.local = hca_cpu_to_le32(HCA_CQE_UB_MAKE_LOCAL(kind, number)),
		.wqe = hca_cpu_to_le32(wqe),
		.bytes = hca_cpu_to_le32(64),
		.opcode = HCA_OP_SEND,
		.is_send = 1 | HCA_CQE_UB,
		.status = status,
	};
}

static const struct {
	uint8_t code;
	urma_cr_status_t status;
} statuses[] = {
	{HCA_UB_STATUS_OK, URMA_CR_SUCCESS},
	{HCA_UB_STATUS_UNSUPPORTED_OPCODE, URMA_CR_UNSUPPORTED_OPCODE_ERR},
	{HCA_UB_STATUS_LOCAL_LENGTH, URMA_CR_LOC_LEN_ERR},
	{HCA_UB_STATUS_LOCAL_ACCESS, URMA_CR_LOC_ACCESS_ERR},
	{HCA_UB_STATUS_REMOTE_RESPONSE_LENGTH, URMA_CR_REM_RESP_LEN_ERR},
	{HCA_UB_STATUS_LOCAL_POISON, URMA_CR_LOC_DATA_POISON},
	{HCA_UB_STATUS_REMOTE_UNSUPPORTED, URMA_CR_REM_UNSUPPORTED_REQ_ERR},
	{HCA_UB_STATUS_REMOTE_ACCESS, URMA_CR_REM_ACCESS_ABORT_ERR},
	{HCA_UB_STATUS_REMOTE_POISON, URMA_CR_REM_DATA_POISON},
	{HCA_UB_STATUS_RNR_EXC, URMA_CR_RNR_RETRY_CNT_EXC_ERR},
	{HCA_UB_STATUS_ACK_TIMEOUT, URMA_CR_ACK_TIMEOUT_ERR},
	{HCA_UB_STATUS_FLUSHED, URMA_CR_WR_FLUSH_ERR},
	{0x77, URMA_CR_WR_UNHANDLED},
};

static void
test_statuses(void **state)
{
	uint32_t n = sizeof(statuses) / sizeof(statuses[0]);
	urma_cr_t cr;

	for (uint32_t i = 0; i < n; i++) {
		struct hca_cqe_ub cqe =
			send_cqe(HCA_CQE_UB_JETTY, FAKE_JETTY, (i & 7) * 256, statuses[i].code);

		post(1);
		rig_complete(&r, i, &cqe);
		assert_int_equal(urma_poll_jfc(r.jfc, 1, &cr), 1);
		assert_int_equal(cr.status, statuses[i].status);
		assert_int_equal(cr.user_ctx, 100);
		assert_int_equal(cr.completion_len, 64);
		assert_int_equal(cr.local_id, FAKE_JETTY);
		assert_int_equal(cr.flag.value, 2);
		assert_ptr_equal(cr.user_data, r.jetty);
	}
}

/* Requests without a completion of their own end with the next one. */
static void
test_unsignalled(void **state)
{
	struct hca_cqe_ub cqe = send_cqe(HCA_CQE_UB_JETTY, FAKE_JETTY, 5 * 256, 0);
	urma_cr_t cr[4];

	post(8);
	rig_complete(&r, 0, &cqe);
	assert_int_equal(urma_poll_jfc(r.jfc, 4, cr), 1);
	assert_int_equal(cr[0].user_ctx, 105);
	assert_int_equal(rig_queue(&r)->tail, 6);
	post(6);
	assert_int_equal(urma_poll_jfc(r.jfc, 4, cr), 0);
}

/* The last completions of a queue are of no request; the remaining requests are flushed here. */
static void
test_flush_done(void **state)
{
	struct hca_cqe_ub cqe = send_cqe(HCA_CQE_UB_JETTY, FAKE_JETTY, 0, HCA_UB_STATUS_FLUSH_DONE);
	urma_cr_t cr[4];

	post(3);
	assert_int_equal(urma_flush_jetty(r.jetty, 4, cr), -1);
	rig_complete(&r, 0, &cqe);
	assert_int_equal(urma_poll_jfc(r.jfc, 4, cr), 1);
	assert_int_equal(cr[0].status, URMA_CR_WR_FLUSH_ERR_DONE);
	assert_int_equal(cr[0].user_ctx, 0);
	assert_int_equal(rig_queue(&r)->tail, 0);
	assert_int_equal(urma_flush_jetty(r.jetty, 2, cr), 2);
	assert_int_equal(cr[0].user_ctx, 100);
	assert_int_equal(cr[1].status, URMA_CR_WR_FLUSH_ERR);
	assert_int_equal(urma_flush_jetty(r.jetty, 4, cr), 1);
	assert_int_equal(cr[0].user_ctx, 102);
	assert_int_equal(urma_flush_jetty(r.jetty, 4, cr), 0);
}

static void
post_receive(uint64_t user_ctx)
{
	urma_sge_t sge = {(uintptr_t)r.memory, 64, r.local};
	urma_jfr_wr_t wr = {.src = {&sge, 1}, .user_ctx = user_ctx};

	assert_int_equal(urma_post_jetty_recv_wr(r.jetty, &wr, NULL), URMA_SUCCESS);
}

static struct hca_cqe_ub
recv_cqe(uint32_t kind, uint32_t number, uint32_t wqe, uint8_t opcode)
{
	return (struct hca_cqe_ub){
		.local = hca_cpu_to_le32(HCA_CQE_UB_MAKE_LOCAL(kind, number)),
		.wqe = hca_cpu_to_le32(wqe),
		.rc = hca_cpu_to_le32(0x54321),
		.tpn = hca_cpu_to_le32(0x0a0b2c),
		.imm = hca_cpu_to_le64(0x1122334455667788),
		.bytes = hca_cpu_to_le32(9),
		.opcode = opcode,
		.is_send = HCA_CQE_UB,
	};
}

/* The library asks once for each channel for the sender's address. */
static void
test_receive(void **state)
{
	static const struct {
		uint8_t opcode;
		urma_cr_opcode_t want;
	} cases[] = {{HCA_UB_TA_SEND, URMA_CR_OPC_SEND},
		     {HCA_UB_TA_SEND_IMM, URMA_CR_OPC_SEND_WITH_IMM},
		     {HCA_UB_TA_WRITE_IMM, URMA_CR_OPC_WRITE_WITH_IMM}};
	urma_cr_t cr;

	for (uint32_t i = 0; i < 3; i++) {
		struct hca_cqe_ub cqe =
			recv_cqe(HCA_CQE_UB_JETTY, FAKE_JETTY, i * 64, cases[i].opcode);

		post_receive(50 + i);
		rig_complete(&r, i, &cqe);
		assert_int_equal(urma_poll_jfc(r.jfc, 1, &cr), 1);
		assert_int_equal(cr.opcode, cases[i].want);
		assert_int_equal(cr.user_ctx, 50 + i);
		assert_int_equal(cr.flag.value, 3);
		assert_int_equal(cr.remote_id.id, 0x54321);
		assert_int_equal(cr.remote_id.eid.raw[15], 0x2c);
		assert_int_equal(cr.tpn, 0x0a0b2c);
		assert_int_equal(cr.completion_len, 9);
		assert_true(cr.imm_data == (i == 0 ? 0 : 0x1122334455667788));
	}
	assert_int_equal(fake_urma.eids, 1);
}

/* In the order in which messages become whole; a WQE is free when those before it are free. */
static void
test_receive_any_order(void **state)
{
	static const uint32_t order[] = {1, 2, 0, 3};
	static const uint32_t tails[] = {0, 0, 3, 4};
	const struct urma_rq *rq = &rig_queue(&r)->rq;
	urma_cr_t cr;

	for (uint32_t i = 0; i < 4; i++)
		post_receive(50 + i);
	for (uint32_t i = 0; i < 4; i++) {
		struct hca_cqe_ub cqe =
			recv_cqe(HCA_CQE_UB_JETTY, FAKE_JETTY, order[i] * 64, HCA_UB_TA_SEND);

		rig_complete(&r, i, &cqe);
		assert_int_equal(urma_poll_jfc(r.jfc, 1, &cr), 1);
		assert_int_equal(cr.user_ctx, 50 + order[i]);
		assert_int_equal(rq->tail, tails[i]);
	}
	for (uint32_t i = 0; i < 4; i++)
		post_receive(60 + i);
	assert_int_equal(rq->posted, 8);
}

static urma_jfr_t *
make_jfr(uint32_t depth)
{
	urma_jfr_cfg_t cfg = {.depth = depth, .jfc = r.jfc, .trans_mode = URMA_TM_RM};
	urma_jfr_t *jfr = urma_create_jfr(r.ctx, &cfg);

	assert_non_null(jfr);
	return jfr;
}

/* Receives of a JFR complete in any order, and are reused in that order. */
static void
test_jfr(void **state)
{
	urma_jfr_t *jfr = make_jfr(3);
	struct urma_rq *rq = &((struct urma_jfrq *)jfr)->rq;
	struct hca_cqe_ub cqe;
	urma_cr_t cr;

	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(urma_recv(jfr, r.local, (uintptr_t)r.memory, 64, i), URMA_SUCCESS);
	assert_int_equal(urma_recv(jfr, r.local, (uintptr_t)r.memory, 64, 9), URMA_ENOMEM);
	assert_int_equal(hca_le32_to_cpu(rq->record->producer), 3);
	assert_int_equal(hca_get_le32(rq->wq.buf), HCA_NEXT_MAKE_NDA_NOP(64, 0));
	cqe = recv_cqe(HCA_CQE_UB_JFR, FAKE_SRQN, 64, HCA_UB_TA_SEND);
	rig_complete(&r, 0, &cqe);
	assert_int_equal(urma_poll_jfc(r.jfc, 1, &cr), 1);
	assert_int_equal(cr.user_ctx, 1);
	assert_int_equal(cr.flag.value, 1);
	assert_int_equal(cr.local_id, HCA_TC_JFR | FAKE_SRQN);
	assert_int_equal(urma_recv(jfr, r.local, (uintptr_t)r.memory, 64, 8), URMA_SUCCESS);
	assert_int_equal(rq->wq.wr_id[3], 8);
	for (uint32_t i = 0; i < 2; i++) {
		cqe = recv_cqe(HCA_CQE_UB_JFR, FAKE_SRQN, i * 128, HCA_UB_TA_SEND);
		rig_complete(&r, 1 + i, &cqe);
		assert_int_equal(urma_poll_jfc(r.jfc, 1, &cr), 1);
		assert_int_equal(urma_recv(jfr, r.local, (uintptr_t)r.memory, 64, 20 + i),
				 URMA_SUCCESS);
		assert_int_equal(rq->wq.wr_id[1 - i], 20 + i); /* 1 was freed first, then 0 */
	}
	assert_int_equal(urma_delete_jfr(jfr), URMA_SUCCESS);
}

/* Of a queue that is gone, of another form, of no kind: skipped */
static void
test_skipped(void **state)
{
	struct hca_cqe_ub cqe[4] = {
		send_cqe(HCA_CQE_UB_JETTY, FAKE_JETTY + 1, 0, 0),
		send_cqe(HCA_CQE_UB_JFS, FAKE_JETTY, 0, 0),
		send_cqe(3, FAKE_JETTY, 0, 0),
		send_cqe(HCA_CQE_UB_JETTY, FAKE_JETTY, 0, 0),
	};
	urma_cr_t cr[8];

	cqe[3].is_send = 1;
	for (uint32_t i = 0; i < 4; i++)
		rig_complete(&r, i, &cqe[i]);
	assert_int_equal(urma_poll_jfc(r.jfc, 8, cr), 0);
	assert_int_equal(((struct lib_cq *)((struct urma_jfc_obj *)r.jfc)->cq)->consumer, 4);
}

/* Completions of a Jetty that is deleted are not those of the next with its number. */
static void
test_forgotten(void **state)
{
	urma_jfs_cfg_t cfg = {.depth = 4, .jfc = r.jfc, .trans_mode = URMA_TM_RM};
	struct hca_cqe_ub cqe = send_cqe(HCA_CQE_UB_JFS, FAKE_JETTY + 1, 0, 0);
	urma_jfs_t *jfs = urma_create_jfs(r.ctx, &cfg);
	urma_cr_t cr;

	rig_complete(&r, 0, &cqe);
	assert_int_equal(urma_delete_jfs(jfs), URMA_SUCCESS);
	fake_urma.next_jetty--;
	jfs = urma_create_jfs(r.ctx, &cfg);
	assert_int_equal(urma_poll_jfc(r.jfc, 1, &cr), 0);
	rig_complete(&r, 1, &cqe);
	assert_int_equal(urma_poll_jfc(r.jfc, 1, &cr), 1);
	assert_int_equal(urma_delete_jfs(jfs), URMA_SUCCESS);
}

/* Completions of one queue after another, well and badly, in one call: each is its own queue's. */
static void
test_queues_in_turn(void **state)
{
	urma_jfs_cfg_t cfg = {.depth = 4, .jfc = r.jfc, .trans_mode = URMA_TM_RM};
	urma_jfs_t *jfs = urma_create_jfs(r.ctx, &cfg);
	const struct {
		bool jfs;
		uint32_t wqe;
		uint8_t status;
	} t[] = {{false, 0, HCA_UB_STATUS_OK},
		 {false, 1, HCA_UB_STATUS_OK},
		 {true, 0, HCA_UB_STATUS_OK},
		 {false, 2, HCA_UB_STATUS_REMOTE_ACCESS},
		 {false, 3, HCA_UB_STATUS_OK}};
	urma_cr_t cr[5];

	post(4);
	for (uint32_t i = 0; i < 5; i++) {
		struct hca_cqe_ub cqe =
			send_cqe(t[i].jfs ? HCA_CQE_UB_JFS : HCA_CQE_UB_JETTY,
				 FAKE_JETTY + t[i].jfs, t[i].wqe * 256, t[i].status);

		rig_complete(&r, i, &cqe);
	}
	assert_int_equal(urma_poll_jfc(r.jfc, 5, cr), 5);
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(cr[i].status,
				 t[i].status == 0 ? URMA_CR_SUCCESS : URMA_CR_REM_ACCESS_ABORT_ERR);
		assert_int_equal(cr[i].local_id, FAKE_JETTY + t[i].jfs);
		assert_int_equal(cr[i].flag.bs.jetty, !t[i].jfs);
		assert_true(cr[i].user_data == (t[i].jfs ? (uintptr_t)jfs : (uintptr_t)r.jetty));
		if (!t[i].jfs)
			assert_int_equal(cr[i].user_ctx, 100 + t[i].wqe);
	}
	assert_int_equal(urma_delete_jfs(jfs), URMA_SUCCESS);
}

/* Receives of a JFS, which a device has invented, do not touch its requests. */
static void
test_invented_receives(void **state)
{
	urma_jfs_cfg_t cfg = {.depth = 4, .jfc = r.jfc, .trans_mode = URMA_TM_RM};
	urma_jfs_t *jfs = urma_create_jfs(r.ctx, &cfg);
	struct urma_queue *q = (struct urma_queue *)jfs, before = *q;
	struct hca_cqe_ub cqe = send_cqe(HCA_CQE_UB_JFS, FAKE_JETTY + 1, 0, HCA_UB_STATUS_OK);
	urma_cr_t cr[3];

	cqe.is_send = HCA_CQE_UB;
	cqe.opcode = HCA_UB_TA_SEND;
	for (uint32_t i = 0; i < 3; i++)
		rig_complete(&r, i, &cqe);
	assert_int_equal(urma_poll_jfc(r.jfc, 3, cr), 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(cr[i].flag.bs.s_r, 1);
		assert_int_equal(cr[i].user_ctx, 0);
	}
	assert_memory_equal(q, &before, sizeof(before));
	assert_int_equal(urma_delete_jfs(jfs), URMA_SUCCESS);
}

static void
test_dead(void **state)
{
	urma_cr_t cr;

	lib_ctx(r.lib)->dead = true;
	assert_int_equal(urma_poll_jfc(r.jfc, 1, &cr), -1);
	assert_int_equal(errno, EIO);
	lib_ctx(r.lib)->dead = false;
}

/* The addresses in front of an unreliable message are the library's; they name the sender. */
static void
test_unreliable(void **state)
{
	static const uint8_t from[16] = {[10] = 0xff, 0xff, 10, 0, 0, 7};
	urma_jfr_cfg_t receives = {.depth = 4, .jfc = r.jfc, .trans_mode = URMA_TM_UM};
	urma_jetty_cfg_t cfg = {.jfs_cfg = {.depth = 4, .jfc = r.jfc, .trans_mode = URMA_TM_UM},
				.jfr_cfg = &receives};
	urma_jetty_t *jetty;
	urma_sge_t sge = {(uintptr_t)r.memory, 64, r.local};
	urma_jfr_wr_t wr = {.src = {&sge, 1}, .user_ctx = 5};
	const struct hca_data_unit *u;
	struct urma_queue *q;
	struct hca_cqe_ub cqe;
	uint8_t *head;
	urma_cr_t cr;

	receives.trans_mode = URMA_TM_RM;
	assert_true(urma_create_jetty(r.ctx, &cfg) == NULL && errno == EINVAL);
	receives.trans_mode = URMA_TM_UM;
	jetty = urma_create_jetty(r.ctx, &cfg);
	assert_non_null(jetty);
	q = (struct urma_queue *)jetty;
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(urma_post_jetty_recv_wr(jetty, &wr, NULL), URMA_SUCCESS);
	u = (const void *)(q->rq.wq.buf + (1u << q->rq.wq.log_stride) + 16);
	assert_int_equal(hca_le32_to_cpu(u[0].byte_cnt), 40);
	head = (uint8_t *)(uintptr_t)hca_le64_to_cpu(u[0].addr);
	assert_true(hca_le64_to_cpu(u[1].addr) == (uintptr_t)r.memory);
	head[20] = 0x45;
	memcpy(head + 32, from + 12, 4);
	cqe = recv_cqe(HCA_CQE_UB_JETTY, q->number, 1u << q->rq.wq.log_stride, HCA_UB_TA_SEND);
	cqe.bytes = hca_cpu_to_le32(40 + 12);
	cqe.tpn = 0;
	rig_complete(&r, 0, &cqe);
	assert_int_equal(urma_poll_jfc(r.jfc, 1, &cr), 1);
	assert_int_equal(cr.status, URMA_CR_SUCCESS);
	assert_int_equal(cr.completion_len, 12);
	assert_memory_equal(cr.remote_id.eid.raw, from, 16);
	/* one that came by a channel has none */
	cqe.tpn = hca_cpu_to_le32(0x123);
	cqe.wqe = hca_cpu_to_le32(2u << q->rq.wq.log_stride);
	rig_complete(&r, 1, &cqe);
	assert_int_equal(urma_poll_jfc(r.jfc, 1, &cr), 1);
	assert_int_equal(cr.status, URMA_CR_LOC_LEN_ERR);
	assert_int_equal(urma_delete_jetty(jetty), URMA_SUCCESS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_statuses),	   TEST(test_unsignalled),	 TEST(test_flush_done),
		TEST(test_receive),	   TEST(test_receive_any_order), TEST(test_jfr),
		TEST(test_unreliable),	   TEST(test_skipped),		 TEST(test_forgotten),
		TEST(test_queues_in_turn), TEST(test_invented_receives), TEST(test_dead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
