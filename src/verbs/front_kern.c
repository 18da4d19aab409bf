/* SPDX-License-Identifier: BSD-3-Clause */

/* Structures of the kernel's connection manager, which librdmacm lets this library translate. */

#include <string.h>

#include "front_kern.h"
#include "front_qp_members.h"

void
ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *dst, struct ib_uverbs_ah_attr *src)
{
	memcpy(dst->grh.dgid.raw, src->grh.dgid, sizeof(dst->grh.dgid.raw));
	dst->grh.flow_label = src->grh.flow_label;
	dst->grh.sgid_index = src->grh.sgid_index;
	dst->grh.hop_limit = src->grh.hop_limit;
	dst->grh.traffic_class = src->grh.traffic_class;
	dst->dlid = src->dlid;
	dst->sl = src->sl;
	dst->src_path_bits = src->src_path_bits;
	dst->static_rate = src->static_rate;
	dst->is_global = src->is_global;
	dst->port_num = src->port_num;
}

static struct ibv_qp_cap
cap_from_kern(const struct ib_uverbs_qp_attr *src)
{
	return (struct ibv_qp_cap){
		.max_send_wr = src->max_send_wr,
		.max_recv_wr = src->max_recv_wr,
		.max_send_sge = src->max_send_sge,
		.max_recv_sge = src->max_recv_sge,
		.max_inline_data = src->max_inline_data,
	};
}

void
ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *to, struct ib_uverbs_qp_attr *from)
{
	FRONT_COPY_KERNEL
	to->cap = cap_from_kern(from);
	ibv_copy_ah_attr_from_kern(&to->ah_attr, &from->ah_attr);
	ibv_copy_ah_attr_from_kern(&to->alt_ah_attr, &from->alt_ah_attr);
}

/* Members that both records have under the same name */
#define PATH_RECORD(_) \
	_(dlid) \
	_(slid) \
	_(flow_label) \
	_(hop_limit) \
	_(traffic_class) \
	_(numb_path) \
	_(pkey) \
	_(sl) \
	_(mtu_selector) \
	_(rate_selector) \
	_(rate) \
	_(packet_life_time_selector) \
	_(packet_life_time) \
	_(preference)

void
ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *dst, struct ib_user_path_rec *src)
{
	memcpy(dst->dgid.raw, src->dgid, sizeof(dst->dgid));
	memcpy(dst->sgid.raw, src->sgid, sizeof(dst->sgid));
#define _(name) dst->name = src->name;
	PATH_RECORD(_)
#undef _
	dst->mtu = (uint8_t)src->mtu;
	dst->raw_traffic = (int)src->raw_traffic;
	dst->reversible = (int)src->reversible;
}

void
ibv_copy_path_rec_to_kern(struct ib_user_path_rec *dst, struct ibv_sa_path_rec *src)
{
	memcpy(dst->dgid, src->dgid.raw, sizeof(src->dgid));
	memcpy(dst->sgid, src->sgid.raw, sizeof(src->sgid));
#define _(name) dst->name = src->name;
	PATH_RECORD(_)
#undef _
	dst->mtu = src->mtu;
	dst->raw_traffic = (uint32_t)src->raw_traffic;
	dst->reversible = (uint32_t)src->reversible;
}
