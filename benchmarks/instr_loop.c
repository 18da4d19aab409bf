/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The messages whose instructions benchmarks/instr counts: two HCAs in this process, everything in
 * one thread. Under callgrind each operation is dumped twice, after FEW and after MANY messages;
 * the difference is the cost of messages, without the parts done once per operation.
 *
 * Each round posts BATCH requests, runs the engine until it is idle, and polls. So post_send,
 * post_recv and poll_cq never run the engine themselves and can be counted apart.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <valgrind/callgrind.h>

#include <softhca/embed.h>
#include <softhca/softhca.h>

#include "instr_ub.h"

#define BATCH 16u
#define FEW 4u	 /* rounds; and the next */
#define MANY 36u /* so that 512 messages are the difference */
#define WARM 8u
#define ROUND_NS 1000u /* of the engine */
#define BYTES 8192u
#define GRH SOFTHCA_GRH_BYTES
#define QKEY 0x11111111u
#define ACCESS \
	(SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE | SOFTHCA_ACCESS_REMOTE_READ | \
	 SOFTHCA_ACCESS_REMOTE_ATOMIC)

/* One operation of the table */
struct operation {
	const char *name; /* of the dump */
	uint32_t opcode;
	uint32_t bytes;
	uint32_t qp_type;
	bool receives, srq, ub;
	enum instr_ub_op ub_op;
	bool list; /* one call posts the whole batch */
	bool qps;  /* each message of a batch has a QP of its own */
};

static const struct operation operations[] = {
	{"write-64", SOFTHCA_WR_RDMA_WRITE, 64, SOFTHCA_QPT_RC},
	{"read-64", SOFTHCA_WR_RDMA_READ, 64, SOFTHCA_QPT_RC},
	{"send-64", SOFTHCA_WR_SEND, 64, SOFTHCA_QPT_RC, .receives = true},
	{"srq-64", SOFTHCA_WR_SEND, 64, SOFTHCA_QPT_RC, .receives = true, .srq = true},
	{"fetch-add", SOFTHCA_WR_ATOMIC_FETCH_AND_ADD, 8, SOFTHCA_QPT_RC},
	{"ud-64", SOFTHCA_WR_SEND, 64, SOFTHCA_QPT_UD, .receives = true},
	{"qps-64", SOFTHCA_WR_RDMA_WRITE, 64, SOFTHCA_QPT_RC, .qps = true},
	{"write-4096", SOFTHCA_WR_RDMA_WRITE, 4096, SOFTHCA_QPT_RC},
	{"read-4096", SOFTHCA_WR_RDMA_READ, 4096, SOFTHCA_QPT_RC},
	{"ub-write-64", .bytes = 64, .ub = true},
	{"ub-read-64", .bytes = 64, .ub = true, .ub_op = INSTR_UB_READ},
	{"ub-send-64", .bytes = 64, .ub = true, .ub_op = INSTR_UB_SEND},
	{"ub-write-4096", .bytes = 4096, .ub = true},
	{"ub-list-64", .bytes = 64, .ub = true, .list = true},
};

struct side {
	struct softhca_context *ctx;
	struct softhca_pd *pd;
	struct softhca_cq *cq;
	struct softhca_srq *srq;
	struct softhca_qp *qp[BATCH]; /* the first one, or all */
	struct softhca_mr *mr;
	struct softhca_ah *ah; /* of the other side */
	char *memory;
};

static struct softhca_embed *embed;

/*
 * Takes the place of hca_clock_ns(): time passes with the rounds of the engine, so that counts
 * repeat.
 */
uint64_t __wrap_hca_clock_ns(void);

uint64_t
__wrap_hca_clock_ns(void)
{
	static uint64_t now = 1000000000u;

	return now += ROUND_NS;
}

static void
must(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "instr_loop: %s: %s; %s\n", what, softhca_last_error(NULL),
		softhca_embed_last_error());
	exit(1);
}

static unsigned int
qp_count(const struct operation *op)
{
	return op->qps ? BATCH : 1;
}

static void
open_side(unsigned int index, const struct operation *op, struct side *s)
{
	struct softhca_cq_init_attr cq = {.cqe = 4 * BATCH};
	struct softhca_srq_init_attr srq = {.attr = {.max_wr = 2 * BATCH, .max_sge = 1}};
	struct softhca_qp_init_attr attr = {.qp_type = op->qp_type};

	must(softhca_embed_open(embed, index, &s->ctx) == 0, "open");
	s->pd = softhca_alloc_pd(s->ctx);
	s->cq = softhca_create_cq(s->ctx, &cq);
	s->memory = softhca_alloc(BYTES);
	must(s->pd != NULL && s->cq != NULL && s->memory != NULL, "objects");
	memset(s->memory, (int)index, BYTES);
	s->mr = softhca_reg_mr(s->pd, s->memory, BYTES, ACCESS);
	must(s->mr != NULL, "reg_mr");
	if (op->srq)
		s->srq = softhca_create_srq(s->pd, &srq);
	must(!op->srq || s->srq != NULL, "create_srq");
	attr.send_cq = attr.recv_cq = s->cq;
	attr.srq = s->srq;
	attr.cap = (struct softhca_qp_cap){.max_send_wr = 2 * BATCH, .max_send_sge = 1};
	if (!op->srq) {
		attr.cap.max_recv_wr = 2 * BATCH;
		attr.cap.max_recv_sge = 1;
	}
	for (unsigned int i = 0; i < qp_count(op); i++) {
		s->qp[i] = softhca_create_qp(s->pd, &attr);
		must(s->qp[i] != NULL, "create_qp");
	}
}

static void
close_side(struct side *s)
{
	must(s->ah == NULL || softhca_destroy_ah(s->ah) == 0, "destroy_ah");
	for (unsigned int i = 0; i < BATCH; i++)
		must(s->qp[i] == NULL || softhca_destroy_qp(s->qp[i]) == 0, "destroy_qp");
	must(s->srq == NULL || softhca_destroy_srq(s->srq) == 0, "destroy_srq");
	must(softhca_dereg_mr(s->mr) == 0, "dereg_mr");
	must(softhca_destroy_cq(s->cq) == 0, "destroy_cq");
	must(softhca_dealloc_pd(s->pd) == 0, "dealloc_pd");
	softhca_free(s->memory);
	must(softhca_close(s->ctx) == 0, "close");
}

static void
connect_qp(struct side *s, const struct side *peer, const struct operation *op, unsigned int i)
{
	bool rc = op->qp_type == SOFTHCA_QPT_RC;
	struct softhca_qp_attr a = {
		.port_num = 1,
		.qkey = QKEY,
		.qp_access_flags = ACCESS,
		.path_mtu = SOFTHCA_MTU_4096,
		.dest_qp_num = peer->qp[i]->qp_num,
		.min_rnr_timer = 1,
		.timeout = 20,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = BATCH,
		.max_dest_rd_atomic = BATCH,
		.ah_attr = {.is_global = 1, .port_num = 1},
	};
	uint32_t init = SOFTHCA_QP_STATE | SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT;
	uint32_t rtr = SOFTHCA_QP_STATE, rts = SOFTHCA_QP_STATE | SOFTHCA_QP_SQ_PSN;

	must(softhca_query_gid(peer->ctx, 1, 0, &a.ah_attr.dgid) == 0, "query_gid");
	if (rc) {
		init |= SOFTHCA_QP_ACCESS_FLAGS;
		rtr |= SOFTHCA_QP_AV | SOFTHCA_QP_PATH_MTU | SOFTHCA_QP_DEST_QPN |
		       SOFTHCA_QP_RQ_PSN | SOFTHCA_QP_MAX_DEST_RD_ATOMIC | SOFTHCA_QP_MIN_RNR_TIMER;
		rts |= SOFTHCA_QP_TIMEOUT | SOFTHCA_QP_RETRY_CNT | SOFTHCA_QP_RNR_RETRY |
		       SOFTHCA_QP_MAX_QP_RD_ATOMIC;
	} else {
		init |= SOFTHCA_QP_QKEY;
		s->ah = softhca_create_ah(s->pd, &a.ah_attr);
		must(s->ah != NULL, "create_ah");
	}
	a.qp_state = SOFTHCA_QPS_INIT;
	must(softhca_modify_qp(s->qp[i], &a, init) == 0, "INIT");
	a.qp_state = SOFTHCA_QPS_RTR;
	must(softhca_modify_qp(s->qp[i], &a, rtr) == 0, "RTR");
	a.qp_state = SOFTHCA_QPS_RTS;
	must(softhca_modify_qp(s->qp[i], &a, rts) == 0, "RTS");
}

static void
connect_to(struct side *s, const struct side *peer, const struct operation *op)
{
	for (unsigned int i = 0; i < qp_count(op); i++)
		connect_qp(s, peer, op, i);
}

static void
receive(struct side *s, const struct operation *op)
{
	struct softhca_sge sge = {(uintptr_t)s->memory, op->bytes + GRH, s->mr->lkey};
	struct softhca_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	for (unsigned int i = 0; i < BATCH; i++)
		must((op->srq ? softhca_post_srq_recv(s->srq, &wr, &bad)
			      : softhca_post_recv(s->qp[0], &wr, &bad)) == 0,
		     "post_recv");
}

static void
send(struct side *s, const struct side *peer, const struct operation *op)
{
	struct softhca_sge sge = {(uintptr_t)s->memory, op->bytes, s->mr->lkey};
	struct softhca_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = op->opcode,
		.send_flags = SOFTHCA_SEND_SIGNALED,
	};
	struct softhca_send_wr *bad;

	if (op->opcode == SOFTHCA_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)peer->memory;
		wr.wr.atomic.rkey = peer->mr->rkey;
		wr.wr.atomic.compare_add = 1;
	} else if (op->qp_type == SOFTHCA_QPT_UD) {
		wr.wr.ud.ah = s->ah;
		wr.wr.ud.remote_qpn = peer->qp[0]->qp_num;
		wr.wr.ud.remote_qkey = QKEY;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)peer->memory;
		wr.wr.rdma.rkey = peer->mr->rkey;
	}
	for (unsigned int i = 0; i < BATCH; i++)
		must(softhca_post_send(s->qp[op->qps ? i : 0], &wr, &bad) == 0, "post_send");
}

static void
take(struct side *s)
{
	struct softhca_wc wc[BATCH];

	must(softhca_poll_cq(s->cq, BATCH, wc) == (int)BATCH, "poll_cq");
	for (unsigned int i = 0; i < BATCH; i++)
		must(wc[i].status == SOFTHCA_WC_SUCCESS, softhca_wc_status_str(wc[i].status));
}

static void
rounds(struct side *a, struct side *b, const struct operation *op, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		if (op->receives)
			receive(b, op);
		send(a, b, op);
		while (softhca_embed_progress(embed) != 0)
			;
		take(a);
		if (op->receives)
			take(b);
	}
}

static void
dump(const struct operation *op, unsigned int n)
{
	char name[64];

	snprintf(name, sizeof(name), "%s %u", op->name, n * BATCH);
	CALLGRIND_DUMP_STATS_AT(name);
}

static void
count(const struct operation *op)
{
	struct side a = {0}, b = {0};

	open_side(0, op, &a);
	open_side(1, op, &b);
	connect_to(&a, &b, op);
	connect_to(&b, &a, op);
	rounds(&a, &b, op, WARM);
	CALLGRIND_ZERO_STATS;
	rounds(&a, &b, op, FEW);
	dump(op, FEW);
	rounds(&a, &b, op, MANY);
	dump(op, MANY);
	close_side(&a);
	close_side(&b);
}

static void
count_ub(const struct operation *op)
{
	struct instr_ub *u = instr_ub_open(embed, op->bytes, BATCH, op->ub_op, op->list);

	for (unsigned int i = 0; i < WARM; i++)
		instr_ub_round(u);
	CALLGRIND_ZERO_STATS;
	for (unsigned int i = 0; i < FEW; i++)
		instr_ub_round(u);
	dump(op, FEW);
	for (unsigned int i = 0; i < MANY; i++)
		instr_ub_round(u);
	dump(op, MANY);
	instr_ub_close(u);
}

/* HCAs of the other operations have no UB. only: how names begin. */
static void
count_all(struct softhca_embed_config *config, const char *only, bool ub)
{
	config->ub = ub;
	must(softhca_embed_create(config, &embed) == 0, "embed_create");
	for (unsigned int i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
		const struct operation *op = &operations[i];

		if (op->ub != ub || strncmp(op->name, only, strlen(only)) != 0)
			continue;
		if (ub)
			count_ub(op);
		else
			count(op);
	}
	must(softhca_embed_destroy(embed) == 0, "embed_destroy");
}

/* instr_loop [NAME [LAYOUT]]: operations whose names begin so; 0 rtc, 1 txrx, 2 full */
int
main(int argc, char **argv)
{
	struct softhca_embed_config config;

	softhca_embed_config_init(&config);
	config.memory_mb = 256;
	config.log_qps = config.log_cqs = 6;
	config.log_mpts = 8;
	config.log_mtts = 12;
	config.hugepages = 2;
	config.seed = 1;
	config.log_tps = 5;
	config.ub_ops = 512;
	config.layout = argc < 3 ? SOFTHCA_LAYOUT_RTC : (uint32_t)atoi(argv[2]);
	config.executor = SOFTHCA_EXECUTOR_MANUAL;
	count_all(&config, argc < 2 ? "" : argv[1], false);
	count_all(&config, argc < 2 ? "" : argv[1], true);
	return 0;
}
