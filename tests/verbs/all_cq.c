/* SPDX-License-Identifier: BSD-3-Clause */

/* Extended CQs, completion events, moderation. */

#include <fcntl.h>
#include <time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "all.h"

#define STAMPS \
	(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK | \
	 IBV_WC_EX_WITH_CVLAN)
#define SECOND UINT64_C(1000000000)

static void
post_inline(struct ibv_qp *qp, uint64_t wr_id, uint32_t bytes)
{
	char text[64] = "some data";
	struct ibv_sge sge = {(uintptr_t)text, bytes, 0};
	struct ibv_send_wr *bad,
		wr = {
			.wr_id = wr_id,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_SEND_WITH_IMM,
			.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED,
			.imm_data = htobe32(7),
		};

	CHECK(ibv_post_send(qp, &wr, &bad) == 0);
}

static void
start(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr attr = {0};
	int err;

	do
		err = ibv_start_poll(cq, &attr);
	while (err == ENOENT);
	CHECK(err == 0);
}

static void
next(struct ibv_cq_ex *cq)
{
	int err;

	do
		err = ibv_next_poll(cq);
	while (err == ENOENT);
	CHECK(err == 0);
}

static void
look(struct ibv_cq_ex *cq, struct ibv_qp *a, struct ibv_qp *b)
{
	CHECK(cq->status == IBV_WC_SUCCESS && ibv_wc_read_vendor_err(cq) == 0);
	CHECK(ibv_wc_read_slid(cq) == 0 && ibv_wc_read_dlid_path_bits(cq) == 0);
	if (ibv_wc_read_opcode(cq) != IBV_WC_RECV) {
		CHECK(cq->wr_id == 1 && ibv_wc_read_qp_num(cq) == a->qp_num);
		return;
	}
	CHECK(cq->wr_id == 2 && ibv_wc_read_qp_num(cq) == b->qp_num);
	CHECK(ibv_wc_read_byte_len(cq) == 10 && ibv_wc_read_imm_data(cq) == htobe32(7));
	CHECK(ibv_wc_read_invalidated_rkey(cq) == htobe32(7)); /* the same place */
	CHECK(ibv_wc_read_wc_flags(cq) == IBV_WC_WITH_IMM && ibv_wc_read_sl(cq) == 0);
	CHECK(ibv_wc_read_src_qp(cq) == a->qp_num);
}

/* In a child of fork() the thread that polls is not there, and never lets go of the CQ. */
static void
polled_in_child(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr attr = {0};
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(240);
		_exit(ibv_start_poll(cq, &attr));
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == EPERM);
}

/* Both ways of polling one CQ: a completion not read by one is available to the other. */
static void
polled(struct all *all, struct ibv_cq_ex *cq)
{
	struct ibv_cq *plain = ibv_cq_ex_to_cq(cq);
	struct ibv_qp *a = all_qp(all, IBV_QPT_RC, plain, NULL, 0);
	struct ibv_qp *b = all_qp(all, IBV_QPT_RC, plain, NULL, 0);
	struct ibv_poll_cq_attr attr = {0};

	all_connect(all, a, b);
	CHECK(ibv_start_poll(cq, &attr) == ENOENT);
	attr.comp_mask = 1;
	CHECK(ibv_start_poll(cq, &attr) == EINVAL);
	all_recv(all, b, 2, 0, 64);
	post_inline(a, 1, 10);
	start(cq);
	look(cq, a, b);
	next(cq);
	look(cq, a, b);
	CHECK(ibv_next_poll(cq) == ENOENT);
	polled_in_child(cq);
	ibv_end_poll(cq);
	all_recv(all, b, 2, 0, 64);
	post_inline(a, 1, 10);
	start(cq);
	ibv_end_poll(cq);
	all_wc(plain);
	CHECK(ibv_destroy_cq(plain) == EBUSY);
	CHECK(ibv_destroy_qp(a) == 0 && ibv_destroy_qp(b) == 0);
}

static void
extended(struct all *all)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 16,
		.cq_context = all,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
	};
	static const uint64_t refused[] = {IBV_WC_EX_WITH_FLOW_TAG, IBV_WC_EX_WITH_TM_INFO,
					   UINT64_C(1) << 40};
	struct ibv_cq_ex *cq;

	for (int single = 0; single < 2; single++) {
		attr.flags = single ? IBV_CREATE_CQ_ATTR_SINGLE_THREADED : 0;
		cq = ibv_create_cq_ex(all->context, &attr);
		CHECK(cq != NULL && cq->cqe >= 16 && cq->cq_context == all);
		polled(all, cq);
		CHECK(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) == 0);
	}
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		attr.wc_flags = refused[i];
		CHECK_NULL(ibv_create_cq_ex(all->context, &attr), EOPNOTSUPP);
	}
	attr.wc_flags = 0;
	attr.flags = 1u << 9;
	CHECK_NULL(ibv_create_cq_ex(all->context, &attr), EOPNOTSUPP);
	attr.comp_mask = 1u << 20;
	CHECK_NULL(ibv_create_cq_ex(all->context, &attr), EOPNOTSUPP);
}

static uint64_t
core_clock(struct all *all)
{
	struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};

	CHECK(ibv_query_rt_values_ex(all->context, &values) == 0);
	CHECK(values.comp_mask == IBV_VALUES_MASK_RAW_CLOCK);
	return (uint64_t)values.raw_clock.tv_nsec;
}

static uint64_t
wall_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

/* The time stamp of a completion lies between readings of the clocks before and after. */
static void
stamped(struct all *all)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS | STAMPS};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(all->context, &attr);
	struct ibv_qp *a = all_qp(all, IBV_QPT_RC, all->cq, NULL, 0);
	struct ibv_qp *b = all_qp(all, IBV_QPT_RC, ibv_cq_ex_to_cq(cq), NULL, 0);
	uint64_t core = core_clock(all), wall = wall_clock(), at;
	struct ibv_values_ex values = {.comp_mask = 1u << 5};

	CHECK(ibv_query_rt_values_ex(all->context, &values) == EINVAL);
	all_connect(all, a, b);
	all_recv(all, b, 2, 0, 64);
	post_inline(a, 1, 10);
	start(cq);
	look(cq, a, b);
	at = ibv_wc_read_completion_ts(cq);
	CHECK(at >= core && at <= core_clock(all));
	at = ibv_wc_read_completion_wallclock_ns(cq);
	CHECK(at + SECOND > wall && at < wall_clock() + SECOND);
	CHECK(ibv_wc_read_cvlan(cq) == 0);
	ibv_end_poll(cq);
	all_wc(all->cq);
	CHECK(ibv_destroy_qp(a) == 0 && ibv_destroy_qp(b) == 0);
	CHECK(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) == 0);
}

/* More completions than there is room for: some are lost, and the QP goes on. */
static void
overrun(struct all *all)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 1,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN,
	};
	struct ibv_cq *cq = ibv_cq_ex_to_cq(ibv_create_cq_ex(all->context, &attr));
	struct ibv_qp *a = all_qp(all, IBV_QPT_RC, cq, NULL, 0);
	struct ibv_qp *b = all_qp(all, IBV_QPT_RC, all->cq, NULL, 0);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr state;

	CHECK(cq->cqe < 8);
	all_connect(all, a, b);
	for (int i = 0; i < 8; i++) {
		all_recv(all, b, 2, 0, 64);
		post_inline(a, 1, 10);
		CHECK(all_wc(all->cq).wr_id == 2);
	}
	CHECK(ibv_query_qp(a, &state, IBV_QP_STATE, &init) == 0);
	CHECK(state.qp_state == IBV_QPS_RTS);
	CHECK(all_wc(cq).wr_id == 1);
	CHECK(ibv_destroy_qp(a) == 0 && ibv_destroy_qp(b) == 0 && ibv_destroy_cq(cq) == 0);
}

static void
events(struct all *all)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(all->context);
	struct ibv_cq *cq = ibv_create_cq(all->context, 16, all, channel, 0), *of;
	struct ibv_qp *a = all_qp(all, IBV_QPT_RC, all->cq, NULL, 0);
	struct ibv_qp *b = all_qp(all, IBV_QPT_RC, cq, NULL, 0);
	struct ibv_modify_cq_attr moderate = {IBV_CQ_ATTR_MODERATE, {1, 0}};
	void *own;

	CHECK(channel != NULL && channel->fd >= 0 && cq != NULL && cq->channel == channel);
	CHECK(ibv_modify_cq(cq, &moderate) == 0);
	CHECK(ibv_req_notify_cq(all->cq, 0) == 0); /* which has no channel */
	moderate.attr_mask = IBV_CQ_ATTR_RESERVED;
	CHECK(ibv_modify_cq(cq, &moderate) == EOPNOTSUPP);
	all_connect(all, a, b);
	for (int solicited = 0; solicited < 2; solicited++) {
		CHECK(ibv_req_notify_cq(cq, solicited) == 0);
		all_recv(all, b, 2, 0, 64);
		post_inline(a, 1, 10);
		CHECK(ibv_get_cq_event(channel, &of, &own) == 0);
		CHECK(of == cq && own == all);
		CHECK(all_wc(cq).wr_id == 2 && all_wc(all->cq).wr_id == 1);
		ibv_ack_cq_events(cq, 1);
	}
	CHECK(fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK) == 0);
	CHECK(ibv_get_cq_event(channel, &of, &own) == -1 && errno == EAGAIN);
	CHECK(ibv_resize_cq(cq, 64) == 0 && cq->cqe >= 64);
	CHECK(ibv_resize_cq(cq, 0) == EINVAL);
	CHECK(ibv_destroy_comp_channel(channel) == EBUSY);
	CHECK(ibv_destroy_qp(a) == 0 && ibv_destroy_qp(b) == 0);
	CHECK(ibv_destroy_cq(cq) == 0);
	CHECK(ibv_destroy_comp_channel(channel) == 0);
	CHECK_NULL(ibv_create_cq(all->context, 0, NULL, NULL, 0), EINVAL);
	CHECK_NULL(ibv_create_cq(all->context, 16, NULL, NULL, 1 << 20), EINVAL);
}

void
all_completions(struct all *all)
{
	extended(all);
	stamped(all);
	overrun(all);
	events(all);
}
