/* SPDX-License-Identifier: BSD-3-Clause */

/* Queries of an id: addresses, path, attributes of its QP. */

#include <endian.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "abi_roce.h"
#include "front_qp_members.h"
#include "ucma.h"

/* Values of a path on Ethernet, which no subnet administration has given */
#define PATH_EXACTLY 2	    /* selector */
#define PATH_RATE_40_GBPS 7 /* enum ibv_rate */
#define PATH_LIFE_TIME 18   /* 4.096 us * 2^18 */

/*
 * Zeros of an id without an address; the device is not known (sgid_index < 0) before it has one.
 * librdmacm asks three times for one event: the daemon is asked once.
 */
static int
id_ask(const struct ucma_call *call, struct ucma_id *id, const struct softhca_cm_info **info)
{
	static const struct softhca_cm_info none = {.sgid_index = -1};
	int err = 0;

	*info = id->num_ends == 0 ? &none : &id->info;
	if (id->num_ends != 0 && !id->informed)
		err = ucma_front_result(softhca_cm_query(id->ends[0].id, &id->info), call->name);
	id->informed = id->num_ends != 0 && err == 0;
	return err;
}

/* QUERY_ROUTE has room for IP addresses only, as in Linux. */
static void
ip_addr(const struct sockaddr_storage *from, struct sockaddr_in6 *to)
{
	if (from->ss_family == AF_INET || from->ss_family == AF_INET6)
		memcpy(to, from, ucma_addr_size(from));
}

/* ---- QUERY_ROUTE ---- */

static void
route_path(const struct ucma_id *id, const struct softhca_cm_info *info,
	   struct ib_user_path_rec *path)
{
	memcpy(path->dgid, info->dgid.raw, sizeof(path->dgid));
	memcpy(path->sgid, info->sgid.raw, sizeof(path->sgid));
	path->pkey = htobe16(info->pkey);
	if (!id->routed)
		return;
	path->reversible = 1;
	path->mtu = info->path_mtu;
	path->hop_limit = HCA_HOP_LIMIT;
	path->traffic_class = (uint8_t)id->options.value[SOFTHCA_CM_OPTION_TOS];
	path->sl = path->traffic_class >> 5;
	path->numb_path = 1;
	path->mtu_selector = path->rate_selector = PATH_EXACTLY;
	path->packet_life_time_selector = PATH_EXACTLY;
	path->rate = PATH_RATE_40_GBPS;
	path->packet_life_time = PATH_LIFE_TIME;
}

static void
route_device(const struct ucma_id *id, const struct softhca_cm_info *info,
	     struct rdma_ucm_query_route_resp *resp)
{
	const struct ucma_hca *hca = id->ends[0].source->hca;

	resp->node_guid = hca->guid;
	resp->ibdev_index = hca->index;
	resp->port_num = info->port_num;
	resp->num_paths = id->routed ? 1 : 0;
	route_path(id, info, &resp->ib_route[0]);
}

int
ucma_query_route(const struct ucma_call *call, const void *data)
{
	const struct rdma_ucm_query *cmd = data;
	struct rdma_ucm_query_route_resp resp = {0};
	const struct softhca_cm_info *info;
	struct ucma_id *id;
	int err;

	if (call->out < offsetof(struct rdma_ucm_query_route_resp, ibdev_index))
		return -ENOSPC;
	id = ucma_id_look(call, cmd->id, &err);
	if (id == NULL)
		return err;
	err = id_ask(call, id, &info);
	if (err != 0)
		return err;
	ip_addr(&info->src, &resp.src_addr);
	ip_addr(&info->dst, &resp.dst_addr);
	if (info->sgid_index >= 0)
		route_device(id, info, &resp);
	return ucma_answer(call, cmd->response, &resp, sizeof(resp));
}

/* ---- QUERY ---- */

static void
query_device(const struct ucma_id *id, const struct softhca_cm_info *info,
	     struct rdma_ucm_query_addr_resp *resp)
{
	if (info->sgid_index < 0)
		return;
	resp->node_guid = id->ends[0].source->hca->guid;
	resp->ibdev_index = id->ends[0].source->hca->index;
	resp->port_num = info->port_num;
	resp->pkey = htobe16(info->pkey);
}

static int
query_addr(const struct ucma_call *call, struct ucma_id *id, uint64_t response)
{
	struct rdma_ucm_query_addr_resp resp = {0};
	const struct softhca_cm_info *info;
	int err;

	if (call->out < offsetof(struct rdma_ucm_query_addr_resp, ibdev_index))
		return -ENOSPC;
	err = id_ask(call, id, &info);
	if (err != 0)
		return err;
	resp.src_size = (uint16_t)ucma_addr_size(&info->src);
	resp.dst_size = (uint16_t)ucma_addr_size(&info->dst);
	memcpy(&resp.src_addr, &info->src, resp.src_size);
	memcpy(&resp.dst_addr, &info->dst, resp.dst_size);
	query_device(id, info, &resp);
	return ucma_answer(call, response, &resp, sizeof(resp));
}

/* The service ID that an IP address and the port space of an id stand for, but of no address */
static uint64_t
ip_service(const struct ucma_id *id, const struct sockaddr_storage *addr)
{
	return addr->ss_family == 0 ? 0 : (uint64_t)id->space << 16 | ucma_addr_port(addr);
}

/* An address as one of family AF_IB */
static void
gid_addr(const struct ucma_id *id, const struct softhca_cm_info *info,
	 const struct sockaddr_storage *from, const union softhca_gid *gid, void *to)
{
	struct softhca_sockaddr_ib addr = {
		.sib_family = AF_IB,
		.sib_pkey = htobe16(info->pkey),
		.sib_sid = htobe64(ip_service(id, from)),
	};

	if (from->ss_family == AF_IB) {
		memcpy(to, from, sizeof(addr));
		return;
	}
	memcpy(addr.sib_addr, gid->raw, sizeof(addr.sib_addr));
	memcpy(to, &addr, sizeof(addr));
}

static int
query_gid(const struct ucma_call *call, struct ucma_id *id, uint64_t response)
{
	struct rdma_ucm_query_addr_resp resp = {0};
	const struct softhca_cm_info *info;
	int err;

	if (call->out < offsetof(struct rdma_ucm_query_addr_resp, ibdev_index))
		return -ENOSPC;
	err = id_ask(call, id, &info);
	if (err != 0)
		return err;
	query_device(id, info, &resp);
	resp.src_size = resp.dst_size = sizeof(struct softhca_sockaddr_ib);
	gid_addr(id, info, &info->src, &info->sgid, &resp.src_addr);
	gid_addr(id, info, &info->dst, &info->dgid, &resp.dst_addr);
	return ucma_answer(call, response, &resp, sizeof(resp));
}

/* A PathRecord as on the wire (IBTA table 15.2.5.16) */
struct ucma_path {
	__be64 service_id;
	uint8_t dgid[16], sgid[16];
	__be16 dlid, slid;
	__be32 flow_label_hop_limit;
	uint8_t traffic_class;
	uint8_t reversible_numb_path;
	__be16 pkey;
	__be16 qos_class_sl;
	uint8_t mtu, rate, life_time; /* selector in the two highest bits */
	uint8_t preference;
	uint8_t reserved[6];
};

#define PATH_SELECT(value) ((uint8_t)(PATH_EXACTLY << 6 | (value)))

static void
path_fill(const struct ucma_id *id, const struct softhca_cm_info *info,
	  struct ib_path_rec_data *data)
{
	uint8_t tos = (uint8_t)id->options.value[SOFTHCA_CM_OPTION_TOS];
	struct ucma_path path = {
		.service_id = htobe64(info->service_id),
		.flow_label_hop_limit = htobe32(HCA_HOP_LIMIT),
		.traffic_class = tos,
		.reversible_numb_path = 0x81,
		.pkey = htobe16(info->pkey),
		.qos_class_sl = htobe16(tos >> 5),
		.mtu = PATH_SELECT(info->path_mtu),
		.rate = PATH_SELECT(PATH_RATE_40_GBPS),
		.life_time = PATH_SELECT(PATH_LIFE_TIME),
	};

	memcpy(path.dgid, info->dgid.raw, sizeof(path.dgid));
	memcpy(path.sgid, info->sgid.raw, sizeof(path.sgid));
	data->flags = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;
	memcpy(data->path_rec, &path, sizeof(path));
}

static int
query_path(const struct ucma_call *call, struct ucma_id *id, uint64_t response)
{
	struct {
		struct rdma_ucm_query_path_resp head;
		struct ib_path_rec_data path;
	} resp = {0};
	const struct softhca_cm_info *info;
	size_t bytes = sizeof(resp.head);
	int err;

	if (call->out < bytes)
		return -ENOSPC;
	err = id_ask(call, id, &info);
	if (err != 0)
		return err;
	if (id->routed) {
		resp.head.num_paths = 1;
		path_fill(id, info, &resp.path);
		bytes = call->out >= sizeof(resp) ? sizeof(resp) : bytes;
	}
	return ucma_answer(call, response, &resp, bytes);
}

int
ucma_query(const struct ucma_call *call, const void *data)
{
	const struct rdma_ucm_query *cmd = data;
	struct ucma_id *id;
	int err;

	id = ucma_id_look(call, cmd->id, &err);
	if (id == NULL)
		return err;
	switch (cmd->option) {
	case RDMA_USER_CM_QUERY_ADDR:
		return query_addr(call, id, cmd->response);
	case RDMA_USER_CM_QUERY_PATH:
		return query_path(call, id, cmd->response);
	case RDMA_USER_CM_QUERY_GID:
		return query_gid(call, id, cmd->response);
	default:
		return ucma_front_refuse(ENOSYS, call->name, "query option %u: expected 0 to %u",
					 cmd->option, RDMA_USER_CM_QUERY_GID);
	}
}

/* ---- INIT_QP_ATTR ---- */

void
ucma_ah_to_kern(const struct softhca_ah_attr *from, struct ib_uverbs_ah_attr *to)
{
	*to = (struct ib_uverbs_ah_attr){
		.grh =
			{
				.flow_label = from->flow_label,
				.sgid_index = from->sgid_index,
				.hop_limit = from->hop_limit,
				.traffic_class = from->traffic_class,
			},
		.sl = from->sl,
		.static_rate = from->static_rate,
		.is_global = from->is_global,
		.port_num = from->port_num,
	};
	memcpy(to->grh.dgid, from->dgid.raw, sizeof(to->grh.dgid));
}

static void
attr_to_kern(const struct softhca_qp_attr *from, uint32_t mask, struct ib_uverbs_qp_attr *to)
{
	memset(to, 0, sizeof(*to));
	to->qp_attr_mask = mask;
	FRONT_COPY_KERNEL
	ucma_ah_to_kern(&from->ah_attr, &to->ah_attr);
	ucma_ah_to_kern(&from->alt_ah_attr, &to->alt_ah_attr);
}

int
ucma_init_qp_attr(const struct ucma_call *call, const void *data)
{
	const struct rdma_ucm_init_qp_attr *cmd = data;
	struct ib_uverbs_qp_attr resp;
	struct softhca_qp_attr attr = {0};
	uint32_t mask = 0;
	struct ucma_id *id;
	int err;

	if (call->out < sizeof(resp))
		return -ENOSPC;
	if (cmd->qp_state > SOFTHCA_QPS_ERR)
		return ucma_front_refuse(EINVAL, call->name, "QP state %u: expected 0 to %u",
					 cmd->qp_state, SOFTHCA_QPS_ERR);
	id = ucma_id_at_hca(call, cmd->id, &err);
	if (id == NULL)
		return err;
	err = softhca_cm_init_qp_attr(id->ends[0].id, cmd->qp_state, &attr, &mask);
	if (err != 0)
		return ucma_front_result(err, call->name);
	attr_to_kern(&attr, mask, &resp);
	return ucma_answer(call, cmd->response, &resp, sizeof(resp));
}
