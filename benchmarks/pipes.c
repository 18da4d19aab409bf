/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Several pipelines against as many processes with one: pipes [SECONDS [ROUNDS [PIPES [crossed]]]].
 *
 * A thread for each CPU posts WRITEs to its QPs, polls its stages of two HCAs and takes the
 * completions. Either the threads are of one process whose HCAs have PIPES pipelines, or each is a
 * process whose HCAs have one. Rounds of both alternate; prints the rates in messages per second,
 * their ratio, and the share of frames that were handed over, as JSON. `crossed`: each pipeline has
 * the queue of another one, so that every frame is handed over: a port that distributes by a hash
 * gives (PIPES - 1) / PIPES of the frames to others.
 */

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <softhca/embed.h>
#include <softhca/softhca.h>

#include "embed_impl.h"
#include "engine/impl.h"
#include "graph/executor.h"
#include "lib_types.h"

#define THREADS_MAX 16u
#define QPS 64u
#define DEPTH 128u
#define LIST 32u
#define ROUNDS_MAX 31u
#define SLOT 4096u
#define ACCESS (SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE)

struct one_qp {
	struct softhca_qp *qp, *peer;
	uint32_t left; /* requests that may be posted */
	char *source;
	uint64_t target;
};

struct thread {
	pthread_t id;
	unsigned int pipe;
	int cpu;
	struct softhca_cq *cq, *peer_cq;
	struct one_qp qp[QPS];
	unsigned int qps;
	uint64_t done;
};

struct run {
	struct softhca_embed *embed;
	struct softhca_context *ctx[2];
	struct softhca_pd *pd[2];
	struct softhca_mr *mr[2];
	char *memory[2];
	struct thread thread[THREADS_MAX];
	unsigned int pipes;
	uint32_t bytes;
	bool crossed;
	double seconds;
	uint64_t start; /* ns; threads wait for each other */
	unsigned int ready;
};

struct result {
	double rate;   /* messages per second */
	double handed; /* of the frames */
};

static void
must(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "pipes: %s: %s; %s\n", what, softhca_last_error(NULL),
		softhca_embed_last_error());
	exit(1);
}

static void
open_hcas(struct run *r)
{
	struct softhca_embed_config c;

	softhca_embed_config_init(&c);
	c.hugepages = 2;
	c.memory_mb = 512;
	c.log_qps = 8;
	c.log_cqs = 8;
	c.log_mpts = 10;
	c.log_mtts = 14;
	c.seed = 1;
	c.pipelines = r->pipes;
	must(softhca_embed_create(&c, &r->embed) == 0, "embed_create");
	for (unsigned int i = 0; i < 2; i++) {
		must(softhca_embed_open(r->embed, i, &r->ctx[i]) == 0, "open");
		r->pd[i] = softhca_alloc_pd(r->ctx[i]);
		r->memory[i] = softhca_alloc(QPS * SLOT);
		must(r->pd[i] != NULL && r->memory[i] != NULL, "memory");
		memset(r->memory[i], 1, QPS * SLOT);
		r->mr[i] = softhca_reg_mr(r->pd[i], r->memory[i], QPS * SLOT, ACCESS);
		must(r->mr[i] != NULL, "reg_mr");
	}
}

static void
connect_to(struct softhca_qp *qp, const struct softhca_qp *peer, struct softhca_context *peer_ctx)
{
	struct softhca_qp_attr a = {
		.port_num = 1,
		.qp_access_flags = ACCESS,
		.path_mtu = SOFTHCA_MTU_4096,
		.dest_qp_num = peer->qp_num,
		.min_rnr_timer = 1,
		.timeout = 20,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.ah_attr = {.is_global = 1, .port_num = 1},
	};

	must(softhca_query_gid(peer_ctx, 1, 0, &a.ah_attr.dgid) == 0, "query_gid");
	a.qp_state = SOFTHCA_QPS_INIT;
	must(softhca_modify_qp(qp, &a,
			       SOFTHCA_QP_STATE | SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT |
				       SOFTHCA_QP_ACCESS_FLAGS) == 0,
	     "INIT");
	a.qp_state = SOFTHCA_QPS_RTR;
	must(softhca_modify_qp(qp, &a,
			       SOFTHCA_QP_STATE | SOFTHCA_QP_AV | SOFTHCA_QP_PATH_MTU |
				       SOFTHCA_QP_DEST_QPN | SOFTHCA_QP_RQ_PSN |
				       SOFTHCA_QP_MAX_DEST_RD_ATOMIC | SOFTHCA_QP_MIN_RNR_TIMER) ==
		     0,
	     "RTR");
	a.qp_state = SOFTHCA_QPS_RTS;
	must(softhca_modify_qp(qp, &a,
			       SOFTHCA_QP_STATE | SOFTHCA_QP_SQ_PSN | SOFTHCA_QP_TIMEOUT |
				       SOFTHCA_QP_RETRY_CNT | SOFTHCA_QP_RNR_RETRY |
				       SOFTHCA_QP_MAX_QP_RD_ATOMIC) == 0,
	     "RTS");
}

static struct softhca_qp *
create_qp(struct run *r, unsigned int side, struct softhca_cq *cq)
{
	struct softhca_qp_init_attr attr = {
		.qp_type = SOFTHCA_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = DEPTH,
			.max_send_sge = 1,
			.max_recv_wr = 1,
			.max_recv_sge = 1},
	};
	struct softhca_qp *qp = softhca_create_qp(r->pd[side], &attr);

	must(qp != NULL, "create_qp");
	return qp;
}

/* QPs go to the pipes in turn, so a thread's QPs of both sides are in its pipe. */
static void
open_qps(struct run *r, unsigned int qps)
{
	struct softhca_cq_init_attr ca = {.cqe = QPS * DEPTH};

	for (unsigned int k = 0; k < r->pipes; k++) {
		r->thread[k].cq = softhca_create_cq(r->ctx[0], &ca);
		r->thread[k].peer_cq = softhca_create_cq(r->ctx[1], &ca);
		must(r->thread[k].cq != NULL && r->thread[k].peer_cq != NULL, "create_cq");
	}
	for (unsigned int i = 0; i < qps; i++) {
		struct thread *t = &r->thread[i % r->pipes];
		struct one_qp *q = &t->qp[t->qps++];

		q->qp = create_qp(r, 0, t->cq);
		q->peer = create_qp(r, 1, t->peer_cq);
		if (i < r->pipes)
			t->pipe = q->qp->qp_num % r->pipes;
		must(q->qp->qp_num % r->pipes == t->pipe && q->peer->qp_num % r->pipes == t->pipe,
		     "QPs are not dealt in turn");
		connect_to(q->qp, q->peer, r->ctx[1]);
		connect_to(q->peer, q->qp, r->ctx[0]);
		q->left = DEPTH;
		q->source = r->memory[0] + i * SLOT;
		q->target = (uintptr_t)(r->memory[1] + i * SLOT);
	}
}

static void
post(struct run *r, struct one_qp *q)
{
	struct softhca_sge sge = {(uintptr_t)q->source, r->bytes, r->mr[0]->lkey};
	struct softhca_send_wr wr[LIST], *bad;

	for (unsigned int i = 0; i < LIST; i++)
		wr[i] = (struct softhca_send_wr){
			.wr_id = (uintptr_t)q,
			.next = i + 1 < LIST ? &wr[i + 1] : NULL,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = SOFTHCA_WR_RDMA_WRITE,
			.send_flags = SOFTHCA_SEND_SIGNALED,
			.wr.rdma = {.remote_addr = q->target, .rkey = r->mr[1]->rkey},
		};
	must(softhca_post_send(q->qp, wr, &bad) == 0, "post_send");
	q->left -= LIST;
}

static void
turn(struct run *r, struct thread *t, uint64_t now)
{
	struct softhca_wc wc[4 * LIST];
	int n;

	for (unsigned int i = 0; i < t->qps; i++)
		if (t->qp[i].left >= LIST)
			post(r, &t->qp[i]);
	for (unsigned int i = 0; i < 2; i++)
		hca_poll(r->embed->side[i].hca, t->pipe, now);
	n = softhca_poll_cq(t->cq, 4 * LIST, wc);
	for (int i = 0; i < n; i++) {
		must(wc[i].status == SOFTHCA_WC_SUCCESS, softhca_wc_status_str(wc[i].status));
		((struct one_qp *)(uintptr_t)wc[i].wr_id)->left++;
	}
	t->done += n > 0 ? (uint64_t)n : 0;
}

static void
pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

static struct run run;

static void *
work(void *arg)
{
	struct thread *t = arg;
	uint64_t now, end;

	pin(t->cpu);
	__atomic_fetch_add(&run.ready, 1, __ATOMIC_SEQ_CST);
	while ((now = __atomic_load_n(&run.start, __ATOMIC_ACQUIRE)) == 0)
		;
	end = now + (uint64_t)(run.seconds * 0.2e9);
	while ((now = hca_clock_ns()) < end)
		turn(&run, t, now);
	t->done = 0;
	end = now + (uint64_t)(run.seconds * 1e9);
	while ((now = hca_clock_ns()) < end)
		turn(&run, t, now);
	return NULL;
}

static uint64_t
counter(const struct run *r, const char *name)
{
	uint64_t sum = 0;

	for (unsigned int c = 0; c < hca_counter_count(); c++)
		for (unsigned int i = 0; i < 2 && strcmp(hca_counter_name(c), name) == 0; i++)
			sum += hca_counter_value(r->embed->side[i].hca, c);
	return sum;
}

/* Before frames are sent */
static void
cross_queues(struct run *r)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct hca *h = r->embed->side[i].hca;

		for (unsigned int n = 0; n < r->pipes; n++)
			h->pipe[n].port_queue = (uint16_t)((n + 1) % r->pipes);
	}
}

/* In a process for itself. */
static void
measure(unsigned int pipes, unsigned int qps, const int *cpus, int out)
{
	struct result result = {0};

	run.pipes = pipes;
	open_hcas(&run);
	if (run.crossed)
		cross_queues(&run);
	open_qps(&run, qps);
	/* from here on the threads run the stages, and no call of the library does */
	for (unsigned int i = 0; i < 2; i++)
		((struct lib_context *)run.ctx[i])->progress = NULL;
	for (unsigned int k = 0; k < pipes; k++) {
		run.thread[k].cpu = cpus[k];
		must(pthread_create(&run.thread[k].id, NULL, work, &run.thread[k]) == 0, "thread");
	}
	while (__atomic_load_n(&run.ready, __ATOMIC_SEQ_CST) != pipes)
		usleep(1000);
	__atomic_store_n(&run.start, hca_clock_ns(), __ATOMIC_RELEASE);
	for (unsigned int k = 0; k < pipes; k++) {
		pthread_join(run.thread[k].id, NULL);
		result.rate += (double)run.thread[k].done / run.seconds;
	}
	result.handed =
		(double)counter(&run, "rx_handed_over") / (double)counter(&run, "rcvd_pkts");
	must(write(out, &result, sizeof(result)) == sizeof(result), "write");
	_exit(0);
}

/* Sum over `processes`, each with `pipes` threads. */
static struct result
round_of(unsigned int processes, unsigned int pipes)
{
	struct result sum = {0}, one;
	int fd[2], cpus[THREADS_MAX], status;

	for (unsigned int k = 0; k < THREADS_MAX; k++)
		cpus[k] = (int)(k % (unsigned int)sysconf(_SC_NPROCESSORS_ONLN));
	must(pipe(fd) == 0, "pipe");
	for (unsigned int p = 0; p < processes; p++)
		if (fork() == 0)
			measure(pipes, QPS / processes, cpus + p, fd[1]);
	for (unsigned int p = 0; p < processes; p++) {
		must(wait(&status) > 0 && status == 0, "a process");
		must(read(fd[0], &one, sizeof(one)) == sizeof(one), "result");
		sum.rate += one.rate;
		sum.handed += one.handed / processes;
	}
	close(fd[0]);
	close(fd[1]);
	return sum;
}

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double
median(double *v, unsigned int n)
{
	qsort(v, n, sizeof(v[0]), by_value);
	return v[n / 2];
}

static void
compare(uint32_t bytes, unsigned int pipes, unsigned int rounds)
{
	double joined[ROUNDS_MAX], apart[ROUNDS_MAX], alone[ROUNDS_MAX], ratio[ROUNDS_MAX];
	double handed = 0;

	run.bytes = bytes;
	for (unsigned int i = 0; i < rounds; i++) {
		struct result r = round_of(1, pipes);

		joined[i] = r.rate;
		handed = r.handed;
		apart[i] = round_of(pipes, 1).rate;
		alone[i] = round_of(1, 1).rate;
		ratio[i] = joined[i] / apart[i];
	}
	printf("{\"bytes\": %u, \"pipelines\": %u, \"rounds\": %u, \"ratio\": %.3f, \"joined\": "
	       "%.0f, \"apart\": %.0f, \"one\": %.0f, \"handed_over\": %.3f}\n",
	       bytes, pipes, rounds, median(ratio, rounds), median(joined, rounds),
	       median(apart, rounds), median(alone, rounds), handed);
	fflush(stdout);
}

int
main(int argc, char **argv)
{
	unsigned int rounds = argc > 2 ? (unsigned int)atoi(argv[2]) : 5;
	unsigned int pipes = argc > 3 ? (unsigned int)atoi(argv[3]) : 2;

	run.seconds = argc > 1 ? atof(argv[1]) : 0.5;
	must(run.seconds > 0 && rounds >= 1 && rounds <= ROUNDS_MAX && pipes >= 1 &&
		     pipes <= THREADS_MAX && (argc <= 4 || strcmp(argv[4], "crossed") == 0),
	     "usage: pipes [SECONDS [ROUNDS [PIPES [crossed]]]]");
	run.crossed = argc > 4;
	compare(64, pipes, rounds);
	compare(4096, pipes, rounds);
	return 0;
}
