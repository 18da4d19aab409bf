/* SPDX-License-Identifier: BSD-3-Clause */

/* Connections, datagrams, groups, options; sizes of commands. */

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "ucma_calls.h"

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
	a_close(fd);
	assert_int_equal(fake_counts().ids, 0);
	assert_int_equal(fake_counts().channels, 0);
	return 0;
}

static int
start_resolved(uint32_t space, uint64_t uid, const char *address, int port)
{
	int id = a_create(fd, space, uid);

	assert_int_equal(a_resolve(fd, id, address, port), 0);
	a_expect(fd, SOFTHCA_CM_ADDR_RESOLVED, uid, 0);
	assert_int_equal(a_route(fd, id), 0);
	a_expect(fd, SOFTHCA_CM_ROUTE_RESOLVED, uid, 0);
	return id;
}

static int
start_listener(uint32_t space, uint64_t uid, const char *address, int port)
{
	int id = a_create(fd, space, uid);

	assert_int_equal(a_bind(fd, id, address, port), 0);
	assert_int_equal(a_listen(fd, id, 3), 0);
	return id;
}

/* The fields of each event, and the number of events of each id */
static void
test_connect(void **state)
{
	int listener = start_listener(A_TCP, 1, "0.0.0.0", 4000);
	int client = start_resolved(A_TCP, 2, "10.0.0.2", 4000), accepted;
	struct rdma_ucm_query_route_resp route;
	struct rdma_ucm_disconnect disconnect;
	struct rdma_ucm_event_resp event;

	(void)state;
	assert_int_equal(a_query(fd, client, &route), 0);
	assert_int_equal(route.num_paths, 1);
	assert_int_equal(route.ib_route[0].mtu, 3);
	assert_int_equal(route.ib_route[0].dgid[15], 2);
	assert_int_equal(a_connect(fd, client, "hello"), 0);
	event = a_expect(fd, SOFTHCA_CM_CONNECT_REQUEST, 1, 0);
	accepted = (int)event.id;
	assert_int_equal(event.param.conn.private_data_len, 5);
	assert_memory_equal(event.param.conn.private_data, "hello", 6);
	assert_int_equal(event.param.conn.qp_num, 77);
	assert_int_equal(event.ece.vendor_id, 0x2c9);
	assert_int_equal(a_query(fd, accepted, &route), 0);
	assert_int_equal(route.node_guid, 0x101); /* the HCA that has the address */
	assert_int_equal(route.ibdev_index, 8);
	assert_int_equal(route.num_paths, 1);
	assert_int_equal(a_accept(fd, accepted, 3, "yes"), 0);
	event = a_expect(fd, SOFTHCA_CM_CONNECT_RESPONSE, 2, 0);
	assert_memory_equal(event.param.conn.private_data, "yes", 4);
	assert_int_equal(a_establish(fd, client), 0);
	a_expect(fd, SOFTHCA_CM_ESTABLISHED, 3, 0);
	disconnect.id = (uint32_t)client;
	assert_int_equal(A_COMMAND(fd, DISCONNECT, &disconnect, 0), 0);
	a_event(fd, &event);
	assert_int_equal(event.event, SOFTHCA_CM_DISCONNECTED);
	a_event(fd, &event);
	assert_int_equal(event.event, SOFTHCA_CM_DISCONNECTED);
	assert_int_equal(a_destroy(fd, client), 4);
	assert_int_equal(a_destroy(fd, accepted), 2);
	assert_int_equal(a_destroy(fd, listener), 1);
}

static void
test_reject(void **state)
{
	int listener = start_listener(A_TCP, 1, "10.0.0.1", 4001);
	int client = start_resolved(A_TCP, 2, "10.0.0.1", 4001);
	struct rdma_ucm_reject cmd = {.private_data_len = 2, .private_data = "no"};
	struct rdma_ucm_event_resp event;

	(void)state;
	assert_int_equal(a_connect(fd, client, ""), 0);
	event = a_expect(fd, SOFTHCA_CM_CONNECT_REQUEST, 1, 0);
	cmd.id = event.id;
	cmd.reason = 7;
	assert_int_equal(A_COMMAND(fd, REJECT, &cmd, 0), -EINVAL);
	cmd.reason = 0;
	assert_int_equal(A_COMMAND(fd, REJECT, &cmd, 0), 0);
	event = a_expect(fd, SOFTHCA_CM_REJECTED, 2, 28);
	assert_memory_equal(event.param.conn.private_data, "no", 3);
	client = start_resolved(A_TCP, 3, "10.0.0.1", 4002);
	assert_int_equal(a_connect(fd, client, ""), 0);
	a_expect(fd, SOFTHCA_CM_REJECTED, 3, 8);
	assert_int_equal(a_destroy(fd, listener), 1);
}

/* Events of a request that is not accepted are dropped, as are those of an id that is destroyed. */
static void
test_dropped(void **state)
{
	int listener = start_listener(A_TCP, 1, "10.0.0.1", 4003), client;
	struct rdma_ucm_event_resp event;

	(void)state;
	fcntl(fd, F_SETFL, O_NONBLOCK);
	client = start_resolved(A_TCP, 2, "10.0.0.1", 4003);
	assert_int_equal(a_connect(fd, client, ""), 0);
	a_expect(fd, SOFTHCA_CM_CONNECT_REQUEST, 1, 0);
	assert_int_equal(a_destroy(fd, client), 2);
	assert_int_equal(a_event(fd, &event), -EAGAIN);
	client = start_resolved(A_TCP, 3, "10.0.0.1", 4003);
	assert_int_equal(a_connect(fd, client, ""), 0);
	assert_int_equal(a_destroy(fd, listener), 1);
	assert_int_equal(a_event(fd, &event), -EAGAIN);
}

static void
test_datagrams(void **state)
{
	int client;
	struct rdma_ucm_event_resp event;

	(void)state;
	start_listener(A_UDP, 1, "fd00::1", 4004);
	client = start_resolved(A_UDP, 2, "fd00::1", 4004);
	assert_int_equal(a_connect(fd, client, "who"), 0);
	event = a_expect(fd, SOFTHCA_CM_CONNECT_REQUEST, 1, 0);
	assert_memory_equal(event.param.ud.private_data, "who", 4);
	assert_int_equal(a_accept(fd, (int)event.id, 3, "me"), 0);
	event = a_expect(fd, SOFTHCA_CM_ESTABLISHED, 2, 0);
	assert_int_equal(event.param.ud.qp_num, 78);
	assert_int_equal(event.param.ud.ah_attr.grh.sgid_index, 5);
}

static int
start_join(int id, uint64_t uid, int size, uint32_t flags)
{
	struct rdma_ucm_create_id_resp resp = {0};
	const struct sockaddr_in6 address = a_address("239.1.2.3", 0);
	struct rdma_ucm_join_mcast cmd = {.response = (uintptr_t)&resp, .uid = uid};
	int err;

	cmd.id = (uint32_t)id;
	cmd.addr_size = (uint16_t)size;
	cmd.join_flags = (uint16_t)flags;
	memcpy(&cmd.addr, &address, sizeof(address));
	err = A_COMMAND(fd, JOIN_MCAST, &cmd, sizeof(resp));
	return err != 0 ? err : (int)resp.id;
}

static int
leave(int group)
{
	struct rdma_ucm_destroy_id_resp resp = {0};
	const struct rdma_ucm_destroy_id cmd = {(uintptr_t)&resp, (uint32_t)group, 0};
	int err = A_COMMAND(fd, LEAVE_MCAST, &cmd, sizeof(resp));

	return err != 0 ? err : (int)resp.events_reported;
}

static void
test_groups(void **state)
{
	int id = a_create(fd, A_UDP, 1), group, second;
	struct rdma_ucm_event_resp event;

	(void)state;
	assert_int_equal(start_join(id, 9, sizeof(struct sockaddr_in), 0), -EINVAL);
	assert_int_equal(a_bind(fd, id, "10.0.0.1", 0), 0);
	assert_int_equal(start_join(id, 9, 7, 0), -EINVAL);
	assert_int_equal(start_join(id, 9, sizeof(struct sockaddr_in), 2), -EINVAL);
	group = start_join(id, 9, sizeof(struct sockaddr_in), 0);
	second = start_join(id, 10, sizeof(struct sockaddr_in), 1);
	event = a_expect(fd, SOFTHCA_CM_MULTICAST_JOIN, 9, 0);
	assert_int_equal(event.id, group);
	assert_int_equal(event.param.ud.qp_num, 0xffffff);
	assert_int_equal(event.param.ud.ah_attr.sl, 0);
	assert_int_equal(leave(second), 0);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	assert_int_equal(a_event(fd, &event), -EAGAIN); /* that of the second is dropped */
	assert_int_equal(leave(group), 1);
	assert_int_equal(leave(group), -ENOENT);
	assert_int_equal(fake_counts().groups, 0);
	start_join(id, 11, sizeof(struct sockaddr_in), 0);
	assert_int_equal(a_destroy(fd, id), 1);
}

static int
set_option(int id, uint32_t level, uint32_t name, const void *value, uint32_t len)
{
	const struct rdma_ucm_set_option cmd = {(uintptr_t)value, (uint32_t)id, level, name, len};

	return A_COMMAND(fd, SET_OPTION, &cmd, 0);
}

static void
test_options(void **state)
{
	const struct ib_path_rec_data path = {.flags = IB_PATH_GMP | IB_PATH_PRIMARY |
						       IB_PATH_BIDIRECTIONAL};
	int id = a_create(fd, A_TCP, 1), other, on = 1;
	uint8_t byte = 0x60;

	(void)state;
	assert_int_equal(set_option(id, 0, RDMA_OPTION_ID_TOS, &byte, 1), 0);
	assert_int_equal(set_option(id, 0, RDMA_OPTION_ID_TOS, &on, 4), -EINVAL);
	assert_int_equal(set_option(id, 0, RDMA_OPTION_ID_TOS, NULL, 1), -EFAULT);
	assert_int_equal(set_option(id, 0, RDMA_OPTION_ID_REUSEADDR, &on, 4), 0);
	assert_int_equal(set_option(id, 0, RDMA_OPTION_ID_AFONLY, &on, 4), 0);
	assert_int_equal(set_option(id, 0, 77, &on, 4), -ENOSYS);
	assert_int_equal(set_option(id, 7, 0, &on, 4), -ENOSYS);
	assert_int_equal(a_bind(fd, id, "10.0.0.1", 4010), 0);
	other = a_create(fd, A_TCP, 2);
	assert_int_equal(set_option(other, 0, RDMA_OPTION_ID_REUSEADDR, &on, 4), 0);
	assert_int_equal(a_bind(fd, other, "10.0.0.1", 4010), 0);
	assert_int_equal(set_option(other, 0, RDMA_OPTION_ID_ACK_TIMEOUT, &byte, 1), -EINVAL);
	assert_int_equal(a_bind(fd, a_create(fd, A_TCP, 3), "10.0.0.1", 4010), -EADDRINUSE);
	other = a_create(fd, A_TCP, 4);
	assert_int_equal(set_option(other, 1, RDMA_OPTION_IB_PATH, &path, sizeof(path)), -EINVAL);
	assert_int_equal(a_resolve(fd, other, "10.0.0.1", 4010), 0);
	a_expect(fd, SOFTHCA_CM_ADDR_RESOLVED, 4, 0);
	assert_int_equal(set_option(other, 1, RDMA_OPTION_IB_PATH, &path, 7), -EINVAL);
	assert_int_equal(set_option(other, 1, RDMA_OPTION_IB_PATH, &path, sizeof(path)), 0);
	a_expect(fd, SOFTHCA_CM_ROUTE_RESOLVED, 4, 0);
}

static void
test_qp_attr(void **state)
{
	struct ib_uverbs_qp_attr attr;
	struct rdma_ucm_init_qp_attr cmd = {.response = (uintptr_t)&attr, .qp_state = 2};
	struct rdma_ucm_notify notify = {.event = 99};

	(void)state;
	cmd.id = (uint32_t)a_create(fd, A_TCP, 1);
	assert_int_equal(A_COMMAND(fd, INIT_QP_ATTR, &cmd, sizeof(attr)), -EINVAL);
	assert_int_equal(a_bind(fd, (int)cmd.id, "10.0.0.1", 0), 0);
	assert_int_equal(A_COMMAND(fd, INIT_QP_ATTR, &cmd, sizeof(attr) - 1), -ENOSPC);
	assert_int_equal(A_COMMAND(fd, INIT_QP_ATTR, &cmd, sizeof(attr)), 0);
	assert_int_equal(attr.qp_state, 2);
	assert_int_equal(attr.dest_qp_num, 0x1234);
	assert_int_equal(attr.ah_attr.grh.dgid[15], 9);
	assert_int_equal(attr.timeout, 19);
	assert_int_equal(attr.qp_attr_mask, 1 << 0 | 1 << 7 | 1 << 20);
	cmd.qp_state = 7;
	assert_int_equal(A_COMMAND(fd, INIT_QP_ATTR, &cmd, sizeof(attr)), -EINVAL);
	notify.id = cmd.id;
	assert_int_equal(A_COMMAND(fd, NOTIFY, &notify, 0), -EINVAL);
	notify.event = SOFTHCA_EVENT_COMM_EST;
	assert_int_equal(A_COMMAND(fd, NOTIFY, &notify, 0), 0);
}

/* The commands of the newer interface say the same as QUERY_ROUTE. */
static void
test_query(void **state)
{
	struct {
		struct rdma_ucm_query_path_resp head;
		struct ib_path_rec_data path;
	} paths = {0};
	struct rdma_ucm_query_addr_resp addr;
	struct rdma_ucm_query cmd = {.response = (uintptr_t)&addr};

	(void)state;
	cmd.id = (uint32_t)start_resolved(A_TCP, 1, "fd00::2", 5);
	assert_int_equal(A_COMMAND(fd, QUERY, &cmd, 8), -ENOSPC);
	assert_int_equal(A_COMMAND(fd, QUERY, &cmd, sizeof(addr)), 0);
	assert_int_equal(addr.node_guid, 0x101);
	assert_int_equal(addr.dst_size, sizeof(struct sockaddr_in6));
	assert_int_equal(addr.pkey, 0xffff);
	cmd.option = RDMA_USER_CM_QUERY_GID;
	assert_int_equal(A_COMMAND(fd, QUERY, &cmd, sizeof(addr)), 0);
	assert_int_equal(addr.src_addr.ss_family, 27);
	assert_int_equal(((uint8_t *)&addr.dst_addr)[8 + 15], 2);
	cmd.option = RDMA_USER_CM_QUERY_PATH;
	cmd.response = (uintptr_t)&paths;
	assert_int_equal(A_COMMAND(fd, QUERY, &cmd, sizeof(paths)), 0);
	assert_int_equal(paths.head.num_paths, 1);
	assert_int_equal(((uint8_t *)paths.path.path_rec)[8 + 15], 2);
	assert_int_equal(((uint8_t *)paths.path.path_rec)[54], 0x83);
	cmd.option = 3;
	assert_int_equal(A_COMMAND(fd, QUERY, &cmd, sizeof(paths)), -ENOSYS);
}

/* Each command: too short, an id that is not there, and an answer without room */
static void
test_sizes(void **state)
{
	static const struct {
		uint32_t cmd;
		size_t min; /* EINVAL with a byte less */
	} sizes[] = {
#define X(NAME, name, type, last) {RDMA_USER_CM_CMD_##NAME, offsetof(type, last)},
		UCMA_COMMANDS(X)
#undef X
	};
	char data[600] = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		assert_int_equal(a_command(fd, sizes[i].cmd, data, sizes[i].min, 0), -EINVAL);
	assert_int_equal(a_command(fd, RDMA_USER_CM_CMD_GET_OPTION, data, 8, 0), -ENOSYS);
	assert_int_equal(a_command(fd, 23, data, 8, 0), -EINVAL);
	assert_int_equal(ucma_write(fd, data, 7), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ucma_write(fd, &(struct rdma_ucm_cmd_hdr){0, 24, 4}, 8), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(a_command(fd, RDMA_USER_CM_CMD_GET_EVENT, data, 8, 16), -ENOSPC);
	assert_int_equal(a_command(fd, RDMA_USER_CM_CMD_GET_EVENT, data, 8, 400), -EFAULT);
	assert_int_equal(a_command(fd, RDMA_USER_CM_CMD_DESTROY_ID, data, 16, 3), -ENOSPC);
}

/* As programs of older headers write them: without ECE, and with less room for answers */
static void
test_older(void **state)
{
	int client, listener = start_listener(A_TCP, 1, "10.0.0.1", 4020);
	struct rdma_ucm_connect cmd = {.conn_param.valid = 1, .conn_param.retry_count = 10};
	struct rdma_ucm_event_resp event = {.reserved = 5};
	struct rdma_ucm_query_route_resp route = {.ibdev_index = 99};
	const struct rdma_ucm_get_event get = {(uintptr_t)&event};
	struct rdma_ucm_query query = {.response = (uintptr_t)&route};

	(void)state;
	client = start_resolved(A_TCP, 2, "10.0.0.1", 4020);
	cmd.id = query.id = (uint32_t)client;
	assert_true(a_command(fd, RDMA_USER_CM_CMD_CONNECT, &cmd,
			      offsetof(struct rdma_ucm_connect, ece), 0) > 0);
	assert_true(a_command(fd, RDMA_USER_CM_CMD_GET_EVENT, &get, sizeof(get),
			      offsetof(struct rdma_ucm_event_resp, reserved)) > 0);
	assert_int_equal(event.event, SOFTHCA_CM_CONNECT_REQUEST);
	assert_int_equal(event.reserved, 5);
	assert_int_equal(event.param.conn.retry_count, 7); /* fio says 10 */
	assert_true(a_command(fd, RDMA_USER_CM_CMD_QUERY_ROUTE, &query, sizeof(query),
			      offsetof(struct rdma_ucm_query_route_resp, ibdev_index)) > 0);
	assert_int_equal(route.ibdev_index, 99);
	assert_int_equal(route.node_guid, 0x100);
	a_destroy(fd, listener);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_connect), TEST(test_reject),	TEST(test_dropped), TEST(test_datagrams),
		TEST(test_groups),  TEST(test_options), TEST(test_qp_attr), TEST(test_query),
		TEST(test_sizes),   TEST(test_older),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
