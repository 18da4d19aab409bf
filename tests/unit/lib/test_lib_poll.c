/* SPDX-License-Identifier: BSD-3-Clause */

/* poll_cq, arming, events, clean-up of completions. */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib_rig.h"
#include "lib_wait.h"

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

static void
test_owner_protocol(void **state)
{
	struct softhca_wc wc[8];

	assert_int_equal(softhca_poll_cq(q.cq, 8, wc), 0);
	for (uint32_t n = 0; n < 10; n++) { /* wraps around the ring of 4 */
		struct softhca_send_wr wr = {.wr_id = 100 + n, .opcode = SOFTHCA_WR_SEND};
		struct hca_cqe cqe = {
			.my_qpn = q.qp->qp_num,
			.is_send = 1,
			.opcode = HCA_OP_SEND,
			.wqe = (n % 4) * 64,
		};

		assert_int_equal(softhca_post_send(q.qp, &wr, NULL), 0);
		fake_complete(q.cq, n, &cqe);
		assert_int_equal(softhca_poll_cq(q.cq, 8, wc), 1);
		assert_int_equal(wc[0].wr_id, 100 + n);
		assert_int_equal(wc[0].status, SOFTHCA_WC_SUCCESS);
		assert_int_equal(wc[0].qp_num, q.qp->qp_num);
		assert_int_equal(cq()->ring[n % 4].owner, HCA_OWNER_HW);
		assert_int_equal(cq()->record->consumer, n + 1);
		assert_int_equal(softhca_poll_cq(q.cq, 8, wc), 0);
	}
}

static void
test_no_more_than_asked(void **state)
{
	struct hca_cqe cqe = {.my_qpn = q.qp->qp_num, .is_send = 1, .opcode = HCA_OP_SEND};
	struct softhca_wc wc[4];

	for (uint32_t n = 0; n < 4; n++)
		fake_complete(q.cq, n, &cqe);
	assert_int_equal(softhca_poll_cq(q.cq, 3, wc), 3);
	assert_int_equal(softhca_poll_cq(q.cq, 3, wc), 1);
	assert_int_equal(softhca_poll_cq(q.cq, -1, wc), -EINVAL);
}

static void
test_send_opcodes(void **state)
{
	static const struct {
		uint8_t op;
		uint32_t wc;
	} kinds[] = {
		{HCA_OP_RDMA_WRITE, SOFTHCA_WC_RDMA_WRITE},
		{HCA_OP_RDMA_WRITE_IMM, SOFTHCA_WC_RDMA_WRITE},
		{HCA_OP_SEND_IMM, SOFTHCA_WC_SEND},
		{HCA_OP_RDMA_READ, SOFTHCA_WC_RDMA_READ},
		{HCA_OP_ATOMIC_CS, SOFTHCA_WC_COMP_SWAP},
		{HCA_OP_ATOMIC_FA, SOFTHCA_WC_FETCH_ADD},
	};

	for (uint32_t n = 0; n < sizeof(kinds) / sizeof(kinds[0]); n++) {
		struct hca_cqe cqe = {
			.my_qpn = q.qp->qp_num,
			.is_send = 1,
			.opcode = kinds[n].op,
			.byte_cnt = 8,
		};
		struct softhca_wc wc;

		fake_complete(q.cq, n, &cqe);
		assert_int_equal(softhca_poll_cq(q.cq, 1, &wc), 1);
		assert_int_equal(wc.opcode, kinds[n].wc);
		assert_int_equal(wc.byte_len, 8);
	}
}

static void
test_receives(void **state)
{
	struct softhca_recv_wr wr[2] = {{.wr_id = 11, .next = &wr[1]}, {.wr_id = 12}};
	struct hca_cqe cqe = {
		.my_qpn = q.qp->qp_num,
		.rqpn = 0x123456,
		.opcode = 0x05,
		.byte_cnt = 300,
		.flags = HCA_CQE_MAKE_FLAGS(3, 1, 1, 2),
	};
	struct softhca_wc wc;

	assert_int_equal(softhca_post_recv(q.qp, wr, NULL), 0);
	memcpy(&cqe.imm, "\1\2\3\4", 4);
	fake_complete(q.cq, 0, &cqe);
	assert_int_equal(softhca_poll_cq(q.cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 11);
	assert_int_equal(wc.opcode, SOFTHCA_WC_RECV);
	assert_int_equal(wc.wc_flags, SOFTHCA_WC_WITH_IMM | SOFTHCA_WC_GRH);
	assert_memory_equal(&wc.imm_data, "\1\2\3\4", 4);
	assert_int_equal(wc.byte_len, 300);
	assert_int_equal(wc.src_qp, 0x123456);
	assert_int_equal(wc.pkey_index, 3);
	assert_int_equal(wc.sl, 2);

	cqe.opcode = 0x0b; /* WRITE only with immediate */
	cqe.wqe = 64;
	fake_complete(q.cq, 1, &cqe);
	assert_int_equal(softhca_poll_cq(q.cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 12);
	assert_int_equal(wc.opcode, SOFTHCA_WC_RECV_RDMA_WITH_IMM);
}

#define POSTED 20000u

static void *
post_receives(void *arg)
{
	for (uint64_t n = 0; n < POSTED;) {
		struct softhca_recv_wr wr = {.wr_id = n};

		if (softhca_post_recv(q.qp, &wr, NULL) == 0)
			n++;
		else
			sched_yield();
	}
	return NULL;
}

/* A WQE may be reused after its completion was polled, not before. */
static void
test_posted_by_another_thread(void **state)
{
	const struct hca_rq_record *record = ((struct lib_qp *)q.qp)->rq_record;
	struct hca_cqe cqe = {.my_qpn = q.qp->qp_num, .opcode = 0x04};
	struct softhca_wc wc;
	pthread_t poster;

	assert_int_equal(pthread_create(&poster, NULL, post_receives, NULL), 0);
	for (uint32_t n = 0; n < POSTED; n++) {
		while (__atomic_load_n(&record->producer, __ATOMIC_ACQUIRE) == n)
			sched_yield();
		cqe.wqe = (n % 4) * 64;
		fake_complete(q.cq, n, &cqe);
		assert_int_equal(softhca_poll_cq(q.cq, 1, &wc), 1);
		assert_int_equal(wc.wr_id, n);
	}
	pthread_join(poster, NULL);
}

/* A child does not wait for locks that other threads held at fork(). */
static int
child_of_busy_parent(void)
{
	struct softhca_send_wr send = {.opcode = SOFTHCA_WR_SEND};
	struct softhca_recv_wr recv = {.wr_id = 1};
	struct softhca_wc wc;

	alarm(240);
	softhca_ack_cq_events(q.cq, 0); /* takes the context's lock */
	if (softhca_post_send(q.qp, &send, NULL) != -EPERM)
		return 1;
	if (softhca_post_recv(q.qp, &recv, NULL) != -EPERM)
		return 2;
	return softhca_poll_cq(q.cq, 1, &wc) != -EPERM ? 3 : 0;
}

static void
test_fork_amid_calls(void **state)
{
	struct lib_qp *qp = (struct lib_qp *)q.qp;
	int status;
	pid_t pid;

	lib_lock_take(&qp->sq.lock);
	lib_lock_take(&qp->rq.lock);
	lib_lock_take(&cq()->lock);
	pthread_mutex_lock(&lib_ctx(ctx)->lock);
	pid = fork();
	if (pid == 0)
		_exit(child_of_busy_parent());
	pthread_mutex_unlock(&lib_ctx(ctx)->lock);
	lib_lock_drop(&cq()->lock);
	lib_lock_drop(&qp->rq.lock);
	lib_lock_drop(&qp->sq.lock);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void
test_errors(void **state)
{
	static const struct {
		uint8_t syndrome;
		uint32_t status;
	} kinds[] = {
		{HCA_SYND_LOCAL_LENGTH, SOFTHCA_WC_LOC_LEN_ERR},
		{HCA_SYND_LOCAL_QP_OP, SOFTHCA_WC_LOC_QP_OP_ERR},
		{HCA_SYND_LOCAL_EEC_OP, SOFTHCA_WC_LOC_EEC_OP_ERR},
		{HCA_SYND_LOCAL_PROT, SOFTHCA_WC_LOC_PROT_ERR},
		{HCA_SYND_WR_FLUSH, SOFTHCA_WC_WR_FLUSH_ERR},
		{HCA_SYND_MW_BIND, SOFTHCA_WC_MW_BIND_ERR},
		{HCA_SYND_BAD_RESP, SOFTHCA_WC_BAD_RESP_ERR},
		{HCA_SYND_LOCAL_ACCESS, SOFTHCA_WC_LOC_ACCESS_ERR},
		{HCA_SYND_REMOTE_INVAL_REQ, SOFTHCA_WC_REM_INV_REQ_ERR},
		{HCA_SYND_REMOTE_ACCESS, SOFTHCA_WC_REM_ACCESS_ERR},
		{HCA_SYND_REMOTE_OP, SOFTHCA_WC_REM_OP_ERR},
		{HCA_SYND_RETRY_EXC, SOFTHCA_WC_RETRY_EXC_ERR},
		{HCA_SYND_RNR_RETRY_EXC, SOFTHCA_WC_RNR_RETRY_EXC_ERR},
		{HCA_SYND_LOCAL_RDD_VIOL, SOFTHCA_WC_LOC_RDD_VIOL_ERR},
		{HCA_SYND_REMOTE_INVAL_RD_REQ, SOFTHCA_WC_REM_INV_RD_REQ_ERR},
		{HCA_SYND_REMOTE_ABORTED, SOFTHCA_WC_REM_ABORT_ERR},
		{HCA_SYND_INVAL_EECN, SOFTHCA_WC_INV_EECN_ERR},
		{HCA_SYND_INVAL_EEC_STATE, SOFTHCA_WC_INV_EEC_STATE_ERR},
		{0x7f, SOFTHCA_WC_GENERAL_ERR},
		{0, SOFTHCA_WC_GENERAL_ERR},
	};

	for (uint32_t n = 0; n < sizeof(kinds) / sizeof(kinds[0]); n++) {
		struct hca_cqe_err err = {
			.my_qpn = q.qp->qp_num,
			.is_send = n & 1,
			.syndrome = kinds[n].syndrome,
			.opcode = n & 1 ? HCA_CQE_OP_ERR_SEND : HCA_CQE_OP_ERR_RECV,
		};
		struct softhca_wc wc;

		fake_complete(q.cq, n, (struct hca_cqe *)&err);
		assert_int_equal(softhca_poll_cq(q.cq, 1, &wc), 1);
		assert_int_equal(wc.status, kinds[n].status);
		assert_int_equal(wc.vendor_err, kinds[n].syndrome);
		assert_int_equal(wc.opcode, n & 1 ? SOFTHCA_WC_SEND : SOFTHCA_WC_RECV);
	}
}

/* Completions of unknown QPNs, even with the index of a live QP, are skipped and consumed. */
static void
test_unknown_qpn(void **state)
{
	struct hca_cqe cqe = {.is_send = 1, .opcode = HCA_OP_SEND};
	struct softhca_wc wc[4];

	cqe.my_qpn = q.qp->qp_num ^ 1u << 20;
	fake_complete(q.cq, 0, &cqe);
	cqe.my_qpn = q.qp->qp_num;
	fake_complete(q.cq, 1, &cqe);
	cqe.my_qpn = 0;
	fake_complete(q.cq, 2, &cqe);
	assert_int_equal(softhca_poll_cq(q.cq, 4, wc), 1);
	assert_int_equal(cq()->record->consumer, 3);
	assert_int_equal(cq()->ring[2].owner, HCA_OWNER_HW);
}

/* Whatever offset a CQE has, nothing outside the queue is read. */
static void
test_wild_offset(void **state)
{
	struct hca_cqe cqe = {.my_qpn = q.qp->qp_num, .is_send = 1, .opcode = 0x77};
	struct softhca_wc wc;

	cqe.wqe = 0xffffffff;
	fake_complete(q.cq, 0, &cqe);
	assert_int_equal(softhca_poll_cq(q.cq, 1, &wc), 1);
}

static void
test_arm(void **state)
{
	struct softhca_comp_channel *channel = softhca_create_comp_channel(ctx);
	struct softhca_cq_init_attr attr = {.cqe = 4, .channel = channel, .cq_context = &attr};
	struct softhca_cq *armed = softhca_create_cq(ctx, &attr);
	const uint32_t *arm = &((struct lib_cq *)armed)->record->arm;
	struct hca_ctl_event event = {.type = HCA_EVENT_COMP};
	struct softhca_cq *got;
	void *got_context;

	assert_int_equal(softhca_req_notify_cq(q.cq, 0), -EINVAL);
	assert_int_equal(softhca_req_notify_cq(armed, 1), 0);
	assert_int_equal(*arm, HCA_CQ_ARM_MAKE(1, HCA_CQ_ARM_SOLICITED));
	assert_int_equal(softhca_req_notify_cq(armed, 0), 0);
	assert_int_equal(*arm, HCA_CQ_ARM_MAKE(2, HCA_CQ_ARM_NEXT));
	/* does not weaken the earlier request */
	assert_int_equal(softhca_req_notify_cq(armed, 1), 0);
	assert_int_equal(*arm, HCA_CQ_ARM_MAKE(3, HCA_CQ_ARM_NEXT));

	event.object = 33; /* of a destroyed CQ: skipped */
	assert_int_equal(write(fake->channel_write, &event, sizeof(event)), sizeof(event));
	event.object = armed->handle;
	event.tag = fake->cq.tag;
	assert_int_equal(write(fake->channel_write, &event, sizeof(event)), sizeof(event));
	assert_int_equal(softhca_get_cq_event(channel, &got, &got_context), 0);
	assert_ptr_equal(got, armed);
	assert_ptr_equal(got_context, &attr);
	softhca_ack_cq_events(armed, 1);
	assert_int_equal(softhca_req_notify_cq(armed, 1), 0);
	assert_int_equal(*arm, HCA_CQ_ARM_MAKE(4, HCA_CQ_ARM_SOLICITED));

	fcntl(channel->fd, F_SETFL, O_NONBLOCK);
	assert_int_equal(softhca_get_cq_event(channel, &got, NULL), -EAGAIN);
	assert_int_equal(softhca_destroy_comp_channel(channel), -EBUSY);
	assert_int_equal(softhca_destroy_cq(armed), 0);
	assert_int_equal(softhca_destroy_comp_channel(channel), 0);
}

/* Its number means another channel in this context. */
static void
test_channel_of_another_context(void **state)
{
	struct softhca_context *other;
	struct fake_ctl *its = fake_open(&other, false);
	struct softhca_cq_init_attr attr = {.cqe = 4,
					    .channel = softhca_create_comp_channel(other)};

	assert_non_null(attr.channel);
	assert_null(softhca_create_cq(ctx, &attr));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(softhca_destroy_comp_channel(attr.channel), 0);
	fake_close(its, other);
}

static void
test_async(void **state)
{
	struct hca_ctl_event event = {.type = HCA_EVENT_WQ_ACCESS, .object = 0x5};
	struct softhca_async_event got;

	assert_int_equal(write(fake->async_write, &event, sizeof(event)), sizeof(event));
	event.object = q.qp->qp_num;
	assert_int_equal(write(fake->async_write, &event, sizeof(event)), sizeof(event));
	assert_int_equal(softhca_get_async_event(ctx, &got), 0);
	assert_int_equal(got.event_type, SOFTHCA_EVENT_QP_ACCESS_ERR);
	assert_ptr_equal(got.element.qp, q.qp);
	softhca_ack_async_event(&got);
}

/* Completions of a destroyed QP vanish, those of others stay. */
static void
test_destroy_cleans(void **state)
{
	struct softhca_qp_init_attr attr = {
		.qp_type = SOFTHCA_QPT_RC,
		.cap = rig_wanted.cap,
		.send_cq = q.cq,
		.recv_cq = q.cq,
	};
	struct softhca_qp *other = softhca_create_qp(q.pd, &attr);
	struct hca_cqe cqe = {.is_send = 1, .opcode = HCA_OP_SEND};
	struct softhca_wc wc[4];

	for (uint32_t n = 0; n < 4; n++) {
		cqe.my_qpn = n & 1 ? other->qp_num : q.qp->qp_num;
		fake_complete(q.cq, n, &cqe);
	}
	assert_int_equal(softhca_destroy_cq(q.cq), -EBUSY);
	assert_int_equal(softhca_destroy_qp(other), 0);
	assert_int_equal(softhca_poll_cq(q.cq, 4, wc), 2);
	assert_int_equal(wc[1].qp_num, q.qp->qp_num);
}

/* QPs whose completions alternate in a CQ with those of a QP that ends and of an unknown QPN */
struct alternating {
	struct softhca_cq *cq;
	uint32_t entries;
	struct softhca_qp *qp[2];
	uint32_t posted;   /* by each */
	uint32_t produced; /* CQEs */
	uint32_t polled;
};

static struct softhca_qp *
alternating_qp(const struct alternating *a)
{
	struct softhca_qp_init_attr attr = {
		.qp_type = SOFTHCA_QPT_RC,
		.cap = {.max_send_wr = a->entries, .max_send_sge = 1},
		.send_cq = a->cq,
		.recv_cq = a->cq,
	};
	struct softhca_qp *qp = softhca_create_qp(q.pd, &attr);

	assert_non_null(qp);
	qp->state = SOFTHCA_QPS_RTS;
	return qp;
}

static void
alternating_complete(struct alternating *a, uint32_t qpn, uint32_t wqe)
{
	struct hca_cqe cqe = {
		.my_qpn = hca_cpu_to_le32(qpn),
		.is_send = 1,
		.opcode = HCA_OP_SEND,
		.wqe = hca_cpu_to_le32(wqe),
	};

	fake_complete(a->cq, a->produced++, &cqe);
}

/* Fill the CQ; every second completion is to be skipped. */
static void
alternating_fill(struct alternating *a)
{
	struct softhca_qp *gone = alternating_qp(a);

	for (uint32_t n = 0; n < a->entries; n += 4, a->posted++) {
		for (uint32_t i = 0; i < 2; i++) {
			const struct lib_wq *sq = &((struct lib_qp *)a->qp[i])->sq;
			struct softhca_send_wr wr = {.wr_id = a->posted << 1 | i,
						     .opcode = SOFTHCA_WR_SEND};

			assert_int_equal(softhca_post_send(a->qp[i], &wr, NULL), 0);
			alternating_complete(a, a->qp[i]->qp_num,
					     (a->posted & sq->mask) << sq->log_stride);
			alternating_complete(a, i == 0 ? gone->qp_num : a->qp[0]->qp_num ^ 1u << 20,
					     UINT32_MAX);
		}
	}
	assert_int_equal(softhca_destroy_qp(gone), 0);
}

static void
alternating_poll(struct alternating *a)
{
	struct softhca_wc wc[5];
	int got;

	while ((got = softhca_poll_cq(a->cq, 5, wc)) != 0)
		for (int i = 0; i < got; i++, a->polled++) {
			assert_int_equal(wc[i].status, SOFTHCA_WC_SUCCESS);
			assert_int_equal(wc[i].wr_id, a->polled);
			assert_int_equal(wc[i].qp_num, a->qp[a->polled & 1]->qp_num);
		}
	assert_int_equal(a->polled, a->posted * 2);
	assert_int_equal(((struct lib_cq *)a->cq)->consumer, a->produced);
}

/* In rings shorter and longer than what a poll looks ahead; with a lock and without. */
static void
test_alternating(void **state)
{
	static const struct {
		uint32_t entries, flags;
	} cqs[] = {{4, 0}, {4, SOFTHCA_SINGLE_THREADED}, {128, 0}, {128, SOFTHCA_SINGLE_THREADED}};

	for (unsigned int c = 0; c < sizeof(cqs) / sizeof(cqs[0]); c++) {
		struct softhca_cq_init_attr attr = {.cqe = cqs[c].entries, .flags = cqs[c].flags};
		struct alternating a = {.cq = softhca_create_cq(ctx, &attr),
					.entries = cqs[c].entries};

		for (uint32_t i = 0; i < 2; i++)
			a.qp[i] = alternating_qp(&a);
		for (uint32_t round = 0; round < 3; round++) {
			alternating_fill(&a);
			alternating_poll(&a);
			while (fake_take_doorbell(fake) != 0)
				;
		}
		for (uint32_t i = 0; i < 2; i++)
			assert_int_equal(softhca_destroy_qp(a.qp[i]), 0);
		assert_int_equal(softhca_destroy_cq(a.cq), 0);
	}
}

static void
complete_once(struct fake_ctl *f)
{
	struct hca_cqe cqe = {.my_qpn = 0x7f0003, .is_send = 1, .opcode = HCA_OP_SEND};

	f->on_progress = NULL;
	fake_complete(q.cq, 0, &cqe);
}

/* With manual progress, polling an empty CQ runs the engine and polls again. */
static void
test_manual_progress(void **state)
{
	struct softhca_context *manual;
	struct fake_ctl *f = fake_open(&manual, true);
	struct fake_qp saved = q;
	struct softhca_wc wc;

	q = fake_make_qp(manual, &rig_wanted.cap, SOFTHCA_QPS_RTS, 4);
	f->on_progress = complete_once;
	assert_int_equal(softhca_poll_cq(q.cq, 1, &wc), 1);
	assert_int_equal(f->progressed, 1);
	assert_int_equal(softhca_progress(manual), 1);
	fake_drop_qp(&q);
	fake_close(f, manual);
	q = saved;
}

static __thread unsigned int yields; /* of the polling thread, not of watchers */

/* Replaces that of the C library */
int
sched_yield(void)
{
	yields++;
	return (int)syscall(SYS_sched_yield);
}

/* A thread that polls without result for long yields to a worker that may need this CPU. */
static void
test_waiting_gives_way(void **state)
{
	struct softhca_wc wc;

	yields = 0;
	for (uint32_t i = 0; i < 100000000 && yields < 3; i++)
		assert_int_equal(softhca_poll_cq(q.cq, 1, &wc), 0);
	assert_int_equal(yields, 3);
}

/* But not if the poll itself runs the engine. */
static void
test_manual_does_not(void **state)
{
	struct softhca_context *manual;
	struct fake_ctl *f = fake_open(&manual, true);
	struct fake_qp saved = q;
	struct softhca_wc wc;

	q = fake_make_qp(manual, &rig_wanted.cap, SOFTHCA_QPS_RTS, 4);
	yields = 0;
	for (uint32_t i = 0; i < 1000000; i++)
		softhca_poll_cq(q.cq, 1, &wc);
	assert_int_equal(yields, 0);
	fake_drop_qp(&q);
	fake_close(f, manual);
	q = saved;
}

/* A worker, and the descriptor that wakes it. */
static struct {
	uint32_t word; /* odd: it sleeps */
	int fd;
} worker;

static int
setup_worker(void **state)
{
	struct lib_uar *uar;

	rig_setup(state);
	uar = &((struct lib_context *)ctx)->uar;
	worker.word = 0;
	worker.fd = eventfd(0, EFD_NONBLOCK);
	uar->sleep_word = &worker.word;
	uar->kick_fd = worker.fd;
	yields = 0;
	return worker.fd >= 0 ? 0 : -1;
}

static int
teardown_worker(void **state)
{
	close(worker.fd);
	lib_wait.cpu_yield.hogged_until = 0;
	return rig_teardown(state);
}

static uint64_t
kicks(void)
{
	uint64_t n = 0;

	return read(worker.fd, &n, sizeof(n)) == sizeof(n) ? n : 0;
}

static void
post_one(void)
{
	struct softhca_send_wr wr = {.opcode = SOFTHCA_WR_SEND};

	assert_int_equal(softhca_post_send(q.qp, &wr, NULL), 0);
	assert_false(((struct lib_context *)ctx)->uar.woke);
}

/*
 * A thread that wakes the worker yields to it once: a program that watches memory from then on
 * would keep the CPU for which the worker may wait.
 */
static void
test_post_that_wakes_gives_way(void **state)
{
	post_one();
	assert_int_equal(kicks(), 0);
	assert_int_equal(yields, 0);
	worker.word = 1;
	post_one();
	assert_int_equal(kicks(), 1);
	assert_int_equal(yields, 1);
	post_one(); /* in the same sleep */
	assert_int_equal(kicks(), 0);
	assert_int_equal(yields, 1);
	worker.word = 3;
	post_one();
	assert_int_equal(kicks(), 1);
	assert_int_equal(yields, 2);
}

static void
test_batch_and_receive_that_wake_give_way(void **state)
{
	struct lib_qp *qp = (struct lib_qp *)q.qp;
	struct softhca_send_wr wr = {.opcode = SOFTHCA_WR_SEND};
	struct softhca_recv_wr recv = {0};
	struct softhca_wr_batch batch;

	worker.word = 1;
	softhca_wr_start(&batch, q.qp);
	assert_int_equal(softhca_wr_add(&batch, &wr), 0);
	assert_int_equal(yields, 0);
	assert_int_equal(softhca_wr_complete(&batch), 0);
	assert_int_equal(kicks(), 1);
	assert_int_equal(yields, 1);
	worker.word = 3;
	qp->rq_record->notify = 1;
	assert_int_equal(softhca_post_recv(q.qp, &recv, NULL), 0);
	assert_int_equal(kicks(), 1);
	assert_int_equal(yields, 2);
}

/* A yield would cost a time slice of the hog for each post; the worker is woken all the same. */
static void
test_no_yield_to_a_hog(void **state)
{
	lib_wait.cpu_yield.hogged_until = UINT64_MAX;
	worker.word = 1;
	post_one();
	assert_int_equal(kicks(), 1);
	assert_int_equal(yields, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_owner_protocol, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_no_more_than_asked, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_send_opcodes, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_receives, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_posted_by_another_thread, rig_setup,
						rig_teardown),
		cmocka_unit_test_setup_teardown(test_fork_amid_calls, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_errors, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_unknown_qpn, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_wild_offset, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_arm, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_channel_of_another_context, rig_setup,
						rig_teardown),
		cmocka_unit_test_setup_teardown(test_async, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_destroy_cleans, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_alternating, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_manual_progress, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_waiting_gives_way, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_post_that_wakes_gives_way, setup_worker,
						teardown_worker),
		cmocka_unit_test_setup_teardown(test_batch_and_receive_that_wake_give_way,
						setup_worker, teardown_worker),
		cmocka_unit_test_setup_teardown(test_no_yield_to_a_hog, setup_worker,
						teardown_worker),
		cmocka_unit_test_setup_teardown(test_manual_does_not, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
