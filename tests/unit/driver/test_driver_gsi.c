/* SPDX-License-Identifier: BSD-3-Clause */

/* QP 1: which QP may take its datagrams, and the commands for the device. */

#include "abi_service.h"
#include "ub_clients.h"

static uint32_t
make(unsigned int i, uint32_t service, uint32_t source, bool live)
{
	const struct hca_ctl_qp request = {.sq_addr = (uintptr_t)memory + 4 * PAGE,
					   .rq_addr = (uintptr_t)memory + 6 * PAGE,
					   .pdn = pdn[i],
					   .service = service,
					   .send_cqn = cqn[i],
					   .recv_cqn = cqn[i],
					   .source = source,
					   .log_sq = 4,
					   .log_sq_stride = 7,
					   .log_rq = 4,
					   .log_rq_stride = 6};
	struct hca_qpc qpc = {0};
	uint32_t qpn;

	assert_int_equal(hca_client_call(client[i], HCA_CTL_CREATE_QP, &request, &qpn, NULL), 0);
	if (live)
		assert_int_equal(call_modify_qp(client[i], qpn, HCA_CMD_RST2INIT_QPEE, &qpc), 0);
	return qpn;
}

static void
device_is(uint32_t qpn)
{
	const struct fake_command *c = fake_last(fake, HCA_CMD_CONF_SPECIAL_QP);

	assert_non_null(c);
	assert_int_equal(c->op_modifier, HCA_CONF_SPECIAL_GSI);
	assert_int_equal(c->in_modifier, qpn);
}

static void
begins_and_ends(void **state)
{
	uint32_t qpn = make(0, HCA_ST_UD, HCA_QPN_GSI, true);
	const struct hca_qpc *q = (const void *)fake_last(fake, HCA_CMD_RST2INIT_QPEE)->mailbox;

	assert_int_equal(hca_be32_to_cpu(q->remote_qpn), HCA_QPN_GSI);
	assert_int_equal(hca_driver_set_gsi(drv, qpn), 0);
	device_is(qpn);
	assert_int_equal(hca_driver_set_gsi(drv, qpn), 0);
	assert_int_equal(hca_driver_set_gsi(drv, 0), 0);
	device_is(0);
}

static void
others_are_refused(void **state)
{
	const uint32_t bad[] = {
		make(1, HCA_ST_UD, 0, true),		/* a client without privilege */
		make(0, HCA_ST_UD, HCA_QPN_GSI, false), /* in RESET */
		make(0, HCA_ST_UD, 0, true),		/* its datagrams are its own */
		make(0, HCA_ST_RC, 0, true),
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(hca_driver_set_gsi(drv, bad[i]), -EINVAL);
		assert_non_null(strstr(hca_driver_reason(), "QP 1"));
	}
	assert_int_equal(hca_driver_set_gsi(drv, bad[0] ^ 1u << 20), -EINVAL);
	assert_int_equal(hca_driver_set_gsi(drv, HCA_QPN_GSI), -EINVAL);
	assert_null(fake_last(fake, HCA_CMD_CONF_SPECIAL_QP));
}

/* A number that has no QP any more hinders no other one. */
static void
one_at_a_time(void **state)
{
	uint32_t first = make(0, HCA_ST_UD, HCA_QPN_GSI, true);
	uint32_t second = make(0, HCA_ST_UD, HCA_QPN_GSI, true);

	assert_int_equal(hca_driver_set_gsi(drv, first), 0);
	assert_int_equal(hca_driver_set_gsi(drv, second), -EBUSY);
	device_is(first);
	assert_int_equal(call_drop(client[0], HCA_CTL_DESTROY_QP, first), 0);
	assert_int_equal(hca_driver_set_gsi(drv, second), 0);
	device_is(second);
}

static void
device_refuses(void **state)
{
	uint32_t first = make(0, HCA_ST_UD, HCA_QPN_GSI, true);
	uint32_t second = make(0, HCA_ST_UD, HCA_QPN_GSI, true);

	fake->fail_op = HCA_CMD_CONF_SPECIAL_QP;
	fake->fail_status = HCA_STAT_BAD_RES_STATE;
	assert_int_not_equal(hca_driver_set_gsi(drv, first), 0);
	assert_int_equal(hca_driver_set_gsi(drv, second), 0);
}

/* Another client cannot name the QP. */
static void
is_its_owners(void **state)
{
	uint32_t qpn = make(0, HCA_ST_UD, HCA_QPN_GSI, true);
	static const uint8_t mgid[16] = {[10] = 0xff, 0xff, 224, 1, 2, 3};
	struct hca_qpc qpc = {0};

	assert_int_equal(hca_driver_set_gsi(drv, qpn), 0);
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t name = i == 0 ? qpn : HCA_QPN_GSI;

		assert_int_equal(call_drop(client[1], HCA_CTL_DESTROY_QP, name), -EINVAL);
		assert_int_equal(call_modify_qp(client[1], name, HCA_CMD_2ERR_QPEE, &qpc), -EINVAL);
		assert_int_equal(call_modify_qp(client[1], name, HCA_CMD_2ERR_QPEE, NULL), -EINVAL);
		assert_int_equal(call_mcast(client[1], name, mgid, true), -EINVAL);
	}
	device_is(qpn);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(begins_and_ends), T(others_are_refused), T(one_at_a_time),
		T(device_refuses),  T(is_its_owners),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
