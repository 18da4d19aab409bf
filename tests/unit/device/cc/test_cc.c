/* SPDX-License-Identifier: BSD-3-Clause */

/* The table of algorithms, and the one that an HCA has. */

#include <errno.h>
#include <string.h>

#include "abi_qp_attr.h"
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
	unsigned int rows = 0;

#define X(name) \
	rows++; \
	assert_int_equal(hca_cc_find(#name, more), rows);
	HCA_CC_LIST(X)
#undef X
	assert_int_equal(hca_cc_find(NULL, NULL), hca_cc_number("none"));
	assert_int_equal(rows, HCA_CONGESTION_MAX);
	assert_int_equal(hca_cc_find("mine", NULL), -EINVAL);
	assert_int_equal(hca_cc_find("min", more), -EINVAL);
	assert_int_equal(hca_cc_find("", more), -EINVAL);
	assert_int_equal(hca_cc_find("mine", more), rows + 1);
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

/* An HCA has a known algorithm, and its objects have it from their begin on. */
static void
of_an_hca(void **state)
{
	struct rig *r = rig_new(false);
	struct hca_config cfg = r->h->core->cfg;
	struct hca_pipe *p;
	struct hca *h;
	uint8_t n;

	assert_null(r->h->core->cc);
	assert_null(hca_cc_of(&r->h->pipe[0], 1));
	assert_string_equal(hca_congestion(r->h), "none");
	cfg.name = "cc1";
	cfg.congestion = "mine";
	assert_int_equal(hca_create(&cfg, &h), -EINVAL);
	cfg.congestion_more = more;
	assert_int_equal(hca_create(&cfg, &h), 0);
	assert_string_equal(hca_congestion(h), "mine");
	p = &h->pipe[0];
	n = p->cc_room->number;
	assert_null(hca_cc_of(p, 1));
	/* each object has a state of its own */
	hca_cc_begin(p, 1, n);
	assert_ptr_equal(hca_cc_of(p, 1), &mine);
	assert_int_equal(*(uint32_t *)hca_cc_state(p, 0), 0);
	assert_int_equal(*(uint32_t *)hca_cc_state(p, 1), 1);
	assert_int_equal(*(uint32_t *)hca_cc_state(p, hca_cc_responses(p, 1)), 1);
	/* another life has the state of the last one, unless that had another algorithm */
	hca_cc_begin(p, 1, n);
	assert_int_equal(*(uint32_t *)hca_cc_state(p, 1), 2);
	assert_int_equal(hca_cc_life(p, 1), 2);
	hca_cc_begin(p, 1, (uint8_t)hca_cc_number("dcqcn"));
	hca_cc_begin(p, 1, n);
	assert_int_equal(*(uint32_t *)hca_cc_state(p, 1), 1);
	assert_int_equal(hca_cc_life(p, 1), 4);
	hca_cc_set(h->core, 1, 0);
	assert_null(hca_cc_of(p, 1));
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
