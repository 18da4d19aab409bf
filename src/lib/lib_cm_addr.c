/* SPDX-License-Identifier: BSD-3-Clause */

/* Socket addresses and those of the control channel, where a GID stands for both families. */

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "lib_cm.h"

#define MAPPED_BYTES 12u

static const uint8_t mapped[MAPPED_BYTES] = {[10] = 0xff, [11] = 0xff};

static void
from_ip4(const struct sockaddr_in *from, struct hca_ctl_cm_addr *to)
{
	to->family = HCA_CTL_CM_IP4;
	to->port = ntohs(from->sin_port);
	memcpy(to->gid, mapped, MAPPED_BYTES);
	memcpy(to->gid + MAPPED_BYTES, &from->sin_addr, sizeof(from->sin_addr));
}

/* A mapped address is one of IPv4. */
static void
from_ip6(const struct sockaddr_in6 *from, struct hca_ctl_cm_addr *to)
{
	to->port = ntohs(from->sin6_port);
	memcpy(to->gid, &from->sin6_addr, sizeof(to->gid));
	to->family = memcmp(to->gid, mapped, MAPPED_BYTES) == 0 ? HCA_CTL_CM_IP4 : HCA_CTL_CM_IP6;
	if (to->family == HCA_CTL_CM_IP6)
		to->scope = from->sin6_scope_id;
}

static void
from_ib(const struct softhca_sockaddr_ib *from, struct hca_ctl_cm_addr *to,
	struct hca_ctl_cm_service *service)
{
	service->id = be64toh(from->sib_sid);
	service->mask = be64toh(from->sib_sid_mask);
	service->pkey = ntohs(from->sib_pkey);
	to->family = HCA_CTL_CM_IB;
	to->port = (uint16_t)(service->id & service->mask);
	to->scope = (uint32_t)from->sib_scope_id;
	memcpy(to->gid, from->sib_addr, sizeof(to->gid));
}

int
lib_cm_from_sockaddr(const struct lib_context *ctx, const struct sockaddr *from,
		     struct hca_ctl_cm_addr *to, struct hca_ctl_cm_service *service)
{
	union {
		struct sockaddr_in ip4;
		struct sockaddr_in6 ip6;
		struct softhca_sockaddr_ib ib;
	} addr;

	memset(to, 0, sizeof(*to));
	memset(service, 0, sizeof(*service));
	if (from == NULL)
		return 0;
	switch (from->sa_family) {
	case AF_INET:
		memcpy(&addr.ip4, from, sizeof(addr.ip4));
		from_ip4(&addr.ip4, to);
		return 0;
	case AF_INET6:
		memcpy(&addr.ip6, from, sizeof(addr.ip6));
		from_ip6(&addr.ip6, to);
		return 0;
	case AF_IB:
		memcpy(&addr.ib, from, sizeof(addr.ib));
		from_ib(&addr.ib, to, service);
		return lib_needs(ctx, HCA_CTL_FEATURE_CM_IB);
	default:
		return lib_fail(-EAFNOSUPPORT,
				"address family %u: AF_INET, AF_INET6 and AF_IB are supported",
				from->sa_family);
	}
}

static struct softhca_sockaddr_ib
to_ib(const struct hca_ctl_cm_addr *from, const struct hca_ctl_cm_service *service)
{
	struct softhca_sockaddr_ib ib = {
		.sib_family = AF_IB,
		.sib_pkey = htons(service->pkey),
		.sib_sid = htobe64(service->id),
		.sib_sid_mask = htobe64(service->mask),
		.sib_scope_id = from->scope,
	};

	memcpy(ib.sib_addr, from->gid, sizeof(ib.sib_addr));
	return ib;
}

void
lib_cm_to_sockaddr(const struct hca_ctl_cm_addr *from, const struct hca_ctl_cm_service *service,
		   struct sockaddr_storage *to)
{
	struct sockaddr_in ip4 = {.sin_family = AF_INET, .sin_port = htons(from->port)};
	struct sockaddr_in6 ip6 = {
		.sin6_family = AF_INET6,
		.sin6_port = htons(from->port),
		.sin6_scope_id = from->scope,
	};
	struct softhca_sockaddr_ib ib;

	memset(to, 0, sizeof(*to));
	if (from->family == HCA_CTL_CM_IP4) {
		memcpy(&ip4.sin_addr, from->gid + MAPPED_BYTES, sizeof(ip4.sin_addr));
		memcpy(to, &ip4, sizeof(ip4));
	} else if (from->family == HCA_CTL_CM_IP6) {
		memcpy(&ip6.sin6_addr, from->gid, sizeof(ip6.sin6_addr));
		memcpy(to, &ip6, sizeof(ip6));
	} else if (from->family == HCA_CTL_CM_IB) {
		ib = to_ib(from, service);
		memcpy(to, &ib, sizeof(ib));
	}
}
