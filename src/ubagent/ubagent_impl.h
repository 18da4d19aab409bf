/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UBAGENT_UBAGENT_IMPL_H
#define UBAGENT_UBAGENT_IMPL_H

/* Shared by the files of the agent. */

#include <pthread.h>

#include "abi_tp.h"
#include "abi_ub.h"
#include "cmagent_loop.h"
#include "cmagent_mail.h"
#include "ubagent.h"

/* ---- messages: ubagent_mail.c ---- */

int ubagent_mail_open(struct ubagent *a);

/* ---- who has imported what: ubagent_account.c; under its lock, a leaf ---- */

enum import_state {
	IMPORT_FREE,
	IMPORT_NEW,	/* the agent has not seen it */
	IMPORT_WAITING, /* it is a user of its link */
	IMPORT_UP,
	IMPORT_DOWN,	/* its link is gone; the owner has not given it back */
	IMPORT_LEAVING, /* the owner has given it back; the agent has not seen that */
};

#define NO_GROUP UINT32_MAX

struct import {
	uint8_t state; /* enum import_state */
	bool listed;   /* for the agent */
	uint8_t status;
	bool joined; /* a user of its link */
	bool told;   /* its group, to its owner */
	uint32_t owner, user;
	uint32_t generation;
	uint32_t link; /* of ubcm */
	uint32_t group;
	uint32_t next;
	uint8_t own[16], peer[16];
	struct hca_ctl_ah ah; /* the way to it */
};

#define IMPORT_LOG_MAX 16u

struct account {
	pthread_mutex_t lock;
	struct import *import;
	uint32_t count, used;
	uint32_t free, todo; /* lists by index + 1 */
	uint32_t *dead;	     /* TPNs that have died, by index; 0: none; without the lock */
	uint32_t ntps;
	bool any_dead;
	uint32_t *users; /* imports that name a group */
	bool *gone;	 /* the group has no TPs any more */
	uint32_t ngone;
};

int account_init(struct account *a, uint32_t ntps);
void account_free(struct account *a);
/* Imports of one link belong to another one. */
void account_join(struct account *a, uint32_t from, uint32_t link);
/* The next import that the agent must look at; NULL: none. */
struct import *account_next(struct account *a);
bool account_due(struct account *a);
/* The import ends and its place is free. Returns the group that may be given back, or NO_GROUP. */
uint32_t account_end(struct account *a, struct import *i);
void account_up(struct account *a, uint32_t link, uint32_t group);
void account_down(struct account *a, uint32_t link, uint32_t status);
/* The TPs of a group are gone. True: nobody names it. */
bool account_group_gone(struct account *a, uint32_t group);

/* ---- MAC addresses of peers: ubagent_hop.c ---- */

#define HOPS_MAX 64u
#define HOPS_THREADS 8u
/*
 * A station of the segment can send for any number of addresses that do not exist. It gets so many
 * places, and one thread looks for them.
 */
#define HOPS_OF_STATION 8u
/* What has been known for longer is asked for again. */
#define HOP_FRESH_NS UINT64_C(10000000000)

enum hop_state {
	HOP_FREE,
	HOP_ASKED, /* it is looked for */
	HOP_KNOWN,
	HOP_AGAIN, /* known, and looked for again */
};

struct hop {
	uint8_t state; /* enum hop_state */
	bool taken;    /* by a thread, which asks */
	uint8_t own[16], peer[16];
	uint8_t station[6]; /* that has sent the message; 0: a local user asks */
	struct hca_ctl_ah ah;
	uint64_t known_at, used;
	uint32_t len; /* of the peer's message that waits; 0: none */
	uint8_t bytes[UBCM_MSG_MAX];
};

struct hops {
	pthread_mutex_t lock; /* a leaf */
	pthread_cond_t wake;
	pthread_t thread[HOPS_THREADS];
	uint32_t threads;
	bool stop;
	bool answered; /* atomic: the agent must look for messages that waited */
	uint32_t turn;
	uint64_t uses;
	struct hop hop[HOPS_MAX];
};

int hops_start(struct ubagent *a);
void hops_stop(struct ubagent *a);
/* How to reach the peer; false: not known. */
bool hops_find(struct ubagent *a, const uint8_t own[16], const uint8_t peer[16],
	       struct hca_ctl_ah *ah);
/* Look for a peer that local users have imported. */
void hops_ask(struct ubagent *a, const uint8_t own[16], const uint8_t peer[16]);
/* A client has asked for this peer. */
void hops_learn(struct ubagent *a, const uint8_t own[16], const uint8_t peer[16],
		const struct hca_ctl_ah *ah);
/* Look for the peer; its message waits. A newer one of that peer takes its place. */
void hops_keep(struct ubagent *a, const struct cmagent_mail_letter *l);
/* Messages whose peers are known by now go to ubcm; returns how many. */
unsigned int hops_deliver(struct ubagent *a, uint64_t now);

/* ---- the agent ---- */

struct ubagent {
	struct ubagent_config cfg;
	struct cmagent_mail mail;
	struct cmagent_loop loop;
	struct account account;
	struct hops hops;
	struct ubcm *cm;
	const struct cmagent_mail_letter *answering; /* the message that ubcm has; NULL: none */
	uint32_t *group;			     /* by index of the link; NO_GROUP */
	uint32_t log_tps, nlinks;
	uint64_t random; /* state, with a seed */
	uint64_t counter[UBAGENT_COUNTERS];
	struct ubcm_counters shown; /* a copy for other threads, of single words */
};

/* What the driver calls: ubagent_account.c */
extern const struct hca_driver_agent ubagent_face;
void ubagent_count(struct ubagent *a, enum ubagent_counter which);

/* ubagent_act.c: what ubcm orders */
extern const struct ubcm_ops ubagent_ops;
/* The entry of the table that has the address; UINT32_MAX: none. */
uint32_t ubagent_gid_index(const struct ubagent *a, const uint8_t *own);
void ubagent_give_group(struct ubagent *a, uint32_t group);

#endif
