/* SPDX-License-Identifier: BSD-3-Clause */

/* The table of algorithms, and the one that an HCA has. */

#include <errno.h>
#include <string.h>

#include "cc/cc.h"
#include "cc/cc_names.h"
#include "ceu/ceu.h"
#include "../rig.h"

static uint32_t
mine_may_send(struct hca_pipe *h, uint32_t obj, uint32_t unanswered, uint64_t now, uint64_t *again)
{
	return UINT32_MAX - 1;
}

static void
mine_begin(struct hca_pipe *h, uint32_t obj)
{
	++*(uint32_t *)hca_cc_state(h, obj);
}

/* A control that only this test registers; it is not in the table */
static const struct hca_cc_ops mine = {.name = "mine",
				       .state_bytes = 4,
				       .begin = mine_begin,
				       .may_send = mine_may_send};
static const struct hca_cc_ops *const more[] = {&mine, NULL};

static void
by_name(void **state)
{
	const struct hca_cc_ops *cc = &mine;

	assert_int_equal(hca_cc_find(NULL, NULL, &cc), 0);
	assert_null(cc);
	cc = &mine;
	assert_int_equal(hca_cc_find("none", more, &cc), 0);
	assert_null(cc);
	assert_int_equal(hca_cc_find("mine", NULL, &cc), -EINVAL);
	assert_int_equal(hca_cc_find("min", more, &cc), -EINVAL);
	assert_int_equal(hca_cc_find("", more, &cc), -EINVAL);
	assert_int_equal(hca_cc_find("mine", more, &cc), 0);
	assert_ptr_equal(cc, &mine);
}

/* A configuration may name each row of the table; messages list them. */
static void
names(void **state)
{
	const char *all = HCA_CC_NAMES;

#define X(name) \
	assert_true(hca_cc_is_name(#name)); \
	assert_non_null(strstr(all, " " #name));
	HCA_CC_LIST(X)
#undef X
	assert_true(hca_cc_is_name("none"));
	assert_false(hca_cc_is_name("None"));
	assert_false(hca_cc_is_name(""));
	assert_false(hca_cc_is_name("mine"));
}

/* An HCA has a known algorithm, and then the capability. */
static void
of_an_hca(void **state)
{
	struct rig *r = rig_new(false);
	struct hca_config cfg = r->h->core->cfg;
	struct hca *h;

	assert_null(r->h->core->cc);
	assert_int_equal(hca_ceu_caps(r->h->core) & HCA_CAP_ECN, 0);
	cfg.name = "cc1";
	cfg.congestion = "mine";
	assert_int_equal(hca_create(&cfg, &h), -EINVAL);
	cfg.congestion_more = more;
	assert_int_equal(hca_create(&cfg, &h), 0);
	assert_ptr_equal(h->core->cc, &mine);
	assert_int_equal(hca_ceu_caps(h->core) & HCA_CAP_ECN, HCA_CAP_ECN);
	/* each object has a state of its own */
	hca_cc_begin(&h->pipe[0], 1);
	assert_int_equal(*(uint32_t *)hca_cc_state(&h->pipe[0], 0), 0);
	assert_int_equal(*(uint32_t *)hca_cc_state(&h->pipe[0], 1), 1);
	hca_destroy(h);
	rig_free(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(by_name), cmocka_unit_test(names),
					   cmocka_unit_test(of_an_hca)};

	assert_int_equal(rig_eal(), 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
