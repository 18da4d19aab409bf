/* SPDX-License-Identifier: BSD-3-Clause */
#include "abi_test.h"

#include "abi_tp.h"

static void
test_tpc(void **state)
{
	struct hca_tpc c = {0};

	c.mask = hca_cpu_to_be32(HCA_TP_ATTR_STATE | HCA_TP_ATTR_TPG);
	hca_tpc_set(&c, HCA_TPC_STATE, HCA_TPS_ACTIVE);
	hca_tpc_set(&c, HCA_TPC_MODE, HCA_TP_MODE_SACK);
	hca_tpc_set(&c, HCA_TPC_RULE, HCA_TP_RULE_TIME);
	hca_tpc_set(&c, HCA_TPC_MTU, 1);
	hca_tpc_set(&c, HCA_TPC_WINDOW, 3);
	hca_tpc_set(&c, HCA_TPC_SACK, 4);
	hca_tpc_set(&c, HCA_TPC_FLAGS, HCA_TP_FLAG_TAID | HCA_TP_FLAG_OFST | HCA_TP_FLAG_SPRAY);
	hca_tpc_set(&c, HCA_TPC_TPN, 0x123456);
	hca_tpc_set(&c, HCA_TPC_PEER, 0x654321);
	hca_tpc_set(&c, HCA_TPC_PSN, 0xfffff0);
	hca_tpc_set(&c, HCA_TPC_EPSN, 0x00000f);
	hca_tpc_set(&c, HCA_TPC_REQUESTS, 0x0400);
	hca_tpc_set(&c, HCA_TPC_ACK_EVERY, 16);
	hca_tpc_set(&c, HCA_TPC_OOO_EVERY, 4);
	hca_tpc_set(&c, HCA_TPC_RTO_BASE, 2097152);
	hca_tpc_set(&c, HCA_TPC_RTO_EXPONENT, 3);
	hca_tpc_set(&c, HCA_TPC_RETRIES, 7);
	hca_tpc_set(&c, HCA_TPC_REORDER, 25);
	hca_tpc_set(&c, HCA_TPC_SPORT, 0xc000);
	hca_tpc_set(&c, HCA_TPC_SPORTS_LOG, 3);
	hca_tpc_set(&c, HCA_TPC_GROUP, 2);
	assert_bytes(c, 0x00, 0, 0, 0, 0x41, 0x22, 0x41, 0x34, 0x0b);
	assert_bytes(c, 0x08, 0, 0x12, 0x34, 0x56, 0, 0x65, 0x43, 0x21);
	assert_bytes(c, 0x10, 0, 0xff, 0xff, 0xf0, 0, 0, 0, 0x0f);
	assert_bytes(c, 0x18, 4, 0, 16, 4, 0, 0x20, 0, 0);
	assert_bytes(c, 0x20, 0x37, 0, 0, 25, 0xc0, 0, 3, 0);
	assert_bytes(c, 0x5c, 0, 0, 0, 2);
	assert_int_equal(hca_tpc_get(&c, HCA_TPC_RULE), HCA_TP_RULE_TIME);
	assert_int_equal(hca_tpc_get(&c, HCA_TPC_RETRIES), 7);
}

/* No two fields share a bit, every one that may change has a group, and its limits fit it. */
static void
test_tpc_fields(void **state)
{
	uint32_t used[HCA_TPC_SIZE / 4] = {0};

	for (unsigned int i = 0; i < HCA_TPC_FIELDS; i++) {
		const struct hca_tpc_field_info *f = &hca_tpc_fields[i];
		uint32_t bits = HCA_MASK(f->hi, f->lo);

		assert_int_equal(f->at % 4, 0);
		assert_int_equal(used[f->at / 4] & bits, 0);
		used[f->at / 4] |= bits;
		assert_true(f->min <= f->max);
		assert_true(HCA_BITS(HCA_FIELD(f->hi, f->lo, f->max), f->hi, f->lo) == f->max);
		assert_int_equal(f->attr & ~HCA_TP_ATTRS_ALL, 0);
		assert_int_equal(f->attr & (f->attr - 1), 0);
	}
}

/* Every rule names modes that exist. */
static void
test_rules(void **state)
{
	static const uint32_t modes[HCA_TP_RULES] = {
#define X(name, number, modes) [number] = modes,
		HCA_TP_RULE_LIST(X)
#undef X
	};

	for (unsigned int i = 0; i < HCA_TP_RULES; i++)
		assert_true(modes[i] != 0 && modes[i] < 1u << HCA_TP_MODES);
	assert_int_equal(modes[HCA_TP_RULE_NAK], 1);
	assert_int_equal(modes[HCA_TP_RULE_TIME], 4);
	assert_int_equal(HCA_TP_MTU_BYTES(0), 1024);
	assert_int_equal(HCA_TP_MTU_BYTES(1), 4096);
	assert_int_equal(HCA_TP_WINDOW_PACKETS(4), 2048);
	assert_int_equal(HCA_TP_SACK_BITS(4), 1024);
}

static void
test_ub_unit(void **state)
{
	struct hca_ub_unit u = {
		.number = hca_cpu_to_le32(HCA_UB_MAKE_NUMBER(HCA_UB_TO_ADDRESS, 0xabcdef)),
		.tc = hca_cpu_to_le32(HCA_UB_MAKE_TC(0x9abcd, 2, 0x77)),
		.token = hca_cpu_to_le32(0xdeadbeef),
		.order = hca_cpu_to_le32(HCA_UB_MAKE_ORDER(6, 1, 1, 0x0b, 5)),
		.data = hca_cpu_to_le64(UINT64_C(0x1122334455667788)),
		.tc_token = hca_cpu_to_le32(0x01020304),
	};

	assert_bytes(u, 0x00, 0xef, 0xcd, 0xab, 0x80, 0xcd, 0xab, 0x29, 0x77);
	assert_bytes(u, 0x08, 0xef, 0xbe, 0xad, 0xde, 0x1e, 0x0b, 0x05, 0x00);
	assert_bytes(u, 0x10, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 4, 3, 2, 1, 0, 0, 0,
		     0);
	assert_int_equal(HCA_UB_TO(0x80abcdef), HCA_UB_TO_ADDRESS);
	assert_int_equal(HCA_UB_TC_TYPE(hca_le32_to_cpu(u.tc)), 2);
	assert_int_equal(HCA_UB_ATOMIC(hca_le32_to_cpu(u.order)), 0x0b);
	assert_int_equal(HCA_UB_ODR(hca_le32_to_cpu(u.order)), 6);
}

static void
test_cqe(void **state)
{
	struct hca_cqe_ub c = {
		.local = hca_cpu_to_le32(HCA_CQE_UB_MAKE_LOCAL(HCA_CQE_UB_JFR, 0x123456)),
		.is_send = HCA_CQE_UB,
		.status = HCA_UB_STATUS_REMOTE_ACCESS,
	};

	assert_bytes(c, 0x00, 0x56, 0x34, 0x12, 2);
	assert_bytes(c, 0x1d, 2, 0x32);
	assert_int_equal(HCA_CQE_UB_KIND(hca_le32_to_cpu(c.local)), HCA_CQE_UB_JFR);
}

/* Operations of UB have codes of their own; so has every status. */
static void
test_codes(void **state)
{
	static const uint8_t status[] = {
#define X(name, code, text) code,
		HCA_UB_STATUS_LIST(X)
#undef X
	};
	uint32_t codes = 0;

#define X(name, code, ...) \
	assert_true((code) < 32 && (codes & HCA_BIT(code)) == 0); \
	codes |= HCA_BIT(code);
	HCA_OP_LIST(X)
	HCA_UB_OP_LIST(X)
#undef X
	for (size_t i = 1; i < sizeof(status); i++)
		assert_true(status[i] > status[i - 1]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tpc),   cmocka_unit_test(test_tpc_fields),
		cmocka_unit_test(test_rules), cmocka_unit_test(test_ub_unit),
		cmocka_unit_test(test_cqe),   cmocka_unit_test(test_codes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
