/* SPDX-License-Identifier: BSD-3-Clause */

/* Ids, their addresses, and the HCAs that they get. */

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "ucma_calls.h"

static int
teardown(void **state)
{
	const struct fake_counts counts = fake_counts();

	(void)state;
	assert_int_equal(counts.channels, 0);
	assert_int_equal(counts.ids, 0);
	return 0;
}

static void
test_numbers(void **state)
{
	int fd = a_open(), other = a_open(), a, b;

	(void)state;
	a = a_create(fd, A_TCP, 1);
	b = a_create(fd, A_TCP, 2);
	assert_int_equal(a, 0);
	assert_int_equal(b, 1);
	assert_int_equal(a_destroy(other, a), -EINVAL);
	assert_int_equal(a_destroy(fd, 99), -ENOENT);
	assert_int_equal(a_destroy(fd, a), 0);
	assert_int_equal(a_destroy(fd, a), -ENOENT);
	assert_int_equal(a_create(other, A_UDP, 3), 0);
	assert_int_equal(a_create(fd, 0x1234, 4), -EINVAL);
	/* an id without an address has no session with a daemon */
	assert_int_equal(fake_counts().contexts, 0);
	a_close(other);
	assert_int_equal(a_create(fd, A_TCP, 3), 0);
	a_close(fd);
}

static void
test_many(void **state)
{
	enum {
		MANY = 5000
	};
	int fd = a_open(), *ids = calloc(MANY, sizeof(int));

	(void)state;
	fake_begin(2);
	for (int i = 0; i < MANY; i++) {
		ids[i] = a_create(fd, A_TCP, (uint64_t)i + 1);
		assert_int_equal(ids[i], i);
		assert_int_equal(a_bind(fd, ids[i], "10.0.0.1", 0), 0);
	}
	for (int i = 0; i < MANY; i += 2)
		assert_int_equal(a_destroy(fd, ids[i]), 0);
	for (int i = 0; i < MANY; i += 2)
		assert_int_equal(a_create(fd, A_TCP, 1), i);
	assert_int_equal(fake_counts().ids, MANY / 2);
	assert_int_equal(fake_counts().channels, 1);
	a_close(fd);
	free(ids);
}

/* The HCA is the one that has the address; it is in the answers of QUERY_ROUTE. */
static void
test_bind(void **state)
{
	struct rdma_ucm_query_route_resp resp;
	int fd = a_open(), id;

	(void)state;
	fake_begin(2);
	id = a_create(fd, A_TCP, 1);
	assert_int_equal(a_query(fd, id, &resp), 0);
	assert_int_equal(resp.src_addr.sin6_family, 0);
	assert_int_equal(a_bind(fd, id, "10.0.0.7", 0), -EADDRNOTAVAIL);
	assert_int_equal(a_bind(fd, id, "10.0.0.2", 7471), 0);
	assert_int_equal(a_bind(fd, id, "10.0.0.2", 7472), -EINVAL);
	assert_int_equal(a_query(fd, id, &resp), 0);
	assert_int_equal(ntohs(resp.src_addr.sin6_port), 7471);
	assert_int_equal(resp.node_guid, 0x101);
	assert_int_equal(resp.ibdev_index, 8);
	assert_int_equal(resp.port_num, 1);
	assert_int_equal(resp.num_paths, 0);
	assert_int_equal(a_bind(fd, a_create(fd, A_TCP, 2), "10.0.0.2", 7471), -EADDRINUSE);
	assert_int_equal(a_bind(fd, a_create(fd, A_TCP, 3), "fd00::1", 7471), 0);
	a_close(fd);
}

/* A wildcard is at all HCAs, with one port: 40000 of HCA 0 is in use at HCA 1. */
static void
test_wildcard(void **state)
{
	struct rdma_ucm_query_route_resp resp;
	int fd = a_open(), id;

	(void)state;
	fake_begin(2);
	id = a_create(fd, A_TCP, 1);
	assert_int_equal(a_bind(fd, id, "0.0.0.0", 0), 0);
	assert_int_equal(fake_counts().ids, 2);
	assert_int_not_equal(a_port(fd, id), 0);
	assert_int_not_equal(a_port(fd, id), 40000);
	assert_int_equal(a_query(fd, id, &resp), 0);
	assert_int_equal(resp.node_guid, 0);
	assert_int_equal(a_bind(fd, a_create(fd, A_TCP, 2), "0.0.0.0", 40000), -EADDRINUSE);
	assert_int_equal(fake_counts().ids, 2);
	assert_int_equal(a_listen(fd, a_create(fd, A_TCP, 3), 5), 0);
	assert_int_equal(fake_counts().ids, 4);
	/* as the wildcard */
	assert_int_equal(a_bind(fd, a_create(fd, A_TCP, 4), "127.0.0.1", 0), 0);
	assert_int_equal(fake_counts().ids, 6);
	a_close(fd);
}

static void
expect_resolved(int fd, uint64_t uid, const char *address, int device)
{
	int id = a_create(fd, A_TCP, uid);
	struct rdma_ucm_query_route_resp resp;

	assert_int_equal(a_resolve(fd, id, address, 1), 0);
	a_expect(fd, SOFTHCA_CM_ADDR_RESOLVED, uid, 0);
	assert_int_equal(a_query(fd, id, &resp), 0);
	assert_int_equal(resp.node_guid, 0x100 + device);
	assert_int_equal(a_resolve(fd, id, address, 1), -EINVAL);
	assert_int_equal(a_destroy(fd, id), 1);
}

/* That of the destination's own address, then the one that is near, then the one that can. */
static void
test_resolve(void **state)
{
	int fd = a_open(), id;

	(void)state;
	fake_begin(2);
	expect_resolved(fd, 1, "10.0.0.1", 0);
	expect_resolved(fd, 2, "10.0.0.2", 1);
	expect_resolved(fd, 3, "fd00::2", 1);
	expect_resolved(fd, 4, "10.1.0.9", 1);
	id = a_create(fd, A_TCP, 5);
	assert_int_equal(a_resolve(fd, id, "192.0.2.1", 1), 0);
	a_expect(fd, SOFTHCA_CM_ADDR_ERROR, 5, -ENETUNREACH);
	assert_int_equal(a_resolve(fd, id, "10.1.0.9", 1), 0);
	a_expect(fd, SOFTHCA_CM_ADDR_RESOLVED, 5, 0);
	assert_int_equal(a_destroy(fd, id), 2);
	a_close(fd);
}

/* An id with a wildcard keeps the end of the HCA that reaches the destination. */
static void
test_resolve_bound(void **state)
{
	int fd = a_open(), id, port;

	(void)state;
	fake_begin(2);
	id = a_create(fd, A_TCP, 1);
	assert_int_equal(a_bind(fd, id, "0.0.0.0", 0), 0);
	port = a_port(fd, id);
	assert_int_equal(a_resolve(fd, id, "10.1.0.9", 1), 0);
	a_expect(fd, SOFTHCA_CM_ADDR_RESOLVED, 1, 0);
	assert_int_equal(fake_counts().ids, 1);
	assert_int_equal(a_port(fd, id), port);
	id = a_create(fd, A_TCP, 2);
	assert_int_equal(a_bind(fd, id, "10.0.0.1", 0), 0);
	assert_int_equal(a_resolve(fd, id, "10.1.0.9", 1), 0);
	a_expect(fd, SOFTHCA_CM_ADDR_ERROR, 2, -ENETUNREACH);
	a_close(fd);
}

static void
test_no_device(void **state)
{
	int fd = a_open(), id;

	(void)state;
	fake_begin(0);
	id = a_create(fd, A_TCP, 1);
	assert_int_equal(a_bind(fd, id, "10.0.0.1", 1), -ENODEV);
	assert_int_equal(a_resolve(fd, id, "10.0.0.1", 1), -ENODEV);
	assert_int_equal(a_route(fd, id), -EINVAL);
	a_close(fd);
}

/* The size of an address is that of its family. */
static void
test_families(void **state)
{
	struct rdma_ucm_bind cmd = {.addr_size = 16, .addr = {.ss_family = AF_UNIX}};
	const struct sockaddr_in6 address = a_address("10.0.0.1", 5);
	int fd = a_open(), id;

	(void)state;
	fake_begin(1);
	cmd.id = (uint32_t)(id = a_create(fd, RDMA_PS_IB, 1));
	assert_int_equal(A_COMMAND(fd, BIND, &cmd, 0), -EAFNOSUPPORT);
	memcpy(&cmd.addr, &address, sizeof(address));
	cmd.addr_size = sizeof(struct sockaddr_in6);
	assert_int_equal(A_COMMAND(fd, BIND, &cmd, 0), -EINVAL);
	cmd.addr_size = sizeof(struct sockaddr_in);
	assert_int_equal(A_COMMAND(fd, BIND, &cmd, 0), 0);
	assert_int_equal(a_port(fd, id), 5);
	a_close(fd);
}

/* The daemon ends: each id is told, and another daemon is found by the next one. */
static void
test_device_dies(void **state)
{
	int fd = a_open(), id, other;
	struct fake_counts before;

	(void)state;
	fake_begin(1);
	id = a_create(fd, A_TCP, 1);
	assert_int_equal(a_bind(fd, id, "10.0.0.1", 0), 0);
	other = a_create(fd, A_TCP, 2);
	assert_int_equal(a_bind(fd, other, "10.0.0.1", 0), 0);
	before = fake_counts();
	fake_die(0);
	a_expect(fd, SOFTHCA_CM_DEVICE_REMOVAL, 2, 0);
	a_expect(fd, SOFTHCA_CM_DEVICE_REMOVAL, 1, 0);
	assert_int_equal(a_listen(fd, id, 0), -EIO);
	assert_int_equal(a_destroy(fd, id), 1);
	assert_int_equal(a_destroy(fd, other), 1);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	assert_int_equal(a_event(fd, &(struct rdma_ucm_event_resp){0}), -EAGAIN);
	id = a_create(fd, A_TCP, 3);
	assert_int_equal(a_bind(fd, id, "10.0.0.1", 0), 0);
	assert_int_equal(fake_counts().opened, before.opened + 1);
	a_close(fd);
	assert_int_equal(fake_counts().contexts, before.contexts); /* the dead one is closed */
}

/* A listener with a wildcard stays while one HCA is left. */
static void
test_one_of_two_dies(void **state)
{
	int fd = a_open(), id;

	(void)state;
	fake_begin(2);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	id = a_create(fd, A_TCP, 1);
	assert_int_equal(a_bind(fd, id, "::", 0), 0);
	assert_int_equal(a_listen(fd, id, 0), 0);
	fake_die(0);
	assert_int_equal(a_event(fd, &(struct rdma_ucm_event_resp){0}), -EAGAIN);
	assert_int_equal(fake_counts().ids, 1);
	fake_die(1);
	a_expect(fd, SOFTHCA_CM_DEVICE_REMOVAL, 1, 0);
	a_close(fd);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_numbers),	    TEST(test_many),	 TEST(test_bind),
		TEST(test_wildcard),	    TEST(test_resolve),	 TEST(test_resolve_bound),
		TEST(test_no_device),	    TEST(test_families), TEST(test_device_dies),
		TEST(test_one_of_two_dies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
