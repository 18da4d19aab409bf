/* SPDX-License-Identifier: BSD-3-Clause */

/* Queries of the device, its port, GIDs and P_Keys. */

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "front_kern.h"

#undef ibv_query_port

static int
to_int(uint64_t n)
{
	return n > INT_MAX ? INT_MAX : (int)n;
}

static void
fill_device(struct ibv_device_attr *to, const struct softhca_device_attr *from)
{
	*to = (struct ibv_device_attr){
		.node_guid = htobe64(from->node_guid),
		.sys_image_guid = htobe64(from->sys_image_guid),
		.max_mr_size = from->max_mr_size,
		.page_size_cap = from->page_size_cap,
		.vendor_id = from->vendor_id,
		.vendor_part_id = from->vendor_part_id,
		.hw_ver = from->hw_ver,
		.max_qp = to_int(from->max_qp),
		.max_qp_wr = to_int(from->max_qp_wr),
		.device_cap_flags = (unsigned int)from->device_cap_flags,
		.max_sge = to_int(from->max_sge),
		.max_sge_rd = to_int(from->max_sge),
		.max_cq = to_int(from->max_cq),
		.max_cqe = to_int(from->max_cqe),
		.max_mr = to_int(from->max_mr),
		.max_pd = to_int(from->max_pd),
		.max_qp_rd_atom = to_int(from->max_qp_rd_atom),
		.max_res_rd_atom = to_int(from->max_res_rd_atom),
		.max_qp_init_rd_atom = to_int(from->max_qp_init_rd_atom),
		.atomic_cap = (enum ibv_atomic_cap)from->atomic_cap,
		.max_mw = to_int(from->max_mw),
		.max_mcast_grp = to_int(from->max_mcast_grp),
		.max_mcast_qp_attach = to_int(from->max_mcast_qp_attach),
		.max_total_mcast_qp_attach = to_int(from->max_total_mcast_qp_attach),
		.max_ah = to_int(from->max_ah),
		.max_srq = to_int(from->max_srq),
		.max_srq_wr = to_int(from->max_srq_wr),
		.max_srq_sge = to_int(from->max_srq_sge),
		.max_pkeys = (uint16_t)from->max_pkeys,
		.local_ca_ack_delay = (uint8_t)from->local_ca_ack_delay,
		.phys_port_cnt = (uint8_t)from->phys_port_cnt,
	};
	memcpy(to->fw_ver, from->fw_ver, sizeof(to->fw_ver));
}

int
ibv_query_device(struct ibv_context *context, struct ibv_device_attr *device_attr)
{
	FRONT_FAULT(errno);
	struct softhca_device_attr attr;
	int err = FRONT_RESULT(softhca_query_device(front_hca(context), &attr));

	if (err == 0) {
		fill_device(device_attr, &attr);
		front_like_device(front_ctx(context), device_attr);
	}
	return err;
}

/* Fields not set here are of features that are not offered, and 0. */
int
front_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		      struct ibv_device_attr_ex *attr, size_t attr_size)
{
	FRONT_FAULT(errno);
	struct ibv_device_attr_ex all = {0};
	struct softhca_device_attr from;
	int err;

	if (input != NULL && input->comp_mask != 0)
		return FRONT_REFUSE(EINVAL, "comp_mask %#x of the input", input->comp_mask);
	if (attr_size < offsetof(struct ibv_device_attr_ex, comp_mask) + sizeof(all.comp_mask))
		return FRONT_REFUSE(EINVAL, "room for %zu bytes of attributes", attr_size);
	err = FRONT_RESULT(softhca_query_device(front_hca(context), &from));
	if (err != 0)
		return err;
	fill_device(&all.orig_attr, &from);
	front_like_device(front_ctx(context), &all.orig_attr);
	all.completion_timestamp_mask = from.completion_timestamp_mask;
	all.hca_core_clock = from.hca_core_clock;
	all.device_cap_flags_ex = from.device_cap_flags;
	all.odp_caps = (struct ibv_odp_caps){
		.general_caps = from.odp_caps.general_caps,
		.per_transport_caps = {from.odp_caps.rc_odp_caps, from.odp_caps.uc_odp_caps,
				       from.odp_caps.ud_odp_caps},
	};
	all.packet_pacing_caps = (struct ibv_packet_pacing_caps){
		.qp_rate_limit_min = SOFTHCA_RATE_LIMIT_LEAST,
		.qp_rate_limit_max = SOFTHCA_RATE_LIMIT_MOST,
		.supported_qpts = 1u << IBV_QPT_RC | 1u << IBV_QPT_UC | 1u << IBV_QPT_XRC_SEND,
	};
	all.xrc_odp_caps = from.odp_caps.xrc_odp_caps;
	all.cq_mod_caps.max_cq_count = UINT16_MAX;
	all.cq_mod_caps.max_cq_period = UINT16_MAX;
	all.phys_port_cnt_ex = from.phys_port_cnt;
	memset(attr, 0, attr_size);
	memcpy(attr, &all, attr_size < sizeof(all) ? attr_size : sizeof(all));
	return 0;
}

/* The clock is a number of ticks, as other devices give it in tv_nsec. */
int
front_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	struct softhca_values answer = {.comp_mask = values->comp_mask};
	int err;

	if ((values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK) != 0)
		return FRONT_REFUSE(EINVAL, "comp_mask %#x", values->comp_mask);
	err = FRONT_RESULT(softhca_query_rt_values(front_hca(context), &answer));
	if (err != 0)
		return err;
	values->comp_mask = answer.comp_mask;
	values->raw_clock = (struct timespec){.tv_nsec = (long)answer.raw_clock};
	return 0;
}

/* ---- port ---- */

static int
query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *to)
{
	struct softhca_port_attr from;
	int err = softhca_query_port(front_hca(context), port_num, &from);

	if (err != 0)
		return err;
	*to = (struct ibv_port_attr){
		.state = (enum ibv_port_state)from.state,
		.max_mtu = (enum ibv_mtu)from.max_mtu,
		.active_mtu = (enum ibv_mtu)from.active_mtu,
		.gid_tbl_len = to_int(from.gid_tbl_len),
		.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS,
		.max_msg_sz = from.max_msg_sz,
		.pkey_tbl_len = (uint16_t)from.pkey_tbl_len,
		.max_vl_num = 1,
		.active_width = from.active_width,
		.active_speed = from.active_speed,
		.phys_state = (uint8_t)from.phys_state,
		.link_layer = IBV_LINK_LAYER_ETHERNET,
		.flags = IBV_QPF_GRH_REQUIRED,
	};
	return 0;
}

int
front_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
		 size_t attr_size)
{
	FRONT_FAULT(errno);
	struct ibv_port_attr all;
	int err = FRONT_RESULT(query_port(context, port_num, &all));

	if (err != 0)
		return err;
	memset(attr, 0, attr_size);
	memcpy(attr, &all, attr_size < sizeof(all) ? attr_size : sizeof(all));
	return 0;
}

/* Its callers use the structure without port_cap_flags2. */
int
ibv_query_port(struct ibv_context *context, uint8_t port_num, struct _compat_ibv_port_attr *attr)
{
	return front_query_port(context, port_num, (struct ibv_port_attr *)attr,
				offsetof(struct ibv_port_attr, port_cap_flags2));
}

/* ---- GIDs ---- */

int
ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid)
{
	FRONT_FAULT(-1);
	int err;

	if (index < 0) {
		FRONT_REFUSE(EINVAL, "GID index %d", index);
		return -1;
	}
	err = FRONT_RESULT(softhca_query_gid(front_hca(context), port_num, (unsigned int)index,
					     (union softhca_gid *)gid));
	return err != 0 ? -1 : 0;
}

static int
query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t index,
	     struct ibv_gid_entry *entry)
{
	struct softhca_gid_entry from;
	int err = softhca_query_gid_ex(front_hca(context), port_num, index, &from, 0);

	if (err != 0)
		return err;
	memset(entry, 0, sizeof(*entry));
	memcpy(entry->gid.raw, from.gid.raw, sizeof(entry->gid.raw));
	entry->gid_index = from.gid_index;
	entry->port_num = from.port_num;
	entry->gid_type = from.gid_type;
	entry->ndev_ifindex = from.ndev_ifindex;
	return 0;
}

int
_ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
		  struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	struct ibv_gid_entry all;
	int err;

	if (flags != 0)
		return FRONT_REFUSE(EOPNOTSUPP, "flags %#x", flags);
	err = FRONT_RESULT(query_gid_ex(context, port_num, gid_index, &all));
	if (err != 0)
		return err;
	memset(entry, 0, entry_size);
	memcpy(entry, &all, entry_size < sizeof(all) ? entry_size : sizeof(all));
	return 0;
}

/* Entries of one port, from *n on; the caller's have their own size. */
static int
add_gids(struct ibv_context *context, uint32_t port, char *entries, size_t max, size_t entry_size,
	 size_t *n)
{
	struct softhca_port_attr attr;
	int err = softhca_query_port(front_hca(context), port, &attr);

	for (uint32_t i = 0; err == 0 && i < attr.gid_tbl_len; i++) {
		struct ibv_gid_entry entry;
		char *to = entries + *n * entry_size;

		err = query_gid_ex(context, port, i, &entry);
		if (err == -ENODATA) {
			err = 0;
			continue;
		}
		if (err == 0 && *n == max)
			return -EINVAL;
		if (err != 0)
			break;
		memset(to, 0, entry_size);
		memcpy(to, &entry, entry_size < sizeof(entry) ? entry_size : sizeof(entry));
		++*n;
	}
	return err;
}

ssize_t
_ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max_entries,
		     uint32_t flags, size_t entry_size)
{
	struct softhca_device_attr device;
	size_t n = 0;
	int err;

	if (flags != 0)
		return -FRONT_REFUSE(EOPNOTSUPP, "flags %#x", flags);
	if (max_entries == 0)
		return -FRONT_REFUSE(EINVAL, "no room for entries");
	err = softhca_query_device(front_hca(context), &device);
	for (uint32_t port = 1; err == 0 && port <= device.phys_port_cnt; port++)
		err = add_gids(context, port, (char *)entries, max_entries, entry_size, &n);
	return err != 0 ? -FRONT_RESULT(err) : (ssize_t)n;
}

/* An empty entry reads as RoCE v1, as it always did. */
int
ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
		   enum ibv_gid_type_sysfs *type)
{
	struct ibv_gid_entry entry = {.gid_type = IBV_GID_TYPE_ROCE_V1};
	int err = query_gid_ex(context, port_num, index, &entry);

	if (err != 0 && err != -ENODATA) {
		FRONT_RESULT(err);
		return -1;
	}
	*type = entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? IBV_GID_TYPE_SYSFS_ROCE_V2
						       : IBV_GID_TYPE_SYSFS_IB_ROCE_V1;
	return 0;
}

/* ---- P_Keys ---- */

int
ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
	uint16_t value;

	if (index < 0) {
		FRONT_REFUSE(EINVAL, "P_Key index %d", index);
		return -1;
	}
	if (FRONT_RESULT(softhca_query_pkey(front_hca(context), port_num, (unsigned int)index,
					    &value)) != 0)
		return -1;
	*pkey = htons(value);
	return 0;
}

int
ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey)
{
	int index = softhca_get_pkey_index(front_hca(context), port_num, ntohs(pkey));

	if (index >= 0)
		return index;
	FRONT_RESULT(index);
	return -1;
}
