/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Cost of the verbs front: WRITEs of 64 bytes in lists of 32, between two QPs of one device, by the
 * native interface, by ibv_post_send and ibv_poll_cq (with lists that stay as they are, or are
 * written again each time, as programs do), and by ibv_wr_start .. ibv_wr_complete and
 * ibv_start_poll; and datagrams with address handles, without a receiver, by the first two. The
 * ways take turns. It prints the medians of the times, and of their ratios to the native interface
 * in the same turn.
 *
 *   SOFTHCA_DEVICE=hca0 LD_LIBRARY_PATH=build/src/verbs build/benchmarks/verbs_cost [TURNS]
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <infiniband/verbs.h>
#include <softhca/softhca.h>

#define BYTES 64u
#define LIST 32u
#define LISTS 4u /* outstanding */
#define LISTS_A_TURN 2000u
#define QUEUE (LIST * LISTS)
#define MEMORY 8192u
#define MAX_TURNS 101
#define QKEY 0x11111111u

static _Alignas(4096) char memory[MEMORY];

static void
must(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "verbs_cost: %s: %s\n", what, softhca_last_error(NULL));
	exit(1);
}

/* ---- native ---- */

struct native {
	uint32_t type;
	struct softhca_pd *pd;
	struct softhca_qp *qp[2];
	struct softhca_cq *cq;
	struct softhca_sge sge;
	struct softhca_send_wr wr[LIST];
};

static void
native_connect(struct softhca_qp *qp, uint32_t peer, const union softhca_gid *gid)
{
	const uint32_t init = SOFTHCA_QP_STATE | SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT |
			      SOFTHCA_QP_ACCESS_FLAGS;
	const uint32_t rtr = SOFTHCA_QP_STATE | SOFTHCA_QP_AV | SOFTHCA_QP_PATH_MTU |
			     SOFTHCA_QP_DEST_QPN | SOFTHCA_QP_RQ_PSN |
			     SOFTHCA_QP_MAX_DEST_RD_ATOMIC | SOFTHCA_QP_MIN_RNR_TIMER;
	const uint32_t rts = SOFTHCA_QP_STATE | SOFTHCA_QP_TIMEOUT | SOFTHCA_QP_RETRY_CNT |
			     SOFTHCA_QP_RNR_RETRY | SOFTHCA_QP_SQ_PSN | SOFTHCA_QP_MAX_QP_RD_ATOMIC;
	struct softhca_qp_attr attr = {
		.qp_state = SOFTHCA_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = SOFTHCA_ACCESS_REMOTE_WRITE,
		.path_mtu = SOFTHCA_MTU_1024,
		.dest_qp_num = peer,
		.ah_attr = {.dgid = *gid, .is_global = 1, .port_num = 1},
		.timeout = 17,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};

	must(softhca_modify_qp(qp, &attr, init) == 0, "INIT");
	attr.qp_state = SOFTHCA_QPS_RTR;
	must(softhca_modify_qp(qp, &attr, rtr) == 0, "RTR");
	attr.qp_state = SOFTHCA_QPS_RTS;
	must(softhca_modify_qp(qp, &attr, rts) == 0, "RTS");
}

static void
native_to_rts(struct softhca_qp *qp)
{
	struct softhca_qp_attr attr = {
		.qp_state = SOFTHCA_QPS_INIT,
		.port_num = 1,
		.qkey = QKEY,
	};

	must(softhca_modify_qp(qp, &attr,
			       SOFTHCA_QP_STATE | SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT |
				       SOFTHCA_QP_QKEY) == 0,
	     "INIT");
	attr.qp_state = SOFTHCA_QPS_RTR;
	must(softhca_modify_qp(qp, &attr, SOFTHCA_QP_STATE) == 0, "RTR");
	attr.qp_state = SOFTHCA_QPS_RTS;
	must(softhca_modify_qp(qp, &attr, SOFTHCA_QP_STATE | SOFTHCA_QP_SQ_PSN) == 0, "RTS");
}

static void
native_address(struct native *n, const union softhca_gid *gid)
{
	const struct softhca_ah_attr path = {.dgid = *gid, .is_global = 1, .port_num = 1};
	struct softhca_ah *ah = softhca_create_ah(n->pd, &path);

	must(ah != NULL, "address handle");
	for (uint32_t i = 0; i < LIST; i++) {
		n->wr[i].opcode = SOFTHCA_WR_SEND;
		n->wr[i].wr.ud.ah = ah;
		n->wr[i].wr.ud.remote_qpn = n->qp[1]->qp_num;
		n->wr[i].wr.ud.remote_qkey = QKEY;
	}
}

static void
native_open(struct native *n)
{
	const struct softhca_cq_init_attr cq = {.cqe = QUEUE};
	struct softhca_qp_init_attr init = {
		.cap = {QUEUE, 1, 1, 1, 0},
		.qp_type = n->type,
	};
	struct softhca_context *ctx;
	union softhca_gid gid;
	struct softhca_mr *mr;

	must(softhca_open(NULL, &ctx) == 0, "open");
	must(softhca_query_gid(ctx, 1, 0, &gid) == 0, "GID");
	n->pd = softhca_alloc_pd(ctx);
	mr = softhca_reg_mr(n->pd, memory, MEMORY,
			    SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE);
	n->cq = softhca_create_cq(ctx, &cq);
	must(mr != NULL && n->cq != NULL, "region and CQ");
	init.send_cq = init.recv_cq = n->cq;
	for (int i = 0; i < 2; i++)
		must((n->qp[i] = softhca_create_qp(n->pd, &init)) != NULL, "QP");
	for (int i = 0; i < 2; i++)
		if (n->type == SOFTHCA_QPT_UD)
			native_to_rts(n->qp[i]);
		else
			native_connect(n->qp[i], n->qp[1 - i]->qp_num, &gid);
	n->sge = (struct softhca_sge){(uintptr_t)memory, BYTES, mr->lkey};
	for (uint32_t i = 0; i < LIST; i++)
		n->wr[i] = (struct softhca_send_wr){
			.next = i < LIST - 1 ? &n->wr[i + 1] : NULL,
			.sg_list = &n->sge,
			.num_sge = 1,
			.opcode = SOFTHCA_WR_RDMA_WRITE,
			.send_flags = i == LIST - 1 ? SOFTHCA_SEND_SIGNALED : 0,
			.wr.rdma = {(uintptr_t)memory + MEMORY / 2, mr->rkey},
		};
	if (n->type == SOFTHCA_QPT_UD)
		native_address(n, &gid);
}

static void
native_post(void *of)
{
	struct native *n = of;

	must(softhca_post_send(n->qp[0], n->wr, NULL) == 0, "post");
}

static unsigned int
native_poll(void *of)
{
	struct softhca_wc wc[LISTS];
	int got = softhca_poll_cq(((struct native *)of)->cq, LISTS, wc);

	for (int i = 0; i < got; i++)
		must(wc[i].status == SOFTHCA_WC_SUCCESS, softhca_wc_status_str(wc[i].status));
	return (unsigned int)got;
}

/* ---- verbs ---- */

struct verbs {
	enum ibv_qp_type type;
	struct ibv_pd *pd;
	struct ibv_qp *qp[2];
	struct ibv_qp_ex *ex;
	struct ibv_cq_ex *cq;
	struct ibv_sge sge, sges[LIST];
	uint32_t rkey;
	struct ibv_send_wr wr[LIST];
};

static void
verbs_connect(struct ibv_qp *qp, uint32_t peer, const union ibv_gid *gid)
{
	const int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	const int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	const int rts = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer,
		.ah_attr = {.grh = {.dgid = *gid}, .is_global = 1, .port_num = 1},
		.timeout = 17,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};

	must(ibv_modify_qp(qp, &attr, init) == 0, "INIT");
	attr.qp_state = IBV_QPS_RTR;
	must(ibv_modify_qp(qp, &attr, rtr) == 0, "RTR");
	attr.qp_state = IBV_QPS_RTS;
	must(ibv_modify_qp(qp, &attr, rts) == 0, "RTS");
}

static void
verbs_to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};

	must(ibv_modify_qp(qp, &attr,
			   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) == 0,
	     "INIT");
	attr.qp_state = IBV_QPS_RTR;
	must(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0, "RTR");
	attr.qp_state = IBV_QPS_RTS;
	must(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0, "RTS");
}

static void
verbs_address(struct verbs *v, const union ibv_gid *gid)
{
	struct ibv_ah_attr path = {.grh = {.dgid = *gid}, .is_global = 1, .port_num = 1};
	struct ibv_ah *ah = ibv_create_ah(v->pd, &path);

	must(ah != NULL, "address handle");
	for (uint32_t i = 0; i < LIST; i++) {
		v->wr[i].opcode = IBV_WR_SEND;
		v->wr[i].wr.ud.ah = ah;
		v->wr[i].wr.ud.remote_qpn = v->qp[1]->qp_num;
		v->wr[i].wr.ud.remote_qkey = QKEY;
	}
}

static void
verbs_open(struct verbs *v, struct ibv_context *context)
{
	struct ibv_cq_init_attr_ex cq = {.cqe = QUEUE, .wc_flags = IBV_WC_STANDARD_FLAGS};
	struct ibv_pd *pd = v->pd = ibv_alloc_pd(context);
	struct ibv_mr *mr =
		ibv_reg_mr(pd, memory, MEMORY, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	struct ibv_qp_init_attr_ex init = {
		.cap = {QUEUE, 1, 1, 1, 0},
		.qp_type = v->type,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags =
			v->type == IBV_QPT_UD ? IBV_QP_EX_WITH_SEND : IBV_QP_EX_WITH_RDMA_WRITE,
	};
	union ibv_gid gid;

	v->cq = ibv_create_cq_ex(context, &cq);
	must(mr != NULL && v->cq != NULL, "region and CQ");
	must(ibv_query_gid(context, 1, 0, &gid) == 0, "GID");
	init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(v->cq);
	for (int i = 0; i < 2; i++)
		must((v->qp[i] = ibv_create_qp_ex(context, &init)) != NULL, "QP");
	for (int i = 0; i < 2; i++)
		if (v->type == IBV_QPT_UD)
			verbs_to_rts(v->qp[i]);
		else
			verbs_connect(v->qp[i], v->qp[1 - i]->qp_num, &gid);
	v->ex = ibv_qp_to_qp_ex(v->qp[0]);
	v->rkey = mr->rkey;
	v->sge = (struct ibv_sge){(uintptr_t)memory, BYTES, mr->lkey};
	for (uint32_t i = 0; i < LIST; i++)
		v->wr[i] = (struct ibv_send_wr){
			.next = i < LIST - 1 ? &v->wr[i + 1] : NULL,
			.sg_list = &v->sge,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = i == LIST - 1 ? IBV_SEND_SIGNALED : 0,
			.wr.rdma = {(uintptr_t)memory + MEMORY / 2, mr->rkey},
		};
	if (v->type == IBV_QPT_UD)
		verbs_address(v, &gid);
}

static void
verbs_post(void *of)
{
	struct verbs *v = of;
	struct ibv_send_wr *bad;

	must(ibv_post_send(v->qp[0], v->wr, &bad) == 0, "post");
}

/* As pieces_post() has to: every request has other addresses and keys. */
static void
filled_post(void *of)
{
	struct verbs *v = of;

	for (uint32_t i = 0; i < LIST; i++) {
		struct ibv_send_wr *wr = &v->wr[i];

		v->sges[i] = v->sge;
		wr->wr_id = i;
		wr->next = i < LIST - 1 ? &v->wr[i + 1] : NULL;
		wr->sg_list = &v->sges[i];
		wr->num_sge = 1;
		wr->opcode = IBV_WR_RDMA_WRITE;
		wr->send_flags = i == LIST - 1 ? IBV_SEND_SIGNALED : 0;
		wr->wr.rdma.remote_addr = (uintptr_t)memory + MEMORY / 2;
		wr->wr.rdma.rkey = v->rkey;
	}
	verbs_post(v);
}

static unsigned int
verbs_poll(void *of)
{
	struct ibv_wc wc[LISTS];
	int got = ibv_poll_cq(ibv_cq_ex_to_cq(((struct verbs *)of)->cq), LISTS, wc);

	for (int i = 0; i < got; i++)
		must(wc[i].status == IBV_WC_SUCCESS, ibv_wc_status_str(wc[i].status));
	return (unsigned int)got;
}

static void
pieces_post(void *of)
{
	struct verbs *v = of;

	ibv_wr_start(v->ex);
	for (uint32_t i = 0; i < LIST; i++) {
		v->ex->wr_id = i;
		v->ex->wr_flags = i == LIST - 1 ? IBV_SEND_SIGNALED : 0;
		ibv_wr_rdma_write(v->ex, v->rkey, (uintptr_t)memory + MEMORY / 2);
		ibv_wr_set_sge(v->ex, v->sge.lkey, v->sge.addr, v->sge.length);
	}
	must(ibv_wr_complete(v->ex) == 0, "post");
}

static unsigned int
pieces_poll(void *of)
{
	struct ibv_cq_ex *cq = ((struct verbs *)of)->cq;
	struct ibv_poll_cq_attr attr = {0};
	unsigned int got = 0;

	if (ibv_start_poll(cq, &attr) != 0)
		return 0;
	do {
		must(cq->status == IBV_WC_SUCCESS, ibv_wc_status_str(cq->status));
		got++;
	} while (ibv_next_poll(cq) == 0);
	ibv_end_poll(cq);
	return got;
}

/* ---- turns ---- */

struct way {
	const char *name;
	int base; /* the way it is compared with */
	void (*post)(void *of);
	unsigned int (*poll)(void *of);
	void *of;
	double ns[MAX_TURNS]; /* per message */
};

static double
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double
take_turn(const struct way *way)
{
	unsigned int posted = 0, done = 0;
	double start = now_ns();

	while (done < LISTS_A_TURN) {
		if (posted < LISTS_A_TURN && posted - done < LISTS) {
			way->post(way->of);
			posted++;
		} else {
			done += way->poll(way->of);
		}
	}
	return (now_ns() - start) / (LISTS_A_TURN * LIST);
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double
median(const double *values, int n)
{
	double sorted[MAX_TURNS];

	memcpy(sorted, values, (size_t)n * sizeof(double));
	qsort(sorted, (size_t)n, sizeof(double), compare);
	return sorted[n / 2];
}

static void
print(const struct way *way, const struct way *base, int turns)
{
	double ratio[MAX_TURNS];

	for (int turn = 0; turn < turns; turn++)
		ratio[turn] = way->ns[turn] / base->ns[turn];
	printf("%-12s %6.1f ns a message, %5.1f %%\n", way->name, median(way->ns, turns),
	       median(ratio, turns) * 100);
}

int
main(int argc, char **argv)
{
	static struct native n = {.type = SOFTHCA_QPT_RC}, n_ud = {.type = SOFTHCA_QPT_UD};
	static struct verbs lists = {.type = IBV_QPT_RC}, pieces = {.type = IBV_QPT_RC};
	static struct verbs filled = {.type = IBV_QPT_RC};
	static struct verbs ud = {.type = IBV_QPT_UD};
	static struct way ways[] = {
		{"WRITE native", 0, native_post, native_poll, &n, {0}},
		{"WRITE lists", 0, verbs_post, verbs_poll, &lists, {0}},
		{"WRITE filled", 0, filled_post, verbs_poll, &filled, {0}},
		{"WRITE pieces", 0, pieces_post, pieces_poll, &pieces, {0}},
		{"UD native", 4, native_post, native_poll, &n_ud, {0}},
		{"UD lists", 4, verbs_post, verbs_poll, &ud, {0}},
	};
	struct ibv_device **devices = ibv_get_device_list(NULL);
	int turns = argc > 1 ? atoi(argv[1]) : 11;
	struct ibv_context *context;
	double ns;

	must(turns > 0 && turns <= MAX_TURNS, "turns");
	must(devices != NULL && devices[0] != NULL, "no device");
	context = ibv_open_device(devices[0]);
	must(context != NULL, "device");
	native_open(&n);
	native_open(&n_ud);
	verbs_open(&ud, context);
	verbs_open(&lists, context);
	verbs_open(&filled, context);
	verbs_open(&pieces, context);
	for (int turn = -1; turn < turns; turn++)
		for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
			ns = take_turn(&ways[i]);
			if (turn >= 0) /* the first is to warm up */
				ways[i].ns[turn] = ns;
		}
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		print(&ways[i], &ways[ways[i].base], turns);
	return 0;
}
