/* SPDX-License-Identifier: BSD-3-Clause */

/* Addresses that change while there are clients: removed GIDs, resolved neighbours. */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "abi_ctx.h"
#include "fake_hw.h"

static struct fake_hw *fake;
static struct hca_driver *drv;
static struct hca_client *client;
static int async_fd;
static unsigned int asked;
static int answer;

static const uint8_t my_gid[16] = {[10] = 255, 255, 10, 77, 0, 1};
static const uint8_t peer_gid[16] = {[10] = 255, 255, 10, 77, 0, 2};
static const uint8_t my_mac[6] = {2, 0, 0, 0, 0, 1};
static const uint8_t peer_mac[6] = {2, 1, 3, 5, 7, 9};

static void *
other_control_call(void *arg)
{
	struct hca_ctl_gid gid;

	(void)arg;
	assert_int_equal(hca_client_call(client, HCA_CTL_QUERY_GID, &(uint32_t){0}, &gid, NULL), 0);
	return NULL;
}

/* A slow resolver: another client's call is executed meanwhile. */
static int
resolve(void *arg, uint32_t sgid_index, const uint8_t dgid[16], uint8_t dmac[6])
{
	pthread_t other;

	assert_ptr_equal(arg, &asked);
	assert_int_equal(sgid_index, 1);
	assert_memory_equal(dgid, peer_gid, 16);
	assert_int_equal(pthread_create(&other, NULL, other_control_call, NULL), 0);
	assert_int_equal(pthread_join(other, NULL), 0);
	asked++;
	memcpy(dmac, peer_mac, 6);
	return answer;
}

static int source_err;
static uint32_t source_index, source_scope;

static int
choose(void *arg, const uint8_t dgid[16], uint32_t scope, uint32_t *sgid_index)
{
	struct hca_ctl_gid entry;

	assert_ptr_equal(arg, &asked);
	assert_memory_equal(dgid, peer_gid, 16);
	/* no lock is held */
	assert_int_equal(hca_driver_query_gid(drv, 1, &entry), 0);
	asked++;
	source_scope = scope;
	*sgid_index = source_index;
	return source_err;
}

static int
setup(void **state)
{
	struct hca_driver_config config = {
		.timeout_ms = 50,
		.resolve = resolve,
		.source = choose,
		.resolve_arg = &asked,
	};

	(void)state;
	asked = 0;
	answer = 0;
	fake = fake_hw_create();
	assert_int_equal(hca_driver_create(&fake->hw, &config, &drv), 0);
	assert_int_equal(hca_client_open(drv, NULL, &client), 0);
	assert_int_equal(call_async_fd(client, &async_fd), 0);
	fcntl(async_fd, F_SETFL, O_NONBLOCK);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	hca_driver_destroy(drv);
	close(async_fd);
	fake_hw_destroy(fake);
	return 0;
}

static unsigned int
gid_events(void)
{
	struct hca_ctl_event event;
	unsigned int n = 0;

	while (read(async_fd, &event, sizeof(event)) == sizeof(event))
		n += event.type == HCA_CTL_EVENT_GID_CHANGE;
	return n;
}

static void
gids_come_and_go(void **state)
{
	struct hca_ctl_gid entry;
	const struct hca_mbox_set_gid *m;

	(void)state;
	assert_int_equal(hca_driver_set_gid(drv, 1, my_gid, my_mac, 0xffff), 0);
	assert_int_equal(gid_events(), 1);
	assert_int_equal(hca_driver_clear_gid(drv, 1), 0);
	assert_int_equal(gid_events(), 1);
	m = (const void *)fake_last(fake, HCA_CMD_SET_GID)->mailbox;
	assert_int_equal(hca_be32_to_cpu(m->index), 1);
	assert_int_equal(hca_be32_to_cpu(m->flags), 0);
	assert_int_equal(hca_client_call(client, HCA_CTL_QUERY_GID, &(uint32_t){1}, &entry, NULL),
			 0);
	assert_int_equal(entry.valid, 0);
	assert_int_equal(hca_driver_clear_gid(drv, 1), 0);
	assert_int_equal(gid_events(), 0);
	assert_int_equal(hca_driver_clear_gid(drv, 5000), -EINVAL);
	/* the device refuses: the entry remains */
	assert_int_equal(hca_driver_set_gid(drv, 1, my_gid, my_mac, 0xffff), 0);
	fake->fail_op = HCA_CMD_SET_GID;
	fake->fail_status = HCA_STAT_BAD_PARAM;
	assert_true(hca_driver_clear_gid(drv, 1) < 0);
	assert_int_equal(hca_client_call(client, HCA_CTL_QUERY_GID, &(uint32_t){1}, &entry, NULL),
			 0);
	assert_int_equal(entry.valid, 1);
}

/* Another interface with the same address is also a change. */
static void
gids_have_interfaces(void **state)
{
	struct hca_ctl_gid entry;

	(void)state;
	assert_int_equal(hca_driver_set_gid(drv, 1, my_gid, my_mac, 0xffff), 0);
	assert_int_equal(gid_events(), 1);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(hca_driver_set_gid_of(drv, 1, my_gid, my_mac, 0xffff, 7), 0);
		assert_int_equal(gid_events(), i == 0);
		assert_int_equal(hca_driver_query_gid(drv, 1, &entry), 0);
		assert_int_equal(entry.ifindex, 7);
	}
	assert_int_equal(hca_driver_clear_gid(drv, 1), 0);
	assert_int_equal(hca_driver_query_gid(drv, 1, &entry), 0);
	assert_int_equal(entry.ifindex, 0);
}

static void
asking_stops_nobody(void **state)
{
	struct hca_ctl_ah ah = {.sgid_index = 1};

	(void)state;
	memcpy(ah.dgid, peer_gid, 16);
	assert_int_equal(hca_client_call(client, HCA_CTL_RESOLVE, &ah, &ah, NULL),
			 -EINVAL); /* no such GID: the resolver is not called */
	assert_int_equal(asked, 0);
	assert_int_equal(hca_driver_set_gid(drv, 1, my_gid, my_mac, 0xffff), 0);
	assert_int_equal(hca_client_call(client, HCA_CTL_RESOLVE, &ah, &ah, NULL), 0);
	assert_memory_equal(ah.dmac, peer_mac, 6);
	assert_int_equal(asked, 1);
	/* results are not cached */
	assert_int_equal(hca_client_call(client, HCA_CTL_RESOLVE, &ah, &ah, NULL), 0);
	assert_int_equal(asked, 2);
	answer = -EHOSTUNREACH;
	assert_int_equal(hca_client_call(client, HCA_CTL_RESOLVE, &ah, &ah, NULL), -EHOSTUNREACH);
	assert_non_null(strstr(hca_driver_reason(), "10.77.0.2"));
	/* static neighbours, own addresses and groups are not resolved */
	assert_int_equal(hca_driver_set_neigh(drv, peer_gid, my_mac), 0);
	assert_int_equal(hca_client_call(client, HCA_CTL_RESOLVE, &ah, &ah, NULL), 0);
	assert_memory_equal(ah.dmac, my_mac, 6);
	memcpy(ah.dgid, my_gid, 16);
	assert_int_equal(hca_client_call(client, HCA_CTL_RESOLVE, &ah, &ah, NULL), 0);
	ah.dgid[12] = 239;
	assert_int_equal(hca_client_call(client, HCA_CTL_RESOLVE, &ah, &ah, NULL), 0);
	assert_int_equal(asked, 3);
}

static void
moved_neighbours(void **state)
{
	struct hca_ctl_ah ah = {.sgid_index = 1};
	const struct hca_mbox_set_neigh *m;
	uint32_t commands;

	(void)state;
	memcpy(ah.dgid, peer_gid, 16);
	assert_int_equal(hca_driver_set_gid(drv, 1, my_gid, my_mac, 0xffff), 0);
	commands = fake->count;
	assert_int_equal(hca_driver_move_neigh(drv, 1, peer_gid, peer_mac), 0);
	assert_int_equal(fake->count, commands + 2);
	m = (const void *)fake->log[commands % FAKE_LOG].mailbox;
	assert_int_equal(hca_be32_to_cpu(m->flags), HCA_NEIGH_VALID | 1);
	assert_memory_equal(m->dgid, peer_gid, 16);
	assert_memory_equal(m->dmac, peer_mac, 6);
	/* the resolved neighbour leaves no entry, neither in the device nor in the driver */
	m = (const void *)fake_last(fake, HCA_CMD_SET_NEIGH)->mailbox;
	assert_int_equal(hca_be32_to_cpu(m->flags), 0);
	assert_int_equal(hca_client_call(client, HCA_CTL_RESOLVE, &ah, &ah, NULL), 0);
	assert_int_equal(asked, 1);
	/* a static neighbour is not moved */
	assert_int_equal(hca_driver_set_neigh(drv, peer_gid, peer_mac), 0);
	commands = fake->count;
	assert_int_equal(hca_driver_move_neigh(drv, 1, peer_gid, my_mac), 0);
	assert_int_equal(fake->count, commands);
}

/* The composition is asked for the source, unless the destination is an address of the HCA. */
static void
sources_by_route(void **state)
{
	static const uint8_t own6[16] = {0x20, 1, [15] = 9};
	uint32_t index = 99;

	(void)state;
	assert_int_equal(hca_driver_set_gid(drv, 1, my_gid, my_mac, 0xffff), 0);
	assert_int_equal(hca_driver_set_gid(drv, 2, own6, my_mac, 5), 0);
	source_err = 0;
	source_index = 1;
	assert_int_equal(hca_driver_source(drv, peer_gid, 7, &index), 0);
	assert_int_equal(index, 1);
	assert_int_equal(source_scope, 7);
	assert_int_equal(asked, 1);
	assert_int_equal(hca_driver_source(drv, own6, 0, &index), 0);
	assert_int_equal(index, 2);
	assert_int_equal(asked, 1);
	source_err = -ENETUNREACH;
	assert_int_equal(hca_driver_source(drv, peer_gid, 0, &index), -ENETUNREACH);
	assert_non_null(strstr(hca_driver_reason(), "10.77.0.2: there is no route by this port"));
	/* entries that were removed meanwhile, and those of the other IP version, are refused */
	source_err = 0;
	for (source_index = 2; source_index < 300; source_index += 100)
		assert_int_equal(hca_driver_source(drv, peer_gid, 0, &index), -EADDRNOTAVAIL);
}

static void
no_routes(void)
{
	struct hca_driver_config config = {.timeout_ms = 50};

	hca_driver_destroy(drv);
	close(async_fd);
	assert_int_equal(hca_driver_create(&fake->hw, &config, &drv), 0);
	assert_int_equal(hca_client_open(drv, NULL, &client), 0);
	assert_int_equal(call_async_fd(client, &async_fd), 0);
}

/* Without routes the longest common prefix decides. */
static void
sources_by_address(void **state)
{
	static const struct {
		uint8_t gid[16];
		uint32_t ifindex;
	} own[] = {
		{{0xfe, 0x80, [15] = 1}, 3},	      {{[10] = 255, 255, 10, 77, 0, 1}, 0},
		{{[10] = 255, 255, 10, 78, 0, 1}, 0}, {{0x20, 1, 0xd, 0xb8, [15] = 1}, 0},
		{{0xfe, 0x80, [15] = 1}, 4},	      {{[10] = 255, 255, 169, 254, 0, 1}, 0},
	};
	static const struct {
		uint8_t to[16];
		uint32_t scope;
		int index;
	} cases[] = {
		{{[10] = 255, 255, 10, 77, 0, 2}, 0, 1},
		{{[10] = 255, 255, 10, 78, 9, 2}, 0, 2},
		{{[10] = 255, 255, 10, 78, 0, 1}, 0, 2}, /* itself */
		{{[10] = 255, 255, 192, 0, 2, 1},
		 0,
		 1}, /* 169.254 has more bits, but another scope */
		{{[10] = 255, 255, 169, 254, 7, 7}, 0, 5},
		{{[10] = 255, 255, 239, 1, 1, 1}, 0, 1},
		{{0x20, 1, 0xd, 0xb8, [15] = 7}, 0, 3},
		{{0xfc, 0, [15] = 7}, 0, 3},
		{{0xfe, 0x80, [15] = 7}, 0, 0},
		{{0xfe, 0x80, [15] = 7}, 4, 4},
		{{0xfe, 0x80, [15] = 1}, 4, 4},
		{{0xfe, 0x80, [15] = 7}, 9, 3}, /* the only one that may be of interface 9 */
		{{0xff, 0x02, [15] = 1}, 0, 0},
		{{0xff, 0x0e, [15] = 1}, 0, 3},
	};
	uint32_t index;

	(void)state;
	no_routes();
	assert_int_equal(hca_driver_source(drv, peer_gid, 0, &index), -EADDRNOTAVAIL);
	assert_non_null(strstr(hca_driver_reason(), "10.77.0.2"));
	for (uint32_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		assert_int_equal(hca_driver_set_gid_of(drv, i, own[i].gid, my_mac, 0xffff,
						       own[i].ifindex),
				 0);
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(hca_driver_source(drv, cases[i].to, cases[i].scope, &index), 0);
		if ((int)index != cases[i].index)
			fail_msg("case %u: entry %u", i, index);
	}
	/* a link-local address alone reaches no other link */
	for (uint32_t i = 1; i <= 3; i++)
		assert_int_equal(hca_driver_clear_gid(drv, i), 0);
	assert_int_equal(hca_driver_source(drv, own[3].gid, 0, &index), -EADDRNOTAVAIL);
	assert_int_equal(hca_driver_source(drv, own[1].gid, 0, &index), -EADDRNOTAVAIL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(gids_come_and_go), TEST(gids_have_interfaces), TEST(asking_stops_nobody),
		TEST(moved_neighbours), TEST(sources_by_route),	    TEST(sources_by_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
