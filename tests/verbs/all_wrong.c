/* SPDX-License-Identifier: BSD-3-Clause */

/* Mistakes of programs: they get the errors of verbs, and all other work goes on. */

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../test_fork.h"
#include "all.h"

#define DEPTH 16 /* of the queues that all_qp() asks for */
#define FILL 4096
#define RACES 50

static struct ibv_qp *
make_qp(struct ibv_pd *pd, struct ibv_cq *cq, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.srq = srq,
		.cap = {4, 4, 1, 1, 32},
		.qp_type = IBV_QPT_RC,
	};

	return ibv_create_qp(pd, &attr);
}

/* ---- requests ---- */

static void
posted_too_early(struct all *all)
{
	struct ibv_qp *qp = make_qp(all->pd, all->cq, NULL);
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad = NULL;
	struct ibv_recv_wr recv = {.wr_id = 1}, *bad_recv = NULL;

	CHECK(qp != NULL && qp->state == IBV_QPS_RESET);
	CHECK(ibv_post_send(qp, &wr, &bad) == EINVAL && bad == &wr);
	CHECK(ibv_post_recv(qp, &recv, &bad_recv) == EINVAL && bad_recv == &recv);
	CHECK(ibv_destroy_qp(qp) == 0);
}

static void
too_long(struct all *all, struct ibv_qp *qp)
{
	struct ibv_sge sges[100] = {{(uintptr_t)all->memory, 8, all->mr->lkey}};
	struct ibv_sge big = {(uintptr_t)all->memory, BYTES, 0};
	struct ibv_send_wr wr = {.sg_list = sges, .num_sge = 100}, *bad = NULL;
	struct ibv_recv_wr recv = {.sg_list = sges, .num_sge = 100}, *bad_recv = NULL;

	wr.opcode = IBV_WR_SEND;
	CHECK(ibv_post_send(qp, &wr, &bad) == EINVAL && bad == &wr);
	wr.num_sge = -1;
	CHECK(ibv_post_send(qp, &wr, &bad) == EINVAL);
	CHECK(ibv_post_recv(qp, &recv, &bad_recv) == EINVAL && bad_recv == &recv);
	recv.num_sge = -1;
	CHECK(ibv_post_recv(qp, &recv, &bad_recv) == EINVAL);
	wr.num_sge = 1;
	wr.sg_list = &big;
	wr.send_flags = IBV_SEND_INLINE;
	CHECK(ibv_post_send(qp, &wr, &bad) == EINVAL);
	wr.send_flags = 1u << 20;
	CHECK(ibv_post_send(qp, &wr, &bad) == EINVAL);
}

/* Queues that are full take no more; their entries stay valid. */
static void
full(struct all *all, struct ibv_qp *qp)
{
	struct ibv_srq_init_attr init = {NULL, {DEPTH, 1, 0}};
	struct ibv_srq *srq = ibv_create_srq(all->pd, &init);
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad = NULL;
	struct ibv_recv_wr recv = {.wr_id = 1}, *bad_recv = NULL;
	int posted = 0, err = 0;

	wr.wr.rdma.rkey = all->mr->rkey;
	wr.wr.rdma.remote_addr = (uintptr_t)all->memory;
	while (posted < FILL && (err = ibv_post_send(qp, &wr, &bad)) == 0)
		posted++;
	CHECK(err == ENOMEM && bad == &wr && posted >= DEPTH);
	for (int i = 0; i < posted; i++)
		CHECK(all_wc(all->cq).opcode == IBV_WC_RDMA_WRITE);
	CHECK(ibv_post_send(qp, &wr, &bad) == 0 && all_wc(all->cq).byte_len == 0);
	for (posted = 0; posted < FILL && (err = ibv_post_recv(qp, &recv, &bad_recv)) == 0;)
		posted++;
	CHECK(err == ENOMEM && bad_recv == &recv && posted >= DEPTH);
	CHECK(srq != NULL);
	for (posted = 0; posted < FILL && (err = ibv_post_srq_recv(srq, &recv, &bad_recv)) == 0;)
		posted++;
	CHECK(err == ENOMEM && bad_recv == &recv && posted >= DEPTH);
	CHECK(ibv_destroy_srq(srq) == 0);
}

/* The status of the next completion of a request, past the receives that are flushed with it */
static enum ibv_wc_status
status_of(struct ibv_cq *cq, uint64_t wr_id)
{
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(cq, 1, &wc);
	while (n == 0 || (n == 1 && wc.wr_id != wr_id));
	CHECK(n == 1);
	return wc.status;
}

/*
 * An unknown key, local or remote: the completion has the error, and no request is executed after
 * it.
 */
static void
wrong_key(struct all *all, bool remote)
{
	struct ibv_qp *a = all_qp(all, IBV_QPT_RC, all->cq, NULL, 0);
	struct ibv_qp *b = all_qp(all, IBV_QPT_RC, all->cq, NULL, 0);
	struct ibv_sge sge = {(uintptr_t)all->memory, 8, all->mr->lkey + !remote};
	struct ibv_send_wr *bad,
		wr = {
			.wr_id = 41,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = {(uintptr_t)all->memory, all->mr->rkey + remote},
		};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	all_connect(all, a, b);
	CHECK(ibv_post_send(a, &wr, &bad) == 0);
	CHECK(status_of(all->cq, 41) == (remote ? IBV_WC_REM_ACCESS_ERR : IBV_WC_LOC_PROT_ERR));
	CHECK(ibv_query_qp(a, &attr, IBV_QP_STATE, &init) == 0);
	CHECK(attr.qp_state == IBV_QPS_ERR && a->state == IBV_QPS_ERR);
	wr.wr_id = 42;
	CHECK(ibv_post_send(a, &wr, &bad) == 0);
	CHECK(status_of(all->cq, 42) == IBV_WC_WR_FLUSH_ERR);
	CHECK(ibv_destroy_qp(a) == 0 && ibv_destroy_qp(b) == 0);
}

static void
requests(struct all *all)
{
	struct ibv_qp *a = all_qp(all, IBV_QPT_RC, all->cq, NULL, 0);
	struct ibv_qp *b = all_qp(all, IBV_QPT_RC, all->cq, NULL, 0);

	all_connect(all, a, b);
	too_long(all, a);
	full(all, a);
	CHECK(ibv_destroy_qp(a) == 0 && ibv_destroy_qp(b) == 0);
	posted_too_early(all);
	wrong_key(all, false);
	wrong_key(all, true);
}

/* ---- objects ---- */

/* One of each kind, which use each other. */
struct objects {
	struct ibv_context *context;
	struct ibv_pd *pd, *parent;
	struct ibv_td *td;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_ah *ah;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_xrcd *xrcd;
};

static struct ibv_pd *
make_parent(const struct objects *o)
{
	struct ibv_parent_domain_init_attr attr = {.pd = o->pd, .td = o->td};

	return ibv_alloc_parent_domain(o->context, &attr);
}

static struct ibv_ah *
make_ah(struct all *all, struct ibv_pd *pd)
{
	struct ibv_ah_attr attr = {
		.grh = {.dgid = all->gid, .sgid_index = GID_INDEX, .hop_limit = 64},
		.is_global = 1,
		.port_num = PORT,
	};

	return ibv_create_ah(pd, &attr);
}

static void
make(struct all *all, struct objects *o)
{
	struct ibv_srq_init_attr srq = {NULL, {DEPTH, 1, 0}};
	struct ibv_xrcd_init_attr xrcd = {IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, -1, 0};
	struct ibv_td_init_attr td = {0};

	o->context = ibv_open_device(all->context->device);
	CHECK(o->context != NULL);
	o->pd = ibv_alloc_pd(o->context);
	o->td = ibv_alloc_td(o->context, &td);
	CHECK(o->pd != NULL && o->td != NULL);
	o->parent = make_parent(o);
	o->mr = ibv_reg_mr(o->pd, all->memory, 4096, IBV_ACCESS_LOCAL_WRITE);
	o->mw = ibv_alloc_mw(o->pd, IBV_MW_TYPE_1);
	o->ah = make_ah(all, o->pd);
	CHECK(o->parent != NULL && o->mr != NULL && o->mw != NULL && o->ah != NULL);
	o->channel = ibv_create_comp_channel(o->context);
	o->cq = ibv_create_cq(o->context, DEPTH, NULL, o->channel, 0);
	o->srq = ibv_create_srq(o->pd, &srq);
	o->xrcd = ibv_open_xrcd(o->context, &xrcd);
	CHECK(o->channel != NULL && o->cq != NULL && o->srq != NULL && o->xrcd != NULL);
	o->qp = make_qp(o->pd, o->cq, o->srq);
	CHECK(o->qp != NULL);
}

/* Objects of header functions, which read the object first */
static void
destroy_inline(const struct objects *o)
{
	CHECK(ibv_dealloc_mw(o->mw) == 0 && ibv_close_xrcd(o->xrcd) == 0);
}

/* Everything else but the thread domain, in the right order: each call says `err`. */
static void
destroy(const struct objects *o, int err)
{
	CHECK(ibv_destroy_qp(o->qp) == err);
	CHECK(ibv_destroy_srq(o->srq) == err);
	CHECK(ibv_destroy_cq(o->cq) == err);
	CHECK(ibv_destroy_comp_channel(o->channel) == err);
	CHECK(ibv_destroy_ah(o->ah) == err);
	CHECK(ibv_dereg_mr(o->mr) == err);
	CHECK(ibv_dealloc_pd(o->parent) == err);
	CHECK(ibv_dealloc_pd(o->pd) == err);
}

static void
in_use(const struct objects *o)
{
	CHECK(ibv_dealloc_pd(o->pd) == EBUSY);
	CHECK(ibv_dealloc_td(o->td) == EBUSY);
	CHECK(ibv_destroy_cq(o->cq) == EBUSY);
	CHECK(ibv_destroy_srq(o->srq) == EBUSY);
	CHECK(ibv_destroy_comp_channel(o->channel) == EBUSY);
}

/* In use, then destroyed, then destroyed again; and one pointer as that of another kind. */
static void
destroyed_twice(struct all *all)
{
	struct objects o;

	make(all, &o);
	in_use(&o);
	CHECK(ibv_destroy_qp((struct ibv_qp *)(void *)o.cq) == EINVAL);
	CHECK(ibv_dereg_mr(NULL) == EINVAL);
	destroy_inline(&o);
	destroy(&o, 0);
	destroy(&o, EINVAL);
	CHECK(ibv_dealloc_td(o.td) == 0);
	CHECK(ibv_close_device(o.context) == 0);
	CHECK(ibv_close_device(o.context) == EINVAL);
}

/* A closed context frees its remaining objects. */
static void
closed_with_objects(struct all *all)
{
	struct objects o;

	make(all, &o);
	CHECK(ibv_close_device(o.context) == 0);
	destroy(&o, EINVAL);
	CHECK(ibv_close_device(o.context) == EINVAL);
}

/* ---- processes and threads ---- */

/* Objects of the parent are refused in a child, which may have its own (not of its own engine). */
static void
child(struct all *all, struct objects *o, struct ibv_qp *qp)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;
	struct ibv_recv_wr recv = {0}, *bad_recv;
	struct ibv_async_event event;
	struct ibv_context *own;
	struct ibv_wc wc;

	CHECK(ibv_post_send(qp, &wr, &bad) == EPERM);
	CHECK(ibv_post_recv(qp, &recv, &bad_recv) == EPERM);
	CHECK(ibv_poll_cq(all->cq, 1, &wc) == -EPERM);
	CHECK_NULL(ibv_alloc_pd(o->context), EPERM);
	CHECK_NULL(ibv_reg_mr(o->pd, all->memory, 4096, 0), EPERM);
	CHECK(ibv_get_async_event(o->context, &event) == -1 && errno == EPERM);
	CHECK(ibv_destroy_qp(o->qp) == EPERM && ibv_dereg_mr(o->mr) == EPERM);
	CHECK(ibv_close_device(o->context) == EPERM);
	own = ibv_open_device(all->list[0]);
	CHECK(own != NULL ? ibv_close_device(own) == 0 : errno == EPERM);
}

static void
forked(struct all *all)
{
	struct ibv_qp *a = all_qp(all, IBV_QPT_RC, all->cq, NULL, 0);
	struct ibv_qp *b = all_qp(all, IBV_QPT_RC, all->cq, NULL, 0);
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;
	struct objects o;
	int status = -1;
	pid_t pid;

	make(all, &o);
	all_connect(all, a, b);
	pid = test_fork();
	if (pid == 0) {
		child(all, &o, a);
		_exit(0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(status == 0);
	CHECK(ibv_post_send(a, &wr, &bad) == 0 && all_wc(all->cq).status == IBV_WC_SUCCESS);
	CHECK(ibv_destroy_qp(a) == 0 && ibv_destroy_qp(b) == 0);
	destroy_inline(&o);
	destroy(&o, 0);
	CHECK(ibv_close_device(o.context) == 0); /* with the thread domain in it */
}

struct race {
	struct ibv_qp *qp;
	pthread_barrier_t start;
	int result[2];
};

static void *
racer(void *of)
{
	struct race *race = of;
	int self = pthread_barrier_wait(&race->start) == PTHREAD_BARRIER_SERIAL_THREAD;

	race->result[self] = ibv_destroy_qp(race->qp);
	return NULL;
}

static void
destroyed_by_two(struct all *all)
{
	struct race race;
	pthread_t threads[2];

	CHECK(pthread_barrier_init(&race.start, NULL, 2) == 0);
	for (int i = 0; i < RACES; i++) {
		race.qp = make_qp(all->pd, all->cq, NULL);
		CHECK(race.qp != NULL);
		for (int t = 0; t < 2; t++)
			CHECK(pthread_create(&threads[t], NULL, racer, &race) == 0);
		for (int t = 0; t < 2; t++)
			CHECK(pthread_join(threads[t], NULL) == 0);
		CHECK(race.result[0] + race.result[1] == EINVAL);
		CHECK(race.result[0] == 0 || race.result[1] == 0);
	}
	pthread_barrier_destroy(&race.start);
}

/* ---- signals ---- */

struct waiter {
	struct ibv_context *context;
	struct ibv_comp_channel *channel; /* NULL: for asynchronous events */
	int result, err;
	bool done;
};

static void *
wait_for_event(void *of)
{
	struct waiter *w = of;
	struct ibv_async_event event;
	struct ibv_cq *cq;
	void *context;

	w->result = w->channel != NULL ? ibv_get_cq_event(w->channel, &cq, &context)
				       : ibv_get_async_event(w->context, &event);
	w->err = errno;
	__atomic_store_n(&w->done, true, __ATOMIC_RELEASE);
	return NULL;
}

static void
on_signal(int number)
{
}

/* A signal ends waiting for events, as it ends read(2). HCAs in the program are polled instead. */
static void
interrupted(struct all *all)
{
	const struct sigaction action = {.sa_handler = on_signal};
	struct ibv_comp_channel *channel = ibv_create_comp_channel(all->context);
	pthread_t thread;

	CHECK(channel != NULL && sigaction(SIGUSR1, &action, NULL) == 0);
	for (int i = 0; i < 2; i++) {
		struct waiter w = {.context = all->context, .channel = i == 0 ? channel : NULL};

		if (strncmp(ibv_get_device_name(all->context->device), "embed", 5) == 0)
			break;
		alarm(240);
		CHECK(pthread_create(&thread, NULL, wait_for_event, &w) == 0);
		while (!__atomic_load_n(&w.done, __ATOMIC_ACQUIRE)) {
			CHECK(pthread_kill(thread, SIGUSR1) == 0);
			usleep(1000);
		}
		CHECK(pthread_join(thread, NULL) == 0);
		alarm(0);
		CHECK(w.result == -1 && w.err == EINTR);
	}
	CHECK(ibv_destroy_comp_channel(channel) == 0);
}

void
all_wrong(struct all *all)
{
	requests(all);
	destroyed_twice(all);
	closed_with_objects(all);
	forked(all);
	destroyed_by_two(all);
	interrupted(all);
}
