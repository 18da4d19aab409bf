/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Embedded HCAs that are created and destroyed while events are pending. The allocator overwrites
 * freed memory, so an access to a destroyed driver crashes.
 */

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <softhca/embed.h>
#include <softhca/softhca.h>

#include "../../test_threads.h"

#define HCAS 4u
#define LIVES 20u
#define FILL 0xc0

static void
config(struct softhca_embed_config *cfg, uint32_t executor)
{
	softhca_embed_config_init(cfg);
	cfg->hugepages = 2;
	cfg->executor = executor;
	cfg->num_hcas = HCAS;
	cfg->mbufs = 512;
	cfg->log_qps = 8;
	cfg->log_cqs = 8;
	cfg->log_mpts = 10;
	cfg->log_mtts = 12;
	cfg->seed = 1;
}

/* phase: position of the loop that polls for events when the drivers are destroyed */
static void
live(uint32_t executor, unsigned int phase)
{
	struct softhca_context *ctx[HCAS];
	struct softhca_embed_config cfg;
	struct softhca_embed *embed;

	config(&cfg, executor);
	assert_int_equal(softhca_embed_create(&cfg, &embed), 0);
	for (unsigned int i = 0; i < HCAS; i++)
		assert_int_equal(softhca_embed_open(embed, i, &ctx[i]), 0);
	for (unsigned int i = 0; i < phase; i++)
		softhca_embed_progress(embed);
	assert_int_equal(softhca_close(ctx[0]), 0);
	assert_int_equal(softhca_embed_destroy(embed), 0); /* closes the other contexts */
}

static void
manual(void **state)
{
	(void)state;
	mallopt(M_PERTURB, FILL);
	for (unsigned int i = 0; i < LIVES; i++)
		live(SOFTHCA_EXECUTOR_MANUAL, i * 1024 / LIVES);
	mallopt(M_PERTURB, 0);
}

static void
threads(void **state)
{
	(void)state;
	mallopt(M_PERTURB, FILL);
	for (unsigned int i = 0; i < LIVES / 4; i++)
		live(SOFTHCA_EXECUTOR_THREADS, 0);
	mallopt(M_PERTURB, 0);
}

/* Calls in a forked child; the exit status is the number of the first call that was not refused. */
static int
child(struct softhca_embed *embed, struct softhca_context *ctx, struct softhca_pd *pd,
      struct softhca_cq *cq, struct softhca_qp *qp)
{
	struct softhca_embed_config cfg;
	struct softhca_embed *another;
	struct softhca_context *more;
	struct softhca_recv_wr wr = {0}, *bad;
	struct softhca_fault_rule rule = {.fault = SOFTHCA_FAULT_DROP, .nth = 1};
	struct softhca_wc wc;

	config(&cfg, SOFTHCA_EXECUTOR_MANUAL);
	if (softhca_alloc_pd(ctx) != NULL || errno != EPERM)
		return 1;
	if (softhca_poll_cq(cq, 1, &wc) != -EPERM)
		return 2;
	if (softhca_post_recv(qp, &wr, &bad) != -EPERM)
		return 3;
	if (softhca_destroy_qp(qp) != -EPERM || softhca_dealloc_pd(pd) != -EPERM)
		return 4;
	if (softhca_close(ctx) != -EPERM)
		return 5;
	if (softhca_embed_open(embed, 0, &more) != -EPERM)
		return 6;
	if (softhca_embed_create(&cfg, &another) != -EPERM)
		return 7;
	if (softhca_embed_progress(embed) != 0 || softhca_progress(ctx) != 0)
		return 8;
	if (softhca_embed_set(embed, 0, "congestion=dcqcn") != -EPERM ||
	    softhca_embed_impair(embed, "drop=1") != -EPERM)
		return 9;
	if (softhca_embed_set_impairment(embed, NULL) != -EPERM ||
	    softhca_embed_set_stall(embed, NULL) != -EPERM ||
	    softhca_embed_add_fault(embed, 0, &rule) != -EPERM ||
	    softhca_embed_clear_faults(embed, 0) != -EPERM ||
	    softhca_embed_faults(embed, 0, NULL, 0) != -EPERM)
		return 10;
	if (softhca_embed_capture(embed, NULL) != -EPERM ||
	    softhca_embed_counters(embed, 0, NULL, 0) != -EPERM ||
	    softhca_embed_stage_times(embed, 0, NULL, 0) != -EPERM ||
	    softhca_embed_resources(embed, 0, NULL, 0) != -EPERM)
		return 11;
	return softhca_embed_destroy(embed) == -EPERM ? 0 : 12;
}

/* Whether the first HCA has measured times of its stages. */
static bool
has_times(struct softhca_embed *embed)
{
	struct softhca_value times[64];
	int n = softhca_embed_stage_times(embed, 0, times, 64);
	uint64_t sum = 0;

	assert_in_range(n, 1, 64);
	for (int i = 0; i < n; i++)
		sum += times[i].value;
	return sum != 0;
}

/*
 * A child shares the engine's memory: its calls must not affect the parent. timed: the parent
 * measures times of stages, which the child would end; else the child would start it.
 */
static void
fork_with(uint32_t executor, bool timed)
{
	struct softhca_cq_init_attr cq_attr = {.cqe = 4};
	struct softhca_qp_init_attr qp_attr = {.qp_type = SOFTHCA_QPT_RC};
	struct softhca_qp_attr attr = {.qp_state = SOFTHCA_QPS_INIT, .port_num = 1};
	struct softhca_embed_config cfg;
	struct softhca_context *ctx;
	struct softhca_embed *embed;
	struct softhca_pd *pd;
	struct softhca_qp *qp;
	struct softhca_cq *cq;
	int status;
	pid_t pid;

	config(&cfg, executor);
	assert_int_equal(softhca_embed_create(&cfg, &embed), 0);
	assert_int_equal(softhca_embed_open(embed, 0, &ctx), 0);
	pd = softhca_alloc_pd(ctx);
	cq = softhca_create_cq(ctx, &cq_attr);
	qp_attr.send_cq = qp_attr.recv_cq = cq;
	qp = softhca_create_qp(pd, &qp_attr);
	assert_non_null(qp);
	assert_int_equal(softhca_modify_qp(qp, &attr,
					   SOFTHCA_QP_STATE | SOFTHCA_QP_PORT |
						   SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_ACCESS_FLAGS),
			 0);
	if (timed)
		softhca_embed_reset_times(embed);
	pid = fork();
	if (pid == 0) {
		(timed ? softhca_embed_stop_times : softhca_embed_reset_times)(embed);
		_exit(child(embed, ctx, pd, cq, qp));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	/* commands are work, whose time would count */
	assert_int_equal(softhca_destroy_qp(qp), 0);
	assert_int_equal(softhca_destroy_cq(cq), 0);
	assert_int_equal(softhca_dealloc_pd(pd), 0);
	assert_int_equal(has_times(embed), timed);
	assert_int_equal(softhca_close(ctx), 0);
	assert_int_equal(softhca_embed_destroy(embed), 0);
}

/* Sizes that the device does not support are refused with their name, before anything starts. */
static void
refused_sizes(void **state)
{
	static const struct {
		size_t at;
		uint32_t value;
		const char *name;
	} bad[] = {
#define BAD(field, value) {offsetof(struct softhca_embed_config, field), value, #field " = " #value}
		BAD(log_qps, 1),	 BAD(log_qps, 15),	   BAD(log_cqs, 15),
		BAD(log_mpts, 2),	 BAD(log_mpts, 18),	   BAD(log_mtts, 27),
		BAD(edge_size, 1),	 BAD(records, 1),	   BAD(log_mtts, 2),
		BAD(edge_size, 2000000), BAD(records_per_qp, 257), BAD(ub, 2),
		BAD(log_tps, 14),	 BAD(ub_ops, 1),	   BAD(ub_records, 1),
#undef BAD
	};
	struct softhca_embed_config cfg;
	struct softhca_embed *embed;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		config(&cfg, SOFTHCA_EXECUTOR_MANUAL);
		memcpy((uint8_t *)&cfg + bad[i].at, &bad[i].value, sizeof(bad[i].value));
		assert_int_equal(softhca_embed_create(&cfg, &embed), -EINVAL);
		assert_non_null(strstr(softhca_embed_last_error(), bad[i].name));
	}
}

/* A message has the value and the rule. */
static void
congestion_by_name(void **state)
{
	struct softhca_embed_config cfg;
	struct softhca_embed *embed;
	struct softhca_context *ctx;

	(void)state;
	config(&cfg, SOFTHCA_EXECUTOR_MANUAL);
	cfg.congestion = "bbr";
	assert_int_equal(softhca_embed_create(&cfg, &embed), -EINVAL);
	assert_non_null(strstr(softhca_embed_last_error(), "congestion = \"bbr\": one of: none"));
	cfg.congestion = "none";
	assert_int_equal(softhca_embed_create(&cfg, &embed), 0);
	assert_int_equal(softhca_embed_open(embed, 7, &ctx), -EINVAL);
	assert_string_equal(softhca_embed_last_error(), "HCA number 7: expected 0 to 3");
	assert_int_equal(softhca_embed_destroy(embed), 0);
}

/* HCAs with several pipelines, and numbers of them that do not exist. */
static void
pipelines(void **state)
{
	static const uint32_t bad[] = {3, 5, 17, 32, 0x80000000};
	struct softhca_embed_config cfg;
	struct softhca_embed *embed;
	struct softhca_context *ctx;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		config(&cfg, SOFTHCA_EXECUTOR_MANUAL);
		cfg.pipelines = bad[i];
		assert_int_equal(softhca_embed_create(&cfg, &embed), -EINVAL);
		assert_non_null(strstr(softhca_embed_last_error(), "expected 1, 2, 4, 8 or 16"));
	}
	config(&cfg, SOFTHCA_EXECUTOR_MANUAL);
	cfg.pipelines = 16;
	cfg.layout = SOFTHCA_LAYOUT_FULL;
	assert_int_equal(softhca_embed_create(&cfg, &embed), -EINVAL);
	assert_non_null(strstr(softhca_embed_last_error(), "more than 64 workers"));
	for (uint32_t n = 1; n <= 16; n *= 4) {
		config(&cfg, n == 1 ? SOFTHCA_EXECUTOR_MANUAL : SOFTHCA_EXECUTOR_THREADS);
		cfg.pipelines = n;
		cfg.num_hcas = 2;
		cfg.mbufs = 256;
		assert_int_equal(softhca_embed_create(&cfg, &embed), 0);
		assert_int_equal(softhca_embed_open(embed, 0, &ctx), 0);
		assert_int_equal(softhca_close(ctx), 0);
		assert_int_equal(softhca_embed_destroy(embed), 0);
	}
}

/* A member that only a later release has must not be ignored. */
static void
refused_members(void **state)
{
	struct softhca_embed_config cfg;
	struct softhca_embed *embed;

	(void)state;
	for (size_t i = 0; i < sizeof(cfg.reserved) / sizeof(cfg.reserved[0]); i += 28) {
		config(&cfg, SOFTHCA_EXECUTOR_MANUAL);
		cfg.reserved[i] = 1;
		assert_int_equal(softhca_embed_create(&cfg, &embed), -EOPNOTSUPP);
		assert_non_null(strstr(softhca_embed_last_error(), "members of a later release"));
	}
}

static void
forks(void **state)
{
	(void)state;
	fork_with(SOFTHCA_EXECUTOR_MANUAL, true);
	fork_with(SOFTHCA_EXECUTOR_MANUAL, false);
	fork_with(SOFTHCA_EXECUTOR_THREADS, false);
}

/* Threads of the device and of DPDK leave signals to those of the program, which keep theirs. */
static void
signals(void **state)
{
	struct softhca_embed_config cfg;
	struct softhca_embed *embed;
	unsigned int take;
	sigset_t mine;

	(void)state;
	config(&cfg, SOFTHCA_EXECUTOR_THREADS);
	assert_int_equal(softhca_embed_create(&cfg, &embed), 0);
	assert_true(test_other_threads(&take) > HCAS);
	assert_int_equal(softhca_embed_destroy(embed), 0);
	assert_int_equal(take, 0);
	pthread_sigmask(SIG_BLOCK, NULL, &mine);
	assert_false(sigismember(&mine, SIGTERM));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(manual),	   cmocka_unit_test(threads),
		cmocka_unit_test(forks),	   cmocka_unit_test(signals),
		cmocka_unit_test(refused_members), cmocka_unit_test(congestion_by_name),
		cmocka_unit_test(refused_sizes),   cmocka_unit_test(pipelines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
