/* SPDX-License-Identifier: BSD-3-Clause */

/* Queries of the device, its port and its addresses. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "abi_cmd.h"
#include "abi_release.h"
#include "lib_types.h"

/* Translate the device's capabilities to those of verbs */
static uint64_t
cap_flags(uint32_t caps)
{
	static const struct {
		uint32_t cap;
		uint64_t flags;
	} map[] = {
		{HCA_CAP_RC, SOFTHCA_DEVICE_RC_RNR_NAK_GEN | SOFTHCA_DEVICE_PORT_ACTIVE_EVENT},
		{HCA_CAP_UD, SOFTHCA_DEVICE_UD_AV_PORT_ENFORCE},
		{HCA_CAP_APM, SOFTHCA_DEVICE_AUTO_PATH_MIG},
		{HCA_CAP_XRC, SOFTHCA_DEVICE_XRC},
		{HCA_CAP_MW, SOFTHCA_DEVICE_MEM_WINDOW | SOFTHCA_DEVICE_MEM_WINDOW_TYPE_2B},
		{HCA_CAP_ATOMIC_WRITE, SOFTHCA_DEVICE_ATOMIC_WRITE},
		{HCA_CAP_FLUSH, SOFTHCA_DEVICE_FLUSH_GLOBAL},
	};
	uint64_t flags = 0;

	for (size_t i = 0; i < sizeof(map) / sizeof(map[0]); i++)
		if (caps & map[i].cap)
			flags |= map[i].flags;
	return flags;
}

/* a * b, or the most that fits */
static uint32_t
times(uint32_t a, uint32_t b)
{
	uint64_t product = (uint64_t)a * b;

	return product < UINT32_MAX ? (uint32_t)product : UINT32_MAX;
}

/* Operations that work on foreign memory, as which on-demand regions are accessed. */
static struct softhca_odp_caps
odp_caps(const struct hca_ctl_info *info)
{
	uint32_t sends = SOFTHCA_ODP_SUPPORT_SEND | SOFTHCA_ODP_SUPPORT_WRITE;
	uint32_t receives = SOFTHCA_ODP_SUPPORT_RECV;
	uint32_t srq = info->max_srqs != 0 ? SOFTHCA_ODP_SUPPORT_SRQ_RECV : 0;
	uint32_t reliable = sends | SOFTHCA_ODP_SUPPORT_READ;

	if (info->slow_memory == 0)
		return (struct softhca_odp_caps){0};
	if (info->flags & HCA_CAP_ATOMIC)
		reliable |= SOFTHCA_ODP_SUPPORT_ATOMIC;
	if (info->flags & HCA_CAP_ATOMIC_WRITE)
		reliable |= SOFTHCA_ODP_SUPPORT_ATOMIC_WRITE;
	if (info->flags & HCA_CAP_FLUSH)
		reliable |= SOFTHCA_ODP_SUPPORT_FLUSH;
	return (struct softhca_odp_caps){
		.general_caps = SOFTHCA_ODP_SUPPORT,
		.rc_odp_caps = reliable | receives | srq,
		.uc_odp_caps = sends | receives,
		.ud_odp_caps = SOFTHCA_ODP_SUPPORT_SEND | receives | srq,
		.xrc_odp_caps = info->flags & HCA_CAP_XRC ? reliable | srq : 0,
	};
}

int
softhca_query_device(struct softhca_context *pub, struct softhca_device_attr *attr)
{
	const struct hca_ctl_info *info = &lib_ctx(pub)->info;

	memset(attr, 0, sizeof(*attr));
	snprintf(attr->fw_ver, sizeof(attr->fw_ver), "%u.%u.%u", HCA_FW_MAJOR(info->fw_ver),
		 HCA_FW_MINOR(info->fw_ver), HCA_FW_SUBMINOR(info->fw_ver));
	attr->vendor_id = info->vendor_id;
	attr->vendor_part_id = info->vendor_part_id;
	attr->hw_ver = info->hw_ver;
	attr->node_guid = info->board_id;
	attr->sys_image_guid = info->board_id;
	attr->max_mr_size = UINT64_MAX;
	attr->page_size_cap = UINT64_C(0x7ffff000); /* 4 KiB .. 1 GiB */
	attr->max_qp = info->max_qps;
	attr->max_qp_wr = 1u << info->log_max_wqes;
	attr->max_sge = info->max_sge;
	attr->max_cq = info->max_cqs;
	attr->max_cqe = 1u << info->log_max_cqes;
	attr->max_mr = info->max_mrs;
	attr->max_pd = info->max_pds;
	attr->max_qp_rd_atom = info->max_dest_rd_atomic;
	attr->max_qp_init_rd_atom = info->max_rd_atomic;
	attr->max_res_rd_atom = times(info->max_qps, info->max_dest_rd_atomic);
	attr->max_inline_data = info->max_inline;
	attr->max_pkeys = info->pkey_entries;
	attr->phys_port_cnt = info->num_ports;
	attr->local_ca_ack_delay = info->ack_delay;
	attr->max_srq = info->max_srqs;
	attr->max_srq_wr = attr->max_srq != 0 ? attr->max_qp_wr - 1 : 0;
	attr->max_srq_sge = attr->max_srq != 0 ? info->max_sge : 0;
	attr->max_ah = LIB_MAX_AHS;
	attr->max_mcast_grp = info->max_mcgs;
	attr->max_mcast_qp_attach = info->max_qps_per_mcg;
	attr->max_total_mcast_qp_attach = times(info->max_mcgs, info->max_qps_per_mcg);
	attr->max_mw = info->max_mws;
	attr->max_xrcd = info->max_xrcds;
	attr->atomic_cap = info->flags & HCA_CAP_ATOMIC ? SOFTHCA_ATOMIC_GLOB : SOFTHCA_ATOMIC_NONE;
	attr->device_cap_flags = cap_flags(info->flags);
	attr->odp_caps = odp_caps(info);
	if ((info->flags & HCA_CAP_CQE_CLOCK) != 0) {
		attr->hca_core_clock = HCA_CORE_CLOCK_KHZ;
		attr->completion_timestamp_mask = UINT64_MAX;
	}
	return 0;
}

int
softhca_query_rt_values(struct softhca_context *pub, struct softhca_values *values)
{
	struct lib_context *ctx = lib_ctx(pub);

	if ((values->comp_mask & ~(uint32_t)SOFTHCA_VALUES_MASK_RAW_CLOCK) != 0)
		return lib_fail(-EINVAL, "values %#x: expected 0 or %#x", values->comp_mask,
				SOFTHCA_VALUES_MASK_RAW_CLOCK);
	if ((ctx->info.flags & HCA_CAP_CQE_CLOCK) == 0)
		return lib_fail(
			-EOPNOTSUPP,
			"the device has no clock to read: its daemon is of an older release; "
			"upgrade it");
	if (values->comp_mask == 0)
		return 0;
	return LIB_CALL(ctx, QUERY_CLOCK, NULL, &values->raw_clock);
}

static int
check_port(const struct lib_context *ctx, unsigned int port)
{
	if (port >= 1 && port <= ctx->info.num_ports)
		return 0;
	return lib_fail(-EINVAL, "port %u: expected 1 to %u", port, ctx->info.num_ports);
}

/* Width and speed of a link, as Ethernet devices describe theirs in verbs */
static void
describe_link(struct softhca_port_attr *attr)
{
	static const struct {
		uint32_t mbps;
		uint8_t width, speed;
	} links[] = {
		{2500, SOFTHCA_WIDTH_1X, SOFTHCA_SPEED_SDR},
		{5000, SOFTHCA_WIDTH_1X, SOFTHCA_SPEED_DDR},
		{10000, SOFTHCA_WIDTH_1X, SOFTHCA_SPEED_FDR10},
		{20000, SOFTHCA_WIDTH_4X, SOFTHCA_SPEED_DDR},
		{25000, SOFTHCA_WIDTH_1X, SOFTHCA_SPEED_EDR},
		{40000, SOFTHCA_WIDTH_4X, SOFTHCA_SPEED_FDR10},
		{50000, SOFTHCA_WIDTH_1X, SOFTHCA_SPEED_HDR},
		{56000, SOFTHCA_WIDTH_4X, SOFTHCA_SPEED_FDR},
		{100000, SOFTHCA_WIDTH_4X, SOFTHCA_SPEED_EDR},
		{200000, SOFTHCA_WIDTH_4X, SOFTHCA_SPEED_HDR},
		{400000, SOFTHCA_WIDTH_4X, SOFTHCA_SPEED_NDR},
		{800000, SOFTHCA_WIDTH_8X, SOFTHCA_SPEED_NDR},
	};
	size_t i = 0;

	while (i + 1 < sizeof(links) / sizeof(links[0]) && links[i].mbps < attr->link_speed)
		i++;
	attr->active_width = links[i].width;
	attr->active_speed = links[i].speed;
}

int
softhca_query_port(struct softhca_context *pub, unsigned int port, struct softhca_port_attr *attr)
{
	struct lib_context *ctx = lib_ctx(pub);
	struct hca_ctl_port state;
	int err = check_port(ctx, port);

	if (err == 0)
		err = LIB_CALL(ctx, QUERY_PORT, &port, &state);
	if (err != 0)
		return err;
	memset(attr, 0, sizeof(*attr));
	attr->state = state.state;
	attr->max_mtu = state.max_mtu;
	attr->active_mtu = state.active_mtu;
	attr->phys_state =
		state.state == SOFTHCA_PORT_ACTIVE ? SOFTHCA_PHYS_LINK_UP : SOFTHCA_PHYS_DISABLED;
	attr->link_speed = state.speed;
	describe_link(attr);
	attr->gid_tbl_len = ctx->info.gid_entries;
	attr->pkey_tbl_len = ctx->info.pkey_entries;
	attr->max_msg_sz = HCA_MAX_MSG_SIZE;
	memcpy(attr->mac, state.mac, sizeof(attr->mac));
	return 0;
}

int
softhca_query_gid(struct softhca_context *pub, unsigned int port, unsigned int index,
		  union softhca_gid *gid)
{
	struct lib_context *ctx = lib_ctx(pub);
	struct hca_ctl_gid entry;
	int err = check_port(ctx, port);

	if (err == 0)
		err = LIB_CALL(ctx, QUERY_GID, &index, &entry);
	if (err == 0)
		memcpy(gid->raw, entry.gid, sizeof(gid->raw));
	return err;
}

int
softhca_query_gid_ex(struct softhca_context *pub, unsigned int port, unsigned int index,
		     struct softhca_gid_entry *entry, uint32_t flags)
{
	struct lib_context *ctx = lib_ctx(pub);
	struct hca_ctl_gid gid;
	int err = check_port(ctx, port);

	if (err == 0 && flags != 0)
		err = lib_fail(-EINVAL, "flags %#x: expected 0", flags);
	if (err == 0)
		err = LIB_CALL(ctx, QUERY_GID, &index, &gid);
	if (err != 0)
		return err;
	if (!gid.valid)
		return lib_fail(
			-ENODATA,
			"GID index %u is empty: softhca_query_gid_table() lists those with an "
			"address",
			index);
	*entry = (struct softhca_gid_entry){
		.gid_index = index,
		.port_num = port,
		.gid_type = SOFTHCA_GID_TYPE_ROCE_V2,
		.ndev_ifindex = gid.ifindex,
		.vlan_id = gid.vlan_id,
	};
	memcpy(entry->gid.raw, gid.gid, sizeof(entry->gid.raw));
	memcpy(entry->mac, gid.mac, sizeof(entry->mac));
	return 0;
}

int
softhca_query_release(struct softhca_context *pub, char *release, size_t bytes)
{
	const struct hca_ctl_identity me = {HCA_RELEASE};
	struct hca_ctl_identity other;
	int err = LIB_CALL(lib_ctx(pub), IDENTIFY, &me, &other);

	if (err == 0)
		snprintf(release, bytes, "%.*s", (int)sizeof(other.release), other.release);
	return err;
}

int
softhca_query_pkey(struct softhca_context *pub, unsigned int port, unsigned int index,
		   uint16_t *pkey)
{
	struct lib_context *ctx = lib_ctx(pub);
	int err = check_port(ctx, port);

	return err != 0 ? err : LIB_CALL(ctx, QUERY_PKEY, &index, pkey);
}

int
softhca_get_pkey_index(struct softhca_context *pub, unsigned int port, uint16_t pkey)
{
	uint32_t entries = lib_ctx(pub)->info.pkey_entries;
	uint16_t there;

	for (uint32_t i = 0; i < entries; i++) {
		int err = softhca_query_pkey(pub, port, i, &there);

		if (err != 0)
			return err;
		if (there == pkey)
			return (int)i;
	}
	return lib_fail(-ENOENT, "P_Key %#06x is not in the table of port %u", pkey, port);
}
