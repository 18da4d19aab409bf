/* SPDX-License-Identifier: BSD-3-Clause */

#include "ib_ip.h"

#include <string.h>

#include "abi_bits.h"

#define IP_VERSION_AT 1u
#define IP_PORT_AT 2u
#define IP_SRC_AT 4u
#define IP_DST_AT 20u
#define IP4_AT 12u /* within 16 bytes */

static const uint8_t mapped_prefix[12] = {[10] = 0xff, [11] = 0xff};

uint64_t
ib_ip_service_id(uint32_t space, uint16_t port)
{
	return (uint64_t)space << 16 | port;
}

bool
ib_ip_service(uint64_t service_id, uint32_t *space, uint16_t *port)
{
	*space = (uint32_t)(service_id >> 16 & 0xffff);
	*port = (uint16_t)service_id;
	return service_id >> 32 == 0 && *port != 0 &&
	       (*space == HCA_CTL_CM_SPACE_TCP || *space == HCA_CTL_CM_SPACE_UDP ||
		*space == HCA_CTL_CM_SPACE_IB || *space == HCA_CTL_CM_SPACE_IPOIB);
}

uint16_t
ib_ip_family(const uint8_t gid[16])
{
	return memcmp(gid, mapped_prefix, sizeof(mapped_prefix)) == 0 ? HCA_CTL_CM_IP4
								      : HCA_CTL_CM_IP6;
}

struct hca_ctl_cm_addr
ib_ip_any(uint16_t family)
{
	struct hca_ctl_cm_addr any = {.family = family};

	if (family == HCA_CTL_CM_IP4)
		memcpy(any.gid, mapped_prefix, sizeof(mapped_prefix));
	return any;
}

bool
ib_ip_is_any(const struct hca_ctl_cm_addr *addr)
{
	struct hca_ctl_cm_addr any = ib_ip_any(addr->family);

	return memcmp(addr->gid, any.gid, sizeof(any.gid)) == 0;
}

static bool
ip_is_loopback(const struct hca_ctl_cm_addr *addr)
{
	static const uint8_t one[16] = {[15] = 1};

	if (addr->family == HCA_CTL_CM_IP4)
		return memcmp(addr->gid, mapped_prefix, sizeof(mapped_prefix)) == 0 &&
		       addr->gid[IP4_AT] == 127;
	return memcmp(addr->gid, one, sizeof(one)) == 0;
}

struct hca_ctl_cm_addr
ib_ip_meant(const struct hca_ctl_cm_addr *addr)
{
	struct hca_ctl_cm_addr any = ib_ip_any(addr->family);

	if (!ip_is_loopback(addr))
		return *addr;
	any.port = addr->port;
	return any;
}

bool
ib_ip_is_link_local(const uint8_t gid[16])
{
	return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

bool
ib_ip_is_multicast(const struct hca_ctl_cm_addr *addr)
{
	return ib_ip_family(addr->gid) == HCA_CTL_CM_IP4 ? (addr->gid[IP4_AT] & 0xf0) == 0xe0
							 : addr->gid[0] == 0xff;
}

bool
ib_ip_is_good(const struct hca_ctl_cm_addr *addr)
{
	return addr->family == HCA_CTL_CM_IB || addr->family == ib_ip_family(addr->gid);
}

static void
ip_get(const uint8_t *bytes, uint16_t family, struct hca_ctl_cm_addr *addr)
{
	*addr = ib_ip_any(family);
	if (family == HCA_CTL_CM_IP4)
		memcpy(addr->gid + IP4_AT, bytes + IP4_AT, sizeof(addr->gid) - IP4_AT);
	else
		memcpy(addr->gid, bytes, sizeof(addr->gid));
}

bool
ib_ip_parse(const uint8_t bytes[IB_IP_BYTES], struct ib_ip *ip)
{
	uint16_t family = bytes[IP_VERSION_AT] >> 4;

	if (bytes[0] != 0 || (family != HCA_CTL_CM_IP4 && family != HCA_CTL_CM_IP6))
		return false;
	ip_get(bytes + IP_SRC_AT, family, &ip->src);
	ip_get(bytes + IP_DST_AT, family, &ip->dst);
	ip->src.port = hca_get_be16(bytes + IP_PORT_AT);
	return true;
}

static void
ip_put(uint8_t *bytes, const struct hca_ctl_cm_addr *addr)
{
	uint32_t from = addr->family == HCA_CTL_CM_IP4 ? IP4_AT : 0;

	memcpy(bytes + from, addr->gid + from, sizeof(addr->gid) - from);
}

uint32_t
ib_ip_header(uint16_t family)
{
	return family == HCA_CTL_CM_IB ? 0 : IB_IP_BYTES;
}

void
ib_ip_build(const struct ib_ip *ip, uint8_t bytes[IB_IP_BYTES])
{
	memset(bytes, 0, IB_IP_BYTES);
	bytes[IP_VERSION_AT] = (uint8_t)(ip->dst.family << 4);
	hca_put_be16(bytes + IP_PORT_AT, ip->src.port);
	ip_put(bytes + IP_SRC_AT, &ip->src);
	ip_put(bytes + IP_DST_AT, &ip->dst);
}
