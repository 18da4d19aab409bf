/* SPDX-License-Identifier: BSD-3-Clause */

/* Ports and addresses: operations that fail, and the share of a user. */

#include <errno.h>
#include <string.h>

#include "abi_ctx.h"
#include "cm_rig.h"

#define CLIENT 7u
#define CH 1u
#define PORT 7174u
#define TCP HCA_CTL_CM_SPACE_TCP

static struct rig r;

static const struct ib_id *
id_of(uint32_t number)
{
	const struct ib_id *id = ib_id_by_number(r.cm[0], number);

	assert_non_null(id);
	return id;
}

/* ---- operations that fail ---- */

static void
test_failed_bind(void **state)
{
	static const uint8_t strange[16] = {[10] = 0xff, [11] = 0xff, [12] = 192, [15] = 1};
	const uint32_t both = HCA_CTL_CM_REUSE | HCA_CTL_CM_AF_ONLY;
	uint32_t has, id;

	rig_begin(&r, 1, NULL);
	has = rig_create(&r, 0, CLIENT, CH, TCP);
	assert_int_equal(rig_bind(&r, 0, CLIENT, has, RIG_IP4, NULL, PORT, 0), 0);
	id = rig_create(&r, 0, CLIENT, CH, TCP);
	assert_int_equal(rig_bind(&r, 0, CLIENT, id, RIG_IP4, NULL, PORT, both), -EADDRINUSE);
	assert_int_equal(rig_bind(&r, 0, CLIENT, id, RIG_IP4, strange, PORT, both), -EADDRNOTAVAIL);
	assert_false(id_of(id)->reuse);
	assert_false(id_of(id)->af_only);
	assert_int_equal(rig_state(&r, 0, CLIENT, id), HCA_CTL_CM_IDLE);
	/* a socket of both families: with AF_ONLY it would not be in the way of IPv4 */
	assert_int_equal(rig_bind(&r, 0, CLIENT, id, RIG_IP6, NULL, PORT, 0), -EADDRINUSE);
	assert_int_equal(rig_bind(&r, 0, CLIENT, id, RIG_IP6, NULL, PORT, both), 0);
	assert_true(id_of(id)->reuse && id_of(id)->af_only);
	/* an id that is bound */
	assert_int_equal(rig_bind(&r, 0, CLIENT, has, RIG_IP4, NULL, PORT + 1, both), -EINVAL);
	assert_false(id_of(has)->reuse || id_of(has)->af_only);
	assert_int_equal(rig_counter(&r, 0, "cm_now_ports"), 1);
	rig_end(&r);
}

/* To the other family, to the HCA itself without an address: it has neither port nor address. */
static void
test_failed_resolve(void **state)
{
	struct hca_ctl_cm_resolve request = {.timeout_ms = 1000};
	struct hca_ctl_gid none = {.vlan_id = 0xffff};
	struct hca_ctl_none answer;
	uint32_t id;

	rig_begin(&r, 1, NULL);
	id = rig_create(&r, 0, CLIENT, CH, TCP);
	request.id = id;
	request.src = ib_ip_any(HCA_CTL_CM_IP4);
	request.dst = ib_ip_any(HCA_CTL_CM_IP6);
	memcpy(request.dst.gid, r.gid[1][RIG_IP6], 16);
	for (uint32_t i = 0; i < 2; i++) {
		int err = rig_call(&r, 0, CLIENT, HCA_CTL_CM_RESOLVE, &request, &answer);

		assert_int_equal(err, i == 0 ? -EINVAL : -EADDRNOTAVAIL);
		assert_int_equal(rig_state(&r, 0, CLIENT, id), HCA_CTL_CM_IDLE);
		assert_int_equal(rig_counter(&r, 0, "cm_now_ports"), 0);
		assert_int_equal(id_of(id)->src.family, HCA_CTL_CM_NONE);
		assert_int_equal(id_of(id)->dst.family, HCA_CTL_CM_NONE);
		ibcm_set_gid(r.cm[0], RIG_IP4, &none, r.now);
		request.dst = ib_ip_any(HCA_CTL_CM_IP4);
	}
	/* an id that was bound stays so */
	assert_int_equal(rig_bind(&r, 0, CLIENT, id, RIG_IP6, NULL, PORT, 0), 0);
	assert_int_equal(rig_call(&r, 0, CLIENT, HCA_CTL_CM_RESOLVE, &request, &answer), -EINVAL);
	assert_int_equal(rig_state(&r, 0, CLIENT, id), HCA_CTL_CM_BOUND);
	assert_int_equal(id_of(id)->src.port, PORT);
	assert_int_equal(id_of(id)->dst.family, HCA_CTL_CM_NONE);
	rig_end(&r);
}

/* ---- shares ---- */

#define FIRST 32768u
#define RANGE 28232u

/* One more port for the user, chosen or named, in one of its clients; 0 or why not. */
static int
take_port(uint32_t user, uint32_t nth, uint32_t space, uint16_t port)
{
	struct ibcm_client client = {.owner = user + 1000 * (nth / 5000), .user = user};
	struct hca_ctl_cm_create create = {.channel = CH, .space = space};
	struct hca_ctl_cm_bind bind = {.addr = ib_ip_any(HCA_CTL_CM_IP4)};
	struct hca_ctl_cm_bound bound;
	struct hca_ctl_none none;
	const char *why;
	int err;

	create.service = space == HCA_CTL_CM_SPACE_UDP ? HCA_ST_UD : HCA_ST_RC;
	bind.addr.port = port;
	assert_int_equal(
		ibcm_call(r.cm[0], &client, HCA_CTL_CM_CREATE, &create, &bind.id, r.now, &why), 0);
	err = ibcm_call(r.cm[0], &client, HCA_CTL_CM_BIND, &bind, &bound, r.now, &r.why);
	if (err != 0)
		(void)ibcm_call(r.cm[0], &client, HCA_CTL_CM_DESTROY, &bind.id, &none, r.now, &why);
	return err;
}

/* How many ports the user gets until it has its share. */
static uint32_t
take_ports(uint32_t user, uint32_t space, bool named)
{
	uint32_t n = 0, port = named ? FIRST : 0;
	int err;

	while ((err = take_port(user, n, space, (uint16_t)port)) == 0 || err == -EADDRINUSE) {
		n += err == 0;
		port += named;
	}
	assert_int_equal(err, -EADDRNOTAVAIL);
	assert_string_equal(r.why, IBCM_WHY_PORTS);
	return n;
}

/* A user that takes all it can has half of the ports, the next one half of the rest. */
static void
test_shares_of_ports(void **state)
{
	uint32_t left = RANGE;

	rig_begin(&r, 1, NULL);
	for (uint32_t user = 1; user < 5; user++) {
		/* the second one names its ports */
		uint32_t n = take_ports(user, TCP, user == 2);

		assert_int_equal(n, (left + 1) / 2);
		left -= n;
		assert_int_equal(rig_counter(&r, 0, "cm_refused_ports"), user);
	}
	/* other spaces, other ports */
	assert_int_equal(take_ports(1, HCA_CTL_CM_SPACE_UDP, false), RANGE / 2);
	assert_int_equal(rig_bind(&r, 0, 1, rig_create(&r, 0, 1, CH, TCP), RIG_IP4, NULL, PORT, 0),
			 0);
	/* all come back */
	for (uint32_t owner = 1; owner < 3000; owner++)
		ibcm_forget(r.cm[0], owner, r.now);
	assert_int_equal(rig_counter(&r, 0, "cm_now_ports"), 0);
	assert_int_equal(take_ports(6, TCP, false), RANGE / 2);
	rig_end(&r);
}

/* The share of a user is that of the configuration; 0 is all ports. */
static void
test_share_of_configuration(void **state)
{
	static const uint32_t shares[] = {1, 75, 0};

	for (uint32_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		uint32_t share = shares[i] == 0 ? 100 : shares[i];

		rig_begin(&r, 1, NULL);
		r.cm[0]->cfg.user_share = shares[i];
		assert_int_equal(take_ports(1, TCP, i == 1), (RANGE * share + 99) / 100);
		rig_end(&r);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_failed_bind),
		cmocka_unit_test(test_failed_resolve),
		cmocka_unit_test(test_shares_of_ports),
		cmocka_unit_test(test_share_of_configuration),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
