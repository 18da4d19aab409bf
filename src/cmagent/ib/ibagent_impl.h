/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CMAGENT_IB_IBAGENT_IMPL_H
#define CMAGENT_IB_IBAGENT_IMPL_H

/* Shared by the files of the agent. */

#include <pthread.h>

#include "abi_bar.h"
#include "cmagent_hop.h"
#include "cmagent_loop.h"
#include "cmagent_random.h"
#include "gsi_mail.h"
#include "ibagent.h"

#define IBAGENT_GIDS 256u     /* entries of the table, at most */
#define IBAGENT_OUT 8192u     /* datagrams that wait to be sent */
#define IBAGENT_TICKETS 4096u /* destinations that clients have asked for */
#define IBAGENT_CLIENTS HCA_UAR_PAGES
#define IBAGENT_PLACES 64u    /* of peers whose MAC address is known or looked for */
#define IBAGENT_BUCKETS 1024u /* of peers, by a hash of their addresses */
#define IBAGENT_GROUP_BUCKETS 1024u

/* A datagram that waits to be sent */
struct ibagent_out {
	struct ibcm_way way;
	uint8_t mad[IBCM_MAD_BYTES];
};

/* A group whose members have come or gone, until the owner of the agent has been told */
struct ibagent_group {
	struct ibagent_group *next; /* of its bucket */
	struct ibagent_group *next_change;
	uint32_t gid_index;
	uint8_t mgid[16];
	bool joined, told, changed;
};

/*
 * A rate per second on average, with a burst that lasts `burst` ns: time at which the next is due
 */
struct ibagent_bucket {
	uint64_t next;
};

struct ibagent_rate {
	uint64_t every, burst; /* ns */
};

/* A ping, or the answer to one, that has found no room in the mail yet; len 0: no datagram */
struct ibagent_ping {
	struct ibcm_way way;
	size_t len;
	uint8_t bytes[IBPING_BYTES_MAX];
};

struct ibagent {
	struct ibagent_config cfg;
	struct cmagent_mail mail;
	struct cmagent_hops hops;

	/* the state machines, and their requests; under the lock */
	pthread_mutex_t lock;
	struct ibcm *cm;
	struct ibping *ping;
	struct hca_ctl_gid gid[IBAGENT_GIDS];
	struct ibagent_out *out; /* a ring, at its start whenever it is empty */
	uint32_t out_first, out_count;
	/* those that exist, and a list of changes that the owner has to be told */
	struct ibagent_group *group[IBAGENT_GROUP_BUCKETS], *first_change, *last_change;
	struct cmagent_random random;
	struct ibagent_refusal refusal[IBAGENT_REFUSALS]; /* since: when it was */

	/* of the thread that runs the agent */
	struct ibagent_out sending; /* has found no room in the mail yet */
	bool has_sending;
	struct ibagent_ping pinging;
	bool dead; /* atomic: the state machines have been told that the device is dead */
	uint64_t hash_key;
	struct ibagent_rate rate, first_rate, address_rate;
	struct ibagent_bucket all, first, address[IBAGENT_BUCKETS];

	uint64_t due; /* until when it sleeps, as far as the state machines are concerned; atomic */
	uint64_t counter[IBAGENT_COUNTERS];
	struct cmagent_loop loop;
};

void ibagent_count(struct ibagent *a, enum ibagent_counter which);
uint64_t ibagent_now(const struct ibagent *a);
/* The entry of the table that has the address; NULL: none. The lock is held. */
const struct hca_ctl_gid *ibagent_gid(const struct ibagent *a, const uint8_t own[16],
				      uint16_t vlan_id, uint32_t *index);

/* ibagent_face.c: calls of the driver, and calls of the state machines */
extern const struct hca_driver_cm ibagent_face;
extern const struct ibcm_ops ibagent_ops;

/* ibagent_groups.c: function of struct ibcm_ops */
void ibagent_group(void *arg, uint32_t gid_index, const uint8_t mgid[16], bool joined);
/* Tell the owner of groups; returns of how many. */
unsigned int ibagent_tell_groups(struct ibagent *a);
void ibagent_free_groups(struct ibagent *a);

/* ibagent_mads.c */
void ibagent_set_rates(struct ibagent *a);
/* Receive and send datagrams within the limits; returns their number. */
unsigned int ibagent_receive(struct ibagent *a, uint64_t now);
unsigned int ibagent_send(struct ibagent *a);
/* The entry that a datagram leaves from; its index UINT32_MAX: it has gone. The lock is held. */
void ibagent_from(const struct ibagent *a, const struct ibcm_way *way, struct hca_ctl_ah *ah);
/* Give a datagram to the device, or drop and count it; false: there is no room. */
bool ibagent_post(struct ibagent *a, const struct ibcm_way *way, const struct hca_ctl_ah *ah,
		  const uint8_t *bytes, size_t len);

/* ibagent_refused.c: an operation, or a way, was refused; the lock is held */
void ibagent_refused(struct ibagent *a, uint32_t owner, enum hca_ctl_op op, const void *request,
		     int err, const char *why);
void ibagent_refused_way(struct ibagent *a, const uint8_t dst[16], int err);

/* ibagent_ping.c */
int ibagent_ping_open(struct ibagent *a);
/* A datagram of a ping; the lock is held. */
bool ibagent_ping_input(struct ibagent *a, const struct ibcm_way *from,
			const struct cmagent_mail_letter *l);
unsigned int ibagent_ping_send(struct ibagent *a);

/* ibagent_ways.c: the destinations that clients have asked for. Ask: with the lock. */
void ibagent_ask(struct ibagent *a, uint64_t ticket, const struct ibcm_wish *wish);
/* Pass found addresses to the state machines; returns their number. */
unsigned int ibagent_answers(struct ibagent *a);

#endif
