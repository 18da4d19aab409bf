/* SPDX-License-Identifier: BSD-3-Clause */

/* CLOSE_DOMAIN: all objects of one owner are destroyed, those of others remain. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ceu/ceu.h"
#include "../rig.h"

#define OTHER 7u /* another owner's domain */
#define OTHER_KEY 60u
#define QPS 4u

static struct hca_usage
usage(struct rig *r)
{
	struct hca_usage u;

	hca_usage(r->h, &u);
	return u;
}

static void
populate(struct rig *r)
{
	rig_qp_world(r);
	for (uint32_t i = 2; i < 2 + QPS; i++)
		assert_int_equal(rig_to_init(r, i), HCA_STAT_OK);
	assert_int_equal(rig_to_rtr(r, 3), HCA_STAT_OK);
	assert_int_equal(rig_to_rts(r, 3), HCA_STAT_OK);
}

static int
close_domain(struct rig *r, uint32_t domain)
{
	return rig_cmd(r, HCA_CMD_CLOSE_DOMAIN, 0, domain, 0, 0);
}

static void
everything_of_one(void **state)
{
	struct rig *r = rig_new(true);
	struct hca_usage before = usage(r), u;
	uint8_t *mem = aligned_alloc(4096, 8192);
	uint32_t mpts;

	assert_int_equal(hca_dma_attach(r->h, OTHER, (uintptr_t)mem, 8192), 0);
	rig_mr(r, OTHER_KEY, HCA_PD_MAKE(1, OTHER), mem, 8192);
	rig_eq(r, 1, 4);
	mpts = usage(r).mpts;
	populate(r);
	u = usage(r);
	assert_int_equal(u.qps, before.qps + QPS);
	assert_true(u.cqs > before.cqs && u.mpts > mpts);

	assert_int_equal(close_domain(r, RIG_PAGE), HCA_STAT_OK);
	u = usage(r);
	assert_int_equal(u.qps, before.qps);
	assert_int_equal(u.cqs, before.cqs);
	assert_int_equal(r->h->core->vtp.mpt[OTHER_KEY].state, HCA_MPT_VALID);
	assert_true(hca_eq_is_live(r->h->core, 1));
	for (uint32_t i = 1; i <= r->h->core->vtp.mpt_mask; i++)
		assert_int_not_equal(HCA_PD_DOMAIN(r->h->core->vtp.mpt[i].pd), RIG_PAGE);
	/* closing an empty domain is allowed */
	assert_int_equal(close_domain(r, RIG_PAGE), HCA_STAT_OK);
	assert_int_equal(close_domain(r, OTHER), HCA_STAT_OK);
	assert_int_equal(r->h->core->vtp.mpt[OTHER_KEY].state, HCA_MPT_FREE);
	assert_int_equal(hca_dma_detach(r->h, OTHER, (uintptr_t)mem, 8192), 0);
	free(mem);
	rig_free(r);
}

/* A region belongs to the domain that it names; the domain of its PD does not matter. */
static void
in_a_pd_of_others(void **state)
{
	struct rig *r = rig_new(true);
	struct hca_mpt *m = (void *)r->in;
	uint8_t *mem = aligned_alloc(4096, 8192);
	const struct hca_mpt_entry *e = &r->h->core->vtp.mpt[OTHER_KEY];

	assert_int_equal(hca_dma_attach(r->h, OTHER, (uintptr_t)mem, 8192), 0);
	rig_fill_mpt(r, OTHER_KEY, RIG_PD, mem, 8192, rig_mtt(r, mem, 2));
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_MPT, OTHER_KEY), HCA_STAT_BAD_PARAM);
	m->domain = hca_cpu_to_be32(HCA_MPT_DOMAIN_MAKE(OTHER));
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_MPT, OTHER_KEY), HCA_STAT_OK);
	assert_non_null(hca_vtp_check(&r->h->core->vtp, hca_be32_to_cpu(m->key), RIG_PD, 0,
				      (uintptr_t)mem, 8192));
	assert_int_equal(hca_dma_detach(r->h, OTHER, (uintptr_t)mem, 8192), -EBUSY);
	assert_int_equal(close_domain(r, RIG_PAGE), HCA_STAT_OK);
	assert_int_equal(e->state, HCA_MPT_VALID);
	assert_int_equal(close_domain(r, OTHER), HCA_STAT_OK);
	assert_int_equal(e->state, HCA_MPT_FREE);
	assert_int_equal(hca_dma_detach(r->h, OTHER, (uintptr_t)mem, 8192), 0);
	free(mem);
	rig_free(r);
}

static void
no_such_domain(void **state)
{
	struct rig *r = rig_new(true);

	assert_int_equal(close_domain(r, 0), HCA_STAT_BAD_INDEX);
	assert_int_equal(close_domain(r, HCA_DMA_DOMAINS), HCA_STAT_BAD_INDEX);
	assert_int_equal(close_domain(r, UINT32_MAX), HCA_STAT_BAD_INDEX);
	rig_free(r);
}

/* Each step reads at most HCA_CEU_OBJECTS_PER_POLL entries of a large table. */
static void
in_parts(void **state)
{
	struct rig *r = rig_new_wide(14);
	struct hca_teardown t;
	unsigned int polls;

	hca_teardown_start(&t, 0, r->h->core->qp_mask, OTHER);
	for (polls = 1;; polls++) {
		uint32_t before = t.cursor;
		bool done = hca_teardown_step(r->h->core, &t);

		/* a step begins at 0 */
		assert_true(t.cursor <= HCA_CEU_OBJECTS_PER_POLL ||
			    t.cursor - before <= HCA_CEU_OBJECTS_PER_POLL);
		if (done)
			break;
		assert_in_range(t.cursor, 0, r->h->core->qp_mask + 1);
		rig_poll(r);
	}
	/* two steps look at each QP, two more do something with it */
	assert_true(polls >= 2 * ((r->h->core->qp_mask + 1) / HCA_CEU_OBJECTS_PER_POLL));
	rig_free(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_of_one),
		cmocka_unit_test(in_a_pd_of_others),
		cmocka_unit_test(no_such_domain),
		cmocka_unit_test(in_parts),
	};

	if (rig_eal() != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
