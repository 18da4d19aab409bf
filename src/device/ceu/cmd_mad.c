/* SPDX-License-Identifier: BSD-3-Clause */

/* MAD_IFC: Get of node, port, P_Key and GID information, as a subnet management agent answers. */

#include <stdio.h>
#include <string.h>

#include "ceu/ceu.h"
#include "ctxmgt/ctxmgt.h"

#define PORT_STATE_ACTIVE 4u
#define PORT_STATE_DOWN 1u
#define PHYS_LINK_UP 5u
#define PHYS_DISABLED 3u
#define NODE_CA 1u

static hca_be64
node_guid(const struct hca_core *h)
{
	const uint8_t *m = h->cfg.mac;
	const uint8_t guid[8] = {m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]};
	hca_be64 v;

	memcpy(&v, guid, sizeof(v));
	return v;
}

static bool
get_node_desc(struct hca_core *h, uint32_t mod, uint8_t *data)
{
	snprintf((char *)data, 64, "softhca %s", h->cfg.name != NULL ? h->cfg.name : "");
	return true;
}

static bool
get_node_info(struct hca_core *h, uint32_t mod, uint8_t *data)
{
	struct hca_mad_node_info *n = (void *)data;

	n->base_version = HCA_MAD_BASE_VERSION;
	n->class_version = 1;
	n->node_type = NODE_CA;
	n->num_ports = 1;
	n->sys_image_guid = node_guid(h);
	n->node_guid = node_guid(h);
	n->port_guid = node_guid(h);
	n->partition_cap = hca_cpu_to_be16(HCA_PKEY_ENTRIES);
	n->device_id = hca_cpu_to_be16((uint16_t)h->cfg.vendor_part_id);
	n->revision = hca_cpu_to_be32(h->cfg.hw_ver);
	n->port_vendor = hca_cpu_to_be32(HCA_FIELD(31, 24, 1) | h->cfg.vendor_id);
	return true;
}

static uint8_t
mtu_code(uint32_t bytes)
{
	uint8_t code = HCA_MTU_256;

	while (code < HCA_MTU_4096 && HCA_MTU_BYTES(code + 1) <= bytes)
		code++;
	return code;
}

static bool
get_port_info(struct hca_core *h, uint32_t mod, uint8_t *data)
{
	struct hca_mad_port_info *p = (void *)data;
	uint8_t mtu = mtu_code(h->cfg.max_mtu);
	/* only encap queries the port itself */
	bool up = hca_port_link_up(h->hca);

	if (mod > 1)
		return false;
	p->local_port = 1;
	p->width_enabled = 1;
	p->width_supported = 1;
	p->width_active = 1;
	p->speed_state = (uint8_t)(1u << 4 | (up ? PORT_STATE_ACTIVE : PORT_STATE_DOWN));
	p->phys_default = (uint8_t)((up ? PHYS_LINK_UP : PHYS_DISABLED) << 4);
	p->speed_active = 1u << 4 | 1u;
	p->mtu_smsl = (uint8_t)(mtu << 4);
	p->vl_init = 1u << 4;
	p->mtu_cap = mtu;
	p->op_vls = 1u << 4;
	p->guid_cap = HCA_GID_ENTRIES;
	return true;
}

static bool
get_guid_info(struct hca_core *h, uint32_t mod, uint8_t *data)
{
	uint32_t first = mod * HCA_MAD_GUIDS_PER_BLOCK;

	if (mod >= HCA_GID_ENTRIES / HCA_MAD_GUIDS_PER_BLOCK)
		return false;
	for (uint32_t i = 0; i < HCA_MAD_GUIDS_PER_BLOCK; i++)
		memcpy(data + 8 * i, h->ctxmgt->gid[first + i].gid + 8, 8);
	return true;
}

static bool
get_pkey_table(struct hca_core *h, uint32_t mod, uint8_t *data)
{
	uint32_t first = (mod & 0xffff) * HCA_MAD_PKEYS_PER_BLOCK;

	if (first >= HCA_PKEY_ENTRIES)
		return false;
	for (uint32_t i = 0; i < HCA_MAD_PKEYS_PER_BLOCK && first + i < HCA_PKEY_ENTRIES; i++)
		hca_put_be16(data + 2 * i, h->ctxmgt->pkey[first + i]);
	return true;
}

static const struct {
	uint16_t attr;
	bool (*get)(struct hca_core *h, uint32_t mod, uint8_t *data);
} attrs[] = {
	{HCA_MAD_ATTR_NODE_DESC, get_node_desc},   {HCA_MAD_ATTR_NODE_INFO, get_node_info},
	{HCA_MAD_ATTR_GUID_INFO, get_guid_info},   {HCA_MAD_ATTR_PORT_INFO, get_port_info},
	{HCA_MAD_ATTR_PKEY_TABLE, get_pkey_table},
};

static uint16_t
answer(struct hca_core *h, const struct hca_mad_smp *in, struct hca_mad_smp *out)
{
	if (in->base_version != HCA_MAD_BASE_VERSION || in->class_version != 1 ||
	    (in->mgmt_class != HCA_MAD_CLASS_SUBN_LID && in->mgmt_class != HCA_MAD_CLASS_SUBN_DIR))
		return HCA_MAD_STATUS_BAD_VERSION;
	if (in->method != HCA_MAD_METHOD_GET)
		return HCA_MAD_STATUS_BAD_METHOD;
	for (unsigned int i = 0; i < RTE_DIM(attrs); i++) {
		if (attrs[i].attr != hca_be16_to_cpu(in->attr_id))
			continue;
		memset(out->data, 0, sizeof(out->data));
		return attrs[i].get(h, hca_be32_to_cpu(in->attr_mod), out->data)
			       ? HCA_MAD_STATUS_OK
			       : HCA_MAD_STATUS_BAD_VALUE;
	}
	return HCA_MAD_STATUS_BAD_ATTR;
}

int
hca_cmd_mad_ifc(struct hca_core *h, struct hca_cmd *c)
{
	const struct hca_mad_smp *in = (const void *)c->in;
	struct hca_mad_smp *out = (void *)c->out;

	if (c->in_modifier != 1)
		return HCA_STAT_BAD_PARAM;
	*out = *in;
	out->method = HCA_MAD_METHOD_GET_RESP;
	out->status = hca_cpu_to_be16(answer(h, in, out));
	return HCA_STAT_OK;
}
