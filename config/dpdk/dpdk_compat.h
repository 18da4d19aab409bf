/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONFIG_DPDK_DPDK_COMPAT_H
#define CONFIG_DPDK_DPDK_COMPAT_H

/*
 * Names that differ between DPDK 22.11, 23.11, 24.11 and 25.11. Code uses the newest ones; this
 * file defines them for an older DPDK.
 *
 * Two differences need no line: rte_bsf32() and rte_bsf64() come with rte_bitops.h since 23.11 and
 * with rte_common.h before; the addresses of struct rte_ipv6_hdr are structures since 24.11 and
 * arrays before, so that code takes their address.
 */

#include <rte_flow.h>
#include <rte_icmp.h>
#include <rte_version.h>

/* Renamed in 23.03, the old name is gone in 25.11 */
#if RTE_VERSION < RTE_VERSION_NUM(23, 3, 0, 0)
#define rte_tel_data_add_dict_uint rte_tel_data_add_dict_u64
#endif

/* Renamed before 24.11, where the old names are deprecated */
#ifndef RTE_ICMP_TYPE_ECHO_REPLY
#define RTE_ICMP_TYPE_ECHO_REPLY RTE_IP_ICMP_ECHO_REPLY
#define RTE_ICMP_TYPE_ECHO_REQUEST RTE_IP_ICMP_ECHO_REQUEST
#endif

/* Since 23.07. Rules of an older DPDK must not have this item: DPDK_HAS_IB_BTH */
#if RTE_VERSION < RTE_VERSION_NUM(23, 7, 0, 0)
#define DPDK_HAS_IB_BTH false
#define RTE_FLOW_ITEM_TYPE_IB_BTH ((enum rte_flow_item_type)0x7fff)
struct rte_ib_bth {
	uint8_t opcode, flags, pkey[2], rsvd0, dst_qp[3], rsvd1, psn[3];
};
struct rte_flow_item_ib_bth {
	struct rte_ib_bth hdr;
};
#else
#define DPDK_HAS_IB_BTH true
#endif

/* The 16 bytes of an address in a struct rte_ipv6_hdr */
#define DPDK_IP6(address) ((const uint8_t *)&(address))

#endif
