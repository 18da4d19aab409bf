/* SPDX-License-Identifier: BSD-3-Clause */

/* Address handles: the UD unit of a WQE (tables 3-4-8, 3-4-9), filled in at creation. */

#include <errno.h>
#include <string.h>

#include "abi_addr.h"
#include "abi_roce.h"
#include "lib_types.h"

int
lib_check_rate(uint32_t static_rate)
{
	switch (static_rate) {
	case SOFTHCA_RATE_MAX:
#define X(name, number, mbps) case number:
		SOFTHCA_RATE_LIST(X)
#undef X
		return 0;
	default:
		return lib_fail(-EINVAL, "static rate %u: expected one of enum softhca_rate",
				static_rate);
	}
}

static int
check_ah(const struct lib_context *ctx, const struct softhca_ah_attr *attr)
{
	if (attr->port_num == 0 || attr->port_num > ctx->info.num_ports)
		return lib_fail(-EINVAL, "port_num %u: expected 1 to %u", attr->port_num,
				ctx->info.num_ports);
	if (attr->sgid_index >= ctx->info.gid_entries)
		return lib_fail(
			-EINVAL,
			"sgid_index %u: expected 0 to %u; softhca_query_gid() reads the table",
			attr->sgid_index, ctx->info.gid_entries - 1);
	return lib_check_rate(attr->static_rate);
}

/* The GID form is used for both IP versions. Each field takes as many bits as it has. */
static void
fill_unit(struct hca_ud_unit *u, const struct softhca_ah_attr *attr, const struct hca_ctl_ah *known)
{
	uint64_t dmac = hca_mac_number(known->dmac), smac = hca_mac_number(known->smac);
	uint32_t hops = attr->hop_limit != 0 ? attr->hop_limit : HCA_HOP_LIMIT;

	memset(u, 0, sizeof(*u));
	u->port = hca_cpu_to_le32(
		HCA_UD_MAKE_PORT(attr->port_num, attr->sgid_index, hops, attr->traffic_class));
	u->mac_lo = hca_cpu_to_le32(HCA_UD_MAKE_MAC_LO(dmac, smac));
	u->smac_hi = hca_cpu_to_le32(HCA_UD_MAC_HI(smac));
	u->dmac_hi = hca_cpu_to_le32(HCA_UD_MAC_HI(dmac));
	memcpy(u->dgid, attr->dgid.raw, sizeof(u->dgid));
	u->flow =
		hca_cpu_to_le32(HCA_UD_MAKE_FLOW(1, attr->sl, attr->static_rate, attr->flow_label));
}

struct softhca_ah *
softhca_create_ah(struct softhca_pd *pd, const struct softhca_ah_attr *attr)
{
	struct lib_context *ctx = lib_ctx(pd->context);
	struct hca_ctl_ah request = {.sgid_index = attr->sgid_index};
	struct lib_ah *ah;

	if (check_ah(ctx, attr) != 0)
		return NULL;
	memcpy(request.dgid, attr->dgid.raw, sizeof(request.dgid));
	if (LIB_CALL(ctx, RESOLVE, &request, &request) != 0)
		return NULL;
	ah = lib_object_new(ctx, sizeof(*ah), "an address handle");
	if (ah == NULL)
		return NULL;
	ah->pub.context = pd->context;
	ah->pub.pd = pd;
	ah->ctx = ctx;
	ah->pd = pd;
	__atomic_add_fetch(&((struct lib_pd *)pd)->ahs, 1, __ATOMIC_RELAXED);
	fill_unit(&ah->unit, attr, &request);
	return &ah->pub;
}

int
softhca_destroy_ah(struct softhca_ah *pub)
{
	struct lib_ah *ah = (struct lib_ah *)pub;

	__atomic_sub_fetch(&((struct lib_pd *)ah->pd)->ahs, 1, __ATOMIC_RELAXED);
	lib_object_free(ah->ctx, ah);
	return 0;
}

/*
 * Index of the GID to which the datagram was sent; the VLAN is unknown, so the first match is used.
 */
static int
find_sgid(struct lib_context *ctx, const uint8_t gid[16], uint8_t *index)
{
	for (uint32_t i = 0; i < ctx->info.gid_entries; i++) {
		struct hca_ctl_gid e;

		if (LIB_CALL(ctx, QUERY_GID, &i, &e) != 0 || !e.valid ||
		    memcmp(e.gid, gid, 16) != 0)
			continue;
		*index = (uint8_t)i;
		return 0;
	}
	return lib_fail(
		-EINVAL,
		"the datagram was sent to an address that is not in the GID table of this port: "
		"the address was removed, or the GRH is of another port");
}

int
softhca_init_ah_from_wc(struct softhca_context *pub, uint8_t port, const struct softhca_wc *wc,
			const void *grh, struct softhca_ah_attr *attr)
{
	const uint8_t *p = grh;
	uint8_t to[16];

	if ((wc->wc_flags & SOFTHCA_WC_GRH) == 0)
		return lib_fail(-EINVAL,
				"completion flags %#x: an address is made from a completion with "
				"SOFTHCA_WC_GRH",
				(unsigned int)wc->wc_flags);
	memset(attr, 0, sizeof(*attr));
	attr->port_num = port;
	attr->is_global = 1;
	attr->sl = wc->sl;
	attr->hop_limit = 0xff;
	if (p[0] >> 4 == 6) {
		attr->traffic_class = (uint8_t)(p[0] << 4 | p[1] >> 4);
		attr->flow_label = (uint32_t)(p[1] & 0xf) << 16 | (uint32_t)p[2] << 8 | p[3];
		memcpy(attr->dgid.raw, p + 8, 16);
		memcpy(to, p + 24, 16);
	} else if (p[20] >> 4 == 4) {
		attr->traffic_class = p[21];
		hca_gid_from_ip4(attr->dgid.raw, p + 32);
		hca_gid_from_ip4(to, p + 36);
	} else {
		return lib_fail(
			-EINVAL,
			"the GRH has IP version %u: it must be the first 40 bytes of the receive, "
			"with an IPv6 header, or an IPv4 header in the last 20",
			p[0] >> 4);
	}
	attr->traffic_class &= 0xfc;
	return find_sgid(lib_ctx(pub), to, &attr->sgid_index);
}

struct softhca_ah *
softhca_create_ah_from_wc(struct softhca_pd *pd, const struct softhca_wc *wc, const void *grh,
			  uint8_t port)
{
	struct softhca_ah_attr attr;
	int err = softhca_init_ah_from_wc(pd->context, port, wc, grh, &attr);

	if (err != 0) {
		errno = -err;
		return NULL;
	}
	return softhca_create_ah(pd, &attr);
}
