/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DEVICE_WIRE_ROCE_QPN_H
#define DEVICE_WIRE_ROCE_QPN_H

/*
 * The destination QPN of a frame before it is judged, to choose a queue or a pipe for it. Takes
 * Ethernet II with at most one VLAN tag, IPv4 without options or IPv6 without extension headers.
 */

#include <stdint.h>

#include <rte_branch_prediction.h>

#include "abi_ctx.h"
#include "abi_roce.h"
#include "wire/roce_frame.h"
#include "wire/udp_template.h"

/* Offset of the UDP header behind the IP header at p + at; 0: another packet. */
static inline uint32_t
hca_roce_udp_at(const uint8_t *p, uint32_t at, uint32_t ethertype)
{
	if (ethertype == HCA_ETHERTYPE_IPV4 && p[at] == 0x45 && p[at + 9] == HCA_IPPROTO_UDP)
		return at + HCA_IPV4_LEN;
	if (ethertype == HCA_ETHERTYPE_IPV6 && p[at] >> 4 == 6 && p[at + 6] == HCA_IPPROTO_UDP)
		return at + HCA_IPV6_LEN;
	return 0;
}

/* The QPN in the BTH of a frame of len bytes; 0: the frame is not of RoCE, or is cut off. */
static inline uint32_t
hca_roce_qpn(const uint8_t *p, uint32_t len)
{
	uint32_t at = HCA_ETH_LEN, ethertype;

	if (unlikely(len < HCA_ETH_LEN + HCA_VLAN_LEN + HCA_IPV4_LEN))
		return 0;
	ethertype = hca_get_be16(p + 12);
	if (ethertype == HCA_ETHERTYPE_VLAN) {
		at += HCA_VLAN_LEN;
		ethertype = hca_get_be16(p + 16);
	}
	at = hca_roce_udp_at(p, at, ethertype);
	if (unlikely(at == 0 || len < at + HCA_UDP_LEN + HCA_ROCE_BTH_LEN ||
		     hca_get_be16(p + at + 2) != HCA_ROCE_UDP_PORT))
		return 0;
	return hca_get_be32(p + at + HCA_UDP_LEN + 4) & HCA_QPN_MASK;
}

#endif
