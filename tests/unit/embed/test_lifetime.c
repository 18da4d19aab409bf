/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Embedded HCAs that come and go while events are on their way. Freed memory is overwritten by the
 * allocator, so that whoever looks at a driver that is gone trips over it.
 */

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <softhca/embed.h>
#include <softhca/softhca.h>

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

/* phase: how far the loop that now and then looks for events has come when the drivers end */
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(manual),
		cmocka_unit_test(threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
