/* SPDX-License-Identifier: BSD-3-Clause */

/* start_poll, next_poll, end_poll, and the functions that read the completion they give. */

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "abi_roce.h"
#include "lib_rig.h"

const struct rig_wanted rig_wanted = {
	.cap =
		{
			.max_send_wr = 4,
			.max_recv_wr = 4,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
	.cqe = 4,
	.state = SOFTHCA_QPS_RTS,
};

static struct lib_cq *
cq(void)
{
	return (struct lib_cq *)q.cq;
}

static struct hca_cqe
sent(uint32_t qpn)
{
	return (struct hca_cqe){.my_qpn = qpn, .is_send = 1, .opcode = HCA_OP_SEND};
}

/* The next two CQEs are the same: poll_cq takes the first, the second is read field by field. */
static void
assert_reads_the_same(uint32_t n, const struct hca_cqe *cqe)
{
	struct softhca_wc wc;

	fake_complete(q.cq, n, cqe);
	assert_int_equal(softhca_poll_cq(q.cq, 1, &wc), 1);
	fake_complete(q.cq, n + 1, cqe);
	assert_int_equal(softhca_start_poll(q.cq), 0);
	assert_int_equal(q.cq->wr_id, wc.wr_id);
	assert_int_equal(q.cq->status, wc.status);
	assert_int_equal(softhca_wc_read_opcode(q.cq), wc.opcode);
	assert_int_equal(softhca_wc_read_vendor_err(q.cq), wc.vendor_err);
	assert_int_equal(softhca_wc_read_byte_len(q.cq), wc.byte_len);
	if ((wc.wc_flags & (SOFTHCA_WC_WITH_IMM | SOFTHCA_WC_WITH_INV)) != 0)
		assert_int_equal(softhca_wc_read_imm_data(q.cq), wc.imm_data);
	else
		assert_int_equal(softhca_wc_read_imm_data(q.cq), 0);
	assert_int_equal(softhca_wc_read_qp_num(q.cq), wc.qp_num);
	assert_int_equal(softhca_wc_read_src_qp(q.cq), wc.src_qp);
	assert_int_equal(softhca_wc_read_wc_flags(q.cq), wc.wc_flags);
	assert_int_equal(softhca_wc_read_pkey_index(q.cq), wc.pkey_index);
	assert_int_equal(softhca_wc_read_slid(q.cq), wc.slid);
	assert_int_equal(softhca_wc_read_sl(q.cq), wc.sl);
	assert_int_equal(softhca_wc_read_dlid_path_bits(q.cq), wc.dlid_path_bits);
	assert_int_equal(softhca_wc_read_network(q.cq),
			 HCA_CQE_NETWORK(hca_le32_to_cpu(cqe->flags)));
	softhca_end_poll(q.cq);
}

static void
test_every_opcode(void **state)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < 4; i++) {
		((struct lib_qp *)q.qp)->sq_polled.wr_id[i] = 100 + i;
		((struct lib_qp *)q.qp)->rq_polled.wr_id[i] = 200 + i;
	}
	for (uint32_t opcode = 0; opcode < 256; opcode++) {
		for (uint8_t is_send = 0; is_send < 2; is_send++, n += 2) {
			struct hca_cqe cqe = {
				.my_qpn = q.qp->qp_num,
				.rqpn = 0x123456,
				.flags = HCA_CQE_MAKE_FLAGS(3, opcode & 1, opcode & 3, 2),
				.byte_cnt = 300 + opcode,
				.wqe = opcode % 4 * 64,
				.opcode = (uint8_t)opcode,
				.is_send = is_send,
			};

			memcpy(&cqe.imm, "\1\2\3\4", 4);
			if (opcode >= HCA_CQE_OP_ERR_RECV) {
				cqe.flags = 0;
				cqe.imm = HCA_SYND_REMOTE_ACCESS | 0x700;
			}
			assert_reads_the_same(n, &cqe);
		}
	}
}

static void
test_one_after_another(void **state)
{
	struct hca_cqe cqe = sent(q.qp->qp_num), stray = sent(q.qp->qp_num ^ 1u << 20);
	struct softhca_send_wr wr[2] = {
		{.wr_id = 7, .next = &wr[1], .opcode = SOFTHCA_WR_SEND},
		{.wr_id = 8, .opcode = SOFTHCA_WR_SEND},
	};
	const struct hca_cqe *ring = cq()->ring;

	assert_int_equal(softhca_post_send(q.qp, wr, NULL), 0);
	fake_complete(q.cq, 0, &stray);
	fake_complete(q.cq, 1, &cqe);
	fake_complete(q.cq, 2, &stray);
	cqe.wqe = 64;
	fake_complete(q.cq, 3, &cqe);
	assert_int_equal(softhca_start_poll(q.cq), 0);
	assert_int_equal(q.cq->wr_id, 7);
	assert_int_equal(ring[0].owner, HCA_OWNER_HW);
	assert_int_equal(ring[1].owner, HCA_OWNER_SW); /* it is being read */
	assert_int_equal(cq()->record->consumer, 1);
	assert_int_equal(softhca_next_poll(q.cq), 0);
	assert_int_equal(q.cq->wr_id, 8);
	assert_int_equal(ring[2].owner, HCA_OWNER_HW);
	assert_int_equal(ring[3].owner, HCA_OWNER_SW);
	assert_int_equal(cq()->record->consumer, 3);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(softhca_next_poll(q.cq), -ENOENT);
	assert_int_equal(ring[3].owner, HCA_OWNER_HW);
	assert_int_equal(cq()->record->consumer, 4);
	assert_int_equal(softhca_wc_read_qp_num(q.cq), 0);
	softhca_end_poll(q.cq);
	assert_int_equal(cq()->record->consumer, 4);
}

/* Completions that arrive meanwhile are also given; end_poll consumes all that were given. */
static void
test_arrives_meanwhile(void **state)
{
	struct hca_cqe cqe = sent(q.qp->qp_num);
	struct softhca_wc wc;

	fake_complete(q.cq, 0, &cqe);
	assert_int_equal(softhca_start_poll(q.cq), 0);
	for (uint32_t n = 1; n < 10; n++) {
		fake_complete(q.cq, n, &cqe);
		assert_int_equal(softhca_next_poll(q.cq), 0);
	}
	fake_complete(q.cq, 10, &cqe);
	softhca_end_poll(q.cq);
	assert_int_equal(cq()->record->consumer, 10);
	assert_int_equal(softhca_poll_cq(q.cq, 1, &wc), 1);
	assert_int_equal(softhca_poll_cq(q.cq, 1, &wc), 0);
}

static void
test_empty(void **state)
{
	struct hca_cqe stray = sent(0);

	assert_int_equal(softhca_start_poll(q.cq), -ENOENT);
	fake_complete(q.cq, 0, &stray);
	assert_int_equal(softhca_start_poll(q.cq), -ENOENT);
	assert_int_equal(cq()->record->consumer, 1);
	assert_int_equal(cq()->lock.taken, 0);
	lib_ctx(ctx)->dead = true;
	assert_int_equal(softhca_start_poll(q.cq), -EIO);
	lib_ctx(ctx)->dead = false;
}

static void
test_wrong_order(void **state)
{
	struct hca_cqe cqe = sent(q.qp->qp_num);

	assert_int_equal(softhca_next_poll(q.cq), -EINVAL);
	softhca_end_poll(q.cq);
	assert_int_equal(softhca_wc_read_opcode(q.cq), SOFTHCA_WC_SEND);
	assert_int_equal(softhca_wc_read_byte_len(q.cq), 0);
	fake_complete(q.cq, 0, &cqe);
	assert_int_equal(softhca_start_poll(q.cq), 0);
	assert_int_equal(softhca_start_poll(q.cq), -EBUSY);
	softhca_end_poll(q.cq);
	softhca_end_poll(q.cq);
	assert_int_equal(cq()->record->consumer, 1);
}

static void *
poll_one(void *arg)
{
	struct softhca_wc wc;

	*(int *)arg = softhca_next_poll(q.cq); /* of another thread's */
	while (softhca_poll_cq(q.cq, 1, &wc) == 0)
		;
	return NULL;
}

/* Another thread takes nothing until end_poll. */
static void
test_has_the_cq_alone(void **state)
{
	struct hca_cqe cqe = sent(q.qp->qp_num);
	pthread_t other;
	int next = 0;

	fake_complete(q.cq, 0, &cqe);
	fake_complete(q.cq, 1, &cqe);
	assert_int_equal(softhca_start_poll(q.cq), 0);
	assert_int_equal(cq()->lock.taken, 1);
	assert_int_equal(pthread_create(&other, NULL, poll_one, &next), 0);
	usleep(20000);
	assert_int_equal(cq()->record->consumer, 0);
	softhca_end_poll(q.cq);
	pthread_join(other, NULL);
	assert_int_equal(next, -EINVAL);
	assert_int_equal(cq()->record->consumer, 2);
	assert_int_equal(cq()->lock.taken, 0);
}

/* The thread that reads may arm and post; without locks, it holds no lock. */
static void
test_arms_meanwhile(void **state)
{
	struct softhca_comp_channel *channel = softhca_create_comp_channel(ctx);
	struct softhca_cq_init_attr attr = {.cqe = 4, .channel = channel};
	struct hca_cqe cqe = sent(q.qp->qp_num);

	for (uint32_t i = 0; i < 2; i++) {
		struct softhca_cq *armed = softhca_create_cq(ctx, &attr);
		struct softhca_recv_wr wr = {.wr_id = 1};

		assert_non_null(armed);
		fake_complete(armed, 0, &cqe);
		assert_int_equal(softhca_start_poll(armed), 0);
		assert_int_equal(((struct lib_cq *)armed)->lock.taken, i == 0);
		assert_int_equal(softhca_req_notify_cq(armed, 0), 0);
		assert_int_equal(softhca_post_recv(q.qp, &wr, NULL), 0);
		assert_int_equal(((struct lib_cq *)armed)->lock.taken, i == 0);
		softhca_end_poll(armed);
		assert_int_equal(softhca_req_notify_cq(armed, 0), 0);
		assert_int_equal(((struct lib_cq *)armed)->lock.taken, 0);
		assert_int_equal(softhca_destroy_cq(armed), 0);
		attr.flags = SOFTHCA_SINGLE_THREADED;
	}
	assert_int_equal(softhca_destroy_comp_channel(channel), 0);
}

/* Calls that would wait for this reader are refused; the QP may be reset or destroyed. */
static void
test_changes_meanwhile(void **state)
{
	struct softhca_qp_attr attr = {.qp_state = SOFTHCA_QPS_RESET};
	struct hca_cqe cqe = sent(q.qp->qp_num);
	struct softhca_cq_init_attr init = {.cqe = 4};
	struct softhca_cq *other = softhca_create_cq(ctx, &init);
	struct softhca_wc wc;

	assert_non_null(other);
	fake_complete(other, 0, &cqe);
	assert_int_equal(softhca_start_poll(other), 0);
	assert_int_equal(softhca_poll_cq(other, 1, &wc), -EBUSY);
	assert_int_equal(softhca_resize_cq(other, 8), -EBUSY);
	assert_int_equal(softhca_destroy_cq(other), -EBUSY);
	softhca_end_poll(other);
	assert_int_equal(softhca_destroy_cq(other), 0);
	fake_complete(q.cq, 0, &cqe);
	fake_complete(q.cq, 1, &cqe);
	assert_int_equal(softhca_start_poll(q.cq), 0);
	assert_int_equal(softhca_modify_qp(q.qp, &attr, SOFTHCA_QP_STATE), 0);
	assert_int_equal(cq()->lock.taken, 1);
	assert_int_equal(softhca_next_poll(q.cq), -ENOENT);
	softhca_end_poll(q.cq);
	assert_int_equal(cq()->lock.taken, 0);
	assert_int_equal(cq()->record->consumer, 2);
}

static void *
destroy_srq(void *srq)
{
	return (void *)(intptr_t)softhca_destroy_srq(srq);
}

static void *
destroy_qp(void *qp)
{
	return (void *)(intptr_t)softhca_destroy_qp(qp);
}

/* A thread that waits for the reader; until end_poll it is not done, whatever the reader calls. */
static pthread_t
begin(void *(*call)(void *arg), void *arg)
{
	pthread_t waits;

	assert_int_equal(pthread_create(&waits, NULL, call, arg), 0);
	usleep(20000);
	return waits;
}

static void
finish(pthread_t waits)
{
	void *result;

	assert_int_equal(pthread_tryjoin_np(waits, &result), EBUSY);
	softhca_end_poll(q.cq);
	assert_int_equal(pthread_join(waits, &result), 0);
	assert_null(result);
}

static void
test_srq_ends_meanwhile(void **state)
{
	struct softhca_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct softhca_cq_init_attr init = {.cqe = 4};
	struct softhca_srq *srq = softhca_create_srq(q.pd, &attr);
	struct hca_cqe cqe = sent(q.qp->qp_num);
	struct softhca_cq *other;
	pthread_t waits;

	assert_non_null(srq);
	fake_complete(q.cq, 0, &cqe);
	assert_int_equal(softhca_start_poll(q.cq), 0);
	waits = begin(destroy_srq, srq);
	other = softhca_create_cq(ctx, &init);
	assert_non_null(other);
	finish(waits);
	assert_int_equal(softhca_destroy_cq(other), 0);
	srq = softhca_create_srq(q.pd, &attr);
	fake_complete(q.cq, 1, &cqe);
	assert_int_equal(softhca_start_poll(q.cq), 0);
	assert_int_equal(softhca_destroy_srq(srq), 0); /* not by this thread itself */
	softhca_end_poll(q.cq);
}

/* A QP with two CQs is destroyed while one is read: the reader may poll the other. */
static void
test_qp_of_two_ends_meanwhile(void **state)
{
	struct softhca_cq_init_attr init = {.cqe = 4};
	struct hca_cqe cqe = sent(q.qp->qp_num);

	for (uint32_t i = 0; i < 2; i++) {
		struct softhca_cq *other = softhca_create_cq(ctx, &init);
		struct softhca_qp_init_attr attr = {
			.qp_type = SOFTHCA_QPT_RC,
			.cap = rig_wanted.cap,
			.send_cq = i == 0 ? other : q.cq,
			.recv_cq = i == 0 ? q.cq : other,
		};
		struct softhca_qp *qp = softhca_create_qp(q.pd, &attr);
		struct softhca_wc wc;
		pthread_t waits;

		assert_non_null(qp);
		fake_complete(q.cq, i, &cqe);
		assert_int_equal(softhca_start_poll(q.cq), 0);
		waits = begin(destroy_qp, qp);
		assert_int_equal(softhca_poll_cq(other, 1, &wc), 0);
		finish(waits);
		assert_int_equal(softhca_destroy_cq(other), 0);
	}
}

static void
complete_once(struct fake_ctl *f)
{
	struct hca_cqe cqe = sent(q.qp->qp_num);

	f->on_progress = NULL;
	fake_complete(q.cq, 0, &cqe);
}

static void
test_manual_progress(void **state)
{
	struct softhca_context *manual;
	struct fake_ctl *f = fake_open(&manual, true);
	struct fake_qp saved = q;

	q = fake_make_qp(manual, &rig_wanted.cap, SOFTHCA_QPS_RTS, 4);
	f->on_progress = complete_once;
	assert_int_equal(softhca_start_poll(q.cq), 0);
	assert_int_equal(f->progressed, 1);
	assert_int_equal(softhca_wc_read_qp_num(q.cq), q.qp->qp_num);
	softhca_end_poll(q.cq);
	assert_int_equal(softhca_start_poll(q.cq), -ENOENT);
	assert_int_equal(f->progressed, 2);
	fake_drop_qp(&q);
	fake_close(f, manual);
	q = saved;
}

/* Fields that completions do not have are refused at creation; only a clock makes them larger. */
static void
test_fields(void **state)
{
	const uint64_t small = 0x7f, large = 1 << 7 | 1 << 8 | 1 << 11;
	struct softhca_cq_init_attr attr = {.cqe = 1};

	for (uint32_t n = 0; n < 128; n++) {
		uint64_t flag = UINT64_C(1) << n % 64;
		struct softhca_cq *made;

		lib_ctx(ctx)->info.flags = n < 64 ? 0 : HCA_CAP_CQE_CLOCK;
		attr.wc_flags = flag;
		errno = 0;
		made = softhca_create_cq(ctx, &attr);
		if ((flag & small) != 0 || (n >= 64 && (flag & large) != 0)) {
			assert_non_null(made);
			assert_int_equal(fake->cq.flags,
					 (flag & large) == 0 ? 0
					 : flag == 1 << 11   ? HCA_CTL_CQ_LARGE | HCA_CTL_CQ_WALL
							     : HCA_CTL_CQ_LARGE);
			assert_int_equal(softhca_destroy_cq(made), 0);
		} else {
			assert_null(made);
			assert_int_equal(errno, EOPNOTSUPP);
		}
	}
}

/* Write CQE n of a large CQ, with the times n and 1000 + n and the tag 2000 + n. */
static void
complete_large(struct softhca_cq *pub, uint32_t n, uint32_t qpn)
{
	struct hca_cqe *place = lib_cqe_at((struct lib_cq *)pub, n), cqe = sent(qpn);

	*(struct hca_cqe_more *)(place + 1) = (struct hca_cqe_more){
		.core_clock = n,
		.wall_clock = 1000 + n,
		.vlan = (uint16_t)(2000 + n),
	};
	fake_complete(pub, n, &cqe);
}

static void
expect_large(struct softhca_cq *pub, uint32_t n)
{
	assert_int_equal(softhca_wc_read_completion_ts(pub), n);
	assert_int_equal(softhca_wc_read_completion_wallclock_ns(pub), 1000 + n);
	assert_int_equal(softhca_wc_read_cvlan(pub), 2000 + n);
}

static struct softhca_cq *
large_cq(void)
{
	struct softhca_cq_init_attr attr = {
		.cqe = 4,
		.wc_flags = SOFTHCA_WC_EX_WITH_COMPLETION_TIMESTAMP,
	};
	struct softhca_cq *large;

	lib_ctx(ctx)->info.flags = HCA_CAP_CQE_CLOCK;
	large = softhca_create_cq(ctx, &attr);
	assert_non_null(large);
	return large;
}

/* CQEs of 64 bytes, read and polled, around the ring; one of no QP amid them. */
static void
test_large(void **state)
{
	struct softhca_cq *large = large_cq();
	const struct lib_cq *its = (const struct lib_cq *)large;
	struct softhca_wc wc[4];
	uint32_t n = 0;

	assert_ptr_equal(its->record, its->ring + 8);
	for (unsigned int round = 0; round < 5; round++, n += 3) {
		complete_large(large, n, q.qp->qp_num);
		complete_large(large, n + 1, 0);
		complete_large(large, n + 2, q.qp->qp_num);
		if (round % 2 == 0) {
			assert_int_equal(softhca_poll_cq(large, 4, wc), 2);
			assert_int_equal(wc[1].qp_num, q.qp->qp_num);
			continue;
		}
		assert_int_equal(softhca_start_poll(large), 0);
		expect_large(large, n);
		assert_int_equal(softhca_next_poll(large), 0);
		expect_large(large, n + 2);
		assert_int_equal(softhca_next_poll(large), -ENOENT);
		assert_int_equal(softhca_wc_read_completion_ts(large), 0);
		softhca_end_poll(large);
	}
	assert_int_equal(its->record->consumer, 15);
	assert_int_equal(softhca_destroy_cq(large), 0);
}

/* The CQEs of a large CQ are copied when it gets new memory. */
static void
test_large_resize(void **state)
{
	struct softhca_cq *large = large_cq();

	for (uint32_t n = 0; n < 3; n++)
		complete_large(large, n, q.qp->qp_num);
	fake->resize_at = 3;
	assert_int_equal(softhca_resize_cq(large, 16), 0);
	assert_int_equal(fake->resize.flags, HCA_CTL_CQ_LARGE);
	complete_large(large, 3, q.qp->qp_num);
	assert_int_equal(softhca_start_poll(large), 0);
	for (uint32_t n = 0; n < 4; n++) {
		expect_large(large, n);
		assert_int_equal(softhca_next_poll(large), n < 3 ? 0 : -ENOENT);
	}
	softhca_end_poll(large);
	assert_int_equal(softhca_destroy_cq(large), 0);
}

/* Memory behind a small CQE is not read. */
static void
test_small_has_no_time(void **state)
{
	struct hca_cqe cqe = sent(q.qp->qp_num);

	fake_complete(q.cq, 0, &cqe);
	fake_complete(q.cq, 1, &cqe);
	assert_int_equal(softhca_start_poll(q.cq), 0);
	assert_int_equal(softhca_wc_read_completion_ts(q.cq), 0);
	assert_int_equal(softhca_wc_read_completion_wallclock_ns(q.cq), 0);
	assert_int_equal(softhca_wc_read_cvlan(q.cq), 0);
	softhca_end_poll(q.cq);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		T(test_every_opcode),
		T(test_one_after_another),
		T(test_arrives_meanwhile),
		T(test_empty),
		T(test_wrong_order),
		T(test_has_the_cq_alone),
		T(test_arms_meanwhile),
		T(test_changes_meanwhile),
		T(test_srq_ends_meanwhile),
		T(test_qp_of_two_ends_meanwhile),
		T(test_manual_progress),
		T(test_fields),
		T(test_large),
		T(test_large_resize),
		T(test_small_has_no_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
