/* SPDX-License-Identifier: BSD-3-Clause */

/* Queries of the device and the port: values derived from the driver's. */

#include <errno.h>

#include "lib_rig.h"

const struct rig_wanted rig_wanted = {0}; /* no QP */

static void
test_device(void **state)
{
	struct softhca_device_attr attr;

	assert_int_equal(softhca_query_device(ctx, &attr), 0);
	assert_true(attr.node_guid == 0x1122334455667788);
	assert_true(attr.sys_image_guid == attr.node_guid);
	assert_string_equal(attr.fw_ver, "20.65535.1010");
	assert_int_equal(attr.vendor_id, 0x02c9);
	assert_int_equal(attr.vendor_part_id, 4119);
	assert_int_equal(attr.hw_ver, 5);
	assert_int_equal(attr.max_res_rd_atom, 64 * 16);
	assert_int_equal(attr.max_mcast_qp_attach, 64);
	assert_int_equal(attr.max_total_mcast_qp_attach, 256 * 64);
	assert_int_equal(attr.local_ca_ack_delay, 15);
}

static void
test_clock(void **state)
{
	struct softhca_values values = {.comp_mask = SOFTHCA_VALUES_MASK_RAW_CLOCK};
	struct softhca_device_attr attr;

	assert_int_equal(softhca_query_rt_values(ctx, &values), -EOPNOTSUPP);
	assert_int_equal(softhca_query_device(ctx, &attr), 0);
	assert_int_equal(attr.hca_core_clock, 0);
	lib_ctx(ctx)->info.flags = HCA_CAP_CQE_CLOCK;
	assert_int_equal(softhca_query_rt_values(ctx, &values), 0);
	assert_true(values.raw_clock == 0x1122334455667788);
	assert_int_equal(softhca_query_device(ctx, &attr), 0);
	assert_int_equal(attr.hca_core_clock, 1000000);
	assert_true(attr.completion_timestamp_mask == UINT64_MAX);
	values = (struct softhca_values){0};
	assert_int_equal(softhca_query_rt_values(ctx, &values), 0);
	assert_true(values.raw_clock == 0);
	values.comp_mask = 2;
	assert_int_equal(softhca_query_rt_values(ctx, &values), -EINVAL);
}

/* Totals that do not fit are the most that does. */
static void
test_large_totals(void **state)
{
	struct softhca_device_attr attr;

	lib_ctx(ctx)->info.max_qps = 1u << 30;
	lib_ctx(ctx)->info.max_mcgs = UINT32_MAX;
	assert_int_equal(softhca_query_device(ctx, &attr), 0);
	assert_true(attr.max_res_rd_atom == UINT32_MAX);
	assert_true(attr.max_total_mcast_qp_attach == UINT32_MAX);
}

/* The least that reaches the speed of the link; products are those of InfiniBand. */
static void
test_link_speeds(void **state)
{
	static const struct {
		uint64_t mbps;
		uint32_t width, speed;
	} links[] = {
		{0, 1, 1},	 {100, 1, 1},	   {1000, 1, 1},     {2500, 1, 1},
		{5000, 1, 2},	 {10000, 1, 8},	   {20000, 2, 2},    {25000, 1, 32},
		{40000, 2, 8},	 {50000, 1, 64},   {56000, 2, 16},   {100000, 2, 32},
		{200000, 2, 64}, {400000, 2, 128}, {800000, 4, 128}, {UINT64_MAX, 4, 128},
	};
	struct softhca_port_attr attr;

	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		fake->speed = links[i].mbps;
		assert_int_equal(softhca_query_port(ctx, 1, &attr), 0);
		assert_true(attr.link_speed == links[i].mbps);
		assert_int_equal(attr.active_width, links[i].width);
		assert_int_equal(attr.active_speed, links[i].speed);
	}
}

static void
test_phys_state(void **state)
{
	struct softhca_port_attr attr;

	assert_int_equal(softhca_query_port(ctx, 1, &attr), 0);
	assert_int_equal(attr.phys_state, SOFTHCA_PHYS_LINK_UP);
	fake->port_state = SOFTHCA_PORT_DOWN;
	assert_int_equal(softhca_query_port(ctx, 1, &attr), 0);
	assert_int_equal(attr.phys_state, SOFTHCA_PHYS_DISABLED);
	assert_true(attr.max_msg_sz == HCA_MAX_MSG_SIZE);
}

static void
test_pkey_index(void **state)
{
	fake->pkeys[3] = 0x8001;
	fake->pkeys[5] = 0x8001;
	fake->pkeys[15] = 0x0001;
	assert_int_equal(softhca_get_pkey_index(ctx, 1, 0xffff), 0);
	assert_int_equal(softhca_get_pkey_index(ctx, 1, 0x8001), 3);
	assert_int_equal(softhca_get_pkey_index(ctx, 1, 0x0001), 15);
	assert_int_equal(softhca_get_pkey_index(ctx, 1, 0x8002), -ENOENT);
	assert_int_equal(softhca_get_pkey_index(ctx, 2, 0xffff), -EINVAL);
}

/* The fake fills an entry with bytes of its index; entry 0 is empty. */
static void
test_gid_entry(void **state)
{
	struct softhca_gid_entry entry;

	assert_int_equal(softhca_query_gid_ex(ctx, 1, 0, &entry, 0), -ENODATA);
	assert_int_equal(softhca_query_gid_ex(ctx, 1, 2, &entry, 1), -EINVAL);
	assert_int_equal(softhca_query_gid_ex(ctx, 1, 2, &entry, 0), 0);
	assert_int_equal(entry.gid_index, 2);
	assert_int_equal(entry.port_num, 1);
	assert_int_equal(entry.gid_type, SOFTHCA_GID_TYPE_ROCE_V2);
	assert_int_equal(entry.ndev_ifindex, 0x02020202);
	assert_int_equal(entry.vlan_id, 0x0202);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_device, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_clock, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_large_totals, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_link_speeds, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_phys_state, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_pkey_index, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_gid_entry, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
