/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KERNIF_ARP_ND_IMPL_H
#define KERNIF_ARP_ND_IMPL_H

/* What the files of the responder share: arp_nd.c has its table and life. */

#include <string.h>

#include <rte_arp.h>
#include <rte_ether.h>
#include <rte_icmp.h>
#include <rte_ip.h>

#include "arp_nd.h"

enum hop_state {
	HOP_FREE,
	HOP_ASKING, /* no answer yet */
	HOP_KNOWN,
	HOP_CHECKING, /* known, and asked again */
	HOP_FAILED,   /* nobody answered: not asked again at once */
};

struct hop_entry {
	struct arp_nd_hop hop;
	uint8_t mac[6];
	uint8_t state;
	uint8_t tries;
	uint64_t next;	/* when something is due */
	uint64_t asked; /* last */
	uint64_t since; /* the time from which mac has been believed */
	uint8_t old[6]; /* where it was until `moved` (0: never) */
	uint64_t moved;
	uint64_t old_since;
	uint64_t used; /* looked up last */
};

/* So many at once, and so many a second. */
struct bucket {
	uint64_t full_at; /* time at which it is full again */
};

/* A MAC address that was said to be a hop's when nobody had asked; until 0: none */
#define ARP_ND_SUSPECTS 32u
struct suspect {
	struct arp_nd_hop hop;
	uint8_t mac[6];
	uint64_t until;
};

struct arp_nd {
	struct arp_nd_config cfg;
	struct arp_nd_address address[ARP_ND_ADDRESSES];
	struct arp_nd_hop gateway[ARP_ND_ADDRESSES];
	struct hop_entry hop[ARP_ND_ENTRIES];
	struct suspect suspect[ARP_ND_SUSPECTS];
	struct bucket answers;
	unsigned int announce_left;
	uint64_t announce_at;
	struct arp_nd_stats stats;
};

/* A frame taken apart. */
struct arp_nd_frame {
	const uint8_t *bytes;
	uint32_t len;
	uint32_t l3; /* offset */
	uint16_t type;
	uint16_t vlan_id;
};

#define ND_SOLICIT 135u
#define ND_ADVERT 136u
#define ND_ECHO_REQUEST 128u
#define ND_ECHO_REPLY 129u
#define ND_HOP_LIMIT 255u
#define ND_SOLICITED 0x40000000u
#define ND_OVERRIDE 0x20000000u
#define ND_OPTION_SOURCE 1u
#define ND_OPTION_TARGET 2u
#define ND_LEN 32u /* solicitation or advertisement with one link-layer address */

/* ICMPv6 message of neighbour discovery: type to target, then options of 8 bytes each. */
struct nd_message {
	uint8_t type;
	uint8_t code;
	uint16_t cksum;
	uint32_t flags;
	uint8_t target[16];
	uint8_t option;
	uint8_t option_units;
	uint8_t option_mac[6];
} __attribute__((packed));

_Static_assert(sizeof(struct nd_message) == ND_LEN, "as on the wire");

static inline bool
arp_nd_is_v4(const uint8_t gid[16])
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(gid, prefix, sizeof(prefix)) == 0;
}

static inline void
arp_nd_v4_gid(const void *ip, uint8_t gid[16])
{
	memset(gid, 0, 10);
	gid[10] = gid[11] = 0xff;
	memcpy(gid + 12, ip, 4);
}

/* Neither group nor nobody. */
static inline bool
arp_nd_good_mac(const uint8_t mac[6])
{
	static const uint8_t zero[6];

	return (mac[0] & 1) == 0 && memcmp(mac, zero, 6) != 0;
}

/* arp_nd.c: an address of ours; NULL: it is not, or on another VLAN. */
const struct arp_nd_address *arp_nd_own(const struct arp_nd *a, const uint8_t gid[16],
					uint16_t vlan_id);
/* Somebody said where gid is; solicited: to us alone, as answers do. */
void arp_nd_heard(struct arp_nd *a, const uint8_t gid[16], uint16_t vlan_id, const uint8_t mac[6],
		  bool solicited, uint64_t *counter, uint64_t now);
/* False: enough has been answered for now. */
bool arp_nd_may_answer(struct arp_nd *a, uint64_t now);

/*
 * arp_nd_suspect.c: has mac answered for hop unasked lately? It has now. It is believed after all.
 */
bool arp_nd_suspected(struct arp_nd *a, const struct arp_nd_hop *hop, const uint8_t mac[6],
		      uint64_t now);
void arp_nd_suspect(struct arp_nd *a, const struct arp_nd_hop *hop, const uint8_t mac[6],
		    uint64_t now);
void arp_nd_absolve(struct arp_nd *a, const struct arp_nd_hop *hop, const uint8_t mac[6]);

/* arp_nd_output.c: Ethernet header, tag if any; returns where the next header begins. */
uint32_t arp_nd_ether(const struct arp_nd *a, uint8_t *frame, const uint8_t dmac[6],
		      uint16_t vlan_id, uint16_t type);
void arp_nd_send_arp(struct arp_nd *a, uint16_t op, uint16_t vlan_id, const uint8_t spa[4],
		     const uint8_t tha[6], const uint8_t tpa[4], const uint8_t dmac[6]);
/* type: solicitation or advertisement, with our MAC address as its option. */
void arp_nd_send_nd(struct arp_nd *a, uint8_t type, uint32_t flags, uint16_t vlan_id,
		    const uint8_t src[16], const uint8_t dst[16], const uint8_t target[16],
		    const uint8_t dmac[6]);
/* Who has the hop? to: the MAC address it had, or NULL to ask everybody. */
void arp_nd_ask(struct arp_nd *a, const struct arp_nd_hop *hop, const uint8_t *to);
void arp_nd_announce_one(struct arp_nd *a, const struct arp_nd_address *own);

#endif
