/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KERNIF_ARP_ND_H
#define KERNIF_ARP_ND_H

/*
 * A minimal IP host for a port without a kernel interface. It answers ARP requests (RFC 826),
 * neighbour solicitations (RFC 4861) and echo requests (RFC 792, 4443) for its addresses, also in
 * VLANs, resolves the MAC addresses of next hops, and announces its own addresses. It tells
 * routers and switches which multicast groups it is in, as the host of IGMPv3 (RFC 3376) and MLDv2
 * (RFC 3810), and of IGMPv1, IGMPv2 and MLDv1 while a querier speaks those.
 *
 * It has no clock, thread or socket: frames and the time (ns, monotonic) are arguments, and frames
 * leave through send(). The caller serializes all calls. All input is untrusted: a frame is checked
 * completely before it is answered, answers are rate limited, and only answers to open requests
 * change the table, so that a neighbour can neither add nor evict entries. Answers of a host that
 * has sent unsolicited ones are accepted later only if no other host answers.
 */

#include <stdbool.h>
#include <stdint.h>

#define ARP_ND_NO_VLAN 0xffffu
#define ARP_ND_ENTRIES 256u  /* next hops, known or being resolved */
#define ARP_ND_ADDRESSES 65u /* own addresses */
/* groups that are joined, or were left a moment ago; those of the own addresses among them */
#define ARP_ND_GROUPS (4096u + ARP_ND_ADDRESSES)
#define ARP_ND_FRAME_MAX 4480u /* longest echo request answered, Ethernet header included */

/* A next hop: an address in GID form (IPv4: ::ffff:a.b.c.d) in network order, and its VLAN. */
struct arp_nd_hop {
	uint8_t gid[16];
	uint16_t vlan_id; /* or ARP_ND_NO_VLAN */
};

struct arp_nd_address {
	uint8_t gid[16];
	uint8_t prefix; /* bits of the IP address, without ::ffff: */
	uint16_t vlan_id;
};

struct arp_nd_config {
	uint8_t mac[6];
	const struct arp_nd_address *addresses;
	uint32_t num_addresses;
	/* for destinations in no prefix, one per IP version and VLAN */
	const struct arp_nd_hop *gateways;
	uint32_t num_gateways;
	/* Sends a whole frame; copies it before returning. */
	void (*send)(void *arg, const uint8_t *frame, uint32_t len);
	/* A next hop was resolved, has a new MAC address, or was given up (mac NULL). */
	void (*changed)(void *arg, const struct arp_nd_hop *hop, const uint8_t *mac);
	void *arg;
	uint64_t seed; /* of the random delays of reports */
};

/* Each received frame is counted under exactly one of the names up to `limited`. */
#define ARP_ND_STATS(X) \
	X(arp_requests) /* for own addresses, answered */ \
	X(arp_answers)	/* to own requests */ \
	X(nd_requests) \
	X(nd_answers) \
	X(echo_requests)  /* ICMP and ICMPv6, answered */ \
	X(group_queries)  /* of IGMP and MLD */ \
	X(not_ours)	  /* for another MAC or IP address or VLAN */ \
	X(other_protocol) /* a protocol that the responder does not speak */ \
	X(malformed)	  /* too short, wrong lengths or checksum */ \
	X(spoofed)	  /* sent from the responder's own address or a group */ \
	X(unasked)	  /* announcements and answers to no request */ \
	X(limited)	  /* requests not answered because of the rate limit */ \
	X(questions)	  /* requests sent */ \
	X(announcements) \
	X(group_reports) /* IGMP and MLD messages sent */ \
	X(disputed)	 /* moves undone: the previous owner still answers */ \
	X(given_up)	 /* next hops that did not answer */ \
	X(moved)	 /* next hops with a new MAC address */

struct arp_nd_stats {
#define X(n) uint64_t n;
	ARP_ND_STATS(X)
#undef X
};

struct arp_nd;

/*
 * Create a responder; the configuration's arrays are copied. Returns 0, -ENOMEM, or -EINVAL: too
 * many addresses.
 */
int arp_nd_create(const struct arp_nd_config *cfg, struct arp_nd **out);
/* Free a responder; a may be NULL. */
void arp_nd_destroy(struct arp_nd *a);

/* Handle a received frame of len bytes, Ethernet header included; it is not kept. */
void arp_nd_input(struct arp_nd *a, const uint8_t *frame, uint32_t len, uint64_t now);

/*
 * Repeat requests, expire entries, announce addresses. To be called within 0.1 s after the time
 * of arp_nd_due(); more calls do no harm.
 */
void arp_nd_tick(struct arp_nd *a, uint64_t now);

/* The time of the next work of arp_nd_tick(); every other call may bring it forward. */
uint64_t arp_nd_due(const struct arp_nd *a);

/* Announce the own addresses again, after the link came back. */
void arp_nd_announce(struct arp_nd *a, uint64_t now);

/* Find the next hop to dgid from an own address in a VLAN; sends no request. */
void arp_nd_next_hop(const struct arp_nd *a, const uint8_t dgid[16], uint16_t vlan_id,
		     struct arp_nd_hop *hop);

/*
 * Find the MAC address for sending to dgid from an own address in a VLAN, and the next hop that it
 * belongs to.
 *
 * @return 0; -EAGAIN: a request was sent, call again later (after at most 3.2 s the result
 *   changes); -EHOSTUNREACH: the next hop does not answer; -ENOBUFS: too many open requests
 */
int arp_nd_lookup(struct arp_nd *a, const uint8_t dgid[16], uint16_t vlan_id, uint64_t now,
		  uint8_t mac[6], struct arp_nd_hop *hop);

/*
 * Join or leave a group (in GID form) in a VLAN. Each join is undone by one leave; only the first
 * join and the last leave are reported, at the next tick and once more within a second. Nothing is
 * reported of 224.0.0.1, ff02::1 and groups of node scope.
 *
 * @return 0; -EINVAL: not a multicast address, or a VLAN without own addresses; -ENOSPC: too many
 *   groups; -ENOENT: not joined
 */
int arp_nd_join(struct arp_nd *a, const struct arp_nd_hop *group, uint64_t now);
int arp_nd_leave(struct arp_nd *a, const struct arp_nd_hop *group, uint64_t now);
/* Leave all groups, and report that once, now. */
void arp_nd_leave_all(struct arp_nd *a, uint64_t now);

/* Set the MAC address of a hop, overriding the answer that was accepted. */
void arp_nd_correct(struct arp_nd *a, const struct arp_nd_hop *hop, const uint8_t mac[6],
		    uint64_t now);

/* Copy the counters. */
void arp_nd_stats(const struct arp_nd *a, struct arp_nd_stats *out);

#endif
