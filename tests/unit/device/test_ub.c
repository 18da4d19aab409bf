/* SPDX-License-Identifier: BSD-3-Clause */

/* The parts of a device for UB, and that a device without that wire has none of them. */

#include <stdlib.h>
#include <string.h>

#include <rte_malloc.h>

#include "graph/executor.h"
#include "rig.h"
#include "ub/ub.h"

#define TPS (1u << RIG_LOG_TPS)

static unsigned int
allocations(void)
{
	struct rte_malloc_socket_stats st = {0};

	rte_malloc_get_socket_stats(0, &st);
	return st.alloc_count;
}

static void
nothing_without_it(void **state)
{
	struct rig *r = rig_new(false);
	const struct hca *h = r->h;

	assert_int_equal(h->core->cfg.wires, HCA_WIRE_BIT(HCA_WIRE_ROCE));
	assert_null(h->core->ub);
	assert_int_equal(h->pipe[0].object[HCA_OBJECT_TP].count, 0);
	assert_int_equal(h->pipe[0].object[HCA_OBJECT_ANY].count,
			 h->pipe[0].object[HCA_OBJECT_QP].count);
	rig_free(r);
}

static void
objects_and_pools(void **state)
{
	unsigned int before = allocations();
	struct rig *r = rig_new_on(RIG_UB, false);
	const struct hca *h = r->h;
	const struct hca_object_range *tps = &h->pipe[0].object[HCA_OBJECT_TP];

	assert_int_equal(tps->first, 1u << RIG_LOG_QPS);
	assert_int_equal(tps->count, TPS);
	assert_int_equal(h->pipe[0].object[HCA_OBJECT_ANY].count, tps->first + TPS);
	assert_int_equal(hca_object_kind(&h->pipe[0], tps->first - 1), HCA_OBJECT_QP);
	assert_int_equal(hca_object_kind(&h->pipe[0], tps->first), HCA_OBJECT_TP);
	assert_int_equal(h->core->ub->tp_mask, TPS - 1);
	for (uint32_t lane = 0; lane < HCA_TP_LANES; lane++) {
		struct hca_ta_op_pool *p = &h->core->ub->pool[lane];

		for (uint32_t i = 0; i < 64; i++)
			assert_int_equal(hca_ta_op_take(p), i);
		assert_int_equal(hca_ta_op_take(p), UINT32_MAX);
	}
	rig_poll(r);
	rig_free(r);
	assert_int_equal(allocations(), before);
}

/* In layout full each stage has a worker, but those of UB only where the wire is. */
static void
workers_and_edges(void **state)
{
	static const struct {
		enum hca_layout layout;
		uint32_t wires;
		unsigned int workers;
	} rows[] = {
		{HCA_LAYOUT_RTC, RIG_UB, 1}, {HCA_LAYOUT_RTC, 0, 1},  {HCA_LAYOUT_TXRX, RIG_UB, 2},
		{HCA_LAYOUT_TXRX, 0, 2},     {HCA_LAYOUT_FULL, 0, 9}, {HCA_LAYOUT_FULL, RIG_UB, 13},
	};
	struct rig *r = rig_new(false);
	struct hca_config cfg = r->h->core->cfg;
	struct hca *h;

	cfg.name = "t1";
	for (unsigned int i = 0; i < RTE_DIM(rows); i++) {
		bool ub = rows[i].wires != 0;

		cfg.layout = rows[i].layout;
		cfg.wires = rows[i].wires;
		assert_int_equal(hca_create(&cfg, &h), 0);
		assert_int_equal(hca_workers(h), rows[i].workers);
		assert_int_equal(hca_layout_workers(rows[i].layout, 1, h->core->cfg.wires),
				 rows[i].workers);
		assert_int_equal(h->pipe[0].edge[HCA_EDGE_TPS_ENCAP].process != NULL, ub);
		assert_int_equal(h->pipe[0].edge[HCA_EDGE_DECAP_TPR].process != NULL, ub);
		assert_int_equal(h->pipe[0].msg[HCA_STAGE_TPS][HCA_STAGE_TIMER] != NULL, ub);
		for (unsigned int s = 0; s < HCA_STAGE_N; s++)
			assert_true(hca_stage_on(h, 0, s) < rows[i].workers);
		assert_int_equal(hca_direct_poll(h, 1000000), 0);
		hca_destroy(h);
	}
	rig_free(r);
}

static void
unknown_wires(void **state)
{
	struct rig *r = rig_new(false);
	struct hca_config cfg = r->h->core->cfg;
	struct hca *h;

	cfg.name = "t1";
	cfg.wires = HCA_WIRE_BIT(HCA_WIRES);
	assert_int_equal(hca_create(&cfg, &h), -EINVAL);
	cfg.wires = HCA_WIRE_BIT(HCA_WIRE_UB);
	cfg.log_tps = 14;
	assert_int_equal(hca_create(&cfg, &h), -EINVAL);
	rig_free(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_without_it),
		cmocka_unit_test(objects_and_pools),
		cmocka_unit_test(workers_and_edges),
		cmocka_unit_test(unknown_wires),
	};

	if (rig_eal() != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
