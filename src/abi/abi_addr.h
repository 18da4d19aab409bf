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

/* 32 bits of which each depends on each bit of the GID, by a key that is secret from peers. */
static inline uint32_t
hca_gid_hash(const uint8_t gid[16], uint64_t key)
{
	uint64_t h = key, word;

	for (int i = 0; i < 2; i++) {
		memcpy(&word, gid + 8 * i, sizeof(word));
		h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		h = (h ^ h >> 32) * UINT64_C(0x9e3779b97f4a7c15);
	}
	return (uint32_t)(h >> 32);
}

/* Whether a GID is of a group: 224.0.0.0/4, ff00::/8. */
static inline bool
hca_gid_is_multicast(const uint8_t gid[16])
{
	return gid[0] == 0xff || (hca_gid_is_mapped(gid) && (gid[12] & 0xf0) == 0xe0);
}

/* The MAC address of a group: 23 bits of an IPv4 group, 32 bits of an IPv6 one. */
static inline void
hca_gid_multicast_mac(const uint8_t gid[16], uint8_t mac[6])
{
	const uint8_t mac4[6] = {0x01, 0, 0x5e, gid[13] & 0x7f, gid[14], gid[15]};
	const uint8_t mac6[6] = {0x33, 0x33, gid[12], gid[13], gid[14], gid[15]};

	memcpy(mac, hca_gid_is_mapped(gid) ? mac4 : mac6, 6);
}

/* Whether a GID is valid on one link only: fe80::/10, 169.254.0.0/16, 224.0.0.0/24, ff02::/16. */
static inline bool
hca_gid_is_link_local(const uint8_t gid[16])
{
	if (hca_gid_is_mapped(gid))
		return (gid[12] == 169 && gid[13] == 254) ||
		       (gid[12] == 224 && gid[13] == 0 && gid[14] == 0);
	if (gid[0] == 0xff)
		return (gid[1] & 0xf) == 2;
	return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

/* Length of the common prefix of two GIDs, in bits. */
static inline unsigned int
hca_gid_common_bits(const uint8_t a[16], const uint8_t b[16])
{
	unsigned int i = 0, bits;

	while (i < 16 && a[i] == b[i])
		i++;
	if (i == 16)
		return 128;
	for (bits = 0; ((a[i] ^ b[i]) & (0x80u >> bits)) == 0;)
		bits++;
	return i * 8 + bits;
}

/*
 * How well own serves as the source of packets to dst, as far as the addresses say; 0: not at all,
 * because it is of another IP version, or valid on one link only and dst is not.
 */
static inline unsigned int
hca_gid_source_rank(const uint8_t own[16], const uint8_t dst[16])
{
	bool near = hca_gid_is_link_local(own);

	if (hca_gid_is_mapped(own) != hca_gid_is_mapped(dst) ||
	    (near && !hca_gid_is_link_local(dst)))
		return 0;
	/* to a link-local destination a link-local source comes first, if both are IPv6 */
	return 1 + hca_gid_common_bits(own, dst) + (near && !hca_gid_is_mapped(own) ? 256 : 0);
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
