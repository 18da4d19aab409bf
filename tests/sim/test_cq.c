/* SPDX-License-Identifier: BSD-3-Clause */

/* Completion queues: resizing under traffic, moderation, arming, vectors, overrun. */

#include <fcntl.h>
#include <poll.h>

#include "sim_test.h"

#define PROGRAM "test_cq"
#define S SOFTHCA_SEND_SIGNALED

static void
post(struct sim_pair *p, unsigned int side, unsigned int n)
{
	struct sim_req r[16];

	for (unsigned int i = 0; i < n; i++) {
		r[i] = sim_random_req(p, 3000);
		r[i].flags |= S;
	}
	sim_check(p->s, sim_post(p, side, r, n) == 0, "post");
}

/* Larger and smaller, repeatedly, with completions in the queue and arriving. */
static void
resize_often(const struct sim_config *cfg, const struct sim_pair_attr *attr)
{
	struct sim *s = sim_open(cfg);
	struct sim_pair *p = sim_pair_open(s, attr);

	for (unsigned int i = 0; i < 60; i++) {
		unsigned int side = i & 1, want = 128u << sim_below(&s->model->rng, 4);
		int rc;

		post(p, side, 1 + sim_below(&s->model->rng, 16));
		for (uint32_t k = sim_below(&s->model->rng, 40); k > 0; k--)
			sim_poll(s);
		rc = softhca_resize_cq(p->cq[side], (int)want);
		sim_check(s, rc == 0, "resize_cq to %u: %d: %s", want, rc,
			  softhca_last_error(s->side[side].ctx));
		sim_check(s, p->cq[side]->cqe == (int)want, "%d entries", p->cq[side]->cqe);
		if (i % 10 == 9)
			sim_finish(s, SIM_S);
	}
	sim_finish(s, SIM_S);
	sim_pair_close(p);
	sim_close(s);
}

static void
resize_in(const struct sim_config *cfg)
{
	const struct sim_pair_attr attr = {.sq_depth = 128, .rq_depth = 64, .region = 8 << 20};

	resize_often(cfg, &attr);
}
SIM_TEST(resize)

/* The same with large CQEs, whose times are checked. */
static void
resize_large_in(const struct sim_config *cfg)
{
	const struct sim_pair_attr attr = {
		.sq_depth = 128,
		.rq_depth = 64,
		.region = 8 << 20,
		.read = true,
	};

	resize_often(cfg, &attr);
}
SIM_TEST(resize_large)

/* Smaller than the number of completions: refused, and nothing changes. */
static void
resize_refused_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	struct sim_pair *p = sim_pair_open(s, NULL);
	int cqe = p->cq[0]->cqe;

	post(p, 0, 10);
	sim_settle(s);
	sim_check(s, softhca_resize_cq(p->cq[0], 4) == -EINVAL, "fewer than wait");
	sim_check(s, softhca_resize_cq(p->cq[0], 0) == -EINVAL, "none");
	sim_check(s, softhca_resize_cq(p->cq[0], 1 << 30) == -EINVAL, "too many");
	sim_check(s, p->cq[0]->cqe == cqe, "changed all the same");
	sim_check(s, softhca_resize_cq(p->cq[0], 16) == 0, "as many as wait fit");
	sim_finish(s, SIM_S);
	sim_pair_close(p);
	sim_close(s);
}
SIM_TEST(resize_refused)

/* --- events -------------------- */

struct listener {
	struct softhca_comp_channel *channel;
	struct softhca_cq *cq;
	struct softhca_qp *qp[2];
	struct softhca_cq *peer_cq;
	struct softhca_mr *mr[2];
	uint8_t *buf[2];
};

static void
open_listener(struct sim *s, struct listener *l, uint32_t vector)
{
	struct softhca_qp_init_attr qa = {
		.cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = SOFTHCA_QPT_RC,
	};
	struct softhca_cq_init_attr ca = {.cqe = 256, .comp_vector = vector};
	struct sim_pair pair = {.s = s,
				.attr = {.mtu = SOFTHCA_MTU_1024,
					 .max_rd_atomic = 1,
					 .min_rnr_timer = 1,
					 .timeout = 8,
					 .retry_cnt = 7,
					 .rnr_retry = 7}};

	l->channel = softhca_create_comp_channel(s->side[0].ctx);
	sim_check(s, l->channel != NULL, "channel");
	fcntl(l->channel->fd, F_SETFL, O_NONBLOCK);
	ca.channel = l->channel;
	l->cq = softhca_create_cq(s->side[0].ctx, &ca);
	ca.channel = NULL;
	ca.comp_vector = 0;
	l->peer_cq = softhca_create_cq(s->side[1].ctx, &ca);
	sim_check(s, l->cq != NULL && l->peer_cq != NULL, "create_cq: %s",
		  softhca_last_error(NULL));
	for (unsigned int i = 0; i < 2; i++) {
		l->buf[i] = aligned_alloc(4096, 4096);
		l->mr[i] =
			softhca_reg_mr(s->side[i].pd, l->buf[i], 4096, SOFTHCA_ACCESS_LOCAL_WRITE);
		qa.send_cq = qa.recv_cq = i == 0 ? l->cq : l->peer_cq;
		l->qp[i] = softhca_create_qp(s->side[i].pd, &qa);
		sim_check(s, l->mr[i] != NULL && l->qp[i] != NULL, "listener");
		pair.qp[i] = pair.tgt[i] = l->qp[i];
	}
	sim_connect(&pair, 0);
	sim_connect(&pair, 1);
}

static void
close_listener(struct sim *s, struct listener *l)
{
	for (unsigned int i = 0; i < 2; i++) {
		sim_check(s, softhca_destroy_qp(l->qp[i]) == 0, "destroy_qp");
		sim_check(s, softhca_dereg_mr(l->mr[i]) == 0, "dereg_mr");
		free(l->buf[i]);
	}
	sim_check(s, softhca_destroy_cq(l->cq) == 0, "destroy_cq");
	sim_check(s, softhca_destroy_cq(l->peer_cq) == 0, "destroy_cq");
	sim_check(s, softhca_destroy_comp_channel(l->channel) == 0, "destroy_channel");
}

/* Post receives, and then n messages from the peer. */
static void
hear(struct sim *s, struct listener *l, unsigned int n, uint32_t flags)
{
	struct softhca_sge to = {(uintptr_t)l->buf[0], 64, l->mr[0]->lkey};
	struct softhca_sge from = {(uintptr_t)l->buf[1], 64, l->mr[1]->lkey};
	struct softhca_recv_wr rwr = {.sg_list = &to, .num_sge = 1}, *rbad;
	struct softhca_send_wr wr = {.sg_list = &from,
				     .num_sge = 1,
				     .opcode = SOFTHCA_WR_SEND,
				     .send_flags = S | flags},
			       *bad;

	for (unsigned int i = 0; i < n; i++) {
		sim_check(s, softhca_post_recv(l->qp[0], &rwr, &rbad) == 0, "post_recv");
		sim_check(s, softhca_post_send(l->qp[1], &wr, &bad) == 0, "post_send");
	}
}

static unsigned int
drain(struct softhca_cq *cq)
{
	struct softhca_wc wc[32];
	unsigned int all = 0;
	int n;

	while ((n = softhca_poll_cq(cq, 32, wc)) > 0)
		all += (unsigned int)n;
	return all;
}

static unsigned int
events(struct sim *s, struct listener *l)
{
	struct softhca_cq *cq;
	unsigned int n = 0;

	while (softhca_get_cq_event(l->channel, &cq, NULL) == 0) {
		sim_check(s, cq == l->cq, "an event of another CQ");
		softhca_ack_cq_events(cq, 1);
		n++;
	}
	return n;
}

static void
expect_events(struct sim *s, struct listener *l, unsigned int want, const char *what)
{
	unsigned int got = events(s, l);

	sim_check(s, got == want, "%s: %u events, not %u", what, got, want);
}

/* One event per arm; after solicited arming only for solicited and failed completions. */
static void
arming_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	uint32_t vectors = s->side[0].ctx->num_comp_vectors;

	sim_check(s, vectors > 1, "%u completion vectors", vectors);
	for (uint32_t v = 0; v < vectors; v++) {
		struct listener l = {0};

		open_listener(s, &l, v);
		hear(s, &l, 3, 0);
		sim_settle(s);
		expect_events(s, &l, 0, "not armed");
		softhca_req_notify_cq(l.cq, 0);
		sim_settle(s);
		expect_events(s, &l, 0, "armed behind the completions");
		hear(s, &l, 3, 0);
		sim_settle(s);
		expect_events(s, &l, 1, "armed for the next");
		sim_check(s, drain(l.cq) == 6, "completions");
		softhca_req_notify_cq(l.cq, 1);
		hear(s, &l, 3, 0);
		sim_settle(s);
		expect_events(s, &l, 0, "armed for a solicited one");
		hear(s, &l, 2, SOFTHCA_SEND_SOLICITED);
		sim_settle(s);
		expect_events(s, &l, 1, "solicited");
		drain(l.peer_cq);
		close_listener(s, &l);
	}
	sim_close(s);
}
SIM_TEST(arming)

/* Not before the configured number of completions or time; solicited ones at once. */
static void
moderation_in(const struct sim_config *cfg)
{
	struct softhca_modify_cq_attr a = {.attr_mask = SOFTHCA_CQ_ATTR_MODERATE,
					   .moderate = {.cq_count = 8, .cq_period = 0}};
	struct listener l = {0};
	struct sim *s = sim_open(cfg);

	open_listener(s, &l, 0);
	sim_check(s, softhca_modify_cq(l.cq, &a) == 0, "modify_cq");
	softhca_req_notify_cq(l.cq, 0);
	hear(s, &l, 7, 0);
	sim_settle(s);
	expect_events(s, &l, 0, "seven of eight");
	hear(s, &l, 1, 0);
	sim_settle(s);
	expect_events(s, &l, 1, "eight");
	a.moderate.cq_period = 5000;
	sim_check(s, softhca_modify_cq(l.cq, &a) == 0, "modify_cq");
	softhca_req_notify_cq(l.cq, 0);
	hear(s, &l, 2, 0);
	sim_run_for(s, 1000000);
	expect_events(s, &l, 0, "within the period");
	sim_run_for(s, 10000000);
	expect_events(s, &l, 1, "behind the period");
	softhca_req_notify_cq(l.cq, 0);
	hear(s, &l, 1, SOFTHCA_SEND_SOLICITED);
	sim_run_for(s, 1000000);
	expect_events(s, &l, 1, "solicited");
	a.moderate.cq_count = a.moderate.cq_period = 0;
	sim_check(s, softhca_modify_cq(l.cq, &a) == 0, "modify_cq");
	softhca_req_notify_cq(l.cq, 0);
	hear(s, &l, 1, 0);
	sim_settle(s);
	expect_events(s, &l, 1, "without moderation");
	a.attr_mask = 2;
	sim_check(s, softhca_modify_cq(l.cq, &a) == -EINVAL, "unknown attribute");
	drain(l.cq);
	drain(l.peer_cq);
	close_listener(s, &l);
	sim_close(s);
}
SIM_TEST(moderation)

/* Neither a completion nor an event of requests that are not signaled. */
static void
unsignaled_in(const struct sim_config *cfg)
{
	static const enum softhca_wr_opcode op[] = {SOFTHCA_WR_RDMA_WRITE, SOFTHCA_WR_RDMA_READ,
						    SOFTHCA_WR_ATOMIC_FETCH_AND_ADD};
	struct listener l = {0};
	struct sim *s = sim_open(cfg);
	struct softhca_mr *mr;
	struct softhca_sge sge;

	open_listener(s, &l, 0);
	mr = softhca_reg_mr(s->side[1].pd, l.buf[1], 4096,
			    SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_READ |
				    SOFTHCA_ACCESS_REMOTE_WRITE | SOFTHCA_ACCESS_REMOTE_ATOMIC);
	sge = (struct softhca_sge){(uintptr_t)l.buf[0], 8, l.mr[0]->lkey};
	for (unsigned int i = 0; i < 3 * RTE_DIM(op); i++) {
		struct softhca_send_wr *bad,
			wr = {.sg_list = &sge, .num_sge = 1, .opcode = op[i / 3]};

		if (wr.opcode == SOFTHCA_WR_ATOMIC_FETCH_AND_ADD) {
			wr.wr.atomic.remote_addr = (uintptr_t)l.buf[1];
			wr.wr.atomic.rkey = mr->rkey;
		} else {
			wr.wr.rdma.remote_addr = (uintptr_t)l.buf[1];
			wr.wr.rdma.rkey = mr->rkey;
		}
		softhca_req_notify_cq(l.cq, 0);
		sim_check(s, softhca_post_send(l.qp[0], &wr, &bad) == 0, "post_send");
		sim_settle(s);
		expect_events(s, &l, 0, "not signaled");
	}
	softhca_dereg_mr(mr);
	close_listener(s, &l);
	sim_close(s);
}
SIM_TEST(unsignaled)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resize),	  cmocka_unit_test(resize_large),
		cmocka_unit_test(resize_refused), cmocka_unit_test(arming),
		cmocka_unit_test(moderation),	  cmocka_unit_test(unsignaled),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
