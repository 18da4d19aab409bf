/* SPDX-License-Identifier: BSD-3-Clause */

/* post_send and post_recv: WQE bytes, doorbells, limits, bad_wr. */

#include <errno.h>
#include <string.h>

#include "lib_rig.h"

const struct rig_wanted rig_wanted = {
	.cap =
		{
			.max_send_wr = 8,
			.max_recv_wr = 4,
			.max_send_sge = 4,
			.max_recv_sge = 3,
			.max_inline_data = 32,
		},
	.cqe = 32,
	.state = SOFTHCA_QPS_RTS,
};

static struct lib_qp *
qp(void)
{
	return (struct lib_qp *)q.qp;
}

static uint8_t *
wqe(uint32_t index)
{
	return qp()->sq.buf + ((size_t)index << qp()->sq.log_stride);
}

static void
test_write_golden(void **state)
{
	static const uint8_t expect[48] = {
		0,    0,    0,	  0,	0,    0,    0,	  0,	0x08, 0,    0,	  0,
		0,    0,    0,	  0,	0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
		0xef, 0xbe, 0xad, 0xde, 0,    0,    0,	  0,	0x40, 0,    0,	  0,
		0x04, 0x03, 0x02, 0x01, 0x00, 0x10, 0x00, 0x00, 0x80, 0x7f, 0,	  0,
	};
	struct softhca_sge sge = {.addr = 0x7f8000001000, .length = 64, .lkey = 0x01020304};
	struct softhca_send_wr wr = {
		.wr_id = 7,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = SOFTHCA_WR_RDMA_WRITE,
		.send_flags = SOFTHCA_SEND_SIGNALED,
		.wr.rdma = {0x1122334455667788, 0xdeadbeef},
	};

	assert_int_equal(softhca_post_send(q.qp, &wr, NULL), 0);
	assert_memory_equal(wqe(0), expect, sizeof(expect));
	assert_int_equal(fake_take_doorbell(fake),
			 HCA_DB_MAKE(0, 0, HCA_OP_RDMA_WRITE, q.qp->qp_num, 3));
	assert_int_equal(fake_take_doorbell(fake), 0);
}

/* Flags of regions, which say nothing about a window */
#define NOT_OF_WINDOWS \
	(SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_MW_BIND | SOFTHCA_ACCESS_ON_DEMAND | \
	 SOFTHCA_ACCESS_HUGETLB | SOFTHCA_ACCESS_OPTIONAL_RANGE | SOFTHCA_ACCESS_KEEP_PRIVATE)

/* Next and bind unit; LOCAL_INV names a key. */
static void
test_local_golden(void **state)
{
	static const uint8_t expect[48] = {
		0,    0,    0,	  0,	0,    0,    0,	  0,	0x08, 0,    0,	  0,
		0,    0,    0,	  0,	0x06, 0,    0,	  0,	0x00, 0x09, 0,	  0,
		0x01, 0x09, 0,	  0,	0x04, 0x03, 0x02, 0x01, 0x88, 0x77, 0x66, 0x55,
		0x44, 0x33, 0x22, 0x11, 0x00, 0x10, 0,	  0,	0x01, 0,    0,	  0,
	};
	struct lib_mr mr = {.pub.lkey = 0x01020304, .pd = q.pd};
	struct lib_mw lib_mw = {.pub = {.rkey = 0x900, .type = SOFTHCA_MW_TYPE_2}, .pd = q.pd};
	struct softhca_mw *mw = &lib_mw.pub;
	struct softhca_send_wr inv = {.opcode = SOFTHCA_WR_LOCAL_INV,
				      .invalidate_rkey = 0x11223344};
	struct softhca_send_wr wr = {
		.next = &inv,
		.opcode = SOFTHCA_WR_BIND_MW,
		.send_flags = SOFTHCA_SEND_SIGNALED,
		/* the new tag alone: the window says the rest */
		.bind_mw = {mw,
			    0x77000001,
			    {&mr.pub, 0x1122334455667788, 0x100001000,
			     SOFTHCA_ACCESS_REMOTE_WRITE | SOFTHCA_ACCESS_REMOTE_READ |
				     NOT_OF_WINDOWS}},
	};
	struct softhca_mw_bind bind = {
		.wr_id = 5,
		.bind_info = {&mr.pub, 0x1122334455667788, 0x100001000, NOT_OF_WINDOWS},
	};
	const struct hca_next_unit *next;

	assert_int_equal(softhca_inc_rkey(0x9ff), 0x900);
	assert_int_equal(softhca_post_send(q.qp, &wr, NULL), 0);
	next = (const void *)wqe(0);
	/* the next WQE is linked */
	assert_int_equal(HCA_NEXT_NOP(hca_le32_to_cpu(next->nda_nop)), HCA_OP_LOCAL_INV);
	assert_int_equal(HCA_NEXT_NDS(hca_le32_to_cpu(next->nee_nds)), 1);
	assert_memory_equal(wqe(0) + 8, expect + 8, sizeof(expect) - 8);
	assert_int_equal(hca_get_le32(wqe(1) + 12), 0x11223344);
	assert_int_equal(fake_take_doorbell(fake),
			 HCA_DB_MAKE(0, 0, HCA_OP_BIND_MW, q.qp->qp_num, 3));
	assert_int_equal(mw->rkey, 0x901);
	/* type 1: the call changes the key, but only if it posts */
	assert_int_equal(softhca_bind_mw(q.qp, mw, &bind), -EINVAL);
	mw->type = SOFTHCA_MW_TYPE_1;
	assert_int_equal(softhca_post_send(q.qp, &wr, NULL), -EINVAL);
	assert_int_equal(mw->rkey, 0x901);
	assert_int_equal(softhca_bind_mw(q.qp, mw, &bind), 0);
	assert_int_equal(mw->rkey, 0x902);
	assert_int_equal(hca_get_le32(wqe(2) + 16), 0);
	assert_int_equal(hca_get_le32(wqe(2) + 20), 0x901);
	assert_int_equal(hca_get_le32(wqe(2) + 24), 0x902);
}

static void
test_chain(void **state)
{
	struct softhca_sge sge = {.addr = 0x1000, .length = 8, .lkey = 1};
	struct softhca_send_wr wr[3] = {
		{.next = &wr[1],
		 .sg_list = &sge,
		 .num_sge = 1,
		 .opcode = SOFTHCA_WR_SEND,
		 .send_flags = SOFTHCA_SEND_FENCE},
		{.next = &wr[2],
		 .sg_list = &sge,
		 .num_sge = 1,
		 .opcode = SOFTHCA_WR_ATOMIC_FETCH_AND_ADD,
		 .send_flags = SOFTHCA_SEND_FENCE,
		 .wr.atomic = {.remote_addr = 0x2000, .compare_add = 5, .rkey = 9}},
		{.opcode = SOFTHCA_WR_SEND_WITH_IMM,
		 .imm_data = 0x04030201,
		 .send_flags = SOFTHCA_SEND_SOLICITED | SOFTHCA_SEND_SIGNALED},
	};
	const struct hca_next_unit *next[3] = {(void *)wqe(0), (void *)wqe(1), (void *)wqe(2)};
	const struct hca_atomic_unit *atomic = (void *)(wqe(1) + 32);
	uint32_t stride = 1u << qp()->sq.log_stride;

	assert_int_equal(softhca_post_send(q.qp, wr, NULL), 0);
	assert_int_equal(fake_take_doorbell(fake), HCA_DB_MAKE(0, 1, HCA_OP_SEND, q.qp->qp_num, 2));
	assert_int_equal(fake_take_doorbell(fake), 0);
	assert_int_equal(next[0]->nda_nop, HCA_NEXT_MAKE_NDA_NOP(stride, HCA_OP_ATOMIC_FA));
	assert_int_equal(next[0]->nee_nds, HCA_NEXT_MAKE_NEE_NDS(1, 4));
	assert_int_equal(next[1]->nda_nop, HCA_NEXT_MAKE_NDA_NOP(2 * stride, HCA_OP_SEND_IMM));
	assert_int_equal(next[1]->nee_nds, HCA_NEXT_MAKE_NEE_NDS(0, 1));
	assert_int_equal(atomic->swap_add, 5);
	assert_int_equal(atomic->cmp, 0);
	assert_int_equal(next[2]->nda_nop, 0);
	assert_int_equal(next[2]->nee_nds, 0);
	assert_int_equal(next[2]->flags, HCA_WQE_FLAG_SIGNALED | HCA_WQE_FLAG_SOLICITED);
	assert_memory_equal(&next[2]->imm_data, "\1\2\3\4", 4);
}

static void
test_compare_and_swap(void **state)
{
	struct softhca_sge sge = {.addr = 0x1000, .length = 8, .lkey = 1};
	struct softhca_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = SOFTHCA_WR_ATOMIC_CMP_AND_SWP,
		.wr.atomic = {.remote_addr = 0x2000, .compare_add = 5, .swap = 6, .rkey = 9},
	};
	const struct hca_atomic_unit *atomic = (void *)(wqe(0) + 32);

	assert_int_equal(softhca_post_send(q.qp, &wr, NULL), 0);
	assert_int_equal(atomic->swap_add, 6);
	assert_int_equal(atomic->cmp, 5);
}

/* A WQE holds an atomic unit less of SGEs, whatever the QP takes of others. */
static void
test_atomic_sges(void **state)
{
	const struct softhca_qp_cap six = {.max_send_wr = 2,
					   .max_recv_wr = 1,
					   .max_send_sge = 6,
					   .max_recv_sge = 1};
	struct fake_qp other = fake_make_qp(ctx, &six, SOFTHCA_QPS_RTS, 33);
	struct lib_qp *lib = (struct lib_qp *)other.qp;
	struct softhca_sge sge[6] = {{0}};
	struct softhca_send_wr wr = {
		.sg_list = sge,
		.num_sge = 6,
		.opcode = SOFTHCA_WR_RDMA_READ,
	};
	uint8_t *second = lib->sq.buf + (1u << lib->sq.log_stride), before[16];

	memcpy(before, second, sizeof(before));
	assert_int_equal(1u << lib->sq.log_stride, (2 + 6) * HCA_WQE_UNIT);
	wr.opcode = SOFTHCA_WR_ATOMIC_FETCH_AND_ADD;
	assert_int_equal(softhca_post_send(other.qp, &wr, NULL), -EINVAL);
	assert_memory_equal(second, before, sizeof(before));
	assert_int_equal(lib->sq.head, 0);
	wr.num_sge = 5;
	assert_int_equal(softhca_post_send(other.qp, &wr, NULL), 0);
	assert_memory_equal(second, before, sizeof(before));
	fake_drop_qp(&other);
}

/* Next, remote address, 8 bytes: inline, whatever max_inline_data is, or of SGEs. */
static void
test_atomic_write_golden(void **state)
{
	static const uint8_t expect[48] = {
		0,    0,    0,	  0,	0,    0,    0,	  0,	0x08, 0,    0,	  0,	0, 0, 0, 0,
		0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0xef, 0xbe, 0xad, 0xde, 0, 0, 0, 0,
		0x08, 0,    0,	  0x80, 1,    2,    3,	  4,	5,    6,    7,	  8,	0, 0, 0, 0,
	};
	const uint8_t data[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	struct softhca_sge sge[2] = {{.addr = (uintptr_t)data, .length = 8},
				     {.addr = 0x2000, .length = 0, .lkey = 2}};
	struct softhca_send_wr wr = {
		.sg_list = sge,
		.num_sge = 1,
		.opcode = SOFTHCA_WR_ATOMIC_WRITE,
		.send_flags = SOFTHCA_SEND_SIGNALED | SOFTHCA_SEND_INLINE,
		.wr.rdma = {0x1122334455667788, 0xdeadbeef},
	};

	((struct lib_context *)ctx)->info.flags |= HCA_CAP_ATOMIC_WRITE;
	qp()->max_inline = 0;
	memset(wqe(0), 0, sizeof(expect));
	assert_int_equal(softhca_post_send(q.qp, &wr, NULL), 0);
	assert_memory_equal(wqe(0), expect, sizeof(expect));
	assert_int_equal(fake_take_doorbell(fake),
			 HCA_DB_MAKE(0, 0, HCA_OP_ATOMIC_WRITE, q.qp->qp_num, 3));
	wr.send_flags = SOFTHCA_SEND_FENCE;
	wr.num_sge = 2;
	assert_int_equal(softhca_post_send(q.qp, &wr, NULL), 0);
	assert_int_equal(fake_take_doorbell(fake),
			 HCA_DB_MAKE(1, 1, HCA_OP_ATOMIC_WRITE, q.qp->qp_num, 4));
	assert_memory_equal(wqe(1) + 16, expect + 16, 16);
	assert_int_equal(hca_get_le32(wqe(1) + 32), 8);
	assert_int_equal(hca_get_le32(wqe(1) + 48), 0);
}

static void
test_atomic_write_refused(void **state)
{
	struct softhca_sge sge = {.addr = 0x1000, .length = 8, .lkey = 1};
	struct softhca_send_wr good = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = SOFTHCA_WR_ATOMIC_WRITE};
	struct softhca_send_wr wr = good;

	((struct lib_context *)ctx)->info.flags &= ~(uint32_t)HCA_CAP_ATOMIC_WRITE;
	assert_int_equal(softhca_post_send(q.qp, &wr, NULL), -EOPNOTSUPP);
	((struct lib_context *)ctx)->info.flags |= HCA_CAP_ATOMIC_WRITE;
	sge.length = 7;
	assert_int_equal(softhca_post_send(q.qp, &wr, NULL), -EINVAL);
	sge.length = 16;
	assert_int_equal(softhca_post_send(q.qp, &wr, NULL), -EINVAL);
	wr.send_flags = SOFTHCA_SEND_INLINE;
	assert_int_equal(softhca_post_send(q.qp, &wr, NULL), -EINVAL);
	sge.length = 8;
	wr.num_sge = 0;
	assert_int_equal(softhca_post_send(q.qp, &wr, NULL), -EINVAL);
	wr = good;
	wr.num_sge = -1;
	assert_int_equal(softhca_post_send(q.qp, &wr, NULL), -EINVAL);
	wr.num_sge = (int)qp()->sq.max_sge + 1;
	assert_int_equal(softhca_post_send(q.qp, &wr, NULL), -EINVAL);
	wr = good;
	wr.send_flags = 0x100;
	assert_int_equal(softhca_post_send(q.qp, &wr, NULL), -EINVAL);
	/* numbers of verbs between that are no opcodes here */
	for (wr = good, wr.opcode = SOFTHCA_WR_SEND_WITH_INV + 1; wr.opcode < 15; wr.opcode++)
		assert_int_equal(softhca_post_send(q.qp, &wr, NULL), -EINVAL);
	assert_int_equal(fake_take_doorbell(fake), 0);
	assert_int_equal(softhca_post_send(q.qp, &good, NULL), 0);
}

/* Next, remote address, flush unit. */
static void
test_flush_golden(void **state)
{
	static const uint8_t expect[48] = {
		0,    0,    0,	  0,	0,    0,    0,	  0,	0x08, 0,    0,	  0,	0, 0, 0, 0,
		0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0xef, 0xbe, 0xad, 0xde, 0, 0, 0, 0,
		0x04, 0x03, 0x02, 0x01, 0x13, 0,    0,	  0,	0,    0,    0,	  0,	0, 0, 0, 0,
	};
	struct softhca_send_wr wr = {
		.opcode = SOFTHCA_WR_FLUSH,
		.send_flags = SOFTHCA_SEND_SIGNALED,
		.wr.flush = {0x1122334455667788, 0xdeadbeef, 0x01020304,
			     SOFTHCA_FLUSH_GLOBAL | SOFTHCA_FLUSH_PERSISTENT, SOFTHCA_FLUSH_MR},
	};

	((struct lib_context *)ctx)->info.flags |= HCA_CAP_FLUSH;
	assert_int_equal(softhca_post_send(q.qp, &wr, NULL), 0);
	assert_memory_equal(wqe(0), expect, sizeof(expect));
	assert_int_equal(fake_take_doorbell(fake),
			 HCA_DB_MAKE(0, 0, HCA_OP_FLUSH, q.qp->qp_num, 3));
}

static void
test_flush_refused(void **state)
{
	struct softhca_sge sge = {.addr = 0x1000, .length = 8, .lkey = 1};
	struct softhca_send_wr good = {.opcode = SOFTHCA_WR_FLUSH,
				       .wr.flush = {.type = SOFTHCA_FLUSH_GLOBAL}};
	struct softhca_send_wr wr = good;

	((struct lib_context *)ctx)->info.flags &= ~(uint32_t)HCA_CAP_FLUSH;
	assert_int_equal(softhca_post_send(q.qp, &wr, NULL), -EOPNOTSUPP);
	((struct lib_context *)ctx)->info.flags |= HCA_CAP_FLUSH;
	wr.wr.flush.type = 0;
	assert_int_equal(softhca_post_send(q.qp, &wr, NULL), -EINVAL);
	wr.wr.flush.type = 4;
	assert_int_equal(softhca_post_send(q.qp, &wr, NULL), -EINVAL);
	wr = good;
	wr.wr.flush.level = 2;
	assert_int_equal(softhca_post_send(q.qp, &wr, NULL), -EINVAL);
	wr = good;
	wr.wr.flush.length = 0x80000001;
	assert_int_equal(softhca_post_send(q.qp, &wr, NULL), -EINVAL);
	wr = good;
	wr.send_flags = SOFTHCA_SEND_INLINE;
	assert_int_equal(softhca_post_send(q.qp, &wr, NULL), -EINVAL);
	wr = good;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	assert_int_equal(softhca_post_send(q.qp, &wr, NULL), -EINVAL);
	assert_int_equal(fake_take_doorbell(fake), 0);
	assert_int_equal(softhca_post_send(q.qp, &good, NULL), 0);
}

static void
test_inline(void **state)
{
	char data[2][8] = {"abcdef", "ghij"};
	struct softhca_sge sge[2] = {
		{.addr = (uintptr_t)data[0], .length = 6},
		{.addr = (uintptr_t)data[1], .length = 4},
	};
	struct softhca_send_wr wr = {
		.sg_list = sge,
		.num_sge = 2,
		.opcode = SOFTHCA_WR_SEND,
		.send_flags = SOFTHCA_SEND_INLINE,
	};
	struct softhca_send_wr *bad = NULL;

	assert_int_equal(softhca_post_send(q.qp, &wr, NULL), 0);
	assert_int_equal(hca_get_le32(wqe(0) + 16), HCA_INLINE_FLAG | 10);
	assert_memory_equal(wqe(0) + 20, "abcdefghij", 10);
	assert_int_equal(fake_take_doorbell(fake), HCA_DB_MAKE(0, 0, HCA_OP_SEND, q.qp->qp_num, 2));

	sge[0].length = qp()->max_inline + 1;
	wr.num_sge = 1;
	assert_int_equal(softhca_post_send(q.qp, &wr, &bad), -EINVAL);
	assert_ptr_equal(bad, &wr);
	sge[0].length = 4;
	wr.opcode = SOFTHCA_WR_RDMA_READ;
	assert_int_equal(softhca_post_send(q.qp, &wr, &bad), -EINVAL);
	assert_int_equal(fake_take_doorbell(fake), 0);
}

/* Unknown flags might change the meaning of a request, so they are refused. */
static void
test_unknown_flags(void **state)
{
	struct softhca_sge sge = {.addr = 0x1000, .length = 8, .lkey = 1};
	struct softhca_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = SOFTHCA_WR_SEND};
	struct softhca_send_wr *bad;

	for (uint32_t bit = SOFTHCA_SEND_INLINE << 1; bit != 0; bit <<= 1) {
		for (uint32_t known = 0; known < 2 * SOFTHCA_SEND_INLINE; known++) {
			bad = NULL;
			wr.send_flags = bit | known;
			assert_int_equal(softhca_post_send(q.qp, &wr, &bad), -EINVAL);
			assert_ptr_equal(bad, &wr);
		}
	}
	assert_int_equal(fake_take_doorbell(fake), 0);
	assert_int_equal(qp()->sq.head, 0);
}

/* Valid requests before an invalid one are posted and announced; that one and the rest are not. */
static void
test_bad_in_the_middle(void **state)
{
	struct softhca_sge sge = {.addr = 0x1000, .length = 8, .lkey = 1};
	struct softhca_send_wr wr[3] = {
		{.next = &wr[1], .sg_list = &sge, .num_sge = 1, .opcode = SOFTHCA_WR_SEND},
		{.next = &wr[2], .opcode = 99},
		{.opcode = SOFTHCA_WR_SEND},
	};
	struct softhca_send_wr *bad = NULL;

	assert_int_equal(softhca_post_send(q.qp, wr, &bad), -EINVAL);
	assert_ptr_equal(bad, &wr[1]);
	assert_non_null(strstr(softhca_last_error(ctx), "opcode 99"));
	assert_int_equal(fake_take_doorbell(fake), HCA_DB_MAKE(0, 0, HCA_OP_SEND, q.qp->qp_num, 2));
	assert_int_equal(qp()->sq.head, 1);
	assert_int_equal(((struct hca_next_unit *)wqe(0))->nee_nds, 0);

	wr[0].num_sge = 999;
	assert_int_equal(softhca_post_send(q.qp, wr, &bad), -EINVAL);
	assert_ptr_equal(bad, &wr[0]);
	wr[0].num_sge = 1;
	sge.length = 0x80000000u;
	assert_int_equal(softhca_post_send(q.qp, wr, &bad), -EINVAL);
	assert_int_equal(fake_take_doorbell(fake), 0);
	assert_int_equal(qp()->sq.head, 1);
}

static void
test_send_overflow(void **state)
{
	struct softhca_send_wr wr[10];
	struct softhca_send_wr *bad = NULL;
	struct hca_cqe cqe = {.my_qpn = q.qp->qp_num, .is_send = 1, .opcode = HCA_OP_SEND};
	struct softhca_wc wc;

	memset(wr, 0, sizeof(wr));
	for (int i = 0; i < 10; i++) {
		wr[i].opcode = SOFTHCA_WR_SEND;
		wr[i].wr_id = (uint64_t)i;
		wr[i].next = i < 9 ? &wr[i + 1] : NULL;
	}
	assert_int_equal(softhca_post_send(q.qp, wr, &bad), -ENOMEM);
	assert_ptr_equal(bad, &wr[8]);
	assert_int_equal(softhca_post_send(q.qp, &wr[8], &bad), -ENOMEM);
	assert_ptr_equal(bad, &wr[8]);

	/*
	 * One completion, of the sixth request: the five unsignalled ones before it are also free.
	 */
	cqe.wqe = 5u << qp()->sq.log_stride;
	fake_complete(q.cq, 0, &cqe);
	assert_int_equal(softhca_poll_cq(q.cq, 4, &wc), 1);
	assert_int_equal(wc.wr_id, 5);
	assert_int_equal(qp()->sq_polled.tail, 6);
	assert_int_equal(softhca_post_send(q.qp, &wr[8], &bad), 0);
	assert_int_equal(qp()->sq.head, 10);
	fake_take_doorbell(fake);
	assert_int_equal(fake_take_doorbell(fake), HCA_DB_MAKE(0, 0, HCA_OP_SEND, q.qp->qp_num, 1));
}

/* Both queues full: their wr_id arrays and the QP do not overlap. */
static void
test_wr_ids_apart(void **state)
{
	struct lib_qp before;

	for (uint64_t i = 0; i < 8; i++) {
		struct softhca_send_wr send = {.wr_id = 100 + i, .opcode = SOFTHCA_WR_SEND};
		struct softhca_recv_wr recv = {.wr_id = 200 + i};

		assert_int_equal(softhca_post_send(q.qp, &send, NULL), 0);
		assert_int_equal(softhca_post_recv(q.qp, &recv, NULL), i < 4 ? 0 : -ENOMEM);
	}
	memcpy(&before, qp(), sizeof(before));
	for (uint32_t i = 0; i < 12; i++) {
		bool is_send = i < 8;
		uint32_t stride_log = is_send ? qp()->sq.log_stride : qp()->rq.log_stride;
		struct hca_cqe cqe = {.my_qpn = hca_cpu_to_le32(q.qp->qp_num),
				      .opcode = is_send ? HCA_OP_SEND : 0x04,
				      .wqe = hca_cpu_to_le32((i & 7) << stride_log),
				      .is_send = is_send};
		struct softhca_wc wc;

		fake_complete(q.cq, i, &cqe);
		assert_int_equal(softhca_poll_cq(q.cq, 1, &wc), 1);
		assert_int_equal(wc.wr_id, is_send ? 100 + i : 200 + i - 8);
	}
	assert_int_equal(qp()->sq_polled.tail, 8);
	assert_int_equal(qp()->rq_polled.tail, 4);
	/* polling has not written any cache line that posting uses */
	assert_memory_equal(&before, qp(), offsetof(struct lib_qp, sq_polled));
}

static void
test_states(void **state)
{
	static const int send_err[] = {-EINVAL, -EINVAL, -EINVAL, 0, 0, 0, 0};
	static const int recv_err[] = {-EINVAL, 0, 0, 0, 0, 0, 0};

	for (uint32_t s = SOFTHCA_QPS_RESET; s <= SOFTHCA_QPS_ERR; s++) {
		struct softhca_send_wr wr = {.opcode = SOFTHCA_WR_SEND};
		struct softhca_recv_wr rr = {0};

		q.qp->state = s;
		assert_int_equal(softhca_post_send(q.qp, &wr, NULL), send_err[s]);
		assert_int_equal(softhca_post_recv(q.qp, &rr, NULL), recv_err[s]);
		qp()->rq_polled.tail = qp()->rq.head;
	}
}

static void
test_recv(void **state)
{
	struct softhca_sge sge[3] = {
		{.addr = 0x1000, .length = 0, .lkey = 1},
		{.addr = 0x2000, .length = 100, .lkey = 2},
		{.addr = 0x3000, .length = 0, .lkey = 3},
	};
	struct softhca_recv_wr wr = {.wr_id = 1, .sg_list = sge, .num_sge = 3};
	struct hca_data_unit *unit = (void *)(qp()->rq.buf + 16);
	struct softhca_recv_wr *bad = NULL;

	memset(qp()->rq.buf, 0xee, 64);
	assert_int_equal(softhca_post_recv(q.qp, &wr, NULL), 0);
	assert_int_equal(unit[0].byte_cnt, 100);
	assert_int_equal(unit[0].lkey, 2);
	assert_int_equal(unit[0].addr, 0x2000);
	assert_int_equal(unit[1].byte_cnt, 0);
	assert_int_equal(unit[1].lkey, 0);
	assert_int_equal(qp()->rq_record->producer, 1);
	assert_int_equal(fake_take_doorbell(fake), 0);

	/* The device has requested a kick. */
	qp()->rq_record->notify = 1;
	assert_int_equal(softhca_post_recv(q.qp, &wr, NULL), 0);
	assert_int_equal(fake_take_doorbell(fake),
			 HCA_DB_MAKE(0, 0, HCA_DB_OPCODE_KICK, q.qp->qp_num, 0));
	qp()->rq_record->notify = 0;
	assert_int_equal(softhca_post_recv(q.qp, &wr, NULL), 0);
	assert_int_equal(softhca_post_recv(q.qp, &wr, NULL), 0);
	assert_int_equal(softhca_post_recv(q.qp, &wr, &bad), -ENOMEM);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(qp()->rq_record->producer, 4);
	wr.num_sge = 99;
	qp()->rq_polled.tail = qp()->rq.head;
	assert_int_equal(softhca_post_recv(q.qp, &wr, &bad), -EINVAL);
}

static void
test_queue_layout(void **state)
{
	assert_int_equal(fake->qp.sq_addr % 4096, 0);
	assert_int_equal(fake->qp.rq_addr % 4096, 0);
	assert_int_equal(1u << fake->qp.log_sq, 8);
	assert_int_equal(1u << fake->qp.log_rq, 4);
	assert_int_equal(fake->qp.log_sq_stride, 7); /* 2 + 4 units */
	assert_int_equal(fake->qp.log_rq_stride, 6);
	assert_ptr_equal(qp()->rq_record, qp()->rq.buf + 4 * 64);
}

/*
 * Requests that are added one by one become the WQEs of a list, and ring once; the program may
 * change each request after it is added.
 */
static void
test_batch(void **state)
{
	struct softhca_sge sge = {.addr = 0x1000, .length = 8, .lkey = 1};
	struct softhca_send_wr wr[2] = {
		{.next = &wr[1],
		 .wr_id = 4,
		 .sg_list = &sge,
		 .num_sge = 1,
		 .opcode = SOFTHCA_WR_SEND},
		{.wr_id = 5,
		 .sg_list = &sge,
		 .num_sge = 1,
		 .opcode = SOFTHCA_WR_RDMA_READ,
		 .send_flags = SOFTHCA_SEND_FENCE,
		 .wr.rdma = {0x2000, 9}},
	};
	struct softhca_send_wr copy;
	struct softhca_wr_batch batch;
	size_t stride = (size_t)1 << qp()->sq.log_stride;
	uint64_t bell;

	assert_int_equal(softhca_post_send(q.qp, wr, NULL), 0);
	bell = fake_take_doorbell(fake);
	softhca_wr_start(&batch, q.qp);
	for (int i = 0; i < 2; i++) {
		copy = wr[i];
		assert_int_equal(softhca_wr_add(&batch, &copy), 0);
		assert_int_equal(fake_take_doorbell(fake), 0);
		memset(&copy, 0xff, sizeof(copy));
	}
	assert_int_equal(softhca_wr_complete(&batch), 0);
	assert_int_equal(fake_take_doorbell(fake),
			 HCA_DB_MAKE(2, 0, HCA_OP_SEND, q.qp->qp_num, HCA_DB_SIZE0(bell)));
	assert_int_equal(fake_take_doorbell(fake), 0);
	/* but for the offset of the next WQE */
	assert_int_equal(hca_get_le32(wqe(2)) - 2 * stride, hca_get_le32(wqe(0)));
	assert_memory_equal(wqe(2) + 4, wqe(0) + 4, 28);
	assert_memory_equal(wqe(3), wqe(1), 48);
	assert_int_equal(qp()->sq.wr_id[3], 5);
	assert_int_equal(qp()->sq.head, 4);
}

/* After an error or an abort no request of a batch is posted; the next batch is as the first. */
static void
test_batch_refused(void **state)
{
	struct softhca_send_wr good = {.opcode = SOFTHCA_WR_SEND};
	struct softhca_send_wr bad = {.opcode = SOFTHCA_WR_OPCODE_COUNT};
	struct softhca_wr_batch batch;

	softhca_wr_start(&batch, q.qp);
	assert_int_equal(softhca_wr_add(&batch, &good), 0);
	assert_int_equal(softhca_wr_add(&batch, &bad), -EINVAL);
	assert_int_equal(softhca_wr_add(&batch, &good), -EINVAL);
	assert_int_equal(softhca_wr_complete(&batch), -EINVAL);
	softhca_wr_start(&batch, q.qp);
	assert_int_equal(softhca_wr_add(&batch, &good), 0);
	softhca_wr_abort(&batch);
	softhca_wr_start(&batch, q.qp);
	assert_int_equal(softhca_wr_complete(&batch), 0);
	assert_int_equal(qp()->sq.head, 0);
	assert_int_equal(fake_take_doorbell(fake), 0);

	softhca_wr_start(&batch, q.qp);
	for (int i = 0; i < 8; i++)
		assert_int_equal(softhca_wr_add(&batch, &good), 0);
	assert_int_equal(softhca_wr_add(&batch, &good), -ENOMEM);
	assert_int_equal(softhca_wr_complete(&batch), -ENOMEM);
	assert_int_equal(qp()->sq.head, 0);
	assert_int_equal(fake_take_doorbell(fake), 0);

	q.qp->state = SOFTHCA_QPS_INIT;
	softhca_wr_start(&batch, q.qp);
	assert_int_equal(softhca_wr_add(&batch, &good), -EINVAL);
	assert_int_equal(softhca_wr_complete(&batch), -EINVAL);
	q.qp->state = SOFTHCA_QPS_RTS;
	assert_int_equal(softhca_post_send(q.qp, &good, NULL), 0);
	assert_int_equal(HCA_DB_OPCODE(fake_take_doorbell(fake)), HCA_OP_SEND);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_write_golden, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_local_golden, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_chain, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_compare_and_swap, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_atomic_sges, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_atomic_write_golden, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_atomic_write_refused, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_flush_golden, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_flush_refused, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_inline, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_unknown_flags, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_bad_in_the_middle, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_send_overflow, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_wr_ids_apart, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_batch, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_batch_refused, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_states, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_recv, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_queue_layout, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
