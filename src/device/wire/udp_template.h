/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ready-made headers of a path, from Ethernet to UDP, with room after them for the wire's
 * transport header. The CEU fills templates; encap copies them and sets the fields that differ per
 * packet.
 */
#ifndef DEVICE_WIRE_UDP_TEMPLATE_H
#define DEVICE_WIRE_UDP_TEMPLATE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "abi_roce.h"
#include "core/tsan.h"
#include "wire/wire_view.h"

#define HCA_TRANSPORT_LEN 16 /* longest transport header of a wire */

/* Destination of frames and values of their headers up to UDP. Numbers in the CPU's order. */
struct hca_udp_path {
	uint8_t dmac[6];
	uint8_t smac[6];
	bool vlan;
	uint16_t vlan_tci;   /* priority, DEI, VLAN id */
	uint8_t ip_version;  /* 4 or 6 */
	uint8_t tclass;	     /* TOS or traffic class, ECN included */
	uint8_t hop_limit;   /* or TTL */
	uint16_t ip_id;	     /* IPv4 identification; 0 with DF */
	uint32_t flow_label; /* IPv6 */
	uint8_t sip[16];     /* IPv4: ::ffff:a.b.c.d, or just the last four bytes */
	uint8_t dip[16];
	uint16_t sport;
};

/*
 * Real values, not ones, stand in the variant fields: the ICRC kernels mask while they read. The
 * first eight bytes may change while others read them: aligned, so that they do so at once.
 */
struct hca_udp_template {
	uint8_t bytes[HCA_ETH_LEN + HCA_VLAN_LEN + HCA_IPV6_LEN + HCA_UDP_LEN + HCA_TRANSPORT_LEN]
		__attribute__((aligned(8)));
	uint8_t l3;
	uint8_t transport; /* where the transport header begins; 0: nothing is filled in */
	uint8_t ip_version;
	/* IPv4 words as they lie in memory, without the first, total length and checksum */
	uint16_t ip_sum;
};

/*
 * Fills all of *t; the bytes of the transport header are 0, for the caller to fill. dport: UDP port
 * of the wire. Returns 0, or -EINVAL for an IP version other than 4 and 6 or a flow label that does
 * not fit.
 */
int hca_udp_template_fill(const struct hca_udp_path *path, uint16_t dport,
			  struct hca_udp_template *t);

static inline uint16_t
hca_ip_fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/*
 * Set the ECN field of headers that encap may be copying: a store of one byte. The checksum is that
 * of the copied bytes.
 */
static inline void
hca_udp_template_set_ecn(struct hca_udp_template *t, uint8_t ecn)
{
	uint8_t *byte = &t->bytes[t->l3 + 1];
	unsigned int shift = t->ip_version == 4 ? 0 : 4;

	__atomic_store_n(byte, (uint8_t)((*byte & ~(3u << shift)) | (unsigned int)ecn << shift),
			 __ATOMIC_RELAXED);
}

/* Another traffic class, ECN included, in the IP header of a frame; its checksum is right. */
static inline void
hca_udp_set_tclass(uint8_t *l3, uint8_t ip_version, uint32_t tclass)
{
	uint32_t word = hca_get_be32(l3);

	if (ip_version == 4) {
		/* the sum without the old byte, which is the low one of its word */
		uint32_t sum = (uint16_t)~hca_get_be16(l3 + 10);

		l3[1] = (uint8_t)tclass;
		hca_put_be16(l3 + 10,
			     (uint16_t)~hca_ip_fold(sum + tclass + (0xffff - (word >> 16 & 0xff))));
	} else {
		hca_put_be32(l3, (word & ~(UINT32_C(0xff) << 20)) | tclass << 20);
	}
}

/*
 * The headers into frame, which has room for all bytes of the template; udp_len: from the UDP
 * header to the ICRC, bytes, bounded by the caller. Returns where the transport header begins.
 */
static inline uint8_t *
hca_udp_template_put(const struct hca_udp_template *t, uint32_t udp_len, uint8_t *frame)
{
	uint8_t *l3 = frame + t->l3, *transport = frame + t->transport;
	uint64_t first;

	/*
	 * the CEU may be storing the neighbour's new MAC address: read the old one or the new one
	 */
	first = __atomic_load_n((const uint64_t *)(const void *)t->bytes, __ATOMIC_RELAXED);
	memcpy(frame, &first, sizeof(first));
	/* or the ECN field, a byte of the rest */
	hca_tsan_repeat_begin(true);
	memcpy(frame + sizeof(first), t->bytes + sizeof(first), sizeof(t->bytes) - sizeof(first));
	hca_tsan_repeat_end(true);
	if (__builtin_expect(t->ip_version == 4, 1)) {
		uint16_t total = hca_cpu_to_be16((uint16_t)(udp_len + HCA_IPV4_LEN)), word;

		/* the sum has the order of its words, so it needs no conversion */
		memcpy(&word, l3, sizeof(word));
		memcpy(l3 + 2, &total, sizeof(total));
		word = (uint16_t)~hca_ip_fold((uint32_t)t->ip_sum + word + total);
		memcpy(l3 + 10, &word, sizeof(word));
	} else {
		hca_put_be16(l3 + 4, (uint16_t)udp_len);
	}
	hca_put_be16(transport - 4, (uint16_t)udp_len);
	return transport;
}

#endif
