/* SPDX-License-Identifier: BSD-3-Clause */

/* Addresses of the families of the device: AF_INET, AF_INET6, AF_IB. */

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "ucma.h"

#define PORT_MASK UINT64_C(0xffff) /* of a service ID */

/* A view of an address by its family */
union view {
	const struct sockaddr_storage *any;
	const struct sockaddr_in *in;
	const struct sockaddr_in6 *in6;
	const struct softhca_sockaddr_ib *ib;
};

uint32_t
ucma_addr_size(const struct sockaddr_storage *addr)
{
	switch (addr->ss_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	case AF_IB:
		return sizeof(struct softhca_sockaddr_ib);
	default:
		return 0;
	}
}

int
ucma_addr_judge(const struct ucma_call *call, const struct sockaddr_storage *addr, uint32_t size)
{
	uint32_t right = ucma_addr_size(addr);

	if (right == 0)
		return ucma_front_refuse(EAFNOSUPPORT, call->name,
					 "address family %u: expected AF_INET, AF_INET6 or AF_IB",
					 addr->ss_family);
	if (size == right)
		return 0;
	return ucma_front_refuse(EINVAL, call->name,
				 "an address of %u bytes: one of family %u has %u", size,
				 addr->ss_family, right);
}

bool
ucma_addr_is_any(const struct sockaddr_storage *addr)
{
	static const uint8_t zeros[15];
	const union view v = {addr};

	if (addr->ss_family == AF_INET)
		return v.in->sin_addr.s_addr == htonl(INADDR_ANY) ||
		       (ntohl(v.in->sin_addr.s_addr) >> 24) == IN_LOOPBACKNET;
	if (addr->ss_family == AF_IB)
		return memcmp(v.ib->sib_addr, zeros, sizeof(zeros)) == 0 && v.ib->sib_addr[15] <= 1;
	return IN6_IS_ADDR_UNSPECIFIED(&v.in6->sin6_addr) ||
	       IN6_IS_ADDR_LOOPBACK(&v.in6->sin6_addr);
}

uint16_t
ucma_addr_port(const struct sockaddr_storage *addr)
{
	const union view v = {addr};

	if (addr->ss_family == AF_IB)
		return (uint16_t)(be64toh(v.ib->sib_sid) & be64toh(v.ib->sib_sid_mask));
	return ntohs(v.in->sin_port); /* at the same place as sin6_port */
}

void
ucma_addr_set_port(struct sockaddr_storage *addr, uint16_t port)
{
	struct softhca_sockaddr_ib *ib = (void *)addr;

	if (addr->ss_family != AF_IB) {
		((struct sockaddr_in *)(void *)addr)->sin_port = htons(port);
		return;
	}
	ib->sib_sid = htobe64((be64toh(ib->sib_sid) & ~PORT_MASK) | port);
	ib->sib_sid_mask |= htobe64(PORT_MASK);
}

union softhca_gid
ucma_addr_gid(const struct sockaddr_storage *addr)
{
	const union view v = {addr};
	union softhca_gid gid = {0};

	if (addr->ss_family == AF_IB) {
		memcpy(gid.raw, v.ib->sib_addr, sizeof(gid.raw));
	} else if (addr->ss_family == AF_INET6) {
		memcpy(gid.raw, &v.in6->sin6_addr, sizeof(gid.raw));
	} else {
		gid.raw[10] = gid.raw[11] = 0xff;
		memcpy(gid.raw + 12, &v.in->sin_addr, 4);
	}
	return gid;
}
