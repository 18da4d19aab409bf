/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CMAGENT_CORE_HOP_H
#define CMAGENT_CORE_HOP_H

/*
 * Next hops of an agent's peers. To find the MAC address of one may take seconds, so threads of
 * their own ask the driver. There are two ways to wait:
 *   a place, for an agent that sends datagrams (cmagent_hops_find() and others): a known address is
 *   used for CMAGENT_HOP_FRESH_NS, and a datagram waits until its sender can be answered; a ticket,
 *   for a client that has asked for the way to an address (cmagent_hops_ask()): it is answered
 *   once, and also finds the source address.
 *
 * Askers for addresses that do not answer must not make others wait. A station of the segment gets
 * CMAGENT_HOP_OF_STATION places and one thread; a client of the driver gets one thread, and as many
 * tickets as it leaves to others; clients and the agent itself together half of the threads.
 *
 * Without threads (config.asks is false) the driver has a table and no call waits for a neighbour.
 *
 * Lock: a leaf; it is taken under the driver's lock and an agent's.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "driver.h"

#define CMAGENT_HOP_THREADS 8u
#define CMAGENT_HOP_OF_STATION 8u
/* A known address is asked for again after this time. */
#define CMAGENT_HOP_FRESH_NS UINT64_C(10000000000)
/* The same for a peer that does not answer. */
#define CMAGENT_HOP_DOUBT_NS UINT64_C(500000000)

/* Counters of places and of tickets: X(name, text) */
#define CMAGENT_HOP_PLACE_LIST(X) \
	X(kept, "messages that waited for the MAC address of their peer") \
	X(not_kept, "messages of unknown peers that found no place to wait") \
	X(replaced, "peers whose MAC address was looked for, evicted for others") \
	X(unresolved, "peers whose MAC address was not found")
#define CMAGENT_HOP_TICKET_LIST(X) \
	X(asked, "ways that clients have asked for") \
	X(not_asked, "ways that were not looked for, because too many waited") \
	X(not_found, "ways that clients have asked for, and there is none")

enum cmagent_hop_counter {
#define CMAGENT_HOP_COUNTER_ENUM(name, text) CMAGENT_HOP_##name,
	CMAGENT_HOP_PLACE_LIST(CMAGENT_HOP_COUNTER_ENUM)
	CMAGENT_HOP_TICKET_LIST(CMAGENT_HOP_COUNTER_ENUM)
#undef CMAGENT_HOP_COUNTER_ENUM
		CMAGENT_HOP_COUNTERS
};

struct cmagent_hops_config {
	struct hca_driver *drv;
	bool asks; /* the driver may have to ask for MAC addresses, which takes a while */
	uint64_t (*now)(void *arg); /* ns of a clock that does not jump; argument: now_arg */
	void *now_arg;
	/* The agent must look: deliver() or answer() has something. Any thread, any lock. */
	void (*wake)(void *owner);
	void *owner;
	uint32_t places;
	uint32_t message_bytes; /* of a datagram that waits */
	uint32_t tickets;	/* of all clients */
	uint32_t clients;	/* their numbers are below it */
};

/* ---- places ---- */

enum cmagent_hop_state {
	CMAGENT_HOP_FREE,
	CMAGENT_HOP_ASKED, /* it is looked for */
	CMAGENT_HOP_KNOWN,
	CMAGENT_HOP_AGAIN, /* known, and looked for again */
};

/* The asker: a station of the segment, by its MAC address (0: not known), or the agent itself. */
struct cmagent_hop_asker {
	bool station;
	uint8_t mac[6];
};

struct cmagent_hop {
	uint8_t state; /* enum cmagent_hop_state */
	bool taken;    /* by a thread, which asks */
	uint8_t own[16], peer[16];
	struct cmagent_hop_asker asker;
	struct hca_ctl_ah ah;
	uint64_t known_at, used;
	uint32_t len; /* of the peer's message that waits; 0: none */
};

/* ---- tickets ---- */

#define CMAGENT_HOP_NO_GID UINT32_MAX

struct cmagent_hop_wish {
	uint64_t ticket;    /* of the asker's choice */
	uint32_t client;    /* below config.clients; 0: the agent itself */
	uint32_t gid_index; /* of the own address; CMAGENT_HOP_NO_GID: by the routes of the host */
	uint32_t scope;	    /* as for hca_driver_source() */
	uint8_t peer[16];
};

struct cmagent_hop_answer {
	uint64_t ticket;
	int err; /* as of hca_driver_source() and hca_driver_resolve() */
	uint8_t own[16];
	struct hca_ctl_ah ah; /* with the GID index */
};

struct cmagent_hop_ticket {
	struct cmagent_hop_wish wish;
	uint32_t next; /* index + 1 */
	bool forgotten;
	struct cmagent_hop_answer answer;
};

/* Lists of tickets: indexes + 1 */
struct cmagent_hop_list {
	uint32_t first, last;
};

struct cmagent_hop_client {
	struct cmagent_hop_list waiting;
	uint32_t tickets; /* that it has */
	uint32_t taken;	  /* index + 1: a thread asks for this one */
	uint32_t next;	  /* in the list of clients whose turn comes: number + 1 */
	bool listed;
};

struct cmagent_hops {
	struct cmagent_hops_config cfg;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_t thread[CMAGENT_HOP_THREADS];
	uint32_t threads;
	bool stop;
	bool answered; /* atomic: a place has a message that can be delivered */
	uint32_t turn;
	uint64_t uses;
	struct cmagent_hop *hop;
	uint8_t *bytes; /* messages by place, and one for the agent */
	struct cmagent_hop_ticket *ticket;
	struct cmagent_hop_client *client;
	uint32_t tickets_free;	       /* list */
	uint32_t tickets_used;	       /* how many */
	uint32_t clients_taken;	       /* threads that ask for tickets */
	struct cmagent_hop_list turns; /* clients with tickets that wait, and no thread */
	struct cmagent_hop_list done;  /* tickets with an answer */
	uint64_t counter[CMAGENT_HOP_COUNTERS];
};

/* 0 or a negative errno; then cmagent_hops_close() frees the rest. No thread runs yet. */
int cmagent_hops_open(struct cmagent_hops *hs, const struct cmagent_hops_config *config);
int cmagent_hops_start(struct cmagent_hops *hs);
/* The threads end after their present question. */
void cmagent_hops_stop(struct cmagent_hops *hs);
/* Accepts a zeroed structure. */
void cmagent_hops_close(struct cmagent_hops *hs);

uint64_t cmagent_hops_counter(const struct cmagent_hops *hs, enum cmagent_hop_counter which);

/* The entry of the GID table that has the address, the first of several; CMAGENT_HOP_NO_GID. */
uint32_t cmagent_gid_index(struct hca_driver *drv, const uint8_t own[16]);

/* How to reach the peer; false: not known. Calls the driver, but does not wait. */
bool cmagent_hops_find(struct cmagent_hops *hs, const uint8_t own[16], const uint8_t peer[16],
		       struct hca_ctl_ah *ah);
/* Look for a peer that the agent itself needs. */
void cmagent_hops_look(struct cmagent_hops *hs, const uint8_t own[16], const uint8_t peer[16]);
/* As cmagent_hops_look(), for a peer that does not answer at the known address. */
void cmagent_hops_doubt(struct cmagent_hops *hs, const uint8_t own[16], const uint8_t peer[16]);
/* A client has asked for this peer. */
void cmagent_hops_learn(struct cmagent_hops *hs, const uint8_t own[16], const uint8_t peer[16],
			const struct hca_ctl_ah *ah);
/*
 * Look for the sender of a datagram, which waits. mac: of its frame. A newer one of that peer takes
 * its place.
 */
void cmagent_hops_keep(struct cmagent_hops *hs, const uint8_t own[16], const uint8_t peer[16],
		       const uint8_t mac[6], const uint8_t *bytes, size_t len);
/* Messages whose peers are known by now; returns how many. */
unsigned int cmagent_hops_deliver(struct cmagent_hops *hs,
				  void (*input)(void *arg, const uint8_t own[16],
						const uint8_t peer[16], const uint8_t *bytes,
						size_t len),
				  void *arg);

/**
 * Find the way to an address; the answer is fetched by cmagent_hops_answer() after a wake(). Any
 * thread, under any lock: the driver is not called.
 *
 * @return
 *   0; -EAGAIN: the client has too many questions, or all have; -EINVAL: no such client.
 */
int cmagent_hops_ask(struct cmagent_hops *hs, const struct cmagent_hop_wish *wish);
/* The client has ended: its tickets are not answered any more. */
void cmagent_hops_forget(struct cmagent_hops *hs, uint32_t client);
/*
 * The next answer; false: no answer waits. Called by the agent, without a lock: may call the
 * driver.
 */
bool cmagent_hops_answer(struct cmagent_hops *hs, struct cmagent_hop_answer *answer);

/* ---- for the files of this unit; the lock is held ---- */

struct cmagent_hop *cmagent_hop_next(struct cmagent_hops *hs);
void cmagent_hop_resolve(struct cmagent_hops *hs, struct cmagent_hop *h);
/* A ticket that a thread may look for; NULL: none. */
struct cmagent_hop_ticket *cmagent_ticket_next(struct cmagent_hops *hs);
void cmagent_ticket_resolve(struct cmagent_hops *hs, struct cmagent_hop_ticket *t);
void cmagent_hop_count(struct cmagent_hops *hs, enum cmagent_hop_counter which);

#endif
