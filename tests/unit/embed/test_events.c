/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Completion events with worker threads: forwarded by the worker that wrote them, by the thread if
 * they are many, and later if a pipe was full.
 */

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmocka.h>

#include <softhca/embed.h>
#include <softhca/softhca.h>

#define ENDS 17u
#define ROUNDS 50u
#define LOST_MS 60000 /* an event that takes longer counts as lost */
#define PIPE 4096

struct end {
	struct softhca_comp_channel *channel;
	struct softhca_cq *cq;
	struct softhca_qp *qp, *peer;
};

static struct softhca_embed *embed;
static struct softhca_context *ctx[2];
static struct softhca_pd *pd[2];
static struct softhca_cq *peer_cq;
static struct end end[ENDS];

static struct softhca_qp *
make_qp(unsigned int side, struct softhca_cq *cq)
{
	struct softhca_qp_init_attr qa = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = SOFTHCA_QPT_RC,
	};
	struct softhca_qp *qp = softhca_create_qp(pd[side], &qa);

	assert_non_null(qp);
	return qp;
}

static void
to_state(unsigned int side, struct softhca_qp *qp, struct softhca_qp *peer, uint32_t state,
	 uint32_t mask)
{
	/* No timeout: the link loses nothing, however long a thread waits for its CPU. */
	struct softhca_qp_attr a = {
		.qp_state = state,
		.port_num = 1,
		.qp_access_flags = SOFTHCA_ACCESS_REMOTE_WRITE,
		.path_mtu = SOFTHCA_MTU_1024,
		.dest_qp_num = peer->qp_num,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {.port_num = 1, .is_global = 1, .hop_limit = 64},
	};

	assert_int_equal(softhca_query_gid(ctx[1 - side], 1, 0, &a.ah_attr.dgid), 0);
	assert_int_equal(softhca_modify_qp(qp, &a, SOFTHCA_QP_STATE | mask), 0);
}

static void
connect_qp(unsigned int side, struct softhca_qp *qp, struct softhca_qp *peer)
{
	to_state(side, qp, peer, SOFTHCA_QPS_INIT,
		 SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT | SOFTHCA_QP_ACCESS_FLAGS);
	to_state(side, qp, peer, SOFTHCA_QPS_RTR,
		 SOFTHCA_QP_AV | SOFTHCA_QP_PATH_MTU | SOFTHCA_QP_DEST_QPN | SOFTHCA_QP_RQ_PSN |
			 SOFTHCA_QP_MAX_DEST_RD_ATOMIC | SOFTHCA_QP_MIN_RNR_TIMER);
	to_state(side, qp, peer, SOFTHCA_QPS_RTS,
		 SOFTHCA_QP_TIMEOUT | SOFTHCA_QP_RETRY_CNT | SOFTHCA_QP_RNR_RETRY |
			 SOFTHCA_QP_SQ_PSN | SOFTHCA_QP_MAX_QP_RD_ATOMIC);
}

static int
setup(void **state)
{
	struct softhca_cq_init_attr ca = {.cqe = 64};
	struct softhca_embed_config cfg;

	softhca_embed_config_init(&cfg);
	cfg.hugepages = 2;
	cfg.executor = SOFTHCA_EXECUTOR_THREADS;
	cfg.mbufs = 512;
	cfg.records = 1024;
	cfg.log_qps = cfg.log_cqs = 8;
	cfg.log_mpts = 10;
	cfg.log_mtts = 12;
	assert_int_equal(softhca_embed_create(&cfg, &embed), 0);
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(softhca_embed_open(embed, i, &ctx[i]), 0);
		pd[i] = softhca_alloc_pd(ctx[i]);
	}
	peer_cq = softhca_create_cq(ctx[1], &ca);
	for (unsigned int i = 0; i < ENDS; i++) {
		struct end *e = &end[i];

		e->channel = softhca_create_comp_channel(ctx[0]);
		assert_non_null(e->channel);
		ca.channel = e->channel;
		e->cq = softhca_create_cq(ctx[0], &ca);
		e->qp = make_qp(0, e->cq);
		e->peer = make_qp(1, peer_cq);
		connect_qp(0, e->qp, e->peer);
		connect_qp(1, e->peer, e->qp);
	}
	return 0;
}

static int
teardown(void **state)
{
	assert_int_equal(softhca_embed_destroy(embed), 0);
	return 0;
}

static void
post(struct end *e)
{
	struct softhca_send_wr wr = {
		.opcode = SOFTHCA_WR_RDMA_WRITE,
		.send_flags = SOFTHCA_SEND_SIGNALED,
	};

	assert_int_equal(softhca_post_send(e->qp, &wr, NULL), 0);
}

static void
complete(struct end *e)
{
	struct softhca_wc wc;
	int n;

	do {
		n = softhca_poll_cq(e->cq, 1, &wc);
	} while (n == 0);
	assert_int_equal(n, 1);
	assert_int_equal(wc.status, SOFTHCA_WC_SUCCESS);
}

static void
event(struct end *e)
{
	struct pollfd p = {.fd = e->channel->fd, .events = POLLIN};
	struct softhca_cq *cq;

	assert_int_equal(poll(&p, 1, LOST_MS), 1);
	assert_int_equal(softhca_get_cq_event(e->channel, &cq, NULL), 0);
	assert_ptr_equal(cq, e->cq);
	softhca_ack_cq_events(cq, 1);
}

/* One event at a time, which a worker forwards; then more at once than it forwards. */
static void
many_channels(void **state)
{
	for (unsigned int round = 0; round < ROUNDS; round++) {
		unsigned int n = round % 2 == 0 ? 1 : ENDS;

		if (round % 4 < 2)
			usleep(2000); /* the workers are asleep */
		for (unsigned int i = 0; i < n; i++)
			softhca_req_notify_cq(end[i].cq, 0);
		for (unsigned int i = 0; i < n; i++)
			post(&end[i]);
		for (unsigned int i = 0; i < n; i++) {
			event(&end[i]);
			complete(&end[i]);
		}
	}
}

/* Read nothing until the pipe is full; delayed events arrive without another event after them. */
static void
full_pipe(void **state)
{
	struct end *e = &end[0];
	int bytes = 0;

	assert_int_equal(fcntl(e->channel->fd, F_SETPIPE_SZ, PIPE), PIPE);
	for (unsigned int i = 0; i < 100000 && bytes < PIPE; i++) {
		softhca_req_notify_cq(e->cq, 0);
		post(e);
		complete(e);
		assert_int_equal(ioctl(e->channel->fd, FIONREAD, &bytes), 0);
	}
	assert_int_equal(bytes, PIPE);
	softhca_req_notify_cq(e->cq, 0);
	post(e);
	complete(e);
	for (unsigned int i = 0; i < PIPE / 16 + 1; i++)
		event(e);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(many_channels, setup, teardown),
		cmocka_unit_test_setup_teardown(full_pipe, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
