/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HCA_ABI_ADDR_H
#define HCA_ABI_ADDR_H

/*
 * Addresses in the forms that software and device share: a GID is an IPv6 address, or an IPv4
 * address as ::ffff:a.b.c.d (RoCE v2); a MAC address is 6 bytes, or a number of 48 bits.
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Whether a GID holds an IPv4 address, which may be any. */
static inline bool
hca_gid_is_mapped(const uint8_t gid[16])
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(gid, prefix, sizeof(prefix)) == 0;
}

/* ip: 4 bytes in network order */
static inline void
hca_gid_from_ip4(uint8_t gid[16], const void *ip)
{
	memset(gid, 0, 10);
	gid[10] = gid[11] = 0xff;
	memcpy(gid + 12, ip, 4);
}

static inline bool
hca_mac_is_unicast(const uint8_t mac[6])
{
	static const uint8_t zero[6];

	return (mac[0] & 1) == 0 && memcmp(mac, zero, sizeof(zero)) != 0;
}

static inline uint64_t
hca_mac_number(const uint8_t mac[6])
{
	uint64_t n = 0;

	for (int i = 0; i < 6; i++)
		n = n << 8 | mac[i];
	return n;
}

static inline void
hca_mac_bytes(uint8_t mac[6], uint64_t n)
{
	for (int i = 0; i < 6; i++)
		mac[i] = (uint8_t)(n >> (8 * (5 - i)));
}

#endif
