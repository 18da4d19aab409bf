/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * As many QPs as an HCA supports, a quarter of them active at a time with WRITEs, SENDs and READs
 * in turn: the memory each needs, how fairly they share the engine, and their destruction with
 * requests outstanding, some one by one, the rest with their client. SIM_SCALE_LOG and SIM_SCALE_US
 * change the size.
 */

#include <sys/mman.h>
#include <time.h>

#include "lib_types.h"
#include "sim_test.h"

#define PROGRAM "test_scale"
#define CQS 16u
#define DEPTH 8u
#define OUTSTANDING 4u
#define MSG 1024u
#define REGION (1u << 20)
#define RD_ATOMIC 16u

struct scale_side {
	struct softhca_context *ctx;
	struct softhca_pd *pd;
	struct softhca_mr *mr;
	struct softhca_cq *cq[CQS];
	struct softhca_qp **qp;
	uint8_t *mem;
};

struct scale {
	struct sim *s;
	uint32_t max;
	struct scale_side side[2];
	uint64_t *bytes; /* completed by QP */
	uint32_t *posted;
	uint64_t rung;
	bool no_timeout;
};

static double
seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void
open_side(struct scale *x, unsigned int i)
{
	struct scale_side *side = &x->side[i];
	struct softhca_cq_init_attr ca = {.cqe = x->max / 4 / CQS * 2 * DEPTH};

	side->ctx = sim_client(x->s, i);
	side->pd = softhca_alloc_pd(side->ctx);
	side->mem = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	side->mr = softhca_reg_mr(side->pd, side->mem, REGION,
				  SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE |
					  SOFTHCA_ACCESS_REMOTE_READ);
	sim_check(x->s, side->mr != NULL, "reg_mr: %s", softhca_last_error(side->ctx));
	for (unsigned int k = 0; k < CQS; k++) {
		side->cq[k] = softhca_create_cq(side->ctx, &ca);
		sim_check(x->s, side->cq[k] != NULL, "create_cq: %s",
			  softhca_last_error(side->ctx));
	}
	side->qp = calloc(x->max, sizeof(struct softhca_qp *));
}

static struct softhca_qp *
create(struct scale *x, unsigned int i, uint32_t n)
{
	struct scale_side *side = &x->side[i];
	struct softhca_qp_init_attr qa = {
		.qp_context = (void *)(uintptr_t)n,
		.send_cq = side->cq[n / 4 % CQS],
		.recv_cq = side->cq[n / 4 % CQS],
		.cap = {.max_send_wr = DEPTH,
			.max_recv_wr = DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = SOFTHCA_QPT_RC,
		.sq_sig_all = 1,
	};

	return softhca_create_qp(side->pd, &qa);
}

static void
modify(struct scale *x, unsigned int i, uint32_t n, const struct softhca_qp_attr *a, uint32_t mask)
{
	int rc = softhca_modify_qp(x->side[i].qp[n], a, mask);

	sim_check(x->s, rc == 0, "QP %u to %s: %d: %s", n, softhca_qp_state_str(a->qp_state), rc,
		  softhca_last_error(x->side[i].ctx));
}

static void
connect(struct scale *x, unsigned int i, uint32_t n)
{
	struct softhca_qp_attr q = {
		.qp_state = SOFTHCA_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = SOFTHCA_ACCESS_REMOTE_WRITE | SOFTHCA_ACCESS_REMOTE_READ,
		.path_mtu = SOFTHCA_MTU_1024,
		.dest_qp_num = x->side[1 - i].qp[n]->qp_num,
		.rq_psn = n * 7 + 1 - i,
		.sq_psn = n * 7 + i,
		.max_dest_rd_atomic = RD_ATOMIC,
		.max_rd_atomic = RD_ATOMIC,
		.min_rnr_timer = 1,
		.timeout = x->no_timeout ? 0 : 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {.port_num = 1,
			    .is_global = 1,
			    .hop_limit = 64,
			    .dgid.raw = {[10] = 0xff, 0xff, 10, 77, 0, (uint8_t)(2 - i)}},
	};

	modify(x, i, n, &q,
	       SOFTHCA_QP_STATE | SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT |
		       SOFTHCA_QP_ACCESS_FLAGS);
	q.qp_state = SOFTHCA_QPS_RTR;
	modify(x, i, n, &q,
	       SOFTHCA_QP_STATE | SOFTHCA_QP_AV | SOFTHCA_QP_PATH_MTU | SOFTHCA_QP_DEST_QPN |
		       SOFTHCA_QP_RQ_PSN | SOFTHCA_QP_MAX_DEST_RD_ATOMIC |
		       SOFTHCA_QP_MIN_RNR_TIMER);
	q.qp_state = SOFTHCA_QPS_RTS;
	modify(x, i, n, &q,
	       SOFTHCA_QP_STATE | SOFTHCA_QP_TIMEOUT | SOFTHCA_QP_RETRY_CNT | SOFTHCA_QP_RNR_RETRY |
		       SOFTHCA_QP_SQ_PSN | SOFTHCA_QP_MAX_QP_RD_ATOMIC);
}

static void
post_recv(struct scale *x, uint32_t n)
{
	struct scale_side *side = &x->side[1];
	struct softhca_sge sge = {(uintptr_t)side->mem + REGION / 2, MSG, side->mr->lkey};
	struct softhca_recv_wr wr = {.wr_id = n, .sg_list = &sge, .num_sge = 1}, *bad;

	sim_check(x->s, softhca_post_recv(side->qp[n], &wr, &bad) == 0, "post_recv");
}

static void
post_next(struct scale *x, uint32_t n)
{
	static const uint32_t op[] = {SOFTHCA_WR_RDMA_WRITE, SOFTHCA_WR_SEND, SOFTHCA_WR_RDMA_READ};
	struct scale_side *side = &x->side[0];
	struct softhca_sge sge = {(uintptr_t)side->mem + n % 512 * MSG, MSG, side->mr->lkey};
	struct softhca_send_wr wr = {
		.wr_id = n,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = op[x->posted[n]++ % 3],
		.wr.rdma = {(uintptr_t)x->side[1].mem + n % 512 * MSG, x->side[1].mr->rkey},
	};
	struct softhca_send_wr *bad;

	sim_check(x->s, softhca_post_send(side->qp[n], &wr, &bad) == 0, "post_send");
	/* the doorbell page has 256 slots */
	if (++x->rung % 16 == 0)
		sim_poll(x->s);
}

/* Completions of one side; each makes room for the next request. */
static void
reap(struct scale *x, unsigned int i, bool again)
{
	struct softhca_wc wc[64];

	for (unsigned int k = 0; k < CQS; k++) {
		int got = softhca_poll_cq(x->side[i].cq[k], 64, wc);

		for (int c = 0; c < got; c++) {
			uint32_t n = (uint32_t)wc[c].wr_id;

			sim_check(x->s, wc[c].status == SOFTHCA_WC_SUCCESS, "QP %u: %s", n,
				  softhca_wc_status_str(wc[c].status));
			if (i == 1) {
				post_recv(x, n);
				continue;
			}
			x->bytes[n] += MSG;
			if (again)
				post_next(x, n);
		}
	}
}

static int
by_bytes(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void
work_fairly(struct scale *x)
{
	uint64_t us = sim_env("SIM_SCALE_US", 30000), *sorted;
	uint32_t active = x->max / 4;
	uint64_t end;
	double began = seconds();

	for (uint32_t n = 0; n < x->max; n += 4) {
		for (unsigned int k = 0; k < DEPTH; k++)
			post_recv(x, n);
		for (unsigned int k = 0; k < OUTSTANDING; k++)
			post_next(x, n);
	}
	for (end = x->s->now + us * 1000; x->s->now < end; sim_poll(x->s)) {
		reap(x, 1, false);
		reap(x, 0, true);
	}
	sorted = calloc(active, sizeof(*sorted));
	for (uint32_t n = 0; n < active; n++)
		sorted[n] = x->bytes[n * 4];
	qsort(sorted, active, sizeof(*sorted), by_bytes);
	print_message("%u active QPs, %u us: slowest %u KiB, median %u, fastest %u; %.2f s\n",
		      active, (uint32_t)us, (uint32_t)(sorted[0] >> 10),
		      (uint32_t)(sorted[active / 2] >> 10), (uint32_t)(sorted[active - 1] >> 10),
		      seconds() - began);
	sim_check(x->s, sorted[active / 2] >= 8 * MSG, "too little to compare");
	sim_check(x->s, sorted[0] * 2 >= sorted[active / 2],
		  "the slowest QP has %u KiB, the median %u", (uint32_t)(sorted[0] >> 10),
		  (uint32_t)(sorted[active / 2] >> 10));
	free(sorted);
}

/* In every layer, including the overhead of its allocator. */
static void
report_memory(struct scale *x)
{
	struct hca_driver_usage d;
	struct hca_usage u;
	uint32_t sum;

	hca_usage(x->s->side[0].hca, &u);
	hca_driver_usage(x->s->side[0].drv, &d);
	sum = u.qp_bytes + d.qp_bytes + (uint32_t)LIB_QP_BYTES;
	print_message(
		"%u QPs alive, each beyond its queues %u bytes: device %u, driver and context %u, "
		"library %u; its queue of %u READs to answer %u\n",
		u.qps, sum, u.qp_bytes, d.qp_bytes, (uint32_t)LIB_QP_BYTES, RD_ATOMIC,
		u.qp_job_bytes);
	sim_check(x->s, u.qps == x->max, "%u QPs alive", u.qps);
	sim_check(x->s, sum <= 2064, "a QP takes %u bytes", sum);
	sim_check(x->s, u.qp_job_bytes <= RD_ATOMIC * 32, "its READs %u", u.qp_job_bytes);
}

static void
many_qps_in(const struct sim_config *way)
{
	const uint32_t log = (uint32_t)sim_env("SIM_SCALE_LOG", 14);
	const struct sim_config cfg = {.layout = way->layout,
				       .executor = way->executor,
				       .seed = way->seed,
				       .log_num_qps = log,
				       .records = (2u << log) + 16384,
				       .full_records = (2u << log) + 4096,
				       .mbufs = 4096,
				       .link_depth = 4096};
	struct scale x = {.max = 1u << log};
	double t[5];

	t[0] = seconds();
	x.s = sim_open(&cfg);
	x.bytes = calloc(x.max, sizeof(*x.bytes));
	x.posted = calloc(x.max, sizeof(*x.posted));
	for (unsigned int i = 0; i < 2; i++) {
		open_side(&x, i);
		for (uint32_t n = 0; n < x.max; n++) {
			struct softhca_qp *qp = create(&x, i, n);

			sim_check(x.s, qp != NULL, "QP %u: %s", n,
				  softhca_last_error(x.side[i].ctx));
			sim_check(x.s, qp->qp_num > 1 && qp->qp_num < 0xffffff, "QPN %#x",
				  qp->qp_num);
			x.side[i].qp[n] = qp;
		}
		sim_check(x.s, create(&x, i, 0) == NULL, "one QP too many");
	}
	t[1] = seconds();
	for (uint32_t n = 0; n < x.max; n++)
		for (unsigned int i = 0; i < 2; i++)
			connect(&x, i, n);
	t[2] = seconds();
	report_memory(&x);
	work_fairly(&x);
	t[3] = seconds();
	/* side 0 one by one in the order of creation, side 1 all at once */
	for (uint32_t n = 0; n < x.max; n++)
		sim_check(x.s, softhca_destroy_qp(x.side[0].qp[n]) == 0, "destroy: %s",
			  softhca_last_error(x.side[0].ctx));
	for (unsigned int i = 0; i < 2; i++) {
		softhca_close(x.side[i].ctx);
		munmap(x.side[i].mem, REGION);
		free(x.side[i].qp);
	}
	t[4] = seconds();
	print_message("create %.2f s, connect %.2f, work %.2f, destroy %.2f\n", t[1] - t[0],
		      t[2] - t[1], t[3] - t[2], t[4] - t[3]);
	sim_close(x.s);
	free(x.bytes);
	free(x.posted);
}
SIM_TEST(many_qps)

/* ---- an owner whose peer never answers ---- */

#define GREEDY_QPS 32u
#define GREEDY_DEPTH 64u

struct greedy {
	struct softhca_context *ctx;
	struct softhca_qp *qp[GREEDY_QPS];
};

/* Requests to a QP that does not exist; the client does not wait for them. */
static void
greedy_open(struct scale *x, struct greedy *g)
{
	struct scale me = {.s = x->s, .max = 4 * CQS};
	struct scale_side *side = &me.side[0];

	open_side(&me, 0);
	g->ctx = side->ctx;
	for (uint32_t n = 0; n < GREEDY_QPS; n++) {
		struct softhca_qp_init_attr qa = {.send_cq = side->cq[0],
						  .recv_cq = side->cq[0],
						  .cap = {.max_send_wr = GREEDY_DEPTH,
							  .max_recv_wr = 1,
							  .max_send_sge = 1,
							  .max_recv_sge = 1},
						  .qp_type = SOFTHCA_QPT_RC};

		g->qp[n] = softhca_create_qp(side->pd, &qa);
		sim_check(x->s, g->qp[n] != NULL, "create_qp: %s", softhca_last_error(g->ctx));
		side->qp[n] = g->qp[n];
		me.side[1].qp = side->qp;
		me.no_timeout = true;
		connect(&me, 0, n);
	}
	for (uint32_t i = 0; i < GREEDY_QPS * GREEDY_DEPTH; i++) {
		struct softhca_sge sge = {(uintptr_t)side->mem, 64, side->mr->lkey};
		struct softhca_send_wr wr = {.sg_list = &sge,
					     .num_sge = 1,
					     .opcode = SOFTHCA_WR_RDMA_WRITE,
					     .wr.rdma = {side->mr->length, side->mr->rkey}};
		struct softhca_send_wr *bad;

		sim_check(x->s, softhca_post_send(g->qp[i % GREEDY_QPS], &wr, &bad) == 0, "post");
		sim_poll(x->s);
	}
	free(side->qp);
}

static uint64_t
honest_bytes(struct scale *x, uint64_t ns)
{
	uint64_t end = x->s->now + ns, sum = 0;

	memset(x->bytes, 0, x->max * sizeof(*x->bytes));
	for (; x->s->now < end; sim_poll(x->s)) {
		reap(x, 1, false);
		reap(x, 0, true);
	}
	for (uint32_t n = 0; n < x->max; n++)
		sum += x->bytes[n];
	return sum;
}

static void
greedy_owner_in(const struct sim_config *way)
{
	const struct sim_config cfg = {.layout = way->layout,
				       .executor = way->executor,
				       .seed = way->seed,
				       .log_num_qps = 7,
				       .records = 1024,
				       .full_records = 1024};
	struct scale x = {.max = 64};
	uint64_t before, during, parked;
	struct hca_usage u;
	struct greedy g;

	x.s = sim_open(&cfg);
	x.bytes = calloc(x.max, sizeof(*x.bytes));
	x.posted = calloc(x.max, sizeof(*x.posted));
	for (unsigned int i = 0; i < 2; i++) {
		open_side(&x, i);
		for (uint32_t n = 0; n < x.max; n++)
			x.side[i].qp[n] = create(&x, i, n);
	}
	for (uint32_t n = 0; n < x.max; n++) {
		connect(&x, 0, n);
		connect(&x, 1, n);
		for (unsigned int k = 0; k < DEPTH; k++)
			post_recv(&x, n);
		for (unsigned int k = 0; k < OUTSTANDING; k++)
			post_next(&x, n);
	}
	before = honest_bytes(&x, 1000000);
	greedy_open(&x, &g);
	honest_bytes(&x, 1000000);
	hca_usage(x.s->side[0].hca, &u);
	/* half of the shared records, and two per QP */
	sim_check(x.s, u.records > 300 && u.records < 800, "%u records in use", u.records);
	parked = sim_counter(x.s, 0, "sq_parked_record");
	during = honest_bytes(&x, 1000000);
	print_message("honest owner: %u KiB/ms before, %u during; %u records in use\n",
		      (uint32_t)(before >> 10), (uint32_t)(during >> 10), u.records);
	sim_check(x.s, sim_counter(x.s, 0, "sq_parked_record") == parked, "the honest owner waits");
	sim_check(x.s, during * 10 >= before * 9, "%u KiB before, %u during",
		  (uint32_t)(before >> 10), (uint32_t)(during >> 10));
	softhca_close(g.ctx);
	for (unsigned int i = 0; i < 2; i++) {
		softhca_close(x.side[i].ctx);
		munmap(x.side[i].mem, REGION);
		free(x.side[i].qp);
	}
	sim_close(x.s);
	free(x.bytes);
	free(x.posted);
}
SIM_TEST(greedy_owner)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(greedy_owner),
		cmocka_unit_test(many_qps),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
