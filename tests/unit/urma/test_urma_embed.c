/* SPDX-License-Identifier: BSD-3-Clause */

/* URMA as programs have it, over HCAs in this process: answers of their driver and device. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <softhca/embed.h>
#include <softhca/urma.h>

static struct softhca_embed *embed;
static struct softhca_context *lib;
static urma_context_t *ctx;
static urma_jfc_t *jfc;
static uint8_t memory[8192];

static void
begin(uint32_t ub)
{
	struct softhca_embed_config cfg;
	urma_jfc_cfg_t depth = {.depth = 16};

	softhca_embed_config_init(&cfg);
	cfg.hugepages = 2;
	cfg.executor = SOFTHCA_EXECUTOR_MANUAL;
	cfg.mbufs = 512;
	cfg.seed = 1;
	cfg.log_qps = 8;
	cfg.log_cqs = 6;
	cfg.log_srqs = 4;
	cfg.log_mpts = 8;
	cfg.log_mtts = 12;
	cfg.ub = ub;
	assert_int_equal(softhca_embed_create(&cfg, &embed), 0);
	assert_int_equal(softhca_embed_open(embed, 0, &lib), 0);
	ctx = softhca_urma_context(lib);
	assert_non_null(ctx);
	jfc = urma_create_jfc(ctx, &depth);
	assert_non_null(jfc);
}

static void
end(void)
{
	assert_int_equal(urma_delete_jfc(jfc), URMA_SUCCESS);
	assert_int_equal(urma_delete_context(ctx), URMA_SUCCESS);
	assert_int_equal(softhca_close(lib), 0);
	softhca_embed_destroy(embed);
}

static urma_jfr_cfg_t
receives(uint32_t id)
{
	return (urma_jfr_cfg_t){.id = id,
				.depth = 7,
				.jfc = jfc,
				.trans_mode = URMA_TM_RM,
				.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT,
				.token_value.token = 5};
}

static urma_jfs_cfg_t
sends(void)
{
	return (urma_jfs_cfg_t){.depth = 8, .jfc = jfc, .trans_mode = URMA_TM_RM, .rnr_retry = 7};
}

/* A Jetty with its own receives, one that shares a JFR, and a JFS; well-known numbers */
static void
test_queues(void **state)
{
	urma_jfr_cfg_t own, shared;
	urma_jfs_cfg_t jfs_cfg;
	urma_jetty_cfg_t cfg;
	urma_jetty_t *jetty, *sharing;
	urma_jfr_t *jfr;
	urma_jfs_t *jfs;

	begin(1);
	own = receives(0);
	shared = receives(40);
	jfs_cfg = sends();
	cfg = (urma_jetty_cfg_t){.jfs_cfg = jfs_cfg, .jfr_cfg = &own};
	jetty = urma_create_jetty(ctx, &cfg);
	jfr = urma_create_jfr(ctx, &shared);
	jfs = urma_create_jfs(ctx, &jfs_cfg);
	assert_true(jetty != NULL && jfr != NULL && jfs != NULL);
	assert_in_range(jetty->jetty_id.id, 1024, (1 << 19) - 1);
	assert_int_equal(jfr->jfr_id.id, 40);
	cfg = (urma_jetty_cfg_t){.id = 41,
				 .flag.bs.share_jfr = 1,
				 .jfs_cfg = jfs_cfg,
				 .shared = {.jfr = jfr}};
	sharing = urma_create_jetty(ctx, &cfg);
	assert_non_null(sharing);
	assert_null(urma_create_jetty(ctx, &cfg)); /* the number is taken */
	assert_int_equal(errno, EBUSY);
	assert_int_equal(urma_delete_jetty(sharing), URMA_SUCCESS);
	sharing = urma_create_jetty(ctx, &cfg); /* and free again */
	assert_non_null(sharing);
	assert_int_equal(urma_delete_jetty(sharing), URMA_SUCCESS);
	assert_int_equal(urma_delete_jfs(jfs), URMA_SUCCESS);
	assert_int_equal(urma_delete_jfr(jfr), URMA_SUCCESS);
	assert_int_equal(urma_delete_jetty(jetty), URMA_SUCCESS);
	end();
}

/* As the device has them */
static void
test_states(void **state)
{
	urma_jetty_attr_t attr = {.mask = JETTY_STATE};
	urma_jfr_cfg_t own;
	urma_jetty_cfg_t cfg;
	urma_jetty_t *jetty;

	begin(1);
	own = receives(0);
	cfg = (urma_jetty_cfg_t){.jfs_cfg = sends(), .jfr_cfg = &own};
	jetty = urma_create_jetty(ctx, &cfg);
	assert_int_equal(urma_query_jetty(jetty, NULL, &attr), URMA_SUCCESS);
	assert_int_equal(attr.state, URMA_JETTY_STATE_READY);
	attr.state = URMA_JETTY_STATE_SUSPENDED;
	assert_int_equal(urma_modify_jetty(jetty, &attr), URMA_SUCCESS);
	assert_int_equal(urma_query_jetty(jetty, NULL, &attr), URMA_SUCCESS);
	assert_int_equal(attr.state, URMA_JETTY_STATE_SUSPENDED);
	attr.state = URMA_JETTY_STATE_ERROR;
	assert_int_equal(urma_modify_jetty(jetty, &attr), URMA_SUCCESS);
	assert_int_equal(urma_query_jetty(jetty, NULL, &attr), URMA_SUCCESS);
	assert_int_equal(attr.state, URMA_JETTY_STATE_ERROR);
	assert_int_equal(urma_delete_jetty(jetty), URMA_SUCCESS);
	end();
}

static void
test_segments(void **state)
{
	urma_seg_cfg_t cfg = {.va = (uintptr_t)memory,
			      .len = sizeof(memory),
			      .token_value.token = 7,
			      .flag.bs = {.token_policy = URMA_TOKEN_PLAIN_TEXT,
					  .access = URMA_ACCESS_READ | URMA_ACCESS_ATOMIC}};
	urma_target_seg_t *seg;

	begin(1);
	seg = urma_register_seg(ctx, &cfg);
	assert_non_null(seg);
	assert_in_range(seg->seg.token_id, 1, (1 << 20) - 1);
	assert_int_equal(softhca_urma_rotate_token(seg, (urma_token_t){8}), URMA_SUCCESS);
	assert_int_equal(softhca_urma_commit_token(seg), URMA_SUCCESS);
	assert_int_equal(urma_unregister_seg(seg), URMA_SUCCESS);
	end();
}

/* A device that speaks RoCE only: the driver's reason is the call's. */
static void
test_no_ub(void **state)
{
	urma_jfr_cfg_t own;
	urma_jetty_cfg_t cfg;
	urma_seg_cfg_t seg = {.va = (uintptr_t)memory,
			      .len = 64,
			      .flag.bs.access = URMA_ACCESS_READ};

	begin(0);
	own = receives(0);
	cfg = (urma_jetty_cfg_t){.jfs_cfg = sends(), .jfr_cfg = &own};
	assert_true(urma_create_jetty(ctx, &cfg) == NULL && errno == EOPNOTSUPP);
	assert_non_null(strstr(softhca_urma_reason(), "UB"));
	assert_true(urma_create_jfr(ctx, &own) == NULL && errno == EOPNOTSUPP);
	assert_true(urma_register_seg(ctx, &seg) == NULL && errno == EOPNOTSUPP);
	end();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_queues),
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_segments),
		cmocka_unit_test(test_no_ub),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
