/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A client that overwrites everything the device lets it write: its WQEs, CQEs, records and
 * doorbell page. Others use both HCAs meanwhile; only its own queues may be affected. Once stepwise
 * in every layout, once in a thread at full speed with the engine in threads.
 */

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "lib_types.h"
#include "sim_test.h"

#define PROGRAM "test_hostile"
#define S SOFTHCA_SEND_SIGNALED
#define DEPTH 32u
#define BUF 65536u
#define YOUNG 60u

/* Its own context on each side, with one connected QP each. */
struct hostile {
	struct sim *s;
	struct softhca_context *ctx[2];
	struct softhca_pd *pd[2];
	struct softhca_cq *cq[2];
	struct softhca_qp *qp[2];
	struct softhca_mr *mr[2];
	uint8_t *buf[2];
	uint8_t *wqes[2]; /* queue contents of a well-behaved client */
	uint8_t *recvs[2];
	uint64_t bell[2][DEPTH]; /* and its doorbells */
	struct sim_rng rng;
	uint32_t rung[2]; /* doorbells rung in order after those of learn() */
	uint64_t age;	  /* rounds since it was created */
	int stop;
	uint64_t rounds;
};

static void
modify(struct hostile *x, unsigned int side, const struct softhca_qp_attr *a, uint32_t mask)
{
	int rc = softhca_modify_qp(x->qp[side], a, mask);

	sim_check(x->s, rc == 0, "modify_qp of the hostile client: %d: %s", rc,
		  softhca_last_error(x->ctx[side]));
}

static void
connect_hostile(struct hostile *x, unsigned int side)
{
	struct softhca_qp_attr q = {
		.qp_state = SOFTHCA_QPS_RESET,
		.port_num = 1,
		.path_mtu = SOFTHCA_MTU_1024,
		.qp_access_flags = SOFTHCA_ACCESS_REMOTE_WRITE | SOFTHCA_ACCESS_REMOTE_READ |
				   SOFTHCA_ACCESS_REMOTE_ATOMIC,
		.dest_qp_num = x->qp[1 - side]->qp_num,
		.max_dest_rd_atomic = 4,
		.max_rd_atomic = 4,
		.min_rnr_timer = 1,
		.timeout = 6,
		.retry_cnt = 2,
		.rnr_retry = 2,
		.ah_attr = {.port_num = 1,
			    .is_global = 1,
			    .hop_limit = 64,
			    .dgid.raw = {[10] = 0xff, 0xff, 10, 77, 0, (uint8_t)(2 - side)}},
	};

	modify(x, side, &q, SOFTHCA_QP_STATE);
	q.qp_state = SOFTHCA_QPS_INIT;
	modify(x, side, &q,
	       SOFTHCA_QP_STATE | SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT |
		       SOFTHCA_QP_ACCESS_FLAGS);
	q.qp_state = SOFTHCA_QPS_RTR;
	modify(x, side, &q,
	       SOFTHCA_QP_STATE | SOFTHCA_QP_AV | SOFTHCA_QP_PATH_MTU | SOFTHCA_QP_DEST_QPN |
		       SOFTHCA_QP_RQ_PSN | SOFTHCA_QP_MAX_DEST_RD_ATOMIC |
		       SOFTHCA_QP_MIN_RNR_TIMER);
	q.qp_state = SOFTHCA_QPS_RTS;
	modify(x, side, &q,
	       SOFTHCA_QP_STATE | SOFTHCA_QP_TIMEOUT | SOFTHCA_QP_RETRY_CNT | SOFTHCA_QP_RNR_RETRY |
		       SOFTHCA_QP_SQ_PSN | SOFTHCA_QP_MAX_QP_RD_ATOMIC);
}

static struct lib_qp *
lib_of(struct hostile *x, unsigned int side)
{
	return (struct lib_qp *)x->qp[side];
}

/* the device may be writing to a queue's record */
static void
copy_queue(void *to, const void *from, size_t bytes)
{
	const uint32_t *f = from;
	uint32_t *t = to;

	for (size_t i = 0; i < bytes / sizeof(*t); i++)
		t[i] = __atomic_load_n(&f[i], __ATOMIC_RELAXED);
}

/* Fill the queues through the library and record them. */
static void
learn(struct hostile *x, unsigned int side)
{
	struct lib_qp *q = lib_of(x, side);
	const struct lib_uar *uar = q->uar;

	for (unsigned int i = 0; i < DEPTH; i++) {
		struct softhca_sge sge = {.addr = (uintptr_t)x->buf[side] + 100 * i,
					  .length = 64 * i,
					  .lkey = x->mr[side]->lkey};
		struct softhca_sge room = {.addr = (uintptr_t)x->buf[side] + BUF / 2 + 100 * i,
					   .length = 64 * DEPTH,
					   .lkey = x->mr[side]->lkey};
		struct softhca_recv_wr rwr = {.sg_list = &room, .num_sge = 1}, *rbad;
		struct softhca_send_wr
			wr =
				{
					.sg_list = &sge,
					.num_sge = 1,
					.opcode = i % SOFTHCA_WR_LOCAL_INV,
					.send_flags = S,
					.wr.rdma = {.remote_addr = (uintptr_t)x->buf[1 - side],
						    .rkey = x->mr[1 - side]->rkey},
				},
			*bad;
		uint32_t slot = uar->base + (uar->next & uar->mask);

		if (wr.opcode >= SOFTHCA_WR_ATOMIC_CMP_AND_SWP) {
			sge.length = 8;
			wr.wr.atomic.remote_addr = (uintptr_t)x->buf[1 - side];
			wr.wr.atomic.rkey = x->mr[1 - side]->rkey;
		}
		sim_check(x->s, softhca_post_recv(x->qp[side], &rwr, &rbad) == 0, "post_recv");
		sim_check(x->s, softhca_post_send(x->qp[side], &wr, &bad) == 0, "post_send");
		x->bell[side][i] = __atomic_load_n(&uar->page->fifo[slot], __ATOMIC_RELAXED);
	}
	copy_queue(x->wqes[side], q->sq.buf, q->sq.bytes);
	copy_queue(x->recvs[side], q->rq.buf, q->rq.bytes);
}

static void
open_side(struct hostile *x, unsigned int side)
{
	struct softhca_cq_init_attr ca = {.cqe = 16 * DEPTH};
	struct softhca_qp_init_attr qa = {
		.cap = {.max_send_wr = DEPTH,
			.max_recv_wr = DEPTH,
			.max_send_sge = 4,
			.max_recv_sge = 4,
			.max_inline_data = 64},
		.qp_type = SOFTHCA_QPT_RC,
	};
	struct sim *s = x->s;

	x->ctx[side] = sim_client(s, side);
	x->pd[side] = softhca_alloc_pd(x->ctx[side]);
	x->cq[side] = softhca_create_cq(x->ctx[side], &ca);
	sim_check(s, x->pd[side] != NULL && x->cq[side] != NULL, "hostile client");
	qa.send_cq = qa.recv_cq = x->cq[side];
	x->qp[side] = softhca_create_qp(x->pd[side], &qa);
	x->buf[side] = aligned_alloc(4096, BUF);
	sim_check(s, x->qp[side] != NULL && x->buf[side] != NULL, "hostile client");
	memset(x->buf[side], 0, BUF);
	x->mr[side] =
		softhca_reg_mr(x->pd[side], x->buf[side], BUF,
			       SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE |
				       SOFTHCA_ACCESS_REMOTE_READ | SOFTHCA_ACCESS_REMOTE_ATOMIC);
	sim_check(s, x->mr[side] != NULL, "hostile client");
	x->wqes[side] = malloc(lib_of(x, side)->sq.bytes);
	x->recvs[side] = malloc(lib_of(x, side)->rq.bytes);
	sim_check(s, x->wqes[side] != NULL && x->recvs[side] != NULL, "no memory");
}

static void
hostile_open(struct hostile *x, struct sim *s)
{
	*x = (struct hostile){.s = s, .rng.s = s->cfg.seed * 31 + 7};
	for (unsigned int i = 0; i < 2; i++)
		open_side(x, i);
	for (unsigned int i = 0; i < 2; i++)
		connect_hostile(x, i);
	for (unsigned int i = 0; i < 2; i++)
		learn(x, i);
}

static void
hostile_close(struct hostile *x)
{
	/* the driver cleans up */
	for (unsigned int i = 0; i < 2; i++) {
		sim_check(x->s, softhca_close(x->ctx[i]) == 0, "close");
		free(x->buf[i]);
		free(x->wqes[i]);
		free(x->recvs[i]);
	}
}

static void
splash(struct hostile *x, void *area, size_t bytes, unsigned int most)
{
	volatile uint8_t *p = area;
	unsigned int n = 1 + sim_below(&x->rng, most);
	size_t at = sim_below(&x->rng, (uint32_t)bytes);

	for (unsigned int i = 0; i < n && at + i < bytes; i++)
		p[at + i] = (uint8_t)sim_random(&x->rng);
}

/* Ring doorbells as the library would, similar ones, or random ones. */
static void
ring_bells(struct hostile *x, unsigned int side, bool wild)
{
	struct hca_uar_page *uar = lib_ctx(x->ctx[side])->uar.page;

	for (unsigned int i = 0; i < HCA_UAR_FIFO_SLOTS; i++) {
		uint64_t w = x->bell[side][sim_below(&x->rng, DEPTH)];

		switch (sim_below(&x->rng, wild ? 4 : 40)) {
		case 0:
			w = sim_random(&x->rng);
			break;
		case 1:
			w ^= 1ull << sim_below(&x->rng, 64);
			break;
		default:
			break;
		}
		__atomic_store_n(&uar->fifo[i], w, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&uar->sq_doorbell, x->bell[side][sim_below(&x->rng, DEPTH)],
			 __ATOMIC_RELEASE);
}

/* Ring the next doorbell as the library would: its WQE is valid or nearly so. */
static void
ring_next(struct hostile *x, unsigned int side)
{
	const struct lib_uar *uar = lib_of(x, side)->uar;
	uint32_t n = x->rung[side]++, stride = 1u << lib_of(x, side)->sq.log_stride;
	uint8_t *wqe = lib_of(x, side)->sq.buf + (n % DEPTH) * stride;

	memcpy(wqe, x->wqes[side] + (n % DEPTH) * stride, stride);
	if (sim_below(&x->rng, 4) == 0)
		wqe[sim_below(&x->rng, 64)] ^= (uint8_t)(1 << sim_below(&x->rng, 8));
	__atomic_store_n(&uar->page->fifo[uar->base + ((uar->next + n) & uar->mask)],
			 x->bell[side][n % DEPTH], __ATOMIC_RELEASE);
}

static void
scribble(struct hostile *x)
{
	unsigned int side = sim_below(&x->rng, 2);
	struct lib_qp *q = lib_of(x, side);
	struct lib_cq *cq = (struct lib_cq *)x->cq[side];
	struct hca_uar_page *uar = lib_ctx(x->ctx[side])->uar.page;

	x->rounds++;
	/* at first it only posts invalid requests */
	if (x->age++ < YOUNG) {
		ring_next(x, side);
		return;
	}
	switch (sim_below(&x->rng, 10)) {
	case 0:
		memcpy(q->sq.buf, x->wqes[side], q->sq.bytes);
		memcpy(q->rq.buf, x->recvs[side], q->rq.bytes);
		break;
	case 1:
		splash(x, q->sq.buf, q->sq.bytes, 64);
		break;
	case 2:
		splash(x, q->rq.buf, q->rq.bytes, 64);
		break;
	case 3:
		splash(x, q->rq_record, sizeof(*q->rq_record), 8);
		break;
	case 4:
		splash(x, cq->ring, cq->bytes, 64);
		break;
	case 5:
		splash(x, cq->record, sizeof(*cq->record), 8);
		break;
	case 6:
		splash(x, uar, sizeof(*uar), 64);
		break;
	case 7:
		splash(x, q->sq.buf, q->sq.bytes, 1);
		break;
	case 8:
		ring_bells(x, side, false);
		break;
	default:
		ring_bells(x, side, sim_below(&x->rng, 2) != 0);
	}
}

/*
 * Its QPs soon fail and its CQs overrun: a new client replaces it, so that there is always
 * something to attack.
 */
static void
revive(struct hostile *x)
{
	struct sim *s = x->s;
	struct sim_rng rng = x->rng;
	uint64_t rounds = x->rounds;

	hostile_close(x);
	hostile_open(x, s);
	x->rng = rng;
	x->rounds = rounds;
}

static void
work(struct sim *s, struct sim_pair **p, unsigned int pairs)
{
	for (unsigned int i = 0; i < pairs; i++) {
		for (unsigned int side = 0; side < 2; side++) {
			struct sim_req r[4];

			for (unsigned int k = 0; k < 4; k++)
				r[k] = sim_random_req(p[i], 6000);
			r[3].flags |= S;
			sim_post(p[i], side, r, 4);
		}
	}
}

static void
check_bystanders(struct sim *s)
{
	for (unsigned int i = 0; i < 2; i++) {
		sim_check(s, s->side[i].hca != NULL, "gone");
		sim_check(s, !hca_driver_dead(s->side[i].drv), "the device is dead");
	}
}

/* the device must have seen it, or nothing was tested */
static void
check_harm(struct sim *s, const char *counter)
{
	sim_check(s, sim_counter(s, 0, counter) + sim_counter(s, 1, counter) != 0,
		  "the hostile client never caused %s", counter);
}

static void
interleaved_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	struct sim_pair *p[3];
	struct hostile x;

	for (unsigned int i = 0; i < 3; i++)
		p[i] = sim_pair_open(s, NULL);
	hostile_open(&x, s);
	for (unsigned int round = 0; round < 300; round++) {
		work(s, p, 3);
		for (unsigned int k = 0; k < 30; k++) {
			scribble(&x);
			sim_poll(s);
			sim_reap(s);
		}
		if (round % 5 == 4)
			revive(&x);
		if (round % 10 == 9)
			sim_finish(s, 10 * SIM_S);
		check_bystanders(s);
	}
	check_harm(s, "sq_catas");
	check_harm(s, "db_dead_qpn");
	check_harm(s, "sq_bad_wqe");
	check_harm(s, "req_remote_access_errors");
	hostile_close(&x);
	sim_finish(s, SIM_S);
	for (unsigned int i = 0; i < 3; i++)
		sim_pair_close(p[i]);
	sim_close(s);
}
SIM_TEST(interleaved)

static void *
scribbler(void *arg)
{
	struct hostile *x = arg;

	while (!__atomic_load_n(&x->stop, __ATOMIC_RELAXED)) {
		for (unsigned int i = 0; i < 64; i++)
			scribble(x);
		/* the machine may have fewer CPUs than threads */
		usleep(20);
	}
	return NULL;
}

/* Threads for the engine, for the hostile client and for the application. */
static void
threads(void **state)
{
	uint64_t seed = sim_env("SIM_SEED", 1);

	(void)state;
	for (unsigned int l = HCA_LAYOUT_RTC; l <= HCA_LAYOUT_TXRX; l++) {
		const struct sim_config cfg = {.layout = l, .executor = SIM_THREADS, .seed = seed};
		struct sim *s = sim_open(&cfg);
		struct sim_pair *p[2];
		struct hostile x;
		pthread_t t;

		sim_set_repeat("SIM_SEED=%llu CMOCKA_TEST_FILTER=threads " PROGRAM,
			       (unsigned long long)seed);
		for (unsigned int i = 0; i < 2; i++)
			p[i] = sim_pair_open(s, NULL);
		hostile_open(&x, s);
		for (unsigned int round = 0; round < 10; round++) {
			x.stop = 0;
			sim_check(s, pthread_create(&t, NULL, scribbler, &x) == 0, "thread");
			for (unsigned int k = 0; k < 20; k++) {
				work(s, p, 2);
				sim_finish(s, 60 * SIM_S);
				check_bystanders(s);
			}
			__atomic_store_n(&x.stop, 1, __ATOMIC_RELAXED);
			pthread_join(t, NULL);
			revive(&x);
		}
		sim_check(s, x.rounds > 1000, "the scribbler came to %llu rounds only",
			  (unsigned long long)x.rounds);
		hostile_close(&x);
		for (unsigned int i = 0; i < 2; i++)
			sim_pair_close(p[i]);
		sim_close(s);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(interleaved),
		cmocka_unit_test(threads),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
