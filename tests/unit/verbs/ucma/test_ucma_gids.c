/* SPDX-License-Identifier: BSD-3-Clause */

/* Addresses of family AF_IB, and the answers of QUERY for them and for IP addresses. */

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "ucma_calls.h"

#define SPACE_BITS UINT64_C(0xffffffffffff0000)
#define SID(space, port) ((uint64_t)(space) << 16 | (port))

static int fd;

static int
setup(void **state)
{
	(void)state;
	fake_begin(2);
	fd = a_open();
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	for (int i = 0; i < FAKE_HCAS; i++)
		fake_set_older(i, false);
	a_close(fd);
	assert_int_equal(fake_counts().ids, 0);
	assert_int_equal(fake_counts().channels, 0);
	return 0;
}

static struct softhca_sockaddr_ib
address(const char *gid, uint64_t sid, uint64_t mask)
{
	struct softhca_sockaddr_ib addr = {
		.sib_family = AF_IB,
		.sib_pkey = 0xffff,
		.sib_sid = htobe64(sid),
		.sib_sid_mask = htobe64(mask),
	};

	assert_int_equal(inet_pton(AF_INET6, gid, addr.sib_addr), 1);
	return addr;
}

static int
bind_gid(int id, const char *gid, uint64_t sid, uint64_t mask)
{
	const struct softhca_sockaddr_ib addr = address(gid, sid, mask);
	struct rdma_ucm_bind cmd = {.id = (uint32_t)id, .addr_size = sizeof(addr)};

	memcpy(&cmd.addr, &addr, sizeof(addr));
	return A_COMMAND(fd, BIND, &cmd, 0);
}

static int
resolve_gid(int id, const char *gid, uint64_t sid)
{
	const struct softhca_sockaddr_ib addr = address(gid, sid, UINT64_MAX);
	struct rdma_ucm_resolve_addr cmd = {.id = (uint32_t)id, .dst_size = sizeof(addr)};

	memcpy(&cmd.dst_addr, &addr, sizeof(addr));
	return A_COMMAND(fd, RESOLVE_ADDR, &cmd, 0);
}

static struct rdma_ucm_query_addr_resp
query(int id, uint32_t option)
{
	struct rdma_ucm_query_addr_resp resp = {0};
	const struct rdma_ucm_query cmd = {(uintptr_t)&resp, (uint32_t)id, option};

	assert_int_equal(A_COMMAND(fd, QUERY, &cmd, sizeof(resp)), 0);
	return resp;
}

static struct softhca_sockaddr_ib
ib_of(const void *storage)
{
	struct softhca_sockaddr_ib addr;

	memcpy(&addr, storage, sizeof(addr));
	assert_int_equal(addr.sib_family, AF_IB);
	return addr;
}

static void
expect_gid(const struct softhca_sockaddr_ib *addr, const char *gid)
{
	uint8_t raw[16];

	assert_int_equal(inet_pton(AF_INET6, gid, raw), 1);
	assert_memory_equal(addr->sib_addr, raw, 16);
}

/* librdmacm asks so, once, whether it may use the newer commands. */
static int
probe(void)
{
	int id = a_create(fd, RDMA_PS_IB, 1), err;

	err = bind_gid(id, "::", SID(RDMA_PS_TCP, 0), SPACE_BITS);
	a_destroy(fd, id);
	return err;
}

static void
test_probe(void **state)
{
	(void)state;
	assert_int_equal(probe(), 0);
	fake_set_older(0, true);
	assert_int_equal(probe(), 0);
	fake_set_older(1, true);
	assert_int_equal(probe(), -EOPNOTSUPP);
	fake_begin(0);
	assert_int_equal(probe(), -ENODEV);
}

/* The wildcard is at all HCAs, with one port: 40000 of HCA 0 is in use at HCA 1. */
static void
test_wildcard(void **state)
{
	struct rdma_ucm_query_addr_resp resp;
	struct softhca_sockaddr_ib addr;
	int id = a_create(fd, A_TCP, 1);

	(void)state;
	assert_int_equal(bind_gid(id, "::", SID(RDMA_PS_TCP, 0), SPACE_BITS), 0);
	assert_int_equal(fake_counts().ids, 2);
	resp = query(id, RDMA_USER_CM_QUERY_ADDR);
	assert_int_equal(resp.src_size, sizeof(addr));
	assert_int_equal(resp.dst_size, 0);
	assert_int_equal(resp.node_guid, 0);
	addr = ib_of(&resp.src_addr);
	expect_gid(&addr, "::");
	assert_int_equal(be64toh(addr.sib_sid) >> 16, RDMA_PS_TCP);
	assert_int_not_equal((uint16_t)be64toh(addr.sib_sid), 0);
	/* as the wildcard */
	assert_int_equal(bind_gid(a_create(fd, A_TCP, 2), "::1", 0, 0), 0);
	assert_int_equal(fake_counts().ids, 4);
	assert_int_equal(a_listen(fd, id, 0), 0);
}

static void
test_bind(void **state)
{
	static const char *const gids[] = {"::ffff:10.0.0.2", "fd00::2"};
	struct rdma_ucm_query_addr_resp resp;
	struct softhca_sockaddr_ib addr;
	int id;

	(void)state;
	assert_int_equal(bind_gid(a_create(fd, A_TCP, 1), "fd00::9", 0, 0), -EADDRNOTAVAIL);
	for (int i = 0; i < 2; i++) {
		id = a_create(fd, A_TCP, 1);
		assert_int_equal(bind_gid(id, gids[i], SID(RDMA_PS_TCP, 7000 + i), UINT64_MAX), 0);
		resp = query(id, RDMA_USER_CM_QUERY_ADDR);
		assert_int_equal(resp.node_guid, 0x101);
		assert_int_equal(resp.ibdev_index, 8);
		assert_int_equal(resp.pkey, 0xffff);
		resp = query(id, RDMA_USER_CM_QUERY_GID);
		addr = ib_of(&resp.src_addr);
		expect_gid(&addr, gids[i]);
		assert_int_equal(be64toh(addr.sib_sid), SID(RDMA_PS_TCP, 7000 + i));
	}
}

/* The older commands have no room for the family. */
static void
test_older_commands(void **state)
{
	struct rdma_ucm_bind_ip bind = {.addr.sin6_family = AF_IB};
	struct rdma_ucm_resolve_ip resolve = {.dst_addr.sin6_family = AF_IB};
	struct rdma_ucm_query_route_resp route;
	struct rdma_ucm_bind cmd = {.addr = {.ss_family = AF_IB}, .addr_size = 47};
	int id = a_create(fd, A_TCP, 1);

	(void)state;
	bind.id = resolve.id = cmd.id = (uint32_t)id;
	assert_int_equal(A_COMMAND(fd, BIND_IP, &bind, 0), -EAFNOSUPPORT);
	assert_int_equal(A_COMMAND(fd, RESOLVE_IP, &resolve, 0), -EAFNOSUPPORT);
	assert_int_equal(A_COMMAND(fd, BIND, &cmd, 0), -EINVAL);
	assert_int_equal(bind_gid(id, "fd00::1", 0, 0), 0);
	assert_int_equal(a_query(fd, id, &route), 0);
	assert_int_equal(route.src_addr.sin6_family, 0);
	assert_int_equal(route.node_guid, 0x100);
}

/* ---- on the way to a connection ---- */

static int
resolved(const char *gid, int port)
{
	int id = a_create(fd, A_TCP, 2);

	assert_int_equal(resolve_gid(id, gid, SID(RDMA_PS_TCP, port)), 0);
	a_expect(fd, SOFTHCA_CM_ADDR_RESOLVED, 2, 0);
	return id;
}

static void
expect_path(int id, const char *dgid, uint64_t service_id)
{
	struct {
		struct rdma_ucm_query_path_resp head;
		struct ib_path_rec_data path;
	} resp = {0};
	const struct rdma_ucm_query cmd = {(uintptr_t)&resp, (uint32_t)id, RDMA_USER_CM_QUERY_PATH};
	const uint8_t *rec = (const uint8_t *)resp.path.path_rec;
	struct softhca_sockaddr_ib dst = address(dgid, 0, 0);
	uint64_t sid;

	assert_int_equal(A_COMMAND(fd, QUERY, &cmd, sizeof(resp)), 0);
	assert_int_equal(resp.head.num_paths, 1);
	assert_int_equal(resp.path.flags, IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL);
	memcpy(&sid, rec, sizeof(sid));
	assert_int_equal(be64toh(sid), service_id);
	assert_memory_equal(rec + 8, dst.sib_addr, 16);
	assert_int_equal(rec[47], 64);			  /* hop limit */
	assert_int_equal(rec[49], 0x81);		  /* reversible, one path */
	assert_int_equal(rec[50] << 8 | rec[51], 0xffff); /* P_Key */
}

static void
test_connect(void **state)
{
	int listener = a_create(fd, A_TCP, 1), client;
	struct rdma_ucm_query_addr_resp resp;
	struct rdma_ucm_event_resp event;
	struct softhca_sockaddr_ib addr;

	(void)state;
	assert_int_equal(bind_gid(listener, "fd00::2", SID(RDMA_PS_TCP, 7100), UINT64_MAX), 0);
	assert_int_equal(a_listen(fd, listener, 0), 0);
	client = resolved("fd00::2", 7100);
	resp = query(client, RDMA_USER_CM_QUERY_ADDR);
	assert_int_equal(resp.dst_size, sizeof(addr));
	assert_int_equal(resp.node_guid, 0x101);
	addr = ib_of(&resp.dst_addr);
	expect_gid(&addr, "fd00::2");
	assert_int_equal(be64toh(addr.sib_sid), SID(RDMA_PS_TCP, 7100));
	assert_int_equal(a_route(fd, client), 0);
	a_expect(fd, SOFTHCA_CM_ROUTE_RESOLVED, 2, 0);
	expect_path(client, "fd00::2", SID(RDMA_PS_TCP, 7100));
	assert_int_equal(a_connect(fd, client, "hello"), 0);
	event = a_expect(fd, SOFTHCA_CM_CONNECT_REQUEST, 1, 0);
	resp = query((int)event.id, RDMA_USER_CM_QUERY_ADDR);
	addr = ib_of(&resp.src_addr);
	expect_gid(&addr, "fd00::2");
	/* the HCA that is near, and a daemon that cannot */
	assert_int_equal(query(resolved("::ffff:10.0.0.1", 1), 0).node_guid, 0x100);
	fake_set_older(0, true);
	fake_set_older(1, true);
	assert_int_equal(resolve_gid(a_create(fd, A_TCP, 3), "fd00::2", 1), -EOPNOTSUPP);
}

/* IP addresses as those of AF_IB: the service ID is of each one's own port. */
static void
test_ip_as_gid(void **state)
{
	struct rdma_ucm_query_addr_resp resp;
	struct softhca_sockaddr_ib addr;
	int id = a_create(fd, A_UDP, 1);

	(void)state;
	assert_int_equal(a_bind(fd, id, "10.0.0.1", 7200), 0);
	resp = query(id, RDMA_USER_CM_QUERY_GID);
	addr = ib_of(&resp.src_addr);
	expect_gid(&addr, "::ffff:10.0.0.1");
	assert_int_equal(addr.sib_pkey, 0xffff);
	assert_int_equal(be64toh(addr.sib_sid), SID(RDMA_PS_UDP, 7200));
	assert_int_equal(ib_of(&resp.dst_addr).sib_sid, 0);
	assert_int_equal(a_resolve(fd, id, "10.0.0.2", 7201), 0);
	a_expect(fd, SOFTHCA_CM_ADDR_RESOLVED, 1, 0);
	resp = query(id, RDMA_USER_CM_QUERY_GID);
	addr = ib_of(&resp.dst_addr);
	expect_gid(&addr, "::ffff:10.0.0.2");
	assert_int_equal(be64toh(addr.sib_sid), SID(RDMA_PS_UDP, 7201));
}

/* The library asks the daemon once for the answers to several commands of librdmacm. */
static void
test_asked_once(void **state)
{
	int before = fake_counts().queries, id = resolved("fd00::2", 1);

	(void)state;
	query(id, RDMA_USER_CM_QUERY_ADDR);
	query(id, RDMA_USER_CM_QUERY_GID);
	assert_int_equal(fake_counts().queries, before + 1);
	assert_int_equal(a_route(fd, id), 0);
	query(id, RDMA_USER_CM_QUERY_ADDR);
	assert_int_equal(fake_counts().queries, before + 2);
	a_expect(fd, SOFTHCA_CM_ROUTE_RESOLVED, 2, 0);
	expect_path(id, "fd00::2", SID(RDMA_PS_TCP, 1));
	assert_int_equal(fake_counts().queries, before + 3);
}

static void
test_groups(void **state)
{
	const struct softhca_sockaddr_ib addr = address("ff0e::76", 0, 0);
	struct rdma_ucm_create_id_resp resp;
	struct rdma_ucm_join_mcast cmd = {.response = (uintptr_t)&resp, .uid = 9};

	(void)state;
	cmd.id = (uint32_t)a_create(fd, A_UDP, 1);
	memcpy(&cmd.addr, &addr, sizeof(addr));
	assert_int_equal(a_bind(fd, (int)cmd.id, "10.0.0.1", 0), 0);
	cmd.addr_size = sizeof(addr) - 1;
	assert_int_equal(A_COMMAND(fd, JOIN_MCAST, &cmd, sizeof(resp)), -EINVAL);
	cmd.addr_size = sizeof(addr);
	assert_int_equal(A_COMMAND(fd, JOIN_MCAST, &cmd, sizeof(resp)), 0);
	a_expect(fd, SOFTHCA_CM_MULTICAST_JOIN, 9, 0);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_probe),	   TEST(test_wildcard), TEST(test_bind),
		TEST(test_older_commands), TEST(test_connect),	TEST(test_ip_as_gid),
		TEST(test_asked_once),	   TEST(test_groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
