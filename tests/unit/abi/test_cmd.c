/* SPDX-License-Identifier: BSD-3-Clause */
#include "abi_test.h"

#include "abi_cmd.h"

static struct hca_mbox_map_icm map;
static struct hca_mbox_write_mtt mtt;

/* Tables 3-2-3 and 3-2-4. */
static void
test_dev_lim(void **state)
{
	struct hca_mbox_dev_lim m = {
		.reserved_log = hca_cpu_to_be32(HCA_LIM_MAKE_RESERVED(1, 2, 3, 4)),
		.reserved_pd_lkey = hca_cpu_to_be32(HCA_LIM_MAKE_RESERVED_PD_LKEY(5, 6)),
		.max_sz = hca_cpu_to_be32(HCA_LIM_MAKE_SZ(15, 20)),
		.max_log = hca_cpu_to_be32(HCA_LIM_MAKE_MAX(14, 14, 5, 17)),
		.max_pd_gid_pkey = hca_cpu_to_be32(HCA_LIM_MAKE_PD_GID_PKEY(16, 4, 7)),
		.mtt_seg_sz = hca_cpu_to_be32(HCA_LIM_MAKE_MTT_SEG_SZ(8)),
		.qpc_cqc_sz = hca_cpu_to_be32(HCA_LIM_MAKE_ENTRY_SZ(256, 64)),
		.port = hca_cpu_to_be32(HCA_LIM_MAKE_PORT(15, 5, 2, 1, 1)),
		.min_page = hca_cpu_to_be32(HCA_LIM_MAKE_MIN_PAGE(12)),
		.sq_sg = hca_cpu_to_be32(HCA_LIM_MAKE_SG(16, 512)),
		.max_icm_sz = hca_cpu_to_be64(UINT64_C(0x100000002)),
		.caps = hca_cpu_to_be32(HCA_CAP_GID | HCA_CAP_RC | HCA_CAP_ECN),
		.rd_atomic = hca_cpu_to_be32(HCA_LIM_MAKE_RD_ATOMIC(16, 17, 12, 15)),
		.inline_mw = hca_cpu_to_be32(HCA_LIM_MAKE_INLINE_MW(460, 13, 8)),
	};

	assert_bytes(m, 0x00, 1, 2, 3, 4, 0, 5, 0, 6, 0, 15, 0, 20, 14, 14, 5, 17, 16, 0, 4, 7, 0,
		     8, 0, 0, 1, 0, 0, 64);
	assert_bytes(m, 0x20, 0x0f, 0x52, 0, 0x11, 0, 12, 0, 0, 0, 16, 2, 0);
	assert_bytes(m, 0x30, 0, 0, 0, 1, 0, 0, 0, 2, 0, 4, 1, 1);
	assert_bytes(m, 0x40, 16, 17, 12, 15, 0x01, 0xcc, 13, 8);
	assert_int_equal(HCA_LIM_MAX_MTU(hca_be32_to_cpu(m.port)), 5);
}

/* Table 3-2-9. */
static void
test_init_hca(void **state)
{
	struct hca_mbox_init_hca m = {
		.qpc_base = hca_cpu_to_be64(HCA_INIT_MAKE(UINT64_C(0x0102030405060700), 14)),
		.mpt_base = hca_cpu_to_be64(HCA_INIT_MAKE(0x10000, 17)),
		.mtt_base = hca_cpu_to_be64(0x20001),
	};

	assert_bytes(m, 0x08, 1, 2, 3, 4, 5, 6, 7, 14);
	assert_bytes(m, 0x30, 0, 0, 0, 0, 0, 1, 0, 17, 0, 0, 0, 0, 0, 2, 0, 1);
	assert_true(HCA_INIT_BASE(hca_be64_to_cpu(m.mpt_base)) == 0x10000);
	assert_int_equal(HCA_INIT_LOG(hca_be64_to_cpu(m.mpt_base)), 17);
}

/* Table 3-2-13: pairs, the first at 10h; also a single one. */
static void
test_map_icm(void **state)
{
	memset(&map, 0, sizeof(map));
	for (uint32_t i = 0; i < 3; i++) {
		struct hca_icm_entry *e = hca_map_icm_entry(&map, i);

		e->virt = hca_cpu_to_be64(0x1000u + i);
		e->page = hca_cpu_to_be64(HCA_ICM_MAKE_PAGE(0xabcd000u, 0x100 + i));
	}
	assert_bytes(map, 0x00, 0, 0, 0, 0, 0, 0, 0x10, 1, 0, 0, 0, 0, 0x0a, 0xbc, 0xd1, 1);
	assert_bytes(map, 0x10, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0x0a, 0xbc, 0xd1, 0);
	assert_bytes(map, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	assert_bytes(map, 0x30, 0, 0, 0, 0, 0, 0, 0x10, 2, 0, 0, 0, 0, 0x0a, 0xbc, 0xd1, 2);
	assert_int_equal(HCA_MAP_ICM_LEN(3), 0x40);
	assert_int_equal(HCA_MAP_ICM_LEN(HCA_MAP_ICM_MAX), HCA_MBOX_SIZE);
}

/* Table 3-2-22: groups of four from 18h down to 00h. */
static void
test_write_mtt(void **state)
{
	memset(&mtt, 0, sizeof(mtt));
	mtt.start_index = hca_cpu_to_be64(0x77);
	for (uint32_t i = 0; i < 6; i++)
		*hca_write_mtt_entry(&mtt, i) = hca_cpu_to_be64((i + 1) << 12);
	assert_bytes(mtt, 0x18, 0, 0, 0, 0, 0, 0, 0, 0x77);
	assert_bytes(mtt, 0x20, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0, 0x30, 0, 0, 0, 0, 0, 0,
		     0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0x10, 0);
	assert_bytes(mtt, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		     0x60, 0, 0, 0, 0, 0, 0, 0, 0x50, 0);
	assert_int_equal(HCA_WRITE_MTT_LEN(6), 0x60);
	assert_int_equal(HCA_WRITE_MTT_LEN(HCA_WRITE_MTT_MAX), HCA_MBOX_SIZE);
}

static void
test_extensions(void **state)
{
	struct hca_mbox_set_gid g = {
		.index = hca_cpu_to_be32(3),
		.flags = hca_cpu_to_be32(HCA_GID_MAKE_FLAGS(1, HCA_GID_ROCE_V2_IPV4, 1, 0x123)),
		.gid = {[10] = 0xff, 0xff, 10, 0, 0, 1},
		.mac = {2, 0, 0, 0, 0, 1},
	};
	struct hca_mbox_set_neigh n = {
		.dgid = {[15] = 9},
		.dmac = {1, 2, 3, 4, 5, 6},
		.flags = hca_cpu_to_be32(HCA_NEIGH_VALID | 4),
	};
	struct hca_mbox_resize_cq r = {
		.logsize = hca_cpu_to_be32(HCA_RESIZE_CQ_MAKE_LOGSIZE(9)),
		.lkey = hca_cpu_to_be32(0x01020304),
	};
	struct hca_mbox_modify_cq c = {
		.moderation = hca_cpu_to_be32(HCA_CQ_MOD_MAKE(16, 0x1234)),
	};

	assert_bytes(g, 0, 0, 0, 0, 3, 0x80, 1, 0x81, 0x23, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff,
		     0xff, 10, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0, 0);
	assert_bytes(n, 0x0f, 9, 1, 2, 3, 4, 5, 6, 0, 0, 0x80, 0, 0, 4);
	assert_bytes(r, 0, 9, 0, 0, 0, 1, 2, 3, 4);
	assert_bytes(c, 0, 0, 16, 0x12, 0x34);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dev_lim),	   cmocka_unit_test(test_init_hca),
		cmocka_unit_test(test_map_icm),	   cmocka_unit_test(test_write_mtt),
		cmocka_unit_test(test_extensions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
