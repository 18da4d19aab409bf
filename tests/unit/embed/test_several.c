/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Several HCAs in one process: a pair carries traffic that its thread verifies byte by byte, while
 * another pair is created, used on a bad link and destroyed repeatedly. Neither affects the other's
 * memory, completions, keys or counters. Also settings that change under traffic.
 */

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <softhca/embed.h>
#include <softhca/softhca.h>

#define LEN 3000u
#define AREA 4096u
#define LIVES 6u
#define ROUNDS 16u
#define BAD_TIMEOUT 16 /* 0.27 s, eight times: on a busy machine threads wait */
#define TIMEOUT_S 120

/* Requests of a round from side 0 to side 1; READ reads back the data of WRITE. */
static const struct request {
	uint32_t opcode, from, to, packets; /* areas; packets: of the request */
} requests[] = {
	{SOFTHCA_WR_SEND, 0, 0, 3},
	{SOFTHCA_WR_RDMA_WRITE, 1, 1, 3},
	{SOFTHCA_WR_RDMA_READ, 2, 1, 1},
};

#define REQUESTS (sizeof(requests) / sizeof(requests[0]))
#define PACKETS 7u

struct couple {
	struct softhca_embed *embed;
	struct side {
		struct softhca_context *ctx;
		struct softhca_pd *pd;
		struct softhca_cq *cq;
		struct softhca_qp *qp;
		struct softhca_mr *mr;
		uint8_t *buf;
	} side[2];
	uint64_t rounds;
	uint8_t salt;
};

/* For the second thread: cmocka's assertions work only in the test's own thread. */
struct beside {
	struct couple *couple;
	int stop;
	const char *wrong;
};

/* ---- a pair ---- */

static void
to_state(struct couple *c, unsigned int i, uint32_t state, uint32_t mask, uint8_t timeout)
{
	struct softhca_qp_attr a = {
		.qp_state = state,
		.port_num = 1,
		.qp_access_flags = SOFTHCA_ACCESS_REMOTE_WRITE | SOFTHCA_ACCESS_REMOTE_READ,
		.path_mtu = SOFTHCA_MTU_1024,
		.dest_qp_num = c->side[1 - i].qp->qp_num,
		.timeout = timeout,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 1,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.ah_attr = {.port_num = 1, .is_global = 1, .hop_limit = 64},
	};

	assert_int_equal(softhca_query_gid(c->side[1 - i].ctx, 1, 0, &a.ah_attr.dgid), 0);
	assert_int_equal(softhca_modify_qp(c->side[i].qp, &a, SOFTHCA_QP_STATE | mask), 0);
}

static void
open_side(struct couple *c, unsigned int i)
{
	struct side *s = &c->side[i];
	struct softhca_cq_init_attr ca = {.cqe = 64};
	struct softhca_qp_init_attr qa = {
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = SOFTHCA_QPT_RC,
	};

	assert_int_equal(softhca_embed_open(c->embed, i, &s->ctx), 0);
	s->pd = softhca_alloc_pd(s->ctx);
	s->cq = softhca_create_cq(s->ctx, &ca);
	qa.send_cq = qa.recv_cq = s->cq;
	s->qp = softhca_create_qp(s->pd, &qa);
	s->buf = aligned_alloc(AREA, 3 * AREA);
	s->mr = softhca_reg_mr(s->pd, s->buf, 3 * AREA,
			       SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE |
				       SOFTHCA_ACCESS_REMOTE_READ);
	assert_true(s->qp != NULL && s->mr != NULL);
}

/* timeout 0: a clean link loses nothing, however long a thread waits for its CPU. */
static void
couple_open(struct couple *c, uint32_t executor, uint32_t layout, double drop, uint8_t timeout)
{
	struct softhca_embed_config cfg;

	softhca_embed_config_init(&cfg);
	cfg.hugepages = 2;
	cfg.executor = executor;
	cfg.layout = layout;
	cfg.mbufs = 512;
	cfg.records = 1024;
	cfg.log_qps = cfg.log_cqs = 8;
	cfg.log_mpts = 10;
	cfg.log_mtts = 12;
	cfg.impair.drop = drop;
	assert_int_equal(softhca_embed_create(&cfg, &c->embed), 0);
	for (unsigned int i = 0; i < 2; i++)
		open_side(c, i);
	for (unsigned int i = 0; i < 2; i++)
		to_state(c, i, SOFTHCA_QPS_INIT,
			 SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT | SOFTHCA_QP_ACCESS_FLAGS, 0);
	for (unsigned int i = 0; i < 2; i++)
		to_state(c, i, SOFTHCA_QPS_RTR,
			 SOFTHCA_QP_AV | SOFTHCA_QP_PATH_MTU | SOFTHCA_QP_DEST_QPN |
				 SOFTHCA_QP_RQ_PSN | SOFTHCA_QP_MAX_DEST_RD_ATOMIC |
				 SOFTHCA_QP_MIN_RNR_TIMER,
			 0);
	for (unsigned int i = 0; i < 2; i++)
		to_state(c, i, SOFTHCA_QPS_RTS,
			 SOFTHCA_QP_SQ_PSN | SOFTHCA_QP_TIMEOUT | SOFTHCA_QP_RETRY_CNT |
				 SOFTHCA_QP_RNR_RETRY | SOFTHCA_QP_MAX_QP_RD_ATOMIC,
			 timeout);
}

static void
couple_close(struct couple *c)
{
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(softhca_destroy_qp(c->side[i].qp), 0);
		assert_int_equal(softhca_destroy_cq(c->side[i].cq), 0);
		assert_int_equal(softhca_dereg_mr(c->side[i].mr), 0);
		assert_int_equal(softhca_dealloc_pd(c->side[i].pd), 0);
		assert_int_equal(softhca_close(c->side[i].ctx), 0);
		free(c->side[i].buf);
	}
	assert_int_equal(softhca_embed_destroy(c->embed), 0);
}

/* ---- a round of verified traffic ---- */

static bool
out_of_time(time_t since)
{
	return time(NULL) - since > TIMEOUT_S;
}

static const char *
wait_for(struct couple *c, unsigned int i, unsigned int n)
{
	time_t since = time(NULL);
	struct softhca_wc wc;

	while (n > 0) {
		int got = softhca_poll_cq(c->side[i].cq, 1, &wc);

		if (got < 0 || (got == 1 && wc.status != SOFTHCA_WC_SUCCESS))
			return "a completion failed";
		if (got == 1 && wc.qp_num != c->side[i].qp->qp_num)
			return "a completion of another QP";
		n -= (unsigned int)got;
		if (got == 0 && out_of_time(since))
			return "completions are missing";
	}
	return NULL;
}

static const char *
post(struct couple *c, const struct request *r)
{
	struct side *a = &c->side[0], *b = &c->side[1];
	struct softhca_sge to = {(uintptr_t)b->buf, AREA, b->mr->lkey};
	struct softhca_sge sge = {(uintptr_t)a->buf + r->from * AREA, LEN, a->mr->lkey};
	struct softhca_recv_wr rwr = {.sg_list = &to, .num_sge = 1}, *rbad;
	struct softhca_send_wr *bad,
		wr = {
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = r->opcode,
			.send_flags = SOFTHCA_SEND_SIGNALED,
			.wr.rdma = {(uintptr_t)b->buf + r->to * AREA, b->mr->rkey},
		};

	if (r->opcode == SOFTHCA_WR_SEND && softhca_post_recv(b->qp, &rwr, &rbad) != 0)
		return "post_recv";
	return softhca_post_send(a->qp, &wr, &bad) == 0 ? NULL : "post_send";
}

static const char *
round_trip(struct couple *c)
{
	struct side *a = &c->side[0], *b = &c->side[1];
	uint8_t first = (uint8_t)(c->rounds * 7 + c->salt);
	const char *wrong = NULL;

	for (unsigned int i = 0; i < 2 * AREA; i++)
		a->buf[i] = (uint8_t)(first + i * 3 + i / 251);
	memset(a->buf + 2 * AREA, 0, AREA);
	for (size_t i = 0; i < REQUESTS && wrong == NULL; i++)
		wrong = post(c, &requests[i]);
	if (wrong == NULL)
		wrong = wait_for(c, 0, REQUESTS);
	if (wrong == NULL)
		wrong = wait_for(c, 1, 1);
	c->rounds++;
	if (wrong == NULL &&
	    (memcmp(a->buf, b->buf, LEN) != 0 || memcmp(a->buf + AREA, b->buf + AREA, LEN) != 0 ||
	     memcmp(a->buf + AREA, a->buf + 2 * AREA, LEN) != 0))
		wrong = "data is wrong";
	return wrong;
}

static void *
beside_main(void *arg)
{
	struct beside *b = arg;

	const char *wrong = NULL;

	while (!__atomic_load_n(&b->stop, __ATOMIC_RELAXED) && wrong == NULL)
		wrong = round_trip(b->couple);
	__atomic_store_n(&b->wrong, wrong, __ATOMIC_RELEASE);
	return NULL;
}

/* ---- counters ---- */

#define FIRST_SENT "req_packets - retransmissions"

static uint64_t
counter(const struct couple *c, unsigned int i, const char *name)
{
	struct softhca_value v[512];
	int n = softhca_embed_counters(c->embed, i, v, 512);

	assert_true(n > 0 && n <= 512);
	if (strcmp(name, FIRST_SENT) == 0)
		return counter(c, i, "req_packets") - counter(c, i, "retransmissions");
	for (int k = 0; k < n; k++)
		if (strcmp(v[k].name, name) == 0)
			return v[k].value;
	fail_msg("no counter %s", name);
	return 0;
}

/* Wait for the last acknowledgement. */
static void
settle(const struct couple *c)
{
	time_t since = time(NULL);

	while (counter(c, 1, "sent_pkts") != counter(c, 0, "rcvd_pkts") ||
	       counter(c, 0, "sent_pkts") != counter(c, 1, "rcvd_pkts")) {
		softhca_embed_progress(c->embed);
		assert_false(out_of_time(since));
	}
}

/* A stage counts a burst after it: a completion may be there before it is counted. */
static void
comes_to(const struct couple *c, unsigned int i, const char *name, uint64_t expected)
{
	time_t since = time(NULL);

	while (counter(c, i, name) != expected && !out_of_time(since))
		softhca_embed_progress(c->embed);
	assert_int_equal(counter(c, i, name), expected);
}

/* Counters of both sides: exactly the activity of this pair. */
static void
check_counters(const struct couple *c)
{
	comes_to(c, 0, "sq_wqes", c->rounds * REQUESTS);
	comes_to(c, 0, "doorbells", c->rounds * REQUESTS);
	comes_to(c, 0, "req_completions", c->rounds * REQUESTS);
	comes_to(c, 0, "rdma_sends", c->rounds);
	comes_to(c, 0, FIRST_SENT, c->rounds * PACKETS);
	comes_to(c, 1, "rx_send_requests", c->rounds);
	comes_to(c, 1, "rx_write_requests", c->rounds);
	comes_to(c, 1, "rx_read_requests", c->rounds);
	comes_to(c, 1, "rdma_recvs", c->rounds);
	comes_to(c, 1, "sq_wqes", 0);
	comes_to(c, 0, "rx_unknown_qpn", 0);
	comes_to(c, 1, "rx_unknown_qpn", 0);
}

/* ---- tests ---- */

static void
live(uint32_t executor, unsigned int life)
{
	bool bad = life % 2 != 0;
	struct couple c = {.salt = (uint8_t)(100 + life)};
	const char *wrong = NULL;

	couple_open(&c, executor, life % 3, bad ? 0.04 : 0, bad ? BAD_TIMEOUT : 0);
	assert_int_equal(counter(&c, 0, "sent_pkts") + counter(&c, 1, "sent_pkts"), 0);
	for (unsigned int i = 0; i < ROUNDS && wrong == NULL; i++)
		wrong = round_trip(&c);
	if (wrong != NULL)
		fail_msg("life %u: %s", life, wrong);
	if (!bad)
		settle(&c);
	check_counters(&c);
	if (bad)
		assert_true(counter(&c, 0, "link_dropped") + counter(&c, 1, "link_dropped") > 0);
	couple_close(&c);
}

static void
several(uint32_t executor)
{
	/* static: a failed assertion leaves this function, but not the thread */
	static struct couple steady;
	static struct beside b;
	uint64_t before, after;
	pthread_t thread;

	steady = (struct couple){.salt = 1};
	b = (struct beside){.couple = &steady};
	couple_open(&steady, executor, SOFTHCA_LAYOUT_RTC, 0, 0);
	assert_int_equal(pthread_create(&thread, NULL, beside_main, &b), 0);
	for (unsigned int i = 0; i < LIVES; i++) {
		before = counter(&steady, 0, "sent_pkts");
		live(executor, i);
		do
			after = counter(&steady, 0, "sent_pkts");
		while (after == before && __atomic_load_n(&b.wrong, __ATOMIC_RELAXED) == NULL);
	}
	__atomic_store_n(&b.stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	if (b.wrong != NULL)
		fail_msg("beside: %s after %" PRIu64 " rounds", b.wrong, steady.rounds);
	settle(&steady);
	check_counters(&steady);
	assert_int_equal(counter(&steady, 0, "retransmissions"), 0);
	assert_int_equal(counter(&steady, 0, "link_dropped"), 0);
	couple_close(&steady);
}

/* Traffic until the counter of side 0 has grown. */
static void
until_grown(struct couple *c, const char *name)
{
	uint64_t before = counter(c, 0, name);
	time_t since = time(NULL);
	const char *wrong = NULL;

	while (counter(c, 0, name) == before && wrong == NULL) {
		wrong = round_trip(c);
		assert_false(out_of_time(since));
	}
	if (wrong != NULL)
		fail_msg("%s: %s", name, wrong);
}

static void
refuses(struct couple *c, unsigned int index, const char *text, const char *reason)
{
	assert_int_equal(softhca_embed_set(c->embed, index, text), -EINVAL);
	if (strstr(softhca_embed_last_error(), reason) == NULL)
		fail_msg("%s: %s", text, softhca_embed_last_error());
}

/* Every frame is marked: an algorithm that begins or ends under traffic obeys or ignores CNPs. */
static void
settings(uint32_t executor)
{
	const struct softhca_impairment marks = {.ecn = 1};
	static struct couple c;
	uint64_t handled;

	c = (struct couple){.salt = 1};
	couple_open(&c, executor, SOFTHCA_LAYOUT_RTC, 0, 0);
	assert_int_equal(softhca_embed_set_impairment(c.embed, &marks), 0);
	until_grown(&c, "rp_cnp_ignored");
	assert_int_equal(counter(&c, 0, "rp_cnp_handled"), 0);
	assert_int_equal(softhca_embed_set(c.embed, 0, "congestion=dcqcn"), 0);
	until_grown(&c, "rp_cnp_handled");
	assert_int_equal(softhca_embed_set(c.embed, 0, "congestion=swift"), 0);
	assert_int_equal(softhca_embed_set(c.embed, 0, "swift_base_delay_us=100000"), 0);
	assert_int_equal(softhca_embed_set(c.embed, 1, "cnp_interval_us=1"), 0);
	assert_int_equal(softhca_embed_set(c.embed, 1, "cnp_dscp=63"), 0);
	until_grown(&c, "rp_cnp_handled");
	assert_int_equal(softhca_embed_set(c.embed, 0, "congestion=none"), 0);
	until_grown(&c, "rp_cnp_ignored"); /* CNPs that came before have been handled */
	handled = counter(&c, 0, "rp_cnp_handled");
	until_grown(&c, "rp_cnp_ignored");
	assert_int_equal(counter(&c, 0, "rp_cnp_handled"), handled);
	refuses(&c, 2, "congestion=none", "HCA number 2");
	refuses(&c, 0, NULL, "no setting: expected congestion=NAME");
	refuses(&c, 0, "congestion=cubic", ", found \"cubic\"");
	refuses(&c, 0, "cnp_dscp=64", "cnp_dscp: expected 1 to 63, found \"64\"");
	refuses(&c, 0, "cnp_dscp=1x", "found \"1x\"");
	refuses(&c, 0, "swift_base_delay_us=", "found \"\"");
	refuses(&c, 0, "cnp_interval_us=4294967346", "expected 1 to 1000000");
	refuses(&c, 0, "cnp_dscp", "is no setting");
	couple_close(&c);
}

static void
settings_manual(void **state)
{
	(void)state;
	settings(SOFTHCA_EXECUTOR_MANUAL);
}

static void
settings_threads(void **state)
{
	(void)state;
	settings(SOFTHCA_EXECUTOR_THREADS);
}

static void
manual(void **state)
{
	(void)state;
	several(SOFTHCA_EXECUTOR_MANUAL);
}

static void
threads(void **state)
{
	(void)state;
	several(SOFTHCA_EXECUTOR_THREADS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(settings_manual),
		cmocka_unit_test(settings_threads),
		cmocka_unit_test(manual),
		cmocka_unit_test(threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
