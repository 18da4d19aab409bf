/* SPDX-License-Identifier: BSD-3-Clause */

/* Every allocation fails once: an error or a lost event, never more, and nothing is left. */

#include <errno.h>
#include <string.h>

#include "abi_ctx.h"
#include "cm_rig.h"

#define CLIENT 7u
#define SERVER 9u
#define CH 1u
#define PORT 7174u
/* ids of a scenario: for each allocation of an object; for tables and heaps to grow */
#define FEW 4u
#define MANY 70u

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size);

static struct rig r;
static uint32_t to_fail; /* allocations until one fails; 0: all succeed */
static bool only_arrays; /* those of one object do not count */
static bool failed;

static bool
fails(void)
{
	if (to_fail == 0 || --to_fail != 0)
		return false;
	failed = true;
	return true;
}

void *
__wrap_calloc(size_t n, size_t size)
{
	return (n > 1 || !only_arrays) && fails() ? NULL : __real_calloc(n, size);
}

void *
__wrap_realloc(void *p, size_t size)
{
	return fails() ? NULL : __real_realloc(p, size);
}

static void
test_create(void **state)
{
	struct ibcm *cm;

	rig_begin(&r, 1, NULL);
	for (uint32_t n = 1;; n++) {
		failed = false;
		to_fail = n;
		cm = ibcm_create(&r.cfg[0]);
		to_fail = 0;
		assert_true((cm == NULL) == failed);
		if (cm != NULL)
			break;
	}
	ibcm_destroy(cm, 0);
	r.cfg[0].mtu = 6;
	assert_null(ibcm_create(&r.cfg[0]));
	rig_end(&r);
}

/* Steps of programs, as far as they get */
static void
answer(uint32_t end, uint32_t owner)
{
	struct hca_ctl_cm_route route = {.timeout_ms = 1000};
	struct hca_ctl_none none;
	struct hca_ctl_cm_event e;

	while (rig_event(&r, end, owner, CH, &e)) {
		route.id = e.id;
		if (e.type == HCA_CTL_CM_EV_ADDR_RESOLVED)
			(void)rig_call(&r, end, owner, HCA_CTL_CM_ROUTE, &route, &none);
		else if (e.type == HCA_CTL_CM_EV_ROUTE_RESOLVED)
			(void)rig_connect(&r, end, owner, e.id, e.id & 0xffff, "hello");
		else if (e.type == HCA_CTL_CM_EV_CONNECT_REQUEST)
			(void)rig_accept(&r, end, owner, e.id, e.id & 0xffff, NULL);
		else if (e.type == HCA_CTL_CM_EV_CONNECT_RESPONSE)
			(void)rig_establish(&r, end, owner, e.id);
	}
}

static void
scenario(uint32_t ids)
{
	struct hca_ctl_cm_join join = {.addr = ib_ip_any(HCA_CTL_CM_IP4)};
	struct hca_ctl_cm_move move = {.channel = 2};
	struct hca_ctl_none none;
	uint32_t id, number;

	for (uint32_t space = 0; space < 2; space++) {
		uint32_t ps = space == 0 ? HCA_CTL_CM_SPACE_TCP : HCA_CTL_CM_SPACE_UDP;

		id = rig_create(&r, 1, SERVER, CH, ps);
		(void)rig_bind(&r, 1, SERVER, id, RIG_IP6, NULL, PORT, 0);
		(void)rig_listen(&r, 1, SERVER, id, 0);
		for (uint32_t i = 0; i < ids; i++) {
			id = rig_create(&r, 0, CLIENT, CH, ps);
			(void)rig_resolve(&r, 0, CLIENT, id, r.gid[1][RIG_IP4], PORT);
			if (i % 30 == 29)
				rig_run(&r, RIG_MS);
		}
		for (uint32_t i = 0; i < 20; i++) {
			rig_run(&r, RIG_MS);
			answer(0, CLIENT);
			answer(1, SERVER);
		}
		join.id = move.id = id;
		join.addr.gid[12] = 224;
		(void)rig_call(&r, 0, CLIENT, HCA_CTL_CM_JOIN, &join, &number);
		(void)rig_call(&r, 0, CLIENT, HCA_CTL_CM_MOVE, &move, &none);
	}
}

static void
scenario_ends(void)
{
	static const char *const gauges[] = {"cm_now_ids", "cm_now_orphans", "cm_now_halves",
					     "cm_now_ports", "cm_now_memberships"};

	for (uint32_t end = 0; end < RIG_ENDS; end++) {
		ibcm_forget(r.cm[end], CLIENT, r.now);
		ibcm_forget(r.cm[end], SERVER, r.now);
	}
	rig_run(&r, 500 * RIG_SECOND);
	for (uint32_t end = 0; end < RIG_ENDS; end++)
		for (uint32_t i = 0; i < sizeof(gauges) / sizeof(gauges[0]); i++)
			assert_int_equal(rig_counter(&r, end, gauges[i]), 0);
}

/* The scenario as often as it has allocations; returns how many that are. */
static uint32_t
each_fails(uint32_t ids)
{
	uint32_t n = 0;

	do {
		rig_begin(&r, 1, NULL);
		failed = false;
		to_fail = ++n;
		scenario(ids);
		to_fail = 0;
		if (!failed)
			assert_int_equal(rig_counter(&r, 0, "cm_opened"), ids);
		scenario_ends();
		rig_end(&r);
	} while (failed);
	return n - 1;
}

static void
test_objects(void **state)
{
	only_arrays = false;
	assert_in_range(each_fails(FEW), 50, 200);
}

/* Tables and heaps grow, or work as they are. */
static void
test_arrays(void **state)
{
	only_arrays = true;
	assert_in_range(each_fails(MANY), 10, 50);
	only_arrays = false;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_create),
		cmocka_unit_test(test_objects),
		cmocka_unit_test(test_arrays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
