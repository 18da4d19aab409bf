/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KERNIF_ARP_ND_IMPL_H
#define KERNIF_ARP_ND_IMPL_H

/* Shared by the files of the responder; the table and its timers are in arp_nd.c. */

#include <netinet/in.h>
#include <string.h>

#include <dpdk_compat.h>
#include <rte_arp.h>
#include <rte_ether.h>
#include <rte_icmp.h>
#include <rte_ip.h>

#include "abi_addr.h"
#include "arp_nd.h"

enum hop_state {
	HOP_FREE,
	HOP_ASKING, /* first request, not answered yet */
	HOP_KNOWN,
	HOP_CHECKING, /* known, being verified */
	HOP_FAILED,   /* not answered; no new request for FAILED_FOR */
};

struct hop_entry {
	struct arp_nd_hop hop;
	uint8_t mac[6];
	uint8_t state;
	uint8_t tries;
	uint64_t next;	/* time of the next timer event */
	uint64_t asked; /* time of the last request */
	uint64_t since; /* time from which mac has been accepted */
	uint8_t old[6]; /* the MAC address until `moved` (0: never) */
	uint64_t moved;
	uint64_t old_since;
	uint64_t used; /* time of the last lookup */
};

/* Token bucket: a burst, and a rate per second. */
struct bucket {
	uint64_t full_at; /* time at which the bucket is full again */
};

/* A MAC address that was announced for a hop without a request; `until` 0: unused entry */
#define ARP_ND_SUSPECTS 32u
struct suspect {
	struct arp_nd_hop hop;
	uint8_t mac[6];
	uint64_t until;
};

/* The two protocols of group membership, and the host's state of each on each link. */
enum group_protocol {
	GROUP_IGMP,
	GROUP_MLD,
	GROUP_PROTOCOLS
};

/*
 * A generation is how many versions a message or a querier is behind: IGMPv3 and MLDv2 0, IGMPv2
 * and MLDv1 1, IGMPv1 2.
 */
#define GROUP_GENERATIONS 3u

struct group_querier {
	uint64_t until[GROUP_GENERATIONS]; /* an older one is taken to be present until then */
	uint64_t answer_at; /* its general query is answered then; 0: no query is open */
	uint64_t answered;  /* the last one */
	uint64_t asked;	    /* the last one of an older generation that was taken */
};

struct group_link {
	uint16_t vlan_id;
	struct group_querier querier[GROUP_PROTOCOLS];
};

struct group_entry {
	struct arp_nd_hop hop; /* gid: the group */
	uint32_t refs;	       /* 0: left, which is still to be reported */
	uint16_t next;	 /* in the chain of its hash, or of free entries: index + 1; 0: none */
	uint8_t changes; /* reports of a change still to send */
	bool used;
	uint64_t change_at;
	uint64_t answer_at; /* a query is answered then; 0: no query is open */
	uint64_t answered;
};

#define GROUP_HASH 1024u

struct group_table {
	struct group_link link[ARP_ND_ADDRESSES + 1];
	uint32_t num_links;
	struct group_entry entry[ARP_ND_GROUPS];
	uint16_t head[GROUP_HASH]; /* index + 1; 0: none */
	uint16_t free;		   /* index + 1 */
	uint32_t end;		   /* entries from here on were never used */
	uint64_t due;		   /* nothing is to be done before */
	uint64_t random;
};

struct arp_nd {
	struct arp_nd_config cfg;
	struct arp_nd_address address[ARP_ND_ADDRESSES];
	struct arp_nd_hop gateway[ARP_ND_ADDRESSES];
	struct hop_entry hop[ARP_ND_ENTRIES];
	struct suspect suspect[ARP_ND_SUSPECTS];
	struct bucket answers;
	struct group_table groups;
	unsigned int announce_left;
	uint64_t announce_at;
	struct arp_nd_stats stats;
};

/* A received frame and the offsets of its headers. */
struct arp_nd_frame {
	const uint8_t *bytes;
	uint32_t len;
	uint32_t l3; /* offset of the network header */
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
#define ND_LEN 32u /* solicitation or advertisement with one link-layer address option */

/* Neighbour discovery message, type to target; options of 8 bytes each follow. */
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

/* arp_nd.c: the own address with that GID and VLAN, or NULL. */
const struct arp_nd_address *arp_nd_own(const struct arp_nd *a, const uint8_t gid[16],
					uint16_t vlan_id);
/*
 * Handle the claim that gid is at mac. solicited: the frame was addressed to us alone, like an
 * answer.
 */
void arp_nd_heard(struct arp_nd *a, const uint8_t gid[16], uint16_t vlan_id, const uint8_t mac[6],
		  bool solicited, uint64_t *counter, uint64_t now);
/* Take a token for an answer; false: the rate limit is reached. */
bool arp_nd_may_answer(struct arp_nd *a, uint64_t now);

/*
 * arp_nd_suspect.c: ask whether mac has recently claimed hop without a request; record such a
 * claim; forget it.
 */
bool arp_nd_suspected(struct arp_nd *a, const struct arp_nd_hop *hop, const uint8_t mac[6],
		      uint64_t now);
void arp_nd_suspect(struct arp_nd *a, const struct arp_nd_hop *hop, const uint8_t mac[6],
		    uint64_t now);
void arp_nd_absolve(struct arp_nd *a, const struct arp_nd_hop *hop, const uint8_t mac[6]);

/* ---- groups: arp_nd_group.c ---- */

void arp_nd_group_init(struct arp_nd *a);
void arp_nd_group_tick(struct arp_nd *a, uint64_t now);
/* Report all groups again. */
void arp_nd_group_announce(struct arp_nd *a, uint64_t now);

struct group_query {
	enum group_protocol protocol;
	unsigned int generation;
	bool general;
	uint8_t group[16];
	uint64_t within; /* ns */
};
/* A valid query of that VLAN. */
void arp_nd_group_asked(struct arp_nd *a, uint16_t vlan_id, const struct group_query *q,
			uint64_t now);

/* arp_nd_query.c: received frames of IGMP, and IPv6 packets with a hop-by-hop header. */
void arp_nd_input_igmp(struct arp_nd *a, const struct arp_nd_frame *f, uint64_t now);
void arp_nd_input_options6(struct arp_nd *a, const struct arp_nd_frame *f, uint64_t now);

/* arp_nd_report.c: messages of groups. Types of records, IGMPv3 and MLDv2. */
enum group_record {
	GROUP_IS_EXCLUDE = 2, /* joined, from any source */
	GROUP_TO_INCLUDE = 3, /* left */
	GROUP_TO_EXCLUDE = 4, /* joined now */
};
/* A report that is being written; it is sent when it is full, or another one begins. */
#define GROUP_REPORT_MAX 1400u
struct group_report {
	enum group_protocol protocol;
	uint16_t vlan_id;
	uint16_t count;
	uint32_t len;
	uint8_t records[GROUP_REPORT_MAX];
};
void arp_nd_report_add(struct arp_nd *a, struct group_report *r, const struct arp_nd_hop *group,
		       enum group_record type);
void arp_nd_report_send(struct arp_nd *a, struct group_report *r);
/* A message of an older generation (1, 2) about one group. */
void arp_nd_report_old(struct arp_nd *a, const struct arp_nd_hop *group, unsigned int generation,
		       bool leave);

/* arp_nd_output.c: write an Ethernet header, with a VLAN tag if needed. Returns its length. */
uint32_t arp_nd_ether(const struct arp_nd *a, uint8_t *frame, const uint8_t dmac[6],
		      uint16_t vlan_id, uint16_t type);
void arp_nd_send_arp(struct arp_nd *a, uint16_t op, uint16_t vlan_id, const uint8_t spa[4],
		     const uint8_t tha[6], const uint8_t tpa[4], const uint8_t dmac[6]);
/* Send a solicitation or an advertisement (type) with our MAC address as its option. */
void arp_nd_send_nd(struct arp_nd *a, uint8_t type, uint32_t flags, uint16_t vlan_id,
		    const uint8_t src[16], const uint8_t dst[16], const uint8_t target[16],
		    const uint8_t dmac[6]);
/*
 * Send a request for the hop's MAC address, to the last known MAC address or (to NULL) to all
 * hosts.
 */
void arp_nd_ask(struct arp_nd *a, const struct arp_nd_hop *hop, const uint8_t *to);
void arp_nd_announce_one(struct arp_nd *a, const struct arp_nd_address *own);

#endif
