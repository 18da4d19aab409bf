/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_VERBS_UCMA_UCMA_CALLS_H
#define TESTS_UNIT_VERBS_UCMA_UCMA_CALLS_H

/* Commands as librdmacm writes them. They return 0 or a negative errno, unless noted. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_cm.h"
#include "ucma.h"

#define A_TCP RDMA_PS_TCP
#define A_UDP RDMA_PS_UDP

/* "10.0.0.1" or "fd00::1" */
struct sockaddr_in6 a_address(const char *text, int port);

int a_open(void); /* the descriptor */
void a_close(int fd);
/* Any command: the result of write(), or a negative errno */
int a_command(int fd, uint32_t cmd, const void *data, size_t bytes, size_t out);
/* The same of a whole structure, where it succeeds 0 */
#define A_COMMAND(fd, NAME, data, out) \
	a_whole(fd, RDMA_USER_CM_CMD_##NAME, data, sizeof(*(data)), out)
int a_whole(int fd, uint32_t cmd, const void *data, size_t bytes, size_t out);

int a_create(int fd, uint32_t space, uint64_t uid); /* the number */
int a_destroy(int fd, int id);			    /* events reported */
int a_bind(int fd, int id, const char *address, int port);
int a_resolve(int fd, int id, const char *address, int port);
int a_route(int fd, int id);
int a_listen(int fd, int id, int backlog);
int a_connect(int fd, int id, const char *private_data);
int a_accept(int fd, int id, uint64_t uid, const char *private_data);
int a_establish(int fd, int id);
int a_query(int fd, int id, struct rdma_ucm_query_route_resp *resp);
int a_port(int fd, int id); /* of its address */
int a_migrate(int fd, int from, int id);
int a_event(int fd, struct rdma_ucm_event_resp *event);
/* The next event must be this one. */
struct rdma_ucm_event_resp a_expect(int fd, uint32_t type, uint64_t uid, int status);
/* A client of fd is connected to a listener of server; the numbers of both ends */
void a_pair(int fd, int server, int *client, int *accepted);

#endif
