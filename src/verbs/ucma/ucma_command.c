/* SPDX-License-Identifier: BSD-3-Clause */

/* write() of the device: one command with its header. */

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "ucma.h"

/* The largest structure of a command */
union ucma_data {
#define X(NAME, name, type, last) type name;
	UCMA_COMMANDS(X)
#undef X
};

struct ucma_command {
	const char *name;
	int (*run)(const struct ucma_call *call, const void *data);
	size_t bytes; /* of its structure, and the fewest that a program may send */
	size_t min;
};

/* Members that older headers lack are at the end of a structure. */
#define END_OF(type, member) (offsetof(type, member) + sizeof(((type *)NULL)->member))

static const struct ucma_command commands[] = {
#define X(NAME, name, type, last) \
	[RDMA_USER_CM_CMD_## \
		NAME] = {"rdma_cm " #NAME, ucma_##name, sizeof(type), END_OF(type, last)},
	UCMA_COMMANDS(X)
#undef X
};

/* Calls that can fail on purpose; queries cannot. */
static const char *const calls[sizeof(commands) / sizeof(commands[0])] = {
	[RDMA_USER_CM_CMD_CREATE_ID] = "rdma_create_id",
	[RDMA_USER_CM_CMD_DESTROY_ID] = "rdma_destroy_id",
	[RDMA_USER_CM_CMD_BIND_IP] = "rdma_bind_addr",
	[RDMA_USER_CM_CMD_BIND] = "rdma_bind_addr",
	[RDMA_USER_CM_CMD_RESOLVE_IP] = "rdma_resolve_addr",
	[RDMA_USER_CM_CMD_RESOLVE_ADDR] = "rdma_resolve_addr",
	[RDMA_USER_CM_CMD_RESOLVE_ROUTE] = "rdma_resolve_route",
	[RDMA_USER_CM_CMD_CONNECT] = "rdma_connect",
	[RDMA_USER_CM_CMD_LISTEN] = "rdma_listen",
	[RDMA_USER_CM_CMD_ACCEPT] = "rdma_accept",
	[RDMA_USER_CM_CMD_REJECT] = "rdma_reject",
	[RDMA_USER_CM_CMD_DISCONNECT] = "rdma_disconnect",
	[RDMA_USER_CM_CMD_INIT_QP_ATTR] = "rdma_init_qp_attr",
	[RDMA_USER_CM_CMD_GET_EVENT] = "rdma_get_cm_event",
	[RDMA_USER_CM_CMD_SET_OPTION] = "rdma_set_option",
	[RDMA_USER_CM_CMD_NOTIFY] = "rdma_notify",
	[RDMA_USER_CM_CMD_JOIN_IP_MCAST] = "rdma_join_multicast",
	[RDMA_USER_CM_CMD_JOIN_MCAST] = "rdma_join_multicast",
	[RDMA_USER_CM_CMD_LEAVE_MCAST] = "rdma_leave_multicast",
	[RDMA_USER_CM_CMD_MIGRATE_ID] = "rdma_migrate_id",
};

int
ucma_answer(const struct ucma_call *call, uint64_t response, const void *answer, size_t bytes)
{
	if (response == 0)
		return -EFAULT;
	memcpy((void *)(uintptr_t)response, answer, bytes < call->out ? bytes : call->out);
	return 0;
}

static int
command_run(const struct ucma_command *command, const struct ucma_call *call, const void *data)
{
	int err;

	if (command->run == ucma_get_event)
		return command->run(call, data);
	pthread_mutex_lock(&call->file->lock);
	err = command->run(call, data);
	pthread_mutex_unlock(&call->file->lock);
	return err;
}

/* The header is whole, and names as many bytes as there are at most. */
static int
command_take(struct ucma_call *call, const struct rdma_ucm_cmd_hdr *hdr, const void *from)
{
	const struct ucma_command *command = &commands[hdr->cmd];
	union ucma_data data;
	int err;

	call->name = command->name;
	call->out = hdr->out;
	if (hdr->in < command->min)
		return ucma_front_refuse(
			EINVAL, call->name,
			"a command of %u bytes: it has at least %zu; the program was built with "
			"another librdmacm",
			hdr->in, (size_t)command->min);
	err = calls[hdr->cmd] != NULL ? ucma_front_fault(calls[hdr->cmd]) : 0;
	if (err != 0)
		return err;
	memset(&data, 0, sizeof(data));
	memcpy(&data, from, hdr->in < command->bytes ? hdr->in : command->bytes);
	return command_run(command, call, &data);
}

static int
data_judge(const struct ucma_call *call, const void *data, size_t bytes)
{
	const size_t count = sizeof(commands) / sizeof(commands[0]);
	struct rdma_ucm_cmd_hdr hdr;

	if (bytes < sizeof(hdr))
		return -EINVAL;
	if (data == NULL)
		return -EFAULT;
	memcpy(&hdr, data, sizeof(hdr));
	if (hdr.cmd >= count || hdr.in + sizeof(hdr) > bytes)
		return ucma_front_refuse(
			EINVAL, call->name,
			"command %u of %u bytes in a write of %zu: expected command 0 to %zu, "
			"whole",
			hdr.cmd, hdr.in, bytes, count - 1);
	if (commands[hdr.cmd].run == NULL)
		return ucma_front_refuse(ENOSYS, call->name, "command %u is not offered", hdr.cmd);
	return 0;
}

ssize_t
ucma_write(int fd, const void *data, size_t bytes)
{
	struct ucma_call call = {"rdma_cm", ucma_file_get(fd), fd, 0};
	struct rdma_ucm_cmd_hdr hdr;
	int err;

	if (call.file == NULL) {
		errno = EBADF;
		return -1;
	}
	/* as the kernel: the descriptor is of the process that has opened the device */
	err = call.file->forks == ucma.forks ? data_judge(&call, data, bytes) : -EACCES;
	if (err == 0) {
		memcpy(&hdr, data, sizeof(hdr));
		err = command_take(&call, &hdr, (const char *)data + sizeof(hdr));
	}
	ucma_file_put(call.file);
	ucma_file_sweep();
	errno = err != 0 ? -err : errno;
	return err == 0 ? (ssize_t)bytes : -1;
}
