/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KERNIF_ARP_ND_H
#define KERNIF_ARP_ND_H

/*
 * The least an IP host must do, for a port without a kernel interface: answers ARP requests (RFC
 * 826), neighbour solicitations (RFC 4861) and echo requests (RFC 792, 4443) for its addresses, on
 * VLANs too; finds the MAC addresses of next hops; announces itself.
 *
 * No clock, no thread, no socket: frames and the time come as arguments, frames go out through
 * send(). One caller at a time. Everything that comes in is hostile: it is judged whole before it
 * is answered, answers are rate limited, and the table is filled only by answers to questions that
 * are open, so that nobody can push an entry in or another one out. Who answers what was not asked
 * is believed later only if nobody else answers.
 */

#include <stdbool.h>
#include <stdint.h>

#define ARP_ND_NO_VLAN 0xffffu
#define ARP_ND_ENTRIES 256u    /* next hops known or asked for */
#define ARP_ND_ADDRESSES 65u   /* of our own */
#define ARP_ND_FRAME_MAX 4480u /* longest echo that is answered, Ethernet header included */

/* A next hop: address in GID form (IPv4: ::ffff:a.b.c.d), network order, on one VLAN. */
struct arp_nd_hop {
	uint8_t gid[16];
	uint16_t vlan_id; /* or ARP_ND_NO_VLAN */
};

struct arp_nd_address {
	uint8_t gid[16];
	uint8_t prefix; /* bits of the IP address */
	uint16_t vlan_id;
};

struct arp_nd_config {
	uint8_t mac[6];
	const struct arp_nd_address *addresses;
	uint32_t num_addresses;
	const struct arp_nd_hop *gateways; /* for what is in no prefix, by version and VLAN */
	uint32_t num_gateways;
	/* A whole frame; the callee copies it. */
	void (*send)(void *arg, const uint8_t *frame, uint32_t len);
	/*
	 * A next hop has become known, has another MAC address than before, or is given up (NULL).
	 */
	void (*changed)(void *arg, const struct arp_nd_hop *hop, const uint8_t *mac);
	void *arg;
};

/* Every frame is counted under exactly one of the first group. */
#define ARP_ND_STATS(X) \
	X(arp_requests) /* for us, answered */ \
	X(arp_answers)	/* to a question of ours */ \
	X(nd_requests) \
	X(nd_answers) \
	X(echo_requests)  /* ICMP and ICMPv6, answered */ \
	X(not_ours)	  /* other MAC or IP address, other VLAN */ \
	X(other_protocol) /* nothing this responder speaks */ \
	X(malformed)	  /* short, wrong lengths, wrong checksum */ \
	X(spoofed)	  /* claims to come from us, or from a group */ \
	X(unasked)	  /* answers and announcements nobody waits for */ \
	X(limited)	  /* not answered: too many */ \
	X(questions)	  /* sent; so the next two */ \
	X(announcements) \
	X(disputed) /* moves taken back: who had the address is still there */ \
	X(given_up) /* next hops that never answered */ \
	X(moved)    /* next hops with a new MAC address */

struct arp_nd_stats {
#define X(n) uint64_t n;
	ARP_ND_STATS(X)
#undef X
};

struct arp_nd;

/* 0, -ENOMEM, -EINVAL (too many addresses). */
int arp_nd_create(const struct arp_nd_config *cfg, struct arp_nd **out);
void arp_nd_destroy(struct arp_nd *a);

void arp_nd_input(struct arp_nd *a, const uint8_t *frame, uint32_t len, uint64_t now);

/* Repeats questions, forgets, announces. Call at least ten times a second. Times in ns. */
void arp_nd_tick(struct arp_nd *a, uint64_t now);

/* Tell the network again who we are: the link has come back. */
void arp_nd_announce(struct arp_nd *a, uint64_t now);

/*
 * MAC address of the way to dgid from an address on that VLAN: 0; -EAGAIN: asked, look again later
 * (it takes three seconds to give up); -EHOSTUNREACH: nobody answers; -ENOBUFS: too many open
 * questions. *hop is whom that MAC address belongs to.
 */
int arp_nd_lookup(struct arp_nd *a, const uint8_t dgid[16], uint16_t vlan_id, uint64_t now,
		  uint8_t mac[6], struct arp_nd_hop *hop);

/* The hop is at mac after all, whatever was answered. */
void arp_nd_correct(struct arp_nd *a, const struct arp_nd_hop *hop, const uint8_t mac[6],
		    uint64_t now);

void arp_nd_stats(const struct arp_nd *a, struct arp_nd_stats *out);

#endif
