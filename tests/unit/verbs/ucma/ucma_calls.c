/* SPDX-License-Identifier: BSD-3-Clause */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "ucma_calls.h"

#define PRIVATE(to, from) \
	do { \
		(to).private_data_len = (uint8_t)strlen(from); \
		memcpy((to).private_data, (from), strlen(from)); \
	} while (0)

struct sockaddr_in6
a_address(const char *text, int port)
{
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons((in_port_t)port)};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((in_port_t)port)};

	if (inet_pton(AF_INET6, text, &in6.sin6_addr) == 1)
		return in6;
	assert_int_equal(inet_pton(AF_INET, text, &in.sin_addr), 1);
	memset(&in6, 0, sizeof(in6));
	memcpy(&in6, &in, sizeof(in));
	return in6;
}

int
a_open(void)
{
	int fd = ucma_open(O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

void
a_close(int fd)
{
	assert_int_equal(ucma_close(fd, close), 0);
}

int
a_command(int fd, uint32_t cmd, const void *data, size_t bytes, size_t out)
{
	char message[1024];
	const struct rdma_ucm_cmd_hdr hdr = {cmd, (uint16_t)bytes, (uint16_t)out};
	ssize_t n;

	memcpy(message, &hdr, sizeof(hdr));
	memcpy(message + sizeof(hdr), data, bytes);
	n = ucma_write(fd, message, sizeof(hdr) + bytes);
	return n < 0 ? -errno : (int)n;
}

int
a_whole(int fd, uint32_t cmd, const void *data, size_t bytes, size_t out)
{
	int n = a_command(fd, cmd, data, bytes, out);

	assert_true(n < 0 || n == (int)(bytes + sizeof(struct rdma_ucm_cmd_hdr)));
	return n < 0 ? n : 0;
}

int
a_create(int fd, uint32_t space, uint64_t uid)
{
	struct rdma_ucm_create_id_resp resp = {0};
	const struct rdma_ucm_create_id cmd = {uid, (uintptr_t)&resp, (uint16_t)space, 2, {0}};
	int err = A_COMMAND(fd, CREATE_ID, &cmd, sizeof(resp));

	return err != 0 ? err : (int)resp.id;
}

int
a_destroy(int fd, int id)
{
	struct rdma_ucm_destroy_id_resp resp = {0};
	const struct rdma_ucm_destroy_id cmd = {(uintptr_t)&resp, (uint32_t)id, 0};
	int err = A_COMMAND(fd, DESTROY_ID, &cmd, sizeof(resp));

	return err != 0 ? err : (int)resp.events_reported;
}

int
a_bind(int fd, int id, const char *address, int port)
{
	const struct rdma_ucm_bind_ip cmd = {0, a_address(address, port), (uint32_t)id};

	return A_COMMAND(fd, BIND_IP, &cmd, 0);
}

int
a_resolve(int fd, int id, const char *address, int port)
{
	const struct rdma_ucm_resolve_ip cmd = {.dst_addr = a_address(address, port),
						.id = (uint32_t)id,
						.timeout_ms = 2000};

	return A_COMMAND(fd, RESOLVE_IP, &cmd, 0);
}

int
a_route(int fd, int id)
{
	const struct rdma_ucm_resolve_route cmd = {(uint32_t)id, 2000};

	return A_COMMAND(fd, RESOLVE_ROUTE, &cmd, 0);
}

int
a_listen(int fd, int id, int backlog)
{
	const struct rdma_ucm_listen cmd = {(uint32_t)id, (uint32_t)backlog};

	return A_COMMAND(fd, LISTEN, &cmd, 0);
}

int
a_connect(int fd, int id, const char *private_data)
{
	struct rdma_ucm_connect cmd = {.id = (uint32_t)id};

	cmd.conn_param.valid = 1;
	cmd.conn_param.qp_num = 77;
	cmd.ece.vendor_id = 0x2c9;
	PRIVATE(cmd.conn_param, private_data);
	return A_COMMAND(fd, CONNECT, &cmd, 0);
}

int
a_accept(int fd, int id, uint64_t uid, const char *private_data)
{
	struct rdma_ucm_accept cmd = {.id = (uint32_t)id, .uid = uid};

	cmd.conn_param.valid = 1;
	cmd.conn_param.qp_num = 78;
	PRIVATE(cmd.conn_param, private_data);
	return A_COMMAND(fd, ACCEPT, &cmd, 0);
}

int
a_establish(int fd, int id)
{
	const struct rdma_ucm_accept cmd = {.id = (uint32_t)id};

	return A_COMMAND(fd, ACCEPT, &cmd, 0);
}

int
a_query(int fd, int id, struct rdma_ucm_query_route_resp *resp)
{
	const struct rdma_ucm_query cmd = {(uintptr_t)resp, (uint32_t)id, 0};

	return A_COMMAND(fd, QUERY_ROUTE, &cmd, sizeof(*resp));
}

int
a_port(int fd, int id)
{
	struct rdma_ucm_query_route_resp resp;

	assert_int_equal(a_query(fd, id, &resp), 0);
	return ntohs(resp.src_addr.sin6_port);
}

int
a_migrate(int fd, int from, int id)
{
	struct rdma_ucm_migrate_resp resp = {0};
	const struct rdma_ucm_migrate_id cmd = {(uintptr_t)&resp, (uint32_t)id, (uint32_t)from};
	int err = A_COMMAND(fd, MIGRATE_ID, &cmd, sizeof(resp));

	return err != 0 ? err : (int)resp.events_reported;
}

int
a_event(int fd, struct rdma_ucm_event_resp *event)
{
	const struct rdma_ucm_get_event cmd = {(uintptr_t)event};

	return A_COMMAND(fd, GET_EVENT, &cmd, sizeof(*event));
}

struct rdma_ucm_event_resp
a_expect(int fd, uint32_t type, uint64_t uid, int status)
{
	struct rdma_ucm_event_resp event;

	assert_int_equal(a_event(fd, &event), 0);
	assert_int_equal(event.event, type);
	assert_int_equal(event.uid, uid);
	assert_int_equal((int)event.status, status);
	return event;
}

void
a_pair(int fd, int server, int *client, int *accepted)
{
	int listener = a_create(server, A_TCP, 1), port;
	struct rdma_ucm_event_resp event;

	assert_int_equal(a_bind(server, listener, "10.0.0.1", 0), 0);
	port = a_port(server, listener);
	assert_int_equal(a_listen(server, listener, 0), 0);
	*client = a_create(fd, A_TCP, 2);
	assert_int_equal(a_resolve(fd, *client, "10.0.0.1", port), 0);
	a_expect(fd, SOFTHCA_CM_ADDR_RESOLVED, 2, 0);
	assert_int_equal(a_route(fd, *client), 0);
	a_expect(fd, SOFTHCA_CM_ROUTE_RESOLVED, 2, 0);
	assert_int_equal(a_connect(fd, *client, "hello"), 0);
	event = a_expect(server, SOFTHCA_CM_CONNECT_REQUEST, 1, 0);
	*accepted = (int)event.id;
	assert_int_equal(a_accept(server, *accepted, 3, "welcome"), 0);
	a_expect(fd, SOFTHCA_CM_CONNECT_RESPONSE, 2, 0);
	assert_int_equal(a_establish(fd, *client), 0);
	a_expect(server, SOFTHCA_CM_ESTABLISHED, 3, 0);
	assert_int_equal(a_destroy(server, listener), 1);
}
