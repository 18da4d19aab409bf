/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Lists of work requests with a bad one among good ones: those before it are posted and announced,
 * it is named, those after it are not posted. Each kind of error is a row.
 */

#include <errno.h>
#include <string.h>

#include "lib_rig.h"

const struct rig_wanted rig_wanted = {
	.cap =
		{
			.max_send_wr = 16,
			.max_recv_wr = 16,
			.max_send_sge = 4,
			.max_recv_sge = 2,
			.max_inline_data = 32,
		},
	.cqe = 64,
	.state = SOFTHCA_QPS_RTS,
};

/* SGEs of a length that several of them exceed together, or one alone */
static struct softhca_sge small[4] = {{0x1000, 8, 1},
				      {0x1000, 8, 1},
				      {0x1000, 8, 1},
				      {0x1000, 8, 1}};
static struct softhca_sge huge = {0x1000, 0x80000000u, 1};
static struct softhca_sge wide[2] = {{0x1000, 0x7fffffff, 1}, {0x1000, 2, 1}};

#define GOOD 2u /* requests before the bad one; one is after it */

/* Post GOOD good requests, bad and another good one: check the posted ones and the named one. */
static void
post_with_bad(struct softhca_qp *pub, struct softhca_send_wr good, struct softhca_send_wr bad,
	      int expect, const char *why)
{
	struct lib_qp *qp = (struct lib_qp *)pub;
	struct softhca_send_wr wr[GOOD + 2] = {good, good, bad, good}, *named = NULL;
	uint32_t head = qp->sq.head;
	const struct hca_next_unit *last;

	for (uint32_t i = 0; i <= GOOD; i++)
		wr[i].next = &wr[i + 1];
	assert_int_equal(softhca_post_send(pub, wr, &named), expect);
	if (strstr(softhca_last_error(ctx), why) == NULL)
		fail_msg("\"%s\" instead of \"%s\"", softhca_last_error(ctx), why);
	assert_ptr_equal(named, &wr[GOOD]);
	assert_int_equal(qp->sq.head, head + GOOD);
	assert_int_not_equal(fake_take_doorbell(fake), 0);
	assert_int_equal(fake_take_doorbell(fake), 0);
	/* the chain ends before the bad one */
	last = (const void *)(qp->sq.buf +
			      ((size_t)((head + 1) & qp->sq.mask) << qp->sq.log_stride));
	assert_int_equal(last->nda_nop, 0);
	/* alone it is not posted, and nothing is announced */
	named = NULL;
	assert_int_equal(softhca_post_send(pub, &wr[GOOD], &named), expect);
	assert_ptr_equal(named, &wr[GOOD]);
	assert_int_equal(qp->sq.head, head + GOOD);
	assert_int_equal(fake_take_doorbell(fake), 0);
	/* the rest can be posted */
	assert_int_equal(softhca_post_send(pub, &wr[GOOD + 1], &named), 0);
	assert_int_equal(qp->sq.head, head + GOOD + 1);
	assert_int_not_equal(fake_take_doorbell(fake), 0);
	qp->sq_polled.tail = qp->sq.head;
}

static void
test_send_lists(void **state)
{
	const struct softhca_send_wr good = {
		.sg_list = small,
		.num_sge = 1,
		.opcode = SOFTHCA_WR_SEND,
	};
	const struct {
		struct softhca_send_wr wr;
		const char *why;
	} bad[] = {
		{{.opcode = SOFTHCA_WR_OPCODE_COUNT}, "unknown opcode"},
		{{.opcode = UINT32_MAX}, "unknown opcode"},
		{{.sg_list = small, .num_sge = 99, .opcode = SOFTHCA_WR_SEND}, "99 SGEs"},
		{{.sg_list = small, .num_sge = -1, .opcode = SOFTHCA_WR_SEND}, "-1 SGEs"},
		{{.sg_list = &huge, .num_sge = 1, .opcode = SOFTHCA_WR_SEND}, "SGE 0 is longer"},
		{{.sg_list = wide, .num_sge = 2, .opcode = SOFTHCA_WR_RDMA_WRITE},
		 "2147483649 bytes: at most 2^31"},
		{{.opcode = SOFTHCA_WR_SEND, .send_flags = 1u << 4}, "send flags"},
		{{.sg_list = small,
		  .num_sge = 4,
		  .opcode = SOFTHCA_WR_RDMA_READ,
		  .send_flags = SOFTHCA_SEND_INLINE},
		 "INLINE with a READ"},
		{{.sg_list = &huge,
		  .num_sge = 1,
		  .opcode = SOFTHCA_WR_SEND,
		  .send_flags = SOFTHCA_SEND_INLINE},
		 "bytes of inline data"},
		{{.num_sge = 1, .sg_list = small, .opcode = SOFTHCA_WR_LOCAL_INV}, "with a bind"},
		{{.opcode = SOFTHCA_WR_BIND_MW}, "softhca_alloc_mw"},
	};

	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		post_with_bad(q.qp, good, bad[i].wr, -EINVAL, bad[i].why);
}

/* An atomic with as many SGEs as the QP takes of others */
static void
test_atomic_in_list(void **state)
{
	const struct softhca_qp_cap six = {.max_send_wr = 8, .max_recv_wr = 1, .max_send_sge = 6};
	struct fake_qp other = fake_make_qp(ctx, &six, SOFTHCA_QPS_RTS, 65);
	struct softhca_sge sge[6] = {{0}};
	const struct softhca_send_wr good = {
		.sg_list = sge,
		.num_sge = 6,
		.opcode = SOFTHCA_WR_RDMA_READ,
	};
	struct softhca_send_wr bad = good;

	bad.opcode = SOFTHCA_WR_ATOMIC_FETCH_AND_ADD;
	post_with_bad(other.qp, good, bad, -EINVAL, "SGEs with an atomic");
	fake_drop_qp(&other);
}

/* Posted with an opcode that the service does not have, so that it completes with an error */
static void
post_to_fail(struct softhca_qp *pub, struct softhca_send_wr wr, uint32_t op)
{
	struct lib_qp *qp = (struct lib_qp *)pub;
	uint32_t index = qp->sq.head & qp->sq.mask;

	assert_int_equal(softhca_post_send(pub, &wr, NULL), 0);
	assert_int_equal(fake_take_doorbell(fake), HCA_DB_MAKE(index, 0, op, pub->qp_num, 1));
	qp->sq_polled.tail = qp->sq.head;
}

static uint32_t
last_remote_qpn(const struct softhca_qp *pub)
{
	const struct lib_qp *qp = (const struct lib_qp *)pub;
	uint32_t index = (qp->sq.head - 1) & qp->sq.mask;
	const uint8_t *wqe = qp->sq.buf + ((size_t)index << qp->sq.log_stride);

	return hca_le32_to_cpu(((const struct hca_ud_unit *)(wqe + HCA_WQE_UNIT))->dqpn);
}

static void
test_datagrams_in_list(void **state)
{
	const struct softhca_ah_attr to = {.port_num = 1};
	struct softhca_pd *foreign = softhca_alloc_pd(ctx);
	struct softhca_qp_init_attr attr = {
		.qp_type = SOFTHCA_QPT_UD,
		.cap = rig_wanted.cap,
		.send_cq = q.cq,
		.recv_cq = q.cq,
	};
	struct softhca_qp *ud = softhca_create_qp(q.pd, &attr);
	struct softhca_ah *ah = softhca_create_ah(q.pd, &to),
			  *other = softhca_create_ah(foreign, &to);
	struct softhca_send_wr good = {.opcode = SOFTHCA_WR_SEND, .wr.ud = {.ah = ah}}, bad = good;

	assert_non_null(ud);
	ud->state = SOFTHCA_QPS_RTS;
	bad.wr.ud.ah = NULL;
	post_with_bad(ud, good, bad, -EINVAL, "needs an address handle");
	bad.wr.ud.ah = other;
	post_to_fail(ud, bad, HCA_OP_LOCAL_INV);
	bad = good;
	bad.opcode = SOFTHCA_WR_RDMA_WRITE;
	bad.sg_list = small;
	bad.num_sge = 99;
	post_to_fail(ud, bad, HCA_OP_RDMA_WRITE);
	bad.opcode = SOFTHCA_WR_LOCAL_INV;
	post_with_bad(ud, good, bad, -EINVAL, "not for QPs of type");
	good.wr.ud.remote_qpn = 0xff000005;
	assert_int_equal(softhca_post_send(ud, &good, NULL), 0);
	assert_int_not_equal(fake_take_doorbell(fake), 0);
	assert_int_equal(last_remote_qpn(ud), 5);
	assert_int_equal(softhca_destroy_ah(ah), 0);
	assert_int_equal(softhca_destroy_ah(other), 0);
	assert_int_equal(softhca_dealloc_pd(foreign), 0);
	assert_int_equal(softhca_destroy_qp(ud), 0);
}

/* Errors that concern the whole list name its first request. */
static void
test_first_is_bad(void **state)
{
	struct softhca_send_wr wr[2] = {{.next = &wr[1], .opcode = SOFTHCA_WR_SEND},
					{.opcode = SOFTHCA_WR_SEND}};
	struct softhca_recv_wr rr[2] = {{.next = &rr[1]}, {0}};
	struct softhca_send_wr *bad_send = NULL;
	struct softhca_recv_wr *bad_recv = NULL;

	q.qp->state = SOFTHCA_QPS_RESET;
	assert_int_equal(softhca_post_send(q.qp, wr, &bad_send), -EINVAL);
	assert_int_equal(softhca_post_recv(q.qp, rr, &bad_recv), -EINVAL);
	assert_ptr_equal(bad_send, &wr[0]);
	assert_ptr_equal(bad_recv, &rr[0]);
	q.qp->state = SOFTHCA_QPS_RTS;
	lib_ctx(ctx)->dead = true;
	bad_send = NULL;
	bad_recv = NULL;
	assert_int_equal(softhca_post_send(q.qp, wr, &bad_send), -EIO);
	assert_int_equal(softhca_post_recv(q.qp, rr, &bad_recv), -EIO);
	assert_ptr_equal(bad_send, &wr[0]);
	assert_ptr_equal(bad_recv, &rr[0]);
	lib_ctx(ctx)->dead = false;
	assert_int_equal(fake_take_doorbell(fake), 0);
	assert_int_equal(((struct lib_qp *)q.qp)->rq_record->producer, 0);
}

/* A queue of receives: of a QP or shared */
struct receives {
	int (*post)(void *queue, struct softhca_recv_wr *wr, struct softhca_recv_wr **bad);
	void *queue;
	const uint32_t *producer;
	uint32_t room;
};

static int
post_recv(void *queue, struct softhca_recv_wr *wr, struct softhca_recv_wr **bad)
{
	return softhca_post_recv(queue, wr, bad);
}

static int
post_srq_recv(void *queue, struct softhca_recv_wr *wr, struct softhca_recv_wr **bad)
{
	return softhca_post_srq_recv(queue, wr, bad);
}

/* Each bad receive in the middle of good ones, then more than there is room for. */
static void
post_receives(const struct receives *r)
{
	const struct softhca_recv_wr good = {.sg_list = small, .num_sge = 1};
	const struct softhca_recv_wr bad[] = {
		{.sg_list = small, .num_sge = 99},
		{.sg_list = small, .num_sge = -1},
		{.sg_list = &huge, .num_sge = 1},
	};
	struct softhca_recv_wr many[32] = {{0}}, *named;
	uint32_t posted = 0;

	for (uint32_t i = 0; i < 3; i++) {
		struct softhca_recv_wr wr[GOOD + 2] = {good, good, bad[i], good};

		for (uint32_t k = 0; k <= GOOD; k++)
			wr[k].next = &wr[k + 1];
		named = NULL;
		assert_int_equal(r->post(r->queue, wr, &named), -EINVAL);
		assert_ptr_equal(named, &wr[GOOD]);
		posted += GOOD;
		assert_int_equal(*r->producer, posted);
		assert_int_equal(r->post(r->queue, wr + GOOD, &named), -EINVAL);
		assert_int_equal(*r->producer, posted);
		assert_int_equal(r->post(r->queue, wr + GOOD + 1, &named), 0);
		assert_int_equal(*r->producer, ++posted);
	}
	for (uint32_t i = 0; i < 31; i++)
		many[i].next = &many[i + 1];
	assert_int_equal(r->post(r->queue, many, &named), -ENOMEM);
	assert_ptr_equal(named, &many[r->room - posted]);
	assert_int_equal(*r->producer, r->room);
}

static void
test_receive_lists(void **state)
{
	const struct lib_qp *qp = (const struct lib_qp *)q.qp;
	const struct receives r = {post_recv, q.qp, &qp->rq_record->producer, 16};

	post_receives(&r);
}

static void
test_shared_receive_lists(void **state)
{
	struct softhca_srq_init_attr attr = {.attr = {.max_wr = 15, .max_sge = 2}};
	struct softhca_srq *srq = softhca_create_srq(q.pd, &attr);
	struct softhca_recv_wr wr = {0}, *named = NULL;
	struct receives r = {post_srq_recv, srq, NULL, attr.attr.max_wr};

	assert_non_null(srq);
	r.producer = &((struct lib_srq *)srq)->record->producer;
	post_receives(&r);
	lib_ctx(ctx)->dead = true;
	assert_int_equal(softhca_post_srq_recv(srq, &wr, &named), -EIO);
	assert_ptr_equal(named, &wr);
	lib_ctx(ctx)->dead = false;
	assert_int_equal(softhca_destroy_srq(srq), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_send_lists, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_atomic_in_list, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_datagrams_in_list, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_first_is_bad, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_receive_lists, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_shared_receive_lists, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
