/* SPDX-License-Identifier: BSD-3-Clause */

/* Connecting, answering, ending; options; memberships. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi_roce.h"
#include "ucma.h"

/* Reasons of a REJ that a program may give (IBTA table 12.6.7.2) */
#define REASON_CONSUMER 28
#define REASON_VENDOR_OPTION 35

/* As the kernel: values above the field of three bits become its maximum. */
static uint8_t
retries(uint8_t count)
{
	return count > HCA_RETRY_MAX ? HCA_RETRY_MAX : count;
}

static struct softhca_cm_param
param_from(const struct rdma_ucm_conn_param *from, const struct rdma_ucm_ece *ece)
{
	return (struct softhca_cm_param){
		.private_data = from->private_data,
		.private_data_len = from->private_data_len,
		.responder_resources = from->responder_resources,
		.initiator_depth = from->initiator_depth,
		.flow_control = from->flow_control,
		.retry_count = retries(from->retry_count),
		.rnr_retry_count = retries(from->rnr_retry_count),
		.srq = from->srq,
		.qp_num = from->qp_num,
		.ece_vendor = ece->vendor_id,
		.ece_options = ece->attr_mod,
	};
}

int
ucma_connect(const struct ucma_call *call, const void *data)
{
	const struct rdma_ucm_connect *cmd = data;
	struct softhca_cm_param param = param_from(&cmd->conn_param, &cmd->ece);
	struct ucma_id *id;
	int err;

	if (cmd->conn_param.valid == 0)
		return ucma_front_refuse(
			EINVAL, call->name,
			"no parameters: rdma_connect() of id %u needs its conn_param", cmd->id);
	id = ucma_id_at_hca(call, cmd->id, &err);
	if (id == NULL)
		return err;
	return ucma_front_result(softhca_cm_connect(id->ends[0].id, &param), call->name);
}

/* Without parameters: the QP of the program is ready after CONNECT_RESPONSE. */
int
ucma_accept(const struct ucma_call *call, const void *data)
{
	const struct rdma_ucm_accept *cmd = data;
	struct softhca_cm_param param = param_from(&cmd->conn_param, &cmd->ece);
	struct ucma_id *id;
	int err;

	id = ucma_id_at_hca(call, cmd->id, &err);
	if (id == NULL)
		return err;
	if (cmd->conn_param.valid == 0)
		return ucma_front_result(softhca_cm_establish(id->ends[0].id), call->name);
	err = softhca_cm_accept(id->ends[0].id, &param);
	if (err == 0)
		id->uid = cmd->uid;
	return ucma_front_result(err, call->name);
}

int
ucma_reject(const struct ucma_call *call, const void *data)
{
	const struct rdma_ucm_reject *cmd = data;
	uint8_t reason = cmd->reason != 0 ? cmd->reason : REASON_CONSUMER;
	struct ucma_id *id;
	int err;

	if (reason != REASON_CONSUMER && reason != REASON_VENDOR_OPTION)
		return ucma_front_refuse(EINVAL, call->name, "reason %u: expected %u or %u", reason,
					 REASON_CONSUMER, REASON_VENDOR_OPTION);
	id = ucma_id_at_hca(call, cmd->id, &err);
	if (id == NULL)
		return err;
	return ucma_front_result(softhca_cm_reject(id->ends[0].id, reason, cmd->private_data,
						   cmd->private_data_len),
				 call->name);
}

int
ucma_disconnect(const struct ucma_call *call, const void *data)
{
	const struct rdma_ucm_disconnect *cmd = data;
	struct ucma_id *id;
	int err;

	id = ucma_id_at_hca(call, cmd->id, &err);
	if (id == NULL)
		return err;
	return ucma_front_result(softhca_cm_disconnect(id->ends[0].id), call->name);
}

int
ucma_notify(const struct ucma_call *call, const void *data)
{
	const struct rdma_ucm_notify *cmd = data;
	struct ucma_id *id;
	int err;

	id = ucma_id_at_hca(call, cmd->id, &err);
	if (id == NULL)
		return err;
	return ucma_front_result(softhca_cm_notify(id->ends[0].id, cmd->event), call->name);
}

/* ---- options ---- */

/* The option and its value */
static int
option_read(const struct ucma_call *call, const struct rdma_ucm_set_option *cmd, uint32_t *option,
	    uint32_t *value)
{
	static const struct {
		uint32_t size, option;
	} options[] = {
		[RDMA_OPTION_ID_TOS] = {1, SOFTHCA_CM_OPTION_TOS},
		[RDMA_OPTION_ID_REUSEADDR] = {4, SOFTHCA_CM_OPTION_REUSEADDR},
		[RDMA_OPTION_ID_AFONLY] = {4, SOFTHCA_CM_OPTION_AFONLY},
		[RDMA_OPTION_ID_ACK_TIMEOUT] = {1, SOFTHCA_CM_OPTION_ACK_TIMEOUT},
	};
	const void *from = (const void *)(uintptr_t)cmd->optval;

	if (cmd->optname >= sizeof(options) / sizeof(options[0]))
		return ucma_front_refuse(ENOSYS, call->name,
					 "option %u of RDMA_OPTION_ID: expected 0 to %u",
					 cmd->optname, RDMA_OPTION_ID_ACK_TIMEOUT);
	if (cmd->optlen != options[cmd->optname].size)
		return ucma_front_refuse(EINVAL, call->name, "option %u with %u bytes: it has %u",
					 cmd->optname, cmd->optlen, options[cmd->optname].size);
	if (from == NULL)
		return -EFAULT;
	*option = options[cmd->optname].option;
	if (cmd->optlen == 1)
		*value = *(const uint8_t *)from;
	else
		*value = *(const uint32_t *)from != 0;
	return 0;
}

static int
option_set(const struct ucma_call *call, struct ucma_id *id, const struct rdma_ucm_set_option *cmd)
{
	uint32_t option = 0, value = 0;
	int err = option_read(call, cmd, &option, &value);

	for (uint32_t i = 0; i < id->num_ends && err == 0; i++)
		err = ucma_front_result(softhca_cm_set_option(id->ends[i].id,
							      (enum softhca_cm_option)option,
							      value),
					call->name);
	if (err != 0)
		return err;
	id->options.set[option] = true;
	id->options.value[option] = value;
	return 0;
}

/* A path of the program's: there is one only, and the outcome is that of RESOLVE_ROUTE. */
static int
option_set_path(const struct ucma_call *call, struct ucma_id *id,
		const struct rdma_ucm_set_option *cmd)
{
	const struct ib_path_rec_data *path = (const void *)(uintptr_t)cmd->optval;
	uint32_t n = cmd->optlen / sizeof(*path);

	if (cmd->optname != RDMA_OPTION_IB_PATH)
		return ucma_front_refuse(
			ENOSYS, call->name,
			"option %u of RDMA_OPTION_IB: expected RDMA_OPTION_IB_PATH (%u)",
			cmd->optname, RDMA_OPTION_IB_PATH);
	if (n == 0 || cmd->optlen % sizeof(*path) != 0)
		return ucma_front_refuse(EINVAL, call->name, "paths of %u bytes: each has %zu",
					 cmd->optlen, sizeof(*path));
	if (path == NULL)
		return -EFAULT;
	while (n != 0 && path->flags != (IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL)) {
		n--;
		path++;
	}
	if (n == 0 || id->num_ends == 0)
		return -EINVAL;
	return ucma_front_result(softhca_cm_resolve_route(id->ends[0].id, 0), call->name);
}

int
ucma_set_option(const struct ucma_call *call, const void *data)
{
	const struct rdma_ucm_set_option *cmd = data;
	struct ucma_id *id;
	int err;

	id = ucma_id_get(call, cmd->id, &err);
	if (id == NULL)
		return err;
	switch (cmd->level) {
	case RDMA_OPTION_ID:
		return option_set(call, id, cmd);
	case RDMA_OPTION_IB:
		return option_set_path(call, id, cmd);
	default:
		return ucma_front_refuse(
			ENOSYS, call->name,
			"option level %u: expected RDMA_OPTION_ID (%u) or RDMA_OPTION_IB (%u)",
			cmd->level, RDMA_OPTION_ID, RDMA_OPTION_IB);
	}
}

/* ---- memberships ---- */

static void
group_number_free(struct ucma_group *group)
{
	pthread_mutex_lock(&ucma.lock);
	ucma_table_set(&ucma.groups, group->number, NULL);
	pthread_mutex_unlock(&ucma.lock);
	free(group);
}

static struct ucma_group *
group_new(struct ucma_id *id, uint64_t uid)
{
	struct ucma_group *group = calloc(1, sizeof(*group));
	int number;

	if (group == NULL)
		return NULL;
	group->id = id;
	group->uid = uid;
	pthread_mutex_lock(&ucma.lock);
	number = ucma_table_add(&ucma.groups, group);
	pthread_mutex_unlock(&ucma.lock);
	group->number = (uint32_t)number;
	if (number >= 0)
		return group;
	free(group);
	return NULL;
}

static void
group_unlink(struct ucma_group *group)
{
	struct ucma_group **link = &group->id->groups;

	while (*link != group)
		link = &(*link)->next;
	*link = group->next;
}

/* Those of an id end with it. */
void
ucma_groups_free(struct ucma_id *id)
{
	struct ucma_group *group;

	while ((group = id->groups) != NULL) {
		id->groups = group->next;
		group_number_free(group);
	}
}

static int
group_join(const struct ucma_call *call, struct ucma_id *id, const struct rdma_ucm_join_mcast *cmd)
{
	struct ucma_group *group = group_new(id, cmd->uid);
	struct rdma_ucm_create_id_resp resp;
	struct sockaddr_storage addr = {0};
	int err;

	if (group == NULL)
		return -ENOMEM;
	memcpy(&addr, &cmd->addr, cmd->addr_size);
	err = ucma_front_result(
		softhca_cm_join(id->ends[0].id, (const struct sockaddr *)&addr,
				cmd->join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER
					? SOFTHCA_CM_SEND_ONLY
					: 0,
				&group->membership),
		call->name);
	resp.id = group->number;
	if (err == 0) {
		err = ucma_answer(call, cmd->response, &resp, sizeof(resp));
		if (err != 0)
			softhca_cm_leave(id->ends[0].id, group->membership);
	}
	if (err != 0) {
		group_number_free(group);
		return err;
	}
	group->next = id->groups;
	id->groups = group;
	return 0;
}

static int
join_judge(const struct ucma_call *call, const struct rdma_ucm_join_mcast *cmd)
{
	struct sockaddr_storage addr;
	int err;

	if (call->out < sizeof(struct rdma_ucm_create_id_resp))
		return -ENOSPC;
	memcpy(&addr, &cmd->addr, sizeof(addr));
	err = ucma_addr_judge(call, &addr, cmd->addr_size);
	if (err != 0)
		return err;
	if (cmd->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return ucma_front_refuse(EINVAL, call->name, "join flags %u: expected less than %u",
					 cmd->join_flags, RDMA_MC_JOIN_FLAG_RESERVED);
	return 0;
}

int
ucma_join_mcast(const struct ucma_call *call, const void *data)
{
	const struct rdma_ucm_join_mcast *cmd = data;
	int err = join_judge(call, cmd);
	struct ucma_id *id;

	if (err != 0)
		return err;
	id = ucma_id_at_hca(call, cmd->id, &err);
	if (id == NULL)
		return err;
	if (id->num_ends != 1)
		return ucma_front_refuse(
			EINVAL, call->name,
			"id %u is bound to a wildcard and has no device: bind it to an address, or "
			"resolve one",
			cmd->id);
	return group_join(call, id, cmd);
}

int
ucma_join_ip_mcast(const struct ucma_call *call, const void *data)
{
	const struct rdma_ucm_join_ip_mcast *cmd = data;
	struct rdma_ucm_join_mcast join = {
		.response = cmd->response,
		.uid = cmd->uid,
		.id = cmd->id,
		.addr_size = cmd->addr.sin6_family == AF_INET ? sizeof(struct sockaddr_in)
							      : sizeof(struct sockaddr_in6),
		.join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER,
	};

	memcpy(&join.addr, &cmd->addr, sizeof(cmd->addr));
	return ucma_join_mcast(call, &join);
}

static struct ucma_group *
group_get(const struct ucma_call *call, uint32_t number, int *err)
{
	struct ucma_group *group;

	pthread_mutex_lock(&ucma.lock);
	group = ucma_table_get(&ucma.groups, number);
	*err = group == NULL ? -ENOENT : group->id->file != call->file ? -EINVAL : 0;
	pthread_mutex_unlock(&ucma.lock);
	return *err == 0 ? group : NULL;
}

int
ucma_leave_mcast(const struct ucma_call *call, const void *data)
{
	const struct rdma_ucm_destroy_id *cmd = data;
	struct rdma_ucm_destroy_id_resp resp;
	struct ucma_group *group;
	int err;

	if (call->out < sizeof(resp))
		return -ENOSPC;
	group = group_get(call, cmd->id, &err);
	if (group == NULL)
		return err;
	ucma_front_result(softhca_cm_leave(group->id->ends[0].id, group->membership), call->name);
	resp.events_reported = group->events;
	group_unlink(group);
	group_number_free(group);
	return ucma_answer(call, cmd->response, &resp, sizeof(resp));
}
