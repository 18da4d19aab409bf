/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CMAGENT_UB_UBAGENT_IMPL_H
#define CMAGENT_UB_UBAGENT_IMPL_H

/* Shared by the files of the agent. */

#include <pthread.h>

#include "abi_tp.h"
#include "abi_ub.h"
#include "cmagent_hop.h"
#include "cmagent_loop.h"
#include "cmagent_mail.h"
#include "cmagent_random.h"
#include "ubagent.h"

/* ---- messages: ubagent_mail.c ---- */

int ubagent_mail_open(struct ubagent *a);

/* ---- imports of clients: ubagent_account.c; under its lock, a leaf ---- */

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
/* The TPs of a group are gone. True: no import names it. */
bool account_group_gone(struct account *a, uint32_t group);

/* ---- the agent ---- */

struct ubagent {
	struct ubagent_config cfg;
	struct cmagent_mail mail;
	struct cmagent_loop loop;
	struct account account;
	struct cmagent_hops hops;
	struct ubcm *cm;
	const struct cmagent_mail_letter *answering; /* the message that ubcm has; NULL: none */
	uint32_t *group;			     /* by index of the link; NO_GROUP */
	uint32_t log_tps, nlinks;
	struct cmagent_random random;
	uint64_t counter[UBAGENT_COUNTERS];
	struct ubcm_counters shown; /* a copy for other threads, of single words */
};

/* Calls of the driver: ubagent_account.c */
extern const struct hca_driver_agent ubagent_face;
void ubagent_count(struct ubagent *a, enum ubagent_counter which);

/* ubagent_act.c: orders of ubcm */
extern const struct ubcm_ops ubagent_ops;
void ubagent_give_group(struct ubagent *a, uint32_t group);

#endif
