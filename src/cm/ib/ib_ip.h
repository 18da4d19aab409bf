/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_IB_IB_IP_H
#define CM_IB_IB_IP_H

/*
 * The RDMA IP CM service (IBTA annex A11): service IDs made of a port space and a port, and the
 * header at the beginning of the private data of REQ and SIDR_REQ, which tells IP addresses.
 */

#include <stdbool.h>
#include <stdint.h>

#include "abi_ctl.h"

#define IB_IP_BYTES 36u

struct ib_ip {
	struct hca_ctl_cm_addr src; /* with its port */
	struct hca_ctl_cm_addr dst; /* port 0: the service ID has it */
};

uint64_t ib_ip_service_id(uint32_t space, uint16_t port);
/* false: not a service ID of this service, or of an unknown port space. */
bool ib_ip_service(uint64_t service_id, uint32_t *space, uint16_t *port);

/* false: another version, or neither IPv4 nor IPv6. */
bool ib_ip_parse(const uint8_t bytes[IB_IP_BYTES], struct ib_ip *ip);
void ib_ip_build(const struct ib_ip *ip, uint8_t bytes[IB_IP_BYTES]);
/* Bytes of the header in private data between addresses of a family: none between those of IB. */
uint32_t ib_ip_header(uint16_t family);

/* Addresses: which IP family a GID has; whether an address is the wildcard of its family. */
uint16_t ib_ip_family(const uint8_t gid[16]);
bool ib_ip_is_any(const struct hca_ctl_cm_addr *addr);
bool ib_ip_is_link_local(const uint8_t gid[16]);
bool ib_ip_is_multicast(const struct hca_ctl_cm_addr *addr);
/* The address fits its family; any GID fits IB. */
bool ib_ip_is_good(const struct hca_ctl_cm_addr *addr);
struct hca_ctl_cm_addr ib_ip_any(uint16_t family);
/* Loopback addresses stand for the wildcard of their family, as in Linux. */
struct hca_ctl_cm_addr ib_ip_meant(const struct hca_ctl_cm_addr *addr);

#endif
