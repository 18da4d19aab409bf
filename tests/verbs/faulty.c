/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A program of plain verbs that prints how its calls, completions and events end. It uses no name
 * of softhca.
 *	faulty calls N         N registrations, then a PD
 *	faulty completions N   N sends of a connection to itself, and their receives
 *	faulty extended N      the same by ibv_start_poll()
 *	faulty again N         the same, twice, with a reset in between
 *	faulty inside N        N sends, and a reset between ibv_start_poll() and ibv_end_poll()
 *	faulty events N        traffic until N events have come
 */

#include <fcntl.h>
#include <poll.h>

#include "all.h"

#define MESSAGES_MAX 64
#define EACH 16
#define TURNS 20000 /* of 1 ms, for an event */

static struct ibv_cq *send_cq, *recv_cq;

static void
calls(struct all *all, int n)
{
	struct ibv_pd *pd;
	struct ibv_mr *mr;

	for (int i = 1; i <= n; i++) {
		errno = 0;
		mr = ibv_reg_mr(all->pd, all->memory, 4096, IBV_ACCESS_LOCAL_WRITE);
		printf("ibv_reg_mr %d: %s\n", i, mr != NULL ? "good" : strerror(errno));
		if (mr != NULL)
			CHECK(ibv_dereg_mr(mr) == 0);
	}
	pd = ibv_alloc_pd(all->context);
	printf("ibv_alloc_pd: %s\n", pd != NULL ? "good" : strerror(errno));
	if (pd != NULL)
		CHECK(ibv_dealloc_pd(pd) == 0);
}

static struct ibv_qp *
qp_of(struct all *all)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = send_cq,
		.recv_cq = recv_cq,
		.cap = {MESSAGES_MAX, MESSAGES_MAX, 1, 1, 0},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct ibv_qp *qp = ibv_create_qp(all->pd, &attr);

	CHECK(qp != NULL);
	all_to_init(qp);
	return qp;
}

static void
post(struct all *all, struct ibv_qp *from, struct ibv_qp *to, int n)
{
	struct ibv_sge sge = {(uintptr_t)all->memory, EACH, all->mr->lkey};
	struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr send = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

	for (int i = 0; i < n; i++) {
		recv.wr_id = (uint64_t)i;
		CHECK(ibv_post_recv(to, &recv, &bad_recv) == 0);
	}
	for (int i = 0; i < n; i++) {
		send.wr_id = (uint64_t)i;
		CHECK(ibv_post_send(from, &send, &bad) == 0);
	}
}

/* The next completion; extended CQs are read one at a time */
static int
poll_one(struct ibv_cq *cq, bool extended, struct ibv_wc *wc)
{
	struct ibv_poll_cq_attr attr = {0};
	struct ibv_cq_ex *ex = (struct ibv_cq_ex *)cq;
	int err;

	if (!extended)
		return ibv_poll_cq(cq, 1, wc);
	err = ibv_start_poll(ex, &attr);
	if (err == ENOENT)
		return 0;
	CHECK(err == 0);
	wc->status = ex->status;
	wc->wr_id = ex->wr_id;
	ibv_end_poll(ex);
	return 1;
}

static void
print_completions(const char *what, struct ibv_cq *cq, bool extended, int n)
{
	struct ibv_wc wc;

	for (int i = 0; i < n;) {
		int got = poll_one(cq, extended, &wc);

		CHECK(got >= 0);
		if (got == 0)
			continue;
		CHECK(wc.wr_id == (uint64_t)i);
		printf("%s %d: %s\n", what, ++i, ibv_wc_status_str(wc.status));
	}
}

static void
print_state(const char *what, struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == 0);
	CHECK(attr.qp_state == qp->state);
	printf("%s: %s\n", what,
	       attr.qp_state == IBV_QPS_RTS    ? "RTS"
	       : attr.qp_state == IBV_QPS_ERR  ? "ERR"
	       : attr.qp_state == IBV_QPS_INIT ? "INIT"
					       : "another state");
}

static void
reset(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	CHECK(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0);
	all_to_init(qp);
}

static void
make_cqs(struct all *all, bool extended)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 2 * MESSAGES_MAX,
					   .wc_flags = IBV_WC_EX_WITH_QP_NUM};

	if (extended) {
		send_cq = ibv_cq_ex_to_cq(ibv_create_cq_ex(all->context, &attr));
		recv_cq = ibv_cq_ex_to_cq(ibv_create_cq_ex(all->context, &attr));
	} else {
		send_cq = ibv_create_cq(all->context, 2 * MESSAGES_MAX, NULL, NULL, 0);
		recv_cq = ibv_create_cq(all->context, 2 * MESSAGES_MAX, NULL, NULL, 0);
	}
	CHECK(send_cq != NULL && recv_cq != NULL);
}

static void
completions(struct all *all, bool extended, int turns, int n)
{
	struct ibv_qp *from, *to;

	make_cqs(all, extended);
	from = qp_of(all);
	to = qp_of(all);
	for (int turn = 0; turn < turns; turn++) {
		if (turn != 0) {
			reset(from);
			reset(to);
		}
		all_connect(all, from, to);
		post(all, from, to, n);
		/* all of them have arrived: an error is an injected one */
		print_completions("recv", recv_cq, extended, n);
		print_completions("send", send_cq, extended, n);
		print_state("sender", from);
		print_state("receiver", to);
	}
	CHECK(ibv_destroy_qp(from) == 0 && ibv_destroy_qp(to) == 0);
	CHECK(ibv_destroy_cq(send_cq) == 0 && ibv_destroy_cq(recv_cq) == 0);
}

/* The QP of the first error is reset, and initialized, while that is read. */
static void
reset_inside(struct all *all, int n)
{
	struct ibv_poll_cq_attr attr = {0};
	struct ibv_qp *from, *to;
	struct ibv_cq_ex *ex;
	bool failed = false;

	make_cqs(all, true);
	ex = (struct ibv_cq_ex *)send_cq;
	from = qp_of(all);
	to = qp_of(all);
	all_connect(all, from, to);
	post(all, from, to, n);
	print_completions("recv", recv_cq, true, n);
	while (!failed) {
		int err = ibv_start_poll(ex, &attr);

		CHECK(err == 0 || err == ENOENT);
		if (err != 0)
			continue;
		failed = ex->status != IBV_WC_SUCCESS;
		printf("send: %s\n", ibv_wc_status_str(ex->status));
		if (failed)
			reset(from);
		ibv_end_poll(ex);
	}
	print_state("sender", from);
	CHECK(ibv_destroy_qp(from) == 0 && ibv_destroy_qp(to) == 0);
	CHECK(ibv_destroy_cq(send_cq) == 0 && ibv_destroy_cq(recv_cq) == 0);
}

/* Datagrams to no QP of the last device, so that the port has a first frame to send */
static void
send_something(struct all *all, struct ibv_qp *qp, struct ibv_ah *ah)
{
	struct ibv_sge sge = {(uintptr_t)all->memory, EACH, all->mr->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = {ah, 0x7ffff1, 0x11111111},
	};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	if (ibv_post_send(qp, &wr, &bad) != 0)
		CHECK(errno == ENOMEM); /* the link is down */
	while (ibv_poll_cq(all->cq, 1, &wc) > 0)
		CHECK(wc.status == IBV_WC_SUCCESS);
}

static void
events(struct all *all, int n)
{
	struct ibv_qp *qp = all_qp(all, IBV_QPT_UD, all->cq, NULL, 0);
	struct pollfd fd = {.fd = all->context->async_fd, .events = POLLIN};
	struct ibv_async_event event;
	struct ibv_port_attr port;
	struct ibv_ah *ah;
	struct all last;

	all_open_at(&last, -1);
	all->gid = last.gid;
	ah = all_ah(all);

	for (int i = 0, turn = 0; i < n; turn++) {
		CHECK(turn < TURNS);
		send_something(all, qp, ah);
		if (poll(&fd, 1, 1) != 1)
			continue;
		CHECK(ibv_get_async_event(all->context, &event) == 0);
		CHECK(ibv_query_port(all->context, PORT, &port) == 0);
		printf("%s: %s\n", ibv_event_type_str(event.event_type),
		       ibv_port_state_str(port.state));
		fflush(stdout);
		ibv_ack_async_event(&event);
		i++;
	}
	CHECK(ibv_destroy_ah(ah) == 0 && ibv_destroy_qp(qp) == 0);
	all_close(&last);
}

int
main(int argc, char **argv)
{
	const char *what = argc == 3 ? argv[1] : "";
	int n = argc == 3 ? atoi(argv[2]) : 0;
	struct all all;

	CHECK(n > 0 && n <= MESSAGES_MAX);
	all_open(&all);
	if (strcmp(what, "calls") == 0)
		calls(&all, n);
	else if (strcmp(what, "events") == 0)
		events(&all, n);
	else if (strcmp(what, "inside") == 0)
		reset_inside(&all, n);
	else
		completions(&all, strcmp(what, "extended") == 0, strcmp(what, "again") == 0 ? 2 : 1,
			    n);
	all_close(&all);
	return 0;
}
